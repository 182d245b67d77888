/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budgets.c - budgets and their alerts.
 *
 * Whether an alert was given is a row with the threshold in its key: whoever inserts it gives it.
 */
#include "store/budgets.h"

#include "store/costs.h"
#include "store/tables_internal.h"

#define MONTH_LEN    7 /* 2026-11 */
#define LIST_DEFAULT 50
#define LIST_MAX     500

#define COLUMN(member, kind) STORE_COLUMN(rt_budget_alert, member, kind, NULL, false)

static const store_column columns[] = {
    COLUMN(organisation_id, RT_SQL_TEXT), COLUMN(month, RT_SQL_TEXT),
    COLUMN(alert_percent, RT_SQL_DOUBLE), COLUMN(spent_usd, RT_SQL_DOUBLE),
    COLUMN(budget_usd, RT_SQL_DOUBLE),    COLUMN(created_ms, RT_SQL_I64),
};

static const store_table alerts = { "budget_alerts", columns, RT_COUNT(columns) };

bool rt_budget_set(rt_store *store, rt_str organisation_id, double usd_month, double alert_percent,
                   uint64_t now_ms, rt_error *err)
{
    rt_sql_value values[] = { rt_sql_text(organisation_id), rt_sql_double(usd_month),
                              rt_sql_double(alert_percent), store_u64(now_ms) };
    return rt_sql_once(store, RT_TX_WRITE,
                       "INSERT INTO budgets (organisation_id, usd_month, alert_percent, updated_ms)"
                       " VALUES ($1, $2, $3, $4) ON CONFLICT (organisation_id) DO UPDATE SET"
                       " usd_month = excluded.usd_month, alert_percent = excluded.alert_percent,"
                       " updated_ms = excluded.updated_ms",
                       values, RT_COUNT(values), NULL, NULL, err) ||
           rt_wrap(err, "keep the budget");
}

bool rt_budget_get(rt_store *store, rt_str organisation_id, double usual, uint64_t now_ms,
                   rt_budget *out, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_sql_value values[] = { rt_sql_text(organisation_id) };
    rt_rows rows;
    double spent = 0;
    if (!rt_sql_once(store, RT_TX_READ,
                     "SELECT usd_month, alert_percent FROM budgets WHERE organisation_id = $1",
                     values, 1, &arena, &rows, err) ||
        !rt_cost_of_month(store, organisation_id, (rt_str){ 0 }, now_ms, &spent, err))
        return rt_wrap(err, "the budget");
    *out = (rt_budget){ .usd_month = rows.count ? rt_rows_at(&rows, 0, 0).number : usual,
                        .alert_percent =
                            rows.count ? rt_rows_at(&rows, 0, 1).number : RT_BUDGET_PERCENT,
                        .spent_usd = spent,
                        .is_own = rows.count > 0 };
    return true;
}

static bool find_reached(rt_store *store, double usual, rt_str month, rt_arena *arena,
                         rt_rows *rows, rt_error *err)
{
    rt_sql_value values[] = { rt_sql_text(month), rt_sql_double(usual),
                              rt_sql_double(RT_BUDGET_PERCENT) };
    return rt_sql_once(store, RT_TX_READ,
                       "SELECT c.organisation_id, c.date,"
                       " COALESCE(b.alert_percent, $3), c.cost_usd, COALESCE(b.usd_month, $2)"
                       " FROM costs c LEFT JOIN budgets b ON b.organisation_id = c.organisation_id"
                       " LEFT JOIN budget_alerts a ON a.organisation_id = c.organisation_id"
                       " AND a.month = c.date AND a.alert_percent = COALESCE(b.alert_percent, $3)"
                       " WHERE c.period = 'monthly' AND c.date = $1 AND a.month IS NULL"
                       " AND COALESCE(b.usd_month, $2) > 0 AND c.cost_usd >="
                       " COALESCE(b.usd_month, $2) * COALESCE(b.alert_percent, $3) / 100",
                       values, RT_COUNT(values), arena, rows, err);
}

static bool give(rt_store *store, const rt_budget_alert *alert, rt_arena *arena, bool *is_ours,
                 rt_error *err)
{
    rt_buf sql RT_CLEANUP(rt_buf_done) = { 0 };
    rt_sql_value values[STORE_MAX_COLUMNS];
    rt_rows rows;
    store_table_insert(&alerts, &sql);
    rt_buf_add(&sql, RT_STR(" ON CONFLICT DO NOTHING"));
    store_table_bind(&alerts, alert, values);
    if (!rt_sql_once(store, RT_TX_WRITE, store_statement(&sql), values, alerts.count, arena, &rows,
                     err))
        return false;
    *is_ours = rows.changed > 0;
    return true;
}

bool rt_budget_raise(rt_store *store, double usual, uint64_t now_ms, rt_arena *arena,
                     rt_budget_alert **out, size_t *count, rt_error *err)
{
    char text[RT_ISO8601_SIZE];
    rt_rows rows;
    rt_iso8601_write(text, now_ms);
    *count = 0;
    if (!find_reached(store, usual, (rt_str){ text, MONTH_LEN }, arena, &rows, err))
        return rt_wrap(err, "look at the budgets");
    *out = rt_arena_alloc(arena, (rows.count + 1) * sizeof(**out));
    for (size_t i = 0; i < rows.count; i++) {
        bool is_ours;
        rt_budget_alert alert = { .organisation_id = rt_rows_at(&rows, i, 0).text,
                                  .month = rt_rows_at(&rows, i, 1).text,
                                  .alert_percent = rt_rows_at(&rows, i, 2).number,
                                  .spent_usd = rt_rows_at(&rows, i, 3).number,
                                  .budget_usd = rt_rows_at(&rows, i, 4).number,
                                  .created_ms = now_ms };
        if (!give(store, &alert, arena, &is_ours, err))
            return rt_wrap(err, "a budget's alert");
        if (is_ours)
            (*out)[(*count)++] = alert;
    }
    return true;
}

bool rt_budget_alerts(rt_store *store, rt_str organisation_id, unsigned limit, rt_arena *arena,
                      rt_budget_alert **out, size_t *count, rt_error *err)
{
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows rows;
    store_query_add(&query, "SELECT ");
    store_table_names(&alerts, "", &query.sql);
    store_query_add(&query, " FROM budget_alerts WHERE TRUE");
    store_query_filter(&query, "organisation_id", organisation_id);
    store_query_value(&query, " ORDER BY created_ms DESC LIMIT ",
                      rt_sql_i64(limit ? RT_MIN(limit, (unsigned)LIST_MAX) : LIST_DEFAULT));
    if (!store_query_once(&query, store, arena, &rows, err))
        return rt_wrap(err, "list alerts");
    *out = store_table_read_all(&alerts, &rows, sizeof(**out), arena);
    *count = rows.count;
    return true;
}

void rt_budget_alert_write(const rt_budget_alert *alert, rt_json_writer *w)
{
    char time[RT_ISO8601_SIZE];
    rt_iso8601_write(time, alert->created_ms);
    rt_jw_object(w);
    rt_jw_kstr(w, "organisation_id", alert->organisation_id);
    rt_jw_kstr(w, "month", alert->month);
    rt_jw_kdouble(w, "alert_percent", alert->alert_percent);
    rt_jw_kdouble(w, "spent_usd", alert->spent_usd);
    rt_jw_kdouble(w, "budget_usd", alert->budget_usd);
    rt_jw_kstr(w, "created_at", rt_str_of(time));
    rt_jw_end(w);
}
