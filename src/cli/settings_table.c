/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings_table.c - one row per key: its field, bounds, default, names and meaning.
 *
 * A new setting is a field in settings.h and a row here; the macros refuse a field of the wrong
 * type. The order is the one people see. docs/configuration.md shows this table, and a test says
 * when it does not.
 */
#include "cli/settings_internal.h"

#define KB 1024ull
#define MB (1024 * KB)
#define GB (1024 * MB)
#define TB (1024 * GB)

#define SECOND 1000ull
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

/* The field's offset, and a compiler's error when it is not of that type. */
#define FIELD(type, field)                                                                         \
    (offsetof(rt_settings, field) + 0 * sizeof(_Generic(((rt_settings *)0)->field, type : 0)))

#define COUNT(field, least, most)                                                                  \
    .kind = CLI_COUNT, .offset = FIELD(uint64_t, field), .min = (least), .max = (most)
#define BYTES(field, least, most)                                                                  \
    .kind = CLI_BYTES, .offset = FIELD(uint64_t, field), .min = (least), .max = (most)
#define DURATION(field, least, most)                                                               \
    .kind = CLI_DURATION, .offset = FIELD(uint64_t, field), .min = (least), .max = (most)
#define NUMBER(field, least, most)                                                                 \
    .kind = CLI_NUMBER, .offset = FIELD(double, field), .min = (least), .max = (most)
#define SWITCH(field) .kind = CLI_SWITCH, .offset = FIELD(bool, field)
#define CHOICE(field, words)                                                                       \
    .kind = CLI_CHOICE, .offset = FIELD(unsigned, field), .choices = (words)
#define TEXT(field) .kind = CLI_TEXT, .offset = FIELD(rt_str, field)
#define PATH(field) .kind = CLI_PATH, .offset = FIELD(rt_str, field)
#define LIST(field) .kind = CLI_LIST, .offset = FIELD(cli_words, field)

#define NAME(variable)                                                                             \
    {                                                                                              \
        .name = (variable)                                                                         \
    }
#define NAME_AS(variable, as)                                                                      \
    {                                                                                              \
        .name = (variable), .convert = (as)                                                        \
    }

