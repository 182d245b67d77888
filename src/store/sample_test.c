/* SPDX-License-Identifier: Apache-2.0 */
/* sample_test.c - see sample_test.h. */
#include "store/sample_test.h"

#include <stdio.h>

rt_execution_row sample_run(const char *id, const char *organisation_id)
{
    return (rt_execution_row){
        .id = rt_str_of(id),
        .organisation_id = rt_str_of(organisation_id),
        .workspace_id = RT_STR("local"),
        .user_id = RT_STR("alice"),
        .key_id = RT_STR("key_1"),
        .actor_type = RT_STR("user"),
        .agent_type = RT_STR("claude"),
        .surface = RT_STR("rest"),
        .session_id = RT_STR("ses_1"),
        .host = RT_STR("node-a"),
        .trace_id = RT_STR("0af7651916cd43dd8448eb211c80319c"),
        .language = RT_STR("python"),
        .runtime = RT_STR("local-python"),
        .sandbox_id = RT_STR("sandbox_1"),
        .policy_name = RT_STR("default"),
        .status = RT_STR("SUCCESS"),
        .code_hash = RT_STR("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        .input_hash = RT_STR("44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
        .output_hash = RT_STR("6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"),
        .code_bytes = 14,
        .output_bytes = 1,
        .memory_limit_bytes = 512 << 20,
        .timeout_ms = 30000,
        .duration_us = 12500,
        .cpu_us = 11000,
        .memory_peak_bytes = 9 << 20,
        .tool_ids = RT_STR("[\"github:list_commits\"]"),
        .attestation = RT_STR("{\"layers\":[\"user_ns\",\"seccomp\"],\"level\":2}"),
        .tokens = 20,
        .tokens_saved = 100,
        .tokens_cached = 5,
        .cost_usd = 0.25,
        .traditional_cost_usd = 1.0,
        .is_cost_tracked = true,
        .created_ms = SAMPLE_MS - 20,
        .started_ms = SAMPLE_MS - 13,
        .finished_ms = SAMPLE_MS,
    };
}

void sample_run_sql(rt_store *store, const char *sql)
{
    rt_error err = { 0 };
    cr_assert(rt_sql_once(store, RT_TX_WRITE, sql, NULL, 0, NULL, NULL, &err), "%s: %s", sql,
              err.text);
}

int64_t sample_number(rt_store *store, const char *sql)
{
    rt_error err = { 0 };
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_rows rows;
    cr_assert(rt_sql_once(store, RT_TX_READ, sql, NULL, 0, &arena, &rows, &err), "%s: %s", sql,
              err.text);
    return rt_rows_at(&rows, 0, 0).i64;
}

void sample_organisation(rt_store *store, const char *id)
{
    rt_error err = { 0 };
    rt_sql_value values[] = { rt_sql_text(rt_str_of(id)) };
    cr_assert(rt_sql_once(store, RT_TX_WRITE,
                          "INSERT INTO organisations (id, name, created_ms) VALUES ($1, $1, 0)",
                          values, 1, NULL, NULL, &err),
              "%s", err.text);
}

void sample_record(rt_store *store, const rt_execution_row *row)
{
    rt_error err = { 0 };
    cr_assert(rt_execution_record(store, row, &err), "%s", err.text);
}

void sample_record_many(rt_store *store, const char *organisation_id, const char *prefix,
                        unsigned count)
{
    for (unsigned i = 1; i <= count; i++) {
        char id[64];
        snprintf(id, sizeof(id), "%s%u", prefix, i);
        rt_execution_row row = sample_run(id, organisation_id);
        sample_record(store, &row);
    }
}

static void note_fault(void *ctx, rt_str organisation_id, int64_t sequence, rt_str execution_id,
                       const char *what)
{
    (void)organisation_id;
    sample_faults *faults = ctx;
    if (faults->what[0])
        return;
    faults->sequence = sequence;
    snprintf(faults->what, sizeof(faults->what), "%s", what);
    snprintf(faults->execution, sizeof(faults->execution), "%.*s", RT_FMT(execution_id));
}

sample_faults sample_verify(rt_store *store)
{
    rt_error err = { 0 };
    sample_faults faults = { 0 };
    cr_assert(rt_audit_verify(store, (rt_str){ 0 }, note_fault, &faults, &faults.report, &err),
              "%s", err.text);
    return faults;
}
