/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_session.c - agreeing on a revision with a server, and asking it things in that revision.
 *
 * Which era a server belongs to is found out by asking it something only the modern one knows. Only
 * a proper answer is evidence for it; any other answer, silence and even death speak for the legacy
 * one, since old servers react to the unknown in all these ways. What may be a mere outage (no
 * connection, a 5xx, no permission) is evidence for nothing.
 */
#include "tools/mcp_internal.h"

#include <stdlib.h>

enum {
    PROBE_MS = 5000, /* a program may need that long to start talking */
    ROUNDS_MAX = 8,  /* of questions a server may have before it answers */
    INPUTS_MAX = 32, /* questions in one round */
};
#define VERDICT_KEPT (3600 * MCP_SECOND)

/* -- What it says unasked ---------------------------------------------------------------------- */

static void hear_news(void *ctx, const rt_mcp_message *notification)
{
    mcp_session *s = ctx;
    if (rt_str_eq_c(notification->method, "notifications/tools/list_changed"))
        mcp_client_changed(s->client);
}

static void hear_loss(void *ctx)
{
    mcp_session *s = ctx;
    mcp_client_lost(s->client, s);
}

static bool ask_answerer(const rt_mcp_answerer *who, rt_str method, rt_str params, rt_arena *arena,
                         rt_str *result, rt_error *err)
{
    rt_json parsed = { 0 };
    if (params.len && !rt_json_parse(params, arena, &parsed, err))
        return false;
    return who->answer(who->ctx, method, parsed, arena, result, err);
}

/* "roots/list" is for who has declared "roots", and so on. */
static bool can_answer(const rt_mcp_answerer *who, rt_str method)
{
    const char *slash = method.len ? memchr(method.ptr, '/', method.len) : NULL;
    return who->answer && slash &&
           rt_mcp_member(who->capabilities, (rt_str){ method.ptr, (size_t)(slash - method.ptr) })
                   .len > 0;
}

static bool answer(void *ctx, const rt_mcp_message *m, bool may_wait, rt_buf *out)
{
    mcp_session *s = ctx;
    const rt_mcp_answerer *who = &mcp_client_config(s->client)->answerer;
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str result;
    rt_error err = { 0 };
    if (rt_str_eq_c(m->method, "ping")) {
        rt_mcp_write_result(out, m->id, RT_STR("{}"));
    } else if (can_answer(who, m->method)) {
        if (!may_wait)
            return false;
        if (ask_answerer(who, m->method, m->params, &arena, &result, &err))
            rt_mcp_write_result(out, m->id, result);
        else
            rt_mcp_write_error(out, m->id, RT_MCP_INTERNAL_ERROR, rt_str_of(err.text), RT_STR(""));
    } else if (rt_str_eq_c(m->method, "roots/list")) {
        rt_mcp_write_result(out, m->id, RT_STR("{\"roots\":[]}"));
    } else {
        rt_mcp_write_error(out, m->id, RT_MCP_METHOD_NOT_FOUND,
                           RT_STR("this client has not declared that it can do this"), RT_STR(""));
    }
    return true;
}

/* -- One request ------------------------------------------------------------------------------- */

static void put_client_info(rt_json_writer *w, const char *key)
{
    rt_jw_kobject(w, key);
    rt_jw_kstr(w, "name", RT_STR("retort"));
    rt_jw_kstr(w, "title", RT_STR("Retort"));
    rt_jw_kstr(w, "version", RT_STR(RETORT_VERSION));
    rt_jw_end(w);
}

static rt_str capabilities_of(const mcp_session *s)
{
    const rt_mcp_answerer *who = &mcp_client_config(s->client)->answerer;
    return who->answer && who->capabilities.len ? who->capabilities : RT_STR("{}");
}

