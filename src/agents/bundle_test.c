/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/fixture_test.h"

static rt_str join(rt_arena *arena, const char *language, const char *code, const char *files,
                   uint64_t *shift)
{
    rt_error err = { 0 };
    rt_json doc;
    rt_str out;
    cr_assert(rt_json_parse(rt_str_of(files), arena, &doc, &err), "%s", err.text);
    cr_assert(
        agents_bundle_join(rt_str_of(language), rt_str_of(code), doc, arena, &out, shift, &err),
        "%s", err.text);
    return out;
}

Test(bundle, of_one_file_is_the_code_itself)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    uint64_t shift;
    cr_assert(rt_str_eq_c(join(&arena, "python", "return 1", "{}", &shift), "return 1"));
    cr_assert_eq(shift, 0);
}

Test(bundle, keeps_lines_where_the_language_lets_it)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    uint64_t shift;
    rt_str js = join(&arena, "javascript", "a\nb", "{\"u.js\":\"x\\ny\"}", &shift);
    cr_assert(shift == 0 && rt_str_ends(js, RT_STR("; a\nb")));
    rt_str bash = join(&arena, "bash", "a\nb", "{\"l/u.sh\":\"it's\\n\"}", &shift);
    cr_assert(shift == 0 &&
                  rt_str_starts(bash, RT_STR("mkdir -p -- 'l'; printf %s $'it\\'s\\012'")),
              "%.*s", RT_FMT(bash));
    rt_str py = join(&arena, "python", "from __future__ import annotations\nx = 1\n",
                     "{\"u.py\":\"\"}", &shift);
    cr_assert(shift == 2 && rt_str_starts(py, RT_STR("from __future__ import annotations\n(")));
    rt_str shebang = join(&arena, "bash", "#!/bin/bash\nls", "{\"a\":\"\"}", &shift);
    cr_assert(rt_str_starts(shebang, RT_STR("#!/bin/bash\nprintf")));
}

Test(bundle, tells_the_users_own_lines)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_json answer;
    cr_assert(
        rt_json_parse(RT_STR("{\"a\":1,\"error\":{\"line\":5,\"stack\":\"File \\\"main.py\\\", "
                             "line 5\\nFile \\\"u.py\\\", line 5\\nat main.py:7:3\"}}"),
                      &arena, &answer, &err));
    answer = agents_bundle_lines(answer, RT_STR("main.py"), 1, &arena);
    rt_json error = rt_json_get_c(answer, "error");
    int64_t line;
    cr_assert(rt_json_i64(rt_json_get_c(error, "line"), &line) && line == 4);
    cr_assert(rt_str_eq_c(rt_json_str(rt_json_get_c(error, "stack")),
                          "File \"main.py\", line 4\nFile \"u.py\", line 5\nat main.py:6:3"));
}

Test(bundle, refuses_paths_that_lead_elsewhere)
{
    static const char *const bad[] = { "/etc/x", "../x", "a/../b", "a//b", ".x", "a b", "", "x'" };
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    for (size_t i = 0; i < RT_COUNT(bad); i++) {
        rt_str text = rt_arena_printf(&arena, "{\"%s\":\"\"}", bad[i]);
        rt_json files;
        cr_assert(rt_json_parse(text, &arena, &files, NULL));
        cr_assert(!agents_files_check(files, (rt_str){ 0 }, RT_STR("python"), NULL), "%s", bad[i]);
    }
}

Test(versions, are_three_numbers)
{
    static const char *const good[] = { "0.0.0", "1.0.0", "12.345.6789" };
    static const char *const bad[] = { "",      "1",      "1.0",    "1.0.0.0",
                                       "1.0.x", "01.0.0", "1.0.-1", "v1.0.0" };
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    agents_semver v, w;
    for (size_t i = 0; i < RT_COUNT(good); i++)
        cr_assert(agents_semver_parse(rt_str_of(good[i]), &v), "%s", good[i]);
    for (size_t i = 0; i < RT_COUNT(bad); i++)
        cr_assert(!agents_semver_parse(rt_str_of(bad[i]), &v), "%s", bad[i]);
    agents_semver_parse(RT_STR("1.10.0"), &v);
    agents_semver_parse(RT_STR("1.9.9"), &w);
    cr_assert_gt(agents_semver_cmp(v, w), 0);
    cr_assert(rt_str_eq_c(agents_semver_next_minor(RT_STR("1.9.9"), &arena), "1.10.0"));
}

static bool fits(const char *schema, const char *value)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_schema *checker RT_CLEANUP(rt_schema_freep) = NULL;
    rt_error err = { 0 };
    rt_json doc, adopted, v;
    rt_str text;
    cr_assert(rt_json_parse(rt_str_of(schema), &arena, &doc, &err), "%s", err.text);
    cr_assert(agents_schema_adopt(doc, "inputSchema", &arena, &text, &err), "%s", err.text);
    cr_assert(rt_json_parse(text, &arena, &adopted, &err) &&
              rt_schema_new(adopted, NULL, &checker, &err));
    cr_assert(rt_json_parse(rt_str_of(value), &arena, &v, &err));
    return rt_schema_check(checker, v, NULL);
}

