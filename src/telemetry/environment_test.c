/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/telemetry.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static rt_arena arena;
static rt_telemetry_config config;
static rt_buf told;

extern char **environ;

static void begin(void)
{
    static char *nothing[] = { NULL };
    environ = nothing; /* each Criterion test is a process of its own */
    config = (rt_telemetry_config){ .service_name = RT_STR("retort"), .sample_ratio = -1 };
}

static void end(void)
{
    rt_arena_done(&arena);
    rt_buf_done(&told);
}

TestSuite(environment, .init = begin, .fini = end);

static void take_warning(void *ctx, const char *text)
{
    (void)ctx;
    rt_buf_addf(&told, "%s\n", text);
}

static bool read_environment(void)
{
    rt_buf_reset(&told);
    return rt_telemetry_config_env(&config, &arena, take_warning, NULL);
}

static void set(const char *name, const char *value)
{
    cr_assert_eq(setenv(name, value, 1), 0);
}

static bool is(rt_str value, const char *text)
{
    return rt_str_eq_c(value, text);
}

Test(environment, silence_changes_nothing)
{
    config.otlp_traces_url = RT_STR("http://mine/");
    cr_expect(read_environment());
    cr_expect(is(config.otlp_traces_url, "http://mine/"));
    cr_expect(is(config.service_name, "retort"));
    cr_expect_eq(config.sample_ratio, -1);
    cr_expect_eq(config.otlp_timeout_ms, 0);
    cr_expect_null(config.otlp_certificate);
}

