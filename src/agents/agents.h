/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agents.h - code that worked, kept: named, versioned, checked, found and called by others.
 *
 * Promise: a version never changes once it is made, and who refers to an agent without saying a
 * version gets the one that was current at that moment, until they say "latest". What goes in and
 * what comes out is held to the agent's schemas. Values of its environment are sealed at rest and
 * never shown. To who may not see an agent, there is none.
 *
 *     rt_agents *agents RT_CLEANUP(rt_agents_closep) = rt_agents_new(&config);
 *     rt_agent agent;
 *     if (!rt_agents_create(agents, &caller, body, &arena, &agent, err))   // as POST /code-agents
 *         return false;
 *     rt_agent_run run = { .id = agent.row.id, .input = input };
 *     rt_agents_execute(agents, &caller, &run, &arena, &outcome, err);
 *
 * Bodies are JSON as the HTTP API takes it (docs/agents.md), because every surface does: the
 * server, the command line, and files people keep in git. definition.c reads them, bundle.c has
 * code of several files, execute.c runs, manifest.c writes what other programs want to know,
 * provider.c lets agents be tools. Any thread may call.
 */
#ifndef RT_AGENTS_AGENTS_H
#define RT_AGENTS_AGENTS_H

#include "engine/engine.h"
#include "store/store.h"
#include "tools/tools.h"

#define RT_AGENT_CODE_MAX ((size_t)10 << 20)  /* bytes of code and files together */
#define RT_AGENT_ROW_MAX  ((size_t)100 << 10) /* more than this goes to the object directory */
#define RT_AGENT_LATEST   "latest"

typedef struct rt_agents rt_agents;

typedef struct rt_agents_config { /* all of it outlives the agents */
    rt_store *store;
    rt_vault *vault;
    const rt_objects *objects;
    rt_engine *engine; /* NULL: agents can be looked at, not run */
} rt_agents_config;

rt_agents *rt_agents_new(const rt_agents_config *config);
void rt_agents_free(rt_agents *agents);
void rt_agents_freep(rt_agents **agents);

/* An agent at one of its versions: `row` is the agent, its content that of `version`. */
typedef struct rt_agent {
    rt_agent_row row;
    rt_str version;      /* that this is about; row.version is the current one */
    rt_str changelog;    /* of this version, in words */
    rt_json environment; /* names and values, with what is secret masked */
} rt_agent;

/* -- Making and changing ----------------------------------------------------------------------- */

/* A new agent, version 1.0.0. RT_INVALID says what in the body is wrong. */
bool rt_agents_create(rt_agents *agents, const rt_caller *caller, rt_json body, rt_arena *arena,
                      rt_agent *out, rt_error *err);
/* Changes what the body has; a new minor version (1.0.0 → 1.1.0) is made of it. */
bool rt_agents_update(rt_agents *agents, const rt_caller *caller, rt_str id, rt_json body,
                      rt_arena *arena, rt_agent *out, rt_error *err);
/* The same with the version the body names; RT_CONFLICT when there is one. It becomes the current
 * one when it is higher. */
bool rt_agents_add_version(rt_agents *agents, const rt_caller *caller, rt_str id, rt_json body,
                           rt_arena *arena, rt_agent *out, rt_error *err);
/* Made, or changed when it differs from what there is by that name; for who keeps agents in files.
 * *is_changed: there is a new version. */
bool rt_agents_put(rt_agents *agents, const rt_caller *caller, rt_json body, rt_arena *arena,
                   rt_agent *out, bool *is_changed, rt_error *err);
bool rt_agents_remove(rt_agents *agents, const rt_caller *caller, rt_str id, rt_error *err);

/* What changes without a new version. */
typedef enum rt_agent_mark {
    RT_AGENT_PUBLISH,
    RT_AGENT_UNPUBLISH,
    RT_AGENT_DEPRECATE, /* with `note`, for who uses it */
    RT_AGENT_REVIVE,
    RT_AGENT_REGISTER, /* as a tool; `note` is a version, "latest", or empty: the current one */
    RT_AGENT_UNREGISTER,
} rt_agent_mark;

bool rt_agents_mark(rt_agents *agents, const rt_caller *caller, rt_str id, rt_agent_mark mark,
                    rt_str note, rt_arena *arena, rt_agent *out, rt_error *err);

/* -- Looking ----------------------------------------------------------------------------------- */

/* `id` may be an agent's id or its tool's name, with or without "@version". A version of "latest"
 * or none is the current one. RT_NOT_FOUND. */
