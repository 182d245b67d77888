/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sample_test.h"

STORE_TEST(audit, events_are_listed_newest_first_and_filtered)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    const rt_audit_event events[] = {
        { .time_ms = 10,
          .organisation_id = RT_STR("local"),
          .action = RT_STR("key.create"),
          .actor_id = RT_STR("alice"),
          .subject = RT_STR("key_1"),
          .outcome = RT_STR("ok"),
          .detail = RT_STR("{\"role\":\"member\"}"),
          .address = RT_STR("127.0.0.1") },
        { .time_ms = 20, .organisation_id = RT_STR("other"), .action = RT_STR("key.create") },
        { .time_ms = 30, .organisation_id = RT_STR("local"), .action = RT_STR("execution.run") },
        { .time_ms = 40, .organisation_id = RT_STR("local"), .action = RT_STR("FILE_DELETED") },
    };
    for (size_t i = 0; i < RT_COUNT(events); i++)
        cr_assert(rt_audit_add(store, &events[i], &err), "%s", err.text);
    const struct {
        rt_str organisation_id, action;
        uint64_t since_ms;
        size_t count;
        uint64_t first_ms;
    } cases[] = {
        { RT_STR(""), RT_STR(""), 0, 4, 40 },
        { RT_STR("local"), RT_STR(""), 0, 3, 40 },
        { RT_STR("local"), RT_STR("key.create"), 0, 1, 10 },
        { RT_STR("local"), RT_STR("execution.run"), 0, 1, 30 },
        { RT_STR("local"), RT_STR(""), 30, 2, 40 },
        { RT_STR("nobody"), RT_STR(""), 0, 0, 0 },
    };
    rt_audit_event *rows;
    size_t count;
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        cr_assert(rt_audit_list(store, cases[i].organisation_id, cases[i].action, cases[i].since_ms,
                                0, 0, &arena, &rows, &count, &err),
                  "%s", err.text);
        cr_assert_eq(count, cases[i].count, "case %zu", i);
        cr_expect(count == 0 || rows[0].time_ms == cases[i].first_ms, "case %zu", i);
    }
    cr_assert(rt_audit_list(store, RT_STR("local"), RT_STR("key.create"), 0, 0, 0, &arena, &rows,
                            &count, &err));
    cr_expect(rt_str_eq_c(rows[0].detail, "{\"role\":\"member\"}"));
    cr_expect(rt_str_eq_c(rows[0].address, "127.0.0.1"));
    cr_assert(rt_audit_list(store, RT_STR("local"), RT_STR(""), 0, rows[0].id + 1, 1, &arena, &rows,
                            &count, &err));
    cr_expect_eq(rows[0].time_ms, 10);
}

STORE_TEST(audit, an_event_type_that_is_none_and_an_outcome_that_is_none_are_refused)
{
    rt_error err = { 0 };
    rt_audit_event event = { .action = RT_STR("ROOM_PAINTED") };
    cr_expect_not(rt_audit_add(store, &event, &err));
    cr_expect_eq(err.code, RT_INVALID, "%s", err.text);
    event = (rt_audit_event){ .action = RT_STR("key.create"), .outcome = RT_STR("maybe") };
    cr_expect_not(rt_audit_add(store, &event, &err));
    cr_expect_eq(err.code, RT_INVALID, "%s", err.text);
}

/* -- Verification ------------------------------------------------------------------------------ */

STORE_TEST(audit, whole_chains_verify_over_many_pages)
{
    sample_organisation(store, "other");
    sample_organisation(store, "idle");
    sample_record_many(store, "local", "a", 1001);
    sample_record_many(store, "other", "b", 3);
    sample_faults faults = sample_verify(store);
    cr_expect_eq(faults.report.faults, 0, "%s", faults.what);
    cr_expect_eq(faults.report.organisations, 2);
    cr_expect_eq(faults.report.records, 1004);
}

/* What somebody with access to the database may do, and how it shows. */
static const struct {
    const char *tampering;
    int64_t sequence;
    const char *what;
} attacks[] = {
    { "UPDATE provenance SET skill_name = 'evil' WHERE sequence = 3", 3,
      "its fields do not have its hash: it was changed" },
    { "UPDATE provenance SET success = FALSE WHERE sequence = 3", 3,
      "its fields do not have its hash: it was changed" },
    { "UPDATE provenance SET execution_time_ms = 1 WHERE sequence = 5", 5,
      "its fields do not have its hash: it was changed" },
    { "UPDATE provenance SET attestation = '{\"layers\":[]}' WHERE sequence = 1", 1,
      "its fields do not have its hash: it was changed" },
    { "UPDATE provenance SET attestation = 'x' WHERE sequence = 1", 1,
      "its fields do not have its hash: it was changed" },
    { "UPDATE provenance SET hash = previous_hash WHERE sequence = 3", 3,
      "its fields do not have its hash: it was changed" },
    { "UPDATE provenance SET hash = previous_hash WHERE sequence = 5", 5,
      "its fields do not have its hash: it was changed" },
    { "UPDATE provenance SET actor_id = 'mallory' WHERE sequence = 3", 3,
      "actor_id is not the one it was recorded with" },
    { "UPDATE provenance SET actor_id = NULL WHERE sequence = 3", 3,
      "actor_id is not the one it was recorded with" },
    { "UPDATE provenance SET error_message = 'none' WHERE sequence = 3", 3,
      "error_message is not the one it was recorded with" },
    { "UPDATE provenance SET is_erased = TRUE WHERE sequence = 3", 3,
      "it is marked as erased, but personal fields are there" },
    { "DELETE FROM provenance WHERE sequence = 1", 1, "missing: there is no record 1 to 1" },
    { "DELETE FROM provenance WHERE sequence IN (2, 3)", 2, "missing: there is no record 2 to 3" },
    { "DELETE FROM provenance WHERE sequence = 5", 5, "missing: there is no record 5 to 5" },
    { "DELETE FROM provenance", 1, "missing: there is no record 1 to 5" },
    { "UPDATE provenance SET sequence = 6 WHERE sequence = 2", 2,
      "missing: there is no record 2 to 2" },
    { "UPDATE chains SET hash = 'x'", 5, "the head of the chain has another hash" },
    { "UPDATE chains SET sequence = 4", 4, "the head of the chain has another hash" },
    { "DELETE FROM chains", 5, "there are records after the head of the chain" },
    { "DELETE FROM executions WHERE id = 'a2'", 2, "its execution is missing" },
    { "UPDATE executions SET code_hash = 'x' WHERE id = 'a2'", 2,
      "its execution says something else" },
    { "UPDATE executions SET output_hash = NULL WHERE id = 'a2'", 2,
      "its execution says something else" },
    { "UPDATE executions SET status = 'FAILED' WHERE id = 'a2'", 2,
      "its execution says something else" },
};

