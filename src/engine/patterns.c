/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patterns.c - patterns: what may be saved, and the samples everybody begins with.
 */
#include "engine/patterns.h"

#include "engine/engine_internal.h"

#define CODE_MAX       102400
#define TAGS_MAX       20
#define PARAMETERS_MAX (64u << 10)

/* ---- the samples ---- */

/* The compiler runs in the root of the tree. */
#define EMBED(symbol, name)                                                                        \
    __asm__(".pushsection .rodata\n"                                                               \
            "pattern_" #symbol "_about:\n.incbin \"patterns/" name ".json\"\n.byte 0\n"            \
            "pattern_" #symbol "_code:\n.incbin \"patterns/" name ".py\"\n.byte 0\n"               \
            ".popsection\n");                                                                      \
    extern const char pattern_##symbol##_about[] __attribute__((visibility("hidden")));            \
    extern const char pattern_##symbol##_code[] __attribute__((visibility("hidden")))

EMBED(payroll, "payroll-duplicate-detector");
EMBED(csv, "csv-analyzer");

static const struct {
    const char *about, *code;
} samples[] = { { pattern_payroll_about, pattern_payroll_code },
                { pattern_csv_about, pattern_csv_code } };

static rt_str json_text(rt_json value, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    if (rt_json_is_absent(value) || rt_json_type(value) == RT_JSON_NULL)
        return (rt_str){ 0 };
    rt_json_print(value, &text);
    return rt_arena_str(arena, rt_buf_str(&text));
}

static void fill(rt_json body, rt_str organisation_id, rt_arena *arena, rt_snippet *out)
{
    uint64_t now = rt_wall_ms();
    *out = (rt_snippet){ .id = rt_id_new("snippet", arena),
                         .organisation_id = organisation_id,
                         .name = rt_str_trim(rt_json_str(rt_json_get_c(body, "name"))),
                         .description = rt_json_str(rt_json_get_c(body, "description")),
                         .category = rt_json_str(rt_json_get_c(body, "category")),
                         .code = rt_json_str(rt_json_get_c(body, "code")),
                         .language = rt_json_str(rt_json_get_c(body, "language")),
                         .tags = json_text(rt_json_get_c(body, "tags"), arena),
                         .parameters = json_text(rt_json_get_c(body, "parameters"), arena),
                         .steps = json_text(rt_json_get_c(body, "steps"), arena),
                         .learned_from = rt_json_str(rt_json_get_c(body, "learned_from")),
                         .success_rate = 100,
                         .created_ms = now,
                         .updated_ms = now };
    if (out->language.len == 0)
        out->language = RT_STR("python");
}

/* The first time an organisation comes, it finds the samples. */
static bool welcome(rt_engine *e, rt_str organisation_id, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    bool is_new;
    if (!rt_snippet_welcome(e->config.store, organisation_id, &is_new, err))
        return false;
    for (size_t i = 0; is_new && i < RT_COUNT(samples); i++) {
        rt_snippet sample;
        rt_json about;
        rt_error taken = { 0 };
        if (!rt_json_parse(rt_str_of(samples[i].about), &arena, &about, err))
            return rt_wrap(err, "a sample pattern");
        fill(about, organisation_id, &arena, &sample);
        sample.code = rt_str_of(samples[i].code);
        if (!rt_snippet_add(e->config.store, &sample, false, &taken) && taken.code != RT_CONFLICT) {
            *err = taken;
            return false;
        }
    }
    return true;
}

/* ---- what may be saved ---- */

static bool check_kind(rt_json body, const char *name, rt_json_kind kind, const char *what,
                       rt_error *err)
{
    rt_json value = rt_json_get_c(body, name);
    return rt_json_type(value) <= RT_JSON_NULL || rt_json_type(value) == kind ||
           rt_fail(err, RT_INVALID, "'%s' must be %s, not %s", name, what,
                   rt_json_type_name(value));
}

static bool check_kinds(rt_json body, rt_error *err)
{
    static const char *const texts[] = { "name",     "description", "code",
                                         "language", "category",    "learned_from" };
    for (size_t i = 0; i < RT_COUNT(texts); i++)
        if (!check_kind(body, texts[i], RT_JSON_STRING, "a string", err))
            return false;
    return check_kind(body, "tags", RT_JSON_ARRAY, "an array of strings", err) &&
           check_kind(body, "steps", RT_JSON_ARRAY, "an array", err) &&
           check_kind(body, "parameters", RT_JSON_OBJECT, "a JSON Schema of an object", err);
}

static bool check_texts(const rt_snippet *s, rt_error *err)
{
    if (s->name.len == 0 || !rt_request_label(s->name) ||
        rt_utf8_length(s->name) > RT_PATTERN_NAME_MAX)
        return rt_fail(err, RT_INVALID,
                       "'name' must have 1 to %d characters, none of them a control character",
                       RT_PATTERN_NAME_MAX);
    if (!rt_request_label(s->category) || !rt_request_label(s->learned_from))
        return rt_fail(err, RT_INVALID, "'category' and 'learned_from' must be short texts");
    if (!rt_utf8_valid(s->description) || !rt_utf8_valid(s->code) ||
        (s->description.len && memchr(s->description.ptr, 0, s->description.len)) ||
        (s->code.len && memchr(s->code.ptr, 0, s->code.len)))
        return rt_fail(err, RT_INVALID, "'code' and 'description' must be text without NUL");
    if (s->code.len > CODE_MAX || s->description.len > CODE_MAX)
        return rt_fail(err, RT_LIMIT, "'code' has %zu bytes; at most %d can be kept", s->code.len,
                       CODE_MAX);
    if (!rt_language_find(s->language))
        return rt_language_unknown(s->language, err);
    return true;
}

