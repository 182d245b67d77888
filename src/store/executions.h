/* SPDX-License-Identifier: Apache-2.0 */
/*
 * executions.h - one row per run, and everything that is written with it.
 *
 * Promise: rt_execution_record() writes the run, its link in the provenance chain, its cost and its
 * audit line in one transaction, or nothing. An idempotency key belongs to one run for ever.
 */
#ifndef RT_STORE_EXECUTIONS_H
#define RT_STORE_EXECUTIONS_H

#include "store/db.h"

typedef struct rt_execution_row {
    /* who and what */
    rt_str id; /* exec_<ms>_<hex> */
    rt_str organisation_id, workspace_id, user_id, key_id;
    rt_str actor_type; /* user, key, subagent, … */
    rt_str agent_type; /* claude, gpt-4, … as the caller says */
    rt_str surface;    /* rest, agent-api, mcp, … */
    rt_str session_id, tool_id, code_agent_id, code_agent_version, workflow_execution_id, node_id;
    rt_str skill_name, skill_version;
    rt_str idempotency_key; /* {NULL, 0}: none */
    rt_str request_hash;    /* of what was asked under that key, so that another use is noticed */
    rt_str host;            /* the node that runs it */
    rt_str trace_id;
    /* the run */
    rt_str language, runtime, sandbox_id, policy_name;
    rt_str status; /* QUEUED RUNNING SUCCESS FAILED TIMEOUT MEMORY_ERROR CANCELLED */
    int64_t exit_code;
    rt_str error_type, error_message; /* the message without the user's data: see engine/record.c */
    rt_str code_hash, input_hash, output_hash, transcript_hash;
    uint64_t code_bytes, input_bytes, output_bytes;
    uint64_t memory_limit_bytes, timeout_ms;
    uint64_t duration_us, cpu_us, gpu_us, memory_peak_bytes; /* gpu_us: all GPUs together */
    bool is_timed_out, is_cached;
    bool has_validation, is_validation_passed;
    bool is_pii_in, is_pii_out, is_pii_masked;
    rt_str pii_types;   /* JSON: {"input":{"email":2},"output":{}}; once, an array of names */
    rt_str tool_ids;    /* JSON array */
    rt_str attestation; /* JSON object */
    uint64_t denials;
    /* cost */
    uint64_t tokens, tokens_saved, tokens_cached;
    double cost_usd, traditional_cost_usd;
    bool is_cost_tracked;
    /* kept only when the operator turned keeping on */
    rt_str kept_input, kept_output, kept_code;
    rt_str answer; /* of runs with an idempotency key: the answer to give again, encrypted by the
                      caller when keeping is off */
    uint64_t created_ms, started_ms, finished_ms;
} rt_execution_row;

/* Reserves the id (and the idempotency key) before the run, as QUEUED. RT_CONFLICT when the key is
 * taken: *taken then is the row that has it (when the id is taken, *taken is not written). */
bool rt_execution_reserve(rt_store *store, const rt_execution_row *row, rt_arena *arena,
                          rt_execution_row *taken, rt_error *err);
bool rt_execution_started(rt_store *store, rt_str id, uint64_t started_ms, rt_error *err);

/* The end of a run, reserved or not. A run that has ended stays as it ended: recording it again
 * changes nothing and is no error. */
bool rt_execution_record(rt_store *store, const rt_execution_row *row, rt_error *err);

/* Frees the idempotency key of a run that could not be had, so that it can be tried again. */
bool rt_execution_release(rt_store *store, rt_str id, rt_error *err);

/* RT_NOT_FOUND, also when it belongs to another organisation. An empty organisation sees all. */
bool rt_execution_get(rt_store *store, rt_str organisation_id, rt_str id, rt_arena *arena,
                      rt_execution_row *out, rt_error *err);

typedef struct rt_execution_filter {
    rt_str organisation_id; /* empty: all */
    rt_str status, language, session_id, user_id, agent_type, tool_id, code_agent_id,
        workflow_execution_id;   /* empty: any */
    uint64_t since_ms, until_ms; /* 0: open */
    rt_str cursor;               /* of the page before; empty: the first */
    unsigned limit;              /* 1 to 500; 0: 50 */
} rt_execution_filter;

