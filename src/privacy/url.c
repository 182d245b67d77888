/* SPDX-License-Identifier: Apache-2.0 */
/*
 * url.c - URLs: with credentials inside, a secret; plain, a lesser matter.
 *
 * A plain one scores under RT_PRIVACY_URL_SECRET, and lower still when it points at this machine,
 * an internal name, or a place where only documents and code are kept.
 */
#include "privacy/privacy_internal.h"

enum { SCHEME_MAX = 20, URL_MAX = 2048, PLAIN = 62, TECHNICAL = 30 };

static bool is_url_byte(char c)
{
    return is_class(c, IS_WORD) || is_one_of(c, "-._~:/?#[]@!$&'()*+,;=%");
}

static size_t url_end(rt_str text, size_t start, size_t i)
{
    size_t end = i;
    int depth = 0;
    for (; end < text.len && end - start < URL_MAX && is_url_byte(text.ptr[end]); end++) {
        depth += text.ptr[end] == '(';
        depth -= text.ptr[end] == ')';
        if (depth < 0 ||
            (text.ptr[end] == '\'' && before(&(privacy_scan){ .text = text }, start) == '\''))
            break;
    }
    while (end > i && is_one_of(text.ptr[end - 1], ".,;:!?'*]"))
        end--;
    return end;
}

typedef struct parts {
    rt_str user, password, host, rest;
} parts;

static parts split(rt_str after_scheme)
{
    size_t slash = 0, sign = SIZE_MAX, colon = 0;
    parts p = { 0 };
    while (slash < after_scheme.len && !is_one_of(after_scheme.ptr[slash], "/?#"))
        slash++;
    for (size_t i = 0; i < slash; i++)
        if (after_scheme.ptr[i] == '@')
            sign = i;
    p.host = rt_str_slice(after_scheme, sign == SIZE_MAX ? 0 : sign + 1, slash);
    p.rest = rt_str_slice(after_scheme, slash, after_scheme.len);
    if (sign == SIZE_MAX)
        return p;
    while (colon < sign && after_scheme.ptr[colon] != ':')
        colon++;
    p.user = rt_str_slice(after_scheme, 0, colon);
    p.password = rt_str_slice(after_scheme, colon + (colon < sign), sign);
    return p;
}

/* ?token=…, &password=…: credentials that are not before the host. */
static bool has_secret_argument(rt_str rest)
{
    static const char *const arguments[] = {
        "token=",      "password=", "passwd=", "pwd=",       "api_key=", "apikey=",
        "access_key=", "secret=",   "sig=",    "signature=", "auth=",    "key=",
    };
    for (size_t i = 0; i < RT_COUNT(arguments); i++) {
        size_t len = strlen(arguments[i]);
        for (ptrdiff_t from = 0; (size_t)from + len <= rest.len;) {
            ptrdiff_t found = rt_str_find(rt_str_slice(rest, (size_t)from, rest.len),
                                          (rt_str){ arguments[i], len });
            if (found < 0)
                break;
            size_t value = (size_t)(from + found) + len, end = value;
            while (end < rest.len && !is_one_of(rest.ptr[end], "&#"))
                end++;
            bool begins = found + from > 0 && is_one_of(rest.ptr[from + found - 1], "?&_-");
            if (begins && end - value >= 12 &&
                privacy_entropy(rt_str_slice(rest, value, end)) > 2.8)
                return true;
            from += found + 1;
        }
    }
    return false;
}

static bool is_placeholder(rt_str password)
{
    static const char *const empty[] = { "password", "pass", "secret", "token", "xxx", "PASSWORD" };
    if (password.len == 0 || is_one_of(password.ptr[0], "<$%{[*"))
        return true;
    for (size_t i = 0; i < RT_COUNT(empty); i++)
        if (rt_str_eq_c(password, empty[i]))
            return true;
    return rt_str_find(password, RT_STR("***")) >= 0;
}

