/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/runtimes_internal.h"

#include <criterion/criterion.h>

static rt_arena arena; /* of the test: each has its own process */

static void release(void)
{
    rt_arena_done(&arena);
}

TestSuite(policy_yaml, .fini = release);

static rt_policy parse(const char *yaml)
{
    rt_policy p = { 0 };
    rt_error err = { 0 };
    cr_assert(rt_policy_parse(rt_str_of(yaml), &arena, &p, &err), "%s", err.text);
    return p;
}

static void expect_refused(rt_str yaml, rt_code code, const char *why)
{
    rt_policy p = { .wall_ms = 77 };
    rt_error err = { 0 };
    cr_expect(!rt_policy_parse(yaml, &arena, &p, &err), "accepted: %.*s",
              RT_FMT(rt_str_slice(yaml, 0, 60)));
    cr_expect_eq(err.code, code, "%s", err.text);
    cr_expect(strstr(err.text, why), "'%s' does not say '%s'", err.text, why);
    cr_expect_eq(p.wall_ms, 77, "a failure leaves the policy alone");
}

Test(policy_yaml, a_file_says_what_differs_from_a_preset)
{
    rt_policy p = parse("# for reports\n"
                        "extends: voice\n"
                        "timeout: 10s\n"
                        "memory: \"256M\"\n"
                        "subprocess: deny\n"
                        "read:\n  - /usr\n  - '/etc'\n"
                        "imports: [math, numpy]\n"
                        "env: { REGION: eu, EMPTY: '' , X: a=b}\n");
    cr_expect(p.wall_ms == 10000 && p.memory_bytes == 256ull << 20 && p.is_exec_denied);
    cr_expect_eq(p.cpu_ms, 5000, "from the preset");
    cr_assert(p.read_path_count == 2 && p.env_count == 3);
    cr_expect(rt_str_eq_c(p.read_paths[1], "/etc"));
    cr_expect(rt_str_eq_c(p.env[0].name, "REGION") && rt_str_eq_c(p.env[0].value, "eu"));
    cr_expect(rt_str_eq_c(p.env[1].name, "EMPTY") && p.env[1].value.len == 0);
    cr_expect(rt_str_eq_c(p.env[2].name, "X") && rt_str_eq_c(p.env[2].value, "a=b"));
}

Test(policy_yaml, an_empty_file_is_the_default)
{
    static const char *const empty[] = { "", "\n\n", "# nothing\n", "{}", "---\n{}\n...\n" };
    for (size_t i = 0; i < RT_COUNT(empty); i++)
        cr_expect_eq(parse(empty[i]).wall_ms, 30000, "%s", empty[i]);
    rt_policy p;
    cr_expect(rt_policy_parse((rt_str){ 0 }, &arena, &p, &(rt_error){ 0 }));
}

Test(policy_yaml, lists_may_be_scalars_and_variables_may_be_a_list)
{
    rt_policy p = parse("imports: math, json\nread: /usr\nenv: [A=1, B=2]\n");
    cr_expect(p.import_count == 2 && p.read_path_count == 1 && p.env_count == 2);
}

Test(policy_yaml, an_empty_list_of_imports_allows_none)
{
    rt_policy p = parse("imports: []\n");
    cr_expect(p.has_import_list && p.import_count == 0);
    p = parse("read: []\nenv: {}\n");
    cr_expect(p.read_path_count == 0 && p.env_count == 0 && p.files == RT_FILES_NONE);
}

Test(policy_yaml, an_unknown_key_is_answered_with_line_and_suggestion)
{
    expect_refused(RT_STR("timeout: 5s\n\nmemroy: 64M\n"), RT_INVALID,
                   "line 3: policy: unknown key 'memroy'; did you mean memory?");
    expect_refused(RT_STR("extends: quick\nextend: quick\n"), RT_INVALID, "line 2");
}

Test(policy_yaml, a_bad_value_is_answered_with_its_line)
{
    expect_refused(RT_STR("cpu: 1s\ntimeout: soon\n"), RT_INVALID, "line 2");
    expect_refused(RT_STR("cpu: 1s\ntimeout:\n"), RT_INVALID, "timeout");
    expect_refused(RT_STR("read: [/usr,\n  /no/such]\n"), RT_NOT_FOUND, "line 2");
    expect_refused(RT_STR("extends: slow\n"), RT_NOT_FOUND, "line 1: there is no preset 'slow'");
}

/* Taken in order, the second line would undo the first without a word. */
Test(policy_yaml, a_preset_does_not_undo_what_stands_before_it)
{
    rt_policy p = parse("subprocess: deny\ntimeout: 7s\nextends: voice\n");
    cr_expect(p.is_exec_denied && p.wall_ms == 7000 && p.has_import_list);
}

Test(policy_yaml, a_key_stands_there_once)
{
    expect_refused(RT_STR("extends: voice\nextends: default\n"), RT_INVALID,
                   "line 2: 'extends' stands here a second time");
    expect_refused(RT_STR("timeout: 1s\ncpu: 1s\ntimeout: 9s\n"), RT_INVALID,
                   "line 3: 'timeout' stands here a second time");
}

