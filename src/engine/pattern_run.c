/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern_run.c - a pattern is run, or a chain of them, and its statistics move.
 *
 * What its caller got wrong (inputs that do not fit) says nothing about a pattern and is not
 * counted. A chain stops at the first step that fails; its own count is of the whole.
 */
#include "engine/patterns.h"

#include "engine/engine_internal.h"

#define REFERENCE_DEPTH 32

typedef struct running_pattern {
    rt_engine *engine;
    const rt_request *base;
    const rt_pattern_run *run;
    rt_arena *arena;
    rt_json inputs;       /* of the pattern or chain */
    rt_json previous;     /* what the step before answered */
    double total_ms, usd; /* of the steps so far */
    bool is_counted;      /* the last run tells something about its pattern */
    bool is_followed;     /* by another step, which its answer must be small enough for */
} running_pattern;

/* ---- one pattern ---- */

static bool add_defaults(const rt_snippet *s, rt_arena *arena, rt_json *schema, rt_json *inputs,
                         rt_error *err)
{
    rt_schema *checker RT_CLEANUP(rt_schema_freep) = NULL;
    return (rt_json_parse(s->parameters, arena, schema, err) &&
            rt_schema_new(*schema, NULL, &checker, err) &&
            rt_schema_add_defaults(checker, *inputs, arena, inputs, err)) ||
           rt_wrap(err, "parameters of %.*s", RT_FMT(s->name));
}

static double number_at(rt_json object, const char *outer, const char *inner)
{
    double number = 0;
    rt_json_double(rt_json_get_c(rt_json_get_c(object, outer), inner), &number);
    return number;
}

static bool has_result_handle(rt_json answer)
{
    rt_json_iter it = rt_json_each(rt_json_get_c(answer, "handles"));
    rt_json handle;
    while (rt_json_next(&it, NULL, &handle))
        if (rt_str_eq_c(rt_json_str(rt_json_get_c(handle, "kind")), "result"))
            return true;
    return false;
}

/* What it returned, or what it printed when that is JSON. */
static rt_json value_of(rt_json answer, rt_arena *arena)
{
    rt_json value = rt_json_get_c(answer, "result"), printed;
    rt_str text = rt_str_trim(rt_json_str(rt_json_get_c(answer, "stdout")));
    if (rt_json_type(value) <= RT_JSON_NULL && text.len > 0 &&
        rt_json_parse(text, arena, &printed, NULL))
        return printed;
    return value;
}

static bool take_answer(running_pattern *r, const rt_snippet *s, const rt_answer *answer,
                        rt_error *err)
{
    rt_json doc;
    rt_error lost = { 0 };
    if (!rt_json_parse(answer->json, r->arena, &doc, err))
        return rt_wrap(err, "the answer of %.*s", RT_FMT(s->name));
    rt_str why = rt_json_str(rt_json_get_c(rt_json_get_c(doc, "error"), "name"));
    double ms = number_at(doc, "metrics", "executionTimeMs"), usd = number_at(doc, "cost", "usd");
    r->is_counted = !rt_str_eq_c(why, "INPUT_VALIDATION_ERROR") &&
                    answer->status != RT_STATUS_CANCELLED && !answer->is_replayed;
    if (r->is_counted &&
        !rt_snippet_ran(r->engine->config.store, s->organisation_id, s->name,
                        answer->status == RT_STATUS_SUCCESS, ms, usd, rt_wall_ms(), &lost))
        rt_log(RT_LOG_WARN, "a run of a pattern is not counted: %s", lost.text);
    r->total_ms += ms;
    r->usd += usd;
    r->previous = value_of(doc, r->arena);
    return !r->is_followed || !has_result_handle(doc) ||
           rt_fail(err, RT_LIMIT, "what %.*s answers is too large for the next step",
                   RT_FMT(s->name));
}

static bool run_one(running_pattern *r, const rt_snippet *s, rt_json inputs, rt_answer *out,
                    rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_request request = *r->base;
    rt_json schema;
    if (!add_defaults(s, r->arena, &schema, &inputs, err))
        return false;
    rt_buf_init(&text, RT_JSON_SIZE_CEILING);
    rt_json_print(inputs, &text);
    if (!rt_buf_ok(&text, err))
        return false;
    request.code = s->code;
    request.language = s->language;
    request.name = s->name;
    request.input = rt_arena_str(r->arena, rt_buf_str(&text));
    request.input_json = inputs;
    request.has_input = true;
    request.is_input_text = false;
    request.input_schema = schema;
    return r->run->execute ? r->run->execute(r->run->ctx, &request, out, err)
                           : rt_engine_execute(r->engine, &request, r->arena, out, err);
}

/* ---- references ---- */

/* "$previous.rows.0": the value there, absent when there is none. */
static rt_json look_up(rt_json from, rt_str path)
{
    rt_str step;
    while (path.len > 0 && rt_str_cut(&path, '.', &step)) {
        uint64_t i;
        from = rt_json_type(from) == RT_JSON_ARRAY && rt_str_to_u64(step, &i)
                   ? rt_json_at(from, i)
                   : rt_json_get(from, step);
    }
    return from;
}

static bool is_reference(rt_str text, rt_str name, rt_str *path)
{
    if (!rt_str_starts(text, name))
        return false;
    *path = rt_str_slice(text, name.len, text.len);
    if (path->len > 0 && path->ptr[0] != '.')
        return false;
    *path = rt_str_slice(*path, 1, path->len);
    return true;
}

