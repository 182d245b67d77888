/* SPDX-License-Identifier: Apache-2.0 */
/* content_type_fuzz.c - a file's name, a line end, its first bytes: always some type. */
#include "store/artifacts.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_str rest = { (const char *)data, size }, name;
    if (!rt_str_cut(&rest, '\n', &name))
        return 0;
    const char *type = rt_content_type(name, rest);
    assert(type && strchr(type, '/'));
    return 0;
}
