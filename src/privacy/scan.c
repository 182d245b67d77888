/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.c - one pass over the text, from one byte worth looking at to the next.
 *
 * Sixty-four bytes at a time become two sets of bits: letters, and signs such as digits, '@', ':'
 * and '='. Looked at are signs, and words whose first three letters may begin a key; the rest costs
 * one look-up a byte. A recogniser reads no more than a fixed stretch around its place, so the
 * whole is linear.
 *
 * Why not Vectorscan, which also does all patterns in one pass: most of the judgement here is in
 * what surrounds a candidate. Ten plain patterns, with starts of matches and no judgement at all,
 * took it 7 ms a MB of prose, 20 of logs and 53 of text full of matches; this takes 3, 18 and 18
 * with all of it. PCRE2's JIT takes 7 to 12 for seventeen plain patterns, one after another, and
 * then knows candidates only (bench/privacy.py).
 */
#include "privacy/privacy_internal.h"

#include <pthread.h>
#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

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
    scan->is_unsorted |= scan->count && scan->spans[scan->count - 1].start > start;
    scan->spans[scan->count++] = (rt_pii_span){
        .start = start, .end = end, .type = type, .score = (unsigned)RT_MIN(score, 100)
    };
    return true;
}

/* Ties: the longer first. */
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
    if (scan->is_unsorted)
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

/* What makes a byte worth looking at, and a hash of three bytes that may begin a key. */
enum { LETTER = 1, SIGN = 2 };
static unsigned char kinds[256];
static uint64_t triples[1 << 10];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static inline unsigned triple_of(const char *three)
{
    unsigned a = (unsigned char)three[0], b = (unsigned char)three[1], c = (unsigned char)three[2];
    return (a * 1031 + b * 257 + c * 7) & 0xFFFF;
}

void privacy_mark(const char *three)
{
    unsigned triple = triple_of(three);
    triples[triple / 64] |= UINT64_C(1) << (triple % 64);
}

static void prepare(void)
{
    for (unsigned c = 0; c < 256; c++)
        kinds[c] = privacy_class[c] & IS_LETTER ? LETTER : 0;
    for (const char *c = "0123456789@:=>-,"; *c; c++)
        kinds[(unsigned char)*c] = SIGN;
    privacy_mark("is ");
    privacy_mark("D.O");
    privacy_mark("d.o");
    privacy_mark("www");
    privacy_mark("WWW");
    privacy_mark("Www");
    privacy_mark_keys();
    privacy_vocabulary_learn();
    privacy_phone_learn();
    privacy_address_learn();
    privacy_entropy_learn();
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
    case ',': /* define('PASSWORD', '…') */
        if (!is_one_of(before(scan, i), "'\""))
            return i;
        return privacy_assigned(scan, i);
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

static void note_rare(privacy_scan *scan, size_t i)
{
    size_t end = i;
    while (end < scan->text.len && end - i < 24 &&
           is_class(scan->text.ptr[end], IS_LETTER | IS_HIGH))
        end++;
    bool is_spelled = lower(scan->text.ptr[i]) == 'd' && end == i + 1; /* D.O.B. */
    uint32_t topics = privacy_vocabulary(rt_str_slice(scan->text, i, end));
    if (is_spelled || topics & PRIVACY_RARE)
        scan->rare_end = end;
    if (topics & VOC(TOPIC_SECRET))
        scan->secret_end = end;
}

/* Letters matter only where a word begins, and then only if its first three may begin a key. */
static size_t look_at_word(privacy_scan *scan, size_t i)
{
    if (i + 3 > scan->text.len)
        return i;
    unsigned triple = triple_of(scan->text.ptr + i);
    if (!(triples[triple / 64] >> (triple % 64) & 1))
        return i;
    note_rare(scan, i);
    return is_class(before(scan, i), IS_WORD) ? i : look(scan, i);
}

/* One bit for each of up to 64 bytes: is it a letter, is it a sign. */
static void classify_few(const unsigned char *text, size_t n, uint64_t *letters, uint64_t *signs)
{
    uint64_t l = 0, s = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t kind = kinds[text[i]];
        l |= (kind & LETTER) << i;
        s |= (kind >> 1) << i;
    }
    *letters = l;
    *signs = s;
}

#ifdef __SSE2__
/* Which of sixteen bytes lie in low..high: bytes are signed here, so the range is moved to the
 * bottom. */
static inline __m128i in_range(__m128i bytes, char low, char high)
{
    __m128i moved = _mm_sub_epi8(bytes, _mm_set1_epi8((char)(low + 128)));
    return _mm_cmplt_epi8(moved, _mm_set1_epi8((char)(high - low + 1 - 128)));
}

/* The same for a whole block. ':' follows '9', so one range holds the digits and it. */
static void classify(const unsigned char *text, uint64_t *letters, uint64_t *signs)
{
    uint64_t l = 0, s = 0;
    for (unsigned k = 0; k < 4; k++) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(text + 16 * k));
        __m128i folded = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
        __m128i sign = _mm_or_si128(in_range(bytes, '0', ':'), in_range(bytes, '=', '>'));
        sign = _mm_or_si128(sign, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('@')));
        sign = _mm_or_si128(sign, in_range(bytes, ',', '-'));
        l |= (uint64_t)(unsigned)_mm_movemask_epi8(in_range(folded, 'a', 'z')) << 16 * k;
        s |= (uint64_t)(unsigned)_mm_movemask_epi8(sign) << 16 * k;
    }
    *letters = l;
    *signs = s;
}
#else
static void classify(const unsigned char *text, uint64_t *letters, uint64_t *signs)
{
    classify_few(text, 64, letters, signs);
}
#endif

void privacy_scan_range(privacy_scan *scan, size_t from, size_t to)
{
    const unsigned char *text = (const unsigned char *)scan->text.ptr;
    size_t resume = from; /* what lies before it has been claimed */
    uint64_t after_letter = 0;
    pthread_once(&once, prepare);
    for (size_t base = from; base < to; base += 64) {
        uint64_t letters, signs;
        if (to - base >= 64)
            classify(text + base, &letters, &signs);
        else
            classify_few(text + base, to - base, &letters, &signs);
        uint64_t starts = letters & ~(letters << 1 | after_letter);
        after_letter = letters >> 63;
        for (uint64_t left = starts | signs; left; left &= left - 1) {
            size_t bit = (size_t)__builtin_ctzll(left), i = base + bit;
            if (i < resume)
                continue;
            size_t next = starts >> bit & 1 ? look_at_word(scan, i) : look(scan, i);
            resume = RT_MAX(next, i + 1);
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

/* How many bytes of s begin a code point, eight at a time. */
size_t privacy_points(rt_str s)
{
    size_t rest = 0, i = 0;
    for (; i + 8 <= s.len; i += 8) {
        uint64_t eight;
        memcpy(&eight, s.ptr + i, 8);
        uint64_t marks = eight >> 7 & ~(eight >> 6) & 0x0101010101010101;
        rest += (size_t)(marks * 0x0101010101010101 >> 56); /* their sum, in the top byte */
    }
    for (; i < s.len; i++)
        rest += ((unsigned char)s.ptr[i] & 0xC0) == 0x80;
    return s.len - rest;
}

/* Fills in the positions in code points, in one walk along the text. */
static void count_points(privacy_scan *scan)
{
    size_t points = 0, i = 0;
    for (size_t k = 0; k < scan->count; k++) {
        rt_pii_span *span = &scan->spans[k];
        points += privacy_points(rt_str_slice(scan->text, i, span->start));
        span->start_point = points;
        points += privacy_points(rt_str_slice(scan->text, span->start, span->end));
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
