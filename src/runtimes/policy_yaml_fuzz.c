/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_yaml_fuzz.c - whatever the file says: no crash, no leak, and what was accepted is a policy
 * within the bounds of its keys, which can be shown.
 */
#include "runtimes/runtimes.h"

#include <assert.h>

static void check(const rt_policy *p, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json doc;
    assert(p->wall_ms >= 100 && p->wall_ms <= 300000);
    assert(p->cpu_ms >= 100 && p->cpu_ms <= 300000);
    assert(p->memory_bytes >= 16u << 20 && p->memory_bytes <= 64ull << 30);
    assert(p->processes >= 1 && p->processes <= 4096);
    assert(p->read_path_count == 0 || p->files != RT_FILES_NONE);
    for (size_t i = 0; i < p->read_path_count; i++)
        assert(p->read_paths[i].len > 0 && p->read_paths[i].ptr[0] == '/');
    for (size_t i = 0; i < p->env_count; i++) {
        assert(p->env[i].name.len > 0);
        assert(!memchr(p->env[i].name.ptr, '\0', p->env[i].name.len));
        assert(!memchr(p->env[i].name.ptr, '=', p->env[i].name.len));
    }
    assert(rt_policy_within(p, p, NULL));
    rt_json_begin(&w, &text);
    rt_policy_write(p, &w);
    bool ok = rt_json_parse(rt_buf_str(&text), arena, &doc, NULL);
    assert(ok);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_policy policy;
    rt_error err = { 0 };
    if (rt_policy_parse((rt_str){ (const char *)data, size }, &arena, &policy, &err))
        check(&policy, &arena);
    else
        assert(err.code != RT_OK && err.text[0] != '\0');
    return 0;
}
