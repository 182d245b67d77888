/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache_url.c - "redis://user:password@host:6379/2" and "unix:///run/redis.sock?db=2".
 *
 * Cut from the outside in: scheme, then "?db=", then the database, then the login, then the rest.
 * User, password and path may hold %-escapes. No error quotes what was given.
 */
#include "store/cache_internal.h"

#define URL_BYTES    2048
#define DEFAULT_PORT 6379
#define DB_MAX       65535

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Into `out` as a C string, without its escapes. */
static bool unescape(rt_str text, const char *what, char *out, size_t size, rt_error *err)
{
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        int c = (unsigned char)text.ptr[i];
        if (c == '%') {
            int high = i + 2 < text.len ? hex_digit(text.ptr[i + 1]) : -1;
            int low = i + 2 < text.len ? hex_digit(text.ptr[i + 2]) : -1;
            if (high < 0 || low < 0)
                return rt_fail(err, RT_INVALID, "%s has a '%%' without two hex digits", what);
            c = high << 4 | low;
            i += 2;
        }
        if (c == '\0')
            return rt_fail(err, RT_INVALID, "%s contains a NUL byte", what);
        if (len + 1 >= size)
            return rt_fail(err, RT_INVALID, "%s is longer than %zu bytes", what, size - 1);
        out[len++] = (char)c;
    }
    out[len] = '\0';
    return true;
}

/* Takes what is after the first `mark` off the end of `text`. */
static bool cut_tail(rt_str *text, char mark, rt_str *tail)
{
    const char *at = text->len ? memchr(text->ptr, mark, text->len) : NULL;
    if (!at)
        return false;
    size_t before = (size_t)(at - text->ptr);
    *tail = rt_str_slice(*text, before + 1, text->len);
    *text = rt_str_slice(*text, 0, before);
    return true;
}

static bool read_number(rt_str text, const char *what, uint64_t max, unsigned *out, rt_error *err)
{
    uint64_t number;
    if (!rt_str_to_u64(text, &number) || number > max)
        return rt_fail(err, RT_INVALID, "%s must be a number up to %u", what, (unsigned)max);
    *out = (unsigned)number;
    return true;
}

static bool read_db(rt_str text, store_redis_url *out, rt_error *err)
{
    return read_number(text, "the database", DB_MAX, &out->db, err);
}

static bool read_query(rt_str query, store_redis_url *out, rt_error *err)
{
    if (!rt_str_starts(query, RT_STR("db=")))
        return rt_fail(err, RT_INVALID, "after '?' only db=<number> is known");
    return read_db(rt_str_slice(query, 3, query.len), out, err);
}

/* Takes "user:password@" off the front, which ends at `at`. */
static bool take_login(rt_str *rest, ptrdiff_t at, store_redis_url *out, rt_error *err)
{
    if (at < 0)
        return true;
    rt_str user = rt_str_slice(*rest, 0, (size_t)at), password;
    *rest = rt_str_slice(*rest, user.len + 1, rest->len);
    if (!cut_tail(&user, ':', &password) || password.len == 0)
        return rt_fail(err, RT_INVALID, "before '@' must be [user]:password");
    return unescape(user, "the user", out->user, sizeof(out->user), err) &&
           unescape(password, "the password", out->password, sizeof(out->password), err);
}

static bool read_host(rt_str host, store_redis_url *out, rt_error *err)
{
    rt_str port = { 0 };
    out->port = DEFAULT_PORT;
    if (host.len && host.ptr[0] == '[') { /* an IPv6 address has colons of its own */
        rt_str after;
        host = rt_str_slice(host, 1, host.len);
        if (!cut_tail(&host, ']', &after) || (after.len && after.ptr[0] != ':'))
            return rt_fail(err, RT_INVALID, "after '[' an address, ']' and perhaps :port");
        if (after.len)
            port = rt_str_slice(after, 1, after.len);
    } else {
        cut_tail(&host, ':', &port);
    }
    if (port.ptr && !read_number(port, "the port", 65535, &out->port, err))
        return false;
    if (host.len == 0 || out->port == 0)
        return rt_fail(err, RT_INVALID, "there must be a host, and its port is not 0");
    return unescape(host, "the host", out->host, sizeof(out->host), err);
}

static ptrdiff_t find_last(rt_str text, char c)
{
    const char *at = text.len ? memrchr(text.ptr, c, text.len) : NULL;
    return at ? at - text.ptr : -1;
}

/* '@' and '/' count where they come last: a password may hold some that are not escaped. */
static bool read_tcp(rt_str rest, store_redis_url *out, rt_error *err)
{
    ptrdiff_t slash = find_last(rest, '/'), at = find_last(rest, '@');
    if (slash > at) {
        rt_str db = rt_str_slice(rest, (size_t)slash + 1, rest.len);
        rest = rt_str_slice(rest, 0, (size_t)slash);
        if (db.len && !read_db(db, out, err))
            return false;
    }
    return take_login(&rest, at, out, err) && read_host(rest, out, err);
}

static bool read_unix(rt_str rest, store_redis_url *out, rt_error *err)
{
    ptrdiff_t at = rt_str_starts(rest, RT_STR("/")) ? -1 : rt_str_find(rest, RT_STR("@/"));
    if (!take_login(&rest, at, out, err))
        return false;
    if (rest.len < 2 || rest.ptr[0] != '/')
        return rt_fail(err, RT_INVALID, "the path of a Unix socket must begin with '/'");
    return unescape(rest, "the path", out->path, sizeof(out->path), err);
}

static bool refuse_tls(rt_str rest, store_redis_url *out, rt_error *err)
{
    (void)rest;
    (void)out;
    return rt_fail(err, RT_UNSUPPORTED,
                   "rediss:// (TLS) is not supported; use redis:// or unix:// to a local tunnel");
}

static const struct {
    rt_str prefix;
    bool (*read)(rt_str rest, store_redis_url *out, rt_error *err);
} schemes[] = {
    { { "redis://", 8 }, read_tcp },
    { { "unix://", 7 }, read_unix },
    { { "rediss://", 9 }, refuse_tls },
};

static bool read_url(rt_str text, store_redis_url *out, rt_error *err)
{
    if (text.len > URL_BYTES)
        return rt_fail(err, RT_INVALID, "it is longer than %u bytes", (unsigned)URL_BYTES);
    for (size_t i = 0; i < RT_COUNT(schemes); i++) {
        if (!rt_str_starts(text, schemes[i].prefix))
            continue;
        rt_str rest = rt_str_slice(text, schemes[i].prefix.len, text.len), query;
        if (cut_tail(&rest, '?', &query) && !read_query(query, out, err))
            return false;
        return schemes[i].read(rest, out, err);
    }
    return rt_fail(err, RT_INVALID, "it must begin with redis:// or unix://");
}

bool store_redis_url_parse(rt_str text, store_redis_url *out, rt_error *err)
{
    store_redis_url url = { 0 };
    bool ok = read_url(text, &url, err);
    if (ok)
        *out = url;
    explicit_bzero(&url, sizeof(url));
    return ok || rt_wrap(err, "the Redis URL");
}
