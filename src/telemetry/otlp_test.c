/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/telemetry_internal.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

static rt_arena arena;
static rt_buf out;

static void release(void)
{
    rt_arena_done(&arena);
    rt_buf_done(&out);
}

TestSuite(otlp, .fini = release);

static rt_span example(void)
{
    rt_span span = { .is_recording = true,
                     .has_parent = true,
                     .kind = RT_SPAN_SERVER,
                     .name = "tools/call run_code",
                     .start_unix_ns = UINT64_C(1794713017123456789),
                     .end_unix_ns = UINT64_C(1794713017200000000),
                     .parent_id = { 0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7 } };
    span.context =
        rt_trace_parse(RT_STR("00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01"));
    return span;
}

static rt_str encode(const rt_span *span, const rt_telemetry_config *config)
{
    telemetry_resource resource;
    void *kept = telemetry_span_new(span);
    rt_buf_reset(&out);
    cr_assert(telemetry_resource_init(config, &arena, &resource, NULL));
    cr_assert_eq(telemetry_otlp_encode(&resource, &kept, 1, &out), 1);
    free(kept);
    rt_buf_addc(&out, '\0');
    cr_assert(rt_buf_ok(&out, NULL));
    return rt_str_slice(rt_buf_str(&out), 0, out.len - 1);
}

Test(otlp, a_span_with_every_kind_of_attribute)
{
    rt_span span = example();
    rt_span_str(&span, "text", RT_STR("a \"caf\xC3\xA9\"\n\xFF"));
    rt_span_i64(&span, "least", INT64_MIN);
    rt_span_double(&span, "half", 0.5);
    rt_span_double(&span, "none", NAN);
    rt_span_double(&span, "most", -INFINITY);
    rt_span_bool(&span, "yes", true);
    rt_span_bool(&span, "no", false);
    rt_span_str(&span, "empty", RT_STR(""));
    rt_span_fail(&span, RT_STR("tool_error"));
    span.dropped_attributes = 2;
    rt_telemetry_config config = { .service_version = RT_STR("9"),
                                   .resource_attributes = RT_STR("host.name=a%20b") };
    cr_expect_str_eq(
        encode(&span, &config).ptr,
        "{\"resourceSpans\":[{\"resource\":{\"attributes\":["
        "{\"key\":\"service.name\",\"value\":{\"stringValue\":\"retort\"}},"
        "{\"key\":\"service.version\",\"value\":{\"stringValue\":\"9\"}},"
        "{\"key\":\"telemetry.sdk.name\",\"value\":{\"stringValue\":\"retort\"}},"
        "{\"key\":\"telemetry.sdk.language\",\"value\":{\"stringValue\":\"c\"}},"
        "{\"key\":\"telemetry.sdk.version\",\"value\":{\"stringValue\":\"" RETORT_VERSION "\"}},"
        "{\"key\":\"host.name\",\"value\":{\"stringValue\":\"a b\"}}]},"
        "\"scopeSpans\":[{\"scope\":{\"name\":\"retort\",\"version\":\"9\"},\"spans\":[{"
        "\"traceId\":\"4bf92f3577b34da6a3ce929d0e0e4736\",\"spanId\":\"b7ad6b7169203331\","
        "\"parentSpanId\":\"00f067aa0ba902b7\",\"flags\":1,\"name\":\"tools/call run_code\","
        "\"kind\":2,\"startTimeUnixNano\":\"1794713017123456789\","
        "\"endTimeUnixNano\":\"1794713017200000000\",\"attributes\":["
        "{\"key\":\"text\",\"value\":{\"stringValue\":\"a \\\"caf\xC3\xA9\\\"\\n\xEF\xBF\xBD\"}},"
        "{\"key\":\"least\",\"value\":{\"intValue\":\"-9223372036854775808\"}},"
        "{\"key\":\"half\",\"value\":{\"doubleValue\":0.5}},"
        "{\"key\":\"none\",\"value\":{\"doubleValue\":\"NaN\"}},"
        "{\"key\":\"most\",\"value\":{\"doubleValue\":\"-Infinity\"}},"
        "{\"key\":\"yes\",\"value\":{\"boolValue\":true}},"
        "{\"key\":\"no\",\"value\":{\"boolValue\":false}},"
        "{\"key\":\"empty\",\"value\":{\"stringValue\":\"\"}}],\"droppedAttributesCount\":2,"
        "\"status\":{\"code\":2,\"message\":\"tool_error\"}}]}]}]}");
}

Test(otlp, a_root_that_went_well_has_no_parent_but_a_status)
{
    rt_span span = example();
    span.has_parent = false;
    rt_str text = encode(&span, &(rt_telemetry_config){ 0 });
    cr_expect(rt_str_find(text, RT_STR("parentSpanId")) < 0);
    cr_expect(rt_str_find(text, RT_STR("\"attributes\":[],\"status\":{\"code\":0}}")) > 0);
}

Test(otlp, a_key_of_the_resource_comes_once)
{
    static const struct {
        const char *name, *list, *has;
    } cases[] = {
        { "", "", "service.name\",\"value\":{\"stringValue\":\"retort\"}" },
        { "mine", "service.name=theirs", "service.name\",\"value\":{\"stringValue\":\"mine\"}" },
        { "", "service.name=theirs", "service.name\",\"value\":{\"stringValue\":\"theirs\"}" },
        { "", "service.name=a,service.name=b", "service.name\",\"value\":{\"stringValue\":\"b\"}" },
        { "", "k=1,service.name=x,k=2", "\"key\":\"k\",\"value\":{\"stringValue\":\"2\"}}]}" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        telemetry_resource resource;
        rt_telemetry_config config = { .service_name = rt_str_of(cases[i].name),
                                       .resource_attributes = rt_str_of(cases[i].list) };
        cr_assert(telemetry_resource_init(&config, &arena, &resource, NULL));
        rt_str rest = resource.json;
        cr_expect(rt_str_find(rest, rt_str_of(cases[i].has)) > 0, "%.*s", RT_FMT(rest));
        ptrdiff_t at = rt_str_find(rest, RT_STR("\"service.name\""));
        rest = rt_str_slice(rest, (size_t)at + 1, rest.len);
        cr_expect(rt_str_find(rest, RT_STR("\"service.name\"")) < 0, "%.*s", RT_FMT(rest));
    }
}

Test(otlp, an_answer_tells_how_many_were_rejected)
{
    static const struct {
        const char *answer;
        uint64_t rejected;
    } cases[] = {
        { "", 0 },
        { "{}", 0 },
        { "{\"ok\":1}", 0 },
        { "not JSON", 0 },
        { "{\"partialSuccess\":{}}", 0 },
        { "{\"partialSuccess\":{\"rejectedSpans\":\"3\",\"errorMessage\":\"why\"}}", 3 },
        { "{\"partialSuccess\":{\"rejectedSpans\":3}}", 3 },
        { "{\"partialSuccess\":{\"rejectedSpans\":-3}}", 0 },
        { "{\"partialSuccess\":{\"rejectedSpans\":\"many\"}}", 0 },
        { "{\"partialSuccess\":3}", 0 },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++)
        cr_expect_eq(telemetry_otlp_rejected(rt_str_of(cases[i].answer)), cases[i].rejected, "%s",
                     cases[i].answer);
}
