/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.c - the order of events of one execution.
 *
 * A passage walks through the stages below, from the first to the last, and never back. The first
 * three can refuse it at no cost; from the reservation on it is on record whatever happens. A stage
 * that finds the answer (the record, the cache) ends the walk. Each stage is a function of its own
 * file and of the passage alone.
 */
#include "engine/engine_internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct stage {
    const char *name;
    bool (*take)(passage *p, rt_error *err);
} stage;

static const stage way_in[] = {
    { "permit", engine_permit },
    { "check", engine_check },
    { "choose privacy", engine_choose_privacy },
    { "validate input", engine_validate_input },
    { "reserve", engine_reserve },
};

static const stage way_through[] = {
    { "protect input", engine_protect_input },
    { "consult", engine_consult },
    { "admit", engine_admit },
    { "run", engine_run },
    { "protect output", engine_protect_output },
    { "validate output", engine_validate_output },
    { "shelve", engine_shelve },
    { "price", engine_price },
    { "compose", engine_compose },
    { "record", engine_record },
    { "keep", engine_keep },
};

static bool walk(passage *p, const stage *stages, size_t count, rt_error *err)
{
    rt_telemetry *t = p->engine->config.telemetry;
    for (size_t i = 0; i < count && !p->is_answered; i++) {
        rt_span span;
        uint64_t began = rt_now_ns();
        rt_span_start(t, &span, stages[i].name, RT_SPAN_INTERNAL, &p->span.context);
        bool ok = stages[i].take(p, err);
        if (!ok)
            rt_span_fail(&span, rt_str_of(err->text));
        rt_span_end(t, &span);
        if (p->place.is_held)
            rt_metric_observe(t, RT_METRIC_STAGE, (const char *[]){ stages[i].name },
                              (double)(rt_now_ns() - began) / 1e9);
        if (!ok)
            return false;
    }
    return true;
}

/* ---- admission, between the cache and the run ---- */

#define NESTED_PER_SLOT 2

void engine_enlist(passage *p)
{
    const rt_request *r = p->request;
    if (p->row)
        return;
    if (r->on_work)
        r->on_work(r->work_ctx);
    if (!p->id.ptr)
        p->id = r->id.len ? r->id : rt_id_new("exec", p->arena);
    if (!p->canceller) {
        rt_canceller_init(&p->own_canceller);
        p->canceller = &p->own_canceller;
    }
    p->row = engine_registry_add(p->engine->registry, p);
}

/* A run within a run waits for no slot, which the one it is part of may hold; so that runs cannot
 * multiply, there are only so many. */
static bool enter_nested(passage *p, rt_error *err)
{
    rt_engine *e = p->engine;
    if (atomic_fetch_add(&e->nested, 1) >= e->config.limits.max_running * NESTED_PER_SLOT) {
        atomic_fetch_sub(&e->nested, 1);
        return rt_fail(err, RT_UNAVAILABLE, "too many runs were started by other runs; try later");
    }
    p->is_nested = true;
    return true;
}

bool engine_admit(passage *p, rt_error *err)
{
    const rt_request *r = p->request;
    rt_engine *e = p->engine;
    rt_str group = r->caller.key_id.len ? r->caller.key_id : r->caller.organisation_id;
    uint64_t memory = p->session.session ? 0 : p->policy.memory_bytes; /* a session has its own */
    engine_enlist(p);
    if (p->session.session && !(p->has_turn = engine_session_turn(&p->session, p->canceller, err)))
        return false;
    if (!engine_tell(p, "queued", RT_STR("{}")))
        return rt_fail(err, RT_CANCELLED, "nobody listens any more");
    if (r->is_nested)
        return enter_nested(p, err);
    if (!engine_admission_enter(e->admission, group, memory, p->canceller, &p->place,
                                &p->queue_wait_us, err)) {
        rt_metric_add(e->config.telemetry, RT_METRIC_REJECTED,
                      (const char *[]){ rt_code_name(err->code) }, 1);
        return false;
    }
    if (p->is_reserved)
        rt_execution_started(e->config.store, p->id, rt_wall_ms(), NULL);
    return true;
}

bool engine_tell(passage *p, const char *event, rt_str json)
{
    const rt_request *r = p->request;
    return !r->on_event || r->on_event(r->event_ctx, event, json);
}

/* ---- one passage ---- */

bool engine_walk_in(passage *p, rt_engine *engine, const rt_request *request, rt_arena *arena,
                    rt_answer *answer, rt_job *job, rt_error *err)
{
    *p = (passage){ .engine = engine,
                    .request = request,
                    .arena = arena,
                    .answer = answer,
                    .job = job,
                    .is_watched = job != NULL,
                    .created_ms = rt_wall_ms(),
                    .began_ns = rt_now_ns(),
                    .canceller = request->canceller,
                    .pii_lock = PTHREAD_MUTEX_INITIALIZER,
                    .privacy = request->privacy };
    rt_span_start(engine->config.telemetry, &p->span, "execute code", RT_SPAN_INTERNAL,
                  request->trace.is_set ? &request->trace : NULL);
    return walk(p, way_in, RT_COUNT(way_in), err);
}

