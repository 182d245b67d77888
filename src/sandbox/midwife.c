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
#define LINES_MAX        120
#define DELIVERY_SECONDS 3
#define MAPS_MAX         (16u << 20)

typedef struct delivery {
    const midwife_order *order;
    int *fds; /* those of the order */
    remote twin, guest;
    remote source; /* branch: the guest it is made from */
    long room;     /* in the twin and the guest: a piece of memory of ours */
} delivery;

/* Descriptors in the twin, which has none of its own beyond the standard three, and in the guest.
 */
enum there {
    THERE_US = 3, /* a pidfd of ours */
    THERE_INIT,
    THERE_CONTROL,
    THERE_STDIN,
    THERE_STDOUT,
    THERE_STDERR,
    THERE_RULES, /* of Landlock, where there is any */
};

/* ---- lists of calls ---- */

typedef struct list {
    remote_line lines[LINES_MAX];
    size_t count;
} list;

#define ADD(l, what, nr, ...) add((l), (what), false, (nr), (const long[6]){ __VA_ARGS__ })
#define TRY(l, what, nr, ...) add((l), (what), true, (nr), (const long[6]){ __VA_ARGS__ })

static void add(list *l, const char *what, bool may_fail, long nr, const long args[6])
{
    remote_line *line = &l->lines[l->count++];
    *line = (remote_line){ .nr = nr, .may_fail = may_fail, .what = what };
    memcpy(line->args, args, sizeof(line->args));
}

/* ---- the twin ---- */

/* The rules of Landlock are made by us, for the root of the cell; the guest need only obey them. */
static bool make_rules(delivery *d, int *rules, rt_error *err)
{
    char root[64];
    snprintf(root, sizeof(root), "/proc/%d/root", d->order->init);
    *rules = d->order->jail.has_landlock ? jail_landlock(&d->order->jail, root, err) : -1;
    return *rules >= 0 || !d->order->jail.has_landlock;
}

/*
 * Memory is counted where the first owner of an address space is: that is the twin. It moves
 * itself, because to move another the kernel waits ten milliseconds (cgroup.c).
 */
static bool add_cgroups(list *l, const delivery *d, rt_error *err)
{
    long text = d->room + REMOTE_ROOM_FREE, first = THERE_US + (long)l->count;
    uint32_t count = d->order->jail.cgroup_count;
    for (uint32_t i = 0; i < count; i++)
        ADD(l, "pidfd_getfd", SYS_pidfd_getfd, THERE_US, d->fds[JAIL_FD_CGROUP + i], 0);
    for (uint32_t i = 0; i < count; i++)
        ADD(l, "join the cgroups", SYS_write, first + i, text, 1);
    return sandbox_remote_write(&d->twin, text, "0", 1, err);
}

