/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp.c - spans as OTLP/HTTP in JSON.
 *
 * That is proto3 JSON with three rules of its own: ids are hexadecimal, enums are numbers, keys are
 * lowerCamelCase and nothing else. As in proto3, 64-bit integers are strings, and so are the
 * numbers that are none. Every span has a status, although an unset one could be left out: some
 * receivers look into it without asking.
 */
#include "telemetry/telemetry_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { STATUS_UNSET = 0, STATUS_ERROR = 2 };

static void put_hex(rt_json_writer *w, const char *key, const uint8_t *bytes, size_t size)
{
    char hex[33];
    rt_hex(hex, bytes, size);
    rt_jw_kstr(w, key, rt_str_of(hex));
}

static void put_u64(rt_json_writer *w, const char *key, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, number);
    rt_jw_kstr(w, key, rt_str_of(text));
}

static void put_i64(rt_json_writer *w, const char *key, int64_t number)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRId64, number);
    rt_jw_kstr(w, key, rt_str_of(text));
}

static void put_double(rt_json_writer *w, const char *key, double number)
{
    if (isfinite(number))
        rt_jw_kdouble(w, key, number);
    else
        rt_jw_kstr(w, key,
                   isnan(number) ? RT_STR("NaN")
                   : number > 0  ? RT_STR("Infinity")
                                 : RT_STR("-Infinity"));
}

/* -- The resource: who speaks ------------------------------------------------------------------ */

static void put_text_attribute(rt_json_writer *w, rt_str key, rt_str value)
{
    rt_jw_object(w);
    rt_jw_kstr(w, "key", key);
    rt_jw_kobject(w, "value");
    rt_jw_kstr(w, "stringValue", value);
    rt_jw_end(w);
    rt_jw_end(w);
}

static const telemetry_pair *find_pair(const telemetry_pair *pairs, size_t count, rt_str key)
{
    for (size_t i = count; i > 0; i--)
        if (rt_str_eq(pairs[i - 1].key, key))
            return &pairs[i - 1];
    return NULL;
}

/* Keys must be unique: ours beat those of the list, and in the list the later ones the earlier. */
static void put_resource(rt_json_writer *w, const telemetry_pair *ours, size_t count,
                         const telemetry_pairs *list)
{
    rt_jw_object(w);
    rt_jw_karray(w, "attributes");
    for (size_t i = 0; i < count; i++)
        put_text_attribute(w, ours[i].key, ours[i].value);
    for (size_t i = 0; i < list->count; i++) {
        const telemetry_pair *pair = &list->items[i];
        if (!find_pair(ours, count, pair->key) &&
            find_pair(list->items, list->count, pair->key) == pair)
            put_text_attribute(w, pair->key, pair->value);
    }
    rt_jw_end(w);
    rt_jw_end(w);
}

bool telemetry_resource_init(const rt_telemetry_config *config, rt_arena *arena,
                             telemetry_resource *out, rt_error *err)
{
    rt_buf json RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    telemetry_pairs list;
    if (!telemetry_parse_attributes(config->resource_attributes, arena, &list, err))
        return rt_wrap(err, "resource attributes");
    const telemetry_pair *named = find_pair(list.items, list.count, RT_STR("service.name"));
    rt_str name = config->service_name.len ? config->service_name
                  : named                  ? named->value
                                           : RT_STR("retort");
    rt_str version = config->service_version.len ? config->service_version : RT_STR(RETORT_VERSION);
    const telemetry_pair ours[] = {
        { RT_STR("service.name"), name },
        { RT_STR("service.version"), version },
        { RT_STR("telemetry.sdk.name"), RT_STR("retort") },
        { RT_STR("telemetry.sdk.language"), RT_STR("c") },
        { RT_STR("telemetry.sdk.version"), RT_STR(RETORT_VERSION) },
    };
    rt_json_begin(&w, &json);
    put_resource(&w, ours, RT_COUNT(ours), &list);
    if (!rt_buf_ok(&json, err))
        return rt_wrap(err, "resource attributes");
    *out = (telemetry_resource){ rt_arena_str(arena, rt_buf_str(&json)),
                                 rt_arena_str(arena, version) };
    return true;
}

