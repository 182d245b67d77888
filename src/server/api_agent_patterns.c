/* SPDX-License-Identifier: Apache-2.0 */
/* api_agent_patterns.c - patterns for the agent toolkit, in the shapes its clients know. */
#include "server/agent.h"
#include "server/patterns_view.h"
#include "server/server_internal.h"

static const struct {
    const char *agents, *ours;
} pattern_names[] = { { "name", "name" },
                      { "code", "code" },
                      { "description", "description" },
                      { "language", "language" },
                      { "category", "category" },
                      { "tags", "tags" },
                      { "parameters", "parameters" },
                      { "steps", "steps" },
                      { "learnedFrom", "learned_from" } };

/* Members nobody knows are passed over, as everywhere under /api/agent. */
static bool read_pattern(http_request *r, rt_json body, rt_json *out, rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    for (size_t i = 0; i < RT_COUNT(pattern_names); i++) {
        rt_json value = rt_json_get_c(body, pattern_names[i].agents);
        if (!rt_json_is_absent(value))
            rt_jw_kjson(&w, pattern_names[i].ours, value);
    }
    rt_jw_end(&w);
    return rt_buf_ok(&text, err) && rt_json_parse(rt_buf_str(&text), &r->arena, out, err);
}

static bool refuse_pattern(http_reply *reply, const rt_error *err)
{
    static const struct {
        rt_code code;
        unsigned status;
        const char *error;
    } known[] = { { RT_INVALID, 400, "Invalid pattern" },
                  { RT_LIMIT, 413, "Invalid pattern" },
                  { RT_UNSUPPORTED, 422, "Invalid pattern" },
                  { RT_NOT_FOUND, 400, "Invalid pattern" },
                  { RT_CONFLICT, 409, "Pattern already exists" } };
    for (size_t i = 0; i < RT_COUNT(known); i++)
        if (err->code == known[i].code)
            return agent_refuse(reply, known[i].status, known[i].error, rt_str_of(err->text));
    return false;
}

