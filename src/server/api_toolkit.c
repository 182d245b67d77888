/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_toolkit.c - tools, costs and prompts for the agent toolkit, in the shapes its clients know.
 *
 * Tools are those of the toolbox under their ids, and those of connected servers under their full
 * names ("github:list_commits", whose language is "mcp"). Browsing never gives code.
 */
#include <strings.h>

#include "server/agent.h"
#include "server/server_internal.h"
#include "server/tools_view.h"

#define TOOLS_LISTED_MAX 500

/* ---- tools ---- */

static void write_tool(rt_str id, rt_str name, rt_str description, rt_str language, rt_str category,
                       rt_json_writer *w)
{
    rt_jw_object(w);
    rt_jw_kstr(w, "id", id);
    rt_jw_kstr(w, "name", name);
    rt_jw_kstr(w, "description", description);
    rt_jw_kstr(w, "language", language);
    rt_jw_kstr(w, "category", category);
    rt_jw_end(w);
}

/* Do all hold the words, whatever the case? */
static bool contains(rt_str hay, rt_str needle)
{
    for (size_t i = 0; i + needle.len <= hay.len; i++)
        if (strncasecmp(hay.ptr + i, needle.ptr, needle.len) == 0)
            return true;
    return false;
}

/* Of connected servers; how many were written. */
static size_t write_others(http_request *r, rt_str category, rt_str text, size_t room,
                           rt_json_writer *w)
{
    rt_tools *tools = r->server->config.tools;
    rt_tool *all;
    size_t written = 0;
    if (!tools)
        return 0;
    rt_tools_gather(tools, rt_now_ns() + TOOLS_GATHER_MS * 1000000ull);
    size_t count = rt_tools_list_for(tools, r->caller.organisation_id, category, &r->arena, &all);
    for (size_t i = 0; i < count && written < room; i++) {
        const rt_tool *t = &all[i];
        bool is_meant = contains(t->name, text) || contains(t->title, text) ||
                        contains(t->description, text) || contains(t->category, text);
        if (!is_meant || rt_str_eq_c(t->server, RT_TOOLBOX))
            continue;
        write_tool(t->name, t->title.len ? t->title : t->name, t->description, RT_STR("mcp"),
                   t->category, w);
        written++;
    }
    return written;
}

/* The members count and tools. */
static bool write_tools(http_request *r, rt_str category, rt_str text, rt_json_writer *w,
                        size_t *count, rt_error *err)
{
    rt_toolbox_tool *box;
    size_t own;
    if (!rt_toolbox_list(r->server->config.store, category, text, &r->arena, &box, &own, err))
        return false;
    own = RT_MIN(own, (size_t)TOOLS_LISTED_MAX);
    rt_jw_karray(w, "tools");
    for (size_t i = 0; i < own; i++)
        write_tool(box[i].id, box[i].name, box[i].description, box[i].language, box[i].category, w);
    *count = own + write_others(r, category, text, TOOLS_LISTED_MAX - own, w);
    rt_jw_end(w);
    rt_jw_ku64(w, "count", *count);
    return true;
}

static bool list_tools(http_request *r, http_reply *reply, rt_error *err)
{
    rt_str category = http_query(r, "category");
    size_t count;
    rt_json_writer w;
    if (agent_is_off(r, reply))
        return true;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_kbool(&w, "success", true);
    if (!write_tools(r, category, RT_STR(""), &w, &count, err))
        return false;
    rt_jw_kstr(&w, "category", category.len ? category : RT_STR("all"));
    rt_jw_kstr(&w, "message", rt_arena_printf(&r->arena, "%zu tools; get-tool loads one", count));
    rt_jw_end(&w);
    return true;
}

static bool search_tools(http_request *r, http_reply *reply, rt_error *err)
{
    rt_str query = rt_str_trim(http_query(r, "q"));
    size_t count;
    rt_json_writer w;
    if (agent_is_off(r, reply))
        return true;
    if (query.len == 0)
        return agent_refuse(reply, 400, "Search query is required",
                            RT_STR("'q' must be a text that is not blank"));
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_kbool(&w, "success", true);
    rt_jw_kstr(&w, "query", query);
    if (!write_tools(r, RT_STR(""), query, &w, &count, err))
        return false;
    rt_jw_kstr(&w, "message", rt_arena_printf(&r->arena, "%zu tools match", count));
    rt_jw_end(&w);
    return true;
}

static void write_box(const rt_toolbox_tool *t, rt_json_writer *w)
{
    rt_jw_kstr(w, "id", t->id);
    rt_jw_kstr(w, "name", t->name);
    rt_jw_kstr(w, "description", t->description);
    rt_jw_kstr(w, "version", t->version);
    rt_jw_kstr(w, "language", t->language);
    rt_jw_kstr(w, "category", t->category);
    rt_jw_kstr(w, "code", t->code);
    http_jw_raw(w, "requiredPackages", t->required_packages, RT_STR("[]"));
    http_jw_raw(w, "inputSchema", t->input_schema, RT_STR("null"));
    rt_jw_ki64(w, "maxMemoryMB", t->max_memory_mb);
    rt_jw_ki64(w, "maxTimeoutSec", t->max_timeout_sec);
    rt_jw_ki64(w, "usageCount", t->usage_count);
    http_jw_time(w, "lastUsedAt", (uint64_t)t->last_used_ms);
    rt_jw_kdouble(w, "averageExecTime", t->average_exec_ms / 1000);
}

