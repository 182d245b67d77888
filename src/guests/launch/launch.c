/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.c - the guest for every language that is a program of the host.
 *
 *     retort-launch                     one zygote for all of them
 *     retort-launch PROGRAM [ARG...]    for one whose program is started before the code is known
 *
 * There is nothing to warm: the forked and sealed child writes the code to a file, has it compiled
 * where that is needed, runs the program as its own child, waits and reports. The order's "launch"
 * says how (PROTOCOL.md). A program that takes long to start and can wait for its code is started
 * with the cell, if the cell is made ahead; it gets the run on its stdin.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guests/program/program.h"

#define CODE_DIR   "/tmp/code"
#define PROGRAM    CODE_DIR "/program"
#define CODE_FD    8 /* where nothing can be written, the code is a memory file */
#define WORDS_MAX  24
#define PROGRAMS   "/usr/local/bin:/usr/bin:/bin"
#define RESULT     "/dev/fd/9" /* PROGRAM_RESULT_FD */
#define EARLY_MOST 80          /* processes of a program that was started before its limits came */
#define CHUNK      65536

typedef struct launch {
    program_run base;
    rt_json plan;
    const char *file; /* where the code is */
    int code;         /* memory file with it, or -1 */
    const char *words;
    bool is_build;
} launch;

/* ---- the code's place ---- */

static bool decode(rt_str text, rt_buf *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = 0;
    unsigned count = 0;
    for (size_t i = 0; i < text.len && text.ptr[i] != '='; i++) {
        const char *digit = text.ptr[i] ? strchr(digits, text.ptr[i]) : NULL;
        if (!digit && !strchr(" \r\n\t", text.ptr[i]))
            return false;
        if (!digit)
            continue;
        bits = bits << 6 | (uint32_t)(digit - digits);
        if (++count % 4 != 1)
            rt_buf_addc(out, (char)(bits >> (6 - 2 * ((count - 1) % 4))));
    }
    return true;
}

/* The code's bytes: its text, or what the text stands for. */
static bool read_code(launch *l, rt_buf *out, rt_error *err)
{
    rt_str code = rt_json_str(rt_json_get_c(l->base.request, "code"));
    if (!rt_json_bool(rt_json_get_c(l->plan, "base64"), false))
        rt_buf_add(out, code);
    else if (!decode(code, out))
        return rt_fail(err, RT_INVALID, "the code is not base64");
    return rt_buf_ok(out, err);
}

static bool place_code(launch *l, rt_error *err)
{
    rt_buf bytes RT_CLEANUP(rt_buf_done) = { 0 };
    if (!read_code(l, &bytes, err))
        return false;
    rt_str code = rt_buf_str(&bytes);
    rt_str name = rt_json_str(rt_json_get_c(l->plan, "file"));
    rt_error problem = { 0 };
    l->file = rt_arena_printf(&l->base.arena, CODE_DIR "/%.*s", RT_FMT(name)).ptr;
    if ((mkdir(CODE_DIR, 0700) == 0 || errno == EEXIST) &&
        program_write_file(l->file, code, &problem))
        return true;
    bool is_built = rt_json_count(rt_json_get_c(l->plan, "compile")) > 0;
    if (is_built || (errno != EROFS && errno != EACCES))
        return rt_fail(err, RT_DENIED,
                       "the code must be written to %s to be run, and cannot be: %s", CODE_DIR,
                       strerror(errno));
    l->code = program_memory_file("code", code, err);
    l->file = rt_arena_printf(&l->base.arena, "/dev/fd/%d", CODE_FD).ptr;
    return l->code >= 0;
}

static const char *fill_in(launch *l, rt_str word)
{
    const struct {
        rt_str mark;
        const char *place;
    } marks[] = { { RT_STR("{file}"), l->file },
                  { RT_STR("{dir}"), CODE_DIR },
                  { RT_STR("{program}"), PROGRAM } };
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    for (size_t i = 0; i < word.len;) {
        rt_str rest = rt_str_slice(word, i, word.len);
        size_t m = 0;
        while (m < RT_COUNT(marks) && !rt_str_starts(rest, marks[m].mark))
            m++;
        if (m < RT_COUNT(marks)) {
            rt_buf_add(&text, rt_str_of(marks[m].place));
            i += marks[m].mark.len;
        } else {
            rt_buf_addc(&text, word.ptr[i++]);
        }
    }
    return rt_arena_copy(&l->base.arena, rt_buf_str(&text));
}

/* ---- running ---- */

