/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admission.c - who may run now, and who is next.
 *
 * A run needs a slot and its memory limit's worth of memory. Who does not fit waits in a list in
 * the order of arrival; each place that comes free is offered to the waiter whose group (an API
 * key, or an organisation) has the fewest running, and among those to the one who came first. If
 * that one does not fit yet nobody is let past it, so a large run is not starved by small ones.
 *
 * The lists are short (max_queued), so they are walked. Each waiter sleeps on a condition of its
 * own: one wake-up for one place.
 */
#include "engine/engine_internal.h"

#include <time.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUP_NAME_MAX 128
#define LOOK_MS        50

typedef struct admission_group {
    struct admission_group *next;
    char name[GROUP_NAME_MAX];
    unsigned running, waiting;
} admission_group;

typedef struct waiter {
    struct waiter *next;
    admission_group *group;
    uint64_t memory_bytes;
    bool is_admitted;
    pthread_cond_t changed;
} waiter;

struct admission {
    admission_limits limits;
    pthread_mutex_t lock;
    admission_group *groups;
    waiter *first, **last;
    unsigned running, queued;
    uint64_t memory_bytes, total, rejected;
    bool is_stopped;
};

admission *engine_admission_new(const admission_limits *limits)
{
    admission *a = calloc(1, sizeof(*a));
    if (!a)
        rt_out_of_memory(sizeof(*a));
    a->limits = *limits;
    a->last = &a->first;
    pthread_mutex_init(&a->lock, NULL);
    return a;
}

void engine_admission_free(admission *a)
{
    if (!a)
        return;
    for (admission_group *g = a->groups, *next; g; g = next) {
        next = g->next;
        free(g);
    }
    pthread_mutex_destroy(&a->lock);
    free(a);
}

static admission_group *find_group(admission *a, rt_str name)
{
    char text[GROUP_NAME_MAX];
    snprintf(text, sizeof(text), "%.*s", (int)RT_MIN(name.len, sizeof(text) - 1), name.ptr);
    for (admission_group *g = a->groups; g; g = g->next)
        if (strcmp(g->name, text) == 0)
            return g;
    admission_group *g = calloc(1, sizeof(*g));
    if (!g)
        rt_out_of_memory(sizeof(*g));
    memcpy(g->name, text, sizeof(text));
    g->next = a->groups;
    a->groups = g;
    return g;
}

static void drop_group_if_idle(admission *a, admission_group *group)
{
    if (group->running > 0 || group->waiting > 0)
        return;
    for (admission_group **at = &a->groups; *at; at = &(*at)->next)
        if (*at == group) {
            *at = group->next;
            free(group);
            return;
        }
}

static bool fits(const admission *a, uint64_t memory_bytes)
{
    return a->running < a->limits.max_running &&
           memory_bytes <= a->limits.max_memory_bytes - a->memory_bytes;
}

static void grant(admission *a, admission_group *group, uint64_t memory_bytes)
{
    a->running++;
    a->total++;
    a->memory_bytes += memory_bytes;
    group->running++;
}

static void unlink_waiter(admission *a, waiter *w)
{
    for (waiter **at = &a->first; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            if (a->last == &w->next)
                a->last = at;
            break;
        }
    a->queued--;
    w->group->waiting--;
}

static waiter *next_waiter(const admission *a)
{
    waiter *best = a->first;
    for (waiter *w = a->first; w; w = w->next)
        if (w->group->running < best->group->running)
            best = w;
    return best;
}

static void admit_waiters(admission *a)
{
    waiter *w;
    while ((w = next_waiter(a)) && fits(a, w->memory_bytes)) {
        unlink_waiter(a, w);
        grant(a, w->group, w->memory_bytes);
        w->is_admitted = true;
        pthread_cond_signal(&w->changed);
    }
}

static struct timespec moment(uint64_t ns)
{
    return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000),
                              .tv_nsec = (long)(ns % 1000000000) };
}

