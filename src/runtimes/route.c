/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route.c - see route.h.
 *
 * One row per name. Some are what the originals called a runtime that is ours (vm2, subprocess);
 * others are services that a build or a configuration may add. The rules are a short list; each
 * says what it wants, and whether that is there is asked afterwards, in one place.
 */
#include "runtimes/route.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LEARNED_MAX                                                                                \
    4096 /* codes whose time is remembered; a newer one takes an older one's place */

typedef enum name_kind {
    OURS,     /* the local runtime */
    OUR_WASM, /* the local runtime, for modules only */
    SERVICE,  /* there when it was added */
} name_kind;

static const struct {
    const char *name;
    name_kind kind;
    const char *missing;
} names[] = {
    { "local", OURS, NULL },
    { "subprocess", OURS, NULL },
    { "vm2", OURS, NULL },
    { "wasmedge", OUR_WASM, "wasmedge runs WebAssembly modules only; give the code as one" },
    { "e2b", SERVICE, "e2b is not configured" },
    { "bacalhau", SERVICE, "bacalhau is not configured" },
    { "lambda", SERVICE, "lambda is not configured" },
    { "bedrock", SERVICE, "bedrock does not offer code execution here" },
    { "container", SERVICE, "no container engine is configured" },
    { "placeholder", SERVICE, "the placeholder is not configured" },
};

#define NAMES RT_COUNT(names)

typedef struct counts {
    uint64_t runs, successes, total_us, last_ms;
} counts;

struct rt_router {
    rt_runtime *local;
    rt_runtime *services[NAMES]; /* by the row of their name */
    pthread_mutex_t lock;        /* of what follows */
    counts counts[NAMES];
    struct {
        uint64_t code;
        uint64_t us;
    } learned[LEARNED_MAX];
};

