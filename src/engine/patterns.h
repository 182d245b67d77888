/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patterns.h - code that worked once, kept under a name and run again with other inputs.
 *
 * Promise: a pattern runs as any code does, through the one entry point, with its inputs checked
 * against the schema it was saved with and the schema's defaults filled in; each run moves its
 * statistics. Every organisation begins with the two samples.
 *
 *     rt_pattern_save(engine, &caller, body, false, &arena, &saved, err);
 *     rt_request request = { .caller = caller, .surface = RT_STR("rest") };
 *     rt_pattern_run run = { .name = RT_STR("csv-analyzer"), .inputs = inputs };
 *     rt_pattern_execute(engine, &request, &run, &arena, &answer, err);
 *
 * A chain has steps in place of code: other patterns, each fed with the chain's inputs ("$inputs",
 * "$inputs.limit") and with what the step before answered ("$previous", "$previous.rows").
 */
#ifndef RT_ENGINE_PATTERNS_H
#define RT_ENGINE_PATTERNS_H

#include "engine/engine.h"

#define RT_PATTERN_NAME_MAX  100 /* characters */
#define RT_PATTERN_STEPS_MAX 10

/*
 * Saves what a JSON object says: name, code or steps, description, language (python), category
 * (general), tags, parameters (a JSON Schema), learned_from (an execution's id). RT_INVALID names
 * what is wrong; RT_CONFLICT when the name is taken, unless it replaces.
 */
bool rt_pattern_save(rt_engine *engine, const rt_caller *caller, rt_json body, bool is_replacing,
                     rt_arena *arena, rt_snippet *out, rt_error *err);
/* RT_NOT_FOUND: "Snippet not found: name". Counts as a use. */
bool rt_pattern_get(rt_engine *engine, const rt_caller *caller, rt_str name, rt_arena *arena,
                    rt_snippet *out, rt_error *err);
bool rt_pattern_list(rt_engine *engine, const rt_caller *caller, rt_str category, rt_str after,
                     unsigned limit, rt_arena *arena, rt_snippet **out, size_t *count,
                     rt_error *err);
bool rt_pattern_remove(rt_engine *engine, const rt_caller *caller, rt_str name, rt_error *err);

/* -- Running ----------------------------------------------------------------------------------- */

typedef struct rt_pattern_run {
    rt_str name;
    rt_json inputs; /* an object; absent: none */
    /* How one run is done; NULL: rt_engine_execute(). It may add a canceller and the like. */
    bool (*execute)(void *ctx, rt_request *request, rt_answer *out, rt_error *err);
    void *ctx;
} rt_pattern_run;

typedef struct rt_pattern_step {
    rt_str name, execution_id;
    rt_status status;
} rt_pattern_step;

typedef struct rt_pattern_answer {
    rt_answer answer; /* of the last run: the one that failed, or the end of the chain */
    rt_pattern_step steps[RT_PATTERN_STEPS_MAX]; /* of a chain */
    size_t step_count;                           /* 0: it is none */
} rt_pattern_answer;

/* `request` says who, how and within which limits; what is run is the pattern's. */
bool rt_pattern_execute(rt_engine *engine, const rt_request *request, const rt_pattern_run *run,
                        rt_arena *arena, rt_pattern_answer *out, rt_error *err);

#endif
