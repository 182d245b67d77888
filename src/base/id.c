/* SPDX-License-Identifier: Apache-2.0 */
/*
 * id.c - randomness from getrandom(2).
 */
#include "base/id.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/clock.h"

void rt_random_bytes(void *out, size_t size)
{
    char *at = out;
    while (size > 0) {
        ssize_t got = getrandom(at, size, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            fputs("retort: getrandom failed: refusing to go on without random bytes\n", stderr);
            abort();
        }
        at += got;
        size -= (size_t)got;
    }
}

void rt_hex(char *out, const void *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *in = bytes;
    for (size_t i = 0; i < n; i++) {
        *out++ = digits[in[i] >> 4];
        *out++ = digits[in[i] & 15];
    }
    *out = '\0';
}

rt_str rt_id_new(const char *prefix, rt_arena *arena)
{
    uint8_t bytes[8];
    char hex[2 * sizeof(bytes) + 1];
    rt_random_bytes(bytes, sizeof(bytes));
    rt_hex(hex, bytes, sizeof(bytes));
    return rt_arena_printf(arena, "%s_%llu_%s", prefix, (unsigned long long)rt_wall_ms(), hex);
}
