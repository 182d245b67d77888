/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.c - a growing buffer with a ceiling.
 *
 * What does not fit is not added at all: half a value is worse than none, and the caller will see
 * `failed` before using the text. After the first failure nothing is added, however small.
 */
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"

enum { FIRST_SIZE = 256 };

static size_t maximum(const rt_buf *buf)
{
    return buf->max ? buf->max : RT_BUF_MAX_DEFAULT;
}

void rt_buf_init(rt_buf *buf, size_t max)
{
    *buf = (rt_buf){ .max = max };
}

void rt_buf_done(rt_buf *buf)
{
    free(buf->ptr);
    *buf = (rt_buf){ .max = buf->max };
}

void rt_buf_reset(rt_buf *buf)
{
    buf->len = 0;
    buf->failed = false;
}

static bool grow(rt_buf *buf, size_t n)
{
    if (n > maximum(buf) - buf->len) {
        buf->failed = true;
        return false;
    }
    size_t cap = RT_MAX(buf->cap * 2, (size_t)FIRST_SIZE);
    cap = RT_MIN(RT_MAX(cap, buf->len + n), maximum(buf));
    char *moved = realloc(buf->ptr, cap);
    if (!moved)
        rt_out_of_memory(cap);
    buf->ptr = moved;
    buf->cap = cap;
    return true;
}

char *rt_buf_reserve(rt_buf *buf, size_t n)
{
    if (buf->failed)
        return NULL;
    if (!buf->ptr || n > buf->cap - buf->len)
        if (!grow(buf, n))
            return NULL;
    return buf->ptr + buf->len;
}

void rt_buf_add(rt_buf *buf, rt_str s)
{
    char *at = rt_buf_reserve(buf, s.len);
    if (!at || s.len == 0)
        return;
    memcpy(at, s.ptr, s.len);
    buf->len += s.len;
}

void rt_buf_addc(rt_buf *buf, char c)
{
    char *at = rt_buf_reserve(buf, 1);
    if (!at)
        return;
    *at = c;
    buf->len++;
}

void rt_buf_vaddf(rt_buf *buf, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (len < 0 || (size_t)len > maximum(buf) - buf->len) {
        buf->failed = true;
        return;
    }
    /* vsnprintf() wants room for a terminator, which must not count against the maximum. */
    char small[FIRST_SIZE];
    char *text = (size_t)len < sizeof(small) ? small : malloc((size_t)len + 1);
    if (!text)
        rt_out_of_memory((size_t)len + 1);
    vsnprintf(text, (size_t)len + 1, fmt, args);
    rt_buf_add(buf, (rt_str){ text, (size_t)len });
    if (text != small)
        free(text);
}

void rt_buf_addf(rt_buf *buf, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    rt_buf_vaddf(buf, fmt, args);
    va_end(args);
}

bool rt_buf_ok(const rt_buf *buf, rt_error *err)
{
    if (buf->failed)
        return rt_fail(err, RT_LIMIT, "longer than the maximum of %zu bytes", maximum(buf));
    return true;
}
