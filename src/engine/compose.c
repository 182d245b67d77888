/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compose.c - the answer's text: what came out of the run, and what we know about it.
 */
#include "engine/engine_internal.h"

#define ANSWER_MAX (256u << 20)

static void write_pii(const passage *p, rt_json_writer *w)
{
    rt_privacy_report both = p->pii_in;
    if (p->privacy.mode == RT_PRIVACY_OFF)
        return;
    for (size_t i = 0; i < RT_PII_MAX; i++)
        both.counts[i] += p->pii_out.counts[i];
    both.total += p->pii_out.total;
    rt_jw_kobject(w, "pii");
    rt_jw_ku64(w, "input", p->pii_in.total);
    rt_jw_ku64(w, "output", p->pii_out.total);
    rt_jw_key(w, RT_STR("types"));
    rt_privacy_report_write(&both, RT_PII_CAMEL, p->scan.patterns, w);
    rt_jw_end(w);
}

static void write_calls(const passage *p, rt_json_writer *w)
{
    const engine_desk_report *c = &p->calls;
    if (c->calls == 0)
        return;
    rt_jw_kobject(w, "tools");
    rt_jw_ku64(w, "calls", c->calls);
    rt_jw_ku64(w, "failures", c->failures);
    rt_jw_ku64(w, "bytesIn", c->bytes_in);
    rt_jw_ku64(w, "bytesOut", c->bytes_out);
    rt_jw_end(w);
    rt_jw_kraw(w, "tool_ids", c->ids);
}

bool engine_compose(passage *p, rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_buf_init(&text, ANSWER_MAX);
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_outcome_write_members(&p->outcome, &w);
    if (p->handles.len > 0)
        rt_jw_kraw(&w, "handles", p->handles);
    if (p->request->session_id.len > 0)
        rt_jw_kstr(&w, "session_id", p->request->session_id);
    write_pii(p, &w);
    write_calls(p, &w);
    if (p->route.runtime) {
        rt_jw_key(&w, RT_STR("route"));
        rt_route_write(&p->route, &w);
    }
    rt_jw_kobject(&w, "cost");
    rt_jw_ku64(&w, "tokens", p->tokens);
    rt_jw_kdouble(&w, "usd", p->cost_usd);
    rt_jw_ku64(&w, "tokensSaved", p->tokens_saved);
    rt_jw_end(&w);
    rt_jw_kobject(&w, "hashes");
    rt_jw_kstr(&w, "code", rt_str_of(p->code_hash));
    rt_jw_kstr(&w, "input", rt_str_of(p->input_hash));
    rt_jw_kstr(&w, "output", rt_str_of(p->output_hash));
    if (p->calls.calls > 0)
        rt_jw_kstr(&w, "transcript", rt_str_of(p->calls.transcript_hash));

    rt_jw_end(&w);
    rt_jw_kdouble(&w, "queueMs", (double)p->queue_wait_us / 1000.0);
    rt_jw_kbool(&w, "cached", false); /* last: ENGINE_FRESH_END */
    rt_jw_end(&w);
    if (!rt_buf_ok(&text, err))
        return rt_wrap(err, "the answer");
    *p->answer = (rt_answer){ .id = p->id,
                              .status = p->outcome.status,
                              .json = rt_arena_str(p->arena, rt_buf_str(&text)) };
    return true;
}
