/* SPDX-License-Identifier: Apache-2.0 */
#include "store/fixture_test.h"

#include <glob.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>

typedef struct heard {
    unsigned steps, fresh;
    char names[32][64];
} heard;

static void listen(void *ctx, unsigned version, const char *name, bool is_new)
{
    heard *all = ctx;
    cr_assert_eq(version, all->steps + 1);
    snprintf(all->names[all->steps], sizeof(all->names[0]), "%04u_%s.sql", version, name);
    all->steps++;
    all->fresh += is_new;
}

static void run(rt_store *store, const char *sql)
{
    rt_error err = { 0 };
    cr_assert(rt_sql_once(store, RT_TX_WRITE, sql, NULL, 0, NULL, NULL, &err), "%s: %s", sql,
              err.text);
}

static rt_code code_of(rt_store *store, const char *sql, const char *value)
{
    rt_error err = { 0 };
    rt_sql_value values = rt_sql_text(rt_str_of(value));
    return rt_sql_once(store, RT_TX_WRITE, sql, &values, 1, NULL, NULL, &err) ? RT_OK : err.code;
}

static int64_t ask_i64(rt_store *store, const char *sql)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_rows rows;
    cr_assert(rt_sql_once(store, RT_TX_READ, sql, NULL, 0, &arena, &rows, &err), "%s: %s", sql,
              err.text);
    return rt_rows_at(&rows, 0, 0).i64;
}

STORE_TEST(migrations, a_second_time_changes_nothing)
{
    rt_error err = { 0 };
    heard second = { 0 };
    cr_assert(rt_store_migrate(store, listen, &second, &err), "%s", err.text);
    cr_assert_gt(second.steps, 0);
    cr_assert_eq(second.fresh, 0);
    cr_assert_eq(ask_i64(store, "SELECT COUNT(*) FROM schema_migrations"), second.steps);
}

Test(migrations, every_file_is_a_step)
{
    rt_error err = { 0 };
    heard all = { 0 };
    rt_store *store RT_CLEANUP(rt_store_closep) = NULL;
    cr_assert(rt_store_open(&(rt_store_config){ .url = RT_STR("sqlite::memory:") }, &store, &err));
    cr_assert(rt_store_migrate(store, listen, &all, &err), "%s", err.text);
    cr_assert_eq(all.fresh, all.steps);
    glob_t files;
    cr_assert_eq(glob("src/store/migrations/*.sql", 0, NULL, &files), 0);
    cr_assert_eq(files.gl_pathc, all.steps);
    for (size_t i = 0; i < files.gl_pathc; i++)
        cr_assert_str_eq(strrchr(files.gl_pathv[i], '/') + 1, all.names[i]);
    globfree(&files);
}

typedef struct starter {
    const store_fixture *where;
    pthread_barrier_t *gun;
    heard told;
    bool is_done;
    rt_error err;
} starter;

static void *start_up(void *ctx)
{
    starter *self = ctx;
    rt_store *store RT_CLEANUP(rt_store_closep) = NULL;
    rt_store_config config = { .url = rt_str_of(self->where->url) };
    pthread_barrier_wait(self->gun);
    self->is_done = rt_store_open(&config, &store, &self->err) &&
                    rt_store_migrate(store, listen, &self->told, &self->err);
    return NULL;
}

STORE_TEST(migrations, several_may_start_at_once)
{
    enum { STARTERS = 4 };
    store_fixture empty RT_CLEANUP(store_fixture_done) = { 0 };
    store_fixture_place(&empty, rt_store_kind(store));
    pthread_barrier_t gun;
    pthread_barrier_init(&gun, NULL, STARTERS);
    pthread_t threads[STARTERS];
    starter starters[STARTERS] = { 0 };
    unsigned fresh = 0;
    for (size_t i = 0; i < STARTERS; i++) {
        starters[i].where = &empty;
        starters[i].gun = &gun;
        pthread_create(&threads[i], NULL, start_up, &starters[i]);
    }
    for (size_t i = 0; i < STARTERS; i++) {
        pthread_join(threads[i], NULL);
        cr_assert(starters[i].is_done, "%s", starters[i].err.text);
        cr_assert_eq(starters[i].told.steps, starters[0].told.steps);
        fresh += starters[i].told.fresh;
    }
    cr_assert_eq(fresh, starters[0].told.steps);
    pthread_barrier_destroy(&gun);
}

