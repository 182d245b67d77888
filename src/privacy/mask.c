/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mask.c - what stands in place of personal data, in text and in JSON.
 */
#include "privacy/privacy_internal.h"

#include <assert.h>

bool rt_privacy_mode_parse(rt_str name, rt_privacy_mode *out, rt_error *err)
{
    static const char *const names[] = { "off", "redact", "tokens", "partial" };
    for (size_t i = 0; i < RT_COUNT(names); i++)
        if (rt_str_eq_c(name, names[i])) {
            *out = (rt_privacy_mode)i;
            return true;
        }
    return rt_fail(err, RT_INVALID, "'%.*s' is no way to mask: off, redact, tokens or partial",
                   (int)RT_MIN(name.len, (size_t)40), name.ptr);
}

/* ---- renderings ---- */

static void redact(const rt_privacy_mask *mask, unsigned type, rt_buf *out)
{
    rt_str name = type < RT_PII_BUILTIN ? rt_str_of(rt_pii_name(type, RT_PII_REDACT))
                                        : rt_privacy_patterns_name(mask->scan.patterns, type);
    rt_buf_addf(out, "[%.*s_REDACTED]", RT_FMT(name));
}

static bool tokenise(const rt_privacy_mask *mask, unsigned type, rt_str value, rt_buf *out,
                     rt_error *err)
{
    size_t number;
    rt_str name = type < RT_PII_BUILTIN ? rt_str_of(rt_pii_name(type, RT_PII_TOKEN))
                                        : rt_privacy_patterns_name(mask->scan.patterns, type);
    if ((type >= RT_PII_BUILTIN && !privacy_vault_slot(mask->vault, name, &type, err)) ||
        !rt_privacy_vault_add(mask->vault, type, value, mask->is_stable, &number, err))
        return false;
    char digits[24];
    size_t at = sizeof(digits);
    for (; at == sizeof(digits) || number; number /= 10)
        digits[--at] = (char)('0' + number % 10);
    rt_buf_addc(out, '[');
    rt_buf_add(out, name);
    rt_buf_addc(out, '_');
    rt_buf_add(out, (rt_str){ digits + at, sizeof(digits) - at });
    rt_buf_addc(out, ']');
    return true;
}

/* Stars, but for what people know a thing by: a mail's domain, the last four of a number. */
static void star(unsigned type, rt_str value, rt_buf *out)
{
    size_t shown = type == RT_PII_CREDIT_CARD || type == RT_PII_SSN || type == RT_PII_PHONE ||
                           type == RT_PII_IBAN
                       ? 4
                       : 0;
    size_t left = 0;
    if (type == RT_PII_EMAIL) {
        const char *sign = memchr(value.ptr, '@', value.len);
        rt_buf_add(out, rt_str_slice(value, 0, is_class(value.ptr[0], IS_HIGH) ? 0 : 1));
        rt_buf_add(out, RT_STR("***"));
        rt_buf_add(out, rt_str_slice(value, (size_t)(sign - value.ptr), value.len));
        return;
    }
    for (size_t i = 0; i < value.len; i++)
        left += is_class(value.ptr[i], IS_ALNUM);
    for (size_t i = 0; i < value.len; i++) {
        bool is_alnum = is_class(value.ptr[i], IS_ALNUM);
        bool is_rest = ((unsigned char)value.ptr[i] & 0xC0) == 0x80;
        if (!is_rest)
            rt_buf_addc(out, (is_alnum && left > shown) || is_class(value.ptr[i], IS_HIGH)
                                 ? '*'
                                 : value.ptr[i]);
        left -= is_alnum;
    }
}

/* S0 and S2 alike leave the "1-" of "1-800-555-0199" outside: it says nothing about anybody. */
static size_t without_trunk(rt_str text, const rt_pii_span *span)
{
    rt_str value = rt_str_slice(text, span->start, span->end);
    bool is_trunk = span->type == RT_PII_PHONE && value.len > 11 && value.ptr[0] == '1' &&
                    is_one_of(value.ptr[1], "-. ") && is_class(value.ptr[2], IS_DIGIT);
    return span->start + (is_trunk ? 2 : 0);
}

