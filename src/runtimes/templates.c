/* SPDX-License-Identifier: Apache-2.0 */
/*
 * templates.c - preludes: code that many runs begin with, loaded once where that pays.
 *
 * A prelude that is new is tried once, by itself, in a cell that has no input: it is compiled
 * there, and how long it takes to load is measured. From then on runs get its compiled form. Where
 * loading takes longer than copying a live interpreter, there is also a template: a session in
 * which the prelude was loaded. A run then gets a branch of it, which is thrown away like any other
 * cell.
 *
 * What must stay true: no prelude is ever loaded in a zygote, whose memory all cells share; and
 * what is kept of a prelude comes from a cell that has seen nobody's input, so that nothing of one
 * caller can reach another.
 *
 * Templates are few, each for one prelude under one policy; the one unused for longest makes room
 * for another, and those that nobody uses any more go. Everything here may fail: the run then loads
 * its prelude itself, as every first one does.
 */
#include "runtimes/runtimes_internal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRELUDES_MAX  128                   /* whose compiled form is kept */
#define TEMPLATES_MAX 4                     /* live interpreters */
#define IDLE_NS       (120ull * 1000000000) /* a template that nobody has used for so long goes */
#define SWEEP_NS      (10ull * 1000000000)
#define WORTH_MS      6.0 /* loading takes longer: worth a template */
#define TRIAL_MS      2000
#define COMPILED_MAX  (4u << 20)

/* What one prelude is known to be. */
typedef struct known {
    char key[RT_SHA256_HEX]; /* of its language, name and code; empty: the place is free */
    char *compiled;          /* NULL: it has no such form, or could not be loaded */
    double load_ms;
    uint64_t used_ns;
} known;

/* One template, from which copies are made. */
typedef struct master {
    char key[RT_SHA256_HEX]; /* of the prelude and the policy; empty: the place is free */
    rt_live *live;           /* NULL: it is being made */
    uint64_t used_ns;
    unsigned users;       /* who make or copy it; while there are any, it stays */
    pthread_mutex_t turn; /* one copy at a time */
} master;

struct templates {
    pthread_mutex_t lock;
    known known[PRELUDES_MAX];
    master masters[TEMPLATES_MAX];
    uint64_t swept_ns;
};

templates *runtimes_templates_new(void)
{
    templates *t = calloc(1, sizeof(*t));
    if (!t)
        rt_out_of_memory(sizeof(*t));
    pthread_mutex_init(&t->lock, NULL);
    for (size_t i = 0; i < TEMPLATES_MAX; i++)
        pthread_mutex_init(&t->masters[i].turn, NULL);
    return t;
}

void runtimes_templates_free(templates *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < TEMPLATES_MAX; i++) {
        rt_live_close(t->masters[i].live);
        pthread_mutex_destroy(&t->masters[i].turn);
    }
    for (size_t i = 0; i < PRELUDES_MAX; i++)
        free(t->known[i].compiled);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* ---- the prelude in the run's request ---- */

void runtimes_settle_prelude(rt_run *run, const guest_kind *kind, rt_arena *arena)
{
    if (run->prelude.code.len == 0 || kind->has_modules)
        return;
    run->code = rt_arena_printf(arena, "%.*s\n%.*s", RT_FMT(run->prelude.code), RT_FMT(run->code));
    run->name = run->prelude.name;
    run->prelude = (rt_prelude){ 0 };
}

void runtimes_write_prelude(rt_json_writer *w, const rt_prelude *prelude)
{
    rt_jw_kobject(w, "prelude");
    rt_jw_kstr(w, "name", prelude->name);
    if (prelude->compiled.len > 0)
        rt_jw_kstr(w, "compiled", prelude->compiled);
    else
        rt_jw_kstr(w, "code", prelude->code);
    rt_jw_end(w);
}

/* ---- trying a prelude ---- */

/* First compiled, then loaded: what the code does cannot change what it was compiled to. */
static const char python_trial[] =
    "import base64, marshal, time, types\n"
    "_code = compile(inputs['code'], inputs['name'], 'exec', dont_inherit=True)\n"
    "_text = base64.b64encode(marshal.dumps(_code)).decode()\n"
    "_module = types.ModuleType(inputs['name'].rpartition('.')[0])\n"
    "_began = time.perf_counter()\n"
    "if inputs['load']: exec(_code, _module.__dict__)\n"
    "{'compiled': _text, 'ms': (time.perf_counter() - _began) * 1000}\n";

static rt_str write_trial_input(const rt_prelude *prelude, bool is_loaded, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "name", prelude->name);
    rt_jw_kstr(&w, "code", prelude->code);
    rt_jw_kbool(&w, "load", is_loaded);
    rt_jw_end(&w);
    return rt_arena_str(arena, rt_buf_str(&text));
}

