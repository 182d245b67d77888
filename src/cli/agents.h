/* SPDX-License-Identifier: Apache-2.0 */
/* agents.h - an agent as a folder fit for git: agent.yaml, and its files beside it. */
#ifndef RETORT_CLI_AGENTS_H
#define RETORT_CLI_AGENTS_H

#include "agents/agents.h"

#define CLI_AGENT_FILE "agent.yaml"

/* The body that the folder stands for. */
bool cli_agent_folder_read(const char *folder, rt_arena *arena, rt_json *out, rt_error *err);
/* Writes agent.yaml and the files; those of an earlier version that are gone now are removed. */
bool cli_agent_folder_write(const char *folder, const rt_agent *agent, rt_arena *arena,
                            rt_error *err);

#endif
