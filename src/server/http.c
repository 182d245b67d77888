/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http.c - between libmicrohttpd and us.
 *
 * libmicrohttpd calls with the target (on_target), with the headers, with each piece of the body,
 * and at its end with nothing (all on_request). At the headers entry.c decides. A refusal is kept
 * until a short body has been read, because to answer earlier means to hang up, and a client that
 * is still sending would lose the answer; a long body is not waited for.
 *
 * One thread serves a connection, so an exchange needs no lock.
 */
#include "server/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOWEST_BYTES_PER_S (16ull << 10) /* a body that comes slower than this is not waited for  \
                                           */

void server_on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    rt_server *server = cls;
    patience_client *client = *context;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        client = malloc(sizeof(*client));
        if (!client)
            rt_out_of_memory(sizeof(*client));
        patience_new_client(server->patience, client,
                            server_socket(&(http_request){ .connection = connection }));
        *context = client;
    } else if (client) {
        patience_end_client(server->patience, client);
        free(client);
    }
}

static patience_client *client_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static void take_id(http_request *r)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    rt_str given = http_header(r, "X-Request-Id");
    if (given.len > 0 && given.len < sizeof(r->id) && strspn(given.ptr, plain) == given.len) {
        memcpy(r->id, given.ptr, given.len + 1);
        return;
    }
    uint8_t random[8];
    rt_random_name(random, sizeof(random));
    memcpy(r->id, "req_", 4);
    rt_hex(r->id + 4, random, sizeof(random));
}

void *server_on_target(void *cls, const char *target, struct MHD_Connection *connection)
{
    rt_server *server = cls;
    exchange *x = calloc(1, sizeof(*x));
    if (!x)
        rt_out_of_memory(sizeof(*x));
    x->start_ns = rt_now_ns();
    x->request.server = server;
    x->request.connection = connection;
    x->raw_target = rt_arena_str(&x->request.arena, rt_str_of(target));
    pthread_mutex_lock(&server->lock);
    server->active++;
    pthread_mutex_unlock(&server->lock);
    return x;
}

static enum MHD_Result send_reply(exchange *x)
{
    char trace[RT_TRACEPARENT_SIZE] = "";
    if (x->request.trace.is_set)
        rt_trace_format(&x->request.trace, trace);
    x->is_sent = true;
    return server_reply_send(&x->request, &x->reply, *trace ? trace : NULL);
}

static void name_span(exchange *x)
{
    http_request *r = &x->request;
    if (!x->span.is_recording)
        return;
    x->span.name =
        r->operation
            ? rt_arena_printf(&r->arena, "%s %s", r->operation->method, r->operation->path).ptr
            : rt_arena_copy(&r->arena, r->method);
    rt_span_str(&x->span, "http.request.method", r->method);
    if (r->operation)
        rt_span_str(&x->span, "http.route", rt_str_of(r->operation->path));
    rt_span_str(&x->span, "client.address", r->caller.address);
}

static enum MHD_Result begin(exchange *x, const char *method)
{
    http_request *r = &x->request;
    rt_error err = { 0 };
    rt_trace parent = rt_trace_parse(http_header(r, "traceparent"));
    uint64_t length;
    patience_client *client = client_of(r->connection);
    x->is_begun = true;
    if (client)
        patience_heard(r->server->patience, client);
    take_id(r);
    r->method = rt_arena_str(&r->arena, rt_str_of(method));
    rt_span_start(r->server->config.telemetry, &x->span, "HTTP", RT_SPAN_SERVER,
                  parent.is_set ? &parent : NULL);
    r->trace = x->span.context;
    x->is_decided = !exchange_enter(x, &err);
    name_span(x);
    if (x->is_decided && err.code != RT_OK)
        server_reply_error(r, &x->reply, &err);
    bool is_waited_for =
        exchange_has_body(r, &length) && (length > EXCHANGE_DISCARD_MAX || length == 0);
    if (x->is_decided && (is_waited_for || http_header(r, "Expect").ptr))
        return send_reply(x);
    return MHD_YES;
}

static void decide(exchange *x, rt_error *err)
{
    x->is_decided = true;
    rt_buf_done(&x->body);
    server_reply_error(&x->request, &x->reply, err);
}

