/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.h - Retort over HTTP.
 *
 * Promise: what enters is measured before it is read: the address, the name in Host, the origin,
 * the key, the rate, the length. Without keys it listens to this machine only, and to no page of a
 * foreign site. Every answer has a request id, no error tells of the host's insides, and a client
 * that goes away takes its run with it. When the server stops, what it has begun is answered.
 *
 *     rt_server_config config = { .bind = RT_STR("127.0.0.1"), .port = 8002, .engine = engine,
 *                                 .store = store, .shelf = shelf, .telemetry = telemetry };
 *     rt_server *server RT_CLEANUP(rt_server_closep) = NULL;
 *     if (!rt_server_start(&config, &server, err))
 *         return rt_wrap(err, "the server");
 *     printf("http://127.0.0.1:%u\n", rt_server_port(server));
 *     wait_for_a_signal();
 *     rt_server_stop(server, drain_ms);    // no more connections; what runs may end
 *     rt_engine_stop(engine, 0);           // what still runs is cancelled, and answered
 *
 * operations.h has one row per operation: routes, /openapi.json and the list below come from it.
 */
#ifndef RT_SERVER_SERVER_H
#define RT_SERVER_SERVER_H

#include "agents/agents.h"
#include "base/base.h"
#include "engine/engine.h"
#include "skills/skills.h"
#include "store/store.h"
#include "telemetry/telemetry.h"
#include "tools/tools.h"

typedef struct rt_server rt_server;

typedef struct rt_server_config {
    rt_str bind;   /* "127.0.0.1", "::1", "0.0.0.0", "localhost"; empty: 127.0.0.1 */
    uint16_t port; /* 0: any that is free */
    const char *tls_certificate_file, *tls_key_file; /* both, or plain HTTP */

    unsigned max_connections;    /* 0: 1,000 */
    uint64_t max_body_bytes;     /* of one request, where the key has no limit; 0: 64 MiB */
    uint64_t body_budget_bytes;  /* of all requests being read; 0: 512 MiB */
    uint64_t request_timeout_ms; /* of silence, and of a whole request's way in; 0: 30,000 */
    uint64_t rate_per_minute;    /* where the key has none; 0: no limit */

    bool is_auth_required;         /* else `bind` must be of this machine */
    const rt_str *allowed_origins; /* "https://app.example.com": pages that may call */
    size_t allowed_origin_count;
    const rt_str *allowed_hosts; /* "retort.internal": more names for Host, without a port */
    size_t allowed_host_count;
    rt_str public_url; /* "https://retort.example.com", where clients reach it; may be empty */

    rt_str version;          /* empty: the program's */
    const char *docs_dir;    /* the API reference's files; NULL: "docs" beside the program */
    bool is_agent_api_off;   /* the feature flag of /api/agent: every call is refused with 503 */
    double budget_usd_month; /* of an organisation that has set none; 0: no limit */
    unsigned retention_days; /* what POST /v1/retention takes when it is told nothing; 0: 90 */

    rt_engine *engine; /* these outlive the server */
    rt_store *store;
    rt_shelf *shelf;
    rt_vault *vault;
    rt_cache *cache;
    rt_telemetry *telemetry;
    rt_tools *tools;      /* NULL: there are none */
    rt_skills *skills;    /* the same */
    rt_agents *agents;    /* code agents */
    rt_str mcp_agents;    /* over stdio, serve these agents alone ("adder,csv-profile"); or empty */
    bool has_mcp_fixture; /* what the MCP conformance suite looks for; never for real clients */
} rt_server_config;

/* The texts and lists of `config` are copied. */
bool rt_server_start(const rt_server_config *config, rt_server **out, rt_error *err);
uint16_t rt_server_port(const rt_server *server);
rt_str rt_server_url(const rt_server *server); /* public_url, or "http://127.0.0.1:8002" */

/* Accepts no more, and waits until what was begun is answered, at most drain_ms. True: nothing is
 * under way any more. */
bool rt_server_stop(rt_server *server, uint64_t drain_ms);
/* Cancels what is still under way, waits for it, and lets go of everything. Stop the engine before,
 * so that runs end at once. */
void rt_server_close(rt_server *server);
void rt_server_closep(rt_server **server);

/* One row per operation; NULL past the last. For --help and lists. */
typedef struct rt_server_operation {
    const char *method, *path, *id, *summary;
    rt_role role; /* that is needed when keys are */
} rt_server_operation;

bool rt_server_operation_at(size_t i, rt_server_operation *out);

/* The Model Context Protocol with one client on these descriptors, until `in` ends or `stop` (-1:
 * none) is readable. Of `config` counts what does not concern HTTP. Only messages go to `out`. */
bool rt_mcp_serve(const rt_server_config *config, int in, int out, int stop, rt_error *err);

/* The OpenAPI 3.1 document, without a running server. */
void rt_server_openapi(rt_str server_url, bool is_auth_required, rt_buf *out);

#endif
