/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/runtimes_internal.h"

#include <criterion/criterion.h>
#include <stdio.h>

static rt_arena arena; /* of the test: each has its own process */

static void release(void)
{
    rt_arena_done(&arena);
}

TestSuite(outcome, .fini = release);

static rt_outcome read_frame(const char *frame)
{
    rt_outcome out = { .is_parsed = true };
    rt_error err = { 0 };
    cr_assert(runtimes_read_result(&out, rt_str_of(frame), &arena, &err), "%s: %s", frame,
              err.text);
    return out;
}

static rt_json written(const rt_outcome *out)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json doc;
    rt_error err = { 0 };
    rt_json_begin(&w, &text);
    rt_outcome_write(out, &w);
    cr_assert(rt_json_parse(rt_buf_str(&text), &arena, &doc, &err), "%s: %.*s", err.text,
              RT_FMT(rt_buf_str(&text)));
    return doc;
}

static void expect_str(rt_json doc, const char *key, const char *text)
{
    rt_str got = rt_json_str(rt_json_get_c(doc, key));
    cr_expect(rt_str_eq_c(got, text), "%s is '%.*s', not '%s'", key, RT_FMT(got), text);
}

/* ---- frames ---- */

Test(outcome, a_result_has_a_value)
{
    static const char *const values[] = { "null",
                                          "false",
                                          "0",
                                          "\"\"",
                                          "[]",
                                          "{\"a\":[1,2.50,1e400]}",
                                          "123456789012345678901234567890" };
    for (size_t i = 0; i < RT_COUNT(values); i++) {
        char frame[200];
        snprintf(frame, sizeof(frame), "{\"op\":\"result\",\"id\":1,\"value\": %s }", values[i]);
        rt_outcome out = read_frame(frame);
        cr_expect(out.status == RT_STATUS_SUCCESS && out.has_value && out.is_parsed &&
                  !out.has_error);
        cr_expect(rt_str_eq_c(out.value, values[i]), "as it was written: %.*s", RT_FMT(out.value));
    }
}

Test(outcome, a_result_may_have_none)
{
    rt_outcome out = read_frame("{\"op\":\"result\",\"id\":1}");
    cr_expect(out.status == RT_STATUS_SUCCESS && !out.has_value && !out.has_error);
    cr_expect_eq(rt_json_type(rt_json_get_c(written(&out), "result")), RT_JSON_NULL);
}

Test(outcome, an_error_names_the_users_own_line)
{
    rt_outcome out = read_frame(
        "{\"op\":\"error\",\"type\":\"RuntimeError\",\"name\":\"ValueError\",\"message\":"
        "\"bad \\u00e9\",\"line\":3,\"column\":5,\"stack\":\"main.py:3\",\"status\":7}");
    cr_expect(out.status == RT_STATUS_FAILED && out.has_error && !out.has_value);
    cr_expect(rt_str_eq_c(out.error.type, "RuntimeError") &&
              rt_str_eq_c(out.error.name, "ValueError"));
    cr_expect(rt_str_eq_c(out.error.message, "bad \xC3\xA9") &&
              rt_str_eq_c(out.error.stack, "main.py:3"));
    cr_expect(out.error.line == 3 && out.error.column == 5 && out.error.status == 7);
    cr_expect_eq(out.error.hint.len + out.error.limit.len, 0);
}

