/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_tools.c - the few tools a model sees: find a tool, look at it, run code that calls it. All
 * others are reached through these, or by their own name "server:tool".
 *
 * What is listed here is in the context of every conversation, so descriptions are short and the
 * table is small. Names are shown with '_', because models' own rules have no ':'; both are
 * understood, and so is a name without "pml".
 */
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "server/mcp.h"
#include "server/tools_view.h"

#define READ_ONLY "{\"readOnlyHint\":true,\"openWorldHint\":false}"
#define RUNS_CODE "{\"destructiveHint\":false,\"openWorldHint\":false}"

/* ---- writing results ---- */

void mcp_text_block(rt_json_writer *w, rt_str text)
{
    rt_jw_object(w);
    rt_jw_kstr(w, "type", RT_STR("text"));
    rt_jw_kstr(w, "text", text);
    rt_jw_end(w);
}

void mcp_write_text(rt_json_writer *w, rt_str text, bool is_error)
{
    rt_jw_karray(w, "content");
    mcp_text_block(w, text);
    rt_jw_end(w);
    if (is_error)
        rt_jw_kbool(w, "isError", true);
}

void mcp_write_structured(mcp_call *c, rt_json_writer *w, rt_str json)
{
    mcp_write_text(w, json, false);
    if (c->version->has_structured)
        rt_jw_kraw(w, "structuredContent", json);
}

void mcp_base64(rt_buf *out, rt_str bytes)
{
    char *to = rt_buf_reserve(out, bytes.len / 3 * 4 + 8);
    if (to)
        out->len += (size_t)EVP_EncodeBlock((unsigned char *)to, (const unsigned char *)bytes.ptr,
                                            (int)bytes.len);
}

/* ---- finding and looking ---- */

static size_t read_context(rt_json list, rt_str out[TOOLS_CONTEXT_MAX])
{
    rt_json_iter it = rt_json_each(list);
    rt_json item;
    size_t count = 0;
    while (count < TOOLS_CONTEXT_MAX && rt_json_next(&it, NULL, &item))
        if (rt_json_type(item) == RT_JSON_STRING)
            out[count++] = rt_json_str(item);
    return count;
}

static bool search_tools(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    rt_str query = rt_json_str(rt_json_get_c(arguments, "query")), context[TOOLS_CONTEXT_MAX];
    bool has_related = rt_json_bool(rt_json_get_c(arguments, "include_related"), false);
    rt_buf json RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer in;
    int64_t limit = TOOLS_SEARCH_DEFAULT;
    if (query.len == 0)
        return mcp_fail(c, RT_MCP_INVALID_PARAMS, (rt_str){ 0 },
                        "Missing required parameter: query");
    rt_json_i64(rt_json_get_c(arguments, "limit"), &limit);
    limit = RT_MAX((int64_t)1, RT_MIN(limit, (int64_t)TOOLS_SEARCH_MAX));
    size_t count = read_context(rt_json_get_c(arguments, "context_tools"), context);
    rt_json_begin(&in, &json);
    tools_write_search(c->mcp->config->tools, c->caller.organisation_id, query, context, count,
                       (size_t)limit, has_related, &c->arena, &in);
    mcp_write_structured(c, w, rt_buf_str(&json));
    return true;
}

static void write_schema(rt_json_writer *w, const char *key, rt_str schema)
{
    if (schema.len > 0)
        rt_jw_kraw(w, key, schema);
}

static bool describe_tool(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    rt_str name = rt_json_str(rt_json_get_c(arguments, "name"));
    rt_str as = rt_json_str(rt_json_get_c(arguments, "as"));
    rt_buf json RT_CLEANUP(rt_buf_done) = { 0 };
    rt_stub_language language;
    rt_error err = { 0 };
    rt_json_writer in;
    rt_tool tool;
    if (!c->mcp->config->tools)
        rt_fail(&err, RT_NOT_FOUND, "there is no tool '%.*s': this server has no tools",
                (int)RT_MIN(name.len, (size_t)80), name.ptr);
    if (!c->mcp->config->tools ||
        !rt_tools_resolve_for(c->mcp->config->tools, c->caller.organisation_id, name,
                              rt_now_ns() + TOOLS_GATHER_MS * 1000000ull, &c->arena, &tool, &err)) {
        mcp_write_text(w, rt_str_of(err.text), true);
        return true;
    }
    rt_json_begin(&in, &json);
    rt_jw_object(&in);
    rt_jw_kstr(&in, "name", tool.name);
    rt_jw_kstr(&in, "description", tool.description);
    if (rt_stub_language_parse(as, &language, &err)) {
        rt_jw_kstr(&in, "declaration", rt_tool_stub(&tool, language, &c->arena));
    } else {
        write_schema(&in, "inputSchema", tool.input_schema);
        write_schema(&in, "outputSchema", tool.output_schema);
    }
    if (tool.flags & RT_TOOL_OBSERVED)
        rt_jw_kbool(&in, "outputObserved", true);
    rt_jw_kbool(&in, "needsApproval", (tool.flags & RT_TOOL_NEEDS_APPROVAL) != 0);
    rt_jw_end(&in);
    mcp_write_structured(c, w, rt_buf_str(&json));
    return true;
}

