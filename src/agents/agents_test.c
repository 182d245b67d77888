/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/fixture_test.h"

#define ADDER                                                                                      \
    "{\"name\":\"CSV Adder\",\"language\":\"py\",\"code\":\"return 1\",\"environment\":{"          \
    "\"API_KEY\":\"sk-123456\",\"REGION\":{\"value\":\"eu\",\"secret\":false}}}"

static rt_str none;

static bool update(agents_fixture *f, const rt_caller *who, rt_str id, const char *body,
                   rt_agent *out, rt_error *err)
{
    return rt_agents_update(f->agents, who, id, agents_fixture_json(f, body), &f->arena, out, err);
}

AGENTS_TEST(agents, begin_at_1_0_0_with_a_tools_name)
{
    rt_agent a = agents_fixture_make(f, ADDER);
    rt_agent_version *versions;
    size_t count;
    cr_assert(rt_str_eq_c(a.version, "1.0.0") && rt_str_eq_c(a.row.tool_name, "csv-adder"));
    cr_assert(rt_str_eq_c(a.row.content.language, "python") && !a.row.is_public);
    cr_assert(rt_agents_versions(f->agents, &f->ann, a.row.id, &f->arena, &versions, &count, NULL));
    cr_assert(count == 1 && rt_str_eq_c(versions[0].version, "1.0.0"));
}

AGENTS_TEST(agents, change_by_minor_versions_and_keep_the_old_ones)
{
    rt_agent a = agents_fixture_make(f, ADDER), b;
    rt_error err = { 0 };
    cr_assert(
        update(f, &f->ann, a.row.id, "{\"code\":\"return 2\",\"changelog\":\"two\"}", &b, &err),
        "%s", err.text);
    cr_assert(rt_str_eq_c(b.version, "1.1.0") && rt_str_eq_c(b.row.content.code, "return 2"));
    cr_assert(rt_str_find(b.row.changelog, RT_STR("\"changes\":\"two\"")) > 0);
    cr_assert(rt_agents_find(f->agents, &f->ann, a.row.id, RT_STR("1.0.0"), &f->arena, &b, &err));
    cr_assert(rt_str_eq_c(b.row.content.code, "return 1") && rt_str_eq_c(b.row.version, "1.1.0"));
    cr_assert(
        rt_agents_find(f->agents, &f->ann, RT_STR("csv-adder@1.0.0"), none, &f->arena, &b, &err));
    cr_assert(rt_str_eq_c(b.version, "1.0.0"));
    cr_assert(!rt_agents_find(f->agents, &f->ann, a.row.id, RT_STR("9.9.9"), &f->arena, &b, &err));
    cr_assert_eq(err.code, RT_NOT_FOUND);
}

AGENTS_TEST(agents, take_a_version_of_ones_own_once)
{
    rt_agent a = agents_fixture_make(f, ADDER), b;
    rt_error err = { 0 };
    rt_json high = agents_fixture_json(f, "{\"version\":\"2.0.0\",\"code\":\"return 3\"}");
    rt_json low = agents_fixture_json(f, "{\"version\":\"1.0.1\",\"code\":\"return 4\"}");
    cr_assert(rt_agents_add_version(f->agents, &f->ann, a.row.id, high, &f->arena, &b, &err), "%s",
              err.text);
    cr_assert(rt_str_eq_c(b.row.version, "2.0.0"));
    cr_assert(!rt_agents_add_version(f->agents, &f->ann, a.row.id, high, &f->arena, &b, &err));
    cr_assert_eq(err.code, RT_CONFLICT);
    cr_assert(rt_agents_add_version(f->agents, &f->ann, a.row.id, low, &f->arena, &b, &err), "%s",
              err.text);
    cr_assert(rt_str_eq_c(b.row.version, "2.0.0") && rt_str_eq_c(b.row.content.code, "return 4"));
    cr_assert(rt_agents_find(f->agents, &f->ann, a.row.id, RT_STR("latest"), &f->arena, &b, &err));
    cr_assert(rt_str_eq_c(b.row.content.code, "return 3"));
}

