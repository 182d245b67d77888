/* SPDX-License-Identifier: Apache-2.0 */
/* patience.c - a ring of connections, and a thread that looks through it now and then. */
#include "server/patience.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#define LOOKS_PER_LIMIT 4 /* so a limit is kept to a quarter */

struct patience {
    pthread_mutex_t lock;
    pthread_cond_t ending;
    pthread_t thread;
    bool has_thread, is_ending;
    uint64_t max_ns;
    patience_client head; /* of the ring */
};

/* The connection's own thread notices, and closes it. */
static void look(patience *p)
{
    uint64_t now = rt_now_ns();
    for (patience_client *c = p->head.next; c != &p->head; c = c->next) {
        if (c->since_ns == 0 || now - c->since_ns < p->max_ns)
            continue;
        shutdown(c->socket, SHUT_RDWR);
        c->since_ns = 0;
    }
}

static void *run(void *arg)
{
    patience *p = arg;
    uint64_t pause_ns = p->max_ns / LOOKS_PER_LIMIT + 1;
    pthread_mutex_lock(&p->lock);
    while (!p->is_ending) {
        uint64_t until = rt_now_ns() + pause_ns;
        struct timespec when = { .tv_sec = (time_t)(until / 1000000000),
                                 .tv_nsec = (long)(until % 1000000000) };
        if (pthread_cond_timedwait(&p->ending, &p->lock, &when) == ETIMEDOUT)
            look(p);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

bool patience_open(uint64_t max_ms, patience **out, rt_error *err)
{
    patience *p = calloc(1, sizeof(*p));
    pthread_condattr_t monotonic;
    if (!p)
        rt_out_of_memory(sizeof(*p));
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&p->ending, &monotonic);
    pthread_condattr_destroy(&monotonic);
    p->head.next = p->head.previous = &p->head;
    p->max_ns = max_ms * 1000000;
    errno = pthread_create(&p->thread, NULL, run, p);
    if (errno != 0) {
        rt_fail_errno(err, "a thread for slow clients");
        patience_close(p);
        return false;
    }
    p->has_thread = true;
    *out = p;
    return true;
}

void patience_close(patience *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->is_ending = true;
    pthread_cond_signal(&p->ending);
    pthread_mutex_unlock(&p->lock);
    if (p->has_thread)
        pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->ending);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

void patience_new_client(patience *p, patience_client *c, int socket)
{
    *c = (patience_client){ .socket = socket, .since_ns = rt_now_ns() };
    pthread_mutex_lock(&p->lock);
    c->next = p->head.next;
    c->previous = &p->head;
    c->next->previous = p->head.next = c;
    pthread_mutex_unlock(&p->lock);
}

static void set_since(patience *p, patience_client *c, uint64_t since_ns)
{
    pthread_mutex_lock(&p->lock);
    c->since_ns = since_ns;
    pthread_mutex_unlock(&p->lock);
}

void patience_heard(patience *p, patience_client *c)
{
    set_since(p, c, 0);
}

void patience_waits(patience *p, patience_client *c)
{
    set_since(p, c, rt_now_ns());
}

void patience_end_client(patience *p, patience_client *c)
{
    pthread_mutex_lock(&p->lock);
    c->next->previous = c->previous;
    c->previous->next = c->next;
    pthread_mutex_unlock(&p->lock);
}