/* ---- somebody else's tools, by their own names ---- */

static rt_str known_servers(mcp_call *c)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_tools *tools = c->mcp->config->tools;
    rt_tool *list = NULL;
    rt_str last = { 0 };
    rt_json_writer w;
    size_t count =
        tools ? rt_tools_list_for(tools, c->caller.organisation_id, (rt_str){ 0 }, &c->arena, &list)
              : 0;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_karray(&w, "available_servers");
    for (size_t i = 0; i < count; i++) { /* in the order of names: a server's tools lie together */
        if (!rt_str_eq(last, list[i].server))
            rt_jw_str(&w, list[i].server);
        last = list[i].server;
    }
    rt_jw_end(&w);
    rt_jw_end(&w);
    return rt_arena_str(&c->arena, rt_buf_str(&text));
}

static void tell_progress(void *ctx, double done, double total, rt_str message)
{
    mcp_progress(ctx, done, total, message);
}

static rt_str arguments_text(mcp_call *c, rt_json arguments)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    if (rt_json_is_absent(arguments))
        return RT_STR("{}");
    rt_buf_init(&text, MCP_MESSAGE_MAX);
    rt_json_print(arguments, &text);
    return rt_arena_str(&c->arena, rt_buf_str(&text));
}

static void write_proxied(mcp_call *c, const rt_tool_result *result, rt_json_writer *w)
{
    bool is_object = result->value.len > 0 && result->value.ptr[0] == '{';
    if (result->content.len > sizeof("[]") - 1)
        rt_jw_kraw(w, "content", result->content);
    else
        mcp_write_text(w, result->value, false);
    if (result->is_error)
        rt_jw_kbool(w, "isError", true);
    else if (c->version->has_structured && is_object)
        rt_jw_kraw(w, "structuredContent", result->value);
}

static void tell_wait(void *ctx, bool is_waiting)
{
    if (is_waiting)
        mcp_progress(ctx, 0, 0, RT_STR("waiting for approval"));
}

static bool proxy(mcp_call *c, rt_str name, rt_json arguments, rt_json_writer *w)
{
    rt_error err = { 0 };
    rt_tool_result result;
    rt_tool_request request = { .caller = &c->caller,
                                .tool = name,
                                .arguments = arguments_text(c, arguments),
                                .reason = RT_STR("called over MCP"),
                                .canceller = &c->canceller,
                                .trace = c->trace,
                                .on_wait = tell_wait,
                                .on_progress = tell_progress,
                                .ctx = c };
    rt_engine *engine = c->mcp->config->engine;
    if (engine && rt_engine_call(engine, &request, &c->arena, &result, &err)) {
        write_proxied(c, &result, w);
        return true;
    }
    if (!engine || err.code == RT_NOT_FOUND)
        return mcp_fail(c, RT_MCP_INVALID_PARAMS, known_servers(c), "Unknown tool: %.*s",
                        (int)RT_MIN(name.len, (size_t)120), name.ptr);
    if (err.code == RT_INVALID || err.code == RT_DENIED)
        return mcp_fail_error(c, &err);
    mcp_write_text(w, rt_arena_printf(&c->arena, "Error: %s", err.text), true);
    return true;
}

/* ---- the table ---- */

