/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stem.c - "commits", "committed", "committing" are one word.
 *
 * Porter's algorithm of 1980, in his five steps; his rules are the tables below. The measure of a
 * stem is how often a run of vowels is followed by a run of consonants in it. Words with anything
 * but a-z, and words of one or two letters, stay as they are.
 */
#include "tools/search_internal.h"

typedef struct rule {
    const char *ending, *instead;
} rule;

static bool is_consonant(const char *w, size_t i)
{
    switch (w[i]) {
    case 'a':
    case 'e':
    case 'i':
    case 'o':
    case 'u':
        return false;
    case 'y':
        return i == 0 || !is_consonant(w, i - 1);
    default:
        return true;
    }
}

static size_t measure(const char *w, size_t len)
{
    size_t m = 0;
    for (size_t i = 1; i < len; i++)
        m += is_consonant(w, i) && !is_consonant(w, i - 1);
    return m;
}

static bool has_vowel(const char *w, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!is_consonant(w, i))
            return true;
    return false;
}

static bool is_double(const char *w, size_t len)
{
    return len >= 2 && w[len - 1] == w[len - 2] && is_consonant(w, len - 1);
}

/* Consonant, vowel, consonant, the last one not w, x or y: "hop", not "snow". */
static bool ends_short(const char *w, size_t len)
{
    return len >= 3 && is_consonant(w, len - 1) && !is_consonant(w, len - 2) &&
           is_consonant(w, len - 3) && !strchr("wxy", w[len - 1]);
}

static bool ends(const char *w, size_t len, const char *ending)
{
    size_t n = strlen(ending);
    return len >= n && memcmp(w + len - n, ending, n) == 0;
}

/* The first rule whose ending is there decides, even if its stem is too short to be changed. */
static size_t apply(char *w, size_t len, const rule *rules, size_t count, size_t least)
{
    for (size_t i = 0; i < count; i++) {
        if (!ends(w, len, rules[i].ending))
            continue;
        size_t stem = len - strlen(rules[i].ending), n = strlen(rules[i].instead);
        if (measure(w, stem) < least)
            return len;
        memcpy(w + stem, rules[i].instead, n); /* no replacement is longer than its ending */
        return stem + n;
    }
    return len;
}

static size_t plural(char *w, size_t len)
{
    static const rule rules[] = { { "sses", "ss" }, { "ies", "i" }, { "ss", "ss" }, { "s", "" } };
    return apply(w, len, rules, RT_COUNT(rules), 0);
}

static size_t mend_participle(char *w, size_t len)
{
    if (ends(w, len, "at") || ends(w, len, "bl") || ends(w, len, "iz")) {
        w[len] = 'e';
        return len + 1;
    }
    if (is_double(w, len) && !strchr("lsz", w[len - 1]))
        return len - 1;
    if (measure(w, len) == 1 && ends_short(w, len)) {
        w[len] = 'e';
        return len + 1;
    }
    return len;
}

static size_t participle(char *w, size_t len)
{
    if (ends(w, len, "eed"))
        return measure(w, len - 3) > 0 ? len - 1 : len;
    if (ends(w, len, "ed") && has_vowel(w, len - 2))
        return mend_participle(w, len - 2);
    if (ends(w, len, "ing") && has_vowel(w, len - 3))
        return mend_participle(w, len - 3);
    return len;
}

static size_t last_y(char *w, size_t len)
{
    if (ends(w, len, "y") && has_vowel(w, len - 1))
        w[len - 1] = 'i';
    return len;
}

static size_t step_2(char *w, size_t len)
{
    static const rule rules[] = {
        { "ational", "ate" }, { "tional", "tion" }, { "enci", "ence" },   { "anci", "ance" },
        { "izer", "ize" },    { "abli", "able" },   { "alli", "al" },     { "entli", "ent" },
        { "eli", "e" },       { "ousli", "ous" },   { "ization", "ize" }, { "ation", "ate" },
        { "ator", "ate" },    { "alism", "al" },    { "iveness", "ive" }, { "fulness", "ful" },
        { "ousness", "ous" }, { "aliti", "al" },    { "iviti", "ive" },   { "biliti", "ble" },
    };
    return apply(w, len, rules, RT_COUNT(rules), 1);
}

static size_t step_3(char *w, size_t len)
{
    static const rule rules[] = { { "icate", "ic" }, { "ative", "" },  { "alize", "al" },
                                  { "iciti", "ic" }, { "ical", "ic" }, { "ful", "" },
                                  { "ness", "" } };
    return apply(w, len, rules, RT_COUNT(rules), 1);
}

static size_t step_4(char *w, size_t len)
{
    static const rule rules[] = {
        { "al", "" },   { "ance", "" }, { "ence", "" }, { "er", "" },    { "ic", "" },
        { "able", "" }, { "ible", "" }, { "ant", "" },  { "ement", "" }, { "ment", "" },
        { "ent", "" },  { "ou", "" },   { "ism", "" },  { "ate", "" },   { "iti", "" },
        { "ous", "" },  { "ive", "" },  { "ize", "" },
    };
    if (ends(w, len, "ion"))
        return len > 3 && strchr("st", w[len - 4]) && measure(w, len - 3) > 1 ? len - 3 : len;
    return apply(w, len, rules, RT_COUNT(rules), 2);
}

static size_t step_5(char *w, size_t len)
{
    if (ends(w, len, "e")) {
        size_t m = measure(w, len - 1);
        if (m > 1 || (m == 1 && !ends_short(w, len - 1)))
            len--;
    }
    return ends(w, len, "ll") && measure(w, len) > 1 ? len - 1 : len;
}

size_t search_stem(char *word, size_t len)
{
    static size_t (*const steps[])(char *, size_t) = { plural, participle, last_y, step_2,
                                                       step_3, step_4,     step_5 };
    for (size_t i = 0; i < len; i++)
        if (word[i] < 'a' || word[i] > 'z')
            return len;
    if (len <= 2)
        return len;
    for (size_t i = 0; i < RT_COUNT(steps); i++)
        len = steps[i](word, len);
    return len;
}
