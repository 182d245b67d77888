/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_client.c - one configured server as a provider: there when needed, minded while it lives.
 *
 * The minder is the client's one thread. It alone makes and ends sessions, so that no caller waits
 * longer than it wants to for a server that is slow to start; callers who need a session say so and
 * wait on a descriptor of their own. It also checks on the server now and then, and tells the
 * registry that tools have changed: from here, because who is told may well ask for the new list.
 *
 * A dead session is dropped at once and buried when the last caller has left it. The next call
 * makes a new one; when that fails, callers get the reason at once until it is time to try again,
 * and the time between doubles.
 *
 * The lock guards what is between its line and the next. It is held for moments, never for
 * messages.
 */
#include "tools/mcp_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    CONNECT_MS = 60000, /* npx may fetch the server first */
    BACKOFF_FIRST_MS = 1000,
    BACKOFF_MAX_MS = 60000,
    CHECK_INTERVAL_MS = 5 * 60 * 1000,
    CHECK_FIRST_MS = 10000, /* after it was connected to */
    CHECK_TRIES = 3,
    CHECK_PAUSE_MS = 1000,
    CHECK_TIMEOUT_MS = 3000,
    DEGRADED_MS = 1000,
    CHANGE_DELAY_MS = 100, /* news come in swarms */
    CHANGE_PAUSE_MS = 1000,
    PATIENCE_FACTOR = 10, /* progress may stretch a call's time-out to so many times itself */
};

typedef struct waiter {
    int wake;
    bool is_served; /* there is a session, or a reason why not */
    rt_error why;
    struct waiter *next;
} waiter;

struct mcp_client {
    rt_provider provider; /* first: the registry knows us by it */
    rt_arena arena;
    rt_mcp_config config;
    mcp_limiter *limiter; /* NULL: no limit */
    mcp_oauth *oauth;     /* NULL: none */
    pthread_t minder;
    mcp_verdict verdict; /* the minder's */

    pthread_mutex_t lock; /* for what follows, up to the next line */
    pthread_cond_t stir;  /* the minder */
    bool has_minder, is_closing, is_connecting;
    mcp_session *session, *dead;
    mcp_link *opening; /* of the session that is being made */
    waiter *waiting;
    uint64_t retry_at_ns, check_at_ns, change_at_ns, changed_ns; /* 0: not */
    unsigned failures;                                           /* to connect, in a row */
    rt_error why;                                                /* the last one's reason */
    bool is_known, is_down;
    uint64_t latency_ns, checked_at_ms;
    uint64_t session_count, call_count, error_count, tool_count, skipped_count, broken_count;
    char server_name[MCP_SHOWN_SIZE], server_version[MCP_SHOWN_SIZE], protocol[16];

    pthread_mutex_t mirror_lock; /* for what follows */
    rt_arena mirror_arena;
    mcp_tool_list mirrors; /* of the newest list */
    bool has_mirrors;
};

const rt_mcp_config *mcp_client_config(const mcp_client *client)
{
    return &client->config;
}

mcp_verdict *mcp_client_verdict(mcp_client *client)
{
    return &client->verdict;
}

mcp_oauth *mcp_client_oauth(mcp_client *client)
{
    return client->oauth;
}

static bool wrap(const mcp_client *c, rt_error *err)
{
    return rt_wrap(err, "MCP server %s", c->provider.name);
}

/* -- The minder: sessions -------------------------------------------------------------------------
 */

/* Under the lock, as are the next three. */
static void serve_waiting(mcp_client *c, const rt_error *why)
{
    while (c->waiting) {
        waiter *w = c->waiting;
        c->waiting = w->next;
        w->is_served = true;
        if (why)
            w->why = *why;
        mcp_wake(w->wake);
    }
}

static uint64_t backoff_ms(unsigned failures)
{
    uint64_t ms = (uint64_t)BACKOFF_FIRST_MS << RT_MIN(failures - 1, 16U);
    return RT_MIN(ms, (uint64_t)BACKOFF_MAX_MS);
}

