/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_internal.h - what the stages of an execution share.
 *
 * A passage is one request on its way through the stages (engine.c). Each stage reads what the ones
 * before it found out and adds its own part; none goes back.
 */
#ifndef RT_ENGINE_INTERNAL_H
#define RT_ENGINE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/engine.h"
#include "engine/gate.h"

/* -- Admission (admission.c) ------------------------------------------------------------------- */

typedef struct admission_limits {
    unsigned max_running, max_queued;
    uint64_t max_memory_bytes, wait_ms;
} admission_limits;

typedef struct admission admission;

/* A place that was given; zero bytes hold none. */
typedef struct admission_place {
    admission *from;
    uint64_t memory_bytes;
    struct admission_group *group;
    bool is_held;
} admission_place;

admission *engine_admission_new(const admission_limits *limits);
void engine_admission_free(admission *a);
/*
 * Waits for a slot and memory, fairly: of those who wait, the group with the fewest running comes
 * first, and within it who came first. RT_UNAVAILABLE when too many wait, when it took too long or
 * when the engine stops; RT_LIMIT when more memory is asked than there will ever be; RT_CANCELLED.
 */
bool engine_admission_enter(admission *a, rt_str group, uint64_t memory_bytes,
                            rt_canceller *canceller, admission_place *out, uint64_t *waited_us,
                            rt_error *err);
void engine_admission_leave(admission_place *place);
void engine_admission_nudge(admission *a); /* somebody was cancelled: let the waiting ones look */
void engine_admission_stop(admission *a);  /* from now on nobody is let in */

typedef struct admission_counts {
    unsigned running, queued;
    uint64_t memory_bytes, total, rejected;
} admission_counts;
admission_counts engine_admission_counts(admission *a);

/* -- The passage ------------------------------------------------------------------------------- */

/* What is left of a run's calls (desk.c). */
typedef struct engine_desk_report {
    uint64_t calls, failures;
    uint64_t bytes_in, bytes_out; /* results, arguments */
    size_t id_count;
    rt_str ids; /* JSON array of the tools' names */
    char transcript_hash[RT_SHA256_HEX];
    bool has_effects; /* some tool may have changed something */
} engine_desk_report;

typedef struct running running; /* one row of the table of what is under way (jobs.c) */

typedef struct passage {
    rt_engine *engine;
    const rt_request *request;
    rt_arena *arena;
    rt_answer *answer;
    uint64_t began_ns, created_ms;

    rt_str id;
    const rt_language *language;
    rt_policy policy;
    rt_canceller *canceller;
    rt_canceller own_canceller; /* when the request brought none */
    running *row;               /* in the table of what is under way */
    rt_job *job;                /* NULL: somebody waits for the answer */
    char code_hash[RT_SHA256_HEX], input_hash[RT_SHA256_HEX], output_hash[RT_SHA256_HEX];
    char request_hash[RT_SHA256_HEX]; /* of all that was asked, and by which organisation */
    char cache_key[RT_SHA256_HEX];    /* of that and of what would answer it; empty: no cache */
    bool is_reserved;                 /* there is a row in the store already */
    bool is_watched;                  /* somebody must be able to find it before it has ended */
    bool is_answered; /* by the cache or the record: the rest of the way is not walked */

    admission_place place;
    uint64_t queue_wait_us;
    rt_session_hold session;
    bool has_turn;  /* in the session */
    bool is_nested; /* counted as such */

    rt_privacy_wish privacy;       /* as asked, unless the operator switched it off */
    rt_privacy_options scan;       /* what is looked for */
    rt_privacy_patterns *patterns; /* of this run alone; scan.patterns may be the engine's */
    rt_str input, stdin_data;      /* as the code sees them */
    rt_json input_json;            /* the same, when it was parsed already; absent: it was not */
    rt_str kept_value;        /* the answer's, before anything was put back: what may be kept */
    rt_privacy_vault *vault;  /* what the tokens of this run stand for */
    pthread_mutex_t pii_lock; /* of these two while the code runs (protect_tools.c) */
    rt_privacy_report pii_in, pii_out;
    bool has_validation, has_invalid; /* a value did not fit its schema */
    engine_grant grant;               /* what its code may call */
    engine_desk_report calls;

    rt_route route; /* which runtime takes it, and why */
    bool has_outcome;
    rt_outcome outcome;
    uint64_t full_output_bytes; /* value, stdout and stderr before they were cut */
    rt_str handles;             /* JSON array */
    uint64_t tokens, tokens_saved;
    double cost_usd, traditional_cost_usd;
    rt_span span;
} passage;

/* The stages, in their order; each false with an error that ends the passage. */
bool engine_permit(passage *p, rt_error *err);          /* permit.c: role, feature flag, budget */
bool engine_check(passage *p, rt_error *err);           /* check.c: language, sizes, policy */
bool engine_validate_input(passage *p, rt_error *err);  /* validate.c */
bool engine_choose_privacy(passage *p, rt_error *err);  /* protect.c: how, and looking for what */
bool engine_protect_input(passage *p, rt_error *err);   /* protect.c: personal data in */
bool engine_reserve(passage *p, rt_error *err);         /* reserve.c: id, idempotency key */
bool engine_consult(passage *p, rt_error *err);         /* consult.c: the cache */
bool engine_admit(passage *p, rt_error *err);           /* engine.c: a slot */
bool engine_route(passage *p, rt_error *err);           /* route.c: which runtime */
bool engine_run(passage *p, rt_error *err);             /* run.c */
bool engine_protect_output(passage *p, rt_error *err);  /* protect.c: and out */
bool engine_validate_output(passage *p, rt_error *err); /* validate.c */
bool engine_shelve(passage *p, rt_error *err);          /* shelve.c: artifacts and handles */
bool engine_price(passage *p, rt_error *err);           /* price.c */
bool engine_compose(passage *p, rt_error *err);         /* compose.c: the answer's JSON */
bool engine_record(passage *p, rt_error *err);          /* record.c */
bool engine_keep(passage *p, rt_error *err);            /* consult.c: into the cache */
void engine_publish(passage *p);                        /* publish.c: metrics, span, event */

