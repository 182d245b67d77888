/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "models/models_internal.h"

Test(models_unicode, characters_are_of_their_kind)
{
    static const struct {
        uint32_t c;
        unicode_kind kind;
    } known[] = {
        { 'a', UNICODE_LETTER },         { '7', UNICODE_LETTER },
        { 0x20AC, UNICODE_LETTER },      { 0x1F388, UNICODE_LETTER },
        { ' ', UNICODE_SPACE },          { '\n', UNICODE_SPACE },
        { 0x3000, UNICODE_SPACE },       { 0x2028, UNICODE_SPACE },
        { 0, UNICODE_CONTROL },          { 0x200B, UNICODE_CONTROL },
        { 0xFFFD, UNICODE_CONTROL },     { 0xE000, UNICODE_CONTROL },
        { '$', UNICODE_PUNCTUATION },    { '~', UNICODE_PUNCTUATION },
        { 0x3002, UNICODE_PUNCTUATION }, { 0x2014, UNICODE_PUNCTUATION },
        { 0x301, UNICODE_MARK },         { 0x64B, UNICODE_MARK },
        { 0x10FFFF, UNICODE_LETTER },    { 0x378, UNICODE_LETTER },
    };
    for (size_t i = 0; i < RT_COUNT(known); i++)
        cr_expect_eq(unicode_kind_of(known[i].c), known[i].kind, "U+%04X", known[i].c);
}

Test(models_unicode, accents_go_and_letters_become_small)
{
    static const struct {
        uint32_t c;
        size_t count;
        uint32_t bare[3];
    } known[] = {
        { 'x', 1, { 'x' } },
        { 0xC9, 1, { 'E' } },
        { 0x1EA6, 1, { 'A' } }, /* A with a circumflex and a grave */
        { 0x301, 0, { 0 } },
        { 0xD55C, 3, { 0x1112, 0x1161, 0x11AB } },
        { 0xAC00, 2, { 0x1100, 0x1161 } },
        { 0xF900, 1, { 0x8C48 } },
        { 0xDF, 1, { 0xDF } },
    };
    for (size_t i = 0; i < RT_COUNT(known); i++) {
        uint32_t bare[UNICODE_BARE_MAX];
        size_t count = unicode_bare(known[i].c, bare);
        cr_assert_eq(count, known[i].count, "U+%04X", known[i].c);
        for (size_t k = 0; k < count; k++)
            cr_expect_eq(bare[k], known[i].bare[k], "U+%04X", known[i].c);
    }
    cr_expect_eq(unicode_lower('Z'), 'z');
    cr_expect_eq(unicode_lower(0xC9), 0xE9);
    cr_expect_eq(unicode_lower(0x100), 0x101);
    cr_expect_eq(unicode_lower(0x101), 0x101);
    cr_expect_eq(unicode_lower(0x3A3), 0x3C3);
    cr_expect_eq(unicode_lower(0x10400), 0x10428);
}

Test(models_unicode, every_character_can_be_asked_about)
{
    uint32_t bare[UNICODE_BARE_MAX];
    for (uint32_t c = 0; c < 0x110000; c++) {
        cr_assert_leq(unicode_bare(c, bare), (size_t)UNICODE_BARE_MAX);
        cr_assert_lt(unicode_lower(c), 0x110000u);
    }
}
