/* SPDX-License-Identifier: Apache-2.0 */
/*
 * units.h - sizes and durations as people write them.
 *
 * Promise: the number is exact or refused; the error says what would have been accepted.
 *
 *     uint64_t bytes, ms;
 *     rt_parse_bytes(RT_STR("64KiB"), &bytes, err);          // 65536
 *     rt_parse_duration_ms(RT_STR("1.5s"), &ms, err);        // 1500
 */
#ifndef RT_BASE_UNITS_H
#define RT_BASE_UNITS_H

#include "base/str.h"

/* "512", "128M", "1G", "64KiB", "1.5GB": K, M, G, T are powers of 1024, in either case. */
bool rt_parse_bytes(rt_str text, uint64_t *bytes, rt_error *err);

/* "250ms", "5s", "1.5s", "2m", "1h", "7d"; a bare number is seconds. Rounds up to whole ms. */
bool rt_parse_duration_ms(rt_str text, uint64_t *ms, rt_error *err);

#endif
