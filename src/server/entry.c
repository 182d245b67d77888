/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry.c - a request at the door: what can be decided before the body is decided before the body.
 *
 * `steps` at the end has their order. Nothing is told to a page that may not call, nothing is
 * looked up for a caller that is not known, and nothing is read that would not be used.
 */
#include "server/exchange.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

static bool read_target(exchange *x, rt_error *err)
{
    http_request *r = &x->request;
    if (x->raw_target.len > HTTP_TARGET_MAX)
        x->reply.status = 414;
    if (!target_parse(x->raw_target, &r->arena, &x->target, err)) {
        rt_str rest = x->raw_target;
        rt_str_cut(&rest, '?', &r->path); /* as it came: it tells whose errors these are */
        return false;
    }
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

bool exchange_has_body(const http_request *r, uint64_t *length)
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
        x->body_max = EXCHANGE_DISCARD_MAX;
    rt_buf_init(&x->body, (size_t)x->body_max);
    if (!exchange_has_body(r, &length))
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
        !exchange_has_body(r, &length) || is_json_type(type) || is_from_curl(r, type))
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

bool exchange_enter(exchange *x, rt_error *err)
{
    for (size_t i = 0; i < RT_COUNT(steps); i++)
        if (!steps[i](x, err))
            return false;
    return true;
}
