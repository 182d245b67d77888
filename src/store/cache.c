/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.c - the public functions: memory first, then Redis.
 *
 * Without tags, a result in memory is good until its time is over, and Redis is not asked. With
 * tags it is good for RT_CACHE_TRUST_MS; then Redis is asked whether the tokens of its tags are
 * still there (see cache_internal.h), and if so it is good for as long again. Without Redis there
 * is nobody else who could invalidate, and memory is always right.
 */
#include "store/cache_internal.h"

#include <stdlib.h>

#define MS UINT64_C(1000000) /* in nanoseconds */

#define DEFAULT_ENTRIES     100
#define DEFAULT_BYTES       ((uint64_t)64 << 20)
#define DEFAULT_VALUE_BYTES ((uint64_t)1 << 20)
#define DEFAULT_TTL_MS      300000
#define DEFAULT_TIMEOUT_MS  50
#define TTL_MAX_MS          (UINT64_C(366) * 24 * 3600 * 1000)
#define TIMEOUT_MAX_MS      60000
#define VALUE_BYTES_MAX     ((uint64_t)256 << 20) /* Redis itself ends at 512 MiB */

struct rt_cache {
    bool is_off;
    uint64_t ttl_ms, value_bytes;
    store_memory *memory;
    store_redis *redis; /* NULL: none */
    _Alignas(64) _Atomic uint64_t hits;
    _Atomic uint64_t misses, saved_us, redis_hits;
    _Atomic uint64_t old_redis_errors; /* before the latest clear */
};

/* -- Opening and closing ----------------------------------------------------------------------- */

static uint64_t or_default(uint64_t given, uint64_t fallback, uint64_t max)
{
    return given ? RT_MIN(given, max) : fallback;
}

static bool open_redis(rt_cache *cache, const rt_cache_config *config, rt_error *err)
{
    store_redis_config redis = {
        .timeout_ms = or_default(config->redis_timeout_ms, DEFAULT_TIMEOUT_MS, TIMEOUT_MAX_MS),
        .ttl_ms = cache->ttl_ms,
        .value_bytes = cache->value_bytes,
    };
    bool ok = store_redis_url_parse(config->redis_url, &redis.url, err) &&
              store_redis_open(&redis, &cache->redis, err);
    explicit_bzero(&redis, sizeof(redis));
    return ok;
}

bool rt_cache_open(const rt_cache_config *config, rt_cache **out, rt_error *err)
{
    rt_cache *cache RT_CLEANUP(rt_cache_closep) = aligned_alloc(_Alignof(rt_cache), sizeof(*cache));
    if (!cache)
        rt_out_of_memory(sizeof(*cache));
    *cache = (rt_cache){
        .is_off = config->is_off,
        .ttl_ms = or_default(config->ttl_ms, DEFAULT_TTL_MS, TTL_MAX_MS),
        .value_bytes = or_default(config->value_bytes, DEFAULT_VALUE_BYTES, VALUE_BYTES_MAX),
    };
    cache->memory = store_memory_new(&(store_memory_limits){
        .max_entries = config->max_entries ? config->max_entries : DEFAULT_ENTRIES,
        .max_bytes = or_default(config->max_bytes, DEFAULT_BYTES, UINT64_MAX),
        .value_bytes = cache->value_bytes });
    if (config->redis_url.len && !config->is_off && !open_redis(cache, config, err))
        return rt_wrap(err, "the cache");
    *out = RT_TAKE(cache);
    return true;
}

void rt_cache_close(rt_cache *cache)
{
    if (!cache)
        return;
    store_redis_close(cache->redis);
    store_memory_free(cache->memory);
    free(cache);
}

void rt_cache_closep(rt_cache **cache)
{
    rt_cache_close(*cache);
    *cache = NULL;
}

/* -- Getting ----------------------------------------------------------------------------------- */

static bool is_key(rt_str key)
{
    return key.len > 0 && key.len <= RT_CACHE_KEY_BYTES;
}

