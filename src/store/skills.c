/* SPDX-License-Identifier: Apache-2.0 */
/* skills.c - one row per registered version of a skill. */
#include "store/skills.h"

#include <pthread.h>

#include "store/tables_internal.h"

#define TEXT(member) STORE_COLUMN(rt_skill_row, member, RT_SQL_TEXT, NULL, true)

static const store_column columns[] = {
    TEXT(organisation_id), TEXT(name),
    TEXT(version),         TEXT(metadata),
    TEXT(input_schema),    TEXT(output_schema),
    TEXT(handler_file),    TEXT(code),
    TEXT(created_by),      STORE_COLUMN(rt_skill_row, created_ms, RT_SQL_I64, NULL, true),
};

static const store_table skills = { "skills", columns, RT_COUNT(columns) };

static const char *insert_statement, *select_statement;

static void write_statements(void)
{
    rt_buf insert = { 0 }, select = { 0 };
    store_table_insert(&skills, &insert);
    insert_statement = store_statement(&insert);
    rt_buf_add(&select, RT_STR("SELECT "));
    store_table_names(&skills, "", &select);
    rt_buf_add(&select, RT_STR(" FROM skills ORDER BY name COLLATE \"C\", created_ms, version"));
    select_statement = store_statement(&select);
}

static void prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, write_statements);
}

bool rt_skill_add(rt_store *store, const rt_skill_row *row, rt_error *err)
{
    rt_sql_value values[STORE_MAX_COLUMNS];
    prepare();
    store_table_bind(&skills, row, values);
    if (rt_sql_once(store, RT_TX_WRITE, insert_statement, values, skills.count, NULL, NULL, err))
        return true;
    if (err && err->code == RT_CONFLICT)
        return rt_fail(err, RT_CONFLICT, "%.*s %.*s is registered already; raise the version",
                       RT_FMT(row->name), RT_FMT(row->version));
    return rt_wrap(err, "register %.*s", RT_FMT(row->name));
}

bool rt_skill_rows(rt_store *store, rt_arena *arena, rt_skill_row **rows, size_t *count,
                   rt_error *err)
{
    rt_rows found;
    prepare();
    if (!rt_sql_once(store, RT_TX_READ, select_statement, NULL, 0, arena, &found, err))
        return rt_wrap(err, "list registered skills");
    *rows = store_table_read_all(&skills, &found, sizeof(**rows), arena);
    *count = found.count;
    return true;
}

bool rt_skill_mark(rt_store *store, uint64_t *mark, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_rows rows;
    if (!rt_sql_once(store, RT_TX_READ, "SELECT COUNT(*), COALESCE(MAX(created_ms), 0) FROM skills",
                     NULL, 0, &arena, &rows, err))
        return rt_wrap(err, "look at registered skills");
    *mark =
        (uint64_t)rt_rows_at(&rows, 0, 0).i64 * 1000003u + (uint64_t)rt_rows_at(&rows, 0, 1).i64;
    return true;
}
