/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_show_test.c - what strangers say is shown tame; floods are told from talk. */
#include "tools/mcp_internal.h"

#include <criterion/criterion.h>

Test(mcp_show, plain_text_stays_and_controls_do_not)
{
    char out[MCP_SHOWN_SIZE];
    cr_assert_str_eq(mcp_show(RT_STR("grüße 世界"), out), "grüße 世界");
    cr_assert_str_eq(mcp_show(RT_STR("a\nb\tc\rd\x1b[31m\x7f"), out), "a b c?d?[31m?");
    cr_assert_str_eq(mcp_show(RT_STR("\xff\xc3"), out), "??");
    cr_assert_str_eq(mcp_show(RT_STR("a\u202eb\u2028c\xc2\x85"
                                     "d\ufeff"),
                              out),
                     "a?b?c?d?");
    cr_assert_str_eq(mcp_show((rt_str){ NULL, 0 }, out), "");
}

Test(mcp_show, long_text_is_cut_between_characters)
{
    char out[MCP_SHOWN_SIZE];
    for (size_t shift = 0; shift < 4; shift++) {
        rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
        for (size_t i = 0; i < 300; i++)
            rt_buf_add(&text, i < shift ? RT_STR("x") : RT_STR("世"));
        rt_str shown = rt_str_of(mcp_show(rt_buf_str(&text), out));
        cr_assert(rt_utf8_valid(shown) && rt_str_ends(shown, RT_STR("...")));
        cr_assert_lt(shown.len, MCP_SHOWN_SIZE);
    }
}

Test(mcp_show, talk_is_allowed_and_a_flood_is_not)
{
    mcp_flood flood = { 0 };
    uint64_t now = 1000 * MCP_SECOND;
    for (unsigned i = 0; i < 100000; i++)
        cr_assert(mcp_flood_allows(&flood, now += MCP_MS, 100));
    bool is_allowed = true;
    for (unsigned i = 0; i < 30000; i++)
        is_allowed = mcp_flood_allows(&flood, now, 100);
    cr_assert(!is_allowed);
}

Test(mcp_show, a_few_huge_messages_are_a_flood_too)
{
    mcp_flood flood = { 0 };
    bool is_allowed = true;
    for (unsigned i = 0; i < 10; i++)
        is_allowed = mcp_flood_allows(&flood, MCP_SECOND, (size_t)60 << 20);
    cr_assert(!is_allowed);
}

Test(mcp_show, progress_is_read_and_bounded)
{
    rt_mcp_message m;
    mcp_progress p;
    rt_mcp_message_scan(
        RT_STR("{\"method\":\"notifications/progress\",\"params\":{\"progressToken\":7,"
               "\"progress\":0.5,\"total\":2,\"message\":\"half\"}}"),
        &m, NULL);
    cr_assert(mcp_progress_read(&m, &p));
    cr_assert_eq(p.token, 7);
    cr_assert_eq(p.done, 0.5);
    cr_assert_eq(p.total, 2);
    cr_assert_str_eq(p.message, "half");
    m.params = RT_STR("{\"progressToken\":\"7\",\"progress\":1}");
    cr_assert(!mcp_progress_read(&m, &p));
    m.params = RT_STR("{\"progressToken\":7,\"progress\":");
    cr_assert(!mcp_progress_read(&m, &p));
}
