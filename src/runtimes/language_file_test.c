/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/runtimes_internal.h"

#include <criterion/criterion.h>

#define RUBY "name: ruby\nending: rb\nrun: [ruby, '{file}']\n"

static bool parse(const char *yaml, rt_arena *arena, language_file *out, rt_error *err)
{
    return runtimes_language_parse(rt_str_of(yaml), arena, out, err);
}

static void expect_refused(const char *yaml, const char *why)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    language_file l;
    rt_error err = { 0 };
    cr_expect(!parse(yaml, &arena, &l, &err), "%s", yaml);
    cr_expect(strstr(err.text, why), "'%s' does not say '%s'", err.text, why);
}

Test(language_file, a_few_lines_make_a_language)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    language_file l;
    rt_error err = { 0 };
    cr_assert(parse(RUBY "aliases: [rb, jruby]\nversion: [ruby, -v]\nenv: { A: b=c }\n"
                         "needs: [/opt/ruby, '/etc/ruby-*']\nerror: '(?<line>\\d+)'\n"
                         "package: ruby\nabout: Ruby\n",
                    &arena, &l, &err),
              "%s", err.text);
    cr_expect_str_eq(l.language.name, "ruby");
    cr_expect_str_eq(l.language.aliases, " rb jruby ");
    cr_expect(l.language.is_program);
    cr_expect(rt_str_eq_c(l.file, "main.rb"));
    cr_expect_eq(l.run.count, 2);
    cr_expect_eq(l.asks.count, 2);
    cr_expect_eq(l.needs.count, 2);
    cr_expect(rt_str_eq_c(l.env[0].name, "A") && rt_str_eq_c(l.env[0].value, "b=c"));
}

Test(language_file, what_is_missing_is_named)
{
    expect_refused("", "'name' is missing");
    expect_refused("name: x\n", "'ending' is missing");
    expect_refused("name: x\nending: x\n", "'run' is missing");
    expect_refused("name: x\nending: x\nrun: [x]\n", "where {file} goes");
    expect_refused("name: x\nending: x\nrun: ['{program}']\ncompile: [cc]\n", "'compile' does not");
    expect_refused("name: x\nending: x\nrun: [x, '{file}']\nwaits: [x]\n", "instead of 'run'");
}

Test(language_file, what_is_wrong_is_named_with_its_line)
{
    expect_refused(RUBY "verson: [x]\n", "line 4: unknown key 'verson'; did you mean version?");
    expect_refused(RUBY "needs: [etc]\n", "line 4: 'etc' is not an absolute path");
    expect_refused(RUBY "needs: [/etc/../root]\n", "must not contain ., .. or //");
    expect_refused(RUBY "needs: [/root/.rbenv]\n", "cannot be shown in cells");
    expect_refused(RUBY "needs: [/]\n", "is not an absolute path below /");
    expect_refused(RUBY "needs: ['/*']\n", "must name its first directory");
    expect_refused(RUBY "path: [/proc/1/root]\n", "cannot be shown in cells");
    expect_refused(RUBY "error: '('\n", "is no regular expression");
    expect_refused(RUBY "error: 'x'\n", "names no group");
    expect_refused(RUBY "file: ../x.rb\n", "is no plain file name");
    expect_refused(RUBY "aliases: [Rb]\n", "use small letters");
    expect_refused(RUBY "env: [A]\n", "takes a map");
    expect_refused(RUBY "version: ruby\n", "takes a list");
    expect_refused("name: Ruby\n", "line 1: 'Ruby' is no name");
    expect_refused("name: ruby\nending: .rb\n", "without the dot");
    expect_refused(RUBY "name: twice\n", "line 4: 'name' stands here a second time");
    expect_refused(RUBY "env: { '': x }\n", "has no name");
}
