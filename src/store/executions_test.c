/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sample_test.h"

#include <pthread.h>
#include <stdio.h>

static rt_execution_row get(rt_store *store, const char *id, rt_arena *arena)
{
    rt_error err = { 0 };
    rt_execution_row row = { 0 };
    cr_assert(rt_execution_get(store, RT_STR("local"), rt_str_of(id), arena, &row, &err), "%s",
              err.text);
    return row;
}

STORE_TEST(executions, every_field_of_a_run_comes_back)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_execution_row row = sample_run("exec_1", "local");
    row.status = RT_STR("MEMORY_ERROR");
    row.exit_code = -9;
    row.error_type = RT_STR("MemoryError");
    row.error_message = RT_STR("über 512 MB");
    row.is_timed_out = row.is_pii_out = row.has_validation = true;
    row.pii_types = RT_STR("[\"email\"]");
    row.kept_output = (rt_str){ "a\0b\xFF", 4 };
    row.denials = 3;
    sample_record(store, &row);
    rt_execution_row back = get(store, "exec_1", &arena);
    cr_expect(rt_str_eq(back.user_id, row.user_id));
    cr_expect(rt_str_eq(back.error_message, row.error_message));
    cr_expect(rt_str_eq(back.kept_output, row.kept_output));
    cr_expect(rt_str_eq(back.attestation, row.attestation));
    cr_expect(rt_str_eq(back.pii_types, row.pii_types));
    cr_expect_eq(back.exit_code, -9);
    cr_expect_eq(back.denials, 3);
    cr_expect_eq(back.memory_limit_bytes, row.memory_limit_bytes);
    cr_expect_eq(back.finished_ms, row.finished_ms);
    cr_expect_eq(back.cost_usd, row.cost_usd);
    cr_expect(back.is_timed_out && back.is_pii_out && !back.is_pii_in);
    cr_expect(back.has_validation && !back.is_validation_passed);
    cr_expect_null(back.idempotency_key.ptr);
}

STORE_TEST(executions, without_a_validation_there_is_none)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_execution_row row = sample_run("exec_1", "local");
    sample_record(store, &row);
    cr_expect_not(get(store, "exec_1", &arena).has_validation);
}

STORE_TEST(executions, another_organisation_does_not_see_the_run_and_the_operator_does)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_execution_row row = sample_run("exec_1", "local"), back;
    sample_record(store, &row);
    cr_expect_not(rt_execution_get(store, RT_STR("other"), row.id, &arena, &back, &err));
    cr_expect_eq(err.code, RT_NOT_FOUND);
    cr_expect(rt_execution_get(store, (rt_str){ 0 }, row.id, &arena, &back, &err));
}

STORE_TEST(executions, a_run_recorded_twice_is_there_once_and_stays_as_it_ended)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_execution_row row = sample_run("exec_1", "local");
    sample_record(store, &row);
    row.status = RT_STR("FAILED");
    sample_record(store, &row);
    cr_expect(rt_str_eq_c(get(store, "exec_1", &arena).status, "SUCCESS"));
    cr_expect_eq(sample_number(store, "SELECT COUNT(*) FROM provenance"), 1);
    cr_expect_eq(sample_number(store, "SELECT sequence FROM chains"), 1);
    cr_expect_eq(sample_number(store, "SELECT executions FROM costs WHERE period = 'daily'"), 1);
    cr_expect_eq(sample_number(store, "SELECT executions FROM key_costs"), 1);
    cr_expect_eq(sample_number(store, "SELECT COUNT(*) FROM audit_events"), 1);
}

