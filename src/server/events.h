/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.h - what a run says while it runs, as text/event-stream.
 *
 * Each event has its number as id, so that a client that lost its connection goes on where it was
 * (Last-Event-ID). When nothing happens a comment is sent now and then, so that nobody in between
 * thinks the line dead.
 */
#ifndef RT_SERVER_EVENTS_H
#define RT_SERVER_EVENTS_H

#include "server/http.h"
#include "server/jobs.h"

#define EVENTS_HEARTBEAT_MS 10000

/* Takes over a share of the job. With is_owner, the run ends when the client goes away. */
void events_reply(http_request *r, http_reply *reply, job_hold *hold, bool is_owner);

/* One event as it is sent. */
void events_format(rt_buf *out, const char *event, rt_str json, size_t id);

#endif
