/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer.c - parameters in, rows out.
 *
 * A column that was declared BOOLEAN or JSON (tables.c) comes back as what it was; what SQL made
 * itself comes back as the number or text it is.
 */
#include "guests/sql/sql.h"

#include <string.h>

typedef enum column_kind { AS_IT_IS, AS_TRUTH, AS_JSON } column_kind;

typedef struct column {
    rt_str key;
    column_kind kind;
} column;

/* ---- parameters ---- */

static rt_json find_value(rt_json input, const char *name, int at)
{
    rt_json params = rt_json_get_c(input, "params"), found = { NULL };
    bool is_numbered = !name || name[0] == '?';
    if (is_numbered)
        return rt_json_type(params) == RT_JSON_ARRAY ? rt_json_at(params, (size_t)at - 1) : found;
    if (rt_json_type(params) == RT_JSON_OBJECT)
        found = rt_json_get_c(params, name + 1);
    return rt_json_is_absent(found) ? rt_json_get_c(input, name + 1) : found;
}

bool sql_bind(sqlite3_stmt *statement, rt_json input, rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    int count = sqlite3_bind_parameter_count(statement);
    for (int i = 1; i <= count; i++) {
        const char *name = sqlite3_bind_parameter_name(statement, i);
        rt_json value = find_value(input, name, i);
        if (rt_json_is_absent(value) && name && name[0] != '?')
            return rt_fail(err, RT_INVALID,
                           "there is no value for %.60s; give it in the input: "
                           "{\"params\": {\"%.60s\": …}}",
                           name, name + 1);
        if (rt_json_is_absent(value))
            return rt_fail(err, RT_INVALID,
                           "there is no value for parameter %d; give it in the input: "
                           "{\"params\": […]}",
                           i);
        if (!sql_bind_value(statement, i, value, &text))
            return rt_fail(err, RT_INVALID, "parameter %d cannot be used", i);
    }
    return true;
}

/* ---- rows ---- */

static bool is_taken(const column *columns, int count, rt_str key)
{
    for (int i = 0; i < count; i++)
        if (rt_str_eq(columns[i].key, key))
            return true;
    return false;
}

/* Two columns of one name would be one member: the second gets a number. */
static column *name_columns(sqlite3_stmt *s, rt_arena *arena)
{
    int count = sqlite3_column_count(s);
    column *columns = rt_arena_alloc(arena, sizeof(*columns) * (size_t)count);
    for (int i = 0; i < count; i++) {
        const char *declared = sqlite3_column_decltype(s, i);
        rt_str name = rt_arena_str(arena, rt_str_of(sqlite3_column_name(s, i)));
        rt_str key = name;
        for (int n = 1; is_taken(columns, i, key); n++)
            key = rt_arena_printf(arena, "%.*s:%d", RT_FMT(name), n);
        columns[i] = (column){ .key = key,
                               .kind = !declared                               ? AS_IT_IS
                                       : !sqlite3_stricmp(declared, "BOOLEAN") ? AS_TRUTH
                                       : !sqlite3_stricmp(declared, "JSON")    ? AS_JSON
                                                                               : AS_IT_IS };
    }
    return columns;
}

static void write_text(rt_json_writer *w, rt_str text, column_kind kind)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json nested;
    if (kind == AS_JSON && rt_json_parse(text, &arena, &nested, &(rt_error){ 0 }))
        rt_jw_json(w, nested);
    else
        rt_jw_str(w, text);
}

static void write_blob(rt_json_writer *w, const void *data, size_t size)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    char *hex = rt_arena_alloc(&arena, 2 * size + 1);
    rt_hex(hex, data, size);
    rt_jw_str(w, (rt_str){ hex, 2 * size });
}

static void write_value(rt_json_writer *w, sqlite3_stmt *s, int i, column_kind kind)
{
    switch (sqlite3_column_type(s, i)) {
    case SQLITE_INTEGER:
        if (kind == AS_TRUTH)
            rt_jw_bool(w, sqlite3_column_int64(s, i) != 0);
        else
            rt_jw_i64(w, sqlite3_column_int64(s, i));
        break;
    case SQLITE_FLOAT:
        rt_jw_double(w, sqlite3_column_double(s, i));
        break;
    case SQLITE_TEXT:
        write_text(
            w,
            (rt_str){ (const char *)sqlite3_column_text(s, i), (size_t)sqlite3_column_bytes(s, i) },
            kind);
        break;
    case SQLITE_BLOB:
        write_blob(w, sqlite3_column_blob(s, i), (size_t)sqlite3_column_bytes(s, i));
        break;
    default:
        rt_jw_null(w);
    }
}

bool sql_collect(sqlite3_stmt *statement, uint64_t max_rows, rt_buf *out, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json_writer w;
    column *columns = name_columns(statement, &arena);
    int count = sqlite3_column_count(statement), status;
    uint64_t rows = 0;
    rt_buf_reset(out);
    rt_json_begin(&w, out);
    rt_jw_array(&w);
    while ((status = sqlite3_step(statement)) == SQLITE_ROW) {
        if (++rows > max_rows)
            return rt_fail(err, RT_LIMIT,
                           "the query gives more than %llu rows; aggregate, or add a LIMIT "
                           "(the variable SQL_ROWS in the policy's env allows more)",
                           (unsigned long long)max_rows);
        rt_jw_object(&w);
        for (int i = 0; i < count; i++) {
            rt_jw_key(&w, columns[i].key);
            write_value(&w, statement, i, columns[i].kind);
        }
        rt_jw_end(&w);
        if (out->failed)
            return rt_buf_ok(out, err);
    }
    rt_jw_end(&w);
    return status == SQLITE_DONE ||
           rt_fail(err, RT_INVALID, "%s", sqlite3_errmsg(sqlite3_db_handle(statement)));
}
