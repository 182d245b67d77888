/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agents.c - making, changing and finding agents.
 *
 * Every change reads the agent, lays the body over it, checks the whole, and writes it on the
 * condition that nobody changed it meanwhile. Whether an agent may be seen is the store's question,
 * asked first; only who sees it can be told that they may not change it.
 */
#include "agents/agents_internal.h"

#include <stdlib.h>

rt_agents *rt_agents_new(const rt_agents_config *config)
{
    rt_agents *a = calloc(1, sizeof(*a));
    if (!a)
        rt_out_of_memory(sizeof(*a));
    a->config = *config;
    pthread_mutex_init(&a->lock, NULL);
    return a;
}

void rt_agents_free(rt_agents *a)
{
    if (!a)
        return;
    pthread_mutex_destroy(&a->lock);
    free(a);
}

void rt_agents_freep(rt_agents **a)
{
    rt_agents_free(RT_TAKE(*a));
}

/* ---- JSON that is kept as text ---- */

rt_str agents_json_text(rt_json value, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf_init(&text, RT_JSON_SIZE_CEILING);
    rt_json_print(value, &text);
    return rt_arena_str(arena, rt_buf_str(&text));
}

bool agents_json_parse(rt_str text, rt_arena *arena, rt_json *out)
{
    *out = (rt_json){ 0 };
    return text.len > 0 && rt_json_parse(text, arena, out, NULL);
}

/* ---- who may ---- */

rt_agent_viewer agents_viewer(const rt_caller *caller)
{
    if (caller->role >= RT_ROLE_OWNER)
        return (rt_agent_viewer){ 0 };
    return (rt_agent_viewer){ .organisation_id = caller->organisation_id.len > 0
                                                     ? caller->organisation_id
                                                     : RT_STR("-"), /* nobody's: not all */
                              .workspace_id = caller->workspace_id };
}

bool agents_may(const rt_caller *caller, const rt_agent_row *row, const char *action, rt_error *err)
{
    bool is_ours = rt_str_eq(caller->organisation_id, row->organisation_id);
    bool is_mine = is_ours && caller->user_id.len > 0 && rt_str_eq(caller->user_id, row->user_id);
    if (caller->role >= RT_ROLE_OWNER || (is_ours && caller->role >= RT_ROLE_ADMIN) ||
        (is_mine && caller->role >= RT_ROLE_MEMBER))
        return true;
    return rt_fail(err, RT_DENIED, "You do not have permission to %s code_agent", action);
}

/* ---- finding ---- */

/* "csv-profile@1.2.0" */
static void split_version(rt_str *id, rt_str *version)
{
    const char *at = id->len > 0 ? memchr(id->ptr, '@', id->len) : NULL;
    if (!at)
        return;
    size_t place = (size_t)(at - id->ptr);
    if (version->len == 0)
        *version = rt_str_slice(*id, place + 1, id->len);
    *id = rt_str_slice(*id, 0, place);
}

static bool find_row(rt_agents *a, const rt_caller *caller, rt_str id, rt_arena *arena,
                     rt_agent_row *out, rt_error *err)
{
    rt_agent_viewer viewer = agents_viewer(caller);
    if (!rt_utf8_valid(id) || (id.len > 0 && memchr(id.ptr, '\0', id.len)))
        return rt_fail(err, RT_NOT_FOUND, "Code agent not found");
    if (rt_str_starts(id, RT_STR("agent_")))
        return rt_agent_find(a->config.store, &viewer, id, arena, out, err);
    return rt_agent_find_named(a->config.store, &viewer, id, arena, out, err);
}

static bool take_version(rt_agents *a, rt_str version, rt_arena *arena, rt_agent *agent,
                         rt_error *err)
{
    rt_agent_version found;
    bool is_current = version.len == 0 || rt_str_eq_c(version, RT_AGENT_LATEST);
    agent->version = is_current ? agent->row.version : version;
    if (is_current)
        return true;
    agents_semver number;
    if (!agents_semver_parse(version, &number))
        return rt_fail(err, RT_NOT_FOUND, "Version not found");
    if (!rt_agent_version_find(a->config.store, agent->row.id, version, arena, &found, err))
        return false;
    agent->row.content = found.content;
    agent->version = found.version;
    agent->changelog = found.changelog;
    return true;
}

bool agents_load(rt_agents *a, const rt_caller *caller, rt_str id, rt_str version, rt_arena *arena,
                 rt_agent *out, rt_error *err)
{
    *out = (rt_agent){ 0 };
    split_version(&id, &version);
    return find_row(a, caller, id, arena, &out->row, err) &&
           take_version(a, version, arena, out, err) &&
           agents_bundle_load(a, &out->row.content, arena, err);
}

