/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.c - path and query, taken apart; and the one range of a Range header.
 *
 * A path is split at '/' before it is decoded, so that "%2F" never makes a segment of its own.
 */
#include "server/target.h"

#include <string.h>

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool target_decode(rt_str raw, bool is_plus_space, rt_arena *arena, rt_str *out, rt_error *err)
{
    char *text = rt_arena_alloc_raw(arena, raw.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < raw.len; i++) {
        char c = raw.ptr[i];
        if (c == '%') {
            bool is_whole = raw.len - i > 2;
            int high = is_whole ? digit_of(raw.ptr[i + 1]) : -1;
            int low = is_whole ? digit_of(raw.ptr[i + 2]) : -1;
            if (high < 0 || low < 0)
                return rt_fail(err, RT_INVALID,
                               "the address has a '%%' without two hexadecimal digits; "
                               "write a percent sign as %%25");
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+' && is_plus_space) {
            c = ' ';
        }
        text[len++] = c;
    }
    text[len] = '\0';
    *out = (rt_str){ text, len };
    if (memchr(text, '\0', len))
        return rt_fail(err, RT_INVALID, "the address has a NUL byte in it");
    if (!rt_utf8_valid(*out))
        return rt_fail(err, RT_INVALID, "the address is not UTF-8");
    return true;
}

static bool add_parameter(rt_str piece, rt_arena *arena, http_target *out, rt_error *err)
{
    rt_str name, rest = piece;
    http_pair *pair = &out->query[out->query_count];
    if (piece.len == 0)
        return true; /* "a=1&&b=2" */
    if (out->query_count == HTTP_QUERY_MAX)
        return rt_fail(err, RT_INVALID, "the query has more than %d parameters", HTTP_QUERY_MAX);
    rt_str_cut(&rest, '=', &name);
    if (!target_decode(name, true, arena, &pair->name, err) ||
        !target_decode(rest, true, arena, &pair->value, err))
        return false;
    out->query_count++;
    return true;
}

static bool parse_path(rt_str raw, rt_arena *arena, http_target *out, rt_error *err)
{
    rt_str rest = rt_str_slice(raw, 1, raw.len), piece;
    if (!target_decode(raw, false, arena, &out->path, err))
        return false;
    while (true) {
        rt_str from_here = rest;
        if (!rt_str_cut(&rest, '/', &piece))
            return true;
        if (out->segment_count == HTTP_SEGMENTS_MAX)
            return rt_fail(err, RT_INVALID, "the path has more than %d segments",
                           HTTP_SEGMENTS_MAX);
        if (!target_decode(piece, false, arena, &out->segments[out->segment_count], err) ||
            !target_decode(from_here, false, arena, &out->rests[out->segment_count], err))
            return false;
        out->segment_count++;
    }
}

/* "http://host/path" is what a client sends to a proxy; we are its end. */
static rt_str without_authority(rt_str raw)
{
    ptrdiff_t at = rt_str_find(raw, RT_STR("://"));
    if (raw.len == 0 || raw.ptr[0] == '/' || at < 0)
        return raw;
    rt_str rest = rt_str_slice(raw, (size_t)at + 3, raw.len);
    const char *slash = memchr(rest.ptr, '/', rest.len);
    return slash ? rt_str_slice(rest, (size_t)(slash - rest.ptr), rest.len) : RT_STR("/");
}

bool target_parse(rt_str raw, rt_arena *arena, http_target *out, rt_error *err)
{
    rt_str path, piece, rest = without_authority(raw);
    out->segment_count = out->query_count = 0;
    if (raw.len > HTTP_TARGET_MAX)
        return rt_fail(err, RT_LIMIT, "the address is longer than %d bytes; send data in a body",
                       HTTP_TARGET_MAX);
    if (rest.len == 0 || rest.ptr[0] != '/')
        return rt_fail(err, RT_INVALID, "the path must begin with '/'");
    for (size_t i = 0; i < rest.len; i++)
        if ((unsigned char)rest.ptr[i] <= ' ' || rest.ptr[i] == 0x7f || rest.ptr[i] == '#')
            return rt_fail(err, RT_INVALID,
                           "the address has a character that must be percent-encoded");
    rt_str_cut(&rest, '?', &path);
    out->raw = path;
    if (!parse_path(path, arena, out, err))
        return false;
    while (rt_str_cut(&rest, '&', &piece))
        if (!add_parameter(piece, arena, out, err))
            return false;
    return true;
}

/* ---- ranges ---- */

http_range_kind target_range(rt_str header, uint64_t size, uint64_t *from, uint64_t *length)
{
    rt_str unit = RT_STR("bytes="), first, last;
    uint64_t begin = 0, end = 0;
    if (!rt_str_starts(header, unit) || memchr(header.ptr, ',', header.len))
        return HTTP_RANGE_NONE;
    last = rt_str_trim(rt_str_slice(header, unit.len, header.len));
    if (!memchr(last.ptr, '-', last.len))
        return HTTP_RANGE_NONE;
    rt_str_cut(&last, '-', &first);
    if (first.len == 0) { /* the last so many */
        if (!rt_str_to_u64(last, &end))
            return HTTP_RANGE_NONE;
        if (end == 0 || size == 0)
            return HTTP_RANGE_UNSATISFIABLE;
        *length = RT_MIN(end, size);
        *from = size - *length;
        return HTTP_RANGE_ONE;
    }
    if (!rt_str_to_u64(first, &begin) || (last.len > 0 && !rt_str_to_u64(last, &end)))
        return HTTP_RANGE_NONE;
    if (last.len > 0 && end < begin)
        return HTTP_RANGE_NONE;
    if (begin >= size)
        return HTTP_RANGE_UNSATISFIABLE;
    *from = begin;
    *length = last.len > 0 && end < size ? end - begin + 1 : size - begin;
    return HTTP_RANGE_ONE;
}
