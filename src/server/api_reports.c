/* SPDX-License-Identifier: Apache-2.0 */
/* api_reports.c - what happened, what it cost, how well it goes: for operators and reviewers. */
#include "server/server_internal.h"

#define FAULTS_SHOWN_MAX 100
#define DAY_MS           86400000ull

/* ---- audit ---- */

static void write_event(const rt_audit_event *e, rt_json_writer *w)
{
    rt_jw_object(w);
    rt_jw_ki64(w, "id", e->id);
    http_jw_time(w, "time", e->time_ms);
    http_jw_text(w, "organisation_id", e->organisation_id);
    http_jw_text(w, "actor_id", e->actor_id);
    http_jw_text(w, "actor_type", e->actor_type);
    rt_jw_kstr(w, "action", e->action);
    http_jw_text(w, "subject", e->subject);
    http_jw_text(w, "outcome", e->outcome);
    http_jw_raw(w, "detail", e->detail, RT_STR("{}"));
    http_jw_text(w, "address", e->address);
    rt_jw_end(w);
}

static bool list_audit(http_request *r, http_reply *reply, rt_error *err)
{
    unsigned limit = (unsigned)http_query_u64(r, "limit", 100);
    uint64_t since_ms = 0;
    rt_audit_event *rows;
    size_t count;
    rt_json_writer w;
    operations_time(http_query(r, "since"), &since_ms);
    if (!rt_audit_list(r->server->config.store, http_scope(r), http_query(r, "action"), since_ms,
                       (int64_t)http_query_u64(r, "before", 0), limit, &r->arena, &rows, &count,
                       err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_karray(&w, "items");
    for (size_t i = 0; i < count; i++)
        write_event(&rows[i], &w);
    rt_jw_end(&w);
    if (count == limit)
        rt_jw_ki64(&w, "next_before", rows[count - 1].id);
    else
        rt_jw_knull(&w, "next_before");
    rt_jw_end(&w);
    return true;
}

typedef struct faults {
    rt_json_writer *w;
    size_t shown;
} faults;

static void write_fault(void *ctx, rt_str organisation_id, int64_t sequence, rt_str execution_id,
                        const char *what)
{
    faults *f = ctx;
    if (f->shown++ >= FAULTS_SHOWN_MAX)
        return;
    rt_jw_object(f->w);
    rt_jw_kstr(f->w, "organisation_id", organisation_id);
    rt_jw_ki64(f->w, "sequence", sequence);
    http_jw_text(f->w, "execution_id", execution_id);
    rt_jw_kstr(f->w, "what", rt_str_of(what));
    rt_jw_end(f->w);
}

static bool verify_audit(http_request *r, http_reply *reply, rt_error *err)
{
    rt_audit_report report = { 0 };
    rt_json_writer w;
    http_reply_json(reply, 0, &w);
    faults f = { .w = &w };
    rt_jw_object(&w);
    rt_jw_karray(&w, "faults");
    if (!rt_audit_verify(r->server->config.store, http_scope(r), write_fault, &f, &report, err))
        return false;
    rt_jw_end(&w);
    rt_jw_kbool(&w, "intact", report.faults == 0);
    rt_jw_ku64(&w, "organisations", report.organisations);
    rt_jw_ku64(&w, "records", report.records);
    rt_jw_ku64(&w, "erased", report.erased);
    rt_jw_ku64(&w, "fault_count", report.faults);
    rt_jw_end(&w);
    return true;
}

/* ---- costs ---- */

static void write_cost(const rt_cost_row *row, rt_json_writer *w)
{
    rt_jw_object(w);
    http_jw_text(w, "date", row->date);
    http_jw_text(w, "period", row->period);
    rt_jw_ku64(w, "executions", row->executions);
    rt_jw_ku64(w, "succeeded", row->succeeded);
    rt_jw_ku64(w, "failed", row->failed);
    rt_jw_kdouble(w, "cost_usd", row->cost_usd);
    rt_jw_kdouble(w, "average_cost_usd", row->average_cost_usd);
    rt_jw_kdouble(w, "traditional_cost_usd", row->traditional_cost_usd);
    rt_jw_kdouble(w, "savings_usd", row->traditional_cost_usd - row->cost_usd);
    rt_jw_kdouble(w, "savings_percent", row->savings_percent);
    rt_jw_ku64(w, "tokens", row->tokens);
    rt_jw_ku64(w, "tokens_saved", row->tokens_saved);
    rt_jw_ku64(w, "tokens_cached", row->tokens_cached);
    rt_jw_kdouble(w, "average_ms", row->average_ms);
    rt_jw_kdouble(w, "total_ms", row->total_ms);
    rt_jw_kdouble(w, "gpu_minutes", row->gpu_minutes);
    rt_jw_end(w);
}

static bool list_costs(http_request *r, http_reply *reply, rt_error *err)
{
    rt_str period = http_query(r, "period");
    rt_cost_row *rows;
    size_t count;
    rt_json_writer w;
    if (!rt_cost_rows(r->server->config.store, r->caller.organisation_id,
                      period.ptr ? period : RT_STR("daily"),
                      (unsigned)http_query_u64(r, "limit", 31), &r->arena, &rows, &count, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_karray(&w, "items");
    for (size_t i = 0; i < count; i++)
        write_cost(&rows[i], &w);
    rt_jw_end(&w);
    rt_jw_end(&w);
    return true;
}

static bool sum_costs(http_request *r, http_reply *reply, rt_error *err)
{
    rt_str period = http_query(r, "period");
    rt_cost_row row;
    rt_json_writer w;
    if (!rt_cost_summary(r->server->config.store, r->caller.organisation_id,
                         period.ptr ? period : RT_STR("month"), rt_wall_ms(), &r->arena, &row, err))
        return false;
    http_reply_json(reply, 200, &w);
    write_cost(&row, &w);
    return true;
}

/* ---- key figures ---- */

/* Of nothing there is no rate. */
static void write_rate(rt_json_writer *w, const char *key, double part, uint64_t whole)
{
    if (whole > 0)
        rt_jw_kdouble(w, key, part / (double)whole);
    else
        rt_jw_knull(w, key);
}

static void write_groups(rt_json_writer *w, const char *key, const rt_execution_group *groups,
                         size_t count)
{
    rt_jw_karray(w, key);
    for (size_t i = 0; i < count; i++) {
        rt_jw_object(w);
        rt_jw_kstr(w, "name", groups[i].name);
        rt_jw_ku64(w, "executions", groups[i].count);
        write_rate(w, "success_rate", (double)groups[i].succeeded, groups[i].count);
        rt_jw_kdouble(w, "average_ms", groups[i].average_ms);
        rt_jw_end(w);
    }
    rt_jw_end(w);
}

static void write_latency(rt_json_writer *w, const rt_execution_stats *s)
{
    rt_jw_kobject(w, "latency_ms");
    rt_jw_kdouble(w, "median", s->median_ms);
    rt_jw_kdouble(w, "p95", s->p95_ms);
    rt_jw_kdouble(w, "p99", s->p99_ms);
    rt_jw_kdouble(w, "average", s->average_ms);
    rt_jw_end(w);
}

/* Of all that was ever run: patterns are few, and their counts have no dates. */
static bool write_patterns(http_request *r, rt_json_writer *w, rt_error *err)
{
    uint64_t runs, successes;
    rt_cost_row all;
    if (!rt_snippet_totals(r->server->config.store, http_scope(r), &runs, &successes, err) ||
        !rt_cost_summary(r->server->config.store, r->caller.organisation_id, RT_STR("all"),
                         rt_wall_ms(), &r->arena, &all, err))
        return false;
    write_rate(w, "pattern_reuse_rate", (double)runs, RT_MAX(all.executions, runs));
    write_rate(w, "pattern_success_rate", (double)successes, runs);
    return true;
}

static bool kpis(http_request *r, http_reply *reply, rt_error *err)
{
    uint64_t now = rt_wall_ms(), days = http_query_u64(r, "days", 30);
    uint64_t since = now > days * DAY_MS ? now - days * DAY_MS : 0;
    rt_execution_stats s;
    rt_json_writer w;
    if (!rt_execution_stats_get(r->server->config.store, http_scope(r), since, &r->arena, &s, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    http_jw_time(&w, "since", since);
    rt_jw_ku64(&w, "executions", s.total);
    write_rate(&w, "success_rate", (double)s.succeeded, s.total);
    rt_jw_ku64(&w, "timeouts", s.timed_out);
    write_latency(&w, &s);
    rt_jw_kdouble(&w, "average_time_seconds", s.average_ms / 1000.0);
    rt_jw_kdouble(&w, "average_memory_bytes", s.average_memory_bytes);
    write_rate(&w, "cost_per_request_usd", s.cost_usd, s.total);
    rt_jw_kdouble(&w, "cost_usd", s.cost_usd);
    rt_jw_ku64(&w, "tokens", s.tokens);
    rt_jw_ku64(&w, "tokens_saved", s.tokens_saved);
    rt_jw_ku64(&w, "escape_incidents", s.denials);
    rt_jw_ku64(&w, "executions_with_denials", s.with_denials);
    rt_jw_ku64(&w, "validations", s.validations);
    rt_jw_ku64(&w, "validation_failures", s.validation_failures);
    write_rate(&w, "validation_failure_rate", (double)s.validation_failures, s.validations);
    write_rate(&w, "registry_reuse_rate", (double)s.code_agent_runs, s.total);
    write_rate(&w, "pii_detection_rate", (double)s.pii_runs, s.total);
    write_rate(&w, "cache_hit_rate", (double)s.cached, s.total);
    if (!write_patterns(r, &w, err))
        return false;
    write_groups(&w, "by_language", s.by_language, s.language_count);
    write_groups(&w, "by_runtime", s.by_runtime, s.runtime_count);
    rt_jw_end(&w);
    return true;
}

const http_operation api_report_rows[] = {
    { .method = "GET",
      .path = "/v1/audit",
      .id = "listAudit",
      .tag = "Audit",
      .summary = "Who did what",
      .about = "Newest first. next_before, given back as before, has the next page.",
      .role = RT_ROLE_ADMIN,
      .action = "read the audit log",
      .parameters = HTTP_PARAMETERS(
          { "action", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "only events of this kind", NULL, NULL, 1,
            100 },
          { "since", HTTP_IN_QUERY, HTTP_TYPE_TIME, "not before", NULL, NULL, 0, 0 },
          { "before", HTTP_IN_QUERY, HTTP_TYPE_INTEGER, "only events with a smaller id", NULL, NULL,
            1, INT64_MAX },
          { "limit", HTTP_IN_QUERY, HTTP_TYPE_INTEGER, "rows of a page", NULL, "100", 1, 500 }),
      .responses = HTTP_RESPONSES({ 200, "AuditPage", "A page of events" }),
      .handler = list_audit },
    { .method = "POST",
      .path = "/v1/audit/verify",
      .id = "verifyAudit",
      .tag = "Audit",
      .summary = "Check the chain of provenance",
      .about = "Finds records that were changed, removed, added or reordered.",
      .role = RT_ROLE_ADMIN,
      .action = "verify the audit log",
      .responses = HTTP_RESPONSES({ 200, "AuditReport", "What was found" }),
      .handler = verify_audit },
    { .method = "GET",
      .path = "/v1/costs",
      .id = "listCosts",
      .tag = "Reports",
      .summary = "Costs by day or month",
      .role = RT_ROLE_VIEWER,
      .action = "read costs",
      .parameters = HTTP_PARAMETERS(
          { "period", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "rows of what length", "daily monthly",
            "daily", 0, 0 },
          { "limit", HTTP_IN_QUERY, HTTP_TYPE_INTEGER, "rows at most", NULL, "31", 1, 500 }),
      .responses = HTTP_RESPONSES({ 200, "CostList", "Newest first" }),
      .handler = list_costs },
    { .method = "GET",
      .path = "/v1/costs/summary",
      .id = "sumCosts",
      .tag = "Reports",
      .summary = "Costs of a period in one row",
      .role = RT_ROLE_VIEWER,
      .action = "read costs",
      .parameters = HTTP_PARAMETERS({ "period", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "which",
                                      "day week month all", "month", 0, 0 }),
      .responses = HTTP_RESPONSES({ 200, "Cost", "The sum" }),
      .handler = sum_costs },
    { .method = "GET",
      .path = "/v1/kpis",
      .id = "kpis",
      .tag = "Reports",
      .summary = "Key figures",
      .about = "Rates are from 0 to 1, and null where nothing was counted.",
      .role = RT_ROLE_VIEWER,
      .action = "read key figures",
      .parameters = HTTP_PARAMETERS(
          { "days", HTTP_IN_QUERY, HTTP_TYPE_INTEGER, "of the last days", NULL, "30", 1, 3650 }),
      .responses = HTTP_RESPONSES({ 200, "Kpis", "The figures" }),
      .handler = kpis },
    { 0 },
};
