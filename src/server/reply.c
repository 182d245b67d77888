/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply.c - replies: bodies, errors in the shape their clients expect, and the way out.
 *
 * An error of our own (500) is told to the log with its request id; the client is told the id only,
 * because the text may name paths of the host.
 */
#include "server/server_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STREAM_BLOCK  (64u << 10)
#define RETRY_AFTER_S 1
#define JSON_TYPE     "application/json; charset=utf-8"

void http_reply_json(http_reply *reply, unsigned status, rt_json_writer *w)
{
    reply->status = status;
    rt_json_begin(w, &reply->body);
}

void http_reply_text(http_reply *reply, unsigned status, const char *content_type, rt_str text)
{
    reply->status = status;
    reply->content_type = content_type;
    reply->text = text;
}

void http_reply_header(http_reply *reply, const char *name, rt_str value)
{
    for (size_t i = 0; i < value.len; i++)
        if ((unsigned char)value.ptr[i] < ' ' || value.ptr[i] == 0x7f)
            return;
    if (reply->header_count < HTTP_HEADERS_MAX)
        reply->headers[reply->header_count++] = (http_pair){ rt_str_of(name), value };
}

/* filename for old clients, in ASCII; filename* for the name as it is. */
void http_reply_attachment(http_request *r, http_reply *reply, rt_str file_name)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    const char *slash = file_name.len > 0 ? memrchr(file_name.ptr, '/', file_name.len) : NULL;
    rt_str name = slash
                      ? rt_str_slice(file_name, (size_t)(slash - file_name.ptr) + 1, file_name.len)
                      : file_name;
    rt_buf_add(&text, RT_STR("attachment; filename=\""));
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        rt_buf_addc(&text, c >= ' ' && c < 0x7f && c != '"' && c != '\\' ? c : '_');
    }
    rt_buf_add(&text, RT_STR("\"; filename*=UTF-8''"));
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.ptr[i];
        bool is_plain = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
                        c == '.' || c == '-' || c == '_';
        if (is_plain)
            rt_buf_addc(&text, (char)c);
        else
            rt_buf_addf(&text, "%%%02X", c);
    }
    http_reply_header(reply, "Content-Disposition", rt_arena_str(&r->arena, rt_buf_str(&text)));
}

void http_reply_done(http_reply *reply)
{
    rt_buf_done(&reply->body);
    if (reply->stream.read && reply->stream.close)
        reply->stream.close(reply->stream.ctx);
    if (reply->has_fd)
        rt_closep(&reply->fd);
    *reply = (http_reply){ 0 };
}

bool http_fail(http_reply *reply, unsigned status, rt_error *err, const char *fmt, ...)
{
    char text[sizeof(err->text)];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    reply->status = status;
    return rt_fail(err, RT_INVALID, "%s", text);
}

void http_jw_text(rt_json_writer *w, const char *key, rt_str text)
{
    if (text.len > 0)
        rt_jw_kstr(w, key, text);
    else
        rt_jw_knull(w, key);
}

void http_jw_time(rt_json_writer *w, const char *key, uint64_t wall_ms)
{
    char text[RT_ISO8601_SIZE];
    if (wall_ms == 0) {
        rt_jw_knull(w, key);
        return;
    }
    rt_iso8601_write(text, wall_ms);
    rt_jw_kstr(w, key, rt_str_of(text));
}

void http_jw_raw(rt_json_writer *w, const char *key, rt_str json, rt_str fallback)
{
    rt_jw_kraw(w, key, json.len > 0 ? json : fallback);
}

/* ---- errors ---- */

/* Statuses that no rt_code has, and what the agent surface calls each. */
static const struct {
    unsigned status;
    const char *code, *title;
} statuses[] = {
    { 400, NULL, "Bad request" },
    { 401, "unauthorized", "Unauthorized" },
    { 403, NULL, "Forbidden" },
    { 404, NULL, "Not found" },
    { 405, "method_not_allowed", "Method not allowed" },
    { 409, NULL, "Conflict" },
    { 413, NULL, "Payload too large" },
    { 414, "target_too_long", "Address too long" },
    { 415, "unsupported_media_type", "Unsupported media type" },
    { 416, "range_not_satisfiable", "Range not satisfiable" },
    { 429, "rate_limited", "Too many requests" },
    { 503, NULL, "Service unavailable" },
};