STORE_TEST(migrations, a_schema_of_a_newer_program_is_refused)
{
    rt_error err = { 0 };
    run(store, "INSERT INTO schema_migrations VALUES (9999, 'tomorrow', 'x', 1)");
    cr_assert(!rt_store_migrate(store, NULL, NULL, &err));
    cr_assert_eq(err.code, RT_UNSUPPORTED);
    cr_assert(strstr(err.text, "tomorrow"), "%s", err.text);
}

STORE_TEST(migrations, a_step_that_was_changed_is_refused)
{
    rt_error err = { 0 };
    run(store, "UPDATE schema_migrations SET sha256 = 'other' WHERE version = 1");
    cr_assert(!rt_store_migrate(store, NULL, NULL, &err));
    cr_assert_eq(err.code, RT_CONFLICT);
    cr_assert(strstr(err.text, "step 1 (house)"), "%s", err.text);
}

Test(migrations, the_printed_text_makes_the_same_schema_and_may_be_run_again)
{
    store_fixture where RT_CLEANUP(store_fixture_done) = { 0 };
    store_fixture_place(&where, "postgresql");
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_store_migrations_print(&text);
    rt_buf_addc(&text, '\0');
    PGconn *psql = PQconnectdb(where.url);
    PQclear(PQexec(psql, "SET client_min_messages = warning"));
    for (int i = 0; i < 2; i++) {
        PGresult *result = PQexec(psql, text.ptr);
        cr_assert_eq(PQresultStatus(result), PGRES_COMMAND_OK, "%s", PQerrorMessage(psql));
        PQclear(result);
    }
    PQfinish(psql);
    rt_error err = { 0 };
    heard all = { 0 };
    where.store = store_fixture_reopen(&where);
    cr_assert(rt_store_migrate(where.store, listen, &all, &err), "%s", err.text);
    cr_assert_eq(all.fresh, 0);
}

/* -- what the schema itself sees to
 * ------------------------------------------------------------------ */

STORE_TEST(schema, the_first_organisation_is_there)
{
    cr_assert_eq(ask_i64(store,
                         "SELECT COUNT(*) FROM users JOIN organisations ON organisations.id ="
                         " users.organisation_id JOIN workspaces ON workspaces.id = users.id "
                         "WHERE users.id = 'local'"),
                 1);
}

typedef struct allowed {
    const char *sql;
    const char *values[16];
} allowed;

static const allowed sets[] = {
    { "INSERT INTO executions (id, organisation_id, language, created_ms, status) VALUES "
      "(CAST($1 AS TEXT), 'local', 'python', 1, $1)",
      { "QUEUED", "RUNNING", "SUCCESS", "FAILED", "TIMEOUT", "MEMORY_ERROR", "CANCELLED" } },
    { "INSERT INTO file_index (id, organisation_id, file_name, file_type, file_size, "
      "gemini_file_id,"
      " category, created_ms, updated_ms) VALUES ($1, 'local', 'f', 't', 1, $1, $1, 1, 1)",
      { "PAYROLL", "FINANCIAL", "HRIS", "ERP", "CRM", "COMPLIANCE", "AI_LOGS", "OTHER" } },
    { "INSERT INTO file_index (id, organisation_id, file_name, file_type, file_size, "
      "gemini_file_id,"
      " index_status, created_ms, updated_ms) VALUES ($1, 'local', 'f', 't', 1, $1, $1, 1, 1)",
      { "INDEXING", "READY", "FAILED" } },
    { "INSERT INTO audit_events (time_ms, organisation_id, action, outcome, event_type) VALUES "
      "(1, 'local', 'x', 'ok', $1)",
      { "ROOM_CREATED", "ACCESS_CODE_SENT", "ACCESS_ATTEMPT_SUCCESS", "ACCESS_ATTEMPT_FAILED",
        "FILE_UPLOADED", "FILE_DOWNLOADED", "FILE_DELETED", "ROOM_ACCESSED", "MFA_ENABLED",
        "MFA_VERIFIED", "IP_WHITELIST_UPDATED", "ROOM_EXPIRED", "ROOM_CLOSED", "ROOM_REVOKED",
        "SUSPICIOUS_ACTIVITY" } },
    { "INSERT INTO costs (organisation_id, date, period) VALUES ('local', '2026-11', $1)",
      { "daily", "monthly" } },
};

