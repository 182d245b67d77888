/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patterns.c - patterns of schemas, compiled once.
 *
 * Simple ones are matched by pattern_quick.c, the others by PCRE2 with its limits set: a pattern
 * that runs wild stops the check. PCRE2 wants some memory for each match; it comes from the run
 * itself, so that nothing is allocated and threads do not share it.
 */
#include "schema/pattern_quick.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>

struct schema_pattern {
    struct schema_pattern *next; /* of the same schema */
    rt_str text;
    pcre2_code *code; /* NULL: quick is enough */
    pcre2_match_context *limits;
    bool is_quick;
    quick_pattern quick;
};

enum { MATCH_HEAP_KIB = 8192 };

/*
 * PCRE2 wants lookbehinds of a fixed length, ECMA-262 does not: such a pattern is a good one that
 * we cannot match, and the error is RT_UNSUPPORTED.
 */
enum { LOOKBEHIND_NOT_FIXED = 125 };

static pcre2_code *compile(rt_str pattern, rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    if (!schema_pattern_translate(pattern, &text, err))
        return NULL;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (!context)
        rt_out_of_memory(sizeof(context));
    pcre2_set_compile_extra_options(context, PCRE2_EXTRA_ALLOW_SURROGATE_ESCAPES);
    int code;
    PCRE2_SIZE at;
    uint32_t options = PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_DOLLAR_ENDONLY |
                       PCRE2_MATCH_UNSET_BACKREF | PCRE2_NEVER_BACKSLASH_C;
    pcre2_code *found =
        pcre2_compile((PCRE2_SPTR)rt_buf_str(&text).ptr, text.len, options, &code, &at, context);
    pcre2_compile_context_free(context);
    if (!found) {
        PCRE2_UCHAR why[160] = { 0 };
        pcre2_get_error_message(code, why, sizeof(why));
        rt_fail(err, code == LOOKBEHIND_NOT_FIXED ? RT_UNSUPPORTED : RT_INVALID, "%.*s: %s",
                (int)RT_MIN(pattern.len, (size_t)80), pattern.ptr, (const char *)why);
    }
    return found;
}

static pcre2_match_context *make_limits(void)
{
    pcre2_match_context *limits = pcre2_match_context_create(NULL);
    if (!limits)
        rt_out_of_memory(sizeof(limits));
    pcre2_set_match_limit(limits, RT_SCHEMA_MATCH_STEPS);
    pcre2_set_depth_limit(limits, RT_SCHEMA_MATCH_STEPS);
    pcre2_set_heap_limit(limits, MATCH_HEAP_KIB);
    return limits;
}

static const schema_pattern *known(const rt_schema *schema, rt_str text)
{
    for (const schema_pattern *p = schema->patterns; p; p = p->next)
        if (rt_str_eq(p->text, text))
            return p;
    return NULL;
}

bool schema_pattern_new(rt_schema *schema, rt_str text, const schema_pattern **out, rt_error *err)
{
    if ((*out = known(schema, text)))
        return true;
    if (text.len > RT_SCHEMA_PATTERN_MAX)
        return rt_fail(err, RT_LIMIT, "a pattern is longer than %zu bytes", RT_SCHEMA_PATTERN_MAX);
    schema_pattern *pattern = rt_arena_alloc(&schema->arena, sizeof(*pattern));
    pattern->text = text;
    pattern->is_quick = schema_quick_read(text, &pattern->quick);
    if (!pattern->is_quick || pattern->quick.may_ask) {
        pattern->code = compile(text, err);
        if (!pattern->code)
            return false;
        /* Where no memory may be made executable, it is interpreted. */
        pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE);
        pattern->limits = make_limits();
    }
    pattern->next = schema->patterns;
    schema->patterns = pattern;
    *out = pattern;
    return true;
}

void schema_patterns_free(rt_schema *schema)
{
    for (schema_pattern *p = schema->patterns; p; p = p->next) {
        pcre2_code_free(p->code);
        pcre2_match_context_free(p->limits);
    }
    schema->patterns = NULL;
}

bool schema_pattern_is_valid(rt_str text)
{
    quick_pattern quick;
    if (text.len > RT_SCHEMA_PATTERN_MAX)
        return false;
    if (schema_quick_read(text, &quick))
        return true;
    rt_error err = { 0 };
    pcre2_code *code = compile(text, &err);
    pcre2_code_free(code);
    return code || err.code == RT_UNSUPPORTED;
}

/* -- Matching ---------------------------------------------------------------------------------- */

static void *run_alloc(PCRE2_SIZE size, void *data)
{
    schema_run *r = data;
    size_t rounded = (size + 15) & ~(size_t)15;
    if (rounded > MATCH_BYTES - r->match_used)
        return malloc(size);
    r->match_used += rounded;
    return r->match_memory + r->match_used - rounded;
}

static void run_free(void *memory, void *data)
{
    schema_run *r = data;
    char *at = memory;
    if (at < r->match_memory || at >= r->match_memory + MATCH_BYTES)
        free(memory);
}

static pcre2_match_data *match_data(schema_run *r)
{
    if (!r->match_data) {
        pcre2_general_context *own = pcre2_general_context_create(run_alloc, run_free, r);
        pcre2_match_data *data = own ? pcre2_match_data_create(1, own) : NULL;
        if (!data)
            rt_out_of_memory(MATCH_BYTES);
        pcre2_general_context_free(own);
        r->match_data = data;
    }
    return r->match_data;
}

void schema_pattern_run_done(schema_run *r)
{
    pcre2_match_data_free(r->match_data);
    r->match_data = NULL;
}

/* No match takes long, but there may be many. Time is asked for only now and then. */
static bool is_late(schema_run *r)
{
    enum { MATCHES_A_LOOK = 64 };
    if (r->match_count++ % MATCHES_A_LOOK)
        return false;
    uint64_t now = rt_now_ns();
    if (r->match_count == 1)
        r->match_began = now;
    return now - r->match_began > RT_SCHEMA_PATTERNS_MS * UINT64_C(1000000);
}

static bool ask_engine(schema_run *r, const schema_pattern *pattern, rt_str text)
{
    PCRE2_SPTR subject = (PCRE2_SPTR)(text.ptr ? text.ptr : "");
    pcre2_match_data *data = match_data(r);
    if (is_late(r))
        schema_run_stop(r, "time for patterns");
    if (r->stopped)
        return false;
    int rc =
        pcre2_match(pattern->code, subject, text.len, 0, PCRE2_NO_UTF_CHECK, data, pattern->limits);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(pattern->code, subject, text.len, 0, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                         data, pattern->limits);
    if (rc < 0 && rc != PCRE2_ERROR_NOMATCH)
        schema_run_stop(r, "steps of a pattern");
    return rc >= 0;
}

bool schema_pattern_matches(schema_run *r, const schema_pattern *pattern, rt_str text)
{
    quick_answer answer = pattern->is_quick ? schema_quick_match(&pattern->quick, text) : QUICK_ASK;
    return answer == QUICK_ASK ? ask_engine(r, pattern, text) : answer == QUICK_YES;
}