/* How every answer's text ends (compose.c), so that a kept one can be given the other end. */
#define ENGINE_FRESH_END  ",\"cached\":false}"
#define ENGINE_CACHED_END ",\"cached\":true}"

/* A run that was reserved and could not be had is on record as FAILED (record.c). */
void engine_record_failure(passage *p, const rt_error *why);

/* What the record knows before the run, and the purpose its answer is sealed for (reserve.c). */
void engine_fill_row(const passage *p, rt_execution_row *row);
rt_str engine_answer_purpose(rt_str id, rt_arena *arena);

/* Over parts with their lengths, so that no two lists of parts have one text (check.c). */
void engine_hash(const rt_str *parts, size_t count, char out[RT_SHA256_HEX]);

/* What the cache keeps of a user is found by (engine.c). */
void engine_user_tag(rt_str organisation_id, rt_str user_id, char out[RT_SHA256_HEX]);

/* What a request's owner is called in the record. */
rt_str engine_user(const rt_request *r);

/* Tokens as S0-28 counts them: characters by chars_per_token, rounded up. */
uint64_t engine_tokens(const rt_engine_rates *rates, uint64_t characters);
double engine_round6(double usd);

/* Whether the answer holds personal data that must not be kept (protect.c). */
bool engine_is_private(const passage *p);

/* An event for whoever watches; false: the watcher has gone. */
bool engine_tell(passage *p, const char *event, rt_str json);
bool engine_tell_output(passage *p, int stream, rt_str text); /* run.c */

/* -- Routes (route.c) ---------------------------------------------------------------------------
 */

void engine_route_prime(rt_engine *e); /* makes the router, which knows the newest runs */
bool engine_route_read(rt_json value, rt_route_ask *out, rt_error *err);

/* -- Walking (engine.c) ------------------------------------------------------------------------ */

#define ENGINE_STACK_BYTES (512u << 10) /* of a thread that walks a passage */

/* The stages up to the reservation; `job` (may be NULL) is who can be found under the id. */
bool engine_walk_in(passage *p, rt_engine *engine, const rt_request *request, rt_arena *arena,
                    rt_answer *answer, rt_job *job, rt_error *err);
bool engine_walk_rest(passage *p, rt_error *err); /* the others, up to the record */
void engine_enlist(passage *p); /* from now on it can be found and cancelled by its id */
void engine_fail(passage *p, const rt_error *why); /* what was reserved is on record as failed */
void engine_passage_end(passage *p);               /* gives back what it held */

/* -- What is under way (jobs.c) ---------------------------------------------------------------- */

typedef struct registry registry;
registry *engine_registry_new(void);
void engine_registry_free(registry *r);
running *engine_registry_add(registry *r, const passage *p);
void engine_registry_remove(registry *r, running *row);
void engine_registry_cancel_all(registry *r, admission *a);
void engine_registry_cancel_session(registry *r, rt_str session_id);
/* How many runs of this user there are; all of them are cancelled. */
size_t engine_registry_cancel_user(registry *r, rt_str organisation_id, rt_str user_id);
bool engine_registry_wait_empty(registry *r, uint64_t deadline_ns);

/* -- Sessions (sessions.c) --------------------------------------------------------------------- */

typedef struct sessions sessions;
sessions *engine_sessions_new(rt_engine *engine);
void engine_sessions_free(sessions *s); /* ends them all */
unsigned engine_sessions_count(sessions *s);
/* The policy and the language it was opened with. */
const rt_policy *engine_session_policy(const rt_session_hold *hold, rt_str *language);
/* One run at a time: waits for the turn, before a slot is taken; and passes it on. */
bool engine_session_turn(rt_session_hold *hold, rt_canceller *canceller, rt_error *err);
void engine_session_pass(rt_session_hold *hold);
/* Its vault, made when first asked for; the share is the caller's to close. */
bool engine_session_vault(rt_session_hold *hold, rt_privacy_vault **out, rt_error *err);
void engine_sessions_end_user(sessions *s, rt_str organisation_id, rt_str user_id);
void engine_session_ran(rt_session_hold *hold); /* counts a run, and notices a death */

/* -- Approvals (approvals.c) ------------------------------------------------------------------- */

typedef struct approvals approvals;
approvals *engine_approvals_new(void);
void engine_approvals_free(approvals *a);
void engine_approvals_wake(approvals *a); /* something was decided, or somebody cancelled */

struct rt_engine {
    rt_engine_config config;
    rt_policy ceiling, base_policy;
    pthread_mutex_t lock;   /* of the next two */
    rt_str runtime_version; /* part of every cache key; found out when first needed */
    admission *admission;
    registry *registry;
    sessions *sessions;
    approvals *approvals;
    rt_router *router;
    rt_arena arena;          /* what lives as long as the engine */
    rt_privacy_options scan; /* what is looked for unless a run says otherwise */
    rt_privacy_patterns *patterns;
    atomic_bool is_stopping;
    atomic_uint nested;             /* runs that other runs have started */
    atomic_uint_fast64_t job_bytes; /* what jobs were charged for (jobs.c) */
};

#endif
