/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <criterion/criterion.h>

Test(outbound, data_is_refused_when_nobody_looks_through_it)
{
    rt_outbound parcel RT_CLEANUP(rt_outbound_done) = { 0 };
    rt_error err = { 0 };
    cr_assert(!rt_outbound_clear(&parcel, RT_OUTBOUND_DATA, RT_STR("{}"), NULL, 0, &err));
    cr_expect_eq(err.code, RT_DENIED);
    cr_expect(!parcel.is_cleared);
}

Test(outbound, a_call_and_a_login_were_decided_before)
{
    rt_outbound parcel RT_CLEANUP(rt_outbound_done) = { 0 };
    rt_str body = RT_STR("user=ann@x.org");
    cr_assert(rt_outbound_clear(&parcel, RT_OUTBOUND_LOGIN, body, NULL, 0, NULL));
    cr_expect(rt_str_eq(rt_outbound_bytes(&parcel), body));
    cr_assert(rt_outbound_clear(&parcel, RT_OUTBOUND_TOOL, body, NULL, 0, NULL));
    cr_expect(rt_str_eq(rt_outbound_bytes(&parcel), body));
}
