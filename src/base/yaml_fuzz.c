/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_fuzz.c - whatever the text: no crash, no leak, and what was accepted is JSON again. */
#include "base/base.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_error err = { 0 };
    rt_json doc, again;
    if (!rt_yaml_parse((rt_str){ (const char *)data, size }, &arena, &doc, &err)) {
        assert(err.code != RT_OK && err.text[0] != '\0');
        return 0;
    }
    rt_json_print(doc, &text);
    bool ok = rt_json_parse(rt_buf_str(&text), &arena, &again, NULL);
    assert(ok && rt_json_equal(doc, again));
    return 0;
}
