/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite.c - the embedded database: one file, one writer, several readers.
 *
 * In WAL mode readers see the last commit and never wait for the writer. A commit is in the file
 * system before we report it, so it survives kill -9; it survives a loss of power with
 * is_sync_full. Deleted content is overwritten, because "erased" should mean it.
 *
 * A connection is used by one thread at a time (db.c sees to it), so SQLite's own locks are off.
 * ":memory:" is one connection for everybody.
 */
#include "store/store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>

#define MEMORY           ":memory:"
#define PROGRESS_STEPS   20000 /* of SQLite's machine between two looks at the clock */
#define JOURNAL_RETRY_MS 5

typedef struct sqlite_conn {
    store_conn base;
    sqlite3 *db;
    uint64_t deadline_ns; /* of the statement that runs */
} sqlite_conn;

/* -- errors ------------------------------------------------------------------------------------ */

static const struct {
    int result; /* an extended code, or a primary one */
    rt_code code;
} codes[] = {
    { SQLITE_CONSTRAINT_CHECK, RT_INVALID },
    { SQLITE_CONSTRAINT_NOTNULL, RT_INVALID },
    { SQLITE_CONSTRAINT_DATATYPE, RT_INVALID },
    { SQLITE_CONSTRAINT, RT_CONFLICT },
    { SQLITE_BUSY, RT_UNAVAILABLE },
    { SQLITE_LOCKED, RT_UNAVAILABLE },
    { SQLITE_INTERRUPT, RT_TIMEOUT },
    { SQLITE_FULL, RT_LIMIT },
    { SQLITE_TOOBIG, RT_LIMIT },
    { SQLITE_READONLY, RT_DENIED },
    { SQLITE_PERM, RT_DENIED },
    { SQLITE_AUTH, RT_DENIED },
    { SQLITE_CANTOPEN, RT_SYSTEM },
    { SQLITE_IOERR, RT_SYSTEM },
    { SQLITE_CORRUPT, RT_SYSTEM },
    { SQLITE_NOTADB, RT_SYSTEM },
};

static rt_code code_of(int result)
{
    for (size_t i = 0; i < RT_COUNT(codes); i++)
        if (codes[i].result == result || codes[i].result == (result & 0xff))
            return codes[i].code;
    return RT_INTERNAL;
}

static bool fail_db(sqlite_conn *conn, rt_error *err)
{
    int result = sqlite3_extended_errcode(conn->db);
    if ((result & 0xff) == SQLITE_NOMEM)
        rt_out_of_memory(0);
    rt_fail(err, code_of(result), "%s", sqlite3_errmsg(conn->db));
    if (err && code_of(result) == RT_SYSTEM)
        err->sys_errno = sqlite3_system_errno(conn->db);
    return false;
}

/* -- opening ----------------------------------------------------------------------------------- */

/* The file is ours before SQLite sees it: it would make it with the umask's mode. */
static bool make_file(const char *path, rt_error *err)
{
    if (!store_make_directory_of(path, err))
        return false;
    int fd RT_CLEANUP(rt_closep) = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0)
        return rt_fail_errno(err, "open %s", path);
    return S_ISREG(st.st_mode) ? true : rt_fail(err, RT_INVALID, "%s is not a file", path);
}

static bool settle(rt_store *store, const rt_store_config *config, rt_error *err)
{
    rt_str rest = rt_str_slice(config->url, strlen("sqlite:"), config->url.len);
    bool is_memory = rt_str_eq_c(rest, MEMORY);
    if (!is_memory && (!rt_str_starts(rest, RT_STR("///")) || rt_str_ends(rest, RT_STR("/"))))
        return rt_fail(err, RT_INVALID, "the URL is sqlite:/// and a path: sqlite:///var/lib/x.db");
    rt_str location = is_memory ? rest : rt_str_slice(rest, 2, rest.len);
    store->location = strndup(location.ptr, location.len);
    if (!store->location)
        rt_out_of_memory(location.len);
    unsigned readers = config->connections ? config->connections : RT_STORE_CONNECTIONS_DEFAULT;
    store->lanes[RT_TX_READ].max = is_memory ? 1 : readers;
    store->lanes[RT_TX_WRITE].max = 1;
    if (is_memory)
        store->lane_of[RT_TX_WRITE] = store->lane_of[RT_TX_READ];
    return is_memory || make_file(store->location, err);
}

