/* SPDX-License-Identifier: Apache-2.0 */
/*
 * formats_host.c - names and addresses of hosts, and of mailboxes on them.
 *
 * Which characters an international name may have, and beside which others, is IDNA 2008; libidn2
 * knows it. A label that begins with "xn--" stands for such a name and must be a good one.
 */
#include "schema/schema_internal.h"

#include <idn2.h>

enum { LABEL_MAX = 63, HOST_MAX = 253, LOCAL_MAX = 64 };

static bool is_alnum(char c)
{
    char lower = c | 0x20;
    return (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z');
}

static bool is_ascii(rt_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] >= 0x80)
            return false;
    return true;
}

/* -- Labels ------------------------------------------------------------------------------------ */

/* A label as registries would take it; *len is its size in ASCII. */
static bool is_registrable(const char *u_label, const char *a_label, size_t *len)
{
    uint8_t *ascii = NULL;
    int rc = idn2_register_u8((const uint8_t *)u_label, (const uint8_t *)a_label, &ascii, 0);
    if (rc == IDN2_OK)
        *len = strlen((const char *)ascii);
    idn2_free(ascii);
    return rc == IDN2_OK && *len <= LABEL_MAX;
}

static bool is_ascii_label(rt_str label)
{
    if (label.len == 0 || label.len > LABEL_MAX || label.ptr[0] == '-' ||
        label.ptr[label.len - 1] == '-')
        return false;
    for (size_t i = 0; i < label.len; i++)
        if (!is_alnum(label.ptr[i]) && label.ptr[i] != '-')
            return false;
    if (label.len < 4 || label.ptr[2] != '-' || label.ptr[3] != '-')
        return true;
    char lower[LABEL_MAX + 1] = { 0 };
    for (size_t i = 0; i < label.len; i++)
        lower[i] =
            (char)(label.ptr[i] >= 'A' && label.ptr[i] <= 'Z' ? label.ptr[i] | 0x20 : label.ptr[i]);
    size_t len;
    return memcmp(lower, "xn--", 4) == 0 && is_registrable(NULL, lower, &len);
}

static bool is_international_label(rt_str label, size_t *len)
{
    char text[LABEL_MAX * 4 + 1];
    *len = label.len;
    if (is_ascii(label))
        return is_ascii_label(label);
    if (label.len >= sizeof(text) || memchr(label.ptr, '\0', label.len))
        return false;
    memcpy(text, label.ptr, label.len);
    text[label.len] = '\0';
    return is_registrable(text, NULL, len);
}

bool schema_format_hostname(rt_str text)
{
    rt_str rest = text, label;
    if (text.len == 0 || text.len > HOST_MAX)
        return false;
    while (rt_str_cut(&rest, '.', &label))
        if (!is_ascii_label(label))
            return false;
    return true;
}

/* How long the dot at the start of `text` is: '.' and three others that mean it; 0 if none is. */
static size_t dot_size(const char *text, size_t left)
{
    static const char *const wide[] = { "\xE3\x80\x82", "\xEF\xBC\x8E", "\xEF\xBD\xA1" };
    if (*text == '.')
        return 1;
    for (size_t i = 0; left >= 3 && i < RT_COUNT(wide); i++)
        if (memcmp(text, wide[i], 3) == 0)
            return 3;
    return 0;
}

bool schema_format_idn_hostname(rt_str text)
{
    size_t start = 0, total = 0, len;
    if (text.len == 0 || !rt_utf8_valid(text))
        return false;
    for (size_t i = 0; i <= text.len; i++) {
        size_t dot = i < text.len ? dot_size(text.ptr + i, text.len - i) : 1;
        if (!dot)
            continue;
        if (!is_international_label(rt_str_slice(text, start, i), &len))
            return false;
        total += len + 1;
        i += dot - 1;
        start = i + 1;
    }
    return total - 1 <= HOST_MAX;
}

/* -- Addresses --------------------------------------------------------------------------------- */

