/* SPDX-License-Identifier: Apache-2.0 */
/*
 * house.h - what the commands that use the daemon's data share: the store and what lies beside it.
 */
#ifndef RETORT_CLI_HOUSE_H
#define RETORT_CLI_HOUSE_H

#include "cli/cli.h"
#include "cli/settings.h"
#include "models/models.h"
#include "store/store.h"
#include "tools/tools.h"

/* One command's settings, and what it opened by them. */
typedef struct cli_house {
    rt_arena arena;
    rt_settings settings;
    rt_store *store;
    rt_vault *vault;
    rt_shelf *shelf;
    rt_objects objects;
    rt_models *models; /* cli_house_models() has it */
    rt_str node; /* this node's name: node.name, or the host's with a mark of the data directory */
} cli_house;

/* Reads the settings, taking their flags out of argv, and sets up the log. */
bool cli_house_read(cli_house *house, int *argc, char **argv, rt_error *err);
/* Opens the store (and brings its schema up to date), the vault and the shelf. */
bool cli_house_open(cli_house *house, rt_error *err);
/* One server at a time may use a data directory; held until the program ends. */
bool cli_house_lock(cli_house *house, rt_error *err);
bool cli_house_open_store(cli_house *house, rt_error *err); /* without bringing it up to date */
/* For commands that look: a mistyped data directory must not become a new, empty house. */
bool cli_house_exists(cli_house *house, rt_error *err);
rt_models *cli_house_models(cli_house *house); /* the installed ones; open until the house closes */
void cli_house_close(cli_house *house);

/* The registry of tools, with the toolbox and the MCP servers of the settings in it. `local` may be
 * NULL for those who do not call. (servers.c) */
bool cli_tools_open(cli_house *house, rt_runtime *local, rt_tools **out, rt_error *err);
/* Runs a tool of the toolbox in a cell of `local`, an rt_runtime (tools.c). */
bool cli_toolbox_run(void *local, const rt_toolbox_run *run, rt_arena *arena, rt_tool_result *out,
                     rt_error *err);

#endif
