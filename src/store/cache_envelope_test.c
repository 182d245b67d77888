/* SPDX-License-Identifier: Apache-2.0 */
#include "store/cache_internal.h"

#include <criterion/criterion.h>

static const rt_str tags[] = { { "github", 6 }, { "a\0b", 3 }, { "", 0 } };
static const store_token tokens[3] = { { "0123456789abcdef" }, { "x" }, { "y" } };

static const store_result example = {
    .key = { "a\0key", 5 },
    .value = { "{\"x\":\0 1}", 9 },
    .tags = tags,
    .tokens = tokens,
    .tag_count = 3,
    .cost_us = UINT64_C(0x0123456789abcdef),
};

Test(cache_envelope, what_goes_in_comes_out)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    store_result found;
    store_envelope_write(&example, &text);
    cr_assert(store_envelope_read(rt_buf_str(&text), example.key, &arena, &found));
    cr_expect(rt_str_eq(found.value, example.value));
    cr_expect_eq(found.cost_us, example.cost_us);
    cr_assert_eq(found.tag_count, 3);
    for (size_t i = 0; i < 3; i++) {
        cr_expect(rt_str_eq(found.tags[i], tags[i]));
        cr_expect_eq(memcmp(&found.tokens[i], &tokens[i], sizeof(tokens[i])), 0);
    }
}

Test(cache_envelope, the_largest_fits_its_bounds)
{
    static char long_tag[RT_CACHE_TAG_BYTES];
    rt_str many[RT_CACHE_TAGS];
    store_token their[RT_CACHE_TAGS] = { 0 };
    for (size_t i = 0; i < RT_CACHE_TAGS; i++)
        many[i] = (rt_str){ long_tag, sizeof(long_tag) };
    store_result large = { .key = RT_STR("k"), .tags = many, .tokens = their, .tag_count = 64 };
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    store_result found;
    store_envelope_write(&large, &text);
    cr_expect_leq(text.len, STORE_ENVELOPE_EXTRA);
    cr_expect(store_envelope_read(rt_buf_str(&text), large.key, &arena, &found));
    cr_expect_eq(found.tag_count, RT_CACHE_TAGS);
}

Test(cache_envelope, no_other_bytes_pass)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    store_result found;
    store_envelope_write(&example, &text);
    for (size_t len = 0; len < text.len; len++)
        cr_expect(!store_envelope_read((rt_str){ text.ptr, len }, example.key, &arena, &found),
                  "cut to %zu bytes", len);
    for (size_t i = 0; i < text.len; i++) {
        text.ptr[i] ^= 1;
        cr_expect(!store_envelope_read(rt_buf_str(&text), example.key, &arena, &found),
                  "byte %zu altered", i);
        text.ptr[i] ^= 1;
    }
    cr_expect(!store_envelope_read(rt_buf_str(&text), RT_STR("other"), &arena, &found));
    rt_buf_addc(&text, '\0');
    cr_expect(!store_envelope_read(rt_buf_str(&text), example.key, &arena, &found));
}
