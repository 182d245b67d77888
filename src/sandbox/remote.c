/*
 * remote.c - system calls in another process, by ptrace.
 *
 * A caught process stands behind the instruction of the call it was waiting in. To make it do
 * another one we set its registers, let it run that instruction again, and are told twice: when the
 * call enters, where we compare what the kernel is about to do with what we wanted, and when it is
 * done. User-mode instructions between the two, whoever wrote them, can do nothing without another
 * call.
 */
#include "sandbox/remote.h"

#include <elf.h>
#include <errno.h>
#include <linux/audit.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CATCH_TRIES   2000
#define CATCH_WAIT_NS 100000
#define OPTIONS                                                                                    \
    (PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACECLONE)
#define EVENT_STOP 128 /* PTRACE_EVENT_STOP */

/* ---- what differs from machine to machine ---- */

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
enum { CALL_BYTES = 2 };

static bool is_waiting(const struct user_regs_struct *regs)
{
    return regs->orig_rax == SYS_ppoll;
}

static void prepare(struct user_regs_struct *regs, long nr, const long args[6])
{
    regs->rip -= CALL_BYTES;
    regs->rax = (unsigned long)nr;
    regs->orig_rax = (unsigned long)-1; /* no call to be restarted */
    regs->rdi = (unsigned long)args[0];
    regs->rsi = (unsigned long)args[1];
    regs->rdx = (unsigned long)args[2];
    regs->r10 = (unsigned long)args[3];
    regs->r8 = (unsigned long)args[4];
    regs->r9 = (unsigned long)args[5];
}

/* After a call we stand where a caught process does. */
static void wind_back(struct user_regs_struct *regs)
{
    (void)regs;
}

static void finish(struct user_regs_struct *regs, long value)
{
    regs->rax = (unsigned long)value;
    regs->orig_rax = (unsigned long)-1;
}
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64

/* An interrupted call is wound back before we are told: we stand on its instruction already. */
static bool is_waiting(const struct user_regs_struct *regs)
{
    return regs->regs[8] == SYS_ppoll;
}

static void prepare(struct user_regs_struct *regs, long nr, const long args[6])
{
    for (int i = 0; i < 6; i++)
        regs->regs[i] = (unsigned long)args[i];
    regs->regs[8] = (unsigned long)nr;
}

static void wind_back(struct user_regs_struct *regs)
{
    regs->pc -= 4;
}

static void finish(struct user_regs_struct *regs, long value)
{
    regs->regs[0] = (unsigned long)value;
    regs->pc += 4;
}
#endif

static bool get_regs(pid_t pid, struct user_regs_struct *regs)
{
    struct iovec part = { regs, sizeof(*regs) };
    return ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &part) == 0;
}

/* Some machines keep floating point registers across a call: they are part of where it stands. */
static void get_floats(remote *r)
{
    struct iovec part = { r->floats, sizeof(r->floats) };
    r->float_bytes = ptrace(PTRACE_GETREGSET, r->pid, NT_PRFPREG, &part) == 0 ? part.iov_len : 0;
}

static void set_floats(pid_t pid, const remote *like)
{
    struct iovec part = { (void *)like->floats, like->float_bytes };
    if (like->float_bytes > 0)
        ptrace(PTRACE_SETREGSET, pid, NT_PRFPREG, &part);
}

static bool set_regs(pid_t pid, const struct user_regs_struct *regs)
{
    struct iovec part = { (void *)regs, sizeof(*regs) };
    return ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &part) == 0;
}

/* ---- waiting ---- */

static void wake_up(int signal)
{
    (void)signal;
}

/* The timer goes on until it is stopped: one signal could come just before we wait. */
void sandbox_remote_hurry(unsigned seconds)
{
    static const struct sigaction action = { .sa_handler = wake_up }; /* no SA_RESTART */
    struct itimerval timer = { .it_value.tv_sec = seconds, .it_interval.tv_usec = 50000 };
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static pid_t await(pid_t pid, int *status)
{
    return waitpid(pid, status, __WALL);
}

static bool fail_lost(rt_error *err, pid_t got)
{
    return got < 0 ? rt_fail_errno(err, "wait for a traced process")
                   : rt_fail(err, RT_UNAVAILABLE, "the interpreter has ended");
}

/* ---- catching ---- */

static bool await_stop(pid_t pid, rt_error *err)
{
    for (;;) {
        int status;
        pid_t got = await(pid, &status);
        if (got != pid || !WIFSTOPPED(status))
            return fail_lost(err, got);
        if (status >> 16 == EVENT_STOP)
            return true;
        /* A signal of its own came first: it gets it. */
        ptrace(PTRACE_CONT, pid, NULL, (void *)(long)WSTOPSIG(status));
    }
}

bool sandbox_remote_catch(pid_t pid, remote *out, rt_error *err)
{
    *out = (remote){ .pid = pid };
    if (ptrace(PTRACE_SEIZE, pid, NULL, (void *)(long)OPTIONS) != 0)
        return rt_fail_errno(err, "seize the interpreter");
    for (int i = 0; i < CATCH_TRIES; i++) {
        if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) != 0)
            return rt_fail_errno(err, "stop the interpreter");
        if (!await_stop(pid, err))
            return false;
        if (!get_regs(pid, &out->regs))
            return rt_fail_errno(err, "read the registers of the interpreter");
        if (is_waiting(&out->regs)) {
            get_floats(out);
            return true;
        }
        ptrace(PTRACE_CONT, pid, NULL, NULL);
        nanosleep(&(struct timespec){ .tv_nsec = CATCH_WAIT_NS }, NULL);
    }
    return rt_fail(err, RT_CONFLICT, "the interpreter is busy");
}

