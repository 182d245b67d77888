/* SPDX-License-Identifier: Apache-2.0 */
/* api_code_agent_reports.c - how agents are used: figures and logs of one's own organisation. */
#include "server/code_agents.h"

#define DAY_MS (24 * 3600 * 1000ull)

/* ---- figures ---- */

static const struct {
    const char *name;
    uint64_t days; /* 0: all */
} ranges[] = { { "7d", 7 }, { "30d", 30 }, { "90d", 90 }, { "all", 0 } };

static uint64_t since_of(const http_request *r)
{
    rt_str name = http_query(r, "timeRange");
    uint64_t now = rt_wall_ms(), days = 30;
    for (size_t i = 0; i < RT_COUNT(ranges); i++)
        if (rt_str_eq_c(name, ranges[i].name))
            days = ranges[i].days;
    return days > 0 && now > days * DAY_MS ? now - days * DAY_MS : 0;
}

static double rate(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static void write_groups(rt_json_writer *w, const char *key, const rt_execution_group *groups,
                         size_t count)
{
    rt_jw_kobject(w, key);
    for (size_t i = 0; i < count; i++)
        if (groups[i].name.len > 0) {
            rt_jw_key(w, groups[i].name);
            rt_jw_u64(w, groups[i].count);
        }
    rt_jw_end(w);
}

static void write_days(rt_json_writer *w, const rt_execution_stats *s)
{
    char date[RT_ISO8601_SIZE];
    rt_jw_karray(w, "executionsOverTime");
    for (size_t i = 0; i < s->day_count; i++) {
        rt_iso8601_write(date, s->days[i].start_ms);
        rt_jw_object(w);
        rt_jw_kstr(w, "date", (rt_str){ date, 10 });
        rt_jw_ku64(w, "count", s->days[i].count);
        rt_jw_ku64(w, "successCount", s->days[i].succeeded);
        rt_jw_ku64(w, "errorCount", s->days[i].count - s->days[i].succeeded);
        rt_jw_end(w);
    }
    rt_jw_end(w);
}

static void write_stats(const rt_execution_stats *s, rt_json_writer *w)
{
    rt_jw_ku64(w, "totalExecutions", s->total);
    rt_jw_kdouble(w, "successRate", rate(s->succeeded, s->total));
    rt_jw_kdouble(w, "avgDurationMs", s->average_ms);
    rt_jw_ku64(w, "totalErrors", s->failed);
    rt_jw_ku64(w, "totalTokensUsed", s->tokens);
    rt_jw_kdouble(w, "avgMemoryMb", s->average_memory_bytes / (double)(1 << 20));
    write_groups(w, "executionsByLanguage", s->by_language, s->language_count);
    write_groups(w, "executionsByRuntime", s->by_runtime, s->runtime_count);
    write_days(w, s);
    rt_jw_kdouble(w, "latencyP50", s->median_ms);
    rt_jw_kdouble(w, "latencyP95", s->p95_ms);
    rt_jw_kdouble(w, "latencyP99", s->p99_ms);
    rt_jw_kdouble(w, "validationFailureRate", rate(s->validation_failures, s->validations));
    rt_jw_ku64(w, "validationAttempts", s->validations);
    rt_jw_ku64(w, "validationFailures", s->validation_failures);
}

/* One agent's figures, or those of all agents; always of the caller's own runs. */
static bool report(http_request *r, http_reply *reply, rt_str id, rt_error *err)
{
    rt_execution_scope scope = { .organisation_id = http_scope(r),
                                 .is_agents_only = true,
                                 .since_ms = since_of(r) };
    rt_execution_scope whole = scope;
    rt_agents *agents = code_agents_of(r, err);
    rt_execution_stats stats, all;
    rt_json_writer w;
    rt_agent agent;
    if (!agents || (id.len > 0 &&
                    !rt_agents_find(agents, &r->caller, id, (rt_str){ 0 }, &r->arena, &agent, err)))
        return false;
    if (id.len > 0)
        scope.code_agent_id = agent.row.id;
    whole.is_agents_only = false;
    if (!rt_execution_stats_of(r->server->config.store, &scope, &r->arena, &stats, err) ||
        !rt_execution_stats_of(r->server->config.store, &whole, &r->arena, &all, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    write_stats(&stats, &w);
    rt_jw_kdouble(&w, "registryReuseRate", rate(stats.total, all.total));
    rt_jw_end(&w);
    return true;
}

static bool analytics(http_request *r, http_reply *reply, rt_error *err)
{
    return report(r, reply, http_query(r, "agentId"), err);
}

static bool agent_analytics(http_request *r, http_reply *reply, rt_error *err)
{
    return report(r, reply, http_param(r, "id"), err);
}

/* ---- logs ---- */

static void write_log(const rt_execution_row *row, rt_json_writer *w)
{
    rt_jw_object(w);
    rt_jw_kstr(w, "id", row->id);
    http_jw_text(w, "codeAgentId", row->code_agent_id);
    http_jw_text(w, "version", row->code_agent_version);
    http_jw_text(w, "workflowExecutionId", row->workflow_execution_id);
    http_jw_text(w, "nodeId", row->node_id);
    http_jw_text(w, "runtime", row->runtime);
    rt_jw_kstr(w, "language", row->language);
    rt_jw_kdouble(w, "durationMs", (double)row->duration_us / 1000.0);
    rt_jw_kdouble(w, "memoryMb", (double)row->memory_peak_bytes / (double)(1 << 20));
    rt_jw_ki64(w, "exitCode", row->exit_code);
    rt_jw_kbool(w, "success", rt_str_eq_c(row->status, "SUCCESS"));
    http_jw_text(w, "errorMessage", row->error_message);
    rt_jw_ku64(w, "tokensUsed", row->tokens);
    if (row->has_validation)
        rt_jw_kbool(w, "validationPassed", row->is_validation_passed);
    else
        rt_jw_knull(w, "validationPassed");
    http_jw_text(w, "organizationId", row->organisation_id);
    http_jw_text(w, "workspaceId", row->workspace_id);
    http_jw_text(w, "userId", row->user_id);
    http_jw_time(w, "createdAt", row->created_ms);
    rt_jw_end(w);
}

static bool reply_logs(http_request *r, http_reply *reply, const rt_execution_filter *filter,
                       rt_error *err)
{
    rt_execution_row *rows;
    rt_json_writer w;
    rt_str next;
    size_t count;
    if (!rt_execution_list(r->server->config.store, filter, &r->arena, &rows, &count, &next, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_kbool(&w, "success", true);
    rt_jw_karray(&w, "data");
    for (size_t i = 0; i < count; i++)
        write_log(&rows[i], &w);
    rt_jw_end(&w);
    rt_jw_ku64(&w, "count", count);
    rt_jw_end(&w);
    return true;
}

static bool agent_logs(http_request *r, http_reply *reply, rt_error *err)
{
    rt_agents *agents = code_agents_of(r, err);
    rt_agent agent;
    if (!agents || !rt_agents_find(agents, &r->caller, http_param(r, "id"), (rt_str){ 0 },
                                   &r->arena, &agent, err))
        return false;
    rt_execution_filter filter = { .organisation_id = http_scope(r),
                                   .code_agent_id = agent.row.id,
                                   .limit = (unsigned)http_query_u64(r, "limit", 100) };
    return reply_logs(r, reply, &filter, err);
}

static bool workflow_logs(http_request *r, http_reply *reply, rt_error *err)
{
    rt_execution_filter filter = { .organisation_id = http_scope(r),
                                   .workflow_execution_id = http_param(r, "executionId"),
                                   .limit = (unsigned)http_query_u64(r, "limit", 100) };
    return reply_logs(r, reply, &filter, err);
}

static bool agent_stats(http_request *r, http_reply *reply, rt_error *err)
{
    rt_agents *agents = code_agents_of(r, err);
    rt_execution_scope scope = { .organisation_id = http_scope(r) };
    rt_execution_stats stats;
    rt_json_writer w;
    rt_agent agent;
    if (!agents || !rt_agents_find(agents, &r->caller, http_param(r, "id"), (rt_str){ 0 },
                                   &r->arena, &agent, err))
        return false;
    scope.code_agent_id = agent.row.id;
    if (!rt_execution_stats_of(r->server->config.store, &scope, &r->arena, &stats, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_kbool(&w, "success", true);
    rt_jw_kobject(&w, "data");
    rt_jw_ku64(&w, "totalExecutions", stats.total);
    rt_jw_kdouble(&w, "successRate", rate(stats.succeeded, stats.total));
    rt_jw_kdouble(&w, "avgDurationMs", stats.average_ms);
    rt_jw_ku64(&w, "totalErrors", stats.failed);
    rt_jw_end(&w);
    rt_jw_end(&w);
    return true;
}

#define COMMON .tag = "Code agents", .role = RT_ROLE_VIEWER, .action = "read code_agent"
#define FLAGS  HTTP_TWICE | HTTP_CODE_AGENT_ERRORS
#define RANGE                                                                                      \
    {                                                                                              \
        "timeRange", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "how far back", "7d 30d 90d all", "30d", 0, 0  \
    }
#define LIMIT                                                                                      \
    {                                                                                              \
        "limit", HTTP_IN_QUERY, HTTP_TYPE_INTEGER, "rows at most", NULL, "100", 1, 500             \
    }

const http_operation api_code_agent_report_rows[] = {
    { .method = "GET",
      .path = "/code-agents/analytics",
      .id = "codeAgentAnalytics",
      COMMON,
      .summary = "How agents are used",
      .about = "Of the caller's organisation. Rates are from 0 to 1; a percentile is the run at "
               "floor(n * p) of the sorted durations.",
      .parameters = HTTP_PARAMETERS(
          { "agentId", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "only this one", NULL, NULL, 1, 200 }, RANGE),
      .responses = HTTP_RESPONSES({ 200, "CodeAgentAnalytics", "The figures" }),
      .errors = "404",
      .flags = FLAGS,
      .handler = analytics },
    { .method = "GET",
      .path = "/code-agents/{id}/analytics",
      .id = "oneCodeAgentAnalytics",
      COMMON,
      .summary = "How one agent is used",
      .parameters = HTTP_PARAMETERS(RANGE),
      .responses = HTTP_RESPONSES({ 200, "CodeAgentAnalytics", "The figures" }),
      .errors = "404",
      .flags = FLAGS,
      .handler = agent_analytics },
    { .method = "GET",
      .path = "/code-exec-logs/agent/{id}",
      .id = "codeAgentLogs",
      COMMON,
      .summary = "The runs of an agent, newest first",
      .parameters = HTTP_PARAMETERS(LIMIT),
      .responses = HTTP_RESPONSES({ 200, "CodeExecLogs", "The runs" }),
      .errors = "404",
      .flags = FLAGS,
      .handler = agent_logs },
    { .method = "GET",
      .path = "/code-exec-logs/agent/{id}/stats",
      .id = "codeAgentLogStats",
      COMMON,
      .summary = "The runs of an agent in four figures",
      .responses = HTTP_RESPONSES({ 200, "CodeExecStats", "The figures" }),
      .errors = "404",
      .flags = FLAGS,
      .handler = agent_stats },
    { .method = "GET",
      .path = "/code-exec-logs/workflow/{executionId}",
      .id = "workflowLogs",
      COMMON,
      .summary = "The runs of a workflow, newest first",
      .parameters = HTTP_PARAMETERS(LIMIT),
      .responses = HTTP_RESPONSES({ 200, "CodeExecLogs", "The runs" }),
      .flags = FLAGS,
      .handler = workflow_logs },
    { 0 },
};
