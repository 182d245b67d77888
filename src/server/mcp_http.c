/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_http.c - MCP over Streamable HTTP: POST a message, GET what belongs to no request, DELETE a
 * session.
 *
 * What is answered at once is answered as JSON. A call that may take its time works on a thread of
 * its own and writes into a stream; the connection waits for the first message in it. If that is
 * the answer it goes out as JSON with the status it deserves, else the reply becomes an event
 * stream.
 *
 * A modern client that hangs up has cancelled; a legacy one has only lost its connection, and may
 * come back for the rest with the id of the last event it saw.
 */
#include <stdlib.h>
#include <string.h>

#include "server/server_internal.h"

#define FIRST_WAIT_MS 5000 /* then the client hears that we are still there */
#define SLICE_MS      1000
#define BATCH_MAX     100
#define RETRY_MS      500

/* ---- an answer as it is ---- */

typedef struct catcher {
    http_request *request;
    http_reply *reply;
} catcher;

static void catch_answer(void *ctx, rt_str message, unsigned status)
{
    catcher *k = ctx;
    if (status == 0) /* a notification: there is no stream to send it on */
        return;
    k->reply->status = status;
    k->reply->text = rt_arena_str(&k->request->arena, message);
}

static bool answer_here(http_request *r, http_reply *reply, mcp_call *c)
{
    catcher k = { r, reply };
    c->send = catch_answer;
    c->send_ctx = &k;
    mcp_call_answer(c);
    return true;
}

static bool refuse(http_request *r, http_reply *reply, mcp_call *c, unsigned status, int code,
                   const char *why)
{
    mcp_fail(c, code, (rt_str){ 0 }, "%s", why);
    c->failure.status = status;
    return answer_here(r, reply, c);
}

static bool accept_only(http_reply *reply)
{
    reply->status = 202;
    reply->text = RT_STR("");
    return true;
}

/* ---- an answer as a stream ---- */

typedef struct hose {
    mcp_call *call; /* NULL: the stream belongs to none */
    mcp_stream *stream;
    uint64_t number; /* of the stream in its session; 0: it has none */
    size_t position;
    bool is_cancelled_by_hanging_up, is_over;
    atomic_bool is_gone;
    rt_buf text;
    size_t sent;
    uint64_t spoken_ns;
    watch *watch;
    watch_entry entry;
} hose;

static void on_gone(void *ctx)
{
    hose *p = ctx;
    atomic_store(&p->is_gone, true);
    if (p->is_cancelled_by_hanging_up)
        mcp_call_cancel(p->call);
    mcp_stream_nudge(p->stream);
}

static hose *hose_new(http_request *r, mcp_call *c, mcp_stream *stream)
{
    hose *p = calloc(1, sizeof(*p));
    if (!p)
        rt_out_of_memory(sizeof(*p));
    p->call = c ? mcp_call_keep(c) : NULL;
    p->stream = mcp_stream_keep(stream);
    p->is_cancelled_by_hanging_up = c && mcp_is_modern(c);
    p->spoken_ns = rt_now_ns();
    p->watch = r->server->watch;
    rt_buf_init(&p->text, 2 * MCP_MESSAGE_MAX);
    watch_begin(p->watch, &p->entry, server_socket(r), on_gone, p);
    return p;
}

static void hose_close(void *ctx)
{
    hose *p = ctx;
    if (!p)
        return;
    watch_end(p->watch, &p->entry);
    if (p->is_cancelled_by_hanging_up && !p->is_over)
        mcp_call_cancel(p->call);
    mcp_stream_release(p->stream);
    mcp_call_release(p->call);
    rt_buf_done(&p->text);
    free(p);
}

static void hose_closep(hose **p)
{
    hose_close(*p);
}

static void format_id(hose *p)
{
    if (p->number > 0)
        rt_buf_addf(&p->text, "id: %llu-%zu\n", (unsigned long long)p->number, p->position);
}

/* One line of data: what breaks lines in JSON is space. */
static void format_message(hose *p, rt_str message)
{
    format_id(p);
    rt_buf_add(&p->text, RT_STR("event: message\ndata: "));
    size_t from = p->text.len;
    rt_buf_add(&p->text, message);
    for (size_t i = from; i < p->text.len; i++)
        if (p->text.ptr[i] == '\n' || p->text.ptr[i] == '\r')
            p->text.ptr[i] = ' ';
    rt_buf_add(&p->text, RT_STR("\n\n"));
}

/* An id to come back with, before there is anything to say; or when we hang up ourselves. */
static void format_bookmark(hose *p)
{
    if (p->number == 0)
        return;
    format_id(p);
    rt_buf_addf(&p->text, "retry: %d\ndata: \n\n", RETRY_MS);
}

