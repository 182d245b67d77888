/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tools/tools.h"

static rt_arena arena;

static void done(void)
{
    rt_arena_done(&arena);
}

TestSuite(stubs, .fini = done);

#define COMMITS                                                                                    \
    "{\"type\":\"object\",\"properties\":{"                                                        \
    "\"repo\":{\"type\":\"string\",\"description\":\"owner/name\"},"                               \
    "\"limit\":{\"type\":\"integer\"},\"since\":{\"type\":[\"string\",\"null\"]},"                 \
    "\"authors\":{\"type\":\"array\"},\"filter\":{\"type\":\"object\"}},\"required\":[\"repo\"]}"

static rt_tool a_tool(const char *name, const char *input, const char *output)
{
    return (rt_tool){ .name = rt_str_of(name),
                      .server = RT_STR("github"),
                      .description = RT_STR("Lists commits"),
                      .input_schema = rt_str_of(input),
                      .output_schema = rt_str_of(output) };
}

static rt_str stub(const char *input, const char *output, rt_stub_language language)
{
    rt_tool tool = a_tool("github:list_commits", input, output);
    return rt_tool_stub(&tool, language, &arena);
}

static void has(rt_str text, const char *part)
{
    cr_expect(rt_str_find(text, rt_str_of(part)) >= 0, "no «%s» in:\n%.*s", part, RT_FMT(text));
}

static void lacks(rt_str text, const char *part)
{
    cr_expect(rt_str_find(text, rt_str_of(part)) < 0, "«%s» in:\n%.*s", part, RT_FMT(text));
}

Test(stubs, list_commits_in_typescript)
{
    rt_str text = stub(COMMITS, "", RT_STUB_TYPESCRIPT);
    cr_expect_str_eq(rt_arena_copy(&arena, text),
                     "interface ListCommitsArgs {\n"
                     "  /** owner/name */\n"
                     "  repo: string;\n"
                     "  limit?: number;\n"
                     "  since?: string | null;\n"
                     "  authors?: unknown[];\n"
                     "  filter?: Record<string, unknown>;\n"
                     "}\n"
                     "type ListCommitsResult = unknown;\n"
                     "declare const github: {\n"
                     "  /** Lists commits */\n"
                     "  listCommits(args: ListCommitsArgs): Promise<ListCommitsResult>;\n"
                     "};\n");
}

Test(stubs, list_commits_in_python)
{
    rt_str text = stub(COMMITS, "", RT_STUB_PYTHON);
    cr_expect_str_eq(
        rt_arena_copy(&arena, text),
        "from typing import Any, Literal, NotRequired, TypedDict\n\n"
        "class github:\n"
        "    @staticmethod\n"
        "    def list_commits(*, repo: str, limit: int = ..., since: str | None = ..., "
        "authors: list[Any] = ..., filter: dict[str, Any] = ...) -> Any:\n"
        "        \"\"\"Lists commits\n\n"
        "        repo: owner/name\n"
        "        \"\"\"\n"
        "        ...\n");
}

Test(stubs, a_schema_without_properties_takes_anything)
{
    has(stub("{\"type\":\"object\"}", "", RT_STUB_TYPESCRIPT), "[key: string]: unknown;");
    has(stub("", "", RT_STUB_TYPESCRIPT), "listCommits(args?: ListCommitsArgs)");
    has(stub("no JSON", "", RT_STUB_PYTHON), "def list_commits(**others: Any) -> Any:");
}

Test(stubs, known_items_members_and_choices_are_told)
{
    const char *output = "{\"type\":\"object\",\"properties\":{\"rows\":{\"type\":\"array\","
                         "\"items\":{\"$ref\":\"#/$defs/row\"}},\"state\":{\"enum\":[\"open\","
                         "\"closed\",null]},\"tags\":{\"type\":\"array\",\"items\":{\"anyOf\":["
                         "{\"type\":\"string\"},{\"type\":\"integer\"}]}}},\"required\":[\"rows\"],"
                         "\"$defs\":{\"row\":{\"type\":\"object\",\"properties\":{\"sha\":{"
                         "\"type\":\"string\"}},\"required\":[\"sha\"]}}}";
    rt_str ts = stub("{}", output, RT_STUB_TYPESCRIPT), py = stub("{}", output, RT_STUB_PYTHON);
    has(ts, "rows: { sha: string }[];");
    has(ts, "state?: \"open\" | \"closed\" | null;");
    has(ts, "tags?: (string | number)[];");
    has(py, "class ListCommitsResultRows(TypedDict):\n    sha: str\n");
    has(py, "rows: list[ListCommitsResultRows]");
    has(py, "state: NotRequired[Literal[\"open\", \"closed\", None]]");
    has(py, "tags: NotRequired[list[str | int]]");
}

