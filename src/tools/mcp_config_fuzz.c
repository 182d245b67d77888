/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_config_fuzz.c - whatever stands in a list of servers: each entry is one that can be opened,
 * or a problem that says why and repeats no secret.
 */
#include "tools/mcp_internal.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const environment[] = { "HOME=/h", "T=swordfish\n", NULL };
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_mcp_configs configs;
    rt_str text = { (const char *)data, size };
    bool is_told = rt_str_find(text, RT_STR("swordfish")) >= 0; /* by the text itself */
    if (!rt_mcp_config_read(text, environment, &arena, &configs, NULL))
        return 0;
    for (size_t i = 0; i < configs.count; i++) {
        rt_provider *provider;
        if (configs.items[i].is_disabled)
            continue;
        assert(rt_mcp_open(&configs.items[i], &provider, NULL));
        provider->close(provider);
    }
    for (size_t i = 0; i < configs.problem_count; i++) {
        assert(configs.problems[i].error.code != RT_OK);
        assert(is_told || !strstr(configs.problems[i].error.text, "swordfish"));
    }
    return 0;
}
