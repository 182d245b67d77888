/* SPDX-License-Identifier: Apache-2.0 */
/*
 * email.c - addresses of electronic mail, found by their '@'.
 *
 * What looks like one and is none: git@host:path, package@1.2.3, image@2x.png, unit@tty1.service,
 * the password and host of a URL (url.c claims those, and wins).
 */
#include "privacy/privacy_internal.h"

enum { LOCAL_MAX = 64, DOMAIN_MAX = 253, LABEL_MAX = 63 };

static bool is_local_byte(char c)
{
    return is_class(c, IS_WORD) || is_one_of(c, ".!#$%&'*+-/=?^_`{|}~");
}

/* What text puts around an address as often as people put it inside one. */
static bool is_wrapping(char c)
{
    return is_one_of(c, "'`{}|*/=?&!#$%^~.");
}

/* The apostrophe of O'Connor and D'Angelo, at the very beginning. */
static bool is_in_name(rt_str text, size_t start, size_t i)
{
    return text.ptr[i] == '\'' && i == start + 1 && is_one_of(lower(text.ptr[start]), "od") &&
           is_class(at(text, i + 1), IS_LETTER);
}

static size_t local_begin(rt_str text, size_t i)
{
    size_t start = i;
    while (start && i - start < LOCAL_MAX && is_local_byte(text.ptr[start - 1]))
        start--;
    /* "?mail=ann@…", "'ann@…'", "to/ann@…": begin after the last of these. */
    for (size_t k = i; k > start; k--)
        if (is_one_of(text.ptr[k - 1], "'`{}|*/=?&!#$%^~") && !is_in_name(text, start, k - 1))
            start = k;
    while (start < i && (is_wrapping(text.ptr[start]) || text.ptr[start] == '-'))
        start++;
    /* A continuation byte cannot begin anything: the limit cut a character. */
    while (start < i && ((unsigned char)text.ptr[start] & 0xC0) == 0x80)
        start++;
    return start;
}

static size_t domain_end(rt_str text, size_t i)
{
    size_t end = i;
    while (end < text.len && end - i < DOMAIN_MAX &&
           (is_class(text.ptr[end], IS_WORD) || text.ptr[end] == '.' || text.ptr[end] == '-'))
        end++;
    while (end > i && (text.ptr[end - 1] == '.' || text.ptr[end - 1] == '-'))
        end--;
    return end;
}

static bool are_labels_good(rt_str domain)
{
    rt_str rest = domain, label;
    while (rt_str_cut(&rest, '.', &label))
        if (label.len == 0 || label.len > LABEL_MAX || label.ptr[0] == '-' ||
            label.ptr[label.len - 1] == '-')
            return false;
    return true;
}

/* Files and units that stand where a top level domain would. */
static const char *const not_domains[] = {
    "apk",  "bak",  "bin",     "bmp",    "c",   "cpp",  "css",    "dll",  "exe",  "gif",
    "gz",   "h",    "html",    "ico",    "jar", "jpeg", "jpg",    "js",   "json", "jsx",
    "log",  "map",  "md",      "mount",  "mp3", "mp4",  "pdf",    "php",  "png",  "rb",
    "rs",   "scss", "service", "socket", "sql", "svg",  "target", "tar",  "tgz",  "timer",
    "toml", "ts",   "tsx",     "txt",    "vue", "webp", "xml",    "yaml", "yml",
};

static int score_domain(rt_str domain)
{
    size_t dot = domain.len;
    while (dot && domain.ptr[dot - 1] != '.')
        dot--;
    rt_str top = rt_str_slice(domain, dot, domain.len);
    if (dot < 2 || top.len < 2 || !are_labels_good(domain))
        return 0;
    for (size_t i = 0; i < top.len; i++)
        if (!is_class(top.ptr[i], IS_LETTER | IS_HIGH) && !rt_str_starts(top, RT_STR("xn--")))
            return 0;
    for (size_t i = 0; i < RT_COUNT(not_domains); i++) {
        size_t k = 0;
        while (k < top.len && lower(top.ptr[k]) == not_domains[i][k])
            k++;
        if (k == top.len && !not_domains[i][k])
            return 0;
    }
    return 95;
}

/* "ann@a.org,bob@b.org" and "ann@a.organd": the domain goes on where it must not. */
static size_t trim_domain(rt_str text, size_t start, size_t end)
{
    if (at(text, end) == '@') /* one address glued to the next: both are lost */
        return start;
    return end;
}

size_t privacy_email(privacy_scan *scan, size_t i)
{
    rt_str text = scan->text;
    size_t start, end;
    if (!wants(scan, RT_PII_EMAIL) || !is_class(at(text, i + 1), IS_WORD))
        return i;
    end = trim_domain(text, i + 1, domain_end(text, i + 1));
    int score = score_domain(rt_str_slice(text, i + 1, end));
    if (!score)
        return i;
    start = local_begin(text, i);
    if (start == i || text.ptr[i - 1] == '.' || before(scan, start) == '@')
        return i;
    if (at(text, end) == ':' && is_class(at(text, end + 1), IS_ALNUM) &&
        rt_str_eq(rt_str_slice(text, start, i), RT_STR("git")))
        return i;
    return privacy_add(scan, RT_PII_EMAIL, start, end, score) ? end : i;
}
