/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit.c - the lines of the audit: written, and read newest first.
 *
 * An action is a word like "key.create". The event types of S0-66 are in capitals; those are kept
 * in event_type too, where the database refuses one that is not on its list.
 */
#include "store/tables_internal.h"

#define LIST_DEFAULT 50
#define LIST_MAX     500

#define TEXT(member) STORE_COLUMN(rt_audit_event, member, RT_SQL_TEXT, NULL, false)
#define I64(member)  STORE_COLUMN(rt_audit_event, member, RT_SQL_I64, NULL, false)

static const store_column columns[] = {
    I64(id),      I64(time_ms),  TEXT(organisation_id), TEXT(actor_id), TEXT(actor_type),
    TEXT(action), TEXT(subject), TEXT(outcome),         TEXT(detail),   TEXT(address),
};

static const store_table audit_events = { "audit_events", columns, RT_COUNT(columns) };

bool store_audit_add(rt_tx *tx, const rt_audit_event *event, rt_error *err)
{
    bool is_event_type =
        event->action.len && event->action.ptr[0] >= 'A' && event->action.ptr[0] <= 'Z';
    rt_sql_value values[] = {
        store_u64(event->time_ms ? event->time_ms : rt_wall_ms()),
        rt_sql_text(event->organisation_id.len ? event->organisation_id : RT_STR("")),
        store_text(event->actor_id),
        store_text(event->actor_type),
        rt_sql_text(event->action),
        is_event_type ? rt_sql_text(event->action) : rt_sql_null(),
        store_text(event->subject),
        rt_sql_text(event->outcome.len ? event->outcome : RT_STR("ok")),
        rt_sql_text(event->detail.len ? event->detail : RT_STR("{}")),
        store_text(event->address),
    };
    if (!rt_sql(tx,
                "INSERT INTO audit_events (time_ms, organisation_id, actor_id, actor_type, action,"
                " event_type, subject, outcome, detail, address)"
                " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
                values, RT_COUNT(values), NULL, NULL, err))
        return rt_wrap(err, "audit %.*s", RT_FMT(event->action));
    return true;
}

bool rt_audit_add(rt_store *store, const rt_audit_event *event, rt_error *err)
{
    rt_tx *tx RT_CLEANUP(rt_tx_rollbackp) = NULL;
    return rt_tx_begin(store, RT_TX_WRITE, &tx, err) && store_audit_add(tx, event, err) &&
           rt_tx_commit(&tx, err);
}

bool rt_audit_list(rt_store *store, rt_str organisation_id, rt_str action, uint64_t since_ms,
                   int64_t before_id, unsigned limit, rt_arena *arena, rt_audit_event **rows,
                   size_t *count, rt_error *err)
{
    if (limit > LIST_MAX)
        return rt_fail(err, RT_INVALID, "a list has at most %d rows", LIST_MAX);
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    store_query_add(&query, "SELECT ");
    store_table_names(&audit_events, "", &query.sql);
    store_query_add(&query, " FROM audit_events WHERE TRUE");
    store_query_filter(&query, "organisation_id", organisation_id);
    store_query_filter(&query, "action", action);
    if (action.len && !rt_str_eq(action, RT_STR("execution.run")))
        store_query_add(&query, " AND action <> 'execution.run'"); /* what its index is about */
    if (since_ms)
        store_query_value(&query, " AND time_ms >= ", store_u64(since_ms));
    if (before_id)
        store_query_value(&query, " AND id < ", rt_sql_i64(before_id));
    store_query_value(&query, " ORDER BY id DESC LIMIT ", rt_sql_i64(limit ? limit : LIST_DEFAULT));
    rt_rows found;
    if (!store_query_once(&query, store, arena, &found, err))
        return rt_wrap(err, "list the audit");
    *rows = store_table_read_all(&audit_events, &found, sizeof(**rows), arena);
    *count = found.count;
    return true;
}
