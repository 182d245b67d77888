/* SPDX-License-Identifier: Apache-2.0 */
/* api_approvals.c - what waits for a person's word, listed and answered over HTTP. */
#include "server/approvals.h"
#include "server/server_internal.h"

static bool list(http_request *r, http_reply *reply, rt_error *err)
{
    rt_approval_row *rows;
    size_t count;
    rt_json_writer w;
    if (!approvals_list(&r->server->config, &r->caller, http_query(r, "status"),
                        (unsigned)http_query_u64(r, "limit", 50), &r->arena, &rows, &count, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_karray(&w, "items");
    for (size_t i = 0; i < count; i++)
        approvals_write(&r->server->config, &r->caller, &rows[i], &r->arena, &w);
    rt_jw_end(&w);
    rt_jw_end(&w);
    return true;
}

static void reply_one(http_request *r, http_reply *reply, const rt_approval_row *row)
{
    rt_json_writer w;
    http_reply_json(reply, 200, &w);
    approvals_write(&r->server->config, &r->caller, row, &r->arena, &w);
}

static bool get(http_request *r, http_reply *reply, rt_error *err)
{
    rt_approval_row row;
    uint64_t expired;
    if (!rt_approval_expire(r->server->config.store, rt_wall_ms(), &expired, err) ||
        !rt_approval_find(r->server->config.store, http_scope(r), http_param(r, "id"), &r->arena,
                          &row, err))
        return false;
    reply_one(r, reply, &row);
    return true;
}

static const http_member members[] = { { "comment", HTTP_STRING | HTTP_NULL, false } };

static bool decide(http_request *r, http_reply *reply, bool is_approved, rt_error *err)
{
    rt_approval_row row;
    rt_json body;
    if (!http_object(r, members, RT_COUNT(members), &body, err) ||
        !approvals_decide(&r->server->config, &r->caller, http_param(r, "id"), is_approved,
                          rt_json_str(rt_json_get_c(body, "comment")), &r->arena, &row, err))
        return false;
    reply_one(r, reply, &row);
    return true;
}

static bool approve(http_request *r, http_reply *reply, rt_error *err)
{
    return decide(r, reply, true, err);
}

static bool reject(http_request *r, http_reply *reply, rt_error *err)
{
    return decide(r, reply, false, err);
}

const http_operation api_approval_rows[] = {
    { .method = "GET",
      .path = "/v1/approvals",
      .id = "listApprovals",
      .tag = "Approvals",
      .summary = "What waits for a person's word, and what the word was",
      .about = "Newest first. Arguments are shown to admins, and to who asked.",
      .role = RT_ROLE_VIEWER,
      .action = "list approvals",
      .parameters = HTTP_PARAMETERS(
          { "status", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "only these",
            "pending approved rejected expired cancelled", NULL, 0, 0 },
          { "limit", HTTP_IN_QUERY, HTTP_TYPE_INTEGER, "rows at most", NULL, "50", 1, 500 }),
      .responses = HTTP_RESPONSES({ 200, "ApprovalList", "The questions" }),
      .handler = list },
    { .method = "GET",
      .path = "/v1/approvals/{id}",
      .id = "getApproval",
      .tag = "Approvals",
      .summary = "One question",
      .role = RT_ROLE_VIEWER,
      .action = "read approvals",
      .responses = HTTP_RESPONSES({ 200, "Approval", "The question" }),
      .errors = "404",
      .handler = get },
    { .method = "POST",
      .path = "/v1/approvals/{id}/approve",
      .id = "approve",
      .tag = "Approvals",
      .summary = "Let it happen",
      .about = "What waits goes on, on whichever node it waits. A question is answered once.",
      .role = RT_ROLE_ADMIN,
      .action = "approve",
      .request = "ApprovalDecision",
      .responses = HTTP_RESPONSES({ 200, "Approval", "It is approved" }),
      .errors = "404 409",
      .flags = HTTP_OPTIONAL_BODY,
      .handler = approve },
    { .method = "POST",
      .path = "/v1/approvals/{id}/reject",
      .id = "reject",
      .tag = "Approvals",
      .summary = "Do not let it happen",
      .about = "The call that waits ends with an error that has the comment.",
      .role = RT_ROLE_ADMIN,
      .action = "reject",
      .request = "ApprovalDecision",
      .responses = HTTP_RESPONSES({ 200, "Approval", "It is rejected" }),
      .errors = "404 409",
      .flags = HTTP_OPTIONAL_BODY,
      .handler = reject },
    { 0 },
};
