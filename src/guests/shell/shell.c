/*
 * shell.c - the guest for bash.
 *
 * There is no interpreter to warm here: a shell starts in a millisecond. The zygote is this small
 * program; the forked and sealed child runs bash as its own child, waits, and reports. Bash gets
 * the script as `bash -c SCRIPT main.sh`, so that its messages name the user's lines; what is too
 * long for that lies in a file. A memory file named by BASH_ENV sets the trap that brings the
 * variable RESULT back through descriptor 9. Nothing needs a directory that can be written.
 *
 * Where the run has tools, the program retort-tool calls them through us (relay.h).
 *
 * In a session each run is a bash of its own. What it leaves behind is what a child can tell its
 * parent: files, and through descriptor 7, when it ends, its exported variables and its directory.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "guests/jail/jail.h"
#include "guests/shell/relay.h"

#define SCRIPT      "main.sh"
#define SCRIPT_FILE "/tmp/main.sh"
#define STATE_FD    7
#define PROLOGUE_FD 8
#define RESULT_FD   9
#define ENV_MAX     (100u << 10) /* the kernel takes 128 KiB a variable */
#define RESULT_MAX  (16u << 20)
#define BASH        "/bin/bash"
#define TOOL_FOLDER "/retort/bin" /* where retort-tool is */

#define STATE_MAX (1u << 20)

static const char prologue[] = "unset BASH_ENV; exec 8<&-\n"
                               "trap '[ -n \"${RESULT+x}\" ] && printf %s \"$RESULT\" >&9' EXIT\n";
static const char kept_prologue[] =
    "unset BASH_ENV; exec 8<&-\n"
    "trap '[ -n \"${RESULT+x}\" ] && printf %s \"$RESULT\" >&9; /usr/bin/env -0 >&7' EXIT\n";

typedef struct run {
    rt_arena arena;
    rt_json request;
    int64_t id;
    int input;  /* memory file with the input, or -1 */
    int result; /* memory file that RESULT is written to */
    int prologue;
    int state;          /* in a session: memory file for what the next run should find, or -1 */
    int in;             /* in a session: stdin of this run, or -1 */
    const char *script; /* NULL: in SCRIPT_FILE */
    bool keeps;
    bool has_tools;
    relay relay;
} run;

static volatile sig_atomic_t bash_pid, interrupt_count;

/* The first time bash may clean up; code that does not want to end is ended. */
static void interrupt_bash(int signal)
{
    (void)signal;
    if (bash_pid > 0)
        kill((pid_t)-bash_pid, interrupt_count++ == 0 ? SIGINT : SIGKILL);
}

static uint64_t number_of(rt_json object, const char *key)
{
    int64_t n = 0;
    return rt_json_i64(rt_json_get_c(object, key), &n) && n > 0 ? (uint64_t)n : 0;
}

static bool apply_limits(rt_json request, rt_error *err)
{
    rt_json l = rt_json_get_c(request, "limits");
    jail_limits limits = { .cpu_seconds = number_of(l, "cpu_seconds"),
                           .data_bytes = number_of(l, "data_bytes"),
                           .file_bytes = number_of(l, "file_bytes"),
                           .processes = number_of(l, "processes"),
                           .descriptors = number_of(l, "descriptors") };
    return jail_limit(&limits, err);
}

static bool write_file(const char *path, rt_str text, rt_error *err)
{
    int fd RT_CLEANUP(rt_closep) = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return rt_fail_errno(err, "write %s", path);
    return rt_write_all(fd, text, err);
}

