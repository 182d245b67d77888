/* SPDX-License-Identifier: Apache-2.0 */
/* agents_internal.h - what the files of this room share. */
#ifndef RT_AGENTS_INTERNAL_H
#define RT_AGENTS_INTERNAL_H

#include <pthread.h>

#include "agents/agents.h"

#define AGENTS_MASK "********"

struct rt_agents {
    rt_agents_config config;
    pthread_mutex_t lock;  /* of `provider` */
    rt_provider *provider; /* that tells the registry of changes; NULL: there is none */
    uint64_t tools_mark;   /* of the list the registry has; 0: it was not looked at yet */
};

/* An agent on its way from a body to its rows: what the body says over what was there. */
typedef struct agents_draft {
    rt_agent_row row;    /* its code and files as texts, wherever they lie */
    rt_json files;       /* beside the entry point; absent: none */
    rt_json environment; /* in clear: {"NAME":{"value":…,"secret":…}}; absent: none */
    rt_str changelog;    /* of this version, in words */
    rt_str version;      /* that the body asks for; empty: none */
    bool has_code;       /* the body has, so that of the files does not count */
} agents_draft;

/* -- definition.c ------------------------------------------------------------------------------ */

bool agents_draft_read(rt_json body, rt_arena *arena, agents_draft *draft, rt_error *err);
/* "main.py", where none was named. */
rt_str agents_entry_point(const rt_agent_content *content, rt_arena *arena);
/* Everything that can be said of it before it runs. */
bool agents_draft_check(agents_draft *draft, rt_arena *arena, rt_error *err);

/* -- schemas.c --------------------------------------------------------------------------------- */

/* A schema as Zod, Pydantic or OpenAPI tools export it, in the words of JSON Schema; checked. */
bool agents_schema_adopt(rt_json schema, const char *member, rt_arena *arena, rt_str *out,
                         rt_error *err);

/* -- environment.c ----------------------------------------------------------------------------- */

/* `given` over `before`: a value that is masked is the one from before. */
bool agents_environment_read(rt_json given, rt_json before, rt_arena *arena, rt_json *out,
                             rt_error *err);
rt_str agents_environment_seal(const rt_agents *a, rt_str agent_id, rt_json environment,
                               rt_arena *arena);
bool agents_environment_unseal(const rt_agents *a, rt_str agent_id, rt_str sealed, rt_arena *arena,
                               rt_json *out, rt_error *err);
rt_json agents_environment_mask(rt_json environment, rt_arena *arena);
/* The value with every secret in its texts masked. */
rt_json agents_mask_secrets(rt_json value, rt_json environment, rt_arena *arena);

/* -- bundle.c ---------------------------------------------------------------------------------- */

bool agents_files_check(rt_json files, rt_str entry_point, rt_str language, rt_error *err);
/* Puts code and files where they belong by their size; content->code_storage_path says where. */
bool agents_bundle_store(const rt_agents *a, rt_str agent_id, rt_str version,
                         rt_agent_content *content, rt_arena *arena, rt_error *err);
/* Code and files, wherever they lie, into the content. */
bool agents_bundle_load(const rt_agents *a, rt_agent_content *content, rt_arena *arena,
                        rt_error *err);
/* One program: the files are written beside it before it begins. *shift_from is the line from
 * which on its lines are one more than the user's; 0: none is. */
bool agents_bundle_join(rt_str language, rt_str code, rt_json files, rt_arena *arena, rt_str *out,
                        uint64_t *shift_from, rt_error *err);
/* The answer with the user's own line numbers. */
rt_json agents_bundle_lines(rt_json answer, rt_str file, uint64_t shift_from, rt_arena *arena);

/* -- versions.c -------------------------------------------------------------------------------- */

typedef struct agents_semver {
    uint64_t part[3];
} agents_semver;

bool agents_semver_parse(rt_str text, agents_semver *out);
int agents_semver_cmp(agents_semver a, agents_semver b);
rt_str agents_semver_next_minor(rt_str version, rt_arena *arena);

/* -- agents.c ---------------------------------------------------------------------------------- */

rt_agent_viewer agents_viewer(const rt_caller *caller);
/* RT_DENIED: "You do not have permission to <action> code_agent". */
bool agents_may(const rt_caller *caller, const rt_agent_row *row, const char *action,
                rt_error *err);
/* The agent with its code, files and sealed environment. */
bool agents_load(rt_agents *a, const rt_caller *caller, rt_str id, rt_str version, rt_arena *arena,
                 rt_agent *out, rt_error *err);
void agents_changed(rt_agents *a, const rt_agent_row *row); /* the registry is told, if it cares */

/* -- provider.c -------------------------------------------------------------------------------- */

rt_str agents_json_text(rt_json value, rt_arena *arena);
bool agents_json_parse(rt_str text, rt_arena *arena, rt_json *out); /* "" is absent */

#endif
