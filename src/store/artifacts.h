/* SPDX-License-Identifier: Apache-2.0 */
/*
 * artifacts.h - files and large outputs of runs, kept for a while.
 *
 * Promise: the bytes lie encrypted under the data directory, in pieces that can be read one by one,
 * and are gone when their time is over or their owner is erased. The row in the store has the name,
 * the size, the type and the hash. A crash leaves no file without a row that the next sweep would
 * not remove.
 */
#ifndef RT_STORE_ARTIFACTS_H
#define RT_STORE_ARTIFACTS_H

#include "store/db.h"
#include "store/vault.h"

typedef struct rt_shelf rt_shelf;

typedef struct rt_shelf_config {
    rt_store *store;
    const rt_vault *vault;
    const char *directory; /* made when missing, mode 0700 */
    rt_str host;
    uint64_t max_bytes; /* of all artifacts together; the oldest go first; 0: 10 GiB */
    uint64_t ttl_ms;    /* 0: 24 hours */
} rt_shelf_config;

bool rt_shelf_open(const rt_shelf_config *config, rt_shelf **out, rt_error *err);
void rt_shelf_close(rt_shelf *shelf);
void rt_shelf_closep(rt_shelf **shelf);

typedef struct rt_artifact_row {
    rt_str id; /* art_<ms>_<hex>: the handle */
    rt_str organisation_id, user_id, execution_id, session_id;
    rt_str kind;       /* file, stdout, stderr, result */
    rt_str name, type; /* "report.csv", "text/csv" */
    uint64_t size;
    rt_str sha256, host;
    uint64_t created_ms, expires_ms;
} rt_artifact_row;

/* row->id, size, sha256, times and host are filled in; kind ("file") and type when they are empty.
 * When the shelf is full, the oldest artifacts go at once. */
bool rt_artifact_put(rt_shelf *shelf, rt_artifact_row *row, rt_str data, rt_arena *arena,
                     rt_error *err);
/* RT_NOT_FOUND also when it has expired, or belongs to another organisation. */
bool rt_artifact_find(rt_shelf *shelf, rt_str organisation_id, rt_str id, rt_arena *arena,
                      rt_artifact_row *out, rt_error *err);
bool rt_artifact_list(rt_shelf *shelf, rt_str organisation_id, rt_str execution_id, rt_arena *arena,
                      rt_artifact_row **rows, size_t *count, rt_error *err);
/* Bytes from..from+len-1, fewer at the end. Only the pieces touched are read and checked.
 * RT_UNAVAILABLE when row->host is another node, whose disk has them. */
bool rt_artifact_read(rt_shelf *shelf, const rt_artifact_row *row, uint64_t from, size_t len,
                      rt_arena *arena, rt_str *out, rt_error *err);
bool rt_artifact_remove(rt_shelf *shelf, rt_str organisation_id, rt_str id, rt_error *err);
/* Only the bytes, for who has deleted the row in a transaction of their own. */
void rt_artifact_drop(rt_shelf *shelf, rt_str id);
/* Removes what has expired, what is over the budget, and files nobody knows of. */
bool rt_shelf_sweep(rt_shelf *shelf, uint64_t now_ms, uint64_t *removed, rt_error *err);

/* "text/csv" by the name's ending, else by the first bytes. */
const char *rt_content_type(rt_str name, rt_str head);

#endif
