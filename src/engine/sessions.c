/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sessions.c - who has which live cell, until when.
 *
 * A session is found by its id in a table of this node; the store has a row of it so that other
 * nodes can say where it is. Whoever uses one holds it; an ended session leaves the table at once,
 * and the last holder closes the cell. A thread ends those whose time is over.
 *
 * One lock guards the table and every session's fields; the cells are used outside of it.
 */
#include "engine/engine_internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SWEEP_MS    500
#define MIN_TTL_MS  1000
#define TURN_MS     50 /* between two looks at a canceller */
#define WAITING_MAX 16 /* runs that wait for their turn in one session */

typedef struct session {
    struct session *next;
    rt_arena arena; /* of the row's texts */
    rt_session_row row;
    rt_live *live;
    rt_policy policy;
    rt_privacy_vault *vault; /* what the tokens of its runs stand for; a branch shares it */
    unsigned holders;
    bool is_ended, is_changed;
    bool is_busy;     /* a run has its turn */
    unsigned waiting; /* runs that wait for theirs */
} session;

struct sessions {
    rt_engine *engine;
    pthread_mutex_t lock;
    pthread_cond_t changed, turn;
    pthread_t sweeper;
    session *first;
    unsigned count;
    bool is_closing;
};

/* ---- the end of a session ---- */

static void free_session(session *s)
{
    rt_live_close(s->live);
    rt_privacy_vault_closep(&s->vault);
    rt_arena_done(&s->arena);
    free(s);
}

/* Under the lock: takes it off the table. The caller frees it when nobody holds it. */
static void end(sessions *all, session *s, const char *status)
{
    for (session **at = &all->first; *at; at = &(*at)->next)
        if (*at == s) {
            *at = s->next;
            break;
        }
    all->count--;
    s->is_ended = true;
    s->row.status = rt_str_of(status);
    s->row.ended_ms = rt_wall_ms();
}

/* Ends it and, if nobody holds it, takes it down; a run that is under way is ended first. */
static void end_and_close(sessions *all, session *s, const char *status)
{
    end(all, s, status);
    bool is_free = s->holders == 0;
    s->holders++; /* while we write */
    rt_session_row row = s->row;
    pthread_mutex_unlock(&all->lock);
    if (!is_free)
        engine_registry_cancel_session(all->engine->registry, row.id);
    rt_session_save(all->engine->config.store, &row, NULL);
    pthread_mutex_lock(&all->lock);
    if (--s->holders == 0) {
        pthread_mutex_unlock(&all->lock);
        free_session(s);
        pthread_mutex_lock(&all->lock);
    }
}

static session *find_expired(sessions *all, uint64_t now_ms)
{
    for (session *s = all->first; s; s = s->next)
        if (s->row.expires_ms <= now_ms)
            return s;
    return NULL;
}

static session *find_changed(sessions *all)
{
    for (session *s = all->first; s; s = s->next)
        if (s->is_changed)
            return s;
    return NULL;
}

static void save_changed(sessions *all)
{
    session *s;
    while ((s = find_changed(all)) != NULL) {
        s->is_changed = false;
        rt_session_row row = s->row;
        s->holders++;
        pthread_mutex_unlock(&all->lock);
        rt_session_save(all->engine->config.store, &row, NULL);
        pthread_mutex_lock(&all->lock);
        if (--s->holders == 0 && s->is_ended) {
            pthread_mutex_unlock(&all->lock);
            free_session(s);
            pthread_mutex_lock(&all->lock);
        }
    }
}

static void *sweep(void *arg)
{
    sessions *all = arg;
    session *s;
    pthread_mutex_lock(&all->lock);
    while (!all->is_closing) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += SWEEP_MS * 1000000l;
        if (until.tv_nsec >= 1000000000) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000;
        }
        pthread_cond_timedwait(&all->changed, &all->lock, &until);
        while ((s = find_expired(all, rt_wall_ms())))
            end_and_close(all, s, "EXPIRED");
        save_changed(all);
        rt_metric_set(all->engine->config.telemetry, RT_METRIC_SESSIONS, NULL, all->count);
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

/* ---- the table ---- */

