/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_message.h - the messages of MCP: what both of its sides, client and server, share.
 *
 * Promise: a message is read by its envelope alone. What is inside (params, result, error) stays
 * text, is copied by nobody, and is for the reader to judge with rt_json_parse() in its own time;
 * so a line of 60 MB costs one look at each byte. Whatever the text, the views lie within it.
 *
 *     rt_mcp_message message;
 *     if (!rt_mcp_message_scan(line, &message, err))
 *         return rt_wrap(err, "a message");
 *     if (message.kind == RT_MCP_REQUEST && rt_str_eq_c(message.method, "ping"))
 *         rt_mcp_write_result(&out, message.id, RT_STR("{}"));
 *
 * Revisions of the protocol come in two eras: the legacy ones begin with `initialize`, the modern
 * ones have no beginning and say everything with every request.
 */
#ifndef RT_TOOLS_MCP_MESSAGE_H
#define RT_TOOLS_MCP_MESSAGE_H

#include "base/base.h"

/* -- Revisions --------------------------------------------------------------------------------- */

typedef enum rt_mcp_era { RT_MCP_LEGACY, RT_MCP_MODERN } rt_mcp_era;

typedef struct rt_mcp_version {
    const char *name;
    rt_mcp_era era;
    bool has_batches;        /* an array of messages is a message */
    bool has_version_header; /* MCP-Protocol-Version with every HTTP request */
    bool has_structured;     /* structuredContent, outputSchema */
} rt_mcp_version;

/* Newest first. */
extern const rt_mcp_version rt_mcp_versions[];
extern const size_t rt_mcp_version_count;

const rt_mcp_version *rt_mcp_version_find(rt_str name); /* NULL: we do not know it */
const rt_mcp_version *rt_mcp_version_newest(rt_mcp_era era);

/* Names of _meta's keys. */
#define RT_MCP_META_VERSION      "io.modelcontextprotocol/protocolVersion"
#define RT_MCP_META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define RT_MCP_META_CLIENT       "io.modelcontextprotocol/clientInfo"
#define RT_MCP_META_SERVER       "io.modelcontextprotocol/serverInfo"
#define RT_MCP_META_LOG_LEVEL    "io.modelcontextprotocol/logLevel"
#define RT_MCP_META_SUBSCRIPTION "io.modelcontextprotocol/subscriptionId"

typedef enum rt_mcp_error_code {
    RT_MCP_PARSE_ERROR = -32700,
    RT_MCP_INVALID_REQUEST = -32600,
    RT_MCP_METHOD_NOT_FOUND = -32601,
    RT_MCP_INVALID_PARAMS = -32602,
    RT_MCP_INTERNAL_ERROR = -32603,
    RT_MCP_RESOURCE_NOT_FOUND = -32002, /* legacy only */
    RT_MCP_HEADER_MISMATCH = -32020,
    RT_MCP_MISSING_CAPABILITY = -32021,
    RT_MCP_UNSUPPORTED_VERSION = -32022,
} rt_mcp_error_code;

/* -- Reading ----------------------------------------------------------------------------------- */

typedef enum rt_mcp_kind {
    RT_MCP_REQUEST,
    RT_MCP_NOTIFICATION,
    RT_MCP_RESULT,
    RT_MCP_ERROR,
} rt_mcp_kind;

typedef struct rt_mcp_message {
    rt_mcp_kind kind;
    bool is_version_2; /* "jsonrpc":"2.0" is there */
    rt_str id;         /* as written: 7 or "a"; empty: none, or null */
    rt_str method;     /* without its quotes; one with escapes is no method of ours */
    rt_str params;     /* as written, "" when there are none; so are the next two */
    rt_str result;
    rt_str error;
} rt_mcp_message;

/* RT_INVALID: no JSON object, or none of the four kinds. The inside is not judged. */
bool rt_mcp_message_scan(rt_str text, rt_mcp_message *out, rt_error *err);

/* The messages of a batch, one after another; `rest` is the batch at first. */
bool rt_mcp_batch_next(rt_str *rest, rt_str *item);

/*
 * The text of a member's value, of duplicates the last as rt_json_get() has it; "" when there is
 * none. `object` should have passed rt_json_parse(): of other text, any part may come.
 */
rt_str rt_mcp_member(rt_str object, rt_str key);

/* Whether the id is this number of ours. */
bool rt_mcp_id_is(rt_str id, uint64_t number);

/* -- Writing, on one line without its end ------------------------------------------------------ */

void rt_mcp_write_result(rt_buf *out, rt_str id, rt_str result);
/* id "": left out. data "": none. */
void rt_mcp_write_error(rt_buf *out, rt_str id, int code, rt_str message, rt_str data);

/* -- Values of Mcp-Name and Mcp-Param-* -------------------------------------------------------- */

/* As it is when it can stand in a header, else =?base64?...?=. */
void rt_mcp_header_encode(rt_str value, rt_buf *out);
/* RT_INVALID: it claims to be base64 and is not. */
bool rt_mcp_header_decode(rt_str header, rt_arena *arena, rt_str *out, rt_error *err);

#endif
