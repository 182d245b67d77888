/* SPDX-License-Identifier: Apache-2.0 */
/* api_records.c - what is on record of runs: the rows, their provenance, what they left behind. */
#include "server/executions.h"
#include "server/server_internal.h"

#define EVENTS_READ_MAX 100000 /* of a job, on the way to its last one */

static void write_hashes(const rt_execution_row *row, rt_json_writer *w)
{
    rt_jw_kobject(w, "hashes");
    http_jw_text(w, "code", row->code_hash);
    http_jw_text(w, "input", row->input_hash);
    http_jw_text(w, "output", row->output_hash);
    http_jw_text(w, "transcript", row->transcript_hash);
    rt_jw_end(w);
}

static void write_usage(const rt_execution_row *row, rt_json_writer *w)
{
    rt_jw_kobject(w, "usage");
    rt_jw_kdouble(w, "duration_ms", (double)row->duration_us / 1000.0);
    rt_jw_kdouble(w, "cpu_ms", (double)row->cpu_us / 1000.0);
    rt_jw_ku64(w, "memory_peak_bytes", row->memory_peak_bytes);
    rt_jw_ku64(w, "memory_limit_bytes", row->memory_limit_bytes);
    rt_jw_ku64(w, "timeout_ms", row->timeout_ms);
    rt_jw_ku64(w, "code_bytes", row->code_bytes);
    rt_jw_ku64(w, "input_bytes", row->input_bytes);
    rt_jw_ku64(w, "output_bytes", row->output_bytes);
    rt_jw_ku64(w, "denials", row->denials);
    rt_jw_end(w);
    rt_jw_kobject(w, "cost");
    rt_jw_ku64(w, "tokens", row->tokens);
    rt_jw_ku64(w, "tokens_saved", row->tokens_saved);
    rt_jw_ku64(w, "tokens_cached", row->tokens_cached);
    rt_jw_kdouble(w, "usd", row->cost_usd);
    rt_jw_kdouble(w, "traditional_usd", row->traditional_cost_usd);
    rt_jw_end(w);
}

static void write_error(const rt_execution_row *row, rt_json_writer *w)
{
    if (row->error_type.len == 0) {
        rt_jw_knull(w, "error");
        return;
    }
    rt_jw_kobject(w, "error");
    rt_jw_kstr(w, "type", row->error_type);
    rt_jw_kstr(w, "message", row->error_message);
    rt_jw_end(w);
}

static void write_counts(const rt_json ways[2], rt_json_writer *w)
{
    rt_jw_kobject(w, "counts");
    for (size_t i = 0; i < 2; i++) {
        rt_jw_key(w, i ? RT_STR("output") : RT_STR("input"));
        if (rt_json_is_absent(ways[i]))
            rt_jw_raw(w, RT_STR("{}"));
        else
            rt_jw_json(w, ways[i]);
    }
    rt_jw_end(w);
}

/* The names alone, for who only asks which, and how many of each went in and came out. */
static void write_types(rt_str stored, rt_json_writer *w)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json found = { 0 }, value;
    rt_str type;
    rt_json_parse(stored, &arena, &found, NULL);
    const rt_json ways[] = { rt_json_get_c(found, "input"), rt_json_get_c(found, "output") };
    rt_jw_karray(w, "types");
    rt_json_iter old = rt_json_each(found); /* a list, in rows of before */
    while (rt_json_type(found) == RT_JSON_ARRAY && rt_json_next(&old, NULL, &value))
        rt_jw_json(w, value);
    for (size_t i = 0; i < RT_COUNT(ways); i++) {
        rt_json_iter it = rt_json_each(ways[i]);
        while (rt_json_next(&it, &type, &value))
            if (i == 0 || rt_json_is_absent(rt_json_get(ways[0], type)))
                rt_jw_str(w, type);
    }
    rt_jw_end(w);
    write_counts(ways, w);
}

static void write_pii(const rt_execution_row *row, rt_json_writer *w)
{
    rt_jw_kobject(w, "pii");
    rt_jw_kbool(w, "in_input", row->is_pii_in);
    rt_jw_kbool(w, "in_output", row->is_pii_out);
    rt_jw_kbool(w, "masked", row->is_pii_masked);
    write_types(row->pii_types, w);
    rt_jw_end(w);
}

