/* SPDX-License-Identifier: Apache-2.0 */
/*
 * telemetry_internal.h - what the files of this room share.
 *
 *     teller -- rt_span_end ----> queue -- thread --> otlp.c -----> file, post.c
 *     teller -- rt_event_send --> queue -- thread --> posthog.c --> post.c
 *
 * exporter.c has the queue and the thread, once for each of the two signals; a slow receiver of one
 * does not hold up the other.
 */
#ifndef RT_TELEMETRY_INTERNAL_H
#define RT_TELEMETRY_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "telemetry/telemetry.h"

/* -- Lists "k=v,k2=v2" (pairs.c) --------------------------------------------------------------- */

#define TELEMETRY_PAIRS_MAX      64          /* pairs of one list */
#define TELEMETRY_PAIRS_SIZE_MAX (16u << 10) /* bytes of its text */

typedef struct telemetry_pair {
    rt_str key, value; /* the value with its percent signs resolved */
} telemetry_pair;

typedef struct telemetry_pairs {
    telemetry_pair *items;
    size_t count;
} telemetry_pairs;

/* HTTP headers: keys are tokens, values cannot end the line. Attributes: both are UTF-8. */
bool telemetry_parse_headers(rt_str text, rt_arena *arena, telemetry_pairs *out, rt_error *err);
bool telemetry_parse_attributes(rt_str text, rt_arena *arena, telemetry_pairs *out, rt_error *err);

/* -- Metrics (metrics.c) ----------------------------------------------------------------------- */

typedef struct telemetry_metrics telemetry_metrics;

telemetry_metrics *telemetry_metrics_new(void);
void telemetry_metrics_free(telemetry_metrics *metrics);

/* -- One request (post.c) ---------------------------------------------------------------------- */

typedef struct telemetry_target {
    const char *url; /* NULL: nothing is posted */
    telemetry_pairs headers;
    const char *certificate, *client_key, *client_certificate;
    uint64_t timeout_ms;
} telemetry_target;

typedef enum telemetry_verdict {
    TELEMETRY_TAKEN,   /* 2xx */
    TELEMETRY_REFUSED, /* another answer, or one that will not come: do not ask again */
    TELEMETRY_LATER,   /* 429, 502, 503, 504, or the connection was lost: try again */
} telemetry_verdict;

#define TELEMETRY_ANSWER_MAX                                                                       \
    (64u << 10) /* bytes of an answer that are read; the rest is ignored                           \
                 */

typedef struct telemetry_answer {
    telemetry_verdict verdict;
    uint64_t retry_after_ms; /* 0: the receiver did not say */
    char text[200];          /* why it was not taken */
    rt_buf body;
} telemetry_answer;

typedef struct telemetry_post telemetry_post;

/* `stop_at` is read while a request is under way: past that moment (0: never) it is given up. */
bool telemetry_post_open(const telemetry_target *target, const _Atomic uint64_t *stop_at_ns,
                         telemetry_post **out, rt_error *err);
void telemetry_post_close(telemetry_post *post);
void telemetry_post_send(telemetry_post *post, const rt_outbound *parcel, telemetry_answer *answer);

/* "http://" or "https://" and something after it. */
bool telemetry_check_url(rt_str url, rt_error *err);

/* -- One signal on its way out (exporter.c) ---------------------------------------------------- */

typedef struct telemetry_signal {
    const char *name; /* "spans", as in the labels of the metrics */
    size_t queue_max, batch_max;
    uint64_t delay_ms;
    telemetry_target target;
    const char *file; /* NULL: none */

    /* One request of the items, and how many of them are in it. */
    size_t (*encode)(const void *ctx, void *const *items, size_t count, rt_buf *out);
    const void *ctx;
    const rt_str *exempt; /* members that are ours and no text, ids and moments (outbound.h) */
    size_t exempt_count;

    /* How many items an answer says were not kept although the request was taken; or NULL. */
    uint64_t (*rejected)(rt_str answer);
} telemetry_signal;

typedef struct telemetry_exporter telemetry_exporter;

bool telemetry_exporter_open(const telemetry_signal *signal, rt_telemetry *owner,
                             telemetry_exporter **out, rt_error *err);
/* Takes the item, from malloc(). */
void telemetry_exporter_tell(telemetry_exporter *exporter, void *item);
/* Tells the thread to end: send until stop_at at most. */
void telemetry_exporter_stop(telemetry_exporter *exporter, uint64_t stop_at_ns);
/* Waits for that, then frees. False: it is still busy at `until`, and keeps all it uses. */
bool telemetry_exporter_close(telemetry_exporter *exporter, uint64_t until_ns);

void telemetry_count_dropped(rt_telemetry *t, const char *signal, const char *reason, size_t count);

/* -- Spans (span.c, otlp.c) -------------------------------------------------------------------- */

/* A span that has ended: one allocation, only as big as what it has to tell. */
typedef struct telemetry_span {
    rt_trace context;
    uint8_t parent_id[8];
    bool has_parent, is_error;
    rt_span_kind kind;
    uint64_t start_unix_ns, end_unix_ns;
    size_t attribute_count, dropped_attributes;
    const rt_span_attribute *attributes;
    const char *text; /* of the attributes */
    rt_str name, message;
} telemetry_span;

telemetry_span *telemetry_span_new(const rt_span *span);

/* What all requests begin with. */
typedef struct telemetry_resource {
    rt_str json; /* {"attributes":[...]} */
    rt_str version;
} telemetry_resource;

bool telemetry_resource_init(const rt_telemetry_config *config, rt_arena *arena,
                             telemetry_resource *out, rt_error *err);
size_t telemetry_otlp_encode(const void *resource, void *const *spans, size_t count, rt_buf *out);
uint64_t telemetry_otlp_rejected(rt_str answer);

/* -- Events (posthog.c) ------------------------------------------------------------------------ */

typedef struct telemetry_project {
    rt_str key, version;
} telemetry_project;

size_t telemetry_posthog_encode(const void *project, void *const *events, size_t count,
                                rt_buf *out);

/* -- All of it (telemetry.c) ------------------------------------------------------------------- */

struct rt_telemetry {
    telemetry_metrics *metrics;
    rt_arena arena;                     /* of the configuration's texts */
    telemetry_exporter *spans, *events; /* NULL: not sent */
    telemetry_resource resource;
    telemetry_project project;
    double sample_ratio; /* 0 to 1 */
    bool ignores_parent_sampling;
    rt_telemetry_warn_fn warn;
    void *warn_ctx;
    uint64_t id_seed;
    _Atomic uint64_t id_count;
};

#endif
