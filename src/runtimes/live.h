/*
 * live.h - sessions: a cell that stays, with its variables, imports and files.
 *
 * Promise: what one run in a session defines, the next one sees. A branch is a copy of the live
 * interpreter and its files, made in milliseconds and shared copy-on-write; from then on neither
 * can see what the other does. What cannot be copied (threads, open sockets) is refused with a
 * message that names it, never lost silently. When a session is closed nothing of it stays.
 *
 *     rt_live *live RT_CLEANUP(rt_live_closep) = NULL;
 *     if (!rt_live_open(local, &(rt_live_spec){ .language = RT_STR("python"), .policy = policy },
 *                       &live, err))
 *         return false;
 *     rt_run run = { .language = RT_STR("python"), .code = RT_STR("x = 41"), .policy = policy,
 *                    .live = live };
 *     local->execute(local, &run, &arena, &outcome, err);
 *     rt_live_branch(live, &what_if, err);
 *
 * Each run in a session has its own time limits (run.policy); the limits of memory, processes and
 * scratch are the session's, from when it was opened. A run that exceeds its time is interrupted,
 * and if that does not help, or the interpreter died, the session has ended: rt_live_is_alive()
 * says so, and its files can no longer be read. One run at a time: a second one waits its turn.
 * Between runs everything in the cell stands still and uses no CPU time. A session, and so a
 * branch, takes one of the runtime's cells; when no more can be had for sessions: RT_TOO_MANY.
 * Any thread may call, but none after rt_live_close(); close sessions before their runtime.
 */
#ifndef RETORT_RUNTIMES_LIVE_H
#define RETORT_RUNTIMES_LIVE_H

#include "runtimes/runtimes.h"

typedef struct rt_live rt_live;

typedef struct rt_live_spec {
    rt_str language;
    const rt_policy *policy; /* copied */
} rt_live_spec;

bool rt_live_open(rt_runtime *local, const rt_live_spec *spec, rt_live **out, rt_error *err);
void rt_live_close(rt_live *live); /* ends a run that is under way */
void rt_live_closep(rt_live **live);
bool rt_live_is_alive(rt_live *live);

/* RT_CONFLICT, naming them, when there are threads or sockets; RT_CONFLICT too while a run is under
 * way; RT_UNSUPPORTED for a language that keeps no interpreter (bash). A branch outlives its source
 * and can be branched itself. */
bool rt_live_branch(rt_live *live, rt_live **out, rt_error *err);

/* -- Files of the scratch directory; paths are relative to it and cannot leave it, whatever links
 *    the code made ---------------------------------------------------------------------------- */

#define RT_LIVE_FILES_MAX RT_CELL_FILES_MAX /* in one listing */

typedef rt_cell_file rt_live_file; /* { rt_str path; uint64_t size, modified_ms; is_directory } */

/* Directories on the way are made. Owned by the cell's user, so that code can change it. */
bool rt_live_write(rt_live *live, rt_str path, rt_str data, rt_error *err);
/* Opened for reading; the caller closes it. RT_NOT_FOUND; RT_INVALID for a directory. */
bool rt_live_read(rt_live *live, rt_str path, int *fd, uint64_t *size, rt_error *err);
/* Everything below `path` ("" for all) in the order of names; links are not followed or listed. */
bool rt_live_list(rt_live *live, rt_str path, rt_arena *arena, rt_live_file **files, size_t *count,
                  rt_error *err);
bool rt_live_remove(rt_live *live, rt_str path, rt_error *err); /* directories with all in them */

#endif