bool sandbox_remote_hold(pid_t pid, remote *out, rt_error *err)
{
    *out = (remote){ .pid = pid };
    if (!get_regs(pid, &out->regs))
        return rt_fail_errno(err, "read the registers of the interpreter");
    wind_back(&out->regs);
    return true;
}

bool sandbox_remote_adopt(const remote *parent, remote *out, rt_error *err)
{
    *out = (remote){ .pid = parent->child, .regs = parent->regs };
    return await_stop(out->pid, err);
}

/* ---- calling ---- */

static bool step(remote *r, int *status, rt_error *err)
{
    if (ptrace(PTRACE_SYSCALL, r->pid, NULL, NULL) != 0)
        return rt_fail_errno(err, "step the interpreter");
    pid_t got = await(r->pid, status);
    return got == r->pid && WIFSTOPPED(*status) ? true : fail_lost(err, got);
}

static bool is_call_stop(int status)
{
    return WSTOPSIG(status) == (SIGTRAP | 0x80);
}

static bool is_as_wanted(pid_t pid, long nr, const long args[6])
{
    struct __ptrace_syscall_info info = { 0 };
    if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof(info), &info) <= 0)
        return false;
    bool is_same = info.op == PTRACE_SYSCALL_INFO_ENTRY && info.arch == OWN_ARCH &&
                   info.entry.nr == (uint64_t)nr;
    for (int i = 0; is_same && i < 6; i++)
        is_same = info.entry.args[i] == (uint64_t)args[i];
    return is_same;
}

bool sandbox_remote_call_args(remote *r, long *result, rt_error *err, long nr, const long args[6])
{
    struct user_regs_struct regs = r->regs;
    struct __ptrace_syscall_info info = { 0 };
    int status;
    prepare(&regs, nr, args);
    if (!set_regs(r->pid, &regs))
        return rt_fail_errno(err, "set the registers of the interpreter");
    if (!step(r, &status, err))
        return false;
    if (!is_call_stop(status) || !is_as_wanted(r->pid, nr, args)) {
        sandbox_remote_kill(r);
        return rt_fail(err, RT_DENIED, "the interpreter's memory was tampered with");
    }
    if (!step(r, &status, err))
        return false;
    if (status >> 16 == PTRACE_EVENT_FORK || status >> 16 == PTRACE_EVENT_CLONE) {
        unsigned long child = 0;
        ptrace(PTRACE_GETEVENTMSG, r->pid, NULL, &child);
        r->child = (pid_t)child;
        if (!step(r, &status, err))
            return false;
    }
    if (!is_call_stop(status) ||
        ptrace(PTRACE_GET_SYSCALL_INFO, r->pid, (void *)sizeof(info), &info) <= 0 ||
        info.op != PTRACE_SYSCALL_INFO_EXIT)
        return rt_fail(err, RT_INTERNAL, "a call in the interpreter did not return");
    *result = (long)info.exit.rval;
    return true;
}

bool sandbox_remote_write(const remote *r, long address, const void *data, size_t size,
                          rt_error *err)
{
    struct iovec here = { (void *)data, size }, there = { (void *)address, size };
    if (process_vm_writev(r->pid, &here, 1, &there, 1, 0) != (ssize_t)size)
        return rt_fail_errno(err, "write to the interpreter");
    return true;
}

/* ---- letting go ---- */

bool sandbox_remote_release(const remote *r, const remote *like, long value, rt_error *err)
{
    struct user_regs_struct regs = like->regs;
    finish(&regs, value);
    set_floats(r->pid, like);
    if (!set_regs(r->pid, &regs) || ptrace(PTRACE_DETACH, r->pid, NULL, NULL) != 0)
        return rt_fail_errno(err, "let the interpreter go on");
    return true;
}

void sandbox_remote_leave(const remote *r)
{
    ptrace(PTRACE_DETACH, r->pid, NULL, NULL);
}

void sandbox_remote_kill(remote *r)
{
    if (r->pid > 0)
        kill(r->pid, SIGKILL);
    r->pid = 0;
}
