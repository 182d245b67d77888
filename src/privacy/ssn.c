/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ssn.c - social security numbers of the United States.
 *
 * 123-45-6789 needs no words beside it; other spellings do, because every country has numbers of
 * nine digits. Never given out: areas 000, 666 and 900 to 999, group 00, serial 0000.
 */
#include "privacy/privacy_internal.h"

static bool is_possible(const char d[9])
{
    return memcmp(d, "000", 3) != 0 && memcmp(d, "666", 3) != 0 && d[0] != '9' &&
           memcmp(d + 3, "00", 2) != 0 && memcmp(d + 5, "0000", 4) != 0;
}

static bool is_joined(const privacy_scan *scan, const cluster *c, size_t g, size_t last)
{
    size_t start = c->groups[g].start, end = c->groups[last].end;
    char prior = before(scan, start), next = at(scan->text, end);
    if (is_class(prior, IS_WORD) || is_class(next, IS_WORD) || is_one_of(prior, "_+$@/."))
        return true;
    if (prior == '-' && start >= 2 && is_class(scan->text.ptr[start - 2], IS_ALNUM))
        return true;
    return is_one_of(next, "_@%/") ||
           (is_one_of(next, "-.") && is_class(at(scan->text, end + 1), IS_ALNUM));
}

/* The shape alone: 3-2-4 with one kind of separator, or one run. */
static int shape_score(const cluster *c, size_t g, size_t last)
{
    const group *a = &c->groups[g];
    if (last == g)
        return a->len == 9 ? 8 : 0;
    if (a[0].len != 3 || a[1].len != 2 || a[2].len != 4 || a[1].sep != a[2].sep)
        return 0;
    return a[1].sep == SEP_DASH ? 70 : a[1].sep == SEP_SPACE || a[1].sep == SEP_DOT ? 42 : 0;
}

static int score_ssn(privacy_scan *scan, const cluster *c, size_t g, size_t last)
{
    char digits[10];
    privacy_context context;
    int score = shape_score(c, g, last);
    if (!score || privacy_cluster_digits(scan->text, c, g, last, digits, 10) != 9 ||
        !is_possible(digits) || is_joined(scan, c, g, last))
        return 0;
    privacy_context_at(scan, c->groups[g].start, c->groups[last].end, &context);
    unsigned ssn = context.distance[TOPIC_SSN], other = context.distance[TOPIC_FOREIGN];
    if (ssn < TOPIC_FAR && ssn <= other)
        return score + 45 > 95 ? 95 : score + 45;
    if (other < TOPIC_FAR || near(&context, TOPIC_PHONE, 2) || near(&context, TOPIC_NUMBER, 1))
        return score - 30;
    return score;
}

size_t privacy_ssn(privacy_scan *scan, const cluster *c, size_t g)
{
    size_t last = c->groups[g].len == 9 ? g : g + 2;
    if (!wants(scan, RT_PII_SSN) || last >= c->count)
        return 0;
    int score = score_ssn(scan, c, g, last);
    bool taken =
        score > 0 && privacy_add(scan, RT_PII_SSN, c->groups[g].start, c->groups[last].end, score);
    return taken ? last - g + 1 : 0;
}
