/* SPDX-License-Identifier: Apache-2.0 */
/*
 * validate.c - does the input fit its schema, and does the answer?
 *
 * A value that does not fit makes a run that failed: nothing is run for a wrong input, and a wrong
 * answer is not handed out. Both are on record, so that failures can be counted.
 */
#include "engine/engine_internal.h"

#define SCHEMA_BYTES_MAX (1u << 20)

static void refuse_value(passage *p, const char *name, const char *what,
                         const rt_schema_report *report)
{
    rt_outcome *o = &p->outcome;
    rt_str why = report->error_count ? report->errors[0].message : RT_STR("a limit was reached");
    p->has_invalid = true;
    o->status = RT_STATUS_FAILED;
    o->has_value = false;
    o->has_error = true;
    o->error = (rt_code_error){
        .type = RT_STR("ValidationError"),
        .name = rt_str_of(name),
        .message = rt_arena_printf(p->arena, "%s does not fit its schema: %.*s", what, RT_FMT(why)),
    };
}

/* A value against a schema; a schema that is none is the caller's mistake. */
static bool fits(passage *p, rt_json schema, const rt_schema *made, const char *member,
                 rt_json *value, rt_schema_report *report, bool *is_fitting, rt_error *err)
{
    rt_schema *own RT_CLEANUP(rt_schema_freep) = NULL;
    bool is_input = member[0] == 'i';
    report->arena = p->arena;
    if (!made && !rt_schema_new(schema, NULL, &own, err))
        return rt_wrap(err, "%s", member);
    const rt_schema *checker = made ? made : own;
    *is_fitting = rt_schema_check(checker, *value, report);
    if (*is_fitting && is_input && p->request->adds_defaults)
        return rt_schema_add_defaults(checker, *value, p->arena, value, err) ||
               rt_wrap(err, "the defaults of %s", member);
    return true;
}

static bool has_schema(rt_json schema, const rt_schema *made)
{
    return made || !rt_json_is_absent(schema);
}

/* What code sees instead of what was sent. */
static bool use_defaults(passage *p, rt_json value, rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf_init(&text, RT_JSON_SIZE_CEILING);
    rt_json_print(value, &text);
    p->input_json = value;
    p->input = rt_arena_str(p->arena, rt_buf_str(&text));
    return rt_buf_ok(&text, err);
}

bool engine_validate_input(passage *p, rt_error *err)
{
    const rt_request *r = p->request;
    rt_schema_report report = { 0 };
    rt_json value = r->input_json;
    bool is_fitting;
    bool has_input = has_schema(r->input_schema, r->input_checker);
    p->input = r->input;
    p->input_json = value;
    p->has_validation = has_input || has_schema(r->output_schema, r->output_checker);
    if (!has_input)
        return true;
    if (rt_json_is_absent(value) &&
        !rt_json_parse(r->has_input ? r->input : RT_STR("null"), p->arena, &value, err))
        return rt_wrap(err, "input");
    if (!fits(p, r->input_schema, r->input_checker, "input_schema", &value, &report, &is_fitting,
              err))
        return false;
    if (is_fitting && r->adds_defaults)
        return use_defaults(p, value, err);
    if (!is_fitting) {
        p->outcome = (rt_outcome){ .language = rt_str_of(p->language->name),
                                   .runtime = rt_str_of(p->engine->config.runtime->name),
                                   .is_parsed = true };
        refuse_value(p, "INPUT_VALIDATION_ERROR", "the input", &report);
    }
    return true;
}

bool engine_validate_output(passage *p, rt_error *err)
{
    const rt_request *r = p->request;
    rt_schema_report report = { 0 };
    rt_json value;
    bool is_fitting;
    if (!has_schema(r->output_schema, r->output_checker) || p->outcome.status != RT_STATUS_SUCCESS)
        return true;
    rt_str text = p->outcome.has_value ? p->outcome.value : RT_STR("null");
    if (!rt_json_parse(text, p->arena, &value, err) ||
        !fits(p, r->output_schema, r->output_checker, "output_schema", &value, &report, &is_fitting,
              err))
        return false;
    if (!is_fitting)
        refuse_value(p, "OUTPUT_VALIDATION_ERROR", "the answer", &report);
    return true;
}
