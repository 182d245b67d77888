/* SPDX-License-Identifier: Apache-2.0 */
/* shapes_fuzz.c - any result: its schema is bounded, is JSON, and reads back as the same. */
#include "tools/shapes_internal.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json value, schema;
    if (!rt_json_parse((rt_str){ (const char *)data, size }, &arena, &value, NULL))
        return 0;
    tools_shape *shape = tools_shape_of_value(value, &arena);
    rt_str text = tools_shape_write(shape, 1, &arena);
    assert(text.len <= TOOLS_SHAPE_BYTES_MAX && rt_json_parse(text, &arena, &schema, NULL));
    tools_shape *again = tools_shape_of_schema(schema, &arena);
    assert(rt_str_eq(text, tools_shape_write(again, 1, &arena)));
    again = tools_shape_merge(again, tools_shape_of_value(value, &arena), &arena);
    assert(rt_str_eq(text, tools_shape_write(again, 1, &arena)));
    return 0;
}
