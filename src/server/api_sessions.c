/* SPDX-License-Identifier: Apache-2.0 */
/* api_sessions.c - cells that stay: opened, used, branched, extended, ended. */
#include "server/executions.h"
#include "server/server_internal.h"

static void write_session(const rt_session_row *row, rt_json_writer *w)
{
    rt_jw_object(w);
    rt_jw_kstr(w, "id", row->id);
    http_jw_text(w, "name", row->name);
    rt_jw_kstr(w, "language", row->language);
    rt_jw_kstr(w, "status", row->status);
    http_jw_raw(w, "policy", row->policy, RT_STR("null"));
    http_jw_text(w, "parent_id", row->parent_id);
    http_jw_text(w, "organisation_id", row->organisation_id);
    http_jw_text(w, "workspace_id", row->workspace_id);
    http_jw_text(w, "user_id", row->user_id);
    http_jw_text(w, "key_id", row->key_id);
    http_jw_text(w, "host", row->host);
    http_jw_text(w, "host_url", row->host_url);
    rt_jw_ku64(w, "executions", row->executions);
    http_jw_time(w, "created_at", row->created_ms);
    http_jw_time(w, "expires_at", row->expires_ms);
    http_jw_time(w, "last_used_at", row->last_used_ms);
    http_jw_time(w, "ended_at", row->ended_ms);
    rt_jw_end(w);
}

static void reply_session(http_request *r, http_reply *reply, unsigned status,
                          const rt_session_row *row)
{
    rt_json_writer w;
    if (status == 201)
        http_reply_header(reply, "Location",
                          rt_arena_printf(&r->arena, "/v1/sessions/%.*s", RT_FMT(row->id)));
    http_reply_json(reply, status, &w);
    write_session(row, &w);
}

static const http_member create_members[] = {
    { "language", HTTP_STRING | HTTP_NULL, false },
    { "policy", HTTP_STRING | HTTP_OBJECT | HTTP_NULL, false },
    { "ttl", HTTP_STRING | HTTP_NUMBER | HTTP_NULL, false },
    { "name", HTTP_STRING | HTTP_NULL, false },
};

static bool create(http_request *r, http_reply *reply, rt_error *err)
{
    rt_session_request request = { .caller = r->caller };
    rt_session_row row;
    rt_json body;
    if (!http_object(r, create_members, RT_COUNT(create_members), &body, err) ||
        !http_member_label(body, "name", &request.name, err) ||
        !http_member_ms(body, "ttl", &request.ttl_ms, err))
        return false;
    request.language = rt_json_str(rt_json_get_c(body, "language"));
    if (rt_json_type(rt_json_get_c(body, "policy")) != RT_JSON_NULL)
        request.policy = rt_json_get_c(body, "policy");
    if (!rt_session_create(r->server->config.engine, &request, &r->arena, &row, err))
        return false;
    reply_session(r, reply, 201, &row);
    return true;
}

