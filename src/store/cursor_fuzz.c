/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cursor_fuzz.c - whatever comes back as a cursor: refused, or written again just as it came.
 */
#include "store/tables_internal.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str text = { (const char *)data, size };
    store_cursor at;
    if (store_cursor_parse(text, &arena, &at, &(rt_error){ 0 }))
        assert(rt_str_eq(store_cursor_write(at, &arena), text));
    return 0;
}
