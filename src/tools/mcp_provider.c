/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_provider.c - a server as the registry sees it: its tools, calls, health.
 */
#include "tools/mcp_client.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/eventfd.h>

/* -- Listing ----------------------------------------------------------------------------------- */

static void copy_mirrors(rt_arena *arena, const mcp_tool_list *from, mcp_tool_list *out)
{
    *out = (mcp_tool_list){
        .tools = rt_arena_alloc(arena, (from->count + 1) * sizeof(rt_tool)),
        .mirrors = rt_arena_alloc(arena, (from->count + 1) * sizeof(mcp_mirror *)),
    };
    for (size_t i = 0; i < from->count; i++) {
        mcp_mirror **tail = &out->mirrors[out->count];
        if (!from->mirrors[i])
            continue;
        out->tools[out->count].name = rt_arena_str(arena, from->tools[i].name);
        for (const mcp_mirror *m = from->mirrors[i]; m; m = m->next) {
            rt_str *path = rt_arena_alloc(arena, m->depth * sizeof(*path));
            for (size_t k = 0; k < m->depth; k++)
                path[k] = rt_arena_str(arena, m->path[k]);
            *tail = rt_arena_alloc(arena, sizeof(**tail));
            **tail = (mcp_mirror){ .header = rt_arena_str(arena, m->header),
                                   .path = path,
                                   .depth = m->depth };
            tail = &(*tail)->next;
        }
        out->count++;
    }
}

static void keep_list(mcp_client *c, const mcp_tool_list *list)
{
    pthread_mutex_lock(&c->lock);
    c->tool_count = list->count;
    c->skipped_count = list->skipped;
    pthread_mutex_unlock(&c->lock);
    if (!c->config.url)
        return;
    pthread_mutex_lock(&c->mirror_lock);
    rt_arena_done(&c->mirror_arena);
    copy_mirrors(&c->mirror_arena, list, &c->mirrors);
    c->has_mirrors = true;
    pthread_mutex_unlock(&c->mirror_lock);
}

static bool run_list(mcp_session *s, mcp_patience *p, mcp_errand *e, rt_error *err)
{
    mcp_tool_list list = { 0 };
    bool is_good = mcp_tools_list(s, p, e->arena, &list, err);
    /* Some have tools and do not say so; some have none and say that they know no such method. */
    if (!is_good && (s->has_tools || p->rpc_code == 0))
        return false;
    keep_list(s->client, &list);
    if (e->tools) {
        *e->tools = list.tools;
        *e->count = list.count;
    }
    return true;
}

static bool client_list(rt_provider *self, rt_arena *arena, rt_tool **out, size_t *count,
                        rt_error *err)
{
    mcp_client *c = (mcp_client *)self;
    rt_error own = { 0 };
    mcp_patience p = mcp_client_patience(c, NULL);
    mcp_errand e = { .run = run_list, .arena = arena, .tools = out, .count = count };
    mcp_client_come_in(c);
    bool is_good = mcp_client_run(c, &e, &p, err ? err : &own);
    mcp_client_go_out(c);
    return is_good;
}

/* -- Calling ----------------------------------------------------------------------------------- */

static bool is_mirrored_here(mcp_client *c, const mcp_session *s)
{
    return c->config.url && s->version->era == RT_MCP_MODERN;
}

static bool find_headers(mcp_client *c, rt_str tool, rt_str arguments, rt_arena *arena,
                         const char *const **out, rt_error *err)
{
    bool is_good = true;
    pthread_mutex_lock(&c->mirror_lock);
    for (size_t i = 0; i < c->mirrors.count && is_good; i++)
        if (rt_str_eq(c->mirrors.tools[i].name, tool))
            is_good = mcp_mirror_lines(c->mirrors.mirrors[i], arguments, arena, out, err);
    pthread_mutex_unlock(&c->mirror_lock);
    return is_good;
}

