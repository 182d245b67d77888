/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_limiter_test.c - so many in any second, in the order they came. */
#include "tools/mcp_internal.h"

#include <criterion/criterion.h>

#define NOW (1000 * MCP_SECOND)

static mcp_limiter *limiter;

static void init(void)
{
    limiter = mcp_limiter_new(10);
}

static void done(void)
{
    mcp_limiter_free(limiter);
}

TestSuite(mcp_limiter, .init = init, .fini = done);

Test(mcp_limiter, ten_may_go_at_once_and_the_next_a_second_later)
{
    for (unsigned i = 0; i < 10; i++)
        cr_assert_eq(mcp_limiter_take(limiter, RT_STR("a"), NOW + i, UINT64_MAX), NOW + i);
    for (unsigned i = 0; i < 10; i++)
        cr_assert_eq(mcp_limiter_take(limiter, RT_STR("a"), NOW + 99, UINT64_MAX),
                     NOW + MCP_SECOND + i);
}

Test(mcp_limiter, no_second_has_more_than_ten)
{
    uint64_t moments[1000];
    for (unsigned i = 0; i < RT_COUNT(moments); i++)
        moments[i] = mcp_limiter_take(limiter, RT_STR("a"), NOW + i * MCP_MS * 7, UINT64_MAX);
    for (unsigned i = 10; i < RT_COUNT(moments); i++)
        cr_assert_geq(moments[i] - moments[i - 10], MCP_SECOND);
}

Test(mcp_limiter, a_turn_after_the_deadline_is_not_taken)
{
    for (unsigned i = 0; i < 10; i++)
        mcp_limiter_take(limiter, RT_STR("a"), NOW, UINT64_MAX);
    cr_assert_eq(mcp_limiter_take(limiter, RT_STR("a"), NOW, NOW + MCP_SECOND / 2), 0);
    cr_assert_eq(mcp_limiter_take(limiter, RT_STR("a"), NOW, UINT64_MAX), NOW + MCP_SECOND);
}

Test(mcp_limiter, each_tool_has_its_own_turns)
{
    for (unsigned i = 0; i < 20; i++)
        mcp_limiter_take(limiter, RT_STR("a"), NOW, UINT64_MAX);
    cr_assert_eq(mcp_limiter_take(limiter, RT_STR("b"), NOW, UINT64_MAX), NOW);
}

Test(mcp_limiter, names_without_number_do_not_grow_it_without_end)
{
    char name[16];
    for (unsigned i = 0; i < 6000; i++) {
        snprintf(name, sizeof(name), "t%u", i);
        mcp_limiter_take(limiter, rt_str_of(name), NOW, UINT64_MAX);
    }
    cr_assert_gt(mcp_limiter_take(limiter, RT_STR("t5999"), NOW, UINT64_MAX), NOW);
}
