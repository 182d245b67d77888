/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp.h - the Model Context Protocol, as a server: what its files share.
 *
 * One request becomes one mcp_call, whatever it came over and in whichever era. A method is a row
 * of a table (mcp_methods.c) whose function writes the members of the result; what every result of
 * an era must have is added in one place (mcp_call.c), so that no answer goes without it.
 *
 *     static bool list_tools(mcp_call *c, rt_json_writer *w)
 *     {
 *         rt_jw_karray(w, "tools");
 *         …
 *         return true;                       // or mcp_fail(c, RT_MCP_INVALID_PARAMS, …)
 *     }
 *
 * Revisions up to 2025-11-25 ("legacy") begin with `initialize` and know a client for longer than a
 * request: that is an mcp_peer, an HTTP session or the process at the other end of stdio. Later
 * ones
 * ("modern") say everything with every request and have no peer. Calls are told apart by their own
 * address, never by the id the client chose: there are clients that call everything 1.
 *
 * mcp_dispatch.c reads a message and finds its method; mcp_http.c and mcp_stdio.c carry.
 */
#ifndef RT_SERVER_MCP_H
#define RT_SERVER_MCP_H

#include <pthread.h>
#include <stdatomic.h>

#include "server/server.h"
#include "tools/tools.h"

#define MCP_CALLS_MAX    1024 /* under way at once */
#define MCP_PEERS_MAX    1024 /* sessions; the one unused longest goes first */
#define MCP_PEER_IDLE_MS (3600 * 1000)
#define MCP_STREAMS_MAX  16         /* of one session, kept for a client that comes back */
#define MCP_STREAM_BYTES (8u << 20) /* of messages kept in one */
#define MCP_URIS_MAX     64         /* subscribed to by one peer or listener */
#define MCP_URI_MAX      1024
#define MCP_ASK_MS       (5 * 60 * 1000) /* how long a client may take to answer us */
#define MCP_KEEPALIVE_MS 15000
#define MCP_MESSAGE_MAX  ((size_t)64 << 20) /* of one answer, and of one line on stdio */
#define MCP_CODE_MAX     102400

typedef struct mcp mcp;
typedef struct mcp_call mcp_call;
typedef struct mcp_peer mcp_peer;
typedef struct mcp_stream mcp_stream;

struct mcp {
    const rt_server_config *config; /* outlives it */
    pthread_mutex_t lock;           /* of the next ones; taken before a peer's */
    pthread_cond_t is_idle;
    mcp_call *calls; /* under way */
    size_t call_count, thread_count;
    mcp_peer *peers; /* sessions */
    size_t peer_count;
    bool is_stopping;
    atomic_uint_fast64_t last_ask;
};

mcp *mcp_new(const rt_server_config *config);
/* Ends what waits for something to happen; calls go on. */
void mcp_stop(mcp *m);
bool mcp_is_busy(mcp *m); /* calls have threads */
void mcp_free(mcp *m);    /* cancels every call and waits for it */

/* -- Messages on their way out ------------------------------------------------------------------
 */

/* `status` is the HTTP status of an answer, 0 for what is none. */
typedef void (*mcp_send_fn)(void *ctx, rt_str message, unsigned status);

/* What one HTTP answer carries: messages in their order, for one reader at a time. */
mcp_stream *mcp_stream_new(void);
mcp_stream *mcp_stream_keep(mcp_stream *s);
void mcp_stream_release(mcp_stream *s);
void mcp_stream_send(void *stream, rt_str message, unsigned status); /* an mcp_send_fn */
void mcp_stream_end(mcp_stream *s);
void mcp_stream_nudge(mcp_stream *s); /* whoever waits looks again */
/* The message after *position, copied. 1: one, 0: none before the deadline (or nudged), -1: the
 * last was taken. */
int mcp_stream_next(mcp_stream *s, size_t *position, uint64_t deadline_ns, rt_arena *arena,
                    rt_str *message, unsigned *status);
