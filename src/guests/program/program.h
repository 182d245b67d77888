/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.h - what guests share that run a program as their child: bash and everything launched.
 *
 * Promise: the program finds its input on stdin, in $INPUT and in INPUT_<key>; what it writes to
 * its result file is the answer; how it ended is told in the frame that every guest owes.
 *
 *     program_run r = PROGRAM_RUN_NONE;
 *     if (program_begin(&r, &frame, &err) && … && program_take_input(&r, &frame, &err))
 *         status = …;
 *     code = program_report(control, &r, "the script", status);
 *     program_end(&r);
 */
#ifndef RETORT_GUESTS_PROGRAM_H
#define RETORT_GUESTS_PROGRAM_H

#include "base/base.h"
#include "guests/jail/jail.h"
#include "guests/program/relay.h"

#define PROGRAM_RESULT_FD 9
#define PROGRAM_ENV_MAX   (100u << 10) /* the kernel takes 128 KiB a variable */
#define PROGRAM_FD_FIRST  20           /* above those that programs get by number */

typedef struct program_run {
    rt_arena arena;
    rt_json request;
    int64_t id;
    int input;  /* memory file with the input, or -1 */
    int result; /* memory file for the answer */
    int in;     /* in a session: stdin of this run, or -1 */
    bool keeps;
    bool has_tools;
    relay relay; /* for retort-tool */
} program_run;

#define PROGRAM_RUN_NONE                                                                           \
    {                                                                                              \
        .input = -1, .result = -1, .in = -1, .relay = {.near = -1, .far = -1 }                     \
    }

/* Reads the order, lays on its limits (once) and clears the environment. */
bool program_begin(program_run *r, int control, const jail_frame *frame, rt_error *err);
/* An answer to a call of a run that has ended since; not an order. */
bool program_is_late_answer(const jail_frame *frame);
/* What every cell has in its environment, unless it is there already; then the request's own. */
void program_set_environment(program_run *r, const char *path);
bool program_take_input(program_run *r, const jail_frame *frame, rt_error *err);
void program_end(program_run *r);

/* In the child, before exec: stdin, and at their numbers the result file and the relay. */
bool program_settle(const program_run *r);

/* The frame about how it ended; returns the status to end with. */
int program_report(int control, program_run *r, const char *what, int wait_status);
void program_report_error(int control, int64_t id, const char *type, const char *name,
                          rt_str message, int status);

uint64_t program_number(rt_json object, const char *key); /* 0: none */
bool program_is_variable(rt_str key);
void program_set_variable(rt_arena *arena, const char *name, rt_str value);
bool program_write_file(const char *path, rt_str text, rt_error *err);
int program_memory_file(const char *name, rt_str text, rt_error *err); /* -1: see err */
bool program_read_file(int fd, size_t max, rt_arena *arena, rt_str *out, rt_error *err);

/* Runs become() in a child of its own and waits; in a session an interrupt reaches all it started.
 */
bool program_run_child(program_run *r, void (*become)(void *ctx), void *ctx, int *wait_status,
                       rt_error *err);
void program_take_interrupts(void);
/* The two halves of it, for a child that runs already and leads a group of its own. */
void program_watch_child(const program_run *r, pid_t pid);
bool program_wait_child(program_run *r, pid_t pid, int *wait_status, rt_error *err);

#endif
