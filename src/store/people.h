/* SPDX-License-Identifier: Apache-2.0 */
/*
 * people.h - what a person may ask of us: everything we have, or that it be gone; and retention.
 *
 * Promise: after an erasure no table holds the person's id, content, address or words, and every
 * chain verifies as before: what stays of a run is its link, with commitments whose salts are gone.
 * A receipt tells what went; it names the person only by a salted hash.
 *
 *     rt_erasure receipt;
 *     if (!rt_user_erase(store, shelf, organisation, user, actor, rt_wall_ms(), &arena, &receipt,
 *                        err))
 *         return rt_wrap(err, "erase a user");
 */
#ifndef RT_STORE_PEOPLE_H
#define RT_STORE_PEOPLE_H

#include "store/artifacts.h"

typedef struct rt_erasure {
    rt_str receipt_id;  /* erase_<ms>_<hex> */
    rt_str user_hash;   /* SHA-256 of the organisation's salt and the user's id: the tombstone */
    uint64_t executions, artifacts, sessions, audit_events, snippets, files, links; /* rows touched */
    uint64_t time_ms;
    rt_str receipt_hash; /* of all the above, and the organisation's id; the audit keeps it too */
} rt_erasure;

/*
 * Removes or blanks every row of the user, their keys included; the chain stays verifiable.
 * Without a shelf, or for what lies on other nodes, the files of artifacts go with the next sweep
 * there. What runs are recorded in the user's name afterwards is there again.
 *
 * receipt_hash is SHA-256 over what Python's json.dumps(receipt, sort_keys=True) gives of the other
 * members, all by their names above, and "organisation_id".
 */
bool rt_user_erase(rt_store *store, rt_shelf *shelf, rt_str organisation_id, rt_str user_id,
                   rt_str actor_id, uint64_t now_ms, rt_arena *arena, rt_erasure *out,
                   rt_error *err);
/* One JSON object with every row about the user: user, keys, executions, provenance, audit,
 * sessions, artifacts, snippets, files. Bytes that are not UTF-8 are {"base64url": "…"}. */
bool rt_user_export(rt_store *store, rt_str organisation_id, rt_str user_id, rt_json_writer *w,
                    rt_error *err);

typedef struct rt_retention {
    uint64_t executions, audit_events, artifacts, sessions; /* removed, or that would be */
} rt_retention;

/*
 * Removes what is older than `days` (at least 1; S3-73): executions, artifacts, sessions that
 * ended, and lines of the audit but those about erasures. An empty organisation means all. Links
 * of the chain stay whole and say when their execution was removed; sums of costs stay. In small
 * transactions, so that runs can be recorded meanwhile; what was removed is in the audit.
 */
bool rt_retention_apply(rt_store *store, rt_str organisation_id, unsigned days, uint64_t now_ms,
                        bool is_dry_run, rt_retention *out, rt_error *err);

#endif
