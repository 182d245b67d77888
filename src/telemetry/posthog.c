/* SPDX-License-Identifier: Apache-2.0 */
/*
 * posthog.c - product events as a batch for PostHog.
 *
 * One bad event makes PostHog refuse its whole batch, so each is judged before it joins one: a
 * name, somebody it is about, and properties that are an object. Every event says that no profile
 * of a person is to be made of it and that its address is not to be located; the caller's
 * properties cannot say otherwise.
 */
#include "telemetry/telemetry_internal.h"

#include <stdio.h>
#include <stdlib.h>

#define SIGNAL           "events"
#define PROPERTIES_DEPTH 16

/* One allocation: the struct, then its texts. */
typedef struct posthog_event {
    uint64_t wall_ms;
    rt_str name, distinct_id, properties;
} posthog_event;

/* -- Telling ----------------------------------------------------------------------------------- */

static bool is_name(rt_str s)
{
    return s.len > 0 && s.len <= RT_EVENT_NAME_MAX;
}

static posthog_event *event_new(rt_str name, rt_str distinct_id, rt_str properties)
{
    size_t size = sizeof(posthog_event) + name.len + distinct_id.len + properties.len;
    posthog_event *event = malloc(size);
    if (!event)
        rt_out_of_memory(size);
    char *at = (char *)(event + 1);
    *event = (posthog_event){
        .wall_ms = rt_wall_ms(),
        .name = { at, name.len },
        .distinct_id = { at + name.len, distinct_id.len },
        .properties = { at + name.len + distinct_id.len, properties.len },
    };
    memcpy(at, name.ptr, name.len);
    memcpy(at + name.len, distinct_id.ptr, distinct_id.len);
    if (properties.len)
        memcpy(at + name.len + distinct_id.len, properties.ptr, properties.len);
    return event;
}

void rt_event_send(rt_telemetry *t, rt_str event, rt_str distinct_id, rt_str properties)
{
    if (!t || !t->events)
        return;
    if (!is_name(event) || !is_name(distinct_id) || properties.len > RT_EVENT_PROPERTIES_MAX)
        telemetry_count_dropped(t, SIGNAL, "invalid", 1);
    else
        telemetry_exporter_tell(t->events, event_new(event, distinct_id, properties));
}

/* -- Encoding ---------------------------------------------------------------------------------- */

static void put_uuid(rt_json_writer *w)
{
    uint8_t bytes[16];
    char hex[33], text[37];
    rt_random_bytes(bytes, sizeof(bytes));
    bytes[6] = (bytes[6] & 0x0f) | 0x40; /* version 4, of RFC 9562 */
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    rt_hex(hex, bytes, sizeof(bytes));
    snprintf(text, sizeof(text), "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
             hex + 20);
    rt_jw_kstr(w, "uuid", rt_str_of(text));
}

static void put_moment(rt_json_writer *w, const char *key, uint64_t wall_ms)
{
    char text[RT_ISO8601_SIZE];
    rt_iso8601_write(text, wall_ms);
    rt_jw_kstr(w, key, rt_str_of(text));
}

static bool is_ours(rt_str key)
{
    static const char *const ours[] = { "$lib", "$lib_version", "$is_server",
                                        "$process_person_profile", "$geoip_disable" };
    for (size_t i = 0; i < RT_COUNT(ours); i++)
        if (rt_str_eq_c(key, ours[i]))
            return true;
    return false;
}

static void put_properties(rt_json_writer *w, rt_json properties, rt_str version)
{
    rt_json_iter each = rt_json_each(properties);
    rt_str key;
    rt_json value;
    rt_jw_kobject(w, "properties");
    while (rt_json_next(&each, &key, &value))
        if (!is_ours(key)) {
            rt_jw_key(w, key);
            rt_jw_json(w, value);
        }
    rt_jw_kstr(w, "$lib", RT_STR("retort"));
    rt_jw_kstr(w, "$lib_version", version);
    rt_jw_kbool(w, "$is_server", true);
    rt_jw_kbool(w, "$process_person_profile", false);
    rt_jw_kbool(w, "$geoip_disable", true);
    rt_jw_end(w);
}

static bool parse_properties(const posthog_event *event, rt_arena *arena, rt_json *out)
{
    static const rt_json_limits limits = { RT_EVENT_PROPERTIES_MAX, PROPERTIES_DEPTH };
    rt_str text = event->properties.len ? event->properties : RT_STR("{}");
    return rt_json_parse_limited(text, &limits, arena, out, NULL) &&
           rt_json_type(*out) == RT_JSON_OBJECT;
}

static bool put_event(rt_json_writer *w, const posthog_event *event, rt_str version)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json properties;
    if (!parse_properties(event, &arena, &properties))
        return false;
    rt_jw_object(w);
    rt_jw_kstr(w, "event", event->name);
    rt_jw_kstr(w, "distinct_id", event->distinct_id);
    put_properties(w, properties, version);
    put_moment(w, "timestamp", event->wall_ms);
    put_uuid(w); /* PostHog keeps one of two with the same: a batch sent twice counts once */
    rt_jw_end(w);
    return true;
}

size_t telemetry_posthog_encode(const void *ctx, void *const *events, size_t count, rt_buf *out)
{
    const telemetry_project *project = ctx;
    size_t written = 0;
    rt_json_writer w;
    rt_json_begin(&w, out);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "api_key", project->key);
    rt_jw_kbool(&w, "historical_migration", false);
    put_moment(&w, "sent_at", rt_wall_ms());
    rt_jw_karray(&w, "batch");
    for (size_t i = 0; i < count; i++)
        written += put_event(&w, events[i], project->version);
    rt_jw_end(&w);
    rt_jw_end(&w);
    return written;
}
