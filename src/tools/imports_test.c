/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "store/fixture_test.h"
#include "tools/tools_internal.h"

static size_t import(rt_store *store, const char *json)
{
    rt_error err = { 0 };
    size_t count = 0;
    cr_assert(rt_tools_import(store, rt_str_of(json), &count, &err), "%s", err.text);
    return count;
}

static size_t first_of(rt_store *store, const char *query, char *name, size_t size)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_tools *tools RT_CLEANUP(rt_tools_closep) = NULL;
    rt_tool_hit hits[5];
    rt_error err = { 0 };
    cr_assert(rt_tools_open(&(rt_tools_config){ .store = store }, &tools, &err), "%s", err.text);
    size_t count = rt_tools_search(tools, rt_str_of(query), &arena, hits, 5);
    snprintf(name, size, "%.*s", count ? (int)hits[0].tool.name.len : 0,
             count ? hits[0].tool.name.ptr : "");
    return count;
}

STORE_TEST(imports, tools_of_a_file_are_found_and_not_called)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_tools *tools RT_CLEANUP(rt_tools_closep) = NULL;
    rt_error err = { 0 };
    char name[64];
    cr_assert_eq(import(store, "[{\"name\":\"gmail:send\",\"description\":\"Send an email\"},"
                               "{\"name\":\"Weather Now!\",\"description\":\"Forecast\","
                               "\"category\":\"weather\",\"input_schema\":{\"properties\":"
                               "{\"city\":{\"description\":\"where\"}}}}]"),
                 2);
    first_of(store, "mail my boss", name, sizeof(name));
    cr_assert_str_eq(name, "gmail:send");
    first_of(store, "will it rain", name, sizeof(name));
    cr_assert_str_eq(name, "Weather Now!");
    cr_assert(rt_tools_open(&(rt_tools_config){ .store = store }, &tools, &err));
    rt_tool_call call = { .tool = RT_STR("gmail:send"),
                          .arguments = RT_STR("{}"),
                          .cancel_fd = -1 };
    cr_assert(!rt_tools_call(tools, &call, &arena, &(rt_tool_result){ 0 }, &err));
    cr_assert_eq(err.code, RT_UNSUPPORTED);
}

STORE_TEST(imports, a_second_import_replaces_the_first)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_tools *tools RT_CLEANUP(rt_tools_closep) = NULL;
    rt_error err = { 0 };
    rt_tool *all;
    import(store, "[{\"name\":\"a\",\"description\":\"Send an email\"},{\"name\":\"b\"}]");
    import(store, "[{\"name\":\"a\",\"description\":\"Translate a text\"}]");
    cr_assert(rt_tools_open(&(rt_tools_config){ .store = store }, &tools, &err), "%s", err.text);
    cr_assert_eq(rt_tools_list(tools, RT_STR(""), &arena, &all), 2);
    cr_assert(rt_str_eq_c(all[0].description, "Translate a text"));
}

STORE_TEST(imports, a_name_that_comes_twice_is_found_by_either_text_and_named_once)
{
    char name[64];
    import(store, "[{\"name\":\"search\",\"description\":\"Find hotels\"},"
                  "{\"name\":\"search\",\"description\":\"Find songs\"}]");
    cr_assert_eq(first_of(store, "hotel", name, sizeof(name)), 1);
    cr_assert_eq(first_of(store, "songs", name, sizeof(name)), 1);
}

STORE_TEST(imports, what_a_database_cannot_hold_is_left_out)
{
    char name[64];
    import(store, "[{\"name\":\"odd\",\"description\":\"email\\u0000 \\ud800 sender\"}]");
    first_of(store, "email sender", name, sizeof(name));
    cr_assert_str_eq(name, "odd");
}

STORE_TEST(imports, more_tools_than_fit_in_one_statement)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf_addc(&text, '[');
    for (int i = 0; i < 1234; i++)
        rt_buf_addf(&text, "%s{\"name\":\"s:t%d\",\"description\":\"d\"}", i ? "," : "", i);
    rt_buf_addc(&text, ']');
    rt_buf_addc(&text, '\0');
    cr_assert_eq(import(store, text.ptr), 1234);
    cr_assert_eq(import(store, text.ptr), 1234);
}

Test(imports, what_is_no_list_of_tools_is_refused)
{
    static const char *const wrong[] = { "{}",   "[1]",
                                         "[{}]", "[{\"name\":\"\"}]",
                                         "[",    "[{\"name\":\"a\\nb\"}]" };
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    for (size_t i = 0; i < RT_COUNT(wrong); i++) {
        rt_tool *tools;
        size_t count;
        rt_error err = { 0 };
        cr_assert(!tools_imports_read(rt_str_of(wrong[i]), &arena, &tools, &count, &err), "%s",
                  wrong[i]);
        cr_assert_eq(err.code, RT_INVALID);
    }
}
