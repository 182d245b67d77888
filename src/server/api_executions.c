/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_executions.c - run code: and wait for the answer, or watch it, or come back later.
 *
 * A run that failed is answered with 200 like any other; its status says so. Somebody who waits or
 * watches and hangs up ends the run.
 */
#include <stdio.h>

#include "server/events.h"
#include "server/executions.h"
#include "server/server_internal.h"

/* "wait" says how to answer: in the query or in the body. */
static bool read_wait(const http_request *r, rt_json body, bool *is_waited, rt_error *err)
{
    rt_json wait = rt_json_get_c(body, "wait");
    if (!rt_json_is_absent(wait) && rt_json_type(wait) != RT_JSON_BOOL)
        return rt_fail(err, RT_INVALID, "'wait' must be true or false, not %s",
                       rt_json_type_name(wait));
    *is_waited = http_query_bool(r, "wait", true) && rt_json_bool(wait, true);
    return true;
}

static bool read_request(http_request *r, rt_request *out, bool *is_waited, rt_error *err)
{
    rt_json body;
    rt_str key = http_header(r, "Idempotency-Key");
    if (!http_json(r, &body, err) || !rt_request_read(body, &r->arena, out, err) ||
        !read_wait(r, body, is_waited, err))
        return false;
    if (key.len > 0 && out->idempotency_key.len > 0 && !rt_str_eq(key, out->idempotency_key))
        return rt_fail(err, RT_INVALID,
                       "the Idempotency-Key header and the member idempotency_key differ");
    if (!rt_request_label(key))
        return rt_fail(err, RT_INVALID, "the Idempotency-Key header must be plain text");
    if (key.len > 0)
        out->idempotency_key = key;
    out->caller = r->caller;
    out->surface = RT_STR("rest");
    out->trace = r->trace;
    return true;
}

static void cancel_run(void *ctx)
{
    rt_canceller_cancel(ctx);
}

void executions_attend(void *ctx)
{
    executions_attendance *here = ctx;
    http_request *r = here->request;
    rt_canceller_init(&here->canceller);
    watch_begin(r->server->watch, &here->entry, server_socket(r), cancel_run, &here->canceller);
}

/* Code that was run as a tool's is a use of that tool. */
static void count_use(const http_request *r, const rt_request *request, const rt_answer *answer,
                      uint64_t elapsed_us)
{
    rt_tools *tools = r->server->config.tools;
    char name[sizeof(RT_TOOLBOX) + HTTP_LABEL_MAX * 4 + 1];
    if (!tools || request->tool_id.len == 0 || answer->is_replayed)
        return;
    snprintf(name, sizeof(name), RT_TOOLBOX ":%.*s", RT_FMT(request->tool_id));
    rt_tools_used(tools, rt_str_of(name), elapsed_us, answer->status != RT_STATUS_SUCCESS);
}

bool executions_answer(http_request *r, rt_request *request, rt_answer *out, rt_error *err)
{
    executions_attendance here = { .request = r, .canceller = { .wake = -1 } };
    request->canceller = &here.canceller;
    request->on_work = executions_attend;
    request->work_ctx = &here;
    uint64_t began = rt_now_ns();
    bool ok = rt_engine_execute(r->server->config.engine, request, &r->arena, out, err);
    executions_leave(&here);
    if (ok)
        count_use(r, request, out, (rt_now_ns() - began) / 1000);
    return ok;
}

void executions_leave(executions_attendance *here)
{
    watch_end(here->request->server->watch, &here->entry);
    rt_canceller_done(&here->canceller);
}

bool executions_agent(http_request *r, rt_agent_run *run, rt_agent_result *out, rt_error *err)
{
    executions_attendance here = { .request = r, .canceller = { .wake = -1 } };
    run->canceller = &here.canceller;
    run->on_work = executions_attend;
    run->work_ctx = &here;
    run->trace = r->trace;
    bool ok = rt_agents_execute(r->server->config.agents, &r->caller, run, &r->arena, out, err);
    executions_leave(&here);
    return ok;
}

static bool reply_answer(http_request *r, http_reply *reply, rt_request *request, rt_error *err)
{
    rt_answer answer;
    if (!executions_answer(r, request, &answer, err))
        return false;
    if (answer.is_replayed)
        http_reply_header(reply, "Idempotency-Replayed", RT_STR("true"));
    reply->status = 200;
    reply->text = answer.json;
    return true;
}

static bool reply_job(http_request *r, http_reply *reply, rt_request *request, bool is_watched,
                      rt_error *err)
{
    rt_job *job = NULL;
    rt_json_writer w;
    if (!rt_engine_start(r->server->config.engine, request, &job, err))
        return false;
    job_hold *hold RT_CLEANUP(job_hold_releasep) = job_hold_new(job);
    if (is_watched) {
        events_reply(r, reply, RT_TAKE(hold), true);
        return true;
    }
    jobs_keep(r->server->jobs, r->caller.organisation_id, hold);
    rt_str url = rt_arena_printf(&r->arena, "/v1/executions/%.*s", RT_FMT(rt_job_id(job)));
    http_reply_header(reply, "Location", url);
    http_reply_json(reply, 202, &w);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "id", rt_job_id(job));
    rt_jw_kstr(&w, "status", RT_STR("QUEUED"));
    rt_jw_kstr(&w, "url", url);
    rt_jw_end(&w);
    return true;
}

