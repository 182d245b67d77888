/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "base/json.h"

#include <criterion/criterion.h>
#include <math.h>
#include <signal.h>

static rt_arena arena;

static void release(void)
{
    rt_arena_done(&arena);
}

static rt_json parsed(const char *text)
{
    rt_error err = { 0 };
    rt_json doc = { NULL };
    cr_assert(rt_json_parse(rt_str_of(text), &arena, &doc, &err), "%s: %s", text, err.text);
    return doc;
}

static const char *printed(rt_json doc)
{
    rt_buf out RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_print(doc, &out);
    return rt_arena_copy(&arena, rt_buf_str(&out));
}

static const char *failure(const char *text)
{
    static rt_error err;
    rt_json doc;
    cr_assert(!rt_json_parse(rt_str_of(text), &arena, &doc, &err), "%s", text);
    return err.text;
}

TestSuite(json, .fini = release);

Test(json, a_path_can_be_followed_without_checks)
{
    rt_json doc = parsed("{\"a\":{\"b\":[10,20,{\"c\":\"x\"}]}}");
    rt_json b = rt_json_get(rt_json_get(doc, RT_STR("a")), RT_STR("b"));
    cr_expect_eq(rt_json_count(b), 3);
    cr_expect(rt_str_eq_c(rt_json_str(rt_json_get_c(rt_json_at(b, 2), "c")), "x"));
    rt_json missing = rt_json_at(rt_json_get_c(rt_json_get_c(doc, "x"), "y"), 7);
    cr_expect(rt_json_is_absent(missing));
    cr_expect_eq(rt_json_str(missing).len, 0);
    cr_expect_eq(rt_json_number(missing).len, 0);
    cr_expect_eq(rt_json_count(missing), 0);
    cr_expect(rt_json_bool(missing, true));
    cr_expect_str_eq(rt_json_type_name(missing), "absent");
    cr_expect(!rt_json_next(&(rt_json_iter){ 0 }, NULL, &missing));
}

Test(json, of_duplicate_keys_the_last_counts_and_all_are_printed)
{
    rt_json doc = parsed("{\"a\":1,\"b\":2,\"a\":3}");
    cr_expect(rt_str_eq_c(rt_json_number(rt_json_get_c(doc, "a")), "3"));
    cr_expect_str_eq(printed(doc), "{\"a\":1,\"b\":2,\"a\":3}");
}

Test(json, numbers_keep_their_text)
{
    const char *text = "[12345678901234567890123,0.10000000000000000000001,1e400,-0,1.50,1E+2]";
    cr_expect_str_eq(printed(parsed(text)), text);
}

Test(json, integers_are_exact_or_refused)
{
    static const struct {
        const char *text;
        bool is_integer;
        int64_t value;
    } cases[] = {
        { "0", true, 0 },
        { "-0", true, 0 },
        { "0.000e9", true, 0 },
        { "12", true, 12 },
        { "1.2e1", true, 12 },
        { "1200e-2", true, 12 },
        { "12.0", true, 12 },
        { "9223372036854775807", true, INT64_MAX },
        { "-9223372036854775808", true, INT64_MIN },
        { "9007199254740993", true, 9007199254740993 },
        { "9223372036854775808", false, 0 },
        { "-9223372036854775809", false, 0 },
        { "1.5", false, 0 },
        { "12e-2", false, 0 },
        { "1e19", false, 0 },
        { "1e99999999999999999999", false, 0 },
        { "1e-99999999999999999999", false, 0 },
        { "0.1", false, 0 },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        int64_t value = 0;
        cr_expect_eq(rt_json_i64(parsed(cases[i].text), &value), cases[i].is_integer, "%s",
                     cases[i].text);
        cr_expect_eq(value, cases[i].value, "%s", cases[i].text);
    }
    int64_t value;
    cr_expect(!rt_json_i64(parsed("\"12\""), &value));
}

