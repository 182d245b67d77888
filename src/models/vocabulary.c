/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vocabulary.c - pieces of words by number: a table with open addresses, half full at the most.
 *
 * Its key is random, since the pieces are a stranger's.
 */
#include "models/models_internal.h"

void vocabulary_init(vocabulary *v, size_t count, rt_arena *arena)
{
    *v = (vocabulary){ .slot_count = 16 };
    while (v->slot_count < 2 * count)
        v->slot_count *= 2;
    v->slots = rt_arena_alloc(arena, v->slot_count * sizeof(*v->slots));
    rt_random_bytes(&v->key, sizeof(v->key));
}

static struct vocabulary_slot *slot_of(const vocabulary *v, rt_str piece)
{
    size_t at = rt_hash(&v->key, piece) & (v->slot_count - 1);
    while (v->slots[at].piece.ptr && !rt_str_eq(v->slots[at].piece, piece))
        at = (at + 1) & (v->slot_count - 1);
    return &v->slots[at];
}

/* Of two with one text the later counts, as it does in a dictionary. */
void vocabulary_add(vocabulary *v, rt_str piece, uint32_t id)
{
    if (piece.len == 0)
        return; /* no piece of any word */
    struct vocabulary_slot *slot = slot_of(v, piece);
    v->count += slot->piece.ptr == NULL;
    *slot = (struct vocabulary_slot){ .piece = piece, .id = id };
    v->longest = RT_MAX(v->longest, piece.len);
    v->last = RT_MAX(v->last, id);
}

uint32_t vocabulary_find(const vocabulary *v, rt_str piece)
{
    const struct vocabulary_slot *slot = slot_of(v, piece);
    return slot->piece.ptr ? slot->id : VOCABULARY_NONE;
}
