/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_tools.c - tools: looking around, one in full, calling it, and how their servers are.
 *
 * Browsing gives no schema: that is what keeps it small. A call passes the engine's gate, as one
 * from code or over MCP does; who waits for it and hangs up ends it.
 */
#include "server/server_internal.h"
#include "server/tools_view.h"

#define CALL_TIMEOUT_MAX_MS 300000

static bool need_tools(const http_request *r, rt_tools **out, rt_error *err)
{
    *out = r->server->config.tools;
    return *out || rt_fail(err, RT_NOT_FOUND, "this server has no tools");
}

static void write_flags(unsigned flags, rt_json_writer *w)
{
    static const struct {
        unsigned flag;
        const char *name;
    } names[] = { { RT_TOOL_READ_ONLY, "read_only" },
                  { RT_TOOL_DESTRUCTIVE, "destructive" },
                  { RT_TOOL_IDEMPOTENT, "idempotent" },
                  { RT_TOOL_OPEN_WORLD, "open_world" },
                  { RT_TOOL_NEEDS_APPROVAL, "needs_approval" },
                  { RT_TOOL_SIDE_EFFECT, "side_effect" },
                  { RT_TOOL_SEES_PII, "sees_pii" } };
    rt_jw_karray(w, "flags");
    for (size_t i = 0; i < RT_COUNT(names); i++)
        if (flags & names[i].flag)
            rt_jw_str(w, rt_str_of(names[i].name));
    rt_jw_end(w);
}

static void write_head(const rt_tool *tool, rt_json_writer *w)
{
    rt_jw_kstr(w, "name", tool->name);
    http_jw_text(w, "title", tool->title);
    rt_jw_kstr(w, "description", tool->description);
    rt_jw_kstr(w, "category", tool->category);
    rt_jw_kstr(w, "server", tool->server);
    http_jw_text(w, "version", tool->version);
    write_flags(tool->flags, w);
}

/* ---- looking around ---- */

static bool list(http_request *r, http_reply *reply, rt_error *err)
{
    rt_str after = http_query(r, "after"), last = { 0 };
    size_t limit = http_query_u64(r, "limit", 100), shown = 0, from = 0;
    rt_tools *tools;
    rt_tool *all;
    rt_json_writer w;
    if (!need_tools(r, &tools, err))
        return false;
    rt_tools_gather(tools, rt_now_ns() + TOOLS_GATHER_MS * 1000000ull);
    size_t count = rt_tools_list_for(tools, r->caller.organisation_id, http_query(r, "category"),
                                     &r->arena, &all);
    while (after.len > 0 && from < count && rt_str_cmp(all[from].name, after) <= 0)
        from++;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_karray(&w, "items");
    for (; shown < limit && from + shown < count; shown++) {
        last = all[from + shown].name;
        rt_jw_object(&w);
        write_head(&all[from + shown], &w);
        rt_jw_end(&w);
    }
    rt_jw_end(&w);
    rt_jw_ku64(&w, "total", count);
    http_jw_text(&w, "next_after", from + shown < count ? last : (rt_str){ 0 });
    rt_jw_end(&w);
    return true;
}

static bool search(http_request *r, http_reply *reply, rt_error *err)
{
    rt_str query = http_query(r, "q"), rest = http_query(r, "context"), context[TOOLS_CONTEXT_MAX];
    size_t count = 0;
    rt_json_writer w;
    if (rt_str_trim(query).len == 0)
        return rt_fail(err, RT_INVALID, "'q' must say in a few words what the tool should do");
    while (rest.len > 0 && count < RT_COUNT(context) && rt_str_cut(&rest, ',', &context[count]))
        count++;
    http_reply_json(reply, 200, &w);
    tools_write_search(r->server->config.tools, r->caller.organisation_id, query, context, count,
                       http_query_u64(r, "limit", TOOLS_SEARCH_DEFAULT),
                       http_query_bool(r, "related", false), &r->arena, &w);
    return true;
}

