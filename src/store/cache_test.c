/* SPDX-License-Identifier: Apache-2.0 */
#include "store/cache.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>

static rt_cache *cache_of(rt_cache_config config)
{
    rt_cache *cache = NULL;
    rt_error err = { 0 };
    cr_assert(rt_cache_open(&config, &cache, &err), "%s", err.text);
    return cache;
}

static void put(rt_cache *cache, const char *key, const char *value, uint64_t cost_us)
{
    rt_cache_put(cache, rt_str_of(key), rt_str_of(value), NULL, 0, cost_us);
}

static bool has(rt_cache *cache, const char *key)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str value;
    return rt_cache_get(cache, rt_str_of(key), &arena, &value);
}

Test(cache, what_is_put_is_got)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_cache *cache RT_CLEANUP(rt_cache_closep) = cache_of((rt_cache_config){ 0 });
    rt_str key = RT_STR("a\0key"), value = RT_STR("a\0value"), got;
    cr_expect(!rt_cache_get(cache, key, &arena, &got));
    rt_cache_put(cache, key, value, NULL, 0, 1000);
    cr_assert(rt_cache_get(cache, key, &arena, &got));
    cr_expect(rt_str_eq(got, value));
    cr_expect_eq(got.ptr[got.len], '\0');
    rt_cache_put(cache, key, RT_STR(""), NULL, 0, 1000);
    cr_assert(rt_cache_get(cache, key, &arena, &got));
    cr_expect_eq(got.len, 0);
    cr_expect(!rt_cache_get(cache, RT_STR("a"), &arena, &got), "not another key's");
}

static rt_json written(rt_cache *cache, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json doc;
    rt_error err = { 0 };
    rt_json_begin(&w, &text);
    rt_cache_stats stats = rt_cache_stats_get(cache);
    rt_cache_stats_write(&stats, &w);
    cr_assert(rt_json_parse(rt_buf_str(&text), arena, &doc, &err), "%s", err.text);
    return doc;
}

static double number(rt_json stats, const char *name)
{
    double value = -1;
    cr_expect(rt_json_double(rt_json_get_c(stats, name), &value), "%s", name);
    return value;
}

Test(cache, three_hits_of_five_are_a_rate_of_0_6)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_cache *cache RT_CLEANUP(rt_cache_closep) = cache_of((rt_cache_config){ 0 });
    put(cache, "a", "1", 2340000);
    put(cache, "b", "1", 0);
    cr_expect(has(cache, "a") && has(cache, "a") && has(cache, "b"));
    cr_expect(!has(cache, "c") && !has(cache, "d"));
    rt_json stats = written(cache, &arena);
    cr_expect_eq(number(stats, "hits"), 3);
    cr_expect_eq(number(stats, "misses"), 2);
    cr_expect_float_eq(number(stats, "hitRate"), 0.6, 1e-12);
    cr_expect_eq(number(stats, "totalSavedMs"), 2 * 2340);
    cr_expect_eq(number(stats, "avgLatencySavedMs"), 1560);
    cr_expect_eq(number(stats, "currentEntries"), 2);
    cr_expect_eq(number(stats, "evictions"), 0);
    cr_expect(rt_json_bool(rt_json_get_c(stats, "enabled"), false));
    cr_expect(!rt_json_bool(rt_json_get_c(stats, "redis_configured"), true));
}

Test(cache, clear_forgets_entries_and_counters)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_cache *cache RT_CLEANUP(rt_cache_closep) = cache_of((rt_cache_config){ .max_entries = 1 });
    put(cache, "a", "1", 5000);
    put(cache, "b", "1", 5000);
    cr_expect(!has(cache, "a") && has(cache, "b"));
    rt_cache_clear(cache);
    rt_json stats = written(cache, &arena);
    static const char *const names[] = { "hits",         "misses",
                                         "hitRate",      "avgLatencySavedMs",
                                         "totalSavedMs", "evictions",
                                         "bytes",        "currentEntries" };
    for (size_t i = 0; i < RT_COUNT(names); i++)
        cr_expect_eq(number(stats, names[i]), 0, "%s", names[i]);
    cr_expect(!has(cache, "b"));
}

Test(cache, a_result_dies_when_its_time_is_over)
{
    rt_cache *cache RT_CLEANUP(rt_cache_closep) = cache_of((rt_cache_config){ .ttl_ms = 30 });
    put(cache, "a", "1", 0);
    uint64_t put_ns = rt_now_ns(), found_ns = put_ns;
    for (uint64_t now = put_ns; has(cache, "a"); now = rt_now_ns())
        found_ns = now;
    cr_expect_leq((found_ns - put_ns) / 1000000, 30);
    cr_expect_geq((rt_now_ns() - put_ns) / 1000000, 29);
    rt_cache_stats stats = rt_cache_stats_get(cache);
    cr_expect_eq(stats.evictions, 1);
    cr_expect_eq(stats.misses, 1);
}

