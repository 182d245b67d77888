/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <time.h>

Test(clock, the_monotonic_one_does_not_go_back)
{
    uint64_t last = rt_now_ns();
    for (int i = 0; i < 1000; i++) {
        uint64_t now = rt_now_ns();
        cr_assert(now >= last);
        last = now;
    }
    cr_expect(rt_wall_ms() > UINT64_C(1600000000000));
}

Test(clock, moments_are_written_in_utc)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    cr_expect_str_eq(rt_iso8601(0, &arena).ptr, "1970-01-01T00:00:00.000Z");
    cr_expect_str_eq(rt_iso8601(1794712917123, &arena).ptr, "2026-11-15T03:21:57.123Z");
    cr_expect_str_eq(rt_iso8601(951782400000, &arena).ptr, "2000-02-29T00:00:00.000Z");
    cr_expect_str_eq(rt_iso8601(UINT64_MAX, &arena).ptr, "9999-12-31T23:59:59.999Z");
}

Test(clock, agrees_with_libc_on_every_day)
{
    for (uint64_t day = 0; day < 2932896; day += 13) {
        char ours[RT_ISO8601_SIZE], theirs[64];
        time_t seconds = (time_t)(day * 86400 + day % 86400);
        struct tm parts;
        gmtime_r(&seconds, &parts);
        strftime(theirs, sizeof(theirs), "%Y-%m-%dT%H:%M:%S.007Z", &parts);
        rt_iso8601_write(ours, (uint64_t)seconds * 1000 + 7);
        cr_assert_str_eq(ours, theirs);
    }
}
