/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snippets.h - code worth keeping ("patterns"), and how well it does.
 *
 * Promise: a name belongs to one snippet of an organisation; a run is counted once, also when many
 * end at the same moment. engine/patterns.h says what a pattern may be and runs it.
 */
#ifndef RT_STORE_SNIPPETS_H
#define RT_STORE_SNIPPETS_H

#include "store/db.h"

#define RT_SNIPPETS_MAX      10000 /* of one organisation */
#define RT_SNIPPETS_LIST_MAX 500

typedef struct rt_snippet {
    rt_str id; /* snippet_<ms>_<hex> */
    rt_str organisation_id, user_id;
    rt_str name, description;
    rt_str category; /* empty: general */
    rt_str code, language;
    rt_str tags;         /* a JSON array of strings; empty: none */
    rt_str parameters;   /* a JSON Schema of its inputs; empty: any object */
    rt_str steps;        /* a JSON array: other patterns, one after another; empty: it has code */
    rt_str learned_from; /* an execution's id; may be empty */
    uint64_t usage_count, last_used_ms; /* how often it was taken out */
    uint64_t runs, successes;           /* these five are of runs */
    double success_rate;                /* percent; 100 before the first */
    double average_exec_ms, average_cost_usd;
    uint64_t created_ms, updated_ms;
} rt_snippet;

/* RT_CONFLICT when the name is taken; with `is_replacing` what is there is overwritten, and counted
 * anew. RT_LIMIT when there are too many. */
bool rt_snippet_add(rt_store *store, const rt_snippet *snippet, bool is_replacing, rt_error *err);
/* RT_NOT_FOUND: "Snippet not found: name". */
bool rt_snippet_find(rt_store *store, rt_str organisation_id, rt_str name, rt_arena *arena,
                     rt_snippet *out, rt_error *err);
/* The same, and counts that it was taken out. */
bool rt_snippet_take(rt_store *store, rt_str organisation_id, rt_str name, uint64_t now_ms,
                     rt_arena *arena, rt_snippet *out, rt_error *err);
/* By name. An empty category: all. `after` is the last name of the page before. */
bool rt_snippet_list(rt_store *store, rt_str organisation_id, rt_str category, rt_str after,
                     unsigned limit, rt_arena *arena, rt_snippet **rows, size_t *count,
                     rt_error *err);
bool rt_snippet_remove(rt_store *store, rt_str organisation_id, rt_str name, rt_error *err);
/* A run has ended. One that is gone meanwhile is not counted, and no error. */
bool rt_snippet_ran(rt_store *store, rt_str organisation_id, rt_str name, bool is_success,
                    double elapsed_ms, double cost_usd, uint64_t now_ms, rt_error *err);

/* True once for each organisation: it has not had the sample patterns yet. */
bool rt_snippet_welcome(rt_store *store, rt_str organisation_id, bool *is_new, rt_error *err);

/* How often patterns were run, of an organisation (empty: all), and how many of them went well. */
bool rt_snippet_totals(rt_store *store, rt_str organisation_id, uint64_t *runs, uint64_t *successes,
                       rt_error *err);

#endif
