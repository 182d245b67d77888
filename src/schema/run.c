/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - a unit looks at a value.
 *
 * A check runs twice at most: first only to know, which a good value passes without a byte of
 * memory; then, if somebody asks why, once more with a report to write into. With a report the
 * first failure does not end the run, but what alternatives miss is not written down.
 *
 * What must stay true: once `stopped` is set every unit fails at once, so the run unwinds; its
 * result then means nothing, whatever "not" made of it on the way.
 */
#include "schema/schema_internal.h"

#include <stdlib.h>

enum { STEPS_PER_NODE = 64 };

/* -- Limits and memory ------------------------------------------------------------------------- */

void schema_run_stop(schema_run *r, const char *limit)
{
    if (!r->stopped)
        r->stopped = limit;
}

bool schema_run_charge(schema_run *r, uint64_t steps)
{
    r->steps_left -= (int64_t)RT_MIN(steps, (uint64_t)INT64_MAX / 2);
    if (r->steps_left < 0)
        schema_run_stop(r, "steps");
    return !r->stopped;
}

uint64_t *schema_words_take(schema_run *r, size_t count)
{
    uint64_t *words = r->scratch + r->scratch_used;
    if (count > SCRATCH_WORDS - r->scratch_used) {
        words = malloc(count * sizeof(*words));
        if (!words)
            rt_out_of_memory(count * sizeof(*words));
    } else {
        r->scratch_used += count;
    }
    memset(words, 0, count * sizeof(*words));
    return words;
}

void schema_words_give(schema_run *r, uint64_t *words, size_t count)
{
    if (words >= r->scratch && words < r->scratch + SCRATCH_WORDS)
        r->scratch_used -= count;
    else
        free(words);
}

static schema_marks marks_take(schema_run *r, const node *v)
{
    size_t count = v->size / 64 + 1;
    return (schema_marks){ schema_words_take(r, count), count };
}

static void marks_give(schema_run *r, schema_marks *marks)
{
    schema_words_give(r, marks->bits, marks->word_count);
}

static void marks_add(schema_marks *to, const schema_marks *from)
{
    for (size_t i = 0; i < to->word_count; i++)
        to->bits[i] |= from->bits[i];
}

static void marks_add_all(schema_marks *to)
{
    memset(to->bits, 0xFF, to->word_count * sizeof(*to->bits));
}

/* -- Alternatives ------------------------------------------------------------------------------ */

bool schema_run_quietly(schema_run *r, const schema_unit *u, const node *v, schema_marks *marks)
{
    if (!(u->kinds & schema_kind_bit(v)))
        return false;
    rt_schema_report *report = r->report;
    r->report = NULL;
    bool ok = schema_run_unit(r, u, v, marks);
    r->report = report;
    return ok;
}

/* The bits of an object's keys, 0 for other values. */
static uint64_t keys_of(schema_run *r, const node *v)
{
    if (v->kind != RT_JSON_OBJECT)
        return 0;
    schema_keys *known = &r->keys[(uintptr_t)v / sizeof(*v) % KEYS_CACHED];
    if (known->object != v) {
        known->object = v;
        known->bits = 0;
        const node *end = rt_json_node_after(v);
        for (const node *at = v + 1; at < end; at = rt_json_node_after(at + 1))
            known->bits |= schema_key_bit(at->text, at->size);
    }
    return known->bits;
}

static inline bool may_pass(const schema_unit *u, const node *v, uint64_t keys)
{
    if (!(u->kinds & schema_kind_bit(v)))
        return false;
    return v->kind != RT_JSON_OBJECT || ((u->needs & ~keys) | (keys & ~u->allows)) == 0;
}

/* What a schema has marked counts only if the value passes it. */
static bool run_apart(schema_run *r, const schema_unit *u, const node *v, schema_marks *marks)
{
    if (!marks)
        return schema_run_quietly(r, u, v, NULL);
    schema_marks own = marks_take(r, v);
    bool ok = schema_run_quietly(r, u, v, &own);
    if (ok)
        marks_add(marks, &own);
    marks_give(r, &own);
    return ok;
}

