/* SPDX-License-Identifier: Apache-2.0 */
/*
 * costs.h - what runs cost, by day and month, and what they saved.
 *
 * The rows are kept by rt_execution_record(), in its transaction; here they are read.
 */
#ifndef RT_STORE_COSTS_H
#define RT_STORE_COSTS_H

#include "store/db.h"

typedef struct rt_cost_row {
    rt_str date;   /* "2026-11-15", or "2026-11" */
    rt_str period; /* daily, monthly */
    uint64_t executions, succeeded, failed;
    double cost_usd, average_cost_usd;
    uint64_t tokens, tokens_saved, tokens_cached;
    double average_ms, total_ms;
    double gpu_minutes; /* of runs that had GPUs, by the time each had one */
    double traditional_cost_usd, savings_percent;
} rt_cost_row;

bool rt_cost_rows(rt_store *store, rt_str organisation_id, rt_str period, unsigned limit,
                  rt_arena *arena, rt_cost_row **rows, size_t *count, rt_error *err);

/* All rows of a period ("day", "week", "month", "all") in one. */
bool rt_cost_summary(rt_store *store, rt_str organisation_id, rt_str period, uint64_t now_ms,
                     rt_arena *arena, rt_cost_row *out, rt_error *err);

/* What a key or an organisation has spent this month; for budgets. */
bool rt_cost_of_month(rt_store *store, rt_str organisation_id, rt_str key_id, uint64_t now_ms,
                      double *usd, rt_error *err);

#endif
