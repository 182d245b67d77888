/* SPDX-License-Identifier: Apache-2.0 */
/* The layers as a whole: which wins, what follows from what, what is refused and what is said. */
#include "cli/settings_internal.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static rt_arena arena; /* of the test: each has its own process, and its own directory */
static char folder[64];
static char *no_environment[] = { NULL };
static cli_world world;

static void put(const char *name, const char *text)
{
    FILE *to = fopen(rt_arena_printf(&arena, "%s/%s", folder, name).ptr, "w");
    cr_assert(to);
    fputs(text, to);
    fclose(to);
}

static void make_folder(const char *name)
{
    cr_assert_eq(mkdir(rt_arena_printf(&arena, "%s/%s", folder, name).ptr, 0700), 0);
}

static void begin(void)
{
    snprintf(folder, sizeof(folder), "/tmp/retort-settings-XXXXXX");
    cr_assert(mkdtemp(folder));
    make_folder("here");
    make_folder("home");
    make_folder("etc");
    world = (cli_world){
        .environment = no_environment,
        .directory = rt_arena_printf(&arena, "%s/here", folder).ptr,
        .etc = rt_arena_printf(&arena, "%s/etc", folder).ptr,
        .home = rt_arena_printf(&arena, "%s/home", folder),
    };
}

static void end(void)
{
    if (folder[0])
        cr_expect_eq(system(rt_arena_printf(&arena, "rm -rf %s", folder).ptr), 0);
    rt_arena_done(&arena);
}

TestSuite(settings, .init = begin, .fini = end);

#define WORDS(...) ((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

static char *left[32]; /* of argv, after loading */
static int left_count;

static bool load_words(rt_settings *out, rt_error *err, const char *const *words)
{
    left_count = 0;
    left[left_count++] = "config";
    for (; *words; words++)
        left[left_count++] = (char *)(uintptr_t)*words;
    left[left_count] = NULL;
    *err = (rt_error){ 0 };
    return cli_settings_load_from(&world, &left_count, left, &arena, out, err);
}

#define LOAD(...)          load(WORDS(__VA_ARGS__))
#define REFUSED(text, ...) refused(text, WORDS(__VA_ARGS__))

static rt_settings load(const char *const *words)
{
    rt_settings settings = { 0 };
    rt_error err;
    cr_assert(load_words(&settings, &err, words), "%s", err.text);
    return settings;
}

static void refused(const char *text, const char *const *words)
{
    rt_settings settings = { .is_debug = true };
    rt_error err;
    cr_expect(!load_words(&settings, &err, words), "accepted; expected: %s", text);
    cr_expect_str_eq(err.text, text);
    cr_expect(settings.is_debug && !settings.origins, "a failure leaves the settings alone");
}

static void environment(const char *const *names)
{
    size_t count = 0;
    while (names[count])
        count++;
    char **copy = rt_arena_alloc(&arena, sizeof(*copy) * (count + 1));
    for (size_t i = 0; i < count; i++)
        copy[i] = rt_arena_copy(&arena, rt_str_of(names[i]));
    world.environment = copy;
}

#define ENVIRONMENT(...) environment(WORDS(__VA_ARGS__))

static void expect_source(const rt_settings *s, const char *key, const char *source)
{
    rt_str found = cli_settings_source(s, key);
    cr_expect(rt_str_eq_c(found, source), "%s: '%.*s', not '%s'", key, RT_FMT(found), source);
}

static void expect_text(rt_str text, const char *expected)
{
    cr_expect(rt_str_eq_c(text, expected), "'%.*s', not '%s'", RT_FMT(text), expected);
}

static void expect_warning(const rt_settings *s, const char *part)
{
    for (size_t i = 0; i < s->warnings.count; i++)
        if (rt_str_find(s->warnings.items[i], rt_str_of(part)) >= 0)
            return;
    cr_expect(false, "no warning says '%s'", part);
}

/* ---- defaults ---- */

