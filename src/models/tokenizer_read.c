/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokenizer_read.c - a tokenizer from the files it is published in.
 *
 * tokenizer.json says all of it; older folders have the pieces in vocab.txt, one a line, instead.
 * What tokenizer_config.json says of letters counts for more than tokenizer.json, as it does where
 * these models come from. What we would do differently from what the files say is refused.
 */
#include "models/models_internal.h"

enum { PIECES_MAX = 1000000, WORD_CHARS_MAX = 256, PIECE_BYTES_MAX = 512, PREFIX_MAX = 16 };

static void set_switch(rt_json object, const char *key, bool *out)
{
    *out = rt_json_bool(rt_json_get_c(object, key), *out);
}

/* -- Pieces ------------------------------------------------------------------------------------ */

static bool add_piece(tokenizer *t, rt_str piece, uint64_t id, rt_error *err)
{
    if (piece.len > PIECE_BYTES_MAX)
        return rt_fail(err, RT_LIMIT, "a piece is longer than %d bytes", PIECE_BYTES_MAX);
    if (id >= PIECES_MAX)
        return rt_fail(err, RT_LIMIT, "more than %d pieces", PIECES_MAX);
    vocabulary_add(&t->pieces, piece, (uint32_t)id);
    return true;
}

static bool read_vocab_txt(rt_str text, rt_arena *arena, tokenizer *t, rt_error *err)
{
    size_t lines = 1, id = 0;
    rt_str rest = rt_arena_str(arena, text), line;
    for (size_t i = 0; i < text.len; i++)
        lines += text.ptr[i] == '\n';
    if (lines > PIECES_MAX)
        return rt_fail(err, RT_LIMIT, "vocab.txt: more than %d pieces", PIECES_MAX);
    vocabulary_init(&t->pieces, lines, arena);
    while (rt_str_cut(&rest, '\n', &line)) {
        if (rt_str_ends(line, RT_STR("\r")))
            line.len--;
        if (!add_piece(t, line, id++, err))
            return rt_wrap(err, "vocab.txt");
    }
    return true;
}

static bool read_vocab_json(rt_json vocab, rt_arena *arena, tokenizer *t, rt_error *err)
{
    rt_json_iter it = rt_json_each(vocab);
    rt_str piece;
    rt_json value;
    int64_t id;
    if (rt_json_type(vocab) != RT_JSON_OBJECT)
        return rt_fail(err, RT_INVALID, "model.vocab is no object");
    if (rt_json_count(vocab) > PIECES_MAX)
        return rt_fail(err, RT_LIMIT, "more than %d pieces", PIECES_MAX);
    vocabulary_init(&t->pieces, rt_json_count(vocab), arena);
    while (rt_json_next(&it, &piece, &value)) {
        if (!rt_json_i64(value, &id) || id < 0)
            return rt_fail(err, RT_INVALID, "the number of a piece is none");
        if (!add_piece(t, rt_arena_str(arena, piece), (uint64_t)id, err))
            return false;
    }
    return true;
}

static bool read_limits(rt_json model, rt_arena *arena, tokenizer *t, rt_error *err)
{
    rt_json prefix = rt_json_get_c(model, "continuing_subword_prefix");
    rt_json chars = rt_json_get_c(model, "max_input_chars_per_word");
    int64_t n = (int64_t)t->word_chars_max;
    if (rt_json_type(prefix) == RT_JSON_STRING)
        t->prefix = rt_arena_str(arena, rt_json_str(prefix));
    if (t->prefix.len > PREFIX_MAX)
        return rt_fail(err, RT_LIMIT, "continuing_subword_prefix is longer than %d bytes",
                       PREFIX_MAX);
    if (!rt_json_is_absent(chars) && (!rt_json_i64(chars, &n) || n < 1 || n > WORD_CHARS_MAX))
        return rt_fail(err, RT_UNSUPPORTED, "max_input_chars_per_word is not from 1 to %d",
                       WORD_CHARS_MAX);
    t->word_chars_max = (size_t)n;
    return true;
}

/* -- tokenizer.json ---------------------------------------------------------------------------- */

static bool need_type(rt_json part, const char *what, const char *wanted, rt_error *err)
{
    rt_str type = rt_json_str(rt_json_get_c(part, "type"));
    return rt_str_eq_c(type, wanted) ||
           rt_fail(err, RT_UNSUPPORTED, "its %s is '%.*s'; only %s is done", what,
                   RT_FMT(rt_str_slice(type, 0, 40)), wanted);
}

static bool add_special(tokenizer *t, rt_str text, uint32_t id, bool is_any_case, rt_error *err)
{
    if (text.len == 0)
        return true;
    for (size_t i = 0; i < t->special_count; i++)
        if (rt_str_eq(t->specials[i].text, text))
            return true;
    if (t->special_count == TOKENIZER_SPECIALS_MAX)
        return rt_fail(err, RT_LIMIT, "more than %d added tokens", TOKENIZER_SPECIALS_MAX);
    t->specials[t->special_count++] =
        (tokenizer_special){ .text = text, .id = id, .is_any_case = is_any_case };
    return true;
}

static bool read_added(rt_json added, rt_arena *arena, tokenizer *t, rt_error *err)
{
    rt_json_iter it = rt_json_each(added);
    rt_json one;
    int64_t id;
    while (rt_json_next(&it, NULL, &one)) {
        rt_str text = rt_arena_str(arena, rt_json_str(rt_json_get_c(one, "content")));
        bool is_any_case = t->lowers && rt_json_bool(rt_json_get_c(one, "normalized"), false);
        if (!rt_json_i64(rt_json_get_c(one, "id"), &id) || id < 0 || id >= PIECES_MAX)
            return rt_fail(err, RT_INVALID, "the id of an added token is none");
        if (rt_json_bool(rt_json_get_c(one, "single_word"), false))
            return rt_fail(err, RT_UNSUPPORTED, "added tokens that are single words are not done");
        if (!add_special(t, text, (uint32_t)id, is_any_case, err))
            return false;
    }
    return true;
}

