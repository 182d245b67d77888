/*
 * config.c - the sandbox's configuration on its way to the keeper, as JSON text.
 */
#include "sandbox/sandbox_internal.h"

#include <string.h>

#define CELLS_DEFAULT 64
#define ENTRIES_MAX   64

bool sandbox_config_pack(const rt_sandbox_config *config, rt_buf *out, rt_error *err)
{
    rt_json_writer w;
    if (config->max_cells > RT_CELLS_MAX)
        return rt_fail(err, RT_INVALID, "at most %d cells at once", RT_CELLS_MAX);
    if (config->root_count > ENTRIES_MAX)
        return rt_fail(err, RT_INVALID, "at most %d paths in the root", ENTRIES_MAX);
    rt_json_begin(&w, out);
    rt_jw_object(&w);
    rt_jw_ku64(&w, "max_cells", config->max_cells ? config->max_cells : CELLS_DEFAULT);
    rt_jw_ku64(&w, "pool_max", config->pool_max);
    rt_jw_kbool(&w, "is_cgroup_required", config->is_cgroup_required);
    if (config->nursery)
        rt_jw_kstr(&w, "nursery", rt_str_of(config->nursery));
    rt_jw_karray(&w, "zygotes");
    for (size_t i = 0; i < config->zygote_count; i++) {
        rt_jw_object(&w);
        rt_jw_kstr(&w, "name", rt_str_of(config->zygotes[i].name));
        rt_jw_karray(&w, "argv");
        for (const char *const *arg = config->zygotes[i].argv; *arg; arg++)
            rt_jw_str(&w, rt_str_of(*arg));
        rt_jw_end(&w);
        rt_jw_end(&w);
    }
    rt_jw_end(&w);
    rt_jw_karray(&w, "root");
    for (size_t i = 0; i < config->root_count; i++) {
        rt_jw_object(&w);
        rt_jw_kstr(&w, "source", rt_str_of(config->root[i].source));
        rt_jw_kstr(&w, "target", rt_str_of(config->root[i].target));
        rt_jw_end(&w);
    }
    rt_jw_end(&w);
    rt_jw_end(&w);
    return rt_buf_ok(out, err);
}

static const char *text_of(rt_json v, rt_arena *arena)
{
    return rt_arena_copy(arena, rt_json_str(v));
}

static void unpack_zygotes(rt_json list, rt_arena *arena, rt_sandbox_config *out)
{
    rt_zygote_spec *specs = rt_arena_alloc(arena, sizeof(*specs) * (rt_json_count(list) + 1));
    rt_json_iter it = rt_json_each(list);
    rt_json item, arg;
    while (rt_json_next(&it, NULL, &item)) {
        rt_json words = rt_json_get_c(item, "argv");
        const char **argv = rt_arena_alloc(arena, sizeof(*argv) * (rt_json_count(words) + 1));
        size_t count = 0;
        for (rt_json_iter args = rt_json_each(words); rt_json_next(&args, NULL, &arg);)
            argv[count++] = text_of(arg, arena);
        specs[out->zygote_count++] =
            (rt_zygote_spec){ .name = text_of(rt_json_get_c(item, "name"), arena), .argv = argv };
    }
    out->zygotes = specs;
}

static void unpack_root(rt_json list, rt_arena *arena, rt_sandbox_config *out)
{
    rt_root_entry *entries = rt_arena_alloc(arena, sizeof(*entries) * (rt_json_count(list) + 1));
    rt_json_iter it = rt_json_each(list);
    rt_json item;
    while (rt_json_next(&it, NULL, &item))
        entries[out->root_count++] =
            (rt_root_entry){ .source = text_of(rt_json_get_c(item, "source"), arena),
                             .target = text_of(rt_json_get_c(item, "target"), arena) };
    out->root = entries;
}

bool sandbox_config_unpack(rt_str packed, rt_arena *arena, rt_sandbox_config *out, rt_error *err)
{
    rt_json doc;
    int64_t number;
    *out = (rt_sandbox_config){ 0 };
    if (!rt_json_parse(packed, arena, &doc, err))
        return rt_wrap(err, "the sandbox's configuration");
    if (rt_json_i64(rt_json_get_c(doc, "max_cells"), &number))
        out->max_cells = (unsigned)number;
    if (rt_json_i64(rt_json_get_c(doc, "pool_max"), &number))
        out->pool_max = (unsigned)number;
    out->is_cgroup_required = rt_json_bool(rt_json_get_c(doc, "is_cgroup_required"), false);
    if (rt_json_str(rt_json_get_c(doc, "nursery")).len > 0)
        out->nursery = text_of(rt_json_get_c(doc, "nursery"), arena);
    unpack_zygotes(rt_json_get_c(doc, "zygotes"), arena, out);
    unpack_root(rt_json_get_c(doc, "root"), arena, out);
    return true;
}
