/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_http.c - messages to and from an HTTP endpoint (Streamable HTTP, both eras).
 *
 * Every request is an exchange of its own, in the thread of its caller; its answer is a JSON body,
 * or comes at the end of a stream of events. What a server says unasked comes on a stream that a
 * thread (the listener) keeps open, if the server has one.
 *
 * The eras differ in what a lost stream means. In the legacy one the request goes on, and the
 * stream is taken up again where it was lost (Last-Event-ID); in the modern one the request is lost
 * too, and closing the stream is how we call it off.
 */
#include "tools/mcp_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    REDIRECTS_MAX = 3,
    AUTHS_MAX = 3,
    RESUMES_MAX = 1000,
    RETRY_DEFAULT_MS = 1000,
    RETRY_MAX_MS = 60000,
    GOODBYE_MS = 2000,
    TELL_MS = 10000,
    LISTEN_MS = 500,
};

typedef struct http_link {
    mcp_link link;
    mcp_fetcher *fetcher;
    mcp_oauth *oauth;      /* the client's; NULL: none */
    int shut_fd, heard_fd; /* the listener's stream is open, or will not be */
    _Atomic(const rt_mcp_version *) version;

    pthread_mutex_t lock; /* for what follows */
    char session_id[256];
    const char *url; /* where it was redirected to, or as configured */
    rt_arena arena;  /* of the url */
    rt_buf listen;   /* the listener's request, empty: it only listens */
    pthread_t listener;
    bool has_listener;
} http_link;

/* One stream of messages, whichever way it comes. */
typedef struct stream {
    http_link *http;
    mcp_ask *ask;     /* NULL: nothing in particular */
    mcp_reply *reply; /* its answer */
    bool is_answered, is_started, is_events, is_flood;
    bool is_again; /* the listener's: it was lost before */
    rt_buf body;
    mcp_sse sse;
    mcp_flood flood;
} stream;

static bool is_modern(const http_link *h)
{
    const rt_mcp_version *version = h->version;
    return version && version->era == RT_MCP_MODERN;
}

/* -- Messages that arrive ---------------------------------------------------------------------- */

static bool http_tell(mcp_link *link, rt_str method, rt_str body, uint64_t deadline_ns,
                      rt_error *err);

static void answer_request(http_link *h, const rt_mcp_message *m)
{
    rt_buf answer RT_CLEANUP(rt_buf_done) = { .max = MCP_MESSAGE_MAX };
    if (h->link.ears.answer(h->link.ears.ctx, m, true, &answer))
        http_tell(&h->link, RT_STR(""), rt_buf_str(&answer), rt_now_ns() + TELL_MS * MCP_MS,
                  &(rt_error){ 0 });
}

static void hear_notification(stream *s, const rt_mcp_message *m)
{
    mcp_progress progress;
    if (!mcp_progress_read(m, &progress)) {
        s->http->link.ears.news(s->http->link.ears.ctx, m);
    } else if (s->ask && progress.token == s->ask->id) {
        mcp_ask_extend(s->ask);
        if (s->ask->on_progress)
            s->ask->on_progress(s->ask->progress_ctx, progress.done, progress.total,
                                rt_str_of(progress.message));
    }
}

static bool is_ours(const stream *s, const rt_mcp_message *m)
{
    return s->ask && !s->is_answered &&
           (rt_mcp_id_is(m->id, s->ask->id) || (m->kind == RT_MCP_ERROR && m->id.len == 0));
}

/* `whole` holds the message and nothing else, and may be taken; NULL: copy it. */
static void take_answer(stream *s, const rt_mcp_message *m, rt_str text, rt_buf *whole)
{
    s->is_answered = true;
    if (whole) {
        s->reply->text = *whole;
        *whole = (rt_buf){ .max = whole->max };
        s->reply->message = *m;
        return;
    }
    s->reply->text = (rt_buf){ .max = MCP_MESSAGE_MAX };
    rt_buf_add(&s->reply->text, text);
    rt_mcp_message_scan(rt_buf_str(&s->reply->text), &s->reply->message, NULL);
}