static void put_meta(rt_json_writer *w, const mcp_session *s, uint64_t id, const mcp_patience *p)
{
    rt_jw_kobject(w, "_meta");
    if (s->version->era == RT_MCP_MODERN) {
        rt_jw_kstr(w, RT_MCP_META_VERSION, rt_str_of(s->version->name));
        rt_jw_kraw(w, RT_MCP_META_CAPABILITIES, capabilities_of(s));
        put_client_info(w, RT_MCP_META_CLIENT);
    }
    if (p && (p->on_progress || p->idle_ns))
        rt_jw_ku64(w, "progressToken", id);
    if (p && p->traceparent.len)
        rt_jw_kstr(w, "traceparent", p->traceparent);
    rt_jw_end(w);
}

static void put_body(rt_buf *out, const mcp_session *s, uint64_t id, rt_str method, rt_str members,
                     const mcp_patience *p)
{
    rt_json_writer w;
    rt_json_begin(&w, out);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "jsonrpc", RT_STR("2.0"));
    rt_jw_ku64(&w, "id", id);
    rt_jw_kstr(&w, "method", method);
    rt_jw_kobject(&w, "params");
    if (members.len) {
        rt_buf_add(out, members);
        w.needs_comma = true;
    }
    put_meta(&w, s, id, p);
    rt_jw_end(&w);
    rt_jw_end(&w);
}

static bool send_request(mcp_session *s, const mcp_request *r, mcp_patience *p, mcp_reply *reply,
                         rt_error *err)
{
    rt_buf body RT_CLEANUP(rt_buf_done) = { .max = MCP_MESSAGE_MAX };
    uint64_t id = atomic_fetch_add(&s->next_id, 1);
    put_body(&body, s, id, r->method, r->members, p);
    if (!rt_buf_ok(&body, err))
        return rt_wrap(err, "the arguments");
    mcp_ask ask = {
        .id = id,
        .method = r->method,
        .body = rt_buf_str(&body),
        .name = r->name,
        .headers = r->headers,
        .deadline_ns = p->deadline_ns,
        .idle_ns = p->idle_ns,
        .latest_ns = p->latest_ns,
        .cancel_fd = p->cancel_fd,
        .on_progress = p->on_progress,
        .progress_ctx = p->progress_ctx,
        .is_not_cancellable =
            rt_str_eq_c(r->method, "initialize") || rt_str_eq_c(r->method, "server/discover"),
    };
    bool is_good = s->link->kind->ask(s->link, &ask, reply, err);
    p->was_sent = ask.was_sent;
    p->is_expired = ask.is_expired;
    return is_good;
}

/* -- Answers ----------------------------------------------------------------------------------- */

static rt_code code_of_rpc(int64_t code)
{
    switch (code) {
    case RT_MCP_METHOD_NOT_FOUND:
        return RT_UNSUPPORTED;
    case RT_MCP_INVALID_PARAMS:
        return RT_INVALID;
    case RT_MCP_RESOURCE_NOT_FOUND:
        return RT_NOT_FOUND;
    default:
        return RT_UNAVAILABLE;
    }
}

static bool judge_error(rt_str text, rt_arena *arena, int64_t *code, rt_json *data, rt_error *err)
{
    char shown[MCP_SHOWN_SIZE];
    rt_json error;
    if (!rt_json_parse(text, arena, &error, err))
        return rt_wrap(err, "it answers with an error that is broken");
    if (!rt_json_i64(rt_json_get_c(error, "code"), code))
        *code = RT_MCP_INTERNAL_ERROR;
    if (data)
        *data = rt_json_get_c(error, "data");
    return rt_fail(err, code_of_rpc(*code), "it answers: %s (%lld)",
                   mcp_show(rt_json_str(rt_json_get_c(error, "message")), shown), (long long)*code);
}

static bool judge(const mcp_reply *reply, rt_arena *arena, rt_json *result, int64_t *code,
                  rt_json *data, rt_error *err)
{
    if (reply->message.kind == RT_MCP_ERROR)
        return judge_error(reply->message.error, arena, code, data, err);
    if (!rt_json_parse(reply->message.result, arena, result, err))
        return rt_wrap(err, "its answer is broken");
    if (rt_json_type(*result) != RT_JSON_OBJECT)
        return rt_fail(err, RT_INVALID, "its answer is no object but %s",
                       rt_json_type_name(*result));
    return true;
}

