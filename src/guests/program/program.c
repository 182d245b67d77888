/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.c - input, limits, the child and its end, for guests that run a program.
 */
#include "guests/program/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RESULT_MAX  (16u << 20)
#define TOOL_FOLDER "/retort/bin" /* where retort-tool is */

static volatile sig_atomic_t child_pid, interrupt_count;

/* The first time the program may clean up; code that does not want to end is ended. */
static void interrupt_child(int signal)
{
    (void)signal;
    if (child_pid > 0)
        kill((pid_t)-child_pid, interrupt_count++ == 0 ? SIGINT : SIGKILL);
}

void program_take_interrupts(void)
{
    signal(SIGINT, interrupt_child);
}

uint64_t program_number(rt_json object, const char *key)
{
    int64_t n = 0;
    return rt_json_i64(rt_json_get_c(object, key), &n) && n > 0 ? (uint64_t)n : 0;
}

static bool apply_limits(rt_json request, rt_error *err)
{
    rt_json l = rt_json_get_c(request, "limits");
    jail_limits limits = { .cpu_seconds = program_number(l, "cpu_seconds"),
                           .data_bytes = program_number(l, "data_bytes"),
                           .file_bytes = program_number(l, "file_bytes"),
                           .processes = program_number(l, "processes"),
                           .descriptors = program_number(l, "descriptors") };
    return jail_limit(&limits, err);
}

bool program_write_file(const char *path, rt_str text, rt_error *err)
{
    int fd RT_CLEANUP(rt_closep) = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return rt_fail_errno(err, "write %s", path);
    return rt_write_all(fd, text, err);
}

