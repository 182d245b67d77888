/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sample_test.h"

#include <stdio.h>

#define USER   "zoe-7f3a" /* nobody else's letters */
#define SECRET "the marker of what she wrote"
#define DAY_MS UINT64_C(86400000)

/* -- A person with something in every table ---------------------------------------------------- */

typedef struct person {
    rt_vault *vault;
    rt_shelf *shelf;
    rt_arena arena;
    rt_str key_id;
    char directory[128];
} person;

static void person_done(person *who)
{
    rt_shelf_closep(&who->shelf);
    rt_vault_closep(&who->vault);
    rt_arena_done(&who->arena);
}

static void open_shelf(rt_store *store, const store_fixture *where, person *who)
{
    rt_error err = { 0 };
    char key_file[160];
    snprintf(who->directory, sizeof(who->directory), "%s/artifacts", where->directory);
    snprintf(key_file, sizeof(key_file), "%s/vault.key", where->directory);
    cr_assert(rt_vault_open(key_file, &who->vault, &err), "%s", err.text);
    rt_shelf_config config = {
        .store = store, .vault = who->vault, .directory = who->directory, .host = RT_STR("node-a")
    };
    cr_assert(rt_shelf_open(&config, &who->shelf, &err), "%s", err.text);
}

static void leave_runs(rt_store *store, person *who)
{
    rt_error err = { 0 };
    rt_execution_row row = sample_run("exec_zoe", "local"), taken;
    row.user_id = RT_STR(USER);
    row.key_id = who->key_id;
    row.status = RT_STR("FAILED");
    row.error_message = RT_STR(SECRET);
    row.kept_input = row.kept_output = RT_STR(SECRET);
    row.kept_code = (rt_str){ "\xFF" SECRET, sizeof(SECRET) };
    sample_record(store, &row);
    row.id = RT_STR("exec_nameless"); /* with her key, in nobody's name */
    row.user_id = (rt_str){ 0 };
    sample_record(store, &row);
    row.id = RT_STR("exec_queued");
    row.user_id = RT_STR(USER);
    row.idempotency_key = RT_STR(SECRET);
    cr_assert(rt_execution_reserve(store, &row, &who->arena, &taken, &err), "%s", err.text);
    rt_artifact_row artifact = { .organisation_id = RT_STR("local"),
                                 .execution_id = row.id,
                                 .kind = RT_STR("file"),
                                 .name = RT_STR(SECRET ".csv") };
    cr_assert(rt_artifact_put(who->shelf, &artifact, RT_STR(SECRET), &who->arena, &err), "%s",
              err.text);
}

static void leave_traces(rt_store *store)
{
    rt_error err = { 0 };
    rt_session_row session = { .id = RT_STR("ses_zoe"),
                               .organisation_id = RT_STR("local"),
                               .user_id = RT_STR(USER),
                               .host = RT_STR("node-a"),
                               .name = RT_STR(SECRET),
                               .status = RT_STR("ACTIVE") };
    cr_assert(rt_session_save(store, &session, &err), "%s", err.text);
    const rt_audit_event events[] = {
        { .organisation_id = RT_STR("local"),
          .action = RT_STR("session.branch"),
          .actor_id = RT_STR(USER),
          .address = RT_STR("203.0.113.77") },
        { .organisation_id = RT_STR("local"),
          .action = RT_STR("key.create"),
          .actor_id = RT_STR("admin"),
          .subject = RT_STR(USER) },
        { .organisation_id = RT_STR("local"),
          .action = RT_STR("key.create"),
          .actor_id = RT_STR("admin"),
          .detail = RT_STR("{\"user\":\"" USER "\"}") },
    };
    for (size_t i = 0; i < RT_COUNT(events); i++)
        cr_assert(rt_audit_add(store, &events[i], &err), "%s", err.text);
    sample_run_sql(store,
                   "INSERT INTO snippets (id, organisation_id, user_id, name, code, language,"
                   " created_ms, updated_ms) VALUES ('snippet_1', 'local', '" USER "',"
                   " '" SECRET "', '" SECRET "', 'python', 0, 0)");
    sample_run_sql(store, "INSERT INTO file_index (id, organisation_id, user_id, file_name,"
                          " file_type, file_size, gemini_file_id, created_ms, updated_ms) VALUES"
                          " ('f1', 'local', '" USER "', '" SECRET "', 'text/csv', 1, 'g1', 0, 0)");
    sample_run_sql(store, "INSERT INTO erasures (receipt_id, organisation_id, user_hash, actor_id,"
                          " time_ms, receipt_hash) VALUES ('erase_0', 'local', 'h', '" USER "', 0,"
                          " 'r')");
}

