/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql.h - what the files of the SQL guest share.
 *
 * Promise: SQL runs against a database in memory in which each array of the input is a table. It
 * loads no extension, and reads no file that the cell does not show it.
 */
#ifndef RETORT_GUESTS_SQL_H
#define RETORT_GUESTS_SQL_H

#include <sqlite3.h>

#include "base/base.h"

#define SQL_COLUMNS_MAX 1000
#define SQL_FILE_MAX    ((size_t)256 << 20)

/* ---- csv.c ---- */

/* One field after the other, in RFC 4180's way; also with ';' or tab between them. */
typedef struct csv_reader {
    rt_str rest;
    char between;
    bool is_row_over; /* the field that was read was its row's last */
    rt_buf unquoted;  /* of the field, where quotes were doubled */
} csv_reader;

void csv_start(csv_reader *r, rt_str text); /* finds out what is between fields */
void csv_done(csv_reader *r);
/* False at the end. The field is good until the next call; `is_quoted`: empty is no null. */
bool csv_next(csv_reader *r, rt_str *field, bool *is_quoted);

/* ---- tables.c ---- */

/* Each array of an object's members, or the array itself as "input". */
bool sql_tables_from(sqlite3 *db, rt_json input, rt_error *err);
bool sql_table_from_csv(sqlite3 *db, rt_str name, rt_str text, rt_error *err);
bool sql_table_from_json(sqlite3 *db, rt_str name, rt_json rows, rt_error *err);
/* A table that is named like a file (.csv, .tsv, .json, .jsonl) and is not there yet. */
bool sql_table_from_file(sqlite3 *db, rt_str name, rt_arena *arena, rt_error *err);

/* A number, text or truth as it is, anything nested as JSON text; `text` is for that. */
bool sql_bind_value(sqlite3_stmt *statement, int at, rt_json v, rt_buf *text);

/* ---- answer.c ---- */

/* All rows, as a JSON array of objects; at most this many. */
bool sql_collect(sqlite3_stmt *statement, uint64_t max_rows, rt_buf *out, rt_error *err);
/*
 * Values for :name and ? from the input's "params": by name from an object, by position from an
 * array; a name that is not there is looked for among the input's own members.
 */
bool sql_bind(sqlite3_stmt *statement, rt_json input, rt_error *err);

#endif
