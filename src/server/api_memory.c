/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_memory.c - /memory: artifacts that skills and agents keep, in the shapes of the Memory
 * Service.
 */
#include "server/server_internal.h"
#include "skills/memory.h"

static rt_memory memory_of(const http_request *r)
{
    const rt_server_config *c = &r->server->config;
    return (rt_memory){ .store = c->store, .vault = c->vault, .skills = c->skills };
}

typedef bool act(const rt_memory *m, const rt_caller *caller, rt_json request, rt_arena *arena,
                 rt_str *json, rt_error *err);

static bool with_body(http_request *r, http_reply *reply, unsigned status, act *what, rt_error *err)
{
    rt_memory memory = memory_of(r);
    rt_json body;
    rt_str json;
    if (!http_json(r, &body, err) || !what(&memory, &r->caller, body, &r->arena, &json, err))
        return false;
    http_reply_text(reply, status, NULL, json);
    return true;
}

static bool commit(http_request *r, http_reply *reply, rt_error *err)
{
    return with_body(r, reply, 201, rt_memory_commit, err);
}

static bool query(http_request *r, http_reply *reply, rt_error *err)
{
    return with_body(r, reply, 200, rt_memory_query, err);
}

static bool compact(http_request *r, http_reply *reply, rt_error *err)
{
    return with_body(r, reply, 200, rt_memory_compact, err);
}

static bool provenance(http_request *r, http_reply *reply, rt_error *err)
{
    rt_memory memory = memory_of(r);
    rt_str json;
    if (!rt_memory_provenance(&memory, &r->caller, http_param(r, "id"), &r->arena, &json, err))
        return false;
    http_reply_text(reply, 200, NULL, json);
    return true;
}

static bool stats(http_request *r, http_reply *reply, rt_error *err)
{
    rt_memory memory = memory_of(r);
    rt_str json;
    if (!rt_memory_stats(&memory, &r->caller, http_param(r, "id"), &r->arena, &json, err))
        return false;
    http_reply_text(reply, 200, NULL, json);
    return true;
}

#define ROW(a_method, a_path, an_id, a_summary, a_role, an_action)                                 \
    .method = (a_method), .path = (a_path), .id = (an_id), .tag = "Memory",                        \
    .summary = (a_summary), .role = (a_role), .action = (an_action), .flags = HTTP_SKILL_ERRORS

const http_operation api_memory_rows[] = {
    { ROW("POST", "/memory/commit", "commitMemory", "Keep an artifact", RT_ROLE_MEMBER,
          "keep artifacts"),
      .about = "Its content is sealed in the store.", .request = "MemoryCommit",
      .responses = HTTP_RESPONSES({ 201, "MemoryCommitted", "Kept" }), .errors = "409 413 422",
      .handler = commit },
    { ROW("POST", "/memory/query", "queryMemory", "Find artifacts by what they mean",
          RT_ROLE_MEMBER, "read artifacts"),
      .request = "MemoryQuery",
      .responses = HTTP_RESPONSES({ 200, "MemoryFound", "The nearest, best first" }),
      .errors = "422", .handler = query },
    { ROW("GET", "/memory/provenance/{id}", "getMemoryProvenance",
          "From what an artifact was made, and by whom", RT_ROLE_MEMBER, "read artifacts"),
      .responses = HTTP_RESPONSES({ 200, "MemoryProvenance", "Itself first, then its parents" }),
      .errors = "404 422", .handler = provenance },
    { ROW("POST", "/memory/compact", "compactMemory", "Make what a session kept less",
          RT_ROLE_MEMBER, "compact artifacts"),
      .request = "MemoryCompact",
      .responses = HTTP_RESPONSES({ 200, "MemoryCompacted", "What was done" }), .errors = "422",
      .handler = compact },
    { ROW("GET", "/memory/session/{id}/stats", "getMemoryStats", "What a session has kept",
          RT_ROLE_MEMBER, "read artifacts"),
      .responses = HTTP_RESPONSES({ 200, "MemoryStats", "Counts and tokens" }), .errors = "422",
      .handler = stats },
    { 0 },
};
