/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.h - results that need not be computed again: in memory, and shared through Redis.
 *
 * Promise: what is put under a key is got back unchanged or not at all; never after its time to
 * live, never another key's. With Redis configured a lost connection costs a miss and a log-free
 * retry later, never a failed request and never a long wait. Any thread may call.
 *
 *     rt_str value;
 *     if (rt_cache_get(cache, key, &arena, &value))
 *         return answer(value);
 *     …
 *     rt_cache_put(cache, key, value, tags, tag_count, elapsed_us);
 *
 * The key is made by the caller (engine: a hash over code, language, runtime version, input, policy
 * and tool versions). A tag is a tool's name: invalidating it drops every result that used it.
 */
#ifndef RT_STORE_CACHE_H
#define RT_STORE_CACHE_H

#include "base/base.h"

typedef struct rt_cache rt_cache;

typedef struct rt_cache_config {
    bool is_off;           /* every get is a miss, every put nothing */
    size_t max_entries;    /* 0: 100 */
    uint64_t max_bytes;    /* of all values in memory; 0: 64 MiB */
    uint64_t value_bytes;  /* a larger value is not kept; 0: 1 MiB */
    uint64_t ttl_ms;       /* 0: 300,000 */
    rt_str redis_url;      /* "redis://[user:password@]host:port/db", "unix:///path"; empty: none */
    uint64_t redis_timeout_ms; /* per call; 0: 50 */
} rt_cache_config;

bool rt_cache_open(const rt_cache_config *config, rt_cache **out, rt_error *err);
void rt_cache_close(rt_cache *cache);
void rt_cache_closep(rt_cache **cache);

bool rt_cache_get(rt_cache *cache, rt_str key, rt_arena *arena, rt_str *value);
void rt_cache_put(rt_cache *cache, rt_str key, rt_str value, const rt_str *tags, size_t tag_count,
                  uint64_t cost_us);
uint64_t rt_cache_invalidate(rt_cache *cache, rt_str tag); /* how many entries went, here */
void rt_cache_clear(rt_cache *cache);                      /* entries and counters */

typedef struct rt_cache_stats {
    uint64_t hits, misses, evictions, entries, bytes;
    uint64_t saved_us;                     /* what the hits would have taken */
    uint64_t redis_hits, redis_errors;
    bool is_off, has_redis, is_redis_up;
} rt_cache_stats;

rt_cache_stats rt_cache_stats_get(rt_cache *cache);
void rt_cache_stats_write(const rt_cache_stats *stats, rt_json_writer *w); /* names of S2-90 too */

#endif
