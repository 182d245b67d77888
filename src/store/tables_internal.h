/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables_internal.h - what the files about single tables share.
 *
 * A table is described once, as an array of columns that say which member of a struct they hold.
 * Statements are written from the description and rows are read by it, so a column cannot be bound
 * to one place and read from another.
 *
 *     static const store_column columns[] = {
 *         STORE_COLUMN(rt_session_row, id, RT_SQL_TEXT, NULL, true),
 *         …
 *     };
 *     static const store_table sessions = { "sessions", columns, RT_COUNT(columns) };
 *
 * An empty text is NULL in the database, or the column's `absent` text where NULL is not allowed.
 */
#ifndef RT_STORE_TABLES_INTERNAL_H
#define RT_STORE_TABLES_INTERNAL_H

#include "store/audit.h"
#include "store/executions.h"

#define STORE_MAX_COLUMNS 72

typedef struct store_column {
    const char *name;
    rt_sql_kind kind; /* I64 is for uint64_t too */
    size_t offset;
    const char *absent; /* what an empty text is stored as; NULL: SQL NULL */
    bool is_fixed;      /* a later write of the row leaves it as it is */
} store_column;

/* The column of a member's name; then `absent` and `is_fixed`. */
/* clang-format off */
#define STORE_COLUMN(row, member, kind, ...) { #member, kind, offsetof(row, member), __VA_ARGS__ }
/* clang-format on */

typedef struct store_table {
    const char *name;
    const store_column *columns;
    size_t count;
} store_table;

/* "p.a, p.b, p.c" for the prefix "p." */
void store_table_names(const store_table *table, const char *prefix, rt_buf *out);
/* "INSERT INTO t (a, b) VALUES ($1, $2)" */
void store_table_insert(const store_table *table, rt_buf *out);
/* "b = excluded.b, c = excluded.c": all but the fixed columns */
void store_table_overwrite(const store_table *table, rt_buf *out);

void store_table_bind(const store_table *table, const void *row, rt_sql_value *values);
/* Cells from..from+count-1 of a row into the struct; texts are borrowed from `rows`. */
void store_table_read(const store_table *table, const rt_rows *rows, size_t row, size_t from,
                      void *out);
/* All rows, as an array of structs of `size` bytes. */
void *store_table_read_all(const store_table *table, const rt_rows *rows, size_t size,
                           rt_arena *arena);

/* -- Sums and counts --------------------------------------------------------------------------- */

/* What to ask, and where the answer goes: one of the two. */
typedef struct store_figure {
    const char *sql;
    uint64_t *count;
    double *number;
} store_figure;

/* The types are given because a sum of integers is no integer in PostgreSQL. */
#define STORE_COUNT(condition) "COUNT(*) FILTER (WHERE " condition ")"
#define STORE_SUM(column)      "CAST(COALESCE(SUM(" column "), 0) AS BIGINT)"
#define STORE_SUM_USD(column)  "CAST(COALESCE(SUM(" column "), 0) AS DOUBLE PRECISION)"
#define STORE_AVERAGE(column)  "CAST(COALESCE(AVG(" column "), 0) AS DOUBLE PRECISION)"

void store_figures_names(const store_figure *figures, size_t count, rt_buf *out);
/* From the cells of a row that begin at `from`. */
void store_figures_read(const store_figure *figures, size_t count, const rt_rows *rows, size_t row,
                        size_t from);

/* -- Statements that depend on what was asked ---------------------------------------------------
 */

/* Values only ever become $1, $2, …; the texts are literals of ours. */
typedef struct store_query {
    rt_buf sql;
    rt_sql_value values[16];
    size_t count;
} store_query;

void store_query_done(store_query *query);
void store_query_add(store_query *query, const char *sql);
void store_query_value(store_query *query, const char *sql, rt_sql_value value); /* sql, then $n */
/* "AND organisation_id = $n", unless the text is empty, which means any. */
void store_query_filter(store_query *query, const char *column, rt_str text);
bool store_query_run(store_query *query, rt_tx *tx, rt_arena *arena, rt_rows *out, rt_error *err);
bool store_query_once(store_query *query, rt_store *store, rt_arena *arena, rt_rows *out,
                      rt_error *err);

/* Ends the text with a NUL byte; it stays the buffer's. */
const char *store_statement(rt_buf *sql);

static inline rt_sql_value store_u64(uint64_t n)
{
    return rt_sql_i64((int64_t)n);
}

/* An empty text is SQL NULL. */
static inline rt_sql_value store_text(rt_str s)
{
    return s.len ? rt_sql_text(s) : rt_sql_null();
}

/* -- Executions -------------------------------------------------------------------------------- */

extern const store_table store_executions;      /* all columns */
extern const store_table store_executions_head; /* without what may be large */

void store_execution_read(const store_table *table, const rt_rows *rows, size_t row,
                          rt_execution_row *out);

#define STORE_CURSOR_ID_MAX 128 /* bytes of an id in a cursor */

/* Where a page ended. */
typedef struct store_cursor {
    uint64_t created_ms;
    rt_str id;
} store_cursor;

rt_str store_cursor_write(store_cursor at, rt_arena *arena);
bool store_cursor_parse(rt_str text, rt_arena *arena, store_cursor *out, rt_error *err);

/* -- What is written with a run, in its transaction ---------------------------------------------
 */

extern const store_table store_provenance;

bool store_link_add(rt_tx *tx, const rt_execution_row *row, rt_arena *arena, rt_error *err);
/* The hash over a link's fields, of which p->hash is not one. RT_INVALID when its JSON is none. */
bool store_link_hash(const rt_provenance *p, rt_arena *arena, char out[RT_SHA256_HEX],
                     rt_error *err);
/* SHA-256 of the salt's text and the value's, in hexadecimal. */
void store_commitment(rt_str salt, rt_str value, char out[RT_SHA256_HEX]);
#define STORE_FIRST_PREVIOUS_HASH "0000000000000000000000000000000000000000000000000000000000000000"

bool store_cost_add(rt_tx *tx, const rt_execution_row *row, rt_error *err);
bool store_audit_add(rt_tx *tx, const rt_audit_event *event, rt_error *err);

/* -- People ------------------------------------------------------------------------------------ */

/* Rows of user $2 of organisation $1, in a table with user_id and key_id: also those that were made
 * with a key of theirs and name nobody. */
#define STORE_OF_USER                                                                              \
    "organisation_id = $1 AND (user_id = $2 OR (user_id IS NULL AND key_id IN"                     \
    " (SELECT k.id FROM api_keys k WHERE k.organisation_id = $1 AND k.user_id = $2)))"

/* Artifacts of theirs, or of their runs. */
#define STORE_ARTIFACTS_OF_USER                                                                    \
    "organisation_id = $1 AND (user_id = $2 OR execution_id IN"                                    \
    " (SELECT id FROM executions WHERE " STORE_OF_USER "))"

/* -- Texts ------------------------------------------------------------------------------------- */

#define STORE_BASE64URL_SIZE(n) (((n)*4 + 2) / 3 + 1) /* without padding, and its terminator */

void store_base64url(char *out, const void *bytes, size_t n);

#endif
