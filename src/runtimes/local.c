/*
 * local.c - the runtime of this machine: one run is one fresh cell, or the next one in a session's.
 *
 * The order of events of a run stands in execute(): check, start a cell, send, watch, collect,
 * conclude. What the guest says is hearsay; what the kernel says (exit status, cgroup counters, our
 * own clock) decides.
 */
#include "runtimes/runtimes_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define INLINE_INPUT_MAX   (32u << 10) /* above it, input travels in a memory file */
#define FRAME_SLACK        (64u << 10)
#define CHECKER_MAX        (256u << 10)
#define FINISH_MS          10000
#define GRACE_MS           400 /* after each interrupt of a run in a session */
#define INTERRUPTS_MAX     3   /* then the session ends */
#define ARTIFACT_BYTES_MAX (32ull << 20)
#define GUESTS_PLACE       "/retort"
#define NODE_PLACE         "/retort-node"
#define LAUNCHER           GUESTS_PLACE "/launch/retort-launch"
#define ZYGOTES_MAX        24 /* of them six are ours */
#define ENTRIES_MAX        48 /* of the root, those of language files too */

typedef struct local {
    rt_runtime base;
    rt_sandbox *sandbox;
    templates *templates;
    char guests[PATH_MAX];
} local;

/* ---- checking ---- */

static bool check_code(rt_str code, const rt_policy *policy, rt_error *err)
{
    if (code.len > policy->code_bytes)
        return rt_fail(err, RT_LIMIT, "the code has %zu bytes; at most %llu are allowed", code.len,
                       (unsigned long long)policy->code_bytes);
    if (code.len > 0 && memchr(code.ptr, '\0', code.len))
        return rt_fail(err, RT_INVALID, "the code contains a NUL byte; is it a binary file?");
    if (!rt_utf8_valid(code))
        return rt_fail(err, RT_INVALID, "the code is not valid UTF-8; save it as UTF-8 text");
    return true;
}

static bool check_run(const rt_run *run, const rt_language **language, rt_error *err)
{
    *language = rt_language_find(run->language);
    if (!*language)
        return rt_language_unknown(run->language, err);
    if (rt_str_trim(run->code).len == 0)
        return rt_fail(err, RT_INVALID, "MISSING_CODE: there is no code to run");
    return check_code(run->code, run->policy, err) &&
           check_code(run->prelude.code, run->policy, err);
}

bool runtimes_is_strict_enough(const rt_policy *policy, rt_str attestation, rt_arena *arena,
                               rt_error *err)
{
    rt_json a;
    if (policy->isolation != RT_ISOLATION_STRICT)
        return true;
    if (!rt_json_parse(attestation, arena, &a, err))
        return false;
    rt_str by = rt_json_str(rt_json_get_c(rt_json_get_c(a, "memory"), "by"));
    if (!rt_str_starts(by, RT_STR("cgroup")))
        return rt_fail(err, RT_UNAVAILABLE,
                       "isolation strict: memory is limited without a cgroup here");
    if (!rt_json_bool(rt_json_get_c(rt_json_get_c(a, "ids"), "own_range"), false))
        return rt_fail(err, RT_UNAVAILABLE,
                       "isolation strict: cells have no user ids of their own here");
    if (!rt_json_bool(rt_json_get_c(a, "landlock"), false))
        return rt_fail(err, RT_UNAVAILABLE, "isolation strict: this kernel has no Landlock");
    return true;
}

/* ---- input ---- */