static bool know_mirrors(mcp_session *s, mcp_patience *p, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    mcp_patience listing = { .deadline_ns = p->deadline_ns, .cancel_fd = p->cancel_fd };
    mcp_errand list = { .arena = &arena };
    pthread_mutex_lock(&s->client->mirror_lock);
    bool is_known = s->client->has_mirrors;
    pthread_mutex_unlock(&s->client->mirror_lock);
    return is_known || run_list(s, &listing, &list, err);
}

static void put_call(rt_buf *out, rt_str name, rt_str arguments)
{
    rt_json_writer w;
    rt_buf_add(out, RT_STR("\"name\":"));
    rt_json_begin(&w, out);
    rt_jw_str(&w, name);
    rt_buf_add(out, RT_STR(",\"arguments\":"));
    rt_buf_add(out, arguments.len ? arguments : RT_STR("{}"));
}

static bool run_call(mcp_session *s, mcp_patience *p, mcp_errand *e, rt_error *err)
{
    rt_arena scratch RT_CLEANUP(rt_arena_done) = { 0 };
    rt_buf members RT_CLEANUP(rt_buf_done) = { .max = MCP_MESSAGE_MAX };
    mcp_reply reply RT_CLEANUP(mcp_reply_done) = { 0 };
    mcp_request request = { .method = RT_STR("tools/call"), .name = e->name };
    rt_json result;
    if (is_mirrored_here(s->client, s) &&
        (!know_mirrors(s, p, err) || !find_headers(s->client, e->call->tool, e->call->arguments,
                                                   &scratch, &request.headers, err)))
        return false;
    put_call(&members, e->name, e->call->arguments);
    if (!rt_buf_ok(&members, err))
        return rt_wrap(err, "the arguments");
    request.members = rt_buf_str(&members);
    if (!mcp_session_request(s, &request, p, &reply, &scratch, &result, err))
        return false;
    mcp_result_read(reply.message.result, result, e->arena, e->result);
    return true;
}

/* The server wants other headers than those we know of: its list is newer than ours. */
static bool call_again(mcp_client *c, const mcp_patience *p, mcp_errand *e)
{
    (void)e;
    if (p->rpc_code != RT_MCP_HEADER_MISMATCH)
        return false;
    pthread_mutex_lock(&c->mirror_lock);
    c->has_mirrors = false;
    pthread_mutex_unlock(&c->mirror_lock);
    return true;
}

static bool await_turn(mcp_client *c, rt_str tool, const mcp_patience *p, rt_error *err)
{
    char shown[MCP_SHOWN_SIZE];
    uint64_t now = rt_now_ns();
    if (!c->limiter)
        return true;
    uint64_t when = mcp_limiter_take(c->limiter, tool, now, p->deadline_ns);
    if (when == 0)
        return rt_fail(err, RT_TOO_MANY,
                       "%s may be called %u times a second, and its turn would come too late; call "
                       "it less often, or raise rate_limit",
                       mcp_show(tool, shown), c->config.rate_limit);
    if (when == now)
        return true;
    switch (mcp_wait(c->close_fd, p->cancel_fd, when)) {
    case MCP_WOKEN_BY_FIRST:
        return rt_fail(err, RT_UNAVAILABLE, "it is being closed");
    case MCP_WOKEN_BY_SECOND:
        return rt_fail(err, RT_CANCELLED, "the call was cancelled");
    default:
        return true;
    }
}

static bool own_name(const mcp_client *c, rt_str tool, rt_str *out, rt_error *err)
{
    char shown[MCP_SHOWN_SIZE];
    size_t prefix = strlen(c->provider.name);
    if (tool.len < prefix + 2 || memcmp(tool.ptr, c->provider.name, prefix) != 0 ||
        tool.ptr[prefix] != ':')
        return rt_fail(err, RT_NOT_FOUND, "%s is none of its tools", mcp_show(tool, shown));
    *out = rt_str_slice(tool, prefix + 1, tool.len);
    return true;
}

