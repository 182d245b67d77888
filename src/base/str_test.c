/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"
#include "base/str.h"

#include <criterion/criterion.h>

static const rt_str nothing = { NULL, 0 };

Test(str, nothing_is_an_empty_view)
{
    cr_expect(rt_str_eq(nothing, RT_STR("")));
    cr_expect(rt_str_eq(rt_str_of(NULL), nothing));
    cr_expect(rt_str_starts(nothing, nothing) && rt_str_ends(nothing, nothing));
    cr_expect_eq(rt_str_trim(nothing).len, 0);
    cr_expect_eq(rt_str_find(nothing, RT_STR("a")), -1);
    cr_expect_eq(rt_str_slice(nothing, 3, 9).len, 0);
    cr_expect(rt_utf8_valid(nothing));
    cr_expect_eq(rt_str_cmp(nothing, RT_STR("")), 0);
}

Test(str, comparing_looks_at_every_byte)
{
    cr_expect(!rt_str_eq(RT_STR("a\0b"), RT_STR("a\0c")));
    cr_expect(rt_str_cmp(RT_STR("a"), RT_STR("ab")) < 0);
    cr_expect(rt_str_cmp(RT_STR("\xC3"), RT_STR("z")) > 0);
    cr_expect(rt_str_starts(RT_STR("abc"), RT_STR("ab")));
    cr_expect(!rt_str_starts(RT_STR("a"), RT_STR("ab")));
    cr_expect(rt_str_ends(RT_STR("abc"), RT_STR("bc")));
    cr_expect(!rt_str_ends(RT_STR("abc"), RT_STR("ab")));
}

Test(str, finding_and_slicing)
{
    cr_expect_eq(rt_str_find(RT_STR("hello"), RT_STR("ll")), 2);
    cr_expect_eq(rt_str_find(RT_STR("hello"), RT_STR("lll")), -1);
    cr_expect_eq(rt_str_find(RT_STR("hello"), RT_STR("")), 0);
    cr_expect(rt_str_eq(rt_str_slice(RT_STR("hello"), 1, 3), RT_STR("el")));
    cr_expect(rt_str_eq(rt_str_slice(RT_STR("hello"), 3, 99), RT_STR("lo")));
    cr_expect_eq(rt_str_slice(RT_STR("hello"), 4, 2).len, 0);
    cr_expect(rt_str_eq(rt_str_trim(RT_STR(" \t\r\na b\n ")), RT_STR("a b")));
}

static size_t pieces(rt_str text)
{
    size_t count = 0;
    rt_str piece;
    while (rt_str_cut(&text, ',', &piece))
        count++;
    return count;
}

Test(str, cutting_gives_one_piece_more_than_separators)
{
    cr_expect_eq(pieces(RT_STR("a,b,")), 3);
    cr_expect_eq(pieces(RT_STR("")), 1);
    cr_expect_eq(pieces(RT_STR(",")), 2);
    cr_expect_eq(pieces(nothing), 0);
    rt_str rest = RT_STR("key=value=x"), piece;
    cr_expect(rt_str_cut(&rest, '=', &piece));
    cr_expect(rt_str_eq(piece, RT_STR("key")) && rt_str_eq(rest, RT_STR("value=x")));
}

Test(str, a_path_has_no_nul)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    const char *path = NULL;
    cr_expect(rt_str_to_path(RT_STR("/etc"), &arena, &path, &err));
    cr_expect_str_eq(path, "/etc");
    cr_expect(!rt_str_to_path(RT_STR("/etc\0/passwd"), &arena, &path, &err));
    cr_expect(!rt_str_to_path(nothing, &arena, &path, &err));
    cr_expect_eq(err.code, RT_INVALID);
}

Test(str, numbers_fit_or_fail)
{
    uint64_t u = 7;
    int64_t i = 7;
    cr_expect(rt_str_to_u64(RT_STR("18446744073709551615"), &u) && u == UINT64_MAX);
    cr_expect(rt_str_to_i64(RT_STR("-9223372036854775808"), &i) && i == INT64_MIN);
    cr_expect(rt_str_to_i64(RT_STR("9223372036854775807"), &i) && i == INT64_MAX);
    static const char *const bad[] = { "",
                                       "-",
                                       "+1",
                                       " 1",
                                       "1 ",
                                       "1a",
                                       "0x1",
                                       "--1",
                                       "1.0",
                                       "18446744073709551616",
                                       "99999999999999999999" };
    for (size_t n = 0; n < RT_COUNT(bad); n++) {
        cr_expect(!rt_str_to_u64(rt_str_of(bad[n]), &u), "%s", bad[n]);
        cr_expect(!rt_str_to_i64(rt_str_of(bad[n]), &i), "%s", bad[n]);
    }
    cr_expect(!rt_str_to_u64(RT_STR("-1"), &u));
    cr_expect(!rt_str_to_i64(RT_STR("9223372036854775808"), &i));
    cr_expect(!rt_str_to_i64(RT_STR("-9223372036854775809"), &i));
    cr_expect(u == UINT64_MAX && i == INT64_MAX, "a failure leaves the value alone");
}

/* Every code point there is, and every surrogate. */
Test(utf8, what_is_valid_is_what_unicode_says)
{
    for (uint32_t c = 0; c <= 0x10FFFF; c++) {
        char text[4];
        size_t size = rt_utf8_put(text, c);
        bool is_surrogate = c >= 0xD800 && c < 0xE000;
        if (rt_utf8_valid((rt_str){ text, size }) == is_surrogate)
            cr_assert_fail("U+%04X", (unsigned)c);
        if (size > 1 && rt_utf8_valid((rt_str){ text, size - 1 }))
            cr_assert_fail("U+%04X cut short", (unsigned)c);
    }
}

Test(utf8, broken_sequences_are_refused_wherever_they_stand)
{
    static const char *const bad[] = { "\x80",
                                       "\xBF",
                                       "\xC0\x80",
                                       "\xC1\xBF",
                                       "\xE0\x9F\xBF",
                                       "\xED\xA0\x80",
                                       "\xF0\x8F\xBF\xBF",
                                       "\xF4\x90\x80\x80",
                                       "\xF5\x80\x80\x80",
                                       "\xFF",
                                       "\xC3",
                                       "\xE2\x82" };
    for (size_t i = 0; i < RT_COUNT(bad); i++)
        for (int before = 0; before < 17; before++) {
            rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
            rt_str text = rt_arena_printf(&arena, "%.*s%s", before, "aaaaaaaaaaaaaaaaaaaa", bad[i]);
            cr_expect(!rt_utf8_valid(text));
        }
}

Test(utf8, length_counts_code_points)
{
    cr_expect_eq(rt_utf8_length(RT_STR("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80")), 4);
    cr_expect_eq(rt_utf8_length(nothing), 0);
}
