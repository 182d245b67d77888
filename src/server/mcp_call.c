/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_call.c - one request of a client, from when it was read until it is answered.
 *
 * A call is held by the thread that works on it, by the connection that waits for it, and by nobody
 * else: the list of calls under way only knows of it. Whatever the outcome, the answer is written
 * here, with what the era wants in every one.
 */
#include <stdio.h>
#include <stdlib.h>

#include "server/mcp.h"

#define STACK_BYTES ((size_t)512 << 10)
#define TTL_MS      60000 /* how long a client may keep lists; ours change with the program */

/* ---- the house ---- */

mcp *mcp_new(const rt_server_config *config)
{
    mcp *m = calloc(1, sizeof(*m));
    if (!m)
        rt_out_of_memory(sizeof(*m));
    m->config = config;
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->is_idle, NULL);
    return m;
}

void mcp_stop(mcp *m)
{
    pthread_mutex_lock(&m->lock);
    m->is_stopping = true;
    for (mcp_call *c = m->calls; c; c = c->next)
        if (c->is_listening)
            rt_canceller_cancel(&c->canceller);
    for (mcp_peer *p = m->peers; p; p = mcp_peer_next(p))
        mcp_peer_hush(p);
    pthread_mutex_unlock(&m->lock);
}

bool mcp_is_busy(mcp *m)
{
    pthread_mutex_lock(&m->lock);
    bool is_busy = m->thread_count > 0;
    pthread_mutex_unlock(&m->lock);
    return is_busy;
}

void mcp_free(mcp *m)
{
    if (!m)
        return;
    mcp_stop(m);
    pthread_mutex_lock(&m->lock);
    for (mcp_call *c = m->calls; c; c = c->next)
        mcp_call_cancel(c);
    while (m->thread_count > 0)
        pthread_cond_wait(&m->is_idle, &m->lock);
    mcp_peer *first = m->peers;
    pthread_mutex_unlock(&m->lock);
    for (; first; first = m->peers) /* nobody else is here any more */
        mcp_peer_close(first);
    pthread_cond_destroy(&m->is_idle);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

/* ---- its life ---- */

mcp_call *mcp_call_new(mcp *m, const rt_caller *who)
{
    mcp_call *c = calloc(1, sizeof(*c));
    if (!c)
        rt_out_of_memory(sizeof(*c));
    rt_str *const texts[] = { &c->caller.organisation_id, &c->caller.workspace_id,
                              &c->caller.user_id,         &c->caller.key_id,
                              &c->caller.actor_type,      &c->caller.address };
    c->mcp = m;
    c->holders = 1;
    c->level = MCP_QUIET;
    c->version = rt_mcp_version_newest(RT_MCP_LEGACY);
    c->caller = *who;
    c->agents = m->config->mcp_agents;
    for (size_t i = 0; i < RT_COUNT(texts); i++)
        *texts[i] = rt_arena_str(&c->arena, *texts[i]);
    rt_canceller_init(&c->canceller);
    return c;
}

mcp_call *mcp_call_keep(mcp_call *c)
{
    pthread_mutex_lock(&c->mcp->lock);
    c->holders++;
    pthread_mutex_unlock(&c->mcp->lock);
    return c;
}

void mcp_call_release(mcp_call *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->mcp->lock);
    bool is_last = --c->holders == 0;
    pthread_mutex_unlock(&c->mcp->lock);
    if (!is_last)
        return;
    mcp_peer_release(c->peer);
    rt_canceller_done(&c->canceller);
    rt_arena_done(&c->arena);
    free(c);
}

void mcp_call_releasep(mcp_call **c)
{
    mcp_call_release(*c);
}

bool mcp_call_enlist(mcp_call *c)
{
    mcp *m = c->mcp;
    pthread_mutex_lock(&m->lock);
    bool is_room = m->call_count < MCP_CALLS_MAX;
    if (is_room) {
        c->next = m->calls;
        if (c->next)
            c->next->previous = c;
        m->calls = c;
        m->call_count++;
        c->is_enlisted = true;
    }
    pthread_mutex_unlock(&m->lock);
    return is_room || mcp_fail(c, RT_MCP_INTERNAL_ERROR, (rt_str){ 0 },
                               "more than %d requests are under way; try again", MCP_CALLS_MAX);
}

void mcp_call_delist(mcp_call *c)
{
    mcp *m = c->mcp;
    pthread_mutex_lock(&m->lock);
    if (c->next)
        c->next->previous = c->previous;
    if (c->previous)
        c->previous->next = c->next;
    else
        m->calls = c->next;
    c->next = c->previous = NULL;
    c->is_enlisted = false;
    m->call_count--;
    pthread_mutex_unlock(&m->lock);
}

void mcp_call_cancel(mcp_call *c)
{
    atomic_store(&c->is_cancelled, true);
    rt_canceller_cancel(&c->canceller);
    if (c->peer)
        mcp_peer_nudge(c->peer);
}

