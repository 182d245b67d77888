/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.h - the one gate every call of a tool passes, from code, from MCP and from REST.
 *
 * Which tool is meant, whether it was granted, whether a person must say yes: all of that is
 * decided here, once. What is not granted is not called, whatever the caller does.
 */
#ifndef RT_ENGINE_GATE_H
#define RT_ENGINE_GATE_H

#include "engine/engine.h"

/* What a run may call. Patterns as "github:*"; both lists must have one that fits, the operator's
 * and the run's own. */
typedef struct engine_grant {
    rt_patterns wished;
    bool is_narrowed; /* false: all that the operator grants */
} engine_grant;

/* One call on its way through the gate. */
typedef struct engine_passing {
    const rt_tool_request *request;
    const engine_grant *grant;
    rt_str arguments; /* as the tool gets them */
    rt_tool tool;     /* that was meant; without a name: none was found */
    bool was_asked;   /* a person said yes to this very call */
    /* What has to happen to the arguments once the tool is known; may be NULL. */
    bool (*prepare)(void *ctx, struct engine_passing *passing, rt_arena *arena, rt_error *err);
    void *prepare_ctx;
} engine_passing;

bool engine_gate_pass(rt_engine *engine, engine_passing *passing, rt_arena *arena,
                      rt_tool_result *out, rt_error *err);

bool engine_grant_fits(const rt_engine *engine, const engine_grant *grant, rt_str tool);
/* Could any tool of this server be called? */
bool engine_grant_server(const rt_engine *engine, const engine_grant *grant, rt_str server);
/* May the tool see personal data in clear? */
bool engine_grant_sees_pii(const rt_engine *engine, const rt_tool *tool);
/* Could the answer differ, or the world, if it were called again? */
bool engine_tool_has_effects(const rt_tool *tool);

/* Reads a request's "tools" and, by its intent, those that are meant (grant.c). */
bool engine_grant_read(rt_engine *engine, const rt_request *request, rt_arena *arena,
                       engine_grant *out, rt_error *err);

#endif
