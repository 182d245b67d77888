/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.c - the clocks, and UTC without the time zone machinery.
 *
 * gmtime_r() would do, but it takes libc's time zone lock, and the log must work anywhere.
 */
#include "base/clock.h"

#include <time.h>

#define DAY_MS  86400000u
#define LAST_MS UINT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */

static uint64_t read_clock(clockid_t clock, uint64_t per_second)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * per_second + (uint64_t)now.tv_nsec / (1000000000 / per_second);
}

uint64_t rt_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC, 1000000000);
}

uint64_t rt_wall_ms(void)
{
    return read_clock(CLOCK_REALTIME, 1000);
}

static char *put_digits(char *out, unsigned value, unsigned width, char after)
{
    for (unsigned i = width; i > 0; i--, value /= 10)
        out[i - 1] = (char)('0' + value % 10);
    out[width] = after;
    return out + width + 1;
}

static unsigned days_in_year(unsigned year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 366 : 365;
}

/* The date of a day counted from 1970-01-01: whole 400-year cycles, then years, then months. */
static void date_of(unsigned day, unsigned *year, unsigned *month, unsigned *of_month)
{
    static const uint8_t lengths[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    *year = 1970 + day / 146097 * 400;
    day %= 146097;
    while (day >= days_in_year(*year))
        day -= days_in_year((*year)++);
    bool is_leap = days_in_year(*year) == 366;
    *month = 0;
    for (;; (*month)++) {
        unsigned length = lengths[*month] + (*month == 1 && is_leap);
        if (day < length)
            break;
        day -= length;
    }
    *month += 1;
    *of_month = day + 1;
}

void rt_iso8601_write(char out[RT_ISO8601_SIZE], uint64_t wall_ms)
{
    wall_ms = RT_MIN(wall_ms, LAST_MS);
    unsigned ms = (unsigned)(wall_ms % DAY_MS), year, month, day;
    date_of((unsigned)(wall_ms / DAY_MS), &year, &month, &day);
    out = put_digits(out, year, 4, '-');
    out = put_digits(out, month, 2, '-');
    out = put_digits(out, day, 2, 'T');
    out = put_digits(out, ms / 3600000, 2, ':');
    out = put_digits(out, ms / 60000 % 60, 2, ':');
    out = put_digits(out, ms / 1000 % 60, 2, '.');
    out = put_digits(out, ms % 1000, 3, 'Z');
    *out = '\0';
}

rt_str rt_iso8601(uint64_t wall_ms, rt_arena *arena)
{
    char text[RT_ISO8601_SIZE];
    rt_iso8601_write(text, wall_ms);
    return rt_arena_str(arena, rt_str_of(text));
}
