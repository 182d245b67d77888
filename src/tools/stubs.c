/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stubs.c - what code that calls a tool may know of it: declarations made of its schemas.
 *
 * stubs_typescript.c and stubs_python.c write; here is what keeps a stranger's schema from doing
 * harm (stubs_internal.h says how).
 */
#include "tools/stubs_internal.h"

#include <stdlib.h>

#include "tools/mcp_internal.h"

/* -- Names ------------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool stubs_is_word(rt_str name)
{
    if (name.len == 0 || name.len > STUBS_NAME_MAX || is_digit(name.ptr[0]))
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (!is_letter(name.ptr[i]) && !is_digit(name.ptr[i]) && name.ptr[i] != '_')
            return false;
    return true;
}

rt_str stubs_camel(rt_str name, bool is_pascal, rt_arena *arena)
{
    char *out = rt_arena_alloc(arena, name.len + 1);
    size_t len = 0;
    bool is_first = is_pascal;
    for (size_t i = 0; i < name.len && len < STUBS_NAME_MAX; i++) {
        char c = name.ptr[i];
        if (!is_letter(c) && !is_digit(c)) {
            is_first = is_pascal || len > 0;
            continue;
        }
        out[len++] = is_first && c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
        is_first = false;
    }
    return (rt_str){ out, len };
}

static bool is_taken(const stubs_writer *s, rt_str name)
{
    for (size_t i = 0; i < s->used_count; i++)
        if (rt_str_eq(s->used[i], name))
            return true;
    return false;
}

rt_str stubs_take_name(stubs_writer *s, rt_str name)
{
    rt_str own = name;
    for (unsigned n = 2; is_taken(s, own); n++)
        own = rt_arena_printf(s->arena, "%.*s%u", RT_FMT(name), n);
    if (s->used_count == s->used_cap) {
        size_t cap = s->used_cap ? 2 * s->used_cap : 64;
        s->used = rt_arena_resize(s->arena, s->used, s->used_cap * sizeof(*s->used),
                                  cap * sizeof(*s->used));
        s->used_cap = cap;
    }
    return s->used[s->used_count++] = own;
}

rt_str stubs_own_name(const rt_tool *tool)
{
    rt_str rest = tool->name, server;
    return rt_str_find(rest, RT_STR(":")) >= 0 && rt_str_cut(&rest, ':', &server) ? rest
                                                                                  : tool->name;
}

/* -- Texts ------------------------------------------------------------------------------------- */

rt_str stubs_comment(rt_str text, rt_arena *arena)
{
    char shown[MCP_SHOWN_SIZE];
    mcp_show(rt_str_trim(text), shown);
    for (char *c = shown; *c; c++)
        if (*c == '\\' || *c == '"' || (*c == '*' && c[1] == '/'))
            *c = '\'';
    return rt_arena_str(arena, rt_str_trim(rt_str_of(shown)));
}

rt_str stubs_quote(rt_str text, rt_arena *arena)
{
    rt_buf out RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &out);
    rt_jw_str(&w, text);
    return rt_arena_str(arena, rt_buf_str(&out));
}

/* -- Schemas ----------------------------------------------------------------------------------- */

rt_json stubs_parse(stubs_writer *s, rt_str schema)
{
    rt_json doc = { 0 };
    s->nodes = 0;
    if (schema.len == 0 || !rt_json_parse(schema, s->arena, &doc, NULL))
        doc = (rt_json){ 0 };
    return s->root = doc;
}

bool stubs_may_descend(stubs_writer *s, unsigned depth)
{
    return depth <= STUBS_DEPTH_MAX && s->nodes++ < STUBS_NODES_MAX && !s->out.failed;
}

/* "~1" is a slash, "~0" a tilde. */
static rt_str unescape(rt_str step, rt_arena *arena)
{
    char *out = rt_arena_copy(arena, step);
    size_t len = 0;
    for (size_t i = 0; i < step.len; i++) {
        bool is_escape = step.ptr[i] == '~' && i + 1 < step.len;
        out[len++] = is_escape ? (step.ptr[++i] == '1' ? '/' : '~') : step.ptr[i];
    }
    return (rt_str){ out, len };
}

static rt_json follow(stubs_writer *s, rt_str pointer)
{
    rt_json at = s->root;
    rt_str step;
    rt_str_cut(&pointer, '/', &step); /* "#" */
    while (rt_str_cut(&pointer, '/', &step)) {
        uint64_t i;
        if (rt_json_type(at) == RT_JSON_ARRAY && rt_str_to_u64(step, &i))
            at = rt_json_at(at, i);
        else
            at = rt_json_get(at, unescape(step, s->arena));
    }
    return at;
}

