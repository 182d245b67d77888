/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.c - the members of an execution request, from JSON.
 *
 * One row per member: its name, what it must be, where it goes. What is unknown or of the wrong
 * type is refused by name, because a misspelt limit that is passed over in silence is no limit.
 */
#include "engine/engine_internal.h"

#include <stddef.h>

#define ID_MAX 200 /* characters of names and ids that callers choose */

typedef enum member_kind {
    M_TEXT,   /* any string */
    M_LABEL,  /* a short string without control characters */
    M_CHOICE, /* one of a few words; the field is an int */
    M_INPUT,
    M_POLICY,
    M_PRIVACY,
    M_SCHEMA,
    M_TOOLS,
    M_ROUTE,
    M_IGNORED, /* read by the surface itself */
} member_kind;

static const struct member {
    const char *name;
    member_kind kind;
    size_t offset;
    const char *choices;
} members[] = {
    { "language", M_LABEL, offsetof(rt_request, language), NULL },
    { "code", M_TEXT, offsetof(rt_request, code), NULL },
    { "name", M_LABEL, offsetof(rt_request, name), NULL },
    { "input", M_INPUT, 0, NULL },
    { "stdin", M_TEXT, offsetof(rt_request, stdin_data), NULL },
    { "policy", M_POLICY, offsetof(rt_request, policy), NULL },
    { "session_id", M_LABEL, offsetof(rt_request, session_id), NULL },
    { "conversation_id", M_LABEL, offsetof(rt_request, conversation), NULL },
    { "idempotency_key", M_LABEL, offsetof(rt_request, idempotency_key), NULL },
    { "agent_type", M_LABEL, offsetof(rt_request, agent_type), NULL },
    { "tool_id", M_LABEL, offsetof(rt_request, tool_id), NULL },
    { "user_id", M_LABEL, offsetof(rt_request, user_id), NULL },
    { "cache", M_CHOICE, offsetof(rt_request, cache), "bypass use refresh" },
    { "privacy", M_PRIVACY, 0, NULL },
    { "tools", M_TOOLS, offsetof(rt_request, tools), NULL },
    { "runtime", M_ROUTE, offsetof(rt_request, route), NULL },
    { "intent", M_TEXT, offsetof(rt_request, intent), NULL },
    { "input_schema", M_SCHEMA, offsetof(rt_request, input_schema), NULL },
    { "output_schema", M_SCHEMA, offsetof(rt_request, output_schema), NULL },
    { "wait", M_IGNORED, 0, NULL },
};

bool rt_request_label(rt_str text)
{
    if (!rt_utf8_valid(text) || rt_utf8_length(text) > ID_MAX)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] < ' ' || text.ptr[i] == 0x7f)
            return false;
    return true;
}

static bool read_text(const struct member *m, rt_json value, void *field, rt_error *err)
{
    if (rt_json_type(value) != RT_JSON_STRING)
        return rt_fail(err, RT_INVALID, "'%s' must be a string, not %s", m->name,
                       rt_json_type_name(value));
    rt_str text = rt_json_str(value);
    if (m->kind == M_LABEL && !rt_request_label(text))
        return rt_fail(err, RT_INVALID,
                       "'%s' must be at most %d characters, none of them a control character",
                       m->name, ID_MAX);
    *(rt_str *)field = text;
    return true;
}

static bool read_choice(const struct member *m, rt_json value, void *field, rt_error *err)
{
    rt_str rest = rt_str_of(m->choices), word;
    for (int i = 0; rt_str_cut(&rest, ' ', &word); i++)
        if (rt_json_type(value) == RT_JSON_STRING && rt_str_eq(word, rt_json_str(value))) {
            *(int *)field = i;
            return true;
        }
    return rt_fail(err, RT_INVALID, "'%s' must be one of: %s", m->name, m->choices);
}

static void read_input(rt_json value, rt_arena *arena, rt_request *out)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf_init(&text, RT_JSON_SIZE_CEILING);
    rt_json_print(value, &text);
    out->has_input = true;
    out->input_json = value;
    out->input = rt_arena_str(arena, rt_buf_str(&text));
}

