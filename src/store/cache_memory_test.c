/* SPDX-License-Identifier: Apache-2.0 */
#include "store/cache_internal.h"

#include <criterion/criterion.h>

#define NEVER UINT64_MAX

static void memory_freep(store_memory **memory)
{
    store_memory_free(*memory);
}

static store_memory *memory_of(size_t max_entries, uint64_t max_bytes)
{
    return store_memory_new(&(store_memory_limits){
        .max_entries = max_entries, .max_bytes = max_bytes, .value_bytes = 1000 });
}

static void put(store_memory *memory, rt_str key, rt_str value, uint64_t expires_ns)
{
    store_memory_put(memory, &(store_result){ .key = key, .value = value }, 0, expires_ns,
                     store_memory_era(memory));
}

static bool has(store_memory *memory, rt_str key, uint64_t now_ns)
{
    store_entry *entry RT_CLEANUP(store_entry_releasep) = store_memory_find(memory, key, now_ns);
    return entry != NULL;
}

static rt_str numbered(unsigned i, rt_arena *arena)
{
    return rt_arena_printf(arena, "key %u", i);
}

Test(cache_memory, the_101st_evicts_the_first)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    store_memory *memory RT_CLEANUP(memory_freep) = memory_of(100, 1 << 20);
    for (unsigned i = 0; i < 101; i++)
        put(memory, numbered(i, &arena), RT_STR("x"), NEVER);
    cr_expect(!has(memory, RT_STR("key 0"), 0));
    for (unsigned i = 1; i < 101; i++)
        cr_expect(has(memory, numbered(i, &arena), 0), "key %u", i);
    cr_expect_eq(store_memory_count(memory).evictions, 1);
    cr_expect_eq(store_memory_count(memory).entries, 100);
}

Test(cache_memory, what_was_used_stays)
{
    store_memory *memory RT_CLEANUP(memory_freep) = memory_of(2, 1 << 20);
    put(memory, RT_STR("a"), RT_STR("1"), NEVER);
    put(memory, RT_STR("b"), RT_STR("2"), NEVER);
    cr_expect(has(memory, RT_STR("a"), 0));
    put(memory, RT_STR("c"), RT_STR("3"), NEVER);
    cr_expect(has(memory, RT_STR("a"), 0));
    cr_expect(!has(memory, RT_STR("b"), 0));
    cr_expect(has(memory, RT_STR("c"), 0));
    put(memory, RT_STR("a"), RT_STR("again"), NEVER); /* a replacement takes no room */
    cr_expect(has(memory, RT_STR("c"), 0));
    cr_expect_eq(store_memory_count(memory).evictions, 1);
}

Test(cache_memory, what_is_too_old_is_gone_and_counts_as_evicted)
{
    store_memory *memory RT_CLEANUP(memory_freep) = memory_of(10, 1 << 20);
    put(memory, RT_STR("a"), RT_STR("1"), 1000);
    cr_expect(has(memory, RT_STR("a"), 999));
    cr_expect(!has(memory, RT_STR("a"), 1000));
    cr_expect_eq(store_memory_count(memory).evictions, 1);
    cr_expect_eq(store_memory_count(memory).entries, 0);
    cr_expect_eq(store_memory_count(memory).bytes, 0);
}

Test(cache_memory, bytes_are_bounded)
{
    static char bytes[1001];
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    store_memory *memory RT_CLEANUP(memory_freep) = memory_of(100, 5000);
    for (unsigned i = 0; i < 50; i++) {
        put(memory, numbered(i, &arena), (rt_str){ bytes, 1000 }, NEVER);
        cr_expect_leq(store_memory_count(memory).bytes, 5000);
    }
    cr_expect_eq(store_memory_count(memory).entries, 4);
    put(memory, RT_STR("too long"), (rt_str){ bytes, 1001 }, NEVER);
    cr_expect(!has(memory, RT_STR("too long"), 0));
}

Test(cache_memory, a_large_one_grows_and_stays_within_its_bounds)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    store_memory *memory RT_CLEANUP(memory_freep) = memory_of(5000, 64 << 20);
    for (unsigned i = 0; i < 20000; i++)
        put(memory, numbered(i, &arena), RT_STR("x"), NEVER);
    store_memory_counts counts = store_memory_count(memory);
    cr_expect_leq(counts.entries, 5000);
    cr_expect_geq(counts.entries, 4900);
    cr_expect_eq(counts.entries + counts.evictions, 20000);
    cr_expect(has(memory, RT_STR("key 19999"), 0));
    cr_expect(!has(memory, RT_STR("key 0"), 0));
}

Test(cache_memory, a_tag_removes_what_has_it_and_a_reader_keeps_its_copy)
{
    store_memory *memory RT_CLEANUP(memory_freep) = memory_of(10, 1 << 20);
    rt_str both[] = { RT_STR("github"), RT_STR("mail") };
    store_result tagged = {
        .key = RT_STR("a"), .value = RT_STR("1"), .tags = both, .tag_count = 2
    };
    store_memory_put(memory, &tagged, 0, NEVER, store_memory_era(memory));
    put(memory, RT_STR("b"), RT_STR("2"), NEVER);
    store_entry *held RT_CLEANUP(store_entry_releasep) = store_memory_find(memory, RT_STR("a"), 0);
    cr_expect_eq(store_memory_remove_tag(memory, RT_STR("git")), 0);
    cr_expect_eq(store_memory_remove_tag(memory, RT_STR("mail")), 1);
    cr_expect(!has(memory, RT_STR("a"), 0));
    cr_expect(has(memory, RT_STR("b"), 0));
    cr_expect(rt_str_eq(held->result.value, RT_STR("1")));
    store_memory_remove(memory, held); /* already gone: nothing happens */
    cr_expect_eq(store_memory_count(memory).entries, 1);
    cr_expect_eq(store_memory_count(memory).evictions, 0);
}

Test(cache_memory, what_was_begun_before_a_removal_is_not_kept_after_it)
{
    store_memory *memory RT_CLEANUP(memory_freep) = memory_of(10, 1 << 20);
    uint64_t era = store_memory_era(memory);
    store_memory_remove_tag(memory, RT_STR("github"));
    store_result late = { .key = RT_STR("a"), .value = RT_STR("1") };
    store_memory_put(memory, &late, 0, NEVER, era);
    cr_expect(!has(memory, RT_STR("a"), 0));
}
