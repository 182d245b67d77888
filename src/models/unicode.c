/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unicode.c - characters as BERT's tokenizer sees them.
 *
 * The tables are made from Python's unicodedata by unicode_tables.py. Text is mostly ASCII, so that
 * is answered without a search.
 */
#include "models/models_internal.h"

#include "models/unicode_tables.h"

/* The blocks BERT takes for Chinese: ideographs, not the kana and not Hangul. */
bool unicode_is_cjk(uint32_t c)
{
    static const uint32_t blocks[][2] = {
        { 0x3400, 0x4DBF },   { 0x4E00, 0x9FFF },   { 0xF900, 0xFAFF },   { 0x20000, 0x2A6DF },
        { 0x2A700, 0x2B73F }, { 0x2B740, 0x2B81F }, { 0x2B820, 0x2CEAF }, { 0x2F800, 0x2FA1F },
    };
    for (size_t i = 0; i < RT_COUNT(blocks) && c >= blocks[i][0]; i++)
        if (c <= blocks[i][1])
            return true;
    return false;
}

/* Which of the sorted rows may hold c: the last that begins at or before it. */
#define ROW_OF(table, field, c)                                                                    \
    (__extension__({                                                                               \
        size_t row_low_ = 0, row_high_ = RT_COUNT(table);                                          \
        while (row_high_ - row_low_ > 1) {                                                         \
            size_t row_middle_ = (row_low_ + row_high_) / 2;                                       \
            if ((table)[row_middle_].field <= (c))                                                 \
                row_low_ = row_middle_;                                                            \
            else                                                                                   \
                row_high_ = row_middle_;                                                           \
        }                                                                                          \
        row_low_;                                                                                  \
    }))

unicode_kind unicode_kind_of(uint32_t c)
{
    if ((c | 0x20) - 'a' < 26 || c - '0' < 10)
        return UNICODE_LETTER;
    size_t row = ROW_OF(kinds, first, c);
    return c >= kinds[row].first && c <= kinds[row].last ? (unicode_kind)kinds[row].kind
                                                         : UNICODE_LETTER;
}

/* U+0130 alone has a longer small form, which is the tokenizer's to know. */
uint32_t unicode_lower(uint32_t c)
{
    if (c < 0x80)
        return c - 'A' < 26 ? c + ('a' - 'A') : c;
    size_t row = ROW_OF(capitals, first, c);
    bool is_capital = c >= capitals[row].first && c <= capitals[row].last &&
                      (c - capitals[row].first) % capitals[row].step == 0;
    return is_capital ? c + (uint32_t)capitals[row].by : c;
}

/* Syllables are numbered by their parts: 19 first ones, 21 vowels, 27 last ones or none. */
static size_t split_hangul(uint32_t c, uint32_t out[UNICODE_BARE_MAX])
{
    enum { FIRST = 0x1100, VOWEL = 0x1161, LAST = 0x11A7, VOWELS = 21, LASTS = 28 };
    uint32_t n = c - 0xAC00;
    out[0] = FIRST + n / (VOWELS * LASTS);
    out[1] = VOWEL + n / LASTS % VOWELS;
    out[2] = LAST + n % LASTS;
    return n % LASTS ? 3 : 2;
}

size_t unicode_bare(uint32_t c, uint32_t out[UNICODE_BARE_MAX])
{
    out[0] = c;
    if (c < 0xC0)
        return 1;
    if (c >= 0xAC00 && c <= 0xD7A3)
        return split_hangul(c, out);
    size_t row = ROW_OF(accented, from, c);
    if (accented[row].from == c) {
        memcpy(out, letters + accented[row].at, accented[row].count * sizeof(*out));
        return accented[row].count;
    }
    return unicode_kind_of(c) == UNICODE_MARK ? 0 : 1;
}
