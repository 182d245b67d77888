/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skills.h - skills that were registered over the API.
 *
 * Promise: a version of a skill, once registered, stays what it is; another one is another row.
 */
#ifndef RT_STORE_SKILLS_H
#define RT_STORE_SKILLS_H

#include "store/db.h"

typedef struct rt_skill_row {
    rt_str organisation_id, name, version;
    rt_str metadata;                    /* JSON: what skill.yaml would say */
    rt_str input_schema, output_schema; /* JSON */
    rt_str handler_file, code;
    rt_str created_by;
    uint64_t created_ms;
} rt_skill_row;

/* RT_CONFLICT when the organisation has this version already. */
bool rt_skill_add(rt_store *store, const rt_skill_row *row, rt_error *err);
/* Of all organisations, by name. */
bool rt_skill_rows(rt_store *store, rt_arena *arena, rt_skill_row **rows, size_t *count,
                   rt_error *err);
/* Another number whenever the rows are others. */
bool rt_skill_mark(rt_store *store, uint64_t *mark, rt_error *err);

#endif
