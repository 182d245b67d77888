/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalogue.c - all tools at one moment.
 *
 * A catalogue never changes: when a provider's list does, another one takes its place, and whoever
 * reads the old one keeps it until done. So nobody who looks around waits for a provider. The
 * search index is made by the first question, since most catalogues of a starting daemon are
 * replaced before anybody asks.
 */
#include <pthread.h>
#include <stdlib.h>

#include "tools/tools_internal.h"

enum { SCHEMA_DEPTH = 6 };

static void *zeroed(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size);
    if (!p)
        rt_out_of_memory(count * size);
    return p;
}

tools_list *tools_list_new(void)
{
    tools_list *list = zeroed(1, sizeof(*list));
    list->refs = 1;
    return list;
}

void tools_list_drop(tools_list *list)
{
    if (!list || atomic_fetch_sub(&list->refs, 1) != 1)
        return;
    rt_arena_done(&list->arena);
    free(list);
}

static int by_name(const void *a, const void *b)
{
    const rt_tool *x = a, *y = b;
    int order = rt_str_cmp(x->name, y->name);
    return order ? order : rt_str_cmp(x->audience, y->audience);
}

static uint64_t fingerprint(const tools_catalogue *c)
{
    static const rt_hash_key key = { 0x72746f6f6c73, 0x76657273696f6e };
    uint64_t sum = c->count;
    for (size_t i = 0; i < c->count; i++)
        sum = sum * 31 +
              (rt_hash(&key, c->tools[i].name) ^ (rt_hash(&key, c->tools[i].version) << 1));
    return sum;
}

tools_catalogue *tools_catalogue_new(tools_list **lists, size_t count)
{
    tools_catalogue *c = zeroed(1, sizeof(*c));
    c->refs = 1;
    c->lists = zeroed(count, sizeof(*c->lists));
    c->list_count = count;
    pthread_mutex_init(&c->lock, NULL);
    for (size_t i = 0; i < count; i++) {
        c->lists[i] = lists[i];
        atomic_fetch_add(&lists[i]->refs, 1);
        c->count += lists[i]->count;
    }
    c->tools = zeroed(c->count, sizeof(*c->tools));
    for (size_t i = 0, at = 0; i < count; at += lists[i++]->count)
        if (lists[i]->count > 0)
            memcpy(c->tools + at, lists[i]->tools, lists[i]->count * sizeof(*c->tools));
    qsort(c->tools, c->count, sizeof(*c->tools), by_name);
    c->fingerprint = fingerprint(c);
    return c;
}

tools_catalogue *tools_catalogue_hold(tools_catalogue *c)
{
    atomic_fetch_add(&c->refs, 1);
    return c;
}

void tools_catalogue_dropp(tools_catalogue **catalogue)
{
    tools_catalogue *c = RT_TAKE(*catalogue);
    if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
        return;
    for (size_t i = 0; i < c->list_count; i++)
        tools_list_drop(c->lists[i]);
    rt_search_free(c->search);
    pthread_mutex_destroy(&c->lock);
    free(c->lists);
    free(c->tools);
    free(c);
}

bool tools_is_for(const rt_tool *tool, rt_str audience)
{
    return tool->audience.len == 0 || rt_str_eq(tool->audience, audience);
}

const rt_tool *tools_catalogue_find(const tools_catalogue *c, rt_str audience, rt_str name)
{
    rt_tool wanted = { .name = name, .audience = audience };
    const rt_tool *own = bsearch(&wanted, c->tools, c->count, sizeof(*c->tools), by_name);
    wanted.audience = (rt_str){ 0 };
    return own ? own : bsearch(&wanted, c->tools, c->count, sizeof(*c->tools), by_name);
}

