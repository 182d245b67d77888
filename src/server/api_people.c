/* SPDX-License-Identifier: Apache-2.0 */
/* api_people.c - what a person may ask of the operator: their data, or that it be gone. */
#include "server/server_internal.h"

#define DAYS_MAX 36500

static bool export_user(http_request *r, http_reply *reply, rt_error *err)
{
    rt_str id = http_param(r, "id");
    rt_json_writer w;
    http_reply_json(reply, 0, &w);
    if (!rt_user_export(r->server->config.store, r->caller.organisation_id, id, &w, err) ||
        !server_audit(r, "data.export", id, err))
        return false;
    http_reply_attachment(r, reply, RT_STR("export.json"));
    return true;
}

static bool erase_user(http_request *r, http_reply *reply, rt_error *err)
{
    const rt_server_config *c = &r->server->config;
    rt_str actor = r->caller.key_id.len > 0 ? r->caller.key_id : r->caller.user_id;
    rt_erasure e;
    rt_json_writer w;
    if (!rt_engine_forget(c->engine, r->caller.organisation_id, http_param(r, "id"), err))
        return false;
    if (!rt_user_erase(c->store, c->shelf, r->caller.organisation_id, http_param(r, "id"), actor,
                       rt_wall_ms(), &r->arena, &e, err))
        return false;
    guard_keyring_forget(r->server->keyring); /* the user's keys went too */
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "receipt_id", e.receipt_id);
    rt_jw_kstr(&w, "user_hash", e.user_hash);
    rt_jw_ku64(&w, "executions", e.executions);
    rt_jw_ku64(&w, "artifacts", e.artifacts);
    rt_jw_ku64(&w, "sessions", e.sessions);
    rt_jw_ku64(&w, "audit_events", e.audit_events);
    rt_jw_ku64(&w, "snippets", e.snippets);
    rt_jw_ku64(&w, "files", e.files);
    rt_jw_ku64(&w, "links", e.links);
    rt_jw_kstr(&w, "organisation_id", r->caller.organisation_id);
    rt_jw_ku64(&w, "time_ms", e.time_ms);
    http_jw_time(&w, "time", e.time_ms);
    rt_jw_kstr(&w, "receipt_hash", e.receipt_hash);
    rt_jw_end(&w);
    return true;
}

static const http_member retention_members[] = {
    { "days", HTTP_NUMBER | HTTP_NULL, false },
    { "dry_run", HTTP_BOOL, false },
};

static bool apply_retention(http_request *r, http_reply *reply, rt_error *err)
{
    rt_json body;
    uint64_t days = r->server->config.retention_days;
    rt_retention done;
    rt_json_writer w;
    if (!http_object(r, retention_members, RT_COUNT(retention_members), &body, err) ||
        !http_member_u64(body, "days", 1, DAYS_MAX, &days, err))
        return false;
    bool is_dry_run = rt_json_bool(rt_json_get_c(body, "dry_run"), false);
    if (!rt_retention_apply(r->server->config.store, r->caller.organisation_id, (unsigned)days,
                            rt_wall_ms(), is_dry_run, &done, err) ||
        (!is_dry_run && !server_audit(r, "retention.apply", (rt_str){ 0 }, err)))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_ku64(&w, "days", days);
    rt_jw_kbool(&w, "dry_run", is_dry_run);
    rt_jw_ku64(&w, "executions", done.executions);
    rt_jw_ku64(&w, "audit_events", done.audit_events);
    rt_jw_ku64(&w, "artifacts", done.artifacts);
    rt_jw_ku64(&w, "sessions", done.sessions);
    rt_jw_end(&w);
    return true;
}

const http_operation api_people_rows[] = {
    { .method = "GET",
      .path = "/v1/users/{id}/export",
      .id = "exportUser",
      .tag = "People",
      .summary = "Everything on record about a user",
      .role = RT_ROLE_ADMIN,
      .action = "export a user's data",
      .responses = HTTP_RESPONSES({ 200, HTTP_ANY, "One object" }),
      .errors = "404 413",
      .handler = export_user },
    { .method = "DELETE",
      .path = "/v1/users/{id}/data",
      .id = "eraseUser",
      .tag = "People",
      .summary = "Erase a user's data",
      .about = "The chain of provenance stays verifiable; the receipt proves what was done.",
      .role = RT_ROLE_ADMIN,
      .action = "erase a user's data",
      .responses = HTTP_RESPONSES({ 200, "Erasure", "The receipt" }),
      .errors = "404",
      .handler = erase_user },
    { .method = "POST",
      .path = "/v1/retention",
      .id = "applyRetention",
      .tag = "People",
      .summary = "Blank what is too old",
      .role = RT_ROLE_ADMIN,
      .action = "apply retention",
      .request = "RetentionRequest",
      .responses = HTTP_RESPONSES({ 200, "Retention", "What was blanked, or would be" }),
      .flags = HTTP_OPTIONAL_BODY,
      .handler = apply_retention },
    { 0 },
};
