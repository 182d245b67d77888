/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run from beginning to end against a cell that follows a script: local.c is compiled in here
 * with the sandbox's calls replaced, so no cell is needed and every ending can be had.
 */
#include "runtimes/runtimes_internal.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SCRIPT_MAX 16

static struct {
    rt_cell_event events[SCRIPT_MAX]; /* then EXIT, with `usage` */
    size_t count, at;
    rt_cell_usage usage;
    rt_error start_error,
        next_error; /* when set: what start, or next after the script, fails with */
    const char *attestation;
    rt_artifact files[3];
    size_t file_count;
    /* what was seen */
    rt_cell_spec spec;
    char sent[4096], fed[64];
    size_t sent_fds;
    char input[64]; /* of a memory file that was sent */
    unsigned starts, kills, finishes, closes, cancels;
    char posted[SCRIPT_MAX][256]; /* frames for the guest while it runs */
    char posted_file[64];         /* how a memory file begins that came with one */
    size_t post_count;
    bool is_stuck; /* the guest does not read what is posted */
    int attended;
    uint64_t deadline_ns; /* of the latest look */
} script;

static bool fake_start(rt_sandbox *s, const rt_cell_spec *spec, rt_cell **out, rt_error *err)
{
    (void)s;
    script.starts++;
    script.spec = *spec;
    if (script.start_error.code) {
        *err = script.start_error;
        return false;
    }
    *out = (rt_cell *)(void *)&script;
    return true;
}

static void fake_closep(rt_cell **cell)
{
    script.closes += *cell != NULL;
}

static rt_str fake_attestation(const rt_cell *cell)
{
    (void)cell;
    return rt_str_of(script.attestation);
}

static bool fake_send(rt_cell *cell, rt_str json, const int *fds, size_t fd_count, rt_error *err)
{
    (void)cell, (void)err;
    snprintf(script.sent, sizeof(script.sent), "%.*s", RT_FMT(json));
    script.sent_fds = fd_count;
    if (fd_count)
        (void)!read(fds[0], script.input, sizeof(script.input) - 1);
    return true;
}

static void fake_feed(rt_cell *cell, rt_str data)
{
    (void)cell;
    snprintf(script.fed, sizeof(script.fed), "%.*s", RT_FMT(data));
}

static bool fake_kill(rt_cell *cell, rt_error *err)
{
    (void)cell, (void)err;
    script.kills++;
    script.usage.wait_status = SIGKILL;
    return true;
}

static void fake_cancel(rt_cell *cell)
{
    (void)cell;
    script.cancels++;
}

static bool fake_finish(rt_cell *cell, rt_error *err)
{
    (void)cell, (void)err;
    script.finishes++;
    return true;
}

static bool fake_next(rt_cell *cell, uint64_t deadline_ns, rt_cell_event *event, rt_error *err)
{
    (void)cell;
    script.deadline_ns = deadline_ns;
    if (script.at < script.count) {
        *event = script.events[script.at++];
        return true;
    }
    if (script.next_error.code) {
        *err = script.next_error;
        return false;
    }
    *event = (rt_cell_event){ .kind = RT_CELL_EXIT, .usage = script.usage };
    return true;
}

static bool fake_artifacts(rt_cell *cell, rt_artifact_visit visit, void *ctx, rt_error *err)
{
    (void)cell;
    for (size_t i = 0; i < script.file_count; i++)
        if (!visit(ctx, &script.files[i], err))
            return false;
    return true;
}

static void fake_post(rt_cell *cell, rt_str json, int fd)
{
    (void)cell;
    cr_assert_lt(script.post_count, SCRIPT_MAX);
    snprintf(script.posted[script.post_count++], sizeof(script.posted[0]), "%.*s", RT_FMT(json));
    if (fd >= 0)
        (void)!read(fd, script.posted_file, sizeof(script.posted_file) - 1);
}

static bool fake_has_post(const rt_cell *cell)
{
    (void)cell;
    return script.is_stuck;
}

static void fake_attend(rt_cell *cell, int fd)
{
    (void)cell;
    script.attended = fd;
}

#define rt_cell_post                 fake_post
#define rt_cell_has_post             fake_has_post
#define rt_cell_attend               fake_attend
#define rt_cell_start                fake_start
#define rt_cell_closep               fake_closep
#define rt_cell_attestation          fake_attestation
#define rt_cell_send                 fake_send
#define rt_cell_feed                 fake_feed
#define rt_cell_kill                 fake_kill
#define rt_cell_cancel               fake_cancel
#define rt_cell_finish               fake_finish
#define rt_cell_next                 fake_next
#define rt_cell_artifacts            fake_artifacts
#define rt_local_open                tested_local_open
#define rt_local_find                tested_local_find
#define rt_runtime_closep            tested_runtime_closep
#define runtimes_write_request       tested_write_request
#define runtimes_cell_spec           tested_cell_spec
#define runtimes_is_strict_enough    tested_is_strict_enough
#define runtimes_local_sandbox       tested_local_sandbox
#define runtimes_local_run           tested_local_run
#define runtimes_memory_file         tested_memory_file
#define runtimes_is_call             tested_is_call
#define runtimes_desk_take           tested_desk_take
#define runtimes_desk_serve          tested_desk_serve
#define runtimes_desk_deadline       tested_desk_deadline
#define runtimes_desk_is_out_of_time tested_desk_is_out_of_time
#define runtimes_local_run           tested_local_run
bool tested_local_open(const rt_local_config *, rt_runtime **, rt_error *);
void tested_local_find(const rt_local_config *, rt_arena *, rt_str *, rt_str *, rt_str *);
void tested_runtime_closep(rt_runtime **);
void tested_write_request(rt_json_writer *, const rt_run *, const guest_kind *,
                          const request_extras *);
