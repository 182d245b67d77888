/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sample_test.h"

#include <stdio.h>

STORE_TEST(execution_stats, figures_are_exact)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    sample_organisation(store, "other");
    for (unsigned i = 0; i < 20; i++) {
        char id[32];
        snprintf(id, sizeof(id), "exec_%u", i);
        rt_execution_row row = sample_run(id, "local");
        row.duration_us = (i * 7 % 20) * 1000; /* 0 to 19 ms, in another order */
        row.status = i % 5 == 0 ? RT_STR("FAILED") : RT_STR("SUCCESS");
        row.language = i < 15 ? RT_STR("python") : RT_STR("javascript");
        row.denials = i == 3 ? 4 : 0;
        row.has_validation = i < 8;
        row.is_validation_passed = i < 6;
        row.is_pii_in = i == 1;
        row.is_cached = i == 2;
        row.code_agent_id = i == 4 ? RT_STR("agent_1") : (rt_str){ 0 };
        sample_record(store, &row);
    }
    rt_execution_row late = sample_run("late", "local"), theirs = sample_run("theirs", "other");
    late.status = RT_STR("TIMEOUT");
    late.created_ms = SAMPLE_MS + 1000;
    sample_record(store, &late);
    sample_record(store, &theirs);
    rt_execution_row queued = sample_run("queued", "local"), taken;
    cr_assert(rt_execution_reserve(store, &queued, &arena, &taken, &err), "%s", err.text);

    rt_execution_stats all, recent;
    cr_assert(rt_execution_stats_get(store, RT_STR(""), SAMPLE_MS + 1000, &arena, &recent, &err));
    cr_expect_eq(recent.total, 1);
    cr_expect_eq(recent.timed_out, 1);
    cr_assert(rt_execution_stats_get(store, RT_STR("local"), 0, &arena, &all, &err), "%s",
              err.text);
    cr_expect_eq(all.total, 21);
    cr_expect_eq(all.succeeded, 16);
    cr_expect_eq(all.failed, 5);
    cr_expect_eq(all.with_denials, 1);
    cr_expect_eq(all.denials, 4);
    cr_expect_eq(all.validations, 8);
    cr_expect_eq(all.validation_failures, 2);
    cr_expect_eq(all.pii_runs, 1);
    cr_expect_eq(all.cached, 1);
    cr_expect_eq(all.code_agent_runs, 1);
    cr_expect_eq(all.tokens, 21 * 20);
    cr_expect_float_eq(all.cost_usd, 21 * 0.25, 1e-9);
    /* 20 durations above 0: 1 to 19 ms, and 12.5 ms: places 10, 19 and 19. */
    cr_expect_eq(all.median_ms, 11);
    cr_expect_eq(all.p95_ms, 19);
    cr_expect_eq(all.p99_ms, 19);
    cr_expect_float_eq(all.average_ms, (190 + 12.5) / 21, 1e-9);
    cr_assert_eq(all.language_count, 2);
    cr_expect(rt_str_eq_c(all.by_language[0].name, "python"));
    cr_expect_eq(all.by_language[0].count, 16);
    cr_expect_eq(all.by_language[1].succeeded, 4);
    cr_expect_eq(all.runtime_count, 1);
}

STORE_TEST(execution_stats, of_nothing_all_figures_are_zero)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_execution_stats stats;
    cr_assert(rt_execution_stats_get(store, RT_STR("local"), 0, &arena, &stats, &err), "%s",
              err.text);
    cr_expect_eq(stats.total, 0);
    cr_expect_eq(stats.p99_ms, 0);
    cr_expect_eq(stats.average_ms, 0);
    cr_expect_eq(stats.language_count, 0);
}