static void arrive(rt_store *store, const store_fixture *where, person *who)
{
    rt_error err = { 0 };
    rt_key key;
    rt_str secret;
    rt_key_spec spec = { .user = RT_STR(USER), .role = RT_ROLE_MEMBER, .name = RT_STR(SECRET) };
    open_shelf(store, where, who);
    cr_assert(rt_key_create(store, &spec, &who->arena, &key, &secret, &err), "%s", err.text);
    who->key_id = key.id;
    sample_record_many(store, "local", "before", 2);
    leave_runs(store, who);
    leave_traces(store);
    sample_record_many(store, "local", "after", 2);
}

/* -- Searching everything ---------------------------------------------------------------------- */

/* How many cells of all tables contain the text. */
static unsigned count_cells(rt_store *store, rt_str needle)
{
    rt_error err = { 0 };
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_rows tables, rows;
    bool is_sqlite = strcmp(rt_store_kind(store), "sqlite") == 0;
    cr_assert(rt_sql_once(store, RT_TX_READ,
                          is_sqlite ? "SELECT name FROM sqlite_master WHERE type = 'table'"
                                    : "SELECT CAST(table_name AS TEXT) FROM"
                                      " information_schema.tables"
                                      " WHERE table_schema = current_schema()"
                                      " AND table_type = 'BASE TABLE'",
                          NULL, 0, &arena, &tables, &err),
              "%s", err.text);
    cr_assert_geq(tables.count, 15);
    unsigned found = 0;
    for (size_t i = 0; i < tables.count; i++) {
        rt_str sql =
            rt_arena_printf(&arena, "SELECT * FROM %.*s", RT_FMT(rt_rows_at(&tables, i, 0).text));
        cr_assert(rt_sql_once(store, RT_TX_READ, sql.ptr, NULL, 0, &arena, &rows, &err), "%s",
                  err.text);
        for (size_t k = 0; k < rows.count * rows.columns; k++)
            found += rt_str_find(rows.cells[k].text, needle) >= 0;
    }
    return found;
}

static rt_erasure erase(rt_store *store, person *who, rt_str actor_id)
{
    rt_error err = { 0 };
    rt_erasure receipt;
    cr_assert(rt_user_erase(store, who->shelf, RT_STR("local"), RT_STR(USER), actor_id, SAMPLE_MS,
                            &who->arena, &receipt, &err),
              "%s", err.text);
    return receipt;
}

STORE_TEST(people, after_an_erasure_no_table_knows_the_person_and_the_chain_is_whole)
{
    person who RT_CLEANUP(person_done) = { 0 };
    arrive(store, where, &who);
    cr_assert_geq(count_cells(store, RT_STR(USER)), 8);
    cr_assert_geq(count_cells(store, RT_STR(SECRET)), 10);
    rt_erasure receipt = erase(store, &who, RT_STR("admin"));
    cr_expect_eq(count_cells(store, RT_STR(USER)), 0);
    cr_expect_eq(count_cells(store, RT_STR(SECRET)), 0);
    cr_expect_eq(count_cells(store, RT_STR("203.0.113.77")), 0);
    cr_expect_eq(receipt.executions, 3);
    cr_expect_eq(receipt.links, 2);
    cr_expect_eq(receipt.artifacts, 1);
    cr_expect_eq(receipt.sessions, 1);
    cr_expect_eq(receipt.snippets, 1);
    cr_expect_eq(receipt.files, 1);
    cr_expect_eq(receipt.audit_events, 4); /* three of hers, and the run in her name */
    cr_expect_eq(sample_number(store, "SELECT COUNT(*) FROM executions"), 4);
    sample_faults faults = sample_verify(store);
    cr_expect_eq(faults.report.faults, 0, "%s", faults.what);
    cr_expect_eq(faults.report.records, 6);
    cr_expect_eq(faults.report.erased, 2);
}

static bool file_contains(const char *path, rt_str needle)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_str bytes;
    cr_assert(rt_read_file(path, (size_t)64 << 20, &arena, &bytes, &err), "%s", err.text);
    return rt_str_find(bytes, needle) >= 0;
}

Test(people, after_an_erasure_not_even_the_database_file_has_the_words)
{
    store_fixture where RT_CLEANUP(store_fixture_done) = { 0 };
    person who RT_CLEANUP(person_done) = { 0 };
    char path[128], journal[128];
    store_fixture_open(&where, "sqlite");
    snprintf(path, sizeof(path), "%s", where.url + strlen("sqlite://"));
    snprintf(journal, sizeof(journal), "%s-wal", path);
    arrive(where.store, &where, &who);
    cr_expect(file_contains(journal, RT_STR(SECRET)));
    erase(where.store, &who, RT_STR("admin"));
    cr_expect_not(file_contains(journal, RT_STR(SECRET)));
    cr_expect_not(file_contains(path, RT_STR(SECRET)));
    cr_expect_not(file_contains(path, RT_STR(USER)));
}

