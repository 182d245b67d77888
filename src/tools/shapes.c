/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shapes.c - what a value looks like, without the value: a JSON Schema of several values seen.
 *
 * A shape is read from a value or from a schema that was written here, shapes are merged two by
 * two, and the result is written as a schema again. A member is required as long as every object
 * had it. Objects whose keys are data themselves (ids, dates, people's names) are maps: of those
 * only what their values look like is kept, so that no datum becomes a part of a schema.
 */
#include "tools/shapes_internal.h"

#include "privacy/privacy.h"

enum {
    DEPTH_MAX = 8,
    MEMBERS_MAX = 64,  /* more make a map */
    OPTIONAL_MAX = 16, /* so many, and none that is always there, make a map too */
    ELEMENTS_MAX = 50, /* of an array that are looked at */
    KEY_BYTES_MAX = 64,
    KEY_DIGITS_MAX = 4, /* more are an id, a date, a number of somebody */
};

enum {
    IS_NULL = 1,
    IS_BOOL = 2,
    IS_INTEGER = 4,
    IS_NUMBER = 8,
    IS_STRING = 16,
    IS_ARRAY = 32,
    IS_OBJECT = 64,
    IS_ANY = 128, /* too deep to tell */
};

static const struct {
    unsigned kind;
    const char *name;
} kinds[] = { { IS_NULL, "null" },     { IS_BOOL, "boolean" },  { IS_INTEGER, "integer" },
              { IS_NUMBER, "number" }, { IS_STRING, "string" }, { IS_ARRAY, "array" },
              { IS_OBJECT, "object" } };

typedef struct member {
    rt_str name;
    struct tools_shape *shape;
    bool is_required;
} member;

struct tools_shape {
    unsigned kinds;
    struct tools_shape *items; /* of arrays; NULL: none was seen */
    member *members;           /* of objects, MEMBERS_MAX at most */
    size_t count;
    struct tools_shape *values; /* of objects that are maps; NULL: they are none */
};

static tools_shape *new_shape(unsigned kind, rt_arena *arena)
{
    tools_shape *s = rt_arena_alloc(arena, sizeof(*s));
    s->kinds = kind;
    return s;
}

/* -- Merging ----------------------------------------------------------------------------------- */

static tools_shape *merge(tools_shape *a, tools_shape *b, rt_arena *arena);

static void become_map(tools_shape *s, rt_arena *arena)
{
    tools_shape *values = s->values ? s->values : new_shape(0, arena);
    for (size_t i = 0; i < s->count; i++)
        values = merge(values, s->members[i].shape, arena);
    s->values = values;
    s->members = NULL;
    s->count = 0;
}

static member *find(tools_shape *s, rt_str name)
{
    for (size_t i = 0; i < s->count; i++)
        if (rt_str_eq(s->members[i].name, name))
            return &s->members[i];
    return NULL;
}

static void add_member(tools_shape *s, rt_str name, tools_shape *shape, bool is_required,
                       rt_arena *arena)
{
    if (!s->members)
        s->members = rt_arena_alloc(arena, MEMBERS_MAX * sizeof(*s->members));
    if (s->count == MEMBERS_MAX)
        become_map(s, arena);
    if (s->values)
        s->values = merge(s->values, shape, arena);
    else
        s->members[s->count++] = (member){ name, shape, is_required };
}

static bool is_looking_like_map(const tools_shape *s)
{
    if (s->count <= OPTIONAL_MAX)
        return false;
    for (size_t i = 0; i < s->count; i++)
        if (s->members[i].is_required)
            return false;
    return true;
}

/* Both are objects; `a` gets what `b` has. */
static void merge_objects(tools_shape *a, tools_shape *b, rt_arena *arena)
{
    if (a->values || b->values) {
        become_map(a, arena);
        become_map(b, arena);
        a->values = merge(a->values, b->values, arena);
        return;
    }
    for (size_t i = 0; i < a->count; i++)
        if (!find(b, a->members[i].name))
            a->members[i].is_required = false;
    for (size_t i = 0; i < b->count; i++) {
        member *known = a->values ? NULL : find(a, b->members[i].name);
        if (!known) {
            add_member(a, b->members[i].name, b->members[i].shape, false, arena);
            continue;
        }
        known->shape = merge(known->shape, b->members[i].shape, arena);
        known->is_required &= b->members[i].is_required;
    }
    if (is_looking_like_map(a))
        become_map(a, arena);
}

/* Into `a`, which is returned. */
static tools_shape *merge(tools_shape *a, tools_shape *b, rt_arena *arena)
{
    if (a->kinds & b->kinds & IS_OBJECT) {
        merge_objects(a, b, arena);
    } else if (b->kinds & IS_OBJECT) {
        a->members = b->members;
        a->count = b->count;
        a->values = b->values;
    }
    if (a->items && b->items)
        a->items = merge(a->items, b->items, arena);
    else if (b->items)
        a->items = b->items;
    a->kinds |= b->kinds;
    if (a->kinds & IS_NUMBER)
        a->kinds &= ~(unsigned)IS_INTEGER;
    return a;
}

tools_shape *tools_shape_merge(tools_shape *a, tools_shape *b, rt_arena *arena)
{
    return a && b ? merge(a, b, arena) : a ? a : b;
}

/* -- From a value ------------------------------------------------------------------------------ */

/* Is it a name somebody gave a field, rather than a datum? */
static bool is_field_name(rt_str key, rt_arena *arena)
{
    static const rt_privacy_options options = { .types = RT_PII_ALL };
    rt_pii_spans found;
    size_t digits = 0;
    if (key.len == 0 || key.len > KEY_BYTES_MAX || !rt_utf8_valid(key))
        return false;
    for (size_t i = 0; i < key.len; i++) {
        unsigned char c = (unsigned char)key.ptr[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80;
        bool is_digit = c >= '0' && c <= '9';
        digits += is_digit;
        if (!is_letter && !is_digit && !strchr("_-. $:/", c))
            return false;
    }
    return digits <= KEY_DIGITS_MAX && rt_privacy_scan(key, &options, arena, &found, NULL) &&
           found.count == 0;
}

static tools_shape *of_value(rt_json value, unsigned depth, rt_arena *arena);

static tools_shape *of_array(rt_json value, unsigned depth, rt_arena *arena)
{
    tools_shape *s = new_shape(IS_ARRAY, arena);
    rt_json_iter it = rt_json_each(value);
    rt_json item;
    for (size_t i = 0; i < ELEMENTS_MAX && rt_json_next(&it, NULL, &item); i++)
        s->items = tools_shape_merge(s->items, of_value(item, depth + 1, arena), arena);
    return s;
}

static tools_shape *of_object(rt_json value, unsigned depth, rt_arena *arena)
{
    tools_shape *s = new_shape(IS_OBJECT, arena);
    rt_json_iter it = rt_json_each(value);
    rt_str key;
    rt_json item;
    for (size_t i = 0; i <= MEMBERS_MAX && rt_json_next(&it, &key, &item); i++) {
        if (!s->values && !is_field_name(key, arena))
            become_map(s, arena);
        if (s->values || !find(s, key))
            add_member(s, key, of_value(item, depth + 1, arena), true, arena);
    }
    return s;
}

static tools_shape *of_value(rt_json value, unsigned depth, rt_arena *arena)
{
    if (depth > DEPTH_MAX)
        return new_shape(IS_ANY, arena);
    switch (rt_json_type(value)) {
    case RT_JSON_BOOL:
        return new_shape(IS_BOOL, arena);
    case RT_JSON_NUMBER:
        return new_shape(rt_json_is_integer(value) ? IS_INTEGER : IS_NUMBER, arena);
    case RT_JSON_STRING:
        return new_shape(IS_STRING, arena);
    case RT_JSON_ARRAY:
        return of_array(value, depth, arena);
    case RT_JSON_OBJECT:
        return of_object(value, depth, arena);
    default:
        return new_shape(IS_NULL, arena);
    }
}

tools_shape *tools_shape_of_value(rt_json value, rt_arena *arena)
{
    return of_value(value, 0, arena);
}

/* -- From and to a schema ---------------------------------------------------------------------- */

static unsigned read_kind(rt_str name)
{
    for (size_t i = 0; i < RT_COUNT(kinds); i++)
        if (rt_str_eq_c(name, kinds[i].name))
            return kinds[i].kind;
    return IS_ANY;
}

static unsigned read_kinds(rt_json type)
{
    rt_json_iter it = rt_json_each(type);
    rt_json item;
    unsigned all = 0;
    if (rt_json_type(type) == RT_JSON_STRING)
        return read_kind(rt_json_str(type));
    while (rt_json_next(&it, NULL, &item))
        all |= read_kind(rt_json_str(item));
    return all ? all : IS_ANY;
}

static bool is_listed(rt_json list, rt_str name)
{
    rt_json_iter it = rt_json_each(list);
    rt_json item;
    while (rt_json_next(&it, NULL, &item))
        if (rt_str_eq(rt_json_str(item), name))
            return true;
    return false;
}

static tools_shape *of_schema(rt_json schema, unsigned depth, rt_arena *arena)
{
    rt_json items = rt_json_get_c(schema, "items"), type = rt_json_get_c(schema, "type");
    rt_json others = rt_json_get_c(schema, "additionalProperties"), value;
    rt_json_iter it = rt_json_each(rt_json_get_c(schema, "properties"));
    rt_str name;
    if (depth > DEPTH_MAX || rt_json_is_absent(type))
        return new_shape(IS_ANY, arena);
    tools_shape *s = new_shape(read_kinds(type), arena);
    if (rt_json_type(items) == RT_JSON_OBJECT)
        s->items = of_schema(items, depth + 1, arena);
    if (rt_json_type(others) == RT_JSON_OBJECT)
        s->values = of_schema(others, depth + 1, arena);
    while (rt_json_next(&it, &name, &value))
        add_member(s, name, of_schema(value, depth + 1, arena),
                   is_listed(rt_json_get_c(schema, "required"), name), arena);
    return s;
}

tools_shape *tools_shape_of_schema(rt_json schema, rt_arena *arena)
{
    return of_schema(schema, 0, arena);
}

static void write_kinds(const tools_shape *s, rt_json_writer *w)
{
    bool is_one = (s->kinds & (s->kinds - 1)) == 0;
    rt_jw_key(w, RT_STR("type"));
    if (!is_one)
        rt_jw_array(w);
    for (size_t i = 0; i < RT_COUNT(kinds); i++)
        if (s->kinds & kinds[i].kind)
            rt_jw_str(w, rt_str_of(kinds[i].name));
    if (!is_one)
        rt_jw_end(w);
}

static void write_members(const tools_shape *s, unsigned levels, rt_json_writer *w);

/* The members of a schema object. */
static void write_inside(const tools_shape *s, unsigned levels, rt_json_writer *w)
{
    if (s->kinds == 0 || s->kinds & IS_ANY || levels == 0)
        return; /* anything */
    write_kinds(s, w);
    if (s->items) {
        rt_jw_kobject(w, "items");
        write_inside(s->items, levels - 1, w);
        rt_jw_end(w);
    }
    if (s->values) {
        rt_jw_kobject(w, "additionalProperties");
        write_inside(s->values, levels - 1, w);
        rt_jw_end(w);
    } else if (s->count > 0) {
        write_members(s, levels, w);
    }
}

static void write_members(const tools_shape *s, unsigned levels, rt_json_writer *w)
{
    rt_jw_kobject(w, "properties");
    for (size_t i = 0; i < s->count; i++) {
        rt_jw_key(w, s->members[i].name);
        rt_jw_object(w);
        write_inside(s->members[i].shape, levels - 1, w);
        rt_jw_end(w);
    }
    rt_jw_end(w);
    rt_jw_karray(w, "required");
    for (size_t i = 0; i < s->count; i++)
        if (s->members[i].is_required)
            rt_jw_str(w, s->members[i].name);
    rt_jw_end(w);
}

rt_str tools_shape_write(const tools_shape *shape, uint64_t samples, rt_arena *arena)
{
    for (unsigned levels = DEPTH_MAX + 1; levels > 0; levels--) {
        rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
        rt_json_writer w;
        rt_buf_init(&text, TOOLS_SHAPE_BYTES_MAX);
        rt_json_begin(&w, &text);
        rt_jw_object(&w);
        write_inside(shape, levels, &w);
        rt_jw_ku64(&w, "x-observed", samples);
        rt_jw_end(&w);
        if (!text.failed)
            return rt_arena_str(arena, rt_buf_str(&text));
    }
    return RT_STR("{}");
}
