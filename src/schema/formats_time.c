/* SPDX-License-Identifier: Apache-2.0 */
/*
 * formats_time.c - dates, times and durations as RFC 3339 writes them.
 *
 * Each take_x() reads at *at and moves behind what it has read.
 */
#include "schema/schema_internal.h"

enum { DAY_MINUTES = 24 * 60 };

static bool take_digits(rt_str text, size_t *at, unsigned count, unsigned *out)
{
    *out = 0;
    for (unsigned i = 0; i < count; i++, (*at)++) {
        if (*at >= text.len || text.ptr[*at] < '0' || text.ptr[*at] > '9')
            return false;
        *out = *out * 10 + (unsigned)(text.ptr[*at] - '0');
    }
    return true;
}

static bool take_char(rt_str text, size_t *at, char c)
{
    if (*at >= text.len || (text.ptr[*at] | 0x20) != (c | 0x20))
        return false;
    (*at)++;
    return true;
}

static bool take_date(rt_str text, size_t *at)
{
    static const unsigned char days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    unsigned year, month, day;
    if (!take_digits(text, at, 4, &year) || !take_char(text, at, '-') ||
        !take_digits(text, at, 2, &month) || !take_char(text, at, '-') ||
        !take_digits(text, at, 2, &day))
        return false;
    if (month < 1 || month > 12 || day < 1)
        return false;
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return day <= days[month - 1] + (unsigned)(month == 2 && is_leap);
}

/* In minutes east of Greenwich. */
static bool take_offset(rt_str text, size_t *at, int *out)
{
    unsigned hours, minutes;
    *out = 0;
    if (take_char(text, at, 'Z'))
        return true;
    char sign = *at < text.len ? text.ptr[*at] : '\0';
    if (sign != '+' && sign != '-')
        return false;
    (*at)++;
    if (!take_digits(text, at, 2, &hours) || !take_char(text, at, ':') ||
        !take_digits(text, at, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    *out = (int)(hours * 60 + minutes) * (sign == '-' ? -1 : 1);
    return true;
}

static bool take_fraction(rt_str text, size_t *at)
{
    if (*at >= text.len || text.ptr[*at] != '.')
        return true;
    size_t start = ++*at;
    while (*at < text.len && text.ptr[*at] >= '0' && text.ptr[*at] <= '9')
        (*at)++;
    return *at > start;
}

static bool take_time(rt_str text, size_t *at)
{
    unsigned hour, minute, second;
    int offset;
    if (!take_digits(text, at, 2, &hour) || *at >= text.len || text.ptr[(*at)++] != ':' ||
        !take_digits(text, at, 2, &minute) || *at >= text.len || text.ptr[(*at)++] != ':' ||
        !take_digits(text, at, 2, &second) || !take_fraction(text, at) ||
        !take_offset(text, at, &offset))
        return false;
    if (hour > 23 || minute > 59 || second > 60)
        return false;
    if (second < 60)
        return true;
    /* A leap second comes at the end of a day, in Greenwich. */
    int utc = ((int)(hour * 60 + minute) - offset + 2 * DAY_MINUTES) % DAY_MINUTES;
    return utc == DAY_MINUTES - 1;
}

bool schema_format_date(rt_str text)
{
    size_t at = 0;
    return text.len == 10 && take_date(text, &at) && at == text.len;
}

bool schema_format_time(rt_str text)
{
    size_t at = 0;
    return take_time(text, &at) && at == text.len;
}

bool schema_format_date_time(rt_str text)
{
    size_t at = 0;
    return take_date(text, &at) && take_char(text, &at, 'T') && take_time(text, &at) &&
           at == text.len;
}

/* A number and the unit behind it, if it is the next of `units`; the units must not skip one. */
static bool take_units(rt_str text, size_t *at, const char *units)
{
    const char *unit = NULL;
    while (*at < text.len && text.ptr[*at] >= '0' && text.ptr[*at] <= '9') {
        while (*at < text.len && text.ptr[*at] >= '0' && text.ptr[*at] <= '9')
            (*at)++;
        if (*at >= text.len)
            return false;
        const char *found = text.ptr[*at] ? strchr(units, text.ptr[*at]) : NULL;
        if (!found || (unit && found != unit + 1))
            return false;
        unit = found;
        (*at)++;
    }
    return unit != NULL;
}

bool schema_format_duration(rt_str text)
{
    size_t at = 1;
    if (text.len < 3 || text.ptr[0] != 'P')
        return false;
    if (text.ptr[text.len - 1] == 'W')
        return take_units(text, &at, "W") && at == text.len;
    if (text.ptr[at] != 'T' && !take_units(text, &at, "YMD"))
        return false;
    if (at < text.len && text.ptr[at] == 'T') {
        at++;
        if (!take_units(text, &at, "HMS"))
            return false;
    }
    return at == text.len;
}