/* Newest first, without what may be large (kept_input, kept_output, kept_code, answer); `next` is
 * empty on the last page. A cursor that is not ours is RT_INVALID. */
bool rt_execution_list(rt_store *store, const rt_execution_filter *filter, rt_arena *arena,
                       rt_execution_row **rows, size_t *count, rt_str *next, rt_error *err);

/* After a restart: what this host had QUEUED or RUNNING is FAILED, with a message that says so. It
 * is recorded like any other end. */
bool rt_execution_recover(rt_store *store, rt_str host, uint64_t now_ms, uint64_t *count,
                          rt_error *err);

/* Figures for the KPI endpoint and analytics; see S3-104 to S3-107, S0-89, S1-44. */
typedef struct rt_execution_group {
    rt_str name; /* of a runtime or language */
    uint64_t count, succeeded;
    double average_ms;
} rt_execution_group;

typedef struct rt_execution_day {
    uint64_t start_ms; /* of the day, UTC */
    uint64_t count, succeeded;
} rt_execution_day;

/* Of runs that have ended. A percentile is at floor(n * p) of the sorted durations above 0. */
typedef struct rt_execution_stats {
    uint64_t total, succeeded;
    uint64_t failed; /* every end but SUCCESS */
    uint64_t timed_out, with_denials, denials;
    uint64_t validations, validation_failures;
    uint64_t pii_runs, code_agent_runs, cached;
    double average_ms, median_ms, p95_ms, p99_ms, average_memory_bytes;
    double cost_usd;
    uint64_t tokens, tokens_saved;
    rt_execution_group *by_language, *by_runtime;
    size_t language_count, runtime_count;
    rt_execution_day *days; /* that had any, in their order */
    size_t day_count;
} rt_execution_stats;

/* Whose runs; all of it may be empty. */
typedef struct rt_execution_scope {
    rt_str organisation_id, code_agent_id;
    bool is_agents_only; /* runs of code agents */
    uint64_t since_ms;
} rt_execution_scope;

bool rt_execution_stats_of(rt_store *store, const rt_execution_scope *scope, rt_arena *arena,
                           rt_execution_stats *out, rt_error *err);

bool rt_execution_stats_get(rt_store *store, rt_str organisation_id, uint64_t since_ms,
                            rt_arena *arena, rt_execution_stats *out, rt_error *err);

/* One link of the chain: the fields of a provenance record, the hashes, the attestation. The actor
 * is the execution's user, or its key when there is no user. */
typedef struct rt_provenance {
    rt_str execution_id, organisation_id;
    int64_t sequence; /* from 1, without gaps, per organisation */
    rt_str skill_name, skill_version, actor_id, actor_type;
    rt_str code_hash, inputs_hash, outputs_hash, transcript_hash;
    rt_str tool_ids, attestation; /* JSON */
    rt_str timestamp;             /* ISO 8601, Z */
    double execution_time_ms;
    bool success;
    rt_str error_message;
    rt_str previous_hash, hash;
    rt_str actor_salt, actor_commitment, error_salt, error_commitment; /* see audit.h */
    bool is_erased;      /* its personal fields were erased; the commitments to them remain */
    uint64_t removed_ms; /* when erasure or retention took the execution's row; 0: it is there */
} rt_provenance;

bool rt_provenance_get(rt_store *store, rt_str organisation_id, rt_str execution_id,
                       rt_arena *arena, rt_provenance *out, rt_error *err);
/* Filters may be empty; newest first; at most 500, 0: 50. */
bool rt_provenance_list(rt_store *store, rt_str organisation_id, rt_str actor_id, rt_str skill_name,
                        unsigned limit, rt_arena *arena, rt_provenance **rows, size_t *count,
                        rt_error *err);
/* The object that audit.h tells how to verify. */
void rt_provenance_write(const rt_provenance *p, rt_json_writer *w);

#endif