static void note_session(mcp_client *c, mcp_session *s)
{
    c->session = s;
    c->retry_at_ns = 0;
    c->is_known = true;
    c->is_down = false;
    c->check_at_ns =
        rt_now_ns() + RT_MIN((uint64_t)CHECK_FIRST_MS, c->config.check_interval_ms) * MCP_MS;
    if (c->session_count++ > 0)
        c->change_at_ns = rt_now_ns() + CHANGE_DELAY_MS * MCP_MS; /* a new one may have others */
    memcpy(c->server_name, s->server_name, sizeof(c->server_name));
    memcpy(c->server_version, s->server_version, sizeof(c->server_version));
    snprintf(c->protocol, sizeof(c->protocol), "%s", s->version->name);
}

static void note_failure(mcp_client *c, const rt_error *why)
{
    c->failures++;
    c->why = *why;
    c->is_known = true;
    c->is_down = true;
    c->retry_at_ns = rt_now_ns() + backoff_ms(c->failures) * MCP_MS;
}

/* One that never did anything for us counts as one that could not be had. */
static void drop_session(mcp_client *c)
{
    mcp_session *s = c->session;
    if (!s)
        return;
    if (!s->has_worked && s->link->is_dead)
        note_failure(
            c, &(rt_error){ .code = RT_UNAVAILABLE, .text = "it ended as soon as it was started" });
    c->broken_count += s->link->broken_count;
    s->is_patient |= !s->link->is_dead;
    s->next_dead = c->dead;
    c->dead = s;
    c->session = NULL;
    pthread_cond_signal(&c->stir);
}

bool mcp_client_opening(mcp_client *c, mcp_link *link)
{
    pthread_mutex_lock(&c->lock);
    bool is_open = !c->is_closing;
    c->opening = link;
    pthread_mutex_unlock(&c->lock);
    return is_open;
}

/* Under the lock, which it gives up meanwhile. */
static void connect_now(mcp_client *c)
{
    mcp_session *s = NULL;
    rt_error err = { 0 };
    uint64_t start = rt_now_ns();
    c->is_connecting = true;
    pthread_mutex_unlock(&c->lock);
    bool is_good = mcp_session_open(c, start + CONNECT_MS * MCP_MS, &s, &err);
    pthread_mutex_lock(&c->lock);
    c->is_connecting = false;
    c->checked_at_ms = rt_wall_ms();
    if (is_good) {
        note_session(c, s);
        c->latency_ns = 0; /* how long it takes to start says nothing about how fast it is */
        if (s->link->is_dead)
            drop_session(c);
    } else {
        note_failure(c, &err);
    }
    serve_waiting(c, is_good ? NULL : &err);
}

/* Under the lock, which it gives up meanwhile. */
static void bury(mcp_client *c)
{
    for (mcp_session **at = &c->dead; *at;) {
        mcp_session *s = *at;
        if (s->users) {
            at = &s->next_dead;
            continue;
        }
        *at = s->next_dead;
        pthread_mutex_unlock(&c->lock);
        mcp_session_close(s, s->is_patient);
        pthread_mutex_lock(&c->lock);
        at = &c->dead; /* there may be others by now */
    }
}

/* -- The minder: health ---------------------------------------------------------------------------
 */

static void wait_until(mcp_client *c, uint64_t when_ns)
{
    struct timespec when = { (time_t)(when_ns / MCP_SECOND), (long)(when_ns % MCP_SECOND) };
    pthread_cond_timedwait(&c->stir, &c->lock, &when);
}

/* Under the lock, which it gives up meanwhile. False: we are closing. */
static bool pause_check(mcp_client *c)
{
    uint64_t until = rt_now_ns() + CHECK_PAUSE_MS * MCP_MS;
    while (!c->is_closing && rt_now_ns() < until)
        wait_until(c, until);
    return !c->is_closing;
}

