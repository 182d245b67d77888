/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.h - what stands behind the method in a request line: path and query, taken apart.
 *
 * Promise: a path or parameter that comes out is UTF-8 without NUL, and percent-encoding was read
 * exactly once. Anything else is RT_INVALID; more than the named limits is RT_LIMIT.
 */
#ifndef RT_SERVER_TARGET_H
#define RT_SERVER_TARGET_H

#include "server/http.h"

typedef struct http_target {
    rt_str path;                        /* decoded as a whole, to be shown */
    rt_str raw;                         /* the path as it was sent */
    rt_str segments[HTTP_SEGMENTS_MAX]; /* decoded one by one; "/" has one, empty */
    size_t segment_count;
    rt_str rests[HTTP_SEGMENTS_MAX]; /* what stands from segment i on, decoded */
    http_pair query[HTTP_QUERY_MAX];
    size_t query_count;
} http_target;

bool target_parse(rt_str raw, rt_arena *arena, http_target *out, rt_error *err);

/* "%41" becomes "A"; '+' a space where that is the custom (in queries). */
bool target_decode(rt_str raw, bool is_plus_space, rt_arena *arena, rt_str *out, rt_error *err);

/* One range of bytes out of "bytes=0-99", "bytes=100-", "bytes=-5". */
typedef enum http_range_kind {
    HTTP_RANGE_NONE, /* not ours to understand, or several: the whole is sent */
    HTTP_RANGE_ONE,
    HTTP_RANGE_UNSATISFIABLE,
} http_range_kind;

http_range_kind target_range(rt_str header, uint64_t size, uint64_t *from, uint64_t *length);

#endif
