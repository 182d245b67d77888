/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_sse_fuzz.c - whatever comes for a stream of events: the same events in one piece and in many.
 * The first byte says how long the pieces are.
 */
#include "tools/mcp_internal.h"

#include <assert.h>

static bool note(void *ctx, const char *event, rt_buf *data)
{
    rt_buf_addf(ctx, "%s|", event);
    rt_buf_add(ctx, rt_buf_str(data));
    rt_buf_addc(ctx, ';');
    return true;
}

static bool feed(rt_str bytes, size_t step, mcp_sse *sse, rt_buf *heard)
{
    bool goes_on = true;
    *sse = (mcp_sse){ .on_event = note, .ctx = heard };
    mcp_sse_reset(sse);
    for (; goes_on && bytes.len; bytes = rt_str_slice(bytes, step, bytes.len))
        goes_on = mcp_sse_feed(sse, rt_str_slice(bytes, 0, step));
    return goes_on;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_buf whole RT_CLEANUP(rt_buf_done) = { 0 }, pieces RT_CLEANUP(rt_buf_done) = { 0 };
    mcp_sse first, second;
    if (size < 1)
        return 0;
    rt_str bytes = { (const char *)data + 1, size - 1 };
    bool is_same = feed(bytes, bytes.len + 1, &first, &whole) ==
                   feed(bytes, (size_t)data[0] + 1, &second, &pieces);
    assert(is_same);
    assert(rt_str_eq(rt_buf_str(&whole), rt_buf_str(&pieces)));
    assert(strcmp(first.id, second.id) == 0 && first.retry_ms == second.retry_ms);
    mcp_sse_done(&first);
    mcp_sse_done(&second);
    return 0;
}
