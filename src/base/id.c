/* SPDX-License-Identifier: Apache-2.0 */
/*
 * id.c - randomness from getrandom(2).
 */
#include "base/id.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
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

/* ---- a stock of random bytes for names ---- */

#define STOCK_BYTES 512

static _Thread_local struct {
    uint8_t bytes[STOCK_BYTES];
    size_t left;
    unsigned generation;
} stock;

static atomic_uint generation = 1; /* of this process; a stock of another is not touched */

static void begin_generation(void)
{
    atomic_fetch_add(&generation, 1);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, begin_generation);
}

void rt_random_name(void *out, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    if (size > STOCK_BYTES) {
        rt_random_bytes(out, size);
        return;
    }
    if (stock.left < size || stock.generation != atomic_load(&generation)) {
        rt_random_bytes(stock.bytes, STOCK_BYTES);
        stock.left = STOCK_BYTES;
        stock.generation = atomic_load(&generation);
    }
    stock.left -= size;
    memcpy(out, stock.bytes + stock.left, size);
}

rt_str rt_id_new(const char *prefix, rt_arena *arena)
{
    uint8_t bytes[8];
    char hex[2 * sizeof(bytes) + 1];
    rt_random_name(bytes, sizeof(bytes));
    rt_hex(hex, bytes, sizeof(bytes));
    return rt_arena_printf(arena, "%s_%llu_%s", prefix, (unsigned long long)rt_wall_ms(), hex);
}

rt_str rt_uuid_new(rt_arena *arena)
{
    uint8_t bytes[16];
    char hex[2 * sizeof(bytes) + 1];
    rt_random_name(bytes, sizeof(bytes));
    bytes[6] = (uint8_t)((bytes[6] & 0x0f) | 0x40); /* the version */
    bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80); /* the variant */
    rt_hex(hex, bytes, sizeof(bytes));
    return rt_arena_printf(arena, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
                           hex + 20);
}
