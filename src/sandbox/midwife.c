/*
 * midwife.c - brings live interpreters into their cells, and branches of them.
 *
 * Beside each live guest stands its twin: a process that shares the guest's memory, lives outside
 * the cell with the house's rights, and never runs: it is stopped from its birth on, by us, its
 * tracer. What is fork()ed for a branch is the twin, so the copy begins outside the cell too, free
 * to be sealed into a cell of its own that is nobody's child:
 *
 *     open      twin ──clone, memory shared──▶ guest                     (sealed into its cell)
 *     branch    twin ──fork──▶ twin' ──clone, memory shared──▶ guest'    (sealed into another)
 *
 * The memory is the user's code's to write, so nothing in it is trusted. The twin and the new guest
 * make only the system calls that we put into their registers, each checked when it enters
 * (remote.h); not one instruction of the user's runs before the guest has lost every right it must
 * not have. What is in force is then read from the kernel and told to the daemon in the guest's
 * name.
 *
 * Descriptors are the twin's, which has none, and those we hand over: nothing the source has open
 * gets into a branch. Memory that is shared on purpose (MAP_SHARED) would, and is refused.
 */
#include "sandbox/sandbox_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox/remote.h"

#define FILTER_MAX       4096 /* BPF_MAXINSNS */
#define RULES_FD         4    /* in the guest, until they are in force */
#define ROOM_BYTES       65536
#define DELIVERY_SECONDS 3
#define ROOM_SMALL       40960 /* where small things are put, behind the filter */
#define MAPS_MAX         (16u << 20)

typedef struct delivery {
    const midwife_order *order;
    int *fds; /* those of the order */
    remote twin, guest;
    remote source;                  /* branch: the guest it is made from */
    long own;                       /* in the twin and the guest: a pidfd of ours */
    long there[JAIL_ORDER_FDS_MAX]; /* the same descriptors, in the twin and the guest */
    long rules;                     /* and the rules of Landlock */
    long room;                      /* in the guest: a piece of memory of ours */
} delivery;

/* ---- calls that must succeed ---- */

#define DO(r, result, what, nr, ...)                                                               \
    must((r), (result), (what), err, (nr), (const long[6]){ __VA_ARGS__ })

static bool must(remote *r, long *result, const char *what, rt_error *err, long nr,
                 const long args[6])
{
    long got;
    if (!sandbox_remote_call_args(r, &got, err, nr, args))
        return rt_wrap(err, "%s", what);
    if (got < 0) {
        errno = (int)-got;
        return rt_fail_errno(err, "%s", what);
    }
    if (result)
        *result = got;
    return true;
}

/* ---- the twin ---- */

static bool write_pid(int fd, pid_t pid)
{
    char text[16];
    int n = snprintf(text, sizeof(text), "%d", pid);
    return write(fd, text, (size_t)n) == n;
}

/* Memory is counted where the first owner of an address space is: that is the twin. */
static bool join_cgroups(delivery *d, rt_error *err)
{
    for (uint32_t i = 0; i < d->order->jail.cgroup_count; i++)
        if (!write_pid(d->fds[JAIL_FD_CGROUP + i], d->twin.pid))
            return rt_fail_errno(err, "write cgroup.procs");
    return true;
}

/* The rules of Landlock are made by us, for the root of the cell; the guest need only obey them. */
static bool hand_rules(delivery *d, rt_error *err)
{
    char root[64];
    if (!d->order->jail.has_landlock)
        return true;
    snprintf(root, sizeof(root), "/proc/%d/root", d->order->init);
    int ruleset RT_CLEANUP(rt_closep) = jail_landlock(&d->order->jail, root, err);
    return ruleset >= 0 &&
           DO(&d->twin, &d->rules, "pidfd_getfd", SYS_pidfd_getfd, d->own, ruleset, 0);
}

static bool hand_over(delivery *d, rt_error *err)
{
    static const int needed[] = { JAIL_FD_INIT, JAIL_FD_CONTROL, JAIL_FD_STDIN, JAIL_FD_STDOUT,
                                  JAIL_FD_STDERR };
    if (!DO(&d->twin, &d->own, "pidfd_open", SYS_pidfd_open, getpid(), 0))
        return false;
    for (size_t i = 0; i < RT_COUNT(needed); i++)
        if (!DO(&d->twin, &d->there[needed[i]], "pidfd_getfd", SYS_pidfd_getfd, d->own,
                d->fds[needed[i]], 0))
            return false;
    return hand_rules(d, err);
}

