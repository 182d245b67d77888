/* SPDX-License-Identifier: Apache-2.0 */
/* skills.c - opening the room, and looking at what is in it. */
#include "skills/skills_internal.h"

#include <stdlib.h>

#define TIMEOUT_DEFAULT_MS 30000

static const rt_str *copy_list(const rt_str *from, size_t count, rt_arena *arena)
{
    rt_str *list = rt_arena_alloc(arena, sizeof(*list) * RT_MAX(count, (size_t)1));
    for (size_t i = 0; i < count; i++)
        list[i] = rt_arena_str(arena, from[i]);
    return list;
}

bool rt_skills_open(const rt_skills_config *config, rt_skills **out, rt_error *err)
{
    (void)err;
    rt_skills *s = calloc(1, sizeof(*s));
    if (!s)
        rt_out_of_memory(sizeof(*s));
    s->config = *config;
    s->config.directories = copy_list(config->directories, config->directory_count, &s->arena);
    s->config.allowed = copy_list(config->allowed, config->allowed_count, &s->arena);
    size_t bytes = sizeof(*config->natives) * config->native_count;
    rt_skill_native *natives = rt_arena_alloc(&s->arena, RT_MAX(bytes, (size_t)1));
    if (bytes > 0)
        memcpy(natives, config->natives, bytes);
    s->config.natives = natives;
    if (s->config.timeout_ms == 0)
        s->config.timeout_ms = TIMEOUT_DEFAULT_MS;
    pthread_mutex_init(&s->lock, NULL);
    catalogue *first = skills_hold(s, true);
    skills_catalogue_dropp(&first);
    *out = s;
    return true;
}

void rt_skills_close(rt_skills *skills)
{
    if (!skills)
        return;
    skills_catalogue_dropp(&skills->now);
    pthread_mutex_destroy(&skills->lock);
    rt_arena_done(&skills->arena);
    free(skills);
}

void rt_skills_closep(rt_skills **skills)
{
    rt_skills_close(*skills);
}

/* Out of the catalogue, which may go, into the caller's arena. */
static void copy_skill(const rt_skill *from, rt_arena *arena, rt_skill *to)
{
    *to = *from;
    rt_str *const texts[] = { &to->name,         &to->version,        &to->description,
                              &to->input_schema, &to->output_schema,  &to->handler_path,
                              &to->folder,       &to->organisation_id };
    for (size_t i = 0; i < RT_COUNT(texts); i++)
        *texts[i] = rt_arena_str(arena, *texts[i]);
    to->tags = copy_list(from->tags, from->tag_count, arena);
}

static bool has_tag(const rt_skill *s, const rt_skill_filter *f)
{
    for (size_t i = 0; i < f->tag_count; i++)
        for (size_t k = 0; k < s->tag_count; k++)
            if (rt_str_eq(f->tags[i], s->tags[k]))
                return true;
    return f->tag_count == 0;
}

static bool has_flag(const rt_skill *s, rt_str wanted)
{
    unsigned flag;
    const char *name;
    for (size_t i = 0; (name = rt_skill_flag_name(i, &flag)); i++)
        if (rt_str_eq_c(wanted, name))
            return flag ? (s->flags & flag) != 0 : s->flags == 0;
    return wanted.len == 0;
}

bool rt_skills_list(rt_skills *skills, const rt_skill_filter *filter, rt_arena *arena,
                    rt_skill **out, size_t *count, rt_error *err)
{
    (void)err;
    catalogue *c RT_CLEANUP(skills_catalogue_dropp) = skills_hold(skills, true);
    *out = rt_arena_alloc(arena, sizeof(**out) * RT_MAX(c->skill_count, (size_t)1));
    *count = 0;
    for (size_t i = 0; i < c->skill_count; i++) {
        const rt_skill *s = &c->skills[i].shown;
        if (skills_is_newest(c, i, filter->organisation_id) && has_tag(s, filter) &&
            has_flag(s, filter->flag))
            copy_skill(s, arena, &(*out)[(*count)++]);
    }
    return true;
}

bool rt_skills_find(rt_skills *skills, rt_str organisation_id, rt_str name, rt_arena *arena,
                    rt_skill *out, rt_error *err)
{
    catalogue *c RT_CLEANUP(skills_catalogue_dropp) = skills_hold(skills, true);
    const skill *s = skills_catalogue_find(c, organisation_id, name);
    if (!s)
        return rt_fail(err, RT_NOT_FOUND, "Skill not found: %.*s",
                       (int)RT_MIN(name.len, (size_t)100), name.ptr);
    copy_skill(&s->shown, arena, out);
    return true;
}

size_t rt_skills_count(rt_skills *skills)
{
    catalogue *c RT_CLEANUP(skills_catalogue_dropp) = skills_hold(skills, false);
    size_t count = 0;
    for (size_t i = 0; i < c->skill_count; i++)
        count += skills_is_newest(c, i, (rt_str){ 0 });
    return count;
}

size_t rt_skills_problems(rt_skills *skills, rt_arena *arena, rt_skill_problem **out)
{
    catalogue *c RT_CLEANUP(skills_catalogue_dropp) = skills_hold(skills, true);
    *out = rt_arena_alloc(arena, sizeof(**out) * RT_MAX(c->problem_count, (size_t)1));
    for (size_t i = 0; i < c->problem_count; i++)
        (*out)[i] = (rt_skill_problem){ rt_arena_str(arena, c->problems[i].folder),
                                        rt_arena_str(arena, c->problems[i].reason) };
    return c->problem_count;
}

void rt_skill_write(const rt_skill *s, rt_json_writer *w)
{
    unsigned flag;
    const char *name;
    char time[RT_ISO8601_SIZE];
    rt_jw_object(w);
    rt_jw_kstr(w, "name", s->name);
    rt_jw_kstr(w, "version", s->version);
    rt_jw_kstr(w, "description", s->description);
    rt_jw_karray(w, "safety_flags");
    for (size_t i = 0; (name = rt_skill_flag_name(i, &flag)); i++)
        if (flag ? s->flags & flag : s->flags == 0)
            rt_jw_str(w, rt_str_of(name));
    rt_jw_end(w);
    rt_jw_kbool(w, "requires_approval", s->requires_approval);
    rt_jw_kraw(w, "input_schema", s->input_schema);
    rt_jw_kraw(w, "output_schema", s->output_schema);
    rt_jw_kstr(w, "handler_path", s->handler_path);
    rt_jw_karray(w, "tags");
    for (size_t i = 0; i < s->tag_count; i++)
        rt_jw_str(w, s->tags[i]);
    rt_jw_end(w);
    rt_iso8601_write(time, s->created_ms);
    rt_jw_kstr(w, "created_at", rt_str_of(time));
    rt_jw_kstr(w, "language", s->language);
    rt_jw_kstr(w, "source", s->folder.len ? RT_STR("folder") : RT_STR("registered"));
    rt_jw_end(w);
}
