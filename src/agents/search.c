/* SPDX-License-Identifier: Apache-2.0 */
/* search.c - the agents a sentence may mean, by the search of the tools. */
#include "agents/agents_internal.h"
#include "tools/search.h"

#define HITS_MAX 100

/* Names of the input's properties, and what is said of them. */
static void add_agent(rt_search *search, const rt_agent_row *row)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_buf names RT_CLEANUP(rt_buf_done) = { 0 }, texts RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json schema, property;
    rt_str name;
    agents_json_parse(row->content.input_schema, &arena, &schema);
    rt_json_iter it = rt_json_each(rt_json_get_c(schema, "properties"));
    while (rt_json_next(&it, &name, &property)) {
        rt_buf_addf(&names, "%.*s\n", RT_FMT(name));
        rt_buf_add(&texts, rt_json_str(rt_json_get_c(property, "description")));
        rt_buf_addc(&texts, '\n');
    }
    rt_search_add(search, &(rt_search_document){ .name = row->tool_name,
                                                 .title = row->name,
                                                 .description = row->description,
                                                 .arguments = rt_buf_str(&names),
                                                 .argument_texts = rt_buf_str(&texts),
                                                 .category = row->content.language,
                                                 .usage = (double)row->usage_count });
}

bool rt_agents_search(rt_agents *a, const rt_caller *caller, rt_str query, bool is_public,
                      size_t limit, rt_arena *arena, rt_agent_row **rows, size_t *count,
                      rt_error *err)
{
    rt_search *search RT_CLEANUP(rt_search_freep) = NULL;
    rt_agent_filter filter = { .is_public = is_public ? RT_AGENT_YES : RT_AGENT_ANY,
                               .is_deprecated = RT_AGENT_NO };
    rt_search_hit hits[HITS_MAX];
    rt_agent_row *all;
    size_t total;
    if (!rt_agents_list(a, caller, &filter, arena, &all, &total, err))
        return false;
    search = rt_search_new(NULL);
    for (size_t i = 0; i < total; i++)
        add_agent(search, &all[i]);
    rt_search_build(search);
    *count = rt_search_query(search, query, hits, RT_MIN(limit, (size_t)HITS_MAX));
    *rows = rt_arena_alloc(arena, (*count + 1) * sizeof(**rows));
    for (size_t i = 0; i < *count; i++)
        (*rows)[i] = all[hits[i].document];
    return true;
}
