/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "server/json_path.h"

static rt_arena arena;

static const char document[] = "{\"a\":{\"b\":[10,20,30,40]},\"rows\":[{\"id\":1},{\"id\":2},3],"
                               "\"a key\":\"x\",\"it's\":true,\"\":0,\"n\":null}";

/* What the path leads to, as one JSON array. */
static rt_str find(const char *path, rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json doc, *matches;
    size_t count;
    cr_assert(rt_json_parse(rt_str_of(document), &arena, &doc, NULL));
    if (!json_path_find(doc, rt_str_of(path), &arena, &matches, &count, err))
        return RT_STR("error");
    rt_buf_addc(&text, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            rt_buf_addc(&text, ',');
        rt_json_print(matches[i], &text);
    }
    rt_buf_addc(&text, ']');
    return rt_arena_str(&arena, rt_buf_str(&text));
}

Test(json_path, leads_to_values)
{
    static const struct {
        const char *path, *wanted;
    } cases[] = {
        { "$.a.b", "[[10,20,30,40]]" },
        { "$.a.b[0]", "[10]" },
        { "$.a.b[-1]", "[40]" },
        { "$.a.b[1:3]", "[20,30]" },
        { "$.a.b[2:]", "[30,40]" },
        { "$.a.b[:2]", "[10,20]" },
        { "$.a.b[-2:]", "[30,40]" },
        { "$.a.b[:]", "[10,20,30,40]" },
        { "$.a.b[*]", "[10,20,30,40]" },
        { "$.rows[*].id", "[1,2]" },
        { "$.rows.*.id", "[1,2]" },
        { "$['a key']", "[\"x\"]" },
        { "$[\"a key\"]", "[\"x\"]" },
        { "$['it\\'s']", "[true]" },
        { "$['']", "[0]" },
        { "$.n", "[null]" },
        { "$['a']['b'][0]", "[10]" },
        { "$.a.*[3]", "[40]" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        rt_error err = { 0 };
        rt_str got = find(cases[i].path, &err);
        cr_expect(rt_str_eq_c(got, cases[i].wanted), "%s gives %.*s %s", cases[i].path, RT_FMT(got),
                  err.text);
    }
}

Test(json_path, leads_to_nothing_where_there_is_nothing)
{
    static const char *const paths[] = { "$.x",           "$.a.b[4]",    "$.a.b[-5]", "$.a.b[9:]",
                                         "$.a.b[3:1]",    "$.a.b.x",     "$.rows.id", "$.n.x",
                                         "$['a key'][0]", "$.a.b[-9:-8]" };
    for (size_t i = 0; i < RT_COUNT(paths); i++) {
        rt_str got = find(paths[i], NULL);
        cr_expect(rt_str_eq_c(got, "[]"), "%s gives %.*s", paths[i], RT_FMT(got));
    }
}

Test(json_path, says_where_a_path_is_wrong)
{
    static const char *const paths[] = { "",      "a",       "$a",     "$.",
                                         "$..a",  "$[",      "$[]",    "$['a",
                                         "$['a'", "$[1",     "$[1:x]", "$[--1]",
                                         "$.a b", "$[?(1)]", "$[1,2]", "$[99999999999999999999]" };
    for (size_t i = 0; i < RT_COUNT(paths); i++) {
        rt_error err = { 0 };
        rt_str got = find(paths[i], &err);
        cr_expect(rt_str_eq_c(got, "error"), "%s gives %.*s", paths[i], RT_FMT(got));
        cr_expect_eq(err.code, RT_INVALID);
    }
}

Test(json_path, cannot_be_endless)
{
    rt_buf path RT_CLEANUP(rt_buf_done) = { 0 };
    rt_error err = { 0 };
    rt_buf_addc(&path, '$');
    for (int i = 0; i <= JSON_PATH_STEPS_MAX; i++)
        rt_buf_add(&path, RT_STR(".a"));
    cr_assert(rt_str_eq_c(find(rt_arena_copy(&arena, rt_buf_str(&path)), &err), "error"));
    cr_assert_eq(err.code, RT_LIMIT);
}
