/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres.c - the shared database: several nodes, one PostgreSQL.
 *
 * Statements are prepared once per connection. Values travel in binary where PostgreSQL expects the
 * type we have, else as text it converts; answers come in binary, so that numbers are exact and
 * bytes are bytes. An idle connection is looked at before it is lent: a server that was restarted
 * has closed its end, and that can be seen without asking it.
 *
 * The URL holds a password. What libpq says while it parses a URL may quote it, so that text is
 * never passed on, and a URL whose password would be taken for a host or a port is refused.
 */
#include "store/store_internal.h"

#include <ctype.h>
#include <endian.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define PENDING_READS_MAX 8 /* of messages that came while a connection lay idle */

enum { /* of pg_type: these never change */
       OID_BOOL = 16,
       OID_BYTEA = 17,
       OID_NAME = 19,
       OID_INT8 = 20,
       OID_INT2 = 21,
       OID_INT4 = 23,
       OID_TEXT = 25,
       OID_OID = 26,
       OID_FLOAT4 = 700,
       OID_FLOAT8 = 701,
       OID_UNKNOWN = 705,
       OID_BPCHAR = 1042,
       OID_VARCHAR = 1043,
       OID_NUMERIC = 1700,
       OID_VOID = 2278,
};

typedef struct pg_conn {
    store_conn base;
    PGconn *pg;
    unsigned statement_count;
} pg_conn;

typedef struct pg_statement {
    char name[16];
    size_t param_count;
    Oid params[]; /* what the server takes each value for */
} pg_statement;

/* -- errors ------------------------------------------------------------------------------------ */

static const struct {
    const char *state; /* of an SQLSTATE, as much as matters */
    rt_code code;
    bool is_end; /* of the connection */
} states[] = {
    { "23502", RT_INVALID, false },    { "23514", RT_INVALID, false },
    { "23", RT_CONFLICT, false },      { "22", RT_INVALID, false },
    { "40", RT_UNAVAILABLE, false },   { "55P03", RT_UNAVAILABLE, false },
    { "57014", RT_TIMEOUT, false },    { "57P", RT_UNAVAILABLE, true },
    { "08", RT_UNAVAILABLE, true },    { "53", RT_UNAVAILABLE, false },
    { "25P03", RT_UNAVAILABLE, true }, { "25006", RT_DENIED, false },
    { "28", RT_DENIED, true },         { "42501", RT_DENIED, false },
    { "26000", RT_UNAVAILABLE, true }, /* somebody forgot our statements: a pooler */
    { "0A000", RT_UNAVAILABLE, true }, /* the plan's table was migrated meanwhile */
    { "54", RT_LIMIT, false },         { "58", RT_SYSTEM, false },
};

/* libpq ends its messages, and parts of them, with line ends. */
static bool fail_text(rt_error *err, rt_code code, const char *text)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    char *line = rt_arena_copy(&arena, rt_str_trim(rt_str_of(text)));
    for (char *at = line; *at; at++)
        if (iscntrl((unsigned char)*at))
            *at = ' ';
    return rt_fail(err, code, "%s", line[0] ? line : "PostgreSQL did not say why");
}

static bool fail_result(pg_conn *conn, const PGresult *result, rt_error *err)
{
    const char *state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    const char *text = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    rt_code code = RT_INTERNAL;
    if (PQstatus(conn->pg) != CONNECTION_OK) {
        conn->base.is_broken = true;
        code = RT_UNAVAILABLE;
    }
    for (size_t i = 0; state && i < RT_COUNT(states); i++) {
        if (strncmp(state, states[i].state, strlen(states[i].state)) != 0)
            continue;
        conn->base.is_broken |= states[i].is_end;
        code = states[i].code;
        break;
    }
    return fail_text(err, code, text ? text : PQerrorMessage(conn->pg));
}

static void clear_result(PGresult **result)
{
    PQclear(*result);
}

