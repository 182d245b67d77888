/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_internal.h - what the mcp_*.c files share.
 *
 *     mcp_client     one configured server: connects when needed, health, limits    mcp_client.h
 *     mcp_session    a peer with whom the revision is agreed: requests, tools       mcp_session.c
 *     mcp_link       messages there and back: a process, or an HTTP endpoint  mcp_stdio.c,
 * mcp_http.c
 *
 * A link carries messages and knows nothing of what they mean. A session belongs to one link and
 * dies with it. The client outlives both: it has the one thread (the minder) that makes and ends
 * sessions, checks on them, and tells the registry that tools have changed.
 */
#ifndef RT_TOOLS_MCP_INTERNAL_H
#define RT_TOOLS_MCP_INTERNAL_H

#include "tools/mcp.h"
#include "tools/mcp_message.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/types.h>

#define MCP_MESSAGE_MAX ((size_t)64 << 20) /* bytes of one message, either way */
#define MCP_SHOWN_SIZE  128
#define MCP_RATE_MAX    10000
#define MCP_MS          UINT64_C(1000000) /* ns */
#define MCP_SECOND      UINT64_C(1000000000)

/* -- Small things (mcp_show.c, mcp_config.c) --------------------------------------------------- */

/* Text from outside as it may stand in an error: one line, no controls, not long. Returns `out`. */
const char *mcp_show(rt_str raw, char out[MCP_SHOWN_SIZE]);

const char *mcp_environ_get(const char *const *environ, rt_str name); /* NULL: not set */
bool mcp_name_check(rt_str name, rt_error *err);
bool mcp_config_check(const rt_mcp_config *config, rt_error *err);

/* Wait until one of the descriptors (-1: none) is readable, or that moment has come. */
typedef enum mcp_woken { MCP_WOKEN_BY_TIME, MCP_WOKEN_BY_FIRST, MCP_WOKEN_BY_SECOND } mcp_woken;
mcp_woken mcp_wait(int first, int second, uint64_t until_ns);

int mcp_poll_ms(uint64_t until_ns); /* for poll(): rounded up, never past 10 s */
void mcp_wake(int event_fd);
void mcp_calm(int event_fd); /* takes back what mcp_wake() did */

/* -- Links ------------------------------------------------------------------------------------- */

typedef struct mcp_link mcp_link;
typedef struct mcp_oauth mcp_oauth;

/* An answer; owns its text, into which the message points. */
typedef struct mcp_reply {
    rt_buf text;
    rt_mcp_message message;
    int http_status; /* 0: not over HTTP */
} mcp_reply;

static inline void mcp_reply_done(mcp_reply *reply)
{
    rt_buf_done(&reply->text);
}

/* One request: what is sent, and how long we wait for the answer. */
typedef struct mcp_ask {
    uint64_t id; /* also its progress token */
    rt_str method, body;
    rt_str name;                /* for the Mcp-Name header; empty: none */
    const char *const *headers; /* more lines for HTTP, ends with NULL; may be NULL */
    uint64_t deadline_ns;
    uint64_t idle_ns, latest_ns; /* progress moves the deadline by idle_ns, up to latest_ns */
    int cancel_fd;
    bool is_not_cancellable; /* initialize */
    void (*on_progress)(void *ctx, double done, double total, rt_str message);
    void *progress_ctx;
    bool was_sent;   /* out: it may have had an effect */
    bool is_expired; /* out: the server has forgotten our session; it had none */
} mcp_ask;

void mcp_ask_extend(mcp_ask *ask); /* there was progress */

/* Who a link tells what it was not asked for. Called from any thread; must not wait. */
typedef struct mcp_ears {
    void (*news)(void *ctx, const rt_mcp_message *notification);
    /* Writes the response. False: that takes time (may_wait was false), ask again when you have it.
     */
    bool (*answer)(void *ctx, const rt_mcp_message *request, bool may_wait, rt_buf *out);
    void (*lost)(void *ctx); /* the link is dead */
    void *ctx;
} mcp_ears;