static bool clone_guest(delivery *d, rt_error *err)
{
    return DO(&d->twin, NULL, "setns", SYS_setns, d->there[JAIL_FD_INIT], CLONE_NEWPID) &&
           DO(&d->twin, NULL, "clone", SYS_clone, CLONE_VM | CLONE_PARENT | SIGCHLD, 0, 0, 0, 0) &&
           sandbox_remote_adopt(&d->twin, &d->guest, err);
}

/* So that its next child is born outside of any cell, and holds nothing of this one. */
static bool settle_twin(delivery *d, rt_error *err)
{
    return DO(&d->twin, NULL, "setns", SYS_setns, d->own, CLONE_NEWPID) &&
           DO(&d->twin, NULL, "close_range", SYS_close_range, 3, ~0u, 0);
}

/* ---- the guest: guests/jail/enter.c by other means, in the same order ---- */

static bool join_cell(delivery *d, rt_error *err)
{
    remote *g = &d->guest;
    const long kinds = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;
    const long small = ROOM_SMALL;
    return DO(g, NULL, "hide the cgroup tree", SYS_unshare, CLONE_NEWCGROUP) &&
           DO(g, NULL, "setns", SYS_setns, d->there[JAIL_FD_INIT], kinds) &&
           DO(g, &d->room, "mmap", SYS_mmap, 0, ROOM_BYTES, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) &&
           sandbox_remote_write(g, d->room + small, d->order->jail.workdir, JAIL_PATH_MAX, err) &&
           DO(g, NULL, "chdir", SYS_chdir, d->room + small);
}

static bool settle_descriptors(delivery *d, rt_error *err)
{
    static const int places[] = { JAIL_FD_STDIN, JAIL_FD_STDOUT, JAIL_FD_STDERR, JAIL_FD_CONTROL };
    for (long i = 0; i < (long)RT_COUNT(places); i++)
        if (!DO(&d->guest, NULL, "dup3", SYS_dup3, d->there[places[i]], i,
                i > STDERR_FILENO ? O_CLOEXEC : 0))
            return false;
    bool has_rules = d->order->jail.has_landlock;
    if (has_rules && !DO(&d->guest, NULL, "dup3", SYS_dup3, d->rules, RULES_FD, O_CLOEXEC))
        return false;
    return DO(&d->guest, NULL, "close_range", SYS_close_range, RULES_FD + has_rules, ~0u, 0);
}

static bool change_ids(delivery *d, rt_error *err)
{
    long id = d->order->jail.uid, ignored;
    remote *g = &d->guest;
    return sandbox_remote_call(g, &ignored, err, SYS_setgroups, 0, 0) &&
           DO(g, NULL, "setresgid", SYS_setresgid, id, id, id) &&
           DO(g, NULL, "setresuid", SYS_setresuid, id, id, id) &&
           sandbox_remote_call(g, &ignored, err, SYS_setsid, 0) &&
           DO(g, NULL, "umask", SYS_umask, 022);
}

static bool drop_capabilities(delivery *d, rt_error *err)
{
    const long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                      SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                      SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    struct {
        struct __user_cap_header_struct head;
        struct __user_cap_data_struct none[2];
    } caps = { .head.version = _LINUX_CAPABILITY_VERSION_3 };
    remote *g = &d->guest;
    long at = d->room + ROOM_SMALL, result = 0;
    if (!DO(g, NULL, "lock securebits", SYS_prctl, PR_SET_SECUREBITS, bits))
        return false;
    for (long cap = 0; cap <= 63 && result >= 0; cap++)
        if (!sandbox_remote_call(g, &result, err, SYS_prctl, PR_CAPBSET_DROP, cap))
            return false;
    if (result < 0 && result != -EINVAL) /* past the last one this kernel knows */
        return rt_fail(err, RT_SYSTEM, "capabilities cannot be dropped");
    return sandbox_remote_write(g, at, &caps, sizeof(caps), err) &&
           DO(g, NULL, "capset", SYS_capset, at, at + (long)offsetof(__typeof__(caps), none)) &&
           DO(g, NULL, "no_new_privs", SYS_prctl, PR_SET_NO_NEW_PRIVS, 1);
}