static void wait_for_text(hose *p)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str message;
    unsigned status;
    rt_buf_reset(&p->text);
    p->sent = 0;
    while (p->text.len == 0 && !p->is_over) {
        uint64_t now = rt_now_ns();
        int got = mcp_stream_next(p->stream, &p->position, now + SLICE_MS * 1000000ull, &arena,
                                  &message, &status);
        if (got > 0)
            format_message(p, message);
        else if (got < 0 || atomic_load(&p->is_gone) || mcp_stream_take_pause(p->stream))
            p->is_over = true;
        else if (now - p->spoken_ns > (MCP_KEEPALIVE_MS - SLICE_MS) * 1000000ull)
            rt_buf_add(&p->text, RT_STR(": keepalive\n\n"));
    }
    p->spoken_ns = rt_now_ns();
}

static ssize_t read_hose(void *ctx, char *out, size_t max)
{
    hose *p = ctx;
    if (p->sent == p->text.len)
        wait_for_text(p);
    if (p->text.failed)
        return -1;
    size_t n = RT_MIN(max, p->text.len - p->sent);
    if (n > 0)
        memcpy(out, p->text.ptr + p->sent, n);
    p->sent += n;
    return (ssize_t)n;
}

static void reply_stream(http_reply *reply, hose *p)
{
    if (p->text.len == 0)
        rt_buf_add(&p->text, RT_STR(": retort\n\n"));
    reply->status = 200;
    reply->content_type = "text/event-stream";
    reply->stream = (http_stream){ .read = read_hose, .close = hose_close, .ctx = p };
    http_reply_header(reply, "Cache-Control", RT_STR("no-cache, no-transform"));
    http_reply_header(reply, "X-Accel-Buffering", RT_STR("no"));
}

/* ---- long calls ---- */

static bool can_stream(const http_request *r)
{
    rt_str accept = http_header(r, "Accept");
    return accept.len == 0 || http_accepts(r, "text/event-stream") || http_accepts(r, "*/*");
}

static void end_stream(mcp_call *c, void *stream)
{
    (void)c;
    mcp_stream_end(stream);
    mcp_stream_release(stream);
}

/* From 2025-11-25 on clients know an event without data. */
static bool knows_bookmarks(const mcp_call *c)
{
    return !mcp_is_modern(c) && strcmp(c->version->name, "2025-11-25") >= 0;
}

static void begin_stream(hose *p, rt_str first)
{
    mcp_call *c = p->call;
    size_t position = p->position;
    if (c->peer && !mcp_is_modern(c))
        p->number = mcp_peer_stream_add(c->peer, p->stream);
    if (knows_bookmarks(c)) {
        p->position = 0;
        format_bookmark(p);
        p->position = position;
    }
    if (first.len > 0)
        format_message(p, first);
}

/* Waits for the first message. True: the reply is made, and the hose is not needed. */
static bool is_answered_at_once(http_request *r, http_reply *reply, hose *p, bool is_stream,
                                rt_str *first)
{
    uint64_t patience_ns = rt_now_ns() + FIRST_WAIT_MS * 1000000ull;
    while (true) {
        unsigned status;
        int got = mcp_stream_next(p->stream, &p->position, rt_now_ns() + SLICE_MS * 1000000ull,
                                  &r->arena, first, &status);
        if (got > 0 && status > 0) {
            reply->status = status;
            reply->text = *first;
            p->is_over = true;
            return true;
        }
        if (got > 0 && is_stream)
            return false;
        *first = (rt_str){ 0 };
        bool is_gone = atomic_load(&p->is_gone) && !p->is_cancelled_by_hanging_up;
        if (got < 0 || is_gone) /* cancelled: there is no answer */
            return accept_only(reply);
        if (is_stream && rt_now_ns() > patience_ns)
            return false;
    }
}

static bool answer_later(http_request *r, http_reply *reply, mcp_call *c)
{
    mcp_stream *stream = mcp_stream_new();
    bool is_stream = can_stream(r) || rt_str_eq_c(c->method, "subscriptions/listen");
    rt_str first = { 0 };
    c->send = mcp_stream_send;
    c->send_ctx = stream;
    hose *p RT_CLEANUP(hose_closep) = hose_new(r, c, stream);
    if (!mcp_call_start(c, end_stream, stream)) {
        mcp_stream_release(stream);
        p->is_over = true;
        return answer_here(r, reply, c);
    }
    if (is_answered_at_once(r, reply, p, is_stream, &first))
        return true;
    begin_stream(p, first);
    reply_stream(reply, RT_TAKE(p));
    return true;
}

