/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agents.h - the rows of code agents: what they are now, every version they had, who may see them.
 *
 * Promise: an agent and its new version are written together or not at all, and a version, once
 * written, never changes. Who may see an agent is part of every statement that looks for one: to
 * others it is not there, at the same price.
 */
#ifndef RT_STORE_AGENTS_H
#define RT_STORE_AGENTS_H

#include "store/db.h"

/* What a version is made of. Texts that are JSON are never checked here. */
typedef struct rt_agent_content {
    rt_str language, runtime, validation_type, entry_point;
    rt_str packages, tools;             /* JSON arrays */
    rt_str policy;                      /* JSON, or empty */
    rt_str input_schema, output_schema; /* JSON, or empty */
    rt_str environment;                 /* sealed, or empty */
    rt_str code_storage_path;           /* where code and files lie instead of here; or empty */
    rt_str files;                       /* JSON: {"lib/util.py": "…"} */
    rt_str code;
    uint64_t code_bytes;
} rt_agent_content;

typedef struct rt_agent_row {
    rt_str id; /* agent_<ms>_<hex> */
    rt_str organisation_id, workspace_id, user_id;
    rt_str name, tool_name, description;
    rt_str version;
    bool is_public, is_deprecated, is_tool;
    rt_str tool_version; /* of the tool: a version, or "latest" */
    rt_str deprecation;
    uint64_t usage_count, created_ms, updated_ms;
    rt_str metadata, changelog; /* JSON */
    rt_agent_content content;
} rt_agent_row;

typedef struct rt_agent_version {
    rt_str id, code_agent_id, version, user_id;
    rt_str changelog; /* in words */
    uint64_t created_ms;
    rt_agent_content content;
} rt_agent_version;

/* Who looks. What is public is seen by all, the rest by its organisation and workspace. */
typedef struct rt_agent_viewer {
    rt_str organisation_id; /* empty: the operator, who sees all */
    rt_str workspace_id;    /* empty: all of the organisation's */
} rt_agent_viewer;

/* RT_CONFLICT when the name is taken in its workspace. */
bool rt_agent_add(rt_store *store, const rt_agent_row *row, const rt_agent_version *version,
                  rt_error *err);
/* By id. RT_NOT_FOUND, also when it may not be seen. */
bool rt_agent_find(rt_store *store, const rt_agent_viewer *viewer, rt_str id, rt_arena *arena,
                   rt_agent_row *out, rt_error *err);
/* By the tool's name; one's own before what others published. */
bool rt_agent_find_named(rt_store *store, const rt_agent_viewer *viewer, rt_str tool_name,
                         rt_arena *arena, rt_agent_row *out, rt_error *err);

typedef enum rt_agent_wish { RT_AGENT_ANY, RT_AGENT_NO, RT_AGENT_YES } rt_agent_wish;

typedef struct rt_agent_filter {
    rt_agent_viewer viewer;
    rt_str language; /* empty: any */
    rt_agent_wish is_public, is_deprecated, is_tool;
    bool is_own;    /* not what other organisations published */
    unsigned limit; /* 0: RT_AGENTS_MAX */
} rt_agent_filter;

#define RT_AGENTS_MAX 1000

/* Newest first, without code, files and environment. */
bool rt_agent_list(rt_store *store, const rt_agent_filter *filter, rt_arena *arena,
                   rt_agent_row **rows, size_t *count, rt_error *err);

/* Everything of the row but who made it and when; with a new version, if there is one. `was_ms` is
 * updated_ms as it was read: RT_CONFLICT when somebody else changed the agent meanwhile, or when
 * the version exists. */
bool rt_agent_update(rt_store *store, const rt_agent_row *row, uint64_t was_ms,
                     const rt_agent_version *version, rt_error *err);
bool rt_agent_remove(rt_store *store, rt_str id, rt_error *err); /* and its versions */
bool rt_agent_used(rt_store *store, rt_str id, rt_error *err);   /* one more time */

/* Differs when an agent became a tool, ceased to be one, or changed as one; for who keeps a list. */
bool rt_agent_tools_mark(rt_store *store, uint64_t *mark, rt_error *err);

/* Newest first, without code, files and environment. */
bool rt_agent_version_list(rt_store *store, rt_str agent_id, rt_arena *arena,
                           rt_agent_version **rows, size_t *count, rt_error *err);
bool rt_agent_version_find(rt_store *store, rt_str agent_id, rt_str version, rt_arena *arena,
                           rt_agent_version *out, rt_error *err);

/* -- Agents that are served together ----------------------------------------------------------- */

typedef struct rt_agent_server {
    rt_str organisation_id, workspace_id, name;
    rt_str protocol; /* stdio http sse */
    rt_str agents;   /* JSON: [{"id":…,"version":…}] */
    uint64_t created_ms, updated_ms;
} rt_agent_server;

bool rt_agent_server_put(rt_store *store, const rt_agent_server *row, rt_error *err);
bool rt_agent_server_find(rt_store *store, const rt_agent_viewer *viewer, rt_str name,
                          rt_arena *arena, rt_agent_server *out, rt_error *err);

#endif