/* -- Questions before an answer (multi round-trip requests) ------------------------------------ */

static bool answer_inputs(const mcp_session *s, rt_json inputs, rt_arena *arena, rt_json_writer *w,
                          rt_error *err)
{
    char shown[MCP_SHOWN_SIZE];
    const rt_mcp_answerer *who = &mcp_client_config(s->client)->answerer;
    rt_json_iter it = rt_json_each(inputs);
    rt_str key, result;
    rt_json input;
    if (rt_json_count(inputs) > INPUTS_MAX)
        return rt_fail(err, RT_LIMIT, "it asks more than %d questions at once", INPUTS_MAX);
    while (rt_json_next(&it, &key, &input)) {
        rt_str method = rt_json_str(rt_json_get_c(input, "method"));
        if (!can_answer(who, method))
            return rt_fail(err, RT_UNSUPPORTED, "it asks for %s, which nobody can answer here",
                           mcp_show(method, shown));
        if (!who->answer(who->ctx, method, rt_json_get_c(input, "params"), arena, &result, err))
            return rt_wrap(err, "answer its question %s", mcp_show(key, shown));
        rt_jw_key(w, key);
        rt_jw_raw(w, result);
    }
    return true;
}

/* The members of the next round: those of the first, our answers, and its state word for word. */
static bool next_round(const mcp_session *s, rt_str members, const mcp_reply *reply, rt_json result,
                       rt_arena *arena, rt_buf *out, rt_error *err)
{
    rt_json inputs = rt_json_get_c(result, "inputRequests");
    rt_str state = rt_mcp_member(reply->message.result, RT_STR("requestState"));
    if (rt_json_type(inputs) != RT_JSON_OBJECT && state.len == 0)
        return rt_fail(err, RT_INVALID, "it wants input and does not say which");
    rt_buf_reset(out);
    rt_buf_add(out, members);
    if (rt_json_type(inputs) == RT_JSON_OBJECT) {
        rt_json_writer w;
        rt_buf_add(out, out->len ? RT_STR(",\"inputResponses\":") : RT_STR("\"inputResponses\":"));
        rt_json_begin(&w, out);
        rt_jw_object(&w);
        if (!answer_inputs(s, inputs, arena, &w, err))
            return false;
        rt_jw_end(&w);
    }
    if (state.len) {
        rt_buf_add(out, out->len ? RT_STR(",\"requestState\":") : RT_STR("\"requestState\":"));
        rt_buf_add(out, state);
    }
    return rt_buf_ok(out, err);
}

static bool is_complete(const mcp_session *s, rt_json result, bool *wants_input, rt_error *err)
{
    char shown[MCP_SHOWN_SIZE];
    rt_str type = rt_json_str(rt_json_get_c(result, "resultType"));
    *wants_input = s->version->era == RT_MCP_MODERN && rt_str_eq_c(type, "input_required");
    if (s->version->era == RT_MCP_LEGACY || type.len == 0 || *wants_input ||
        rt_str_eq_c(type, "complete"))
        return true;
    return rt_fail(err, RT_UNSUPPORTED, "it answers with a result of the kind %s",
                   mcp_show(type, shown));
}

bool mcp_session_request(mcp_session *s, const mcp_request *request, mcp_patience *p,
                         mcp_reply *reply, rt_arena *arena, rt_json *result, rt_error *err)
{
    rt_buf members RT_CLEANUP(rt_buf_done) = { .max = MCP_MESSAGE_MAX };
    mcp_request round = *request;
    bool wants_input;
    p->rpc_code = 0;
    for (unsigned i = 0; i < ROUNDS_MAX; i++) {
        if (!send_request(s, &round, p, reply, err) ||
            !judge(reply, arena, result, &p->rpc_code, NULL, err) ||
            !is_complete(s, *result, &wants_input, err))
            return false;
        if (!wants_input)
            return true;
        if (!next_round(s, request->members, reply, *result, arena, &members, err))
            return false;
        round.members = rt_buf_str(&members);
        mcp_reply_done(reply);
        *reply = (mcp_reply){ 0 };
    }
    return rt_fail(err, RT_LIMIT, "it asked questions %d times and did not answer", ROUNDS_MAX);
}

