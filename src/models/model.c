/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.c - a folder becomes a model, and texts become vectors.
 *
 * After it was opened nothing in a model changes, so any number of threads may use it; what a call
 * needs beside it is the call's own.
 */
#include "models/models_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX    ((size_t)32 << 20) /* of JSON and of vocabularies */
#define WEIGHTS_MAX ((off_t)16 << 30)
enum { BATCH_TOKENS = 512, BATCH_TEXTS = 256 };

struct rt_model {
    rt_arena arena;
    char name[NAME_MAX + 1];
    tokenizer tokens;
    encoder encoder;
    void *map; /* of model.safetensors */
    size_t map_size;
};

/* -- Opening ----------------------------------------------------------------------------------- */

/* All there is in a file of the folder; nothing if there is none. */
static bool read_file(const char *folder, rt_str part, const char *name, rt_arena *arena,
                      rt_str *out, rt_error *err)
{
    rt_str path =
        rt_arena_printf(arena, "%s/%.*s%s%s", folder, RT_FMT(part), part.len ? "/" : "", name);
    struct stat file;
    *out = (rt_str){ NULL, 0 };
    if (stat(path.ptr, &file) != 0)
        return errno == ENOENT || rt_fail_errno(err, "%s", path.ptr);
    if (!S_ISREG(file.st_mode)) /* a pipe would be waited for */
        return rt_fail(err, RT_INVALID, "%s is no file", path.ptr);
    return rt_read_file(path.ptr, FILE_MAX, arena, out, err);
}

/* Says what is there instead, since that is what people ask next. */
static bool no_weights(const char *folder, rt_arena *arena, rt_error *err)
{
    static const struct {
        const char *name, *why;
    } others[] = {
        { "model.safetensors.index.json", "is in several parts, which is not done; join them" },
        { "pytorch_model.bin", "has pytorch_model.bin, which can run code and is not read; save it "
                               "with safe_serialization=True" },
    };
    for (size_t i = 0; i < RT_COUNT(others); i++) {
        rt_str path = rt_arena_printf(arena, "%s/%s", folder, others[i].name);
        if (access(path.ptr, F_OK) == 0)
            return rt_fail(err, RT_UNSUPPORTED, "there is no model.safetensors; the folder %s",
                           others[i].why);
    }
    return rt_fail(err, RT_NOT_FOUND, "there is no model.safetensors in %s", folder);
}

