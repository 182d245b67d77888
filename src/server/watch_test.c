/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/watch.h"

static atomic_int calls;

static void count(void *ctx)
{
    (void)ctx;
    atomic_fetch_add(&calls, 1);
}

static void wait_for_calls(int wanted)
{
    for (int i = 0; i < 5000 && atomic_load(&calls) < wanted; i++)
        usleep(1000);
    cr_assert_eq(atomic_load(&calls), wanted);
}

typedef struct line {
    int ends[2];
    watch_entry entry;
} line;

static void connect_line(watch *w, line *l)
{
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, l->ends), 0);
    watch_begin(w, &l->entry, l->ends[0], count, NULL);
}

static void cut(line *l)
{
    close(l->ends[0]);
    close(l->ends[1]);
}

Test(watch, a_client_that_hangs_up_is_noticed_once)
{
    watch *w;
    line l;
    cr_assert(watch_open(&w, NULL));
    connect_line(w, &l);
    cr_assert_eq(write(l.ends[1], "more", 4), 4); /* to send is not to hang up */
    shutdown(l.ends[1], SHUT_WR);
    wait_for_calls(1);
    watch_end(w, &l.entry);
    watch_close(w);
    cr_assert_eq(atomic_load(&calls), 1);
    cut(&l);
}

Test(watch, who_has_ended_is_not_called)
{
    watch *w;
    line first, second;
    cr_assert(watch_open(&w, NULL));
    connect_line(w, &first);
    connect_line(w, &second);
    watch_end(w, &first.entry);
    watch_end(w, &first.entry); /* a second time is nothing */
    shutdown(first.ends[1], SHUT_WR);
    shutdown(second.ends[1], SHUT_WR);
    wait_for_calls(1);
    watch_end(w, &second.entry);
    watch_close(w);
    cut(&first);
    cut(&second);
}

Test(watch, a_server_that_stops_has_no_clients_left)
{
    watch *w;
    line first, second;
    cr_assert(watch_open(&w, NULL));
    connect_line(w, &first);
    watch_all_gone(w);
    wait_for_calls(1);
    connect_line(w, &second); /* too late */
    wait_for_calls(2);
    watch_end(w, &first.entry);
    watch_end(w, &second.entry);
    watch_close(w);
    cut(&first);
    cut(&second);
}
