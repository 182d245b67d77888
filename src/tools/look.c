/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look.c - looking around in a catalogue: what a sentence may mean, what goes together, and a
 * category's tools in a few lines.
 */
#include <stdlib.h>

#include "tools/tools_internal.h"

enum { BROWSE_TEXT_MAX = 120 };

/* -- Searching --------------------------------------------------------------------------------- */

/* A file may have a name twice; who asks wants each once. */
static bool is_there(const rt_tool_hit *hits, size_t count, rt_str name)
{
    for (size_t i = 0; i < count; i++)
        if (rt_str_eq(hits[i].tool.name, name))
            return true;
    return false;
}

/* How many tools are not for everybody: so many may stand before one that is. */
static size_t count_private(const tools_catalogue *c)
{
    size_t count = 0;
    for (size_t i = 0; i < c->count; i++)
        count += c->tools[i].audience.len > 0;
    return count;
}

size_t rt_tools_search(rt_tools *t, rt_str query, rt_arena *arena, rt_tool_hit *hits, size_t max)
{
    return rt_tools_search_for(t, (rt_str){ 0 }, query, arena, hits, max);
}

size_t rt_tools_search_for(rt_tools *t, rt_str audience, rt_str query, rt_arena *arena,
                           rt_tool_hit *hits, size_t max)
{
    tools_catalogue *c RT_CLEANUP(tools_catalogue_dropp) = tools_current(t);
    const rt_search *search = tools_index_of(t, c);
    size_t spare = RT_MIN(max + 16 + count_private(c), c->count), count = 0;
    rt_search_hit *found = rt_arena_alloc(arena, (spare + 1) * sizeof(*found));
    size_t found_count = rt_search_query(search, query, found, spare);
    for (size_t i = 0; i < found_count && count < max; i++) {
        const rt_search_hit *f = &found[i];
        const rt_tool *tool = &c->tools[f->document];
        if (!tools_is_for(tool, audience) || is_there(hits, count, tool->name))
            continue;
        hits[count] = (rt_tool_hit){
            .score = f->score, .lexical = f->lexical, .semantic = f->semantic, .usage = f->usage
        };
        tools_copy(tool, false, arena, &hits[count++].tool);
    }
    return count;
}

/* Of another organisation's tools not even the names are told. */
size_t rt_tools_related(rt_tools *t, rt_str audience, rt_str name, rt_arena *arena,
                        rt_tool_related *out, size_t max)
{
    enum { ASKED_MAX = 64 };
    rt_tool_related all[ASKED_MAX];
    tools_catalogue *c RT_CLEANUP(tools_catalogue_dropp) = tools_current(t);
    size_t found = tools_sequences_related(tools_sequences_of(t), name, arena, all, ASKED_MAX);
    size_t count = 0;
    for (size_t i = 0; i < found && count < max; i++)
        if (tools_catalogue_find(c, audience, all[i].name))
            out[count++] = all[i];
    return count;
}

static int by_score(const void *a, const void *b)
{
    const rt_tool_hit *x = a, *y = b;
    return x->score < y->score   ? 1
           : x->score > y->score ? -1
                                 : rt_str_cmp(x->tool.name, y->tool.name);
}

static double weight_of(size_t edges, size_t tools)
{
    double pairs = (double)tools * (double)(tools > 0 ? tools - 1 : 0);
    double density = pairs > 0 ? (double)edges / pairs : 0;
    return RT_MAX(0.5, 1 - 2 * density);
}

