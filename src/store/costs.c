/* SPDX-License-Identifier: Apache-2.0 */
/*
 * costs.c - what runs cost: kept as sums, by day and by month; the rest is worked out when read.
 *
 * Days and months are those of UTC, by when the run ended. A sum over all organisations is for the
 * operator, who asks with an empty one.
 */
#include "store/costs.h"

#include "store/tables_internal.h"

#define DAY_MS       UINT64_C(86400000)
#define DATE_LEN     10 /* 2026-11-15 */
#define MONTH_LEN    7  /* 2026-11 */
#define ROWS_DEFAULT 31
#define ROWS_MAX     1000

static rt_str date_of(uint64_t ms, size_t len, char out[RT_ISO8601_SIZE])
{
    rt_iso8601_write(out, ms);
    return (rt_str){ out, len };
}

/* -- Adding ------------------------------------------------------------------------------------ */

static bool add_to_key(rt_tx *tx, const rt_execution_row *row, rt_str month, rt_error *err)
{
    if (row->key_id.len == 0)
        return true;
    rt_sql_value values[] = { rt_sql_text(row->organisation_id), rt_sql_text(row->key_id),
                              rt_sql_text(month), rt_sql_double(row->cost_usd) };
    return rt_sql(tx,
                  "INSERT INTO key_costs (organisation_id, key_id, month, executions, cost_usd)"
                  " VALUES ($1, $2, $3, 1, $4)"
                  " ON CONFLICT (organisation_id, key_id, month) DO UPDATE SET"
                  " executions = key_costs.executions + 1,"
                  " cost_usd = key_costs.cost_usd + excluded.cost_usd",
                  values, RT_COUNT(values), NULL, NULL, err);
}

bool store_cost_add(rt_tx *tx, const rt_execution_row *row, rt_error *err)
{
    if (!row->is_cost_tracked)
        return true;
    char text[RT_ISO8601_SIZE];
    uint64_t ended_ms = row->finished_ms ? row->finished_ms : row->created_ms;
    rt_str date = date_of(ended_ms, DATE_LEN, text), month = { text, MONTH_LEN };
    bool is_success = rt_str_eq(row->status, RT_STR("SUCCESS"));
    rt_sql_value values[] = {
        rt_sql_text(row->organisation_id),
        rt_sql_text(date),
        rt_sql_text(month),
        rt_sql_i64(is_success),
        rt_sql_i64(!is_success),
        rt_sql_double(row->cost_usd),
        store_u64(row->tokens),
        store_u64(row->tokens_saved),
        store_u64(row->tokens_cached),
        rt_sql_double((double)row->duration_us / 1000),
        rt_sql_double(row->traditional_cost_usd),
        rt_sql_double((double)row->gpu_us / 60e6),
    };
    if (!rt_sql(tx,
                "INSERT INTO costs (organisation_id, date, period, executions, succeeded, failed,"
                " cost_usd, tokens, tokens_saved, tokens_cached, total_ms, traditional_cost_usd,"
                " gpu_minutes)"
                " VALUES ($1, $2, 'daily', 1, $4, $5, $6, $7, $8, $9, $10, $11, $12),"
                " ($1, $3, 'monthly', 1, $4, $5, $6, $7, $8, $9, $10, $11, $12)"
                " ON CONFLICT (organisation_id, date, period) DO UPDATE SET"
                " executions = costs.executions + 1,"
                " succeeded = costs.succeeded + excluded.succeeded,"
                " failed = costs.failed + excluded.failed,"
                " cost_usd = costs.cost_usd + excluded.cost_usd,"
                " tokens = costs.tokens + excluded.tokens,"
                " tokens_saved = costs.tokens_saved + excluded.tokens_saved,"
                " tokens_cached = costs.tokens_cached + excluded.tokens_cached,"
                " total_ms = costs.total_ms + excluded.total_ms,"
                " traditional_cost_usd ="
                " costs.traditional_cost_usd + excluded.traditional_cost_usd,"
                " gpu_minutes = costs.gpu_minutes + excluded.gpu_minutes",
                values, RT_COUNT(values), NULL, NULL, err) ||
        !add_to_key(tx, row, month, err))
        return rt_wrap(err, "costs");
    return true;
}

/* -- Reading ----------------------------------------------------------------------------------- */

/* What a row or a summary is made of. */
#define SUMS 10

static void set_sums(rt_cost_row *row, store_figure figures[SUMS])
{
    const store_figure sums[SUMS] = {
        { STORE_SUM("executions"), &row->executions, NULL },
        { STORE_SUM("succeeded"), &row->succeeded, NULL },
        { STORE_SUM("failed"), &row->failed, NULL },
        { STORE_SUM("tokens"), &row->tokens, NULL },
        { STORE_SUM("tokens_saved"), &row->tokens_saved, NULL },
        { STORE_SUM("tokens_cached"), &row->tokens_cached, NULL },
        { STORE_SUM_USD("cost_usd"), NULL, &row->cost_usd },
        { STORE_SUM_USD("total_ms"), NULL, &row->total_ms },
        { STORE_SUM_USD("traditional_cost_usd"), NULL, &row->traditional_cost_usd },
        { STORE_SUM_USD("gpu_minutes"), NULL, &row->gpu_minutes },
    };
    memcpy(figures, sums, sizeof(sums));
}

