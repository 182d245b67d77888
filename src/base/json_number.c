/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_number.c - numbers as decimals, and as doubles.
 *
 * The text of a number is its value. To compare two, or to see whether one is an integer, it is
 * read as 0.d1d2d3... times a power of ten, with d1 and the last digit not zero; every number
 * but zero has exactly one such form. Doubles are made only for those who ask for one.
 *
 * No locale: strtod_l() is told to use "C", and of printf's output only the digits are taken.
 */
#include "base/json_internal.h"
#include "base/hash.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* -- Decimals ---------------------------------------------------------------------------------- */

#define EXPONENT_DIGITS_MAX 17 /* so that the sums below stay far from overflow */

typedef struct decimal {
    const char *first, *end; /* the significant digits, perhaps with a '.' among them */
    size_t count;            /* how many there are; 0 is zero */
    int64_t exponent;        /* the value is 0.<digits> * 10^exponent */
    bool is_negative;
    bool is_extreme; /* the exponent has too many digits to be computed with */
} decimal;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void add_exponent(rt_str text, decimal *out)
{
    bool is_negative = text.ptr[0] == '-';
    size_t from = text.ptr[0] == '-' || text.ptr[0] == '+';
    while (from + 1 < text.len && text.ptr[from] == '0')
        from++;
    uint64_t size = 0;
    rt_str digits = rt_str_slice(text, from, text.len);
    out->is_extreme = digits.len > EXPONENT_DIGITS_MAX || !rt_str_to_u64(digits, &size);
    out->exponent += is_negative ? -(int64_t)size : (int64_t)size;
    if (out->is_extreme)
        out->exponent = is_negative ? -1 : 1; /* at least its direction */
}

static decimal read_decimal(rt_str text)
{
    decimal out = { 0 };
    size_t i = 0, digits_after_point = 0, digits_before_point = 0;
    bool is_past_point = false;
    if (text.ptr[0] == '-') {
        out.is_negative = true;
        i++;
    }
    size_t zeros = 0; /* seen since the last significant digit, perhaps significant themselves */
    for (; i < text.len && (is_digit(text.ptr[i]) || text.ptr[i] == '.'); i++) {
        if (text.ptr[i] == '.') {
            is_past_point = true;
            continue;
        }
        if (text.ptr[i] != '0') {
            if (!out.first)
                out.first = text.ptr + i;
            out.count += zeros + 1;
            zeros = 0;
            out.end = text.ptr + i + 1;
        } else if (out.first) {
            zeros++;
        }
        if (is_past_point)
            digits_after_point += !out.first;
        else
            digits_before_point += out.first != NULL;
    }
    out.exponent = (int64_t)digits_before_point - (int64_t)digits_after_point;
    if (i < text.len && out.first)
        add_exponent(rt_str_slice(text, i + 1, text.len), &out);
    return out;
}

static char next_digit(const char **at)
{
    if (**at == '.')
        (*at)++;
    return *(*at)++;
}

bool json_number_equal(const json_node *a, const json_node *b)
{
    if (rt_str_eq(json_text(a), json_text(b)))
        return true;
    decimal left = read_decimal(json_text(a)), right = read_decimal(json_text(b));
    if (left.count == 0 || right.count == 0)
        return left.count == right.count;
    if (left.is_extreme || right.is_extreme)
        return false; /* 1e<20 digits>: the same only if written the same */
    if (left.count != right.count || left.exponent != right.exponent ||
        left.is_negative != right.is_negative)
        return false;
    for (size_t i = 0; i < left.count; i++)
        if (next_digit(&left.first) != next_digit(&right.first))
            return false;
    return true;
}

static int compare_digits(decimal left, decimal right)
{
    size_t common = RT_MIN(left.count, right.count);
    for (size_t i = 0; i < common; i++) {
        int order = next_digit(&left.first) - next_digit(&right.first);
        if (order)
            return order;
    }
    return (left.count > right.count) - (left.count < right.count);
}

/* Both above zero once their signs are taken off. */
static int compare_sizes(decimal left, decimal right)
{
    /* An extreme exponent counts for its sign alone. */
    int64_t a = left.is_extreme ? (left.exponent < 0 ? INT64_MIN : INT64_MAX) : left.exponent;
    int64_t b = right.is_extreme ? (right.exponent < 0 ? INT64_MIN : INT64_MAX) : right.exponent;
    if (a != b)
        return a < b ? -1 : 1;
    return left.is_extreme ? 0 : compare_digits(left, right);
}

static int sign_of(decimal d)
{
    if (d.count == 0)
        return 0;
    return d.is_negative ? -1 : 1;
}