static int is_late(void *ctx)
{
    const sqlite_conn *conn = ctx;
    return rt_now_ns() > conn->deadline_ns;
}

static int by_bytes(void *ctx, int a_len, const void *a, int b_len, const void *b)
{
    (void)ctx;
    return rt_str_cmp((rt_str){ a, (size_t)a_len }, (rt_str){ b, (size_t)b_len });
}

/* What the file, or our own statements, must not be able to do. */
static void harden(sqlite_conn *conn)
{
    static const struct {
        int option, value;
    } options[] = {
        { SQLITE_DBCONFIG_DEFENSIVE, 1 },   { SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0 },
        { SQLITE_DBCONFIG_DQS_DML, 0 },     { SQLITE_DBCONFIG_DQS_DDL, 0 },
        { SQLITE_DBCONFIG_ENABLE_VIEW, 0 },
    };
    for (size_t i = 0; i < RT_COUNT(options); i++)
        sqlite3_db_config(conn->db, options[i].option, options[i].value, NULL);
}

static bool script(store_conn *base, const char *text, rt_error *err)
{
    sqlite_conn *conn = (sqlite_conn *)base;
    conn->deadline_ns = rt_now_ns() + STORE_MIGRATION_MS * UINT64_C(1000000);
    return sqlite3_exec(conn->db, text, NULL, NULL, NULL) == SQLITE_OK ? true : fail_db(conn, err);
}

/* Of several programs that turn a new file to WAL at once, SQLite sends all but one away at once,
 * without asking the busy handler: they would wait for each other. */
static bool set_journal(sqlite_conn *conn, rt_error *err)
{
    uint64_t end_ns = rt_now_ns() + STORE_LOCK_WAIT_MS * UINT64_C(1000000);
    while (!script(&conn->base, "PRAGMA journal_mode = WAL", err)) {
        if (code_of(sqlite3_extended_errcode(conn->db)) != RT_UNAVAILABLE || rt_now_ns() > end_ns)
            return false;
        sqlite3_sleep(JOURNAL_RETRY_MS);
    }
    return script(&conn->base, "PRAGMA journal_size_limit = 67108864", err);
}

static bool configure(const rt_store *store, rt_tx_kind kind, sqlite_conn *conn, rt_error *err)
{
    sqlite3_extended_result_codes(conn->db, 1);
    sqlite3_busy_timeout(conn->db, STORE_LOCK_WAIT_MS);
    sqlite3_progress_handler(conn->db, PROGRESS_STEPS, is_late, conn);
    sqlite3_create_collation(conn->db, "C", SQLITE_UTF8, NULL, by_bytes);
    harden(conn);
    static const char common[] = "PRAGMA foreign_keys = ON; PRAGMA case_sensitive_like = ON;"
                                 "PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY;"
                                 "PRAGMA cell_size_check = ON;";
    bool is_memory = strcmp(store->location, MEMORY) == 0;
    return script(&conn->base, common, err) && set_journal(conn, err) &&
           script(&conn->base,
                  store->is_sync_full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL",
                  err) &&
           (kind == RT_TX_WRITE || is_memory || script(&conn->base, "PRAGMA query_only = ON", err));
}

static void free_statement(void *handle)
{
    sqlite3_finalize(handle);
}

static void close_conn(store_conn *base)
{
    sqlite_conn *conn = (sqlite_conn *)base;
    store_statements_done(&base->statements, free_statement);
    sqlite3_close(conn->db);
    free(conn);
}