/* Hosts of documents, code and standards, and names that lead nowhere from outside. */
static bool is_technical(rt_str host)
{
    static const char *const ends[] = {
        "localhost",
        ".local",
        ".internal",
        ".lan",
        ".svc",
        ".test",
        ".invalid",
        "github.com",
        "gitlab.com",
        "bitbucket.org",
        "w3.org",
        "schema.org",
        "json-schema.org",
        "xmlsoap.org",
        "npmjs.org",
        "npmjs.com",
        "pypi.org",
        "python.org",
        "debian.org",
        "ubuntu.com",
        "stackoverflow.com",
        "readthedocs.io",
        "golang.org",
        "docs.rs",
        "crates.io",
        "apache.org",
        "mozilla.org",
        "kernel.org",
        "docker.com",
        "docker.io",
        "kubernetes.io",
        "googleapis.com",
        "amazonaws.com",
        "cloudfront.net",
        "jsdelivr.net",
        "unpkg.com",
        "cdnjs.com",
        "microsoft.com",
        "oracle.com",
        "android.com",
        "githubusercontent.com",
        "gnu.org",
        "ietf.org",
        "rfc-editor.org",
        "nodejs.org",
        "maven.org",
        "sourceforge.net",
        "openapis.org",
        "rubygems.org",
        "gstatic.com",
    };
    size_t end = 0;
    while (end < host.len && host.ptr[end] != ':')
        end++;
    rt_str name = rt_str_slice(host, 0, end);
    if (!memchr(name.ptr, '.', name.len) || is_class(name.ptr[name.len - 1], IS_DIGIT))
        return true;
    for (size_t i = 0; i < RT_COUNT(ends); i++)
        if (ends[i][strlen(ends[i]) - 1] == name.ptr[name.len - 1] &&
            rt_str_ends(name, rt_str_of(ends[i])))
            return true;
    return rt_str_starts(name, RT_STR("api.")) || rt_str_starts(name, RT_STR("docs."));
}

static int score_url(rt_str after_scheme)
{
    parts p = split(after_scheme);
    if (p.host.len == 0)
        return 0;
    if (p.password.len && !is_placeholder(p.password) && !memchr(p.host.ptr, '@', p.host.len))
        return 96;
    if (has_secret_argument(p.rest))
        return 90;
    return is_technical(p.host) ? TECHNICAL : PLAIN;
}

size_t privacy_url(privacy_scan *scan, size_t i)
{
    rt_str text = scan->text;
    size_t start = i;
    if (at(text, i + 1) != '/' || at(text, i + 2) != '/' || !is_url_byte(at(text, i + 3)))
        return i;
    while (start && i - start < SCHEME_MAX &&
           (is_class(text.ptr[start - 1], IS_ALNUM) || is_one_of(text.ptr[start - 1], "+.-")))
        start--;
    while (start < i && !is_class(text.ptr[start], IS_LETTER))
        start++;
    if (start == i || !wants(scan, RT_PII_URL))
        return i;
    size_t end = url_end(text, start, i + 3);
    rt_str scheme = rt_str_slice(text, start, i);
    int score = score_url(rt_str_slice(text, i + 3, end));
    bool is_web = scheme.len >= 3 && (lower(scheme.ptr[0]) == 'h' || lower(scheme.ptr[0]) == 'f' ||
                                      lower(scheme.ptr[0]) == 'w');
    if (score < RT_PRIVACY_URL_SECRET && !is_web)
        score = RT_MIN(score, TECHNICAL);
    bool taken = privacy_add(scan, RT_PII_URL, start, end, score);
    /* A secret URL is one thing; a plain one may hold an address or key worth finding. */
    return taken && score >= RT_PRIVACY_URL_SECRET ? end : i + 3;
}

size_t privacy_www(privacy_scan *scan, size_t i)
{
    rt_str text = scan->text;
    if (lower(text.ptr[i]) != 'w' || lower(at(text, i + 1)) != 'w' ||
        lower(at(text, i + 2)) != 'w' || at(text, i + 3) != '.' ||
        !is_class(at(text, i + 4), IS_WORD) || is_class(before(scan, i), IS_WORD) ||
        is_one_of(before(scan, i), "/.@-_"))
        return i;
    size_t end = url_end(text, i, i + 4);
    if (!memchr(text.ptr + i + 4, '.', end - i - 4))
        return i;
    privacy_add(scan, RT_PII_URL, i, end, score_url(rt_str_slice(text, i, end)));
    return i + 4;
}