Test(cache, a_tool_that_changes_takes_its_results_along)
{
    rt_cache *cache RT_CLEANUP(rt_cache_closep) = cache_of((rt_cache_config){ 0 });
    rt_str tags[] = { RT_STR("github:list"), RT_STR("mail:send") };
    rt_cache_put(cache, RT_STR("a"), RT_STR("1"), tags, 2, 0);
    rt_cache_put(cache, RT_STR("b"), RT_STR("1"), tags, 1, 0);
    put(cache, "c", "1", 0);
    cr_expect_eq(rt_cache_invalidate(cache, RT_STR("mail:send")), 1);
    cr_expect(!has(cache, "a") && has(cache, "b") && has(cache, "c"));
    cr_expect_eq(rt_cache_invalidate(cache, RT_STR("mail:send")), 0);
    cr_expect_eq(rt_cache_invalidate(cache, RT_STR("github:list")), 1);
    cr_expect(!has(cache, "b") && has(cache, "c"));
}

Test(cache, what_is_too_much_is_not_kept)
{
    static char much[RT_CACHE_KEY_BYTES + 1];
    rt_str tags[RT_CACHE_TAGS + 1];
    for (size_t i = 0; i < RT_COUNT(tags); i++)
        tags[i] = RT_STR("t");
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_cache *cache RT_CLEANUP(rt_cache_closep) = cache_of((rt_cache_config){ .value_bytes = 3 });
    rt_str value, long_key = { much, sizeof(much) }, long_tag = { much, RT_CACHE_TAG_BYTES + 1 };
    put(cache, "a", "1234", 0);
    put(cache, "", "1", 0);
    rt_cache_put(cache, long_key, RT_STR("1"), NULL, 0, 0);
    rt_cache_put(cache, RT_STR("b"), RT_STR("1"), tags, RT_CACHE_TAGS + 1, 0);
    rt_cache_put(cache, RT_STR("c"), RT_STR("1"), &long_tag, 1, 0);
    cr_expect_eq(rt_cache_stats_get(cache).entries, 0);
    cr_expect(!has(cache, "a") && !has(cache, ""));
    cr_expect(!rt_cache_get(cache, long_key, &arena, &value));
    put(cache, "a", "123", 0);
    cr_expect(has(cache, "a"));
}

Test(cache, off_is_off)
{
    rt_cache *cache RT_CLEANUP(rt_cache_closep) =
        cache_of((rt_cache_config){ .is_off = true, .redis_url = RT_STR("redis://nowhere") });
    put(cache, "a", "1", 0);
    cr_expect(!has(cache, "a"));
    rt_cache_stats stats = rt_cache_stats_get(cache);
    cr_expect(stats.is_off && !stats.has_redis && stats.misses == 0 && stats.entries == 0);
}

Test(cache, a_url_of_no_use_is_an_error)
{
    rt_cache *cache = NULL;
    rt_error err = { 0 };
    rt_cache_config config = { .redis_url = RT_STR("rediss://:hunter2@cache") };
    cr_expect(!rt_cache_open(&config, &cache, &err));
    cr_expect_eq(err.code, RT_UNSUPPORTED);
    config.redis_url = RT_STR("cache:6379");
    cr_expect(!rt_cache_open(&config, &cache, &err));
    cr_expect_eq(err.code, RT_INVALID);
    cr_expect_null(cache);
}

/* -- Many threads ------------------------------------------------------------------------------ */

enum { THREADS = 8, ROUNDS = 4000, KEYS = 300 };

static void *mix(void *argument)
{
    rt_cache *cache = argument;
    unsigned seed;
    rt_random_bytes(&seed, sizeof(seed));
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    size_t wrong = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        rt_arena_reset(&arena);
        unsigned number_of_key = (unsigned)rand_r(&seed) % KEYS;
        rt_str key = rt_arena_printf(&arena, "key %u", number_of_key), value;
        rt_str right = rt_arena_printf(&arena, "value of %u", number_of_key);
        rt_str tag = rt_arena_printf(&arena, "tag %u", number_of_key % 7);
        if (i % 3 == 0)
            rt_cache_put(cache, key, right, &tag, i % 2, 1);
        else if (i % 500 == 1)
            rt_cache_invalidate(cache, tag);
        else if (rt_cache_get(cache, key, &arena, &value))
            wrong += !rt_str_eq(value, right);
    }
    return wrong ? argument : NULL;
}

static void mix_in_threads(rt_cache *cache)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, mix, cache), 0);
    for (size_t i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        cr_expect_null(wrong, "thread %zu got another key's value", i);
    }
    rt_cache_stats stats = rt_cache_stats_get(cache);
    cr_expect_gt(stats.hits, 0);
    rt_cache_clear(cache);
    stats = rt_cache_stats_get(cache);
    cr_expect(stats.entries == 0 && stats.bytes == 0);
}

Test(cache, many_threads_get_what_was_put)
{
    rt_cache *small RT_CLEANUP(rt_cache_closep) = cache_of((rt_cache_config){ .max_entries = 50 });
    mix_in_threads(small);
    rt_cache *large RT_CLEANUP(rt_cache_closep) =
        cache_of((rt_cache_config){ .max_entries = 1600, .max_bytes = 256 << 20 });
    mix_in_threads(large);
}