/* The guest is born into the cell's pid namespace, and shares the memory of its twin. */
static bool clone_guest(delivery *d, rt_error *err)
{
    static const int handed[] = { JAIL_FD_INIT, JAIL_FD_CONTROL, JAIL_FD_STDIN, JAIL_FD_STDOUT,
                                  JAIL_FD_STDERR };
    int rules RT_CLEANUP(rt_closep) = -1;
    list l = { .count = 0 };
    if (!make_rules(d, &rules, err) || !sandbox_remote_room(&d->twin, &d->room, err))
        return false;
    ADD(&l, "pidfd_open", SYS_pidfd_open, getpid(), 0);
    for (size_t i = 0; i < RT_COUNT(handed); i++)
        ADD(&l, "pidfd_getfd", SYS_pidfd_getfd, THERE_US, d->fds[handed[i]], 0);
    if (rules >= 0)
        ADD(&l, "pidfd_getfd", SYS_pidfd_getfd, THERE_US, rules, 0);
    size_t fds = l.count + d->order->jail.cgroup_count;
    if (!add_cgroups(&l, d, err))
        return false;
    ADD(&l, "setns", SYS_setns, THERE_INIT, CLONE_NEWPID);
    ADD(&l, "clone", SYS_clone, CLONE_VM | CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
    if (!sandbox_remote_run(&d->twin, d->room, l.lines, l.count, err))
        return false;
    for (size_t i = 0; i < fds; i++)
        if (l.lines[i].result != THERE_US + (long)i)
            return rt_fail(err, RT_INTERNAL, "the twin has descriptors of its own");
    return sandbox_remote_adopt(&d->twin, &d->guest, err);
}

/* So that its next child is born outside of any cell, and holds nothing of this one. */
static bool settle_twin(delivery *d, rt_error *err)
{
    long failed[3];
    return sandbox_remote_call(&d->twin, &failed[0], err, SYS_setns, THERE_US, CLONE_NEWPID) &&
           sandbox_remote_call(&d->twin, &failed[1], err, SYS_close_range, 3, ~0u, 0) &&
           failed[0] == 0 && failed[1] == 0;
}

/* ---- the guest: guests/jail/enter.c by other means, in the same order ---- */

/* What the calls point to, in the guest's room. */
typedef struct small {
    char workdir[JAIL_PATH_MAX];
    struct __user_cap_header_struct caps_head;
    struct __user_cap_data_struct no_caps[2];
    struct sock_fprog program;
    struct sock_filter filter[FILTER_MAX];
} small;

#define IN_SMALL(d, member) ((d)->room + REMOTE_ROOM_FREE + (long)offsetof(small, member))

static void add_entry(list *l, const delivery *d)
{
    ADD(l, "hide the cgroup tree", SYS_unshare, CLONE_NEWCGROUP);
    ADD(l, "setns", SYS_setns, THERE_INIT,
        CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS);
    ADD(l, "chdir", SYS_chdir, IN_SMALL(d, workdir));
}

static void add_descriptors(list *l, const delivery *d)
{
    bool has_rules = d->order->jail.has_landlock;
    ADD(l, "dup3", SYS_dup3, THERE_STDIN, STDIN_FILENO, 0);
    ADD(l, "dup3", SYS_dup3, THERE_STDOUT, STDOUT_FILENO, 0);
    ADD(l, "dup3", SYS_dup3, THERE_STDERR, STDERR_FILENO, 0);
    ADD(l, "dup3", SYS_dup3, THERE_CONTROL, JAIL_CONTROL_FD, O_CLOEXEC);
    if (has_rules)
        ADD(l, "dup3", SYS_dup3, THERE_RULES, RULES_FD, O_CLOEXEC);
    ADD(l, "close_range", SYS_close_range, RULES_FD + has_rules, ~0u, 0);
}

static void add_ids(list *l, long id)
{
    TRY(l, "setgroups", SYS_setgroups, 0, 0);
    ADD(l, "setresgid", SYS_setresgid, id, id, id);
    ADD(l, "setresuid", SYS_setresuid, id, id, id);
    TRY(l, "setsid", SYS_setsid, 0);
    ADD(l, "umask", SYS_umask, 022);
}

static void add_capabilities(list *l, const delivery *d)
{
    const long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                      SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                      SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    ADD(l, "lock securebits", SYS_prctl, PR_SET_SECUREBITS, bits);
    for (long cap = 0; cap <= 63; cap++) /* that none is left is read from the kernel later */
        TRY(l, "drop a capability", SYS_prctl, PR_CAPBSET_DROP, cap);
    ADD(l, "capset", SYS_capset, IN_SMALL(d, caps_head), IN_SMALL(d, no_caps));
    ADD(l, "no_new_privs", SYS_prctl, PR_SET_NO_NEW_PRIVS, 1);
}

static void add_last(list *l, const delivery *d)
{
    ADD(l, "prctl", SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
    ADD(l, "prctl", SYS_prctl, PR_SET_DUMPABLE, 1);
    if (d->order->jail.has_landlock)
        ADD(l, "landlock_restrict_self", SYS_landlock_restrict_self, RULES_FD, 0);
    ADD(l, "seccomp", SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
        IN_SMALL(d, program));
}

static bool write_small(delivery *d, rt_error *err)
{
    static small all;
    ssize_t size = pread(d->fds[JAIL_FD_FILTER], all.filter, sizeof(all.filter), 0);
    if (size <= 0 || size % (ssize_t)sizeof(all.filter[0]) != 0)
        return rt_fail(err, RT_INTERNAL, "the seccomp program has %zd bytes", size);
    memcpy(all.workdir, d->order->jail.workdir, sizeof(all.workdir));
    all.caps_head = (struct __user_cap_header_struct){ .version = _LINUX_CAPABILITY_VERSION_3 };
    all.program = (struct sock_fprog){
        .len = (unsigned short)((size_t)size / sizeof(all.filter[0])),
        .filter = (struct sock_filter *)IN_SMALL(d, filter),
    };
    return sandbox_remote_write(&d->guest, d->room + REMOTE_ROOM_FREE, &all,
                                offsetof(small, filter) + (size_t)size, err);
}

static bool hand_listener(delivery *d, long listener, rt_error *err)
{
    int pidfd RT_CLEANUP(rt_closep) = (int)syscall(SYS_pidfd_open, d->guest.pid, 0);
    int fd RT_CLEANUP(rt_closep) = (int)syscall(SYS_pidfd_getfd, pidfd, listener, 0);
    if (fd < 0 || jail_packet_send(d->fds[JAIL_FD_PORCH], "L", 1, &fd, 1) != 1)
        return rt_fail_errno(err, "hand over the seccomp listener");
    return true;
}

static bool seal(delivery *d, rt_error *err)
{
    list l = { .count = 0 };
    long failed[2];
    add_entry(&l, d);
    add_descriptors(&l, d);
    add_ids(&l, d->order->jail.uid);
    add_capabilities(&l, d);
    add_last(&l, d);
    return write_small(d, err) && sandbox_remote_run(&d->guest, d->room, l.lines, l.count, err) &&
           hand_listener(d, l.lines[l.count - 1].result, err) &&
           sandbox_remote_call(&d->guest, &failed[0], err, SYS_close_range, RULES_FD, ~0u, 0) &&
           sandbox_remote_call(&d->guest, &failed[1], err, SYS_munmap, d->room,
                               REMOTE_ROOM_BYTES) &&
           (failed[0] == 0 && failed[1] == 0 ? true : rt_fail(err, RT_INTERNAL, "tidy up"));
}

/* Limits that the source has laid on itself, its branch has too. */
static bool copy_limits(delivery *d, rt_error *err)
{
    struct rlimit limit, no_core = { 0, 0 };
    for (int kind = 0; d->source.pid > 0 && kind < (int)RLIM_NLIMITS; kind++)
        if (prlimit(d->source.pid, (__rlimit_resource_t)kind, NULL, &limit) != 0 ||
            prlimit(d->guest.pid, (__rlimit_resource_t)kind, &limit, NULL) != 0)
            return rt_fail_errno(err, "copy the limits of the interpreter");
    if (prlimit(d->guest.pid, RLIMIT_CORE, &no_core, NULL) != 0)
        return rt_fail_errno(err, "forbid core files");
    return true;
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

static int open_scratch(pid_t init)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/root" RT_WORKDIR, init);
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* "Uid:" and three more: it is the user whom the scratch directory belongs to, in every way. */
static bool is_cell_user(const delivery *d, const char *status, const char *key)
{
    unsigned ids[4] = { 0 };
    struct stat st;
    int scratch RT_CLEANUP(rt_closep) = open_scratch(d->order->init);
    const char *at = strstr(status, key);
    if (scratch < 0 || fstat(scratch, &st) != 0 || !at ||
        sscanf(at + strlen(key), "%u %u %u %u", &ids[0], &ids[1], &ids[2], &ids[3]) != 4)
        return false;
    unsigned own = strcmp(key, "\nUid:") == 0 ? st.st_uid : st.st_gid;
    return ids[0] == own && ids[1] == own && ids[2] == own && ids[3] == own;
}

static bool say_hello(delivery *d, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    char path[64], spaces[256], text[1024];
    rt_str status;
    snprintf(path, sizeof(path), "/proc/%d/status", d->guest.pid);
    if (!rt_read_file(path, 65536, &arena, &status, err))
        return false;
    if (!is_cell_user(d, status.ptr, "\nUid:") || !is_cell_user(d, status.ptr, "\nGid:"))
        return rt_fail(err, RT_UNAVAILABLE, "the guest is not the user it should be");
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
    long pid = 0;
    if (d->order->source == 0)
        return sandbox_remote_catch(d->order->twin, &d->twin, err);
    if (!sandbox_remote_catch(d->order->source, &d->source, err))
        return false;
    bool ok = refuse_shared_memory(d->order->source, err);
    ok = ok && sandbox_remote_hold(d->order->twin, &old, err) &&
         sandbox_remote_call(&old, &pid, err, SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
    if (ok && pid < 0)
        ok = rt_fail(err, RT_LIMIT, "there is no memory, or no room for a process, for a branch");
    ok = ok && sandbox_remote_adopt(&old, &d->twin, err);
    sandbox_remote_leave(&d->source);
    return ok;
}

static const struct {
    const char *name;
    bool (*apply)(delivery *, rt_error *);
} steps[] = {
    { "copy the memory", fork_twin },   { "clone the guest", clone_guest },
    { "seal the guest", seal },         { "copy its limits", copy_limits },
    { "copy its files", copy_scratch }, { "say hello", say_hello },
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
