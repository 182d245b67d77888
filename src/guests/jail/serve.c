/*
 * serve.c - the loop of a zygote: take an order, fork, let the child seal itself, answer.
 *
 * The zygote keeps its capabilities (over its own user namespace only) because joining a cell's
 * namespaces needs them; the child gives them up in jail_enter(). A zygote never runs user code
 * and forks only while no thread but the calling one is awake.
 */
#include "guests/jail/jail.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define QUIET_TRIES 2000 /* a fifth of a second in all */

/*
 * glibc keeps the thread id in memory and hands the kernel a robust-mutex list; its fork() renews
 * both, a bare clone() neither. The id stands 16 bytes before the list head in glibc's descriptor;
 * we look there, and refuse to go on if it is not what the kernel says.
 */
static pid_t *find_tid(void **robust, size_t *robust_len)
{
    if (syscall(SYS_get_robust_list, 0, robust, robust_len) != 0)
        return NULL;
    pid_t *tid = (pid_t *)((char *)*robust - 16);
    return *tid == (pid_t)syscall(SYS_gettid) ? tid : NULL;
}

pid_t jail_clone(unsigned long extra_flags)
{
    void *robust;
    size_t robust_len;
    pid_t *tid = find_tid(&robust, &robust_len);
    if (!tid) {
        errno = ENOSYS;
        return -1;
    }
    unsigned long flags = extra_flags | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD;
#if defined(__x86_64__)
    pid_t pid = (pid_t)syscall(SYS_clone, flags, NULL, NULL, tid, NULL);
#else
    pid_t pid = (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, tid);
#endif
    if (pid == 0)
        syscall(SYS_set_robust_list, robust, robust_len);
    return pid;
}

static void call(void (*hook)(void))
{
    if (hook)
        hook();
}

static _Noreturn void report_and_exit(int control, const rt_error *err)
{
    char text[512];
    /* The text is ours, never the user's: no quoting is needed beyond leaving quotes out. */
    int n = snprintf(text, sizeof(text), "{\"op\":\"unsealed\",\"message\":\"%s\"}", err->text);
    if (n > 0)
        jail_frame_send(control, text, (size_t)n, NULL, 0, NULL);
    _exit(125);
}

static bool is_ahead;

bool jail_is_ahead(void)
{
    return is_ahead;
}

/* The child: sealed when this returns. */
static int become_guest(const jail_order *order, int *fds)
{
    rt_error err = { 0 };
    if (!jail_enter(order, fds, &err))
        report_and_exit(fds[JAIL_FD_CONTROL], &err);
    is_ahead = order->is_ahead != 0;
    return JAIL_CONTROL_FD;
}

