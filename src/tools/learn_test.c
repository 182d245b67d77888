/* SPDX-License-Identifier: Apache-2.0 */
#include "store/fixture_test.h"

#include <criterion/criterion.h>

#include "tools/shapes_internal.h"
#include "tools/tools.h"

static rt_arena arena;

static void done(void)
{
    rt_arena_done(&arena);
}

TestSuite(shapes, .fini = done);
TestSuite(learning, .fini = done);

static rt_str shape_of(const char *const *values, size_t count)
{
    tools_shape *shape = NULL;
    for (size_t i = 0; i < count; i++) {
        rt_error err = { 0 };
        rt_json doc, schema;
        cr_assert(rt_json_parse(rt_str_of(values[i]), &arena, &doc, &err), "%s", err.text);
        shape = tools_shape_merge(shape, tools_shape_of_value(doc, &arena), &arena);
        rt_str text = tools_shape_write(shape, i + 1, &arena);
        cr_assert(rt_json_parse(text, &arena, &schema, &err), "%s", err.text);
        shape = tools_shape_of_schema(schema, &arena); /* as after a restart */
    }
    return tools_shape_write(shape, count, &arena);
}

#define SHAPE(...)                                                                                 \
    shape_of((const char *[]){ __VA_ARGS__ }, RT_COUNT(((const char *[]){ __VA_ARGS__ })))

static void expect(rt_str text, const char *wanted)
{
    cr_expect(rt_str_eq_c(text, wanted), "%.*s\nis not\n%s", RT_FMT(text), wanted);
}

Test(shapes, of_one_value_requires_all_it_has)
{
    expect(SHAPE("[{\"sha\":\"a1\",\"size\":3}]"),
           "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"sha\":{\"type\":"
           "\"string\"},\"size\":{\"type\":\"integer\"}},\"required\":[\"sha\",\"size\"]},"
           "\"x-observed\":1}");
}

Test(shapes, are_merged)
{
    expect(SHAPE("{\"a\":1,\"b\":[]}", "{\"a\":1.5,\"c\":null,\"b\":[true]}", "{\"a\":2}"),
           "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"number\"},\"b\":{\"type\":"
           "\"array\",\"items\":{\"type\":\"boolean\"}},\"c\":{\"type\":\"null\"}},"
           "\"required\":[\"a\"],\"x-observed\":3}");
    expect(SHAPE("null", "\"x\"", "7"),
           "{\"type\":[\"null\",\"integer\",\"string\"],\"x-observed\":3}");
}

Test(shapes, keys_that_are_data_are_not_kept)
{
    static const char *const values[] = { "{\"ann@example.org\":3,\"count\":1}",
                                          "{\"20261115\":{\"n\":1}}", "{\"4f2a90c1b7d84e11\":1}",
                                          "{\"Where is\\n Ann?\":1}" };
    for (size_t i = 0; i < RT_COUNT(values); i++) {
        rt_str text = SHAPE(values[i]);
        cr_expect(rt_str_find(text, RT_STR("additionalProperties")) >= 0, "%.*s", RT_FMT(text));
        cr_expect(rt_str_find(text, RT_STR("ann")) < 0 && rt_str_find(text, RT_STR("2026")) < 0 &&
                      rt_str_find(text, RT_STR("4f2a")) < 0,
                  "%.*s", RT_FMT(text));
    }
}

Test(shapes, many_keys_none_of_which_is_always_there_are_a_map)
{
    rt_buf first RT_CLEANUP(rt_buf_done) = { 0 }, second RT_CLEANUP(rt_buf_done) = { 0 };
    for (char c = 'a'; c <= 'm'; c++) {
        rt_buf_addf(&first, "%s\"x%c\":1", c == 'a' ? "{" : ",", c);
        rt_buf_addf(&second, "%s\"y%c\":\"s\"", c == 'a' ? "{" : ",", c);
    }
    rt_buf_add(&first, RT_STR("}"));
    rt_buf_add(&second, RT_STR("}"));
    rt_buf_addc(&first, '\0');
    rt_buf_addc(&second, '\0');
    expect(SHAPE(first.ptr, second.ptr),
           "{\"type\":\"object\",\"additionalProperties\":{\"type\":[\"integer\",\"string\"]},"
           "\"x-observed\":2}");
}