int program_memory_file(const char *name, rt_str text, rt_error *err)
{
    int made RT_CLEANUP(rt_closep) = memfd_create(name, MFD_CLOEXEC);
    int fd = made < 0 ? -1 : fcntl(made, F_DUPFD_CLOEXEC, PROGRAM_FD_FIRST);
    if (fd < 0) {
        rt_fail_errno(err, "memfd_create");
        return -1;
    }
    if (rt_write_all(fd, text, err) && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    close(fd);
    return -1;
}

bool program_read_file(int fd, size_t max, rt_arena *arena, rt_str *out, rt_error *err)
{
    if (lseek(fd, 0, SEEK_SET) < 0)
        return rt_fail_errno(err, "rewind the input");
    bool ok = rt_read_fd(fd, max, arena, out, err);
    lseek(fd, 0, SEEK_SET);
    return ok;
}

/* ---- input ---- */

void program_set_variable(rt_arena *arena, const char *name, rt_str value)
{
    if (value.len <= PROGRAM_ENV_MAX && !memchr(value.ptr, '\0', value.len))
        setenv(name, rt_arena_copy(arena, value), 1);
}

bool program_is_variable(rt_str key)
{
    for (size_t i = 0; i < key.len; i++)
        if (key.ptr[i] != '_' && (key.ptr[i] < '0' || key.ptr[i] > '9') &&
            ((key.ptr[i] | 32) < 'a' || (key.ptr[i] | 32) > 'z'))
            return false;
    return key.len > 0 && key.len < 200;
}

/* INPUT_<key>: a text as it is, anything else as JSON text. */
static void set_members(program_run *r, rt_json input)
{
    rt_str key;
    rt_json value;
    rt_json_iter it = rt_json_each(input);
    while (rt_json_type(input) == RT_JSON_OBJECT && rt_json_next(&it, &key, &value)) {
        rt_buf text RT_CLEANUP(rt_buf_done) = { .max = PROGRAM_ENV_MAX };
        if (!program_is_variable(key))
            continue;
        if (rt_json_type(value) == RT_JSON_STRING)
            rt_buf_add(&text, rt_json_str(value));
        else
            rt_json_print(value, &text);
        if (rt_buf_ok(&text, NULL))
            program_set_variable(&r->arena,
                                 rt_arena_printf(&r->arena, "INPUT_%.*s", RT_FMT(key)).ptr,
                                 rt_buf_str(&text));
    }
}

static bool take_input_file(program_run *r, const jail_frame *frame, rt_json about, rt_error *err)
{
    uint64_t index = program_number(about, "index");
    rt_str text;
    rt_json input;
    if (index >= frame->fd_count)
        return rt_fail(err, RT_INVALID, "input_fd names a descriptor that did not come");
    r->input = fcntl(frame->fds[index], F_DUPFD_CLOEXEC, PROGRAM_FD_FIRST);
    struct stat st;
    if (fstat(r->input, &st) != 0 || st.st_size > PROGRAM_ENV_MAX)
        return true; /* too big for variables: the code reads it from stdin */
    if (!program_read_file(r->input, PROGRAM_ENV_MAX, &r->arena, &text, err))
        return false;
    program_set_variable(&r->arena, "INPUT", text);
    if (rt_str_eq_c(rt_json_str(rt_json_get_c(about, "type")), "json") &&
        rt_json_parse(text, &r->arena, &input, err))
        set_members(r, input);
    return true;
}

bool program_take_input(program_run *r, const jail_frame *frame, rt_error *err)
{
    rt_json about = rt_json_get_c(r->request, "input_fd");
    rt_json input = rt_json_get_c(r->request, "input");
    if (!rt_json_is_absent(about))
        return take_input_file(r, frame, about, err);
    if (rt_json_is_absent(input))
        return true;
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_print(input, &text);
    program_set_variable(&r->arena, "INPUT", rt_buf_str(&text));
    set_members(r, input);
    r->input = program_memory_file("input", rt_buf_str(&text), err);
    return r->input >= 0;
}

/* A session's earlier run, which may have had no tools, has told its PATH. */
static void show_tools(program_run *r)
{
    const char *path = getenv("PATH");
    if (r->has_tools && (!path || !strstr(path, TOOL_FOLDER)))
        setenv("PATH", rt_arena_printf(&r->arena, "%s:" TOOL_FOLDER, path ? path : "/bin").ptr, 1);
}

void program_set_environment(program_run *r, const char *path)
{
    rt_str name;
    rt_json value;
    setenv("PATH", path, 0);
    setenv("HOME", "/work", 0);
    setenv("TMPDIR", "/tmp", 0);
    setenv("LANG", "C.UTF-8", 0);
    rt_json_iter it = rt_json_each(rt_json_get_c(r->request, "env"));
    while (rt_json_next(&it, &name, &value))
        if (program_is_variable(name))
            program_set_variable(&r->arena, rt_arena_copy(&r->arena, name), rt_json_str(value));
    show_tools(r);
}

/* ---- a run ---- */

static int take_descriptor(const jail_frame *frame, uint64_t index)
{
    return index < frame->fd_count ? fcntl(frame->fds[index], F_DUPFD_CLOEXEC, PROGRAM_FD_FIRST)
                                   : -1;
}

bool program_is_late_answer(const jail_frame *frame)
{
    return rt_str_starts((rt_str){ frame->data, frame->len }, RT_STR("{\"op\":\"answer\""));
}

bool program_begin(program_run *r, int control, const jail_frame *frame, rt_error *err)
{
    static bool has_limits;
    if (!rt_json_parse((rt_str){ frame->data, frame->len }, &r->arena, &r->request, err))
        return false;
    rt_json_i64(rt_json_get_c(r->request, "id"), &r->id);
    r->keeps = rt_json_bool(rt_json_get_c(r->request, "keep"), false);
    r->has_tools = !rt_json_is_absent(rt_json_get_c(r->request, "tools"));
    r->relay.control = control;
    r->relay.run = r->id;
    r->relay.argument_max = program_number(r->request, "argument_bytes");
    if (!has_limits && !apply_limits(r->request, err))
        return false;
    has_limits = true;
    if (!rt_json_is_absent(rt_json_get_c(r->request, "stdin_fd")))
        r->in = take_descriptor(frame, program_number(r->request, "stdin_fd"));
    r->result = program_memory_file("result", (rt_str){ "", 0 }, err);
    clearenv();
    return r->result >= 0;
}

void program_end(program_run *r)
{
    rt_closep(&r->input);
    rt_closep(&r->result);
    rt_closep(&r->in);
    program_relay_close(&r->relay);
    clearenv(); /* what was put there goes with the arena */
    rt_arena_done(&r->arena);
}

bool program_settle(const program_run *r)
{
    int in = r->input >= 0 ? r->input : r->in;
    return (in < 0 || dup2(in, STDIN_FILENO) >= 0) && dup2(r->result, PROGRAM_RESULT_FD) >= 0 &&
           (r->relay.far < 0 || dup2(r->relay.far, RELAY_FD) >= 0);
}

void program_watch_child(const program_run *r, pid_t pid)
{
    interrupt_count = 0;
    child_pid = r->keeps ? pid : 0;
}

bool program_wait_child(program_run *r, pid_t pid, int *wait_status, rt_error *err)
{
    pid_t got;
    do
        got = r->relay.near >= 0 ? program_relay_wait(&r->relay, pid, wait_status)
                                 : waitpid(pid, wait_status, 0);
    while (got < 0 && errno == EINTR);
    child_pid = 0;
    return got == pid ? true : rt_fail_errno(err, "wait for the program");
}

/* The signal that the child has ended must not be missed between a look and the waiting. */
static pid_t fork_child(program_run *r, void (*become)(void *ctx), void *ctx)
{
    sigset_t child, before;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(r->has_tools ? SIG_BLOCK : SIG_UNBLOCK, &child, &before);
    pid_t pid = fork();
    if (pid == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        if (r->keeps)
            setpgid(0, 0); /* so that an interrupt reaches all it has started */
        become(ctx);
        _exit(126);
    }
    return pid;
}

bool program_run_child(program_run *r, void (*become)(void *ctx), void *ctx, int *wait_status,
                       rt_error *err)
{
    if (r->has_tools && r->relay.near < 0 && !program_relay_open(&r->relay, err))
        return false;
    pid_t pid = fork_child(r, become, ctx);
    if (pid < 0)
        return rt_fail_errno(err, "start the program");
    if (r->keeps)
        setpgid(pid, pid); /* whoever comes first */
    program_watch_child(r, pid);
    return program_wait_child(r, pid, wait_status, err);
}

/* ---- reporting ---- */

void program_report_error(int control, int64_t id, const char *type, const char *name,
                          rt_str message, int status)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "op", RT_STR("error"));
    rt_jw_ki64(&w, "id", id);
    rt_jw_kstr(&w, "type", rt_str_of(type));
    rt_jw_kstr(&w, "name", rt_str_of(name));
    rt_jw_kstr(&w, "message", message);
    rt_jw_ki64(&w, "status", status);
    rt_jw_end(&w);
    jail_frame_send(control, text.ptr, text.len, NULL, 0, NULL);
}

