/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/route.h"

#include <criterion/criterion.h>

static rt_runtime local = { .name = "local" }, e2b = { .name = "e2b" },
                  bacalhau = { .name = "bacalhau" };

/* C-12 as a truth table: what is asked, what is there, what comes of it. */
static const struct {
    const char *runtime, *language;
    bool is_long, needs_sandbox;
    uint64_t expected_us;
    bool has_e2b, has_bacalhau;
    const char *name, *reason, *wanted;
} cases[] = {
    { "", "python", 0, 0, 0, 0, 0, "local", "default", "local" },
    { "auto", "python", 0, 0, 0, 1, 1, "local", "default", "local" },
    { "", "python", 1, 0, 0, 0, 0, "local", "long_job", "bacalhau" },
    { "", "python", 1, 0, 0, 1, 1, "bacalhau", "long_job", "bacalhau" },
    { "", "python", 1, 1, 10000, 1, 1, "bacalhau", "long_job", "bacalhau" },
    { "", "python", 0, 1, 10000, 1, 1, "e2b", "requires_sandbox", "e2b" },
    { "", "python", 0, 1, 10000, 0, 1, "local", "requires_sandbox", "wasmedge" },
    { "", "python", 0, 1, 90000, 1, 1, "local", "requires_sandbox", "wasmedge" },
    { "", "python", 0, 1, 0, 1, 1, "local", "requires_sandbox", "wasmedge" },
    { "", "wasm", 0, 1, 0, 1, 1, "wasmedge", "requires_sandbox", "wasmedge" },
    { "", "python", 0, 0, 49999, 1, 0, "e2b", "expected_fast", "e2b" },
    { "", "python", 0, 0, 50000, 1, 0, "local", "default", "local" },
    { "", "python", 0, 0, 49999, 0, 0, "local", "default", "local" },
    { "e2b", "python", 1, 1, 0, 1, 1, "e2b", "explicit", "e2b" },
    { "e2b", "python", 0, 0, 0, 0, 0, "local", "explicit", "e2b" },
    { "vm2", "javascript", 1, 1, 0, 1, 1, "vm2", "explicit", "vm2" },
    { "subprocess", "python", 0, 0, 0, 0, 0, "subprocess", "explicit", "subprocess" },
    { "wasmedge", "wasm", 0, 0, 0, 0, 0, "wasmedge", "explicit", "wasmedge" },
    { "wasmedge", "python", 0, 0, 0, 0, 0, "local", "explicit", "wasmedge" },
    { "bacalhau", "python", 0, 0, 0, 0, 0, "local", "explicit", "bacalhau" },
    { "local", "bash", 1, 0, 0, 1, 1, "local", "explicit", "local" },
};

Test(route, a_name_wins_then_the_rules_in_their_order)
{
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        rt_router *r = rt_router_new(&local);
        rt_route got;
        rt_error err = { 0 };
        if (cases[i].has_e2b)
            cr_assert(rt_router_add(r, "e2b", &e2b, &err));
        if (cases[i].has_bacalhau)
            cr_assert(rt_router_add(r, "bacalhau", &bacalhau, &err));
        rt_route_ask ask = { .runtime = rt_str_of(cases[i].runtime),
                             .language = rt_str_of(cases[i].language),
                             .is_long = cases[i].is_long,
                             .needs_sandbox = cases[i].needs_sandbox,
                             .expected_us = cases[i].expected_us };
        cr_assert(rt_router_decide(r, &ask, &got, &err), "case %zu: %s", i, err.text);
        cr_expect_str_eq(got.name, cases[i].name, "case %zu", i);
        cr_expect_str_eq(got.reason, cases[i].reason, "case %zu", i);
        cr_expect_str_eq(got.wanted, cases[i].wanted, "case %zu", i);
        cr_expect_eq(got.missing != NULL, strcmp(got.name, got.wanted) != 0, "case %zu", i);
        rt_runtime *expected = !strcmp(got.name, "e2b")        ? &e2b
                               : !strcmp(got.name, "bacalhau") ? &bacalhau
                                                               : &local;
        cr_expect_eq(got.runtime, expected, "case %zu", i);
        rt_router_free(r);
    }
}