sessions *engine_sessions_new(rt_engine *engine)
{
    sessions *all = calloc(1, sizeof(*all));
    pthread_condattr_t attr;
    if (!all)
        rt_out_of_memory(sizeof(*all));
    all->engine = engine;
    pthread_mutex_init(&all->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&all->changed, &attr);
    pthread_cond_init(&all->turn, &attr);
    pthread_condattr_destroy(&attr);
    if (pthread_create(&all->sweeper, NULL, sweep, all) != 0)
        rt_out_of_memory(ENGINE_STACK_BYTES);
    return all;
}

void engine_sessions_free(sessions *all)
{
    if (!all)
        return;
    pthread_mutex_lock(&all->lock);
    all->is_closing = true;
    pthread_cond_signal(&all->changed);
    pthread_mutex_unlock(&all->lock);
    pthread_join(all->sweeper, NULL);
    pthread_mutex_lock(&all->lock);
    while (all->first)
        end_and_close(all, all->first, "ENDED");
    pthread_mutex_unlock(&all->lock);
    pthread_cond_destroy(&all->turn);
    pthread_cond_destroy(&all->changed);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

unsigned engine_sessions_count(sessions *all)
{
    pthread_mutex_lock(&all->lock);
    unsigned count = all->count;
    pthread_mutex_unlock(&all->lock);
    return count;
}

static bool is_owner(const rt_caller *c, const rt_session_row *row)
{
    return c->role >= RT_ROLE_OWNER || rt_str_eq(c->organisation_id, row->organisation_id);
}

/* Under the lock. */
static session *find(sessions *all, const rt_caller *caller, rt_str id)
{
    for (session *s = all->first; s; s = s->next)
        if (rt_str_eq(s->row.id, id) && is_owner(caller, &s->row))
            return s;
    return NULL;
}

static void copy_row(const rt_session_row *from, rt_arena *arena, rt_session_row *to)
{
    *to = *from;
    rt_str *const texts[] = {
        &to->id,   &to->organisation_id, &to->workspace_id, &to->user_id, &to->key_id,
        &to->host, &to->host_url,        &to->language,     &to->policy,  &to->parent_id,
        &to->name, &to->status
    };
    for (size_t i = 0; i < RT_COUNT(texts); i++)
        if (texts[i]->ptr)
            *texts[i] = rt_arena_str(arena, *texts[i]);
}

/* ---- creating and branching ---- */

/* Takes a place; publish() fills it, leave_room() gives it back. */
static bool take_room(sessions *all, rt_error *err)
{
    const rt_engine *e = all->engine;
    if (atomic_load(&e->is_stopping))
        return rt_fail(err, RT_UNAVAILABLE, "the server is stopping; try another node or later");
    pthread_mutex_lock(&all->lock);
    unsigned count = all->count;
    bool has_room = count < e->config.limits.max_sessions;
    all->count += has_room;
    pthread_mutex_unlock(&all->lock);
    if (!has_room)
        return rt_fail(err, RT_TOO_MANY,
                       "there are %u sessions, as many as this server keeps (sessions.max); end "
                       "one first",
                       count);
    return true;
}

static void leave_room(sessions *all)
{
    pthread_mutex_lock(&all->lock);
    all->count--;
    pthread_mutex_unlock(&all->lock);
}

static bool choose_ttl(const rt_engine *e, uint64_t asked_ms, uint64_t *ttl_ms, rt_error *err)
{
    const rt_engine_limits *l = &e->config.limits;
    *ttl_ms = asked_ms ? asked_ms : l->session_ttl_ms;
    if (*ttl_ms < MIN_TTL_MS || *ttl_ms > l->session_max_ttl_ms)
        return rt_fail(err, RT_INVALID,
                       "a session's time to live must be from 1 to %llu seconds (sessions.max_ttl)",
                       (unsigned long long)(l->session_max_ttl_ms / 1000));
    return true;
}

static session *new_session(rt_engine *e, const rt_caller *c, rt_str language, rt_str name,
                            rt_str parent, uint64_t ttl_ms)
{
    session *s = calloc(1, sizeof(*s));
    if (!s)
        rt_out_of_memory(sizeof(*s));
    uint64_t now = rt_wall_ms();
    rt_session_row row = { .id = rt_id_new("session", &s->arena),
                           .organisation_id = c->organisation_id,
                           .workspace_id = c->workspace_id,
                           .user_id = c->user_id,
                           .key_id = c->key_id,
                           .host = e->config.host,
                           .host_url = e->config.host_url,
                           .language = language,
                           .parent_id = parent,
                           .name = name,
                           .status = RT_STR("ACTIVE"),
                           .created_ms = now,
                           .expires_ms = now + ttl_ms,
                           .last_used_ms = now };
    copy_row(&row, &s->arena, &s->row);
    return s;
}

/* Puts it on the table and on record; on failure it is taken down again. */
static bool publish(sessions *all, session *s, rt_arena *arena, rt_session_row *out, rt_error *err)
{
    if (!rt_session_save(all->engine->config.store, &s->row, err)) {
        free_session(s);
        leave_room(all);
        return rt_wrap(err, "record the session");
    }
    copy_row(&s->row, arena, out);
    pthread_mutex_lock(&all->lock);
    s->next = all->first;
    all->first = s;
    pthread_mutex_unlock(&all->lock);
    return true;
}

static rt_str show_policy(const rt_policy *policy, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &text);
    rt_policy_write(policy, &w);
    return rt_arena_str(arena, rt_buf_str(&text));
}

