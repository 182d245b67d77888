/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nearest.h - "did you mean ...?": the known word that is nearest to a wrong one.
 *
 * Promise: a suggestion is near enough to help (two letters, and one more for every four), or there
 * is none. Nothing is allocated.
 *
 *     rt_nearest near;
 *     char hint[RT_NEAREST_HINT];
 *     rt_nearest_start(&near, wrong);
 *     for (size_t i = 0; i < RT_COUNT(known); i++)
 *         rt_nearest_try(&near, rt_str_of(known[i]));
 *     return rt_fail(err, RT_INVALID, "unknown key%s", rt_nearest_hint(&near, "", hint));
 */
#ifndef RT_BASE_NEAREST_H
#define RT_BASE_NEAREST_H

#include "base/str.h"

#define RT_NEAREST_MAX  64 /* words that are longer are near to none */
#define RT_NEAREST_HINT 128

typedef struct rt_nearest {
    rt_str wrong;
    size_t distance; /* of the best so far */
    char best[RT_NEAREST_MAX];
} rt_nearest;

void rt_nearest_start(rt_nearest *n, rt_str wrong);
void rt_nearest_try(rt_nearest *n, rt_str candidate);

/* "; did you mean <best>?", or `otherwise` when nothing is near. Returns `out`. */
const char *rt_nearest_hint(const rt_nearest *n, const char *otherwise, char out[RT_NEAREST_HINT]);

#endif
