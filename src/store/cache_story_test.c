/* SPDX-License-Identifier: Apache-2.0 */
#include "store/cache.h"

#include <criterion/criterion.h>

static rt_str key_of(const char *code, const char *context, const char *versions, rt_arena *arena)
{
    rt_json docs[2];
    rt_error err = { 0 };
    cr_assert(rt_json_parse(rt_str_of(context), arena, &docs[0], &err), "%s", err.text);
    cr_assert(rt_json_parse(rt_str_of(versions), arena, &docs[1], &err), "%s", err.text);
    return rt_cache_story_key(rt_str_of(code), docs[0], docs[1], arena);
}

/* The first two rows are the story's; the others are what its code gives in Node. */
Test(cache_story, the_keys_are_upstreams)
{
    static const struct {
        const char *code, *context, *versions, *key;
    } rows[] = {
        { "return 1 + 1", "{\"a\":1,\"b\":2}", "{\"github\":\"v1.0.0\"}",
          "6eb756c4_dbd6ce78_50daeb73" },
        { "return 42", "{}", "{}", "d9ddc425_cdbf2bf9_cdbf2bf9" },
        /* objects in objects are sorted, objects in arrays are not */
        { "", "{\"b\":{\"d\":1,\"c\":[{\"z\":1,\"a\":2},\"x\"]},\"a\":null}", "{}",
          "6958869e_853cf748_cdbf2bf9" },
        /* indices first */
        { "é😀", "{\"10\":1,\"9\":2,\"a\":3,\"01\":4,\"4294967294\":5,\"4294967295\":6}", "{}",
          "38811d5f_5c1892ba_cdbf2bf9" },
        { "x",
          "{\"n\":[1.0,-0,1e21,1e20,123456789012345680000,1e-6,1e-7,1.5e-10,0.1,100,-2.50,1e400,"
          "5e-324]}",
          "{}", "359695fb_65e6cf6f_cdbf2bf9" },
        /* a pair of surrogates sorts before U+E000 */
        { "x", "{\"\\ue000\":1,\"\\ud83d\\ude00\":2,\"z\":3}", "{}", "359695fb_d01eb7ea_cdbf2bf9" },
        { "x", "{\"a\":1,\"b\":2,\"a\":3,\"l\":[{\"b\":1,\"a\":2,\"b\":3,\"1\":0}]}", "{}",
          "359695fb_21f98bf7_cdbf2bf9" },
        { "x",
          "{\"__proto__\":{\"x\":1},\"l\":[{\"__proto__\":1}],"
          "\"s\":\"\\u0001\\n\\u2028\\u007f\\\"\\\\/\\ud800\"}",
          "{}", "359695fb_10892a33_cdbf2bf9" },
    };
    for (size_t i = 0; i < RT_COUNT(rows); i++) {
        rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
        rt_str key = key_of(rows[i].code, rows[i].context, rows[i].versions, &arena);
        cr_expect_str_eq(key.ptr, rows[i].key, "row %zu", i);
    }
}

Test(cache_story, the_order_of_members_does_not_matter_and_their_presence_does)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str key = key_of("x", "{\"a\":1,\"b\":{\"c\":2,\"d\":3}}", "{}", &arena);
    cr_expect(rt_str_eq(key, key_of("x", "{\"b\":{\"d\":3,\"c\":2},\"a\":1}", "{}", &arena)));
    cr_expect(
        !rt_str_eq(key_of("x", "{\"x\":null}", "{}", &arena), key_of("x", "{}", "{}", &arena)));
    rt_json none = { 0 };
    cr_expect(rt_str_eq(rt_cache_story_key(RT_STR("x"), none, none, &arena),
                        key_of("x", "{}", "{}", &arena)));
}
