/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_test.c - what the suite does not ask: messages, limits, hostile schemas, duplicate keys,
 * threads, and memory.
 */
#include "schema/schema.h"

#include <criterion/criterion.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

typedef struct fixture {
    rt_arena arena;
    rt_schema *schema;
    rt_schema_report report;
    rt_error err;
} fixture;

static void done(fixture *f)
{
    rt_schema_free(f->schema);
    rt_arena_done(&f->arena);
}

static rt_json parsed(fixture *f, const char *text)
{
    rt_json doc;
    rt_error err = { 0 };
    cr_assert(rt_json_parse(rt_str_of(text), &f->arena, &doc, &err), "%s: %s", text, err.text);
    return doc;
}

static bool compile(fixture *f, const char *schema)
{
    return rt_schema_new(parsed(f, schema), NULL, &f->schema, &f->err);
}

static bool is_good(fixture *f, const char *schema, const char *value)
{
    rt_schema_free(f->schema);
    f->schema = NULL;
    cr_assert(compile(f, schema), "%s: %s", schema, f->err.text);
    f->report = (rt_schema_report){ .arena = &f->arena };
    return rt_schema_check(f->schema, parsed(f, value), &f->report);
}

static bool says(const fixture *f, const char *text)
{
    for (size_t i = 0; i < f->report.error_count; i++)
        if (rt_str_eq_c(f->report.errors[i].message, text))
            return true;
    return false;
}

Test(json_schema, an_error_says_where_and_what_was_expected)
{
    static const struct {
        const char *schema, *value, *message;
    } cases[] = {
        { "{\"properties\":{\"age\":{\"minimum\":18}}}", "{\"age\":12}",
          "/age must be at least 18, but is 12" },
        { "{\"items\":{\"type\":[\"string\",\"null\"]}}", "[\"a\",7]",
          "/1 must be null or a string, but is the number 7" },
        { "{\"type\":\"integer\"}", "1.5", "the value must be an integer, but is the number 1.5" },
        { "{\"required\":[\"name\"]}", "{}", "the value must have the property \"name\"" },
        { "{\"additionalProperties\":false}", "{\"x\":1}",
          "the value must not have the property \"x\"" },
        { "{\"enum\":[\"a\",\"b\"]}", "\"c\"",
          "the value must be one of \"a\", \"b\", but is \"c\"" },
        { "{\"properties\":{\"a/b\":{\"maxLength\":2}}}", "{\"a/b\":\"äöü\"}",
          "/a~1b is too long: its length must be at most 2, not 3" },
        { "{\"$defs\":{\"s\":{\"type\":\"string\"}},\"items\":{\"$ref\":\"#/$defs/s\"}}", "[1]",
          "/0 must be a string, but is the number 1" },
        { "{\"uniqueItems\":true}", "[1,{\"a\":1},{\"a\":1.0}]",
          "the value must not have equal items; twice there is {\"a\":1.0}" },
        { "{\"not\":{}}", "1", "the value is just what the schema under \"not\" describes" },
        { "false", "1", "the value must not be there" },
    };
    fixture f RT_CLEANUP(done) = { 0 };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        cr_expect(!is_good(&f, cases[i].schema, cases[i].value));
        cr_assert_eq(f.report.error_count, 1);
        cr_expect(says(&f, cases[i].message), "%.*s", RT_FMT(f.report.errors[0].message));
    }
}

Test(json_schema, all_errors_are_told_up_to_the_limit)
{
    fixture f RT_CLEANUP(done) = { 0 };
    cr_expect(!is_good(&f, "{\"items\":{\"type\":\"string\"}}", "[1,2,\"x\",3]"));
    cr_expect_eq(f.report.error_count, 3);
    f.report = (rt_schema_report){ .arena = &f.arena, .max_errors = 2 };
    cr_expect(!rt_schema_check(f.schema, parsed(&f, "[1,2,3]"), &f.report));
    cr_expect_eq(f.report.error_count, 2);
}

Test(json_schema, the_one_alternative_that_could_fit_explains_itself)
{
    fixture f RT_CLEANUP(done) = { 0 };
    cr_expect(!is_good(&f,
                       "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"object\","
                       "\"properties\":{\"a\":{\"type\":\"null\"}}}]}",
                       "{\"a\":1}"));
    cr_expect(says(&f, "/a must be null, but is the number 1"));
}