bool rt_privacy_wish_read(rt_json value, rt_privacy_wish *out, rt_error *err)
{
    rt_json mode = rt_json_type(value) == RT_JSON_OBJECT ? rt_json_get_c(value, "mode") : value;
    if (rt_json_type(mode) != RT_JSON_STRING)
        return rt_fail(err, RT_INVALID,
                       "'privacy' must be off, redact, tokens or partial, or an "
                       "object with such a mode");
    out->is_said = true;
    if (rt_json_type(value) == RT_JSON_OBJECT)
        out->options = value;
    out->is_stable = rt_json_bool(rt_json_get_c(value, "stable"), false);
    out->is_detokenized = rt_json_bool(rt_json_get_c(value, "detokenize"), false);
    return rt_privacy_mode_parse(rt_json_str(mode), &out->mode, err) ||
           rt_wrap(err, "privacy");
}

static bool read_schema(const struct member *m, rt_json value, void *field, rt_error *err)
{
    rt_json_kind kind = rt_json_type(value);
    if (kind != RT_JSON_OBJECT && kind != RT_JSON_BOOL && kind != RT_JSON_NULL)
        return rt_fail(err, RT_INVALID, "'%s' must be a JSON Schema: an object, true or false",
                       m->name);
    if (kind != RT_JSON_NULL)
        *(rt_json *)field = value;
    return true;
}

static bool read_member(const struct member *m, rt_json value, rt_arena *arena, rt_request *out,
                        rt_error *err)
{
    void *field = (char *)out + m->offset;
    switch (m->kind) {
    case M_TEXT:
    case M_LABEL:
        return rt_json_type(value) == RT_JSON_NULL || read_text(m, value, field, err);
    case M_CHOICE:
        return read_choice(m, value, field, err);
    case M_INPUT:
        read_input(value, arena, out);
        return true;
    case M_POLICY:
        if (rt_json_type(value) != RT_JSON_NULL)
            out->policy = value;
        return true;
    case M_PRIVACY:
        return rt_json_type(value) == RT_JSON_NULL ||
               rt_privacy_wish_read(value, &out->privacy, err);
    case M_TOOLS:
        *(rt_json *)field = value;
        return true; /* grant.c looks into it */
    case M_ROUTE:
        return rt_json_type(value) == RT_JSON_NULL || engine_route_read(value, field, err);
    case M_SCHEMA:
        return read_schema(m, value, field, err);
    default:
        return true;
    }
}

static const struct member *find_member(rt_str name)
{
    for (size_t i = 0; i < RT_COUNT(members); i++)
        if (rt_str_eq_c(name, members[i].name))
            return &members[i];
    return NULL;
}

static bool fail_unknown(rt_str name, rt_error *err)
{
    rt_nearest near;
    char hint[RT_NEAREST_HINT];
    rt_nearest_start(&near, name);
    for (size_t i = 0; i < RT_COUNT(members); i++)
        rt_nearest_try(&near, rt_str_of(members[i].name));
    return rt_fail(err, RT_INVALID, "unknown member '%.*s'%s", (int)RT_MIN(name.len, (size_t)40),
                   name.ptr, rt_nearest_hint(&near, "; /docs lists what there is", hint));
}

bool rt_request_read(rt_json body, rt_arena *arena, rt_request *out, rt_error *err)
{
    rt_json_iter it = rt_json_each(body);
    rt_str name;
    rt_json value;
    if (rt_json_type(body) != RT_JSON_OBJECT)
        return rt_fail(err, RT_INVALID,
                       "the body must be a JSON object such as {\"language\":\"python\","
                       "\"code\":\"return 6 * 7\"}, not %s",
                       rt_json_type_name(body));
    while (rt_json_next(&it, &name, &value)) {
        const struct member *m = find_member(name);
        if (!m)
            return fail_unknown(name, err);
        if (!read_member(m, value, arena, out, err))
            return false;
    }
    if (rt_json_is_absent(rt_json_get_c(body, "code")))
        return rt_fail(err, RT_INVALID, "MISSING_CODE: 'code' is missing");
    return true;
}
