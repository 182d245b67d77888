/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_array.c - the items of an array.
 *
 * Whether all are different is seen by comparing each with each while they are few, and by their
 * hashes when they are many; the table for some hundreds fits on the stack.
 */
#include "schema/schema_internal.h"

#include <stdlib.h>

enum { FEW = 12, STACK_ITEMS = 128 };

typedef struct hashed {
    uint64_t hash;
    const node *item;
} hashed;

static const node *twin_among_few(const node *v)
{
    const node *end = rt_json_node_after(v);
    for (const node *a = v + 1; a < end; a = rt_json_node_after(a))
        for (const node *b = v + 1; b < a; b = rt_json_node_after(b))
            if (a->kind == b->kind && rt_json_equal((rt_json){ a }, (rt_json){ b }))
                return a;
    return NULL;
}

static const node *twin_in_table(schema_run *r, const node *v, hashed *table, size_t slots)
{
    const node *end = rt_json_node_after(v);
    memset(table, 0, slots * sizeof(*table));
    for (const node *at = v + 1; at < end; at = rt_json_node_after(at)) {
        uint64_t hash = rt_json_hash((rt_json){ at }, &r->schema->hash_key);
        size_t slot = hash & (slots - 1);
        for (; table[slot].item; slot = (slot + 1) & (slots - 1))
            if (table[slot].hash == hash &&
                rt_json_equal((rt_json){ table[slot].item }, (rt_json){ at }))
                return at;
        table[slot] = (hashed){ hash, at };
    }
    return NULL;
}

static __attribute__((noinline)) const node *twin_among_some(schema_run *r, const node *v)
{
    hashed table[STACK_ITEMS * 2];
    return twin_in_table(r, v, table, RT_COUNT(table));
}

/* The second of two items that are equal, or NULL. */
static const node *find_twin(schema_run *r, const node *v)
{
    if (!schema_run_charge(r, (uint64_t)(rt_json_node_after(v) - v)))
        return NULL;
    if (v->size <= FEW)
        return twin_among_few(v);
    if (v->size <= STACK_ITEMS)
        return twin_among_some(r, v);
    size_t slots = STACK_ITEMS * 2;
    while (slots < (size_t)v->size * 2)
        slots *= 2;
    hashed *table = malloc(slots * sizeof(*table));
    if (!table)
        rt_out_of_memory(slots * sizeof(*table));
    const node *twin = twin_in_table(r, v, table, slots);
    free(table);
    return twin;
}

static bool run_counts(schema_run *r, const schema_unit *u, const node *v)
{
    bool ok = true;
    if (v->size < u->array->min)
        ok = schema_miss(r, u, K_MIN_ITEMS, v, NULL);
    if (v->size > u->array->max)
        ok = schema_miss(r, u, K_MAX_ITEMS, v, NULL);
    return ok;
}

static bool run_items(schema_run *r, const schema_unit *u, const node *v, schema_marks *marks)
{
    const schema_array_rules *rules = u->array;
    const node *at = v + 1, *end = rt_json_node_after(v);
    bool ok = true;
    size_t i = 0;
    for (; i < rules->prefix_count && at < end; at = rt_json_node_after(at), i++) {
        ok &= schema_run_child(r, rules->prefix[i], at);
        schema_mark(marks, i);
        if (!ok && !r->report)
            return false;
    }
    if (!rules->rest)
        return ok;
    for (; at < end; at = rt_json_node_after(at), i++) {
        ok &= rules->rest->kinds ? schema_run_child(r, rules->rest, at)
                                 : schema_miss(r, u, rules->rest_keyword, v, at);
        schema_mark(marks, i);
        if (!ok && !r->report)
            return false;
    }
    return ok;
}

static bool run_contains(schema_run *r, const schema_unit *u, const node *v, schema_marks *marks)
{
    const schema_array_rules *rules = u->array;
    schema_marks *marked = rules->contains_marks ? marks : NULL;
    /* With marks to set, or a most, all have to be looked at. */
    uint64_t enough = marked || rules->max_contains < UINT64_MAX ? UINT64_MAX : rules->min_contains;
    uint64_t count = 0;
    size_t i = 0;
    const node *end = rt_json_node_after(v);
    for (const node *at = v + 1; at < end && count < enough; at = rt_json_node_after(at), i++)
        if (schema_run_quietly(r, rules->contains, at, NULL)) {
            count++;
            schema_mark(marked, i);
        }
    bool ok = true;
    if (count < rules->min_contains)
        ok = schema_miss(r, u, K_CONTAINS, v, NULL);
    if (count > rules->max_contains)
        ok = schema_miss(r, u, K_MAX_CONTAINS, v, NULL);
    return ok;
}

bool schema_run_array(schema_run *r, const schema_unit *u, const node *v, schema_marks *marks)
{
    const schema_array_rules *rules = u->array;
    bool ok = run_counts(r, u, v);
    if ((ok || r->report) && (rules->rest || rules->prefix_count))
        ok &= run_items(r, u, v, marks);
    if ((ok || r->report) && rules->contains)
        ok &= run_contains(r, u, v, marks);
    if ((ok || r->report) && rules->is_unique && v->size > 1) {
        const node *twin = find_twin(r, v);
        if (twin)
            ok = schema_miss(r, u, K_UNIQUE_ITEMS, v, twin);
    }
    return ok;
}