rt_cell_spec tested_cell_spec(const rt_policy *, rt_str);
bool tested_is_strict_enough(const rt_policy *, rt_str, rt_arena *, rt_error *);
rt_sandbox *tested_local_sandbox(rt_runtime *);
bool tested_memory_file(rt_str, int *, rt_error *);
bool tested_is_call(const progress *, rt_str);
void tested_desk_take(progress *, rt_cell *, rt_str);
void tested_desk_serve(progress *, rt_cell *);
uint64_t tested_desk_deadline(progress *);
bool tested_desk_is_out_of_time(progress *);
#include "runtimes/desk.c"
#include "runtimes/local.c"

static rt_arena arena;
static rt_policy policy;
static rt_run run;
static local runtime = { .base = { .name = "local" } };

static void begin(void)
{
    policy = *rt_policy_preset(RT_STR("default"));
    run = (rt_run){ .language = RT_STR("python"), .code = RT_STR("return 1"), .policy = &policy };
}

static void release(void)
{
    rt_arena_done(&arena);
}

TestSuite(local, .init = begin, .fini = release);

static void then(rt_cell_event event)
{
    cr_assert_lt(script.count, SCRIPT_MAX);
    script.events[script.count++] = event;
}

static void then_frame(const char *text)
{
    then((rt_cell_event){ .kind = RT_CELL_FRAME, .text = rt_str_of(text) });
}

static void then_output(int stream, const char *text)
{
    then((rt_cell_event){ .kind = RT_CELL_OUTPUT, .stream = stream, .text = rt_str_of(text) });
}

static rt_outcome execute_it(void)
{
    rt_outcome out;
    rt_error err = { 0 };
    cr_assert(execute(&runtime.base, &run, &arena, &out, &err), "%s", err.text);
    cr_expect_eq(script.closes, 1);
    return out;
}

static rt_error fail_it(void)
{
    rt_outcome out;
    rt_error err = { 0 };
    cr_expect(!execute(&runtime.base, &run, &arena, &out, &err));
    return err;
}

static void expect_end(const rt_outcome *out, rt_status status, const char *type, const char *limit,
                       int exit_code)
{
    cr_expect_eq(out->status, status, "status %s", rt_status_name(out->status));
    cr_expect(rt_str_eq_c(out->error.type, type), "type %.*s", RT_FMT(out->error.type));
    cr_expect(rt_str_eq_c(out->error.limit, limit), "limit %.*s", RT_FMT(out->error.limit));
    cr_expect_eq(out->exit_code, exit_code, "exit code %d", out->exit_code);
    cr_expect(!out->has_error || !out->has_value);
}

/* ---- what is refused before a cell is asked for ---- */

static void expect_unfit(rt_code code, const char *why)
{
    rt_error err = fail_it();
    cr_expect_eq(err.code, code, "%s", err.text);
    cr_expect(strstr(err.text, why), "'%s' does not say '%s'", err.text, why);
    cr_expect_eq(script.starts, 0);
}

Test(local, an_unknown_language_is_refused)
{
    run.language = RT_STR("cobol");
    expect_unfit(RT_UNSUPPORTED, "unknown language 'cobol'");
    run.language = (rt_str){ 0 };
    expect_unfit(RT_INVALID, "no language given");
}

Test(local, code_that_is_none_is_refused)
{
    run.code = (rt_str){ 0 };
    expect_unfit(RT_INVALID, "MISSING_CODE");
    run.code = RT_STR(" \n\t\n");
    expect_unfit(RT_INVALID, "MISSING_CODE");
}

Test(local, code_over_the_limit_is_refused)
{
    static char code[1025];
    memset(code, '1', sizeof(code));
    policy.code_bytes = 1024;
    run.code = (rt_str){ code, 1025 };
    expect_unfit(RT_LIMIT, "the code has 1025 bytes; at most 1024 are allowed");
    run.code.len = 1024;
    execute_it();
}

Test(local, code_that_is_no_text_is_refused)
{
    run.code = RT_STR("return 1\0");
    expect_unfit(RT_INVALID, "NUL");
    run.code = RT_STR("return '\xff'");
    expect_unfit(RT_INVALID, "UTF-8");
}

