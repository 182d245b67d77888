/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lexicon.c - what is known of English words: how common they are and which are near each other.
 *
 * The knowledge is words/words.bin, part of this program: 24,000 stems with a vector each,
 * distilled from public word statistics by words/make.py, which also says what the bytes are. We
 * made the file ourselves, so it is not checked when it is read; a test looks through it once.
 */
#include "tools/search_internal.h"

#include <endian.h>

/* The compiler runs in the root of the tree. */
__asm__(".pushsection .rodata\n"
        ".balign 8\n"
        "search_words_bin:\n"
        ".incbin \"src/tools/words/words.bin\"\n"
        "search_words_bin_end:\n"
        ".byte 0\n"
        ".popsection\n");
extern const unsigned char search_words_bin[] __attribute__((visibility("hidden")));

enum { HEADER = 20 };

static uint32_t u32_at(size_t at)
{
    uint32_t n;
    memcpy(&n, search_words_bin + at, sizeof(n));
    return le32toh(n);
}

static uint16_t u16_at(size_t at)
{
    uint16_t n;
    memcpy(&n, search_words_bin + at, sizeof(n));
    return le16toh(n);
}

static uint32_t entry_count(void)
{
    return u32_at(8);
}

/* Where the columns of the table begin. */
static size_t places(void)
{
    return HEADER + 4 * (size_t)entry_count();
}

static size_t nears(void)
{
    return places() + 2 * (size_t)entry_count();
}

static size_t likenesses(void)
{
    return nears() + 2 * (size_t)SEARCH_LEXICON_NEAR * entry_count();
}

static size_t vectors(void)
{
    return likenesses() + (size_t)SEARCH_LEXICON_NEAR * entry_count();
}

static size_t texts(void)
{
    return vectors() + (size_t)SEARCH_LEXICON_DIMS * entry_count();
}

rt_str search_lexicon_stem(uint32_t entry)
{
    size_t from = entry ? u32_at(HEADER + 4 * (size_t)(entry - 1)) : 0;
    size_t to = u32_at(HEADER + 4 * (size_t)entry);
    return (rt_str){ (const char *)search_words_bin + texts() + from, to - from };
}

uint32_t search_lexicon_find(rt_str stem)
{
    uint32_t low = 0, high = entry_count();
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = rt_str_cmp(search_lexicon_stem(middle), stem);
        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return SEARCH_NOT_A_WORD;
}

uint32_t search_lexicon_place(uint32_t entry)
{
    return u16_at(places() + 2 * (size_t)entry);
}

const int8_t *search_lexicon_vector(uint32_t entry)
{
    return (const int8_t *)search_words_bin + vectors() + (size_t)SEARCH_LEXICON_DIMS * entry;
}

uint32_t search_lexicon_near(uint32_t entry, size_t i, float *likeness)
{
    size_t at = (size_t)SEARCH_LEXICON_NEAR * entry + i;
    *likeness = (float)search_words_bin[likenesses() + at] / 255.0f;
    return u16_at(nears() + 2 * at);
}
