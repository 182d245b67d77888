/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/telemetry_internal.h"

#include <criterion/criterion.h>

/*
 * What is sent is seen in tests/telemetry; here is what never gets so far. The receiver is a port
 * of this machine that nobody listens on.
 */
static rt_telemetry *telemetry;

static void begin(void)
{
    rt_telemetry_config config = { .posthog_url = RT_STR("http://127.0.0.1:1/"),
                                   .posthog_key = RT_STR("phc_key"),
                                   .otlp_delay_ms = 600000 };
    cr_assert(rt_telemetry_open(&config, &telemetry, NULL));
}

static void end(void)
{
    rt_telemetry_close(telemetry);
}

TestSuite(posthog, .init = begin, .fini = end);

Test(posthog, an_event_that_would_spoil_its_batch_is_dropped_and_counted)
{
    static char big[RT_EVENT_PROPERTIES_MAX + 1];
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_str too_long = { big, RT_EVENT_NAME_MAX + 1 };
    rt_event_send(telemetry, RT_STR(""), RT_STR("who"), RT_STR("{}"));
    rt_event_send(telemetry, RT_STR("event"), RT_STR(""), RT_STR("{}"));
    rt_event_send(telemetry, too_long, RT_STR("who"), RT_STR("{}"));
    rt_event_send(telemetry, RT_STR("event"), too_long, RT_STR("{}"));
    rt_event_send(telemetry, RT_STR("event"), RT_STR("who"), (rt_str){ big, sizeof(big) });
    rt_event_send(NULL, RT_STR("event"), RT_STR("who"), RT_STR("{}"));
    rt_metrics_write(telemetry, &text);
    cr_expect(rt_str_find(rt_buf_str(&text), RT_STR("retort_telemetry_dropped_total{signal="
                                                    "\"events\",reason=\"invalid\"} 5\n")) > 0);
}
