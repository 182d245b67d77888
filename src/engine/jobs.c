/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs.c - what is under way: a table to find it by, and threads for runs nobody waits for.
 *
 * Every passage that may wait or run has a row in the table, so that it can be cancelled by its id
 * and so that stopping can wait for all of them. A row's canceller is good while the row is in the
 * table: both are used under the table's lock.
 *
 * A job is a passage on a thread of its own, with its events in a log that any number of watchers
 * read, each at its own pace. The log is bounded by the policy's limit on output.
 */
#include "engine/engine_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* -- The table --------------------------------------------------------------------------------- */

struct running {
    running *next, **at;
    rt_str id, organisation, session, user;
    rt_canceller *canceller;
    rt_job *job; /* NULL: somebody waits for it */
};

struct registry {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    running *first;
    size_t count; /* rows, and threads of jobs, which outlive their rows a little */
};

registry *engine_registry_new(void)
{
    registry *r = calloc(1, sizeof(*r));
    pthread_condattr_t attr;
    if (!r)
        rt_out_of_memory(sizeof(*r));
    pthread_mutex_init(&r->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&r->changed, &attr);
    pthread_condattr_destroy(&attr);
    return r;
}

void engine_registry_free(registry *r)
{
    if (!r)
        return;
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

running *engine_registry_add(registry *r, const passage *p)
{
    running *row = calloc(1, sizeof(*row));
    if (!row)
        rt_out_of_memory(sizeof(*row));
    *row = (running){ .id = p->id,
                      .organisation = p->request->caller.organisation_id,
                      .session = p->request->session_id,
                      .user = engine_user(p->request),
                      .canceller = p->canceller,
                      .job = p->job };
    pthread_mutex_lock(&r->lock);
    row->next = r->first;
    row->at = &r->first;
    if (row->next)
        row->next->at = &row->next;
    r->first = row;
    r->count++;
    pthread_mutex_unlock(&r->lock);
    return row;
}

/* Under the lock. */
static void count_one_less(registry *r)
{
    if (--r->count == 0)
        pthread_cond_broadcast(&r->changed);
}

void engine_registry_remove(registry *r, running *row)
{
    if (!row)
        return;
    pthread_mutex_lock(&r->lock);
    *row->at = row->next;
    if (row->next)
        row->next->at = row->at;
    count_one_less(r);
    pthread_mutex_unlock(&r->lock);
    free(row);
}

static void count_thread(registry *r)
{
    pthread_mutex_lock(&r->lock);
    r->count++;
    pthread_mutex_unlock(&r->lock);
}

static void uncount_thread(registry *r)
{
    pthread_mutex_lock(&r->lock);
    count_one_less(r);
    pthread_mutex_unlock(&r->lock);
}

/* Under the lock. An empty organisation sees all. */
static running *find(registry *r, rt_str organisation, rt_str id)
{
    for (running *row = r->first; row; row = row->next)
        if (rt_str_eq(row->id, id) &&
            (organisation.len == 0 || rt_str_eq(organisation, row->organisation)))
            return row;
    return NULL;
}

void engine_registry_cancel_all(registry *r, admission *a)
{
    pthread_mutex_lock(&r->lock);
    for (running *row = r->first; row; row = row->next)
        rt_canceller_cancel(row->canceller);
    pthread_mutex_unlock(&r->lock);
    engine_admission_nudge(a);
}

void engine_registry_cancel_session(registry *r, rt_str session_id)
{
    pthread_mutex_lock(&r->lock);
    for (running *row = r->first; row; row = row->next)
        if (rt_str_eq(row->session, session_id))
            rt_canceller_cancel(row->canceller);
    pthread_mutex_unlock(&r->lock);
}

size_t engine_registry_cancel_user(registry *r, rt_str organisation_id, rt_str user_id)
{
    size_t count = 0;
    pthread_mutex_lock(&r->lock);
    for (running *row = r->first; row; row = row->next)
        if (rt_str_eq(row->user, user_id) && rt_str_eq(row->organisation, organisation_id)) {
            rt_canceller_cancel(row->canceller);
            count++;
        }
    pthread_mutex_unlock(&r->lock);
    return count;
}

bool engine_registry_wait_empty(registry *r, uint64_t deadline_ns)
{
    struct timespec until = { .tv_sec = (time_t)(deadline_ns / 1000000000),
                              .tv_nsec = (long)(deadline_ns % 1000000000) };
    int slept = 0;
    pthread_mutex_lock(&r->lock);
    while (r->count > 0 && slept != ETIMEDOUT)
        slept = pthread_cond_timedwait(&r->changed, &r->lock, &until);
    bool is_empty = r->count == 0;
    pthread_mutex_unlock(&r->lock);
    return is_empty;
}

bool rt_engine_cancel(rt_engine *engine, rt_str organisation_id, rt_str id, rt_error *err)
{
    registry *r = engine->registry;
    pthread_mutex_lock(&r->lock);
    running *row = find(r, organisation_id, id);
    if (row)
        rt_canceller_cancel(row->canceller);
    pthread_mutex_unlock(&r->lock);
    if (!row)
        return rt_fail(err, RT_NOT_FOUND, "%.*s is not running on this node",
                       (int)RT_MIN(id.len, (size_t)60), id.ptr);
    engine_admission_nudge(engine->admission);
    return true;
}

/* -- Jobs -------------------------------------------------------------------------------------- */

/* Runs nobody waits for hold copies of what they were sent: all together at most so much. */
#define JOB_BYTES_MAX (1024ull << 20)
#define JOB_COPIES    4 /* as sent, parsed, printed, and in the cell's memory file */
#define JOB_OVERHEAD  (64u << 10)

static void *allocate(size_t size)
{
    void *p = calloc(1, size);
    if (!p)
        rt_out_of_memory(size);
    return p;
}

typedef struct entry {
    const char *event; /* a literal */
    size_t len;
    char json[];
} entry;

struct rt_job {
    rt_engine *engine;
    rt_arena arena; /* of the passage: its thread's alone, once that has started */
    rt_request request;
    rt_answer answer;
    rt_canceller canceller;
    passage *passage;
    rt_str id;       /* its own memory: it outlives the passage */
    uint64_t charge; /* of the engine's budget for what waits */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned holders;
    bool is_over;
    entry **log;
    size_t count, room;
};

static void append(rt_job *job, const char *event, rt_str json, bool is_last)
{
    entry *e = malloc(sizeof(*e) + json.len);
    if (!e)
        rt_out_of_memory(sizeof(*e) + json.len);
    *e = (entry){ .event = event, .len = json.len };
    memcpy(e->json, json.ptr, json.len);
    pthread_mutex_lock(&job->lock);
    if (job->count == job->room) {
        job->room = job->room ? job->room * 2 : 16;
        job->log = realloc(job->log, job->room * sizeof(entry *));
        if (!job->log)
            rt_out_of_memory(job->room * sizeof(entry *));
    }
    job->log[job->count++] = e;
    job->is_over = is_last;
    pthread_cond_broadcast(&job->changed);
    pthread_mutex_unlock(&job->lock);
}

static bool log_event(void *ctx, const char *event, rt_str json)
{
    append(ctx, event, json, false);
    return true;
}

rt_str rt_job_id(const rt_job *job)
{
    return job->id;
}

void rt_job_cancel(rt_job *job)
{
    rt_canceller_cancel(&job->canceller);
    engine_admission_nudge(job->engine->admission);
}

static void free_job(rt_job *job)
{
    for (size_t i = 0; i < job->count; i++)
        free(job->log[i]);
    free(job->log);
    free((char *)job->id.ptr);
    atomic_fetch_sub(&job->engine->job_bytes, job->charge);
    rt_canceller_done(&job->canceller);
    pthread_cond_destroy(&job->changed);
    pthread_mutex_destroy(&job->lock);
    rt_arena_done(&job->arena);
    free(job);
}

void rt_job_release(rt_job *job)
{
    if (!job)
        return;
    pthread_mutex_lock(&job->lock);
    bool is_last = --job->holders == 0;
    pthread_mutex_unlock(&job->lock);
    if (is_last)
        free_job(job);
}

void rt_job_releasep(rt_job **job)
{
    rt_job_release(*job);
}

static rt_json copy_json(rt_json v, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json copy = { 0 };
    if (rt_json_is_absent(v))
        return copy;
    rt_json_print(v, &text);
    rt_json_parse(rt_buf_str(&text), arena, &copy, &(rt_error){ 0 });
    return copy;
}

static void copy_request(const rt_request *from, rt_job *job)
{
    rt_request *to = &job->request;
    *to = *from;
    rt_str *const texts[] = {
        &to->caller.organisation_id,
        &to->caller.workspace_id,
        &to->caller.user_id,
        &to->caller.key_id,
        &to->caller.actor_type,
        &to->caller.address,
        &to->surface,
        &to->language,
        &to->code,
        &to->name,
        &to->input,
        &to->stdin_data,
        &to->preset,
        &to->session_id,
        &to->conversation,
        &to->idempotency_key,
        &to->agent_type,
        &to->tool_id,
        &to->code_agent_id,
        &to->code_agent_version,
        &to->user_id,
        &to->id,
        &to->prelude.code,
        &to->prelude.name,
        &to->skill_name,
        &to->skill_version,
        &to->intent,
        &to->route.runtime,
    };
    for (size_t i = 0; i < RT_COUNT(texts); i++)
        if (texts[i]->ptr)
            *texts[i] = rt_arena_str(&job->arena, *texts[i]);
    to->policy = copy_json(from->policy, &job->arena);
    to->tools = copy_json(from->tools, &job->arena);
    to->privacy.options = copy_json(from->privacy.options, &job->arena);
    to->input_schema = copy_json(from->input_schema, &job->arena);
    to->output_schema = copy_json(from->output_schema, &job->arena);
    to->input_json = (rt_json){ 0 };
    to->on_event = log_event;
    to->event_ctx = job;
    to->canceller = &job->canceller;
}

static void tell_end(rt_job *job, bool ok, const rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    if (ok) {
        append(job, "result", job->answer.json, true);
        return;
    }
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_kobject(&w, "error");
    rt_jw_kstr(&w, "code", rt_str_of(rt_code_name(err->code)));
    rt_jw_kstr(&w, "message", rt_str_of(err->text));
    rt_jw_end(&w);
    rt_jw_end(&w);
    append(job, "error", rt_buf_str(&text), true);
}

/* What a job keeps for those who look at it later is its log alone. */
static void forget_request(rt_job *job)
{
    atomic_fetch_sub(&job->engine->job_bytes, job->charge);
    job->charge = 0;
    rt_arena_done(&job->arena);
}

static void *work(void *arg)
{
    rt_job *job = arg;
    registry *r = job->engine->registry;
    rt_error err = { 0 };
    bool ok = engine_walk_rest(job->passage, &err);
    tell_end(job, ok, &err);
    engine_passage_end(job->passage);
    forget_request(job);
    rt_job_release(job);
    uncount_thread(r);
    return NULL;
}

static bool start_thread(rt_job *job, rt_error *err)
{
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, ENGINE_STACK_BYTES);
    count_thread(job->engine->registry);
    int failed = pthread_create(&thread, &attr, work, job);
    pthread_attr_destroy(&attr);
    if (failed) {
        uncount_thread(job->engine->registry);
        return rt_fail(err, RT_UNAVAILABLE, "no thread for the run: %s", strerror(failed));
    }
    return true;
}

