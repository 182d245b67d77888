/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agents.c - code agents and their versions: one row each.
 *
 * `seen_by` is what keeps tenants apart: it is in the statement, so that a row of somebody else is
 * passed over by the database and looks, and lasts, like none.
 */
#include "store/agents.h"

#include <pthread.h>

#include "store/tables_internal.h"

#define AT(row, member) offsetof(row, content) + offsetof(rt_agent_content, member)
/* clang-format off */
#define CONTENT(row, member, kind, absent) { #member, kind, AT(row, member), absent, false }
/* clang-format on */

/* Both tables have these: first what lists show. */
#define SMALL(row)                                                                                 \
    CONTENT(row, language, RT_SQL_TEXT, NULL), CONTENT(row, runtime, RT_SQL_TEXT, "vm2"),          \
        CONTENT(row, validation_type, RT_SQL_TEXT, "zod"),                                         \
        CONTENT(row, entry_point, RT_SQL_TEXT, NULL), CONTENT(row, code_bytes, RT_SQL_I64, NULL),  \
        CONTENT(row, code_storage_path, RT_SQL_TEXT, NULL),                                        \
        CONTENT(row, packages, RT_SQL_TEXT, "[]"), CONTENT(row, tools, RT_SQL_TEXT, "[]"),         \
        CONTENT(row, policy, RT_SQL_TEXT, NULL), CONTENT(row, input_schema, RT_SQL_TEXT, NULL),    \
        CONTENT(row, output_schema, RT_SQL_TEXT, NULL)
#define LARGE(row)                                                                                 \
    CONTENT(row, environment, RT_SQL_BYTES, NULL), CONTENT(row, files, RT_SQL_TEXT, "{}"),         \
        CONTENT(row, code, RT_SQL_TEXT, "")
#define LARGE_COUNT 3

#define COLUMN(member, kind, ...) STORE_COLUMN(rt_agent_row, member, kind, __VA_ARGS__)
#define TEXT(member, absent)      COLUMN(member, RT_SQL_TEXT, absent, false)
#define I64(member)               COLUMN(member, RT_SQL_I64, NULL, false)
#define BOOL(member)              COLUMN(member, RT_SQL_BOOL, NULL, false)

#define FIXED_COUNT 5 /* the first ones, which no update writes */

static const store_column agent_columns[] = {
    TEXT(id, NULL),          TEXT(organisation_id, NULL),
    TEXT(user_id, NULL),     I64(usage_count),
    I64(created_ms),         TEXT(workspace_id, ""),
    BOOL(is_public),         BOOL(is_deprecated),
    BOOL(is_tool),           TEXT(name, NULL),
    TEXT(tool_name, NULL),   TEXT(tool_version, NULL),
    TEXT(description, NULL), TEXT(deprecation, NULL),
    TEXT(version, NULL),     I64(updated_ms),
    TEXT(metadata, "{}"),    TEXT(changelog, "[]"),
    SMALL(rt_agent_row),     LARGE(rt_agent_row),
};

#define OF_VERSION(member, kind) STORE_COLUMN(rt_agent_version, member, kind, NULL, false)

static const store_column version_columns[] = {
    OF_VERSION(id, RT_SQL_TEXT),
    OF_VERSION(code_agent_id, RT_SQL_TEXT),
    OF_VERSION(version, RT_SQL_TEXT),
    OF_VERSION(user_id, RT_SQL_TEXT),
    OF_VERSION(created_ms, RT_SQL_I64),
    OF_VERSION(changelog, RT_SQL_TEXT),
    SMALL(rt_agent_version),
    LARGE(rt_agent_version),
};

static const store_table agents = { "code_agents", agent_columns, RT_COUNT(agent_columns) };
static const store_table agents_head = { "code_agents", agent_columns,
                                         RT_COUNT(agent_columns) - LARGE_COUNT };
static const store_table versions = { "code_agent_versions", version_columns,
                                      RT_COUNT(version_columns) };
static const store_table versions_head = { "code_agent_versions", version_columns,
                                           RT_COUNT(version_columns) - LARGE_COUNT };

/* What an update writes. */
static const store_table agents_open = { "code_agents", agent_columns + FIXED_COUNT,
                                         RT_COUNT(agent_columns) - FIXED_COUNT };

