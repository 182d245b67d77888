/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.c - chunks from malloc(), handed out from the front.
 *
 * Chunks double in size up to a limit. A request that is big for the next chunk gets a chunk of
 * its own, put *behind* the current one, so that the room left in the current one is not lost.
 *
 * What must stay true: `used` and every pointer handed out are multiples of 16; the chunk list
 * starts with the chunk we allocate from. Under ASan everything past `used` is poisoned.
 */
#include "base/arena.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif

#ifdef HAS_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(at, size)   ASAN_POISON_MEMORY_REGION(at, size)
#define UNPOISON(at, size) ASAN_UNPOISON_MEMORY_REGION(at, size)
#else
#define POISON(at, size)   ((void)(at), (void)(size))
#define UNPOISON(at, size) ((void)(at), (void)(size))
#endif

enum { FIRST_CHUNK = 4096, LARGEST_CHUNK = 1 << 20 };

typedef struct rt_arena_chunk {
    struct rt_arena_chunk *before;
    size_t size; /* of data */
    _Alignas(RT_ARENA_ALIGN) char data[];
} chunk;

_Static_assert(sizeof(chunk) % RT_ARENA_ALIGN == 0, "data is aligned because malloc() is");

_Noreturn void rt_out_of_memory(size_t size)
{
    fprintf(stderr, "retort: out of memory: could not allocate %zu bytes\n", size);
    abort();
}

static size_t rounded(size_t size)
{
    if (size > SIZE_MAX / 2)
        rt_out_of_memory(size);
    return (size + RT_ARENA_ALIGN - 1) & ~(size_t)(RT_ARENA_ALIGN - 1);
}

static chunk *chunk_new(size_t size)
{
    chunk *fresh = malloc(sizeof(chunk) + size);
    if (!fresh)
        rt_out_of_memory(size);
    fresh->before = NULL;
    fresh->size = size;
    return fresh;
}

static void chunk_free(chunk *old)
{
    UNPOISON(old->data, old->size);
    free(old);
}

static void *alloc_own_chunk(rt_arena *arena, size_t size)
{
    chunk *own = chunk_new(size);
    if (arena->chunk) {
        own->before = arena->chunk->before;
        arena->chunk->before = own;
    } else {
        arena->chunk = own;
        arena->used = size;
    }
    return own->data;
}

static void add_chunk(rt_arena *arena)
{
    size_t size = arena->next_size ? arena->next_size : FIRST_CHUNK;
    chunk *fresh = chunk_new(size);
    POISON(fresh->data, size);
    fresh->before = arena->chunk;
    arena->chunk = fresh;
    arena->used = 0;
    arena->next_size = RT_MIN(size * 2, (size_t)LARGEST_CHUNK);
}

void *rt_arena_alloc_raw(rt_arena *arena, size_t size)
{
    size = rounded(size ? size : 1);
    if (!arena->chunk || arena->chunk->size - arena->used < size) {
        size_t next_size = arena->next_size ? arena->next_size : FIRST_CHUNK;
        if (size > next_size / 2)
            return alloc_own_chunk(arena, size);
        add_chunk(arena);
    }
    char *at = arena->chunk->data + arena->used;
    arena->used += size;
    UNPOISON(at, size);
    return at;
}

void *rt_arena_alloc(rt_arena *arena, size_t size)
{
    return memset(rt_arena_alloc_raw(arena, size), 0, size);
}

static bool is_latest(const rt_arena *arena, const char *at, size_t size)
{
    return arena->chunk && arena->used >= size && at == arena->chunk->data + arena->used - size;
}

/* The chunk that holds this allocation and nothing else, if it is near the front of the list. */
static chunk **own_chunk_of(rt_arena *arena, const char *at, size_t size)
{
    chunk **link = &arena->chunk;
    for (int i = 0; i < 4 && *link; i++, link = &(*link)->before) {
        size_t taken = link == &arena->chunk ? arena->used : (*link)->size;
        if ((*link)->data == at && taken == size)
            return link;
    }
    return NULL;
}

/* A big block that has a chunk of its own moves as realloc() pleases, which for pages is cheap. */
static void *resize_own_chunk(rt_arena *arena, chunk **link, size_t new_size)
{
    UNPOISON((*link)->data, (*link)->size);
    chunk *moved = realloc(*link, sizeof(chunk) + new_size);
    if (!moved)
        rt_out_of_memory(new_size);
    moved->size = new_size;
    *link = moved;
    if (link == &arena->chunk)
        arena->used = new_size;
    return moved->data;
}

void *rt_arena_resize(rt_arena *arena, void *old, size_t old_size, size_t new_size)
{
    if (!old)
        return rt_arena_alloc_raw(arena, new_size);
    size_t before = rounded(old_size ? old_size : 1), after = rounded(new_size ? new_size : 1);
    if (is_latest(arena, old, before) && arena->chunk->size - arena->used + before >= after) {
        arena->used = arena->used - before + after;
        POISON(old, before);
        UNPOISON(old, after);
        return old;
    }
    chunk **link = own_chunk_of(arena, old, before);
    if (link)
        return resize_own_chunk(arena, link, after);
    if (after <= before)
        return old;
    void *fresh = rt_arena_alloc_raw(arena, new_size);
    memcpy(fresh, old, RT_MIN(old_size, new_size));
    POISON(old, before);
    return fresh;
}

char *rt_arena_copy(rt_arena *arena, rt_str s)
{
    char *copy = rt_arena_alloc_raw(arena, s.len + 1);
    if (s.len)
        memcpy(copy, s.ptr, s.len);
    copy[s.len] = '\0';
    return copy;
}

rt_str rt_arena_str(rt_arena *arena, rt_str s)
{
    return (rt_str){ rt_arena_copy(arena, s), s.len };
}

rt_str rt_arena_vprintf(rt_arena *arena, const char *fmt, va_list args)
{
    assert(fmt);
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (len < 0)
        return RT_STR("");
    char *text = rt_arena_alloc_raw(arena, (size_t)len + 1);
    vsnprintf(text, (size_t)len + 1, fmt, args);
    return (rt_str){ text, (size_t)len };
}

rt_str rt_arena_printf(rt_arena *arena, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    rt_str text = rt_arena_vprintf(arena, fmt, args);
    va_end(args);
    return text;
}

static void free_chunks(chunk *at)
{
    while (at) {
        chunk *before = at->before;
        chunk_free(at);
        at = before;
    }
}

void rt_arena_done(rt_arena *arena)
{
    free_chunks(arena->chunk);
    *arena = (rt_arena){ 0 };
}

void rt_arena_reset(rt_arena *arena)
{
    if (!arena->chunk)
        return;
    free_chunks(arena->chunk->before);
    arena->chunk->before = NULL;
    arena->used = 0;
    /* One huge request must not make every later one hold on to its memory. */
    if (arena->chunk->size > LARGEST_CHUNK)
        rt_arena_done(arena);
    else
        POISON(arena->chunk->data, arena->chunk->size);
}
