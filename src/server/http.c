/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http.c - a request's way in: what can be decided before the body is decided before the body.
 *
 * libmicrohttpd calls us three times: with the target (on_target), with the headers, then with each
 * piece of the body, and at its end with nothing (all on_request). `steps` runs at the headers. A
 * refusal is kept until a short body has been read, because to answer earlier means to hang up, and
 * a client that is still sending would lose the answer; a long body is not waited for.
 *
 * One thread serves a connection, so an exchange needs no lock.
 */
#include "server/server_internal.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DISCARD_MAX (1ull << 20) /* of a body nobody wants, for the sake of the answer */
#define SLOWEST_BYTES_PER_S                                                                        \
    (16ull << 10) /* a body that comes slower than this is not waited for                          \
                   */

typedef struct exchange {
    http_request request; /* first: handlers see only this */
    http_reply reply;
    http_target target;
    rt_str raw_target;
    bool is_begun, is_decided, is_sent;
    rt_buf body;
    uint64_t body_max, discarded, counted; /* counted: in the server's budget */
    rt_key key;
    rt_span span;
    uint64_t start_ns;
} exchange;

/* ---- steps, in their order ---- */

static bool read_target(exchange *x, rt_error *err)
{
    http_request *r = &x->request;
    if (x->raw_target.len > HTTP_TARGET_MAX)
        x->reply.status = 414;
    if (!target_parse(x->raw_target, &r->arena, &x->target, err))
        return false;
    r->path = x->target.path;
    r->query = x->target.query;
    r->query_count = x->target.query_count;
    return true;
}

static bool find_operation(exchange *x, http_route *route)
{
    http_request *r = &x->request;
    operations_route(r->method, &x->target, route);
    r->operation = route->operation;
    r->path_param_count = route->param_count;
    memcpy(r->path_params, route->params, sizeof(route->params));
    return route->operation != NULL;
}

static bool check_site(exchange *x, rt_error *err)
{
    http_request *r = &x->request;
    guard_visit visit = { .host = http_header(r, "Host"),
                          .origin = http_header(r, "Origin"),
                          .fetch_site = http_header(r, "Sec-Fetch-Site"),
                          .is_page = r->operation && (r->operation->flags & HTTP_PAGE) };
    return guard_check(&r->server->rules, &visit, err);
}

/* What a page asks before it calls. */
static bool answer_preflight(exchange *x, const char *allow)
{
    http_reply *reply = &x->reply;
    reply->status = 204;
    http_reply_header(reply, "Allow", rt_str_of(allow));
    if (http_header(&x->request, "Origin").ptr) {
        http_reply_header(reply, "Access-Control-Allow-Methods", rt_str_of(allow));
        http_reply_header(reply, "Access-Control-Allow-Headers",
                          RT_STR("Authorization, Content-Type, X-API-Key, Idempotency-Key, "
                                 "X-Request-Id, traceparent, Last-Event-ID, Range, Accept, "
                                 "MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id"));
        http_reply_header(reply, "Access-Control-Max-Age", RT_STR("600"));
    }
    return false; /* decided, and no error */
}

/* The site is checked as soon as it is known whether this is a page; nothing is told before. */
static bool route(exchange *x, rt_error *err)
{
    http_request *r = &x->request;
    http_route found;
    find_operation(x, &found);
    if (!check_site(x, err))
        return false;
    if (r->operation)
        return true;
    rt_str allow = rt_arena_printf(&r->arena, "%s%sOPTIONS", found.allow, *found.allow ? ", " : "");
    if (*found.allow && rt_str_eq_c(r->method, "OPTIONS"))
        return answer_preflight(x, allow.ptr);
    if (!*found.allow)
        return rt_fail(err, RT_NOT_FOUND, "there is nothing at %.*s; /openapi.json lists what is",
                       (int)RT_MIN(r->path.len, (size_t)100), r->path.ptr);
    http_reply_header(&x->reply, "Allow", allow);
    return http_fail(&x->reply, 405, err, "%.*s is not possible here; there is: %s",
                     (int)RT_MIN(r->method.len, (size_t)20), r->method.ptr, allow.ptr);
}

