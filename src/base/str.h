/* SPDX-License-Identifier: Apache-2.0 */
/*
 * str.h - text as a pointer and a length.
 *
 * Promise: nothing here allocates (but rt_str_to_path, into the arena it is given), looks past
 * the length, or depends on the locale. A view may contain any byte, NUL included. {NULL, 0} is
 * a valid empty view.
 *
 *     rt_str rest = RT_STR("a=1&b=2"), piece;
 *     while (rt_str_cut(&rest, '&', &piece))
 *         printf("%.*s\n", RT_FMT(piece));
 */
#ifndef RT_BASE_STR_H
#define RT_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"

typedef struct rt_str {
    const char *ptr;
    size_t len;
} rt_str; /* a view, passed by value */

typedef struct rt_arena rt_arena;

#define RT_STR(literal) ((rt_str){ "" literal, sizeof(literal) - 1 })
#define RT_FMT(s)       (int)(s).len, (s).ptr /* for "%.*s" */

/* A view of a C string; NULL gives the empty view. */
static inline rt_str rt_str_of(const char *text)
{
    return (rt_str){ text, text ? strlen(text) : 0 };
}

static inline bool rt_str_eq(rt_str a, rt_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool rt_str_eq_c(rt_str a, const char *text)
{
    return rt_str_eq(a, rt_str_of(text));
}

/* Order by bytes, which for UTF-8 is the order of code points: <0, 0, >0. */
int rt_str_cmp(rt_str a, rt_str b);

bool rt_str_starts(rt_str s, rt_str prefix);
bool rt_str_ends(rt_str s, rt_str suffix);

/* Without the spaces, tabs and line ends around it. */
rt_str rt_str_trim(rt_str s);

/* Where `needle` first begins in `hay`, or -1. The empty needle is found at 0. */
ptrdiff_t rt_str_find(rt_str hay, rt_str needle);

/* The bytes from..to-1; positions past the end mean the end. */
static inline rt_str rt_str_slice(rt_str s, size_t from, size_t to)
{
    to = to < s.len ? to : s.len;
    from = from < to ? from : to;
    return (rt_str){ s.ptr ? s.ptr + from : NULL, to - from };
}

/*
 * Split step by step: takes the piece before the next `sep` off `rest`. "a,b," gives "a", "b", "";
 * "" gives one empty piece, as {NULL, 0} gives none; that is also what `rest` is at the end.
 */
bool rt_str_cut(rt_str *rest, char sep, rt_str *piece);

/* The door from text to file names: refuses the empty string and NUL bytes. */
bool rt_str_to_path(rt_str s, rt_arena *arena, const char **out, rt_error *err);

/* Decimal digits only, the whole text, no overflow. rt_str_to_i64 allows one leading '-'. */
bool rt_str_to_u64(rt_str s, uint64_t *out);
bool rt_str_to_i64(rt_str s, int64_t *out);

/* Strict UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. */
bool rt_utf8_valid(rt_str s);

/* How many code points valid UTF-8 holds (in other text: bytes that do not continue one). */
size_t rt_utf8_length(rt_str s);

/*
 * The size of the valid sequence `s` starts with, 1 to 4. 0: it starts with none, and *bad is
 * how many bytes make up the faulty one (what one U+FFFD stands for), at least 1.
 * `s` must not be empty; `bad` may be NULL.
 */
size_t rt_utf8_step(rt_str s, size_t *bad);

/* Write the code point as UTF-8 (surrogates too, as WTF-8 does); returns 1 to 4. */
size_t rt_utf8_put(char out[4], uint32_t code_point);

#endif
