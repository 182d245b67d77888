/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors_fuzz.c - whatever the file says: every tensor lies in it, and its numbers can be
 * read.
 */
#include "models/models_internal.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    tensors found;
    if (!tensors_read((rt_str){ (const char *)data, size }, &arena, &found, &err)) {
        assert(err.code != RT_OK && err.text[0]);
        return 0;
    }
    for (size_t i = 0; i < found.count; i++) {
        const tensor *t = &found.items[i];
        const float *numbers;
        float sum = 0;
        assert(t->data >= data && t->size <= size && t->data + t->size <= data + size);
        assert(tensors_find(&found, t->name));
        if (tensor_floats(t, &arena, &numbers, &err))
            for (size_t k = 0; k < t->size / (t->type == TENSOR_F32 ? 4 : 2); k++)
                sum += numbers[k];
        assert(sum == sum || sum != sum); /* each was read */
    }
    return 0;
}
