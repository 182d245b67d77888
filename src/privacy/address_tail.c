/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address_tail.c - the words of an address, and what follows its street.
 *
 * The tail is read token by token and kept up to the last one that only an address has: a
 * postcode, a state, a country, a unit. Names of towns count when one of those follows them, or
 * when a comma stands before and nothing after.
 */
#include "privacy/address_internal.h"

enum { TAIL_BYTES_MAX = 180, TAIL_TOKENS_MAX = 24, WORD_BYTES_MAX = 40 };

/* ---- words ---- */

static bool is_inside(rt_str text, size_t i)
{
    return is_class(text.ptr[i], IS_WORD) ||
           (is_one_of(text.ptr[i], "'-/") &&
            (is_class(at(text, i + 1), IS_WORD) || (text.ptr[i] == '-' && at(text, i + 1) == '-')));
}

static void describe(rt_str text, address_word *w)
{
    w->has_digit = false;
    for (size_t i = w->start; i < w->end; i++)
        w->has_digit |= is_class(text.ptr[i], IS_DIGIT);
    w->is_title = is_class(at(text, w->start), IS_UPPER | IS_HIGH);
}

bool address_next(rt_str text, size_t i, address_word *out)
{
    while (i < text.len && (text.ptr[i] == ' ' || text.ptr[i] == '\t'))
        i++;
    if (i >= text.len || !is_class(text.ptr[i], IS_WORD))
        return false;
    out->start = out->end = i;
    while (out->end < text.len && out->end - i < WORD_BYTES_MAX && is_inside(text, out->end))
        out->end++;
    describe(text, out);
    return true;
}

bool address_previous(rt_str text, size_t i, address_word *out)
{
    while (i && (text.ptr[i - 1] == ' ' || text.ptr[i - 1] == '\t'))
        i--;
    bool has_dot = i >= 2 && text.ptr[i - 1] == '.' && is_class(text.ptr[i - 2], IS_WORD);
    i -= has_dot;
    if (i == 0 || !is_class(text.ptr[i - 1], IS_WORD))
        return false;
    out->start = out->end = i;
    while (out->start && i - out->start < WORD_BYTES_MAX &&
           (is_class(text.ptr[out->start - 1], IS_WORD) ||
            (is_one_of(text.ptr[out->start - 1], "'-") && out->start >= 2 &&
             is_class(text.ptr[out->start - 2], IS_WORD))))
        out->start--;
    describe(text, out);
    return true;
}

/* ---- postcodes with letters ---- */

/* In each form, A is a capital and 9 a digit. */
size_t address_lettered_code(rt_str text, size_t i)
{
    static const char *const forms[] = { "A9 9AA",   "A99 9AA", "AA9 9AA", "AA99 9AA", "A9A 9AA",
                                         "AA9A 9AA", "A9A 9A9", "A9A9A9",  "AA99AA",   "AA999AA",
                                         "AA9A9AA",  "A99AA",   "A9A9AA" };
    if (!is_class(at(text, i), IS_UPPER) || !is_class(at(text, i + 1), IS_UPPER | IS_DIGIT))
        return i;
    for (size_t k = 0; k < RT_COUNT(forms); k++) {
        const char *form = forms[k];
        size_t j = i;
        for (; *form; form++, j++)
            if (*form == ' ' ? at(text, j) != ' '
                             : !is_class(at(text, j), *form == 'A' ? IS_UPPER : IS_DIGIT))
                break;
        if (!*form && !is_class(at(text, j), IS_WORD))
            return j;
    }
    return i;
}

/* ---- the tail ---- */

typedef struct walk {
    rt_str text;
    size_t i, committed;
    bool is_hard, has_code, after_break, has_town, after_code, needs_town;
    unsigned breaks, towns;
} walk;

/* Commas, line ends (also written "\n" or "<br>"), the dot of an abbreviation. */
static bool step_over_break(walk *w)
{
    rt_str rest = rt_str_slice(w->text, w->i, w->text.len);
    size_t n = 0;
    bool found = false;
    while (n < rest.len && n < 12) {
        if (rest.ptr[n] == ',' || rest.ptr[n] == '\n') {
            found = true;
            n++;
        } else if (rest.ptr[n] == ' ' || rest.ptr[n] == '\t' || rest.ptr[n] == '\r') {
            n++;
        } else if (rest.ptr[n] == '\\' && at(rest, n + 1) == 'n') {
            found = true;
            n += 2;
        } else if (n && rest.ptr[n] == '-' && at(rest, n + 1) == ' ') {
            found = true;
            n += 2;
        } else {
            break;
        }
    }
    w->i += n;
    w->breaks += found;
    w->after_break = found || (w->after_break && n == 0);
    return n > 0;
}

static void commit(walk *w, size_t end)
{
    w->committed = end;
    w->is_hard = true;
}

