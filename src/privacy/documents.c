/* SPDX-License-Identifier: Apache-2.0 */
/*
 * documents.c - dates of birth, passports and driver's licences, which only their context tells.
 */
#include "privacy/privacy_internal.h"

/* ---- dates of birth ---- */

static bool is_about_birth(privacy_scan *scan, size_t start, size_t end)
{
    privacy_context context;
    rt_str near_by = rt_str_slice(scan->text, start > 10 ? start - 10 : 0, start);
    if (rt_str_find(near_by, RT_STR("D.O.B")) >= 0 || rt_str_find(near_by, RT_STR("d.o.b")) >= 0)
        return true;
    /* "born 1985-03-12, hired 2019-04-01": another number in between has taken the word. */
    for (size_t i = scan->rare_end; i < start; i++)
        if (is_class(scan->text.ptr[i], IS_DIGIT))
            return false;
    privacy_context_at(scan, start, end, &context);
    return context.distance[TOPIC_BIRTH] <= 5;
}

static bool is_month(rt_str text, size_t i, size_t *end)
{
    size_t stop = i;
    while (stop < text.len && stop - i < 20 && is_class(text.ptr[stop], IS_LETTER | IS_HIGH))
        stop++;
    *end = stop;
    return privacy_vocabulary(rt_str_slice(text, i, stop)) & VOC(SET_MONTH);
}

static size_t skip(rt_str text, size_t i, const char *set, size_t most)
{
    size_t end = i;
    while (end < text.len && end - i < most && is_one_of(text.ptr[end], set))
        end++;
    return end;
}

static size_t digits_end(rt_str text, size_t i)
{
    size_t end = i;
    while (end < text.len && is_class(text.ptr[end], IS_DIGIT))
        end++;
    return end;
}

/* "12 March 1985", "March 12, 1985", "12. März 1985": the day is the number at i; the month's name
 * stands on either side of it. */
static bool spelled_date(const privacy_scan *scan, size_t i, size_t *start, size_t *end)
{
    rt_str text = scan->text;
    size_t day_end = digits_end(text, i), j, month_end;
    if (day_end - i > 2 || !is_one_of(at(text, day_end), " .,-tsrnd"))
        return false;
    j = day_end;
    if (is_class(at(text, j), IS_LOWER) && is_class(at(text, j + 1), IS_LOWER) &&
        !is_class(at(text, j + 2), IS_WORD))
        j += 2; /* 12th */
    size_t year = skip(text, j, " ,", 2), year_end = digits_end(text, year);
    size_t back = i;
    while (back && text.ptr[back - 1] == ' ')
        back--;
    back -= back && text.ptr[back - 1] == '.';
    size_t name = back;
    while (name && is_class(text.ptr[name - 1], IS_LETTER | IS_HIGH))
        name--;
    if (name < back && is_month(text, name, &month_end) && year_end - year == 4 && year > j) {
        *start = name;
        *end = year_end;
        return true;
    }
    j = skip(text, j, " .-", 2);
    if (rt_str_eq(rt_str_slice(text, j, j + 3), RT_STR("of ")) ||
        rt_str_eq(rt_str_slice(text, j, j + 3), RT_STR("de ")))
        j += 3;
    if (!is_month(text, j, &month_end))
        return false;
    year = skip(text, month_end, " ,.-", 2);
    if (rt_str_eq(rt_str_slice(text, year, year + 3), RT_STR("de ")))
        year += 3;
    year_end = digits_end(text, year);
    *start = i;
    *end = year_end;
    return year_end - year == 4;
}

size_t privacy_birth(privacy_scan *scan, const cluster *c, size_t g)
{
    size_t n, start = c->groups[g].start, end;
    if (!wants(scan, RT_PII_DATE_OF_BIRTH) || !may_be_rare(scan, start))
        return 0;
    n = privacy_cluster_date(scan->text, c, g);
    if (n)
        end = c->groups[g + n - 1].end;
    else if (!spelled_date(scan, start, &start, &end))
        return 0;
    if (!is_about_birth(scan, start, end))
        return 0;
    return privacy_add(scan, RT_PII_DATE_OF_BIRTH, start, end, 85) ? RT_MAX(n, (size_t)1) : 0;
}

