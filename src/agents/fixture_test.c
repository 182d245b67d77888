/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/fixture_test.h"

#include <stdio.h>

static rt_str env_text(const rt_policy *policy, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    for (size_t i = 0; i < policy->env_count; i++)
        rt_buf_addf(&text, "%.*s=%.*s ", RT_FMT(policy->env[i].name), RT_FMT(policy->env[i].value));
    return rt_arena_str(arena, rt_buf_str(&text));
}

static bool execute(rt_runtime *self, const rt_run *run, rt_arena *arena, rt_outcome *out,
                    rt_error *err)
{
    agents_fixture *f = (agents_fixture *)((char *)self - offsetof(agents_fixture, runtime));
    (void)err;
    f->code = rt_arena_str(&f->arena, run->code);
    f->input = rt_arena_str(&f->arena, run->input);
    f->env = env_text(run->policy, &f->arena);
    f->imports = (rt_str){ 0 };
    for (size_t i = 0; i < run->policy->import_count; i++)
        f->imports = rt_arena_printf(&f->arena, "%.*s%.*s ", RT_FMT(f->imports),
                                     RT_FMT(run->policy->imports[i]));
    *out = (rt_outcome){ .language = run->language,
                         .runtime = RT_STR("scripted"),
                         .has_value = f->failure.len == 0,
                         .is_parsed = true,
                         .value = f->answer.len > 0 ? f->answer : rt_arena_str(arena, run->input),
                         .wall_us = 1000 };
    if (f->failure.len > 0) {
        out->status = RT_STATUS_FAILED;
        out->has_error = true;
        out->error = (rt_code_error){ .type = RT_STR("RuntimeError"),
                                      .name = RT_STR("ValueError"),
                                      .message = f->failure,
                                      .line = 3,
                                      .stack = RT_STR("File \"main.py\", line 3, in <module>\n") };
    }
    return true;
}

static size_t languages(rt_runtime *self, rt_arena *arena, rt_language *out, size_t max)
{
    (void)self, (void)arena, (void)max;
    out[0] = *rt_language_find(RT_STR("python"));
    return 1;
}

static bool validate(rt_runtime *self, rt_str code, rt_str language, rt_arena *arena,
                     rt_verdict *out, rt_error *err)
{
    (void)self, (void)code, (void)language, (void)arena, (void)err;
    *out = (rt_verdict){ .is_implemented = true, .risks = RT_STR("[]") };
    return true;
}

static void close_nothing(rt_runtime *self)
{
    (void)self;
}

static rt_caller caller(const char *organisation, const char *user, rt_role role)
{
    return (rt_caller){ .organisation_id = rt_str_of(organisation),
                        .workspace_id = rt_str_of(organisation),
                        .user_id = rt_str_of(user),
                        .actor_type = RT_STR("user"),
                        .role = role };
}

static void add_rival(agents_fixture *f)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_key_spec spec = { .name = RT_STR("k"),
                         .organisation = RT_STR("rival"),
                         .workspace = RT_STR("rival"),
                         .user = RT_STR("eve"),
                         .role = RT_ROLE_ADMIN };
    rt_key key;
    rt_str secret;
    cr_assert(rt_key_create(f->where->store, &spec, &arena, &key, &secret, &err), "%s", err.text);
    f->eve = caller("", "", RT_ROLE_ADMIN);
    f->eve.organisation_id = rt_arena_str(&f->arena, key.organisation_id);
    f->eve.workspace_id = rt_arena_str(&f->arena, key.workspace_id);
    f->eve.user_id = rt_arena_str(&f->arena, key.user_id);
}

void agents_fixture_open(agents_fixture *f, store_fixture *where)
{
    rt_error err = { 0 };
    *f = (agents_fixture){ .where = where,
                           .runtime = { .name = "scripted",
                                        .execute = execute,
                                        .validate = validate,
                                        .languages = languages,
                                        .close = close_nothing },
                           .ann = caller("local", "ann", RT_ROLE_MEMBER),
                           .bob = caller("local", "bob", RT_ROLE_ADMIN),
                           .root = caller("local", "local", RT_ROLE_OWNER) };
    rt_str key = rt_arena_printf(&f->arena, "%s/vault.key", where->directory);
    rt_str shelf = rt_arena_printf(&f->arena, "%s/artifacts", where->directory);
    rt_str objects = rt_arena_printf(&f->arena, "%s/objects", where->directory);
    cr_assert(rt_vault_open(key.ptr, &f->vault, &err), "%s", err.text);
    f->objects = (rt_objects){ objects.ptr, f->vault };
    rt_shelf_config shelf_config = {
        .store = where->store, .vault = f->vault, .directory = shelf.ptr, .host = RT_STR("here")
    };
    cr_assert(rt_shelf_open(&shelf_config, &f->shelf, &err), "%s", err.text);
    cr_assert(rt_cache_open(&(rt_cache_config){ 0 }, &f->cache, &err), "%s", err.text);
    cr_assert(rt_telemetry_open(&(rt_telemetry_config){ 0 }, &f->telemetry, &err), "%s", err.text);
    rt_engine_config config = { .runtime = &f->runtime,
                                .store = where->store,
                                .vault = f->vault,
                                .shelf = f->shelf,
                                .cache = f->cache,
                                .telemetry = f->telemetry,
                                .host = RT_STR("here") };
    cr_assert(rt_engine_open(&config, &f->engine, &err), "%s", err.text);
    f->agents = rt_agents_new(&(rt_agents_config){
        .store = where->store, .vault = f->vault, .objects = &f->objects, .engine = f->engine });
    add_rival(f);
}

void agents_fixture_done(agents_fixture *f)
{
    rt_agents_free(f->agents);
    if (f->engine)
        rt_engine_stop(f->engine, 0);
    rt_engine_close(f->engine);
    rt_telemetry_close(f->telemetry);
    rt_cache_close(f->cache);
    rt_shelf_close(f->shelf);
    rt_vault_close(f->vault);
    rt_arena_done(&f->arena);
}

rt_json agents_fixture_json(agents_fixture *f, const char *text)
{
    rt_error err = { 0 };
    rt_json out;
    cr_assert(rt_json_parse(rt_str_of(text), &f->arena, &out, &err), "%s", err.text);
    return out;
}

rt_agent agents_fixture_make(agents_fixture *f, const char *body)
{
    rt_error err = { 0 };
    rt_agent agent;
    cr_assert(
        rt_agents_create(f->agents, &f->ann, agents_fixture_json(f, body), &f->arena, &agent, &err),
        "%s", err.text);
    return agent;
}
