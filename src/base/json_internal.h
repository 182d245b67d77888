/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_internal.h - what the json_*.c files share: the node, and the scan for plain text.
 *
 * A document is one array of 16-byte nodes in the order of the text, and one copy of the text,
 * in which strings were decoded in place (decoding never makes them longer):
 *
 *     {"a": [1, 2], "b": "x"}
 *
 *     object 2 members, span 7 | "a" | array 2 elements, span 3 | 1 | 2 | "b" | "x"
 *
 * The children of a container follow it; in an object each key comes before its value. `span`
 * counts the nodes of a container and all it contains, so node + span is what comes next.
 */
#ifndef RT_BASE_JSON_INTERNAL_H
#define RT_BASE_JSON_INTERNAL_H

#include "base/json.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

typedef struct rt_json_node {
    uint8_t kind;  /* rt_json_kind */
    bool is_true;  /* of a boolean */
    bool is_plain; /* of a string: it is valid UTF-8, and needs no escapes when printed */
    uint32_t size; /* bytes of a string or number; elements of an array; members of an object */
    union {
        const char *text; /* of a string or number */
        uint64_t span;    /* of a container; while it is being parsed, the index of its parent */
    };
} json_node;

_Static_assert(sizeof(json_node) == 16, "four nodes to a cache line");

static inline const json_node *json_after(const json_node *node)
{
    return node + (node->kind >= RT_JSON_ARRAY ? node->span : 1);
}

static inline rt_str json_text(const json_node *node)
{
    return (rt_str){ node->text, node->size };
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
bool json_number_is_integer(rt_str number);                          /* no fraction, no exponent */
rt_str json_double_print(double number, char out[JSON_DOUBLE_SIZE]); /* as Python's repr() */

/* Strings with their quotes (json_write.c, json_canonical.c). */
typedef enum json_surrogates { JSON_REPLACE_SURROGATES, JSON_KEEP_SURROGATES } json_surrogates;

void json_put_string(rt_buf *out, rt_str text, json_surrogates surrogates);

/* The code point of the three bytes of a surrogate in WTF-8 that `s` starts with, or 0. */
uint32_t json_surrogate_at(rt_str s);

#endif
