/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h - a small memory: artifacts that skills and agents keep, find again and compact.
 *
 * Promise: content is sealed in the store; what is found is what means something similar to the
 * question (the built-in embedding of tools/search.h); and of every artifact can be told who made
 * it from which others, also when those are gone.
 *
 *     rt_memory memory = { .store = store, .vault = vault, .skills = skills };
 *     rt_str json;
 *     if (rt_memory_commit(&memory, &caller, request, &arena, &json, err))
 *         send(json);                                  // {"memory_id":…,"artifact_id":…}
 *
 * Requests and answers have the shapes of the Memory Service that the Code Executor Service talks
 * to; /openapi.json has them as schemas. Any thread may call.
 */
#ifndef RT_SKILLS_MEMORY_H
#define RT_SKILLS_MEMORY_H

#include "skills/skills.h"

typedef struct rt_memory {
    rt_store *store;
    rt_vault *vault;
    rt_skills *skills; /* summarises what is compacted; NULL: nobody does */
} rt_memory;

#define RT_MEMORY_CONTENT_MAX (1u << 20) /* bytes of one artifact's content */
#define RT_MEMORY_LOOKED_MAX  20000      /* artifacts that one query looks at: the newest */

bool rt_memory_commit(const rt_memory *memory, const rt_caller *caller, rt_json request,
                      rt_arena *arena, rt_str *json, rt_error *err);
bool rt_memory_query(const rt_memory *memory, const rt_caller *caller, rt_json request,
                     rt_arena *arena, rt_str *json, rt_error *err);
bool rt_memory_provenance(const rt_memory *memory, const rt_caller *caller, rt_str id,
                          rt_arena *arena, rt_str *json, rt_error *err);
bool rt_memory_compact(const rt_memory *memory, const rt_caller *caller, rt_json request,
                       rt_arena *arena, rt_str *json, rt_error *err);
bool rt_memory_stats(const rt_memory *memory, const rt_caller *caller, rt_str session_id,
                     rt_arena *arena, rt_str *json, rt_error *err);

/* The caller's texts outlive it. "memory:commit" and "memory:query", for code and for models. */
#define RT_MEMORY_PROVIDER "memory"
bool rt_memory_provider(const rt_memory *memory, const rt_caller *caller, rt_provider **out,
                        rt_error *err);

#endif