/* Below the descriptors that bash gets by number. */
static int memory_file(const char *name, rt_str text, rt_error *err)
{
    int made RT_CLEANUP(rt_closep) = memfd_create(name, MFD_CLOEXEC);
    int fd = made < 0 ? -1 : fcntl(made, F_DUPFD_CLOEXEC, 20);
    if (fd < 0) {
        rt_fail_errno(err, "memfd_create");
        return -1;
    }
    if (rt_write_all(fd, text, err) && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    close(fd);
    return -1;
}

/* ---- input ---- */

static void set_variable(rt_arena *arena, const char *name, rt_str value)
{
    if (value.len <= ENV_MAX && !memchr(value.ptr, '\0', value.len))
        setenv(name, rt_arena_copy(arena, value), 1);
}

static bool is_name(rt_str key)
{
    for (size_t i = 0; i < key.len; i++)
        if (key.ptr[i] != '_' && (key.ptr[i] < '0' || key.ptr[i] > '9') &&
            ((key.ptr[i] | 32) < 'a' || (key.ptr[i] | 32) > 'z'))
            return false;
    return key.len > 0 && key.len < 200;
}

/* INPUT_<key>: a text as it is, anything else as JSON text. */
static void set_members(run *r, rt_json input)
{
    rt_str key;
    rt_json value;
    rt_json_iter it = rt_json_each(input);
    while (rt_json_type(input) == RT_JSON_OBJECT && rt_json_next(&it, &key, &value)) {
        rt_buf text RT_CLEANUP(rt_buf_done) = { .max = ENV_MAX };
        if (!is_name(key))
            continue;
        if (rt_json_type(value) == RT_JSON_STRING)
            rt_buf_add(&text, rt_json_str(value));
        else
            rt_json_print(value, &text);
        if (rt_buf_ok(&text, NULL))
            set_variable(&r->arena, rt_arena_printf(&r->arena, "INPUT_%.*s", RT_FMT(key)).ptr,
                         rt_buf_str(&text));
    }
}

static bool read_memory_file(int fd, size_t max, rt_arena *arena, rt_str *out, rt_error *err)
{
    if (lseek(fd, 0, SEEK_SET) < 0)
        return rt_fail_errno(err, "rewind the input");
    bool ok = rt_read_fd(fd, max, arena, out, err);
    lseek(fd, 0, SEEK_SET);
    return ok;
}

static bool take_input_file(run *r, const jail_frame *frame, rt_json about, rt_error *err)
{
    uint64_t index = number_of(about, "index");
    rt_str text;
    rt_json input;
    if (index >= frame->fd_count)
        return rt_fail(err, RT_INVALID, "input_fd names a descriptor that did not come");
    r->input = fcntl(frame->fds[index], F_DUPFD_CLOEXEC, 20);
    struct stat st;
    if (fstat(r->input, &st) != 0 || st.st_size > ENV_MAX)
        return true; /* too big for variables: the code reads it from stdin */
    if (!read_memory_file(r->input, ENV_MAX, &r->arena, &text, err))
        return false;
    set_variable(&r->arena, "INPUT", text);
    if (rt_str_eq_c(rt_json_str(rt_json_get_c(about, "type")), "json") &&
        rt_json_parse(text, &r->arena, &input, err))
        set_members(r, input);
    return true;
}

static bool take_input(run *r, const jail_frame *frame, rt_error *err)
{
    rt_json about = rt_json_get_c(r->request, "input_fd");
    rt_json input = rt_json_get_c(r->request, "input");
    if (!rt_json_is_absent(about))
        return take_input_file(r, frame, about, err);
    if (rt_json_is_absent(input))
        return true;
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_print(input, &text);
    set_variable(&r->arena, "INPUT", rt_buf_str(&text));
    set_members(r, input);
    r->input = memory_file("input", rt_buf_str(&text), err);
    return r->input >= 0;
}

/* What the last run of the session has exported, as `env -0` lists it. */
static rt_buf kept_variables;

static bool is_own(rt_str entry)
{
    static const char *const own[] = { "_=",        "SHLVL=", "OLDPWD=", "PWD=",
                                       "BASH_ENV=", "INPUT=", "INPUT_",  "RESULT=" };
    for (size_t i = 0; i < RT_COUNT(own); i++)
        if (rt_str_starts(entry, rt_str_of(own[i])))
            return true;
    return false;
}

static void restore_variables(run *r)
{
    rt_str rest = rt_buf_str(&kept_variables), entry;
    while (rest.len > 0 && rt_str_cut(&rest, '\0', &entry))
        if (rt_str_find(entry, RT_STR("=")) > 0 && !is_own(entry))
            putenv(rt_arena_copy(&r->arena, entry));
}

/* A shell that was killed, or that has replaced our trap, leaves things as they were. */
static void keep_state(run *r)
{
    rt_str all = { 0 }, rest, entry;
    if (r->state < 0 || lseek(r->state, 0, SEEK_SET) < 0 ||
        !rt_read_fd(r->state, STATE_MAX, &r->arena, &all, &(rt_error){ 0 }) || all.len == 0)
        return;
    rt_buf_reset(&kept_variables);
    rt_buf_add(&kept_variables, all);
    rest = all;
    while (rest.len > 0 && rt_str_cut(&rest, '\0', &entry))
        if (rt_str_starts(entry, RT_STR("PWD=")))
            (void)!chdir(rt_arena_copy(&r->arena, rt_str_slice(entry, 4, entry.len)));
}

/* A session's earlier run, which may have had no tools, has told its PATH. */
static void show_tools(run *r)
{
    const char *path = getenv("PATH");
    if (r->has_tools && (!path || !strstr(path, TOOL_FOLDER)))
        setenv("PATH", rt_arena_printf(&r->arena, "%s:" TOOL_FOLDER, path ? path : "/bin").ptr, 1);
}

static void set_environment(run *r)
{
    rt_str name;
    rt_json value;
    clearenv();
    setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 1);
    setenv("HOME", "/work", 1);
    setenv("TMPDIR", "/tmp", 1);
    setenv("LANG", "C.UTF-8", 1);
    restore_variables(r);
    rt_json_iter it = rt_json_each(rt_json_get_c(r->request, "env"));
    while (rt_json_next(&it, &name, &value))
        if (is_name(name))
            set_variable(&r->arena, rt_arena_copy(&r->arena, name), rt_json_str(value));
    show_tools(r);
}

