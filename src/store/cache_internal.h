/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache_internal.h - what the cache*.c files share.
 *
 *     cache.c            the public functions: memory first, then Redis
 *     cache_memory.c     entries in memory, the least recently used go
 *     cache_redis.c      what is asked of Redis, in its commands
 *     cache_link.c       connections to it: a few, with deadlines, mended in the background
 *     cache_envelope.c   a result as it lies in Redis
 *     cache_url.c        where Redis is
 *     cache_story.c      the upstream story's key
 *
 * Tags across nodes: in Redis each tag in use has a random token. A result remembers the tokens its
 * tags had when it was put, in its envelope and in memory. It is good as long as they are all still
 * there; invalidating a tag removes its token, in one step, however many results there are. A token
 * that Redis has lost, for whatever reason, only makes misses.
 */
#ifndef RT_STORE_CACHE_INTERNAL_H
#define RT_STORE_CACHE_INTERNAL_H

#include <stdatomic.h>

#include "store/cache.h"

/* -- A result, as views ------------------------------------------------------------------------ */

#define STORE_TOKEN_SIZE 16

typedef struct store_token {
    uint8_t bytes[STORE_TOKEN_SIZE];
} store_token;

typedef struct store_result {
    rt_str key, value;
    const rt_str *tags;
    const store_token *tokens; /* one per tag; NULL: not known */
    size_t tag_count;
    uint64_t cost_us;
} store_result;

/* -- Memory (cache_memory.c) ------------------------------------------------------------------- */

typedef struct store_memory store_memory;

/* One allocation: this, then tags, tokens, and the bytes of key, tags and value. */
typedef struct store_entry {
    store_result result;
    uint64_t expires_ns;
    _Atomic uint64_t checked_ns; /* when the tokens were last known to be good */
    _Atomic unsigned references;
    /* of the table that holds it: */
    uint64_t hash;
    size_t size;
    struct store_entry *chain, *newer, *older;
    bool is_held;
} store_entry;

typedef struct store_memory_limits {
    size_t max_entries;
    uint64_t max_bytes;
    uint64_t value_bytes;
} store_memory_limits;

typedef struct store_memory_counts {
    uint64_t entries, bytes, evictions;
} store_memory_counts;

store_memory *store_memory_new(const store_memory_limits *limits);
void store_memory_free(store_memory *memory);

/* A reference to the entry, now the most recently used; NULL: none, or too old and gone. */
store_entry *store_memory_find(store_memory *memory, rt_str key, uint64_t now_ns);
void store_entry_releasep(store_entry **entry);

/*
 * Every removal by tag, and clear, starts a new era. A result that was asked for or computed in
 * one era is not kept in another: it may be what the removal was about.
 */
uint64_t store_memory_era(store_memory *memory);
void store_memory_put(store_memory *memory, const store_result *result, uint64_t now_ns,
                      uint64_t expires_ns, uint64_t era);
void store_memory_remove(store_memory *memory, store_entry *entry); /* if it is still there */
uint64_t store_memory_remove_tag(store_memory *memory, rt_str tag);
void store_memory_clear(store_memory *memory);
store_memory_counts store_memory_count(store_memory *memory);

/* -- Where Redis is (cache_url.c) -------------------------------------------------------------- */

typedef struct store_redis_url {
    char host[256]; /* a name or an address; empty: `path` is meant */
    char path[108]; /* of a Unix socket */
    char user[256], password[256];
    unsigned port, db;
} store_redis_url;

/* The error names no part of the text: it may hold a password. */
bool store_redis_url_parse(rt_str text, store_redis_url *out, rt_error *err);

/* -- A result as it lies in Redis (cache_envelope.c) ------------------------------------------- */

/* How much an envelope may be longer than its value. */
#define STORE_ENVELOPE_EXTRA                                                                       \
    (64 + RT_CACHE_TAGS * (2 + RT_CACHE_TAG_BYTES + (size_t)STORE_TOKEN_SIZE))

void store_envelope_write(const store_result *result, rt_buf *out);
/* False for anything but what was written, whole, for this key. The value is a view of `text`. */
bool store_envelope_read(rt_str text, rt_str key, rt_arena *arena, store_result *out);

/* -- Connections (cache_link.c) ---------------------------------------------------------------- */

typedef struct store_link store_link;
typedef struct store_conn store_conn;
struct redisReply;

typedef struct store_link_config {
    store_redis_url url;
    uint64_t timeout_ms;
    size_t reply_bytes; /* a longer answer is a fault */
    /* Redis was away and is back; called by a thread of the link's own. */
    void (*on_return)(void *context, store_link *link);
    void *context;
} store_link_config;

/* The first attempt to connect is over when this returns: true whether or not it succeeded. */
bool store_link_open(const store_link_config *config, store_link **out, rt_error *err);
void store_link_close(store_link *link);
bool store_link_is_up(store_link *link);
rt_error store_link_state(store_link *link);    /* why it is not up */
uint64_t store_link_failures(store_link *link); /* so far */

/*
 * Borrow a connection until the deadline; NULL when Redis is away or all are busy until then. Give
 * it back with what happened: an error closes it, and Redis counts as away until it is back.
 */
store_conn *store_link_take(store_link *link, uint64_t deadline_ns);
void store_link_give(store_link *link, store_conn *conn, const rt_error *failure);

/* Commands are added, then sent together; the replies come in order, the caller frees them. */
void store_conn_add(store_conn *conn, const rt_str *words, size_t count);
bool store_conn_ask(store_conn *conn, struct redisReply **replies, size_t count, rt_error *err);
void store_conn_set_deadline(store_conn *conn, uint64_t deadline_ns);

/* -- What is asked of it (cache_redis.c) ------------------------------------------------------- */

typedef struct store_redis store_redis;

typedef struct store_redis_config {
    store_redis_url url;
    uint64_t timeout_ms, ttl_ms, value_bytes;
} store_redis_config;

bool store_redis_open(const store_redis_config *config, store_redis **out, rt_error *err);
void store_redis_close(store_redis *redis);

/* In the arena: the result, with the tokens that were good just now, and how long it may live. */
bool store_redis_get(store_redis *redis, rt_str key, rt_arena *arena, store_result *out,
                     uint64_t *ttl_ms);

/* Fills `tokens`, one per tag; false when they are not known. */
bool store_redis_put(store_redis *redis, const store_result *result, store_token *tokens);

typedef enum store_verdict { STORE_GOOD, STORE_STALE, STORE_UNKNOWN } store_verdict;

store_verdict store_redis_check(store_redis *redis, const store_result *result);
void store_redis_remove_tag(store_redis *redis, rt_str tag);
void store_redis_clear(store_redis *redis);

bool store_redis_is_up(store_redis *redis);
rt_error store_redis_state(store_redis *redis);
uint64_t store_redis_errors(store_redis *redis); /* so far: failures, and answers that are errors */

#endif
