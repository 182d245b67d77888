/* SPDX-License-Identifier: Apache-2.0 */
/*
 * telemetry.h - metrics to be scraped, spans and events to be sent.
 *
 * Promise: telling costs the teller no system call and no wait; what cannot be sent is counted and
 * dropped, never piled up. Nothing leaves the machine unless an endpoint is configured. Values are
 * the operator's (names, sizes, times): no code, input or output ever passes through here.
 *
 *     rt_metric_add(telemetry, RT_METRIC_EXECUTIONS,
 *                   (const char *[]){ "python", "local", "SUCCESS" }, 1);
 *
 *     rt_span span;
 *     rt_span_start(telemetry, &span, "run", RT_SPAN_INTERNAL, &parent);
 *     rt_span_str(&span, "code.language", language);
 *     rt_span_end(telemetry, &span);
 *
 * Any thread may call. A span belongs to one thread at a time. Where a function takes an
 * rt_telemetry, NULL is one that counts nothing and sends nothing.
 */
#ifndef RT_TELEMETRY_TELEMETRY_H
#define RT_TELEMETRY_TELEMETRY_H

#include "base/base.h"

typedef struct rt_telemetry rt_telemetry;

/* Takes one line for the operator; called by config_env, and by threads that send, two at most. */
typedef void (*rt_telemetry_warn_fn)(void *ctx, const char *text);

typedef struct rt_telemetry_config {
    rt_str service_name, service_version; /* empty: "retort", RETORT_VERSION */
    rt_str resource_attributes;           /* "k=v,k2=v2", as OTEL_RESOURCE_ATTRIBUTES */
    rt_str otlp_traces_url;               /* whole; empty: no spans are sent */
    rt_str otlp_headers;                  /* "k=v,k2=v2", values percent-encoded */
    const char *otlp_certificate, *otlp_client_key, *otlp_client_certificate; /* NULL: none */
    uint64_t otlp_timeout_ms;        /* of one request; 0: 10,000 */
    uint64_t otlp_delay_ms;          /* between batches, of events too; 0: 5,000 */
    double sample_ratio;             /* of traces that begin here: 0 none, 1 all; < 0: all */
    bool ignores_parent_sampling;    /* the ratio decides for every trace, not only our own */
    const char *span_file;           /* also (or instead) append OTLP JSON lines here; NULL: no */
    rt_str posthog_url, posthog_key; /* both, or no events are sent; "https://eu.i.posthog.com" */
    rt_telemetry_warn_fn warn;       /* hears when sending begins to fail; NULL: nobody */
    void *warn_ctx;
} rt_telemetry_config;

/*
 * Puts what the standard OTEL_* variables say over what is in `config`; what they do not mention
 * stays. What cannot be used is told to `warn` and left out: true means there was nothing to tell.
 * OTEL_SDK_DISABLED=true empties the URL.
 */
bool rt_telemetry_config_env(rt_telemetry_config *config, rt_arena *arena,
                             rt_telemetry_warn_fn warn, void *ctx);

/* Call it after the program's forks; it starts a thread for each kind of thing there is to send. */
bool rt_telemetry_open(const rt_telemetry_config *config, rt_telemetry **out, rt_error *err);
void rt_telemetry_close(rt_telemetry *telemetry); /* sends what waits, for at most 5 s */
void rt_telemetry_closep(rt_telemetry **telemetry);

/* -- Metrics: one row each in metrics.c -------------------------------------------------------- */

typedef enum rt_metric {
    RT_METRIC_EXECUTIONS,     /* counter   retort_executions_total{language,runtime,status} */
    RT_METRIC_DURATION,       /* histogram retort_execution_duration_seconds{language,runtime} */
    RT_METRIC_STAGE,          /* histogram retort_stage_duration_seconds{stage} */
    RT_METRIC_QUEUE_WAIT,     /* histogram retort_queue_wait_seconds */
    RT_METRIC_QUEUED,         /* gauge     retort_queued_executions */
    RT_METRIC_RUNNING,        /* gauge     retort_running_executions */
    RT_METRIC_MEMORY_GRANTED, /* gauge     retort_granted_memory_bytes */
    RT_METRIC_REJECTED,       /* counter   retort_rejected_executions_total{reason} */
    RT_METRIC_CACHE,          /* counter   retort_cache_requests_total{outcome} hit miss bypass */
    RT_METRIC_CACHE_SAVED,    /* counter   retort_cache_saved_seconds_total */
    RT_METRIC_DENIALS,        /* counter   retort_denied_calls_total{language} */
    RT_METRIC_SESSIONS,       /* gauge     retort_sessions */
    RT_METRIC_BRANCHES,       /* counter   retort_session_branches_total */
    RT_METRIC_POOL_WARM,      /* gauge     retort_pool_warm_cells */
    RT_METRIC_HTTP,           /* counter   retort_http_requests_total{operation,status} */
    RT_METRIC_HTTP_DURATION,  /* histogram retort_http_request_duration_seconds{operation} */
    RT_METRIC_COST,           /* counter   retort_cost_usd_total */
    RT_METRIC_TOKENS_SAVED,   /* counter   retort_tokens_saved_total */
    RT_METRIC_PII,            /* counter   retort_pii_detections_total{type} */
        RT_METRIC_TOOL_CALLS,     /* counter   retort_tool_calls_total{outcome} ok error */
    RT_METRIC_TELEMETRY_SENT, /* counter   retort_telemetry_sent_total{signal} */
    RT_METRIC_TELEMETRY_DROPPED, /* counter   retort_telemetry_dropped_total{signal,reason} */
    RT_METRIC_COUNT
} rt_metric;

