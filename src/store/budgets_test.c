/* SPDX-License-Identifier: Apache-2.0 */
#include "store/fixture_test.h"

#include "store/budgets.h"
#include "store/costs.h"
#include "store/sample_test.h"

#define NOW 1794700800000 /* in November 2026 */

static void spend(rt_store *store, const char *id, double usd)
{
    rt_error err = { 0 };
    rt_execution_row row = { .id = rt_str_of(id),
                             .organisation_id = RT_STR("local"),
                             .language = RT_STR("python"),
                             .status = RT_STR("SUCCESS"),
                             .cost_usd = usd,
                             .gpu_us = 90000000,
                             .is_cost_tracked = true,
                             .created_ms = NOW,
                             .finished_ms = NOW };
    cr_assert(rt_execution_record(store, &row, &err), "%s", err.text);
}

static size_t raised(rt_store *store, double usual)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_budget_alert *alerts;
    size_t count;
    cr_assert(rt_budget_raise(store, usual, NOW, &arena, &alerts, &count, &err), "%s", err.text);
    return count;
}

STORE_TEST(budgets, warn_once_when_their_threshold_is_reached)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_budget_alert *alerts;
    rt_budget budget;
    size_t count;
    cr_assert(rt_budget_set(store, RT_STR("local"), 10, 50, NOW, &err), "%s", err.text);
    spend(store, "exec_1", 4);
    cr_assert_eq(raised(store, 0), 0);
    spend(store, "exec_2", 2);
    cr_assert_eq(raised(store, 0), 1);
    spend(store, "exec_3", 9);
    cr_assert_eq(raised(store, 0), 0);
    cr_assert(rt_budget_set(store, RT_STR("local"), 10, 90, NOW, &err), "%s", err.text);
    cr_assert_eq(raised(store, 0), 1, "another threshold is another alert");
    cr_assert(rt_budget_alerts(store, RT_STR("local"), 0, &arena, &alerts, &count, &err));
    cr_assert_eq(count, 2);
    cr_assert(rt_budget_alerts(store, RT_STR("rival"), 0, &arena, &alerts, &count, &err));
    cr_assert_eq(count, 0);
    cr_assert(rt_budget_get(store, RT_STR("local"), 3, NOW, &budget, &err), "%s", err.text);
    cr_assert(budget.is_own && budget.usd_month == 10 && budget.spent_usd == 15);
}

STORE_TEST(budgets, of_the_operator_hold_for_who_has_none)
{
    rt_error err = { 0 };
    rt_budget budget;
    spend(store, "exec_1", 4);
    cr_assert_eq(raised(store, 0), 0);
    cr_assert_eq(raised(store, 5), 1);
    cr_assert_eq(raised(store, 5), 0);
    cr_assert(rt_budget_get(store, RT_STR("local"), 5, NOW, &budget, &err), "%s", err.text);
    cr_assert(!budget.is_own && budget.alert_percent == RT_BUDGET_PERCENT);
}

STORE_TEST(budgets, are_beside_a_ledger_with_gpu_minutes_of_their_own)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_cost_row *rows;
    size_t count;
    spend(store, "exec_1", 1);
    spend(store, "exec_2", 1);
    cr_assert(
        rt_cost_rows(store, RT_STR("local"), RT_STR("monthly"), 0, &arena, &rows, &count, &err),
        "%s", err.text);
    cr_assert(count == 1 && rows[0].gpu_minutes == 3 && rows[0].cost_usd == 2);
}
