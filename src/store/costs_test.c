/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sample_test.h"

#define DAY_MS UINT64_C(86400000)

/* Three runs on one day, one failed; one a week before; one in the month before; one untracked. */
static void record_runs(rt_store *store)
{
    const struct {
        const char *id, *status;
        uint64_t finished_ms;
        bool is_tracked;
    } runs[] = {
        { "r1", "SUCCESS", SAMPLE_MS, true },
        { "r2", "SUCCESS", SAMPLE_MS, true },
        { "r3", "FAILED", SAMPLE_MS, true },
        { "r4", "SUCCESS", SAMPLE_MS - 7 * DAY_MS, true },
        { "r5", "SUCCESS", SAMPLE_MS - 30 * DAY_MS, true },
        { "r6", "SUCCESS", SAMPLE_MS, false },
    };
    for (size_t i = 0; i < RT_COUNT(runs); i++) {
        rt_execution_row row = sample_run(runs[i].id, "local");
        row.status = rt_str_of(runs[i].status);
        row.finished_ms = runs[i].finished_ms;
        row.is_cost_tracked = runs[i].is_tracked;
        row.duration_us = 1000 * (i + 1);
        sample_record(store, &row);
    }
}

STORE_TEST(costs, days_and_months_add_up)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_cost_row *rows;
    size_t count;
    record_runs(store);
    cr_assert(rt_cost_rows(store, RT_STR("local"), RT_STR("daily"), 0, &arena, &rows, &count, &err),
              "%s", err.text);
    cr_assert_eq(count, 3);
    cr_expect(rt_str_eq_c(rows[0].date, "2026-11-15"));
    cr_expect(rt_str_eq_c(rows[0].period, "daily"));
    cr_expect_eq(rows[0].executions, 3);
    cr_expect_eq(rows[0].succeeded, 2);
    cr_expect_eq(rows[0].failed, 1);
    cr_expect_float_eq(rows[0].cost_usd, 0.75, 1e-9);
    cr_expect_float_eq(rows[0].average_cost_usd, 0.25, 1e-9);
    cr_expect_float_eq(rows[0].average_ms, 2, 1e-9);
    cr_expect_float_eq(rows[0].total_ms, 6, 1e-9);
    cr_expect_eq(rows[0].tokens, 60);
    cr_expect_eq(rows[0].tokens_saved, 300);
    cr_expect_eq(rows[0].tokens_cached, 15);
    cr_expect_float_eq(rows[0].savings_percent, 75, 1e-9);
    cr_assert(
        rt_cost_rows(store, RT_STR("local"), RT_STR("monthly"), 1, &arena, &rows, &count, &err));
    cr_assert_eq(count, 1);
    cr_expect(rt_str_eq_c(rows[0].date, "2026-11"));
    cr_expect_eq(rows[0].executions, 4);
}

STORE_TEST(costs, summaries_cover_their_period)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    record_runs(store);
    const struct {
        const char *organisation, *period, *date;
        uint64_t executions;
    } cases[] = {
        { "local", "day", "2026-11-15", 3 },
        { "local", "week", "2026-11-09", 3 },
        { "local", "month", "2026-11", 4 },
        { "local", "all", "", 5 },
        { "", "all", "", 5 },
        { "other", "all", "", 0 },
    };
    rt_cost_row row;
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        cr_assert(rt_cost_summary(store, rt_str_of(cases[i].organisation),
                                  rt_str_of(cases[i].period), SAMPLE_MS, &arena, &row, &err),
                  "%s", err.text);
        cr_expect_eq(row.executions, cases[i].executions, "case %zu", i);
        cr_expect(rt_str_eq_c(row.date, cases[i].date), "case %zu: %.*s", i, RT_FMT(row.date));
        cr_expect(rt_str_eq_c(row.period, cases[i].period));
    }
    cr_expect_eq(row.savings_percent, 0);
    cr_expect_eq(row.average_cost_usd, 0);
    cr_expect_not(
        rt_cost_summary(store, RT_STR("local"), RT_STR("year"), SAMPLE_MS, &arena, &row, &err));
    cr_expect_eq(err.code, RT_INVALID);
}

STORE_TEST(costs, a_budget_sees_what_a_key_and_an_organisation_spent_this_month)
{
    rt_error err = { 0 };
    double usd = -1;
    record_runs(store);
    rt_execution_row row = sample_run("other_key", "local");
    row.key_id = RT_STR("key_2");
    sample_record(store, &row);
    cr_assert(rt_cost_of_month(store, RT_STR("local"), RT_STR("key_1"), SAMPLE_MS, &usd, &err));
    cr_expect_float_eq(usd, 1.0, 1e-9);
    cr_assert(rt_cost_of_month(store, RT_STR("local"), RT_STR(""), SAMPLE_MS, &usd, &err));
    cr_expect_float_eq(usd, 1.25, 1e-9);
    cr_assert(rt_cost_of_month(store, RT_STR("local"), RT_STR("key_9"), SAMPLE_MS, &usd, &err));
    cr_expect_eq(usd, 0);
}
