/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern_text.c - an ECMA-262 pattern in the words of PCRE2.
 *
 * The two mostly agree. Where they do not, the text changes: \s and \S and . mean other sets, \v
 * is one character, \p{Letter} is called \p{L}, [] and [^] are allowed, a '[' in a class is only
 * a '['. What only PCRE2 knows (\A, \Z, \Q, (?>...), a++) is refused, so a pattern that is accepted
 * here means what it means in a browser. Of ECMA's older syntax we allow what does no harm:
 * escaped punctuation, and braces that repeat nothing.
 */
#include "schema/schema_internal.h"

#define SPACES                                                                                     \
    "\\t\\n\\x0b\\f\\r \\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}"    \
    "\\x{3000}\\x{feff}"
#define NO_SPACES                                                                                  \
    "\\x00-\\x08\\x0e-\\x1f\\x21-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}"   \
    "\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}"                 \
    "\\x{ff00}-\\x{10ffff}"

enum { GROUPS_DEEP_MAX = 200 };

typedef struct translator {
    rt_str text;
    size_t at;
    rt_buf *out;
    rt_error *err;
    unsigned group_count; /* in the whole pattern */
    unsigned depth;
    bool can_repeat;      /* what came last may be followed by a quantifier */
    bool is_class_escape; /* it was one like \d, which begins no range */
} translator;

static bool refuse(translator *t, const char *why)
{
    return rt_fail(t->err, RT_INVALID, "%.*s: at %zu: %s", (int)RT_MIN(t->text.len, (size_t)80),
                   t->text.ptr, t->at, why);
}

static int peek(const translator *t, size_t ahead)
{
    return t->at + ahead < t->text.len ? (unsigned char)t->text.ptr[t->at + ahead] : -1;
}

static void put(translator *t, const char *text)
{
    rt_buf_add(t->out, rt_str_of(text));
}

