/* SPDX-License-Identifier: Apache-2.0 */
/*
 * imports.c - tools that came by a file: catalogues of others, to be searched.
 *
 * Nobody can call them, so their names need not be names of ours: any text without control
 * characters will do, and a file may have one name twice. A name of the form "server:tool",
 * "server/tool", "server.tool" or "server__tool" tells the server by itself.
 */

#include <stdlib.h>

#include "tools/tools_internal.h"

enum { NAME_LEN_MAX = 256, TEXT_LEN_MAX = 65536, ROWS_AT_ONCE = 40, COLUMNS = 9 };

/* -- Reading -------------------------------------------------------------------------------------
 */

static bool is_printable(rt_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] < ' ' || text.ptr[i] == 0x7f)
            return false;
    return rt_utf8_valid(text);
}

/* Cut at a character's end; what the database cannot hold (NUL, lone surrogates) is left out. */
static rt_str clean_text(rt_str text, rt_arena *arena)
{
    char *out = rt_arena_alloc_raw(arena, text.len + 1);
    size_t len = 0;
    while (text.len > 0 && len < TEXT_LEN_MAX) {
        size_t bad = 1, step = rt_utf8_step(text, &bad);
        if (step > 0 && text.ptr[0] != '\0') {
            memcpy(out + len, text.ptr, step);
            len += step;
        }
        text = rt_str_slice(text, step ? step : bad, text.len);
    }
    return (rt_str){ out, len };
}

static rt_str text_of(rt_json object, const char *key, rt_arena *arena)
{
    return clean_text(rt_json_str(rt_json_get_c(object, key)), arena);
}

static rt_str schema_of(rt_json object, const char *key, const char *other, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json value = rt_json_get_c(object, key);
    if (rt_json_is_absent(value))
        value = rt_json_get_c(object, other);
    if (rt_json_type(value) != RT_JSON_OBJECT)
        return RT_STR("");
    rt_json_print(value, &text);
    bool is_whole = text.len <= TEXT_LEN_MAX && rt_utf8_valid(rt_buf_str(&text));
    return is_whole ? rt_arena_str(arena, rt_buf_str(&text)) : RT_STR("");
}

static rt_str server_of(rt_str name)
{
    static const char *const marks[] = { ":", "/", "__", "." };
    for (size_t i = 0; i < RT_COUNT(marks); i++) {
        ptrdiff_t at = rt_str_find(name, rt_str_of(marks[i]));
        if (at > 0)
            return rt_str_slice(name, 0, (size_t)at);
    }
    return RT_STR(TOOLS_IMPORTED);
}

static bool read_tool(rt_json from, rt_arena *arena, rt_tool *out, rt_error *err)
{
    rt_str name = rt_str_trim(rt_json_str(rt_json_get_c(from, "name")));
    if (rt_json_type(from) != RT_JSON_OBJECT)
        return rt_fail(err, RT_INVALID, "a tool is an object, not %s", rt_json_type_name(from));
    if (name.len == 0 || name.len > NAME_LEN_MAX || !is_printable(name))
        return rt_fail(err, RT_INVALID, "a name is a line of 1 to %d bytes", NAME_LEN_MAX);
    *out = (rt_tool){ .name = name,
                      .server = text_of(from, "server", arena),
                      .title = text_of(from, "title", arena),
                      .description = text_of(from, "description", arena),
                      .category = text_of(from, "category", arena),
                      .input_schema = schema_of(from, "input_schema", "inputSchema", arena),
                      .output_schema = schema_of(from, "output_schema", "outputSchema", arena) };
    if (out->server.len == 0)
        out->server = server_of(name);
    return true;
}

static bool read_all(rt_str json, rt_arena *arena, rt_tool **out, size_t *count, rt_error *err)
{
    rt_json doc, value;
    if (!rt_json_parse(json, arena, &doc, err))
        return false;
    if (rt_json_type(doc) == RT_JSON_OBJECT) /* as tools/list of MCP answers */
        doc = rt_json_get_c(doc, "tools");
    if (rt_json_type(doc) != RT_JSON_ARRAY)
        return rt_fail(err, RT_INVALID, "this is no array of tools");
    rt_tool *tools = rt_arena_alloc(arena, (rt_json_count(doc) + 1) * sizeof(*tools));
    rt_json_iter it = rt_json_each(doc);
    for (*count = 0; rt_json_next(&it, NULL, &value); ++*count)
        if (!read_tool(value, arena, &tools[*count], err))
            return rt_wrap(err, "tool %zu", *count + 1);
    *out = tools;
    return true;
}

/* -- Keeping -------------------------------------------------------------------------------------
 */

typedef struct numbered {
    const rt_tool *tool;
    size_t order;
    int64_t variant;
} numbered;

static int by_name_and_order(const void *a, const void *b)
{
    const numbered *x = a, *y = b;
    int order = rt_str_cmp(x->tool->name, y->tool->name);
    return order ? order : x->order < y->order ? -1 : x->order > y->order;
}

