/* SPDX-License-Identifier: Apache-2.0 */
/*
 * card.c - payment cards: issuer, length, Luhn's checksum.
 *
 * One random number in ten passes the checksum, so one run of digits without grouping must also
 * have an issuer's length, and not be called an order, a trace or the like.
 */
#include "privacy/privacy_internal.h"

enum { CARD_MIN = 12, CARD_MAX = 19 };

static const struct issuer {
    unsigned low, high; /* of the first six digits */
    uint32_t lengths;   /* one bit each */
    int bare;           /* the score of one run of digits */
} issuers[] = {
#define LEN(n) (UINT32_C(1) << (n))
    { 400000, 499999, LEN(16), 66 },           /* Visa */
    { 400000, 499999, LEN(13) | LEN(19), 55 }, /* Visa, old and new */
    { 510000, 559999, LEN(16), 66 },           /* Mastercard */
    { 222100, 272099, LEN(16), 62 },           /* Mastercard */
    { 340000, 349999, LEN(15), 66 },           /* American Express */
    { 370000, 379999, LEN(15), 66 },           /* American Express */
    { 601100, 601199, LEN(16) | LEN(19), 64 }, /* Discover */
    { 644000, 659999, LEN(16) | LEN(19), 64 }, /* Discover */
    { 352800, 358999, LEN(16) | LEN(19), 62 }, /* JCB */
    { 350000, 359999, LEN(16), 56 },           /* JCB, as many make them up */
    { 60400, 60499, LEN(12) | LEN(13) | LEN(16) | LEN(18) | LEN(19), 40 }, /* Laser, Maestro */
    { 180000, 180099, LEN(15), 55 },                                       /* JCB, old */
    { 213100, 213199, LEN(15), 55 },                                       /* JCB, old */
    { 300000, 305999, LEN(14) | LEN(16), 58 },                             /* Diners Club */
    { 309500, 309599, LEN(14) | LEN(16), 58 },                             /* Diners Club */
    { 360000, 369999, LEN(14) | LEN(16), 58 },                             /* Diners Club */
    { 380000, 399999, LEN(14) | LEN(16), 58 },                             /* Diners Club */
    { 620000, 629999, LEN(16) | LEN(17) | LEN(18) | LEN(19), 60 },         /* UnionPay */
    { 220000, 220499, LEN(16) | LEN(17) | LEN(18) | LEN(19), 56 },         /* Mir */
    { 508500, 508999, LEN(16), 56 },                                       /* RuPay */
    { 810000, 829999, LEN(16), 52 },                                       /* RuPay, UnionPay */
    { 500000, 509999, LEN(12) | LEN(13) | LEN(14) | LEN(15) | LEN(17) | LEN(18) | LEN(19),
      52 },                          /* Maestro */
    { 500000, 509999, LEN(16), 60 }, /* Maestro, Elo */
    { 560000, 589999, LEN(12) | LEN(13) | LEN(14) | LEN(15) | LEN(17) | LEN(18) | LEN(19),
      52 },                          /* Maestro */
    { 560000, 589999, LEN(16), 60 }, /* Maestro */
    { 600000, 699999, LEN(12) | LEN(13) | LEN(14) | LEN(15) | LEN(16) | LEN(17) | LEN(18) | LEN(19),
      52 }, /* Maestro, and others */
#undef LEN
};

static bool passes_luhn(const char *digits, size_t n)
{
    unsigned sum = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned d = (unsigned)(digits[n - 1 - i] - '0');
        if (i % 2)
            d = d > 4 ? d * 2 - 9 : d * 2;
        sum += d;
    }
    return sum % 10 == 0;
}

static int issuer_score(const char *digits, size_t n)
{
    unsigned first = 0;
    int best = 0;
    for (size_t i = 0; i < 6; i++)
        first = first * 10 + (unsigned)(digits[i] - '0');
    for (size_t i = 0; i < RT_COUNT(issuers); i++)
        if (first >= issuers[i].low && first <= issuers[i].high && (issuers[i].lengths >> n & 1) &&
            issuers[i].bare > best)
            best = issuers[i].bare;
    return best;
}

