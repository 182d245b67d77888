/* SPDX-License-Identifier: Apache-2.0 */
/* code_agents.h - what the files of /code-agents share. */
#ifndef RT_SERVER_CODE_AGENTS_H
#define RT_SERVER_CODE_AGENTS_H

#include "agents/agents.h"
#include "server/executions.h"
#include "server/server_internal.h"

rt_agents *code_agents_of(http_request *r, rt_error *err); /* NULL: there are none */
void code_agents_reply(http_reply *reply, unsigned status, const rt_agent *agent);

#endif
