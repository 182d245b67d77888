/* SPDX-License-Identifier: Apache-2.0 */
/*
 * people_export.c - everything the store has about a person, as one JSON object.
 *
 * Each table is a row in `parts`: where its rows are found, and what of them is told. All is read
 * in one transaction, page by page, so the parts fit each other and memory holds only the answer.
 */
#include "store/people.h"

#include "store/tables_internal.h"

#define PAGE_ROWS 200

typedef struct part {
    const char *name; /* in the answer */
    const char *table;
    const char *columns; /* the first one tells rows apart, and orders them */
    const char *rows;    /* which are the user's, by $1 and $2 */
    bool is_numbered;    /* the first column is a number */
} part;

static const part parts[] = {
    { "keys", "api_keys",
      "id, name, prefix, workspace_id, role, created_ms, expires_ms, revoked_ms, last_used_ms,"
      " rate_per_minute, max_body_bytes, budget_usd_month",
      "organisation_id = $1 AND user_id = $2", false },
    { "executions", "executions",
      "id, workspace_id, user_id, key_id, actor_type, agent_type, surface, session_id, tool_id,"
      " code_agent_id, workflow_execution_id, node_id, skill_name, skill_version, idempotency_key,"
      " trace_id, language, runtime, sandbox_id, policy_name, status, exit_code, error_type,"
      " error_message, code_hash, input_hash, output_hash, transcript_hash, code_bytes,"
      " input_bytes, output_bytes, memory_limit_bytes, timeout_ms, duration_us, cpu_us,"
      " memory_peak_bytes, is_timed_out, is_cached, is_validation_passed, is_pii_in, is_pii_out,"
      " is_pii_masked, pii_types, tool_ids, attestation, denials, tokens, tokens_saved,"
      " tokens_cached, cost_usd, traditional_cost_usd, is_cost_tracked, kept_input, kept_output,"
      " kept_code, answer, created_ms, started_ms, finished_ms",
      STORE_OF_USER, false },
    { "audit", "audit_events",
      "id, time_ms, actor_id, actor_type, action, subject, outcome, detail, address",
      "organisation_id = $1 AND (actor_id = $2 OR subject = $2)", true },
    { "sessions", "sessions",
      "id, workspace_id, user_id, key_id, host, language, policy, parent_id, name, status,"
      " created_ms, expires_ms, ended_ms, last_used_ms, executions",
      STORE_OF_USER, false },
    { "artifacts", "artifacts",
      "id, user_id, execution_id, session_id, kind, name, type, size, sha256, created_ms,"
      " expires_ms",
      STORE_ARTIFACTS_OF_USER, false },
    { "approvals", "approvals",
      "id, workspace_id, key_id, execution_id, session_id, operation, reason, arguments_hash,"
      " priority, status, created_ms, expires_ms, decided_ms, decided_by, comment",
      "organisation_id = $1 AND user_id = $2", false },
    { "memories", "memories",
      "number, id, session_id, type, safety_class, actor_id, actor_type, content_hash, tokens,"
      " metadata, tags, tool_ids, parents, created_ms, removed_ms",
      "organisation_id = $1 AND (user_id = $2 OR actor_id = $2)", true },
    { "snippets", "snippets",
      "id, name, description, category, code, language, tags, parameters, steps, usage_count,"
      " runs, successes, success_rate, last_used_ms, learned_from, average_exec_ms, "
      "average_cost_usd, created_ms, updated_ms",
      "organisation_id = $1 AND user_id = $2", false },
    { "files", "file_index",
      "id, file_name, display_name, file_type, file_size, file_path, sha256, gemini_file_id,"
      " index_status, query_count, last_queried_ms, expires_ms, category, tags, created_ms,"
      " updated_ms",
      "organisation_id = $1 AND user_id = $2", false },
};

typedef struct exporting {
    rt_tx *tx;
    rt_str organisation_id, user_id;
    rt_json_writer *w;
} exporting;

/* -- Cells ------------------------------------------------------------------------------------- */

static void write_bytes(rt_str bytes, rt_json_writer *w)
{
    if (rt_utf8_valid(bytes)) {
        rt_jw_str(w, bytes);
        return;
    }
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    char *text = rt_arena_alloc(&arena, STORE_BASE64URL_SIZE(bytes.len));
    store_base64url(text, bytes.ptr, bytes.len);
    rt_jw_object(w);
    rt_jw_kstr(w, "base64url", rt_str_of(text));
    rt_jw_end(w);
}

static bool holds_json(rt_str column)
{
    static const char *const names[] = { "pii_types", "tool_ids", "attestation", "detail",
                                         "tags",      "metadata", "parents" };
    for (size_t i = 0; i < RT_COUNT(names); i++)
        if (rt_str_eq_c(column, names[i]))
            return true;
    return false;
}

static void write_text(rt_str column, rt_str text, rt_json_writer *w)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json value;
    if (holds_json(column) && rt_json_parse(text, &arena, &value, NULL))
        rt_jw_json(w, value);
    else
        rt_jw_str(w, text);
}

static void write_cell(rt_str column, rt_sql_value cell, rt_json_writer *w)
{
    rt_jw_key(w, column);
    switch (cell.kind) {
    case RT_SQL_I64:
        rt_jw_i64(w, cell.i64);
        break;
    case RT_SQL_DOUBLE:
        rt_jw_double(w, cell.number);
        break;
    case RT_SQL_BOOL:
        rt_jw_bool(w, cell.i64 != 0);
        break;
    case RT_SQL_TEXT:
        write_text(column, cell.text, w);
        break;
    case RT_SQL_BYTES:
        write_bytes(cell.text, w);
        break;
    default:
        rt_jw_null(w);
        break;
    }
}