/* Four to six digits with nothing a phone or a price would have around them. */
static size_t numeric_code_end(rt_str text, size_t i)
{
    size_t end = i;
    while (end < text.len && is_class(text.ptr[end], IS_DIGIT))
        end++;
    size_t n = end - i;
    if (n == 5 && at(text, end) == '-' && is_class(at(text, end + 1), IS_DIGIT)) {
        size_t plus = end + 1;
        while (plus < text.len && is_class(text.ptr[plus], IS_DIGIT))
            plus++;
        if (plus - end == 5)
            return plus;
    }
    /* 110 00 Praha, 412 63 Göteborg, 00-001 Warszawa, 1000-001 Lisboa, 560 001 */
    static const unsigned char split[][2] = { { 3, 2 }, { 2, 3 }, { 4, 3 },
                                              { 3, 3 }, { 5, 3 }, { 3, 4 } };
    for (size_t k = 0; k < RT_COUNT(split); k++) {
        size_t from = end + 1, to = from;
        while (to < text.len && is_class(text.ptr[to], IS_DIGIT))
            to++;
        if (n == split[k][0] && to - from == split[k][1] &&
            at(text, end) == (split[k][0] == 3 && split[k][1] != 4 ? ' ' : '-') &&
            !is_class(at(text, to), IS_WORD))
            return to;
    }
    bool is_dutch = n == 4 && is_class(at(text, end), IS_UPPER) &&
                    is_class(at(text, end + 1), IS_UPPER) && !is_class(at(text, end + 2), IS_WORD);
    if (is_dutch)
        return end + 2; /* 1012AB */
    bool is_brazilian = n == 8 && at(text, end) == ' ' && is_class(at(text, end + 1), IS_WORD);
    if (n < 4 || (n > 7 && !is_brazilian) || is_class(at(text, end), IS_LETTER) ||
        (is_one_of(at(text, end), "-./:") && is_class(at(text, end + 1), IS_DIGIT)))
        return i;
    if (n == 4 && at(text, end) == ' ' && is_class(at(text, end + 1), IS_UPPER) &&
        is_class(at(text, end + 2), IS_UPPER) && !is_class(at(text, end + 3), IS_WORD))
        return end + 3; /* 1012 AB Amsterdam */
    return end;
}

/* D02 AF30, with or without the blank; four letters would be a word: S10 PLUS. */
static size_t irish_code_end(rt_str text, size_t i)
{
    size_t j = i + 3, digits = 0;
    if (!is_class(at(text, i), IS_UPPER) || !is_class(at(text, i + 1), IS_DIGIT) ||
        !(is_class(at(text, i + 2), IS_DIGIT) || at(text, i + 2) == 'W'))
        return i;
    j += at(text, j) == ' ';
    for (size_t k = 0; k < 4; k++, j++) {
        if (!is_class(at(text, j), IS_UPPER | IS_DIGIT))
            return i;
        digits += is_class(text.ptr[j], IS_DIGIT);
    }
    return digits && !is_class(at(text, j), IS_WORD) ? j : i;
}

static bool take_code(walk *w, const address_word *token)
{
    size_t end = address_lettered_code(w->text, token->start);
    bool is_irish =
        end == token->start && (end = irish_code_end(w->text, token->start)) > token->start;
    if (end == token->start && is_class(w->text.ptr[token->start], IS_DIGIT))
        end = numeric_code_end(w->text, token->start);
    if (end == token->start) {
        /* D-10115, F-75001, SE-411 06 */
        size_t i = token->start;
        while (i < token->start + 2 && is_class(at(w->text, i), IS_UPPER))
            i++;
        if (i > token->start && at(w->text, i) == '-' && is_class(at(w->text, i + 1), IS_DIGIT)) {
            end = numeric_code_end(w->text, i + 1);
            if (end == i + 1)
                return false;
        }
    }
    if (end == token->start || (!w->after_break && !w->has_town && !is_irish))
        return false;
    commit(w, end);
    w->i = end;
    w->after_code = w->has_code = true;
    w->needs_town = !w->has_town;
    return true;
}

/* "Purnia-313650": the town and its code in one word. */
static bool take_town_with_code(walk *w, const address_word *token)
{
    size_t i = token->start, digits = 0;
    while (i < token->end && is_class(w->text.ptr[i], IS_LETTER | IS_HIGH))
        i++;
    if (!token->is_title || i == token->end || w->text.ptr[i] != '-')
        return false;
    for (i++; i < token->end && is_class(w->text.ptr[i], IS_DIGIT); i++)
        digits++;
    if (i < token->end || digits < 5 || digits > 6)
        return false;
    commit(w, token->end);
    w->has_code = true;
    w->i = token->end;
    return true;
}

