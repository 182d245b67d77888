/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - a stream that waits for a job's next event and formats it; see events.h. */
#include "server/events.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "server/server_internal.h"

#define SLICE_MS 1000 /* how long we wait before we look whether the client is still there */

typedef struct events {
    job_hold *hold;
    size_t position; /* of the job's events */
    bool is_owner, is_over;
    atomic_bool is_gone;
    rt_buf text; /* what is to be sent */
    size_t sent; /* of it */
    uint64_t spoken_ns;
    watch *watch;
    watch_entry entry;
} events;

void events_format(rt_buf *out, const char *event, rt_str json, size_t id)
{
    rt_str line;
    rt_buf_addf(out, "id: %zu\nevent: %s\n", id, event);
    while (rt_str_cut(&json, '\n', &line)) {
        rt_buf_add(out, RT_STR("data: "));
        rt_buf_add(out, line);
        rt_buf_addc(out, '\n');
    }
    rt_buf_addc(out, '\n');
}

static void on_gone(void *ctx)
{
    events *e = ctx;
    atomic_store(&e->is_gone, true);
    if (e->is_owner)
        rt_job_cancel(job_hold_job(e->hold));
}

/* Fills e->text, or sets is_over. */
static void wait_for_text(events *e)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    const char *event;
    rt_str json;
    rt_buf_reset(&e->text);
    e->sent = 0;
    while (e->text.len == 0 && !e->is_over) {
        uint64_t now = rt_now_ns();
        int got = rt_job_next(job_hold_job(e->hold), &e->position, now + SLICE_MS * 1000000ull,
                              &arena, &event, &json);
        if (got > 0)
            events_format(&e->text, event, json, e->position);
        else if (got < 0 || atomic_load(&e->is_gone))
            e->is_over = true;
        else if (now - e->spoken_ns > (EVENTS_HEARTBEAT_MS - SLICE_MS) * 1000000ull)
            rt_buf_add(&e->text, RT_STR(": still here\n\n"));
    }
    e->spoken_ns = rt_now_ns();
}

static ssize_t read_events(void *ctx, char *out, size_t max)
{
    events *e = ctx;
    if (e->sent == e->text.len)
        wait_for_text(e);
    if (e->text.failed)
        return -1;
    size_t n = RT_MIN(max, e->text.len - e->sent);
    if (n > 0)
        memcpy(out, e->text.ptr + e->sent, n);
    e->sent += n;
    return (ssize_t)n;
}

static void close_events(void *ctx)
{
    events *e = ctx;
    watch_end(e->watch, &e->entry);
    if (e->is_owner && !e->is_over)
        rt_job_cancel(job_hold_job(e->hold));
    job_hold_release(e->hold);
    rt_buf_done(&e->text);
    free(e);
}

void events_reply(http_request *r, http_reply *reply, job_hold *hold, bool is_owner)
{
    events *e = calloc(1, sizeof(*e));
    uint64_t last = 0;
    if (!e)
        rt_out_of_memory(sizeof(*e));
    rt_str_to_u64(http_header(r, "Last-Event-ID"), &last);
    e->hold = hold;
    e->position = (size_t)last;
    e->is_owner = is_owner;
    e->watch = r->server->watch;
    e->spoken_ns = rt_now_ns();
    rt_buf_add(&e->text, RT_STR(": retort\n\n")); /* so that the client knows it is heard */
    watch_begin(e->watch, &e->entry, server_socket(r), on_gone, e);
    reply->status = 200;
    reply->content_type = "text/event-stream; charset=utf-8";
    reply->stream = (http_stream){ .read = read_events, .close = close_events, .ctx = e };
    http_reply_header(reply, "X-Accel-Buffering", RT_STR("no"));
}