bool rt_session_create(rt_engine *e, const rt_session_request *r, rt_arena *arena,
                       rt_session_row *out, rt_error *err)
{
    const rt_language *language =
        rt_language_find(r->language.len ? r->language : RT_STR("python"));
    uint64_t ttl_ms;
    if (!language)
        return rt_language_unknown(r->language, err);
    if (r->caller.role < RT_ROLE_MEMBER)
        return rt_fail(err, RT_DENIED, "You do not have permission to create sessions");
    if (e->config.is_off)
        return rt_fail(err, RT_UNAVAILABLE,
                       "code execution is switched off here (execution.enabled)");
    if (!choose_ttl(e, r->ttl_ms, &ttl_ms, err) || !take_room(e->sessions, err))
        return false;
    session *s =
        new_session(e, &r->caller, rt_str_of(language->name), r->name, (rt_str){ 0 }, ttl_ms);
    s->policy = e->base_policy;
    rt_live_spec spec = { .language = s->row.language, .policy = &s->policy };
    if ((!rt_json_is_absent(r->policy) && !rt_policy_read(r->policy, &s->arena, &s->policy, err)) ||
        !rt_policy_within(&s->policy, &e->ceiling, err) ||
        !rt_live_open(e->config.runtime, &spec, &s->live, err)) {
        free_session(s);
        leave_room(e->sessions);
        return rt_wrap(err, "open a session");
    }
    s->row.policy = show_policy(&s->policy, &s->arena);
    return publish(e->sessions, s, arena, out, err);
}

/* The lists of a copied policy, so that it can outlive the one it was copied from. */
static void copy_lists(rt_policy *p, rt_arena *arena)
{
    rt_str *reads = rt_arena_alloc(arena, sizeof(*reads) * (p->read_path_count + 1));
    rt_str *imports = rt_arena_alloc(arena, sizeof(*imports) * (p->import_count + 1));
    rt_pair *env = rt_arena_alloc(arena, sizeof(*env) * (p->env_count + 1));
    for (size_t i = 0; i < p->read_path_count; i++)
        reads[i] = rt_arena_str(arena, p->read_paths[i]);
    for (size_t i = 0; i < p->import_count; i++)
        imports[i] = rt_arena_str(arena, p->imports[i]);
    for (size_t i = 0; i < p->env_count; i++)
        env[i] =
            (rt_pair){ rt_arena_str(arena, p->env[i].name), rt_arena_str(arena, p->env[i].value) };
    p->read_paths = reads;
    p->imports = imports;
    p->env = env;
}