Test(environment, an_endpoint_is_the_root_of_all_signals)
{
    set("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
    cr_expect(read_environment());
    cr_expect(is(config.otlp_traces_url, "http://collector:4318/v1/traces"));
    set("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector/otlp/");
    cr_expect(read_environment());
    cr_expect(is(config.otlp_traces_url, "https://collector/otlp/v1/traces"));
}

Test(environment, the_form_for_traces_beats_the_form_for_all)
{
    static const struct {
        const char *name, *value;
    } variables[] = {
        { "OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4318" },
        { "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:1/as/is" },
        { "OTEL_EXPORTER_OTLP_HEADERS", "a=1" },
        { "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "b=2" },
        { "OTEL_EXPORTER_OTLP_TIMEOUT", "1000" },
        { "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "2000" },
        { "OTEL_EXPORTER_OTLP_CERTIFICATE", "/all.pem" },
        { "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "" }, /* empty equals unset */
        { "OTEL_EXPORTER_OTLP_CLIENT_KEY", "/all.key" },
        { "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY", "/traces.key" },
        { "OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE", "/traces.crt" },
        { "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc" },
        { "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json" },
        { "OTEL_BSP_SCHEDULE_DELAY", "250" },
    };
    for (size_t i = 0; i < RT_COUNT(variables); i++)
        set(variables[i].name, variables[i].value);
    cr_expect(read_environment(), "%.*s", RT_FMT(rt_buf_str(&told)));
    cr_expect(is(config.otlp_traces_url, "http://traces:1/as/is"));
    cr_expect(is(config.otlp_headers, "b=2"));
    cr_expect_eq(config.otlp_timeout_ms, 2000);
    cr_expect_eq(config.otlp_delay_ms, 250);
    cr_expect_str_eq(config.otlp_certificate, "/all.pem");
    cr_expect_str_eq(config.otlp_client_key, "/traces.key");
    cr_expect_str_eq(config.otlp_client_certificate, "/traces.crt");
}

Test(environment, a_service_has_the_most_explicit_name)
{
    set("OTEL_RESOURCE_ATTRIBUTES", "service.name=from%20list,host.name=x");
    cr_expect(read_environment());
    cr_expect(is(config.service_name, "from list"));
    cr_expect(is(config.resource_attributes, "service.name=from%20list,host.name=x"));
    set("OTEL_SERVICE_NAME", "explicit");
    cr_expect(read_environment());
    cr_expect(is(config.service_name, "explicit"));
}

Test(environment, what_makes_no_sense_is_told_and_left_out)
{
    static const struct {
        const char *name, *value, *told;
    } cases[] = {
        { "OTEL_EXPORTER_OTLP_TIMEOUT", "10s",
          "OTEL_EXPORTER_OTLP_TIMEOUT is ignored: '10s' is not a number of milliseconds from 1 to "
          "600000\n" },
        { "OTEL_BSP_SCHEDULE_DELAY", "-1",
          "OTEL_BSP_SCHEDULE_DELAY is ignored: '-1' is not a number of milliseconds from 1 to "
          "600000\n" },
        { "OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf",
          "OTEL_EXPORTER_OTLP_PROTOCOL is ignored: 'http/protobuf' is not supported, only "
          "http/json\n" },
        { "OTEL_EXPORTER_OTLP_COMPRESSION", "gzip",
          "OTEL_EXPORTER_OTLP_COMPRESSION is ignored: 'gzip' is not supported, only none\n" },
        { "OTEL_EXPORTER_OTLP_HEADERS", "secret",
          "OTEL_EXPORTER_OTLP_HEADERS is ignored: part 1: a part has no '='\n" },
        { "OTEL_RESOURCE_ATTRIBUTES", "a=1,service.name=%",
          "OTEL_RESOURCE_ATTRIBUTES is ignored: part 2: '%' is not followed by two hexadecimal "
          "digits\n" },
        { "OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317",
          "OTEL_EXPORTER_OTLP_ENDPOINT is ignored: the URL does not begin with http:// or "
          "https://\n" },
        { "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://host:port/",
          "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is ignored: the URL: Port number was not a decimal "
          "number between 0 and 65535\n" },
        { "OTEL_TRACES_SAMPLER", "jaeger_remote",
          "OTEL_TRACES_SAMPLER is ignored: 'jaeger_remote' is no sampler known here\n" },
        { "OTEL_SDK_DISABLED", "1",
          "OTEL_SDK_DISABLED is ignored: '1' is not supported, only false\n" },
        { "OTEL_TRACES_EXPORTER", "zipkin",
          "OTEL_TRACES_EXPORTER is ignored: 'zipkin' is not supported, only otlp\n" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        set(cases[i].name, cases[i].value);
        cr_expect(!read_environment());
        rt_buf_addc(&told, '\0');
        cr_expect_str_eq(told.ptr, cases[i].told);
        unsetenv(cases[i].name);
    }
    cr_expect_eq(config.otlp_timeout_ms + config.otlp_delay_ms, 0);
    cr_expect_eq(config.otlp_traces_url.len + config.otlp_headers.len, 0);
    cr_expect(is(config.service_name, "retort"));
    cr_expect_eq(config.sample_ratio, -1);
}

Test(environment, every_sampler_of_the_standard_is_known)
{
    static const struct {
        const char *name, *argument;
        double ratio;
        bool ignores_parent, is_clean;
    } cases[] = {
        { "always_on", "0.1", 1, true, true },
        { "always_off", "", 0, true, true },
        { "traceidratio", "0.25", 0.25, true, true },
        { "traceidratio", "", 1, true, true },
        { "traceidratio", "0", 0, true, true },
        { "traceidratio", "1.5", 1, true, false },
        { "traceidratio", "half", 1, true, false },
        { "traceidratio", "\"0.5\"", 1, true, false },
        { "parentbased_always_on", "", 1, false, true },
        { "parentbased_always_off", "", 0, false, true },
        { "ParentBased_TraceIdRatio", "1e-3", 0.001, false, true },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        set("OTEL_TRACES_SAMPLER", cases[i].name);
        set("OTEL_TRACES_SAMPLER_ARG", cases[i].argument);
        cr_expect_eq(read_environment(), cases[i].is_clean, "%s", cases[i].name);
        cr_expect_eq(config.sample_ratio, cases[i].ratio, "%s", cases[i].name);
        cr_expect_eq(config.ignores_parent_sampling, cases[i].ignores_parent, "%s", cases[i].name);
    }
}

Test(environment, who_wants_no_spans_gets_none)
{
    static const char *const switches[][2] = { { "OTEL_SDK_DISABLED", "TRUE" },
                                               { "OTEL_TRACES_EXPORTER", "none" } };
    set("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
    for (size_t i = 0; i < RT_COUNT(switches); i++) {
        config.otlp_traces_url = RT_STR("http://mine/");
        set(switches[i][0], switches[i][1]);
        cr_expect(read_environment());
        cr_expect_eq(config.otlp_traces_url.len, 0);
        unsetenv(switches[i][0]);
    }
}