/* Letters and digits in lower case, one at a time; 0 at the end. The colon is a letter here. */
static int next_letter(rt_str text, size_t *at)
{
    while (*at < text.len && (text.ptr[*at] == '_' || text.ptr[*at] == '-'))
        ++*at;
    if (*at == text.len)
        return 0;
    int c = (unsigned char)text.ptr[(*at)++];
    return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

bool tools_same_name(rt_str a, rt_str b)
{
    size_t i = 0, j = 0;
    for (;;) {
        int x = next_letter(a, &i), y = next_letter(b, &j);
        if (x != y)
            return false;
        if (x == 0)
            return true;
    }
}

const rt_tool *tools_catalogue_mean(const tools_catalogue *c, rt_str audience, rt_str written)
{
    const rt_tool *exact = tools_catalogue_find(c, audience, written);
    for (size_t i = 0; !exact && i < c->count; i++)
        if (tools_is_for(&c->tools[i], audience) && tools_same_name(c->tools[i].name, written))
            return &c->tools[i];
    return exact;
}

void tools_copy(const rt_tool *from, bool with_schemas, rt_arena *arena, rt_tool *to)
{
    *to = (rt_tool){ .name = rt_arena_str(arena, from->name),
                     .server = rt_arena_str(arena, from->server),
                     .title = rt_arena_str(arena, from->title),
                     .description = rt_arena_str(arena, from->description),
                     .category = rt_arena_str(arena, from->category),
                     .version = rt_arena_str(arena, from->version),
                     .flags = from->flags,
                     .audience = rt_arena_str(arena, from->audience) };
    if (with_schemas) {
        to->input_schema = rt_arena_str(arena, from->input_schema);
        to->output_schema = rt_arena_str(arena, from->output_schema);
    }
}

/* -- The index --------------------------------------------------------------------------------- */

/* Names and descriptions of a schema's properties, and of theirs. */
static void read_properties(rt_json schema, unsigned depth, rt_buf *names, rt_buf *texts)
{
    rt_json_iter it = rt_json_each(rt_json_get_c(schema, "properties"));
    rt_str key;
    rt_json value;
    if (depth == SCHEMA_DEPTH)
        return;
    while (rt_json_next(&it, &key, &value)) {
        rt_buf_add(names, key);
        rt_buf_addc(names, '\n');
        rt_buf_add(texts, rt_json_str(rt_json_get_c(value, "description")));
        rt_buf_addc(texts, '\n');
        read_properties(value, depth + 1, names, texts);
        read_properties(rt_json_get_c(value, "items"), depth + 1, names, texts);
    }
}

/* The tool's own part of its name, for tools whose name begins with their server's. */
static rt_str own_name(const rt_tool *t)
{
    bool has_server =
        t->server.len > 0 && t->name.len > t->server.len + 1 && rt_str_starts(t->name, t->server);
    return has_server ? rt_str_slice(t->name, t->server.len + 1, t->name.len) : t->name;
}

static void add_document(rt_search *search, const rt_tool *t, double uses)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_buf names RT_CLEANUP(rt_buf_done) = { 0 }, texts RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json schema = { 0 };
    if (t->input_schema.len > 0 &&
        rt_json_parse(t->input_schema, &arena, &schema, &(rt_error){ 0 }))
        read_properties(schema, 0, &names, &texts);
    bool is_imported = rt_str_eq_c(t->server, TOOLS_IMPORTED);
    rt_search_add(search, &(rt_search_document){ .name = own_name(t),
                                                 .title = t->title,
                                                 .description = t->description,
                                                 .arguments = rt_buf_str(&names),
                                                 .argument_texts = rt_buf_str(&texts),
                                                 .category = t->category,
                                                 .server = is_imported ? RT_STR("") : t->server,
                                                 .usage = uses });
}

static rt_search *make_index(const tools_catalogue *c, tools_counts *counts,
                             const rt_embedder *embedder)
{
    rt_search *search = rt_search_new(&(rt_search_options){ .embedder = embedder });
    double *uses = zeroed(c->count, sizeof(*uses));
    tools_counts_all(counts, c->tools, c->count, uses);
    for (size_t i = 0; i < c->count; i++)
        add_document(search, &c->tools[i], uses[i]);
    rt_search_build(search);
    free(uses);
    return search;
}

const rt_search *tools_catalogue_search(tools_catalogue *c, tools_counts *counts,
                                        const rt_embedder *embedder)
{
    pthread_mutex_lock(&c->lock);
    if (!c->search)
        c->search = make_index(c, counts, embedder);
    pthread_mutex_unlock(&c->lock);
    return c->search;
}
