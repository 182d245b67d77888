/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privacy_fuzz.c - whatever the text: spans are in order and inside it, masks are undone exactly.
 */
#include "privacy/privacy.h"

#include <assert.h>

static void check_spans(rt_str text, const rt_pii_spans *spans)
{
    size_t end = 0;
    for (size_t i = 0; i < spans->count; i++) {
        const rt_pii_span *span = &spans->items[i];
        assert(span->start >= end && span->end > span->start && span->end <= text.len);
        assert(span->start_point <= span->start && span->end_point <= span->end);
        assert(span->type < RT_PII_BUILTIN && span->score <= 100);
        /* A span never cuts a character in two. */
        if (rt_utf8_valid(text))
            assert(rt_utf8_valid(rt_str_slice(text, span->start, span->end)));
        end = span->end;
    }
}

static bool ignore(void *self, const rt_pii_span *span, rt_error *err)
{
    size_t *end = self;
    (void)err;
    assert(span->start >= *end);
    *end = span->end;
    return true;
}

static bool ignore_in(void *self, rt_str path, const rt_pii_span *span, rt_error *err)
{
    (void)self, (void)err;
    assert(path.len == 0 || path.ptr[0] == '/');
    assert(span->end > span->start);
    return true;
}

/* The same bytes as a document, and as what says how to scan one. */
static void try_document(rt_str text, rt_privacy_vault *vault)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_privacy_patterns *patterns RT_CLEANUP(rt_privacy_patterns_freep) = NULL;
    rt_privacy_options options = { 0 };
    rt_privacy_mask mask = { .mode = RT_PRIVACY_TOKENS, .vault = vault };
    rt_privacy_report found = { 0 };
    rt_json doc;
    if (!rt_json_parse(text, &arena, &doc, NULL))
        return;
    rt_privacy_options_read(doc, &options, &patterns, NULL); /* whatever it says, no crash */
    rt_privacy_scan_json(doc, &(rt_privacy_options){ 0 }, NULL, 0, ignore_in, NULL, NULL);
    rt_privacy_count_json(doc, &mask, &found, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_buf masked RT_CLEANUP(rt_buf_done) = { 0 }, back RT_CLEANUP(rt_buf_done) = { 0 };
    rt_privacy_vault *vault RT_CLEANUP(rt_privacy_vault_closep) = NULL;
    rt_privacy_stream stream RT_CLEANUP(rt_privacy_stream_done);
    rt_str text = { (const char *)data, size };
    rt_privacy_options all = { .types = RT_PII_ALL, .label = rt_str_slice(text, 0, size % 16) };
    rt_pii_spans spans;
    size_t end = 0;
    bool ok = rt_privacy_scan(text, &all, &arena, &spans, NULL);
    assert(ok);
    check_spans(text, &spans);

    rt_privacy_stream_init(&stream, &all);
    ok = rt_privacy_stream_push(&stream, rt_str_slice(text, 0, size / 2), false, ignore, &end,
                                NULL) &&
         rt_privacy_stream_push(&stream, rt_str_slice(text, size / 2, size), true, ignore, &end,
                                NULL);
    assert(ok);

    ok = rt_privacy_vault_open(&vault, NULL);
    assert(ok);
    rt_privacy_mask mask = { .mode = RT_PRIVACY_TOKENS, .vault = vault, .is_stable = size % 2 };
    ok = rt_privacy_mask_text(text, &mask, &masked, NULL, NULL);
    assert(ok);
    /* Text that has tokens of its own cannot come back as it was, and is refused or replaced. */
    if (rt_str_find(text, RT_STR("[")) < 0) {
        ok = rt_privacy_unmask_text(rt_buf_str(&masked), vault, &back, NULL);
        assert(ok && rt_str_eq(rt_buf_str(&back), text));
    }
    try_document(text, vault);
    mask.mode = RT_PRIVACY_PARTIAL;
    rt_buf_reset(&masked);
    ok = rt_privacy_mask_text(text, &mask, &masked, NULL, NULL);
    assert(ok);
    return 0;
}
