/* SPDX-License-Identifier: Apache-2.0 */
#include "store/fixture_test.h"
#include "store/store_internal.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 8

static void run(rt_store *store, const char *sql)
{
    rt_error err = { 0 };
    cr_assert(rt_sql_once(store, RT_TX_WRITE, sql, NULL, 0, NULL, NULL, &err), "%s: %s", sql,
              err.text);
}

static rt_sql_value ask(rt_store *store, const char *sql, rt_arena *arena)
{
    rt_error err = { 0 };
    rt_rows rows;
    cr_assert(rt_sql_once(store, RT_TX_READ, sql, NULL, 0, arena, &rows, &err), "%s: %s", sql,
              err.text);
    return rt_rows_at(&rows, 0, 0);
}

static int64_t ask_i64(rt_store *store, const char *sql)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    return ask(store, sql, &arena).i64;
}

static rt_code code_of(rt_store *store, const char *sql, const rt_sql_value *values, size_t count)
{
    rt_error err = { 0 };
    bool done = rt_sql_once(store, RT_TX_WRITE, sql, values, count, NULL, NULL, &err);
    return done ? RT_OK : err.code;
}

static void make_things(rt_store *store)
{
    run(store,
        "CREATE TABLE things (id BIGINT PRIMARY KEY, truth BOOLEAN, whole BIGINT, "
        "real DOUBLE PRECISION, words TEXT, bytes BYTEA, parent BIGINT REFERENCES things (id),"
        " colour TEXT NOT NULL DEFAULT 'red' CHECK (colour IN ('red', 'green')))");
}

/* -- values ---------------------------------------------------------------------------------------
 */

static bool is_same(rt_sql_value a, rt_sql_value b)
{
    if (a.kind != b.kind)
        return false;
    switch (a.kind) {
    case RT_SQL_NULL:
        return true;
    case RT_SQL_TEXT:
    case RT_SQL_BYTES:
        return rt_str_eq(a.text, b.text);
    case RT_SQL_DOUBLE:
        return memcmp(&a.number, &b.number, sizeof(a.number)) == 0;
    default:
        return a.i64 == b.i64;
    }
}

STORE_TEST(db, values_come_back_as_they_were)
{
    make_things(store);
    static char every_byte[256];
    for (size_t i = 0; i < sizeof(every_byte); i++)
        every_byte[i] = (char)i;
    const rt_sql_value rows[][5] = {
        { rt_sql_null(), rt_sql_null(), rt_sql_null(), rt_sql_null(), rt_sql_null() },
        { rt_sql_bool(false), rt_sql_i64(0), rt_sql_double(0.0), rt_sql_text(RT_STR("")),
          rt_sql_bytes(RT_STR("")) },
        { rt_sql_bool(true), rt_sql_i64(INT64_MAX), rt_sql_double(0.1),
          rt_sql_text(RT_STR("naïve 東京 🧪 'quoted' \"twice\" $1 \\x41 %s")),
          rt_sql_bytes((rt_str){ every_byte, sizeof(every_byte) }) },
        { rt_sql_bool(true), rt_sql_i64(INT64_MIN), rt_sql_double(-1.7976931348623157e308),
          rt_sql_text(RT_STR("123")), rt_sql_bytes(RT_STR("\\x00ff")) },
        { rt_sql_bool(true), rt_sql_i64(-1), rt_sql_double(5e-324), rt_sql_text(RT_STR("\t\r\n")),
          rt_sql_bytes(RT_STR("\0")) },
        { rt_sql_bool(true), rt_sql_i64(9007199254740993), rt_sql_double(3.0),
          rt_sql_text(RT_STR("1.0")), rt_sql_bytes(RT_STR("text")) },
    };
    for (size_t i = 0; i < RT_COUNT(rows); i++) {
        rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
        rt_error err = { 0 };
        rt_rows out;
        rt_sql_value values[] = {
            rt_sql_i64((int64_t)i), rows[i][0], rows[i][1], rows[i][2], rows[i][3], rows[i][4]
        };
        cr_assert(rt_sql_once(store, RT_TX_WRITE,
                              "INSERT INTO things (id, truth, whole, real, words, bytes) "
                              "VALUES ($1, $2, $3, $4, $5, $6)",
                              values, RT_COUNT(values), &arena, &out, &err),
                  "%s", err.text);
        cr_assert_eq(out.changed, 1);
        cr_assert(rt_sql_once(store, RT_TX_READ,
                              "SELECT truth, whole, real, words, bytes FROM things WHERE id = $1",
                              values, 1, &arena, &out, &err),
                  "%s", err.text);
        cr_assert_eq(out.count, 1);
        cr_assert_eq(out.changed, 0);
        for (size_t k = 0; k < 5; k++)
            cr_assert(is_same(rt_rows_at(&out, 0, k), rows[i][k]), "row %zu column %zu", i, k);
    }
}

