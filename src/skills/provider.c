/* SPDX-License-Identifier: Apache-2.0 */
/*
 * provider.c - skills as tools: "skills:text_summarize", for code and for models.
 *
 * A call that comes this way is part of a run that has a slot, so it waits for none of its own.
 */
#include "skills/skills_internal.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct provider {
    rt_provider base;
    rt_skills *skills;
    rt_arena arena;
    rt_caller caller;
} provider;

static unsigned flags_of(const rt_skill *s)
{
    bool has_effect = s->flags & RT_SKILL_SIDE_EFFECT;
    unsigned flags = has_effect ? RT_TOOL_SIDE_EFFECT : RT_TOOL_READ_ONLY | RT_TOOL_IDEMPOTENT;
    if (has_effect || s->requires_approval)
        flags |= RT_TOOL_NEEDS_APPROVAL;
    if (s->flags & (RT_SKILL_EXTERNAL_CALL | RT_SKILL_NETWORK_ACCESS))
        flags |= RT_TOOL_OPEN_WORLD;
    return flags;
}

static bool list(rt_provider *self, rt_arena *arena, rt_tool **out, size_t *count, rt_error *err)
{
    provider *p = (provider *)self;
    rt_skill *skills;
    rt_skill_filter filter = { .organisation_id = p->caller.organisation_id };
    if (!rt_skills_list(p->skills, &filter, arena, &skills, count, err))
        return false;
    *out = rt_arena_alloc(arena, sizeof(**out) * RT_MAX(*count, (size_t)1));
    for (size_t i = 0; i < *count; i++)
        (*out)[i] = (rt_tool){
            .name = rt_arena_printf(arena, RT_SKILLS_PROVIDER ":%.*s", RT_FMT(skills[i].name)),
            .server = RT_STR(RT_SKILLS_PROVIDER),
            .title = skills[i].name,
            .description = skills[i].description,
            .category = RT_STR("skills"),
            .version = skills[i].version,
            .input_schema = skills[i].input_schema,
            .output_schema = skills[i].output_schema,
            .flags = flags_of(&skills[i]),
        };
    return true;
}

static rt_str error_value(rt_str message, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "error", message);
    rt_jw_end(&w);
    return rt_arena_str(arena, rt_buf_str(&text));
}

static bool call(rt_provider *self, const rt_tool_call *asked, rt_arena *arena, rt_tool_result *out,
                 rt_error *err)
{
    provider *p = (provider *)self;
    rt_str server, name = asked->tool;
    uint64_t began = rt_now_ns();
    rt_canceller canceller = { .wake = asked->cancel_fd };
    rt_skill_result result;
    rt_json args;
    rt_str_cut(&name, ':', &server);
    if (!rt_json_parse(asked->arguments, arena, &args, err))
        return rt_wrap(err, "arguments");
    rt_caller caller = p->caller;
    if (asked->organisation_id.len > 0)
        caller = (rt_caller){ .organisation_id = asked->organisation_id,
                              .workspace_id = asked->workspace_id,
                              .user_id = asked->user_id,
                              .key_id = asked->key_id,
                              .actor_type = RT_STR("tool"),
                              .role = RT_ROLE_MEMBER };
    rt_skill_call what = { .caller = &caller,
                           .surface = RT_STR("tool"),
                           .skill = name,
                           .args = args,
                           .is_approved = asked->is_approved,
                           .is_nested = asked->run.len > 0,
                           .canceller = asked->cancel_fd >= 0 ? &canceller : NULL };
    if (!rt_skills_execute(p->skills, &what, arena, &result, err))
        return false;
    *out = (rt_tool_result){ .value = result.is_success ? result.value
                                                        : error_value(result.error_message, arena),
                             .content = RT_STR("[]"),
                             .is_error = !result.is_success,
                             .elapsed_us = (rt_now_ns() - began) / 1000 };
    return true;
}

static void health(rt_provider *self, rt_json_writer *w)
{
    rt_jw_object(w);
    rt_jw_kstr(w, "server", rt_str_of(self->name));
    rt_jw_kstr(w, "status", RT_STR("healthy"));
    rt_jw_ku64(w, "tools", rt_skills_count(((provider *)self)->skills));
    rt_jw_end(w);
}

static void close_provider(rt_provider *self)
{
    provider *p = (provider *)self;
    rt_arena_done(&p->arena);
    free(p);
}

bool rt_skills_provider(rt_skills *skills, const rt_caller *caller, rt_provider **out,
                        rt_error *err)
{
    (void)err;
    provider *p = calloc(1, sizeof(*p));
    if (!p)
        rt_out_of_memory(sizeof(*p));
    p->base = (rt_provider){ .name = RT_SKILLS_PROVIDER,
                             .list = list,
                             .call = call,
                             .health = health,
                             .close = close_provider };
    p->skills = skills;
    p->caller = *caller;
    rt_str *const texts[] = { &p->caller.organisation_id, &p->caller.workspace_id,
                              &p->caller.user_id,         &p->caller.key_id,
                              &p->caller.actor_type,      &p->caller.address };
    for (size_t i = 0; i < RT_COUNT(texts); i++)
        *texts[i] = rt_arena_str(&p->arena, *texts[i]);
    *out = &p->base;
    return true;
}