static const char *insert_agent, *insert_version, *update_agent;

static void write_statements(void)
{
    rt_buf agent = { 0 }, version = { 0 }, update = { 0 };
    store_table_insert(&agents, &agent);
    insert_agent = store_statement(&agent);
    store_table_insert(&versions, &version);
    insert_version = store_statement(&version);
    rt_buf_addf(&update, "UPDATE %s SET ", agents_open.name);
    for (size_t i = 0; i < agents_open.count; i++)
        rt_buf_addf(&update, "%s%s = $%zu", i ? ", " : "", agents_open.columns[i].name, i + 1);
    rt_buf_addf(&update, " WHERE id = $%zu AND updated_ms = $%zu", agents_open.count + 1,
                agents_open.count + 2);
    update_agent = store_statement(&update);
}

static void prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, write_statements);
}

/* -- Writing ----------------------------------------------------------------------------------- */

static bool insert(rt_tx *tx, const store_table *table, const char *statement, const void *row,
                   rt_error *err)
{
    rt_sql_value values[STORE_MAX_COLUMNS];
    store_table_bind(table, row, values);
    return rt_sql(tx, statement, values, table->count, NULL, NULL, err);
}

bool rt_agent_add(rt_store *store, const rt_agent_row *row, const rt_agent_version *version,
                  rt_error *err)
{
    rt_tx *tx RT_CLEANUP(rt_tx_rollbackp) = NULL;
    rt_error why = { 0 };
    prepare();
    if (rt_tx_begin(store, RT_TX_WRITE, &tx, &why) &&
        insert(tx, &agents, insert_agent, row, &why) &&
        insert(tx, &versions, insert_version, version, &why) && rt_tx_commit(&tx, &why))
        return true;
    if (why.code == RT_CONFLICT)
        return rt_fail(err, RT_CONFLICT,
                       "there is an agent named '%.*s' already; choose another "
                       "name, or update it",
                       RT_FMT(row->tool_name));
    if (err)
        *err = why;
    return rt_wrap(err, "create an agent");
}

static bool change(rt_tx *tx, const rt_agent_row *row, uint64_t was_ms, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_sql_value values[STORE_MAX_COLUMNS];
    rt_rows rows;
    size_t count = agents_open.count;
    store_table_bind(&agents_open, row, values);
    values[count++] = rt_sql_text(row->id);
    values[count++] = store_u64(was_ms);
    return rt_sql(tx, update_agent, values, count, &arena, &rows, err) &&
           (rows.changed > 0 ||
            rt_fail(err, RT_CONFLICT, "somebody else changed this agent meanwhile; look again"));
}

bool rt_agent_update(rt_store *store, const rt_agent_row *row, uint64_t was_ms,
                     const rt_agent_version *version, rt_error *err)
{
    rt_tx *tx RT_CLEANUP(rt_tx_rollbackp) = NULL;
    rt_error why = { 0 };
    prepare();
    bool is_begun = rt_tx_begin(store, RT_TX_WRITE, &tx, err);
    if (!is_begun || !change(tx, row, was_ms, err))
        return rt_wrap(err, "change the agent");
    if (!version || insert(tx, &versions, insert_version, version, &why))
        return rt_tx_commit(&tx, err) || rt_wrap(err, "change the agent");
    if (why.code == RT_CONFLICT)
        return rt_fail(err, RT_CONFLICT,
                       "version %.*s exists already, and a version never changes; choose another",
                       RT_FMT(version->version));
    *err = why;
    return rt_wrap(err, "add a version");
}

static bool run(rt_store *store, const char *sql, rt_str id, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_sql_value values[] = { rt_sql_text(id) };
    return rt_sql_once(store, RT_TX_WRITE, sql, values, 1, &arena, NULL, err);
}

bool rt_agent_remove(rt_store *store, rt_str id, rt_error *err)
{
    return run(store, "DELETE FROM code_agents WHERE id = $1", id, err) ||
           rt_wrap(err, "remove the agent");
}

bool rt_agent_used(rt_store *store, rt_str id, rt_error *err)
{
    return run(store, "UPDATE code_agents SET usage_count = usage_count + 1 WHERE id = $1", id,
               err) ||
           rt_wrap(err, "count a use");
}