Test(shapes, have_limits)
{
    rt_buf deep RT_CLEANUP(rt_buf_done) = { 0 }, wide RT_CLEANUP(rt_buf_done) = { 0 };
    for (int i = 0; i < 100; i++)
        rt_buf_add(&deep, RT_STR("{\"a\":["));
    rt_buf_add(&deep, RT_STR("1"));
    for (int i = 0; i < 100; i++)
        rt_buf_add(&deep, RT_STR("]}"));
    rt_buf_addc(&deep, '\0');
    for (int i = 0; i < 60; i++) { /* 60 members of 60 members */
        rt_buf_addf(&wide, "%s\"m%c%c\":{", i ? "," : "{", 'a' + i / 26, 'a' + i % 26);
        for (int k = 0; k < 60; k++)
            rt_buf_addf(&wide, "%s\"n%c%c\":1", k ? "," : "", 'a' + k / 26, 'a' + k % 26);
        rt_buf_add(&wide, RT_STR("}"));
    }
    rt_buf_add(&wide, RT_STR("}"));
    rt_buf_addc(&wide, '\0');
    cr_expect_leq(SHAPE(deep.ptr).len, TOOLS_SHAPE_BYTES_MAX);
    rt_str text = SHAPE(wide.ptr);
    cr_expect_leq(text.len, TOOLS_SHAPE_BYTES_MAX);
    cr_expect(rt_str_find(text, RT_STR("\"mcc\":{}")) >= 0, "%.*s", RT_FMT(text));
}

/* -- With a registry --------------------------------------------------------------------------- */

static const char *answer = "{\"sha\":\"raw-secret\"}", *input = "{\"type\":\"object\"}";

static bool list(rt_provider *self, rt_arena *a, rt_tool **out, size_t *count, rt_error *err)
{
    static const char *const names[] = { "silent", "told", "third" };
    (void)self, (void)err;
    *count = RT_COUNT(names);
    *out = rt_arena_alloc(a, RT_COUNT(names) * sizeof(**out));
    for (size_t i = 0; i < RT_COUNT(names); i++)
        (*out)[i] =
            (rt_tool){ .name = rt_str_of(names[i]),
                       .description = RT_STR("lists commits"),
                       .input_schema = rt_str_of(input),
                       .output_schema = i == 1 ? RT_STR("{\"type\":\"array\"}") : (rt_str){ 0 } };
    return true;
}

static bool call(rt_provider *self, const rt_tool_call *c, rt_arena *a, rt_tool_result *out,
                 rt_error *err)
{
    (void)self, (void)c, (void)a, (void)err;
    *out = (rt_tool_result){ .value = rt_str_of(answer) };
    return true;
}

static void leave(rt_provider *self)
{
    (void)self;
}

static rt_tools *open_tools(rt_store *store, rt_provider *provider)
{
    rt_error err = { 0 };
    rt_tools *tools = NULL;
    *provider = (rt_provider){ .name = "git", .list = list, .call = call, .close = leave };
    cr_assert(rt_tools_open(&(rt_tools_config){ .store = store }, &tools, &err), "%s", err.text);
    cr_assert(rt_tools_add(tools, provider, &err), "%s", err.text);
    return tools;
}

static void call_in(rt_tools *tools, const char *run, const char *name)
{
    rt_error err = { 0 };
    rt_tool_result result;
    rt_tool_call c = {
        .tool = rt_str_of(name), .arguments = RT_STR("{}"), .cancel_fd = -1, .run = rt_str_of(run)
    };
    cr_assert(rt_tools_call(tools, &c, &arena, &result, &err), "%s", err.text);
}

static rt_tool find(rt_tools *tools, const char *name)
{
    rt_error err = { 0 };
    rt_tool tool;
    cr_assert(rt_tools_find(tools, rt_str_of(name), &arena, &tool, &err), "%s", err.text);
    return tool;
}

STORE_TEST(learning, an_output_schema_is_learned_and_kept)
{
    rt_provider provider;
    rt_tools *tools = open_tools(store, &provider);
    cr_expect(find(tools, "git:silent").output_schema.len == 0);
    call_in(tools, "", "git:silent");
    call_in(tools, "", "git:told");
    rt_tool told = find(tools, "git:told");
    cr_expect(rt_str_eq_c(told.output_schema, "{\"type\":\"array\"}") &&
              !(told.flags & RT_TOOL_OBSERVED));
    rt_tools_close(tools);
    tools = open_tools(store, &provider);
    rt_tool tool = find(tools, "git:silent");
    cr_expect(tool.flags & RT_TOOL_OBSERVED);
    expect(tool.output_schema,
           "{\"type\":\"object\",\"properties\":{\"sha\":{\"type\":\"string\"}},"
           "\"required\":[\"sha\"],\"x-observed\":1}");
    rt_tools_close(tools);
}

