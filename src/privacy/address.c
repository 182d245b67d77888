/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address.c - postal addresses, found by the numbers in them.
 *
 * Four ways in: a house number before a street (12 Main Street, 12 rue Monge), after one
 * (Hauptstraße 12, Calle Mayor 12), a box (PO Box 12), and a last line with a postcode
 * (Springfield, IL 62704). What follows is address_tail.c's. A shape that is weak alone needs a
 * tail, or words that speak of an address.
 */
#include "privacy/address_internal.h"

enum { NAME_WORDS_MAX = 6 };

/* ---- after a house number ---- */

static bool can_be_house(const privacy_scan *scan, const cluster *c, size_t g)
{
    const group *n = &c->groups[g];
    char prior = before(scan, n->start);
    if (n->len > 5 || c->has_plus)
        return false;
    if (g && (n->sep == SEP_DASH || n->sep == SEP_SLASH))
        return c->groups[g - 1].len <= 5; /* 12-14 Main Street, 12/34 Main Street */
    return !is_class(prior, IS_WORD) && !is_one_of(prior, "_$.:@+-%=/\\&*");
}

/* 1991 or 2024: before a comma or in a range it is a year and no house. */
static bool is_year(rt_str text, const group *n)
{
    rt_str century = rt_str_slice(text, n->start, n->start + 2);
    return n->len == 4 &&
           (rt_str_eq_c(century, "18") || rt_str_eq_c(century, "19") || rt_str_eq_c(century, "20"));
}

static bool is_banned_before(const privacy_scan *scan, size_t start)
{
    address_word w;
    return address_previous(scan->text, start, &w) && is_a(SET_BAN, address_text(scan->text, &w));
}

/* Past "12", "12B", "12 bis", "12/3", and the comma some put there. */
static size_t house_end(rt_str text, size_t end)
{
    static const char *const again[] = { " bis", " ter", " quater" };
    if (is_class(at(text, end), IS_LETTER) && !is_class(at(text, end + 1), IS_WORD))
        end++;
    for (size_t k = 0; at(text, end) == ' ' && k < RT_COUNT(again); k++) {
        size_t n = strlen(again[k]);
        if (rt_str_eq(rt_str_slice(text, end, end + n), (rt_str){ again[k], n }) &&
            !is_class(at(text, end + n), IS_WORD))
            end += n;
    }
    return end;
}

static bool is_direction(rt_str s)
{
    static const char *const names[] = { "N",  "S",  "E",     "W",     "NE",   "NW",
                                         "SE", "SW", "North", "South", "East", "West" };
    if (s.len == 0 || s.len > 5 || !is_one_of(s.ptr[0], "NSEW"))
        return false;
    for (size_t i = 0; i < RT_COUNT(names); i++)
        if (rt_str_eq_c(s, names[i]))
            return true;
    return false;
}

/* The dot of "St." and a direction after the street word. */
static size_t street_end(rt_str text, size_t end)
{
    address_word w;
    end += at(text, end) == '.' && is_one_of(at(text, end + 1), " ,\n");
    if (address_next(text, end, &w) && is_direction(address_text(text, &w)))
        end = w.end;
    return end;
}