STORE_TEST(schema, a_value_outside_its_set_is_rejected)
{
    for (size_t i = 0; i < RT_COUNT(sets); i++) {
        for (size_t k = 0; k < RT_COUNT(sets[i].values) && sets[i].values[k]; k++)
            cr_assert_eq(code_of(store, sets[i].sql, sets[i].values[k]), RT_OK, "%s",
                         sets[i].values[k]);
        cr_assert_eq(code_of(store, sets[i].sql, "ELSE"), RT_INVALID, "%s", sets[i].sql);
    }
}

STORE_TEST(schema, a_category_takes_its_tools_along_and_a_tool_leaves_its_runs)
{
    run(store, "INSERT INTO tool_categories (id, name, created_ms, updated_ms) "
               "VALUES ('c', 'data', 1, 1)");
    run(store, "INSERT INTO tools (id, name, description, category_id, code_template, language, "
               "created_ms, updated_ms) VALUES ('t', 'CSV', '', 'c', '', 'python', 1, 1)");
    run(store,
        "INSERT INTO executions (id, organisation_id, language, created_ms, status, tool_id) "
        "VALUES ('e', 'local', 'python', 1, 'SUCCESS', 't')");
    run(store, "DELETE FROM tool_categories");
    cr_assert_eq(ask_i64(store, "SELECT COUNT(*) FROM tools"), 0);
    cr_assert_eq(ask_i64(store, "SELECT COUNT(*) FROM executions WHERE tool_id IS NULL"), 1);
}

STORE_TEST(schema, an_idempotency_key_belongs_to_one_run_of_an_organisation)
{
    run(store, "INSERT INTO organisations (id, name, created_ms) VALUES ('o', 'o', 1)");
    static const char insert[] =
        "INSERT INTO executions (id, organisation_id, language, created_ms,"
        " status, idempotency_key) VALUES ($1, 'local', 'python', 1, "
        "'QUEUED', 'k')";
    cr_assert_eq(code_of(store, insert, "a"), RT_OK);
    cr_assert_eq(code_of(store, insert, "b"), RT_CONFLICT);
    run(store, "INSERT INTO executions (id, organisation_id, language, created_ms, status, "
               "idempotency_key) VALUES ('c', 'o', 'python', 1, 'QUEUED', 'k')");
    for (int i = 0; i < 2; i++)
        run(store, i ? "INSERT INTO executions (id, organisation_id, language, created_ms, status) "
                       "VALUES ('d', 'local', 'python', 1, 'QUEUED')"
                     : "INSERT INTO executions (id, organisation_id, language, created_ms, status) "
                       "VALUES ('e', 'local', 'python', 1, 'QUEUED')");
}

STORE_TEST(schema, ids_of_audit_events_rise)
{
    for (int i = 0; i < 3; i++)
        run(store, "INSERT INTO audit_events (time_ms, organisation_id, action, outcome) "
                   "VALUES (1, 'local', 'x', 'ok')");
    run(store, "DELETE FROM audit_events WHERE id = 1"); /* old ones go, never the newest */
    run(store, "INSERT INTO audit_events (time_ms, organisation_id, action, outcome) "
               "VALUES (1, 'local', 'x', 'ok')");
    cr_assert_eq(ask_i64(store, "SELECT MAX(id) FROM audit_events"), 4);
}