Test(outcome, only_known_types_of_error_are_believed)
{
    static const char *const cases[][2] = {
        { "SyntaxError", "SyntaxError" },
        { "MemoryError", "MemoryError" },
        { "PermissionError", "PermissionError" },
        { "ResourceLimitError", "ResourceLimitError" },
        { "RuntimeError", "RuntimeError" },
        { "TimeoutError", "RuntimeError" },
        { "", "RuntimeError" },
        { "syntaxerror", "RuntimeError" },
        { "CancelledError", "RuntimeError" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        char frame[100];
        snprintf(frame, sizeof(frame), "{\"op\":\"error\",\"type\":\"%s\"}", cases[i][0]);
        rt_outcome out = read_frame(frame);
        cr_expect(rt_str_eq_c(out.error.type, cases[i][1]), "%s", cases[i][0]);
    }
}

Test(outcome, running_out_of_memory_has_a_status_of_its_own)
{
    rt_outcome out = read_frame("{\"op\":\"error\",\"type\":\"MemoryError\"}");
    cr_expect_eq(out.status, RT_STATUS_MEMORY_ERROR);
    cr_expect(rt_str_eq_c(out.error.limit, "memory"));
}

Test(outcome, a_full_scratch_is_a_limit)
{
    rt_outcome out = read_frame(
        "{\"op\":\"error\",\"type\":\"RuntimeError\",\"errno\":28,\"path\":\"/work/x\"}");
    cr_expect(rt_str_eq_c(out.error.type, "ResourceLimitError") &&
              rt_str_eq_c(out.error.limit, "scratch"));
    cr_expect(rt_str_find(out.error.hint, RT_STR("--scratch")) >= 0);
}

Test(outcome, hints_say_what_to_do)
{
    static const char *const cases[][2] = {
        { "\"errno\":2,\"path\":\"/srv/data.csv\"", "--read /srv/data.csv" },
        { "\"errno\":30,\"path\":\"/etc/x\"", "only the scratch directory /work can" },
        { "\"errno\":13,\"path\":\"/etc/x\"", "only the scratch directory /work can" },
        { "\"module\":\"os\"", "--imports os" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        char frame[200];
        snprintf(frame, sizeof(frame), "{\"op\":\"error\",%s}", cases[i][0]);
        rt_outcome out = read_frame(frame);
        cr_expect(rt_str_find(out.error.hint, rt_str_of(cases[i][1])) >= 0, "%s: '%.*s'", frame,
                  RT_FMT(out.error.hint));
    }
    static const char *const none[] = { "\"errno\":2,\"path\":\"data.csv\"",
                                        "\"errno\":2,\"path\":\"/work/x\"",
                                        "\"errno\":13",
                                        "\"errno\":2",
                                        "\"path\":\"/x\"",
                                        "\"module\":\"\"" };
    for (size_t i = 0; i < RT_COUNT(none); i++) {
        char frame[200];
        snprintf(frame, sizeof(frame), "{\"op\":\"error\",%s}", none[i]);
        cr_expect_eq(read_frame(frame).error.hint.len, 0, "%s", frame);
    }
}

/* ---- hostile frames: code can write to the control socket itself ---- */

Test(outcome, frames_of_the_wrong_shape_do_no_harm)
{
    static const char *const frames[] = {
        "{\"op\":\"error\"}",
        "{\"op\":\"error\",\"type\":{},\"name\":[],\"message\":1}",
        "{\"op\":\"error\",\"line\":\"3\",\"column\":{},\"status\":[],\"errno\":\"2\",\"path\":7,"
        "\"module\":false}",
        "{\"op\":\"error\",\"line\":-3,\"column\":-1,\"errno\":-2}",
        "{\"op\":\"error\",\"line\":1e300,\"column\":1.5,\"status\":99999999999999999999,\"errno\":"
        "1e9}",
        "{\"op\":\"error\",\"line\":9223372036854775807,\"column\":9223372036854775807}",
        "{\"op\":\"error\",\"message\":\"\\ud800 \\u0000 "
        "\\u001b[2J\",\"name\":\"\\udfff\",\"stack\":\"\\ud83d\"}",
        "{\"op\":\"error\",\"op\":\"result\",\"value\":1}",
        "{\"op\":\"result\",\"value\":\"\\ud800\"}",
        "{\"op\":\"error\",\"errno\":2,\"path\":\"/\\u0000\\ud800\"}",
    };
    for (size_t i = 0; i < RT_COUNT(frames); i++) {
        rt_outcome out = read_frame(frames[i]);
        rt_json doc = written(&out);
        cr_expect_eq(rt_json_bool(rt_json_get_c(doc, "success"), false),
                     out.status == RT_STATUS_SUCCESS);
        int64_t line = 1;
        if (rt_json_i64(rt_json_get_c(rt_json_get_c(doc, "error"), "line"), &line))
            cr_expect_gt(line, 0, "%s", frames[i]);
    }
}

/* exit(256) is exit(0): a failed run must not look like a good one. */
Test(outcome, a_status_no_process_can_have_is_not_believed)
{
    static const struct {
        const char *said;
        int64_t kept;
    } cases[] = { { "1", 1 },          { "255", 255 }, { "256", 0 }, { "512", 0 },
                  { "4294967296", 0 }, { "-1", 0 },    { "0", 0 },   { "9223372036854775807", 0 } };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        char frame[100];
        snprintf(frame, sizeof(frame), "{\"op\":\"error\",\"status\":%s}", cases[i].said);
        cr_expect_eq(read_frame(frame).error.status, cases[i].kept, "%s", cases[i].said);
    }
}

Test(outcome, what_is_no_answer_is_refused)
{
    static const char *const frames[] = {
        "",
        " ",
        "{",
        "{\"op\":\"result\"",
        "{\"op\":\"result\",\"value\":NaN}",
        "{\"op\":\"result\"} {}",
        "\xff",
        "{'op':'result'}",
        /* JSON, and no answer all the same */
        "null",
        "[]",
        "0",
        "\"error\"",
        "{}",
        "{\"op\":1}",
        "{\"op\":null}",
        "{\"op\":\"hello\"}",
        "{\"op\":[\"error\"]}",
    };
    for (size_t i = 0; i < RT_COUNT(frames); i++) {
        rt_outcome out = { 0 };
        rt_error err = { 0 };
        cr_expect(!runtimes_read_result(&out, rt_str_of(frames[i]), &arena, &err), "%s", frames[i]);
        cr_expect_eq(err.code, RT_INVALID, "%s", err.text);
        cr_expect(!out.has_value && !out.has_error);
    }
}

Test(outcome, depth_has_a_limit)
{
    rt_buf frame RT_CLEANUP(rt_buf_done) = { 0 };
    rt_outcome out = { 0 };
    rt_error err = { 0 };
    rt_buf_add(&frame, RT_STR("{\"op\":\"result\",\"value\":"));
    for (int i = 0; i < 500; i++)
        rt_buf_addc(&frame, '[');
    for (int i = 0; i < 500; i++)
        rt_buf_addc(&frame, ']');
    rt_buf_addc(&frame, '}');
    cr_assert(runtimes_read_result(&out, rt_buf_str(&frame), &arena, &err), "%s", err.text);
    cr_expect_eq(out.value.len, 1000);
    written(&out);
    rt_buf_reset(&frame);
    for (int i = 0; i < 100000; i++)
        rt_buf_add(&frame, RT_STR("[[[["));
    cr_expect(!runtimes_read_result(&out, rt_buf_str(&frame), &arena, &err));
    cr_expect_eq(err.code, RT_LIMIT);
}

/* ---- after a failure ---- */

static rt_outcome with_denial(const char *frame, const char *rule)
{
    rt_outcome out = read_frame(frame);
    snprintf(out.denials[0].call, sizeof(out.denials[0].call), "connect(192.0.2.1:443)");
    snprintf(out.denials[0].rule, sizeof(out.denials[0].rule), "%s", rule);
    snprintf(out.denials[0].allow, sizeof(out.denials[0].allow), "do this");
    out.denial_count = 1;
    runtimes_explain(&out, rt_policy_preset(RT_STR("default")), &arena);
    return out;
}

Test(outcome, a_refusal_before_a_failure_is_named_as_its_cause)
{
    rt_outcome out = with_denial("{\"op\":\"error\",\"name\":\"OSError\"}", "network: none");
    cr_expect(rt_str_eq_c(out.error.type, "PermissionError"));
    cr_expect(
        rt_str_eq_c(out.error.hint, "connect(192.0.2.1:443) was refused (network: none): do this"));
}

Test(outcome, a_refusal_does_not_explain_success_or_a_limit)
{
    rt_outcome out = with_denial("{\"op\":\"result\",\"value\":1}", "network: none");
    cr_expect(!out.has_error && out.error.hint.len == 0);
    out = with_denial("{\"op\":\"error\",\"type\":\"MemoryError\"}", "network: none");
    cr_expect(rt_str_eq_c(out.error.type, "MemoryError") && out.error.hint.len == 0);
    out = with_denial("{\"op\":\"error\",\"type\":\"SyntaxError\"}", "mounts: never");
    cr_expect(rt_str_eq_c(out.error.type, "SyntaxError"));
}

Test(outcome, a_failure_takes_the_value_away)
{
    rt_outcome out = read_frame("{\"op\":\"result\",\"value\":1}");
    runtimes_fail(&out, RT_STATUS_TIMEOUT, "TimeoutError", "timeout", RT_STR("too slow"),
                  RT_STR("hurry"));
    cr_expect(!out.has_value && out.has_error && out.status == RT_STATUS_TIMEOUT);
    rt_json error = rt_json_get_c(written(&out), "error");
    expect_str(error, "type", "TimeoutError");
    expect_str(error, "limit", "timeout");
    expect_str(error, "message", "too slow");
    expect_str(error, "hint", "hurry");
}

/* ---- as JSON ---- */

Test(outcome, each_status_has_its_name)
{
    static const char *const names[] = { "SUCCESS", "FAILED", "TIMEOUT", "MEMORY_ERROR",
                                         "CANCELLED" };
    for (int i = 0; i <= RT_STATUS_CANCELLED; i++)
        cr_expect_str_eq(rt_status_name((rt_status)i), names[i]);
}

Test(outcome, every_documented_field_is_written)
{
    static const char *const fields[] = { "id",     "status",  "success",   "language", "runtime",
                                          "result", "parsed",  "stdout",    "stderr",   "exit_code",
                                          "error",  "denials", "artifacts", "metrics" };
    rt_outcome out = { .id = RT_STR("exec_1"),
                       .language = RT_STR("python"),
                       .runtime = RT_STR("local"),
                       .out = RT_STR("hi\xff\0\x1b"),
                       .out_bytes = 5,
                       .wall_us = 1500,
                       .attestation = RT_STR("{\"seccomp\":\"filter\"}") };
    rt_json doc = written(&out);
    for (size_t i = 0; i < RT_COUNT(fields); i++)
        cr_expect(!rt_json_is_absent(rt_json_get_c(doc, fields[i])), "%s", fields[i]);
    expect_str(doc, "status", "SUCCESS");
    expect_str(doc, "id", "exec_1");
    cr_expect(rt_str_eq(rt_json_str(rt_json_get_c(doc, "stdout")), RT_STR("hi\xEF\xBF\xBD\0\x1b")));
    cr_expect(rt_json_is_absent(rt_json_get_c(doc, "truncated")));
    double ms = 0;
    cr_expect(
        rt_json_double(rt_json_get_c(rt_json_get_c(doc, "metrics"), "executionTimeMs"), &ms) &&
        ms == 1.5);
    expect_str(rt_json_get_c(doc, "attestation"), "seccomp", "filter");
}

Test(outcome, output_that_was_cut_says_so)
{
    rt_outcome out = { .out = RT_STR("ab"), .out_bytes = 3 };
    cr_expect(rt_json_bool(rt_json_get_c(written(&out), "truncated"), false));
    out = (rt_outcome){ .err = RT_STR("ab"), .err_bytes = 3 };
    cr_expect(rt_json_bool(rt_json_get_c(written(&out), "truncated"), false));
}

Test(outcome, files_come_as_base64_with_their_hash)
{
    static const char *const cases[][2] = { { "", "" },
                                            { "f", "Zg==" },
                                            { "fo", "Zm8=" },
                                            { "foo", "Zm9v" },
                                            { "foob", "Zm9vYg==" },
                                            { "fooba", "Zm9vYmE=" },
                                            { "foobar", "Zm9vYmFy" },
                                            { "\xff\xfe\xfd\xfc", "//79/A==" } };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        rt_file file = { .name = RT_STR("a.bin"),
                         .data = rt_str_of(cases[i][0]),
                         .size = strlen(cases[i][0]) };
        rt_outcome out = { .artifacts = &file, .artifact_count = 1 };
        rt_json one = rt_json_at(rt_json_get_c(written(&out), "artifacts"), 0);
        expect_str(one, "base64", cases[i][1]);
        expect_str(one, "type", "application/octet-stream");
        char hash[65];
        rt_sha256_hex(file.data, hash);
        expect_str(one, "sha256", hash);
    }
}

Test(outcome, a_file_too_large_to_bring_back_has_its_size_only)
{
    rt_file file = { .name = RT_STR("big.csv"), .size = 1ull << 40, .is_cut = true };
    rt_outcome out = { .artifacts = &file, .artifact_count = 1 };
    rt_json one = rt_json_at(rt_json_get_c(written(&out), "artifacts"), 0);
    int64_t size = 0;
    cr_expect(rt_json_i64(rt_json_get_c(one, "size"), &size) && size == 1ll << 40);
    cr_expect(rt_json_bool(rt_json_get_c(one, "truncated"), false));
    cr_expect(rt_json_is_absent(rt_json_get_c(one, "base64")));
    expect_str(one, "type", "text/csv");
}

Test(outcome, refusals_are_listed)
{
    rt_outcome out = with_denial("{\"op\":\"error\"}", "network: none");
    rt_json one = rt_json_at(rt_json_get_c(written(&out), "denials"), 0);
    expect_str(one, "call", "connect(192.0.2.1:443)");
    expect_str(one, "rule", "network: none");
    expect_str(one, "allow", "do this");
}
