/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql.c - the guest for SQL: SQLite, with the input as tables.
 *
 * The zygote has SQLite loaded; each forked and sealed child opens a database in memory, fills it,
 * runs the statements one after another and answers with the rows of the last query. In a session
 * the database stays. The cell is the wall; what is forbidden here besides (extensions) is what
 * would make it needlessly thinner.
 */
#include "guests/sql/sql.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guests/program/program.h"

#define ROWS_DEFAULT   100000
#define TABLES_A_QUERY 32 /* files that one statement may name */

static sqlite3 *db;

static void interrupt(int signal)
{
    (void)signal;
    if (db)
        sqlite3_interrupt(db);
}

/* ---- the database ---- */

static int authorize(void *ctx, int action, const char *a, const char *b, const char *c,
                     const char *d)
{
    (void)ctx, (void)a, (void)c, (void)d;
    return action == SQLITE_FUNCTION && b && sqlite3_stricmp(b, "load_extension") == 0 ? SQLITE_DENY
                                                                                       : SQLITE_OK;
}

static bool open_database(rt_error *err)
{
    if (db)
        return true;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(":memory:", &db, flags, NULL) != SQLITE_OK)
        return rt_fail(err, RT_UNAVAILABLE, "open a database in memory");
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    sqlite3_extended_result_codes(db, 0);
    sqlite3_set_authorizer(db, authorize, NULL);
    sqlite3_exec(db, "PRAGMA temp_store = MEMORY", NULL, NULL, NULL);
    return true;
}

static bool fill_from_text(program_run *r, rt_str text, bool is_csv, rt_json *input, rt_error *err)
{
    if (is_csv)
        return sql_table_from_csv(db, RT_STR("input"), text, err);
    return rt_json_parse(text, &r->arena, input, err) && sql_tables_from(db, *input, err);
}

/* JSON makes tables by its keys; any other text is CSV. */
static bool fill(program_run *r, const jail_frame *frame, rt_json *input, rt_error *err)
{
    rt_json about = rt_json_get_c(r->request, "input_fd");
    rt_str text;
    *input = rt_json_get_c(r->request, "input");
    if (rt_json_is_absent(about) && rt_json_type(*input) == RT_JSON_STRING)
        return fill_from_text(r, rt_json_str(*input), true, input, err);
    if (rt_json_is_absent(about))
        return sql_tables_from(db, *input, err);
    uint64_t index = program_number(about, "index");
    if (index >= frame->fd_count)
        return rt_fail(err, RT_INVALID, "input_fd names a descriptor that did not come");
    bool is_csv = rt_str_eq_c(rt_json_str(rt_json_get_c(about, "type")), "text");
    return program_read_file(frame->fds[index], SQL_FILE_MAX, &r->arena, &text, err) &&
           fill_from_text(r, text, is_csv, input, err);
}

/* ---- statements ---- */

typedef struct script {
    program_run *r;
    rt_json input;
    rt_str code;
    size_t at;     /* where the statement begins */
    size_t broken; /* where it is wrong */
    uint64_t max_rows;
    bool has_rows;
    rt_buf rows; /* of the last query */
    int status;  /* SQLite's, of what failed */
} script;

/* A table that SQLite does not know may be a file: then it is made, and the statement tried again.
 */
static bool bring_table(script *s, rt_error *err)
{
    rt_str said = rt_str_of(sqlite3_errmsg(db)), mark = RT_STR("no such table: ");
    if (!rt_str_starts(said, mark))
        return rt_fail(err, RT_INVALID, "%s", sqlite3_errmsg(db));
    rt_str name = rt_arena_str(&s->r->arena, rt_str_slice(said, mark.len, said.len));
    return sql_table_from_file(db, name, &s->r->arena, err);
}

static bool prepare(script *s, sqlite3_stmt **out, size_t *next, rt_error *err)
{
    rt_str rest = rt_str_slice(s->code, s->at, s->code.len);
    for (int tries = 0;; tries++) {
        const char *tail = rest.ptr;
        s->status = sqlite3_prepare_v2(db, rest.ptr, (int)rest.len, out, &tail);
        if (s->status == SQLITE_OK) {
            *next = s->at + (size_t)(tail - rest.ptr);
            return true;
        }
        int offset = sqlite3_error_offset(db);
        s->broken = s->at + (size_t)RT_MAX(offset, 0);
        if (tries == TABLES_A_QUERY || !bring_table(s, err))
            return err->code ? false : rt_fail(err, RT_INVALID, "%s", sqlite3_errmsg(db));
    }
}

static bool run_statement(script *s, sqlite3_stmt *statement, rt_error *err)
{
    if (!sql_bind(statement, s->input, err))
        return false;
    if (sqlite3_column_count(statement) > 0) {
        s->has_rows = true;
        bool ok = sql_collect(statement, s->max_rows, &s->rows, err);
        s->status = ok ? SQLITE_OK : sqlite3_errcode(db);
        return ok;
    }
    s->status = sqlite3_step(statement);
    if (s->status == SQLITE_DONE)
        return true;
    if (s->status == SQLITE_CANTOPEN)
        return rt_fail(err, RT_INVALID,
                       "%s; a file in WAL mode that cannot be written is attached as "
                       "'file:PATH?immutable=1'",
                       sqlite3_errmsg(db));
    return rt_fail(err, RT_INVALID, "%s", sqlite3_errmsg(db));
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == ';';
}

