/* SPDX-License-Identifier: Apache-2.0 */
/*
 * context.c - what the words around a candidate speak of.
 *
 * Words are runs of letters, cut where "phoneNumber" changes case, and matched whole in lower
 * case. Looked at: some words before on this line and the one before it, fewer after, and the
 * label (the key a JSON string stands under). A distance is counted in words, the label's is 0.
 */
#include "privacy/privacy_internal.h"

enum { BYTES_BEFORE = 64, WORDS_BEFORE = 7, BYTES_AFTER = 32, WORDS_AFTER = 4 };

bool privacy_fold(rt_str word, char *out, size_t size, size_t *len)
{
    if (word.len >= size)
        return false;
    for (size_t i = 0; i < word.len; i++) {
        unsigned char c = (unsigned char)word.ptr[i];
        out[i] = lower((char)c);
        /* Capital letters of Latin-1 are C3 80 to C3 9E, their small ones 32 further. */
        if (i && (unsigned char)word.ptr[i - 1] == 0xC3 && c >= 0x80 && c <= 0x9E)
            out[i] = (char)(c + 32);
    }
    out[word.len] = '\0';
    *len = word.len;
    return true;
}

static void hear(privacy_context *context, rt_str word, unsigned distance)
{
    uint32_t topics = word.len < 2 ? 0 : privacy_vocabulary(word) & (VOC(TOPICS) - 1);
    for (; topics; topics &= topics - 1) {
        unsigned char *known = &context->distance[__builtin_ctz(topics)];
        if (*known > distance)
            *known = (unsigned char)distance;
    }
}

/* Where the word that ends before `end` begins; letters only, cut at a change to upper case. */
static size_t word_begin(rt_str text, size_t end, size_t least)
{
    size_t i = end;
    while (i > least && is_class(text.ptr[i - 1], IS_LETTER | IS_HIGH)) {
        i--;
        if (i > least && is_class(text.ptr[i], IS_UPPER) && is_class(text.ptr[i - 1], IS_LOWER))
            break;
    }
    return i;
}

static void hear_before(rt_str text, size_t end, unsigned distance, privacy_context *out)
{
    size_t least = end > BYTES_BEFORE ? end - BYTES_BEFORE : 0;
    unsigned lines = 0;
    for (size_t i = end; i > least && distance < WORDS_BEFORE && lines < 2;) {
        char c = text.ptr[i - 1];
        if (!is_class(c, IS_LETTER | IS_HIGH)) {
            lines += c == '\n';
            i--;
            continue;
        }
        size_t begin = word_begin(text, i, least);
        hear(out, rt_str_slice(text, begin, i), distance);
        /* "WhatsApp" is one word, "homePhone" two: hear it both ways. */
        if (begin > least && is_class(text.ptr[begin - 1], IS_LOWER))
            hear(out, rt_str_slice(text, word_begin(text, begin, least), i), distance);
        distance++;
        i = begin;
    }
}

static void hear_after(rt_str text, size_t start, privacy_context *out)
{
    size_t most = RT_MIN(text.len, start + BYTES_AFTER);
    unsigned heard = 0;
    for (size_t i = start; i < most && heard < WORDS_AFTER && text.ptr[i] != '\n';) {
        size_t end = i;
        /* Another value, or the end of a sentence: what follows belongs to something else. */
        if (is_class(text.ptr[i], IS_DIGIT) || strchr(",;:=\"<{", text.ptr[i]) ||
            (text.ptr[i] == '.' && is_class(at(text, i + 1), IS_SPACE)))
            return;
        while (end < most && is_class(text.ptr[end], IS_LETTER | IS_HIGH))
            end++;
        if (end == i) {
            i++;
            continue;
        }
        hear(out, rt_str_slice(text, i, end), 1 + heard++);
        i = end;
    }
}

static const privacy_context nothing = { { [0 ... TOPICS - 1] = TOPIC_FAR } };

/* Several recognisers ask about one place, and each with ends of its own: what stands before and
 * what stands after are remembered apart. */
void privacy_context_at(privacy_scan *scan, size_t start, size_t end, privacy_context *out)
{
    privacy_heard *h = &scan->heard;
    if (!h->is_any || h->start != start) {
        h->before = nothing;
        hear_before(scan->text, start, 0, &h->before);
        if (scan->label.len)
            hear_before(scan->label, scan->label.len, 0, &h->before);
    }
    if (!h->is_any || h->end != end) {
        h->after = nothing;
        hear_after(scan->text, end, &h->after);
    }
    h->is_any = true;
    h->start = start;
    h->end = end;
    for (unsigned i = 0; i < TOPICS; i++)
        out->distance[i] = RT_MIN(h->before.distance[i], h->after.distance[i]);
}
