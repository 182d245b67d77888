/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_peer.c - clients of the legacy era: what they said of themselves, what we asked them, what
 * they may still come back for.
 *
 * A session belongs to the caller who opened it: its id alone opens nothing. Whoever holds a share
 * may use a peer after it was closed; it is only found no more.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/mcp.h"

#define ID_BYTES 24

/* A question, on the stack of who waits for its answer. */
typedef struct question {
    struct question *next;
    char id[48];
    rt_buf answer; /* the whole response */
    bool is_answered;
} question;

typedef struct kept_stream {
    uint64_t number;
    mcp_stream *stream;
} kept_stream;

struct mcp_peer {
    mcp *mcp;
    mcp_peer *next, **at; /* of sessions; under the lock of `mcp` */
    unsigned holders;     /* so is this */
    uint64_t used_ns;
    char id[2 * ID_BYTES + 1];
    rt_arena arena; /* of what follows, as it is at the beginning */
    rt_caller who;
    mcp_send_fn send; /* NULL: to the background stream */
    void *send_ctx;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    const rt_mcp_version *version;
    rt_buf capabilities;
    int level;
    rt_buf uris[MCP_URIS_MAX];
    size_t uri_count;
    question *questions;
    kept_stream streams[MCP_STREAMS_MAX]; /* a ring by their numbers */
    uint64_t last_stream;
    mcp_stream *background;
};

static void free_peer(mcp_peer *p)
{
    for (size_t i = 0; i < MCP_STREAMS_MAX; i++)
        mcp_stream_release(p->streams[i].stream);
    for (size_t i = 0; i < MCP_URIS_MAX; i++)
        rt_buf_done(&p->uris[i]);
    mcp_stream_release(p->background);
    rt_buf_done(&p->capabilities);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    rt_arena_done(&p->arena);
    free(p);
}

/* Under the lock of `mcp`. */
static void unlist(mcp_peer *p)
{
    if (!p->at)
        return;
    *p->at = p->next;
    if (p->next)
        p->next->at = p->at;
    p->at = NULL;
    p->mcp->peer_count--;
}

static void enlist(mcp_peer *p)
{
    mcp *m = p->mcp;
    p->next = m->peers;
    p->at = &m->peers;
    if (p->next)
        p->next->at = &p->next;
    m->peers = p;
    m->peer_count++;
}

/* Under the lock. The share of the list goes with it. */
static mcp_peer *take_stale(mcp *m, uint64_t now_ns)
{
    mcp_peer *oldest = NULL;
    for (mcp_peer *p = m->peers; p; p = p->next)
        if (!oldest || p->used_ns < oldest->used_ns)
            oldest = p;
    if (!oldest ||
        (m->peer_count < MCP_PEERS_MAX && now_ns - oldest->used_ns < MCP_PEER_IDLE_MS * 1000000ull))
        return NULL;
    return oldest;
}

static void copy_caller(mcp_peer *p, const rt_caller *who)
{
    rt_str *const texts[] = { &p->who.organisation_id, &p->who.user_id, &p->who.key_id };
    p->who = *who;
    for (size_t i = 0; i < RT_COUNT(texts); i++)
        *texts[i] = rt_arena_str(&p->arena, *texts[i]);
}

mcp_peer *mcp_peer_new(mcp *m, const rt_caller *who, mcp_send_fn send, void *send_ctx)
{
    mcp_peer *p = calloc(1, sizeof(*p)), *stale = NULL;
    uint8_t random[ID_BYTES];
    pthread_condattr_t monotonic;
    if (!p)
        rt_out_of_memory(sizeof(*p));
    rt_random_bytes(random, sizeof(random));
    rt_hex(p->id, random, sizeof(random));
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&p->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    p->mcp = m;
    p->send = send;
    p->send_ctx = send_ctx;
    p->level = MCP_INFO;
    p->used_ns = rt_now_ns();
    p->holders = 1;
    p->background = mcp_stream_new();
    copy_caller(p, who);
    pthread_mutex_lock(&m->lock);
    stale = take_stale(m, p->used_ns);
    if (stale)
        stale->holders++;
    p->holders++;
    enlist(p);
    pthread_mutex_unlock(&m->lock);
    if (stale) {
        mcp_peer_close(stale);
        mcp_peer_release(stale);
    }
    return p;
}

