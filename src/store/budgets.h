/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budgets.h - what an organisation means to spend in a month, and the one word of warning.
 *
 * Promise: when what was spent reaches a budget's threshold there is one alert, however many nodes
 * look at the same moment and however often; the next comes with the next month, or with another
 * threshold.
 */
#ifndef RT_STORE_BUDGETS_H
#define RT_STORE_BUDGETS_H

#include "store/db.h"

#define RT_BUDGET_PERCENT 80 /* where nobody said */

typedef struct rt_budget {
    double usd_month;     /* 0: none */
    double alert_percent; /* of it */
    double spent_usd;     /* this month */
    bool is_own;          /* the organisation's, not the operator's for all */
} rt_budget;

typedef struct rt_budget_alert {
    rt_str organisation_id, month;
    double alert_percent, spent_usd, budget_usd;
    uint64_t created_ms;
} rt_budget_alert;

bool rt_budget_set(rt_store *store, rt_str organisation_id, double usd_month, double alert_percent,
                   uint64_t now_ms, rt_error *err);
/* `usual` is the operator's budget for who has none; 0: none. */
bool rt_budget_get(rt_store *store, rt_str organisation_id, double usual, uint64_t now_ms,
                   rt_budget *out, rt_error *err);
/* Looks at this month; those that are new, and nobody else gets. */
bool rt_budget_raise(rt_store *store, double usual, uint64_t now_ms, rt_arena *arena,
                     rt_budget_alert **out, size_t *count, rt_error *err);
/* Newest first; an empty organisation: all. At most 500, 0: 50. */
bool rt_budget_alerts(rt_store *store, rt_str organisation_id, unsigned limit, rt_arena *arena,
                      rt_budget_alert **out, size_t *count, rt_error *err);
void rt_budget_alert_write(const rt_budget_alert *alert, rt_json_writer *w);

#endif
