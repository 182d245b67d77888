/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.c - counters, gauges and histograms, and their text for Prometheus.
 *
 * Every cache hit counts something, so counting takes no lock: a series is found in a table of
 * pointers that are only ever added, and its numbers are atomic. Only making a new series and
 * writing all of them out take the lock.
 *
 * What must stay true: a pointer in `slots` never changes once it is set, and a series is whole
 * before it is put there.
 */
#include "telemetry/telemetry_internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

enum {
    LABELS_MAX = 3,
    LABEL_SIZE_MAX = 128,
    KEY_SIZE_MAX = LABELS_MAX * (LABEL_SIZE_MAX + 1),
    SERIES_MAX = 200, /* of one metric; the next ones share one series */
    SLOTS = 512,      /* more than twice as many, so that searches are short */
    CACHE_LINE = 64,
};

static const double seconds[] = {
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
    0.5,    1,     2.5,    5,     10,   30,    60,   120, 300,
};

typedef enum metric_kind { COUNTER, GAUGE, HISTOGRAM } metric_kind;

typedef struct metric_row {
    const char *name, *help;
    metric_kind kind;
    const char *labels[LABELS_MAX];
} metric_row;

static const metric_row rows[RT_METRIC_COUNT] = {
    [RT_METRIC_EXECUTIONS] = { "retort_executions_total",
                               "Runs that have ended, by how they ended.",
                               COUNTER,
                               { "language", "runtime", "status" } },
    [RT_METRIC_DURATION] = { "retort_execution_duration_seconds",
                             "Time from request to answer of a run.",
                             HISTOGRAM,
                             { "language", "runtime" } },
    [RT_METRIC_STAGE] = { "retort_stage_duration_seconds",
                          "Time a run has spent in one stage.",
                          HISTOGRAM,
                          { "stage" } },
    [RT_METRIC_QUEUE_WAIT] = { "retort_queue_wait_seconds",
                               "Time a run has waited for its turn.",
                               HISTOGRAM,
                               { NULL } },
    [RT_METRIC_QUEUED] = { "retort_queued_executions", "Runs that wait.", GAUGE, { NULL } },
    [RT_METRIC_RUNNING] = { "retort_running_executions", "Runs under way.", GAUGE, { NULL } },
    [RT_METRIC_MEMORY_GRANTED] = { "retort_granted_memory_bytes",
                                   "Memory promised to the runs under way.",
                                   GAUGE,
                                   { NULL } },
    [RT_METRIC_REJECTED] = { "retort_rejected_executions_total",
                             "Requests that were not run.",
                             COUNTER,
                             { "reason" } },
    [RT_METRIC_CACHE] = { "retort_cache_requests_total",
                          "Runs looked up in the cache.",
                          COUNTER,
                          { "outcome" } },
    [RT_METRIC_CACHE_SAVED] = { "retort_cache_saved_seconds_total",
                                "Time that answers from the cache would have taken to run.",
                                COUNTER,
                                { NULL } },
    [RT_METRIC_DENIALS] = { "retort_denied_calls_total",
                            "System calls a cell was denied.",
                            COUNTER,
                            { "language" } },
    [RT_METRIC_SESSIONS] = { "retort_sessions", "Sessions that are open.", GAUGE, { NULL } },
    [RT_METRIC_BRANCHES] = { "retort_session_branches_total",
                             "Branches made of sessions.",
                             COUNTER,
                             { NULL } },
    [RT_METRIC_POOL_WARM] = { "retort_pool_warm_cells",
                              "Cells that are ready before anybody asks.",
                              GAUGE,
                              { NULL } },
    [RT_METRIC_HTTP] = { "retort_http_requests_total",
                         "HTTP requests answered.",
                         COUNTER,
                         { "operation", "status" } },
    [RT_METRIC_HTTP_DURATION] = { "retort_http_request_duration_seconds",
                                  "Time from an HTTP request to its answer.",
                                  HISTOGRAM,
                                  { "operation" } },
    [RT_METRIC_COST] = { "retort_cost_usd_total", "Cost of all runs in USD.", COUNTER, { NULL } },
    [RT_METRIC_TOKENS_SAVED] = { "retort_tokens_saved_total",
                                 "Tokens that did not have to pass through a model.",
                                 COUNTER,
                                 { NULL } },
    [RT_METRIC_PII] = { "retort_pii_detections_total",
                        "Personal data found and masked.",
                        COUNTER,
                        { "type" } },
        [RT_METRIC_TOOL_CALLS] = { "retort_tool_calls_total",
                               "Calls of tools, by code and by callers.",
                               COUNTER,
                               { "outcome" } },
    [RT_METRIC_TELEMETRY_SENT] = { "retort_telemetry_sent_total",
                                   "Spans and events that were taken by their receiver.",
                                   COUNTER,
                                   { "signal" } },
    [RT_METRIC_TELEMETRY_DROPPED] = { "retort_telemetry_dropped_total",
                                      "Spans and events that could not be sent.",
                                      COUNTER,
                                      { "signal", "reason" } },
};

