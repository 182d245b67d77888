/* SPDX-License-Identifier: Apache-2.0 */
/*
 * formats_uri.c - URIs (RFC 3986), IRIs (RFC 3987) and templates of URIs (RFC 6570).
 *
 * An IRI is a URI that may also have characters beyond ASCII where letters may stand.
 */
#include "schema/schema_internal.h"

static bool is_letter(char c)
{
    char lower = c | 0x20;
    return lower >= 'a' && lower <= 'z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    char lower = c | 0x20;
    return is_digit(c) || (lower >= 'a' && lower <= 'f');
}

static bool is_one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

/* The code point `s` starts with; it is valid UTF-8. */
static uint32_t code_point(const char *s, size_t size)
{
    uint32_t code = (uint8_t)s[0] & (0xFF >> (size + 1));
    for (size_t i = 1; i < size; i++)
        code = code << 6 | ((uint8_t)s[i] & 0x3F);
    return code;
}

static bool is_iri_char(uint32_t code, bool is_query)
{
    if (code < 0xA0 || (code & 0xFFFE) == 0xFFFE || (code >= 0xFDD0 && code <= 0xFDEF))
        return false;
    if (code >= 0xFFF0 && code <= 0xFFFF)
        return false;
    bool is_private = (code >= 0xE000 && code <= 0xF8FF) || code >= 0xF0000;
    return is_private ? is_query : code < 0xE0000 || code >= 0xE1000;
}

/* Only unreserved characters, escapes, and those of `more`. */
static bool is_made_of(rt_str text, const char *more, bool is_iri, bool is_query)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if ((unsigned char)c >= 0x80) {
            size_t size = rt_utf8_step(rt_str_slice(text, i, text.len), NULL);
            if (!is_iri || size == 0 || !is_iri_char(code_point(text.ptr + i, size), is_query))
                return false;
            i += size - 1;
        } else if (c == '%') {
            if (i + 2 >= text.len || !is_hex(text.ptr[i + 1]) || !is_hex(text.ptr[i + 2]))
                return false;
            i += 2;
        } else if (!is_letter(c) && !is_digit(c) && !is_one_of(c, "-._~!$&'()*+,;=") &&
                   !is_one_of(c, more)) {
            return false;
        }
    }
    return true;
}

/* "v1.something" or an IPv6 address, between brackets. */
static bool is_ip_literal(rt_str text)
{
    if (text.len < 4 || (text.ptr[0] | 0x20) != 'v')
        return schema_format_ipv6(text);
    size_t at = 1;
    while (at < text.len && is_hex(text.ptr[at]))
        at++;
    rt_str rest = rt_str_slice(text, at + 1, text.len);
    return at > 1 && at < text.len && text.ptr[at] == '.' && rest.len > 0 &&
           !memchr(rest.ptr, '%', rest.len) && is_made_of(rest, ":", false, false);
}

static bool is_port(rt_str text)
{
    if (text.len && text.ptr[0] != ':')
        return false;
    for (size_t i = 1; i < text.len; i++)
        if (!is_digit(text.ptr[i]))
            return false;
    return true;
}

static bool is_authority(rt_str text, bool is_iri)
{
    const char *at = text.len ? memrchr(text.ptr, '@', text.len) : NULL;
    if (at) {
        size_t end = (size_t)(at - text.ptr);
        if (!is_made_of(rt_str_slice(text, 0, end), ":", is_iri, false))
            return false;
        text = rt_str_slice(text, end + 1, text.len);
    }
    if (text.len && text.ptr[0] == '[') {
        const char *close = memchr(text.ptr, ']', text.len);
        size_t end = close ? (size_t)(close - text.ptr) : 0;
        return close && is_ip_literal(rt_str_slice(text, 1, end)) &&
               is_port(rt_str_slice(text, end + 1, text.len));
    }
    const char *colon = text.len ? memchr(text.ptr, ':', text.len) : NULL;
    size_t end = colon ? (size_t)(colon - text.ptr) : text.len;
    return is_made_of(rt_str_slice(text, 0, end), "", is_iri, false) &&
           is_port(rt_str_slice(text, end, text.len));
}

