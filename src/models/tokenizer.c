/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokenizer.c - text into the numbers of its pieces, exactly as BERT's tokenizer does it.
 *
 * Two steps in one pass. Characters: control characters go, Chinese ones stand alone, accents go
 * (NFD without its marks), letters become small, spaces and punctuation end a word. Words
 * (WordPiece): the longest piece the vocabulary has, then the longest that goes on from there; a
 * word that cannot be made up of pieces, or is too long, is [UNK] as a whole.
 *
 * The judge is the library that sentence-transformers uses. Where it differs from BERT's first
 * published code (a sigma at the end of a word, characters not assigned yet), this follows the
 * library.
 */
#include "models/models_internal.h"

#include <strings.h>

enum { WORD_CHARS = 256, PIECE_BYTES = 1024, DOTTED_I = 0x130, DOT_ABOVE = 0x307 };

/* One text on its way. */
typedef struct run {
    const tokenizer *t;
    uint32_t *ids;
    size_t count, max; /* without the last token */
    char word[4 * WORD_CHARS];
    size_t len, chars;
} run;

static uint32_t decode(const char *at, size_t size)
{
    static const uint8_t lead[] = { 0, 0x7F, 0x1F, 0x0F, 0x07 };
    uint32_t c = (uint8_t)at[0] & lead[size];
    for (size_t i = 1; i < size; i++)
        c = c << 6 | ((uint8_t)at[i] & 0x3F);
    return c;
}

/* -- Words into pieces ------------------------------------------------------------------------- */

static void add_id(run *r, uint32_t id)
{
    if (r->count < r->max)
        r->ids[r->count++] = id;
}

static bool is_boundary(const char *at)
{
    return ((uint8_t)*at & 0xC0) != 0x80;
}

/* The longest piece the rest of the word begins with; its size, or 0. */
static size_t longest_piece(const tokenizer *t, rt_str rest, bool is_inside, uint32_t *id)
{
    char text[PIECE_BYTES];
    size_t prefix = is_inside ? t->prefix.len : 0;
    size_t size = RT_MIN(rest.len, t->pieces.longest);
    memcpy(text, t->prefix.ptr, prefix);
    memcpy(text + prefix, rest.ptr, size);
    for (; size > 0; size--) {
        if (size < rest.len && !is_boundary(rest.ptr + size))
            continue;
        *id = vocabulary_find(&t->pieces, (rt_str){ text, prefix + size });
        if (*id != VOCABULARY_NONE)
            return size;
    }
    return 0;
}

static void end_word(run *r)
{
    uint32_t pieces[WORD_CHARS];
    size_t count = 0, at = 0, size = 1;
    rt_str word = { r->word, r->len };
    bool is_known = r->chars <= r->t->word_chars_max;
    if (r->chars == 0)
        return;
    for (; is_known && at < word.len; at += size) {
        size = longest_piece(r->t, rt_str_slice(word, at, word.len), at > 0, &pieces[count]);
        is_known = size > 0;
        count++;
    }
    for (size_t i = 0; i < count && is_known; i++)
        add_id(r, pieces[i]);
    if (!is_known)
        add_id(r, r->t->unknown);
    r->len = r->chars = 0;
}

/* -- Characters into words --------------------------------------------------------------------- */

static void put(run *r, uint32_t c)
{
    bool is_alone = unicode_kind_of(c) == UNICODE_PUNCTUATION;
    if (is_alone)
        end_word(r);
    if (r->chars < r->t->word_chars_max)
        r->len += rt_utf8_put(r->word + r->len, c);
    r->chars++;
    if (is_alone)
        end_word(r);
}

static void put_lowered(run *r, uint32_t c)
{
    if (r->t->lowers && c == DOTTED_I) {
        put(r, 'i');
        put(r, DOT_ABOVE);
    } else {
        put(r, r->t->lowers ? unicode_lower(c) : c);
    }
}

static void take(run *r, uint32_t c)
{
    uint32_t bare[UNICODE_BARE_MAX] = { c };
    unicode_kind kind = unicode_kind_of(c);
    bool is_cjk = r->t->spaces_cjk && unicode_is_cjk(c);
    if (kind == UNICODE_CONTROL && r->t->drops_control)
        return;
    if (kind == UNICODE_SPACE || is_cjk)
        end_word(r);
    if (kind == UNICODE_SPACE)
        return;
    size_t count = r->t->strips_accents ? unicode_bare(c, bare) : 1;
    for (size_t i = 0; i < count; i++)
        put_lowered(r, bare[i]);
    if (is_cjk)
        end_word(r);
}

/* The longest of the special tokens that is written here. */
static const tokenizer_special *special_at(const tokenizer *t, rt_str rest)
{
    const tokenizer_special *best = NULL;
    for (size_t i = 0; i < t->special_count; i++) {
        const tokenizer_special *s = &t->specials[i];
        bool is_here = s->text.len <= rest.len &&
                       (s->is_any_case ? strncasecmp(rest.ptr, s->text.ptr, s->text.len)
                                       : memcmp(rest.ptr, s->text.ptr, s->text.len)) == 0;
        if (is_here && (!best || s->text.len > best->text.len))
            best = s;
    }
    return best;
}

size_t tokenizer_run(const tokenizer *t, rt_str text, uint32_t *ids, size_t max)
{
    run r = { .t = t, .ids = ids, .max = max - 1 };
    add_id(&r, t->first);
    for (size_t i = 0; i < text.len && r.count < r.max;) {
        rt_str rest = rt_str_slice(text, i, text.len);
        const tokenizer_special *special = special_at(t, rest);
        size_t bad, size = special ? special->text.len : rt_utf8_step(rest, &bad);
        if (special) {
            end_word(&r);
            add_id(&r, special->id);
        } else if (size > 0) {
            take(&r, decode(rest.ptr, size));
        }
        i += size ? size : bad;
    }
    end_word(&r);
    ids[r.count++] = t->last;
    return r.count;
}
