/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_tools.c - a server's tools as ours, and the result of a call.
 *
 * A tool that breaks the protocol's rules is left out and counted; the others stay. A list has an
 * end: so many pages, so many tools, and no page twice.
 */
#include "tools/mcp_internal.h"

#include <strings.h>

enum {
    PAGES_MAX = 1000,
    TOOLS_MAX = 10000,
    NAME_MAX_BYTES = 128,
    DEPTH_MAX = 16,  /* of mirrored properties */
    SEARCH_MAX = 64, /* of schemas looked through for annotations */
};
#define LIST_MAX ((size_t)128 << 20) /* bytes of all pages */

/* -- Arguments that are headers too ------------------------------------------------------------ */

static bool is_token(rt_str s)
{
    static const char more[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       memchr(more, c, sizeof(more) - 1);
        if (!is_good)
            return false;
    }
    return s.len > 0;
}

static bool is_mirrorable(rt_json schema)
{
    rt_str type = rt_json_str(rt_json_get_c(schema, "type"));
    return rt_str_eq_c(type, "string") || rt_str_eq_c(type, "integer") ||
           rt_str_eq_c(type, "boolean");
}

static bool is_mirrored(const mcp_mirror *list, rt_str header)
{
    for (; list; list = list->next)
        if (list->header.len == header.len &&
            strncasecmp(list->header.ptr, header.ptr, header.len) == 0)
            return true;
    return false;
}

typedef struct walk {
    rt_arena *arena;
    rt_str path[DEPTH_MAX];
    size_t depth;
    mcp_mirror *found;
    size_t count;
} walk;

static bool add_mirror(walk *w, rt_json schema, rt_json name)
{
    rt_str header = rt_arena_printf(w->arena, "Mcp-Param-%.*s", RT_FMT(rt_json_str(name)));
    if (!is_token(rt_json_str(name)) || !is_mirrorable(schema) || is_mirrored(w->found, header))
        return false;
    mcp_mirror *mirror = rt_arena_alloc(w->arena, sizeof(*mirror));
    rt_str *path = rt_arena_alloc(w->arena, w->depth * sizeof(*path));
    for (size_t i = 0; i < w->depth; i++)
        path[i] = rt_arena_str(w->arena, w->path[i]);
    *mirror = (mcp_mirror){ .header = header, .path = path, .depth = w->depth, .next = w->found };
    w->found = mirror;
    w->count++;
    return true;
}

static bool walk_properties(walk *w, rt_json schema)
{
    rt_json_iter it = rt_json_each(rt_json_get_c(schema, "properties"));
    rt_str key;
    rt_json property;
    while (it.is_object && rt_json_next(&it, &key, &property)) {
        rt_json name = rt_json_get_c(property, "x-mcp-header");
        if (w->depth == DEPTH_MAX)
            return true; /* deeper ones are counted below, and missed here: refused */
        w->path[w->depth++] = key;
        bool is_good = (rt_json_is_absent(name) || add_mirror(w, property, name)) &&
                       walk_properties(w, property);
        w->depth--;
        if (!is_good)
            return false;
    }
    return true;
}

/* Annotations anywhere in the schema; in "properties" such a key is a property's name. */
static size_t count_annotations(rt_json v, bool is_properties, unsigned depth)
{
    size_t count = 0;
    rt_json_iter it = rt_json_each(v);
    rt_str key;
    rt_json child;
    if (depth == SEARCH_MAX || rt_json_type(v) < RT_JSON_ARRAY)
        return 0;
    while (rt_json_next(&it, &key, &child)) {
        bool is_object = rt_json_type(v) == RT_JSON_OBJECT;
        if (is_object && !is_properties && rt_str_eq_c(key, "x-mcp-header"))
            count++;
        count += count_annotations(
            child, is_object && !is_properties && rt_str_eq_c(key, "properties"), depth + 1);
    }
    return count;
}

static bool find_mirrors(rt_json schema, rt_arena *arena, mcp_mirror **out)
{
    walk w = { .arena = arena };
    size_t count = count_annotations(schema, false, 0);
    if (count == 0)
        return true;
    if (!walk_properties(&w, schema) || w.count != count)
        return false;
    *out = w.found;
    return true;
}

