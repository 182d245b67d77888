/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_stdio.c - MCP over two descriptors: one message a line, for the one client that started us.
 *
 * Lines are read on the caller's thread and answered there, but for calls that may take their time:
 * those get threads, so that they can be cancelled by a later line. Whatever comes first and
 * however broken it is, we answer and live on; only the end of input ends us.
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "server/mcp.h"

#define CHUNK_BYTES    ((size_t)64 << 10)
#define BATCH_MAX      100
#define DRAIN_MS       30000 /* what is under way may take when input has ended */
#define DRAIN_SLICE_MS 20

typedef struct line {
    mcp *mcp;
    mcp_peer *peer;
    rt_caller caller;
    int out;
    pthread_mutex_t lock; /* of out */
    rt_buf batch;         /* answers of a batch, while it is being read */
    bool is_batch;
} line;

/* Whoever is gone hears nothing; that input has ended too will be noticed. */
static void send_line(void *ctx, rt_str message, unsigned status)
{
    line *l = ctx;
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    (void)status;
    rt_buf_init(&text, 2 * MCP_MESSAGE_MAX + 1);
    rt_buf_add(&text, message);
    for (size_t i = 0; i < text.len; i++) /* between tokens of JSON a line's end is a space */
        if (text.ptr[i] == '\n' || text.ptr[i] == '\r')
            text.ptr[i] = ' ';
    rt_buf_addc(&text, '\n');
    pthread_mutex_lock(&l->lock);
    if (!text.failed)
        rt_write_all(l->out, rt_buf_str(&text), NULL);
    pthread_mutex_unlock(&l->lock);
}

static void send_part(void *ctx, rt_str message, unsigned status)
{
    line *l = ctx;
    if (status == 0)
        return;
    rt_buf_add(&l->batch, l->batch.len > 0 ? RT_STR(",") : RT_STR("["));
    rt_buf_add(&l->batch, message);
}

static void nothing_more(mcp_call *c, void *ctx)
{
    (void)c;
    (void)ctx;
}

static mcp_call *new_call(line *l)
{
    mcp_call *c = mcp_call_new(l->mcp, &l->caller);
    c->peer = mcp_peer_keep(l->peer);
    c->send = l->is_batch ? send_part : send_line;
    c->send_ctx = l;
    return c;
}

static void take_message(line *l, mcp_call *c, rt_json message)
{
    switch (mcp_kind_of(message)) {
    case MCP_NOTIFICATION:
        mcp_notified(l->mcp, l->peer, message);
        return;
    case MCP_RESPONSE:
        mcp_peer_deliver(l->peer, message);
        return;
    default:
        if (mcp_call_open(c, message, NULL) && mcp_call_is_long(c) && !l->is_batch &&
            mcp_call_start(c, nothing_more, NULL))
            return;
        mcp_call_answer(c);
    }
}

static void take_batch(line *l, mcp_call *c, rt_json batch)
{
    const rt_mcp_version *version = mcp_peer_version(l->peer);
    rt_json_iter it = rt_json_each(batch);
    rt_json message;
    if (!version || !version->has_batches || rt_json_count(batch) == 0 ||
        rt_json_count(batch) > BATCH_MAX) {
        mcp_fail(c, RT_MCP_INVALID_REQUEST, (rt_str){ 0 },
                 "Invalid Request: one message a line, no batch");
        mcp_call_answer(c);
        return;
    }
    l->is_batch = true;
    while (rt_json_next(&it, NULL, &message)) {
        mcp_call *one RT_CLEANUP(mcp_call_releasep) = new_call(l);
        take_message(l, one, message);
    }
    l->is_batch = false;
    rt_buf_addc(&l->batch, ']');
    if (l->batch.len > 1)
        send_line(l, rt_buf_str(&l->batch), 0);
    rt_buf_reset(&l->batch);
}

static void take_line(line *l, rt_str text)
{
    mcp_call *c RT_CLEANUP(mcp_call_releasep) = new_call(l);
    rt_error err = { 0 };
    rt_json message;
    if (rt_str_trim(text).len == 0)
        return;
    if (!rt_json_parse(text, &c->arena, &message, &err)) {
        mcp_fail(c, RT_MCP_PARSE_ERROR, (rt_str){ 0 }, "Parse error: %s", err.text);
        mcp_call_answer(c);
    } else if (rt_json_type(message) == RT_JSON_ARRAY) {
        take_batch(l, c, message);
    } else {
        take_message(l, c, message);
    }
}

