/* SPDX-License-Identifier: Apache-2.0 */
/*
 * approvals.h - what waits for a person's word, and what the word was.
 *
 * Promise: an approval is decided once, by one person, whichever nodes ask at the same moment; who
 * decided and when stays on record. After expires_ms nothing can be approved any more.
 */
#ifndef RT_STORE_APPROVALS_H
#define RT_STORE_APPROVALS_H

#include "store/db.h"

typedef struct rt_approval_row {
    rt_str id; /* appr_<ms>_<hex> */
    rt_str organisation_id, workspace_id, user_id, key_id;
    rt_str execution_id, session_id, host;
    rt_str operation, reason;
    rt_str arguments; /* sealed: see engine/approvals.c */
    rt_str arguments_hash;
    rt_str priority; /* low normal high urgent; empty: normal */
    rt_str status;   /* pending approved rejected expired cancelled */
    uint64_t created_ms, expires_ms, decided_ms;
    rt_str decided_by, comment;
} rt_approval_row;

bool rt_approval_add(rt_store *store, const rt_approval_row *row, rt_error *err);
/* RT_NOT_FOUND, also when it belongs to another organisation. An empty organisation sees all. */
bool rt_approval_find(rt_store *store, rt_str organisation_id, rt_str id, rt_arena *arena,
                      rt_approval_row *out, rt_error *err);
/* Newest first. An empty status: any. */
bool rt_approval_list(rt_store *store, rt_str organisation_id, rt_str status, unsigned limit,
                      rt_arena *arena, rt_approval_row **rows, size_t *count, rt_error *err);
/* From pending to another status. RT_CONFLICT, naming what it is, when it is not pending any more.
 */
bool rt_approval_decide(rt_store *store, rt_str organisation_id, rt_str id, rt_str status,
                        rt_str decided_by, rt_str comment, uint64_t now_ms, rt_arena *arena,
                        rt_approval_row *out, rt_error *err);
/* What was approved is done, once: marks it with the execution. RT_CONFLICT when it is not approved,
 * was used before, or its time is over. */
bool rt_approval_use(rt_store *store, rt_str id, rt_str execution_id, uint64_t now_ms,
                     rt_error *err);
/* Pending ones whose time is over are expired; those of a host that restarted are cancelled. */
bool rt_approval_expire(rt_store *store, uint64_t now_ms, uint64_t *count, rt_error *err);
bool rt_approval_recover(rt_store *store, rt_str host, uint64_t now_ms, uint64_t *count,
                         rt_error *err);

#endif