static bool check_once(mcp_client *c, mcp_session *s, rt_error *err)
{
    uint64_t start = rt_now_ns();
    mcp_patience p = { .deadline_ns = start + CHECK_TIMEOUT_MS * MCP_MS, .cancel_fd = -1 };
    s->users++;
    pthread_mutex_unlock(&c->lock);
    bool is_good = mcp_session_ping(s, &p, err);
    pthread_mutex_lock(&c->lock);
    s->users--;
    if (is_good)
        c->latency_ns = rt_now_ns() - start;
    return is_good;
}

/* One that does not answer although nobody keeps it busy is given up; the next call starts another.
 */
static void check_session(mcp_client *c)
{
    rt_error err = { 0 };
    mcp_session *s = c->session;
    for (unsigned i = 0; i < CHECK_TRIES && c->session == s && !c->is_closing; i++) {
        if (i > 0 && (!pause_check(c) || c->session != s))
            return;
        if (check_once(c, s, &err)) {
            c->is_down = false;
            return;
        }
    }
    if (c->is_closing || c->session != s)
        return;
    c->is_down = true;
    c->why = err;
    if (s->users == 0)
        drop_session(c);
}

static void check(mcp_client *c)
{
    for (unsigned i = 0; i < CHECK_TRIES && !c->session && !c->is_closing; i++)
        if (i == 0 || pause_check(c))
            connect_now(c);
    if (c->session)
        check_session(c);
    c->checked_at_ms = rt_wall_ms();
    c->check_at_ns = rt_now_ns() + c->config.check_interval_ms * MCP_MS;
}

/* -- The minder: its rounds
 * ------------------------------------------------------------------------- */

/* Under the lock, which it gives up meanwhile. */
static void tell_change(mcp_client *c)
{
    c->change_at_ns = 0;
    c->changed_ns = rt_now_ns();
    pthread_mutex_unlock(&c->lock);
    if (c->provider.on_change)
        c->provider.on_change(c->provider.change_ctx, &c->provider);
    pthread_mutex_lock(&c->lock);
}

static bool has_burial(const mcp_client *c)
{
    for (const mcp_session *s = c->dead; s; s = s->next_dead)
        if (s->users == 0)
            return true;
    return false;
}

static bool is_due(uint64_t moment_ns)
{
    return moment_ns && rt_now_ns() >= moment_ns;
}

/* Here, not where we are closed from: the kernel ends processes with the thread that began them. */
static void bury_all(mcp_client *c)
{
    drop_session(c);
    while (c->dead) {
        bury(c);
        if (c->dead)
            pthread_cond_wait(&c->stir, &c->lock);
    }
}

