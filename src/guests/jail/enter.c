/*
 * enter.c - how a freshly forked process becomes the inhabitant of a cell.
 *
 * The steps run in the order of the table below and the order matters: cgroups while we still may
 * write them, namespaces while we still have capabilities, the filter last because it forbids most
 * of what stands above it.
 *
 * Here: no malloc, no stdio. The parent may be any interpreter.
 */
#include "guests/jail/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILTER_MAX 4096 /* BPF_MAXINSNS */

typedef struct entry {
    const jail_order *order;
    int *fds;
} entry;

static bool join_cgroups(entry *e, rt_error *err)
{
    for (uint32_t i = 0; i < e->order->cgroup_count; i++)
        if (write(e->fds[JAIL_FD_CGROUP + i], "0", 1) != 1)
            return rt_fail_errno(err, "write cgroup.procs");
    if (unshare(CLONE_NEWCGROUP) != 0) /* from here on our cgroup is the top of the tree */
        return rt_fail_errno(err, "hide the cgroup tree");
    return true;
}

/* Forked while the cell was being built, we must not see it before it is done. */
static bool await_cell(entry *e, rt_error *err)
{
    char word = 0;
    size_t none;
    if (e->order->is_unbuilt &&
        (jail_packet_recv(e->fds[JAIL_FD_PORCH], &word, 1, NULL, 0, &none, 0) != 1 ||
         word != JAIL_BUILT))
        return rt_fail(err, RT_UNAVAILABLE, "its first process ended early");
    return true;
}

static bool join_namespaces(entry *e, rt_error *err)
{
    int kinds = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;
    if (setns(e->fds[JAIL_FD_INIT], kinds) != 0)
        return rt_fail_errno(err, "setns");
    if (chdir(e->order->workdir) != 0)
        return rt_fail_errno(err, "chdir %s", e->order->workdir);
    return true;
}

/* Moves the descriptors the guest keeps to 0..3, the two it still needs after them, closes all
 * else. */
static bool settle_descriptors(entry *e, rt_error *err)
{
    static const int keep[] = { JAIL_FD_STDIN,   JAIL_FD_STDOUT, JAIL_FD_STDERR,
                                JAIL_FD_CONTROL, JAIL_FD_PORCH,  JAIL_FD_FILTER };
    enum { KEPT = sizeof(keep) / sizeof(keep[0]), HIGH = 200 };
    for (int i = 0; i < KEPT; i++) {
        int fd = fcntl(e->fds[keep[i]], F_DUPFD_CLOEXEC, HIGH);
        if (fd < 0)
            return rt_fail_errno(err, "dup");
        e->fds[keep[i]] = fd;
    }
    for (int i = 0; i < KEPT; i++) {
        if (dup3(e->fds[keep[i]], i, i > STDERR_FILENO ? O_CLOEXEC : 0) < 0)
            return rt_fail_errno(err, "dup3");
        e->fds[keep[i]] = i;
    }
    if (syscall(SYS_close_range, KEPT, ~0U, 0) != 0)
        return rt_fail_errno(err, "close_range");
    return true;
}

static bool change_ids(entry *e, rt_error *err)
{
    uint32_t id = e->order->uid;
    /* Where the host's map grants no setgroups() the kernel has dropped the groups already. */
    if (setgroups(0, NULL) != 0 && errno != EPERM)
        return rt_fail_errno(err, "setgroups");
    if (setresgid(id, id, id) != 0 || setresuid(id, id, id) != 0)
        return rt_fail_errno(err, "change to user %u", id);
    setsid();
    umask(022);
    return true;
}

static bool drop_capabilities(entry *e, rt_error *err)
{
    (void)e;
    unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                         SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                         SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) != 0)
        return rt_fail_errno(err, "lock securebits");
    for (int cap = 0; cap <= 63; cap++)
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0) {
            if (errno == EINVAL)
                break; /* past the last one this kernel knows */
            return rt_fail_errno(err, "drop capability %d", cap);
        }
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };
    if (syscall(SYS_capset, &head, none) != 0)
        return rt_fail_errno(err, "capset");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return rt_fail_errno(err, "no_new_privs");
    return true;
}

/*
 * A cell outlives its zygote but not its warden. Changing ids made us "not dumpable", which would
 * hide our own /proc/self from us; nobody outside the cell can reach us whatever this says.
 */
