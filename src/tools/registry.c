/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry.c - providers, and the one list of tools made of theirs.
 *
 * Looking around reads the current catalogue (catalogue.c) and never talks to a provider. When a
 * provider says that its list has changed, a thread of its own asks it for the new one, so a
 * provider that takes its time delays nobody else's list. Calls go straight to the provider, side
 * by side, without a lock; a provider that is removed is closed when its last call has returned.
 *
 * `lock` guards the table of providers and the pointer to the catalogue, never a call to either.
 */
#include <pthread.h>
#include <stdlib.h>

#include "tools/tools_internal.h"

enum { TOOLS_PER_PROVIDER_MAX = 100000, TOOL_NAME_MAX = 100 };

typedef struct entry {
    rt_tools *tools;
    rt_provider *provider;
    tools_list *list;
    size_t users;              /* calls and listings under way */
    bool is_listing, is_stale; /* a thread asks it; it has changed again meanwhile */
    pthread_t thread;          /* that one, or one that has ended */
    bool has_thread;
    bool is_removed;
    rt_error why; /* it could not be listed the last time */
    struct entry *next;
} entry;

struct rt_tools {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* users or is_listing of some provider went down */
    entry *entries;
    tools_list *imports;
    tools_catalogue *catalogue;
    tools_counts *counts;
    tools_lessons *lessons;
    tools_sequences *sequences;
    tools_meaning *meaning; /* NULL: the built-in vectors */
};

/* -- Names ------------------------------------------------------------------------------------- */

bool rt_tool_name_check(rt_str tool, rt_error *err)
{
    static const char *const forbidden[] = { "__proto__",        "constructor",
                                             "prototype",        "__defineGetter__",
                                             "__defineSetter__", "__lookupGetter__",
                                             "__lookupSetter__" };
    if (tool.len == 0 || tool.len > TOOL_NAME_MAX)
        return rt_fail(err, RT_INVALID, "a tool's name has 1 to %d characters", TOOL_NAME_MAX);
    for (size_t i = 0; i < tool.len; i++) {
        char c = tool.ptr[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && !(c >= '0' && c <= '9') && c != '_' && c != '-')
            return rt_fail(err, RT_INVALID,
                           "a tool's name is of letters, digits, '_' and '-' only");
    }
    for (size_t i = 0; i < RT_COUNT(forbidden); i++)
        if (rt_str_find(tool, rt_str_of(forbidden[i])) >= 0)
            return rt_fail(err, RT_INVALID, "a tool's name must not contain %s", forbidden[i]);
    return true;
}

static rt_str own_part(rt_str name, rt_str server)
{
    bool has_server =
        rt_str_starts(name, server) && name.len > server.len && name.ptr[server.len] == ':';
    return has_server ? rt_str_slice(name, server.len + 1, name.len) : name;
}

/* -- Lists ------------------------------------------------------------------------------------- */

/* A tool's version is that of its input: what code was written against. */
static rt_str version_of(const rt_tool *t, rt_arena *arena)
{
    char hex[RT_SHA256_HEX];
    if (t->version.len > 0 || t->input_schema.len == 0)
        return t->version;
    rt_sha256_hex(t->input_schema, hex);
    return rt_arena_str(arena, (rt_str){ hex, 16 });
}

/* Tools whose names will not do are left out: the others are no worse for it. */
static void adopt(tools_list *list, rt_str server, rt_tool *tools, size_t count)
{
    list->tools = rt_arena_alloc(&list->arena, (count + 1) * sizeof(*list->tools));
    for (size_t i = 0; i < count && list->count < TOOLS_PER_PROVIDER_MAX; i++) {
        rt_str own = own_part(tools[i].name, server);
        if (!rt_tool_name_check(own, NULL))
            continue;
        rt_tool *t = &list->tools[list->count++];
        *t = tools[i];
        t->server = rt_arena_str(&list->arena, server);
        t->name = rt_arena_printf(&list->arena, "%.*s:%.*s", RT_FMT(server), RT_FMT(own));
        t->category = t->category.len ? t->category : t->server;
        t->version = version_of(t, &list->arena);
    }
}

static tools_list *ask(rt_provider *provider, rt_error *err)
{
    tools_list *list = tools_list_new();
    rt_tool *tools = NULL;
    size_t count = 0;
    if (!provider->list(provider, &list->arena, &tools, &count, err)) {
        tools_list_drop(list);
        return NULL;
    }
    adopt(list, rt_str_of(provider->name), tools, count);
    return list;
}

