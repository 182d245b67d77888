/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span.c - what a span is while it lasts, and what is kept of it when it ends.
 *
 * A span is filled in where it stands, on its teller's stack, and copied once, at its end, without
 * the room it did not need. Ids are a counter put through a mixer that maps no two numbers to one:
 * unique in this process without a system call, and seeded so that no other process has them.
 */
#include "telemetry/telemetry_internal.h"

#include <stdlib.h>
#include <time.h>

#define FLAG_SAMPLED 1

static uint64_t unix_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* -- Ids and sampling -------------------------------------------------------------------------- */

/* The finalizer of splitmix64: a bijection. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Never 0: an id of zeros is none. */
static uint64_t new_number(rt_telemetry *t)
{
    uint64_t number = 0;
    while (number == 0) {
        if (t)
            number =
                mix(t->id_seed + atomic_fetch_add_explicit(&t->id_count, 1, memory_order_relaxed));
        else
            rt_random_bytes(&number, sizeof(number));
    }
    return number;
}

static void new_id(rt_telemetry *t, uint8_t *out, size_t size)
{
    for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
        uint64_t number = new_number(t);
        memcpy(out + at, &number, sizeof(number));
    }
}

/* By the trace id alone, so that everybody with this ratio decides the same of one trace. */
static bool is_in_ratio(double ratio, const uint8_t trace_id[16])
{
    uint64_t low = 0;
    for (size_t i = 8; i < 16; i++)
        low = low << 8 | trace_id[i];
    return (double)(low >> 11) < ratio * 0x1p53;
}

static bool is_sampled(const rt_telemetry *t, const rt_span *span, const rt_trace *parent)
{
    if (!t || !t->spans)
        return false;
    if (parent && !t->ignores_parent_sampling)
        return parent->flags & FLAG_SAMPLED;
    return is_in_ratio(t->sample_ratio, span->context.trace_id);
}

/* -- The life of a span ------------------------------------------------------------------------ */

void rt_span_start(rt_telemetry *t, rt_span *span, const char *name, rt_span_kind kind,
                   const rt_trace *parent)
{
    if (parent && !parent->is_set)
        parent = NULL;
    /* Not all of it is cleared: most spans use a small part of their room. */
    memset(span, 0, offsetof(rt_span, attributes));
    span->name = name;
    span->kind = kind;
    if (parent && !(t && t->spans)) {
        span->context = *parent;
        return;
    }
    span->context.is_set = true;
    new_id(t, span->context.span_id, sizeof(span->context.span_id));
    if (parent) {
        memcpy(span->context.trace_id, parent->trace_id, sizeof(parent->trace_id));
        memcpy(span->parent_id, parent->span_id, sizeof(parent->span_id));
        span->has_parent = true;
    } else {
        new_id(t, span->context.trace_id, sizeof(span->context.trace_id));
    }
    span->is_recording = is_sampled(t, span, parent);
    span->context.flags = span->is_recording ? FLAG_SAMPLED : 0;
    if (span->is_recording) {
        span->start_unix_ns = unix_ns();
        span->start_ns = rt_now_ns();
    }
}

/* The longest beginning of `s` with at most `max` bytes that does not cut a character. */
static rt_str fit(rt_str s, size_t max)
{
    if (s.len <= max)
        return s;
    while (max > 0 && ((uint8_t)s.ptr[max] & 0xc0) == 0x80)
        max--;
    return (rt_str){ s.ptr, max };
}

/* Room for the value of a key, or NULL. */
static rt_span_attribute *attribute_for(rt_span *span, const char *key, rt_attr_kind kind)
{
    if (!span->is_recording)
        return NULL;
    size_t i = 0;
    while (i < span->attribute_count && strcmp(span->attributes[i].key, key) != 0)
        i++;
    if (i == RT_SPAN_ATTRIBUTES_MAX) {
        span->dropped_attributes++;
        return NULL;
    }
    if (i == span->attribute_count)
        span->attribute_count++;
    span->attributes[i] = (rt_span_attribute){ .key = key, .kind = kind };
    return &span->attributes[i];
}

void rt_span_str(rt_span *span, const char *key, rt_str value)
{
    rt_span_attribute *attribute = attribute_for(span, key, RT_ATTR_STR);
    if (!attribute)
        return;
    value = fit(value, RT_SPAN_TEXT_MAX - span->text_used);
    attribute->at = (uint16_t)span->text_used;
    attribute->len = (uint16_t)value.len;
    if (value.len)
        memcpy(span->text + span->text_used, value.ptr, value.len);
    span->text_used += value.len;
}

void rt_span_i64(rt_span *span, const char *key, int64_t value)
{
    rt_span_attribute *attribute = attribute_for(span, key, RT_ATTR_I64);
    if (attribute)
        attribute->i64 = value;
}

void rt_span_double(rt_span *span, const char *key, double value)
{
    rt_span_attribute *attribute = attribute_for(span, key, RT_ATTR_DOUBLE);
    if (attribute)
        attribute->number = value;
}

void rt_span_bool(rt_span *span, const char *key, bool value)
{
    rt_span_attribute *attribute = attribute_for(span, key, RT_ATTR_BOOL);
    if (attribute)
        attribute->i64 = value;
}

void rt_span_fail(rt_span *span, rt_str message)
{
    if (!span->is_recording)
        return;
    message = fit(message, sizeof(span->message) - 1);
    span->is_error = true;
    if (message.len)
        memcpy(span->message, message.ptr, message.len);
    span->message[message.len] = '\0';
}

void rt_span_end(rt_telemetry *t, rt_span *span)
{
    if (!span->is_recording)
        return;
    /* By the clock that never goes back: no span ends before it began. */
    span->end_unix_ns = span->start_unix_ns + (rt_now_ns() - span->start_ns);
    span->is_recording = false;
    telemetry_exporter_tell(t->spans, telemetry_span_new(span));
}

/* -- What is kept ------------------------------------------------------------------------------ */

static char *put_text(char *at, rt_str text)
{
    if (text.len)
        memcpy(at, text.ptr, text.len);
    return at + text.len;
}

/* The struct, its attributes, then all texts. */
telemetry_span *telemetry_span_new(const rt_span *span)
{
    rt_str name = rt_str_of(span->name), message = rt_str_of(span->message);
    size_t attributes = span->attribute_count * sizeof(rt_span_attribute);
    size_t size = sizeof(telemetry_span) + attributes + span->text_used + name.len + message.len;
    telemetry_span *kept = malloc(size);
    if (!kept)
        rt_out_of_memory(size);
    char *at = (char *)(kept + 1);
    *kept = (telemetry_span){
        .context = span->context,
        .has_parent = span->has_parent,
        .is_error = span->is_error,
        .kind = span->kind,
        .start_unix_ns = span->start_unix_ns,
        .end_unix_ns = span->end_unix_ns,
        .attribute_count = span->attribute_count,
        .dropped_attributes = span->dropped_attributes,
        .attributes = (const rt_span_attribute *)(void *)at,
        .text = at + attributes,
        .name = { at + attributes + span->text_used, name.len },
        .message = { at + attributes + span->text_used + name.len, message.len },
    };
    memcpy(kept->parent_id, span->parent_id, sizeof(kept->parent_id));
    at = put_text(at, (rt_str){ (const char *)span->attributes, attributes });
    at = put_text(at, (rt_str){ span->text, span->text_used });
    at = put_text(at, name);
    put_text(at, message);
    return kept;
}