typedef struct mcp_link_kind {
    const char *name;
    bool (*ask)(mcp_link *link, mcp_ask *ask, mcp_reply *reply, rt_error *err);
    bool (*tell)(mcp_link *link, rt_str method, rt_str body, uint64_t deadline_ns, rt_error *err);
    /* From now on, this revision; NULL: not yet agreed on. */
    void (*settle)(mcp_link *link, const rt_mcp_version *version);
    /* Hear what comes unasked: with this request (modern), or without one. */
    void (*listen)(mcp_link *link, rt_str request);
    bool (*is_outage)(int http_status); /* says nothing about the era; NULL: there are none */
    void (*shut)(mcp_link *link);       /* whoever waits is told; any thread */
    void (*close)(mcp_link *link, bool is_patient); /* nobody may be in it */
} mcp_link_kind;

struct mcp_link {
    const mcp_link_kind *kind;
    const rt_mcp_config *config;
    mcp_ears ears;
    _Atomic bool is_dead;
    _Atomic uint64_t broken_count; /* messages that were none */
};

bool mcp_stdio_open(const rt_mcp_config *config, const mcp_ears *ears, mcp_link **out,
                    rt_error *err);
bool mcp_http_open(const rt_mcp_config *config, mcp_oauth *oauth, const mcp_ears *ears,
                   mcp_link **out, rt_error *err); /* oauth: borrowed; may be NULL */
bool mcp_http_old_open(const rt_mcp_config *config, const mcp_ears *ears, mcp_link **out,
                       rt_error *err);

/* progressToken's number, and the rest of a progress notification; false: it is none. */
typedef struct mcp_progress {
    uint64_t token;
    double done, total; /* total 0: not known */
    char message[240];
} mcp_progress;

bool mcp_progress_read(const rt_mcp_message *notification, mcp_progress *out);

/* How much may come unasked before it is a flood. */
typedef struct mcp_flood {
    uint64_t since_ns;
    double messages, bytes; /* left */
} mcp_flood;

bool mcp_flood_allows(mcp_flood *flood, uint64_t now_ns, size_t bytes);

/* -- Inboxes (mcp_inbox.c) --------------------------------------------------------------------- */

enum { MCP_ERRANDS_MAX = 16, MCP_PROGRESS_KEPT = 16 };
#define MCP_TELL_NS (10 * MCP_SECOND) /* for a message that nobody waits for the answer to */

typedef struct mcp_pending {
    uint64_t id;
    int wake;
    mcp_reply *reply;
    bool is_answered, is_broken;
    mcp_progress progress[MCP_PROGRESS_KEPT]; /* a ring: of too many, the oldest go */
    size_t progress_first, progress_count;
    struct mcp_pending *next;
} mcp_pending;

typedef struct mcp_inbox {
    mcp_link *link;
    mcp_flood flood;      /* of the thread that hears */
    pthread_mutex_t lock; /* for what follows; no other lock is taken inside it */
    mcp_pending *waiting;
    rt_buf errands[MCP_ERRANDS_MAX]; /* requests of the server, as they came */
    size_t errand_count;
    rt_error why; /* the link is dead */
} mcp_inbox;

void mcp_inbox_init(mcp_inbox *box, mcp_link *link);
void mcp_inbox_done(mcp_inbox *box);

/* A message or a batch; `whole` is the buffer that holds it, which may be taken, or NULL. False:
 * dead. */
bool mcp_inbox_hear(mcp_inbox *box, rt_str text, rt_buf *whole);
/* The link is dead, and whoever waits is told why. Returns false. */
bool mcp_inbox_die(mcp_inbox *box, rt_code code, const char *why);

/* Begin before it is sent, then wait, and end in any case. False: the link is dead; it did not
 * begin. */
bool mcp_inbox_begin(mcp_inbox *box, mcp_pending *p, uint64_t id, mcp_reply *reply, rt_error *err);
bool mcp_inbox_await(mcp_inbox *box, mcp_pending *p, mcp_ask *ask, rt_error *err);
void mcp_inbox_end(mcp_inbox *box, mcp_pending *p);

void mcp_put_cancelled(rt_buf *out, uint64_t id); /* notifications/cancelled */

/* -- Processes (mcp_process.c) ----------------------------------------------------------------- */

typedef struct mcp_process {
    pid_t pid; /* of the leader of its group; 0: none */
    int pidfd;
    int in, out, errors; /* our ends; they do not block */
} mcp_process;

