/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment.c - the variables every OpenTelemetry program reads.
 *
 * OTEL_EXPORTER_OTLP_TRACES_X is for traces and beats OTEL_EXPORTER_OTLP_X, which is for all
 * signals. An empty variable is an unset one. What cannot be used is told and left out, because
 * nobody wants a service that does not start for a misspelt sampler. There is no default endpoint
 * here, unlike in the standard: silence means that nothing is sent.
 */
#include "telemetry/telemetry_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define TIME_MAX_MS 600000

typedef struct reader {
    rt_telemetry_config *config;
    rt_arena *arena;
    rt_telemetry_warn_fn warn;
    void *ctx;
    bool is_clean;
} reader;

typedef struct variable {
    const char *name;
    rt_str value; /* empty: not set */
} variable;

static void RT_PRINTF(2, 3) tell(reader *r, const char *fmt, ...)
{
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    r->is_clean = false;
    if (r->warn)
        r->warn(r->ctx, text);
}

static variable read_variable(const char *name)
{
    return (variable){ name, rt_str_of(getenv(name)) };
}

static variable read_either(const char *of_traces, const char *of_all)
{
    variable found = read_variable(of_traces);
    return found.value.len ? found : read_variable(of_all);
}

#define READ_OTLP(name) read_either("OTEL_EXPORTER_OTLP_TRACES_" name, "OTEL_EXPORTER_OTLP_" name)

/* -- Kinds of values --------------------------------------------------------------------------- */

typedef bool (*list_parser)(rt_str text, rt_arena *arena, telemetry_pairs *out, rt_error *err);

static bool read_list(reader *r, variable v, list_parser parse, rt_str *out, telemetry_pairs *pairs)
{
    rt_error err = { 0 };
    if (v.value.len == 0)
        return false;
    if (!parse(v.value, r->arena, pairs, &err)) {
        tell(r, "%s is ignored: %s", v.name, err.text);
        return false;
    }
    *out = rt_arena_str(r->arena, v.value);
    return true;
}

static void read_path(reader *r, variable v, const char **out)
{
    if (v.value.len)
        *out = rt_arena_copy(r->arena, v.value);
}

static void read_time(reader *r, variable v, uint64_t *out)
{
    uint64_t ms;
    if (v.value.len == 0)
        return;
    if (rt_str_to_u64(rt_str_trim(v.value), &ms) && ms > 0 && ms <= TIME_MAX_MS)
        *out = ms;
    else
        tell(r, "%s is ignored: '%.80s' is not a number of milliseconds from 1 to %d", v.name,
             v.value.ptr, TIME_MAX_MS);
}

/* False: it is none of the words. Case does not matter, as the standard says of its enums. */
static bool is_word(variable v, const char *word)
{
    return strlen(word) == v.value.len && strncasecmp(v.value.ptr, word, v.value.len) == 0;
}

/* For settings of which we know only one value. */
static void expect_word(reader *r, variable v, const char *word)
{
    if (v.value.len && !is_word(v, word))
        tell(r, "%s is ignored: '%.80s' is not supported, only %s", v.name, v.value.ptr, word);
}

/* -- Settings ---------------------------------------------------------------------------------- */

static void use_url(reader *r, const char *name, rt_str url)
{
    rt_error err = { 0 };
    if (telemetry_check_url(url, &err))
        r->config->otlp_traces_url = rt_arena_str(r->arena, url);
    else
        tell(r, "%s is ignored: %s", name, err.text);
}

/* The variable for traces is the whole address; the other one is the root of all signals'. */
static void read_endpoint(reader *r)
{
    variable whole = read_variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    variable root = read_variable("OTEL_EXPORTER_OTLP_ENDPOINT");
    if (whole.value.len) {
        use_url(r, whole.name, whole.value);
    } else if (root.value.len) {
        while (root.value.len && root.value.ptr[root.value.len - 1] == '/')
            root.value.len--;
        use_url(r, root.name, rt_arena_printf(r->arena, "%.*s/v1/traces", RT_FMT(root.value)));
    }
}

