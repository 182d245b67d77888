/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number.c - a number in the text: its groups of digits, and who may claim them.
 *
 * All number-like types begin with one reading of the digit groups and what separates them.
 * Dates and times are struck out first, because they are what phones are most often confused
 * with; then each group is offered to the recognisers, the strictest first.
 */
#include "privacy/privacy_internal.h"

/* ---- reading groups ---- */

typedef struct mark {
    separator kind; /* SEP_NONE: it is no separator */
    size_t len;
} mark;

/* No-break spaces, and the hyphens and dashes from U+2010 to U+2013. */
static mark wide_mark(rt_str text, size_t i)
{
    unsigned char a = (unsigned char)text.ptr[i], b = (unsigned char)at(text, i + 1),
                  c = (unsigned char)at(text, i + 2);
    if (a == 0xC2 && b == 0xA0)
        return (mark){ SEP_SPACE, 2 };
    if (a != 0xE2 || b != 0x80)
        return (mark){ SEP_NONE, 0 };
    return c >= 0x90 && c <= 0x93 ? (mark){ SEP_DASH, 3 }
           : c == 0xAF            ? (mark){ SEP_SPACE, 3 }
                                  : (mark){ SEP_NONE, 0 };
}

static mark mark_at(rt_str text, size_t i)
{
    switch (at(text, i)) {
    case ' ':
        return (mark){ SEP_SPACE, 1 };
    case '.':
        return (mark){ SEP_DOT, 1 };
    case '-':
        return (mark){ SEP_DASH, 1 };
    case '/':
        return (mark){ SEP_SLASH, 1 };
    case ')':
        return (mark){ SEP_PAREN, 1 };
    default:
        return is_class(at(text, i), IS_HIGH) ? wide_mark(text, i) : (mark){ SEP_NONE, 0 };
    }
}

/* The size of what separates two groups at i, and its kind; 0: nothing does. */
static size_t separator_at(rt_str text, size_t i, separator *kind, bool *opens)
{
    size_t end = i;
    unsigned blanks = 0, signs = 0;
    *kind = SEP_SPACE;
    *opens = false;
    while (end < i + 8) {
        mark m = mark_at(text, end);
        if (m.kind == SEP_NONE && at(text, end) == '(' && !*opens) {
            *opens = true;
            end++;
            continue;
        }
        if (m.kind == SEP_NONE)
            break;
        if (m.kind == SEP_SPACE)
            blanks++;
        else if (m.kind == SEP_PAREN || *kind != SEP_PAREN)
            *kind = m.kind;
        signs += m.kind != SEP_SPACE && m.kind != SEP_PAREN;
        end += m.len;
    }
    if (end == i || blanks > 2 || signs > 1 || !is_class(at(text, end), IS_DIGIT))
        return 0;
    if ((blanks && signs && *kind != SEP_PAREN) || (blanks > 1 && *kind == SEP_SPACE))
        *kind = SEP_WIDE;
    return end - i;
}

void privacy_cluster_read(rt_str text, size_t i, cluster *out)
{
    separator sep = SEP_NONE;
    bool opens = i > 0 && text.ptr[i - 1] == '(';
    out->count = 0; /* the groups are filled in one by one: there are many, and few are used */
    out->has_plus = false;
    out->start = i - opens;
    if (out->start && text.ptr[out->start - 1] == '+') {
        out->has_plus = true;
        out->start--;
    } else if (opens && i >= 2 && text.ptr[i - 2] == ' ' && i >= 3 && text.ptr[i - 3] == '+') {
        out->start = i - 1; /* "+ (49) 30": rare, and the plus stays outside */
    }
    if (!opens && out->has_plus && out->start && text.ptr[out->start - 1] == '(') {
        opens = true;
        out->start--;
    }
    out->end = i;
    while (out->count < GROUPS_MAX && i - out->start < CLUSTER_BYTES_MAX) {
        group *g = &out->groups[out->count];
        size_t end = i;
        while (end < text.len && is_class(text.ptr[end], IS_DIGIT))
            end++;
        *g = (group){ .start = i, .end = end, .sep = sep };
        g->len = (unsigned char)RT_MIN(end - i, (size_t)255);
        g->is_in_parens = opens && at(text, end) == ')';
        out->count++;
        out->end = end;
        size_t n = separator_at(text, end, &sep, &opens);
        if (n == 0)
            break;
        i = end + n;
    }
}

size_t privacy_cluster_digits(rt_str text, const cluster *c, size_t first, size_t last, char *out,
                              size_t max)
{
    size_t n = 0;
    for (size_t g = first; g <= last; g++)
        for (size_t i = c->groups[g].start; i < c->groups[g].end && n < max; i++)
            out[n++] = text.ptr[i];
    return n;
}

/* ---- dates ---- */

static unsigned value_of(rt_str text, const group *g)
{
    unsigned value = 0;
    for (size_t i = g->start; i < g->end && i < g->start + 6; i++)
        value = value * 10 + (unsigned)(text.ptr[i] - '0');
    return value;
}

