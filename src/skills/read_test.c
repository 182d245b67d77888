/* SPDX-License-Identifier: Apache-2.0 */
#include "skills/skills_internal.h"

#include <criterion/criterion.h>

#define GOOD "name: words\nversion: 1.2.3\ndescription: Counts words.\nhandler: handler.run\n"

/* The error of a skill.yaml, or "" when it is one. */
static rt_str read_yaml(const char *text, rt_arena *arena, skill *s)
{
    rt_error err = { 0 };
    rt_json doc;
    if (!rt_yaml_parse(rt_str_of(text), arena, &doc, &err) ||
        !skills_read_metadata(doc, arena, s, &err))
        return rt_arena_str(arena, rt_str_of(err.text));
    return RT_STR("");
}

Test(skill_read, metadata_is_read_whole)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    skill s = { 0 };
    rt_str why = read_yaml("# a comment\n"
                           "name: \"words\"\n"
                           "version: 10.0.2\n"
                           "description: |\n  Counts\n  words.\n"
                           "safety_flags:\n  - pii_risk\n  - file_system\n"
                           "requires_approval: true\n"
                           "handler: handler.count_words\n"
                           "tags: [text, 'counting']\n"
                           "read_paths: [/srv/words]\n"
                           "limits: {timeout_seconds: 2.5, max_memory_mb: 64}\n"
                           "somebody_elses: {a: 1}\n",
                           &arena, &s);
    cr_assert(why.len == 0, "%.*s", RT_FMT(why));
    cr_expect(rt_str_eq_c(s.shown.name, "words"));
    cr_expect(rt_str_eq_c(s.shown.description, "Counts\nwords.\n"));
    cr_expect_eq(s.shown.flags, (unsigned)(RT_SKILL_PII_RISK | RT_SKILL_FILE_SYSTEM));
    cr_expect(s.shown.requires_approval);
    cr_expect(rt_str_eq_c(s.function, "count_words"));
    cr_expect(rt_str_eq_c(s.file, "handler"));
    cr_expect_eq(s.numbers[0], 10u);
    cr_expect_eq(s.timeout_ms, 2500u);
    cr_expect_eq(s.memory_bytes, 64u << 20);
    cr_expect_eq(s.shown.tag_count, 2u);
    cr_expect(rt_str_eq_c(s.shown.tags[1], "counting"));
}

Test(skill_read, what_is_wrong_is_told)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    static const char *const cases[][2] = {
        { "- a\n", "lines of 'key: value' are expected" },
        { "version: 1.0.0\n", "'name' is missing" },
        { "name: a b\n", "'name' must be 1 to 64 letters, digits, '_' and '-', not 'a b'" },
        { "name: ../x\n", "'name' must be 1 to 64 letters, digits, '_' and '-', not '../x'" },
        { "name: list\n", "'list' is a word of the API's own; choose another name" },
        { "name: x\nversion: 1.0\n", "'version' must be a text, not number" },
        { "name: x\nversion: v1.0.0\n",
          "'version' must be three numbers such as 1.0.0, in quotes if need be" },
        { "name: x\nversion: 1.0.0.0\n",
          "'version' must be three numbers such as 1.0.0, in quotes if need be" },
        { "name: x\nversion: 1.0.0\n", "'description' is missing" },
        { GOOD "safety_flags: [dangerous]\n",
          "unknown safety flag 'dangerous'; there are none, pii_risk, external_call, side_effect, "
          "file_system and network_access" },
        { GOOD "saftey_flags: [none]\n", "unknown key 'saftey_flags'; did you mean safety_flags?" },
        { GOOD "requires_approval: yes\n", "'requires_approval' must be true or false" },
        { GOOD "tags: {a: b}\n", "'tags' must be a list of texts" },
        { GOOD "tags: [1]\n", "'tags' must be a list of texts" },
        { GOOD "read_paths: [/etc]\n", "'read_paths' needs the safety flag file_system" },
        { GOOD "safety_flags: [file_system]\nread_paths: [etc]\n",
          "'read_paths' must be absolute" },
        { GOOD "tools: ['github:*']\n", "'tools' needs the safety flag external_call" },
        { GOOD "limits: {timeout_seconds: 0}\n",
          "'limits.timeout_seconds' must be a number from 0.1 to 300" },
        { GOOD "handler_path: ../x.py\n", "'handler' must be such as handler.function_name" },
        { GOOD "handler_path: handler.a b\n", "'handler' must be such as handler.function_name" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        skill s = { 0 };
        rt_str why = read_yaml(cases[i][0], &arena, &s);
        cr_expect(rt_str_eq_c(why, cases[i][1]), "%s: %.*s", cases[i][0], RT_FMT(why));
    }
}

Test(skill_read, a_handler_is_a_file_and_a_function)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    static const struct {
        const char *path, *file, *function;
    } cases[] = {
        { "handler.run", "handler", "run" },
        { "handler.py:run", "handler.py", "run" },
        { "handler.py.run", "handler.py", "run" },
        { "main.sh", "main.sh", "" },
        { "handler", "handler", "" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        skill s = { 0 };
        rt_str yaml = rt_arena_printf(
            &arena, "name: x\nversion: 1.0.0\ndescription: d\nhandler: '%s'\n", cases[i].path);
        rt_str why = read_yaml(yaml.ptr, &arena, &s);
        cr_assert(why.len == 0, "%.*s", RT_FMT(why));
        cr_expect(rt_str_eq_c(s.file, cases[i].file), "%s: %.*s", cases[i].path, RT_FMT(s.file));
        cr_expect(rt_str_eq_c(s.function, cases[i].function), "%s", cases[i].path);
    }
}

