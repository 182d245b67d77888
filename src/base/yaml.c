/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml.c - libyaml's events written down as JSON, and that parsed.
 */
#include "base/yaml.h"

#include <yaml.h>

typedef struct reader {
    yaml_parser_t parser;
    yaml_event_t event;
    rt_arena *arena;
    rt_buf json;
    rt_json_writer w;
    unsigned depth;
    rt_error *err;
} reader;

static size_t line_of(const reader *r)
{
    return r->event.start_mark.line + 1;
}

static rt_str scalar(const yaml_event_t *e)
{
    return (rt_str){ (const char *)e->data.scalar.value, e->data.scalar.length };
}

/* What has an anchor or a tag means more than it says. */
static bool is_decorated(const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_ALIAS_EVENT:
        return true;
    case YAML_SCALAR_EVENT:
        return e->data.scalar.anchor || e->data.scalar.tag;
    case YAML_SEQUENCE_START_EVENT:
        return e->data.sequence_start.anchor || e->data.sequence_start.tag;
    case YAML_MAPPING_START_EVENT:
        return e->data.mapping_start.anchor || e->data.mapping_start.tag;
    default:
        return false;
    }
}

static bool advance(reader *r)
{
    yaml_event_delete(&r->event);
    if (!yaml_parser_parse(&r->parser, &r->event))
        return rt_fail(r->err, RT_INVALID, "line %zu: %s", r->parser.problem_mark.line + 1,
                       r->parser.problem ? r->parser.problem : "not YAML");
    if (is_decorated(&r->event))
        return rt_fail(r->err, RT_INVALID, "line %zu: anchors, aliases and tags are not used here",
                       line_of(r));
    return true;
}

static bool is_number(rt_str text, rt_arena *arena)
{
    rt_json value;
    char first = text.len ? text.ptr[0] : 'x';
    return (first == '-' || (first >= '0' && first <= '9')) &&
           rt_json_parse(text, arena, &value, NULL) && rt_json_type(value) == RT_JSON_NUMBER;
}

static bool is_one_of(rt_str text, const char *words)
{
    rt_str rest = rt_str_of(words), word;
    while (rt_str_cut(&rest, ' ', &word))
        if (rt_str_eq(word, text))
            return true;
    return false;
}

static void write_scalar(reader *r)
{
    rt_str text = scalar(&r->event);
    bool is_plain = r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (!is_plain)
        rt_jw_str(&r->w, text);
    else if (text.len == 0 || is_one_of(text, "~ null Null NULL"))
        rt_jw_null(&r->w);
    else if (is_one_of(text, "true True TRUE false False FALSE"))
        rt_jw_bool(&r->w, (text.ptr[0] | 0x20) == 't');
    else if (is_number(text, r->arena))
        rt_jw_raw(&r->w, text);
    else
        rt_jw_str(&r->w, text);
}

static bool write_value(reader *r);

static bool write_list(reader *r)
{
    rt_jw_array(&r->w);
    while (advance(r) && r->event.type != YAML_SEQUENCE_END_EVENT)
        if (!write_value(r))
            return false;
    if (r->err->code)
        return false;
    rt_jw_end(&r->w);
    return true;
}

/* The key's text, kept beside those the map has already. */
static bool take_key(reader *r, rt_str *keys, size_t *count)
{
    if (r->event.type != YAML_SCALAR_EVENT)
        return rt_fail(r->err, RT_INVALID, "line %zu: a key is expected", line_of(r));
    rt_str key = rt_arena_str(r->arena, scalar(&r->event));
    for (size_t i = 0; i < *count; i++)
        if (rt_str_eq(keys[i], key))
            return rt_fail(r->err, RT_INVALID, "line %zu: '%.*s' stands here twice", line_of(r),
                           (int)RT_MIN(key.len, (size_t)60), key.ptr);
    if (*count == RT_YAML_MAX_KEYS)
        return rt_fail(r->err, RT_LIMIT, "line %zu: more than %d keys", line_of(r),
                       RT_YAML_MAX_KEYS);
    keys[(*count)++] = key;
    rt_jw_key(&r->w, key);
    return true;
}

static bool write_map(reader *r)
{
    rt_str *keys = rt_arena_alloc_raw(r->arena, sizeof(*keys) * RT_YAML_MAX_KEYS);
    size_t count = 0;
    rt_jw_object(&r->w);
    while (advance(r) && r->event.type != YAML_MAPPING_END_EVENT)
        if (!take_key(r, keys, &count) || !advance(r) || !write_value(r))
            return false;
    if (r->err->code)
        return false;
    rt_jw_end(&r->w);
    return true;
}

/* The event is the value's first. */
static bool write_value(reader *r)
{
    if (r->event.type == YAML_SCALAR_EVENT) {
        write_scalar(r);
        return true;
    }
    if (r->depth == RT_YAML_MAX_DEPTH)
        return rt_fail(r->err, RT_LIMIT, "line %zu: nested deeper than %d", line_of(r),
                       RT_YAML_MAX_DEPTH);
    r->depth++;
    bool ok = r->event.type == YAML_MAPPING_START_EVENT ? write_map(r) : write_list(r);
    r->depth--;
    return ok;
}

static bool read_document(reader *r)
{
    do {
        if (!advance(r))
            return false;
        if (r->event.type == YAML_STREAM_END_EVENT) {
            rt_jw_null(&r->w);
            return true;
        }
    } while (r->event.type == YAML_STREAM_START_EVENT ||
             r->event.type == YAML_DOCUMENT_START_EVENT);
    if (!write_value(r) || !advance(r) || !advance(r)) /* the end of the document, of the text */
        return false;
    return r->event.type == YAML_STREAM_END_EVENT ||
           rt_fail(r->err, RT_INVALID, "line %zu: one document is expected", line_of(r));
}

bool rt_yaml_parse(rt_str text, rt_arena *arena, rt_json *out, rt_error *err)
{
    rt_error problem = { 0 };
    reader r = { .arena = arena, .err = &problem };
    if (text.len > RT_YAML_MAX_SIZE)
        return rt_fail(err, RT_LIMIT, "%zu bytes of YAML; at most %zu are read", text.len,
                       RT_YAML_MAX_SIZE);
    if (!yaml_parser_initialize(&r.parser))
        rt_out_of_memory(sizeof(r.parser));
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)(text.len ? text.ptr : ""),
                                 text.len);
    rt_json_begin(&r.w, &r.json);
    bool ok = read_document(&r) && rt_buf_ok(&r.json, &problem) &&
              rt_json_parse(rt_buf_str(&r.json), arena, out, &problem);
    rt_buf_done(&r.json);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    if (!ok && err)
        *err = problem;
    return ok;
}
