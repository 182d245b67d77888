/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_agents.c - code agents as an MCP server of their own.
 *
 * Such a server has the agents for its tools and nothing else: who connects to it needs to know
 * nothing of Retort. Each agent is at the version it was deployed with.
 */
#include "server/mcp.h"

static bool load(mcp_call *c, rt_agent **agents, size_t *count, rt_error *err)
{
    if (!c->mcp->config->agents)
        return rt_fail(err, RT_UNAVAILABLE, "there are no code agents on this server");
    return rt_agents_served(c->mcp->config->agents, &c->caller, c->agents, &c->arena, agents, count,
                            err);
}

bool mcp_agents_check(mcp_call *c, rt_error *err)
{
    rt_agent *agents;
    size_t count;
    return load(c, &agents, &count, err);
}

bool mcp_agents_list(mcp_call *c, rt_json_writer *w)
{
    rt_error err = { 0 };
    rt_agent *agents;
    size_t count;
    if (!load(c, &agents, &count, &err))
        return mcp_fail_error(c, &err);
    rt_jw_karray(w, "tools");
    for (size_t i = 0; i < count; i++)
        rt_agent_write_manifest(&agents[i], RT_MANIFEST_MCP, w);
    rt_jw_end(w);
    return true;
}

static rt_str text_of(mcp_call *c, rt_json value)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf_init(&text, MCP_MESSAGE_MAX);
    rt_json_print(value, &text);
    return rt_arena_str(&c->arena, rt_buf_str(&text));
}

static void write_result(mcp_call *c, const rt_agent_result *result, rt_json_writer *w)
{
    rt_json output = rt_json_get_c(result->answer, "result");
    if (result->warning.len > 0)
        mcp_log(c, MCP_WARNING, "agents", result->warning);
    if (!result->is_success) {
        mcp_write_text(
            w,
            rt_arena_printf(&c->arena, "%.*s: %.*s", RT_FMT(result->code), RT_FMT(result->message)),
            true);
        return;
    }
    if (rt_json_type(output) == RT_JSON_OBJECT) {
        mcp_write_structured(c, w, text_of(c, output));
        return;
    }
    bool is_text = rt_json_type(output) == RT_JSON_STRING;
    mcp_write_text(w, is_text ? rt_json_str(output) : text_of(c, output), false);
}

bool mcp_agents_call(mcp_call *c, rt_str name, rt_json arguments, rt_json_writer *w)
{
    rt_error err = { 0 };
    rt_agent *agents;
    rt_agent_result result;
    size_t count, i = 0;
    if (!load(c, &agents, &count, &err))
        return mcp_fail_error(c, &err);
    while (i < count && !rt_str_eq(agents[i].row.tool_name, name))
        i++;
    if (i == count)
        return mcp_fail(c, RT_MCP_INVALID_PARAMS, (rt_str){ 0 }, "Unknown tool: %.*s",
                        (int)RT_MIN(name.len, (size_t)120), name.ptr);
    rt_agent_run run = { .id = agents[i].row.id,
                         .version = agents[i].version,
                         .input =
                             rt_json_is_absent(arguments) ? RT_STR("{}") : text_of(c, arguments),
                         .has_input = true,
                         .surface = RT_STR("mcp"),
                         .trace = c->trace,
                         .canceller = &c->canceller };
    if (rt_agents_execute(c->mcp->config->agents, &c->caller, &run, &c->arena, &result, &err)) {
        write_result(c, &result, w);
        return true;
    }
    if (err.code == RT_INVALID || err.code == RT_DENIED || err.code == RT_NOT_FOUND)
        return mcp_fail_error(c, &err);
    mcp_write_text(w, rt_arena_printf(&c->arena, "Error: %s", err.text), true);
    return true;
}
