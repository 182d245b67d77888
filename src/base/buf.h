/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.h - build text of unknown length, up to a maximum.
 *
 * Promise: it never grows past its maximum; it keeps its first failure and ignores what is added
 * after it, so one check at the end is enough. Zero bytes are a ready buffer.
 *
 *     rt_buf body RT_CLEANUP(rt_buf_done) = {0};
 *     rt_buf_add(&body, RT_STR("hello "));
 *     rt_buf_addf(&body, "%u", id);
 *     if (!rt_buf_ok(&body, err))
 *         return rt_wrap(err, "the answer");
 *     rt_write_all(fd, rt_buf_str(&body), err);
 */
#ifndef RT_BASE_BUF_H
#define RT_BASE_BUF_H

#include <stdarg.h>

#include "base/str.h"

#define RT_BUF_MAX_DEFAULT ((size_t)64 << 20)

typedef struct rt_buf {
    char *ptr;
    size_t len, cap;
    size_t max;  /* 0: RT_BUF_MAX_DEFAULT */
    bool failed; /* something did not fit */
} rt_buf;

void rt_buf_init(rt_buf *buf, size_t max);
void rt_buf_done(rt_buf *buf);  /* releases the memory; the buffer is as new, with its maximum */
void rt_buf_reset(rt_buf *buf); /* empty and not failed; keeps the memory */

void rt_buf_add(rt_buf *buf, rt_str s);
void rt_buf_addc(rt_buf *buf, char c);
void rt_buf_addf(rt_buf *buf, const char *fmt, ...) RT_PRINTF(2, 3);
void rt_buf_vaddf(rt_buf *buf, const char *fmt, va_list args) RT_PRINTF(2, 0);

/* Room for n more bytes, or NULL. Write there, then add to buf->len what you wrote. */
char *rt_buf_reserve(rt_buf *buf, size_t n);

/* What is there; good until the next addition. */
static inline rt_str rt_buf_str(const rt_buf *buf)
{
    return (rt_str){ buf->ptr ? buf->ptr : "", buf->len };
}

/* False with RT_LIMIT, naming the maximum, when something did not fit. */
bool rt_buf_ok(const rt_buf *buf, rt_error *err);

#endif
