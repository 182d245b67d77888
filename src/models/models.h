/* SPDX-License-Identifier: Apache-2.0 */
/*
 * models.h - sentences into vectors, by models in the form sentence-transformers publishes them.
 *
 * Promise: what the folder says is what is done (BERT or MPNet, its tokenizer, pooling and
 * normalisation); a folder that is broken, hostile or of another kind is refused with a sentence
 * that says what is wrong with it, and none of its code is run, for it has none. The same text
 * gives the same vector, in whatever batch it comes.
 *
 *     rt_model *model RT_CLEANUP(rt_model_closep) = NULL;
 *     if (!rt_model_open("/models/all-MiniLM-L6-v2", &model, err))
 *         return rt_wrap(err, "the model");
 *     float vectors[2 * 384];                              // rt_model_dims(model) is 384
 *     rt_str texts[] = { RT_STR("a cat sat"), RT_STR("on a mat") };
 *     if (!rt_model_embed(model, texts, 2, vectors, err))
 *         return rt_wrap(err, "embed");
 *
 * Any thread may embed with a model, as many at once as there are; each call works on the thread
 * that makes it. Weights are mapped, not read: two processes with one model share them.
 */
#ifndef RT_MODELS_MODELS_H
#define RT_MODELS_MODELS_H

#include "base/base.h"

typedef struct rt_model rt_model;

/*
 * The folder: config.json, model.safetensors, tokenizer.json or vocab.txt, and where they are there
 * tokenizer_config.json, special_tokens_map.json, sentence_bert_config.json, modules.json and
 * 1_Pooling/config.json. It must stay as it is while the model is open.
 */
bool rt_model_open(const char *folder, rt_model **out, rt_error *err);
void rt_model_close(rt_model *model);
void rt_model_closep(rt_model **model);

const char *rt_model_name(const rt_model *model); /* its folder's */
const char *rt_model_kind(const rt_model *model); /* "bert", "mpnet" */
size_t rt_model_dims(const rt_model *model);      /* numbers in a vector */
size_t rt_model_tokens(const rt_model *model);    /* of a text; what comes after them is not read */
bool rt_model_is_normalized(const rt_model *model); /* vectors have length one */
uint64_t rt_model_bytes(const rt_model *model);     /* of weights */

/*
 * `count` vectors of rt_model_dims() numbers, one after the other. A text may be of any length and
 * hold any bytes; what is not UTF-8 is skipped.
 */
bool rt_model_embed(const rt_model *model, const rt_str *texts, size_t count, float *out,
                    rt_error *err);

/* To length one; the vector of nothing stays as it is. */
void rt_vector_normalize(float *vector, size_t dims);

/* -- Installed models: the folders in one directory, by name ----------------------------------- */

typedef struct rt_models rt_models;

/* The directory need not be there: then there are none. */
rt_models *rt_models_new(rt_str directory);
void rt_models_free(rt_models *models);
void rt_models_freep(rt_models **models);

/*
 * Opened when it is first asked for, and kept until rt_models_free(). "all-MiniLM-L6-v2" and
 * "sentence-transformers/all-MiniLM-L6-v2" are the same. RT_NOT_FOUND, with a suggestion.
 */
bool rt_models_find(rt_models *models, rt_str name, const rt_model **out, rt_error *err);

typedef struct rt_model_entry {
    rt_str name;
    const rt_model *model; /* NULL: it cannot be used, and `problem` says why */
    rt_str problem;
} rt_model_entry;

/* In the order of names. */
bool rt_models_list(rt_models *models, rt_arena *arena, rt_model_entry **out, size_t *count,
                    rt_error *err);

typedef struct rt_model_addition {
    const char *folder;
    rt_str name;   /* empty: the folder's own */
    bool replaces; /* one of the same name may be there; who has it open keeps it */
} rt_model_addition;

/*
 * Copies what a model needs of the folder and tries it; only a model that works appears, all at
 * once. *name lives in the arena.
 */
bool rt_models_add(rt_models *models, const rt_model_addition *what, rt_arena *arena, rt_str *name,
                   rt_error *err);

#endif
