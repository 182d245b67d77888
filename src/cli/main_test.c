/* SPDX-License-Identifier: Apache-2.0 */
/* main.c is compiled in here under another name, since Criterion brings a main() of its own. */
#define main retort_main
int retort_main(int argc, char **argv);
#include "cli/main.c"
#undef main

#include <criterion/criterion.h>
#include <criterion/redirect.h>

static char *words[] = { "run",    "--timeout=5s", "--memory", "64M",   "-l",
                         "python", "--code=",      "-l=x",     "--mem", NULL };
enum { WORDS = RT_COUNT(words) - 1 };

static const char *option(int *i, const char *name)
{
    rt_error err = { 0 };
    const char *value = cli_option(WORDS, words, i, name, &err);
    cr_expect_eq(err.code, RT_OK, "%s", err.text);
    return value;
}

Test(main, an_option_takes_its_value_from_the_same_word_or_the_next)
{
    int i = 1;
    cr_expect_str_eq(option(&i, "--timeout"), "5s");
    cr_expect_eq(i, 1);
    i = 2;
    cr_expect_str_eq(option(&i, "--memory"), "64M");
    cr_expect_eq(i, 3);
    i = 4;
    cr_expect_str_eq(option(&i, "-l"), "python");
    i = 6;
    cr_expect_str_eq(option(&i, "--code"), "", "an empty value is a value");
}

Test(main, an_option_is_a_whole_word)
{
    int i = 1;
    cr_expect_null(option(&i, "--time"));
    cr_expect_null(option(&i, "--timeout=5s=x"));
    cr_expect_null(option(&i, "-l"));
    i = 7;
    cr_expect_null(option(&i, "-l"), "short ones take no equals sign");
    i = 8;
    cr_expect_null(option(&i, "--memory"));
    cr_expect_eq(i, 8);
}

Test(main, an_option_without_its_value_is_an_error)
{
    int i = 8;
    rt_error err = { 0 };
    cr_expect_null(cli_option(WORDS, words, &i, "--mem", &err));
    cr_expect_eq(err.code, RT_INVALID);
    cr_expect_str_eq(err.text, "--mem needs a value");
}

Test(main, the_exit_status_fits_the_error, .init = cr_redirect_stderr)
{
    static const struct {
        rt_code code;
        int status;
    } cases[] = {
        { RT_INVALID, 2 }, { RT_NOT_FOUND, 2 },   { RT_UNSUPPORTED, 2 }, { RT_LIMIT, 2 },
        { RT_DENIED, 2 },  { RT_UNAVAILABLE, 3 }, { RT_INTERNAL, 1 },    { RT_SYSTEM, 1 }
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        rt_error err = { 0 };
        rt_fail(&err, cases[i].code, "why");
        cr_expect_eq(cli_complain(&err), cases[i].status, "%s", rt_code_name(cases[i].code));
    }
}

static int call(const char *word)
{
    char *argv[] = { "retort", (char *)(uintptr_t)word, NULL };
    return retort_main(word ? 2 : 1, argv);
}

static void redirect(void)
{
    cr_redirect_stdout();
    cr_redirect_stderr();
}

Test(main, help_is_good_and_nothing_is_not, .init = redirect)
{
    cr_expect_eq(call("--help"), 0);
    cr_expect_eq(call("-h"), 0);
    cr_expect_eq(call("--version"), 0);
    cr_expect_eq(call(NULL), 2);
    cr_expect_eq(call("dance"), 2);
    cr_expect_eq(call(""), 2);
}
