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
#define WORTH_MS      6.0                   /* loading takes longer: worth a template */
#define TRIAL_MS      2000
#define COMPILED_MAX  (4u << 20)

/* What one prelude is known to be. */
typedef struct known {
    char key[RT_SHA256_HEX]; /* of its language, name and code; empty: the place is free */
    char *compiled;          /* NULL: it has no such form, or could not be loaded */
    double load_ms;
    uint64_t used_ns;
} known;

typedef struct template
{
    char key[RT_SHA256_HEX]; /* of the prelude and the policy; empty: the place is free */
    rt_live *live;
    uint64_t used_ns;
    bool is_busy; /* being made or copied: nobody may close it */
}
template;

struct templates {
    pthread_mutex_t lock;
    known known[PRELUDES_MAX];
    template live[TEMPLATES_MAX];
};

templates *runtimes_templates_new(void)
{
    templates *t = calloc(1, sizeof(*t));
    if (!t)
        rt_out_of_memory(sizeof(*t));
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

void runtimes_templates_free(templates *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < TEMPLATES_MAX; i++)
        rt_live_close(t->live[i].live);
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
    "exec(_code, _module.__dict__)\n"
    "{'compiled': _text, 'ms': (time.perf_counter() - _began) * 1000}\n";

static rt_str write_trial_input(const rt_prelude *prelude, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "name", prelude->name);
    rt_jw_kstr(&w, "code", prelude->code);
    rt_jw_end(&w);
    return rt_arena_str(arena, rt_buf_str(&text));
}

static void try_prelude(rt_runtime *local, const rt_run *run, rt_arena *arena, known *out)
{
    rt_policy policy = *run->policy;
    rt_outcome outcome;
    rt_json answer;
    policy.wall_ms = RT_MIN(policy.wall_ms, (uint64_t)TRIAL_MS);
    policy.cpu_ms = RT_MIN(policy.cpu_ms, (uint64_t)TRIAL_MS);
    rt_run trial = { .language = run->language,
                     .code = rt_str_of(python_trial),
                     .policy = &policy,
                     .input = write_trial_input(&run->prelude, arena),
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
static double use_known(templates *t, rt_runtime *local, rt_run *run, rt_arena *arena)
{
    known made = { .used_ns = rt_now_ns() };
    key_of(run, (rt_str){ 0 }, made.key);
    pthread_mutex_lock(&t->lock);
    bool is_known = strcmp(find_known(t, made.key)->key, made.key) == 0;
    pthread_mutex_unlock(&t->lock);
    if (!is_known)
        try_prelude(local, run, arena, &made);
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

void runtimes_use_prelude(templates *t, rt_runtime *local, rt_run *run, const guest_kind *kind,
                          rt_arena *arena)
{
    if (run->prelude.code.len > 0 && strcmp(kind->language, "python") == 0)
        use_known(t, local, run, arena);
}
