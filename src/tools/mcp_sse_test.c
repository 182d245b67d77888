/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_sse_test.c - events come out the same however the bytes are cut. */
#include "tools/mcp_internal.h"

#include <criterion/criterion.h>

typedef struct heard {
    rt_buf all; /* "event|data;" each */
    size_t left;
} heard;

static bool note(void *ctx, const char *event, rt_buf *data)
{
    heard *h = ctx;
    rt_buf_addf(&h->all, "%s|%.*s;", event, RT_FMT(rt_buf_str(data)));
    return --h->left > 0;
}

/* In pieces of each size from one byte to all. */
static void gives(const char *bytes, const char *wanted, const char *id, uint64_t retry_ms)
{
    for (size_t step = 1; step <= strlen(bytes); step++) {
        heard h = { .left = 1000 };
        mcp_sse sse = { .on_event = note, .ctx = &h };
        rt_str rest = rt_str_of(bytes);
        mcp_sse_reset(&sse);
        for (; rest.len; rest = rt_str_slice(rest, step, rest.len))
            cr_assert(mcp_sse_feed(&sse, rt_str_slice(rest, 0, step)));
        cr_assert(rt_str_eq_c(rt_buf_str(&h.all), wanted), "step %zu: %.*s, not %s", step,
                  RT_FMT(rt_buf_str(&h.all)), wanted);
        cr_assert_str_eq(sse.id, id);
        cr_assert_eq(sse.retry_ms, retry_ms);
        rt_buf_done(&h.all);
        mcp_sse_done(&sse);
    }
}

Test(mcp_sse, an_event_is_its_data)
{
    gives("data: {\"a\":1}\n\n", "message|{\"a\":1};", "", 0);
    gives("data:x\r\n\r\ndata:  y\r\r", "message|x;message| y;", "", 0);
}

Test(mcp_sse, lines_of_data_are_joined)
{
    gives("data: a\ndata\ndata:\ndata: b\n\n", "message|a\n\n\nb;", "", 0);
}

Test(mcp_sse, names_ids_and_pauses_are_kept)
{
    gives("id: 7\nevent: x\nretry: 500\ndata: 1\n\nid\ndata:\n\n", "x|1;message|;", "", 500);
    gives("event: lost\n\ndata: 1\nid: a:b\n\n", "message|1;", "a:b", 0);
    gives("retry: soon\nretry: -1\nnonsense: 1\n: comment\n:\n\n", "", "", 0);
}

Test(mcp_sse, an_event_without_its_end_is_none)
{
    gives("data: a\n\ndata: b\n", "message|a;", "", 0);
}

Test(mcp_sse, the_receiver_can_have_enough)
{
    heard h = { .left = 2 };
    mcp_sse sse = { .on_event = note, .ctx = &h };
    mcp_sse_reset(&sse);
    cr_assert(!mcp_sse_feed(&sse, RT_STR("data: 1\n\ndata: 2\n\ndata: 3\n\n")));
    cr_assert(rt_str_eq_c(rt_buf_str(&h.all), "message|1;message|2;"));
    cr_assert(!sse.is_over_limit);
    rt_buf_done(&h.all);
    mcp_sse_done(&sse);
}

Test(mcp_sse, a_line_without_end_is_a_limit)
{
    static char chunk[64 << 10];
    heard h = { .left = 2 };
    mcp_sse sse = { .on_event = note, .ctx = &h };
    memset(chunk, 'x', sizeof(chunk));
    mcp_sse_reset(&sse);
    cr_assert(mcp_sse_feed(&sse, (rt_str){ chunk, sizeof(chunk) }));
    cr_assert(!mcp_sse_feed(&sse, (rt_str){ chunk, sizeof(chunk) }));
    cr_assert(sse.is_over_limit);
    mcp_sse_done(&sse);
}