size_t rt_tools_search_with(rt_tools *t, rt_str audience, rt_str query, const rt_str *context,
                            size_t context_count, rt_arena *arena, rt_tool_hit *hits, size_t max,
                            rt_tool_graph *graph)
{
    enum { MORE = 10 }; /* that the graph may lift onto the list */
    rt_tool_hit *found = rt_arena_alloc(arena, (max + MORE) * sizeof(*found));
    size_t count = rt_tools_search_for(t, audience, query, arena, found, max + MORE);
    tools_catalogue *c RT_CLEANUP(tools_catalogue_dropp) = tools_current(t);
    graph->edges = tools_sequences_count(tools_sequences_of(t));
    graph->alpha = weight_of(graph->edges, c->count);
    for (size_t i = 0; i < count; i++) {
        rt_tool_hit *h = &found[i];
        h->graph = context_count > 0 ? tools_sequences_score(tools_sequences_of(t), h->tool.name,
                                                             context, context_count)
                                     : h->usage;
        h->score = graph->alpha * h->score + (1 - graph->alpha) * h->graph;
    }
    qsort(found, count, sizeof(*found), by_score);
    count = RT_MIN(count, max);
    memcpy(hits, found, count * sizeof(*hits));
    return count;
}

/* -- Browsing ---------------------------------------------------------------------------------- */

static rt_str first_sentence(rt_str text, size_t most)
{
    ptrdiff_t stop = rt_str_find(text, RT_STR(". ")), line = rt_str_find(text, RT_STR("\n"));
    size_t end = text.len;
    end = stop >= 0 ? RT_MIN(end, (size_t)stop) : end;
    end = line >= 0 ? RT_MIN(end, (size_t)line) : end;
    end = RT_MIN(end, most);
    while (end > 0 && end < text.len && (text.ptr[end] & 0xc0) == 0x80)
        end--;
    return rt_str_slice(text, 0, end);
}

typedef struct line {
    rt_str name, text;
} line;

/* Names come first; what is left of the room goes to the descriptions, shared out evenly. */
static rt_str lay_out(const line *lines, size_t count, rt_arena *arena)
{
    enum { TAIL = 64 };
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    size_t names = 0, shown = 0;
    while (shown < count && names + lines[shown].name.len + 1 < RT_TOOLS_BROWSE_MAX - TAIL)
        names += lines[shown++].name.len + 1;
    size_t room = shown ? (RT_TOOLS_BROWSE_MAX - TAIL - names) / shown : 0;
    for (size_t i = 0; i < shown; i++) {
        rt_buf_add(&text, lines[i].name);
        if (room > 12 && lines[i].text.len > 0)
            rt_buf_addf(
                &text, ": %.*s",
                RT_FMT(first_sentence(lines[i].text, RT_MIN(room - 2, (size_t)BROWSE_TEXT_MAX))));
        rt_buf_addc(&text, '\n');
    }
    if (shown < count)
        rt_buf_addf(&text, "and %zu more; search for what you need\n", count - shown);
    return rt_arena_str(arena, rt_buf_str(&text));
}

static int by_line_name(const void *a, const void *b)
{
    return rt_str_cmp(((const line *)a)->name, ((const line *)b)->name);
}

static size_t gather_categories(const tools_catalogue *c, rt_arena *arena, line *lines)
{
    size_t count = 0, all = 0;
    for (size_t i = 0; i < c->count; i++)
        if (tools_is_for(&c->tools[i], (rt_str){ 0 }))
            lines[all++].name = c->tools[i].category;
    qsort(lines, all, sizeof(*lines), by_line_name);
    for (size_t i = 0, next; i < all; i = next) {
        for (next = i + 1; next < all && rt_str_eq(lines[next].name, lines[i].name);)
            next++;
        lines[count++] = (line){ lines[i].name, rt_arena_printf(arena, "%zu tools", next - i) };
    }
    return count;
}

rt_str rt_tools_browse(rt_tools *t, rt_str category, rt_arena *arena)
{
    tools_catalogue *c RT_CLEANUP(tools_catalogue_dropp) = tools_current(t);
    line *lines = rt_arena_alloc(arena, (c->count + 1) * sizeof(*lines));
    size_t count = 0;
    if (category.len == 0)
        return lay_out(lines, gather_categories(c, arena, lines), arena);
    for (size_t i = 0; i < c->count; i++)
        if (tools_is_for(&c->tools[i], (rt_str){ 0 }) && rt_str_eq(category, c->tools[i].category))
            lines[count++] = (line){ c->tools[i].name, c->tools[i].description };
    return lay_out(lines, count, arena);
}