static bool render(const rt_privacy_mask *mask, unsigned type, rt_str value, rt_buf *out,
                   rt_error *err)
{
    switch (mask->mode) {
    case RT_PRIVACY_TOKENS:
        return tokenise(mask, type, value, out, err);
    case RT_PRIVACY_PARTIAL:
        star(type, value, out);
        return true;
    default:
        redact(mask, type, out);
        return true;
    }
}

rt_privacy_options privacy_mask_options(const rt_privacy_mask *mask)
{
    rt_privacy_options options = mask->scan;
    if (options.min_score[RT_PII_URL] == 0)
        options.min_score[RT_PII_URL] = RT_PRIVACY_URL_SECRET;
    options.is_lenient |= mask->mode == RT_PRIVACY_REDACT && !mask->is_strict;
    return options;
}

/* Appends the masked text; *found tells whether there was anything to mask. */
static bool mask_into(rt_str text, const rt_privacy_options *options, const rt_privacy_mask *mask,
                      rt_arena *arena, rt_buf *out, rt_privacy_report *report, bool *found,
                      rt_error *err)
{
    rt_pii_spans spans;
    size_t i = 0;
    if (!rt_privacy_scan(text, options, arena, &spans, err))
        return false;
    for (size_t k = 0; k < spans.count; k++) {
        const rt_pii_span *span = &spans.items[k];
        size_t start = without_trunk(text, span);
        rt_buf_add(out, rt_str_slice(text, i, start));
        if (!render(mask, span->type, rt_str_slice(text, start, span->end), out, err))
            return false;
        i = span->end;
        if (report) {
            report->counts[span->type]++;
            report->total++;
        }
    }
    rt_buf_add(out, rt_str_slice(text, i, text.len));
    *found = spans.count > 0;
    return true;
}

bool rt_privacy_mask_text(rt_str text, const rt_privacy_mask *mask, rt_buf *out,
                          rt_privacy_report *report, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_privacy_options options = privacy_mask_options(mask);
    bool found;
    assert(mask->mode != RT_PRIVACY_TOKENS || mask->vault);
    if (mask->mode == RT_PRIVACY_OFF) {
        rt_buf_add(out, text);
        return rt_buf_ok(out, err);
    }
    return mask_into(text, &options, mask, &arena, out, report, &found, err) && rt_buf_ok(out, err);
}

/* ---- JSON ---- */

typedef struct json_walk {
    const rt_privacy_mask *mask; /* masking, or … */
    rt_privacy_vault *vault;     /* … unmasking */
    rt_privacy_options options;
    rt_privacy_report *report;
    rt_json_writer w;
    rt_arena arena;
    rt_buf text;
} json_walk;

static void walk_done(json_walk *walk)
{
    rt_arena_done(&walk->arena);
    if (walk->text.ptr)
        explicit_bzero(walk->text.ptr, walk->text.cap);
    rt_buf_done(&walk->text);
}

/* What a string becomes, in walk->text; *changed: whether that is something else. */
static bool turn(json_walk *walk, rt_str text, rt_str label, bool *changed, rt_error *err)
{
    rt_buf_reset(&walk->text);
    rt_arena_reset(&walk->arena);
    *changed = false;
    if (!walk->mask) {
        *changed = memchr(text.ptr ? text.ptr : "", '[', text.len) != NULL;
        return !*changed || rt_privacy_unmask_text(text, walk->vault, &walk->text, err);
    }
    walk->options.label = label;
    return mask_into(text, &walk->options, walk->mask, &walk->arena, &walk->text, walk->report,
                     changed, err) &&
           rt_buf_ok(&walk->text, err);
}

static bool is_exempt(const json_walk *walk, rt_str key)
{
    for (size_t i = 0; walk->mask && i < walk->mask->exempt_count; i++)
        if (rt_str_eq(walk->mask->exempt[i], key))
            return true;
    return false;
}

/* Letters and bars only, as names of members mostly are: there is nobody in it. */
static bool is_plain_name(rt_str key)
{
    for (size_t i = 0; i < key.len; i++)
        if (!is_class(key.ptr[i], IS_LETTER) && key.ptr[i] != '_')
            return false;
    return key.len < 24;
}

static bool walk_key(json_walk *walk, rt_str key, rt_error *err)
{
    bool changed = false;
    bool is_looked_at = walk->mask ? walk->mask->masks_keys && !is_plain_name(key) : true;
    if (is_looked_at && !turn(walk, key, RT_STR(""), &changed, err))
        return false;
    rt_jw_key(&walk->w, changed ? rt_buf_str(&walk->text) : key);
    return true;
}