/* Modern servers know no ping, but they know what they are. */
bool mcp_session_ping(mcp_session *s, mcp_patience *p, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    mcp_reply reply RT_CLEANUP(mcp_reply_done) = { 0 };
    rt_json result;
    mcp_request ping = { .method = s->version->era == RT_MCP_MODERN ? RT_STR("server/discover")
                                                                    : RT_STR("ping") };
    return mcp_session_request(s, &ping, p, &reply, &arena, &result, err) || p->rpc_code != 0;
}

/* -- The legacy beginning ---------------------------------------------------------------------- */

static void note_server(mcp_session *s, rt_json info, rt_json capabilities)
{
    rt_json tools = rt_json_get_c(capabilities, "tools");
    s->has_tools = rt_json_type(tools) == RT_JSON_OBJECT;
    s->tools_change = rt_json_bool(rt_json_get_c(tools, "listChanged"), false);
    mcp_show(rt_json_str(rt_json_get_c(info, "name")), s->server_name);
    mcp_show(rt_json_str(rt_json_get_c(info, "version")), s->server_version);
}

static rt_str initialize_members(const mcp_session *s, rt_buf *out)
{
    rt_json_writer w;
    rt_json_begin(&w, out);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "protocolVersion", rt_str_of(s->version->name));
    rt_jw_kraw(&w, "capabilities", capabilities_of(s));
    put_client_info(&w, "clientInfo");
    rt_jw_end(&w);
    return rt_str_slice(rt_buf_str(out), 1, out->len - 1);
}

static bool accept_version(mcp_session *s, rt_str name, rt_error *err)
{
    char shown[MCP_SHOWN_SIZE];
    const rt_mcp_version *version = rt_mcp_version_find(name);
    rt_str pinned = mcp_client_config(s->client)->protocol_version;
    if (!version || version->era != RT_MCP_LEGACY)
        return rt_fail(err, RT_UNSUPPORTED,
                       "it wants to speak revision %s of MCP, which is not ours",
                       mcp_show(name, shown));
    if (pinned.len && !rt_str_eq(pinned, name))
        return rt_fail(err, RT_UNSUPPORTED, "it speaks revision %s of MCP, not %.*s", version->name,
                       RT_FMT(pinned));
    s->version = version;
    return true;
}

static bool shake_hands(mcp_session *s, uint64_t deadline_ns, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_buf members RT_CLEANUP(rt_buf_done) = { 0 };
    mcp_reply reply RT_CLEANUP(mcp_reply_done) = { 0 };
    rt_str pinned = mcp_client_config(s->client)->protocol_version;
    mcp_patience p = { .deadline_ns = deadline_ns, .cancel_fd = -1 };
    rt_json result;
    s->version = pinned.len ? rt_mcp_version_find(pinned) : rt_mcp_version_newest(RT_MCP_LEGACY);
    mcp_request hello = { .method = RT_STR("initialize"),
                          .members = initialize_members(s, &members) };
    bool is_answered = mcp_session_request(s, &hello, &p, &reply, &arena, &result, err);
    s->refused_status = is_answered ? 0 : reply.http_status;
    if (!is_answered ||
        !accept_version(s, rt_json_str(rt_json_get_c(result, "protocolVersion")), err))
        return rt_wrap(err, "begin a session");
    note_server(s, rt_json_get_c(result, "serverInfo"), rt_json_get_c(result, "capabilities"));
    s->link->kind->settle(s->link, s->version);
    return s->link->kind->tell(
        s->link, RT_STR("notifications/initialized"),
        RT_STR("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"), deadline_ns, err);
}

/* -- The modern one ---------------------------------------------------------------------------- */

