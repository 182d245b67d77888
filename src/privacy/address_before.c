/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address_before.c - what stands before a house number: a street's name, or a post office box.
 */
#include "privacy/address_internal.h"

enum { NAME_WORDS_MAX = 6 };

/* How names of streets end where street and name are one word, and where that may be chance. */
static const char *const strong[] = {
    "straße",    "strasse", "str",    "gasse",  "platz",   "allee", "weg",    "straat",    "laan",
    "plein",     "gracht",  "singel", "steeg",  "vägen",   "gatan", "gata",   "väg",       "gränd",
    "vej",       "veien",   "vegen",  "gade",   "katu",    "utca",  "körút",  "chaussee",  "ufer",
    "damm",      "stieg",   "pfad",   "straße", "tér",     "út",    "baan",   "boulevard", "dreef",
    "plantsoen", "haugen",  "stien",  "bakken", "svingen", "allén", "stigen", "kuja",      "polku",
};
static const char *const weak[] = { "ring",  "hof",   "markt",  "dijk", "kade",  "wall",   "graben",
                                    "berg",  "bogen", "stræde", "kuja", "polku", "torget", "brücke",
                                    "steig", "gate",  "park",   "plan", "tie" };

/* One bit for each two bytes that such a name ends in: most words are told apart by these. */
static uint64_t last_two[4];

static unsigned hash_two(char a, char b)
{
    return ((unsigned char)lower(a) * 7u + (unsigned char)lower(b)) & 255;
}

static void learn_ends(const char *const *ends, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t n = strlen(ends[i]);
        unsigned h = hash_two(ends[i][n - 2], ends[i][n - 1]);
        last_two[h / 64] |= UINT64_C(1) << (h % 64);
    }
}

void privacy_address_learn(void)
{
    learn_ends(strong, RT_COUNT(strong));
    learn_ends(weak, RT_COUNT(weak));
}

static bool ends_like(rt_str s, const char *const *ends, size_t count)
{
    char folded[64];
    size_t len;
    if (!privacy_fold(s, folded, sizeof(folded), &len))
        return false;
    for (size_t i = 0; i < count; i++) {
        size_t n = strlen(ends[i]);
        if (n <= len && ends[i][n - 1] == folded[len - 1] &&
            memcmp(folded + len - n, ends[i], n) == 0)
            return true;
    }
    return false;
}

static int score_compound(rt_str s)
{
    if (s.len < 3)
        return 0;
    unsigned h = hash_two(s.ptr[s.len - 2], s.ptr[s.len - 1]);
    if (!(last_two[h / 64] >> (h % 64) & 1))
        return 0;
    if (!is_class(s.ptr[0], IS_UPPER | IS_HIGH)) /* Haagan pappilankatu */
        return s.len > 7 && ends_like(s, (const char *const[]){ "katu", "kuja", "polku" }, 3) ? 60
                                                                                              : 0;
    if (ends_like(s, strong, RT_COUNT(strong)))
        return s.len > 4 ? 74 : 66;
    bool is_proper = s.len > 5 && is_class(s.ptr[1], IS_LOWER | IS_HIGH); /* not "STRING 7" */
    return is_proper && ends_like(s, weak, RT_COUNT(weak)) ? 40 : 0;
}

/* "Petőfi Sándor utca [12]", "King Street [5]": the name stands before the street's word. */
static street named_before(rt_str text, const address_word *kind)
{
    address_word w;
    size_t i = kind->start, begin = SIZE_MAX;
    for (unsigned k = 0; k < 3 && address_previous(text, i, &w) && !w.has_digit; k++) {
        if (w.is_title)
            begin = w.start;
        else if (k > 0 || !is_class(text.ptr[kind->start], IS_LOWER))
            break; /* "Petőfi sándor utca" */
        i = w.start;
    }
    static const char *const hungarian[] = { "utca", "útja", "út", "tér", "köz", "körút" };
    bool is_hungarian = false;
    for (size_t k = 0; k < RT_COUNT(hungarian); k++)
        is_hungarian |= rt_str_eq_c(address_text(text, kind), hungarian[k]);
    if (begin == SIZE_MAX || (!is_hungarian && !is_class(text.ptr[kind->start], IS_UPPER)))
        return (street){ 0 };
    return (street){ begin, is_hungarian ? 70 : 46 };
}