STORE_TEST(db, numbers_of_any_kind_can_be_read_as_either)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    make_things(store);
    rt_sql_value nothing = ask(store, "SELECT COALESCE(SUM(real), 0) FROM things", &arena);
    cr_assert_eq(nothing.i64, 0);
    cr_assert_eq(nothing.number, 0);
    run(store, "INSERT INTO things (id, whole, real) VALUES (1, 4, 1.5), (2, 5, 2.5), (3, 5, 3)");
    rt_sql_value sum = ask(store, "SELECT SUM(whole) FROM things", &arena);
    cr_assert_eq(sum.kind, RT_SQL_I64);
    cr_assert_eq(sum.i64, 14);
    cr_assert_eq(sum.number, 14.0);
    rt_sql_value average = ask(store, "SELECT AVG(whole) FROM things", &arena);
    cr_assert_eq(average.kind, RT_SQL_DOUBLE);
    cr_assert_float_eq(average.number, 14.0 / 3, 1e-12);
    rt_sql_value real = ask(store, "SELECT SUM(real) FROM things", &arena);
    cr_assert_eq(real.number, 7.0);
    cr_assert_eq(real.i64, 7);
    run(store, "INSERT INTO things (id, whole) VALUES (4, 9000000000000000000)");
    cr_assert_eq(ask_i64(store, "SELECT SUM(whole) FROM things"), 9000000000000000014);
    run(store, "UPDATE things SET whole = -20000 WHERE id = 4");
    cr_assert_eq(ask_i64(store, "SELECT SUM(whole) FROM things"), -19986);
    run(store, "UPDATE things SET whole = 100000000 - 14 WHERE id = 4");
    cr_assert_eq(ask_i64(store, "SELECT SUM(whole) FROM things"), 100000000);
}

STORE_TEST(db, values_are_placed_by_their_number)
{
    make_things(store);
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_rows rows;
    rt_sql_value values[] = { rt_sql_text(RT_STR("words")), rt_sql_i64(7), rt_sql_bool(true) };
    cr_assert(rt_sql_once(store, RT_TX_WRITE,
                          "INSERT INTO things (truth, id, whole, words) VALUES ($3, $2, $2, $1) "
                          "RETURNING words, whole, truth",
                          values, 3, &arena, &rows, &err),
              "%s", err.text);
    cr_assert_eq(rows.changed, 1);
    for (size_t i = 0; i < 3; i++)
        cr_assert(is_same(rt_rows_at(&rows, 0, i), values[i]));
    cr_assert_eq(code_of(store, "DELETE FROM things WHERE id = $1", values, 2), RT_INTERNAL);
    cr_assert_eq(code_of(store, "DELETE FROM things WHERE id = $1", values, 0), RT_INTERNAL);
    cr_assert_eq(rt_rows_at(&rows, 1, 0).kind, RT_SQL_NULL);
    cr_assert_eq(rt_rows_at(&rows, 0, 3).kind, RT_SQL_NULL);
}

STORE_TEST(db, text_neither_database_could_keep_is_refused_by_both)
{
    make_things(store);
    const rt_sql_value refused[] = { rt_sql_text(RT_STR("a\0b")), rt_sql_text(RT_STR("\xff\xfe")),
                                     rt_sql_text(RT_STR("\xed\xa0\x80")), rt_sql_double(NAN),
                                     rt_sql_double(INFINITY) };
    for (size_t i = 0; i < RT_COUNT(refused); i++)
        cr_assert_eq(code_of(store,
                             refused[i].kind == RT_SQL_TEXT
                                 ? "INSERT INTO things (id, words) VALUES (1, $1)"
                                 : "INSERT INTO things (id, real) VALUES (1, $1)",
                             &refused[i], 1),
                     RT_INVALID);
    cr_assert_eq(ask_i64(store, "SELECT COUNT(*) FROM things"), 0);
}