/* Limits that the source has laid on itself, its branch has too. */
static bool settle_process(delivery *d, rt_error *err)
{
    struct rlimit limit, no_core = { 0, 0 };
    for (int kind = 0; d->source.pid > 0 && kind < (int)RLIM_NLIMITS; kind++)
        if (prlimit(d->source.pid, (__rlimit_resource_t)kind, NULL, &limit) != 0 ||
            prlimit(d->guest.pid, (__rlimit_resource_t)kind, &limit, NULL) != 0)
            return rt_fail_errno(err, "copy the limits of the interpreter");
    if (prlimit(d->guest.pid, RLIMIT_CORE, &no_core, NULL) != 0)
        return rt_fail_errno(err, "forbid core files");
    return DO(&d->guest, NULL, "prctl", SYS_prctl, PR_SET_PDEATHSIG, SIGKILL) &&
           DO(&d->guest, NULL, "prctl", SYS_prctl, PR_SET_DUMPABLE, 1);
}

static bool apply_landlock(delivery *d, rt_error *err)
{
    return !d->order->jail.has_landlock ||
           DO(&d->guest, NULL, "landlock_restrict_self", SYS_landlock_restrict_self, RULES_FD, 0);
}

static bool hand_listener(delivery *d, long listener, rt_error *err)
{
    int pidfd RT_CLEANUP(rt_closep) = (int)syscall(SYS_pidfd_open, d->guest.pid, 0);
    int fd RT_CLEANUP(rt_closep) = (int)syscall(SYS_pidfd_getfd, pidfd, listener, 0);
    if (fd < 0 || jail_packet_send(d->fds[JAIL_FD_PORCH], "L", 1, &fd, 1) != 1)
        return rt_fail_errno(err, "hand over the seccomp listener");
    return true;
}

static bool load_filter(delivery *d, rt_error *err)
{
    static struct sock_filter program[FILTER_MAX];
    remote *g = &d->guest;
    long listener, at = d->room + ROOM_SMALL;
    ssize_t size = pread(d->fds[JAIL_FD_FILTER], program, sizeof(program), 0);
    if (size <= 0 || size % (ssize_t)sizeof(program[0]) != 0)
        return rt_fail(err, RT_INTERNAL, "the seccomp program has %zd bytes", size);
    struct sock_fprog head = { .len = (unsigned short)((size_t)size / sizeof(program[0])),
                               .filter = (struct sock_filter *)d->room };
    return sandbox_remote_write(g, d->room, program, (size_t)size, err) &&
           sandbox_remote_write(g, at, &head, sizeof(head), err) &&
           DO(g, &listener, "seccomp", SYS_seccomp, SECCOMP_SET_MODE_FILTER,
              SECCOMP_FILTER_FLAG_NEW_LISTENER, at) &&
           hand_listener(d, listener, err) &&
           DO(g, NULL, "close_range", SYS_close_range, 4, ~0u, 0) &&
           DO(g, NULL, "munmap", SYS_munmap, d->room, ROOM_BYTES);
}

/* ---- what is in force, in the kernel's words ---- */

static uint64_t field(const char *status, const char *key, int base)
{
    const char *at = strstr(status, key);
    return at ? strtoull(at + strlen(key), NULL, base) : UINT64_MAX;
}

static size_t describe_namespaces(pid_t pid, char *text, size_t size)
{
    static const char *const kinds[] = { "user", "pid", "mnt", "ipc", "uts", "net", "cgroup" };
    size_t used = 0;
    for (size_t i = 0; i < RT_COUNT(kinds) && used < size; i++) {
        char path[64];
        struct stat st;
        snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, kinds[i]);
        unsigned long inode = stat(path, &st) == 0 ? (unsigned long)st.st_ino : 0;
        used += (size_t)snprintf(text + used, size - used, "%s\"%s\":%lu", i ? "," : "", kinds[i],
                                 inode);
    }
    return used;
}