/*
 * `labels` are as many as the metric's row has, NULL when it has none. A series past the limit, or
 * with a label that is too long or no UTF-8, is counted as "other". Counters and histograms take
 * only finite amounts from 0 up; anything else is ignored.
 */
void rt_metric_add(rt_telemetry *t, rt_metric metric, const char *const *labels, double amount);
void rt_metric_set(rt_telemetry *t, rt_metric metric, const char *const *labels, double value);
void rt_metric_observe(rt_telemetry *t, rt_metric metric, const char *const *labels, double value);
void rt_metrics_write(rt_telemetry *t, rt_buf *out); /* Prometheus text format 0.0.4 */

/* -- Traces ------------------------------------------------------------------------------------ */

typedef struct rt_trace {
    uint8_t trace_id[16], span_id[8];
    uint8_t flags; /* bit 0: sampled */
    bool is_set;
} rt_trace;

/* A broken traceparent gives no context, as the W3C text says: a new trace begins. */
rt_trace rt_trace_parse(rt_str traceparent);
#define RT_TRACEPARENT_SIZE 56
void rt_trace_format(const rt_trace *trace, char out[RT_TRACEPARENT_SIZE]);

typedef enum rt_span_kind {
    RT_SPAN_INTERNAL = 1,
    RT_SPAN_SERVER = 2,
    RT_SPAN_CLIENT = 3,
} rt_span_kind;

typedef enum rt_attr_kind { RT_ATTR_STR, RT_ATTR_I64, RT_ATTR_DOUBLE, RT_ATTR_BOOL } rt_attr_kind;

typedef struct rt_span_attribute {
    const char *key; /* a literal */
    rt_attr_kind kind;
    uint16_t at, len; /* of a text, in the span's */
    union {
        int64_t i64; /* a boolean, too */
        double number;
    };
} rt_span_attribute;

#define RT_SPAN_ATTRIBUTES_MAX 32
#define RT_SPAN_TEXT_MAX       1024 /* bytes of all texts of one span; what is longer is cut */

typedef struct rt_span {
    rt_trace context; /* of this span; hand it on as the parent of others */
    uint8_t parent_id[8];
    bool has_parent, is_recording, is_error;
    rt_span_kind kind;
    uint64_t start_unix_ns, end_unix_ns, start_ns;
    const char *name; /* a literal, or lives until the end */
    char message[160];
    size_t attribute_count, dropped_attributes;
    size_t text_used;
    rt_span_attribute attributes[RT_SPAN_ATTRIBUTES_MAX];
    char text[RT_SPAN_TEXT_MAX];
} rt_span;

/*
 * Without a parent a new trace begins. Cheap when nothing is recorded. When no spans are sent at
 * all, the context is the parent's own, so that what we call hangs on what has called us.
 */
void rt_span_start(rt_telemetry *t, rt_span *span, const char *name, rt_span_kind kind,
                   const rt_trace *parent);
/* Of one key, the latest value counts. */
void rt_span_str(rt_span *span, const char *key, rt_str value);
void rt_span_i64(rt_span *span, const char *key, int64_t value);
void rt_span_double(rt_span *span, const char *key, double value);
void rt_span_bool(rt_span *span, const char *key, bool value);
void rt_span_fail(rt_span *span, rt_str message);
void rt_span_end(rt_telemetry *t, rt_span *span); /* once; a second end does nothing */

/* -- Product events (PostHog), off unless configured ------------------------------------------- */

#define RT_EVENT_NAME_MAX       200        /* bytes of the event, and of the distinct id */
#define RT_EVENT_PROPERTIES_MAX (8u << 10) /* bytes */

/* `properties` is a JSON object, or empty. What is bigger or no object is dropped and counted. */
void rt_event_send(rt_telemetry *t, rt_str event, rt_str distinct_id, rt_str properties);

/* -- Webhooks ---------------------------------------------------------------------------------- */

/* One POST of JSON to where the operator said, scrubbed like everything that is sent; waits for the
 * answer, at most timeout_ms. */
bool rt_webhook_send(rt_str url, rt_str json, uint64_t timeout_ms, rt_error *err);

#endif
