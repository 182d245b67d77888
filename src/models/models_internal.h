/* SPDX-License-Identifier: Apache-2.0 */
/*
 * models_internal.h - what the files of this room share.
 */
#ifndef RT_MODELS_MODELS_INTERNAL_H
#define RT_MODELS_MODELS_INTERNAL_H

#include "models/models.h"

/* -- unicode.c: characters as BERT's tokenizer sees them --------------------------------------- */

typedef enum unicode_kind {
    UNICODE_LETTER, /* and all that is none of the others */
    UNICODE_SPACE,
    UNICODE_CONTROL, /* left out */
    UNICODE_PUNCTUATION,
    UNICODE_MARK, /* accents that stand alone */
} unicode_kind;

unicode_kind unicode_kind_of(uint32_t c);
bool unicode_is_cjk(uint32_t c);
uint32_t unicode_lower(uint32_t c);

#define UNICODE_BARE_MAX 4
/* The character without its accents, taken apart as NFD does; returns how many are left. */
size_t unicode_bare(uint32_t c, uint32_t out[UNICODE_BARE_MAX]);

/* -- safetensors.c: named arrays in a mapped file ---------------------------------------------- */

typedef enum tensor_type { TENSOR_F32, TENSOR_F16, TENSOR_BF16, TENSOR_OTHER } tensor_type;

#define TENSOR_RANK_MAX 4

typedef struct tensor {
    rt_str name;
    tensor_type type;
    rt_str type_name;
    size_t rank, shape[TENSOR_RANK_MAX];
    const uint8_t *data; /* of no alignment */
    size_t size;
} tensor;

typedef struct tensors {
    tensor *items; /* in the order of names */
    size_t count;
} tensors;

/* `file` is all of it, and must outlive the result. */
bool tensors_read(rt_str file, rt_arena *arena, tensors *out, rt_error *err);
const tensor *tensors_find(const tensors *in, rt_str name); /* NULL: none */
/* Its numbers as floats: where they lie if that can be, else copied into the arena. */
bool tensor_floats(const tensor *t, rt_arena *arena, const float **out, rt_error *err);

/* -- vocabulary.c: pieces of words by number --------------------------------------------------- */

#define VOCABULARY_NONE UINT32_MAX

typedef struct vocabulary {
    rt_hash_key key;
    struct vocabulary_slot {
        rt_str piece;
        uint32_t id;
    } * slots; /* piece.ptr is NULL: free */
    size_t slot_count, count;
    size_t longest; /* bytes of a piece */
    uint32_t last;  /* the highest id */
} vocabulary;

/* Texts are kept as views. */
void vocabulary_init(vocabulary *v, size_t count, rt_arena *arena);
void vocabulary_add(vocabulary *v, rt_str piece, uint32_t id); /* at most `count` of them */
uint32_t vocabulary_find(const vocabulary *v, rt_str piece);   /* VOCABULARY_NONE: none */

/* -- tokenizer.c: text into the numbers of its pieces ------------------------------------------ */

/* A token that is found in the text as it is written, "[MASK]". */
typedef struct tokenizer_special {
    rt_str text;
    uint32_t id;
    bool is_any_case;
} tokenizer_special;

#define TOKENIZER_SPECIALS_MAX 64

typedef struct tokenizer {
    vocabulary pieces;
    rt_str prefix; /* of a piece inside a word: "##" */
    size_t word_chars_max;
    uint32_t unknown, first, last; /* [UNK], [CLS], [SEP] */
    bool lowers, strips_accents, spaces_cjk, drops_control;
    tokenizer_special specials[TOKENIZER_SPECIALS_MAX];
    size_t special_count;
} tokenizer;

/* The files of a folder that tell of tokens; absent ones are empty. `sbert` is
 * sentence_bert_config.json. */
typedef struct tokenizer_files {
    rt_str tokenizer, vocab, config, specials, sbert;
} tokenizer_files;

/* Everything lives in the arena; the files may go away. */
bool tokenizer_read(const tokenizer_files *files, bool is_mpnet, rt_arena *arena, tokenizer *out,
                    rt_error *err);
/* At most `max` numbers (2 or more), the first and the last token among them. */
size_t tokenizer_run(const tokenizer *t, rt_str text, uint32_t *ids, size_t max);

/* -- config.c: what the folder says of the model ----------------------------------------------- */

/* A file of the folder, which errors name; absent (the empty text) stays absent. */
bool model_json_read(rt_str text, const char *name, rt_arena *arena, rt_json *out, rt_error *err);

