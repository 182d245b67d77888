/* SPDX-License-Identifier: Apache-2.0 */
/* people.h - what a person may ask of us: everything we have, or that it be gone; and retention. */
#ifndef RT_STORE_PEOPLE_H
#define RT_STORE_PEOPLE_H

#include "store/artifacts.h"

typedef struct rt_erasure {
    rt_str receipt_id;  /* erase_<ms>_<hex> */
    rt_str user_hash;   /* SHA-256 of the organisation's salt and the user's id: the tombstone */
    uint64_t executions, artifacts, sessions, audit_events, snippets, files, links; /* rows touched */
    uint64_t time_ms;
    rt_str receipt_hash; /* of all the above; the audit keeps it too */
} rt_erasure;

/* Removes or blanks every row of the user; the chain stays verifiable. `shelf` may be NULL. */
bool rt_user_erase(rt_store *store, rt_shelf *shelf, rt_str organisation_id, rt_str user_id,
                   rt_str actor_id, uint64_t now_ms, rt_arena *arena, rt_erasure *out,
                   rt_error *err);
/* One JSON object with every row about the user. */
bool rt_user_export(rt_store *store, rt_str organisation_id, rt_str user_id, rt_json_writer *w,
                    rt_error *err);

typedef struct rt_retention {
    uint64_t executions, audit_events, artifacts; /* removed, or that a dry run would remove */
} rt_retention;

/* Blanks what runs older than `days` say (S3-73); an empty organisation means all. Links of the
 * chain stay. */
bool rt_retention_apply(rt_store *store, rt_str organisation_id, unsigned days, uint64_t now_ms,
                        bool is_dry_run, rt_retention *out, rt_error *err);

#endif
