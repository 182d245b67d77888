/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache_envelope.c - a result as it lies in Redis.
 *
 *     1 byte    the version, 1
 *     32 bytes  SHA-256 over the key, with its length before it, and all that follows
 *     8 bytes   what it cost, in microseconds
 *     1 byte    how many tags; each: 2 bytes of length, the tag, its token
 *     the rest  the value
 *
 * Numbers are little-endian. The hash tells a value that was cut, altered or stored under another
 * name from one that was not; who can write to Redis can forge it, and is trusted not to.
 */
#include "store/cache_internal.h"

#define VERSION    1
#define HASHED     (1 + RT_SHA256_SIZE) /* where the part under the hash begins */
#define COST_BYTES 8

_Static_assert(RT_CACHE_TAGS <= UINT8_MAX, "one byte counts the tags");
_Static_assert(RT_CACHE_TAG_BYTES <= UINT16_MAX, "two bytes measure one");

static void put_number(rt_buf *out, uint64_t number, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        rt_buf_addc(out, (char)(number >> 8 * i));
}

static void hash_it(rt_str key, rt_str rest, uint8_t out[RT_SHA256_SIZE])
{
    char length[4];
    for (unsigned i = 0; i < sizeof(length); i++)
        length[i] = (char)(key.len >> 8 * i);
    rt_sha256_stream hash RT_CLEANUP(rt_sha256_done) = { 0 };
    rt_sha256_init(&hash);
    rt_sha256_add(&hash, (rt_str){ length, sizeof(length) });
    rt_sha256_add(&hash, key);
    rt_sha256_add(&hash, rest);
    rt_sha256_end(&hash, out);
}

void store_envelope_write(const store_result *result, rt_buf *out)
{
    static const char no_hash[RT_SHA256_SIZE];
    rt_buf_addc(out, VERSION);
    rt_buf_add(out, (rt_str){ no_hash, sizeof(no_hash) });
    put_number(out, result->cost_us, COST_BYTES);
    put_number(out, result->tag_count, 1);
    for (size_t i = 0; i < result->tag_count; i++) {
        put_number(out, result->tags[i].len, 2);
        rt_buf_add(out, result->tags[i]);
        rt_buf_add(out, (rt_str){ (const char *)result->tokens[i].bytes, STORE_TOKEN_SIZE });
    }
    rt_buf_add(out, result->value);
    if (out->failed)
        return;
    rt_str rest = rt_str_slice(rt_buf_str(out), HASHED, out->len);
    hash_it(result->key, rest, (uint8_t *)out->ptr + 1);
}

/* Reading: a piece at a time from the front; what is not there leaves `is_short` behind. */
typedef struct reader {
    rt_str rest;
    bool is_short;
} reader;

static rt_str take(reader *in, size_t len)
{
    if (in->rest.len < len) {
        in->is_short = true;
        return RT_STR("");
    }
    rt_str piece = rt_str_slice(in->rest, 0, len);
    in->rest = rt_str_slice(in->rest, len, in->rest.len);
    return piece;
}

static uint64_t take_number(reader *in, unsigned bytes)
{
    rt_str piece = take(in, bytes);
    uint64_t number = 0;
    for (size_t i = 0; i < piece.len; i++)
        number |= (uint64_t)(uint8_t)piece.ptr[i] << 8 * i;
    return number;
}

static void take_tags(reader *in, rt_arena *arena, store_result *out)
{
    out->tag_count = take_number(in, 1);
    if (out->tag_count == 0)
        return;
    rt_str *tags = rt_arena_alloc(arena, out->tag_count * sizeof(*tags));
    store_token *tokens = rt_arena_alloc(arena, out->tag_count * sizeof(*tokens));
    for (size_t i = 0; i < out->tag_count && !in->is_short; i++) {
        tags[i] = take(in, take_number(in, 2));
        rt_str token = take(in, STORE_TOKEN_SIZE);
        memcpy(tokens[i].bytes, token.ptr, token.len);
        in->is_short = in->is_short || tags[i].len > RT_CACHE_TAG_BYTES;
    }
    out->tags = tags;
    out->tokens = tokens;
}

bool store_envelope_read(rt_str text, rt_str key, rt_arena *arena, store_result *out)
{
    uint8_t hash[RT_SHA256_SIZE];
    reader in = { .rest = text };
    if (take_number(&in, 1) != VERSION)
        return false;
    rt_str promised = take(&in, RT_SHA256_SIZE);
    if (in.is_short)
        return false;
    hash_it(key, in.rest, hash);
    if (memcmp(hash, promised.ptr, sizeof(hash)) != 0)
        return false;
    store_result result = { .key = key, .cost_us = take_number(&in, COST_BYTES) };
    take_tags(&in, arena, &result);
    if (in.is_short || result.tag_count > RT_CACHE_TAGS)
        return false;
    result.value = in.rest;
    *out = result;
    return true;
}