/* ---- running ---- */

static _Noreturn void become_bash(const run *r)
{
    int in = r->input >= 0 ? r->input : r->in;
    if ((in >= 0 && dup2(in, STDIN_FILENO) < 0) || dup2(r->result, RESULT_FD) < 0 ||
        dup2(r->prologue, PROLOGUE_FD) < 0 || (r->keeps && dup2(r->state, STATE_FD) < 0) ||
        (r->has_tools && dup2(r->relay.far, RELAY_FD) < 0))
        _exit(126);
    if (r->keeps)
        setpgid(0, 0); /* so that an interrupt reaches all it has started */
    setenv("BASH_ENV", "/dev/fd/8", 1);
    if (r->script)
        execl(BASH, "bash", "-c", r->script, SCRIPT, (char *)NULL);
    else
        execl(BASH, "bash", SCRIPT_FILE, (char *)NULL);
    dprintf(STDERR_FILENO, "%s: %s\n", BASH, strerror(errno));
    _exit(127);
}

static bool place_script(run *r, rt_error *err)
{
    rt_str code = rt_json_str(rt_json_get_c(r->request, "code"));
    r->script = code.len <= ENV_MAX ? rt_arena_copy(&r->arena, code) : NULL;
    return r->script || write_file(SCRIPT_FILE, code, err);
}

/* The signal that bash has ended must not be missed between a look and the waiting. */
static pid_t fork_bash(run *r)
{
    sigset_t child, before;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(r->has_tools ? SIG_BLOCK : SIG_UNBLOCK, &child, &before);
    pid_t pid = fork();
    if (pid == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        become_bash(r);
    }
    return pid;
}

static pid_t wait_for_bash(run *r, pid_t pid, int *status)
{
    pid_t got;
    do
        got = r->has_tools ? shell_relay_wait(&r->relay, pid, status) : waitpid(pid, status, 0);
    while (got < 0 && errno == EINTR);
    return got;
}

static bool run_bash(run *r, int *status, rt_error *err)
{
    r->result = memory_file("result", (rt_str){ "", 0 }, err);
    r->prologue = memory_file("prologue", rt_str_of(r->keeps ? kept_prologue : prologue), err);
    r->state = r->keeps ? memory_file("state", (rt_str){ "", 0 }, err) : -1;
    if (r->result < 0 || r->prologue < 0 || (r->keeps && r->state < 0))
        return false;
    if (r->has_tools && !shell_relay_open(&r->relay, err))
        return false;
    pid_t pid = fork_bash(r);
    if (pid < 0)
        return rt_fail_errno(err, "start bash");
    if (r->keeps)
        setpgid(pid, pid); /* whoever comes first */
    interrupt_count = 0;
    bash_pid = r->keeps ? pid : 0;
    pid_t got = wait_for_bash(r, pid, status);
    bash_pid = 0;
    keep_state(r);
    return got == pid ? true : rt_fail_errno(err, "wait for bash");
}

/* ---- reporting ---- */

static void report_error(int control, int64_t id, const char *name, rt_str message, int status)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "op", RT_STR("error"));
    rt_jw_ki64(&w, "id", id);
    rt_jw_kstr(&w, "type", RT_STR("RuntimeError"));
    rt_jw_kstr(&w, "name", rt_str_of(name));
    rt_jw_kstr(&w, "message", message);
    rt_jw_ki64(&w, "status", status);
    rt_jw_end(&w);
    jail_frame_send(control, text.ptr, text.len, NULL, 0, NULL);
}