STORE_TEST(executions, a_reserved_run_ends_with_the_key_and_time_it_was_reserved_with)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_execution_row row = sample_run("exec_1", "local"), taken;
    row.idempotency_key = RT_STR("order-7");
    row.request_hash = RT_STR("abc");
    cr_assert(rt_execution_reserve(store, &row, &arena, &taken, &err), "%s", err.text);
    cr_expect(rt_str_eq_c(get(store, "exec_1", &arena).status, "QUEUED"));
    cr_assert(rt_execution_started(store, row.id, SAMPLE_MS - 5, &err), "%s", err.text);
    cr_expect(rt_str_eq_c(get(store, "exec_1", &arena).status, "RUNNING"));
    rt_execution_row end = row;
    end.idempotency_key = (rt_str){ 0 };
    end.created_ms += 99;
    end.answer = RT_STR("{\"result\":1}");
    sample_record(store, &end);
    rt_execution_row back = get(store, "exec_1", &arena);
    cr_expect(rt_str_eq_c(back.status, "SUCCESS"));
    cr_expect(rt_str_eq_c(back.idempotency_key, "order-7"));
    cr_expect(rt_str_eq_c(back.answer, "{\"result\":1}"));
    cr_expect_eq(back.created_ms, row.created_ms);
}

STORE_TEST(executions, a_taken_key_is_a_conflict_that_names_its_run)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    sample_organisation(store, "other");
    rt_execution_row row = sample_run("exec_1", "local"), taken = { 0 };
    row.idempotency_key = RT_STR("order-7");
    cr_assert(rt_execution_reserve(store, &row, &arena, &taken, &err), "%s", err.text);
    row.id = RT_STR("exec_2");
    cr_expect_not(rt_execution_reserve(store, &row, &arena, &taken, &err));
    cr_expect_eq(err.code, RT_CONFLICT);
    cr_expect(rt_str_eq_c(taken.id, "exec_1"));
    row.organisation_id = RT_STR("other");
    cr_expect(rt_execution_reserve(store, &row, &arena, &taken, &err), "%s", err.text);
}

STORE_TEST(executions, runs_without_a_key_do_not_get_in_each_others_way)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_execution_row row = sample_run("exec_1", "local"), taken;
    row.idempotency_key = RT_STR("");
    cr_assert(rt_execution_reserve(store, &row, &arena, &taken, &err), "%s", err.text);
    row.id = RT_STR("exec_2");
    cr_assert(rt_execution_reserve(store, &row, &arena, &taken, &err), "%s", err.text);
}

STORE_TEST(executions, a_run_that_has_ended_cannot_be_started)
{
    rt_error err = { 0 };
    rt_execution_row row = sample_run("exec_1", "local");
    sample_record(store, &row);
    cr_expect_not(rt_execution_started(store, row.id, SAMPLE_MS, &err));
    cr_expect_eq(err.code, RT_NOT_FOUND);
}

STORE_TEST(executions, a_status_that_is_no_end_is_refused)
{
    rt_error err = { 0 };
    rt_execution_row row = sample_run("exec_1", "local");
    row.status = RT_STR("RUNNING");
    cr_expect_not(rt_execution_record(store, &row, &err));
    cr_expect_eq(err.code, RT_INVALID);
}

STORE_TEST(executions, a_record_that_fails_half_way_leaves_nothing)
{
    rt_error err = { 0 };
    rt_execution_row row = sample_run("exec_1", "local");
    row.attestation = RT_STR("{}, \"hash\": 1"); /* found out after the row was written */
    cr_expect_not(rt_execution_record(store, &row, &err));
    cr_expect_eq(err.code, RT_INVALID);
    cr_expect_eq(sample_number(store, "SELECT COUNT(*) FROM executions"), 0);
    cr_expect_eq(sample_number(store, "SELECT sequence FROM chains"), 0);
}

