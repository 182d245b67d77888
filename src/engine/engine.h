/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - one execution, from request to record: the spine every surface calls.
 *
 * Promise: a request is answered once, and what was answered is on record before the caller hears
 * it. Nothing runs without a slot, more than the operator allows, or twice under one idempotency
 * key. REST, MCP and the others only translate names, presets and result shapes.
 *
 *     rt_request request = { .caller = caller, .surface = RT_STR("rest"),
 *                            .language = RT_STR("python"), .code = RT_STR("return 6 * 7") };
 *     rt_answer answer;
 *     if (!rt_engine_execute(engine, &request, &arena, &answer, err))
 *         return rt_wrap(err, "execute");
 *     send(answer.json);
 *
 * A run that failed (an exception, a time-out) is an answer like any other. execute() is false
 * only when there is none: the request makes no sense, is not allowed, or found no room.
 * engine.c has the stages in their order; each has a file of its own. Any thread may call.
 */
#ifndef RT_ENGINE_ENGINE_H
#define RT_ENGINE_ENGINE_H

#include "base/base.h"
#include "privacy/privacy.h"
#include "runtimes/route.h"
#include "runtimes/runtimes.h"
#include "schema/schema.h"
#include "store/store.h"
#include "telemetry/telemetry.h"
#include "tools/tools.h"

typedef struct rt_engine rt_engine;

typedef struct rt_engine_limits {
    unsigned max_running;      /* at once; 0: 10 */
    uint64_t max_memory_bytes; /* granted to all that run, by their limits; 0: 3 GiB */
    unsigned max_queued;       /* waiting for a slot; 0: 1,000 */
    uint64_t queue_wait_ms;    /* how long one waits; 0: 30,000 */
    unsigned max_sessions;     /* 0: 50 */
    uint64_t session_ttl_ms, session_max_ttl_ms; /* 0: 15 minutes, 24 hours */
    uint64_t output_budget_bytes;                /* past it, output becomes a handle; 0: 64 KiB */
} rt_engine_limits;

typedef struct rt_engine_rates { /* USD per million tokens */
    bool is_off;
    double execution;   /* of code, input and answer */
    double traditional; /* of the same data, had it passed through a model's context */
    double cached;      /* the same again, when the model's provider has it cached */
    double chars_per_token;
    double budget_usd_month; /* of an organisation; 0: none */
} rt_engine_rates;

#define RT_TOOL_PATTERN_MAX 200

typedef struct rt_patterns { /* of tools' names, as a shell has them: "github:*" */
    const rt_str *items;
    size_t count;
} rt_patterns;

typedef struct rt_tool_rules {  /* the operator's */
    rt_patterns granted;        /* what may be called at all */
    rt_patterns needs_approval; /* only after a person's word, whatever the tool says of itself */
    rt_patterns sees_pii;       /* gets real values in place of tokens */
} rt_tool_rules;

typedef struct rt_engine_config {
    rt_runtime *runtime;
    rt_store *store;
    rt_shelf *shelf;
    rt_vault *vault;
    rt_cache *cache;
    rt_telemetry *telemetry;
    rt_tools *tools; /* for code and callers; NULL: none */
    rt_tool_rules tool_rules;
    rt_str host;                  /* this node's name */
    rt_str host_url;              /* where others reach it; may be empty */
    const rt_policy *ceiling;     /* what the operator allows; NULL: the long preset, 4 GiB */
    rt_str default_policy;        /* a preset; empty: default */
    const rt_policy *base_policy; /* refines default_policy by configuration; NULL: the preset */
    bool is_off;                  /* the feature flag: every execution is refused with 503 */
    unsigned rollout_percent;     /* of callers; only when has_rollout */
    bool has_rollout;
    bool is_privacy_off;      /* the operator's switch: no masking, whatever is asked */
    bool is_privacy_required; /* runs that ask for none are refused */
    rt_json privacy_options;  /* what is looked for; as rt_privacy_options_read() takes them */
    bool forgets_answers;     /* a repeated idempotency key is answered without its result */
    bool keeps_data;          /* raw code, input and output go into the record */
    rt_engine_limits limits;
    rt_engine_rates rates;
} rt_engine_config;

