/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phone.c - telephone numbers of North America and elsewhere.
 *
 * No list of the world's numbering plans: those miss most numbers people write. Instead the shape
 * is scored (a plus, brackets, how the digits are grouped, how many there are), then the words
 * around it, then what touches it. Every run of groups is tried, and the best one counts.
 */
#include "privacy/privacy_internal.h"

#include <stdlib.h>

enum { DIGITS_MAX = 17, PHONE_GROUPS_MAX = 7, WORDS_HEARD = 8 };

typedef struct candidate {
    const cluster *c;
    size_t first, last;
    char digits[DIGITS_MAX + 1];
    size_t n;
    bool has_plus;
} candidate;

static const group *part(const candidate *p, size_t k)
{
    return &p->c->groups[p->first + k];
}

static size_t parts(const candidate *p)
{
    return p->last - p->first + 1;
}

/* The lengths of its groups as the digits of a number: 0x334 for (555) 123-4567. */
static unsigned form_of(const candidate *p)
{
    unsigned form = 0;
    for (size_t k = 0; k < parts(p); k++)
        form = form << 4 | RT_MIN(part(p, k)->len, 9u);
    return form;
}
_Static_assert(PHONE_GROUPS_MAX < 8, "a form fits 32 bits");

static bool has_one_separator(const candidate *p)
{
    for (size_t k = 2; k < parts(p); k++)
        if (part(p, k)->sep != part(p, 1)->sep)
            return false;
    return true;
}

static bool has_separator(const candidate *p, separator sep)
{
    for (size_t k = 1; k < parts(p); k++)
        if (part(p, k)->sep == sep)
            return true;
    return false;
}

/* ---- shapes ---- */

/* Calling codes that no country has, by their first digits. */
static const char unused_codes[][4] = {
    "210", "214", "215", "217", "219", "259", "28",  "292", "293", "294", "295", "296",
    "384", "388", "422", "424", "425", "426", "427", "428", "429", "693", "694", "695",
    "696", "697", "698", "699", "71",  "72",  "801", "802", "803", "804", "805", "806",
    "807", "809", "83",  "851", "854", "857", "858", "859", "871", "872", "873", "874",
    "875", "876", "877", "879", "889", "89",  "969", "978", "990", "997", "999", "0",
};
static bool is_unused[1000]; /* by three digits */

void privacy_phone_learn(void)
{
    for (size_t i = 0; i < RT_COUNT(unused_codes); i++) {
        unsigned low = (unsigned)atoi(unused_codes[i]), count = 1;
        for (size_t n = strlen(unused_codes[i]); n < 3; n++) {
            low *= 10;
            count *= 10;
        }
        memset(is_unused + low, true, count);
    }
}

static bool is_calling_code(const char *d)
{
    return !is_unused[(d[0] - '0') * 100 + (d[1] - '0') * 10 + (d[2] - '0')];
}

static int score_plus(const candidate *p)
{
    if (p->n < 8 || p->n > 15)
        return 0;
    int score = parts(p) > 1 ? 82 : p->n >= 10 ? 76 : 60;
    for (size_t k = 1; k < parts(p); k++)
        if (part(p, k)->len == 1 && !part(p, k)->is_in_parens && k + 1 == parts(p))
            score -= 30;
    return score + (is_calling_code(p->digits) ? 8 : -6);
}

static bool is_north_american(const char *d)
{
    return d[0] >= '2' && d[3] >= '2';
}

