/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/settings_internal.h"

#include <criterion/criterion.h>
#include <stdio.h>

static rt_arena arena; /* of the test: each has its own process */

static void release(void)
{
    rt_arena_done(&arena);
}

TestSuite(settings_yaml, .fini = release);

static cli_gathered read_text(rt_str text)
{
    cli_gathered found = { .arena = &arena };
    rt_error err = { 0 };
    cr_assert(cli_settings_yaml(text, "f", &found, &err), "%s", err.text);
    return found;
}

static void expect(const cli_gathered *found, const char *key, const char *text, const char *source)
{
    for (size_t i = 0; i < found->count; i++) {
        const cli_assignment *a = &found->items[i];
        if (strcmp(a->setting->key, key) != 0)
            continue;
        cr_expect(rt_str_eq_c(a->text, text), "%s: '%.*s'", key, RT_FMT(a->text));
        cr_expect(rt_str_eq_c(a->origin.source, source), "'%.*s'", RT_FMT(a->origin.source));
        cr_expect_eq(a->origin.layer, CLI_FILE);
        return;
    }
    cr_expect(false, "%s is not there", key);
}

static void refuse(rt_str text, const char *expected)
{
    cli_gathered found = { .arena = &arena };
    rt_error err = { 0 };
    cr_expect(!cli_settings_yaml(text, "f", &found, &err), "accepted: %.*s",
              RT_FMT(rt_str_slice(text, 0, 60)));
    cr_expect_str_eq(err.text, expected);
}

#define REFUSED(text, expected) refuse(RT_STR(text), expected)

Test(settings_yaml, sections_and_dotted_keys_are_the_same)
{
    cli_gathered a = read_text(RT_STR("server:\n  port: 9000\n  bind: \"::1\"\ncache.ttl: 1m\n"));
    cr_expect_eq(a.count, 3);
    expect(&a, "server.port", "9000", "f:2");
    expect(&a, "server.bind", "::1", "f:3");
    expect(&a, "cache.ttl", "1m", "f:4");
    a = read_text(RT_STR("{server: {port: 9000}, server.bind: x, debug: yes}"));
    cr_expect_eq(a.count, 3);
    expect(&a, "server.port", "9000", "f:1");
    a = read_text(RT_STR("server: {port: 1}\ncache:\n  entries: 2\nserver:\n  bind: x\n"));
    cr_expect_eq(a.count, 3, "a section may come in pieces: nothing is lost");
}

Test(settings_yaml, a_list_is_its_entries)
{
    cli_gathered a = read_text(RT_STR("server:\n  allowed_hosts:\n    - a\n    - \"b\"\n"));
    expect(&a, "server.allowed_hosts", "a,b", "f:2");
    a = read_text(RT_STR("server.allowed_hosts: []"));
    expect(&a, "server.allowed_hosts", "", "f:1");
    a = read_text(RT_STR("server.allowed_hosts: a, b"));
    expect(&a, "server.allowed_hosts", "a, b", "f:1");
}

Test(settings_yaml, nothing_behind_a_key_sets_nothing)
{
    static const char *const texts[] = { "",
                                         "# a comment\n",
                                         "---\n",
                                         "---\n...\n",
                                         "~",
                                         "server:\n  # port: 1\nredis:\n  url:\n",
                                         "server: ~\ndebug: null\n",
                                         "server: {}" };
    for (size_t i = 0; i < RT_COUNT(texts); i++)
        cr_expect_eq(read_text(rt_str_of(texts[i])).count, 0, "%s", texts[i]);
    cli_gathered a = read_text(RT_STR("redis:\n  url: \"\"\n"));
    cr_expect_eq(a.count, 1, "an empty text is a text");
}

Test(settings_yaml, an_unknown_key_comes_with_a_suggestion)
{
    REFUSED("server:\n  bind: x\n  prot: 1\n",
            "f:3: unknown key 'server.prot'; did you mean server.port?");
    REFUSED("sever:\n  port: 1\n", "f:1: unknown key 'sever'; did you mean server?");
    REFUSED("port: 1", "f:1: unknown key 'port'; did you mean server.port?");
    REFUSED("rollout-percent: 1",
            "f:1: unknown key 'rollout-percent'; did you mean execution.rollout_percent?");
    REFUSED("Server.Port: 1", "f:1: unknown key 'Server.Port'; did you mean server.port?");
    REFUSED("quite: {another: thing}",
            "f:1: unknown key 'quite'; 'retort config --help' lists them");
    REFUSED("quite:", "f:1: unknown key 'quite'; 'retort config --help' lists them");
    REFUSED("\"\": 1", "f:1: unknown key ''; 'retort config --help' lists them");
    REFUSED("server.port.x: 1", "f:1: unknown key 'server.port.x'; did you mean server.port?");
}

