/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_limiter.c - so many calls of a tool in any second, and not one more.
 *
 * Each tool has a ring with the moments of its last calls, as many as a second may have. A call may
 * begin a second after the one that many calls before it. Moments may lie in the future: those who
 * wait have theirs already, so they go in the order they came.
 */
#include "tools/mcp_internal.h"

#include <stdlib.h>

enum {
    BUCKETS = 256,
    TOOLS_MAX = 4096, /* names are the caller's: beyond, they share one ring */
};

typedef struct ring {
    struct ring *next;
    rt_str tool;
    unsigned oldest;
    uint64_t moments[];
} ring;

struct mcp_limiter {
    pthread_mutex_t lock;
    unsigned per_second, count;
    rt_hash_key key;
    rt_arena arena;
    ring *buckets[BUCKETS], *shared;
};

mcp_limiter *mcp_limiter_new(unsigned per_second)
{
    mcp_limiter *l = calloc(1, sizeof(*l));
    if (!l)
        rt_out_of_memory(sizeof(*l));
    pthread_mutex_init(&l->lock, NULL);
    l->per_second = per_second;
    rt_random_bytes(&l->key, sizeof(l->key));
    return l;
}

void mcp_limiter_free(mcp_limiter *l)
{
    if (!l)
        return;
    rt_arena_done(&l->arena);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

static ring *new_ring(mcp_limiter *l, rt_str tool)
{
    ring *r = rt_arena_alloc(&l->arena, sizeof(*r) + l->per_second * sizeof(r->moments[0]));
    r->tool = rt_arena_str(&l->arena, tool);
    return r;
}

static ring *find_ring(mcp_limiter *l, rt_str tool)
{
    ring **bucket = &l->buckets[rt_hash(&l->key, tool) % BUCKETS];
    for (ring *r = *bucket; r; r = r->next)
        if (rt_str_eq(r->tool, tool))
            return r;
    if (l->count == TOOLS_MAX || tool.len > 256)
        return l->shared ? l->shared : (l->shared = new_ring(l, RT_STR("")));
    ring *r = new_ring(l, tool);
    r->next = *bucket;
    *bucket = r;
    l->count++;
    return r;
}

uint64_t mcp_limiter_take(mcp_limiter *l, rt_str tool, uint64_t now_ns, uint64_t deadline_ns)
{
    pthread_mutex_lock(&l->lock);
    ring *r = find_ring(l, tool);
    uint64_t oldest = r->moments[r->oldest];
    uint64_t when = oldest ? RT_MAX(now_ns, oldest + MCP_SECOND) : now_ns;
    bool is_in_time = when < deadline_ns;
    if (is_in_time) {
        r->moments[r->oldest] = when;
        r->oldest = (r->oldest + 1) % l->per_second;
    }
    pthread_mutex_unlock(&l->lock);
    return is_in_time ? when : 0;
}
