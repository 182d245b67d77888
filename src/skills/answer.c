/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer.c - what a call is answered with: the result, its log, its provenance.
 *
 * The shapes are those clients of the Code Executor Service know. On failure the result is null,
 * the output's hash empty and the version in the answer "unknown", as there; the record in the
 * store has the version.
 */
#include "skills/skills_internal.h"

#include <stdarg.h>
#include <stdio.h>

#define ANSWER_MAX (256u << 20)

void skills_log(skill_passage *p, const char *level, const char *fmt, ...)
{
    va_list args;
    if (p->log_count == SKILL_LOGS_MAX)
        return;
    va_start(args, fmt);
    p->logs[p->log_count++] = (skill_log){ .time_ms = rt_wall_ms(),
                                           .level = level,
                                           .message = rt_arena_vprintf(p->arena, fmt, args) };
    va_end(args);
}

rt_str skills_actor(const skill_passage *p)
{
    const rt_caller *c = p->call->caller;
    rt_str own = c->user_id.len ? c->user_id : c->key_id;
    return p->call->actor_id.len ? p->call->actor_id : own;
}

rt_str skills_actor_type(const skill_passage *p)
{
    return p->call->actor_type.len ? p->call->actor_type : p->call->caller->actor_type;
}

static void write_text(rt_json_writer *w, const char *key, rt_str text)
{
    if (text.len > 0)
        rt_jw_kstr(w, key, text);
    else
        rt_jw_knull(w, key);
}

static void write_time(rt_json_writer *w, const char *key, uint64_t time_ms)
{
    char text[RT_ISO8601_SIZE];
    rt_iso8601_write(text, time_ms);
    rt_jw_kstr(w, key, rt_str_of(text));
}

static void write_logs(const skill_passage *p, rt_json_writer *w)
{
    rt_jw_karray(w, "logs");
    for (size_t i = 0; i < p->log_count; i++) {
        rt_jw_object(w);
        write_time(w, "timestamp", p->logs[i].time_ms);
        rt_jw_kstr(w, "level", rt_str_of(p->logs[i].level));
        rt_jw_kstr(w, "message", p->logs[i].message);
        rt_jw_kraw(w, "context", p->logs[i].context.len ? p->logs[i].context : RT_STR("{}"));
        rt_jw_end(w);
    }
    rt_jw_end(w);
}

static void write_provenance(const skill_passage *p, rt_json_writer *w)
{
    bool is_good = p->error.len == 0;
    rt_jw_kobject(w, "provenance");
    rt_jw_kstr(w, "execution_id", p->id);
    rt_jw_kstr(w, "skill_name", p->skill ? p->skill->shown.name : p->call->skill);
    rt_jw_kstr(w, "skill_version", is_good ? p->skill->shown.version : RT_STR("unknown"));
    write_text(w, "actor_id", skills_actor(p));
    write_text(w, "actor_type", skills_actor_type(p));
    rt_jw_kstr(w, "inputs_hash", rt_str_of(p->inputs_hash));
    rt_jw_kstr(w, "outputs_hash", rt_str_of(p->outputs_hash));
    rt_jw_kraw(w, "tool_ids", p->tool_ids.len ? p->tool_ids : RT_STR("[]"));
    write_time(w, "timestamp", p->began_ms);
    rt_jw_kdouble(w, "execution_time_ms", p->elapsed_ms);
    rt_jw_kbool(w, "success", is_good);
    write_text(w, "error_message", p->error);
    rt_jw_end(w);
}

bool skills_write_answer(skill_passage *p, rt_skill_result *out, rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    bool is_good = p->error.len == 0;
    rt_buf_init(&text, ANSWER_MAX);
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "execution_id", p->id);
    rt_jw_kstr(&w, "skill", p->call->skill);
    rt_jw_kraw(&w, "result", is_good ? p->value : RT_STR("null"));
    write_logs(p, &w);
    rt_jw_kstr(&w, "inputs_hash", rt_str_of(p->inputs_hash));
    rt_jw_kstr(&w, "outputs_hash", rt_str_of(p->outputs_hash));
    write_provenance(p, &w);
    rt_jw_kdouble(&w, "execution_time_ms", p->elapsed_ms);
    rt_jw_kbool(&w, "success", is_good);
    if (p->call->request_id.len > 0)
        rt_jw_kstr(&w, "request_id", p->call->request_id);
    if (p->approval_id.len > 0)
        rt_jw_kstr(&w, "approval_id", p->approval_id);
    rt_jw_end(&w);
    if (!rt_buf_ok(&text, err))
        return rt_wrap(err, "the answer");
    *out = (rt_skill_result){ .is_success = is_good,
                              .execution_id = p->id,
                              .value = is_good ? p->value : (rt_str){ 0 },
                              .error_message = p->error,
                              .json = rt_arena_str(p->arena, rt_buf_str(&text)) };
    return true;
}
