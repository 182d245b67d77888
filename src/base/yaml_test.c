/* SPDX-License-Identifier: Apache-2.0 */
#include "base/yaml.h"

#include <criterion/criterion.h>

static rt_str as_json(rt_arena *arena, const char *text)
{
    rt_buf out = { 0 };
    rt_error err = { 0 };
    rt_json doc;
    if (!rt_yaml_parse(rt_str_of(text), arena, &doc, &err))
        return rt_arena_str(arena, rt_str_of(err.text));
    rt_json_print(doc, &out);
    rt_str kept = rt_arena_str(arena, rt_buf_str(&out));
    rt_buf_done(&out);
    return kept;
}

Test(yaml, scalars_are_what_json_would_call_them_and_the_rest_is_text)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    static const char *const cases[][2] = {
        { "", "null" },
        { "# nothing\n", "null" },
        { "a: 1\nb: 1.5\nc: -2", "{\"a\":1,\"b\":1.5,\"c\":-2}" },
        { "a: true\nb: yes\nc: ~\nd:", "{\"a\":true,\"b\":\"yes\",\"c\":null,\"d\":null}" },
        { "version: 1.0.0", "{\"version\":\"1.0.0\"}" },
        { "a: 'true'\nb: \"1\"", "{\"a\":\"true\",\"b\":\"1\"}" },
        { "a: 007", "{\"a\":\"007\"}" },
        { "a: |\n  two\n  lines\n", "{\"a\":\"two\\nlines\\n\"}" },
        { "a: >-\n  one\n  line\n", "{\"a\":\"one line\"}" },
        { "- none\n- [x, {y: z}]", "[\"none\",[\"x\",{\"y\":\"z\"}]]" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        rt_str got = as_json(&arena, cases[i][0]);
        cr_expect(rt_str_eq_c(got, cases[i][1]), "%s: %.*s", cases[i][0], RT_FMT(got));
    }
}

Test(yaml, what_means_more_than_it_says_is_refused_with_its_line)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    static const char *const cases[][2] = {
        { "a: 1\na: 2", "line 2: 'a' stands here twice" },
        { "a: &x 1\nb: *x", "line 1: anchors, aliases and tags are not used here" },
        { "a: !!python/object 1", "line 1: anchors, aliases and tags are not used here" },
        { "a: 1\n---\nb: 2", "line 2: one document is expected" },
        { "a: [1", "line 2: did not find expected ',' or ']'" },
        { "? [a]\n: b", "line 1: a key is expected" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        rt_str got = as_json(&arena, cases[i][0]);
        cr_expect(rt_str_eq_c(got, cases[i][1]), "%s: %.*s", cases[i][0], RT_FMT(got));
    }
}

Test(yaml, depth_has_an_end)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    char deep[200];
    memset(deep, '[', sizeof(deep) - 1);
    deep[sizeof(deep) - 1] = '\0';
    cr_expect(rt_str_eq_c(as_json(&arena, deep), "line 1: nested deeper than 32"));
}