/* False: there is no more to be heard. */
static bool hear_message(stream *s, rt_str text, rt_buf *whole)
{
    rt_mcp_message m;
    size_t size = text.len;
    if (!rt_mcp_message_scan(text, &m, NULL)) {
        s->http->link.broken_count++;
    } else if (m.kind == RT_MCP_REQUEST) {
        answer_request(s->http, &m);
    } else if (m.kind == RT_MCP_NOTIFICATION) {
        hear_notification(s, &m);
    } else if (is_ours(s, &m)) {
        take_answer(s, &m, text, whole);
        return false;
    }
    s->is_flood = !mcp_flood_allows(&s->flood, rt_now_ns(), size);
    return !s->is_flood;
}

static bool hear(stream *s, rt_buf *whole)
{
    rt_str item, rest = rt_str_trim(rt_buf_str(whole));
    if (rest.len == 0)
        return true;
    if (rest.ptr[0] != '[')
        return hear_message(s, rest, whole);
    while (rt_mcp_batch_next(&rest, &item))
        hear_message(s, item, NULL);
    return !s->is_answered && !s->is_flood;
}

static bool on_event(void *ctx, const char *event, rt_buf *data)
{
    (void)event;
    return hear(ctx, data);
}

static bool on_bytes(void *ctx, const mcp_fetch *f, rt_str bytes)
{
    stream *s = ctx;
    if (!s->is_started) {
        s->is_started = true;
        s->is_events =
            f->status / 100 == 2 && strncasecmp(f->content_type, "text/event-stream", 17) == 0;
    }
    if (s->is_events)
        return mcp_sse_feed(&s->sse, bytes);
    rt_buf_add(&s->body, bytes);
    return !s->body.failed;
}

static void stream_begin(stream *s)
{
    mcp_sse_reset(&s->sse);
    s->sse.on_event = on_event;
    s->sse.ctx = s;
    s->is_started = s->is_events = false;
    rt_buf_reset(&s->body);
    s->body.max = MCP_MESSAGE_MAX;
}

static void stream_done(stream *s)
{
    mcp_sse_done(&s->sse);
    rt_buf_done(&s->body);
}

/* -- Exchanges --------------------------------------------------------------------------------- */

static void add_named(mcp_lines *l, rt_arena *arena, const char *name, rt_str value)
{
    rt_buf encoded RT_CLEANUP(rt_buf_done) = { .max = 64 << 10 };
    rt_mcp_header_encode(value, &encoded);
    mcp_lines_add(l, rt_arena_printf(arena, "%s: %.*s", name, RT_FMT(rt_buf_str(&encoded))).ptr);
}

/* What is sent, whatever it is about. */
typedef struct parcel {
    const char *verb;
    rt_str method, name, body;
    const char *const *headers;
    const char *last_event_id; /* NULL: none */
    uint64_t *deadline_ns;
    int cancel_fd;
} parcel;

static void add_standard(http_link *h, const parcel *p, mcp_lines *l, rt_arena *arena)
{
    const rt_mcp_version *version = h->version;
    bool is_post = strcmp(p->verb, "POST") == 0;
    mcp_lines_add(l, is_post ? "Accept: application/json, text/event-stream"
                             : "Accept: text/event-stream");
    if (is_post)
        mcp_lines_add(l, "Content-Type: application/json");
    if (version && version->has_version_header)
        mcp_lines_add(l, rt_arena_printf(arena, "MCP-Protocol-Version: %s", version->name).ptr);
    if (is_modern(h) && p->method.len)
        add_named(l, arena, "Mcp-Method", p->method);
    if (is_modern(h) && p->name.len)
        add_named(l, arena, "Mcp-Name", p->name);
    pthread_mutex_lock(&h->lock);
    if (h->session_id[0] && version && !is_modern(h))
        mcp_lines_add(l, rt_arena_printf(arena, "Mcp-Session-Id: %s", h->session_id).ptr);
    pthread_mutex_unlock(&h->lock);
    if (p->last_event_id && p->last_event_id[0])
        mcp_lines_add(l, rt_arena_printf(arena, "Last-Event-ID: %s", p->last_event_id).ptr);
}