static bool say_hello(delivery *d, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    char path[64], spaces[256], text[1024];
    rt_str status;
    snprintf(path, sizeof(path), "/proc/%d/status", d->guest.pid);
    if (!rt_read_file(path, 65536, &arena, &status, err))
        return false;
    bool has_caps = field(status.ptr, "\nCapPrm:\t", 16) || field(status.ptr, "\nCapEff:\t", 16) ||
                    field(status.ptr, "\nCapInh:\t", 16) || field(status.ptr, "\nCapBnd:\t", 16);
    describe_namespaces(d->guest.pid, spaces, sizeof(spaces));
    int n =
        snprintf(text, sizeof(text),
                 "{\"op\":\"hello\",\"layers\":{\"uid\":%u,\"gid\":%u,\"capabilities\":\"%s\","
                 "\"no_new_privs\":%s,\"seccomp\":\"%s\",\"landlock\":%s,\"ns\":{%s}}}",
                 d->order->jail.uid, d->order->jail.uid, has_caps ? "some" : "none",
                 field(status.ptr, "\nNoNewPrivs:\t", 10) == 1 ? "true" : "false",
                 field(status.ptr, "\nSeccomp:\t", 10) == SECCOMP_MODE_FILTER ? "filter" : "off",
                 d->order->jail.has_landlock ? "true" : "false", spaces);
    return jail_frame_send(d->fds[JAIL_FD_CONTROL], text, (size_t)n, NULL, 0, err);
}

/* ---- branches ---- */

/*
 * A line of /proc/PID/maps: "from-to rwxs offset device inode      path". What lies below /usr
 * nobody can write to, so a library may well map it as shared.
 */
static bool is_shared(rt_str line)
{
    ptrdiff_t space = rt_str_find(line, RT_STR(" ")), path = rt_str_find(line, RT_STR("/"));
    if (space < 0 || line.len < (size_t)space + 5 || line.ptr[space + 4] != 's')
        return false;
    bool is_system =
        path > 0 && rt_str_starts(rt_str_slice(line, (size_t)path, line.len), RT_STR("/usr/"));
    return line.ptr[space + 2] == 'w' || !is_system;
}

/* Whoever shares memory on purpose would go on sharing it with the branch. */
static bool refuse_shared_memory(pid_t pid, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    char path[64];
    rt_str maps, line;
    snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    if (!rt_read_file(path, MAPS_MAX, &arena, &maps, err))
        return false;
    while (rt_str_cut(&maps, '\n', &line))
        if (is_shared(line))
            return rt_fail(err, RT_CONFLICT,
                           "the session has shared memory (mmap, multiprocessing.shared_memory), "
                           "which a branch cannot have for itself; close it first");
    return true;
}

static int open_scratch(pid_t init)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/root" RT_WORKDIR, init);
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool copy_scratch(delivery *d, rt_error *err)
{
    struct stat st;
    if (d->order->source == 0)
        return true;
    int from RT_CLEANUP(rt_closep) = open_scratch(d->order->source_init);
    int to RT_CLEANUP(rt_closep) = open_scratch(d->order->init);
    if (from < 0 || to < 0 || fstat(to, &st) != 0)
        return rt_fail_errno(err, "open the scratch directories");
    if (d->order->jail.is_scratch_readonly)
        return true;
    bool ok = sandbox_files_copy(from, to, st.st_uid, st.st_gid, err);
    prctl(PR_SET_DUMPABLE, 1); /* acting for another user had switched it off */
    return ok;
}

/* The source stands still for as long as its memory is being copied, and no longer. */
static bool fork_twin(delivery *d, rt_error *err)
{
    remote old = { 0 };
    if (d->order->source == 0)
        return sandbox_remote_catch(d->order->twin, &d->twin, err);
    if (!sandbox_remote_catch(d->order->source, &d->source, err))
        return false;
    bool ok = refuse_shared_memory(d->order->source, err);
    ok = ok && sandbox_remote_hold(d->order->twin, &old, err) &&
         DO(&old, NULL, "clone", SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0) &&
         sandbox_remote_adopt(&old, &d->twin, err);
    sandbox_remote_leave(&d->source);
    return ok;
}