Test(local, a_cell_that_cannot_be_had_is_a_failure_and_no_outcome)
{
    rt_fail(&script.start_error, RT_UNAVAILABLE, "no cgroup");
    rt_error err = fail_it();
    cr_expect_eq(err.code, RT_UNAVAILABLE);
    cr_expect_str_eq(err.text, "start a cell: no cgroup");
    cr_expect_eq(script.closes, 0);
}

/* ---- strict ---- */

Test(local, strict_isolation_takes_no_substitute)
{
    static const char *const weak[][2] = {
        { "{\"memory\":{\"by\":\"rlimit\"},\"ids\":{\"own_range\":true},\"landlock\":true}",
          "without a cgroup" },
        { "{\"memory\":{\"by\":\"cgroup v2\"},\"ids\":{\"own_range\":false},\"landlock\":true}",
          "no user ids" },
        { "{\"memory\":{\"by\":\"cgroup v1\"},\"ids\":{\"own_range\":true},\"landlock\":false}",
          "no Landlock" },
        { "{}", "without a cgroup" },
        { "", "" },
    };
    policy.isolation = RT_ISOLATION_STRICT;
    for (size_t i = 0; i < RT_COUNT(weak); i++) {
        script.attestation = weak[i][0];
        rt_error err = fail_it();
        cr_expect(strstr(err.text, weak[i][1]), "%s", err.text);
        cr_expect_str_eq(script.sent, "", "the code was not even sent");
    }
    script.attestation =
        "{\"memory\":{\"by\":\"cgroup v2\"},\"ids\":{\"own_range\":true},\"landlock\":true}";
    script.closes = 0;
    execute_it();
}

/* ---- what is sent ---- */

static rt_json sent(void)
{
    rt_json doc;
    rt_error err = { 0 };
    cr_assert(rt_json_parse(rt_str_of(script.sent), &arena, &doc, &err), "%s: %s", err.text,
              script.sent);
    return doc;
}

static int64_t limit(rt_json doc, const char *name)
{
    int64_t number = -1;
    rt_json_i64(rt_json_get_c(rt_json_get_c(doc, "limits"), name), &number);
    return number;
}

Test(local, a_request_says_what_PROTOCOL_says)
{
    static const rt_pair env[] = { { { "A", 1 }, { "1\"", 2 } } };
    policy.env = env;
    policy.env_count = 1;
    policy.cpu_ms = 1001;
    run.code = RT_STR("return '\"\n'");
    run.input = RT_STR("{\"x\":[1]}");
    run.has_input = true;
    run.stdin_data = RT_STR("in");
    execute_it();
    rt_json doc = sent();
    cr_expect(rt_str_eq_c(rt_json_str(rt_json_get_c(doc, "op")), "run"));
    cr_expect(rt_str_eq_c(rt_json_str(rt_json_get_c(doc, "language")), "python"));
    cr_expect(rt_str_eq_c(rt_json_str(rt_json_get_c(doc, "name")), "main.py"));
    cr_expect(rt_str_eq(rt_json_str(rt_json_get_c(doc, "code")), run.code));
    cr_expect(rt_str_eq_c(rt_json_str(rt_json_get_c(rt_json_get_c(doc, "env"), "A")), "1\""));
    cr_expect_eq(rt_json_count(rt_json_get_c(rt_json_get_c(doc, "input"), "x")), 1);
    cr_expect(rt_json_is_absent(rt_json_get_c(doc, "allowed_imports")));
    cr_expect(!rt_json_bool(rt_json_get_c(doc, "keep"), true));
    cr_expect_eq(limit(doc, "cpu_seconds"), 3, "rounded up, and a second behind the first fence");
    cr_expect_geq(limit(doc, "processes"), 64, "a second fence behind the first");
    cr_expect_eq(limit(doc, "data_bytes"), 512 << 20);
    cr_expect_str_eq(script.fed, "in");
}

Test(local, input_is_absent_text_or_json)
{
    execute_it();
    cr_expect(rt_json_is_absent(rt_json_get_c(sent(), "input")));
    script.closes = 0;
    run.input = RT_STR("a,b\n1,2");
    run.has_input = run.is_input_text = true;
    execute_it();
    cr_expect(rt_str_eq(rt_json_str(rt_json_get_c(sent(), "input")), run.input));
}

Test(local, large_input_travels_in_a_memory_file)
{
    static char text[40000];
    memset(text, 'i', sizeof(text));
    run.input = (rt_str){ text, sizeof(text) };
    run.has_input = run.is_input_text = true;
    execute_it();
    rt_json doc = sent();
    cr_expect(rt_json_is_absent(rt_json_get_c(doc, "input")));
    cr_expect(
        rt_str_eq_c(rt_json_str(rt_json_get_c(rt_json_get_c(doc, "input_fd"), "type")), "text"));
    cr_expect_eq(script.sent_fds, 1);
    cr_expect_eq(script.input[0], 'i');
}