bool schema_format_ipv4(rt_str text)
{
    rt_str rest = text, part;
    unsigned count = 0;
    while (rt_str_cut(&rest, '.', &part)) {
        uint64_t value;
        if (part.len > 3 || !rt_str_to_u64(part, &value) || value > 255 ||
            (part.len > 1 && part.ptr[0] == '0'))
            return false;
        count++;
    }
    return count == 4;
}

static size_t hex_run(rt_str text, size_t at)
{
    size_t count = 0;
    for (; at + count < text.len; count++) {
        char c = text.ptr[at + count], lower = c | 0x20;
        if (!(c >= '0' && c <= '9') && !(lower >= 'a' && lower <= 'f'))
            break;
    }
    return count;
}

/* Groups of four digits; one run of zeros may be "::"; the last two may be an IPv4 address. */
bool schema_format_ipv6(rt_str text)
{
    size_t at = 0;
    unsigned groups = 0;
    bool is_short = false;
    if (rt_str_starts(text, RT_STR("::"))) {
        is_short = true;
        at = 2;
    }
    while (at < text.len) {
        size_t digits = hex_run(text, at);
        if (at + digits < text.len && text.ptr[at + digits] == '.') {
            groups += 2;
            return schema_format_ipv4(rt_str_slice(text, at, text.len)) &&
                   (is_short ? groups < 8 : groups == 8);
        }
        if (digits == 0 || digits > 4)
            return false;
        groups++;
        at += digits;
        if (at == text.len)
            break;
        if (text.ptr[at++] != ':' || at == text.len)
            return false;
        if (text.ptr[at] == ':') {
            if (is_short)
                return false;
            is_short = true;
            at++;
        }
    }
    return is_short ? groups < 8 : groups == 8;
}

/* -- Mailboxes --------------------------------------------------------------------------------- */

static bool is_atom_char(char c)
{
    return is_alnum(c) || (c && strchr("!#$%&'*+-/=?^_`{|}~", c)) || (unsigned char)c >= 0x80;
}

static bool is_dot_atom(rt_str text)
{
    rt_str rest = text, atom;
    while (rt_str_cut(&rest, '.', &atom)) {
        if (atom.len == 0)
            return false;
        for (size_t i = 0; i < atom.len; i++)
            if (!is_atom_char(atom.ptr[i]))
                return false;
    }
    return true;
}

/* With its quotes. */
static bool is_quoted(rt_str text)
{
    if (text.len < 2 || text.ptr[0] != '"' || text.ptr[text.len - 1] != '"')
        return false;
    for (size_t i = 1; i + 1 < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c == '\\') {
            if (++i + 1 >= text.len)
                return false;
            c = (unsigned char)text.ptr[i];
        } else if (c == '"') {
            return false;
        }
        if (c < 0x20 || c == 0x7F)
            return false;
    }
    return true;
}

static bool is_mail_domain(rt_str domain, bool (*is_host)(rt_str))
{
    if (domain.len < 2 || domain.ptr[0] != '[')
        return is_host(domain);
    if (domain.ptr[domain.len - 1] != ']')
        return false;
    rt_str inner = rt_str_slice(domain, 1, domain.len - 1);
    if (inner.len > 5 && strncasecmp(inner.ptr, "IPv6:", 5) == 0)
        return schema_format_ipv6(rt_str_slice(inner, 5, inner.len));
    return schema_format_ipv4(inner);
}

static bool is_mailbox(rt_str text, bool (*is_host)(rt_str))
{
    size_t at = text.len;
    while (at > 0 && text.ptr[at - 1] != '@')
        at--;
    if (at < 2)
        return false;
    rt_str local = rt_str_slice(text, 0, at - 1), domain = rt_str_slice(text, at, text.len);
    return local.len <= LOCAL_MAX && (is_dot_atom(local) || is_quoted(local)) &&
           is_mail_domain(domain, is_host);
}

bool schema_format_email(rt_str text)
{
    return is_ascii(text) && is_mailbox(text, schema_format_hostname);
}

bool schema_format_idn_email(rt_str text)
{
    return rt_utf8_valid(text) && is_mailbox(text, schema_format_idn_hostname);
}
