/* SPDX-License-Identifier: Apache-2.0 */
/* The first line is a path, the rest a document. */
#include <assert.h>

#include "server/json_path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str path, text = { (const char *)data, size };
    rt_json doc, *matches;
    size_t count;
    rt_str_cut(&text, '\n', &path);
    if (!rt_json_parse(text, &arena, &doc, NULL))
        return 0;
    if (json_path_find(doc, path, &arena, &matches, &count, NULL))
        assert(count <= JSON_PATH_MATCHES_MAX);
    return 0;
}
