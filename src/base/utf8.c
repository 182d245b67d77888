/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8.c - UTF-8, as strict as Unicode's table 3-7.
 *
 * One function knows the rules, rt_utf8_step(). The others walk with it, and hurry over ASCII
 * eight bytes at a time because most text is that.
 */
#include "base/str.h"

/* What may follow a lead byte: overlong forms, surrogates and the far end are the special cases. */
static size_t lead(uint8_t byte, uint8_t *low, uint8_t *high)
{
    *low = 0x80;
    *high = 0xBF;
    if (byte >= 0xC2 && byte <= 0xDF)
        return 2;
    if (byte >= 0xE0 && byte <= 0xEF) {
        if (byte == 0xE0)
            *low = 0xA0;
        if (byte == 0xED)
            *high = 0x9F;
        return 3;
    }
    if (byte >= 0xF0 && byte <= 0xF4) {
        if (byte == 0xF0)
            *low = 0x90;
        if (byte == 0xF4)
            *high = 0x8F;
        return 4;
    }
    return 0;
}

size_t rt_utf8_step(rt_str s, size_t *bad)
{
    const uint8_t *bytes = (const uint8_t *)s.ptr;
    if (bytes[0] < 0x80)
        return 1;
    uint8_t low, high;
    size_t size = lead(bytes[0], &low, &high);
    size_t good = 1;
    while (good < size && good < s.len && bytes[good] >= low && bytes[good] <= high) {
        low = 0x80;
        high = 0xBF;
        good++;
    }
    if (size && good == size)
        return size;
    if (bad)
        *bad = good;
    return 0;
}

static bool is_ascii8(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return (word & 0x8080808080808080u) == 0;
}

bool rt_utf8_valid(rt_str s)
{
    size_t i = 0;
    while (i < s.len) {
        if (s.len - i >= 8 && is_ascii8(s.ptr + i)) {
            i += 8;
            continue;
        }
        size_t size = rt_utf8_step((rt_str){ s.ptr + i, s.len - i }, NULL);
        if (size == 0)
            return false;
        i += size;
    }
    return true;
}

size_t rt_utf8_length(rt_str s)
{
    size_t count = 0;
    for (size_t i = 0; i < s.len; i++)
        count += ((uint8_t)s.ptr[i] & 0xC0) != 0x80;
    return count;
}

size_t rt_utf8_put(char out[4], uint32_t code_point)
{
    if (code_point < 0x80) {
        out[0] = (char)code_point;
        return 1;
    }
    if (code_point < 0x800) {
        out[0] = (char)(0xC0 | code_point >> 6);
        out[1] = (char)(0x80 | (code_point & 0x3F));
        return 2;
    }
    if (code_point < 0x10000) {
        out[0] = (char)(0xE0 | code_point >> 12);
        out[1] = (char)(0x80 | (code_point >> 6 & 0x3F));
        out[2] = (char)(0x80 | (code_point & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | code_point >> 18);
    out[1] = (char)(0x80 | (code_point >> 12 & 0x3F));
    out[2] = (char)(0x80 | (code_point >> 6 & 0x3F));
    out[3] = (char)(0x80 | (code_point & 0x3F));
    return 4;
}
