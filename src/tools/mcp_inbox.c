/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_inbox.c - requests that wait for their answers, on links where answers come in any order.
 *
 * The link's own thread hears messages and puts each where it belongs; callers wait on a descriptor
 * of their own beside the one that cancels them. What takes long is done by the callers: judging
 * their answer, telling progress, and answering what the server asks back (an errand), which only
 * makes sense while one of them waits.
 */
#include "tools/mcp_internal.h"

#include <sys/eventfd.h>
#include <unistd.h>

void mcp_inbox_init(mcp_inbox *box, mcp_link *link)
{
    *box = (mcp_inbox){ .link = link };
    pthread_mutex_init(&box->lock, NULL);
}

void mcp_inbox_done(mcp_inbox *box)
{
    for (size_t i = 0; i < box->errand_count; i++)
        rt_buf_done(&box->errands[i]);
    pthread_mutex_destroy(&box->lock);
}

static void wake_all(mcp_inbox *box)
{
    for (mcp_pending *p = box->waiting; p; p = p->next)
        mcp_wake(p->wake);
}

bool mcp_inbox_die(mcp_inbox *box, rt_code code, const char *why)
{
    pthread_mutex_lock(&box->lock);
    if (!box->link->is_dead)
        rt_fail(&box->why, code, "%s", why);
    box->link->is_dead = true;
    wake_all(box);
    pthread_mutex_unlock(&box->lock);
    return false;
}

/* -- What is heard ----------------------------------------------------------------------------- */

static void deliver(mcp_pending *p, rt_str text, rt_buf *whole, const rt_mcp_message *message)
{
    mcp_reply *reply = p->reply;
    if (whole) {
        reply->text = *whole;
        *whole = (rt_buf){ .max = whole->max };
    } else {
        reply->text = (rt_buf){ .max = MCP_MESSAGE_MAX + 1 };
        rt_buf_add(&reply->text, text);
    }
    ptrdiff_t moved = whole ? 0 : reply->text.ptr - text.ptr;
    rt_str *views[] = { &reply->message.id, &reply->message.method, &reply->message.params,
                        &reply->message.result, &reply->message.error };
    reply->message = *message;
    for (size_t i = 0; i < RT_COUNT(views); i++)
        if (views[i]->len)
            views[i]->ptr += moved;
    p->is_answered = true;
    mcp_wake(p->wake);
}

/* Errors without an id are for the only one who asked, if there is but one. */
static mcp_pending *take_pending(mcp_inbox *box, const rt_mcp_message *m)
{
    bool is_for_any =
        m->kind == RT_MCP_ERROR && m->id.len == 0 && box->waiting && !box->waiting->next;
    for (mcp_pending **at = &box->waiting; *at; at = &(*at)->next) {
        mcp_pending *p = *at;
        if (is_for_any || rt_mcp_id_is(m->id, p->id)) {
            *at = p->next;
            return p;
        }
    }
    return NULL;
}

static bool hear_response(mcp_inbox *box, rt_str text, rt_buf *whole, const rt_mcp_message *m)
{
    pthread_mutex_lock(&box->lock);
    mcp_pending *p = take_pending(box, m);
    if (p)
        deliver(p, text, whole, m);
    pthread_mutex_unlock(&box->lock);
    return p != NULL;
}

static void hear_progress(mcp_inbox *box, const mcp_progress *progress)
{
    pthread_mutex_lock(&box->lock);
    for (mcp_pending *p = box->waiting; p; p = p->next) {
        if (p->id != progress->token)
            continue;
        p->progress[(p->progress_first + p->progress_count) % MCP_PROGRESS_KEPT] = *progress;
        if (p->progress_count < MCP_PROGRESS_KEPT)
            p->progress_count++;
        else
            p->progress_first = (p->progress_first + 1) % MCP_PROGRESS_KEPT;
        mcp_wake(p->wake);
    }
    pthread_mutex_unlock(&box->lock);
}

