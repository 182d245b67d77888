/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_dispatch.c - reads a message: which kind it is, which era's rules it follows, whether it
 * keeps them, and which method it calls.
 *
 * The era is decided for each request by its body: who says a protocol version in _meta is modern.
 * `steps` has the checks in the order clients rely on: a header that differs from the body is told
 * before a version we do not speak, and that before a method we do not have.
 */
#include <string.h>

#include "server/mcp.h"

#define NAME_SHOWN 80

static int shown(rt_str text)
{
    return (int)RT_MIN(text.len, (size_t)NAME_SHOWN);
}

mcp_kind mcp_kind_of(rt_json message)
{
    rt_json id = rt_json_get_c(message, "id");
    if (rt_json_type(message) != RT_JSON_OBJECT ||
        !rt_str_eq_c(rt_json_str(rt_json_get_c(message, "jsonrpc")), "2.0"))
        return MCP_BROKEN;
    if (rt_json_type(rt_json_get_c(message, "method")) == RT_JSON_STRING)
        return rt_json_is_absent(id) ? MCP_NOTIFICATION : MCP_REQUEST;
    bool is_response = !rt_json_is_absent(rt_json_get_c(message, "result")) ||
                       !rt_json_is_absent(rt_json_get_c(message, "error"));
    return is_response ? MCP_RESPONSE : MCP_BROKEN;
}

static rt_json meta_of(rt_json message)
{
    return rt_json_get_c(rt_json_get_c(message, "params"), "_meta");
}

bool mcp_is_modern_message(rt_json message)
{
    rt_json meta = meta_of(message);
    return !rt_json_is_absent(rt_json_get_c(meta, RT_MCP_META_VERSION)) ||
           !rt_json_is_absent(rt_json_get_c(meta, RT_MCP_META_CAPABILITIES));
}

/* ---- what a request says ---- */

static rt_str json_text(rt_json value, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_print(value, &text);
    return rt_arena_str(arena, rt_buf_str(&text));
}

/* An id or a token: a text or a whole number. */
static bool is_name(rt_json value)
{
    rt_str number = rt_json_number(value);
    return rt_json_type(value) == RT_JSON_STRING ||
           (number.len > 0 && !memchr(number.ptr, '.', number.len));
}

static bool invalid(mcp_call *c, const char *why)
{
    return mcp_fail(c, RT_MCP_INVALID_REQUEST, (rt_str){ 0 }, "Invalid Request: %s", why);
}

static bool read_envelope(mcp_call *c, rt_json message, const mcp_headers *headers)
{
    rt_json id = rt_json_get_c(message, "id");
    (void)headers;
    if (is_name(id))
        c->id = json_text(id, &c->arena);
    if (mcp_kind_of(message) != MCP_REQUEST)
        return invalid(c, "a request has \"jsonrpc\":\"2.0\", an id and a method");
    if (c->id.len == 0)
        return invalid(c, "the id must be a text or a whole number");
    c->method = rt_json_str(rt_json_get_c(message, "method"));
    c->params = rt_json_get_c(message, "params");
    c->meta = meta_of(message);
    if (!rt_json_is_absent(c->params) && rt_json_type(c->params) != RT_JSON_OBJECT)
        return invalid(c, "params must be an object");
    return true;
}

/* ---- modern ---- */

static bool fail_400(mcp_call *c, int code, const char *fmt, rt_str what)
{
    c->failure.status = 400;
    return mcp_fail(c, code, (rt_str){ 0 }, fmt, shown(what), what.ptr);
}

static bool check_meta(mcp_call *c, const mcp_headers *headers)
{
    static const struct {
        const char *key;
        rt_json_kind kind;
    } wanted[] = { { RT_MCP_META_VERSION, RT_JSON_STRING },
                   { RT_MCP_META_CAPABILITIES, RT_JSON_OBJECT } };
    (void)headers;
    for (size_t i = 0; i < RT_COUNT(wanted); i++)
        if (rt_json_type(rt_json_get_c(c->meta, wanted[i].key)) != wanted[i].kind)
            return fail_400(c, RT_MCP_INVALID_PARAMS, "Invalid params: _meta must have '%.*s'",
                            rt_str_of(wanted[i].key));
    c->capabilities = rt_json_get_c(c->meta, RT_MCP_META_CAPABILITIES);
    return true;
}

