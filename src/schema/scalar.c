/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scalar.c - rules for strings and numbers: made here, and run here.
 *
 * Numbers of up to 18 plain digits are compared as machine integers, all others as the decimals
 * they are written as.
 */
#include "schema/schema_internal.h"

enum { SMALL_DIGITS = 18 };

bool schema_small_of(const node *number, int64_t *out)
{
    const char *at = number->text, *end = at + number->size;
    bool is_negative = *at == '-';
    at += is_negative;
    if (end - at > SMALL_DIGITS)
        return false;
    int64_t value = 0;
    for (; at < end; at++) {
        unsigned digit = (unsigned)(*at - '0');
        if (digit > 9)
            return false;
        value = value * 10 + (int64_t)digit;
    }
    *out = is_negative ? -value : value;
    return true;
}

uint64_t schema_count_of(const node *number, uint64_t fallback)
{
    int64_t count;
    if (!number)
        return fallback;
    if (!rt_json_i64((rt_json){ number }, &count))
        return UINT64_MAX - 1;
    return count < 0 ? 0 : (uint64_t)count;
}

/* -- Numbers ----------------------------------------------------------------------------------- */

static void add_bound(schema_number_rules *rules, schema_keyword keyword, const node *limit)
{
    if (!limit || limit->kind != RT_JSON_NUMBER)
        return;
    schema_bound *bound = &rules->bounds[rules->bound_count++];
    *bound = (schema_bound){ .keyword = keyword, .limit = limit };
    bound->is_small = schema_small_of(limit, &bound->small);
}

static bool is_true(const node *v)
{
    return v && v->kind == RT_JSON_BOOL && v->is_true;
}

bool schema_number_compile(schema_compiler *c, schema_unit *unit, const schema_words *words,
                           rt_error *err)
{
    (void)err;
    bool has_any = false;
    for (schema_keyword k = K_MULTIPLE_OF; k <= K_EXCLUSIVE_MAXIMUM; k++)
        has_any |= words->of[k] != NULL;
    if (!has_any || !(unit->types & 1 << RT_JSON_NUMBER))
        return true;
    schema_number_rules *rules = rt_arena_alloc(c->arena, sizeof(*rules));
    /* Draft-04 says with a boolean that the limit itself is excluded. */
    bool is_above = is_true(words->of[K_EXCLUSIVE_MINIMUM]);
    bool is_below = is_true(words->of[K_EXCLUSIVE_MAXIMUM]);
    add_bound(rules, is_above ? K_EXCLUSIVE_MINIMUM : K_MINIMUM, words->of[K_MINIMUM]);
    add_bound(rules, is_below ? K_EXCLUSIVE_MAXIMUM : K_MAXIMUM, words->of[K_MAXIMUM]);
    add_bound(rules, K_EXCLUSIVE_MINIMUM, words->of[K_EXCLUSIVE_MINIMUM]);
    add_bound(rules, K_EXCLUSIVE_MAXIMUM, words->of[K_EXCLUSIVE_MAXIMUM]);
    rules->step = words->of[K_MULTIPLE_OF];
    if (rules->step && !schema_small_of(rules->step, &rules->small_step))
        rules->small_step = 0;
    unit->number = rules;
    return true;
}

static bool is_within(schema_keyword keyword, int order)
{
    switch (keyword) {
    case K_MINIMUM:
        return order >= 0;
    case K_MAXIMUM:
        return order <= 0;
    case K_EXCLUSIVE_MINIMUM:
        return order > 0;
    default:
        return order < 0;
    }
}

static bool is_multiple(const schema_number_rules *rules, const node *v, bool is_small,
                        int64_t small)
{
    if (is_small && rules->small_step)
        return small % rules->small_step == 0;
    return rt_json_is_multiple((rt_json){ v }, (rt_json){ rules->step });
}

bool schema_run_number(schema_run *r, const schema_unit *u, const node *v)
{
    const schema_number_rules *rules = u->number;
    int64_t small = 0;
    bool ok = true, is_small = schema_small_of(v, &small);
    for (unsigned i = 0; i < rules->bound_count; i++) {
        const schema_bound *bound = &rules->bounds[i];
        int order = is_small && bound->is_small
                        ? (small > bound->small) - (small < bound->small)
                        : rt_json_compare((rt_json){ v }, (rt_json){ bound->limit });
        if (!is_within(bound->keyword, order))
            ok = schema_miss(r, u, bound->keyword, v, bound->limit);
    }
    if (rules->step && !is_multiple(rules, v, is_small, small))
        ok = schema_miss(r, u, K_MULTIPLE_OF, v, NULL);
    return ok;
}

/* -- Strings ----------------------------------------------------------------------------------- */

static void compile_content(const schema_compiler *c, const schema_unit *unit,
                            const schema_words *words, schema_string_rules *rules)
{
    const node *encoding = words->of[K_CONTENT_ENCODING], *type = words->of[K_CONTENT_MEDIA_TYPE];
    bool is_asked = c->schema->resources[unit->resource].dialect.draft == RT_DRAFT_07 &&
                    !c->options->ignores_content;
    if (!is_asked) /* since 2019-09 they only describe */
        return;
    rules->is_base64 = encoding && rt_str_eq_c(rt_json_node_text(encoding), "base64");
    rules->is_json = type && rt_str_eq_c(rt_json_node_text(type), "application/json") &&
                     (!encoding || rules->is_base64);
}