static const cli_setting table[] = {
    { "data_dir", PATH(data_dir), .min = 1, .flag = "--data-dir",
      .computed = "/var/lib/retort for root, else $XDG_DATA_HOME/retort or ~/.local/share/retort",
      .about = "where the database, the keys and the artifacts lie" },

    { "server.bind", TEXT(server.bind), .fallback = "127.0.0.1", .min = 1, .flag = "--bind",
      .names = { NAME("RETORT_BIND"), NAME("CODE_EXEC_HOST") },
      .about = "the address to listen on" },
    { "server.port", COUNT(server.port, 0, 65535), .fallback = "8002", .flag = "--port",
      .names = { NAME("RETORT_PORT"), NAME("CODE_EXEC_PORT") },
      .about = "the port to listen on; 0 takes a free one" },
    { "server.tls_certificate", PATH(server.tls_certificate), .fallback = "",
      .about = "a PEM file with the certificate and its chain; goes with server.tls_key" },
    { "server.tls_key", PATH(server.tls_key), .fallback = "",
      .about = "a PEM file with the private key" },
    { "server.max_connections", COUNT(server.max_connections, 1, 100000), .fallback = "1000",
      .about = "connections at once" },
    { "server.max_body", BYTES(server.max_body_bytes, 1 * KB, 1 * GB), .fallback = "64M",
      .about = "the largest request body" },
    { "server.request_timeout", DURATION(server.request_timeout_ms, 1 * SECOND, 1 * HOUR),
      .fallback = "30s", .about = "how long a client may take to send its request" },
    { "server.rate_per_minute", COUNT(server.rate_per_minute, 0, 100000000), .fallback = "6000",
      .about = "requests a minute and key; 0 sets no limit" },
    { "server.allowed_origins", LIST(server.allowed_origins), .fallback = "",
      .about = "web pages that may call, as https://host:port" },
    { "server.allowed_hosts", LIST(server.allowed_hosts), .fallback = "",
      .about = "names this server is called by, besides its address" },
    { "server.public_url", TEXT(server.public_url), .fallback = "", .choices = "http:// https://",
      .about = "the address callers use, when a proxy stands before us" },

    { "auth.required", CHOICE(auth.required, "auto always"), .fallback = "auto",
      .about = "always: each call needs a key; auto: not on a loopback address while there are no "
               "keys" },

    { "database.url", TEXT(database.url), .flag = "--database-url",
      .choices = "sqlite: postgresql:// postgres://",
      .computed = "from database.host, else SQLite in data_dir", .secrecy = CLI_HAS_PASSWORD,
      .about = "sqlite:///path or postgresql://user@host/name" },
    { "database.host", TEXT(database.host), .fallback = "", .names = { NAME("DB_HOST") },
      .about = "the host of a PostgreSQL, when database.url is not set" },
    { "database.port", COUNT(database.port, 1, 65535), .fallback = "5432",
      .names = { NAME("DB_PORT") }, .about = "its port" },
    { "database.name", TEXT(database.name), .fallback = "retort", .min = 1,
      .names = { NAME("DB_NAME") }, .about = "the database there" },
    { "database.user", TEXT(database.user), .fallback = "postgres", .min = 1,
      .names = { NAME("DB_USER") }, .about = "the user there" },
    { "database.password", TEXT(database.password), .fallback = "",
      .names = { NAME("DB_PASSWORD") }, .secrecy = CLI_SECRET, .about = "and the password" },
    { "database.sync", CHOICE(database.sync, "normal full"), .fallback = "normal",
      .about = "SQLite: full survives a loss of power too, at the price of an fsync a run" },
    { "database.connections", COUNT(database.connections, 1, 1000), .fallback = "8",
      .about = "connections to the database" },

    { "redis.url", TEXT(redis.url), .fallback = "", .flag = "--redis-url",
      .choices = "redis:// unix://", .names = { NAME("CODE_EXEC_REDIS_URL") },
      .secrecy = CLI_HAS_PASSWORD, .about = "a Redis through which nodes share their cache" },

    { "cache.enabled", SWITCH(cache.is_enabled), .fallback = "true", .off_flag = "--no-cache",
      .names = { NAME_AS("PML_NO_CACHE", CLI_INVERTED), NAME_AS("CAI_NO_CACHE", CLI_INVERTED),
                 NAME_AS("AGENTCARDS_NO_CACHE", CLI_INVERTED) },
      .about = "answer the same code with the same input from memory" },
    { "cache.entries", COUNT(cache.entries, 1, 10000000), .fallback = "1000",
      .about = "results kept" },
    { "cache.ttl", DURATION(cache.ttl_ms, 1 * SECOND, 30 * DAY), .fallback = "5m",
      .about = "how long a result is kept" },
    { "cache.max_bytes", BYTES(cache.max_bytes, 64 * KB, 1 * TB), .fallback = "64M",
      .about = "memory for results" },

    { "execution.enabled", SWITCH(execution.is_enabled), .fallback = "true",
      .names = { NAME("USE_CODE_EXECUTION") },
      .about = "the feature flag: false answers every run with 503" },
    { "execution.rollout_percent", COUNT(execution.rollout_percent, 0, 100), .fallback = "100",
      .about = "the part of the users that may run code; who is in stays in as it grows" },
    { "execution.max_running", COUNT(execution.max_running, 1, RT_CELLS_MAX), .fallback = "10",
      .about = "runs at once" },
    { "execution.max_memory", BYTES(execution.max_memory_bytes, 16 * MB, 64 * TB), .fallback = "3G",
      .about = "memory of all runs together" },
    { "execution.queue", COUNT(execution.queue, 0, 1000000), .fallback = "1000",
      .about = "runs that may wait for their turn; more are refused" },
    { "execution.queue_wait", DURATION(execution.queue_wait_ms, 0, 1 * HOUR), .fallback = "30s",
      .about = "how long a run waits for its turn" },
    { "execution.default_policy", TEXT(execution.default_policy), .fallback = "default", .min = 1,
      .about = "the preset of runs that name none; 'retort policies' lists them" },
    { "execution.timeout", DURATION(execution.timeout_ms, 100, 300 * SECOND), .fallback = "30s",
      .names = { NAME("CODE_EXEC_MAX_EXECUTION_TIME"), NAME("SANDBOX_TIMEOUT_SEC") },
      .about = "the time of a run that asks for none" },
    { "execution.memory", BYTES(execution.memory_bytes, 16 * MB, 64 * GB), .fallback = "512M",
      .names = { NAME_AS("SANDBOX_MAX_MEMORY_MB", CLI_IN_MEGABYTES) },
      .about = "the memory of a run that asks for none" },
    { "execution.max_timeout", DURATION(execution.max_timeout_ms, 100, 300 * SECOND),
      .fallback = "5m", .about = "the most time a run may ask for" },
    { "execution.max_memory_per_run", BYTES(execution.max_memory_per_run_bytes, 16 * MB, 64 * GB),
      .fallback = "4G", .about = "the most memory a run may ask for" },
    { "execution.isolation", CHOICE(execution.isolation, "standard strict"), .fallback = "standard",
      .about = "strict: refuse where a layer has only a substitute" },
    { "execution.adapter", CHOICE(execution.adapter, "auto native placeholder"), .fallback = "auto",
      .about = "native runs code here; placeholder answers not_implemented; auto is native" },
    { "execution.pool", COUNT(execution.pool, 0, RT_CELLS_MAX / 2), .fallback = "4",
      .about = "warm cells of each kind that wait for a run" },
    { "execution.max_cells", COUNT(execution.max_cells, 1, RT_CELLS_MAX), .fallback = "80",
      .about = "cells at once: runs, sessions and warm ones" },
    { "execution.future_adapter", CHOICE(execution.future_adapter, "none bedrock lambda container"),
      .fallback = "none", .is_reserved = true, .about = "the adapter to change to one day" },
    { "execution.check_availability", SWITCH(execution.is_availability_checked), .fallback = "true",
      .is_reserved = true, .about = "look now and then whether the future adapter can be had" },

    { "output.budget", BYTES(output.budget_bytes, 1 * KB, 60 * MB), .fallback = "64K",
      .about = "output past this becomes an artifact with a handle" },

    { "artifacts.ttl", DURATION(artifacts.ttl_ms, 1 * MINUTE, 3650 * DAY), .fallback = "24h",
      .about = "how long files and large outputs are kept" },
    { "artifacts.max_bytes", BYTES(artifacts.max_bytes, 1 * MB, 1024 * TB), .fallback = "10G",
      .about = "disk for all of them; the oldest go first" },

    { "sessions.max", COUNT(sessions.max, 0, RT_CELLS_MAX), .fallback = "50",
      .about = "sessions at once" },
    { "sessions.ttl", DURATION(sessions.ttl_ms, 1 * SECOND, 30 * DAY), .fallback = "15m",
      .about = "how long a session lives unused, when it asks for nothing else" },
    { "sessions.max_ttl", DURATION(sessions.max_ttl_ms, 1 * SECOND, 30 * DAY), .fallback = "24h",
      .about = "the longest it may ask for" },

    { "mcp.config", PATH(mcp.config), .fallback = "", .flag = "--mcp-config",
      .about =
          "a file with the mcpServers whose tools code may call, as Claude and Cursor have it; "
          "without it, mcp.json in data_dir" },
    { "tools.granted", LIST(tools.granted), .fallback = "*",
      .about = "tools that may be called at all: names, or patterns such as github:*" },
    { "tools.needs_approval", LIST(tools.needs_approval), .fallback = "",
      .about = "tools that wait for a person's word, besides those that ask for it themselves" },
    { "tools.sees_pii", LIST(tools.sees_pii), .fallback = "",
      .about = "tools that get personal data in clear, in place of tokens" },
    { "tools.samples", SWITCH(tools.has_samples), .fallback = "true",
      .about = "the first start of a server brings the sample tools" },

    { "privacy.enabled", SWITCH(privacy.is_enabled), .fallback = "true",
      .off_flag = "--no-pii-protection",
      .names = { NAME("ENABLE_PII_PROTECTION"), NAME_AS("PML_NO_PII_PROTECTION", CLI_INVERTED),
                 NAME_AS("CAI_NO_PII_PROTECTION", CLI_INVERTED),
                 NAME_AS("AGENTCARDS_NO_PII_PROTECTION", CLI_INVERTED) },
      .about = "replace personal data before it reaches a model" },
    { "privacy.mode", CHOICE(privacy.mode, "off redact tokens partial"), .fallback = "off",
      .about = "what becomes of personal data in runs that say nothing of it" },
    { "privacy.required", SWITCH(privacy.is_required), .fallback = "false",
      .about =
          "refuse runs that ask for privacy off, and let them look for more only, not for less" },
    { "privacy.types", LIST(privacy.types), .fallback = "",
      .about = "what counts as personal data, e.g. EMAIL,PHONE; empty: all but PERSON" },
    { "privacy.patterns", LIST(privacy.patterns), .fallback = "",
      .about = "patterns of your own, NAME=REGEX as PCRE2 has them" },

    { "cost.enabled", SWITCH(cost.is_enabled), .fallback = "true",
      .names = { NAME("ENABLE_COST_TRACKING") }, .about = "count what runs cost" },
    { "cost.usd_per_million_tokens", NUMBER(cost.usd_per_million_tokens, 0, 1000000),
      .fallback = "0.10", .about = "the price of a million tokens of code, input and output" },
    { "cost.traditional_usd_per_million_tokens",
      NUMBER(cost.traditional_usd_per_million_tokens, 0, 1000000), .fallback = "90",
      .about = "the price of the same through the model's context, to compare with" },
    { "cost.cached_usd_per_million_tokens", NUMBER(cost.cached_usd_per_million_tokens, 0, 1000000),
      .fallback = "25", .about = "that price for tokens the model has cached" },
    { "cost.chars_per_token", NUMBER(cost.chars_per_token, 1, 100), .fallback = "4",
      .about = "characters in a token, on average" },

    { "budget.usd_month", NUMBER(budget.usd_month, 0, 1000000000), .fallback = "0",
      .about = "what an organisation may spend in a month; 0 sets no limit" },
    { "budget.webhook_url", TEXT(budget.webhook_url), .fallback = "",
      .choices = "http:// https://", .about = "what gets a POST when a budget is nearly spent" },

    { "retention.days", COUNT(retention.days, 0, 36500), .fallback = "90",
      .about = "how long runs and audit lines are kept; 0 is for ever" },
    { "retention.keep_data", SWITCH(retention.is_data_kept), .fallback = "false",
      .about = "keep the code, input and output of runs, not only their hashes" },
    { "retention.keep_answers", SWITCH(retention.are_answers_kept), .fallback = "true",
      .about = "keep the answer to a run with an idempotency key, sealed, to give it again" },

    { "log.level", CHOICE(log.level, "error warn info debug"), .fallback = "info",
      .names = { NAME_AS("CODE_EXEC_LOG_LEVEL", CLI_PYTHON_LEVEL) },
      .about = "the least that is logged" },
    { "log.format", CHOICE(log.format, "text json"), .fallback = "text",
      .names = { NAME_AS("CODE_EXEC_LOG_FORMAT", CLI_PYTHON_FORMAT) },
      .about = "lines of text, or of JSON" },
    { "debug", SWITCH(is_debug), .fallback = "false", .names = { NAME("CODE_EXEC_DEBUG") },
      .about = "log.level debug, unless that is set itself" },

    { "telemetry.otlp_endpoint", TEXT(telemetry.otlp_endpoint), .fallback = "",
      .choices = "http:// https://", .about = "a collector that gets spans; /v1/traces is added" },
    { "telemetry.otlp_headers", TEXT(telemetry.otlp_headers), .fallback = "", .secrecy = CLI_SECRET,
      .about = "headers to send along, as name=value,name=value" },
    { "telemetry.span_file", PATH(telemetry.span_file), .fallback = "",
      .about = "a file that gets each span as a line of OTLP JSON" },
    { "telemetry.posthog_url", TEXT(telemetry.posthog_url), .fallback = "",
      .choices = "http:// https://", .about = "a PostHog that gets product events" },
    { "telemetry.posthog_key", TEXT(telemetry.posthog_key), .fallback = "", .secrecy = CLI_SECRET,
      .about = "its project key" },

    { "node.name", TEXT(node.name), .computed = "the host's name", .min = 1,
      .about = "this node, among those that share a database" },
    { "service.name", TEXT(service.name), .fallback = "retort", .min = 1,
      .names = { NAME("CODE_EXEC_SERVICE_NAME") }, .about = "what telemetry calls this service" },
    { "hash.algorithm", CHOICE(hash.algorithm, "sha256"), .fallback = "sha256",
      .names = { NAME("CODE_EXEC_HASH_ALGORITHM") }, .about = "of code, inputs and outputs" },

    { "skills.directory", PATH(skills.directory), .fallback = "", .flag = "--skills-directory",
      .names = { NAME("CODE_EXEC_SKILLS_DIRECTORY") },
      .about = "skills to load besides the built-in ones and those in data_dir/skills" },
    { "skills.approve_side_effects", SWITCH(skills.is_approval_needed), .fallback = "true",
      .names = { NAME("CODE_EXEC_REQUIRE_POLICY_APPROVAL_FOR_SIDE_EFFECTS") },
      .about = "a skill with side effects waits for an approval" },
    { "skills.allow_external", LIST(skills.allowed), .fallback = "",
      .about = "skills with external_call or network_access that may be called; * is all of them" },
    { "skills.privacy", CHOICE(skills.privacy, "note redact tokens partial"), .fallback = "note",
      .about = "personal data of skills with pii_risk: noted in the record, or masked as well" },
    { "embedding.model", TEXT(embedding.model), .is_reserved = true,
      .fallback = "sentence-transformers/all-MiniLM-L6-v2",
      .names = { NAME("CODE_EXEC_EMBEDDING_MODEL") }, .about = "the model of text embeddings" },
    { "models.directory", PATH(models.directory), .computed = "models in data_dir",
      .about = "where installed sentence models lie" },
    { "models.default", TEXT(models.default_name), .fallback = "",
      .about = "an installed model that tool search asks for meaning; empty: the built-in vectors" },
    { "gemini.api_key", TEXT(gemini.api_key), .fallback = "", .is_reserved = true,
      .names = { NAME("GEMINI_API_KEY") }, .secrecy = CLI_SECRET,
      .about = "for document search by Gemini" },
};

