/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_headers.c - arguments that a tool wants repeated in headers (x-mcp-header), so that what lies
 * between client and server can route by them without reading bodies.
 *
 * A header that is missing or says something else is refused: otherwise whoever routed by it
 * decided about another call than the one we make.
 */
#include <stdio.h>

#include "server/mcp.h"

#define HEADER_MAX 160
#define DEPTH_MAX  16

static bool mismatch(mcp_call *c, const char *header, const char *why)
{
    return mcp_fail(c, RT_MCP_HEADER_MISMATCH, (rt_str){ 0 }, "Header mismatch: %s %s", header,
                    why);
}

static bool is_equal(rt_json value, rt_str header)
{
    int64_t here, there;
    switch (rt_json_type(value)) {
    case RT_JSON_STRING:
        return rt_str_eq(rt_json_str(value), header);
    case RT_JSON_BOOL:
        return rt_str_eq_c(header, rt_json_bool(value, false) ? "true" : "false");
    case RT_JSON_NUMBER:
        return rt_json_i64(value, &here) && rt_str_to_i64(header, &there) && here == there;
    default:
        return false;
    }
}

static bool check_one(mcp_call *c, rt_str name, rt_json value, const mcp_headers *headers)
{
    char header[HEADER_MAX];
    rt_str plain;
    snprintf(header, sizeof(header), "Mcp-Param-%.*s", (int)RT_MIN(name.len, (size_t)100),
             name.ptr);
    rt_str sent = headers->param(headers->ctx, header);
    bool has_value = !rt_json_is_absent(value) && rt_json_type(value) != RT_JSON_NULL;
    if (!has_value)
        return !sent.ptr || mismatch(c, header, "has no argument in the body");
    if (!sent.ptr)
        return mismatch(c, header, "is missing");
    if (!rt_mcp_header_decode(rt_str_trim(sent), &c->arena, &plain, NULL))
        return mismatch(c, header, "is not base64 as it claims");
    return is_equal(value, plain) || mismatch(c, header, "differs from the body");
}

static bool check_properties(mcp_call *c, rt_json schema, rt_json arguments,
                             const mcp_headers *headers, unsigned depth)
{
    rt_json_iter it = rt_json_each(rt_json_get_c(schema, "properties"));
    rt_str key;
    rt_json property;
    while (depth < DEPTH_MAX && rt_json_next(&it, &key, &property)) {
        rt_str name = rt_json_str(rt_json_get_c(property, "x-mcp-header"));
        rt_json value = rt_json_get(arguments, key);
        if (name.len > 0 && !check_one(c, name, value, headers))
            return false;
        if (!check_properties(c, property, value, headers, depth + 1))
            return false;
    }
    return true;
}

bool mcp_headers_check_arguments(mcp_call *c, const mcp_tool *tool, const mcp_headers *headers)
{
    rt_json schema;
    rt_str text = rt_str_of(tool->input);
    if (rt_str_find(text, RT_STR("x-mcp-header")) < 0)
        return true;
    return !rt_json_parse(text, &c->arena, &schema, NULL) ||
           check_properties(c, schema, rt_json_get_c(c->params, "arguments"), headers, 0);
}
