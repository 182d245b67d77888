/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <criterion/criterion.h>

static const rt_hash_key published = { UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908) };

Test(hash, the_published_vectors_come_out)
{
    static const char bytes[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 };
    static const struct {
        size_t len;
        uint64_t hash;
    } vectors[] = {
        { 0, UINT64_C(0x726fdb47dd0e0e31) },
        { 1, UINT64_C(0x74f839c593dc67fd) },
        { 8, UINT64_C(0x93f5f5799a932462) },
        { 15, UINT64_C(0xa129ca6149be45e5) },
    };
    for (size_t i = 0; i < RT_COUNT(vectors); i++)
        cr_expect_eq(rt_hash(&published, (rt_str){ bytes, vectors[i].len }), vectors[i].hash,
                     "%zu bytes", vectors[i].len);
}

Test(hash, another_key_gives_another_order)
{
    rt_hash_key other = { 1, 2 };
    cr_expect_neq(rt_hash(&published, RT_STR("name")), rt_hash(&other, RT_STR("name")));
    cr_expect_eq(rt_hash(&published, (rt_str){ NULL, 0 }), rt_hash(&published, RT_STR("")));
}