static void become_program(void *ctx)
{
    launch *l = ctx;
    const char *argv[WORDS_MAX + 1] = { NULL };
    size_t count = 0;
    rt_json word;
    rt_json_iter it = rt_json_each(rt_json_get_c(l->plan, l->words));
    while (count < WORDS_MAX && rt_json_next(&it, NULL, &word))
        argv[count++] = fill_in(l, rt_json_str(word));
    if (l->is_build ? dup2(STDERR_FILENO, STDOUT_FILENO) < 0 : !program_settle(&l->base))
        _exit(126);
    if (l->code >= 0 && dup2(l->code, CODE_FD) < 0)
        _exit(126);
    signal(SIGPIPE, SIG_DFL);
    if (count > 0)
        execvp(argv[0], (char *const *)argv);
    dprintf(STDERR_FILENO, "%s: %s\n", count ? argv[0] : "nothing", strerror(errno));
    _exit(127);
}

static bool run_step(launch *l, const char *words, int *status, rt_error *err)
{
    l->words = words;
    l->is_build = strcmp(words, "compile") == 0;
    return program_run_child(&l->base, become_program, l, status, err);
}

static void set_environment(launch *l)
{
    rt_str name, path = rt_json_str(rt_json_get_c(l->plan, "path"));
    rt_json value;
    rt_json_iter it = rt_json_each(rt_json_get_c(l->plan, "env"));
    while (rt_json_next(&it, &name, &value))
        program_set_variable(&l->base.arena, rt_arena_copy(&l->base.arena, name),
                             rt_json_str(value));
    setenv("RESULT_FILE", RESULT, 1);
    program_set_environment(&l->base, path.len ? rt_arena_copy(&l->base.arena, path) : PROGRAMS);
}

/* ---- a program that waits ---- */

static struct {
    char *const *argv; /* NULL: none */
    pid_t pid;         /* 0: not started */
    int in;            /* its stdin */
    int result;        /* the file its answer goes to */
    relay relay;       /* its way to tools, should it get any */
} waiting = { .in = -1, .result = -1, .relay = { .near = -1, .far = -1 } };

static void become_waiting(int in, int result, bool is_early)
{
    /* Nobody knows yet what the run may use: what every preset allows is not exceeded. */
    jail_limits limits = { .processes = EARLY_MOST, .descriptors = 1024 };
    setpgid(0, 0);
    signal(SIGPIPE, SIG_DFL);
    if ((is_early && !jail_limit(&limits, NULL)) || dup2(in, STDIN_FILENO) < 0 ||
        dup2(result, PROGRAM_RESULT_FD) < 0 || dup2(waiting.relay.far, RELAY_FD) < 0)
        _exit(126);
    execvp(waiting.argv[0], waiting.argv);
    dprintf(STDERR_FILENO, "%s: %s\n", waiting.argv[0], strerror(errno));
    _exit(127);
}

static void start_waiting(int result, bool is_early)
{
    int in[2];
    if (!program_relay_open(&waiting.relay, NULL) || pipe2(in, O_CLOEXEC) != 0)
        return;
    /* Out of the way of the numbers the program gets. */
    waiting.in = fcntl(in[1], F_DUPFD_CLOEXEC, PROGRAM_FD_FIRST);
    close(in[1]);
    waiting.result = result;
    waiting.pid = fork();
    if (waiting.pid == 0)
        become_waiting(in[0], result, is_early);
    close(in[0]);
}

static void start_ahead(void)
{
    rt_error err = { 0 };
    int result = program_memory_file("result", (rt_str){ "", 0 }, &err);
    setenv("PATH", PROGRAMS, 1);
    setenv("HOME", "/work", 1);
    setenv("TMPDIR", "/tmp", 1);
    setenv("LANG", "C.UTF-8", 1);
    setenv("RESULT_FILE", RESULT, 1);
    if (result >= 0)
        start_waiting(result, true);
}

static void stop_waiting(void)
{
    if (waiting.pid > 0) {
        kill(waiting.pid, SIGKILL);
        waitpid(waiting.pid, NULL, 0);
    }
    rt_closep(&waiting.in);
    rt_closep(&waiting.result);
    program_relay_close(&waiting.relay);
    waiting.pid = 0;
}

/* "CODE ENVIRONMENT\n" (two lengths), then both; the variables are NUL-terminated. */
static void write_run(launch *l, rt_buf *out)
{
    rt_buf variables RT_CLEANUP(rt_buf_done) = { 0 };
    rt_str code = rt_json_str(rt_json_get_c(l->base.request, "code"));
    for (char **at = environ; at && *at; at++) {
        rt_buf_add(&variables, rt_str_of(*at));
        rt_buf_addc(&variables, '\0');
    }
    rt_buf_addf(out, "%zu %zu\n", code.len, variables.len);
    rt_buf_add(out, code);
    rt_buf_add(out, rt_buf_str(&variables));
}

