/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.c - a table of names made once and asked millions of times.
 *
 * A few multipliers are tried until every name has a slot of its own, so that nearly always one
 * look decides. Names are compared by their first and last eight bytes, which is all of most.
 */
#include "schema/schema_internal.h"

enum { SEEDS = 24, SLOTS_PER_NAME = 2 };

/* False at the first two names that want one slot, unless that is allowed. */
static bool place_all(schema_names *table, bool may_collide)
{
    memset(table->slots, 0, ((size_t)table->mask + 1) * sizeof(*table->slots));
    for (uint32_t i = 0; i < table->count; i++) {
        const schema_name *name = &table->names[i];
        uint64_t hash = schema_name_hash(name->head, name->tail, name->text.ptr, name->text.len);
        uint32_t slot = (uint32_t)(hash * table->seed >> table->shift);
        if (table->slots[slot] && !may_collide)
            return false;
        while (table->slots[slot])
            slot = (slot + 1) & table->mask;
        table->slots[slot] = i + 1;
    }
    return true;
}

void schema_names_build(schema_names *table, const rt_str *texts, size_t count, rt_arena *arena)
{
    uint32_t slots = 2, bits = 1;
    while (slots < count * SLOTS_PER_NAME) {
        slots *= 2;
        bits++;
    }
    *table = (schema_names){
        .shift = 64 - bits,
        .mask = slots - 1,
        .slots = rt_arena_alloc_raw(arena, slots * sizeof(*table->slots)),
        .names = rt_arena_alloc_raw(arena, count * sizeof(*table->names)),
        .count = (uint32_t)count,
    };
    for (size_t i = 0; i < count; i++)
        table->names[i] = (schema_name){
            .head = schema_name_head(texts[i].ptr, texts[i].len),
            .tail = schema_name_tail(texts[i].ptr, texts[i].len),
            .text = texts[i],
        };
    uint64_t seed = 0x9E3779B97F4A7C15u;
    unsigned tries = count <= 64 ? SEEDS : 2;
    for (unsigned i = 0; i < tries;
         i++, seed = seed * 6364136223846793005u + 1442695040888963407u) {
        table->seed = seed | 1;
        if (place_all(table, false))
            return;
    }
    place_all(table, true);
}
