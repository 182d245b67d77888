/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prompts.c - see prompts.h. Names and descriptions are strangers' words: they are put on one line.
 */
#include "tools/prompts.h"

#include "tools/stubs_internal.h"

#define SCHEMA_SHOWN_MAX 4000

static const char before_tools[] =
    "You can run code in a sealed sandbox and call tools from that code. Send code to the data; "
    "do not fetch data into this conversation.\n\n"
    "FUNCTIONS\n"
    "- listTools(category): browse tools, without code or schemas (GET /api/agent/list-tools)\n"
    "- searchTools(query): find tools by what they do (GET /api/agent/search-tools?q=)\n"
    "- getTool(toolId): load one tool: schema, code, how to use it (GET /api/agent/get-tool?id=)\n"
    "- executeCode({code, language, inputs}): run Python or JavaScript "
    "(POST /api/agent/execute-code)\n"
    "- processData(filePath, options): summary of a large file "
    "(POST /api/agent/process-data)\n"
    "- savePattern({name, code, description}): keep code that worked "
    "(POST /api/agent/save-pattern)\n"
    "- getPattern(name): code that was kept (GET /api/agent/get-pattern?name=)\n"
    "- indexDocument(filePath), searchDocuments(query, fileIds): documents, where the server has "
    "them (/api/agent/search-documents)\n\n"
    "TOOLS\n";

static const char after_tools[] =
    "\nWORKFLOW\n"
    "1. getPattern or list-patterns: has this been solved before?\n"
    "2. listTools or searchTools: find what you need; do not load all tools.\n"
    "3. getTool: load only the tool you are going to use.\n"
    "4. executeCode: in Python call server.tool(arg=value), in JavaScript "
    "await server.tool({arg: value}). Filter, join and sum in the code.\n"
    "5. Return a short answer: counts, sums, the few rows that matter.\n"
    "6. savePattern when it worked.\n\n"
    "COST\n"
    "Every character you send or read is counted (GET /api/agent/cost-summary). A tool definition "
    "you do not load and data that stays in the sandbox cost nothing. Reuse patterns instead of "
    "writing code again.\n\n"
    "SECURITY\n"
    "Code runs isolated: no network, no host files, limits on time and memory. Personal data is "
    "masked before it reaches you; work with the masks. Calls that need approval wait for a "
    "person. Every run is on record.\n";

rt_str rt_prompt_system(rt_tools *tools, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_str categories = tools ? rt_tools_browse(tools, RT_STR(""), arena) : RT_STR("");
    rt_buf_add(&text, rt_str_of(before_tools));
    rt_buf_add(&text, categories.len ? categories : RT_STR("none are connected\n"));
    rt_buf_add(&text, rt_str_of(after_tools));
    return rt_arena_str(arena, rt_buf_str(&text));
}

rt_str rt_prompt_tools(rt_tools *tools, rt_str audience, rt_str category, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_tool *list = NULL;
    size_t count = tools ? rt_tools_list_for(tools, audience, category, arena, &list) : 0;
    size_t shown = RT_MIN(count, (size_t)RT_PROMPT_TOOLS_MAX);
    rt_buf_addf(&text, "Available tools (%zu):\n", count);
    for (size_t i = 0; i < shown; i++)
        rt_buf_addf(&text, "%zu. %.*s: %.*s\n", i + 1, RT_FMT(list[i].name),
                    RT_FMT(stubs_comment(list[i].description, arena)));
    if (shown < count)
        rt_buf_addf(&text, "and %zu more: searchTools finds them\n", count - shown);
    rt_buf_add(&text, RT_STR("\nTo load one: getTool(toolId). To find others: searchTools(query). "
                             "To run code: executeCode({code, language, inputs}).\n"));
    return rt_arena_str(arena, rt_buf_str(&text));
}

/* ---- one tool ---- */

static void write_head(const rt_tool *tool, rt_arena *arena, rt_buf *text)
{
    rt_buf_addf(text, "Tool: %.*s\nDescription: %.*s\n", RT_FMT(tool->name),
                RT_FMT(stubs_comment(tool->description, arena)));
    if (tool->flags & RT_TOOL_NEEDS_APPROVAL)
        rt_buf_add(text, RT_STR("A call waits until a person approves it.\n"));
    if (tool->flags & RT_TOOL_DESTRUCTIVE)
        rt_buf_add(text, RT_STR("It may delete or overwrite.\n"));
}

static void write_call(const rt_tool *tool, rt_arena *arena, rt_buf *text)
{
    rt_buf_addf(text, "\nFrom code, in TypeScript or JavaScript (await it) or Python:\n\n%.*s\n",
                RT_FMT(rt_tool_stub(tool, RT_STUB_TYPESCRIPT, arena)));
    rt_buf_addf(text, "tools.call(\"%.*s\", {…}) works in both languages.\n", RT_FMT(tool->name));
    if (tool->flags & RT_TOOL_OBSERVED)
        rt_buf_add(text, RT_STR("The result's type is what was seen so far, not a promise.\n"));
}

static void write_code(const rt_toolbox_tool *tool, rt_arena *arena, rt_buf *text)
{
    rt_json packages, item;
    rt_buf_addf(text, "Language: %.*s\nLimits: %lld MB, %lld s\nPackages, used where installed:",
                RT_FMT(tool->language), (long long)tool->max_memory_mb,
                (long long)tool->max_timeout_sec);
    const char *between = " ";
    if (rt_json_parse(tool->required_packages, arena, &packages, NULL)) {
        rt_json_iter it = rt_json_each(packages);
        for (; rt_json_next(&it, NULL, &item); between = ", ")
            rt_buf_addf(text, "%s%.*s", between, RT_FMT(rt_json_str(item)));
    }
    rt_buf_addf(
        text,
        "\n\nCode template:\n```%.*s\n%.*s\n```\n\n"
        "Usage: executeCode({code: <the template, adapted>, language: \"%.*s\", "
        "inputs: %.*s, toolId: \"%.*s\"})\n",
        RT_FMT(tool->language), RT_FMT(rt_str_trim(tool->code)), RT_FMT(tool->language),
        RT_FMT(tool->sample_input.len <= SCHEMA_SHOWN_MAX ? tool->sample_input : RT_STR("{…}")),
        RT_FMT(tool->id));
}

bool rt_prompt_tool(rt_tools *tools, rt_store *store, rt_str audience, rt_str name, rt_arena *arena,
                    rt_str *out, rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_str id = name, prefix = RT_STR(RT_TOOLBOX ":");
    rt_toolbox_tool box;
    rt_tool tool;
    if (rt_str_starts(id, prefix))
        id = rt_str_slice(id, prefix.len, id.len);
    bool has_code = store && rt_toolbox_get(store, id, arena, &box, NULL);
    if (has_code)
        name = rt_arena_printf(arena, RT_TOOLBOX ":%.*s", RT_FMT(box.id));
    if (!tools)
        return rt_fail(err, RT_NOT_FOUND, "Tool not found: %.*s",
                       (int)RT_MIN(name.len, (size_t)100), name.ptr);
    if (!rt_tools_find_for(tools, audience, name, arena, &tool, err))
        return false;
    write_head(&tool, arena, &text);
    if (has_code)
        write_code(&box, arena, &text);
    write_call(&tool, arena, &text);
    *out = rt_arena_str(arena, rt_buf_str(&text));
    return rt_buf_ok(&text, err);
}