/* The run, then whatever comes on the run's own stdin, until the program ends or has closed it. */
static void feed(launch *l)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    char chunk[CHUNK];
    ssize_t n = 0;
    int from = l->base.input >= 0 ? l->base.input : l->base.in >= 0 ? l->base.in : STDIN_FILENO;
    write_run(l, &text);
    bool ok = rt_write_all(waiting.in, rt_buf_str(&text), NULL);
    int pidfd = (int)syscall(SYS_pidfd_open, waiting.pid, 0);
    while (ok) {
        struct pollfd polled[] = { { .fd = from, .events = POLLIN },
                                   { .fd = pidfd, .events = POLLIN } };
        if (poll(polled, 2, -1) < 0 && errno != EINTR)
            break;
        if (polled[1].revents)
            break;
        n = polled[0].revents ? read(from, chunk, sizeof(chunk)) : -1;
        if (n == 0)
            break;
        ok = n < 0 || rt_write_all(waiting.in, (rt_str){ chunk, (size_t)n }, NULL);
    }
    rt_closep(&pidfd);
    rt_closep(&waiting.in);
}

static bool run_waiting(launch *l, int *status, rt_error *err)
{
    uint64_t most = program_number(rt_json_get_c(l->base.request, "limits"), "processes");
    if (waiting.pid > 0 && (most < EARLY_MOST || waitpid(waiting.pid, NULL, WNOHANG) != 0))
        stop_waiting(); /* it has more than it may, or has given up */
    if (waiting.pid == 0)
        start_waiting(fcntl(l->base.result, F_DUPFD_CLOEXEC, PROGRAM_FD_FIRST), false);
    if (waiting.pid <= 0)
        return rt_fail_errno(err, "start the program");
    l->base.relay.near = RT_TAKE_FD(waiting.relay.near);
    l->base.relay.far = RT_TAKE_FD(waiting.relay.far);
    program_watch_child(&l->base, waiting.pid);
    feed(l);
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL); /* as the relay wants it */
    bool ok = program_wait_child(&l->base, waiting.pid, status, err);
    sigprocmask(SIG_UNBLOCK, &child, NULL);
    waiting.pid = 0;
    rt_closep(&l->base.result);
    l->base.result = RT_TAKE_FD(waiting.result);
    return ok;
}

/* ---- an order ---- */

static bool run_code(launch *l, int *status, rt_error *err)
{
    if (waiting.argv)
        return run_waiting(l, status, err);
    if (!place_code(l, err))
        return false;
    if (rt_json_count(rt_json_get_c(l->plan, "compile")) > 0) {
        if (!run_step(l, "compile", status, err))
            return false;
        if (*status != 0)
            return true; /* the compiler has said why */
    }
    l->is_build = false;
    return run_step(l, "run", status, err);
}

static int serve_run(int control, const jail_frame *frame, bool *keeps)
{
    rt_error err = { 0 };
    launch l = { .base = PROGRAM_RUN_NONE, .code = -1 };
    int status = 0, code = 1;
    bool ok = program_begin(&l.base, control, frame, &err);
    *keeps = l.base.keeps;
    l.plan = rt_json_get_c(l.base.request, "launch");
    if (ok)
        set_environment(&l);
    ok = ok && program_take_input(&l.base, frame, &err) && run_code(&l, &status, &err);
    if (ok && l.is_build && status != 0) {
        code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        program_report_error(control, l.base.id, "SyntaxError", "CompileError",
                             RT_STR("the code could not be compiled"), code);
    } else if (ok) {
        code = program_report(control, &l.base, "the program", status);
    } else {
        program_report_error(control, l.base.id, "RuntimeError", "Error", rt_str_of(err.text),
                             code);
    }
    rt_closep(&l.code);
    program_end(&l.base);
    return code;
}

int main(int argc, char **argv)
{
    jail_announce(JAIL_ORDERS_FD, "{\"version\":\"\"}", NULL);
    int control = jail_serve(JAIL_ORDERS_FD, &(jail_hooks){ 0 });
    jail_frame frame;
    int code = 0;
    bool keeps = true;
    signal(SIGPIPE, SIG_IGN); /* a program need not read its stdin */
    program_take_interrupts();
    waiting.argv = argc > 1 ? argv + 1 : NULL;
    if (waiting.argv && jail_is_ahead())
        start_ahead();
    while (keeps && jail_frame_recv(control, JAIL_FRAME_MAX, &frame, NULL)) {
        if (!program_is_late_answer(&frame))
            code = serve_run(control, &frame, &keeps);
        jail_frame_done(&frame);
    }
    return code;
}
