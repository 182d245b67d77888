/* SPDX-License-Identifier: Apache-2.0 */
/*
 * executions.c - one row per run, from its reservation to its end.
 *
 * A row is QUEUED or RUNNING, and then ends, once. What comes with the end (the link in the chain,
 * the cost, the line in the audit) is written only by the transaction that ended the row: the
 * upsert changes no row that has ended, and a transaction that changed none writes nothing else. So
 * a run may be recorded again, after a lost connection for instance, without being counted twice.
 *
 * Locks are taken in one order everywhere (execution, chain, costs), so runs cannot deadlock.
 */
#include "store/tables_internal.h"

#include <pthread.h>

#define RECORD_TRIES 3
#define RECOVER_PAGE "100" /* rows */

#define COLUMN(member, kind, ...) STORE_COLUMN(rt_execution_row, member, kind, __VA_ARGS__)
#define TEXT(member, ...)         COLUMN(member, RT_SQL_TEXT, __VA_ARGS__)
#define BYTES(member)             COLUMN(member, RT_SQL_BYTES, NULL, false)
#define I64(member, ...)          COLUMN(member, RT_SQL_I64, __VA_ARGS__)
#define USD(member)               COLUMN(member, RT_SQL_DOUBLE, NULL, false)
#define BOOL(member)              COLUMN(member, RT_SQL_BOOL, NULL, false)
#define FIXED                     NULL, true /* as it was reserved */
#define OPEN                      NULL, false

static const store_column columns[] = {
    BOOL(is_validation_passed), /* NULL without has_validation: store_execution_read() */
    TEXT(id, FIXED),
    TEXT(organisation_id, FIXED),
    TEXT(workspace_id, OPEN),
    TEXT(user_id, OPEN),
    TEXT(key_id, OPEN),
    TEXT(actor_type, OPEN),
    TEXT(agent_type, OPEN),
    TEXT(surface, OPEN),
    TEXT(session_id, OPEN),
    TEXT(tool_id, OPEN),
    TEXT(code_agent_id, OPEN),
    TEXT(code_agent_version, OPEN),
    TEXT(workflow_execution_id, OPEN),
    TEXT(node_id, OPEN),
    TEXT(skill_name, OPEN),
    TEXT(skill_version, OPEN),
    TEXT(idempotency_key, FIXED),
    TEXT(request_hash, FIXED),
    TEXT(host, OPEN),
    TEXT(trace_id, OPEN),
    TEXT(language, "", false),
    TEXT(runtime, OPEN),
    TEXT(sandbox_id, OPEN),
    TEXT(policy_name, OPEN),
    TEXT(status, OPEN),
    I64(exit_code, OPEN),
    TEXT(error_type, OPEN),
    TEXT(error_message, OPEN),
    TEXT(code_hash, OPEN),
    TEXT(input_hash, OPEN),
    TEXT(output_hash, OPEN),
    TEXT(transcript_hash, OPEN),
    I64(code_bytes, OPEN),
    I64(input_bytes, OPEN),
    I64(output_bytes, OPEN),
    I64(memory_limit_bytes, OPEN),
    I64(timeout_ms, OPEN),
    I64(duration_us, OPEN),
    I64(cpu_us, OPEN),
    I64(gpu_us, OPEN),
    I64(memory_peak_bytes, OPEN),
    BOOL(is_timed_out),
    BOOL(is_cached),
    BOOL(is_pii_in),
    BOOL(is_pii_out),
    BOOL(is_pii_masked),
    TEXT(pii_types, "[]", false),
    TEXT(tool_ids, "[]", false),
    TEXT(attestation, "{}", false),
    I64(denials, OPEN),
    I64(tokens, OPEN),
    I64(tokens_saved, OPEN),
    I64(tokens_cached, OPEN),
    USD(cost_usd),
    USD(traditional_cost_usd),
    BOOL(is_cost_tracked),
    I64(created_ms, FIXED),
    I64(started_ms, OPEN),
    I64(finished_ms, OPEN),
    BYTES(kept_input), /* from here: not in lists */
    BYTES(kept_output),
    BYTES(kept_code),
    BYTES(answer),
};

#define LARGE_COLUMNS 4

const store_table store_executions = { "executions", columns, RT_COUNT(columns) };
const store_table store_executions_head = { "executions", columns,
                                            RT_COUNT(columns) - LARGE_COLUMNS };

static void bind_row(const rt_execution_row *row, rt_sql_value values[STORE_MAX_COLUMNS])
{
    store_table_bind(&store_executions, row, values);
    if (!row->has_validation)
        values[0] = rt_sql_null();
}

void store_execution_read(const store_table *table, const rt_rows *rows, size_t row,
                          rt_execution_row *out)
{
    *out = (rt_execution_row){ 0 };
    store_table_read(table, rows, row, 0, out);
    out->has_validation = rt_rows_at(rows, row, 0).kind != RT_SQL_NULL;
}

