/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache_redis.c - results shared between nodes: what is asked of Redis, in its commands.
 *
 *     retort:result:v1:<key>   an envelope, with the time to live of the result
 *     retort:tag:v1:<tag>      a random token, living at least as long as the results that know it
 *
 * A tag is invalidated by removing its token. If Redis is away then, the tag waits here, and until
 * it has been removed nothing else is asked: what Redis would answer may be what was invalidated.
 * The commands are those of Redis 2.6.12 and everything since; no scripts, no cluster.
 */
#include "store/cache_internal.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define RESULT_PREFIX   RT_STR("retort:result:v1:")
#define TAG_PREFIX      RT_STR("retort:tag:v1:")
#define RESULT_PATTERN  RT_STR("retort:result:v1:*")
#define TAG_PATTERN     RT_STR("retort:tag:v1:*")
#define MS              UINT64_C(1000000) /* in nanoseconds */
#define WAITING_MAX     256               /* tags; with more, all tags are invalidated */
#define ERASE_MS        1000
#define REPLY_SLACK     ((size_t)4 << 20) /* what a SCAN may give beyond an envelope */
#define REPLIES_MAX     (2 * RT_CACHE_TAGS + 1)
#define TOKEN_LIFETIMES 2 /* a token lives so many times as long as a result */

struct store_redis {
    store_link *link;
    uint64_t timeout_ms, ttl_ms, value_bytes;
    _Atomic uint64_t error_replies;
    _Atomic size_t to_remove; /* tags that wait or are on their way; while not 0, ask nothing */
    pthread_mutex_t lock;
    /* under the lock: */
    char *waiting[WAITING_MAX];
    size_t waiting_len[WAITING_MAX], waiting_count;
    bool is_overflown; /* every tag is to go */
};

/* -- A talk: some round trips on one borrowed connection, before one deadline ------------------ */

typedef struct talk {
    store_redis *redis;
    store_conn *conn;
    rt_error failure;
    rt_arena arena; /* for names and commands */
    redisReply *replies[REPLIES_MAX];
    size_t reply_count;
} talk;

static void forget_replies(talk *t)
{
    while (t->reply_count > 0)
        freeReplyObject(t->replies[--t->reply_count]);
}

static void talk_done(talk *t)
{
    forget_replies(t);
    if (t->conn)
        store_link_give(t->redis->link, t->conn, t->failure.code ? &t->failure : NULL);
    rt_arena_done(&t->arena);
}

/* Sends what was added; the replies are good until the next ask. */
static bool ask(talk *t, size_t count)
{
    forget_replies(t);
    if (!store_conn_ask(t->conn, t->replies, count, &t->failure))
        return rt_wrap(&t->failure, "Redis");
    t->reply_count = count;
    for (size_t i = 0; i < count; i++) {
        bool is_error = t->replies[i]->type == REDIS_REPLY_ERROR;
        if (is_error && strncmp(t->replies[i]->str, "WRONGTYPE", 9) != 0)
            atomic_fetch_add(&t->redis->error_replies, 1);
    }
    return true;
}

/* A command of the words given: ADD(&t, RT_STR("GET"), name). */
#define ADD(t, ...)                                                                                \
    store_conn_add((t)->conn, (rt_str[]){ __VA_ARGS__ }, RT_COUNT(((rt_str[]){ __VA_ARGS__ })))

/* Binary-safe, unlike printf. */
static rt_str name_of(talk *t, rt_str prefix, rt_str text)
{
    char *name = rt_arena_alloc_raw(&t->arena, prefix.len + text.len);
    memcpy(name, prefix.ptr, prefix.len);
    if (text.len)
        memcpy(name + prefix.len, text.ptr, text.len);
    return (rt_str){ name, prefix.len + text.len };
}

static rt_str number_of(talk *t, uint64_t number)
{
    return rt_arena_printf(&t->arena, "%" PRIu64, number);
}

/* One command with a name for each tag: "DEL", "MGET". */
static void add_with_tags(talk *t, rt_str verb, const rt_str *tags, size_t count)
{
    rt_str *words = rt_arena_alloc(&t->arena, (count + 1) * sizeof(*words));
    words[0] = verb;
    for (size_t i = 0; i < count; i++)
        words[i + 1] = name_of(t, TAG_PREFIX, tags[i]);
    store_conn_add(t->conn, words, count + 1);
}

static rt_str text_of(const redisReply *reply)
{
    bool is_text = reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS;
    return is_text ? (rt_str){ reply->str, (size_t)reply->len } : (rt_str){ NULL, 0 };
}

