/* SPDX-License-Identifier: Apache-2.0 */
/* memory_internal.h - what the files of the memory share. */
#ifndef RT_SKILLS_MEMORY_INTERNAL_H
#define RT_SKILLS_MEMORY_INTERNAL_H

#include "skills/memory.h"

/* A short text of an object; *out stays when it is missing and need not be there. */
bool memory_label(rt_json object, const char *name, bool is_required, rt_str *out, rt_error *err);
rt_str memory_print(rt_json value, rt_arena *arena);
void memory_write_time(rt_json_writer *w, const char *key, uint64_t wall_ms);
/* The content in clear; false when it was removed, or sealed by another node. */
bool memory_content(const rt_memory *m, const rt_memory_row *row, rt_arena *arena, rt_str *out);

#endif