static void put_value(rt_json value, rt_buf *out)
{
    int64_t number;
    if (rt_json_type(value) == RT_JSON_STRING)
        rt_mcp_header_encode(rt_json_str(value), out);
    else if (rt_json_i64(value, &number))
        rt_buf_addf(out, "%lld", (long long)number);
    else
        rt_json_print(value, out);
}

bool mcp_mirror_lines(const mcp_mirror *mirror, rt_str arguments, rt_arena *arena,
                      const char *const **out, rt_error *err)
{
    size_t count = 0, used = 0;
    rt_json doc = { 0 };
    if (arguments.len && !rt_json_parse(arguments, arena, &doc, err))
        return rt_wrap(err, "the arguments");
    for (const mcp_mirror *m = mirror; m; m = m->next)
        count++;
    const char **lines = rt_arena_alloc(arena, (count + 1) * sizeof(*lines));
    for (const mcp_mirror *m = mirror; m; m = m->next) {
        rt_buf value RT_CLEANUP(rt_buf_done) = { .max = 64 << 10 };
        rt_json at = doc;
        for (size_t i = 0; i < m->depth; i++)
            at = rt_json_get(at, m->path[i]);
        rt_json_kind kind = rt_json_type(at);
        if (kind != RT_JSON_STRING && kind != RT_JSON_NUMBER && kind != RT_JSON_BOOL)
            continue;
        put_value(at, &value);
        if (!rt_buf_ok(&value, err))
            return rt_wrap(err, "an argument that is a header too");
        lines[used++] = value.len ? rt_arena_printf(arena, "%.*s: %.*s", RT_FMT(m->header),
                                                    RT_FMT(rt_buf_str(&value)))
                                        .ptr
                                  : rt_arena_printf(arena, "%.*s;", RT_FMT(m->header)).ptr;
    }
    *out = lines;
    return true;
}

/* -- The list ---------------------------------------------------------------------------------- */

static bool is_name(rt_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || c == '.' || c == '/';
        if (!is_good)
            return false;
    }
    return name.len > 0 && name.len <= NAME_MAX_BYTES;
}

/* What is not known to be harmless has effects: its runs are not answered from the cache. */
static unsigned flags_of(rt_json annotations)
{
    static const struct {
        const char *hint;
        unsigned flag;
    } hints[] = {
        { "readOnlyHint", RT_TOOL_READ_ONLY },
        { "destructiveHint", RT_TOOL_DESTRUCTIVE },
        { "idempotentHint", RT_TOOL_IDEMPOTENT },
        { "openWorldHint", RT_TOOL_OPEN_WORLD },
    };
    unsigned flags = 0;
    for (size_t i = 0; i < RT_COUNT(hints); i++)
        if (rt_json_bool(rt_json_get_c(annotations, hints[i].hint), false))
            flags |= hints[i].flag;
    if (flags & RT_TOOL_READ_ONLY)
        return flags & ~(unsigned)RT_TOOL_DESTRUCTIVE;
    return flags | RT_TOOL_SIDE_EFFECT;
}

static rt_str printed(rt_json v, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { .max = MCP_MESSAGE_MAX };
    if (rt_json_is_absent(v) || rt_json_type(v) == RT_JSON_NULL)
        return (rt_str){ "", 0 };
    rt_json_print(v, &text);
    return rt_arena_str(arena, rt_buf_str(&text));
}

typedef struct listing {
    mcp_session *session;
    rt_arena *arena;
    mcp_tool_list list;
    size_t cap, bytes;
    bool has_mirrors; /* this server wants them */
} listing;

static bool is_listed(const listing *l, rt_str full_name)
{
    for (size_t i = 0; i < l->list.count; i++)
        if (rt_str_eq(l->list.tools[i].name, full_name))
            return true;
    return false;
}

static void grow(listing *l)
{
    size_t cap = l->cap ? l->cap * 2 : 32;
    l->list.tools =
        rt_arena_resize(l->arena, l->list.tools, l->cap * sizeof(rt_tool), cap * sizeof(rt_tool));
    l->list.mirrors = rt_arena_resize(l->arena, l->list.mirrors, l->cap * sizeof(mcp_mirror *),
                                      cap * sizeof(mcp_mirror *));
    l->cap = cap;
}

