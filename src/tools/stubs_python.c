/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stubs_python.c - a TypedDict of a tool's result and of every object in its arguments, and the
 * class of its server that has it as a function with type hints.
 *
 * The text is a module that Python can read: a type stands before what uses it, and what is no name
 * in Python (or would be mangled by a class) is a key of a TypedDict in its other form.
 */
#include "tools/stubs_internal.h"

static rt_str type_of(stubs_writer *s, rt_json schema, rt_str name, unsigned depth);

static const rt_str any_type = { "Any", 3 };

static bool is_name(rt_str word)
{
    static const char *const words[] = {
        "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
        "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
        "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
        "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"
    };
    for (size_t i = 0; i < RT_COUNT(words); i++)
        if (rt_str_eq_c(word, words[i]))
            return false;
    return stubs_is_word(word) && !rt_str_starts(word, RT_STR("__"));
}

/* list-commits: list_commits; class: class_; 3d: t_3d. */
static rt_str function_name(rt_str own, rt_arena *arena)
{
    char *name = rt_arena_copy(arena, own);
    for (size_t i = 0; i < own.len; i++)
        if (!stubs_is_word((rt_str){ (char[]){ '_', name[i] }, 2 }))
            name[i] = '_';
    rt_str text = { name, own.len };
    if (is_name(text))
        return text;
    bool is_keyword = stubs_is_word(text) && !rt_str_starts(text, RT_STR("__"));
    return rt_arena_printf(arena, is_keyword ? "%s_" : "t_%s", name);
}

/* -- Types ------------------------------------------------------------------------------------- */

/* As it stands in Literal[]; an empty text when it cannot. */
static rt_str literal(rt_json value, rt_arena *arena)
{
    int64_t whole;
    switch (rt_json_type(value)) {
    case RT_JSON_STRING:
        return rt_json_str(value).len <= STUBS_NAME_MAX ? stubs_quote(rt_json_str(value), arena)
                                                        : (rt_str){ 0 };
    case RT_JSON_NUMBER:
        return rt_json_i64(value, &whole) ? rt_arena_printf(arena, "%lld", (long long)whole)
                                          : (rt_str){ 0 };
    case RT_JSON_BOOL:
        return rt_json_bool(value, false) ? RT_STR("True") : RT_STR("False");
    case RT_JSON_NULL:
        return RT_STR("None");
    default:
        return (rt_str){ 0 };
    }
}

static rt_str literal_type(stubs_writer *s, rt_json values, rt_str otherwise)
{
    stubs_union u = { 0 };
    rt_json_iter it = rt_json_each(values);
    rt_json item;
    while (!u.is_full && rt_json_next(&it, NULL, &item)) {
        rt_str text = literal(item, s->arena);
        if (text.len == 0)
            return otherwise;
        stubs_union_add(&u, text);
    }
    rt_str all = stubs_union_join(&u, ", ", (rt_str){ 0 }, s->arena);
    return all.len ? rt_arena_printf(s->arena, "Literal[%.*s]", RT_FMT(all)) : otherwise;
}

typedef struct field {
    rt_str name, type, comment;
    bool is_required;
} field;

static size_t read_fields(stubs_writer *s, rt_json schema, rt_str name, unsigned depth,
                          field fields[STUBS_MEMBERS_MAX])
{
    stubs_members all = stubs_each(schema);
    stubs_member m;
    size_t count = 0;
    while (stubs_next(&all, &m)) {
        rt_str part = stubs_camel(m.name, true, s->arena);
        rt_str own = rt_arena_printf(s->arena, "%.*s%.*s", RT_FMT(name), RT_FMT(part));
        rt_str text = rt_json_str(rt_json_get_c(m.schema, "description"));
        fields[count++] = (field){ .name = m.name,
                                   .type = type_of(s, m.schema, own, depth + 1),
                                   .comment = stubs_comment(text, s->arena),
                                   .is_required = m.is_required };
    }
    return count;
}

static void write_class(stubs_writer *s, rt_str name, const field *fields, size_t count)
{
    rt_buf_addf(&s->out, "class %.*s(TypedDict):\n", RT_FMT(name));
    for (size_t i = 0; i < count; i++)
        rt_buf_addf(&s->out,
                    fields[i].is_required ? "    %.*s: %.*s%s%.*s\n"
                                          : "    %.*s: NotRequired[%.*s]%s%.*s\n",
                    RT_FMT(fields[i].name), RT_FMT(fields[i].type),
                    fields[i].comment.len ? "  # " : "", RT_FMT(fields[i].comment));
}

