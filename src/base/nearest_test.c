#include <criterion/criterion.h>

#include "base/nearest.h"

static const char *const known[] = { "server.port", "server.bind", "cache.enabled", "log.level" };

static const char *nearest(const char *wrong, char hint[RT_NEAREST_HINT])
{
    rt_nearest near;
    rt_nearest_start(&near, rt_str_of(wrong));
    for (size_t i = 0; i < RT_COUNT(known); i++)
        rt_nearest_try(&near, rt_str_of(known[i]));
    return rt_nearest_hint(&near, "; none", hint);
}

Test(nearest, a_slip_of_the_hand_is_recognised)
{
    char hint[RT_NEAREST_HINT];
    cr_assert_str_eq(nearest("server.prot", hint), "; did you mean server.port?");
    cr_assert_str_eq(nearest("Server.Port", hint), "; did you mean server.port?");
    cr_assert_str_eq(nearest("cache-enabled", hint), "; did you mean cache.enabled?");
    cr_assert_str_eq(nearest("port", hint), "; did you mean server.port?");
}

Test(nearest, what_is_far_from_all_gets_no_suggestion)
{
    char hint[RT_NEAREST_HINT], longest[300];
    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    cr_assert_str_eq(nearest("zebra", hint), "; none");
    cr_assert_str_eq(nearest("", hint), "; none");
    cr_assert_str_eq(nearest(longest, hint), "; none");
}