static const rt_mcp_version *mutual(const mcp_session *s, rt_json supported)
{
    rt_str pinned = mcp_client_config(s->client)->protocol_version;
    rt_json_iter it = rt_json_each(supported);
    const rt_mcp_version *best = NULL;
    rt_json name;
    while (rt_json_next(&it, NULL, &name)) {
        const rt_mcp_version *version = rt_mcp_version_find(rt_json_str(name));
        if (version && version->era == RT_MCP_MODERN && (!best || version < best) &&
            (pinned.len == 0 || rt_str_eq_c(pinned, version->name)))
            best = version;
    }
    return best;
}

typedef enum probe_outcome { PROBE_MODERN, PROBE_LEGACY, PROBE_AGAIN, PROBE_FAILED } probe_outcome;

static probe_outcome judge_probe(mcp_session *s, bool is_sent, const mcp_reply *reply,
                                 rt_arena *arena, rt_error *err)
{
    rt_json result, data = { 0 };
    int64_t code = 0;
    bool is_good = is_sent && judge(reply, arena, &result, &code, &data, err);
    if (is_good) {
        const rt_mcp_version *version = mutual(s, rt_json_get_c(result, "supportedVersions"));
        if (!version)
            return PROBE_LEGACY;
        s->version = version;
        note_server(s, rt_json_get_c(rt_json_get_c(result, "_meta"), RT_MCP_META_SERVER),
                    rt_json_get_c(result, "capabilities"));
        return PROBE_MODERN;
    }
    if (code == RT_MCP_UNSUPPORTED_VERSION) {
        const rt_mcp_version *version = mutual(s, rt_json_get_c(data, "supported"));
        if (version)
            s->version = version;
        return version ? PROBE_AGAIN : PROBE_LEGACY;
    }
    if (s->link->kind->is_outage && s->link->kind->is_outage(reply->http_status))
        return PROBE_FAILED;
    return PROBE_LEGACY;
}

static probe_outcome probe_once(mcp_session *s, uint64_t deadline_ns, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    mcp_reply reply RT_CLEANUP(mcp_reply_done) = { 0 };
    mcp_patience p = { .deadline_ns = deadline_ns, .cancel_fd = -1 };
    mcp_request discover = { .method = RT_STR("server/discover") };
    s->link->kind->settle(s->link, s->version);
    bool is_sent = send_request(s, &discover, &p, &reply, err);
    return judge_probe(s, is_sent, &reply, &arena, err);
}

static probe_outcome probe(mcp_session *s, uint64_t deadline_ns, rt_error *err)
{
    s->version = rt_mcp_version_newest(RT_MCP_MODERN);
    probe_outcome outcome = probe_once(s, deadline_ns, err);
    if (outcome == PROBE_AGAIN)
        outcome = probe_once(s, deadline_ns, err);
    return outcome == PROBE_AGAIN ? PROBE_FAILED : outcome;
}

/* -- Opening ----------------------------------------------------------------------------------- */

static bool open_link(mcp_session *s, rt_error *err)
{
    const rt_mcp_config *config = mcp_client_config(s->client);
    mcp_ears ears = { .news = hear_news, .answer = answer, .lost = hear_loss, .ctx = s };
    mcp_client_opening(s->client, NULL);
    if (s->link)
        s->link->kind->close(s->link, false);
    s->link = NULL;
    mcp_oauth *oauth = mcp_client_oauth(s->client);
    bool is_open = !config->url     ? mcp_stdio_open(config, &ears, &s->link, err)
                   : s->is_old_http ? mcp_http_old_open(config, &ears, &s->link, err)
                                    : mcp_http_open(config, oauth, &ears, &s->link, err);
    if (is_open && !mcp_client_opening(s->client, s->link))
        return rt_fail(err, RT_UNAVAILABLE, "it is being closed");
    return is_open;
}

/* One that takes no message at its url may have a stream there. */
static bool begin_old_http(mcp_session *s, uint64_t deadline_ns)
{
    int status = s->refused_status;
    if (s->is_old_http || (status != 400 && status != 404 && status != 405))
        return false;
    s->is_old_http = true;
    return open_link(s, &(rt_error){ 0 }) && shake_hands(s, deadline_ns, &(rt_error){ 0 });
}

