/* SPDX-License-Identifier: Apache-2.0 */
/*
 * templates.c - preludes: code that many runs begin with, loaded once where that pays.
 */
#include "runtimes/runtimes_internal.h"

void runtimes_settle_prelude(rt_run *run, const guest_kind *kind, rt_arena *arena)
{
    if (run->prelude.code.len == 0 || kind->has_modules)
        return;
    run->code = rt_arena_printf(arena, "%.*s\n%.*s", RT_FMT(run->prelude.code), RT_FMT(run->code));
    run->name = run->prelude.name;
    run->prelude = (rt_prelude){ 0 };
}

void runtimes_write_prelude(rt_json_writer *w, const rt_prelude *prelude)
{
    rt_jw_kobject(w, "prelude");
    rt_jw_kstr(w, "name", prelude->name);
    rt_jw_kstr(w, "code", prelude->code);
    rt_jw_end(w);
}
