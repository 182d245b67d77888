/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object.c - rules for objects and arrays, from the keywords about them.
 *
 * unevaluatedProperties and unevaluatedItems need to know what every schema applied to the value
 * has looked at. Where no other schema is applied to it, they mean what additionalProperties and
 * the items behind the prefix mean, and become that.
 */
#include "schema/schema_internal.h"

/* Is another schema applied to the same value? */
static bool has_company(const schema_words *words)
{
    static const schema_keyword in_place[] = { K_REF,         K_DYNAMIC_REF, K_RECURSIVE_REF,
                                               K_ALL_OF,      K_ANY_OF,      K_ONE_OF,
                                               K_NOT,         K_IF,          K_DEPENDENT_SCHEMAS,
                                               K_DEPENDENCIES };
    for (size_t i = 0; i < RT_COUNT(in_place); i++)
        if (words->of[in_place[i]])
            return true;
    return false;
}

/* -- Objects ----------------------------------------------------------------------------------- */

/* Adds those of `properties` and the rest of `required`, each once. */
static size_t gather_names(const schema_words *words, rt_str *texts, schema_property *properties)
{
    const node *object = words->of[K_PROPERTIES], *required = words->of[K_REQUIRED];
    size_t count = 0;
    if (object) {
        const node *end = rt_json_node_after(object);
        for (const node *at = object + 1; at < end; at = rt_json_node_after(at + 1)) {
            properties[count] = (schema_property){ .schema = at + 1, .required = -1 };
            texts[count++] = rt_json_node_text(at);
        }
    }
    if (required)
        for (uint32_t i = 0; i < required->size; i++) {
            properties[count] = (schema_property){ .required = -1 };
            texts[count++] = rt_json_node_text(required + 1 + i);
        }
    return count;
}

/*
 * The table is built of all names first, and each name then asks it for the number that stands
 * for it: of equal names the first. A duplicate key in "properties" counts with its last value,
 * as everywhere.
 */
static bool compile_names(schema_compiler *c, const schema_unit *unit, const schema_words *words,
                          schema_object_rules *rules, rt_error *err)
{
    const node *object = words->of[K_PROPERTIES], *required = words->of[K_REQUIRED];
    size_t most = (object ? object->size : 0) + (required ? required->size : 0);
    if (most == 0)
        return true;
    rt_str *texts = rt_arena_alloc_raw(&c->scratch, most * sizeof(*texts));
    rules->properties = rt_arena_alloc_raw(c->arena, most * sizeof(*rules->properties));
    size_t count = gather_names(words, texts, rules->properties);
    schema_names_build(&rules->names, texts, count, c->arena);
    for (size_t i = 0; i < count; i++) {
        int32_t number = schema_names_find(&rules->names, texts[i].ptr, texts[i].len);
        schema_property *property = &rules->properties[number];
        if (i < (object ? object->size : 0)) {
            property->schema = rules->properties[i].schema;
            if (!schema_unit_below(c, unit, property->schema, &property->unit, err))
                return false;
        } else if (property->required < 0) {
            property->required = (int32_t)rules->required_count++;
        }
    }
    uint32_t bits = RT_MIN(rules->required_count, 64u);
    rules->required_mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    rules->has_names = true;
    return true;
}

static bool compile_patterns(schema_compiler *c, const schema_unit *unit, const node *object,
                             schema_object_rules *rules, rt_error *err)
{
    if (!object)
        return true;
    schema_pattern_property *patterns =
        rt_arena_alloc_raw(c->arena, object->size * sizeof(*patterns) + 1);
    const node *end = rt_json_node_after(object);
    size_t count = 0;
    for (const node *at = object + 1; at < end; at = rt_json_node_after(at + 1), count++)
        if (!schema_pattern_new(c->schema, rt_json_node_text(at), &patterns[count].pattern, err) ||
            !schema_unit_below(c, unit, at + 1, &patterns[count].unit, err))
            return rt_wrap(err, "patternProperties");
    rules->patterns = patterns;
    rules->pattern_count = count;
    return true;
}

