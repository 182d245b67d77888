/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_object.c - the members of an object, one after another.
 *
 * The order is the value's: each key is looked up in the schema's table, and each required one
 * ticks a bit. Of duplicate keys the last counts, so a member that fails is forgiven when the same
 * key comes again; looking for that costs good values nothing.
 */
#include "schema/schema_internal.h"

static bool comes_again(const node *member, const node *end)
{
    rt_str key = rt_json_node_text(member);
    for (const node *at = rt_json_node_after(member + 1); at < end; at = rt_json_node_after(at + 1))
        if (rt_str_eq(rt_json_node_text(at), key))
            return true;
    return false;
}

/* -- How many ---------------------------------------------------------------------------------- */

/* Different keys, but no more than `enough` are counted. */
static uint64_t count_keys(schema_run *r, const node *v, uint64_t enough)
{
    uint64_t count = 0;
    const node *end = rt_json_node_after(v);
    for (const node *at = v + 1; at < end && count < enough; at = rt_json_node_after(at + 1)) {
        bool is_new = true;
        uint64_t seen = 0;
        for (const node *before = v + 1; before < at && is_new;
             before = rt_json_node_after(before + 1), seen++)
            is_new = !rt_str_eq(rt_json_node_text(before), rt_json_node_text(at));
        if (!schema_run_charge(r, seen / 8))
            return count;
        count += is_new;
    }
    return count;
}

static bool run_counts(schema_run *r, const schema_unit *u, const node *v)
{
    const schema_object_rules *rules = u->object;
    bool ok = true;
    if (rules->min > 0 &&
        (v->size < rules->min || (rules->min > 1 && count_keys(r, v, rules->min) < rules->min)))
        ok = schema_miss(r, u, K_MIN_PROPERTIES, v, NULL);
    if (v->size > rules->max && count_keys(r, v, rules->max + 1) > rules->max)
        ok = schema_miss(r, u, K_MAX_PROPERTIES, v, NULL);
    return ok;
}

static bool is_all_there(const schema_object_rules *rules, const uint64_t *seen)
{
    if (rules->required_count <= 64)
        return (*seen & rules->required_mask) == rules->required_mask;
    for (uint32_t i = 0; i < rules->required_count; i++)
        if (!(seen[i / 64] >> i % 64 & 1))
            return false;
    return true;
}

/* -- Members ----------------------------------------------------------------------------------- */

static bool run_property_name(schema_run *r, const schema_unit *u, const node *v, const node *key)
{
    const schema_unit *names = u->object->property_names;
    if (schema_run_quietly(r, names, key, NULL))
        return true;
    return schema_miss(r, u, K_PROPERTY_NAMES, v, key);
}

static bool run_patterns(schema_run *r, const schema_unit *u, const node *member, bool *is_known)
{
    bool ok = true;
    for (size_t i = 0; i < u->object->pattern_count; i++) {
        const schema_pattern_property *p = &u->object->patterns[i];
        if (!schema_pattern_matches(r, p->pattern, rt_json_node_text(member)))
            continue;
        *is_known = true;
        ok &= schema_run_child(r, p->unit, member + 1);
    }
    return ok;
}

static bool run_additional(schema_run *r, const schema_unit *u, const node *v, const node *member)
{
    const schema_unit *additional = u->object->additional;
    if (!additional->kinds)
        return schema_miss(r, u, u->object->additional_keyword, v, member);
    return schema_run_child(r, additional, member + 1);
}

static bool run_member(schema_run *r, const schema_unit *u, const node *v, const node *member,
                       uint64_t *seen, bool *is_evaluated)
{
    const schema_object_rules *rules = u->object;
    bool ok = true, is_known = false;
    int32_t found =
        rules->has_names ? schema_names_find(&rules->names, member->text, member->size) : -1;
    if (found >= 0) {
        const schema_property *property = &rules->properties[found];
        if (property->required >= 0)
            seen[property->required / 64] |= UINT64_C(1) << property->required % 64;
        if (property->unit) {
            is_known = true;
            ok = schema_run_child(r, property->unit, member + 1);
        }
    }
    if (!rules->is_plain) {
        ok &= !rules->property_names || run_property_name(r, u, v, member);
        ok &= run_patterns(r, u, member, &is_known);
    }
    if (!is_known && rules->additional) {
        ok &= run_additional(r, u, v, member);
        is_known = true;
    }
    *is_evaluated = is_known;
    return ok;
}

static bool run_members(schema_run *r, const schema_unit *u, const node *v, schema_marks *marks,
                        uint64_t *seen)
{
    bool ok = true, is_evaluated;
    size_t i = 0;
    const node *end = rt_json_node_after(v);
    for (const node *at = v + 1; at < end; at = rt_json_node_after(at + 1), i++) {
        size_t errors = r->report ? r->report->error_count : 0;
        if (!run_member(r, u, v, at, seen, &is_evaluated)) {
            if (!comes_again(at, end)) {
                ok = false;
                if (!r->report)
                    return false;
            } else if (r->report) {
                r->report->error_count = errors;
            }
        }
        if (is_evaluated)
            schema_mark(marks, i);
    }
    return ok;
}

