/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - the run itself: what the stages before found out becomes an rt_run.
 */
#include "engine/desk.h"

bool engine_tell_output(passage *p, int stream, rt_str text)
{
    rt_buf json RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &json);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "text", text);
    rt_jw_end(&w);
    return engine_tell(p, stream == 1 ? "stdout" : "stderr", rt_buf_str(&json));
}

static bool take_output(void *ctx, int stream, rt_str text)
{
    return engine_tell_output(ctx, stream, text);
}

static bool tell_start(passage *p)
{
    rt_str json = rt_arena_printf(p->arena, "{\"id\":\"%.*s\"}", RT_FMT(p->id));
    return engine_tell(p, "started", json);
}

/* WasmEdge itself, where somebody wants it and it is installed. */
static rt_str language_for(const passage *p)
{
    const rt_language *edge = rt_language_find(RT_STR("wasmedge"));
    bool is_wanted = strcmp(p->route.name, "wasmedge") == 0;
    bool is_there = is_wanted && edge && rt_language_mark(edge, p->arena).len > 0;
    return rt_str_of(is_there ? edge->name : p->language->name);
}

bool engine_run(passage *p, rt_error *err)
{
    const rt_request *r = p->request;
    bool is_heard = r->on_event && p->privacy.mode == RT_PRIVACY_OFF; /* else see protect.c */
    rt_run run = { .code = r->code,
                   .prelude = r->prelude,
                   .name = r->name,
                   .policy = &p->policy,
                   .input = p->input,
                   .has_input = r->has_input,
                   .is_input_text = r->is_input_text,
                   .stdin_data = p->stdin_data,
                   .live = p->session.live,
                   .canceller = p->canceller,
                   .on_output = is_heard ? take_output : NULL,
                   .output_ctx = p };
    if (p->has_invalid) {
        p->has_outcome = true;
        p->outcome.id = p->id;
        return true; /* the input does not fit: nothing is run for it */
    }
    if (!engine_route(p, err))
        return false;
    rt_runtime *runtime = p->route.runtime;
    run.language = language_for(p);
    if (!tell_start(p))
        return rt_fail(err, RT_CANCELLED, "nobody listens any more");
    run.desk = engine_desk_open(p);
    bool ok = runtime->execute(runtime, &run, p->arena, &p->outcome, err);
    engine_desk_close(run.desk, p->arena, &p->calls);
    if (!ok)
        return false;
    p->has_outcome = true;
    p->outcome.id = p->id;
    rt_router_note(p->engine->router, &p->route, rt_str_of(p->code_hash), p->outcome.wall_us,
                   p->outcome.status == RT_STATUS_SUCCESS);
    return true;
}