Test(settings, the_defaults_are_safe_and_those_of_the_requirements)
{
    rt_settings s = LOAD();
    expect_text(s.server.bind, "127.0.0.1");
    cr_expect_eq(s.server.port, 8002);
    cr_expect_eq(s.execution.timeout_ms, 30000);
    cr_expect_eq(s.execution.memory_bytes, 512u << 20);
    cr_expect_eq(s.execution.max_running, 10);
    cr_expect_eq(s.execution.max_memory_bytes, 3072ull << 20);
    cr_expect(s.privacy.is_enabled && s.cost.is_enabled && s.cache.is_enabled);
    cr_expect(s.execution.is_enabled && s.execution.rollout_percent == 100);
    cr_expect(!s.retention.is_data_kept && s.retention.days == 90);
    cr_expect_float_eq(s.cost.usd_per_million_tokens, 0.10, 1e-12);
    cr_expect_eq(s.auth.required, CLI_AUTH_AUTO);
    cr_expect_eq(s.log.level, RT_LOG_INFO);
    cr_expect_eq(s.warnings.count, 0);
    cr_expect(s.node.name.len > 0);
    expect_source(&s, "server.port", "default");
}

Test(settings, the_data_directory_is_where_the_host_keeps_data)
{
    rt_settings s = LOAD();
    expect_text(s.data_dir, rt_arena_printf(&arena, "%s/home/.local/share/retort", folder).ptr);
    expect_text(
        s.database.url,
        rt_arena_printf(&arena, "sqlite://%s/home/.local/share/retort/retort.db", folder).ptr);
    ENVIRONMENT("XDG_DATA_HOME=/data");
    expect_text(LOAD().data_dir, "/data/retort");
    ENVIRONMENT("XDG_DATA_HOME=relative");
    expect_text(LOAD().data_dir, s.data_dir.ptr);
    world.is_root = true;
    ENVIRONMENT("XDG_DATA_HOME=/data");
    expect_text(LOAD().data_dir, "/var/lib/retort");
}

/* ---- layers ---- */

Test(settings, a_later_layer_wins_and_each_value_knows_its_source)
{
    rt_settings s = LOAD();
    expect_source(&s, "server.port", "default");
    put("here/retort.yaml", "server:\n  port: 1001\ncache: {entries: 5}\n");
    s = LOAD();
    cr_expect_eq(s.server.port, 1001);
    expect_source(&s, "server.port", "retort.yaml:2");
    put("here/.env", "\nRETORT_PORT=1002\n");
    s = LOAD();
    cr_expect_eq(s.server.port, 1002);
    expect_source(&s, "server.port", ".env:2");
    ENVIRONMENT("CODE_EXEC_PORT=1003");
    s = LOAD();
    cr_expect_eq(s.server.port, 1003, "no name in .env wins over the environment");
    expect_source(&s, "server.port", "environment CODE_EXEC_PORT");
    s = LOAD("--port", "1004");
    cr_expect_eq(s.server.port, 1004);
    expect_source(&s, "server.port", "flag --port");
    cr_expect_eq(s.cache.entries, 5);
    expect_source(&s, "cache.entries", "retort.yaml:3");
}

Test(settings, a_wrong_value_is_an_error_even_under_a_right_one)
{
    put("here/retort.yaml", "server.port: many\n");
    REFUSED("retort.yaml:1: server.port: 'many' is not a whole number from 0 to 65535", "--port",
            "1");
}

Test(settings, the_file_is_the_first_that_exists)
{
    put("etc/retort.yaml", "server.port: 3\n");
    rt_settings s = LOAD();
    cr_expect_eq(s.server.port, 3);
    expect_source(&s, "server.port", rt_arena_printf(&arena, "%s/etc/retort.yaml:1", folder).ptr);
    put("home/retort.yaml", "server.port: 2\n");
    cr_expect_eq(LOAD("--data-dir", "~").server.port, 2);
    cr_expect_eq(LOAD().server.port, 3);
    put("here/retort.yaml", "server.port: 1\n");
    cr_expect_eq(LOAD("--data-dir", "~").server.port, 1);
    put("here/other.yaml", "server.port: 4\n");
    ENVIRONMENT("RETORT_CONFIG=other.yaml");
    s = LOAD();
    cr_expect_eq(s.server.port, 4);
    expect_source(&s, "server.port", "other.yaml:1");
    expect_text(s.file, rt_arena_printf(&arena, "%s/here/other.yaml", folder).ptr);
    cr_expect_eq(LOAD("--config", "retort.yaml").server.port, 1);
}

