/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keyring.c - keys looked up a moment ago, so that a busy client does not ask the store each time.
 *
 * Entries are found by the SHA-256 of the secret, never by the secret. Each hash has one place, and
 * the newcomer takes it: the ring cannot grow. A key that was good is good for a second more, one
 * that was bad stays bad for five, and the two have places of their own, so that nobody drives good
 * keys out with bad ones. An address that brings too many bad keys is not looked up for a while;
 * a key that has been good before is, because others may share the address.
 */
#include "server/guard.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "server/rate.h"

#define PLACES              256
#define GOOD_NS             1000000000ull
#define BAD_NS              5000000000ull
#define TOUCH_NS            60000000000ull /* how often "last used" is written */
#define FAILURES_PER_MINUTE 30
#define FAILING_ADDRESSES   4096

typedef struct place {
    uint8_t hash[RT_SHA256_SIZE];
    uint64_t until_ns, touched_ns;
    bool is_used;
    rt_key key;     /* of a good one */
    rt_arena arena; /* the key's texts */
} place;

struct guard_keyring {
    rt_store *store;
    pthread_mutex_t lock;
    server_rate *failures;
    place good[PLACES], bad[PLACES];
};

guard_keyring *guard_keyring_new(rt_store *store)
{
    guard_keyring *ring = calloc(1, sizeof(*ring));
    if (!ring)
        rt_out_of_memory(sizeof(*ring));
    ring->store = store;
    pthread_mutex_init(&ring->lock, NULL);
    ring->failures = server_rate_new(FAILING_ADDRESSES);
    return ring;
}

void guard_keyring_free(guard_keyring *ring)
{
    if (!ring)
        return;
    for (size_t i = 0; i < PLACES; i++)
        rt_arena_done(&ring->good[i].arena);
    server_rate_free(ring->failures);
    pthread_mutex_destroy(&ring->lock);
    free(ring);
}

void guard_keyring_forget(guard_keyring *ring)
{
    pthread_mutex_lock(&ring->lock);
    for (size_t i = 0; i < PLACES; i++)
        ring->good[i].until_ns = 0;
    pthread_mutex_unlock(&ring->lock);
}

static void copy_key(const rt_key *from, rt_arena *arena, rt_key *out)
{
    *out = *from;
    rt_str *texts[] = { &out->id,           &out->name,   &out->prefix, &out->organisation_id,
                        &out->workspace_id, &out->user_id };
    for (size_t i = 0; i < RT_COUNT(texts); i++)
        *texts[i] = rt_arena_str(arena, *texts[i]);
}

typedef enum memory { UNKNOWN, STALE, FRESH } memory;

/* What a row of places knows of a hash; the key is copied out when it is good and fresh. */
static memory recall(guard_keyring *ring, place *places, const uint8_t hash[RT_SHA256_SIZE],
                     rt_arena *arena, rt_key *out)
{
    memory known = UNKNOWN;
    place *p = &places[hash[0] % PLACES];
    pthread_mutex_lock(&ring->lock);
    if (p->is_used && memcmp(p->hash, hash, RT_SHA256_SIZE) == 0) {
        known = rt_now_ns() < p->until_ns ? FRESH : STALE;
        if (known == FRESH && out)
            copy_key(&p->key, arena, out);
    }
    pthread_mutex_unlock(&ring->lock);
    return known;
}

static void remember_bad(guard_keyring *ring, const uint8_t hash[RT_SHA256_SIZE])
{
    place *p = &ring->bad[hash[0] % PLACES], *was = &ring->good[hash[0] % PLACES];
    pthread_mutex_lock(&ring->lock);
    memcpy(p->hash, hash, RT_SHA256_SIZE);
    p->until_ns = rt_now_ns() + BAD_NS;
    p->is_used = true;
    if (was->is_used && memcmp(was->hash, hash, RT_SHA256_SIZE) == 0)
        was->is_used = false;
    pthread_mutex_unlock(&ring->lock);
}

/* True when it is time to write down that the key was used. */
static bool remember_good(guard_keyring *ring, const uint8_t hash[RT_SHA256_SIZE],
                          const rt_key *key)
{
    uint64_t now = rt_now_ns();
    place *p = &ring->good[hash[0] % PLACES];
    pthread_mutex_lock(&ring->lock);
    bool is_same = p->is_used && memcmp(p->hash, hash, RT_SHA256_SIZE) == 0;
    bool is_due = !is_same || now - p->touched_ns > TOUCH_NS;
    rt_arena_reset(&p->arena);
    memcpy(p->hash, hash, RT_SHA256_SIZE);
    p->is_used = true;
    p->until_ns = now + GOOD_NS;
    p->touched_ns = is_due ? now : p->touched_ns;
    copy_key(key, &p->arena, &p->key);
    pthread_mutex_unlock(&ring->lock);
    return is_due;
}

/* An address without failures left is remembered as if it were a bad key. */
static void address_hash(rt_str address, uint8_t out[RT_SHA256_SIZE])
{
    rt_sha256_stream hash RT_CLEANUP(rt_sha256_done) = { 0 };
    rt_sha256_init(&hash);
    rt_sha256_add(&hash, RT_STR("address "));
    rt_sha256_add(&hash, address);
    rt_sha256_end(&hash, out);
}

static bool refuse(guard_keyring *ring, rt_str address, uint64_t *retry_after_ms, rt_error *err)
{
    uint8_t hash[RT_SHA256_SIZE];
    if (!server_rate_take(ring->failures, address, FAILURES_PER_MINUTE, rt_now_ns(),
                          retry_after_ms)) {
        address_hash(address, hash);
        remember_bad(ring, hash);
        return rt_fail(err, RT_LIMIT, "too many wrong keys from this address");
    }
    return rt_fail(err, RT_DENIED, "the key is unknown, expired or revoked");
}

/* Whether it is worth to ask the store. */
static bool is_welcome(guard_keyring *ring, const uint8_t hash[RT_SHA256_SIZE], rt_str address,
                       uint64_t *retry_after_ms, rt_error *err)
{
    uint8_t from[RT_SHA256_SIZE];
    address_hash(address, from);
    if (recall(ring, ring->bad, from, NULL, NULL) == FRESH) {
        *retry_after_ms = BAD_NS / 1000000;
        return rt_fail(err, RT_LIMIT, "too many wrong keys from this address");
    }
    return recall(ring, ring->bad, hash, NULL, NULL) != FRESH ||
           refuse(ring, address, retry_after_ms, err);
}

bool guard_keyring_find(guard_keyring *ring, rt_str secret, rt_str address, rt_arena *arena,
                        rt_key *out, uint64_t *retry_after_ms, rt_error *err)
{
    uint8_t hash[RT_SHA256_SIZE];
    rt_sha256(secret, hash);
    memory known = recall(ring, ring->good, hash, arena, out);
    if (known == FRESH)
        return true;
    if (known == UNKNOWN && !is_welcome(ring, hash, address, retry_after_ms, err))
        return false;
    if (!rt_key_find(ring->store, secret, arena, out, err)) {
        if (err->code != RT_DENIED && err->code != RT_NOT_FOUND && err->code != RT_INVALID)
            return rt_wrap(err, "look up a key");
        remember_bad(ring, hash);
        return refuse(ring, address, retry_after_ms, err);
    }
    if (remember_good(ring, hash, out))
        rt_key_touch(ring->store, out->id, rt_wall_ms(), NULL); /* only a note */
    return true;
}