bool rt_agents_find(rt_agents *agents, const rt_caller *caller, rt_str id, rt_str version,
                    rt_arena *arena, rt_agent *out, rt_error *err);
bool rt_agents_list(rt_agents *agents, const rt_caller *caller, const rt_agent_filter *filter,
                    rt_arena *arena, rt_agent_row **rows, size_t *count, rt_error *err);
bool rt_agents_versions(rt_agents *agents, const rt_caller *caller, rt_str id, rt_arena *arena,
                        rt_agent_version **rows, size_t *count, rt_error *err);
/* Those a sentence may mean, best first, by the search of the tools. */
bool rt_agents_search(rt_agents *agents, const rt_caller *caller, rt_str query, bool is_public,
                      size_t limit, rt_arena *arena, rt_agent_row **rows, size_t *count,
                      rt_error *err);

/* The shapes of section 7.1; into an open object. Without code when it was not loaded. */
void rt_agent_write(const rt_agent *agent, rt_json_writer *w);
void rt_agent_row_write(const rt_agent_row *row, rt_json_writer *w);
void rt_agent_version_write(const rt_agent_version *version, rt_json_writer *w);

/* -- Running ----------------------------------------------------------------------------------- */

typedef struct rt_agent_run {
    rt_str id, version; /* as rt_agents_find() takes them */
    rt_str input;       /* JSON text */
    bool has_input;
    rt_str surface; /* "code-agents", "mcp", "tool" … */
    rt_trace trace;
    rt_canceller *canceller;
    bool is_nested; /* part of a run that has a slot */
    void (*on_work)(void *ctx); /* as in rt_request */
    void *work_ctx;
} rt_agent_run;

typedef struct rt_agent_result {
    rt_str agent_id, version;
    rt_str execution_id;
    bool is_success;
    rt_str code;    /* of a failure: INPUT_VALIDATION_ERROR, PYTHON_EXECUTION_ERROR … */
    rt_str message; /* of a failure, for people */
    rt_json answer; /* the engine's, with the environment's secrets masked */
    double time_ms;
    rt_str warning; /* the agent is deprecated; empty: it is not */
} rt_agent_result;

/* A run that failed is a result like any other; false when there was none. */
bool rt_agents_execute(rt_agents *agents, const rt_caller *caller, const rt_agent_run *run,
                       rt_arena *arena, rt_agent_result *out, rt_error *err);

/* -- As a tool --------------------------------------------------------------------------------- */

typedef enum rt_manifest {
    RT_MANIFEST_RETORT, /* {name, description, inputSchema, outputSchema, handler} */
    RT_MANIFEST_OPENAI,
    RT_MANIFEST_ANTHROPIC,
    RT_MANIFEST_MCP,
} rt_manifest;

bool rt_manifest_parse(rt_str name, rt_manifest *out, rt_error *err);
/* One object. */
void rt_agent_write_manifest(const rt_agent *agent, rt_manifest form, rt_json_writer *w);
/* "CSV profile" is "csv-profile". */
rt_str rt_agent_tool_name(rt_str name, rt_arena *arena);

#define RT_AGENTS_PROVIDER "agents"

/* Registered agents as tools: "agents:csv-profile". One for a registry. */
rt_provider *rt_agents_provider(rt_agents *agents);

/* Tells the registry when another node, or a command, changed which agents are tools. Now and then. */
bool rt_agents_refresh(rt_agents *agents, rt_error *err);

/* Several agents under one name, to be served as an MCP server of their own. `ids` as
 * rt_agents_find() takes them, each pinned unless it says "@latest". */
bool rt_agents_deploy(rt_agents *agents, const rt_caller *caller, rt_str name, rt_str protocol,
                      const rt_str *ids, size_t count, rt_arena *arena, rt_error *err);
/* What the server of that name serves; an agent's id or name is a server of that agent alone. */
bool rt_agents_served(rt_agents *agents, const rt_caller *caller, rt_str server, rt_arena *arena,
                      rt_agent **out, size_t *count, rt_error *err);

/* -- Code before it runs ----------------------------------------------------------------------- */

typedef struct rt_escape_report {
    bool is_detected;
    rt_str severity; /* low medium high critical; empty when nothing was found */
    rt_str patterns; /* JSON: ["process: …"] */
    rt_str description, recommendation;
    bool should_block; /* severity is at least the threshold */
} rt_escape_report;

/* What in the code looks like a way out. Advice: the cell is the wall. */
bool rt_agents_check_escape(rt_agents *agents, const rt_caller *caller, rt_str language,
                            rt_str code, rt_str threshold, rt_arena *arena, rt_escape_report *out,
                            rt_error *err);

#endif