bool rt_session_branch(rt_engine *e, const rt_caller *caller, rt_str id, rt_str name,
                       uint64_t asked_ms, rt_arena *arena, rt_session_row *out, rt_error *err)
{
    rt_session_hold source RT_CLEANUP(rt_session_let_go) = { 0 };
    uint64_t ttl_ms;
    if (!choose_ttl(e, asked_ms, &ttl_ms, err) || !rt_session_take(e, caller, id, &source, err) ||
        !take_room(e->sessions, err))
        return false;
    session *from = source.session;
    session *s = new_session(e, caller, from->row.language, name, from->row.id, ttl_ms);
    s->row.policy = rt_arena_str(&s->arena, from->row.policy);
    s->policy = from->policy;
    copy_lists(&s->policy, &s->arena);
    if (!engine_session_vault(&source, &s->vault, err) ||
        !rt_live_branch(source.live, &s->live, err)) {
        free_session(s);
        leave_room(e->sessions);
        return false; /* what it says begins with the branch already */
    }
    rt_metric_add(e->config.telemetry, RT_METRIC_BRANCHES, NULL, 1);
    return publish(e->sessions, s, arena, out, err);
}

/* ---- using ---- */

static bool fail_elsewhere(rt_engine *e, const rt_caller *caller, rt_str id, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_session_row row;
    rt_str organisation = caller->role >= RT_ROLE_OWNER ? RT_STR("") : caller->organisation_id;
    if (!rt_session_find(e->config.store, organisation, id, &arena, &row, err))
        return false;
    if (!rt_str_eq_c(row.status, "ACTIVE"))
        return rt_fail(err, RT_NOT_FOUND, "the session has ended (%.*s)", RT_FMT(row.status));
    return rt_fail(err, RT_UNAVAILABLE, "the session lives on node %.*s (%.*s); ask there",
                   RT_FMT(row.host), RT_FMT(row.host_url));
}

bool rt_session_take(rt_engine *e, const rt_caller *caller, rt_str id, rt_session_hold *out,
                     rt_error *err)
{
    sessions *all = e->sessions;
    pthread_mutex_lock(&all->lock);
    session *s = find(all, caller, id);
    if (s)
        s->holders++;
    pthread_mutex_unlock(&all->lock);
    if (!s)
        return fail_elsewhere(e, caller, id, err);
    *out = (rt_session_hold){ e, s, s->live };
    return true;
}

bool engine_session_vault(rt_session_hold *hold, rt_privacy_vault **out, rt_error *err)
{
    session *s = hold->session;
    sessions *all = hold->engine->sessions;
    pthread_mutex_lock(&all->lock);
    bool ok = s->vault || rt_privacy_vault_open(&s->vault, err);
    if (ok)
        *out = rt_privacy_vault_share(s->vault);
    pthread_mutex_unlock(&all->lock);
    return ok;
}

void rt_session_let_go(rt_session_hold *hold)
{
    session *s = hold->session;
    if (!s)
        return;
    sessions *all = hold->engine->sessions;
    pthread_mutex_lock(&all->lock);
    bool is_mine = --s->holders == 0 && s->is_ended;
    pthread_mutex_unlock(&all->lock);
    if (is_mine)
        free_session(s);
    *hold = (rt_session_hold){ 0 };
}

/* Under the lock: may this one still wait? */
static bool may_wait(const session *s, rt_canceller *canceller, uint64_t until, rt_error *err)
{
    if (s->is_ended)
        return rt_fail(err, RT_NOT_FOUND, "the session has ended (%.*s)", RT_FMT(s->row.status));
    if (canceller && rt_canceller_is_cancelled(canceller))
        return rt_fail(err, RT_CANCELLED, "cancelled while it waited for its turn");
    if (rt_now_ns() >= until)
        return rt_fail(err, RT_UNAVAILABLE, "the session was busy all the time; try again later");
    return true;
}

bool engine_session_turn(rt_session_hold *hold, rt_canceller *canceller, rt_error *err)
{
    session *s = hold->session;
    sessions *all = hold->engine->sessions;
    uint64_t until = rt_now_ns() + all->engine->config.limits.queue_wait_ms * 1000000;
    bool ok = true;
    pthread_mutex_lock(&all->lock);
    if (s->is_busy && s->waiting >= WAITING_MAX)
        ok = rt_fail(err, RT_TOO_MANY, "%u runs wait for their turn in this session already",
                     s->waiting);
    s->waiting++;
    while (ok && (s->is_busy || s->is_ended) && (ok = may_wait(s, canceller, until, err))) {
        uint64_t look = rt_now_ns() + TURN_MS * 1000000ull;
        struct timespec wake = { .tv_sec = (time_t)(look / 1000000000),
                                 .tv_nsec = (long)(look % 1000000000) };
        pthread_cond_timedwait(&all->turn, &all->lock, &wake);
    }
    s->waiting--;
    if (ok)
        s->is_busy = true;
    pthread_mutex_unlock(&all->lock);
    return ok;
}

