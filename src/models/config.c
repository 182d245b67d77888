/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - what a folder says of its model: config.json, modules.json, pooling, limits.
 *
 * Every number has bounds here, so that the rooms of memory made of them are bounded too.
 */
#include "models/models_internal.h"

#define ROOM_FLOATS_MAX ((size_t)64 << 20) /* what the matrices of one text may take */

bool model_json_read(rt_str text, const char *name, rt_arena *arena, rt_json *out, rt_error *err)
{
    *out = (rt_json){ NULL };
    return text.len == 0 || rt_json_parse(text, arena, out, err) || rt_wrap(err, "%s", name);
}

/* -- modules.json ------------------------------------------------------------------------------ */

/* A folder of the model's, never one elsewhere. */
static bool read_path(rt_json module, rt_arena *arena, rt_str *out, rt_error *err)
{
    rt_str path = rt_json_str(rt_json_get_c(module, "path"));
    for (size_t i = 0; i < path.len; i++) {
        char c = path.ptr[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '_' || c == '-';
        if (!is_plain || path.len > 64)
            return rt_fail(err, RT_INVALID, "the path of a module is not a plain folder name");
    }
    *out = rt_arena_str(arena, path);
    return true;
}

/* "sentence_transformers.models.Pooling": "Pooling". */
static rt_str last_part(rt_str type)
{
    size_t from = type.len;
    while (from > 0 && type.ptr[from - 1] != '.')
        from--;
    return rt_str_slice(type, from, type.len);
}

static bool read_module(rt_json module, size_t place, rt_arena *arena, model_parts *out,
                        bool *is_normalized, rt_error *err)
{
    rt_str type = last_part(rt_json_str(rt_json_get_c(module, "type")));
    if (place == 0 && rt_str_eq_c(type, "Transformer"))
        return read_path(module, arena, &out->encoder, err);
    if (place == 1 && rt_str_eq_c(type, "Pooling"))
        return read_path(module, arena, &out->pooling, err);
    if (place == 2 && rt_str_eq_c(type, "Normalize"))
        return *is_normalized = true;
    return rt_fail(err, RT_UNSUPPORTED,
                   "module %zu is '%.*s'; Transformer, Pooling, Normalize in this order are done",
                   place, RT_FMT(rt_str_slice(type, 0, 40)));
}

/* Without the file it is a bare encoder, whose tokens are averaged, as sentence-transformers does.
 */
bool model_parts_read(rt_str modules, rt_arena *arena, model_parts *out, bool *is_normalized,
                      rt_error *err)
{
    rt_arena json RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json doc, module;
    size_t place = 0;
    *out = (model_parts){ .pooling = RT_STR("1_Pooling") };
    *is_normalized = false;
    if (!model_json_read(modules, "modules.json", &json, &doc, err))
        return false;
    if (rt_json_is_absent(doc))
        return true;
    if (rt_json_type(doc) != RT_JSON_ARRAY || rt_json_count(doc) < 2)
        return rt_fail(err, RT_INVALID, "modules.json: no list of a Transformer and a Pooling");
    rt_json_iter it = rt_json_each(doc);
    while (rt_json_next(&it, NULL, &module))
        if (!read_module(module, place++, arena, out, is_normalized, err))
            return rt_wrap(err, "modules.json");
    return true;
}

/* -- Pooling ----------------------------------------------------------------------------------- */

static bool pooling_named(rt_str name, model_pooling *out, rt_error *err)
{
    static const char *const names[] = { [MODEL_MEAN] = "mean",
                                         [MODEL_FIRST] = "cls",
                                         [MODEL_MAX] = "max",
                                         [MODEL_MEAN_SQRT] = "mean_sqrt_len_tokens" };
    for (size_t i = 0; i < RT_COUNT(names); i++)
        if (rt_str_eq_c(name, names[i])) {
            *out = (model_pooling)i;
            return true;
        }
    return rt_fail(err, RT_UNSUPPORTED, "pooling_mode '%.*s'; mean, cls and max are done",
                   RT_FMT(rt_str_slice(name, 0, 40)));
}

static bool read_pooling(rt_json pooling, model_config *c, rt_error *err)
{
    static const char *const modes[] = { [MODEL_MEAN] = "pooling_mode_mean_tokens",
                                         [MODEL_FIRST] = "pooling_mode_cls_token",
                                         [MODEL_MAX] = "pooling_mode_max_tokens",
                                         [MODEL_MEAN_SQRT] = "pooling_mode_mean_sqrt_len_tokens" };
    rt_json named = rt_json_get_c(pooling, "pooling_mode"), value;
    rt_json_iter it = rt_json_each(pooling);
    rt_str key;
    size_t chosen = 0;
    if (rt_json_is_absent(pooling))
        return true;
    if (rt_json_type(named) == RT_JSON_STRING)
        return pooling_named(rt_json_str(named), &c->pooling, err);
    for (size_t i = 0; i < RT_COUNT(modes); i++)
        if (rt_json_bool(rt_json_get_c(pooling, modes[i]), false))
            c->pooling = (model_pooling)i;
    while (rt_json_next(&it, &key, &value)) {
        bool is_on = rt_str_starts(key, RT_STR("pooling_mode_")) && rt_json_bool(value, false);
        bool is_done = rt_str_eq_c(key, modes[c->pooling]);
        chosen += is_on;
        if (is_on && !is_done)
            return rt_fail(err, RT_UNSUPPORTED, "%.*s (alone or with others) is not done",
                           RT_FMT(rt_str_slice(key, 0, 60)));
    }
    return chosen == 1 || rt_fail(err, RT_INVALID, "no pooling_mode_… is chosen");
}

/* -- config.json ------------------------------------------------------------------------------- */

static bool read_size(rt_json from, const char *key, size_t least, size_t most, size_t *out,
                      rt_error *err)
{
    int64_t n;
    if (!rt_json_i64(rt_json_get_c(from, key), &n) || n < (int64_t)least || n > (int64_t)most)
        return rt_fail(err, RT_INVALID, "%s is no whole number from %zu to %zu", key, least, most);
    *out = (size_t)n;
    return true;
}

static bool read_sizes(rt_json doc, model_config *c, rt_error *err)
{
    size_t pad = c->kind == MODEL_MPNET;
    if (!read_size(doc, "hidden_size", KERNEL_LANES, 8192, &c->hidden, err) ||
        !read_size(doc, "num_attention_heads", 1, 256, &c->heads, err) ||
        !read_size(doc, "num_hidden_layers", 1, 128, &c->layers, err) ||
        !read_size(doc, "intermediate_size", KERNEL_LANES, 65536, &c->inner, err) ||
        !read_size(doc, "vocab_size", 3, 1000000, &c->vocabulary, err) ||
        !read_size(doc, "max_position_embeddings", 4, 16384, &c->positions, err))
        return false;
    if (c->kind == MODEL_BERT && !read_size(doc, "type_vocab_size", 1, 1000, &c->types, err))
        return false;
    if (c->kind == MODEL_MPNET &&
        (!read_size(doc, "relative_attention_num_buckets", 4, 256, &c->buckets, err) ||
         c->buckets % 4 != 0))
        return rt_fail(err, RT_INVALID, "relative_attention_num_buckets is no multiple of 4");
    if (!rt_json_is_absent(rt_json_get_c(doc, "pad_token_id")) &&
        !read_size(doc, "pad_token_id", 0, c->vocabulary - 1, &pad, err))
        return false;
    c->pad = (uint32_t)pad;
    if (c->hidden % (c->heads * KERNEL_LANES) != 0 || c->inner % KERNEL_LANES != 0)
        return rt_fail(err, RT_UNSUPPORTED,
                       "hidden_size divided by num_attention_heads, and intermediate_size, must be "
                       "multiples of %d",
                       KERNEL_LANES);
    return true;
}

static bool read_activation(rt_json doc, model_config *c, rt_error *err)
{
    static const struct {
        const char *name;
        model_activation activation;
    } known[] = { { "gelu", MODEL_GELU },
                  { "gelu_new", MODEL_GELU_TANH },
                  { "gelu_pytorch_tanh", MODEL_GELU_TANH },
                  { "relu", MODEL_RELU } };
    rt_str name = rt_json_str(rt_json_get_c(doc, "hidden_act"));
    for (size_t i = 0; i < RT_COUNT(known); i++)
        if (rt_str_eq_c(name, known[i].name)) {
            c->activation = known[i].activation;
            return true;
        }
    return rt_fail(err, RT_UNSUPPORTED, "hidden_act '%.*s'; gelu, gelu_new and relu are done",
                   RT_FMT(rt_str_slice(name, 0, 40)));
}

static bool read_kind(rt_json doc, model_config *c, rt_error *err)
{
    rt_str kind = rt_json_str(rt_json_get_c(doc, "model_type"));
    rt_json positions = rt_json_get_c(doc, "position_embedding_type");
    c->kind = rt_str_eq_c(kind, "mpnet") ? MODEL_MPNET : MODEL_BERT;
    if (c->kind == MODEL_BERT && !rt_str_eq_c(kind, "bert"))
        return rt_fail(err, RT_UNSUPPORTED, "model_type '%.*s'; bert and mpnet are done",
                       RT_FMT(rt_str_slice(kind, 0, 40)));
    if (rt_json_type(positions) == RT_JSON_STRING &&
        !rt_str_eq_c(rt_json_str(positions), "absolute"))
        return rt_fail(err, RT_UNSUPPORTED, "position_embedding_type '%.*s'; absolute is done",
                       RT_FMT(rt_str_slice(rt_json_str(positions), 0, 40)));
    return true;
}

static bool read_encoder(rt_json doc, model_config *c, rt_error *err)
{
    double epsilon = 1e-12; /* what the library takes where a file says nothing */
    rt_json given = rt_json_get_c(doc, "layer_norm_eps");
    if (!read_kind(doc, c, err) || !read_sizes(doc, c, err) || !read_activation(doc, c, err))
        return false;
    if (!rt_json_is_absent(given) &&
        (!rt_json_double(given, &epsilon) || epsilon <= 0 || epsilon > 1))
        return rt_fail(err, RT_INVALID, "layer_norm_eps is no number from 0 to 1");
    c->norm_epsilon = (float)epsilon;
    return true;
}

/* As many tokens as there are positions for, or fewer if the folder says so. MPNet's positions
 * begin after that of the padding. */
static bool read_tokens_max(rt_json sbert, rt_json tokens, model_config *c, rt_error *err)
{
    size_t before = c->kind == MODEL_MPNET ? c->pad + 1 : 0;
    rt_json given = rt_json_get_c(sbert, "max_seq_length");
    int64_t other;
    if (before + 2 > c->positions)
        return rt_fail(err, RT_INVALID, "config.json: pad_token_id leaves no positions");
    size_t most = c->tokens_max = c->positions - before;
    if (rt_json_type(given) == RT_JSON_NUMBER) {
        if (!read_size(sbert, "max_seq_length", 2, 1 << 20, &c->tokens_max, err))
            return rt_wrap(err, "sentence_bert_config.json");
    } else if (rt_json_i64(rt_json_get_c(tokens, "model_max_length"), &other) && other >= 2) {
        c->tokens_max = (size_t)other;
    }
    c->tokens_max = RT_MIN(c->tokens_max, most);
    if (c->tokens_max * (4 * c->hidden + c->inner) > ROOM_FLOATS_MAX)
        return rt_fail(err, RT_LIMIT, "a text of %zu tokens would need more than %zu MB",
                       c->tokens_max, ROOM_FLOATS_MAX * sizeof(float) >> 20);
    return true;
}

/* Some models want words put before every text. */
static bool check_prompts(rt_str text, rt_arena *arena, rt_error *err)
{
    rt_json doc;
    if (!model_json_read(text, "config_sentence_transformers.json", arena, &doc, err))
        return false;
    return rt_json_type(rt_json_get_c(doc, "default_prompt_name")) != RT_JSON_STRING ||
           rt_fail(err, RT_UNSUPPORTED,
                   "config_sentence_transformers.json has a "
                   "default_prompt_name; prompts are not done");
}

bool model_config_read(const model_config_files *files, model_config *out, rt_error *err)
{
    rt_arena json RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json doc, sbert, pooling, tokens;
    model_config c = { .is_normalized = out->is_normalized };
    if (!model_json_read(files->config, "config.json", &json, &doc, err) ||
        !model_json_read(files->sbert, "sentence_bert_config.json", &json, &sbert, err) ||
        !model_json_read(files->pooling, "the pooling's config.json", &json, &pooling, err) ||
        !model_json_read(files->tokenizer_config, "tokenizer_config.json", &json, &tokens, err) ||
        !check_prompts(files->prompts, &json, err))
        return false;
    if (!read_encoder(doc, &c, err))
        return rt_wrap(err, "config.json");
    if (!read_pooling(pooling, &c, err))
        return rt_wrap(err, "the pooling's config.json");
    if (!read_tokens_max(sbert, tokens, &c, err))
        return false;
    *out = c;
    return true;
}
