/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "base/str.h"

#include <criterion/criterion.h>
#include <errno.h>

Test(error, reporting_returns_false_and_accepts_nobody)
{
    cr_expect(!rt_fail(NULL, RT_INVALID, "x"));
    cr_expect(!rt_fail_errno(NULL, "x"));
    cr_expect(!rt_wrap(NULL, "x"));
}

Test(error, errno_is_told_and_kept)
{
    rt_error err = { 0 };
    errno = ENOENT;
    cr_expect(!rt_fail_errno(&err, "open %s", "/x"));
    cr_expect_str_eq(err.text, "open /x: No such file or directory");
    cr_expect_eq(err.code, RT_NOT_FOUND);
    cr_expect_eq(err.sys_errno, ENOENT);
    cr_expect_eq(errno, ENOENT);
}

Test(error, wrapping_says_what_we_were_doing)
{
    rt_error err = { 0 };
    rt_fail(&err, RT_DENIED, "mount %s", "/work");
    rt_wrap(&err, "start box %d", 7);
    cr_expect_str_eq(err.text, "start box 7: mount /work");
    cr_expect_eq(err.code, RT_DENIED);
}

Test(error, a_long_text_is_cut_between_characters)
{
    for (int shift = 0; shift < 4; shift++) {
        char text[400] = "";
        memset(text, 'x', (size_t)shift);
        while (strlen(text) < 380)
            strcat(text, "\xF0\x9F\x98\x80");
        rt_error err = { 0 };
        rt_fail(&err, RT_INVALID, "%s", text);
        for (int i = 0; i < 20; i++) {
            cr_expect(rt_utf8_valid(rt_str_of(err.text)));
            cr_expect(strlen(err.text) < sizeof(err.text));
            cr_expect(rt_str_ends(rt_str_of(err.text), RT_STR("...")));
            rt_wrap(&err, "caf\xC3\xA9 %d", i);
        }
    }
}

Test(error, a_long_prefix_leaves_room_for_the_cause)
{
    char prefix[400];
    memset(prefix, 'p', sizeof(prefix) - 1);
    prefix[sizeof(prefix) - 1] = '\0';
    rt_error err = { 0 };
    rt_fail(&err, RT_TIMEOUT, "the cause");
    rt_wrap(&err, "%s", prefix);
    cr_expect(rt_str_ends(rt_str_of(err.text), RT_STR("...: the cause")), "%s", err.text);
}

Test(error, every_code_has_a_name_and_a_status)
{
    for (int code = RT_OK; code <= RT_INTERNAL; code++) {
        cr_expect(rt_code_name((rt_code)code) != NULL);
        cr_expect(rt_code_http((rt_code)code) >= 200);
    }
    cr_expect_eq(rt_code_http(RT_NOT_FOUND), 404);
    cr_expect_eq(rt_code_http((rt_code)999), 500);
    cr_expect_str_eq(rt_code_name(RT_NOT_FOUND), "not_found");
}
