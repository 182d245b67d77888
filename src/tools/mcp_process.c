/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_process.c - a server as a program: started with what it was given, ended with all it started.
 *
 * It leads a process group of its own, and the group is what we end: `npx server` is three
 * processes, of which the first would leave the others behind. The leader is reaped last, so that
 * its number cannot be somebody else's while we still send signals to it.
 *
 * Between fork() and exec(): no malloc, no locks, no stdio. Other threads may have held any of
 * them.
 */
#include "tools/mcp_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    GRACE_MS = 2000, /* after its input was closed, and again after SIGTERM */
    EPITAPH_MS = 300,
    PIPE_SIZE = 1 << 20,
};

/* -- What it is given -------------------------------------------------------------------------- */

static bool is_given(const rt_mcp_pairs *env, const char *name)
{
    for (size_t i = 0; i < env->count; i++)
        if (rt_str_eq_c(env->items[i].name, name))
            return true;
    return false;
}

/* A function exported by a shell begins with "()": no value of ours. */
static const char *inherited(const rt_mcp_config *config, const char *name)
{
    const char *value = mcp_environ_get(config->environ, rt_str_of(name));
    return value && strncmp(value, "()", 2) != 0 && !is_given(&config->env, name) ? value : NULL;
}

static char **make_environ(const rt_mcp_config *config, rt_arena *arena)
{
    static const char *const ours[] = {
        "HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "USER"
    };
    char **env = rt_arena_alloc(arena, (RT_COUNT(ours) + config->env.count + 1) * sizeof(*env));
    size_t count = 0;
    for (size_t i = 0; i < RT_COUNT(ours); i++) {
        const char *value = inherited(config, ours[i]);
        if (value)
            env[count++] = (char *)rt_arena_printf(arena, "%s=%s", ours[i], value).ptr;
    }
    for (size_t i = 0; i < config->env.count; i++)
        env[count++] =
            (char *)rt_arena_printf(arena, "%.*s=%.*s", RT_FMT(config->env.items[i].name),
                                    RT_FMT(config->env.items[i].value))
                .ptr;
    return env;
}

static char **make_argv(const rt_mcp_config *config, rt_arena *arena)
{
    size_t count = 0;
    while (config->args && config->args[count])
        count++;
    char **argv = rt_arena_alloc(arena, (count + 2) * sizeof(*argv));
    argv[0] = (char *)config->command;
    for (size_t i = 0; i < count; i++)
        argv[i + 1] = (char *)config->args[i];
    return argv;
}

