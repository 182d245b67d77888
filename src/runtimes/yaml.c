/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml.c - small YAML files of this room: 'key: value', one level of lists and maps.
 *
 * Aliases and anchors are refused, so that a small file cannot stand for a large one. What would be
 * passed over in silence (a second document, a key that stands there twice) is refused too: what
 * somebody wrote must hold. Errors name the line.
 */
#include "runtimes/runtimes_internal.h"

#include <string.h>
#include <yaml.h>

#define YAML_MAX (64u << 10)
#define KEYS_MAX 64

typedef struct reader {
    yaml_parser_t parser;
    yaml_event_t event;
    rt_arena *arena;
    const yaml_form *form;
    void *ctx;
    rt_str *seen; /* keys */
    size_t seen_count;
    rt_error *err;
} reader;

static rt_str scalar(const yaml_event_t *e)
{
    return (rt_str){ (const char *)e->data.scalar.value, e->data.scalar.length };
}

static size_t line_of(const reader *r)
{
    return r->event.start_mark.line + 1;
}

static bool refuse(reader *r, const char *why)
{
    return rt_fail(r->err, RT_INVALID, "%s: line %zu: %s", r->form->what, line_of(r), why);
}

static bool advance(reader *r)
{
    yaml_event_delete(&r->event);
    if (!yaml_parser_parse(&r->parser, &r->event))
        return rt_fail(r->err, RT_INVALID, "%s: line %zu: %s", r->form->what,
                       r->parser.problem_mark.line + 1,
                       r->parser.problem ? r->parser.problem : "not YAML");
    bool has_anchor =
        (r->event.type == YAML_SCALAR_EVENT && r->event.data.scalar.anchor) ||
        (r->event.type == YAML_SEQUENCE_START_EVENT && r->event.data.sequence_start.anchor) ||
        (r->event.type == YAML_MAPPING_START_EVENT && r->event.data.mapping_start.anchor);
    if (r->event.type == YAML_ALIAS_EVENT || has_anchor)
        return refuse(r, "anchors and aliases are not used here");
    return true;
}

static bool set(reader *r, rt_str key, rt_str value)
{
    return r->form->set(r->ctx, key, value, line_of(r), r->err);
}

static bool note_key(reader *r, rt_str key)
{
    rt_str *grown = rt_arena_alloc(r->arena, sizeof(*grown) * (r->seen_count + 1));
    for (size_t i = 0; i < r->seen_count; i++) {
        grown[i] = r->seen[i];
        if (rt_str_eq(key, r->seen[i]))
            return rt_fail(r->err, RT_INVALID, "%s: line %zu: '%.*s' stands here a second time",
                           r->form->what, line_of(r), (int)RT_MIN(key.len, (size_t)40), key.ptr);
    }
    grown[r->seen_count++] = key;
    r->seen = grown;
    return r->seen_count <= KEYS_MAX ||
           rt_fail(r->err, RT_LIMIT, "%s: more than %d keys", r->form->what, KEYS_MAX);
}

static bool read_list(reader *r, rt_str key)
{
    if (r->form->open_list && !r->form->open_list(r->ctx, key, r->err))
        return false;
    while (advance(r) && r->event.type != YAML_SEQUENCE_END_EVENT) {
        if (r->event.type != YAML_SCALAR_EVENT)
            return refuse(r, "a list of plain values is expected");
        if (!set(r, key, scalar(&r->event)))
            return false;
    }
    return r->event.type == YAML_SEQUENCE_END_EVENT;
}

static bool has_byte(rt_str s, char byte)
{
    return s.len > 0 && memchr(s.ptr, byte, s.len);
}

/* A member of a map comes to set() as NAME=VALUE. */
static bool read_map(reader *r, rt_str key)
{
    while (advance(r) && r->event.type != YAML_MAPPING_END_EVENT) {
        if (r->event.type != YAML_SCALAR_EVENT)
            break;
        rt_str name = rt_arena_str(r->arena, scalar(&r->event));
        if (!advance(r))
            return false;
        if (r->event.type != YAML_SCALAR_EVENT)
            break;
        rt_str value = scalar(&r->event);
        if (has_byte(name, '=') || has_byte(name, '\0') || has_byte(value, '\0'))
            return refuse(r, "env: a name has no '=', and neither it nor its value a NUL");
        if (!set(r, key, rt_arena_printf(r->arena, "%.*s=%.*s", RT_FMT(name), RT_FMT(value))))
            return false;
    }
    if (r->event.type != YAML_MAPPING_END_EVENT)
        return r->err->code ? false : refuse(r, "a map of plain values is expected");
    return true;
}

static bool read_field(reader *r)
{
    if (r->event.type != YAML_SCALAR_EVENT)
        return refuse(r, "a key is expected");
    rt_str key = rt_arena_str(r->arena, scalar(&r->event));
    if (!note_key(r, key) || !advance(r))
        return false;
    unsigned shapes = r->form->shapes(key);
    if (r->event.type == YAML_SCALAR_EVENT && (shapes & YAML_PLAIN))
        return set(r, key, scalar(&r->event));
    if (r->event.type == YAML_SEQUENCE_START_EVENT && (shapes & YAML_LIST))
        return read_list(r, key);
    if (r->event.type == YAML_MAPPING_START_EVENT && (shapes & YAML_MAP))
        return read_map(r, key);
    return rt_fail(r->err, RT_INVALID, "%s: line %zu: '%.*s' takes %s", r->form->what, line_of(r),
                   (int)RT_MIN(key.len, (size_t)40), key.ptr,
                   shapes & YAML_PLAIN  ? "one plain value"
                   : shapes & YAML_LIST ? "a list: [a, b]"
                                        : "a map: { NAME: value }");
}

static bool read_document(reader *r)
{
    do {
        if (!advance(r))
            return false;
        if (r->event.type == YAML_STREAM_END_EVENT)
            return true; /* an empty file: nothing is set */
    } while (r->event.type == YAML_STREAM_START_EVENT ||
             r->event.type == YAML_DOCUMENT_START_EVENT);
    if (r->event.type != YAML_MAPPING_START_EVENT)
        return rt_fail(r->err, RT_INVALID, "%s: expected lines of 'key: value'", r->form->what);
    while (advance(r) && r->event.type != YAML_MAPPING_END_EVENT)
        if (!read_field(r))
            return false;
    if (r->event.type != YAML_MAPPING_END_EVENT || !advance(r) || !advance(r))
        return false;
    return r->event.type == YAML_STREAM_END_EVENT || refuse(r, "one document is expected");
}

bool runtimes_yaml_read(rt_str yaml, const yaml_form *form, void *ctx, rt_arena *arena,
                        rt_error *err)
{
    reader r = { .arena = arena, .form = form, .ctx = ctx, .err = err };
    if (yaml.len > YAML_MAX)
        return rt_fail(err, RT_LIMIT, "%s: a file of %zu bytes; at most %u are read", form->what,
                       yaml.len, YAML_MAX);
    if (!yaml_parser_initialize(&r.parser))
        return rt_fail(err, RT_LIMIT, "%s: no memory for the YAML parser", form->what);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)(yaml.len ? yaml.ptr : ""),
                                 yaml.len);
    bool ok = read_document(&r);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    return ok;
}