/* What z.toJSONSchema(), zod-to-json-schema and model_json_schema() give. */
Test(agent_schemas, are_taken_as_libraries_export_them)
{
    static const char zod4[] =
        "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\","
        "\"properties\":{\"name\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]},"
        "\"age\":{\"type\":\"integer\",\"exclusiveMinimum\":0,\"maximum\":9007199254740991}},"
        "\"required\":[\"name\"],\"additionalProperties\":false}";
    static const char zod3[] =
        "{\"$ref\":\"#/definitions/"
        "In\",\"definitions\":{\"In\":{\"type\":\"object\",\"properties\":"
        "{\"n\":{\"type\":\"number\"}},\"required\":[\"n\"],\"additionalProperties\":false}},"
        "\"$schema\":\"http://json-schema.org/draft-07/schema#\"}";
    static const char pydantic[] =
        "{\"$defs\":{\"Item\":{\"properties\":{\"sku\":{\"title\":\"Sku\",\"type\":\"string\"}},"
        "\"required\":[\"sku\"],\"title\":\"Item\",\"type\":\"object\"}},\"properties\":{\"items\":"
        "{\"items\":{\"$ref\":\"#/$defs/Item\"},\"title\":\"Items\",\"type\":\"array\"},\"note\":{"
        "\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}],\"default\":null}},\"required\":["
        "\"items\"],\"title\":\"Order\",\"type\":\"object\"}";
    static const char openapi[] =
        "{\"type\":\"object\",\"properties\":{\"nullable\":{\"type\":\"boolean\"},\"n\":{\"type\":"
        "\"number\",\"minimum\":0,\"exclusiveMinimum\":true,\"nullable\":true},\"c\":{\"enum\":"
        "[\"a\"],\"nullable\":true}}}";
    cr_assert(fits(zod4, "{\"name\":null,\"age\":1}") && !fits(zod4, "{\"name\":1}"));
    cr_assert(fits(zod3, "{\"n\":1}") && !fits(zod3, "{\"n\":\"1\"}"));
    cr_assert(fits(pydantic, "{\"items\":[{\"sku\":\"x\"}]}"));
    cr_assert(!fits(pydantic, "{\"items\":[{}]}"));
    cr_assert(fits(openapi, "{\"nullable\":true,\"n\":null,\"c\":null}"));
    cr_assert(fits(openapi, "{\"n\":0.5}") && !fits(openapi, "{\"n\":0}"));
    cr_assert(!fits(openapi, "{\"c\":\"b\"}") && !fits(openapi, "{\"nullable\":1}"));
}

Test(manifests, are_in_the_words_of_who_calls)
{
    rt_agent agent = { .row = { .id = RT_STR("agent_1"),
                                .name = RT_STR("Adder"),
                                .tool_name = RT_STR("adder"),
                                .content = { .input_schema = RT_STR("{\"type\":\"object\"}") } },
                       .version = RT_STR("1.0.0") };
    static const struct {
        rt_manifest form;
        const char *text;
    } cases[] = {
        { RT_MANIFEST_RETORT,
          "{\"name\":\"Adder\",\"description\":\"Adder code agent\",\"inputSchema\":{\"type\":"
          "\"object\"},\"outputSchema\":null,\"handler\":{\"type\":\"code_agent\",\"agentId\":"
          "\"agent_1\",\"version\":\"1.0.0\"}}" },
        { RT_MANIFEST_OPENAI,
          "{\"type\":\"function\",\"function\":{\"name\":\"adder\",\"description\":\"Adder code "
          "agent\",\"parameters\":{\"type\":\"object\"}}}" },
        { RT_MANIFEST_ANTHROPIC, "{\"name\":\"adder\",\"description\":\"Adder code agent\","
                                 "\"input_schema\":{\"type\":\"object\"}}" },
        { RT_MANIFEST_MCP, "{\"name\":\"adder\",\"title\":\"Adder\",\"description\":\"Adder code "
                           "agent\",\"inputSchema\":{\"type\":\"object\"}}" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
        rt_json_writer w;
        rt_json_begin(&w, &text);
        rt_agent_write_manifest(&agent, cases[i].form, &w);
        cr_assert(rt_str_eq_c(rt_buf_str(&text), cases[i].text), "%.*s", RT_FMT(rt_buf_str(&text)));
    }
}

AGENTS_TEST(escapes, are_graded)
{
    static const struct {
        const char *code, *severity;
        bool is_blocked;
    } cases[] = {
        { "return 1", "low", false },
        { "import os\nos.system('x')", "high", true },
        { "open('/proc/self/mem')", "high", true },
        { "ptrace", "critical", true },
        { "s = socket.socket()", "medium", false },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        rt_error err = { 0 };
        rt_escape_report report;
        cr_assert(rt_agents_check_escape(f->agents, &f->ann, RT_STR("python"),
                                         rt_str_of(cases[i].code), (rt_str){ 0 }, &f->arena,
                                         &report, &err),
                  "%s", err.text);
        cr_assert(rt_str_eq_c(report.severity, cases[i].severity), "%s: %.*s", cases[i].code,
                  RT_FMT(report.severity));
        cr_assert_eq(report.should_block, cases[i].is_blocked);
    }
}