static bool keep_errand(mcp_inbox *box, rt_str text)
{
    pthread_mutex_lock(&box->lock);
    bool is_kept = box->waiting && box->errand_count < MCP_ERRANDS_MAX;
    if (is_kept) {
        rt_buf *errand = &box->errands[box->errand_count++];
        *errand = (rt_buf){ .max = MCP_MESSAGE_MAX };
        rt_buf_add(errand, text);
        wake_all(box);
    }
    pthread_mutex_unlock(&box->lock);
    return is_kept;
}

static void hear_request(mcp_inbox *box, rt_str text, const rt_mcp_message *m)
{
    rt_buf answer RT_CLEANUP(rt_buf_done) = { .max = MCP_MESSAGE_MAX };
    mcp_link *link = box->link;
    if (!link->ears.answer(link->ears.ctx, m, false, &answer)) {
        if (keep_errand(box, text))
            return;
        rt_mcp_write_error(&answer, m->id, RT_MCP_INTERNAL_ERROR,
                           RT_STR("nobody here waits for this server"), RT_STR(""));
    }
    link->kind->tell(link, RT_STR(""), rt_buf_str(&answer), rt_now_ns() + MCP_TELL_NS,
                     &(rt_error){ 0 });
}

/* What is no message may still say whom it was for. */
static bool hear_broken(mcp_inbox *box, rt_str text)
{
    rt_mcp_message m = { .kind = RT_MCP_RESULT, .id = rt_mcp_member(text, RT_STR("id")) };
    box->link->broken_count++;
    if (m.id.len == 0 || rt_mcp_member(text, RT_STR("method")).len)
        return false;
    pthread_mutex_lock(&box->lock);
    mcp_pending *p = take_pending(box, &m);
    if (p) {
        p->is_answered = p->is_broken = true;
        mcp_wake(p->wake);
    }
    pthread_mutex_unlock(&box->lock);
    return p != NULL;
}

/* True: it was an answer that somebody waited for. */
static bool hear_message(mcp_inbox *box, rt_str text, rt_buf *whole)
{
    rt_mcp_message m;
    mcp_progress progress;
    if (!rt_mcp_message_scan(text, &m, NULL))
        return hear_broken(box, text);
    switch (m.kind) {
    case RT_MCP_RESULT:
    case RT_MCP_ERROR:
        return hear_response(box, text, whole, &m);
    case RT_MCP_REQUEST:
        hear_request(box, text, &m);
        return false;
    case RT_MCP_NOTIFICATION:
        if (mcp_progress_read(&m, &progress))
            hear_progress(box, &progress);
        else
            box->link->ears.news(box->link->ears.ctx, &m);
        return false;
    }
    return false;
}

bool mcp_inbox_hear(mcp_inbox *box, rt_str text, rt_buf *whole)
{
    rt_str item, rest = rt_str_trim(text);
    bool was_asked = false;
    if (rest.len == 0)
        return true;
    if (rest.ptr[0] == '[')
        while (rt_mcp_batch_next(&rest, &item))
            was_asked |= hear_message(box, item, NULL);
    else
        was_asked = hear_message(box, rest, whole);
    if (!was_asked && !mcp_flood_allows(&box->flood, rt_now_ns(), text.len))
        return mcp_inbox_die(box, RT_LIMIT,
                             "it was cut off because it flooded us with what nobody asked for");
    return true;
}

/* -- Waiting ----------------------------------------------------------------------------------- */

