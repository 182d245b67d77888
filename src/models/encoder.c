/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encoder.c - BERT and MPNet, from tokens to one vector a text.
 *
 * The tokens of a batch stand below each other in one matrix, with no padding between texts; only
 * attention, which looks from each token of a text at all others of it, goes text by text. The two
 * models differ in two things: BERT adds a type to each token, MPNet adds to the attention a bias
 * that depends on how far apart two tokens are.
 */
#include "models/models_internal.h"

#include <math.h>
#include <stdlib.h>

enum { QUERIES = 32 }; /* rows of attention at once */

/* The matrices of a batch: so many tokens, `hidden` or `inner` wide. */
typedef struct rooms {
    float *x, *query, *key, *value, *inner;
    float *scores; /* QUERIES rows as wide as the longest text */
    size_t score_stride;
} rooms;

static size_t score_stride(const encoder *e)
{
    return (e->config.tokens_max + KERNEL_LANES - 1) / KERNEL_LANES * KERNEL_LANES;
}

size_t encoder_room(const encoder *e, size_t tokens)
{
    return tokens * (4 * e->config.hidden + RT_MAX(e->config.inner, e->config.hidden)) +
           QUERIES * score_stride(e);
}

static rooms share_room(const encoder *e, size_t tokens, float *room)
{
    size_t matrix = tokens * e->config.hidden;
    return (rooms){ .x = room,
                    .query = room + matrix,
                    .key = room + 2 * matrix,
                    .value = room + 3 * matrix,
                    .inner = room + 4 * matrix,
                    .scores =
                        room + 4 * matrix + tokens * RT_MAX(e->config.inner, e->config.hidden),
                    .score_stride = score_stride(e) };
}

/* -- MPNet's distances ------------------------------------------------------------------------- */

/*
 * Half of the buckets are for what comes before, half for what comes after. Of each half, the first
 * half is for one distance each; the rest grow with the logarithm, up to 128 and beyond. The
 * logarithm is taken in single precision, as those who trained the model did.
 */
static uint8_t bucket_of(ptrdiff_t distance, size_t buckets)
{
    size_t half = buckets / 2, exact = half / 2, n = (size_t)labs(distance);
    size_t base = distance > 0 ? half : 0;
    if (n < exact)
        return (uint8_t)(base + n);
    float steps = logf((float)n / (float)exact) / logf(128.0f / (float)exact);
    size_t far = exact + (size_t)(steps * (float)(half - exact));
    return (uint8_t)(base + RT_MIN(far, half - 1));
}

void encoder_init(encoder *e, rt_arena *arena)
{
    size_t count = 2 * e->config.tokens_max - 1;
    e->kernels = kernels_best();
    if (e->config.kind != MODEL_MPNET)
        return;
    uint8_t *buckets = rt_arena_alloc(arena, count);
    for (size_t i = 0; i < count; i++)
        buckets[i] =
            bucket_of((ptrdiff_t)i - (ptrdiff_t)e->config.tokens_max + 1, e->config.buckets);
    e->buckets = buckets;
}

/* What is added to the scores of one token: by head, for each token it looks at. */
static void add_distances(const encoder *e, size_t head, size_t at, size_t count, float *scores)
{
    const uint8_t *buckets = e->buckets + e->config.tokens_max - 1 - at;
    for (size_t k = 0; k < count; k++)
        scores[k] += e->weights.distance[buckets[k] * e->config.heads + head];
}

/* -- Embedding --------------------------------------------------------------------------------- */

static void add_row(float *to, const float *row, size_t width)
{
    for (size_t k = 0; k < width; k++)
        to[k] += row[k];
}

/* MPNet counts positions from that of the padding on, which itself stays there. */
static void embed_text(const encoder *e, const uint32_t *ids, size_t count, float *x)
{
    const model_config *c = &e->config;
    size_t seen = 0;
    for (size_t i = 0; i < count; i++, x += c->hidden) {
        size_t position = i;
        if (c->kind == MODEL_MPNET)
            position = ids[i] == c->pad ? c->pad : c->pad + ++seen;
        memcpy(x, e->weights.words + ids[i] * c->hidden, c->hidden * sizeof(*x));
        add_row(x, e->weights.positions + position * c->hidden, c->hidden);
        if (e->weights.types)
            add_row(x, e->weights.types, c->hidden);
    }
}

/* -- Layers ------------------------------------------------------------------------------------ */

static void apply(const encoder *e, const linear *l, const float *x, size_t rows, float *out)
{
    e->kernels->multiply(&(kernel_product){ .x = x,
                                            .w = l->weight,
                                            .bias = l->bias,
                                            .out = out,
                                            .rows = rows,
                                            .inputs = l->inputs,
                                            .outputs = l->outputs,
                                            .x_stride = l->inputs,
                                            .w_stride = l->inputs,
                                            .out_stride = l->outputs,
                                            .scale = 1 });
}