/* The values of the labels, each with a NUL after it. */
typedef struct label_key {
    uint64_t hash;
    size_t size;
    char bytes[KEY_SIZE_MAX];
} label_key;

/* On cache lines of its own, so that two busy series do not slow each other. */
typedef struct series {
    _Alignas(CACHE_LINE) _Atomic double value; /* of a histogram, the sum */
    _Atomic uint64_t *buckets;                 /* of a histogram: one per bound, one for the rest */
    struct series *next;                       /* in the order they were made */
    uint64_t hash;
    size_t key_size;
    char key[];
} series;

typedef struct metric {
    _Atomic(series *) slots[SLOTS];
    _Atomic size_t count;
    _Atomic(series *) other; /* for the rest; of a metric without labels, the only one */
    series *first, **last;
} metric;

struct telemetry_metrics {
    pthread_mutex_t lock; /* for making and writing series */
    metric metrics[RT_METRIC_COUNT];
};

static size_t label_count(const metric_row *row)
{
    size_t n = 0;
    while (n < LABELS_MAX && row->labels[n])
        n++;
    return n;
}

/* -- Finding a series -------------------------------------------------------------------------- */

static uint64_t hash_of(const char *bytes, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (uint8_t)bytes[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32;
}

/* False when a value is too long to be one. */
static bool read_labels(const char *const *labels, size_t count, label_key *key)
{
    key->size = 0;
    for (size_t i = 0; i < count; i++) {
        const char *value = labels[i] ? labels[i] : "";
        size_t len = strnlen(value, LABEL_SIZE_MAX + 1);
        if (len > LABEL_SIZE_MAX)
            return false;
        memcpy(key->bytes + key->size, value, len);
        key->bytes[key->size + len] = '\0';
        key->size += len + 1;
    }
    key->hash = hash_of(key->bytes, key->size);
    return true;
}

/* The slot of the series, or the empty one where it belongs: there always is one. */
static _Atomic(series *) *find_slot(metric *m, const label_key *key)
{
    for (size_t i = key->hash % SLOTS;; i = (i + 1) % SLOTS) {
        series *s = atomic_load_explicit(&m->slots[i], memory_order_acquire);
        if (!s || (s->hash == key->hash && s->key_size == key->size &&
                   memcmp(s->key, key->bytes, key->size) == 0))
            return &m->slots[i];
    }
}

static series *series_new(metric_kind kind, const label_key *key)
{
    size_t buckets = kind == HISTOGRAM ? RT_COUNT(seconds) + 1 : 0;
    size_t at = (sizeof(series) + key->size + 7) / 8 * 8;
    size_t size = (at + buckets * sizeof(uint64_t) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    series *s = aligned_alloc(CACHE_LINE, size);
    if (!s)
        rt_out_of_memory(size);
    memset(s, 0, size);
    memcpy(s->key, key->bytes, key->size);
    s->key_size = key->size;
    s->hash = key->hash;
    s->buckets = buckets ? (_Atomic uint64_t *)(void *)((char *)s + at) : NULL;
    return s;
}

/* Puts a new series in its slot. Under the lock. */
static series *add_series(metric *m, metric_kind kind, _Atomic(series *) *slot,
                          const label_key *key)
{
    series *s = series_new(kind, key);
    *m->last = s;
    m->last = &s->next;
    atomic_store_explicit(slot, s, memory_order_release);
    return s;
}

/* In the table like the others: somebody may use the word "other" as a value of his own. */
static series *other_series(metric *m, const metric_row *row)
{
    static const char *const others[LABELS_MAX] = { "other", "other", "other" };
    label_key key;
    read_labels(others, label_count(row), &key);
    _Atomic(series *) *slot = find_slot(m, &key);
    series *s = atomic_load(slot);
    if (!s)
        s = add_series(m, row->kind, slot, &key);
    atomic_store_explicit(&m->other, s, memory_order_release);
    return s;
}

/* Without a key: the series for the rest. Somebody else may have made it while we waited. */
static series *make_series(telemetry_metrics *all, rt_metric which, const label_key *key)
{
    metric *m = &all->metrics[which];
    series *s = NULL;
    pthread_mutex_lock(&all->lock);
    _Atomic(series *) *slot = key ? find_slot(m, key) : NULL;
    if (slot)
        s = atomic_load(slot);
    if (slot && !s && atomic_load(&m->count) < SERIES_MAX) {
        s = add_series(m, rows[which].kind, slot, key);
        atomic_fetch_add(&m->count, 1);
    }
    if (!s)
        s = other_series(m, &rows[which]);
    pthread_mutex_unlock(&all->lock);
    return s;
}

static series *series_of(telemetry_metrics *all, rt_metric which, const char *const *labels)
{
    metric *m = &all->metrics[which];
    series *other = atomic_load_explicit(&m->other, memory_order_acquire);
    size_t count = label_count(&rows[which]);
    if (count == 0)
        return other;
    assert(labels);
    label_key key;
    bool is_fit = read_labels(labels, count, &key);
    if (is_fit) {
        series *s = atomic_load_explicit(find_slot(m, &key), memory_order_acquire);
        if (s)
            return s;
        is_fit = rt_utf8_valid((rt_str){ key.bytes, key.size });
    }
    if (other && (!is_fit || atomic_load(&m->count) >= SERIES_MAX))
        return other;
    return make_series(all, which, is_fit ? &key : NULL);
}

/* -- Counting ---------------------------------------------------------------------------------- */

static void add_to(_Atomic double *value, double amount)
{
    double old = atomic_load_explicit(value, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(value, &old, old + amount, memory_order_relaxed,
                                                  memory_order_relaxed))
        ;
}

/* What a counter may grow by. Such a number cannot make a sum go back, or end it for ever. */
static bool is_amount(double value)
{
    return value >= 0 && value < INFINITY;
}

void rt_metric_add(rt_telemetry *t, rt_metric which, const char *const *labels, double amount)
{
    assert(rows[which].kind != HISTOGRAM);
    if (t && (is_amount(amount) || (rows[which].kind == GAUGE && isfinite(amount))))
        add_to(&series_of(t->metrics, which, labels)->value, amount);
}

void rt_metric_set(rt_telemetry *t, rt_metric which, const char *const *labels, double value)
{
    assert(rows[which].kind == GAUGE);
    if (t && isfinite(value))
        atomic_store_explicit(&series_of(t->metrics, which, labels)->value, value,
                              memory_order_relaxed);
}

void rt_metric_observe(rt_telemetry *t, rt_metric which, const char *const *labels, double value)
{
    assert(rows[which].kind == HISTOGRAM);
    if (!t || !is_amount(value))
        return;
    series *s = series_of(t->metrics, which, labels);
    size_t bucket = 0;
    while (bucket < RT_COUNT(seconds) && value > seconds[bucket])
        bucket++;
    atomic_fetch_add_explicit(&s->buckets[bucket], 1, memory_order_relaxed);
    add_to(&s->value, value);
}

/* -- Writing ----------------------------------------------------------------------------------- */

static void put_number(rt_buf *out, double number)
{
    rt_json_writer w;
    rt_json_begin(&w, out);
    if (isinf(number)) /* sums of finite numbers can become this */
        rt_buf_add(out, RT_STR("+Inf"));
    else if (number == trunc(number) && fabs(number) < 1e15)
        rt_jw_i64(&w, (int64_t)number);
    else
        rt_jw_double(&w, number);
}

static void put_escaped(rt_buf *out, const char *value)
{
    for (; *value; value++) {
        if (*value == '\n')
            rt_buf_add(out, RT_STR("\\n"));
        else if (*value == '\\' || *value == '"')
            rt_buf_addf(out, "\\%c", *value);
        else
            rt_buf_addc(out, *value);
    }
}

/* name_suffix{label="value",le="bound"} */
static void put_name(rt_buf *out, const metric_row *row, const series *s, const char *suffix,
                     const double *bound)
{
    const char *value = s->key, *before = "{";
    rt_buf_addf(out, "%s%s", row->name, suffix);
    for (size_t i = 0; i < label_count(row); i++, value += strlen(value) + 1, before = ",") {
        rt_buf_addf(out, "%s%s=\"", before, row->labels[i]);
        put_escaped(out, value);
        rt_buf_addc(out, '"');
    }
    if (bound) {
        rt_buf_addf(out, "%sle=\"", before);
        put_number(out, *bound);
        rt_buf_addc(out, '"');
    }
    if (bound || label_count(row))
        rt_buf_addc(out, '}');
    rt_buf_addc(out, ' ');
}

static void put_line(rt_buf *out, const metric_row *row, const series *s, const char *suffix,
                     const double *bound, double value)
{
    put_name(out, row, s, suffix, bound);
    put_number(out, value);
    rt_buf_addc(out, '\n');
}

/* The count is that of the buckets read here: it equals "+Inf" even while others count on. */
static void put_histogram(rt_buf *out, const metric_row *row, series *s)
{
    static const double infinity = INFINITY;
    uint64_t count = 0;
    for (size_t i = 0; i <= RT_COUNT(seconds); i++) {
        count += atomic_load_explicit(&s->buckets[i], memory_order_relaxed);
        put_line(out, row, s, "_bucket", i < RT_COUNT(seconds) ? &seconds[i] : &infinity,
                 (double)count);
    }
    put_line(out, row, s, "_sum", NULL, atomic_load(&s->value));
    put_line(out, row, s, "_count", NULL, (double)count);
}

void rt_metrics_write(rt_telemetry *t, rt_buf *out)
{
    static const char *const types[] = { "counter", "gauge", "histogram" };
    if (!t)
        return;
    pthread_mutex_lock(&t->metrics->lock);
    for (size_t i = 0; i < RT_METRIC_COUNT; i++) {
        const metric_row *row = &rows[i];
        rt_buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", row->name, row->help, row->name,
                    types[row->kind]);
        for (series *s = t->metrics->metrics[i].first; s; s = s->next) {
            if (row->kind == HISTOGRAM)
                put_histogram(out, row, s);
            else
                put_line(out, row, s, "", NULL, atomic_load(&s->value));
        }
    }
    pthread_mutex_unlock(&t->metrics->lock);
}

/* -- Beginning and end ------------------------------------------------------------------------- */

telemetry_metrics *telemetry_metrics_new(void)
{
    telemetry_metrics *all = calloc(1, sizeof(*all));
    if (!all)
        rt_out_of_memory(sizeof(*all));
    pthread_mutex_init(&all->lock, NULL);
    for (size_t i = 0; i < RT_METRIC_COUNT; i++) {
        metric *m = &all->metrics[i];
        m->last = &m->first;
        if (label_count(&rows[i]) == 0) /* shown from the start, as 0 */
            other_series(m, &rows[i]);
    }
    return all;
}

void telemetry_metrics_free(telemetry_metrics *all)
{
    if (!all)
        return;
    for (size_t i = 0; i < RT_METRIC_COUNT; i++)
        for (series *s = all->metrics[i].first, *next; s; s = next) {
            next = s->next;
            free(s);
        }
    pthread_mutex_destroy(&all->lock);
    free(all);
}
