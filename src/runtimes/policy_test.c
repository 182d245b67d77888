/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/runtimes_internal.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static rt_arena arena; /* of the test: each has its own process */

static void release(void)
{
    rt_arena_done(&arena);
}

TestSuite(policy, .fini = release);

static rt_policy preset(const char *name)
{
    const rt_policy *found = rt_policy_preset(rt_str_of(name));
    cr_assert_not_null(found, "%s", name);
    return *found;
}

static rt_error set(rt_policy *p, const char *key, const char *value)
{
    rt_error err = { 0 };
    bool ok = rt_policy_set(p, rt_str_of(key), rt_str_of(value), &arena, &err);
    cr_expect_eq(ok, err.code == RT_OK, "%s=%s: %s", key, value, err.text);
    return err;
}

static void expect_set(const char *key, const char *value, size_t offset, uint64_t wanted)
{
    rt_policy p = preset("default");
    rt_error err = set(&p, key, value);
    uint64_t got = *(uint64_t *)(void *)((char *)&p + offset);
    cr_expect(err.code == RT_OK && got == wanted, "%s=%s gave %llu, not %llu (%s)", key, value,
              (unsigned long long)got, (unsigned long long)wanted, err.text);
}

static void expect_refused(const char *key, const char *value, rt_code code, const char *why)
{
    rt_policy p = preset("default"), before = p;
    rt_error err = set(&p, key, value);
    cr_expect_eq(err.code, code, "%s=%s: %d", key, value, err.code);
    cr_expect(strstr(err.text, why), "%s=%s: '%s' does not say '%s'", key, value, err.text, why);
    cr_expect_eq(memcmp(&p, &before, sizeof(p)), 0, "%s=%s left something behind", key, value);
}

#define AT(field) offsetof(rt_policy, field)

Test(policy, times_take_units)
{
    expect_set("timeout", "5s", AT(wall_ms), 5000);
    expect_set("timeout", "5", AT(wall_ms), 5000);
    expect_set("timeout", "0.25s", AT(wall_ms), 250);
    expect_set("timeout", "100ms", AT(wall_ms), 100);
    expect_set("timeout", "5m", AT(wall_ms), 300000);
    expect_set("cpu", "1500ms", AT(cpu_ms), 1500);
}

Test(policy, sizes_take_units)
{
    expect_set("memory", "128M", AT(memory_bytes), 128ull << 20);
    expect_set("memory", "1.5GB", AT(memory_bytes), 1536ull << 20);
    expect_set("memory", "16777216", AT(memory_bytes), 16u << 20);
    expect_set("memory", "64G", AT(memory_bytes), 64ull << 30);
    expect_set("scratch", "1m", AT(scratch_bytes), 1 << 20);
    expect_set("output", "1K", AT(output_bytes), 1024);
    expect_set("code_size", "16MiB", AT(code_bytes), 16u << 20);
    expect_set("processes", "1", AT(processes), 1);
    expect_set("processes", "4096", AT(processes), 4096);
}

