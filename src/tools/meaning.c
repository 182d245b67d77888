/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meaning.c - vectors of tools and questions by a sentence model.
 *
 * A model takes milliseconds for a tool, and a catalogue is made anew whenever one of its providers
 * changes. So the vectors of the latest catalogue are kept, by the hash of what they were made of,
 * and only what is new in the next is embedded.
 */
#include <pthread.h>
#include <stdlib.h>

#include "tools/tools_internal.h"

typedef struct kept {
    uint8_t hash[RT_SHA256_SIZE];
    uint32_t place; /* its vector */
} kept;

struct tools_meaning {
    const rt_model *model;
    rt_embedder embedder;
    pthread_mutex_t lock; /* of what is kept; held while a catalogue is embedded */
    kept *kept;           /* in the order of hashes */
    float *vectors;
    size_t count;
};

static void *memory(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size);
    if (!p)
        rt_out_of_memory(count * size);
    return p;
}

static int by_hash(const void *a, const void *b)
{
    return memcmp(((const kept *)a)->hash, ((const kept *)b)->hash, RT_SHA256_SIZE);
}

/* A model that fails says nothing of these texts, and the search goes by their words. */
static void embed(const tools_meaning *m, const rt_str *texts, size_t count, float *out)
{
    if (!rt_model_embed(m->model, texts, count, out, NULL))
        memset(out, 0, count * m->embedder.dims * sizeof(*out));
}

/* Fills in what is known; the rest comes to the front of `texts`, and `places` tells whose it is.
 */
static size_t take_known(const tools_meaning *m, const kept *wanted, rt_str *texts, size_t count,
                         uint32_t *places, float *out)
{
    size_t dims = m->embedder.dims, left = 0;
    for (size_t i = 0; i < count; i++) {
        const kept *known =
            m->count ? bsearch(&wanted[i], m->kept, m->count, sizeof(kept), by_hash) : NULL;
        if (known) {
            memcpy(out + i * dims, m->vectors + known->place * dims, dims * sizeof(*out));
        } else {
            places[left] = (uint32_t)i;
            texts[left++] = texts[i];
        }
    }
    return left;
}

static void keep(tools_meaning *m, kept *latest, size_t count, const float *vectors)
{
    size_t dims = m->embedder.dims;
    free(m->kept);
    free(m->vectors);
    qsort(latest, count, sizeof(*latest), by_hash);
    m->kept = latest;
    m->count = count;
    m->vectors = memory(count * dims, sizeof(*vectors));
    memcpy(m->vectors, vectors, count * dims * sizeof(*vectors));
}

static void embed_documents(tools_meaning *m, const rt_str *texts, size_t count, float *out)
{
    size_t dims = m->embedder.dims;
    kept *wanted = memory(count, sizeof(*wanted));
    rt_str *unknown RT_CLEANUP(rt_freep) = memory(count, sizeof(*unknown));
    uint32_t *places RT_CLEANUP(rt_freep) = memory(count, sizeof(*places));
    for (size_t i = 0; i < count; i++) {
        rt_sha256(texts[i], wanted[i].hash);
        wanted[i].place = (uint32_t)i;
        unknown[i] = texts[i];
    }
    size_t left = take_known(m, wanted, unknown, count, places, out);
    float *vectors RT_CLEANUP(rt_freep) = memory(left * dims, sizeof(*vectors));
    embed(m, unknown, left, vectors);
    for (size_t i = 0; i < left; i++)
        memcpy(out + places[i] * dims, vectors + i * dims, dims * sizeof(*out));
    keep(m, wanted, count, out);
}

static void embed_any(void *ctx, rt_embed_what what, const rt_str *texts, size_t count, float *out)
{
    tools_meaning *m = ctx;
    if (what == RT_EMBED_QUERIES) {
        embed(m, texts, count, out);
        return;
    }
    pthread_mutex_lock(&m->lock);
    embed_documents(m, texts, count, out);
    pthread_mutex_unlock(&m->lock);
}

tools_meaning *tools_meaning_new(const rt_model *model)
{
    if (!model)
        return NULL;
    tools_meaning *m = memory(1, sizeof(*m));
    m->model = model;
    m->embedder = (rt_embedder){ .dims = rt_model_dims(model), .embed = embed_any, .ctx = m };
    pthread_mutex_init(&m->lock, NULL);
    return m;
}

void tools_meaning_free(tools_meaning *m)
{
    if (!m)
        return;
    pthread_mutex_destroy(&m->lock);
    free(m->kept);
    free(m->vectors);
    free(m);
}

const rt_embedder *tools_meaning_embedder(tools_meaning *m)
{
    return m ? &m->embedder : NULL;
}
