/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.h - what went wrong, for programs and for people.
 *
 * Promise: an rt_error owns no memory, so it can be copied, sent through a pipe, and filled in
 * when nothing else works any more. Its text is terminated, and never cut inside a character.
 *
 *     if (fd < 0)
 *         return rt_fail_errno(err, "open %s", path);        // "open /x: No such file or
 * directory" if (!read_header(fd, err)) return rt_wrap(err, "file %s", path);              // "file
 * /x: the header is missing"
 *
 * The functions that report return false, and accept err == NULL from those who do not care.
 */
#ifndef RT_BASE_ERROR_H
#define RT_BASE_ERROR_H

#include <stdbool.h>

#include "base/macros.h"

typedef enum rt_code {
    RT_OK = 0,
    RT_INVALID,     /* 400: the request makes no sense */
    RT_DENIED,      /* 403: it makes sense, and the answer is no */
    RT_NOT_FOUND,   /* 404 */
    RT_CONFLICT,    /* 409: not in this state, or it exists already */
    RT_LIMIT,       /* 413: too big, too many, too deep */
    RT_TIMEOUT,     /* 504 */
    RT_UNSUPPORTED, /* 422: it makes sense, and we do not do that */
    RT_TOO_MANY,    /* 429: as many as there may be; fewer, or later */
    RT_UNAVAILABLE, /* 503: not now */
    RT_CANCELLED,   /* 499: the caller went away or asked us to stop */
    RT_SYSTEM,      /* 500: the kernel refused, see sys_errno */
    RT_INTERNAL,    /* 500: our own mistake */
} rt_code;

typedef struct rt_error {
    rt_code code;   /* for programs: RT_INVALID, RT_DENIED, RT_LIMIT...; one HTTP status each */
    int sys_errno;  /* what the kernel said, or 0 */
    char text[240]; /* for people: "start box 7: mount /work: Permission denied" */
} rt_error;

/* Report a failure of our own judgement. */
bool rt_fail(rt_error *err, rt_code code, const char *fmt, ...) RT_PRINTF(3, 4);

/* Report what errno says: adds ": <its description>" and chooses the code from it. */
bool rt_fail_errno(rt_error *err, const char *fmt, ...) RT_PRINTF(2, 3);

/* Say what we were doing when it happened: puts "<fmt>: " before the text that is there. */
bool rt_wrap(rt_error *err, const char *fmt, ...) RT_PRINTF(2, 3);

int rt_code_http(rt_code code);          /* RT_NOT_FOUND: 404 */
const char *rt_code_name(rt_code code);  /* RT_NOT_FOUND: "not_found" */
rt_code rt_code_of_errno(int sys_errno); /* ENOENT: RT_NOT_FOUND */

#endif