static void write_row(const char *columns, const rt_rows *rows, size_t row, rt_json_writer *w)
{
    rt_str rest = rt_str_of(columns), column;
    rt_jw_object(w);
    for (size_t i = 0; rt_str_cut(&rest, ',', &column); i++)
        write_cell(rt_str_trim(column), rt_rows_at(rows, row, i), w);
    rt_jw_end(w);
}

/* -- Tables ------------------------------------------------------------------------------------ */

static bool read_page(const exporting *to, const part *of, rt_sql_value after, rt_arena *arena,
                      rt_rows *out, rt_error *err)
{
    rt_buf sql RT_CLEANUP(rt_buf_done) = { 0 };
    rt_str rest = rt_str_of(of->columns), key;
    rt_str_cut(&rest, ',', &key);
    rt_buf_addf(&sql, "SELECT %s FROM %s WHERE %s AND %.*s > $3 ORDER BY %.*s LIMIT %d",
                of->columns, of->table, of->rows, RT_FMT(key), RT_FMT(key), PAGE_ROWS);
    rt_sql_value values[] = { rt_sql_text(to->organisation_id), rt_sql_text(to->user_id), after };
    return rt_sql(to->tx, store_statement(&sql), values, RT_COUNT(values), arena, out, err);
}

/* Two arenas in turn: the last key of a page is needed to ask for the next. */
static bool write_part(const exporting *to, const part *of, rt_error *err)
{
    rt_arena even RT_CLEANUP(rt_arena_done) = { 0 }, odd RT_CLEANUP(rt_arena_done) = { 0 };
    rt_sql_value after = of->is_numbered ? rt_sql_i64(0) : rt_sql_text(RT_STR(""));
    rt_rows rows;
    rt_jw_karray(to->w, of->name);
    for (unsigned page = 0; page == 0 || rows.count == PAGE_ROWS; page++) {
        rt_arena *arena = page % 2 ? &odd : &even;
        rt_arena_reset(arena);
        if (!read_page(to, of, after, arena, &rows, err) || !rt_buf_ok(to->w->buf, err))
            return rt_wrap(err, "%s", of->name);
        for (size_t i = 0; i < rows.count; i++)
            write_row(of->columns, &rows, i, to->w);
        if (rows.count)
            after = rt_rows_at(&rows, rows.count - 1, 0);
    }
    rt_jw_end(to->w);
    return true;
}

static bool write_user(const exporting *to, rt_error *err)
{
    static const char columns[] = "id, organisation_id, name, created_ms";
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_rows rows;
    rt_sql_value values[] = { rt_sql_text(to->organisation_id), rt_sql_text(to->user_id) };
    if (!rt_sql(to->tx,
                "SELECT id, organisation_id, name, created_ms FROM users"
                " WHERE organisation_id = $1 AND id = $2",
                values, 2, &arena, &rows, err))
        return rt_wrap(err, "user");
    rt_jw_key(to->w, RT_STR("user"));
    if (rows.count)
        write_row(columns, &rows, 0, to->w);
    else
        rt_jw_null(to->w);
    return true;
}

/* As everywhere else, so that the person can verify it. */
static bool write_provenance(const exporting *to, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_buf sql RT_CLEANUP(rt_buf_done) = { 0 };
    rt_rows rows;
    int64_t after = 0;
    rt_buf_add(&sql, RT_STR("SELECT "));
    store_table_names(&store_provenance, "", &sql);
    rt_buf_addf(&sql,
                " FROM provenance WHERE organisation_id = $1 AND sequence > $3 AND"
                " (actor_id = $2 OR execution_id IN"
                " (SELECT id FROM executions WHERE " STORE_OF_USER "))"
                " ORDER BY sequence LIMIT %d",
                PAGE_ROWS);
    const char *statement = store_statement(&sql);
    rt_jw_karray(to->w, "provenance");
    do {
        rt_arena_reset(&arena);
        rt_sql_value values[] = { rt_sql_text(to->organisation_id), rt_sql_text(to->user_id),
                                  rt_sql_i64(after) };
        if (!rt_sql(to->tx, statement, values, 3, &arena, &rows, err) ||
            !rt_buf_ok(to->w->buf, err))
            return rt_wrap(err, "provenance");
        for (size_t i = 0; i < rows.count; i++) {
            rt_provenance link;
            store_table_read(&store_provenance, &rows, i, 0, &link);
            rt_provenance_write(&link, to->w);
            after = link.sequence;
        }
    } while (rows.count == PAGE_ROWS);
    rt_jw_end(to->w);
    return true;
}

bool rt_user_export(rt_store *store, rt_str organisation_id, rt_str user_id, rt_json_writer *w,
                    rt_error *err)
{
    rt_tx *tx RT_CLEANUP(rt_tx_rollbackp) = NULL;
    if (!rt_tx_begin(store, RT_TX_READ, &tx, err))
        return rt_wrap(err, "export a user");
    exporting to = { tx, organisation_id, user_id, w };
    rt_jw_object(w);
    if (!write_user(&to, err) || !write_provenance(&to, err))
        return rt_wrap(err, "export a user");
    for (size_t i = 0; i < RT_COUNT(parts); i++)
        if (!write_part(&to, &parts[i], err))
            return rt_wrap(err, "export a user");
    rt_jw_end(w);
    return rt_buf_ok(w->buf, err);
}
