/* SPDX-License-Identifier: Apache-2.0 */
/* agent.h - what the operations under /api/agent share. */
#ifndef RT_SERVER_AGENT_H
#define RT_SERVER_AGENT_H

#include "server/http.h"

/* {"success":false,"error":…,"message":…}; returns true: it is answered. */
bool agent_refuse(http_reply *reply, unsigned status, const char *error, rt_str message);

/* The feature flag is off; the reply says so. */
bool agent_is_off(http_request *r, http_reply *reply);

/* The body as an object; false: the reply says what is wrong with it. */
bool agent_body(http_request *r, http_reply *reply, rt_json *out);

/* A short text, or nothing; false when it is something else. */
bool agent_label(rt_json body, const char *name, rt_str *out);

/* Seconds of an answer's run, to the microsecond. */
double agent_seconds(rt_json answer);

#endif
