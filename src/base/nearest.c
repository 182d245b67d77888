/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nearest.c - "did you mean …?".
 *
 * The distance counts letters put in, left out, changed or swapped with their neighbour, in either
 * case and with '-' as '_'. A key without its section ("port") is near to the key ("server.port").
 */
#include "base/nearest.h"

#include <stdio.h>

#define SHORT_FORM 3 /* letters with which a word can be begun and still be meant */

static char plain(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c == '-' ? '_' : c;
}

static bool is_same(char a, char b)
{
    return plain(a) == plain(b);
}

/* Both are shorter than RT_NEAREST_MAX. Anything from `enough` on may come back as `enough`. */
static size_t distance(rt_str a, rt_str b, size_t enough)
{
    if (RT_MAX(a.len, b.len) - RT_MIN(a.len, b.len) >= enough)
        return enough;
    size_t rows[3][RT_NEAREST_MAX];
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= b.len; j++)
        last[j] = before[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        now[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t changed = last[j - 1] + !is_same(a.ptr[i - 1], b.ptr[j - 1]);
            size_t gap = RT_MIN(last[j], now[j - 1]) + 1;
            now[j] = RT_MIN(changed, gap);
            if (i > 1 && j > 1 && is_same(a.ptr[i - 1], b.ptr[j - 2]) &&
                is_same(a.ptr[i - 2], b.ptr[j - 1]))
                now[j] = RT_MIN(now[j], before[j - 2] + 1);
        }
        size_t *spare = before;
        before = last, last = now, now = spare;
    }
    return last[b.len];
}

void rt_nearest_start(rt_nearest *n, rt_str wrong)
{
    *n = (rt_nearest){ .wrong = wrong, .distance = 2 + wrong.len / 4 };
}

void rt_nearest_try(rt_nearest *n, rt_str candidate)
{
    if (n->wrong.len >= RT_NEAREST_MAX || candidate.len >= RT_NEAREST_MAX || n->wrong.len == 0)
        return;
    size_t far = distance(n->wrong, candidate, n->distance);
    const char *dot = memrchr(candidate.ptr, '.', candidate.len);
    if (dot) {
        rt_str leaf = rt_str_slice(candidate, (size_t)(dot + 1 - candidate.ptr), candidate.len);
        far = RT_MIN(far, distance(n->wrong, leaf, n->distance) + 1);
    }
    if (n->wrong.len >= SHORT_FORM && rt_str_starts(candidate, n->wrong))
        far = RT_MIN(far, (size_t)1); /* "mem" for "memory" */
    if (far >= n->distance)
        return;
    n->distance = far;
    snprintf(n->best, sizeof(n->best), "%.*s", RT_FMT(candidate));
}

const char *rt_nearest_hint(const rt_nearest *n, const char *otherwise, char out[RT_NEAREST_HINT])
{
    if (n->best[0])
        snprintf(out, RT_NEAREST_HINT, "; did you mean %s?", n->best);
    else
        snprintf(out, RT_NEAREST_HINT, "%s", otherwise);
    return out;
}
