/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixture_test.c - a folder with the smallest model there can be, for tests of this room and
 * others.
 */
#include "models/fixture_test.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/stat.h>

enum {
    HIDDEN = MODELS_FIXTURE_DIMS,
    INNER = 24,
    VOCABULARY = 8,
    POSITIONS = MODELS_FIXTURE_TOKENS
};

static void write_file(const char *folder, const char *name, rt_str text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    cr_assert(f && fwrite(text.ptr, 1, text.len, f) == text.len && fclose(f) == 0, "%s", path);
}

static void put_tensor(rt_buf *header, rt_buf *data, const char *name, size_t rows, size_t columns)
{
    size_t begin = data->len, count = RT_MAX(rows, (size_t)1) * columns;
    for (size_t i = 0; i < count; i++) {
        float number = (float)((i * 37 + begin) % 101) / 101 - 0.5f;
        rt_buf_add(data, (rt_str){ (const char *)&number, sizeof(number) });
    }
    rt_buf_addf(header, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[", header->len > 1 ? "," : "",
                name);
    if (rows)
        rt_buf_addf(header, "%zu,", rows);
    rt_buf_addf(header, "%zu],\"data_offsets\":[%zu,%zu]}", columns, begin, data->len);
}

static rt_str weights_file(rt_arena *arena)
{
    static const struct {
        const char *name;
        size_t rows, columns;
    } known[] = {
        { "embeddings.word_embeddings.weight", VOCABULARY, HIDDEN },
        { "embeddings.position_embeddings.weight", POSITIONS, HIDDEN },
        { "embeddings.token_type_embeddings.weight", 2, HIDDEN },
        { "embeddings.LayerNorm.weight", 0, HIDDEN },
        { "embeddings.LayerNorm.bias", 0, HIDDEN },
        { "encoder.layer.0.attention.self.query.weight", HIDDEN, HIDDEN },
        { "encoder.layer.0.attention.self.query.bias", 0, HIDDEN },
        { "encoder.layer.0.attention.self.key.weight", HIDDEN, HIDDEN },
        { "encoder.layer.0.attention.self.key.bias", 0, HIDDEN },
        { "encoder.layer.0.attention.self.value.weight", HIDDEN, HIDDEN },
        { "encoder.layer.0.attention.self.value.bias", 0, HIDDEN },
        { "encoder.layer.0.attention.output.dense.weight", HIDDEN, HIDDEN },
        { "encoder.layer.0.attention.output.dense.bias", 0, HIDDEN },
        { "encoder.layer.0.attention.output.LayerNorm.weight", 0, HIDDEN },
        { "encoder.layer.0.attention.output.LayerNorm.bias", 0, HIDDEN },
        { "encoder.layer.0.intermediate.dense.weight", INNER, HIDDEN },
        { "encoder.layer.0.intermediate.dense.bias", 0, INNER },
        { "encoder.layer.0.output.dense.weight", HIDDEN, INNER },
        { "encoder.layer.0.output.dense.bias", 0, HIDDEN },
        { "encoder.layer.0.output.LayerNorm.weight", 0, HIDDEN },
        { "encoder.layer.0.output.LayerNorm.bias", 0, HIDDEN },
    };
    rt_buf header RT_CLEANUP(rt_buf_done) = { 0 }, data RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf file RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf_addc(&header, '{');
    for (size_t i = 0; i < RT_COUNT(known); i++)
        put_tensor(&header, &data, known[i].name, known[i].rows, known[i].columns);
    rt_buf_addc(&header, '}');
    uint64_t size = header.len;
    rt_buf_add(&file, (rt_str){ (const char *)&size, sizeof(size) });
    rt_buf_add(&file, rt_buf_str(&header));
    rt_buf_add(&file, rt_buf_str(&data));
    return rt_arena_str(arena, rt_buf_str(&file));
}

void models_fixture_make(const char *folder)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    cr_assert_eq(mkdir(folder, 0755), 0);
    write_file(folder, "config.json",
               RT_STR("{\"model_type\":\"bert\",\"hidden_act\":\"gelu\",\"hidden_size\":16,"
                      "\"intermediate_size\":24,\"num_attention_heads\":2,\"num_hidden_layers\":1,"
                      "\"vocab_size\":8,\"max_position_embeddings\":10,\"type_vocab_size\":2}"));
    write_file(folder, "vocab.txt", RT_STR("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\n##a\n##b"));
    write_file(folder, "model.safetensors", weights_file(&arena));
}