Test(policy, what_is_out_of_range_is_refused_with_the_range)
{
    static const char *const cases[][3] = {
        { "timeout", "99ms", "100ms to 300s" }, { "timeout", "301s", "100ms to 300s" },
        { "timeout", "0", "100ms to 300s" },    { "cpu", "1h", "100ms to 300s" },
        { "memory", "15M", "16M to 64G" },      { "memory", "65G", "16M to 64G" },
        { "memory", "0", "16M to 64G" },        { "scratch", "1K", "1M to 16G" },
        { "output", "1023", "1K to" },          { "output", "65M", "1K to" },
        { "code_size", "17M", "1K to 16M" },    { "processes", "0", "1 to 4096" },
        { "processes", "4097", "1 to 4096" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++)
        expect_refused(cases[i][0], cases[i][1], RT_INVALID, cases[i][2]);
}

/* What --help promises is what is accepted. */
Test(policy, the_largest_output_is_the_one_that_is_told)
{
    const char *about = NULL;
    const rt_policy_key *key;
    char most[16] = "";
    for (size_t i = 0; (key = rt_policy_key_at(i)); i++)
        if (strcmp(key->key, "output") == 0)
            about = key->about;
    cr_assert_not_null(about);
    cr_assert_eq(sscanf(strstr(about, "1K to "), "1K to %15s", most), 1);
    rt_policy p = preset("default");
    cr_expect_eq(set(&p, "output", most).code, RT_OK, "%s", about);
}

Test(policy, garbage_is_refused)
{
    static const char *const keys[] = { "timeout", "cpu",       "memory",   "scratch",
                                        "output",  "code_size", "processes" };
    static const char *const values[] = { "",      " ",        "x",
                                          "-1",    "+5",       "5 s",
                                          "1e3",   "0x10",     "5ss",
                                          "s",     "1.",       ".5",
                                          "1.2.3", "\xff\xfe", "18446744073709551616",
                                          "5s;rm" };
    for (size_t k = 0; k < RT_COUNT(keys); k++)
        for (size_t v = 0; v < RT_COUNT(values); v++)
            expect_refused(keys[k], values[v], RT_INVALID, keys[k]);
    expect_refused("processes", "64M", RT_INVALID, "not a whole number");
    expect_refused("memory", "5s", RT_INVALID, "memory");
}

Test(policy, choices_are_words)
{
    rt_policy p = preset("default");
    set(&p, "files", "sandboxed");
    cr_expect_eq(p.files, RT_FILES_SANDBOXED);
    set(&p, "files", "read_only");
    cr_expect_eq(p.files, RT_FILES_READ_ONLY);
    set(&p, "files", "none");
    cr_expect_eq(p.files, RT_FILES_NONE);
    set(&p, "subprocess", "deny");
    cr_expect(p.is_exec_denied);
    set(&p, "subprocess", "allow");
    cr_expect(!p.is_exec_denied);
    set(&p, "isolation", "strict");
    cr_expect_eq(p.isolation, RT_ISOLATION_STRICT);
    set(&p, "isolation", "standard");
    cr_expect_eq(p.isolation, RT_ISOLATION_STANDARD);
    set(&p, "network", "none");
    expect_refused("files", "all", RT_INVALID, "none read_only sandboxed");
    expect_refused("files", "", RT_INVALID, "one of");
    expect_refused("files", "none read_only", RT_INVALID, "one of");
    expect_refused("subprocess", "true", RT_INVALID, "allow deny");
    expect_refused("isolation", "Strict", RT_INVALID, "standard strict");
    expect_refused("network", "all", RT_UNSUPPORTED, "network can only be none");
}

Test(policy, a_read_path_is_what_the_link_leads_to)
{
    rt_policy p = preset("default");
    char dir[] = "/tmp/retort-policy-XXXXXX", link[64];
    cr_assert_not_null(mkdtemp(dir));
    snprintf(link, sizeof(link), "%s/link", dir);
    cr_assert_eq(symlink("/usr/bin/../lib", link), 0);
    cr_expect_eq(set(&p, "read", link).code, RT_OK);
    cr_expect_eq(set(&p, "read", "/usr").code, RT_OK);
    unlink(link);
    rmdir(dir);
    cr_assert_eq(p.read_path_count, 2);
    cr_expect(rt_str_eq_c(p.read_paths[0], "/usr/lib"));
    cr_expect(rt_str_eq_c(p.read_paths[1], "/usr"));
    cr_expect_eq(p.files, RT_FILES_SANDBOXED, "naming a path is asking for it");
}

Test(policy, naming_a_path_does_not_widen_read_only)
{
    rt_policy p = preset("default");
    set(&p, "files", "read_only");
    set(&p, "read", "/usr");
    cr_expect_eq(p.files, RT_FILES_READ_ONLY);
}

Test(policy, a_read_path_must_exist)
{
    expect_refused("read", "/no/such/path", RT_NOT_FOUND, "/no/such/path");
    expect_refused("read", "", RT_INVALID, "read");
    rt_policy p = preset("default");
    rt_error err = { 0 };
    cr_expect(!rt_policy_set(&p, RT_STR("read"), RT_STR("/usr\0/../etc"), &arena, &err));
    cr_expect_eq(err.code, RT_INVALID);
}

Test(policy, imports_are_a_list_with_commas)
{
    rt_policy p = preset("default");
    cr_expect(!p.has_import_list, "any import");
    set(&p, "imports", " math , json,,numpy.linalg");
    cr_assert(p.has_import_list && p.import_count == 3);
    cr_expect(rt_str_eq_c(p.imports[0], "math") && rt_str_eq_c(p.imports[2], "numpy.linalg"));
    p = preset("default");
    set(&p, "imports", "");
    cr_expect(p.has_import_list && p.import_count == 0, "an empty list is a list: none");
}

Test(policy, variables_are_names_and_values)
{
    rt_policy p = preset("default");
    set(&p, "env", "A=1");
    set(&p, "env", "B=x=y ");
    set(&p, "env", "C=");
    cr_assert_eq(p.env_count, 3);
    cr_expect(rt_str_eq_c(p.env[1].name, "B") && rt_str_eq_c(p.env[1].value, "x=y "));
    cr_expect(rt_str_eq_c(p.env[2].name, "C") && p.env[2].value.len == 0);
    expect_refused("env", "A", RT_INVALID, "NAME=VALUE");
    expect_refused("env", "=1", RT_INVALID, "NAME=VALUE");
    expect_refused("env", "", RT_INVALID, "NAME=VALUE");
    rt_error err = { 0 };
    cr_expect(!rt_policy_set(&p, RT_STR("env"), RT_STR("A=b\0c"), &arena, &err));
}

Test(policy, setting_does_not_touch_the_preset)
{
    rt_policy p = preset("voice");
    set(&p, "imports", "os");
    set(&p, "timeout", "300s");
    rt_policy again = preset("voice");
    cr_expect(again.import_count == 3 && again.wall_ms == 5000);
    cr_expect_eq(p.import_count, 4);
}

Test(policy, an_unknown_key_is_answered_with_the_nearest)
{
    expect_refused("timeuot", "5s", RT_INVALID, "did you mean timeout?");
    expect_refused("mem", "5s", RT_INVALID, "did you mean");
    expect_refused("memroy", "5s", RT_INVALID, "did you mean memory?");
    expect_refused("sub_process", "deny", RT_INVALID, "did you mean subprocess?");
    expect_refused("supercalifragilistic", "5s", RT_INVALID, "lists the keys");
    static char long_key[5000];
    memset(long_key, 'k', sizeof(long_key) - 1);
    expect_refused(long_key, "1", RT_INVALID, "unknown key 'kkkk");
}

/* ---- presets ---- */

Test(policy, presets_are_what_they_say)
{
    rt_policy p = preset("default");
    cr_expect(p.wall_ms == 30000 && p.memory_bytes == 512ull << 20 && p.files == RT_FILES_NONE);
    cr_expect(!p.has_import_list && !p.is_exec_denied && p.read_path_count == 0 &&
              p.env_count == 0);
    p = preset("voice");
    cr_expect(p.wall_ms == 5000 && p.memory_bytes == 128ull << 20);
    cr_assert(p.has_import_list && p.import_count == 3);
    cr_expect(rt_str_eq_c(p.imports[0], "math") && rt_str_eq_c(p.imports[1], "json") &&
              rt_str_eq_c(p.imports[2], "datetime"));
    p = preset("code-mode");
    cr_expect(p.is_exec_denied && p.code_bytes == 100 << 10);
    cr_expect_str_eq(rt_policy_preset_name(0), "default");
    cr_expect_null(rt_policy_preset(RT_STR("nonsense")));
    cr_expect_null(rt_policy_preset((rt_str){ 0 }));
}

Test(policy, every_preset_and_key_has_a_name_and_a_line)
{
    size_t presets = 0, keys = 0;
    const char *name;
    for (; (name = rt_policy_preset_name(presets)); presets++)
        cr_expect(rt_policy_preset(rt_str_of(name)) &&
                  strlen(rt_policy_preset_about(presets)) > 10);
    for (; rt_policy_key_at(keys); keys++)
        cr_expect(rt_policy_key_at(keys)->key[0] && rt_policy_key_at(keys)->about[0]);
    cr_expect_geq(presets, 5);
    cr_expect_geq(keys, 14);
    cr_expect_null(rt_policy_preset_about(presets));
}

/* ---- a ceiling ---- */

static void expect_within(bool is_within, const rt_policy *p, const rt_policy *top,
                          const char *word)
{
    rt_error err = { 0 };
    cr_expect_eq(rt_policy_within(p, top, &err), is_within, "%s: %s", word, err.text);
    if (is_within)
        return;
    cr_expect_eq(err.code, RT_DENIED);
    cr_expect(strstr(err.text, word), "'%s' does not name %s", err.text, word);
}

Test(policy, amounts_may_be_lowered_and_not_raised)
{
    static const struct {
        const char *key, *less, *more;
    } cases[] = { { "timeout", "1s", "31s" },  { "cpu", "1s", "31s" },
                  { "memory", "16M", "513M" }, { "scratch", "1M", "257M" },
                  { "output", "1K", "11M" },   { "code_size", "1K", "2M" },
                  { "processes", "1", "65" } };
    rt_policy top = preset("default");
    expect_within(true, &top, &top, "itself");
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        rt_policy p = top;
        set(&p, cases[i].key, cases[i].less);
        expect_within(true, &p, &top, cases[i].key);
        set(&p, cases[i].key, cases[i].more);
        expect_within(false, &p, &top, cases[i].key);
    }
}

