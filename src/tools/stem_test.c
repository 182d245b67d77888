/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "tools/search_internal.h"

static void expect_stem(const char *word, const char *stem)
{
    char text[SEARCH_WORD_MAX + 1];
    snprintf(text, sizeof(text), "%s", word);
    rt_str got = { text, search_stem(text, strlen(text)) };
    cr_assert(rt_str_eq_c(got, stem), "%s: %.*s, not %s", word, RT_FMT(got), stem);
}

Test(stem, forms_of_a_word_share_a_stem)
{
    static const char *const pairs[][2] = {
        { "commits", "commit" },     { "committed", "commit" },    { "committing", "commit" },
        { "queries", "queri" },      { "query", "queri" },         { "caresses", "caress" },
        { "agreed", "agre" },        { "hopping", "hop" },         { "filing", "file" },
        { "relational", "relat" },   { "digitizer", "digit" },     { "triplicate", "triplic" },
        { "electrical", "electr" },  { "adjustment", "adjust" },   { "translation", "translat" },
        { "translate", "translat" }, { "controlling", "control" }, { "probate", "probat" },
    };
    for (size_t i = 0; i < RT_COUNT(pairs); i++)
        expect_stem(pairs[i][0], pairs[i][1]);
}

Test(stem, short_and_foreign_words_stay_as_they_are)
{
    expect_stem("is", "is");
    expect_stem("", "");
    expect_stem("mp3s", "mp3s");
    expect_stem("größen", "größen");
}
