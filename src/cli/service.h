/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service.h - what runs code for clients, whichever way they come: `retort serve` and `retort mcp`.
 */
#ifndef RETORT_CLI_SERVICE_H
#define RETORT_CLI_SERVICE_H

#include <signal.h>

#include "cli/house.h"
#include "engine/engine.h"
#include "server/server.h"
#include "skills/skills.h"
#include "telemetry/telemetry.h"

typedef struct cli_service {
    cli_house house;
    rt_runtime *runtime;
    rt_cache *cache;
    rt_telemetry *telemetry;
    rt_engine *engine;
    rt_tools *tools;
    rt_skills *skills;
    rt_models *models;
    rt_agents *agents;
    rt_server *server; /* of `retort serve` */
    rt_policy base_policy, ceiling;
    uint64_t swept_ms, retained_ms;
    bool has_mcp_fixture;
    rt_str mcp_agents;  /* that `retort mcp` serves instead of everything; or empty */
    bool wants_samples; /* unless the settings say no */
    bool is_guarded;    /* keys are asked for */
} cli_service;

/* The skills of a house: the built-in ones, those of the settings and of the data directory. The
 * service's engine may be missing for those who only look. (skills.c) */
bool cli_skills_open(cli_service *s, rt_error *err);

/* Everything up to the engine, for a house that was read and locked. From then on the signals that
 * end a program wait to be taken. */
bool cli_service_open(cli_service *s, sigset_t *signals, rt_error *err);
void cli_service_close(cli_service *s);

/* What the server's config has of it; the rest is for HTTP. */
void cli_service_lend(const cli_service *s, rt_server_config *config);

/* Takes an option that is no setting, with its value, out of argv; NULL: it is not there. */
const char *cli_service_option(int *argc, char **argv, const char *name, rt_error *err);
/* Takes a flag that is no setting out of argv. */
bool cli_service_flag(int *argc, char **argv, const char *flag);

#endif
