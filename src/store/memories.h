/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memories.h - artifacts that skills and agents keep for later.
 *
 * Promise: a memory is written once; when it is removed its content goes, and who made it from what
 * stays, so that the origin of what was made from it can still be told.
 */
#ifndef RT_STORE_MEMORIES_H
#define RT_STORE_MEMORIES_H

#include "store/db.h"

typedef struct rt_memory_row {
    uint64_t number; /* from 1 on, in the order they came; given by the store */
    rt_str id, organisation_id, user_id, session_id, type, safety_class;
    rt_str actor_id, actor_type;
    rt_str content; /* sealed: see skills/memory.c */
    rt_str content_hash, inputs_hash;
    rt_str embedding; /* floats of this machine */
    uint64_t tokens;
    rt_str metadata, tags, tool_ids, parents; /* JSON */
    uint64_t created_ms, removed_ms;          /* removed_ms 0: it is there */
} rt_memory_row;

/* RT_CONFLICT when the organisation has this id. */
bool rt_memory_add(rt_store *store, const rt_memory_row *row, uint64_t *number, rt_error *err);
/* Removed ones too. RT_NOT_FOUND. */
bool rt_memory_find(rt_store *store, rt_str organisation_id, rt_str id, rt_arena *arena,
                    rt_memory_row *out, rt_error *err);

typedef struct rt_memory_filter {
    rt_str organisation_id, session_id, type, safety_class; /* empty: any */
    unsigned limit;
} rt_memory_filter;

/* Those that are there, newest first. */
bool rt_memory_rows(rt_store *store, const rt_memory_filter *filter, rt_arena *arena,
                    rt_memory_row **rows, size_t *count, rt_error *err);
bool rt_memory_remove(rt_store *store, rt_str organisation_id, rt_str id, uint64_t now_ms,
                      rt_error *err);

#endif