/* Of an environment that cannot be opened here, or is another organisation's, nothing is shown. */
static void show_environment(rt_agents *a, const rt_caller *caller, rt_arena *arena,
                             rt_agent *agent)
{
    rt_json clear;
    if (caller->role < RT_ROLE_OWNER &&
        !rt_str_eq(caller->organisation_id, agent->row.organisation_id))
        return;
    agents_environment_unseal(a, agent->row.id, agent->row.content.environment, arena, &clear,
                              NULL);
    agent->environment = agents_environment_mask(clear, arena);
}

bool rt_agents_find(rt_agents *a, const rt_caller *caller, rt_str id, rt_str version,
                    rt_arena *arena, rt_agent *out, rt_error *err)
{
    if (!agents_load(a, caller, id, version, arena, out, err))
        return false;
    show_environment(a, caller, arena, out);
    return true;
}

bool rt_agents_list(rt_agents *a, const rt_caller *caller, const rt_agent_filter *filter,
                    rt_arena *arena, rt_agent_row **rows, size_t *count, rt_error *err)
{
    rt_agent_filter own = *filter;
    const rt_language *known = rt_language_find(filter->language);
    own.viewer = agents_viewer(caller);
    if (known)
        own.language = rt_str_of(known->name);
    return rt_agent_list(a->config.store, &own, arena, rows, count, err);
}

bool rt_agents_versions(rt_agents *a, const rt_caller *caller, rt_str id, rt_arena *arena,
                        rt_agent_version **rows, size_t *count, rt_error *err)
{
    rt_agent_row row;
    return find_row(a, caller, id, arena, &row, err) &&
           rt_agent_version_list(a->config.store, row.id, arena, rows, count, err);
}

/* ---- making ---- */

/* [{"version":…,"changes":…,"date":…}, …], newest first. */
static rt_str add_to_changelog(rt_str before, rt_str version, rt_str changes, uint64_t now_ms,
                               rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    char date[RT_ISO8601_SIZE];
    rt_json_writer w;
    rt_json old, item;
    if (changes.len == 0)
        return before;
    agents_json_parse(before, arena, &old);
    rt_iso8601_write(date, now_ms);
    rt_json_begin(&w, &text);
    rt_jw_array(&w);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "version", version);
    rt_jw_kstr(&w, "changes", changes);
    rt_jw_kstr(&w, "date", rt_str_of(date));
    rt_jw_end(&w);
    rt_json_iter it = rt_json_each(old);
    for (int i = 0; i < 99 && rt_json_next(&it, NULL, &item); i++)
        rt_jw_json(&w, item);
    rt_jw_end(&w);
    return rt_arena_str(arena, rt_buf_str(&text));
}

/* The rows of a draft under a version; its code may go to the object directory here. */
static bool settle(rt_agents *a, const rt_caller *caller, agents_draft *d, rt_str version,
                   rt_arena *arena, rt_agent_version *out, rt_error *err)
{
    rt_agent_row *row = &d->row;
    row->changelog =
        add_to_changelog(row->changelog, version, d->changelog, row->updated_ms, arena);
    row->content.environment = agents_environment_seal(a, row->id, d->environment, arena);
    if (!agents_bundle_store(a, row->id, version, &row->content, arena, err))
        return false;
    *out = (rt_agent_version){ .id = rt_id_new("version", arena),
                               .code_agent_id = row->id,
                               .version = version,
                               .user_id = caller->user_id,
                               .changelog = d->changelog,
                               .created_ms = row->updated_ms,
                               .content = row->content };
    return true;
}

static void drop_object(const rt_agents *a, rt_str path)
{
    if (path.len > 0)
        rt_objects_remove(a->config.objects, path);
}

/* A clear draft of what is there. */
static bool draft_of(rt_agents *a, const rt_agent *agent, rt_arena *arena, agents_draft *out,
                     rt_error *err)
{
    *out = (agents_draft){ .row = agent->row };
    agents_json_parse(agent->row.content.files, arena, &out->files);
    return agents_environment_unseal(a, agent->row.id, agent->row.content.environment, arena,
                                     &out->environment, err);
}

bool rt_agents_create(rt_agents *a, const rt_caller *caller, rt_json body, rt_arena *arena,
                      rt_agent *out, rt_error *err)
{
    agents_draft d = { 0 };
    rt_agent_version first;
    if (caller->role < RT_ROLE_MEMBER)
        return rt_fail(err, RT_DENIED, "You do not have permission to create code_agent");
    if (!agents_draft_read(body, arena, &d, err) || !agents_draft_check(&d, arena, err))
        return false;
    d.row.id = rt_id_new("agent", arena);
    d.row.organisation_id = caller->organisation_id;
    d.row.workspace_id = caller->workspace_id;
    d.row.user_id = caller->user_id;
    d.row.version = d.version.len > 0 ? d.version : RT_STR("1.0.0");
    d.row.created_ms = d.row.updated_ms = rt_wall_ms();
    if (!settle(a, caller, &d, d.row.version, arena, &first, err))
        return false;
    if (!rt_agent_add(a->config.store, &d.row, &first, err)) {
        drop_object(a, first.content.code_storage_path);
        return false;
    }
    return rt_agents_find(a, caller, d.row.id, (rt_str){ 0 }, arena, out, err);
}