/* -- Looking ----------------------------------------------------------------------------------- */

static void select_from(store_query *query, const store_table *table)
{
    store_query_add(query, "SELECT ");
    store_table_names(table, "", &query->sql);
    rt_buf_addf(&query->sql, " FROM %s", table->name);
}

/* Their own: of the organisation and, where both have one, the workspace. */
static void add_own(store_query *query, const rt_agent_viewer *viewer)
{
    if (viewer->organisation_id.len == 0) {
        store_query_add(query, "TRUE");
        return;
    }
    store_query_value(query, "(organisation_id = ", rt_sql_text(viewer->organisation_id));
    if (viewer->workspace_id.len > 0)
        store_query_value(query, " AND workspace_id IN ('', ", rt_sql_text(viewer->workspace_id));
    store_query_add(query, viewer->workspace_id.len > 0 ? "))" : ")");
}

static void add_seen_by(store_query *query, const rt_agent_viewer *viewer)
{
    store_query_add(query, " AND (is_public OR ");
    add_own(query, viewer);
    store_query_add(query, ")");
}

static bool read_one(store_query *query, rt_store *store, rt_arena *arena, rt_agent_row *out,
                     rt_error *err)
{
    rt_rows rows;
    if (!store_query_once(query, store, arena, &rows, err))
        return rt_wrap(err, "find an agent");
    if (rows.count == 0)
        return rt_fail(err, RT_NOT_FOUND, "Code agent not found");
    *out = (rt_agent_row){ 0 };
    store_table_read(&agents, &rows, 0, 0, out);
    return true;
}

bool rt_agent_find(rt_store *store, const rt_agent_viewer *viewer, rt_str id, rt_arena *arena,
                   rt_agent_row *out, rt_error *err)
{
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    select_from(&query, &agents);
    store_query_value(&query, " WHERE id = ", rt_sql_text(id));
    add_seen_by(&query, viewer);
    return read_one(&query, store, arena, out, err);
}

bool rt_agent_find_named(rt_store *store, const rt_agent_viewer *viewer, rt_str tool_name,
                         rt_arena *arena, rt_agent_row *out, rt_error *err)
{
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    select_from(&query, &agents);
    store_query_value(&query, " WHERE tool_name = ", rt_sql_text(tool_name));
    add_seen_by(&query, viewer);
    store_query_add(&query, " ORDER BY CASE WHEN ");
    add_own(&query, viewer);
    store_query_add(&query, " THEN 0 ELSE 1 END, is_deprecated, created_ms, id LIMIT 1");
    return read_one(&query, store, arena, out, err);
}

static void add_wish(store_query *query, const char *column, rt_agent_wish wish)
{
    if (wish != RT_AGENT_ANY)
        rt_buf_addf(&query->sql, " AND %s%s", wish == RT_AGENT_NO ? "NOT " : "", column);
}

bool rt_agent_list(rt_store *store, const rt_agent_filter *filter, rt_arena *arena,
                   rt_agent_row **rows, size_t *count, rt_error *err)
{
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows found;
    select_from(&query, &agents_head);
    store_query_add(&query, " WHERE TRUE");
    if (filter->is_own) {
        store_query_add(&query, " AND ");
        add_own(&query, &filter->viewer);
    } else {
        add_seen_by(&query, &filter->viewer);
    }
    store_query_filter(&query, "language", filter->language);
    add_wish(&query, "is_public", filter->is_public);
    add_wish(&query, "is_deprecated", filter->is_deprecated);
    add_wish(&query, "is_tool", filter->is_tool);
    store_query_value(&query, " ORDER BY created_ms DESC, id DESC LIMIT ",
                      rt_sql_i64(filter->limit ? filter->limit : RT_AGENTS_MAX));
    if (!store_query_once(&query, store, arena, &found, err))
        return rt_wrap(err, "list agents");
    *rows = store_table_read_all(&agents_head, &found, sizeof(**rows), arena);
    *count = found.count;
    return true;
}

bool rt_agent_tools_mark(rt_store *store, uint64_t *mark, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_rows rows;
    if (!rt_sql_once(store, RT_TX_READ,
                     "SELECT COUNT(*), COALESCE(MAX(updated_ms), 0) FROM code_agents WHERE is_tool",
                     NULL, 0, &arena, &rows, err))
        return rt_wrap(err, "look at the agents that are tools");
    *mark = (uint64_t)rt_rows_at(&rows, 0, 0).i64 * 1000003 + (uint64_t)rt_rows_at(&rows, 0, 1).i64;
    return true;
}