/* "(PI)" and "/ RJ": provinces of Italy, states of Brazil. */
static bool take_province(walk *w)
{
    rt_str text = w->text;
    bool is_open = at(text, w->i) == '(';
    size_t i = w->i + 1;
    if (!is_open && at(text, w->i) != '/')
        return false;
    i += !is_open && at(text, i) == ' ';
    if (!is_class(at(text, i), IS_UPPER) || !is_class(at(text, i + 1), IS_UPPER) ||
        is_class(at(text, i + 2), IS_WORD) || (is_open && at(text, i + 2) != ')') ||
        !(w->has_town || w->after_code))
        return false;
    commit(w, i + 2 + is_open);
    w->i = i + 2 + is_open;
    return true;
}

/* "Apt 4B", "Suite 200", "3rd Floor", "# 12" */
static bool take_unit(walk *w, const address_word *token)
{
    address_word value;
    /* "34th Floor", "3º B" */
    bool is_ordinal = token->has_digit && is_class(w->text.ptr[token->end - 1], IS_LOWER | IS_HIGH);
    if (is_ordinal && address_next(w->text, token->end, &value) &&
        (value.end - value.start == 1 || is_a(SET_UNIT, address_text(w->text, &value)))) {
        commit(w, value.end);
        w->i = value.end;
        return true;
    }
    if (!is_a(SET_UNIT, address_text(w->text, token)))
        return false;
    size_t i = token->end + (at(w->text, token->end) == '.');
    if (at(w->text, i) == ' ' && at(w->text, i + 1) == '#')
        i += 2;
    if (!address_next(w->text, i, &value) || (!value.has_digit && value.end - value.start > 1))
        return false;
    commit(w, value.end);
    w->i = value.end;
    w->has_town = false;
    return true;
}

static bool is_all_capitals(rt_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!is_class(s.ptr[i], IS_UPPER))
            return false;
    return s.len > 1;
}

static bool take_word(walk *w, const address_word *token)
{
    rt_str s = address_text(w->text, token);
    bool is_small = is_a(SET_SMALL, s);
    if (token->has_digit || (!token->is_title && !is_small) || w->towns > 6)
        return false;
    bool is_capitals = is_all_capitals(s) && (w->has_town || w->after_break);
    bool is_before_code = is_capitals && s.len <= 4 && at(w->text, token->end) == ' ' &&
                          is_class(at(w->text, token->end + 1), IS_DIGIT) &&
                          numeric_code_end(w->text, token->end + 1) - token->end == 6;
    if (is_before_code || (is_capitals && is_a(SET_STATE, s))) {
        commit(w, token->end);
    } else if (token->is_title && is_a(SET_COUNTRY, s)) {
        commit(w, token->end);
    } else if (w->after_code && token->is_title && w->towns < 4) {
        w->committed = token->end;
        w->needs_town = false;
    }
    w->has_town |= token->is_title;
    w->towns++;
    w->i = token->end;
    if (at(w->text, w->i) == '.' && token->end - token->start <= 3 && at(w->text, w->i + 1) == ' ')
        w->i++; /* St. Louis */
    return true;
}

/* A town after a comma with nothing behind it: "12 rue Monge, Paris". */
static bool ends_after_town(const walk *w)
{
    char c = at(w->text, w->i);
    return w->has_town && w->breaks == 1 && w->towns <= 3 &&
           (w->i >= w->text.len || is_one_of(c, "\n\r\"<.;)|"));
}

tail address_tail(rt_str text, size_t i)
{
    walk w = { .text = text, .i = i, .committed = i };
    for (size_t tokens = 0; tokens < TAIL_TOKENS_MAX && w.i < i + TAIL_BYTES_MAX; tokens++) {
        address_word token;
        size_t at_break = w.i;
        unsigned breaks = w.breaks;
        step_over_break(&w);
        if (w.breaks > 6)
            break;
        if (w.breaks > breaks) {
            w.towns = w.breaks == 1 ? 0 : w.towns;
            w.after_code &= w.needs_town && w.committed == at_break;
            w.needs_town = false;
            if (w.committed == at_break)
                w.towns = 0;
        }
        if (at(text, w.i) == '#' && is_class(at(text, w.i + 1), IS_DIGIT) &&
            address_next(text, w.i + 1, &token)) {
            commit(&w, token.end);
            w.i = token.end;
            continue;
        }
        if (take_province(&w))
            continue;
        if (!address_next(text, w.i, &token))
            break;
        if (!take_code(&w, &token) && !take_town_with_code(&w, &token) && !take_unit(&w, &token) &&
            !take_word(&w, &token))
            break;
        w.after_break = false;
    }
    if (!w.is_hard && ends_after_town(&w))
        w.committed = w.i;
    return (tail){ w.committed, w.is_hard, w.has_code };
}