/* Where a street's name before `i` begins, as in "Berliner Straße [12]"; score 0: there is none. */
street address_street_before(rt_str text, size_t i)
{
    address_word w;
    street found = { 0 };
    static const char *const numbers[] = { " n\xC2\xB0", " n\xC2\xBA", " nr.", " no.",
                                           " N\xC2\xBA", " Nr.",       " č.",  " д." };
    while (i && is_one_of(text.ptr[i - 1], " ,"))
        i--;
    bool is_sign = i && (text.ptr[i - 1] == '.' || is_class(text.ptr[i - 1], IS_HIGH));
    for (size_t k = 0; is_sign && k < RT_COUNT(numbers); k++)
        if (rt_str_ends(rt_str_slice(text, 0, i), rt_str_of(numbers[k])))
            i -= strlen(numbers[k]);
    i -= i && text.ptr[i - 1] == ',';
    for (unsigned k = 0; k < NAME_WORDS_MAX && address_previous(text, i, &w); k++) {
        rt_str s = address_text(text, &w);
        uint32_t known = privacy_vocabulary(s);
        bool is_small = known & VOC(SET_SMALL);
        if (k == 0 && score_compound(s)) {
            address_word more;
            found = (street){ w.start, score_compound(s) };
            bool is_apart = s.len <= 8 && address_previous(text, w.start, &more) && more.is_title &&
                            !more.has_digit;
            bool is_whole = s.len <= 7; /* "Straße" itself: the name stands before it */
            bool is_small_letters = is_class(s.ptr[0], IS_LOWER) &&
                                    address_previous(text, w.start, &more) && more.is_title;
            if ((is_apart && is_whole) || is_small_letters)
                found.end = more.start;
            else if (is_whole && s.len <= 4)
                found.score = 0;
            return found;
        }
        if (k == 0 && (known & VOC(SET_STRONG_LAST)) && s.len > 2)
            return named_before(text, &w);
        bool is_rua = k > 0 && rt_str_eq_c(s, "R") && at(text, w.end) == '.';
        bool is_strong = k > 0 && (known & VOC(SET_STRONG_FIRST) || is_rua);
        bool is_short = !w.is_title && at(text, w.end) == '.'; /* al. Główna */
        bool is_weak = k > 0 && (w.is_title || is_short) && (known & VOC(SET_WEAK_FIRST));
        if (is_strong || is_weak)
            found = (street){ w.start, is_strong ? 72 : 46 };
        if (is_strong || (!w.is_title && !is_small && !is_strong) || w.has_digit)
            break;
        i = w.start;
    }
    return found;
}

/* Where "PO Box", "P.O. Box", "Postfach" or the like before the number begins, or SIZE_MAX. */
size_t address_box_begin(rt_str text, size_t i)
{
    static const char *const names[] = { "po box",     "p.o. box",        "p.o.box",  "p. o. box",
                                         "pobox",      "post office box", "postfach", "postbus",
                                         "apartado",   "casella postale", "apdo.",    "gpo box",
                                         "box number", "boîte postale",   "c.p.",     "postboks",
                                         "psc",        "locked bag" };
    address_word last;
    while (i && is_one_of(text.ptr[i - 1], " #:."))
        i--;
    if (!address_previous(text, i, &last) || !is_a(SET_BOX, address_text(text, &last)))
        return SIZE_MAX;
    for (size_t k = 0; k < RT_COUNT(names); k++) {
        size_t n = strlen(names[k]), j = 0;
        size_t len = n - (names[k][n - 1] == '.');
        if (i < len)
            continue;
        while (j < len && lower(text.ptr[i - len + j]) == names[k][j])
            j++;
        if (j == len && (i == len || !is_class(text.ptr[i - len - 1], IS_WORD)))
            return i - len;
    }
    /* "Unit 0483 Box 5428", "PSC 12, Box 3" */
    address_word unit, kind;
    size_t before_box = last.start;
    while (before_box && is_one_of(text.ptr[before_box - 1], " ,"))
        before_box--;
    bool is_soldier =
        address_previous(text, before_box, &unit) && unit.has_digit &&
        address_previous(text, unit.start, &kind) && kind.is_title &&
        (is_a(SET_UNIT, address_text(text, &kind)) || is_a(SET_BOX, address_text(text, &kind)));
    return is_soldier ? kind.start : SIZE_MAX;
}
