/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execution_list.c - pages of executions, newest first.
 *
 * A page begins after the last row of the one before, by its time and id, so rows that are added
 * meanwhile neither repeat nor skip one. The cursor is both, in hexadecimal: eight bytes of time,
 * then the id. It comes back from outside, and is read as such.
 */
#include "store/tables_internal.h"

#define LIST_DEFAULT 50
#define LIST_MAX     500
#define TIME_BYTES   8

/* -- Cursors ----------------------------------------------------------------------------------- */

rt_str store_cursor_write(store_cursor at, rt_arena *arena)
{
    char *bytes = rt_arena_alloc(arena, TIME_BYTES + at.id.len);
    for (unsigned i = 0; i < TIME_BYTES; i++)
        bytes[i] = (char)(at.created_ms >> 8 * (TIME_BYTES - 1 - i));
    memcpy(bytes + TIME_BYTES, at.id.ptr, at.id.len);
    char *hex = rt_arena_alloc(arena, 2 * (TIME_BYTES + at.id.len) + 1);
    rt_hex(hex, bytes, TIME_BYTES + at.id.len);
    return rt_str_of(hex);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_hex(rt_str text, char *out)
{
    for (size_t i = 0; i + 1 < text.len; i += 2) {
        int high = hex_digit(text.ptr[i]), low = hex_digit(text.ptr[i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i / 2] = (char)(high << 4 | low);
    }
    return true;
}

bool store_cursor_parse(rt_str text, rt_arena *arena, store_cursor *out, rt_error *err)
{
    char bytes[TIME_BYTES + STORE_CURSOR_ID_MAX];
    size_t size = text.len / 2;
    if (text.len % 2 || size <= TIME_BYTES || size > sizeof(bytes) || !parse_hex(text, bytes))
        return rt_fail(err, RT_INVALID, "the cursor is not one of ours");
    store_cursor at = { 0 };
    for (unsigned i = 0; i < TIME_BYTES; i++)
        at.created_ms = at.created_ms << 8 | (uint8_t)bytes[i];
    rt_str id = { bytes + TIME_BYTES, size - TIME_BYTES };
    if (at.created_ms > INT64_MAX || memchr(id.ptr, '\0', id.len) || !rt_utf8_valid(id))
        return rt_fail(err, RT_INVALID, "the cursor is not one of ours");
    at.id = rt_arena_str(arena, id);
    *out = at;
    return true;
}

/* -- Lists ------------------------------------------------------------------------------------- */

static void add_filters(store_query *query, const rt_execution_filter *f)
{
    const struct {
        const char *column;
        rt_str value;
    } filters[] = {
        { "organisation_id", f->organisation_id },
        { "status", f->status },
        { "language", f->language },
        { "session_id", f->session_id },
        { "user_id", f->user_id },
        { "agent_type", f->agent_type },
        { "tool_id", f->tool_id },
        { "code_agent_id", f->code_agent_id },
        { "workflow_execution_id", f->workflow_execution_id },
    };
    for (size_t i = 0; i < RT_COUNT(filters); i++)
        store_query_filter(query, filters[i].column, filters[i].value);
    if (f->status.len && !rt_str_eq(f->status, RT_STR("SUCCESS")))
        store_query_add(query, " AND status <> 'SUCCESS'"); /* what its index is about */
    if (f->since_ms)
        store_query_value(query, " AND created_ms >= ", store_u64(f->since_ms));
    if (f->until_ms)
        store_query_value(query, " AND created_ms < ", store_u64(f->until_ms));
}

static bool add_cursor(store_query *query, rt_str cursor, rt_arena *arena, rt_error *err)
{
    store_cursor at;
    if (cursor.len == 0)
        return true;
    if (!store_cursor_parse(cursor, arena, &at, err))
        return false;
    store_query_value(query, " AND (created_ms, id) < (", store_u64(at.created_ms));
    store_query_value(query, ", ", rt_sql_text(at.id));
    store_query_add(query, ")");
    return true;
}

bool rt_execution_list(rt_store *store, const rt_execution_filter *filter, rt_arena *arena,
                       rt_execution_row **rows, size_t *count, rt_str *next, rt_error *err)
{
    if (filter->limit > LIST_MAX)
        return rt_fail(err, RT_INVALID, "a list has at most %d rows", LIST_MAX);
    size_t limit = filter->limit ? filter->limit : LIST_DEFAULT;
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    store_query_add(&query, "SELECT ");
    store_table_names(&store_executions_head, "", &query.sql);
    store_query_add(&query, " FROM executions WHERE TRUE");
    add_filters(&query, filter);
    if (!add_cursor(&query, filter->cursor, arena, err))
        return false;
    store_query_value(&query, " ORDER BY created_ms DESC, id DESC LIMIT ", store_u64(limit + 1));
    rt_rows found;
    if (!store_query_once(&query, store, arena, &found, err))
        return rt_wrap(err, "list executions");
    *count = RT_MIN(found.count, limit);
    *rows = rt_arena_alloc(arena, *count * sizeof(**rows));
    for (size_t i = 0; i < *count; i++)
        store_execution_read(&store_executions_head, &found, i, &(*rows)[i]);
    *next = RT_STR("");
    if (found.count > limit)
        *next = store_cursor_write(
            (store_cursor){ (*rows)[limit - 1].created_ms, (*rows)[limit - 1].id }, arena);
    return true;
}
