/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "models/models_internal.h"

/* The length, the header, then eight bytes of numbers. */
static rt_str file_of(const char *header, rt_arena *arena)
{
    static const uint8_t data[8] = { 0, 0, 0x80, 0x3F, 0, 0, 0, 0xC0 }; /* 1, -2 */
    uint64_t size = strlen(header);
    char *file = rt_arena_alloc(arena, 16 + size);
    memcpy(file, &size, 8);
    memcpy(file + 8, header, size);
    memcpy(file + 8 + size, data, 8);
    return (rt_str){ file, 16 + size };
}

static const float *numbers_of(const char *header, rt_arena *arena)
{
    rt_error err = { 0 };
    const float *numbers;
    tensors found;
    cr_assert(tensors_read(file_of(header, arena), arena, &found, &err), "%s", err.text);
    const tensor *t = tensors_find(&found, RT_STR("w"));
    cr_assert(t && tensor_floats(t, arena, &numbers, &err), "%s", err.text);
    return numbers;
}

Test(safetensors, numbers_are_read_where_they_lie_or_copied)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    for (const char *spaces = "    "; *spaces; spaces++) { /* each alignment */
        char header[128];
        snprintf(header, sizeof(header),
                 "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}%s", spaces);
        const float *w = numbers_of(header, &arena);
        cr_expect(w[0] == 1 && w[1] == -2);
    }
}

Test(safetensors, halves_become_floats)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    const float *bf16 =
        numbers_of("{\"w\":{\"dtype\":\"BF16\",\"shape\":[2,2],\"data_offsets\":[0,8]}}", &arena);
    cr_expect(bf16[0] == 0 && bf16[1] == 1 && bf16[2] == 0 && bf16[3] == -2);
    const float *f16 =
        numbers_of("{\"w\":{\"dtype\":\"F16\",\"shape\":[4],\"data_offsets\":[0,8]}}", &arena);
    cr_expect(f16[0] == 0 && f16[1] == 1.875f && f16[3] == -2);
}

Test(safetensors, small_and_infinite_halves)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    const uint16_t halves[] = { 0x0001, 0x8001, 0x03FF, 0x0400, 0x7BFF, 0x7C00 };
    const float wanted[] = { 0x1p-24f, -0x1p-24f, 1023 * 0x1p-24f, 0x1p-14f, 65504, INFINITY };
    tensor t = { .type = TENSOR_F16, .data = (const uint8_t *)halves, .size = sizeof(halves) };
    const float *numbers;
    cr_assert(tensor_floats(&t, &arena, &numbers, NULL));
    for (size_t i = 0; i < RT_COUNT(wanted); i++)
        cr_expect_eq(numbers[i], wanted[i], "%zu: %g", i, (double)numbers[i]);
}

Test(safetensors, what_is_not_in_the_file_is_refused)
{
    static const char *const wrong[] = {
        "[]",
        "{\"w\":1}",
        "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,9]}}",
        "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}",
        "{\"w\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}",
        "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}",
        "{\"w\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}}",
        "{\"w\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}",
        "{\"w\":{\"dtype\":\"F99\",\"shape\":[2],\"data_offsets\":[0,8]}}",
    };
    for (size_t i = 0; i < RT_COUNT(wrong); i++) {
        rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
        rt_error err = { 0 };
        tensors found;
        cr_expect(!tensors_read(file_of(wrong[i], &arena), &arena, &found, &err), "%s", wrong[i]);
        cr_expect_neq(err.code, RT_OK);
    }
}