static void write_native(http_request *r, unsigned status, const rt_error *err, rt_str message,
                         rt_json_writer *w)
{
    const char *code = rt_code_name(err->code);
    for (size_t i = 0; i < RT_COUNT(statuses); i++)
        if (statuses[i].status == status && statuses[i].code)
            code = statuses[i].code;
    rt_jw_object(w);
    rt_jw_kobject(w, "error");
    rt_jw_kstr(w, "code", rt_str_of(code));
    rt_jw_kstr(w, "message", message);
    rt_jw_kstr(w, "request_id", rt_str_of(r->id));
    rt_jw_end(w);
    rt_jw_end(w);
}

/* What went wrong on our side is called by what was asked. */
static const struct {
    const char *operation, *title;
} agent_failures[] = {
    { "agentListTools", "Failed to list tools" },
    { "agentSearchTools", "Search failed" },
    { "agentSavePattern", "Failed to save pattern" },
    { "agentGetPattern", "Failed to retrieve pattern" },
};

static bool is_agents(const http_request *r)
{
    return r->operation ? (r->operation->flags & HTTP_AGENT_ERRORS) != 0
                        : rt_str_starts(r->path, RT_STR("/api/agent/"));
}

static void write_agent(const http_request *r, unsigned status, rt_str message, rt_json_writer *w)
{
    const char *title = "Execution failed";
    for (size_t i = 0; i < RT_COUNT(agent_failures) && r->operation; i++)
        if (strcmp(r->operation->id, agent_failures[i].operation) == 0)
            title = agent_failures[i].title;
    for (size_t i = 0; i < RT_COUNT(statuses); i++)
        if (statuses[i].status == status)
            title = statuses[i].title;
    rt_jw_object(w);
    rt_jw_kbool(w, "success", false);
    rt_jw_kstr(w, "error", rt_str_of(title));
    rt_jw_kstr(w, "message", message);
    rt_jw_end(w);
}

/* As FastAPI tells what is wrong with a request, and the Code Executor Service everything else. */
static void write_skill(unsigned status, rt_str message, rt_json_writer *w)
{
    rt_jw_object(w);
    if (status == 500) {
        rt_jw_kstr(w, "error", RT_STR("internal_server_error"));
        rt_jw_kstr(w, "message", message);
        rt_jw_kraw(w, "details", RT_STR("{\"exception_type\":\"InternalError\"}"));
        rt_jw_knull(w, "execution_id");
    } else if (status == 422) {
        rt_jw_karray(w, "detail");
        rt_jw_object(w);
        rt_jw_kraw(w, "loc", RT_STR("[\"body\"]"));
        rt_jw_kstr(w, "msg", message);
        rt_jw_kstr(w, "type", RT_STR("value_error"));
        rt_jw_end(w);
        rt_jw_end(w);
    } else {
        rt_jw_kstr(w, "detail", message);
    }
    rt_jw_end(w);
}

/* "MISSING_CODE: 'code' is empty" has a code of its own. */
static rt_str code_in(rt_str message)
{
    size_t len = 0;
    while (len < message.len &&
           ((message.ptr[len] >= 'A' && message.ptr[len] <= 'Z') || message.ptr[len] == '_'))
        len++;
    bool is_code = len > 3 && len < message.len && message.ptr[len] == ':';
    return is_code ? rt_str_slice(message, 0, len) : RT_STR("VALIDATION_ERROR");
}

static void write_code_agent(unsigned status, rt_str message, rt_json_writer *w)
{
    rt_jw_object(w);
    if (status == 401) {
        rt_jw_kstr(w, "error", RT_STR("Unauthorized"));
    } else if (status == 403) {
        rt_jw_kstr(w, "error", RT_STR("Forbidden"));
        rt_jw_kstr(w, "message", message);
    } else {
        rt_jw_kstr(w, "error", message);
        if (status == 400)
            rt_jw_kstr(w, "code", code_in(message));
    }
    rt_jw_end(w);
}

void server_reply_error(http_request *r, http_reply *reply, const rt_error *err)
{
    unsigned status = reply->status ? reply->status : (unsigned)rt_code_http(err->code);
    bool is_skill = r->operation && (r->operation->flags & HTTP_SKILL_ERRORS);
    http_reply fresh = { .retry_after_s = reply->retry_after_s };
    status = is_skill && status == 400 ? 422 : status;
    rt_str message = rt_str_of(err->text);
    rt_json_writer w;
    for (size_t i = 0; i < reply->header_count; i++)
        fresh.headers[fresh.header_count++] = reply->headers[i];
    http_reply_done(reply);
    *reply = fresh;
    if (status == 500) {
        rt_log(RT_LOG_ERROR, "%s: %s %.*s: %s", r->id, r->operation ? r->operation->id : "-",
               RT_FMT(rt_str_slice(r->path, 0, 200)), err->text);
        message = RT_STR("something went wrong on our side; the server's log has it under "
                         "this request's id");
    }
    if (status == 503 && reply->retry_after_s == 0)
        reply->retry_after_s = RETRY_AFTER_S;
    http_reply_json(reply, status, &w);
    if (is_agents(r))
        write_agent(r, status, message, &w);
    else if (is_skill)
        write_skill(status, message, &w);
    else if (r->operation && (r->operation->flags & HTTP_CODE_AGENT_ERRORS))
        write_code_agent(status, message, &w);
    else
        write_native(r, status, err, message, &w);
}

