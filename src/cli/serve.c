/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.c - `retort serve`: everything is opened from the ground up, and closed from the top down.
 *
 * The cells come first, because they are forked and the program must have no second thread then;
 * privileges go next. Signals are blocked before the first thread starts and taken by the main
 * thread alone, which does the house's chores while it waits for them.
 */
#include "cli/service.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define DRAIN_MS           30000 /* what runs may take to end after the first signal */
#define CHORE_SECONDS      2
#define SWEEP_EVERY_MS     60000
#define RETENTION_EVERY_MS 3600000
#define WEBHOOK_MS         5000
#define MB                 (1ull << 20)

typedef cli_service service;

static void print_help(void)
{
    puts("Usage: retort serve [options]\n\n"
         "Serves the HTTP API. Settings come from retort.yaml, .env, the environment and these\n"
         "flags; 'retort config' shows each with its source.\n");
    cli_settings_help(stdout);
    puts("      --mcp-fixture\n"
         "                                what the MCP conformance suite looks for; not for "
         "clients");
    puts("\nOperations:");
    rt_server_operation op;
    for (size_t i = 0; rt_server_operation_at(i, &op); i++)
        printf("  %-7s %-42s %s\n", op.method, op.path, op.summary);
}

/* ---- opening ---- */

static bool open_runtime(service *s, rt_error *err)
{
    const rt_settings *set = &s->house.settings;
    rt_local_config config = { .max_cells = (unsigned)set->execution.max_cells,
                               .pool_max = (unsigned)set->execution.pool };
    if (set->execution.adapter == CLI_ADAPTER_PLACEHOLDER) {
        s->runtime = rt_placeholder_open();
        return true;
    }
    cli_local_config(&config);
    return rt_local_open(&config, &s->runtime, err) && rt_sandbox_drop_privileges(err);
}

static void tell_warning(void *ctx, const char *text)
{
    (void)ctx;
    rt_log(RT_LOG_WARN, "%s", text);
}

/* What the standard OTEL_ variables say counts more than the settings. */
static bool open_telemetry(service *s, rt_error *err)
{
    const rt_settings *set = &s->house.settings;
    rt_telemetry_config config = { .service_name = set->service.name,
                                   .service_version = RT_STR(RETORT_VERSION),
                                   .sample_ratio = -1 };
    if (set->telemetry.otlp_endpoint.len > 0)
        config.otlp_traces_url = rt_arena_printf(&s->house.arena, "%.*s/v1/traces",
                                                 RT_FMT(set->telemetry.otlp_endpoint));
    if (set->telemetry.otlp_headers.len > 0)
        config.otlp_headers = set->telemetry.otlp_headers;
    if (set->telemetry.span_file.len > 0)
        config.span_file = set->telemetry.span_file.ptr;
    if (!set->privacy.is_enabled) /* the settings have warned of it */
        rt_outbound_scrub_set(rt_outbound_scrub_nothing);
    config.posthog_url = set->telemetry.posthog_url;
    config.posthog_key = set->telemetry.posthog_key;
    rt_telemetry_config_env(&config, &s->house.arena, tell_warning, NULL);
    config.warn = tell_warning;
    return rt_telemetry_open(&config, &s->telemetry, err) || rt_wrap(err, "telemetry");
}

static bool open_cache(service *s, rt_error *err)
{
    const rt_settings *set = &s->house.settings;
    rt_cache_config config = { .is_off = !set->cache.is_enabled,
                               .max_entries = (size_t)set->cache.entries,
                               .max_bytes = set->cache.max_bytes,
                               .ttl_ms = set->cache.ttl_ms,
                               .redis_url = set->redis.url };
    if (!set->cache.is_enabled)
        rt_log(RT_LOG_WARN, "the result cache is off");
    return rt_cache_open(&config, &s->cache, err) || rt_wrap(err, "the result cache");
}

