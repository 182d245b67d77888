/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache_url_fuzz.c - whatever stands for a Redis URL: understood within its bounds, or refused with
 * an error that does not repeat it.
 */
#include "store/cache_internal.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    store_redis_url url = { 0 };
    rt_error err = { 0 };
    if (!store_redis_url_parse((rt_str){ (const char *)data, size }, &url, &err)) {
        assert(err.code == RT_INVALID || err.code == RT_UNSUPPORTED);
        assert(rt_str_starts(rt_str_of(err.text), RT_STR("the Redis URL: ")));
        return 0;
    }
    assert((url.host[0] != '\0') != (url.path[0] == '/'));
    assert(strnlen(url.host, sizeof(url.host)) < sizeof(url.host));
    assert(strnlen(url.path, sizeof(url.path)) < sizeof(url.path));
    assert(strnlen(url.user, sizeof(url.user)) < sizeof(url.user));
    assert(strnlen(url.password, sizeof(url.password)) < sizeof(url.password));
    assert(url.port <= 65535 && url.db <= 65535 && (url.port != 0) == (url.host[0] != '\0'));
    assert(url.user[0] == '\0' || url.password[0] != '\0');
    return 0;
}