static rt_str address_of(http_request *r)
{
    char text[INET6_ADDRSTRLEN] = "";
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (info && info->client_addr->sa_family == AF_INET)
        inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)info->client_addr)->sin_addr, text,
                  sizeof(text));
    else if (info && info->client_addr->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((struct sockaddr_in6 *)(void *)info->client_addr)->sin6_addr, text,
                  sizeof(text));
    return rt_arena_str(&r->arena, rt_str_of(text));
}

static rt_str secret_of(const http_request *r)
{
    rt_str value = http_header(r, "Authorization"), scheme = RT_STR("Bearer ");
    if (value.len > scheme.len && strncasecmp(value.ptr, scheme.ptr, scheme.len) == 0)
        return rt_str_trim(rt_str_slice(value, scheme.len, value.len));
    return rt_str_trim(http_header(r, "X-API-Key"));
}

static unsigned seconds_of(uint64_t ms)
{
    return (unsigned)RT_MIN((ms + 999) / 1000, (uint64_t)3600);
}

static bool refuse_key(exchange *x, const char *why, rt_error *err)
{
    http_reply_header(&x->reply, "WWW-Authenticate", RT_STR("Bearer realm=\"retort\""));
    return http_fail(&x->reply, 401, err,
                     "%s; send a key as 'Authorization: Bearer rt_…' or 'X-API-Key: rt_…'", why);
}

static bool find_key(exchange *x, rt_error *err)
{
    http_request *r = &x->request;
    uint64_t wait_ms = 0;
    rt_str secret = secret_of(r);
    if (secret.len == 0)
        return refuse_key(x, "this needs a key", err);
    if (guard_keyring_find(r->server->keyring, secret, r->caller.address, &r->arena, &x->key,
                           &wait_ms, err))
        return true;
    if (err->code == RT_LIMIT) {
        x->reply.retry_after_s = seconds_of(wait_ms);
        return http_fail(&x->reply, 429, err, "too many wrong keys from this address; wait");
    }
    return err->code == RT_DENIED ? refuse_key(x, "the key is unknown, expired or revoked", err)
                                  : false;
}

static bool authenticate(exchange *x, rt_error *err)
{
    http_request *r = &x->request;
    r->caller = (rt_caller){ .organisation_id = RT_STR(RT_LOCAL_ORGANISATION),
                             .workspace_id = RT_STR(RT_LOCAL_WORKSPACE),
                             .user_id = RT_STR(RT_LOCAL_USER),
                             .actor_type = RT_STR("user"),
                             .role = RT_ROLE_OWNER,
                             .address = address_of(r) };
    if (!r->server->config.is_auth_required)
        return true;
    r->caller.role = RT_ROLE_NONE;
    if (r->operation->role == RT_ROLE_NONE)
        return true;
    if (!find_key(x, err))
        return false;
    r->caller.organisation_id = x->key.organisation_id;
    r->caller.workspace_id = x->key.workspace_id;
    r->caller.user_id = x->key.user_id;
    r->caller.key_id = x->key.id;
    r->caller.actor_type = RT_STR("key");
    r->caller.role = x->key.role;
    r->caller.budget_usd_month = x->key.budget_usd_month;
    return true;
}

static bool authorise(exchange *x, rt_error *err)
{
    http_request *r = &x->request;
    return r->caller.role >= r->operation->role ||
           rt_fail(err, RT_DENIED, "You do not have permission to %s", r->operation->action);
}

static bool count_rate(exchange *x, rt_error *err)
{
    http_request *r = &x->request;
    uint64_t wait_ms = 0;
    uint64_t rate =
        x->key.rate_per_minute ? x->key.rate_per_minute : r->server->config.rate_per_minute;
    rt_str who = x->key.id.len > 0 ? x->key.id : r->caller.address;
    if (rate == 0 || server_rate_take(r->server->rate, who, rate, rt_now_ns(), &wait_ms))
        return true;
    x->reply.retry_after_s = RT_MAX(seconds_of(wait_ms), 1u);
    return http_fail(&x->reply, 429, err, "more than %llu requests a minute; wait %u s",
                     (unsigned long long)rate, x->reply.retry_after_s);
}

/* Whether the client announced a body, and how long it said it would be. */
static bool has_body(const http_request *r, uint64_t *length)
{
    *length = 0;
    return http_header(r, "Transfer-Encoding").ptr ||
           (rt_str_to_u64(http_header(r, "Content-Length"), length) && *length > 0);
}

