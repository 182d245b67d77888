/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables.c - JSON and CSV as tables.
 *
 * The columns of an array of objects are the union of their keys, in the order they first come. A
 * column's type is declared when all its values agree, so that comparisons work as people expect;
 * BOOLEAN and JSON are declared for answer.c, which turns them back.
 */
#include "guests/sql/sql.h"

#include <stdio.h>
#include <string.h>

enum { SEEN_INTEGER = 1, SEEN_NUMBER = 2, SEEN_TEXT = 4, SEEN_TRUTH = 8, SEEN_NESTED = 16 };

typedef struct columns {
    rt_str names[SQL_COLUMNS_MAX];
    unsigned seen[SQL_COLUMNS_MAX];
    size_t count;
    size_t at; /* where the last one was found: rows have their keys in one order */
} columns;

static bool fail_sql(sqlite3 *db, rt_str name, rt_error *err)
{
    return rt_fail(err, RT_INVALID, "table '%.*s': %s", (int)RT_MIN(name.len, (size_t)60), name.ptr,
                   sqlite3_errmsg(db));
}

static size_t find_column(columns *c, rt_str name)
{
    for (size_t i = 0; i < c->count; i++) {
        size_t k = (c->at + 1 + i) % c->count;
        if (rt_str_eq(c->names[k], name))
            return c->at = k;
    }
    return c->count;
}

static bool note_value(columns *c, rt_str name, unsigned kind, rt_error *err)
{
    size_t k = find_column(c, name);
    if (k == SQL_COLUMNS_MAX)
        return rt_fail(err, RT_LIMIT, "a table has more than %d columns", SQL_COLUMNS_MAX);
    if (k == c->count) {
        c->names[k] = name;
        c->seen[k] = 0;
        c->at = k;
        c->count++;
    }
    c->seen[k] |= kind;
    return true;
}

static unsigned kind_of(rt_json v)
{
    int64_t whole;
    switch (rt_json_type(v)) {
    case RT_JSON_BOOL:
        return SEEN_TRUTH;
    case RT_JSON_NUMBER:
        if (rt_json_i64(v, &whole))
            return SEEN_INTEGER;
        return rt_json_is_integer(v) ? SEEN_TEXT : SEEN_NUMBER; /* too large: its digits are kept */
    case RT_JSON_STRING:
        return SEEN_TEXT;
    case RT_JSON_ARRAY:
    case RT_JSON_OBJECT:
        return SEEN_NESTED;
    default:
        return 0;
    }
}

static const char *type_of(unsigned seen)
{
    switch (seen) {
    case SEEN_INTEGER:
        return " INTEGER";
    case SEEN_NUMBER:
        return " REAL";
    case SEEN_NUMBER | SEEN_INTEGER:
        return " NUMERIC";
    case SEEN_TEXT:
        return " TEXT";
    case SEEN_TRUTH:
        return " BOOLEAN";
    case SEEN_NESTED:
        return " JSON";
    default:
        return "";
    }
}

/* "name", with quotes doubled. */
static void add_name(rt_buf *sql, rt_str name)
{
    rt_buf_addc(sql, '"');
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] == '"')
            rt_buf_addc(sql, '"');
        rt_buf_addc(sql, name.ptr[i] ? name.ptr[i] : '?');
    }
    rt_buf_addc(sql, '"');
}

static bool create(sqlite3 *db, rt_str name, const columns *c, sqlite3_stmt **insert, rt_error *err)
{
    rt_buf sql RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf_add(&sql, RT_STR("DROP TABLE IF EXISTS "));
    add_name(&sql, name);
    rt_buf_add(&sql, RT_STR("; CREATE TABLE "));
    add_name(&sql, name);
    for (size_t i = 0; i < c->count; i++) {
        rt_buf_add(&sql, i ? RT_STR(", ") : RT_STR(" ("));
        add_name(&sql, c->names[i]);
        rt_buf_add(&sql, rt_str_of(type_of(c->seen[i])));
    }
    rt_buf_add(&sql, c->count ? RT_STR(")") : RT_STR(" (\"value\")"));
    rt_buf_addc(&sql, '\0');
    if (!rt_buf_ok(&sql, err))
        return false;
    if (sqlite3_exec(db, sql.ptr, NULL, NULL, NULL) != SQLITE_OK)
        return fail_sql(db, name, err);
    rt_buf_reset(&sql);
    rt_buf_add(&sql, RT_STR("INSERT INTO "));
    add_name(&sql, name);
    for (size_t i = 0; i < RT_MAX(c->count, (size_t)1); i++)
        rt_buf_add(&sql, i ? RT_STR(",?") : RT_STR(" VALUES (?"));
    rt_buf_addc(&sql, ')');
    return sqlite3_prepare_v2(db, sql.ptr, (int)sql.len, insert, NULL) == SQLITE_OK ||
           fail_sql(db, name, err);
}