/* -- Statements -------------------------------------------------------------------------------- */

static struct {
    const char *reserve, *record, *by_id, *by_key, *unfinished;
} statements;

static const char *select_where(const char *rest)
{
    rt_buf sql = { 0 };
    rt_buf_add(&sql, RT_STR("SELECT "));
    store_table_names(&store_executions, "", &sql);
    rt_buf_addf(&sql, " FROM executions WHERE %s", rest);
    return store_statement(&sql);
}

static void write_statements(void)
{
    rt_buf reserve = { 0 }, record = { 0 };
    store_table_insert(&store_executions, &reserve);
    rt_buf_add(&reserve, RT_STR(" ON CONFLICT (organisation_id, idempotency_key)"
                                " WHERE idempotency_key IS NOT NULL DO NOTHING"));
    statements.reserve = store_statement(&reserve);

    store_table_insert(&store_executions, &record);
    rt_buf_add(&record, RT_STR(" ON CONFLICT (id) DO UPDATE SET "));
    store_table_overwrite(&store_executions, &record);
    rt_buf_add(&record, RT_STR(" WHERE executions.organisation_id = excluded.organisation_id"
                               " AND executions.status IN ('QUEUED', 'RUNNING')"));
    statements.record = store_statement(&record);

    statements.by_id = select_where("id = $1");
    statements.by_key = select_where("organisation_id = $1 AND idempotency_key = $2");
    statements.unfinished = select_where("host = $1 AND status IN ('QUEUED', 'RUNNING')"
                                         " ORDER BY id LIMIT " RECOVER_PAGE);
}

static void prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, write_statements);
}

/* Cursors and the verification of chains hold an id in a buffer of this size. */
static bool check_id(rt_str id, rt_error *err)
{
    if (id.len == 0 || id.len > STORE_CURSOR_ID_MAX)
        return rt_fail(err, RT_INVALID, "an execution's id has 1 to %d bytes", STORE_CURSOR_ID_MAX);
    return true;
}

/* -- Before the run ---------------------------------------------------------------------------- */

static bool find_taken(rt_store *store, const rt_execution_row *row, rt_arena *arena,
                       rt_execution_row *taken, rt_error *err)
{
    rt_rows rows;
    rt_sql_value values[] = { rt_sql_text(row->organisation_id),
                              rt_sql_text(row->idempotency_key) };
    if (!rt_sql_once(store, RT_TX_READ, statements.by_key, values, 2, arena, &rows, err))
        return rt_wrap(err, "find the execution of an idempotency key");
    if (rows.count == 0) /* erased between the two statements */
        return rt_fail(err, RT_UNAVAILABLE,
                       "the idempotency key has just been given up; try again");
    store_execution_read(&store_executions, &rows, 0, taken);
    return rt_fail(err, RT_CONFLICT, "the idempotency key belongs to execution %.*s",
                   RT_FMT(taken->id));
}

bool rt_execution_reserve(rt_store *store, const rt_execution_row *row, rt_arena *arena,
                          rt_execution_row *taken, rt_error *err)
{
    prepare();
    if (!check_id(row->id, err))
        return false;
    rt_execution_row queued = *row;
    queued.status = RT_STR("QUEUED");
    rt_sql_value values[STORE_MAX_COLUMNS];
    bind_row(&queued, values);
    rt_rows rows;
    if (!rt_sql_once(store, RT_TX_WRITE, statements.reserve, values, store_executions.count, arena,
                     &rows, err))
        return rt_wrap(err, "reserve execution %.*s", RT_FMT(row->id));
    return rows.changed || find_taken(store, row, arena, taken, err);
}

bool rt_execution_started(rt_store *store, rt_str id, uint64_t started_ms, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_rows rows;
    rt_sql_value values[] = { rt_sql_text(id), store_u64(started_ms) };
    if (!rt_sql_once(store, RT_TX_WRITE,
                     "UPDATE executions SET status = 'RUNNING', started_ms = $2"
                     " WHERE id = $1 AND status IN ('QUEUED', 'RUNNING')",
                     values, 2, &arena, &rows, err))
        return rt_wrap(err, "start execution %.*s", RT_FMT(id));
    if (rows.changed == 0)
        return rt_fail(err, RT_NOT_FOUND, "no execution %.*s waits to be started", RT_FMT(id));
    return true;
}

bool rt_execution_release(rt_store *store, rt_str id, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_sql_value values[] = { rt_sql_text(id) };
    return rt_sql_once(store, RT_TX_WRITE,
                       "UPDATE executions SET idempotency_key = NULL WHERE id = $1", values, 1,
                       &arena, NULL, err) ||
           rt_wrap(err, "release execution %.*s", RT_FMT(id));
}

/* -- The end ----------------------------------------------------------------------------------- */

