/*
 * filter.c - which system calls a cell may make, and how a refusal is explained.
 *
 * An allow-list: what the table does not name is refused. Refusals go to the cell's first process
 * (seccomp user notification), which answers EPERM and reports the call; the explanation is made
 * here, from the same table. Calls that libraries merely try out are refused without a report, with
 * the errno that sends them to their fallback.
 */
#include "sandbox/sandbox_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define NAMESPACES                                                                                 \
    ((uint64_t)CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |       \
     CLONE_NEWPID | CLONE_NEWNET)

/* What interpreters, shells and ordinary programs need. */
static const char *const allowed[] = {
    /* files */
    "read",
    "write",
    "readv",
    "writev",
    "pread64",
    "pwrite64",
    "preadv",
    "pwritev",
    "preadv2",
    "pwritev2",
    "open",
    "openat",
    "openat2",
    "creat",
    "close",
    "close_range",
    "stat",
    "fstat",
    "lstat",
    "newfstatat",
    "statx",
    "lseek",
    "access",
    "faccessat",
    "faccessat2",
    "readlink",
    "readlinkat",
    "getdents",
    "getdents64",
    "rename",
    "renameat",
    "renameat2",
    "mkdir",
    "mkdirat",
    "rmdir",
    "link",
    "linkat",
    "unlink",
    "unlinkat",
    "symlink",
    "symlinkat",
    "chmod",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "chown",
    "fchown",
    "lchown",
    "fchownat",
    "utime",
    "utimes",
    "utimensat",
    "futimesat",
    "truncate",
    "ftruncate",
    "fallocate",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "flock",
    "fcntl",
    "dup",
    "dup2",
    "dup3",
    "pipe",
    "pipe2",
    "sendfile",
    "splice",
    "tee",
    "copy_file_range",
    "fadvise64",
    "readahead",
    "umask",
    "getcwd",
    "chdir",
    "fchdir",
    "statfs",
    "fstatfs",
    "mknod",
    "mknodat",
    "getxattr",
    "lgetxattr",
    "fgetxattr",
    "listxattr",
    "llistxattr",
    "flistxattr",
    "inotify_init",
    "inotify_init1",
    "inotify_add_watch",
    "inotify_rm_watch",
    "memfd_create",
    /* waiting */
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "eventfd",
    "eventfd2",
    "timerfd_create",
    "timerfd_settime",
    "timerfd_gettime",
    "signalfd",
    "signalfd4",
    "nanosleep",
    "clock_nanosleep",
    "pause",
    "restart_syscall",
    "futex",
    "futex_waitv",
    "futex_wait",
    "futex_wake",
    "futex_requeue",
    /* memory */
    "brk",
    "mmap",
    "munmap",
    "mremap",
    "mprotect",
    "madvise",
    "msync",
    "mincore",
    "membarrier",
    "pkey_alloc",
    "pkey_free",
    "pkey_mprotect",
    "mlock",
    "mlock2",
    "munlock",
    /* processes and threads */
    "set_tid_address",
    "set_robust_list",
    "get_robust_list",
    "rseq",
    "gettid",
    "getpid",
    "getppid",
    "getpgid",
    "getpgrp",
    "setpgid",
    "getsid",
    "setsid",
    "wait4",
    "waitid",
    "exit",
    "exit_group",
    "kill",
    "tkill",
    "tgkill",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "rt_sigpending",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "rt_sigqueueinfo",
    "rt_tgsigqueueinfo",
    "sigaltstack",
    "sched_yield",
    "sched_getaffinity",

    "sched_getparam",
    "sched_getscheduler",
    "sched_get_priority_max",
    "sched_get_priority_min",
    "sched_getattr",

    "getpriority",

    "prctl",
    "arch_prctl",
    "getrusage",
    "times",
    "alarm",
    "setitimer",
    "getitimer",
    "timer_create",
    "timer_settime",
    "timer_gettime",
    "timer_getoverrun",
    "timer_delete",
    "pidfd_open",
    "pidfd_send_signal",
    "getcpu",
    "ioprio_get",
    /* who and where */
    "getuid",
    "geteuid",
    "getgid",
    "getegid",
    "getresuid",
    "getresgid",
    "getgroups",
    "setuid",
    "setgid",
    "setreuid",
    "setregid",
    "setresuid",
    "setresgid",
    "setgroups",
    "capget",
    "uname",
    "sysinfo",
    "getrlimit",
    "setrlimit",

    "ugetrlimit",
    "getrandom",
    "time",
    "gettimeofday",
    "clock_gettime",
    "clock_getres",
    /* sockets that are already connected: pairs, and the control socket */
    "sendmsg",
    "recvmsg",
    "recvfrom",
    "sendmmsg",
    "recvmmsg",
    "shutdown",
    "getsockname",
    "getpeername",
    "getsockopt",
    "setsockopt",
};

