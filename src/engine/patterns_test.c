/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns, with runs that are played: what is checked is what would be run, and what is counted.
 */
#include "store/fixture_test.h"

#include "engine/engine_internal.h"
#include "engine/patterns.h"

static const rt_caller ann = { .organisation_id = { "local", 5 },
                               .user_id = { "ann", 3 },
                               .role = RT_ROLE_MEMBER };

typedef struct stage {
    rt_engine engine;
    rt_arena arena;
    const char *answers[4]; /* JSON of runs, in their order */
    rt_status statuses[4];
    rt_str inputs[4], codes[4];
    size_t runs;
} stage;

static void clear(stage *s)
{
    rt_arena_done(&s->arena);
}

static bool play(void *ctx, rt_request *request, rt_answer *out, rt_error *err)
{
    stage *s = ctx;
    (void)err;
    s->inputs[s->runs] = request->input;
    s->codes[s->runs] = request->code;
    *out = (rt_answer){ .id = rt_arena_printf(&s->arena, "exec_%zu", s->runs),
                        .status = s->statuses[s->runs],
                        .json = rt_str_of(s->answers[s->runs]) };
    s->runs++;
    return true;
}

static rt_json parse(stage *s, const char *text)
{
    rt_json doc;
    rt_error err = { 0 };
    cr_assert(rt_json_parse(rt_str_of(text), &s->arena, &doc, &err), "%s", err.text);
    return doc;
}

static rt_error save(stage *s, const char *text, bool is_replacing)
{
    rt_snippet out;
    rt_error err = { 0 };
    rt_pattern_save(&s->engine, &ann, parse(s, text), is_replacing, &s->arena, &out, &err);
    return err;
}

static rt_error run(stage *s, const char *name, const char *inputs, rt_pattern_answer *out)
{
    rt_error err = { 0 };
    rt_request request = { .caller = ann };
    rt_pattern_run what = {
        .name = rt_str_of(name), .inputs = parse(s, inputs), .execute = play, .ctx = s
    };
    rt_pattern_execute(&s->engine, &request, &what, &s->arena, out, &err);
    return err;
}

static rt_snippet find(stage *s, const char *name)
{
    rt_snippet out;
    rt_error err = { 0 };
    cr_assert(rt_snippet_find(s->engine.config.store, ann.organisation_id, rt_str_of(name),
                              &s->arena, &out, &err),
              "%s", err.text);
    return out;
}

#define STAGE(name) stage name RT_CLEANUP(clear) = { .engine = { .config = { .store = store } } }

#define GOOD(result)                                                                               \
    "{\"result\":" result ",\"metrics\":{\"executionTimeMs\":4},\"cost\":{\"usd\":0.5}}"

STORE_TEST(patterns, the_samples_are_there_and_stay_away_once_deleted)
{
    STAGE(s);
    rt_error err = { 0 };
    rt_snippet *list, one;
    size_t count;
    cr_assert(
        rt_pattern_list(&s.engine, &ann, RT_STR(""), RT_STR(""), 50, &s.arena, &list, &count, &err),
        "%s", err.text);
    cr_assert_eq(count, 2);
    cr_expect(rt_str_eq_c(list[0].name, "csv-analyzer") &&
              rt_str_eq_c(list[1].name, "payroll-duplicate-detector"));
    cr_assert(rt_pattern_get(&s.engine, &ann, list[0].name, &s.arena, &one, &err), "%s", err.text);
    cr_expect(one.code.len > 100 && one.usage_count == 1 && one.success_rate == 100);
    cr_assert(rt_pattern_remove(&s.engine, &ann, RT_STR("csv-analyzer"), &err), "%s", err.text);
    cr_assert(!rt_pattern_get(&s.engine, &ann, RT_STR("csv-analyzer"), &s.arena, &one, &err));
    cr_expect_eq(err.code, RT_NOT_FOUND);
}

