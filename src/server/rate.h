/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rate.h - how often each caller may ask.
 *
 * Promise: over any time a key gets at most its burst and then its rate, however many threads ask
 * for it. Memory is bounded: with more keys than there is room for, the one not heard of for the
 * longest is forgotten, which gives it a full bucket again. Any thread may call.
 *
 *     uint64_t wait_ms;
 *     if (!server_rate_take(rate, key_id, per_minute, rt_now_ns(), &wait_ms))
 *         return too_many(wait_ms);                    // 429, with Retry-After
 *
 * The burst is ten seconds' worth, at least 10, but never more than a minute's worth.
 */
#ifndef RT_SERVER_RATE_H
#define RT_SERVER_RATE_H

#include "base/base.h"

typedef struct server_rate server_rate;

server_rate *server_rate_new(size_t max_keys); /* 0: 65,536; a key takes about 40 bytes */
void server_rate_free(server_rate *rate);
void server_rate_freep(server_rate **rate);

/*
 * Takes one token. False when there is none: *retry_after_ms, at least 1, is when there will be one
 * (on true it is 0). per_minute of 0 is no limit. The rate of a key may change from call to call.
 */
bool server_rate_take(server_rate *rate, rt_str key, uint64_t per_minute, uint64_t now_ns,
                      uint64_t *retry_after_ms);

#endif