/* Into an open object. */
static void write_record(const rt_execution_row *row, rt_json_writer *w)
{
    rt_jw_kstr(w, "id", row->id);
    rt_jw_kstr(w, "status", row->status);
    rt_jw_kstr(w, "language", row->language);
    http_jw_text(w, "runtime", row->runtime);
    http_jw_text(w, "surface", row->surface);
    http_jw_text(w, "policy", row->policy_name);
    http_jw_text(w, "session_id", row->session_id);
    http_jw_text(w, "user_id", row->user_id);
    http_jw_text(w, "key_id", row->key_id);
    http_jw_text(w, "actor_type", row->actor_type);
    http_jw_text(w, "agent_type", row->agent_type);
    http_jw_text(w, "tool_id", row->tool_id);
    http_jw_text(w, "organisation_id", row->organisation_id);
    http_jw_text(w, "workspace_id", row->workspace_id);
    http_jw_text(w, "idempotency_key", row->idempotency_key);
    http_jw_text(w, "host", row->host);
    http_jw_text(w, "trace_id", row->trace_id);
    http_jw_text(w, "sandbox_id", row->sandbox_id);
    rt_jw_ki64(w, "exit_code", row->exit_code);
    rt_jw_kbool(w, "timed_out", row->is_timed_out);
    rt_jw_kbool(w, "cached", row->is_cached);
    write_error(row, w);
    write_hashes(row, w);
    write_usage(row, w);
    write_pii(row, w);
    http_jw_raw(w, "tool_ids", row->tool_ids, RT_STR("[]"));
    http_jw_time(w, "created_at", row->created_ms);
    http_jw_time(w, "started_at", row->started_ms);
    http_jw_time(w, "finished_at", row->finished_ms);
}

/* The answer of a run nobody waited for, while it is still kept. */
static rt_str kept_answer(http_request *r, rt_str id)
{
    job_hold *hold RT_CLEANUP(job_hold_releasep) = jobs_find(r->server->jobs, http_scope(r), id);
    size_t position = 0, count = 0;
    const char *event = "";
    rt_str json = { 0 };
    int got = 0;
    while (hold && count++ < EVENTS_READ_MAX &&
           (got = rt_job_next(job_hold_job(hold), &position, 0, &r->arena, &event, &json)) > 0)
        ;
    return got < 0 && strcmp(event, "result") == 0 ? json : (rt_str){ 0 };
}