static bool connect_file(const rt_store *store, rt_tx_kind kind, store_conn **out, rt_error *err)
{
    sqlite_conn *conn = calloc(1, sizeof(*conn));
    if (!conn)
        rt_out_of_memory(sizeof(*conn));
    conn->base.is_fresh = true;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    bool done = sqlite3_open_v2(store->location, &conn->db, flags, NULL) == SQLITE_OK
                    ? configure(store, kind, conn, err)
                    : fail_db(conn, err);
    if (!done) {
        close_conn(&conn->base);
        return rt_wrap(err, "%s", store->location);
    }
    *out = &conn->base;
    return true;
}

static bool is_alive(store_conn *conn)
{
    (void)conn;
    return true;
}

/* -- statements -------------------------------------------------------------------------------- */

static bool prepare(sqlite_conn *conn, const char *sql, sqlite3_stmt **out, rt_error *err)
{
    *out = store_statements_find(&conn->base.statements, sql);
    if (*out)
        return true;
    sqlite3_stmt *stmt;
    const char *tail;
    if (sqlite3_prepare_v3(conn->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, &tail) != SQLITE_OK)
        return fail_db(conn, err);
    if (!stmt || rt_str_trim(rt_str_of(tail)).len > 0) {
        sqlite3_finalize(stmt);
        return rt_fail(err, RT_INTERNAL, "a statement is one statement");
    }
    sqlite3_finalize(store_statements_add(&conn->base.statements, sql, stmt));
    *out = stmt;
    return true;
}

static int bind_value(sqlite3_stmt *stmt, int at, const rt_sql_value *value)
{
    switch (value->kind) {
    case RT_SQL_NULL:
        return sqlite3_bind_null(stmt, at);
    case RT_SQL_I64:
    case RT_SQL_BOOL:
        return sqlite3_bind_int64(stmt, at, value->i64);
    case RT_SQL_DOUBLE:
        return sqlite3_bind_double(stmt, at, value->number);
    case RT_SQL_TEXT:
        return sqlite3_bind_text64(stmt, at, value->text.ptr, value->text.len, SQLITE_STATIC,
                                   SQLITE_UTF8);
    case RT_SQL_BYTES:
        return sqlite3_bind_blob64(stmt, at, value->text.ptr, value->text.len, SQLITE_STATIC);
    }
    return SQLITE_MISUSE;
}

/* To SQLite "$2" is a name, numbered by where it first appears; to us it is the second value. */
static bool bind(sqlite_conn *conn, sqlite3_stmt *stmt, const rt_sql_value *values, size_t count,
                 rt_error *err)
{
    if ((size_t)sqlite3_bind_parameter_count(stmt) != count)
        return rt_fail(err, RT_INTERNAL, "a statement has %d parameters and %zu values",
                       sqlite3_bind_parameter_count(stmt), count);
    for (int i = 1; i <= (int)count; i++) {
        const char *name = sqlite3_bind_parameter_name(stmt, i);
        uint64_t number = 0;
        if (!name || name[0] != '$' || !rt_str_to_u64(rt_str_of(name + 1), &number) ||
            number == 0 || number > count)
            return rt_fail(err, RT_INTERNAL, "parameter %s of a statement", name ? name : "?");
        if (bind_value(stmt, i, &values[number - 1]) != SQLITE_OK)
            return fail_db(conn, err);
    }
    return true;
}

/* SQLite has no booleans, and calls bytes what was bound as bytes: the column's type tells. */
static rt_sql_kind declared_kind(sqlite3_stmt *stmt, int column)
{
    const char *type = sqlite3_column_decltype(stmt, column);
    if (type && sqlite3_stricmp(type, "BOOLEAN") == 0)
        return RT_SQL_BOOL;
    return type && sqlite3_stricmp(type, "BYTEA") == 0 ? RT_SQL_BYTES : RT_SQL_NULL;
}

