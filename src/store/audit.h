/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit.h - who did what, and proof that nobody changed the record since.
 *
 * Promise: each provenance record holds the hash of the one before it in its organisation, so a
 * changed, missing, added or reordered record is found. Erasure of a person keeps the chain whole:
 * personal fields are in the hash only by a salted commitment, and the salt goes with them.
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

bool rt_audit_add(rt_store *store, const rt_audit_event *event, rt_error *err);
bool rt_audit_list(rt_store *store, rt_str organisation_id, rt_str action, uint64_t since_ms,
                   int64_t before_id, unsigned limit, rt_arena *arena, rt_audit_event **rows,
                   size_t *count, rt_error *err);

typedef struct rt_audit_report {
    uint64_t organisations, records, erased, faults;
} rt_audit_report;

typedef void (*rt_audit_fault_fn)(void *ctx, rt_str organisation_id, int64_t sequence,
                                  rt_str execution_id, const char *what);

/* Walks every chain (or one). True when it could be read; report->faults says what was found. */
bool rt_audit_verify(rt_store *store, rt_str organisation_id, rt_audit_fault_fn each, void *ctx,
                     rt_audit_report *report, rt_error *err);

#endif
