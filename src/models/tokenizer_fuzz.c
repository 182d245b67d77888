/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokenizer_fuzz.c - whatever the files and the text: as many tokens as there may be, all of them
 * in the vocabulary. The input is tokenizer.json (or, if it does not begin with '{', vocab.txt), a
 * NUL byte, tokenizer_config.json, another, and the text.
 */
#include "models/models_internal.h"

#include <assert.h>

static void check(const tokenizer *t, rt_str text, size_t max)
{
    uint32_t ids[64], last = t->pieces.last;
    size_t count = tokenizer_run(t, text, ids, max);
    for (size_t i = 0; i < t->special_count; i++)
        last = RT_MAX(last, t->specials[i].id);
    assert(count >= 2 && count <= max && ids[0] == t->first && ids[count - 1] == t->last);
    for (size_t i = 0; i < count; i++)
        assert(ids[i] <= last);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_str rest = { (const char *)data, size }, first = { 0 }, config = { 0 };
    const rt_str plain = RT_STR("[UNK]\n[CLS]\n[SEP]\n[PAD]\na\n##a\nb\n##\xC3\xA9\n.");
    tokenizer t;
    rt_str_cut(&rest, '\0', &first);
    rt_str_cut(&rest, '\0', &config);
    tokenizer_files files = { .config = config };
    if (first.len > 0 && first.ptr[0] == '{')
        files.tokenizer = first;
    else
        files.vocab = first.len ? first : plain;
    if (!tokenizer_read(&files, false, &arena, &t, &err)) {
        assert(err.code != RT_OK && err.text[0]);
        return 0;
    }
    for (size_t max = 2; max <= 64; max *= 2)
        check(&t, rest.ptr ? rest : RT_STR(""), max);
    return 0;
}
