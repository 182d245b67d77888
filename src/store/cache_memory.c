/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache_memory.c - results in memory; for room, the least recently used go.
 *
 * A small cache is one shard, so that the order of use is exact. A large one is several, each with
 * a lock, a table, an order and its share of the room, so that many threads seldom meet. An entry
 * is never changed: a put makes a new one. It is freed with its last reference, so a reader copies
 * the value with no lock held.
 *
 * Time is an argument: who calls knows what time it is, and a test can know better.
 */
#include "store/cache_internal.h"

#include <pthread.h>
#include <stdlib.h>

#define EXACT_MAX   1000 /* so many entries, and the order of use is exact */
#define SHARDS_MAX  16
#define BUCKETS_MIN 64 /* a power of two */

typedef struct shard {
    _Alignas(64) pthread_mutex_t lock; /* the next shard's lock is not on this cache line */
    store_entry **buckets;
    size_t bucket_count, entries;
    uint64_t bytes, evictions;
    store_entry *newest, *oldest;
} shard;

struct store_memory {
    store_memory_limits share; /* of one shard */
    rt_hash_key hash_key;
    _Atomic uint64_t era;
    size_t shard_count; /* a power of two */
    shard shards[SHARDS_MAX];
};

static void *zeroed(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        rt_out_of_memory(count * size);
    return memory;
}

/* -- Entries ----------------------------------------------------------------------------------- */

static char *put_bytes(char *at, rt_str *view, rt_str bytes)
{
    if (bytes.len)
        memcpy(at, bytes.ptr, bytes.len);
    *view = (rt_str){ at, bytes.len };
    return at + bytes.len;
}

static size_t entry_size(const store_result *result)
{
    size_t size = sizeof(store_entry) + result->key.len + result->value.len;
    for (size_t i = 0; i < result->tag_count; i++)
        size += sizeof(rt_str) + sizeof(store_token) + result->tags[i].len;
    return size;
}

static store_entry *entry_new(const store_result *result)
{
    size_t size = entry_size(result), tag_count = result->tag_count;
    store_entry *entry = malloc(size);
    if (!entry)
        rt_out_of_memory(size);
    rt_str *tags = (rt_str *)(entry + 1);
    store_token *tokens = (store_token *)(tags + tag_count);
    char *at = (char *)(tokens + tag_count);
    *entry = (store_entry){ .result = *result, .references = 1, .size = size };
    at = put_bytes(at, &entry->result.key, result->key);
    for (size_t i = 0; i < tag_count; i++)
        at = put_bytes(at, &tags[i], result->tags[i]);
    put_bytes(at, &entry->result.value, result->value);
    if (result->tokens)
        memcpy(tokens, result->tokens, tag_count * sizeof(*tokens));
    entry->result.tags = tags;
    entry->result.tokens = result->tokens ? tokens : NULL;
    return entry;
}

void store_entry_releasep(store_entry **entry)
{
    if (*entry && atomic_fetch_sub(&(*entry)->references, 1) == 1)
        free(*entry);
    *entry = NULL;
}

static bool has_tag(const store_entry *entry, rt_str tag)
{
    for (size_t i = 0; i < entry->result.tag_count; i++)
        if (rt_str_eq(entry->result.tags[i], tag))
            return true;
    return false;
}

/* -- One shard, its lock held ------------------------------------------------------------------ */

static void unlockp(shard **held)
{
    pthread_mutex_unlock(&(*held)->lock);
}

static shard *lock(shard *which)
{
    pthread_mutex_lock(&which->lock);
    return which;
}

static store_entry **place_of(shard *s, uint64_t hash, rt_str key)
{
    store_entry **at = &s->buckets[hash & (s->bucket_count - 1)];
    while (*at && !((*at)->hash == hash && rt_str_eq((*at)->result.key, key)))
        at = &(*at)->chain;
    return at;
}

static void leave_order(shard *s, store_entry *entry)
{
    *(entry->newer ? &entry->newer->older : &s->newest) = entry->older;
    *(entry->older ? &entry->older->newer : &s->oldest) = entry->newer;
}

static void become_newest(shard *s, store_entry *entry)
{
    entry->newer = NULL;
    entry->older = s->newest;
    *(s->newest ? &s->newest->newer : &s->oldest) = entry;
    s->newest = entry;
}

static void remove_entry(shard *s, store_entry *entry)
{
    *place_of(s, entry->hash, entry->result.key) = entry->chain;
    leave_order(s, entry);
    s->entries--;
    s->bytes -= entry->size;
    entry->is_held = false;
    store_entry_releasep(&entry);
}

static void grow(shard *s)
{
    size_t old_count = s->bucket_count;
    store_entry **old = s->buckets;
    s->bucket_count = old_count * 2;
    s->buckets = zeroed(s->bucket_count, sizeof(*s->buckets));
    for (size_t i = 0; i < old_count; i++) {
        for (store_entry *entry = old[i], *next; entry; entry = next) {
            next = entry->chain;
            store_entry **bucket = &s->buckets[entry->hash & (s->bucket_count - 1)];
            entry->chain = *bucket;
            *bucket = entry;
        }
    }
    free(old);
}

static void add_entry(shard *s, store_entry *entry)
{
    if (s->entries >= s->bucket_count)
        grow(s);
    store_entry **bucket = &s->buckets[entry->hash & (s->bucket_count - 1)];
    entry->chain = *bucket;
    *bucket = entry;
    become_newest(s, entry);
    s->entries++;
    s->bytes += entry->size;
    entry->is_held = true;
}