bool engine_walk_rest(passage *p, rt_error *err)
{
    bool ok = walk(p, way_through, RT_COUNT(way_through), err);
    if (p->has_outcome)
        engine_publish(p);
    if (!ok)
        engine_fail(p, err);
    return ok;
}

void engine_fail(passage *p, const rt_error *why)
{
    rt_span_fail(&p->span, rt_str_of(why->text));
    engine_record_failure(p, why);
}

void engine_passage_end(passage *p)
{
    rt_engine *e = p->engine;
    if (p->session.session && p->place.is_held)
        engine_session_ran(&p->session);
    if (p->has_turn)
        engine_session_pass(&p->session);
    engine_admission_leave(&p->place);
    if (p->is_nested)
        atomic_fetch_sub(&e->nested, 1);
    rt_session_let_go(&p->session);
    engine_registry_remove(e->registry, p->row);
    rt_privacy_vault_closep(&p->vault);
    rt_privacy_patterns_freep(&p->patterns);
    rt_span_end(e->config.telemetry, &p->span);
    if (p->canceller == &p->own_canceller)
        rt_canceller_done(&p->own_canceller);
}

bool rt_engine_execute(rt_engine *engine, const rt_request *request, rt_arena *arena,
                       rt_answer *out, rt_error *err)
{
    passage p;
    bool ok =
        engine_walk_in(&p, engine, request, arena, out, NULL, err) && engine_walk_rest(&p, err);
    engine_passage_end(&p);
    return ok;
}

/* ---- opening and closing ---- */

#define MB             (1ull << 20)
#define FORGET_LOOK_MS 10
#define CANCEL_MS      5000 /* how long what was cancelled may take to end */

static void fill_defaults(rt_engine *e)
{
    rt_engine_limits *l = &e->config.limits;
    rt_engine_rates *r = &e->config.rates;
    l->max_running = l->max_running ? l->max_running : 10;
    l->max_memory_bytes = l->max_memory_bytes ? l->max_memory_bytes : 3072 * MB;
    l->max_queued = l->max_queued ? l->max_queued : 1000;
    l->queue_wait_ms = l->queue_wait_ms ? l->queue_wait_ms : 30000;
    l->max_sessions = l->max_sessions ? l->max_sessions : 50;
    l->session_ttl_ms = l->session_ttl_ms ? l->session_ttl_ms : 15 * 60000;
    l->session_max_ttl_ms = l->session_max_ttl_ms ? l->session_max_ttl_ms : 24 * 3600000ull;
    l->output_budget_bytes = l->output_budget_bytes ? l->output_budget_bytes : 64 << 10;
    r->chars_per_token = r->chars_per_token > 0 ? r->chars_per_token : 4;
}

static bool choose_policies(rt_engine *e, rt_error *err)
{
    const rt_engine_config *c = &e->config;
    rt_str name = c->default_policy.len ? c->default_policy : RT_STR("default");
    const rt_policy *preset = rt_policy_preset(name);
    if (!preset)
        return rt_fail(err, RT_INVALID, "there is no policy '%.*s'", RT_FMT(name));
    e->base_policy = c->base_policy ? *c->base_policy : *preset;
    if (c->ceiling) {
        e->ceiling = *c->ceiling;
        return true;
    }
    e->ceiling = *rt_policy_preset(RT_STR("long"));
    e->ceiling.memory_bytes = 4096 * MB;
    e->ceiling.scratch_bytes = 4096 * MB;
    e->ceiling.output_bytes = 60 * MB;
    e->ceiling.code_bytes = 16 * MB;
    e->ceiling.processes = 1024;
    e->ceiling.files = RT_FILES_SANDBOXED; /* which grants no host path by itself */
    return true;
}

bool rt_engine_open(const rt_engine_config *config, rt_engine **out, rt_error *err)
{
    rt_engine *e RT_CLEANUP(rt_engine_closep) = calloc(1, sizeof(*e));
    uint64_t lost = 0;
    if (!e)
        rt_out_of_memory(sizeof(*e));
    e->config = *config;
    e->config.host = rt_arena_str(&e->arena, config->host);
    e->config.host_url = rt_arena_str(&e->arena, config->host_url);
    fill_defaults(e);
    const rt_engine_limits *l = &e->config.limits;
    e->admission =
        engine_admission_new(&(admission_limits){ .max_running = l->max_running,
                                                  .max_queued = l->max_queued,
                                                  .max_memory_bytes = l->max_memory_bytes,
                                                  .wait_ms = l->queue_wait_ms });
    e->registry = engine_registry_new();
    e->approvals = engine_approvals_new();
    pthread_mutex_init(&e->lock, NULL);
    if (!choose_policies(e, err) ||
        !rt_privacy_options_read(config->privacy_options, &e->scan, &e->patterns, err) ||
        !rt_execution_recover(config->store, e->config.host, rt_wall_ms(), &lost, err) ||
        !rt_session_recover(config->store, e->config.host, rt_wall_ms(), &lost, err) ||
        !rt_approval_recover(config->store, e->config.host, rt_wall_ms(), &lost, err))
        return rt_wrap(err, "open the engine");
    e->sessions = engine_sessions_new(e);
    engine_route_prime(e);
    *out = RT_TAKE(e);
    return true;
}

