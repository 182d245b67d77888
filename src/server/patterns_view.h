/* SPDX-License-Identifier: Apache-2.0 */
/* patterns_view.h - patterns as HTTP and MCP show them. */
#ifndef RT_SERVER_PATTERNS_VIEW_H
#define RT_SERVER_PATTERNS_VIEW_H

#include "engine/patterns.h"

/* One object; without its code, steps and parameters it is a row of a list. */
void patterns_write(const rt_snippet *s, bool is_whole, rt_json_writer *w);
/* The members pattern, steps (of a chain) and execution (the engine's answer). */
void patterns_write_run(rt_str name, const rt_pattern_answer *answer, rt_json_writer *w);

#endif
