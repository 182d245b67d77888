/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reserve.c - a run that others must be able to find gets its row before it starts.
 *
 * That is every run with an idempotency key, every run nobody waits for, and every run that is
 * watched. The others are written once, when they have ended: one transaction instead of three.
 */
#include "engine/engine_internal.h"

#include <string.h>

/* What is known before the run; record.c adds how it ended. */
void engine_fill_row(const passage *p, rt_execution_row *row)
{
    const rt_request *r = p->request;
    const rt_engine *e = p->engine;
    *row = (rt_execution_row){
        .id = p->id,
        .organisation_id = r->caller.organisation_id,
        .workspace_id = r->caller.workspace_id,
        .user_id = engine_user(r),
        .key_id = r->caller.key_id,
        .actor_type = r->caller.actor_type,
        .agent_type = r->agent_type,
        .surface = r->surface,
        .session_id = r->session_id.len ? r->session_id : r->conversation,
        .tool_id = r->tool_id,
        .skill_name = r->skill_name,
        .skill_version = r->skill_version,
        .code_agent_id = r->code_agent_id,
        .code_agent_version = r->code_agent_version,
        .idempotency_key = r->idempotency_key,
        .request_hash = rt_str_of(p->request_hash),
        .host = e->config.host,
        .language = rt_str_of(p->language->name),
        .runtime = rt_str_of(e->config.runtime->name),
        .status = RT_STR("QUEUED"),
        .code_hash = rt_str_of(p->code_hash),
        .input_hash = rt_str_of(p->input_hash),
        .code_bytes = r->prelude.code.len + r->code.len,
        .input_bytes = r->input.len,
        .memory_limit_bytes = p->policy.memory_bytes,
        .timeout_ms = p->policy.wall_ms,
        .created_ms = p->created_ms,
    };
}

rt_str engine_answer_purpose(rt_str id, rt_arena *arena)
{
    return rt_arena_printf(arena, "answer:%.*s", RT_FMT(id));
}

static rt_status status_of(rt_str name)
{
    for (rt_status s = RT_STATUS_SUCCESS; s <= RT_STATUS_CANCELLED; s++)
        if (rt_str_eq_c(name, rt_status_name(s)))
            return s;
    return RT_STATUS_FAILED;
}

/* The answer itself cannot be had again (another node's key, or the run was lost): say what the
 * record knows. */
static rt_str answer_from_record(const rt_execution_row *row, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "id", row->id);
    rt_jw_kstr(&w, "status", row->status);
    rt_jw_kbool(&w, "success", rt_str_eq_c(row->status, "SUCCESS"));
    rt_jw_kstr(&w, "language", row->language);
    rt_jw_kstr(&w, "runtime", row->runtime);
    rt_jw_knull(&w, "result");
    rt_jw_kbool(&w, "parsed", true);
    rt_jw_kstr(&w, "stdout", RT_STR(""));
    rt_jw_kstr(&w, "stderr", RT_STR(""));
    rt_jw_ki64(&w, "exit_code", row->exit_code);
    rt_jw_kobject(&w, "error");
    rt_jw_kstr(&w, "type", row->error_type.len ? row->error_type : RT_STR("AnswerNotKept"));
    rt_jw_kstr(&w, "message",
               row->error_message.len
                   ? row->error_message
                   : RT_STR("this key was answered before, and the answer is no longer kept here; "
                            "the record has its hashes"));
    rt_jw_end(&w);
    rt_jw_kbool(&w, "cached", false);
    rt_jw_kbool(&w, "replayed", true);
    rt_jw_end(&w);
    return rt_arena_str(arena, rt_buf_str(&text));
}

static bool replay(passage *p, const rt_execution_row *taken, rt_error *err)
{
    const rt_engine *e = p->engine;
    rt_str purpose = engine_answer_purpose(taken->id, p->arena), text;
    if (!rt_str_eq_c(taken->request_hash, p->request_hash))
        return rt_fail(err, RT_CONFLICT,
                       "this idempotency key was used for another request (%.*s); use a new key",
                       RT_FMT(taken->id));
    if (rt_str_eq_c(taken->status, "QUEUED") || rt_str_eq_c(taken->status, "RUNNING"))
        return rt_fail(err, RT_CONFLICT,
                       "%.*s runs under this idempotency key; ask again when it has ended",
                       RT_FMT(taken->id));
    if (taken->answer.len == 0 ||
        !rt_vault_unseal(e->config.vault, purpose, taken->answer, p->arena, &text, NULL))
        text = answer_from_record(taken, p->arena);
    *p->answer = (rt_answer){
        .id = taken->id, .status = status_of(taken->status), .is_replayed = true, .json = text
    };
    p->is_answered = true;
    return true;
}

bool engine_reserve(passage *p, rt_error *err)
{
    const rt_request *r = p->request;
    rt_execution_row row, taken = { 0 };
    rt_error why = { 0 };
    if (!p->is_watched && r->idempotency_key.len == 0)
        return true;
    p->id = r->id.len ? r->id : rt_id_new("exec", p->arena);
    engine_fill_row(p, &row);
    if (rt_execution_reserve(p->engine->config.store, &row, p->arena, &taken, &why)) {
        p->is_reserved = true;
        return true;
    }
    if (why.code == RT_CONFLICT && taken.id.len > 0)
        return replay(p, &taken, err);
    *err = why;
    return rt_wrap(err, "reserve the execution");
}
