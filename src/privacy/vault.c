/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vault.c - the values behind the tokens of one run or session.
 *
 * Values live in pages of their own: locked against swapping where the limit allows it, left out
 * of core dumps, not inherited by children. A page never moves, so a value can be lent. Indexes
 * hold positions and keyed hashes, no values; they are ordinary memory.
 *
 * A run's tool calls come and go on several threads, so a lock is taken by every function that
 * other rooms call; what is lent stays where it is until the vault is wiped.
 */
#include "privacy/privacy_internal.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE_BYTES = 16 << 10, SPARE_MAX = 32 };

typedef struct page {
    struct page *next;
    size_t size, used;
    char *bytes; /* mapped */
    bool is_locked;
} page;

typedef struct entry {
    rt_str value;
    uint64_t hash;
    size_t number;
    unsigned type;
} entry;

struct rt_privacy_vault {
    pthread_mutex_t lock; /* of all that follows */
    unsigned holders;
    page *pages;
    size_t bytes;
    entry *entries;
    size_t count, capacity;
    size_t *numbered[RT_PII_MAX]; /* entry of each number, from 1; by type */
    size_t counts[RT_PII_MAX];
    size_t *slots; /* stable values: entry + 1, or 0 */
    size_t slot_count, slots_used;
    rt_hash_key key;
    bool has_key; /* made for the first stable value: most vaults have none */
    char names[RT_PII_MAX][PRIVACY_NAME_MAX + 1]; /* of own patterns' tokens */
};

bool rt_privacy_vault_open(rt_privacy_vault **out, rt_error *err)
{
    rt_privacy_vault *vault = calloc(1, sizeof(*vault));
    (void)err;
    if (!vault)
        rt_out_of_memory(sizeof(*vault));
    pthread_mutex_init(&vault->lock, NULL);
    vault->holders = 1;
    *out = vault;
    return true;
}

rt_privacy_vault *rt_privacy_vault_share(rt_privacy_vault *vault)
{
    pthread_mutex_lock(&vault->lock);
    vault->holders++;
    pthread_mutex_unlock(&vault->lock);
    return vault;
}

/* ---- pages ---- */

/* Wiped pages of the usual size wait here for the next vault: getting one from the kernel, locked,
 * takes longer than filling it. */
static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;
static page *spare;
static size_t spare_count;

static bool take_spare(page **out)
{
    pthread_mutex_lock(&spare_lock);
    *out = spare;
    if (spare) {
        spare = spare->next;
        spare_count--;
    }
    pthread_mutex_unlock(&spare_lock);
    return *out != NULL;
}

/* Only what was written needs wiping. */
static void give_back(page *p)
{
    explicit_bzero(p->bytes, p->used);
    p->used = 0;
    pthread_mutex_lock(&spare_lock);
    bool is_kept = p->size == PAGE_BYTES && p->is_locked && spare_count < SPARE_MAX;
    if (is_kept) {
        p->next = spare;
        spare = p;
        spare_count++;
    }
    pthread_mutex_unlock(&spare_lock);
    if (is_kept)
        return;
    munmap(p->bytes, p->size);
    free(p);
}

static bool map_page(size_t size, page **out, rt_error *err)
{
    char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED)
        return rt_fail_errno(err, "memory for a vault");
    if (madvise(bytes, size, MADV_DONTDUMP) != 0 || madvise(bytes, size, MADV_DONTFORK) != 0) {
        rt_fail_errno(err, "keep a vault out of core dumps and children");
        munmap(bytes, size);
        return false;
    }
    page *p = calloc(1, sizeof(*p));
    if (!p)
        rt_out_of_memory(sizeof(*p));
    *p = (page){ .size = size, .bytes = bytes, .is_locked = mlock(bytes, size) == 0 };
    *out = p;
    return true;
}

