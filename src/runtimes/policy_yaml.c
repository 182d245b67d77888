/*
 * policy_yaml.c - a policy from YAML text.
 *
 *     extends: quick          # a preset; without it, default
 *     timeout: 10s
 *     memory: 256M
 *     read: [/srv/data]
 *     env: { REGION: eu }
 *
 * Scalars only, one level of lists and maps; aliases and anchors are refused, so that a small file
 * cannot stand for a large one. What would be passed over in silence (a second document, a key that
 * stands there twice) is refused too: a limit that somebody wrote must hold. The text is read
 * twice, for the preset and for what refines it, so that their order does not matter.
 */
#include "runtimes/runtimes_internal.h"

#include <yaml.h>

#define YAML_MAX (64u << 10)
#define KEYS_MAX 64

typedef struct reader {
    yaml_parser_t parser;
    yaml_event_t event;
    rt_arena *arena;
    rt_policy *policy;
    bool is_first_pass; /* looks for the preset only */
    rt_str *seen;       /* keys */
    size_t seen_count;
    rt_error *err;
} reader;

static rt_str scalar(const yaml_event_t *e)
{
    return (rt_str){ (const char *)e->data.scalar.value, e->data.scalar.length };
}

static bool advance(reader *r)
{
    yaml_event_delete(&r->event);
    if (!yaml_parser_parse(&r->parser, &r->event))
        return rt_fail(r->err, RT_INVALID, "policy: line %zu: %s", r->parser.problem_mark.line + 1,
                       r->parser.problem ? r->parser.problem : "not YAML");
    bool has_anchor =
        (r->event.type == YAML_SCALAR_EVENT && r->event.data.scalar.anchor) ||
        (r->event.type == YAML_SEQUENCE_START_EVENT && r->event.data.sequence_start.anchor) ||
        (r->event.type == YAML_MAPPING_START_EVENT && r->event.data.mapping_start.anchor);
    if (r->event.type == YAML_ALIAS_EVENT || has_anchor)
        return rt_fail(r->err, RT_INVALID,
                       "policy: line %zu: anchors and aliases are not used here",
                       r->event.start_mark.line + 1);
    return true;
}

static bool set(reader *r, rt_str key, rt_str value)
{
    size_t line = r->event.start_mark.line + 1;
    bool is_extends = rt_str_eq_c(key, "extends");
    if (is_extends && r->is_first_pass) {
        const rt_policy *base = rt_policy_preset(value);
        if (!base)
            return rt_fail(r->err, RT_NOT_FOUND, "policy: line %zu: there is no preset '%.*s'",
                           line, (int)RT_MIN(value.len, (size_t)40), value.ptr);
        *r->policy = *base;
    }
    if (is_extends || r->is_first_pass)
        return true;
    return rt_policy_set(r->policy, key, value, r->arena, r->err) ||
           rt_wrap(r->err, "line %zu", line);
}

static bool note_key(reader *r, rt_str key)
{
    rt_str *grown = rt_arena_alloc(r->arena, sizeof(*grown) * (r->seen_count + 1));
    for (size_t i = 0; i < r->seen_count; i++) {
        grown[i] = r->seen[i];
        if (rt_str_eq(key, r->seen[i]))
            return rt_fail(r->err, RT_INVALID, "policy: line %zu: '%.*s' stands here a second time",
                           r->event.start_mark.line + 1, (int)RT_MIN(key.len, (size_t)40), key.ptr);
    }
    grown[r->seen_count++] = key;
    r->seen = grown;
    return r->seen_count <= KEYS_MAX ||
           rt_fail(r->err, RT_LIMIT, "policy: more than %d keys", KEYS_MAX);
}

static bool read_list(reader *r, rt_str key)
{
    /* An empty list of imports is a list all the same: nothing may be imported. */
    if (rt_str_eq_c(key, "imports") && !set(r, key, RT_STR("")))
        return false;
    while (advance(r) && r->event.type != YAML_SEQUENCE_END_EVENT) {
        if (r->event.type != YAML_SCALAR_EVENT)
            return rt_fail(r->err, RT_INVALID,
                           "policy: line %zu: a list of plain values is expected",
                           r->event.start_mark.line + 1);
        if (!set(r, key, scalar(&r->event)))
            return false;
    }
    return r->event.type == YAML_SEQUENCE_END_EVENT;
}