AGENTS_TEST(agents, say_what_is_wrong_with_a_body)
{
    static const struct {
        const char *body, *text;
    } cases[] = {
        { "{}", "'name' is missing" },
        { "{\"name\":\"x\"}", "'language' is missing" },
        { "{\"name\":\"x\",\"language\":\"cobol\",\"code\":\"x\"}", "UNSUPPORTED_LANGUAGE" },
        { "{\"name\":\"x\",\"language\":\"bash\"}", "MISSING_CODE" },
        { "{\"name\":\"日本\",\"language\":\"bash\",\"code\":\"x\"}", "letter" },
        { "{\"nme\":\"x\"}", "did you mean name" },
        { "{\"name\":\"x\",\"language\":\"bash\",\"code\":\"x\",\"runtime\":\"vm3\"}", "vm2" },
        { "{\"name\":\"x\",\"language\":\"bash\",\"code\":\"x\",\"inputSchema\":{\"type\":5}}",
          "inputSchema" },
        { "{\"name\":\"x\",\"language\":\"bash\",\"code\":\"x\",\"policy\":\"lax\"}", "policy" },
        { "{\"name\":\"x\",\"language\":\"bash\",\"code\":\"x\",\"environment\":{\"A B\":\"\"}}",
          "no name" },
        { "{\"name\":\"x\",\"language\":\"bash\",\"code\":\"x\",\"environment\":{\"A\":"
          "\"********\"}}",
          "masked" },
        { "{\"name\":\"x\",\"language\":\"bash\",\"files\":{\"../x\":\"\"}}", "no path" },
        { "{\"name\":\"x\",\"language\":\"bash\",\"code\":\"x\",\"version\":\"1.0\"}", "version" },
        { "{\"name\":\"x\",\"language\":\"bash\",\"code\":\"x\",\"metadata\":{\"scope\":\"moon\"}}",
          "scope" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        rt_error err = { 0 };
        rt_agent a;
        cr_assert(!rt_agents_create(f->agents, &f->ann, agents_fixture_json(f, cases[i].body),
                                    &f->arena, &a, &err));
        cr_assert(strstr(err.text, cases[i].text), "%s: %s", cases[i].body, err.text);
    }
}

AGENTS_TEST(agents, keep_secrets_to_themselves)
{
    rt_agent a = agents_fixture_make(f, ADDER), b;
    rt_error err = { 0 };
    rt_str shown = agents_json_text(a.environment, &f->arena);
    rt_agent_result result;
    cr_assert(rt_str_find(shown, RT_STR("sk-123456")) < 0 && rt_str_find(shown, RT_STR("eu")) > 0);
    cr_assert(rt_str_find(a.row.content.environment, RT_STR("sk-123456")) < 0);
    cr_assert(update(f, &f->ann, a.row.id,
                     "{\"environment\":{\"API_KEY\":\"********\",\"MODE\":\"fast-mode\"}}", &b,
                     &err),
              "%s", err.text);
    rt_agent_run run = { .id = a.row.id, .input = RT_STR("{}"), .has_input = true };
    f->answer = RT_STR("{\"said\":\"the key is sk-123456!\",\"n\":[\"sk-123456\"]}");
    cr_assert(rt_agents_execute(f->agents, &f->ann, &run, &f->arena, &result, &err), "%s",
              err.text);
    cr_assert(rt_str_eq_c(f->env, "API_KEY=sk-123456 MODE=fast-mode "), "%.*s", RT_FMT(f->env));
    shown = agents_json_text(result.answer, &f->arena);
    cr_assert(rt_str_find(shown, RT_STR("sk-123456")) < 0, "%.*s", RT_FMT(shown));
    cr_assert(rt_str_find(shown, RT_STR("the key is ********!")) > 0);
    cr_assert(
        rt_agents_mark(f->agents, &f->ann, a.row.id, RT_AGENT_PUBLISH, none, &f->arena, &b, &err));
    cr_assert(rt_agents_find(f->agents, &f->eve, a.row.id, none, &f->arena, &b, &err));
    cr_assert_eq(rt_json_count(b.environment), 0);
}

AGENTS_TEST(agents, of_others_are_neither_there_nor_theirs_to_change)
{
    rt_agent a = agents_fixture_make(f, ADDER), b;
    rt_error err = { 0 };
    rt_agent_run run = { .id = a.row.id };
    rt_agent_result result;
    rt_agent_version *versions;
    rt_agent_row *rows;
    rt_agent *served;
    size_t count;
    struct {
        const char *what;
        bool is_refused;
    } const tries[] = {
        { "find", !rt_agents_find(f->agents, &f->eve, a.row.id, none, &f->arena, &b, &err) },
        { "find by name",
          !rt_agents_find(f->agents, &f->eve, RT_STR("csv-adder"), none, &f->arena, &b, &err) },
        { "update", !update(f, &f->eve, a.row.id, "{\"code\":\"x\"}", &b, &err) },
        { "remove", !rt_agents_remove(f->agents, &f->eve, a.row.id, &err) },
        { "publish", !rt_agents_mark(f->agents, &f->eve, a.row.id, RT_AGENT_PUBLISH, none,
                                     &f->arena, &b, &err) },
        { "versions",
          !rt_agents_versions(f->agents, &f->eve, a.row.id, &f->arena, &versions, &count, &err) },
        { "run", !rt_agents_execute(f->agents, &f->eve, &run, &f->arena, &result, &err) },
        { "serve",
          !rt_agents_served(f->agents, &f->eve, a.row.id, &f->arena, &served, &count, &err) },
    };
    for (size_t i = 0; i < RT_COUNT(tries); i++)
        cr_assert(tries[i].is_refused, "%s", tries[i].what);
    cr_assert_eq(err.code, RT_NOT_FOUND);
    rt_agent_filter all = { 0 };
    cr_assert(rt_agents_list(f->agents, &f->eve, &all, &f->arena, &rows, &count, &err) &&
              count == 0);
    cr_assert(
        rt_agents_mark(f->agents, &f->ann, a.row.id, RT_AGENT_PUBLISH, none, &f->arena, &b, &err));
    cr_assert(rt_agents_find(f->agents, &f->eve, a.row.id, none, &f->arena, &b, &err), "%s",
              err.text);
    cr_assert(!update(f, &f->eve, a.row.id, "{\"code\":\"x\"}", &b, &err));
    cr_assert(err.code == RT_DENIED && strcmp(err.text, "You do not have permission to update "
                                                        "code_agent") == 0);
    cr_assert(update(f, &f->bob, a.row.id, "{\"code\":\"return 5\"}", &b, &err), "%s", err.text);
}

AGENTS_TEST(agents, hold_what_goes_in_and_out_to_their_schemas)
{
    rt_agent a = agents_fixture_make(
        f, "{\"name\":\"half\",\"language\":\"javascript\",\"code\":\"return input.n / 2\","
           "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"number\"}},"
           "\"required\":[\"n\"]},\"outputSchema\":{\"type\":\"number\"}}");
    rt_error err = { 0 };
    rt_agent_result result;
    rt_agent_run run = { .id = a.row.id, .input = RT_STR("{\"n\":\"x\"}"), .has_input = true };
    cr_assert(rt_agents_execute(f->agents, &f->ann, &run, &f->arena, &result, &err), "%s",
              err.text);
    cr_assert(!result.is_success && rt_str_eq_c(result.code, "INPUT_VALIDATION_ERROR"));
    run.input = RT_STR("{\"n\":4}");
    f->answer = RT_STR("\"two\"");
    cr_assert(rt_agents_execute(f->agents, &f->ann, &run, &f->arena, &result, &err), "%s",
              err.text);
    cr_assert(rt_str_eq_c(result.code, "OUTPUT_VALIDATION_ERROR"));
    f->answer = RT_STR("2");
    cr_assert(rt_agents_execute(f->agents, &f->ann, &run, &f->arena, &result, &err), "%s",
              err.text);
    cr_assert(result.is_success && rt_str_eq_c(result.version, "1.0.0"));
    cr_assert(rt_agents_find(f->agents, &f->ann, a.row.id, none, &f->arena, &a, &err));
    cr_assert_eq(a.row.usage_count, 3);
}

AGENTS_TEST(agents, that_are_large_lie_in_the_object_directory)
{
    rt_buf body RT_CLEANUP(rt_buf_done) = { 0 };
    rt_error err = { 0 };
    rt_agent a, b;
    rt_str text;
    rt_buf_add(&body, RT_STR("{\"name\":\"large\",\"language\":\"python\",\"code\":\"x = '"));
    for (size_t i = 0; i < 101 * 1024; i++)
        rt_buf_addc(&body, 'a');
    rt_buf_add(&body, RT_STR("'\"}"));
    rt_json doc;
    cr_assert(rt_json_parse(rt_buf_str(&body), &f->arena, &doc, &err), "%s", err.text);
    cr_assert(rt_agents_create(f->agents, &f->ann, doc, &f->arena, &a, &err), "%s", err.text);
    cr_assert_gt(a.row.content.code.len, 101 * 1024);
    rt_str path = a.row.content.code_storage_path;
    cr_assert(rt_str_starts(path, RT_STR("code-agents/code-blobs/agent_")));
    cr_assert(rt_str_ends(path, RT_STR("/1.0.0.txt")));
    cr_assert(update(f, &f->ann, a.row.id, "{\"description\":\"still\"}", &b, &err), "%s",
              err.text);
    cr_assert(rt_str_ends(b.row.content.code_storage_path, RT_STR("/1.1.0.txt")));
    cr_assert(
        rt_agents_mark(f->agents, &f->ann, a.row.id, RT_AGENT_PUBLISH, none, &f->arena, &b, &err));
    cr_assert(rt_str_eq(b.row.content.code, a.row.content.code));
    cr_assert(rt_agents_remove(f->agents, &f->ann, a.row.id, &err), "%s", err.text);
    cr_assert(!rt_objects_get(&f->objects, path, RT_AGENT_CODE_MAX, &f->arena, &text, &err));
}

AGENTS_TEST(agents, that_are_deprecated_warn_and_leave_the_registry)
{
    rt_agent a = agents_fixture_make(f, "{\"name\":\"old sums\",\"language\":\"bash\",\"code\":"
                                        "\"echo\",\"isPublic\":true,\"description\":\"adds up "
                                        "invoices\"}");
    rt_error err = { 0 };
    rt_agent_result result;
    rt_agent_row *rows;
    size_t count;
    rt_agent_run run = { .id = a.row.id, .input = RT_STR("1"), .has_input = true };
    cr_assert(rt_agents_search(f->agents, &f->eve, RT_STR("sum the invoices"), true, 5, &f->arena,
                               &rows, &count, &err) &&
              count == 1);
    cr_assert(rt_agents_mark(f->agents, &f->ann, a.row.id, RT_AGENT_DEPRECATE,
                             RT_STR("use new-sums"), &f->arena, &a, &err));
    cr_assert(rt_agents_execute(f->agents, &f->eve, &run, &f->arena, &result, &err), "%s",
              err.text);
    cr_assert(rt_str_eq_c(result.warning, "old sums is deprecated: use new-sums"));
    cr_assert(rt_agents_search(f->agents, &f->eve, RT_STR("sum the invoices"), true, 5, &f->arena,
                               &rows, &count, &err) &&
              count == 0);
}

AGENTS_TEST(agents, are_tools_pinned_to_the_version_they_were_registered_with)
{
    rt_agent a = agents_fixture_make(f, "{\"name\":\"sum\",\"language\":\"python\",\"code\":"
                                        "\"return 1\",\"description\":\"adds numbers up\"}");
    rt_tools *tools RT_CLEANUP(rt_tools_closep) = NULL;
    rt_error err = { 0 };
    rt_tool tool;
    rt_tool_hit hits[3];
    rt_tool_result result;
    cr_assert(rt_tools_open(&(rt_tools_config){ 0 }, &tools, &err), "%s", err.text);
    cr_assert(rt_tools_add(tools, rt_agents_provider(f->agents), &err), "%s", err.text);
    cr_assert(
        rt_agents_mark(f->agents, &f->ann, a.row.id, RT_AGENT_REGISTER, none, &f->arena, &a, &err),
        "%s", err.text);
    rt_tools_settle(tools);
    cr_assert(rt_tools_find_for(tools, f->ann.organisation_id, RT_STR("agents:sum"), &f->arena,
                                &tool, &err),
              "%s", err.text);
    cr_assert_eq(rt_tools_search_for(tools, f->ann.organisation_id, RT_STR("add numbers"),
                                     &f->arena, hits, 3),
                 1);
    cr_assert_eq(rt_tools_search_for(tools, f->eve.organisation_id, RT_STR("add numbers"),
                                     &f->arena, hits, 3),
                 0);
    cr_assert(update(f, &f->ann, a.row.id, "{\"code\":\"return 2\"}", &a, &err));
    rt_tool_call call = { .tool = tool.name,
                          .arguments = RT_STR("{\"n\":1}"),
                          .cancel_fd = -1,
                          .organisation_id = f->ann.organisation_id,
                          .caller = &f->ann };
    cr_assert(rt_tools_call(tools, &call, &f->arena, &result, &err), "%s", err.text);
    cr_assert(rt_str_eq_c(f->code, "return 1") && rt_str_eq_c(result.value, "{\"n\":1}"));
    cr_assert(rt_agents_mark(f->agents, &f->ann, a.row.id, RT_AGENT_REGISTER, RT_STR("latest"),
                             &f->arena, &a, &err));
    cr_assert(rt_tools_call(tools, &call, &f->arena, &result, &err), "%s", err.text);
    cr_assert(rt_str_eq_c(f->code, "return 2"));
    call.caller = &f->eve;
    cr_assert(!rt_tools_call(tools, &call, &f->arena, &result, &err));
    cr_assert_eq(err.code, RT_NOT_FOUND);
    cr_assert(rt_agents_mark(f->agents, &f->ann, a.row.id, RT_AGENT_UNREGISTER, none, &f->arena, &a,
                             &err));
    rt_tools_settle(tools);
    cr_assert(!rt_tools_find_for(tools, f->ann.organisation_id, tool.name, &f->arena, &tool, &err));
}

AGENTS_TEST(agents, are_served_together_as_they_were_deployed)
{
    rt_agent a = agents_fixture_make(f, ADDER), *served;
    rt_error err = { 0 };
    rt_agent b = agents_fixture_make(f, "{\"name\":\"b\",\"language\":\"bash\",\"code\":\"echo\"}");
    rt_str both[] = { a.row.id, RT_STR("b@latest") };
    size_t count;
    cr_assert(rt_agents_deploy(f->agents, &f->ann, RT_STR("Figures"), RT_STR("http"), both, 2,
                               &f->arena, &err),
              "%s", err.text);
    cr_assert(update(f, &f->ann, a.row.id, "{\"code\":\"return 9\"}", &a, &err));
    cr_assert(update(f, &f->ann, b.row.id, "{\"code\":\"echo 9\"}", &b, &err));
    cr_assert(
        rt_agents_served(f->agents, &f->ann, RT_STR("figures"), &f->arena, &served, &count, &err));
    cr_assert(count == 2 && rt_str_eq_c(served[0].version, "1.0.0"));
    cr_assert(rt_str_eq_c(served[1].version, "1.1.0"));
    cr_assert(
        !rt_agents_served(f->agents, &f->eve, RT_STR("figures"), &f->arena, &served, &count, &err));
    cr_assert(rt_agents_served(f->agents, &f->ann, RT_STR("csv-adder, b@1.0.0"), &f->arena, &served,
                               &count, &err) &&
              count == 2);
    cr_assert(!rt_agents_deploy(f->agents, &f->ann, RT_STR("x"), RT_STR("udp"), both, 2, &f->arena,
                                &err));
}

AGENTS_TEST(agents, with_a_list_of_imports_may_import_their_own_files)
{
    rt_agent a = agents_fixture_make(f, "{\"name\":\"listed\",\"language\":\"python\",\"policy\":"
                                        "\"voice\",\"files\":{\"main.py\":\"import lib.x, util\","
                                        "\"lib/x.py\":\"\",\"util.py\":\"\"}}");
    rt_error err = { 0 };
    rt_agent_result result;
    rt_agent_run run = { .id = a.row.id };
    cr_assert(rt_agents_execute(f->agents, &f->ann, &run, &f->arena, &result, &err), "%s",
              err.text);
    cr_assert(rt_str_eq_c(f->imports, "math json datetime lib util "), "%.*s", RT_FMT(f->imports));
}
