/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prompts.h - what an agent is told about its tools: texts for a model, made of what there is.
 *
 * Promise: the system prompt is short and holds no schema and no code; what a tool takes is told
 * when that tool is asked for.
 *
 *     rt_str text = rt_prompt_system(tools, &arena);                  // for every conversation
 *     rt_str list = rt_prompt_tools(tools, organisation, RT_STR("data"), &arena);
 *     rt_prompt_tool(tools, store, organisation, RT_STR("csv_parser"), &arena, &text, err);
 */
#ifndef RT_TOOLS_PROMPTS_H
#define RT_TOOLS_PROMPTS_H

#include "tools/tools.h"

#define RT_PROMPT_TOOLS_MAX 50 /* listed in one prompt; an agent searches for the others */

rt_str rt_prompt_system(rt_tools *tools, rt_arena *arena);
/* An empty category: of all. */
rt_str rt_prompt_tools(rt_tools *tools, rt_str audience, rt_str category, rt_arena *arena);
/* By its name, or the id or name of a toolbox tool, whose code is shown. RT_NOT_FOUND. */
bool rt_prompt_tool(rt_tools *tools, rt_store *store, rt_str audience, rt_str name, rt_arena *arena,
                    rt_str *out, rt_error *err);

#endif
