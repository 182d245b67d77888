/*
 * shell.c - the guest for bash.
 *
 * There is no interpreter to warm here: a shell starts in a millisecond. The zygote is this small
 * program; the forked and sealed child runs bash as its own child, waits, and reports. Bash gets
 * the script as `bash -c SCRIPT main.sh`, so that its messages name the user's lines; what is too
 * long for that lies in a file. A memory file named by BASH_ENV sets the trap that brings the
 * variable RESULT back through descriptor 9. Nothing needs a directory that can be written.
 *
 * Where the run has tools, the program retort-tool calls them through us (program/relay.h).
 *
 * In a session each run is a bash of its own. What it leaves behind is what a child can tell its
 * parent: files, and through descriptor 7, when it ends, its exported variables and its directory.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guests/program/program.h"

#define SCRIPT      "main.sh"
#define SCRIPT_FILE "/tmp/main.sh"
#define STATE_FD    7
#define PROLOGUE_FD 8
#define BASH        "/bin/bash"
#define PROGRAMS    "/usr/local/bin:/usr/bin:/bin"

#define STATE_MAX (1u << 20)

static const char prologue[] = "unset BASH_ENV; exec 8<&-\n"
                               "trap '[ -n \"${RESULT+x}\" ] && printf %s \"$RESULT\" >&9' EXIT\n";
static const char kept_prologue[] =
    "unset BASH_ENV; exec 8<&-\n"
    "trap '[ -n \"${RESULT+x}\" ] && printf %s \"$RESULT\" >&9; /usr/bin/env -0 >&7' EXIT\n";

typedef struct run {
    program_run base;
    int prologue;
    int state;          /* in a session: memory file for what the next run should find, or -1 */
    const char *script; /* NULL: in SCRIPT_FILE */
} run;

/* ---- what a session remembers ---- */

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
            putenv(rt_arena_copy(&r->base.arena, entry));
}

/* A shell that was killed, or that has replaced our trap, leaves things as they were. */
static void keep_state(run *r)
{
    rt_str all = { 0 }, rest, entry;
    if (r->state < 0 || lseek(r->state, 0, SEEK_SET) < 0 ||
        !rt_read_fd(r->state, STATE_MAX, &r->base.arena, &all, &(rt_error){ 0 }) || all.len == 0)
        return;
    rt_buf_reset(&kept_variables);
    rt_buf_add(&kept_variables, all);
    rest = all;
    while (rest.len > 0 && rt_str_cut(&rest, '\0', &entry))
        if (rt_str_starts(entry, RT_STR("PWD=")))
            (void)!chdir(rt_arena_copy(&r->base.arena, rt_str_slice(entry, 4, entry.len)));
}

/* ---- running ---- */

static void become_bash(void *ctx)
{
    const run *r = ctx;
    if (!program_settle(&r->base) || dup2(r->prologue, PROLOGUE_FD) < 0 ||
        (r->base.keeps && dup2(r->state, STATE_FD) < 0))
        _exit(126);
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
    rt_str code = rt_json_str(rt_json_get_c(r->base.request, "code"));
    r->script = code.len <= PROGRAM_ENV_MAX ? rt_arena_copy(&r->base.arena, code) : NULL;
    return r->script || program_write_file(SCRIPT_FILE, code, err);
}

static bool run_bash(run *r, int *status, rt_error *err)
{
    bool keeps = r->base.keeps;
    r->prologue = program_memory_file("prologue", rt_str_of(keeps ? kept_prologue : prologue), err);
    r->state = keeps ? program_memory_file("state", (rt_str){ "", 0 }, err) : -1;
    if (r->prologue < 0 || (keeps && r->state < 0))
        return false;
    bool ok = program_run_child(&r->base, become_bash, r, status, err);
    keep_state(r);
    return ok;
}

static int serve_run(int control, const jail_frame *frame, bool *keeps)
{
    rt_error err = { 0 };
    run r = { .base = PROGRAM_RUN_NONE, .prologue = -1, .state = -1 };
    int status = 0, code = 1;
    bool ok = program_begin(&r.base, control, frame, &err);
    *keeps = r.base.keeps;
    if (ok) {
        restore_variables(&r);
        program_set_environment(&r.base, PROGRAMS);
    }
    ok = ok && program_take_input(&r.base, frame, &err) && place_script(&r, &err) &&
         run_bash(&r, &status, &err);
    if (ok)
        code = program_report(control, &r.base, "the script", status);
    else
        program_report_error(control, r.base.id, "RuntimeError", "Error", rt_str_of(err.text),
                             code);
    rt_closep(&r.prologue);
    rt_closep(&r.state);
    program_end(&r.base);
    return code;
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
    program_take_interrupts();
    while (keeps && jail_frame_recv(control, JAIL_FRAME_MAX, &frame, NULL)) {
        if (!program_is_late_answer(&frame))
            code = serve_run(control, &frame, &keeps);
        jail_frame_done(&frame);
    }
    return code;
}
