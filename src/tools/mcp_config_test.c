/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_config_test.c - the mcpServers of other clients are read as they read them. */
#include "tools/mcp_internal.h"

#include <criterion/criterion.h>

static const char *const environment[] = { "HOME=/home/ann", "TOKEN=s3cret", "EMPTY=", NULL };
static rt_arena arena;

static void release(void)
{
    rt_arena_done(&arena);
}

TestSuite(mcp_config, .fini = release);

static rt_mcp_configs configs_of(const char *servers)
{
    rt_mcp_configs configs;
    rt_error err = { 0 };
    rt_str text = rt_arena_printf(&arena, "{\"mcpServers\":%s}", servers);
    cr_assert(rt_mcp_config_read(text, environment, &arena, &configs, &err), "%s", err.text);
    return configs;
}

static rt_mcp_config one(const char *entry)
{
    rt_mcp_configs configs = configs_of(rt_arena_printf(&arena, "{\"a\":%s}", entry).ptr);
    cr_assert_eq(configs.problem_count, 0, "%s", configs.problems[0].error.text);
    cr_assert_eq(configs.count, 1);
    return configs.items[0];
}

static void problem(const char *entry, rt_code code, const char *text)
{
    rt_mcp_configs configs =
        configs_of(rt_arena_printf(&arena, "{\"a\":%s,\"b\":{\"command\":\"x\"}}", entry).ptr);
    cr_assert_eq(configs.count, 1, "the other one loads");
    cr_assert_eq(configs.problem_count, 1, "%s", entry);
    cr_assert(rt_str_eq_c(configs.problems[0].name, "a"));
    cr_assert_eq(configs.problems[0].error.code, code, "%s", configs.problems[0].error.text);
    cr_assert(strstr(configs.problems[0].error.text, text), "%s", configs.problems[0].error.text);
}

Test(mcp_config, a_program_has_arguments_an_environment_and_a_folder)
{
    rt_mcp_config c = one("{\"command\":\"npx\",\"args\":[\"-y\",\"${TOKEN}\"],"
                          "\"env\":{\"A\":\"${env:TOKEN}!\"},\"cwd\":\"${userHome}/x\"}");
    cr_assert_str_eq(c.command, "npx");
    cr_assert_str_eq(c.args[0], "-y");
    cr_assert_str_eq(c.args[1], "s3cret");
    cr_assert_null(c.args[2]);
    cr_assert(rt_str_eq_c(c.env.items[0].name, "A"));
    cr_assert(rt_str_eq_c(c.env.items[0].value, "s3cret!"));
    cr_assert_str_eq(c.cwd, "/home/ann/x");
}

Test(mcp_config, a_url_has_headers)
{
    rt_mcp_config c = one("{\"type\":\"http\",\"url\":\"https://x/${EMPTY}mcp\","
                          "\"headers\":{\"Authorization\":\"Bearer ${TOKEN}\"}}");
    cr_assert_str_eq(c.url, "https://x/mcp");
    cr_assert(rt_str_eq_c(c.headers.items[0].value, "Bearer s3cret"));
}

Test(mcp_config, variables_may_have_a_default)
{
    rt_mcp_config c = one("{\"command\":\"a${NOPE:-b}${EMPTY:-c}${NOPE:-}$d ${ ${}\"}");
    cr_assert_str_eq(c.command, "ab$d ${ ${}");
}

Test(mcp_config, our_own_keys_are_read)
{
    rt_mcp_config c = one("{\"command\":\"x\",\"timeout_ms\":5000,\"rate_limit\":3,"
                          "\"protocol_version\":\"2025-06-18\",\"unknown\":{},\"cwd\":null}");
    cr_assert_eq(c.timeout_ms, 5000);
    cr_assert_eq(c.rate_limit, 3);
    cr_assert(!c.has_no_rate_limit && !c.is_disabled);
    cr_assert(rt_str_eq_c(c.protocol_version, "2025-06-18"));
    cr_assert(one("{\"command\":\"x\",\"rate_limit\":0}").has_no_rate_limit);
    cr_assert(one("{\"command\":\"${NOPE}\",\"disabled\":true}").is_disabled);
}