/* ---- POST ---- */

static rt_str param_header(void *ctx, const char *name)
{
    return http_header(ctx, name);
}

static bool answer_request(http_request *r, http_reply *reply, mcp_call *c, rt_json message)
{
    mcp_headers headers = { .version = http_header(r, "MCP-Protocol-Version"),
                            .method = http_header(r, "Mcp-Method"),
                            .name = http_header(r, "Mcp-Name"),
                            .param = param_header,
                            .ctx = r };
    bool ok = mcp_call_open(c, message, &headers);
    return ok && mcp_call_is_long(c) ? answer_later(r, reply, c) : answer_here(r, reply, c);
}

/* A session is born with `initialize`, whatever session the client had before. */
static bool introduce(http_request *r, http_reply *reply, mcp_call *c, rt_json message)
{
    mcp_peer_release(c->peer);
    c->peer = mcp_peer_new(r->server->mcp, &r->caller, NULL, NULL);
    answer_request(r, reply, c, message);
    if (c->failure.code == 0)
        http_reply_header(reply, "Mcp-Session-Id", rt_arena_str(&r->arena, mcp_peer_id(c->peer)));
    else
        mcp_peer_close(c->peer);
    return true;
}

static bool is_initialize(rt_json message)
{
    return rt_str_eq_c(rt_json_str(rt_json_get_c(message, "method")), "initialize");
}

static bool take_message(http_request *r, http_reply *reply, mcp_call *c, rt_json message)
{
    bool is_modern = mcp_is_modern_message(message);
    switch (mcp_kind_of(message)) {
    case MCP_REQUEST:
        return is_initialize(message) && !is_modern ? introduce(r, reply, c, message)
                                                    : answer_request(r, reply, c, message);
    case MCP_NOTIFICATION:
        mcp_notified(r->server->mcp, c->peer, message);
        return accept_only(reply);
    case MCP_RESPONSE:
        if (c->peer)
            mcp_peer_deliver(c->peer, message);
        return accept_only(reply);
    default:
        return answer_request(r, reply, c, message); /* which says what is wrong */
    }
}

static void answer_open(http_request *r, http_reply *reply, mcp_call *c, rt_json message)
{
    mcp_call_open(c, message, NULL); /* what it has against the message is the answer */
    answer_here(r, reply, c);
}

/* Of the requests in it, one after the other; 2025-03-26 alone has this. */
static bool take_batch(http_request *r, http_reply *reply, mcp_call *c, rt_json batch)
{
    rt_json_iter it = rt_json_each(batch);
    rt_json message;
    if (!c->peer || !mcp_peer_version(c->peer) || !mcp_peer_version(c->peer)->has_batches ||
        rt_json_count(batch) == 0 || rt_json_count(batch) > BATCH_MAX)
        return refuse(r, reply, c, 400, RT_MCP_INVALID_REQUEST,
                      "Invalid Request: one message a request, no batch");
    rt_buf_addc(&reply->body, '[');
    while (rt_json_next(&it, NULL, &message)) {
        mcp_call *one RT_CLEANUP(mcp_call_releasep) = mcp_call_new(c->mcp, &r->caller);
        http_reply part = { 0 };
        one->peer = mcp_peer_keep(c->peer);
        one->agents = rt_arena_str(&one->arena, c->agents);
        if (is_initialize(message) || mcp_is_modern_message(message))
            refuse(r, &part, one, 400, RT_MCP_INVALID_REQUEST, "Invalid Request: not in a batch");
        else if (mcp_kind_of(message) == MCP_REQUEST)
            answer_open(r, &part, one, message);
        else
            take_message(r, &part, one, message);
        if (part.text.len > 0)
            rt_buf_addf(&reply->body, "%s%.*s", reply->body.len > 1 ? "," : "", RT_FMT(part.text));
    }
    rt_buf_addc(&reply->body, ']');
    if (reply->body.len > 2)
        return true;
    rt_buf_reset(&reply->body);
    return accept_only(reply);
}

/* The session a legacy message names. False: there is no such session (of this caller). */
static bool find_peer(http_request *r, mcp_call *c, rt_json message)
{
    rt_str id = http_header(r, "Mcp-Session-Id");
    if (!id.ptr || mcp_is_modern_message(message))
        return true;
    c->peer = mcp_peer_find(r->server->mcp, id, &r->caller);
    return c->peer != NULL || is_initialize(message);
}

