/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weights.c - the tensors of a file as the layers of a model.
 *
 * Files name a tensor "encoder.layer.0.…", some with the model's kind before it ("bert.encoder.…").
 * Each is checked for its shape, so the encoder can trust what it is given.
 */
#include "models/models_internal.h"

#include <stdio.h>

typedef struct binder {
    const tensors *in;
    const model_config *config;
    rt_arena *arena;
    rt_str prefix;
    rt_error *err;
    size_t layer;
} binder;

static bool find_prefix(binder *b)
{
    static const char *const prefixes[] = { "", "bert.", "mpnet.", "model.", "0.auto_model." };
    for (size_t i = 0; i < RT_COUNT(prefixes); i++) {
        char name[96];
        snprintf(name, sizeof(name), "%sembeddings.word_embeddings.weight", prefixes[i]);
        b->prefix = rt_str_of(prefixes[i]);
        if (tensors_find(b->in, rt_str_of(name)))
            return true;
    }
    return rt_fail(b->err, RT_INVALID,
                   "there is no tensor embeddings.word_embeddings.weight; is it a sentence "
                   "encoder?");
}

/* rows x columns numbers; with rows 0, a row of `columns`. */
static bool bind(binder *b, const char *name, const char *part, size_t rows, size_t columns,
                 const float **out)
{
    char full[192];
    snprintf(full, sizeof(full), "%.*s%s%s", RT_FMT(b->prefix), name, part);
    const tensor *t = tensors_find(b->in, rt_str_of(full));
    if (!t)
        return rt_fail(b->err, RT_INVALID, "tensor %s is missing", full);
    bool fits = rows == 0 ? t->rank == 1 && t->shape[0] == columns
                          : t->rank == 2 && t->shape[0] == rows && t->shape[1] == columns;
    if (!fits)
        return rows ? rt_fail(b->err, RT_INVALID, "tensor %s is not %zu x %zu, as config.json says",
                              full, rows, columns)
                    : rt_fail(b->err, RT_INVALID, "tensor %s is not %zu long, as config.json says",
                              full, columns);
    return tensor_floats(t, b->arena, out, b->err) || rt_wrap(b->err, "tensor %s", full);
}

static bool bind_in_layer(binder *b, const char *name, const char *part, size_t rows,
                          size_t columns, const float **out)
{
    char full[128];
    snprintf(full, sizeof(full), "encoder.layer.%zu.%s", b->layer, name);
    return bind(b, full, part, rows, columns, out);
}

static bool bind_linear(binder *b, const char *name, size_t inputs, size_t outputs, linear *out)
{
    out->inputs = inputs;
    out->outputs = outputs;
    return bind_in_layer(b, name, ".weight", outputs, inputs, &out->weight) &&
           bind_in_layer(b, name, ".bias", 0, outputs, &out->bias);
}

static bool bind_norm(binder *b, const char *name, norm *out)
{
    return bind_in_layer(b, name, ".weight", 0, b->config->hidden, &out->weight) &&
           bind_in_layer(b, name, ".bias", 0, b->config->hidden, &out->bias);
}

static bool bind_layer(binder *b, layer *l)
{
    static const struct {
        const char *query, *key, *value, *attention, *norm;
    } names[] = {
        [MODEL_BERT] = { "attention.self.query", "attention.self.key", "attention.self.value",
                         "attention.output.dense", "attention.output.LayerNorm" },
        [MODEL_MPNET] = { "attention.attn.q", "attention.attn.k", "attention.attn.v",
                          "attention.attn.o", "attention.LayerNorm" },
    };
    size_t kind = b->config->kind, hidden = b->config->hidden, inner = b->config->inner;
    return bind_linear(b, names[kind].query, hidden, hidden, &l->query) &&
           bind_linear(b, names[kind].key, hidden, hidden, &l->key) &&
           bind_linear(b, names[kind].value, hidden, hidden, &l->value) &&
           bind_linear(b, names[kind].attention, hidden, hidden, &l->attention) &&
           bind_norm(b, names[kind].norm, &l->after_attention) &&
           bind_linear(b, "intermediate.dense", hidden, inner, &l->inner) &&
           bind_linear(b, "output.dense", inner, hidden, &l->outer) &&
           bind_norm(b, "output.LayerNorm", &l->after_outer);
}

static bool bind_embeddings(binder *b, weights *w)
{
    const model_config *c = b->config;
    bool is_bert = c->kind == MODEL_BERT;
    return bind(b, "embeddings.word_embeddings", ".weight", c->vocabulary, c->hidden, &w->words) &&
           bind(b, "embeddings.position_embeddings", ".weight", c->positions, c->hidden,
                &w->positions) &&
           (!is_bert || bind(b, "embeddings.token_type_embeddings", ".weight", c->types, c->hidden,
                             &w->types)) &&
           (is_bert || bind(b, "encoder.relative_attention_bias", ".weight", c->buckets, c->heads,
                            &w->distance)) &&
           bind(b, "embeddings.LayerNorm", ".weight", 0, c->hidden, &w->embedding.weight) &&
           bind(b, "embeddings.LayerNorm", ".bias", 0, c->hidden, &w->embedding.bias);
}

bool weights_bind(const tensors *in, const model_config *config, rt_arena *arena, weights *out,
                  rt_error *err)
{
    binder b = { .in = in, .config = config, .arena = arena, .err = err };
    weights w = { .layers = rt_arena_alloc(arena, config->layers * sizeof(*w.layers)) };
    if (!find_prefix(&b) || !bind_embeddings(&b, &w))
        return false;
    for (; b.layer < config->layers; b.layer++)
        if (!bind_layer(&b, &w.layers[b.layer]))
            return false;
    *out = w;
    return true;
}
