/* SPDX-License-Identifier: Apache-2.0 */
/* The first line is a Host header, the second an Origin. */
#include <assert.h>

#include "server/guard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_str host = { 0 }, origin = { 0 }, rest = { (const char *)data, size }, name, port;
    guard_rules rules = { .is_local = true };
    rt_str_cut(&rest, '\n', &host);
    rt_str_cut(&rest, '\n', &origin);
    guard_visit visit = { .host = host, .origin = origin };
    if (guard_check(&rules, &visit, NULL))
        assert(guard_split_host(host, &name, &port) && guard_is_loopback(name));
    return 0;
}
