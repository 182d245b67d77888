/* SPDX-License-Identifier: Apache-2.0 */
/*
 * approvals.c - one row per question to a person.
 *
 * A decision is one UPDATE that finds the row pending and in time, or nothing: that is what makes
 * two deciders at the same moment impossible.
 */
#include "store/approvals.h"

#include <pthread.h>

#include "store/tables_internal.h"

#define LIST_DEFAULT 50
#define LIST_MAX     500

#define COLUMN(member, kind, ...) STORE_COLUMN(rt_approval_row, member, kind, __VA_ARGS__)
#define TEXT(member)              COLUMN(member, RT_SQL_TEXT, NULL, false)
#define I64(member)               COLUMN(member, RT_SQL_I64, NULL, false)

static const store_column columns[] = {
    TEXT(id),
    TEXT(organisation_id),
    TEXT(workspace_id),
    TEXT(user_id),
    TEXT(key_id),
    TEXT(execution_id),
    TEXT(session_id),
    COLUMN(host, RT_SQL_TEXT, "", false),
    TEXT(operation),
    TEXT(reason),
    COLUMN(arguments, RT_SQL_BYTES, NULL, false),
    TEXT(arguments_hash),
    COLUMN(priority, RT_SQL_TEXT, "normal", false),
    TEXT(status),
    I64(created_ms),
    I64(expires_ms),
    I64(decided_ms),
    TEXT(decided_by),
    TEXT(comment),
};

static const store_table approvals = { "approvals", columns, RT_COUNT(columns) };

static const char *insert_statement, *decide_statement;

static void write_statements(void)
{
    rt_buf insert = { 0 }, decide = { 0 };
    store_table_insert(&approvals, &insert);
    insert_statement = store_statement(&insert);
    rt_buf_add(&decide, RT_STR("UPDATE approvals SET status = $2, decided_by = $3, comment = $4,"
                               " decided_ms = $5 WHERE id = $1 AND status = 'pending'"
                               " AND ($2 <> 'approved' OR expires_ms > $5) RETURNING "));
    store_table_names(&approvals, "", &decide);
    decide_statement = store_statement(&decide);
}

static void prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, write_statements);
}

bool rt_approval_add(rt_store *store, const rt_approval_row *row, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_sql_value values[STORE_MAX_COLUMNS];
    prepare();
    store_table_bind(&approvals, row, values);
    return rt_sql_once(store, RT_TX_WRITE, insert_statement, values, approvals.count, &arena, NULL,
                       err) ||
           rt_wrap(err, "ask for approval %.*s", RT_FMT(row->id));
}

static void select_approvals(store_query *query, rt_str organisation_id)
{
    store_query_add(query, "SELECT ");
    store_table_names(&approvals, "", &query->sql);
    store_query_add(query, " FROM approvals WHERE TRUE");
    store_query_filter(query, "organisation_id", organisation_id);
}

bool rt_approval_find(rt_store *store, rt_str organisation_id, rt_str id, rt_arena *arena,
                      rt_approval_row *out, rt_error *err)
{
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows rows;
    select_approvals(&query, organisation_id);
    store_query_value(&query, " AND id = ", rt_sql_text(id));
    if (!store_query_once(&query, store, arena, &rows, err))
        return rt_wrap(err, "find an approval");
    if (rows.count == 0)
        return rt_fail(err, RT_NOT_FOUND, "no approval %.*s", (int)RT_MIN(id.len, (size_t)80),
                       id.ptr);
    store_table_read(&approvals, &rows, 0, 0, out);
    return true;
}

bool rt_approval_list(rt_store *store, rt_str organisation_id, rt_str status, unsigned limit,
                      rt_arena *arena, rt_approval_row **rows, size_t *count, rt_error *err)
{
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows found;
    if (limit > LIST_MAX)
        return rt_fail(err, RT_INVALID, "a list has at most %d rows", LIST_MAX);
    select_approvals(&query, organisation_id);
    store_query_filter(&query, "status", status);
    store_query_value(&query, " ORDER BY created_ms DESC, id LIMIT ",
                      rt_sql_i64(limit ? limit : LIST_DEFAULT));
    if (!store_query_once(&query, store, arena, &found, err))
        return rt_wrap(err, "list approvals");
    *rows = store_table_read_all(&approvals, &found, sizeof(**rows), arena);
    *count = found.count;
    return true;
}

bool rt_approval_decide(rt_store *store, rt_str organisation_id, rt_str id, rt_str status,
                        rt_str decided_by, rt_str comment, uint64_t now_ms, rt_arena *arena,
                        rt_approval_row *out, rt_error *err)
{
    rt_rows rows;
    rt_sql_value values[] = { rt_sql_text(id), rt_sql_text(status), store_text(decided_by),
                              store_text(comment), store_u64(now_ms) };
    prepare();
    if (!rt_approval_find(store, organisation_id, id, arena, out, err))
        return false;
    if (!rt_sql_once(store, RT_TX_WRITE, decide_statement, values, RT_COUNT(values), arena, &rows,
                     err))
        return rt_wrap(err, "decide approval %.*s", RT_FMT(id));
    if (rows.count > 0) {
        store_table_read(&approvals, &rows, 0, 0, out);
        return true;
    }
    if (!rt_approval_find(store, organisation_id, id, arena, out, err))
        return false;
    bool is_late = rt_str_eq_c(out->status, "pending");
    return rt_fail(err, RT_CONFLICT, "approval %.*s is %.*s and cannot be decided again",
                   RT_FMT(id), is_late ? 7 : (int)out->status.len,
                   is_late ? "expired" : out->status.ptr);
}

static bool change(rt_store *store, const char *sql, const rt_sql_value *values, size_t value_count,
                   uint64_t *count, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_rows rows;
    if (!rt_sql_once(store, RT_TX_WRITE, sql, values, value_count, &arena, &rows, err))
        return rt_wrap(err, "end approvals");
    *count = rows.changed;
    return true;
}

bool rt_approval_use(rt_store *store, rt_str id, rt_str execution_id, uint64_t now_ms,
                     rt_error *err)
{
    uint64_t count = 0;
    if (!change(store,
                "UPDATE approvals SET execution_id = $2 WHERE id = $1 AND status = 'approved'"
                " AND execution_id IS NULL AND expires_ms > $3",
                (rt_sql_value[]){ rt_sql_text(id), rt_sql_text(execution_id), store_u64(now_ms) },
                3, &count, err))
        return false;
    return count > 0 || rt_fail(err, RT_CONFLICT, "approval %.*s was used before, or has expired",
                                (int)RT_MIN(id.len, (size_t)80), id.ptr);
}

bool rt_approval_expire(rt_store *store, uint64_t now_ms, uint64_t *count, rt_error *err)
{
    return change(store,
                  "UPDATE approvals SET status = 'expired', decided_ms = $1"
                  " WHERE status = 'pending' AND expires_ms <= $1",
                  (rt_sql_value[]){ store_u64(now_ms) }, 1, count, err);
}

bool rt_approval_recover(rt_store *store, rt_str host, uint64_t now_ms, uint64_t *count,
                         rt_error *err)
{
    return change(store,
                  "UPDATE approvals SET status = 'cancelled', decided_ms = $2"
                  " WHERE status = 'pending' AND host = $1",
                  (rt_sql_value[]){ rt_sql_text(host), store_u64(now_ms) }, 2, count, err);
}
