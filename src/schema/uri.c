/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uri.c - a reference against its base, as RFC 3986 section 5.2 has it.
 */
#include "schema/schema_internal.h"

typedef struct parts {
    rt_str scheme, authority, path, query;
    bool has_scheme, has_authority, has_query;
} parts;

rt_str schema_uri_without_fragment(rt_str uri, rt_str *fragment)
{
    const char *hash = uri.len ? memchr(uri.ptr, '#', uri.len) : NULL;
    size_t at = hash ? (size_t)(hash - uri.ptr) : uri.len;
    *fragment = hash ? rt_str_slice(uri, at + 1, uri.len) : (rt_str){ NULL, 0 };
    return rt_str_slice(uri, 0, at);
}

static bool is_scheme_char(char c, size_t i)
{
    char lower = c | 0x20;
    if (lower >= 'a' && lower <= 'z')
        return true;
    return i > 0 && ((c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.');
}

/* Without its fragment. */
static parts split(rt_str uri)
{
    parts out = { 0 };
    size_t i = 0;
    while (i < uri.len && is_scheme_char(uri.ptr[i], i))
        i++;
    if (i > 0 && i < uri.len && uri.ptr[i] == ':') {
        out.has_scheme = true;
        out.scheme = rt_str_slice(uri, 0, i);
        uri = rt_str_slice(uri, i + 1, uri.len);
    }
    if (rt_str_starts(uri, RT_STR("//"))) {
        size_t end = 2;
        while (end < uri.len && uri.ptr[end] != '/' && uri.ptr[end] != '?')
            end++;
        out.has_authority = true;
        out.authority = rt_str_slice(uri, 2, end);
        uri = rt_str_slice(uri, end, uri.len);
    }
    const char *mark = uri.len ? memchr(uri.ptr, '?', uri.len) : NULL;
    size_t end = mark ? (size_t)(mark - uri.ptr) : uri.len;
    out.path = rt_str_slice(uri, 0, end);
    out.has_query = mark != NULL;
    out.query = rt_str_slice(uri, end + 1, uri.len);
    return out;
}

/* "/a/b/../c" to "/a/c". Writes no more than it reads. */
static rt_str without_dots(rt_str path, rt_arena *arena)
{
    char *out = rt_arena_alloc_raw(arena, path.len + 1);
    size_t len = 0;
    bool is_rooted = path.len && path.ptr[0] == '/';
    rt_str rest = path, piece;
    bool is_first = true, ends_open = false;
    while (rt_str_cut(&rest, '/', &piece)) {
        if (is_first && is_rooted) {
            is_first = false;
            continue; /* the empty piece before the first slash */
        }
        is_first = false;
        ends_open = rt_str_eq_c(piece, ".") || rt_str_eq_c(piece, "..");
        if (rt_str_eq_c(piece, "..")) {
            while (len > 0 && out[len - 1] != '/')
                len--;
            len -= len > 0;
        } else if (!ends_open) {
            if (len > 0 || is_rooted)
                out[len++] = '/';
            memcpy(out + len, piece.ptr, piece.len);
            len += piece.len;
        }
    }
    if (ends_open && (len > 0 || is_rooted))
        out[len++] = '/';
    return (rt_str){ out, len };
}

/* The base's path up to its last slash, and the reference's behind it. */
static rt_str merged(const parts *base, rt_str path, rt_arena *arena)
{
    if (base->has_authority && base->path.len == 0)
        return rt_arena_printf(arena, "/%.*s", RT_FMT(path));
    size_t end = base->path.len;
    while (end > 0 && base->path.ptr[end - 1] != '/')
        end--;
    return rt_arena_printf(arena, "%.*s%.*s", (int)end, base->path.ptr, RT_FMT(path));
}

static rt_str put_together(const parts *p, rt_arena *arena)
{
    return rt_arena_printf(arena, "%.*s%s%s%.*s%.*s%s%.*s", RT_FMT(p->scheme),
                           p->has_scheme ? ":" : "", p->has_authority ? "//" : "",
                           RT_FMT(p->authority), RT_FMT(p->path), p->has_query ? "?" : "",
                           RT_FMT(p->query));
}

rt_str schema_uri_resolve(rt_str base_text, rt_str ref, rt_arena *arena)
{
    parts base = split(base_text), out = split(ref);
    if (!out.has_scheme) {
        if (!out.has_authority) {
            if (out.path.len == 0) {
                out.path = base.path;
                if (!out.has_query) {
                    out.has_query = base.has_query;
                    out.query = base.query;
                }
            } else if (out.path.ptr[0] != '/') {
                out.path = merged(&base, out.path, arena);
            }
            out.has_authority = base.has_authority;
            out.authority = base.authority;
        }
        out.has_scheme = base.has_scheme;
        out.scheme = base.scheme;
    }
    if (out.has_authority || (out.path.len && out.path.ptr[0] == '/') || !out.has_scheme)
        out.path = without_dots(out.path, arena);
    return put_together(&out, arena);
}

static int hex_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    char lower = c | 0x20;
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

rt_str schema_uri_decoded(rt_str text, rt_arena *arena)
{
    if (text.len == 0 || !memchr(text.ptr, '%', text.len))
        return text;
    char *out = rt_arena_alloc_raw(arena, text.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        bool is_escape = text.ptr[i] == '%' && i + 2 < text.len && hex_of(text.ptr[i + 1]) >= 0 &&
                         hex_of(text.ptr[i + 2]) >= 0;
        if (is_escape) {
            out[len++] = (char)(hex_of(text.ptr[i + 1]) << 4 | hex_of(text.ptr[i + 2]));
            i += 2;
        } else {
            out[len++] = text.ptr[i];
        }
    }
    return (rt_str){ out, len };
}