const cli_setting *cli_setting_at(size_t i)
{
    return i < RT_COUNT(table) ? &table[i] : NULL;
}

size_t cli_setting_count(void)
{
    return RT_COUNT(table);
}

size_t cli_setting_index(const cli_setting *setting)
{
    return (size_t)(setting - table);
}

const cli_setting *cli_setting_find(rt_str key)
{
    for (size_t i = 0; i < RT_COUNT(table); i++)
        if (rt_str_eq_c(key, table[i].key))
            return &table[i];
    return NULL;
}

bool cli_setting_is_section(rt_str name)
{
    for (size_t i = 0; i < RT_COUNT(table); i++)
        if (name.len > 0 && strncmp(table[i].key, name.ptr, name.len) == 0 &&
            table[i].key[name.len] == '.')
            return true;
    return false;
}

void cli_setting_variable(const cli_setting *setting, char out[CLI_KEY_MAX])
{
    size_t len = 0;
    for (const char *prefix = "RETORT_"; *prefix; prefix++)
        out[len++] = *prefix;
    for (const char *c = setting->key; *c && len + 1 < CLI_KEY_MAX; c++)
        out[len++] = *c == '.' ? '_' : *c >= 'a' && *c <= 'z' ? (char)(*c - ('a' - 'A')) : *c;
    out[len] = '\0';
}