Test(json, doubles_are_the_nearest_and_finite)
{
    double value = 0;
    cr_expect(rt_json_double(parsed("[0.1]"), &value) == false);
    cr_expect(rt_json_double(parsed("0.1"), &value) && value == 0.1);
    cr_expect(rt_json_double(parsed("1e23"), &value) && value == 1e23);
    cr_expect(!rt_json_double(parsed("1e999"), &value));
}

Test(json, strings_may_hold_nul_and_lone_surrogates)
{
    rt_json doc = parsed("[\"a\\u0000b\",\"\\ud800x\",\"\\ud83d\\ude00\"]");
    cr_expect(rt_str_eq(rt_json_str(rt_json_at(doc, 0)), RT_STR("a\0b")));
    cr_expect(!rt_utf8_valid(rt_json_str(rt_json_at(doc, 1))));
    cr_expect(rt_str_eq(rt_json_str(rt_json_at(doc, 2)), RT_STR("\xF0\x9F\x98\x80")));
    cr_expect_str_eq(printed(doc), "[\"a\\u0000b\",\"\\ud800x\",\"\xF0\x9F\x98\x80\"]");
}

/* Escapes are decoded in place, at every distance from the end of a 16-byte load. */
Test(json, an_escape_is_decoded_wherever_it_stands)
{
    for (int before = 0; before < 40; before++)
        for (int after = 0; after < 40; after++) {
            rt_buf text RT_CLEANUP(rt_buf_done) = { 0 }, want RT_CLEANUP(rt_buf_done) = { 0 };
            rt_buf_addf(&text, "[\"%.*s\\u00e9\\n%.*s\",1]", before,
                        "0123456789012345678901234567890123456789", after,
                        "abcdefghijabcdefghijabcdefghijabcdefghij");
            rt_buf_addf(&want, "%.*s\xC3\xA9\n%.*s", before,
                        "0123456789012345678901234567890123456789", after,
                        "abcdefghijabcdefghijabcdefghijabcdefghij");
            rt_json doc;
            cr_assert(rt_json_parse(rt_buf_str(&text), &arena, &doc, NULL));
            cr_assert(rt_str_eq(rt_json_str(rt_json_at(doc, 0)), rt_buf_str(&want)));
            rt_arena_reset(&arena);
        }
}

Test(json, the_document_owns_its_text)
{
    char text[] = "{\"key\":\"value\"}";
    rt_json doc = parsed(text);
    memset(text, 'x', sizeof(text));
    cr_expect_str_eq(printed(doc), "{\"key\":\"value\"}");
}

Test(json, an_error_says_where_and_what_was_expected)
{
    cr_expect_str_eq(failure("[1 2]"), "line 1, column 4: expected ',' or ']', found '2'");
    cr_expect_str_eq(failure("{\n  \"a\": 1,\n  b: 2}"),
                     "line 3, column 3: expected a key in quotes, found 'b'");
    cr_expect_str_eq(failure("[\"\xC3\xA9\xC3\xA9\" x]"),
                     "line 1, column 7: expected ',' or ']', found 'x'");
    cr_expect_str_eq(failure(""), "line 1, column 1: expected a value, found the end of the text");
    cr_expect_str_eq(failure("{}\n\n\x01"),
                     "line 3, column 1: expected the end of the text, found byte 0x01");
}

Test(json, limits_are_limits)
{
    rt_error err = { 0 };
    rt_json doc;
    rt_json_limits limits = { .max_size = 10, .max_depth = 2 };
    cr_expect(rt_json_parse_limited(RT_STR("[[1,2,3]]"), &limits, &arena, &doc, &err));
    cr_expect(!rt_json_parse_limited(RT_STR("[[[]]]"), &limits, &arena, &doc, &err));
    cr_expect_eq(err.code, RT_LIMIT);
    cr_expect_str_eq(err.text, "line 1, column 3: nested deeper than 2 levels");
    cr_expect(!rt_json_parse_limited(RT_STR("[1,2,3,4,5]"), &limits, &arena, &doc, &err));
    cr_expect_eq(err.code, RT_LIMIT);
}

