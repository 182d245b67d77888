/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "server/target.h"

static rt_arena arena;

static bool parse(const char *text, http_target *out, rt_error *err)
{
    return target_parse(rt_str_of(text), &arena, out, err);
}

static void expect_text(rt_str got, const char *wanted)
{
    cr_expect(rt_str_eq_c(got, wanted), "'%.*s' instead of '%s'", RT_FMT(got), wanted);
}

Test(target, a_path_is_split_before_it_is_decoded)
{
    http_target t;
    cr_assert(parse("/v1/files/a%2Fb/c%20d", &t, NULL));
    cr_assert_eq(t.segment_count, 4);
    expect_text(t.segments[2], "a/b");
    expect_text(t.segments[3], "c d");
    expect_text(t.rests[2], "a/b/c d");
    expect_text(t.path, "/v1/files/a/b/c d");
}

Test(target, the_root_has_one_empty_segment)
{
    http_target t;
    cr_assert(parse("/", &t, NULL));
    cr_assert_eq(t.segment_count, 1);
    cr_assert_eq(t.segments[0].len, 0);
}

Test(target, a_query_is_decoded_as_forms_are)
{
    http_target t;
    cr_assert(parse("/x?a=1+2&b=%26%3D&&c&d=", &t, NULL));
    cr_assert_eq(t.query_count, 4);
    expect_text(t.query[0].value, "1 2");
    expect_text(t.query[1].value, "&=");
    expect_text(t.query[2].name, "c");
    cr_assert_eq(t.query[2].value.len, 0);
    cr_assert_not_null(t.query[3].value.ptr);
}

Test(target, what_is_no_text_is_refused)
{
    static const char *const bad[] = {
        "",     "x",     "/%",      "/%4",     "/%zz",          "/a%00b",
        "/%ff", "/%c3",  "/a?b=%0", "/?%00=1", "/a b",          "/a\x01",
        "/a#b", "/\xff", "/%c0%af", "http:",   "/?a=%ed%a0%80",
    };
    for (size_t i = 0; i < RT_COUNT(bad); i++) {
        rt_error err = { 0 };
        http_target t;
        cr_expect(!parse(bad[i], &t, &err), "'%s' passed", bad[i]);
        cr_expect_eq(err.code, RT_INVALID);
    }
}

Test(target, there_are_limits)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_error err = { 0 };
    http_target t;
    rt_buf_addc(&text, '/');
    while (text.len <= HTTP_TARGET_MAX)
        rt_buf_addc(&text, 'a');
    cr_assert(!target_parse(rt_buf_str(&text), &arena, &t, &err));
    cr_assert_eq(err.code, RT_LIMIT);
    rt_buf_reset(&text);
    for (int i = 0; i <= HTTP_SEGMENTS_MAX; i++)
        rt_buf_add(&text, RT_STR("/a"));
    cr_assert(!target_parse(rt_buf_str(&text), &arena, &t, &err));
    rt_buf_reset(&text);
    rt_buf_add(&text, RT_STR("/?"));
    for (int i = 0; i <= HTTP_QUERY_MAX; i++)
        rt_buf_add(&text, RT_STR("a=1&"));
    cr_assert(!target_parse(rt_buf_str(&text), &arena, &t, &err));
}

Test(target, a_request_as_for_a_proxy_is_understood)
{
    http_target t;
    cr_assert(parse("http://localhost:8002/health?x=1", &t, NULL));
    expect_text(t.path, "/health");
    cr_assert(parse("http://localhost:8002", &t, NULL));
    expect_text(t.path, "/");
}

Test(target, ranges)
{
    static const struct {
        const char *header;
        uint64_t size;
        http_range_kind kind;
        uint64_t from, length;
    } cases[] = {
        { "bytes=0-9", 100, HTTP_RANGE_ONE, 0, 10 },
        { "bytes=90-", 100, HTTP_RANGE_ONE, 90, 10 },
        { "bytes=-5", 100, HTTP_RANGE_ONE, 95, 5 },
        { "bytes=-500", 100, HTTP_RANGE_ONE, 0, 100 },
        { "bytes=50-500", 100, HTTP_RANGE_ONE, 50, 50 },
        { "bytes=99-99", 100, HTTP_RANGE_ONE, 99, 1 },
        { "bytes=0-18446744073709551615", 100, HTTP_RANGE_ONE, 0, 100 },
        { "bytes=100-", 100, HTTP_RANGE_UNSATISFIABLE, 0, 0 },
        { "bytes=-0", 100, HTTP_RANGE_UNSATISFIABLE, 0, 0 },
        { "bytes=0-", 0, HTTP_RANGE_UNSATISFIABLE, 0, 0 },
        { "bytes=9-3", 100, HTTP_RANGE_NONE, 0, 0 },
        { "bytes=0-1,5-6", 100, HTTP_RANGE_NONE, 0, 0 },
        { "bytes=", 100, HTTP_RANGE_NONE, 0, 0 },
        { "bytes=-", 100, HTTP_RANGE_NONE, 0, 0 },
        { "bytes=a-b", 100, HTTP_RANGE_NONE, 0, 0 },
        { "lines=0-9", 100, HTTP_RANGE_NONE, 0, 0 },
        { "bytes=18446744073709551616-", 100, HTTP_RANGE_NONE, 0, 0 },
        { "", 100, HTTP_RANGE_NONE, 0, 0 },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        uint64_t from = 0, length = 0;
        cr_expect_eq(target_range(rt_str_of(cases[i].header), cases[i].size, &from, &length),
                     cases[i].kind, "%s", cases[i].header);
        cr_expect_eq(from, cases[i].from, "%s", cases[i].header);
        cr_expect_eq(length, cases[i].length, "%s", cases[i].header);
    }
}