int rt_json_compare(rt_json a, rt_json b)
{
    decimal left = read_decimal(json_text(a.node)), right = read_decimal(json_text(b.node));
    int sign = sign_of(left);
    if (sign != sign_of(right))
        return sign - sign_of(right);
    return sign ? sign * compare_sizes(left, right) : 0;
}

bool rt_json_is_integer(rt_json v)
{
    if (rt_json_type(v) != RT_JSON_NUMBER)
        return false;
    if (json_number_is_integer(json_text(v.node)))
        return true;
    decimal d = read_decimal(json_text(v.node));
    return d.count == 0 || (d.is_extreme ? d.exponent > 0 : d.exponent >= (int64_t)d.count);
}

bool rt_json_is_step(rt_json v)
{
    if (rt_json_type(v) != RT_JSON_NUMBER)
        return false;
    decimal d = read_decimal(json_text(v.node));
    return sign_of(d) > 0 && d.count <= RT_JSON_STEP_DIGITS && !d.is_extreme;
}

/* A remainder of the division by a step, as digits with the highest first. */
typedef struct remainder {
    unsigned char step[RT_JSON_STEP_DIGITS + 1], digits[RT_JSON_STEP_DIGITS + 1];
    size_t count; /* of both */
} remainder_state;

static void subtract_while_possible(remainder_state *r)
{
    while (memcmp(r->digits, r->step, r->count) >= 0) {
        int borrow = 0;
        for (size_t i = r->count; i-- > 0;) {
            int digit = r->digits[i] - r->step[i] - borrow;
            borrow = digit < 0;
            r->digits[i] = (unsigned char)(digit + (borrow ? 10 : 0));
        }
    }
}

static void take_digit(remainder_state *r, unsigned digit)
{
    memmove(r->digits, r->digits + 1, r->count - 1);
    r->digits[r->count - 1] = (unsigned char)digit;
    subtract_while_possible(r);
}

/*
 * v and step are a * 10^p and b * 10^q with neither a nor b ending in 0. With p < q the quotient
 * would need a factor ten that a does not have. Otherwise b must divide a * 10^(p-q), and past
 * as many zeros as b has factors of two or five, further ones change nothing.
 */
bool rt_json_is_multiple(rt_json v, rt_json step)
{
    enum { ENOUGH_ZEROS = RT_JSON_STEP_DIGITS * 4 };
    decimal a = read_decimal(json_text(v.node)), b = read_decimal(json_text(step.node));
    if (a.count == 0)
        return true;
    if (a.is_extreme && a.exponent < 0)
        return false;
    int64_t zeros = a.is_extreme
                        ? ENOUGH_ZEROS
                        : (a.exponent - (int64_t)a.count) - (b.exponent - (int64_t)b.count);
    if (zeros < 0)
        return false;
    remainder_state r = { .count = b.count + 1 };
    for (size_t i = 1; i < r.count; i++)
        r.step[i] = (unsigned char)(next_digit(&b.first) - '0');
    for (size_t i = 0; i < a.count; i++)
        take_digit(&r, (unsigned)(next_digit(&a.first) - '0'));
    for (int64_t i = 0; i < RT_MIN(zeros, (int64_t)ENOUGH_ZEROS); i++)
        take_digit(&r, 0);
    for (size_t i = 0; i < r.count; i++)
        if (r.digits[i])
            return false;
    return true;
}

/* The digits and the exponent say it all; numbers that are equal have the same. */
uint64_t json_number_hash(const json_node *number, const rt_hash_key *key)
{
    decimal d = read_decimal(json_text(number));
    char form[128];
    if (d.count == 0 || d.is_extreme)
        return rt_hash(key, d.count ? json_text(number) : RT_STR("0"));
    size_t len = 0;
    form[len++] = d.is_negative ? '-' : '+';
    memcpy(form + len, &d.exponent, sizeof(d.exponent));
    len += sizeof(d.exponent);
    for (size_t i = 0; i < d.count && len < sizeof(form); i++)
        form[len++] = next_digit(&d.first);
    return rt_hash(key, (rt_str){ form, len });
}

bool json_number_i64(const json_node *number, int64_t *out)
{
    decimal d = read_decimal(json_text(number));
    if (d.is_extreme || (d.count && (d.exponent < (int64_t)d.count || d.exponent > 19)))
        return false;
    uint64_t size = 0;
    for (int64_t i = 0; d.count && i < d.exponent; i++) {
        unsigned digit = i < (int64_t)d.count ? (unsigned)(next_digit(&d.first) - '0') : 0;
        if (__builtin_mul_overflow(size, 10, &size) || __builtin_add_overflow(size, digit, &size))
            return false;
    }
    if (size > (uint64_t)INT64_MAX + d.is_negative)
        return false;
    *out = d.is_negative ? (int64_t)-size : (int64_t)size;
    return true;
}