STORE_TEST(patterns, what_makes_no_sense_is_not_saved)
{
    STAGE(s);
    static const struct {
        const char *body, *why;
    } cases[] = {
        { "[]", "an object" },
        { "{\"name\":\"x\"}", "'code' must be a text" },
        { "{\"name\":\"x\",\"code\":\"  \\n\"}", "'code' must be a text" },
        { "{\"name\":\" \",\"code\":\"1\"}", "'name' must have 1 to 100" },
        { "{\"name\":\"a\\u0000b\",\"code\":\"1\"}", "control character" },
        { "{\"name\":\"x\",\"code\":\"a\\u0000b\"}", "without NUL" },
        { "{\"name\":1,\"code\":\"1\"}", "'name' must be a string, not number" },
        { "{\"name\":\"x\",\"code\":\"1\",\"language\":\"cobol\"}", "ruby" },
        { "{\"name\":\"x\",\"code\":\"1\",\"tags\":[1]}", "'tags'" },
        { "{\"name\":\"x\",\"code\":\"1\",\"parameters\":{\"type\":\"strin\"}}", "parameters" },
        { "{\"name\":\"x\",\"code\":\"1\",\"steps\":[{\"pattern\":\"y\"}]}", "not both" },
        { "{\"name\":\"x\",\"steps\":[{\"inputs\":{}}]}", "steps[0]" },
        { "{\"name\":\"x\",\"code\":\"1\",\"learned_from\":\"exec_0\"}", "learned_from" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        rt_error err = save(&s, cases[i].body, false);
        cr_expect(err.code && strstr(err.text, cases[i].why), "%s: %s", cases[i].body, err.text);
    }
}

STORE_TEST(patterns, a_name_is_taken_unless_it_is_replaced)
{
    STAGE(s);
    cr_expect_eq(save(&s, "{\"name\":\" sum \",\"code\":\"return 1\"}", false).code, 0);
    rt_snippet first = find(&s, "sum");
    cr_expect(rt_str_eq_c(first.language, "python") && rt_str_eq_c(first.category, "general") &&
              rt_str_eq_c(first.tags, "[]") && rt_str_eq_c(first.user_id, "ann"));
    cr_expect_eq(save(&s, "{\"name\":\"sum\",\"code\":\"return 2\"}", false).code, RT_CONFLICT);
    cr_expect_eq(save(&s, "{\"name\":\"sum\",\"code\":\"return 2\"}", true).code, 0);
    cr_expect(rt_str_eq_c(find(&s, "sum").code, "return 2"));
}

STORE_TEST(patterns, a_run_gets_defaults_and_is_counted)
{
    STAGE(s);
    rt_pattern_answer answer;
    s.answers[0] = GOOD("1");
    s.answers[1] = "{\"error\":{\"name\":\"KeyError\"},\"metrics\":{\"executionTimeMs\":6}}";
    s.answers[2] = "{\"error\":{\"name\":\"INPUT_VALIDATION_ERROR\"}}";
    s.statuses[1] = s.statuses[2] = RT_STATUS_FAILED;
    cr_assert_eq(save(&s,
                      "{\"name\":\"top\",\"code\":\"return 1\",\"parameters\":{\"type\":\"object\","
                      "\"properties\":{\"n\":{\"type\":\"integer\",\"default\":3}}}}",
                      false)
                     .code,
                 0);
    for (int i = 0; i < 3; i++) {
        rt_error err = run(&s, "top", i ? "{\"n\":1}" : "{}", &answer);
        cr_assert_eq(err.code, 0, "%s", err.text);
    }
    cr_expect(rt_str_eq_c(s.inputs[0], "{\"n\":3}") && rt_str_eq_c(s.inputs[1], "{\"n\":1}"));
    cr_expect(rt_str_eq_c(s.codes[0], "return 1") && answer.step_count == 0);
    rt_snippet top = find(&s, "top");
    cr_expect(top.runs == 2 && top.successes == 1 && top.success_rate == 50);
    cr_expect(top.average_exec_ms == 5 && top.average_cost_usd == 0.25 && top.usage_count == 3);
    cr_expect_eq(run(&s, "top", "[]", &answer).code, RT_INVALID);
    cr_expect_eq(run(&s, "bottom", "{}", &answer).code, RT_NOT_FOUND);
}

#define CHAIN                                                                                      \
    "{\"name\":\"report\",\"steps\":[{\"pattern\":\"load\"},{\"pattern\":\"sum\",\"inputs\":{"     \
    "\"rows\":\"$previous.rows\",\"first\":\"$previous.rows.0\",\"by\":\"$inputs.by\","            \
    "\"price\":\"$$5\",\"none\":\"$previous.no.such\",\"plain\":[\"$inputsx\",1]}}]}"

STORE_TEST(patterns, a_chain_feeds_each_step_with_the_one_before)
{
    STAGE(s);
    rt_pattern_answer answer;
    s.answers[0] = GOOD("{\"rows\":[7,8]}");
    s.answers[1] = GOOD("15");
    cr_assert_eq(save(&s, "{\"name\":\"load\",\"code\":\"a\"}", false).code, 0);
    cr_assert_eq(save(&s, "{\"name\":\"sum\",\"code\":\"b\"}", false).code, 0);
    cr_assert_eq(save(&s, CHAIN, false).code, 0);
    rt_error err = run(&s, "report", "{\"by\":\"day\"}", &answer);
    cr_assert_eq(err.code, 0, "%s", err.text);
    cr_expect(rt_str_eq_c(s.inputs[0], "{\"by\":\"day\"}"));
    cr_expect(rt_str_eq_c(s.inputs[1],
                          "{\"rows\":[7,8],\"first\":7,\"by\":\"day\",\"price\":\"$5\","
                          "\"none\":null,\"plain\":[\"$inputsx\",1]}"),
              "%.*s", RT_FMT(s.inputs[1]));
    cr_assert_eq(answer.step_count, 2);
    cr_expect(rt_str_eq_c(answer.steps[1].name, "sum") &&
              rt_str_eq_c(answer.steps[1].execution_id, "exec_1"));
    rt_snippet chain = find(&s, "report");
    cr_expect(chain.runs == 1 && chain.average_exec_ms == 8 && chain.average_cost_usd == 1);
    cr_expect_eq(find(&s, "sum").runs, 1);
}

STORE_TEST(patterns, a_chain_stops_where_it_fails_and_has_no_chain_inside)
{
    STAGE(s);
    rt_pattern_answer answer;
    s.answers[0] = "{\"error\":{\"name\":\"KeyError\"}}";
    s.statuses[0] = RT_STATUS_FAILED;
    cr_assert_eq(save(&s, "{\"name\":\"load\",\"code\":\"a\"}", false).code, 0);
    cr_assert_eq(save(&s, CHAIN, false).code, 0);
    cr_assert_eq(save(&s, "{\"name\":\"outer\",\"steps\":[{\"pattern\":\"report\"}]}", false).code,
                 0);
    cr_expect_eq(run(&s, "report", "{}", &answer).code, 0);
    cr_expect(s.runs == 1 && answer.step_count == 1 && answer.answer.status == RT_STATUS_FAILED);
    cr_expect_eq(find(&s, "report").success_rate, 0);
    rt_error err = run(&s, "outer", "{}", &answer);
    cr_expect(err.code == RT_INVALID && strstr(err.text, "chain itself"), "%s", err.text);
}
