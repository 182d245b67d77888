/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokens.c - text into words, whether a person or a program wrote it.
 *
 * "listCommits", "list_commits", "LIST-COMMITS" and "list commits" give the same words, and so does
 * "listcommits", since what is no word but two words in a row is taken apart with the lexicon's
 * help. A name like "GitHub" stays one word when it is known as one. Letters of any script are
 * letters: accents are taken off Latin ones, and Chinese and Japanese signs, which come without
 * spaces, are words by two. Broken UTF-8 separates words.
 */
#include "tools/search_internal.h"

#include <stdlib.h>

enum { COMPOUND_MIN = 7, PART_MIN = 3, RARE = 8000 };

void search_tokens_done(search_tokens *tokens)
{
    free(tokens->items);
    *tokens = (search_tokens){ 0 };
}

static struct search_memo_word *place_of(search_memo *memo, const char *word, size_t len)
{
    uint32_t h = 2166136261u;
    if (!memo || len > SEARCH_WORD_MAX)
        return NULL;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)word[i]) * 16777619u;
    return &memo->words[(h ^ h >> 15) % RT_COUNT(memo->words)];
}

static search_token *push(search_tokens *out, const char *word, size_t len)
{
    if (out->count == out->cap) {
        out->cap = out->cap ? 2 * out->cap : 64;
        search_token *more = realloc(out->items, out->cap * sizeof(*more));
        if (!more)
            rt_out_of_memory(out->cap * sizeof(*more));
        out->items = more;
    }
    search_token *t = &out->items[out->count++];
    *t = (search_token){ 0 };
    t->word_len = (uint8_t)RT_MIN(len, (size_t)SEARCH_WORD_MAX);
    memcpy(t->word, word, t->word_len);
    const struct search_memo_word *known = place_of(out->memo, word, t->word_len);
    bool is_met =
        known && known->word_len == t->word_len && memcmp(known->word, word, t->word_len) == 0;
    memcpy(t->stem, is_met ? known->stem : word, t->word_len);
    t->stem_len = is_met ? known->stem_len : (uint8_t)search_stem(t->stem, t->word_len);
    return t;
}

static bool is_known(const char *word, size_t len)
{
    char stem[SEARCH_WORD_MAX];
    if (len > sizeof(stem))
        return false;
    memcpy(stem, word, len);
    return search_lexicon_find((rt_str){ stem, search_stem(stem, len) }) != SEARCH_NOT_A_WORD;
}

/* How common a word is, as its place in the list; a part of a compound has to be fairly common. */
static uint32_t commonness(const char *word, size_t len)
{
    char stem[SEARCH_WORD_MAX];
    memcpy(stem, word, len);
    uint32_t entry = search_lexicon_find((rt_str){ stem, search_stem(stem, len) });
    return entry == SEARCH_NOT_A_WORD ? UINT32_MAX / 4 : search_lexicon_place(entry);
}

/* Where a glued word comes apart, or 0: both parts known, the rarer of them as common as can be. */
static size_t seam(const char *word, size_t len)
{
    size_t best = 0;
    uint32_t best_cost = RARE, before = UINT32_MAX;
    if (len < COMPOUND_MIN || len > SEARCH_WORD_MAX || is_known(word, len))
        return 0;
    for (size_t i = PART_MIN; i + PART_MIN <= len; i++) {
        uint32_t left = commonness(word, i), cost = RT_MAX(left, commonness(word + i, len - i));
        bool is_same =
            cost < RARE && left == before; /* "sende" is "send", and "e" the next one's */
        before = cost < RARE ? left : UINT32_MAX;
        if (cost < best_cost && !is_same) {
            best_cost = cost;
            best = i;
        }
    }
    return best;
}

static size_t find_seam(search_tokens *out, const char *word, size_t len)
{
    struct search_memo_word *known = place_of(out->memo, word, len);
    if (known && known->word_len == len && memcmp(known->word, word, len) == 0)
        return known->seam;
    size_t at = seam(word, len);
    if (known) {
        memcpy(known->word, word, len);
        memcpy(known->stem, word, len);
        known->word_len = (uint8_t)len;
        known->stem_len = (uint8_t)search_stem(known->stem, len);
        known->seam = (uint8_t)at;
    }
    return at;
}

/* A word of small letters; with its parts, if it is glued of two. */
static void push_word(search_tokens *out, size_t max, const char *word, size_t len)
{
    size_t at = find_seam(out, word, len);
    if (out->count < max)
        push(out, word, len)->is_extra = at > 0;
    if (at > 0 && out->count + 2 <= max) {
        push(out, word, at);
        push(out, word + at, len - at);
    }
}