Test(route, an_unknown_name_is_refused_with_those_there_are)
{
    rt_router *r = rt_router_new(&local);
    rt_route got;
    rt_error err = { 0 };
    cr_expect(!rt_router_decide(r, &(rt_route_ask){ .runtime = RT_STR("cloud9") }, &got, &err));
    cr_expect_eq(err.code, RT_INVALID);
    cr_expect(strstr(err.text, "'cloud9'") && strstr(err.text, "wasmedge"), "%s", err.text);
    cr_expect(!rt_router_add(r, "vm2", &e2b, &err));
    cr_expect(!rt_router_add(r, "nowhere", &e2b, &err));
    for (const char *const *name = (const char *const[]){ "vm2", "e2b", "wasmedge", "bacalhau",
                                                          "subprocess", "auto", "", NULL };
         *name; name++)
        cr_expect(rt_router_knows(rt_str_of(*name)), "%s", *name);
    cr_expect(!rt_router_knows(RT_STR("cloud9")));
    rt_router_free(r);
}

Test(route, what_code_took_is_what_it_is_expected_to_take)
{
    rt_router *r = rt_router_new(&local);
    rt_route got;
    rt_error err = { 0 };
    rt_str code = RT_STR("0123456789abcdef"), other = RT_STR("fedcba9876543210");
    rt_router_add(r, "e2b", &e2b, &err);
    rt_route_ask ask = { .language = RT_STR("python"), .code_hash = code };
    rt_router_decide(r, &ask, &got, &err);
    cr_expect_str_eq(got.reason, "default");
    rt_router_note(r, &got, code, 8000, true);
    rt_router_decide(r, &ask, &got, &err);
    cr_expect_str_eq(got.reason, "expected_fast");
    cr_expect_eq(got.expected_us, 8000);
    ask.code_hash = other;
    rt_router_decide(r, &ask, &got, &err);
    cr_expect_eq(got.expected_us, 0, "another code has its own time");
    ask.code_hash = code;
    for (int i = 0; i < 20; i++)
        rt_router_learn(r, code, 400000);
    rt_router_decide(r, &ask, &got, &err);
    cr_expect_str_eq(got.reason, "default", "it got slower");
    rt_router_free(r);
}

static rt_json tell(rt_router *r, rt_arena *arena)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json doc = { NULL };
    rt_json_begin(&w, &text);
    rt_router_write(r, &w);
    cr_assert(rt_json_parse(rt_buf_str(&text), arena, &doc, NULL));
    return doc;
}

Test(route, runs_are_counted_for_each_runtime)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_router *r = rt_router_new(&local);
    rt_route got;
    double number = 0;
    rt_router_decide(r, &(rt_route_ask){ .runtime = RT_STR("vm2") }, &got, NULL);
    rt_router_note(r, &got, RT_STR("aa"), 1000, true);
    rt_router_note(r, &got, RT_STR("aa"), 3000, false);
    rt_json row = rt_json_at(tell(r, &arena), 2);
    cr_expect(rt_str_eq_c(rt_json_str(rt_json_get_c(row, "name")), "vm2"));
    cr_expect(rt_json_double(rt_json_get_c(row, "count"), &number) && number == 2);
    cr_expect(rt_json_double(rt_json_get_c(row, "avgDurationMs"), &number) && number == 2);
    cr_expect(rt_json_double(rt_json_get_c(row, "successRate"), &number) && number == 0.5);
    row = rt_json_at(tell(r, &arena), 4);
    cr_expect(!rt_json_bool(rt_json_get_c(row, "available"), true));
    rt_router_free(r);
}

static void expect_capabilities(const char *features, bool is_available, const char *expected)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json map;
    cr_assert(rt_json_parse(rt_str_of(features), &arena, &map, NULL));
    cr_expect_eq(rt_bedrock_available(map), is_available);
    rt_json_begin(&w, &text);
    rt_bedrock_write_capabilities(map, &w);
    cr_expect(rt_str_eq_c(rt_buf_str(&text), expected), "%.*s", RT_FMT(rt_buf_str(&text)));
}

Test(route, bedrock_waits_until_its_features_say_otherwise)
{
    expect_capabilities("{}", false,
                        "{\"status\":\"waiting\",\"estimated_availability\":\"2025 Q3\"}");
    expect_capabilities("{\"code_execution\":false}", false,
                        "{\"status\":\"waiting\",\"estimated_availability\":\"2025 Q3\"}");
    expect_capabilities("{\"code_execution\":true,\"capabilities\":{\"languages\":[\"python\"]}}",
                        true,
                        "{\"status\":\"available\",\"capabilities\":{\"languages\":[\"python\"]}}");
}