/* Ten digits as 3-3-4, or eleven with a 1 before them. */
static int score_north_american(const candidate *p, unsigned form)
{
    bool has_one = form == 0x1334 && p->digits[0] == '1';
    bool has_001 = form == 0x3334 && memcmp(p->digits, "001", 3) == 0;
    size_t lead = has_one || has_001;
    if (!lead && form != 0x334) {
        bool is_glued = form == 0x37 && part(p, 0)->is_in_parens;
        return is_glued ? 75 : 0;
    }
    bool is_valid = is_north_american(p->digits + (has_one ? 1 : has_001 ? 3 : 0));
    if (part(p, lead)->is_in_parens)
        return 88;
    static const unsigned char by_separator[][2] = {
        [SEP_SPACE] = { 62, 52 }, [SEP_DOT] = { 70, 58 },   [SEP_DASH] = { 76, 62 },
        [SEP_SLASH] = { 55, 45 }, [SEP_PAREN] = { 75, 65 }, [SEP_WIDE] = { 45, 30 },
    };
    int score = by_separator[part(p, lead + 1)->sep][!is_valid];
    if (part(p, lead + 1)->sep != part(p, lead + 2)->sep)
        score -= 6;
    return score + (lead ? 12 : 0);
}

/* 0044 20…, 00 33 6…, 011 49…: dialled across a border. */
static int score_abroad(const candidate *p)
{
    if (p->digits[0] != '0')
        return 0;
    size_t lead = p->digits[1] == '1' && p->digits[2] == '1' && p->n >= 12 ? 3
                  : p->digits[1] == '0'                                    ? 2
                                                                           : 0;
    if (!lead || part(p, 0)->len < 2 || p->n < lead + 8 || p->n > lead + 14 ||
        p->digits[lead] == '0' || !is_calling_code(p->digits + lead))
        return 0;
    return parts(p) > 1 ? (lead == 2 ? 70 : 60) : lead == 2 && p->n >= 12 ? 52 : 25;
}

/* 020 7946 0958, 01 23 45 67 89, (030) 123456: with the trunk prefix of most countries. */
static int score_national(const candidate *p, unsigned form)
{
    if (p->digits[0] != '0' || p->digits[1] == '0' || p->n < 9 || p->n > 12)
        return 0;
    if (parts(p) == 1)
        return p->n == 10 || p->n == 11 ? 51 : 15;
    for (size_t k = 0; k < parts(p); k++)
        if (part(p, k)->len < 2 && !part(p, k)->is_in_parens)
            return 0;
    if (form == 0x22222)
        return 76;
    if (form == 0x222222)
        return 20; /* numbers drawn in a lottery */
    if (part(p, 0)->is_in_parens)
        return 76;
    if (form == 0x54)
        return 12; /* 02110-1301 is a postcode */
    if (form == 0x333)
        return 44; /* Canada's 046-454-286 is a person's number */
    if (parts(p) == 2)
        return part(p, 1)->sep == SEP_DOT                     ? 30
               : part(p, 0)->len >= 2 && part(p, 0)->len <= 5 ? 58
                                                              : 25;
    return 64;
}

/* How the rest of the world groups its digits, without a plus and without a zero before. */
static int score_form(const candidate *p, unsigned form)
{
    char first = p->digits[0];
    int otherwise = p->n >= 9 && p->n <= 13 && parts(p) >= 2 ? 14 : 0;
    switch (form) {
    case 0x13322:
        return first == '7' || first == '8' ? 68 : otherwise;
    case 0x1343:
        return first == '1' ? 40 : otherwise;
    case 0x344:
        return first != '0' && first != '2' && first != '9' ? 55 : otherwise;
    case 0x244:
        return first != '0' ? 40 : otherwise;
    case 0x55:
        return first >= '6' ? 45 : otherwise;
    case 0x433:
        return first == '1' ? 56 : 45;
    case 0x254:
        return 55;
    case 0x3322:
    case 0x2254:
        return 52;
    case 0x255:
        return 50;
    case 0x2334:
        return 46;
    case 0x3222:
    case 0x3223:
    case 0x2244:
        return 44;
    case 0x343:
    case 0x37:
        return 42;
    case 0x32222:
        return 40;
    case 0x2322:
        return 38;
    case 0x2333:
    case 0x333:
    case 0x434:
    case 0x28:
    case 0x335:
        return 36;
    case 0x3333:
    case 0x2222:
    case 0x22222:
    case 0x36:
    case 0x46:
    case 0x56:
    case 0x45:
    case 0x47:
    case 0x234:
    case 0x2323:
    case 0x3232:
    case 0x2433:
        return 34;
    case 0x34:
        return 32;
    case 0x44:
    case 0x233:
    case 0x1333:
    case 0x1234:
    case 0x3343:
    case 0x345:
    case 0x24222:
    case 0x12222:
    case 0x243:
        return 30;
    case 0x322:
    case 0x232:
    case 0x323:
        return 28;
    case 0x29:
        return 26;
    case 0x444:
        return 24;
    case 0x54:
    case 0x64:
    case 0x27:
        return 12;
    case 0x224:
        return 10;
    case 0x334:
        return 0;
    default:
        return otherwise;
    }
}

