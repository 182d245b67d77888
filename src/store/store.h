/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - a tour of what Retort remembers.
 *
 * Promise: what a function reported as written survives a kill -9 of the program, is there once,
 * and holds no raw input or output, only hashes and sizes. SQLite and PostgreSQL behave alike: one
 * schema, one set of statements, one set of tests. Every function here may be called from any
 * thread.
 *
 *     rt_store *store RT_CLEANUP(rt_store_closep) = NULL;
 *     rt_store_config config = { .url = RT_STR("sqlite:///var/lib/retort/retort.db") };
 *     if (!rt_store_open(&config, &store, err) || !rt_store_migrate(store, NULL, NULL, err))
 *         return rt_wrap(err, "the store");
 *     rt_execution_record(store, &execution, err);
 *
 * Times are milliseconds since 1970 (rt_wall_ms). Ids are texts. Text is copied in, and results
 * live in the arena they were asked into.
 */
#ifndef RT_STORE_STORE_H
#define RT_STORE_STORE_H

#include "store/db.h"         /* the database itself: open, migrate, statements, transactions */
#include "store/accounts.h"   /* organisations, workspaces, users, API keys */
#include "store/executions.h" /* one row per run, with its provenance, cost and audit */
#include "store/audit.h"      /* who did what; the chain and its verification */
#include "store/budgets.h"    /* what a month may cost, and that it was told in time */
#include "store/costs.h"      /* daily and monthly rows, summaries */
#include "store/sessions.h"   /* which node owns which session */
#include "store/approvals.h"  /* what waits for a person's word */
#include "store/snippets.h"   /* code worth keeping: patterns */
#include "store/memories.h"   /* artifacts that are kept for later */
#include "store/skills.h"     /* skills that were registered */
#include "store/artifacts.h"  /* what runs left behind, for a while; encrypted on disk */
#include "store/agents.h"     /* code agents and their versions */
#include "store/objects.h"    /* what is too large for a row, for good; encrypted on disk */
#include "store/people.h"     /* erase, export, retention */
#include "store/vault.h"      /* AES-GCM, the key file, secrets */
#include "store/cache.h"      /* results that need not be computed again */

#endif
