/* SPDX-License-Identifier: Apache-2.0 */
#include "store/fixture_test.h"
#include "tools/tools.h"

static void seed(rt_store *store, size_t expected)
{
    rt_error err = { 0 };
    size_t added;
    cr_assert(rt_toolbox_seed(store, &added, &err), "%s", err.text);
    cr_assert_eq(added, expected);
}

STORE_TEST(toolbox, seeding_twice_leaves_eleven_tools_as_the_table_says)
{
    static const struct {
        const char *name, *category, *language, *packages;
        int64_t mb, seconds;
    } table[] = {
        { "CSV Parser", "data", "python", "[\"pandas\",\"numpy\"]", 1024, 60 },
        { "JSON Transformer", "data", "javascript", "[\"lodash\"]", 512, 30 },
        { "Stripe Payment", "api", "python", "[\"stripe\"]", 256, 30 },
        { "Twilio SMS", "api", "javascript", "[\"twilio\"]", 256, 30 },
        { "PDF Extractor", "documents", "python", "[\"PyPDF2\"]", 1024, 60 },
        { "Excel Reader", "documents", "python", "[\"openpyxl\",\"pandas\"]", 1024, 60 },
        { "Statistical Analyzer", "analytics", "python", "[\"pandas\",\"numpy\",\"scipy\"]", 512,
          30 },
        { "Trend Detector", "analytics", "python", "[\"pandas\",\"numpy\"]", 512, 30 },
        { "Email Sender", "automation", "python", "[\"smtplib\"]", 256, 30 },
        { "File Watcher", "automation", "javascript", "[\"chokidar\"]", 256, 30 },
        { "Data Validator", "automation", "python", "[\"jsonschema\"]", 256, 30 },
    };
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_toolbox_tool *all, tool;
    rt_error err = { 0 };
    size_t count;
    seed(store, 11);
    seed(store, 0);
    cr_assert(rt_toolbox_list(store, RT_STR(""), RT_STR(""), &arena, &all, &count, &err));
    cr_assert_eq(count, RT_COUNT(table));
    for (size_t i = 0; i < RT_COUNT(table); i++) {
        cr_assert(rt_toolbox_get(store, rt_str_of(table[i].name), &arena, &tool, &err), "%s",
                  err.text);
        cr_assert(rt_str_eq_c(tool.category, table[i].category));
        cr_assert(rt_str_eq_c(tool.language, table[i].language));
        cr_assert(rt_str_eq_c(tool.required_packages, table[i].packages));
        cr_assert(rt_str_eq_c(tool.version, "1.0.0"));
        cr_assert_eq(tool.max_memory_mb, table[i].mb);
        cr_assert_eq(tool.max_timeout_sec, table[i].seconds);
        cr_assert_gt(tool.code.len, 100);
    }
}

STORE_TEST(toolbox, browsing_gives_no_code_and_finds_text_in_any_case)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_toolbox_tool *all;
    rt_error err = { 0 };
    size_t count;
    seed(store, 11);
    cr_assert(rt_toolbox_list(store, RT_STR(""), RT_STR("STRIPE"), &arena, &all, &count, &err));
    cr_assert_eq(count, 1);
    cr_assert_eq(all[0].code.len + all[0].input_schema.len, 0);
    cr_assert(rt_toolbox_list(store, RT_STR(""), RT_STR("automation"), &arena, &all, &count, &err));
    cr_assert_eq(count, 3);
    cr_assert(rt_toolbox_list(store, RT_STR("documents"), RT_STR(""), &arena, &all, &count, &err));
    cr_assert_eq(count, 2);
}

STORE_TEST(toolbox, an_inactive_tool_disappears)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_toolbox_tool *all, tool;
    rt_error err = { 0 };
    size_t count;
    seed(store, 11);
    cr_assert(rt_sql_once(store, RT_TX_WRITE,
                          "UPDATE tools SET is_active = FALSE WHERE id = 'csv_parser'", NULL, 0,
                          NULL, NULL, &err));
    cr_assert(rt_toolbox_list(store, RT_STR("data"), RT_STR(""), &arena, &all, &count, &err));
    cr_assert_eq(count, 1);
    cr_assert(!rt_toolbox_get(store, RT_STR("csv_parser"), &arena, &tool, &err));
    cr_assert_str_eq(err.text, "Tool not found: csv_parser");
}

