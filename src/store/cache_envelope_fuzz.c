/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache_envelope_fuzz.c - whatever lies in Redis under one of our names.
 *
 * The bytes are read as they are, which the hash seldom lets pass, and as what the hash covers,
 * with the right hash before them. What passes, written again, is the same.
 */
#include "store/cache_internal.h"

#include <assert.h>

static void check(rt_str text, rt_str key)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_buf again RT_CLEANUP(rt_buf_done) = { 0 };
    store_result found;
    if (!store_envelope_read(text, key, &arena, &found))
        return;
    assert(found.tag_count <= RT_CACHE_TAGS);
    store_envelope_write(&found, &again);
    assert(rt_str_eq(rt_buf_str(&again), text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_str raw = { (const char *)data, size };
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    uint8_t hash[RT_SHA256_SIZE];
    check(raw, RT_STR("k"));

    rt_buf_add(&text, RT_STR("\1\0\0\0k"));
    rt_buf_add(&text, raw);
    rt_sha256(rt_buf_str(&text), hash);
    rt_buf_reset(&text);
    rt_buf_addc(&text, 1);
    rt_buf_add(&text, (rt_str){ (const char *)hash, sizeof(hash) });
    rt_buf_add(&text, raw);
    check(rt_buf_str(&text), RT_STR("k"));
    return 0;
}
