/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.h - a hash for tables whose keys others may choose.
 *
 * Promise: SipHash-2-4. Who does not know the key cannot find texts that land in one place, so a
 * table stays a table whatever it is fed. It is no signature: for that there is sha256.h.
 *
 *     rt_hash_key key;
 *     rt_random_bytes(&key, sizeof(key));
 *     slot = &slots[rt_hash(&key, name) % slot_count];
 */
#ifndef RT_BASE_HASH_H
#define RT_BASE_HASH_H

#include "base/str.h"

typedef struct rt_hash_key {
    uint64_t low, high;
} rt_hash_key;

uint64_t rt_hash(const rt_hash_key *key, rt_str data);

#endif
