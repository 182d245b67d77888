/*
 * nursery.c - a process that lives in a prepared root and gives birth there.
 *
 * Being small and already in the right place, it makes a cell's first process with one clone();
 * zygotes are born here too, and stay in its mount namespace. All its children belong to the
 * warden (CLONE_PARENT), which reaps them.
 *
 * A fork copies, and an exit takes down, every mapping of a process, and the daemon's program has
 * two hundred with all its libraries. So the nursery becomes another program once its root is
 * built: guests/nursery, which is this file and the few it needs, linked statically.
 */
#include "sandbox/sandbox_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARGV_MAX 32
#define CELL_FLAGS                                                                                 \
    (CLONE_PARENT | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS)

enum { BIRTH_LINK, BIRTH_PORCH, BIRTH_CELL_FDS }; /* with an order for a cell */
enum { BIRTH_ORDERS, BIRTH_STDERR, BIRTH_ZYGOTE_FDS };

static char *const zygote_env[] = {
    "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" RT_WORKDIR, "LANG=C.UTF-8", "TMPDIR=/tmp",
    "MPLBACKEND=Agg", "MPLCONFIGDIR=" RT_WORKDIR "/.tmp/matplotlib", "PYTHONDONTWRITEBYTECODE=1",
    "UV_USE_IO_URING=0",
    /* What a library looks up at its first call, every child would look up again. */
    "LD_BIND_NOW=1",
    /* Threads are not forked, and who waits for one waits for ever. */
    "OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1", NULL
};

static bool map_cell_ids(const birth_order *order, pid_t pid, rt_error *err)
{
    char map[96];
    if (order->has_range)
        snprintf(map, sizeof(map), "%u %u 1\n%u %u 1\n", CELL_ROOT, order->house_id, CELL_UID,
                 order->house_id + 1);
    else
        snprintf(map, sizeof(map), "%u 0 1\n", CELL_UID);
    return sandbox_ids_write(pid, "uid_map", map, err) &&
           sandbox_ids_write(pid, "gid_map", map, err);
}

static pid_t bear_cell(const birth_order *order, const root_plan *plan, const int *fds,
                       rt_error *err)
{
    int sync[2];
    if (pipe2(sync, O_CLOEXEC) != 0)
        return rt_fail_errno(err, "pipe"), -1;
    pid_t pid = jail_clone(CELL_FLAGS);
    if (pid == 0) {
        char byte;
        close(sync[1]);
        if (read(sync[0], &byte, 1) != 1)
            _exit(1);
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int i = 0; i <= STDERR_FILENO; i++) /* the daemon's own have no place in a cell */
            dup2(null, i);
        int link = fcntl(fds[BIRTH_LINK], F_DUPFD_CLOEXEC, 100);
        int porch = fcntl(fds[BIRTH_PORCH], F_DUPFD_CLOEXEC, 101);
        syscall(SYS_close_range, 3U, 99U, 0);
        syscall(SYS_close_range, (unsigned)RT_MAX(link, porch) + 1, ~0U, 0);
        sandbox_init_main(order, plan, link, porch);
    }
    bool ok = pid > 0 || rt_fail_errno(err, "clone a cell");
    ok = ok && map_cell_ids(order, pid, err);
    if (ok && write(sync[1], "", 1) != 1)
        ok = rt_fail_errno(err, "wake a cell");
    close(sync[0]);
    close(sync[1]);
    return ok ? pid : -1;
}

static _Noreturn void become_zygote(char *text, size_t len, const int *fds)
{
    char *argv[ARGV_MAX + 1];
    size_t count = 0;
    for (char *at = text; at < text + len && count < ARGV_MAX; at += strlen(at) + 1)
        argv[count++] = at;
    argv[count] = NULL;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int orders = fcntl(fds[BIRTH_ORDERS], F_DUPFD_CLOEXEC, 100);
    int errors = fcntl(fds[BIRTH_STDERR], F_DUPFD_CLOEXEC, 100);
    if (count == 0 || null < 0 || dup2(null, 0) < 0 || dup2(errors, 1) < 0 || dup2(errors, 2) < 0 ||
        dup2(orders, JAIL_ORDERS_FD) < 0)
        _exit(126);
    syscall(SYS_close_range, JAIL_ORDERS_FD + 1, ~0U, 0);
    signal(SIGPIPE, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execve(argv[0], argv, zygote_env);
    dprintf(2, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static pid_t bear_zygote(char *text, size_t len, const int *fds, rt_error *err)
{
    pid_t pid = jail_clone(CLONE_PARENT);
    if (pid == 0)
        become_zygote(text, len, fds);
    if (pid < 0)
        rt_fail_errno(err, "clone a zygote");
    return pid;
}

static pid_t obey(const root_plan *plan, char *packet, size_t size, const int *fds, size_t fd_count,
                  birth_reply *reply)
{
    birth_order order;
    memcpy(&order, packet, sizeof(order));
    reply->serial = order.serial;
    char *text = packet + sizeof(order);
    size_t text_len = size - sizeof(order);
    if (order.argv_bytes != text_len || fd_count != BIRTH_CELL_FDS ||
        (text_len > 0 && text[text_len - 1] != '\0'))
        return rt_fail(&reply->error, RT_INTERNAL, "a birth order of %zu bytes makes no sense",
                       size),
               -1;
    return order.is_zygote ? bear_zygote(text, text_len, fds, &reply->error)
                           : bear_cell(&order, plan, fds, &reply->error);
}

static void become_small(int orders, const root_plan *plan, const char *program)
{
    char *argv[RT_READ_PATHS_MAX + 2] = { (char *)program }, *no_env[] = { NULL };
    for (size_t i = 0; i < plan->read_path_count; i++)
        argv[1 + i] = (char *)plan->read_paths[i];
    fcntl(orders, F_SETFD, 0);
    execve(program, argv, no_env);
    fcntl(orders, F_SETFD, FD_CLOEXEC); /* then as we are: slower, and no different else */
}

_Noreturn void sandbox_nursery_main(int orders, const root_plan *plan, const char *program)
{
    birth_reply failed = { .pid = -1 };
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!sandbox_root_build(plan, &failed.error)) {
        jail_packet_send(orders, &failed, sizeof(failed), NULL, 0);
        _exit(0);
    }
    if (program)
        become_small(orders, plan, program);
    sandbox_nursery_serve(orders, plan);
}

_Noreturn void sandbox_nursery_serve(int orders, const root_plan *plan)
{
    birth_reply first = { 0 };
    prctl(PR_SET_NAME, "retort-nursery");
    prctl(PR_SET_DUMPABLE, 1); /* or we could not open the id maps of our children */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    jail_packet_send(orders, &first, sizeof(first), NULL, 0);
    for (;;) {
        char packet[PACKET_MAX];
        int fds[BIRTH_CELL_FDS];
        size_t fd_count;
        birth_reply reply = { 0 };
        ssize_t n =
            jail_packet_recv(orders, packet, sizeof(packet), fds, RT_COUNT(fds), &fd_count, 0);
        if (n < (ssize_t)sizeof(birth_order))
            break;
        reply.pid = obey(plan, packet, (size_t)n, fds, fd_count, &reply);
        for (size_t i = 0; i < fd_count; i++)
            close(fds[i]);
        if (jail_packet_send(orders, &reply, sizeof(reply), NULL, 0) < 0)
            break;
    }
    _exit(0);
}