/* Words up to a street word: "[12] Old Mill Road". */
static street name_then_kind(const privacy_scan *scan, size_t i)
{
    rt_str text = scan->text;
    street found = { 0 };
    unsigned titles = 0;
    address_word w;
    bool is_gadget = false;
    for (unsigned k = 0; k < NAME_WORDS_MAX && address_next(text, i, &w); k++) {
        rt_str s = address_text(text, &w);
        if (w.has_digit && is_class(text.ptr[w.end - 1], IS_DIGIT))
            return found; /* "5th Avenue" has a name, "12 3 Road" has none */
        uint32_t known = privacy_vocabulary(s);
        bool is_strong = k > 0 && (known & VOC(SET_STRONG_LAST));
        bool is_weak = k > 0 && !is_strong && (known & VOC(SET_WEAK_LAST));
        if ((is_strong || is_weak) && !is_gadget) {
            bool is_proper = titles == k && (w.is_title || is_strong);
            int score = is_proper ? (is_strong ? 78 : 42) : is_strong && s.len > 2 ? 46 : 0;
            if (scan->is_lenient && is_strong && score)
                score = RT_MAX(score, RT_PRIVACY_MIN_SCORE);
            if (score >= found.score && score)
                found = (street){ w.end, score };
        } else if (found.score || (k > 0 && !w.is_title && !w.has_digit && k > 3)) {
            break;
        }
        /* "2 minutes drive", "500 GB drive": small words and measures are no names. */
        if (known & VOC(SET_THING))
            return found;
        titles += w.is_title || w.has_digit;
        is_gadget = known & VOC(SET_GADGET);
        i = w.end + (at(text, w.end) == '.' && w.end - w.start <= 3);
    }
    return found;
}

/* "Apt. 300", "Suite 4": what follows the name is a part of the building. */
static bool is_unit(rt_str text, const address_word *w)
{
    address_word value;
    size_t i = w->end + (at(text, w->end) == '.');
    return is_a(SET_UNIT, address_text(text, w)) && address_next(text, i, &value) &&
           value.has_digit;
}

/* A street word, then the name: "[12] rue de la Paix". */
static street kind_then_name(rt_str text, size_t i)
{
    address_word kind, w;
    size_t end;
    unsigned titles = 0;
    i += at(text, i) == ',';
    if (!address_next(text, i, &kind))
        return (street){ 0 };
    rt_str s = address_text(text, &kind);
    uint32_t known = privacy_vocabulary(s);
    bool is_strong = known & VOC(SET_STRONG_FIRST);
    if (!is_strong && !(known & VOC(SET_WEAK_FIRST)))
        return (street){ 0 };
    end = kind.end + (at(text, kind.end) == '.');
    for (unsigned k = 0; k < NAME_WORDS_MAX && address_next(text, end, &w); k++) {
        bool is_small = is_a(SET_SMALL, address_text(text, &w)) || at(text, w.start + 1) == '\'';
        if (k > 0 && ((!w.is_title && !is_small) || is_unit(text, &w)))
            break;
        titles += w.is_title || (k == 0 && !is_small);
        end = w.end;
    }
    if (!titles)
        return (street){ 0 };
    return (street){ end, is_strong ? 74 : 44 };
}

/* ---- putting it together ---- */

int address_with_context(privacy_scan *scan, size_t start, size_t end, int score)
{
    privacy_context context;
    privacy_context_at(scan, start, end, &context);
    return score + (context.distance[TOPIC_ADDRESS] <= 4 ? 16 : 0);
}

/* "Flat 3, [12 High Street]": the unit some put first. */
static size_t unit_begin(rt_str text, size_t start)
{
    address_word value, unit;
    size_t i = start;
    while (i && is_one_of(text.ptr[i - 1], " ,\n\r"))
        i--;
    if (i == start || !address_previous(text, i, &value) || value.end - value.start > 5 ||
        (!value.has_digit && value.end - value.start > 1) ||
        !address_previous(text, value.start, &unit) || !unit.is_title ||
        !is_a(SET_UNIT, address_text(text, &unit)))
        return start;
    return unit.start;
}

/* "г. Калач, [ул. Мира, д. 5]": Russia puts the town first, after a word of few letters. */
static size_t city_begin(rt_str text, size_t start)
{
    address_word town, kind;
    size_t i = start;
    while (i && is_one_of(text.ptr[i - 1], " ,"))
        i--;
    if (i == start || !is_class(at(text, start), IS_HIGH) || !address_previous(text, i, &town) ||
        !is_class(text.ptr[town.start], IS_HIGH) || !address_previous(text, town.start, &kind) ||
        kind.end - kind.start > 6 || !is_class(text.ptr[kind.start], IS_HIGH))
        return start;
    return kind.start;
}