Test(json, iteration_follows_the_order_of_the_text)
{
    rt_json_iter it = rt_json_each(parsed("{\"b\":[1,[2]],\"a\":{},\"c\":3}"));
    rt_buf seen RT_CLEANUP(rt_buf_done) = { 0 };
    rt_str key;
    rt_json value;
    while (rt_json_next(&it, &key, &value))
        rt_buf_addf(&seen, "%.*s=%s ", RT_FMT(key), rt_json_type_name(value));
    cr_expect(rt_str_eq(rt_buf_str(&seen), RT_STR("b=array a=object c=number ")));
    it = rt_json_each(parsed("[1,[2,3],4]"));
    for (size_t i = 0; rt_json_next(&it, &key, &value); i++)
        cr_expect(key.len == 0 && i < 3);
}

Test(json, equality_is_by_value)
{
    static const struct {
        const char *a, *b;
        bool is_equal;
    } cases[] = {
        { "{\"a\":1,\"b\":[2]}", "{ \"b\" : [2], \"a\" : 1 }", true },
        { "{\"a\":1,\"a\":2}", "{\"a\":2}", true },
        { "{\"a\":1}", "{\"a\":1,\"b\":1}", false },
        { "[1,2]", "[2,1]", false },
        { "[1]", "[1,1]", false },
        { "\"a\"", "\"\\u0061\"", true },
        { "1.0", "1", true },
        { "100", "1e2", true },
        { "0.10", "1e-1", true },
        { "1.230e1", "12.3", true },
        { "120.0e-1", "0.12e2", true },
        { "-0", "0.0", true },
        { "0e999", "0", true },
        { "1", "-1", false },
        { "0.1", "0.10000000000000001", false },
        { "12345678901234567890", "12345678901234567891", false },
        { "1e99999999999999999999", "1e99999999999999999998", false },
        { "1e00000000000000000000002", "100", true },
        { "1", "\"1\"", false },
        { "null", "false", false },
        { "true", "false", false },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++)
        cr_expect_eq(rt_json_equal(parsed(cases[i].a), parsed(cases[i].b)), cases[i].is_equal,
                     "%s and %s", cases[i].a, cases[i].b);
    cr_expect(rt_json_equal((rt_json){ NULL }, (rt_json){ NULL }));
    cr_expect(!rt_json_equal((rt_json){ NULL }, parsed("null")));
}

Test(json, pretty_printing_indents_by_two)
{
    rt_buf out RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_print_pretty(parsed("{\"a\":[1,{}],\"b\":[]}"), &out);
    cr_expect(
        rt_str_eq(rt_buf_str(&out), RT_STR("{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}")));
}

Test(json_writer, places_commas_and_brackets, .fini = release)
{
    rt_buf out RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &out);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "s", RT_STR("a\"b"));
    rt_jw_ki64(&w, "i", INT64_MIN);
    rt_jw_ku64(&w, "u", UINT64_MAX);
    rt_jw_kdouble(&w, "d", 0.1);
    rt_jw_kdouble(&w, "nan", NAN);
    rt_jw_kbool(&w, "t", true);
    rt_jw_knull(&w, "n");
    rt_jw_karray(&w, "list");
    rt_jw_i64(&w, 1);
    rt_jw_raw(&w, RT_STR("[2]"));
    rt_jw_json(&w, parsed("{\"x\":\"\\udc00\"}"));
    rt_jw_json(&w, (rt_json){ NULL });
    rt_jw_end(&w);
    rt_jw_kobject(&w, "empty");
    rt_jw_end(&w);
    rt_jw_end(&w);
    cr_expect(rt_str_eq(rt_buf_str(&out),
                        RT_STR("{\"s\":\"a\\\"b\",\"i\":-9223372036854775808,"
                               "\"u\":18446744073709551615,\"d\":0.1,\"nan\":null,\"t\":true,"
                               "\"n\":null,\"list\":[1,[2],{\"x\":\"\\udc00\"},null],"
                               "\"empty\":{}}")),
              "%.*s", RT_FMT(rt_buf_str(&out)));
}

