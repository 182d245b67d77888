/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/telemetry_internal.h"

#include <criterion/criterion.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* An exporter to a file, whose thread waits in `encode` until the test lets it go on. */
static sem_t entered, may_go_on;
static bool is_held;
static char path[] = "/tmp/retort-exporter-test-XXXXXX";
static rt_telemetry *owner;
static telemetry_exporter *exporter;
static rt_buf told;

static size_t encode_numbers(const void *ctx, void *const *items, size_t count, rt_buf *out)
{
    (void)ctx;
    sem_post(&entered);
    if (is_held)
        sem_wait(&may_go_on);
    for (size_t i = 0; i < count; i++)
        rt_buf_addf(out, "%d ", *(int *)items[i]);
    return count;
}

static void take_warning(void *ctx, const char *text)
{
    (void)ctx;
    rt_buf_addf(&told, "%s\n", text);
}

static void begin(void)
{
    telemetry_signal signal = { .name = "numbers",
                                .queue_max = 8,
                                .batch_max = 4,
                                .delay_ms = 600000,
                                .file = path,
                                .encode = encode_numbers };
    rt_outbound_scrub_set(rt_outbound_scrub_nothing); /* numbers are no JSON */
    close(mkstemp(path));
    sem_init(&entered, 0, 0);
    sem_init(&may_go_on, 0, 0);
    cr_assert(rt_telemetry_open(&(rt_telemetry_config){ .warn = take_warning }, &owner, NULL));
    cr_assert(telemetry_exporter_open(&signal, owner, &exporter, NULL));
}

static void end(void)
{
    rt_telemetry_close(owner);
    rt_buf_done(&told);
    unlink(path);
}

TestSuite(exporter, .init = begin, .fini = end);

static void tell(int from, int to)
{
    for (int i = from; i < to; i++) {
        int *item = malloc(sizeof(*item));
        *item = i;
        telemetry_exporter_tell(exporter, item);
    }
}

static void finish(void)
{
    uint64_t now = rt_now_ns();
    telemetry_exporter_stop(exporter, now + UINT64_C(4000000000));
    cr_assert(telemetry_exporter_close(exporter, now + UINT64_C(5000000000)));
}

static void expect_file(const char *expected)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str text;
    cr_assert(rt_read_file(path, 1 << 20, &arena, &text, NULL));
    cr_expect_str_eq(text.ptr, expected);
}

static void expect_metric(const char *line)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_metrics_write(owner, &text);
    cr_expect(rt_str_find(rt_buf_str(&text), rt_str_of(line)) > 0, "%s\nis not in\n%.*s", line,
              RT_FMT(rt_buf_str(&text)));
}

Test(exporter, a_whole_batch_does_not_wait_for_the_delay)
{
    tell(0, 4);
    sem_wait(&entered);
    finish();
    expect_file("0 1 2 3 \n");
}

Test(exporter, the_end_sends_what_waits)
{
    is_held = true;
    tell(0, 4);
    sem_wait(&entered);
    tell(4, 10);
    is_held = false;
    sem_post(&may_go_on);
    finish();
    expect_file("0 1 2 3 \n4 5 6 7 \n8 9 \n");
    expect_metric("retort_telemetry_sent_total{signal=\"numbers\"} 10\n");
}

Test(exporter, what_a_full_queue_cannot_take_is_dropped_and_counted)
{
    is_held = true;
    tell(0, 4);
    sem_wait(&entered); /* the first batch is under way, the ring is empty */
    tell(4, 15);
    expect_metric("retort_telemetry_dropped_total{signal=\"numbers\",reason=\"queue_full\"} 3\n");
    is_held = false;
    sem_post(&may_go_on);
    finish();
    expect_file("0 1 2 3 \n4 5 6 7 \n8 9 10 11 \n");
}

Test(exporter, a_file_that_was_moved_away_is_begun_anew)
{
    char moved[sizeof(path) + 4];
    snprintf(moved, sizeof(moved), "%s.old", path);
    tell(0, 4);
    sem_wait(&entered);
    tell(4, 8);
    sem_wait(&entered); /* so the first batch is written */
    cr_assert_eq(rename(path, moved), 0);
    tell(8, 12);
    finish();
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str text;
    cr_assert(rt_read_file(path, 1 << 20, &arena, &text, NULL));
    cr_expect(rt_str_ends(text, RT_STR("8 9 10 11 \n")));
    unlink(moved);
}

Test(exporter, a_failure_is_told_once_and_so_is_its_end)
{
    is_held = true;
    tell(0, 4);
    sem_wait(&entered);
    tell(4, 8);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(mkdir(path, 0700), 0);
    sem_post(&may_go_on);
    sem_wait(&entered); /* the first batch has failed */
    sem_post(&may_go_on);
    tell(8, 12);
    sem_wait(&entered); /* the second one, too */
    cr_assert_eq(rmdir(path), 0);
    is_held = false;
    sem_post(&may_go_on);
    finish();
    expect_file("8 9 10 11 \n");
    expect_metric("retort_telemetry_dropped_total{signal=\"numbers\",reason=\"file\"} 8\n");
    char expected[200];
    snprintf(expected, sizeof(expected),
             "telemetry: numbers are dropped: open %s: Is a directory\n"
             "telemetry: numbers are sent again\n",
             path);
    cr_expect(rt_str_eq_c(rt_buf_str(&told), expected), "%.*s", RT_FMT(rt_buf_str(&told)));
}
