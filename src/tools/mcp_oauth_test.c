/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_oauth_test.c - what a challenge says. */
#include "tools/mcp_oauth.h"

#include <criterion/criterion.h>

static void says(const char *header, const char *metadata, const char *scope, const char *error)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    mcp_challenge c;
    mcp_challenge_read(rt_str_of(header), &arena, &c);
    cr_assert(rt_str_eq_c(c.resource_metadata, metadata), "%s", header);
    cr_assert(rt_str_eq_c(c.scope, scope), "%s", header);
    cr_assert(rt_str_eq_c(c.error, error), "%s", header);
}

Test(mcp_oauth, a_challenge_is_read_in_any_order_and_spelling)
{
    says("Bearer resource_metadata=\"https://x/y\", scope=\"a b\"", "https://x/y", "a b", "");
    says("bearer Error=insufficient_scope,SCOPE=\"q\\\"r\"", "", "q\"r", "insufficient_scope");
    says("Basic realm=\"x\", Bearer scope=\"a\"", "", "a", "");
}

Test(mcp_oauth, a_challenge_that_is_none_says_nothing)
{
    says("", "", "", "");
    says("Bearer", "", "", "");
    says("Bearer scope", "", "", "");
    says("Bearer scope=", "", "", "");
    says("Bearer scope=\"", "", "", "");
    says("Bearer scope=\"a\\", "", "a\\", "");
    says(",,,==", "", "", "");
}
