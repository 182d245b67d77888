/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io.h"
#include "base/json.h"
#include "base/log.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <unistd.h>

static rt_arena arena;
static int catcher[2];

/* Standard error goes into a pipe; each Criterion test is a process of its own. */
static void catch_lines(void)
{
    cr_assert_eq(pipe2(catcher, O_CLOEXEC), 0);
    dup2(catcher[1], STDERR_FILENO);
}

static const char *caught(void)
{
    rt_str text;
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nothing, STDERR_FILENO);
    close(nothing);
    close(catcher[1]);
    cr_assert(rt_read_fd(catcher[0], 1 << 20, &arena, &text, NULL));
    return text.ptr;
}

static void release(void)
{
    rt_arena_done(&arena);
}

TestSuite(log, .init = catch_lines, .fini = release);

Test(log, a_line_has_time_level_and_message)
{
    rt_log(RT_LOG_WARN, "%s is %d", "x", 1);
    rt_log(RT_LOG_DEBUG, "not shown");
    const char *line = caught();
    cr_expect_eq(strlen(line), strlen("2026-11-15T03:21:57.123Z warn x is 1\n"));
    cr_expect_str_eq(line + 24, " warn x is 1\n");
}

Test(log, a_message_cannot_forge_a_line)
{
    rt_log(RT_LOG_INFO, "%s", "a\n2026 error forged\r\x1b[31m\x7f\xC2\x9B\xFF\\ \"caf\xC3\xA9\"");
    cr_expect_str_eq(caught() + 24, " info a\\n2026 error forged\\u000d\\u001b[31m\\u007f\\u009b"
                                    "\\ufffd\\\\ \"caf\xC3\xA9\"\n");
}

Test(log, the_json_form_is_json)
{
    rt_log_json_set(true);
    rt_log(RT_LOG_ERROR, "%s", "quote \" slash \\ line\n\x01 caf\xC3\xA9 \xFF");
    rt_json doc;
    rt_error err = { 0 };
    cr_assert(rt_json_parse(rt_str_of(caught()), &arena, &doc, &err), "%s", err.text);
    cr_expect(rt_str_eq_c(rt_json_str(rt_json_get_c(doc, "level")), "error"));
    cr_expect(rt_str_eq_c(rt_json_str(rt_json_get_c(doc, "message")),
                          "quote \" slash \\ line\n\x01 caf\xC3\xA9 \xEF\xBF\xBD"));
}

Test(log, a_long_message_is_cut_and_says_so)
{
    rt_str long_one = { rt_arena_alloc(&arena, 100001), 100000 };
    memset((char *)(uintptr_t)long_one.ptr, 1, long_one.len);
    rt_log(RT_LOG_INFO, "%.*s", RT_FMT(long_one));
    rt_str line = rt_str_of(caught());
    cr_expect(rt_str_ends(line, RT_STR("\\u0001 [cut]\n")));
    cr_expect_lt(line.len, 6 * RT_LOG_MESSAGE_MAX + 128);
}

Test(log, levels_have_names)
{
    rt_log_level level = RT_LOG_ERROR;
    rt_error err = { 0 };
    cr_expect(rt_log_level_parse(RT_STR("DEBUG"), &level, &err) && level == RT_LOG_DEBUG);
    cr_expect(!rt_log_level_parse(RT_STR("verbose"), &level, &err));
    cr_expect_eq(err.code, RT_INVALID);
    rt_log_level_set(RT_LOG_ERROR);
    cr_expect(!rt_log_level_shown(RT_LOG_WARN));
    cr_expect_str_eq(rt_log_level_name(RT_LOG_INFO), "info");
}