static bool is_ended(rt_str status)
{
    static const char *const ends[] = { "SUCCESS", "FAILED", "TIMEOUT", "MEMORY_ERROR",
                                        "CANCELLED" };
    for (size_t i = 0; i < RT_COUNT(ends); i++)
        if (rt_str_eq_c(status, ends[i]))
            return true;
    return false;
}

/* Our own words all: nothing in the detail needs an escape but what the writer gives it. */
static bool add_audit(rt_tx *tx, const rt_execution_row *row, rt_error *err)
{
    rt_buf detail RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &detail);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "status", row->status);
    rt_jw_kstr(&w, "language", row->language);
    if (row->surface.len)
        rt_jw_kstr(&w, "surface", row->surface);
    rt_jw_end(&w);
    rt_audit_event event = {
        .time_ms = row->finished_ms,
        .organisation_id = row->organisation_id,
        .actor_id = row->user_id,
        .actor_type = row->actor_type,
        .action = RT_STR("execution.run"),
        .subject = row->id,
        .outcome = rt_str_eq(row->status, RT_STR("SUCCESS")) ? RT_STR("ok") : RT_STR("failed"),
        .detail = rt_buf_str(&detail),
    };
    return store_audit_add(tx, &event, err);
}

static bool record_once(rt_store *store, const rt_execution_row *row, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_sql_value values[STORE_MAX_COLUMNS];
    rt_rows rows;
    bind_row(row, values);
    rt_tx *tx RT_CLEANUP(rt_tx_rollbackp) = NULL;
    if (!rt_tx_begin(store, RT_TX_WRITE, &tx, err) ||
        !rt_sql(tx, statements.record, values, store_executions.count, &arena, &rows, err))
        return false;
    if (rows.changed == 0)
        return true; /* it has ended before */
    return store_link_add(tx, row, &arena, err) && store_cost_add(tx, row, err) &&
           add_audit(tx, row, err) && rt_tx_commit(&tx, err);
}

bool rt_execution_record(rt_store *store, const rt_execution_row *row, rt_error *err)
{
    prepare();
    if (!check_id(row->id, err))
        return false;
    if (!is_ended(row->status))
        return rt_fail(err, RT_INVALID, "execution %.*s is recorded as %.*s, which is no end",
                       RT_FMT(row->id), RT_FMT(row->status));
    rt_error why = { 0 };
    for (unsigned tries = 0; tries < RECORD_TRIES; tries++) {
        if (record_once(store, row, &why))
            return true;
        if (why.code != RT_UNAVAILABLE)
            break;
    }
    return rt_fail(err, why.code, "record execution %.*s: %s", RT_FMT(row->id), why.text);
}

/* -- Afterwards -------------------------------------------------------------------------------- */

bool rt_execution_get(rt_store *store, rt_str organisation_id, rt_str id, rt_arena *arena,
                      rt_execution_row *out, rt_error *err)
{
    prepare();
    rt_rows rows;
    rt_sql_value values[] = { rt_sql_text(id) };
    if (!rt_sql_once(store, RT_TX_READ, statements.by_id, values, 1, arena, &rows, err))
        return rt_wrap(err, "find an execution");
    rt_execution_row row = { 0 };
    if (rows.count)
        store_execution_read(&store_executions, &rows, 0, &row);
    bool is_theirs = !organisation_id.len || rt_str_eq(row.organisation_id, organisation_id);
    if (rows.count == 0 || !is_theirs)
        return rt_fail(err, RT_NOT_FOUND, "no execution %.*s", RT_FMT(id));
    *out = row;
    return true;
}

static bool end_as_failed(rt_store *store, rt_execution_row *row, uint64_t now_ms, rt_error *err)
{
    row->status = RT_STR("FAILED");
    row->error_type = RT_STR("Interrupted");
    row->error_message = RT_STR("the server stopped before this run ended");
    row->finished_ms = now_ms;
    return rt_execution_record(store, row, err);
}

bool rt_execution_recover(rt_store *store, rt_str host, uint64_t now_ms, uint64_t *count,
                          rt_error *err)
{
    prepare();
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_sql_value values[] = { rt_sql_text(host) };
    rt_rows rows;
    uint64_t ended = 0;
    do { /* a row that has ended is not found again, so this ends too */
        rt_arena_reset(&arena);
        if (!rt_sql_once(store, RT_TX_READ, statements.unfinished, values, 1, &arena, &rows, err))
            return rt_wrap(err, "find the executions of host %.*s", RT_FMT(host));
        for (size_t i = 0; i < rows.count; i++, ended++) {
            rt_execution_row row;
            store_execution_read(&store_executions, &rows, i, &row);
            if (!end_as_failed(store, &row, now_ms, err))
                return rt_wrap(err, "recover the executions of host %.*s", RT_FMT(host));
        }
    } while (rows.count);
    *count = ended;
    return true;
}
