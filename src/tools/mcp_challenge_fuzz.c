/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_challenge_fuzz.c - whatever stands in WWW-Authenticate: read within its bounds. */
#include "tools/mcp_oauth.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    mcp_challenge c;
    mcp_challenge_read((rt_str){ (const char *)data, size }, &arena, &c);
    assert(c.scope.len <= size && c.error.len <= size && c.resource_metadata.len <= size);
    return 0;
}