/* ---- changing ---- */

static uint64_t later_than(uint64_t ms)
{
    return RT_MAX(rt_wall_ms(), ms + 1);
}

/* `is_current`: the new version becomes the agent's. Else only the version is added. */
static bool write_version(rt_agents *a, const rt_caller *caller, const rt_agent *before,
                          agents_draft *d, rt_str version, bool is_current, rt_arena *arena,
                          rt_error *err)
{
    rt_agent_version added;
    d->row.updated_ms = later_than(before->row.updated_ms);
    if (!settle(a, caller, d, version, arena, &added, err))
        return false;
    if (is_current) {
        d->row.version = version;
    } else {
        d->row.content = before->row.content;
        if (d->row.content.code_storage_path.len > 0) /* there, and not in the row */
            d->row.content.code = d->row.content.files = (rt_str){ 0 };
        d->row.changelog = before->row.changelog;
    }
    if (rt_agent_update(a->config.store, &d->row, before->row.updated_ms, &added, err)) {
        agents_changed(a, &d->row);
        return true;
    }
    if (err->code != RT_CONFLICT) /* else the object is that of the version that exists */
        drop_object(a, added.content.code_storage_path);
    return false;
}

bool rt_agents_update(rt_agents *a, const rt_caller *caller, rt_str id, rt_json body,
                      rt_arena *arena, rt_agent *out, rt_error *err)
{
    rt_agent before;
    agents_draft d;
    if (!agents_load(a, caller, id, (rt_str){ 0 }, arena, &before, err) ||
        !agents_may(caller, &before.row, "update", err) || !draft_of(a, &before, arena, &d, err) ||
        !agents_draft_read(body, arena, &d, err))
        return false;
    if (d.version.len > 0)
        return rt_fail(err, RT_INVALID,
                       "'version' is not given here: an update makes the next "
                       "one; POST to …/versions names one");
    rt_str version = agents_semver_next_minor(before.row.version, arena);
    return agents_draft_check(&d, arena, err) &&
           write_version(a, caller, &before, &d, version, true, arena, err) &&
           rt_agents_find(a, caller, before.row.id, (rt_str){ 0 }, arena, out, err);
}

bool rt_agents_add_version(rt_agents *a, const rt_caller *caller, rt_str id, rt_json body,
                           rt_arena *arena, rt_agent *out, rt_error *err)
{
    rt_agent before;
    agents_draft d;
    agents_semver asked, current;
    rt_agent_version taken;
    if (!agents_load(a, caller, id, (rt_str){ 0 }, arena, &before, err) ||
        !agents_may(caller, &before.row, "update", err) || !draft_of(a, &before, arena, &d, err) ||
        !agents_draft_read(body, arena, &d, err))
        return false;
    if (d.version.len == 0)
        return rt_fail(err, RT_INVALID, "'version' is missing: three numbers such as 1.4.0");
    if (!agents_draft_check(&d, arena, err))
        return false;
    if (rt_agent_version_find(a->config.store, before.row.id, d.version, arena, &taken, NULL))
        return rt_fail(err, RT_CONFLICT,
                       "version %.*s exists already, and a version never changes; choose another",
                       RT_FMT(d.version));
    agents_semver_parse(d.version, &asked);
    bool is_current =
        !agents_semver_parse(before.row.version, &current) || agents_semver_cmp(asked, current) > 0;
    return write_version(a, caller, &before, &d, d.version, is_current, arena, err) &&
           rt_agents_find(a, caller, before.row.id, d.version, arena, out, err);
}

/* Would a new version be the same? */
static bool is_same(const agents_draft *a, const agents_draft *b)
{
    const rt_agent_row *x = &a->row, *y = &b->row;
    const rt_agent_content *c = &x->content, *d = &y->content;
    const rt_str pairs[][2] = {
        { x->name, y->name },
        { x->description, y->description },
        { x->metadata, y->metadata },
        { c->language, d->language },
        { c->runtime, d->runtime },
        { c->validation_type, d->validation_type },
        { c->entry_point, d->entry_point },
        { c->packages, d->packages },
        { c->tools, d->tools },
        { c->policy, d->policy },
        { c->input_schema, d->input_schema },
        { c->output_schema, d->output_schema },
        { c->code, d->code },
    };
    for (size_t i = 0; i < RT_COUNT(pairs); i++)
        if (!rt_str_eq(pairs[i][0], pairs[i][1]))
            return false;
    bool has_variables = rt_json_count(a->environment) + rt_json_count(b->environment) > 0;
    return x->is_public == y->is_public && x->is_deprecated == y->is_deprecated &&
           rt_json_equal(a->files, b->files) &&
           (!has_variables || rt_json_equal(a->environment, b->environment));
}

