/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/telemetry.h"

#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static rt_telemetry *telemetry;
static rt_buf text;

static void begin(void)
{
    cr_assert(rt_telemetry_open(&(rt_telemetry_config){ 0 }, &telemetry, NULL));
}

static void end(void)
{
    rt_telemetry_close(telemetry);
    rt_buf_done(&text);
}

TestSuite(metrics, .init = begin, .fini = end);

static const char *written(void)
{
    rt_buf_reset(&text);
    rt_metrics_write(telemetry, &text);
    rt_buf_addc(&text, '\0');
    cr_assert(rt_buf_ok(&text, NULL));
    return text.ptr;
}

static bool has_line(const char *line)
{
    char *whole;
    cr_assert(asprintf(&whole, "\n%s\n", line) > 0);
    bool found = strstr(written(), whole) != NULL;
    free(whole);
    return found;
}

#define EXPECT_LINE(line) cr_expect(has_line(line), "%s\nis not in\n%s", line, text.ptr)

#define LABELS(...) ((const char *[]){ __VA_ARGS__ })

Test(metrics, a_counter_has_help_type_and_a_line_per_series)
{
    rt_metric_add(telemetry, RT_METRIC_EXECUTIONS, LABELS("python", "local", "SUCCESS"), 1);
    rt_metric_add(telemetry, RT_METRIC_EXECUTIONS, LABELS("node", "local", "TIMEOUT"), 1);
    rt_metric_add(telemetry, RT_METRIC_EXECUTIONS, LABELS("python", "local", "SUCCESS"), 2);
    cr_expect(strstr(
        written(),
        "# HELP retort_executions_total Runs that have ended, by how they ended.\n"
        "# TYPE retort_executions_total counter\n"
        "retort_executions_total{language=\"python\",runtime=\"local\",status=\"SUCCESS\"} 3\n"
        "retort_executions_total{language=\"node\",runtime=\"local\",status=\"TIMEOUT\"} 1\n"
        "# HELP "));
}

Test(metrics, a_metric_without_labels_is_there_from_the_start)
{
    EXPECT_LINE("retort_sessions 0");
    EXPECT_LINE("retort_cost_usd_total 0");
    EXPECT_LINE("retort_queue_wait_seconds_bucket{le=\"+Inf\"} 0");
    EXPECT_LINE("retort_queue_wait_seconds_sum 0");
    EXPECT_LINE("retort_queue_wait_seconds_count 0");
}

Test(metrics, a_gauge_goes_both_ways)
{
    rt_metric_add(telemetry, RT_METRIC_RUNNING, NULL, 3);
    rt_metric_add(telemetry, RT_METRIC_RUNNING, NULL, -4);
    EXPECT_LINE("retort_running_executions -1");
    rt_metric_set(telemetry, RT_METRIC_RUNNING, NULL, 7);
    EXPECT_LINE("retort_running_executions 7");
}

Test(metrics, a_counter_never_goes_back)
{
    rt_metric_add(telemetry, RT_METRIC_COST, NULL, 0.18);
    rt_metric_add(telemetry, RT_METRIC_COST, NULL, -1);
    rt_metric_add(telemetry, RT_METRIC_COST, NULL, NAN);
    rt_metric_add(telemetry, RT_METRIC_COST, NULL, INFINITY);
    EXPECT_LINE("retort_cost_usd_total 0.18");
}

Test(metrics, values_of_labels_are_escaped)
{
    rt_metric_add(telemetry, RT_METRIC_REJECTED, LABELS("a\"b\\c\nd\re caf\xC3\xA9"), 1);
    rt_metric_add(telemetry, RT_METRIC_REJECTED, LABELS(""), 1);
    rt_metric_add(telemetry, RT_METRIC_REJECTED, LABELS(NULL), 1);
    EXPECT_LINE("retort_rejected_executions_total{reason=\"a\\\"b\\\\c\\nd\re caf\xC3\xA9\"} 1");
    EXPECT_LINE("retort_rejected_executions_total{reason=\"\"} 2");
}

Test(metrics, values_that_are_no_labels_are_counted_as_other)
{
    char long_value[200];
    memset(long_value, 'x', sizeof(long_value) - 1);
    long_value[sizeof(long_value) - 1] = '\0';
    rt_metric_add(telemetry, RT_METRIC_REJECTED, LABELS("\xFF"), 1);
    rt_metric_add(telemetry, RT_METRIC_REJECTED, LABELS("\xFE"), 1);
    rt_metric_add(telemetry, RT_METRIC_REJECTED, LABELS(long_value), 1);
    rt_metric_add(telemetry, RT_METRIC_REJECTED, LABELS("other"), 1);
    EXPECT_LINE("retort_rejected_executions_total{reason=\"other\"} 4");
}