static bool post(http_request *r, http_reply *reply, rt_error *err)
{
    mcp_call *c RT_CLEANUP(mcp_call_releasep) = mcp_call_new(r->server->mcp, &r->caller);
    rt_error why = { 0 };
    rt_json message;
    (void)err;
    c->trace = r->trace;
    c->agents = rt_arena_str(&c->arena, http_param(r, "server"));
    if (c->agents.len > 0 && !mcp_agents_check(c, &why))
        return refuse(r, reply, c, 404, RT_MCP_INVALID_REQUEST,
                      "there is no such server of agents");
    if (!rt_json_parse(r->body, &c->arena, &message, &why))
        return refuse(r, reply, c, 400, RT_MCP_PARSE_ERROR,
                      rt_arena_printf(&r->arena, "Parse error: %s", why.text).ptr);
    if (!find_peer(r, c, message))
        return refuse(r, reply, c, 404, RT_MCP_INVALID_REQUEST,
                      "Session not found: begin again with initialize");
    if (rt_json_type(message) == RT_JSON_ARRAY)
        return take_batch(r, reply, c, message);
    return take_message(r, reply, c, message);
}

/* ---- GET and DELETE ---- */

/* "3-17": after the 17th message of the session's third stream. */
static bool split_event_id(rt_str id, uint64_t *number, uint64_t *position)
{
    rt_str piece;
    return rt_str_cut(&id, '-', &piece) && rt_str_to_u64(piece, number) &&
           rt_str_to_u64(id, position);
}

static mcp_stream *stream_of(http_request *r, mcp_peer *peer, hose *place)
{
    rt_str last = http_header(r, "Last-Event-ID");
    uint64_t number = 0, position = 0;
    if (last.len == 0)
        return mcp_peer_background(peer);
    if (!split_event_id(last, &number, &position))
        return NULL;
    place->number = number;
    place->position = (size_t)position;
    return mcp_peer_stream_find(peer, number);
}

static bool get(http_request *r, http_reply *reply, rt_error *err)
{
    rt_str id = http_header(r, "Mcp-Session-Id");
    hose place = { 0 };
    if (id.len == 0 || !http_accepts(r, "text/event-stream")) {
        http_reply_header(reply, "Allow", RT_STR("POST, DELETE"));
        return http_fail(reply, 405, err, "without a session there is nothing to listen to: POST");
    }
    mcp_peer *peer RT_CLEANUP(mcp_peer_releasep) = mcp_peer_find(r->server->mcp, id, &r->caller);
    if (!peer)
        return rt_fail(err, RT_NOT_FOUND, "there is no such session");
    mcp_stream *stream = stream_of(r, peer, &place);
    if (!stream)
        return rt_fail(err, RT_NOT_FOUND, "nothing is kept under this Last-Event-ID");
    hose *p = hose_new(r, NULL, stream);
    mcp_stream_release(stream);
    p->number = place.number;
    p->position = place.position;
    reply_stream(reply, p);
    return true;
}

static bool delete_session(http_request *r, http_reply *reply, rt_error *err)
{
    rt_str id = http_header(r, "Mcp-Session-Id");
    if (id.len == 0)
        return rt_fail(err, RT_INVALID, "the header Mcp-Session-Id says which session is to end");
    mcp_peer *peer RT_CLEANUP(mcp_peer_releasep) = mcp_peer_find(r->server->mcp, id, &r->caller);
    if (!peer)
        return rt_fail(err, RT_NOT_FOUND, "there is no such session");
    mcp_peer_close(peer);
    reply->status = 204;
    return true;
}

#define SESSION_HEADER                                                                             \
    {                                                                                              \
        "Mcp-Session-Id", HTTP_IN_HEADER, HTTP_TYPE_TEXT,                                          \
            "of a client that began with initialize", NULL, NULL, 0, 200                           \
    }

