/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - lines for the operator, on standard error.
 *
 * Promise: one call, one line, one write(2). A message cannot forge a second line or colour the
 * terminal: control characters and broken UTF-8 are escaped. Longer ones are cut, and say so.
 *
 *     rt_log(RT_LOG_INFO, "listening on %s", address);
 *     // 2026-11-15T03:21:57.123Z info listening on 127.0.0.1:8080
 *     // {"time":"2026-11-15T03:21:57.123Z","level":"info","message":"listening on ..."}
 *
 * Only server and cli log; other rooms report an rt_error.
 */
#ifndef RT_BASE_LOG_H
#define RT_BASE_LOG_H

#include "base/str.h"

#define RT_LOG_MESSAGE_MAX 2048 /* bytes of the formatted message */

typedef enum rt_log_level { RT_LOG_ERROR, RT_LOG_WARN, RT_LOG_INFO, RT_LOG_DEBUG } rt_log_level;

void rt_log(rt_log_level level, const char *fmt, ...) RT_PRINTF(2, 3);

/* Show messages up to and including this level. At first: RT_LOG_INFO. */
void rt_log_level_set(rt_log_level level);
bool rt_log_level_shown(rt_log_level level);

/* One JSON object per line instead of text. */
void rt_log_json_set(bool is_json);

/* Every message passes it before it is written: up to `max` bytes into out, and how many. NULL: as
 * it is. Set it before there are threads. */
typedef size_t (*rt_log_scrub)(rt_str message, char *out, size_t max);
void rt_log_scrub_set(rt_log_scrub scrub);

/* "error", "warn", "info" or "debug", in either case. */
bool rt_log_level_parse(rt_str text, rt_log_level *level, rt_error *err);
const char *rt_log_level_name(rt_log_level level);

#endif
