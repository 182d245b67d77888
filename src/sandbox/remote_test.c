/* SPDX-License-Identifier: Apache-2.0 */
/* The traced are our own children, so nothing here needs a privilege. */
#include "sandbox/remote.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guests/jail/jail.h"

/* Waits in jail_park(); then tells what it became. */
static pid_t start_parked(void)
{
    pid_t pid = jail_clone(0);
    if (pid == 0) {
        long value = jail_park(-1);
        _exit(value == JAIL_ARRIVED ? 7 : 9);
    }
    return pid;
}

static int status_of(pid_t pid)
{
    int status = -1;
    waitpid(pid, &status, __WALL);
    return status;
}

Test(remote, a_caught_process_makes_the_calls_it_is_told_to)
{
    rt_error err = { 0 };
    remote r;
    long result;
    pid_t pid = start_parked();
    sandbox_remote_hurry(5);
    cr_assert(sandbox_remote_catch(pid, &r, &err), "%s", err.text);
    cr_assert(sandbox_remote_call(&r, &result, &err, SYS_getpid, 0), "%s", err.text);
    cr_expect_eq(result, pid);
    cr_assert(sandbox_remote_call(&r, &result, &err, SYS_close, 999), "%s", err.text);
    cr_expect_eq(result, -EBADF, "what the kernel refuses is an answer");
    cr_assert(sandbox_remote_release(&r, &r, JAIL_ARRIVED, &err), "%s", err.text);
    int status = status_of(pid);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

Test(remote, memory_is_written_and_read_by_a_call)
{
    rt_error err = { 0 };
    remote r;
    long room, got;
    int ends[2];
    char text[8] = "";
    cr_assert_eq(pipe(ends), 0);
    pid_t pid = start_parked();
    cr_assert(sandbox_remote_catch(pid, &r, &err), "%s", err.text);
    cr_assert(sandbox_remote_call(&r, &room, &err, SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    cr_assert(sandbox_remote_write(&r, room, "hello", 5, &err), "%s", err.text);
    cr_assert(sandbox_remote_call(&r, &got, &err, SYS_write, ends[1], room, 5), "%s", err.text);
    cr_expect_eq(got, 5);
    cr_expect_eq(read(ends[0], text, sizeof(text)), 5);
    cr_expect_str_eq(text, "hello");
    sandbox_remote_kill(&r);
    status_of(pid);
}

Test(remote, a_twin_is_cloned_with_shared_memory_and_goes_on_in_its_place)
{
    rt_error err = { 0 };
    remote twin, guest;
    long result;
    pid_t pid = start_parked();
    cr_assert(sandbox_remote_catch(pid, &twin, &err), "%s", err.text);
    cr_assert(sandbox_remote_call(&twin, &result, &err, SYS_clone,
                                  CLONE_VM | CLONE_PARENT | SIGCHLD, 0, 0, 0, 0));
    cr_assert(sandbox_remote_adopt(&twin, &guest, &err), "%s", err.text);
    cr_expect_eq(guest.pid, result);
    cr_assert(sandbox_remote_release(&guest, &twin, JAIL_ARRIVED, &err), "%s", err.text);
    int status = status_of(guest.pid);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    remote again;
    cr_assert(sandbox_remote_hold(pid, &again, &err), "%s", err.text);
    cr_assert(sandbox_remote_call(&again, &result, &err, SYS_getpid, 0), "%s", err.text);
    cr_expect_eq(result, pid, "the twin can be used again");
    sandbox_remote_kill(&again);
    status_of(pid);
}

Test(remote, a_list_of_calls_is_gone_through_until_one_fails)
{
    rt_error err = { 0 };
    remote r;
    long room;
    pid_t pid = start_parked();
    cr_assert(sandbox_remote_catch(pid, &r, &err), "%s", err.text);
    cr_assert(sandbox_remote_room(&r, &room, &err), "%s", err.text);
    remote_line lines[] = {
        { .nr = SYS_getpid, .what = "getpid" },
        { .nr = SYS_close, .args = { 999 }, .may_fail = 1, .what = "close" },
        { .nr = SYS_clone, .args = { CLONE_VM | CLONE_PARENT | SIGCHLD }, .what = "clone" },
        { .nr = SYS_getpid, .what = "getpid" },
    };
    cr_assert(sandbox_remote_run(&r, room, lines, RT_COUNT(lines), &err), "%s", err.text);
    cr_expect_eq(lines[0].result, pid);
    cr_expect_eq(lines[1].result, -EBADF);
    cr_expect_eq(lines[2].result, r.child);
    cr_expect_eq(lines[3].result, pid);
    remote child;
    cr_assert(sandbox_remote_adopt(&r, &child, &err), "%s", err.text);
    pid_t child_pid = child.pid;
    sandbox_remote_kill(&child);
    status_of(child_pid);
    lines[1].may_fail = 0;
    cr_expect(!sandbox_remote_run(&r, room, lines, 2, &err));
    cr_expect(strstr(err.text, "close: Bad file descriptor"), "%s", err.text);
    sandbox_remote_kill(&r);
    status_of(pid);
}

Test(remote, one_that_is_busy_is_not_caught_and_one_that_died_is_missed)
{
    rt_error err = { 0 };
    remote r;
    pid_t pid = start_parked();
    kill(pid, SIGKILL);
    cr_expect(!sandbox_remote_catch(pid, &r, &err));
    status_of(pid);
}

Test(remote, another_instruction_in_the_place_of_the_call_is_noticed)
{
#if defined(__x86_64__)
    rt_error err = { 0 };
    remote r;
    long result;
    pid_t pid = start_parked();
    cr_assert(sandbox_remote_catch(pid, &r, &err), "%s", err.text);
    r.regs.rip += 2; /* whatever stands there, it is no call of getpid */
    sandbox_remote_hurry(1);
    cr_expect(!sandbox_remote_call(&r, &result, &err, SYS_getpid, 0));
    cr_expect_eq(err.code, RT_DENIED, "%s", err.text);
    int status = status_of(pid);
    cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
#endif
}
