/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tools/search_internal.h"

/* We do not check words.bin when it is read; so here it is looked through once. */
Test(lexicon, every_entry_is_found_and_has_a_meaning)
{
    rt_str before = RT_STR("");
    uint32_t entry = 0;
    for (uint32_t found; entry < 65536; entry++) {
        rt_str stem = search_lexicon_stem(entry);
        if (stem.len == 0 || stem.len > SEARCH_WORD_MAX)
            break;
        cr_assert_lt(rt_str_cmp(before, stem), 0);
        cr_assert_eq(found = search_lexicon_find(stem), entry);
        int sum = 0;
        for (size_t i = 0; i < SEARCH_LEXICON_DIMS; i++)
            sum += abs(search_lexicon_vector(entry)[i]);
        cr_assert_gt(sum, 127);
        before = stem;
        if (entry + 1 == search_lexicon_count())
            break;
    }
    cr_assert_eq(entry + 1, search_lexicon_count());
}

Test(lexicon, neighbours_are_entries_and_the_nearest_comes_first)
{
    for (uint32_t entry = 0; entry < search_lexicon_count(); entry += 97) {
        float before = 1, likeness;
        for (size_t i = 0; i < SEARCH_LEXICON_NEAR; i++) {
            cr_assert_lt(search_lexicon_near(entry, i, &likeness), search_lexicon_count());
            cr_assert_leq(likeness, before);
            before = likeness;
        }
    }
}

Test(lexicon, unknown_words_are_unknown)
{
    cr_assert_eq(search_lexicon_find(RT_STR("xqzzy")), SEARCH_NOT_A_WORD);
    cr_assert_eq(search_lexicon_find(RT_STR("")), SEARCH_NOT_A_WORD);
    cr_assert_neq(search_lexicon_find(RT_STR("weather")), SEARCH_NOT_A_WORD);
}
