/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit.h - who did what, and proof that nobody changed the record since.
 *
 * Promise: each provenance record holds the hash of the one before it in its organisation, so a
 * changed, missing, added or reordered record is found. Erasure of a person keeps the chain whole:
 * personal fields are in the hash only by a salted commitment, and the salt goes with them.
 *
 * Anybody can check the records as rt_provenance_write() gives them. The hash is SHA-256 over the
 * object in Python's sorted form, without six members: the hash itself, the personal texts with
 * their salts, and whether they were erased. A commitment is SHA-256 over the salt's hexadecimal
 * text and then the value's, an absent value being empty. The first record follows 64 zeros.
 *
 *     UNHASHED = ("hash", "actor_id", "actor_salt", "error_message", "error_salt", "is_erased")
 *     sha256 = lambda text: hashlib.sha256(text.encode()).hexdigest()
 *
 *     def verify(records):                      # of one organisation, oldest first
 *         previous = "0" * 64
 *         for sequence, record in enumerate(records, 1):
 *             hashed = {k: v for k, v in record.items() if k not in UNHASHED}
 *             assert record["sequence"] == sequence and record["previous_hash"] == previous
 *             assert record["hash"] == sha256(json.dumps(hashed, sort_keys=True))
 *             if not record["is_erased"]:
 *                 for text, name in (("actor_id", "actor"), ("error_message", "error")):
 *                     commitment = sha256(record[name + "_salt"] + (record[text] or ""))
 *                     assert record[name + "_commitment"] == commitment
 *             previous = record["hash"]
 *         return previous                       # compare it with one noted elsewhere
 *
 * Who can rewrite the whole database can compute a whole new chain. Against that, keep the head's
 * hash outside of it now and then.
 *
 * Retention and erasure remove the rows of executions and leave the links: removed_ms in a link
 * says when. It is not hashed, so it excuses a row that is gone, and nothing else.
 */
#ifndef RT_STORE_AUDIT_H
#define RT_STORE_AUDIT_H

#include "store/db.h"

typedef struct rt_audit_event {
    int64_t id;
    uint64_t time_ms;
    rt_str organisation_id, actor_id, actor_type;
    rt_str action;  /* execution.run, key.create, session.branch, data.erase, … or one of S0-66 */
    rt_str subject; /* an id */
    rt_str outcome; /* ok, denied, failed */
    rt_str detail;  /* JSON object, never raw data */
    rt_str address; /* of the client */
} rt_audit_event;

/* A time of 0 is now; a word in capitals that is none of the event types of S0-66 is RT_INVALID. */
bool rt_audit_add(rt_store *store, const rt_audit_event *event, rt_error *err);
/* Newest first. Empty: any organisation, any action; before_id 0: from the newest; limit: at most
 * 500, 0: 50. */
bool rt_audit_list(rt_store *store, rt_str organisation_id, rt_str action, uint64_t since_ms,
                   int64_t before_id, unsigned limit, rt_arena *arena, rt_audit_event **rows,
                   size_t *count, rt_error *err);

typedef struct rt_audit_report {
    uint64_t organisations; /* that have a chain */
    uint64_t records, erased, faults;
} rt_audit_report;

typedef void (*rt_audit_fault_fn)(void *ctx, rt_str organisation_id, int64_t sequence,
                                  rt_str execution_id, const char *what);

/* Walks every chain (or one), page by page, while others may add to it. True when it could be read;
 * report->faults says what was found. A fault about no certain record has sequence 0. */
bool rt_audit_verify(rt_store *store, rt_str organisation_id, rt_audit_fault_fn each, void *ctx,
                     rt_audit_report *report, rt_error *err);

#endif
