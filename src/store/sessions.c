/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sessions.c - one row per session, kept by the node that owns it.
 */
#include "store/sessions.h"

#include <pthread.h>

#include "store/tables_internal.h"

#define LIST_DEFAULT 50
#define LIST_MAX     500

#define COLUMN(member, kind, ...) STORE_COLUMN(rt_session_row, member, kind, __VA_ARGS__)
#define TEXT(member)              COLUMN(member, RT_SQL_TEXT, NULL, false)
#define I64(member)               COLUMN(member, RT_SQL_I64, NULL, false)

static const store_column columns[] = {
    COLUMN(id, RT_SQL_TEXT, NULL, true),
    COLUMN(organisation_id, RT_SQL_TEXT, NULL, true),
    TEXT(workspace_id),
    TEXT(user_id),
    TEXT(key_id),
    COLUMN(host, RT_SQL_TEXT, "", false),
    TEXT(host_url),
    TEXT(language),
    TEXT(policy),
    TEXT(parent_id),
    TEXT(name),
    TEXT(status),
    COLUMN(created_ms, RT_SQL_I64, NULL, true),
    I64(expires_ms),
    I64(ended_ms),
    I64(last_used_ms),
    I64(executions),
};

static const store_table sessions = { "sessions", columns, RT_COUNT(columns) };

static const char *save_statement;

static void write_statement(void)
{
    rt_buf sql = { 0 };
    store_table_insert(&sessions, &sql);
    rt_buf_add(&sql, RT_STR(" ON CONFLICT (id) DO UPDATE SET "));
    store_table_overwrite(&sessions, &sql);
    rt_buf_add(&sql, RT_STR(" WHERE sessions.organisation_id = excluded.organisation_id"
                            " AND sessions.status = 'ACTIVE'"));
    save_statement = store_statement(&sql);
}

bool rt_session_save(rt_store *store, const rt_session_row *row, rt_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, write_statement);
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_sql_value values[STORE_MAX_COLUMNS];
    rt_rows rows;
    store_table_bind(&sessions, row, values);
    if (!rt_sql_once(store, RT_TX_WRITE, save_statement, values, sessions.count, &arena, &rows,
                     err))
        return rt_wrap(err, "save session %.*s", RT_FMT(row->id));
    if (rows.changed == 0)
        return rt_fail(err, RT_CONFLICT, "session %.*s belongs to somebody else", RT_FMT(row->id));
    return true;
}

static void select_sessions(store_query *query, rt_str organisation_id)
{
    store_query_add(query, "SELECT ");
    store_table_names(&sessions, "", &query->sql);
    store_query_add(query, " FROM sessions WHERE TRUE");
    store_query_filter(query, "organisation_id", organisation_id);
}

bool rt_session_find(rt_store *store, rt_str organisation_id, rt_str id, rt_arena *arena,
                     rt_session_row *out, rt_error *err)
{
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows rows;
    select_sessions(&query, organisation_id);
    store_query_value(&query, " AND id = ", rt_sql_text(id));
    if (!store_query_once(&query, store, arena, &rows, err))
        return rt_wrap(err, "find a session");
    if (rows.count == 0)
        return rt_fail(err, RT_NOT_FOUND, "no session %.*s", RT_FMT(id));
    store_table_read(&sessions, &rows, 0, 0, out);
    return true;
}

bool rt_session_rows(rt_store *store, rt_str organisation_id, rt_str status, unsigned limit,
                     rt_arena *arena, rt_session_row **rows, size_t *count, rt_error *err)
{
    if (limit > LIST_MAX)
        return rt_fail(err, RT_INVALID, "a list has at most %d rows", LIST_MAX);
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows found;
    select_sessions(&query, organisation_id);
    store_query_filter(&query, "status", status);
    store_query_add(&query, " ORDER BY CASE WHEN status = 'ACTIVE' THEN 0 ELSE 1 END,"
                            " created_ms DESC, id");
    store_query_value(&query, " LIMIT ", rt_sql_i64(limit ? limit : LIST_DEFAULT));
    if (!store_query_once(&query, store, arena, &found, err))
        return rt_wrap(err, "list sessions");
    *rows = store_table_read_all(&sessions, &found, sizeof(**rows), arena);
    *count = found.count;
    return true;
}

bool rt_session_recover(rt_store *store, rt_str host, uint64_t now_ms, uint64_t *count,
                        rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_rows rows;
    rt_sql_value values[] = { rt_sql_text(host), store_u64(now_ms) };
    if (!rt_sql_once(store, RT_TX_WRITE,
                     "UPDATE sessions SET status = 'LOST', ended_ms = $2"
                     " WHERE host = $1 AND status = 'ACTIVE'",
                     values, 2, &arena, &rows, err))
        return rt_wrap(err, "recover the sessions of host %.*s", RT_FMT(host));
    *count = rows.changed;
    return true;
}
