/* SPDX-License-Identifier: Apache-2.0 */
/* Path and query as they stand in a request line, and a Range header. */
#include <assert.h>

#include "server/operations.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str text = { (const char *)data, size };
    http_target target;
    http_route route;
    uint64_t from, length, ms;
    if (target_parse(text, &arena, &target, NULL)) {
        assert(rt_utf8_valid(target.path) && target.segment_count > 0);
        for (size_t i = 0; i < target.query_count; i++)
            assert(rt_utf8_valid(target.query[i].name) && rt_utf8_valid(target.query[i].value));
        operations_route(RT_STR("GET"), &target, &route);
    }
    if (target_range(text, 1000, &from, &length) == HTTP_RANGE_ONE)
        assert(length > 0 && from + length <= 1000);
    operations_time(text, &ms);
    return 0;
}
