/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables.c - statements written from a table's description, rows read by it.
 */
#include "store/tables_internal.h"

#include <assert.h>

/* -- Statements -------------------------------------------------------------------------------- */

void store_table_names(const store_table *table, const char *prefix, rt_buf *out)
{
    for (size_t i = 0; i < table->count; i++)
        rt_buf_addf(out, "%s%s%s", i ? ", " : "", prefix, table->columns[i].name);
}

void store_table_insert(const store_table *table, rt_buf *out)
{
    rt_buf_addf(out, "INSERT INTO %s (", table->name);
    store_table_names(table, "", out);
    rt_buf_add(out, RT_STR(") VALUES ("));
    for (size_t i = 0; i < table->count; i++)
        rt_buf_addf(out, "%s$%zu", i ? ", " : "", i + 1);
    rt_buf_addc(out, ')');
}

void store_table_overwrite(const store_table *table, rt_buf *out)
{
    const char *comma = "";
    for (size_t i = 0; i < table->count; i++) {
        if (table->columns[i].is_fixed)
            continue;
        rt_buf_addf(out, "%s%s = excluded.%s", comma, table->columns[i].name,
                    table->columns[i].name);
        comma = ", ";
    }
}

const char *store_statement(rt_buf *sql)
{
    rt_buf_addc(sql, '\0');
    assert(!sql->failed);
    return sql->ptr;
}

/* -- Rows -------------------------------------------------------------------------------------- */

static rt_sql_value bind_text(const store_column *column, rt_str text)
{
    if (text.len == 0)
        text = rt_str_of(column->absent);
    return column->kind == RT_SQL_BYTES ? rt_sql_bytes(text) : rt_sql_text(text);
}

static rt_sql_value bind_cell(const store_column *column, const void *member)
{
    switch (column->kind) {
    case RT_SQL_I64:
        return rt_sql_i64(*(const int64_t *)member);
    case RT_SQL_DOUBLE:
        return rt_sql_double(*(const double *)member);
    case RT_SQL_BOOL:
        return rt_sql_bool(*(const bool *)member);
    case RT_SQL_TEXT:
    case RT_SQL_BYTES:
        return bind_text(column, *(const rt_str *)member);
    default:
        return rt_sql_null();
    }
}

void store_table_bind(const store_table *table, const void *row, rt_sql_value *values)
{
    assert(table->count <= STORE_MAX_COLUMNS);
    for (size_t i = 0; i < table->count; i++)
        values[i] = bind_cell(&table->columns[i], (const char *)row + table->columns[i].offset);
}

static void read_cell(const store_column *column, rt_sql_value cell, void *member)
{
    switch (column->kind) {
    case RT_SQL_I64:
        *(int64_t *)member = cell.i64;
        break;
    case RT_SQL_DOUBLE:
        *(double *)member = cell.number;
        break;
    case RT_SQL_BOOL:
        *(bool *)member = cell.i64 != 0;
        break;
    case RT_SQL_TEXT:
    case RT_SQL_BYTES:
        *(rt_str *)member = cell.text;
        break;
    default:
        break;
    }
}

void store_table_read(const store_table *table, const rt_rows *rows, size_t row, size_t from,
                      void *out)
{
    for (size_t i = 0; i < table->count; i++)
        read_cell(&table->columns[i], rt_rows_at(rows, row, from + i),
                  (char *)out + table->columns[i].offset);
}

void *store_table_read_all(const store_table *table, const rt_rows *rows, size_t size,
                           rt_arena *arena)
{
    char *all = rt_arena_alloc(arena, rows->count * size);
    for (size_t i = 0; i < rows->count; i++)
        store_table_read(table, rows, i, 0, all + i * size);
    return all;
}

/* -- Sums and counts --------------------------------------------------------------------------- */

void store_figures_names(const store_figure *figures, size_t count, rt_buf *out)
{
    for (size_t i = 0; i < count; i++)
        rt_buf_addf(out, "%s%s", i ? ", " : "", figures[i].sql);
}

void store_figures_read(const store_figure *figures, size_t count, const rt_rows *rows, size_t row,
                        size_t from)
{
    for (size_t i = 0; i < count; i++) {
        rt_sql_value cell = rt_rows_at(rows, row, from + i);
        if (figures[i].count)
            *figures[i].count = (uint64_t)cell.i64;
        else
            *figures[i].number = cell.number;
    }
}

/* -- Queries ----------------------------------------------------------------------------------- */

void store_query_done(store_query *query)
{
    rt_buf_done(&query->sql);
}

void store_query_add(store_query *query, const char *sql)
{
    rt_buf_add(&query->sql, rt_str_of(sql));
}

void store_query_value(store_query *query, const char *sql, rt_sql_value value)
{
    assert(query->count < RT_COUNT(query->values));
    query->values[query->count++] = value;
    rt_buf_addf(&query->sql, "%s$%zu", sql, query->count);
}

void store_query_filter(store_query *query, const char *column, rt_str text)
{
    if (text.len == 0)
        return;
    rt_buf_addf(&query->sql, " AND %s", column);
    store_query_value(query, " = ", rt_sql_text(text));
}

bool store_query_run(store_query *query, rt_tx *tx, rt_arena *arena, rt_rows *out, rt_error *err)
{
    return rt_sql(tx, store_statement(&query->sql), query->values, query->count, arena, out, err);
}

bool store_query_once(store_query *query, rt_store *store, rt_arena *arena, rt_rows *out,
                      rt_error *err)
{
    return rt_sql_once(store, RT_TX_READ, store_statement(&query->sql), query->values, query->count,
                       arena, out, err);
}

/* -- Texts ------------------------------------------------------------------------------------- */

void store_base64url(char *out, const void *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const uint8_t *in = bytes;
    uint32_t bits = 0;
    unsigned have = 0;
    for (size_t i = 0; i < n; i++) {
        bits = bits << 8 | in[i];
        for (have += 8; have >= 6; have -= 6)
            *out++ = digits[bits >> (have - 6) & 63];
    }
    if (have)
        *out++ = digits[bits << (6 - have) & 63];
    *out = '\0';
}
