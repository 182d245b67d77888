/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tools/search_internal.h"

/* The words, with a space between; those that are extra in brackets. */
static void expect_words(const char *text, const char *words)
{
    search_tokens tokens RT_CLEANUP(search_tokens_done) = { 0 };
    rt_buf got RT_CLEANUP(rt_buf_done) = { 0 };
    search_tokenise(rt_str_of(text), 100, &tokens);
    for (size_t i = 0; i < tokens.count; i++) {
        const search_token *t = &tokens.items[i];
        rt_buf_addf(&got, t->is_extra ? "%s[%.*s]" : "%s%.*s", i ? " " : "", t->word_len, t->word);
    }
    cr_assert(rt_str_eq_c(rt_buf_str(&got), words), "%s: %.*s, not %s", text,
              RT_FMT(rt_buf_str(&got)), words);
}

Test(tokens, names_of_programs_come_apart)
{
    expect_words("list_commits", "list commits");
    expect_words("list-commits", "list commits");
    expect_words("listCommits", "[listcommits] list commits");
    expect_words("PDFReader", "[pdfreader] pdf reader");
    expect_words("get_repo_123", "get repo 123");
    expect_words("GITHUB_TOKEN", "github token");
}

Test(tokens, glued_words_come_apart_when_both_parts_are_words)
{
    expect_words("sendemail", "[sendemail] send email");
    expect_words("getweather", "[getweather] get weather");
    expect_words("weather", "weather");
    expect_words("xqzzyvwk", "xqzzyvwk");
}

Test(tokens, what_is_known_as_one_word_stays_one)
{
    expect_words("GitHub", "github");
    expect_words("YouTube", "youtube");
    expect_words("mp3", "mp3");
    expect_words("don't", "dont");
}

Test(tokens, letters_of_every_script_are_letters)
{
    expect_words("Café ÉCOLE Łódź", "cafe ecole lodz");
    expect_words("ПОГОДА Москва", "погода москва");
    expect_words("ΚΑΙΡΟΣ", "καιροσ");
    expect_words("天気予報", "天気 気予 予報");
    expect_words("東", "東");
    expect_words("«quoted» “words”…", "quoted words");
}

Test(tokens, broken_text_separates_words)
{
    expect_words("a\xff\xfe"
                 "b",
                 "a b");
    expect_words("\xc3", "");
    expect_words("", "");
}

Test(tokens, no_more_than_asked_for)
{
    search_tokens tokens RT_CLEANUP(search_tokens_done) = { 0 };
    search_tokenise(RT_STR("one two three listCommits sendemail"), 2, &tokens);
    cr_assert_eq(tokens.count, 2);
}

Test(tokens, a_clause_ends_where_a_sentence_does)
{
    search_tokens tokens RT_CLEANUP(search_tokens_done) = { 0 };
    search_tokenise(RT_STR("read it, then write Paris"), 100, &tokens);
    cr_assert_eq(tokens.count, 5);
    cr_assert(tokens.items[1].ends_clause);
    cr_assert(!tokens.items[0].ends_clause);
    cr_assert(tokens.items[4].is_named);
    cr_assert(!tokens.items[3].is_named);
}