/* Under the lock. */
static void publish(rt_tools *t)
{
    size_t count = 0, most = 1;
    for (const entry *e = t->entries; e; e = e->next)
        most++;
    tools_list **lists = calloc(most, sizeof(*lists));
    if (!lists)
        rt_out_of_memory(most * sizeof(*lists));
    if (t->imports)
        lists[count++] = t->imports;
    for (const entry *e = t->entries; e; e = e->next)
        if (e->list && !e->is_removed)
            lists[count++] = e->list;
    tools_catalogue *old = t->catalogue;
    t->catalogue = tools_catalogue_new(lists, count);
    tools_catalogue_dropp(&old);
    free(lists);
}

tools_catalogue *tools_current(rt_tools *t)
{
    pthread_mutex_lock(&t->lock);
    tools_catalogue *c = tools_catalogue_hold(t->catalogue);
    pthread_mutex_unlock(&t->lock);
    return c;
}

/* A list that cannot be had leaves the old one: its calls will say what is wrong. */
static void take_list(entry *e, tools_list *list)
{
    if (!list)
        return;
    tools_list *old = e->list;
    e->list = list;
    publish(e->tools);
    tools_list_drop(old);
}

static void *ask_again(void *ctx)
{
    entry *e = ctx;
    rt_tools *t = e->tools;
    pthread_mutex_lock(&t->lock);
    while (e->is_stale && !e->is_removed) {
        e->is_stale = false;
        pthread_mutex_unlock(&t->lock);
        rt_error why = { 0 };
        tools_list *list = ask(e->provider, &why);
        pthread_mutex_lock(&t->lock);
        e->why = why;
        take_list(e, list);
    }
    e->is_listing = false;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* Under the lock, when it asks no more: all it has left to do is to end. */
static void join_lister(entry *e)
{
    if (e->has_thread)
        pthread_join(e->thread, NULL);
    e->has_thread = false;
}

/* Under the lock. */
static void start_lister(entry *e)
{
    e->is_stale = true;
    if (e->is_listing || e->is_removed)
        return;
    join_lister(e);
    e->has_thread = pthread_create(&e->thread, NULL, ask_again, e) == 0;
    e->is_listing = e->has_thread;
}

static void on_change(void *ctx, rt_provider *provider)
{
    entry *e = ctx;
    (void)provider;
    pthread_mutex_lock(&e->tools->lock);
    start_lister(e);
    pthread_mutex_unlock(&e->tools->lock);
}

/* -- Providers
 * ------------------------------------------------------------------------------------- */

bool rt_tools_open(const rt_tools_config *config, rt_tools **out, rt_error *err)
{
    rt_tools *t RT_CLEANUP(rt_tools_closep) = calloc(1, sizeof(*t));
    if (!t)
        rt_out_of_memory(sizeof(*t));
    pthread_condattr_t clock;
    pthread_mutex_init(&t->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&t->changed, &clock);
    pthread_condattr_destroy(&clock);
    t->counts = tools_counts_new(config->store);
    t->lessons = tools_lessons_new(config->store);
    t->sequences = tools_sequences_new(config->store);
    t->meaning = tools_meaning_new(config->model);
    t->imports = tools_list_new();
    if (!tools_lessons_load(t->lessons, err) || !tools_sequences_load(t->sequences, err) ||
        (config->store && !tools_imports_load(config->store, t->imports, err)))
        return false;
    publish(t);
    *out = RT_TAKE(t);
    return true;
}

static entry *find_entry(rt_tools *t, rt_str name)
{
    for (entry *e = t->entries; e; e = e->next)
        if (!e->is_removed && rt_str_eq_c(name, e->provider->name))
            return e;
    return NULL;
}

bool rt_tools_add(rt_tools *t, rt_provider *provider, rt_error *err)
{
    rt_str name = rt_str_of(provider->name);
    entry *e = calloc(1, sizeof(*e));
    if (!e)
        rt_out_of_memory(sizeof(*e));
    pthread_mutex_lock(&t->lock);
    bool is_new = rt_tool_name_check(name, err);
    if (is_new && find_entry(t, name))
        is_new = rt_fail(err, RT_CONFLICT, "there is a provider '%s' already", provider->name);
    if (is_new) {
        *e = (entry){ .tools = t, .provider = provider, .users = 1, .next = t->entries };
        t->entries = e;
        provider->change_ctx = e;
        provider->on_change = on_change;
    }
    if (is_new && provider->is_remote) {
        e->users = 0;
        start_lister(e);
        pthread_mutex_unlock(&t->lock);
        return true;
    }
    pthread_mutex_unlock(&t->lock);
    if (!is_new) {
        free(e);
        provider->close(provider);
        return false;
    }
    tools_list *list = ask(provider, NULL); /* one that is down may come back, and says so */
    pthread_mutex_lock(&t->lock);
    if (e->list)
        tools_list_drop(list); /* it has changed meanwhile, and what it said then is newer */
    else
        take_list(e, list);
    e->users--;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    return true;
}

/* Under the lock: waits for the provider's calls and listings, then takes it out. */
static void take_out(rt_tools *t, entry *e)
{
    e->is_removed = true;
    publish(t);
    while (e->users > 0 || e->is_listing)
        pthread_cond_wait(&t->changed, &t->lock);
    join_lister(e);
    for (entry **at = &t->entries; *at; at = &(*at)->next)
        if (*at == e) {
            *at = e->next;
            break;
        }
    pthread_mutex_unlock(&t->lock);
    e->provider->close(e->provider);
    tools_list_drop(e->list);
    free(e);
    pthread_mutex_lock(&t->lock);
}

bool rt_tools_remove(rt_tools *t, rt_str provider, rt_error *err)
{
    pthread_mutex_lock(&t->lock);
    entry *e = find_entry(t, provider);
    if (e)
        take_out(t, e);
    pthread_mutex_unlock(&t->lock);
    return e || rt_fail(err, RT_NOT_FOUND, "there is no provider '%.*s'", RT_FMT(provider));
}

void rt_tools_close(rt_tools *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    while (t->entries)
        take_out(t, t->entries);
    pthread_mutex_unlock(&t->lock);
    rt_tools_flush(t, NULL);
    tools_counts_free(t->counts);
    tools_lessons_free(t->lessons);
    tools_sequences_free(t->sequences);
    tools_meaning_free(t->meaning);
    tools_catalogue_dropp(&t->catalogue);
    tools_list_drop(t->imports);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

void rt_tools_closep(rt_tools **t)
{
    rt_tools_close(RT_TAKE(*t));
}

void rt_tools_settle(rt_tools *t)
{
    pthread_mutex_lock(&t->lock);
    for (entry *e = t->entries; e;)
        if (e->is_listing) {
            pthread_cond_wait(&t->changed, &t->lock);
            e = t->entries;
        } else {
            e = e->next;
        }
    pthread_mutex_unlock(&t->lock);
}

/* -- Looking around
 * -------------------------------------------------------------------------------- */

size_t rt_tools_list(rt_tools *t, rt_str category, rt_arena *arena, rt_tool **out)
{
    return rt_tools_list_for(t, (rt_str){ 0 }, category, arena, out);
}

size_t rt_tools_list_for(rt_tools *t, rt_str audience, rt_str category, rt_arena *arena,
                         rt_tool **out)
{
    tools_catalogue *c RT_CLEANUP(tools_catalogue_dropp) = tools_current(t);
    size_t count = 0;
    *out = rt_arena_alloc(arena, (c->count + 1) * sizeof(**out));
    for (size_t i = 0; i < c->count; i++)
        if (tools_is_for(&c->tools[i], audience) &&
            (category.len == 0 || rt_str_eq(category, c->tools[i].category)))
            tools_copy(&c->tools[i], false, arena, &(*out)[count++]);
    return count;
}

static bool not_found(const tools_catalogue *c, rt_str audience, rt_str name, rt_error *err)
{
    rt_nearest near;
    char hint[RT_NEAREST_HINT];
    rt_nearest_start(&near, name);
    for (size_t i = 0; i < c->count; i++)
        if (tools_is_for(&c->tools[i], audience))
            rt_nearest_try(&near, c->tools[i].name);
    return rt_fail(err, RT_NOT_FOUND, "there is no tool '%.*s'%s", (int)RT_MIN(name.len, 100u),
                   name.ptr, rt_nearest_hint(&near, "; search for one", hint));
}

static void copy_whole(rt_tools *t, const rt_tool *tool, rt_arena *arena, rt_tool *out)
{
    tools_copy(tool, true, arena, out);
    if (out->output_schema.len == 0 &&
        tools_lessons_get(t->lessons, tool->name, tool->version, arena, &out->output_schema))
        out->flags |= RT_TOOL_OBSERVED;
}

bool rt_tools_find(rt_tools *t, rt_str name, rt_arena *arena, rt_tool *out, rt_error *err)
{
    return rt_tools_find_for(t, (rt_str){ 0 }, name, arena, out, err);
}

bool rt_tools_find_for(rt_tools *t, rt_str audience, rt_str name, rt_arena *arena, rt_tool *out,
                       rt_error *err)
{
    tools_catalogue *c RT_CLEANUP(tools_catalogue_dropp) = tools_current(t);
    const rt_tool *tool = tools_catalogue_find(c, audience, name);
    if (!tool)
        return not_found(c, audience, name, err);
    copy_whole(t, tool, arena, out);
    return true;
}

static entry *use(rt_tools *t, rt_str server)
{
    pthread_mutex_lock(&t->lock);
    entry *e = find_entry(t, server);
    if (e)
        e->users++;
    pthread_mutex_unlock(&t->lock);
    return e;
}

static void leave(rt_tools *t, entry *e)
{
    pthread_mutex_lock(&t->lock);
    e->users--;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

/* -- What code means ---------------------------------------------------------------------------
 */

/* Under the lock. False: the deadline has passed. */
static bool wait_change(rt_tools *t, uint64_t deadline_ns)
{
    struct timespec until = { .tv_sec = (time_t)(deadline_ns / 1000000000),
                              .tv_nsec = (long)(deadline_ns % 1000000000) };
    return pthread_cond_timedwait(&t->changed, &t->lock, &until) == 0;
}

static entry *mean_entry(rt_tools *t, rt_str server)
{
    for (entry *e = t->entries; e; e = e->next)
        if (!e->is_removed && tools_same_name(rt_str_of(e->provider->name), server))
            return e;
    return NULL;
}

/* A provider that has listed nothing yet is waited for. False: it cannot be had. */
static bool await_list(rt_tools *t, rt_str server, uint64_t deadline_ns, rt_error *err)
{
    bool is_in_time = true;
    pthread_mutex_lock(&t->lock);
    entry *e = mean_entry(t, server);
    if (!e || e->list) {
        pthread_mutex_unlock(&t->lock);
        return true;
    }
    e->users++;
    start_lister(e);
    while (!e->list && e->is_listing && is_in_time)
        is_in_time = wait_change(t, deadline_ns);
    bool is_there = e->list != NULL;
    if (!is_there)
        rt_fail(err, RT_UNAVAILABLE, "the tools of '%s' cannot be had: %s", e->provider->name,
                is_in_time ? e->why.text : "it takes too long to list them");
    e->users--;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    return is_there;
}

static bool find_meant(rt_tools *t, rt_str audience, rt_str written, rt_arena *arena, rt_tool *out,
                       rt_error *err)
{
    tools_catalogue *c RT_CLEANUP(tools_catalogue_dropp) = tools_current(t);
    const rt_tool *tool = tools_catalogue_mean(c, audience, written);
    if (!tool)
        return not_found(c, audience, written, err);
    copy_whole(t, tool, arena, out);
    return true;
}

bool rt_tools_resolve(rt_tools *t, rt_str written, uint64_t deadline_ns, rt_arena *arena,
                      rt_tool *out, rt_error *err)
{
    return rt_tools_resolve_for(t, (rt_str){ 0 }, written, deadline_ns, arena, out, err);
}

bool rt_tools_resolve_for(rt_tools *t, rt_str audience, rt_str written, uint64_t deadline_ns,
                          rt_arena *arena, rt_tool *out, rt_error *err)
{
    rt_str rest = written, server = { 0 };
    if (find_meant(t, audience, written, arena, out, NULL))
        return true;
    rt_str_cut(&rest, ':', &server);
    return await_list(t, server, deadline_ns, err) &&
           find_meant(t, audience, written, arena, out, err);
}

bool rt_tools_gather(rt_tools *t, uint64_t deadline_ns)
{
    bool is_in_time = true;
    pthread_mutex_lock(&t->lock);
    for (entry *e = t->entries; e && is_in_time;) {
        if (e->list || !e->is_listing) {
            e = e->next;
            continue;
        }
        is_in_time = wait_change(t, deadline_ns);
        e = t->entries;
    }
    pthread_mutex_unlock(&t->lock);
    return is_in_time;
}

static int by_text(const void *a, const void *b)
{
    return rt_str_cmp(*(const rt_str *)a, *(const rt_str *)b);
}

size_t rt_tools_servers(rt_tools *t, rt_arena *arena, rt_str **out)
{
    size_t count = 0;
    pthread_mutex_lock(&t->lock);
    for (const entry *e = t->entries; e; e = e->next)
        count += !e->is_removed;
    *out = rt_arena_alloc(arena, (count + 1) * sizeof(**out));
    count = 0;
    for (const entry *e = t->entries; e; e = e->next)
        if (!e->is_removed)
            (*out)[count++] = rt_arena_str(arena, rt_str_of(e->provider->name));
    pthread_mutex_unlock(&t->lock);
    qsort(*out, count, sizeof(**out), by_text);
    return count;
}

void rt_tools_health(rt_tools *t, rt_json_writer *w)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str *names;
    size_t count = rt_tools_servers(t, &arena, &names);
    rt_jw_array(w);
    for (size_t i = 0; i < count; i++) {
        entry *e = use(t, names[i]);
        if (!e)
            continue;
        e->provider->health(e->provider, w);
        leave(t, e);
    }
    rt_jw_end(w);
}

uint64_t rt_tools_fingerprint(rt_tools *t)
{
    pthread_mutex_lock(&t->lock);
    uint64_t fingerprint = t->catalogue->fingerprint;
    pthread_mutex_unlock(&t->lock);
    return fingerprint;
}

/* -- Calling
 * --------------------------------------------------------------------------------------- */

static bool route(rt_tools *t, rt_str audience, rt_str name, rt_str *server, rt_error *err)
{
    tools_catalogue *c RT_CLEANUP(tools_catalogue_dropp) = tools_current(t);
    rt_str rest = name;
    const rt_tool *tool = tools_catalogue_find(c, audience, name);
    if (!tool)
        return not_found(c, audience, name, err);
    return rt_str_cut(&rest, ':', server);
}

/* What is learnt of a tool is told to all, so only of one that is for all. */
static bool is_common(rt_tools *t, const rt_tool_call *call)
{
    tools_catalogue *c RT_CLEANUP(tools_catalogue_dropp) = tools_current(t);
    const rt_tool *tool = tools_catalogue_find(c, call->organisation_id, call->tool);
    return tool && tool->audience.len == 0;
}

bool rt_tools_call(rt_tools *t, const rt_tool_call *call, rt_arena *arena, rt_tool_result *out,
                   rt_error *err)
{
    rt_str server;
    if (!route(t, call->organisation_id, call->tool, &server, err))
        return false;
    entry *e = use(t, server);
    if (!e)
        return rt_fail(err, RT_UNSUPPORTED,
                       "'%.*s' is known from a file only: nobody here provides it",
                       (int)RT_MIN(call->tool.len, 100u), call->tool.ptr);
    uint64_t began = rt_now_ns();
    bool is_answered = e->provider->call(e->provider, call, arena, out, err);
    uint64_t elapsed_us = (rt_now_ns() - began) / 1000;
    leave(t, e);
    if (is_answered && out->elapsed_us == 0)
        out->elapsed_us = elapsed_us;
    tools_counts_add(t->counts, call->tool, elapsed_us, !is_answered || out->is_error);
    if (is_answered && !out->is_error && is_common(t, call)) {
        rt_tools_observe(t, call->tool, out->value);
        tools_sequences_add(t->sequences, call->run, call->tool);
    }
    return is_answered;
}

void rt_tools_observe(rt_tools *t, rt_str name, rt_str value)
{
    tools_catalogue *c RT_CLEANUP(tools_catalogue_dropp) = tools_current(t);
    const rt_tool *tool = tools_catalogue_find(c, (rt_str){ 0 }, name);
    if (tool && tool->output_schema.len == 0)
        tools_lessons_observe(t->lessons, name, tool->version, value);
}

void rt_tools_used(rt_tools *t, rt_str name, uint64_t elapsed_us, bool is_failure)
{
    tools_counts_add(t->counts, name, elapsed_us, is_failure);
}

bool rt_tools_usage(rt_tools *t, rt_str name, rt_tool_usage *out, rt_error *err)
{
    return tools_counts_get(t->counts, name, out, err);
}

bool rt_tools_flush(rt_tools *t, rt_error *err)
{
    return tools_counts_flush(t->counts, err) && tools_lessons_flush(t->lessons, err) &&
           tools_sequences_flush(t->sequences, err);
}

/* -- For look.c -------------------------------------------------------------------------------- */

const rt_search *tools_index_of(rt_tools *t, tools_catalogue *catalogue)
{
    return tools_catalogue_search(catalogue, t->counts, tools_meaning_embedder(t->meaning));
}

tools_sequences *tools_sequences_of(rt_tools *t)
{
    return t->sequences;
}
