/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_privacy.c - personal data in a text or a JSON value, found or masked.
 *
 * Nothing is kept: no record, no cache, no vault that outlives the answer. Tokens therefore stand
 * for nothing afterwards; what they stood for is in no answer.
 */
#include "server/operations.h"
#include "server/server_internal.h"

#define TEXT_MAX   ((size_t)16 << 20) /* bytes of a text, or of a value as it came */
#define SPANS_MAX  ((size_t)100000)   /* in one answer */
#define EXEMPT_MAX ((size_t)100)

static const http_member members[] = {
    { "text", HTTP_STRING, false },
    { "value", ~0u, false },
    { "types", HTTP_ARRAY | HTTP_NULL, false },
    { "min_score", HTTP_NUMBER | HTTP_OBJECT | HTTP_NULL, false },
    { "patterns", HTTP_OBJECT | HTTP_NULL, false },
    { "exempt", HTTP_ARRAY | HTTP_NULL, false },
    { "mode", HTTP_STRING, false }, /* from here on: of masking only */
    { "stable", HTTP_BOOL, false },
    { "keys", HTTP_BOOL, false },
};

enum { SCAN_MEMBERS = 6 };

/* What a body asks for. */
typedef struct question {
    rt_json body, text, value;
    bool is_text;
    rt_privacy_mask mask; /* its `scan` serves both */
    rt_privacy_patterns *patterns;
} question;

static void question_done(question *q)
{
    rt_privacy_patterns_freep(&q->patterns);
}

static bool read_exempt(http_request *r, question *q, rt_error *err)
{
    rt_json list = rt_json_get_c(q->body, "exempt"), name;
    rt_json_iter it = rt_json_each(list);
    size_t count = rt_json_type(list) == RT_JSON_ARRAY ? rt_json_count(list) : 0;
    if (count > EXEMPT_MAX)
        return rt_fail(err, RT_LIMIT, "'exempt' names at most %zu members", EXEMPT_MAX);
    rt_str *names = rt_arena_alloc(&r->arena, (count + 1) * sizeof(*names));
    for (; count > 0 && rt_json_next(&it, NULL, &name); q->mask.exempt_count++) {
        if (rt_json_type(name) != RT_JSON_STRING)
            return rt_fail(err, RT_INVALID, "'exempt' holds names of members, not %s",
                           rt_json_type_name(name));
        names[q->mask.exempt_count] = rt_json_str(name);
    }
    q->mask.exempt = names;
    return true;
}

static bool read_question(http_request *r, size_t member_count, question *q, rt_error *err)
{
    if (!http_object(r, members, member_count, &q->body, err))
        return false;
    q->text = rt_json_get_c(q->body, "text");
    q->value = rt_json_get_c(q->body, "value");
    q->is_text = !rt_json_is_absent(q->text);
    if (q->is_text == !rt_json_is_absent(q->value))
        return rt_fail(err, RT_INVALID, "give either 'text' or 'value' (any JSON)");
    size_t size = q->is_text ? rt_json_str(q->text).len : r->body.len;
    if (size > TEXT_MAX)
        return rt_fail(err, RT_LIMIT,
                       "%s has %zu bytes, and at most %zu are looked through; "
                       "send it in parts, or use 'retort privacy' on the command line",
                       q->is_text ? "'text'" : "the body", size, TEXT_MAX);
    return rt_privacy_options_read(q->body, &q->mask.scan, &q->patterns, err) &&
           read_exempt(r, q, err);
}

static void write_found(const rt_privacy_report *report, const question *q, rt_json_writer *w)
{
    rt_jw_ku64(w, "count", report->total);
    rt_jw_key(w, RT_STR("counts"));
    rt_privacy_counts_write(report, RT_PII_NAME, q->patterns, w);
}

/* ---- scan ---- */

typedef struct listing {
    const question *question;
    rt_json_writer *w;
    rt_privacy_report report;
} listing;

static bool list_span(void *self, rt_str path, const rt_pii_span *span, rt_error *err)
{
    listing *l = self;
    if (l->report.total == SPANS_MAX)
        return rt_fail(err, RT_LIMIT, "more than %zu pieces of personal data; send less at once",
                       SPANS_MAX);
    rt_jw_object(l->w);
    if (!l->question->is_text)
        rt_jw_kstr(l->w, "path", path);
    rt_jw_ku64(l->w, "start", span->start_point);
    rt_jw_ku64(l->w, "end", span->end_point);
    rt_jw_kstr(l->w, "type", rt_privacy_patterns_name(l->question->patterns, span->type));
    rt_jw_kdouble(l->w, "score", span->score / 100.0);
    rt_jw_end(l->w);
    l->report.counts[span->type]++;
    l->report.total++;
    return true;
}

