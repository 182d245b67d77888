/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_stream.c - the messages of one HTTP answer, between the thread that works and the one that
 * sends.
 *
 * They are kept after they were sent, because a client may lose its connection and ask for the rest
 * (Last-Event-ID). Past MCP_STREAM_BYTES the oldest go; the answer, which comes last, never does.
 */
#include <errno.h>
#include <stdlib.h>

#include "server/mcp.h"

typedef struct entry {
    unsigned status;
    size_t len;
    char text[];
} entry;

struct mcp_stream {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned holders;
    bool is_over, is_paused;
    uint64_t nudges;
    entry **log; /* of the messages first..first+count-1 */
    size_t first, count, room, bytes;
};

mcp_stream *mcp_stream_new(void)
{
    mcp_stream *s = calloc(1, sizeof(*s));
    pthread_condattr_t monotonic;
    if (!s)
        rt_out_of_memory(sizeof(*s));
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    s->holders = 1;
    return s;
}

mcp_stream *mcp_stream_keep(mcp_stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->holders++;
    pthread_mutex_unlock(&s->lock);
    return s;
}

void mcp_stream_release(mcp_stream *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    bool is_last = --s->holders == 0;
    pthread_mutex_unlock(&s->lock);
    if (!is_last)
        return;
    for (size_t i = 0; i < s->count; i++)
        free(s->log[i]);
    free(s->log);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* Under the lock. */
static void forget_oldest(mcp_stream *s)
{
    size_t gone = 0;
    while (s->bytes > MCP_STREAM_BYTES && gone < s->count) {
        s->bytes -= s->log[gone]->len;
        free(s->log[gone++]);
    }
    if (gone == 0)
        return;
    s->first += gone;
    s->count -= gone;
    memmove(s->log, s->log + gone, s->count * sizeof(*s->log));
}

static void append(mcp_stream *s, entry *e)
{
    if (s->count == s->room) {
        s->room = s->room ? s->room * 2 : 8;
        s->log = realloc(s->log, s->room * sizeof(*s->log));
        if (!s->log)
            rt_out_of_memory(s->room * sizeof(*s->log));
    }
    s->log[s->count++] = e;
    s->bytes += e->len;
}

void mcp_stream_send(void *stream, rt_str message, unsigned status)
{
    mcp_stream *s = stream;
    entry *e = malloc(sizeof(*e) + message.len);
    if (!e)
        rt_out_of_memory(sizeof(*e) + message.len);
    *e = (entry){ .status = status, .len = message.len };
    memcpy(e->text, message.ptr, message.len);
    pthread_mutex_lock(&s->lock);
    if (s->bytes + e->len > MCP_STREAM_BYTES)
        forget_oldest(s);
    append(s, e);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

void mcp_stream_end(mcp_stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->is_over = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

void mcp_stream_nudge(mcp_stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->nudges++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

bool mcp_stream_is_over(mcp_stream *s)
{
    pthread_mutex_lock(&s->lock);
    bool is_over = s->is_over;
    pthread_mutex_unlock(&s->lock);
    return is_over;
}

void mcp_stream_pause(mcp_stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->is_paused = true;
    s->nudges++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

bool mcp_stream_take_pause(mcp_stream *s)
{
    pthread_mutex_lock(&s->lock);
    bool is_paused = s->is_paused;
    s->is_paused = false;
    pthread_mutex_unlock(&s->lock);
    return is_paused;
}

int mcp_stream_next(mcp_stream *s, size_t *position, uint64_t deadline_ns, rt_arena *arena,
                    rt_str *message, unsigned *status)
{
    struct timespec until = { .tv_sec = (time_t)(deadline_ns / 1000000000),
                              .tv_nsec = (long)(deadline_ns % 1000000000) };
    int found = 0, slept = 0;
    pthread_mutex_lock(&s->lock);
    uint64_t nudges = s->nudges;
    while (*position >= s->first + s->count && !s->is_over && s->nudges == nudges &&
           slept != ETIMEDOUT)
        slept = pthread_cond_timedwait(&s->changed, &s->lock, &until);
    *position = RT_MAX(*position, s->first);
    if (*position < s->first + s->count) {
        const entry *e = s->log[(*position)++ - s->first];
        *message = rt_arena_str(arena, (rt_str){ e->text, e->len });
        *status = e->status;
        found = 1;
    } else if (s->is_over) {
        found = -1;
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}
