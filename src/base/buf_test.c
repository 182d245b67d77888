/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <criterion/criterion.h>

Test(buf, grows_as_text_is_added)
{
    rt_buf buf RT_CLEANUP(rt_buf_done) = { 0 };
    for (int i = 0; i < 10000; i++)
        rt_buf_addf(&buf, "%04d", i);
    rt_buf_add(&buf, RT_STR("x"));
    rt_buf_addc(&buf, '\0');
    cr_expect(rt_buf_ok(&buf, NULL));
    cr_expect_eq(rt_buf_str(&buf).len, 40002);
    cr_expect(rt_str_ends(rt_buf_str(&buf), RT_STR("99989999x\0")));
}

Test(buf, keeps_its_first_failure_and_its_text)
{
    rt_buf buf RT_CLEANUP(rt_buf_done);
    rt_error err = { 0 };
    rt_buf_init(&buf, 10);
    rt_buf_add(&buf, RT_STR("0123456789"));
    cr_expect(rt_buf_ok(&buf, &err), "exactly full is not too full");
    rt_buf_addc(&buf, 'x');
    rt_buf_reset(&buf);
    rt_buf_add(&buf, RT_STR("01234"));
    rt_buf_addf(&buf, "%s", "567890");
    rt_buf_addc(&buf, 'x');
    cr_expect(rt_str_eq(rt_buf_str(&buf), RT_STR("01234")));
    cr_expect(!rt_buf_ok(&buf, &err));
    cr_expect_eq(err.code, RT_LIMIT);
    cr_expect_str_eq(err.text, "longer than the maximum of 10 bytes");
    cr_expect_null(rt_buf_reserve(&buf, 1));
}

Test(buf, a_format_may_fill_it_to_the_last_byte)
{
    rt_buf buf RT_CLEANUP(rt_buf_done);
    rt_buf_init(&buf, 5);
    rt_buf_addf(&buf, "%d", 12345);
    cr_expect(rt_buf_ok(&buf, NULL));
    cr_expect(rt_str_eq(rt_buf_str(&buf), RT_STR("12345")));
}

Test(buf, reserved_room_counts_when_it_is_used)
{
    rt_buf buf RT_CLEANUP(rt_buf_done) = { 0 };
    memcpy(rt_buf_reserve(&buf, 1000), "abc", 3);
    buf.len += 3;
    cr_expect(rt_str_eq(rt_buf_str(&buf), RT_STR("abc")));
}

Test(buf, an_unused_buffer_is_empty_text)
{
    rt_buf buf = { 0 };
    cr_expect_eq(rt_buf_str(&buf).len, 0);
    cr_expect_not_null(rt_buf_str(&buf).ptr);
    rt_buf_done(&buf);
    rt_buf_done(&buf);
}