bool mcp_stream_is_over(mcp_stream *s);
void mcp_stream_pause(mcp_stream *s); /* its reader is to hang up and come back for the rest */
bool mcp_stream_take_pause(mcp_stream *s);

/* -- Peers ---------------------------------------------------------------------------------------
 */

/* A client that introduced itself. One share is the caller's. */
mcp_peer *mcp_peer_new(mcp *m, const rt_caller *who, mcp_send_fn send, void *send_ctx);
/* A session of this caller; NULL: there is none, or not of theirs. */
mcp_peer *mcp_peer_find(mcp *m, rt_str id, const rt_caller *who);
mcp_peer *mcp_peer_keep(mcp_peer *p);
void mcp_peer_release(mcp_peer *p);
void mcp_peer_releasep(mcp_peer **p);
void mcp_peer_close(mcp_peer *p); /* nobody finds it any more; its calls are cancelled */
rt_str mcp_peer_id(const mcp_peer *p);
mcp_peer *mcp_peer_next(const mcp_peer *p); /* under the lock of `mcp` */
void mcp_peer_hush(mcp_peer *p);            /* nothing more comes that belongs to no call */

void mcp_peer_introduce(mcp_peer *p, const rt_mcp_version *version, rt_json capabilities);
const rt_mcp_version *mcp_peer_version(mcp_peer *p); /* NULL: not introduced */
rt_json mcp_peer_capabilities(mcp_peer *p, rt_arena *arena);
void mcp_peer_level_set(mcp_peer *p, int level);
int mcp_peer_level(mcp_peer *p);
bool mcp_peer_subscribe(mcp_peer *p, rt_str uri); /* false: it has too many */
void mcp_peer_unsubscribe(mcp_peer *p, rt_str uri);
void mcp_peer_deliver(mcp_peer *p, rt_json response); /* to who asked */
void mcp_peer_nudge(mcp_peer *p);                     /* whoever waits for an answer looks again */
void mcp_peer_tell(mcp_peer *p, rt_str message);      /* what belongs to no call */

/* Streams a client may come back to, by the ids of their events ("3-17": stream, message). */
uint64_t mcp_peer_stream_add(mcp_peer *p, mcp_stream *s);
mcp_stream *mcp_peer_stream_find(mcp_peer *p, uint64_t number); /* release it */
mcp_stream *mcp_peer_background(mcp_peer *p); /* what belongs to no call; release it */

/* -- A call ---------------------------------------------------------------------------------------
 */

typedef enum mcp_level {
    MCP_DEBUG,
    MCP_INFO,
    MCP_NOTICE,
    MCP_WARNING,
    MCP_ERROR,
    MCP_CRITICAL,
    MCP_ALERT,
    MCP_EMERGENCY,
    MCP_QUIET, /* nothing */
} mcp_level;

int mcp_level_find(rt_str name); /* -1: there is none */

/* What HTTP adds to a message; texts that are {NULL, 0} were not sent. */
typedef struct mcp_headers {
    rt_str version, method, name;
    rt_str (*param)(void *ctx, const char *header); /* "Mcp-Param-Region" */
    void *ctx;
} mcp_headers;

struct mcp_call {
    mcp *mcp;
    rt_arena arena;
    rt_caller caller;
    mcp_peer *peer; /* NULL: modern, or a client without a session */
    rt_str agents;  /* the server of code agents that is talked to; empty: all of Retort */
    const rt_mcp_version *version;
    const struct mcp_method *row;
    rt_str id; /* as JSON text; empty: nobody waits for an answer */
    rt_str method;
    rt_json params, meta;
    rt_json capabilities;  /* of the client; absent: none */
    int level;             /* of log messages that are sent */
    rt_str progress_token; /* as JSON text; empty: no progress is told */
    rt_trace trace;
    mcp_send_fn send;
    void *send_ctx;
    rt_canceller canceller;

    const char *result_type; /* NULL: "complete" */
    struct {
        int code;
        char text[512];
        rt_str data;
        unsigned status; /* of HTTP; 0: what the code has */
    } failure;