/* 4-4-4-4, 4-4-4-4-3, 4-6-5, 4-6-4: as printed on cards, with one kind of separator. */
static bool is_card_grouping(const cluster *c, size_t g, size_t last)
{
    size_t n = last - g + 1;
    const group *a = &c->groups[g];
    bool is_three = n == 3 && ((a[1].len == 6 && (a[2].len == 4 || a[2].len == 5)) ||
                               (a[1].len == 4 && a[2].len == 4)); /* Amex, Diners; Maestro */
    if (a[0].len != 4 || (n == 3 ? !is_three : n < 4 || n > 5))
        return false;
    for (size_t k = 1; k < n; k++) {
        if (a[k].sep != a[1].sep || (a[k].sep != SEP_SPACE && a[k].sep != SEP_DASH &&
                                     a[k].sep != SEP_DOT && a[k].sep != SEP_WIDE))
            return false;
        if (n > 3 && (k < 4 && k + 1 < n ? a[k].len != 4 : a[k].len > 4))
            return false;
    }
    return true;
}

/* Letters, or a number that goes on: it is a part of something longer. */
static bool is_cut_off(const privacy_scan *scan, const cluster *c, size_t g, size_t last)
{
    size_t start = c->groups[g].start, end = c->groups[last].end;
    char prior = before(scan, start), next = at(scan->text, end);
    bool joined_before = (prior == '.' || prior == '-' || prior == '/') && start >= 2 &&
                         is_class(scan->text.ptr[start - 2], IS_ALNUM);
    bool joined_after =
        (next == '.' || next == '-' || next == '/') && is_class(at(scan->text, end + 1), IS_ALNUM);
    return is_class(prior, IS_WORD) || is_class(next, IS_WORD) || prior == '_' || next == '_' ||
           prior == '+' || joined_before || joined_after;
}

static bool is_hex_word(rt_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!is_class(s.ptr[i], IS_HEX) || is_class(s.ptr[i], IS_LOWER))
            return false;
    return s.len == 4;
}

/* "…5959 [6608 6791 6018 2345] 7FC9…": more words of four around it make it a dump of memory. */
static bool is_in_dump(rt_str text, size_t start, size_t end)
{
    bool after = at(text, end) == ' ' && is_hex_word(rt_str_slice(text, end + 1, end + 5)) &&
                 !is_class(at(text, end + 5), IS_WORD);
    bool ahead = start >= 5 && text.ptr[start - 1] == ' ' &&
                 is_hex_word(rt_str_slice(text, start - 5, start - 1)) &&
                 !(start >= 6 && is_class(text.ptr[start - 6], IS_WORD));
    return after || ahead;
}

static int score_run(const privacy_context *context, int base)
{
    unsigned card = context->distance[TOPIC_CARD];
    if (card < TOPIC_FAR)
        return base + 30;
    if (near(context, TOPIC_NUMBER, 3) || near(context, TOPIC_FOREIGN, 3) ||
        near(context, TOPIC_PHONE, 2) || near(context, TOPIC_BANK, 2))
        return base - 25;
    return base;
}

/* S0 took any 16 digits for a card, in one run or in four groups. */
static int lenient_score(const cluster *c, size_t g, size_t last)
{
    bool fits = last == g
                    ? c->groups[g].len == 16
                    : last == g + 3 && is_card_grouping(c, g, last) && c->groups[last].len == 4;
    return fits ? RT_PRIVACY_MIN_SCORE : 0;
}

static int score_card(privacy_scan *scan, const cluster *c, size_t g, size_t last)
{
    char digits[CARD_MAX + 1];
    privacy_context context;
    size_t n = privacy_cluster_digits(scan->text, c, g, last, digits, sizeof(digits));
    if (n < CARD_MIN || n > CARD_MAX || is_cut_off(scan, c, g, last))
        return 0;
    int score = passes_luhn(digits, n) ? issuer_score(digits, n) : 0;
    if (score) {
        privacy_context_at(scan, c->groups[g].start, c->groups[last].end, &context);
        bool is_short = last > g && n == CARD_MIN;
        score = last > g && !is_short ? score + 30 : score_run(&context, score - is_short * 15);
        if (last > g && is_in_dump(scan->text, c->groups[g].start, c->groups[last].end))
            score = 0;
    }
    return scan->is_lenient ? RT_MAX(score, lenient_score(c, g, last)) : score;
}

size_t privacy_card(privacy_scan *scan, const cluster *c, size_t g)
{
    if (!wants(scan, RT_PII_CREDIT_CARD) || c->groups[g].len < 4)
        return 0;
    for (size_t last = RT_MIN(g + 4, c->count - 1) + 1; last-- > g;) {
        if (last > g && !is_card_grouping(c, g, last))
            continue;
        int score = score_card(scan, c, g, last);
        if (score &&
            privacy_add(scan, RT_PII_CREDIT_CARD, c->groups[g].start, c->groups[last].end, score))
            return last - g + 1;
    }
    return 0;
}