STORE_TEST(db, like_and_order_mean_the_same_everywhere)
{
    make_things(store);
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    run(store, "INSERT INTO things (id, words) VALUES (1, 'b'), (2, 'B'), (3, 'a'), (4, 'é')");
    cr_assert_eq(ask_i64(store, "SELECT COUNT(*) FROM things WHERE words LIKE 'b%'"), 1);
    rt_error err = { 0 };
    rt_rows rows;
    cr_assert(rt_sql_once(store, RT_TX_READ,
                          "SELECT words FROM things ORDER BY words COLLATE \"C\"", NULL, 0, &arena,
                          &rows, &err),
              "%s", err.text);
    static const char *const expected[] = { "B", "a", "b", "é" };
    for (size_t i = 0; i < RT_COUNT(expected); i++)
        cr_assert(rt_str_eq_c(rt_rows_at(&rows, i, 0).text, expected[i]));
}

/* -- errors ---------------------------------------------------------------------------------------
 */

STORE_TEST(db, a_broken_constraint_has_its_code)
{
    make_things(store);
    run(store, "INSERT INTO things (id) VALUES (1)");
    cr_assert_eq(code_of(store, "INSERT INTO things (id) VALUES (1)", NULL, 0), RT_CONFLICT);
    cr_assert_eq(code_of(store, "INSERT INTO things (id, parent) VALUES (2, 9)", NULL, 0),
                 RT_CONFLICT);
    cr_assert_eq(code_of(store, "INSERT INTO things (id, colour) VALUES (2, 'blue')", NULL, 0),
                 RT_INVALID);
    cr_assert_eq(code_of(store, "INSERT INTO things (id, colour) VALUES (2, NULL)", NULL, 0),
                 RT_INVALID);
    cr_assert_eq(code_of(store, "INSERT INTO nowhere (id) VALUES (2)", NULL, 0), RT_INTERNAL);
    cr_assert_eq(code_of(store, "SELECT 1; SELECT 2", NULL, 0), RT_INTERNAL);
    cr_assert_eq(ask_i64(store, "SELECT COUNT(*) FROM things"), 1);
}

STORE_TEST(db, a_reader_cannot_write)
{
    make_things(store);
    rt_tx *tx RT_CLEANUP(rt_tx_rollbackp) = NULL;
    rt_error err = { 0 };
    cr_assert(rt_tx_begin(store, RT_TX_READ, &tx, &err));
    cr_assert(!rt_sql(tx, "INSERT INTO things (id) VALUES (1)", NULL, 0, NULL, NULL, &err));
    cr_assert_eq(err.code, RT_DENIED);
}

/* -- transactions ---------------------------------------------------------------------------------
 */

STORE_TEST(db, what_was_not_committed_did_not_happen)
{
    make_things(store);
    rt_error err = { 0 };
    {
        rt_tx *tx RT_CLEANUP(rt_tx_rollbackp) = NULL;
        cr_assert(rt_tx_begin(store, RT_TX_WRITE, &tx, &err));
        cr_assert(rt_sql(tx, "INSERT INTO things (id) VALUES (1)", NULL, 0, NULL, NULL, &err));
    }
    cr_assert_eq(ask_i64(store, "SELECT COUNT(*) FROM things"), 0);
    rt_tx *tx RT_CLEANUP(rt_tx_rollbackp) = NULL;
    cr_assert(rt_tx_begin(store, RT_TX_WRITE, &tx, &err));
    cr_assert(rt_sql(tx, "INSERT INTO things (id) VALUES (1)", NULL, 0, NULL, NULL, &err));
    cr_assert(rt_tx_commit(&tx, &err));
    cr_assert_null(tx);
    cr_assert_eq(ask_i64(store, "SELECT COUNT(*) FROM things"), 1);
}