bool rt_engine_open(const rt_engine_config *config, rt_engine **out, rt_error *err);
/* Takes no more work, waits until what runs has ended (at most drain_ms), then cancels the rest;
 * every one of them is on record when this returns. */
bool rt_engine_stop(rt_engine *engine, uint64_t drain_ms); /* false: something does not end */
void rt_engine_close(rt_engine *engine);
void rt_engine_closep(rt_engine **engine);

/* -- Requests ---------------------------------------------------------------------------------- */

/* Who asks. The server finds out; the engine decides. */
typedef struct rt_caller {
    rt_str organisation_id, workspace_id, user_id, key_id;
    rt_str actor_type; /* "user", "key", "subagent"; */
    rt_role role;
    rt_str address;
    double budget_usd_month; /* of the key; 0: none */
} rt_caller;

/* Code may ask for the time or for chance, so an answer is kept only for those who say so. */
typedef enum rt_cache_use {
    RT_CACHE_BYPASS,  /* run, keep nothing */
    RT_CACHE_USE,     /* answer from the cache, or run and keep */
    RT_CACHE_REFRESH, /* run, and keep */
} rt_cache_use;

/* What happens to personal data on its way in and out. */
typedef struct rt_privacy_wish {
    rt_privacy_mode mode;
    bool is_said;        /* by the caller; else it is the surface's own, and a policy may differ */
    rt_json options;     /* as rt_privacy_options_read() takes them; may be absent */
    bool is_stable;      /* equal values share a token */
    bool is_detokenized; /* the answer's values get their data back */
    bool is_noted;       /* with the mode off: what is found goes on record, and stays as it is */
} rt_privacy_wish;

typedef bool (*rt_engine_event_fn)(void *ctx, const char *event, rt_str json); /* false: cancel */

typedef struct rt_request {
    rt_caller caller;
    rt_str surface; /* "rest", "agent-api", "mcp" … */
    rt_str id;      /* of the execution, when the surface chooses it; empty: one is made */
    rt_str language, code, name;
    rt_prelude prelude; /* see runtimes.h */
    rt_str input;       /* JSON text, or plain text when is_input_text */
    bool has_input, is_input_text;
    rt_json input_json; /* the same, when it was parsed already */
    rt_str stdin_data;
    rt_json input_schema, output_schema;             /* absent: anything goes */
    const rt_schema *input_checker, *output_checker; /* the same, made already; may be NULL */
    bool adds_defaults; /* of the input's schema to what code sees; hashed is what was sent */
    rt_privacy_wish privacy;
    rt_json tools;       /* patterns the code may call; absent: all that the operator grants */
    rt_str intent;       /* what the code is for: grants the tools that fit; may be empty */
    rt_json policy;      /* as rt_policy_read() takes it; absent: the default */
    rt_str preset;       /* what the surface starts from; empty: the engine's default */
    rt_str session_id;   /* run in this session */
    rt_str conversation; /* groups runs in the record (S0's sessionId); no session is meant */
    rt_str idempotency_key, agent_type, tool_id, user_id; /* user_id: on whose behalf */
    rt_str skill_name, skill_version; /* of a skill's run; its output's hash is of canonical text */
    uint64_t budget_bytes;            /* of output in the answer; 0: the engine's */
    const rt_str *granted_paths;      /* host paths this run may read beyond the operator's list: */
    size_t granted_path_count;        /* the surface vouches for them */
    bool is_nested; /* part of a run that has a slot: it waits for none of its own */
    rt_str code_agent_id, code_agent_version; /* whose code this is; for the record */
    rt_cache_use cache;
    rt_route_ask route;          /* where it shall run; language and code are the engine's to say */
    rt_trace trace;              /* the caller's span */
    rt_engine_event_fn on_event; /* "queued" "started" "stdout" "stderr" "log"; may be NULL */
    void *event_ctx;
    rt_canceller *canceller; /* may be NULL; first looked at after on_work */
    /* Called once, when there is no answer yet and it will have to wait or run; may be NULL. */
    void (*on_work)(void *ctx);
    void *work_ctx;
} rt_request;

