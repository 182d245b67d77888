/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stubs_typescript.c - an interface of a tool's arguments, a type of its result, and the constant
 * of its server that has it as a method.
 */
#include "tools/stubs_internal.h"

static rt_str type_of(stubs_writer *s, rt_json schema, unsigned depth);

static const rt_str unknown = { "unknown", 7 };

/* A constant's value; an empty text when it is no scalar. */
static rt_str literal(rt_json value, rt_arena *arena)
{
    switch (rt_json_type(value)) {
    case RT_JSON_STRING:
        return rt_json_str(value).len <= STUBS_NAME_MAX ? stubs_quote(rt_json_str(value), arena)
                                                        : RT_STR("string");
    case RT_JSON_NUMBER:
        return rt_json_number(value).len <= 20 ? rt_json_number(value) : RT_STR("number");
    case RT_JSON_BOOL:
        return rt_json_bool(value, false) ? RT_STR("true") : RT_STR("false");
    case RT_JSON_NULL:
        return RT_STR("null");
    default:
        return unknown;
    }
}

static rt_str member_name(rt_str name, rt_arena *arena)
{
    return stubs_is_word(name) ? name : stubs_quote(name, arena);
}

static rt_str object_type(stubs_writer *s, rt_json schema, unsigned depth)
{
    rt_json others = rt_json_get_c(schema, "additionalProperties");
    if (!stubs_has_members(schema))
        return rt_arena_printf(s->arena, "Record<string, %.*s>",
                               RT_FMT(rt_json_type(others) == RT_JSON_OBJECT
                                          ? type_of(s, others, depth + 1)
                                          : unknown));
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    stubs_members all = stubs_each(schema);
    stubs_member m;
    rt_buf_init(&text, STUBS_TYPE_MAX);
    rt_buf_add(&text, RT_STR("{ "));
    for (const char *between = ""; stubs_next(&all, &m); between = "; ") {
        rt_str name = member_name(m.name, s->arena), type = type_of(s, m.schema, depth + 1);
        rt_buf_addf(&text, "%s%.*s%s: %.*s", between, RT_FMT(name), m.is_required ? "" : "?",
                    RT_FMT(type));
    }
    rt_buf_add(&text, RT_STR(" }"));
    return text.failed ? RT_STR("Record<string, unknown>")
                       : rt_arena_str(s->arena, rt_buf_str(&text));
}

static rt_str array_type(stubs_writer *s, rt_json schema, unsigned depth)
{
    rt_json items = rt_json_get_c(schema, "items");
    rt_str item = rt_json_is_absent(items) ? unknown : type_of(s, items, depth + 1);
    bool is_joint = rt_str_find(item, RT_STR(" | ")) >= 0 || rt_str_find(item, RT_STR(" & ")) >= 0;
    return rt_arena_printf(s->arena, is_joint && item.ptr[0] != '{' ? "(%.*s)[]" : "%.*s[]",
                           RT_FMT(item));
}

static rt_str named_type(stubs_writer *s, rt_str name, rt_json schema, unsigned depth)
{
    static const struct {
        const char *name, *type;
    } plain[] = { { "string", "string" },
                  { "number", "number" },
                  { "integer", "number" },
                  { "boolean", "boolean" },
                  { "null", "null" } };
    for (size_t i = 0; i < RT_COUNT(plain); i++)
        if (rt_str_eq_c(name, plain[i].name))
            return rt_str_of(plain[i].type);
    if (rt_str_eq_c(name, "array"))
        return array_type(s, schema, depth);
    return rt_str_eq_c(name, "object") ? object_type(s, schema, depth) : unknown;
}

/* All of `list` joined: types of anyOf and oneOf, or values of enum. */
static rt_str join(stubs_writer *s, rt_json list, bool is_values, const char *joint,
                   rt_str otherwise, unsigned depth)
{
    stubs_union u = { 0 };
    rt_json_iter it = rt_json_each(list);
    rt_json item;
    while (!u.is_full && rt_json_next(&it, NULL, &item))
        stubs_union_add(&u, is_values ? literal(item, s->arena) : type_of(s, item, depth + 1));
    return stubs_union_join(&u, joint, otherwise, s->arena);
}

static rt_str type_by_name(stubs_writer *s, rt_json schema, unsigned depth)
{
    rt_json type = rt_json_get_c(schema, "type"), item;
    stubs_union u = { 0 };
    if (rt_json_type(type) == RT_JSON_STRING)
        return named_type(s, rt_json_str(type), schema, depth);
    rt_json_iter it = rt_json_each(type);
    while (rt_json_type(type) == RT_JSON_ARRAY && !u.is_full && rt_json_next(&it, NULL, &item))
        stubs_union_add(&u, named_type(s, rt_json_str(item), schema, depth));
    return stubs_union_join(&u, " | ", unknown, s->arena);
}

static rt_str type_of(stubs_writer *s, rt_json schema, unsigned depth)
{
    if (!stubs_may_descend(s, depth))
        return unknown;
    schema = stubs_resolve(s, schema);
    rt_json values = rt_json_get_c(schema, "enum"), one = rt_json_get_c(schema, "const");
    rt_json any = rt_json_get_c(schema, "anyOf"), all = rt_json_get_c(schema, "allOf");
    if (rt_json_is_absent(any))
        any = rt_json_get_c(schema, "oneOf");
    if (rt_json_type(schema) == RT_JSON_BOOL && !rt_json_bool(schema, true))
        return RT_STR("never");
    if (!rt_json_is_absent(one))
        return literal(one, s->arena);
    if (rt_json_count(values) > 0)
        return join(s, values, true, " | ", type_by_name(s, schema, depth), depth);
    if (stubs_has_members(schema) && !rt_json_get_c(schema, "type").node)
        return object_type(s, schema, depth);
    if (rt_json_get_c(schema, "type").node)
        return type_by_name(s, schema, depth);
    if (rt_json_count(any) > 0)
        return join(s, any, false, " | ", unknown, depth);
    return rt_json_count(all) > 0 ? join(s, all, false, " & ", unknown, depth) : unknown;
}

