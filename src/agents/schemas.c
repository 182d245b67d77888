/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schemas.c - schemas as people's libraries export them.
 *
 * Zod and Pydantic export JSON Schema of some draft, which the schema room knows as it is. What it
 * would pass over in silence are the words of OpenAPI 3.0, which some exporters still write:
 *
 *     {"type": "string", "nullable": true}              {"type": ["string", "null"]}
 *     {"$ref": "#/$defs/A", "nullable": true}           anyOf of it and {"type": "null"}
 *     {"minimum": 0, "exclusiveMinimum": true}          {"exclusiveMinimum": 0}
 *
 * Only places that hold schemas are looked at: a property may well be called "nullable".
 */
#include "agents/agents_internal.h"

#define DEPTH_MAX  RT_SCHEMA_NESTING_MAX
#define SCHEMA_MAX ((size_t)1 << 20) /* bytes */

typedef enum place { PLACE_NONE, PLACE_SCHEMA, PLACE_LIST, PLACE_MAP } place;

static const struct {
    const char *keyword;
    place holds;
} places[] = {
    { "items", PLACE_SCHEMA },
    { "additionalItems", PLACE_SCHEMA },
    { "additionalProperties", PLACE_SCHEMA },
    { "unevaluatedItems", PLACE_SCHEMA },
    { "unevaluatedProperties", PLACE_SCHEMA },
    { "propertyNames", PLACE_SCHEMA },
    { "contains", PLACE_SCHEMA },
    { "not", PLACE_SCHEMA },
    { "if", PLACE_SCHEMA },
    { "then", PLACE_SCHEMA },
    { "else", PLACE_SCHEMA },
    { "allOf", PLACE_LIST },
    { "anyOf", PLACE_LIST },
    { "oneOf", PLACE_LIST },
    { "prefixItems", PLACE_LIST },
    { "properties", PLACE_MAP },
    { "patternProperties", PLACE_MAP },
    { "dependentSchemas", PLACE_MAP },
    { "$defs", PLACE_MAP },
    { "definitions", PLACE_MAP },
};

static place place_of(rt_str keyword)
{
    for (size_t i = 0; i < RT_COUNT(places); i++)
        if (rt_str_eq_c(keyword, places[i].keyword))
            return places[i].holds;
    return PLACE_NONE;
}

static void adopt(rt_json schema, unsigned depth, rt_json_writer *w);

static void adopt_all(rt_json many, unsigned depth, rt_json_writer *w)
{
    rt_json_iter it = rt_json_each(many);
    bool is_map = rt_json_type(many) == RT_JSON_OBJECT;
    rt_str key;
    rt_json value;
    if (is_map)
        rt_jw_object(w);
    else
        rt_jw_array(w);
    while (rt_json_next(&it, &key, &value)) {
        if (is_map)
            rt_jw_key(w, key);
        adopt(value, depth, w);
    }
    rt_jw_end(w);
}

/* "exclusiveMinimum": true is about "minimum". */
static bool is_old_bound(rt_json schema, rt_str key, rt_json *bound)
{
    static const char *const pairs[][2] = { { "exclusiveMinimum", "minimum" },
                                            { "exclusiveMaximum", "maximum" } };
    for (size_t i = 0; i < RT_COUNT(pairs); i++) {
        bool is_old = rt_json_type(rt_json_get_c(schema, pairs[i][0])) == RT_JSON_BOOL;
        if (is_old && (rt_str_eq_c(key, pairs[i][0]) || rt_str_eq_c(key, pairs[i][1]))) {
            bool is_exclusive = rt_json_bool(rt_json_get_c(schema, pairs[i][0]), false);
            bool is_here = rt_str_eq_c(key, pairs[i][is_exclusive ? 0 : 1]);
            *bound = is_here ? rt_json_get_c(schema, pairs[i][1]) : (rt_json){ 0 };
            return true;
        }
    }
    return false;
}

