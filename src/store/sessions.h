/* SPDX-License-Identifier: Apache-2.0 */
/* sessions.h - which node owns which session, so that others can say where it is. */
#ifndef RT_STORE_SESSIONS_H
#define RT_STORE_SESSIONS_H

#include "store/db.h"

typedef struct rt_session_row {
    rt_str id, organisation_id, workspace_id, user_id, key_id;
    rt_str host, host_url; /* the node that has it */
    rt_str language, policy, parent_id, name;
    rt_str status; /* ACTIVE ENDED EXPIRED LOST */
    uint64_t created_ms, expires_ms, ended_ms, last_used_ms, executions;
} rt_session_row;

bool rt_session_save(rt_store *store, const rt_session_row *row, rt_error *err); /* new or changed */
bool rt_session_find(rt_store *store, rt_str organisation_id, rt_str id, rt_arena *arena,
                     rt_session_row *out, rt_error *err);
/* ACTIVE ones first, newest first. An empty status: any. */
bool rt_session_rows(rt_store *store, rt_str organisation_id, rt_str status, unsigned limit,
                     rt_arena *arena, rt_session_row **rows, size_t *count, rt_error *err);
/* After a restart: what this host had is LOST. */
bool rt_session_recover(rt_store *store, rt_str host, uint64_t now_ms, uint64_t *count,
                        rt_error *err);

#endif
