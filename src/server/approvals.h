/* SPDX-License-Identifier: Apache-2.0 */
/* approvals.h - what waits for a person's word, as HTTP and MCP show it. */
#ifndef RT_SERVER_APPROVALS_H
#define RT_SERVER_APPROVALS_H

#include "server/server.h"

#define APPROVALS_COMMENT_MAX 1000 /* bytes */

/* One object. The arguments only to those who may decide, and to who asked. */
void approvals_write(const rt_server_config *config, const rt_caller *caller,
                     const rt_approval_row *row, rt_arena *arena, rt_json_writer *w);

/* Newest first; what nobody answered in time is expired before it is listed. */
bool approvals_list(const rt_server_config *config, const rt_caller *caller, rt_str status,
                    unsigned limit, rt_arena *arena, rt_approval_row **rows, size_t *count,
                    rt_error *err);

bool approvals_decide(const rt_server_config *config, const rt_caller *caller, rt_str id,
                      bool is_approved, rt_str comment, rt_arena *arena, rt_approval_row *out,
                      rt_error *err);

#endif