/* Code that asks for a zygote with heavy modules has them loaded already, there. */
static bool is_light(const rt_run *run, const guest_kind *kind)
{
    return rt_str_eq_c(runtimes_zygote_for(kind, run), kind->zygote);
}

static void try_prelude(rt_runtime *local, const rt_run *run, const guest_kind *kind,
                        rt_arena *arena, known *out)
{
    rt_policy policy = *run->policy;
    rt_outcome outcome;
    rt_json answer;
    policy.wall_ms = RT_MIN(policy.wall_ms, (uint64_t)TRIAL_MS);
    policy.cpu_ms = RT_MIN(policy.cpu_ms, (uint64_t)TRIAL_MS);
    rt_run trial = { .language = run->language,
                     .code = rt_str_of(python_trial),
                     .policy = &policy,
                     .input = write_trial_input(&run->prelude, is_light(run, kind), arena),
                     .has_input = true,
                     .canceller = run->canceller };
    if (!local->execute(local, &trial, arena, &outcome, &(rt_error){ 0 }) ||
        outcome.status != RT_STATUS_SUCCESS || !outcome.has_value ||
        !rt_json_parse(outcome.value, arena, &answer, NULL))
        return;
    rt_str compiled = rt_json_str(rt_json_get_c(answer, "compiled"));
    rt_json_double(rt_json_get_c(answer, "ms"), &out->load_ms);
    if (compiled.len > 0 && compiled.len <= COMPILED_MAX)
        out->compiled = strndup(compiled.ptr, compiled.len);
}

/* ---- what is known ---- */

static void key_of(const rt_run *run, rt_str policy, char out[RT_SHA256_HEX])
{
    const rt_str parts[] = { run->language, run->prelude.name, policy, run->prelude.code };
    rt_sha256_stream hash RT_CLEANUP(rt_sha256_done) = { 0 };
    uint8_t digest[RT_SHA256_SIZE];
    rt_sha256_init(&hash);
    for (size_t i = 0; i < RT_COUNT(parts); i++) {
        uint64_t len = parts[i].len;
        rt_sha256_add(&hash, (rt_str){ (const char *)&len, sizeof(len) });
        rt_sha256_add(&hash, parts[i]);
    }
    rt_sha256_end(&hash, digest);
    rt_hex(out, digest, sizeof(digest));
}

/* Under the lock: the entry of this key, or the one to give up for it. */
static known *find_known(templates *t, const char *key)
{
    known *oldest = &t->known[0];
    for (size_t i = 0; i < PRELUDES_MAX; i++) {
        if (strcmp(t->known[i].key, key) == 0)
            return &t->known[i];
        if (t->known[i].used_ns < oldest->used_ns)
            oldest = &t->known[i];
    }
    return oldest;
}

/* Its compiled form, and how long it takes to load; it is tried when nobody has. */
static double use_known(templates *t, rt_runtime *local, rt_run *run, const guest_kind *kind,
                        rt_arena *arena)
{
    known made = { .used_ns = rt_now_ns() };
    key_of(run, (rt_str){ 0 }, made.key);
    pthread_mutex_lock(&t->lock);
    bool is_known = strcmp(find_known(t, made.key)->key, made.key) == 0;
    pthread_mutex_unlock(&t->lock);
    if (!is_known)
        try_prelude(local, run, kind, arena, &made);
    pthread_mutex_lock(&t->lock);
    known *place = find_known(t, made.key);
    if (strcmp(place->key, made.key) != 0) {
        free(place->compiled);
        *place = made;
        made.compiled = NULL;
    }
    place->used_ns = rt_now_ns();
    double load_ms = place->load_ms;
    if (place->compiled)
        run->prelude.compiled = rt_arena_str(arena, rt_str_of(place->compiled));
    pthread_mutex_unlock(&t->lock);
    free(made.compiled); /* somebody was faster */
    return load_ms;
}

/* Its interpreter cannot be copied: no more templates of it. */
static void give_up(templates *t, const rt_run *run)
{
    char key[RT_SHA256_HEX];
    key_of(run, (rt_str){ 0 }, key);
    pthread_mutex_lock(&t->lock);
    known *place = find_known(t, key);
    if (strcmp(place->key, key) == 0)
        place->load_ms = 0;
    pthread_mutex_unlock(&t->lock);
}

/* ---- templates ---- */

/* Under the lock: the template of this key, or a place for one, or NULL. */
static master *find_master(templates *t, const char *key)
{
    master *place = NULL;
    for (size_t i = 0; i < TEMPLATES_MAX; i++) {
        master *one = &t->masters[i];
        if (strcmp(one->key, key) == 0)
            return one;
        if (one->users == 0 && (!place || one->used_ns < place->used_ns))
            place = one;
    }
    return place;
}

