/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open_jail.c - a jail without walls: what is left of a cell when nothing seals it.
 *
 * Linked with --wrap=jail_serve,--wrap=jail_is_ahead into a copy of each guest, it lets the same
 * zygote fork and the same code answer the same frames, without a namespace, a filter or a limit.
 * The time that takes is the least a cell could take.
 *
 * An order is one byte, 'a' for a process made ahead of its run, with four descriptors: stdin,
 * stdout, stderr, control. It is answered by the child's pid.
 */
#include "guests/jail/jail.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

int __wrap_jail_serve(int orders_fd, const jail_hooks *hooks);
bool __wrap_jail_is_ahead(void);

enum { ORDER_FDS = 4, OUT_OF_WAY = 300 };

static bool is_ahead;

bool __wrap_jail_is_ahead(void)
{
    return is_ahead;
}

static int move_in(const int *fds)
{
    int high[ORDER_FDS];
    for (int i = 0; i < ORDER_FDS; i++)
        high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, OUT_OF_WAY);
    for (int i = 0; i < ORDER_FDS; i++)
        if (dup3(high[i], i, i > STDERR_FILENO ? O_CLOEXEC : 0) < 0)
            _exit(125);
    syscall(SYS_close_range, ORDER_FDS, ~0U, 0);
    signal(SIGCHLD, SIG_DFL);
    jail_settle();
    return JAIL_CONTROL_FD;
}

int __wrap_jail_serve(int orders_fd, const jail_hooks *hooks)
{
    (void)hooks;
    signal(SIGCHLD, SIG_IGN); /* the kernel reaps them */
    for (;;) {
        char order;
        int fds[ORDER_FDS];
        size_t count;
        ssize_t n = jail_packet_recv(orders_fd, &order, 1, fds, ORDER_FDS, &count, 0);
        if (n <= 0 || count != ORDER_FDS)
            _exit(n == 0 ? 0 : 1);
        pid_t pid = jail_clone(0);
        if (pid == 0) {
            is_ahead = order == 'a';
            return move_in(fds);
        }
        for (int i = 0; i < ORDER_FDS; i++)
            close(fds[i]);
        if (jail_packet_send(orders_fd, &pid, sizeof(pid), NULL, 0) < 0)
            _exit(1);
    }
}