static rt_sql_value cell(sqlite3_stmt *stmt, int column, rt_sql_kind declared, rt_arena *arena)
{
    switch (sqlite3_column_type(stmt, column)) {
    case SQLITE_INTEGER: {
        int64_t n = sqlite3_column_int64(stmt, column);
        return declared == RT_SQL_BOOL ? rt_sql_bool(n != 0) : rt_sql_i64(n);
    }
    case SQLITE_FLOAT:
        return rt_sql_double(sqlite3_column_double(stmt, column));
    case SQLITE_TEXT: {
        rt_str text = { (const char *)sqlite3_column_text(stmt, column), 0 };
        text.len = (size_t)sqlite3_column_bytes(stmt, column);
        text = rt_arena_str(arena, text);
        return declared == RT_SQL_BYTES ? rt_sql_bytes(text) : rt_sql_text(text);
    }
    case SQLITE_BLOB: {
        rt_str bytes = { sqlite3_column_blob(stmt, column), 0 };
        bytes.len = (size_t)sqlite3_column_bytes(stmt, column);
        return rt_sql_bytes(rt_arena_str(arena, bytes));
    }
    default:
        return rt_sql_null();
    }
}

typedef struct collector {
    rt_arena *arena;
    rt_sql_value *cells;
    rt_sql_kind *declared;
    size_t rows, columns, room;
} collector;

static void collector_begin(collector *into, sqlite3_stmt *stmt)
{
    into->columns = (size_t)sqlite3_column_count(stmt);
    into->declared = rt_arena_alloc(into->arena, into->columns * sizeof(*into->declared));
    for (size_t i = 0; i < into->columns; i++)
        into->declared[i] = declared_kind(stmt, (int)i);
}

static void collector_row(collector *into, sqlite3_stmt *stmt)
{
    size_t row_size = into->columns * sizeof(*into->cells);
    if (into->rows == into->room) {
        size_t room = into->room ? into->room * 2 : 1;
        into->cells =
            rt_arena_resize(into->arena, into->cells, into->room * row_size, room * row_size);
        into->room = room;
    }
    rt_sql_value *row = into->cells + into->rows * into->columns;
    for (size_t i = 0; i < into->columns; i++)
        row[i] = cell(stmt, (int)i, into->declared[i], into->arena);
    into->rows++;
}

static bool step_all(sqlite_conn *conn, sqlite3_stmt *stmt, collector *into, rt_error *err)
{
    for (;;) {
        switch (sqlite3_step(stmt)) {
        case SQLITE_DONE:
            return true;
        case SQLITE_ROW:
            if (!into)
                break;
            if (into->rows == RT_STORE_ROWS_MAX)
                return rt_fail(err, RT_LIMIT, "an answer of more than %d rows", RT_STORE_ROWS_MAX);
            collector_row(into, stmt);
            break;
        default:
            return fail_db(conn, err);
        }
    }
}

static bool exec(store_conn *base, const char *sql, const rt_sql_value *values, size_t count,
                 rt_arena *arena, rt_rows *out, rt_error *err)
{
    sqlite_conn *conn = (sqlite_conn *)base;
    sqlite3_stmt *stmt;
    if (!prepare(conn, sql, &stmt, err))
        return false;
    collector into = { .arena = arena };
    if (out)
        collector_begin(&into, stmt);
    conn->deadline_ns = rt_now_ns() + STORE_STATEMENT_MS * UINT64_C(1000000);
    bool done =
        bind(conn, stmt, values, count, err) && step_all(conn, stmt, out ? &into : NULL, err);
    if (done && out)
        *out = (rt_rows){ .count = into.rows,
                          .columns = into.columns,
                          .cells = into.cells,
                          .changed = sqlite3_stmt_readonly(stmt)
                                         ? 0
                                         : (uint64_t)sqlite3_changes64(conn->db) };
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    return done;
}

const store_backend store_sqlite = {
    .kind = "sqlite",
    .begin = { [RT_TX_READ] = "BEGIN", [RT_TX_WRITE] = "BEGIN IMMEDIATE" },
    .purge =
        "PRAGMA wal_checkpoint(TRUNCATE)", /* its first column: whether somebody was in the way */
    .settle = settle,
    .connect = connect_file,
    .close = close_conn,
    .is_alive = is_alive,
    .exec = exec,
    .script = script,
};