static bool save_pattern(http_request *r, http_reply *reply, rt_error *err)
{
    rt_snippet saved;
    rt_json body, pattern;
    rt_json_writer w;
    if (agent_is_off(r, reply) || !agent_body(r, reply, &body))
        return true;
    if (rt_str_trim(rt_json_str(rt_json_get_c(body, "name"))).len == 0)
        return agent_refuse(reply, 400, "Pattern name is required",
                            RT_STR("'name' must be a text that is not blank"));
    if (rt_str_trim(rt_json_str(rt_json_get_c(body, "code"))).len == 0 &&
        rt_json_count(rt_json_get_c(body, "steps")) == 0)
        return agent_refuse(reply, 400, "Code is required",
                            RT_STR("'code' must be a text that is not blank"));
    if (!read_pattern(r, body, &pattern, err))
        return false;
    if (!rt_pattern_save(r->server->config.engine, &r->caller, pattern,
                         rt_json_bool(rt_json_get_c(body, "overwrite"), false), &r->arena, &saved,
                         err))
        return refuse_pattern(reply, err);
    if (!server_audit(r, "pattern.save", saved.name, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_kbool(&w, "success", true);
    rt_jw_kstr(&w, "snippetId", saved.id);
    rt_jw_kstr(&w, "name", saved.name);
    rt_jw_kstr(&w, "message",
               rt_arena_printf(&r->arena, "Pattern '%.*s' saved", RT_FMT(saved.name)));
    rt_jw_kstr(&w, "usage",
               rt_arena_printf(&r->arena, "GET /api/agent/get-pattern?name=… gives its code, "
                                          "POST /v1/patterns/…/run runs it"));
    rt_jw_end(&w);
    return true;
}

static void write_metadata(const rt_snippet *s, rt_json_writer *w)
{
    rt_jw_kobject(w, "metadata");
    rt_jw_ku64(w, "usageCount", s->usage_count);
    rt_jw_kdouble(w, "successRate", s->success_rate);
    if (s->runs > 0)
        rt_jw_kdouble(w, "avgExecTime", s->average_exec_ms / 1000);
    else
        rt_jw_knull(w, "avgExecTime");
    http_jw_time(w, "lastUsedAt", s->last_used_ms);
    rt_jw_end(w);
}

static bool get_pattern(http_request *r, http_reply *reply, rt_error *err)
{
    rt_str name = rt_str_trim(http_query(r, "name"));
    rt_snippet s;
    rt_json_writer w;
    if (agent_is_off(r, reply))
        return true;
    if (name.len == 0)
        return agent_refuse(reply, 400, "Pattern name is required",
                            RT_STR("'name' must be a text that is not blank"));
    if (!rt_pattern_get(r->server->config.engine, &r->caller, name, &r->arena, &s, err))
        return err->code == RT_NOT_FOUND &&
               agent_refuse(reply, 404, "Pattern not found", rt_str_of(err->text));
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_kbool(&w, "success", true);
    rt_jw_kobject(&w, "pattern");
    rt_jw_kstr(&w, "name", s.name);
    rt_jw_kstr(&w, "description", s.description);
    rt_jw_kstr(&w, "code", s.code);
    rt_jw_kstr(&w, "language", s.language);
    rt_jw_kstr(&w, "category", s.category);
    http_jw_raw(&w, "tags", s.tags, RT_STR("[]"));
    http_jw_raw(&w, "parameters", s.parameters, RT_STR("{}"));
    http_jw_raw(&w, "steps", s.steps, RT_STR("[]"));
    http_jw_text(&w, "learnedFrom", s.learned_from);
    write_metadata(&s, &w);
    rt_jw_end(&w);
    rt_jw_kstr(&w, "message", RT_STR("Pattern retrieved"));
    rt_jw_end(&w);
    return true;
}

static bool list_patterns(http_request *r, http_reply *reply, rt_error *err)
{
    rt_str category = http_query(r, "category");
    rt_snippet *rows;
    size_t count;
    rt_json_writer w;
    if (agent_is_off(r, reply))
        return true;
    if (!rt_pattern_list(r->server->config.engine, &r->caller, category, RT_STR(""),
                         RT_SNIPPETS_LIST_MAX, &r->arena, &rows, &count, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_kbool(&w, "success", true);
    rt_jw_kstr(&w, "category", category.len ? category : RT_STR("all"));
    rt_jw_ku64(&w, "count", count);
    rt_jw_karray(&w, "patterns");
    for (size_t i = 0; i < count; i++) {
        rt_jw_object(&w);
        rt_jw_kstr(&w, "name", rows[i].name);
        rt_jw_kstr(&w, "description", rows[i].description);
        rt_jw_kstr(&w, "category", rows[i].category);
        rt_jw_kstr(&w, "language", rows[i].language);
        rt_jw_ku64(&w, "usageCount", rows[i].usage_count);
        rt_jw_kdouble(&w, "successRate", rows[i].success_rate);
        rt_jw_end(&w);
    }
    rt_jw_end(&w);
    rt_jw_kstr(&w, "message", rt_arena_printf(&r->arena, "%zu patterns", count));
    rt_jw_end(&w);
    return true;
}

const http_operation api_agent_pattern_rows[] = {
    { .method = "POST",
      .path = "/api/agent/save-pattern",
      .id = "agentSavePattern",
      .tag = "Agent toolkit",
      .summary = "Keep code that worked",
      .about = "A name that is taken is refused with 409, unless overwrite is true.",
      .role = RT_ROLE_MEMBER,
      .action = "save patterns",
      .request = "AgentPatternRequest",
      .responses = HTTP_RESPONSES({ 200, "AgentPatternSaved", "It is kept" }),
      .errors = "409 422",
      .flags = HTTP_AGENT_ERRORS,
      .handler = save_pattern },
    { .method = "GET",
      .path = "/api/agent/get-pattern",
      .id = "agentGetPattern",
      .tag = "Agent toolkit",
      .summary = "A pattern, with its code",
      .role = RT_ROLE_VIEWER,
      .action = "read patterns",
      .parameters = HTTP_PARAMETERS(
          { "name", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "its name; required", NULL, NULL, 0, 200 }),
      .responses = HTTP_RESPONSES({ 200, "AgentPattern", "The pattern" }),
      .errors = "404",
      .flags = HTTP_AGENT_ERRORS,
      .handler = get_pattern },
    { .method = "GET",
      .path = "/api/agent/list-patterns",
      .id = "agentListPatterns",
      .tag = "Agent toolkit",
      .summary = "Patterns, without their code",
      .role = RT_ROLE_VIEWER,
      .action = "list patterns",
      .parameters = HTTP_PARAMETERS({ "category", HTTP_IN_QUERY, HTTP_TYPE_TEXT,
                                      "only of this category", NULL, NULL, 0, 200 }),
      .responses = HTTP_RESPONSES({ 200, "AgentPatterns", "The patterns" }),
      .flags = HTTP_AGENT_ERRORS,
      .handler = list_patterns },
    { 0 },
};
