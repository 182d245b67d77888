/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_oauth.h - what the two halves of OAuth share: finding out who gives tokens, and getting one.
 *
 * mcp_oauth_discover.c reads what servers publish; mcp_oauth.c does what that asks for.
 */
#ifndef RT_TOOLS_MCP_OAUTH_H
#define RT_TOOLS_MCP_OAUTH_H

#include "tools/mcp_internal.h"

/* What a 401 or 403 says: WWW-Authenticate: Bearer name="value", ... */
typedef struct mcp_challenge {
    rt_str resource_metadata, scope, error; /* empty: not said */
} mcp_challenge;

void mcp_challenge_read(rt_str header, rt_arena *arena, mcp_challenge *out);

/* An authorization server, and what the MCP server says about itself. */
typedef struct mcp_issuer {
    rt_str resource;        /* what tokens are asked for */
    rt_str resource_scopes; /* separated by spaces; empty: not said */
    rt_str issuer;
    const char *authorization_url, *token_url, *registration_url; /* the last may be NULL */
    bool takes_metadata_urls;                                     /* as client ids */
    bool sends_issuer; /* with every authorization response */
    bool has_offline_access;
    bool takes_basic, takes_post, takes_none; /* at the token endpoint */
    bool says_methods;
} mcp_issuer;

/* An exchange with a body of JSON. */
typedef struct mcp_getter {
    mcp_fetcher *fetcher;
    uint64_t deadline_ns;
    rt_arena *arena;
} mcp_getter;

/* False without an error (code RT_OK): there is no such document. */
bool mcp_get_json(const mcp_getter *g, const char *url, rt_json *out, rt_error *err);

bool mcp_issuer_find(const mcp_getter *g, const char *server_url, const mcp_challenge *challenge,
                     mcp_issuer *out, rt_error *err);

#endif