/* ---- the way out ---- */

static ssize_t read_stream(void *cls, uint64_t position, char *out, size_t max)
{
    http_stream *stream = cls;
    (void)position;
    ssize_t n = stream->read(stream->ctx, out, max);
    return n > 0    ? n
           : n == 0 ? MHD_CONTENT_READER_END_OF_STREAM
                    : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void close_stream(void *cls)
{
    http_stream *stream = cls;
    if (stream->close)
        stream->close(stream->ctx);
    free(stream);
}

static struct MHD_Response *stream_response(http_reply *reply)
{
    http_stream *stream = malloc(sizeof(*stream));
    if (!stream)
        rt_out_of_memory(sizeof(*stream));
    *stream = reply->stream;
    reply->stream.read = NULL; /* the response closes it */
    return MHD_create_response_from_callback(stream->has_size ? stream->size : MHD_SIZE_UNKNOWN,
                                             STREAM_BLOCK, read_stream, stream, close_stream);
}

static struct MHD_Response *response_of(http_reply *reply)
{
    if (reply->has_fd) {
        reply->has_fd = false; /* the response closes it */
        return MHD_create_response_from_fd64(reply->fd_size, reply->fd);
    }
    if (reply->stream.read && !(reply->stream.has_size && reply->stream.size == 0))
        return stream_response(reply);
    /* What is sent lives as long as the request. */
    rt_str text = reply->text.ptr ? reply->text : rt_buf_str(&reply->body);
    return MHD_create_response_from_buffer(text.len, (void *)(uintptr_t)text.ptr,
                                           MHD_RESPMEM_PERSISTENT);
}

static void add_headers(http_request *r, http_reply *reply, struct MHD_Response *response)
{
    char value[32];
    bool is_cached = false;
    for (size_t i = 0; i < reply->header_count; i++) {
        const http_pair *h = &reply->headers[i];
        is_cached |= rt_str_eq_c(h->name, "Cache-Control");
        MHD_add_response_header(response, h->name.ptr, rt_arena_copy(&r->arena, h->value));
    }
    if (!is_cached)
        MHD_add_response_header(response, "Cache-Control", "no-store");
    if (reply->retry_after_s > 0) {
        snprintf(value, sizeof(value), "%u", reply->retry_after_s);
        MHD_add_response_header(response, "Retry-After", value);
    }
}

/* Pages of allowed origins may read the answer. */
static void add_cors(http_request *r, struct MHD_Response *response)
{
    rt_str origin = http_header(r, "Origin");
    if (r->server->rules.allowed_origin_count > 0)
        MHD_add_response_header(response, "Vary", "Origin");
    if (!guard_is_allowed_origin(&r->server->rules, origin))
        return;
    MHD_add_response_header(response, "Access-Control-Allow-Origin", origin.ptr);
    MHD_add_response_header(response, "Access-Control-Expose-Headers",
                            "X-Request-Id, traceparent, Location, Retry-After, "
                            "Content-Disposition, Content-Range, Mcp-Session-Id");
}

enum MHD_Result server_reply_send(http_request *r, http_reply *reply, const char *trace)
{
    rt_error err = { 0 };
    if (!rt_buf_ok(&reply->body, &err)) {
        reply->status = 0;
        server_reply_error(r, reply, &err);
    }
    bool has_body = reply->status != 204 && reply->status != 304;
    struct MHD_Response *response = response_of(reply);
    if (!response)
        return MHD_NO;
    if (has_body)
        MHD_add_response_header(response, "Content-Type",
                                reply->content_type ? reply->content_type : JSON_TYPE);
    MHD_add_response_header(response, "X-Request-Id", r->id);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Server", r->server->banner.ptr);
    if (trace)
        MHD_add_response_header(response, "traceparent", trace);
    add_headers(r, reply, response);
    add_cors(r, response);
    if (atomic_load(&r->server->is_stopping))
        MHD_add_response_header(response, "Connection", "close");
    enum MHD_Result ok =
        MHD_queue_response(r->connection, reply->status ? reply->status : 200, response);
    MHD_destroy_response(response);
    return ok;
}
