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
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
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

/*
 * Goes through a list of lines (remote_line): makes the call, notes the result, stops at one that
 * must not fail, and in the end. It needs no stack, and knows only its registers.
 */
extern const char remote_stub[], remote_stub_end[];
#if defined(__x86_64__)
__asm__(".pushsection .rodata\n"
        "remote_stub:\n" /* rbx: the line, rbp: how many are left */
        "1:  test %rbp, %rbp\n"
        "    jz 3f\n"
        "    mov (%rbx), %rax\n"
        "    mov 8(%rbx), %rdi\n"
        "    mov 16(%rbx), %rsi\n"
        "    mov 24(%rbx), %rdx\n"
        "    mov 32(%rbx), %r10\n"
        "    mov 40(%rbx), %r8\n"
        "    mov 48(%rbx), %r9\n"
        "    syscall\n"
        "    mov %rax, 56(%rbx)\n"
        "    test %rax, %rax\n"
        "    jns 2f\n"
        "    cmpq $0, 64(%rbx)\n"
        "    je 3f\n"
        "2:  add $80, %rbx\n"
        "    dec %rbp\n"
        "    jmp 1b\n"
        "3:  int3\n"
        "remote_stub_end:\n"
        ".popsection\n");
#elif defined(__aarch64__)
__asm__(".pushsection .rodata\n"
        ".balign 4\n"
        "remote_stub:\n" /* x19: the line, x20: how many are left */
        "1:  cbz x20, 3f\n"
        "    ldr x8, [x19]\n"
        "    ldp x0, x1, [x19, #8]\n"
        "    ldp x2, x3, [x19, #24]\n"
        "    ldp x4, x5, [x19, #40]\n"
        "    svc #0\n"
        "    str x0, [x19, #56]\n"
        "    tbz x0, #63, 2f\n"
        "    ldr x9, [x19, #64]\n"
        "    cbz x9, 3f\n"
        "2:  add x19, x19, #80\n"
        "    sub x20, x20, #1\n"
        "    b 1b\n"
        "3:  brk #0\n"
        "remote_stub_end:\n"
        ".popsection\n");
#endif
_Static_assert(sizeof(remote_line) == 80 && offsetof(remote_line, result) == 56 &&
                   offsetof(remote_line, may_fail) == 64,
               "the instructions above know where things are");

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

static void enter(struct user_regs_struct *regs, long stub, long lines, size_t count)
{
    regs->rip = (unsigned long)stub;
    regs->rbx = (unsigned long)lines;
    regs->rbp = count;
    regs->orig_rax = (unsigned long)-1;
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

static void enter(struct user_regs_struct *regs, long stub, long lines, size_t count)
{
    regs->pc = (unsigned long)stub;
    regs->regs[19] = (unsigned long)lines;
    regs->regs[20] = count;
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
        if (i + 1 == CATCH_TRIES)
            break;
        ptrace(PTRACE_CONT, pid, NULL, NULL);
        nanosleep(&(struct timespec){ .tv_nsec = CATCH_WAIT_NS }, NULL);
    }
    sandbox_remote_leave(out); /* one that stays traced would stop when it forks */
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

/* ---- lists ---- */

bool sandbox_remote_room(remote *r, long *room, rt_error *err)
{
    long failed;
    if (!sandbox_remote_call(r, room, err, SYS_mmap, 0, REMOTE_ROOM_BYTES, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
        return false;
    if (*room < 0 && *room > -4096)
        return rt_fail(err, RT_LIMIT, "there is no memory left in the interpreter");
    if (!sandbox_remote_write(r, *room, remote_stub, (size_t)(remote_stub_end - remote_stub),
                              err) ||
        !sandbox_remote_call(r, &failed, err, SYS_mprotect, *room, 4096, PROT_READ | PROT_EXEC))
        return false;
    return failed == 0 ? true : rt_fail(err, RT_DENIED, "the interpreter forbids new code");
}

/* Until the instruction that ends the list; a child that is made on the way is noted. */
static bool await_end(remote *r, rt_error *err)
{
    for (;;) {
        int status;
        unsigned long child = 0;
        if (ptrace(PTRACE_CONT, r->pid, NULL, NULL) != 0)
            return rt_fail_errno(err, "run a list of calls");
        pid_t got = await(r->pid, &status);
        if (got != r->pid || !WIFSTOPPED(status))
            return fail_lost(err, got);
        if (WSTOPSIG(status) == SIGTRAP && status >> 16 == 0)
            return true;
        if (status >> 16 != PTRACE_EVENT_FORK && status >> 16 != PTRACE_EVENT_CLONE)
            return rt_fail(err, RT_INTERNAL, "a list of calls was interrupted by signal %d",
                           WSTOPSIG(status));
        ptrace(PTRACE_GETEVENTMSG, r->pid, NULL, &child);
        r->child = (pid_t)child;
    }
}

bool sandbox_remote_run(remote *r, long room, remote_line *lines, size_t count, rt_error *err)
{
    struct user_regs_struct regs = r->regs;
    long at = room + 4096;
    size_t size = count * sizeof(*lines);
    struct iovec here = { lines, size }, there = { (void *)at, size };
    if (size > REMOTE_ROOM_FREE - 4096)
        return rt_fail(err, RT_INTERNAL, "a list of %zu calls is too long", count);
    enter(&regs, room, at, count);
    if (!sandbox_remote_write(r, at, lines, size, err))
        return false;
    if (!set_regs(r->pid, &regs))
        return rt_fail_errno(err, "set the registers of the interpreter");
    if (!await_end(r, err))
        return false;
    if (process_vm_readv(r->pid, &here, 1, &there, 1, 0) != (ssize_t)size)
        return rt_fail_errno(err, "read from the interpreter");
    for (size_t i = 0; i < count; i++)
        if (lines[i].result < 0 && lines[i].result > -4096 && !lines[i].may_fail) {
            errno = (int)-lines[i].result;
            return rt_fail_errno(err, "%s", lines[i].what);
        }
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
