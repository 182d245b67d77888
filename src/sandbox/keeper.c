/*
 * keeper.c - starts the house and tidies up after it.
 *
 * The keeper is the daemon's only child. While it still has the rights it was started with it makes
 * the cgroups and writes the house's id maps; then it starts the warden in namespaces of its own
 * and sleeps. When the daemon or the warden is gone, however they went, it ends the other and
 * removes the cgroups; if it is killed itself, the warden ends too and the broom, its own child,
 * removes them. Neither reads anything that comes from a cell.
 *
 * A program that links this room needs no code for it: the constructor below turns the re-executed
 * program into the keeper before its main() would run.
 */
#include "sandbox/sandbox_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CGROUP_MOUNT    "/sys/fs/cgroup"
#define LANDLOCK_WANTED 2 /* the first version that lets files be renamed between directories */
#define HOUSE_FLAGS                                                                                \
    (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET)
#define CONFIG_MAX (64u << 10)

char sandbox_keeper_name[] = "retort-keeper";

typedef struct keeper {
    rt_arena arena;
    rt_sandbox_config config;
    cgroup_tree cgroups;
    cgroup_slot slots[RT_CELLS_MAX];
    house_ids ids;
    int entry_fds[64];
    int daemon;
    int broom; /* a pipe that ends when we do, or -1 */
    pid_t warden;
    int warden_pidfd;
} keeper;

int sandbox_landlock_version(void)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return version < 0 ? 0 : (int)version;
}

static bool read_config(keeper *k, rt_error *err)
{
    char *text = rt_arena_alloc_raw(&k->arena, CONFIG_MAX);
    size_t none;
    ssize_t n = jail_packet_recv(k->daemon, text, CONFIG_MAX, NULL, 0, &none, 0);
    if (n <= 0)
        return rt_fail_errno(err, "read the configuration");
    return sandbox_config_unpack((rt_str){ text, (size_t)n }, &k->arena, &k->config, err);
}

static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static bool prepare_cgroups(keeper *k, rt_error *err)
{
    char own[4096] = "", name[64];
    rt_str text;
    if (rt_read_file("/proc/self/cgroup", sizeof(own) - 1, &k->arena, &text, &(rt_error){ 0 }))
        memcpy(own, text.ptr, text.len);
    snprintf(name, sizeof(name), "retort-%d", getpid());
    sandbox_cgroup_sweep(CGROUP_MOUNT);
    if (!sandbox_cgroup_find(CGROUP_MOUNT, own, name, &k->cgroups, err))
        return !k->config.is_cgroup_required;
    return sandbox_cgroup_make(&k->cgroups, k->config.max_cells, k->slots, err);
}

/* The house may not be able to walk to these paths (a clone below /root, say); we are. */
static void detach_entries(keeper *k)
{
    for (size_t i = 0; i < k->config.root_count; i++)
        k->entry_fds[i] = (int)syscall(SYS_open_tree, AT_FDCWD, k->config.root[i].source,
                                       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
}

/* From here on we only end the warden, and remove our cgroups from directories root cannot write.
 */
static void keep_little(void)
{
    const uint32_t kept = 1u << CAP_KILL | 1u << CAP_DAC_OVERRIDE;
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct some[2] = { { .effective = kept, .permitted = kept }, { 0 } };
    if (geteuid() == 0)
        syscall(SYS_capset, &head, some);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static _Noreturn void become_broom(const keeper *k, int keeper_lives)
{
    char byte;
    prctl(PR_SET_NAME, "retort-broom");
    dup2(keeper_lives, 3);
    syscall(SYS_close_range, 4U, ~0U, 0);
    keep_little();
    while (read(3, &byte, 1) < 0 && errno == EINTR)
        ;
    sandbox_cgroup_remove(&k->cgroups);
    _exit(0);
}

/* Should even we be killed, somebody is left to remove the cgroups. */
static bool start_broom(keeper *k, rt_error *err)
{
    int lives[2];
    k->broom = -1;
    if (k->cgroups.kind == CGROUP_NONE)
        return true;
    if (pipe2(lives, O_CLOEXEC) != 0)
        return rt_fail_errno(err, "pipe");
    pid_t pid = fork();
    if (pid == 0)
        become_broom(k, lives[0]);
    close(lives[0]);
    k->broom = lives[1];
    return pid > 0 || rt_fail_errno(err, "fork the broom");
}

static _Noreturn void become_warden(keeper *k, int mapped)
{
    char byte;
    warden_setup setup = { .daemon = k->daemon,
                           .config = &k->config,
                           .entry_fds = k->entry_fds,
                           .cgroups = &k->cgroups,
                           .slots = k->slots,
                           .ids = &k->ids,
                           .keeper = mapped,
                           .has_landlock = sandbox_landlock_version() >= LANDLOCK_WANTED };
    rt_closep(&k->broom);
    if (read(mapped, &byte, 1) != 1)
        _exit(1);
    setgroups(0, NULL); /* not granted everywhere; where it is not, there is nothing to drop */
    if (setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0)
        _exit(1);
    prctl(PR_SET_DUMPABLE, 0);
    sandbox_warden_main(&setup);
}

static bool start_warden(keeper *k, rt_error *err)
{
    int mapped[2];
    if (pipe2(mapped, O_CLOEXEC) != 0)
        return rt_fail_errno(err, "pipe");
    k->warden = jail_clone(HOUSE_FLAGS);
    if (k->warden == 0) {
        close(mapped[1]);
        become_warden(k, mapped[0]);
    }
    close(mapped[0]);
    bool ok = k->warden > 0 || rt_fail_errno(err, "make the namespaces of the house");
    ok = ok && sandbox_ids_apply(&k->ids, k->warden, err);
    /* Our end stays open for as long as we live: the warden watches it. */
    ok = ok && (write(mapped[1], "", 1) == 1 || rt_fail_errno(err, "wake the warden"));
    if (ok)
        k->warden_pidfd = (int)syscall(SYS_pidfd_open, k->warden, 0);
    return ok;
}

static void watch(const keeper *k)
{
    struct pollfd polled[2] = { { .fd = k->daemon, .events = POLLRDHUP },
                                { .fd = k->warden_pidfd, .events = POLLIN } };
    while (poll(polled, 2, -1) < 0 && errno == EINTR)
        ;
}

int sandbox_keeper_main(int daemon_socket)
{
    static keeper k;
    lease_message failed = { .kind = LEASE_FAIL };
    k.daemon = daemon_socket;
    prctl(PR_SET_NAME, "retort-keeper");
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_IGN); /* a terminal's Ctrl-C is for the daemon, which decides */
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    setsid();
    raise_descriptor_limit();
    bool ok = read_config(&k, &failed.error) && prepare_cgroups(&k, &failed.error) &&
              start_broom(&k, &failed.error) && sandbox_ids_choose(&k.ids, &failed.error);
    if (ok) {
        detach_entries(&k);
        ok = start_warden(&k, &failed.error);
    }
    if (ok) {
        keep_little();
        watch(&k);
    } else {
        jail_packet_send(k.daemon, &failed, sizeof(failed), NULL, 0);
    }
    if (k.warden > 0) {
        kill(k.warden, SIGKILL);
        waitpid(k.warden, NULL, 0);
    }
    sandbox_cgroup_remove(&k.cgroups);
    return ok ? 0 : 1;
}

__attribute__((constructor)) static void become_keeper(int argc, char **argv)
{
    if (argc == 1 && strcmp(argv[0], sandbox_keeper_name) == 0)
        _exit(sandbox_keeper_main(3));
}
