/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_parse.c - text to nodes, in one pass and without recursion.
 *
 * The text is copied into the arena once, with PADDING zero bytes behind it. The zeros stop every
 * loop (no JSON token contains one), so no step asks whether the text has ended, and 16 bytes can
 * be loaded from anywhere in it. Strings are decoded where they lie.
 *
 * Each parse_x() takes the position where its token starts and returns the position behind it,
 * or NULL after fail(). Positions are passed along rather than kept in the parser because the
 * compiler can then keep them in registers.
 *
 * What must stay true: bytes at and behind the current position are still those of the input, so
 * that the offset of a failure is its offset in the input; nodes are named by index until the
 * end, because the array moves when it grows.
 */
#include "base/json_internal.h"

enum {
    PADDING = 32,
    BYTES_PER_NODE = 16, /* a guess that fits most documents at once */
    SHRINK_BELOW = 4096, /* nodes */
};

#define NO_PARENT UINT64_MAX

typedef struct parser {
    rt_arena *arena;
    json_node *nodes;
    size_t used, cap;
    uint64_t open; /* the container we are in, NO_PARENT outside */
    bool in_object;
    unsigned depth, max_depth;

    const char *failed_at; /* set by fail() */
    const char *expected;
    bool is_too_deep;
} parser;

static char *fail(parser *p, const char *at, const char *expected)
{
    p->failed_at = at;
    p->expected = expected;
    return NULL;
}

/* -- Nodes ------------------------------------------------------------------------------------- */

static __attribute__((noinline)) void grow(parser *p)
{
    size_t cap = p->cap * 2;
    p->nodes =
        rt_arena_resize(p->arena, p->nodes, p->cap * sizeof(json_node), cap * sizeof(json_node));
    p->cap = cap;
}

static inline json_node *add_node(parser *p, rt_json_kind kind)
{
    if (__builtin_expect(p->used == p->cap, 0))
        grow(p);
    json_node *node = &p->nodes[p->used++];
    *node = (json_node){ .kind = (uint8_t)kind };
    return node;
}

static inline void add_text(parser *p, rt_json_kind kind, const char *from, const char *to,
                            bool is_plain)
{
    json_node *node = add_node(p, kind);
    node->is_plain = is_plain;
    node->size = (uint32_t)(to - from);
    node->text = from;
}

static char *open_container(parser *p, char *at, rt_json_kind kind)
{
    if (p->depth == p->max_depth) {
        p->is_too_deep = true;
        return fail(p, at, "");
    }
    p->depth++;
    json_node *node = add_node(p, kind);
    node->span = p->open;
    p->open = p->used - 1;
    p->in_object = kind == RT_JSON_OBJECT;
    return at + 1;
}

static void close_container(parser *p)
{
    json_node *node = &p->nodes[p->open];
    uint64_t parent = node->span;
    node->span = p->used - p->open;
    p->open = parent;
    p->in_object = parent != NO_PARENT && p->nodes[parent].kind == RT_JSON_OBJECT;
    p->depth--;
}

/* -- Tokens ------------------------------------------------------------------------------------ */

