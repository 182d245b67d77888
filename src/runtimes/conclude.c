/*
 * conclude.c - what became of a run: its value, its error, or the limit that ended it.
 *
 * What we did to the run ourselves comes first (time, cancel, flood), then what the guest said,
 * then what the kernel counted: a failure that has a limit of the policy behind it is told as that
 * limit.
 */
#include "runtimes/runtimes_internal.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define MEMORY_HINT "work in smaller pieces, or allow more by the policy's memory (--memory)"

static rt_str say(rt_arena *arena, const char *format, uint64_t number)
{
    char text[160];
    snprintf(text, sizeof(text), format, (unsigned long long)number);
    return rt_arena_str(arena, rt_str_of(text));
}

static void fail_memory(progress *p)
{
    runtimes_fail(
        p->out, RT_STATUS_MEMORY_ERROR, "MemoryError", "memory",
        say(p->arena, "Memory limit of %lluMB exceeded", p->run->policy->memory_bytes >> 20),
        RT_STR(MEMORY_HINT));
}

static void fail_cpu(progress *p)
{
    runtimes_fail(p->out, RT_STATUS_TIMEOUT, "TimeoutError", "cpu",
                  say(p->arena, "CPU time limit of %llums exceeded", p->run->policy->cpu_ms),
                  RT_STR("make the code faster, or allow more by the policy's cpu (--cpu)"));
}

/* What we did to the run ourselves; true when that ended it. */
static bool conclude_interruption(progress *p)
{
    const rt_policy *policy = p->run->policy;
    rt_outcome *out = p->out;
    if (p->was_cancelled)
        runtimes_fail(out, RT_STATUS_CANCELLED, "CancelledError", "",
                      RT_STR("the run was cancelled"), (rt_str){ 0 });
    else if (p->was_timeout && p->was_cpu_time)
        fail_cpu(p);
    else if (p->was_timeout)
        runtimes_fail(
            out, RT_STATUS_TIMEOUT, "TimeoutError", "timeout",
            say(p->arena, "Execution exceeded timeout of %llums", policy->wall_ms),
            RT_STR("make the code faster, or allow more by the policy's timeout (--timeout)"));
    else if (p->was_flood)
        runtimes_fail(out, RT_STATUS_FAILED, "ResourceLimitError", "output",
                      say(p->arena, "Output limit of %llu bytes exceeded", policy->output_bytes),
                      RT_STR("print less, write files to out/, or allow more by the policy's "
                             "output (--output)"));
    else if (p->was_frame_too_big)
        runtimes_fail(out, RT_STATUS_FAILED, "ResourceLimitError", "output",
                      say(p->arena, "The answer is larger than the output limit of %llu bytes",
                          policy->output_bytes),
                      RT_STR("return a summary, write a file to out/, or allow more by the "
                             "policy's output (--output)"));
    else
        return false;
    return true;
}

static void name_limit(rt_outcome *out, const char *limit, rt_str hint)
{
    out->error.type = RT_STR("ResourceLimitError");
    out->error.limit = rt_str_of(limit);
    out->error.hint = hint;
}

/* A failure that has a limit of the policy behind it is told as that; the kernel knows. */
static void conclude_limits(progress *p)
{
    const rt_policy *policy = p->run->policy;
    rt_outcome *out = p->out;
    int status = p->usage.wait_status;
    int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    bool is_cpu = signal == SIGXCPU || out->error.status == 128 + SIGXCPU ||
                  p->usage.was_out_of_cpu ||
                  (signal == SIGKILL && p->usage.cpu_us >= policy->cpu_ms * 1000);
    if (!out->has_error)
        return;
    if (p->usage.was_out_of_memory)
        fail_memory(p);
    else if (is_cpu)
        fail_cpu(p);
    else if (p->usage.was_out_of_processes)
        name_limit(out, "processes",
                   say(p->arena,
                       "at most %llu processes and threads may run at once; allow more by the "
                       "policy's processes (--processes)",
                       policy->processes));
    else if (p->usage.was_out_of_scratch && out->error.limit.len == 0)
        name_limit(
            out, "scratch",
            RT_STR(
                "the scratch directory is full; allow more by the policy's scratch (--scratch)"));
    else if (rt_str_eq_c(out->error.limit,
                         "memory")) { /* the language noticed first, in its own line */
        out->error.message =
            say(p->arena, "Memory limit of %lluMB exceeded", policy->memory_bytes >> 20);
        out->error.hint = RT_STR(MEMORY_HINT);
    }
}