/* Fills in what a JSON body says: the members of POST /v1/executions. A member that is unknown or
 * of a wrong type is RT_INVALID, and the text says what was expected. */
bool rt_request_label(rt_str text); /* short, valid UTF-8, no control character */
/* "tokens", or {"mode": "tokens", "stable": true, "detokenize": true, "types": ["EMAIL"]}. */
bool rt_privacy_wish_read(rt_json value, rt_privacy_wish *out, rt_error *err);
bool rt_request_read(rt_json body, rt_arena *arena, rt_request *out, rt_error *err);

typedef struct rt_answer {
    rt_str id;
    rt_status status;
    bool is_cached;   /* nothing ran: an earlier answer to the same question */
    bool is_replayed; /* nothing ran: this idempotency key was answered before */
    rt_str json;      /* the whole answer, one object; see docs/http.md */
} rt_answer;

/* The one entry point. */
bool rt_engine_execute(rt_engine *engine, const rt_request *request, rt_arena *arena,
                       rt_answer *out, rt_error *err);

/* -- Runs that nobody waits for, and runs that are watched ------------------------------------- */

typedef struct rt_job rt_job;

/* Starts it on a thread of its own; the request is copied. The job is the caller's to release. */
bool rt_engine_start(rt_engine *engine, const rt_request *request, rt_job **out, rt_error *err);
rt_str rt_job_id(const rt_job *job);
void rt_job_release(rt_job *job);
void rt_job_releasep(rt_job **job);
void rt_job_cancel(rt_job *job);

/* The next event after *position, waiting until deadline_ns. 1: an event, 0: the deadline passed,
 * -1: that was the last. The last event is "result" with the answer, or "error". */
int rt_job_next(rt_job *job, size_t *position, uint64_t deadline_ns, rt_arena *arena,
                const char **event, rt_str *json);

/* A job of this node that has not ended, by its id; NULL: none. Release it. */
rt_job *rt_engine_job(rt_engine *engine, rt_str organisation_id, rt_str id);

/* Ends what runs or waits under this id. RT_NOT_FOUND when it is not running on this node. */
bool rt_engine_cancel(rt_engine *engine, rt_str organisation_id, rt_str id, rt_error *err);

/* Before a user's data is erased: ends their sessions and runs, and drops what the cache has. */
bool rt_engine_forget(rt_engine *engine, rt_str organisation_id, rt_str user_id, rt_error *err);

/* -- Looking without running ------------------------------------------------------------------- */

bool rt_engine_validate(rt_engine *engine, const rt_caller *caller, rt_str language, rt_str code,
                        rt_arena *arena, rt_verdict *out, rt_error *err);
size_t rt_engine_languages(rt_engine *engine, rt_arena *arena, rt_language *out, size_t max);
rt_router *rt_engine_router(rt_engine *engine);

typedef struct rt_engine_stats { /* the names of S2-27 */
    unsigned running, queued, max_running, sessions;
    uint64_t total, rejected, memory_granted, max_memory;
    bool is_stopping;
} rt_engine_stats;

rt_engine_stats rt_engine_stats_get(rt_engine *engine);
void rt_engine_stats_write(const rt_engine_stats *stats, rt_json_writer *w);

/* -- Tools ---------------------------------------------------------------------------------------
 */

typedef struct rt_tool_request {
    const rt_caller *caller;
    rt_str tool;      /* as it was written: "github:listCommits" */
    rt_str arguments; /* a JSON object */
    rt_str execution_id, session_id;
    rt_str reason;           /* for who is asked: "called over MCP" */
    uint64_t deadline_ns;    /* 0: what its server was given, from when it is called */
    rt_canceller *canceller; /* may be NULL */
    rt_trace trace;
    void (*on_wait)(void *ctx, bool is_waiting); /* for a person's word; may be NULL */
    void (*on_progress)(void *ctx, double done, double total, rt_str message); /* may be NULL */
    void *ctx;
} rt_tool_request;