static bool has_byte(rt_str s, char byte)
{
    return s.len > 0 && memchr(s.ptr, byte, s.len);
}

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
            return rt_fail(
                r->err, RT_INVALID,
                "policy: line %zu: env: a name has no '=', and neither it nor its value a NUL",
                r->event.start_mark.line + 1);
        if (!set(r, key, rt_arena_printf(r->arena, "%.*s=%.*s", RT_FMT(name), RT_FMT(value))))
            return false;
    }
    if (r->event.type != YAML_MAPPING_END_EVENT)
        return r->err->code ? false
                            : rt_fail(r->err, RT_INVALID,
                                      "policy: line %zu: a map of plain values is expected",
                                      r->event.start_mark.line + 1);
    return true;
}

static bool read_field(reader *r)
{
    if (r->event.type != YAML_SCALAR_EVENT)
        return rt_fail(r->err, RT_INVALID, "policy: line %zu: a key is expected",
                       r->event.start_mark.line + 1);
    rt_str key = rt_arena_str(r->arena, scalar(&r->event));
    if (!note_key(r, key) || !advance(r))
        return false;
    switch (r->event.type) {
    case YAML_SCALAR_EVENT:
        return set(r, key, scalar(&r->event));
    case YAML_SEQUENCE_START_EVENT:
        if (rt_str_eq_c(key, "read") || rt_str_eq_c(key, "imports") || rt_str_eq_c(key, "env"))
            return read_list(r, key);
        break;
    case YAML_MAPPING_START_EVENT:
        if (rt_str_eq_c(key, "env"))
            return read_map(r, key);
        break;
    default:
        break;
    }
    return rt_fail(r->err, RT_INVALID, "policy: line %zu: '%.*s' takes one plain value",
                   r->event.start_mark.line + 1, (int)RT_MIN(key.len, (size_t)40), key.ptr);
}

static bool read_document(reader *r)
{
    do {
        if (!advance(r))
            return false;
        if (r->event.type == YAML_STREAM_END_EVENT)
            return true; /* an empty file: the default */
    } while (r->event.type == YAML_STREAM_START_EVENT ||
             r->event.type == YAML_DOCUMENT_START_EVENT);
    if (r->event.type != YAML_MAPPING_START_EVENT)
        return rt_fail(r->err, RT_INVALID, "policy: expected lines of 'key: value'");
    while (advance(r) && r->event.type != YAML_MAPPING_END_EVENT)
        if (!read_field(r))
            return false;
    if (r->event.type != YAML_MAPPING_END_EVENT || !advance(r) || !advance(r))
        return false;
    if (r->event.type != YAML_STREAM_END_EVENT)
        return rt_fail(r->err, RT_INVALID, "policy: line %zu: one document is expected",
                       r->event.start_mark.line + 1);
    return true;
}

static bool read_pass(rt_str yaml, rt_arena *arena, rt_policy *policy, bool is_first, rt_error *err)
{
    reader r = { .arena = arena, .policy = policy, .is_first_pass = is_first, .err = err };
    if (!yaml_parser_initialize(&r.parser))
        return rt_fail(err, RT_LIMIT, "policy: no memory for the YAML parser");
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)(yaml.len ? yaml.ptr : ""),
                                 yaml.len);
    bool ok = read_document(&r);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    return ok;
}

bool rt_policy_parse(rt_str yaml, rt_arena *arena, rt_policy *out, rt_error *err)
{
    rt_policy policy = *rt_policy_preset(RT_STR("default"));
    if (yaml.len > YAML_MAX)
        return rt_fail(err, RT_LIMIT, "policy: a file of %zu bytes; at most %u are read", yaml.len,
                       YAML_MAX);
    if (!read_pass(yaml, arena, &policy, true, err) || !read_pass(yaml, arena, &policy, false, err))
        return false;
    *out = policy;
    return true;
}
