/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tools.h - tools: what there is, which one is meant, and calling it.
 *
 * Promise: every tool has one name, "server:tool", whoever provides it; looking around never loads
 * code or schemas; a provider that is slow, dead or lying costs its own callers an error and nobody
 * else anything. A tool is called only by whom it was granted to: that is decided upstairs
 * (engine), once, for every way a call can come.
 *
 *     rt_tools *tools RT_CLEANUP(rt_tools_closep) = NULL;
 *     rt_tools_open(&(rt_tools_config){ .store = store }, &tools, err);
 *     rt_tools_add(tools, provider, err);
 *     rt_tool_hit hits[10];
 *     size_t count = rt_tools_search(tools, RT_STR("who committed last week"), &arena, hits, 10);
 *     rt_tools_call(tools, &call, &arena, &result, err);
 *
 * Any thread may call.
 */
#ifndef RT_TOOLS_TOOLS_H
#define RT_TOOLS_TOOLS_H

#include "base/base.h"
#include "models/models.h"
#include "store/store.h"

typedef struct rt_tools rt_tools;

typedef enum rt_tool_flags {
    RT_TOOL_READ_ONLY = 1 << 0,   /* changes nothing */
    RT_TOOL_DESTRUCTIVE = 1 << 1, /* may delete or overwrite */
    RT_TOOL_IDEMPOTENT = 1 << 2,  /* twice is as once */
    RT_TOOL_OPEN_WORLD = 1 << 3,  /* talks to the world outside */
    RT_TOOL_NEEDS_APPROVAL = 1 << 4,
    RT_TOOL_SIDE_EFFECT = 1 << 5, /* its runs are never answered from the cache */
    RT_TOOL_SEES_PII = 1 << 6,    /* gets real values in place of tokens */
    RT_TOOL_OBSERVED = 1 << 7,    /* its output_schema is learned: a help, and no promise */
} rt_tool_flags;

typedef struct rt_tool {
    rt_str name;   /* "github:list_commits" */
    rt_str server; /* "github" */
    rt_str title, description, category, version;
    rt_str input_schema, output_schema; /* JSON text; empty when unknown or not asked for */
    unsigned flags;
    rt_str audience; /* the organisation that alone sees and calls it; empty: everybody does */
} rt_tool;

/* -- Providers --------------------------------------------------------------------------------- */

typedef struct rt_tool_call {
    rt_str tool;          /* "server:tool" */
    rt_str arguments;     /* a JSON object */
    uint64_t deadline_ns; /* on rt_now_ns()'s clock; 0: the provider's own time-out */
    int cancel_fd;        /* readable: give up (an rt_canceller's); -1: none */
    void (*on_progress)(void *ctx, double done, double total, rt_str message); /* may be NULL */
    void *progress_ctx;
    rt_str traceparent;                                    /* may be empty */
    rt_str organisation_id, workspace_id, user_id, key_id; /* on whose behalf; empty: nobody's */
    const struct rt_caller *caller; /* the same, for providers upstairs; engine.h; may be NULL */
    rt_str run;                     /* what it is a part of, an execution's id; empty: of nothing */
    bool is_approved;               /* a person was asked about this very call, and said yes */
} rt_tool_call;

typedef struct rt_tool_result {
    rt_str value;   /* JSON: the structured result if there is one, else made of the content */
    rt_str content; /* JSON array of MCP content blocks, as the provider gave it */
    bool is_error;  /* the tool itself failed; value says how */
    uint64_t elapsed_us;
} rt_tool_result;

typedef struct rt_provider rt_provider;
struct rt_provider {
    char name[64]; /* the server's part of its tools' names */
    /* Tools with their schemas, into the arena. */
    bool (*list)(rt_provider *self, rt_arena *arena, rt_tool **out, size_t *count, rt_error *err);
    bool (*call)(rt_provider *self, const rt_tool_call *call, rt_arena *arena, rt_tool_result *out,
                 rt_error *err);
    void (*health)(rt_provider *self, rt_json_writer *w); /* one object: status, latency, tools … */
    void (*close)(rt_provider *self);
    void (*on_change)(void *ctx, rt_provider *self); /* set by the registry: its list has changed */
    void *change_ctx;
    bool is_remote; /* listing may take its time: nobody waits for it when it is added */
};

