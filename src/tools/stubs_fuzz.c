/* SPDX-License-Identifier: Apache-2.0 */
/* stubs_fuzz.c - a schema and a name become declarations: bounded, valid UTF-8, one line a comment.
 */
#include "tools/tools.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str schema = { (const char *)data, size };
    rt_tool tool = { .name = RT_STR("server:tool"),
                     .server = RT_STR("server"),
                     .description = schema,
                     .input_schema = schema,
                     .output_schema = schema };
    for (int language = RT_STUB_TYPESCRIPT; language <= RT_STUB_PYTHON; language++) {
        rt_str text = rt_tool_stub(&tool, (rt_stub_language)language, &arena);
        assert(text.len > 0 && text.len <= 1 << 20 && rt_utf8_valid(text));
        assert(!memchr(text.ptr, '\0', text.len));
    }
    return 0;
}