/* A bracket around the area code makes nearly anything a phone number. */
static int score_bracketed(const candidate *p)
{
    bool is_first = part(p, 0)->is_in_parens && part(p, 0)->len >= 2 && part(p, 0)->len <= 5;
    bool is_second = parts(p) > 2 && part(p, 1)->is_in_parens && part(p, 0)->len <= 3;
    if ((!is_first && !is_second) || p->n < 8 || p->n > 14 || parts(p) < 2)
        return 0;
    return is_second ? 72 : p->n >= 9 ? 72 : 58;
}

static int score_run(const candidate *p)
{
    if (p->n < 7 || p->n > 15)
        return 0;
    return p->n == 10 && is_north_american(p->digits) ? 34 : 12;
}

/* "469-474 (1978)": brackets belong around an area code, years stand for themselves. */
static bool has_odd_parts(const candidate *p)
{
    bool is_padded = parts(p) > 1; /* 0055 0308 0301: code points and the like */
    for (size_t k = 0, i = 0; k < parts(p); i += part(p, k)->len, k++) {
        if (k > 1 && part(p, k)->is_in_parens)
            return true;
        is_padded &= part(p, k)->len == 4 && p->digits[i] == '0';
    }
    bool is_years = parts(p) == 2 && part(p, 0)->len == 4 && part(p, 1)->len == 4 &&
                    (p->digits[0] == '1' || p->digits[0] == '2') &&
                    (p->digits[4] == '1' || p->digits[4] == '2') &&
                    (p->digits[1] == '9' || p->digits[1] == '0');
    return is_years || is_padded;
}

/* 14.250.000: dots every three digits. */
static bool is_in_thousands(const candidate *p)
{
    for (size_t k = 1; k < parts(p); k++)
        if (part(p, k)->sep != SEP_DOT || part(p, k)->len != 3)
            return false;
    return parts(p) > 1;
}

static int score_shape(const candidate *p)
{
    if (has_odd_parts(p))
        return 0;
    if (p->has_plus)
        return score_plus(p);
    unsigned form = form_of(p);
    int score = RT_MAX(score_north_american(p, form), score_abroad(p));
    int other = RT_MAX(score_national(p, form), score_bracketed(p));
    score = RT_MAX(score, other);
    if (score)
        return score;
    if (parts(p) == 1)
        return score_run(p);
    score = score_form(p, form);
    /* 1234.5678 and 40.712776 are decimal fractions, 123.456.789-09 is a tax number. */
    if (parts(p) == 2 && part(p, 1)->sep == SEP_DOT)
        return p->n >= 9 && part(p, 0)->len >= 4 && part(p, 1)->len >= 4 ? 9 : 0;
    if (form == 0x3332 || (p->n <= 12 && parts(p) == 4 && has_one_separator(p) &&
                           part(p, 1)->sep == SEP_DOT && part(p, 3)->len <= 3))
        return 0;
    if (is_in_thousands(p))
        return 10;
    return has_separator(p, SEP_SLASH) ? score - 12 : score;
}

/* ---- what touches it, what surrounds it ---- */

/* Signs of money in UTF-8: pound and yen are C2 A3 and C2 A5, the euro is E2 82 AC. */
static bool has_money(rt_str s)
{
    static const char *const money[] = { "\xC2\xA3", "\xC2\xA5", "\xE2\x82\xAC", "\xE2\x82\xB9" };
    bool is_plain = true;
    for (size_t i = 0; i < s.len; i++)
        is_plain &= !is_class(s.ptr[i], IS_HIGH);
    for (size_t i = 0; !is_plain && i < RT_COUNT(money); i++)
        if (rt_str_find(s, rt_str_of(money[i])) >= 0)
            return true;
    return false;
}

