/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop and the clone, without a sandbox: an order that names no cell must fail in the zygote or
 * end its child, and nothing of it may stay. Sealing itself is shown end to end.
 */
#include "guests/jail/jail.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- jail_clone ---- */

typedef struct report {
    pid_t pid, tid, kernel_tid;
    bool has_robust_list, can_lock;
} report;

static report *shared;

static void share(void)
{
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

TestSuite(serve, .init = share);

static int status_of(pid_t pid)
{
    int status = -1;
    waitpid(pid, &status, 0);
    return status;
}

Test(serve, a_cloned_process_knows_who_it_is)
{
    pid_t pid = jail_clone(0);
    cr_assert_geq(pid, 0, "%s", strerror(errno));
    if (pid == 0) {
        void *robust = NULL;
        size_t len = 0;
        *shared =
            (report){ .pid = getpid(), .tid = gettid(), .kernel_tid = (pid_t)syscall(SYS_gettid) };
        shared->has_robust_list = syscall(SYS_get_robust_list, 0, &robust, &len) == 0 && robust;
        /* A recursive mutex compares owners by the thread id that glibc remembers. */
        pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
        shared->can_lock = pthread_mutex_lock(&mutex) == 0 && pthread_mutex_lock(&mutex) == 0;
        _exit(7);
    }
    int status = status_of(pid);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    cr_expect(shared->pid == pid && shared->tid == pid && shared->kernel_tid == pid);
    cr_expect(shared->has_robust_list && shared->can_lock);
    cr_expect_eq(gettid(), getpid(), "and so does its parent");
}

Test(serve, a_cloned_process_can_signal_itself)
{
    pid_t pid = jail_clone(0);
    if (pid == 0) {
        signal(SIGTERM, SIG_DFL);
        raise(SIGTERM); /* tgkill with the remembered id: a stale one would hit the parent, or
                           nobody */
        _exit(1);
    }
    int status = status_of(pid);
    cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

Test(serve, a_cloned_process_can_clone_and_have_threads)
{
    pid_t pid = jail_clone(0);
    if (pid == 0) {
        pid_t grandchild = jail_clone(0);
        if (grandchild == 0)
            _exit(gettid() == getpid() ? 3 : 4);
        int status = status_of(grandchild);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 5);
    }
    cr_expect_eq(WEXITSTATUS(status_of(pid)), 3);
}

Test(serve, a_child_may_be_given_to_the_parents_parent)
{
    int ends[2];
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    pid_t middle = fork();
    if (middle == 0) {
        pid_t child = jail_clone(CLONE_PARENT);
        if (child == 0)
            _exit(9);
        (void)!write(ends[1], &child, sizeof(child));
        _exit(waitpid(child, NULL, 0) < 0 && errno == ECHILD ? 0 : 1);
    }
    pid_t child = 0;
    cr_assert_eq(read(ends[0], &child, sizeof(child)), (ssize_t)sizeof(child));
    cr_expect_eq(WEXITSTATUS(status_of(child)), 9, "we reap it");
    cr_expect_eq(status_of(middle), 0, "and the one in between cannot");
}

Test(serve, a_clone_that_the_kernel_refuses_is_an_error)
{
    errno = 0;
    cr_expect_eq(jail_clone(CLONE_SIGHAND), -1);
    cr_expect_eq(errno, EINVAL);
}

/* ---- jail_serve ---- */

typedef struct zygote {
    int orders;
    pid_t pid;
} zygote;

static zygote start_zygote(void)
{
    int ends[2];
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        jail_serve(ends[1], &(jail_hooks){ 0 });
        _exit(99); /* only a sealed child gets here */
    }
    close(ends[1]);
    return (zygote){ ends[0], pid };
}

static jail_order_reply ask(const zygote *z, const void *order, size_t size, size_t fd_count)
{
    jail_order_reply reply = { 0 };
    int fds[JAIL_ORDER_FDS_MAX];
    size_t none;
    for (size_t i = 0; i < fd_count; i++)
        fds[i] = STDERR_FILENO;
    cr_assert_eq(jail_packet_send(z->orders, order, size, fds, fd_count), (ssize_t)size);
    cr_assert_eq(jail_packet_recv(z->orders, &reply, sizeof(reply), NULL, 0, &none, 0),
                 (ssize_t)sizeof(reply));
    return reply;
}

Test(serve, a_zygote_ends_when_its_warden_is_gone)
{
    zygote z = start_zygote();
    close(z.orders);
    cr_expect_eq(status_of(z.pid), 0);
}

Test(serve, an_order_of_the_wrong_shape_is_refused_and_the_next_is_heard)
{
    zygote z = start_zygote();
    jail_order order = { .serial = 41 };
    jail_order_reply reply = ask(&z, &order, sizeof(order) - 1, JAIL_FD_CGROUP);
    cr_expect(reply.pid == -1 && reply.error == EPROTO && reply.serial == 41);
    order.serial = 42;
    reply = ask(&z, &order, sizeof(order), JAIL_FD_CGROUP - 1);
    cr_expect(reply.pid == -1 && reply.error == EPROTO && reply.serial == 42);
    order.cgroup_count = 2;
    reply = ask(&z, &order, sizeof(order), JAIL_FD_CGROUP);
    cr_expect(reply.pid == -1 && reply.error == EPROTO, "two cgroups are named and none came");
    order.cgroup_count = UINT32_MAX;
    reply = ask(&z, &order, sizeof(order), JAIL_FD_CGROUP);
    cr_expect(reply.pid == -1 && reply.error == EPROTO);
    close(z.orders);
    cr_expect_eq(status_of(z.pid), 0);
}

Test(serve, an_order_without_a_cell_forks_nobody)
{
    zygote z = start_zygote();
    jail_order order = { .serial = 7 };
    jail_order_reply reply =
        ask(&z, &order, sizeof(order), JAIL_FD_CGROUP); /* stderr is no process */
    cr_expect_eq(reply.pid, -1);
    cr_expect_neq(reply.error, 0);
    cr_expect_eq(reply.serial, 7);
    close(z.orders);
    cr_expect_eq(status_of(z.pid), 0);
}

Test(serve, what_a_zygote_says_of_itself_is_one_packet)
{
    int ends[2];
    char about[64] = "";
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    cr_assert(jail_announce(ends[0], "{\"version\":\"3\"}", &(rt_error){ 0 }));
    cr_expect_eq(read(ends[1], about, sizeof(about)), 15);
    cr_expect_str_eq(about, "{\"version\":\"3\"}");
    close(ends[1]);
    rt_error err = { 0 };
    cr_expect(!jail_announce(ends[0], "{}", &err));
    cr_expect_eq(err.sys_errno, EPIPE);
    close(ends[0]);
}