static bool settle_process(entry *e, rt_error *err)
{
    (void)e;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0)
        return rt_fail_errno(err, "prctl");
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    struct rlimit no_core = { 0, 0 };
    if (setrlimit(RLIMIT_CORE, &no_core) != 0)
        return rt_fail_errno(err, "forbid core files");
    unsigned seed;
    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
        return rt_fail_errno(err, "getrandom");
    srand(seed);
    srandom(seed ^ 0x9e3779b9u);
    return true;
}

static bool allow_beneath(int ruleset, const char *root, const char *path, uint64_t access,
                          rt_error *err)
{
    char whole[JAIL_PATH_MAX * 2];
    snprintf(whole, sizeof(whole), "%s%s", root, path);
    int dir = open(whole, O_PATH | O_CLOEXEC);
    if (dir < 0)
        return errno == ENOENT ? true : rt_fail_errno(err, "open %s", path);
    struct landlock_path_beneath_attr rule = { .allowed_access = access, .parent_fd = dir };
    int failed = (int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    int saved = errno;
    close(dir);
    errno = saved;
    return failed ? rt_fail_errno(err, "landlock %s", path) : true;
}

/* Says again, by another mechanism, what the mounts say: read anything here, write only scratch. */
int jail_landlock(const jail_order *order, const char *root, rt_error *err)
{
    const uint64_t reads =
        LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
    const uint64_t all = (LANDLOCK_ACCESS_FS_REFER << 1) - 1; /* all of version 2 */
    const uint64_t device = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;
    const struct {
        const char *path;
        uint64_t access;
    } rules[] = {
        { "/", reads },          { order->workdir, order->is_scratch_readonly ? reads : all },
        { "/dev/null", device }, { "/dev/zero", device },
        { "/dev/full", device }, { "/proc", reads | LANDLOCK_ACCESS_FS_WRITE_FILE },
    };
    struct landlock_ruleset_attr attr = { .handled_access_fs = all };
    int ruleset =
        (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr.handled_access_fs), 0);
    bool ok = ruleset >= 0 || rt_fail_errno(err, "landlock_create_ruleset");
    for (size_t i = 0; ok && i < sizeof(rules) / sizeof(rules[0]); i++)
        ok = allow_beneath(ruleset, root, rules[i].path, rules[i].access, err);
    if (!ok && ruleset >= 0)
        close(ruleset);
    return ok ? ruleset : -1;
}

static bool apply_landlock(entry *e, rt_error *err)
{
    if (!e->order->has_landlock)
        return true;
    int ruleset = jail_landlock(e->order, "", err);
    if (ruleset < 0)
        return false;
    bool ok = syscall(SYS_landlock_restrict_self, ruleset, 0) == 0 ||
              rt_fail_errno(err, "landlock_restrict_self");
    close(ruleset);
    return ok;
}