static bool check_version_header(mcp_call *c, const mcp_headers *headers)
{
    if (!headers || rt_str_eq(rt_str_trim(headers->version),
                              rt_json_str(rt_json_get_c(c->meta, RT_MCP_META_VERSION))))
        return true;
    return fail_400(c, RT_MCP_HEADER_MISMATCH,
                    "Header mismatch: MCP-Protocol-Version '%.*s' is not what _meta says",
                    headers->version);
}

static rt_str supported_versions(rt_str requested, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_karray(&w, "supported");
    for (size_t i = 0; i < rt_mcp_version_count; i++)
        if (rt_mcp_versions[i].era == RT_MCP_MODERN)
            rt_jw_str(&w, rt_str_of(rt_mcp_versions[i].name));
    rt_jw_end(&w);
    rt_jw_kstr(&w, "requested", requested);
    rt_jw_end(&w);
    return rt_arena_str(arena, rt_buf_str(&text));
}

static bool check_version(mcp_call *c, const mcp_headers *headers)
{
    rt_str asked = rt_json_str(rt_json_get_c(c->meta, RT_MCP_META_VERSION));
    const rt_mcp_version *version = rt_mcp_version_find(asked);
    (void)headers;
    if (version && version->era == RT_MCP_MODERN) {
        c->version = version;
        return true;
    }
    return mcp_fail(c, RT_MCP_UNSUPPORTED_VERSION, supported_versions(asked, &c->arena),
                    "Unsupported protocol version '%.*s'", shown(asked), asked.ptr);
}

static bool check_method_header(mcp_call *c, const mcp_headers *headers)
{
    if (!headers || rt_str_eq(rt_str_trim(headers->method), c->method))
        return true;
    return fail_400(c, RT_MCP_HEADER_MISMATCH,
                    "Header mismatch: Mcp-Method '%.*s' is not the body's method", headers->method);
}

/* Before the method is known to exist: which of params a header repeats is in the methods' rows. */
static bool check_name_header(mcp_call *c, const mcp_headers *headers)
{
    const mcp_method *row = mcp_method_find(c->mcp, c->method, RT_MCP_MODERN);
    rt_str name;
    if (!headers || !row || !row->header)
        return true;
    if (headers->name.ptr &&
        rt_mcp_header_decode(rt_str_trim(headers->name), &c->arena, &name, NULL) &&
        rt_str_eq(name, rt_json_str(rt_json_get_c(c->params, row->header))))
        return true;
    return fail_400(c, RT_MCP_HEADER_MISMATCH,
                    "Header mismatch: Mcp-Name must be the body's '%.*s'", rt_str_of(row->header));
}

static bool check_level(mcp_call *c, const mcp_headers *headers)
{
    rt_json level = rt_json_get_c(c->meta, RT_MCP_META_LOG_LEVEL);
    (void)headers;
    if (rt_json_is_absent(level))
        return true;
    c->level = mcp_level_find(rt_json_str(level));
    return c->level >= 0 ||
           fail_400(c, RT_MCP_INVALID_PARAMS, "Invalid params: there is no log level '%.*s'",
                    rt_json_str(level));
}

/* ---- legacy ---- */

static bool check_legacy_version(mcp_call *c, const mcp_headers *headers)
{
    rt_str named = headers ? rt_str_trim(headers->version) : (rt_str){ 0 };
    const rt_mcp_version *version = rt_mcp_version_find(named);
    const rt_mcp_version *agreed = c->peer ? mcp_peer_version(c->peer) : NULL;
    if (version && version->era == RT_MCP_MODERN)
        return fail_400(c, RT_MCP_INVALID_PARAMS,
                        "Invalid params: %.*s wants its version and capabilities in _meta", named);
    if (named.len > 0 && !version)
        return fail_400(c, RT_MCP_INVALID_REQUEST,
                        "Invalid Request: there is no protocol version '%.*s'", named);
    if (agreed || version)
        c->version = agreed ? agreed : version;
    return true;
}

