/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache_story.c - the key of the upstream story, to the letter.
 *
 * Upstream runs in JavaScript: it copies an object member by member, keys sorted, into a new one,
 * hands that to JSON.stringify, and hashes the UTF-16 of the text. What follows from that is kept:
 * keys sort by UTF-16 units, but those that look like array indices come first, as numbers;
 * "__proto__" gets lost in the copying; arrays and all within them are not copied, so objects there
 * keep their order (but for the indices). Numbers are doubles, printed as JavaScript prints them.
 */
#include "store/cache_internal.h"

#include <inttypes.h>
#include <stdlib.h>

/* -- UTF-16 ------------------------------------------------------------------------------------ */

typedef struct units {
    rt_str rest;
    uint32_t second; /* of a pair, still to come; 0: none */
} units;

static uint32_t decode(rt_str sequence)
{
    const uint8_t *b = (const uint8_t *)sequence.ptr;
    if (sequence.len == 1)
        return b[0];
    uint32_t code_point = b[0] & (0xFFu >> (sequence.len + 1));
    for (size_t i = 1; i < sequence.len; i++)
        code_point = code_point << 6 | (b[i] & 0x3Fu);
    return code_point;
}

/* False at the end. What is not UTF-8 counts as U+FFFD. */
static bool next_unit(units *in, uint32_t *unit)
{
    if (in->second) {
        *unit = in->second;
        in->second = 0;
        return true;
    }
    if (in->rest.len == 0)
        return false;
    size_t bad = 0, size = rt_utf8_step(in->rest, &bad);
    uint32_t code_point = size ? decode(rt_str_slice(in->rest, 0, size)) : 0xFFFD;
    in->rest = rt_str_slice(in->rest, size ? size : bad, in->rest.len);
    *unit = code_point;
    if (code_point >= 0x10000) {
        *unit = 0xD800 + ((code_point - 0x10000) >> 10);
        in->second = 0xDC00 + ((code_point - 0x10000) & 0x3FF);
    }
    return true;
}

static uint32_t story_hash(rt_str text)
{
    uint32_t hash = 0x165667B1, unit;
    units in = { .rest = text };
    while (next_unit(&in, &unit)) {
        hash = (hash ^ unit) * 0x9E3779B1;
        hash = (hash << 13 | hash >> 19) * 0x85EBCA77;
    }
    hash = (hash ^ hash >> 16) * 0xC2B2AE3D;
    hash = (hash ^ hash >> 13) * 0x27D4EB2F;
    return hash ^ hash >> 16;
}

static int compare_units(rt_str a, rt_str b)
{
    units left = { .rest = a }, right = { .rest = b };
    for (;;) {
        uint32_t l = 0, r = 0;
        bool has_left = next_unit(&left, &l), has_right = next_unit(&right, &r);
        if (!has_left || !has_right)
            return has_left - has_right;
        if (l != r)
            return l < r ? -1 : 1;
    }
}

/* -- Numbers ----------------------------------------------------------------------------------- */

/* The significant digits of a double, and the place of the point: 0.<digits> * 10^point. */
typedef struct digits {
    char text[32];
    int count, point;
    bool is_negative;
} digits;

/* Taken from how base prints it, which has the digits but not the layout. */
static digits digits_of(double number)
{
    rt_buf buf RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &buf);
    rt_jw_double(&w, number);
    rt_buf_addc(&buf, '\0');
    digits out = { 0 };
    bool is_past_point = false;
    const char *at = buf.ptr;
    for (; *at && *at != 'e'; at++) {
        if (*at == '-')
            out.is_negative = true;
        else if (*at == '.')
            is_past_point = true;
        else if (*at != '0' || out.count > 0)
            out.text[out.count++] = *at;
        if (*at >= '0' && *at <= '9')
            out.point += is_past_point ? -(out.count == 0) : out.count > 0;
    }
    if (*at == 'e')
        out.point += atoi(at + 1);
    while (out.count > 0 && out.text[out.count - 1] == '0')
        out.count--;
    return out;
}

static void put_zeros(rt_buf *out, int count)
{
    for (int i = 0; i < count; i++)
        rt_buf_addc(out, '0');
}

static void put_digits(rt_buf *out, const digits *d)
{
    rt_str text = { d->text, (size_t)d->count };
    if (d->point > 21 || d->point <= -6) {
        rt_buf_addc(out, text.ptr[0]);
        rt_buf_add(out, text.len > 1 ? RT_STR(".") : RT_STR(""));
        rt_buf_add(out, rt_str_slice(text, 1, text.len));
        rt_buf_addf(out, "e%+d", d->point - 1);
    } else if (d->point >= d->count) {
        rt_buf_add(out, text);
        put_zeros(out, d->point - d->count);
    } else if (d->point > 0) {
        rt_buf_add(out, rt_str_slice(text, 0, (size_t)d->point));
        rt_buf_addc(out, '.');
        rt_buf_add(out, rt_str_slice(text, (size_t)d->point, text.len));
    } else {
        rt_buf_add(out, RT_STR("0."));
        put_zeros(out, -d->point);
        rt_buf_add(out, text);
    }
}