/* Some tokens of a text, from `at` on, look at all of its `count`; one head's part. */
static void attend(const encoder *e, const rooms *r, size_t head, size_t from, size_t at,
                   size_t count)
{
    size_t hidden = e->config.hidden, width = hidden / e->config.heads;
    size_t rows = RT_MIN((size_t)QUERIES, count - at);
    size_t text = from * hidden + head * width, query = text + at * hidden;
    kernel_product look = { .x = r->query + query,
                            .w = r->key + text,
                            .out = r->scores,
                            .rows = rows,
                            .inputs = width,
                            .outputs = count,
                            .x_stride = hidden,
                            .w_stride = hidden,
                            .out_stride = r->score_stride,
                            .scale = 1 / sqrtf((float)width) };
    e->kernels->multiply(&look);
    for (size_t i = 0; i < rows; i++) {
        float *scores = r->scores + i * r->score_stride;
        if (e->buckets)
            add_distances(e, head, at + i, count, scores);
        e->kernels->softmax(scores, count);
    }
    /* The answer takes the place of the queries it was made of. */
    e->kernels->combine(&(kernel_product){ .x = r->scores,
                                           .w = r->value + text,
                                           .out = r->query + query,
                                           .rows = rows,
                                           .inputs = count,
                                           .outputs = width,
                                           .x_stride = r->score_stride,
                                           .w_stride = hidden,
                                           .out_stride = hidden });
}

static void apply_layer(const encoder *e, const layer *l, const encoder_batch *batch,
                        const rooms *r)
{
    const model_config *c = &e->config;
    size_t tokens = batch->ends[batch->count - 1], from = 0;
    apply(e, &l->query, r->x, tokens, r->query);
    apply(e, &l->key, r->x, tokens, r->key);
    apply(e, &l->value, r->x, tokens, r->value);
    for (size_t i = 0; i < batch->count; from = batch->ends[i++])
        for (size_t head = 0; head < c->heads; head++)
            for (size_t at = 0; at < batch->ends[i] - from; at += QUERIES)
                attend(e, r, head, from, at, batch->ends[i] - from);
    apply(e, &l->attention, r->query, tokens, r->key);
    e->kernels->add_norm(r->x, r->key, &l->after_attention, c->norm_epsilon, tokens, c->hidden);
    apply(e, &l->inner, r->x, tokens, r->inner);
    e->kernels->activate[c->activation](r->inner, tokens * c->inner);
    apply(e, &l->outer, r->inner, tokens, r->key);
    e->kernels->add_norm(r->x, r->key, &l->after_outer, c->norm_epsilon, tokens, c->hidden);
}

/* -- Pooling ----------------------------------------------------------------------------------- */

static void pool(const encoder *e, const float *x, size_t count, float *out)
{
    size_t hidden = e->config.hidden;
    model_pooling how = e->config.pooling;
    float by = how == MODEL_MEAN        ? 1 / (float)count
               : how == MODEL_MEAN_SQRT ? 1 / sqrtf((float)count)
                                        : 1;
    memcpy(out, x, hidden * sizeof(*out));
    for (size_t i = 1; i < count && how != MODEL_FIRST; i++) {
        if (how != MODEL_MAX)
            add_row(out, x + i * hidden, hidden);
        else
            for (size_t k = 0; k < hidden; k++)
                out[k] = RT_MAX(out[k], x[i * hidden + k]);
    }
    for (size_t k = 0; k < hidden; k++)
        out[k] *= by;
    if (e->config.is_normalized)
        rt_vector_normalize(out, hidden);
}

void encoder_run(const encoder *e, const encoder_batch *batch, float *room, float *out)
{
    const model_config *c = &e->config;
    size_t tokens = batch->ends[batch->count - 1], from = 0;
    rooms r = share_room(e, tokens, room);
    for (size_t i = 0; i < batch->count; from = batch->ends[i++])
        embed_text(e, batch->ids + from, batch->ends[i] - from, r.x + from * c->hidden);
    e->kernels->add_norm(r.x, NULL, &e->weights.embedding, c->norm_epsilon, tokens, c->hidden);
    for (size_t i = 0; i < c->layers; i++)
        apply_layer(e, &e->weights.layers[i], batch, &r);
    from = 0;
    for (size_t i = 0; i < batch->count; from = batch->ends[i++])
        pool(e, r.x + from * c->hidden, batch->ends[i] - from, out + i * c->hidden);
}
