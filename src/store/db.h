/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db.h - SQLite or PostgreSQL behind one small interface.
 *
 * Promise: one dialect for both. Statements are written once, with $1, $2, … for values, in the
 * SQL the two share (ON CONFLICT, RETURNING, TRUE and FALSE, BIGINT, TEXT, BOOLEAN, DOUBLE
 * PRECISION, BYTEA). A value never becomes part of a statement's text. Connections are shared out
 * among threads; a lost PostgreSQL connection is made anew, and a transaction that met a
 * serialisation failure or a busy database is reported as RT_UNAVAILABLE.
 *
 *     rt_tx *tx RT_CLEANUP(rt_tx_rollbackp) = NULL;
 *     rt_rows rows;
 *     if (!rt_tx_begin(store, RT_TX_WRITE, &tx, err) ||
 *         !rt_sql(tx, "UPDATE users SET name = $2 WHERE id = $1 RETURNING name",
 *                 (rt_sql_value[]){ rt_sql_text(id), rt_sql_text(name) }, 2, &arena, &rows, err) ||
 *         !rt_tx_commit(&tx, err))
 *         return rt_wrap(err, "rename a user");
 */
#ifndef RT_STORE_DB_H
#define RT_STORE_DB_H

#include "base/base.h"

typedef struct rt_store rt_store;

#define RT_STORE_CONNECTIONS_DEFAULT 8

typedef struct rt_store_config {
    rt_str url; /* "sqlite:///absolute/path", "sqlite::memory:" (tests), "postgresql://…" */
    unsigned connections; /* PostgreSQL: at most so many; SQLite: so many readers; 0: default */
    bool is_sync_full;    /* SQLite: survive a loss of power too, at the price of an fsync a run */
} rt_store_config;

bool rt_store_open(const rt_store_config *config, rt_store **out, rt_error *err);
void rt_store_close(rt_store *store);
void rt_store_closep(rt_store **store);
const char *rt_store_kind(const rt_store *store); /* "sqlite" or "postgresql" */
bool rt_store_check(rt_store *store, rt_error *err); /* answers a trivial query; for /health */

/* -- Migrations -------------------------------------------------------------------------------- */

typedef void (*rt_migration_fn)(void *ctx, unsigned version, const char *name, bool is_new);

/* Brings the schema up to date, each step in a transaction, safe when several nodes start at once;
 * `each` (may be NULL) hears of every step. A schema from a newer program is refused. */
bool rt_store_migrate(rt_store *store, rt_migration_fn each, void *ctx, rt_error *err);
void rt_store_migrations_print(rt_buf *out); /* the PostgreSQL text of all steps, idempotent */

/* -- Statements -------------------------------------------------------------------------------- */

typedef enum rt_sql_kind {
    RT_SQL_NULL,
    RT_SQL_I64,
    RT_SQL_DOUBLE,
    RT_SQL_BOOL,
    RT_SQL_TEXT,
    RT_SQL_BYTES,
} rt_sql_kind;

typedef struct rt_sql_value {
    rt_sql_kind kind;
    int64_t i64; /* also BOOL */
    double number;
    rt_str text; /* TEXT, BYTES */
} rt_sql_value;

static inline rt_sql_value rt_sql_null(void)
{
    return (rt_sql_value){ .kind = RT_SQL_NULL };
}

static inline rt_sql_value rt_sql_i64(int64_t n)
{
    return (rt_sql_value){ .kind = RT_SQL_I64, .i64 = n };
}

static inline rt_sql_value rt_sql_double(double n)
{
    return (rt_sql_value){ .kind = RT_SQL_DOUBLE, .number = n };
}

static inline rt_sql_value rt_sql_bool(bool truth)
{
    return (rt_sql_value){ .kind = RT_SQL_BOOL, .i64 = truth };
}

static inline rt_sql_value rt_sql_text(rt_str s) /* {NULL, 0} is NULL, RT_STR("") is not */
{
    return (rt_sql_value){ .kind = s.ptr ? RT_SQL_TEXT : RT_SQL_NULL, .text = s };
}

static inline rt_sql_value rt_sql_bytes(rt_str s)
{
    return (rt_sql_value){ .kind = s.ptr ? RT_SQL_BYTES : RT_SQL_NULL, .text = s };
}

typedef struct rt_rows {
    size_t count, columns;
    const rt_sql_value *cells; /* row by row */
    uint64_t changed;          /* by INSERT, UPDATE, DELETE */
} rt_rows;

/* The cell at a row and column, or SQL NULL when there is none. */
static inline rt_sql_value rt_rows_at(const rt_rows *rows, size_t row, size_t column)
{
    return row < rows->count && column < rows->columns ? rows->cells[row * rows->columns + column]
                                                       : rt_sql_null();
}

typedef enum rt_tx_kind { RT_TX_READ, RT_TX_WRITE } rt_tx_kind;
typedef struct rt_tx rt_tx;

bool rt_tx_begin(rt_store *store, rt_tx_kind kind, rt_tx **out, rt_error *err);
bool rt_tx_commit(rt_tx **tx, rt_error *err); /* *tx becomes NULL either way */
void rt_tx_rollbackp(rt_tx **tx);             /* nothing, when *tx is NULL */

/* A broken UNIQUE or FOREIGN KEY is RT_CONFLICT, a broken CHECK is RT_INVALID. `out` may be NULL. */
bool rt_sql(rt_tx *tx, const char *sql, const rt_sql_value *values, size_t count, rt_arena *arena,
            rt_rows *out, rt_error *err);

/* One statement in a transaction of its own. */
bool rt_sql_once(rt_store *store, rt_tx_kind kind, const char *sql, const rt_sql_value *values,
                 size_t count, rt_arena *arena, rt_rows *out, rt_error *err);

#endif
