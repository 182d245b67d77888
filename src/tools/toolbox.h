/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toolbox.h - tools whose code is ours: the sample tools, and their place in the store.
 *
 * Promise: looking around never gives code; code runs only in a cell, by whoever handed in the
 * means to run it; a tool that needs the network says which grant it lacks.
 *
 *     size_t added;
 *     rt_toolbox_seed(store, &added, err);                    // again: nothing new
 *     rt_toolbox_config config = { .store = store, .run = run_in_a_cell, .run_ctx = runtime };
 *     if (rt_toolbox_open(&config, &provider, err))
 *         rt_tools_add(tools, provider, err);                 // "toolbox:csv_parser"
 */
#ifndef RT_TOOLS_TOOLBOX_H
#define RT_TOOLS_TOOLBOX_H

#include "tools/tools.h"

#define RT_TOOLBOX "toolbox"

/* One row of the store's tools. */
typedef struct rt_toolbox_tool {
    rt_str id;   /* "csv_parser" */
    rt_str name; /* "CSV Parser" */
    rt_str description, version, language, category;
    rt_str input_schema; /* JSON; these five only from rt_toolbox_get */
    rt_str code, sample_input, required_packages, allowed_hosts;
    int64_t max_memory_mb, max_timeout_sec;
    int64_t usage_count, last_used_ms;
    double average_exec_ms;
} rt_toolbox_tool;

/* The eleven sample tools in their five categories; says how many were not there before. */
bool rt_toolbox_seed(rt_store *store, size_t *added, rt_error *err);
/* Unless this store has been seeded before, however many of the tools are left. */
bool rt_toolbox_seed_once(rt_store *store, rt_error *err);

/* Active tools, by category and name, without code. `category` and `text` may be empty; `text` is
 * looked for in name, description and category, whatever the case. */
bool rt_toolbox_list(rt_store *store, rt_str category, rt_str text, rt_arena *arena,
                     rt_toolbox_tool **out, size_t *count, rt_error *err);
/* By id or name. RT_NOT_FOUND: "Tool not found: id". */
bool rt_toolbox_get(rt_store *store, rt_str id, rt_arena *arena, rt_toolbox_tool *out,
                    rt_error *err);

/* -- Running ----------------------------------------------------------------------------------- */

typedef struct rt_toolbox_run {
    const rt_toolbox_tool *tool;
    const rt_tool_call *call; /* its arguments are the code's input */
} rt_toolbox_run;

/* Runs the tool's code in a cell with its limits. */
typedef bool (*rt_toolbox_run_fn)(void *ctx, const rt_toolbox_run *run, rt_arena *arena,
                                  rt_tool_result *out, rt_error *err);

typedef struct rt_toolbox_config {
    rt_store *store;
    rt_toolbox_run_fn run;
    void *run_ctx;
    const rt_str *granted_hosts; /* that tools may reach; none: RT_DENIED, naming what is missing */
    size_t granted_count;
} rt_toolbox_config;

bool rt_toolbox_open(const rt_toolbox_config *config, rt_provider **out, rt_error *err);

#endif