static bool take(privacy_scan *scan, size_t start, size_t end, int score)
{
    tail rest = address_tail(scan->text, end);
    if (score == 0)
        return false;
    if (rest.is_hard)
        score += 24;
    start = city_begin(scan->text, unit_begin(scan->text, start));
    score = address_with_context(scan, start, rest.end, score);
    if (!privacy_add(scan, RT_PII_ADDRESS, start, rest.end, RT_MIN(score, 96)))
        return false;
    scan->address_end = rest.end;
    return true;
}

/* Where "H.No. " before the number begins, or `start`. */
static size_t house_begin(rt_str text, size_t start)
{
    static const char *const signs[] = { "H.No. ",    "H.No.",     "H. No. ",   "House No. ",
                                         "Door No. ", "Plot No. ", "Flat No. ", "D.No. " };
    if (start < 5 || !is_one_of(text.ptr[start - 1], " .") ||
        (text.ptr[start - 2] != 'o' && text.ptr[start - 3] != 'o'))
        return start;
    for (size_t k = 0; k < RT_COUNT(signs); k++)
        if (rt_str_ends(rt_str_slice(text, 0, start), rt_str_of(signs[k])))
            return start - strlen(signs[k]);
    return start;
}

static bool is_introduced(privacy_scan *scan, size_t start, size_t end)
{
    privacy_context context;
    privacy_context_at(scan, start, end, &context);
    return context.distance[TOPIC_ADDRESS] <= 2;
}

static bool take_after_number(privacy_scan *scan, const cluster *c, size_t g)
{
    size_t start = c->groups[g].start, end = house_end(scan->text, c->groups[g].end);
    size_t name = end + (at(scan->text, end) == ','), begin = house_begin(scan->text, start);
    bool is_listed = name > end || (g && c->groups[g].sep == SEP_DASH);
    bool is_broken = at(scan->text, name) == '\n' && /* the street on the next line */
                     (begin < start || is_introduced(scan, start, end));
    name += is_broken;
    if ((!is_broken && !is_one_of(at(scan->text, name), " \t")) ||
        (begin == start && is_banned_before(scan, start)) ||
        (is_listed && is_year(scan->text, &c->groups[g])))
        return false;
    street found = kind_then_name(scan->text, name);
    if (!found.score)
        found = name_then_kind(scan, name);
    if (!found.score)
        return false;
    bool is_range = g && (c->groups[g].sep == SEP_DASH || c->groups[g].sep == SEP_SLASH);
    start = is_range && c->groups[g - 1].len <= 5 ? c->groups[g - 1].start : begin;
    return take(scan, start, street_end(scan->text, found.end), found.score);
}

/*
 * "Unter den Linden [77], 10117 Berlin": nothing says street, but a name, a number, and after a
 * break a postcode and a town.
 */
static street name_before_code(privacy_scan *scan, const cluster *c, size_t g)
{
    rt_str text = scan->text;
    address_word w;
    size_t i = c->groups[g].start, end = house_end(text, c->groups[g].end), from = SIZE_MAX;
    if (!is_one_of(at(text, end), ",\n") || g + 1 < c->count)
        return (street){ 0 };
    tail rest = address_tail(text, end);
    size_t code = end + 1;
    while (is_one_of(at(text, code), " \n"))
        code++;
    group number = { .start = code, .len = 4 };
    bool is_dated = is_class(at(text, code), IS_DIGIT) && !is_class(at(text, code + 4), IS_WORD) &&
                    is_year(text, &number) && !is_introduced(scan, i, end);
    if (!rest.has_code || is_dated || !is_class(text.ptr[rest.end - 1], IS_LOWER | IS_HIGH))
        return (street){ 0 };
    for (unsigned k = 0; k < NAME_WORDS_MAX && address_previous(text, i, &w); k++) {
        uint32_t known = privacy_vocabulary(address_text(text, &w));
        if (w.has_digit || known & (VOC(SET_BAN) | VOC(SET_MONTH)) ||
            (!w.is_title && !(k && known & VOC(SET_SMALL))))
            break;
        from = w.is_title ? w.start : from;
        i = w.start;
    }
    return from == SIZE_MAX ? (street){ 0 } : (street){ from, 34 };
}

