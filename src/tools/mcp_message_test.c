/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_message_test.c - envelopes are found, whatever is inside; header values survive the way. */
#include "tools/mcp_message.h"

#include <criterion/criterion.h>

static rt_mcp_message scanned(const char *text)
{
    rt_mcp_message m;
    rt_error err = { 0 };
    cr_assert(rt_mcp_message_scan(rt_str_of(text), &m, &err), "%s: %s", text, err.text);
    return m;
}

static void refused(const char *text)
{
    rt_mcp_message m;
    rt_error err = { 0 };
    cr_assert(!rt_mcp_message_scan(rt_str_of(text), &m, &err), "%s", text);
    cr_assert_eq(err.code, RT_INVALID);
}

static void is_text(rt_str got, const char *wanted)
{
    cr_assert(rt_str_eq_c(got, wanted), "%.*s, not %s", RT_FMT(got), wanted);
}

Test(mcp_message, the_four_kinds_are_told_apart)
{
    cr_assert_eq(scanned("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a/b\"}").kind, RT_MCP_REQUEST);
    cr_assert_eq(scanned("{\"method\":\"a/b\",\"params\":{}}").kind, RT_MCP_NOTIFICATION);
    cr_assert_eq(scanned("{\"id\":1,\"result\":{}}").kind, RT_MCP_RESULT);
    cr_assert_eq(scanned("{\"id\":1,\"error\":{\"code\":1}}").kind, RT_MCP_ERROR);
    cr_assert_eq(scanned("{\"id\":1,\"result\":{},\"error\":null}").kind, RT_MCP_RESULT);
}

Test(mcp_message, the_parts_are_views_of_the_text)
{
    rt_mcp_message m = scanned(" { \"params\" : {\"a\":[1,\"]}\\\"\"]} , \"id\" : \"x\\\"y\",\n"
                               "\"method\":\"tools/call\", \"jsonrpc\":\"2.0\" } ");
    cr_assert(m.is_version_2);
    is_text(m.id, "\"x\\\"y\"");
    is_text(m.method, "tools/call");
    is_text(m.params, "{\"a\":[1,\"]}\\\"\"]}");
    is_text(m.result, "");
}

Test(mcp_message, a_null_id_is_none)
{
    rt_mcp_message m = scanned("{\"id\":null,\"error\":{\"code\":-32700,\"message\":\"x\"}}");
    is_text(m.id, "");
    cr_assert_eq(m.kind, RT_MCP_ERROR);
}

Test(mcp_message, what_is_no_message_is_refused)
{
    static const char *const texts[] = {
        "",
        " ",
        "{",
        "}",
        "[]",
        "null",
        "7",
        "\"x\"",
        "{}",
        "{\"id\":1}",
        "{\"id\":1,}",
        "{\"result\":1} x",
        "{\"result\"}",
        "{\"result\":}",
        "{result:1}",
        "{\"a\":1 \"b\":2}",
        "{\"result\":\"",
        "{\"result\":\"\\\"}",
        "{\"id\":1.5,\"result\":1}",
        "{\"id\":{},\"result\":1}",
        "{\"id\":true,\"result\":1}",
        "{\"result\":{\"a\":[}",
    };
    for (size_t i = 0; i < RT_COUNT(texts); i++)
        refused(texts[i]);
}

Test(mcp_message, of_duplicate_members_the_last_counts)
{
    is_text(scanned("{\"id\":1,\"id\":2,\"result\":1}").id, "2");
    is_text(rt_mcp_member(RT_STR("{\"a\":1,\"b\":{\"a\":3},\"a\":[2]}"), RT_STR("a")), "[2]");
    is_text(rt_mcp_member(RT_STR("{\"a\":1}"), RT_STR("b")), "");
    is_text(rt_mcp_member(RT_STR("[1]"), RT_STR("a")), "");
}