/* -- The registry ------------------------------------------------------------------------------ */

typedef struct rt_tools_config {
    rt_store *store;       /* usage, imported tools; NULL: none are kept */
    const rt_model *model; /* of meaning, for the search; NULL: the built-in vectors */
} rt_tools_config;

bool rt_tools_open(const rt_tools_config *config, rt_tools **out, rt_error *err);
void rt_tools_close(rt_tools *tools);
void rt_tools_closep(rt_tools **tools);

bool rt_tools_add(rt_tools *tools, rt_provider *provider, rt_error *err); /* owns it from then on */
bool rt_tools_remove(rt_tools *tools, rt_str provider, rt_error *err);

/* Without schemas; newest list of every provider, in the order of names. */
size_t rt_tools_list(rt_tools *tools, rt_str category, rt_arena *arena, rt_tool **out);
/* With schemas; where a server declares none for the output, with what was learned of it
 * (RT_TOOL_OBSERVED). RT_NOT_FOUND, with a suggestion. */
bool rt_tools_find(rt_tools *tools, rt_str name, rt_arena *arena, rt_tool *out, rt_error *err);

/*
 * The tool that code means by what it wrote: "github:listCommits" is github:list_commits, and
 * "my_server:do_it" is my-server:do-it. With schemas. A server that has not listed its tools yet is
 * waited for, and asked again when it could not be had before; until the deadline.
 */
bool rt_tools_resolve(rt_tools *tools, rt_str written, uint64_t deadline_ns, rt_arena *arena,
                      rt_tool *out, rt_error *err);
/*
 * The four above know what is for everybody. Who looks in an organisation's name sees its own tools
 * too, before others of the same name.
 */
struct rt_tool_hit;
size_t rt_tools_list_for(rt_tools *tools, rt_str audience, rt_str category, rt_arena *arena,
                         rt_tool **out);
bool rt_tools_find_for(rt_tools *tools, rt_str audience, rt_str name, rt_arena *arena, rt_tool *out,
                       rt_error *err);
bool rt_tools_resolve_for(rt_tools *tools, rt_str audience, rt_str written, uint64_t deadline_ns,
                          rt_arena *arena, rt_tool *out, rt_error *err);
size_t rt_tools_search_for(rt_tools *tools, rt_str audience, rt_str query, rt_arena *arena,
                           struct rt_tool_hit *hits, size_t max);

/* Waits until every server has listed its tools or failed to, at most until the deadline. */
bool rt_tools_gather(rt_tools *tools, uint64_t deadline_ns); /* false: some have not */

/* Who provides tools that can be called: names, in their order. */
size_t rt_tools_servers(rt_tools *tools, rt_arena *arena, rt_str **out);
/* An array with the health of each. */
void rt_tools_health(rt_tools *tools, rt_json_writer *w);
/* Changes when any tool's name or version does. */
uint64_t rt_tools_fingerprint(rt_tools *tools);

/* A category's tools in at most RT_TOOLS_BROWSE_MAX characters: names, and what is left for their
 * descriptions. The empty category lists the categories. */
#define RT_TOOLS_BROWSE_MAX 800 /* 200 tokens */
rt_str rt_tools_browse(rt_tools *tools, rt_str category, rt_arena *arena);

/* 1 to 100 of a-z, A-Z, 0-9, "_" and "-", and nothing that means something to JavaScript. */
bool rt_tool_name_check(rt_str tool, rt_error *err);

/* Waits until every provider that said its list has changed was asked for the new one. */
void rt_tools_settle(rt_tools *tools);

bool rt_tools_call(rt_tools *tools, const rt_tool_call *call, rt_arena *arena, rt_tool_result *out,
                   rt_error *err);