static mcp_fetch_end exchange_once(http_link *h, const parcel *p, mcp_fetch *f, rt_str *token,
                                   rt_arena *arena)
{
    mcp_lines l = { .count = 0 };
    add_standard(h, p, &l, arena);
    mcp_lines_add_configured(&l, h->link.config, arena);
    for (size_t i = 0; p->headers && p->headers[i]; i++)
        mcp_lines_add(&l, p->headers[i]);
    *token = h->oauth ? mcp_oauth_token(h->oauth, arena) : (rt_str){ "", 0 };
    if (token->len)
        mcp_lines_add(&l, rt_arena_printf(arena, "Authorization: Bearer %.*s", RT_FMT(*token)).ptr);
    pthread_mutex_lock(&h->lock);
    f->url = rt_arena_copy(arena, rt_str_of(h->url));
    pthread_mutex_unlock(&h->lock);
    f->verb = p->verb;
    f->body = p->body;
    f->headers = l.items;
    f->header_count = l.count;
    f->deadline_ns = p->deadline_ns;
    f->cancel_fd = p->cancel_fd;
    return mcp_fetch_run(h->fetcher, f);
}

/* Within the same origin it may send us elsewhere; beyond, its credentials are nobody's business.
 */
static bool follow(http_link *h, const mcp_fetch *f, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    char shown[MCP_SHOWN_SIZE];
    const char *to = mcp_url_join(f->url, f->location, &arena);
    if (!f->location[0] || !to || (f->status != 307 && f->status != 308) ||
        !mcp_same_origin(f->url, to))
        return rt_fail(
            err, RT_DENIED,
            "it sends us elsewhere (HTTP %ld), which is not followed; if it is right, make "
            "this its url: %s",
            f->status, mcp_show(rt_str_of(to ? to : f->location), shown));
    pthread_mutex_lock(&h->lock);
    h->url = rt_arena_copy(&h->arena, rt_str_of(to));
    pthread_mutex_unlock(&h->lock);
    return true;
}

static bool deny(const http_link *h, const mcp_fetch *f, rt_error *err)
{
    const char *help = h->oauth ? "" : "; give it an Authorization header in its configuration";
    return rt_fail(err, RT_DENIED, "it does not let us in (HTTP %ld)%s", f->status, help);
}

/* Redirects and permissions are seen to; whatever else the answer is, it is in the stream. */
static bool exchange(http_link *h, const parcel *p, stream *s, mcp_fetch *f, rt_error *err)
{
    unsigned redirects = 0, auths = 0;
    for (;;) {
        rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
        rt_str token;
        stream_begin(s);
        f->on_bytes = on_bytes;
        f->ctx = s;
        mcp_fetch_end end = exchange_once(h, p, f, &token, &arena);
        if (end != MCP_FETCH_DONE)
            return mcp_fetch_failed(end, f, err);
        if (f->status / 100 == 3) {
            if (redirects++ == REDIRECTS_MAX)
                return rt_fail(err, RT_DENIED, "it sends us in circles");
            if (!follow(h, f, err))
                return false;
        } else if (f->status == 401 || f->status == 403) {
            if (!h->oauth || auths++ == AUTHS_MAX)
                return deny(h, f, err);
            if (!mcp_oauth_react(h->oauth, h->fetcher, f->status, f->challenge, token,
                                 *p->deadline_ns, err))
                return false;
        } else {
            return true;
        }
    }
}

/* -- Asking ------------------------------------------------------------------------------------ */

static bool is_session_over(const http_link *h, const stream *s, const mcp_fetch *f)
{
    rt_mcp_message m;
    if (is_modern(h) || !h->session_id[0])
        return false;
    if (f->status == 404)
        return true;
    /* Some say it in words: "No valid session ID provided". */
    return f->status == 400 && rt_mcp_message_scan(rt_buf_str(&s->body), &m, NULL) &&
           m.kind == RT_MCP_ERROR && rt_str_find(m.error, RT_STR("ession")) >= 0;
}