/* -- Declarations ------------------------------------------------------------------------------ */

static void write_comment(stubs_writer *s, const char *indent, rt_str text)
{
    rt_str shown = stubs_comment(text, s->arena);
    if (shown.len > 0)
        rt_buf_addf(&s->out, "%s/** %.*s */\n", indent, RT_FMT(shown));
}

static void write_interface(stubs_writer *s, rt_str name, rt_json schema)
{
    stubs_members all = stubs_each(schema);
    stubs_member m;
    rt_buf_addf(&s->out, "interface %.*s {\n", RT_FMT(name));
    if (!stubs_has_members(schema))
        rt_buf_add(&s->out, RT_STR("  [key: string]: unknown;\n"));
    while (stubs_next(&all, &m)) {
        rt_str type = type_of(s, m.schema, 1);
        write_comment(s, "  ", rt_json_str(rt_json_get_c(m.schema, "description")));
        rt_buf_addf(&s->out, "  %.*s%s: %.*s;\n", RT_FMT(member_name(m.name, s->arena)),
                    m.is_required ? "" : "?", RT_FMT(type));
    }
    rt_buf_add(&s->out, RT_STR("}\n"));
}

typedef struct method {
    rt_str arguments, result; /* names of their types */
    bool has_required;
} method;

static method write_types(stubs_writer *s, const rt_tool *tool)
{
    rt_str base = stubs_camel(stubs_own_name(tool), true, s->arena);
    if (!stubs_is_word(base))
        base = rt_arena_printf(s->arena, "Tool%.*s", RT_FMT(base));
    method m = { .arguments =
                     stubs_take_name(s, rt_arena_printf(s->arena, "%.*sArgs", RT_FMT(base))),
                 .result =
                     stubs_take_name(s, rt_arena_printf(s->arena, "%.*sResult", RT_FMT(base))) };
    rt_json schema = stubs_resolve(s, stubs_parse(s, tool->input_schema));
    m.has_required = stubs_has_required(schema);
    write_interface(s, m.arguments, schema);
    schema = stubs_resolve(s, stubs_parse(s, tool->output_schema));
    if (stubs_has_members(schema)) {
        write_interface(s, m.result, schema);
    } else {
        rt_str type = type_of(s, schema, 0);
        rt_buf_addf(&s->out, "type %.*s = %.*s;\n", RT_FMT(m.result), RT_FMT(type));
    }
    return m;
}

/* Words that cannot be a constant's name. */
static bool is_reserved(rt_str word)
{
    static const char *const words[] = {
        "arguments", "await",      "break",   "case",    "catch",      "class",     "const",
        "continue",  "debugger",   "default", "delete",  "do",         "else",      "enum",
        "eval",      "export",     "extends", "false",   "finally",    "for",       "function",
        "if",        "implements", "import",  "in",      "instanceof", "interface", "let",
        "new",       "null",       "package", "private", "protected",  "public",    "return",
        "static",    "super",      "switch",  "this",    "throw",      "true",      "try",
        "typeof",    "undefined",  "var",     "void",    "while",      "with",      "yield"
    };
    for (size_t i = 0; i < RT_COUNT(words); i++)
        if (rt_str_eq_c(word, words[i]))
            return true;
    return false;
}

/* Methods by the name code calls them by; of two that would be one, the later by its own. */
static rt_str method_name(stubs_writer *s, const rt_tool *tools, size_t i)
{
    rt_str own = stubs_own_name(&tools[i]), name = stubs_camel(own, false, s->arena);
    for (size_t k = i; k-- > 0 && rt_str_eq(tools[k].server, tools[i].server);)
        if (rt_str_eq(stubs_camel(stubs_own_name(&tools[k]), false, s->arena), name))
            return stubs_quote(own, s->arena);
    return member_name(name.len ? name : own, s->arena);
}

static void write_server(stubs_writer *s, const rt_tool *tools, size_t from, size_t to,
                         const method *methods)
{
    rt_str server = stubs_camel(tools[from].server, false, s->arena);
    bool is_name = stubs_is_word(server) && !is_reserved(server);
    if (is_name)
        rt_buf_addf(&s->out, "declare const %.*s: {\n", RT_FMT(server));
    else
        rt_buf_addf(&s->out, "declare const mcp: { %.*s: {\n",
                    RT_FMT(stubs_quote(tools[from].server, s->arena)));
    for (size_t i = from; i < to; i++) {
        write_comment(s, "  ", tools[i].description);
        rt_buf_addf(&s->out, "  %.*s(args%s: %.*s): Promise<%.*s>;\n",
                    RT_FMT(method_name(s, tools, i)), methods[i].has_required ? "" : "?",
                    RT_FMT(methods[i].arguments), RT_FMT(methods[i].result));
    }
    rt_buf_add(&s->out, is_name ? RT_STR("};\n") : RT_STR("} };\n"));
}

void stubs_typescript(stubs_writer *s, const rt_tool *tools, size_t count)
{
    method *methods = rt_arena_alloc(s->arena, (count + 1) * sizeof(*methods));
    for (size_t i = 0; i < count; i++)
        methods[i] = write_types(s, &tools[i]);
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && rt_str_eq(tools[to].server, tools[from].server);)
            to++;
        write_server(s, tools, from, to, methods);
    }
}