static bool walk_value(json_walk *walk, rt_json value, rt_str label, rt_error *err)
{
    rt_json_kind kind = rt_json_type(value);
    bool changed;
    if (kind == RT_JSON_STRING) {
        if (!turn(walk, rt_json_str(value), label, &changed, err))
            return false;
        if (changed)
            rt_jw_str(&walk->w, rt_buf_str(&walk->text));
        else
            rt_jw_json(&walk->w, value);
        return true;
    }
    if (kind != RT_JSON_ARRAY && kind != RT_JSON_OBJECT) {
        rt_jw_json(&walk->w, value);
        return true;
    }
    rt_json_iter it = rt_json_each(value);
    rt_str key;
    rt_json child;
    if (kind == RT_JSON_OBJECT)
        rt_jw_object(&walk->w);
    else
        rt_jw_array(&walk->w);
    while (rt_json_next(&it, &key, &child)) {
        if (kind == RT_JSON_OBJECT && !walk_key(walk, key, err))
            return false;
        if (kind == RT_JSON_OBJECT && is_exempt(walk, key))
            rt_jw_json(&walk->w, child);
        else if (!walk_value(walk, child, kind == RT_JSON_OBJECT ? key : label, err))
            return false;
    }
    rt_jw_end(&walk->w);
    return true;
}

bool rt_privacy_mask_json(rt_json doc, const rt_privacy_mask *mask, rt_buf *out,
                          rt_privacy_report *report, rt_error *err)
{
    json_walk walk RT_CLEANUP(walk_done) = { .mask = mask, .report = report };
    assert(mask->mode != RT_PRIVACY_TOKENS || mask->vault);
    if (mask->mode == RT_PRIVACY_OFF) {
        rt_json_print(doc, out);
        return rt_buf_ok(out, err);
    }
    walk.options = privacy_mask_options(mask);
    rt_json_begin(&walk.w, out);
    return walk_value(&walk, doc, mask->scan.label, err) && rt_buf_ok(out, err);
}

/* ---- back again ---- */

bool privacy_token_read(rt_str text, size_t i, rt_privacy_vault *vault, size_t *end, unsigned *type,
                        uint64_t *number)
{
    size_t most = RT_MIN(text.len, i + PRIVACY_NAME_MAX + 24), stop = i + 1, bar = 0;
    while (stop < most && text.ptr[stop] != ']') {
        if (!is_class(text.ptr[stop], IS_UPPER | IS_DIGIT) && text.ptr[stop] != '_')
            return false;
        if (text.ptr[stop] == '_')
            bar = stop;
        stop++;
    }
    *end = stop + 1;
    return stop < most && bar && rt_str_to_u64(rt_str_slice(text, bar + 1, stop), number) &&
           privacy_vault_type(vault, rt_str_slice(text, i + 1, bar), type);
}

bool rt_privacy_unmask_text(rt_str text, rt_privacy_vault *vault, rt_buf *out, rt_error *err)
{
    size_t done = 0, end;
    unsigned type;
    uint64_t number;
    rt_str value;
    for (size_t i = 0; i < text.len; i++) {
        const char *open = memchr(text.ptr + i, '[', text.len - i);
        if (!open)
            break;
        i = (size_t)(open - text.ptr);
        if (!privacy_token_read(text, i, vault, &end, &type, &number))
            continue;
        if (!rt_privacy_vault_get(vault, type, (size_t)number, &value, err))
            return rt_wrap(err, "token %.*s", (int)(end - i), text.ptr + i);
        rt_buf_add(out, rt_str_slice(text, done, i));
        rt_buf_add(out, value);
        done = end;
        i = end - 1;
    }
    rt_buf_add(out, rt_str_slice(text, done, text.len));
    return rt_buf_ok(out, err);
}

bool rt_privacy_unmask_json(rt_json doc, rt_privacy_vault *vault, rt_buf *out, rt_error *err)
{
    json_walk walk RT_CLEANUP(walk_done) = { .vault = vault };
    rt_json_begin(&walk.w, out);
    return walk_value(&walk, doc, RT_STR(""), err) && rt_buf_ok(out, err);
}