void engine_session_pass(rt_session_hold *hold)
{
    sessions *all = hold->engine->sessions;
    pthread_mutex_lock(&all->lock);
    hold->session->is_busy = false;
    pthread_cond_broadcast(&all->turn);
    pthread_mutex_unlock(&all->lock);
}

/* Under the lock. */
static session *find_of_user(sessions *all, rt_str organisation_id, rt_str user_id)
{
    for (session *s = all->first; s; s = s->next)
        if (rt_str_eq(s->row.user_id, user_id) &&
            rt_str_eq(s->row.organisation_id, organisation_id))
            return s;
    return NULL;
}

void engine_sessions_end_user(sessions *all, rt_str organisation_id, rt_str user_id)
{
    session *s;
    pthread_mutex_lock(&all->lock);
    while ((s = find_of_user(all, organisation_id, user_id)))
        end_and_close(all, s, "ENDED");
    pthread_mutex_unlock(&all->lock);
}

const rt_policy *engine_session_policy(const rt_session_hold *hold, rt_str *language)
{
    *language = hold->session->row.language;
    return &hold->session->policy;
}

void engine_session_ran(rt_session_hold *hold)
{
    session *s = hold->session;
    sessions *all = hold->engine->sessions;
    bool is_alive = rt_live_is_alive(s->live);
    pthread_mutex_lock(&all->lock);
    s->row.executions++;
    s->row.last_used_ms = rt_wall_ms();
    s->is_changed = true;
    if (!is_alive && !s->is_ended)
        end_and_close(all, s, "LOST"); /* we hold it still, so it is not freed here */
    pthread_mutex_unlock(&all->lock);
}

bool rt_session_get(rt_engine *e, const rt_caller *caller, rt_str id, rt_arena *arena,
                    rt_session_row *out, rt_error *err)
{
    sessions *all = e->sessions;
    rt_str organisation = caller->role >= RT_ROLE_OWNER ? RT_STR("") : caller->organisation_id;
    pthread_mutex_lock(&all->lock);
    session *s = find(all, caller, id);
    if (s)
        copy_row(&s->row, arena, out);
    pthread_mutex_unlock(&all->lock);
    return s || rt_session_find(e->config.store, organisation, id, arena, out, err);
}

bool rt_session_list(rt_engine *e, const rt_caller *caller, rt_str status, unsigned limit,
                     rt_arena *arena, rt_session_row **rows, size_t *count, rt_error *err)
{
    rt_str organisation = caller->role >= RT_ROLE_OWNER ? RT_STR("") : caller->organisation_id;
    pthread_mutex_lock(&e->sessions->lock);
    save_changed(e->sessions);
    pthread_mutex_unlock(&e->sessions->lock);
    return rt_session_rows(e->config.store, organisation, status, limit, arena, rows, count, err);
}

bool rt_session_extend(rt_engine *e, const rt_caller *caller, rt_str id, uint64_t asked_ms,
                       rt_arena *arena, rt_session_row *out, rt_error *err)
{
    rt_session_hold hold RT_CLEANUP(rt_session_let_go) = { 0 };
    sessions *all = e->sessions;
    uint64_t ttl_ms;
    if (!choose_ttl(e, asked_ms, &ttl_ms, err) || !rt_session_take(e, caller, id, &hold, err))
        return false;
    pthread_mutex_lock(&all->lock);
    hold.session->row.expires_ms = rt_wall_ms() + ttl_ms;
    copy_row(&hold.session->row, arena, out);
    pthread_mutex_unlock(&all->lock);
    return rt_session_save(e->config.store, out, err) || rt_wrap(err, "record the session");
}

bool rt_session_end(rt_engine *e, const rt_caller *caller, rt_str id, rt_error *err)
{
    sessions *all = e->sessions;
    pthread_mutex_lock(&all->lock);
    session *s = find(all, caller, id);
    if (s)
        end_and_close(all, s, "ENDED");
    pthread_mutex_unlock(&all->lock);
    return s || fail_elsewhere(e, caller, id, err);
}