STORE_TEST(audit, tampering_is_found_where_it_was_done)
{
    sample_record_many(store, "local", "a", 5);
    /* Each attack is undone by what was copied before. */
    sample_run_sql(store, "CREATE TABLE kept_links AS SELECT * FROM provenance");
    sample_run_sql(store, "CREATE TABLE kept_runs AS SELECT * FROM executions");
    sample_run_sql(store, "CREATE TABLE kept_heads AS SELECT * FROM chains");
    static const char *const undo[] = {
        "DELETE FROM provenance", "INSERT INTO provenance SELECT * FROM kept_links",
        "DELETE FROM executions", "INSERT INTO executions SELECT * FROM kept_runs",
        "DELETE FROM chains",     "INSERT INTO chains SELECT * FROM kept_heads",
    };
    for (size_t i = 0; i < RT_COUNT(attacks); i++) {
        sample_run_sql(store, attacks[i].tampering);
        sample_faults faults = sample_verify(store);
        cr_expect_geq(faults.report.faults, 1, "%s", attacks[i].tampering);
        cr_expect_eq(faults.sequence, attacks[i].sequence, "%s: at %lld", attacks[i].tampering,
                     (long long)faults.sequence);
        cr_expect_str_eq(faults.what, attacks[i].what, "%s: %s", attacks[i].tampering, faults.what);
        for (size_t k = 0; k < RT_COUNT(undo); k++)
            sample_run_sql(store, undo[k]);
        cr_assert_eq(sample_verify(store).report.faults, 0, "%s", attacks[i].tampering);
    }
}

STORE_TEST(audit, two_records_that_changed_places_are_found)
{
    sample_record_many(store, "local", "a", 5);
    sample_run_sql(store, "UPDATE provenance SET sequence = 99 WHERE sequence = 2");
    sample_run_sql(store, "UPDATE provenance SET sequence = 2 WHERE sequence = 3");
    sample_run_sql(store, "UPDATE provenance SET sequence = 3 WHERE sequence = 99");
    sample_faults faults = sample_verify(store);
    cr_expect_eq(faults.sequence, 2);
    cr_expect_geq(faults.report.faults, 2);
}

STORE_TEST(audit, a_record_copied_under_another_number_is_found)
{
    sample_record_many(store, "local", "a", 3);
    sample_run_sql(store,
                   "INSERT INTO provenance (organisation_id, sequence, execution_id,"
                   " actor_commitment, error_commitment, timestamp, execution_time_ms, success,"
                   " previous_hash, hash) SELECT organisation_id, 4, 'copy', actor_commitment,"
                   " error_commitment, timestamp, execution_time_ms, success, previous_hash, hash"
                   " FROM provenance WHERE sequence = 3");
    sample_faults faults = sample_verify(store);
    cr_expect_str_eq(faults.what, "there are records after the head of the chain");
    sample_run_sql(store, "UPDATE chains SET sequence = 4");
    cr_expect_eq(sample_verify(store).sequence, 4);
}

STORE_TEST(audit, a_record_cut_off_with_its_head_is_found_by_its_run)
{
    sample_record_many(store, "local", "a", 3);
    sample_run_sql(store, "UPDATE chains SET sequence = 2, hash ="
                          " (SELECT hash FROM provenance WHERE sequence = 2)");
    sample_run_sql(store, "DELETE FROM provenance WHERE sequence = 3");
    sample_faults faults = sample_verify(store);
    cr_expect_eq(faults.report.faults, 1);
    cr_expect_str_eq(faults.what, "this run has no record in the chain");
    cr_expect_str_eq(faults.execution, "a3");
}

STORE_TEST(audit, one_chain_can_be_verified_alone)
{
    rt_error err = { 0 };
    rt_audit_report report;
    sample_organisation(store, "other");
    sample_record_many(store, "local", "a", 2);
    sample_record_many(store, "other", "b", 3);
    sample_run_sql(store, "UPDATE provenance SET skill_name = 'x' WHERE execution_id = 'a1'");
    cr_assert(rt_audit_verify(store, RT_STR("other"), NULL, NULL, &report, &err), "%s", err.text);
    cr_expect_eq(report.faults, 0);
    cr_expect_eq(report.records, 3);
    cr_assert(rt_audit_verify(store, RT_STR("local"), NULL, NULL, &report, &err), "%s", err.text);
    cr_expect_eq(report.faults, 1);
}
