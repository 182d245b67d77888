/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outcome_fuzz.c - whatever a guest answers: no crash, and what we make of it is JSON of our own
 * shape.
 */
#include "runtimes/runtimes_internal.h"

#include <assert.h>

static void check(const rt_outcome *out, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json doc;
    rt_error err = { 0 };
    assert(!(out->has_value && out->has_error));
    assert(out->has_error == (out->status != RT_STATUS_SUCCESS));
    assert(out->error.status >= 0 && out->error.status <= 255);
    rt_json_begin(&w, &text);
    rt_outcome_write(out, &w);
    bool ok = rt_buf_ok(&text, &err) && rt_json_parse(rt_buf_str(&text), arena, &doc, &err);
    assert(ok);
    assert(rt_json_type(rt_json_get_c(doc, "error")) ==
           (out->has_error ? RT_JSON_OBJECT : RT_JSON_NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str frame = { (const char *)data, size };
    rt_outcome out = { .out = frame, .err = frame, .out_bytes = size };
    rt_file file = { .name = frame, .data = frame, .size = size };
    rt_error err = { 0 };
    if (!runtimes_read_result(&out, frame, &arena, &err))
        return 0;
    out.artifacts = &file;
    out.artifact_count = 1;
    out.denial_count = size % 2; /* an empty refusal */
    runtimes_explain(&out, rt_policy_preset(RT_STR("default")), &arena);
    check(&out, &arena);
    return 0;
}
