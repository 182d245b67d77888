/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "server/http.h"

static rt_arena arena;

static rt_json parse(const char *text)
{
    rt_json doc;
    cr_assert(rt_json_parse(rt_str_of(text), &arena, &doc, NULL), "%s", text);
    return doc;
}

static const http_member members[] = {
    { "name", HTTP_STRING, true },
    { "ttl", HTTP_STRING | HTTP_NUMBER | HTTP_NULL, false },
};

Test(members, members_are_checked_by_their_row)
{
    static const struct {
        const char *body, *complaint;
    } cases[] = {
        { "{\"name\":\"a\"}", NULL },
        { "{\"name\":\"a\",\"ttl\":null}", NULL },
        { "{\"name\":\"a\",\"ttl\":5}", NULL },
        { "{}", "'name' is missing" },
        { "[]", "must be a JSON object, not array" },
        { "{\"name\":1}", "'name' must be a string, not number" },
        { "{\"name\":\"a\",\"ttl\":true}", "'ttl' must be null or a number or a string" },
        { "{\"name\":\"a\",\"nam\":1}", "unknown member 'nam'; there are: name, ttl" },
        { "{\"name\":\"\\ud800\"}", "surrogate" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        rt_error err = { 0 };
        bool ok = http_members_check(parse(cases[i].body), members, RT_COUNT(members), &err);
        cr_expect_eq(ok, cases[i].complaint == NULL, "%s: %s", cases[i].body, err.text);
        cr_expect(ok || strstr(err.text, cases[i].complaint), "%s: %s", cases[i].body, err.text);
    }
}

Test(members, durations_are_seconds_or_texts)
{
    static const struct {
        const char *body;
        uint64_t ms;
    } cases[] = {
        { "{\"ttl\":5}", 5000 },         { "{\"ttl\":1.5}", 1500 },
        { "{\"ttl\":\"15m\"}", 900000 }, { "{}", 7 },
        { "{\"ttl\":null}", 7 },         { "{\"ttl\":0}", 0 },
        { "{\"ttl\":-1}", 0 },           { "{\"ttl\":1e300}", 0 },
        { "{\"ttl\":\"soon\"}", 0 },     { "{\"ttl\":\"0s\"}", 0 },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        uint64_t ms = strstr(cases[i].body, "ttl\":") && !strstr(cases[i].body, "null") ? 0 : 7;
        bool ok = http_member_ms(parse(cases[i].body), "ttl", &ms, NULL);
        cr_expect_eq(ok, cases[i].ms > 0, "%s", cases[i].body);
        cr_expect(!ok || ms == cases[i].ms, "%s", cases[i].body);
    }
}

Test(members, labels_hold_no_control_characters)
{
    rt_str name = RT_STR("before");
    cr_expect(http_member_label(parse("{\"name\":\"ä b\"}"), "name", &name, NULL));
    cr_expect(rt_str_eq_c(name, "ä b"));
    cr_expect(http_member_label(parse("{\"name\":\"\"}"), "name", &name, NULL));
    cr_expect(rt_str_eq_c(name, "ä b"));
    cr_expect(!http_member_label(parse("{\"name\":\"a\\nb\"}"), "name", &name, NULL));
    cr_expect(!http_member_label(parse("{\"name\":\"\\u0000\"}"), "name", &name, NULL));
}