/* Stands for a cell: answers with what it was to run. */
static bool run(void *ctx, const rt_toolbox_run *what, rt_arena *arena, rt_tool_result *out,
                rt_error *err)
{
    unsigned *runs = ctx;
    (void)err;
    ++*runs;
    *out = (rt_tool_result){ .value = rt_arena_printf(arena, "\"%.*s\"", RT_FMT(what->tool->id)),
                             .elapsed_us = 2000 };
    return true;
}

static rt_tools *open_box(rt_store *store, unsigned *runs, const rt_str *hosts, size_t count)
{
    rt_toolbox_config config = {
        .store = store, .run = run, .run_ctx = runs, .granted_hosts = hosts, .granted_count = count
    };
    rt_error err = { 0 };
    rt_provider *box = NULL;
    rt_tools *tools = NULL;
    cr_assert(rt_toolbox_open(&config, &box, &err), "%s", err.text);
    cr_assert(rt_tools_open(&(rt_tools_config){ .store = store }, &tools, &err), "%s", err.text);
    cr_assert(rt_tools_add(tools, box, &err), "%s", err.text);
    return tools;
}

static rt_code call(rt_tools *tools, const char *name, const char *arguments, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_tool_call what = { .tool = rt_str_of(name),
                          .arguments = rt_str_of(arguments),
                          .cancel_fd = -1 };
    rt_tool_result result;
    return rt_tools_call(tools, &what, &arena, &result, err) ? RT_OK : err->code;
}

STORE_TEST(toolbox, the_network_needs_a_grant_and_the_error_names_it)
{
    rt_error err = { 0 };
    unsigned runs = 0;
    rt_str granted = RT_STR("smtp.example.com");
    seed(store, 11);
    rt_tools *tools RT_CLEANUP(rt_tools_closep) = open_box(store, &runs, &granted, 1);
    cr_assert_eq(call(tools, "toolbox:stripe_payment", "{}", &err), RT_DENIED);
    cr_assert(strstr(err.text, "allowed_hosts: [api.stripe.com]"), "%s", err.text);
    cr_assert_eq(call(tools, "toolbox:email_sender", "{\"smtp_host\":\"evil.example\"}", &err),
                 RT_DENIED);
    cr_assert(strstr(err.text, "evil.example"), "%s", err.text);
    cr_assert_eq(runs, 0);
    cr_assert_eq(call(tools, "toolbox:email_sender", "{\"smtp_host\":\"smtp.example.com\"}", &err),
                 RT_OK);
    cr_assert_eq(call(tools, "toolbox:csv_parser", "{}", &err), RT_OK);
    cr_assert_eq(runs, 2);
    cr_assert_eq(call(tools, "toolbox:csv_parser", "[]", &err), RT_INVALID);
    cr_assert_eq(call(tools, "toolbox:csv_parser", "{", &err), RT_INVALID);
}

STORE_TEST(toolbox, uses_are_counted_and_survive)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_toolbox_tool tool;
    rt_tool_usage usage;
    unsigned runs = 0;
    seed(store, 11);
    for (int i = 0; i < 2; i++) {
        rt_tools *tools RT_CLEANUP(rt_tools_closep) = open_box(store, &runs, NULL, 0);
        cr_assert_eq(call(tools, "toolbox:csv_parser", "{}", &err), RT_OK);
        rt_tools_used(tools, RT_STR("toolbox:csv_parser"), 4000, true);
        cr_assert(rt_tools_usage(tools, RT_STR("toolbox:csv_parser"), &usage, &err));
        cr_assert_eq(usage.uses, 2u * (unsigned)(i + 1));
        cr_assert_eq(usage.failures, (unsigned)i + 1);
    }
    cr_assert(rt_toolbox_get(store, RT_STR("csv_parser"), &arena, &tool, &err));
    cr_assert_eq(tool.usage_count, 4);
    cr_assert_gt(tool.last_used_ms, 0);
    cr_assert_gt(tool.average_exec_ms, 1.9);
    seed(store, 0);
    cr_assert(rt_toolbox_get(store, RT_STR("csv_parser"), &arena, &tool, &err));
    cr_assert_eq(tool.usage_count, 4, "seeding keeps what was counted");
}