/* Of a connected server: its schema and how to call it are all there is of code. */
static bool write_other(http_request *r, rt_str id, rt_json_writer *w, rt_error *err)
{
    rt_tools *tools = r->server->config.tools;
    rt_tool_usage usage;
    rt_tool t;
    if (!tools)
        return rt_fail(err, RT_NOT_FOUND, "Tool not found: %.*s", (int)RT_MIN(id.len, (size_t)100),
                       id.ptr);
    if (!rt_tools_find_for(tools, r->caller.organisation_id, id, &r->arena, &t, err) ||
        !rt_tools_usage(tools, t.name, &usage, err))
        return false;
    rt_jw_kstr(w, "id", t.name);
    rt_jw_kstr(w, "name", t.title.len ? t.title : t.name);
    rt_jw_kstr(w, "description", t.description);
    rt_jw_kstr(w, "version", t.version);
    rt_jw_kstr(w, "language", RT_STR("mcp"));
    rt_jw_kstr(w, "category", t.category);
    rt_jw_kstr(w, "code", rt_tool_stub(&t, RT_STUB_TYPESCRIPT, &r->arena));
    rt_jw_kraw(w, "requiredPackages", RT_STR("[]"));
    http_jw_raw(w, "inputSchema", t.input_schema, RT_STR("null"));
    rt_jw_knull(w, "maxMemoryMB");
    rt_jw_knull(w, "maxTimeoutSec");
    rt_jw_ku64(w, "usageCount", usage.uses);
    http_jw_time(w, "lastUsedAt", usage.last_used_ms);
    rt_jw_kdouble(w, "averageExecTime", usage.average_ms / 1000);
    return true;
}

static bool write_one(http_request *r, rt_str id, rt_json_writer *w, rt_error *err)
{
    const rt_server_config *c = &r->server->config;
    rt_toolbox_tool box;
    rt_error missing = { 0 };
    rt_str usage = { 0 };
    if (c->tools && !rt_tools_flush(c->tools, err)) /* what was counted is in the row */
        return false;
    if (rt_toolbox_get(c->store, id, &r->arena, &box, &missing)) {
        write_box(&box, w);
    } else if (missing.code != RT_NOT_FOUND) {
        *err = missing;
        return false;
    } else if (!write_other(r, id, w, err)) {
        return false;
    }
    if (c->tools &&
        !rt_prompt_tool(c->tools, c->store, r->caller.organisation_id, id, &r->arena, &usage, err))
        return false;
    rt_jw_kstr(w, "usage", usage);
    return true;
}

static bool get_tool(http_request *r, http_reply *reply, rt_error *err)
{
    rt_str id = rt_str_trim(http_query(r, "id"));
    rt_json_writer w;
    if (agent_is_off(r, reply))
        return true;
    if (id.len == 0)
        return agent_refuse(reply, 400, "Tool id is required",
                            RT_STR("'id' must be a tool's id, as list-tools gives it"));
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_kbool(&w, "success", true);
    rt_jw_kobject(&w, "tool");
    if (!write_one(r, id, &w, err)) {
        if (err->code != RT_NOT_FOUND)
            return false;
        http_reply_done(reply);
        *reply = (http_reply){ 0 };
        return agent_refuse(reply, 404, "Tool not found", rt_str_of(err->text));
    }
    rt_jw_end(&w);
    rt_jw_kstr(&w, "message", RT_STR("Tool loaded"));
    rt_jw_end(&w);
    return true;
}

/* ---- costs and prompts ---- */

