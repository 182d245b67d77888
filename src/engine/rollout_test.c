/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/rollout.h"

#include <criterion/criterion.h>
#include <stdio.h>

enum { SUBJECTS = 10000 };

static bool is_in(unsigned subject, unsigned percent)
{
    char id[32];
    snprintf(id, sizeof(id), "user-%u", subject);
    return engine_rollout_includes(rt_str_of(id), percent);
}

static unsigned included(unsigned percent)
{
    unsigned count = 0;
    for (unsigned i = 0; i < SUBJECTS; i++)
        count += is_in(i, percent);
    return count;
}

Test(rollout, nobody_at_0_percent_and_everybody_at_100)
{
    cr_expect_eq(included(0), 0);
    cr_expect_eq(included(100), SUBJECTS);
    cr_expect_eq(included(4000000000u), SUBJECTS);
}

Test(rollout, a_part_of_the_users_is_about_that_part)
{
    static const unsigned steps[] = { 1, 10, 25, 50, 90 };
    for (size_t i = 0; i < RT_COUNT(steps); i++) {
        double share = 100.0 * included(steps[i]) / SUBJECTS;
        cr_expect_float_eq(share, steps[i], 1.5, "%u %%: %f %%", steps[i], share);
    }
}

Test(rollout, who_is_in_stays_in_when_more_are_let_in)
{
    for (unsigned i = 0; i < SUBJECTS; i++) {
        cr_expect(!is_in(i, 10) || is_in(i, 11));
        cr_expect(!is_in(i, 10) || is_in(i, 50));
    }
}

/* Nodes of different versions must agree, so the places themselves are part of the promise. */
Test(rollout, the_place_of_a_subject_is_fixed)
{
    static const struct {
        const char *subject;
        unsigned first; /* percent at which it is in */
    } cases[] = { { "", 60 }, { "alice", 36 }, { "session-1", 72 } };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        rt_str subject = rt_str_of(cases[i].subject);
        cr_expect(engine_rollout_includes(subject, cases[i].first), "%s", cases[i].subject);
        cr_expect(!engine_rollout_includes(subject, cases[i].first - 1), "%s", cases[i].subject);
    }
}
