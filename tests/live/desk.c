/* SPDX-License-Identifier: Apache-2.0 */
/*
 * desk.c - see desk.h. Answers that are ready stand in a list; threads add to it and ring the
 * eventfd. Of a thread's life only its delay is interesting.
 */
#include "desk.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

typedef struct note {
    uint64_t number;
    bool is_error, is_approval;
    char *text, *tool;
    uint64_t delay_ms;
    test_desk *desk;
    struct note *next;
} note;

struct test_desk {
    rt_desk face;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    note *ready, *given, *at_gate;
    uint64_t pinged; /* the number of a call to bench:ping, and one */
    unsigned gated, threads, waiting_for_people;
    bool is_closing;
};

static char *copy(rt_str s)
{
    char *text = malloc(s.len + 1);
    memcpy(text, s.ptr, s.len);
    text[s.len] = '\0';
    return text;
}

static void note_free(note *n)
{
    if (n) {
        free(n->text);
        free(n->tool);
        free(n);
    }
}

static note *note_new(test_desk *d, const rt_desk_call *call, char *text)
{
    note *n = calloc(1, sizeof(*n));
    *n = (note){ .number = call->number, .text = text, .tool = copy(call->tool), .desk = d };
    return n;
}

/* Under the lock. */
static void put(test_desk *d, note *n)
{
    note **at = &d->ready;
    while (*at)
        at = &(*at)->next;
    *at = n;
    n->next = NULL;
}

static void *come_later(void *arg)
{
    note *n = arg;
    test_desk *d = n->desk;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)(n->delay_ms % 1000) * 1000000;
    until.tv_sec += (time_t)(n->delay_ms / 1000) + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&d->lock);
    while (!d->is_closing && pthread_cond_timedwait(&d->ended, &d->lock, &until) == 0)
        ;
    d->waiting_for_people -= n->is_approval;
    d->threads--;
    put(d, n);
    (void)!write(d->face.fd, &(uint64_t){ 1 }, sizeof(uint64_t));
    pthread_cond_broadcast(&d->ended);
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

static void delay(test_desk *d, note *n, uint64_t ms)
{
    pthread_t thread;
    n->delay_ms = ms;
    if (d->face.fd < 0)
        d->face.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    d->threads++;
    pthread_create(&thread, NULL, come_later, n);
    pthread_detach(thread);
}

static void wait_at_gate(test_desk *d, note *n, uint64_t wanted)
{
    n->next = d->at_gate;
    d->at_gate = n;
    if (++d->gated < wanted)
        return;
    while ((n = d->at_gate)) {
        d->at_gate = n->next;
        put(d, n);
    }
    d->gated = 0;
}

static char *huge_text(uint64_t bytes)
{
    char *text = malloc(bytes + 1);
    memset(text, 'x', bytes);
    text[0] = text[bytes - 1] = '"';
    text[bytes] = '\0';
    return text;
}

static uint64_t number_of(rt_json arguments, const char *key)
{
    int64_t n = 0;
    rt_json_i64(rt_json_get_c(arguments, key), &n);
    return (uint64_t)n;
}

static void act(test_desk *d, const rt_desk_call *call, rt_str name, rt_json arguments)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    if (rt_str_eq_c(name, "huge")) {
        put(d, note_new(d, call, huge_text(number_of(arguments, "bytes"))));
    } else if (rt_str_eq_c(name, "slow")) {
        rt_json_print(rt_json_get_c(arguments, "value"), &text);
        delay(d, note_new(d, call, copy(rt_buf_str(&text))), number_of(arguments, "ms"));
    } else if (rt_str_eq_c(name, "approve")) {
        note *n = note_new(d, call, copy(RT_STR("\"approved\"")));
        n->is_approval = true;
        d->waiting_for_people++;
        delay(d, n, number_of(arguments, "ms"));
    } else if (rt_str_eq_c(name, "gate")) {
        wait_at_gate(d, note_new(d, call, copy(RT_STR("true"))), number_of(arguments, "n"));
    } else if (rt_str_starts(name, RT_STR("echo")) || rt_str_starts(call->tool, RT_STR("tools:")) ||
               rt_str_starts(call->tool, RT_STR("pii:"))) {
        rt_buf_addf(&text, "{\"tool\":\"%.*s\",\"arguments\":%.*s}", RT_FMT(call->tool),
                    RT_FMT(call->arguments));
        put(d, note_new(d, call, copy(rt_buf_str(&text))));
    } else if (!rt_str_eq_c(name, "never")) {
        note *n = note_new(d, call, copy(RT_STR("it is not to be")));
        n->is_error = true;
        put(d, n);
    }
}