static bool run_script(script *s, rt_error *err)
{
    while (s->at < s->code.len) {
        sqlite3_stmt *statement = NULL;
        size_t next = s->code.len;
        while (s->at < s->code.len && is_space(s->code.ptr[s->at]))
            s->at++;
        s->broken = s->at;
        bool ok =
            prepare(s, &statement, &next, err) && (!statement || run_statement(s, statement, err));
        sqlite3_finalize(statement);
        if (!ok)
            return false;
        s->at = next;
    }
    return true;
}

/* ---- reporting ---- */

static const char *type_of(const script *s, const rt_error *err)
{
    rt_str text = rt_str_of(err->text);
    if (s->status == SQLITE_NOMEM)
        return "MemoryError";
    if (err->code == RT_LIMIT)
        return "ResourceLimitError";
    if (s->status == SQLITE_PERM || s->status == SQLITE_AUTH || s->status == SQLITE_READONLY)
        return "PermissionError";
    return rt_str_find(text, RT_STR("syntax error")) >= 0 ||
                   rt_str_find(text, RT_STR("incomplete input")) >= 0 ||
                   rt_str_find(text, RT_STR("unrecognized token")) >= 0
               ? "SyntaxError"
               : "RuntimeError";
}

static void write_place(rt_json_writer *w, rt_str code, size_t at)
{
    int64_t line = 1, column = 1;
    for (size_t i = 0; i < at && i < code.len; i++) {
        bool is_end = code.ptr[i] == '\n';
        line += is_end;
        column = is_end ? 1 : column + 1;
    }
    rt_jw_ki64(w, "line", line);
    rt_jw_ki64(w, "column", column);
}

static void report(int control, script *s, bool ok, const rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { .max = JAIL_FRAME_MAX };
    rt_json_writer w;
    uint64_t most = program_number(s->r->request, "answer_bytes");
    bool is_long = ok && most > 0 && s->rows.len > most;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "op", ok && !is_long ? RT_STR("result") : RT_STR("error"));
    rt_jw_ki64(&w, "id", s->r->id);
    if (is_long) {
        rt_jw_kstr(&w, "type", RT_STR("ResourceLimitError"));
        rt_jw_kstr(&w, "name", RT_STR("TooBig"));
        rt_jw_kstr(&w, "message",
                   RT_STR("the answer is larger than the output limit; aggregate, or add a LIMIT"));
    } else if (!ok) {
        bool is_stopped = s->status == SQLITE_INTERRUPT;
        rt_jw_kstr(&w, "type", rt_str_of(type_of(s, err)));
        rt_jw_kstr(&w, "name", is_stopped ? RT_STR("KeyboardInterrupt") : RT_STR("SQLError"));
        rt_jw_kstr(&w, "message", rt_str_of(err->text));
        write_place(&w, s->code, s->broken);
    } else if (s->has_rows) {
        rt_jw_kraw(&w, "value", rt_buf_str(&s->rows));
    }
    rt_jw_end(&w);
    jail_frame_send(control, text.ptr, text.len, NULL, 0, NULL);
}

static uint64_t row_limit(rt_json request)
{
    uint64_t rows;
    rt_str asked = rt_json_str(rt_json_get_c(rt_json_get_c(request, "env"), "SQL_ROWS"));
    return rt_str_to_u64(asked, &rows) ? rows : ROWS_DEFAULT;
}

static int serve_run(int control, const jail_frame *frame, bool *keeps)
{
    rt_error err = { 0 };
    program_run r = PROGRAM_RUN_NONE;
    bool ok = program_begin(&r, control, frame, &err);
    script s = { .r = &r, .rows = { .max = JAIL_FRAME_MAX } };
    *keeps = r.keeps;
    s.code = rt_json_str(rt_json_get_c(r.request, "code"));
    s.max_rows = row_limit(r.request);
    ok = ok && open_database(&err) && fill(&r, frame, &s.input, &err) && run_script(&s, &err);
    report(control, &s, ok, &err);
    rt_buf_done(&s.rows);
    program_end(&r);
    return ok ? 0 : 1;
}

int main(void)
{
    char about[80];
    sqlite3_initialize();
    snprintf(about, sizeof(about), "{\"language\":\"sql\",\"version\":\"%s\"}",
             sqlite3_libversion());
    jail_announce(JAIL_ORDERS_FD, about, NULL);
    int control = jail_serve(JAIL_ORDERS_FD, &(jail_hooks){ 0 });
    jail_frame frame;
    int code = 0;
    bool keeps = true;
    signal(SIGINT, interrupt);
    while (keeps && jail_frame_recv(control, JAIL_FRAME_MAX, &frame, NULL)) {
        code = serve_run(control, &frame, &keeps);
        jail_frame_done(&frame);
    }
    return code;
}
