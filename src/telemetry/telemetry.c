/* SPDX-License-Identifier: Apache-2.0 */
/*
 * telemetry.c - from a configuration to what runs, and back.
 *
 * The configuration is copied: its texts may go away after rt_telemetry_open. At the end both
 * threads are told to stop before either is waited for, so that the two share the five seconds.
 */
#include "telemetry/telemetry_internal.h"

#include <stdlib.h>

enum {
    SPAN_QUEUE_MAX = 4096,
    SPAN_BATCH_MAX = 512,
    EVENT_QUEUE_MAX = 1024,
    EVENT_BATCH_MAX = 100,
    DEFAULT_TIMEOUT_MS = 10000,
    DEFAULT_DELAY_MS = 5000,
    TIME_MAX_MS = 600000, /* of either */
    /* libcurl looks up once a second, so sending must end a second before the wait does. */
    CLOSE_SEND_MS = 3900,
    CLOSE_WAIT_MS = 4950,
};

/* Ids, moments and numbers of ours, which may look like somebody's; see outbound.h. */
static const rt_str span_members[] = { RT_STR("traceId"),         RT_STR("spanId"),
                                       RT_STR("parentSpanId"),    RT_STR("startTimeUnixNano"),
                                       RT_STR("endTimeUnixNano"), RT_STR("intValue") };
static const rt_str event_members[] = { RT_STR("api_key"), RT_STR("sent_at"), RT_STR("timestamp"),
                                        RT_STR("uuid") };

static const char *copy_path(rt_arena *arena, const char *path)
{
    return path && path[0] ? rt_arena_copy(arena, rt_str_of(path)) : NULL;
}

static bool copy_url(rt_arena *arena, rt_str url, const char **out, rt_error *err)
{
    if (!telemetry_check_url(url, err))
        return false;
    *out = rt_arena_copy(arena, url);
    return true;
}

static uint64_t time_or(uint64_t ms, uint64_t otherwise)
{
    return ms ? RT_MIN(ms, (uint64_t)TIME_MAX_MS) : otherwise;
}

static bool open_spans(rt_telemetry *t, const rt_telemetry_config *config, rt_error *err)
{
    telemetry_signal signal = {
        .name = "spans",
        .queue_max = SPAN_QUEUE_MAX,
        .batch_max = SPAN_BATCH_MAX,
        .delay_ms = time_or(config->otlp_delay_ms, DEFAULT_DELAY_MS),
        .file = copy_path(&t->arena, config->span_file),
        .exempt = span_members,
        .exempt_count = RT_COUNT(span_members),
        .encode = telemetry_otlp_encode,
        .ctx = &t->resource,
        .rejected = telemetry_otlp_rejected,
        .target = {
            .certificate = copy_path(&t->arena, config->otlp_certificate),
            .client_key = copy_path(&t->arena, config->otlp_client_key),
            .client_certificate = copy_path(&t->arena, config->otlp_client_certificate),
            .timeout_ms = time_or(config->otlp_timeout_ms, DEFAULT_TIMEOUT_MS),
        },
    };
    if (config->otlp_traces_url.len &&
        !copy_url(&t->arena, config->otlp_traces_url, &signal.target.url, err))
        return rt_wrap(err, "receiver of spans");
    if (!signal.target.url && !signal.file)
        return true;
    if (!telemetry_parse_headers(config->otlp_headers, &t->arena, &signal.target.headers, err))
        return rt_wrap(err, "headers for the receiver of spans");
    return telemetry_resource_init(config, &t->arena, &t->resource, err) &&
           telemetry_exporter_open(&signal, t, &t->spans, err);
}

static bool open_events(rt_telemetry *t, const rt_telemetry_config *config, rt_error *err)
{
    telemetry_signal signal = {
        .name = "events",
        .queue_max = EVENT_QUEUE_MAX,
        .batch_max = EVENT_BATCH_MAX,
        .delay_ms = time_or(config->otlp_delay_ms, DEFAULT_DELAY_MS),
        .exempt = event_members,
        .exempt_count = RT_COUNT(event_members),
        .encode = telemetry_posthog_encode,
        .ctx = &t->project,
        .target = { .timeout_ms = DEFAULT_TIMEOUT_MS },
    };
    rt_str url = config->posthog_url;
    if (!url.len || !config->posthog_key.len)
        return true;
    while (url.len && url.ptr[url.len - 1] == '/')
        url.len--;
    if (!copy_url(&t->arena, rt_arena_printf(&t->arena, "%.*s/batch/", RT_FMT(url)),
                  &signal.target.url, err))
        return rt_wrap(err, "receiver of events");
    t->project =
        (telemetry_project){ rt_arena_str(&t->arena, config->posthog_key), RT_STR(RETORT_VERSION) };
    return telemetry_exporter_open(&signal, t, &t->events, err);
}

bool rt_telemetry_open(const rt_telemetry_config *config, rt_telemetry **out, rt_error *err)
{
    rt_telemetry *t RT_CLEANUP(rt_telemetry_closep) = calloc(1, sizeof(*t));
    if (!t)
        rt_out_of_memory(sizeof(*t));
    t->metrics = telemetry_metrics_new();
    t->sample_ratio = config->sample_ratio >= 0 ? config->sample_ratio : 1;
    t->ignores_parent_sampling = config->ignores_parent_sampling;
    t->warn = config->warn;
    t->warn_ctx = config->warn_ctx;
    rt_random_bytes(&t->id_seed, sizeof(t->id_seed));
    if (!open_spans(t, config, err) || !open_events(t, config, err))
        return rt_wrap(err, "telemetry");
    *out = RT_TAKE(t);
    return true;
}

void rt_telemetry_close(rt_telemetry *t)
{
    if (!t)
        return;
    uint64_t now = rt_now_ns(), until = now + CLOSE_WAIT_MS * UINT64_C(1000000);
    telemetry_exporter_stop(t->spans, now + CLOSE_SEND_MS * UINT64_C(1000000));
    telemetry_exporter_stop(t->events, now + CLOSE_SEND_MS * UINT64_C(1000000));
    bool is_done = telemetry_exporter_close(t->spans, until);
    is_done = telemetry_exporter_close(t->events, until) && is_done;
    /* A thread that hangs in the kernel still uses all this; the program is about to end. */
    if (!is_done)
        return;
    telemetry_metrics_free(t->metrics);
    rt_arena_done(&t->arena);
    free(t);
}

void rt_telemetry_closep(rt_telemetry **telemetry)
{
    rt_telemetry_close(*telemetry);
}
