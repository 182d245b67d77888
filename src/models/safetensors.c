/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors.c - named arrays in a file: eight bytes of length, a JSON header, then the numbers.
 *
 * The header comes from outside and tells where to read, so each of its numbers is checked against
 * the file and against each other before anybody follows it. Nothing is copied but what does not
 * lie as a float should.
 */
#include "models/models_internal.h"

#include <endian.h>
#include <stdlib.h>

#define HEADER_MAX ((uint64_t)16 << 20)
enum { TENSORS_MAX = 20000 };

static const struct {
    const char *name;
    tensor_type type;
    size_t size;
} types[] = {
    { "F32", TENSOR_F32, 4 },    { "F16", TENSOR_F16, 2 },       { "BF16", TENSOR_BF16, 2 },
    { "F64", TENSOR_OTHER, 8 },  { "I64", TENSOR_OTHER, 8 },     { "U64", TENSOR_OTHER, 8 },
    { "I32", TENSOR_OTHER, 4 },  { "U32", TENSOR_OTHER, 4 },     { "I16", TENSOR_OTHER, 2 },
    { "U16", TENSOR_OTHER, 2 },  { "I8", TENSOR_OTHER, 1 },      { "U8", TENSOR_OTHER, 1 },
    { "BOOL", TENSOR_OTHER, 1 }, { "F8_E4M3", TENSOR_OTHER, 1 }, { "F8_E5M2", TENSOR_OTHER, 1 },
};

static bool read_type(rt_json entry, tensor *t, size_t *size, rt_error *err)
{
    rt_str name = rt_json_str(rt_json_get_c(entry, "dtype"));
    for (size_t i = 0; i < RT_COUNT(types); i++)
        if (rt_str_eq_c(name, types[i].name)) {
            t->type = types[i].type;
            t->type_name = rt_str_of(types[i].name);
            *size = types[i].size;
            return true;
        }
    return rt_fail(err, RT_INVALID, "its dtype is none that is known");
}

/* How many numbers the shape makes; the product must not overflow. */
static bool read_shape(rt_json entry, tensor *t, size_t *count, rt_error *err)
{
    rt_json shape = rt_json_get_c(entry, "shape"), one;
    rt_json_iter it = rt_json_each(shape);
    int64_t n;
    *count = 1;
    if (rt_json_type(shape) != RT_JSON_ARRAY)
        return rt_fail(err, RT_INVALID, "it has no shape");
    while (rt_json_next(&it, NULL, &one)) {
        if (!rt_json_i64(one, &n) || n < 0 || __builtin_mul_overflow(*count, (size_t)n, count))
            return rt_fail(err, RT_INVALID, "its shape is not of sizes that can be");
        if (t->rank < TENSOR_RANK_MAX)
            t->shape[t->rank] = (size_t)n;
        t->rank++; /* past the maximum it fits no weight, but the file may have it */
    }
    return true;
}

static bool read_place(rt_json entry, rt_str data, tensor *t, rt_error *err)
{
    rt_json offsets = rt_json_get_c(entry, "data_offsets");
    int64_t begin, end;
    if (rt_json_type(offsets) != RT_JSON_ARRAY || rt_json_count(offsets) != 2 ||
        !rt_json_i64(rt_json_at(offsets, 0), &begin) || !rt_json_i64(rt_json_at(offsets, 1), &end))
        return rt_fail(err, RT_INVALID, "its data_offsets are not two numbers");
    if (begin < 0 || end < begin || (uint64_t)end > data.len)
        return rt_fail(
            err, RT_INVALID,
            "its data_offsets (%lld to %lld) are not in the file, which has %zu bytes of "
            "numbers; is it whole?",
            (long long)begin, (long long)end, data.len);
    t->data = (const uint8_t *)data.ptr + begin;
    t->size = (size_t)(end - begin);
    return true;
}

static bool read_tensor(rt_json entry, rt_str data, tensor *t, rt_error *err)
{
    size_t count = 0, size = 0;
    if (rt_json_type(entry) != RT_JSON_OBJECT)
        return rt_fail(err, RT_INVALID, "it is no object");
    if (!read_type(entry, t, &size, err) || !read_shape(entry, t, &count, err) ||
        !read_place(entry, data, t, err))
        return false;
    if (__builtin_mul_overflow(count, size, &count) || count != t->size)
        return rt_fail(err, RT_INVALID, "its shape does not make up its %zu bytes", t->size);
    return true;
}

