/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address_line.c - addresses known by a postcode with letters, by the label before them, or because
 * somebody says so: "my address is …".
 */
#include "privacy/address_internal.h"

enum { LABELLED_MAX = 200 };

/* "Flat 65\nJoel Square\n[Leeds LS1 4AP]": lines of a few proper words before the town, as far back
 * as one that has a number or a street's word. */
static size_t lines_begin(rt_str text, size_t town)
{
    size_t i = town, begin = town;
    for (unsigned line = 0; line < 3; line++) {
        size_t at_break = i;
        address_word w = { 0 };
        unsigned words = 0;
        bool is_telling = false;
        while (i && is_one_of(text.ptr[i - 1], " ,\n"))
            i--;
        if (i == at_break || !memchr(text.ptr + i, '\n', at_break - i))
            return begin;
        for (; words < 4 && address_previous(text, i, &w) && (w.is_title || w.has_digit); words++) {
            uint32_t known = privacy_vocabulary(address_text(text, &w));
            is_telling |=
                w.has_digit || (words == 0 && known & (VOC(SET_STRONG_LAST) | VOC(SET_WEAK_LAST)));
            i = w.start;
        }
        if (words == 0)
            return begin;
        begin = is_telling ? i : begin;
    }
    return begin;
}

/* A British or Canadian postcode whose first digit is at i, with the town before it. */
void privacy_postcode(privacy_scan *scan, size_t i)
{
    rt_str text = scan->text;
    size_t start = i, end;
    address_word town;
    if (!wants(scan, RT_PII_ADDRESS) || i < scan->address_end)
        return;
    while (start && i - start < 2 && is_class(text.ptr[start - 1], IS_UPPER))
        start--;
    if (start == i || is_class(before(scan, start), IS_WORD) ||
        is_one_of(before(scan, start), "-_/."))
        return;
    end = address_lettered_code(text, start);
    if (end == start || !memchr(text.ptr + start, ' ', end - start))
        return;
    size_t j = start;
    while (j && is_one_of(text.ptr[j - 1], " ,\n"))
        j--;
    for (unsigned k = 0; k < 2 && j >= scan->address_end && address_previous(text, j, &town) &&
                         town.is_title && !town.has_digit;
         k++)
        j = start = town.start;
    start = RT_MAX(lines_begin(text, start), scan->address_end);
    if (privacy_add(scan, RT_PII_ADDRESS, start, end, address_with_context(scan, start, end, 56)))
        scan->address_end = end;
}

/* ---- by its label ---- */

static bool is_address_name(rt_str name)
{
    static const char *const others[] = { "ip",     "mail",    "mac",    "web",      "wallet",
                                          "mem",    "bitcoin", "url",    "http",     "host",
                                          "server", "bind",    "listen", "contract", "eth",
                                          "btc",    "base",    "port",   "remote",   "net" };
    char folded[64];
    size_t len, start = name.len;
    while (start && is_class(name.ptr[start - 1], IS_LETTER | IS_HIGH) &&
           !(start < name.len && is_class(name.ptr[start], IS_UPPER) &&
             is_class(name.ptr[start - 1], IS_LOWER)))
        start--;
    if (!is_a(SET_ADDRESS_NAME, rt_str_slice(name, start, name.len)) ||
        !privacy_fold(rt_str_slice(name, name.len > 60 ? name.len - 60 : 0, name.len), folded,
                      sizeof(folded), &len))
        return false;
    for (size_t i = 0; i < RT_COUNT(others); i++)
        if (strstr(folded, others[i]))
            return false;
    return true;
}

static bool looks_postal(rt_str s)
{
    size_t digits = 0, letters = 0, blanks = 0;
    for (size_t i = 0; i < s.len; i++) {
        digits += is_class(s.ptr[i], IS_DIGIT);
        letters += is_class(s.ptr[i], IS_LETTER | IS_HIGH);
        blanks += s.ptr[i] == ' ';
        if (is_one_of(s.ptr[i], "@{}=<>$_\\|"))
            return false;
    }
    return digits >= 1 && digits <= 16 && letters >= 4 && blanks >= 1 && s.len >= 8 &&
           letters > digits;
}

size_t privacy_labelled_address(privacy_scan *scan, rt_str name, size_t i)
{
    rt_str text = scan->text;
    if (!wants(scan, RT_PII_ADDRESS) || name.len < 4 || !is_address_name(name))
        return i ? i - 1 : 0;
    size_t most = RT_MIN(text.len, i + LABELLED_MAX);
    while (i < most && is_one_of(text.ptr[i], " \t\"'*\n"))
        i++;
    size_t end = i;
    while (end < most && !is_one_of(text.ptr[end], "\n\"<;|") &&
           !(text.ptr[end] == '.' && at(text, end + 1) == ' ' && end - i > 3 &&
             is_class(text.ptr[end - 1], IS_LOWER) && is_class(text.ptr[end - 3], IS_LOWER)))
        end++;
    while (end > i && is_one_of(text.ptr[end - 1], " .,"))
        end--;
    if (end < most && looks_postal(rt_str_slice(text, i, end))) {
        tail rest = address_tail(text, end);
        privacy_add(scan, RT_PII_ADDRESS, i, RT_MAX(end, rest.end), 58);
    } else if (end == text.len && looks_postal(rt_str_slice(text, i, end))) {
        privacy_add(scan, RT_PII_ADDRESS, i, end, 58);
    }
    return i;
}

/* "my address is …": only what is written as names and numbers up to the end of the line. */
void privacy_told_address(privacy_scan *scan, rt_str name, size_t i)
{
    rt_str text = scan->text;
    address_word w;
    size_t end = i, words = 0, proper = 0;
    if (!wants(scan, RT_PII_ADDRESS) || !is_address_name(name))
        return;
    while (end < text.len && end - i < LABELLED_MAX) {
        if (is_one_of(text.ptr[end], " ,")) {
            end++;
            continue;
        }
        if (!address_next(text, end, &w))
            break;
        bool is_proper = w.is_title || w.has_digit;
        if (!is_proper && !is_a(SET_SMALL, address_text(text, &w)))
            break;
        words++;
        proper += is_proper;
        end =
            w.end + (at(text, w.end) == '.' && w.end - w.start <= 4 && at(text, w.end + 1) == ' ');
    }
    while (end > i && is_one_of(text.ptr[end - 1], " .,"))
        end--;
    if (words >= 2 && proper * 3 >= words * 2 && looks_postal(rt_str_slice(text, i, end)))
        privacy_add(scan, RT_PII_ADDRESS, i, RT_MAX(end, address_tail(text, end).end), 52);
}