static const struct {
    const char *name;
    bool (*apply)(delivery *, rt_error *);
} steps[] = {
    { "copy the memory", fork_twin },
    { "join the cgroups", join_cgroups },
    { "hand over descriptors", hand_over },
    { "clone the guest", clone_guest },
    { "join the cell", join_cell },
    { "settle descriptors", settle_descriptors },
    { "change ids", change_ids },
    { "drop capabilities", drop_capabilities },
    { "settle the process", settle_process },
    { "apply Landlock", apply_landlock },
    { "filter system calls", load_filter },
    { "copy the files", copy_scratch },
    { "say hello", say_hello },
};

static bool deliver(delivery *d, rt_error *err)
{
    for (size_t i = 0; i < RT_COUNT(steps); i++)
        if (!steps[i].apply(d, err))
            return err->code == RT_CONFLICT ? false : rt_wrap(err, "%s", steps[i].name);
    const remote *like = d->source.pid ? &d->source : &d->twin;
    return sandbox_remote_release(&d->guest, like, JAIL_ARRIVED, err);
}

/*
 * Hundreds of times the guest waits for us and we for it. On one core that is a matter of
 * switching; across two, each time one of them has to be woken up.
 */
static void share_core(pid_t twin, cpu_set_t *before)
{
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(RT_MAX(sched_getcpu(), 0), &here);
    sched_getaffinity(0, sizeof(*before), before);
    sched_setaffinity(0, sizeof(here), &here);
    sched_setaffinity(twin, sizeof(here), &here); /* and with it whom it clones */
}

static void part(pid_t guest, const cpu_set_t *before)
{
    sched_setaffinity(0, sizeof(*before), before);
    if (guest > 0)
        sched_setaffinity(guest, sizeof(*before), before);
}

static void obey(int orders, const midwife_order *order, int *fds)
{
    delivery d = { .order = order, .fds = fds };
    cpu_set_t before;
    midwife_reply reply = { .serial = order->jail.serial };
    share_core(order->twin, &before);
    sandbox_remote_hurry(DELIVERY_SECONDS);
    bool ok = deliver(&d, &reply.error);
    part(d.guest.pid, &before);
    reply.guest = ok ? d.guest.pid : -1;
    reply.twin = ok ? d.twin.pid : -1;
    if (!ok) { /* both are the warden's children, and reaped by it as strays */
        sandbox_remote_kill(&d.guest);
        sandbox_remote_kill(&d.twin);
    }
    jail_packet_send(orders, &reply, sizeof(reply), NULL, 0);
    rt_error late = { 0 };
    if (ok && !settle_twin(&d, &late))
        sandbox_remote_kill(&d.twin); /* the session lives on; it cannot be branched any more */
    sandbox_remote_hurry(0);
}

static void wake_up(int signal)
{
    (void)signal;
}

/* A traced process that died is its parent's to reap only after we have. */
static void reap(void)
{
    int status;
    while (waitpid(-1, &status, __WALL | WNOHANG) > 0)
        ;
}

_Noreturn void sandbox_midwife_main(int orders)
{
    const struct sigaction on_death = { .sa_handler = wake_up };
    sigset_t blocked, open;
    /* We create files in the name of a cell's user, and keep our rights while we do. */
    prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP);
    prctl(PR_SET_NAME, "retort-midwife");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 1); /* or nobody could copy a descriptor of ours */
    sigaction(SIGCHLD, &on_death, NULL);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGCHLD);
    sigprocmask(SIG_BLOCK, &blocked, &open);
    for (;;) {
        midwife_order order;
        int fds[JAIL_ORDER_FDS_MAX];
        size_t count = 0;
        struct pollfd polled = { .fd = orders, .events = POLLIN };
        reap();
        if (ppoll(&polled, 1, NULL, &open) <= 0)
            continue;
        ssize_t n =
            jail_packet_recv(orders, &order, sizeof(order), fds, JAIL_ORDER_FDS_MAX, &count, 0);
        if (n != (ssize_t)sizeof(order) || count != JAIL_FD_CGROUP + order.jail.cgroup_count)
            _exit(0); /* the warden is gone */
        obey(orders, &order, fds);
        for (size_t i = 0; i < count; i++)
            close(fds[i]);
    }
}