STORE_TEST(people, the_file_of_an_artifact_goes_with_its_owner)
{
    person who RT_CLEANUP(person_done) = { 0 };
    rt_error err = { 0 };
    rt_artifact_row *rows;
    size_t count;
    arrive(store, where, &who);
    cr_assert(rt_artifact_list(who.shelf, RT_STR("local"), RT_STR("exec_queued"), &who.arena, &rows,
                               &count, &err));
    cr_assert_eq(count, 1);
    rt_artifact_row kept = rows[0];
    rt_str bytes;
    cr_assert(rt_artifact_read(who.shelf, &kept, 0, 10, &who.arena, &bytes, &err), "%s", err.text);
    erase(store, &who, RT_STR("admin"));
    cr_expect_not(rt_artifact_read(who.shelf, &kept, 0, 10, &who.arena, &bytes, &err));
}

STORE_TEST(people, the_tombstone_is_one_hash_and_the_receipt_is_kept)
{
    person who RT_CLEANUP(person_done) = { 0 };
    arrive(store, where, &who);
    rt_erasure first = erase(store, &who, RT_STR("admin")),
               second = erase(store, &who, RT_STR(USER));
    cr_expect(rt_str_eq(first.user_hash, second.user_hash));
    cr_expect_not(rt_str_eq(first.receipt_hash, second.receipt_hash));
    cr_expect_eq(second.executions, 0);
    cr_expect_eq(count_cells(store, RT_STR(USER)), 0); /* the second was asked for by herself */
    cr_expect_eq(count_cells(store, first.receipt_hash), 2); /* the receipt and the audit */
    cr_expect_eq(sample_number(store, "SELECT COUNT(*) FROM audit_events"
                                      " WHERE action = 'data.erase'"),
                 2);
}

STORE_TEST(people, another_organisations_user_of_that_name_keeps_everything)
{
    person who RT_CLEANUP(person_done) = { 0 };
    arrive(store, where, &who);
    sample_organisation(store, "other");
    rt_execution_row row = sample_run("exec_other", "other");
    row.user_id = RT_STR(USER);
    sample_record(store, &row);
    erase(store, &who, RT_STR("admin"));
    cr_expect_eq(count_cells(store, RT_STR(USER)), 3); /* execution, link, audit */
    cr_expect_eq(sample_verify(store).report.faults, 0);
}

STORE_TEST(people, an_erasure_without_a_name_is_refused)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_erasure receipt;
    cr_expect_not(rt_user_erase(store, NULL, RT_STR("local"), RT_STR(""), RT_STR("admin"), 1,
                                &arena, &receipt, &err));
    cr_expect_eq(err.code, RT_INVALID);
    cr_expect_not(rt_user_erase(store, NULL, RT_STR("nowhere"), RT_STR("x"), RT_STR("admin"), 1,
                                &arena, &receipt, &err));
    cr_expect_eq(err.code, RT_NOT_FOUND);
}

/* -- Export ------------------------------------------------------------------------------------ */

STORE_TEST(people, an_export_has_every_row_about_the_person)
{
    person who RT_CLEANUP(person_done) = { 0 };
    rt_error err = { 0 };
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json doc;
    arrive(store, where, &who);
    rt_json_begin(&w, &text);
    cr_assert(rt_user_export(store, RT_STR("local"), RT_STR(USER), &w, &err), "%s", err.text);
    cr_assert(rt_json_parse(rt_buf_str(&text), &who.arena, &doc, &err), "%s", err.text);
    static const struct {
        const char *part;
        size_t count;
    } expected[] = { { "keys", 1 },     { "executions", 3 }, { "provenance", 2 }, { "audit", 3 },
                     { "sessions", 1 }, { "artifacts", 1 },  { "snippets", 1 },   { "files", 1 } };
    for (size_t i = 0; i < RT_COUNT(expected); i++)
        cr_expect_eq(rt_json_count(rt_json_get_c(doc, expected[i].part)), expected[i].count,
                     "%s: %zu", expected[i].part,
                     rt_json_count(rt_json_get_c(doc, expected[i].part)));
    cr_expect(rt_str_eq_c(rt_json_str(rt_json_get_c(rt_json_get_c(doc, "user"), "id")), USER));
    rt_json run = rt_json_at(rt_json_get_c(doc, "executions"), 2);
    cr_expect(rt_str_eq_c(rt_json_str(rt_json_get_c(run, "id")), "exec_zoe"));
    cr_expect(rt_str_eq_c(rt_json_str(rt_json_get_c(run, "kept_input")), SECRET));
    cr_expect_eq(rt_json_type(rt_json_get_c(rt_json_get_c(run, "kept_code"), "base64url")),
                 RT_JSON_STRING);
    cr_expect_eq(rt_json_type(rt_json_get_c(run, "tool_ids")), RT_JSON_ARRAY);
    cr_expect_eq(rt_json_type(rt_json_get_c(run, "is_cached")), RT_JSON_BOOL);
}

