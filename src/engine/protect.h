/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protect.h - personal data in the tool calls of a run, while its code waits for them.
 *
 * What code holds are tokens, and it may hand them to tools. A tool that was granted real values
 * (RT_TOOL_SEES_PII) gets them; any other gets tokens, also for what the code made itself. What a
 * tool answers is masked before the code sees it. With privacy off, everything passes as it is.
 *
 *     if (!engine_protect_arguments(p, call.arguments, tool->flags & RT_TOOL_SEES_PII, &arena,
 *                                   &call.arguments, err) ||
 *         !rt_tools_call(tools, &call, &arena, &result, err) ||
 *         !engine_protect_result(p, result.value, false, &arena, &result.value, err))
 *         return rt_wrap(err, "%.*s", RT_FMT(tool->name));
 *
 * Any number of threads may do this for one passage at once, each with an arena of its own.
 */
#ifndef RT_ENGINE_PROTECT_H
#define RT_ENGINE_PROTECT_H

#include "engine/engine_internal.h"

/* How this passage masks. */
rt_privacy_mask engine_mask(const passage *p);

/* `arguments` is JSON. RT_INVALID: a token in it is none of this run's or session's. */
bool engine_protect_arguments(passage *p, rt_str arguments, bool sees_pii, rt_arena *arena,
                              rt_str *out, rt_error *err);

/* `value` is JSON. is_risky: what it holds goes on record even when privacy is off (S4-17). */
bool engine_protect_result(passage *p, rt_str value, bool is_risky, rt_arena *arena, rt_str *out,
                           rt_error *err);

/* Text beside a result, such as a tool's error message. */
bool engine_protect_text(passage *p, rt_str text, rt_arena *arena, rt_str *out, rt_error *err);

/* How many pieces of personal data `value` (JSON) holds, tokens and redactions included; what
 * pii.count() and pii.types() tell code. */
bool engine_pii_count(passage *p, rt_str value, rt_privacy_report *out, rt_error *err);

#endif
