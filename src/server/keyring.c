/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keyring.c - keys looked up a moment ago, so that a busy client does not ask the store each time.
 *
 * Entries are found by the SHA-256 of the secret, never by the secret. Each hash has one place, and
 * the newcomer takes it: the ring cannot grow. A key that was good is good for a second more; one
 * that was bad stays bad for five. An address that brings too many bad ones is not looked up for a
 * while, unless it brings a key that is known to be good.
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
    bool is_good, is_used;
    rt_key key;
    rt_arena arena; /* the key's texts */
} place;

struct guard_keyring {
    rt_store *store;
    pthread_mutex_t lock;
    server_rate *failures;
    place places[PLACES];
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
        rt_arena_done(&ring->places[i].arena);
    server_rate_free(ring->failures);
    pthread_mutex_destroy(&ring->lock);
    free(ring);
}

void guard_keyring_forget(guard_keyring *ring)
{
    pthread_mutex_lock(&ring->lock);
    for (size_t i = 0; i < PLACES; i++)
        ring->places[i].until_ns = 0;
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

static place *place_of(guard_keyring *ring, const uint8_t hash[RT_SHA256_SIZE])
{
    return &ring->places[hash[0] % PLACES];
}

typedef enum memory { UNKNOWN, GOOD, BAD } memory;

static memory recall(guard_keyring *ring, const uint8_t hash[RT_SHA256_SIZE], rt_arena *arena,
                     rt_key *out)
{
    memory known = UNKNOWN;
    place *p = place_of(ring, hash);
    pthread_mutex_lock(&ring->lock);
    if (p->is_used && rt_now_ns() < p->until_ns && memcmp(p->hash, hash, RT_SHA256_SIZE) == 0) {
        known = p->is_good ? GOOD : BAD;
        if (p->is_good)
            copy_key(&p->key, arena, out);
    }
    pthread_mutex_unlock(&ring->lock);
    return known;
}

/* True when it is time to write down that the key was used. */
static bool remember(guard_keyring *ring, const uint8_t hash[RT_SHA256_SIZE], const rt_key *key)
{
    uint64_t now = rt_now_ns();
    place *p = place_of(ring, hash);
    pthread_mutex_lock(&ring->lock);
    bool is_same = p->is_used && memcmp(p->hash, hash, RT_SHA256_SIZE) == 0;
    bool is_due = key && (!is_same || now - p->touched_ns > TOUCH_NS);
    uint64_t touched = is_due ? now : is_same ? p->touched_ns : 0;
    rt_arena_reset(&p->arena);
    memcpy(p->hash, hash, RT_SHA256_SIZE);
    p->is_used = true;
    p->is_good = key != NULL;
    p->until_ns = now + (key ? GOOD_NS : BAD_NS);
    p->touched_ns = touched;
    if (key)
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
        remember(ring, hash, NULL);
        return rt_fail(err, RT_LIMIT, "too many wrong keys from this address");
    }
    return rt_fail(err, RT_DENIED, "the key is unknown, expired or revoked");
}

bool guard_keyring_find(guard_keyring *ring, rt_str secret, rt_str address, rt_arena *arena,
                        rt_key *out, uint64_t *retry_after_ms, rt_error *err)
{
    uint8_t hash[RT_SHA256_SIZE], from[RT_SHA256_SIZE];
    rt_sha256(secret, hash);
    memory known = recall(ring, hash, arena, out);
    if (known == GOOD)
        return true;
    address_hash(address, from);
    if (recall(ring, from, arena, out) == BAD) {
        *retry_after_ms = BAD_NS / 1000000;
        return rt_fail(err, RT_LIMIT, "too many wrong keys from this address");
    }
    if (known == BAD)
        return refuse(ring, address, retry_after_ms, err);
    if (!rt_key_find(ring->store, secret, arena, out, err)) {
        if (err->code != RT_DENIED && err->code != RT_NOT_FOUND && err->code != RT_INVALID)
            return rt_wrap(err, "look up a key");
        remember(ring, hash, NULL);
        return refuse(ring, address, retry_after_ms, err);
    }
    if (remember(ring, hash, out))
        rt_key_touch(ring->store, out->id, rt_wall_ms(), NULL); /* only a note */
    return true;
}
