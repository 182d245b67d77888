/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grant.c - which tools a request asks for: by pattern, by what it intends, or all there are.
 *
 * "tools": ["github:*"] names them. An intent ("count last week's commits") grants the tools that a
 * search finds for it, the best few. Both together grant both; neither, all that the operator does.
 */
#include "engine/engine_internal.h"
#include "engine/gate.h"

#define PATTERNS_MAX 256
#define INTENT_TOOLS 5
#define INTENT_SCORE 0.6
#define GATHER_MS    10000 /* how long servers that are just starting are waited for */

static bool read_patterns(rt_json tools, rt_arena *arena, rt_patterns *out, rt_error *err)
{
    rt_str *items = rt_arena_alloc(arena, (PATTERNS_MAX + INTENT_TOOLS) * sizeof(*items));
    rt_json_iter it = rt_json_each(tools);
    rt_json item;
    *out = (rt_patterns){ .items = items };
    if (rt_json_type(tools) == RT_JSON_NULL || rt_json_is_absent(tools))
        return true;
    if (rt_json_type(tools) != RT_JSON_ARRAY || rt_json_count(tools) > PATTERNS_MAX)
        return rt_fail(err, RT_INVALID,
                       "'tools' must be a list of at most %d names or patterns such as "
                       "[\"github:*\"]",
                       PATTERNS_MAX);
    while (rt_json_next(&it, NULL, &item)) {
        rt_str text = rt_json_str(item);
        if (text.len == 0 || text.len > RT_TOOL_PATTERN_MAX)
            return rt_fail(err, RT_INVALID,
                           "'tools' must have names of 1 to %d characters, such as \"github:*\"",
                           RT_TOOL_PATTERN_MAX);
        items[out->count++] = text;
    }
    return true;
}

/* The score is that of the whole search, from 0 to 1. */
static void add_intended(rt_engine *e, const rt_request *r, rt_arena *arena, rt_patterns *out)
{
    rt_tool_hit hits[INTENT_TOOLS];
    rt_str *items = (rt_str *)out->items;
    rt_tools_gather(e->config.tools, rt_now_ns() + GATHER_MS * 1000000ull);
    size_t count = rt_tools_search_for(e->config.tools, r->caller.organisation_id, r->intent, arena,
                                       hits, INTENT_TOOLS);
    for (size_t i = 0; i < count; i++)
        if (hits[i].score >= INTENT_SCORE)
            items[out->count++] = hits[i].tool.name;
}

bool engine_grant_read(rt_engine *e, const rt_request *r, rt_arena *arena, engine_grant *out,
                       rt_error *err)
{
    bool has_list = !rt_json_is_absent(r->tools) && rt_json_type(r->tools) != RT_JSON_NULL;
    bool has_intent = r->intent.len > 0 && e->config.tools;
    *out = (engine_grant){ .is_narrowed = has_list || has_intent };
    if (!out->is_narrowed)
        return true;
    if (!read_patterns(r->tools, arena, &out->wished, err))
        return false;
    if (has_intent)
        add_intended(e, r, arena, &out->wished);
    return true;
}