/* Tried by libraries that have a way around: refused quietly, with the errno they expect. */
static const struct {
    const char *name;
    int error;
} quiet[] = {
    { "clone3", ENOSYS }, /* its flags are in memory, where a filter cannot look: use clone */
    { "io_uring_setup", ENOSYS },
    { "io_uring_enter", ENOSYS },
    { "io_uring_register", ENOSYS },
    { "get_mempolicy", ENOSYS },
    { "set_mempolicy", EPERM },
    { "mbind", EPERM },
    { "setxattr", ENOTSUP },
    { "lsetxattr", ENOTSUP },
    { "fsetxattr", ENOTSUP },
    { "removexattr", ENOTSUP },
    { "sync", EPERM },
    { "syncfs", EPERM },
    { "seccomp", EINVAL },
    { "ioprio_set", EPERM },
};

/* The rule a call falls under, for explanations. What is not here falls under the last one. */
static const struct {
    const char *calls, *rule, *allow;
} rules[] = {
    { " socket connect bind listen accept accept4 sendto ", "network: none",
      "code has no network; hand the data in with --input or --read" },
    { " execve execveat fork vfork clone ", "subprocess: deny",
      "set subprocess: allow in the policy (--policy FILE) to let code start programs" },
    { " mount umount2 pivot_root chroot move_mount open_tree fsopen fsconfig fsmount fspick "
      "mount_setattr ",
      "mounts: never", "no policy allows this; use --read PATH to show a host file to the code" },
    { " unshare setns ", "namespaces: never", "no policy allows this; each cell is already apart" },
    { " ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd process_madvise ",
      "debugging: never", "no policy allows this; print what you need instead" },
    { " bpf perf_event_open userfaultfd keyctl add_key request_key kexec_load kexec_file_load "
      "init_module finit_module delete_module reboot swapon swapoff iopl ioperm modify_ldt acct "
      "quotactl syslog settimeofday clock_settime adjtimex clock_adjtime sethostname setdomainname "
      "lookup_dcookie nfsservctl vhangup ",
      "kernel: never", "no policy allows this; it concerns the host, not the code" },
    { " shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl "
      "mq_open "
      "mq_unlink ",
      "ipc: never", "no policy allows this; use pipes, files in the scratch directory or threads" },
    { "", "system calls: allow-list",
      "no policy allows this call; if ordinary code needs it, please report it" },
};

typedef struct rule_maker {
    scmp_filter_ctx ctx;
    rt_error *err;
    bool is_ok;
} rule_maker;

static void add(rule_maker *m, uint32_t action, const char *name, unsigned count,
                const struct scmp_arg_cmp *args)
{
    int call = seccomp_syscall_resolve_name(name);
    if (!m->is_ok || call == __NR_SCMP_ERROR || call < 0)
        return; /* this architecture has no such call */
    int failed = seccomp_rule_add_array(m->ctx, action, call, count, args);
    if (failed) {
        errno = -failed;
        m->is_ok = rt_fail_errno(m->err, "seccomp rule for %s", name);
    }
}

static void add_processes(rule_maker *m, filter_kind kind)
{
    /* CLONE_PARENT would make the child the warden's, who would not know of it. */
    struct scmp_arg_cmp no_spaces = SCMP_A0(SCMP_CMP_MASKED_EQ, NAMESPACES | CLONE_PARENT, 0);
    struct scmp_arg_cmp thread =
        SCMP_A0(SCMP_CMP_MASKED_EQ, NAMESPACES | CLONE_THREAD, CLONE_THREAD);
    if (kind == FILTER_NO_EXEC) {
        add(m, SCMP_ACT_ALLOW, "clone", 1, &thread);
        return;
    }
    add(m, SCMP_ACT_ALLOW, "clone", 1, &no_spaces);
    add(m, SCMP_ACT_ALLOW, "fork", 0, NULL);
    add(m, SCMP_ACT_ALLOW, "vfork", 0, NULL);
    add(m, SCMP_ACT_ALLOW, "execve", 0, NULL);
    add(m, SCMP_ACT_ALLOW, "execveat", 0, NULL);
}

/*
 * Internet sockets may be made, because they lead nowhere in an empty network namespace and only
 * connect() names the host that the refusal should name. Cells share that namespace, so nothing
 * may get a name another cell could find: no unix sockets but stream pairs (a datagram pair can
 * bind itself to an abstract name), no bind, no listen.
 */