static bool enlist_and_start(rt_job *job, rt_error *err)
{
    engine_enlist(job->passage); /* whoever learns the id can cancel it */
    return start_thread(job, err);
}

/* The stages that can refuse come first, on the caller's own thread: what was accepted is on record
 * when this returns. */
bool rt_engine_start(rt_engine *engine, const rt_request *request, rt_job **out, rt_error *err)
{
    uint64_t charge = JOB_COPIES * (request->code.len + request->input.len) + JOB_OVERHEAD;
    pthread_condattr_t attr;
    if (atomic_fetch_add(&engine->job_bytes, charge) + charge > JOB_BYTES_MAX) {
        atomic_fetch_sub(&engine->job_bytes, charge);
        return rt_fail(err, RT_UNAVAILABLE,
                       "too much waits to be run already; wait for answers, or try again later");
    }
    rt_job *job = allocate(sizeof(*job));
    job->charge = charge;
    job->engine = engine;
    job->holders = 2; /* the caller and the thread */
    pthread_mutex_init(&job->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&job->changed, &attr);
    pthread_condattr_destroy(&attr);
    rt_canceller_init(&job->canceller);
    copy_request(request, job);
    job->passage = rt_arena_alloc(&job->arena, sizeof(*job->passage));
    bool ok =
        engine_walk_in(job->passage, engine, &job->request, &job->arena, &job->answer, job, err);
    rt_str id = job->passage->is_answered ? job->answer.id : job->passage->id;
    job->id = (rt_str){ memcpy(allocate(id.len + 1), id.ptr ? id.ptr : "", id.len), id.len };
    if (ok && job->passage->is_answered) {
        tell_end(job, true, NULL);
        engine_passage_end(job->passage);
        forget_request(job);
        job->holders = 1;
    } else if (!ok || !enlist_and_start(job, err)) {
        engine_fail(job->passage, err);
        engine_passage_end(job->passage);
        forget_request(job);
        job->holders--; /* the thread that there is none of */
        rt_job_release(job);
        return false;
    }
    *out = job;
    return true;
}

