/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.c - one pass over the text, from one byte worth looking at to the next.
 *
 * A table of byte pairs tells where something may begin: a digit, '@', ':', '=', the first two
 * letters of a known kind of key. Everywhere else the pass costs one look-up a byte. Recognisers
 * for what was found look at no more than a fixed stretch around it, so the whole is linear.
 *
 * Why not Vectorscan, which does all patterns in one pass too: nearly all the judgement here is in
 * what surrounds a candidate, its patterns would match every number in a log, and each match
 * would cost a call back and the same checks again; and it forgets where a match began unless
 * paid for it.
 */
#include "privacy/privacy_internal.h"

#include <pthread.h>
#include <stdlib.h>

#define D   (IS_DIGIT | IS_HEX | IS_KEY)
#define L   (IS_LOWER | IS_KEY)
#define U   (IS_UPPER | IS_KEY)
#define X   IS_HEX
#define H   IS_HIGH
#define S   IS_SPACE
#define H16 H, H, H, H, H, H, H, H, H, H, H, H, H, H, H, H
const unsigned char privacy_class[256] = {
    ['\t'] = S,     ['\n'] = S,     ['\r'] = S,    [' '] = S,     ['+'] = IS_KEY, ['/'] = IS_KEY,
    ['_'] = IS_KEY, ['-'] = IS_KEY, ['0'] = D,     ['1'] = D,     ['2'] = D,      ['3'] = D,
    ['4'] = D,      ['5'] = D,      ['6'] = D,     ['7'] = D,     ['8'] = D,      ['9'] = D,
    ['a'] = L | X,  ['b'] = L | X,  ['c'] = L | X, ['d'] = L | X, ['e'] = L | X,  ['f'] = L | X,
    ['g'] = L,      ['h'] = L,      ['i'] = L,     ['j'] = L,     ['k'] = L,      ['l'] = L,
    ['m'] = L,      ['n'] = L,      ['o'] = L,     ['p'] = L,     ['q'] = L,      ['r'] = L,
    ['s'] = L,      ['t'] = L,      ['u'] = L,     ['v'] = L,     ['w'] = L,      ['x'] = L,
    ['y'] = L,      ['z'] = L,      ['A'] = U | X, ['B'] = U | X, ['C'] = U | X,  ['D'] = U | X,
    ['E'] = U | X,  ['F'] = U | X,  ['G'] = U,     ['H'] = U,     ['I'] = U,      ['J'] = U,
    ['K'] = U,      ['L'] = U,      ['M'] = U,     ['N'] = U,     ['O'] = U,      ['P'] = U,
    ['Q'] = U,      ['R'] = U,      ['S'] = U,     ['T'] = U,     ['U'] = U,      ['V'] = U,
    ['W'] = U,      ['X'] = U,      ['Y'] = U,     ['Z'] = U,     [128] = H16,    [144] = H16,
    [160] = H16,    [176] = H16,    [192] = H16,   [208] = H16,   [224] = H16,    [240] = H16,
};
#undef D
#undef L
#undef U
#undef X
#undef H
#undef S

/* ---- spans ---- */

bool privacy_add(privacy_scan *scan, unsigned type, size_t start, size_t end, int score)
{
    unsigned least = scan->min_score[type] ? scan->min_score[type] : RT_PRIVACY_MIN_SCORE;
    if (!wants(scan, type) || score < (int)least)
        return false;
    if (scan->count == RT_PRIVACY_SPANS_MAX) {
        scan->is_overfull = true;
        return false;
    }
    if (scan->count == scan->capacity) {
        size_t capacity = scan->capacity ? scan->capacity * 2 : 16;
        scan->spans =
            rt_arena_resize(scan->arena, scan->spans, scan->capacity * sizeof(*scan->spans),
                            capacity * sizeof(*scan->spans));
        scan->capacity = capacity;
    }
    scan->spans[scan->count++] = (rt_pii_span){
        .start = start, .end = end, .type = type, .score = (unsigned)RT_MIN(score, 100)
    };
    return true;
}

static int by_position(const void *a, const void *b)
{
    const rt_pii_span *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->end < y->end) - (x->end > y->end);
}

/* Own patterns were asked for by name; then what has a checksum or a form of its own. */
static int rank(const rt_pii_span *span)
{
    static const unsigned char ranks[RT_PII_BUILTIN] = {
        [RT_PII_EMAIL] = 7,    [RT_PII_SSN] = 4,
        [RT_PII_PHONE] = 3,    [RT_PII_CREDIT_CARD] = 6,
        [RT_PII_ADDRESS] = 3,  [RT_PII_API_KEY] = 5,
        [RT_PII_IP] = 4,       [RT_PII_IBAN] = 7,
        [RT_PII_URL] = 2,      [RT_PII_DATE_OF_BIRTH] = 4,
        [RT_PII_PASSPORT] = 4, [RT_PII_DRIVER_LICENSE] = 4,
        [RT_PII_PERSON] = 1,
    };
    if (span->type >= RT_PII_BUILTIN)
        return 10;
    if (span->type == RT_PII_URL && span->score >= RT_PRIVACY_URL_SECRET)
        return 9;
    return ranks[span->type];
}

static bool is_stronger(const rt_pii_span *a, const rt_pii_span *b)
{
    if (rank(a) != rank(b))
        return rank(a) > rank(b);
    if (a->score != b->score)
        return a->score > b->score;
    return a->end - a->start > b->end - b->start;
}

