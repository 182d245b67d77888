/*
 * remote.h - system calls in another process, by ptrace.
 *
 * Promise: the process makes exactly the calls it is told to make. Its memory may be anybody's,
 * even hostile code's: each call is looked at in the kernel's own words when it enters, and a
 * process that is about to make another one is killed before the call does anything.
 *
 *     remote r;
 *     long fd;
 *     if (!sandbox_remote_catch(pid, &r, err) ||
 *         !sandbox_remote_call(&r, &fd, err, SYS_pidfd_open, init, 0))
 *         return false;
 *
 * A single call costs two stops. For many, a room is made in the process: memory of ours with a few
 * instructions that go through a list of calls. That is as safe while nobody else runs in that
 * memory, which the caller knows: it is a fresh copy whose only processes are stopped, or run the
 * list.
 *
 * The caller is the only thread of its process, and stays its tracer: if it ends, so does the
 * traced.
 */
#ifndef RETORT_SANDBOX_REMOTE_H
#define RETORT_SANDBOX_REMOTE_H

#include <sys/types.h>
#include <sys/user.h>

#include "base/base.h"

typedef struct remote {
    pid_t pid;
    struct user_regs_struct regs; /* as it was caught */
    char floats[1024];
    size_t float_bytes;
    pid_t child; /* the last one it cloned: traced too, and stopped */
} remote;

/* Whatever takes longer than this from now on fails; 0: no more hurry. */
void sandbox_remote_hurry(unsigned seconds);

/*
 * Stops a process that waits in jail_park(). One that is on its way there is waited for;
 * RT_CONFLICT when it does not come.
 */
bool sandbox_remote_catch(pid_t pid, remote *out, rt_error *err);
/* One that was caught before, and was not let go since its last call. */
bool sandbox_remote_hold(pid_t pid, remote *out, rt_error *err);
/* The child of one that was caught; it stands where its parent did. */
bool sandbox_remote_adopt(const remote *parent, remote *out, rt_error *err);

/* A negative result is an errno, and no failure of ours. */
bool sandbox_remote_call_args(remote *r, long *result, rt_error *err, long nr, const long args[6]);
#define sandbox_remote_call(r, result, err, nr, ...)                                               \
    sandbox_remote_call_args((r), (result), (err), (nr), (const long[6]){ __VA_ARGS__ })
bool sandbox_remote_write(const remote *r, long address, const void *data, size_t size,
                          rt_error *err);

#define REMOTE_ROOM_BYTES 65536
#define REMOTE_ROOM_FREE  16384 /* from here on it is the caller's */

/* One line of a list. */
typedef struct remote_line {
    long nr, args[6];
    long result;
    long may_fail; /* else a negative result is the end of the list */
    const char *what;
} remote_line;

bool sandbox_remote_room(remote *r, long *room, rt_error *err);
bool sandbox_remote_run(remote *r, long room, remote_line *lines, size_t count, rt_error *err);

/* Lets it go on, out of jail_park(), as if it were `like` and the call had given `value`. */
bool sandbox_remote_release(const remote *r, const remote *like, long value, rt_error *err);
/* Lets it go on as it was. */
void sandbox_remote_leave(const remote *r);
void sandbox_remote_kill(remote *r); /* and forgets it; nothing when it is forgotten */

#endif