static void take(rt_desk *self, const rt_desk_call *call)
{
    test_desk *d = (test_desk *)self;
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json arguments;
    rt_str server, name = call->tool;
    if (rt_str_eq_c(call->tool, "bench:ping")) {
        d->pinged = call->number + 1;
        return;
    }
    if (!rt_json_parse(call->arguments, &arena, &arguments, &(rt_error){ 0 }))
        abort(); /* it was promised to be JSON */
    rt_str_cut(&name, ':', &server);
    pthread_mutex_lock(&d->lock);
    act(d, call, name, arguments);
    pthread_mutex_unlock(&d->lock);
}

static bool next(rt_desk *self, rt_arena *arena, rt_desk_answer *out)
{
    test_desk *d = (test_desk *)self;
    if (d->pinged) {
        *out = (rt_desk_answer){ .number = d->pinged - 1, .value = RT_STR("null") };
        d->pinged = 0;
        return true;
    }
    pthread_mutex_lock(&d->lock);
    note *n = d->ready;
    note_free(d->given);
    d->given = n;
    if (n)
        d->ready = n->next;
    else if (self->fd >= 0)
        (void)!read(self->fd, &(uint64_t){ 0 }, sizeof(uint64_t));
    pthread_mutex_unlock(&d->lock);
    if (!n)
        return false;
    *out = (rt_desk_answer){ .number = n->number, .value = rt_str_of(n->text) };
    if (n->is_error)
        *out = (rt_desk_answer){ .number = n->number,
                                 .is_error = true,
                                 .error_text = rt_arena_printf(arena, "Tool error in '%s': %s",
                                                               n->tool, n->text),
                                 .tool = rt_str_of(n->tool),
                                 .original = rt_str_of(n->text) };
    return true;
}

static bool paused(rt_desk *self)
{
    test_desk *d = (test_desk *)self;
    pthread_mutex_lock(&d->lock);
    bool is_paused = d->waiting_for_people > 0;
    pthread_mutex_unlock(&d->lock);
    return is_paused;
}

test_desk *test_desk_new(rt_str servers)
{
    test_desk *d = calloc(1, sizeof(*d));
    d->face =
        (rt_desk){ .fd = -1, .take = take, .next = next, .paused = paused, .servers = servers };
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->ended, NULL);
    return d;
}

rt_desk *test_desk_face(test_desk *desk)
{
    return &desk->face;
}

static void free_all(note *n)
{
    while (n) {
        note *next_one = n->next;
        note_free(n);
        n = next_one;
    }
}

void test_desk_free(test_desk *d)
{
    if (!d)
        return;
    pthread_mutex_lock(&d->lock);
    d->is_closing = true;
    pthread_cond_broadcast(&d->ended);
    while (d->threads > 0)
        pthread_cond_wait(&d->ended, &d->lock);
    pthread_mutex_unlock(&d->lock);
    free_all(d->ready);
    free_all(d->at_gate);
    note_free(d->given);
    rt_closep(&d->face.fd);
    pthread_cond_destroy(&d->ended);
    pthread_mutex_destroy(&d->lock);
    free(d);
}
