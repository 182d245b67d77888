/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_message_fuzz.c - whatever comes for a message: its parts lie within it, and what is JSON is
 * cut where JSON ends.
 */
#include "tools/mcp_internal.h"

#include <assert.h>

static void check_part(rt_str whole, rt_str part, bool is_json)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json doc;
    if (part.len == 0)
        return;
    assert(part.ptr >= whole.ptr && part.ptr + part.len <= whole.ptr + whole.len);
    assert(!is_json || rt_json_parse(part, &arena, &doc, NULL));
}

static void check_header(rt_str value)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_buf encoded RT_CLEANUP(rt_buf_done) = { 0 };
    rt_str back;
    rt_mcp_header_encode(value, &encoded);
    assert(rt_mcp_header_decode(rt_buf_str(&encoded), &arena, &back, NULL));
    assert(rt_str_eq(back, value));
    rt_mcp_header_decode(value, &arena, &back, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str text = { (const char *)data, size }, rest = text, item;
    rt_mcp_message m;
    rt_json doc;
    mcp_progress progress;
    char shown[MCP_SHOWN_SIZE];
    bool is_json = rt_json_parse(text, &arena, &doc, NULL);
    if (rt_mcp_message_scan(text, &m, NULL)) {
        const rt_str parts[] = { m.id, m.params, m.result, m.error };
        for (size_t i = 0; i < RT_COUNT(parts); i++)
            check_part(text, parts[i], is_json);
        check_part(text, m.method, false);
        mcp_progress_read(&m, &progress);
        if (is_json && m.kind == RT_MCP_RESULT && rt_json_parse(m.result, &arena, &doc, NULL)) {
            rt_tool_result result = { 0 };
            mcp_result_read(m.result, doc, &arena, &result);
            assert(rt_json_parse(result.value, &arena, &doc, NULL));
            assert(rt_json_parse(result.content, &arena, &doc, NULL));
            assert(rt_json_type(doc) == RT_JSON_ARRAY);
        }
    }
    for (unsigned i = 0; i < 1000 && rt_mcp_batch_next(&rest, &item); i++)
        check_part(text, item, false);
    check_part(text, rt_mcp_member(text, RT_STR("id")), false);
    check_header(text);
    assert(rt_utf8_valid(rt_str_of(mcp_show(text, shown))));
    return 0;
}
