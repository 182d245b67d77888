/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "server/operations.h"

static rt_arena arena;

static http_route route(const char *method, const char *path)
{
    http_target target;
    http_route found;
    cr_assert(target_parse(rt_str_of(path), &arena, &target, NULL));
    operations_route(rt_str_of(method), &target, &found);
    return found;
}

Test(operations, are_found_by_method_and_path)
{
    static const struct {
        const char *method, *path, *id;
    } cases[] = {
        { "GET", "/", "root" },
        { "HEAD", "/health", "health" },
        { "POST", "/v1/executions", "execute" },
        { "GET", "/v1/executions", "listExecutions" },
        { "GET", "/v1/executions/exec_1", "getExecution" },
        { "POST", "/v1/executions/exec_1/cancel", "cancelExecution" },
        { "GET", "/v1/sessions/s/files", "listFiles" },
        { "GET", "/v1/sessions/s/files/a", "readFile" },
        { "PUT", "/v1/sessions/s/files/a/b/c.txt", "writeFile" },
        { "GET", "/v1/costs/summary", "sumCosts" },
        { "POST", "/api/agent/execute-code", "agentExecuteCode" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        http_route found = route(cases[i].method, cases[i].path);
        cr_assert_not_null(found.operation, "%s %s", cases[i].method, cases[i].path);
        cr_expect_str_eq(found.operation->id, cases[i].id);
    }
}

Test(operations, a_path_gives_its_parameters)
{
    http_route found = route("GET", "/v1/sessions/s%201/files/a%2Fb/c%20d");
    cr_assert_eq(found.param_count, 2);
    cr_expect(rt_str_eq_c(found.params[0].name, "id"));
    cr_expect(rt_str_eq_c(found.params[0].value, "s 1"));
    cr_expect(rt_str_eq_c(found.params[1].name, "path"));
    cr_expect(rt_str_eq_c(found.params[1].value, "a/b/c d"));
}

Test(operations, a_method_that_is_not_possible_is_told_those_that_are)
{
    http_route found = route("DELETE", "/v1/executions");
    cr_assert_null(found.operation);
    cr_assert_str_eq(found.allow, "POST, GET, HEAD");
}

Test(operations, other_paths_lead_nowhere)
{
    static const char *const paths[] = { "/x",
                                         "/v1",
                                         "/v1/executions/",
                                         "//",
                                         "/v1//executions",
                                         "/v1/executions/a/b",
                                         "/V1/executions",
                                         "/v1/sessions/s/files/",
                                         "/v1%2Fexecutions",
                                         "/docs/a/b" };
    for (size_t i = 0; i < RT_COUNT(paths); i++) {
        http_route found = route("GET", paths[i]);
        cr_expect_null(found.operation, "%s", paths[i]);
        cr_expect_str_empty(found.allow, "%s", paths[i]);
    }
}

Test(operations, each_row_is_whole)
{
    const http_operation *op, *other;
    for (size_t i = 0; (op = operations_at(i)); i++) {
        cr_expect_not_null(op->handler, "%s", op->id);
        cr_expect_not_null(op->summary, "%s", op->id);
        cr_expect_not_null(op->tag, "%s", op->id);
        cr_expect(op->role == RT_ROLE_NONE || op->action, "%s has no action", op->id);
        cr_expect(op->responses && op->responses->status, "%s has no response", op->id);
        for (size_t j = 0; j < i && (other = operations_at(j)); j++) {
            cr_expect_str_neq(op->id, other->id);
            cr_expect(strcmp(op->path, other->path) != 0 || strcmp(op->method, other->method) != 0,
                      "%s is there twice", op->id);
        }
    }
}

Test(operations, parameters_are_checked_by_their_row)
{
    static const http_parameter
        limit = { "limit", HTTP_IN_QUERY, HTTP_TYPE_INTEGER, "", NULL, NULL, 1, 500 },
        flag = { "wait", HTTP_IN_QUERY, HTTP_TYPE_BOOLEAN, "", NULL, NULL, 0, 0 },
        word = { "period", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "", "daily monthly", NULL, 0, 0 },
        text = { "q", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "", NULL, NULL, 1, 3 };
    static const struct {
        const http_parameter *parameter;
        const char *value;
        bool is_good;
    } cases[] = {
        { &limit, "1", true },    { &limit, "500", true }, { &limit, "0", false },
        { &limit, "501", false }, { &limit, "", false },   { &limit, "1.0", false },
        { &limit, "x", false },   { &flag, "true", true }, { &flag, "false", true },
        { &flag, "1", false },    { &flag, "", false },    { &word, "daily", true },
        { &word, "dail", false }, { &word, "", false },    { &word, "daily monthly", false },
        { &text, "a", true },     { &text, "äöü", true },  { &text, "", false },
        { &text, "abcd", false },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++)
        cr_expect_eq(
            operations_parameter_check(cases[i].parameter, rt_str_of(cases[i].value), NULL),
            cases[i].is_good, "%s=%s", cases[i].parameter->name, cases[i].value);
}

Test(operations, times)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } good[] = {
        { "1970-01-01T00:00:00Z", 0 },
        { "2026-11-15T03:21:57.123Z", 1794712917123 },
        { "2026-11-15T03:21:57.123456789Z", 1794712917123 },
        { "2026-11-15T05:21:57+02:00", 1794712917000 },
        { "2026-11-14T22:21:57-05:00", 1794712917000 },
        { "2026-11-15t03:21:57z", 1794712917000 },
        { "2024-02-29", 1709164800000 },
        { "2016-12-31T23:59:60Z", 1483228800000 },
        { "1427-08-25T07:37:49.9Z", 0 },
        { "1794712917123", 1794712917123 },
    };
    static const char *const bad[] = { "",
                                       "2026",
                                       "2026-13-01",
                                       "2026-02-30",
                                       "2026-11-15T",
                                       "2026-11-15T25:00:00Z",
                                       "yesterday",
                                       "2026-11-15T03:21:57",

                                       "2026-11-15T03:21:57.Z",
                                       "2026-11-15 03:21:57Z",
                                       "-5" };
    uint64_t ms;
    for (size_t i = 0; i < RT_COUNT(good); i++) {
        cr_expect(operations_time(rt_str_of(good[i].text), &ms), "%s", good[i].text);
        cr_expect_eq(ms, good[i].ms, "%s gives %llu", good[i].text, (unsigned long long)ms);
    }
    for (size_t i = 0; i < RT_COUNT(bad); i++)
        cr_expect(!operations_time(rt_str_of(bad[i]), &ms), "%s", bad[i]);
}