Test(json_writer, broken_utf8_becomes_the_replacement_character)
{
    rt_buf out RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &out);
    rt_jw_str(&w, RT_STR("a\xFFz\xE2\x82\xF0\x9F\x98\x80\x01\n"));
    cr_expect(rt_str_eq(rt_buf_str(&out), RT_STR("\"a\xEF\xBF\xBDz\xEF\xBF\xBD\xF0\x9F\x98\x80"
                                                 "\\u0001\\n\"")));
}

Test(json_writer, deeper_than_it_can_count_fails_the_buffer)
{
    rt_buf out RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &out);
    for (int i = 0; i < 2 * RT_JW_MAX_DEPTH; i++)
        rt_jw_array(&w);
    for (int i = 0; i < 2 * RT_JW_MAX_DEPTH; i++)
        rt_jw_end(&w);
    cr_expect(!rt_buf_ok(&out, NULL));
}

Test(json_writer, a_member_without_a_key_is_our_mistake, .signal = SIGABRT)
{
    rt_buf out RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &out);
    rt_jw_object(&w);
    rt_jw_i64(&w, 1);
}

static rt_json number(rt_arena *memory, const char *text)
{
    rt_json doc;
    cr_assert(rt_json_parse(rt_str_of(text), memory, &doc, NULL), "%s", text);
    return doc;
}

Test(json, numbers_are_compared_as_they_are_written)
{
    static const struct {
        const char *a, *b;
        int order;
    } cases[] = {
        { "1", "1.0", 0 },
        { "-0", "0", 0 },
        { "2", "10", -1 },
        { "-2", "-10", 1 },
        { "0.1", "0.10000000000000001", -1 },
        { "1e400", "9e399", 1 },
        { "-1", "1", -1 },
        { "9007199254740993", "9007199254740992", 1 },
        { "123", "12.3e1", 0 },
        { "1e-99999999999999999999", "1e99999999999999999999", -1 },
    };
    rt_arena memory RT_CLEANUP(rt_arena_done) = { 0 };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        int order = rt_json_compare(number(&memory, cases[i].a), number(&memory, cases[i].b));
        cr_expect_eq((order > 0) - (order < 0), cases[i].order, "%s %s", cases[i].a, cases[i].b);
    }
    cr_expect(rt_json_is_multiple(number(&memory, "0.3"), number(&memory, "0.1")));
    cr_expect(!rt_json_is_multiple(number(&memory, "0.35"), number(&memory, "0.1")));
    cr_expect(!rt_json_is_step(number(&memory, "0")));
}

Test(json, equal_values_have_one_hash)
{
    rt_arena memory RT_CLEANUP(rt_arena_done) = { 0 };
    rt_hash_key key = { 1, 2 };
    rt_json a = number(&memory, "{\"x\":[1.0,\"\\u0041\"],\"y\":0,\"y\":null}");
    rt_json b = number(&memory, "{\"y\":null,\"x\":[1e0,\"A\"]}");
    cr_expect(rt_json_equal(a, b));
    cr_expect_eq(rt_json_hash(a, &key), rt_json_hash(b, &key));
    cr_expect_neq(rt_json_hash(a, &key), rt_json_hash(number(&memory, "[1]"), &key));
}

Test(json, a_copy_outlives_its_document)
{
    rt_arena gone = { 0 }, memory RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json doc = number(&gone, "{\"a\":[1.5e3,\"x\",{}],\"b\":true}");
    rt_json copy = rt_json_copy(doc, &memory);
    cr_expect(rt_json_equal(doc, copy));
    rt_arena_done(&gone);
    double real;
    cr_expect(rt_json_double(rt_json_at(rt_json_get_c(copy, "a"), 0), &real) && real == 1500);
}
