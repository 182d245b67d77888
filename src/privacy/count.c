/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count.c - how much personal data there is, by type: what is plain, and what is masked already.
 *
 * This is what code in a cell may ask about values it must not see.
 */
#include "privacy/privacy_internal.h"

typedef struct tally {
    const rt_privacy_mask *mask;
    rt_privacy_options options;
    rt_privacy_report *report;
    rt_arena arena;
} tally;

static void tally_done(tally *t)
{
    rt_arena_done(&t->arena);
}

static void count_one(tally *t, unsigned type)
{
    t->report->counts[type]++;
    t->report->total++;
}

/* "[EMAIL_REDACTED]" at text[i]. */
static bool read_redaction(rt_str text, size_t i, const rt_privacy_patterns *patterns,
                           unsigned *type)
{
    static const rt_str tail = RT_STR("_REDACTED]");
    rt_str rest = rt_str_slice(text, i + 1, RT_MIN(text.len, i + 1 + PRIVACY_NAME_MAX + tail.len));
    const char *stop = memchr(rest.ptr, ']', rest.len);
    size_t len = stop ? (size_t)(stop - rest.ptr) + 1 : 0;
    if (len <= tail.len || !rt_str_eq(rt_str_slice(rest, len - tail.len, len), tail))
        return false;
    rt_str name = rt_str_slice(rest, 0, len - tail.len);
    for (unsigned k = 0; k < RT_PII_MAX; k++) {
        rt_str known = k < RT_PII_BUILTIN ? rt_str_of(rt_pii_name(k, RT_PII_REDACT))
                                          : rt_privacy_patterns_name(patterns, k);
        if (known.len && rt_str_eq(known, name)) {
            *type = k;
            return true;
        }
    }
    return false;
}

static void count_marks(tally *t, rt_str text)
{
    size_t end;
    unsigned type;
    uint64_t number;
    rt_str value;
    for (size_t i = 0; i < text.len; i++) {
        const char *open = memchr(text.ptr + i, '[', text.len - i);
        if (!open)
            return;
        i = (size_t)(open - text.ptr);
        bool is_token = t->mask->vault &&
                        privacy_token_read(text, i, t->mask->vault, &end, &type, &number) &&
                        rt_privacy_vault_get(t->mask->vault, type, (size_t)number, &value, NULL);
        if (is_token || read_redaction(text, i, t->options.patterns, &type))
            count_one(t, type);
    }
}

static bool count_text(tally *t, rt_str text, rt_str label, rt_error *err)
{
    rt_pii_spans spans;
    rt_arena_reset(&t->arena);
    t->options.label = label;
    if (!rt_privacy_scan(text, &t->options, &t->arena, &spans, err))
        return false;
    for (size_t i = 0; i < spans.count; i++)
        count_one(t, spans.items[i].type);
    count_marks(t, text);
    return true;
}

static bool count_value(tally *t, rt_json value, rt_str label, rt_error *err)
{
    rt_json_kind kind = rt_json_type(value);
    if (kind == RT_JSON_STRING)
        return count_text(t, rt_json_str(value), label, err);
    if (kind != RT_JSON_ARRAY && kind != RT_JSON_OBJECT)
        return true;
    rt_json_iter it = rt_json_each(value);
    rt_str key;
    rt_json child;
    while (rt_json_next(&it, &key, &child))
        if (!count_value(t, child, kind == RT_JSON_OBJECT ? key : label, err))
            return false;
    return true;
}

bool rt_privacy_count_json(rt_json doc, const rt_privacy_mask *mask, rt_privacy_report *report,
                           rt_error *err)
{
    tally t RT_CLEANUP(
        tally_done) = { .mask = mask, .options = privacy_mask_options(mask), .report = report };
    return count_value(&t, doc, mask->scan.label, err);
}

/* ---- what was found, as JSON ---- */

static rt_str name_of(unsigned type, rt_pii_style style, const rt_privacy_patterns *patterns)
{
    return type < RT_PII_BUILTIN ? rt_str_of(rt_pii_name(type, style))
                                 : rt_privacy_patterns_name(patterns, type);
}

void rt_privacy_report_write(const rt_privacy_report *report, rt_pii_style style,
                             const rt_privacy_patterns *patterns, rt_json_writer *w)
{
    rt_jw_array(w);
    for (unsigned type = 0; type < RT_PII_MAX; type++)
        if (report->counts[type])
            rt_jw_str(w, name_of(type, style, patterns));
    rt_jw_end(w);
}

void rt_privacy_counts_write(const rt_privacy_report *report, rt_pii_style style,
                             const rt_privacy_patterns *patterns, rt_json_writer *w)
{
    rt_jw_object(w);
    for (unsigned type = 0; type < RT_PII_MAX; type++)
        if (report->counts[type]) {
            rt_jw_key(w, name_of(type, style, patterns));
            rt_jw_u64(w, report->counts[type]);
        }
    rt_jw_end(w);
}
