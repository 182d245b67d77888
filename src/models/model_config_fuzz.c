/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_config_fuzz.c - whatever the files say: the sizes that are taken from them are within
 * bounds and fit each other. The input is config.json, sentence_bert_config.json, the pooling's
 * config.json and modules.json, with NUL bytes between them.
 */
#include "models/models_internal.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_str rest = { (const char *)data, size };
    model_config_files files = { 0 };
    model_config c = { 0 };
    model_parts parts;
    rt_str_cut(&rest, '\0', &files.config);
    rt_str_cut(&rest, '\0', &files.sbert);
    rt_str_cut(&rest, '\0', &files.pooling);
    if (model_parts_read(rest, &arena, &parts, &c.is_normalized, &err))
        assert(!memchr(parts.pooling.ptr, '/', parts.pooling.len) && parts.pooling.len <= 64);
    if (!model_config_read(&files, &c, &err)) {
        assert(err.code != RT_OK && err.text[0]);
        return 0;
    }
    assert(c.hidden % (c.heads * KERNEL_LANES) == 0 && c.inner % KERNEL_LANES == 0);
    assert(c.tokens_max >= 2 && c.tokens_max <= c.positions && c.layers >= 1 && c.layers <= 128);
    assert(c.tokens_max * c.hidden <= (size_t)16 << 20 && c.norm_epsilon >= 0);
    assert(c.kind != MODEL_MPNET || (c.buckets % 4 == 0 && c.pad + c.tokens_max < c.positions));
    return 0;
}