/* ---- a thread of its own ---- */

typedef struct work {
    mcp_call *call;
    void (*done)(mcp_call *c, void *ctx);
    void *ctx;
} work;

static void *run(void *arg)
{
    work *job = arg;
    mcp *m = job->call->mcp;
    mcp_call_answer(job->call);
    job->done(job->call, job->ctx);
    mcp_call_release(job->call);
    free(job);
    pthread_mutex_lock(&m->lock);
    if (--m->thread_count == 0)
        pthread_cond_broadcast(&m->is_idle);
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

static bool start_thread(work *job)
{
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    int failed = pthread_create(&thread, &attr, run, job);
    pthread_attr_destroy(&attr);
    return failed == 0;
}

/* It is on the list before this returns: the next message may be the one that cancels it. */
bool mcp_call_start(mcp_call *c, void (*done)(mcp_call *c, void *ctx), void *ctx)
{
    mcp *m = c->mcp;
    if (!mcp_call_enlist(c))
        return false;
    work *job = malloc(sizeof(*job));
    if (!job)
        rt_out_of_memory(sizeof(*job));
    *job = (work){ mcp_call_keep(c), done, ctx };
    pthread_mutex_lock(&m->lock);
    m->thread_count++;
    pthread_mutex_unlock(&m->lock);
    if (start_thread(job))
        return true;
    free(job);
    mcp_call_delist(c);
    mcp_call_release(c);
    pthread_mutex_lock(&m->lock);
    if (--m->thread_count == 0)
        pthread_cond_broadcast(&m->is_idle);
    pthread_mutex_unlock(&m->lock);
    return mcp_fail(c, RT_MCP_INTERNAL_ERROR, (rt_str){ 0 }, "no thread for this; try again");
}

/* ---- failing ---- */

bool mcp_fail(mcp_call *c, int code, rt_str data, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(c->failure.text, sizeof(c->failure.text), fmt, args);
    va_end(args);
    c->failure.code = code;
    c->failure.data = data;
    return false;
}

/* What the caller can mend is about its parameters; the rest is ours. */
bool mcp_fail_error(mcp_call *c, const rt_error *err)
{
    switch (err->code) {
    case RT_INVALID:
    case RT_DENIED:
    case RT_NOT_FOUND:
    case RT_CONFLICT:
    case RT_LIMIT:
    case RT_UNSUPPORTED:
        return mcp_fail(c, RT_MCP_INVALID_PARAMS, (rt_str){ 0 }, "%s", err->text);
    case RT_SYSTEM:
    case RT_INTERNAL:
        rt_log(RT_LOG_ERROR, "mcp: %.*s: %s", RT_FMT(c->method), err->text);
        return mcp_fail(c, RT_MCP_INTERNAL_ERROR, (rt_str){ 0 },
                        "something went wrong on our side; the server's log has it");
    default:
        return mcp_fail(c, RT_MCP_INTERNAL_ERROR, (rt_str){ 0 }, "%s", err->text);
    }
}

/* ---- answering ---- */

static void write_hints(const mcp_call *c, rt_json_writer *w)
{
    bool is_input_required = c->result_type != NULL;
    if (!(c->row->flags & MCP_CACHED) || is_input_required)
        return;
    bool is_live = strncmp(c->row->name, "resources/", 10) == 0;
    rt_jw_ku64(w, "ttlMs", is_live ? 0 : TTL_MS);
    rt_jw_kstr(w, "cacheScope", RT_STR("private"));
}

static void write_modern(const mcp_call *c, rt_json_writer *w)
{
    rt_jw_kstr(w, "resultType", rt_str_of(c->result_type ? c->result_type : "complete"));
    write_hints(c, w);
    rt_jw_kobject(w, "_meta");
    if (c->is_listening)
        rt_jw_kraw(w, RT_MCP_META_SUBSCRIPTION, c->id);
    rt_jw_key(w, RT_STR(RT_MCP_META_SERVER));
    mcp_write_server_info(c->mcp, w);
    rt_jw_end(w);
}

static bool write_result(mcp_call *c, rt_buf *result)
{
    rt_json_writer w;
    rt_error err = { 0 };
    rt_json_begin(&w, result);
    rt_jw_object(&w);
    if (!c->row->answer(c, &w))
        return false;
    if (mcp_is_modern(c))
        write_modern(c, &w);
    rt_jw_end(&w);
    return rt_buf_ok(result, &err) || mcp_fail_error(c, &err);
}

/* Of an answer that is not 200. */
static unsigned status_of(const mcp_call *c)
{
    if (c->failure.status)
        return c->failure.status;
    switch (c->failure.code) {
    case RT_MCP_PARSE_ERROR:
    case RT_MCP_INVALID_REQUEST:
        return 400;
    case RT_MCP_METHOD_NOT_FOUND: /* to a legacy client, 404 would mean that its session is gone */
        return mcp_is_modern(c) ? 404 : 200;
    case RT_MCP_HEADER_MISMATCH:
    case RT_MCP_MISSING_CAPABILITY:
    case RT_MCP_UNSUPPORTED_VERSION:
        return 400;
    default:
        return 200;
    }
}

static void send_failure(mcp_call *c)
{
    rt_buf message RT_CLEANUP(rt_buf_done) = { 0 };
    rt_mcp_write_error(&message, c->id, c->failure.code, rt_str_of(c->failure.text),
                       c->failure.data);
    c->send(c->send_ctx, rt_buf_str(&message), status_of(c));
}

static void send_result(mcp_call *c, rt_str result)
{
    rt_buf message RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf_init(&message, 2 * MCP_MESSAGE_MAX);
    rt_mcp_write_result(&message, c->id, result);
    c->send(c->send_ctx, rt_buf_str(&message), 200);
}

void mcp_call_answer(mcp_call *c)
{
    rt_buf result RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf_init(&result, MCP_MESSAGE_MAX);
    bool ok = c->failure.code == 0 && (c->is_enlisted || mcp_call_enlist(c));
    if (ok)
        ok = write_result(c, &result);
    if (c->is_enlisted)
        mcp_call_delist(c);
    if (atomic_load(&c->is_cancelled))
        return;
    if (ok)
        send_result(c, rt_buf_str(&result));
    else
        send_failure(c);
}

/* ---- while it is under way ---- */

static const char *const levels[] = { "debug", "info",     "notice", "warning",
                                      "error", "critical", "alert",  "emergency" };

int mcp_level_find(rt_str name)
{
    for (size_t i = 0; i < RT_COUNT(levels); i++)
        if (rt_str_eq_c(name, levels[i]))
            return (int)i;
    return -1;
}

static void begin_notification(rt_json_writer *w, rt_buf *message, const char *method)
{
    rt_json_begin(w, message);
    rt_jw_object(w);
    rt_jw_kstr(w, "jsonrpc", RT_STR("2.0"));
    rt_jw_kstr(w, "method", rt_str_of(method));
    rt_jw_kobject(w, "params");
}

static void send_notification(mcp_call *c, rt_json_writer *w, rt_buf *message)
{
    rt_jw_end(w);
    rt_jw_end(w);
    if (!atomic_load(&c->is_cancelled))
        c->send(c->send_ctx, rt_buf_str(message), 0);
}

void mcp_log(mcp_call *c, mcp_level level, const char *logger, rt_str text)
{
    rt_buf message RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    if ((int)level < c->level)
        return;
    begin_notification(&w, &message, "notifications/message");
    rt_jw_kstr(&w, "level", rt_str_of(levels[level]));
    rt_jw_kstr(&w, "logger", rt_str_of(logger));
    rt_jw_kstr(&w, "data", text);
    send_notification(c, &w, &message);
}

void mcp_progress(mcp_call *c, double done, double total, rt_str text)
{
    rt_buf message RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    if (c->progress_token.len == 0)
        return;
    begin_notification(&w, &message, "notifications/progress");
    rt_jw_kraw(&w, "progressToken", c->progress_token);
    rt_jw_kdouble(&w, "progress", done);
    if (total > 0)
        rt_jw_kdouble(&w, "total", total);
    if (text.len > 0)
        rt_jw_kstr(&w, "message", text);
    send_notification(c, &w, &message);
}

bool mcp_can(const mcp_call *c, const char *capability)
{
    return rt_json_type(rt_json_get_c(c->capabilities, capability)) == RT_JSON_OBJECT;
}

/* ---- what has changed ---- */

static const struct {
    const char *method;
    size_t wanted; /* where a listener says so */
} changes[] = {
    [MCP_TOOLS_CHANGED] = { "notifications/tools/list_changed", offsetof(mcp_call, wanted.tools) },
    [MCP_PROMPTS_CHANGED] = { "notifications/prompts/list_changed",
                              offsetof(mcp_call, wanted.prompts) },
    [MCP_RESOURCES_CHANGED] = { "notifications/resources/list_changed",
                                offsetof(mcp_call, wanted.resources) },
};

static void tell_listener(mcp_call *c, const char *method)
{
    rt_buf message RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    begin_notification(&w, &message, method);
    rt_jw_kobject(&w, "_meta");
    rt_jw_kraw(&w, RT_MCP_META_SUBSCRIPTION, c->id);
    rt_jw_end(&w);
    send_notification(c, &w, &message);
}

void mcp_changed(mcp *m, mcp_change what)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str message =
        rt_arena_printf(&arena, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\"}", changes[what].method);
    pthread_mutex_lock(&m->lock);
    for (mcp_call *c = m->calls; c; c = c->next)
        if (c->is_listening && *(bool *)((char *)c + changes[what].wanted))
            tell_listener(c, changes[what].method);
    for (mcp_peer *p = m->peers; p; p = mcp_peer_next(p))
        mcp_peer_tell(p, message);
    pthread_mutex_unlock(&m->lock);
}
