/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern_quick.c - patterns so simple that no engine is needed, which is most of them.
 *
 * ^x-, ^[a-z][a-z0-9_]*$, ^\d{4}-\d\d$, .+, \.json$, abc: a row of character sets, each repeated
 * so and so many times. Such a row is matched from left to right without ever going back, if what
 * a set may take is nothing that what follows could need.
 *
 * Sets are about ASCII. What they say of other characters is one of a few answers; where none of
 * them fits, the engine is asked instead.
 */
#include "schema/pattern_quick.h"

static bool is_letter(char c)
{
    char lower = c | 0x20;
    return lower >= 'a' && lower <= 'z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void set_add(quick_set *set, unsigned char c)
{
    set->ascii[c >> 6] |= UINT64_C(1) << (c & 63);
}

static void set_add_range(quick_set *set, unsigned from, unsigned to)
{
    for (unsigned c = from; c <= to && c < 128; c++)
        set_add(set, (unsigned char)c);
}

static void set_negate(quick_set *set)
{
    set->ascii[0] = ~set->ascii[0];
    set->ascii[1] = ~set->ascii[1];
    set->beyond = set->beyond == BEYOND_NONE  ? BEYOND_ALL
                  : set->beyond == BEYOND_ALL ? BEYOND_NONE
                                              : BEYOND_ASK;
}

/* \d, \w, \s and their opposites. */
static bool set_add_named(quick_set *set, char name)
{
    quick_set named = { { 0, 0 }, BEYOND_NONE };
    char lower = name | 0x20;
    if (lower == 'd' || lower == 'w')
        set_add_range(&named, '0', '9');
    if (lower == 'w') {
        set_add_range(&named, 'a', 'z');
        set_add_range(&named, 'A', 'Z');
        set_add(&named, '_');
    }
    if (lower == 's') {
        set_add_range(&named, '\t', '\r');
        set_add(&named, ' ');
        named.beyond = BEYOND_ASK;
    }
    if (name != lower)
        set_negate(&named);
    set->ascii[0] |= named.ascii[0];
    set->ascii[1] |= named.ascii[1];
    set->beyond = RT_MAX(set->beyond, named.beyond);
    return lower == 'd' || lower == 'w' || lower == 's';
}

/* The character of "\t", "\.", "\/", "\-"; -1 if it is another kind of escape. */
static int escaped(char c)
{
    switch (c) {
    case 't':
        return '\t';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    default:
        return is_letter(c) || is_digit(c) || (unsigned char)c >= 0x80 ? -1 : c;
    }
}

static bool read_member(rt_str text, size_t *at, quick_set *set, int *single)
{
    *single = -1;
    char c = text.ptr[(*at)++];
    if ((unsigned char)c >= 0x80)
        return false;
    if (c != '\\') {
        *single = c;
        return true;
    }
    if (*at >= text.len)
        return false;
    c = text.ptr[(*at)++];
    char lower = c | 0x20;
    if (lower == 'd' || lower == 'w' || lower == 's')
        return set_add_named(set, c);
    *single = c == 'b' ? 8 : escaped(c);
    return *single >= 0;
}

/* `at` is behind the bracket. */
static bool read_class(rt_str text, size_t *at, quick_set *set)
{
    bool is_negated = *at < text.len && text.ptr[*at] == '^';
    *at += is_negated;
    if (*at < text.len && text.ptr[*at] == ']')
        return false;
    while (*at < text.len && text.ptr[*at] != ']') {
        int from, to;
        if (!read_member(text, at, set, &from))
            return false;
        bool is_range = *at + 1 < text.len && text.ptr[*at] == '-' && text.ptr[*at + 1] != ']';
        if (is_range) {
            (*at)++;
            if (from < 0 || !read_member(text, at, set, &to) || to < from)
                return false;
            set_add_range(set, (unsigned)from, (unsigned)to);
        } else if (from >= 0) {
            set_add(set, (unsigned char)from);
        }
    }
    if (*at >= text.len)
        return false;
    (*at)++;
    if (is_negated)
        set_negate(set);
    return true;
}

static bool read_set(rt_str text, size_t *at, quick_set *set)
{
    char c = text.ptr[(*at)++];
    if (c == '[')
        return read_class(text, at, set);
    if (c == '.') {
        set_add(set, '\n');
        set_add(set, '\r');
        set_negate(set);
        set->beyond = BEYOND_BUT_LINES;
        return true;
    }
    if (c == '\\') {
        int single;
        (*at)--;
        if (*at + 1 < text.len && text.ptr[*at + 1] == 'b')
            return false; /* outside a class, a boundary */
        if (!read_member(text, at, set, &single))
            return false;
        if (single >= 0)
            set_add(set, (unsigned char)single);
        return true;
    }
    if ((unsigned char)c >= 0x80 || strchr("^$|()*+?{}]", c) != NULL)
        return false;
    set_add(set, (unsigned char)c);
    return true;
}

static bool read_number(rt_str text, size_t *at, uint32_t *out)
{
    size_t start = *at;
    for (*out = 0; *at < text.len && is_digit(text.ptr[*at]) && *at - start < 6; (*at)++)
        *out = *out * 10 + (uint32_t)(text.ptr[*at] - '0');
    return *at > start;
}

static bool read_braces(rt_str text, size_t *at, quick_item *item)
{
    if (!read_number(text, at, &item->min) || *at >= text.len)
        return false;
    item->max = item->min;
    if (text.ptr[*at] == ',') {
        (*at)++;
        if (*at < text.len && text.ptr[*at] == '}')
            item->max = UINT32_MAX;
        else if (!read_number(text, at, &item->max) || item->max < item->min)
            return false;
    }
    return *at < text.len && text.ptr[(*at)++] == '}';
}

static bool read_repeat(rt_str text, size_t *at, quick_item *item)
{
    item->min = item->max = 1;
    char c = *at < text.len ? text.ptr[*at] : '\0';
    if (c != '*' && c != '+' && c != '?' && c != '{')
        return true;
    (*at)++;
    if (c == '{') {
        if (!read_braces(text, at, item))
            return false;
    } else {
        item->min = c == '+';
        item->max = c == '?' ? 1 : UINT32_MAX;
    }
    c = *at < text.len ? text.ptr[*at] : '\0';
    return c != '?' && c != '*' && c != '+' && c != '{';
}

static bool may_overlap(const quick_set *a, const quick_set *b)
{
    return (a->ascii[0] & b->ascii[0]) || (a->ascii[1] & b->ascii[1]) ||
           (a->beyond != BEYOND_NONE && b->beyond != BEYOND_NONE);
}

/* Whether no item can take what a later one needs. */
static bool never_goes_back(const quick_pattern *q)
{
    for (size_t i = 0; i < q->count; i++) {
        if (q->items[i].min == q->items[i].max)
            continue;
        for (size_t k = i + 1; k < q->count; k++) {
            if (may_overlap(&q->items[i].set, &q->items[k].set))
                return false;
            if (q->items[k].min > 0)
                break;
        }
    }
    return true;
}

static bool is_single(const quick_item *item)
{
    int bits = __builtin_popcountll(item->set.ascii[0]) + __builtin_popcountll(item->set.ascii[1]);
    return item->min == 1 && item->max == 1 && bits == 1 && item->set.beyond == BEYOND_NONE;
}

/* A pattern that may begin anywhere is simple only at its end, or when it needs no place at all. */
static bool is_simple(quick_pattern *q)
{
    if (q->is_at_start)
        return never_goes_back(q);
    if (q->count == 0)
        return true;
    if (q->is_at_end) {
        for (size_t i = 0; i < q->count; i++)
            if (!is_single(&q->items[i]))
                return false;
        q->is_suffix = true;
        return true;
    }
    /* ".*" is everywhere; ".+" is one character. */
    if (q->count == 1 && q->items[0].min == 0)
        return true;
    if (q->count != 1)
        return false;
    q->is_anywhere = true;
    q->items[0].max = q->items[0].min;
    return q->items[0].min == 1;
}

bool schema_quick_read(rt_str text, quick_pattern *q)
{
    *q = (quick_pattern){ 0 };
    size_t at = 0;
    if (text.len && text.ptr[0] == '^') {
        q->is_at_start = true;
        at++;
    }
    while (at < text.len) {
        if (text.ptr[at] == '$' && at + 1 == text.len) {
            q->is_at_end = true;
            break;
        }
        if (q->count == QUICK_ITEMS)
            return false;
        quick_item *item = &q->items[q->count++];
        if (!read_set(text, &at, &item->set) || !read_repeat(text, &at, item))
            return false;
        q->may_ask |= item->set.beyond == BEYOND_ASK;
    }
    return is_simple(q);
}

/* -- Matching ---------------------------------------------------------------------------------- */

static size_t size_of_lead(unsigned char lead)
{
    if (lead < 0xE0)
        return 2;
    return lead < 0xF0 ? 3 : 4;
}

static bool is_line_end(const char *at)
{
    return (unsigned char)at[0] == 0xE2 && (unsigned char)at[1] == 0x80 &&
           ((unsigned char)at[2] == 0xA8 || (unsigned char)at[2] == 0xA9);
}

/* How many bytes of the character at `at` the set takes: 0 none; -1 ask the engine. */
static inline int take_one(const quick_set *set, const char *at)
{
    unsigned char c = (unsigned char)*at;
    if (c < 128)
        return (int)(set->ascii[c >> 6] >> (c & 63) & 1);
    switch (set->beyond) {
    case BEYOND_NONE:
        return 0;
    case BEYOND_ALL:
        return (int)size_of_lead(c);
    case BEYOND_BUT_LINES:
        return is_line_end(at) ? 0 : (int)size_of_lead(c);
    default:
        return -1;
    }
}

static quick_answer match_row(const quick_pattern *q, rt_str text)
{
    const char *at = text.ptr, *end = text.ptr + text.len;
    for (size_t i = 0; i < q->count; i++) {
        const quick_item *item = &q->items[i];
        uint32_t count = 0;
        for (; count < item->max && at < end; count++) {
            int size = take_one(&item->set, at);
            if (size < 0)
                return QUICK_ASK;
            if (size == 0)
                break;
            at += size;
        }
        if (count < item->min)
            return QUICK_NO;
    }
    return !q->is_at_end || at == end ? QUICK_YES : QUICK_NO;
}

static quick_answer match_suffix(const quick_pattern *q, rt_str text)
{
    if (text.len < q->count)
        return QUICK_NO;
    const char *at = text.ptr + text.len - q->count;
    for (size_t i = 0; i < q->count; i++)
        if (take_one(&q->items[i].set, at + i) != 1)
            return QUICK_NO;
    return QUICK_YES;
}

static quick_answer match_anywhere(const quick_pattern *q, rt_str text)
{
    const char *end = text.ptr + text.len;
    for (const char *at = text.ptr; at < end;) {
        int size = take_one(&q->items[0].set, at);
        if (size)
            return size < 0 ? QUICK_ASK : QUICK_YES;
        at += (unsigned char)*at < 128 ? 1 : size_of_lead((unsigned char)*at);
    }
    return QUICK_NO;
}

quick_answer schema_quick_match(const quick_pattern *q, rt_str text)
{
    if (q->is_suffix)
        return match_suffix(q, text);
    if (q->is_anywhere)
        return match_anywhere(q, text);
    if (!q->is_at_start)
        return QUICK_YES; /* it needs no place */
    return match_row(q, text);
}