STORE_TEST(people, an_export_of_many_rows_has_each_once)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json doc;
    sample_record_many(store, "local", "a", 401);
    rt_json_begin(&w, &text);
    cr_assert(rt_user_export(store, RT_STR("local"), RT_STR("alice"), &w, &err), "%s", err.text);
    cr_assert(rt_json_parse(rt_buf_str(&text), &arena, &doc, &err), "%s", err.text);
    static const char *const parts[] = { "executions", "provenance", "audit" };
    for (size_t i = 0; i < RT_COUNT(parts); i++)
        cr_expect_eq(rt_json_count(rt_json_get_c(doc, parts[i])), 401, "%s", parts[i]);
    cr_expect_eq(rt_json_type(rt_json_get_c(doc, "user")), RT_JSON_NULL); /* only ever named */
}

/* -- Retention --------------------------------------------------------------------------------- */

static void record_aged(rt_store *store, const char *prefix, const char *organisation_id,
                        unsigned count, uint64_t days_ago)
{
    for (unsigned i = 0; i < count; i++) {
        char id[32];
        snprintf(id, sizeof(id), "%s%u", prefix, i);
        rt_execution_row row = sample_run(id, organisation_id);
        row.created_ms = row.finished_ms = SAMPLE_MS - days_ago * DAY_MS;
        sample_record(store, &row);
    }
}

STORE_TEST(people, retention_removes_what_is_old_and_the_chain_still_verifies)
{
    rt_error err = { 0 };
    rt_retention dry, wet;
    record_aged(store, "old", "local", 600, 91); /* more than a batch */
    record_aged(store, "new", "local", 3, 89);
    cr_assert(rt_retention_apply(store, RT_STR("local"), 90, SAMPLE_MS, true, &dry, &err), "%s",
              err.text);
    cr_expect_eq(sample_number(store, "SELECT COUNT(*) FROM executions"), 603);
    cr_assert(rt_retention_apply(store, RT_STR("local"), 90, SAMPLE_MS, false, &wet, &err), "%s",
              err.text);
    cr_expect_eq(dry.executions, 600);
    cr_expect_eq(wet.executions, dry.executions);
    cr_expect_eq(wet.audit_events, 600);
    cr_expect_eq(wet.audit_events, dry.audit_events);
    cr_expect_eq(sample_number(store, "SELECT COUNT(*) FROM executions"), 3);
    sample_faults faults = sample_verify(store);
    cr_expect_eq(faults.report.faults, 0, "%s", faults.what);
    cr_expect_eq(faults.report.records, 603);
    sample_run_sql(store, "DELETE FROM executions WHERE id = 'new1'"); /* by nobody's rule */
    cr_expect_str_eq(sample_verify(store).what, "its execution is missing");
}

STORE_TEST(people, retention_keeps_other_organisations_and_receipts)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_retention out;
    rt_erasure receipt;
    sample_organisation(store, "other");
    record_aged(store, "a", "local", 2, 10);
    record_aged(store, "b", "other", 2, 10);
    cr_assert(rt_user_erase(store, NULL, RT_STR("local"), RT_STR("bob"), RT_STR("admin"),
                            SAMPLE_MS - 10 * DAY_MS, &arena, &receipt, &err));
    rt_session_row session = { .id = RT_STR("s"),
                               .organisation_id = RT_STR("local"),
                               .host = RT_STR("node-a"),
                               .status = RT_STR("ENDED"),
                               .ended_ms = SAMPLE_MS - 10 * DAY_MS };
    cr_assert(rt_session_save(store, &session, &err), "%s", err.text);
    cr_assert(rt_retention_apply(store, RT_STR("local"), 7, SAMPLE_MS, false, &out, &err), "%s",
              err.text);
    cr_expect_eq(out.executions, 2);
    cr_expect_eq(out.audit_events, 2);
    cr_expect_eq(out.sessions, 1);
    cr_expect_eq(sample_number(store, "SELECT COUNT(*) FROM executions"), 2);
    cr_expect_eq(sample_number(store, "SELECT COUNT(*) FROM audit_events"
                                      " WHERE action = 'data.erase'"),
                 1);
    cr_assert(rt_retention_apply(store, RT_STR(""), 7, SAMPLE_MS, false, &out, &err), "%s",
              err.text);
    cr_expect_eq(out.executions, 2);
    cr_expect_not(rt_retention_apply(store, RT_STR(""), 0, SAMPLE_MS, false, &out, &err));
    cr_expect_eq(err.code, RT_INVALID);
}