static bool add_dependents(schema_compiler *c, const schema_unit *unit, const schema_words *words,
                           schema_keyword keyword, schema_object_rules *rules,
                           schema_dependent *list, rt_error *err)
{
    const node *object = words->of[keyword];
    if (!object)
        return true;
    const node *end = rt_json_node_after(object);
    for (const node *at = object + 1; at < end; at = rt_json_node_after(at + 1)) {
        schema_dependent *dependent = &list[rules->dependent_count++];
        *dependent = (schema_dependent){ .key = at, .keyword = keyword };
        if (at[1].kind == RT_JSON_ARRAY)
            dependent->names = at + 1;
        else if (!schema_unit_below(c, unit, at + 1, &dependent->unit, err))
            return false;
    }
    return true;
}

static bool compile_dependents(schema_compiler *c, const schema_unit *unit,
                               const schema_words *words, schema_object_rules *rules, rt_error *err)
{
    static const schema_keyword keywords[] = { K_DEPENDENCIES, K_DEPENDENT_REQUIRED,
                                               K_DEPENDENT_SCHEMAS };
    size_t count = 0;
    for (size_t i = 0; i < RT_COUNT(keywords); i++)
        count += words->of[keywords[i]] ? words->of[keywords[i]]->size : 0;
    if (count == 0)
        return true;
    schema_dependent *list = rt_arena_alloc(c->arena, count * sizeof(*list));
    rules->dependents = list;
    for (size_t i = 0; i < RT_COUNT(keywords); i++)
        if (!add_dependents(c, unit, words, keywords[i], rules, list, err))
            return false;
    return true;
}

static bool compile_additional(schema_compiler *c, schema_unit *unit, const schema_words *words,
                               schema_object_rules *rules, rt_error *err)
{
    const node *additional = words->of[K_ADDITIONAL_PROPERTIES];
    const node *unevaluated = words->of[K_UNEVALUATED_PROPERTIES];
    rules->additional_keyword = K_ADDITIONAL_PROPERTIES;
    if (unevaluated && !additional && !has_company(words)) {
        additional = unevaluated;
        rules->additional_keyword = K_UNEVALUATED_PROPERTIES;
        unevaluated = NULL;
    }
    if (additional)
        return schema_unit_below(c, unit, additional, &rules->additional, err);
    unit->has_tracking |= unevaluated != NULL;
    return !unevaluated ||
           schema_unit_below(c, unit, unevaluated, &unit->unevaluated_properties, err);
}

bool schema_object_compile(schema_compiler *c, schema_unit *unit, const schema_words *words,
                           rt_error *err)
{
    bool has_any = words->of[K_DEPENDENCIES] || words->of[K_DEPENDENT_REQUIRED] ||
                   words->of[K_DEPENDENT_SCHEMAS];
    for (schema_keyword k = K_MIN_PROPERTIES; k <= K_UNEVALUATED_PROPERTIES; k++)
        has_any |= words->of[k] != NULL;
    if (!has_any || !(unit->types & 1 << RT_JSON_OBJECT))
        return true;
    schema_object_rules *rules = rt_arena_alloc(c->arena, sizeof(*rules));
    rules->min = schema_count_of(words->of[K_MIN_PROPERTIES], 0);
    rules->max = schema_count_of(words->of[K_MAX_PROPERTIES], UINT64_MAX);
    const node *names = words->of[K_PROPERTY_NAMES];
    if (!compile_names(c, unit, words, rules, err) ||
        !compile_patterns(c, unit, words->of[K_PATTERN_PROPERTIES], rules, err) ||
        !compile_dependents(c, unit, words, rules, err) ||
        !compile_additional(c, unit, words, rules, err) ||
        (names && !schema_unit_below(c, unit, names, &rules->property_names, err)))
        return false;
    rules->is_plain = !rules->pattern_count && !rules->property_names;
    rules->has_member_rules = rules->has_names || rules->additional || !rules->is_plain;
    if (rules->has_member_rules || rules->dependent_count || rules->min > 0 ||
        rules->max < UINT64_MAX)
        unit->object = rules;
    return true;
}