static bool begin_legacy(mcp_session *s, uint64_t deadline_ns, rt_error *err)
{
    s->link->kind->settle(s->link, NULL);
    return shake_hands(s, deadline_ns, err) || begin_old_http(s, deadline_ns);
}

/* One who was slow to start has heard both questions by now, and answers the first better. */
static bool begin_unsure(mcp_session *s, uint64_t deadline_ns, rt_error *err)
{
    if (s->link->is_dead && !open_link(s, err)) /* of the probe */
        return false;
    if (begin_legacy(s, deadline_ns, err))
        return true;
    return s->link && !s->link->is_dead && !s->is_old_http && err->code != RT_TIMEOUT &&
           probe(s, deadline_ns, &(rt_error){ 0 }) == PROBE_MODERN;
}

static bool begin(mcp_session *s, uint64_t deadline_ns, rt_error *err)
{
    const rt_mcp_config *config = mcp_client_config(s->client);
    const rt_mcp_version *pinned = rt_mcp_version_find(config->protocol_version);
    mcp_verdict *verdict = mcp_client_verdict(s->client);
    uint64_t now = rt_now_ns();
    if (pinned && pinned->era == RT_MCP_MODERN) {
        probe_outcome outcome = probe(s, deadline_ns, err);
        return outcome == PROBE_MODERN ||
               (outcome == PROBE_LEGACY && err->code == RT_OK
                    ? rt_fail(err, RT_UNSUPPORTED, "it does not speak revision %s of MCP",
                              pinned->name)
                    : false);
    }
    if (pinned || config->is_sse || (verdict->is_legacy && now - verdict->at_ns < VERDICT_KEPT))
        return begin_legacy(s, deadline_ns, err);
    uint64_t probe_ns = config->url ? deadline_ns : RT_MIN(deadline_ns, now + PROBE_MS * MCP_MS);
    switch (probe(s, probe_ns, err)) {
    case PROBE_MODERN:
        return true;
    case PROBE_LEGACY:
        if (!begin_unsure(s, deadline_ns, err))
            return false;
        *verdict = (mcp_verdict){ .is_legacy = s->version->era == RT_MCP_LEGACY, .at_ns = now };
        return true;
    default:
        return false;
    }
}

static void listen_for_changes(mcp_session *s)
{
    rt_buf body RT_CLEANUP(rt_buf_done) = { 0 };
    /* A legacy server may ask us things there, too. */
    bool is_asked =
        s->version->era == RT_MCP_LEGACY && mcp_client_config(s->client)->answerer.answer;
    if (!s->tools_change && !is_asked)
        return;
    if (s->version->era == RT_MCP_MODERN)
        put_body(&body, s, atomic_fetch_add(&s->next_id, 1), RT_STR("subscriptions/listen"),
                 RT_STR("\"notifications\":{\"toolsListChanged\":true}"), NULL);
    s->link->kind->listen(s->link, rt_buf_str(&body));
}

bool mcp_session_open(mcp_client *client, uint64_t deadline_ns, mcp_session **out, rt_error *err)
{
    mcp_session *s = calloc(1, sizeof(*s));
    if (!s)
        rt_out_of_memory(sizeof(*s));
    s->client = client;
    s->next_id = 1;
    s->is_old_http = mcp_client_config(client)->is_sse;
    bool is_good = open_link(s, err) && begin(s, deadline_ns, err);
    mcp_client_opening(client, NULL);
    if (!is_good) {
        mcp_session_close(s, false);
        return false;
    }
    if (s->version->era == RT_MCP_MODERN)
        s->link->kind->settle(s->link, s->version);
    listen_for_changes(s);
    *out = s;
    return true;
}

void mcp_session_close(mcp_session *s, bool is_patient)
{
    if (s->link)
        s->link->kind->close(s->link, is_patient);
    free(s);
}
