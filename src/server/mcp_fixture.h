/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_fixture.h - what the two files of the conformance fixture share. */
#ifndef RT_SERVER_MCP_FIXTURE_H
#define RT_SERVER_MCP_FIXTURE_H

#include "server/mcp.h"

/* Waits, unless the call is cancelled. */
void mcp_fixture_wait(mcp_call *c, unsigned ms);

/* Legacy: the client is asked while the call waits. */
bool mcp_fixture_sampling(mcp_call *c, rt_json arguments, rt_json_writer *w);
bool mcp_fixture_elicitation(mcp_call *c, rt_json arguments, rt_json_writer *w);
bool mcp_fixture_defaults(mcp_call *c, rt_json arguments, rt_json_writer *w);
bool mcp_fixture_enums(mcp_call *c, rt_json arguments, rt_json_writer *w);

/* Modern: the result is a question, and the client calls again with the answer. */
bool mcp_fixture_needs_sampling(mcp_call *c, rt_json arguments, rt_json_writer *w);
bool mcp_fixture_ask_name(mcp_call *c, rt_json arguments, rt_json_writer *w);
bool mcp_fixture_ask_model(mcp_call *c, rt_json arguments, rt_json_writer *w);
bool mcp_fixture_ask_roots(mcp_call *c, rt_json arguments, rt_json_writer *w);
bool mcp_fixture_ask_state(mcp_call *c, rt_json arguments, rt_json_writer *w);
bool mcp_fixture_ask_all(mcp_call *c, rt_json arguments, rt_json_writer *w);
bool mcp_fixture_ask_twice(mcp_call *c, rt_json arguments, rt_json_writer *w);
bool mcp_fixture_ask_what_can(mcp_call *c, rt_json arguments, rt_json_writer *w);
/* True: *context has the answer. False: the question is written. */
bool mcp_fixture_ask_context(mcp_call *c, rt_str *context, rt_json_writer *w);

#endif