STORE_TEST(db, a_transaction_with_a_failed_statement_cannot_go_on)
{
    make_things(store);
    rt_error err = { 0 };
    rt_tx *tx RT_CLEANUP(rt_tx_rollbackp) = NULL;
    cr_assert(rt_tx_begin(store, RT_TX_WRITE, &tx, &err));
    cr_assert(rt_sql(tx, "INSERT INTO things (id) VALUES (1)", NULL, 0, NULL, NULL, &err));
    cr_assert(!rt_sql(tx, "INSERT INTO things (id) VALUES (1)", NULL, 0, NULL, NULL, &err));
    cr_assert_eq(err.code, RT_CONFLICT);
    cr_assert(!rt_sql(tx, "INSERT INTO things (id) VALUES (2)", NULL, 0, NULL, NULL, &err));
    cr_assert(!rt_tx_commit(&tx, &err));
    cr_assert_null(tx);
    cr_assert_eq(ask_i64(store, "SELECT COUNT(*) FROM things"), 0);
}

STORE_TEST(db, a_reader_sees_one_moment)
{
    make_things(store);
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_rows rows;
    rt_tx *tx RT_CLEANUP(rt_tx_rollbackp) = NULL;
    cr_assert(rt_tx_begin(store, RT_TX_READ, &tx, &err));
    for (int i = 0; i < 2; i++) {
        cr_assert(rt_sql(tx, "SELECT COUNT(*) FROM things", NULL, 0, &arena, &rows, &err), "%s",
                  err.text);
        cr_assert_eq(rt_rows_at(&rows, 0, 0).i64, 0);
        if (i == 0)
            run(store, "INSERT INTO things (id) VALUES (1)");
    }
}

STORE_TEST(db, more_statements_than_are_kept_prepared_work)
{
    make_things(store);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < STORE_STATEMENTS_MAX * 2; i++) {
            char sql[64];
            snprintf(sql, sizeof(sql), "SELECT %d + COUNT(*) FROM things", i);
            cr_assert_eq(ask_i64(store, sql), i);
        }
    }
}

/* -- threads --------------------------------------------------------------------------------------
 */

#define ROUNDS 40

/* Reads, then writes what follows from it: only right when nobody comes between. */
static void *count_up(void *ctx)
{
    rt_store *store = ctx;
    for (int i = 0; i < ROUNDS; i++) {
        rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
        rt_tx *tx RT_CLEANUP(rt_tx_rollbackp) = NULL;
        rt_error err = { 0 };
        rt_rows rows;
        cr_assert(rt_tx_begin(store, RT_TX_WRITE, &tx, &err), "%s", err.text);
        cr_assert(rt_sql(tx, "UPDATE things SET whole = whole WHERE id = 1 RETURNING whole", NULL,
                         0, &arena, &rows, &err),
                  "%s", err.text);
        rt_sql_value next = rt_sql_i64(rt_rows_at(&rows, 0, 0).i64 + 1);
        cr_assert(
            rt_sql(tx, "UPDATE things SET whole = $1 WHERE id = 1", &next, 1, NULL, NULL, &err),
            "%s", err.text);
        cr_assert(rt_tx_commit(&tx, &err), "%s", err.text);
        cr_assert_leq(next.i64, ask_i64(store, "SELECT whole FROM things WHERE id = 1"));
    }
    return NULL;
}

static void run_threads(rt_store *store)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, count_up, store), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(ask_i64(store, "SELECT whole FROM things WHERE id = 1"), THREADS * ROUNDS);
}

STORE_TEST(db, eight_threads_write_and_nothing_is_lost)
{
    make_things(store);
    run(store, "INSERT INTO things (id, whole) VALUES (1, 0)");
    run_threads(store);
}

STORE_TEST(db, threads_share_a_single_connection)
{
    rt_error err = { 0 };
    rt_store *narrow RT_CLEANUP(rt_store_closep) = NULL;
    rt_store_config config = { .url = rt_str_of(where->url), .connections = 1 };
    make_things(store);
    run(store, "INSERT INTO things (id, whole) VALUES (1, 0)");
    cr_assert(rt_store_open(&config, &narrow, &err), "%s", err.text);
    run_threads(narrow);
}