static bool touches(const privacy_scan *scan, size_t start, size_t end)
{
    rt_str text = scan->text;
    char prior = before(scan, start), next = at(text, end);
    char prior2 = start >= 2 ? text.ptr[start - 2] : '\0', next2 = at(text, end + 1);
    if (is_class(prior, IS_ALNUM) || is_one_of(prior, "_@$%&\\") || is_class(next, IS_ALNUM) ||
        is_one_of(next, "_@%$"))
        return true;
    if (at(text, start) == '+' && is_one_of(prior, ")]"))
        return true;
    if (is_one_of(prior, ".-/+*") && is_class(prior2, IS_ALNUM))
        return true;
    if ((prior == ':' || prior == ',') && is_class(prior2, IS_DIGIT))
        return true;
    if (is_one_of(next, ".-/+*:") && is_class(next2, IS_ALNUM))
        return true;
    return (prior == ' ' && prior2 == '$') ||
           has_money(rt_str_slice(text, start >= 4 ? start - 4 : 0, start)) ||
           has_money(rt_str_slice(text, end, end + 4));
}

/* More groups beside it, joined in the way its own are joined: a part of a longer number. */
static int crowding(const candidate *p)
{
    const cluster *c = p->c;
    int cost = 0;
    separator own = parts(p) > 1 ? part(p, 1)->sep : SEP_NONE;
    bool is_after_date = p->first && c->groups[p->first - 1].is_dead;
    if (p->first && !p->has_plus && !part(p, 0)->is_in_parens) {
        separator sep = c->groups[p->first].sep;
        cost += sep != SEP_SPACE && sep != SEP_WIDE ? 100 : sep == own && !is_after_date ? 24 : 6;
    }
    if (p->last + 1 < c->count) {
        separator sep = c->groups[p->last + 1].sep;
        bool opens = c->groups[p->last + 1].is_in_parens;
        bool is_row = c->groups[p->last + 1].len == c->groups[p->last].len; /* 04 11 23 35 42 49 */
        cost += opens                                 ? 4
                : sep != SEP_SPACE && sep != SEP_WIDE ? 100
                : sep == own                          ? 24 + 8 * is_row
                                                      : 6;
    }
    return cost;
}

static int weigh_context(const privacy_context *context, int score, bool is_run, bool is_pair)
{
    unsigned phone = context->distance[TOPIC_PHONE], other = context->distance[TOPIC_NUMBER];
    unsigned foreign = context->distance[TOPIC_FOREIGN];
    static const topic rivals[] = { TOPIC_FOREIGN, TOPIC_CARD,     TOPIC_SSN,
                                    TOPIC_BANK,    TOPIC_PASSPORT, TOPIC_VERSION };
    unsigned rival = other;
    for (size_t i = 0; i < RT_COUNT(rivals); i++)
        rival = RT_MIN(rival, (unsigned)context->distance[rivals[i]]);
    unsigned reach = is_run ? 4 : score < 20 ? (is_pair ? 2 : 1) : WORDS_HEARD;
    if (phone <= rival && phone <= reach)
        return score + (phone <= 3 ? 42 : 34);
    if (foreign <= 4 || (rival <= 2 && rival < TOPIC_FAR))
        return score - 32;
    if (rival <= 5 || near(context, TOPIC_MONEY, 1))
        return score - 16;
    return score;
}

