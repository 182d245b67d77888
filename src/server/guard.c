/* SPDX-License-Identifier: Apache-2.0 */
/* guard.c - decides by Host, Origin and Sec-Fetch-Site; see guard.h for what it guards against. */
#include "server/guard.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_LEN 253

static bool same_text(rt_str a, rt_str b)
{
    return a.len == b.len && (a.len == 0 || strncasecmp(a.ptr, b.ptr, a.len) == 0);
}

bool guard_split_host(rt_str header, rt_str *name, rt_str *port)
{
    uint64_t number;
    const char *end;
    size_t at;
    *port = (rt_str){ 0 };
    if (header.len > 0 && header.ptr[0] == '[') {
        end = memchr(header.ptr, ']', header.len);
        at = end ? (size_t)(end - header.ptr) + 1 : 0;
    } else {
        end = memchr(header.ptr ? header.ptr : "", ':', header.len);
        at = end ? (size_t)(end - header.ptr) : header.len;
    }
    if (at == 0 || at > NAME_MAX_LEN)
        return false;
    *name = rt_str_slice(header, 0, at);
    for (size_t i = 0; i < name->len; i++)
        if ((unsigned char)name->ptr[i] <= ' ' || strchr("/\\@?#%", name->ptr[i]))
            return false;
    if (at == header.len)
        return true;
    *port = rt_str_slice(header, at + 1, header.len);
    return header.ptr[at] == ':' && rt_str_to_u64(*port, &number) && number <= 65535;
}

bool guard_is_loopback(rt_str name)
{
    char text[NAME_MAX_LEN + 1];
    struct in_addr four;
    struct in6_addr six;
    if (same_text(name, RT_STR("localhost")))
        return true;
    if (name.len > 2 && name.ptr[0] == '[' && name.ptr[name.len - 1] == ']')
        name = rt_str_slice(name, 1, name.len - 1);
    if (name.len >= sizeof(text) || memchr(name.ptr ? name.ptr : "", '\0', name.len))
        return false;
    memcpy(text, name.ptr ? name.ptr : "", name.len);
    text[name.len] = '\0';
    if (inet_pton(AF_INET, text, &four) == 1)
        return ntohl(four.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, text, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

static bool has_text(const rt_str *list, size_t count, rt_str text)
{
    for (size_t i = 0; i < count; i++)
        if (same_text(list[i], text))
            return true;
    return false;
}

/* "https://name:port" to its scheme and what is behind it. */
static bool split_origin(rt_str origin, rt_str *scheme, rt_str *name, rt_str *port)
{
    ptrdiff_t at = rt_str_find(origin, RT_STR("://"));
    if (at <= 0)
        return false;
    *scheme = rt_str_slice(origin, 0, (size_t)at);
    rt_str rest = rt_str_slice(origin, (size_t)at + 3, origin.len);
    while (rest.len > 0 && rest.ptr[rest.len - 1] == '/')
        rest.len--; /* of a URL; an Origin has none */
    if (!guard_split_host(rest, name, port))
        return false;
    if (port->len == 0)
        *port = same_text(*scheme, RT_STR("https")) ? RT_STR("443") : RT_STR("80");
    return same_text(*scheme, RT_STR("http")) || same_text(*scheme, RT_STR("https"));
}

bool guard_is_allowed_origin(const guard_rules *rules, rt_str origin)
{
    return origin.len > 0 &&
           (has_text(rules->allowed_origins, rules->allowed_origin_count, origin) ||
            has_text(rules->allowed_origins, rules->allowed_origin_count, RT_STR("*")));
}

/* A page we served ourselves: its origin is the name it called us by, or our public address. */
static bool is_own_origin(const guard_rules *rules, rt_str origin, rt_str host)
{
    rt_str scheme, name, port, host_name, host_port, url_scheme, url_name, url_port;
    if (!split_origin(origin, &scheme, &name, &port))
        return false;
    if (split_origin(rules->public_url, &url_scheme, &url_name, &url_port) &&
        same_text(scheme, url_scheme) && same_text(name, url_name) && rt_str_eq(port, url_port))
        return true;
    if (!guard_split_host(host, &host_name, &host_port))
        return false;
    if (host_port.len == 0)
        host_port = same_text(scheme, RT_STR("https")) ? RT_STR("443") : RT_STR("80");
    return same_text(name, host_name) && rt_str_eq(port, host_port);
}

static bool check_host(const guard_rules *rules, rt_str host, rt_error *err)
{
    rt_str name, port;
    if (!guard_split_host(host, &name, &port))
        return rt_fail(err, RT_DENIED, "the Host header is missing or is no name");
    if (guard_is_loopback(name) || has_text(rules->allowed_hosts, rules->allowed_host_count, name))
        return true;
    return rt_fail(err, RT_DENIED,
                   "Host '%.*s' is not this machine; without keys only localhost is answered "
                   "(allow a name with the setting allowed_hosts)",
                   (int)RT_MIN(name.len, (size_t)60), name.ptr);
}

bool guard_check(const guard_rules *rules, const guard_visit *visit, rt_error *err)
{
    if (rules->is_local && !check_host(rules, visit->host, err))
        return false;
    if (visit->origin.ptr)
        return guard_is_allowed_origin(rules, visit->origin) ||
               is_own_origin(rules, visit->origin, visit->host) ||
               rt_fail(err, RT_DENIED,
                       "pages of '%.*s' may not call this server "
                       "(allow them with the setting allowed_origins)",
                       (int)RT_MIN(visit->origin.len, (size_t)80), visit->origin.ptr);
    if (rt_str_eq_c(visit->fetch_site, "cross-site") && !visit->is_page)
        return rt_fail(err, RT_DENIED, "a foreign page may not call this server");
    return true;
}
