/* SPDX-License-Identifier: Apache-2.0 */
/*
 * formats_test.c - edges of the formats that the suite's files of Debian 12 do not have.
 */
#include "schema/schema.h"

#include <criterion/criterion.h>

static const struct {
    const char *format, *text;
    bool matches;
} cases[] = {
    { "date", "2024-02-29", true },
    { "date", "1900-02-29", false },
    { "date", "2024-2-9", false },
    { "time", "23:59:60Z", true },
    { "time", "00:29:60-23:30", true },
    { "time", "22:59:60Z", false },
    { "time", "12:00:00", false },
    { "time", "08:30:06+0130", false },
    { "date-time", "2024-05-17t08:14:22.5z", true },
    { "date-time", "2024-05-17 08:14:22Z", false },
    { "date-time", "2024-05-17T08:14:22.Z", false },
    { "duration", "P1Y2M3DT4H5M6S", true },
    { "duration", "P1Y2D", false },
    { "duration", "PT1H2S", false },
    { "duration", "P2W", true },
    { "duration", "P1WT1H", false },
    { "duration", "P", false },
    { "duration", "PT", false },
    { "email", "\"a b\"@example.com", true },
    { "email", "test\"@example.com", false },
    { "email", "a@[IPv6:::1]", true },
    { "email", "a@[]", false },
    { "email", "a@b@c.org", false },
    { "email", "a\xC3\xA9@iana.org", false },
    { "idn-email", "a\xC3\xA9@iana.org", true },
    { "hostname", "xn--4gbwdl.xn--wgbh1c", true },
    { "hostname", "xn--X", false },
    { "hostname", "a..b", false },
    { "hostname", "a.", false },
    { "hostname", "", false },
    { "idn-hostname", "\xEC\x8B\xA4\xEB\xA1\x80.\xED\x85\x8C\xEC\x8A\xA4\xED\x8A\xB8", true },
    { "idn-hostname", "l\xC2\xB7l", true },
    { "idn-hostname", "a\xC2\xB7l", false },
    { "idn-hostname",
      "a\xE3\x80\x82"
      "b",
      true },
    { "ipv4", "127.0.0.1", true },
    { "ipv4", "127.0.0.01", false },
    { "ipv6", "::", true },
    { "ipv6", "1:2:3:4:5:6:7:8", true },
    { "ipv6", "1::2::3", false },
    { "ipv6", "::ffff:1.2.3.4", true },
    { "ipv6", "1:2:3:4:5:6:7:1.2.3.4", false },
    { "ipv6", "fe80::1%eth0", false },
    { "ipv6", "1:2:3:4:5:6:7:", false },
    { "uri", "http://a.com::", false },
    { "uri", "http://:80", true },
    { "uri", "http://[v1.x]/", true },
    { "uri", "http://a/%6G", false },
    { "uri", "http://a/\xC3\xA9", false },
    { "iri", "http://a/\xC3\xA9", true },
    { "uri-reference", "a:b", true },
    { "uri-reference", "1a:b", false },
    { "uri-template", "a'b{+x,y*:1}", false },
    { "uri-template", "a'b{+x,y*}", true },
    { "uri-template", "{a..b}", false },
    { "uri-template", "{v:10000}", false },
    { "json-pointer", "/a~2", false },
    { "json-pointer", "/a~1b/", true },
    { "relative-json-pointer", "0-1#", true },
    { "relative-json-pointer", "01", false },
    { "uuid", "2eb8aa08-aa98-11ea-b4aa-73b441d16380", true },
    { "uuid", "2eb8aa08aa98-11ea-b4aa-73b441d16380-", false },
    { "regex", "^(a", false },
    { "no-such-format", "anything", true },
};

Test(formats, are_what_their_rfcs_say)
{
    for (size_t i = 0; i < RT_COUNT(cases); i++)
        cr_expect_eq(rt_schema_format_matches(rt_str_of(cases[i].format), rt_str_of(cases[i].text)),
                     cases[i].matches, "%s: %s", cases[i].format, cases[i].text);
}

Test(formats, survive_bytes_that_are_no_text)
{
    static const char *const names[] = {
        "date-time", "duration", "email", "idn-email",    "hostname", "idn-hostname", "ipv4",
        "ipv6",      "uri",      "iri",   "uri-template", "uuid",     "json-pointer", "regex"
    };
    static const rt_str texts[] = {
        { "\0", 1 }, { "a\0b", 3 }, { "\xED\xA0\x80", 3 }, { "a@\0", 3 },
        { "%", 1 },  { "{", 1 },    { "http://[", 8 },     { "\xED\xA0\x80.b", 5 }
    };
    for (size_t n = 0; n < RT_COUNT(names); n++)
        for (size_t t = 0; t < RT_COUNT(texts); t++)
            rt_schema_format_matches(rt_str_of(names[n]), texts[t]);
}
