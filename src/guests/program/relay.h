/*
 * relay.h - carries calls of the programs that a script starts to the daemon, and answers back.
 *
 * A program (guests/tool) finds a socket at RELAY_FD. It sends one byte on it with two descriptors:
 * a memory file with its call, {"tool":…,"arguments":{…}}, and a socket on which it wants the
 * answer, a frame as the daemon sends it. Any number of programs may do so at once: who comes when
 * enough calls are under way waits in the socket.
 */
#ifndef RETORT_GUESTS_RELAY_H
#define RETORT_GUESTS_RELAY_H

#include <sys/types.h>

#include "base/base.h"

#define RELAY_FD        6
#define RELAY_CALLS_MAX 64 /* at a time; the daemon refuses more */

typedef struct relay {
    int control;
    int near, far; /* far becomes RELAY_FD of the script */
    int64_t run;
    uint64_t argument_max, last;
    struct {
        uint64_t number; /* 0: free */
        int reply;
    } callers[RELAY_CALLS_MAX];
    size_t count;
} relay;

bool program_relay_open(relay *r, rt_error *err); /* control, run and argument_max are set */
void program_relay_close(relay *r); /* those who still wait find their socket closed */
/* Waits for a process as waitpid() does, and serves calls meanwhile. SIGCHLD must be blocked. */
pid_t program_relay_wait(relay *r, pid_t pid, int *status);

#endif
