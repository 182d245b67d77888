/* SPDX-License-Identifier: Apache-2.0 */
/* search_fuzz.c - texts, a line each, then a question: whatever the bytes, hits are documents. */
#include "tools/search.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_search *search RT_CLEANUP(rt_search_freep) = rt_search_new(NULL);
    rt_str rest = { (const char *)data, size }, line = RT_STR("");
    rt_search_hit hits[10];
    while (rt_str_cut(&rest, '\n', &line) && rest.ptr)
        rt_search_add(search, &(rt_search_document){ .name = rt_str_slice(line, 0, 8),
                                                     .description = line,
                                                     .server = rt_str_slice(line, 0, 2) });
    rt_search_build(search);
    size_t count = rt_search_query(search, line, hits, 10);
    for (size_t i = 0; i < count; i++) {
        assert(hits[i].document < rt_search_count(search));
        assert(hits[i].score > 0 && (i == 0 || hits[i].score <= hits[i - 1].score));
    }
    return 0;
}