static bool check_length(exchange *x, rt_error *err)
{
    http_request *r = &x->request;
    uint64_t length, used = atomic_load(&r->server->body_bytes);
    x->body_max = x->key.max_body_bytes ? x->key.max_body_bytes : r->server->config.max_body_bytes;
    if (!r->operation->request)
        x->body_max = DISCARD_MAX;
    rt_buf_init(&x->body, (size_t)x->body_max);
    if (!has_body(r, &length))
        return true;
    if (length > x->body_max)
        return rt_fail(err, RT_LIMIT, "the body has %llu bytes; at most %llu are taken",
                       (unsigned long long)length, (unsigned long long)x->body_max);
    if (used + length > r->server->config.body_budget_bytes)
        return rt_fail(err, RT_UNAVAILABLE, "too much is being sent to this server; try again");
    return true;
}

static bool is_json_type(rt_str value)
{
    rt_str type, rest = value, json = RT_STR("application/json"), suffix = RT_STR("+json"), piece;
    rt_str_cut(&rest, ';', &type);
    type = rt_str_trim(type);
    bool is_json = (type.len == json.len && strncasecmp(type.ptr, json.ptr, json.len) == 0) ||
                   (type.len > suffix.len &&
                    strncasecmp(type.ptr + type.len - suffix.len, suffix.ptr, suffix.len) == 0);
    while (is_json && rt_str_cut(&rest, ';', &piece)) {
        piece = rt_str_trim(piece);
        if (piece.len > 8 && strncasecmp(piece.ptr, "charset=", 8) == 0)
            is_json = strncasecmp(piece.ptr + 8, "utf-8", 5) == 0 ||
                      strncasecmp(piece.ptr + 8, "\"utf-8\"", 7) == 0;
    }
    return is_json;
}

/* What `curl -d` says when it is told nothing; a page that could say it too names its origin. */
static bool is_from_curl(const http_request *r, rt_str type)
{
    static const char form[] = "application/x-www-form-urlencoded";
    return type.len == sizeof(form) - 1 && strncasecmp(type.ptr, form, type.len) == 0 &&
           http_header(r, "Origin").len == 0;
}

static bool check_type(exchange *x, rt_error *err)
{
    http_request *r = &x->request;
    uint64_t length;
    rt_str type = http_header(r, "Content-Type");
    if (!r->operation->request || (r->operation->flags & HTTP_RAW_BODY) || type.len == 0 ||
        !has_body(r, &length) || is_json_type(type) || is_from_curl(r, type))
        return true;
    return http_fail(&x->reply, 415, err,
                     "the body must be JSON in UTF-8: send 'Content-Type: application/json'");
}

static bool check_parameters(exchange *x, rt_error *err)
{
    return operations_check(&x->request, err);
}

static bool (*const steps[])(exchange *, rt_error *) = {
    read_target, route,        authenticate, authorise,
    count_rate,  check_length, check_type,   check_parameters,
};

/* ---- the callbacks ---- */

static void take_id(http_request *r)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    rt_str given = http_header(r, "X-Request-Id");
    if (given.len > 0 && given.len < sizeof(r->id) && strspn(given.ptr, plain) == given.len) {
        memcpy(r->id, given.ptr, given.len + 1);
        return;
    }
    uint8_t random[8];
    rt_random_bytes(random, sizeof(random));
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
    x->is_begun = true;
    take_id(r);
    r->method = rt_arena_str(&r->arena, rt_str_of(method));
    rt_span_start(r->server->config.telemetry, &x->span, "HTTP", RT_SPAN_SERVER,
                  parent.is_set ? &parent : NULL);
    r->trace = x->span.context;
    for (size_t i = 0; i < RT_COUNT(steps) && !x->is_decided; i++)
        x->is_decided = !steps[i](x, &err);
    name_span(x);
    if (x->is_decided && err.code != RT_OK)
        server_reply_error(r, &x->reply, &err);
    bool is_waited_for = has_body(r, &length) && (length > DISCARD_MAX || length == 0);
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
        return x->discarded <= DISCARD_MAX;
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
    (void)connection;
    (void)why;
    if (!x)
        return;
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