static bool get_record(http_request *r, http_reply *reply, rt_error *err)
{
    rt_execution_row row;
    rt_json_writer w;
    if (!rt_execution_get(r->server->config.store, http_scope(r), http_param(r, "id"), &r->arena,
                          &row, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    write_record(&row, &w);
    http_jw_raw(&w, "attestation", row.attestation, RT_STR("null"));
    http_jw_raw(&w, "answer", kept_answer(r, row.id), RT_STR("null"));
    rt_jw_end(&w);
    return true;
}

static bool list_records(http_request *r, http_reply *reply, rt_error *err)
{
    rt_execution_filter filter = { .organisation_id = http_scope(r),
                                   .status = http_query(r, "status"),
                                   .language = http_query(r, "language"),
                                   .session_id = http_query(r, "session_id"),
                                   .user_id = http_query(r, "user_id"),
                                   .agent_type = http_query(r, "agent_type"),
                                   .cursor = http_query(r, "cursor"),
                                   .limit = (unsigned)http_query_u64(r, "limit", 50) };
    const rt_language *language = rt_language_find(filter.language);
    rt_execution_row *rows;
    size_t count;
    rt_str next;
    rt_json_writer w;
    if (language)
        filter.language = rt_str_of(language->name); /* "js" finds "javascript" */
    operations_time(http_query(r, "since"), &filter.since_ms);
    operations_time(http_query(r, "until"), &filter.until_ms);
    if (!rt_execution_list(r->server->config.store, &filter, &r->arena, &rows, &count, &next, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_karray(&w, "items");
    for (size_t i = 0; i < count; i++) {
        rt_jw_object(&w);
        write_record(&rows[i], &w);
        rt_jw_end(&w);
    }
    rt_jw_end(&w);
    http_jw_text(&w, "next_cursor", next);
    rt_jw_end(&w);
    return true;
}

static bool get_provenance(http_request *r, http_reply *reply, rt_error *err)
{
    rt_provenance link;
    rt_json_writer w;
    if (!rt_provenance_get(r->server->config.store, http_scope(r), http_param(r, "id"), &r->arena,
                           &link, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_provenance_write(&link, &w);
    return true;
}

static bool list_artifacts(http_request *r, http_reply *reply, rt_error *err)
{
    rt_execution_row row;
    rt_artifact_row *rows;
    size_t count;
    rt_json_writer w;
    if (!rt_execution_get(r->server->config.store, http_scope(r), http_param(r, "id"), &r->arena,
                          &row, err) ||
        !rt_artifact_list(r->server->config.shelf, row.organisation_id, row.id, &r->arena, &rows,
                          &count, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_karray(&w, "items");
    for (size_t i = 0; i < count; i++)
        artifacts_write(&rows[i], &w);
    rt_jw_end(&w);
    rt_jw_end(&w);
    return true;
}

#define TEXT_FILTER(name, about)                                                                   \
    {                                                                                              \
        name, HTTP_IN_QUERY, HTTP_TYPE_TEXT, about, NULL, NULL, 1, 255                             \
    }

const http_operation api_record_rows[] = {
    { .method = "GET",
      .path = "/v1/executions",
      .id = "listExecutions",
      .tag = "Executions",
      .summary = "List runs",
      .about = "Newest first. next_cursor, given back as cursor, has the next page.",
      .role = RT_ROLE_VIEWER,
      .action = "read records",
      .parameters = HTTP_PARAMETERS(
          { "status", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "only runs in this state",
            "QUEUED RUNNING SUCCESS FAILED TIMEOUT MEMORY_ERROR CANCELLED", NULL, 0, 0 },
          TEXT_FILTER("language", "only runs in this language"),
          TEXT_FILTER("session_id", "only runs of this session"),
          TEXT_FILTER("user_id", "only runs on behalf of this user"),
          TEXT_FILTER("agent_type", "only runs of this kind of agent"),
          { "since", HTTP_IN_QUERY, HTTP_TYPE_TIME, "not before", NULL, NULL, 0, 0 },
          { "until", HTTP_IN_QUERY, HTTP_TYPE_TIME, "not after", NULL, NULL, 0, 0 },
          { "limit", HTTP_IN_QUERY, HTTP_TYPE_INTEGER, "rows of a page", NULL, "50", 1, 500 },
          TEXT_FILTER("cursor", "next_cursor of the page before")),
      .responses = HTTP_RESPONSES({ 200, "RecordPage", "A page of records" }),
      .handler = list_records },
    { .method = "GET",
      .path = "/v1/executions/{id}",
      .id = "getExecution",
      .tag = "Executions",
      .summary = "The record of a run",
      .about = "Hashes and sizes, never raw code or data. The answer of a run that was started "
               "with wait=false is here for 15 minutes after it ended.",
      .role = RT_ROLE_VIEWER,
      .action = "read records",
      .responses = HTTP_RESPONSES({ 200, "RecordWithAnswer", "The record" }),
      .errors = "404",
      .handler = get_record },
    { .method = "GET",
      .path = "/v1/executions/{id}/provenance",
      .id = "getProvenance",
      .tag = "Executions",
      .summary = "Where a result comes from",
      .about = "The run's link in its organisation's chain of provenance.",
      .role = RT_ROLE_VIEWER,
      .action = "read records",
      .responses = HTTP_RESPONSES({ 200, "Provenance", "The link" }),
      .errors = "404",
      .handler = get_provenance },
    { .method = "GET",
      .path = "/v1/executions/{id}/artifacts",
      .id = "listArtifacts",
      .tag = "Artifacts",
      .summary = "What a run left behind",
      .role = RT_ROLE_VIEWER,
      .action = "read artifacts",
      .responses = HTTP_RESPONSES({ 200, "ArtifactList", "Files and large outputs" }),
      .errors = "404",
      .handler = list_artifacts },
    { 0 },
};
