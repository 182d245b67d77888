/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_tools_test.c - results become values; arguments become headers where a tool wants that. */
#include "tools/mcp_internal.h"

#include <criterion/criterion.h>

static rt_arena arena;

static void release(void)
{
    rt_arena_done(&arena);
}

TestSuite(mcp_tools, .fini = release);

static rt_tool_result result_of(const char *text)
{
    rt_json doc;
    rt_tool_result out = { 0 };
    rt_error err = { 0 };
    cr_assert(rt_json_parse(rt_str_of(text), &arena, &doc, &err), "%s", err.text);
    mcp_result_read(rt_str_of(text), doc, &arena, &out);
    return out;
}

static void has_value(const char *result, const char *value)
{
    rt_tool_result out = result_of(result);
    cr_assert(rt_str_eq_c(out.value, value), "%s gives %.*s, not %s", result, RT_FMT(out.value),
              value);
}

#define TEXT(words) "{\"type\":\"text\",\"text\":" words "}"

Test(mcp_tools, the_structured_result_is_the_value_as_it_was_written)
{
    has_value("{\"content\":[],\"structuredContent\":{\"n\": 1.50, \"d\":1e400}}",
              "{\"n\": 1.50, \"d\":1e400}");
    has_value("{\"structuredContent\":[1]}", "[1]");
}

Test(mcp_tools, text_is_a_document_or_a_string)
{
    has_value("{\"content\":[" TEXT("\" {\\\"a\\\":1} \"") "]}", "{\"a\":1}");
    has_value("{\"content\":[" TEXT("\"{broken\"") "]}", "\"{broken\"");
    has_value("{\"content\":[" TEXT("\"42\"") "]}", "\"42\"");
    has_value("{\"content\":[" TEXT("\"a\\u0000b\"") "," TEXT("\"c\"") "]}", "\"a\\u0000b\\nc\"");
    has_value("{\"content\":[]}", "null");
    has_value("{}", "null");
}

Test(mcp_tools, other_content_is_its_own_value)
{
    has_value("{\"content\":[{\"type\":\"image\",\"data\":\"AA==\"}]}",
              "[{\"type\":\"image\",\"data\":\"AA==\"}]");
}

Test(mcp_tools, an_error_is_told_in_its_own_words)
{
    rt_tool_result out = result_of("{\"isError\":true,\"content\":[" TEXT("\"{}\"") "]}");
    cr_assert(out.is_error);
    cr_assert(rt_str_eq_c(out.value, "\"{}\""));
}

Test(mcp_tools, content_is_an_array_whatever_the_server_says)
{
    cr_assert(rt_str_eq_c(result_of("{\"content\":7}").content, "[]"));
    cr_assert(rt_str_eq_c(result_of("{\"content\":[],\"\\u0063ontent\":[7]}").content, "[]"));
    cr_assert(rt_str_eq_c(result_of("{\"content\":\"x\",\"\\u0063ontent\":[]}").content, "[]"));
}

Test(mcp_tools, arguments_become_headers)
{
    static const rt_str region[] = { { "region", 6 } }, deep[] = { { "a", 1 }, { "b", 1 } };
    mcp_mirror second = { .header = RT_STR("Mcp-Param-Deep"), .path = deep, .depth = 2 };
    mcp_mirror first = {
        .header = RT_STR("Mcp-Param-Region"), .path = region, .depth = 1, .next = &second
    };
    const char *const *lines;
    cr_assert(mcp_mirror_lines(&first, RT_STR("{\"region\":\"Zürich\",\"a\":{\"b\":1e1}}"), &arena,
                               &lines, NULL));
    cr_assert_str_eq(lines[0], "Mcp-Param-Region: =?base64?WsO8cmljaA==?=");
    cr_assert_str_eq(lines[1], "Mcp-Param-Deep: 10");
    cr_assert_null(lines[2]);
    cr_assert(mcp_mirror_lines(&first, RT_STR("{\"region\":\"\",\"a\":{\"b\":null}}"), &arena,
                               &lines, NULL));
    cr_assert_str_eq(lines[0], "Mcp-Param-Region;");
    cr_assert_null(lines[1]);
    cr_assert(mcp_mirror_lines(&first, RT_STR("{\"a\":7}"), &arena, &lines, NULL));
    cr_assert_null(lines[0]);
}