static void conclude_exit(progress *p)
{
    rt_outcome *out = p->out;
    int status = p->usage.wait_status;
    if (WIFSIGNALED(status))
        runtimes_fail(out, RT_STATUS_FAILED, "RuntimeError", "",
                      rt_arena_printf(p->arena, "the code was ended by signal %d (%s)",
                                      WTERMSIG(status), strsignal(WTERMSIG(status))),
                      (rt_str){ 0 });
    else if (out->exit_code != 0)
        runtimes_fail(out, RT_STATUS_FAILED, "RuntimeError", "",
                      say(p->arena, "the code ended with status %llu", (uint64_t)out->exit_code),
                      (rt_str){ 0 });
}

/* A shell, and any other program, answers with what it printed. */
static void answer_with_output(progress *p)
{
    rt_outcome *out = p->out;
    rt_json value;
    rt_str text = rt_str_trim(out->out);
    if (out->has_value || out->has_error || text.len == 0)
        return;
    rt_buf printed RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    out->has_value = out->is_value_output = true;
    out->is_parsed = rt_json_parse(text, p->arena, &value, &(rt_error){ 0 });
    rt_json_begin(&w, &printed);
    if (out->is_parsed)
        rt_jw_json(&w, value);
    else
        rt_jw_str(&w, text);
    out->value = rt_arena_str(p->arena, rt_buf_str(&printed));
}

static int exit_code_of(const progress *p)
{
    int status = p->usage.wait_status;
    if (p->was_timeout || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU))
        return 124;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* What the guest said, if it is of any use. */
static void read_answer(progress *p)
{
    rt_outcome *out = p->out;
    rt_error problem = { 0 };
    if (p->answer.len > 0 && !runtimes_read_result(out, p->answer, p->arena, &problem))
        runtimes_fail(out, RT_STATUS_FAILED, "RuntimeError", "",
                      rt_arena_printf(p->arena, "the answer cannot be used: %s", problem.text),
                      (rt_str){ 0 });
    if (out->exit_code == 0 && out->error.status > 0 && out->error.status < 256)
        out->exit_code = (int)out->error.status;
    if (out->exit_code == 0 && out->has_error)
        out->exit_code = 1;
}

void runtimes_conclude(progress *p, const guest_kind *kind)
{
    rt_outcome *out = p->out;
    out->out = rt_arena_str(p->arena, rt_buf_str(&p->text[0]));
    out->err = rt_arena_str(p->arena, rt_buf_str(&p->text[1]));
    out->cpu_us = p->usage.cpu_us;
    out->memory_peak_bytes = p->usage.memory_peak_bytes;
    out->exit_code = exit_code_of(p);
    if (kind->launch)
        runtimes_launch_forget(out, kind->launch);
    if (conclude_interruption(p)) {
        out->exit_code = out->exit_code ? out->exit_code : 1;
        return;
    }
    read_answer(p);
    if (!out->has_error)
        conclude_exit(p);
    if (kind->launch && out->has_error)
        runtimes_launch_explain(out, kind->launch, p->arena);
    else if (kind->is_program && out->has_error)
        runtimes_read_shell_error(out, p->arena);
    conclude_limits(p);
    if (kind->answers_by_output)
        answer_with_output(p);
    runtimes_explain(out, p->run->policy, p->arena);
}