/*
 * Calls a tool: grants, approval, trace and record are the same as for code. True also when the
 * tool itself failed (out->is_error). RT_DENIED, RT_NOT_FOUND with a suggestion, RT_UNAVAILABLE.
 */
bool rt_engine_call(rt_engine *engine, const rt_tool_request *request, rt_arena *arena,
                    rt_tool_result *out, rt_error *err);

/* -- Approvals: what needs a person's word -------------------------------------------------------
 */

typedef struct rt_question {
    const rt_caller *caller; /* who would do it */
    rt_str execution_id, session_id;
    rt_str operation; /* "github:delete_repository" */
    rt_str reason;    /* why it is asked */
    rt_str arguments; /* JSON; kept sealed, shown to who decides */
    rt_str priority;  /* low normal high urgent; empty: normal */
    uint64_t ttl_ms;  /* 0: an hour */
} rt_question;

/*
 * Waits for a person's word, on whichever node it is given. True: approved. RT_DENIED with the
 * comment when it was rejected, RT_TIMEOUT when nobody said anything in time, RT_CANCELLED. What is
 * asked is on record before anybody can answer, and the answer before this returns.
 */
bool rt_engine_ask(rt_engine *engine, const rt_question *question, rt_canceller *canceller,
                   rt_error *err);
/* Asks without waiting: the question's id is what the caller comes back with, once it was answered.
 * execution_id of the question stays empty. */
bool rt_engine_propose(rt_engine *engine, const rt_question *question, rt_arena *arena,
                       rt_approval_row *out, rt_error *err);
/* Takes what was approved, once: this operation with these arguments, for this organisation.
 * RT_DENIED, naming what does not fit. */
bool rt_engine_redeem(rt_engine *engine, const rt_question *question, rt_str id, rt_error *err);
/* The word; an admin gives it. RT_CONFLICT when it was given already. */
bool rt_engine_decide(rt_engine *engine, const rt_caller *caller, rt_str id, bool is_approved,
                      rt_str comment, rt_arena *arena, rt_approval_row *out, rt_error *err);
/* The arguments in clear; empty when another node's vault has the key. */
rt_str rt_engine_arguments(rt_engine *engine, const rt_approval_row *row, rt_arena *arena);

/* -- Sessions ---------------------------------------------------------------------------------- */

typedef struct rt_session_request {
    rt_caller caller;
    rt_str language, name;
    rt_json policy;
    uint64_t ttl_ms; /* 0: the default */
} rt_session_request;

bool rt_session_create(rt_engine *engine, const rt_session_request *request, rt_arena *arena,
                       rt_session_row *out, rt_error *err);
/* RT_NOT_FOUND; RT_UNAVAILABLE naming the node when another one has it. */
bool rt_session_get(rt_engine *engine, const rt_caller *caller, rt_str id, rt_arena *arena,
                    rt_session_row *out, rt_error *err);
bool rt_session_list(rt_engine *engine, const rt_caller *caller, rt_str status, unsigned limit,
                     rt_arena *arena, rt_session_row **rows, size_t *count, rt_error *err);
bool rt_session_extend(rt_engine *engine, const rt_caller *caller, rt_str id, uint64_t ttl_ms,
                       rt_arena *arena, rt_session_row *out, rt_error *err);
bool rt_session_branch(rt_engine *engine, const rt_caller *caller, rt_str id, rt_str name,
                       uint64_t ttl_ms, rt_arena *arena, rt_session_row *out, rt_error *err);
bool rt_session_end(rt_engine *engine, const rt_caller *caller, rt_str id, rt_error *err);

/* The live session itself, held open until it is let go; for its files. */
typedef struct rt_session_hold {
    rt_engine *engine;
    struct session *session;
    rt_live *live;
} rt_session_hold;

bool rt_session_take(rt_engine *engine, const rt_caller *caller, rt_str id, rt_session_hold *out,
                     rt_error *err);
void rt_session_let_go(rt_session_hold *hold); /* nothing, when it holds none */

#endif