/* -- Arrays ------------------------------------------------------------------------------------ */

static bool compile_prefix(schema_compiler *c, const schema_unit *unit, const node *array,
                           schema_array_rules *rules, rt_error *err)
{
    schema_unit **prefix = rt_arena_alloc_raw(c->arena, array->size * sizeof(*prefix) + 1);
    const node *end = rt_json_node_after(array);
    for (const node *at = array + 1; at < end; at = rt_json_node_after(at))
        if (!schema_unit_below(c, unit, at, &prefix[rules->prefix_count++], err))
            return false;
    rules->prefix = prefix;
    return true;
}

/* Which keyword is about the items behind the prefix: they are called differently in each draft. */
static const node *rest_of(const schema_words *words, schema_array_rules *rules)
{
    const node *items = words->of[K_ITEMS];
    rules->rest_keyword = K_ITEMS;
    if (items && items->kind != RT_JSON_ARRAY)
        return items;
    if (!items)
        return NULL;
    rules->rest_keyword = K_ADDITIONAL_ITEMS;
    return words->of[K_ADDITIONAL_ITEMS];
}

static bool compile_items(schema_compiler *c, schema_unit *unit, const schema_words *words,
                          schema_array_rules *rules, rt_error *err)
{
    const node *items = words->of[K_ITEMS], *prefix = words->of[K_PREFIX_ITEMS];
    const node *rest = rest_of(words, rules), *unevaluated = words->of[K_UNEVALUATED_ITEMS];
    if (items && items->kind == RT_JSON_ARRAY)
        prefix = items;
    if (prefix && !compile_prefix(c, unit, prefix, rules, err))
        return false;
    if (unevaluated && !rest && !has_company(words) && !words->of[K_CONTAINS]) {
        rest = unevaluated;
        rules->rest_keyword = K_UNEVALUATED_ITEMS;
        unevaluated = NULL;
    }
    if (rest)
        return schema_unit_below(c, unit, rest, &rules->rest, err);
    unit->has_tracking |= unevaluated != NULL;
    return !unevaluated || schema_unit_below(c, unit, unevaluated, &unit->unevaluated_items, err);
}

bool schema_array_compile(schema_compiler *c, schema_unit *unit, const schema_words *words,
                          rt_error *err)
{
    bool has_any = false;
    for (schema_keyword k = K_MIN_ITEMS; k <= K_UNEVALUATED_ITEMS; k++)
        has_any |= words->of[k] != NULL;
    if (!has_any || !(unit->types & 1 << RT_JSON_ARRAY))
        return true;
    schema_array_rules *rules = rt_arena_alloc(c->arena, sizeof(*rules));
    rules->min = schema_count_of(words->of[K_MIN_ITEMS], 0);
    rules->max = schema_count_of(words->of[K_MAX_ITEMS], UINT64_MAX);
    rules->is_unique = words->of[K_UNIQUE_ITEMS] && words->of[K_UNIQUE_ITEMS]->is_true;
    rules->min_contains = schema_count_of(words->of[K_MIN_CONTAINS], 1);
    rules->max_contains = schema_count_of(words->of[K_MAX_CONTAINS], UINT64_MAX);
    rules->contains_marks = c->schema->resources[unit->resource].dialect.draft >= RT_DRAFT_2020_12;
    const node *contains = words->of[K_CONTAINS];
    if (!compile_items(c, unit, words, rules, err) ||
        (contains && !schema_unit_below(c, unit, contains, &rules->contains, err)))
        return false;
    if (rules->prefix_count || rules->rest || rules->contains || rules->is_unique ||
        rules->min > 0 || rules->max < UINT64_MAX)
        unit->array = rules;
    return true;
}