/* The settings refine the preset; the operator's own limits are the ceiling of every request. */
static void choose_policies(service *s)
{
    const rt_settings *set = &s->house.settings;
    s->base_policy = *rt_policy_preset(set->execution.default_policy);
    s->base_policy.wall_ms = s->base_policy.cpu_ms = set->execution.timeout_ms;
    s->base_policy.memory_bytes = set->execution.memory_bytes;
    s->base_policy.isolation = set->execution.isolation;
    s->base_policy.privacy = (rt_privacy_mode)set->privacy.mode;
    s->ceiling = *rt_policy_preset(RT_STR("long"));
    s->ceiling.wall_ms = s->ceiling.cpu_ms = set->execution.max_timeout_ms;
    s->ceiling.memory_bytes = set->execution.max_memory_per_run_bytes;
    s->ceiling.scratch_bytes = set->execution.max_memory_per_run_bytes;
    s->ceiling.output_bytes = 60 * MB;
    s->ceiling.code_bytes = 16 * MB;
    s->ceiling.processes = 1024;
    s->ceiling.files = RT_FILES_SANDBOXED;
    s->ceiling.isolation = set->execution.isolation;
}

static rt_patterns patterns(cli_words words)
{
    return (rt_patterns){ words.items, words.count };
}

/* The lists of the settings in the words of a request. A pattern without a name gets an empty one,
 * which opening the engine refuses. */
static rt_json privacy_options(service *s)
{
    const rt_settings *set = &s->house.settings;
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json options = { 0 };
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    if (set->privacy.types.count > 0)
        rt_jw_karray(&w, "types");
    for (size_t i = 0; i < set->privacy.types.count; i++)
        rt_jw_str(&w, set->privacy.types.items[i]);
    if (set->privacy.types.count > 0)
        rt_jw_end(&w);
    rt_jw_kobject(&w, "patterns");
    for (size_t i = 0; i < set->privacy.patterns.count; i++) {
        rt_str regex = set->privacy.patterns.items[i], name = { 0 };
        rt_str_cut(&regex, '=', &name);
        rt_jw_key(&w, name);
        rt_jw_str(&w, regex);
    }
    rt_jw_end(&w);
    rt_jw_end(&w);
    rt_json_parse(rt_buf_str(&text), &s->house.arena, &options, NULL);
    return options;
}

static bool open_engine(service *s, rt_error *err)
{
    const rt_settings *set = &s->house.settings;
    choose_policies(s);
    rt_engine_config config = {
        .runtime = s->runtime,
        .store = s->house.store,
        .shelf = s->house.shelf,
        .vault = s->house.vault,
        .cache = s->cache,
        .telemetry = s->telemetry,
        .tools = s->tools,
        .tool_rules = { .granted = patterns(set->tools.granted),
                        .needs_approval = patterns(set->tools.needs_approval),
                        .sees_pii = patterns(set->tools.sees_pii) },
        .host = s->house.node,
        .host_url = set->server.public_url,
        .ceiling = &s->ceiling,
        .default_policy = set->execution.default_policy,
        .base_policy = &s->base_policy,
        .is_off = !set->execution.is_enabled,
        .rollout_percent = (unsigned)set->execution.rollout_percent,
        .has_rollout = set->execution.rollout_percent < 100,
        .is_privacy_off = !set->privacy.is_enabled,
        .is_privacy_required = set->privacy.is_required,
        .privacy_options = privacy_options(s),
        .keeps_data = set->retention.is_data_kept,
        .forgets_answers = !set->retention.are_answers_kept,
        .limits = { .max_running = (unsigned)set->execution.max_running,
                    .max_memory_bytes = set->execution.max_memory_bytes,
                    .max_queued = (unsigned)set->execution.queue,
                    .queue_wait_ms = set->execution.queue_wait_ms,
                    .max_sessions = (unsigned)set->sessions.max,
                    .session_ttl_ms = set->sessions.ttl_ms,
                    .session_max_ttl_ms = set->sessions.max_ttl_ms,
                    .output_budget_bytes = set->output.budget_bytes },
        .rates = { .is_off = !set->cost.is_enabled,
                   .execution = set->cost.usd_per_million_tokens,
                   .traditional = set->cost.traditional_usd_per_million_tokens,
                   .cached = set->cost.cached_usd_per_million_tokens,
                   .chars_per_token = set->cost.chars_per_token,
                   .budget_usd_month = set->budget.usd_month },
    };
    return rt_engine_open(&config, &s->engine, err);
}

