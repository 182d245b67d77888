/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/runtimes_internal.h"

#include <criterion/criterion.h>

static rt_runtime *opened;

static void open_it(void)
{
    opened = rt_placeholder_open();
}

static void close_it(void)
{
    rt_runtime_closep(&opened);
}

TestSuite(placeholder, .init = open_it, .fini = close_it);

Test(placeholder, execute_says_not_implemented_in_the_agreed_words)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_outcome outcome;
    rt_error err = { 0 };
    rt_json value;
    rt_run run = { .language = RT_STR("elixir"), .code = RT_STR("1 + 1") };
    cr_assert(opened->execute(opened, &run, &arena, &outcome, &err), "%s", err.text);
    cr_expect(outcome.status == RT_STATUS_SUCCESS && outcome.has_value && !outcome.has_error);
    cr_assert(rt_json_parse(outcome.value, &arena, &value, &err), "%s", err.text);
    cr_expect_eq(rt_json_count(value), 3, "these fields and no others");
    cr_expect(rt_str_eq_c(rt_json_str(rt_json_get_c(value, "status")), "not_implemented"));
    cr_expect(
        rt_str_eq_c(rt_json_str(rt_json_get_c(value, "message")), "Code execution coming soon"));
    cr_expect(rt_str_eq_c(rt_json_str(rt_json_get_c(value, "fallback_action")),
                          "describe_computation_only"));
}

Test(placeholder, its_outcome_can_be_written)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_outcome outcome;
    rt_json_writer w;
    rt_json doc;
    rt_run run = { .language = RT_STR("python") };
    opened->execute(opened, &run, &arena, &outcome, NULL);
    rt_json_begin(&w, &text);
    rt_outcome_write(&outcome, &w);
    cr_assert(rt_json_parse(rt_buf_str(&text), &arena, &doc, NULL));
    cr_expect(rt_str_eq_c(rt_json_str(rt_json_get_c(doc, "runtime")), "placeholder"));
}

Test(placeholder, validate_is_not_implemented_and_not_an_error)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_verdict verdict = { .is_implemented = true };
    cr_expect(
        opened->validate(opened, RT_STR("import os"), RT_STR("python"), &arena, &verdict, NULL));
    cr_expect(!verdict.is_implemented && !verdict.is_safe);
    cr_expect(rt_str_eq_c(verdict.risks, "[]"));
}

Test(placeholder, languages_are_python_javascript_sql_and_elixir)
{
    static const char *const names[] = { "python", "javascript", "sql", "elixir" };
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_language list[8];
    cr_assert_eq(opened->languages(opened, &arena, list, RT_COUNT(list)), 4);
    for (size_t i = 0; i < 4; i++) {
        cr_expect_str_eq(list[i].name, names[i]);
        cr_expect(!list[i].is_available);
    }
    cr_expect_eq(opened->languages(opened, &arena, list, 2), 2, "no more than there is room for");
}