Test(skill_read, a_handler_must_have_its_function)
{
    static const struct {
        const char *file, *function, *code, *error;
    } cases[] = {
        { "handler.py", "run", "def run(): pass", "" },
        { "handler.py", "run", "def run_all(): pass", "handler.py has no function 'run'" },
        { "handler.py", "", "1", "'handler' must name a function: handler.function_name" },
        { "handler.sh", "", "echo {}", "" },
        { "handler.rb", "run", "def run", "handler.rb: a handler ends in .py, .js, .ts or .sh" },
        { "handler.py", "run", "  \n", "handler.py is empty" },
        { "handler.py", "run", "def run(): '\xff'", "handler.py is not UTF-8 text" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        skill s = { .file = rt_str_of(cases[i].file),
                    .function = rt_str_of(cases[i].function),
                    .code = rt_str_of(cases[i].code) };
        rt_error err = { 0 };
        skills_check_handler(&s, &err);
        cr_expect_str_eq(err.text, cases[i].error);
    }
}

static rt_str read_schemas(const char *yaml, const char *json, rt_arena *arena, skill *s)
{
    rt_error err = { 0 };
    rt_json doc;
    read_yaml(yaml, arena, s);
    if (!rt_json_parse(rt_str_of(json), arena, &doc, &err) ||
        !skills_read_schemas(doc, arena, s, &err))
        return rt_arena_str(arena, rt_str_of(err.text));
    return RT_STR("");
}

Test(skill_read, schemas_stand_side_by_side_or_among_definitions)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    skill s RT_CLEANUP(skills_skill_done) = { 0 };
    rt_json good, bad;
    rt_str why = read_schemas(
        GOOD "inputs_schema: 'schema.json#/definitions/in'\noutputs_schema: '#/definitions/out'\n",
        "{\"definitions\":{\"in\":{\"type\":\"object\",\"required\":[\"text\"]},"
        "\"out\":{\"type\":\"object\"}}}",
        &arena, &s);
    cr_assert(why.len == 0, "%.*s", RT_FMT(why));
    rt_json_parse(RT_STR("{\"text\":1}"), &arena, &good, NULL);
    rt_json_parse(RT_STR("{}"), &arena, &bad, NULL);
    cr_expect(rt_schema_check(s.input, good, NULL));
    cr_expect(!rt_schema_check(s.input, bad, NULL));
}

Test(skill_read, a_schema_that_is_none_is_told)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    static const char *const cases[][2] = {
        { "[]", "an object with \"input\" and \"output\" is expected" },
        { "{\"input\":{}}", "the output schema is missing" },
        { "{\"input\":[],\"output\":{}}", "the input schema must be an object" },
        { "{\"definitions\":{}}", "the input schema is missing" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        skill s RT_CLEANUP(skills_skill_done) = { 0 };
        rt_str why = read_schemas(GOOD, cases[i][0], &arena, &s);
        cr_expect(rt_str_eq_c(why, cases[i][1]), "%s: %.*s", cases[i][0], RT_FMT(why));
    }
    skill s RT_CLEANUP(skills_skill_done) = { 0 };
    rt_str why = read_schemas(GOOD, "{\"input\":{\"type\":\"thing\"},\"output\":{}}", &arena, &s);
    cr_expect(rt_str_starts(why, RT_STR("the input schema: #/type")), "%.*s", RT_FMT(why));
}

Test(skill_read, versions_are_ordered_by_their_numbers)
{
    skill a = { .shown.name = RT_STR("x"), .numbers = { 1, 10, 0 } };
    skill b = { .shown.name = RT_STR("x"), .numbers = { 1, 9, 9 } };
    skill c = { .shown.name = RT_STR("y"), .numbers = { 0, 0, 0 } };
    cr_expect(skills_compare(&a, &b) < 0, "the newest comes first");
    cr_expect(skills_compare(&b, &a) > 0);
    cr_expect(skills_compare(&a, &c) < 0);
    cr_expect_eq(skills_compare(&a, &a), 0);
}

Test(skill_read, a_guide_has_a_name_a_description_and_a_body)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    guide g = { 0 };
    rt_str text = RT_STR("---\r\nname: pdf-forms\ndescription: Fills in forms.\n---\n# Body\n");
    cr_assert(skills_read_guide(text, &arena, &g, &err), "%s", err.text);
    cr_expect(rt_str_eq_c(g.name, "pdf-forms"));
    cr_expect(rt_str_eq_c(rt_str_slice(text, g.body_at, text.len), "# Body\n"));
    static const char *const bad[] = { "",
                                       "# Only text",
                                       "---\nname: x\n",
                                       "---\nname: X y\n---\n",
                                       "---\nname: x\n---\nno description",
                                       "---\n- a\n---\n" };
    for (size_t i = 0; i < RT_COUNT(bad); i++)
        cr_expect(!skills_read_guide(rt_str_of(bad[i]), &arena, &g, NULL), "%s", bad[i]);
}
