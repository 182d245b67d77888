/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.h - notices when a client hangs up while its request is still being worked on.
 *
 *     watch_begin(server->watch, &mine, socket, cancel_it, canceller);
 *     rt_engine_execute(…);
 *     watch_end(server->watch, &mine);      // after this cancel_it is not called any more
 *
 * One thread waits for all sockets. The connection's own thread is inside the handler meanwhile
 * and reads nothing.
 */
#ifndef RT_SERVER_WATCH_H
#define RT_SERVER_WATCH_H

#include "base/base.h"

typedef struct watch watch;
typedef void (*watch_gone_fn)(void *ctx); /* must not block */

typedef struct watch_entry {
    struct watch_entry *next, *previous;
    int socket;
    uint64_t number;
    watch_gone_fn gone;
    void *ctx;
    bool is_watched;
} watch_entry;

bool watch_open(watch **out, rt_error *err);
void watch_close(watch *w);

void watch_begin(watch *w, watch_entry *entry, int socket, watch_gone_fn gone, void *ctx);
void watch_end(watch *w, watch_entry *entry); /* nothing, when it was not begun */

/* As if every client had hung up, those to come too; for a server that stops. */
void watch_all_gone(watch *w);

#endif