/* ---- from JSON ---- */

bool sql_bind_value(sqlite3_stmt *s, int at, rt_json v, rt_buf *text)
{
    int64_t whole;
    double number;
    rt_str plain = rt_json_type(v) == RT_JSON_STRING ? rt_json_str(v) : rt_json_number(v);
    switch (rt_json_type(v)) {
    case RT_JSON_BOOL:
        return sqlite3_bind_int(s, at, rt_json_bool(v, false)) == SQLITE_OK;
    case RT_JSON_NUMBER:
        if (rt_json_i64(v, &whole))
            return sqlite3_bind_int64(s, at, whole) == SQLITE_OK;
        if (!rt_json_is_integer(v) && rt_json_double(v, &number))
            return sqlite3_bind_double(s, at, number) == SQLITE_OK;
        break;
    case RT_JSON_STRING:
        break;
    case RT_JSON_ARRAY:
    case RT_JSON_OBJECT:
        rt_buf_reset(text);
        rt_json_print(v, text);
        return sqlite3_bind_text64(s, at, text->ptr, text->len, SQLITE_TRANSIENT, SQLITE_UTF8) ==
               SQLITE_OK;
    default:
        return sqlite3_bind_null(s, at) == SQLITE_OK;
    }
    return sqlite3_bind_text64(s, at, plain.ptr ? plain.ptr : "", plain.len, SQLITE_STATIC,
                               SQLITE_UTF8) == SQLITE_OK;
}

/* An array of anything else is a table of one column. */
static bool note_row(columns *c, rt_json row, rt_error *err)
{
    rt_json_iter it = rt_json_each(row);
    rt_str key;
    rt_json value;
    if (rt_json_type(row) != RT_JSON_OBJECT)
        return note_value(c, RT_STR("value"), kind_of(row), err);
    while (rt_json_next(&it, &key, &value))
        if (!note_value(c, key, kind_of(value), err))
            return false;
    return true;
}

static bool insert_row(sqlite3_stmt *s, columns *c, rt_json row, rt_buf *text)
{
    rt_json_iter it = rt_json_each(row);
    rt_str key;
    rt_json value;
    bool ok = true;
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    if (rt_json_type(row) != RT_JSON_OBJECT)
        ok = sql_bind_value(s, (int)find_column(c, RT_STR("value")) + 1, row, text);
    else
        while (ok && rt_json_next(&it, &key, &value))
            ok = sql_bind_value(s, (int)find_column(c, key) + 1, value, text);
    return ok && sqlite3_step(s) == SQLITE_DONE;
}

bool sql_table_from_json(sqlite3 *db, rt_str name, rt_json rows, rt_error *err)
{
    static columns c;
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    sqlite3_stmt *insert = NULL;
    rt_json row;
    c.count = c.at = 0;
    for (rt_json_iter it = rt_json_each(rows); rt_json_next(&it, NULL, &row);)
        if (!note_row(&c, row, err))
            return rt_wrap(err, "table '%.*s'", (int)RT_MIN(name.len, (size_t)60), name.ptr);
    bool ok = create(db, name, &c, &insert, err);
    for (rt_json_iter it = rt_json_each(rows); ok && rt_json_next(&it, NULL, &row);)
        ok = insert_row(insert, &c, row, &text) || fail_sql(db, name, err);
    sqlite3_finalize(insert);
    return ok;
}

