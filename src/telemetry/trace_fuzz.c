/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_fuzz.c - traceparent, lists of headers and of attributes, and answers, from any bytes: what
 * is accepted can be written again, and no header can end its line.
 */
#include "telemetry/telemetry_internal.h"

#include <assert.h>

static void check_trace(rt_str text)
{
    char again[RT_TRACEPARENT_SIZE];
    rt_trace trace = rt_trace_parse(text);
    if (!trace.is_set)
        return;
    rt_trace_format(&trace, again);
    rt_trace same = rt_trace_parse(rt_str_of(again));
    assert(same.is_set && same.flags == trace.flags);
    assert(memcmp(same.trace_id, trace.trace_id, sizeof(trace.trace_id)) == 0);
    assert(memcmp(same.span_id, trace.span_id, sizeof(trace.span_id)) == 0);
    assert(memcmp(again + 3, text.ptr + 3, 50) == 0); /* both ids, as they came */
}

static void check_headers(rt_str text, rt_arena *arena)
{
    telemetry_pairs pairs;
    rt_error err = { 0 };
    if (!telemetry_parse_headers(text, arena, &pairs, &err)) {
        assert(err.code == RT_INVALID || err.code == RT_LIMIT);
        return;
    }
    assert(pairs.count <= TELEMETRY_PAIRS_MAX);
    for (size_t i = 0; i < pairs.count; i++) {
        rt_str key = pairs.items[i].key, value = pairs.items[i].value;
        assert(key.len > 0 && key.len + value.len < text.len);
        assert(!memchr(key.ptr, ':', key.len));
        assert(!memchr(value.ptr, '\n', value.len) && !memchr(value.ptr, '\r', value.len));
        assert(!memchr(value.ptr, '\0', value.len) && value.ptr[value.len] == '\0');
    }
}

/* Whatever the list is, the resource made of it is JSON. */
static void check_attributes(rt_str text, rt_arena *arena)
{
    telemetry_resource resource;
    rt_json doc;
    rt_telemetry_config config = { .resource_attributes = text };
    if (!telemetry_resource_init(&config, arena, &resource, NULL))
        return;
    bool ok = rt_json_parse(resource.json, arena, &doc, NULL);
    assert(ok && rt_json_count(rt_json_get_c(doc, "attributes")) >= 5);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str text = { (const char *)data, size };
    check_trace(text);
    check_headers(text, &arena);
    check_attributes(text, &arena);
    telemetry_otlp_rejected(text);
    return 0;
}
