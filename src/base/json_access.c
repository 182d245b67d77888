/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_access.c - looking at a document.
 *
 * Every function begins by asking whether the value is of the kind it works on; "absent" is of
 * none, and so is answered like any other value of the wrong kind.
 */
#include "base/json_internal.h"

rt_json_kind rt_json_type(rt_json v)
{
    return v.node ? (rt_json_kind)v.node->kind : RT_JSON_ABSENT;
}

const char *rt_json_type_name(rt_json v)
{
    static const char *const names[] = {
        [RT_JSON_ABSENT] = "absent", [RT_JSON_NULL] = "null",     [RT_JSON_BOOL] = "boolean",
        [RT_JSON_NUMBER] = "number", [RT_JSON_STRING] = "string", [RT_JSON_ARRAY] = "array",
        [RT_JSON_OBJECT] = "object",
    };
    return names[rt_json_type(v)];
}

static bool is_container(rt_json v)
{
    return v.node && v.node->kind >= RT_JSON_ARRAY;
}

rt_json rt_json_get(rt_json object, rt_str key)
{
    rt_json found = { NULL };
    if (rt_json_type(object) != RT_JSON_OBJECT)
        return found;
    const json_node *end = json_after(object.node);
    for (const json_node *at = object.node + 1; at < end; at = json_after(at + 1))
        if (rt_str_eq(json_text(at), key))
            found.node = at + 1;
    return found;
}

rt_json rt_json_get_c(rt_json object, const char *key)
{
    return rt_json_get(object, rt_str_of(key));
}

rt_json rt_json_at(rt_json array, size_t i)
{
    if (rt_json_type(array) != RT_JSON_ARRAY || i >= array.node->size)
        return (rt_json){ NULL };
    const json_node *at = array.node + 1;
    if (array.node->span == (uint64_t)array.node->size + 1)
        return (rt_json){ at + i }; /* nothing but scalars: no need to walk */
    while (i-- > 0)
        at = json_after(at);
    return (rt_json){ at };
}

size_t rt_json_count(rt_json v)
{
    return is_container(v) ? v.node->size : 0;
}

rt_str rt_json_str(rt_json v)
{
    return rt_json_type(v) == RT_JSON_STRING ? json_text(v.node) : RT_STR("");
}

rt_str rt_json_number(rt_json v)
{
    return rt_json_type(v) == RT_JSON_NUMBER ? json_text(v.node) : RT_STR("");
}

bool rt_json_i64(rt_json v, int64_t *out)
{
    return rt_json_type(v) == RT_JSON_NUMBER && json_number_i64(v.node, out);
}

bool rt_json_double(rt_json v, double *out)
{
    if (rt_json_type(v) != RT_JSON_NUMBER)
        return false;
    double number = json_number_double(v.node);
    if (__builtin_isinf(number))
        return false;
    *out = number;
    return true;
}

bool rt_json_bool(rt_json v, bool fallback)
{
    return rt_json_type(v) == RT_JSON_BOOL ? v.node->is_true : fallback;
}

rt_json_iter rt_json_each(rt_json v)
{
    if (!is_container(v))
        return (rt_json_iter){ 0 };
    return (rt_json_iter){
        .next = v.node + 1,
        .end = json_after(v.node),
        .is_object = v.node->kind == RT_JSON_OBJECT,
    };
}

bool rt_json_next(rt_json_iter *it, rt_str *key, rt_json *value)
{
    if (it->next == it->end)
        return false;
    if (key)
        *key = it->is_object ? json_text(it->next) : RT_STR("");
    value->node = it->next + (it->is_object ? 1 : 0);
    it->next = json_after(value->node);
    return true;
}

static bool equal_arrays(const json_node *a, const json_node *b)
{
    if (a->size != b->size)
        return false;
    const json_node *end = json_after(a);
    for (a++, b++; a < end; a = json_after(a), b = json_after(b))
        if (!rt_json_equal((rt_json){ a }, (rt_json){ b }))
            return false;
    return true;
}

static bool equal_objects(const json_node *a, const json_node *b)
{
    json_members left RT_CLEANUP(json_members_done), right RT_CLEANUP(json_members_done);
    json_members_init(&left, a);
    json_members_init(&right, b);
    if (left.count != right.count)
        return false;
    for (size_t i = 0; i < left.count; i++)
        if (!rt_str_eq(json_text(left.keys[i]), json_text(right.keys[i])) ||
            !rt_json_equal((rt_json){ left.keys[i] + 1 }, (rt_json){ right.keys[i] + 1 }))
            return false;
    return true;
}

bool rt_json_equal(rt_json a, rt_json b)
{
    if (rt_json_type(a) != rt_json_type(b))
        return false;
    switch (rt_json_type(a)) {
    case RT_JSON_BOOL:
        return a.node->is_true == b.node->is_true;
    case RT_JSON_NUMBER:
        return json_number_equal(a.node, b.node);
    case RT_JSON_STRING:
        return rt_str_eq(json_text(a.node), json_text(b.node));
    case RT_JSON_ARRAY:
        return equal_arrays(a.node, b.node);
    case RT_JSON_OBJECT:
        return equal_objects(a.node, b.node);
    default:
        return true;
    }
}