Test(json_schema, a_schema_that_breaks_the_rules_is_refused_with_its_place)
{
    static const struct {
        const char *schema, *text;
    } cases[] = {
        { "{\"properties\":{\"age\":{\"minimum\":\"1\"}}}",
          "#/properties/age/minimum: must be a number" },
        { "{\"$defs\":{\"unused\":{\"type\":\"strin\"}}}", "#/$defs/unused/type: must be one of" },
        { "{\"items\":[{}]}", "#/items: must be a schema; an array of schemas is called prefix" },
        { "{\"properties\":{\"a\":{\"$ref\":\"#/nowhere\"}}}", "#/properties/a: $ref #/nowhere" },
        { "{\"$ref\":\"http://example.com/other.json\"}", "no document http://example.com/other" },
        { "{\"items\":{\"pattern\":\"(\"}}", "#/items: pattern: (" },
        { "{\"$schema\":\"http://json-schema.org/draft-03/schema\"}", "draft-03" },
        { "7", "must be a schema" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        fixture f RT_CLEANUP(done) = { 0 };
        cr_expect(!compile(&f, cases[i].schema), "%s", cases[i].schema);
        cr_expect(strstr(f.err.text, cases[i].text), "%s", f.err.text);
    }
}

Test(json_schema, numbers_are_exact)
{
    static const struct {
        const char *schema, *value;
        bool is_good;
    } cases[] = {
        { "{\"multipleOf\":0.01}", "19.99", true },
        { "{\"multipleOf\":0.01}", "19.999", false },
        { "{\"multipleOf\":0.0001}", "0.0075", true },
        { "{\"multipleOf\":3}", "9007199254740993", true },
        { "{\"multipleOf\":0.123456789}", "1e308", false },
        { "{\"multipleOf\":0.5}", "1e308", true },
        { "{\"multipleOf\":7}", "1e300", false },
        { "{\"multipleOf\":7}", "7e300", true },
        { "{\"multipleOf\":123456789012345678901234567890}", "246913578024691357802469135780",
          true },
        { "{\"multipleOf\":123456789012345678901234567890}", "246913578024691357802469135781",
          false },
        { "{\"multipleOf\":1e-400}", "3e-400", true },
        { "{\"maximum\":9007199254740992}", "9007199254740993", false },
        { "{\"maximum\":0.1}", "0.10000000000000001", false },
        { "{\"exclusiveMaximum\":1e400}", "9.99e399", true },
        { "{\"minimum\":-1e-400}", "-2e-400", false },
        { "{\"minimum\":0}", "-0.0", true },
        { "{\"maximum\":1}", "1e99999999999999999999", false },
        { "{\"minimum\":1}", "1e-99999999999999999999", false },
        { "{\"type\":\"integer\"}", "1e2", true },
        { "{\"type\":\"integer\"}", "1.20e1", true },
        { "{\"type\":\"integer\"}", "123456789012345678901234567890.0", true },
        { "{\"type\":\"integer\"}", "1e-1", false },
        { "{\"const\":1.0}", "1", true },
        { "{\"enum\":[0.1]}", "0.10", true },
    };
    fixture f RT_CLEANUP(done) = { 0 };
    for (size_t i = 0; i < RT_COUNT(cases); i++)
        cr_expect_eq(is_good(&f, cases[i].schema, cases[i].value), cases[i].is_good, "%s %s",
                     cases[i].schema, cases[i].value);
}

Test(json_schema, of_duplicate_keys_the_last_counts)
{
    fixture f RT_CLEANUP(done) = { 0 };
    const char *schema = "{\"properties\":{\"a\":{\"type\":\"string\"}},\"minProperties\":2}";
    cr_expect(is_good(&f, schema, "{\"a\":1,\"b\":1,\"a\":\"x\"}"));
    cr_expect(!is_good(&f, schema, "{\"a\":\"x\",\"b\":1,\"a\":1}"));
    cr_expect(!is_good(&f, schema, "{\"a\":1,\"a\":\"x\"}"));
    cr_expect(is_good(&f, "{\"maxProperties\":1}", "{\"a\":1,\"a\":2}"));
    cr_expect(is_good(&f, "{\"properties\":{\"a\":{\"minimum\":1},\"a\":true}}", "{\"a\":0}"));
}

Test(json_schema, more_than_64_required_names_are_all_required)
{
    fixture f RT_CLEANUP(done) = { 0 };
    rt_buf schema RT_CLEANUP(rt_buf_done) = { 0 }, value RT_CLEANUP(rt_buf_done) = { 0 };
    for (int i = 0; i < 200; i++) {
        rt_buf_addf(&schema, "%s\"k%d\"", i ? "," : "{\"required\":[", i);
        rt_buf_addf(&value, "%s\"k%d\":1", i ? "," : "{", i == 150 ? 1000 : i);
    }
    rt_buf_add(&schema, RT_STR("]}\0"));
    rt_buf_add(&value, RT_STR("}\0"));
    cr_expect(!is_good(&f, schema.ptr, value.ptr));
    cr_expect(says(&f, "the value must have the property \"k150\""));
}

/* -- Hostile schemas --------------------------------------------------------------------------- */

static bool is_stopped(fixture *f, const char *schema, const char *value)
{
    bool ok = is_good(f, schema, value);
    return !ok && f->report.is_stopped;
}

Test(json_schema, recursion_without_end_is_refused_or_stopped)
{
    fixture f RT_CLEANUP(done) = { 0 };
    cr_expect(!compile(&f, "{\"items\":{\"$ref\":\"#/items\"}}"));
    cr_expect(is_stopped(&f, "{\"$ref\":\"#\"}", "1"));
    cr_expect(is_stopped(&f, "{\"allOf\":[{\"$ref\":\"#\"}]}", "1"));
    cr_expect(is_stopped(&f, "{\"not\":{\"$ref\":\"#\"}}", "1"));
    cr_expect(is_stopped(&f,
                         "{\"$dynamicAnchor\":\"a\",\"anyOf\":[{\"$dynamicRef\":\"#a\"},"
                         "{\"$dynamicRef\":\"#a\"}]}",
                         "1"));
    cr_expect(says(&f, "the value could not be checked: the schema asks for more than the limit of "
                       "depth"));
}

Test(json_schema, doubling_at_each_step_is_stopped)
{
    fixture f RT_CLEANUP(done) = { 0 };
    rt_buf schema RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf_add(&schema, RT_STR("{\"$ref\":\"#/$defs/d0\",\"$defs\":{"));
    for (int i = 0; i < 60; i++)
        rt_buf_addf(&schema,
                    "\"d%d\":{\"allOf\":[{\"$ref\":\"#/$defs/d%d\"},"
                    "{\"$ref\":\"#/$defs/d%d\"}]},",
                    i, i + 1, i + 1);
    rt_buf_add(&schema, RT_STR("\"d60\":{\"minimum\":0}}}\0"));
    cr_expect(is_stopped(&f, schema.ptr, "1"));
}

Test(json_schema, a_pattern_that_runs_wild_is_stopped)
{
    fixture f RT_CLEANUP(done) = { 0 };
    cr_expect(is_stopped(&f, "{\"pattern\":\"^(a+)+(b+)+(a|aa)+$\"}",
                         "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabbbbbbbbb"
                         "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac\""));
}

static void repeat(rt_buf *out, const char *text, int times)
{
    for (int i = 0; i < times; i++)
        rt_buf_add(out, rt_str_of(text));
}

Test(json_schema, deep_nesting_is_refused)
{
    fixture f RT_CLEANUP(done) = { 0 };
    rt_buf schema RT_CLEANUP(rt_buf_done) = { 0 };
    repeat(&schema, "{\"not\":", 300);
    rt_buf_add(&schema, RT_STR("true"));
    repeat(&schema, "}", 300);
    rt_buf_addc(&schema, '\0');
    cr_expect(!compile(&f, schema.ptr));
    cr_expect_eq(f.err.code, RT_LIMIT, "%s", f.err.text);
}

Test(json_schema, a_deep_value_is_followed_or_stopped_and_never_too_far)
{
    fixture f RT_CLEANUP(done) = { 0 };
    rt_buf value RT_CLEANUP(rt_buf_done) = { 0 };
    repeat(&value, "[", 350);
    repeat(&value, "]", 350);
    rt_buf_addc(&value, '\0');
    cr_expect(is_good(&f, "{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}", value.ptr));
    rt_buf_reset(&value);
    repeat(&value, "[", 500);
    repeat(&value, "]", 500);
    rt_buf_addc(&value, '\0');
    cr_expect(is_stopped(&f, "{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}", value.ptr));
}

Test(json_schema, many_items_are_seen_to_be_different_in_a_short_time)
{
    fixture f RT_CLEANUP(done) = { 0 };
    rt_buf value RT_CLEANUP(rt_buf_done) = { 0 };
    for (int i = 0; i < 100000; i++)
        rt_buf_addf(&value, "%s{\"a\":%d}", i ? "," : "[", i);
    rt_buf_add(&value, RT_STR("]\0"));
    cr_expect(is_good(&f, "{\"uniqueItems\":true}", value.ptr));
    value.len -= 2;
    rt_buf_add(&value, RT_STR(",{\"a\":5.0e4}]\0"));
    cr_expect(!is_good(&f, "{\"uniqueItems\":true}", value.ptr));
}

/* -- Documents --------------------------------------------------------------------------------- */

Test(json_schema, a_reference_finds_what_is_inside_a_given_document)
{
    fixture f RT_CLEANUP(done) = { 0 };
    rt_schema_document documents[] = {
        { RT_STR("http://example.com/all.json"),
          parsed(&f, "{\"$defs\":{\"name\":{\"$id\":\"http://example.com/name.json\","
                     "\"type\":\"string\"}}}") },
        { RT_STR("http://example.com/broken.json"), parsed(&f, "{\"type\":1}") },
    };
    rt_schema_options options = { .documents = documents, .document_count = 2 };
    rt_json schema = parsed(&f, "{\"$ref\":\"http://example.com/name.json\"}");
    cr_assert(rt_schema_new(schema, &options, &f.schema, &f.err), "%s", f.err.text);
    cr_expect(rt_schema_check(f.schema, parsed(&f, "\"x\""), NULL));
    cr_expect(!rt_schema_check(f.schema, parsed(&f, "1"), NULL));
}

Test(json_schema, a_schema_outlives_the_text_it_came_from)
{
    rt_arena arena = { 0 };
    rt_schema *schema RT_CLEANUP(rt_schema_freep) = NULL;
    rt_json doc;
    cr_assert(rt_json_parse(RT_STR("{\"enum\":[\"only\"],\"pattern\":\"^o(n|m)ly$\"}"), &arena,
                            &doc, NULL));
    cr_assert(rt_schema_new(doc, NULL, &schema, NULL));
    rt_arena_done(&arena);
    rt_arena values RT_CLEANUP(rt_arena_done) = { 0 };
    cr_assert(rt_json_parse(RT_STR("\"only\""), &values, &doc, NULL));
    cr_expect(rt_schema_check(schema, doc, NULL));
}

/* -- Running ----------------------------------------------------------------------------------- */

static const char shop[] =
    "{\"type\":\"object\",\"required\":[\"id\",\"items\"],\"properties\":{"
    "\"id\":{\"type\":\"string\",\"pattern\":\"^(ord|ret)-[0-9]+$\"},"
    "\"items\":{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"anyOf\":[{\"type\":\"string\"}"
    ","
    "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\",\"minimum\":1}}}]}}},"
    "\"allOf\":[{\"properties\":{\"note\":{\"maxLength\":5}}}],\"unevaluatedProperties\":false}";
static const char order[] = "{\"id\":\"ord-17\",\"items\":[\"a\",{\"n\":2}],\"note\":\"äö\"}";

#if defined(__SANITIZE_ADDRESS__)
#define COUNTS_MEMORY 0
#else
#define COUNTS_MEMORY 1
#endif

Test(json_schema, a_good_value_is_checked_without_allocating)
{
    fixture f RT_CLEANUP(done) = { 0 };
    cr_assert(is_good(&f, shop, order));
    rt_json value = parsed(&f, order);
    if (!COUNTS_MEMORY)
        return;
    size_t before = mallinfo2().uordblks;
    cr_expect(rt_schema_check(f.schema, value, NULL));
    cr_expect_eq(mallinfo2().uordblks, before);
}

static void *check_often(void *data)
{
    fixture *f = data;
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json good, bad;
    rt_json_parse(rt_str_of(order), &arena, &good, NULL);
    rt_json_parse(RT_STR("{\"id\":\"x\",\"items\":[]}"), &arena, &bad, NULL);
    for (int i = 0; i < 2000; i++)
        if (!rt_schema_check(f->schema, good, NULL) || rt_schema_check(f->schema, bad, NULL))
            return NULL;
    return data;
}

Test(json_schema, threads_share_a_schema)
{
    fixture f RT_CLEANUP(done) = { 0 };
    cr_assert(compile(&f, shop));
    pthread_t threads[4];
    for (size_t i = 0; i < RT_COUNT(threads); i++)
        pthread_create(&threads[i], NULL, check_often, &f);
    for (size_t i = 0; i < RT_COUNT(threads); i++) {
        void *result;
        pthread_join(threads[i], &result);
        cr_expect_eq(result, &f);
    }
}

/* -- Defaults ---------------------------------------------------------------------------------- */

Test(json_schema, defaults_fill_what_is_missing_and_change_nothing_else)
{
    static const struct {
        const char *schema, *value, *filled;
    } cases[] = {
        { "{\"properties\":{\"a\":{\"default\":1},\"b\":{\"default\":[2]}}}", "{\"b\":null}",
          "{\"b\":null,\"a\":1}" },
        { "{\"properties\":{\"in\":{\"properties\":{\"x\":{\"default\":0.10}}}}}",
          "{\"in\":{\"y\":1}}", "{\"in\":{\"y\":1,\"x\":0.10}}" },
        { "{\"properties\":{\"in\":{\"default\":{},\"properties\":{\"x\":{\"default\":7}}}}}", "{}",
          "{\"in\":{\"x\":7}}" },
        { "{\"items\":{\"$ref\":\"#/$defs/p\"},\"$defs\":{\"p\":{\"properties\":{\"n\":"
          "{\"default\":\"?\"}}}}}",
          "[{},3]", "[{\"n\":\"?\"},3]" },
        { "{\"allOf\":[{\"properties\":{\"a\":{\"default\":1}}},"
          "{\"properties\":{\"a\":{\"default\":2}}}]}",
          "{}", "{\"a\":1}" },
        { "{\"anyOf\":[{\"properties\":{\"a\":{\"default\":1}}}]}", "{}", "{}" },
        { "{\"default\":{},\"properties\":{\"left\":{\"$ref\":\"#\"},"
          "\"right\":{\"$ref\":\"#\"}}}",
          "{}", "{\"left\":{},\"right\":{}}" },
        { "{\"properties\":{\"next\":{\"$ref\":\"#\",\"default\":null}}}", "{}",
          "{\"next\":null}" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        fixture f RT_CLEANUP(done) = { 0 };
        rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
        rt_json filled;
        cr_assert(compile(&f, cases[i].schema), "%s", f.err.text);
        cr_assert(rt_schema_add_defaults(f.schema, parsed(&f, cases[i].value), &f.arena, &filled,
                                         &f.err));
        rt_json_print(filled, &text);
        cr_expect(rt_str_eq_c(rt_buf_str(&text), cases[i].filled), "%.*s",
                  RT_FMT(rt_buf_str(&text)));
    }
}

Test(json_schema, a_default_that_contains_itself_ends)
{
    fixture f RT_CLEANUP(done) = { 0 };
    rt_json filled;
    cr_assert(compile(&f, "{\"properties\":{\"next\":{\"$ref\":\"#\",\"default\":{}}}}"));
    cr_expect(rt_schema_add_defaults(f.schema, parsed(&f, "{}"), &f.arena, &filled, &f.err));
}

Test(json_schema, defaults_that_multiply_are_refused)
{
    fixture f RT_CLEANUP(done) = { 0 };
    rt_json filled;
    cr_assert(compile(&f, "{\"properties\":{\"a\":{\"$ref\":\"#\",\"default\":{}},"
                          "\"b\":{\"$ref\":\"#\",\"default\":{}}}}"));
    cr_expect(!rt_schema_add_defaults(f.schema, parsed(&f, "{}"), &f.arena, &filled, &f.err));
    cr_expect_eq(f.err.code, RT_LIMIT);
}
