/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What code, tools and the record see of personal data, on a passage with nothing but a vault.
 */
#include <criterion/criterion.h>

#include "engine/protect.h"

#define MAIL "ann@example.org"

static void desk_open(passage *p, rt_privacy_mode mode)
{
    *p = (passage){ .privacy = { .mode = mode }, .pii_lock = PTHREAD_MUTEX_INITIALIZER };
    if (mode == RT_PRIVACY_TOKENS)
        cr_assert(rt_privacy_vault_open(&p->vault, NULL));
}

static void desk_close(passage *p)
{
    rt_privacy_vault_closep(&p->vault);
}

#define DESK(name, mode)                                                                           \
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };                                              \
    rt_error err = { 0 };                                                                          \
    rt_str seen;                                                                                   \
    passage name RT_CLEANUP(desk_close);                                                           \
    desk_open(&name, mode)

static void expect(rt_str got, const char *wanted)
{
    cr_expect(rt_str_eq_c(got, wanted), "got %.*s", RT_FMT(got));
}

Test(protect, a_result_reaches_code_as_tokens_and_a_granted_tool_gets_the_values)
{
    DESK(p, RT_PRIVACY_TOKENS);
    cr_assert(engine_protect_result(&p, RT_STR("{\"to\":\"" MAIL "\",\"n\":1.50}"), false, &arena,
                                    &seen, &err));
    expect(seen, "{\"to\":\"[EMAIL_1]\",\"n\":1.50}");
    cr_assert(engine_protect_arguments(&p, seen, true, &arena, &seen, &err), "%s", err.text);
    expect(seen, "{\"to\":\"" MAIL "\",\"n\":1.50}");
    cr_expect_eq(p.pii_in.counts[RT_PII_EMAIL], 1);
    cr_expect_eq(p.pii_out.total, 0);
}

Test(protect, a_tool_without_the_grant_gets_tokens_even_for_what_code_made_itself)
{
    DESK(p, RT_PRIVACY_TOKENS);
    cr_assert(engine_protect_text(&p, RT_STR("no such user " MAIL), &arena, &seen, &err));
    expect(seen, "no such user [EMAIL_1]");
    cr_assert(engine_protect_arguments(&p, RT_STR("[\"[EMAIL_1]\",\"bob@example.org\"]"), false,
                                       &arena, &seen, &err));
    expect(seen, "[\"[EMAIL_1]\",\"[EMAIL_2]\"]");
    cr_expect_eq(p.pii_out.counts[RT_PII_EMAIL], 1);
}

Test(protect, a_token_nobody_gave_out_is_an_error_that_shows_it)
{
    DESK(p, RT_PRIVACY_TOKENS);
    cr_assert(!engine_protect_arguments(&p, RT_STR("[\"[CARD_7]\"]"), true, &arena, &seen, &err));
    cr_expect_eq(err.code, RT_INVALID);
    cr_expect(strstr(err.text, "[CARD_7]"), "%s", err.text);
    cr_assert(
        engine_protect_arguments(&p, RT_STR("[\"[x] [NOTE_1]\"]"), true, &arena, &seen, &err));
    expect(seen, "[\"[x] [NOTE_1]\"]");
}

Test(protect, redaction_is_for_good)
{
    DESK(p, RT_PRIVACY_REDACT);
    cr_assert(engine_protect_result(&p, RT_STR("[\"" MAIL "\"]"), false, &arena, &seen, &err));
    expect(seen, "[\"[EMAIL_REDACTED]\"]");
    cr_assert(engine_protect_arguments(&p, seen, true, &arena, &seen, &err));
    expect(seen, "[\"[EMAIL_REDACTED]\"]");
}

Test(protect, with_privacy_off_all_passes_but_a_risky_tool_is_on_record)
{
    DESK(p, RT_PRIVACY_OFF);
    cr_assert(engine_protect_result(&p, RT_STR("[\"" MAIL "\"]"), false, &arena, &seen, &err));
    expect(seen, "[\"" MAIL "\"]");
    cr_expect_eq(p.pii_in.total, 0);
    cr_assert(engine_protect_result(&p, RT_STR("[\"" MAIL "\"]"), true, &arena, &seen, &err));
    expect(seen, "[\"" MAIL "\"]");
    cr_expect_eq(p.pii_in.counts[RT_PII_EMAIL], 1);
    cr_assert(engine_protect_arguments(&p, seen, false, &arena, &seen, &err));
    expect(seen, "[\"" MAIL "\"]");
}

Test(protect, code_may_ask_how_many_there_are_of_which_type)
{
    DESK(p, RT_PRIVACY_TOKENS);
    cr_assert(engine_protect_result(&p, RT_STR("\"" MAIL "\""), false, &arena, &seen, &err));
    rt_str value =
        RT_STR("{\"a\":\"[EMAIL_1] and [EMAIL_1]\",\"b\":[\"[SSN_REDACTED]\",\"[EMAIL_9]\","
               "\"4111 1111 1111 1111\"],\"c\":3}");
    rt_privacy_report found;
    cr_assert(engine_pii_count(&p, value, &found, &err), "%s", err.text);
    cr_expect_eq(found.total, 4);
    cr_expect_eq(found.counts[RT_PII_EMAIL], 2);
    cr_expect_eq(found.counts[RT_PII_SSN], 1);
    cr_expect_eq(found.counts[RT_PII_CREDIT_CARD], 1);
    cr_expect(!engine_pii_count(&p, RT_STR("{"), &found, &err));
}

enum { CALLERS = 4, CALLS = 200 };

static void *call_often(void *arg)
{
    passage *p = arg;
    for (int i = 0; i < CALLS; i++) {
        rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
        rt_error err = { 0 };
        rt_str mail = rt_arena_printf(&arena, "[\"u%d.%p@example.org\"]", i, (void *)&arena);
        rt_str seen;
        cr_assert(engine_protect_result(p, mail, false, &arena, &seen, &err));
        cr_assert(!rt_str_eq(seen, mail));
        cr_assert(engine_protect_arguments(p, seen, true, &arena, &seen, &err), "%s", err.text);
        cr_assert(rt_str_eq(seen, mail), "%.*s", RT_FMT(seen));
    }
    return NULL;
}

Test(protect, several_calls_of_one_run_share_its_vault)
{
    passage p RT_CLEANUP(desk_close);
    pthread_t threads[CALLERS];
    desk_open(&p, RT_PRIVACY_TOKENS);
    for (int i = 0; i < CALLERS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, call_often, &p), 0);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
    cr_expect_eq(rt_privacy_vault_count(p.vault), CALLERS * CALLS);
    cr_expect_eq(p.pii_in.counts[RT_PII_EMAIL], CALLERS * CALLS);
}

Test(protect, a_shared_vault_is_wiped_by_who_closes_it_last)
{
    rt_privacy_vault *mine = NULL, *yours;
    size_t number;
    rt_str value;
    cr_assert(rt_privacy_vault_open(&mine, NULL));
    yours = rt_privacy_vault_share(mine);
    cr_assert(rt_privacy_vault_add(mine, RT_PII_EMAIL, RT_STR(MAIL), false, &number, NULL));
    rt_privacy_vault_closep(&mine);
    cr_assert(rt_privacy_vault_get(yours, RT_PII_EMAIL, number, &value, NULL));
    expect(value, MAIL);
    rt_privacy_vault_closep(&yours);
}