static bool fail_by_status(const mcp_fetch *f, rt_error *err)
{
    static const struct {
        long from, to;
        rt_code code;
        const char *help;
    } meanings[] = {
        { 404, 404, RT_NOT_FOUND, "; is its url right?" },
        { 405, 405, RT_NOT_FOUND, "; is its url right?" },
        { 413, 413, RT_LIMIT, ": the message is too long for it" },
        { 429, 429, RT_TOO_MANY, ": it is called too often; lower its rate_limit" },
        { 400, 499, RT_INVALID, "" },
        { 500, 599, RT_UNAVAILABLE, ": it is in trouble; try again later" },
    };
    for (size_t i = 0; i < RT_COUNT(meanings); i++)
        if (f->status >= meanings[i].from && f->status <= meanings[i].to)
            return rt_fail(err, meanings[i].code, "it answers HTTP %ld%s", f->status,
                           meanings[i].help);
    return rt_fail(err, RT_INVALID, "it answers HTTP %ld and no message", f->status);
}

/* A stream of the legacy era that ended before its answer came. */
static bool resume(http_link *h, mcp_ask *ask, stream *s, rt_error *err)
{
    for (unsigned i = 0; i < RESUMES_MAX && !s->is_answered; i++) {
        uint64_t pause =
            s->sse.retry_ms ? RT_MIN(s->sse.retry_ms, (uint64_t)RETRY_MAX_MS) : RETRY_DEFAULT_MS;
        uint64_t until = rt_now_ns() + pause * MCP_MS;
        mcp_woken woken = mcp_wait(h->shut_fd, ask->cancel_fd, RT_MIN(until, ask->deadline_ns));
        if (woken == MCP_WOKEN_BY_FIRST)
            return mcp_fetch_failed(MCP_FETCH_SHUT, NULL, err);
        if (woken == MCP_WOKEN_BY_SECOND)
            return mcp_fetch_failed(MCP_FETCH_CANCELLED, NULL, err);
        if (rt_now_ns() >= ask->deadline_ns)
            return mcp_fetch_failed(MCP_FETCH_TIMEOUT, NULL, err);
        char last_id[sizeof(s->sse.id)];
        memcpy(last_id, s->sse.id, sizeof(last_id));
        mcp_fetch f = { 0 };
        parcel p = { .verb = "GET",
                     .last_event_id = last_id,
                     .deadline_ns = &ask->deadline_ns,
                     .cancel_fd = ask->cancel_fd };
        rt_error failure = { 0 };
        if (!exchange(h, &p, s, &f, &failure) && failure.code != RT_UNAVAILABLE) {
            *err = failure;
            return false;
        }
        if (failure.code == RT_OK && f.status / 100 == 4)
            return rt_fail(err, RT_UNAVAILABLE, "it lost our call, and does not let us take it up");
    }
    return s->is_answered ||
           rt_fail(err, RT_UNAVAILABLE, "it closed the stream again and again without an answer");
}

static void call_off(http_link *h, const mcp_ask *ask)
{
    rt_buf body RT_CLEANUP(rt_buf_done) = { 0 };
    if (ask->is_not_cancellable || is_modern(h) || !h->version)
        return; /* in the modern era, the closed stream says it */
    mcp_put_cancelled(&body, ask->id);
    http_tell(&h->link, RT_STR("notifications/cancelled"), rt_buf_str(&body),
              rt_now_ns() + GOODBYE_MS * MCP_MS, &(rt_error){ 0 });
}

static void keep_session(http_link *h, const mcp_ask *ask, const mcp_fetch *f)
{
    if (!rt_str_eq_c(ask->method, "initialize") || f->status / 100 != 2)
        return;
    for (const char *c = f->session_id; *c; c++)
        if (*c <= ' ' || *c > '~')
            return;
    pthread_mutex_lock(&h->lock);
    memcpy(h->session_id, f->session_id, sizeof(h->session_id));
    pthread_mutex_unlock(&h->lock);
}