STORE_TEST(executions, after_a_restart_what_this_host_ran_has_failed_and_is_on_record)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_execution_row taken;
    for (unsigned i = 0; i < 250; i++) { /* more than a page */
        char id[32];
        snprintf(id, sizeof(id), "exec_%u", i);
        rt_execution_row row = sample_run(id, "local");
        row.host = i == 0 ? RT_STR("node-b") : RT_STR("node-a");
        cr_assert(rt_execution_reserve(store, &row, &arena, &taken, &err), "%s", err.text);
    }
    cr_assert(rt_execution_started(store, RT_STR("exec_7"), SAMPLE_MS, &err), "%s", err.text);
    uint64_t count = 0;
    cr_assert(rt_execution_recover(store, RT_STR("node-a"), SAMPLE_MS + 1, &count, &err), "%s",
              err.text);
    cr_expect_eq(count, 249);
    rt_execution_row row = get(store, "exec_7", &arena);
    cr_expect(rt_str_eq_c(row.status, "FAILED"));
    cr_expect(rt_str_eq_c(row.error_message, "the server stopped before this run ended"));
    cr_expect(rt_str_eq_c(get(store, "exec_0", &arena).status, "QUEUED"));
    sample_faults faults = sample_verify(store);
    cr_expect_eq(faults.report.faults, 0, "%s", faults.what);
    cr_expect_eq(faults.report.records, 249);
}

/* -- Several at once --------------------------------------------------------------------------- */

#define THREADS         8
#define RUNS_PER_THREAD 200

typedef struct worker {
    rt_store *store;
    unsigned number;
    pthread_t thread;
    rt_error err;
    bool has_won;
    char taken[32];
} worker;

static void *record_runs(void *ctx)
{
    worker *me = ctx;
    for (unsigned i = 0; i < RUNS_PER_THREAD && !me->err.code; i++) {
        char id[32];
        snprintf(id, sizeof(id), "exec_%u_%u", me->number, i);
        rt_execution_row row = sample_run(id, i % 2 ? "local" : "other");
        rt_execution_record(me->store, &row, &me->err);
    }
    return NULL;
}

static void run_workers(rt_store *store, worker workers[THREADS], void *(*work)(void *))
{
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (worker){ .store = store, .number = i };
        cr_assert_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
}

STORE_TEST(executions, threads_that_record_at_once_make_chains_without_gaps)
{
    worker workers[THREADS];
    sample_organisation(store, "other");
    run_workers(store, workers, record_runs);
    for (unsigned i = 0; i < THREADS; i++)
        cr_expect_eq(workers[i].err.code, RT_OK, "%s", workers[i].err.text);
    sample_faults faults = sample_verify(store);
    cr_expect_eq(faults.report.faults, 0, "%s", faults.what);
    cr_expect_eq(faults.report.organisations, 2);
    cr_expect_eq(faults.report.records, THREADS * RUNS_PER_THREAD);
    cr_expect_eq(sample_number(store, "SELECT COUNT(*) FROM executions"),
                 THREADS * RUNS_PER_THREAD);
    cr_expect_eq(sample_number(store, "SELECT executions FROM costs WHERE organisation_id = 'other'"
                                      " AND period = 'monthly'"),
                 THREADS * RUNS_PER_THREAD / 2);
    cr_expect_eq(sample_number(store, "SELECT COUNT(*) FROM audit_events"),
                 THREADS * RUNS_PER_THREAD);
}

static void *reserve_one(void *ctx)
{
    worker *me = ctx;
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    char id[32];
    snprintf(id, sizeof(id), "exec_%u", me->number);
    rt_execution_row row = sample_run(id, "local"), taken = { 0 };
    row.idempotency_key = RT_STR("order-7");
    me->has_won = rt_execution_reserve(me->store, &row, &arena, &taken, &me->err);
    snprintf(me->taken, sizeof(me->taken), "%.*s", RT_FMT(me->has_won ? row.id : taken.id));
    return NULL;
}

STORE_TEST(executions, of_those_who_reserve_one_key_at_once_one_wins_and_all_know_which)
{
    worker workers[THREADS];
    unsigned winners = 0;
    run_workers(store, workers, reserve_one);
    for (unsigned i = 0; i < THREADS; i++) {
        winners += workers[i].has_won;
        cr_expect(workers[i].has_won || workers[i].err.code == RT_CONFLICT, "%s",
                  workers[i].err.text);
        cr_expect_str_eq(workers[i].taken, workers[0].taken);
    }
    cr_expect_eq(winners, 1);
}
