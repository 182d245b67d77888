/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rollout.c - a subject's place in the queue, from 0 to 9,999, is its hash.
 *
 * The prefix keeps this hash apart from any other use of the same id, so that who is in here says
 * nothing about who is in elsewhere.
 */
#include "engine/rollout.h"

enum { PLACES = 10000 };

static uint64_t place_of(rt_str subject)
{
    rt_sha256_stream hash RT_CLEANUP(rt_sha256_done) = { 0 };
    uint8_t digest[RT_SHA256_SIZE];
    uint64_t number = 0;
    rt_sha256_init(&hash);
    rt_sha256_add(&hash, RT_STR("rollout:"));
    rt_sha256_add(&hash, subject);
    rt_sha256_end(&hash, digest);
    for (size_t i = 0; i < sizeof(number); i++)
        number = number << 8 | digest[i];
    return number % PLACES;
}

bool engine_rollout_includes(rt_str subject, unsigned percent)
{
    return percent >= 100 || place_of(subject) < (uint64_t)percent * (PLACES / 100);
}