static void add_sockets(rule_maker *m)
{
    const uint64_t type_mask = ~(uint64_t)(SOCK_CLOEXEC | SOCK_NONBLOCK);
    static const int families[] = { AF_INET, AF_INET6 };
    /* Other protocols would have the kernel load modules for whoever asks. */
    static const struct {
        int type, protocol;
    } kinds[] = { { SOCK_STREAM, 0 },
                  { SOCK_STREAM, IPPROTO_TCP },
                  { SOCK_DGRAM, 0 },
                  { SOCK_DGRAM, IPPROTO_UDP } };
    for (size_t f = 0; f < RT_COUNT(families); f++)
        for (size_t k = 0; k < RT_COUNT(kinds); k++) {
            struct scmp_arg_cmp args[] = {
                SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[f], 0),
                SCMP_A1(SCMP_CMP_MASKED_EQ, type_mask & 0xffffffffu, (scmp_datum_t)kinds[k].type),
                SCMP_A2(SCMP_CMP_EQ, (scmp_datum_t)kinds[k].protocol, 0),
            };
            add(m, SCMP_ACT_ALLOW, "socket", 3, args);
        }
    /* libc itself tries these two at every look-up of a user or an interface: no report. */
    struct scmp_arg_cmp netlink = SCMP_A0(SCMP_CMP_EQ, AF_NETLINK, 0);
    struct scmp_arg_cmp local = SCMP_A0(SCMP_CMP_EQ, AF_UNIX, 0);
    add(m, SCMP_ACT_ERRNO(EAFNOSUPPORT), "socket", 1, &netlink);
    add(m, SCMP_ACT_ERRNO(EPERM), "socket", 1, &local);
    struct scmp_arg_cmp pair[] = {
        SCMP_A0(SCMP_CMP_EQ, AF_UNIX, 0),
        SCMP_A1(SCMP_CMP_MASKED_EQ, type_mask & 0xffffffffu, SOCK_STREAM),
    };
    add(m, SCMP_ACT_ALLOW, "socketpair", 2, pair);
    struct scmp_arg_cmp no_address = SCMP_A4(SCMP_CMP_EQ, 0, 0);
    add(m, SCMP_ACT_ALLOW, "sendto", 1, &no_address);
}

/*
 * Limits and priorities: one's own only. Where the host has no ids for a cell, its first process is
 * the same user as the code, and must not be slowed or starved of descriptors by it.
 */
static void add_own(rule_maker *m)
{
    static const char *const calls[] = { "sched_setaffinity", "sched_setattr", "sched_setscheduler",
                                         "sched_setparam", "prlimit64" };
    struct scmp_arg_cmp self = SCMP_A0(SCMP_CMP_EQ, 0, 0);
    for (size_t i = 0; i < RT_COUNT(calls); i++)
        add(m, SCMP_ACT_ALLOW, calls[i], 1, &self);
    struct scmp_arg_cmp only_asks = SCMP_A2(SCMP_CMP_EQ, 0, 0);
    add(m, SCMP_ACT_ALLOW, "prlimit64", 1, &only_asks);
    struct scmp_arg_cmp own_process[] = { SCMP_A0(SCMP_CMP_EQ, PRIO_PROCESS, 0),
                                          SCMP_A1(SCMP_CMP_EQ, 0, 0) };
    add(m, SCMP_ACT_ALLOW, "setpriority", 2, own_process);
}

/* What terminals and pipes are asked; never TIOCSTI, which types into somebody's terminal. */
static void add_ioctl(rule_maker *m)
{
    static const unsigned long ioctls[] = {
        TCGETS,   TCSETS,  TCSETSW,  TCSETSF, TIOCGPGRP, TIOCSPGRP, TIOCGWINSZ, TIOCSWINSZ,
        FIONREAD, FIONBIO, FIONCLEX, FIOCLEX, TCFLSH,    TCSBRK,    TIOCSCTTY,  TIOCGSID,
    };
    for (size_t i = 0; i < RT_COUNT(ioctls); i++) {
        struct scmp_arg_cmp arg = SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffu, ioctls[i]);
        add(m, SCMP_ACT_ALLOW, "ioctl", 1, &arg);
    }
}

static bool make_rules(scmp_filter_ctx ctx, filter_kind kind, rt_error *err)
{
    rule_maker m = { .ctx = ctx, .err = err, .is_ok = true };
    /* A binary tree over call numbers instead of a list: the filter runs on every call. */
    seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    for (size_t i = 0; i < RT_COUNT(quiet); i++)
        add(&m, SCMP_ACT_ERRNO((uint32_t)quiet[i].error), quiet[i].name, 0, NULL);
    for (size_t i = 0; i < RT_COUNT(allowed); i++)
        add(&m, SCMP_ACT_ALLOW, allowed[i], 0, NULL);
    add_processes(&m, kind);
    add_sockets(&m);
    add_own(&m);
    add_ioctl(&m);
    return m.is_ok;
}