/* How long the scheme with its colon is, 0 if there is none. */
static size_t scheme_size(rt_str text)
{
    size_t i = 0;
    while (i < text.len && (is_letter(text.ptr[i]) ||
                            (i > 0 && (is_digit(text.ptr[i]) || is_one_of(text.ptr[i], "+-.")))))
        i++;
    return i > 0 && i < text.len && text.ptr[i] == ':' ? i + 1 : 0;
}

static rt_str cut_at(rt_str *text, char mark, bool *has_mark)
{
    const char *at = text->len ? memchr(text->ptr, mark, text->len) : NULL;
    size_t end = at ? (size_t)(at - text->ptr) : text->len;
    rt_str tail = rt_str_slice(*text, end + 1, text->len);
    *text = rt_str_slice(*text, 0, end);
    *has_mark = at != NULL;
    return tail;
}

static bool has_colon_in_first_segment(rt_str path)
{
    for (size_t i = 0; i < path.len && path.ptr[i] != '/'; i++)
        if (path.ptr[i] == ':')
            return true;
    return false;
}

static bool is_uri(rt_str text, bool is_iri, bool may_be_relative)
{
    bool has_fragment, has_query;
    size_t scheme = scheme_size(text);
    if (!scheme && !may_be_relative)
        return false;
    text = rt_str_slice(text, scheme, text.len);
    rt_str fragment = cut_at(&text, '#', &has_fragment), query = cut_at(&text, '?', &has_query);
    if (!is_made_of(fragment, ":@/?", is_iri, false) || !is_made_of(query, ":@/?", is_iri, true))
        return false;
    if (rt_str_starts(text, RT_STR("//"))) {
        size_t end = 2;
        while (end < text.len && text.ptr[end] != '/')
            end++;
        if (!is_authority(rt_str_slice(text, 2, end), is_iri))
            return false;
        text = rt_str_slice(text, end, text.len);
    } else if (!scheme && has_colon_in_first_segment(text)) {
        return false;
    }
    return is_made_of(text, ":@/", is_iri, false);
}

bool schema_format_uri(rt_str text)
{
    return is_uri(text, false, false);
}

bool schema_format_uri_reference(rt_str text)
{
    return is_uri(text, false, true);
}

bool schema_format_iri(rt_str text)
{
    return is_uri(text, true, false);
}

bool schema_format_iri_reference(rt_str text)
{
    return is_uri(text, true, true);
}

/* -- Templates --------------------------------------------------------------------------------- */

static bool is_variable_name(rt_str name)
{
    if (name.len == 0 || name.ptr[0] == '.' || name.ptr[name.len - 1] == '.')
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (c == '%') {
            if (i + 2 >= name.len || !is_hex(name.ptr[i + 1]) || !is_hex(name.ptr[i + 2]))
                return false;
            i += 2;
        } else if (c == '.' ? name.ptr[i - 1] == '.' : !is_letter(c) && !is_digit(c) && c != '_') {
            return false;
        }
    }
    return true;
}

/* "name", "name*" or "name:12". */
static bool is_variable(rt_str text)
{
    if (text.len && text.ptr[text.len - 1] == '*')
        return is_variable_name(rt_str_slice(text, 0, text.len - 1));
    bool has_length;
    rt_str length = cut_at(&text, ':', &has_length);
    uint64_t count;
    if (has_length && (length.len == 0 || length.len > 4 || length.ptr[0] == '0' ||
                       !rt_str_to_u64(length, &count)))
        return false;
    return is_variable_name(text);
}

static bool is_expression(rt_str text)
{
    if (text.len && is_one_of(text.ptr[0], "+#./;?&=,!@|"))
        text = rt_str_slice(text, 1, text.len);
    rt_str variable;
    if (text.len == 0)
        return false;
    while (rt_str_cut(&text, ',', &variable))
        if (!is_variable(variable))
            return false;
    return true;
}

bool schema_format_uri_template(rt_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c == '{') {
            const char *close = memchr(text.ptr + i, '}', text.len - i);
            size_t end = close ? (size_t)(close - text.ptr) : 0;
            if (!close || !is_expression(rt_str_slice(text, i + 1, end)))
                return false;
            i = end;
        } else if (c == '%') {
            if (i + 2 >= text.len || !is_hex(text.ptr[i + 1]) || !is_hex(text.ptr[i + 2]))
                return false;
        } else if (c <= ' ' || c == 0x7F || is_one_of((char)c, "\"<>\\^`|}")) {
            return false;
        }
    }
    return rt_utf8_valid(text);
}