static bool is_loopback(rt_str bind)
{
    struct in_addr v4;
    struct in6_addr v6;
    char text[64];
    snprintf(text, sizeof(text), "%.*s", RT_FMT(rt_str_slice(bind, 0, sizeof(text) - 1)));
    if (rt_str_eq_c(bind, "localhost"))
        return true;
    if (inet_pton(AF_INET, text, &v4) == 1)
        return (ntohl(v4.s_addr) >> 24) == 127;
    return inet_pton(AF_INET6, text, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

/* Without keys, only this machine is served; with the first key, keys are needed everywhere. */
static bool choose_auth(const service *s, bool *is_required, rt_error *err)
{
    const rt_settings *set = &s->house.settings;
    uint64_t keys;
    bool were_made;
    if (!rt_key_count(s->house.store, &keys, err) ||
        !rt_key_was_made(s->house.store, &were_made, err))
        return rt_wrap(err, "count the keys");
    if (were_made && keys == 0)
        return rt_fail(
            err, RT_DENIED,
            "all keys are revoked or have expired: 'retort keys create --role owner' makes "
            "one");
    if (keys == 0 && !is_loopback(set->server.bind))
        return rt_fail(err, RT_DENIED,
                       "to listen on %.*s there must be a key: 'retort keys create --role owner' "
                       "makes one (or bind to 127.0.0.1)",
                       RT_FMT(set->server.bind));
    if (keys == 0 && set->auth.required == CLI_AUTH_ALWAYS)
        return rt_fail(err, RT_DENIED,
                       "auth.required is 'always' and there is no key: 'retort keys create --role "
                       "owner' makes one");
    *is_required = keys > 0;
    return true;
}

void cli_service_lend(const service *s, rt_server_config *config)
{
    config->engine = s->engine;
    config->store = s->house.store;
    config->shelf = s->house.shelf;
    config->vault = s->house.vault;
    config->cache = s->cache;
    config->telemetry = s->telemetry;
    config->tools = s->tools;
    config->skills = s->skills;
    config->agents = s->agents;
    config->mcp_agents = s->mcp_agents;
    config->has_mcp_fixture = s->has_mcp_fixture;
}

static bool open_server(service *s, rt_error *err)
{
    const rt_settings *set = &s->house.settings;
    rt_server_config config = {
        .bind = set->server.bind,
        .port = (uint16_t)set->server.port,
        .tls_certificate_file =
            set->server.tls_certificate.len ? set->server.tls_certificate.ptr : NULL,
        .tls_key_file = set->server.tls_key.len ? set->server.tls_key.ptr : NULL,
        .max_connections = (unsigned)set->server.max_connections,
        .max_body_bytes = set->server.max_body_bytes,
        .request_timeout_ms = set->server.request_timeout_ms,
        .rate_per_minute = set->server.rate_per_minute,
        .allowed_origins = set->server.allowed_origins.items,
        .allowed_origin_count = set->server.allowed_origins.count,
        .allowed_hosts = set->server.allowed_hosts.items,
        .allowed_host_count = set->server.allowed_hosts.count,
        .public_url = set->server.public_url,
        .is_agent_api_off = !set->execution.is_enabled,
        .retention_days = (unsigned)set->retention.days,
        .budget_usd_month = set->budget.usd_month,
    };
    cli_service_lend(s, &config);
    if (!choose_auth(s, &config.is_auth_required, err))
        return false;
    s->is_guarded = config.is_auth_required;
    return rt_server_start(&config, &s->server, err);
}

/* A connection and its run need a few descriptors each; the usual soft limit is for desktops. */
static void raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* What a request brought stays out of core dumps. A limit alone is not heard when dumps go to a
 * program, as they often do; and neither is left to chance, since changed ids may have done it. */
static void refuse_dumps(void)
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
    prctl(PR_SET_DUMPABLE, 0);
}

static void block_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, set, NULL);
}

