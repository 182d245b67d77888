/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/settings_internal.h"

#include <criterion/criterion.h>

static rt_arena arena; /* of the test: each has its own process */
static rt_settings settings;
static const cli_world world = { .directory = "/here", .home = { "/home/ada", 9 } };

static void release(void)
{
    rt_arena_done(&arena);
}

TestSuite(settings_value, .fini = release);

static const cli_setting *row(const char *key)
{
    const cli_setting *found = cli_setting_find(rt_str_of(key));
    cr_assert(found, "%s", key);
    return found;
}

static void expect(const char *key, const char *text, const char *back)
{
    rt_buf out RT_CLEANUP(rt_buf_done) = { 0 };
    rt_error err = { 0 };
    cr_expect(cli_setting_set(&settings, row(key), rt_str_of(text), &world, &arena, &err), "%s",
              err.text);
    cli_setting_text(&settings, row(key), &out);
    cr_expect(rt_str_eq_c(rt_buf_str(&out), back), "%s %s: '%.*s'", key, text,
              RT_FMT(rt_buf_str(&out)));
}

static void refuse(const char *key, rt_str text, const char *why)
{
    rt_error err = { 0 };
    cr_expect(!cli_setting_set(&settings, row(key), text, &world, &arena, &err), "%s %.*s", key,
              RT_FMT(text));
    cr_expect_str_eq(err.text, why);
}

#define REFUSED(key, text, why) refuse(key, RT_STR(text), why)

Test(settings_value, amounts_have_units_and_come_back_in_the_largest_that_fits)
{
    expect("server.port", "0", "0");
    expect("server.max_body", "64M", "64M");
    expect("server.max_body", "65536", "64K");
    expect("server.max_body", "1025", "1025");
    expect("server.max_body", "1GiB", "1G");
    expect("cache.ttl", "500s", "500s");
    expect("cache.ttl", "90s", "90s");
    expect("cache.ttl", "120", "2m");
    expect("cache.ttl", "1.5s", "1500ms");
    expect("cache.ttl", "1d", "24h");
    expect("execution.queue_wait", "0", "0");
    expect("cost.usd_per_million_tokens", "0.10", "0.1");
    expect("cost.usd_per_million_tokens", "1e2", "100");
    expect("cost.usd_per_million_tokens", "0", "0");
}

Test(settings_value, a_wrong_amount_is_refused_with_its_range)
{
    REFUSED("server.port", "65536", "'65536' is not a whole number from 0 to 65535");
    REFUSED("server.port", "-1", "'-1' is not a whole number from 0 to 65535");
    REFUSED("server.port", "80.5", "'80.5' is not a whole number from 0 to 65535");
    REFUSED("server.max_body", "64X", "'64X' is not a size from 1K to 1G");
    REFUSED("execution.timeout", "50ms", "'50ms' is not a duration from 100ms to 5m");
    REFUSED("execution.timeout", "301", "'301' is not a duration from 100ms to 5m");
    REFUSED("cost.usd_per_million_tokens", "-1", "'-1' is not a number from 0 to 1000000");
    REFUSED("cost.usd_per_million_tokens", "nan", "'nan' is not a number from 0 to 1000000");
    REFUSED("cost.usd_per_million_tokens", "[1]", "'[1]' is not a number from 0 to 1000000");
    REFUSED("cost.usd_per_million_tokens", "", "'' is not a number from 0 to 1000000");
}

Test(settings_value, switches_and_choices_do_not_care_about_case)
{
    expect("debug", "YES", "true");
    expect("debug", "on", "true");
    expect("debug", "1", "true");
    expect("debug", "False", "false");
    expect("debug", "no", "false");
    expect("debug", "0", "false");
    expect("log.level", "DEBUG", "debug");
    expect("execution.isolation", "strict", "strict");
    cr_expect_eq(settings.execution.isolation, RT_ISOLATION_STRICT);
    REFUSED("debug", "2", "'2' is neither true nor false");
    REFUSED("log.level", "loud", "'loud' is not one of: error warn info debug");
    REFUSED("log.level", "", "'' is not one of: error warn info debug");
    REFUSED("log.level", "error warn", "'error warn' is not one of: error warn info debug");
}