/* A session in which the prelude was loaded, and nothing else. */
static rt_live *make(rt_runtime *local, const rt_run *run, rt_arena *arena)
{
    rt_live *live RT_CLEANUP(rt_live_closep) = NULL;
    rt_live_spec spec = { .language = run->language, .policy = run->policy };
    rt_outcome outcome;
    if (!rt_live_open(local, &spec, &live, &(rt_error){ 0 }))
        return NULL;
    rt_run loading = { .language = run->language,
                       .code = RT_STR("None"),
                       .prelude = run->prelude,
                       .policy = run->policy,
                       .canceller = run->canceller,
                       .live = live };
    if (!local->execute(local, &loading, arena, &outcome, &(rt_error){ 0 }) ||
        outcome.status != RT_STATUS_SUCCESS)
        return NULL;
    return RT_TAKE(live);
}

/* Takes the template of this key, made if need be; leave() follows. NULL: there is none to have. */
static master *enter(templates *t, rt_runtime *local, const rt_run *run, const char *key,
                     rt_arena *arena)
{
    rt_live *old = NULL;
    bool is_new = false;
    pthread_mutex_lock(&t->lock);
    master *one = find_master(t, key);
    if (one && strcmp(one->key, key) == 0 && !one->live)
        one = NULL; /* somebody makes it right now: we do not wait for that */
    if (one) {
        is_new = strcmp(one->key, key) != 0;
        if (is_new) {
            old = RT_TAKE(one->live);
            memcpy(one->key, key, sizeof(one->key));
        }
        one->users++;
        one->used_ns = rt_now_ns();
    }
    pthread_mutex_unlock(&t->lock);
    rt_live_close(old);
    if (!is_new)
        return one;
    rt_live *made = make(local, run, arena);
    pthread_mutex_lock(&t->lock);
    one->live = made;
    pthread_mutex_unlock(&t->lock);
    return one;
}

static void leave(templates *t, master *one, bool is_broken)
{
    rt_live *old = NULL;
    pthread_mutex_lock(&t->lock);
    if (--one->users == 0 && (is_broken || !one->live)) {
        old = RT_TAKE(one->live);
        one->key[0] = '\0';
        one->used_ns = 0;
    }
    pthread_mutex_unlock(&t->lock);
    rt_live_close(old);
}

static rt_live *copy_template(templates *t, rt_runtime *local, const rt_run *run, rt_arena *arena)
{
    char key[RT_SHA256_HEX];
    rt_live *copy = NULL;
    rt_error err = { 0 };
    key_of(run, rt_policy_fingerprint(run->policy, arena), key);
    master *one = enter(t, local, run, key, arena);
    if (!one)
        return NULL;
    pthread_mutex_lock(&one->turn);
    bool ok = one->live && rt_live_branch(one->live, &copy, &err);
    pthread_mutex_unlock(&one->turn);
    bool is_broken = !ok && err.code != RT_TOO_MANY;
    if (is_broken)
        give_up(t, run);
    leave(t, one, is_broken);
    return copy;
}

/* Now and then, those that nobody has used for a while go. */
static void sweep(templates *t)
{
    rt_live *old[TEMPLATES_MAX];
    size_t count = 0;
    uint64_t now = rt_now_ns();
    pthread_mutex_lock(&t->lock);
    bool is_due = now - t->swept_ns > SWEEP_NS;
    t->swept_ns = is_due ? now : t->swept_ns;
    for (size_t i = 0; i < TEMPLATES_MAX && is_due; i++) {
        master *one = &t->masters[i];
        if (one->users > 0 || !one->live || now - one->used_ns < IDLE_NS)
            continue;
        old[count++] = RT_TAKE(one->live);
        one->key[0] = '\0';
    }
    pthread_mutex_unlock(&t->lock);
    while (count > 0)
        rt_live_close(old[--count]);
}

rt_live *runtimes_use_prelude(templates *t, rt_runtime *local, rt_run *run, const guest_kind *kind,
                              rt_arena *arena)
{
    bool is_python = strcmp(kind->language, "python") == 0;
    if (!t)
        return NULL;
    sweep(t);
    if (run->prelude.code.len == 0 || !is_python || run->live)
        return NULL;
    double load_ms = use_known(t, local, run, kind, arena);
    if (load_ms < WORTH_MS || !is_light(run, kind))
        return NULL;
    rt_live *copy = copy_template(t, local, run, arena);
    if (copy)
        run->prelude = (rt_prelude){ 0 }; /* it is there already */
    return copy;
}
