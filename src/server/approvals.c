/* SPDX-License-Identifier: Apache-2.0 */
/*
 * approvals.c - see approvals.h. The operator sees every organisation's, others their own.
 */
#include "server/approvals.h"

#include "server/http.h"

static rt_str scope_of(const rt_caller *caller)
{
    return caller->role >= RT_ROLE_OWNER ? RT_STR("") : caller->organisation_id;
}

static void write_arguments(const rt_server_config *config, const rt_approval_row *row,
                            rt_arena *arena, rt_json_writer *w)
{
    rt_str arguments = rt_engine_arguments(config->engine, row, arena);
    rt_json shown;
    if (rt_json_parse(arguments, arena, &shown, NULL))
        rt_jw_kjson(w, "arguments", shown);
}

void approvals_write(const rt_server_config *config, const rt_caller *caller,
                     const rt_approval_row *row, rt_arena *arena, rt_json_writer *w)
{
    bool is_asker = row->user_id.len > 0 && rt_str_eq(row->user_id, caller->user_id) &&
                    rt_str_eq(row->organisation_id, caller->organisation_id);
    rt_jw_object(w);
    rt_jw_kstr(w, "id", row->id);
    rt_jw_kstr(w, "operation", row->operation);
    rt_jw_kstr(w, "status", row->status);
    rt_jw_kstr(w, "priority", row->priority.len > 0 ? row->priority : RT_STR("normal"));
    http_jw_text(w, "reason", row->reason);
    http_jw_text(w, "execution_id", row->execution_id);
    http_jw_text(w, "session_id", row->session_id);
    http_jw_text(w, "user_id", row->user_id);
    if (caller->role >= RT_ROLE_ADMIN || is_asker)
        write_arguments(config, row, arena, w);
    http_jw_time(w, "created_at", row->created_ms);
    http_jw_time(w, "expires_at", row->expires_ms);
    http_jw_time(w, "decided_at", row->decided_ms);
    http_jw_text(w, "decided_by", row->decided_by);
    http_jw_text(w, "comment", row->comment);
    rt_jw_end(w);
}

bool approvals_list(const rt_server_config *config, const rt_caller *caller, rt_str status,
                    unsigned limit, rt_arena *arena, rt_approval_row **rows, size_t *count,
                    rt_error *err)
{
    uint64_t expired;
    return rt_approval_expire(config->store, rt_wall_ms(), &expired, err) &&
           rt_approval_list(config->store, scope_of(caller), status, limit, arena, rows, count,
                            err);
}

bool approvals_decide(const rt_server_config *config, const rt_caller *caller, rt_str id,
                      bool is_approved, rt_str comment, rt_arena *arena, rt_approval_row *out,
                      rt_error *err)
{
    if (comment.len > APPROVALS_COMMENT_MAX || !rt_utf8_valid(comment) ||
        (comment.len && memchr(comment.ptr, 0, comment.len)))
        return rt_fail(err, RT_INVALID, "the comment must be text of at most %d bytes",
                       APPROVALS_COMMENT_MAX);
    return rt_engine_decide(config->engine, caller, id, is_approved, comment, arena, out, err);
}
