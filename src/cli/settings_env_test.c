/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/settings_internal.h"

#include <criterion/criterion.h>

static rt_arena arena; /* of the test: each has its own process */

static void release(void)
{
    rt_arena_done(&arena);
}

TestSuite(settings_env, .fini = release);

/* ---- .env ---- */

static void expect_line(const char *line, const char *name, const char *value)
{
    cli_gathered notes = { .arena = &arena };
    cli_variables found = cli_dotenv_parse(rt_str_of(line), ".env", &notes);
    cr_expect_eq(found.count, 1, "%s", line);
    cr_expect_eq(notes.warning_count, 0, "%s", line);
    rt_str got = cli_variable_get(found, name);
    cr_expect(got.ptr && rt_str_eq_c(got, value), "%s: '%.*s'", line, RT_FMT(got));
}

Test(settings_env, a_line_is_a_name_and_a_value)
{
    static const struct {
        const char *line, *name, *value;
    } cases[] = {
        { "A=1", "A", "1" },
        { "  A = 1  ", "A", "1" },
        { "export A=1", "A", "1" },
        { "export\tA=1\r", "A", "1" },
        { "A=", "A", "" },
        { "A=b c", "A", "b c" },
        { "A=b # comment", "A", "b" },
        { "A=b#c", "A", "b#c" },
        { "A=#c", "A", "" },
        { "A=x=y", "A", "x=y" },
        { "A='b # c'", "A", "b # c" },
        { "A='b\\n'", "A", "b\\n" },
        { "A=\"b # c\" # d", "A", "b # c" },
        { "A=\"\\\"b\\\\\\n\\tc\\$\"", "A", "\"b\\\n\tc$" },
        { "A=\"it's\"", "A", "it's" },
        { "A=''", "A", "" },
        { "A=${B}", "A", "${B}" },
        { "\xef\xbb\xbf"
          "A=1",
          "A", "1" },
        { "_a.b9=1", "_a.b9", "1" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++)
        expect_line(cases[i].line, cases[i].name, cases[i].value);
}

Test(settings_env, comments_and_empty_lines_say_nothing)
{
    cli_gathered notes = { .arena = &arena };
    cli_variables found = cli_dotenv_parse(RT_STR("\n# A=1\n   \n\r\n"), ".env", &notes);
    cr_expect_eq(found.count, 0);
    cr_expect_eq(notes.warning_count, 0);
    cr_expect_eq(cli_dotenv_parse(RT_STR(""), ".env", &notes).count, 0);
    cr_expect_eq(cli_dotenv_parse((rt_str){ 0 }, ".env", &notes).count, 0);
}

Test(settings_env, what_is_no_assignment_is_ignored_with_a_warning)
{
    static const struct {
        const char *line, *warning;
    } cases[] = {
        { "A=1\nwhat", ".env:2: the line is ignored: NAME=VALUE is expected" },
        { "=1", ".env:1: the line is ignored: NAME=VALUE is expected" },
        { "A-B=1", ".env:1: the line is ignored: NAME=VALUE is expected" },
        { "9A=1", ".env:1: the line is ignored: NAME=VALUE is expected" },
        { "export", ".env:1: the line is ignored: NAME=VALUE is expected" },
        { "A=\"b", ".env:1: the line is ignored: a quote does not end on its line" },
        { "A=\"b\\\"", ".env:1: the line is ignored: a quote does not end on its line" },
        { "A='", ".env:1: the line is ignored: a quote does not end on its line" },
        { "A='b'c", ".env:1: the line is ignored: something stands behind the closing quote" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        cli_gathered notes = { .arena = &arena };
        cli_dotenv_parse(rt_str_of(cases[i].line), ".env", &notes);
        cr_assert_eq(notes.warning_count, 1, "%s", cases[i].line);
        cr_expect(rt_str_eq_c(notes.warnings[0], cases[i].warning), "%.*s",
                  RT_FMT(notes.warnings[0]));
    }
}

Test(settings_env, the_last_of_several_lines_counts_and_warnings_have_an_end)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    cli_gathered notes = { .arena = &arena };
    cli_variables found = cli_dotenv_parse(RT_STR("A=1\nA=2\n"), ".env", &notes);
    cr_expect(rt_str_eq_c(cli_variable_get(found, "A"), "2"));
    for (int i = 0; i < 3 * CLI_WARNINGS_MAX; i++)
        rt_buf_add(&text, RT_STR("what\n"));
    cli_dotenv_parse(rt_buf_str(&text), ".env", &notes);
    cr_expect_eq(notes.warning_count, CLI_WARNINGS_MAX);
}

/* ---- names ---- */

static cli_gathered take(const char *const *variables)
{
    cli_gathered found = { .arena = &arena };
    cli_settings_variables(cli_environment((char *const *)(uintptr_t)variables, &arena),
                           CLI_ENVIRONMENT, &found);
    return found;
}

#define TAKE(...) take((const char *const[]){ __VA_ARGS__, NULL })

static void expect(const char *variable, const char *key, const char *text)
{
    cli_gathered found = TAKE(variable);
    cr_expect_eq(found.warning_count, 0, "%s", variable);
    cr_assert_eq(found.count, 1, "%s", variable);
    cr_expect_str_eq(found.items[0].setting->key, key);
    cr_expect(rt_str_eq_c(found.items[0].text, text), "%s: '%.*s'", variable,
              RT_FMT(found.items[0].text));
}

Test(settings_env, every_key_has_a_name_of_its_own)
{
    const cli_setting *setting;
    for (size_t i = 0; (setting = cli_setting_at(i)); i++) {
        char name[CLI_KEY_MAX];
        cli_setting_variable(setting, name);
        expect(rt_arena_printf(&arena, "%s=x", name).ptr, setting->key, "x");
    }
}

Test(settings_env, the_names_of_older_programs_are_known)
{
    static const struct {
        const char *variable, *key, *text;
    } cases[] = {
        { "RETORT_PORT=1", "server.port", "1" },
        { "RETORT_DATA_DIR=/d", "data_dir", "/d" },
        { "RETORT_DATABASE_URL=sqlite:///d", "database.url", "sqlite:///d" },
        { "RETORT_REDIS_URL=redis://h", "redis.url", "redis://h" },
        { "CODE_EXEC_SERVICE_NAME=s", "service.name", "s" },
        { "CODE_EXEC_HOST=0.0.0.0", "server.bind", "0.0.0.0" },
        { "CODE_EXEC_PORT=8004", "server.port", "8004" },
        { "code_exec_port=8004", "server.port", "8004" },
        { "CODE_EXEC_DEBUG=true", "debug", "true" },
        { "CODE_EXEC_SKILLS_DIRECTORY=/s", "skills.directory", "/s" },
        { "CODE_EXEC_MAX_EXECUTION_TIME=30", "execution.timeout", "30" },
        { "CODE_EXEC_HASH_ALGORITHM=sha256", "hash.algorithm", "sha256" },
        { "CODE_EXEC_LOG_LEVEL=WARNING", "log.level", "warn" },
        { "CODE_EXEC_LOG_LEVEL=critical", "log.level", "error" },
        { "CODE_EXEC_LOG_LEVEL=INFO", "log.level", "INFO" },
        { "CODE_EXEC_LOG_FORMAT=%(asctime)s %(message)s", "log.format", "text" },
        { "CODE_EXEC_LOG_FORMAT=json", "log.format", "json" },
        { "CODE_EXEC_REDIS_URL=redis://localhost:6379/2", "redis.url", "redis://localhost:6379/2" },
        { "CODE_EXEC_EMBEDDING_MODEL=m", "embedding.model", "m" },
        { "CODE_EXEC_REQUIRE_POLICY_APPROVAL_FOR_SIDE_EFFECTS=false", "skills.approve_side_effects",
          "false" },
        { "USE_CODE_EXECUTION=false", "execution.enabled", "false" },
        { "GEMINI_API_KEY=k", "gemini.api_key", "k" },
        { "SANDBOX_TIMEOUT_SEC=30", "execution.timeout", "30" },
        { "SANDBOX_MAX_MEMORY_MB=512", "execution.memory", "512M" },
        { "SANDBOX_MAX_MEMORY_MB=1G", "execution.memory", "1G" },
        { "ENABLE_PII_PROTECTION=false", "privacy.enabled", "false" },
        { "ENABLE_COST_TRACKING=false", "cost.enabled", "false" },
        { "PML_NO_PII_PROTECTION=1", "privacy.enabled", "false" },
        { "CAI_NO_PII_PROTECTION=true", "privacy.enabled", "false" },
        { "AGENTCARDS_NO_PII_PROTECTION=yes", "privacy.enabled", "false" },
        { "PML_NO_PII_PROTECTION=0", "privacy.enabled", "true" },
        { "PML_NO_CACHE=1", "cache.enabled", "false" },
        { "CAI_NO_CACHE=1", "cache.enabled", "false" },
        { "AGENTCARDS_NO_CACHE=1", "cache.enabled", "false" },
        { "PML_NO_CACHE=perhaps", "cache.enabled", "perhaps" },
        { "DB_HOST=h", "database.host", "h" },
        { "DB_PORT=1", "database.port", "1" },
        { "DB_NAME=n", "database.name", "n" },
        { "DB_USER=u", "database.user", "u" },
        { "DB_PASSWORD=p", "database.password", "p" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++)
        expect(cases[i].variable, cases[i].key, cases[i].text);
}

Test(settings_env, the_own_name_wins_over_the_others)
{
    cli_gathered found = TAKE("CODE_EXEC_PORT=3", "RETORT_PORT=2", "RETORT_SERVER_PORT=1");
    cr_assert_eq(found.count, 1);
    cr_expect(rt_str_eq_c(found.items[0].text, "1"));
    found = TAKE("CODE_EXEC_PORT=3", "RETORT_PORT=2", "RETORT_SERVER_PORT=");
    cr_expect(rt_str_eq_c(found.items[0].text, "2"), "an empty value is no value");
}

Test(settings_env, an_unknown_name_with_our_prefix_is_warned_about)
{
    cli_gathered found = TAKE("RETORT_PROT=1", "CODE_EXEC_PORTS=1", "RETORT_QQQQQQQQQQQQQQQQ=1",
                              "PATH=/bin", "PML_NO_CASH=1");
    cr_expect_eq(found.count, 0);
    cr_assert_eq(found.warning_count, 3);
    cr_expect(rt_str_eq_c(found.warnings[0], "environment RETORT_PROT: no setting is called "
                                             "RETORT_PROT; did you mean RETORT_PORT?"),
              "%.*s", RT_FMT(found.warnings[0]));
    cr_expect(rt_str_ends(found.warnings[1], RT_STR("did you mean CODE_EXEC_PORT?")));
    cr_expect(
        rt_str_ends(found.warnings[2], RT_STR("no setting is called RETORT_QQQQQQQQQQQQQQQQ")));
}

Test(settings_env, names_that_are_not_settings_are_left_alone)
{
    cli_gathered found = TAKE("RETORT=build/retort", "RETORT_PYTHON=/p", "RETORT_NODE=/n",
                              "RETORT_GUESTS=/g", "RETORT_TEST_ANY=1", "RETORT_NPM_FOLDERS=x",
                              "RETORT_LEAK_RUNS=9", "RETORT_CONFIG=x", "not an assignment", "=x");
    cr_expect_eq(found.count, 0);
    cr_expect_eq(found.warning_count, 0);
}
