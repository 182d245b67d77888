/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "server/mcp.h"

#define META                                                                                       \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                       \
    "\"io.modelcontextprotocol/clientCapabilities\":{}}"

static rt_server_config config;
static rt_arena arena;

typedef struct said {
    rt_json answer;
    unsigned status;
    size_t notifications;
} said;

static void hear(void *ctx, rt_str message, unsigned status)
{
    said *s = ctx;
    if (status == 0) {
        s->notifications++;
        return;
    }
    s->status = status;
    cr_assert(rt_json_parse(message, &arena, &s->answer, NULL));
}

static rt_str no_param(void *ctx, const char *header)
{
    return ctx && strcmp(header, "Mcp-Param-Region") == 0 ? rt_str_of(ctx) : (rt_str){ 0 };
}

/* The answer to a message; headers NULL: it came over stdio. */
static said ask(const char *text, mcp_headers *headers)
{
    said s = { 0 };
    rt_json message;
    mcp *m = mcp_new(&config);
    mcp_call *c = mcp_call_new(m, &(rt_caller){ .role = RT_ROLE_OWNER });
    c->send = hear;
    c->send_ctx = &s;
    if (headers)
        headers->param = no_param;
    cr_assert(rt_json_parse(rt_str_of(text), &c->arena, &message, NULL), "%s", text);
    mcp_call_open(c, message, headers);
    mcp_call_answer(c);
    mcp_call_release(c);
    mcp_free(m);
    return s;
}

static int64_t code_of(said s)
{
    int64_t code = 0;
    rt_json_i64(rt_json_get_c(rt_json_get_c(s.answer, "error"), "code"), &code);
    return code;
}

Test(mcp_dispatch, a_modern_result_carries_what_the_era_wants)
{
    rt_json result = rt_json_get_c(
        ask("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{" META "}}", NULL)
            .answer,
        "result");
    cr_expect(rt_str_eq_c(rt_json_str(rt_json_get_c(result, "resultType")), "complete"));
    cr_expect(rt_str_eq_c(rt_json_str(rt_json_get_c(result, "cacheScope")), "private"));
    cr_expect(
        !rt_json_is_absent(rt_json_get_c(rt_json_get_c(result, "_meta"), RT_MCP_META_SERVER)));
}

Test(mcp_dispatch, a_legacy_result_carries_nothing_of_it)
{
    rt_json result = rt_json_get_c(
        ask("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", NULL).answer, "result");
    cr_expect_eq(rt_json_count(result), 1);
}

Test(mcp_dispatch, checks_come_in_the_order_clients_rely_on)
{
    static const struct {
        const char *version, *method, *name, *body;
        int64_t code;
        unsigned status;
    } cases[] = {
        /* the header is compared before the version is looked at */
        { "2026-07-28", "ping", "",
          "\"ping\",\"params\":{\"_meta\":{"
          "\"io.modelcontextprotocol/protocolVersion\":\"v9\","
          "\"io.modelcontextprotocol/clientCapabilities\":{}}}",
          -32020, 400 },
        { "v9", "ping", "",
          "\"ping\",\"params\":{\"_meta\":{"
          "\"io.modelcontextprotocol/protocolVersion\":\"v9\","
          "\"io.modelcontextprotocol/clientCapabilities\":{}}}",
          -32022, 400 },
        /* and headers before whether there is such a method */
        { "2026-07-28", "other", "", "\"ping\",\"params\":{" META "}", -32020, 400 },
        { "2026-07-28", "ping", "", "\"ping\",\"params\":{" META "}", -32601, 404 },
        { "2026-07-28", "tools/call", "b", "\"tools/call\",\"params\":{\"name\":\"a\"," META "}",
          -32020, 400 },
        { "2026-07-28", " tools/call ",
          "=?base64?YQ==?=", "\"tools/call\",\"params\":{\"name\":\"a\"," META "}", -32602, 200 },
        { "2026-07-28", "tools/list", "", "\"tools/list\"", -32602, 400 },
        { "v9", "", "", "\"tools/list\"", -32600, 400 },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        mcp_headers headers = { rt_str_of(cases[i].version), rt_str_of(cases[i].method),
                                rt_str_of(cases[i].name), NULL, NULL };
        rt_str text =
            rt_arena_printf(&arena, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":%s}", cases[i].body);
        said s = ask(text.ptr, &headers);
        cr_expect_eq(code_of(s), cases[i].code, "%zu: %lld", i, (long long)code_of(s));
        cr_expect_eq(s.status, cases[i].status, "%zu: %u", i, s.status);
    }
}

Test(mcp_dispatch, arguments_are_compared_with_their_headers)
{
    static const struct {
        const char *header, *arguments;
        bool is_fine;
    } cases[] = {
        { "eu", "{\"region\":\"eu\"}", true },
        { "=?base64?ZXU=?=", "{\"region\":\"eu\"}", true },
        { "us", "{\"region\":\"eu\"}", false },
        { NULL, "{\"region\":\"eu\"}", false },
        { "=?base64?!!?=", "{\"region\":\"eu\"}", false },
        { NULL, "{}", true },
        { NULL, "{\"region\":null}", true },
        { "eu", "{}", false },
    };
    config.has_mcp_fixture = true;
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        mcp_headers headers = { .version = RT_STR("2026-07-28"),
                                .method = RT_STR("tools/call"),
                                .name = RT_STR("test_x_mcp_header"),
                                .ctx = (void *)(uintptr_t)cases[i].header };
        rt_str text = rt_arena_printf(&arena,
                                      "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
                                      "\"params\":{\"name\":\"test_x_mcp_header\","
                                      "\"arguments\":%s," META "}}",
                                      cases[i].arguments);
        cr_expect_eq(code_of(ask(text.ptr, &headers)), cases[i].is_fine ? 0 : -32020, "%zu", i);
    }
    config.has_mcp_fixture = false;
}

Test(mcp_dispatch, every_tool_has_schemas_that_are_json)
{
    const mcp_tool *const lists[] = { mcp_tools, mcp_fixture_tools };
    for (size_t i = 0; i < RT_COUNT(lists); i++)
        for (const mcp_tool *tool = lists[i]; tool->name; tool++) {
            const char *const texts[] = { tool->input, tool->output, tool->annotations };
            for (size_t j = 0; j < RT_COUNT(texts); j++) {
                rt_json parsed;
                if (texts[j])
                    cr_expect(rt_json_parse(rt_str_of(texts[j]), &arena, &parsed, NULL), "%s: %s",
                              tool->name, texts[j]);
            }
            cr_expect(strspn(tool->name, "abcdefghijklmnopqrstuvwxyz0123456789_") ==
                          strlen(tool->name),
                      "%s", tool->name);
        }
}

Test(mcp_dispatch, the_fixture_is_not_there_unless_it_is_asked_for)
{
    const char *text = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"prompts/list\"}";
    cr_expect_eq(code_of(ask(text, NULL)), -32601);
    cr_expect_null(mcp_tool_find(&(mcp){ .config = &config }, RT_STR("test_simple_text")));
}