const http_operation api_mcp_rows[] = {
    { .method = "POST",
      .path = "/mcp",
      .id = "mcp",
      .tag = "MCP",
      .summary = "A message of the Model Context Protocol",
      .about = "Streamable HTTP of the protocol's revisions 2024-11-05 to 2026-07-28: one JSON-RPC "
               "message. docs/mcp.md has the tools, and how to set up clients.",
      .role = RT_ROLE_VIEWER,
      .action = "use MCP",
      .parameters = HTTP_PARAMETERS(SESSION_HEADER,
                                    { "MCP-Protocol-Version", HTTP_IN_HEADER, HTTP_TYPE_TEXT,
                                      "the revision that is spoken", NULL, NULL, 0, 200 },
                                    { "Mcp-Method", HTTP_IN_HEADER, HTTP_TYPE_TEXT,
                                      "the body's method, from 2026-07-28 on", NULL, NULL, 0, 200 },
                                    { "Mcp-Name", HTTP_IN_HEADER, HTTP_TYPE_TEXT,
                                      "the name or the address in the body, from 2026-07-28 on",
                                      NULL, NULL, 0, 8000 }),
      .request = HTTP_ANY,
      .responses =
          HTTP_RESPONSES({ 200, HTTP_ANY, "A JSON-RPC response" },
                         { 200, HTTP_EVENTS, "Notifications, then the response" },
                         { 202, NULL, "It was no request, and is taken" },
                         { 400, HTTP_ANY, "A JSON-RPC error: no message, or broken" },
                         { 404, HTTP_ANY, "A JSON-RPC error: no such method, or session" }),
      .handler = post },
    { .method = "POST",
      .path = "/mcp/agents/{server}",
      .id = "mcpAgents",
      .tag = "MCP",
      .summary = "As POST /mcp, to code agents as a server of their own",
      .about = "The server is the name of a deployment, or an agent's id or name; its tools are "
               "those agents and nothing else.",
      .role = RT_ROLE_MEMBER,
      .action = "use MCP",
      .parameters = HTTP_PARAMETERS(SESSION_HEADER),
      .request = HTTP_ANY,
      .responses =
          HTTP_RESPONSES({ 200, HTTP_ANY, "A JSON-RPC response" },
                         { 200, HTTP_EVENTS, "Notifications, then the response" },
                         { 202, NULL, "It was no request, and is taken" },
                         { 400, HTTP_ANY, "A JSON-RPC error: no message, or broken" },
                         { 404, HTTP_ANY, "A JSON-RPC error: no such server, method or session" }),
      .handler = post },
    { .method = "GET",
      .path = "/mcp/agents/{server}",
      .id = "mcpAgentsListen",
      .tag = "MCP",
      .summary = "What such a session has to say beside its answers",
      .role = RT_ROLE_MEMBER,
      .action = "use MCP",
      .parameters = HTTP_PARAMETERS(SESSION_HEADER),
      .responses = HTTP_RESPONSES({ 200, HTTP_EVENTS, "Notifications and requests" },
                                  { 405, "Error", "Without a session: there is nothing to hear" }),
      .errors = "404",
      .handler = get },
    { .method = "DELETE",
      .path = "/mcp/agents/{server}",
      .id = "mcpAgentsEnd",
      .tag = "MCP",
      .summary = "End such a session",
      .role = RT_ROLE_MEMBER,
      .action = "use MCP",
      .parameters = HTTP_PARAMETERS(SESSION_HEADER),
      .responses = HTTP_RESPONSES({ 204, NULL, "It is gone" }),
      .errors = "404",
      .handler = delete_session },
    { .method = "POST",
      .path = "/message",
      .id = "mcpMessage",
      .tag = "MCP",
      .summary = "As POST /mcp, at the address older gateways had",
      .role = RT_ROLE_VIEWER,
      .action = "use MCP",
      .request = HTTP_ANY,
      .responses =
          HTTP_RESPONSES({ 200, HTTP_ANY, "A JSON-RPC response" },
                         { 200, HTTP_EVENTS, "Notifications, then the response" },
                         { 202, NULL, "It was no request, and is taken" },
                         { 400, HTTP_ANY, "A JSON-RPC error: no message, or broken" },
                         { 404, HTTP_ANY, "A JSON-RPC error: no such method, or session" }),
      .handler = post },
    { .method = "GET",
      .path = "/mcp",
      .id = "mcpListen",
      .tag = "MCP",
      .summary = "What a session has to say beside its answers",
      .role = RT_ROLE_VIEWER,
      .action = "use MCP",
      .parameters = HTTP_PARAMETERS(SESSION_HEADER,
                                    { "Last-Event-ID", HTTP_IN_HEADER, HTTP_TYPE_TEXT,
                                      "the last event of a stream that broke", NULL, NULL, 0, 64 }),
      .responses = HTTP_RESPONSES({ 200, HTTP_EVENTS, "Notifications and requests" },
                                  { 405, "Error", "Without a session: there is nothing to hear" }),
      .errors = "404",
      .handler = get },
    { .method = "DELETE",
      .path = "/mcp",
      .id = "mcpEnd",
      .tag = "MCP",
      .summary = "End a session",
      .role = RT_ROLE_VIEWER,
      .action = "use MCP",
      .parameters = HTTP_PARAMETERS(SESSION_HEADER),
      .responses = HTTP_RESPONSES({ 204, NULL, "It is gone" }),
      .errors = "404",
      .handler = delete_session },
    { 0 },
};