static void write_call(stubs_writer *s, rt_str name, const field *fields, size_t count)
{
    rt_buf_addf(&s->out, "%.*s = TypedDict(\"%.*s\", {\n", RT_FMT(name), RT_FMT(name));
    for (size_t i = 0; i < count; i++)
        rt_buf_addf(&s->out,
                    fields[i].is_required ? "    %.*s: %.*s,\n" : "    %.*s: NotRequired[%.*s],\n",
                    RT_FMT(stubs_quote(fields[i].name, s->arena)), RT_FMT(fields[i].type));
    rt_buf_add(&s->out, RT_STR("})\n"));
}

/* A class for it, written before whatever names it. */
static rt_str object_type(stubs_writer *s, rt_json schema, rt_str name, unsigned depth)
{
    rt_json others = rt_json_get_c(schema, "additionalProperties");
    if (!stubs_has_members(schema))
        return rt_arena_printf(s->arena, "dict[str, %.*s]",
                               RT_FMT(rt_json_type(others) == RT_JSON_OBJECT
                                          ? type_of(s, others, name, depth + 1)
                                          : any_type));
    field *fields = rt_arena_alloc(s->arena, STUBS_MEMBERS_MAX * sizeof(*fields));
    rt_str own = stubs_take_name(s, rt_str_slice(name, 0, STUBS_NAME_MAX));
    size_t count = read_fields(s, schema, own, depth, fields), named = 0;
    for (size_t i = 0; i < count; i++)
        named += is_name(fields[i].name);
    if (count == 0)
        return RT_STR("dict[str, Any]");
    (named == count ? write_class : write_call)(s, own, fields, count);
    return own;
}

static rt_str named_type(stubs_writer *s, rt_str type, rt_json schema, rt_str name, unsigned depth)
{
    static const struct {
        const char *name, *type;
    } plain[] = { { "string", "str" },
                  { "number", "float" },
                  { "integer", "int" },
                  { "boolean", "bool" },
                  { "null", "None" } };
    for (size_t i = 0; i < RT_COUNT(plain); i++)
        if (rt_str_eq_c(type, plain[i].name))
            return rt_str_of(plain[i].type);
    if (rt_str_eq_c(type, "object"))
        return object_type(s, schema, name, depth);
    if (!rt_str_eq_c(type, "array"))
        return any_type;
    rt_json items = rt_json_get_c(schema, "items");
    rt_str item = rt_json_is_absent(items) ? any_type : type_of(s, items, name, depth + 1);
    return rt_arena_printf(s->arena, "list[%.*s]", RT_FMT(item));
}

static rt_str type_by_name(stubs_writer *s, rt_json schema, rt_str name, unsigned depth)
{
    rt_json type = rt_json_get_c(schema, "type"), item;
    stubs_union u = { 0 };
    if (rt_json_type(type) == RT_JSON_STRING)
        return named_type(s, rt_json_str(type), schema, name, depth);
    rt_json_iter it = rt_json_each(type);
    while (rt_json_type(type) == RT_JSON_ARRAY && !u.is_full && rt_json_next(&it, NULL, &item))
        stubs_union_add(&u, named_type(s, rt_json_str(item), schema, name, depth));
    return stubs_union_join(&u, " | ", any_type, s->arena);
}

static rt_str any_of(stubs_writer *s, rt_json list, rt_str name, unsigned depth)
{
    stubs_union u = { 0 };
    rt_json_iter it = rt_json_each(list);
    rt_json item;
    while (!u.is_full && rt_json_next(&it, NULL, &item))
        stubs_union_add(&u, type_of(s, item, name, depth + 1));
    return stubs_union_join(&u, " | ", any_type, s->arena);
}