static void *minder_run(void *arg)
{
    mcp_client *c = arg;
    pthread_mutex_lock(&c->lock);
    while (!c->is_closing) {
        if (has_burial(c))
            bury(c);
        else if (c->waiting && !c->session)
            connect_now(c);
        else if (c->waiting)
            serve_waiting(c, NULL);
        else if (is_due(c->change_at_ns))
            tell_change(c);
        else if (is_due(c->check_at_ns))
            check(c);
        else
            wait_until(c,
                       c->change_at_ns ? RT_MIN(c->change_at_ns, c->check_at_ns) : c->check_at_ns);
    }
    bury_all(c);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

void mcp_client_changed(mcp_client *c)
{
    pthread_mutex_lock(&c->lock);
    uint64_t now = rt_now_ns();
    if (c->change_at_ns == 0)
        c->change_at_ns =
            RT_MAX(now + CHANGE_DELAY_MS * MCP_MS, c->changed_ns + CHANGE_PAUSE_MS * MCP_MS);
    pthread_cond_signal(&c->stir);
    pthread_mutex_unlock(&c->lock);
}

void mcp_client_lost(mcp_client *c, const mcp_session *session)
{
    pthread_mutex_lock(&c->lock);
    if (c->session == session)
        drop_session(c);
    pthread_mutex_unlock(&c->lock);
}

/* -- Having a session
 * ------------------------------------------------------------------------------- */

/* Under the lock. */
static bool ensure_minder(mcp_client *c, rt_error *err)
{
    if (c->is_closing)
        return rt_fail(err, RT_UNAVAILABLE, "it is being closed");
    if (c->has_minder)
        return true;
    c->check_at_ns = rt_now_ns() + c->config.check_interval_ms * MCP_MS;
    int code = pthread_create(&c->minder, NULL, minder_run, c);
    errno = code;
    c->has_minder = code == 0;
    return c->has_minder || rt_fail_errno(err, "a thread for it");
}

static bool is_backing_off(mcp_client *c, rt_error *err)
{
    uint64_t now = rt_now_ns();
    if (c->session || c->is_connecting || c->retry_at_ns <= now)
        return false;
    *err = c->why;
    rt_wrap(err, "tried again in %llu s",
            (unsigned long long)((c->retry_at_ns - now) / MCP_SECOND + 1));
    return true;
}

static void leave_queue(mcp_client *c, waiter *w)
{
    for (waiter **at = &c->waiting; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            return;
        }
}

/* Under the lock, which it gives up meanwhile. */
static bool await_session(mcp_client *c, const mcp_patience *p, rt_error *err)
{
    waiter w = { .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .next = c->waiting };
    if (w.wake < 0)
        return rt_fail_errno(err, "a descriptor to wait on");
    c->waiting = &w;
    pthread_cond_signal(&c->stir);
    pthread_mutex_unlock(&c->lock);
    mcp_woken woken = mcp_wait(w.wake, p->cancel_fd, p->deadline_ns);
    pthread_mutex_lock(&c->lock);
    leave_queue(c, &w);
    close(w.wake);
    if (w.is_served) {
        *err = w.why;
        return w.why.code == RT_OK;
    }
    if (woken == MCP_WOKEN_BY_SECOND)
        return rt_fail(err, RT_CANCELLED, "the call was cancelled");
    return rt_fail(err, RT_TIMEOUT, "it was not ready in time; it is still being started");
}

static bool enter(mcp_client *c, const mcp_patience *p, mcp_session **out, rt_error *err)
{
    bool is_good = true;
    pthread_mutex_lock(&c->lock);
    while (is_good && !c->session)
        is_good = ensure_minder(c, err) && !is_backing_off(c, err) && await_session(c, p, err);
    if (is_good && c->is_closing)
        is_good = rt_fail(err, RT_UNAVAILABLE, "it is being closed");
    if (is_good) {
        c->session->users++;
        *out = c->session;
    }
    pthread_mutex_unlock(&c->lock);
    return is_good;
}

static void leave(mcp_client *c, mcp_session *s, bool is_expired)
{
    pthread_mutex_lock(&c->lock);
    if (c->session == s && (s->link->is_dead || is_expired))
        drop_session(c);
    if (--s->users == 0)
        pthread_cond_broadcast(&c->stir);
    pthread_mutex_unlock(&c->lock);
}

static void note_work(mcp_client *c, mcp_session *s, bool has_worked)
{
    if (!has_worked)
        return;
    pthread_mutex_lock(&c->lock);
    s->has_worked = true;
    c->failures = 0;
    pthread_mutex_unlock(&c->lock);
}

/*
 * Do it in a session; a second time when the first one was over before it had heard of us, and when
 * `again` says so.
 */
typedef struct errand {
    bool (*run)(mcp_session *s, mcp_patience *p, struct errand *e, rt_error *err);
    bool (*again)(mcp_client *c, const mcp_patience *p, struct errand *e);
    rt_arena *arena;
    const rt_tool_call *call; /* what of these is needed */
    rt_str name, method, params;
    rt_tool_result *result;
    rt_tool **tools;
    size_t *count;
    rt_str *answer;
} errand;

static bool run_errand(mcp_client *c, errand *e, mcp_patience *p, rt_error *err)
{
    for (unsigned tries = 0;; tries++) {
        mcp_session *s;
        *err = (rt_error){ 0 };
        if (!enter(c, p, &s, err))
            return wrap(c, err);
        p->was_sent = p->is_expired = false;
        p->rpc_code = 0;
        bool is_good = e->run(s, p, e, err);
        note_work(c, s, is_good || p->rpc_code != 0);
        bool is_stale = !is_good && (p->is_expired || (!p->was_sent && s->link->is_dead));
        bool is_effect_unknown = !is_good && p->was_sent && s->link->is_dead;
        leave(c, s, p->is_expired);
        if (is_good)
            return true;
        if (tries == 0 && (is_stale || (e->again && e->again(c, p, e))))
            continue;
        if (is_effect_unknown)
            rt_wrap(err, "it is gone, and whether the call took effect is not known");
        return wrap(c, err);
    }
}

static mcp_patience patience_for(const mcp_client *c, const rt_tool_call *call)
{
    uint64_t now = rt_now_ns(), own = c->config.timeout_ms * MCP_MS;
    mcp_patience p = { .deadline_ns = now + own, .cancel_fd = -1 };
    if (!call)
        return p;
    p.cancel_fd = call->cancel_fd;
    p.on_progress = call->on_progress;
    p.progress_ctx = call->progress_ctx;
    p.traceparent = call->traceparent;
    if (call->deadline_ns) {
        p.deadline_ns = call->deadline_ns;
    } else {
        p.idle_ns = own;
        p.latest_ns = now + own * PATIENCE_FACTOR;
    }
    return p;
}

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

static bool run_list(mcp_session *s, mcp_patience *p, errand *e, rt_error *err)
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
    mcp_patience p = patience_for(c, NULL);
    errand e = { .run = run_list, .arena = arena, .tools = out, .count = count };
    return run_errand(c, &e, &p, err ? err : &own);
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
    errand list = { .arena = &arena };
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

static bool run_call(mcp_session *s, mcp_patience *p, errand *e, rt_error *err)
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
static bool call_again(mcp_client *c, const mcp_patience *p, errand *e)
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
    if (when > now && mcp_wait(p->cancel_fd, -1, when) == MCP_WOKEN_BY_FIRST)
        return rt_fail(err, RT_CANCELLED, "the call was cancelled");
    return true;
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

static bool client_call(rt_provider *self, const rt_tool_call *call, rt_arena *arena,
                        rt_tool_result *out, rt_error *err)
{
    mcp_client *c = (mcp_client *)self;
    rt_error own = { 0 };
    uint64_t start = rt_now_ns();
    mcp_patience p = patience_for(c, call);
    rt_tool_result result = { 0 };
    errand e = {
        .run = run_call, .again = call_again, .arena = arena, .call = call, .result = &result
    };
    if (!err)
        err = &own;
    if (!own_name(c, call->tool, &e.name, err) || !await_turn(c, call->tool, &p, err))
        return wrap(c, err);
    bool is_good = run_errand(c, &e, &p, err);
    count_call(c, is_good);
    if (!is_good)
        return false;
    result.elapsed_us = (rt_now_ns() - start) / 1000;
    *out = result;
    return true;
}

/* -- Any other request
 * ------------------------------------------------------------------------------ */

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

static bool run_request(mcp_session *s, mcp_patience *p, errand *e, rt_error *err)
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
    mcp_patience p = patience_for(c, call);
    errand e = {
        .run = run_request, .arena = arena, .method = method, .params = params, .answer = result
    };
    return run_errand(c, &e, &p, err ? err : &own);
}