static void report_result(int control, program_run *r)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_str answer = { 0 };
    rt_json value;
    program_read_file(r->result, RESULT_MAX, &r->arena, &answer, &(rt_error){ 0 });
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "op", RT_STR("result"));
    rt_jw_ki64(&w, "id", r->id);
    if (answer.len > 0 && rt_json_parse(answer, &r->arena, &value, &(rt_error){ 0 }))
        rt_jw_kjson(&w, "value", value);
    else if (answer.len > 0)
        rt_jw_kstr(&w, "value", answer);
    rt_jw_end(&w);
    jail_frame_send(control, text.ptr, text.len, NULL, 0, NULL);
}

/* A longer answer than its reader takes would end the session. */
static bool is_too_long(const program_run *r, uint64_t *size)
{
    struct stat st;
    uint64_t most = program_number(r->request, "answer_bytes");
    *size = fstat(r->result, &st) == 0 ? (uint64_t)st.st_size : 0;
    return most > 0 && *size > most;
}

int program_report(int control, program_run *r, const char *what, int wait_status)
{
    uint64_t size;
    if (is_too_long(r, &size)) {
        program_report_error(
            control, r->id, "RuntimeError", "ValueError",
            rt_arena_printf(&r->arena,
                            "RESULT has %llu bytes, which is more than the output limit; "
                            "write it to a file in out/",
                            (unsigned long long)size),
            1);
        return 1;
    }
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) {
        report_result(control, r);
        return 0;
    }
    int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
    rt_str message = WIFEXITED(wait_status)
                         ? rt_arena_printf(&r->arena, "%s ended with status %d", what, code)
                         : rt_arena_printf(&r->arena, "%s was ended by signal %d (%s)", what,
                                           WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)));
    program_report_error(control, r->id, "RuntimeError", "ExitStatus", message, code);
    return code;
}