static inline char *skip_space(char *at)
{
    if (__builtin_expect((unsigned char)*at > ' ', 1))
        return at;
    for (;;) {
        uint64_t word;
        memcpy(&word, at, sizeof(word));
        if (word == 0x2020202020202020u)
            at += 8; /* indentation */
        else if (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')
            at++;
        else
            return at;
    }
}

static inline bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

static char *parse_number(parser *p, char *start)
{
    char *at = start;
    if (*at == '-')
        at++;
    if (!is_digit(*at))
        return fail(p, at, "a digit");
    if (*at++ != '0')
        while (is_digit(*at))
            at++;
    if (*at == '.') {
        if (!is_digit(*++at))
            return fail(p, at, "a digit after '.'");
        while (is_digit(*at))
            at++;
    }
    if (*at == 'e' || *at == 'E') {
        at++;
        if (*at == '+' || *at == '-')
            at++;
        if (!is_digit(*at))
            return fail(p, at, "a digit in the exponent");
        while (is_digit(*at))
            at++;
    }
    add_text(p, RT_JSON_NUMBER, start, at, true);
    return at;
}

static char *parse_word(parser *p, char *at, rt_str word, rt_json_kind kind, bool is_true)
{
    if (memcmp(at, word.ptr, word.len) != 0)
        return fail(p, at, "true, false, null or another value");
    add_node(p, kind)->is_true = is_true;
    return at + word.len;
}

static int hex_value(char c)
{
    if (is_digit(c))
        return c - '0';
    char lower = c | 0x20;
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* The four digits of a \u escape; negative if they are not there. */
static int32_t hex4(const char *at)
{
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_value(at[i]);
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* `at` is behind "\u". A pair of surrogates is one character; a lone one is kept as it is. */
static char *decode_unicode(parser *p, char *at, char **out)
{
    int32_t unit = hex4(at);
    if (unit < 0)
        return fail(p, at, "four hexadecimal digits after \\u");
    at += 4;
    uint32_t code_point = (uint32_t)unit;
    if (unit >= 0xD800 && unit < 0xDC00 && at[0] == '\\' && at[1] == 'u') {
        int32_t second = hex4(at + 2);
        if (second >= 0xDC00 && second < 0xE000) {
            code_point = 0x10000 + ((code_point - 0xD800) << 10) + ((uint32_t)second - 0xDC00);
            at += 6;
        }
    }
    *out += rt_utf8_put(*out, code_point);
    return at;
}

/* `at` is behind the backslash. */
static char *decode_escape(parser *p, char *at, char **out)
{
    static const char decoded[256] = { ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
                                       ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t' };
    if (*at == 'u')
        return decode_unicode(p, at + 1, out);
    char c = decoded[(unsigned char)*at];
    if (!c)
        return fail(p, at, "one of \" \\ / b f n r t u after the backslash");
    *(*out)++ = c;
    return at + 1;
}

static inline bool is_tail(char c)
{
    return (signed char)c < -0x40; /* 0x80 to 0xBF */
}

/* Over characters that are not ASCII, checking them; the zeros at the end are no continuation. */
static char *skip_utf8(parser *p, char *at)
{
    do {
        uint8_t first = (uint8_t)at[0];
        if (first >= 0xC2 && first <= 0xDF && is_tail(at[1]))
            at += 2; /* the two common forms first; the rules for the others are in utf8.c */
        else if (first >= 0xE1 && first <= 0xEC && is_tail(at[1]) && is_tail(at[2]))
            at += 3;
        else {
            size_t size = rt_utf8_step((rt_str){ at, 4 }, NULL);
            if (size == 0)
                return fail(p, at, "valid UTF-8");
            at += size;
        }
    } while ((signed char)*at < 0);
    return at;
}

static inline char *skip_plain(char *at)
{
    for (;; at += 16) {
        unsigned mask = json_plain16(at);
        if (mask)
            return at + __builtin_ctz(mask);
    }
}

/* From the first backslash on, what is read moves down to `out`. */
static __attribute__((noinline)) char *parse_escaped(parser *p, char *start, char *at)
{
    char *out = at;
    while (*at != '"') {
        char *from = at;
        if (*at == '\\')
            at = from = decode_escape(p, at + 1, &out);
        else if ((signed char)*at < 0)
            at = skip_utf8(p, at);
        else
            return fail(p, at, "'\"' or a character that is no control character");
        if (!at)
            return NULL;
        at = skip_plain(at);
        memmove(out, from, (size_t)(at - from));
        out += at - from;
    }
    add_text(p, RT_JSON_STRING, start, out, false);
    return at + 1;
}

/* `start` is behind the opening quote. */
static inline char *parse_string(parser *p, char *start)
{
    char *at = start;
    for (;;) {
        at = skip_plain(at);
        if (__builtin_expect(*at == '"', 1)) {
            add_text(p, RT_JSON_STRING, start, at, true);
            return at + 1;
        }
        if ((signed char)*at >= 0)
            break;
        at = skip_utf8(p, at);
        if (!at)
            return NULL;
    }
    return parse_escaped(p, start, at);
}

/* -- Structure --------------------------------------------------------------------------------- */

/* A whole scalar, or the opening bracket of a container. */
static char *parse_value(parser *p, char *at)
{
    switch (*at) {
    case '"':
        return parse_string(p, at + 1);
    case '{':
        return open_container(p, at, RT_JSON_OBJECT);
    case '[':
        return open_container(p, at, RT_JSON_ARRAY);
    case 't':
        return parse_word(p, at, RT_STR("true"), RT_JSON_BOOL, true);
    case 'f':
        return parse_word(p, at, RT_STR("false"), RT_JSON_BOOL, false);
    case 'n':
        return parse_word(p, at, RT_STR("null"), RT_JSON_NULL, false);
    default:
        if (*at == '-' || is_digit(*at))
            return parse_number(p, at);
        return fail(p, at, "a value");
    }
}

static char *parse_key(parser *p, char *at)
{
    if (*at != '"')
        return fail(p, at, "a key in quotes");
    at = parse_string(p, at + 1);
    if (!at)
        return NULL;
    at = skip_space(at);
    if (*at != ':')
        return fail(p, at, "':' after the key");
    return skip_space(at + 1);
}

/* One more child is coming: count it, and read its key if it has one. */
static inline char *begin_child(parser *p, char *at)
{
    p->nodes[p->open].size++;
    return p->in_object ? parse_key(p, at) : at;
}

/* Behind a value: commas and closing brackets, up to where the next value starts. */
static inline char *parse_after(parser *p, char *at)
{
    while (p->depth > 0) {
        at = skip_space(at);
        if (*at == ',')
            return begin_child(p, skip_space(at + 1));
        if (*at != (p->in_object ? '}' : ']'))
            return fail(p, at, p->in_object ? "',' or '}'" : "',' or ']'");
        close_container(p);
        at++;
    }
    return at;
}

static char *parse_document(parser *p, char *at)
{
    do {
        unsigned depth = p->depth;
        at = parse_value(p, at);
        if (!at)
            return NULL;
        if (p->depth == depth) {
            at = parse_after(p, at);
        } else {
            at = skip_space(at);
            bool is_empty = *at == (p->in_object ? '}' : ']');
            at = is_empty ? parse_after(p, at) : begin_child(p, at);
        }
    } while (at && p->depth > 0);
    return at;
}

/* -- The door ---------------------------------------------------------------------------------- */

static void describe_found(rt_str text, size_t offset, char out[24])
{
    static const char hex[] = "0123456789abcdef";
    if (offset >= text.len) {
        strcpy(out, "the end of the text");
        return;
    }
    unsigned char c = (unsigned char)text.ptr[offset];
    if (c > ' ' && c < 0x7F)
        memcpy(out, (char[]){ '\'', (char)c, '\'', '\0' }, 4);
    else
        memcpy(out, (char[]){ 'b', 'y', 't', 'e', ' ', '0', 'x', hex[c >> 4], hex[c & 15], '\0' },
               10);
}

static bool report(const parser *p, rt_str text, size_t offset, rt_error *err)
{
    size_t line = 1, line_start = 0;
    for (size_t i = 0; i < offset; i++)
        if (text.ptr[i] == '\n') {
            line++;
            line_start = i + 1;
        }
    size_t column = rt_utf8_length(rt_str_slice(text, line_start, offset)) + 1;
    if (p->is_too_deep)
        return rt_fail(err, RT_LIMIT, "line %zu, column %zu: nested deeper than %u levels", line,
                       column, p->max_depth);
    char found[24];
    describe_found(text, offset, found);
    return rt_fail(err, RT_INVALID, "line %zu, column %zu: expected %s, found %s", line, column,
                   p->expected, found);
}

bool rt_json_parse_limited(rt_str text, const rt_json_limits *limits, rt_arena *arena, rt_json *out,
                           rt_error *err)
{
    size_t max_size = limits->max_size ? limits->max_size : RT_JSON_MAX_SIZE;
    max_size = RT_MIN(max_size, RT_JSON_SIZE_CEILING);
    if (text.len > max_size)
        return rt_fail(err, RT_LIMIT, "longer than the maximum of %zu bytes of JSON", max_size);
    char *copy = rt_arena_alloc_raw(arena, text.len + PADDING);
    if (text.len)
        memcpy(copy, text.ptr, text.len);
    memset(copy + text.len, 0, PADDING);

    unsigned max_depth = limits->max_depth ? limits->max_depth : RT_JSON_MAX_DEPTH;
    parser p = {
        .arena = arena,
        .cap = text.len / BYTES_PER_NODE + 4,
        .open = NO_PARENT,
        .max_depth = RT_MIN(max_depth, (unsigned)RT_JSON_DEPTH_CEILING),
    };
    p.nodes = rt_arena_alloc_raw(arena, p.cap * sizeof(json_node));
    char *at = parse_document(&p, skip_space(copy));
    if (at) {
        at = skip_space(at);
        if (at != copy + text.len)
            at = fail(&p, at, "the end of the text");
    }
    if (!at)
        return report(&p, text, (size_t)(p.failed_at - copy), err);
    /* A big array keeps its tail: pages never written cost nothing, giving them back does. */
    if (p.cap < SHRINK_BELOW)
        p.nodes =
            rt_arena_resize(arena, p.nodes, p.cap * sizeof(json_node), p.used * sizeof(json_node));
    out->node = p.nodes;
    return true;
}

bool rt_json_parse(rt_str text, rt_arena *arena, rt_json *out, rt_error *err)
{
    return rt_json_parse_limited(text, &(rt_json_limits){ 0 }, arena, out, err);
}