int rt_job_next(rt_job *job, size_t *position, uint64_t deadline_ns, rt_arena *arena,
                const char **event, rt_str *json)
{
    struct timespec until = { .tv_sec = (time_t)(deadline_ns / 1000000000),
                              .tv_nsec = (long)(deadline_ns % 1000000000) };
    int found = 0, slept = 0;
    pthread_mutex_lock(&job->lock);
    for (;;) {
        if (*position < job->count) {
            const entry *e = job->log[*position];
            *event = e->event;
            *json = rt_arena_str(arena, (rt_str){ e->json, e->len });
            ++*position;
            found = 1;
            break;
        }
        if (job->is_over) {
            found = -1;
            break;
        }
        if (slept == ETIMEDOUT)
            break;
        slept = pthread_cond_timedwait(&job->changed, &job->lock, &until);
    }
    pthread_mutex_unlock(&job->lock);
    return found;
}

rt_job *rt_engine_job(rt_engine *engine, rt_str organisation_id, rt_str id)
{
    registry *r = engine->registry;
    pthread_mutex_lock(&r->lock);
    running *row = find(r, organisation_id, id);
    rt_job *job = row ? row->job : NULL;
    if (job) {
        pthread_mutex_lock(&job->lock);
        job->holders++;
        pthread_mutex_unlock(&job->lock);
    }
    pthread_mutex_unlock(&r->lock);
    return job;
}
