/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tools/prompts.h"

static rt_store *open_store(void)
{
    rt_error err = { 0 };
    rt_store *store = NULL;
    size_t added;
    cr_assert(rt_store_open(&(rt_store_config){ .url = RT_STR("sqlite::memory:") }, &store, &err),
              "%s", err.text);
    cr_assert(rt_store_migrate(store, NULL, NULL, &err), "%s", err.text);
    cr_assert(rt_toolbox_seed(store, &added, &err), "%s", err.text);
    return store;
}

static bool run(void *ctx, const rt_toolbox_run *what, rt_arena *arena, rt_tool_result *out,
                rt_error *err)
{
    (void)ctx, (void)what, (void)arena, (void)out;
    return rt_fail(err, RT_INTERNAL, "nobody runs here");
}

static rt_tools *open_tools(rt_store *store)
{
    rt_error err = { 0 };
    rt_tools *tools = NULL;
    rt_provider *box;
    cr_assert(rt_tools_open(&(rt_tools_config){ .store = store }, &tools, &err), "%s", err.text);
    cr_assert(rt_toolbox_open(&(rt_toolbox_config){ .store = store, .run = run }, &box, &err));
    cr_assert(rt_tools_add(tools, box, &err), "%s", err.text);
    return tools;
}

static void has(rt_str text, const char *part)
{
    cr_expect(rt_str_find(text, rt_str_of(part)) >= 0, "no «%s» in:\n%.*s", part, RT_FMT(text));
}

Test(prompts, the_system_prompt_names_functions_workflow_cost_and_security)
{
    static const char *const parts[] = {
        "listTools(",   "searchTools(", "getTool(",       "executeCode(",       "processData(",
        "savePattern(", "getPattern(",  "indexDocument(", "searchDocuments(",   "WORKFLOW\n1. ",
        "COST\n",       "SECURITY\n",   "data: 2 tools",  "automation: 3 tools"
    };
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_store *store RT_CLEANUP(rt_store_closep) = open_store();
    rt_tools *tools RT_CLEANUP(rt_tools_closep) = open_tools(store);
    rt_str text = rt_prompt_system(tools, &arena);
    for (size_t i = 0; i < RT_COUNT(parts); i++)
        has(text, parts[i]);
    cr_expect_lt(text.len, 4000); /* a thousand tokens */
    has(rt_prompt_system(NULL, &arena), "none are connected");
}

Test(prompts, a_category_is_listed_and_a_tool_explained)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_store *store RT_CLEANUP(rt_store_closep) = open_store();
    rt_tools *tools RT_CLEANUP(rt_tools_closep) = open_tools(store);
    rt_error err = { 0 };
    rt_str text = rt_prompt_tools(tools, RT_STR(""), RT_STR("data"), &arena);
    has(text, "Available tools (2):\n1. toolbox:csv_parser: ");
    static const char *const names[] = { "toolbox:csv_parser", "csv_parser", "CSV Parser" };
    for (size_t i = 0; i < RT_COUNT(names); i++) {
        cr_assert(
            rt_prompt_tool(tools, store, RT_STR(""), rt_str_of(names[i]), &arena, &text, &err),
            "%s", err.text);
        has(text, "Tool: toolbox:csv_parser\n");
        has(text, "```python\n");
        has(text, "csvParser(args");
        has(text, "Packages, used where installed: pandas, numpy");
    }
    cr_assert(!rt_prompt_tool(tools, store, RT_STR(""), RT_STR("nobody"), &arena, &text, &err));
    cr_expect_eq(err.code, RT_NOT_FOUND);
}
