/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp.h - somebody else's MCP server as a provider of tools.
 *
 * Promise: a server that is slow, dead, flooding or lying costs its own callers an error that names
 * it and says what to do, and nobody else anything. It is started, or connected to, when it is
 * first needed, and again after it has died; how long that takes is bounded, and so is every byte
 * it sends. A server started as a program sees the environment it was given and nothing more of
 * ours.
 *
 *     rt_mcp_configs configs;
 *     rt_mcp_config_read(text, environ, &arena, &configs, err);      // the mcpServers of a client
 *     for (size_t i = 0; i < configs.count; i++)
 *         if (rt_mcp_open(&configs.items[i], &provider, err))        // nothing is started yet
 *             rt_tools_add(tools, provider, err);
 *
 * Both eras of the protocol and all its revisions are spoken, over stdio and Streamable HTTP, and
 * the HTTP transport of 2024 where there is no other.
 * The program must ignore SIGPIPE.
 */
#ifndef RT_TOOLS_MCP_H
#define RT_TOOLS_MCP_H

#include "tools/tools.h"

#define RT_MCP_TIMEOUT_MS_DEFAULT 60000
#define RT_MCP_RATE_DEFAULT       10 /* calls a second, of each tool */
#define RT_MCP_SERVERS_MAX        256

/* -- Configuration ----------------------------------------------------------------------------- */

typedef struct rt_mcp_pair {
    rt_str name, value;
} rt_mcp_pair;

typedef struct rt_mcp_pairs {
    const rt_mcp_pair *items;
    size_t count;
} rt_mcp_pairs;

/* Somebody who answers what a server asks its client: input from a person, a model, its roots. */
typedef struct rt_mcp_answerer {
    rt_str capabilities; /* what we say we can do: {"elicitation":{}} */
    /* One result, JSON, into the arena. May take its time: only the call that caused it waits. */
    bool (*answer)(void *ctx, rt_str method, rt_json params, rt_arena *arena, rt_str *result,
                   rt_error *err);
    void *ctx;
} rt_mcp_answerer;

/* How to get an access token from an authorization server (OAuth 2.1), when a server wants one. */
typedef struct rt_mcp_oauth {
    rt_str client_id, client_secret; /* pre-registered; empty: we register ourselves */
    rt_str client_metadata_url;      /* our Client ID Metadata Document; may be empty */
    rt_str redirect_uri;             /* where the browser is sent back to */
    rt_str scope;                    /* asked for beside what the server names */
    /*
     * Show the address to a person; what the browser was sent back to comes out. NULL: there is
     * nobody; client_id and client_secret are enough (the client credentials grant).
     */
    bool (*authorize)(void *ctx, rt_str url, rt_arena *arena, rt_str *redirected, rt_error *err);
    void *ctx;
} rt_mcp_oauth;

typedef struct rt_mcp_config {
    rt_str name;
    /* A program, spoken to over stdio ... */
    const char *command;     /* NULL: it is at a URL */
    const char *const *args; /* without the command itself; ends with NULL; may be NULL */
    rt_mcp_pairs env;        /* beside HOME, LANG, LOGNAME, PATH, SHELL, TERM and USER of ours */
    const char *cwd;         /* NULL: ours */
    /* ... or a URL. */
    const char *url;
    bool is_sse; /* it speaks the HTTP transport of 2024; else that is tried when no other works */
    rt_mcp_pairs headers;
    rt_mcp_oauth oauth; /* without `authorize` and `client_secret`: no OAuth */

    rt_str protocol_version; /* only this revision; empty: whatever it speaks */
    uint64_t timeout_ms;     /* of a call without a deadline; 0: RT_MCP_TIMEOUT_MS_DEFAULT */
    unsigned rate_limit;     /* calls a second of each tool; 0: RT_MCP_RATE_DEFAULT */
    bool has_no_rate_limit;
    bool is_disabled;           /* read, and not to be opened */
    uint64_t check_interval_ms; /* between health checks; 0: five minutes */
    rt_mcp_answerer answerer;   /* without `answer`: servers are told that nobody can */
    const char *const *environ; /* where the variables of ours come from; NULL: none */
} rt_mcp_config;

typedef struct rt_mcp_problem {
    rt_str name; /* of the entry */
    rt_error error;
} rt_mcp_problem;

typedef struct rt_mcp_configs {
    rt_mcp_config *items;
    size_t count;
    rt_mcp_problem *problems; /* entries that cannot be used; the others can */
    size_t problem_count;
} rt_mcp_configs;

/*
 * The configuration of Claude Desktop, Claude Code, Cursor or VS Code: {"mcpServers":{"name":
 * {"command","args","env","cwd"} or {"url","headers","type"}}}. In strings ${VAR}, ${VAR:-default},
 * ${env:VAR} and ${userHome} are filled in from `environ`. Of ours: timeout_ms, rate_limit (calls a
 * second, 0: no limit), disabled, protocol_version, oauth (client_id, client_secret, scope). False:
 * the text as a whole is no such thing.
 */
bool rt_mcp_config_read(rt_str json, const char *const *environ, rt_arena *arena,
                        rt_mcp_configs *out, rt_error *err);

/* -- A server ---------------------------------------------------------------------------------- */

/* Copies the configuration; starts nothing. RT_INVALID when it cannot work. */
bool rt_mcp_open(const rt_mcp_config *config, rt_provider **out, rt_error *err);

/*
 * Any other request of the protocol ("resources/read", "prompts/get"), with its params as a JSON
 * object or ""; the result as JSON. Of `call` counts all but the tool and its arguments; may be
 * NULL.
 */
bool rt_mcp_request(rt_provider *provider, rt_str method, rt_str params, const rt_tool_call *call,
                    rt_arena *arena, rt_str *result, rt_error *err);

#endif
