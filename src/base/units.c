/* SPDX-License-Identifier: Apache-2.0 */
/*
 * units.c - "<digits>[.<digits>]<unit>" as a whole number of the smallest unit.
 *
 * In integers throughout: a double would make 0.1G a number nobody wrote. The fraction is taken
 * as digits over a power of ten and rounded up, so that "0.5ms" does not become "no time at all".
 */
#include "base/units.h"

enum { MAX_FRACTION_DIGITS = 9 };

typedef struct unit {
    const char *name;
    uint64_t factor;
} unit;

static const unit sizes[] = {
    { "", 1 },
    { "b", 1 },
    { "k", 1u << 10 },
    { "kb", 1u << 10 },
    { "kib", 1u << 10 },
    { "m", 1u << 20 },
    { "mb", 1u << 20 },
    { "mib", 1u << 20 },
    { "g", 1u << 30 },
    { "gb", 1u << 30 },
    { "gib", 1u << 30 },
    { "t", 1ull << 40 },
    { "tb", 1ull << 40 },
    { "tib", 1ull << 40 },
};

static const unit spans[] = {
    { "", 1000 },       { "ms", 1 },      { "s", 1000 },
    { "m", 60 * 1000 }, { "h", 3600000 }, { "d", 24 * 3600000 },
};

static size_t digits_at(rt_str s, size_t from)
{
    size_t i = from;
    while (i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9')
        i++;
    return i - from;
}

static bool same_unit(rt_str text, const char *name)
{
    if (text.len != strlen(name))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if ((c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c) != name[i])
            return false;
    }
    return true;
}

static const unit *find_unit(rt_str text, const unit *units, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (same_unit(text, units[i].name))
            return &units[i];
    return NULL;
}

/* whole.fraction * factor, rounded up; false when it does not fit. */
static bool scale(rt_str whole, rt_str fraction, uint64_t factor, uint64_t *out)
{
    uint64_t units, parts = 0, power = 1;
    if (!rt_str_to_u64(whole, &units) || __builtin_mul_overflow(units, factor, &units))
        return false;
    if (fraction.len && !rt_str_to_u64(fraction, &parts))
        return false;
    for (size_t i = 0; i < fraction.len; i++)
        power *= 10;
    unsigned __int128 rest = ((unsigned __int128)parts * factor + power - 1) / power;
    return !__builtin_add_overflow(units, (uint64_t)rest, out);
}

static bool parse(rt_str text, const unit *units, size_t count, uint64_t *out)
{
    size_t whole = digits_at(text, 0);
    size_t at = whole, fraction = 0;
    if (at < text.len && text.ptr[at] == '.') {
        fraction = digits_at(text, at + 1);
        if (fraction == 0 || fraction > MAX_FRACTION_DIGITS)
            return false;
        at += 1 + fraction;
    }
    const unit *chosen = find_unit(rt_str_slice(text, at, text.len), units, count);
    return chosen && whole &&
           scale(rt_str_slice(text, 0, whole), rt_str_slice(text, at - fraction, at),
                 chosen->factor, out);
}

/* What came in is quoted in the error, but not all of it: it may be a megabyte. */
static rt_str quoted(rt_str text)
{
    return rt_str_slice(text, 0, 40);
}

bool rt_parse_bytes(rt_str text, uint64_t *bytes, rt_error *err)
{
    uint64_t value;
    if (!parse(text, sizes, RT_COUNT(sizes), &value))
        return rt_fail(err, RT_INVALID,
                       "\"%.*s\" is not a size: expected a number of bytes below 16 EiB, or one "
                       "with K, M, G or T (64KiB, 128M, 1.5G)",
                       RT_FMT(quoted(text)));
    *bytes = value;
    return true;
}

bool rt_parse_duration_ms(rt_str text, uint64_t *ms, rt_error *err)
{
    uint64_t value;
    if (!parse(text, spans, RT_COUNT(spans), &value))
        return rt_fail(err, RT_INVALID,
                       "\"%.*s\" is not a duration: expected a number of seconds, or one with ms, "
                       "s, m, h or d (250ms, 1.5s, 2m)",
                       RT_FMT(quoted(text)));
    *ms = value;
    return true;
}
