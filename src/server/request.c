/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - what handlers ask of a request: headers, parameters, the members of its body. */
#include "server/server_internal.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NAMES_SHOWN_MAX 160
#define SECONDS_MAX     1e9

rt_str http_header(const http_request *r, const char *name)
{
    if (!r->connection)
        return (rt_str){ 0 };
    return rt_str_of(MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name));
}

static rt_str find(const http_pair *pairs, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (rt_str_eq_c(pairs[i].name, name))
            return pairs[i].value;
    return (rt_str){ 0 };
}

rt_str http_param(const http_request *r, const char *name)
{
    return find(r->path_params, r->path_param_count, name);
}

rt_str http_query(const http_request *r, const char *name)
{
    return find(r->query, r->query_count, name);
}

uint64_t http_query_u64(const http_request *r, const char *name, uint64_t fallback)
{
    uint64_t number;
    return rt_str_to_u64(http_query(r, name), &number) ? number : fallback;
}

bool http_query_bool(const http_request *r, const char *name, bool fallback)
{
    rt_str value = http_query(r, name);
    return value.ptr ? rt_str_eq_c(value, "true") : fallback;
}

bool http_accepts(const http_request *r, const char *type)
{
    rt_str rest = http_header(r, "Accept"), piece, wanted = rt_str_of(type);
    while (rt_str_cut(&rest, ',', &piece)) {
        rt_str name;
        rt_str_cut(&piece, ';', &name);
        name = rt_str_trim(name);
        if (name.len == wanted.len && strncasecmp(name.ptr, wanted.ptr, name.len) == 0)
            return true;
    }
    return false;
}

int server_socket(const http_request *r)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

/* The operator sees every organisation; without keys there is only one. */
rt_str http_scope(const http_request *r)
{
    bool is_operator = r->server->config.is_auth_required && r->caller.role == RT_ROLE_OWNER;
    return is_operator ? (rt_str){ 0 } : r->caller.organisation_id;
}

/* ---- the body ---- */

bool http_json(http_request *r, rt_json *out, rt_error *err)
{
    if (rt_str_trim(r->body).len == 0)
        return rt_fail(err, RT_INVALID, "the request has no body; send a JSON object");
    return rt_json_parse(r->body, &r->arena, out, err) || rt_wrap(err, "the body is not JSON");
}

static const http_member *member_of(const http_member *members, size_t count, rt_str name)
{
    for (size_t i = 0; i < count; i++)
        if (rt_str_eq_c(name, members[i].name))
            return &members[i];
    return NULL;
}

static bool unknown_member(const http_member *members, size_t count, rt_str name, rt_error *err)
{
    char known[NAMES_SHOWN_MAX] = "";
    size_t used = 0;
    for (size_t i = 0; i < count && used < sizeof(known); i++)
        used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
                                 members[i].name);
    return rt_fail(err, RT_INVALID, "unknown member '%.*s'; there are: %s",
                   (int)RT_MIN(name.len, (size_t)40), name.ptr, known);
}

static bool wrong_kind(const http_member *m, rt_json value, rt_error *err)
{
    static const char *const names[] = { "",         "null",     "true or false", "a number",
                                         "a string", "an array", "an object" };
    char wanted[80] = "";
    size_t used = 0;
    for (unsigned kind = 1; kind < RT_COUNT(names); kind++)
        if (m->kinds & HTTP_KIND(kind))
            used += (size_t)snprintf(wanted + used, sizeof(wanted) - used, "%s%s",
                                     used ? " or " : "", names[kind]);
    return rt_fail(err, RT_INVALID, "'%s' must be %s, not %s", m->name, wanted,
                   rt_json_type_name(value));
}

bool http_members_check(rt_json object, const http_member *members, size_t count, rt_error *err)
{
    rt_json_iter it = rt_json_each(object);
    rt_str name;
    rt_json value;
    if (rt_json_type(object) != RT_JSON_OBJECT)
        return rt_fail(err, RT_INVALID, "the body must be a JSON object, not %s",
                       rt_json_type_name(object));
    while (rt_json_next(&it, &name, &value)) {
        const http_member *m = member_of(members, count, name);
        if (!m)
            return unknown_member(members, count, name, err);
        if (!(m->kinds & HTTP_KIND(rt_json_type(value))))
            return wrong_kind(m, value, err);
        if (!rt_utf8_valid(rt_json_str(value)))
            return rt_fail(err, RT_INVALID, "'%s' has half of a surrogate pair in it", m->name);
    }
    for (size_t i = 0; i < count; i++)
        if (members[i].is_required && rt_json_is_absent(rt_json_get_c(object, members[i].name)))
            return rt_fail(err, RT_INVALID, "'%s' is missing", members[i].name);
    return true;
}

bool http_object(http_request *r, const http_member *members, size_t count, rt_json *out,
                 rt_error *err)
{
    if (rt_str_trim(r->body).len == 0 && (r->operation->flags & HTTP_OPTIONAL_BODY)) {
        *out = (rt_json){ 0 };
        return true;
    }
    return http_json(r, out, err) && http_members_check(*out, members, count, err);
}

bool http_member_u64(rt_json object, const char *name, uint64_t min, uint64_t max, uint64_t *out,
                     rt_error *err)
{
    rt_json value = rt_json_get_c(object, name);
    int64_t number;
    if (rt_json_is_absent(value) || rt_json_type(value) == RT_JSON_NULL)
        return true;
    if (!rt_json_i64(value, &number) || number < 0 || (uint64_t)number < min ||
        (uint64_t)number > max)
        return rt_fail(err, RT_INVALID, "'%s' must be a whole number from %llu to %llu", name,
                       (unsigned long long)min, (unsigned long long)max);
    *out = (uint64_t)number;
    return true;
}

bool http_member_label(rt_json object, const char *name, rt_str *out, rt_error *err)
{
    rt_str text = rt_json_str(rt_json_get_c(object, name));
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] < ' ' || text.ptr[i] == 0x7f)
            return rt_fail(err, RT_INVALID, "'%s' has a control character in it", name);
    if (rt_utf8_length(text) > HTTP_LABEL_MAX)
        return rt_fail(err, RT_INVALID, "'%s' is longer than %d characters", name, HTTP_LABEL_MAX);
    if (text.len > 0)
        *out = text;
    return true;
}

bool http_member_ms(rt_json object, const char *name, uint64_t *out, rt_error *err)
{
    rt_json value = rt_json_get_c(object, name);
    double seconds = 0;
    if (rt_json_is_absent(value) || rt_json_type(value) == RT_JSON_NULL)
        return true;
    if (rt_json_type(value) == RT_JSON_STRING) {
        if (!rt_parse_duration_ms(rt_json_str(value), out, err))
            return rt_wrap(err, "'%s'", name);
    } else if (rt_json_double(value, &seconds) && seconds >= 0 && seconds <= SECONDS_MAX) {
        *out = (uint64_t)(seconds * 1000);
    }
    return *out > 0 ||
           rt_fail(err, RT_INVALID,
                   "'%s' must be a number of seconds above 0, or a text such as 15m", name);
}