/* -- Spans ------------------------------------------------------------------------------------- */

static void put_attribute(rt_json_writer *w, const telemetry_span *span,
                          const rt_span_attribute *attribute)
{
    rt_jw_object(w);
    rt_jw_kstr(w, "key", rt_str_of(attribute->key));
    rt_jw_kobject(w, "value");
    switch (attribute->kind) {
    case RT_ATTR_STR:
        rt_jw_kstr(w, "stringValue", (rt_str){ span->text + attribute->at, attribute->len });
        break;
    case RT_ATTR_I64:
        put_i64(w, "intValue", attribute->i64);
        break;
    case RT_ATTR_DOUBLE:
        put_double(w, "doubleValue", attribute->number);
        break;
    case RT_ATTR_BOOL:
        rt_jw_kbool(w, "boolValue", attribute->i64 != 0);
        break;
    }
    rt_jw_end(w);
    rt_jw_end(w);
}

static void put_status(rt_json_writer *w, const telemetry_span *span)
{
    rt_jw_kobject(w, "status");
    rt_jw_ki64(w, "code", span->is_error ? STATUS_ERROR : STATUS_UNSET);
    if (span->message.len)
        rt_jw_kstr(w, "message", span->message);
    rt_jw_end(w);
}

static void put_span(rt_json_writer *w, const telemetry_span *span)
{
    rt_jw_object(w);
    put_hex(w, "traceId", span->context.trace_id, sizeof(span->context.trace_id));
    put_hex(w, "spanId", span->context.span_id, sizeof(span->context.span_id));
    if (span->has_parent)
        put_hex(w, "parentSpanId", span->parent_id, sizeof(span->parent_id));
    rt_jw_ki64(w, "flags", span->context.flags);
    rt_jw_kstr(w, "name", span->name);
    rt_jw_ki64(w, "kind", span->kind);
    put_u64(w, "startTimeUnixNano", span->start_unix_ns);
    put_u64(w, "endTimeUnixNano", span->end_unix_ns);
    rt_jw_karray(w, "attributes");
    for (size_t i = 0; i < span->attribute_count; i++)
        put_attribute(w, span, &span->attributes[i]);
    rt_jw_end(w);
    if (span->dropped_attributes)
        rt_jw_ku64(w, "droppedAttributesCount", span->dropped_attributes);
    put_status(w, span);
    rt_jw_end(w);
}

size_t telemetry_otlp_encode(const void *ctx, void *const *spans, size_t count, rt_buf *out)
{
    const telemetry_resource *resource = ctx;
    rt_json_writer w;
    rt_json_begin(&w, out);
    rt_jw_object(&w);
    rt_jw_karray(&w, "resourceSpans");
    rt_jw_object(&w);
    rt_jw_kraw(&w, "resource", resource->json);
    rt_jw_karray(&w, "scopeSpans");
    rt_jw_object(&w);
    rt_jw_kobject(&w, "scope");
    rt_jw_kstr(&w, "name", RT_STR("retort"));
    rt_jw_kstr(&w, "version", resource->version);
    rt_jw_end(&w);
    rt_jw_karray(&w, "spans");
    for (size_t i = 0; i < count; i++)
        put_span(&w, spans[i]);
    for (size_t open = 6; open > 0; open--)
        rt_jw_end(&w);
    return count;
}

/* -- The answer -------------------------------------------------------------------------------- */

uint64_t telemetry_otlp_rejected(rt_str answer)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json doc;
    int64_t number;
    uint64_t count;
    if (!rt_json_parse(answer, &arena, &doc, NULL))
        return 0;
    rt_json rejected = rt_json_get_c(rt_json_get_c(doc, "partialSuccess"), "rejectedSpans");
    if (rt_json_i64(rejected, &number)) /* should be a string; some write a number */
        return number > 0 ? (uint64_t)number : 0;
    return rt_str_to_u64(rt_json_str(rejected), &count) ? count : 0;
}