Test(settings_yaml, a_value_has_the_shape_of_its_key)
{
    REFUSED("server.port: [1]", "f:1: server.port takes one plain value");
    REFUSED("server:\n  port: {a: 1}", "f:2: server.port takes one plain value");
    REFUSED("server.allowed_hosts: {a: 1}",
            "f:1: server.allowed_hosts takes a list of plain values");
    REFUSED("server.allowed_hosts:\n- a\n- [b]",
            "f:3: server.allowed_hosts takes a list of plain values");
    REFUSED("server.allowed_hosts:\n- a\n-\n",
            "f:3: server.allowed_hosts takes a list of plain values");
    REFUSED("server.allowed_hosts: ['a,b']",
            "f:1: server.allowed_hosts: an entry has a comma in it");
    REFUSED("server: 5", "f:1: server is a section: it takes 'key: value' lines");
    REFUSED("server: [5]", "f:1: server is a section: it takes 'key: value' lines");
    REFUSED("[server]", "f:1: lines of 'key: value' are expected");
    REFUSED("server", "f:1: lines of 'key: value' are expected");
    REFUSED("[a]: 1", "f:1: a key is expected");
    REFUSED("\"debug\\0\": true", "f:1: a key is expected");
}

Test(settings_yaml, what_would_be_passed_over_is_refused)
{
    REFUSED("server:\n  port: 1\nserver.port: 2\n",
            "f:3: server.port is set a second time; first on line 2");
    REFUSED("server.allowed_hosts: [a]\nserver.allowed_hosts: [b]\n",
            "f:2: server.allowed_hosts is set a second time; first on line 1");
    REFUSED("debug: true\n---\ndebug: false\n", "f:2: one document is expected");
    REFUSED("debug: true\n---\n", "f:2: one document is expected");
}

Test(settings_yaml, a_small_file_cannot_stand_for_a_large_one)
{
    REFUSED("server: &a {port: 1}\ncache: *a\n", "f:1: anchors and aliases are not used here");
    REFUSED("redis.url: *a\n", "f:1: anchors and aliases are not used here");
    REFUSED("server.allowed_hosts: [&x a]", "f:1: anchors and aliases are not used here");
    REFUSED("<<: {port: 1}", "f:1: unknown key '<<'; 'retort config --help' lists them");
}

Test(settings_yaml, a_file_has_a_size)
{
    size_t size = CLI_FILE_MAX + 1;
    char *text = rt_arena_alloc(&arena, size);
    memset(text, '#', size);
    refuse((rt_str){ text, size }, "f: a file of 1048577 bytes; at most 1048576 are read");
    cr_expect_eq(read_text((rt_str){ text, size - 1 }).count, 0);
    memset(text, '[', size);
    refuse((rt_str){ text, 100000 }, "f:1: lines of 'key: value' are expected");
}

Test(settings_yaml, a_long_list_or_key_is_refused)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf_add(&text, RT_STR("server.allowed_hosts:\n"));
    for (int i = 0; i < 2000; i++)
        rt_buf_add(&text, RT_STR("- host.example\n"));
    rt_error err = { 0 };
    cli_gathered found = { .arena = &arena };
    cr_expect(!cli_settings_yaml(rt_buf_str(&text), "f", &found, &err));
    cr_expect_eq(err.code, RT_LIMIT);
    cr_expect(strstr(err.text, "f:1: server.allowed_hosts"), "%s", err.text);
    rt_buf_reset(&text);
    for (int i = 0; i < 900; i++)
        rt_buf_addc(&text, 'k');
    rt_buf_add(&text, RT_STR(": 1"));
    cr_expect(!cli_settings_yaml(rt_buf_str(&text), "f", &found, NULL));
}

Test(settings_yaml, broken_yaml_is_refused_with_its_line)
{
    rt_error err = { 0 };
    cli_gathered found = { .arena = &arena };
    static const char *const texts[] = { "a: 1\n b: {", "server:\n  port: 'x\n", "debug: 1\n\t- x",
                                         "\xff\xfe\xff", "debug: \x01" };
    for (size_t i = 0; i < RT_COUNT(texts); i++) {
        err = (rt_error){ 0 };
        cr_expect(!cli_settings_yaml(rt_str_of(texts[i]), "f", &found, &err), "%s", texts[i]);
        cr_expect_eq(err.code, RT_INVALID);
        cr_expect(strncmp(err.text, "f:", 2) == 0, "%s", err.text);
    }
}