/* ---- reading ---- */

typedef struct reader {
    rt_buf text;
    bool is_skipping; /* the rest of a line that was too long */
} reader;

static void refuse_long(line *l)
{
    mcp_call *c RT_CLEANUP(mcp_call_releasep) = new_call(l);
    mcp_fail(c, RT_MCP_INVALID_REQUEST, (rt_str){ 0 },
             "Invalid Request: a message has at most %zu bytes", MCP_MESSAGE_MAX);
    mcp_call_answer(c);
}

/* Takes the lines that are whole, and keeps the rest. `from`: where no end of line was seen yet. */
static void take_lines(line *l, reader *in, size_t from)
{
    size_t start = 0;
    char *end;
    while ((end = memchr(in->text.ptr + from, '\n', in->text.len - from))) {
        size_t at = (size_t)(end - in->text.ptr);
        if (!in->is_skipping)
            take_line(l, (rt_str){ in->text.ptr + start, at - start });
        in->is_skipping = false;
        start = from = at + 1;
    }
    in->text.len -= start;
    memmove(in->text.ptr, in->text.ptr + start, in->text.len);
    if (in->text.len <= MCP_MESSAGE_MAX)
        return;
    if (!in->is_skipping)
        refuse_long(l);
    in->is_skipping = true;
    rt_buf_reset(&in->text);
}

/* False: stop. */
static bool wait_for_input(int in, int stop)
{
    struct pollfd fds[] = { { .fd = in, .events = POLLIN }, { .fd = stop, .events = POLLIN } };
    while (poll(fds, RT_COUNT(fds), -1) < 0)
        if (errno != EINTR)
            return false;
    return fds[1].revents == 0;
}

static bool read_all(line *l, int in, int stop, rt_error *err)
{
    reader r = { 0 };
    rt_buf_init(&r.text, MCP_MESSAGE_MAX + 2 * CHUNK_BYTES);
    ssize_t got = 1;
    while (got > 0 && wait_for_input(in, stop)) {
        char *room = rt_buf_reserve(&r.text, CHUNK_BYTES);
        got = read(in, room, CHUNK_BYTES);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
            got = 1;
            continue;
        }
        size_t from = r.text.len;
        if (got > 0) {
            r.text.len += (size_t)got;
            take_lines(l, &r, from);
        }
    }
    if (got == 0 && r.text.len > 0 && !r.is_skipping)
        take_line(l, rt_buf_str(&r.text));
    rt_buf_done(&r.text);
    return got >= 0 || rt_fail_errno(err, "read the client's messages");
}

/* A client that has said all it wants may still want the answers; one that is gone does not. */
static void drain(line *l, int stop)
{
    uint64_t until_ns = rt_now_ns() + DRAIN_MS * 1000000ull;
    struct pollfd fds[] = { { .fd = l->out }, { .fd = stop, .events = POLLIN } };
    mcp_stop(l->mcp);
    while (mcp_is_busy(l->mcp) && rt_now_ns() < until_ns &&
           poll(fds, RT_COUNT(fds), DRAIN_SLICE_MS) == 0)
        ;
}

bool rt_mcp_serve(const rt_server_config *config, int in, int out, int stop, rt_error *err)
{
    line l = { .mcp = mcp_new(config),
               .caller = { .organisation_id = RT_STR(RT_LOCAL_ORGANISATION),
                           .workspace_id = RT_STR(RT_LOCAL_WORKSPACE),
                           .user_id = RT_STR(RT_LOCAL_USER),
                           .actor_type = RT_STR("user"),
                           .role = RT_ROLE_OWNER },
               .out = out };
    pthread_mutex_init(&l.lock, NULL);
    l.peer = mcp_peer_new(l.mcp, &l.caller, send_line, &l);
    bool ok = read_all(&l, in, stop, err);
    drain(&l, stop);
    mcp_peer_close(l.peer);
    mcp_peer_release(l.peer);
    mcp_free(l.mcp);
    rt_buf_done(&l.batch);
    pthread_mutex_destroy(&l.lock);
    return ok;
}
