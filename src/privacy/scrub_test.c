/* SPDX-License-Identifier: Apache-2.0 */
#include "privacy/privacy.h"

#include <criterion/criterion.h>

Test(privacy_scrub, data_leaves_without_personal_data)
{
    rt_outbound parcel RT_CLEANUP(rt_outbound_done) = { 0 };
    rt_error err = { 0 };
    rt_str exempt[] = { RT_STR("id") };
    rt_outbound_scrub_set(rt_privacy_scrub);
    cr_assert(rt_outbound_clear(&parcel, RT_OUTBOUND_DATA,
                                RT_STR("{\"id\":\"ann@x.org\",\"ann@x.org\":[\"to ann@x.org\"],"
                                       "\"n\":\"1763200000000000000\"}"),
                                exempt, 1, &err),
              "%s", err.text);
    cr_expect(rt_str_eq_c(rt_outbound_bytes(&parcel),
                          "{\"id\":\"ann@x.org\",\"[EMAIL_REDACTED]\":[\"to [EMAIL_REDACTED]\"],"
                          "\"n\":\"1763200000000000000\"}"),
              "%.*s", RT_FMT(rt_outbound_bytes(&parcel)));
    cr_expect(!rt_outbound_clear(&parcel, RT_OUTBOUND_DATA, RT_STR("no JSON"), NULL, 0, &err));
    cr_expect(!parcel.is_cleared);
}

static void expect_log(const char *line, const char *wanted)
{
    char out[256];
    size_t len = rt_privacy_scrub_line(rt_str_of(line), out, sizeof(out));
    cr_expect(rt_str_eq_c((rt_str){ out, len }, wanted), "%.*s", (int)len, out);
}

Test(privacy_scrub, a_line_of_the_log_keeps_what_operators_need)
{
    expect_log("listening on http://127.0.0.1:8002", "listening on http://127.0.0.1:8002");
    expect_log("GET /v1/users/ann@example.org 404", "GET /v1/users/[EMAIL_REDACTED] 404");
    expect_log("connect to redis://:hunter22secret@10.0.0.7/2", "connect to [URL_REDACTED]");
    expect_log("key sk_live_"
               "4eC39HqLyjWDarjtT1zdp7dc is gone",
               "key [APIKEY_REDACTED] is gone");
    expect_log("", "");
}

Test(privacy_scrub, a_line_that_grows_is_cut)
{
    char out[20];
    size_t len = rt_privacy_scrub_line(RT_STR("a@b.org c@d.org e@f.org"), out, sizeof(out));
    cr_expect(rt_str_eq_c((rt_str){ out, len }, "[EMAIL_REDACTED] [EM"), "%.*s", (int)len, out);
}
