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
 * and tool versions). A tag is a tool's name: invalidating it drops every result that used it, on
 * this node at once, on nodes that share the Redis within RT_CACHE_TRUST_MS. To keep that promise a
 * tagged result is answered from memory without asking Redis only that long; one without tags needs
 * no asking. What Redis cannot confirm, because it is away, is a miss.
 */
#ifndef RT_STORE_CACHE_H
#define RT_STORE_CACHE_H

#include "base/base.h"

/* What goes beyond these is not kept; nor is a key of no bytes. */
#define RT_CACHE_KEY_BYTES 512
#define RT_CACHE_TAGS      64 /* of one result */
#define RT_CACHE_TAG_BYTES 256

#define RT_CACHE_TRUST_MS 1000 /* how long a tagged result in memory needs no asking */

typedef struct rt_cache rt_cache;

typedef struct rt_cache_config {
    bool is_off;          /* every get is a miss that is not counted, every put nothing */
    size_t max_entries;   /* 0: 100. Up to 1000 the least recently used goes first, exactly; */
                          /* beyond, nearly: the entries are kept in several parts */
    uint64_t max_bytes;   /* of all entries in memory; 0: 64 MiB */
    uint64_t value_bytes; /* a larger value is not kept; 0: 1 MiB */
    uint64_t ttl_ms;      /* 0: 300,000 */
    rt_str redis_url;     /* "redis://[[user]:password@]host[:port][/db]", "unix:///path[?db=n]", */
                          /* %-escapes allowed; empty: none */
    uint64_t redis_timeout_ms; /* per call of ours, all round trips together; 0: 50 */
} rt_cache_config;

/*
 * Fails for a URL that makes no sense (RT_INVALID) or asks for TLS (RT_UNSUPPORTED). A Redis that
 * cannot be reached is no failure: it is tried again in the background, after 100 ms, then twice as
 * long each time, up to 5 s. Looking up the name of its host may take as long as the resolver does;
 * so may closing, while that goes on. Nobody else may be using the cache when it is closed.
 */
bool rt_cache_open(const rt_cache_config *config, rt_cache **out, rt_error *err);
void rt_cache_close(rt_cache *cache);
void rt_cache_closep(rt_cache **cache);

/* The value is copied into the arena, with a NUL byte after it. */
bool rt_cache_get(rt_cache *cache, rt_str key, rt_arena *arena, rt_str *value);
void rt_cache_put(rt_cache *cache, rt_str key, rt_str value, const rt_str *tags, size_t tag_count,
                  uint64_t cost_us);

/* How many entries went, here. If Redis is away, it is told before it is asked again. */
uint64_t rt_cache_invalidate(rt_cache *cache, rt_str tag);

/*
 * Entries and counters here, and the results in Redis as far as it can be reached in a second.
 * Other nodes keep the untagged results they have in memory for their time to live.
 */
void rt_cache_clear(rt_cache *cache);

typedef struct rt_cache_stats {
    uint64_t hits, misses, evictions; /* evicted: for room, or found too old */
    uint64_t entries, bytes;
    uint64_t saved_us; /* what the hits would have taken */
    uint64_t redis_hits, redis_errors;
    bool is_off, has_redis, is_redis_up;
    rt_error redis_state; /* why it is not up: RT_DENIED for a wrong password, ... */
} rt_cache_stats;

rt_cache_stats rt_cache_stats_get(rt_cache *cache);
/* {"hits", "misses", "hitRate", "avgLatencySavedMs", "totalSavedMs", "currentEntries", ...} */
void rt_cache_stats_write(const rt_cache_stats *stats, rt_json_writer *w);

/*
 * The key of the upstream story, "<code>_<context>_<tool versions>", each 8 hexadecimal digits:
 * for those who compare. It is far too short to trust a result to, so the cache does not use it.
 * An absent object counts as {}.
 */
rt_str rt_cache_story_key(rt_str code, rt_json context, rt_json tool_versions, rt_arena *arena);

#endif