Test(mcp_config, spaces_in_a_name_become_dashes)
{
    rt_mcp_configs configs = configs_of("{\"My Server\":{\"command\":\"x\"}}");
    cr_assert(rt_str_eq_c(configs.items[0].name, "My-Server"));
    configs = configs_of("{\"a b\":{\"command\":\"x\"},\"a-b\":{\"command\":\"y\"}}");
    cr_assert_eq(configs.count, 1);
    cr_assert_eq(configs.problems[0].error.code, RT_CONFLICT);
}

Test(mcp_config, a_bad_entry_is_a_problem_by_name_and_the_others_load)
{
    problem("{}", RT_INVALID, "neither a command nor a url");
    problem("[]", RT_INVALID, "must be an object");
    problem("{\"command\":\"x\",\"url\":\"http://x\"}", RT_INVALID, "but one of them");
    problem("{\"command\":7}", RT_INVALID, "command must be a string, and is number");
    problem("{\"command\":\"${NOPE}\"}", RT_INVALID, "the variable NOPE is not set");
    problem("{\"command\":\"x\",\"args\":\"y\"}", RT_INVALID, "args must be an array");
    problem("{\"command\":\"x\",\"args\":[1]}", RT_INVALID, "args must be a string");
    problem("{\"command\":\"x\",\"env\":{\"A=B\":\"\"}}", RT_INVALID, "no variable named \"A=B\"");
    problem("{\"command\":\"a\\u0000b\"}", RT_INVALID, "NUL");
    problem("{\"url\":\"file:///etc/passwd\"}", RT_INVALID, "http:// or https://");
    problem("{\"url\":\"http://x\",\"headers\":{\"A\":\"b\\r\\nC: d\"}}", RT_INVALID, "header A");
    problem("{\"url\":\"http://x\",\"type\":\"ws\"}", RT_INVALID, "stdio, http or sse");
    problem("{\"url\":\"${input:x}\"}", RT_UNSUPPORTED, "${input:x} cannot be filled in");
    problem("{\"command\":\"x\",\"rate_limit\":-1}", RT_INVALID, "rate_limit");
    problem("{\"command\":\"x\",\"timeout_ms\":1.5}", RT_INVALID, "timeout_ms");
    problem("{\"command\":\"x\",\"protocol_version\":\"1\"}", RT_INVALID, "revision");
}

Test(mcp_config, a_name_that_tools_cannot_have_is_a_problem)
{
    static const char *const names[] = { "", "a:b", "a/b", "ü", "a\\u0000" };
    for (size_t i = 0; i < RT_COUNT(names); i++) {
        rt_mcp_configs configs =
            configs_of(rt_arena_printf(&arena, "{\"%s\":{\"command\":\"x\"}}", names[i]).ptr);
        cr_assert_eq(configs.count, 0, "%s", names[i]);
        cr_assert_eq(configs.problem_count, 1);
    }
}

Test(mcp_config, no_error_repeats_a_secret)
{
    rt_mcp_configs configs =
        configs_of("{\"a\":{\"url\":\"ftp://${TOKEN}@x\"},\"b\":{\"url\":\"http://x\","
                   "\"headers\":{\"A\":\"${TOKEN}\\n\"}}}");
    cr_assert_eq(configs.problem_count, 2);
    for (size_t i = 0; i < 2; i++)
        cr_assert(!strstr(configs.problems[i].error.text, "s3cret"));
}

Test(mcp_config, what_is_no_list_of_servers_is_refused)
{
    static const char *const texts[] = { "", "[]", "{}", "{\"mcpServers\":[]}",
                                         "{\"mcpServers\":" };
    rt_mcp_configs configs;
    for (size_t i = 0; i < RT_COUNT(texts); i++)
        cr_assert(!rt_mcp_config_read(rt_str_of(texts[i]), NULL, &arena, &configs, NULL));
}
