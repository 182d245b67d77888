/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deploy.c - one agent or several as an MCP server of their own.
 *
 * A server is a name and a list of agents, each with the version it was deployed with. An agent's
 * own id or name serves that agent alone without anything being set up.
 */
#include "agents/agents_internal.h"

#define SERVED_MAX 100

static bool is_known_protocol(rt_str protocol)
{
    return rt_str_eq_c(protocol, "stdio") || rt_str_eq_c(protocol, "http") ||
           rt_str_eq_c(protocol, "sse");
}

static bool says_latest(rt_str id)
{
    return rt_str_ends(id, RT_STR("@" RT_AGENT_LATEST));
}

bool rt_agents_deploy(rt_agents *a, const rt_caller *caller, rt_str name, rt_str protocol,
                      const rt_str *ids, size_t count, rt_arena *arena, rt_error *err)
{
    rt_buf list RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_str tool_name = rt_agent_tool_name(name, arena);
    if (!rt_tool_name_check(tool_name, err))
        return rt_wrap(err, "serverName");
    if (!is_known_protocol(protocol))
        return rt_fail(err, RT_INVALID, "'protocol' must be stdio, http or sse");
    if (count == 0 || count > SERVED_MAX)
        return rt_fail(err, RT_INVALID, "a server has 1 to %d agents", SERVED_MAX);
    rt_json_begin(&w, &list);
    rt_jw_array(&w);
    for (size_t i = 0; i < count; i++) {
        rt_agent agent;
        if (!agents_load(a, caller, ids[i], (rt_str){ 0 }, arena, &agent, err) ||
            !agents_may(caller, &agent.row, "deploy", err))
            return false;
        rt_jw_object(&w);
        rt_jw_kstr(&w, "id", agent.row.id);
        rt_jw_kstr(&w, "version", says_latest(ids[i]) ? RT_STR(RT_AGENT_LATEST) : agent.version);
        rt_jw_end(&w);
    }
    rt_jw_end(&w);
    uint64_t now = rt_wall_ms();
    rt_agent_server row = { .organisation_id = caller->organisation_id,
                            .workspace_id = caller->workspace_id,
                            .name = tool_name,
                            .protocol = protocol,
                            .agents = rt_buf_str(&list),
                            .created_ms = now,
                            .updated_ms = now };
    return rt_buf_ok(&list, err) && rt_agent_server_put(a->config.store, &row, err);
}

static bool load_served(rt_agents *a, const rt_caller *caller, rt_str list, rt_arena *arena,
                        rt_agent **out, size_t *count)
{
    rt_json doc, item;
    agents_json_parse(list, arena, &doc);
    rt_json_iter it = rt_json_each(doc);
    *out = rt_arena_alloc(arena, (rt_json_count(doc) + 1) * sizeof(**out));
    *count = 0;
    while (rt_json_next(&it, NULL, &item))
        if (rt_agents_find(a, caller, rt_json_str(rt_json_get_c(item, "id")),
                           rt_json_str(rt_json_get_c(item, "version")), arena, &(*out)[*count],
                           NULL)) /* else it is gone, or not theirs to see any more */
            ++*count;
    return true;
}

/* "adder,csv-profile@1.2.0" */
static bool load_named(rt_agents *a, const rt_caller *caller, rt_str names, rt_arena *arena,
                       rt_agent **out, size_t *count, rt_error *err)
{
    rt_str name;
    *out = rt_arena_alloc(arena, SERVED_MAX * sizeof(**out));
    *count = 0;
    while (*count < SERVED_MAX && rt_str_cut(&names, ',', &name)) {
        if (!rt_agents_find(a, caller, rt_str_trim(name), (rt_str){ 0 }, arena, &(*out)[*count],
                            err))
            return rt_wrap(err, "%.*s", (int)RT_MIN(name.len, (size_t)60), name.ptr);
        ++*count;
    }
    return true;
}

bool rt_agents_served(rt_agents *a, const rt_caller *caller, rt_str server, rt_arena *arena,
                      rt_agent **out, size_t *count, rt_error *err)
{
    rt_agent_viewer viewer = agents_viewer(caller);
    rt_agent_server row;
    if (!rt_utf8_valid(server) || (server.len > 0 && memchr(server.ptr, '\0', server.len)))
        return rt_fail(err, RT_NOT_FOUND, "there is no such server of agents");
    if (rt_agent_server_find(a->config.store, &viewer, server, arena, &row, NULL))
        return load_served(a, caller, row.agents, arena, out, count);
    return load_named(a, caller, server, arena, out, count, err);
}