static inline bool run_branch(schema_run *r, const schema_unit *u, const node *v, uint64_t keys,
                              schema_marks *marks)
{
    if (u->accepts & schema_kind_bit(v))
        return true;
    return may_pass(u, v, keys) && run_apart(r, u, v, marks);
}

/* If just one alternative is about such values at all, what it misses is worth telling. */
static const schema_unit *only_one(const schema_check *check, const node *v, uint64_t keys)
{
    const schema_unit *by_kind = NULL, *by_keys = NULL;
    size_t of_kind = 0, with_keys = 0;
    for (size_t i = 0; i < check->unit_count; i++) {
        const schema_unit *branch = check->units[i];
        if (!(branch->kinds & schema_kind_bit(v)))
            continue;
        of_kind++;
        by_kind = branch;
        if (may_pass(branch, v, keys)) {
            with_keys++;
            by_keys = branch;
        }
    }
    return of_kind == 1 ? by_kind : with_keys == 1 ? by_keys : NULL;
}

static __attribute__((noinline)) void explain_alternatives(schema_run *r, const schema_check *check,
                                                           const node *v)
{
    const schema_unit *only = r->report ? only_one(check, v, keys_of(r, v)) : NULL;
    if (only)
        schema_run_unit(r, only, v, NULL);
}

static bool run_any_of(schema_run *r, const schema_unit *u, const schema_check *check,
                       const node *v, schema_marks *marks)
{
    bool ok = false;
    uint64_t keys = keys_of(r, v);
    for (size_t i = 0; i < check->unit_count && (!ok || marks); i++)
        ok |= run_branch(r, check->units[i], v, keys, marks);
    if (!ok) {
        schema_miss(r, u, K_ANY_OF, v, NULL);
        explain_alternatives(r, check, v);
    }
    return ok;
}

static bool run_one_of(schema_run *r, const schema_unit *u, const schema_check *check,
                       const node *v, schema_marks *marks)
{
    size_t count = 0;
    const node *second = NULL;
    uint64_t keys = keys_of(r, v);
    for (size_t i = 0; i < check->unit_count && count < 2; i++)
        if (run_branch(r, check->units[i], v, keys, marks)) {
            count++;
            second = check->units[i]->source;
        }
    if (count == 1)
        return true;
    schema_miss(r, u, K_ONE_OF, v, count ? second : NULL);
    if (count == 0)
        explain_alternatives(r, check, v);
    return false;
}

static bool run_if(schema_run *r, const schema_check *check, const node *v, schema_marks *marks)
{
    bool is_met = run_apart(r, check->units[0], v, marks);
    const schema_unit *branch = check->units[is_met ? 1 : 2];
    return !branch || schema_run_unit(r, branch, v, marks);
}

/* -- Checks ------------------------------------------------------------------------------------ */

static bool is_in_enum(schema_run *r, const schema_check *check, const node *v)
{
    if (v->kind == RT_JSON_STRING)
        return schema_names_find(check->texts, v->text, v->size) >= 0;
    if (!schema_run_charge(r, check->value->size / 8))
        return false;
    const node *end = rt_json_node_after(check->value);
    for (const node *at = check->value + 1; at < end; at = rt_json_node_after(at))
        if (at->kind == v->kind && rt_json_equal((rt_json){ at }, (rt_json){ v }))
            return true;
    return false;
}

/* The outermost schema resource on the way here that has the anchor decides. */
static const schema_unit *dynamic_target(const schema_run *r, const schema_check *check)
{
    const schema_unit *target = check->units[0];
    for (const schema_scope *scope = r->scope; scope; scope = scope->outer) {
        const schema_anchor *a = r->schema->resources[scope->resource].anchors;
        for (; a; a = a->next)
            if (a->is_dynamic && a->unit && rt_str_eq(a->name, check->anchor))
                target = a->unit;
    }
    return target;
}