static bool list(http_request *r, http_reply *reply, rt_error *err)
{
    rt_session_row *rows;
    size_t count;
    rt_json_writer w;
    if (!rt_session_list(r->server->config.engine, &r->caller, http_query(r, "status"),
                         (unsigned)http_query_u64(r, "limit", 50), &r->arena, &rows, &count, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_karray(&w, "items");
    for (size_t i = 0; i < count; i++)
        write_session(&rows[i], &w);
    rt_jw_end(&w);
    rt_jw_end(&w);
    return true;
}

static bool get(http_request *r, http_reply *reply, rt_error *err)
{
    rt_session_row row;
    if (!rt_session_get(r->server->config.engine, &r->caller, http_param(r, "id"), &r->arena, &row,
                        err))
        return false;
    reply_session(r, reply, 200, &row);
    return true;
}

static const http_member extend_members[] = { { "ttl", HTTP_STRING | HTTP_NUMBER, true } };

static bool extend(http_request *r, http_reply *reply, rt_error *err)
{
    rt_session_row row;
    rt_json body;
    uint64_t ttl_ms = 0;
    if (!http_object(r, extend_members, RT_COUNT(extend_members), &body, err) ||
        !http_member_ms(body, "ttl", &ttl_ms, err) ||
        !rt_session_extend(r->server->config.engine, &r->caller, http_param(r, "id"), ttl_ms,
                           &r->arena, &row, err))
        return false;
    reply_session(r, reply, 200, &row);
    return true;
}

static bool end(http_request *r, http_reply *reply, rt_error *err)
{
    reply->status = 204;
    if (rt_session_end(r->server->config.engine, &r->caller, http_param(r, "id"), err))
        return true;
    reply->status = 0;
    return false;
}

static const http_member branch_members[] = {
    { "name", HTTP_STRING | HTTP_NULL, false },
    { "ttl", HTTP_STRING | HTTP_NUMBER | HTTP_NULL, false },
};

static bool branch(http_request *r, http_reply *reply, rt_error *err)
{
    rt_session_row row;
    rt_json body;
    rt_str name = { 0 };
    uint64_t ttl_ms = 0;
    if (!http_object(r, branch_members, RT_COUNT(branch_members), &body, err) ||
        !http_member_label(body, "name", &name, err) ||
        !http_member_ms(body, "ttl", &ttl_ms, err) ||
        !rt_session_branch(r->server->config.engine, &r->caller, http_param(r, "id"), name, ttl_ms,
                           &r->arena, &row, err))
        return false;
    reply_session(r, reply, 201, &row);
    return true;
}

static bool execute(http_request *r, http_reply *reply, rt_error *err)
{
    return executions_run(r, reply, http_param(r, "id"), err);
}

const http_operation api_session_rows[] = {
    { .method = "POST",
      .path = "/v1/sessions",
      .id = "createSession",
      .tag = "Sessions",
      .summary = "Open a session",
      .about = "A cell that stays: what one run defines, the next one sees.",
      .role = RT_ROLE_MEMBER,
      .action = "create sessions",
      .request = "SessionRequest",
      .responses = HTTP_RESPONSES({ 201, "Session", "It is open" }),
      .errors = "404 409 422",
      .flags = HTTP_OPTIONAL_BODY,
      .handler = create },
    { .method = "GET",
      .path = "/v1/sessions",
      .id = "listSessions",
      .tag = "Sessions",
      .summary = "List sessions",
      .role = RT_ROLE_VIEWER,
      .action = "list sessions",
      .parameters = HTTP_PARAMETERS(
          { "status", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "only sessions in this state",
            "ACTIVE ENDED EXPIRED LOST", NULL, 0, 0 },
          { "limit", HTTP_IN_QUERY, HTTP_TYPE_INTEGER, "rows at most", NULL, "50", 1, 500 }),
      .responses = HTTP_RESPONSES({ 200, "SessionList", "Active ones first, newest first" }),
      .handler = list },
    { .method = "GET",
      .path = "/v1/sessions/{id}",
      .id = "getSession",
      .tag = "Sessions",
      .summary = "One session",
      .role = RT_ROLE_VIEWER,
      .action = "read sessions",
      .responses = HTTP_RESPONSES({ 200, "Session", "The session" }),
      .errors = "404",
      .handler = get },
    { .method = "PATCH",
      .path = "/v1/sessions/{id}",
      .id = "extendSession",
      .tag = "Sessions",
      .summary = "Give a session more time",
      .role = RT_ROLE_MEMBER,
      .action = "extend sessions",
      .request = "SessionExtension",
      .responses = HTTP_RESPONSES({ 200, "Session", "The session" }),
      .errors = "404",
      .handler = extend },
    { .method = "DELETE",
      .path = "/v1/sessions/{id}",
      .id = "endSession",
      .tag = "Sessions",
      .summary = "End a session",
      .role = RT_ROLE_MEMBER,
      .action = "end sessions",
      .responses = HTTP_RESPONSES({ 204, NULL, "Nothing of it is left" }),
      .errors = "404",
      .handler = end },
    { .method = "POST",
      .path = "/v1/sessions/{id}/execute",
      .id = "executeInSession",
      .tag = "Sessions",
      .summary = "Run code in a session",
      .about = "As POST /v1/executions, in the session's cell and by default in its language.",
      .role = RT_ROLE_MEMBER,
      .action = "run code",
      .parameters = HTTP_PARAMETERS({ "wait", HTTP_IN_QUERY, HTTP_TYPE_BOOLEAN,
                                      "false: answer at once with an id", NULL, "true", 0, 0 },
                                    { "Idempotency-Key", HTTP_IN_HEADER, HTTP_TYPE_TEXT,
                                      "a run under a key that was used before is not run again",
                                      NULL, NULL, 1, 200 }),
      .request = "SessionExecutionRequest",
      .responses = HTTP_RESPONSES({ 200, "Execution", "The run has ended" },
                                  { 200, HTTP_EVENTS, "The run as it happens" },
                                  { 202, "ExecutionAccepted", "The run waits or runs" }),
      .errors = "404 409 499 422",
      .handler = execute },
    { .method = "POST",
      .path = "/v1/sessions/{id}/branch",
      .id = "branchSession",
      .tag = "Sessions",
      .summary = "Branch a session",
      .about = "A copy of the live interpreter and its files, made in milliseconds.",
      .role = RT_ROLE_MEMBER,
      .action = "branch sessions",
      .request = "BranchRequest",
      .responses = HTTP_RESPONSES({ 201, "Session", "The branch" }),
      .errors = "404 409 422",
      .flags = HTTP_OPTIONAL_BODY,
      .handler = branch },
    { 0 },
};
