/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.c - filling in an rt_error.
 *
 * The text has a fixed size, so composing it is mostly deciding what to leave out. The rule: what
 * happened last (the prefix) stays whole unless it takes more than half, the rest is cut with
 * "...", and no cut falls inside a UTF-8 sequence.
 *
 * Here: no malloc and no locale. A child between clone() and exec() reports through this file.
 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

enum { TEXT_SIZE = sizeof(((rt_error *)0)->text), ROOM = TEXT_SIZE - 1 };

static const struct {
    const char *name;
    int http;
} codes[] = {
    [RT_OK] = { "ok", 200 },
    [RT_INVALID] = { "invalid", 400 },
    [RT_DENIED] = { "denied", 403 },
    [RT_NOT_FOUND] = { "not_found", 404 },
    [RT_CONFLICT] = { "conflict", 409 },
    [RT_LIMIT] = { "limit", 413 },
    [RT_TIMEOUT] = { "timeout", 504 },
    [RT_UNSUPPORTED] = { "unsupported", 422 },
    [RT_TOO_MANY] = { "too_many", 429 },
    [RT_UNAVAILABLE] = { "unavailable", 503 },
    [RT_CANCELLED] = { "cancelled", 499 },
    [RT_SYSTEM] = { "system", 500 },
    [RT_INTERNAL] = { "internal", 500 },
};

int rt_code_http(rt_code code)
{
    return (unsigned)code < RT_COUNT(codes) ? codes[code].http : 500;
}

const char *rt_code_name(rt_code code)
{
    return (unsigned)code < RT_COUNT(codes) ? codes[code].name : "internal";
}

rt_code rt_code_of_errno(int sys_errno)
{
    switch (sys_errno) {
    case ENOENT:
    case ESRCH:
    case ENXIO:
        return RT_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return RT_DENIED;
    case EEXIST:
    case EBUSY:
    case ENOTEMPTY:
    case EADDRINUSE:
        return RT_CONFLICT;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case E2BIG:
        return RT_LIMIT;
    case ENAMETOOLONG:
    case ELOOP:
    case ENOTDIR:
    case EISDIR:
        return RT_INVALID;
    case ETIMEDOUT:
        return RT_TIMEOUT;
    case ENOSYS:
    case EOPNOTSUPP:
    case EPROTONOSUPPORT:
    case EAFNOSUPPORT:
        return RT_UNSUPPORTED;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case EPIPE:
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case ENETUNREACH:
        return RT_UNAVAILABLE;
    case ECANCELED:
    case EINTR:
        return RT_CANCELLED;
    default:
        return RT_SYSTEM;
    }
}

/* Where to cut `text` so that at most `max` bytes stay and no character is split. */
static size_t cut_point(const char *text, size_t max)
{
    size_t back = 0;
    while (back < 3 && back < max && ((uint8_t)text[max - back] & 0xC0) == 0x80)
        back++;
    /* Not a continuation byte after three steps back: it was no UTF-8 anyway, cut where asked. */
    return ((uint8_t)text[max - back] & 0xC0) == 0x80 ? max : max - back;
}

/* Copy into out, which has room for `max` bytes and a terminator. */
static size_t put_cut(char *out, const char *text, size_t len, size_t max)
{
    if (len > max) {
        len = cut_point(text, max - 3);
        memcpy(out, text, len);
        memcpy(out + len, "...", 3);
        len += 3;
    } else {
        memcpy(out, text, len);
    }
    out[len] = '\0';
    return len;
}

/* Format, then put "<formatted>: <tail>" into the text; a NULL tail leaves out the colon. */
RT_PRINTF(2, 0)
static void compose(rt_error *err, const char *fmt, va_list args, const char *tail)
{
    char head[2 * TEXT_SIZE] = "";
    int wanted = vsnprintf(head, sizeof(head), fmt, args);
    size_t head_len = wanted < 0 ? 0 : RT_MIN((size_t)wanted, sizeof(head) - 1);
    if (!tail) {
        put_cut(err->text, head, head_len, ROOM);
        return;
    }
    size_t tail_len = strlen(tail);
    size_t head_max = tail_len + 2 >= ROOM / 2 ? ROOM / 2 : ROOM - 2 - tail_len;
    size_t used = put_cut(err->text, head, head_len, head_max);
    memcpy(err->text + used, ": ", 2);
    used += 2;
    put_cut(err->text + used, tail, tail_len, ROOM - used);
}

bool rt_fail(rt_error *err, rt_code code, const char *fmt, ...)
{
    if (!err)
        return false;
    err->code = code;
    err->sys_errno = 0;
    va_list args;
    va_start(args, fmt);
    compose(err, fmt, args, NULL);
    va_end(args);
    return false;
}

bool rt_fail_errno(rt_error *err, const char *fmt, ...)
{
    int sys_errno = errno;
    if (!err)
        return false;
    err->code = rt_code_of_errno(sys_errno);
    err->sys_errno = sys_errno;
    /* Unlike strerror(): constant text, not translated, and safe after clone(). */
    const char *description = strerrordesc_np(sys_errno);
    va_list args;
    va_start(args, fmt);
    compose(err, fmt, args, description ? description : "unknown error");
    va_end(args);
    errno = sys_errno;
    return false;
}

bool rt_wrap(rt_error *err, const char *fmt, ...)
{
    if (!err)
        return false;
    char tail[TEXT_SIZE];
    memcpy(tail, err->text, sizeof(tail));
    tail[ROOM] = '\0';
    va_list args;
    va_start(args, fmt);
    compose(err, fmt, args, tail);
    va_end(args);
    return false;
}