static int by_name(const void *a, const void *b)
{
    return rt_str_cmp(((const tensor *)a)->name, ((const tensor *)b)->name);
}

static bool read_header(rt_json header, rt_str data, rt_arena *arena, tensors *out, rt_error *err)
{
    rt_json_iter it = rt_json_each(header);
    rt_str name;
    rt_json entry;
    if (rt_json_type(header) != RT_JSON_OBJECT)
        return rt_fail(err, RT_INVALID, "the header is no object");
    if (rt_json_count(header) > TENSORS_MAX)
        return rt_fail(err, RT_LIMIT, "more than %d tensors", TENSORS_MAX);
    out->items = rt_arena_alloc(arena, (rt_json_count(header) + 1) * sizeof(*out->items));
    out->count = 0;
    while (rt_json_next(&it, &name, &entry)) {
        if (rt_str_eq_c(name, "__metadata__"))
            continue;
        tensor *t = &out->items[out->count++];
        t->name = rt_arena_str(arena, name);
        if (!read_tensor(entry, data, t, err))
            return rt_wrap(err, "tensor %.*s", RT_FMT(rt_str_slice(name, 0, 80)));
    }
    qsort(out->items, out->count, sizeof(*out->items), by_name);
    return true;
}

bool tensors_read(rt_str file, rt_arena *arena, tensors *out, rt_error *err)
{
    rt_arena json RT_CLEANUP(rt_arena_done) = { 0 };
    uint64_t size;
    rt_json header;
    if (file.len < sizeof(size))
        return rt_fail(err, RT_INVALID, "too short to be safetensors");
    memcpy(&size, file.ptr, sizeof(size));
    size = le64toh(size);
    if (size > HEADER_MAX)
        return rt_fail(err, RT_LIMIT, "its header would be %llu bytes, and may be %llu",
                       (unsigned long long)size, (unsigned long long)HEADER_MAX);
    if (size > file.len - sizeof(size))
        return rt_fail(err, RT_INVALID, "it ends inside its header; is it whole?");
    rt_str text = rt_str_slice(file, sizeof(size), sizeof(size) + size);
    rt_str data = rt_str_slice(file, sizeof(size) + size, file.len);
    return (rt_json_parse(text, &json, &header, err) &&
            read_header(header, data, arena, out, err)) ||
           rt_wrap(err, "the header");
}

const tensor *tensors_find(const tensors *in, rt_str name)
{
    return bsearch(&(tensor){ .name = name }, in->items, in->count, sizeof(*in->items), by_name);
}

/* -- Numbers ----------------------------------------------------------------------------------- */

static float of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

static float of_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7FFFu;
    if (rest >= 0x7C00) /* infinite, or no number */
        return of_bits(sign | 0x7F800000u | (rest & 0x3FFu) << 13);
    if (rest >= 0x0400)
        return of_bits(sign | ((rest << 13) + ((127 - 15) << 23)));
    float small = (float)rest * 0x1p-24f;
    return sign ? -small : small;
}

bool tensor_floats(const tensor *t, rt_arena *arena, const float **out, rt_error *err)
{
    size_t width = t->type == TENSOR_F32 ? sizeof(float) : sizeof(uint16_t);
    if (t->type == TENSOR_OTHER)
        return rt_fail(err, RT_UNSUPPORTED, "%.*s numbers are not done; F32, F16 and BF16 are",
                       RT_FMT(t->type_name));
    if (t->type == TENSOR_F32 && (uintptr_t)t->data % _Alignof(float) == 0) {
        *out = (const float *)(const void *)t->data;
        return true;
    }
    size_t count = t->size / width;
    float *copy = rt_arena_alloc_raw(arena, count * sizeof(*copy) + 1);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = 0;
        memcpy(&bits, t->data + i * width, width); /* little-endian, as we are */
        copy[i] = t->type == TENSOR_F32   ? of_bits(bits)
                  : t->type == TENSOR_F16 ? of_half((uint16_t)bits)
                                          : of_bits(bits << 16);
    }
    *out = copy;
    return true;
}
