/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execution_stats.c - figures over the runs that have ended since a moment.
 *
 * The database counts; no list of runs is loaded here. A percentile is the run at its place in the
 * order of durations, which the database finds too.
 */
#include "store/tables_internal.h"

#define DAY_MS "86400000"

/* Who is asked about, and in which transaction. */
typedef struct scope {
    rt_tx *tx;
    const rt_execution_scope *runs;
    rt_arena *arena;
} scope;

/* What all statements here are about: ended, theirs, since. */
static void add_scope(store_query *query, const scope *of)
{
    store_query_add(query, " FROM executions WHERE status NOT IN ('QUEUED', 'RUNNING')");
    store_query_filter(query, "organisation_id", of->runs->organisation_id);
    store_query_filter(query, "code_agent_id", of->runs->code_agent_id);
    if (of->runs->is_agents_only)
        store_query_add(query, " AND code_agent_id IS NOT NULL");
    if (of->runs->since_ms)
        store_query_value(query, " AND created_ms >= ", store_u64(of->runs->since_ms));
}

typedef struct counted {
    uint64_t with_duration; /* runs that took any time: the n of the percentiles */
    double average_us;
} counted;

static bool read_totals(const scope *of, rt_execution_stats *out, counted *more, rt_error *err)
{
    const store_figure figures[] = {
        { "COUNT(*)", &out->total, NULL },
        { STORE_COUNT("status = 'SUCCESS'"), &out->succeeded, NULL },
        { STORE_COUNT("status <> 'SUCCESS'"), &out->failed, NULL },
        { STORE_COUNT("status = 'TIMEOUT' OR is_timed_out"), &out->timed_out, NULL },
        { STORE_COUNT("denials > 0"), &out->with_denials, NULL },
        { STORE_SUM("denials"), &out->denials, NULL },
        { STORE_COUNT("is_validation_passed IS NOT NULL"), &out->validations, NULL },
        { STORE_COUNT("NOT is_validation_passed"), &out->validation_failures, NULL },
        { STORE_COUNT("is_pii_in OR is_pii_out"), &out->pii_runs, NULL },
        { STORE_COUNT("code_agent_id IS NOT NULL"), &out->code_agent_runs, NULL },
        { STORE_COUNT("is_cached"), &out->cached, NULL },
        { STORE_SUM("tokens"), &out->tokens, NULL },
        { STORE_SUM("tokens_saved"), &out->tokens_saved, NULL },
        { STORE_COUNT("duration_us > 0"), &more->with_duration, NULL },
        { STORE_AVERAGE("duration_us"), NULL, &more->average_us },
        { STORE_AVERAGE("memory_peak_bytes"), NULL, &out->average_memory_bytes },
        { STORE_SUM_USD("cost_usd"), NULL, &out->cost_usd },
    };
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows rows;
    store_query_add(&query, "SELECT ");
    store_figures_names(figures, RT_COUNT(figures), &query.sql);
    add_scope(&query, of);
    if (!store_query_run(&query, of->tx, of->arena, &rows, err))
        return rt_wrap(err, "count executions");
    store_figures_read(figures, RT_COUNT(figures), &rows, 0, 0);
    out->average_ms = more->average_us / 1000;
    return true;
}

/* The durations at floor(n * percent / 100) of the sorted ones, counted from 0: one sort for all.
 */
static bool read_percentiles(const scope *of, uint64_t n, rt_execution_stats *out, rt_error *err)
{
    const struct {
        unsigned percent;
        double *ms;
    } wanted[] = { { 50, &out->median_ms }, { 95, &out->p95_ms }, { 99, &out->p99_ms } };
    if (n == 0)
        return true;
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows rows;
    store_query_add(&query, "SELECT r.place, r.duration_us FROM (SELECT duration_us,"
                            " ROW_NUMBER() OVER (ORDER BY duration_us) - 1 AS place");
    add_scope(&query, of);
    store_query_add(&query, " AND duration_us > 0) r WHERE r.place IN (");
    for (size_t i = 0; i < RT_COUNT(wanted); i++)
        store_query_value(&query, i ? ", " : "", store_u64(n * wanted[i].percent / 100));
    store_query_add(&query, ")");
    if (!store_query_run(&query, of->tx, of->arena, &rows, err))
        return rt_wrap(err, "percentiles");
    for (size_t i = 0; i < RT_COUNT(wanted); i++)
        for (size_t k = 0; k < rows.count; k++)
            if ((uint64_t)rt_rows_at(&rows, k, 0).i64 == n * wanted[i].percent / 100)
                *wanted[i].ms = rt_rows_at(&rows, k, 1).number / 1000;
    return true;
}

