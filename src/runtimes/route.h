/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route.h - which runtime takes a run, and why.
 *
 * Promise: a name that was asked for wins; else the rules of C-12 decide, in their order: a long
 * job, a wish for a stronger sandbox, an answer expected within 50 ms, the default of the language.
 * What is not there is replaced by the default, and the route says so. Nothing is decided in
 * silence: every route has a reason.
 *
 *     rt_router *router = rt_router_new(local);
 *     rt_route route;
 *     if (!rt_router_decide(router, &ask, &route, err))    // only when the name means nothing
 *         return false;
 *     route.runtime->execute(route.runtime, …);
 *     rt_router_note(router, &route, code_hash, wall_us, ok);
 *
 * Any thread may call.
 */
#ifndef RETORT_ROUTE_H
#define RETORT_ROUTE_H

#include "runtimes/runtimes.h"

#define RT_ROUTE_FAST_US 50000 /* below it, a run is an interactive one */

typedef struct rt_router rt_router;

/* What is asked. */
typedef struct rt_route_ask {
    rt_str runtime; /* by name; empty or "auto": the rules decide */
    rt_str language;
    bool is_long, needs_sandbox;
    uint64_t expected_us; /* 0: what was learned of this code, or unknown */
    rt_str code_hash;
} rt_route_ask;

typedef struct rt_route {
    rt_runtime *runtime;
    const char *name;     /* of the runtime, as callers know it: "local" */
    const char *wanted;   /* what the name or the rules wanted; the same, unless it is not there */
    const char *reason;   /* explicit, long_job, requires_sandbox, expected_fast, default */
    const char *missing;  /* why it is not there; NULL: it is */
    uint64_t expected_us; /* what the decision went by; 0: unknown */
} rt_route;

rt_router *rt_router_new(rt_runtime *local);
void rt_router_free(rt_router *router);
/* A runtime beside the local one, under one of the known names ("e2b", "bacalhau", …). */
bool rt_router_add(rt_router *router, const char *name, rt_runtime *runtime, rt_error *err);

bool rt_router_knows(rt_str name);                  /* any name that a request may use; empty too */
bool rt_router_unknown(rt_str name, rt_error *err); /* the error that lists what there is */
bool rt_router_decide(rt_router *router, const rt_route_ask *ask, rt_route *out, rt_error *err);

/* After a run: what it took is counted, and remembered for its code. */
void rt_router_note(rt_router *router, const rt_route *route, rt_str code_hash, uint64_t wall_us,
                    bool is_success);
void rt_router_learn(rt_router *router, rt_str code_hash, uint64_t wall_us); /* from the record */

void rt_route_write(const rt_route *route, rt_json_writer *w); /* as the answer has it */
/* [{name, available, detail, count, avgDurationMs, successRate, lastUsed}, …] */
void rt_router_write(rt_router *router, rt_json_writer *w);

/* ---- Bedrock, which may have code execution one day ---- */

/* From a map of features, {"code_execution": true, …}; absent means false. */
bool rt_bedrock_available(rt_json features);
/* What it can do; while it cannot: {"status":"waiting","estimated_availability":…}. */
void rt_bedrock_write_capabilities(rt_json features, rt_json_writer *w);

#endif