static void count(_Atomic uint64_t *counter, uint64_t more)
{
    atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

static void count_hit(rt_cache *cache, uint64_t cost_us)
{
    count(&cache->hits, 1);
    count(&cache->saved_us, cost_us);
}

/* Whether the entry may be answered with; one that is known to be stale is removed. */
static bool is_trusted(rt_cache *cache, store_entry *entry, uint64_t now_ns)
{
    if (entry->result.tag_count == 0 || !cache->redis)
        return true;
    uint64_t checked_ns = atomic_load(&entry->checked_ns);
    if (now_ns < checked_ns || now_ns - checked_ns < RT_CACHE_TRUST_MS * MS)
        return true;
    store_verdict verdict = store_redis_check(cache->redis, &entry->result);
    if (verdict == STORE_GOOD)
        atomic_store(&entry->checked_ns, now_ns); /* from before it was asked */
    if (verdict == STORE_STALE)
        store_memory_remove(cache->memory, entry);
    return verdict == STORE_GOOD;
}

static bool get_here(rt_cache *cache, rt_str key, uint64_t now_ns, rt_arena *arena, rt_str *value)
{
    store_entry *entry RT_CLEANUP(store_entry_releasep) =
        store_memory_find(cache->memory, key, now_ns);
    if (!entry || !is_trusted(cache, entry, now_ns))
        return false;
    *value = rt_arena_str(arena, entry->result.value);
    count_hit(cache, entry->result.cost_us);
    return true;
}

static bool get_shared(rt_cache *cache, rt_str key, uint64_t now_ns, rt_arena *arena, rt_str *value)
{
    store_result found;
    uint64_t ttl_ms, era = store_memory_era(cache->memory);
    if (!store_redis_get(cache->redis, key, arena, &found, &ttl_ms))
        return false;
    store_memory_put(cache->memory, &found, now_ns, now_ns + ttl_ms * MS, era);
    *value = found.value;
    count_hit(cache, found.cost_us);
    count(&cache->redis_hits, 1);
    return true;
}

bool rt_cache_get(rt_cache *cache, rt_str key, rt_arena *arena, rt_str *value)
{
    if (cache->is_off)
        return false;
    uint64_t now_ns = rt_now_ns();
    if (is_key(key) && (get_here(cache, key, now_ns, arena, value) ||
                        (cache->redis && get_shared(cache, key, now_ns, arena, value))))
        return true;
    count(&cache->misses, 1);
    return false;
}

/* -- Putting and removing ---------------------------------------------------------------------- */

static bool fits(const rt_cache *cache, const store_result *result)
{
    if (!is_key(result->key) || result->value.len > cache->value_bytes ||
        result->tag_count > RT_CACHE_TAGS)
        return false;
    for (size_t i = 0; i < result->tag_count; i++)
        if (result->tags[i].len > RT_CACHE_TAG_BYTES)
            return false;
    return true;
}

void rt_cache_put(rt_cache *cache, rt_str key, rt_str value, const rt_str *tags, size_t tag_count,
                  uint64_t cost_us)
{
    store_token tokens[RT_CACHE_TAGS];
    store_result result = {
        .key = key, .value = value, .tags = tags, .tag_count = tag_count, .cost_us = cost_us
    };
    if (cache->is_off || !fits(cache, &result))
        return;
    uint64_t now_ns = rt_now_ns(), era = store_memory_era(cache->memory);
    if (cache->redis && store_redis_put(cache->redis, &result, tokens))
        result.tokens = tokens;
    store_memory_put(cache->memory, &result, now_ns, now_ns + cache->ttl_ms * MS, era);
}

/* Redis first: what another thread reads there now must not come back here later. */
uint64_t rt_cache_invalidate(rt_cache *cache, rt_str tag)
{
    if (tag.len > RT_CACHE_TAG_BYTES)
        return 0;
    if (cache->redis)
        store_redis_remove_tag(cache->redis, tag);
    return store_memory_remove_tag(cache->memory, tag);
}

void rt_cache_clear(rt_cache *cache)
{
    if (cache->redis) {
        store_redis_clear(cache->redis);
        atomic_store(&cache->old_redis_errors, store_redis_errors(cache->redis));
    }
    store_memory_clear(cache->memory);
    _Atomic uint64_t *counters[] = { &cache->hits, &cache->misses, &cache->saved_us,
                                     &cache->redis_hits };
    for (size_t i = 0; i < RT_COUNT(counters); i++)
        atomic_store(counters[i], 0);
}

/* -- Telling ----------------------------------------------------------------------------------- */

rt_cache_stats rt_cache_stats_get(rt_cache *cache)
{
    store_memory_counts memory = store_memory_count(cache->memory);
    rt_cache_stats stats = {
        .hits = atomic_load(&cache->hits),
        .misses = atomic_load(&cache->misses),
        .evictions = memory.evictions,
        .entries = memory.entries,
        .bytes = memory.bytes,
        .saved_us = atomic_load(&cache->saved_us),
        .redis_hits = atomic_load(&cache->redis_hits),
        .is_off = cache->is_off,
        .has_redis = cache->redis != NULL,
    };
    if (cache->redis) {
        stats.redis_errors =
            store_redis_errors(cache->redis) - atomic_load(&cache->old_redis_errors);
        stats.redis_state = store_redis_state(cache->redis);
        stats.is_redis_up = store_redis_is_up(cache->redis);
    }
    return stats;
}

static double ratio(double part, uint64_t whole)
{
    return whole ? part / (double)whole : 0;
}

void rt_cache_stats_write(const rt_cache_stats *stats, rt_json_writer *w)
{
    double saved_ms = (double)stats->saved_us / 1000;
    rt_jw_object(w);
    rt_jw_ku64(w, "hits", stats->hits);
    rt_jw_ku64(w, "misses", stats->misses);
    rt_jw_kdouble(w, "hitRate", ratio((double)stats->hits, stats->hits + stats->misses));
    rt_jw_kdouble(w, "avgLatencySavedMs", ratio(saved_ms, stats->hits));
    rt_jw_kdouble(w, "totalSavedMs", saved_ms);
    rt_jw_ku64(w, "currentEntries", stats->entries);
    rt_jw_ku64(w, "evictions", stats->evictions);
    rt_jw_ku64(w, "bytes", stats->bytes);
    rt_jw_kbool(w, "enabled", !stats->is_off);
    rt_jw_kbool(w, "redis_configured", stats->has_redis);
    rt_jw_kbool(w, "redis_up", stats->is_redis_up);
    rt_jw_ku64(w, "redis_hits", stats->redis_hits);
    rt_jw_ku64(w, "redis_errors", stats->redis_errors);
    if (stats->has_redis && !stats->is_redis_up)
        rt_jw_kstr(w, "redis_error", rt_str_of(stats->redis_state.text));
    else
        rt_jw_knull(w, "redis_error");
    rt_jw_end(w);
}