mcp_peer *mcp_peer_find(mcp *m, rt_str id, const rt_caller *who)
{
    mcp_peer *found = NULL;
    pthread_mutex_lock(&m->lock);
    for (mcp_peer *p = m->peers; p && !found; p = p->next)
        if (rt_str_eq_c(id, p->id) && rt_str_eq(who->organisation_id, p->who.organisation_id) &&
            rt_str_eq(who->user_id, p->who.user_id) && rt_str_eq(who->key_id, p->who.key_id))
            found = p;
    if (found) {
        found->holders++;
        found->used_ns = rt_now_ns();
    }
    pthread_mutex_unlock(&m->lock);
    return found;
}

mcp_peer *mcp_peer_keep(mcp_peer *p)
{
    pthread_mutex_lock(&p->mcp->lock);
    p->holders++;
    pthread_mutex_unlock(&p->mcp->lock);
    return p;
}

void mcp_peer_release(mcp_peer *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->mcp->lock);
    bool is_last = --p->holders == 0;
    pthread_mutex_unlock(&p->mcp->lock);
    if (is_last)
        free_peer(p);
}

void mcp_peer_releasep(mcp_peer **p)
{
    mcp_peer_release(*p);
}

void mcp_peer_close(mcp_peer *p)
{
    mcp *m = p->mcp;
    pthread_mutex_lock(&m->lock);
    bool was_listed = p->at != NULL;
    unlist(p);
    for (mcp_call *c = m->calls; c; c = c->next)
        if (c->peer == p)
            mcp_call_cancel(c);
    pthread_mutex_unlock(&m->lock);
    mcp_stream_end(p->background);
    if (was_listed)
        mcp_peer_release(p);
}

rt_str mcp_peer_id(const mcp_peer *p)
{
    return rt_str_of(p->id);
}

mcp_peer *mcp_peer_next(const mcp_peer *p)
{
    return p->next;
}

void mcp_peer_hush(mcp_peer *p)
{
    mcp_stream_end(p->background);
}

/* ---- what it said of itself ---- */

void mcp_peer_introduce(mcp_peer *p, const rt_mcp_version *version, rt_json capabilities)
{
    pthread_mutex_lock(&p->lock);
    p->version = version;
    rt_buf_reset(&p->capabilities);
    if (rt_json_type(capabilities) == RT_JSON_OBJECT)
        rt_json_print(capabilities, &p->capabilities);
    pthread_mutex_unlock(&p->lock);
}

const rt_mcp_version *mcp_peer_version(mcp_peer *p)
{
    pthread_mutex_lock(&p->lock);
    const rt_mcp_version *version = p->version;
    pthread_mutex_unlock(&p->lock);
    return version;
}

rt_json mcp_peer_capabilities(mcp_peer *p, rt_arena *arena)
{
    rt_json capabilities = { 0 };
    pthread_mutex_lock(&p->lock);
    if (p->capabilities.len > 0)
        rt_json_parse(rt_buf_str(&p->capabilities), arena, &capabilities, NULL);
    pthread_mutex_unlock(&p->lock);
    return capabilities;
}

void mcp_peer_level_set(mcp_peer *p, int level)
{
    pthread_mutex_lock(&p->lock);
    p->level = level;
    pthread_mutex_unlock(&p->lock);
}

int mcp_peer_level(mcp_peer *p)
{
    pthread_mutex_lock(&p->lock);
    int level = p->level;
    pthread_mutex_unlock(&p->lock);
    return level;
}

/* ---- what it wants to hear of ---- */

static size_t find_uri(const mcp_peer *p, rt_str uri)
{
    size_t i = 0;
    while (i < p->uri_count && !rt_str_eq(rt_buf_str(&p->uris[i]), uri))
        i++;
    return i;
}

bool mcp_peer_subscribe(mcp_peer *p, rt_str uri)
{
    pthread_mutex_lock(&p->lock);
    size_t at = find_uri(p, uri);
    bool is_room = at < MCP_URIS_MAX && uri.len <= MCP_URI_MAX;
    if (is_room && at == p->uri_count) {
        rt_buf_add(&p->uris[at], uri);
        p->uri_count++;
    }
    pthread_mutex_unlock(&p->lock);
    return is_room;
}

void mcp_peer_unsubscribe(mcp_peer *p, rt_str uri)
{
    pthread_mutex_lock(&p->lock);
    size_t at = find_uri(p, uri);
    if (at < p->uri_count) {
        rt_buf gone = p->uris[at];
        p->uris[at] = p->uris[--p->uri_count];
        p->uris[p->uri_count] = (rt_buf){ 0 };
        rt_buf_done(&gone);
    }
    pthread_mutex_unlock(&p->lock);
}

void mcp_peer_tell(mcp_peer *p, rt_str message)
{
    if (p->send)
        p->send(p->send_ctx, message, 0);
    else
        mcp_stream_send(p->background, message, 0);
}