STORE_TEST(db, waiting_for_a_connection_has_an_end)
{
    rt_error err = { 0 };
    rt_store *narrow RT_CLEANUP(rt_store_closep) = NULL;
    rt_store_config config = { .url = rt_str_of(where->url), .connections = 1, .wait_ms = 30 };
    cr_assert(rt_store_open(&config, &narrow, &err), "%s", err.text);
    rt_tx *first RT_CLEANUP(rt_tx_rollbackp) = NULL, *second RT_CLEANUP(rt_tx_rollbackp) = NULL;
    cr_assert(rt_tx_begin(narrow, RT_TX_WRITE, &first, &err));
    cr_assert(!rt_tx_begin(narrow, RT_TX_WRITE, &second, &err));
    cr_assert_eq(err.code, RT_UNAVAILABLE);
    rt_tx_rollbackp(&first);
    cr_assert(rt_tx_begin(narrow, RT_TX_WRITE, &second, &err), "%s", err.text);
}

/* -- what is promised about a crash
 * ------------------------------------------------------------------ */

/* Tells of each commit it was told of, until it is killed. */
static void commit_for_ever(const store_fixture *where, int tell)
{
    rt_error err = { 0 };
    rt_store *store = NULL;
    rt_store_config config = { .url = rt_str_of(where->url) };
    if (!rt_store_open(&config, &store, &err))
        _exit(1);
    for (int64_t i = 1;; i++) {
        rt_sql_value id = rt_sql_i64(i);
        if (!rt_sql_once(store, RT_TX_WRITE, "INSERT INTO things (id) VALUES ($1)", &id, 1, NULL,
                         NULL, &err) ||
            write(tell, &i, sizeof(i)) != sizeof(i))
            _exit(1);
    }
}

STORE_TEST(db, what_was_reported_as_written_survives_a_kill)
{
    make_things(store);
    int ends[2];
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0)
        commit_for_ever(where, ends[1]);
    close(ends[1]);
    int64_t told = 0, last = 0;
    while (told < 100 && read(ends[0], &told, sizeof(told)) == sizeof(told))
        last = told;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    while (read(ends[0], &told, sizeof(told)) == sizeof(told))
        last = told;
    close(ends[0]);
    rt_store *again RT_CLEANUP(rt_store_closep) = store_fixture_reopen(where);
    cr_assert_geq(last, 100);
    cr_assert_geq(ask_i64(again, "SELECT COUNT(*) FROM things"), last);
    cr_assert_eq(ask_i64(again, "SELECT COUNT(*) - MAX(id) FROM things"), 0);
}

/* -- opening --------------------------------------------------------------------------------------
 */

Test(db, a_url_that_makes_no_sense_is_refused)
{
    static const char *const urls[] = { "",
                                        "mysql://x",
                                        "sqlite:",
                                        "sqlite://relative.db",
                                        "sqlite:relative.db",
                                        "sqlite:///tmp/",
                                        "sqlite:///",
                                        "/tmp/x.db" };
    for (size_t i = 0; i < RT_COUNT(urls); i++) {
        rt_error err = { 0 };
        rt_store *store RT_CLEANUP(rt_store_closep) = NULL;
        cr_assert(!rt_store_open(&(rt_store_config){ .url = rt_str_of(urls[i]) }, &store, &err));
        cr_assert_eq(err.code, RT_INVALID, "%s: %s", urls[i], err.text);
    }
}

Test(db, no_error_tells_the_password)
{
    static const char *const urls[] = {
        "postgresql://user:hunter2@127.0.0.1:1/db",
        "postgresql://user:hunter2@[::1/db",
        "postgresql://user:a@hunter2@127.0.0.1:1/db",
        "postgresql://user:hunter2/@127.0.0.1/db",
        "postgresql://user:a/hunter2@127.0.0.1/db",
        "postgresql://user:hunter2%zz@127.0.0.1/db",
        "postgresql://user:hunter2@127.0.0.1:1/db?x=y",
        "postgresql://127.0.0.1:1/?password=hunter2",
        "postgresql://user:hunter2@/db?host=/nowhere",
    };
    for (size_t i = 0; i < RT_COUNT(urls); i++) {
        rt_error err = { 0 };
        rt_store *store RT_CLEANUP(rt_store_closep) = NULL;
        cr_assert(!rt_store_open(&(rt_store_config){ .url = rt_str_of(urls[i]) }, &store, &err));
        cr_assert(!strstr(err.text, "hunter2"), "%s", err.text);
        cr_assert(err.code == RT_UNAVAILABLE || err.code == RT_INVALID, "%s", err.text);
    }
}

