/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/telemetry.h"

#include <criterion/criterion.h>

#define TRACE_ID "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN_ID  "00f067aa0ba902b7"

Test(trace, what_is_read_is_written_again)
{
    static const struct {
        const char *text, *again;
    } cases[] = {
        { "00-" TRACE_ID "-" SPAN_ID "-01", "00-" TRACE_ID "-" SPAN_ID "-01" },
        { "00-" TRACE_ID "-" SPAN_ID "-00", "00-" TRACE_ID "-" SPAN_ID "-00" },
        /* only "sampled" has a meaning */
        { "00-" TRACE_ID "-" SPAN_ID "-ff", "00-" TRACE_ID "-" SPAN_ID "-01" },
        { "00-" TRACE_ID "-" SPAN_ID "-fe", "00-" TRACE_ID "-" SPAN_ID "-00" },
        /* later versions: what we know of them, as our own version */
        { "01-" TRACE_ID "-" SPAN_ID "-01", "00-" TRACE_ID "-" SPAN_ID "-01" },
        { "cc-" TRACE_ID "-" SPAN_ID "-01-what-the-future-will-be-like",
          "00-" TRACE_ID "-" SPAN_ID "-01" },
        { "cc-" TRACE_ID "-" SPAN_ID "-01-", "00-" TRACE_ID "-" SPAN_ID "-01" },
        { "00-00000000000000000000000000000001-0000000000000001-01",
          "00-00000000000000000000000000000001-0000000000000001-01" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        char again[RT_TRACEPARENT_SIZE];
        rt_trace trace = rt_trace_parse(rt_str_of(cases[i].text));
        cr_assert(trace.is_set, "%s", cases[i].text);
        rt_trace_format(&trace, again);
        cr_expect_str_eq(again, cases[i].again);
    }
}

/* Most are from the W3C's own test suite of implementations, trace-context/test. */
Test(trace, a_broken_header_is_no_context)
{
    static const char *const bad[] = {
        "",
        "00",
        "foo",
        "foo-" TRACE_ID "-" SPAN_ID "-01",
        "00-" TRACE_ID "-" SPAN_ID,
        "00-" TRACE_ID "-" SPAN_ID "-",
        "00-" TRACE_ID "-" SPAN_ID "-0",
        "00-" TRACE_ID "-" SPAN_ID "-1",
        "00-" TRACE_ID "-" SPAN_ID "-001",
        "00-" TRACE_ID "-" SPAN_ID "-01-",
        "00-" TRACE_ID "-" SPAN_ID "-01-what-the-future-will-be-like",
        "00-" TRACE_ID "-" SPAN_ID "-01.what",
        "cc-" TRACE_ID "-" SPAN_ID "-01.what-the-future-will-be-like",
        "cc-" TRACE_ID "-" SPAN_ID "-01what",
        "ff-" TRACE_ID "-" SPAN_ID "-01",
        ".0-" TRACE_ID "-" SPAN_ID "-01",
        "0.-" TRACE_ID "-" SPAN_ID "-01",
        "000-" TRACE_ID "-" SPAN_ID "-01",
        "0-" TRACE_ID "-" SPAN_ID "-01",
        "00-00000000000000000000000000000000-" SPAN_ID "-01",
        "00-" TRACE_ID "-0000000000000000-01",
        "00-.bf92f3577b34da6a3ce929d0e0e4736-" SPAN_ID "-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN_ID "-01",
        "00-" TRACE_ID "-00F067AA0BA902B7-01",
        "00-" TRACE_ID "-" SPAN_ID "-0A",
        "00-" TRACE_ID "-" SPAN_ID "-.0",
        "00-" TRACE_ID "00-" SPAN_ID "-01",
        "00-" TRACE_ID "-" SPAN_ID "00-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473-" SPAN_ID "-01",
        "00_" TRACE_ID "-" SPAN_ID "-01",
        "00-" TRACE_ID "_" SPAN_ID "-01",
        "00-" TRACE_ID "-" SPAN_ID "_01",
        " 00-" TRACE_ID "-" SPAN_ID "-01",
        "00-" TRACE_ID "-" SPAN_ID "-01 ",
        "00-" TRACE_ID "-" SPAN_ID "-01,00-" TRACE_ID "-" SPAN_ID "-01",
    };
    for (size_t i = 0; i < RT_COUNT(bad); i++)
        cr_expect(!rt_trace_parse(rt_str_of(bad[i])).is_set, "%s", bad[i]);
    cr_expect(!rt_trace_parse((rt_str){ NULL, 0 }).is_set);
}