const mcp_tool mcp_tools[] = {
    { "pml_search_tools", "Search tools",
      "Find tools of all connected servers by what they do. Returns names and descriptions.",
      "{\"type\":\"object\",\"properties\":{"
      "\"query\":{\"type\":\"string\",\"description\":\"what the tool should do, in plain words\"},"
      "\"limit\":{\"type\":\"integer\",\"default\":10},"
      "\"include_related\":{\"type\":\"boolean\",\"default\":false},"
      "\"context_tools\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}},"
      "\"required\":[\"query\"]}",
      "{\"type\":\"object\",\"properties\":{\"tools\":{\"type\":\"array\"},"
      "\"meta\":{\"type\":\"object\"}},\"required\":[\"tools\"]}",
      READ_ONLY, RT_ROLE_VIEWER, search_tools },
    { "pml_describe_tool", "Describe a tool",
      "One tool found by pml_search_tools: its schemas, or a declaration for code.",
      "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"description\":"
      "\"server:tool\"},\"as\":{\"enum\":[\"schema\",\"typescript\",\"python\"]}},"
      "\"required\":[\"name\"]}",
      "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},"
      "\"inputSchema\":{\"type\":\"object\"}},\"required\":[\"name\"]}",
      READ_ONLY, RT_ROLE_VIEWER, describe_tool },
    { "pml_execute_code", "Execute code",
      "Run code in a sealed cell, without network or host files. Tools are called as "
      "server.tool(args); the value of the last expression or return comes back. Process data in "
      "the code and return only what you need.",
      "{\"type\":\"object\",\"properties\":{"
      "\"code\":{\"type\":\"string\",\"description\":\"at most 100 KB\"},"
      "\"language\":{\"type\":\"string\",\"enum\":[\"typescript\",\"javascript\",\"python\","
      "\"bash\"],\"default\":\"typescript\"},"
      "\"intent\":{\"type\":\"string\",\"description\":\"what the code is for: only the tools that "
      "fit are made available\"},"
      "\"tools\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"description\":\"only these, "
      "such as github:*\"},"
      "\"context\":{\"type\":\"object\",\"description\":\"each key becomes a variable\"},"
      "\"session_id\":{\"type\":\"string\"},"
      "\"sandbox_config\":{\"type\":\"object\",\"properties\":{"
      "\"timeout\":{\"type\":\"integer\",\"description\":\"ms\",\"default\":30000},"
      "\"memoryLimit\":{\"type\":\"integer\",\"description\":\"MB\",\"default\":512},"
      "\"allowedReadPaths\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
      "\"piiProtection\":{\"type\":\"boolean\"}}},"
      "\"return_state\":{\"type\":\"boolean\"}},\"required\":[\"code\"]}",
      "{\"type\":\"object\",\"properties\":{\"result\":{},"
      "\"logs\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
      "\"metrics\":{\"type\":\"object\"},\"state\":{\"type\":\"object\"},"
      "\"artifacts\":{\"type\":\"array\"}},\"required\":[\"result\",\"logs\",\"metrics\"]}",
      RUNS_CODE, RT_ROLE_MEMBER, mcp_execute_code },
    { "execute_code", "Execute code, plainly",
      "Run a short piece of code (5 s) and get its output as text.",
      "{\"type\":\"object\",\"properties\":{"
      "\"language\":{\"type\":\"string\",\"enum\":[\"javascript\",\"python\",\"typescript\","
      "\"bash\"]},\"code\":{\"type\":\"string\"},"
      "\"packages\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
      "\"input\":{\"description\":\"any JSON; the code sees it as input (input_data in "
      "Python)\"}},\"required\":[\"language\",\"code\"]}",
      NULL, RUNS_CODE, RT_ROLE_MEMBER, mcp_execute_plain },
    { "pml_session", "Sessions",
      "A cell that keeps variables and files between runs; pass its id to pml_execute_code. "
      "branch copies a live session.",
      "{\"type\":\"object\",\"properties\":{"
      "\"action\":{\"type\":\"string\",\"enum\":[\"create\",\"list\",\"branch\",\"end\",\"files\","
      "\"read\",\"write\"]},"
      "\"session_id\":{\"type\":\"string\"},\"language\":{\"type\":\"string\"},"
      "\"name\":{\"type\":\"string\"},\"ttl\":{\"type\":\"string\",\"description\":\"15m\"},"
      "\"path\":{\"type\":\"string\"},\"text\":{\"type\":\"string\"}},"
      "\"required\":[\"action\"]}",
      NULL, RUNS_CODE, RT_ROLE_MEMBER, mcp_session },
    { "pml_read_artifact", "Read an artifact",
      "A part of a large output, by its handle: lines, the places of a text, or a JSON branch.",
      "{\"type\":\"object\",\"properties\":{\"handle\":{\"type\":\"string\"},"
      "\"line\":{\"type\":\"integer\",\"minimum\":1},\"lines\":{\"type\":\"integer\","
      "\"default\":100},"
      "\"search\":{\"type\":\"string\"},\"json_path\":{\"type\":\"string\",\"description\":"
      "\"$.rows[2:5].name\"}},\"required\":[\"handle\"]}",
      NULL, READ_ONLY, RT_ROLE_VIEWER, mcp_read_artifact },
    { "pml_approvals", "Approvals",
      "What waits for a person's word; with id and approved, the word of the user, who must have "
      "said it.",
      "{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"string\"},"
      "\"approved\":{\"type\":\"boolean\"},\"feedback\":{\"type\":\"string\"}}}",
      NULL, "{\"destructiveHint\":true,\"openWorldHint\":false}", RT_ROLE_VIEWER, mcp_approvals },
    { "pml_patterns", "Patterns",
      "Code that worked, by name: look here first, save what worked, run it with other inputs.",
      "{\"type\":\"object\",\"properties\":{"
      "\"action\":{\"enum\":[\"list\",\"get\",\"save\",\"run\",\"delete\"]},"
      "\"name\":{\"type\":\"string\"},\"inputs\":{\"type\":\"object\"},"
      "\"code\":{\"type\":\"string\"},\"language\":{\"type\":\"string\"},"
      "\"description\":{\"type\":\"string\"},\"parameters\":{\"type\":\"object\","
      "\"description\":\"schema of inputs\"}},\"required\":[\"action\"]}",
      NULL, RUNS_CODE, RT_ROLE_VIEWER, mcp_patterns },
    { 0 },
};

