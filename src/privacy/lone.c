/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lone.c - secrets in a sentence: no sign of assignment, but a telling word some words before.
 *
 *     use access token EAAGm0PX4ZCpsBAKZC…      the API key for the weather is 4f7d2a9b…
 *     log in with password kX9$pQ2w
 *
 * Found at a digit, which such a secret has. What looks like a hash must have its word close by,
 * and nothing closer that speaks of a hash, an order or the like.
 */
#include "privacy/privacy_internal.h"

enum { TOKEN_MIN = 20, TOKEN_MAX = 300, PASSWORD_MIN = 7, PASSWORD_MAX = 40, WITHIN = 110 };

static bool is_token_byte(char c)
{
    return is_class(c, IS_KEY) || c == '.' || c == '=';
}

static size_t token_end(rt_str text, size_t i)
{
    size_t end = i;
    while (end < text.len && end - i < TOKEN_MAX && is_token_byte(text.ptr[end]))
        end++;
    while (end > i && is_one_of(text.ptr[end - 1], ".-/"))
        end--;
    return end;
}

static size_t token_begin(rt_str text, size_t i)
{
    size_t start = i;
    while (start && i - start < TOKEN_MAX && is_token_byte(text.ptr[start - 1]))
        start--;
    return start;
}

typedef struct mixture {
    size_t digits, lower, upper, dashes, marks, longest; /* longest: run of letters */
} mixture;

static mixture mix(rt_str s)
{
    mixture m = { 0 };
    size_t run = 0;
    for (size_t i = 0; i < s.len; i++) {
        m.digits += is_class(s.ptr[i], IS_DIGIT);
        m.lower += is_class(s.ptr[i], IS_LOWER);
        m.upper += is_class(s.ptr[i], IS_UPPER);
        m.dashes += is_one_of(s.ptr[i], "-_./");
        m.marks += !is_class(s.ptr[i], IS_KEY) && s.ptr[i] != '.';
        run = is_class(s.ptr[i], IS_LETTER) ? run + 1 : 0;
        m.longest = RT_MAX(m.longest, run);
    }
    return m;
}

/* Hexadecimal of a usual length, or letters of both cases and digits well mixed. */
static int score_token(rt_str s, unsigned distance)
{
    mixture m = mix(s);
    bool is_hex = m.dashes == 0 && s.len >= 32 && (m.lower == 0 || m.upper == 0) && m.digits >= 6;
    for (size_t i = 0; is_hex && i < s.len; i++)
        is_hex = is_class(s.ptr[i], IS_HEX);
    if (is_hex)
        return distance <= 5 && privacy_entropy(s) > 3 ? 62 : 0;
    bool is_public = rt_str_starts(s, RT_STR("AAAA")); /* of SSH */
    bool is_mixed = m.lower >= 4 && m.upper >= 3 && m.digits >= 3 && m.dashes * 8 <= s.len;
    return is_mixed && !is_public && m.longest < 20 && privacy_entropy(s) >= 3.6 ? 66 : 0;
}

/* "csrf_token: 8d96…": secret.c has judged it by its whole name. */
static bool is_assigned(rt_str text, size_t start)
{
    while (start && is_one_of(text.ptr[start - 1], " \t\"'"))
        start--;
    return start && is_one_of(text.ptr[start - 1], ":=>");
}

static bool take_token(privacy_scan *scan, size_t i)
{
    rt_str text = scan->text;
    size_t end = token_end(text, i);
    if (end - i < 4)
        return false;
    size_t start = token_begin(text, i);
    char prior = before(scan, start), next = at(text, end);
    if (end - start < TOKEN_MIN || is_one_of(prior, "@:&?%#$\\") || is_one_of(next, "@:(%") ||
        is_assigned(text, start))
        return false;
    privacy_context context;
    privacy_context_at(scan, start, end, &context);
    unsigned secret = context.distance[TOPIC_SECRET];
    if (secret > 6 || context.distance[TOPIC_NUMBER] < secret)
        return false;
    int score = score_token(rt_str_slice(text, start, end), secret);
    return score && privacy_add(scan, RT_PII_API_KEY, start, end, score);
}

/* The word right before must be "password", and the value none that people read. */
static bool take_password(privacy_scan *scan, size_t i)
{
    rt_str text = scan->text;
    size_t start = i, end = i;
    while (start && i - start < PASSWORD_MAX && !is_class(text.ptr[start - 1], IS_SPACE))
        start--;
    while (end < text.len && end - i < PASSWORD_MAX && !is_class(text.ptr[end], IS_SPACE))
        end++;
    start += is_one_of(at(text, start), "\"'(");
    while (end > start && is_one_of(text.ptr[end - 1], ".,;:)\"'"))
        end--;
    rt_str s = rt_str_slice(text, start, end);
    mixture m = mix(s);
    unsigned kinds = !!m.digits + !!m.lower + !!m.upper + !!m.marks;
    static const rt_str word = RT_STR("password ");
    bool follows =
        start >= word.len && rt_str_eq(rt_str_slice(text, start - word.len, start), word);
    if (!follows || s.len < PASSWORD_MIN || s.len > PASSWORD_MAX || kinds < 3 ||
        memchr(s.ptr, '(', s.len) || memchr(s.ptr, '=', s.len))
        return false;
    return privacy_add(scan, RT_PII_API_KEY, start, end, m.marks ? 68 : 56);
}

bool privacy_lone_secret(privacy_scan *scan, size_t i)
{
    if (!wants(scan, RT_PII_API_KEY) || i > scan->secret_end + WITHIN)
        return false;
    return take_token(scan, i) || (i < scan->secret_end + PASSWORD_MAX && take_password(scan, i));
}
