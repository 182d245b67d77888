/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embed.c - a text as a list of numbers, so that texts that mean the same lie near each other.
 *
 * The text's words are shortened to stems, stop words are dropped, and each stem adds its vector,
 * weighted by how seldom the word is (Arora, Liang, Ma 2017: a / (a + p)). A stem's vector has two
 * parts. The first 64 numbers are its meaning, from the lexicon; words it does not know have none.
 * The other numbers are its spelling: the stem and its runs of three letters, each hashed to one
 * place and one sign, so that names nobody has heard of still find each other, typing mistakes
 * included. The sum is set to length one. No state, no randomness, no locale: the same text gives
 * the same numbers everywhere.
 *
 * With fewer than 64 numbers the meaning is cut to the strongest directions and nothing is left for
 * spelling. 128 and more work well; 384 and 768 are there for those whose tables have that width.
 */
#include "tools/search_internal.h"

#include <math.h>

static const float COMMON = 1e-3f;     /* "a" of the weighting */
static const float SPELLING = 0.35f;   /* of a known word; an unknown one has nothing else */
static const size_t TEXT_WORDS = 2048; /* more of a text is not read */

static uint32_t fnv(const char *p, size_t len, uint32_t h)
{
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)p[i]) * 16777619u;
    h ^= h >> 15;
    h *= 0x2c1b3c6du;
    return h ^ h >> 12;
}

static void add_hashed(uint32_t h, float amount, float *out, size_t dims)
{
    out[h % dims] += h & 0x80000000u ? -amount : amount;
}

static void add_spelling(rt_str stem, float weight, float *out, size_t dims)
{
    size_t grams = stem.len >= 3 ? stem.len - 2 : 0;
    float each = 0.8f * weight / sqrtf((float)(grams ? grams : 1));
    add_hashed(fnv(stem.ptr, stem.len, 2166136261u), 0.6f * weight, out, dims);
    for (size_t i = 0; i < grams; i++)
        add_hashed(fnv(stem.ptr + i, 3, 0x9747b28cu), each, out, dims);
}

static void add_meaning(const int8_t *vector, float weight, float *out, size_t dims)
{
    float square = 0;
    for (size_t i = 0; i < SEARCH_LEXICON_DIMS; i++)
        square += (float)vector[i] * (float)vector[i];
    float scale = square > 0 ? weight / sqrtf(square) : 0;
    for (size_t i = 0; i < dims; i++)
        out[i] += scale * (float)vector[i];
}

float search_word_weight(rt_str stem)
{
    uint32_t entry = search_lexicon_find(stem);
    if (entry == SEARCH_NOT_A_WORD)
        return 1.0f;
    float p = 0.1f / (float)(search_lexicon_place(entry) + 10); /* Zipf's law */
    return COMMON / (COMMON + p);
}

void search_embed_word(rt_str stem, float weight, float *sum, size_t dims)
{
    uint32_t entry = search_lexicon_find(stem);
    size_t meaning = RT_MIN(dims, (size_t)SEARCH_LEXICON_DIMS);
    bool is_known = entry != SEARCH_NOT_A_WORD;
    if (is_known)
        add_meaning(search_lexicon_vector(entry), weight, sum, meaning);
    if (dims > meaning)
        add_spelling(stem, is_known ? SPELLING * weight : weight, sum + meaning, dims - meaning);
}

/* Four sums side by side, so that none waits for the one before; always in this order, so that the
 * result is the same on every machine. */
float search_dot(const float *a, const float *b, size_t dims)
{
    typedef float lanes __attribute__((vector_size(16), aligned(4)));
    lanes first = { 0 }, second = { 0 }, third = { 0 }, fourth = { 0 };
    float rest = 0;
    size_t i = 0;
    for (; i + 16 <= dims; i += 16) {
        const lanes *x = (const lanes *)(a + i), *y = (const lanes *)(b + i);
        first += x[0] * y[0];
        second += x[1] * y[1];
        third += x[2] * y[2];
        fourth += x[3] * y[3];
    }
    for (; i < dims; i++)
        rest += a[i] * b[i];
    lanes sum = (first + second) + (third + fourth);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]) + rest;
}

void search_embed_finish(float *sum, size_t dims)
{
    float length = sqrtf(search_dot(sum, sum, dims));
    for (size_t i = 0; i < dims && length > 0; i++)
        sum[i] /= length;
}

void rt_embed(rt_str text, float *out, size_t dims)
{
    search_tokens tokens RT_CLEANUP(search_tokens_done) = { 0 };
    memset(out, 0, dims * sizeof(*out));
    search_tokenise(text, TEXT_WORDS, &tokens);
    for (size_t i = 0; i < tokens.count; i++) {
        const search_token *t = &tokens.items[i];
        rt_str stem = search_token_stem(t);
        if (!search_is_stop_word((rt_str){ t->word, t->word_len }) && !t->is_extra)
            search_embed_word(stem, search_word_weight(stem), out, dims);
    }
    search_embed_finish(out, dims);
}
