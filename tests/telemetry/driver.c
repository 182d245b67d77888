/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.c - tells spans and events as the service would, for test_otlp.py.
 *
 *     telemetry-driver url=http://127.0.0.1:4318/v1/traces spans=3 wait=1
 *
 * What no argument says comes from the OTEL_* variables. "spans" is the number of traces, each of a
 * root and a child; with "wait" it waits until all that was told is sent or dropped. It prints one
 * JSON object: the metrics before the end, the warnings, and how long the end took.
 */
#include "privacy/privacy.h"
#include "telemetry/telemetry.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WAIT_MAX_MS = 40000 };

static rt_telemetry_config config = { .sample_ratio = -1 };
static uint64_t trace_count, event_count, broken_count, round_count = 1, is_waiting;

static const struct {
    const char *name;
    rt_str *text;
    const char **path;
    uint64_t *number;
} options[] = {
    { .name = "url", .text = &config.otlp_traces_url },
    { .name = "headers", .text = &config.otlp_headers },
    { .name = "posthog_url", .text = &config.posthog_url },
    { .name = "posthog_key", .text = &config.posthog_key },
    { .name = "file", .path = &config.span_file },
    { .name = "certificate", .path = &config.otlp_certificate },
    { .name = "client_key", .path = &config.otlp_client_key },
    { .name = "client_certificate", .path = &config.otlp_client_certificate },
    { .name = "timeout", .number = &config.otlp_timeout_ms },
    { .name = "delay", .number = &config.otlp_delay_ms },
    { .name = "spans", .number = &trace_count },
    { .name = "events", .number = &event_count },
    { .name = "broken", .number = &broken_count },
    { .name = "rounds", .number = &round_count },
    { .name = "wait", .number = &is_waiting },
};

static bool set_option(const char *argument)
{
    rt_str value = rt_str_of(argument), name;
    if (!rt_str_cut(&value, '=', &name) || !value.ptr)
        return false;
    for (size_t i = 0; i < RT_COUNT(options); i++) {
        if (!rt_str_eq_c(name, options[i].name))
            continue;
        if (options[i].text)
            *options[i].text = value;
        else if (options[i].path)
            *options[i].path = value.ptr;
        else
            return rt_str_to_u64(value, options[i].number);
        return true;
    }
    return false;
}

/* -- Telling ----------------------------------------------------------------------------------- */

static void tell_trace(rt_telemetry *t)
{
    rt_span root, child;
    rt_span_start(t, &root, "tools/call run_code", RT_SPAN_SERVER, NULL);
    rt_span_str(&root, "mcp.method.name", RT_STR("tools/call"));
    rt_span_str(&root, "text", RT_STR("\"caf\xC3\xA9\"\n\xFF"));
    rt_span_start(t, &child, "execute_tool run_code", RT_SPAN_INTERNAL, &root.context);
    rt_span_i64(&child, "code.exit_code", -9007199254740993);
    rt_span_double(&child, "code.cpu_seconds", 0.125);
    rt_span_bool(&child, "code.success", false);
    rt_span_fail(&child, RT_STR("tool_error"));
    rt_span_end(t, &child);
    rt_span_end(t, &root);
}

static void tell_round(rt_telemetry *t)
{
    for (uint64_t i = 0; i < trace_count; i++)
        tell_trace(t);
    for (uint64_t i = 0; i < event_count; i++)
        rt_event_send(t, RT_STR("code_executed"), RT_STR("org-1"),
                      RT_STR("{\"language\":\"python\",\"success\":true,\"durationMs\":12,"
                             "\"$geoip_disable\":false,\"$process_person_profile\":true}"));
    for (uint64_t i = 0; i < broken_count; i++)
        rt_event_send(t, RT_STR("code_executed"), RT_STR("org-1"), RT_STR("{\"a\":"));
}

/* How many spans and events have met their end, good or bad. */
static uint64_t count_concluded(rt_telemetry *t)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    uint64_t total = 0;
    rt_str line, number;
    rt_metrics_write(t, &text);
    rt_str rest = rt_buf_str(&text);
    while (rt_str_cut(&rest, '\n', &line))
        if (rt_str_starts(line, RT_STR("retort_telemetry_")))
            while (rt_str_cut(&line, ' ', &number)) {
                uint64_t count;
                total += !line.ptr && rt_str_to_u64(number, &count) ? count : 0;
            }
    return total;
}

static bool wait_for(rt_telemetry *t, uint64_t total)
{
    uint64_t until = rt_now_ns() + WAIT_MAX_MS * UINT64_C(1000000);
    while (count_concluded(t) < total) {
        if (rt_now_ns() > until)
            return false;
        nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
    }
    return true;
}

/* -- Reporting --------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* two threads may warn at once */
static char warnings[16][400];
static size_t warning_count;

static void take_warning(void *ctx, const char *text)
{
    (void)ctx;
    pthread_mutex_lock(&lock);
    if (warning_count < RT_COUNT(warnings))
        snprintf(warnings[warning_count++], sizeof(warnings[0]), "%s", text);
    pthread_mutex_unlock(&lock);
}

static void report(rt_str metrics, uint64_t close_ms)
{
    rt_buf out RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &out);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "metrics", metrics);
    rt_jw_ku64(&w, "close_ms", close_ms);
    rt_jw_karray(&w, "warnings");
    for (size_t i = 0; i < warning_count; i++)
        rt_jw_str(&w, rt_str_of(warnings[i]));
    rt_jw_end(&w);
    rt_jw_end(&w);
    printf("%.*s\n", RT_FMT(rt_buf_str(&out)));
}

int main(int argc, char **argv)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_buf metrics RT_CLEANUP(rt_buf_done) = { 0 };
    rt_telemetry *t = NULL;
    rt_error err = { 0 };
    rt_outbound_scrub_set(rt_privacy_scrub);
    config.warn = take_warning;
    rt_telemetry_config_env(&config, &arena, take_warning, NULL);
    for (int i = 1; i < argc; i++)
        if (!set_option(argv[i])) {
            fprintf(stderr, "telemetry-driver: what is %s?\n", argv[i]);
            return 2;
        }
    if (!rt_telemetry_open(&config, &t, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    for (uint64_t i = 1; i <= round_count; i++) {
        tell_round(t);
        if (is_waiting && !wait_for(t, i * (2 * trace_count + event_count + broken_count)))
            fprintf(stderr, "telemetry-driver: not all was sent or dropped in time\n");
    }
    rt_metrics_write(t, &metrics);
    uint64_t began = rt_now_ns();
    rt_telemetry_close(t);
    report(rt_buf_str(&metrics), (rt_now_ns() - began) / 1000000);
    return 0;
}