Test(local, input_from_a_descriptor_is_read_to_its_end_and_no_further_than_memory)
{
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(write(ends[1], "from a pipe", 11), 11);
    close(ends[1]);
    run.input_fd = ends[0];
    run.has_input_fd = run.is_input_text = true;
    execute_it();
    cr_expect_str_eq(script.input, "from a pipe");
    close(ends[0]);
    run.input_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    policy.memory_bytes = 1 << 20;
    rt_error err = fail_it();
    cr_expect_eq(err.code, RT_LIMIT);
    cr_expect(strstr(err.text, "--memory"), "%s", err.text);
    close(run.input_fd);
}

Test(local, a_list_of_imports_is_sent_even_when_empty)
{
    policy.has_import_list = true;
    execute_it();
    cr_expect_eq(rt_json_type(rt_json_get_c(sent(), "allowed_imports")), RT_JSON_ARRAY);
}

Test(local, a_cell_gets_what_the_policy_grants)
{
    policy = *rt_policy_preset(RT_STR("code-mode"));
    policy.files = RT_FILES_READ_ONLY;
    run.code = RT_STR("import pandas");
    execute_it();
    cr_expect(rt_str_eq_c(script.spec.zygote, "python-data"));
    cr_expect(script.spec.is_exec_denied && script.spec.files == RT_FILES_READ_ONLY);
    cr_expect(script.spec.memory_bytes == policy.memory_bytes &&
              script.spec.processes == policy.processes);
    cr_expect_geq(script.spec.frame_bytes, policy.output_bytes);
}

/* ---- endings ---- */

Test(local, a_good_run_has_its_value_and_its_output)
{
    then_output(1, "a");
    then_output(2, "b");
    then_output(1, "c");
    then_frame("{\"op\":\"result\",\"value\":{\"x\":1}}");
    script.usage = (rt_cell_usage){ .cpu_us = 10, .memory_peak_bytes = 20 };
    rt_outcome out = execute_it();
    expect_end(&out, RT_STATUS_SUCCESS, "", "", 0);
    cr_expect(rt_str_eq_c(out.value, "{\"x\":1}") && out.has_value);
    cr_expect(rt_str_eq_c(out.out, "ac") && rt_str_eq_c(out.err, "b"));
    cr_expect(out.cpu_us == 10 && out.memory_peak_bytes == 20 && out.out_bytes == 2);
    cr_expect(script.finishes == 1 && script.kills == 0);
}

Test(local, the_first_answer_counts_and_the_rest_is_not_kept)
{
    then_frame("");
    then_frame("{\"op\":\"result\",\"value\":1}");
    then_frame("{\"op\":\"result\",\"value\":2}");
    then_frame("garbage");
    rt_outcome out = execute_it();
    cr_expect(rt_str_eq_c(out.value, "1"));
    cr_expect_eq(script.finishes, 1, "an account is asked for once");
}

Test(local, an_exit_without_an_answer_speaks_for_itself)
{
    script.usage.wait_status = 3 << 8;
    rt_outcome out = execute_it();
    expect_end(&out, RT_STATUS_FAILED, "RuntimeError", "", 3);
    cr_expect(rt_str_eq_c(out.error.message, "the code ended with status 3"));
    script = (typeof(script)){ .usage.wait_status = SIGSEGV };
    out = execute_it();
    expect_end(&out, RT_STATUS_FAILED, "RuntimeError", "", 128 + SIGSEGV);
    script = (typeof(script)){ 0 };
    out = execute_it();
    expect_end(&out, RT_STATUS_SUCCESS, "", "", 0);
    cr_expect(!out.has_value);
}

Test(local, an_error_ends_with_its_own_status_or_with_one)
{
    then_frame("{\"op\":\"error\",\"name\":\"ValueError\"}");
    rt_outcome out = execute_it();
    expect_end(&out, RT_STATUS_FAILED, "RuntimeError", "", 1);
    script = (typeof(script)){ 0 };
    then_frame("{\"op\":\"error\",\"name\":\"SystemExit\",\"status\":9}");
    out = execute_it();
    expect_end(&out, RT_STATUS_FAILED, "RuntimeError", "", 9);
    script = (typeof(script)){ 0 };
    then_frame("{\"op\":\"error\",\"status\":256}");
    out = execute_it();
    expect_end(&out, RT_STATUS_FAILED, "RuntimeError", "", 1);
}

Test(local, an_answer_that_cannot_be_used_is_the_codes_own_failure)
{
    then_frame("not json");
    rt_outcome out = execute_it();
    expect_end(&out, RT_STATUS_FAILED, "RuntimeError", "", 1);
    cr_expect(rt_str_starts(out.error.message, RT_STR("the answer cannot be used: ")), "%.*s",
              RT_FMT(out.error.message));
}

