/* SPDX-License-Identifier: Apache-2.0 */
/*
 * language_file_fuzz.c - whatever the file says: no crash, no leak, and what was accepted can be
 * run and shows cells nothing that is theirs or somebody's home.
 */
#include "runtimes/runtimes_internal.h"

#include <assert.h>

static void check(const language_file *l)
{
    assert(*l->language.name && *l->language.ending && l->file.len > 0);
    assert(!memchr(l->file.ptr, '/', l->file.len));
    assert(l->run.count > 0 || l->waits.count > 0);
    for (size_t i = 0; i < l->needs.count; i++) {
        assert(l->needs.items[i].len > 1 && l->needs.items[i].ptr[0] == '/');
        assert(rt_str_find(l->needs.items[i], RT_STR("/..")) != 0);
        assert(!rt_str_starts(l->needs.items[i], RT_STR("/proc/")));
    }
    for (size_t i = 0; i < l->env_count; i++)
        assert(l->env[i].name.len > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    language_file l;
    rt_error err = { 0 };
    if (runtimes_language_parse((rt_str){ (const char *)data, size }, &arena, &l, &err))
        check(&l);
    else
        assert(err.code != RT_OK && err.text[0] != '\0');
    return 0;
}
