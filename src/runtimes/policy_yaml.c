/*
 * policy_yaml.c - a policy from YAML text.
 *
 *     extends: quick          # a preset; without it, default
 *     timeout: 10s
 *     memory: 256M
 *     read: [/srv/data]
 *     env: { REGION: eu }
 *
 * The text is read twice, for the preset and for what refines it, so that their order does not
 * matter.
 */
#include "runtimes/runtimes_internal.h"

typedef struct refinement {
    rt_arena *arena;
    rt_policy *policy;
    bool is_first_pass; /* looks for the preset only */
} refinement;

static unsigned shapes_of(rt_str key)
{
    if (rt_str_eq_c(key, "env"))
        return YAML_PLAIN | YAML_LIST | YAML_MAP;
    return rt_str_eq_c(key, "read") || rt_str_eq_c(key, "imports") ? YAML_PLAIN | YAML_LIST
                                                                   : YAML_PLAIN;
}

static bool set(void *ctx, rt_str key, rt_str value, size_t line, rt_error *err)
{
    refinement *r = ctx;
    bool is_extends = rt_str_eq_c(key, "extends");
    if (is_extends && r->is_first_pass) {
        const rt_policy *base = rt_policy_preset(value);
        if (!base)
            return rt_fail(err, RT_NOT_FOUND, "policy: line %zu: there is no preset '%.*s'", line,
                           (int)RT_MIN(value.len, (size_t)40), value.ptr);
        *r->policy = *base;
    }
    if (is_extends || r->is_first_pass)
        return true;
    return rt_policy_set(r->policy, key, value, r->arena, err) || rt_wrap(err, "line %zu", line);
}

/* An empty list of imports is a list all the same: nothing may be imported. */
static bool open_list(void *ctx, rt_str key, rt_error *err)
{
    return !rt_str_eq_c(key, "imports") || set(ctx, key, RT_STR(""), 0, err);
}

bool rt_policy_parse(rt_str yaml, rt_arena *arena, rt_policy *out, rt_error *err)
{
    static const yaml_form form = {
        .what = "policy", .shapes = shapes_of, .set = set, .open_list = open_list
    };
    rt_policy policy = *rt_policy_preset(RT_STR("default"));
    refinement preset = { arena, &policy, true }, rest = { arena, &policy, false };
    if (!runtimes_yaml_read(yaml, &form, &preset, arena, err) ||
        !runtimes_yaml_read(yaml, &form, &rest, arena, err))
        return false;
    *out = policy;
    return true;
}