Test(local, time_that_ran_out_kills_the_cell)
{
    policy.wall_ms = 1500;
    then_output(1, "before");
    then((rt_cell_event){ .kind = RT_CELL_TIME });
    rt_outcome out = execute_it();
    expect_end(&out, RT_STATUS_TIMEOUT, "TimeoutError", "timeout", 124);
    cr_expect(rt_str_eq_c(out.error.message, "Execution exceeded timeout of 1500ms"));
    cr_expect(rt_str_eq_c(out.out, "before"));
    cr_expect_eq(script.kills, 1);
}

Test(local, cpu_time_that_ran_out_is_told_from_wall_time)
{
    script.usage.wait_status = SIGXCPU;
    rt_outcome out = execute_it();
    expect_end(&out, RT_STATUS_TIMEOUT, "TimeoutError", "cpu", 124);
    script = (typeof(script)){ 0 };
    then_frame("{\"op\":\"error\",\"status\":152}"); /* 128 + SIGXCPU, as a shell says it */
    out = execute_it();
    expect_end(&out, RT_STATUS_TIMEOUT, "TimeoutError", "cpu", 152);
}

Test(local, a_run_that_was_cancelled_while_it_waited_never_starts)
{
    rt_canceller canceller RT_CLEANUP(rt_canceller_done) = { -1 };
    rt_canceller_init(&canceller);
    run.canceller = &canceller;
    rt_fail(&script.start_error, RT_CANCELLED, "cancelled");
    rt_outcome out;
    rt_error err = { 0 };
    cr_assert(execute(&runtime.base, &run, &arena, &out, &err), "%s", err.text);
    expect_end(&out, RT_STATUS_CANCELLED, "CancelledError", "", 1);
    cr_expect_str_eq(script.sent, "");
    cr_expect(script.spec.has_cancel_fd);
    cr_expect_eq(script.spec.cancel_fd, canceller.wake);
}

Test(local, a_cancelled_run_ends_at_once)
{
    then((rt_cell_event){ .kind = RT_CELL_CANCELLED });
    then_output(1, "too late");
    rt_outcome out = execute_it();
    cr_expect_eq(out.status, RT_STATUS_CANCELLED);
    cr_expect_eq(out.out.len, 0);
    cr_expect_neq(out.exit_code, 0);
}

Test(local, output_over_the_limit_is_cut_and_ends_the_run)
{
    policy.output_bytes = 5;
    then_output(1, "abc");
    then_output(2, "defg");
    then_output(1, "more");
    rt_outcome out = execute_it();
    expect_end(&out, RT_STATUS_FAILED, "ResourceLimitError", "output", 137);
    cr_expect(rt_str_eq_c(out.out, "abc") && rt_str_eq_c(out.err, "de"));
    cr_expect(out.out_bytes == 7 && out.err_bytes == 4, "how much there was is told");
    cr_expect_eq(script.kills, 1);
}

Test(local, output_up_to_the_limit_is_fine)
{
    policy.output_bytes = 5;
    then_output(1, "abcde");
    then_frame("{\"op\":\"result\",\"value\":1}");
    rt_outcome out = execute_it();
    expect_end(&out, RT_STATUS_SUCCESS, "", "", 0);
}

static char heard[64];

static bool hear(void *ctx, int stream, rt_str text)
{
    snprintf(heard + strlen(heard), sizeof(heard) - strlen(heard), "%s%d:%.*s ", (const char *)ctx,
             stream, RT_FMT(text));
    return !strchr(heard, 'Q');
}

Test(local, output_is_passed_on_as_it_comes_and_within_the_limit)
{
    policy.output_bytes = 4;
    run.on_output = hear;
    run.output_ctx = ">";
    then_output(1, "abc");
    then_output(2, "def");
    then_output(1, "g");
    execute_it();
    cr_expect_str_eq(heard, ">1:abc >2:d ");
}

Test(local, a_listener_may_end_the_run_and_hears_no_more)
{
    run.on_output = hear;
    run.output_ctx = "";
    then_output(1, "Quit");
    then_output(1, "more");
    execute_it();
    cr_expect_str_eq(heard, "1:Quit ");
    cr_expect_eq(script.cancels, 1);
}

Test(local, an_answer_too_large_is_a_limit)
{
    rt_fail(&script.next_error, RT_LIMIT, "the answer has 99 bytes");
    rt_outcome out = execute_it();
    cr_expect(out.status == RT_STATUS_FAILED && rt_str_eq_c(out.error.limit, "output"));
    cr_expect(script.kills == 1 && out.exit_code != 0);
}

Test(local, any_other_trouble_with_the_cell_is_a_failure)
{
    rt_fail(&script.next_error, RT_SYSTEM, "poll");
    cr_expect_str_eq(fail_it().text, "poll");
    cr_expect_eq(script.closes, 1);
}

Test(local, memory_that_ran_out_counts_when_the_run_failed)
{
    script.usage = (rt_cell_usage){ .wait_status = SIGKILL, .was_out_of_memory = true };
    rt_outcome out = execute_it();
    expect_end(&out, RT_STATUS_MEMORY_ERROR, "MemoryError", "memory", 137);
    cr_expect(rt_str_eq_c(out.error.message, "Memory limit of 512MB exceeded"));
    script = (typeof(script)){ .usage.was_out_of_memory = true };
    then_frame("{\"op\":\"result\",\"value\":\"a child was killed, and I went on\"}");
    out = execute_it();
    expect_end(&out, RT_STATUS_SUCCESS, "", "", 0);
}

