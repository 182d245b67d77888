/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_minder.c - the one thread of a client: it makes sessions, ends them, and looks after them.
 *
 * It alone makes and ends sessions, so that no caller waits longer than it wants to for a server
 * that is slow to start; callers who need a session say so and wait on a descriptor of their own.
 * It also checks on the server now and then, and tells the registry that tools have changed: from
 * here, because who is told may well ask for the new list.
 *
 * A dead session is dropped at once and buried when the last caller has left it. When a new one
 * cannot be had, the time until the next try doubles.
 */
#include "tools/mcp_client.h"

#include <errno.h>

enum {
    CONNECT_MS = 60000, /* npx may fetch the server first */
    BACKOFF_FIRST_MS = 1000,
    BACKOFF_MAX_MS = 60000,
    CHECK_FIRST_MS = 10000, /* after it was connected to */
    CHECK_TRIES = 3,
    CHECK_PAUSE_MS = 1000,
    CHECK_TIMEOUT_MS = 3000,
    CHANGE_DELAY_MS = 100, /* news come in swarms */
    CHANGE_PAUSE_MS = 1000,
};

/* -- The minder: sessions ---------------------------------------------------------------------- */

/* Under the lock, as are the next three. */
void mcp_minder_serve(mcp_client *c, const rt_error *why)
{
    while (c->waiting) {
        mcp_waiter *w = c->waiting;
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
void mcp_minder_drop(mcp_client *c)
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
            mcp_minder_drop(c);
    } else {
        note_failure(c, &err);
    }
    mcp_minder_serve(c, is_good ? NULL : &err);
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

/* -- The minder: health ------------------------------------------------------------------------ */

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
        mcp_minder_drop(c);
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

/* -- The minder: its rounds -------------------------------------------------------------------- */

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
    mcp_minder_drop(c);
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
            mcp_minder_serve(c, NULL);
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
        mcp_minder_drop(c);
    pthread_mutex_unlock(&c->lock);
}

/* Under the lock. */
bool mcp_minder_ensure(mcp_client *c, rt_error *err)
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
