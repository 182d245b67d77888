/* SPDX-License-Identifier: Apache-2.0 */
/* memories.c - one row per artifact that was kept. */
#include "store/memories.h"

#include <pthread.h>

#include "store/tables_internal.h"

#define COLUMN(member, kind, absent) STORE_COLUMN(rt_memory_row, member, kind, absent, true)
#define TEXT(member)                 COLUMN(member, RT_SQL_TEXT, NULL)

/* All but the number, which the database gives. */
static const store_column columns[] = {
    TEXT(id),
    TEXT(organisation_id),
    TEXT(user_id),
    TEXT(session_id),
    TEXT(type),
    TEXT(safety_class),
    COLUMN(actor_id, RT_SQL_TEXT, ""),
    COLUMN(actor_type, RT_SQL_TEXT, ""),
    COLUMN(content, RT_SQL_BYTES, NULL),
    TEXT(content_hash),
    TEXT(inputs_hash),
    COLUMN(embedding, RT_SQL_BYTES, NULL),
    COLUMN(tokens, RT_SQL_I64, NULL),
    COLUMN(metadata, RT_SQL_TEXT, "{}"),
    COLUMN(tags, RT_SQL_TEXT, "[]"),
    COLUMN(tool_ids, RT_SQL_TEXT, "[]"),
    COLUMN(parents, RT_SQL_TEXT, "[]"),
    COLUMN(created_ms, RT_SQL_I64, NULL),
    COLUMN(removed_ms, RT_SQL_I64, NULL),
};

static const store_table memories = { "memories", columns, RT_COUNT(columns) };

static const char *insert_statement;

static void write_statements(void)
{
    rt_buf insert = { 0 };
    store_table_insert(&memories, &insert);
    rt_buf_add(&insert, RT_STR(" RETURNING number"));
    insert_statement = store_statement(&insert);
}

bool rt_memory_add(rt_store *store, const rt_memory_row *row, uint64_t *number, rt_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_sql_value values[STORE_MAX_COLUMNS];
    rt_rows rows;
    pthread_once(&once, write_statements);
    store_table_bind(&memories, row, values);
    if (!rt_sql_once(store, RT_TX_WRITE, insert_statement, values, memories.count, &arena, &rows,
                     err)) {
        if (err && err->code == RT_CONFLICT)
            return rt_fail(err, RT_CONFLICT, "artifact %.*s was committed before",
                           RT_FMT(rt_str_slice(row->id, 0, 100)));
        return rt_wrap(err, "commit an artifact");
    }
    *number = (uint64_t)rt_rows_at(&rows, 0, 0).i64;
    return true;
}

static void select_rows(store_query *query, rt_str organisation_id)
{
    store_query_add(query, "SELECT number, ");
    store_table_names(&memories, "", &query->sql);
    store_query_add(query, " FROM memories WHERE TRUE");
    store_query_filter(query, "organisation_id", organisation_id);
}

static void read_row(const rt_rows *rows, size_t i, rt_memory_row *out)
{
    store_table_read(&memories, rows, i, 1, out);
    out->number = (uint64_t)rt_rows_at(rows, i, 0).i64;
}

bool rt_memory_find(rt_store *store, rt_str organisation_id, rt_str id, rt_arena *arena,
                    rt_memory_row *out, rt_error *err)
{
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows rows;
    select_rows(&query, organisation_id);
    store_query_value(&query, " AND id = ", rt_sql_text(id));
    if (!store_query_once(&query, store, arena, &rows, err))
        return rt_wrap(err, "find an artifact");
    if (rows.count == 0)
        return rt_fail(err, RT_NOT_FOUND, "No provenance found for artifact %.*s",
                       RT_FMT(rt_str_slice(id, 0, 100)));
    read_row(&rows, 0, out);
    return true;
}

bool rt_memory_rows(rt_store *store, const rt_memory_filter *filter, rt_arena *arena,
                    rt_memory_row **rows, size_t *count, rt_error *err)
{
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows found;
    select_rows(&query, filter->organisation_id);
    store_query_filter(&query, "session_id", filter->session_id);
    store_query_filter(&query, "type", filter->type);
    store_query_filter(&query, "safety_class", filter->safety_class);
    store_query_value(&query, " AND removed_ms = 0 ORDER BY number DESC LIMIT ",
                      rt_sql_i64(filter->limit));
    if (!store_query_once(&query, store, arena, &found, err))
        return rt_wrap(err, "list artifacts");
    *rows = rt_arena_alloc(arena, sizeof(**rows) * RT_MAX(found.count, (size_t)1));
    for (size_t i = 0; i < found.count; i++)
        read_row(&found, i, &(*rows)[i]);
    *count = found.count;
    return true;
}

bool rt_memory_remove(rt_store *store, rt_str organisation_id, rt_str id, uint64_t now_ms,
                      rt_error *err)
{
    rt_sql_value values[] = { rt_sql_text(organisation_id), rt_sql_text(id), store_u64(now_ms) };
    return rt_sql_once(store, RT_TX_WRITE,
                       "UPDATE memories SET content = NULL, embedding = NULL, removed_ms = $3"
                       " WHERE organisation_id = $1 AND id = $2",
                       values, RT_COUNT(values), NULL, NULL, err) ||
           rt_wrap(err, "remove an artifact");
}