/* A type can say null by itself, unless something else narrows the value. */
static bool has_plain_type(rt_json schema)
{
    static const char *const narrow[] = { "enum", "const", "$ref", "allOf", "anyOf", "oneOf" };
    for (size_t i = 0; i < RT_COUNT(narrow); i++)
        if (!rt_json_is_absent(rt_json_get_c(schema, narrow[i])))
            return false;
    return rt_json_type(rt_json_get_c(schema, "type")) == RT_JSON_STRING;
}

static void adopt_members(rt_json schema, bool is_widened, unsigned depth, rt_json_writer *w)
{
    rt_json_iter it = rt_json_each(schema);
    rt_str key;
    rt_json value, bound;
    while (rt_json_next(&it, &key, &value)) {
        if (rt_str_eq_c(key, "nullable") && rt_json_type(value) == RT_JSON_BOOL)
            continue;
        if (is_old_bound(schema, key, &bound)) {
            if (!rt_json_is_absent(bound)) {
                rt_jw_key(w, key);
                rt_jw_json(w, bound);
            }
            continue;
        }
        rt_jw_key(w, key);
        if (is_widened && rt_str_eq_c(key, "type")) {
            rt_jw_array(w);
            rt_jw_json(w, value);
            rt_jw_str(w, RT_STR("null"));
            rt_jw_end(w);
            continue;
        }
        place holds = place_of(key);
        if (holds == PLACE_SCHEMA && rt_json_type(value) != RT_JSON_ARRAY)
            adopt(value, depth + 1, w);
        else if (holds != PLACE_NONE)
            adopt_all(value, depth + 1, w);
        else
            rt_jw_json(w, value);
    }
}

static void adopt(rt_json schema, unsigned depth, rt_json_writer *w)
{
    bool is_nullable = rt_json_bool(rt_json_get_c(schema, "nullable"), false);
    if (rt_json_type(schema) != RT_JSON_OBJECT || depth > DEPTH_MAX) {
        rt_jw_json(w, schema);
        return;
    }
    bool is_widened = is_nullable && has_plain_type(schema), is_choice = is_nullable && !is_widened;
    rt_jw_object(w);
    if (is_choice) {
        rt_jw_karray(w, "anyOf");
        rt_jw_object(w);
    }
    adopt_members(schema, is_widened, depth, w);
    if (is_choice) {
        rt_jw_end(w);
        rt_jw_raw(w, RT_STR("{\"type\":\"null\"}"));
        rt_jw_end(w);
    }
    rt_jw_end(w);
}

bool agents_schema_adopt(rt_json schema, const char *member, rt_arena *arena, rt_str *out,
                         rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_schema *checker RT_CLEANUP(rt_schema_freep) = NULL;
    rt_json_writer w;
    rt_json adopted;
    rt_json_kind kind = rt_json_type(schema);
    *out = (rt_str){ 0 };
    if (kind == RT_JSON_NULL || kind == RT_JSON_ABSENT ||
        (kind == RT_JSON_OBJECT && rt_json_count(schema) == 0))
        return true; /* {} allows everything, as none does */
    if (kind != RT_JSON_OBJECT && kind != RT_JSON_BOOL)
        return rt_fail(err, RT_INVALID,
                       "'%s' must be a JSON Schema, as z.toJSONSchema() or model_json_schema() "
                       "give it; it is %s",
                       member, rt_json_type_name(schema));
    rt_buf_init(&text, SCHEMA_MAX);
    rt_json_begin(&w, &text);
    adopt(schema, 0, &w);
    if (!rt_buf_ok(&text, err) || !rt_json_parse(rt_buf_str(&text), arena, &adopted, err) ||
        !rt_schema_new(adopted, NULL, &checker, err))
        return rt_wrap(err, "%s", member);
    *out = rt_arena_str(arena, rt_buf_str(&text));
    return true;
}
