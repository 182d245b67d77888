/*
 * policy_json.c - a policy from JSON: the name of a preset, or an object that refines one.
 *
 *     "quick"
 *     {"extends": "quick", "timeout": "2s", "memory_mb": 128, "env": {"REGION": "eu"}}
 *
 * The keys are those of flags and YAML. A number may carry its unit in the key (timeout_ms,
 * memory_mb, memory_bytes), which is also how rt_policy_write() shows them, so that what was shown
 * can be sent back.
 */
#include "runtimes/runtimes_internal.h"

#include <string.h>

#define ITEMS_MAX 256 /* of one list or map */

/* "timeout_ms": 500 is "timeout": "500ms". */
static const struct {
    const char *ending, *unit;
} units[] = { { "_ms", "ms" }, { "_seconds", "s" }, { "_bytes", "" }, { "_mb", "M" } };

static bool set_number(rt_policy *p, rt_str key, rt_str number, rt_arena *arena, rt_error *err)
{
    for (size_t i = 0; i < RT_COUNT(units); i++) {
        rt_str ending = rt_str_of(units[i].ending);
        if (rt_str_ends(key, ending))
            return rt_policy_set(p, rt_str_slice(key, 0, key.len - ending.len),
                                 rt_arena_printf(arena, "%.*s%s", RT_FMT(number), units[i].unit),
                                 arena, err);
    }
    return rt_policy_set(p, key, number, arena, err);
}

/* Callers of an API must not learn which host paths exist: a path is compared as it stands with
 * those the operator allows (rt_policy_within), and never looked up. */
static bool add_read_path(rt_policy *p, rt_str path, rt_arena *arena, rt_error *err)
{
    const char *text;
    if (!rt_str_to_path(path, arena, &text, err) || path.ptr[0] != '/')
        return rt_fail(err, RT_INVALID, "policy: a read path must be absolute");
    rt_str *grown = rt_arena_alloc(arena, sizeof(*grown) * (p->read_path_count + 1));
    for (size_t i = 0; i < p->read_path_count; i++)
        grown[i] = p->read_paths[i];
    grown[p->read_path_count++] = rt_str_of(text);
    p->read_paths = grown;
    if (p->files == RT_FILES_NONE)
        p->files = RT_FILES_SANDBOXED; /* naming a path is asking for it */
    return true;
}

static bool set_items(rt_policy *p, rt_str key, rt_json items, rt_arena *arena, rt_error *err)
{
    rt_json_iter it = rt_json_each(items);
    rt_str name;
    rt_json item;
    if ((rt_json_type(items) == RT_JSON_OBJECT) != rt_str_eq_c(key, "env"))
        return rt_fail(err, RT_INVALID, "policy: '%.*s' cannot be %s",
                       (int)RT_MIN(key.len, (size_t)40), key.ptr, rt_json_type_name(items));
    if (rt_json_count(items) > ITEMS_MAX)
        return rt_fail(err, RT_LIMIT, "policy: '%.*s' has more than %d items",
                       (int)RT_MIN(key.len, (size_t)40), key.ptr, ITEMS_MAX);
    if (rt_json_count(items) == 0 && rt_str_eq_c(key, "imports"))
        return rt_policy_set(p, key, RT_STR(""), arena, err);
    while (rt_json_next(&it, &name, &item)) {
        rt_str text = rt_json_str(item);
        if (rt_json_type(item) != RT_JSON_STRING)
            return rt_fail(err, RT_INVALID, "policy: the items of '%.*s' must be strings",
                           (int)RT_MIN(key.len, (size_t)40), key.ptr);
        if (rt_json_type(items) == RT_JSON_OBJECT)
            text = rt_arena_printf(arena, "%.*s=%.*s", RT_FMT(name), RT_FMT(text));
        bool ok = rt_str_eq_c(key, "read") ? add_read_path(p, text, arena, err)
                                           : rt_policy_set(p, key, text, arena, err);
        if (!ok)
            return false;
    }
    return true;
}

static bool set_member(rt_policy *p, rt_str key, rt_json value, rt_arena *arena, rt_error *err)
{
    switch (rt_json_type(value)) {
    case RT_JSON_STRING:
        if (rt_str_eq_c(key, "read"))
            return add_read_path(p, rt_json_str(value), arena, err);
        return rt_policy_set(p, key, rt_json_str(value), arena, err);
    case RT_JSON_NUMBER:
        return set_number(p, key, rt_json_number(value), arena, err);
    case RT_JSON_ARRAY:
    case RT_JSON_OBJECT:
        return set_items(p, key, value, arena, err);
    case RT_JSON_NULL:
        return true; /* as if it were not there */
    default:
        return rt_fail(err, RT_INVALID, "policy: '%.*s' cannot be %s",
                       (int)RT_MIN(key.len, (size_t)40), key.ptr, rt_json_type_name(value));
    }
}

static bool take_preset(rt_str name, rt_policy *out, rt_error *err)
{
    const rt_policy *preset = rt_policy_preset(name);
    if (!preset)
        return rt_fail(err, RT_INVALID, "there is no policy '%.*s'; GET /v1/policies lists them",
                       (int)RT_MIN(name.len, (size_t)60), name.ptr);
    *out = *preset;
    return true;
}

bool rt_policy_read(rt_json from, rt_arena *arena, rt_policy *out, rt_error *err)
{
    rt_json_iter it = rt_json_each(from);
    rt_str key;
    rt_json value, base = rt_json_get_c(from, "extends");
    if (rt_json_type(from) == RT_JSON_STRING)
        return take_preset(rt_json_str(from), out, err);
    if (rt_json_type(from) != RT_JSON_OBJECT)
        return rt_fail(err, RT_INVALID, "policy: a preset's name or an object is expected, not %s",
                       rt_json_type_name(from));
    if (!rt_json_is_absent(base) && rt_json_type(base) != RT_JSON_STRING)
        return rt_fail(err, RT_INVALID, "policy: 'extends' must be a preset's name");
    if (!rt_json_is_absent(base) && !take_preset(rt_json_str(base), out, err))
        return false;
    while (rt_json_next(&it, &key, &value))
        if (!rt_str_eq_c(key, "extends") && !set_member(out, key, value, arena, err))
            return false;
    return true;
}