/* Past a second number, a letter or a dot that belongs to the house. */
static size_t number_end(rt_str text, const cluster *c, size_t g)
{
    const group *next = g + 1 < c->count && c->groups[g + 1].len <= 4 ? &c->groups[g + 1] : NULL;
    size_t end = c->groups[g].end;
    if (next && (next->sep == SEP_DASH || next->sep == SEP_SLASH ||
                 (next->sep == SEP_SPACE && is_one_of(at(text, next->end), ",\n"))))
        end = next->end;
    if (is_class(at(text, end), IS_LETTER) && !is_class(at(text, end + 1), IS_WORD))
        end++;
    else if (at(text, end) == '.' && is_one_of(at(text, end + 1), ",\n"))
        end++; /* utca 97., H-3888 Miskolc */
    else if (at(text, end) == ' ' && is_class(at(text, end + 1), IS_LOWER) &&
             is_one_of(at(text, end + 2), ",\n"))
        end += 2;
    return end;
}

static bool take_before_number(privacy_scan *scan, const cluster *c, size_t g)
{
    size_t end = c->groups[g].end;
    size_t box = address_box_begin(scan->text, c->groups[g].start);
    if (box != SIZE_MAX)
        return take(scan, box, end, 76);
    street found = address_street_before(scan->text, c->groups[g].start);
    if (!found.score)
        found = name_before_code(scan, c, g);
    if (!found.score || found.end < scan->address_end)
        return false;
    end = number_end(scan->text, c, g);
    if (is_class(at(scan->text, end), IS_WORD) || is_one_of(at(scan->text, end), "%:"))
        return false;
    return take(scan, found.end, end, found.score);
}

/* "Avenida da Liberdade, S/N, [1250]-096 Lisboa", "rue Monge\n[75005] Paris": no house has a
 * number, and a postcode follows the street. */
static bool take_code_after_street(privacy_scan *scan, const cluster *c, size_t g)
{
    rt_str text = scan->text;
    size_t i = c->groups[g].start, end;
    address_word w;
    if (g || c->groups[g].len < 4 || c->groups[g].len > 8)
        return false;
    while (i && is_one_of(text.ptr[i - 1], " ,\n"))
        i--;
    if (i == c->groups[g].start || !is_one_of(at(text, i), ",\n"))
        return false;
    end = i;
    i -= rt_str_ends(rt_str_slice(text, 0, i), RT_STR(", S/N")) ? 5 : 0;
    for (unsigned k = 0; k < NAME_WORDS_MAX && address_previous(text, i, &w); k++) {
        uint32_t known = privacy_vocabulary(address_text(text, &w));
        if (k > 0 && (known & VOC(SET_STRONG_FIRST)))
            return w.start >= scan->address_end && address_tail(text, end).has_code &&
                   take(scan, w.start, end, 40);
        if (w.has_digit || (!w.is_title && !(known & VOC(SET_SMALL))))
            return false;
        i = w.start;
    }
    return false;
}

/* "One Microsoft Way, [Redmond]": the street before a town, its number in words or missing. */
static size_t street_line_begin(rt_str text, size_t town)
{
    address_word w;
    size_t i = town, begin = town;
    while (i && is_one_of(text.ptr[i - 1], " ,\n"))
        i--;
    for (unsigned k = 0; k < 5 && i < town && address_previous(text, i, &w); k++) {
        uint32_t known = privacy_vocabulary(address_text(text, &w));
        bool is_street = known & (VOC(SET_STRONG_LAST) | VOC(SET_WEAK_LAST));
        if (!w.is_title || w.has_digit || (k == 0 && !is_street))
            return k > 1 ? begin : town;
        begin = i = w.start;
    }
    return begin;
}