static rt_str type_of(stubs_writer *s, rt_json schema, rt_str name, unsigned depth)
{
    if (!stubs_may_descend(s, depth))
        return any_type;
    schema = stubs_resolve(s, schema);
    rt_json values = rt_json_get_c(schema, "enum"), any = rt_json_get_c(schema, "anyOf");
    if (rt_json_is_absent(any))
        any = rt_json_get_c(schema, "oneOf");
    rt_str plain = rt_json_get_c(schema, "type").node ? type_by_name(s, schema, name, depth)
                   : stubs_has_members(schema)        ? object_type(s, schema, name, depth)
                                                      : any_type;
    if (rt_json_count(values) > 0)
        return literal_type(s, values, plain);
    return rt_json_count(any) > 0 && rt_str_eq(plain, any_type) ? any_of(s, any, name, depth)
                                                                : plain;
}

/* -- Functions --------------------------------------------------------------------------------- */

typedef struct function {
    field *fields;
    size_t count;
    rt_str result;
} function;

static function read_function(stubs_writer *s, const rt_tool *tool)
{
    rt_str base = stubs_camel(stubs_own_name(tool), true, s->arena);
    function f = { .fields = rt_arena_alloc(s->arena, STUBS_MEMBERS_MAX * sizeof(field)) };
    if (!stubs_is_word(base))
        base = rt_arena_printf(s->arena, "Tool%.*s", RT_FMT(base));
    rt_json schema = stubs_resolve(s, stubs_parse(s, tool->input_schema));
    f.count = read_fields(s, schema, base, 0, f.fields);
    schema = stubs_parse(s, tool->output_schema);
    f.result = type_of(s, schema, rt_arena_printf(s->arena, "%.*sResult", RT_FMT(base)), 0);
    return f;
}

/* Arguments are given by name; one whose name is none in Python is given as **{"the-name": …}. */
static void write_parameters(stubs_writer *s, const function *f)
{
    bool has_others = f->count == 0, has_star = false;
    for (size_t i = 0; i < f->count; i++) {
        const field *a = &f->fields[i];
        if (!is_name(a->name)) {
            has_others = true;
            continue;
        }
        rt_buf_addf(&s->out, "%s%.*s: %.*s%s", has_star ? ", " : "*, ", RT_FMT(a->name),
                    RT_FMT(a->type), a->is_required ? "" : " = ...");
        has_star = true;
    }
    if (has_others)
        rt_buf_addf(&s->out, "%s**others: Any", has_star ? ", " : "");
}

static void write_docstring(stubs_writer *s, const rt_tool *tool, const function *f)
{
    rt_str about = stubs_comment(tool->description, s->arena);
    rt_buf_addf(&s->out, "        \"\"\"%.*s", RT_FMT(about.len ? about : stubs_own_name(tool)));
    bool has_more = false;
    for (size_t i = 0; i < f->count; i++) {
        const field *a = &f->fields[i];
        if (a->comment.len == 0 || !is_name(a->name))
            continue;
        rt_buf_addf(&s->out, "%s\n        %.*s: %.*s", has_more ? "" : "\n", RT_FMT(a->name),
                    RT_FMT(a->comment));
        has_more = true;
    }
    rt_buf_add(&s->out, has_more ? RT_STR("\n        \"\"\"\n") : RT_STR("\"\"\"\n"));
}

static void write_server(stubs_writer *s, const rt_tool *tools, size_t from, size_t to,
                         const function *functions)
{
    rt_buf_addf(&s->out, "class %.*s:\n", RT_FMT(function_name(tools[from].server, s->arena)));
    for (size_t i = from; i < to; i++) {
        rt_buf_addf(&s->out, "    @staticmethod\n    def %.*s(",
                    RT_FMT(function_name(stubs_own_name(&tools[i]), s->arena)));
        write_parameters(s, &functions[i]);
        rt_buf_addf(&s->out, ") -> %.*s:\n", RT_FMT(functions[i].result));
        write_docstring(s, &tools[i], &functions[i]);
        rt_buf_add(&s->out, RT_STR("        ...\n"));
    }
}

void stubs_python(stubs_writer *s, const rt_tool *tools, size_t count)
{
    function *functions = rt_arena_alloc(s->arena, (count + 1) * sizeof(*functions));
    rt_buf_add(&s->out, RT_STR("from typing import Any, Literal, NotRequired, TypedDict\n\n"));
    for (size_t i = 0; i < count; i++)
        functions[i] = read_function(s, &tools[i]);
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && rt_str_eq(tools[to].server, tools[from].server);)
            to++;
        write_server(s, tools, from, to, functions);
    }
}