static void make_room(shard *s, const store_memory_limits *share)
{
    while (s->entries > share->max_entries || s->bytes > share->max_bytes) {
        remove_entry(s, s->oldest);
        s->evictions++;
    }
}

/* -- All of them ------------------------------------------------------------------------------- */

/* As many shards as each still have room for two values of the largest size. */
static size_t choose_shards(const store_memory_limits *limits)
{
    size_t count = limits->max_entries <= EXACT_MAX ? 1 : SHARDS_MAX;
    while (count > 1 && limits->max_bytes / count / 2 < limits->value_bytes)
        count /= 2;
    return count;
}

store_memory *store_memory_new(const store_memory_limits *limits)
{
    store_memory *memory = aligned_alloc(_Alignof(store_memory), sizeof(*memory));
    if (!memory)
        rt_out_of_memory(sizeof(*memory));
    *memory = (store_memory){ .share = *limits, .shard_count = choose_shards(limits) };
    memory->share.max_entries = RT_MAX(limits->max_entries / memory->shard_count, (size_t)1);
    memory->share.max_bytes = limits->max_bytes / memory->shard_count;
    rt_random_bytes(&memory->hash_key, sizeof(memory->hash_key));
    for (size_t i = 0; i < memory->shard_count; i++) {
        shard *s = &memory->shards[i];
        pthread_mutex_init(&s->lock, NULL);
        s->bucket_count = BUCKETS_MIN;
        s->buckets = zeroed(s->bucket_count, sizeof(*s->buckets));
    }
    return memory;
}

void store_memory_free(store_memory *memory)
{
    if (!memory)
        return;
    store_memory_clear(memory);
    for (size_t i = 0; i < memory->shard_count; i++) {
        free(memory->shards[i].buckets);
        pthread_mutex_destroy(&memory->shards[i].lock);
    }
    free(memory);
}

/* The top bits choose the shard, the low bits the bucket in it. */
static shard *shard_of(store_memory *memory, uint64_t hash)
{
    return &memory->shards[(hash >> 32) & (memory->shard_count - 1)];
}

store_entry *store_memory_find(store_memory *memory, rt_str key, uint64_t now_ns)
{
    uint64_t hash = rt_hash(&memory->hash_key, key);
    shard *s RT_CLEANUP(unlockp) = lock(shard_of(memory, hash));
    store_entry *entry = *place_of(s, hash, key);
    if (!entry)
        return NULL;
    if (now_ns >= entry->expires_ns) {
        remove_entry(s, entry);
        s->evictions++;
        return NULL;
    }
    if (entry != s->newest) {
        leave_order(s, entry);
        become_newest(s, entry);
    }
    atomic_fetch_add(&entry->references, 1);
    return entry;
}

uint64_t store_memory_era(store_memory *memory)
{
    return atomic_load(&memory->era);
}

void store_memory_put(store_memory *memory, const store_result *result, uint64_t now_ns,
                      uint64_t expires_ns, uint64_t era)
{
    if (result->value.len > memory->share.value_bytes ||
        entry_size(result) > memory->share.max_bytes)
        return;
    store_entry *entry = entry_new(result);
    entry->hash = rt_hash(&memory->hash_key, result->key);
    entry->expires_ns = expires_ns;
    entry->checked_ns = now_ns;

    shard *s RT_CLEANUP(unlockp) = lock(shard_of(memory, entry->hash));
    /* Under the lock: a removal that begins after this look will come to this shard and find it. */
    if (atomic_load(&memory->era) != era) {
        store_entry_releasep(&entry);
        return;
    }
    store_entry *old = *place_of(s, entry->hash, result->key);
    if (old)
        remove_entry(s, old);
    add_entry(s, entry);
    make_room(s, &memory->share);
}

void store_memory_remove(store_memory *memory, store_entry *entry)
{
    shard *s RT_CLEANUP(unlockp) = lock(shard_of(memory, entry->hash));
    if (entry->is_held)
        remove_entry(s, entry);
}

static uint64_t remove_tag_from(shard *which, rt_str tag)
{
    shard *s RT_CLEANUP(unlockp) = lock(which);
    uint64_t removed = 0;
    for (store_entry *entry = s->newest, *next; entry; entry = next) {
        next = entry->older;
        if (has_tag(entry, tag)) {
            remove_entry(s, entry);
            removed++;
        }
    }
    return removed;
}

uint64_t store_memory_remove_tag(store_memory *memory, rt_str tag)
{
    uint64_t removed = 0;
    atomic_fetch_add(&memory->era, 1);
    for (size_t i = 0; i < memory->shard_count; i++)
        removed += remove_tag_from(&memory->shards[i], tag);
    return removed;
}

static void clear_shard(shard *which)
{
    shard *s RT_CLEANUP(unlockp) = lock(which);
    while (s->newest)
        remove_entry(s, s->newest);
    s->evictions = 0;
}

void store_memory_clear(store_memory *memory)
{
    atomic_fetch_add(&memory->era, 1);
    for (size_t i = 0; i < memory->shard_count; i++)
        clear_shard(&memory->shards[i]);
}

store_memory_counts store_memory_count(store_memory *memory)
{
    store_memory_counts counts = { 0 };
    for (size_t i = 0; i < memory->shard_count; i++) {
        shard *s RT_CLEANUP(unlockp) = lock(&memory->shards[i]);
        counts.entries += s->entries;
        counts.bytes += s->bytes;
        counts.evictions += s->evictions;
    }
    return counts;
}