bool json_number_is_integer(rt_str number)
{
    for (size_t i = 0; i < number.len; i++)
        if (number.ptr[i] == '.' || number.ptr[i] == 'e' || number.ptr[i] == 'E')
            return false;
    return true;
}

/* -- Doubles ----------------------------------------------------------------------------------- */

static double to_double(const char *text)
{
    /* For "C", newlocale() gives back a constant of libc: nothing is allocated. */
    return strtod_l(text, NULL, newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

double json_number_double(const json_node *number)
{
    /* No terminator needed: in a document a number is followed by a byte that ends it. */
    return to_double(number->text);
}

typedef struct shortest {
    char digits[20];
    int count, exponent; /* d.ddd * 10^exponent */
} shortest;

/* The digits of printf's "d.ddde+xx", whatever the locale puts between them. */
static void take_digits(const char *text, shortest *out)
{
    out->count = 0;
    while (*text && *text != 'e') {
        if (is_digit(*text))
            out->digits[out->count++] = *text;
        text++;
    }
    out->exponent = atoi(text + 1);
}

static double read_back(const shortest *in)
{
    char text[64];
    snprintf(text, sizeof(text), "%.*se%d", in->count, in->digits, in->exponent - in->count + 1);
    return to_double(text);
}

/* One more in the last place. */
static void add_one(shortest *s)
{
    int i = s->count - 1;
    while (i >= 0 && s->digits[i] == '9')
        s->digits[i--] = '0';
    if (i >= 0) {
        s->digits[i]++;
    } else {
        s->digits[0] = '1';
        s->exponent++;
    }
}

/*
 * `count` digits that read back as the number, if there are any. The nearest such decimal does
 * whenever one does, but at a power of two: there the doubles below lie twice as close as those
 * above, and the next decimal up may read back where the nearest, below, does not.
 */
static bool try_digits(double number, int count, shortest *out)
{
    char text[64];
    snprintf(text, sizeof(text), "%.*e", count - 1, number);
    take_digits(text, out);
    if (read_back(out) == number)
        return true;
    int exponent;
    if (frexp(number, &exponent) != 0.5)
        return false;
    add_one(out);
    return read_back(out) == number;
}

/*
 * The fewest digits that read back as the same number. 15 digits always survive the way there and
 * back, so if 15 do, the fewest are those without the zeros at the end; below the normal range
 * there are not 15 to have, and each count is tried. 17 are always enough.
 */
static void find_shortest(double number, shortest *out)
{
    int count = number < 2.2250738585072014e-308 ? 1 : 15;
    while (!try_digits(number, count, out))
        count++;
    while (out->count > 1 && out->digits[out->count - 1] == '0')
        out->count--;
}

static size_t put_exponential(const shortest *s, char *out)
{
    size_t len = 0;
    out[len++] = s->digits[0];
    if (s->count > 1) {
        out[len++] = '.';
        memcpy(out + len, s->digits + 1, (size_t)s->count - 1);
        len += (size_t)s->count - 1;
    }
    return len + (size_t)sprintf(out + len, "e%+03d", s->exponent);
}

static size_t put_positional(const shortest *s, char *out)
{
    size_t len = 0;
    if (s->exponent < 0) {
        len = (size_t)sprintf(out, "0.%.*s", -s->exponent - 1, "000");
        memcpy(out + len, s->digits, (size_t)s->count);
        return len + (size_t)s->count;
    }
    for (int i = 0; i <= s->exponent || i < s->count; i++) {
        if (i == s->exponent + 1)
            out[len++] = '.';
        out[len++] = i < s->count ? s->digits[i] : '0';
    }
    if (s->count <= s->exponent + 1) {
        out[len++] = '.';
        out[len++] = '0';
    }
    return len;
}

rt_str json_double_print(double number, char out[JSON_DOUBLE_SIZE])
{
    char *at = out;
    if (signbit(number))
        *at++ = '-';
    number = fabs(number);
    if (isinf(number)) {
        memcpy(at, "Infinity", 8);
        return (rt_str){ out, (size_t)(at - out) + 8 };
    }
    shortest s = { .digits = "0", .count = 1 };
    if (number != 0)
        find_shortest(number, &s);
    bool is_positional = s.exponent >= -4 && s.exponent < 16;
    size_t len = is_positional ? put_positional(&s, at) : put_exponential(&s, at);
    return (rt_str){ out, (size_t)(at - out) + len };
}
