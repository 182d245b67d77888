/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patterns_test.c - ECMA-262 patterns mean what they mean in a browser, by either engine.
 */
#include "schema/pattern_quick.h"

#include <criterion/criterion.h>

static const struct {
    const char *pattern, *text;
    bool matches;
} cases[] = {
    { "^[a-z][a-z0-9_]*$", "ab_9", true },
    { "^[a-z][a-z0-9_]*$", "9ab", false },
    { "^[a-z]+$", "abc\n", false },
    { "^\\d{4}-\\d{2}$", "2024-05", true },
    { "^\\d{4}-\\d{2}$", "2024-5", false },
    { "^x-", "x-anything", true },
    { "^x-", "ax-", false },
    { "\\.json$", "a.json", true },
    { "\\.json$", "ajson", false },
    { "a+b", "caab", true },
    { "^a*ab$", "aaab", true }, /* goes back */
    { "^.+$", "a\nb", false },
    { "^.$", "\xE2\x80\xA8", false }, /* U+2028 ends a line */
    { "^.$", "\xF0\x9F\x90\xB2", true },
    { "^.{2}$", "\xC3\xA4\xC3\xB6", true },
    { "^[^x]$", "\xE2\x82\xAC", true },
    { "^\\W$", "\xC3\xA9", true },
    { "^\\w$", "\xC3\xA9", false },
    { "^\\d$", "\xDB\xB1", false },
    { "^\\s$", "\xC2\xA0", true },
    { "^\\s$", "\xEF\xBB\xBF", true },
    { "^\\S$", "\xC2\xA0", false },
    { "^[\\S]$", "\xE2\x82\xAC", true },
    { "^[\\s]$", "\xE2\x80\x89", true },
    { "^[^\\S]$", "\xC2\xA0", true },
    { "^\\p{Letter}+$", "\xC3\xA9t\xC3\xA9", true },
    { "^\\p{Script=Greek}$", "\xCE\xB1", true },
    { "^\\p{Script=Greek}$", "a", false },
    { "^\\p{Lu}$", "a", false },
    { "^\\P{L}$", "1", true },
    { "^\\cA$", "\x01", true },
    { "^\\x41\\u0042\\u{43}$", "ABC", true },
    { "^\\ud83d\\udc32$", "\xF0\x9F\x90\xB2", true },
    { "^[\\u{1F400}-\\u{1F4FF}]$", "\xF0\x9F\x90\xB2", true },
    { "^\\v$", "\x0B", true },
    { "^[[]$", "[", true },
    { "^[[:alpha:]]$", ":]", true },
    { "^[a\\-z]$", "-", true },
    { "^[\\w-]+$", "a-b", true },
    { "^[\\w-.]+$", "a-.b", true },
    { "^(?<y>a|b)\\k<y>$", "bb", true },
    { "^(a|b)\\1$", "ba", false },
    { "^(?:(a)|b)\\1c$", "bc", true }, /* a group that took no part matches nothing */
    { "^(?!foo).*$", "foobar", false },
    { "(?<=a)b", "ab", true },
    { "a{,2}", "a{,2}", true },
    { "^{x}$", "{x}", true },
    { "[]", "a", false },
    { "^[^]$", "\n", true },
    { "", "anything", true },
    { ".*", "", true },
    { ".", "", false },
};

static bool matches(const char *pattern, const char *text)
{
    rt_buf schema RT_CLEANUP(rt_buf_done) = { 0 };
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_schema *compiled RT_CLEANUP(rt_schema_freep) = NULL;
    rt_error err = { 0 };
    rt_json_writer w;
    rt_json doc, value;
    rt_json_begin(&w, &schema);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "pattern", rt_str_of(pattern));
    rt_jw_kstr(&w, "value", rt_str_of(text));
    rt_jw_end(&w);
    cr_assert(rt_json_parse(rt_buf_str(&schema), &arena, &doc, &err), "%s", err.text);
    value = rt_json_get_c(doc, "value");
    cr_assert(rt_schema_new(doc, NULL, &compiled, &err), "%s", err.text);
    return rt_schema_check(compiled, value, NULL);
}

Test(patterns, mean_what_they_mean_in_a_browser)
{
    for (size_t i = 0; i < RT_COUNT(cases); i++)
        cr_expect_eq(matches(cases[i].pattern, cases[i].text), cases[i].matches, "%s on %s",
                     cases[i].pattern, cases[i].text);
}

/* With a group around it no pattern is simple, so this asks the other engine. */
Test(patterns, both_engines_agree)
{
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
        rt_str slow = rt_arena_printf(&arena, "(?:%s)", cases[i].pattern);
        quick_pattern quick;
        cr_expect(!schema_quick_read(slow, &quick));
        cr_expect_eq(matches(slow.ptr, cases[i].text), cases[i].matches, "%s on %s", slow.ptr,
                     cases[i].text);
    }
}

Test(patterns, what_ecma_262_does_not_know_is_refused)
{
    static const char *const bad[] = {
        "\\a",         "\\Z",      "\\A",
        "\\z",         "\\Qa\\E",  "(?i)a",
        "(?>a)",       "(?P<n>a)", "(?#c)",
        "a++",         "a**",      "*a",
        "(",           ")",        "[a",
        "\\",          "[z-a]",    "\\p{Foo}",
        "\\p{",        "\\u{}",    "\\u12",
        "\\x1",        "\\1",      "(?<1a>x)",
        "a{2,1}",      "\\k<no>",  "(?<a>.)(?<a>.)",
        "\\u{110000}", "\\c1",     "^+",
        "[\\d-z]\\",   "\\01",
    };
    for (size_t i = 0; i < RT_COUNT(bad); i++)
        cr_expect(!schema_pattern_is_valid(rt_str_of(bad[i])), "%s", bad[i]);
}

Test(patterns, a_lookbehind_of_any_length_is_a_pattern_though_not_one_we_match)
{
    cr_expect(schema_pattern_is_valid(RT_STR("(?<=a+)b")));
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_schema *schema = NULL;
    rt_error err = { 0 };
    rt_json doc;
    cr_assert(rt_json_parse(RT_STR("{\"pattern\":\"(?<=a+)b\"}"), &arena, &doc, NULL));
    cr_expect(!rt_schema_new(doc, NULL, &schema, &err));
    cr_expect_eq(err.code, RT_UNSUPPORTED);
}

Test(patterns, most_need_no_engine)
{
    static const char *const simple[] = { "^[a-z]+$", "^x-", "^\\d{4}-\\d\\d$", "\\.json$", ".*",
                                          ".+",       "^$",  "^[^/]+$",         "^.{1,5}$" };
    static const char *const others[] = { "a|b", "(a)", "^a*a", "ab+", "^\\bx", "\\p{L}", "^a??" };
    quick_pattern quick;
    for (size_t i = 0; i < RT_COUNT(simple); i++)
        cr_expect(schema_quick_read(rt_str_of(simple[i]), &quick), "%s", simple[i]);
    for (size_t i = 0; i < RT_COUNT(others); i++)
        cr_expect(!schema_quick_read(rt_str_of(others[i]), &quick), "%s", others[i]);
}