static bool is_letter(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static void put_code(translator *t, uint32_t code)
{
    rt_buf_addf(t->out, "\\x{%x}", code);
}

static void put_literal(translator *t, char c)
{
    if ((unsigned char)c < 0x80 && !is_letter(c) && !is_digit(c))
        rt_buf_addf(t->out, "\\x{%x}", (unsigned)c);
    else
        rt_buf_addc(t->out, c);
}

/* -- Escapes ----------------------------------------------------------------------------------- */

static int hex_of(int c)
{
    if (is_digit(c))
        return c - '0';
    int lower = c | 0x20;
    return c > 0 && lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Exactly so many hexadecimal digits; moves behind them. */
static bool take_hex(translator *t, unsigned digits, uint32_t *out)
{
    *out = 0;
    for (unsigned i = 0; i < digits; i++) {
        int value = hex_of(peek(t, i));
        if (value < 0)
            return refuse(t, "hexadecimal digits are missing");
        *out = *out << 4 | (uint32_t)value;
    }
    t->at += digits;
    return true;
}

static bool take_braced_hex(translator *t, uint32_t *out)
{
    *out = 0;
    t->at++;
    if (peek(t, 0) == '}')
        return refuse(t, "\\u{} is empty");
    for (; peek(t, 0) != '}'; t->at++) {
        int value = hex_of(peek(t, 0));
        if (value < 0)
            return refuse(t, "\\u{...} holds something that is no hexadecimal digit");
        *out = *out << 4 | (uint32_t)value;
        if (*out > 0x10FFFF)
            return refuse(t, "\\u{...} is beyond Unicode");
    }
    t->at++;
    return true;
}

/* Behind "\u". Two escapes may make one character. */
static bool take_unicode(translator *t, uint32_t *out)
{
    if (peek(t, 0) == '{')
        return take_braced_hex(t, out);
    if (!take_hex(t, 4, out))
        return false;
    bool is_high = *out >= 0xD800 && *out < 0xDC00;
    if (is_high && peek(t, 0) == '\\' && peek(t, 1) == 'u' && peek(t, 2) != '{') {
        size_t before = t->at;
        uint32_t low;
        t->at += 2;
        if (!take_hex(t, 4, &low))
            return false;
        if (low >= 0xDC00 && low < 0xE000)
            *out = 0x10000 + ((*out - 0xD800) << 10) + (low - 0xDC00);
        else
            t->at = before;
    }
    return true;
}

static const struct {
    const char *name, *category;
} categories[] = {
    { "Letter", "L" },
    { "Cased_Letter", "L&" },
    { "LC", "L&" },
    { "Uppercase_Letter", "Lu" },
    { "Lowercase_Letter", "Ll" },
    { "Titlecase_Letter", "Lt" },
    { "Modifier_Letter", "Lm" },
    { "Other_Letter", "Lo" },
    { "Mark", "M" },
    { "Combining_Mark", "M" },
    { "Nonspacing_Mark", "Mn" },
    { "Spacing_Mark", "Mc" },
    { "Enclosing_Mark", "Me" },
    { "Number", "N" },
    { "Decimal_Number", "Nd" },
    { "digit", "Nd" },
    { "Letter_Number", "Nl" },
    { "Other_Number", "No" },
    { "Punctuation", "P" },
    { "punct", "P" },
    { "Connector_Punctuation", "Pc" },
    { "Dash_Punctuation", "Pd" },
    { "Open_Punctuation", "Ps" },
    { "Close_Punctuation", "Pe" },
    { "Initial_Punctuation", "Pi" },
    { "Final_Punctuation", "Pf" },
    { "Other_Punctuation", "Po" },
    { "Symbol", "S" },
    { "Math_Symbol", "Sm" },
    { "Currency_Symbol", "Sc" },
    { "Modifier_Symbol", "Sk" },
    { "Other_Symbol", "So" },
    { "Separator", "Z" },
    { "Space_Separator", "Zs" },
    { "Line_Separator", "Zl" },
    { "Paragraph_Separator", "Zp" },
    { "Other", "C" },
    { "Control", "Cc" },
    { "cntrl", "Cc" },
    { "Format", "Cf" },
    { "Surrogate", "Cs" },
    { "Private_Use", "Co" },
    { "Unassigned", "Cn" },
};

static rt_str category_of(rt_str name)
{
    for (size_t i = 0; i < RT_COUNT(categories); i++)
        if (rt_str_eq_c(name, categories[i].name))
            return rt_str_of(categories[i].category);
    return name;
}

/* Behind "\p" or "\P": "{Letter}", "{gc=Lu}", "{Script=Greek}", "{Alphabetic}". */
static bool take_property(translator *t, bool is_negated)
{
    ptrdiff_t end = rt_str_find(rt_str_slice(t->text, t->at, t->text.len), RT_STR("}"));
    if (peek(t, 0) != '{' || end < 2)
        return refuse(t, "\\p needs the name of a property in braces");
    rt_str name = rt_str_slice(t->text, t->at + 1, t->at + (size_t)end), key;
    for (size_t i = 0; i < name.len; i++)
        if (!is_letter(name.ptr[i]) && !is_digit(name.ptr[i]) && name.ptr[i] != '_' &&
            name.ptr[i] != '=')
            return refuse(t, "the name of a property is made of letters, digits and '_'");
    t->at += (size_t)end + 1;
    const char *prefix = "";
    rt_str value = name;
    if (memchr(name.ptr, '=', name.len)) {
        rt_str_cut(&value, '=', &key);
        if (rt_str_eq_c(key, "Script") || rt_str_eq_c(key, "sc"))
            prefix = "sc:";
        else if (rt_str_eq_c(key, "Script_Extensions") || rt_str_eq_c(key, "scx"))
            prefix = "scx:";
        else if (!rt_str_eq_c(key, "General_Category") && !rt_str_eq_c(key, "gc"))
            return refuse(t, "there is no such kind of property");
    }
    if (rt_str_eq_c(value, "Assigned")) {
        value = RT_STR("Cn");
        is_negated = !is_negated;
    }
    if (!*prefix)
        value = category_of(value);
    rt_buf_addf(t->out, "\\%c{%s%.*s}", is_negated ? 'P' : 'p', prefix, RT_FMT(value));
    return true;
}

/* What means the same in a class and outside; `c` was taken. */
static bool put_escape(translator *t, int c, bool is_in_class)
{
    uint32_t code;
    t->is_class_escape = c == 'd' || c == 'D' || c == 'w' || c == 'W' || c == 's' || c == 'S' ||
                         c == 'p' || c == 'P';
    switch (c) {
    case 'd':
    case 'D':
    case 'w':
    case 'W':
        rt_buf_addf(t->out, "\\%c", c);
        return true;
    case 's':
        put(t, is_in_class ? SPACES : "[" SPACES "]");
        return true;
    case 'S':
        put(t, is_in_class ? NO_SPACES : "[^" SPACES "]");
        return true;
    case 't':
    case 'n':
    case 'f':
    case 'r':
        rt_buf_addf(t->out, "\\%c", c);
        return true;
    case 'v':
        put(t, "\\x0b");
        return true;
    case 'p':
    case 'P':
        return take_property(t, c == 'P');
    case 'x':
        if (!take_hex(t, 2, &code))
            return false;
        put_code(t, code);
        return true;
    case 'u':
        if (!take_unicode(t, &code))
            return false;
        put_code(t, code);
        return true;
    case 'c':
        if (!is_letter(peek(t, 0)))
            return refuse(t, "\\c needs a letter");
        put_code(t, (uint32_t)peek(t, 0) & 31);
        t->at++;
        return true;
    case '0':
        if (is_digit(peek(t, 0)))
            return refuse(t, "octal escapes are not allowed");
        put(t, "\\x00");
        return true;
    default:
        if (c < 0 || is_letter(c) || is_digit(c))
            return refuse(t, "an escape that ECMA-262 does not know");
        put_literal(t, (char)c);
        return true;
    }
}

static bool put_back_reference(translator *t, int first)
{
    unsigned number = (unsigned)(first - '0');
    while (is_digit(peek(t, 0)) && number < 1000)
        number = number * 10 + (unsigned)(t->text.ptr[t->at++] - '0');
    if (number > t->group_count)
        return refuse(t, "there is no group of that number");
    rt_buf_addf(t->out, "\\g{%u}", number);
    return true;
}

static bool take_name(translator *t, rt_str *out)
{
    size_t start = t->at;
    while (is_letter(peek(t, 0)) || is_digit(peek(t, 0)) || peek(t, 0) == '_' || peek(t, 0) == '$')
        t->at++;
    *out = rt_str_slice(t->text, start, t->at);
    if (out->len == 0 || out->len > 32 || is_digit(out->ptr[0]) || peek(t, 0) != '>' ||
        memchr(out->ptr, '$', out->len))
        return refuse(t, "a group's name is made of up to 32 letters, digits and '_'");
    t->at++;
    return true;
}

static bool take_escape(translator *t)
{
    int c = peek(t, 0);
    t->at++;
    t->can_repeat = true;
    if (c == 'b' || c == 'B') {
        t->can_repeat = false;
        rt_buf_addf(t->out, "\\%c", c);
        return true;
    }
    if (c >= '1' && c <= '9')
        return put_back_reference(t, c);
    if (c == 'k') {
        rt_str name;
        if (peek(t, 0) != '<')
            return refuse(t, "\\k needs a name in angle brackets");
        t->at++;
        if (!take_name(t, &name))
            return false;
        rt_buf_addf(t->out, "\\k<%.*s>", RT_FMT(name));
        return true;
    }
    return put_escape(t, c, false);
}

/* -- Classes ----------------------------------------------------------------------------------- */

static bool take_class_member(translator *t)
{
    int c = peek(t, 0);
    t->at++;
    t->is_class_escape = false;
    if (c == '\\') {
        c = peek(t, 0);
        t->at++;
        if (c == 'b') {
            put(t, "\\x08");
            return true;
        }
        return put_escape(t, c, true);
    }
    put_literal(t, (char)c);
    while (((uint8_t)peek(t, 0) & 0xC0) == 0x80 && peek(t, 0) >= 0)
        rt_buf_addc(t->out, t->text.ptr[t->at++]); /* the rest of a character */
    return true;
}

static bool take_class(translator *t)
{
    bool is_negated = peek(t, 0) == '^';
    t->at += is_negated;
    t->can_repeat = true;
    if (peek(t, 0) == ']') {
        t->at++;
        put(t, is_negated ? "(?s:.)" : "(?!)");
        return true;
    }
    put(t, is_negated ? "[^" : "[");
    while (peek(t, 0) != ']') {
        if (peek(t, 0) < 0)
            return refuse(t, "a class is not closed");
        if (!take_class_member(t))
            return false;
        bool is_range = peek(t, 0) == '-' && peek(t, 1) != ']' && peek(t, 1) >= 0;
        if (!is_range)
            continue;
        t->at++;
        bool is_open = t->is_class_escape;
        put(t, is_open ? "\\-" : "-");
        if (!take_class_member(t))
            return false;
        if (t->is_class_escape && !is_open)
            return refuse(t, "a range cannot end in a set of characters");
    }
    t->at++;
    put(t, "]");
    return true;
}

/* -- Groups and quantifiers -------------------------------------------------------------------- */

static bool take_group(translator *t)
{
    static const char *const openings[] = { "?:", "?=", "?!", "?<=", "?<!" };
    if (++t->depth > GROUPS_DEEP_MAX)
        return refuse(t, "groups are nested too deep");
    t->can_repeat = false;
    put(t, "(");
    if (peek(t, 0) != '?')
        return true;
    rt_str rest = rt_str_slice(t->text, t->at, t->text.len), name;
    for (size_t i = 0; i < RT_COUNT(openings); i++)
        if (rt_str_starts(rest, rt_str_of(openings[i]))) {
            put(t, openings[i]);
            t->at += strlen(openings[i]);
            return true;
        }
    if (!rt_str_starts(rest, RT_STR("?<")))
        return refuse(t, "a kind of group that ECMA-262 does not know");
    t->at += 2;
    if (!take_name(t, &name))
        return false;
    rt_buf_addf(t->out, "?<%.*s>", RT_FMT(name));
    return true;
}

/* How long "{2}", "{2,}" or "{2,5}" is, at an opening brace; 0 if it is none of them. */
static size_t braces_size(const translator *t)
{
    size_t i = 1;
    while (is_digit(peek(t, i)))
        i++;
    if (i == 1)
        return 0;
    if (peek(t, i) == ',')
        i++;
    while (is_digit(peek(t, i)))
        i++;
    return peek(t, i) == '}' ? i + 1 : 0;
}

static bool take_quantifier(translator *t, size_t size)
{
    if (!t->can_repeat)
        return refuse(t, "there is nothing to repeat");
    rt_buf_add(t->out, rt_str_slice(t->text, t->at, t->at + size));
    t->at += size;
    if (peek(t, 0) == '?') {
        put(t, "?");
        t->at++;
    }
    t->can_repeat = false;
    return true;
}

static unsigned count_groups(rt_str text)
{
    unsigned count = 0;
    bool is_in_class = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '\\')
            i++;
        else if (c == '[')
            is_in_class = true;
        else if (c == ']')
            is_in_class = false;
        else if (c == '(' && !is_in_class) {
            rt_str rest = rt_str_slice(text, i + 1, i + 4);
            bool is_named = rt_str_starts(rest, RT_STR("?<")) && rest.len == 3 &&
                            rest.ptr[2] != '=' && rest.ptr[2] != '!';
            count += rest.len == 0 || rest.ptr[0] != '?' || is_named;
        }
    }
    return count;
}