/* The value is the code's to choose, its words are not ours to judge by. */
Test(local, a_value_that_speaks_of_an_error_is_no_failure)
{
    script.usage.was_out_of_memory = true;
    then_frame("{\"op\":\"result\",\"value\":{\"error\":null}}");
    rt_outcome out = execute_it();
    expect_end(&out, RT_STATUS_SUCCESS, "", "", 0);
}

Test(local, too_many_processes_are_named_as_the_cause)
{
    script.usage.was_out_of_processes = true;
    then_frame("{\"op\":\"error\",\"name\":\"BlockingIOError\"}");
    rt_outcome out = execute_it();
    expect_end(&out, RT_STATUS_FAILED, "ResourceLimitError", "processes", 1);
    cr_expect(rt_str_find(out.error.hint, RT_STR("at most 64 processes")) >= 0);
}

Test(local, refusals_are_kept_once_each_and_not_without_end)
{
    rt_denial denial = { .call = "socket(AF_PACKET)", .rule = "network: none", .allow = "no" };
    for (int i = 0; i < 3; i++)
        then((rt_cell_event){ .kind = RT_CELL_DENIED, .denial = denial });
    rt_outcome out = execute_it();
    cr_expect(out.denial_count == 1 && out.denials_seen == 3);
    for (int i = 0; i < 100; i++) {
        snprintf(denial.call, sizeof(denial.call), "call %d", i);
        take_denial(&out, &denial);
    }
    cr_expect(out.denial_count == RT_DENIALS_MAX && out.denials_seen == 103);
}

/* ---- calls to tools ---- */

/* Notes what it is asked, and answers with what it has been given. */
static struct table {
    rt_desk face;
    char calls[80][128];
    size_t call_count;
    rt_desk_answer answers[8];
    size_t answer_count, at;
    bool is_paused;
} table;

static void take_note(rt_desk *self, const rt_desk_call *call)
{
    (void)self;
    snprintf(table.calls[table.call_count++ % RT_COUNT(table.calls)], sizeof(table.calls[0]),
             "%llu %.*s %.*s", (unsigned long long)call->number, RT_FMT(call->tool),
             RT_FMT(call->arguments));
}

static bool next_note(rt_desk *self, rt_arena *scratch, rt_desk_answer *out)
{
    (void)self, (void)scratch;
    if (table.at == table.answer_count)
        return false;
    *out = table.answers[table.at++];
    return true;
}

static bool is_table_paused(rt_desk *self)
{
    (void)self;
    return table.is_paused;
}

static void lay_table(void)
{
    table = (struct table){ .face = { .fd = 77,
                                      .take = take_note,
                                      .next = next_note,
                                      .paused = is_table_paused,
                                      .servers = RT_STR("[\"github\"]") } };
    run.desk = &table.face;
}

static void then_call(int number)
{
    static char frames[80][128];
    static size_t count;
    char *frame = frames[count++ % RT_COUNT(frames)];
    snprintf(frame, sizeof(frames[0]),
             "{\"op\":\"call\",\"id\":1,\"call\":%d,\"tool\":\"github:list\","
             "\"arguments\":{ \"n\" : 1.50}}",
             number);
    then_frame(frame);
}

static void answer(rt_desk_answer one)
{
    table.answers[table.answer_count++] = one;
}

Test(local, a_run_with_a_desk_says_whose_tools_there_are)
{
    lay_table();
    then_frame("{\"op\":\"result\"}");
    execute_it();
    cr_expect(strstr(script.sent, ",\"tools\":[\"github\"],\"argument_bytes\":"), "%s",
              script.sent);
    cr_expect_eq(script.attended, -1);
    run.desk = NULL;
    script = (typeof(script)){ 0 };
    then_frame("{\"op\":\"result\"}");
    execute_it();
    cr_expect(!strstr(script.sent, "tools"), "%s", script.sent);
}

Test(local, a_call_reaches_the_desk_and_its_answer_the_guest)
{
    lay_table();
    then_call(7);
    answer((rt_desk_answer){ .number = 7, .value = RT_STR("[1,2]") });
    then_frame("{\"op\":\"result\",\"value\":3}");
    rt_outcome out = execute_it();
    cr_expect_str_eq(table.calls[0], "7 github:list {\"n\":1.50}");
    cr_expect_str_eq(script.posted[0], "{\"op\":\"answer\",\"id\":1,\"call\":7,\"value\":[1,2]}");
    cr_expect(rt_str_eq_c(out.value, "3"));
    cr_expect_eq(script.attended, -1, "nothing is attended to after the run");
}

