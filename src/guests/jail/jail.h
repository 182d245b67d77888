/*
 * jail.h - what every guest shares: how a warmed process forks into a cell and seals itself.
 *
 * Promise: jail_serve() returns only in a process that is inside its cell with every layer of the
 * order in force. If one layer cannot be set up the process reports why on its control socket and
 * ends; no user code has run by then.
 *
 *     int control = jail_serve(JAIL_ORDERS_FD, &hooks);      // the zygote stays inside this call
 *     while (jail_frame_recv(control, &frame))               // only a sealed child gets here
 *         run(&frame);
 *
 * A guest is thin: it warms an interpreter, calls jail_serve(), and speaks JSON frames on the
 * control socket. It links this folder and base/error.c, and no library beyond libc.
 */
#ifndef RETORT_GUESTS_JAIL_H
#define RETORT_GUESTS_JAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define JAIL_ORDERS_FD     3 /* in a zygote: orders from the warden */
#define JAIL_CONTROL_FD    3 /* in a cell: the control socket to the daemon */
#define JAIL_FRAME_MAX     (64u << 20)
#define JAIL_FRAME_FDS_MAX 8
#define JAIL_CGROUPS_MAX   4
#define JAIL_PATH_MAX      64

/* The descriptors that come with an order, in this order; the cgroup ones are last and optional. */
enum jail_order_fd {
    JAIL_FD_INIT,    /* pidfd of the cell's first process: its namespaces are the cell */
    JAIL_FD_CONTROL, /* framed JSON to the daemon */
    JAIL_FD_STDIN,
    JAIL_FD_STDOUT,
    JAIL_FD_STDERR,
    JAIL_FD_PORCH,  /* to the cell's first process: it wants the seccomp listener, and says when
                       the cell is built */
    JAIL_FD_FILTER, /* the seccomp program, as a memory file of struct sock_filter */
    JAIL_FD_CGROUP, /* cgroup.procs of each hierarchy the cell belongs to */
    JAIL_ORDER_FDS_MAX = JAIL_FD_CGROUP + JAIL_CGROUPS_MAX,
};

#define JAIL_BUILT 'B'

/* "Fork one process into this cell." One packet from the warden to a zygote. */
typedef struct jail_order {
    uint32_t serial;
    uint32_t uid; /* inside the cell; the group has the same number */
    uint32_t cgroup_count;
    uint32_t has_landlock; /* refuse to start if Landlock cannot be had */
    uint32_t is_scratch_readonly;
    uint32_t is_ahead;   /* nobody waits for it yet: there is time to rehearse */
    uint32_t is_unbuilt; /* the cell is still being mounted: wait for JAIL_BUILT on the porch */
    uint32_t
        is_twin; /* not into a cell: fork, stay outside, and park. No descriptors come with it */
    char workdir[JAIL_PATH_MAX];
} jail_order;

typedef struct jail_order_reply {
    uint32_t serial;
    int32_t pid;   /* in the warden's pid namespace */
    int32_t error; /* errno when pid is -1 */
} jail_order_reply;

/* What an interpreter needs done around the fork; each may be NULL. */
typedef struct jail_hooks {
    void (*before_fork)(void);
    void (*after_fork_parent)(void);
    void (*after_fork_child)(void);
} jail_hooks;

/*
 * Serves orders until the warden closes the socket (then the process exits). Returns the control
 * socket in each sealed child.
 */
int jail_serve(int orders_fd, const jail_hooks *hooks);

/* Before the first fork: puts what was warmed into huge pages, where the kernel lets it. */
void jail_gather(void);

/*
 * In a sealed child: whether it was made ahead of any request. A forked process copies each page it
 * first writes to; a guest that has time goes through the motions of a run, so that no request
 * waits for those copies. One that somebody waits for does not.
 */
bool jail_is_ahead(void);

/*
 * Waits where the process can be copied: for a frame on `control`, or for the end of time where
 * that is -1. JAIL_ARRIVED: we are the copy, sealed in a cell of our own, with nothing but
 * descriptors 0 to
 * 3. No other thread may be awake. The copy has its parent's memory and none of its children,
 * timers, signal handlers or locks.
 */
