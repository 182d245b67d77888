/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_http_old.c - the HTTP transport of 2024: one stream that never ends, and an address to post
 * to.
 *
 * The server names the address as the first event of the stream; all its messages come on the
 * stream too, in any order. It is out of use, and many servers have nothing else. Where it tells us
 * to post must be where it is itself: the address is a claim, and our credentials go with every
 * message.
 */
#include "tools/mcp_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { OPEN_MS = 5000 };

typedef struct old_link {
    mcp_link link;
    mcp_inbox inbox;
    mcp_fetcher *fetcher;
    int shut_fd, ready_fd;
    pthread_t listener;
    mcp_sse sse;    /* the listener's */
    rt_arena arena; /* of the address */
    _Atomic(const char *) address;
} old_link;

/* -- The stream -------------------------------------------------------------------------------- */

static bool take_address(old_link *o, rt_str said)
{
    const char *address =
        mcp_url_join(o->link.config->url, rt_arena_copy(&o->arena, said), &o->arena);
    if (!address || !mcp_same_origin(address, o->link.config->url))
        return mcp_inbox_die(&o->inbox, RT_DENIED, "it wants our messages sent to somebody else");
    o->address = address;
    mcp_wake(o->ready_fd);
    return true;
}

static bool on_event(void *ctx, const char *event, rt_buf *data)
{
    old_link *o = ctx;
    if (strcmp(event, "endpoint") == 0)
        return o->address ? true : take_address(o, rt_str_trim(rt_buf_str(data)));
    return mcp_inbox_hear(&o->inbox, rt_buf_str(data), data);
}

static bool on_bytes(void *ctx, const mcp_fetch *f, rt_str bytes)
{
    old_link *o = ctx;
    if (f->status != 200 || strncasecmp(f->content_type, "text/event-stream", 17) != 0)
        return mcp_inbox_die(&o->inbox, RT_NOT_FOUND, "there is no stream of events at its url");
    return mcp_sse_feed(&o->sse, bytes);
}

static mcp_fetch_end exchange(old_link *o, mcp_fetch *f, const char *accept)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    mcp_lines lines = { .count = 0 };
    mcp_lines_add(&lines, accept);
    if (f->body.len)
        mcp_lines_add(&lines, "Content-Type: application/json");
    mcp_lines_add_configured(&lines, o->link.config, &arena);
    f->headers = lines.items;
    f->header_count = lines.count;
    return mcp_fetch_run(o->fetcher, f);
}

static void *listener_run(void *arg)
{
    old_link *o = arg;
    uint64_t never = UINT64_MAX;
    mcp_fetch f = { .verb = "GET",
                    .url = o->link.config->url,
                    .deadline_ns = &never,
                    .cancel_fd = -1,
                    .on_bytes = on_bytes,
                    .ctx = o };
    rt_error err = { 0 };
    mcp_fetch_end end = exchange(o, &f, "Accept: text/event-stream");
    if (o->sse.is_over_limit)
        mcp_inbox_die(&o->inbox, RT_LIMIT, "it sent a message of more than 64 MiB");
    else if (end == MCP_FETCH_DONE)
        mcp_inbox_die(&o->inbox, RT_UNAVAILABLE, "it closed its stream");
    else if (!mcp_fetch_failed(end, &f, &err))
        mcp_inbox_die(&o->inbox, err.code, err.text);
    mcp_wake(o->ready_fd);
    o->link.ears.lost(o->link.ears.ctx);
    return NULL;
}

/* -- Asking ------------------------------------------------------------------------------------ */

static bool ignore_bytes(void *ctx, const mcp_fetch *f, rt_str bytes)
{
    (void)ctx, (void)f, (void)bytes;
    return true;
}

static bool old_tell(mcp_link *link, rt_str method, rt_str body, uint64_t deadline_ns,
                     rt_error *err)
{
    old_link *o = (old_link *)link;
    mcp_fetch f = { .verb = "POST",
                    .url = o->address,
                    .body = body,
                    .deadline_ns = &deadline_ns,
                    .cancel_fd = -1,
                    .on_bytes = ignore_bytes };
    (void)method;
    mcp_fetch_end end = exchange(o, &f, "Accept: application/json");
    if (end != MCP_FETCH_DONE)
        return mcp_fetch_failed(end, &f, err);
    return f.status / 100 == 2 ||
           rt_fail(err, f.status == 401 || f.status == 403 ? RT_DENIED : RT_UNAVAILABLE,
                   "it answers HTTP %ld", f.status);
}

