/* SPDX-License-Identifier: Apache-2.0 */
/*
 * str.c - views of text, and numbers in it.
 *
 * {NULL, 0} is a view like any other, so nothing here hands a pointer to memcmp() and friends
 * before it knows that there is a byte to look at.
 */
#include "base/str.h"

#include "base/arena.h"

int rt_str_cmp(rt_str a, rt_str b)
{
    size_t shared = RT_MIN(a.len, b.len);
    int order = shared ? memcmp(a.ptr, b.ptr, shared) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

bool rt_str_starts(rt_str s, rt_str prefix)
{
    return s.len >= prefix.len && rt_str_eq((rt_str){ s.ptr, prefix.len }, prefix);
}

bool rt_str_ends(rt_str s, rt_str suffix)
{
    return s.len >= suffix.len && rt_str_eq(rt_str_slice(s, s.len - suffix.len, s.len), suffix);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

rt_str rt_str_trim(rt_str s)
{
    while (s.len && is_space(s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    while (s.len && is_space(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

ptrdiff_t rt_str_find(rt_str hay, rt_str needle)
{
    if (needle.len == 0)
        return 0;
    if (hay.len < needle.len)
        return -1;
    const char *at = memmem(hay.ptr, hay.len, needle.ptr, needle.len);
    return at ? at - hay.ptr : -1;
}

bool rt_str_cut(rt_str *rest, char sep, rt_str *piece)
{
    if (!rest->ptr)
        return false;
    const char *at = rest->len ? memchr(rest->ptr, sep, rest->len) : NULL;
    if (!at) {
        *piece = *rest;
        *rest = (rt_str){ NULL, 0 };
        return true;
    }
    *piece = (rt_str){ rest->ptr, (size_t)(at - rest->ptr) };
    *rest = (rt_str){ at + 1, rest->len - piece->len - 1 };
    return true;
}

bool rt_str_to_path(rt_str s, rt_arena *arena, const char **out, rt_error *err)
{
    if (s.len == 0 || memchr(s.ptr, '\0', s.len))
        return rt_fail(err, RT_INVALID, "a path is empty or contains a NUL byte");
    *out = rt_arena_copy(arena, s); /* adds the terminator */
    return true;
}

bool rt_str_to_u64(rt_str s, uint64_t *out)
{
    if (s.len == 0)
        return false;
    uint64_t value = 0;
    for (size_t i = 0; i < s.len; i++) {
        unsigned digit = (unsigned char)s.ptr[i] - (unsigned)'0';
        if (digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *out = value;
    return true;
}

bool rt_str_to_i64(rt_str s, int64_t *out)
{
    bool is_negative = s.len && s.ptr[0] == '-';
    uint64_t size;
    if (!rt_str_to_u64(is_negative ? rt_str_slice(s, 1, s.len) : s, &size))
        return false;
    if (size > (uint64_t)INT64_MAX + is_negative)
        return false;
    *out = is_negative ? (int64_t)-size : (int64_t)size;
    return true;
}