enum { JAIL_WOKEN = 1, JAIL_ARRIVED = 0x5eed };
long jail_park(int control);

/* Tells the warden that the zygote is warm; what `about` says is shown by `retort languages`. */
bool jail_announce(int orders_fd, const char *about, rt_error *err);

/* Limits of one run that the process lays on itself before it runs user code; 0 means unlimited. */
typedef struct jail_limits {
    uint64_t cpu_seconds;
    uint64_t data_bytes; /* RLIMIT_DATA above what the interpreter already has */
    uint64_t file_bytes; /* the largest file it may write */
    uint64_t processes;  /* a second fence behind the pids cgroup */
    uint64_t descriptors;
} jail_limits;

bool jail_limit(const jail_limits *limits, rt_error *err);

/* One message on the control socket. Sent: borrowed. Received: data is malloc'ed, NUL-terminated.
 */
typedef struct jail_frame {
    char *data;
    size_t len;
    int fds[JAIL_FRAME_FDS_MAX];
    size_t fd_count;
} jail_frame;

bool jail_frame_send(int fd, const char *data, size_t len, const int *fds, size_t fd_count,
                     rt_error *err);

/* Sends as much of a frame as the socket takes at once, in one piece so that its reader wakes once:
 * how many bytes went, the four of the length first, or -1 and errno. */
ssize_t jail_frame_begin(int fd, const char *data, size_t len, const int *fds, size_t fd_count);

/* False at end of file too (err->code RT_NOT_FOUND). `max` bounds what a peer may make us hold. */
bool jail_frame_recv(int fd, size_t max, jail_frame *out, rt_error *err);
void jail_frame_done(jail_frame *frame);

/*
 * The same for who reads one socket frame after frame: a small frame is one system call, and what
 * comes behind it is kept. A signal ends the waiting for a frame's first byte: sys_errno is EINTR.
 * A frame with descriptors is the last, or the beginning of the last, that its sender's call sent.
 */
typedef struct jail_reader {
    int fd;
    size_t step;  /* bytes to ask for at a time; 0: as many as fit */
    bool is_told; /* somebody else has seen that something is there */
    size_t from, to;
    int fds[JAIL_FRAME_FDS_MAX]; /* of the frame that starts at fds_at */
    size_t fd_count, fds_at;
    char data[8192];
} jail_reader;

bool jail_reader_next(jail_reader *reader, size_t max, jail_frame *out, rt_error *err);
bool jail_reader_is_ready(const jail_reader *reader); /* next() would find something */
/* Something that was read along with the last frame, of which poll() knows nothing. */
static inline bool jail_reader_has_more(const jail_reader *reader)
{
    return reader->from < reader->to;
}

/*
 * Ends the process once nobody listens any more; for after the answer. To give back the memory of
 * an interpreter takes as long as a small run, and a core from those who carry the answer on.
 */
_Noreturn void jail_leave(int control, int status);

/* Packets with descriptors, for the SEQPACKET sockets between warden, zygotes and cells. */
ssize_t jail_packet_send(int fd, const void *data, size_t len, const int *fds, size_t fd_count);
ssize_t jail_packet_recv(int fd, void *data, size_t len, int *fds, size_t fds_max, size_t *fd_count,
                         int flags);

/*
 * fork() with clone()'s flags: CLONE_NEW…, and CLONE_PARENT (the warden reaps every process of
 * every cell, so zygotes and nurseries give their children to it). Call while no other thread is
 * awake.
 */
pid_t jail_clone(unsigned long extra_flags);

/* Seals the calling process. `fds` are those of the order; what moves is moved in it too. */
bool jail_enter(const jail_order *order, int *fds, rt_error *err);

/* The rules of Landlock for a cell whose root is seen at `root`, as a descriptor; or -1. */
int jail_landlock(const jail_order *order, const char *root, rt_error *err);

/* Notes what the interpreter has before it runs anything for the user; jail_limit() adds to it. */
void jail_settle(void);

/* What is in force, read back from the kernel, as a JSON object into text. */
void jail_describe(char *text, size_t size, bool has_landlock);

#endif