STORE_TEST(learning, no_value_reaches_the_store)
{
    rt_rows rows;
    rt_error err = { 0 };
    rt_provider provider;
    rt_tools *tools = open_tools(store, &provider);
    call_in(tools, "", "git:silent");
    rt_tools_close(tools);
    cr_assert(rt_sql_once(store, RT_TX_READ, "SELECT shape FROM tool_shapes", NULL, 0, &arena,
                          &rows, &err));
    cr_assert_eq(rows.count, 1);
    cr_expect(rt_str_find(rt_rows_at(&rows, 0, 0).text, RT_STR("secret")) < 0);
}

Test(learning, another_version_of_a_tool_is_learned_anew)
{
    rt_provider provider;
    rt_tools *tools = open_tools(NULL, &provider);
    call_in(tools, "", "git:silent");
    input = "{\"type\":\"object\",\"properties\":{\"limit\":{}}}";
    provider.on_change(provider.change_ctx, &provider);
    rt_tools_settle(tools);
    cr_expect_eq(find(tools, "git:silent").output_schema.len, 0);
    answer = "[1]";
    call_in(tools, "", "git:silent");
    expect(find(tools, "git:silent").output_schema,
           "{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"x-observed\":1}");
    rt_tools_close(tools);
}

Test(learning, looks_at_the_first_results_and_then_rarely)
{
    rt_provider provider;
    rt_tools *tools = open_tools(NULL, &provider);
    for (int i = 0; i < 255; i++)
        rt_tools_observe(tools, RT_STR("git:silent"), RT_STR("1"));
    cr_expect(rt_str_find(find(tools, "git:silent").output_schema, RT_STR("\"x-observed\":20}")) >=
              0);
    rt_tools_observe(tools, RT_STR("git:silent"), RT_STR("null"));
    expect(find(tools, "git:silent").output_schema,
           "{\"type\":[\"null\",\"integer\"],\"x-observed\":21}");
    rt_tools_observe(tools, RT_STR("git:silent"), RT_STR("no JSON"));
    rt_tools_observe(tools, RT_STR("git:nobody"), RT_STR("1"));
    rt_tools_close(tools);
}

STORE_TEST(learning, tools_that_are_called_together_are_related)
{
    rt_provider provider;
    rt_tools *tools = open_tools(store, &provider);
    rt_tool_related related[4];
    for (int i = 0; i < 4; i++) {
        const char *run = i % 2 ? "exec_1" : "exec_2"; /* two runs, side by side */
        call_in(tools, run, i < 2 ? "git:silent" : "git:told");
    }
    call_in(tools, "exec_2", "git:third");
    rt_tools_close(tools);
    tools = open_tools(store, &provider);
    size_t count = rt_tools_related(tools, RT_STR(""), RT_STR("git:told"), &arena, related, 4);
    cr_assert_eq(count, 2);
    cr_expect(rt_str_eq_c(related[0].name, "git:silent") && related[0].is_before &&
              related[0].score == 0.8);
    cr_expect(rt_str_eq_c(related[1].name, "git:third") && !related[1].is_before &&
              related[1].score == 0.4);
    rt_tools_close(tools);
}

Test(learning, a_search_with_a_context_prefers_what_is_called_with_it)
{
    rt_provider provider;
    rt_tools *tools = open_tools(NULL, &provider);
    rt_tool_graph graph;
    rt_tool_hit hits[3];
    rt_str context[] = { RT_STR("git:told") };
    call_in(tools, "exec_1", "git:told");
    call_in(tools, "exec_1", "git:third");
    size_t count = rt_tools_search_with(tools, (rt_str){ 0 }, RT_STR("lists commits"), context, 1,
                                        &arena, hits, 3, &graph);
    cr_assert_eq(count, 3);
    cr_expect(graph.edges == 1 && graph.alpha > 0.66 && graph.alpha < 0.67);
    cr_expect(rt_str_eq_c(hits[0].tool.name, "git:third") && hits[0].graph == 1);
    rt_tools_close(tools);
}
