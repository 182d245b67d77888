/* SPDX-License-Identifier: Apache-2.0 */
/*
 * defaults.c - a value with what is missing put in from the schema.
 *
 * The value is written anew, each part under the schemas that surely apply to it: those of
 * "properties" and items, and through $ref and allOf. What depends on other things (anyOf, if)
 * gives no defaults. A default is itself looked at in the same way.
 */
#include "schema/schema_internal.h"

enum { TOGETHER_MAX = 32, OUTPUT_MAX = 64 << 20 };

/* The units that apply to one value. */
typedef struct together {
    const schema_unit *units[TOGETHER_MAX];
    size_t count;
} together;

typedef struct filler {
    rt_json_writer *w;
    unsigned depth;
    unsigned added; /* defaults so far */
    bool is_inside; /* a default */
} filler;

static void add(together *set, const schema_unit *unit)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->units[i] == unit)
            return;
    if (!unit || set->count == TOGETHER_MAX)
        return;
    set->units[set->count++] = unit;
    for (uint32_t i = 0; i < unit->check_count; i++)
        if (unit->checks[i].op == OP_UNIT)
            add(set, unit->checks[i].units[0]);
}

static void fill(filler *f, const together *set, const node *v);

static void fill_array(filler *f, const together *set, const node *v)
{
    size_t i = 0;
    const node *end = rt_json_node_after(v);
    rt_jw_array(f->w);
    for (const node *at = v + 1; at < end; at = rt_json_node_after(at), i++) {
        together below = { .count = 0 };
        for (size_t u = 0; u < set->count; u++) {
            const schema_array_rules *rules = set->units[u]->array;
            if (rules)
                add(&below, i < rules->prefix_count ? rules->prefix[i] : rules->rest);
        }
        fill(f, &below, at);
    }
    rt_jw_end(f->w);
}

static void add_for_key(together *below, const schema_object_rules *rules, const node *key)
{
    if (!rules)
        return;
    int32_t found = rules->has_names ? schema_names_find(&rules->names, key->text, key->size) : -1;
    if (found >= 0 && rules->properties[found].unit)
        add(below, rules->properties[found].unit);
    else if (!rules->pattern_count)
        add(below, rules->additional);
}

/*
 * In the property's schema, or where its reference leads. Inside a default only the first: schemas
 * of trees have an empty tree for a default, and would grow without end.
 */
static const node *default_of(const filler *f, const schema_property *property)
{
    rt_json found = { NULL };
    if (property->schema)
        found = rt_json_get_c((rt_json){ property->schema }, "default");
    if (rt_json_is_absent(found) && property->unit && !f->is_inside)
        found = rt_json_get_c((rt_json){ property->unit->source }, "default");
    return found.node;
}

static bool was_before(const filler *f, const together *set, size_t unit, rt_str name)
{
    for (size_t u = 0; u < unit; u++) {
        const schema_object_rules *rules = set->units[u]->object;
        for (uint32_t i = 0; rules && i < rules->names.count; i++)
            if (rt_str_eq(rules->names.names[i].text, name) && default_of(f, &rules->properties[i]))
                return true;
    }
    return false;
}

static void fill_missing(filler *f, const together *set, const node *v)
{
    for (size_t u = 0; u < set->count; u++) {
        const schema_object_rules *rules = set->units[u]->object;
        for (uint32_t i = 0; rules && i < rules->names.count; i++) {
            const schema_property *property = &rules->properties[i];
            rt_str name = rules->names.names[i].text;
            const node *value = default_of(f, property);
            if (!value || !rt_json_is_absent(rt_json_get((rt_json){ v }, name)) ||
                was_before(f, set, u, name))
                continue;
            if (++f->added > RT_SCHEMA_DEFAULTS_MAX)
                return;
            together below = { .count = 0 };
            add(&below, property->unit);
            bool was_inside = f->is_inside;
            f->is_inside = true;
            rt_jw_key(f->w, name);
            fill(f, &below, value);
            f->is_inside = was_inside;
        }
    }
}

static void fill_object(filler *f, const together *set, const node *v)
{
    const node *end = rt_json_node_after(v);
    rt_jw_object(f->w);
    for (const node *at = v + 1; at < end; at = rt_json_node_after(at + 1)) {
        together below = { .count = 0 };
        for (size_t u = 0; u < set->count; u++)
            add_for_key(&below, set->units[u]->object, at);
        rt_jw_key(f->w, rt_json_node_text(at));
        fill(f, &below, at + 1);
    }
    fill_missing(f, set, v);
    rt_jw_end(f->w);
}

static void fill(filler *f, const together *set, const node *v)
{
    /* Beyond that, as it is: a default may contain itself without end. */
    bool is_deep = ++f->depth > RT_JSON_MAX_DEPTH / 2;
    if (v->kind == RT_JSON_OBJECT && set->count && !is_deep)
        fill_object(f, set, v);
    else if (v->kind == RT_JSON_ARRAY && set->count && !is_deep)
        fill_array(f, set, v);
    else
        rt_jw_json(f->w, (rt_json){ v });
    f->depth--;
}

bool rt_schema_add_defaults(const rt_schema *schema, rt_json value, rt_arena *arena, rt_json *out,
                            rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    if (rt_json_is_absent(value)) {
        *out = value;
        return true;
    }
    rt_buf_init(&text, OUTPUT_MAX);
    rt_json_begin(&w, &text);
    filler f = { .w = &w };
    together set = { .count = 0 };
    add(&set, schema->root);
    fill(&f, &set, value.node);
    if (f.added > RT_SCHEMA_DEFAULTS_MAX)
        return rt_fail(err, RT_LIMIT, "more than %d defaults are missing", RT_SCHEMA_DEFAULTS_MAX);
    return rt_buf_ok(&text, err) && rt_json_parse(rt_buf_str(&text), arena, out, err);
}