Test(db, the_file_of_sqlite_is_for_nobody_else)
{
    store_fixture where RT_CLEANUP(store_fixture_done) = { 0 };
    umask(0);
    store_fixture_open(&where, "sqlite");
    run(where.store, "INSERT INTO settings (key, value) VALUES ('a', 'b')");
    static const struct {
        const char *name;
        mode_t mode;
    } expected[] = {
        { "data", 0700 },
        { "data/retort.db", 0600 },
        { "data/retort.db-wal", 0600 },
        { "data/retort.db-shm", 0600 },
    };
    for (size_t i = 0; i < RT_COUNT(expected); i++) {
        char path[128];
        struct stat st;
        snprintf(path, sizeof(path), "%s/%s", where.directory, expected[i].name);
        cr_assert_eq(stat(path, &st), 0, "%s", path);
        cr_assert_eq(st.st_mode & 0777, expected[i].mode, "%s is %o", path, st.st_mode & 0777);
    }
}

Test(db, a_file_that_is_no_database_is_refused)
{
    store_fixture where RT_CLEANUP(store_fixture_done) = { 0 };
    store_fixture_place(&where, "sqlite");
    char path[128], url[160];
    snprintf(path, sizeof(path), "%s/letter.txt", where.directory);
    snprintf(url, sizeof(url), "sqlite://%s", path);
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 1000; i++)
        fputs("Dear reader, this is a letter. ", file);
    fclose(file);
    rt_error err = { 0 };
    rt_store *store RT_CLEANUP(rt_store_closep) = NULL;
    cr_assert(!rt_store_open(&(rt_store_config){ .url = rt_str_of(url) }, &store, &err));
    cr_assert_eq(err.code, RT_SYSTEM, "%s", err.text);
}

Test(db, a_database_in_memory_is_one_for_all_threads)
{
    rt_error err = { 0 };
    rt_store *store RT_CLEANUP(rt_store_closep) = NULL;
    cr_assert(rt_store_open(&(rt_store_config){ .url = RT_STR("sqlite::memory:") }, &store, &err));
    cr_assert(rt_store_migrate(store, NULL, NULL, &err), "%s", err.text);
    make_things(store);
    run(store, "INSERT INTO things (id, whole) VALUES (1, 0)");
    run_threads(store);
}

static bool is_in_files(const store_fixture *where, rt_str marker)
{
    static const char *const names[] = { "retort.db", "retort.db-wal" };
    bool is_found = false;
    for (size_t i = 0; i < RT_COUNT(names); i++) {
        rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
        rt_error err = { 0 };
        rt_str file;
        const char *path = rt_arena_printf(&arena, "%s/data/%s", where->directory, names[i]).ptr;
        cr_assert(rt_read_file(path, 1 << 24, &arena, &file, &err), "%s", err.text);
        is_found |= rt_str_find(file, marker) >= 0;
    }
    return is_found;
}

Test(db, erased_text_is_in_no_file_of_sqlite_after_a_purge)
{
    store_fixture where RT_CLEANUP(store_fixture_done) = { 0 };
    store_fixture_open(&where, "sqlite");
    rt_error err = { 0 };
    run(where.store, "INSERT INTO settings (key, value) VALUES ('a', 'MARKER-OF-A-PERSON')");
    cr_assert(rt_store_purge(where.store, &err), "%s", err.text);
    cr_assert(is_in_files(&where, RT_STR("MARKER-OF-A-PERSON")));
    run(where.store, "UPDATE settings SET value = NULLIF(key, 'b')");
    cr_assert(rt_store_purge(where.store, &err), "%s", err.text);
    cr_assert(!is_in_files(&where, RT_STR("MARKER-OF-A-PERSON")));
}

STORE_TEST(db, can_be_purged)
{
    rt_error err = { 0 };
    run(store, "INSERT INTO settings (key, value) VALUES ('a', 'b')");
    cr_assert(rt_store_purge(store, &err), "%s", err.text);
    cr_assert_eq(ask_i64(store, "SELECT COUNT(*) FROM settings"), 1);
}

