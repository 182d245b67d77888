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
 * Where the two differ by nature, we level them: text with a NUL byte or broken UTF-8 and numbers
 * that are not finite are RT_INVALID, LIKE minds upper and lower case, ORDER BY name COLLATE "C"
 * orders by bytes, and a transaction in which a statement failed can only be rolled back (so write
 * ON CONFLICT rather than try and look). PostgreSQL wants to know what a value is: where nothing
 * around it tells, write CAST($1 AS TEXT).
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
#define RT_STORE_WAIT_MS             10000

typedef struct rt_store_config {
    rt_str url; /* "sqlite:///absolute/path", "sqlite::memory:" (tests), "postgresql://…" */
    unsigned connections; /* PostgreSQL: at most so many; SQLite: so many readers; 0: default */
    unsigned wait_ms;     /* for a connection that others hold; 0: RT_STORE_WAIT_MS */
    bool is_sync_full;    /* SQLite: survive a loss of power too, at the price of an fsync a run */
} rt_store_config;

bool rt_store_open(const rt_store_config *config, rt_store **out, rt_error *err);
void rt_store_close(rt_store *store);
void rt_store_closep(rt_store **store);
const char *rt_store_kind(const rt_store *store);    /* "sqlite" or "postgresql" */
bool rt_store_check(rt_store *store, rt_error *err); /* answers a trivial query; for /health */
/* After an erasure: nothing of it stays in SQLite's journal. (PostgreSQL sees to it by itself, in
 * its own time: VACUUM.) RT_UNAVAILABLE when readers do not let go of it. */
bool rt_store_purge(rt_store *store, rt_error *err);

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

/* In a number or truth value both i64 and number are filled in (SUM of nothing is an integer in one
 * database and a double in the other), in a NULL nothing is. */
typedef struct rt_sql_value {
    rt_sql_kind kind;
    int64_t i64;
    double number;
    rt_str text; /* TEXT, BYTES; a NUL byte follows, outside its length, in what was read */
} rt_sql_value;

static inline rt_sql_value rt_sql_null(void)
{
    return (rt_sql_value){ .kind = RT_SQL_NULL };
}

static inline rt_sql_value rt_sql_i64(int64_t n)
{
    return (rt_sql_value){ .kind = RT_SQL_I64, .i64 = n, .number = (double)n };
}

static inline rt_sql_value rt_sql_double(double n)
{
    int64_t whole = n >= -0x1p63 && n < 0x1p63 ? (int64_t)n : 0;
    return (rt_sql_value){ .kind = RT_SQL_DOUBLE, .i64 = whole, .number = n };
}

static inline rt_sql_value rt_sql_bool(bool truth)
{
    return (rt_sql_value){ .kind = RT_SQL_BOOL, .i64 = truth, .number = truth };
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

/* A thread has one transaction at a time: a second one may wait for the first as long as a
 * connection is waited for, and is then RT_UNAVAILABLE. */
bool rt_tx_begin(rt_store *store, rt_tx_kind kind, rt_tx **out, rt_error *err);
bool rt_tx_commit(rt_tx **tx, rt_error *err); /* *tx becomes NULL either way */
void rt_tx_rollbackp(rt_tx **tx);             /* nothing, when *tx is NULL */

/* A broken UNIQUE or FOREIGN KEY is RT_CONFLICT, a broken CHECK or NOT NULL is RT_INVALID. `out`
 * may be NULL, and then `arena` too. More than RT_STORE_ROWS_MAX rows are RT_LIMIT. */
#define RT_STORE_ROWS_MAX 1000000

bool rt_sql(rt_tx *tx, const char *sql, const rt_sql_value *values, size_t count, rt_arena *arena,
            rt_rows *out, rt_error *err);

/* One statement in a transaction of its own. */
bool rt_sql_once(rt_store *store, rt_tx_kind kind, const char *sql, const rt_sql_value *values,
                 size_t count, rt_arena *arena, rt_rows *out, rt_error *err);

#endif