static bool map_weights(rt_model *m, const char *folder, rt_arena *arena, rt_error *err)
{
    rt_str path = rt_arena_printf(arena, "%s/model.safetensors", folder);
    int fd RT_CLEANUP(rt_closep) = open(path.ptr, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat file;
    if (fd < 0 && errno == ENOENT)
        return no_weights(folder, arena, err);
    if (fd < 0 || fstat(fd, &file) != 0)
        return rt_fail_errno(err, "open %s", path.ptr);
    if (!S_ISREG(file.st_mode) || file.st_size == 0 || file.st_size > WEIGHTS_MAX)
        return rt_fail(err, RT_INVALID, "model.safetensors is no file of 1 byte to 16 GB");
    void *map = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return rt_fail_errno(err, "map %s", path.ptr);
    m->map = map;
    m->map_size = (size_t)file.st_size;
    return true;
}

static bool read_weights(rt_model *m, const char *folder, rt_arena *arena, rt_error *err)
{
    tensors found;
    rt_str file;
    if (!map_weights(m, folder, arena, err))
        return false;
    file = (rt_str){ m->map, m->map_size };
    return (tensors_read(file, arena, &found, err) &&
            weights_bind(&found, &m->encoder.config, &m->arena, &m->encoder.weights, err)) ||
           rt_wrap(err, "model.safetensors");
}

/* A number past the end of the table of words would be read from elsewhere. */
static bool check_pieces(const rt_model *m, rt_error *err)
{
    size_t last = m->tokens.pieces.last;
    for (size_t i = 0; i < m->tokens.special_count; i++)
        last = RT_MAX(last, (size_t)m->tokens.specials[i].id);
    return last < m->encoder.config.vocabulary ||
           rt_fail(err, RT_INVALID, "the tokenizer has a token %zu, and vocab_size is %zu", last,
                   m->encoder.config.vocabulary);
}

static bool read_folder(rt_model *m, const char *folder, rt_arena *arena, rt_error *err)
{
    const rt_str top = RT_STR("");
    model_config_files files = { 0 };
    tokenizer_files tokens = { 0 };
    model_parts parts;
    rt_str modules;
    if (!read_file(folder, top, "modules.json", arena, &modules, err) ||
        !model_parts_read(modules, arena, &parts, &m->encoder.config.is_normalized, err))
        return false;
    rt_str inside = parts.encoder.len
                        ? rt_arena_printf(arena, "%s/%.*s", folder, RT_FMT(parts.encoder))
                        : rt_str_of(folder);
    if (!read_file(inside.ptr, top, "config.json", arena, &files.config, err) ||
        !read_file(inside.ptr, top, "sentence_bert_config.json", arena, &files.sbert, err) ||
        !read_file(folder, top, "config_sentence_transformers.json", arena, &files.prompts, err) ||
        !read_file(folder, parts.pooling, "config.json", arena, &files.pooling, err) ||
        !read_file(inside.ptr, top, "tokenizer.json", arena, &tokens.tokenizer, err) ||
        !read_file(inside.ptr, top, "vocab.txt", arena, &tokens.vocab, err) ||
        !read_file(inside.ptr, top, "tokenizer_config.json", arena, &tokens.config, err) ||
        !read_file(inside.ptr, top, "special_tokens_map.json", arena, &tokens.specials, err))
        return false;
    if (files.config.len == 0)
        return rt_fail(err, RT_NOT_FOUND, "there is no config.json");
    if (tokens.tokenizer.len == 0 && tokens.vocab.len == 0)
        return rt_fail(err, RT_NOT_FOUND, "there is neither tokenizer.json nor vocab.txt");
    files.tokenizer_config = tokens.config;
    tokens.sbert = files.sbert;
    return model_config_read(&files, &m->encoder.config, err) &&
           tokenizer_read(&tokens, m->encoder.config.kind == MODEL_MPNET, &m->arena, &m->tokens,
                          err) &&
           check_pieces(m, err) && read_weights(m, inside.ptr, arena, err);
}

/* The last part of the path; of "." and the like, of what they stand for. */
static bool name_of(const char *folder, char *out, size_t size, rt_error *err)
{
    char real[PATH_MAX];
    const char *slash = strrchr(folder, '/'), *last = slash ? slash + 1 : folder;
    if (*last == '\0' || *last == '.') {
        if (!realpath(folder, real))
            return rt_fail_errno(err, "%s", folder);
        last = strrchr(real, '/') + 1;
    }
    snprintf(out, size, "%s", last);
    return true;
}

bool rt_model_open(const char *folder, rt_model **out, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    struct stat there;
    rt_model *m RT_CLEANUP(rt_model_closep) = calloc(1, sizeof(*m));
    if (!m)
        rt_out_of_memory(sizeof(*m));
    if (stat(folder, &there) != 0)
        return rt_fail_errno(err, "%s", folder);
    if (!S_ISDIR(there.st_mode))
        return rt_fail(err, RT_INVALID, "%s is no folder", folder);
    if (!name_of(folder, m->name, sizeof(m->name), err) || !read_folder(m, folder, &arena, err))
        return false;
    encoder_init(&m->encoder, &m->arena);
    *out = RT_TAKE(m);
    return true;
}

void rt_model_close(rt_model *m)
{
    if (!m)
        return;
    if (m->map)
        munmap(m->map, m->map_size);
    rt_arena_done(&m->arena);
    free(m);
}

void rt_model_closep(rt_model **m)
{
    rt_model_close(RT_TAKE(*m));
}

/* -- Asking ------------------------------------------------------------------------------------ */

const char *rt_model_name(const rt_model *m)
{
    return m->name;
}

const char *rt_model_kind(const rt_model *m)
{
    return m->encoder.config.kind == MODEL_MPNET ? "mpnet" : "bert";
}

size_t rt_model_dims(const rt_model *m)
{
    return m->encoder.config.hidden;
}

size_t rt_model_tokens(const rt_model *m)
{
    return m->encoder.config.tokens_max;
}

bool rt_model_is_normalized(const rt_model *m)
{
    return m->encoder.config.is_normalized;
}

uint64_t rt_model_bytes(const rt_model *m)
{
    return m->map_size;
}

const encoder *model_encoder(const rt_model *m)
{
    return &m->encoder;
}

/* -- Embedding --------------------------------------------------------------------------------- */

void rt_vector_normalize(float *vector, size_t dims)
{
    double square = 0;
    for (size_t i = 0; i < dims; i++)
        square += (double)vector[i] * vector[i];
    float by = square > 0 ? (float)(1 / sqrt(square)) : 1;
    for (size_t i = 0; i < dims; i++)
        vector[i] *= by;
}

/* What one call needs. */
typedef struct work {
    uint32_t *ids; /* BATCH_TOKENS, and one text more */
    size_t ends[BATCH_TEXTS], count;
    float *room;
    size_t room_tokens;
} work;

static void work_done(work *w)
{
    free(w->ids);
    free(w->room);
}

static void *memory(size_t size)
{
    void *p = malloc(size);
    if (!p)
        rt_out_of_memory(size);
    return p;
}

static void run_batch(const rt_model *m, work *w, float *out)
{
    size_t tokens = w->ends[w->count - 1];
    if (w->room_tokens < tokens) {
        free(w->room);
        w->room = memory(encoder_room(&m->encoder, tokens) * sizeof(float));
        w->room_tokens = tokens;
    }
    encoder_run(&m->encoder, &(encoder_batch){ .ids = w->ids, .ends = w->ends, .count = w->count },
                w->room, out);
    w->count = 0;
}

static bool is_finite(const float *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(numbers[i]))
            return false;
    return true;
}

bool rt_model_embed(const rt_model *m, const rt_str *texts, size_t count, float *out, rt_error *err)
{
    size_t dims = rt_model_dims(m), most = m->encoder.config.tokens_max, done = 0;
    work w RT_CLEANUP(work_done) = { .ids = memory((BATCH_TOKENS + most) * sizeof(*w.ids)) };
    for (size_t i = 0; i < count; i++) {
        size_t at = w.count ? w.ends[w.count - 1] : 0;
        w.ends[w.count++] = at + tokenizer_run(&m->tokens, texts[i], w.ids + at, most);
        if (w.ends[w.count - 1] >= BATCH_TOKENS || w.count == BATCH_TEXTS || i + 1 == count) {
            size_t texts_here = w.count;
            run_batch(m, &w, out + done * dims);
            done += texts_here;
        }
    }
    return is_finite(out, count * dims) ||
           rt_fail(err, RT_INVALID,
                   "model %s answers with what is no number; its weights are broken", m->name);
}