static bool run_other_check(schema_run *r, const schema_unit *u, const schema_check *check,
                            const node *v, schema_marks *marks)
{
    switch (check->op) {
    case OP_DYNAMIC:
        return schema_run_unit(r, dynamic_target(r, check), v, marks);
    case OP_ENUM:
        return is_in_enum(r, check, v) || schema_miss(r, u, K_ENUM, v, NULL);
    case OP_CONST:
        return rt_json_equal((rt_json){ check->value }, (rt_json){ v }) ||
               schema_miss(r, u, K_CONST, v, NULL);
    case OP_ONE_OF:
        return run_one_of(r, u, check, v, marks);
    case OP_NOT:
        return !schema_run_quietly(r, check->units[0], v, NULL) ||
               schema_miss(r, u, K_NOT, v, NULL);
    case OP_IF:
        return run_if(r, check, v, marks);
    default:
        return false;
    }
}

/* The two that most checks are; a jump through a table is often guessed wrong. */
static inline bool run_check(schema_run *r, const schema_unit *u, const schema_check *check,
                             const node *v, schema_marks *marks)
{
    if (check->op == OP_UNIT)
        return schema_run_unit(r, check->units[0], v, marks);
    if (check->op == OP_ANY_OF)
        return run_any_of(r, u, check, v, marks);
    return run_other_check(r, u, check, v, marks);
}

/* -- Units ------------------------------------------------------------------------------------- */

static bool run_a_number(schema_run *r, const schema_unit *u, const node *v)
{
    if (u->wants_integer && !rt_json_is_integer((rt_json){ v }))
        return schema_miss(r, u, K_TYPE, v, NULL);
    return !u->number || schema_run_number(r, u, v);
}

static inline bool run_kind(schema_run *r, const schema_unit *u, const node *v, schema_marks *marks)
{
    if (v->kind == RT_JSON_OBJECT)
        return !u->object || schema_run_object(r, u, v, marks);
    if (v->kind == RT_JSON_STRING)
        return !u->string || schema_run_string(r, u, v);
    if (v->kind == RT_JSON_ARRAY)
        return !u->array || schema_run_array(r, u, v, marks);
    return v->kind != RT_JSON_NUMBER || run_a_number(r, u, v);
}

static bool run_rules(schema_run *r, const schema_unit *u, const node *v, schema_marks *marks)
{
    bool ok = run_kind(r, u, v, marks);
    for (uint32_t i = 0; i < u->check_count && (ok || r->report); i++)
        ok &= run_check(r, u, &u->checks[i], v, marks);
    return ok;
}

/* What is left over after all schemas applied to the value have had their look. */
static bool run_unevaluated(schema_run *r, const schema_unit *u, const schema_unit *rest,
                            const node *v, const schema_marks *marks)
{
    bool ok = true;
    size_t i = 0, key = v->kind == RT_JSON_OBJECT;
    schema_keyword keyword = key ? K_UNEVALUATED_PROPERTIES : K_UNEVALUATED_ITEMS;
    const node *end = rt_json_node_after(v);
    for (const node *at = v + 1; at < end; at = rt_json_node_after(at + key), i++) {
        if (schema_is_marked(marks, i))
            continue;
        ok &= rest->kinds ? schema_run_child(r, rest, at + key) : schema_miss(r, u, keyword, v, at);
        if (!ok && !r->report)
            return false;
    }
    return ok;
}

static __attribute__((noinline)) bool run_tracked(schema_run *r, const schema_unit *u,
                                                  const schema_unit *rest, const node *v,
                                                  schema_marks *outer)
{
    schema_marks marks = marks_take(r, v);
    bool ok = run_rules(r, u, v, &marks);
    if (ok || r->report)
        ok &= run_unevaluated(r, u, rest, v, &marks);
    marks_give(r, &marks);
    if (ok && outer)
        marks_add_all(outer);
    return ok;
}