/* The thread that starts it must live as long: the kernel ends the process with it. */
bool mcp_process_start(const rt_mcp_config *config, mcp_process *out, rt_error *err);
/* Patient: closes its input, waits, asks, waits, kills. Else kills. All of the group, and reaps. */
void mcp_process_stop(mcp_process *process, bool is_patient);
/* "it ended with status 3"; waits a moment for the end that a closed pipe announces. */
void mcp_process_epitaph(const mcp_process *process, char *out, size_t size);

/* -- Server-sent events (mcp_sse.c) ------------------------------------------------------------ */

typedef struct mcp_sse {
    rt_buf line, data;
    char event[32];
    char id[256];      /* the last event's that had one */
    uint64_t retry_ms; /* 0: not said */
    bool is_in_data, has_data, was_cr, is_over_limit;
    /* One event: its data, which may be taken. False: stop. */
    bool (*on_event)(void *ctx, const char *event, rt_buf *data);
    void *ctx;
} mcp_sse;

/* False: the receiver wants no more, or a line was too long. */
bool mcp_sse_feed(mcp_sse *sse, rt_str bytes);
void mcp_sse_reset(mcp_sse *sse); /* before each stream; keeps the id and the retry */
void mcp_sse_done(mcp_sse *sse);

/* -- Sessions ---------------------------------------------------------------------------------- */

typedef struct mcp_client mcp_client;

typedef struct mcp_session {
    mcp_client *client;
    mcp_link *link;
    const rt_mcp_version *version;
    _Atomic uint64_t next_id;
    bool has_tools, tools_change;
    bool is_old_http;   /* its url speaks the transport of 2024 */
    int refused_status; /* what initialize was answered over HTTP, when it failed */
    char server_name[MCP_SHOWN_SIZE], server_version[MCP_SHOWN_SIZE];
    unsigned users; /* under the client's lock, as are the next */
    bool has_worked, is_patient;
    struct mcp_session *next_dead;
} mcp_session;

/* What a request may take. */
typedef struct mcp_patience {
    uint64_t deadline_ns, idle_ns, latest_ns;
    int cancel_fd;
    void (*on_progress)(void *ctx, double done, double total, rt_str message);
    void *progress_ctx;
    rt_str traceparent;
    bool was_sent, is_expired; /* out */
    int64_t rpc_code;          /* out: of an error response, else 0 */
} mcp_patience;

bool mcp_session_open(mcp_client *client, uint64_t deadline_ns, mcp_session **out, rt_error *err);
void mcp_session_close(mcp_session *session, bool is_patient);

typedef struct mcp_request {
    rt_str method;
    rt_str members; /* of its params beside _meta, as JSON: "" or "a":1,"b":2 */
    rt_str name;    /* what Mcp-Name says */
    const char *const *headers;
} mcp_request;

/* The result, a JSON object in the arena; its text is in the reply, which the caller ends. */
bool mcp_session_request(mcp_session *s, const mcp_request *request, mcp_patience *patience,
                         mcp_reply *reply, rt_arena *arena, rt_json *result, rt_error *err);
bool mcp_session_ping(mcp_session *s, mcp_patience *patience, rt_error *err);

/* -- Tools (mcp_tools.c) ----------------------------------------------------------------------- */

/* Arguments a modern HTTP server wants as headers too: x-mcp-header in the input schema. */
typedef struct mcp_mirror {
    rt_str header;      /* "Mcp-Param-Region" */
    const rt_str *path; /* of property names */
    size_t depth;
    struct mcp_mirror *next;
} mcp_mirror;

typedef struct mcp_tool_list {
    rt_tool *tools;
    mcp_mirror **mirrors; /* of each tool; NULL: none */
    size_t count, skipped;
} mcp_tool_list;

bool mcp_tools_list(mcp_session *s, mcp_patience *patience, rt_arena *arena, mcp_tool_list *out,
                    rt_error *err);

/* Header lines for the arguments, ends with NULL. False: the arguments are no JSON. */
bool mcp_mirror_lines(const mcp_mirror *mirror, rt_str arguments, rt_arena *arena,
                      const char *const **out, rt_error *err);

/* The result of tools/call. `text` is that of the reply, which `result` was parsed from. */
void mcp_result_read(rt_str text, rt_json result, rt_arena *arena, rt_tool_result *out);

/* -- Limits (mcp_limiter.c) -------------------------------------------------------------------- */

typedef struct mcp_limiter mcp_limiter;