static bool read_answer(http_link *h, mcp_ask *ask, stream *s, const mcp_fetch *f, rt_error *err)
{
    if (is_session_over(h, s, f)) {
        ask->is_expired = true;
        return rt_fail(err, RT_UNAVAILABLE, "it has forgotten our session");
    }
    if (s->is_flood || s->sse.is_over_limit || s->body.failed)
        return rt_fail(err, RT_LIMIT,
                       s->is_flood ? "it floods us with what nobody asked for"
                                   : "its answer is longer than 64 MiB");
    if (!s->is_events && s->body.len)
        hear(s, &s->body);
    if (s->is_answered)
        return true;
    if (s->is_events && !is_modern(h) && (s->sse.id[0] || s->sse.retry_ms))
        return resume(h, ask, s, err);
    if (s->is_events)
        return rt_fail(err, RT_UNAVAILABLE, "it closed the stream before it answered");
    return fail_by_status(f, err);
}

static bool http_ask(mcp_link *link, mcp_ask *ask, mcp_reply *reply, rt_error *err)
{
    http_link *h = (http_link *)link;
    stream s RT_CLEANUP(stream_done) = { .http = h, .ask = ask, .reply = reply };
    mcp_fetch f = { 0 };
    parcel p = { .verb = "POST",
                 .method = ask->method,
                 .name = ask->name,
                 .body = ask->body,
                 .headers = ask->headers,
                 .deadline_ns = &ask->deadline_ns,
                 .cancel_fd = ask->cancel_fd };
    bool is_good = exchange(h, &p, &s, &f, err);
    keep_session(h, ask, &f);
    is_good = is_good && read_answer(h, ask, &s, &f, err);
    reply->http_status = (int)f.status;
    ask->was_sent = f.was_connected && !ask->is_expired;
    if (!is_good && (err->code == RT_CANCELLED || err->code == RT_TIMEOUT) && ask->was_sent)
        call_off(h, ask);
    return is_good;
}

static bool http_tell(mcp_link *link, rt_str method, rt_str body, uint64_t deadline_ns,
                      rt_error *err)
{
    http_link *h = (http_link *)link;
    stream s RT_CLEANUP(stream_done) = { .http = h };
    mcp_fetch f = { 0 };
    parcel p = {
        .verb = "POST", .method = method, .body = body, .deadline_ns = &deadline_ns, .cancel_fd = -1
    };
    return exchange(h, &p, &s, &f, err) && (f.status / 100 == 2 || fail_by_status(&f, err));
}

/* No connection, no permission, a server in trouble: none of these is an answer. */
static bool http_is_outage(int status)
{
    return status == 0 || status == 401 || status == 403 || status == 429 || status / 100 == 3 ||
           status >= 500;
}

/* -- Listening --------------------------------------------------------------------------------- */

/* A modern server does not repeat what it said while nobody listened. */
static void on_answer(void *ctx)
{
    static const rt_mcp_message changed = { .kind = RT_MCP_NOTIFICATION,
                                            .method = { "notifications/tools/list_changed", 32 } };
    stream *s = ctx;
    if (s->is_again && is_modern(s->http))
        s->http->link.ears.news(s->http->link.ears.ctx, &changed);
    s->is_again = true;
    mcp_wake(s->http->heard_fd);
}

/* False: there is no such stream, or none any more. */
static bool listen_once(http_link *h, stream *s)
{
    uint64_t never = UINT64_MAX;
    mcp_fetch f = { .on_answer = on_answer };
    char last_id[sizeof(s->sse.id)];
    memcpy(last_id, s->sse.id, sizeof(last_id));
    parcel p = { .verb = h->listen.len ? "POST" : "GET",
                 .method = RT_STR("subscriptions/listen"),
                 .body = rt_buf_str(&h->listen),
                 .deadline_ns = &never,
                 .cancel_fd = -1,
                 .last_event_id = h->listen.len ? NULL : last_id };
    rt_error err = { 0 };
    if (!exchange(h, &p, s, &f, &err))
        return err.code == RT_UNAVAILABLE;
    return !s->is_flood && !s->sse.is_over_limit && (s->is_events || f.status >= 500);
}

