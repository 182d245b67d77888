/* SPDX-License-Identifier: Apache-2.0 */
/* patterns_view.c - see patterns_view.h. */
#include "server/patterns_view.h"

#include "server/http.h"

static void write_statistics(const rt_snippet *s, rt_json_writer *w)
{
    rt_jw_ku64(w, "usage_count", s->usage_count);
    rt_jw_ku64(w, "runs", s->runs);
    rt_jw_kdouble(w, "success_rate", s->success_rate);
    if (s->runs > 0) {
        rt_jw_kdouble(w, "average_ms", s->average_exec_ms);
        rt_jw_kdouble(w, "average_cost_usd", s->average_cost_usd);
    } else {
        rt_jw_knull(w, "average_ms");
        rt_jw_knull(w, "average_cost_usd");
    }
    http_jw_time(w, "last_used_at", s->last_used_ms);
}

void patterns_write(const rt_snippet *s, bool is_whole, rt_json_writer *w)
{
    bool is_chain = !rt_str_eq_c(s->steps, "[]");
    rt_jw_object(w);
    rt_jw_kstr(w, "id", s->id);
    rt_jw_kstr(w, "name", s->name);
    http_jw_text(w, "description", s->description);
    rt_jw_kstr(w, "category", s->category);
    rt_jw_kstr(w, "language", s->language);
    http_jw_raw(w, "tags", s->tags, RT_STR("[]"));
    rt_jw_kbool(w, "is_chain", is_chain);
    if (is_whole) {
        http_jw_text(w, "code", s->code);
        http_jw_raw(w, "steps", s->steps, RT_STR("[]"));
        http_jw_raw(w, "parameters", s->parameters, RT_STR("{}"));
        http_jw_text(w, "learned_from", s->learned_from);
        http_jw_text(w, "user_id", s->user_id);
        http_jw_time(w, "created_at", s->created_ms);
        http_jw_time(w, "updated_at", s->updated_ms);
    }
    write_statistics(s, w);
    rt_jw_end(w);
}

void patterns_write_run(rt_str name, const rt_pattern_answer *answer, rt_json_writer *w)
{
    rt_jw_kstr(w, "pattern", name);
    rt_jw_karray(w, "steps");
    for (size_t i = 0; i < answer->step_count; i++) {
        rt_jw_object(w);
        rt_jw_kstr(w, "pattern", answer->steps[i].name);
        rt_jw_kstr(w, "execution_id", answer->steps[i].execution_id);
        rt_jw_kstr(w, "status", rt_str_of(rt_status_name(answer->steps[i].status)));
        rt_jw_end(w);
    }
    rt_jw_end(w);
    rt_jw_kraw(w, "execution", answer->answer.json);
}