    mcp_call *next, *previous; /* of those under way; under the lock of `mcp` */
    unsigned holders;
    atomic_bool is_cancelled; /* it is not answered any more */
    bool is_enlisted, is_listening;
    struct {
        bool tools, prompts, resources;
        rt_str uris[MCP_URIS_MAX];
        size_t uri_count;
    } wanted; /* of a listener */
};

static inline bool mcp_is_modern(const mcp_call *c)
{
    return c->version->era == RT_MCP_MODERN;
}

mcp_call *mcp_call_new(mcp *m, const rt_caller *who);
/* From now on it can be cancelled by its id; false: too many are under way. */
bool mcp_call_enlist(mcp_call *c);
void mcp_call_delist(mcp_call *c);
mcp_call *mcp_call_keep(mcp_call *c);
void mcp_call_release(mcp_call *c);
void mcp_call_releasep(mcp_call **c);
void mcp_call_cancel(mcp_call *c); /* it ends, and is not answered */

/* Returns false. `data` is JSON text or empty. */
bool mcp_fail(mcp_call *c, int code, rt_str data, const char *fmt, ...) RT_PRINTF(4, 5);
bool mcp_fail_error(mcp_call *c, const rt_error *err);

/* Only when the client wants it. */
void mcp_log(mcp_call *c, mcp_level level, const char *logger, rt_str text);
void mcp_progress(mcp_call *c, double done, double total, rt_str message); /* total 0: unknown */

/* Asks the client (sampling/createMessage …) and waits; legacy only. */
bool mcp_ask(mcp_call *c, const char *method, rt_str params, rt_json *result, rt_error *err);
bool mcp_can(const mcp_call *c, const char *capability);

/* -- From a message to its answer (mcp_dispatch.c) -----------------------------------------------
 */

typedef enum mcp_kind { MCP_REQUEST, MCP_NOTIFICATION, MCP_RESPONSE, MCP_BROKEN } mcp_kind;

mcp_kind mcp_kind_of(rt_json message);
/* Does it follow the rules of 2026-07-28 and later? */
bool mcp_is_modern_message(rt_json message);

/* Takes over what the message says, and checks it. `headers` may be NULL. */
bool mcp_call_open(mcp_call *c, rt_json message, const mcp_headers *headers);
/* Answers: runs the method, or tells what mcp_call_open() had against it. */
void mcp_call_answer(mcp_call *c);
/* The same on a thread of its own, with a share of the call; false: there is none. */
bool mcp_call_start(mcp_call *c, void (*done)(mcp_call *c, void *ctx), void *ctx);
bool mcp_call_is_long(const mcp_call *c); /* may take its time, or tell of its progress */
void mcp_notified(mcp *m, mcp_peer *peer, rt_json message);

/* Tells all who want to know. */
typedef enum mcp_change {
    MCP_TOOLS_CHANGED,
    MCP_PROMPTS_CHANGED,
    MCP_RESOURCES_CHANGED
} mcp_change;
void mcp_changed(mcp *m, mcp_change what);

/* -- Methods
 * --------------------------------------------------------------------------------------- */

typedef enum mcp_method_flag {
    MCP_LEGACY_ONLY = 1,
    MCP_MODERN_ONLY = 2,
    MCP_CACHED = 4, /* the result has ttlMs and cacheScope */
    MCP_LONG = 8,
    MCP_FIXTURE = 16, /* only there for the conformance suite */
} mcp_method_flag;

typedef struct mcp_method {
    const char *name;
    bool (*answer)(mcp_call *c, rt_json_writer *w); /* members of the result */
    unsigned flags;
    const char *header; /* the member of params that Mcp-Name repeats; NULL: none */
} mcp_method;

