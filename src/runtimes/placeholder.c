/*
 * placeholder.c - the runtime that cannot run anything yet, and says so in the agreed shape.
 */
#include "runtimes/runtimes_internal.h"

#define ANSWER                                                                                     \
    "{\"status\":\"not_implemented\",\"message\":\"Code execution coming soon\","                  \
    "\"fallback_action\":\"describe_computation_only\"}"

static bool execute(rt_runtime *self, const rt_run *run, rt_arena *arena, rt_outcome *out,
                    rt_error *err)
{
    (void)err;
    *out = (rt_outcome){ .id = rt_id_new("exec", arena),
                         .status = RT_STATUS_SUCCESS,
                         .language = run->language,
                         .runtime = rt_str_of(self->name),
                         .has_value = true,
                         .is_parsed = true,
                         .value = RT_STR(ANSWER) };
    return true;
}

static bool validate(rt_runtime *self, rt_str code, rt_str language, rt_arena *arena,
                     rt_verdict *out, rt_error *err)
{
    (void)self, (void)code, (void)language, (void)arena, (void)err;
    *out = (rt_verdict){ .is_implemented = false, .risks = RT_STR("[]") };
    return true;
}

static size_t languages(rt_runtime *self, rt_arena *arena, rt_language *out, size_t max)
{
    static const char *const names[] = { "python", "javascript", "sql", "elixir" };
    (void)self, (void)arena;
    size_t count = 0;
    for (; count < RT_COUNT(names) && count < max; count++)
        out[count] = (rt_language){ .name = names[count], .aliases = "", .ending = "" };
    return count;
}

static void close_nothing(rt_runtime *self)
{
    (void)self;
}

rt_runtime *rt_placeholder_open(void)
{
    static rt_runtime only = { .name = "placeholder",
                               .execute = execute,
                               .validate = validate,
                               .languages = languages,
                               .close = close_nothing };
    return &only;
}
