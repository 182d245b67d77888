/* SPDX-License-Identifier: Apache-2.0 */
/* tools_view.c - see tools_view.h. The names are those of search_tools in requirements 6.1. */
#include "server/tools_view.h"

#define RELATED_MAX 5

/* Three digits: more cost a model tokens and tell it nothing. */
static void write_score(rt_json_writer *w, const char *key, double score)
{
    rt_jw_kdouble(w, key, (double)(int64_t)(score * 1000 + 0.5) / 1000);
}

static void write_related(rt_tools *tools, rt_str audience, rt_str name, rt_arena *arena,
                          rt_json_writer *w)
{
    rt_tool_related related[RELATED_MAX];
    size_t count = rt_tools_related(tools, audience, name, arena, related, RT_COUNT(related));
    rt_jw_karray(w, "related_tools");
    for (size_t i = 0; i < count; i++) {
        rt_jw_object(w);
        rt_jw_kstr(w, "tool_id", related[i].name);
        rt_jw_kstr(w, "relation",
                   related[i].is_before ? RT_STR("often_before") : RT_STR("often_after"));
        write_score(w, "score", related[i].score);
        rt_jw_end(w);
    }
    rt_jw_end(w);
}

void tools_write_search(rt_tools *tools, rt_str audience, rt_str query, const rt_str *context,
                        size_t context_count, size_t limit, bool has_related, rt_arena *arena,
                        rt_json_writer *w)
{
    rt_tool_hit hits[TOOLS_SEARCH_MAX];
    rt_tool_graph graph = { .alpha = 1 };
    size_t count = 0;
    if (tools) {
        rt_tools_gather(tools, rt_now_ns() + TOOLS_GATHER_MS * 1000000ull);
        count = rt_tools_search_with(tools, audience, query, context, context_count, arena, hits,
                                     RT_MIN(limit, RT_COUNT(hits)), &graph);
    }
    rt_jw_object(w);
    rt_jw_karray(w, "tools");
    for (size_t i = 0; i < count; i++) {
        rt_jw_object(w);
        rt_jw_kstr(w, "tool_id", hits[i].tool.name);
        rt_jw_kstr(w, "server_id", hits[i].tool.server);
        rt_jw_kstr(w, "description", hits[i].tool.description);
        write_score(w, "semantic_score", hits[i].semantic);
        write_score(w, "graph_score", hits[i].graph);
        write_score(w, "final_score", hits[i].score);
        if (has_related)
            write_related(tools, audience, hits[i].tool.name, arena, w);
        rt_jw_end(w);
    }
    rt_jw_end(w);
    rt_jw_kobject(w, "meta");
    rt_jw_kstr(w, "query", query);
    rt_jw_ku64(w, "count", count);
    write_score(w, "alpha", graph.alpha);
    rt_jw_ku64(w, "edge_count", graph.edges);
    rt_jw_end(w);
    rt_jw_end(w);
}
