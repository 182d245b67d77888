/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_client.c - letting callers into a session, and a second time when the first was over too
 * soon.
 *
 * Who comes while a server cannot be had gets the reason at once, until it is time to try again.
 */
#include "tools/mcp_client.h"

#include <sys/eventfd.h>
#include <unistd.h>

enum { PATIENCE_FACTOR = 10 }; /* progress may stretch a call's time-out to so many times itself */

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

bool mcp_client_wrap(const mcp_client *c, rt_error *err)
{
    return rt_wrap(err, "MCP server %s", c->provider.name);
}

void mcp_client_come_in(mcp_client *c)
{
    pthread_mutex_lock(&c->lock);
    c->inside++;
    pthread_mutex_unlock(&c->lock);
}

void mcp_client_go_out(mcp_client *c)
{
    pthread_mutex_lock(&c->lock);
    if (--c->inside == 0)
        pthread_cond_broadcast(&c->empty);
    pthread_mutex_unlock(&c->lock);
}

/* -- Having a session -------------------------------------------------------------------------- */

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

static void leave_queue(mcp_client *c, mcp_waiter *w)
{
    for (mcp_waiter **at = &c->waiting; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            return;
        }
}

/* Under the lock, which it gives up meanwhile. */
static bool await_session(mcp_client *c, const mcp_patience *p, rt_error *err)
{
    mcp_waiter w = { .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .next = c->waiting };
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
        is_good = mcp_minder_ensure(c, err) && !is_backing_off(c, err) && await_session(c, p, err);
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
        mcp_minder_drop(c);
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

bool mcp_client_run(mcp_client *c, mcp_errand *e, mcp_patience *p, rt_error *err)
{
    for (unsigned tries = 0;; tries++) {
        mcp_session *s;
        *err = (rt_error){ 0 };
        if (!enter(c, p, &s, err))
            return mcp_client_wrap(c, err);
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
        return mcp_client_wrap(c, err);
    }
}

mcp_patience mcp_client_patience(const mcp_client *c, const rt_tool_call *call)
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