static numbered *number(const rt_tool *tools, size_t count, rt_arena *arena)
{
    numbered *all = rt_arena_alloc(arena, (count + 1) * sizeof(*all));
    for (size_t i = 0; i < count; i++)
        all[i] = (numbered){ &tools[i], i, 0 };
    qsort(all, count, sizeof(*all), by_name_and_order);
    for (size_t i = 1; i < count; i++)
        if (rt_str_eq(all[i].tool->name, all[i - 1].tool->name))
            all[i].variant = all[i - 1].variant + 1;
    return all;
}

static bool forget(rt_tx *tx, const numbered *all, size_t count, rt_error *err)
{
    for (size_t i = 0; i < count; i++) {
        rt_sql_value name = rt_sql_text(all[i].tool->name);
        if (all[i].variant == 0 &&
            !rt_sql(tx, "DELETE FROM tool_imports WHERE name = $1", &name, 1, NULL, NULL, err))
            return false;
    }
    return true;
}

static const char *insert_statement(size_t rows, rt_arena *arena)
{
    rt_buf sql RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf_add(&sql, RT_STR("INSERT INTO tool_imports (name, variant, title, description, category,"
                            " server, input_schema, output_schema, imported_ms) VALUES "));
    for (size_t i = 0; i < rows * COLUMNS; i++)
        rt_buf_addf(&sql, "%s$%zu%s",
                    i % COLUMNS ? ", "
                    : i         ? ", ("
                                : "(",
                    i + 1, i % COLUMNS == COLUMNS - 1 ? ")" : "");
    return rt_arena_copy(arena, rt_buf_str(&sql));
}

static bool insert(rt_tx *tx, const numbered *rows, size_t count, const char *sql, int64_t now,
                   rt_error *err)
{
    rt_sql_value values[ROWS_AT_ONCE * COLUMNS];
    for (size_t i = 0; i < count; i++) {
        const rt_tool *t = rows[i].tool;
        rt_sql_value row[COLUMNS] = {
            rt_sql_text(t->name),         rt_sql_i64(rows[i].variant),   rt_sql_text(t->title),
            rt_sql_text(t->description),  rt_sql_text(t->category),      rt_sql_text(t->server),
            rt_sql_text(t->input_schema), rt_sql_text(t->output_schema), rt_sql_i64(now)
        };
        memcpy(&values[i * COLUMNS], row, sizeof(row));
    }
    return rt_sql(tx, sql, values, count * COLUMNS, NULL, NULL, err);
}

static bool keep(rt_tx *tx, const numbered *all, size_t count, rt_arena *arena, rt_error *err)
{
    const char *many = insert_statement(ROWS_AT_ONCE, arena);
    int64_t now = (int64_t)rt_wall_ms();
    for (size_t i = 0; i < count; i += ROWS_AT_ONCE) {
        size_t rows = RT_MIN(count - i, (size_t)ROWS_AT_ONCE);
        const char *sql = rows == ROWS_AT_ONCE ? many : insert_statement(rows, arena);
        if (!insert(tx, all + i, rows, sql, now, err))
            return false;
    }
    return true;
}

bool rt_tools_import(rt_store *store, rt_str json, size_t *count, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_tx *tx RT_CLEANUP(rt_tx_rollbackp) = NULL;
    rt_tool *tools = NULL;
    size_t found = 0;
    if (!read_all(json, &arena, &tools, &found, err))
        return false;
    numbered *all = number(tools, found, &arena);
    if (!rt_tx_begin(store, RT_TX_WRITE, &tx, err) || !forget(tx, all, found, err) ||
        !keep(tx, all, found, &arena, err) || !rt_tx_commit(&tx, err))
        return rt_wrap(err, "keep the tools");
    *count = found;
    return true;
}

bool tools_imports_load(rt_store *store, tools_list *out, rt_error *err)
{
    rt_rows rows;
    if (!rt_sql_once(store, RT_TX_READ,
                     "SELECT name, title, description, category, server, input_schema, "
                     "output_schema FROM tool_imports ORDER BY name, variant",
                     NULL, 0, &out->arena, &rows, err))
        return rt_wrap(err, "read the imported tools");
    out->tools = rt_arena_alloc(&out->arena, (rows.count + 1) * sizeof(*out->tools));
    out->count = rows.count;
    for (size_t i = 0; i < rows.count; i++)
        out->tools[i] = (rt_tool){ .name = rt_rows_at(&rows, i, 0).text,
                                   .title = rt_rows_at(&rows, i, 1).text,
                                   .description = rt_rows_at(&rows, i, 2).text,
                                   .category = rt_rows_at(&rows, i, 3).text,
                                   .server = rt_rows_at(&rows, i, 4).text,
                                   .input_schema = rt_rows_at(&rows, i, 5).text,
                                   .output_schema = rt_rows_at(&rows, i, 6).text };
    return true;
}