rt_json stubs_resolve(stubs_writer *s, rt_json schema)
{
    for (int hops = 0; hops < STUBS_DEPTH_MAX; hops++) {
        rt_json ref = rt_json_get_c(schema, "$ref");
        if (rt_json_type(ref) != RT_JSON_STRING)
            return schema;
        rt_str pointer = rt_json_str(ref);
        bool is_ours = rt_str_eq_c(pointer, "#") || rt_str_starts(pointer, RT_STR("#/"));
        if (!is_ours || pointer.len > 1000)
            return (rt_json){ 0 };
        schema = follow(s, pointer);
    }
    return (rt_json){ 0 };
}

bool stubs_has_members(rt_json schema)
{
    return rt_json_count(rt_json_get_c(schema, "properties")) > 0;
}

static bool is_required(rt_json schema, rt_str name)
{
    rt_json_iter it = rt_json_each(rt_json_get_c(schema, "required"));
    rt_json item;
    for (size_t i = 0; i < STUBS_MEMBERS_MAX && rt_json_next(&it, NULL, &item); i++)
        if (rt_json_type(item) == RT_JSON_STRING && rt_str_eq(rt_json_str(item), name))
            return true;
    return false;
}

bool stubs_has_required(rt_json schema)
{
    return rt_json_count(rt_json_get_c(schema, "required")) > 0;
}

stubs_members stubs_each(rt_json schema)
{
    rt_json properties = rt_json_get_c(schema, "properties");
    return (stubs_members){ .schema = schema,
                            .properties = properties,
                            .it = rt_json_each(properties) };
}

bool stubs_next(stubs_members *all, stubs_member *out)
{
    while (all->count < STUBS_MEMBERS_MAX && rt_json_next(&all->it, &out->name, &out->schema)) {
        bool is_last = rt_json_get(all->properties, out->name).node == out->schema.node;
        if (!is_last || out->name.len == 0 || out->name.len > STUBS_NAME_MAX)
            continue;
        out->is_required = is_required(all->schema, out->name);
        all->count++;
        return true;
    }
    return false;
}

/* -- Unions ------------------------------------------------------------------------------------ */

void stubs_union_add(stubs_union *u, rt_str part)
{
    for (size_t i = 0; i < u->count; i++)
        if (rt_str_eq(u->parts[i], part))
            return;
    if (u->count == RT_COUNT(u->parts))
        u->is_full = true;
    else
        u->parts[u->count++] = part;
}

rt_str stubs_union_join(const stubs_union *u, const char *joint, rt_str otherwise, rt_arena *arena)
{
    rt_buf out RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf_init(&out, STUBS_TYPE_MAX);
    for (size_t i = 0; i < u->count; i++) {
        rt_buf_add(&out, rt_str_of(i ? joint : ""));
        rt_buf_add(&out, u->parts[i]);
    }
    bool is_told = u->count > 0 && !u->is_full && !out.failed;
    return is_told ? rt_arena_str(arena, rt_buf_str(&out)) : otherwise;
}

/* -- The door ---------------------------------------------------------------------------------- */

bool rt_stub_language_parse(rt_str name, rt_stub_language *out, rt_error *err)
{
    if (rt_str_eq_c(name, "typescript") || rt_str_eq_c(name, "ts"))
        *out = RT_STUB_TYPESCRIPT;
    else if (rt_str_eq_c(name, "python") || rt_str_eq_c(name, "py"))
        *out = RT_STUB_PYTHON;
    else
        return rt_fail(err, RT_INVALID, "stubs are typescript or python, not '%.*s'",
                       (int)RT_MIN(name.len, (size_t)40), name.ptr);
    return true;
}

/* Names alone, when what there is to say about the tools is too long. */
static void forget_schemas(const rt_tool *tools, size_t count, rt_tool *bare)
{
    for (size_t i = 0; i < count; i++) {
        bare[i] = tools[i];
        bare[i].input_schema = bare[i].output_schema = bare[i].description = (rt_str){ 0 };
    }
}

rt_str rt_tool_stubs(const rt_tool *tools, size_t count, rt_stub_language language, rt_arena *arena)
{
    void (*write)(stubs_writer *, const rt_tool *, size_t) =
        language == RT_STUB_PYTHON ? stubs_python : stubs_typescript;
    stubs_writer s = { .arena = arena };
    rt_buf_init(&s.out, STUBS_BYTES_MAX);
    write(&s, tools, count);
    if (s.out.failed) {
        rt_tool *bare = rt_arena_alloc(arena, (count + 1) * sizeof(*bare));
        forget_schemas(tools, count, bare);
        rt_buf_done(&s.out);
        s = (stubs_writer){ .arena = arena };
        rt_buf_init(&s.out, RT_BUF_MAX_DEFAULT);
        write(&s, bare, count);
    }
    rt_str text = rt_arena_str(arena, rt_buf_str(&s.out));
    rt_buf_done(&s.out);
    return text;
}

rt_str rt_tool_stub(const rt_tool *tool, rt_stub_language language, rt_arena *arena)
{
    return rt_tool_stubs(tool, 1, language, arena);
}
