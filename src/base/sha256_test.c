/* SPDX-License-Identifier: Apache-2.0 */
#include "base/id.h"
#include "base/sha256.h"

#include <criterion/criterion.h>

Test(sha256, gives_the_digests_of_the_standard)
{
    char hex[RT_SHA256_HEX];
    rt_sha256_hex(RT_STR("abc"), hex);
    cr_expect_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    rt_sha256_hex((rt_str){ NULL, 0 }, hex);
    cr_expect_str_eq(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

Test(sha256, piece_by_piece_is_the_same)
{
    uint8_t once[RT_SHA256_SIZE], pieces[RT_SHA256_SIZE];
    rt_sha256(RT_STR("hello, world"), once);
    rt_sha256_stream stream RT_CLEANUP(rt_sha256_done) = { 0 };
    rt_sha256_init(&stream);
    rt_sha256_add(&stream, RT_STR("hello"));
    rt_sha256_add(&stream, RT_STR(""));
    rt_sha256_add(&stream, RT_STR(", world"));
    rt_sha256_end(&stream, pieces);
    cr_expect_arr_eq(once, pieces, sizeof(once));
}

Test(sha256, a_stream_may_be_abandoned)
{
    rt_sha256_stream stream = { 0 };
    rt_sha256_done(&stream);
    rt_sha256_init(&stream);
    rt_sha256_add(&stream, RT_STR("x"));
    rt_sha256_done(&stream);
    cr_expect_null(stream.context);
}
