/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execute.c - an agent runs: as a request like any other, with what the agent says of itself.
 *
 * The caller runs it, in their own name and on their own budget, whoever made it. What the agent
 * brings is its code, its schemas, its policy (which the operator's ceiling still bounds) and its
 * environment, which reaches the code and nobody else.
 */
#include "agents/agents_internal.h"

#include <stdio.h>

#define CODE_SIZE_MIN ((uint64_t)1 << 20)

/* ---- the policy ---- */

/* What the policy lists, which adds to its preset's, and the agent's own modules. */
static void write_imports(rt_json listed, rt_json files, rt_json_writer *w)
{
    rt_json_iter own = rt_json_each(listed), it = rt_json_each(files);
    rt_str path, rest, top;
    rt_json text;
    rt_jw_karray(w, "imports");
    if (rt_json_type(listed) == RT_JSON_STRING)
        rt_jw_json(w, listed);
    while (rt_json_next(&own, NULL, &text))
        rt_jw_json(w, text);
    while (rt_json_next(&it, &path, &text)) {
        rest = path;
        if (rt_str_cut(&rest, '/', &top))
            rt_jw_str(w, rt_str_ends(top, RT_STR(".py")) ? rt_str_slice(top, 0, top.len - 3) : top);
    }
    rt_jw_end(w);
}

static void write_env(rt_json policy, rt_json environment, rt_json_writer *w)
{
    rt_json_iter own = rt_json_each(rt_json_get_c(policy, "env"));
    rt_json_iter it = rt_json_each(environment);
    rt_str name;
    rt_json value;
    rt_jw_kobject(w, "env");
    while (rt_json_next(&own, &name, &value)) {
        rt_jw_key(w, name);
        rt_jw_json(w, value);
    }
    while (rt_json_next(&it, &name, &value)) {
        rt_jw_key(w, name);
        rt_jw_json(w, rt_json_get_c(value, "value"));
    }
    rt_jw_end(w);
}

/* The agent's own policy, with its environment, room for its code, and its own modules. */
static bool make_policy(rt_json policy, rt_json environment, rt_json files, size_t code_bytes,
                        rt_arena *arena, rt_json *out, rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_policy resolved = *rt_policy_preset(RT_STR("quick"));
    rt_json_iter it = rt_json_each(policy);
    rt_json_writer w;
    rt_str key;
    rt_json value;
    if (!rt_json_is_absent(policy) && !rt_policy_read(policy, arena, &resolved, err))
        return false;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    if (rt_json_type(policy) == RT_JSON_STRING)
        rt_jw_kstr(&w, "extends", rt_json_str(policy));
    while (rt_json_next(&it, &key, &value)) {
        if (rt_str_eq_c(key, "env") || rt_str_starts(key, RT_STR("code_size")) ||
            rt_str_eq_c(key, "imports"))
            continue;
        rt_jw_key(&w, key);
        rt_jw_json(&w, value);
    }
    write_env(policy, environment, &w);
    rt_jw_ku64(&w, "code_size_bytes", RT_MAX(CODE_SIZE_MIN, (uint64_t)code_bytes));
    if (resolved.has_import_list)
        write_imports(rt_json_get_c(policy, "imports"), files, &w);
    rt_jw_end(&w);
    return rt_buf_ok(&text, err) && rt_json_parse(rt_buf_str(&text), arena, out, err);
}

/* ---- the answer ---- */

/* The names of section 7.1. */
static rt_str failure_code(rt_json answer, rt_str language, rt_arena *arena)
{
    static const struct {
        const char *language, *prefix;
    } names[] = { { "javascript", "JS" }, { "typescript", "JS" } };
    rt_json error = rt_json_get_c(answer, "error");
    rt_str name = rt_json_str(rt_json_get_c(error, "name"));
    if (rt_str_eq_c(rt_json_str(rt_json_get_c(error, "type")), "ValidationError"))
        return name;
    char prefix[32];
    snprintf(prefix, sizeof(prefix), "%.*s", (int)RT_MIN(language.len, (size_t)20), language.ptr);
    for (char *c = prefix; *c; c++)
        *c = (char)(*c >= 'a' && *c <= 'z' ? *c - ('a' - 'A') : *c);
    for (size_t i = 0; i < RT_COUNT(names); i++)
        if (rt_str_eq_c(language, names[i].language))
            snprintf(prefix, sizeof(prefix), "%s", names[i].prefix);
    bool is_late = rt_str_eq_c(rt_json_str(rt_json_get_c(answer, "status")), "TIMEOUT");
    return rt_arena_printf(arena, "%s_%s", prefix, is_late ? "TIMEOUT" : "EXECUTION_ERROR");
}

static void conclude(const rt_agent *agent, rt_json environment, uint64_t shift_from, rt_str file,
                     const rt_answer *answer, rt_arena *arena, rt_agent_result *out)
{
    rt_json doc = { 0 };
    rt_json_parse(answer->json, arena, &doc, NULL);
    doc = agents_bundle_lines(doc, file, shift_from, arena);
    doc = agents_mask_secrets(doc, environment, arena);
    *out = (rt_agent_result){ .agent_id = agent->row.id,
                              .version = agent->version,
                              .execution_id = answer->id,
                              .is_success = answer->status == RT_STATUS_SUCCESS,
                              .answer = doc };
    rt_json_double(rt_json_get_c(rt_json_get_c(doc, "metrics"), "executionTimeMs"), &out->time_ms);
    if (!out->is_success) {
        out->code = failure_code(doc, agent->row.content.language, arena);
        out->message = rt_json_str(rt_json_get_c(rt_json_get_c(doc, "error"), "message"));
        if (out->message.len == 0)
            out->message = RT_STR("the code failed");
    }
    if (agent->row.is_deprecated)
        out->warning = rt_arena_printf(arena, "%.*s is deprecated%s%.*s", RT_FMT(agent->row.name),
                                       agent->row.deprecation.len > 0 ? ": " : "",
                                       RT_FMT(agent->row.deprecation));
}

/* ---- running ---- */

static rt_str base_name(rt_str path)
{
    const char *slash = path.len > 0 ? memrchr(path.ptr, '/', path.len) : NULL;
    return slash ? rt_str_slice(path, (size_t)(slash - path.ptr) + 1, path.len) : path;
}

static bool fill_request(const rt_agent *agent, rt_json environment, rt_json files, rt_arena *arena,
                         rt_request *request, rt_error *err)
{
    const rt_agent_content *c = &agent->row.content;
    rt_json policy;
    agents_json_parse(c->policy, arena, &policy);
    agents_json_parse(c->input_schema, arena, &request->input_schema);
    agents_json_parse(c->output_schema, arena, &request->output_schema);
    agents_json_parse(c->tools.len > 0 ? c->tools : RT_STR("[]"), arena, &request->tools);
    request->language = c->language;
    request->name = base_name(agents_entry_point(c, arena));
    request->preset = RT_STR("quick");
    request->route.runtime = c->runtime;
    request->code_agent_id = agent->row.id;
    request->code_agent_version = agent->version;
    return make_policy(policy, environment, files, request->code.len, arena, &request->policy, err);
}

bool rt_agents_execute(rt_agents *a, const rt_caller *caller, const rt_agent_run *run,
                       rt_arena *arena, rt_agent_result *out, rt_error *err)
{
    rt_request request = { .caller = *caller,
                           .surface = run->surface.len ? run->surface : RT_STR("code-agents"),
                           .input = run->input,
                           .has_input = run->has_input,
                           .trace = run->trace,
                           .canceller = run->canceller,
                           .is_nested = run->is_nested,
                           .on_work = run->on_work,
                           .work_ctx = run->work_ctx };
    uint64_t shift_from = 0;
    rt_json environment, files;
    rt_agent agent;
    rt_answer answer;
    if (!agents_load(a, caller, run->id, run->version, arena, &agent, err))
        return false;
    const rt_agent_content *c = &agent.row.content;
    if (!a->config.engine)
        return rt_fail(err, RT_UNAVAILABLE, "agents cannot be run here");
    agents_json_parse(c->files, arena, &files);
    if (!agents_environment_unseal(a, agent.row.id, c->environment, arena, &environment, err) ||
        !agents_bundle_join(c->language, c->code, files, arena, &request.code, &shift_from, err) ||
        !fill_request(&agent, environment, files, arena, &request, err) ||
        !rt_engine_execute(a->config.engine, &request, arena, &answer, err))
        return false;
    rt_agent_used(a->config.store, agent.row.id, NULL);
    conclude(&agent, environment, shift_from, request.name, &answer, arena, out);
    return true;
}