/* `column` is a literal of ours. */
static bool read_groups(const scope *of, const char *column, rt_execution_group **groups,
                        size_t *count, rt_error *err)
{
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows rows;
    rt_buf_addf(&query.sql,
                "SELECT COALESCE(%s, ''), COUNT(*), " STORE_COUNT(
                    "status = 'SUCCESS'") ", " STORE_AVERAGE("duration_us"),
                column);
    add_scope(&query, of);
    rt_buf_addf(&query.sql, " GROUP BY %s ORDER BY 2 DESC, 1", column);
    if (!store_query_run(&query, of->tx, of->arena, &rows, err))
        return rt_wrap(err, "count executions by %s", column);
    *groups = rt_arena_alloc(of->arena, rows.count * sizeof(**groups));
    *count = rows.count;
    for (size_t i = 0; i < rows.count; i++)
        (*groups)[i] = (rt_execution_group){
            .name = rt_rows_at(&rows, i, 0).text,
            .count = (uint64_t)rt_rows_at(&rows, i, 1).i64,
            .succeeded = (uint64_t)rt_rows_at(&rows, i, 2).i64,
            .average_ms = rt_rows_at(&rows, i, 3).number / 1000,
        };
    return true;
}

static bool read_days(const scope *of, rt_execution_stats *out, rt_error *err)
{
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows rows;
    store_query_add(&query, "SELECT created_ms / " DAY_MS ", COUNT(*), " STORE_COUNT(
                                "status = 'SUCCESS'"));
    add_scope(&query, of);
    store_query_add(&query, " GROUP BY 1 ORDER BY 1");
    if (!store_query_run(&query, of->tx, of->arena, &rows, err))
        return rt_wrap(err, "count executions by day");
    out->days = rt_arena_alloc(of->arena, (rows.count + 1) * sizeof(*out->days));
    out->day_count = rows.count;
    for (size_t i = 0; i < rows.count; i++)
        out->days[i] = (rt_execution_day){
            .start_ms = (uint64_t)rt_rows_at(&rows, i, 0).i64 * (24 * 3600 * 1000ull),
            .count = (uint64_t)rt_rows_at(&rows, i, 1).i64,
            .succeeded = (uint64_t)rt_rows_at(&rows, i, 2).i64,
        };
    return true;
}

bool rt_execution_stats_get(rt_store *store, rt_str organisation_id, uint64_t since_ms,
                            rt_arena *arena, rt_execution_stats *out, rt_error *err)
{
    rt_execution_scope all = { .organisation_id = organisation_id, .since_ms = since_ms };
    return rt_execution_stats_of(store, &all, arena, out, err);
}

bool rt_execution_stats_of(rt_store *store, const rt_execution_scope *runs, rt_arena *arena,
                           rt_execution_stats *out, rt_error *err)
{
    rt_tx *tx RT_CLEANUP(rt_tx_rollbackp) = NULL;
    rt_execution_stats stats = { 0 };
    counted more = { 0 };
    if (!rt_tx_begin(store, RT_TX_READ, &tx, err))
        return rt_wrap(err, "figures of executions");
    scope of = { tx, runs, arena };
    if (!read_totals(&of, &stats, &more, err) ||
        !read_percentiles(&of, more.with_duration, &stats, err) ||
        !read_groups(&of, "language", &stats.by_language, &stats.language_count, err) ||
        !read_groups(&of, "runtime", &stats.by_runtime, &stats.runtime_count, err) ||
        !read_days(&of, &stats, err) || !rt_tx_commit(&tx, err))
        return rt_wrap(err, "figures of executions");
    *out = stats;
    return true;
}