static bool open_agents(service *s, rt_error *err)
{
    s->agents = rt_agents_new(&(rt_agents_config){ .store = s->house.store,
                                                   .vault = s->house.vault,
                                                   .objects = &s->house.objects,
                                                   .engine = s->engine });
    return rt_tools_add(s->tools, rt_agents_provider(s->agents), err);
}

/* Once: an operator who takes them out does not find them again. */
static bool bring_samples(service *s, rt_error *err)
{
    return !s->wants_samples || !s->house.settings.tools.has_samples ||
           rt_toolbox_seed_once(s->house.store, err);
}

bool cli_service_open(service *s, sigset_t *signals, rt_error *err)
{
    if (!open_runtime(s, err))
        return false;
    refuse_dumps();
    block_signals(signals);
    raise_descriptors();
    return cli_house_open(&s->house, err) && open_telemetry(s, err) && open_cache(s, err) &&
           bring_samples(s, err) && cli_tools_open(&s->house, s->runtime, &s->tools, err) &&
           open_engine(s, err) && cli_skills_open(s, err) && open_agents(s, err);
}

/* ---- serving ---- */

static void show_gauges(const service *s)
{
    rt_engine_stats stats = rt_engine_stats_get(s->engine);
    rt_metric_set(s->telemetry, RT_METRIC_RUNNING, NULL, stats.running);
    rt_metric_set(s->telemetry, RT_METRIC_QUEUED, NULL, stats.queued);
    rt_metric_set(s->telemetry, RT_METRIC_MEMORY_GRANTED, NULL, (double)stats.memory_granted);
}

/* One alert for each, on whichever node sees it first: in the log and to the operator's webhook. */
static void tell_budgets(service *s, uint64_t now)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    const rt_settings *set = &s->house.settings;
    rt_error err = { 0 };
    rt_budget_alert *alerts;
    size_t count = 0;
    if (!rt_budget_raise(s->house.store, set->budget.usd_month, now, &arena, &alerts, &count, &err))
        rt_log(RT_LOG_WARN, "budgets: %s", err.text);
    for (size_t i = 0; i < count; i++) {
        rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
        rt_json_writer w;
        rt_log(RT_LOG_WARN, "%.*s has spent %.2f of its %.2f USD for %.*s",
               RT_FMT(alerts[i].organisation_id), alerts[i].spent_usd, alerts[i].budget_usd,
               RT_FMT(alerts[i].month));
        rt_json_begin(&w, &text);
        rt_budget_alert_write(&alerts[i], &w);
        if (set->budget.webhook_url.len > 0 &&
            !rt_webhook_send(set->budget.webhook_url, rt_buf_str(&text), WEBHOOK_MS, &err))
            rt_log(RT_LOG_WARN, "a budget's alert: %s", err.text);
    }
}

static void do_chores(service *s)
{
    uint64_t now = rt_wall_ms(), removed = 0;
    rt_retention gone = { 0 };
    rt_error err = { 0 };
    unsigned days = (unsigned)s->house.settings.retention.days;
    show_gauges(s);
    tell_budgets(s, now);
    if (!rt_agents_refresh(s->agents, &err))
        rt_log(RT_LOG_WARN, "%s", err.text);
    if (now - s->swept_ms >= SWEEP_EVERY_MS) {
        s->swept_ms = now;
        if (!rt_shelf_sweep(s->house.shelf, now, &removed, &err))
            rt_log(RT_LOG_WARN, "sweep the artifacts: %s", err.text);
    }
    if (days > 0 && now - s->retained_ms >= RETENTION_EVERY_MS) {
        s->retained_ms = now;
        if (!rt_retention_apply(s->house.store, RT_STR(""), days, now, false, &gone, &err))
            rt_log(RT_LOG_WARN, "retention: %s", err.text);
        else if (gone.executions > 0)
            rt_log(RT_LOG_INFO, "retention: %llu runs older than %u days are gone",
                   (unsigned long long)gone.executions, days);
    }
}