/* ---- what we ask it ---- */

void mcp_peer_nudge(mcp_peer *p)
{
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

void mcp_peer_deliver(mcp_peer *p, rt_json response)
{
    rt_str id = rt_json_str(rt_json_get_c(response, "id"));
    pthread_mutex_lock(&p->lock);
    for (question *q = p->questions; q; q = q->next)
        if (rt_str_eq_c(id, q->id) && !q->is_answered) {
            rt_json_print(response, &q->answer);
            q->is_answered = true;
            pthread_cond_broadcast(&p->changed);
        }
    pthread_mutex_unlock(&p->lock);
}

static void wait_for_answer(mcp_call *c, question *q)
{
    mcp_peer *p = c->peer;
    uint64_t deadline_ns = rt_now_ns() + MCP_ASK_MS * 1000000ull;
    struct timespec until = { .tv_sec = (time_t)(deadline_ns / 1000000000),
                              .tv_nsec = (long)(deadline_ns % 1000000000) };
    int slept = 0;
    pthread_mutex_lock(&p->lock);
    while (!q->is_answered && !atomic_load(&c->is_cancelled) && slept != ETIMEDOUT)
        slept = pthread_cond_timedwait(&p->changed, &p->lock, &until);
    for (question **at = &p->questions; *at; at = &(*at)->next)
        if (*at == q) {
            *at = q->next;
            break;
        }
    pthread_mutex_unlock(&p->lock);
}

static void send_question(mcp_call *c, const char *method, rt_str params, const question *q)
{
    rt_buf message RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &message);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "jsonrpc", RT_STR("2.0"));
    rt_jw_kstr(&w, "id", rt_str_of(q->id));
    rt_jw_kstr(&w, "method", rt_str_of(method));
    rt_jw_kraw(&w, "params", params);
    rt_jw_end(&w);
    c->send(c->send_ctx, rt_buf_str(&message), 0);
}

static bool read_answer(mcp_call *c, const question *q, rt_json *result, rt_error *err)
{
    rt_json response;
    if (!q->is_answered)
        return rt_fail(err, atomic_load(&c->is_cancelled) ? RT_CANCELLED : RT_TIMEOUT,
                       "the client did not answer");
    if (!rt_json_parse(rt_buf_str(&q->answer), &c->arena, &response, err))
        return rt_wrap(err, "the client's answer");
    rt_str why = rt_json_str(rt_json_get_c(rt_json_get_c(response, "error"), "message"));
    *result = rt_json_get_c(response, "result");
    return rt_json_type(*result) == RT_JSON_OBJECT ||
           rt_fail(err, RT_DENIED, "the client refused: %.*s", (int)RT_MIN(why.len, (size_t)150),
                   why.ptr);
}

bool mcp_ask(mcp_call *c, const char *method, rt_str params, rt_json *result, rt_error *err)
{
    question q = { 0 };
    if (!c->peer || !c->send)
        return rt_fail(err, RT_UNSUPPORTED, "this client cannot be asked");
    snprintf(q.id, sizeof(q.id), "retort-%llu",
             (unsigned long long)atomic_fetch_add(&c->mcp->last_ask, 1) + 1);
    pthread_mutex_lock(&c->peer->lock);
    q.next = c->peer->questions;
    c->peer->questions = &q;
    pthread_mutex_unlock(&c->peer->lock);
    send_question(c, method, params, &q);
    wait_for_answer(c, &q);
    bool ok = read_answer(c, &q, result, err);
    rt_buf_done(&q.answer);
    return ok;
}

/* ---- what it may come back for ---- */

uint64_t mcp_peer_stream_add(mcp_peer *p, mcp_stream *s)
{
    pthread_mutex_lock(&p->lock);
    uint64_t number = ++p->last_stream;
    kept_stream *slot = &p->streams[number % MCP_STREAMS_MAX];
    mcp_stream *gone = slot->stream;
    *slot = (kept_stream){ number, mcp_stream_keep(s) };
    pthread_mutex_unlock(&p->lock);
    mcp_stream_release(gone);
    return number;
}

mcp_stream *mcp_peer_stream_find(mcp_peer *p, uint64_t number)
{
    pthread_mutex_lock(&p->lock);
    kept_stream *slot = &p->streams[number % MCP_STREAMS_MAX];
    mcp_stream *found =
        slot->stream && slot->number == number ? mcp_stream_keep(slot->stream) : NULL;
    pthread_mutex_unlock(&p->lock);
    return found;
}

mcp_stream *mcp_peer_background(mcp_peer *p)
{
    return mcp_stream_keep(p->background);
}