void privacy_settle(privacy_scan *scan)
{
    size_t kept = 0;
    if (scan->count > 1)
        qsort(scan->spans, scan->count, sizeof(*scan->spans), by_position);
    for (size_t i = 0; i < scan->count; i++) {
        rt_pii_span span = scan->spans[i];
        bool is_beaten = false;
        while (kept && scan->spans[kept - 1].end > span.start && !is_beaten) {
            is_beaten = !is_stronger(&span, &scan->spans[kept - 1]);
            kept -= !is_beaten;
        }
        if (!is_beaten)
            scan->spans[kept++] = span;
    }
    scan->count = kept;
}

/* ---- where to look ---- */

static unsigned char pairs[1 << 13]; /* one bit per pair of bytes, the first in the low half */
static bool signs[256];              /* bytes to look at wherever they are */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void mark(unsigned char first, unsigned char second)
{
    unsigned pair = first | (unsigned)second << 8;
    pairs[pair >> 3] |= (unsigned char)(1u << (pair & 7));
}

static void prepare(void)
{
    for (const char *c = "0123456789@:=>-"; *c; c++)
        signs[(unsigned char)*c] = true;
    mark('i', 's');
    mark('w', 'w');
    mark('W', 'W');
    privacy_prefix_pairs(pairs);
    privacy_vocabulary_learn();
}

static inline bool is_marked(unsigned char first, unsigned char second)
{
    unsigned pair = first | (unsigned)second << 8;
    return pairs[pair >> 3] >> (pair & 7) & 1;
}

static size_t look(privacy_scan *scan, size_t i)
{
    size_t next;
    switch (scan->text.ptr[i]) {
    case '@':
        return privacy_email(scan, i);
    case ':':
        next = privacy_url(scan, i);
        if (next == i)
            next = privacy_ipv6(scan, i);
        return next != i ? next : privacy_assigned(scan, i);
    case '=':
    case '>':
        return privacy_assigned(scan, i);
    case '-':
        return privacy_key_block(scan, i);
    case 'i': /* "the password is …" */
        next = privacy_prefixed(scan, i);
        return next == i && before(scan, i) == ' ' && at(scan->text, i + 2) == ' '
                   ? privacy_told(scan, i)
                   : next;
    default:
        if (is_class(scan->text.ptr[i], IS_DIGIT))
            return privacy_number(scan, i);
        next = privacy_www(scan, i);
        return next != i ? next : privacy_prefixed(scan, i);
    }
}

static void scan_persons(privacy_scan *scan, size_t from, size_t to)
{
    for (size_t i = from; i < to;) {
        bool begins = is_class(scan->text.ptr[i], IS_UPPER) && !is_class(before(scan, i), IS_WORD);
        size_t next = begins ? privacy_person(scan, i) : i;
        i = next > i ? next : i + 1;
    }
}

/* Letters matter only where a word begins, and then only if its first two may begin a key. */
static size_t scan_word(privacy_scan *scan, size_t i)
{
    const unsigned char *text = (const unsigned char *)scan->text.ptr;
    size_t len = scan->text.len;
    if (i + 1 < len && is_marked(text[i], text[i + 1]) &&
        !(i && privacy_class[text[i - 1]] & IS_WORD)) {
        size_t next = look(scan, i);
        if (next > i)
            return next;
    }
    do
        i++;
    while (i < len && privacy_class[text[i]] & IS_LETTER);
    return i;
}

void privacy_scan_range(privacy_scan *scan, size_t from, size_t to)
{
    const unsigned char *text = (const unsigned char *)scan->text.ptr;
    pthread_once(&once, prepare);
    for (size_t i = from; i < to;) {
        if (privacy_class[text[i]] & IS_LETTER) {
            i = scan_word(scan, i);
        } else if (signs[text[i]]) {
            size_t next = look(scan, i);
            i = next > i ? next : i + 1;
        } else {
            i++;
        }
    }
    if (wants(scan, RT_PII_PERSON))
        scan_persons(scan, from, to);
}

void privacy_scan_init(privacy_scan *scan, rt_str text, const rt_privacy_options *options,
                       rt_arena *arena)
{
    static const rt_privacy_options usual;
    if (!options)
        options = &usual;
    *scan = (privacy_scan){
        .text = text,
        .types = options->types ? options->types : RT_PII_USUAL,
        .min_score = options->min_score,
        .is_lenient = options->is_lenient,
        .label = options->label,
        .arena = arena,
    };
}

/* Fills in the positions in code points, in one walk along the text. */
static void count_points(privacy_scan *scan)
{
    size_t points = 0, i = 0;
    for (size_t k = 0; k < scan->count; k++) {
        rt_pii_span *span = &scan->spans[k];
        points += rt_utf8_length(rt_str_slice(scan->text, i, span->start));
        span->start_point = points;
        points += rt_utf8_length(rt_str_slice(scan->text, span->start, span->end));
        span->end_point = points;
        i = span->end;
    }
}

bool rt_privacy_scan(rt_str text, const rt_privacy_options *options, rt_arena *arena,
                     rt_pii_spans *out, rt_error *err)
{
    privacy_scan scan;
    privacy_scan_init(&scan, text, options, arena);
    privacy_scan_range(&scan, 0, text.len);
    if (scan.label.len) {
        privacy_labelled_secret(&scan);
        privacy_labelled_address(&scan, scan.label, 0);
    }
    if (options && options->patterns && !privacy_patterns_scan(&scan, options->patterns, err))
        return false;
    if (scan.is_overfull)
        return rt_fail(err, RT_LIMIT, "more than %zu pieces of personal data in one text",
                       RT_PRIVACY_SPANS_MAX);
    privacy_settle(&scan);
    count_points(&scan);
    *out = (rt_pii_spans){ scan.spans, scan.count };
    return true;
}