static bool read_tool(listing *l, rt_json tool, rt_tool *out, mcp_mirror **mirrors)
{
    rt_arena *arena = l->arena;
    rt_str name = rt_json_str(rt_json_get_c(tool, "name"));
    rt_str server = mcp_client_config(l->session->client)->name;
    rt_json input = rt_json_get_c(tool, "inputSchema"), notes = rt_json_get_c(tool, "annotations");
    rt_str title = rt_json_str(rt_json_get_c(tool, "title"));
    rt_json output = rt_json_get_c(tool, "outputSchema");
    if (!is_name(name) || rt_json_type(input) != RT_JSON_OBJECT)
        return false;
    if (l->has_mirrors && !find_mirrors(input, arena, mirrors))
        return false;
    *out = (rt_tool){
        .name = rt_arena_printf(arena, "%.*s:%.*s", RT_FMT(server), RT_FMT(name)),
        .server = rt_arena_str(arena, server),
        .title =
            rt_arena_str(arena, title.len ? title : rt_json_str(rt_json_get_c(notes, "title"))),
        .description = rt_arena_str(arena, rt_json_str(rt_json_get_c(tool, "description"))),
        .category = RT_STR(""),
        .version = rt_arena_str(arena, rt_str_of(l->session->server_version)),
        .input_schema = printed(input, arena),
        .output_schema =
            rt_json_type(output) == RT_JSON_OBJECT ? printed(output, arena) : (rt_str){ "", 0 },
        .flags = flags_of(notes),
    };
    return !is_listed(l, out->name);
}

static bool add_tools(listing *l, rt_json tools, rt_error *err)
{
    rt_json_iter it = rt_json_each(tools);
    rt_json tool;
    if (rt_json_type(tools) != RT_JSON_ARRAY)
        return rt_fail(err, RT_INVALID, "its list of tools is no array but %s",
                       rt_json_type_name(tools));
    while (rt_json_next(&it, NULL, &tool)) {
        if (l->list.count == TOOLS_MAX)
            return rt_fail(err, RT_LIMIT, "it has more than %d tools", TOOLS_MAX);
        if (l->list.count == l->cap)
            grow(l);
        mcp_mirror *mirrors = NULL;
        bool is_good = read_tool(l, tool, &l->list.tools[l->list.count], &mirrors);
        l->list.mirrors[l->list.count] = mirrors;
        l->list.count += is_good;
        l->list.skipped += !is_good;
    }
    return true;
}

static bool read_page(listing *l, rt_str members, mcp_patience *p, rt_arena *page, rt_json *cursor,
                      rt_error *err)
{
    mcp_reply reply RT_CLEANUP(mcp_reply_done) = { 0 };
    mcp_request request = { .method = RT_STR("tools/list"), .members = members };
    rt_json result;
    if (!mcp_session_request(l->session, &request, p, &reply, page, &result, err))
        return false;
    l->bytes += reply.text.len;
    if (l->bytes > LIST_MAX)
        return rt_fail(err, RT_LIMIT, "its list of tools is longer than 128 MiB");
    *cursor = rt_json_get_c(result, "nextCursor");
    return add_tools(l, rt_json_get_c(result, "tools"), err);
}

/* Every cursor is looked up among those before it, by hash: pages may be a thousand. */
typedef struct cursors {
    rt_hash_key key;
    uint64_t seen[PAGES_MAX];
    size_t count;
} cursors;

static bool was_seen(cursors *c, rt_str cursor)
{
    uint64_t hash = rt_hash(&c->key, cursor);
    for (size_t i = 0; i < c->count; i++)
        if (c->seen[i] == hash)
            return true;
    c->seen[c->count++] = hash;
    return false;
}

