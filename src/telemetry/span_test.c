/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/telemetry_internal.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

static rt_telemetry *telemetry;
static char path[] = "/tmp/retort-span-test-XXXXXX";

/* A file as the receiver: spans are recorded, and nothing is sent. */
static void open_with(double ratio, bool ignores_parent)
{
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    close(fd);
    cr_assert(rt_telemetry_open(&(rt_telemetry_config){ .span_file = path,
                                                        .sample_ratio = ratio,
                                                        .ignores_parent_sampling = ignores_parent },
                                &telemetry, NULL));
}

static void end(void)
{
    rt_telemetry_close(telemetry);
    unlink(path);
}

static void begin(void)
{
    rt_outbound_scrub_set(rt_outbound_scrub_nothing);
}

TestSuite(span, .init = begin, .fini = end);

static rt_trace parent_of(const char *flags)
{
    char text[RT_TRACEPARENT_SIZE] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-";
    strcat(text, flags);
    return rt_trace_parse(rt_str_of(text));
}

Test(span, a_child_is_in_the_trace_of_its_parent)
{
    rt_span root, child;
    open_with(-1, false);
    rt_span_start(telemetry, &root, "root", RT_SPAN_SERVER, NULL);
    rt_span_start(telemetry, &child, "child", RT_SPAN_INTERNAL, &root.context);
    cr_expect(root.context.is_set && root.is_recording && !root.has_parent);
    cr_expect(child.has_parent && child.is_recording);
    cr_expect_arr_eq(child.context.trace_id, root.context.trace_id, 16);
    cr_expect_arr_eq(child.parent_id, root.context.span_id, 8);
    cr_expect_arr_neq(child.context.span_id, root.context.span_id, 8);
    cr_expect_eq(child.context.flags, 1);
}

Test(span, a_parent_that_is_not_set_is_none)
{
    rt_span span;
    rt_trace nothing = rt_trace_parse(RT_STR("broken"));
    open_with(-1, false);
    rt_span_start(telemetry, &span, "root", RT_SPAN_SERVER, &nothing);
    cr_expect(span.context.is_set && span.is_recording && !span.has_parent);
}

Test(span, a_parent_decides_whether_a_trace_is_recorded)
{
    rt_span span;
    rt_trace on = parent_of("01"), off = parent_of("00");
    open_with(0, false);
    rt_span_start(telemetry, &span, "x", RT_SPAN_SERVER, &on);
    cr_expect(span.is_recording);
    rt_span_start(telemetry, &span, "x", RT_SPAN_SERVER, &off);
    cr_expect(!span.is_recording && span.context.flags == 0);
    rt_span_start(telemetry, &span, "x", RT_SPAN_SERVER, NULL);
    cr_expect(!span.is_recording && span.context.flags == 0 && span.context.is_set);
}

Test(span, a_parent_can_be_overruled)
{
    rt_span span;
    rt_trace off = parent_of("00");
    open_with(1, true);
    rt_span_start(telemetry, &span, "x", RT_SPAN_SERVER, &off);
    cr_expect(span.is_recording && span.context.flags == 1);
}

Test(span, a_ratio_of_traces_is_recorded)
{
    rt_span span;
    unsigned recorded = 0;
    open_with(0.25, false);
    for (int i = 0; i < 10000; i++) {
        rt_span_start(telemetry, &span, "x", RT_SPAN_SERVER, NULL);
        recorded += span.is_recording;
    }
    cr_expect(recorded > 2200 && recorded < 2800, "%u of 10000", recorded);
}

Test(span, no_two_ids_are_the_same)
{
    enum { COUNT = 2000 };
    static rt_trace seen[COUNT];
    rt_span span;
    open_with(0, false);
    for (int i = 0; i < COUNT; i++) {
        rt_span_start(telemetry, &span, "x", RT_SPAN_SERVER, NULL);
        seen[i] = span.context;
        for (int k = 0; k < i; k++) {
            cr_assert(memcmp(seen[k].span_id, seen[i].span_id, 8) != 0);
            cr_assert(memcmp(seen[k].trace_id, seen[i].trace_id, 16) != 0);
        }
    }
}

