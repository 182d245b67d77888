/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retention.c - what is too old goes, a few hundred rows at a time.
 *
 * The chain's links stay. Before the row of an execution is deleted its link is marked, in the same
 * transaction, and only rows whose link is marked are deleted: so a missing row without a mark is
 * always a fault to rt_audit_verify().
 */
#include "store/people.h"

#include <stdio.h>

#include "store/tables_internal.h"

#define DAY_MS UINT64_C(86400000)
#define BATCH  "500" /* rows of a transaction */

/* Which rows of each table are too old, by the column they are told apart by. */
typedef struct aged {
    const char *table, *time_column, *order, *also;
    size_t count; /* where in rt_retention they are counted */
} aged;

static const aged executions = { "executions", "created_ms", "created_ms, id", "",
                                 offsetof(rt_retention, executions) };
static const aged others[] = {
    { "audit_events", "time_ms", "id", " AND action <> 'data.erase'",
      offsetof(rt_retention, audit_events) },
    { "artifacts", "created_ms", "id", "", offsetof(rt_retention, artifacts) },
    { "sessions", "ended_ms", "id", " AND status <> 'ACTIVE' AND ended_ms > 0",
      offsetof(rt_retention, sessions) },
};

typedef struct keeping {
    rt_store *store;
    rt_str organisation_id;
    uint64_t before_ms, now_ms;
} keeping;

static void add_aged(store_query *query, const aged *what, const keeping *of)
{
    rt_buf_addf(&query->sql, " FROM %s WHERE %s", what->table, what->time_column);
    store_query_value(query, " < ", store_u64(of->before_ms));
    store_query_filter(query, "organisation_id", of->organisation_id);
    store_query_add(query, what->also);
}

/* "(SELECT id FROM …)": the oldest of them, as many as one transaction takes. */
static void add_batch(store_query *query, const aged *what, const keeping *of)
{
    store_query_add(query, "(SELECT id");
    add_aged(query, what, of);
    rt_buf_addf(&query->sql, " ORDER BY %s LIMIT " BATCH ")", what->order);
}

static uint64_t *count_of(rt_retention *out, const aged *what)
{
    return (uint64_t *)((char *)out + what->count);
}

static bool count_aged(const keeping *of, const aged *what, rt_retention *out, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows rows;
    store_query_add(&query, "SELECT COUNT(*)");
    add_aged(&query, what, of);
    if (!store_query_once(&query, of->store, &arena, &rows, err))
        return rt_wrap(err, "%s", what->table);
    *count_of(out, what) = (uint64_t)rt_rows_at(&rows, 0, 0).i64;
    return true;
}

/* -- Removing ---------------------------------------------------------------------------------- */

static bool mark_links(rt_tx *tx, const keeping *of, rt_error *err)
{
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    store_query_value(&query, "UPDATE provenance SET removed_ms = ", store_u64(of->now_ms));
    store_query_add(&query, " WHERE removed_ms = 0 AND execution_id IN ");
    add_batch(&query, &executions, of);
    return store_query_run(&query, tx, NULL, NULL, err);
}

static bool delete_batch(rt_tx *tx, const keeping *of, const aged *what, const char *unless,
                         uint64_t *removed, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows rows;
    rt_buf_addf(&query.sql, "DELETE FROM %s WHERE id IN ", what->table);
    add_batch(&query, what, of);
    store_query_add(&query, unless);
    if (!store_query_run(&query, tx, &arena, &rows, err))
        return false;
    *removed = rows.changed;
    return true;
}

static bool remove_runs(rt_tx *tx, const keeping *of, const aged *what, uint64_t *removed,
                        rt_error *err)
{
    return mark_links(tx, of, err) &&
           delete_batch(tx, of, what,
                        " AND NOT EXISTS (SELECT 1 FROM provenance p"
                        " WHERE p.execution_id = executions.id AND p.removed_ms = 0)",
                        removed, err);
}

static bool remove_others(rt_tx *tx, const keeping *of, const aged *what, uint64_t *removed,
                          rt_error *err)
{
    return delete_batch(tx, of, what, "", removed, err);
}

static bool remove_aged(const keeping *of, const aged *what, rt_retention *out, rt_error *err)
{
    uint64_t removed;
    do {
        rt_tx *tx RT_CLEANUP(rt_tx_rollbackp) = NULL;
        bool is_runs = what == &executions;
        if (!rt_tx_begin(of->store, RT_TX_WRITE, &tx, err) ||
            !(is_runs ? remove_runs : remove_others)(tx, of, what, &removed, err) ||
            !rt_tx_commit(&tx, err))
            return rt_wrap(err, "%s", what->table);
        *count_of(out, what) += removed;
    } while (removed);
    return true;
}

static bool audit_removal(const keeping *of, unsigned days, const rt_retention *out, rt_error *err)
{
    char detail[160];
    snprintf(detail, sizeof(detail),
             "{\"days\":%u,\"executions\":%llu,\"audit_events\":%llu,\"artifacts\":%llu,"
             "\"sessions\":%llu}",
             days, (unsigned long long)out->executions, (unsigned long long)out->audit_events,
             (unsigned long long)out->artifacts, (unsigned long long)out->sessions);
    rt_audit_event event = { .time_ms = of->now_ms,
                             .organisation_id = of->organisation_id,
                             .actor_type = RT_STR("system"),
                             .action = RT_STR("data.retention"),
                             .detail = rt_str_of(detail) };
    return rt_audit_add(of->store, &event, err);
}

bool rt_retention_apply(rt_store *store, rt_str organisation_id, unsigned days, uint64_t now_ms,
                        bool is_dry_run, rt_retention *out, rt_error *err)
{
    if (days == 0)
        return rt_fail(err, RT_INVALID, "retention is at least a day");
    uint64_t age_ms = days * DAY_MS;
    keeping of = { store, organisation_id, now_ms - RT_MIN(age_ms, now_ms), now_ms };
    rt_retention found = { 0 };
    bool (*apply)(const keeping *, const aged *, rt_retention *, rt_error *) =
        is_dry_run ? count_aged : remove_aged;
    if (!apply(&of, &executions, &found, err))
        return rt_wrap(err, "retention");
    for (size_t i = 0; i < RT_COUNT(others); i++)
        if (!apply(&of, &others[i], &found, err))
            return rt_wrap(err, "retention");
    bool is_any = found.executions || found.audit_events || found.artifacts || found.sessions;
    if (!is_dry_run && is_any && !audit_removal(&of, days, &found, err))
        return rt_wrap(err, "retention");
    *out = found;
    return true;
}
