/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numbering.c - gives each text a number, the same one the next time: 0, 1, 2, …
 *
 * An open table under a key of its own, since the texts come from outside.
 */
#include "tools/search_internal.h"

#include <stdlib.h>

static uint32_t *slot_of(const search_numbering *n, rt_str text)
{
    size_t i = rt_hash(&n->key, text) & (n->slot_count - 1);
    while (n->slots[i] && !rt_str_eq(n->texts[n->slots[i] - 1], text))
        i = (i + 1) & (n->slot_count - 1);
    return &n->slots[i];
}

static void widen(search_numbering *n)
{
    if (n->slot_count == 0)
        rt_random_bytes(&n->key, sizeof(n->key));
    n->slot_count = n->slot_count ? 2 * n->slot_count : 1024;
    free(n->slots);
    n->slots = calloc(n->slot_count, sizeof(*n->slots));
    n->texts = realloc(n->texts, n->slot_count / 2 * sizeof(*n->texts));
    if (!n->slots || !n->texts)
        rt_out_of_memory(n->slot_count * sizeof(*n->slots));
    for (size_t i = 0; i < n->count; i++)
        *slot_of(n, n->texts[i]) = (uint32_t)i + 1;
}

uint32_t search_number_of(search_numbering *n, rt_str text, rt_arena *arena)
{
    if (2 * (n->count + 1) > n->slot_count)
        widen(n);
    uint32_t *slot = slot_of(n, text);
    if (!*slot) {
        n->texts[n->count++] = rt_arena_str(arena, text);
        *slot = (uint32_t)n->count;
    }
    return *slot - 1;
}

uint32_t search_number_find(const search_numbering *n, rt_str text)
{
    return n->slot_count ? *slot_of(n, text) - 1 : UINT32_MAX;
}

void search_numbering_done(search_numbering *n)
{
    free(n->slots);
    free(n->texts);
    *n = (search_numbering){ 0 };
}