rt_router *rt_router_new(rt_runtime *local)
{
    rt_router *r = calloc(1, sizeof(*r));
    if (!r)
        rt_out_of_memory(sizeof(*r));
    r->local = local;
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

void rt_router_free(rt_router *r)
{
    if (!r)
        return;
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static size_t row_of(rt_str name)
{
    size_t i = 0;
    while (i < NAMES && !rt_str_eq_c(name, names[i].name))
        i++;
    return i;
}

bool rt_router_knows(rt_str name)
{
    return name.len == 0 || rt_str_eq_c(name, "auto") || row_of(name) < NAMES;
}

bool rt_router_unknown(rt_str name, rt_error *err)
{
    return rt_fail(err, RT_INVALID,
                   "unknown runtime '%.*s'; use auto, local, subprocess, vm2, wasmedge, e2b, "
                   "bacalhau, lambda, bedrock, container or placeholder",
                   (int)RT_MIN(name.len, (size_t)40), name.ptr);
}

bool rt_router_add(rt_router *r, const char *name, rt_runtime *runtime, rt_error *err)
{
    size_t row = row_of(rt_str_of(name));
    if (row == NAMES || names[row].kind != SERVICE)
        return rt_fail(err, RT_INVALID, "'%.40s' is no name of a runtime that can be added", name);
    r->services[row] = runtime;
    return true;
}

/* ---- deciding ---- */

static size_t slot_of(rt_str code_hash, uint64_t *code)
{
    *code = 0;
    for (size_t i = 0; i < code_hash.len && i < 16; i++)
        *code = *code * 31 + (unsigned char)code_hash.ptr[i];
    return *code % LEARNED_MAX;
}

static uint64_t recall(rt_router *r, rt_str code_hash)
{
    uint64_t code, us = 0;
    size_t slot = slot_of(code_hash, &code);
    if (code_hash.len == 0)
        return 0;
    pthread_mutex_lock(&r->lock);
    if (r->learned[slot].code == code)
        us = r->learned[slot].us;
    pthread_mutex_unlock(&r->lock);
    return us;
}

static bool is_there(const rt_router *r, size_t row, rt_str language)
{
    switch (names[row].kind) {
    case OURS:
        return true;
    case OUR_WASM:
        return rt_str_eq_c(language, "wasm") || rt_str_eq_c(language, "wasmedge");
    default:
        return r->services[row] != NULL;
    }
}

/* C-12, in its order. */
static const char *choose(const rt_router *r, const rt_route_ask *ask, uint64_t expected_us,
                          const char **reason)
{
    bool is_fast = expected_us > 0 && expected_us < RT_ROUTE_FAST_US;
    bool has_e2b = is_there(r, row_of(RT_STR("e2b")), ask->language);
    if (ask->is_long) {
        *reason = "long_job";
        return "bacalhau";
    }
    if (ask->needs_sandbox) {
        *reason = "requires_sandbox";
        return is_fast && has_e2b ? "e2b" : "wasmedge";
    }
    if (is_fast && has_e2b) {
        *reason = "expected_fast";
        return "e2b";
    }
    *reason = "default";
    return "local";
}

bool rt_router_decide(rt_router *r, const rt_route_ask *ask, rt_route *out, rt_error *err)
{
    bool is_named = ask->runtime.len > 0 && !rt_str_eq_c(ask->runtime, "auto");
    uint64_t expected = ask->expected_us ? ask->expected_us : recall(r, ask->code_hash);
    const char *reason = "explicit", *wanted;
    size_t row;
    if (is_named) {
        row = row_of(ask->runtime);
        if (row == NAMES)
            return rt_router_unknown(ask->runtime, err);
        wanted = names[row].name;
    } else {
        wanted = choose(r, ask, expected, &reason);
        row = row_of(rt_str_of(wanted));
    }
    bool is_here = is_there(r, row, ask->language);
    bool is_service = is_here && names[row].kind == SERVICE;
    *out = (rt_route){ .runtime = is_service ? r->services[row] : r->local,
                       .name = is_here ? wanted : "local",
                       .wanted = wanted,
                       .reason = reason,
                       .missing = is_here ? NULL : names[row].missing,
                       .expected_us = expected };
    return true;
}

/* ---- remembering ---- */

/* The newest runs count most: code that got slower is soon known to be slow. */
void rt_router_learn(rt_router *r, rt_str code_hash, uint64_t wall_us)
{
    uint64_t code;
    size_t slot = slot_of(code_hash, &code);
    if (code_hash.len == 0)
        return;
    pthread_mutex_lock(&r->lock);
    uint64_t before = r->learned[slot].code == code ? r->learned[slot].us : 0;
    r->learned[slot].code = code;
    r->learned[slot].us = before ? (3 * before + wall_us) / 4 : wall_us;
    pthread_mutex_unlock(&r->lock);
}

void rt_router_note(rt_router *r, const rt_route *route, rt_str code_hash, uint64_t wall_us,
                    bool is_success)
{
    size_t row = row_of(rt_str_of(route->name));
    if (is_success)
        rt_router_learn(r, code_hash, wall_us);
    pthread_mutex_lock(&r->lock);
    counts *c = &r->counts[row];
    c->runs++;
    c->successes += is_success;
    c->total_us += wall_us;
    c->last_ms = rt_wall_ms();
    pthread_mutex_unlock(&r->lock);
}

/* ---- telling ---- */

void rt_route_write(const rt_route *route, rt_json_writer *w)
{
    rt_jw_object(w);
    rt_jw_kstr(w, "runtime", rt_str_of(route->name));
    rt_jw_kstr(w, "reason", rt_str_of(route->reason));
    if (route->missing) {
        rt_jw_kstr(w, "wanted", rt_str_of(route->wanted));
        rt_jw_kstr(w, "fallback", rt_str_of(route->missing));
    }
    if (route->expected_us > 0)
        rt_jw_kdouble(w, "expectedMs", (double)route->expected_us / 1000.0);
    rt_jw_end(w);
}

void rt_router_write(rt_router *r, rt_json_writer *w)
{
    pthread_mutex_lock(&r->lock);
    rt_jw_array(w);
    for (size_t i = 0; i < NAMES; i++) {
        const counts *c = &r->counts[i];
        bool is_here = names[i].kind != SERVICE || r->services[i];
        double runs = c->runs ? (double)c->runs : 1;
        rt_jw_object(w);
        rt_jw_kstr(w, "name", rt_str_of(names[i].name));
        rt_jw_kbool(w, "available", is_here);
        if (is_here)
            rt_jw_knull(w, "detail");
        else
            rt_jw_kstr(w, "detail", rt_str_of(names[i].missing));
        rt_jw_ku64(w, "count", c->runs);
        rt_jw_kdouble(w, "avgDurationMs", (double)c->total_us / 1000.0 / runs);
        rt_jw_kdouble(w, "successRate", (double)c->successes / runs);
        if (c->last_ms)
            rt_jw_ku64(w, "lastUsed", c->last_ms);
        else
            rt_jw_knull(w, "lastUsed");
        rt_jw_end(w);
    }
    rt_jw_end(w);
    pthread_mutex_unlock(&r->lock);
}

/* ---- Bedrock ---- */

bool rt_bedrock_available(rt_json features)
{
    return rt_json_bool(rt_json_get_c(features, "code_execution"), false);
}

void rt_bedrock_write_capabilities(rt_json features, rt_json_writer *w)
{
    rt_json capabilities = rt_json_get_c(features, "capabilities");
    rt_jw_object(w);
    if (rt_bedrock_available(features)) {
        rt_jw_kstr(w, "status", RT_STR("available"));
        rt_jw_key(w, RT_STR("capabilities"));
        rt_jw_json(w, capabilities);
    } else {
        rt_json when = rt_json_get_c(features, "estimated_availability");
        rt_jw_kstr(w, "status", RT_STR("waiting"));
        rt_jw_kstr(w, "estimated_availability",
                   rt_json_is_absent(when) ? RT_STR("2025 Q3") : rt_json_str(when));
    }
    rt_jw_end(w);
}