static bool take_token(translator *t)
{
    int c = peek(t, 0);
    size_t braces = c == '{' ? braces_size(t) : 0;
    if (c == '*' || c == '+' || c == '?' || braces)
        return take_quantifier(t, braces ? braces : 1);
    t->at++;
    switch (c) {
    case '\\':
        return take_escape(t);
    case '[':
        return take_class(t);
    case '(':
        return take_group(t);
    case ')':
        if (t->depth == 0)
            return refuse(t, "a group is closed that was not opened");
        t->depth--;
        t->can_repeat = true;
        put(t, ")");
        return true;
    case '|':
    case '^':
    case '$':
        t->can_repeat = false;
        rt_buf_addc(t->out, (char)c);
        return true;
    case '.':
        t->can_repeat = true;
        put(t, "[^\\n\\r\\x{2028}\\x{2029}]");
        return true;
    default:
        t->can_repeat = true;
        put_literal(t, (char)c);
        return true;
    }
}

bool schema_pattern_translate(rt_str text, rt_buf *out, rt_error *err)
{
    rt_error own = { 0 };
    translator t = { .text = text, .out = out, .err = err ? err : &own };
    t.group_count = count_groups(text);
    if (!rt_utf8_valid(text))
        return refuse(&t, "it is not valid UTF-8");
    while (t.at < text.len)
        if (!take_token(&t))
            return false;
    if (t.depth)
        return refuse(&t, "a group is not closed");
    return rt_buf_ok(out, err);
}