static int wait_for_signal(service *s, const sigset_t *signals)
{
    for (;;) {
        struct timespec chore = { .tv_sec = CHORE_SECONDS };
        int got = sigtimedwait(signals, NULL, &chore);
        if (got > 0)
            return got;
        if (errno == EAGAIN)
            do_chores(s);
    }
}

static void greet(const service *s)
{
    rt_str url = rt_server_url(s->server);
    rt_log(RT_LOG_INFO, "retort %s, store %s, listening on %.*s", RETORT_VERSION,
           rt_store_kind(s->house.store), RT_FMT(url));
    printf("Retort is at %.*s\n\n"
           "  curl %.*s/v1/executions%s -d '{\"language\":\"python\",\"code\":\"return 6 * "
           "7\"}'\n\n"
           "API reference: %.*s/docs\n",
           RT_FMT(url), RT_FMT(url),
           s->is_guarded ? " -H \"Authorization: Bearer $RETORT_KEY\"" : "", RT_FMT(url));
    fflush(stdout);
}

void cli_service_close(service *s)
{
    if (s->server) {
        rt_log(RT_LOG_INFO, "stopping: what runs may end within %d s", DRAIN_MS / 1000);
        rt_engine_stop(s->engine, DRAIN_MS);
        rt_server_stop(s->server, DRAIN_MS);
    }
    rt_server_close(s->server);
    if (s->engine && !rt_engine_stop(s->engine, 0)) {
        rt_log(RT_LOG_ERROR, "a run does not end; leaving without it");
        _exit(EXIT_FAILED); /* it still uses what would be freed now */
    }
    rt_tools_close(s->tools);
    rt_skills_close(s->skills);
    rt_models_free(s->models);
    rt_agents_free(s->agents);
    rt_engine_close(s->engine);
    rt_cache_close(s->cache);
    rt_telemetry_close(s->telemetry);
    cli_house_close(&s->house);
    rt_runtime_closep(&s->runtime);
}

/* The second signal does not wait: SIGTERM then SIGTERM again is how people say "now". */
static void die_at_the_second(const sigset_t *signals)
{
    pthread_sigmask(SIG_UNBLOCK, signals, NULL);
}

const char *cli_service_option(int *argc, char **argv, const char *name, rt_error *err)
{
    for (int i = 1; i < *argc; i++) {
        int first = i;
        const char *value = cli_option(*argc, argv, &i, name, err);
        if (!value)
            continue;
        int taken = i - first + 1;
        memmove(&argv[first], &argv[i + 1], (size_t)(*argc - i) * sizeof(*argv)); /* and the NULL */
        *argc -= taken;
        return value;
    }
    return NULL;
}

bool cli_service_flag(int *argc, char **argv, const char *flag)
{
    for (int i = 1; i < *argc; i++) {
        if (strcmp(argv[i], flag) != 0)
            continue;
        memmove(&argv[i], &argv[i + 1], (size_t)(*argc - i) * sizeof(*argv)); /* and the NULL */
        --*argc;
        return true;
    }
    return false;
}

int cli_serve(int argc, char **argv)
{
    service s = { 0 };
    sigset_t signals;
    rt_language languages[RT_LANGUAGES_OURS];
    rt_error err = { 0 };
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help();
            return EXIT_GOOD;
        }
    s.swept_ms = s.retained_ms = rt_wall_ms() - RETENTION_EVERY_MS;
    s.has_mcp_fixture = cli_service_flag(&argc, argv, "--mcp-fixture");
    s.wants_samples = true;
    bool ok = cli_house_read(&s.house, &argc, argv, &err);
    if (ok && argc > 1)
        ok = cli_settings_unknown_flag(argv[1], &err);
    ok = ok && cli_house_lock(&s.house, &err) && cli_service_open(&s, &signals, &err) &&
         open_server(&s, &err);
    if (ok) {
        greet(&s);
        rt_engine_languages(s.engine, &s.house.arena, languages, RT_COUNT(languages)); /* warms */
        wait_for_signal(&s, &signals);
        die_at_the_second(&signals);
    }
    cli_service_close(&s);
    return ok ? EXIT_GOOD : cli_complain(&err);
}
