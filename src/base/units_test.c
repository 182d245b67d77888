/* SPDX-License-Identifier: Apache-2.0 */
#include "base/units.h"

#include <criterion/criterion.h>

Test(units, sizes_are_powers_of_1024)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {
        { "0", 0 },
        { "512", 512 },
        { "512b", 512 },
        { "64KiB", 65536 },
        { "64k", 65536 },
        { "128M", UINT64_C(128) << 20 },
        { "1G", 1 << 30 },
        { "1.5g", 3 << 29 },
        { "2TB", 2ull << 40 },
        { "16777215T", UINT64_C(16777215) << 40 },
        { "0.5", 1 },
        { "18446744073709551615", UINT64_MAX },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        uint64_t bytes = 1234567;
        cr_expect(rt_parse_bytes(rt_str_of(cases[i].text), &bytes, NULL), "%s", cases[i].text);
        cr_expect_eq(bytes, cases[i].bytes, "%s", cases[i].text);
    }
}

Test(units, what_is_no_size_is_refused_with_advice)
{
    static const char *const bad[] = { "",
                                       "-1",
                                       "+1",
                                       " 1",
                                       "1 M",
                                       "M",
                                       "1X",
                                       "1.",
                                       ".5",
                                       "1.5.5",
                                       "1e3",
                                       "0x10",
                                       "1KK",
                                       "18446744073709551616",
                                       "16777216T",
                                       "18446744073709551615.5",
                                       "1.0123456789K",
                                       "KiB" };
    for (size_t i = 0; i < RT_COUNT(bad); i++) {
        rt_error err = { 0 };
        uint64_t bytes = 7;
        cr_expect(!rt_parse_bytes(rt_str_of(bad[i]), &bytes, &err), "%s", bad[i]);
        cr_expect(rt_str_find(rt_str_of(err.text), RT_STR("128M")) > 0, "%s", err.text);
    }
    uint64_t bytes = 7;
    cr_expect(!rt_parse_bytes(RT_STR("1\0"), &bytes, NULL));
    cr_expect_eq(bytes, 7);
}

Test(units, durations_are_milliseconds)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } cases[] = {
        { "5s", 5000 }, { "250ms", 250 }, { "1.5s", 1500 },    { "2m", 120000 },
        { "5", 5000 },  { "0.25", 250 },  { "1h", 3600000 },   { "1d", 86400000 },
        { "0.5ms", 1 }, { "0", 0 },       { "1.0005s", 1001 }, { "3S", 3000 },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        uint64_t ms = 1234567;
        cr_expect(rt_parse_duration_ms(rt_str_of(cases[i].text), &ms, NULL), "%s", cases[i].text);
        cr_expect_eq(ms, cases[i].ms, "%s", cases[i].text);
    }
    static const char *const bad[] = {
        "", "-5s", "5 s", "s", "5x", "1e3", "99999999999999999999", "18446744073709551615s"
    };
    for (size_t i = 0; i < RT_COUNT(bad); i++) {
        rt_error err = { 0 };
        uint64_t ms;
        cr_expect(!rt_parse_duration_ms(rt_str_of(bad[i]), &ms, &err), "%s", bad[i]);
        cr_expect(rt_str_find(rt_str_of(err.text), RT_STR("250ms")) > 0, "%s", err.text);
    }
}
