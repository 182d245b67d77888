/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.h - one request and its reply, with what is known of it on its way; entry.c and http.c.
 */
#ifndef RT_SERVER_EXCHANGE_H
#define RT_SERVER_EXCHANGE_H

#include "server/server_internal.h"

#define EXCHANGE_DISCARD_MAX (1ull << 20) /* of a body nobody wants, for the sake of the answer */

typedef struct exchange {
    http_request request; /* first: handlers see only this */
    http_reply reply;
    http_target target;
    rt_str raw_target;
    bool is_begun, is_decided, is_sent;
    rt_buf body;
    uint64_t body_max, discarded, counted; /* counted: in the server's budget */
    rt_key key;
    rt_span span;
    uint64_t start_ns;
} exchange;

/* Everything that can be decided at the headers. False: it is decided, and x->reply is to be made
 * of err, or is made already when err says nothing. */
bool exchange_enter(exchange *x, rt_error *err);

/* Whether the client announced a body, and how long it said it would be (0: it did not say). */
bool exchange_has_body(const http_request *r, uint64_t *length);

#endif