static void count_call(mcp_client *c, bool is_good)
{
    pthread_mutex_lock(&c->lock);
    c->call_count++;
    c->error_count += !is_good;
    pthread_mutex_unlock(&c->lock);
}

static bool call_inside(mcp_client *c, const rt_tool_call *call, rt_arena *arena,
                        rt_tool_result *out, rt_error *err)
{
    uint64_t start = rt_now_ns();
    mcp_patience p = mcp_client_patience(c, call);
    rt_tool_result result = { 0 };
    mcp_errand e = {
        .run = run_call, .again = call_again, .arena = arena, .call = call, .result = &result
    };
    if (!own_name(c, call->tool, &e.name, err) || !await_turn(c, call->tool, &p, err))
        return mcp_client_wrap(c, err);
    bool is_good = mcp_client_run(c, &e, &p, err);
    count_call(c, is_good);
    if (!is_good)
        return false;
    result.elapsed_us = (rt_now_ns() - start) / 1000;
    *out = result;
    return true;
}

static bool client_call(rt_provider *self, const rt_tool_call *call, rt_arena *arena,
                        rt_tool_result *out, rt_error *err)
{
    mcp_client *c = (mcp_client *)self;
    rt_error own = { 0 };
    mcp_client_come_in(c);
    bool is_good = call_inside(c, call, arena, out, err ? err : &own);
    mcp_client_go_out(c);
    return is_good;
}

/* -- Any other request ------------------------------------------------------------------------- */

static rt_str name_of(rt_str method, rt_json params)
{
    if (rt_str_eq_c(method, "resources/read"))
        return rt_json_str(rt_json_get_c(params, "uri"));
    if (rt_str_eq_c(method, "prompts/get") || rt_str_eq_c(method, "tools/call"))
        return rt_json_str(rt_json_get_c(params, "name"));
    return (rt_str){ "", 0 };
}

static void put_members(rt_buf *out, rt_json params)
{
    rt_json_iter it = rt_json_each(params);
    rt_str key;
    rt_json value;
    while (rt_json_next(&it, &key, &value)) {
        rt_json_writer w;
        if (rt_str_eq_c(key, "_meta"))
            continue; /* ours */
        if (out->len)
            rt_buf_addc(out, ',');
        rt_json_begin(&w, out);
        rt_jw_str(&w, key);
        rt_buf_addc(out, ':');
        rt_json_print(value, out);
    }
}

static bool run_request(mcp_session *s, mcp_patience *p, mcp_errand *e, rt_error *err)
{
    rt_arena scratch RT_CLEANUP(rt_arena_done) = { 0 };
    rt_buf members RT_CLEANUP(rt_buf_done) = { .max = MCP_MESSAGE_MAX };
    mcp_reply reply RT_CLEANUP(mcp_reply_done) = { 0 };
    rt_json params = { 0 }, result;
    if (e->params.len && !rt_json_parse(e->params, &scratch, &params, err))
        return rt_wrap(err, "the params");
    if (rt_json_type(params) != RT_JSON_OBJECT && rt_json_type(params) != RT_JSON_ABSENT)
        return rt_fail(err, RT_INVALID, "the params are no object");
    put_members(&members, params);
    if (!rt_buf_ok(&members, err))
        return rt_wrap(err, "the params");
    mcp_request request = { .method = e->method,
                            .members = rt_buf_str(&members),
                            .name = name_of(e->method, params) };
    if (!mcp_session_request(s, &request, p, &reply, &scratch, &result, err))
        return false;
    *e->answer = rt_arena_str(e->arena, reply.message.result);
    return true;
}

static void client_close(rt_provider *self);