Test(local, an_error_of_a_tool_says_all_that_is_known)
{
    lay_table();
    then_call(1);
    then_call(2);
    answer((rt_desk_answer){ .number = 1, .is_error = true, .error_type = RT_STR("Denied") });
    answer((rt_desk_answer){ .number = 2,
                             .is_error = true,
                             .error_text = RT_STR("Tool error in 'github:list': no"),
                             .tool = RT_STR("github:list"),
                             .original = RT_STR("no") });
    execute_it();
    cr_expect_str_eq(script.posted[0], "{\"op\":\"answer\",\"id\":1,\"call\":1,\"error\":{"
                                       "\"type\":\"Denied\",\"message\":\"\"}}");
    cr_expect_str_eq(script.posted[1],
                     "{\"op\":\"answer\",\"id\":1,\"call\":2,\"error\":{\"type\":"
                     "\"MCPToolError\",\"message\":\"Tool error in 'github:list': no\",\"tool\":"
                     "\"github:list\",\"original\":\"no\"}}");
}

Test(local, a_large_value_travels_in_a_memory_file)
{
    static char large[INLINE_MAX + 2];
    memset(large, 'x', sizeof(large));
    large[0] = large[sizeof(large) - 1] = '"';
    lay_table();
    then_call(1);
    answer((rt_desk_answer){ .number = 1, .value = { large, sizeof(large) } });
    execute_it();
    cr_expect_str_eq(script.posted[0], "{\"op\":\"answer\",\"id\":1,\"call\":1,\"value_fd\":0}");
    cr_expect(strncmp(script.posted_file, "\"xxx", 4) == 0);
}

Test(local, answers_wait_until_the_guest_has_read_the_last_one)
{
    lay_table();
    script.is_stuck = true;
    then_call(1);
    answer((rt_desk_answer){ .number = 1, .value = RT_STR("1") });
    execute_it();
    cr_expect_eq(table.at, 0);
}

Test(local, an_answer_that_nobody_asked_for_is_dropped)
{
    lay_table();
    then_call(1);
    answer((rt_desk_answer){ .number = 9, .value = RT_STR("1") });
    answer((rt_desk_answer){ .number = 1, .value = RT_STR("2") });
    execute_it();
    cr_expect_eq(script.post_count, 1);
    cr_expect(strstr(script.posted[0], "\"value\":2"));
}

Test(local, frames_that_are_no_calls_of_this_run_are_passed_over)
{
    static const char *const frames[] = {
        "{\"op\":\"call\",",
        "{\"op\":\"call\",\"id\":2,\"call\":1,\"tool\":\"a:b\",\"arguments\":{}}",
        "{\"op\":\"call\",\"id\":1,\"tool\":\"a:b\",\"arguments\":{}}",
        "{\"op\":\"call\",\"id\":1,\"call\":-1,\"tool\":\"a:b\",\"arguments\":{}}",
        "{\"op\":\"call\",\"id\":1,\"call\":1.5,\"tool\":\"a:b\",\"arguments\":{}}",
    };
    lay_table();
    for (size_t i = 0; i < RT_COUNT(frames); i++)
        then_frame(frames[i]);
    then_frame("{\"op\":\"result\",\"value\":3}");
    rt_outcome out = execute_it();
    cr_expect(rt_str_eq_c(out.value, "3"));
    cr_expect_eq(table.call_count + script.post_count, 0);
}

Test(local, a_call_that_is_none_is_answered_with_an_error)
{
    static const char *const frames[] = {
        "{\"op\":\"call\",\"id\":1,\"call\":1,\"arguments\":{}}",
        "{\"op\":\"call\",\"id\":1,\"call\":2,\"tool\":\"a:b\"}",
        "{\"op\":\"call\",\"id\":1,\"call\":3,\"tool\":\"a:b\",\"arguments\":[]}",
    };
    lay_table();
    for (size_t i = 0; i < RT_COUNT(frames); i++)
        then_frame(frames[i]);
    execute_it();
    cr_expect_eq(table.call_count, 0);
    cr_assert_eq(script.post_count, 3);
    for (size_t i = 0; i < 3; i++)
        cr_expect(strstr(script.posted[i], BAD_CALL), "%s", script.posted[i]);
}

Test(local, arguments_longer_than_the_output_limit_are_refused)
{
    lay_table();
    policy.output_bytes = 5;
    then_call(1);
    execute_it();
    cr_expect_eq(table.call_count, 0);
    cr_expect(strstr(script.posted[0], TOO_LONG), "%s", script.posted[0]);
}

Test(local, so_many_calls_may_be_under_way_and_no_more)
{
    rt_run many = run;
    rt_outcome out = { 0 };
    lay_table();
    many.desk = &table.face;
    progress p = { .run = &many, .out = &out, .arena = &arena, .id = 1 };
    for (int i = 0; i < RT_DESK_PENDING_MAX + 2; i++) {
        char frame[128];
        snprintf(frame, sizeof(frame),
                 "{\"op\":\"call\",\"id\":1,\"call\":%d,\"tool\":\"a:b\",\"arguments\":{}}", i);
        cr_assert(runtimes_is_call(&p, rt_str_of(frame)));
        runtimes_desk_take(&p, NULL, rt_str_of(frame));
        runtimes_desk_take(&p, NULL, rt_str_of(frame)); /* the number is taken: nobody's */
    }
    cr_expect_eq(table.call_count, RT_DESK_PENDING_MAX);
    cr_expect(strstr(script.posted[0], "\"call\":64,") && strstr(script.posted[0], TOO_MANY), "%s",
              script.posted[0]);
}