Test(policy, access_may_be_narrowed_and_not_widened)
{
    rt_policy top = preset("default"), p = top;
    set(&p, "files", "sandboxed");
    expect_within(false, &p, &top, "files");
    expect_within(true, &top, &p, "files");

    p = top = preset("default");
    set(&top, "read", "/usr");
    set(&p, "read", "/usr");
    expect_within(true, &p, &top, "read");
    set(&p, "read", "/etc");
    expect_within(false, &p, &top, "'/etc'");

    p = top = preset("default");
    set(&top, "subprocess", "deny");
    expect_within(false, &p, &top, "subprocess");
    expect_within(true, &top, &p, "subprocess");

    p = top = preset("default");
    set(&top, "isolation", "strict");
    expect_within(false, &p, &top, "isolation");
    expect_within(true, &top, &p, "isolation");
}

Test(policy, imports_may_only_be_taken_away)
{
    rt_policy any = preset("default"), some = any, fewer = any, other = any, none = any;
    set(&some, "imports", "math,json");
    set(&fewer, "imports", "json");
    set(&other, "imports", "json,os");
    set(&none, "imports", "");
    expect_within(true, &some, &any, "imports");
    expect_within(true, &fewer, &some, "imports");
    expect_within(true, &none, &some, "imports");
    expect_within(false, &other, &some, "'os'");
    expect_within(false, &any, &some, "imports");
    expect_within(false, &fewer, &none, "'json'");
}