Test(mcp_message, only_our_own_number_is_our_id)
{
    cr_assert(rt_mcp_id_is(RT_STR("17"), 17));
    cr_assert(!rt_mcp_id_is(RT_STR("\"17\""), 17));
    cr_assert(!rt_mcp_id_is(RT_STR("-17"), 17));
    cr_assert(!rt_mcp_id_is(RT_STR("1"), 17));
    cr_assert(!rt_mcp_id_is(RT_STR(""), 0));
}

Test(mcp_message, a_batch_is_taken_apart)
{
    rt_str rest = RT_STR("[ {\"id\":1} , [2], \"],\"]"), item;
    cr_assert(rt_mcp_batch_next(&rest, &item));
    is_text(item, "{\"id\":1}");
    cr_assert(rt_mcp_batch_next(&rest, &item));
    is_text(item, "[2]");
    cr_assert(rt_mcp_batch_next(&rest, &item));
    is_text(item, "\"],\"");
    cr_assert(!rt_mcp_batch_next(&rest, &item));
    rest = RT_STR("[]");
    cr_assert(!rt_mcp_batch_next(&rest, &item));
}

Test(mcp_message, answers_are_written_as_the_protocol_has_them)
{
    rt_buf out RT_CLEANUP(rt_buf_done) = { 0 };
    rt_mcp_write_result(&out, RT_STR("\"a\""), RT_STR("{}"));
    is_text(rt_buf_str(&out), "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{}}");
    rt_buf_reset(&out);
    rt_mcp_write_error(&out, RT_STR(""), RT_MCP_PARSE_ERROR, RT_STR("no \"JSON\""), RT_STR("[1]"));
    is_text(rt_buf_str(&out),
            "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"no \\\"JSON\\\"\","
            "\"data\":[1]}}");
}

Test(mcp_message, revisions_are_known_by_name_and_era)
{
    cr_assert_eq(rt_mcp_version_find(RT_STR("2026-07-28"))->era, RT_MCP_MODERN);
    cr_assert_eq(rt_mcp_version_find(RT_STR("2024-11-05"))->era, RT_MCP_LEGACY);
    cr_assert_null(rt_mcp_version_find(RT_STR("2026-07-29")));
    cr_assert_str_eq(rt_mcp_version_newest(RT_MCP_LEGACY)->name, "2025-11-25");
    for (size_t i = 1; i < rt_mcp_version_count; i++)
        cr_assert_lt(strcmp(rt_mcp_versions[i].name, rt_mcp_versions[i - 1].name), 0);
}

static void is_header(rt_str value, const char *wanted)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_buf out RT_CLEANUP(rt_buf_done) = { 0 };
    rt_str back;
    rt_mcp_header_encode(value, &out);
    is_text(rt_buf_str(&out), wanted);
    cr_assert(rt_mcp_header_decode(rt_buf_str(&out), &arena, &back, NULL));
    cr_assert(rt_str_eq(back, value));
}

Test(mcp_message, header_values_are_plain_when_they_can_be)
{
    is_header(RT_STR("us west 1"), "us west 1");
    is_header(RT_STR(""), "");
    is_header(RT_STR("=?base64?"), "=?base64?");
    is_header(RT_STR(" padded "), "=?base64?IHBhZGRlZCA=?=");
    is_header(RT_STR("a\nb"), "=?base64?YQpi?=");
    is_header(RT_STR("Hello, 世界"), "=?base64?SGVsbG8sIOS4lueVjA==?=");
    is_header(RT_STR("=?base64?YQ==?="), "=?base64?PT9iYXNlNjQ/WVE9PT89?=");
}

Test(mcp_message, base64_that_is_none_is_refused)
{
    static const char *const headers[] = { "=?base64?YQ?=", "=?base64?Y!==?=", "=?base64?Y Q=?=",
                                           "=?base64?Y===?=", "=?base64?=YQ=?=" };
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str out;
    for (size_t i = 0; i < RT_COUNT(headers); i++)
        cr_assert(!rt_mcp_header_decode(rt_str_of(headers[i]), &arena, &out, NULL), "%s",
                  headers[i]);
}