bool rt_mcp_request(rt_provider *provider, rt_str method, rt_str params, const rt_tool_call *call,
                    rt_arena *arena, rt_str *result, rt_error *err)
{
    mcp_client *c = (mcp_client *)provider;
    rt_error own = { 0 };
    assert(provider->close == client_close); /* it is one of ours */
    mcp_patience p = mcp_client_patience(c, call);
    mcp_errand e = {
        .run = run_request, .arena = arena, .method = method, .params = params, .answer = result
    };
    mcp_client_come_in(c);
    bool is_good = mcp_client_run(c, &e, &p, err ? err : &own);
    mcp_client_go_out(c);
    return is_good;
}

/* -- Health ------------------------------------------------------------------------------------ */

static const char *status_of(const mcp_client *c)
{
    if (!c->is_known || c->is_down)
        return "down";
    return c->latency_ns > MCP_DEGRADED_MS * MCP_MS ? "degraded" : "healthy";
}

static void client_health(rt_provider *self, rt_json_writer *w)
{
    mcp_client *c = (mcp_client *)self;
    char at[RT_ISO8601_SIZE];
    pthread_mutex_lock(&c->lock);
    rt_jw_object(w);
    rt_jw_kstr(w, "server", rt_str_of(c->provider.name));
    rt_jw_kstr(w, "status", rt_str_of(status_of(c)));
    rt_jw_kstr(w, "transport", c->config.url ? RT_STR("http") : RT_STR("stdio"));
    rt_jw_kbool(w, "connected", c->session != NULL);
    if (c->latency_ns)
        rt_jw_kdouble(w, "latency_ms", (double)(c->latency_ns / 1000) / 1000);
    if (c->checked_at_ms) {
        rt_iso8601_write(at, c->checked_at_ms);
        rt_jw_kstr(w, "checked_at", rt_str_of(at));
    }
    if (c->protocol[0]) {
        rt_jw_kstr(w, "protocol", rt_str_of(c->protocol));
        rt_jw_kobject(w, "server_info");
        rt_jw_kstr(w, "name", rt_str_of(c->server_name));
        rt_jw_kstr(w, "version", rt_str_of(c->server_version));
        rt_jw_end(w);
    }
    rt_jw_ku64(w, "tools", c->tool_count);
    rt_jw_ku64(w, "skipped_tools", c->skipped_count);
    rt_jw_ku64(w, "calls", c->call_count);
    rt_jw_ku64(w, "errors", c->error_count);
    rt_jw_ku64(w, "restarts", c->session_count ? c->session_count - 1 : 0);
    rt_jw_ku64(w, "broken_messages",
               c->broken_count + (c->session ? c->session->link->broken_count : 0));
    if (!c->is_known)
        rt_jw_kstr(w, "error", RT_STR("it has not been needed yet"));
    else if (c->is_down)
        rt_jw_kstr(w, "error", rt_str_of(c->why.text));
    rt_jw_end(w);
    pthread_mutex_unlock(&c->lock);
}

/* -- Opening and closing ----------------------------------------------------------------------- */

static rt_mcp_pairs copy_pairs(const rt_mcp_pairs *from, rt_arena *arena)
{
    rt_mcp_pair *items = rt_arena_alloc(arena, (from->count + 1) * sizeof(*items));
    for (size_t i = 0; i < from->count; i++)
        items[i] = (rt_mcp_pair){ rt_arena_str(arena, from->items[i].name),
                                  rt_arena_str(arena, from->items[i].value) };
    return (rt_mcp_pairs){ items, from->count };
}

static const char *const *copy_list(const char *const *from, rt_arena *arena)
{
    size_t count = 0;
    while (from && from[count])
        count++;
    const char **list = rt_arena_alloc(arena, (count + 1) * sizeof(*list));
    for (size_t i = 0; i < count; i++)
        list[i] = rt_arena_copy(arena, rt_str_of(from[i]));
    return list;
}

static const char *copy_text(const char *from, rt_arena *arena)
{
    return from ? rt_arena_copy(arena, rt_str_of(from)) : NULL;
}