/* A canceller has no condition of ours to signal, so it is looked at now and then. */
static bool wait_turn(admission *a, waiter *w, rt_canceller *canceller, rt_error *err)
{
    uint64_t until = rt_now_ns() + a->limits.wait_ms * 1000000;
    while (!w->is_admitted) {
        if (a->is_stopped)
            return rt_fail(err, RT_UNAVAILABLE,
                           "the server is stopping; try another node or later");
        if (canceller && rt_canceller_is_cancelled(canceller))
            return rt_fail(err, RT_CANCELLED, "cancelled while it waited for a slot");
        uint64_t now = rt_now_ns();
        if (now >= until)
            return rt_fail(err, RT_UNAVAILABLE,
                           "ACQUIRE_TIMEOUT: no slot came free within %llu ms; try again later",
                           (unsigned long long)a->limits.wait_ms);
        struct timespec wake = moment(RT_MIN(until, now + LOOK_MS * 1000000ull));
        pthread_cond_timedwait(&w->changed, &a->lock, &wake);
    }
    return true;
}

static bool refuse(admission *a, uint64_t memory_bytes, rt_error *err)
{
    if (a->is_stopped)
        return rt_fail(err, RT_UNAVAILABLE, "the server is stopping; try another node or later");
    if (memory_bytes > a->limits.max_memory_bytes)
        return rt_fail(err, RT_LIMIT,
                       "TOTAL_MEMORY: %llu MB asked; this server grants %llu MB to all runs "
                       "together",
                       (unsigned long long)(memory_bytes >> 20),
                       (unsigned long long)(a->limits.max_memory_bytes >> 20));
    if (a->queued >= a->limits.max_queued)
        return rt_fail(err, RT_UNAVAILABLE,
                       "CONCURRENT_EXECUTIONS: %u run and %u wait already; try again later",
                       a->running, a->queued);
    return true;
}

bool engine_admission_enter(admission *a, rt_str group_name, uint64_t memory_bytes,
                            rt_canceller *canceller, admission_place *out, uint64_t *waited_us,
                            rt_error *err)
{
    uint64_t began = rt_now_ns();
    pthread_mutex_lock(&a->lock);
    admission_group *group = find_group(a, group_name);
    bool can_now = !a->is_stopped && !a->first && fits(a, memory_bytes);
    bool ok = can_now || refuse(a, memory_bytes, err);
    if (can_now) {
        grant(a, group, memory_bytes);
    } else if (ok) {
        waiter w = { .group = group, .memory_bytes = memory_bytes };
        pthread_condattr_t attr;
        pthread_condattr_init(&attr);
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        pthread_cond_init(&w.changed, &attr);
        pthread_condattr_destroy(&attr);
        *a->last = &w;
        a->last = &w.next;
        a->queued++;
        group->waiting++;
        admit_waiters(a);
        ok = wait_turn(a, &w, canceller, err);
        if (!w.is_admitted) {
            unlink_waiter(a, &w);
            admit_waiters(a); /* it may have stood in the way of others */
        }
        pthread_cond_destroy(&w.changed);
    }
    if (ok)
        *out = (admission_place){ a, memory_bytes, group, true };
    else {
        a->rejected++;
        drop_group_if_idle(a, group);
    }
    pthread_mutex_unlock(&a->lock);
    *waited_us = (rt_now_ns() - began) / 1000;
    return ok;
}

void engine_admission_leave(admission_place *place)
{
    admission *a = place->from;
    if (!place->is_held)
        return;
    pthread_mutex_lock(&a->lock);
    a->memory_bytes -= place->memory_bytes;
    a->running--;
    place->group->running--;
    drop_group_if_idle(a, place->group);
    admit_waiters(a);
    pthread_mutex_unlock(&a->lock);
    *place = (admission_place){ 0 };
}

void engine_admission_nudge(admission *a)
{
    pthread_mutex_lock(&a->lock);
    for (waiter *w = a->first; w; w = w->next)
        pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&a->lock);
}

void engine_admission_stop(admission *a)
{
    pthread_mutex_lock(&a->lock);
    a->is_stopped = true;
    pthread_mutex_unlock(&a->lock);
    engine_admission_nudge(a);
}

admission_counts engine_admission_counts(admission *a)
{
    pthread_mutex_lock(&a->lock);
    admission_counts counts = { a->running, a->queued, a->memory_bytes, a->total, a->rejected };
    pthread_mutex_unlock(&a->lock);
    return counts;
}
