/* SPDX-License-Identifier: Apache-2.0 */
/*
 * provider.c - registered agents as tools of the registry.
 *
 * A tool is its agent's at the version it was registered with, or at the latest where that was
 * asked for. One that is not public is for its organisation alone: the registry shows it to nobody
 * else, and a call runs in the caller's name, who must be able to see the agent.
 */
#include "agents/agents_internal.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct provider {
    rt_provider base; /* first */
    rt_agents *agents;
} provider;

static const rt_caller registry = { .role = RT_ROLE_OWNER }; /* sees all */

static rt_str describe(const rt_agent *agent, rt_arena *arena)
{
    rt_str text = agent->row.description;
    if (agent->row.is_deprecated)
        return rt_arena_printf(arena, "Deprecated: %.*s. %.*s", RT_FMT(agent->row.deprecation),
                               RT_FMT(text));
    return text.len > 0 ? text : rt_arena_printf(arena, "%.*s code agent", RT_FMT(agent->row.name));
}

/* The object schema every caller of tools knows. */
static rt_str input_schema(const rt_agent *agent, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json doc;
    rt_json_begin(&w, &text);
    rt_agent_write_manifest(agent, RT_MANIFEST_ANTHROPIC, &w);
    if (!rt_json_parse(rt_buf_str(&text), arena, &doc, NULL))
        return (rt_str){ 0 };
    return agents_json_text(rt_json_get_c(doc, "input_schema"), arena);
}

static bool list(rt_provider *self, rt_arena *arena, rt_tool **out, size_t *count, rt_error *err)
{
    rt_agents *a = ((provider *)self)->agents;
    rt_agent_filter filter = { .is_tool = RT_AGENT_YES };
    rt_agent_row *rows;
    size_t total;
    if (!rt_agents_list(a, &registry, &filter, arena, &rows, &total, err))
        return false;
    *out = rt_arena_alloc(arena, (total + 1) * sizeof(**out));
    *count = 0;
    for (size_t i = 0; i < total; i++) {
        rt_agent agent;
        if (!rt_agents_find(a, &registry, rows[i].id, rows[i].tool_version, arena, &agent, NULL))
            continue; /* gone since, or its version is */
        (*out)[(*count)++] = (rt_tool){
            .name = agent.row.tool_name,
            .server = RT_STR(RT_AGENTS_PROVIDER),
            .title = agent.row.name,
            .description = describe(&agent, arena),
            .category = RT_STR("agents"),
            .version = agent.version,
            .input_schema = input_schema(&agent, arena),
            .output_schema = agent.row.content.output_schema,
            .audience = agent.row.is_public ? (rt_str){ 0 } : agent.row.organisation_id,
        };
    }
    return true;
}

static void fill_result(const rt_agent_result *result, rt_arena *arena, rt_tool_result *out)
{
    *out =
        (rt_tool_result){ .value = agents_json_text(rt_json_get_c(result->answer, "result"), arena),
                          .content = RT_STR("[]"),
                          .is_error = !result->is_success };
    if (result->is_success)
        return;
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "error", result->message);
    rt_jw_kstr(&w, "code", result->code);
    rt_jw_end(&w);
    out->value = rt_arena_str(arena, rt_buf_str(&text));
}

static bool call(rt_provider *self, const rt_tool_call *what, rt_arena *arena, rt_tool_result *out,
                 rt_error *err)
{
    rt_agents *a = ((provider *)self)->agents;
    rt_str name = what->tool, server;
    rt_canceller canceller = { .wake = what->cancel_fd };
    rt_agent_result result;
    rt_agent agent;
    if (!what->caller)
        return rt_fail(err, RT_DENIED, "nobody in particular may not call agents");
    rt_str_cut(&name, ':', &server);
    rt_caller caller = *what->caller;
    if (caller.role > RT_ROLE_ADMIN)
        caller.role = RT_ROLE_ADMIN; /* as a tool, nobody's is seen but one's own */
    if (!agents_load(a, &caller, name, (rt_str){ 0 }, arena, &agent, err))
        return false;
    if (!agent.row.is_tool)
        return rt_fail(err, RT_NOT_FOUND, "Code agent not found");
    rt_agent_run run = { .id = agent.row.id,
                         .version = agent.row.tool_version,
                         .input = what->arguments,
                         .has_input = true,
                         .surface = RT_STR("tool"),
                         .is_nested = what->run.len > 0,
                         .canceller = what->cancel_fd >= 0 ? &canceller : NULL };
    run.trace = rt_trace_parse(what->traceparent);
    if (!rt_agents_execute(a, &caller, &run, arena, &result, err))
        return false;
    fill_result(&result, arena, out);
    return true;
}

static void health(rt_provider *self, rt_json_writer *w)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_tool *tools;
    size_t count = 0;
    bool is_well = list(self, &arena, &tools, &count, &err);
    rt_jw_object(w);
    rt_jw_kstr(w, "server", RT_STR(RT_AGENTS_PROVIDER));
    rt_jw_kstr(w, "status", is_well ? RT_STR("healthy") : RT_STR("down"));
    rt_jw_ku64(w, "tools", count);
    rt_jw_end(w);
}

static void close_provider(rt_provider *self)
{
    provider *p = (provider *)self;
    pthread_mutex_lock(&p->agents->lock);
    if (p->agents->provider == self)
        p->agents->provider = NULL;
    pthread_mutex_unlock(&p->agents->lock);
    free(p);
}

rt_provider *rt_agents_provider(rt_agents *a)
{
    provider *p = calloc(1, sizeof(*p));
    if (!p)
        rt_out_of_memory(sizeof(*p));
    *p = (provider){
        .base = { .list = list, .call = call, .health = health, .close = close_provider },
        .agents = a
    };
    snprintf(p->base.name, sizeof(p->base.name), "%s", RT_AGENTS_PROVIDER);
    pthread_mutex_lock(&a->lock);
    a->provider = &p->base;
    pthread_mutex_unlock(&a->lock);
    return &p->base;
}

bool rt_agents_refresh(rt_agents *a, rt_error *err)
{
    uint64_t mark;
    if (!rt_agent_tools_mark(a->config.store, &mark, err))
        return false;
    pthread_mutex_lock(&a->lock);
    bool is_changed = mark != a->tools_mark;
    a->tools_mark = mark;
    if (is_changed && a->provider && a->provider->on_change)
        a->provider->on_change(a->provider->change_ctx, a->provider);
    pthread_mutex_unlock(&a->lock);
    return true;
}

void agents_changed(rt_agents *a, const rt_agent_row *row)
{
    (void)row; /* it may have been a tool before */
    pthread_mutex_lock(&a->lock);
    if (a->provider && a->provider->on_change)
        a->provider->on_change(a->provider->change_ctx, a->provider);
    pthread_mutex_unlock(&a->lock);
}
