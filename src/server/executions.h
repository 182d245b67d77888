/* SPDX-License-Identifier: Apache-2.0 */
/* executions.h - running code, for all surfaces of this room. */
#ifndef RT_SERVER_EXECUTIONS_H
#define RT_SERVER_EXECUTIONS_H

#include "agents/agents.h"
#include "server/http.h"
#include "server/watch.h"

/* The body is a run's request. Answers as POST /v1/executions does; `session_id` may be empty. */
bool executions_run(http_request *r, http_reply *reply, rt_str session_id, rt_error *err);

/* A client that waits: when it hangs up, the canceller is told. Only who has to wait is watched (an
 * answer from the cache is there at once), so attend() is for rt_request.on_work. */
typedef struct executions_attendance {
    http_request *request;
    rt_canceller canceller; /* .wake -1 until it is attended to */
    watch_entry entry;
} executions_attendance;

void executions_attend(void *attendance);
void executions_leave(executions_attendance *attendance);

/* Runs it, and cancels it when the client hangs up. */
bool executions_answer(http_request *r, rt_request *request, rt_answer *out, rt_error *err);

/* The same with a code agent. */
bool executions_agent(http_request *r, rt_agent_run *run, rt_agent_result *out, rt_error *err);

/* An artifact's row as JSON. */
void artifacts_write(const rt_artifact_row *row, rt_json_writer *w);

#endif