bool mcp_tools_list(mcp_session *s, mcp_patience *p, rt_arena *arena, mcp_tool_list *out,
                    rt_error *err)
{
    const rt_mcp_config *config = mcp_client_config(s->client);
    listing l = { .session = s,
                  .arena = arena,
                  .has_mirrors = config->url && s->version->era == RT_MCP_MODERN };
    rt_buf members RT_CLEANUP(rt_buf_done) = { 0 };
    cursors seen = { 0 };
    rt_random_bytes(&seen.key, sizeof(seen.key));
    for (;;) {
        rt_arena page RT_CLEANUP(rt_arena_done) = { 0 };
        rt_json cursor;
        if (!read_page(&l, rt_buf_str(&members), p, &page, &cursor, err))
            return rt_wrap(err, "list its tools");
        if (rt_json_type(cursor) != RT_JSON_STRING)
            break;
        bool is_again = was_seen(&seen, rt_json_str(cursor));
        if (is_again && rt_json_str(cursor).len == 0)
            break; /* some say "" where they mean none */
        if (is_again || seen.count == PAGES_MAX)
            return rt_fail(err, RT_LIMIT, "list its tools: the list has no end");
        rt_buf_reset(&members);
        rt_buf_add(&members, RT_STR("\"cursor\":"));
        rt_json_print(cursor, &members);
    }
    *out = l.list;
    return true;
}

/* -- Results ----------------------------------------------------------------------------------- */

static bool is_text(rt_json block)
{
    return rt_str_eq_c(rt_json_str(rt_json_get_c(block, "type")), "text") &&
           rt_json_type(rt_json_get_c(block, "text")) == RT_JSON_STRING;
}

static bool is_all_text(rt_json content)
{
    rt_json_iter it = rt_json_each(content);
    rt_json block;
    while (rt_json_next(&it, NULL, &block))
        if (!is_text(block))
            return false;
    return true;
}

/* Text that is a JSON object or array is what the tool means; "007" or "true" may be just text. */
static bool is_document(rt_str text)
{
    rt_arena scratch RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json doc;
    rt_str body = rt_str_trim(text);
    return body.len && (body.ptr[0] == '{' || body.ptr[0] == '[') &&
           rt_json_parse(body, &scratch, &doc, NULL);
}

static rt_str joined(rt_json content, rt_arena *arena)
{
    rt_buf all RT_CLEANUP(rt_buf_done) = { .max = MCP_MESSAGE_MAX };
    rt_buf out RT_CLEANUP(rt_buf_done) = { .max = MCP_MESSAGE_MAX * 2 };
    rt_json_iter it = rt_json_each(content);
    rt_json block;
    rt_json_writer w;
    while (rt_json_next(&it, NULL, &block)) {
        if (all.len)
            rt_buf_addc(&all, '\n');
        rt_buf_add(&all, rt_json_str(rt_json_get_c(block, "text")));
    }
    rt_json_begin(&w, &out);
    rt_jw_str(&w, rt_buf_str(&all));
    return rt_arena_str(arena, rt_buf_str(&out));
}

/* Of one block, the text as it was written: the content has it, and nothing is copied. */
static rt_str literal(rt_str content)
{
    rt_str block;
    bool has_block = rt_mcp_batch_next(&content, &block);
    rt_str text = has_block ? rt_mcp_member(block, RT_STR("text")) : (rt_str){ "", 0 };
    return text.len && text.ptr[0] == '"' ? text : (rt_str){ "", 0 };
}

static rt_str value_of(rt_json content, const rt_tool_result *result, rt_arena *arena)
{
    rt_str text = rt_json_str(rt_json_get_c(rt_json_at(content, 0), "text"));
    if (rt_json_count(content) == 0)
        return RT_STR("null");
    if (!is_all_text(content))
        return result->content;
    if (rt_json_count(content) > 1)
        return joined(content, arena);
    if (!result->is_error && is_document(text))
        return rt_arena_str(arena, rt_str_trim(text));
    rt_str written = literal(result->content);
    return written.len ? written : joined(content, arena);
}

void mcp_result_read(rt_str text, rt_json result, rt_arena *arena, rt_tool_result *out)
{
    rt_json content = rt_json_get_c(result, "content");
    rt_str structured = rt_mcp_member(text, RT_STR("structuredContent"));
    rt_str blocks = rt_mcp_member(text, RT_STR("content"));
    bool is_array = blocks.len && blocks.ptr[0] == '[' && rt_json_type(content) == RT_JSON_ARRAY;
    out->is_error = rt_json_bool(rt_json_get_c(result, "isError"), false);
    out->content = is_array ? rt_arena_str(arena, blocks) : RT_STR("[]");
    if (structured.len && !rt_str_eq_c(structured, "null"))
        out->value = rt_arena_str(arena, structured);
    else
        out->value = value_of(content, out, arena);
}