/* -- Health ------------------------------------------------------------------------------------ */

static const char *status_of(const mcp_client *c)
{
    if (!c->is_known || c->is_down)
        return "down";
    return c->latency_ns > DEGRADED_MS * MCP_MS ? "degraded" : "healthy";
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

/* -- Opening and closing
 * ----------------------------------------------------------------------------- */

static bool check_header(const rt_mcp_pair *pair, rt_error *err)
{
    char shown[MCP_SHOWN_SIZE];
    for (size_t i = 0; i < pair->name.len; i++)
        if (pair->name.ptr[i] <= ' ' || pair->name.ptr[i] == ':' || pair->name.ptr[i] == 0x7f)
            return rt_fail(err, RT_INVALID, "the header name %s", mcp_show(pair->name, shown));
    for (size_t i = 0; i < pair->value.len; i++)
        if ((uint8_t)pair->value.ptr[i] < ' ' && pair->value.ptr[i] != '\t')
            return rt_fail(err, RT_INVALID, "the value of the header %s has a control character",
                           mcp_show(pair->name, shown));
    return pair->name.len > 0 || rt_fail(err, RT_INVALID, "a header without a name");
}

static bool check_pairs(const rt_mcp_config *config, rt_error *err)
{
    char shown[MCP_SHOWN_SIZE];
    for (size_t i = 0; i < config->headers.count; i++)
        if (!check_header(&config->headers.items[i], err))
            return false;
    for (size_t i = 0; i < config->env.count; i++) {
        rt_str name = config->env.items[i].name;
        if (name.len == 0 || memchr(name.ptr, '=', name.len) || memchr(name.ptr, '\0', name.len))
            return rt_fail(err, RT_INVALID, "there can be no variable named \"%s\"",
                           mcp_show(name, shown));
    }
    return true;
}

bool mcp_config_check(const rt_mcp_config *config, rt_error *err)
{
    bool has_command = config->command && config->command[0], has_url = config->url != NULL;
    if (!mcp_name_check(config->name, err))
        return false;
    if (has_command && has_url)
        return rt_fail(err, RT_INVALID, "it has a command and a url; it can have but one of them");
    if (!has_command && !has_url)
        return rt_fail(err, RT_INVALID, "it has neither a command nor a url");
    if (has_url && strncmp(config->url, "http://", 7) != 0 &&
        strncmp(config->url, "https://", 8) != 0)
        return rt_fail(err, RT_INVALID, "its url does not begin with http:// or https://");
    return check_pairs(config, err);
}

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
    to->check_interval_ms = from->check_interval_ms ? from->check_interval_ms : CHECK_INTERVAL_MS;
    to->rate_limit = from->rate_limit ? from->rate_limit : RT_MCP_RATE_DEFAULT;
}