/* Code agents as a server of their own (mcp_agents.c): their tools and no others. */
bool mcp_agents_check(mcp_call *c, rt_error *err); /* is there such a server? */
bool mcp_agents_list(mcp_call *c, rt_json_writer *w);
bool mcp_agents_call(mcp_call *c, rt_str name, rt_json arguments, rt_json_writer *w);

const mcp_method *mcp_method_find(const mcp *m, rt_str name, rt_mcp_era era);
void mcp_write_server_info(const mcp *m, rt_json_writer *w);

/* Our lists have one page. */
bool mcp_check_cursor(mcp_call *c);

bool mcp_prompts_list(mcp_call *c, rt_json_writer *w); /* these in mcp_fixture*.c */
bool mcp_prompts_get(mcp_call *c, rt_json_writer *w);
bool mcp_complete(mcp_call *c, rt_json_writer *w);

bool mcp_resources_list(mcp_call *c, rt_json_writer *w); /* these in mcp_resources.c */
bool mcp_resources_templates(mcp_call *c, rt_json_writer *w);
bool mcp_resources_read(mcp_call *c, rt_json_writer *w);

/* -- Tools
 * ------------------------------------------------------------------------------------------ */

typedef struct mcp_tool {
    const char *name, *title, *about;
    const char *input, *output; /* JSON Schema; output NULL: none */
    const char *annotations;    /* JSON; NULL: none */
    rt_role role;
    bool (*call)(mcp_call *c, rt_json arguments, rt_json_writer *w); /* members of the result */
} mcp_tool;

extern const mcp_tool mcp_tools[]; /* end with a row without a name */
extern const mcp_tool mcp_fixture_tools[];

bool mcp_list_tools(mcp_call *c, rt_json_writer *w); /* these in mcp_tools.c */
bool mcp_call_tool(mcp_call *c, rt_json_writer *w);
const mcp_tool *mcp_tool_find(const mcp *m, rt_str name);
/* Do the headers repeat the arguments whose schema says x-mcp-header? (mcp_headers.c) */
bool mcp_headers_check_arguments(mcp_call *c, const mcp_tool *tool, const mcp_headers *headers);

bool mcp_execute_code(mcp_call *c, rt_json arguments, rt_json_writer *w); /* in mcp_execute.c */
bool mcp_execute_plain(mcp_call *c, rt_json arguments, rt_json_writer *w);
bool mcp_session(mcp_call *c, rt_json arguments, rt_json_writer *w); /* in mcp_session.c */
bool mcp_read_artifact(mcp_call *c, rt_json arguments, rt_json_writer *w);
bool mcp_approvals(mcp_call *c, rt_json arguments, rt_json_writer *w); /* in mcp_approvals.c */
bool mcp_patterns(mcp_call *c, rt_json arguments, rt_json_writer *w);  /* these in mcp_patterns.c */
bool mcp_pattern_list(mcp_call *c, rt_json arguments, rt_json_writer *w);
bool mcp_pattern_get(mcp_call *c, rt_json arguments, rt_json_writer *w);
bool mcp_pattern_save(mcp_call *c, rt_json arguments, rt_json_writer *w);
bool mcp_pattern_run(mcp_call *c, rt_json arguments, rt_json_writer *w);

/* The members of a result: a text, or JSON both as text and as structuredContent. */
void mcp_write_text(rt_json_writer *w, rt_str text, bool is_error);
void mcp_write_structured(mcp_call *c, rt_json_writer *w, rt_str json);
void mcp_text_block(rt_json_writer *w, rt_str text);
void mcp_artifact_members(mcp_call *c, rt_json_writer *w, rt_str handle, rt_str name, rt_str type,
                          uint64_t size);
void mcp_base64(rt_buf *out, rt_str bytes);

/* -- The conformance fixture (mcp_fixture*.c)
 * -------------------------------------------------------- */

void mcp_fixture_resources(rt_json_writer *w); /* elements of lists */
void mcp_fixture_templates(rt_json_writer *w);
bool mcp_fixture_read(rt_str uri, rt_arena *arena,
                      rt_json_writer *w); /* false: not one of its own */

#endif