/* Published metaschemas mean it when they say that a pattern is one. */
static bool is_format_asserted(const schema_compiler *c, const schema_unit *unit,
                               const node *format)
{
    schema_dialect dialect = c->schema->resources[unit->resource].dialect;
    if (c->options->asserts_format || dialect.vocabularies & VOCAB_FORMAT_ASSERTION)
        return true;
    return rt_str_eq_c(rt_json_node_text(format), "regex") &&
           schema_metaschema_text(c->schema->documents[unit->document].uri).len > 0;
}

bool schema_string_compile(schema_compiler *c, schema_unit *unit, const schema_words *words,
                           rt_error *err)
{
    bool has_any = false;
    for (schema_keyword k = K_MIN_LENGTH; k <= K_CONTENT_MEDIA_TYPE; k++)
        has_any |= words->of[k] != NULL;
    if (!has_any || !(unit->types & 1 << RT_JSON_STRING))
        return true;
    schema_string_rules *rules = rt_arena_alloc(c->arena, sizeof(*rules));
    const node *pattern = words->of[K_PATTERN], *format = words->of[K_FORMAT];
    rules->min = schema_count_of(words->of[K_MIN_LENGTH], 0);
    rules->max = schema_count_of(words->of[K_MAX_LENGTH], UINT64_MAX);
    if (pattern && !schema_pattern_new(c->schema, rt_json_node_text(pattern), &rules->pattern, err))
        return rt_wrap(err, "pattern");
    if (format && is_format_asserted(c, unit, format))
        rules->format = schema_format_named(rt_json_node_text(format));
    compile_content(c, unit, words, rules);
    if (rules->min > 0 || rules->max < UINT64_MAX || rules->pattern || rules->format ||
        rules->is_base64 || rules->is_json)
        unit->string = rules;
    return true;
}

/* Most lengths are settled by the number of bytes: a code point has one to four. */
static bool is_long_enough(rt_str text, uint64_t min)
{
    if (text.len < min)
        return false;
    return text.len / 4 >= min || (min == 1 && text.len > 0) || rt_utf8_length(text) >= min;
}

static bool is_short_enough(rt_str text, uint64_t max)
{
    return text.len <= max || (text.len / 4 <= max && rt_utf8_length(text) <= max);
}

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+')
        return 62;
    return c == '/' ? 63 : -1;
}

/* `out` has room for 3 bytes of every 4. */
static bool decode_base64(rt_str text, char *out, size_t *len)
{
    *len = 0;
    if (text.len % 4)
        return false;
    for (size_t i = 0; i < text.len; i += 4) {
        bool is_last = i + 4 == text.len;
        size_t pad = 0;
        while (is_last && pad < 2 && text.ptr[i + 3 - pad] == '=')
            pad++;
        uint32_t bits = 0;
        for (size_t k = 0; k < 4; k++) {
            int value = k >= 4 - pad ? 0 : base64_value(text.ptr[i + k]);
            if (value < 0)
                return false;
            bits = bits << 6 | (uint32_t)value;
        }
        for (size_t k = 0; k < 3 - pad; k++)
            out[(*len)++] = (char)(bits >> (16 - 8 * k));
    }
    return true;
}

static bool has_good_content(const schema_string_rules *rules, rt_str text, bool *is_encoded)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json doc;
    *is_encoded = true;
    if (rules->is_base64) {
        char *bytes = rt_arena_alloc_raw(&arena, text.len + 1);
        size_t len;
        *is_encoded = decode_base64(text, bytes, &len);
        text = (rt_str){ bytes, len };
    }
    return *is_encoded && (!rules->is_json || rt_json_parse(text, &arena, &doc, NULL));
}

bool schema_run_string(schema_run *r, const schema_unit *u, const node *v)
{
    const schema_string_rules *rules = u->string;
    rt_str text = rt_json_node_text(v);
    bool ok = true, is_encoded;
    if (rules->min && !is_long_enough(text, rules->min))
        ok = schema_miss(r, u, K_MIN_LENGTH, v, NULL);
    if (!is_short_enough(text, rules->max))
        ok = schema_miss(r, u, K_MAX_LENGTH, v, NULL);
    if (rules->pattern && !schema_pattern_matches(r, rules->pattern, text))
        ok = schema_miss(r, u, K_PATTERN, v, NULL);
    if (rules->format && !rules->format(text))
        ok = schema_miss(r, u, K_FORMAT, v, NULL);
    if ((rules->is_base64 || rules->is_json) && !has_good_content(rules, text, &is_encoded))
        ok = schema_miss(r, u, is_encoded ? K_CONTENT_MEDIA_TYPE : K_CONTENT_ENCODING, v, NULL);
    return ok;
}