bool rt_mcp_open(const rt_mcp_config *config, rt_provider **out, rt_error *err)
{
    pthread_condattr_t clock;
    if (!mcp_config_check(config, err))
        return rt_wrap(err, "MCP server");
    mcp_client *c = calloc(1, sizeof(*c));
    if (!c)
        rt_out_of_memory(sizeof(*c));
    copy_config(c, config);
    c->provider = (rt_provider){
        .list = client_list, .call = client_call, .health = client_health, .close = client_close
    };
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
    pthread_cond_broadcast(&c->stir);
    serve_waiting(c, &why);
    if (c->session) {
        c->session->is_patient = !c->session->link->is_dead;
        c->session->link->kind->shut(c->session->link);
    }
    if (c->opening)
        c->opening->kind->shut(c->opening);
    pthread_mutex_unlock(&c->lock);
    if (c->has_minder)
        pthread_join(c->minder, NULL);
}

static void client_close(rt_provider *self)
{
    mcp_client *c = (mcp_client *)self;
    empty_out(c);
    mcp_limiter_free(c->limiter);
    mcp_oauth_free(c->oauth);
    rt_arena_done(&c->mirror_arena);
    pthread_cond_destroy(&c->stir);
    pthread_mutex_destroy(&c->mirror_lock);
    pthread_mutex_destroy(&c->lock);
    rt_arena_done(&c->arena);
    free(c);
}
