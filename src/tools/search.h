/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.h - which of many short texts is meant by a sentence.
 *
 * Promise: no model to download and no network; the same texts and the same question give the same
 * order on every machine, unless an embedder of one's own is handed in. A question costs
 * milliseconds at ten thousand documents. Texts are outside bytes: they may be in any language,
 * broken, or huge; what is too long is cut.
 *
 *     rt_search *search RT_CLEANUP(rt_search_freep) = rt_search_new(NULL);
 *     rt_search_add(search, &(rt_search_document){ .name = name, .description = text });
 *     rt_search_build(search);
 *     rt_search_hit hits[10];
 *     size_t count = rt_search_query(search, RT_STR("who committed last week"), hits, 10);
 *
 * Documents have numbers, 0 for the first that was added. After rt_search_build() any number of
 * threads may ask.
 *
 * How it judges is told where it is done: tokens.c, stem.c (words), synonyms.c and lexicon.c (what
 * words mean), index.c (BM25 over fields), embed.c (vectors), query.c (how it all becomes a score).
 */
#ifndef RT_TOOLS_SEARCH_H
#define RT_TOOLS_SEARCH_H

#include "base/base.h"

typedef struct rt_search rt_search;

/* Every text may be empty. */
typedef struct rt_search_document {
    rt_str name, title, description;
    rt_str arguments;      /* their names, with anything between them */
    rt_str argument_texts; /* their descriptions */
    rt_str category, server;
    double usage; /* how often it was used; a small prior */
} rt_search_document;

/* An embedding of one's own instead of the built-in one; see rt_embed. */
typedef enum rt_embed_what { RT_EMBED_DOCUMENTS, RT_EMBED_QUERIES } rt_embed_what;

typedef struct rt_embedder {
    size_t dims;
    /* `dims` numbers a text, of any length; all nought for a text it can say nothing of. */
    void (*embed)(void *ctx, rt_embed_what what, const rt_str *texts, size_t count, float *out);
    void *ctx;
} rt_embedder;

typedef struct rt_search_options {
    const rt_embedder *embedder; /* NULL: the built-in one */
} rt_search_options;

rt_search *rt_search_new(const rt_search_options *options); /* NULL: all defaults */
void rt_search_free(rt_search *search);
void rt_search_freep(rt_search **search);

/* Texts are read here and not kept. */
void rt_search_add(rt_search *search, const rt_search_document *document);
void rt_search_build(rt_search *search); /* once, after the last one */
size_t rt_search_count(const rt_search *search);

typedef struct rt_search_hit {
    uint32_t document;
    double score;                    /* of this question's best possible, about 0 to 1 */
    double lexical, semantic, usage; /* what it was made of, 0 to 1 each */
} rt_search_hit;

/* Best first; only documents that have something to do with the question. */
size_t rt_search_query(const rt_search *search, rt_str query, rt_search_hit *hits, size_t max);

/*
 * The built-in embedding: `dims` numbers (1 to RT_EMBED_MAX) of length one, or all zero for a text
 * without words. Likeness is the cosine. Deterministic, and good for 64 numbers or more; embed.c
 * tells how it is made.
 */
#define RT_EMBED_MAX 4096

void rt_embed(rt_str text, float *out, size_t dims);

#endif
