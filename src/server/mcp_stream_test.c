/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "server/mcp.h"

static rt_arena arena;

Test(mcp_stream, gives_messages_in_their_order_and_again_to_who_comes_back)
{
    mcp_stream *s = mcp_stream_new();
    unsigned status;
    rt_str message;
    mcp_stream_send(s, RT_STR("one"), 0);
    mcp_stream_send(s, RT_STR("two"), 200);
    mcp_stream_end(s);
    for (int visit = 0; visit < 2; visit++) {
        size_t position = 0;
        cr_assert_eq(mcp_stream_next(s, &position, 0, &arena, &message, &status), 1);
        cr_expect(rt_str_eq_c(message, "one") && status == 0);
        cr_assert_eq(mcp_stream_next(s, &position, 0, &arena, &message, &status), 1);
        cr_expect(rt_str_eq_c(message, "two") && status == 200);
        cr_assert_eq(mcp_stream_next(s, &position, 0, &arena, &message, &status), -1);
    }
    mcp_stream_release(s);
}

Test(mcp_stream, waits_no_longer_than_it_is_told)
{
    mcp_stream *s = mcp_stream_new();
    size_t position = 0;
    unsigned status;
    rt_str message;
    cr_assert_eq(mcp_stream_next(s, &position, rt_now_ns() + 1000000, &arena, &message, &status),
                 0);
    mcp_stream_release(s);
}

Test(mcp_stream, forgets_the_oldest_when_it_is_full_and_keeps_the_answer)
{
    mcp_stream *s = mcp_stream_new();
    size_t position = 0;
    unsigned status = 0;
    rt_str message, big = { calloc(1, MCP_STREAM_BYTES), MCP_STREAM_BYTES };
    mcp_stream_send(s, RT_STR("first"), 0);
    mcp_stream_send(s, big, 0);
    mcp_stream_send(s, big, 0);
    mcp_stream_send(s, RT_STR("answer"), 200);
    mcp_stream_end(s);
    size_t seen = 0;
    while (mcp_stream_next(s, &position, 0, &arena, &message, &status) == 1)
        seen++;
    cr_expect(rt_str_eq_c(message, "answer") && status == 200);
    cr_expect_lt(seen, 4);
    cr_expect_eq(position, 4, "positions go on counting");
    free((void *)(uintptr_t)big.ptr);
    mcp_stream_release(s);
}
