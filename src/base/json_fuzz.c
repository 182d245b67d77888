/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_fuzz.c - whatever comes in: no crash, and what was accepted survives printing.
 */
#include "base/json.h"

#include <assert.h>

static rt_json reparse(rt_buf *text, rt_arena *arena)
{
    rt_json doc;
    rt_error err = { 0 };
    bool ok = rt_buf_ok(text, &err) && rt_json_parse(rt_buf_str(text), arena, &doc, &err);
    assert(ok);
    rt_buf_reset(text);
    return doc;
}

/* The canonical form is for hashing: reading it back and making it again must not change it. */
static void check_canonical(rt_json doc, rt_arena *arena)
{
    rt_buf once RT_CLEANUP(rt_buf_done) = { 0 }, twice RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json again;
    rt_json_canonical(doc, &once);
    if (rt_str_find(rt_buf_str(&once), RT_STR("Infinity")) >= 0)
        return; /* Python's word for 1e999, which is no JSON */
    bool ok = rt_json_parse(rt_buf_str(&once), arena, &again, NULL);
    assert(ok);
    rt_json_canonical(again, &twice);
    assert(rt_str_eq(rt_buf_str(&once), rt_buf_str(&twice)));
}

static void check_access(rt_json doc)
{
    rt_json_iter it = rt_json_each(doc);
    rt_str key;
    rt_json value;
    int64_t integer;
    double real;
    size_t count = 0;
    for (; rt_json_next(&it, &key, &value); count++) {
        if (rt_json_type(doc) == RT_JSON_OBJECT)
            assert(!rt_json_is_absent(rt_json_get(doc, key)));
        else if (count < 64)
            assert(rt_json_at(doc, count).node == value.node);
        if (rt_json_i64(value, &integer))
            assert(rt_json_double(value, &real));
    }
    assert(count == rt_json_count(doc));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json doc;
    rt_error err = { 0 };
    if (!rt_json_parse((rt_str){ (const char *)data, size }, &arena, &doc, &err)) {
        assert(err.code == RT_INVALID || err.code == RT_LIMIT);
        assert(rt_utf8_valid(rt_str_of(err.text)));
        return 0;
    }
    rt_json_print(doc, &text);
    assert(rt_utf8_valid(rt_buf_str(&text)));
    assert(rt_json_equal(doc, reparse(&text, &arena)));
    rt_json_print_pretty(doc, &text);
    assert(rt_json_equal(doc, reparse(&text, &arena)));
    check_canonical(doc, &arena);
    check_access(doc);
    return 0;
}
