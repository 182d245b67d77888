/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings_flags.c - settings from the command line.
 *
 *     --server.port 9000   --server.port=9000   --port 9000
 *     --debug              a switch needs no value; it takes one that is true or false
 *     --no-cache           and some have a flag that turns them off
 *
 * What is no setting stays in argv, in its order, for the command.
 */
#include "cli/settings_internal.h"

typedef struct flag {
    const cli_setting *setting;
    bool is_off;        /* --no-cache */
    bool is_config;     /* --config: no setting, but ours */
    rt_str name, value; /* value.ptr is NULL until there is one */
    bool is_value_next; /* it was the next word */
} flag;

/* --server.max-body is --server.max_body. */
static bool is_key(rt_str name, const char *key)
{
    if (!rt_str_starts(name, RT_STR("--")) || name.len != strlen(key) + 2)
        return false;
    for (size_t i = 0; key[i]; i++)
        if (name.ptr[i + 2] != key[i] && !(key[i] == '_' && name.ptr[i + 2] == '-'))
            return false;
    return true;
}

/* Fills in which setting the name means, if it means one. */
static bool find(flag *f)
{
    const cli_setting *setting;
    f->is_config = rt_str_eq_c(f->name, "--config");
    for (size_t i = 0; !f->setting && (setting = cli_setting_at(i)); i++) {
        f->is_off = setting->off_flag && rt_str_eq_c(f->name, setting->off_flag);
        if (f->is_off || is_key(f->name, setting->key) ||
            (setting->flag && rt_str_eq_c(f->name, setting->flag)))
            f->setting = setting;
    }
    return f->setting || f->is_config;
}

static bool is_switch_word(const char *word)
{
    bool ignored;
    return word && cli_switch_parse(rt_str_of(word), &ignored);
}

/* The value after '=', or the next word; a switch is content with none. */
static bool find_value(flag *f, const char *next, rt_error *err)
{
    bool is_switch = f->setting && f->setting->kind == CLI_SWITCH;
    if (f->is_off && f->value.ptr)
        return rt_fail(err, RT_INVALID, "flag %.*s takes no value", RT_FMT(f->name));
    if (f->value.ptr)
        return true;
    if (f->is_off || (is_switch && !is_switch_word(next))) {
        f->value = f->is_off ? RT_STR("false") : RT_STR("true");
        return true;
    }
    if (!next)
        return rt_fail(err, RT_INVALID, "flag %.*s needs a value", RT_FMT(f->name));
    f->value = rt_str_of(next);
    return f->is_value_next = true;
}

bool cli_settings_flags(int *argc, char **argv, cli_gathered *to, const char **config,
                        rt_error *err)
{
    int kept = 1;
    bool is_over = false;
    for (int i = 1; i < *argc; i++) {
        flag f = { .value = rt_str_of(argv[i]) };
        is_over |= rt_str_eq_c(f.value, "--");
        rt_str_cut(&f.value, '=', &f.name);
        if (is_over || !find(&f)) {
            argv[kept++] = argv[i];
            continue;
        }
        if (!find_value(&f, i + 1 < *argc ? argv[i + 1] : NULL, err))
            return false;
        i += f.is_value_next;
        if (f.is_config) {
            *config = f.value.ptr;
            continue;
        }
        rt_str source = rt_arena_printf(to->arena, "flag %.*s", RT_FMT(f.name));
        cli_gather(to, f.setting, f.value, (cli_origin){ CLI_FLAG, source });
    }
    *argc = kept;
    argv[kept] = NULL;
    return true;
}

bool cli_settings_unknown_flag(const char *arg, rt_error *err)
{
    const cli_setting *setting;
    rt_nearest near;
    char hint[RT_NEAREST_HINT], key[CLI_KEY_MAX + 2];
    rt_str rest = rt_str_of(arg), name;
    rt_str_cut(&rest, '=', &name);
    rt_nearest_start(&near, name);
    rt_nearest_try(&near, RT_STR("--config"));
    for (size_t i = 0; (setting = cli_setting_at(i)); i++) {
        if (setting->flag)
            rt_nearest_try(&near, rt_str_of(setting->flag));
        if (setting->off_flag)
            rt_nearest_try(&near, rt_str_of(setting->off_flag));
        snprintf(key, sizeof(key), "--%s", setting->key);
        rt_nearest_try(&near, rt_str_of(key));
    }
    return rt_fail(err, RT_INVALID, "unknown option %.*s%s", RT_FMT(rt_str_slice(name, 0, 60)),
                   rt_nearest_hint(&near, "; --help lists them", hint));
}