/* "Springfield, IL 62704" by itself; also "APO AE 09012". */
static bool take_last_line(privacy_scan *scan, const cluster *c, size_t g)
{
    rt_str text = scan->text;
    const group *code = &c->groups[g];
    address_word state, town;
    if (code->len != 5 || !address_previous(text, code->start, &state) ||
        state.end - state.start != 2 || !is_class(text.ptr[state.start], IS_UPPER) ||
        !is_class(text.ptr[state.start + 1], IS_UPPER) ||
        !is_a(SET_STATE, address_text(text, &state)))
        return false;
    size_t i = state.start, start = state.start;
    while (i && is_one_of(text.ptr[i - 1], " ,"))
        i--;
    /* "Boise, ID 83702", but "Transaction ID 08294". */
    if (rt_str_eq_c(address_text(text, &state), "ID") && !memchr(text.ptr + i, ',', start - i))
        return false;
    for (unsigned k = 0; k < 3 && address_previous(text, i, &town) && town.is_title &&
                         !town.has_digit && town.start >= scan->address_end;
         k++)
        i = start = town.start;
    if (start == state.start)
        return false;
    start = street_line_begin(text, start);
    tail rest = address_tail(text, state.end);
    return privacy_add(scan, RT_PII_ADDRESS, start, RT_MAX(rest.end, code->end),
                       address_with_context(scan, start, code->end, 64));
}

/* 〒100-0005 and 東京都千代田区1-2-3: characters of East Asia around the number. */
static bool take_east_asian(privacy_scan *scan, const cluster *c, size_t g)
{
    static const char *const marks[] = { "丁目", "番", "号", "区", "市", "町", "路", "街", "〒",
                                         "县",   "省", "県", "村", "동", "로", "길", "구" };
    rt_str text = scan->text;
    size_t start = c->groups[g].start, end = c->groups[c->count - 1].end, hits = 0;
    size_t least = start > 90 ? start - 90 : 0, most = RT_MIN(text.len, end + 60);
    bool touches = is_class(before(scan, start), IS_HIGH) || is_class(at(text, end), IS_HIGH);
    if (g || !touches)
        return false;
    while (start > least &&
           (is_class(text.ptr[start - 1], IS_HIGH | IS_DIGIT) || text.ptr[start - 1] == '-'))
        start--;
    while (end < most && (is_class(text.ptr[end], IS_HIGH | IS_DIGIT) || text.ptr[end] == '-' ||
                          (text.ptr[end] == ' ' && is_class(at(text, end + 1), IS_HIGH))))
        end++; /* a building's name may follow after a blank */
    while (end > c->groups[g].end && ((unsigned char)at(text, end) & 0xC0) == 0x80)
        end--;
    while (start < c->groups[g].start && ((unsigned char)text.ptr[start] & 0xC0) == 0x80)
        start++;
    for (size_t k = 0; k < RT_COUNT(marks); k++)
        hits += rt_str_find(rt_str_slice(text, start, end), rt_str_of(marks[k])) >= 0;
    if (!privacy_add(scan, RT_PII_ADDRESS, start, end, hits >= 3 ? 75 : hits == 2 ? 56 : 0))
        return false;
    scan->address_end = end;
    return true;
}

void privacy_address(privacy_scan *scan, const cluster *c, size_t g)
{
    if (!wants(scan, RT_PII_ADDRESS) || c->groups[g].start < scan->address_end ||
        c->groups[g].is_dead)
        return;
    if (take_east_asian(scan, c, g))
        return;
    if (can_be_house(scan, c, g) &&
        (take_after_number(scan, c, g) || take_before_number(scan, c, g)))
        return;
    if (!take_code_after_street(scan, c, g))
        take_last_line(scan, c, g);
}