bool rt_agents_put(rt_agents *a, const rt_caller *caller, rt_json body, rt_arena *arena,
                   rt_agent *out, bool *is_changed, rt_error *err)
{
    rt_str name = rt_agent_tool_name(rt_json_str(rt_json_get_c(body, "name")), arena);
    rt_agent_viewer viewer = agents_viewer(caller);
    rt_agent_row row;
    rt_agent before;
    agents_draft was, d;
    bool is_there = rt_agent_find_named(a->config.store, &viewer, name, arena, &row, NULL) &&
                    rt_str_eq(row.organisation_id, caller->organisation_id);
    *is_changed = true;
    if (!is_there)
        return rt_agents_create(a, caller, body, arena, out, err);
    if (!agents_load(a, caller, row.id, (rt_str){ 0 }, arena, &before, err) ||
        !draft_of(a, &before, arena, &was, err))
        return false;
    d = was;
    if (!agents_draft_read(body, arena, &d, err) || !agents_draft_check(&d, arena, err))
        return false;
    *is_changed = !is_same(&was, &d);
    return *is_changed ? rt_agents_update(a, caller, row.id, body, arena, out, err)
                       : rt_agents_find(a, caller, row.id, (rt_str){ 0 }, arena, out, err);
}

bool rt_agents_remove(rt_agents *a, const rt_caller *caller, rt_str id, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_agent_version *versions;
    rt_agent_row row;
    size_t count;
    if (!find_row(a, caller, id, &arena, &row, err) || !agents_may(caller, &row, "delete", err) ||
        !rt_agent_version_list(a->config.store, row.id, &arena, &versions, &count, err) ||
        !rt_agent_remove(a->config.store, row.id, err))
        return false;
    for (size_t i = 0; i < count; i++)
        drop_object(a, versions[i].content.code_storage_path);
    agents_changed(a, &row);
    return true;
}

/* ---- what changes without a version ---- */

static const char *const mark_actions[] = {
    [RT_AGENT_PUBLISH] = "publish",     [RT_AGENT_UNPUBLISH] = "unpublish",
    [RT_AGENT_DEPRECATE] = "deprecate", [RT_AGENT_REVIVE] = "update",
    [RT_AGENT_REGISTER] = "register",   [RT_AGENT_UNREGISTER] = "register",
};

static bool set_mark(rt_agents *a, rt_agent *agent, rt_agent_mark mark, rt_str note,
                     rt_arena *arena, rt_error *err)
{
    rt_agent_row *row = &agent->row;
    rt_agent at = *agent;
    switch (mark) {
    case RT_AGENT_PUBLISH:
    case RT_AGENT_UNPUBLISH:
        row->is_public = mark == RT_AGENT_PUBLISH;
        return true;
    case RT_AGENT_DEPRECATE:
        row->is_deprecated = true;
        row->deprecation = note;
        return note.len <= 4000 || rt_fail(err, RT_INVALID, "the note is too long");
    case RT_AGENT_REVIVE:
        row->is_deprecated = false;
        row->deprecation = (rt_str){ 0 };
        return true;
    case RT_AGENT_REGISTER:
        if (note.len > 0 && !rt_str_eq_c(note, RT_AGENT_LATEST) &&
            !take_version(a, note, arena, &at, err))
            return false;
        row->is_tool = true;
        row->tool_version = note.len > 0 ? note : row->version;
        return true;
    case RT_AGENT_UNREGISTER:
        row->is_tool = false;
        row->tool_version = (rt_str){ 0 };
        return true;
    }
    return true;
}

bool rt_agents_mark(rt_agents *a, const rt_caller *caller, rt_str id, rt_agent_mark mark,
                    rt_str note, rt_arena *arena, rt_agent *out, rt_error *err)
{
    rt_agent agent = { 0 };
    if (!find_row(a, caller, id, arena, &agent.row, err) ||
        !agents_may(caller, &agent.row, mark_actions[mark], err) ||
        !set_mark(a, &agent, mark, note, arena, err))
        return false;
    uint64_t was_ms = agent.row.updated_ms;
    agent.row.updated_ms = later_than(was_ms);
    if (!rt_agent_update(a->config.store, &agent.row, was_ms, NULL, err))
        return false;
    agents_changed(a, &agent.row);
    return rt_agents_find(a, caller, agent.row.id, (rt_str){ 0 }, arena, out, err);
}