static bool sum_costs(http_request *r, http_reply *reply, rt_error *err)
{
    rt_str period = http_query(r, "period");
    bool is_month = rt_str_eq_c(period, "monthly");
    rt_cost_row row;
    rt_json_writer w;
    if (agent_is_off(r, reply))
        return true;
    if (!rt_cost_summary(r->server->config.store, r->caller.organisation_id,
                         is_month ? RT_STR("month") : RT_STR("day"), rt_wall_ms(), &r->arena, &row,
                         err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_kbool(&w, "success", true);
    rt_jw_kstr(&w, "period", is_month ? RT_STR("monthly") : RT_STR("daily"));
    rt_jw_kobject(&w, "summary");
    rt_jw_ku64(&w, "totalExecutions", row.executions);
    rt_jw_kdouble(&w, "totalCost", row.cost_usd);
    rt_jw_kdouble(&w, "avgCostPerExecution", row.average_cost_usd);
    rt_jw_kdouble(&w, "traditionalMCPCost", row.traditional_cost_usd);
    rt_jw_kdouble(&w, "savings", row.traditional_cost_usd - row.cost_usd);
    rt_jw_kdouble(&w, "savingsPercent", row.savings_percent);
    rt_jw_end(&w);
    rt_jw_kstr(&w, "message",
               rt_arena_printf(&r->arena, "%llu executions", (unsigned long long)row.executions));
    rt_jw_end(&w);
    return true;
}

static bool system_prompt(http_request *r, http_reply *reply, rt_error *err)
{
    const rt_server_config *c = &r->server->config;
    rt_str tool = rt_str_trim(http_query(r, "tool")), category = http_query(r, "category"), text;
    rt_json_writer w;
    if (agent_is_off(r, reply))
        return true;
    if (c->tools)
        rt_tools_gather(c->tools, rt_now_ns() + TOOLS_GATHER_MS * 1000000ull);
    if (tool.len > 0) {
        if (!rt_prompt_tool(c->tools, c->store, r->caller.organisation_id, tool, &r->arena, &text,
                            err))
            return err->code == RT_NOT_FOUND &&
                   agent_refuse(reply, 404, "Tool not found", rt_str_of(err->text));
    } else {
        text = category.len
                   ? rt_prompt_tools(c->tools, r->caller.organisation_id, category, &r->arena)
                   : rt_prompt_system(c->tools, &r->arena);
    }
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_kbool(&w, "success", true);
    rt_jw_kstr(&w, "prompt", text);
    rt_jw_ku64(&w, "tokens", (text.len + 3) / 4);
    rt_jw_kstr(&w, "message", RT_STR("Give it to the model as it is"));
    rt_jw_end(&w);
    return true;
}

#define CATEGORY                                                                                   \
    {                                                                                              \
        "category", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "only of this category", NULL, NULL, 0, 100     \
    }

const http_operation api_toolkit_rows[] = {
    { .method = "GET",
      .path = "/api/agent/list-tools",
      .id = "agentListTools",
      .tag = "Agent toolkit",
      .summary = "Browse tools, without their code",
      .role = RT_ROLE_VIEWER,
      .action = "list tools",
      .parameters = HTTP_PARAMETERS(CATEGORY),
      .responses = HTTP_RESPONSES({ 200, "AgentTools", "The tools" }),
      .flags = HTTP_AGENT_ERRORS,
      .handler = list_tools },
    { .method = "GET",
      .path = "/api/agent/search-tools",
      .id = "agentSearchTools",
      .tag = "Agent toolkit",
      .summary = "Tools whose name, description or category holds a text",
      .role = RT_ROLE_VIEWER,
      .action = "search tools",
      .parameters = HTTP_PARAMETERS(
          { "q", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "the text; required", NULL, NULL, 0, 1000 }),
      .responses = HTTP_RESPONSES({ 200, "AgentToolSearch", "The tools" }),
      .flags = HTTP_AGENT_ERRORS,
      .handler = search_tools },
    { .method = "GET",
      .path = "/api/agent/get-tool",
      .id = "agentGetTool",
      .tag = "Agent toolkit",
      .summary = "One tool, with its code and how to use it",
      .role = RT_ROLE_VIEWER,
      .action = "read tools",
      .parameters = HTTP_PARAMETERS({ "id", HTTP_IN_QUERY, HTTP_TYPE_TEXT,
                                      "as list-tools gives it; required", NULL, NULL, 0, 200 }),
      .responses = HTTP_RESPONSES({ 200, "AgentTool", "The tool" }),
      .errors = "404",
      .flags = HTTP_AGENT_ERRORS,
      .handler = get_tool },
    { .method = "GET",
      .path = "/api/agent/cost-summary",
      .id = "agentCostSummary",
      .tag = "Agent toolkit",
      .summary = "What was spent, and what it would have cost through a model's context",
      .role = RT_ROLE_VIEWER,
      .action = "read costs",
      .parameters =
          HTTP_PARAMETERS({ "period", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "of today or of this month",
                            "daily monthly", "daily", 0, 0 }),
      .responses = HTTP_RESPONSES({ 200, "AgentCosts", "The sum" }),
      .flags = HTTP_AGENT_ERRORS,
      .handler = sum_costs },
    { .method = "GET",
      .path = "/api/agent/system-prompt",
      .id = "agentSystemPrompt",
      .tag = "Agent toolkit",
      .summary = "What to tell a model about its tools",
      .about = "With `tool`, how to use that one; with `category`, a list of its tools.",
      .role = RT_ROLE_VIEWER,
      .action = "read prompts",
      .parameters = HTTP_PARAMETERS(
          { "tool", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "a tool's id", NULL, NULL, 0, 200 }, CATEGORY),
      .responses = HTTP_RESPONSES({ 200, "AgentPrompt", "The text" }),
      .errors = "404",
      .flags = HTTP_AGENT_ERRORS,
      .handler = system_prompt },
    { 0 },
};