/* The letter after the name: R runs, S sleeps … */
static char state_of(const char *tid)
{
    char path[64], text[256];
    snprintf(path, sizeof(path), "/proc/self/task/%.20s/stat", tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *after = strrchr(text, ')');
    return after && after[1] ? after[2] : 'S';
}

/* How many threads there are, and whether all but us sleep. */
static int look_at_threads(bool *are_quiet)
{
    char own[24];
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    snprintf(own, sizeof(own), "%ld", syscall(SYS_gettid));
    *are_quiet = true;
    for (struct dirent *e; tasks && (e = readdir(tasks));) {
        if (e->d_name[0] == '.')
            continue;
        count++;
        if (strcmp(e->d_name, own) != 0 && state_of(e->d_name) != 'S')
            *are_quiet = false;
    }
    if (tasks)
        closedir(tasks);
    return count;
}

/*
 * Node has threads that mostly sleep. One that is awake may hold a lock (malloc's, say), and in the
 * child, where the thread does not exist, that lock would stay held for ever. So we wait until all
 * sleep; a sleeping thread holds none.
 */
static bool is_alone; /* once alone, a zygote stays so */

static void await_quiet(void)
{
    bool are_quiet = is_alone;
    for (int i = 0; !are_quiet && i < QUIET_TRIES; i++) {
        is_alone = look_at_threads(&are_quiet) == 1;
        if (!are_quiet)
            nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
    }
}

/* What a copy of a process must know anew; the rest of it is in memory, and came along. */
static void arrive(pid_t *tid, void *robust, size_t robust_len)
{
    sigset_t none;
    unsigned seed = 0;
    *tid = (pid_t)syscall(SYS_gettid);
    syscall(SYS_set_tid_address, tid);
    syscall(SYS_set_robust_list, robust, robust_len);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    (void)!getrandom(&seed, sizeof(seed), 0);
    srand(seed);
    srandom(seed ^ 0x9e3779b9u);
}

long jail_park(int control)
{
    void *robust;
    size_t robust_len;
    pid_t *tid = find_tid(&robust, &robust_len);
    struct pollfd polled = { .fd = control, .events = POLLIN };
    long n;
    is_alone = false; /* the user's code may have got itself company */
    await_quiet();
    do
        n = syscall(SYS_ppoll, &polled, control < 0 ? 0 : 1, NULL, NULL, 0);
    while (n < 0 && errno == EINTR);
    if (n == JAIL_ARRIVED && tid)
        arrive(tid, robust, robust_len);
    return n;
}

/* A process that shares its memory with a live guest and never runs: the midwife forks it. */
static int become_twin(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; i <= STDERR_FILENO; i++)
        dup2(null, i);
    syscall(SYS_close_range, 3U, ~0U, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (jail_park(-1) != JAIL_ARRIVED)
        _exit(1);
    jail_settle();
    return JAIL_CONTROL_FD;
}

static pid_t fork_twin(const jail_hooks *hooks)
{
    await_quiet();
    call(hooks->before_fork);
    pid_t pid = jail_clone(CLONE_PARENT);
    call(pid == 0 ? hooks->after_fork_child : hooks->after_fork_parent);
    return pid;
}

static pid_t fork_into(const int *fds, int own_pid_ns, const jail_hooks *hooks)
{
    await_quiet();
    if (setns(fds[JAIL_FD_INIT], CLONE_NEWPID) != 0)
        return -1;
    call(hooks->before_fork);
    pid_t pid = jail_clone(CLONE_PARENT);
    if (pid == 0) {
        call(hooks->after_fork_child);
        return 0;
    }
    int saved = errno;
    call(hooks->after_fork_parent);
    if (setns(own_pid_ns, CLONE_NEWPID) != 0)
        _exit(1); /* the next order would fork into a stranger's cell */
    errno = saved;
    return pid;
}

int jail_serve(int orders_fd, const jail_hooks *hooks)
{
    int own_pid_ns = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    if (own_pid_ns < 0)
        _exit(1);
    jail_gather();
    for (;;) {
        jail_order order;
        int fds[JAIL_ORDER_FDS_MAX];
        size_t fd_count;
        ssize_t n = jail_packet_recv(orders_fd, &order, sizeof(order), fds, JAIL_ORDER_FDS_MAX,
                                     &fd_count, 0);
        if (n <= 0)
            _exit(n == 0 ? 0 : 1);
        bool is_twin = n == (ssize_t)sizeof(order) && order.is_twin && fd_count == 0;
        bool is_whole = n == (ssize_t)sizeof(order) && order.cgroup_count <= JAIL_CGROUPS_MAX &&
                        fd_count == JAIL_FD_CGROUP + order.cgroup_count;
        errno = EPROTO;
        pid_t pid = is_twin ? fork_twin(hooks) : is_whole ? fork_into(fds, own_pid_ns, hooks) : -1;
        if (pid == 0)
            return is_twin ? become_twin() : become_guest(&order, fds);
        jail_order_reply reply = { .serial = order.serial,
                                   .pid = pid,
                                   .error = pid < 0 ? errno : 0 };
        for (size_t i = 0; i < fd_count; i++)
            close(fds[i]);
        if (jail_packet_send(orders_fd, &reply, sizeof(reply), NULL, 0) < 0)
            _exit(1);
    }
}

bool jail_announce(int orders_fd, const char *about, rt_error *err)
{
    if (jail_packet_send(orders_fd, about, strlen(about), NULL, 0) < 0)
        return rt_fail_errno(err, "announce the zygote");
    return true;
}
