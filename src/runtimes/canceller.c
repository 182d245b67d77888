/*
 * canceller.c - a flag that can be waited for: an eventfd that stays readable once it was raised.
 *
 * Whoever waits on behalf of the run (for a cell, for its next event) polls it too, so there is no
 * moment at which a cancel could be lost, and no lock.
 */
#include "runtimes/runtimes.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

void rt_canceller_init(rt_canceller *c)
{
    /* Without a descriptor the run cannot be had either, and says so. */
    c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void rt_canceller_done(rt_canceller *c)
{
    rt_closep(&c->wake);
}

void rt_canceller_cancel(rt_canceller *c)
{
    (void)!write(c->wake, &(uint64_t){ 1 }, sizeof(uint64_t));
}

bool rt_canceller_is_cancelled(const rt_canceller *c)
{
    struct pollfd look = { .fd = c->wake, .events = POLLIN };
    return poll(&look, 1, 0) > 0;
}