static bool take_peer(mcp_call *c, const mcp_headers *headers)
{
    (void)headers;
    if (!c->peer)
        return true;
    c->level = mcp_peer_level(c->peer);
    c->capabilities = mcp_peer_capabilities(c->peer, &c->arena);
    return true;
}

/* ---- both ---- */

static bool check_method(mcp_call *c, const mcp_headers *headers)
{
    (void)headers;
    c->row = mcp_method_find(c->mcp, c->method, c->version->era);
    return c->row || mcp_fail(c, RT_MCP_METHOD_NOT_FOUND, (rt_str){ 0 }, "Method not found: %.*s",
                              shown(c->method), c->method.ptr);
}

static bool check_arguments(mcp_call *c, const mcp_headers *headers)
{
    rt_str name = rt_json_str(rt_json_get_c(c->params, "name"));
    const mcp_tool *tool = NULL;
    if (headers && mcp_is_modern(c) && rt_str_eq_c(c->method, "tools/call"))
        tool = mcp_tool_find(c->mcp, name);
    return !tool || mcp_headers_check_arguments(c, tool, headers);
}

static bool read_meta(mcp_call *c, const mcp_headers *headers)
{
    rt_json token = rt_json_get_c(c->meta, "progressToken");
    rt_trace trace = rt_trace_parse(rt_json_str(rt_json_get_c(c->meta, "traceparent")));
    (void)headers;
    if (is_name(token))
        c->progress_token = json_text(token, &c->arena);
    if (trace.is_set)
        c->trace = trace;
    return true;
}

typedef bool step(mcp_call *c, const mcp_headers *headers);

static step *const modern_steps[] = {
    check_meta,   check_version_header, check_version, check_method_header, check_name_header,
    check_method, check_level,          read_meta,     check_arguments
};
static step *const legacy_steps[] = { check_legacy_version, take_peer, check_method, read_meta };

static bool walk(mcp_call *c, step *const *steps, size_t count, const mcp_headers *headers)
{
    for (size_t i = 0; i < count; i++)
        if (!steps[i](c, headers))
            return false;
    return true;
}

bool mcp_call_open(mcp_call *c, rt_json message, const mcp_headers *headers)
{
    if (!read_envelope(c, message, headers))
        return false;
    if (!mcp_is_modern_message(message))
        return walk(c, legacy_steps, RT_COUNT(legacy_steps), headers);
    c->version = rt_mcp_version_newest(RT_MCP_MODERN);
    return walk(c, modern_steps, RT_COUNT(modern_steps), headers);
}

bool mcp_call_is_long(const mcp_call *c)
{
    return c->row && (c->row->flags & MCP_LONG);
}

/* ---- notifications of the client ---- */

static void cancel(mcp *m, mcp_peer *peer, rt_json params)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json id = rt_json_get_c(params, "requestId");
    if (!is_name(id))
        return;
    rt_str text = json_text(id, &arena);
    pthread_mutex_lock(&m->lock);
    for (mcp_call *c = m->calls; c; c = c->next) /* the latest first */
        if (c->peer == peer && rt_str_eq(c->id, text) && !rt_str_eq_c(c->method, "initialize")) {
            mcp_call_cancel(c);
            break;
        }
    pthread_mutex_unlock(&m->lock);
}

/* Without a peer there is nobody whose request it could be. */
void mcp_notified(mcp *m, mcp_peer *peer, rt_json message)
{
    rt_str method = rt_json_str(rt_json_get_c(message, "method"));
    if (peer && rt_str_eq_c(method, "notifications/cancelled"))
        cancel(m, peer, rt_json_get_c(message, "params"));
}
