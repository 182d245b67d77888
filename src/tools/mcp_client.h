/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_client.h - one configured server: what its three files share.
 *
 * mcp_minder.c makes and ends sessions and looks after them, mcp_client.c lets callers into them,
 * and mcp_provider.c is what the registry sees.
 *
 * The lock guards what is between its line and the next. It is held for moments, never for
 * messages.
 */
#ifndef RT_TOOLS_MCP_CLIENT_H
#define RT_TOOLS_MCP_CLIENT_H

#include "tools/mcp_internal.h"

enum { MCP_CHECK_INTERVAL_MS = 5 * 60 * 1000, MCP_DEGRADED_MS = 1000 };

typedef struct mcp_waiter {
    int wake;
    bool is_served; /* there is a session, or a reason why not */
    rt_error why;
    struct mcp_waiter *next;
} mcp_waiter;

struct mcp_client {
    rt_provider provider; /* first: the registry knows us by it */
    rt_arena arena;
    rt_mcp_config config;
    mcp_limiter *limiter; /* NULL: no limit */
    mcp_oauth *oauth;     /* NULL: none */
    pthread_t minder;
    mcp_verdict verdict; /* the minder's */

    int close_fd; /* readable: we are closing */

    pthread_mutex_t lock; /* for what follows, up to the next line */
    pthread_cond_t stir;  /* the minder */
    pthread_cond_t empty; /* nobody is inside any more */
    unsigned inside;      /* callers, whatever they wait for */
    bool has_minder, is_closing, is_connecting;
    mcp_session *session, *dead;
    mcp_link *opening; /* of the session that is being made */
    mcp_waiter *waiting;
    uint64_t retry_at_ns, check_at_ns, change_at_ns, changed_ns; /* 0: not */
    unsigned failures;                                           /* to connect, in a row */
    rt_error why;                                                /* the last one's reason */
    bool is_known, is_down;
    uint64_t latency_ns, checked_at_ms;
    uint64_t session_count, call_count, error_count, tool_count, skipped_count, broken_count;
    char server_name[MCP_SHOWN_SIZE], server_version[MCP_SHOWN_SIZE], protocol[16];

    pthread_mutex_t mirror_lock; /* for what follows */
    rt_arena mirror_arena;
    mcp_tool_list mirrors; /* of the newest list */
    bool has_mirrors;
};

/* -- The minder (mcp_minder.c) ----------------------------------------------------------------- */

/* Under the lock, all three. */
bool mcp_minder_ensure(mcp_client *c, rt_error *err);
void mcp_minder_serve(mcp_client *c,
                      const rt_error *why); /* those who wait; NULL: with a session */
void mcp_minder_drop(mcp_client *c);        /* the session */

/* -- Callers (mcp_client.c) -------------------------------------------------------------------- */

/*
 * Do it in a session; a second time when the first one was over before it had heard of us, and when
 * `again` says so.
 */
typedef struct mcp_errand {
    bool (*run)(mcp_session *s, mcp_patience *p, struct mcp_errand *e, rt_error *err);
    bool (*again)(mcp_client *c, const mcp_patience *p, struct mcp_errand *e);
    rt_arena *arena;
    const rt_tool_call *call; /* what of these is needed */
    rt_str name, method, params;
    rt_tool_result *result;
    rt_tool **tools;
    size_t *count;
    rt_str *answer;
} mcp_errand;

bool mcp_client_run(mcp_client *c, mcp_errand *e, mcp_patience *p, rt_error *err);
mcp_patience mcp_client_patience(const mcp_client *c, const rt_tool_call *call);
bool mcp_client_wrap(const mcp_client *c, rt_error *err); /* with the server's name */

/* Whoever is inside is waited for before the client goes away. */
void mcp_client_come_in(mcp_client *c);
void mcp_client_go_out(mcp_client *c);

#endif
