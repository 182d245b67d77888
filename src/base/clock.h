/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - two clocks: one to measure with, one to tell people.
 *
 * Promise: rt_now_ns never goes back; rt_wall_ms is the time of day and may.
 *
 *     uint64_t start = rt_now_ns();
 *     work();
 *     uint64_t elapsed_ms = (rt_now_ns() - start) / 1000000;
 */
#ifndef RT_BASE_CLOCK_H
#define RT_BASE_CLOCK_H

#include "base/arena.h"

#define RT_ISO8601_SIZE 25 /* "2026-11-15T03:21:57.123Z" and its terminator */

uint64_t rt_now_ns(void);
uint64_t rt_wall_ms(void);

/* The moment in UTC, "2026-11-15T03:21:57.123Z". Past the year 9999: that year's last moment. */
rt_str rt_iso8601(uint64_t wall_ms, rt_arena *arena);
void rt_iso8601_write(char out[RT_ISO8601_SIZE], uint64_t wall_ms);

#endif
