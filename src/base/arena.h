/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h - memory that is released all at once.
 *
 * Promise: allocation never fails (out of memory aborts with a message), a pointer stays good
 * until the arena is reset or done, and zero bytes are a ready arena that has allocated nothing.
 * Under AddressSanitizer, touching what an arena has released is reported.
 *
 *     rt_arena arena RT_CLEANUP(rt_arena_done) = {0};
 *     rt_str path = rt_arena_printf(&arena, "/run/%u", id);
 *
 * An arena belongs to one thread at a time.
 */
#ifndef RT_BASE_ARENA_H
#define RT_BASE_ARENA_H

#include <stdarg.h>

#include "base/str.h"

#define RT_ARENA_ALIGN 16

struct rt_arena {
    struct rt_arena_chunk *chunk; /* the one we allocate from, then those before it */
    size_t used;                  /* bytes of it that are taken */
    size_t next_size;             /* how big the next chunk will be */
};

void *rt_arena_alloc(rt_arena *arena, size_t size);     /* zeroed, aligned to 16 bytes */
void *rt_arena_alloc_raw(rt_arena *arena, size_t size); /* the same, not zeroed */

/*
 * Change the size of an allocation, in place when it is the latest one and there is room. What
 * it grows by is not zeroed. `old` may be NULL when old_size is 0.
 */
void *rt_arena_resize(rt_arena *arena, void *old, size_t old_size, size_t new_size);

char *rt_arena_copy(rt_arena *arena, rt_str s); /* a C string: adds the terminator */
rt_str rt_arena_str(rt_arena *arena, rt_str s); /* the same as a view */
rt_str rt_arena_printf(rt_arena *arena, const char *fmt, ...) RT_PRINTF(2, 3);
rt_str rt_arena_vprintf(rt_arena *arena, const char *fmt, va_list args) RT_PRINTF(2, 0);

/* Release everything. After done, the arena is as new; reset keeps one chunk for the next use. */
void rt_arena_done(rt_arena *arena);
void rt_arena_reset(rt_arena *arena);

/* What every allocation in base does when there is no memory: a message, then abort(). */
_Noreturn void rt_out_of_memory(size_t size);

#endif