/* -- Letters ----------------------------------------------------------------------------------- */

typedef enum letter { L_NONE, L_SMALL, L_CAPITAL, L_DIGIT, L_SIGN } letter;

/* U+00C0 to U+017F without their accents; '?' marks the two that are no letters. */
static const char latin[] = "aaaaaaaceeeeiiiidnooooo?ouuuuytsaaaaaaaceeeeiiiidnooooo?ouuuuyty"
                            "aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiiiijjkkkllllllllllnnn"
                            "nnnnnnoooooooorrrrrrssssss"
                            "ssttttttuuuuuuuuuuuuwwyyyzzzzzzs";

static letter of_latin(uint32_t *c)
{
    bool is_odd = (*c >= 0x139 && *c < 0x149) || *c >= 0x179; /* where the odd ones are capitals */
    bool is_capital = *c < 0x100 ? *c < 0xe0 && *c != 0xdf : *c == 0x178 || (*c & 1) == is_odd;
    char plain = latin[*c - 0xc0];
    *c = (unsigned char)plain;
    return plain == '?' ? L_NONE : is_capital ? L_CAPITAL : L_SMALL;
}

static bool is_between(uint32_t c, uint32_t low, uint32_t high)
{
    return c >= low && c <= high;
}

/* Punctuation and symbols outside ASCII; everything else beyond Latin is taken for a letter. */
static bool is_mark(uint32_t c)
{
    return is_between(c, 0x80, 0xbf) || is_between(c, 0x2000, 0x2bff) ||
           is_between(c, 0x3000, 0x3004) || is_between(c, 0x3007, 0x3020) || c == 0x30fb ||
           is_between(c, 0xfe00, 0xfe6f) || is_between(c, 0xff00, 0xff0f) ||
           is_between(c, 0xff1a, 0xff20) || is_between(c, 0xff3b, 0xff40) ||
           is_between(c, 0xff5b, 0xff65) || is_between(c, 0xe000, 0xf8ff) || c >= 0x1f000 ||
           c == 0x60c || c == 0x61b || c == 0x61f || c == 0x6d4 || is_between(c, 0x964, 0x965);
}

/* Written without spaces between words. */
static bool is_sign(uint32_t c)
{
    return is_between(c, 0x3040, 0x30ff) || is_between(c, 0x3400, 0x9fff) ||
           is_between(c, 0xf900, 0xfaff) || is_between(c, 0xe00, 0xeff) ||
           is_between(c, 0x20000, 0x3ffff);
}

/* What a code point is; it becomes small. */
static letter classify(uint32_t *c)
{
    if (*c < 0x80) {
        if (is_between(*c, 'A', 'Z')) {
            *c += 'a' - 'A';
            return L_CAPITAL;
        }
        return is_between(*c, 'a', 'z') ? L_SMALL : is_between(*c, '0', '9') ? L_DIGIT : L_NONE;
    }
    if (is_sign(*c))
        return L_SIGN;
    if (is_mark(*c))
        return L_NONE;
    if (is_between(*c, 0xc0, 0x17f))
        return of_latin(c);
    if (is_between(*c, 0x391, 0x3a9) || is_between(*c, 0x410, 0x42f)) {
        *c += 0x20;
        return L_CAPITAL;
    }
    if (is_between(*c, 0x400, 0x40f)) {
        *c += 0x50;
        return L_CAPITAL;
    }
    return L_SMALL;
}

/* -- Words ------------------------------------------------------------------------------------- */

/* One run of letters and digits, as it is read: its small letters, and where it changes kind. */
typedef struct chunk {
    char text[4 * SEARCH_WORD_MAX];
    uint8_t kinds[4 * SEARCH_WORD_MAX]; /* by byte */
    size_t len;
} chunk;

static bool is_inside(const chunk *c, size_t i) /* a character of several bytes */
{
    return i < c->len && (c->text[i] & 0xc0) == 0x80;
}

/* "listCommits", "PDFReader", "page2": a part begins where small meets capital, where the last
 * capital of many starts a small word, and between letters and digits. */
static bool begins_part(const chunk *c, size_t i)
{
    size_t next = i + 1;
    while (is_inside(c, next))
        next++;
    letter before = c->kinds[i - 1], here = c->kinds[i];
    letter after = next < c->len ? c->kinds[next] : here;
    return !is_inside(c, i) &&
           ((before == L_SMALL && here == L_CAPITAL) ||
            (before == L_CAPITAL && here == L_CAPITAL && after == L_SMALL) ||
            ((before == L_DIGIT) != (here == L_DIGIT)) || ((before == L_SIGN) != (here == L_SIGN)));
}