static bool is_program(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

/* As a shell would find it, on the PATH that the program itself will have. */
static bool find_program(const rt_mcp_config *config, char *const *env, rt_arena *arena,
                         const char **out, rt_error *err)
{
    char shown[MCP_SHOWN_SIZE];
    const char *path = mcp_environ_get((const char *const *)env, RT_STR("PATH"));
    rt_str rest = rt_str_of(path ? path : "/usr/local/bin:/usr/bin:/bin"), folder;
    if (strchr(config->command, '/')) {
        *out = config->command;
        return true;
    }
    while (rt_str_cut(&rest, ':', &folder)) {
        if (folder.len == 0 || folder.ptr[0] != '/')
            continue; /* a PATH that depends on where we happen to stand is a trap */
        *out = rt_arena_printf(arena, "%.*s/%s", RT_FMT(folder), config->command).ptr;
        if (is_program(*out))
            return true;
    }
    return rt_fail(
        err, RT_NOT_FOUND,
        "there is no program %s on its PATH; install it, or give its whole path as command",
        mcp_show(rt_str_of(config->command), shown));
}

/* -- Starting ---------------------------------------------------------------------------------- */

typedef struct birth {
    const char *program, *cwd;
    char **argv, **env;
    int in, out, errors, status; /* the child's ends */
    pid_t parent;
} birth;

static _Noreturn void give_up(const birth *b)
{
    int code = errno;
    (void)!write(b->status, &code, sizeof(code));
    _exit(127);
}

static _Noreturn void be_child(const birth *b)
{
    sigset_t none;
    setpgid(0, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != b->parent)
        _exit(127); /* the parent has died before it could be noticed */
    if (dup2(b->in, 0) < 0 || dup2(b->out, 1) < 0 || dup2(b->errors, 2) < 0)
        give_up(b);
    if (b->cwd && chdir(b->cwd) != 0)
        give_up(b);
    for (int sig = 1; sig < NSIG; sig++)
        signal(sig, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(b->program, b->argv, b->env);
    give_up(b);
}

typedef struct pipes {
    int in[2], out[2], errors[2], status[2];
} pipes;

static void pipes_done(pipes *p)
{
    int *ends = p->in;
    for (size_t i = 0; i < sizeof(*p) / sizeof(int); i++)
        rt_closep(&ends[i]);
}

/* All above 2, so that no dup2() in the child overwrites one it still needs. */
static bool make_pipe(int ends[2])
{
    int raw[2];
    if (pipe2(raw, O_CLOEXEC) != 0)
        return false;
    for (int i = 0; i < 2; i++) {
        ends[i] = raw[i] > 2 ? raw[i] : fcntl(raw[i], F_DUPFD_CLOEXEC, 3);
        if (raw[i] <= 2)
            close(raw[i]);
    }
    return ends[0] >= 0 && ends[1] >= 0;
}

static bool make_pipes(pipes *p, rt_error *err)
{
    if (!make_pipe(p->in) || !make_pipe(p->out) || !make_pipe(p->errors) || !make_pipe(p->status))
        return rt_fail_errno(err, "make its pipes");
    fcntl(p->out[0], F_SETPIPE_SZ, PIPE_SIZE); /* as a favour to large results; may be refused */
    fcntl(p->in[1], F_SETFL, O_NONBLOCK);
    fcntl(p->out[0], F_SETFL, O_NONBLOCK);
    fcntl(p->errors[0], F_SETFL, O_NONBLOCK);
    return true;
}

/* The child's end of the pipe closes with exec(); until then it may say what went wrong. */
static bool hear_birth(int status_fd, const rt_mcp_config *config, rt_error *err)
{
    char shown[MCP_SHOWN_SIZE];
    int code;
    ssize_t got;
    do
        got = read(status_fd, &code, sizeof(code));
    while (got < 0 && errno == EINTR);
    if (got != sizeof(code))
        return true;
    errno = code;
    if (config->cwd && access(config->cwd, X_OK) != 0)
        return rt_fail_errno(err, "enter its folder (cwd)");
    errno = code;
    return rt_fail_errno(err, "start %s", mcp_show(rt_str_of(config->command), shown));
}

bool mcp_process_start(const rt_mcp_config *config, mcp_process *out, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    pipes p RT_CLEANUP(pipes_done) = { { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 } };
    birth b = { .cwd = config->cwd,
                .argv = make_argv(config, &arena),
                .env = make_environ(config, &arena),
                .parent = getpid() };
    if (!find_program(config, b.env, &arena, &b.program, err) || !make_pipes(&p, err))
        return false;
    b.in = p.in[0], b.out = p.out[1], b.errors = p.errors[1], b.status = p.status[1];
    pid_t pid = fork();
    if (pid < 0)
        return rt_fail_errno(err, "start a process");
    if (pid == 0)
        be_child(&b);
    setpgid(pid, pid); /* here too: whoever comes first */
    rt_closep(&p.status[1]);
    mcp_process born = {
        .pid = pid, .pidfd = pidfd_open(pid, 0), .in = -1, .out = -1, .errors = -1
    };
    if (!hear_birth(p.status[0], config, err)) {
        mcp_process_stop(&born, false);
        return false;
    }
    born.in = RT_TAKE_FD(p.in[1]), born.out = RT_TAKE_FD(p.out[0]);
    born.errors = RT_TAKE_FD(p.errors[0]);
    *out = born;
    return true;
}

/* -- Ending ------------------------------------------------------------------------------------ */

static bool has_ended(const mcp_process *p, int within_ms)
{
    siginfo_t info = { 0 };
    struct pollfd end = { .fd = p->pidfd, .events = POLLIN };
    while (p->pidfd >= 0 && poll(&end, 1, within_ms) < 0 && errno == EINTR)
        ;
    return waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOWAIT | WNOHANG) == 0 && info.si_pid != 0;
}

static void drain(int fd)
{
    char sink[4096];
    while (fd >= 0 && read(fd, sink, sizeof(sink)) > 0)
        ;
}

void mcp_process_stop(mcp_process *p, bool is_patient)
{
    if (p->pid <= 0)
        return;
    rt_closep(&p->in);
    if (is_patient) {
        drain(p->out); /* who is stuck in a write cannot see that its input has ended */
        drain(p->errors);
    }
    if (is_patient && !has_ended(p, GRACE_MS)) {
        kill(-p->pid, SIGTERM);
        has_ended(p, GRACE_MS);
    }
    kill(-p->pid, SIGKILL);
    kill(p->pid, SIGKILL); /* it may not have made its group yet */
    while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    rt_closep(&p->out);
    rt_closep(&p->errors);
    rt_closep(&p->pidfd);
    p->pid = 0;
}

void mcp_process_epitaph(const mcp_process *p, char *out, size_t size)
{
    siginfo_t info = { 0 };
    if (!has_ended(p, EPITAPH_MS) ||
        waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOWAIT | WNOHANG) != 0)
        snprintf(out, size, "it closed its output");
    else if (info.si_code == CLD_EXITED)
        snprintf(out, size, "it ended with status %d", info.si_status);
    else
        snprintf(out, size, "it was ended by signal %d", info.si_status);
}