static inline bool run_unit_here(schema_run *r, const schema_unit *u, const node *v,
                                 schema_marks *marks)
{
    if (u->has_tracking && v->kind >= RT_JSON_ARRAY) {
        const schema_unit *rest =
            v->kind == RT_JSON_OBJECT ? u->unevaluated_properties : u->unevaluated_items;
        if (rest)
            return run_tracked(r, u, rest, v, marks);
    }
    return run_rules(r, u, v, marks);
}

static __attribute__((noinline)) bool run_in_scope(schema_run *r, const schema_unit *u,
                                                   const node *v, schema_marks *marks)
{
    schema_scope scope = { u->resource, r->scope };
    r->scope = &scope;
    bool ok = run_unit_here(r, u, v, marks);
    r->scope = scope.outer;
    return ok;
}

/* Says why, unless that takes a closer look at what the unit refers to. */
static __attribute__((noinline)) bool explain_kind(schema_run *r, const schema_unit *u,
                                                   const node *v)
{
    if (!(u->types & schema_kind_bit(v)))
        schema_miss(r, u, K_TYPE, v, NULL);
    else if (u->source->kind == RT_JSON_BOOL)
        schema_miss(r, u, K_FALSE, v, NULL);
    else
        return false;
    return true;
}

bool schema_run_unit(schema_run *r, const schema_unit *u, const node *v, schema_marks *marks)
{
    unsigned bit = schema_kind_bit(v);
    if (u->accepts & bit)
        return true;
    if (!(u->kinds & bit) && (!r->report || explain_kind(r, u, v)))
        return false;
    if (u->texts && v->kind == RT_JSON_STRING)
        return schema_names_find(u->texts, v->text, v->size) >= 0 ||
               schema_miss(r, u, K_ENUM, v, NULL);
    if (--r->steps_left < 0)
        schema_run_stop(r, "steps");
    if (r->depth >= RT_SCHEMA_DEPTH_MAX)
        schema_run_stop(r, "depth");
    if (r->stopped)
        return false;
    r->depth++;
    bool is_elsewhere = r->schema->has_dynamic && (!r->scope || r->scope->resource != u->resource);
    bool ok = is_elsewhere ? run_in_scope(r, u, v, marks) : run_unit_here(r, u, v, marks);
    r->depth--;
    return ok;
}

/* -- The door ---------------------------------------------------------------------------------- */

static bool run_once(const rt_schema *schema, rt_json value, rt_schema_report *report, rt_buf *text,
                     const char **stopped)
{
    uint64_t span = (uint64_t)(rt_json_node_after(value.node) - value.node);
    schema_run r;
    r.schema = schema;
    r.steps_left = (int64_t)RT_MIN(schema->max_steps + span * STEPS_PER_NODE, (uint64_t)INT64_MAX);
    r.depth = 0;
    r.stopped = NULL;
    r.scope = NULL;
    r.root = value.node;
    r.report = report;
    r.text = text;
    memset(r.keys, 0, sizeof(r.keys));
    r.scratch_used = 0;
    r.match_data = NULL;
    r.match_count = 0;
    r.match_used = 0;
    bool ok = schema_run_unit(&r, schema->root, value.node, NULL);
    if (r.stopped && report)
        schema_miss(&r, schema->root, K_LIMIT, value.node, NULL);
    if (r.match_data)
        schema_pattern_run_done(&r);
    *stopped = r.stopped;
    return ok && !r.stopped;
}

bool rt_schema_check(const rt_schema *schema, rt_json value, rt_schema_report *report)
{
    const char *stopped = NULL;
    if (report) {
        report->errors = NULL;
        report->error_count = 0;
        report->is_stopped = false;
    }
    static const node null_node = { .kind = RT_JSON_NULL };
    if (rt_json_is_absent(value))
        value.node = &null_node;
    if (run_once(schema, value, NULL, NULL, &stopped))
        return true;
    if (!report)
        return false;
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    run_once(schema, value, report, &text, &stopped);
    report->is_stopped = stopped != NULL;
    return false;
}
