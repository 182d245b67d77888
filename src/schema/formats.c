/* SPDX-License-Identifier: Apache-2.0 */
/*
 * formats.c - the formats JSON Schema names, and those small enough to be right here.
 */
#include "schema/schema_internal.h"

static bool is_hex(char c)
{
    char lower = c | 0x20;
    return (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'f');
}

static bool is_uuid(rt_str text)
{
    if (text.len != 36)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (is_dash ? text.ptr[i] != '-' : !is_hex(text.ptr[i]))
            return false;
    }
    return true;
}

static bool is_json_pointer(rt_str text)
{
    if (text.len && text.ptr[0] != '/')
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] == '~' &&
            (i + 1 == text.len || (text.ptr[i + 1] != '0' && text.ptr[i + 1] != '1')))
            return false;
    return true;
}

/* Digits without a leading zero; moves behind them. */
static bool skip_integer(rt_str text, size_t *at)
{
    size_t start = *at;
    while (*at < text.len && text.ptr[*at] >= '0' && text.ptr[*at] <= '9')
        (*at)++;
    return *at > start && (*at - start == 1 || text.ptr[start] != '0');
}

static bool is_relative_json_pointer(rt_str text)
{
    size_t at = 0;
    if (!skip_integer(text, &at))
        return false;
    if (at < text.len && (text.ptr[at] == '+' || text.ptr[at] == '-')) {
        at++;
        if (!skip_integer(text, &at))
            return false;
    }
    rt_str rest = rt_str_slice(text, at, text.len);
    return rt_str_eq_c(rest, "#") || is_json_pointer(rest);
}

static const struct {
    const char *name;
    schema_format matches;
} formats[] = {
    { "date-time", schema_format_date_time },
    { "date", schema_format_date },
    { "time", schema_format_time },
    { "duration", schema_format_duration },
    { "email", schema_format_email },
    { "idn-email", schema_format_idn_email },
    { "hostname", schema_format_hostname },
    { "idn-hostname", schema_format_idn_hostname },
    { "ipv4", schema_format_ipv4 },
    { "ipv6", schema_format_ipv6 },
    { "uri", schema_format_uri },
    { "uri-reference", schema_format_uri_reference },
    { "iri", schema_format_iri },
    { "iri-reference", schema_format_iri_reference },
    { "uri-template", schema_format_uri_template },
    { "uuid", is_uuid },
    { "json-pointer", is_json_pointer },
    { "relative-json-pointer", is_relative_json_pointer },
    { "regex", schema_pattern_is_valid },
};

schema_format schema_format_named(rt_str name)
{
    for (size_t i = 0; i < RT_COUNT(formats); i++)
        if (rt_str_eq_c(name, formats[i].name))
            return formats[i].matches;
    return NULL;
}

bool rt_schema_format_matches(rt_str format, rt_str text)
{
    schema_format matches = schema_format_named(format);
    return !matches || matches(text);
}
