/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings.h - the configuration of the daemon, and where each value came from.
 *
 * Promise: every value is within its bounds, or loading fails and names the place, the key and what
 * was expected. What is not known is an error with a suggestion, never passed over. Later layers
 * win: default, retort.yaml, .env, environment, flag.
 *
 *     rt_settings settings;
 *     if (!cli_settings_load(&argc, argv, &arena, &settings, err))
 *         return false;                      // "retort.yaml:3: server.port: 'x' is not …"
 *     for (size_t i = 0; i < settings.warnings.count; i++)
 *         rt_log(RT_LOG_WARN, "%.*s", RT_FMT(settings.warnings.items[i]));
 *     listen_on(settings.server.bind, settings.server.port);
 *
 * One row per key in settings_table.c fills the fields below; docs/configuration.md, `--help`,
 * `retort config` and its example all come from there.
 */
#ifndef RETORT_CLI_SETTINGS_H
#define RETORT_CLI_SETTINGS_H

#include <stdio.h>

#include "base/base.h"
#include "runtimes/runtimes.h"

typedef struct cli_words {
    const rt_str *items;
    size_t count;
} cli_words;

typedef enum cli_auth { CLI_AUTH_AUTO, CLI_AUTH_ALWAYS } cli_auth;
typedef enum cli_sync { CLI_SYNC_NORMAL, CLI_SYNC_FULL } cli_sync;
typedef enum cli_adapter {
    CLI_ADAPTER_AUTO,
    CLI_ADAPTER_NATIVE,
    CLI_ADAPTER_PLACEHOLDER
} cli_adapter;
typedef enum cli_future {
    CLI_FUTURE_NONE,
    CLI_FUTURE_BEDROCK,
    CLI_FUTURE_LAMBDA,
    CLI_FUTURE_CONTAINER
} cli_future;
typedef enum cli_log_format { CLI_LOG_TEXT, CLI_LOG_JSON } cli_log_format;
typedef enum cli_hash { CLI_HASH_SHA256 } cli_hash;

/* Texts end with a NUL outside their length, so that .ptr is a C string. Paths are absolute. */
typedef struct rt_settings {
    rt_str data_dir;
    bool is_debug;
    struct {
        rt_str bind;
        uint64_t port;                   /* 0: any free one */
        rt_str tls_certificate, tls_key; /* both or neither */
        uint64_t max_connections, max_body_bytes, request_timeout_ms;
        uint64_t rate_per_minute; /* of one key; 0: no limit */
        cli_words allowed_origins, allowed_hosts;
        rt_str public_url; /* empty: made from bind and port */
    } server;
    struct {
        cli_auth required;
    } auth;
    struct {
        rt_str url; /* made from host … password, or under data_dir, when it is not given */
        cli_sync sync;
        uint64_t connections;
        rt_str host, name, user, password;
        uint64_t port;
    } database;
    struct {
        rt_str url; /* empty: none */
    } redis;
    struct {
        bool is_enabled;
        uint64_t entries, ttl_ms, max_bytes;
    } cache;
    struct {
        bool is_enabled;
        uint64_t rollout_percent; /* for engine_rollout_includes() */
        uint64_t max_running, max_memory_bytes, queue, queue_wait_ms;
        rt_str default_policy; /* a preset that exists */
        uint64_t timeout_ms, memory_bytes, max_timeout_ms, max_memory_per_run_bytes;
        rt_isolation isolation;
        cli_adapter adapter;
        uint64_t pool, max_cells;
        cli_future future_adapter;
        bool is_availability_checked;
    } execution;
    struct {
        uint64_t budget_bytes;
    } output;
    struct {
        uint64_t ttl_ms, max_bytes;
    } artifacts;
    struct {
        uint64_t max, ttl_ms, max_ttl_ms;
    } sessions;
    struct {
        cli_words granted, needs_approval, sees_pii; /* patterns: "github:*" */
        bool has_samples;
    } tools;
    struct {
        rt_str config; /* a file; empty: mcp.json in data_dir, if there is one */
    } mcp;
    struct {
        bool is_enabled, is_required;
        unsigned mode;             /* an rt_privacy_mode */
        cli_words types, patterns; /* "EMAIL"; "BADGE=B-[0-9]{4}" */
    } privacy;
    struct {
        bool is_enabled;
        double usd_per_million_tokens, traditional_usd_per_million_tokens;
        double cached_usd_per_million_tokens, chars_per_token;
    } cost;
    struct {
        double usd_month;   /* 0: no budget */
        rt_str webhook_url; /* empty: none */
    } budget;
    struct {
        uint64_t days; /* 0: for ever */
        bool is_data_kept, are_answers_kept;
    } retention;
    struct {
        rt_log_level level;
        cli_log_format format;
    } log;
    struct {
        rt_str otlp_endpoint, otlp_headers, span_file, posthog_url, posthog_key;
    } telemetry;
    struct {
        rt_str name;
    } node;
    struct {
        rt_str name;
    } service;
    struct {
        cli_hash algorithm;
    } hash;
    struct {
        rt_str directory;
        bool is_approval_needed;
        cli_words allowed;
        unsigned privacy; /* an rt_privacy_mode: note is off */
    } skills;
    struct {
        rt_str model;
    } embedding;
    struct {
        rt_str directory, default_name; /* the latter empty: none */
    } models;
    struct {
        rt_str api_key;
    } gemini;

    rt_str file;                      /* the retort.yaml that was read; empty: there was none */
    cli_words warnings;               /* for the log: nothing here stops the program */
    const struct cli_origin *origins; /* one per row of the table */
} rt_settings;

/*
 * Reads all layers. Flags that are settings are taken out of argv, from argv[1] to the end or "--";
 * what stays is the caller's, who can complain about it with cli_settings_unknown_flag().
 * Everything lives in the arena.
 */
bool cli_settings_load(int *argc, char **argv, rt_arena *arena, rt_settings *out, rt_error *err);

/* "unknown option --prot; did you mean --port?", with RT_INVALID. */
bool cli_settings_unknown_flag(const char *flag, rt_error *err);

/* "environment RETORT_PORT"; for messages that blame a value. Empty: there is no such key. */
rt_str cli_settings_source(const rt_settings *settings, const char *key);

/* Every key with its value and source; what is secret is shown as ***. */
void cli_settings_print(const rt_settings *settings, bool is_json, FILE *to);

void cli_settings_help(FILE *to);     /* one line per flag, for --help */
void cli_settings_example(FILE *to);  /* a retort.yaml with every key as a comment */
void cli_settings_markdown(FILE *to); /* the table of docs/configuration.md */

#endif