Test(settings, a_file_that_was_asked_for_must_be_there)
{
    rt_error err;
    rt_settings s;
    cr_expect(!load_words(&s, &err, WORDS("--config", "gone.yaml")));
    cr_expect_eq(err.code, RT_NOT_FOUND);
    cr_expect(strstr(err.text, "gone.yaml"), "%s", err.text);
    REFUSED("flag --config needs the name of a file", "--config=");
    REFUSED("flag --config needs a value", "--config");
}

Test(settings, a_python_environment_called_dot_env_is_left_alone)
{
    make_folder("here/.env");
    cr_expect_eq(LOAD().warnings.count, 0);
}

/* ---- flags ---- */

Test(settings, every_key_is_a_flag_with_its_value_in_the_same_word_or_the_next)
{
    rt_settings s = LOAD("--server.max-body", "1M", "--server.max_connections=7", "--cache.ttl=1m");
    cr_expect_eq(s.server.max_body_bytes, 1u << 20);
    cr_expect_eq(s.server.max_connections, 7);
    cr_expect_eq(s.cache.ttl_ms, 60000);
    expect_source(&s, "server.max_body", "flag --server.max-body");
    cr_expect_eq(LOAD("--port", "1", "--server.port", "2").server.port, 2, "the last one wins");
    REFUSED("flag --port needs a value", "--port");
    REFUSED("flag --port: server.port: '' is not a whole number from 0 to 65535", "--port=");
}

Test(settings, a_switch_needs_no_value)
{
    cr_expect(LOAD("--debug").is_debug);
    cr_expect(LOAD("--debug", "--port", "1").is_debug);
    cr_expect(!LOAD("--debug", "off").is_debug);
    cr_expect(!LOAD("--debug=false").is_debug);
    rt_settings s = LOAD("--no-cache", "--no-pii-protection", "true");
    cr_expect(!s.cache.is_enabled && !s.privacy.is_enabled);
    cr_expect_eq(left_count, 2, "--no-… takes no value");
    REFUSED("flag --no-cache takes no value", "--no-cache=1");
    REFUSED("flag --debug: debug: 'maybe' is neither true nor false", "--debug=maybe");
}

Test(settings, what_is_no_setting_stays_in_its_order)
{
    LOAD("a", "--port", "1", "--json", "b", "--", "--port", "2");
    cr_assert_eq(left_count, 7);
    static const char *const expected[] = { "config", "a", "--json", "b", "--", "--port", "2" };
    for (int i = 0; i < left_count; i++)
        cr_expect_str_eq(left[i], expected[i]);
    cr_expect_null(left[left_count]);
}

