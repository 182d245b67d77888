/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/runtimes_internal.h"

#include <criterion/criterion.h>

static const char *language(const rt_language *found)
{
    return found ? found->name : "none";
}

Test(languages, names_and_aliases_are_found)
{
    static const char *const cases[][2] = {
        { "python", "python" },
        { "py", "python" },
        { "python3", "python" },
        { "javascript", "javascript" },
        { "js", "javascript" },
        { "node", "javascript" },
        { "nodejs", "javascript" },
        { "typescript", "typescript" },
        { "ts", "typescript" },
        { "bash", "bash" },
        { "sh", "bash" },
        { "shell", "bash" },
        { "", "none" },
        { " ", "none" },
        { " py ", "none" },
        { "py python3", "none" },
        { "pyt", "none" },
        { "sql", "sql" },
        { "sqlite", "sql" },
        { "wasm", "wasm" },
        { "ruby", "ruby" },
        { "rb", "ruby" },
        { "c++", "cpp" },
        { "elixir", "elixir" },
        { "cobol", "none" },
        { "Python", "none" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++)
        cr_expect_str_eq(language(rt_language_find(rt_str_of(cases[i][0]))), cases[i][1], "'%s'",
                         cases[i][0]);
    cr_expect_null(rt_language_find((rt_str){ 0 }));
}

Test(languages, a_file_is_known_by_its_ending)
{
    static const char *const cases[][2] = {
        { "a.py", "python" },
        { "/x/y/a.js", "javascript" },
        { "a.mjs", "javascript" },
        { "a.cjs", "javascript" },
        { "a.ts", "typescript" },
        { "a.mts", "typescript" },
        { "a.sh", "bash" },
        { "a.bash", "bash" },
        { "a.b.py", "python" },
        { ".py", "python" },
        { "a.PY", "none" },
        { "py", "none" },
        { "a.", "none" },
        { "", "none" },
        { ".", "none" },
        { "dir.py/file", "none" },
        { "/", "none" },
        { "a.py/", "none" },
        { "a.txt", "none" },
        { "a.sql", "sql" },
        { "a.wasm", "wasm" },
        { "a.rb", "ruby" },
        { "a.c", "c" },
        { "a.exs", "elixir" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++)
        cr_expect_str_eq(language(rt_language_of_file(rt_str_of(cases[i][0]))), cases[i][1], "'%s'",
                         cases[i][0]);
    cr_expect_null(rt_language_of_file((rt_str){ 0 }));
}

Test(languages, an_unknown_one_is_answered_with_those_there_are)
{
    rt_error err = { 0 };
    cr_expect(!rt_language_unknown(RT_STR("cobol"), &err));
    cr_expect_eq(err.code, RT_UNSUPPORTED);
    cr_expect(strstr(err.text, "unknown language 'cobol'; use one of: python, javascript, "
                               "typescript, bash, sql, wasm, awk, c, "),
              "%s", err.text);
    cr_expect(!rt_language_unknown((rt_str){ 0 }, &err));
    cr_expect_eq(err.code, RT_INVALID);
    for (const char *at = strchr(err.text, ':') + 1; at; at = strchr(at, ',')) {
        rt_str rest = rt_str_of(at + (*at == ',')), name;
        rt_str_cut(&rest, ',', &name);
        cr_expect_not_null(rt_language_find(rt_str_trim(name)), "'%.*s' is offered", RT_FMT(name));
        at++;
    }
}

Test(languages, each_has_a_guest)
{
    const rt_language *l;
    cr_assert_null(runtimes_languages_error(), "%s", runtimes_languages_error()->text);
    for (size_t i = 0; (l = runtimes_language_at(i)); i++) {
        const guest_kind *kind = runtimes_guest(rt_str_of(l->name));
        cr_assert_not_null(kind, "%s", l->name);
        cr_expect_str_eq(kind->language, l->name);
        cr_expect_lt(strlen(kind->zygote), RT_ZYGOTE_NAME_MAX);
        cr_expect_eq(kind->is_program, l->is_program);
        const checker *check = runtimes_checker(rt_str_of(l->name));
        cr_expect(!check || runtimes_guest(rt_str_of(check->runs_in)),
                  "the checker of %s runs somewhere", l->name);
    }
    cr_expect_null(runtimes_guest(RT_STR("py")), "aliases are resolved before");
    cr_expect_null(runtimes_checker(RT_STR("py")));
}

Test(languages, those_with_a_parser_have_a_checker)
{
    static const char *const names[] = { "python", "javascript", "typescript", "bash" };
    for (size_t i = 0; i < RT_COUNT(names); i++)
        cr_expect_not_null(runtimes_checker(rt_str_of(names[i])), "%s", names[i]);
}

Test(languages, only_code_that_names_a_heavy_module_gets_the_heavy_zygote)
{
    const guest_kind *python = runtimes_guest(RT_STR("python")),
                     *node = runtimes_guest(RT_STR("javascript"));
    cr_expect(rt_str_eq_c(runtimes_zygote_for(python, &(rt_run){ .code = RT_STR("return 1") }), "python"));
    cr_expect(
        rt_str_eq_c(runtimes_zygote_for(python, &(rt_run){ .code = RT_STR("import numpy as np") }), "python-data"));
    cr_expect(
        rt_str_eq_c(runtimes_zygote_for(python, &(rt_run){ .code = RT_STR("from pandas import *") }), "python-data"));
    cr_expect(rt_str_eq_c(runtimes_zygote_for(node, &(rt_run){ .code = RT_STR("import numpy") }), "node"));
    cr_expect(rt_str_eq_c(runtimes_zygote_for(python, &(rt_run){ .code = (rt_str){ 0 } }), "python"));
}