/* Names that are understood and not listed: other words for what is. */
static const mcp_tool other_names[] = {
    { .name = "pml_list_patterns", .role = RT_ROLE_VIEWER, .call = mcp_pattern_list },
    { .name = "pml_get_pattern", .role = RT_ROLE_VIEWER, .call = mcp_pattern_get },
    { .name = "pml_save_pattern", .role = RT_ROLE_MEMBER, .call = mcp_pattern_save },
    { .name = "pml_run_pattern", .role = RT_ROLE_MEMBER, .call = mcp_pattern_run },
    { 0 },
};

static void write_tool(const mcp_call *c, const mcp_tool *tool, rt_json_writer *w)
{
    rt_jw_object(w);
    rt_jw_kstr(w, "name", rt_str_of(tool->name));
    if (tool->title)
        rt_jw_kstr(w, "title", rt_str_of(tool->title));
    rt_jw_kstr(w, "description", rt_str_of(tool->about));
    rt_jw_kraw(w, "inputSchema", rt_str_of(tool->input));
    if (tool->output && c->version->has_structured)
        rt_jw_kraw(w, "outputSchema", rt_str_of(tool->output));
    if (tool->annotations)
        rt_jw_kraw(w, "annotations", rt_str_of(tool->annotations));
    rt_jw_end(w);
}

bool mcp_list_tools(mcp_call *c, rt_json_writer *w)
{
    if (!mcp_check_cursor(c))
        return false;
    if (c->agents.len > 0)
        return mcp_agents_list(c, w);
    rt_jw_karray(w, "tools");
    if (c->mcp->config->has_mcp_fixture) /* first: the suite calls the first one blindly */
        for (const mcp_tool *tool = mcp_fixture_tools; tool->name; tool++)
            write_tool(c, tool, w);
    for (const mcp_tool *tool = mcp_tools; tool->name; tool++)
        if (c->caller.role >= tool->role)
            write_tool(c, tool, w);
    rt_jw_end(w);
    return true;
}

static const mcp_tool *find_in(const mcp_tool *tools, rt_str name)
{
    for (; tools->name; tools++)
        if (rt_str_eq_c(name, tools->name))
            return tools;
    return NULL;
}

const mcp_tool *mcp_tool_find(const mcp *m, rt_str name)
{
    char full[80];
    const mcp_tool *tool = find_in(mcp_tools, name);
    if (!tool && m->config->has_mcp_fixture)
        tool = find_in(mcp_fixture_tools, name);
    if (tool || name.len > sizeof(full) - 8)
        return tool;
    rt_str bare = rt_str_starts(name, RT_STR("pml:")) ? rt_str_slice(name, 4, name.len) : name;
    if (!rt_str_starts(bare, RT_STR("pml_"))) {
        snprintf(full, sizeof(full), "pml_%.*s", RT_FMT(bare));
        bare = rt_str_of(full);
    }
    tool = find_in(mcp_tools, bare);
    return tool ? tool : find_in(other_names, bare);
}

bool mcp_call_tool(mcp_call *c, rt_json_writer *w)
{
    rt_str name = rt_json_str(rt_json_get_c(c->params, "name"));
    rt_json arguments = rt_json_get_c(c->params, "arguments");
    const mcp_tool *tool = mcp_tool_find(c->mcp, name);
    if (name.len == 0)
        return mcp_fail(c, RT_MCP_INVALID_PARAMS, (rt_str){ 0 }, "Invalid params: name is missing");
    if (!rt_json_is_absent(arguments) && rt_json_type(arguments) != RT_JSON_OBJECT)
        return mcp_fail(c, RT_MCP_INVALID_PARAMS, (rt_str){ 0 },
                        "Invalid params: arguments must be an object");
    if (c->agents.len > 0)
        return mcp_agents_call(c, name, arguments, w);
    if (!tool)
        return proxy(c, name, arguments, w);
    if (c->caller.role < tool->role)
        return mcp_fail(c, RT_MCP_INVALID_PARAMS, (rt_str){ 0 },
                        "You do not have permission to call %s", tool->name);
    return tool->call(c, arguments, w);
}