static bool list_text(http_request *r, listing *l, rt_error *err)
{
    const question *q = l->question;
    rt_pii_spans spans;
    if (!rt_privacy_scan(rt_json_str(q->text), &q->mask.scan, &r->arena, &spans, err))
        return false;
    for (size_t i = 0; i < spans.count; i++)
        if (!list_span(l, (rt_str){ 0 }, &spans.items[i], err))
            return false;
    return true;
}

static bool scan(http_request *r, http_reply *reply, rt_error *err)
{
    question q RT_CLEANUP(question_done) = { 0 };
    rt_json_writer w;
    listing l = { .question = &q, .w = &w };
    if (!read_question(r, SCAN_MEMBERS, &q, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_karray(&w, "spans");
    bool ok = q.is_text ? list_text(r, &l, err)
                        : rt_privacy_scan_json(q.value, &q.mask.scan, q.mask.exempt,
                                               q.mask.exempt_count, list_span, &l, err);
    if (!ok) {
        reply->status = 0; /* the error's */
        return false;
    }
    rt_jw_end(&w);
    write_found(&l.report, &q, &w);
    rt_jw_end(&w);
    return rt_buf_ok(&reply->body, err);
}

/* ---- mask ---- */

static bool read_mode(question *q, rt_error *err)
{
    rt_json mode = rt_json_get_c(q->body, "mode");
    q->mask.mode = RT_PRIVACY_REDACT;
    q->mask.is_stable = rt_json_bool(rt_json_get_c(q->body, "stable"), false);
    q->mask.masks_keys = rt_json_bool(rt_json_get_c(q->body, "keys"), false);
    if (rt_json_is_absent(mode))
        return true;
    if (!rt_privacy_mode_parse(rt_json_str(mode), &q->mask.mode, err) ||
        q->mask.mode == RT_PRIVACY_OFF)
        return rt_fail(err, RT_INVALID, "'mode' must be redact, tokens or partial");
    return true;
}

static bool mask(http_request *r, http_reply *reply, rt_error *err)
{
    question q RT_CLEANUP(question_done) = { 0 };
    rt_privacy_vault *vault RT_CLEANUP(rt_privacy_vault_closep) = NULL;
    rt_buf masked RT_CLEANUP(rt_buf_done) = { 0 };
    rt_privacy_report report = { 0 };
    rt_json_writer w;
    rt_buf_init(&masked, 4 * TEXT_MAX);
    if (!read_question(r, RT_COUNT(members), &q, err) || !read_mode(&q, err) ||
        !rt_privacy_vault_open(&vault, err))
        return false;
    q.mask.vault = vault;
    bool ok = q.is_text ? rt_privacy_mask_text(rt_json_str(q.text), &q.mask, &masked, &report, err)
                        : rt_privacy_mask_json(q.value, &q.mask, &masked, &report, err);
    if (!ok)
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    if (q.is_text)
        rt_jw_kstr(&w, "text", rt_buf_str(&masked));
    else
        rt_jw_kraw(&w, "value", rt_buf_str(&masked));
    write_found(&report, &q, &w);
    rt_jw_end(&w);
    return rt_buf_ok(&reply->body, err);
}

const http_operation api_privacy_rows[] = {
    { .method = "POST",
      .path = "/v1/privacy/scan",
      .id = "scanForPersonalData",
      .tag = "Privacy",
      .summary = "Find personal data in a text or a JSON value",
      .about = "Positions are in code points; of a value, from the beginning of the string that "
               "`path` (a JSON pointer) names. Nothing is kept.",
      .role = RT_ROLE_MEMBER,
      .action = "scan for personal data",
      .request = "PrivacyScanRequest",
      .responses = HTTP_RESPONSES({ 200, "PrivacyScan", "What was found, in order" }),
      .errors = "413",
      .handler = scan },
    { .method = "POST",
      .path = "/v1/privacy/mask",
      .id = "maskPersonalData",
      .tag = "Privacy",
      .summary = "Mask personal data in a text or a JSON value",
      .about = "What the masks stand for is kept nowhere and is in no answer.",
      .role = RT_ROLE_MEMBER,
      .action = "mask personal data",
      .request = "PrivacyMaskRequest",
      .responses =
          HTTP_RESPONSES({ 200, "PrivacyMasked", "The same with its personal data masked" }),
      .errors = "413",
      .handler = mask },
    { 0 },
};
