/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_internal.h - what the json_*.c files share: the scan for plain text, members, numbers.
 */
#ifndef RT_BASE_JSON_INTERNAL_H
#define RT_BASE_JSON_INTERNAL_H

#include "base/json_node.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

typedef rt_json_node json_node;

static inline const json_node *json_after(const json_node *node)
{
    return rt_json_node_after(node);
}

static inline rt_str json_text(const json_node *node)
{
    return rt_json_node_text(node);
}

/* In a JSON string these stand for themselves: ASCII but control characters, '"' and '\'. */
static inline bool json_is_plain(char c)
{
    return (signed char)c >= 0x20 && c != '"' && c != '\\';
}

/* json_plain16() looks at 16 bytes at once: bit i is set when byte i is not plain. */
#ifdef __SSE2__
static inline unsigned json_plain16(const char *at)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
    /* Signed: control characters and the bytes from 0x80 are both "less than a space". */
    __m128i low = _mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20));
    __m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
    __m128i slash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(low, _mm_or_si128(quote, slash)));
}
#else
static inline unsigned json_plain16(const char *at)
{
    unsigned mask = 0;
    for (unsigned i = 0; i < 16; i++)
        mask |= (unsigned)!json_is_plain(at[i]) << i;
    return mask;
}
#endif

/* How many plain bytes `s` starts with. */
static inline size_t json_plain_run(rt_str s)
{
    size_t i = 0;
    for (; s.len - i >= 16; i += 16) {
        unsigned mask = json_plain16(s.ptr + i);
        if (mask)
            return i + (size_t)__builtin_ctz(mask);
    }
    while (i < s.len && json_is_plain(s.ptr[i]))
        i++;
    return i;
}

/* The members of an object sorted by key, of duplicates only the last (json_members.c). */
typedef struct json_members {
    const json_node **keys; /* each followed by its value in the document */
    size_t count;
    const json_node *few[12];
} json_members;

void json_members_init(json_members *members, const json_node *object);
void json_members_done(json_members *members);

/* Numbers (json_number.c). */
#define JSON_DOUBLE_SIZE 32

double json_number_double(const json_node *number); /* may be infinite */
bool json_number_i64(const json_node *number, int64_t *out);
bool json_number_equal(const json_node *a, const json_node *b);
uint64_t json_number_hash(const json_node *number, const rt_hash_key *key);
bool json_number_is_integer(rt_str number);                          /* no fraction, no exponent */
rt_str json_double_print(double number, char out[JSON_DOUBLE_SIZE]); /* as Python's repr() */

/* Strings with their quotes (json_write.c, json_canonical.c). */
typedef enum json_surrogates { JSON_REPLACE_SURROGATES, JSON_KEEP_SURROGATES } json_surrogates;

void json_put_string(rt_buf *out, rt_str text, json_surrogates surrogates);

/* The code point of the three bytes of a surrogate in WTF-8 that `s` starts with, or 0. */
uint32_t json_surrogate_at(rt_str s);

#endif
