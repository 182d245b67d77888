/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/telemetry_internal.h"

#include <criterion/criterion.h>

static rt_arena arena;

static void release(void)
{
    rt_arena_done(&arena);
}

TestSuite(pairs, .fini = release);

static const char *joined(const telemetry_pairs *pairs)
{
    rt_str text = { "", 0 };
    for (size_t i = 0; i < pairs->count; i++)
        text = rt_arena_printf(&arena, "%.*s[%.*s|%.*s]", RT_FMT(text), RT_FMT(pairs->items[i].key),
                               RT_FMT(pairs->items[i].value));
    return text.len ? text.ptr : "";
}

Test(pairs, a_list_is_read_as_the_standard_writes_it)
{
    static const struct {
        const char *text, *read;
    } cases[] = {
        { "", "" },
        { " , ,", "" },
        { "a=1", "[a|1]" },
        { "a=1,b=2", "[a|1][b|2]" },
        { " a = 1 ,\tb=2 , ", "[a|1][b|2]" },
        { "a=", "[a|]" },
        { "a=b=c", "[a|b=c]" },
        { "authorization=Bearer%20x%2Cy%25%c3%A9", "[authorization|Bearer x,y%\xC3\xA9]" },
        { "a=x+y", "[a|x+y]" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        telemetry_pairs pairs;
        rt_error err = { 0 };
        cr_assert(telemetry_parse_headers(rt_str_of(cases[i].text), &arena, &pairs, &err), "%s: %s",
                  cases[i].text, err.text);
        cr_expect_str_eq(joined(&pairs), cases[i].read);
        cr_expect(telemetry_parse_attributes(rt_str_of(cases[i].text), &arena, &pairs, NULL));
    }
}

Test(pairs, a_list_with_one_bad_part_is_refused_whole)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        { "a", "part 1: a part has no '='" },
        { "a=1,b", "part 2: a part has no '='" },
        { "=1", "part 1: a part has nothing before its '='" },
        { "a=%", "part 1: '%' is not followed by two hexadecimal digits" },
        { "a=%4", "part 1: '%' is not followed by two hexadecimal digits" },
        { "a=%4g", "part 1: '%' is not followed by two hexadecimal digits" },
        { "a b=1", "part 1: the name of a header has a character no header has" },
        { "a:=1", "part 1: the name of a header has a character no header has" },
        { "a=x%0d%0aHost: evil", "part 1: the value of header a has a control character" },
        { "a=x%00", "part 1: the value of header a has a control character" },
    };
    for (size_t i = 0; i < RT_COUNT(bad); i++) {
        telemetry_pairs pairs;
        rt_error err = { 0 };
        cr_assert(!telemetry_parse_headers(rt_str_of(bad[i].text), &arena, &pairs, &err), "%s",
                  bad[i].text);
        cr_expect_str_eq(err.text, bad[i].why);
        cr_expect_eq(err.code, RT_INVALID);
    }
    cr_expect(!telemetry_parse_attributes(RT_STR("a=%ff"), &arena, &(telemetry_pairs){ 0 }, NULL));
}

Test(pairs, a_list_has_a_size)
{
    rt_buf list RT_CLEANUP(rt_buf_done) = { 0 };
    telemetry_pairs pairs;
    rt_error err = { 0 };
    for (int i = 0; i < TELEMETRY_PAIRS_MAX; i++)
        rt_buf_add(&list, RT_STR("a=1,"));
    cr_expect(telemetry_parse_headers(rt_buf_str(&list), &arena, &pairs, NULL));
    rt_buf_add(&list, RT_STR("a=1,"));
    cr_expect(!telemetry_parse_headers(rt_buf_str(&list), &arena, &pairs, &err));
    cr_expect_eq(err.code, RT_LIMIT);
    while (list.len <= TELEMETRY_PAIRS_SIZE_MAX)
        rt_buf_addc(&list, ',');
    cr_expect(!telemetry_parse_headers(rt_buf_str(&list), &arena, &pairs, &err));
    cr_expect_eq(err.code, RT_LIMIT);
}
