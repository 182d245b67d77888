/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consult.c - the cache: has this very question been answered?
 *
 * The key is the hash of everything the answer can depend on: organisation, language and runtime
 * version, code, input, policy, environment, tools (check.c). Only successes are kept, only of
 * fresh cells, and none that left artifacts (they expire on their own), was refused something on
 * the way or called a tool that may have changed something. What is kept is the answer's text up to
 * its last member, which says whether it is cached.
 */
#include "engine/engine_internal.h"

#include <string.h>

/* Another interpreter may give another answer. Asking for versions waits until all are warm, which
 * only those pay for who want the cache. */
static rt_str runtime_version(rt_engine *e)
{
    rt_language languages[RT_LANGUAGES_OURS];
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    pthread_mutex_lock(&e->lock);
    if (e->runtime_version.len == 0) {
        size_t count = rt_engine_languages(e, &e->arena, languages, RT_COUNT(languages));
        rt_buf_addf(&text, "%s " RETORT_VERSION, e->config.runtime->name);
        for (size_t i = 0; i < count; i++)
            rt_buf_addf(&text, " %s %.*s", languages[i].name, RT_FMT(languages[i].version));
        e->runtime_version = rt_arena_str(&e->arena, rt_buf_str(&text));
    }
    pthread_mutex_unlock(&e->lock);
    return e->runtime_version;
}

/* The tools there are, and those that code may call: with others it may answer otherwise. */
static rt_str describe_tools(const passage *p)
{
    rt_tools *tools = p->engine->config.tools;
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    if (!tools)
        return (rt_str){ 0 };
    rt_buf_addf(&text, "%llx %d", (unsigned long long)rt_tools_fingerprint(tools),
                p->grant.is_narrowed);
    for (size_t i = 0; i < p->grant.wished.count; i++)
        rt_buf_addf(&text, " %.*s", RT_FMT(p->grant.wished.items[i]));
    return rt_arena_str(p->arena, rt_buf_str(&text));
}

static void make_key(passage *p)
{
    if (p->request->cache == RT_CACHE_BYPASS || p->request->session_id.len > 0)
        return;
    rt_str parts[] = { rt_str_of(p->request_hash), runtime_version(p->engine), describe_tools(p),
                       rt_language_mark(p->language, p->arena) };
    engine_hash(parts, RT_COUNT(parts), p->cache_key);
}

static const rt_str fresh_end = { ENGINE_FRESH_END, sizeof(ENGINE_FRESH_END) - 1 };
static const rt_str cached_end = { ENGINE_CACHED_END, sizeof(ENGINE_CACHED_END) - 1 };

bool engine_consult(passage *p, rt_error *err)
{
    (void)err;
    rt_telemetry *t = p->engine->config.telemetry;
    rt_str kept;
    make_key(p);
    if (!p->cache_key[0]) {
        rt_metric_add(t, RT_METRIC_CACHE, (const char *[]){ "bypass" }, 1);
        return true;
    }
    if (p->request->cache == RT_CACHE_REFRESH || p->is_reserved ||
        !rt_cache_get(p->engine->config.cache, rt_str_of(p->cache_key), p->arena, &kept)) {
        rt_metric_add(t, RT_METRIC_CACHE, (const char *[]){ "miss" }, 1);
        return true;
    }
    rt_metric_add(t, RT_METRIC_CACHE, (const char *[]){ "hit" }, 1);
    rt_str rest = rt_str_slice(kept, sizeof("{\"id\":\"") - 1, kept.len), id = { 0 };
    rt_str_cut(&rest, '"', &id);
    char *json = rt_arena_alloc_raw(p->arena, kept.len + cached_end.len);
    memcpy(json, kept.ptr, kept.len);
    memcpy(json + kept.len, cached_end.ptr, cached_end.len);
    *p->answer = (rt_answer){ .id = id,
                              .status = RT_STATUS_SUCCESS,
                              .is_cached = true,
                              .json = { json, kept.len + cached_end.len } };
    p->is_answered = true;
    return true;
}

bool engine_keep(passage *p, rt_error *err)
{
    (void)err;
    const rt_outcome *o = &p->outcome;
    rt_str json = p->answer->json;
    bool is_worth = p->cache_key[0] && !engine_is_private(p) && o->status == RT_STATUS_SUCCESS &&
                    !p->calls.has_effects && p->calls.failures == 0 && o->artifact_count == 0 &&
                    p->handles.len == 0 && o->denials_seen == 0;
    char tag[RT_SHA256_HEX];
    if (!is_worth || !rt_str_ends(json, fresh_end))
        return true;
    engine_user_tag(p->request->caller.organisation_id, engine_user(p->request), tag);
    rt_cache_put(p->engine->config.cache, rt_str_of(p->cache_key),
                 rt_str_slice(json, 0, json.len - fresh_end.len), (rt_str[]){ rt_str_of(tag) }, 1,
                 o->wall_us);
    return true;
}
