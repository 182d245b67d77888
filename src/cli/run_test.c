/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `retort run`, and where files may be written; running is shown end to end. */
#define cli_run tested_run
#include "cli/run.c"

#include <criterion/criterion.h>

static rt_arena arena; /* of the test: each has its own process */

static void release(void)
{
    rt_arena_done(&arena);
}

TestSuite(run, .fini = release);

static options read_words(rt_error *err, const char *const *words)
{
    options o = { .arena = &arena, .input_fd = -1, .pool = -1 };
    char *argv[16] = { "run" };
    int argc = 1;
    *err = (rt_error){ 0 };
    for (; *words; words++)
        argv[argc++] = (char *)(uintptr_t)*words;
    bool ok = read_arguments(&o, argc, argv, err);
    cr_expect_eq(ok, err->code == RT_OK);
    return o;
}

#define READ(err, ...) read_words(&(err), (const char *const[]){ __VA_ARGS__, NULL })

Test(run, a_file_or_code_is_needed_and_not_both)
{
    rt_error err = { 0 };
    cr_expect_str_eq(READ(err, "a.py").file, "a.py");
    cr_expect_eq(err.code, RT_OK);
    cr_expect_str_eq(READ(err, "-l", "python", "-c", "return 1").code, "return 1");
    cr_expect_eq(err.code, RT_OK);
    READ(err, "--json");
    cr_expect(strstr(err.text, "MISSING_CODE"), "%s", err.text);
    READ(err, "a.py", "-c", "1");
    cr_expect(strstr(err.text, "not both"), "%s", err.text);
    READ(err, "a.py", "b.py");
    cr_expect(strstr(err.text, "one file at a time"), "%s", err.text);
}

Test(run, policy_keys_are_flags_that_refine_the_policy_wherever_it_stands)
{
    rt_error err = { 0 };
    options o = READ(err, "a.py", "--timeout", "7s", "-p", "voice", "--memory=64M");
    cr_assert_eq(err.code, RT_OK, "%s", err.text);
    cr_expect(o.policy.wall_ms == 7000 && o.policy.memory_bytes == 64 << 20);
    cr_expect_eq(o.policy.cpu_ms, 5000, "from the preset");
    READ(err, "a.py", "--timeout", "soon");
    cr_expect_eq(err.code, RT_INVALID);
    err = (rt_error){ 0 };
    READ(err, "a.py", "--policy", "nonsense");
    cr_expect(strstr(err.text, "there is no policy 'nonsense'"), "%s", err.text);
}

Test(run, unknown_options_and_missing_values_are_refused)
{
    static const char *const bad[][2] = { { "--tiemout", NULL },  { "-x", NULL },
                                          { "--repeat", "many" }, { "--pool", "-1" },
                                          { "--pause", "a bit" }, { "--timeout", NULL } };
    for (size_t i = 0; i < RT_COUNT(bad); i++) {
        rt_error err = { 0 };
        READ(err, "a.py", bad[i][0], bad[i][1]);
        cr_expect_eq(err.code, RT_INVALID, "%s: %s", bad[i][0], err.text);
    }
}

Test(run, input_is_json_or_a_file)
{
    rt_error err = { 0 };
    options o = READ(err, "a.py", "-i", "{\"a\":1}");
    cr_expect(err.code == RT_OK && o.has_input && !o.is_input_text);
    READ(err, "a.py", "-i", "{a:1}");
    cr_expect(strstr(err.text, "--input is not JSON"), "%s", err.text);
    err = (rt_error){ 0 };
    o = READ(err, "a.py", "-i", "@/dev/null");
    cr_expect(err.code == RT_OK && o.has_input_fd && o.is_input_text);
    rt_closep(&o.input_fd);
    READ(err, "a.py", "-i", "@/no/such/file");
    cr_expect_eq(err.code, RT_NOT_FOUND);
    READ(err, "a.py", "-i", "@/usr");
    cr_expect(strstr(err.text, "is a directory"), "%s", err.text);
}

Test(run, a_language_is_named_or_known_by_the_file)
{
    options o = { .arena = &arena, .code = "1" };
    rt_run wanted = { 0 };
    rt_error err = { 0 };
    cr_expect(!read_code(&o, &wanted, &err));
    cr_expect(strstr(err.text, "which language?"), "%s", err.text);
    o.language = "js";
    cr_expect(read_code(&o, &wanted, &err) && rt_str_eq_c(wanted.language, "js"));
}

/* Names come from inside a cell. */
Test(run, an_artifact_cannot_leave_its_directory)
{
    static const char *const bad[] = { "",  "/etc/passwd", "../x", "a/../../x", "..",
                                       ".", "a/./b",       "a//b", "a/" };
    for (size_t i = 0; i < RT_COUNT(bad); i++)
        cr_expect(!is_plain_name(rt_str_of(bad[i])), "%s", bad[i]);
    cr_expect(!is_plain_name(RT_STR("a\0/../b")));
    cr_expect(is_plain_name(RT_STR("a")) && is_plain_name(RT_STR("a/b..c/...")));
}

Test(run, an_artifact_is_saved_below_its_directory_and_not_through_a_link)
{
    char dir[] = "/tmp/retort-run-XXXXXX", path[64], outside[64];
    cr_assert_not_null(mkdtemp(dir));
    options o = { .arena = &arena, .out_dir = dir };
    rt_file file = { .name = RT_STR("a/b.txt"), .data = RT_STR("data"), .size = 4 };
    rt_error err = { 0 };
    cr_assert(save_artifact(&o, &file, &err), "%s", err.text);
    snprintf(path, sizeof(path), "%s/a/b.txt", dir);
    rt_str text;
    cr_assert(rt_read_file(path, 10, &arena, &text, &err), "%s", err.text);
    cr_expect(rt_str_eq_c(text, "data"));
    unlink(path);
    snprintf(outside, sizeof(outside), "%s/outside", dir);
    cr_assert_eq(symlink(outside, path), 0);
    cr_expect(!save_artifact(&o, &file, &err), "the last part is a link");
    cr_expect_neq(access(outside, F_OK), 0);
    unlink(path);
    snprintf(path, sizeof(path), "%s/a", dir);
    rmdir(path);
    rmdir(dir);
}

Test(run, the_exit_status_tells_time_and_memory_apart)
{
    cr_expect_eq(exit_status(&(rt_outcome){ .status = RT_STATUS_TIMEOUT, .exit_code = 9 }), 124);
    cr_expect_eq(exit_status(&(rt_outcome){ .status = RT_STATUS_MEMORY_ERROR, .exit_code = 1 }),
                 137);
    cr_expect_eq(exit_status(&(rt_outcome){ .status = RT_STATUS_FAILED, .exit_code = 7 }), 7);
    cr_expect_eq(exit_status(&(rt_outcome){ 0 }), 0);
}