static void write_text(const running_pattern *r, rt_str text, rt_json_writer *w)
{
    rt_str path;
    if (is_reference(text, RT_STR("$inputs"), &path))
        rt_jw_json(w, look_up(r->inputs, path));
    else if (is_reference(text, RT_STR("$previous"), &path))
        rt_jw_json(w, look_up(r->previous, path));
    else /* "$$" is a dollar */
        rt_jw_str(w, rt_str_starts(text, RT_STR("$$")) ? rt_str_slice(text, 1, text.len) : text);
}

static void write_filled(const running_pattern *r, rt_json value, unsigned depth, rt_json_writer *w)
{
    rt_json_kind kind = rt_json_type(value);
    rt_json_iter it = rt_json_each(value);
    rt_str key;
    rt_json item;
    if (kind == RT_JSON_STRING) {
        write_text(r, rt_json_str(value), w);
    } else if ((kind != RT_JSON_OBJECT && kind != RT_JSON_ARRAY) || depth == REFERENCE_DEPTH) {
        rt_jw_json(w, value);
    } else {
        kind == RT_JSON_OBJECT ? rt_jw_object(w) : rt_jw_array(w);
        while (rt_json_next(&it, &key, &item)) {
            if (kind == RT_JSON_OBJECT)
                rt_jw_key(w, key);
            write_filled(r, item, depth + 1, w);
        }
        rt_jw_end(w);
    }
}

/* Without inputs of its own a step gets the chain's, or what the step before it answered. */
static bool step_inputs(const running_pattern *r, rt_json step, bool is_first, rt_json *out,
                        rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json given = rt_json_get_c(step, "inputs");
    rt_json_writer w;
    if (rt_json_type(given) <= RT_JSON_NULL && is_first) {
        *out = r->inputs;
        return true;
    }
    rt_buf_init(&text, RT_JSON_SIZE_CEILING);
    rt_json_begin(&w, &text);
    if (rt_json_type(given) == RT_JSON_OBJECT) {
        write_filled(r, given, 0, &w);
    } else if (rt_json_type(r->previous) == RT_JSON_OBJECT) {
        rt_jw_json(&w, r->previous);
    } else {
        rt_jw_object(&w);
        rt_jw_kjson(&w, "value", r->previous);
        rt_jw_end(&w);
    }
    return rt_buf_ok(&text, err) && rt_json_parse(rt_buf_str(&text), r->arena, out, err);
}

/* ---- a chain ---- */

static bool run_step(running_pattern *r, rt_json step, rt_pattern_answer *out, rt_error *err)
{
    rt_snippet s;
    rt_json inputs;
    rt_str name = rt_json_str(rt_json_get_c(step, "pattern"));
    if (!rt_pattern_get(r->engine, &r->base->caller, name, r->arena, &s, err))
        return false;
    if (!rt_str_eq_c(s.steps, "[]"))
        return rt_fail(err, RT_INVALID, "'%.*s' is a chain itself; a step must have code",
                       RT_FMT(name));
    if (!step_inputs(r, step, out->step_count == 0, &inputs, err) ||
        !run_one(r, &s, inputs, &out->answer, err))
        return false;
    out->steps[out->step_count++] = (rt_pattern_step){ .name = s.name,
                                                       .execution_id = out->answer.id,
                                                       .status = out->answer.status };
    return take_answer(r, &s, &out->answer, err);
}

static bool run_chain(running_pattern *r, const rt_snippet *chain, rt_pattern_answer *out,
                      rt_error *err)
{
    rt_json schema, steps, step;
    rt_error lost = { 0 };
    if (!rt_json_parse(chain->steps, r->arena, &steps, err) ||
        !add_defaults(chain, r->arena, &schema, &r->inputs, err))
        return false;
    rt_json_iter it = rt_json_each(steps);
    size_t count = RT_MIN(rt_json_count(steps), (size_t)RT_PATTERN_STEPS_MAX);
    while (out->step_count < count && rt_json_next(&it, NULL, &step)) {
        r->is_followed = out->step_count + 1 < count;
        if (!run_step(r, step, out, err))
            return rt_wrap(err, "step %zu", out->step_count + 1);
        if (out->answer.status != RT_STATUS_SUCCESS)
            break;
    }
    if (r->is_counted && !rt_snippet_ran(r->engine->config.store, chain->organisation_id,
                                         chain->name, out->answer.status == RT_STATUS_SUCCESS,
                                         r->total_ms, r->usd, rt_wall_ms(), &lost))
        rt_log(RT_LOG_WARN, "a run of a chain is not counted: %s", lost.text);
    return true;
}

bool rt_pattern_execute(rt_engine *engine, const rt_request *request, const rt_pattern_run *run,
                        rt_arena *arena, rt_pattern_answer *out, rt_error *err)
{
    rt_snippet s;
    rt_json_kind kind = rt_json_type(run->inputs);
    running_pattern r = {
        .engine = engine, .base = request, .run = run, .arena = arena, .inputs = run->inputs
    };
    *out = (rt_pattern_answer){ 0 };
    if (kind > RT_JSON_NULL && kind != RT_JSON_OBJECT)
        return rt_fail(err, RT_INVALID, "'inputs' must be an object");
    if (kind <= RT_JSON_NULL && !rt_json_parse(RT_STR("{}"), arena, &r.inputs, err))
        return false;
    if (!rt_pattern_get(engine, &request->caller, run->name, arena, &s, err))
        return false;
    if (!rt_str_eq_c(s.steps, "[]"))
        return run_chain(&r, &s, out, err);
    return run_one(&r, &s, r.inputs, &out->answer, err) && take_answer(&r, &s, &out->answer, err);
}