static size_t next_part(const chunk *c, size_t from)
{
    size_t to = from + 1;
    while (to < c->len && !begins_part(c, to))
        to++;
    return to;
}

static void push_signs(search_tokens *out, size_t max, const char *text, size_t len)
{
    size_t at = 0, previous = 0;
    while (at < len && out->count < max) {
        size_t step = RT_MAX(rt_utf8_step((rt_str){ text + at, len - at }, NULL), (size_t)1);
        if (at > 0)
            push(out, text + previous, at + step - previous);
        else if (step >= len)
            push(out, text, len);
        previous = at;
        at += step;
    }
}

static void push_part(search_tokens *out, size_t max, const chunk *c, size_t from, size_t to)
{
    if (out->count >= max)
        return;
    if (c->kinds[from] == L_SIGN)
        push_signs(out, max, c->text + from, to - from);
    else if (c->kinds[from] == L_DIGIT)
        push(out, c->text + from, to - from)->is_number = true;
    else
        push_word(out, max, c->text + from, to - from);
}

/* "GitHub" is known, "mp3" and "s3" are names too: then the parts say nothing of their own. */
static bool is_one_word(const chunk *c)
{
    bool has_digit = memchr(c->kinds, L_DIGIT, c->len);
    if (has_digit)
        return c->len <= 5 && c->kinds[0] != L_DIGIT;
    return is_known(c->text, c->len);
}

static void flush(chunk *c, size_t max, bool is_start, search_tokens *out)
{
    size_t first = out->count;
    if (c->len == 0 || out->count >= max)
        return;
    size_t to = next_part(c, 0);
    if (to == c->len) {
        push_part(out, max, c, 0, c->len);
    } else if (c->len <= SEARCH_WORD_MAX && is_one_word(c)) {
        push(out, c->text, c->len);
    } else {
        push(out, c->text, c->len)->is_extra = true;
        for (size_t from = 0; from < c->len; from = to) {
            to = next_part(c, from);
            push_part(out, max, c, from, to);
        }
    }
    for (size_t i = first; i < out->count; i++)
        out->items[i].is_named = !is_start && c->kinds[0] == L_CAPITAL;
    c->len = 0;
}

static uint32_t decode(rt_str s, size_t step)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    switch (step) {
    case 1:
        return p[0];
    case 2:
        return (uint32_t)(p[0] & 0x1f) << 6 | (p[1] & 0x3f);
    case 3:
        return (uint32_t)(p[0] & 0x0f) << 12 | (uint32_t)(p[1] & 0x3f) << 6 | (p[2] & 0x3f);
    default:
        return (uint32_t)(p[0] & 0x07) << 18 | (uint32_t)(p[1] & 0x3f) << 12 |
               (uint32_t)(p[2] & 0x3f) << 6 | (p[3] & 0x3f);
    }
}

static void take(chunk *c, uint32_t code_point, letter kind)
{
    char bytes[4];
    size_t n = rt_utf8_put(bytes, code_point);
    if (c->len + n > sizeof(c->text))
        return;
    memcpy(c->text + c->len, bytes, n);
    memset(c->kinds + c->len, kind, n);
    c->len += n;
}

static bool is_clause_end(uint32_t c)
{
    return c == '.' || c == ',' || c == ';' || c == '?' || c == '!' || c == '\n' || c == ':' ||
           c == 0x3002 || c == 0xff0c || c == 0xff1f;
}

void search_tokenise(rt_str text, size_t max, search_tokens *out)
{
    chunk c = { .len = 0 };
    bool is_start = true;
    while (text.len > 0 && out->count < max) {
        size_t bad = 1, step = rt_utf8_step(text, &bad);
        uint32_t code_point = step ? decode(text, step) : ' ', original = code_point;
        letter kind = classify(&code_point);
        text = rt_str_slice(text, step ? step : bad, text.len);
        if (kind != L_NONE) {
            take(&c, code_point, kind);
            continue;
        }
        if ((original == '\'' || original == 0x2019) && c.len > 0) /* "don't", "user's" */
            continue;
        if (c.len > 0) {
            flush(&c, max, is_start, out);
            is_start = false;
        }
        if (is_clause_end(original) && out->count > 0) {
            out->items[out->count - 1].ends_clause = true;
            is_start = original != ',';
        }
    }
    flush(&c, max, is_start, out);
}