Test(local, while_a_person_is_waited_for_time_stands_still)
{
    rt_outcome out = { 0 };
    lay_table();
    progress p = { .run = &run, .out = &out, .arena = &arena, .id = 1 };
    uint64_t before = p.deadline_ns = rt_now_ns() + 1000;
    cr_expect_eq(runtimes_desk_deadline(&p), before, "without a call there is nothing to look at");
    p.calls.count = 1;
    table.is_paused = true;
    cr_expect_gt(runtimes_desk_deadline(&p), rt_now_ns());
    usleep(1000);
    cr_expect(!runtimes_desk_is_out_of_time(&p));
    cr_expect_gt(p.deadline_ns, before + 900000, "it moved by what was waited");
    table.is_paused = false;
    runtimes_desk_deadline(&p);
    uint64_t after = p.deadline_ns;
    usleep(1000);
    cr_expect(runtimes_desk_is_out_of_time(&p));
    cr_expect_eq(p.deadline_ns, after, "and no further");
}

Test(local, time_to_look_at_the_desk_is_no_timeout)
{
    lay_table();
    then_call(1);
    then((rt_cell_event){ .kind = RT_CELL_TIME });
    then((rt_cell_event){ .kind = RT_CELL_ATTEND });
    then_frame("{\"op\":\"result\",\"value\":3}");
    rt_outcome out = execute_it();
    expect_end(&out, RT_STATUS_SUCCESS, "", "", 0);
    cr_expect_eq(script.kills, 0);
}

Test(local, a_shell_answers_with_what_it_printed)
{
    run.language = RT_STR("sh");
    then_output(1, " {\"a\": 1}\n");
    rt_outcome out = execute_it();
    cr_expect(rt_str_eq_c(out.language, "bash") && out.is_parsed && out.is_value_output);
    cr_expect(rt_str_eq_c(out.value, "{\"a\":1}"));
    script = (typeof(script)){ 0 };
    then_output(1, "hello \"you\"\n");
    out = execute_it();
    cr_expect(!out.is_parsed && rt_str_eq_c(out.value, "\"hello \\\"you\\\"\""));
    script = (typeof(script)){ 0 };
    out = execute_it();
    cr_expect(!out.has_value);
    script = (typeof(script)){ 0 };
    then_output(1, "partial");
    script.usage.wait_status = 1 << 8;
    out = execute_it();
    cr_expect(!out.has_value && out.has_error);
}

static int file_of(const char *text)
{
    int fd = memfd_create("artifact", MFD_CLOEXEC);
    cr_assert(rt_write_all(fd, rt_str_of(text), NULL));
    lseek(fd, 0, SEEK_SET);
    return fd;
}

Test(local, files_are_brought_back_within_a_budget)
{
    script.files[0] = (rt_artifact){ RT_STR("a.txt"), 3, file_of("abc") };
    script.files[1] = (rt_artifact){ RT_STR("huge"), 1ull << 40, -1 };
    script.files[2] = (rt_artifact){ RT_STR("grown"), 2, file_of("more than two") };
    script.file_count = 3;
    rt_outcome out = execute_it();
    cr_assert_eq(out.artifact_count, 3);
    cr_expect(rt_str_eq_c(out.artifacts[0].data, "abc") && !out.artifacts[0].is_cut);
    cr_expect(out.artifacts[1].is_cut && out.artifacts[1].size == 1ull << 40);
    cr_expect(out.artifacts[2].is_cut, "it grew after its size was taken");
    close(script.files[0].fd);
    close(script.files[2].fd);
}

/* ---- finding the interpreters ---- */

Test(local, what_is_given_is_taken_and_what_is_not_there_is_empty)
{
    rt_local_config config = { .guests_dir = "/usr/lib/../bin",
                               .python = "/no/such/python",
                               .node = "/bin/sh" };
    rt_str guests, python, node;
    tested_local_find(&config, &arena, &guests, &python, &node);
    cr_expect(rt_str_eq_c(guests, "/usr/bin"));
    cr_expect_eq(python.len, 0);
    cr_expect(node.len > 0 && node.ptr[0] == '/');
}

Test(local, without_its_guests_it_does_not_open)
{
    rt_local_config config = { .guests_dir = "/no/such/place" };
    rt_runtime *opened = NULL;
    rt_error err = { 0 };
    cr_expect(!tested_local_open(&config, &opened, &err));
    cr_expect_eq(err.code, RT_NOT_FOUND);
    cr_expect_null(opened);
}
