/* SPDX-License-Identifier: Apache-2.0 */
/* server_internal.h - the server itself, as its files share it. */
#ifndef RT_SERVER_INTERNAL_H
#define RT_SERVER_INTERNAL_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "server/guard.h"
#include "server/http.h"
#include "server/jobs.h"
#include "server/mcp.h"
#include "server/operations.h"
#include "server/patience.h"
#include "server/rate.h"
#include "server/watch.h"

#define SERVER_CONNECTIONS_DEFAULT 1000
#define SERVER_BODY_DEFAULT        (64ull << 20)
#define SERVER_BUDGET_DEFAULT      (512ull << 20)
#define SERVER_TIMEOUT_DEFAULT_MS  30000
#define SERVER_RETENTION_DAYS      90
#define SERVER_RATE_KEYS           16384 /* callers whose rate is counted at once */

struct rt_server {
    rt_server_config config; /* its texts live in `arena` */
    rt_arena arena;
    struct MHD_Daemon *daemon;
    int listener; /* ours until the daemon has it, and again when it is told to stop */
    uint16_t port;
    rt_str url;
    rt_str banner; /* "retort/0.1.0" */
    guard_rules rules;
    guard_keyring *keyring;
    server_rate *rate;
    watch *watch;
    patience *patience;
    jobs *jobs;
    mcp *mcp;
    uint64_t started_ns;
    atomic_uint_fast64_t body_bytes; /* of requests that are being read or answered */
    atomic_bool is_stopping;
    pthread_mutex_t lock;
    pthread_cond_t is_idle;
    size_t active; /* requests under way; under `lock` */
};

/* What libmicrohttpd calls; in http.c. */
void server_on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what);
void *server_on_target(void *cls, const char *target, struct MHD_Connection *connection);
enum MHD_Result server_on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **context);
void server_on_completed(void *cls, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode why);

/* An error as the operation's clients expect it; in reply.c. */
void server_reply_error(http_request *r, http_reply *reply, const rt_error *err);
/* Hands the reply to libmicrohttpd, with the headers every answer has. */
enum MHD_Result server_reply_send(http_request *r, http_reply *reply, const char *trace);

/* The client's socket, for watch_begin(). */
int server_socket(const http_request *r);

/* Puts on record what a caller did that is no run; in api_admin.c. */
bool server_audit(http_request *r, const char *action, rt_str subject, rt_error *err);

#endif