/* Loads the filter and gives its listener to the cell's first process, which answers refusals. */
static bool load_filter(entry *e, rt_error *err)
{
    struct sock_filter program[FILTER_MAX];
    ssize_t size = pread(e->fds[JAIL_FD_FILTER], program, sizeof(program), 0);
    if (size <= 0 || size % (ssize_t)sizeof(program[0]) != 0)
        return rt_fail(err, RT_INTERNAL, "the seccomp program has %zd bytes", size);
    close(e->fds[JAIL_FD_FILTER]);
    struct sock_fprog prog = { .len = (unsigned short)((size_t)size / sizeof(program[0])),
                               .filter = program };
    int listener =
        (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
    if (listener < 0)
        return rt_fail_errno(err, "seccomp");
    char byte = 'L';
    if (jail_packet_send(e->fds[JAIL_FD_PORCH], &byte, 1, &listener, 1) != 1)
        return rt_fail_errno(err, "hand over the seccomp listener");
    close(listener);
    close(e->fds[JAIL_FD_PORCH]);
    return true;
}

/* Data pages we have already, from /proc/self/statm (its sixth number). */
static uint64_t read_data_bytes(void)
{
    char text[128] = "";
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    unsigned long pages = 0;
    if (n <= 0 || sscanf(text, "%*u %*u %*u %*u %*u %lu", &pages) != 1)
        return 0;
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t own_data_bytes; /* of the interpreter, before it runs anything for the user */

void jail_settle(void)
{
    own_data_bytes = read_data_bytes();
}

static bool say_hello(entry *e, rt_error *err)
{
    char layers[640], text[768];
    jail_settle();
    jail_describe(layers, sizeof(layers), e->order->has_landlock);
    int n = snprintf(text, sizeof(text), "{\"op\":\"hello\",\"layers\":%s}", layers);
    return jail_frame_send(JAIL_CONTROL_FD, text, (size_t)n, NULL, 0, err);
}

static const struct {
    const char *name;
    bool (*apply)(entry *, rt_error *);
} steps[] = {
    { "join the cgroups", join_cgroups },
    { "wait for the cell", await_cell },
    { "join the cell", join_namespaces },
    { "settle descriptors", settle_descriptors },
    { "change ids", change_ids },
    { "drop capabilities", drop_capabilities },
    { "settle the process", settle_process },
    { "apply Landlock", apply_landlock },
    { "filter system calls", load_filter },
    { "say hello", say_hello },
};

bool jail_enter(const jail_order *order, int *fds, rt_error *err)
{
    entry e = { .order = order, .fds = fds };
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        if (!steps[i].apply(&e, err))
            return rt_wrap(err, "%s", steps[i].name);
    return true;
}

/* Which namespaces we are in, so that the daemon can see that they are not its own. */
static void describe_namespaces(char *text, size_t size)
{
    static const char *const kinds[] = { "user", "pid", "mnt", "ipc", "uts", "net", "cgroup" };
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && used < size; i++) {
        char path[32];
        struct stat st;
        snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i]);
        unsigned long inode = stat(path, &st) == 0 ? (unsigned long)st.st_ino : 0;
        used += (size_t)snprintf(text + used, size - used, "%s\"%s\":%lu", i ? "," : "", kinds[i],
                                 inode);
    }
}

void jail_describe(char *text, size_t size, bool has_landlock)
{
    char spaces[256];
    describe_namespaces(spaces, sizeof(spaces));
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct have[2] = { { 0 }, { 0 } };
    bool has_caps = syscall(SYS_capget, &head, have) != 0 || have[0].permitted ||
                    have[1].permitted || have[0].effective || have[1].effective;
    snprintf(text, size,
             "{\"uid\":%u,\"gid\":%u,\"pid\":%d,\"capabilities\":\"%s\",\"no_new_privs\":%s,"
             "\"seccomp\":\"%s\",\"landlock\":%s,\"ns\":{%s}}",
             getuid(), getgid(), getpid(), has_caps ? "some" : "none",
             prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? "true" : "false",
             prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2 ? "filter" : "off",
             has_landlock ? "true" : "false", spaces);
}

static bool lower(int kind, uint64_t value, rt_error *err)
{
    struct rlimit now;
    if (value == 0)
        return true;
    if (getrlimit((__rlimit_resource_t)kind, &now) != 0)
        return rt_fail_errno(err, "getrlimit %d", kind);
    rlim_t wanted = value < now.rlim_max ? (rlim_t)value : now.rlim_max;
    struct rlimit then = { .rlim_cur = wanted, .rlim_max = wanted };
    return setrlimit((__rlimit_resource_t)kind, &then) == 0
               ? true
               : rt_fail_errno(err, "setrlimit %d", kind);
}

bool jail_limit(const jail_limits *limits, rt_error *err)
{
    uint64_t data = limits->data_bytes ? limits->data_bytes + own_data_bytes : 0;
    /* The soft CPU limit comes a second before the hard one, so that SIGXCPU names the cause. */
    if (limits->cpu_seconds) {
        struct rlimit cpu = { .rlim_cur = limits->cpu_seconds,
                              .rlim_max = limits->cpu_seconds + 1 };
        if (setrlimit(RLIMIT_CPU, &cpu) != 0)
            return rt_fail_errno(err, "setrlimit cpu");
    }
    return lower(RLIMIT_DATA, data, err) && lower(RLIMIT_FSIZE, limits->file_bytes, err) &&
           lower(RLIMIT_NPROC, limits->processes, err) &&
           lower(RLIMIT_NOFILE, limits->descriptors, err);
}