Test(policy_yaml, anchors_and_aliases_are_refused)
{
    expect_refused(RT_STR("timeout: &t 5s\ncpu: *t\n"), RT_INVALID, "line 1: anchors");
    expect_refused(RT_STR("read: &r [/usr]\n"), RT_INVALID, "anchors");
    expect_refused(RT_STR("env: &e {A: 1}\n"), RT_INVALID, "anchors");
    expect_refused(RT_STR("&k timeout: 5s\n"), RT_INVALID, "anchors");
    expect_refused(RT_STR("&m {timeout: 5s}\n"), RT_INVALID, "anchors");
    expect_refused(RT_STR("read: [/usr, &a /etc]\n"), RT_INVALID, "anchors");
    expect_refused(RT_STR("env: {A: &a 1}\n"), RT_INVALID, "anchors");
    expect_refused(RT_STR("read: *nothing\n"), RT_INVALID, "line 1");
}

Test(policy_yaml, nesting_is_refused_where_a_plain_value_belongs)
{
    expect_refused(RT_STR("timeout: [5s]\n"), RT_INVALID,
                   "line 1: 'timeout' takes one plain value");
    expect_refused(RT_STR("timeout: {a: 5s}\n"), RT_INVALID, "'timeout' takes one plain value");
    expect_refused(RT_STR("read: {a: /usr}\n"), RT_INVALID, "'read' takes one plain value");
    expect_refused(RT_STR("read: [[/usr]]\n"), RT_INVALID, "a list of plain values");
    expect_refused(RT_STR("env: {A: {B: c}}\n"), RT_INVALID, "a map of plain values");
    expect_refused(RT_STR("env: {A: [b]}\n"), RT_INVALID, "a map of plain values");
    expect_refused(RT_STR("env: {[a]: b}\n"), RT_INVALID, "a map of plain values");
    expect_refused(RT_STR("[a]: b\n"), RT_INVALID, "a key is expected");
    expect_refused(RT_STR("extends: [quick]\n"), RT_INVALID, "takes one plain value");
}

Test(policy_yaml, what_is_no_map_is_refused)
{
    expect_refused(RT_STR("just words\n"), RT_INVALID, "key: value");
    expect_refused(RT_STR("- timeout\n- 5s\n"), RT_INVALID, "key: value");
}

Test(policy_yaml, a_second_document_is_not_passed_over_in_silence)
{
    expect_refused(RT_STR("timeout: 5s\n---\nmemory: 16M\n"), RT_INVALID, "one document");
}

Test(policy_yaml, broken_yaml_is_answered_with_a_line)
{
    static const char *const broken[] = { "timeout: 5s\n  memory: 1\n",
                                          "a: [1, 2\n",
                                          "a: {b: c\n",
                                          "a: 'x\n",
                                          "\tb: c\n",
                                          "a: \"\\q\"\n",
                                          "%YAML 9.9\n---\na: b\n",
                                          "a: b: c\n",
                                          "}",
                                          "? ",
                                          "@x: 1\n" };
    for (size_t i = 0; i < RT_COUNT(broken); i++)
        expect_refused(rt_str_of(broken[i]), RT_INVALID, "policy");
    expect_refused(RT_STR("a: \xff\xfe\n"), RT_INVALID, "policy");
    expect_refused(RT_STR("timeout\0: 5s\n"), RT_INVALID, "policy");
}

Test(policy_yaml, a_variable_cannot_hide_bytes_behind_a_nul)
{
    expect_refused(RT_STR("env: { A: \"x\\0y\" }\n"), RT_INVALID, "env");
    expect_refused(RT_STR("env: { \"A\\0B\": x }\n"), RT_INVALID, "env");
}

Test(policy_yaml, a_name_of_a_variable_has_no_equals_sign)
{
    expect_refused(RT_STR("env: { \"A=B\": c }\n"), RT_INVALID, "env");
}

Test(policy_yaml, a_big_file_is_refused_and_a_deep_one_is_survived)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_policy p;
    while (text.len < 65536 - 10)
        rt_buf_add(&text, RT_STR("# filler\n"));
    cr_expect(rt_policy_parse(rt_buf_str(&text), &arena, &p, &(rt_error){ 0 }));
    rt_buf_add(&text, RT_STR("# filler\n# filler\n"));
    expect_refused(rt_buf_str(&text), RT_LIMIT, "at most 65536");
    rt_buf_reset(&text);
    for (int i = 0; i < 60000; i++)
        rt_buf_addc(&text, '[');
    expect_refused(rt_buf_str(&text), RT_INVALID, "");
    rt_buf_reset(&text);
    rt_buf_add(&text, RT_STR("read: "));
    for (int i = 0; i < 60000; i++)
        rt_buf_addc(&text, i % 2 ? '{' : '[');
    expect_refused(rt_buf_str(&text), RT_INVALID, "");
}
