/* SPDX-License-Identifier: Apache-2.0 */
#include "server/rate.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>

#define SECOND UINT64_C(1000000000)
#define START  (1000 * SECOND)

static unsigned take_all(server_rate *rate, const char *key, uint64_t per_minute, uint64_t now_ns)
{
    uint64_t wait_ms;
    unsigned taken = 0;
    while (taken < 100000 && server_rate_take(rate, rt_str_of(key), per_minute, now_ns, &wait_ms))
        taken++;
    return taken;
}

Test(rate, a_burst_is_ten_seconds_worth_within_its_bounds)
{
    static const struct {
        uint64_t per_minute;
        unsigned burst;
    } rows[] = {
        { 600, 100 }, { 120, 20 }, { 60, 10 }, { 30, 10 }, { 10, 10 }, { 3, 3 }, { 1, 1 }
    };
    for (size_t i = 0; i < RT_COUNT(rows); i++) {
        server_rate *rate RT_CLEANUP(server_rate_freep) = server_rate_new(0);
        unsigned taken = take_all(rate, "a", rows[i].per_minute, START);
        cr_expect_eq(taken, rows[i].burst, "%u for %u a minute", taken,
                     (unsigned)rows[i].per_minute);
    }
}

Test(rate, after_the_burst_the_rate_is_kept)
{
    server_rate *rate RT_CLEANUP(server_rate_freep) = server_rate_new(0);
    unsigned taken = 0;
    for (uint64_t ms = 0; ms < 60000; ms++) {
        uint64_t wait_ms;
        taken += server_rate_take(rate, RT_STR("a"), 600, START + ms * 1000000, &wait_ms);
    }
    cr_expect(taken >= 698 && taken <= 700, "%u: 100 at once, then 600 in a minute", taken);
}

Test(rate, the_wait_that_is_told_is_enough_and_not_too_long)
{
    server_rate *rate RT_CLEANUP(server_rate_freep) = server_rate_new(0);
    uint64_t wait_ms;
    take_all(rate, "a", 60, START);
    cr_expect(!server_rate_take(rate, RT_STR("a"), 60, START, &wait_ms));
    cr_expect_eq(wait_ms, 1000);
    cr_expect(!server_rate_take(rate, RT_STR("a"), 60, START + 400500000, &wait_ms));
    cr_expect_eq(wait_ms, 600, "rounded up");
    cr_expect(!server_rate_take(rate, RT_STR("a"), 60, START + 999999999, &wait_ms));
    cr_expect_eq(wait_ms, 1);
    cr_expect(server_rate_take(rate, RT_STR("a"), 60, START + SECOND, &wait_ms));
    cr_expect_eq(wait_ms, 0);
}

Test(rate, an_idle_bucket_fills_up_and_no_further)
{
    server_rate *rate RT_CLEANUP(server_rate_freep) = server_rate_new(0);
    cr_expect_eq(take_all(rate, "a", 60, START), 10);
    cr_expect_eq(take_all(rate, "a", 60, START + 3 * SECOND), 3);
    cr_expect_eq(take_all(rate, "a", 60, START + 3600 * SECOND), 10);
}

Test(rate, keys_do_not_share)
{
    server_rate *rate RT_CLEANUP(server_rate_freep) = server_rate_new(0);
    uint64_t wait_ms;
    cr_expect_eq(take_all(rate, "a", 60, START), 10);
    cr_expect_eq(take_all(rate, "b", 60, START), 10);
    cr_expect(server_rate_take(rate, RT_STR("a\0"), 60, START, &wait_ms));
    cr_expect(server_rate_take(rate, RT_STR(""), 60, START, &wait_ms));
}

Test(rate, zero_is_no_limit_and_extremes_do_no_harm)
{
    server_rate *rate RT_CLEANUP(server_rate_freep) = server_rate_new(1);
    cr_expect_eq(take_all(rate, "a", 0, START), 100000);
    cr_expect_eq(take_all(rate, "a", UINT64_MAX, START), 100000);
    cr_expect_eq(take_all(rate, "b", 60 * SECOND, START), 100000);
    uint64_t wait_ms;
    cr_expect_eq(take_all(rate, "c", 60, START), 10);
    cr_expect(!server_rate_take(rate, RT_STR("c"), 60, START - 2 * SECOND, &wait_ms));
    cr_expect_eq(wait_ms, 1000, "never longer than for one token");
    server_rate_free(NULL);
}

Test(rate, a_changed_rate_counts_at_once)
{
    server_rate *rate RT_CLEANUP(server_rate_freep) = server_rate_new(0);
    cr_expect_eq(take_all(rate, "a", 1, START), 1);
    uint64_t wait_ms;
    cr_expect(!server_rate_take(rate, RT_STR("a"), 1, START, &wait_ms));
    cr_expect_eq(wait_ms, 60000);
    cr_expect(!server_rate_take(rate, RT_STR("a"), 6000, START, &wait_ms));
    cr_expect_eq(wait_ms, 10, "not the rest of the minute");
    cr_expect_eq(take_all(rate, "a", 6000, START + SECOND), 100);
}

Test(rate, the_table_is_bounded_and_forgets_who_was_silent_longest)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    server_rate *rate RT_CLEANUP(server_rate_freep) = server_rate_new(1600);
    uint64_t wait_ms;
    take_all(rate, "silent", 60, START);
    take_all(rate, "busy", 60, START);
    for (unsigned i = 0; i < 10000; i++) {
        rt_arena_reset(&arena);
        server_rate_take(rate, rt_arena_printf(&arena, "key %u", i), 60, START, &wait_ms);
        cr_assert(!server_rate_take(rate, RT_STR("busy"), 60, START, &wait_ms), "after %u", i);
    }
    cr_expect(server_rate_take(rate, RT_STR("silent"), 60, START, &wait_ms));
}

static _Atomic unsigned taken_by_all;

static void *take_often(void *rate)
{
    uint64_t wait_ms;
    for (unsigned i = 0; i < 20000; i++) {
        char key[2] = { (char)('a' + i % 4), 0 };
        taken_by_all += server_rate_take(rate, rt_str_of(key), 6000, START, &wait_ms);
    }
    return NULL;
}

Test(rate, many_threads_together_get_no_more)
{
    server_rate *rate RT_CLEANUP(server_rate_freep) = server_rate_new(0);
    pthread_t threads[8];
    for (size_t i = 0; i < RT_COUNT(threads); i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, take_often, rate), 0);
    for (size_t i = 0; i < RT_COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    cr_expect_eq(taken_by_all, 4 * 1000);
}
