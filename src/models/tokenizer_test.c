/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "models/models_internal.h"

static const char vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"            /* 0 to 4 */
                            "un\n##aff\n##able\nrun\n##ning\n!\n"             /* 5 to 10 */
                            "cafe\nCafe\na\n##a\n東\n京\nᄒ\n##ᅡ\n##ᆫ\n.\n" /* 11 to 20 */
                            "é\n##é\ni\n";                                    /* 21 to 23 */

static rt_arena arena;

static tokenizer tokenizer_of(const tokenizer_files *files)
{
    rt_error err = { 0 };
    tokenizer t;
    cr_assert(tokenizer_read(files, false, &arena, &t, &err), "%s", err.text);
    return t;
}

static void expect(const tokenizer *t, const char *text, size_t max, const char *wanted)
{
    uint32_t ids[512];
    rt_buf got RT_CLEANUP(rt_buf_done) = { 0 };
    size_t count = tokenizer_run(t, rt_str_of(text), ids, max);
    for (size_t i = 0; i < count; i++)
        rt_buf_addf(&got, "%s%u", i ? " " : "", ids[i]);
    cr_expect(rt_str_eq_c(rt_buf_str(&got), wanted), "%s: %.*s, not %s", text,
              RT_FMT(rt_buf_str(&got)), wanted);
}

static void done(void)
{
    rt_arena_done(&arena);
}

TestSuite(tokenizer, .fini = done);

Test(tokenizer, words_become_their_longest_pieces)
{
    tokenizer t = tokenizer_of(&(tokenizer_files){ .vocab = rt_str_of(vocab) });
    expect(&t, "unaffable running!", 64, "2 5 6 7 8 9 10 3");
    expect(&t, "", 64, "2 3");
    expect(&t, " \t\r\n", 64, "2 3");
    expect(&t, "unx", 64, "2 1 3");
    expect(&t, "a!a", 64, "2 13 10 13 3");
    expect(&t, "aaa", 64, "2 13 14 14 3");
}

Test(tokenizer, accents_case_and_control_characters_do_not_matter)
{
    tokenizer t = tokenizer_of(&(tokenizer_files){ .vocab = rt_str_of(vocab) });
    expect(&t, "CAFÉ", 64, "2 11 3");
    expect(&t, "cafe\xCC\x81", 64, "2 11 3");
    expect(&t,
           "ca\xE2\x80\x8B\xC2\xAD"
           "fe",
           64, "2 11 3");
    expect(&t,
           "caf\xFF"
           "e",
           64, "2 11 3");
    expect(&t, "東京", 64, "2 15 16 3");
    expect(&t, "한", 64, "2 17 18 19 3");
    expect(&t, "\xCC\x81", 64, "2 3");
}

Test(tokenizer, a_cased_tokenizer_keeps_case_and_accents)
{
    tokenizer t = tokenizer_of(&(tokenizer_files){ .vocab = rt_str_of(vocab),
                                                   .config = RT_STR("{\"do_lower_case\":false}") });
    expect(&t, "Cafe cafe é aé", 64, "2 12 11 21 13 22 3");
    expect(&t, "CAFE", 64, "2 1 3");
}

Test(tokenizer, letters_alone_may_become_small)
{
    tokenizer t = tokenizer_of(
        &(tokenizer_files){ .vocab = rt_str_of(vocab),
                            .config = RT_STR("{\"do_lower_case\":true,\"strip_accents\":false}") });
    expect(&t, "É A", 64, "2 21 13 3");
}

Test(tokenizer, long_texts_are_cut_and_long_words_unknown)
{
    char word[102];
    tokenizer t = tokenizer_of(&(tokenizer_files){ .vocab = rt_str_of(vocab) });
    expect(&t, "a a a a a a", 4, "2 13 13 3");
    expect(&t, "a unaffable", 4, "2 13 5 3");
    expect(&t, "a unaffx", 4, "2 13 1 3"); /* unknown, though the cut comes before its x */
    expect(&t, "a", 2, "2 3");
    memset(word, 'a', sizeof(word));
    word[101] = '\0';
    expect(&t, word, 64, "2 1 3");
    word[100] = '\0';
    uint32_t ids[512];
    cr_expect_eq(tokenizer_run(&t, rt_str_of(word), ids, 512), 102u);
}

Test(tokenizer, special_tokens_are_found_as_they_are_written)
{
    tokenizer t = tokenizer_of(&(tokenizer_files){ .vocab = rt_str_of(vocab) });
    expect(&t, "a[MASK]a [SEP]", 64, "2 13 4 13 3 3");
    expect(&t, "[mask]", 64, "2 1 1 1 3");
}

Test(tokenizer, the_whole_of_it_may_be_in_one_file)
{
    const char json[] =
        "{\"added_tokens\":[{\"id\":9,\"content\":\"<x>\",\"normalized\":true}],"
        "\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":true},"
        "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
        "\"model\":{\"type\":\"WordPiece\",\"continuing_subword_prefix\":\"@\","
        "\"max_input_chars_per_word\":4,\"vocab\":{\"[UNK]\":0,\"[CLS]\":1,\"[SEP]\":2,\"ab\":3,"
        "\"@c\":4}}}";
    tokenizer t = tokenizer_of(&(tokenizer_files){ .tokenizer = rt_str_of(json) });
    expect(&t, "abc ABcc abccc", 64, "1 3 4 3 4 4 0 2");
    expect(&t, "<X>ab", 64, "1 9 3 2");
}

Test(tokenizer, what_would_be_done_differently_is_refused)
{
    static const struct {
        const char *tokenizer, *config;
    } wrong[] = {
        { "{}", "" },
        { "{\"model\":{\"type\":\"BPE\"}}", "" },
        { "{\"model\":{\"type\":\"WordPiece\"}}", "" },
        { "", "{\"do_basic_tokenize\":false}" },
        { "", "{\"cls_token\":\"<none>\"}" },
        { "", "{" },
    };
    for (size_t i = 0; i < RT_COUNT(wrong); i++) {
        rt_error err = { 0 };
        tokenizer t;
        tokenizer_files files = { .tokenizer = rt_str_of(wrong[i].tokenizer),
                                  .config = rt_str_of(wrong[i].config),
                                  .vocab = rt_str_of(vocab) };
        cr_expect(!tokenizer_read(&files, false, &arena, &t, &err), "%zu", i);
        cr_expect_gt(strlen(err.text), 10u);
    }
}