bool executions_run(http_request *r, http_reply *reply, rt_str session_id, rt_error *err)
{
    rt_request request = { 0 };
    bool is_waited = true;
    if (!read_request(r, &request, &is_waited, err))
        return false;
    if (session_id.len > 0 && request.session_id.len > 0 &&
        !rt_str_eq(session_id, request.session_id))
        return rt_fail(err, RT_INVALID, "the body names another session than the address");
    if (session_id.len > 0)
        request.session_id = session_id;
    bool is_watched = http_accepts(r, "text/event-stream");
    return is_watched || !is_waited ? reply_job(r, reply, &request, is_watched, err)
                                    : reply_answer(r, reply, &request, err);
}

static bool run(http_request *r, http_reply *reply, rt_error *err)
{
    return executions_run(r, reply, (rt_str){ 0 }, err);
}

static bool watch_run(http_request *r, http_reply *reply, rt_error *err)
{
    rt_str id = http_param(r, "id"), organisation = http_scope(r);
    job_hold *hold = jobs_find(r->server->jobs, organisation, id);
    if (!hold) {
        rt_job *job = rt_engine_job(r->server->config.engine, organisation, id);
        if (!job)
            return rt_fail(err, RT_NOT_FOUND,
                           "no run %.*s is under way on this node; GET /v1/executions/{id} has "
                           "the record of one that ended",
                           (int)RT_MIN(id.len, (size_t)60), id.ptr);
        hold = job_hold_new(job);
    }
    events_reply(r, reply, hold, false);
    return true;
}

static bool cancel(http_request *r, http_reply *reply, rt_error *err)
{
    rt_str id = http_param(r, "id");
    rt_execution_row row;
    rt_json_writer w;
    if (!rt_engine_cancel(r->server->config.engine, http_scope(r), id, err)) {
        if (err->code != RT_NOT_FOUND)
            return false;
        if (!rt_execution_get(r->server->config.store, http_scope(r), id, &r->arena, &row, err))
            return false;
        return rt_fail(err, RT_CONFLICT, "run %.*s is %.*s and cannot be cancelled here",
                       (int)RT_MIN(id.len, (size_t)60), id.ptr, RT_FMT(row.status));
    }
    http_reply_json(reply, 202, &w);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "id", id);
    rt_jw_kstr(&w, "status", RT_STR("CANCELLING"));
    rt_jw_end(&w);
    return true;
}

const http_operation api_execution_rows[] = {
    { .method = "POST",
      .path = "/v1/executions",
      .id = "execute",
      .tag = "Executions",
      .summary = "Run code",
      .about = "Runs code in a fresh sealed cell and answers when it has ended. A run that failed "
               "is answered with 200; its status says so. With Accept: text/event-stream the "
               "events started, stdout, stderr, log and at last result or error are sent as they "
               "come. With wait=false the answer is 202 at once.",
      .role = RT_ROLE_MEMBER,
      .action = "run code",
      .parameters = HTTP_PARAMETERS({ "wait", HTTP_IN_QUERY, HTTP_TYPE_BOOLEAN,
                                      "false: answer at once with an id", NULL, "true", 0, 0 },
                                    { "Idempotency-Key", HTTP_IN_HEADER, HTTP_TYPE_TEXT,
                                      "a run under a key that was used before is not run again",
                                      NULL, NULL, 1, 200 }),
      .request = "ExecutionRequest",
      .responses = HTTP_RESPONSES({ 200, "Execution", "The run has ended" },
                                  { 200, HTTP_EVENTS, "The run as it happens" },
                                  { 202, "ExecutionAccepted", "The run waits or runs" }),
      .errors = "404 409 499 422",
      .handler = run },
    { .method = "GET",
      .path = "/v1/executions/{id}/events",
      .id = "watchExecution",
      .tag = "Executions",
      .summary = "Watch a run",
      .about = "The events of a run that was started with wait=false, from its beginning or from "
               "Last-Event-ID on.",
      .role = RT_ROLE_VIEWER,
      .action = "watch runs",
      .parameters =
          HTTP_PARAMETERS({ "Last-Event-ID", HTTP_IN_HEADER, HTTP_TYPE_INTEGER,
                            "the last event that was received", NULL, NULL, 0, INT32_MAX }),
      .responses = HTTP_RESPONSES({ 200, HTTP_EVENTS, "The run as it happens" }),
      .errors = "404",
      .handler = watch_run },
    { .method = "POST",
      .path = "/v1/executions/{id}/cancel",
      .id = "cancelExecution",
      .tag = "Executions",
      .summary = "Cancel a run",
      .role = RT_ROLE_MEMBER,
      .action = "cancel runs",
      .responses = HTTP_RESPONSES({ 202, "ExecutionCancelling", "It is being ended" }),
      .errors = "404 409",
      .handler = cancel },
    { 0 },
};