static bool is_day_and_month(unsigned a, unsigned b)
{
    return (a >= 1 && a <= 31 && b >= 1 && b <= 12) || (b >= 1 && b <= 31 && a >= 1 && a <= 12);
}

static bool is_year(unsigned y)
{
    return y >= 1850 && y <= 2150;
}

size_t privacy_cluster_date(rt_str text, const cluster *c, size_t g)
{
    const group *a = &c->groups[g];
    if (g + 2 >= c->count || a[1].sep != a[2].sep || a[1].sep == SEP_PAREN)
        return 0;
    unsigned x = value_of(text, &a[0]), y = value_of(text, &a[1]), z = value_of(text, &a[2]);
    if (a[0].len == 4 && a[1].len <= 2 && a[2].len <= 2 && is_year(x) && y >= 1 && y <= 12 &&
        z >= 1 && z <= 31)
        return 3;
    if (a[0].len > 2 || a[1].len > 2 || !is_day_and_month(x, y))
        return 0;
    if (a[2].len == 4 && is_year(z))
        return 3;
    bool has_more = g + 3 < c->count && a[3].sep == a[1].sep;
    return a[2].len == 2 && !has_more && a[1].sep != SEP_SPACE && (g == 0 || a[0].sep != a[1].sep)
               ? 3
               : 0;
}

/* 20240131, 202401311259 or 20240131125900 in one run. */
static bool is_stamp(rt_str text, const group *g)
{
    group year = *g, month = *g, day = *g;
    if (g->len != 8 && g->len != 12 && g->len != 14)
        return false;
    year.end = month.start = g->start + 4;
    month.end = day.start = g->start + 6;
    day.end = g->start + 8;
    unsigned y = value_of(text, &year), m = value_of(text, &month), d = value_of(text, &day);
    return y >= 1900 && y <= 2100 && m >= 1 && m <= 12 && d >= 1 && d <= 31;
}

/* 14:30 and 14:30:05, of which a cluster sees one end: the colon is no separator here. */
static bool is_time_part(rt_str text, const group *g)
{
    bool after = at(text, g->end) == ':' && is_class(at(text, g->end + 1), IS_DIGIT);
    bool behind = g->start >= 2 && text.ptr[g->start - 1] == ':' &&
                  is_class(text.ptr[g->start - 2], IS_DIGIT);
    return g->len <= 2 && (after || behind);
}

static void strike_dates(rt_str text, cluster *c)
{
    for (size_t g = 0; g < c->count; g++) {
        size_t n = privacy_cluster_date(text, c, g);
        if (is_stamp(text, &c->groups[g]) || is_time_part(text, &c->groups[g]))
            c->groups[g].is_dead = true;
        for (size_t k = g; k < g + n; k++)
            c->groups[k].is_dead = true;
        g += n ? n - 1 : 0;
    }
}

/* ---- who claims it ---- */

static size_t claim(privacy_scan *scan, const cluster *c, size_t g, size_t digits)
{
    static size_t (*const long_ones[])(privacy_scan *, const cluster *, size_t) = {
        privacy_card,
        privacy_ssn,
        privacy_phone,
    };
    size_t n = privacy_birth(scan, c, g);
    if (!n && g + 3 < c->count)
        n = privacy_ipv4(scan, c, g);
    for (size_t k = 0; !n && digits >= 7 && k < RT_COUNT(long_ones); k++)
        n = long_ones[k](scan, c, g);
    if (!n)
        privacy_address(scan, c, g);
    return n;
}

/* Digits in a word: "DE89…", "X1234567", "SW1A". */
static size_t in_a_word(privacy_scan *scan, size_t i)
{
    size_t end = i;
    size_t next = privacy_iban(scan, i);
    if (next != i)
        return next;
    while (end < scan->text.len && is_class(scan->text.ptr[end], IS_WORD))
        end++;
    privacy_document(scan, i, end);
    privacy_postcode(scan, i);
    return end;
}

size_t privacy_number(privacy_scan *scan, size_t i)
{
    cluster c;
    size_t digits = 0;
    char prior = before(scan, i);
    if (scan->secret_end && privacy_lone_secret(scan, i))
        return scan->spans[scan->count - 1].end;
    if (is_class(prior, IS_LETTER) || prior == '_')
        return in_a_word(scan, i);
    privacy_cluster_read(scan->text, i, &c);
    strike_dates(scan->text, &c);
    for (size_t g = 0; g < c.count; g++)
        digits += c.groups[g].len;
    if (c.count == GROUPS_MAX && digits <= 2 * GROUPS_MAX)
        return c.end; /* a row of small numbers, and more to come */
    for (size_t g = 0; g < c.count;) {
        size_t n = claim(scan, &c, g, digits);
        if (n == 0) {
            size_t end = c.groups[g].end;
            while (end < scan->text.len && is_class(scan->text.ptr[end], IS_WORD))
                end++;
            privacy_document(scan, c.groups[g].start, end);
        }
        g += n ? n : 1;
    }
    return c.end;
}