/* " x123", " ext. 123", " #123": returns where it ends, or `end`. */
static size_t extension_end(rt_str text, size_t end)
{
    static const char *const signs[] = {
        "extension", "ext.", "ext", "x", "#", "poste", "durchwahl"
    };
    size_t i = end;
    while (i < text.len && i < end + 2 && is_one_of(text.ptr[i], " ,"))
        i++;
    if (!is_one_of(lower(at(text, i)), "ex#pd"))
        return end;
    for (size_t k = 0; k < RT_COUNT(signs); k++) {
        size_t len = strlen(signs[k]), j = 0;
        while (j < len && lower(at(text, i + j)) == signs[k][j])
            j++;
        if (j < len)
            continue;
        size_t from = i + len + (is_one_of(at(text, i + len), " .:")), to = from;
        while (to < text.len && to < from + 6 && is_class(text.ptr[to], IS_DIGIT))
            to++;
        if (to > from && !is_class(at(text, to), IS_ALNUM) && (signs[k][0] != '#' || i > end))
            return to;
    }
    return end;
}

/* 1111111, 0123456789, 01 02 03 04: digits somebody counted with. */
static bool is_counting(const candidate *p)
{
    bool is_same = true, is_steps = parts(p) > 2, is_up = parts(p) == 1;
    for (size_t i = 1; i < p->n; i++) {
        is_same &= p->digits[i] == p->digits[0];
        is_up &= (p->digits[i] - p->digits[i - 1] + 10) % 10 == 1;
    }
    for (size_t k = 1; k < parts(p) && is_steps; k++)
        is_steps = part(p, k)->len == 2 && part(p, k - 1)->len == 2 &&
                   p->digits[2 * k + 1] == p->digits[2 * k - 1] + 1;
    return is_same || is_steps || is_up;
}

/* ---- putting it together ---- */

static int score_candidate(privacy_scan *scan, candidate *p, size_t *end)
{
    privacy_context context;
    const cluster *c = p->c;
    p->n = privacy_cluster_digits(scan->text, c, p->first, p->last, p->digits, DIGITS_MAX);
    p->digits[p->n] = '\0';
    if (p->n < 7 || p->n == DIGITS_MAX || is_counting(p))
        return 0;
    int score = score_shape(p) - crowding(p);
    if (score < 8)
        return 0;
    size_t start = p->first ? c->groups[p->first].start : c->start;
    size_t tail = extension_end(scan->text, *end);
    if (tail != *end && score >= 28) {
        *end = tail;
        score += 12;
    }
    if (touches(scan, start, *end))
        return 0;
    privacy_context_at(scan, start, *end, &context);
    score = weigh_context(&context, score, parts(p) == 1 && !p->has_plus, parts(p) == 2);
    bool is_told = near(&context, TOPIC_PHONE, 1);
    if (before(scan, start) == '#' || (before(scan, start) == '=' && !is_told))
        score -= before(scan, start) == '#' ? 30 : 5;
    return score;
}

static bool is_alive(const cluster *c, size_t first, size_t last)
{
    for (size_t g = first; g <= last; g++)
        if (c->groups[g].is_dead || c->groups[g].len > 15)
            return false;
    return true;
}

size_t privacy_phone(privacy_scan *scan, const cluster *c, size_t g)
{
    size_t best_groups = 0, best_end = 0, best_digits = 0;
    int best = 0;
    if (!wants(scan, RT_PII_PHONE))
        return 0;
    for (size_t last = g; last < c->count && last < g + PHONE_GROUPS_MAX; last++) {
        if (!is_alive(c, g, last))
            break;
        candidate p = { .c = c, .first = g, .last = last, .has_plus = g == 0 && c->has_plus };
        size_t end = c->groups[last].end;
        int score = score_candidate(scan, &p, &end);
        if (score > best || (score == best && score)) {
            best = score;
            best_groups = last - g + 1;
            best_end = end;
            best_digits = p.n;
        }
    }
    if (scan->is_lenient && best_digits == 10 && best >= 30)
        best = RT_MAX(best, RT_PRIVACY_MIN_SCORE);
    size_t start = g ? c->groups[g].start - c->groups[g].is_in_parens : c->start;
    if (best_groups && start < c->groups[g].start && scan->text.ptr[start] == '(' &&
        !c->groups[g].is_in_parens)
        start += !memchr(scan->text.ptr + start, ')', best_end - start);
    return best_groups && privacy_add(scan, RT_PII_PHONE, start, best_end, best) ? best_groups : 0;
}
