/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings_fuzz.c - any bytes as retort.yaml and as .env: no crash, no leak, and what is accepted
 * can be shown and read again to the same value.
 */
#include "cli/settings_internal.h"

#include <assert.h>

static const cli_world world = { .directory = "/here", .home = { "/home", 5 } };

static rt_str text_of(const rt_settings *settings, const cli_setting *setting, rt_arena *arena)
{
    rt_buf out RT_CLEANUP(rt_buf_done) = { 0 };
    cli_setting_text(settings, setting, &out);
    return rt_arena_str(arena, rt_buf_str(&out));
}

static void check(const cli_assignment *a, rt_arena *arena)
{
    rt_settings settings = { 0 };
    rt_error err = { 0 };
    assert(a->origin.source.len > 0);
    if (!cli_setting_set(&settings, a->setting, a->text, &world, arena, &err)) {
        assert(err.code != RT_OK && err.text[0] != '\0');
        return;
    }
    rt_buf shown RT_CLEANUP(rt_buf_done) = { 0 };
    rt_str first = text_of(&settings, a->setting, arena);
    cli_setting_show(&settings, a->setting, &shown);
    bool ok = cli_setting_set(&settings, a->setting, first, &world, arena, &err);
    assert(ok || first.len > CLI_VALUE_MAX); /* a path grows when it is made absolute */
    assert(rt_str_eq(text_of(&settings, a->setting, arena), first));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str text = { (const char *)data, size };
    cli_gathered found = { .arena = &arena };
    rt_error err = { 0 };
    if (!cli_settings_yaml(text, "f", &found, &err))
        assert(err.code != RT_OK && strncmp(err.text, "f:", 2) == 0);
    cli_settings_variables(cli_dotenv_parse(text, ".env", &found), CLI_DOTENV, &found);
    for (size_t i = 0; i < found.count; i++)
        check(&found.items[i], &arena);
    assert(found.warning_count <= CLI_WARNINGS_MAX);
    return 0;
}