typedef enum model_kind { MODEL_BERT, MODEL_MPNET } model_kind;
typedef enum model_activation { MODEL_GELU, MODEL_GELU_TANH, MODEL_RELU } model_activation;
typedef enum model_pooling {
    MODEL_MEAN,
    MODEL_FIRST,
    MODEL_MAX,
    MODEL_MEAN_SQRT,
} model_pooling;

typedef struct model_config {
    model_kind kind;
    model_activation activation;
    model_pooling pooling;
    bool is_normalized;
    float norm_epsilon;
    size_t hidden, heads, layers, inner, vocabulary, positions, types, buckets;
    uint32_t pad;
    size_t tokens_max;
} model_config;

/* Texts of files; absent ones are empty. */
typedef struct model_config_files {
    rt_str config, sbert, prompts, pooling, tokenizer_config;
} model_config_files;

/* Which folder of the model has the part; empty: the model's own. */
typedef struct model_parts {
    rt_str encoder, pooling;
} model_parts;

bool model_parts_read(rt_str modules, rt_arena *arena, model_parts *out, bool *is_normalized,
                      rt_error *err);
bool model_config_read(const model_config_files *files, model_config *out, rt_error *err);

/* -- weights.c --------------------------------------------------------------------------------- */

/* y = x W' + b, then perhaps a norm; as many outputs as `outputs`. */
typedef struct linear {
    const float *weight, *bias; /* outputs x inputs */
    size_t inputs, outputs;
} linear;

typedef struct norm {
    const float *weight, *bias;
} norm;

typedef struct layer {
    linear query, key, value, attention, inner, outer;
    norm after_attention, after_outer;
} layer;

typedef struct weights {
    const float *words, *positions, *types; /* types: NULL in MPNet */
    const float *distance;                  /* buckets x heads; NULL in BERT */
    norm embedding;
    layer *layers;
} weights;

/* Checks that each tensor is there and of the right shape. */
bool weights_bind(const tensors *in, const model_config *config, rt_arena *arena, weights *out,
                  rt_error *err);

/* -- kernels.c: the arithmetic ----------------------------------------------------------------- */

#define KERNEL_LANES 8

/* Strides are in floats. */
typedef struct kernel_product {
    const float *x, *w, *bias; /* bias may be NULL */
    float *out;
    size_t rows, inputs, outputs; /* of x; of a row of x; of a row of out */
    size_t x_stride, w_stride, out_stride;
    float scale;
} kernel_product;

/* Counts and widths are multiples of KERNEL_LANES unless told otherwise. */
typedef struct kernels {
    const char *name;
    /* out[i][j] = x[i] . w[j] * scale + bias[j]; rows and outputs may be any number. */
    void (*multiply)(const kernel_product *p);
    /* out[i] = the sum of x[i][k] * w[k]; rows and inputs may be any number. */
    void (*combine)(const kernel_product *p);
    /* Each row of x, with that of `more` (or NULL) added, to mean 0 and variance 1, then by n. */
    void (*add_norm)(float *x, const float *more, const norm *n, float epsilon, size_t rows,
                     size_t width);
    void (*softmax)(float *row, size_t count);   /* any count; there is room for a multiple */
    void (*activate[3])(float *x, size_t count); /* by model_activation */
} kernels;

const kernels *kernels_best(void);     /* of this machine */
const kernels *kernels_portable(void); /* of any */

/* -- encoder.c --------------------------------------------------------------------------------- */

/* One model, ready. */
typedef struct encoder {
    model_config config;
    weights weights;
    const kernels *kernels;
    const uint8_t *buckets; /* of MPNet: by how far a token is, from -(tokens_max - 1) on */
} encoder;

/* Texts as tokens, one after the other; `ends` tells where each ends. */
typedef struct encoder_batch {
    const uint32_t *ids;
    const size_t *ends;
    size_t count;
} encoder_batch;

void encoder_init(encoder *e, rt_arena *arena);       /* the rest, after config and weights */
size_t encoder_room(const encoder *e, size_t tokens); /* floats that a batch of so many needs */
/* One vector of `hidden` numbers for each text. No text is longer than tokens_max. */
void encoder_run(const encoder *e, const encoder_batch *batch, float *room, float *out);

/* -- model.c ----------------------------------------------------------------------------------- */

const encoder *model_encoder(const rt_model *model); /* for tests */

#endif
