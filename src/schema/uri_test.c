/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uri_test.c - the examples of RFC 3986, section 5.4, and URNs.
 */
#include "schema/schema_internal.h"

#include <criterion/criterion.h>

Test(uri, references_resolve_as_in_the_rfc)
{
    static const struct {
        const char *ref, *full;
    } cases[] = {
        { "g:h", "g:h" },
        { "g", "http://a/b/c/g" },
        { "./g", "http://a/b/c/g" },
        { "g/", "http://a/b/c/g/" },
        { "/g", "http://a/g" },
        { "//g", "http://g" },
        { "?y", "http://a/b/c/d;p?y" },
        { "g?y", "http://a/b/c/g?y" },
        { ";x", "http://a/b/c/;x" },
        { "", "http://a/b/c/d;p?q" },
        { ".", "http://a/b/c/" },
        { "..", "http://a/b/" },
        { "../g", "http://a/b/g" },
        { "../..", "http://a/" },
        { "../../g", "http://a/g" },
        { "../../../g", "http://a/g" },
        { "/./g", "http://a/g" },
        { "/../g", "http://a/g" },
        { "g..", "http://a/b/c/g.." },
        { "./g/.", "http://a/b/c/g/" },
        { "g/../h", "http://a/b/c/h" },
        { "g;x=1/../y", "http://a/b/c/y" },
    };
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        rt_str full =
            schema_uri_resolve(RT_STR("http://a/b/c/d;p?q"), rt_str_of(cases[i].ref), &arena);
        cr_expect(rt_str_eq_c(full, cases[i].full), "%s: %.*s", cases[i].ref, RT_FMT(full));
    }
    rt_str urn = schema_uri_resolve(RT_STR("urn:uuid:1"), RT_STR("urn:uuid:2"), &arena);
    cr_expect(rt_str_eq_c(urn, "urn:uuid:2"));
    cr_expect(rt_str_eq_c(schema_uri_resolve(RT_STR(""), RT_STR("a.json"), &arena), "a.json"));
    cr_expect(rt_str_eq_c(schema_uri_decoded(RT_STR("a%25b%2"), &arena), "a%b%2"));
}
