/* SPDX-License-Identifier: Apache-2.0 */
/* memory_provider.c - the memory as tools: memory:commit and memory:query. */
#include "skills/memory_internal.h"

#include <stdlib.h>

typedef struct provider {
    rt_provider base;
    rt_memory memory;
    rt_caller caller;
} provider;

typedef bool action(const rt_memory *m, const rt_caller *caller, rt_json request, rt_arena *arena,
                    rt_str *json, rt_error *err);

static const struct {
    const char *name, *description, *input;
    unsigned flags;
    action *act;
} actions[] = {
    { "memory:commit", "Keeps an artifact for later, with who made it from what.",
      "{\"type\":\"object\",\"properties\":{\"artifact\":{\"type\":\"object\",\"properties\":{"
      "\"id\":{\"type\":\"string\"},\"artifact_type\":{\"enum\":[\"research_snippet\","
      "\"claim_verification\",\"code_patch\",\"generic\"]},\"content\":{\"type\":\"object\"},"
      "\"tags\":{\"type\":\"array\"},\"session_id\":{\"type\":\"string\"},"
      "\"parent_artifact_ids\":{\"type\":\"array\"}},\"required\":[\"content\"]},"
      "\"actor_id\":{\"type\":\"string\"},\"actor_type\":{\"type\":\"string\"}},"
      "\"required\":[\"artifact\",\"actor_id\",\"actor_type\"]}",
      0, rt_memory_commit },
    { "memory:query", "Finds artifacts that mean something similar to a text.",
      "{\"type\":\"object\",\"properties\":{\"query_text\":{\"type\":\"string\"},"
      "\"top_k\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100},"
      "\"filter_session_id\":{\"type\":\"string\"},\"filter_artifact_type\":{\"type\":\"string\"},"
      "\"min_similarity\":{\"type\":\"number\"}},\"required\":[\"query_text\"]}",
      RT_TOOL_READ_ONLY | RT_TOOL_IDEMPOTENT, rt_memory_query },
};

static bool list(rt_provider *self, rt_arena *arena, rt_tool **out, size_t *count, rt_error *err)
{
    (void)self;
    (void)err;
    *count = RT_COUNT(actions);
    *out = rt_arena_alloc(arena, sizeof(**out) * *count);
    for (size_t i = 0; i < *count; i++)
        (*out)[i] = (rt_tool){ .name = rt_str_of(actions[i].name),
                               .server = RT_STR(RT_MEMORY_PROVIDER),
                               .title = rt_str_of(actions[i].name),
                               .description = rt_str_of(actions[i].description),
                               .category = RT_STR("memory"),
                               .version = RT_STR("1.0.0"),
                               .input_schema = rt_str_of(actions[i].input),
                               .flags = actions[i].flags };
    return true;
}

static bool call(rt_provider *self, const rt_tool_call *asked, rt_arena *arena, rt_tool_result *out,
                 rt_error *err)
{
    provider *p = (provider *)self;
    rt_caller caller = p->caller;
    uint64_t began = rt_now_ns();
    rt_json request;
    rt_str json;
    if (!rt_json_parse(asked->arguments, arena, &request, err))
        return rt_wrap(err, "arguments");
    if (asked->organisation_id.len > 0)
        caller = (rt_caller){ .organisation_id = asked->organisation_id,
                              .workspace_id = asked->workspace_id,
                              .user_id = asked->user_id,
                              .key_id = asked->key_id,
                              .role = RT_ROLE_MEMBER };
    for (size_t i = 0; i < RT_COUNT(actions); i++) {
        if (!rt_str_eq_c(asked->tool, actions[i].name))
            continue;
        if (!actions[i].act(&p->memory, &caller, request, arena, &json, err))
            return false;
        *out = (rt_tool_result){ .value = json,
                                 .content = RT_STR("[]"),
                                 .elapsed_us = (rt_now_ns() - began) / 1000 };
        return true;
    }
    return rt_fail(err, RT_NOT_FOUND, "the memory has no tool '%.*s'",
                   RT_FMT(rt_str_slice(asked->tool, 0, 60)));
}

static void health(rt_provider *self, rt_json_writer *w)
{
    rt_jw_object(w);
    rt_jw_kstr(w, "server", rt_str_of(self->name));
    rt_jw_kstr(w, "status", RT_STR("healthy"));
    rt_jw_ku64(w, "tools", RT_COUNT(actions));
    rt_jw_end(w);
}

static void close_provider(rt_provider *self)
{
    free(self);
}

bool rt_memory_provider(const rt_memory *memory, const rt_caller *caller, rt_provider **out,
                        rt_error *err)
{
    (void)err;
    provider *p = calloc(1, sizeof(*p));
    if (!p)
        rt_out_of_memory(sizeof(*p));
    p->base = (rt_provider){ .name = RT_MEMORY_PROVIDER,
                             .list = list,
                             .call = call,
                             .health = health,
                             .close = close_provider };
    p->memory = *memory;
    p->caller = *caller;
    *out = &p->base;
    return true;
}
