/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.c - one epoll, one thread, and a list of who is being watched.
 *
 * An event carries the number of its entry, not its address: an entry that ended between the event
 * and its handling is simply not found. gone() is called under the lock, so that after watch_end()
 * nobody can be inside it.
 */
#include "server/watch.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define EVENTS_AT_ONCE 64

struct watch {
    int epoll, wake;
    pthread_t thread;
    bool has_thread, is_ending, is_all_gone;
    pthread_mutex_t lock;
    watch_entry head; /* of a ring */
    uint64_t last_number;
};

static void tell(watch *w, uint64_t number)
{
    for (watch_entry *e = w->head.next; e != &w->head; e = e->next) {
        if (e->number == number) {
            e->gone(e->ctx);
            return;
        }
    }
}

static void *run(void *arg)
{
    watch *w = arg;
    struct epoll_event events[EVENTS_AT_ONCE];
    while (true) {
        int count = epoll_wait(w->epoll, events, EVENTS_AT_ONCE, -1);
        pthread_mutex_lock(&w->lock);
        for (int i = 0; i < count; i++)
            tell(w, events[i].data.u64);
        bool is_ending = w->is_ending || (count < 0 && errno != EINTR);
        pthread_mutex_unlock(&w->lock);
        if (is_ending)
            return NULL;
    }
}

bool watch_open(watch **out, rt_error *err)
{
    watch *w = calloc(1, sizeof(*w));
    if (!w)
        rt_out_of_memory(sizeof(*w));
    pthread_mutex_init(&w->lock, NULL);
    w->head.next = w->head.previous = &w->head;
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = { .events = EPOLLIN };
    if (w->epoll < 0 || w->wake < 0 || epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->wake, &event) != 0) {
        rt_fail_errno(err, "watch connections");
        watch_close(w);
        return false;
    }
    if ((errno = pthread_create(&w->thread, NULL, run, w)) != 0) {
        rt_fail_errno(err, "watch connections");
        watch_close(w);
        return false;
    }
    w->has_thread = true;
    *out = w;
    return true;
}

void watch_close(watch *w)
{
    if (!w)
        return;
    if (w->has_thread) {
        pthread_mutex_lock(&w->lock);
        w->is_ending = true;
        pthread_mutex_unlock(&w->lock);
        rt_write_all(w->wake, (rt_str){ (const char *)&(uint64_t){ 1 }, sizeof(uint64_t) }, NULL);
        pthread_join(w->thread, NULL);
    }
    rt_closep(&w->epoll);
    rt_closep(&w->wake);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

void watch_begin(watch *w, watch_entry *entry, int socket, watch_gone_fn gone, void *ctx)
{
    struct epoll_event event = { .events = EPOLLRDHUP | EPOLLHUP | EPOLLONESHOT };
    *entry = (watch_entry){ .socket = socket, .gone = gone, .ctx = ctx, .is_watched = true };
    pthread_mutex_lock(&w->lock);
    entry->number = event.data.u64 = ++w->last_number;
    entry->next = w->head.next;
    entry->previous = &w->head;
    entry->next->previous = w->head.next = entry;
    if (w->is_all_gone)
        gone(ctx);
    pthread_mutex_unlock(&w->lock);
    /* A socket that cannot be watched is noticed when the answer is sent. */
    if (socket >= 0)
        epoll_ctl(w->epoll, EPOLL_CTL_ADD, socket, &event);
}

void watch_end(watch *w, watch_entry *entry)
{
    if (!entry->is_watched)
        return;
    pthread_mutex_lock(&w->lock);
    entry->next->previous = entry->previous;
    entry->previous->next = entry->next;
    entry->is_watched = false;
    pthread_mutex_unlock(&w->lock);
    if (entry->socket >= 0)
        epoll_ctl(w->epoll, EPOLL_CTL_DEL, entry->socket, NULL);
}

void watch_all_gone(watch *w)
{
    pthread_mutex_lock(&w->lock);
    w->is_all_gone = true;
    for (watch_entry *e = w->head.next; e != &w->head; e = e->next)
        e->gone(e->ctx);
    pthread_mutex_unlock(&w->lock);
}
