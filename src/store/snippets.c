/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snippets.c - one row per pattern.
 *
 * Averages are moved by one UPDATE that reads and writes the row, so runs that end at the same
 * moment are all counted.
 */
#include "store/snippets.h"

#include <pthread.h>

#include "store/tables_internal.h"

#define COLUMN(member, kind, ...) STORE_COLUMN(rt_snippet, member, kind, __VA_ARGS__)
#define TEXT(member)              COLUMN(member, RT_SQL_TEXT, NULL, false)

static const store_column columns[] = {
    COLUMN(id, RT_SQL_TEXT, NULL, true),
    COLUMN(organisation_id, RT_SQL_TEXT, NULL, true),
    TEXT(user_id),
    COLUMN(name, RT_SQL_TEXT, NULL, true),
    TEXT(description),
    COLUMN(category, RT_SQL_TEXT, "general", false),
    COLUMN(code, RT_SQL_TEXT, "", false),
    TEXT(language),
    COLUMN(tags, RT_SQL_TEXT, "[]", false),
    COLUMN(parameters, RT_SQL_TEXT, "{\"type\":\"object\"}", false),
    COLUMN(steps, RT_SQL_TEXT, "[]", false),
    TEXT(learned_from),
    COLUMN(usage_count, RT_SQL_I64, NULL, true),
    COLUMN(last_used_ms, RT_SQL_I64, NULL, true),
    COLUMN(runs, RT_SQL_I64, NULL, false),
    COLUMN(successes, RT_SQL_I64, NULL, false),
    COLUMN(success_rate, RT_SQL_DOUBLE, NULL, false),
    COLUMN(average_exec_ms, RT_SQL_DOUBLE, NULL, false),
    COLUMN(average_cost_usd, RT_SQL_DOUBLE, NULL, false),
    COLUMN(created_ms, RT_SQL_I64, NULL, true),
    COLUMN(updated_ms, RT_SQL_I64, NULL, false),
};

static const store_table snippets = { "snippets", columns, RT_COUNT(columns) };

static const char *insert_statement, *replace_statement, *take_statement;

static void write_statements(void)
{
    rt_buf insert = { 0 }, replace = { 0 }, take = { 0 };
    store_table_insert(&snippets, &insert);
    rt_buf_add(&replace, rt_buf_str(&insert));
    rt_buf_add(&replace, RT_STR(" ON CONFLICT (organisation_id, name) DO UPDATE SET "));
    store_table_overwrite(&snippets, &replace);
    rt_buf_add(&insert, RT_STR(" ON CONFLICT (organisation_id, name) DO NOTHING"));
    rt_buf_add(&take, RT_STR("UPDATE snippets SET usage_count = usage_count + 1, last_used_ms = $3"
                             " WHERE organisation_id = $1 AND name = $2 RETURNING "));
    store_table_names(&snippets, "", &take);
    insert_statement = store_statement(&insert);
    replace_statement = store_statement(&replace);
    take_statement = store_statement(&take);
}

static void prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, write_statements);
}

static bool fail_missing(rt_str name, rt_error *err)
{
    return rt_fail(err, RT_NOT_FOUND, "Snippet not found: %.*s", (int)RT_MIN(name.len, (size_t)100),
                   name.ptr);
}

static bool check_room(rt_tx *tx, const rt_snippet *s, rt_arena *arena, rt_error *err)
{
    rt_rows rows;
    rt_sql_value values[] = { rt_sql_text(s->organisation_id), rt_sql_text(s->name) };
    if (!rt_sql(tx, "SELECT COUNT(*) FROM snippets WHERE organisation_id = $1 AND name <> $2",
                values, RT_COUNT(values), arena, &rows, err))
        return false;
    return rt_rows_at(&rows, 0, 0).i64 < RT_SNIPPETS_MAX ||
           rt_fail(err, RT_LIMIT, "there are %d patterns already; delete one first",
                   RT_SNIPPETS_MAX);
}

bool rt_snippet_add(rt_store *store, const rt_snippet *snippet, bool is_replacing, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_tx *tx RT_CLEANUP(rt_tx_rollbackp) = NULL;
    rt_sql_value values[STORE_MAX_COLUMNS];
    rt_rows rows;
    prepare();
    store_table_bind(&snippets, snippet, values);
    if (!rt_tx_begin(store, RT_TX_WRITE, &tx, err) || !check_room(tx, snippet, &arena, err) ||
        !rt_sql(tx, is_replacing ? replace_statement : insert_statement, values, snippets.count,
                &arena, &rows, err) ||
        !rt_tx_commit(&tx, err))
        return rt_wrap(err, "save a pattern");
    return rows.changed > 0 ||
           rt_fail(err, RT_CONFLICT, "there is a pattern '%.*s' already",
                   (int)RT_MIN(snippet->name.len, (size_t)100), snippet->name.ptr);
}

static void select_snippets(store_query *query, rt_str organisation_id)
{
    store_query_add(query, "SELECT ");
    store_table_names(&snippets, "", &query->sql);
    store_query_value(query,
                      " FROM snippets WHERE organisation_id = ", rt_sql_text(organisation_id));
}