static void put_number(rt_buf *out, rt_json v)
{
    double number;
    if (!rt_json_double(v, &number)) {
        rt_buf_add(out, RT_STR("null")); /* what JSON.stringify makes of Infinity */
        return;
    }
    digits d = digits_of(number);
    if (d.count == 0) {
        rt_buf_addc(out, '0'); /* -0 too */
        return;
    }
    if (d.is_negative)
        rt_buf_addc(out, '-');
    put_digits(out, &d);
}

/* -- Objects ----------------------------------------------------------------------------------- */

typedef struct member {
    rt_str key;
    rt_json value;
    size_t place;   /* where the key first came */
    uint64_t index; /* of a key that is one; else NOT_AN_INDEX, so that these come last */
} member;

#define NOT_AN_INDEX UINT64_MAX
#define INDEX_MAX    UINT64_C(4294967294)

static uint64_t index_of(rt_str key)
{
    uint64_t index;
    bool is_index = key.len > 0 && key.len <= 10 && (key.ptr[0] != '0' || key.len == 1) &&
                    rt_str_to_u64(key, &index) && index <= INDEX_MAX;
    return is_index ? index : NOT_AN_INDEX;
}

static int by_name_then_place(const void *a, const void *b)
{
    const member *left = a, *right = b;
    int order = rt_str_cmp(left->key, right->key);
    return order ? order : (left->place > right->place) - (left->place < right->place);
}

static int by_index_then_place(const void *a, const void *b)
{
    const member *left = a, *right = b;
    if (left->index != right->index)
        return left->index < right->index ? -1 : 1;
    return (left->place > right->place) - (left->place < right->place);
}

static int by_index_then_units(const void *a, const void *b)
{
    const member *left = a, *right = b;
    if (left->index != right->index)
        return left->index < right->index ? -1 : 1;
    return compare_units(left->key, right->key);
}

/* Of a key that comes twice, the first place and the last value. */
static size_t join_duplicates(member *members, size_t count)
{
    size_t kept = 0;
    qsort(members, count, sizeof(*members), by_name_then_place);
    for (size_t i = 0; i < count; i++) {
        if (kept && rt_str_eq(members[kept - 1].key, members[i].key))
            members[kept - 1].value = members[i].value;
        else
            members[kept++] = members[i];
    }
    return kept;
}

typedef struct printer {
    rt_buf *out;
    rt_arena *arena;
} printer;

static void put_value(const printer *p, rt_json v, bool is_sorted);

static void put_key(const printer *p, rt_str key)
{
    rt_json_writer w;
    rt_json_begin(&w, p->out);
    rt_jw_str(&w, key);
    rt_buf_addc(p->out, ':');
}

static size_t read_members(rt_json object, bool is_sorted, member *members)
{
    rt_json_iter it = rt_json_each(object);
    size_t count = 0;
    rt_str key;
    rt_json value;
    while (rt_json_next(&it, &key, &value)) {
        if (is_sorted && rt_str_eq(key, RT_STR("__proto__")))
            continue;
        members[count] = (member){ key, value, count, index_of(key) };
        count++;
    }
    return count ? join_duplicates(members, count) : 0;
}

static void put_object(const printer *p, rt_json object, bool is_sorted)
{
    member *members = rt_arena_alloc_raw(p->arena, (rt_json_count(object) + 1) * sizeof(*members));
    size_t count = read_members(object, is_sorted, members);
    if (count > 1)
        qsort(members, count, sizeof(*members),
              is_sorted ? by_index_then_units : by_index_then_place);
    rt_buf_addc(p->out, '{');
    for (size_t i = 0; i < count; i++) {
        rt_buf_add(p->out, i ? RT_STR(",") : RT_STR(""));
        put_key(p, members[i].key);
        put_value(p, members[i].value, is_sorted);
    }
    rt_buf_addc(p->out, '}');
}

static void put_array(const printer *p, rt_json array)
{
    rt_json_iter it = rt_json_each(array);
    rt_json value;
    rt_buf_addc(p->out, '[');
    for (bool is_first = true; rt_json_next(&it, NULL, &value); is_first = false) {
        rt_buf_add(p->out, is_first ? RT_STR("") : RT_STR(","));
        put_value(p, value, false);
    }
    rt_buf_addc(p->out, ']');
}

static void put_value(const printer *p, rt_json v, bool is_sorted)
{
    switch (rt_json_type(v)) {
    case RT_JSON_OBJECT:
        put_object(p, v, is_sorted);
        break;
    case RT_JSON_ARRAY:
        put_array(p, v);
        break;
    case RT_JSON_NUMBER:
        put_number(p->out, v);
        break;
    default:
        rt_json_print(v, p->out);
        break;
    }
}

static uint32_t hash_object(rt_json object)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf_init(&text, RT_JSON_SIZE_CEILING);
    if (rt_json_is_absent(object))
        rt_buf_add(&text, RT_STR("{}"));
    else
        put_value(&(printer){ &text, &arena }, object, true);
    return story_hash(rt_buf_str(&text));
}

rt_str rt_cache_story_key(rt_str code, rt_json context, rt_json tool_versions, rt_arena *arena)
{
    return rt_arena_printf(arena, "%08" PRIx32 "_%08" PRIx32 "_%08" PRIx32, story_hash(code),
                           hash_object(context), hash_object(tool_versions));
}