Test(settings_value, paths_become_absolute)
{
    expect("data_dir", "/x", "/x");
    expect("data_dir", "x/y", "/here/x/y");
    expect("data_dir", "~/x", "/home/ada/x");
    expect("data_dir", "~", "/home/ada");
    expect("data_dir", "~bob", "/here/~bob");
    expect("server.tls_key", "", "");
    REFUSED("data_dir", "", "a path is expected");
    rt_error err = { 0 };
    cr_expect(!cli_setting_set(&settings, row("data_dir"), RT_STR("~/x"),
                               &(cli_world){ .directory = "/" }, &arena, &err));
    cr_expect_str_eq(err.text, "there is no home directory for '~'; give a whole path");
}

Test(settings_value, a_list_is_words_between_commas)
{
    expect("server.allowed_hosts", "a, b ,,c", "a,b,c");
    cr_expect_eq(settings.server.allowed_hosts.count, 3);
    expect("server.allowed_hosts", "", "");
    cr_expect_eq(settings.server.allowed_hosts.count, 0);
    expect("server.allowed_hosts", ",,,", "");
    expect("server.allowed_hosts", "a,b", "a,b");
}

Test(settings_value, text_is_plain_and_bounded)
{
    static char large[CLI_VALUE_MAX + 1];
    memset(large, 'x', sizeof(large));
    refuse("node.name", (rt_str){ large, sizeof(large) },
           "a value of 8193 bytes; at most 8192 are taken");
    REFUSED("node.name", "a\nb", "a value has no control characters and is UTF-8");
    REFUSED("node.name", "a\0b", "a value has no control characters and is UTF-8");
    REFUSED("node.name", "\xff", "a value has no control characters and is UTF-8");
    REFUSED("node.name", "", "a text is expected");
    expect("node.name", "Zürich 1", "Zürich 1");
}

Test(settings_value, a_url_begins_as_it_should_and_an_error_does_not_repeat_it)
{
    expect("database.url", "postgres://h/d", "postgres://h/d");
    expect("database.url", "sqlite::memory:", "sqlite::memory:");
    expect("redis.url", "unix:///run/redis.sock", "unix:///run/redis.sock");
    expect("server.public_url", "", "");
    REFUSED("database.url", "mysql://u:hunter2@h/d",
            "it must begin with one of: sqlite: postgresql:// postgres://");
    REFUSED("redis.url", "localhost:6379", "it must begin with one of: redis:// unix://");
    REFUSED("server.public_url", "ftp://h", "it must begin with one of: http:// https://");
}

static void expect_shown(const char *key, const char *text, const char *shown)
{
    rt_buf out RT_CLEANUP(rt_buf_done) = { 0 };
    cr_assert(cli_setting_set(&settings, row(key), rt_str_of(text), &world, &arena, NULL), "%s",
              text);
    cli_setting_show(&settings, row(key), &out);
    cr_expect(rt_str_eq_c(rt_buf_str(&out), shown), "%s: %.*s", text, RT_FMT(rt_buf_str(&out)));
}

Test(settings_value, passwords_are_hidden_and_the_rest_of_a_url_is_not)
{
    expect_shown("database.url", "postgresql://u:pw@h:5432/d", "postgresql://u:***@h:5432/d");
    expect_shown("database.url", "postgresql://u@h:5432/d", "postgresql://u@h:5432/d");
    expect_shown("database.url", "postgresql://h:5432/d", "postgresql://h:5432/d");
    expect_shown("database.url", "postgresql://u:p@w@h/d", "postgresql://u:***@h/d");
    expect_shown("database.url", "postgresql://u:p/w?@h/d", "postgresql://u:***@h/d");
    expect_shown("database.url", "postgresql://u@h/d?password=pw&sslmode=require",
                 "postgresql://u@h/d?password=***&sslmode=require");
    expect_shown("database.url", "postgresql://u@h/d?sslpassword=a&password=b",
                 "postgresql://u@h/d?sslpassword=***&password=***");
    expect_shown("database.url", "postgresql://h:1/d?password=p@w", "postgresql://h:***");
    expect_shown("database.url", "postgresql://h/d?password=", "postgresql://h/d?password=");
    expect_shown("redis.url", "redis://:pw@h/1", "redis://:***@h/1");
    expect_shown("redis.url", "", "");
    expect_shown("gemini.api_key", "k", "***");
    expect_shown("gemini.api_key", "", "");
}