static void add_sums(store_query *query)
{
    store_figure figures[SUMS];
    set_sums(&(rt_cost_row){ 0 }, figures);
    store_figures_names(figures, SUMS, &query->sql);
}

static void read_sums(const rt_rows *rows, size_t row, size_t from, rt_cost_row *out)
{
    store_figure figures[SUMS];
    set_sums(out, figures);
    store_figures_read(figures, SUMS, rows, row, from);
    double n = out->executions ? (double)out->executions : 1, whole = out->traditional_cost_usd;
    out->average_cost_usd = out->cost_usd / n;
    out->average_ms = out->total_ms / n;
    out->savings_percent = whole > 0 ? 100 * (whole - out->cost_usd) / whole : 0;
}

bool rt_cost_rows(rt_store *store, rt_str organisation_id, rt_str period, unsigned limit,
                  rt_arena *arena, rt_cost_row **rows, size_t *count, rt_error *err)
{
    if (!rt_str_eq_c(period, "daily") && !rt_str_eq_c(period, "monthly"))
        return rt_fail(err, RT_INVALID, "a period is daily or monthly");
    if (limit > ROWS_MAX)
        return rt_fail(err, RT_INVALID, "a list of costs has at most %d rows", ROWS_MAX);
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows found;
    store_query_add(&query, "SELECT date, ");
    add_sums(&query);
    store_query_add(&query, " FROM costs WHERE TRUE");
    store_query_filter(&query, "organisation_id", organisation_id);
    store_query_filter(&query, "period", period);
    store_query_value(&query, " GROUP BY date ORDER BY date DESC LIMIT ",
                      rt_sql_i64(limit ? limit : ROWS_DEFAULT));
    if (!store_query_once(&query, store, arena, &found, err))
        return rt_wrap(err, "read the costs");
    *rows = rt_arena_alloc(arena, found.count * sizeof(**rows));
    *count = found.count;
    for (size_t i = 0; i < found.count; i++) {
        (*rows)[i].date = rt_rows_at(&found, i, 0).text;
        (*rows)[i].period = rt_arena_str(arena, period);
        read_sums(&found, i, 1, &(*rows)[i]);
    }
    return true;
}

/* The first day of a summary, or of the months when there is no first day. */
static const struct {
    const char *name, *rows;
    unsigned days;   /* back from today, counting today; 0: from the first of the month */
    size_t name_len; /* of the date that stands for it */
} summaries[] = {
    { "day", "daily", 1, DATE_LEN },
    { "week", "daily", 7, DATE_LEN },
    { "month", "monthly", 0, MONTH_LEN },
    { "all", "monthly", 0, 0 },
};

bool rt_cost_summary(rt_store *store, rt_str organisation_id, rt_str period, uint64_t now_ms,
                     rt_arena *arena, rt_cost_row *out, rt_error *err)
{
    size_t kind = 0;
    while (kind < RT_COUNT(summaries) && !rt_str_eq_c(period, summaries[kind].name))
        kind++;
    if (kind == RT_COUNT(summaries))
        return rt_fail(err, RT_INVALID, "a summary is of a day, week, month or all");
    char text[RT_ISO8601_SIZE];
    uint64_t back_ms = summaries[kind].days ? (summaries[kind].days - 1) * DAY_MS : 0;
    rt_str since = date_of(now_ms - RT_MIN(back_ms, now_ms), summaries[kind].name_len, text);
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows rows;
    store_query_add(&query, "SELECT ");
    add_sums(&query);
    store_query_add(&query, " FROM costs WHERE TRUE");
    store_query_filter(&query, "organisation_id", organisation_id);
    store_query_filter(&query, "period", rt_str_of(summaries[kind].rows));
    if (since.len)
        store_query_value(&query, " AND date >= ", rt_sql_text(since));
    if (!store_query_once(&query, store, arena, &rows, err))
        return rt_wrap(err, "sum up the costs");
    *out = (rt_cost_row){ .date = rt_arena_str(arena, since),
                          .period = rt_str_of(summaries[kind].name) };
    read_sums(&rows, 0, 0, out);
    return true;
}

bool rt_cost_of_month(rt_store *store, rt_str organisation_id, rt_str key_id, uint64_t now_ms,
                      double *usd, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    char text[RT_ISO8601_SIZE];
    rt_str month = date_of(now_ms, MONTH_LEN, text);
    rt_rows rows;
    rt_sql_value values[] = { rt_sql_text(organisation_id), rt_sql_text(month),
                              rt_sql_text(key_id) };
    const char *sql = key_id.len ? "SELECT cost_usd FROM key_costs"
                                   " WHERE organisation_id = $1 AND month = $2 AND key_id = $3"
                                 : "SELECT cost_usd FROM costs"
                                   " WHERE organisation_id = $1 AND date = $2"
                                   " AND period = 'monthly'";
    if (!rt_sql_once(store, RT_TX_READ, sql, values, key_id.len ? 3 : 2, &arena, &rows, err))
        return rt_wrap(err, "the costs of this month");
    *usd = rt_rows_at(&rows, 0, 0).number;
    return true;
}