/* ---- showing ---- */

Test(policy, it_is_shown_as_json)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json doc;
    int64_t number;
    rt_policy p = preset("voice");
    set(&p, "read", "/usr");
    rt_json_begin(&w, &text);
    rt_policy_write(&p, &w);
    cr_assert(rt_json_parse(rt_buf_str(&text), &arena, &doc, NULL));
    cr_expect(rt_json_i64(rt_json_get_c(doc, "timeout_ms"), &number) && number == 5000);
    cr_expect(rt_json_i64(rt_json_get_c(doc, "memory_bytes"), &number) && number == 128 << 20);
    cr_expect(rt_str_eq_c(rt_json_str(rt_json_get_c(doc, "network")), "none"));
    cr_expect(rt_str_eq_c(rt_json_str(rt_json_get_c(doc, "files")), "sandboxed"));
    cr_expect(rt_str_eq_c(rt_json_str(rt_json_at(rt_json_get_c(doc, "read"), 0)), "/usr"));
    cr_expect_eq(rt_json_count(rt_json_get_c(doc, "imports")), 3);
    rt_buf_reset(&text);
    p = preset("default");
    rt_json_begin(&w, &text);
    rt_policy_write(&p, &w);
    cr_assert(rt_json_parse(rt_buf_str(&text), &arena, &doc, NULL));
    cr_expect(rt_json_is_absent(rt_json_get_c(doc, "imports")), "absent: any");
}

Test(policy, two_policies_share_a_fingerprint_only_if_they_are_the_same)
{
    rt_policy a = preset("default"), b = preset("default");
    cr_expect(rt_str_eq(rt_policy_fingerprint(&a, &arena), rt_policy_fingerprint(&b, &arena)));
    b.cpu_ms++;
    cr_expect(!rt_str_eq(rt_policy_fingerprint(&a, &arena), rt_policy_fingerprint(&b, &arena)));
    b = a;
    set(&b, "env", "A=B");
    cr_expect(!rt_str_eq(rt_policy_fingerprint(&a, &arena), rt_policy_fingerprint(&b, &arena)));
    set(&a, "env", "A=");
    cr_expect(!rt_str_eq(rt_policy_fingerprint(&a, &arena), rt_policy_fingerprint(&b, &arena)));
}