static bool copy_to_memory(int from, uint64_t max, int to, rt_error *err)
{
    char chunk[65536];
    uint64_t total = 0;
    ssize_t n;
    while ((n = read(from, chunk, sizeof(chunk))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return rt_fail_errno(err, "read the input");
        total += (uint64_t)n;
        if (total > max)
            return rt_fail(err, RT_LIMIT,
                           "the input is larger than the memory limit of %llu bytes; raise the "
                           "policy's memory (--memory)",
                           (unsigned long long)max);
        if (!rt_write_all(to, (rt_str){ chunk, (size_t)n }, err))
            return false;
    }
    return true;
}

static bool seal(int *fd, int *out)
{
    fcntl(*fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    lseek(*fd, 0, SEEK_SET);
    *out = RT_TAKE_FD(*fd);
    return true;
}

bool runtimes_memory_file(rt_str data, int *out, rt_error *err)
{
    int fd RT_CLEANUP(rt_closep) = memfd_create("data", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return rt_fail_errno(err, "memfd_create");
    return rt_write_all(fd, data, err) && seal(&fd, out);
}

static bool make_input_file(const rt_run *run, int *out, rt_error *err)
{
    if (!run->has_input_fd)
        return runtimes_memory_file(run->input, out, err);
    int fd RT_CLEANUP(rt_closep) = memfd_create("input", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return rt_fail_errno(err, "memfd_create");
    return copy_to_memory(run->input_fd, run->policy->memory_bytes, fd, err) && seal(&fd, out);
}

/* ---- the request ---- */

/* Behind the cgroup, where there is one, the rlimit is only a second fence and stands further out.
 */
#define PROCESSES_SLACK   16
#define CPU_SLACK_SECONDS 1 /* the cell's first process counts finer than the kernel's ticks */

/* In a session CPU time counts run by run, which an rlimit cannot. */
static void write_limits(rt_json_writer *w, const rt_policy *p, const guest_kind *kind,
                         bool is_kept)
{
    rt_jw_kobject(w, "limits");
    rt_jw_ku64(w, "cpu_seconds", is_kept ? 0 : (p->cpu_ms + 999) / 1000 + CPU_SLACK_SECONDS);
    rt_jw_ku64(w, "data_bytes", kind->is_data_limited ? p->memory_bytes : 0);
    rt_jw_ku64(w, "file_bytes", p->scratch_bytes);
    rt_jw_ku64(w, "processes", p->processes + PROCESSES_SLACK);
    rt_jw_ku64(w, "descriptors", 1024);
    rt_jw_end(w);
}

void runtimes_write_request(rt_json_writer *w, const rt_run *run, const guest_kind *kind,
                            const request_extras *extras)
{
    const rt_policy *p = run->policy;
    bool is_kept = run->live != NULL;
    rt_jw_object(w);
    rt_jw_kstr(w, "op", RT_STR("run"));
    rt_jw_ki64(w, "id", extras->id);
    rt_jw_kstr(w, "language", rt_str_of(kind->language));
    rt_jw_kstr(w, "name", run->name);
    rt_jw_kstr(w, "code", run->code);
    if (run->prelude.code.len > 0)
        runtimes_write_prelude(w, &run->prelude);
    if (extras->input_index >= 0) {
        rt_jw_kobject(w, "input_fd");
        rt_jw_ki64(w, "index", extras->input_index);
        rt_jw_kstr(w, "type", run->is_input_text ? RT_STR("text") : RT_STR("json"));
        rt_jw_end(w);
    } else if (run->has_input && run->is_input_text) {
        rt_jw_kstr(w, "input", run->input);
    } else if (run->has_input) {
        rt_jw_kraw(w, "input", run->input);
    }
    rt_jw_kobject(w, "env");
    for (size_t i = 0; i < p->env_count; i++) {
        rt_jw_key(w, p->env[i].name);
        rt_jw_str(w, p->env[i].value);
    }
    rt_jw_end(w);
    write_limits(w, p, kind, is_kept);
    if (p->has_import_list) {
        rt_jw_karray(w, "allowed_imports");
        for (size_t i = 0; i < p->import_count; i++)
            rt_jw_str(w, p->imports[i]);
        rt_jw_end(w);
    }
    if (run->desk) {
        rt_jw_kraw(w, "tools", run->desk->servers);
        rt_jw_ku64(w, "argument_bytes", p->output_bytes);
    }
    if (kind->launch)
        runtimes_launch_write(w, kind->launch);
    if (is_kept)
        rt_jw_ku64(w, "answer_bytes", p->output_bytes);
    if (extras->stdin_index >= 0)
        rt_jw_ki64(w, "stdin_fd", extras->stdin_index);
    rt_jw_kbool(w, "keep", is_kept);
    rt_jw_end(w);
}

/* The pipe of stdin has one end only; a run in a session gets a file of its own. */
static bool make_stdin_file(const rt_run *run, int *out, rt_error *err)
{
    int fd RT_CLEANUP(rt_closep) = memfd_create("stdin", MFD_CLOEXEC);
    if (fd < 0)
        return rt_fail_errno(err, "memfd_create");
    if (!rt_write_all(fd, run->stdin_data, err))
        return false;
    lseek(fd, 0, SEEK_SET);
    *out = RT_TAKE_FD(fd);
    return true;
}

static bool send_run(rt_cell *cell, const rt_run *run, const guest_kind *kind, int64_t id,
                     rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    request_extras extras = { .id = id, .input_index = -1, .stdin_index = -1 };
    int input RT_CLEANUP(rt_closep) = -1, in RT_CLEANUP(rt_closep) = -1, fds[2], count = 0;
    bool is_file = run->has_input_fd || (run->has_input && run->input.len > INLINE_INPUT_MAX);
    if ((is_file && !make_input_file(run, &input, err)) ||
        (run->live && !make_stdin_file(run, &in, err)))
        return false;
    if (is_file)
        fds[extras.input_index = count++] = input;
    if (run->live)
        fds[extras.stdin_index = count++] = in;
    rt_json_begin(&w, &text);
    runtimes_write_request(&w, run, kind, &extras);
    return rt_buf_ok(&text, err) && rt_cell_send(cell, rt_buf_str(&text), fds, (size_t)count, err);
}

/* ---- watching ---- */

/*
 * Ends the run. A fresh cell is simply killed; a session is interrupted first, because it has state
 * worth keeping, and killed when that does not help. False: it does not even die; closing the cell
 * leaves it to the warden.
 */
static bool press(progress *p, rt_cell *cell)
{
    unsigned interrupts = p->run->live && !p->is_copy ? INTERRUPTS_MAX : 0;
    bool is_gentle = p->pressed < interrupts && !p->was_frame_too_big;
    if (p->pressed > interrupts)
        return false;
    p->pressed = is_gentle ? p->pressed + 1 : interrupts + 1;
    p->deadline_ns = rt_now_ns() + (is_gentle ? GRACE_MS : FINISH_MS) * 1000000ull;
    return is_gentle ? rt_cell_interrupt(cell, NULL) : rt_cell_kill(cell, NULL);
}

static void take_output(progress *p, rt_cell *cell, const rt_cell_event *event)
{
    rt_outcome *out = p->out;
    uint64_t most = p->run->policy->output_bytes, had = out->out_bytes + out->err_bytes;
    rt_str kept = rt_str_slice(event->text, 0, (size_t)(had < most ? most - had : 0));
    rt_buf_add(&p->text[event->stream - 1], kept);
    *(event->stream == 1 ? &out->out_bytes : &out->err_bytes) += event->text.len;
    if (p->run->on_output && kept.len > 0 && !p->is_unheard &&
        !p->run->on_output(p->run->output_ctx, event->stream, kept)) {
        p->is_unheard = true;
        rt_cell_cancel(cell);
    }
    if (had + event->text.len > most && !p->was_flood) {
        p->was_flood = true;
        press(p, cell);
    }
}

static void take_denial(rt_outcome *out, const rt_denial *denial)
{
    out->denials_seen++;
    for (size_t i = 0; i < out->denial_count; i++)
        if (strcmp(out->denials[i].call, denial->call) == 0)
            return;
    if (out->denial_count < RT_DENIALS_MAX)
        out->denials[out->denial_count++] = *denial;
}

/* In a session, code of an earlier run may have said something after its answer. */
static bool is_answer(const progress *p, rt_str text)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json frame;
    int64_t id = 0;
    return !p->run->live || (rt_json_parse(text, &arena, &frame, &(rt_error){ 0 }) &&
                             rt_json_i64(rt_json_get_c(frame, "id"), &id) && id == p->id);
}

/* The answer is the last thing a guest says in a run; what code adds to it is not kept. */
static bool take_frame(progress *p, rt_cell *cell, rt_str text, rt_error *err)
{
    if (p->answer.len == 0 && runtimes_is_call(p, text)) {
        runtimes_desk_take(p, cell, text);
        return true;
    }
    if (p->answer.len > 0 || text.len == 0 || !is_answer(p, text))
        return true;
    p->answer = rt_arena_str(p->arena, text);
    p->deadline_ns =
        rt_now_ns() + FINISH_MS * 1000000ull; /* the code is done: now it is our time */
    return rt_cell_finish(cell, err);
}

static bool watch(progress *p, rt_cell *cell, rt_error *err)
{
    for (;;) {
        rt_cell_event event;
        rt_error problem = { 0 };
        runtimes_desk_serve(p, cell);
        if (!rt_cell_next(cell, runtimes_desk_deadline(p), &event, &problem)) {
            if (problem.code != RT_LIMIT || p->was_frame_too_big) {
                *err = problem;
                return false;
            }
            p->was_frame_too_big = true;
            return rt_cell_kill(cell, err);
        }
        switch (event.kind) {
        case RT_CELL_OUTPUT:
            take_output(p, cell, &event);
            break;
        case RT_CELL_FRAME:
            if (!take_frame(p, cell, event.text, err))
                return false;
            break;
        case RT_CELL_DENIED:
            take_denial(p->out, &event.denial);
            break;
        case RT_CELL_TIME:
            if (p->answer.len > 0)
                return rt_fail(err, RT_INTERNAL, "the cell does not say what it used");
            if (!event.usage.was_out_of_cpu && !runtimes_desk_is_out_of_time(p))
                break;
            if (p->pressed == 0) {
                p->was_timeout = true;
                p->was_cpu_time = event.usage.was_out_of_cpu;
            }
            if (!press(p, cell))
                return true;
            break;
        case RT_CELL_CANCELLED:
            p->was_cancelled = true;
            if (!p->run->live || runtimes_live_is_closing(p->run->live))
                return true; /* closing the cell ends it */
            press(p, cell);
            break;
        case RT_CELL_ATTEND:
            break; /* the desk is looked at anyway */
        case RT_CELL_EXIT:
            p->usage = event.usage;
            return true;
        }
    }
}

/* ---- artifacts ---- */

static bool keep_artifact(void *ctx, const rt_artifact *a, rt_error *err)
{
    progress *p = ctx;
    rt_outcome *out = p->out;
    rt_file *f = &out->artifacts[out->artifact_count++];
    *f = (rt_file){ .name = rt_arena_str(p->arena, a->name), .size = a->size };
    uint64_t kept = 0;
    for (size_t i = 0; i + 1 < out->artifact_count; i++)
        kept += out->artifacts[i].data.len;
    f->is_cut = a->size > ARTIFACT_BYTES_MAX - RT_MIN(kept, ARTIFACT_BYTES_MAX);
    if (f->is_cut || a->size == 0)
        return true;
    if (!rt_read_fd(a->fd, (size_t)a->size, p->arena, &f->data, err)) {
        f->is_cut = true; /* it grew meanwhile */
        *err = (rt_error){ 0 };
    }
    return true;
}

/* ---- the three operations ---- */

/* It was cancelled while it waited for its cell: that too is an outcome. */
static bool conclude_unstarted(rt_outcome *out, rt_error *err)
{
    *err = (rt_error){ 0 };
    runtimes_fail(out, RT_STATUS_CANCELLED, "CancelledError", "",
                  RT_STR("the run was cancelled before it began"), (rt_str){ 0 });
    out->exit_code = 1;
    return true;
}

rt_cell_spec runtimes_cell_spec(const rt_policy *policy, rt_str zygote)
{
    return (rt_cell_spec){ .zygote = zygote,
                           .memory_bytes = policy->memory_bytes,
                           .cpu_ms = policy->cpu_ms,
                           .processes = policy->processes,
                           .scratch_bytes = policy->scratch_bytes,
                           .files = policy->files,
                           .read_paths = policy->read_paths,
                           .read_path_count = policy->read_path_count,
                           .is_exec_denied = policy->is_exec_denied,
                           .frame_bytes = policy->output_bytes + FRAME_SLACK };
}

/* From the moment there is a cell: send, watch, collect, conclude. */
static bool run_in(rt_cell *cell, progress *p, const guest_kind *kind, uint64_t began,
                   rt_error *err)
{
    const rt_run *run = p->run;
    rt_outcome *out = p->out;
    out->attestation = rt_arena_str(p->arena, rt_cell_attestation(cell));
    if (!runtimes_is_strict_enough(run->policy, out->attestation, p->arena, err) ||
        !send_run(cell, run, kind, p->id, err))
        return false;
    if (!run->live)
        rt_cell_feed(cell, run->stdin_data);
    uint64_t started = rt_now_ns();
    out->start_us = (started - began) / 1000;
    p->deadline_ns = started + run->policy->wall_ms * 1000000ull;
    out->artifacts = rt_arena_alloc(p->arena, sizeof(*out->artifacts) * RT_ARTIFACTS_MAX);
    bool ok = watch(p, cell, err);
    if (run->desk)
        rt_cell_attend(cell, -1);
    ok = ok && rt_cell_artifacts(cell, keep_artifact, p, err);
    if (ok)
        runtimes_conclude(p, kind);
    out->wall_us = (rt_now_ns() - began) / 1000;
    rt_buf_done(&p->text[0]);
    rt_buf_done(&p->text[1]);
    return ok;
}

static bool run_fresh(local *l, progress *p, const guest_kind *kind, uint64_t began, rt_error *err)
{
    const rt_run *run = p->run;
    rt_cell_spec spec = runtimes_cell_spec(run->policy, runtimes_zygote_for(kind, run));
    spec.has_cancel_fd = run->canceller != NULL;
    spec.cancel_fd = run->canceller ? run->canceller->wake : -1;
    rt_cell *cell RT_CLEANUP(rt_cell_closep) = NULL;
    p->id = 1;
    if (!rt_cell_start(l->sandbox, &spec, &cell, err))
        return err->code == RT_CANCELLED ? conclude_unstarted(p->out, err)
                                         : rt_wrap(err, "start a cell");
    return run_in(cell, p, kind, began, err);
}

/* Whatever ended the run has ended the session as well: nobody should find out by the next run. */
static void tell_end(progress *p)
{
    rt_outcome *out = p->out;
    if (!out->has_error)
        runtimes_fail(out, RT_STATUS_FAILED, "RuntimeError", "",
                      RT_STR("the code ended the interpreter"), (rt_str){ 0 });
    out->error.message =
        rt_arena_printf(p->arena, "%.*s; the session has ended", RT_FMT(out->error.message));
}

static bool run_live(progress *p, const guest_kind *kind, uint64_t began, rt_error *err)
{
    const rt_run *run = p->run;
    rt_cell *cell;
    if (!runtimes_live_take(run->live, kind, run->canceller, &cell, &p->id, err))
        return err->code == RT_CANCELLED && !runtimes_live_is_closing(run->live)
                   ? conclude_unstarted(p->out, err)
                   : false;
    bool ok =
        rt_cell_begin(cell, run->policy->cpu_ms, run->canceller ? run->canceller->wake : -1, err) &&
        run_in(cell, p, kind, began, err);
    if (ok && !p->is_copy && rt_cell_is_over(cell))
        tell_end(p);
    runtimes_live_give(run->live);
    return ok;
}

static bool execute(rt_runtime *self, const rt_run *asked, rt_arena *arena, rt_outcome *out,
                    rt_error *err)
{
    const rt_language *language;
    uint64_t began = rt_now_ns();
    if (!check_run(asked, &language, err))
        return false;
    rt_run run = *asked;
    if (rt_str_starts(run.code, RT_STR("\xef\xbb\xbf")))
        run.code = rt_str_slice(run.code, 3, run.code.len); /* an editor's mark, not code */
    const guest_kind *kind = runtimes_guest(rt_str_of(language->name));
    if (!runtimes_launch_check(kind, run.policy, err))
        return false;
    if (run.name.len == 0)
        run.name = rt_arena_printf(arena, "main.%s", language->ending);
    runtimes_settle_prelude(&run, kind, arena);
    rt_live *copy RT_CLEANUP(rt_live_closep) =
        runtimes_use_prelude(((local *)self)->templates, self, &run, kind, arena);
    run.live = copy ? copy : run.live;
    *out = (rt_outcome){ .id = rt_id_new("exec", arena),
                         .language = rt_str_of(language->name),
                         .runtime = rt_str_of(self->name),
                         .is_parsed = true };
    progress p = { .run = &run, .out = out, .arena = arena, .is_copy = copy != NULL };
    return run.live ? run_live(&p, kind, began, err)
                    : run_fresh((local *)self, &p, kind, began, err);
}

bool runtimes_local_run(rt_runtime *self, const rt_run *run, const guest_kind *kind,
                        rt_arena *arena, rt_outcome *out, rt_error *err)
{
    *out = (rt_outcome){ .language = run->language, .is_parsed = true };
    progress p = { .run = run, .out = out, .arena = arena };
    return run_fresh((local *)self, &p, kind, rt_now_ns(), err);
}

rt_sandbox *runtimes_local_sandbox(rt_runtime *self)
{
    return ((local *)self)->sandbox;
}

/* Run inside a cell like any other code: the parsers that judge code are as exposed as the code. */
static bool validate(rt_runtime *self, rt_str code, rt_str language, rt_arena *arena,
                     rt_verdict *out, rt_error *err)
{
    local *l = (local *)self;
    const rt_language *known;
    rt_run judged = { .language = language,
                      .code = code,
                      .policy = rt_policy_preset(RT_STR("default")) };
    if (!check_run(&judged, &known, err))
        return false;
    const checker *by = runtimes_checker(rt_str_of(known->name));
    if (!by) {
        *out = (rt_verdict){ .is_implemented = false, .risks = RT_STR("[]") };
        return true;
    }
    rt_str path = rt_arena_printf(arena, "%s/%s", l->guests, by->path), program;
    if (!rt_read_file(path.ptr, CHECKER_MAX, arena, &program, err))
        return rt_wrap(err, "the checker");
    rt_buf input RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_outcome outcome;
    rt_json_begin(&w, &input);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "source", code);
    rt_jw_kstr(&w, "language", rt_str_of(known->name));
    rt_jw_end(&w);
    rt_run run = { .language = rt_str_of(by->runs_in),
                   .code = program,
                   .policy = rt_policy_preset(RT_STR("quick")),
                   .input = rt_buf_str(&input),
                   .has_input = true };
    if (!self->execute(self, &run, arena, &outcome, err))
        return false;
    if (outcome.status != RT_STATUS_SUCCESS)
        return rt_fail(err, RT_INTERNAL, "the code could not be checked: %.*s",
                       (int)RT_MIN(outcome.error.message.len, (size_t)150),
                       outcome.error.message.ptr);
    *out = (rt_verdict){ .is_implemented = true,
                         .is_safe = rt_str_eq_c(outcome.value, "[]"),
                         .risks = outcome.value };
    return true;
}

/* What a guest says of itself when it is warm; what a program says when it is asked. */
static void look_at(local *l, const guest_kind *kind, rt_arena *arena, rt_language *out)
{
    rt_error err = { 0 };
    rt_str about;
    rt_json doc;
    out->is_available =
        kind->launch ? runtimes_launch_find(kind->launch, &err)
                     : rt_sandbox_warm(l->sandbox, rt_str_of(kind->zygote), arena, &about, &err) &&
                           rt_json_parse(about, arena, &doc, &err);
    if (!out->is_available)
        out->detail = rt_arena_str(arena, rt_str_of(err.text));
    else if (kind->launch)
        out->version = runtimes_launch_version(&l->base, kind, arena);
    else
        out->version = rt_json_str(rt_json_get_c(doc, "version"));
}

static size_t list_languages(rt_runtime *self, rt_arena *arena, rt_language *out, size_t max)
{
    size_t count = 0;
    const rt_language *known;
    for (; count < max && (known = runtimes_language_at(count)); count++) {
        out[count] = *known;
        look_at((local *)self, runtimes_guest(rt_str_of(known->name)), arena, &out[count]);
    }
    return count;
}

static void close_local(rt_runtime *self)
{
    local *l = (local *)self;
    runtimes_templates_free(l->templates);
    rt_sandbox_close(l->sandbox);
    free(l);
}

void rt_runtime_closep(rt_runtime **runtime)
{
    if (*runtime)
        (*runtime)->close(*runtime);
}

/* ---- opening ---- */

static rt_str real_path(const char *path, rt_arena *arena)
{
    char real[PATH_MAX];
    return realpath(path, real) ? rt_arena_str(arena, rt_str_of(real)) : (rt_str){ "", 0 };
}

static rt_str first_of(rt_arena *arena, const char *given, const char *const *places)
{
    if (given)
        return real_path(given, arena);
    for (; *places; places++) {
        rt_str found = real_path(*places, arena);
        if (found.len > 0 && access(found.ptr, X_OK) == 0)
            return found;
    }
    return (rt_str){ "", 0 };
}

void rt_local_find(const rt_local_config *config, rt_arena *arena, rt_str *guests, rt_str *python,
                   rt_str *node)
{
    static const char *const pythons[] = { "/usr/bin/python3", "/usr/local/bin/python3", NULL };
    char exe[PATH_MAX] = "";
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    exe[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(exe, '/');
    if (slash)
        *slash = '\0';
    rt_str beside = rt_arena_printf(arena, "%s/guests", exe);
    rt_str own_node = rt_arena_printf(arena, "%s/guests/node/node", exe);
    const char *const nodes[] = { own_node.ptr, "/usr/bin/node", "/usr/local/bin/node", NULL };
    *guests = real_path(config->guests_dir ? config->guests_dir : beside.ptr, arena);
    *python = first_of(arena, config->python, pythons);
    *node = first_of(arena, config->node, nodes);
}

bool rt_local_open(const rt_local_config *config, rt_runtime **out, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str guests, python, node;
    rt_local_find(config, &arena, &guests, &python, &node);
    if (runtimes_languages_error())
        return *err = *runtimes_languages_error(), false;
    if (guests.len == 0)
        return rt_fail(err, RT_NOT_FOUND,
                       "the guests are not beside the program; run 'make' again");
    const char *py = python.len ? python.ptr : "/usr/bin/python3";
    const char *const python_argv[] = { py, "-I", "-B", GUESTS_PLACE "/python/zygote.py", NULL };
    const char *const data_argv[] = {
        py, "-I", "-B", GUESTS_PLACE "/python/zygote.py", "numpy,pandas,matplotlib", NULL
    };
    const char *const node_argv[] = { "/usr/bin/env",
                                      "LD_PRELOAD=" GUESTS_PLACE "/node/retort_fork.so", NODE_PLACE,
                                      "--single-threaded", "--v8-pool-size=0", "--disable-sigusr1",
                                      /* Its timer would be due in every child. */
                                      "--no-memory-reducer", "--expose-internals", "--no-warnings",
                                      /* An interrupted run leaves some of them out of step. */
                                      "--no-force-async-hooks-checks",
                                      /* A young generation that most runs never fill: collecting
                                       * after a fork copies the heap. */
                                      "--min-semi-space-size=16", "--max-semi-space-size=32",
                                      GUESTS_PLACE "/node/zygote.js",
                                      config->pool_max > 0 ? "60" : "5", NULL };
    const char *const shell_argv[] = { GUESTS_PLACE "/shell/retort-shell", NULL };
    const char *const sql_argv[] = { GUESTS_PLACE "/sql/retort-sql", NULL };
    const char *const launch_argv[] = { LAUNCHER, NULL };
    rt_zygote_spec zygotes[ZYGOTES_MAX] = { { "python", python_argv }, { "python-data", data_argv },
                                            { "node", node_argv },     { "bash", shell_argv },
                                            { "sql", sql_argv },       { "launch", launch_argv } };
    rt_root_entry root[ENTRIES_MAX] = { { guests.ptr, GUESTS_PLACE } };
    size_t zygote_count = 6, root_count = 1;
    if (node.len > 0)
        root[root_count++] = (rt_root_entry){ node.ptr, NODE_PLACE };
    zygote_count += runtimes_launch_zygotes(&arena, LAUNCHER, zygotes + zygote_count,
                                            ZYGOTES_MAX - zygote_count);
    root_count += runtimes_launch_needs(&arena, root + root_count, ENTRIES_MAX - root_count);
    rt_sandbox_config sandbox = { .zygotes = zygotes,
                                  .zygote_count = zygote_count,
                                  .root = root,
                                  .root_count = root_count,

                                  .nursery = GUESTS_PLACE "/nursery/retort-nursery",
                                  .max_cells = config->max_cells,
                                  .pool_max = config->pool_max,
                                  .is_cgroup_required = config->is_cgroup_required };
    local *l = calloc(1, sizeof(*l));
    if (!l)
        rt_out_of_memory(sizeof(*l));
    l->base = (rt_runtime){ .name = "local",
                            .execute = execute,
                            .validate = validate,
                            .languages = list_languages,
                            .close = close_local };
    snprintf(l->guests, sizeof(l->guests), "%s", guests.ptr);
    if (!rt_sandbox_open(&sandbox, &l->sandbox, err)) {
        free(l);
        return false;
    }
    l->templates = runtimes_templates_new();
    *out = &l->base;
    return true;
}