static bool check_tags(rt_json tags, rt_error *err)
{
    rt_json_iter it = rt_json_each(tags);
    rt_json tag;
    if (rt_json_count(tags) > TAGS_MAX)
        return rt_fail(err, RT_INVALID, "a pattern has at most %d tags", TAGS_MAX);
    while (rt_json_next(&it, NULL, &tag))
        if (rt_json_type(tag) != RT_JSON_STRING || !rt_request_label(rt_json_str(tag)))
            return rt_fail(err, RT_INVALID, "'tags' must be short strings");
    return true;
}

static bool check_steps(rt_json steps, rt_error *err)
{
    rt_json_iter it = rt_json_each(steps);
    rt_json step;
    if (rt_json_count(steps) > RT_PATTERN_STEPS_MAX)
        return rt_fail(err, RT_INVALID, "a chain has at most %d steps", RT_PATTERN_STEPS_MAX);
    for (int i = 0; rt_json_next(&it, NULL, &step); i++) {
        rt_str name = rt_json_str(rt_json_get_c(step, "pattern"));
        rt_json_kind inputs = rt_json_type(rt_json_get_c(step, "inputs"));
        if (name.len == 0 || !rt_request_label(name) ||
            (inputs > RT_JSON_NULL && inputs != RT_JSON_OBJECT))
            return rt_fail(err, RT_INVALID,
                           "steps[%d] must be {\"pattern\": name, \"inputs\": {…}}", i);
    }
    return true;
}

static bool check_parameters(rt_json schema, rt_str text, rt_error *err)
{
    rt_schema *checker RT_CLEANUP(rt_schema_freep) = NULL;
    if (text.len == 0)
        return true;
    if (text.len > PARAMETERS_MAX)
        return rt_fail(err, RT_LIMIT, "'parameters' is longer than %u bytes", PARAMETERS_MAX);
    return rt_schema_new(schema, NULL, &checker, err) || rt_wrap(err, "parameters");
}

static bool check(rt_engine *e, rt_json body, const rt_snippet *s, rt_arena *arena, rt_error *err)
{
    rt_execution_row learned;
    bool has_steps = rt_json_count(rt_json_get_c(body, "steps")) > 0;
    if (!check_texts(s, err) || !check_tags(rt_json_get_c(body, "tags"), err) ||
        !check_steps(rt_json_get_c(body, "steps"), err) ||
        !check_parameters(rt_json_get_c(body, "parameters"), s->parameters, err))
        return false;
    if (has_steps == (rt_str_trim(s->code).len > 0))
        return rt_fail(err, RT_INVALID,
                       has_steps ? "a pattern has 'code' or 'steps', not both"
                                 : "'code' must be a text that is not blank");
    return s->learned_from.len == 0 ||
           rt_execution_get(e->config.store, s->organisation_id, s->learned_from, arena, &learned,
                            err) ||
           rt_wrap(err, "learned_from");
}

bool rt_pattern_save(rt_engine *e, const rt_caller *caller, rt_json body, bool is_replacing,
                     rt_arena *arena, rt_snippet *out, rt_error *err)
{
    rt_snippet s;
    if (rt_json_type(body) != RT_JSON_OBJECT)
        return rt_fail(err, RT_INVALID, "a pattern is an object with a name and code");
    if (!check_kinds(body, err))
        return false;
    fill(body, caller->organisation_id, arena, &s);
    s.user_id = caller->user_id;
    if (!check(e, body, &s, arena, err) || !welcome(e, s.organisation_id, err) ||
        !rt_snippet_add(e->config.store, &s, is_replacing, err))
        return false;
    return rt_snippet_find(e->config.store, s.organisation_id, s.name, arena, out, err);
}

/* ---- looking ---- */

bool rt_pattern_get(rt_engine *e, const rt_caller *caller, rt_str name, rt_arena *arena,
                    rt_snippet *out, rt_error *err)
{
    return welcome(e, caller->organisation_id, err) &&
           rt_snippet_take(e->config.store, caller->organisation_id, name, rt_wall_ms(), arena, out,
                           err);
}

bool rt_pattern_list(rt_engine *e, const rt_caller *caller, rt_str category, rt_str after,
                     unsigned limit, rt_arena *arena, rt_snippet **out, size_t *count,
                     rt_error *err)
{
    return welcome(e, caller->organisation_id, err) &&
           rt_snippet_list(e->config.store, caller->organisation_id, category, after, limit, arena,
                           out, count, err);
}

bool rt_pattern_remove(rt_engine *e, const rt_caller *caller, rt_str name, rt_error *err)
{
    return welcome(e, caller->organisation_id, err) &&
           rt_snippet_remove(e->config.store, caller->organisation_id, name, err);
}