Test(span, without_a_receiver_the_context_is_passed_on)
{
    rt_span span;
    char text[RT_TRACEPARENT_SIZE];
    rt_trace on = parent_of("01");
    cr_assert(rt_telemetry_open(&(rt_telemetry_config){ 0 }, &telemetry, NULL));
    rt_telemetry *const either[] = { telemetry, NULL };
    for (size_t i = 0; i < RT_COUNT(either); i++) {
        rt_span_start(either[i], &span, "x", RT_SPAN_SERVER, &on);
        rt_trace_format(&span.context, text);
        cr_expect(!span.is_recording);
        cr_expect_str_eq(text, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        rt_span_start(either[i], &span, "x", RT_SPAN_SERVER, NULL);
        rt_trace_format(&span.context, text);
        cr_expect(rt_trace_parse(rt_str_of(text)).is_set);
        rt_span_str(&span, "key", RT_STR("value"));
        rt_span_fail(&span, RT_STR("message"));
        rt_span_end(either[i], &span);
        cr_expect_eq(span.attribute_count, 0);
    }
}

Test(span, the_latest_value_of_a_key_counts)
{
    rt_span span;
    open_with(-1, false);
    rt_span_start(telemetry, &span, "x", RT_SPAN_SERVER, NULL);
    rt_span_str(&span, "a", RT_STR("first"));
    rt_span_i64(&span, "b", 1);
    rt_span_bool(&span, "a", true);
    cr_expect_eq(span.attribute_count, 2);
    cr_expect_eq(span.attributes[0].kind, RT_ATTR_BOOL);
}

Test(span, what_does_not_fit_is_cut_or_counted)
{
    static const char *const keys[] = {
        "0",  "1",  "2",  "3",  "4",  "5",  "6",  "7",  "8",  "9",  "10", "11",
        "12", "13", "14", "15", "16", "17", "18", "19", "20", "21", "22", "23",
        "24", "25", "26", "27", "28", "29", "30", "31", "32", "33",
    };
    char text[RT_SPAN_TEXT_MAX + 1];
    rt_span span;
    open_with(-1, false);
    rt_span_start(telemetry, &span, "x", RT_SPAN_SERVER, NULL);
    memset(text, 'x', sizeof(text));
    memcpy(text + RT_SPAN_TEXT_MAX - 1, "\xC3\xA9", 2); /* would be cut in the middle */
    rt_span_str(&span, "long", (rt_str){ text, sizeof(text) });
    cr_expect_eq(span.attributes[0].len, RT_SPAN_TEXT_MAX - 1);
    rt_span_str(&span, "more", RT_STR("\xC3\xA9"));
    cr_expect_eq(span.attributes[1].len, 0);
    for (size_t i = 0; i < RT_COUNT(keys); i++)
        rt_span_i64(&span, keys[i], 1);
    cr_expect_eq(span.attribute_count, RT_SPAN_ATTRIBUTES_MAX);
    cr_expect_eq(span.dropped_attributes, RT_COUNT(keys) + 2 - RT_SPAN_ATTRIBUTES_MAX);
    rt_span_fail(&span, (rt_str){ text + RT_SPAN_TEXT_MAX - 158, 159 }); /* ends in é: fits */
    cr_expect_eq(strlen(span.message), 159);
    rt_span_fail(&span, (rt_str){ text + RT_SPAN_TEXT_MAX - 159, 160 });
    cr_expect_eq(strlen(span.message), 158);
}

Test(span, an_end_counts_once_and_keeps_the_name)
{
    char name[] = "gone soon";
    rt_span span;
    rt_str line;
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    open_with(-1, false);
    rt_span_start(telemetry, &span, name, RT_SPAN_SERVER, NULL);
    rt_span_end(telemetry, &span);
    rt_span_end(telemetry, &span);
    memset(name, '?', sizeof(name) - 1);
    rt_telemetry_close(RT_TAKE(telemetry));
    cr_assert(rt_read_file(path, 1 << 20, &arena, &line, NULL));
    ptrdiff_t at = rt_str_find(line, RT_STR("\"name\":\"gone soon\""));
    cr_assert(at > 0);
    rt_str rest = rt_str_slice(line, (size_t)at + 1, line.len);
    cr_expect(rt_str_find(rest, RT_STR("\"traceId\"")) < 0);
    cr_expect_geq(span.end_unix_ns, span.start_unix_ns);
}