static void report_result(int control, run *r)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_str answer = { 0 };
    rt_json value;
    read_memory_file(r->result, RESULT_MAX, &r->arena, &answer, &(rt_error){ 0 });
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
static bool is_too_long(run *r, uint64_t *size)
{
    struct stat st;
    uint64_t most = number_of(r->request, "answer_bytes");
    *size = fstat(r->result, &st) == 0 ? (uint64_t)st.st_size : 0;
    return most > 0 && *size > most;
}

static int report(int control, run *r, int status)
{
    uint64_t size;
    if (is_too_long(r, &size)) {
        report_error(control, r->id, "ValueError",
                     rt_arena_printf(&r->arena,
                                     "RESULT has %llu bytes, which is more than the output limit; "
                                     "write it to a file in out/",
                                     (unsigned long long)size),
                     1);
        return 1;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        report_result(control, r);
        return 0;
    }
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    rt_str message = WIFEXITED(status)
                         ? rt_arena_printf(&r->arena, "the script ended with status %d", code)
                         : rt_arena_printf(&r->arena, "the script was ended by signal %d (%s)",
                                           WTERMSIG(status), strsignal(WTERMSIG(status)));
    report_error(control, r->id, "ExitStatus", message, code);
    return code;
}

static int take_descriptor(const jail_frame *frame, uint64_t index)
{
    return index < frame->fd_count ? fcntl(frame->fds[index], F_DUPFD_CLOEXEC, 20) : -1;
}

static int serve_run(int control, const jail_frame *frame, bool *keeps)
{
    static bool has_limits;
    rt_error err = { 0 };
    run r = { .input = -1, .result = -1, .prologue = -1, .state = -1, .in = -1 };
    r.relay = (relay){ .control = control, .near = -1, .far = -1 };
    int status = 0;
    bool ok = rt_json_parse((rt_str){ frame->data, frame->len }, &r.arena, &r.request, &err);
    rt_json_i64(rt_json_get_c(r.request, "id"), &r.id);
    *keeps = r.keeps = rt_json_bool(rt_json_get_c(r.request, "keep"), false);
    r.has_tools = !rt_json_is_absent(rt_json_get_c(r.request, "tools"));
    r.relay.run = r.id;
    r.relay.argument_max = number_of(r.request, "argument_bytes");
    ok = ok && (has_limits || apply_limits(r.request, &err));
    has_limits = true;
    if (ok && !rt_json_is_absent(rt_json_get_c(r.request, "stdin_fd")))
        r.in = take_descriptor(frame, number_of(r.request, "stdin_fd"));
    if (ok)
        set_environment(&r);
    ok = ok && take_input(&r, frame, &err) && place_script(&r, &err) && run_bash(&r, &status, &err);
    int code = 1;
    if (ok)
        code = report(control, &r, status);
    else
        report_error(control, r.id, "Error", rt_str_of(err.text), code);
    rt_closep(&r.input);
    rt_closep(&r.result);
    rt_closep(&r.prologue);
    rt_closep(&r.state);
    rt_closep(&r.in);
    shell_relay_close(&r.relay);
    clearenv(); /* what was put there goes with the arena */
    rt_arena_done(&r.arena);
    return code;
}

/* One that was on its way when the run ended that had asked. */
static bool is_late_answer(const jail_frame *frame)
{
    return rt_str_starts((rt_str){ frame->data, frame->len }, RT_STR("{\"op\":\"answer\""));
}

static void announce(void)
{
    char version[64] = "", about[160];
    FILE *pipe = popen(BASH " --norc -c 'printf %s \"$BASH_VERSION\"'", "re");
    if (pipe) {
        size_t n = fread(version, 1, sizeof(version) - 1, pipe);
        version[n] = '\0';
        pclose(pipe);
    }
    for (char *c = version; *c; c++)
        if (*c == '"' || *c == '\\' || *c < ' ')
            *c = '?';
    snprintf(about, sizeof(about), "{\"language\":\"bash\",\"version\":\"%s\"}", version);
    jail_announce(JAIL_ORDERS_FD, about, NULL);
}

int main(void)
{
    announce();
    int control = jail_serve(JAIL_ORDERS_FD, &(jail_hooks){ 0 });
    jail_frame frame;
    int code = 0;
    bool keeps = true;
    signal(SIGINT, interrupt_bash);
    while (keeps && jail_frame_recv(control, JAIL_FRAME_MAX, &frame, NULL)) {
        if (!is_late_answer(&frame))
            code = serve_run(control, &frame, &keeps);
        jail_frame_done(&frame);
    }
    return code;
}