bool rt_snippet_find(rt_store *store, rt_str organisation_id, rt_str name, rt_arena *arena,
                     rt_snippet *out, rt_error *err)
{
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows rows;
    select_snippets(&query, organisation_id);
    store_query_value(&query, " AND name = ", rt_sql_text(name));
    if (!store_query_once(&query, store, arena, &rows, err))
        return rt_wrap(err, "find a pattern");
    if (rows.count == 0)
        return fail_missing(name, err);
    store_table_read(&snippets, &rows, 0, 0, out);
    return true;
}

bool rt_snippet_take(rt_store *store, rt_str organisation_id, rt_str name, uint64_t now_ms,
                     rt_arena *arena, rt_snippet *out, rt_error *err)
{
    rt_sql_value values[] = { rt_sql_text(organisation_id), rt_sql_text(name), store_u64(now_ms) };
    rt_rows rows;
    prepare();
    if (!rt_sql_once(store, RT_TX_WRITE, take_statement, values, RT_COUNT(values), arena, &rows,
                     err))
        return rt_wrap(err, "take a pattern");
    if (rows.count == 0)
        return fail_missing(name, err);
    store_table_read(&snippets, &rows, 0, 0, out);
    return true;
}

bool rt_snippet_list(rt_store *store, rt_str organisation_id, rt_str category, rt_str after,
                     unsigned limit, rt_arena *arena, rt_snippet **rows, size_t *count,
                     rt_error *err)
{
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows found;
    if (limit == 0 || limit > RT_SNIPPETS_LIST_MAX)
        return rt_fail(err, RT_INVALID, "a list has 1 to %d rows", RT_SNIPPETS_LIST_MAX);
    select_snippets(&query, organisation_id);
    store_query_filter(&query, "category", category);
    if (after.len > 0)
        store_query_value(&query, " AND name COLLATE \"C\" > ", rt_sql_text(after));
    store_query_value(&query, " ORDER BY name COLLATE \"C\" LIMIT ", rt_sql_i64(limit));
    if (!store_query_once(&query, store, arena, &found, err))
        return rt_wrap(err, "list patterns");
    *rows = store_table_read_all(&snippets, &found, sizeof(**rows), arena);
    *count = found.count;
    return true;
}

bool rt_snippet_remove(rt_store *store, rt_str organisation_id, rt_str name, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_sql_value values[] = { rt_sql_text(organisation_id), rt_sql_text(name) };
    rt_rows rows;
    if (!rt_sql_once(store, RT_TX_WRITE,
                     "DELETE FROM snippets WHERE organisation_id = $1 AND name = $2", values,
                     RT_COUNT(values), &arena, &rows, err))
        return rt_wrap(err, "delete a pattern");
    return rows.changed > 0 || fail_missing(name, err);
}

bool rt_snippet_ran(rt_store *store, rt_str organisation_id, rt_str name, bool is_success,
                    double elapsed_ms, double cost_usd, uint64_t now_ms, rt_error *err)
{
    rt_sql_value values[] = { rt_sql_text(organisation_id), rt_sql_text(name),
                              rt_sql_i64(is_success),       rt_sql_double(elapsed_ms),
                              rt_sql_double(cost_usd),      store_u64(now_ms) };
    return rt_sql_once(
               store, RT_TX_WRITE,
               "UPDATE snippets SET"
               " success_rate = 100.0 * (successes + $3) / (runs + 1),"
               " average_exec_ms = (COALESCE(average_exec_ms, 0) * runs + $4) / (runs + 1),"
               " average_cost_usd = (COALESCE(average_cost_usd, 0) * runs + $5) / (runs + 1),"
               " runs = runs + 1, successes = successes + $3, last_used_ms = $6"
               " WHERE organisation_id = $1 AND name = $2",
               values, RT_COUNT(values), NULL, NULL, err) ||
           rt_wrap(err, "count a pattern's run");
}

bool rt_snippet_welcome(rt_store *store, rt_str organisation_id, bool *is_new, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_sql_value values[] = { rt_sql_text(organisation_id), store_u64(rt_wall_ms()) };
    rt_rows rows;
    if (!rt_sql_once(store, RT_TX_READ, "SELECT 1 FROM snippet_samples WHERE organisation_id = $1",
                     values, 1, &arena, &rows, err))
        return rt_wrap(err, "look for samples");
    *is_new = false;
    if (rows.count > 0)
        return true;
    if (!rt_sql_once(store, RT_TX_WRITE,
                     "INSERT INTO snippet_samples (organisation_id, added_ms) VALUES ($1, $2)"
                     " ON CONFLICT DO NOTHING",
                     values, RT_COUNT(values), &arena, &rows, err))
        return rt_wrap(err, "note the samples");
    *is_new = rows.changed > 0;
    return true;
}

bool rt_snippet_totals(rt_store *store, rt_str organisation_id, uint64_t *runs, uint64_t *successes,
                       rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows rows;
    store_query_add(&query, "SELECT " STORE_SUM("runs") ", " STORE_SUM("successes") " FROM snippets"
                                                                                    " WHERE TRUE");
    store_query_filter(&query, "organisation_id", organisation_id);
    if (!store_query_once(&query, store, &arena, &rows, err))
        return rt_wrap(err, "count the runs of patterns");
    *runs = (uint64_t)rt_rows_at(&rows, 0, 0).i64;
    *successes = (uint64_t)rt_rows_at(&rows, 0, 1).i64;
    return true;
}