/* -- Versions ---------------------------------------------------------------------------------- */

bool rt_agent_version_list(rt_store *store, rt_str agent_id, rt_arena *arena,
                           rt_agent_version **rows, size_t *count, rt_error *err)
{
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows found;
    select_from(&query, &versions_head);
    store_query_value(&query, " WHERE code_agent_id = ", rt_sql_text(agent_id));
    store_query_value(&query, " ORDER BY created_ms DESC, id DESC LIMIT ",
                      rt_sql_i64(RT_AGENTS_MAX));
    if (!store_query_once(&query, store, arena, &found, err))
        return rt_wrap(err, "list versions");
    *rows = store_table_read_all(&versions_head, &found, sizeof(**rows), arena);
    *count = found.count;
    return true;
}

bool rt_agent_version_find(rt_store *store, rt_str agent_id, rt_str version, rt_arena *arena,
                           rt_agent_version *out, rt_error *err)
{
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows rows;
    select_from(&query, &versions);
    store_query_value(&query, " WHERE code_agent_id = ", rt_sql_text(agent_id));
    store_query_value(&query, " AND version = ", rt_sql_text(version));
    if (!store_query_once(&query, store, arena, &rows, err))
        return rt_wrap(err, "find a version");
    if (rows.count == 0)
        return rt_fail(err, RT_NOT_FOUND, "Version not found");
    *out = (rt_agent_version){ 0 };
    store_table_read(&versions, &rows, 0, 0, out);
    return true;
}

/* -- Agents that are served together ----------------------------------------------------------- */

#define OF_SERVER(member, kind, absent) STORE_COLUMN(rt_agent_server, member, kind, absent, false)

static const store_column server_columns[] = {
    OF_SERVER(organisation_id, RT_SQL_TEXT, NULL),
    OF_SERVER(workspace_id, RT_SQL_TEXT, ""),
    OF_SERVER(name, RT_SQL_TEXT, NULL),
    OF_SERVER(protocol, RT_SQL_TEXT, "http"),
    OF_SERVER(agents, RT_SQL_TEXT, "[]"),
    OF_SERVER(created_ms, RT_SQL_I64, NULL),
    OF_SERVER(updated_ms, RT_SQL_I64, NULL),
};

static const store_table servers = { "code_agent_servers", server_columns,
                                     RT_COUNT(server_columns) };

bool rt_agent_server_put(rt_store *store, const rt_agent_server *row, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_buf sql RT_CLEANUP(rt_buf_done) = { 0 };
    rt_sql_value values[STORE_MAX_COLUMNS];
    store_table_insert(&servers, &sql);
    rt_buf_add(&sql, RT_STR(" ON CONFLICT (organisation_id, workspace_id, name) DO UPDATE SET"
                            " protocol = excluded.protocol, agents = excluded.agents,"
                            " updated_ms = excluded.updated_ms"));
    store_table_bind(&servers, row, values);
    return rt_sql_once(store, RT_TX_WRITE, store_statement(&sql), values, servers.count, &arena,
                       NULL, err) ||
           rt_wrap(err, "keep the server %.*s", RT_FMT(row->name));
}

bool rt_agent_server_find(rt_store *store, const rt_agent_viewer *viewer, rt_str name,
                          rt_arena *arena, rt_agent_server *out, rt_error *err)
{
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows rows;
    select_from(&query, &servers);
    store_query_value(&query, " WHERE name = ", rt_sql_text(name));
    store_query_add(&query, " AND ");
    add_own(&query, viewer);
    store_query_add(&query, " ORDER BY created_ms LIMIT 1");
    if (!store_query_once(&query, store, arena, &rows, err))
        return rt_wrap(err, "find a server of agents");
    if (rows.count == 0)
        return rt_fail(err, RT_NOT_FOUND, "there is no server of agents '%.*s'",
                       (int)RT_MIN(name.len, (size_t)80), name.ptr);
    store_table_read(&servers, &rows, 0, 0, out);
    return true;
}
