/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patience.h - hangs up on clients that take too long to say what they want.
 *
 * A connection costs a thread. libmicrohttpd ends one that is silent, but a byte now and then keeps
 * it alive for ever; so from its beginning, and from the end of each request, the headers of the
 * next must be whole within a time.
 *
 *     patience_new_client(p, &client, socket);   // a connection begins
 *     patience_heard(p, &client);                // its request's headers are whole
 *     patience_waits(p, &client);                // it was answered: the next may come
 *     patience_end_client(p, &client);           // before the socket is closed
 */
#ifndef RT_SERVER_PATIENCE_H
#define RT_SERVER_PATIENCE_H

#include "base/base.h"

typedef struct patience patience;

typedef struct patience_client {
    struct patience_client *next, *previous;
    int socket;
    uint64_t since_ns; /* 0: it was heard */
} patience_client;

bool patience_open(uint64_t max_ms, patience **out, rt_error *err);
void patience_close(patience *p);

void patience_new_client(patience *p, patience_client *client, int socket);
void patience_heard(patience *p, patience_client *client);
void patience_waits(patience *p, patience_client *client);
void patience_end_client(patience *p, patience_client *client);

#endif
