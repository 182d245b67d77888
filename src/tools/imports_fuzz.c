/* SPDX-License-Identifier: Apache-2.0 */
/* imports_fuzz.c - a file of tools: refused, or every tool has a name, and texts a database takes.
 */
#include "tools/tools_internal.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_tool *tools;
    size_t count;
    if (!tools_imports_read((rt_str){ (const char *)data, size }, &arena, &tools, &count,
                            &(rt_error){ 0 }))
        return 0;
    for (size_t i = 0; i < count; i++) {
        assert(tools[i].name.len > 0 && tools[i].server.len > 0);
        assert(rt_utf8_valid(tools[i].description) && rt_utf8_valid(tools[i].input_schema));
        assert(tools[i].description.len == 0 ||
               !memchr(tools[i].description.ptr, '\0', tools[i].description.len));
    }
    return 0;
}