/* -- Erasing by pattern ------------------------------------------------------------------------ */

/* One SCAN and the DEL of what it found; *cursor is "0" again at the end. */
static bool erase_some(talk *t, rt_str pattern, rt_str *cursor)
{
    ADD(t, RT_STR("SCAN"), *cursor, RT_STR("MATCH"), pattern, RT_STR("COUNT"), RT_STR("1000"));
    if (!ask(t, 1))
        return false;
    const redisReply *reply = t->replies[0];
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[1]->type != REDIS_REPLY_ARRAY)
        return false;
    *cursor = rt_arena_str(&t->arena, text_of(reply->element[0]));
    size_t count = reply->element[1]->elements;
    if (count == 0)
        return true;
    rt_str *words = rt_arena_alloc(&t->arena, (count + 1) * sizeof(*words));
    words[0] = RT_STR("DEL");
    for (size_t i = 0; i < count; i++)
        words[i + 1] = text_of(reply->element[1]->element[i]);
    store_conn_add(t->conn, words, count + 1);
    return ask(t, 1) && t->replies[0]->type == REDIS_REPLY_INTEGER;
}

static bool erase(talk *t, rt_str pattern, uint64_t until_ns)
{
    rt_str cursor = RT_STR("0");
    do {
        uint64_t now = rt_now_ns();
        if (now >= until_ns)
            return false;
        store_conn_set_deadline(t->conn, now + t->redis->timeout_ms * MS);
        if (!erase_some(t, pattern, &cursor))
            return false;
    } while (!rt_str_eq(cursor, RT_STR("0")));
    store_conn_set_deadline(t->conn, rt_now_ns() + t->redis->timeout_ms * MS);
    return true;
}

/* -- Tags that wait to be removed -------------------------------------------------------------- */

/* A copy of what waits, which is then "on its way". */
typedef struct removal {
    char *tags[WAITING_MAX];
    rt_str views[WAITING_MAX];
    size_t count;
    bool is_everything;
} removal;

static bool is_waiting(const store_redis *redis, rt_str tag)
{
    for (size_t i = 0; i < redis->waiting_count; i++)
        if (rt_str_eq((rt_str){ redis->waiting[i], redis->waiting_len[i] }, tag))
            return true;
    return false;
}

/* Everything that waits shrinks to one request. The lock is held. */
static void overflow(store_redis *redis)
{
    while (redis->waiting_count > 0) {
        free(redis->waiting[--redis->waiting_count]);
        atomic_fetch_sub(&redis->to_remove, 1);
    }
    if (!redis->is_overflown)
        atomic_fetch_add(&redis->to_remove, 1);
    redis->is_overflown = true;
}

static void let_wait(store_redis *redis, rt_str tag)
{
    pthread_mutex_lock(&redis->lock);
    if (redis->waiting_count == WAITING_MAX)
        overflow(redis);
    if (!redis->is_overflown && !is_waiting(redis, tag)) {
        char *copy = malloc(tag.len + 1);
        if (!copy)
            rt_out_of_memory(tag.len + 1);
        if (tag.len)
            memcpy(copy, tag.ptr, tag.len);
        redis->waiting[redis->waiting_count] = copy;
        redis->waiting_len[redis->waiting_count++] = tag.len;
        atomic_fetch_add(&redis->to_remove, 1);
    }
    pthread_mutex_unlock(&redis->lock);
}

static void take_waiting(store_redis *redis, removal *out)
{
    pthread_mutex_lock(&redis->lock);
    out->count = redis->waiting_count;
    out->is_everything = redis->is_overflown;
    for (size_t i = 0; i < out->count; i++) {
        out->tags[i] = redis->waiting[i];
        out->views[i] = (rt_str){ redis->waiting[i], redis->waiting_len[i] };
    }
    redis->waiting_count = 0;
    redis->is_overflown = false;
    pthread_mutex_unlock(&redis->lock);
}

static void finish(store_redis *redis, removal *done, bool ok)
{
    for (size_t i = 0; i < done->count; i++) {
        if (!ok)
            let_wait(redis, done->views[i]);
        free(done->tags[i]);
    }
    if (!ok && done->is_everything) {
        pthread_mutex_lock(&redis->lock);
        overflow(redis);
        pthread_mutex_unlock(&redis->lock);
    }
    /* Last: what goes back to wait is counted before what was on its way no longer is. */
    atomic_fetch_sub(&redis->to_remove, done->count + done->is_everything);
}