static bool servers(http_request *r, http_reply *reply, rt_error *err)
{
    rt_tools *tools;
    rt_json_writer w;
    if (!need_tools(r, &tools, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_key(&w, RT_STR("items"));
    rt_tools_health(tools, &w);
    rt_jw_end(&w);
    return true;
}

/* ---- one ---- */

static bool write_usage(rt_tools *tools, rt_str name, rt_json_writer *w, rt_error *err)
{
    rt_tool_usage usage;
    if (!rt_tools_usage(tools, name, &usage, err))
        return false;
    rt_jw_kobject(w, "usage");
    rt_jw_ku64(w, "uses", usage.uses);
    rt_jw_ku64(w, "failures", usage.failures);
    rt_jw_kdouble(w, "average_ms", usage.average_ms);
    http_jw_time(w, "last_used_at", usage.last_used_ms);
    rt_jw_end(w);
    return true;
}

static bool reply_tool(http_reply *reply, rt_tools *tools, const rt_tool *tool, rt_error *err)
{
    rt_json_writer w;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    write_head(tool, &w);
    http_jw_raw(&w, "input_schema", tool->input_schema, RT_STR("null"));
    http_jw_raw(&w, "output_schema", tool->output_schema, RT_STR("null"));
    rt_jw_kbool(&w, "is_output_observed", (tool->flags & RT_TOOL_OBSERVED) != 0);
    if (!write_usage(tools, tool->name, &w, err))
        return false;
    rt_jw_end(&w);
    return true;
}

static bool get(http_request *r, http_reply *reply, rt_error *err)
{
    rt_str format = http_query(r, "format");
    rt_stub_language language;
    rt_tools *tools;
    rt_tool tool;
    if (!need_tools(r, &tools, err) ||
        !rt_tools_resolve_for(tools, r->caller.organisation_id, http_param(r, "name"),
                              rt_now_ns() + TOOLS_GATHER_MS * 1000000ull, &r->arena, &tool, err))
        return false;
    if (!format.ptr || rt_str_eq_c(format, "json"))
        return reply_tool(reply, tools, &tool, err);
    if (!rt_stub_language_parse(format, &language, err))
        return false;
    http_reply_text(reply, 200, "text/plain; charset=utf-8",
                    rt_tool_stub(&tool, language, &r->arena));
    return true;
}

/* ---- calling ---- */

static const http_member call_members[] = {
    { "arguments", HTTP_OBJECT | HTTP_NULL, false },
    { "timeout", HTTP_STRING | HTTP_NUMBER | HTTP_NULL, false },
};

static void cancel_call(void *ctx)
{
    rt_canceller_cancel(ctx);
}

static rt_str text_of(rt_json value, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    if (rt_json_type(value) != RT_JSON_OBJECT)
        return RT_STR("{}");
    rt_buf_init(&text, RT_JSON_SIZE_CEILING);
    rt_json_print(value, &text);
    return rt_arena_str(arena, rt_buf_str(&text));
}

static bool pass_gate(http_request *r, rt_json body, uint64_t timeout_ms, rt_tool_result *out,
                      rt_error *err)
{
    rt_canceller canceller;
    watch_entry entry = { 0 };
    rt_tool_request request = { .caller = &r->caller,
                                .tool = http_param(r, "name"),
                                .arguments = text_of(rt_json_get_c(body, "arguments"), &r->arena),
                                .reason = RT_STR("called over HTTP"),
                                .deadline_ns =
                                    timeout_ms ? rt_now_ns() + timeout_ms * 1000000ull : 0,
                                .canceller = &canceller,
                                .trace = r->trace };
    rt_canceller_init(&canceller);
    watch_begin(r->server->watch, &entry, server_socket(r), cancel_call, &canceller);
    bool ok = rt_engine_call(r->server->config.engine, &request, &r->arena, out, err);
    watch_end(r->server->watch, &entry);
    rt_canceller_done(&canceller);
    return ok;
}

static bool call(http_request *r, http_reply *reply, rt_error *err)
{
    uint64_t timeout_ms = 0;
    rt_tool_result result;
    rt_json body;
    rt_json_writer w;
    if (!http_object(r, call_members, RT_COUNT(call_members), &body, err) ||
        !http_member_ms(body, "timeout", &timeout_ms, err))
        return false;
    if (timeout_ms > CALL_TIMEOUT_MAX_MS)
        return rt_fail(err, RT_INVALID, "'timeout' must be at most %d s",
                       CALL_TIMEOUT_MAX_MS / 1000);
    if (!pass_gate(r, body, timeout_ms, &result, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "tool", http_param(r, "name"));
    rt_jw_kbool(&w, "is_error", result.is_error);
    http_jw_raw(&w, "result", result.value, RT_STR("null"));
    http_jw_raw(&w, "content", result.content, RT_STR("[]"));
    rt_jw_kdouble(&w, "elapsed_ms", (double)result.elapsed_us / 1000.0);
    rt_jw_end(&w);
    return true;
}

const http_operation api_tool_rows[] = {
    { .method = "GET",
      .path = "/v1/tools",
      .id = "listTools",
      .tag = "Tools",
      .summary = "Browse tools",
      .about = "Without schemas and code, in the order of names. next_after, given back as after, "
               "has the next page.",
      .role = RT_ROLE_VIEWER,
      .action = "list tools",
      .parameters = HTTP_PARAMETERS(
          { "category", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "only of this category", NULL, NULL, 0,
            100 },
          { "after", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "only names after this one", NULL, NULL, 0,
            200 },
          { "limit", HTTP_IN_QUERY, HTTP_TYPE_INTEGER, "rows of a page", NULL, "100", 1, 500 }),
      .responses = HTTP_RESPONSES({ 200, "ToolPage", "A page of tools" }),
      .errors = "404",
      .handler = list },
    { .method = "GET",
      .path = "/v1/tools/search",
      .id = "searchTools",
      .tag = "Tools",
      .summary = "Find tools by what they do",
      .about = "Tools that are often called before or after those of `context` come first.",
      .role = RT_ROLE_VIEWER,
      .action = "search tools",
      .parameters =
          HTTP_PARAMETERS({ "q", HTTP_IN_QUERY, HTTP_TYPE_TEXT,
                            "what the tool should do, in plain words", NULL, NULL, 1, 1000 },
                          { "limit", HTTP_IN_QUERY, HTTP_TYPE_INTEGER, "tools at most", NULL, "10",
                            1, TOOLS_SEARCH_MAX },
                          { "context", HTTP_IN_QUERY, HTTP_TYPE_TEXT,
                            "names of tools in use, with commas", NULL, NULL, 0, 2000 },
                          { "related", HTTP_IN_QUERY, HTTP_TYPE_BOOLEAN,
                            "with tools often called before or after", NULL, "false", 0, 0 }),
      .responses = HTTP_RESPONSES({ 200, "ToolSearch", "Best first" }),
      .handler = search },
    { .method = "GET",
      .path = "/v1/tools/servers",
      .id = "listToolServers",
      .tag = "Tools",
      .summary = "Who provides tools, and how they are",
      .role = RT_ROLE_VIEWER,
      .action = "list the servers of tools",
      .responses = HTTP_RESPONSES({ 200, "ToolServerList", "Healthy, degraded or down" }),
      .errors = "404",
      .handler = servers },
    { .method = "GET",
      .path = "/v1/tools/{name}",
      .id = "getTool",
      .tag = "Tools",
      .summary = "One tool, with its schemas",
      .about = "An output schema that no server declared is what results looked like so far "
               "(is_output_observed). As typescript or python: declarations for code that calls "
               "it.",
      .role = RT_ROLE_VIEWER,
      .action = "read tools",
      .parameters = HTTP_PARAMETERS({ "format", HTTP_IN_QUERY, HTTP_TYPE_TEXT,
                                      "JSON, or declarations as text", "json typescript python",
                                      "json", 0, 0 }),
      .responses = HTTP_RESPONSES({ 200, "Tool", "The tool" }, { 200, HTTP_TEXT, "The tool" }),
      .errors = "404",
      .handler = get },
    { .method = "POST",
      .path = "/v1/tools/{name}/call",
      .id = "callTool",
      .tag = "Tools",
      .summary = "Call a tool",
      .about = "Through the same gate as calls from code: grants, approval (the answer waits for "
               "it), rate limits, record. A tool that failed is answered with 200 and is_error.",
      .role = RT_ROLE_MEMBER,
      .action = "call tools",
      .request = "ToolCallRequest",
      .responses = HTTP_RESPONSES({ 200, "ToolCall", "What it answered" }),
      .errors = "404 409 413 422 499 504",
      .flags = HTTP_OPTIONAL_BODY,
      .handler = call },
    { 0 },
};