/* Looks at a result, to learn what results of this tool look like; keeps no value of it. The first
 * results are looked at, and later ones now and then. (A call does it by itself.) */
void rt_tools_observe(rt_tools *tools, rt_str name, rt_str value);

/* -- Usage ------------------------------------------------------------------------------------- */

typedef struct rt_tool_usage {
    uint64_t uses, failures, last_used_ms;
    double average_ms;
} rt_tool_usage;

/* A use that was no rt_tools_call: a run by hand, a pattern. (A call is counted by itself.) */
void rt_tools_used(rt_tools *tools, rt_str name, uint64_t elapsed_us, bool is_failure);
bool rt_tools_usage(rt_tools *tools, rt_str name, rt_tool_usage *out, rt_error *err);
bool rt_tools_flush(rt_tools *tools, rt_error *err); /* what was counted into the store, now */

/* -- Tools that came by a file: they are found, not called ------------------------------------- */

#define RT_TOOLS_IMPORT_BYTES ((size_t)256 << 20)

/* A JSON array of {name, description, category, input_schema?, output_schema?}, title and server if
 * there are; replaces tools of the same names. Registries that are open do not see them. */
bool rt_tools_import(rt_store *store, rt_str json, size_t *count, rt_error *err);

/* -- Stubs: what code that calls a tool may know of it -------------------------------------------
 */

typedef enum rt_stub_language { RT_STUB_TYPESCRIPT, RT_STUB_PYTHON } rt_stub_language;

bool rt_stub_language_parse(rt_str name, rt_stub_language *out, rt_error *err);

/*
 * Declarations made of a tool's schemas, whatever a stranger put into them:
 *
 *     interface ListCommitsArgs { repo: string; limit?: number; }
 *     type ListCommitsResult = unknown;
 *     declare const github: { listCommits(args: ListCommitsArgs): Promise<ListCommitsResult>; };
 *
 * or a Python module of TypedDicts and a class with a function. Of several tools, those of one
 * server stand together.
 */
rt_str rt_tool_stub(const rt_tool *tool, rt_stub_language language, rt_arena *arena);
rt_str rt_tool_stubs(const rt_tool *tools, size_t count, rt_stub_language language,
                     rt_arena *arena);

/* -- Search (search.h has the index alone, for other rooms and for measuring) ------------------ */

typedef struct rt_tool_hit {
    rt_tool tool; /* without schemas; lives in the arena */
    double score, lexical, semantic, usage;
    double
        graph; /* how often it is called with the tools of the context; only where one is given */
} rt_tool_hit;

size_t rt_tools_search(rt_tools *tools, rt_str query, rt_arena *arena, rt_tool_hit *hits,
                       size_t max);

/* -- Which tools are called together ------------------------------------------------------------
 */

#define RT_TOOLS_RELATED_SCORE 0.8 /* of the one that is called with it most often */

typedef struct rt_tool_related {
    rt_str name;
    bool is_before; /* often called before it; else after it */
    double score;
} rt_tool_related;

/* Those that `audience` may see. */
size_t rt_tools_related(rt_tools *tools, rt_str audience, rt_str name, rt_arena *arena,
                        rt_tool_related *out, size_t max);

/* How the graph weighs: score = alpha * the search's + (1 - alpha) * the graph's. */
typedef struct rt_tool_graph {
    double alpha; /* max(0.5, 1 - 2 * density) */
    size_t edges;
} rt_tool_graph;

/* rt_tools_search_for(), and what is often called before or after the tools of `context` comes
 * first. Without a context the graph's part is how often a tool is used. */
size_t rt_tools_search_with(rt_tools *tools, rt_str audience, rt_str query, const rt_str *context,
                            size_t count, rt_arena *arena, rt_tool_hit *hits, size_t max,
                            rt_tool_graph *graph);

#include "tools/mcp.h"         /* other people's servers as providers */
#include "tools/mcp_message.h" /* what both ends of MCP share */
#include "tools/prompts.h"     /* tools in words, for models */
#include "tools/toolbox.h"     /* the sample tools, whose code is here */

#endif
