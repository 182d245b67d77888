/* SPDX-License-Identifier: Apache-2.0 */
/*
 * servers.c - the registry of tools as the settings want it: the toolbox, and other people's MCP
 * servers from a file in the form their clients have.
 */
#include "cli/house.h"

#include <unistd.h>

#define CONFIG_BYTES_MAX ((size_t)4 << 20)

extern char **environ;

/* One that cannot be used is told and left out: the others are no worse for it. */
static void add_server(rt_tools *tools, const rt_mcp_config *config)
{
    rt_provider *provider;
    rt_error err = { 0 };
    if (config->is_disabled)
        return;
    if (!rt_mcp_open(config, &provider, &err) || !rt_tools_add(tools, provider, &err))
        rt_log(RT_LOG_WARN, "the MCP server '%.*s' is left out: %s", RT_FMT(config->name),
               err.text);
}

static bool read_servers(cli_house *h, rt_str path, rt_mcp_configs *out, rt_error *err)
{
    rt_str text;
    if (!rt_read_file(path.ptr, CONFIG_BYTES_MAX, &h->arena, &text, err))
        return rt_wrap(err, "mcp.config");
    return rt_mcp_config_read(text, (const char *const *)environ, &h->arena, out, err) ||
           rt_wrap(err, "%.*s", RT_FMT(path));
}

/* Without a setting there may be a file in the data directory, and need not. */
static bool add_servers(cli_house *h, rt_tools *tools, rt_error *err)
{
    rt_mcp_configs configs;
    rt_str path = h->settings.mcp.config;
    if (path.len == 0) {
        path = rt_arena_printf(&h->arena, "%.*s/mcp.json", RT_FMT(h->settings.data_dir));
        if (access(path.ptr, F_OK) != 0)
            return true;
    }
    if (!read_servers(h, path, &configs, err))
        return false;
    for (size_t i = 0; i < configs.problem_count; i++)
        rt_log(RT_LOG_WARN, "%.*s: '%.*s': %s", RT_FMT(path), RT_FMT(configs.problems[i].name),
               configs.problems[i].error.text);
    for (size_t i = 0; i < configs.count; i++)
        add_server(tools, &configs.items[i]);
    return true;
}

/* Without a model the search has vectors of its own. */
static bool find_model(cli_house *h, const rt_model **out, rt_error *err)
{
    *out = NULL;
    if (h->settings.models.default_name.len == 0)
        return true;
    return rt_models_find(cli_house_models(h), h->settings.models.default_name, out, err) ||
           rt_wrap(err, "models.default");
}

bool cli_tools_open(cli_house *h, rt_runtime *local, rt_tools **out, rt_error *err)
{
    rt_toolbox_config config = { .store = h->store, .run = cli_toolbox_run, .run_ctx = local };
    rt_tools *tools RT_CLEANUP(rt_tools_closep) = NULL;
    rt_tools_config registry = { .store = h->store };
    rt_provider *box;
    if (!find_model(h, &registry.model, err) || !rt_tools_open(&registry, &tools, err) ||
        !rt_toolbox_open(&config, &box, err) || !rt_tools_add(tools, box, err) ||
        !add_servers(h, tools, err))
        return false;
    *out = RT_TAKE(tools);
    return true;
}

bool cli_tools_offer(rt_tools *tools, rt_provider *provider, rt_error *err)
{
    rt_error why = { 0 };
    char name[sizeof(provider->name)];
    memcpy(name, provider->name, sizeof(name));
    if (rt_tools_add(tools, provider, &why))
        return true;
    if (why.code == RT_CONFLICT) {
        rt_log(RT_LOG_WARN,
               "a server of yours is called '%s': our tools of that name are not offered", name);
        return true;
    }
    *err = why;
    return false;
}
