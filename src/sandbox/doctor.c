/*
 * doctor.c - which layers of isolation this host can give, tried out one by one.
 *
 * Each check does the thing in a child process; nothing is guessed from version numbers.
 */
#include "sandbox/sandbox_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs `try` in a child; its errno, 0 when it worked. */
static int try_in_child(int (*attempt)(void))
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        int failed = attempt();
        _exit(failed ? (errno ? errno : 255) : 0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EFAULT;
}

static int try_userns(void)
{
    return unshare(CLONE_NEWUSER);
}

static int try_namespaces(void)
{
    return unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS |
                   CLONE_NEWNET | CLONE_NEWCGROUP);
}

static int try_notify(void)
{
    uint32_t action = SECCOMP_RET_USER_NOTIF;
    return (int)syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action);
}

static void check_kernel(rt_layer *l)
{
    struct utsname name;
    int major = 0, minor = 0;
    uname(&name);
    sscanf(name.release, "%d.%d", &major, &minor);
    snprintf(l->detail, sizeof(l->detail), "Linux %.60s", name.release);
    if (major > 5 || (major == 5 && minor >= 12))
        return;
    l->state = RT_LAYER_MISSING;
    snprintf(l->fix, sizeof(l->fix), "Linux 5.12 or newer is needed (mount_setattr)");
}

static void check_userns(rt_layer *l)
{
    int failed = try_in_child(try_userns);
    snprintf(l->detail, sizeof(l->detail), "%s", failed ? strerror(failed) : "can be made");
    if (!failed)
        return;
    l->state = RT_LAYER_MISSING;
    snprintf(l->fix, sizeof(l->fix), "%s",
             access("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", F_OK) == 0
                 ? "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu 24.04), or "
                   "run as root"
                 : "sysctl -w user.max_user_namespaces=10000 and "
                   "kernel.unprivileged_userns_clone=1; in a "
                   "container allow unshare (docker run --security-opt seccomp=unconfined)");
}

static void check_namespaces(rt_layer *l)
{
    int failed = try_in_child(try_namespaces);
    snprintf(l->detail, sizeof(l->detail), "%s",
             failed ? strerror(failed) : "pid, mount, ipc, uts, net, cgroup");
    if (failed) {
        l->state = RT_LAYER_MISSING;
        snprintf(l->fix, sizeof(l->fix),
                 "the kernel or a container refuses unshare(); see the line above");
    }
}

static void check_ids(rt_layer *l)
{
    house_ids ids;
    sandbox_ids_choose(&ids, NULL);
    if (ids.kind == IDS_RANGE) {
        snprintf(l->detail, sizeof(l->detail), "a range of %u from %u%s", HOUSE_IDS, ids.host_first,
                 ids.has_helper ? ", by newuidmap" : "");
        return;
    }
    l->state = RT_LAYER_FALLBACK;
    snprintf(l->detail, sizeof(l->detail),
             "your own id only: cells differ by namespace, not by user");
    snprintf(
        l->fix, sizeof(l->fix),
        "apt-get install uidmap and add 'NAME:100000:65536' to /etc/subuid and /etc/subgid, or run "
        "as root");
}

static void check_seccomp(rt_layer *l)
{
    int failed = try_in_child(try_notify);
    snprintf(l->detail, sizeof(l->detail), "%s",
             failed ? strerror(failed) : "filter with user notification");
    if (failed) {
        l->state = RT_LAYER_MISSING;
        snprintf(l->fix, sizeof(l->fix),
                 "a kernel with CONFIG_SECCOMP_FILTER, 5.5 or newer, is needed");
    }
}

static void check_cgroup(rt_layer *l)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str own = { "", 0 };
    cgroup_tree tree;
    rt_error err = { 0 };
    rt_read_file("/proc/self/cgroup", 4096, &arena, &own, &err);
    if (sandbox_cgroup_find("/sys/fs/cgroup", own.len ? own.ptr : "", "retort-0", &tree, &err)) {
        snprintf(l->detail, sizeof(l->detail), "version %d, below %.120s",
                 tree.kind == CGROUP_V1 ? 1 : 2, tree.dirs[0]);
        return;
    }
    l->state = RT_LAYER_FALLBACK;
    snprintf(l->detail, sizeof(l->detail),
             "not writable: rlimits and a watcher limit memory instead");
    snprintf(l->fix, sizeof(l->fix),
             "run as root, or with systemd: systemd-run --user --scope -p Delegate=yes retort …");
}

static void check_landlock(rt_layer *l)
{
    int version = sandbox_landlock_version();
    snprintf(l->detail, sizeof(l->detail), version ? "version %d" : "not in this kernel", version);
    if (version >= 2)
        return;
    l->state = RT_LAYER_FALLBACK;
    snprintf(
        l->fix, sizeof(l->fix),
        "Linux 5.19 or newer with landlock in the lsm= list; mounts enforce the same without it");
}

static const struct {
    const char *name;
    void (*check)(rt_layer *);
} checks[] = {
    { "kernel", check_kernel },
    { "user namespaces", check_userns },
    { "other namespaces", check_namespaces },
    { "user ids", check_ids },
    { "seccomp", check_seccomp },
    { "memory cgroup", check_cgroup },
    { "landlock", check_landlock },
};

size_t rt_sandbox_examine(rt_layer *layers, size_t max)
{
    size_t count = RT_MIN(RT_COUNT(checks), max);
    for (size_t i = 0; i < count; i++) {
        layers[i] = (rt_layer){ .name = checks[i].name, .state = RT_LAYER_OK };
        checks[i].check(&layers[i]);
    }
    return count;
}