static bool is_done(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* -- connecting -------------------------------------------------------------------------------- */

static bool is_port_list(const char *text)
{
    return !text || text[strspn(text, "0123456789,")] == '\0';
}

static const char *option_of(const PQconninfoOption *options, const char *keyword)
{
    for (; options->keyword; options++)
        if (strcmp(options->keyword, keyword) == 0)
            return options->val;
    return NULL;
}

static bool is_url_sane(const char *url)
{
    PQconninfoOption *options = PQconninfoParse(url, NULL);
    if (!options)
        return false;
    const char *host = option_of(options, "host"), *name = option_of(options, "dbname");
    bool is_sane = is_port_list(option_of(options, "port")) && !(host && strchr(host, '@')) &&
                   !(name && strchr(name, '@'));
    PQconninfoFree(options);
    return is_sane;
}

static bool settle(rt_store *store, const rt_store_config *config, rt_error *err)
{
    store->location = strndup(config->url.ptr, config->url.len);
    if (!store->location)
        rt_out_of_memory(config->url.len);
    store->lanes[0].max = config->connections ? config->connections : RT_STORE_CONNECTIONS_DEFAULT;
    store->lane_of[RT_TX_READ] = store->lane_of[RT_TX_WRITE] = &store->lanes[0];
    return is_url_sane(store->location)
               ? true
               : rt_fail(err, RT_INVALID,
                         "the URL is postgresql://user:password@host:port/database; in a password "
                         "write @ as %%40, / as %%2F, : as %%3A, %% as %%25");
}

/* The server's own settings stand, if it has any. */
static const char limits[] =
    "SELECT set_config(wanted.name, wanted.value, FALSE) FROM (VALUES"
    " ('statement_timeout', $1), ('lock_timeout', $2),"
    " ('idle_in_transaction_session_timeout', '60000')) AS wanted (name, value)"
    " WHERE current_setting(wanted.name) = '0'";

static void ignore_notice(void *ctx, const PGresult *result)
{
    (void)ctx, (void)result;
}

static bool greet(pg_conn *conn, rt_error *err)
{
    if (PQstatus(conn->pg) != CONNECTION_OK)
        return fail_text(err, RT_UNAVAILABLE, PQerrorMessage(conn->pg));
    const char *encoding = PQparameterStatus(conn->pg, "server_encoding");
    if (!encoding || strcmp(encoding, "UTF8") != 0)
        return rt_fail(err, RT_INVALID, "the database's encoding is %s; it must be UTF8",
                       encoding ? encoding : "unknown");
    PQsetNoticeReceiver(conn->pg, ignore_notice, NULL);
    char statement_ms[24], lock_ms[24];
    snprintf(statement_ms, sizeof(statement_ms), "%d", STORE_STATEMENT_MS);
    snprintf(lock_ms, sizeof(lock_ms), "%d", STORE_LOCK_WAIT_MS);
    const char *values[] = { statement_ms, lock_ms };
    PGresult *result RT_CLEANUP(clear_result) =
        PQexecParams(conn->pg, limits, 2, NULL, values, NULL, NULL, 0);
    return is_done(result) ? true : fail_result(conn, result, err);
}

static void close_conn(store_conn *base)
{
    pg_conn *conn = (pg_conn *)base;
    PQfinish(conn->pg);
    store_statements_done(&base->statements, free);
    free(conn);
}

static bool connect_server(const rt_store *store, rt_tx_kind kind, store_conn **out, rt_error *err)
{
    (void)kind;
    /* What stands after dbname, the URL, overrides it; what stands before is a default. */
    static const char *const names[] = {
        "connect_timeout",  "keepalives_idle",  "keepalives_interval",
        "keepalives_count", "tcp_user_timeout", "fallback_application_name",
        "dbname",           "client_encoding",  NULL
    };
    const char *values[] = {
        "5", "30", "5", "3", "15000", "retort", store->location, "UTF8", NULL
    };
    _Static_assert(RT_COUNT(names) == RT_COUNT(values), "a value for each name");
    pg_conn *conn = calloc(1, sizeof(*conn));
    if (!conn)
        rt_out_of_memory(sizeof(*conn));
    conn->base.is_fresh = true;
    conn->pg = PQconnectdbParams(names, values, 1);
    if (!conn->pg)
        rt_out_of_memory(0);
    if (!greet(conn, err)) {
        close_conn(&conn->base);
        return false;
    }
    *out = &conn->base;
    return true;
}

static bool has_input(PGconn *pg)
{
    struct pollfd socket = { .fd = PQsocket(pg), .events = POLLIN };
    return poll(&socket, 1, 0) > 0;
}

static bool is_alive(store_conn *base)
{
    PGconn *pg = ((pg_conn *)base)->pg;
    for (int i = 0; i < PENDING_READS_MAX && has_input(pg); i++) {
        if (!PQconsumeInput(pg))
            return false;
        PQfreemem(PQnotifies(pg)); /* makes libpq look at what came */
    }
    return PQstatus(pg) == CONNECTION_OK && !has_input(pg);
}

/* -- statements -------------------------------------------------------------------------------- */

static pg_statement *describe(pg_conn *conn, const char *name, rt_error *err)
{
    PGresult *result RT_CLEANUP(clear_result) = PQdescribePrepared(conn->pg, name);
    if (!is_done(result)) {
        fail_result(conn, result, err);
        return NULL;
    }
    size_t count = (size_t)PQnparams(result);
    pg_statement *statement = calloc(1, sizeof(*statement) + count * sizeof(Oid));
    if (!statement)
        rt_out_of_memory(sizeof(*statement));
    memcpy(statement->name, name, strlen(name) + 1);
    statement->param_count = count;
    for (size_t i = 0; i < count; i++)
        statement->params[i] = PQparamtype(result, (int)i);
    return statement;
}

static void deallocate(pg_conn *conn, pg_statement *statement)
{
    if (!statement)
        return;
    char sql[40];
    snprintf(sql, sizeof(sql), "DEALLOCATE %s", statement->name);
    PQclear(PQexec(conn->pg, sql));
    free(statement);
}

static const pg_statement *prepare(pg_conn *conn, const char *sql, rt_error *err)
{
    pg_statement *statement = store_statements_find(&conn->base.statements, sql);
    if (statement)
        return statement;
    char name[sizeof(statement->name)];
    snprintf(name, sizeof(name), "s%u", conn->statement_count++);
    PGresult *result RT_CLEANUP(clear_result) = PQprepare(conn->pg, name, sql, 0, NULL);
    if (!is_done(result)) {
        fail_result(conn, result, err);
        return NULL;
    }
    statement = describe(conn, name, err);
    if (statement)
        deallocate(conn, store_statements_add(&conn->base.statements, sql, statement));
    return statement;
}

typedef struct params {
    const char **values;
    int *lengths, *formats; /* format 1 is binary */
} params;

static bool is_text_or_bytes(Oid type)
{
    return type == OID_TEXT || type == OID_BYTEA || type == OID_VARCHAR || type == OID_BPCHAR ||
           type == OID_NAME || type == OID_UNKNOWN;
}

static rt_str encode_u64(uint64_t n, rt_arena *arena)
{
    n = htobe64(n);
    return rt_arena_str(arena, (rt_str){ (const char *)&n, sizeof(n) });
}

/* True when *out is what PostgreSQL reads as binary for that type, false when it is text. */
static bool encode(const rt_sql_value *value, Oid type, rt_arena *arena, rt_str *out)
{
    uint64_t bits;
    switch (value->kind) {
    case RT_SQL_NULL:
        *out = (rt_str){ NULL, 0 };
        return false;
    case RT_SQL_TEXT:
    case RT_SQL_BYTES:
        *out = is_text_or_bytes(type) ? value->text : rt_arena_str(arena, value->text);
        return is_text_or_bytes(type);
    case RT_SQL_DOUBLE:
        memcpy(&bits, &value->number, sizeof(bits));
        *out = type == OID_FLOAT8 ? encode_u64(bits, arena)
                                  : rt_arena_printf(arena, "%.17g", value->number);
        return type == OID_FLOAT8;
    case RT_SQL_I64:
    case RT_SQL_BOOL:
        break;
    }
    *out = type == OID_INT8   ? encode_u64((uint64_t)value->i64, arena)
           : type == OID_BOOL ? rt_arena_str(arena, value->i64 ? RT_STR("1") : RT_STR("0"))
                              : rt_arena_printf(arena, "%lld", (long long)value->i64);
    return type == OID_INT8;
}

static bool encode_all(const pg_statement *statement, const rt_sql_value *values, size_t count,
                       rt_arena *arena, params *out, rt_error *err)
{
    if (statement->param_count != count)
        return rt_fail(err, RT_INTERNAL, "a statement has %zu parameters and %zu values",
                       statement->param_count, count);
    *out = (params){ .values = rt_arena_alloc(arena, count * sizeof(*out->values)),
                     .lengths = rt_arena_alloc(arena, count * sizeof(*out->lengths)),
                     .formats = rt_arena_alloc(arena, count * sizeof(*out->formats)) };
    for (size_t i = 0; i < count; i++) {
        rt_str text;
        out->formats[i] = encode(&values[i], statement->params[i], arena, &text);
        if (text.len > INT32_MAX)
            return rt_fail(err, RT_LIMIT, "value %zu of a statement is too long", i + 1);
        out->values[i] = text.ptr;
        out->lengths[i] = (int)text.len;
    }
    return true;
}

/* -- answers ----------------------------------------------------------------------------------- */

static uint64_t read_be(const char *at, int size)
{
    uint64_t n = 0;
    for (int i = 0; i < size; i++)
        n = n << 8 | (uint8_t)at[i];
    return n;
}

static rt_sql_value read_float(const char *at, int size)
{
    uint64_t bits = read_be(at, size);
    uint32_t half = (uint32_t)bits;
    double wide;
    float narrow;
    memcpy(&wide, &bits, sizeof(wide));
    memcpy(&narrow, &half, sizeof(narrow));
    return rt_sql_double(size == 8 ? wide : (double)narrow);
}

/*
 * NUMERIC is what SUM and AVG of integers give: groups of four decimal digits, of which the first
 * counts 10000^weight. Without places after the point it is an integer, as SQLite has it.
 */
static rt_sql_value read_numeric(const char *at, int size, rt_arena *arena)
{
    enum { NEGATIVE = 0x4000, SPECIAL = 0x8000 };
    unsigned groups = (unsigned)read_be(at, 2), sign = (unsigned)read_be(at + 4, 2);
    int weight = (int16_t)read_be(at + 2, 2);
    bool is_whole = read_be(at + 6, 2) == 0;
    if (sign & SPECIAL || 8 + 2 * groups > (unsigned)size)
        return rt_sql_null(); /* NaN, infinity */
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf_add(&text, sign == NEGATIVE ? RT_STR("-0") : RT_STR("0"));
    for (unsigned i = 0; i < groups; i++)
        rt_buf_addf(&text, "%04u", (unsigned)read_be(at + 8 + 2 * i, 2));
    int exponent = 4 * (weight + 1 - (int)groups);
    for (int i = 0; is_whole && i < exponent && groups > 0 && exponent < 40; i++)
        rt_buf_addc(&text, '0');
    int64_t whole;
    if (is_whole && exponent < 40 && rt_str_to_i64(rt_buf_str(&text), &whole))
        return rt_sql_i64(whole);
    if (!is_whole || exponent >= 40)
        rt_buf_addf(&text, "e%d", exponent);
    return rt_sql_double(strtod(rt_arena_copy(arena, rt_buf_str(&text)), NULL));
}

static bool read_cell(const PGresult *result, int row, int column, rt_arena *arena,
                      rt_sql_value *out, rt_error *err)
{
    const char *at = PQgetvalue(result, row, column);
    int size = PQgetlength(result, row, column);
    if (PQgetisnull(result, row, column)) {
        *out = rt_sql_null();
        return true;
    }
    switch (PQftype(result, column)) {
    case OID_BOOL:
        *out = rt_sql_bool(at[0] != 0);
        return true;
    case OID_INT2:
        *out = rt_sql_i64((int16_t)read_be(at, size));
        return true;
    case OID_INT4:
        *out = rt_sql_i64((int32_t)read_be(at, size));
        return true;
    case OID_INT8:
    case OID_OID:
        *out = rt_sql_i64((int64_t)read_be(at, size));
        return true;
    case OID_FLOAT4:
    case OID_FLOAT8:
        *out = read_float(at, size);
        return true;
    case OID_NUMERIC:
        *out = read_numeric(at, size, arena);
        return true;
    case OID_BYTEA:
        *out = rt_sql_bytes(rt_arena_str(arena, (rt_str){ at, (size_t)size }));
        return true;
    case OID_TEXT:
    case OID_NAME:
    case OID_UNKNOWN:
    case OID_BPCHAR:
    case OID_VARCHAR:
    case OID_VOID:
        *out = rt_sql_text(rt_arena_str(arena, (rt_str){ at, (size_t)size }));
        return true;
    default:
        return rt_fail(err, RT_INTERNAL, "column %s has type %u, which we do not read",
                       PQfname(result, column), PQftype(result, column));
    }
}

static uint64_t changed_by(PGresult *result)
{
    uint64_t changed = 0;
    if (strncmp(PQcmdStatus(result), "SELECT", 6) != 0)
        rt_str_to_u64(rt_str_of(PQcmdTuples(result)), &changed);
    return changed;
}

static bool read_rows(PGresult *result, rt_arena *arena, rt_rows *out, rt_error *err)
{
    int rows = PQntuples(result), columns = PQnfields(result);
    if (rows > RT_STORE_ROWS_MAX)
        return rt_fail(err, RT_LIMIT, "an answer of more than %d rows", RT_STORE_ROWS_MAX);
    size_t count = (size_t)rows * (size_t)columns;
    rt_sql_value *cells = rt_arena_alloc(arena, count * sizeof(*cells));
    for (int row = 0; row < rows; row++)
        for (int column = 0; column < columns; column++)
            if (!read_cell(result, row, column, arena, &cells[row * columns + column], err))
                return false;
    *out = (rt_rows){ .count = (size_t)rows,
                      .columns = (size_t)columns,
                      .cells = cells,
                      .changed = changed_by(result) };
    return true;
}

static bool exec(store_conn *base, const char *sql, const rt_sql_value *values, size_t count,
                 rt_arena *arena, rt_rows *out, rt_error *err)
{
    pg_conn *conn = (pg_conn *)base;
    const pg_statement *statement = prepare(conn, sql, err);
    if (!statement)
        return false;
    rt_arena scratch RT_CLEANUP(rt_arena_done) = { 0 };
    params encoded = { 0 };
    if (!encode_all(statement, values, count, &scratch, &encoded, err))
        return false;
    PGresult *result RT_CLEANUP(clear_result) = PQexecPrepared(
        conn->pg, statement->name, (int)count, encoded.values, encoded.lengths, encoded.formats, 1);
    if (!is_done(result))
        return fail_result(conn, result, err);
    return !out || read_rows(result, arena, out, err);
}

static bool script(store_conn *base, const char *text, rt_error *err)
{
    pg_conn *conn = (pg_conn *)base;
    PGresult *result RT_CLEANUP(clear_result) = PQexec(conn->pg, text);
    return is_done(result) ? true : fail_result(conn, result, err);
}

const store_backend store_postgres = {
    .kind = "postgresql",
    /* A reader sees one moment throughout, as it does in SQLite. */
    .begin = { [RT_TX_READ] = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
               [RT_TX_WRITE] = "BEGIN" },
    .migration_lock = "SET LOCAL lock_timeout = '120s'; SET LOCAL statement_timeout = '600s';"
                      "SELECT pg_advisory_xact_lock(8242827118291)",
    .settle = settle,
    .connect = connect_server,
    .close = close_conn,
    .is_alive = is_alive,
    .exec = exec,
    .script = script,
};