bool mcp_inbox_begin(mcp_inbox *box, mcp_pending *p, uint64_t id, mcp_reply *reply, rt_error *err)
{
    *p = (mcp_pending){ .id = id, .reply = reply, .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
    if (p->wake < 0)
        return rt_fail_errno(err, "a descriptor to wait on");
    pthread_mutex_lock(&box->lock);
    bool is_dead = box->link->is_dead;
    if (is_dead) {
        *err = box->why;
    } else {
        p->next = box->waiting;
        box->waiting = p;
    }
    pthread_mutex_unlock(&box->lock);
    if (is_dead)
        rt_closep(&p->wake);
    return !is_dead;
}

void mcp_inbox_end(mcp_inbox *box, mcp_pending *p)
{
    pthread_mutex_lock(&box->lock);
    for (mcp_pending **at = &box->waiting; *at; at = &(*at)->next)
        if (*at == p) {
            *at = p->next;
            break;
        }
    pthread_mutex_unlock(&box->lock);
    rt_closep(&p->wake);
}

static void tell_progress(mcp_inbox *box, mcp_pending *p, mcp_ask *ask)
{
    pthread_mutex_lock(&box->lock);
    while (p->progress_count) {
        mcp_progress progress = p->progress[p->progress_first];
        p->progress_first = (p->progress_first + 1) % MCP_PROGRESS_KEPT;
        p->progress_count--;
        pthread_mutex_unlock(&box->lock);
        mcp_ask_extend(ask);
        if (ask->on_progress)
            ask->on_progress(ask->progress_ctx, progress.done, progress.total,
                             rt_str_of(progress.message));
        pthread_mutex_lock(&box->lock);
    }
    pthread_mutex_unlock(&box->lock);
}

static bool take_errand(mcp_inbox *box, rt_buf *out)
{
    pthread_mutex_lock(&box->lock);
    bool has_errand = box->errand_count > 0;
    if (has_errand) {
        *out = box->errands[0];
        memmove(box->errands, box->errands + 1, --box->errand_count * sizeof(*box->errands));
    }
    pthread_mutex_unlock(&box->lock);
    return has_errand;
}

static void run_errands(mcp_inbox *box)
{
    mcp_link *link = box->link;
    rt_buf errand;
    while (take_errand(box, &errand)) {
        rt_buf answer RT_CLEANUP(rt_buf_done) = { .max = MCP_MESSAGE_MAX };
        rt_mcp_message m;
        if (rt_mcp_message_scan(rt_buf_str(&errand), &m, NULL) &&
            link->ears.answer(link->ears.ctx, &m, true, &answer))
            link->kind->tell(link, RT_STR(""), rt_buf_str(&answer), rt_now_ns() + MCP_TELL_NS,
                             &(rt_error){ 0 });
        rt_buf_done(&errand);
    }
}

static void call_off(mcp_inbox *box, const mcp_ask *ask)
{
    rt_buf body RT_CLEANUP(rt_buf_done) = { 0 };
    if (ask->is_not_cancellable)
        return;
    mcp_put_cancelled(&body, ask->id);
    box->link->kind->tell(box->link, RT_STR("notifications/cancelled"), rt_buf_str(&body),
                          rt_now_ns() + MCP_TELL_NS, &(rt_error){ 0 });
}

/* Whether it is over, one way or the other. */
static bool look(mcp_inbox *box, const mcp_pending *p, rt_error *err, bool *is_good)
{
    pthread_mutex_lock(&box->lock);
    *is_good = p->is_answered && !p->is_broken;
    bool is_over = p->is_answered || box->link->is_dead;
    if (p->is_broken)
        rt_fail(err, RT_INVALID, "its answer is no JSON");
    else if (is_over && !p->is_answered)
        *err = box->why;
    pthread_mutex_unlock(&box->lock);
    return is_over;
}

bool mcp_inbox_await(mcp_inbox *box, mcp_pending *p, mcp_ask *ask, rt_error *err)
{
    bool is_good;
    for (;;) {
        mcp_woken woken = mcp_wait(p->wake, ask->cancel_fd, ask->deadline_ns);
        mcp_calm(p->wake);
        tell_progress(box, p, ask);
        if (look(box, p, err, &is_good))
            return is_good;
        run_errands(box);
        if (woken == MCP_WOKEN_BY_SECOND) {
            call_off(box, ask);
            return rt_fail(err, RT_CANCELLED, "the call was cancelled");
        }
        if (rt_now_ns() >= ask->deadline_ns) {
            call_off(box, ask);
            return rt_fail(err, RT_TIMEOUT,
                           "it did not answer in time; raise timeout_ms if it needs longer");
        }
    }
}
