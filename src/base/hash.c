/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.c - SipHash-2-4, as Aumasson and Bernstein published it.
 *
 * Words are read little-endian on every machine, so that the published vectors hold everywhere.
 */
#include "base/hash.h"

#include <endian.h>

typedef struct sip {
    uint64_t a, b, c, d;
} sip;

static inline uint64_t turn(uint64_t word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

static inline void mix(sip *s)
{
    s->a += s->b;
    s->c += s->d;
    s->b = turn(s->b, 13) ^ s->a;
    s->d = turn(s->d, 16) ^ s->c;
    s->a = turn(s->a, 32);
    s->c += s->b;
    s->a += s->d;
    s->b = turn(s->b, 17) ^ s->c;
    s->d = turn(s->d, 21) ^ s->a;
    s->c = turn(s->c, 32);
}

static inline void add_word(sip *s, uint64_t word)
{
    s->d ^= word;
    mix(s);
    mix(s);
    s->a ^= word;
}

/* The 0 to 7 bytes left over, below the length of everything. */
static uint64_t last_word(rt_str data)
{
    uint64_t word = (uint64_t)data.len << 56;
    size_t whole = data.len & ~(size_t)7;
    for (size_t i = whole; i < data.len; i++)
        word |= (uint64_t)(uint8_t)data.ptr[i] << 8 * (i - whole);
    return word;
}

uint64_t rt_hash(const rt_hash_key *key, rt_str data)
{
    sip s = {
        .a = key->low ^ UINT64_C(0x736f6d6570736575),
        .b = key->high ^ UINT64_C(0x646f72616e646f6d),
        .c = key->low ^ UINT64_C(0x6c7967656e657261),
        .d = key->high ^ UINT64_C(0x7465646279746573),
    };
    for (size_t i = 0; i + 8 <= data.len; i += 8) {
        uint64_t word;
        memcpy(&word, data.ptr + i, 8);
        add_word(&s, le64toh(word));
    }
    add_word(&s, last_word(data));
    s.c ^= 0xFF;
    for (unsigned i = 0; i < 4; i++)
        mix(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}
