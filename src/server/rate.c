/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rate.c - token buckets, each kept as one moment in time.
 *
 * A bucket that holds `burst` tokens and gains one each `step` is told by the moment it will be
 * full again. Taking a token moves that moment on by a step; there is one to take as long as it
 * then lies no more than `burst` steps ahead. Nothing has to be refilled, and a moment that has
 * passed says the same as no bucket at all, so forgetting it loses nothing.
 *
 * A table is shards with a lock each; a shard is slots given out once, chains of them by hash, and
 * their order of use. A key is remembered by 128 bits of a hash with a secret key: it takes no room
 * of its own, and nobody can make two keys meet.
 */
#include "server/rate.h"

#include <pthread.h>
#include <stdlib.h>

#define DEFAULT_KEYS 65536
#define KEYS_MAX     ((size_t)1 << 24)
#define SHARDS       16 /* a power of two */
#define MINUTE_NS    UINT64_C(60000000000)
#define MS           UINT64_C(1000000) /* in nanoseconds */
#define BURST_MIN    10
#define NONE         UINT32_MAX

typedef struct name {
    uint64_t high, low;
} name;

typedef struct slot {
    name name;
    uint64_t full_ns;             /* when the bucket is full again */
    uint32_t chain, newer, older; /* slots, or NONE */
} slot;

typedef struct shard {
    _Alignas(64) pthread_mutex_t lock;
    slot *slots;
    uint32_t *heads; /* of chains, as many as slots */
    uint32_t size, used, newest, oldest;
} shard;

struct server_rate {
    rt_hash_key keys[2];
    shard shards[SHARDS];
};

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        rt_out_of_memory(count * size);
    return memory;
}

static void shard_init(shard *s, uint32_t size)
{
    pthread_mutex_init(&s->lock, NULL);
    s->slots = allocate(size, sizeof(*s->slots));
    s->heads = allocate(size, sizeof(*s->heads));
    memset(s->heads, 0xFF, size * sizeof(*s->heads)); /* NONE */
    s->size = size;
    s->newest = s->oldest = NONE;
}

server_rate *server_rate_new(size_t max_keys)
{
    size_t keys = max_keys ? RT_MIN(max_keys, KEYS_MAX) : DEFAULT_KEYS;
    server_rate *rate = aligned_alloc(_Alignof(server_rate), sizeof(*rate));
    if (!rate)
        rt_out_of_memory(sizeof(*rate));
    memset(rate, 0, sizeof(*rate));
    rt_random_bytes(rate->keys, sizeof(rate->keys));
    for (size_t i = 0; i < SHARDS; i++)
        shard_init(&rate->shards[i], (uint32_t)((keys + SHARDS - 1) / SHARDS));
    return rate;
}

void server_rate_free(server_rate *rate)
{
    if (!rate)
        return;
    for (size_t i = 0; i < SHARDS; i++) {
        pthread_mutex_destroy(&rate->shards[i].lock);
        free(rate->shards[i].slots);
        free(rate->shards[i].heads);
    }
    free(rate);
}

void server_rate_freep(server_rate **rate)
{
    server_rate_free(*rate);
    *rate = NULL;
}

/* -- One shard, its lock held ------------------------------------------------------------------ */

static uint32_t *head_of(shard *s, name who)
{
    return &s->heads[(who.low >> 8) % s->size]; /* the low bits have chosen the shard */
}

static uint32_t find(shard *s, name who)
{
    uint32_t at = *head_of(s, who);
    while (at != NONE && (s->slots[at].name.high != who.high || s->slots[at].name.low != who.low))
        at = s->slots[at].chain;
    return at;
}

static void leave_order(shard *s, uint32_t which)
{
    slot *it = &s->slots[which];
    *(it->newer != NONE ? &s->slots[it->newer].older : &s->newest) = it->older;
    *(it->older != NONE ? &s->slots[it->older].newer : &s->oldest) = it->newer;
}

static void become_newest(shard *s, uint32_t which)
{
    s->slots[which].newer = NONE;
    s->slots[which].older = s->newest;
    *(s->newest != NONE ? &s->slots[s->newest].newer : &s->oldest) = which;
    s->newest = which;
}

static uint32_t forget_oldest(shard *s)
{
    uint32_t which = s->oldest, *at = head_of(s, s->slots[which].name);
    while (*at != which)
        at = &s->slots[*at].chain;
    *at = s->slots[which].chain;
    leave_order(s, which);
    return which;
}

/* The slot of the key, now the newest. */
static slot *slot_for(shard *s, name who)
{
    uint32_t which = find(s, who);
    if (which != NONE) {
        leave_order(s, which);
    } else {
        which = s->used < s->size ? s->used++ : forget_oldest(s);
        uint32_t *head = head_of(s, who);
        s->slots[which] = (slot){ .name = who, .chain = *head };
        *head = which;
    }
    become_newest(s, which);
    return &s->slots[which];
}

/* -- Taking ------------------------------------------------------------------------------------ */

static uint64_t burst_of(uint64_t per_minute)
{
    return RT_MAX(per_minute / 6, RT_MIN(per_minute, (uint64_t)BURST_MIN));
}

/* How long until there is a token; 0: there was one, and it is taken. */
static uint64_t take(slot *bucket, uint64_t per_minute, uint64_t now_ns)
{
    uint64_t step_ns = MINUTE_NS / per_minute, room_ns = burst_of(per_minute) * step_ns;
    /* Emptier than empty it can only be by another rate, and that one counts no more. */
    uint64_t full_ns = RT_MIN(RT_MAX(bucket->full_ns, now_ns), now_ns + room_ns);
    bool has_token = full_ns + step_ns <= now_ns + room_ns;
    bucket->full_ns = has_token ? full_ns + step_ns : full_ns;
    return has_token ? 0 : full_ns + step_ns - now_ns - room_ns;
}

static void unlockp(shard **held)
{
    pthread_mutex_unlock(&(*held)->lock);
}

static shard *lock(shard *which)
{
    pthread_mutex_lock(&which->lock);
    return which;
}

bool server_rate_take(server_rate *rate, rt_str key, uint64_t per_minute, uint64_t now_ns,
                      uint64_t *retry_after_ms)
{
    *retry_after_ms = 0;
    if (per_minute == 0 || per_minute > MINUTE_NS)
        return true; /* more than one a nanosecond is no limit either */
    name who = { rt_hash(&rate->keys[0], key), rt_hash(&rate->keys[1], key) };
    shard *s RT_CLEANUP(unlockp) = lock(&rate->shards[who.low & (SHARDS - 1)]);
    uint64_t wait_ns = take(slot_for(s, who), per_minute, now_ns);
    *retry_after_ms = (wait_ns + MS - 1) / MS;
    return wait_ns == 0;
}