static void copy_config(mcp_client *c, const rt_mcp_config *from)
{
    rt_arena *arena = &c->arena;
    rt_mcp_config *to = &c->config;
    *to = *from;
    to->name = rt_arena_str(arena, from->name);
    to->command = copy_text(from->command, arena);
    to->args = copy_list(from->args, arena);
    to->env = copy_pairs(&from->env, arena);
    to->cwd = copy_text(from->cwd, arena);
    to->url = copy_text(from->url, arena);
    to->headers = copy_pairs(&from->headers, arena);
    rt_str *texts[] = { &to->oauth.client_id,      &to->oauth.client_secret,
                        &to->oauth.redirect_uri,   &to->oauth.client_metadata_url,
                        &to->oauth.scope,          &to->protocol_version,
                        &to->answerer.capabilities };
    for (size_t i = 0; i < RT_COUNT(texts); i++)
        *texts[i] = rt_arena_str(arena, *texts[i]);
    to->environ = copy_list(from->environ, arena);
    to->timeout_ms = from->timeout_ms ? from->timeout_ms : RT_MCP_TIMEOUT_MS_DEFAULT;
    to->check_interval_ms =
        from->check_interval_ms ? from->check_interval_ms : MCP_CHECK_INTERVAL_MS;
    to->rate_limit = from->rate_limit ? from->rate_limit : RT_MCP_RATE_DEFAULT;
}

bool rt_mcp_open(const rt_mcp_config *config, rt_provider **out, rt_error *err)
{
    pthread_condattr_t clock;
    if (!mcp_config_check(config, err))
        return rt_wrap(err, "MCP server");
    int close_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (close_fd < 0)
        return rt_fail_errno(err, "a descriptor to wait on");
    mcp_client *c = calloc(1, sizeof(*c));
    if (!c)
        rt_out_of_memory(sizeof(*c));
    copy_config(c, config);
    c->close_fd = close_fd;
    c->provider = (rt_provider){ .list = client_list,
                                 .call = client_call,
                                 .health = client_health,
                                 .close = client_close,
                                 .is_remote = true };
    snprintf(c->provider.name, sizeof(c->provider.name), "%.*s", RT_FMT(config->name));
    if (!config->has_no_rate_limit)
        c->limiter = mcp_limiter_new(c->config.rate_limit);
    if (config->url && (config->oauth.authorize || config->oauth.client_secret.len))
        c->oauth = mcp_oauth_new(&c->config);
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->mirror_lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&c->stir, &clock);
    pthread_cond_init(&c->empty, NULL);
    pthread_condattr_destroy(&clock);
    *out = &c->provider;
    return true;
}

/* Whoever is in a session is told, and leaves; then the minder ends it. */
static void empty_out(mcp_client *c)
{
    rt_error why = { .code = RT_UNAVAILABLE, .text = "it is being closed" };
    pthread_mutex_lock(&c->lock);
    c->is_closing = true;
    mcp_wake(c->close_fd);
    pthread_cond_broadcast(&c->stir);
    mcp_minder_serve(c, &why);
    if (c->session) {
        c->session->is_patient = !c->session->link->is_dead;
        c->session->link->kind->shut(c->session->link);
    }
    if (c->opening)
        c->opening->kind->shut(c->opening);
    pthread_mutex_unlock(&c->lock);
    if (c->has_minder)
        pthread_join(c->minder, NULL);
    pthread_mutex_lock(&c->lock);
    while (c->inside)
        pthread_cond_wait(&c->empty, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

static void client_close(rt_provider *self)
{
    mcp_client *c = (mcp_client *)self;
    empty_out(c);
    mcp_limiter_free(c->limiter);
    mcp_oauth_free(c->oauth);
    rt_arena_done(&c->mirror_arena);
    pthread_cond_destroy(&c->stir);
    pthread_cond_destroy(&c->empty);
    rt_closep(&c->close_fd);
    pthread_mutex_destroy(&c->mirror_lock);
    pthread_mutex_destroy(&c->lock);
    rt_arena_done(&c->arena);
    free(c);
}