static void *listener_run(void *arg)
{
    http_link *h = arg;
    stream s RT_CLEANUP(stream_done) = { .http = h };
    uint64_t pause_ms = RETRY_DEFAULT_MS;
    for (;;) {
        uint64_t start = rt_now_ns();
        bool goes_on = listen_once(h, &s);
        mcp_wake(h->heard_fd);
        if (!goes_on)
            return NULL;
        bool was_long = rt_now_ns() - start > RETRY_MAX_MS * MCP_MS;
        pause_ms = was_long ? RETRY_DEFAULT_MS : RT_MIN(pause_ms * 2, (uint64_t)RETRY_MAX_MS);
        uint64_t wanted_ms = s.sse.retry_ms ? s.sse.retry_ms : pause_ms;
        uint64_t until = rt_now_ns() + RT_MIN(wanted_ms, (uint64_t)RETRY_MAX_MS) * MCP_MS;
        if (mcp_wait(h->shut_fd, -1, until) == MCP_WOKEN_BY_FIRST)
            return NULL;
    }
}

static void http_listen(mcp_link *link, rt_str request)
{
    http_link *h = (http_link *)link;
    rt_buf_add(&h->listen, request);
    h->has_listener = pthread_create(&h->listener, NULL, listener_run, h) == 0;
    /* What a server says before the stream is there, it says in vain. */
    if (h->has_listener)
        mcp_wait(h->heard_fd, h->shut_fd, rt_now_ns() + LISTEN_MS * MCP_MS);
}

/* -- Opening and closing ----------------------------------------------------------------------- */

static void http_settle(mcp_link *link, const rt_mcp_version *version)
{
    ((http_link *)link)->version = version;
}

static void http_shut(mcp_link *link)
{
    http_link *h = (http_link *)link;
    link->is_dead = true;
    mcp_wake(h->shut_fd);
}

/* The session is ended if that is quick; the server will forget it otherwise. */
static void say_goodbye(http_link *h)
{
    uint64_t deadline = rt_now_ns() + GOODBYE_MS * MCP_MS;
    stream s RT_CLEANUP(stream_done) = { .http = h };
    mcp_fetch f = { 0 };
    parcel p = { .verb = "DELETE", .deadline_ns = &deadline, .cancel_fd = -1 };
    mcp_calm(h->shut_fd);
    exchange(h, &p, &s, &f, &(rt_error){ 0 });
}

static void http_close(mcp_link *link, bool is_patient)
{
    http_link *h = (http_link *)link;
    http_shut(link);
    if (h->has_listener)
        pthread_join(h->listener, NULL);
    if (is_patient && h->session_id[0] && !is_modern(h))
        say_goodbye(h);
    mcp_fetcher_free(h->fetcher);
    rt_buf_done(&h->listen);
    rt_arena_done(&h->arena);
    pthread_mutex_destroy(&h->lock);
    rt_closep(&h->shut_fd);
    rt_closep(&h->heard_fd);
    free(h);
}

static const mcp_link_kind http_kind = {
    .name = "http",
    .ask = http_ask,
    .tell = http_tell,
    .settle = http_settle,
    .listen = http_listen,
    .is_outage = http_is_outage,
    .shut = http_shut,
    .close = http_close,
};

bool mcp_http_open(const rt_mcp_config *config, mcp_oauth *oauth, const mcp_ears *ears,
                   mcp_link **out, rt_error *err)
{
    int shut_fd RT_CLEANUP(rt_closep) = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int heard_fd RT_CLEANUP(rt_closep) = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (shut_fd < 0 || heard_fd < 0)
        return rt_fail_errno(err, "a descriptor to wait on");
    http_link *h = calloc(1, sizeof(*h));
    if (!h)
        rt_out_of_memory(sizeof(*h));
    h->link = (mcp_link){ .kind = &http_kind, .config = config, .ears = *ears };
    h->shut_fd = RT_TAKE_FD(shut_fd);
    h->heard_fd = RT_TAKE_FD(heard_fd);
    h->url = config->url;
    h->fetcher = mcp_fetcher_new(h->shut_fd);
    h->oauth = oauth;
    pthread_mutex_init(&h->lock, NULL);
    *out = &h->link;
    return true;
}