/* OTEL_SERVICE_NAME beats the attribute, and the attribute beats what is in the configuration. */
static void read_resource(reader *r)
{
    variable name = read_variable("OTEL_SERVICE_NAME");
    telemetry_pairs list = { 0 };
    read_list(r, read_variable("OTEL_RESOURCE_ATTRIBUTES"), telemetry_parse_attributes,
              &r->config->resource_attributes, &list);
    for (size_t i = 0; i < list.count; i++)
        if (rt_str_eq_c(list.items[i].key, "service.name"))
            r->config->service_name = list.items[i].value;
    if (name.value.len)
        r->config->service_name = rt_arena_str(r->arena, name.value);
}

static double read_ratio(reader *r)
{
    variable v = read_variable("OTEL_TRACES_SAMPLER_ARG");
    rt_json number;
    double ratio;
    if (v.value.len == 0)
        return 1;
    if (rt_json_parse(v.value, r->arena, &number, NULL) && rt_json_double(number, &ratio) &&
        ratio >= 0 && ratio <= 1)
        return ratio;
    tell(r, "%s is ignored: '%.80s' is not a number from 0 to 1", v.name, v.value.ptr);
    return 1;
}

static void read_sampler(reader *r)
{
    static const struct {
        const char *name;
        bool ignores_parent, has_ratio;
        double ratio;
    } samplers[] = {
        { "always_on", true, false, 1 },
        { "always_off", true, false, 0 },
        { "traceidratio", true, true, 1 },
        { "parentbased_always_on", false, false, 1 },
        { "parentbased_always_off", false, false, 0 },
        { "parentbased_traceidratio", false, true, 1 },
    };
    variable v = read_variable("OTEL_TRACES_SAMPLER");
    if (v.value.len == 0)
        return;
    for (size_t i = 0; i < RT_COUNT(samplers); i++)
        if (is_word(v, samplers[i].name)) {
            r->config->ignores_parent_sampling = samplers[i].ignores_parent;
            r->config->sample_ratio = samplers[i].has_ratio ? read_ratio(r) : samplers[i].ratio;
            return;
        }
    tell(r, "%s is ignored: '%.80s' is no sampler known here", v.name, v.value.ptr);
}

/* True: somebody wants no spans, whatever else is set. */
static bool is_disabled(reader *r)
{
    variable disabled = read_variable("OTEL_SDK_DISABLED");
    variable exporter = read_variable("OTEL_TRACES_EXPORTER");
    if (is_word(disabled, "true") || is_word(exporter, "none"))
        return true;
    expect_word(r, disabled, "false");
    expect_word(r, exporter, "otlp");
    return false;
}

bool rt_telemetry_config_env(rt_telemetry_config *config, rt_arena *arena,
                             rt_telemetry_warn_fn warn, void *ctx)
{
    reader r = { config, arena, warn, ctx, .is_clean = true };
    telemetry_pairs headers;
    if (is_disabled(&r)) {
        config->otlp_traces_url = (rt_str){ 0 };
        return true;
    }
    read_endpoint(&r);
    read_list(&r, READ_OTLP("HEADERS"), telemetry_parse_headers, &config->otlp_headers, &headers);
    read_path(&r, READ_OTLP("CERTIFICATE"), &config->otlp_certificate);
    read_path(&r, READ_OTLP("CLIENT_KEY"), &config->otlp_client_key);
    read_path(&r, READ_OTLP("CLIENT_CERTIFICATE"), &config->otlp_client_certificate);
    read_time(&r, READ_OTLP("TIMEOUT"), &config->otlp_timeout_ms);
    read_time(&r, read_variable("OTEL_BSP_SCHEDULE_DELAY"), &config->otlp_delay_ms);
    expect_word(&r, READ_OTLP("PROTOCOL"), "http/json");
    expect_word(&r, READ_OTLP("COMPRESSION"), "none");
    read_resource(&r);
    read_sampler(&r);
    return r.is_clean;
}