Test(metrics, series_past_the_limit_share_one)
{
    char value[32];
    rt_metric_add(telemetry, RT_METRIC_PII, LABELS("other"), 1); /* one's own word, first */
    for (int i = 0; i < 300; i++) {
        snprintf(value, sizeof(value), "type%d", i);
        rt_metric_add(telemetry, RT_METRIC_PII, LABELS(value), 1);
        rt_metric_add(telemetry, RT_METRIC_PII, LABELS(value), 1);
    }
    EXPECT_LINE("retort_pii_detections_total{type=\"type0\"} 2");
    EXPECT_LINE("retort_pii_detections_total{type=\"type198\"} 2");
    EXPECT_LINE("retort_pii_detections_total{type=\"other\"} 203");
    size_t lines = 0;
    for (const char *at = written(); (at = strstr(at, "\nretort_pii_detections_total{")); at++)
        lines++;
    cr_expect_eq(lines, 200);
}

Test(metrics, a_value_on_a_bound_is_in_its_bucket)
{
    static const double values[] = { 0, 0.0005, 0.000501, 1, 300, 300.5 };
    for (size_t i = 0; i < RT_COUNT(values); i++)
        rt_metric_observe(telemetry, RT_METRIC_STAGE, LABELS("run"), values[i]);
    rt_metric_observe(telemetry, RT_METRIC_STAGE, LABELS("run"), -1);
    rt_metric_observe(telemetry, RT_METRIC_STAGE, LABELS("run"), NAN);
    EXPECT_LINE("# TYPE retort_stage_duration_seconds histogram");
    EXPECT_LINE("retort_stage_duration_seconds_bucket{stage=\"run\",le=\"0.0005\"} 2");
    EXPECT_LINE("retort_stage_duration_seconds_bucket{stage=\"run\",le=\"0.001\"} 3");
    EXPECT_LINE("retort_stage_duration_seconds_bucket{stage=\"run\",le=\"0.5\"} 3");
    EXPECT_LINE("retort_stage_duration_seconds_bucket{stage=\"run\",le=\"1\"} 4");
    EXPECT_LINE("retort_stage_duration_seconds_bucket{stage=\"run\",le=\"120\"} 4");
    EXPECT_LINE("retort_stage_duration_seconds_bucket{stage=\"run\",le=\"300\"} 5");
    EXPECT_LINE("retort_stage_duration_seconds_bucket{stage=\"run\",le=\"+Inf\"} 6");
    EXPECT_LINE("retort_stage_duration_seconds_count{stage=\"run\"} 6");
    EXPECT_LINE("retort_stage_duration_seconds_sum{stage=\"run\"} 601.501001");
}

enum { THREADS = 8, ROUNDS = 20000, KINDS = 50 };

static void *count_a_lot(void *ctx)
{
    char kind[16];
    (void)ctx;
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(kind, sizeof(kind), "kind%d", i % KINDS);
        rt_metric_add(telemetry, RT_METRIC_CACHE, LABELS("hit"), 1);
        rt_metric_add(telemetry, RT_METRIC_PII, LABELS(kind), 1);
        rt_metric_observe(telemetry, RT_METRIC_STAGE, LABELS("run"), 0.25);
    }
    return NULL;
}

Test(metrics, eight_threads_count_exactly)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, count_a_lot, NULL), 0);
    for (size_t i = 0; i < 20; i++)
        written(); /* while they count */
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    EXPECT_LINE("retort_cache_requests_total{outcome=\"hit\"} 160000");
    EXPECT_LINE("retort_stage_duration_seconds_count{stage=\"run\"} 160000");
    EXPECT_LINE("retort_stage_duration_seconds_sum{stage=\"run\"} 40000");
    for (int i = 0; i < KINDS; i++) {
        char line[80];
        snprintf(line, sizeof(line), "retort_pii_detections_total{type=\"kind%d\"} 3200", i);
        EXPECT_LINE(line);
    }
}

Test(metrics, nobody_is_told_without_complaint)
{
    rt_metric_add(NULL, RT_METRIC_CACHE, LABELS("hit"), 1);
    rt_metric_set(NULL, RT_METRIC_RUNNING, NULL, 1);
    rt_metric_observe(NULL, RT_METRIC_QUEUE_WAIT, NULL, 1);
    rt_metrics_write(NULL, &text);
    cr_expect_eq(text.len, 0);
}