Test(stubs, names_are_turned_as_code_calls_them)
{
    static const struct {
        const char *name, *typescript, *python;
    } cases[] = {
        { "github:get_repo_123", "getRepo123(args?: GetRepo123Args)", "def get_repo_123(" },
        { "github:list-commits", "listCommits(", "def list_commits(" },
        { "github:3d", "\"3d\"(args?: Tool3dArgs)", "def t_3d(" },
        { "github:class", "class(args?: ClassArgs)", "def class_(" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        rt_tool tool = a_tool(cases[i].name, "", "");
        has(rt_tool_stub(&tool, RT_STUB_TYPESCRIPT, &arena), cases[i].typescript);
        has(rt_tool_stub(&tool, RT_STUB_PYTHON, &arena), cases[i].python);
    }
}

Test(stubs, of_one_server_stand_together_and_no_type_is_declared_twice)
{
    rt_tool tools[] = { a_tool("github:list", "", ""), a_tool("github:list-", "", ""),
                        a_tool("jira:list", "", "") };
    tools[2].server = RT_STR("jira");
    rt_str text = rt_tool_stubs(tools, RT_COUNT(tools), RT_STUB_TYPESCRIPT, &arena);
    has(text, "interface ListArgs {");
    has(text, "interface ListArgs2 {");
    has(text, "list(args?: ListArgs): Promise<ListResult>;\n");
    has(text, "\"list-\"(args?: ListArgs2)");
    has(text, "declare const jira: {");
}

Test(stubs, a_hostile_schema_does_not_become_code)
{
    const char *input = "{\"properties\":{\"a: any } declare const x\":{\"type\":\"string\","
                        "\"description\":\"*/ evil() /*\\n\\\"\\\"\\\" import os\"},"
                        "\"__x\":{},\"b\":{\"enum\":[\"\\\"; evil()\"]},\"b\":{\"const\":1}}}";
    rt_str ts = stub(input, "", RT_STUB_TYPESCRIPT), py = stub(input, "", RT_STUB_PYTHON);
    has(ts, "\"a: any } declare const x\"?: string;");
    lacks(ts, "*/ evil");
    lacks(py, "\"\"\" import");
    lacks(py, "__x:");
    cr_expect(rt_str_find(ts, RT_STR("b?: 1;")) >= 0, "%.*s", RT_FMT(ts));
}

Test(stubs, depth_circles_and_size_have_limits)
{
    rt_buf deep RT_CLEANUP(rt_buf_done) = { 0 }, wide RT_CLEANUP(rt_buf_done) = { 0 };
    const char *circle = "{\"properties\":{\"a\":{\"$ref\":\"#\"},\"b\":{\"$ref\":\"#/$defs/x\"}},"
                         "\"$defs\":{\"x\":{\"$ref\":\"#/$defs/x\"}}}";
    for (int i = 0; i < 200; i++)
        rt_buf_add(&deep, RT_STR("{\"type\":\"object\",\"properties\":{\"a\":"));
    rt_buf_add(&deep, RT_STR("{}"));
    for (int i = 0; i < 200; i++)
        rt_buf_add(&deep, RT_STR("}}"));
    rt_buf_add(&wide, RT_STR("{\"properties\":{\"x\":0"));
    for (int i = 0; i < 50000; i++)
        rt_buf_addf(&wide, ",\"p%d\":{\"type\":\"string\"}", i);
    rt_buf_add(&wide, RT_STR("}}"));
    rt_buf_addc(&deep, '\0');
    rt_buf_addc(&wide, '\0');
    for (int language = RT_STUB_TYPESCRIPT; language <= RT_STUB_PYTHON; language++) {
        const char *const inputs[] = { circle, deep.ptr, wide.ptr };
        for (size_t i = 0; i < RT_COUNT(inputs); i++)
            cr_expect_lt(stub(inputs[i], inputs[i], (rt_stub_language)language).len, 64 << 10);
    }
}