/* ---- passports and licences ---- */

static bool is_document_number(rt_str s, size_t min, size_t max)
{
    size_t digits = 0, letters = 0, dashes = 0;
    for (size_t i = 0; i < s.len; i++) {
        digits += is_class(s.ptr[i], IS_DIGIT);
        letters += is_class(s.ptr[i], IS_UPPER);
        dashes += s.ptr[i] == '-';
        if (is_class(s.ptr[i], IS_HIGH))
            return false;
    }
    return s.len >= min && s.len <= max && digits * 3 >= s.len - dashes &&
           digits + letters + dashes + 2 >= s.len;
}

/* C01X0006H and the like: capitals and digits, no vowel among them that would make words. */
static bool is_german_passport(rt_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!is_class(s.ptr[i], IS_DIGIT) && !is_one_of(s.ptr[i], "CFGHJKLMNPRTVWXYZ"))
            return false;
    return s.len == 9 || s.len == 10;
}

/* "DL: ", "DLN #": too short to be heard of from further away. */
static bool follows_dl(const privacy_scan *scan, size_t start)
{
    rt_str text = scan->text;
    size_t i = start;
    while (i && start - i < 3 && is_one_of(text.ptr[i - 1], " :#."))
        i--;
    i -= i && i < start && text.ptr[i - 1] == 'N';
    return i >= 2 && i < start && text.ptr[i - 1] == 'L' && text.ptr[i - 2] == 'D' &&
           (i == 2 || !(is_class(text.ptr[i - 3], IS_WORD) || text.ptr[i - 3] == '_'));
}

/* `i` is at the first digit of a word that ends at `end`. */
void privacy_document(privacy_scan *scan, size_t i, size_t end)
{
    rt_str text = scan->text;
    privacy_context context;
    size_t start = i;
    if (!may_be_rare(scan, i) ||
        !(scan->types & (RT_PII_BIT(RT_PII_PASSPORT) | RT_PII_BIT(RT_PII_DRIVER_LICENSE))))
        return;
    while (start && i - start < 20 && is_class(text.ptr[start - 1], IS_ALNUM))
        start--;
    for (unsigned k = 0; k < 4 && at(text, end) == '-' && is_class(at(text, end + 1), IS_ALNUM);
         k++) {
        end++;
        while (end < text.len && is_class(text.ptr[end], IS_ALNUM))
            end++;
    }
    if (end - start < 5 || end - start > 22 || is_one_of(before(scan, start), "-_.@/$"))
        return;
    rt_str s = rt_str_slice(text, start, end);
    bool is_fraction = at(text, end) == '.' && is_class(at(text, end + 1), IS_DIGIT);
    bool is_years = (s.len == 9 && s.ptr[4] == '-') || /* 2003-2007 */
                    (s.len == 10 && ((s.ptr[4] == '-' && s.ptr[7] == '-') ||
                                     (s.ptr[2] == '-' && s.ptr[5] == '-')));
    bool is_german = is_german_passport(s);
    if ((!is_document_number(s, 5, 22) && !is_german) || is_fraction || is_years)
        return;
    privacy_context_at(scan, start, end, &context);
    unsigned passport = context.distance[TOPIC_PASSPORT];
    unsigned driver = context.distance[TOPIC_DRIVER];
    unsigned license = context.distance[TOPIC_LICENSE];
    bool is_licence = (driver < TOPIC_FAR && license < TOPIC_FAR) || follows_dl(scan, start);
    if (passport <= 4 && passport < driver && (is_german || is_document_number(s, 6, 10)))
        privacy_add(scan, RT_PII_PASSPORT, start, end, passport <= 2 ? 80 : 68);
    else if (is_licence && is_document_number(s, 5, 20))
        privacy_add(scan, RT_PII_DRIVER_LICENSE, start, end, 76);
}