bool sql_tables_from(sqlite3 *db, rt_json input, rt_error *err)
{
    rt_json_iter it = rt_json_each(input);
    rt_str key;
    rt_json value;
    bool ok = sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK ||
              fail_sql(db, RT_STR("input"), err);
    if (ok && rt_json_type(input) == RT_JSON_ARRAY)
        ok = sql_table_from_json(db, RT_STR("input"), input, err);
    while (ok && rt_json_type(input) == RT_JSON_OBJECT && rt_json_next(&it, &key, &value))
        if (rt_json_type(value) == RT_JSON_ARRAY && !rt_str_eq_c(key, "params"))
            ok = sql_table_from_json(db, key, value, err);
    return sqlite3_exec(db, ok ? "COMMIT" : "ROLLBACK", NULL, NULL, NULL) == SQLITE_OK && ok;
}

/* ---- from CSV ---- */

static bool is_number(rt_str s, bool *is_whole)
{
    size_t i = s.len > 0 && (s.ptr[0] == '-' || s.ptr[0] == '+'), digits = 0, dots = 0;
    bool has_zero = s.len > i + 1 && s.ptr[i] == '0' && s.ptr[i + 1] != '.';
    for (; i < s.len && ((s.ptr[i] >= '0' && s.ptr[i] <= '9') || s.ptr[i] == '.'); i++)
        s.ptr[i] == '.' ? dots++ : digits++;
    bool has_exponent = i < s.len && digits > 0 && (s.ptr[i] | 32) == 'e';
    if (has_exponent) {
        i++;
        i += i < s.len && (s.ptr[i] == '-' || s.ptr[i] == '+');
        size_t from = i;
        while (i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9')
            i++;
        if (i == from)
            return false;
    }
    *is_whole = dots == 0 && !has_exponent;
    /* 007 is a code, not a number; so is what no 64 bits hold. */
    return i == s.len && digits > 0 && dots <= 1 && !has_zero && (!*is_whole || digits <= 18);
}

static void note_fields(columns *c, rt_str text)
{
    csv_reader r;
    rt_str field;
    bool is_quoted, is_whole, is_header = true;
    size_t column = 0;
    csv_start(&r, text);
    while (csv_next(&r, &field, &is_quoted)) {
        size_t at = column++;
        if (!is_header && at < c->count && field.len > 0)
            c->seen[at] |= !is_number(field, &is_whole) ? SEEN_TEXT
                           : is_whole                   ? SEEN_INTEGER
                                                        : SEEN_NUMBER;
        if (r.is_row_over) {
            is_header = false;
            column = 0;
        }
    }
    csv_done(&r);
}

static bool note_header(columns *c, rt_str text, rt_arena *arena, rt_error *err)
{
    csv_reader r;
    rt_str field;
    bool is_quoted, ok = true;
    csv_start(&r, text);
    while (ok && csv_next(&r, &field, &is_quoted)) {
        rt_str name = rt_str_trim(field);
        size_t had = c->count;
        if (name.len == 0)
            name = rt_arena_printf(arena, "column%zu", c->count + 1);
        ok = note_value(c, rt_arena_str(arena, name), 0, err);
        if (ok && c->count == had) /* the name is there already */
            ok = note_value(c, rt_arena_printf(arena, "%.*s_%zu", RT_FMT(name), had + 1), 0, err);
        if (r.is_row_over)
            break;
    }
    csv_done(&r);
    return ok;
}

/* The column's type makes numbers of its texts; a column of both keeps them as they are. */
static bool bind_field(sqlite3_stmt *s, int at, rt_str field, bool is_quoted)
{
    if (field.len == 0 && !is_quoted)
        return sqlite3_bind_null(s, at) == SQLITE_OK;
    return sqlite3_bind_text64(s, at, field.ptr ? field.ptr : "", field.len, SQLITE_TRANSIENT,
                               SQLITE_UTF8) == SQLITE_OK;
}

static bool insert_fields(sqlite3 *db, rt_str name, columns *c, sqlite3_stmt *insert, rt_str text,
                          rt_error *err)
{
    csv_reader r;
    rt_str field;
    bool is_quoted, ok = true, is_header = true;
    size_t column = 0;
    csv_start(&r, text);
    while (ok && csv_next(&r, &field, &is_quoted)) {
        size_t at = column++;
        bool is_blank = at == 0 && r.is_row_over && field.len == 0 && !is_quoted && c->count > 1;
        if (!is_header && at < c->count)
            ok = bind_field(insert, (int)at + 1, field, is_quoted);
        if (!r.is_row_over)
            continue;
        if (ok && !is_header && !is_blank)
            ok = sqlite3_step(insert) == SQLITE_DONE;
        sqlite3_reset(insert);
        sqlite3_clear_bindings(insert);
        is_header = false;
        column = 0;
    }
    csv_done(&r);
    return ok || fail_sql(db, name, err);
}

bool sql_table_from_csv(sqlite3 *db, rt_str name, rt_str text, rt_error *err)
{
    static columns c;
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    sqlite3_stmt *insert = NULL;
    c.count = c.at = 0;
    if (!note_header(&c, text, &arena, err))
        return rt_wrap(err, "table '%.*s'", (int)RT_MIN(name.len, (size_t)60), name.ptr);
    note_fields(&c, text);
    sqlite3_exec(db, "SAVEPOINT rows", NULL, NULL, NULL);
    bool ok = create(db, name, &c, &insert, err) && insert_fields(db, name, &c, insert, text, err);
    sqlite3_finalize(insert);
    sqlite3_exec(db, "RELEASE rows", NULL, NULL, NULL);
    return ok;
}

/* ---- from files ---- */

/* One value a line. */
static bool table_from_lines(sqlite3 *db, rt_str name, rt_str text, rt_arena *arena, rt_error *err)
{
    rt_buf array RT_CLEANUP(rt_buf_done) = { .max = SQL_FILE_MAX };
    rt_str line;
    rt_json rows;
    rt_buf_addc(&array, '[');
    while (rt_str_cut(&text, '\n', &line))
        if (rt_str_trim(line).len > 0) {
            if (array.len > 1)
                rt_buf_addc(&array, ',');
            rt_buf_add(&array, line);
        }
    rt_buf_addc(&array, ']');
    return rt_buf_ok(&array, err) && rt_json_parse(rt_buf_str(&array), arena, &rows, err) &&
           sql_table_from_json(db, name, rows, err);
}

static bool table_from_document(sqlite3 *db, rt_str name, rt_str text, rt_arena *arena,
                                rt_error *err)
{
    rt_json rows;
    if (!rt_json_parse(text, arena, &rows, err))
        return rt_wrap(err, "%.*s", (int)RT_MIN(name.len, (size_t)60), name.ptr);
    if (rt_json_type(rows) != RT_JSON_ARRAY)
        return rt_fail(err, RT_INVALID, "%.*s: an array of objects is expected, not %s",
                       (int)RT_MIN(name.len, (size_t)60), name.ptr, rt_json_type_name(rows));
    return sql_table_from_json(db, name, rows, err);
}

bool sql_table_from_file(sqlite3 *db, rt_str name, rt_arena *arena, rt_error *err)
{
    static const struct {
        const char *ending;
        enum { CSV, LINES, DOCUMENT } kind;
    } kinds[] = { { ".csv", CSV },     { ".tsv", CSV },      { ".txt", CSV },
                  { ".jsonl", LINES }, { ".ndjson", LINES }, { ".json", DOCUMENT } };
    rt_str text;
    size_t k = 0;
    while (k < RT_COUNT(kinds) && !rt_str_ends(name, rt_str_of(kinds[k].ending)))
        k++;
    if (k == RT_COUNT(kinds))
        return rt_fail(err, RT_NOT_FOUND, "no such table: %.*s", (int)RT_MIN(name.len, (size_t)100),
                       name.ptr);
    if (!rt_read_file(rt_arena_copy(arena, name), SQL_FILE_MAX, arena, &text, err))
        return false;
    return kinds[k].kind == CSV     ? sql_table_from_csv(db, name, text, err)
           : kinds[k].kind == LINES ? table_from_lines(db, name, text, arena, err)
                                    : table_from_document(db, name, text, arena, err);
}