/*
 * The same without a report, for objects whose members are only looked up by name. What can be
 * decided at a glance comes first: names, scalars, and what is missing; most of the alternatives
 * that do not fit fail there. Members with members of their own wait for the end.
 */
enum { WAITING_MAX = 8 };

typedef struct waiting {
    const node *member;
    const schema_unit *unit;
} waiting;

static bool run_waiting(schema_run *r, const waiting *list, size_t count, const node *end)
{
    for (size_t i = 0; i < count; i++)
        if (!schema_run_unit(r, list[i].unit, list[i].member + 1, NULL) &&
            !comes_again(list[i].member, end))
            return false;
    return true;
}

static bool run_plain_members(schema_run *r, const schema_unit *u, const node *v,
                              schema_marks *marks, uint64_t *seen)
{
    const schema_object_rules *rules = u->object;
    waiting list[WAITING_MAX];
    size_t count = 0, i = 0;
    const node *end = rt_json_node_after(v);
    for (const node *at = v + 1; at < end; at = rt_json_node_after(at + 1), i++) {
        const schema_unit *unit = NULL;
        int32_t found =
            rules->has_names ? schema_names_find(&rules->names, at->text, at->size) : -1;
        if (found >= 0) {
            const schema_property *property = &rules->properties[found];
            unit = property->unit;
            if (property->required >= 0)
                seen[property->required / 64] |= UINT64_C(1) << property->required % 64;
        }
        if (!unit && !(unit = rules->additional))
            continue;
        schema_mark(marks, i);
        unsigned bit = schema_kind_bit(at + 1);
        if (unit->accepts & bit)
            continue;
        bool can_wait = at[1].kind >= RT_JSON_ARRAY && count < WAITING_MAX && unit->kinds & bit;
        if (can_wait)
            list[count++] = (waiting){ at, unit };
        else if (!schema_run_unit(r, unit, at + 1, NULL) && !comes_again(at, end))
            return false;
    }
    return is_all_there(rules, seen) && run_waiting(r, list, count, end);
}

/* -- What must be there ------------------------------------------------------------------------ */

static bool report_missing(schema_run *r, const schema_unit *u, const node *v)
{
    if (!r->report)
        return false;
    const node *required = rt_json_get_c((rt_json){ u->source }, "required").node;
    for (uint32_t i = 0; required && i < required->size; i++) {
        const node *name = required + 1 + i;
        if (rt_json_is_absent(rt_json_get((rt_json){ v }, rt_json_node_text(name))))
            schema_miss(r, u, K_REQUIRED, v, name);
    }
    return false;
}

static bool has_names(schema_run *r, const schema_unit *u, const schema_dependent *dependent,
                      const node *v)
{
    bool ok = true;
    for (uint32_t i = 0; i < dependent->names->size && schema_run_charge(r, v->size / 8); i++) {
        const node *name = dependent->names + 1 + i;
        if (rt_json_is_absent(rt_json_get((rt_json){ v }, rt_json_node_text(name))))
            ok = schema_miss(r, u, dependent->keyword, v, name);
    }
    return ok;
}

static bool run_dependents(schema_run *r, const schema_unit *u, const node *v, schema_marks *marks)
{
    bool ok = true;
    for (size_t i = 0; i < u->object->dependent_count && schema_run_charge(r, v->size / 8); i++) {
        const schema_dependent *dependent = &u->object->dependents[i];
        rt_str key = rt_json_node_text(dependent->key);
        if (rt_json_is_absent(rt_json_get((rt_json){ v }, key)))
            continue;
        ok &= dependent->names ? has_names(r, u, dependent, v)
                               : schema_run_unit(r, dependent->unit, v, marks);
        if (!ok && !r->report)
            return false;
    }
    return ok;
}

bool schema_run_object(schema_run *r, const schema_unit *u, const node *v, schema_marks *marks)
{
    const schema_object_rules *rules = u->object;
    uint64_t few = 0, *seen = &few;
    size_t words = rules->required_count / 64 + 1;
    bool ok = run_counts(r, u, v);
    if (!ok && !r->report)
        return false;
    if (rules->has_member_rules) {
        if (words > 1)
            seen = schema_words_take(r, words);
        ok &= rules->is_plain && !r->report ? run_plain_members(r, u, v, marks, seen)
                                            : run_members(r, u, v, marks, seen);
        if ((ok || r->report) && rules->required_count && !is_all_there(rules, seen))
            ok = report_missing(r, u, v);
        if (words > 1)
            schema_words_give(r, seen, words);
    }
    if ((ok || r->report) && rules->dependent_count)
        ok &= run_dependents(r, u, v, marks);
    return ok;
}