mcp_limiter *mcp_limiter_new(unsigned per_second);
void mcp_limiter_free(mcp_limiter *limiter);
/* When this call may begin, which is taken; 0: not before the deadline, and nothing is taken. */
uint64_t mcp_limiter_take(mcp_limiter *limiter, rt_str tool, uint64_t now_ns, uint64_t deadline_ns);

/* -- The client -------------------------------------------------------------------------------- */

const rt_mcp_config *mcp_client_config(const mcp_client *client);
mcp_oauth *mcp_client_oauth(mcp_client *client); /* NULL: none */
/* For a session: the server's tools have changed; its link is dead. */
void mcp_client_changed(mcp_client *client);
void mcp_client_lost(mcp_client *client, const mcp_session *session);
/* The link of the session that is being made, NULL: none. False: there is no need for one any more.
 */
bool mcp_client_opening(mcp_client *client, mcp_link *link);
/* What was found out about the server's era, kept between sessions. */
typedef struct mcp_verdict {
    bool is_legacy;
    uint64_t at_ns;
} mcp_verdict;
mcp_verdict *mcp_client_verdict(mcp_client *client); /* the minder's alone */

/* -- HTTP exchanges (mcp_fetch.c) -------------------------------------------------------------- */

typedef struct mcp_fetcher mcp_fetcher; /* keeps connections for the next exchange; any thread */

typedef enum mcp_fetch_end {
    MCP_FETCH_DONE,
    MCP_FETCH_CANCELLED,
    MCP_FETCH_TIMEOUT,
    MCP_FETCH_SHUT,
    MCP_FETCH_FAILED,
} mcp_fetch_end;

typedef struct mcp_fetch {
    const char *verb, *url; /* "GET", "POST", "DELETE" */
    rt_str body;            /* of a POST */
    bool is_login;          /* it holds our credentials, for who gave them; else a tool's call */
    const char *const *headers;
    size_t header_count;
    const uint64_t *deadline_ns; /* looked at again and again */
    int cancel_fd;
    /* Bytes of the body. False: enough; the rest is waited for a moment only. */
    bool (*on_bytes)(void *ctx, const struct mcp_fetch *fetch, rt_str bytes);
    void (*on_answer)(void *ctx); /* its headers are here; may be NULL */
    void *ctx;
    /* Out. Header values are empty when there is none, or it is too long. */
    long status;
    bool was_connected;
    char content_type[128], session_id[256], challenge[2048], location[2048];
    char error[256];
} mcp_fetch;

/* Header lines; too many are left out. */
typedef struct mcp_lines {
    const char *items[128];
    size_t count;
} mcp_lines;

void mcp_lines_add(mcp_lines *lines, const char *line);
void mcp_lines_add_configured(mcp_lines *lines, const rt_mcp_config *config, rt_arena *arena);

mcp_fetcher *mcp_fetcher_new(int shut_fd); /* readable: all exchanges end */
void mcp_fetcher_free(mcp_fetcher *fetcher);
mcp_fetch_end mcp_fetch_run(mcp_fetcher *fetcher, mcp_fetch *fetch);

/* The whole body, up to `max`, of an exchange that has no on_bytes. */
bool mcp_fetch_body(mcp_fetcher *fetcher, mcp_fetch *fetch, size_t max, rt_buf *body,
                    rt_error *err);
bool mcp_fetch_failed(mcp_fetch_end end, const mcp_fetch *fetch,
                      rt_error *err); /* false, with why */
bool mcp_same_origin(const char *a, const char *b);
/* A URL that may be relative, seen from `base`; NULL: it is none. Into the arena. */
const char *mcp_url_join(const char *base, const char *url, rt_arena *arena);

/* -- OAuth (mcp_oauth.c) ----------------------------------------------------------------------- */

mcp_oauth *mcp_oauth_new(const rt_mcp_config *config);
void mcp_oauth_free(mcp_oauth *oauth);
/* The token there is, into the arena; "" when there is none. */
rt_str mcp_oauth_token(mcp_oauth *oauth, rt_arena *arena);
/*
 * The server has refused `used` with this status and challenge: get a token that it may like
 * better. False: there is none to be had.
 */
bool mcp_oauth_react(mcp_oauth *oauth, mcp_fetcher *fetcher, long status, const char *challenge,
                     rt_str used, uint64_t deadline_ns, rt_error *err);

#endif
