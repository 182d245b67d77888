/* SPDX-License-Identifier: Apache-2.0 */
/*
 * units_fuzz.c - sizes, durations, numbers and UTF-8 from any bytes.
 */
#include "base/buf.h"
#include "base/json.h"
#include "base/units.h"

#include <assert.h>

/* What the writer makes of any bytes is JSON, and valid text comes back as it was. */
static void check_writer(rt_str text)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_buf out RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json doc;
    rt_json_begin(&w, &out);
    rt_jw_str(&w, text);
    bool ok = rt_json_parse(rt_buf_str(&out), &arena, &doc, NULL);
    assert(ok);
    assert(rt_utf8_valid(rt_json_str(doc)));
    assert(rt_str_eq(rt_json_str(doc), text) == rt_utf8_valid(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_str text = { (const char *)data, size };
    uint64_t value;
    int64_t number;
    rt_error err = { 0 };
    if (rt_str_to_u64(text, &value) && value <= INT64_MAX)
        assert(rt_str_to_i64(text, &number) && (uint64_t)number == value);
    if (!rt_parse_bytes(text, &value, &err))
        assert(err.code == RT_INVALID);
    if (!rt_parse_duration_ms(text, &value, &err))
        assert(err.code == RT_INVALID);
    assert(rt_utf8_length(text) <= size);
    check_writer(text);
    return 0;
}
