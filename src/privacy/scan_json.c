/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan_json.c - the strings of a document, each found by its JSON pointer.
 */
#include "privacy/privacy_internal.h"

#include <stdio.h>

typedef struct json_scan {
    rt_privacy_options options;
    const rt_str *exempt;
    size_t exempt_count;
    rt_privacy_found_in found;
    void *self;
    rt_buf path;
    rt_arena arena;
} json_scan;

static void json_scan_done(json_scan *s)
{
    rt_buf_done(&s->path);
    rt_arena_done(&s->arena);
}

/* RFC 6901: "~" and "/" inside a name are "~0" and "~1". */
static void add_name(rt_buf *path, rt_str name)
{
    rt_buf_addc(path, '/');
    for (size_t i = 0; i < name.len; i++)
        if (name.ptr[i] == '~' || name.ptr[i] == '/')
            rt_buf_add(path, name.ptr[i] == '~' ? RT_STR("~0") : RT_STR("~1"));
        else
            rt_buf_addc(path, name.ptr[i]);
}

static bool is_exempt(const json_scan *s, rt_str name)
{
    for (size_t i = 0; i < s->exempt_count; i++)
        if (rt_str_eq(s->exempt[i], name))
            return true;
    return false;
}

static bool scan_string(json_scan *s, rt_str text, rt_str label, rt_error *err)
{
    rt_pii_spans spans;
    rt_arena_reset(&s->arena);
    s->options.label = label;
    if (!rt_privacy_scan(text, &s->options, &s->arena, &spans, err))
        return false;
    for (size_t i = 0; i < spans.count; i++)
        if (!s->found(s->self, rt_buf_str(&s->path), &spans.items[i], err))
            return false;
    return rt_buf_ok(&s->path, err);
}

static bool scan_value(json_scan *s, rt_json value, rt_str label, rt_error *err)
{
    rt_json_kind kind = rt_json_type(value);
    size_t length = s->path.len, index = 0;
    if (kind == RT_JSON_STRING)
        return scan_string(s, rt_json_str(value), label, err);
    if (kind != RT_JSON_ARRAY && kind != RT_JSON_OBJECT)
        return true;
    rt_json_iter it = rt_json_each(value);
    rt_str name;
    rt_json child;
    for (; rt_json_next(&it, &name, &child); index++) {
        bool is_member = kind == RT_JSON_OBJECT;
        if (is_member && is_exempt(s, name))
            continue;
        if (is_member)
            add_name(&s->path, name);
        else
            rt_buf_addf(&s->path, "/%zu", index);
        if (!scan_value(s, child, is_member ? name : label, err))
            return false;
        s->path.len = length;
    }
    return true;
}

bool rt_privacy_scan_json(rt_json doc, const rt_privacy_options *options, const rt_str *exempt,
                          size_t exempt_count, rt_privacy_found_in found, void *self, rt_error *err)
{
    json_scan s RT_CLEANUP(json_scan_done) = { .options = *options,
                                               .exempt = exempt,
                                               .exempt_count = exempt_count,
                                               .found = found,
                                               .self = self };
    return scan_value(&s, doc, options->label, err);
}