Test(settings, an_unknown_flag_comes_with_a_suggestion)
{
    static const struct {
        const char *flag, *text;
    } cases[] = {
        { "--prot", "unknown option --prot; did you mean --port?" },
        { "--server.prot=1", "unknown option --server.prot; did you mean --server.port?" },
        { "--no-cahce", "unknown option --no-cahce; did you mean --no-cache?" },
        { "--conf", "unknown option --conf; did you mean --config?" },
        { "--zzzzzzzzzz", "unknown option --zzzzzzzzzz; --help lists them" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        rt_error err = { 0 };
        cr_expect(!cli_settings_unknown_flag(cases[i].flag, &err));
        cr_expect_str_eq(err.text, cases[i].text);
    }
}

/* ---- what follows from other values ---- */

Test(settings, the_parts_of_a_postgresql_make_its_url)
{
    ENVIRONMENT("DB_HOST=db.example", "DB_NAME=my db", "DB_USER=u", "DB_PASSWORD=a@b/c");
    rt_settings s = LOAD();
    expect_text(s.database.url, "postgresql://u:a%40b%2Fc@db.example:5432/my%20db");
    expect_source(&s, "database.url", "environment DB_HOST");
    ENVIRONMENT("DB_HOST=::1", "DB_PORT=6000");
    expect_text(LOAD().database.url, "postgresql://postgres@[::1]:6000/retort");
    ENVIRONMENT("DB_HOST=/run/postgresql");
    expect_text(LOAD().database.url, "postgresql://postgres@%2Frun%2Fpostgresql:5432/retort");
}

Test(settings, a_url_wins_over_the_parts)
{
    put("here/retort.yaml", "database.url: sqlite:///x.db\n");
    ENVIRONMENT("DB_HOST=db.example");
    rt_settings s = LOAD();
    expect_text(s.database.url, "sqlite:///x.db");
    expect_source(&s, "database.url", "retort.yaml:1");
}

Test(settings, debug_logs_more_unless_the_level_is_set)
{
    rt_settings s = LOAD("--debug");
    cr_expect_eq(s.log.level, RT_LOG_DEBUG);
    expect_source(&s, "log.level", "flag --debug");
    cr_expect_eq(LOAD("--debug", "--log.level=error").log.level, RT_LOG_ERROR);
}

/* ---- checks ---- */

Test(settings, values_that_do_not_fit_together_are_refused_with_their_sources)
{
    put("here/retort.yaml", "execution:\n  max_timeout: 10s\n");
    REFUSED("execution.timeout (30s, default) is more than execution.max_timeout (10s, "
            "retort.yaml:2)");
    cr_expect_eq(LOAD("--execution.timeout=10s").execution.timeout_ms, 10000);
    put("here/retort.yaml", "");
    REFUSED("execution.memory (512M, default) is more than execution.max_memory (64M, flag "
            "--execution.max_memory)",
            "--execution.max_memory", "64M");
    REFUSED("sessions.ttl (48h, flag --sessions.ttl) is more than sessions.max_ttl (24h, default)",
            "--sessions.ttl=2d");
    REFUSED("server.tls_key is set and server.tls_certificate is not; they go together",
            "--server.tls_key=/k");
    REFUSED("telemetry.posthog_url is set and telemetry.posthog_key is not; they go together",
            "--telemetry.posthog_url=http://h");
}

Test(settings, only_what_there_is_can_be_chosen)
{
    REFUSED("flag --execution.default_policy: execution.default_policy: there is no policy 'lax'; "
            "'retort policies' lists them",
            "--execution.default_policy", "lax");
    expect_text(LOAD("--execution.default_policy", "voice").execution.default_policy, "voice");
    REFUSED("flag --execution.adapter: execution.adapter: 'lambda' is not one of: auto native "
            "placeholder",
            "--execution.adapter=lambda");
    cr_expect_eq(LOAD("--execution.adapter=Placeholder").execution.adapter,
                 CLI_ADAPTER_PLACEHOLDER);
    REFUSED("flag --hash.algorithm: hash.algorithm: 'md5' is not one of: sha256",
            "--hash.algorithm=md5");
    REFUSED("flag --execution.rollout_percent: execution.rollout_percent: '101' is not a whole "
            "number from 0 to 100",
            "--execution.rollout_percent=101");
}

Test(settings, whoever_turns_protection_off_is_warned_and_so_is_who_sets_what_does_nothing)
{
    ENVIRONMENT("PML_NO_PII_PROTECTION=1", "PML_NO_CACHE=1", "GEMINI_API_KEY=secret");
    rt_settings s = LOAD();
    expect_warning(&s, "privacy.enabled is false (environment PML_NO_PII_PROTECTION)");
    expect_warning(&s, "cache.enabled is false (environment PML_NO_CACHE)");
    expect_warning(&s, "environment GEMINI_API_KEY: gemini.api_key has no effect in this version");
    for (size_t i = 0; i < s.warnings.count; i++)
        cr_expect_lt(rt_str_find(s.warnings.items[i], RT_STR("secret")), 0);
}

/* ---- showing ---- */

static rt_str printed(const rt_settings *s, bool is_json)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    cli_settings_print(s, is_json, to);
    fclose(to);
    rt_str copy = rt_arena_str(&arena, (rt_str){ text, size });
    free(text);
    return copy;
}

