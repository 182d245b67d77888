/* SPDX-License-Identifier: Apache-2.0 */
/*
 * id.h - random bytes, and names nobody else has.
 *
 * Promise: the bytes come from the kernel's generator; if it cannot give them, we abort rather
 * than hand out guessable ones.
 *
 *     rt_str id = rt_id_new("run", &arena);       // "run_1794713017123_9f86d081884c7d65"
 */
#ifndef RT_BASE_ID_H
#define RT_BASE_ID_H

#include "base/arena.h"

void rt_random_bytes(void *out, size_t size);

/* The same for names: drawn from a stock each thread keeps, without a system call each time. A fork
 * begins a new stock. Not for secrets. */
void rt_random_name(void *out, size_t size);

/* Lower-case hexadecimal: writes 2 * n characters and a terminator. */
void rt_hex(char *out, const void *bytes, size_t n);

/* "<prefix>_<wall clock in ms>_<16 random hexadecimal digits>" */
rt_str rt_id_new(const char *prefix, rt_arena *arena);

/* A random UUID, version 4: "6f1c2a52-0d7e-4b8e-9c55-0f1d2e3a4b5c" */
rt_str rt_uuid_new(rt_arena *arena);

#endif