/* False when something is still to be removed, here or on another thread's way. */
static bool remove_waiting(talk *t)
{
    if (atomic_load(&t->redis->to_remove) == 0)
        return true;
    removal todo = { 0 };
    take_waiting(t->redis, &todo);
    bool ok = true;
    if (todo.is_everything)
        ok = erase(t, TAG_PATTERN, rt_now_ns() + ERASE_MS * MS);
    if (ok && todo.count) {
        add_with_tags(t, RT_STR("DEL"), todo.views, todo.count);
        ok = ask(t, 1) && t->replies[0]->type == REDIS_REPLY_INTEGER;
    }
    finish(t->redis, &todo, ok);
    return ok && atomic_load(&t->redis->to_remove) == 0;
}

static bool talk_begin(talk *t, store_redis *redis)
{
    t->redis = redis;
    t->conn = store_link_take(redis->link, rt_now_ns() + redis->timeout_ms * MS);
    return t->conn && remove_waiting(t);
}

static void on_return(void *context, store_link *link)
{
    store_redis *redis = context;
    if (atomic_load(&redis->to_remove) == 0)
        return;
    talk t RT_CLEANUP(talk_done) = { .redis = redis };
    t.conn = store_link_take(link, rt_now_ns() + redis->timeout_ms * MS);
    if (t.conn)
        remove_waiting(&t);
}

/* -- Tokens ------------------------------------------------------------------------------------ */

static bool same_token(const redisReply *reply, const store_token *token)
{
    return rt_str_eq(text_of(reply), (rt_str){ (const char *)token->bytes, STORE_TOKEN_SIZE });
}

static bool is_list(const redisReply *reply, size_t count)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == count;
}

static store_verdict check_tokens(talk *t, const store_result *result)
{
    add_with_tags(t, RT_STR("MGET"), result->tags, result->tag_count);
    if (!ask(t, 1) || !is_list(t->replies[0], result->tag_count))
        return STORE_UNKNOWN;
    for (size_t i = 0; i < result->tag_count; i++)
        if (!same_token(t->replies[0]->element[i], &result->tokens[i]))
            return STORE_STALE;
    return STORE_GOOD;
}

/* The token of each tag, a new one where there was none; and they live on. */
static bool fetch_tokens(talk *t, const store_result *result, store_token *tokens)
{
    size_t count = result->tag_count;
    rt_str lifetime = number_of(t, t->redis->ttl_ms * TOKEN_LIFETIMES);
    rt_random_bytes(tokens, count * sizeof(*tokens));
    for (size_t i = 0; i < count; i++) {
        rt_str name = name_of(t, TAG_PREFIX, result->tags[i]);
        rt_str token = { (const char *)tokens[i].bytes, STORE_TOKEN_SIZE };
        ADD(t, RT_STR("SET"), name, token, RT_STR("NX"), RT_STR("PX"), lifetime);
        ADD(t, RT_STR("PEXPIRE"), name, lifetime);
    }
    add_with_tags(t, RT_STR("MGET"), result->tags, count);
    if (!ask(t, 2 * count + 1) || !is_list(t->replies[2 * count], count))
        return false;
    for (size_t i = 0; i < count; i++) {
        rt_str token = text_of(t->replies[2 * count]->element[i]);
        if (token.len != STORE_TOKEN_SIZE)
            return false;
        memcpy(tokens[i].bytes, token.ptr, STORE_TOKEN_SIZE);
    }
    return true;
}

/* -- Results ----------------------------------------------------------------------------------- */

static void copy_out(const store_result *result, rt_arena *arena, store_result *out)
{
    rt_str *tags = rt_arena_alloc(arena, result->tag_count * sizeof(*tags));
    for (size_t i = 0; i < result->tag_count; i++)
        tags[i] = rt_arena_str(arena, result->tags[i]);
    *out = *result;
    out->tags = tags;
    out->value = rt_arena_str(arena, result->value);
}

/*
 * How long the result may live, from before the value was read: should it be replaced in between,
 * the new value gets the shorter life of the old. 0: there is none. Redis says -1 for no end.
 */
static uint64_t lifetime_of(const store_redis *redis, const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_INTEGER || reply->integer < -1)
        return 0;
    return reply->integer == -1 ? redis->ttl_ms : RT_MIN((uint64_t)reply->integer, redis->ttl_ms);
}