/* -- a server that goes away
 * ------------------------------------------------------------------------ */

/* Ends every other connection that was made with this test's search path. */
static void end_connections_of(const store_fixture *where)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_store *killer RT_CLEANUP(rt_store_closep) = store_fixture_reopen(where);
    rt_error err = { 0 };
    rt_rows rows;
    cr_assert(rt_sql_once(killer, RT_TX_WRITE,
                          "SELECT pg_terminate_backend(a.pid, 5000) FROM pg_stat_activity a "
                          "JOIN things ON things.whole = a.pid",
                          NULL, 0, &arena, &rows, &err),
              "%s", err.text);
    cr_assert_gt(rows.count, 0);
}

static void note_connection(rt_store *store)
{
    run(store, "INSERT INTO things (id, whole) SELECT pg_backend_pid(), pg_backend_pid() "
               "ON CONFLICT DO NOTHING");
}

Test(db, an_idle_connection_that_died_is_made_anew)
{
    store_fixture where RT_CLEANUP(store_fixture_done) = { 0 };
    store_fixture_open(&where, "postgresql");
    rt_store *store = where.store;
    make_things(store);
    for (int i = 0; i < 3; i++) {
        note_connection(store);
        end_connections_of(&where);
        rt_error err = { 0 };
        rt_tx *tx RT_CLEANUP(rt_tx_rollbackp) = NULL;
        if (i == 0)
            run(store, "UPDATE things SET real = 1");
        else if (i == 1)
            cr_assert_gt(ask_i64(store, "SELECT COUNT(*) FROM things"), 0);
        else
            cr_assert(rt_tx_begin(store, RT_TX_WRITE, &tx, &err), "%s", err.text);
    }
}

Test(db, a_connection_that_dies_in_a_transaction_is_reported_and_replaced)
{
    store_fixture where RT_CLEANUP(store_fixture_done) = { 0 };
    store_fixture_open(&where, "postgresql");
    rt_store *store = where.store;
    rt_error err = { 0 };
    make_things(store);
    note_connection(store);
    rt_tx *tx RT_CLEANUP(rt_tx_rollbackp) = NULL;
    cr_assert(rt_tx_begin(store, RT_TX_WRITE, &tx, &err));
    cr_assert(rt_sql(tx, "INSERT INTO things (id) VALUES (1)", NULL, 0, NULL, NULL, &err));
    end_connections_of(&where);
    cr_assert(!rt_sql(tx, "INSERT INTO things (id) VALUES (2)", NULL, 0, NULL, NULL, &err));
    cr_assert_eq(err.code, RT_UNAVAILABLE, "%s", err.text);
    cr_assert(!rt_tx_commit(&tx, &err));
    cr_assert_eq(ask_i64(store, "SELECT COUNT(*) FROM things WHERE id < 3"), 0);
}

Test(db, a_lock_that_others_keep_is_unavailable)
{
    store_fixture where RT_CLEANUP(store_fixture_done) = { 0 };
    store_fixture_open(&where, "postgresql");
    rt_store *store = where.store;
    rt_error err = { 0 };
    make_things(store);
    run(store, "INSERT INTO things (id) VALUES (1), (2)");
    rt_tx *first RT_CLEANUP(rt_tx_rollbackp) = NULL, *second RT_CLEANUP(rt_tx_rollbackp) = NULL;
    cr_assert(rt_tx_begin(store, RT_TX_WRITE, &first, &err));
    cr_assert(rt_tx_begin(store, RT_TX_WRITE, &second, &err));
    cr_assert(rt_sql(first, "SET LOCAL lock_timeout = '20ms'", NULL, 0, NULL, NULL, &err));
    cr_assert(
        rt_sql(second, "UPDATE things SET whole = 2 WHERE id = 2", NULL, 0, NULL, NULL, &err));
    cr_assert(
        !rt_sql(first, "UPDATE things SET whole = 1 WHERE id = 2", NULL, 0, NULL, NULL, &err));
    cr_assert_eq(err.code, RT_UNAVAILABLE, "%s", err.text);
    rt_tx_rollbackp(&first);
    cr_assert(rt_tx_commit(&second, &err), "%s", err.text);
}
