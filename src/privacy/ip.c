/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ip.c - addresses of the internet, version 4 and 6.
 *
 * 1.2.3.4 is a version or a section as often as an address, and "01.23.45.67.89" is a French
 * phone. Loopback, "any" and network masks belong to nobody and score low.
 */
#include "privacy/privacy_internal.h"

#include <arpa/inet.h>

/* ---- version 4 ---- */

static bool read_octets(rt_str text, const cluster *c, size_t g, unsigned octets[4])
{
    for (size_t k = 0; k < 4; k++) {
        const group *a = &c->groups[g + k];
        if (a->len > 3 || (a->len > 1 && text.ptr[a->start] == '0') ||
            (k && (a->sep != SEP_DOT || a->start != a[-1].end + 1)))
            return false;
        octets[k] = 0;
        for (size_t i = a->start; i < a->end; i++)
            octets[k] = octets[k] * 10 + (unsigned)(text.ptr[i] - '0');
        if (octets[k] > 255)
            return false;
    }
    return true;
}

static bool is_nobodys(const unsigned o[4])
{
    bool is_loopback = o[0] == 127 && o[1] == 0 && o[2] == 0;
    bool is_any = o[0] + o[1] + o[2] + o[3] == 0;
    bool is_mask = o[0] == 255 && (o[1] == 255 || o[1] == 0) && (o[3] == 255 || o[3] == 0);
    return is_loopback || is_any || is_mask;
}

static bool is_loose(const privacy_scan *scan, size_t start, size_t end)
{
    char prior = before(scan, start), next = at(scan->text, end);
    if (is_class(prior, IS_ALNUM) || prior == '_' || prior == '.' || prior == '-')
        return false;
    if (is_class(next, IS_ALNUM) || next == '_')
        return false;
    return !((next == '.' || next == '-') && is_class(at(scan->text, end + 1), IS_ALNUM));
}

static int score_ipv4(privacy_scan *scan, const unsigned o[4], size_t start, size_t end)
{
    privacy_context context;
    unsigned biggest = 0;
    for (size_t k = 0; k < 4; k++)
        biggest = RT_MAX(biggest, o[k]);
    /* Small numbers alone are sections and versions, but for a few that everybody knows. */
    bool is_known = o[0] == 10 || (o[0] == o[1] && o[1] == o[2]) || (o[0] == 8 && o[1] == 8);
    int score = biggest >= 100 ? 85 : biggest >= 32 ? 70 : is_known ? 62 : 45;
    if (is_nobodys(o))
        return 20;
    privacy_context_at(scan, start, end, &context);
    unsigned ip = context.distance[TOPIC_IP], version = context.distance[TOPIC_VERSION];
    if (version < ip && (version <= 1 || (version <= 4 && biggest < 30)))
        score -= 45;
    else if (ip < TOPIC_FAR)
        score += 10;
    return score;
}

size_t privacy_ipv4(privacy_scan *scan, const cluster *c, size_t g)
{
    unsigned octets[4];
    if (!wants(scan, RT_PII_IP) || g + 3 >= c->count || c->groups[g + 1].sep != SEP_DOT ||
        !read_octets(scan->text, c, g, octets))
        return 0;
    size_t start = c->groups[g].start, end = c->groups[g + 3].end;
    if (!is_loose(scan, start, end))
        return 0;
    privacy_add(scan, RT_PII_IP, start, end, score_ipv4(scan, octets, start, end));
    return 4;
}

/* ---- version 6 ---- */

static bool is_ipv6_byte(char c)
{
    return is_class(c, IS_HEX) || c == ':' || c == '.';
}

static bool is_ipv6(rt_str s)
{
    char text[INET6_ADDRSTRLEN + 1];
    struct in6_addr address;
    if (s.len < 3 || s.len >= sizeof(text))
        return false;
    memcpy(text, s.ptr, s.len);
    text[s.len] = '\0';
    return inet_pton(AF_INET6, text, &address) == 1;
}

/* "::1", "::" and "dead::" as in C++ names: too little to be somebody's. */
static int score_ipv6(rt_str s)
{
    size_t digits = 0, colons = 0;
    for (size_t i = 0; i < s.len; i++) {
        digits += is_class(s.ptr[i], IS_HEX);
        colons += s.ptr[i] == ':';
    }
    return digits < 4 ? 20 : colons < 3 && digits < 7 ? 40 : 90;
}

size_t privacy_ipv6(privacy_scan *scan, size_t i)
{
    rt_str text = scan->text;
    size_t start = i, end = i;
    if (!wants(scan, RT_PII_IP) || !(at(text, i + 1) == ':' || is_class(at(text, i + 1), IS_HEX)))
        return i;
    while (start && i - start < INET6_ADDRSTRLEN && is_ipv6_byte(text.ptr[start - 1]))
        start--;
    while (end < text.len && end - start <= INET6_ADDRSTRLEN && is_ipv6_byte(text.ptr[end]))
        end++;
    size_t colons = 0;
    bool is_short = false; /* "::" stands for a run of zeros */
    for (size_t k = start; k < end; k++) {
        colons += text.ptr[k] == ':';
        is_short |= text.ptr[k] == ':' && at(text, k + 1) == ':';
    }
    if (colons < 7 && !is_short)
        return i;
    while (end > start && (text.ptr[end - 1] == '.' ||
                           (text.ptr[end - 1] == ':' && end >= 2 && text.ptr[end - 2] != ':')))
        end--;
    /* "client:2001:db8::1": what stands before the address is glued on by one colon. */
    while (start < i &&
           (text.ptr[start] == '.' || (text.ptr[start] == ':' && text.ptr[start + 1] != ':')))
        start++;
    /* "2001:…:8329:443": all eight parts are there, the ninth is a port. */
    if (colons == 8 && !is_short && !is_ipv6(rt_str_slice(text, start, end)))
        while (end > i && text.ptr[end--] != ':')
            ;
    rt_str s = rt_str_slice(text, start, end);
    if (is_class(before(scan, start), IS_WORD) || is_class(at(text, end), IS_WORD) ||
        before(scan, start) == '_' || at(text, end) == '_' || !is_ipv6(s))
        return i;
    privacy_add(scan, RT_PII_IP, start, end, score_ipv6(s));
    return end;
}