static bool add_page(rt_privacy_vault *vault, size_t least, rt_error *err)
{
    size_t size = (least + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    page *p;
    if (vault->bytes + size > RT_PRIVACY_VAULT_BYTES_MAX)
        return rt_fail(err, RT_LIMIT, "a vault holds at most %zu bytes",
                       RT_PRIVACY_VAULT_BYTES_MAX);
    if (!(size == PAGE_BYTES && take_spare(&p)) && !map_page(size, &p, err))
        return false;
    p->next = vault->pages;
    vault->pages = p;
    vault->bytes += size;
    return true;
}

static void drop_pages(rt_privacy_vault *vault)
{
    while (vault->pages) {
        page *p = vault->pages;
        vault->pages = p->next;
        give_back(p);
    }
    vault->bytes = 0;
}

/* ---- the end ---- */

static void forget_all(rt_privacy_vault *vault)
{
    drop_pages(vault);
    if (vault->entries)
        explicit_bzero(vault->entries, vault->capacity * sizeof(*vault->entries));
    free(RT_TAKE(vault->entries));
    free(RT_TAKE(vault->slots));
    for (size_t type = 0; type < RT_PII_MAX; type++) {
        free(RT_TAKE(vault->numbered[type]));
        vault->counts[type] = 0;
    }
    vault->count = vault->capacity = vault->slot_count = vault->slots_used = 0;
    vault->has_key = false;
}

void rt_privacy_vault_wipe(rt_privacy_vault *vault)
{
    pthread_mutex_lock(&vault->lock);
    forget_all(vault);
    pthread_mutex_unlock(&vault->lock);
}

void rt_privacy_vault_closep(rt_privacy_vault **vault)
{
    rt_privacy_vault *v = RT_TAKE(*vault);
    if (!v)
        return;
    pthread_mutex_lock(&v->lock);
    bool is_last = --v->holders == 0;
    pthread_mutex_unlock(&v->lock);
    if (!is_last)
        return;
    forget_all(v);
    pthread_mutex_destroy(&v->lock);
    explicit_bzero(v, sizeof(*v));
    free(v);
}

size_t rt_privacy_vault_count(rt_privacy_vault *vault)
{
    pthread_mutex_lock(&vault->lock);
    size_t count = vault->count;
    pthread_mutex_unlock(&vault->lock);
    return count;
}

bool rt_privacy_vault_is_locked(rt_privacy_vault *vault)
{
    bool is_locked = true;
    pthread_mutex_lock(&vault->lock);
    for (const page *p = vault->pages; p; p = p->next)
        is_locked &= p->is_locked;
    pthread_mutex_unlock(&vault->lock);
    return is_locked;
}

/* ---- keeping values ---- */

static bool keep(rt_privacy_vault *vault, rt_str value, rt_str *out, rt_error *err)
{
    page *p = vault->pages;
    if ((!p || p->size - p->used < value.len) && !add_page(vault, value.len, err))
        return false;
    p = vault->pages;
    char *to = p->bytes + p->used;
    if (value.len)
        memcpy(to, value.ptr, value.len);
    p->used += value.len;
    *out = (rt_str){ to, value.len };
    return true;
}

/* An array that doubles: room for one more after `count`. */
static void *grown(void *old, size_t count, size_t size)
{
    bool is_full = count == 0 || (count >= 16 && (count & (count - 1)) == 0);
    if (!is_full)
        return old;
    size_t capacity = count ? count * 2 : 16;
    void *grew = reallocarray(old, capacity, size);
    if (!grew)
        rt_out_of_memory(capacity * size);
    return grew;
}

/* ---- equal values ---- */

static size_t *slot_of(const rt_privacy_vault *vault, unsigned type, rt_str value, uint64_t hash)
{
    size_t mask = vault->slot_count - 1, i = (hash + type) & mask;
    while (vault->slots[i]) {
        const entry *e = &vault->entries[vault->slots[i] - 1];
        if (e->hash == hash && e->type == type && rt_str_eq(e->value, value))
            break;
        i = (i + 1) & mask;
    }
    return &vault->slots[i];
}

static void make_room_for_slot(rt_privacy_vault *vault)
{
    size_t *old = vault->slots, old_count = vault->slot_count;
    if (vault->slots_used * 2 < vault->slot_count)
        return;
    vault->slot_count = old_count ? old_count * 2 : 64;
    vault->slots = calloc(vault->slot_count, sizeof(*vault->slots));
    if (!vault->slots)
        rt_out_of_memory(vault->slot_count * sizeof(*vault->slots));
    for (size_t i = 0; i < old_count; i++) {
        const entry *e = old[i] ? &vault->entries[old[i] - 1] : NULL;
        if (e)
            *slot_of(vault, e->type, e->value, e->hash) = old[i];
    }
    free(old);
}

static bool add(rt_privacy_vault *vault, unsigned type, rt_str value, bool is_stable,
                size_t *number, rt_error *err)
{
    entry e = { .type = type };
    size_t *slot = NULL;
    assert(type < RT_PII_MAX);
    if (is_stable) {
        if (!vault->has_key)
            rt_random_bytes(&vault->key, sizeof(vault->key));
        vault->has_key = true;
        make_room_for_slot(vault);
        e.hash = rt_hash(&vault->key, value);
        slot = slot_of(vault, type, value, e.hash);
        if (*slot) {
            *number = vault->entries[*slot - 1].number;
            return true;
        }
    }
    if (vault->count == RT_PRIVACY_VAULT_VALUES_MAX)
        return rt_fail(err, RT_LIMIT, "a vault holds at most %zu values",
                       RT_PRIVACY_VAULT_VALUES_MAX);
    if (!keep(vault, value, &e.value, err))
        return false;
    vault->entries = grown(vault->entries, vault->count, sizeof(*vault->entries));
    vault->capacity = vault->count + 1;
    vault->numbered[type] = grown(vault->numbered[type], vault->counts[type], sizeof(size_t));
    e.number = vault->counts[type] + 1;
    vault->numbered[type][vault->counts[type]++] = vault->count;
    vault->entries[vault->count++] = e;
    if (slot) {
        *slot = vault->count;
        vault->slots_used++;
    }
    *number = e.number;
    return true;
}

bool rt_privacy_vault_add(rt_privacy_vault *vault, unsigned type, rt_str value, bool is_stable,
                          size_t *number, rt_error *err)
{
    pthread_mutex_lock(&vault->lock);
    bool ok = add(vault, type, value, is_stable, number, err);
    pthread_mutex_unlock(&vault->lock);
    return ok;
}

bool rt_privacy_vault_get(rt_privacy_vault *vault, unsigned type, size_t number, rt_str *out,
                          rt_error *err)
{
    pthread_mutex_lock(&vault->lock);
    bool is_known = type < RT_PII_MAX && number > 0 && number <= vault->counts[type];
    if (is_known)
        *out = vault->entries[vault->numbered[type][number - 1]].value;
    pthread_mutex_unlock(&vault->lock);
    return is_known || rt_fail(err, RT_NOT_FOUND, "no such token was given out");
}

bool privacy_vault_slot(rt_privacy_vault *vault, rt_str name, unsigned *type, rt_error *err)
{
    unsigned t = RT_PII_BUILTIN;
    assert(name.len <= PRIVACY_NAME_MAX);
    pthread_mutex_lock(&vault->lock);
    while (t < RT_PII_MAX && vault->names[t][0] && !rt_str_eq_c(name, vault->names[t]))
        t++;
    if (t < RT_PII_MAX)
        memcpy(vault->names[t], name.ptr, name.len);
    pthread_mutex_unlock(&vault->lock);
    *type = t;
    return t < RT_PII_MAX ||
           rt_fail(err, RT_LIMIT, "a vault knows at most %d own types", RT_PRIVACY_PATTERNS_MAX);
}

bool privacy_vault_type(rt_privacy_vault *vault, rt_str name, unsigned *type)
{
    unsigned t = 0;
    while (t < RT_PII_BUILTIN && !rt_str_eq_c(name, rt_pii_name(t, RT_PII_TOKEN)))
        t++;
    pthread_mutex_lock(&vault->lock);
    while (t >= RT_PII_BUILTIN && t < RT_PII_MAX &&
           !(vault->names[t][0] && rt_str_eq_c(name, vault->names[t])))
        t++;
    pthread_mutex_unlock(&vault->lock);
    *type = t;
    return t < RT_PII_MAX;
}