static bool is_too_slow(const exchange *x)
{
    uint64_t ms = (rt_now_ns() - x->start_ns) / 1000000;
    uint64_t bytes = x->body.len + x->discarded;
    return ms > x->request.server->config.request_timeout_ms + bytes * 1000 / SLOWEST_BYTES_PER_S;
}

/* False: hang up. */
static bool take_body(exchange *x, rt_str piece)
{
    http_request *r = &x->request;
    rt_error err = { 0 };
    if (is_too_slow(x))
        return false;
    if (x->is_decided || !r->operation->request) {
        x->discarded += piece.len;
        return x->discarded <= EXCHANGE_DISCARD_MAX;
    }
    uint64_t used = atomic_fetch_add(&r->server->body_bytes, piece.len) + piece.len;
    x->counted += piece.len;
    rt_buf_add(&x->body, piece);
    if (used > r->server->config.body_budget_bytes) {
        rt_fail(&err, RT_UNAVAILABLE, "too much is being sent to this server; try again");
        decide(x, &err);
    } else if (!rt_buf_ok(&x->body, NULL)) {
        rt_fail(&err, RT_LIMIT, "the body is longer than %llu bytes",
                (unsigned long long)x->body_max);
        decide(x, &err);
    }
    return true;
}

static enum MHD_Result finish(exchange *x)
{
    http_request *r = &x->request;
    rt_error err = { 0 };
    unsigned seconds = (unsigned)((r->server->config.request_timeout_ms + 999) / 1000);
    if (x->is_decided)
        return send_reply(x);
    r->body = rt_buf_str(&x->body);
    if (rt_str_eq_c(r->method, "HEAD"))
        r->method = RT_STR("GET");
    /* The time a handler takes is no silence of the client's. */
    MHD_set_connection_option(r->connection, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
    if (!r->operation->handler(r, &x->reply, &err))
        server_reply_error(r, &x->reply, &err);
    MHD_set_connection_option(r->connection, MHD_CONNECTION_OPTION_TIMEOUT, seconds);
    return send_reply(x);
}

enum MHD_Result server_on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **context)
{
    exchange *x = *context;
    (void)cls;
    (void)connection;
    (void)url;
    (void)version;
    if (!x->is_begun)
        return begin(x, method);
    if (*size > 0) {
        bool is_welcome = take_body(x, (rt_str){ data, *size });
        *size = 0;
        return is_welcome ? MHD_YES : MHD_NO;
    }
    return x->is_sent ? MHD_YES : finish(x);
}

/* ---- afterwards ---- */

static void tell(exchange *x)
{
    http_request *r = &x->request;
    const char *operation = r->operation ? r->operation->id : "none";
    unsigned code = x->reply.status ? x->reply.status : 200;
    double seconds = (double)(rt_now_ns() - x->start_ns) / 1e9;
    char status[16];
    snprintf(status, sizeof(status), "%u", code);
    rt_metric_add(r->server->config.telemetry, RT_METRIC_HTTP,
                  (const char *[]){ operation, status }, 1);
    rt_metric_observe(r->server->config.telemetry, RT_METRIC_HTTP_DURATION,
                      (const char *[]){ operation }, seconds);
    rt_span_i64(&x->span, "http.response.status_code", code);
    if (code >= 500)
        rt_span_fail(&x->span, rt_str_of(status));
    rt_span_end(r->server->config.telemetry, &x->span);
    if (rt_log_level_shown(RT_LOG_DEBUG))
        rt_log(RT_LOG_DEBUG, "%s %.*s %.*s %s %.1f ms", r->id, RT_FMT(r->method),
               RT_FMT(rt_str_slice(r->path, 0, 200)), status, seconds * 1000);
}

void server_on_completed(void *cls, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode why)
{
    rt_server *server = cls;
    exchange *x = *context;
    patience_client *client = client_of(connection);
    if (!x)
        return;
    if (client && why == MHD_REQUEST_TERMINATED_COMPLETED_OK)
        patience_waits(server->patience, client);
    *context = NULL;
    if (x->is_sent)
        tell(x);
    atomic_fetch_sub(&server->body_bytes, x->counted);
    http_reply_done(&x->reply);
    rt_buf_done(&x->body);
    rt_arena_done(&x->request.arena);
    free(x);
    pthread_mutex_lock(&server->lock);
    if (--server->active == 0)
        pthread_cond_broadcast(&server->is_idle);
    pthread_mutex_unlock(&server->lock);
}