bool store_redis_get(store_redis *redis, rt_str key, rt_arena *arena, store_result *out,
                     uint64_t *ttl_ms)
{
    talk t RT_CLEANUP(talk_done) = { 0 };
    if (!talk_begin(&t, redis))
        return false;
    rt_str name = name_of(&t, RESULT_PREFIX, key);
    ADD(&t, RT_STR("PTTL"), name);
    /* Of a value that is too long only this much travels, and its hash will not fit. */
    ADD(&t, RT_STR("GETRANGE"), name, RT_STR("0"),
        number_of(&t, redis->value_bytes + STORE_ENVELOPE_EXTRA));
    if (!ask(&t, 2))
        return false;
    *ttl_ms = lifetime_of(redis, t.replies[0]);
    store_result found;
    if (*ttl_ms == 0 || !store_envelope_read(text_of(t.replies[1]), key, arena, &found) ||
        found.value.len > redis->value_bytes)
        return false;
    copy_out(&found, arena, out); /* before the next replies take the place of these */
    return out->tag_count == 0 || check_tokens(&t, out) == STORE_GOOD;
}

static void send_result(talk *t, const store_result *result)
{
    rt_buf envelope RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf_init(&envelope, result->value.len + STORE_ENVELOPE_EXTRA);
    store_envelope_write(result, &envelope);
    ADD(t, RT_STR("SET"), name_of(t, RESULT_PREFIX, result->key), rt_buf_str(&envelope),
        RT_STR("PX"), number_of(t, t->redis->ttl_ms));
    ask(t, 1);
}

bool store_redis_put(store_redis *redis, const store_result *result, store_token *tokens)
{
    talk t RT_CLEANUP(talk_done) = { 0 };
    if (!talk_begin(&t, redis))
        return false;
    if (result->tag_count && !fetch_tokens(&t, result, tokens))
        return false;
    store_result marked = *result;
    marked.tokens = tokens;
    send_result(&t, &marked);
    return true;
}

store_verdict store_redis_check(store_redis *redis, const store_result *result)
{
    if (!result->tokens)
        return STORE_STALE; /* put while Redis was away: nobody can tell any more */
    talk t RT_CLEANUP(talk_done) = { 0 };
    return talk_begin(&t, redis) ? check_tokens(&t, result) : STORE_UNKNOWN;
}

void store_redis_remove_tag(store_redis *redis, rt_str tag)
{
    talk t RT_CLEANUP(talk_done) = { 0 };
    let_wait(redis, tag);
    talk_begin(&t, redis);
}

void store_redis_clear(store_redis *redis)
{
    talk t RT_CLEANUP(talk_done) = { 0 };
    uint64_t until_ns = rt_now_ns() + ERASE_MS * MS;
    if (talk_begin(&t, redis) && erase(&t, TAG_PATTERN, until_ns))
        erase(&t, RESULT_PATTERN, until_ns);
}

/* -- Opening and closing ----------------------------------------------------------------------- */

bool store_redis_open(const store_redis_config *config, store_redis **out, rt_error *err)
{
    store_redis *redis = calloc(1, sizeof(*redis));
    if (!redis)
        rt_out_of_memory(sizeof(*redis));
    redis->timeout_ms = config->timeout_ms;
    redis->ttl_ms = config->ttl_ms;
    redis->value_bytes = config->value_bytes;
    pthread_mutex_init(&redis->lock, NULL);
    store_link_config link = { .url = config->url,
                               .timeout_ms = config->timeout_ms,
                               .reply_bytes =
                                   config->value_bytes + STORE_ENVELOPE_EXTRA + REPLY_SLACK,
                               .on_return = on_return,
                               .context = redis };
    bool ok = store_link_open(&link, &redis->link, err);
    explicit_bzero(&link, sizeof(link));
    if (!ok) {
        store_redis_close(redis);
        return false;
    }
    *out = redis;
    return true;
}

void store_redis_close(store_redis *redis)
{
    if (!redis)
        return;
    store_link_close(redis->link);
    while (redis->waiting_count > 0)
        free(redis->waiting[--redis->waiting_count]);
    pthread_mutex_destroy(&redis->lock);
    free(redis);
}

bool store_redis_is_up(store_redis *redis)
{
    return store_link_is_up(redis->link);
}

rt_error store_redis_state(store_redis *redis)
{
    return store_link_state(redis->link);
}

uint64_t store_redis_errors(store_redis *redis)
{
    return atomic_load(&redis->error_replies) + store_link_failures(redis->link);
}
