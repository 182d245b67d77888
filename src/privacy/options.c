/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - how to scan, read from the members of a JSON object.
 */
#include "privacy/privacy_internal.h"

static bool read_types(rt_json value, uint32_t *out, rt_error *err)
{
    rt_json_iter it = rt_json_each(value);
    rt_json name;
    if (rt_json_type(value) == RT_JSON_STRING)
        return rt_pii_types_parse(rt_json_str(value), out, err);
    if (rt_json_type(value) != RT_JSON_ARRAY)
        return rt_fail(err, RT_INVALID, "'types' must be an array such as [\"EMAIL\", \"PHONE\"]");
    while (rt_json_next(&it, NULL, &name)) {
        uint32_t one;
        if (rt_json_type(name) != RT_JSON_STRING)
            return rt_fail(err, RT_INVALID, "'types' holds names, not %s", rt_json_type_name(name));
        if (!rt_pii_types_parse(rt_json_str(name), &one, err))
            return false;
        *out |= one;
    }
    return true;
}

static bool read_score(rt_json value, unsigned char *out, rt_error *err)
{
    double score;
    if (!rt_json_double(value, &score) || !(score >= 0.01 && score <= 1))
        return rt_fail(err, RT_INVALID,
                       "'min_score' must be a number from 0.01 to 1, or an object of such numbers "
                       "by type");
    *out = (unsigned char)(score * 100 + 0.5);
    return true;
}

static bool read_scores(rt_json value, rt_privacy_options *out, rt_error *err)
{
    rt_json_iter it = rt_json_each(value);
    rt_str name;
    rt_json score;
    if (rt_json_type(value) != RT_JSON_OBJECT) {
        unsigned char least = 0;
        if (!read_score(value, &least, err))
            return false;
        memset(out->min_score, least, sizeof(out->min_score));
        return true;
    }
    while (rt_json_next(&it, &name, &score)) {
        uint32_t types;
        if (!rt_pii_types_parse(name, &types, err) || types == 0)
            return rt_wrap(err, "min_score");
        if (!read_score(score, &out->min_score[__builtin_ctz(types)], err))
            return false;
    }
    return true;
}

static bool read_patterns(rt_json value, rt_privacy_options *out, rt_privacy_patterns **patterns,
                          rt_error *err)
{
    rt_json_iter it = rt_json_each(value);
    rt_str name;
    rt_json regex;
    unsigned type;
    if (rt_json_type(value) != RT_JSON_OBJECT)
        return rt_fail(err, RT_INVALID,
                       "'patterns' must be an object such as {\"BADGE\": \"B-\\\\d{4}\"}");
    if (!*patterns && !rt_privacy_patterns_new(patterns, err))
        return false;
    out->patterns = *patterns;
    while (rt_json_next(&it, &name, &regex)) {
        if (rt_json_type(regex) != RT_JSON_STRING)
            return rt_fail(err, RT_INVALID, "pattern '%.*s' must be a string",
                           (int)RT_MIN(name.len, (size_t)40), name.ptr);
        if (!rt_privacy_patterns_add(*patterns, name, rt_json_str(regex), &type, err))
            return false;
    }
    return true;
}

static bool is_given(rt_json value)
{
    return !rt_json_is_absent(value) && rt_json_type(value) != RT_JSON_NULL;
}

bool rt_privacy_options_read(rt_json object, rt_privacy_options *out,
                             rt_privacy_patterns **patterns, rt_error *err)
{
    rt_json types = rt_json_get_c(object, "types"), scores = rt_json_get_c(object, "min_score"),
            own = rt_json_get_c(object, "patterns");
    uint32_t chosen = 0;
    if (is_given(types)) {
        if (!read_types(types, &chosen, err))
            return false;
        out->types = chosen | ~(RT_PII_BIT(RT_PII_BUILTIN) - 1); /* and own patterns */
    }
    return (!is_given(scores) || read_scores(scores, out, err)) &&
           (!is_given(own) || read_patterns(own, out, patterns, err));
}
