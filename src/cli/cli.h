/*
 * cli.h - the command `retort`: arguments in, exit status out.
 *
 * One row per command in main.c. A command gets its own arguments and returns the program's exit
 * status: 0 good, 1 the thing asked for failed, 2 the command line makes no sense, 3 this host
 * cannot do it. `retort run` ends with the code's own status (124: time, 137: memory).
 */
#ifndef RETORT_CLI_H
#define RETORT_CLI_H

#include "base/base.h"
#include "runtimes/runtimes.h"

enum { EXIT_GOOD = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_HOST = 3 };

int cli_run(int argc, char **argv);
int cli_serve(int argc, char **argv);
int cli_mcp(int argc, char **argv);
int cli_keys(int argc, char **argv);
int cli_tools(int argc, char **argv);
int cli_skills(int argc, char **argv);
int cli_agents(int argc, char **argv);
int cli_migrate(int argc, char **argv);
int cli_audit(int argc, char **argv);
int cli_users(int argc, char **argv);
int cli_retention(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_languages(int argc, char **argv);
int cli_validate(int argc, char **argv);
int cli_policies(int argc, char **argv);
int cli_config(int argc, char **argv);
int cli_privacy(int argc, char **argv);
int cli_schema(int argc, char **argv);
int cli_models(int argc, char **argv);

/* "retort: text" on stderr, and the status that fits the error. */
int cli_complain(const rt_error *err);

/* The value of an option given as "--name value" or "--name=value"; moves *i on. NULL: not this
 * one. */
const char *cli_option(int argc, char **argv, int *i, const char *name, rt_error *err);

/* Settings of the local runtime that come from the environment (RETORT_PYTHON, RETORT_NODE …). */
void cli_local_config(rt_local_config *config);

#endif