static bool read_normalizer(rt_json normalizer, tokenizer *t, rt_error *err)
{
    if (!need_type(normalizer, "normalizer", "BertNormalizer", err))
        return false;
    set_switch(normalizer, "clean_text", &t->drops_control);
    set_switch(normalizer, "handle_chinese_chars", &t->spaces_cjk);
    set_switch(normalizer, "lowercase", &t->lowers);
    t->strips_accents = rt_json_bool(rt_json_get_c(normalizer, "strip_accents"), t->lowers);
    return true;
}

static bool read_tokenizer_json(rt_str text, rt_arena *arena, rt_arena *json, tokenizer *t,
                                rt_error *err)
{
    rt_json doc;
    if (!rt_json_parse(text, json, &doc, err))
        return false;
    rt_json model = rt_json_get_c(doc, "model");
    return need_type(model, "model", "WordPiece", err) &&
           need_type(rt_json_get_c(doc, "pre_tokenizer"), "pre_tokenizer", "BertPreTokenizer",
                     err) &&
           read_normalizer(rt_json_get_c(doc, "normalizer"), t, err) &&
           read_limits(model, arena, t, err) &&
           read_vocab_json(rt_json_get_c(model, "vocab"), arena, t, err) &&
           read_added(rt_json_get_c(doc, "added_tokens"), arena, t, err);
}

/* -- The other files --------------------------------------------------------------------------- */

static bool read_config(rt_json config, rt_json sbert, tokenizer *t, rt_error *err)
{
    bool is_split = true;
    set_switch(config, "do_basic_tokenize", &is_split);
    if (!is_split)
        return rt_fail(err, RT_UNSUPPORTED, "tokenizer_config.json: do_basic_tokenize is off");
    bool lowered = t->lowers;
    set_switch(config, "do_lower_case", &t->lowers);
    if (t->lowers != lowered)
        t->strips_accents = t->lowers;
    set_switch(config, "strip_accents", &t->strips_accents);
    set_switch(config, "tokenize_chinese_chars", &t->spaces_cjk);
    t->lowers |= rt_json_bool(rt_json_get_c(sbert, "do_lower_case"), false);
    return true;
}

/* "cls_token": "[CLS]", or {"content": "[CLS]", …}. */
static rt_str token_named(const char *key, rt_json config, rt_json specials, const char *usual)
{
    const rt_json from[] = { config, specials };
    for (size_t i = 0; i < RT_COUNT(from); i++) {
        rt_json value = rt_json_get_c(from[i], key);
        if (rt_json_type(value) == RT_JSON_OBJECT)
            value = rt_json_get_c(value, "content");
        if (rt_json_type(value) == RT_JSON_STRING && rt_json_str(value).len > 0)
            return rt_json_str(value);
    }
    return rt_str_of(usual);
}

static bool read_named(rt_json config, rt_json specials, bool is_mpnet, rt_arena *arena,
                       tokenizer *t, rt_error *err)
{
    uint32_t ignored;
    const struct {
        const char *key, *bert, *mpnet;
        uint32_t *id; /* which the model cannot do without */
    } named[] = {
        { "unk_token", "[UNK]", "[UNK]", &t->unknown }, { "cls_token", "[CLS]", "<s>", &t->first },
        { "sep_token", "[SEP]", "</s>", &t->last },     { "pad_token", "[PAD]", "<pad>", NULL },
        { "mask_token", "[MASK]", "<mask>", NULL },
    };
    for (size_t i = 0; i < RT_COUNT(named); i++) {
        rt_str text =
            token_named(named[i].key, config, specials, is_mpnet ? named[i].mpnet : named[i].bert);
        uint32_t *id = named[i].id ? named[i].id : &ignored;
        *id = vocabulary_find(&t->pieces, text);
        if (*id == VOCABULARY_NONE && named[i].id)
            return rt_fail(err, RT_INVALID, "the vocabulary has no %.*s, which is the %s",
                           RT_FMT(rt_str_slice(text, 0, 40)), named[i].key);
        if (*id != VOCABULARY_NONE && !add_special(t, rt_arena_str(arena, text), *id, false, err))
            return false;
    }
    return true;
}

bool tokenizer_read(const tokenizer_files *files, bool is_mpnet, rt_arena *arena, tokenizer *out,
                    rt_error *err)
{
    rt_arena json RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json config, specials, sbert;
    tokenizer t = { .prefix = RT_STR("##"),
                    .word_chars_max = 100,
                    .lowers = true,
                    .strips_accents = true,
                    .spaces_cjk = true,
                    .drops_control = true };
    if (!model_json_read(files->config, "tokenizer_config.json", &json, &config, err) ||
        !model_json_read(files->specials, "special_tokens_map.json", &json, &specials, err) ||
        !model_json_read(files->sbert, "sentence_bert_config.json", &json, &sbert, err))
        return false;
    if (files->tokenizer.len > 0) {
        if (!read_tokenizer_json(files->tokenizer, arena, &json, &t, err))
            return rt_wrap(err, "tokenizer.json");
    } else if (!read_vocab_txt(files->vocab, arena, &t, err)) {
        return false;
    }
    if (!read_config(config, sbert, &t, err) ||
        !read_named(config, specials, is_mpnet, arena, &t, err))
        return false;
    *out = t;
    return true;
}
