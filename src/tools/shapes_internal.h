/* SPDX-License-Identifier: Apache-2.0 */
/* shapes_internal.h - schemas made of values that were seen. */
#ifndef RT_TOOLS_SHAPES_INTERNAL_H
#define RT_TOOLS_SHAPES_INTERNAL_H

#include "base/base.h"

#define TOOLS_SHAPE_BYTES_MAX 8192 /* of one schema; deeper levels are left out until it fits */

typedef struct tools_shape tools_shape;

/* Texts are borrowed from the JSON; the rest lives in the arena. */
tools_shape *tools_shape_of_value(rt_json value, rt_arena *arena);
tools_shape *tools_shape_of_schema(rt_json schema, rt_arena *arena); /* that was written here */

/* What both allow; uses up both. Either may be NULL. */
tools_shape *tools_shape_merge(tools_shape *a, tools_shape *b, rt_arena *arena);

/* JSON Schema, with "x-observed": how many values it was made of. */
rt_str tools_shape_write(const tools_shape *shape, uint64_t samples, rt_arena *arena);

#endif