bool rt_engine_stop(rt_engine *e, uint64_t drain_ms)
{
    atomic_store(&e->is_stopping, true);
    engine_admission_stop(e->admission);
    if (engine_registry_wait_empty(e->registry, rt_now_ns() + drain_ms * 1000000))
        return true;
    engine_registry_cancel_all(e->registry, e->admission);
    return engine_registry_wait_empty(e->registry, rt_now_ns() + CANCEL_MS * 1000000ull);
}

void rt_engine_close(rt_engine *e)
{
    if (!e)
        return;
    engine_sessions_free(e->sessions);
    engine_approvals_free(e->approvals);
    engine_registry_free(e->registry);
    engine_admission_free(e->admission);
    rt_router_free(e->router);
    rt_privacy_patterns_freep(&e->patterns);
    pthread_mutex_destroy(&e->lock);
    rt_arena_done(&e->arena);
    free(e);
}

void rt_engine_closep(rt_engine **engine)
{
    rt_engine_close(*engine);
}

/* ---- forgetting ---- */

void engine_user_tag(rt_str organisation_id, rt_str user_id, char out[RT_SHA256_HEX])
{
    rt_str parts[] = { RT_STR("user"), organisation_id, user_id };
    engine_hash(parts, RT_COUNT(parts), out);
}

bool rt_engine_forget(rt_engine *e, rt_str organisation_id, rt_str user_id, rt_error *err)
{
    uint64_t until = rt_now_ns() + CANCEL_MS * 1000000ull;
    char tag[RT_SHA256_HEX];
    engine_sessions_end_user(e->sessions, organisation_id, user_id);
    while (engine_registry_cancel_user(e->registry, organisation_id, user_id) > 0) {
        if (rt_now_ns() > until)
            return rt_fail(err, RT_CONFLICT, "a run of this user does not end; try again");
        engine_admission_nudge(e->admission);
        nanosleep(&(struct timespec){ .tv_nsec = FORGET_LOOK_MS * 1000000 }, NULL);
    }
    engine_user_tag(organisation_id, user_id, tag);
    rt_cache_invalidate(e->config.cache, rt_str_of(tag));
    return true;
}

/* ---- looking ---- */

bool rt_engine_validate(rt_engine *engine, const rt_caller *caller, rt_str language, rt_str code,
                        rt_arena *arena, rt_verdict *out, rt_error *err)
{
    admission_place place RT_CLEANUP(engine_admission_leave) = { 0 };
    uint64_t waited, memory = RT_MIN(512 * MB, engine->config.limits.max_memory_bytes);
    if (atomic_load(&engine->is_stopping))
        return rt_fail(err, RT_UNAVAILABLE, "the server is stopping; try another node or later");
    if (!engine_admission_enter(engine->admission, caller->organisation_id, memory, NULL, &place,
                                &waited, err))
        return false;
    return engine->config.runtime->validate(engine->config.runtime, code, language, arena, out,
                                            err);
}

size_t rt_engine_languages(rt_engine *engine, rt_arena *arena, rt_language *out, size_t max)
{
    return engine->config.runtime->languages(engine->config.runtime, arena, out, max);
}

rt_engine_stats rt_engine_stats_get(rt_engine *e)
{
    admission_counts c = engine_admission_counts(e->admission);
    return (rt_engine_stats){ .running = c.running,
                              .queued = c.queued,
                              .max_running = e->config.limits.max_running,
                              .sessions = engine_sessions_count(e->sessions),
                              .total = c.total,
                              .rejected = c.rejected,
                              .memory_granted = c.memory_bytes,
                              .max_memory = e->config.limits.max_memory_bytes,
                              .is_stopping = atomic_load(&e->is_stopping) };
}

void rt_engine_stats_write(const rt_engine_stats *s, rt_json_writer *w)
{
    rt_jw_object(w);
    rt_jw_ku64(w, "activeExecutions", s->running);
    rt_jw_ku64(w, "queuedExecutions", s->queued);
    rt_jw_ku64(w, "maxConcurrent", s->max_running);
    rt_jw_ku64(w, "availableSlots", s->max_running - RT_MIN(s->running, s->max_running));
    rt_jw_ku64(w, "totalExecutions", s->total);
    rt_jw_ku64(w, "rejectedExecutions", s->rejected);
    rt_jw_kdouble(w, "currentAllocatedMemoryMb", (double)s->memory_granted / (double)MB);
    rt_jw_kdouble(w, "maxTotalMemoryMb", (double)s->max_memory / (double)MB);
    rt_jw_kbool(w, "memoryPressureDetected", s->memory_granted > s->max_memory / 5 * 4);
    rt_jw_ku64(w, "sessions", s->sessions);
    rt_jw_kbool(w, "stopping", s->is_stopping);
    rt_jw_end(w);
}

rt_router *rt_engine_router(rt_engine *engine)
{
    return engine->router;
}