static bool old_ask(mcp_link *link, mcp_ask *ask, mcp_reply *reply, rt_error *err)
{
    old_link *o = (old_link *)link;
    mcp_pending p;
    if (!mcp_inbox_begin(&o->inbox, &p, ask->id, reply, err))
        return false;
    ask->was_sent = true; /* as far as we know, even when it failed */
    bool is_good = old_tell(link, ask->method, ask->body, ask->deadline_ns, err) &&
                   mcp_inbox_await(&o->inbox, &p, ask, err);
    mcp_inbox_end(&o->inbox, &p);
    if (!is_good)
        mcp_reply_done(reply);
    return is_good;
}

/* -- Opening and closing ----------------------------------------------------------------------- */

static void old_settle(mcp_link *link, const rt_mcp_version *version)
{
    (void)link, (void)version;
}

static void old_listen(mcp_link *link, rt_str request)
{
    (void)link, (void)request; /* it does already */
}

static void old_shut(mcp_link *link)
{
    mcp_wake(((old_link *)link)->shut_fd);
}

static void old_close(mcp_link *link, bool is_patient)
{
    old_link *o = (old_link *)link;
    (void)is_patient;
    old_shut(link);
    pthread_join(o->listener, NULL);
    mcp_fetcher_free(o->fetcher);
    mcp_inbox_done(&o->inbox);
    mcp_sse_done(&o->sse);
    rt_arena_done(&o->arena);
    rt_closep(&o->shut_fd);
    rt_closep(&o->ready_fd);
    free(o);
}

static const mcp_link_kind old_kind = {
    .name = "sse",
    .ask = old_ask,
    .tell = old_tell,
    .settle = old_settle,
    .listen = old_listen,
    .shut = old_shut,
    .close = old_close,
};

static bool await_address(old_link *o, rt_error *err)
{
    if (mcp_wait(o->ready_fd, -1, rt_now_ns() + OPEN_MS * MCP_MS) == MCP_WOKEN_BY_TIME)
        return rt_fail(err, RT_TIMEOUT, "it did not say in time where to send messages");
    if (o->address)
        return true;
    pthread_mutex_lock(&o->inbox.lock);
    *err = o->inbox.why;
    pthread_mutex_unlock(&o->inbox.lock);
    return false;
}

bool mcp_http_old_open(const rt_mcp_config *config, const mcp_ears *ears, mcp_link **out,
                       rt_error *err)
{
    int shut_fd RT_CLEANUP(rt_closep) = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int ready_fd RT_CLEANUP(rt_closep) = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (shut_fd < 0 || ready_fd < 0)
        return rt_fail_errno(err, "a descriptor to wait on");
    old_link *o = calloc(1, sizeof(*o));
    if (!o)
        rt_out_of_memory(sizeof(*o));
    o->link = (mcp_link){ .kind = &old_kind, .config = config, .ears = *ears };
    mcp_inbox_init(&o->inbox, &o->link);
    o->sse.on_event = on_event;
    o->sse.ctx = o;
    mcp_sse_reset(&o->sse);
    o->fetcher = mcp_fetcher_new(shut_fd);
    o->shut_fd = RT_TAKE_FD(shut_fd);
    o->ready_fd = RT_TAKE_FD(ready_fd);
    int code = pthread_create(&o->listener, NULL, listener_run, o);
    if (code != 0) {
        mcp_fetcher_free(o->fetcher);
        mcp_inbox_done(&o->inbox);
        rt_closep(&o->shut_fd);
        rt_closep(&o->ready_fd);
        free(o);
        errno = code;
        return rt_fail_errno(err, "a thread for it");
    }
    if (!await_address(o, err)) {
        old_close(&o->link, false);
        return false;
    }
    *out = &o->link;
    return true;
}