Test(settings, secrets_are_never_printed)
{
    ENVIRONMENT("DB_HOST=h", "DB_PASSWORD=hunter2", "GEMINI_API_KEY=hunter2",
                "RETORT_TELEMETRY_POSTHOG_KEY=hunter2", "RETORT_TELEMETRY_POSTHOG_URL=http://p",
                "RETORT_TELEMETRY_OTLP_HEADERS=a=hunter2", "RETORT_REDIS_URL=redis://:hunter2@h/2");
    rt_settings s = LOAD();
    cr_expect_lt(rt_str_find(printed(&s, false), RT_STR("hunter2")), 0);
    cr_expect_lt(rt_str_find(printed(&s, true), RT_STR("hunter2")), 0);
    cr_expect_geq(rt_str_find(printed(&s, false), RT_STR("redis://:***@h/2")), 0);
    expect_text(s.redis.url, "redis://:hunter2@h/2");
}

Test(settings, json_has_every_key_with_value_and_source)
{
    rt_settings s = LOAD("--server.allowed_hosts=a,b");
    rt_json doc, all, one;
    rt_error err = { 0 };
    cr_assert(rt_json_parse(printed(&s, true), &arena, &doc, &err), "%s", err.text);
    all = rt_json_get_c(doc, "settings");
    cr_expect_eq(rt_json_count(all), cli_setting_count());
    one = rt_json_get_c(all, "server.allowed_hosts");
    cr_expect_eq(rt_json_count(rt_json_get_c(one, "value")), 2);
    expect_text(rt_json_str(rt_json_get_c(one, "source")), "flag --server.allowed_hosts");
    expect_text(rt_json_str(rt_json_get_c(rt_json_get_c(all, "server.max_body"), "value")), "64M");
    expect_text(rt_json_number(rt_json_get_c(rt_json_get_c(all, "server.port"), "value")), "8002");
}

Test(settings, the_example_with_its_comment_signs_taken_away_is_the_default)
{
    char *text = NULL;
    size_t size = 0;
    rt_settings before = LOAD();
    FILE *to = open_memstream(&text, &size);
    cli_settings_example(to);
    fclose(to);
    for (char *c = text; (c = strchr(c, '#')); c++)
        if (c[1] >= 'a' && c[1] <= 'z')
            memmove(c, c + 1, strlen(c));
    put("here/retort.yaml", text);
    free(text);
    rt_settings after = LOAD();
    const cli_setting *setting;
    for (size_t i = 0; (setting = cli_setting_at(i)); i++) {
        rt_buf a RT_CLEANUP(rt_buf_done) = { 0 }, b RT_CLEANUP(rt_buf_done) = { 0 };
        cli_setting_text(&before, setting, &a);
        cli_setting_text(&after, setting, &b);
        cr_expect(rt_str_eq(rt_buf_str(&a), rt_buf_str(&b)), "%s", setting->key);
        cr_expect_eq(after.origins[i].layer, setting->fallback ? CLI_FILE : CLI_DEFAULT, "%s",
                     setting->key);
    }
}

/* ---- the table ---- */

Test(settings, the_table_is_sound)
{
    const cli_setting *a, *b;
    for (size_t i = 0; (a = cli_setting_at(i)); i++) {
        char variable[CLI_KEY_MAX];
        cli_setting_variable(a, variable);
        cr_expect_lt(strlen(a->key) + 7, CLI_KEY_MAX);
        cr_expect(a->about && a->about[0], "%s", a->key);
        cr_expect(!a->fallback == !!a->computed, "%s has a default or says how it is found",
                  a->key);
        cr_expect(!cli_setting_is_section(rt_str_of(a->key)), "%s is a key and a section", a->key);
        for (size_t j = i + 1; (b = cli_setting_at(j)); j++) {
            char other[CLI_KEY_MAX];
            cli_setting_variable(b, other);
            cr_expect_str_neq(a->key, b->key);
            cr_expect_str_neq(variable, other);
            cr_expect_neq(a->offset, b->offset, "%s and %s share a field", a->key, b->key);
            for (size_t n = 0; n < CLI_NAMES_MAX && a->names[n].name; n++)
                for (size_t m = 0; m < CLI_NAMES_MAX && b->names[m].name; m++)
                    cr_expect_str_neq(a->names[n].name, b->names[m].name);
        }
    }
}