bool sandbox_filter_make(filter_kind kind, int *memory_file, rt_error *err)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_NOTIFY);
    if (!ctx)
        return rt_fail(err, RT_UNAVAILABLE, "libseccomp could not start");
    int fd RT_CLEANUP(rt_closep) = memfd_create("seccomp", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    bool ok = make_rules(ctx, kind, err);
    if (ok && fd < 0)
        ok = rt_fail_errno(err, "memfd_create");
    int failed = ok ? seccomp_export_bpf(ctx, fd) : 0;
    seccomp_release(ctx);
    if (failed) {
        errno = -failed;
        return rt_fail_errno(err, "make the seccomp program");
    }
    if (!ok)
        return false;
    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    *memory_file = RT_TAKE_FD(fd);
    return true;
}

/* ---- explanations ---- */

bool sandbox_filter_wants_address(int call, int *arg, int *len_arg)
{
    static const struct {
        int call, arg, len_arg;
    } pointers[] = { { SYS_connect, 1, 2 }, { SYS_bind, 1, 2 },     { SYS_sendto, 4, 5 },
                     { SYS_mount, 1, -1 },  { SYS_execve, 0, -1 },  { SYS_umount2, 0, -1 },
                     { SYS_chroot, 0, -1 }, { SYS_execveat, 1, -1 } };
    for (size_t i = 0; i < RT_COUNT(pointers); i++)
        if (pointers[i].call == call) {
            *arg = pointers[i].arg;
            *len_arg = pointers[i].len_arg;
            return true;
        }
    return false;
}

static void describe_address(const denial_note *note, char *text, size_t size)
{
    sa_family_t family = 0;
    char host[INET6_ADDRSTRLEN] = "";
    if (note->address_len >= sizeof(family))
        memcpy(&family, note->address, sizeof(family));
    if (family == AF_INET && note->address_len >= sizeof(struct sockaddr_in)) {
        struct sockaddr_in in;
        memcpy(&in, note->address, sizeof(in));
        inet_ntop(AF_INET, &in.sin_addr, host, sizeof(host));
        snprintf(text, size, "%s:%u", host, ntohs(in.sin_port));
    } else if (family == AF_INET6 && note->address_len >= sizeof(struct sockaddr_in6)) {
        struct sockaddr_in6 in6;
        memcpy(&in6, note->address, sizeof(in6));
        inet_ntop(AF_INET6, &in6.sin6_addr, host, sizeof(host));
        snprintf(text, size, "[%s]:%u", host, ntohs(in6.sin6_port));
    } else if (family == AF_UNIX) {
        snprintf(text, size, "a unix socket");
    }
}

/* A path the code passed: only harmless characters reach the report. */
static void describe_path(const denial_note *note, char *text, size_t size)
{
    size_t n = 0;
    for (; n < note->address_len && n + 1 < size && note->address[n]; n++)
        text[n] = note->address[n] >= ' ' && note->address[n] < 127 ? (char)note->address[n] : '?';
    text[n] = '\0';
}

static const char *family_name(uint64_t family)
{
    switch ((int)family) {
    case AF_UNIX:
        return "AF_UNIX";
    case AF_INET:
        return "AF_INET";
    case AF_INET6:
        return "AF_INET6";
    case AF_NETLINK:
        return "AF_NETLINK";
    case AF_PACKET:
        return "AF_PACKET";
    default:
        return "another family";
    }
}

void sandbox_filter_explain(const denial_note *note, rt_denial *out)
{
    char *name = seccomp_syscall_resolve_num_arch(note->arch, note->call);
    char number[32], what[80] = "", padded[64];
    int arg, len_arg;
    snprintf(number, sizeof(number), "system call %d", note->call);
    const char *call = name ? name : number;
    if (strcmp(call, "socket") == 0 || strcmp(call, "socketpair") == 0)
        snprintf(what, sizeof(what), "%s", family_name(note->args[0]));
    else if (note->address_len > 0 && sandbox_filter_wants_address(note->call, &arg, &len_arg))
        (len_arg >= 0 ? describe_address : describe_path)(note, what, sizeof(what));
    snprintf(out->call, sizeof(out->call), "%.30s(%s)", call, what);
    snprintf(padded, sizeof(padded), " %.40s ", call);
    for (size_t i = 0; i < RT_COUNT(rules); i++)
        if (rules[i].calls[0] == '\0' || strstr(rules[i].calls, padded)) {
            snprintf(out->rule, sizeof(out->rule), "%s", rules[i].rule);
            snprintf(out->allow, sizeof(out->allow), "%s", rules[i].allow);
            break;
        }
    if (strcmp(call, "clone") == 0 && (note->args[0] & NAMESPACES)) {
        snprintf(out->rule, sizeof(out->rule), "namespaces: never");
        snprintf(out->allow, sizeof(out->allow),
                 "no policy allows this; each cell is already apart");
    }
    free(name);
}
