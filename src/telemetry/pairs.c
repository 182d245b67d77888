/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pairs.c - lists like OTEL_EXPORTER_OTLP_HEADERS and OTEL_RESOURCE_ATTRIBUTES: "k=v,k2=v%20w".
 *
 * The form is that of W3C Baggage without its properties: commas between pairs, spaces around the
 * parts without meaning, values percent-encoded, empty pairs skipped. A list with one bad pair is
 * refused whole, as the OpenTelemetry text asks.
 *
 * Resolving "%0d%0a" would let a value add headers of its own to a request; that is why headers are
 * judged after it.
 */
#include "telemetry/telemetry_internal.h"

typedef bool (*pair_check)(const telemetry_pair *pair, rt_error *err);

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool resolve_percent(rt_str text, rt_arena *arena, rt_str *out, rt_error *err)
{
    char *to = rt_arena_alloc_raw(arena, text.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] != '%') {
            to[len++] = text.ptr[i];
            continue;
        }
        int high = i + 2 < text.len ? hex_value(text.ptr[i + 1]) : -1;
        int low = i + 2 < text.len ? hex_value(text.ptr[i + 2]) : -1;
        if (high < 0 || low < 0)
            return rt_fail(err, RT_INVALID, "'%%' is not followed by two hexadecimal digits");
        to[len++] = (char)(high << 4 | low);
        i += 2;
    }
    to[len] = '\0';
    *out = (rt_str){ to, len };
    return true;
}

/* What RFC 9110 calls a token. */
static bool is_token(rt_str s)
{
    static const char also[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool is_alnum = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
        if (!is_alnum && (c == '\0' || !strchr(also, c)))
            return false;
    }
    return s.len > 0;
}

static bool check_header(const telemetry_pair *pair, rt_error *err)
{
    if (!is_token(pair->key))
        return rt_fail(err, RT_INVALID, "the name of a header has a character no header has");
    for (size_t i = 0; i < pair->value.len; i++) {
        unsigned char c = (unsigned char)pair->value.ptr[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return rt_fail(err, RT_INVALID, "the value of header %.*s has a control character",
                           RT_FMT(pair->key));
    }
    return true;
}

static bool check_attribute(const telemetry_pair *pair, rt_error *err)
{
    if (!rt_utf8_valid(pair->key) || !rt_utf8_valid(pair->value))
        return rt_fail(err, RT_INVALID, "an attribute is not UTF-8");
    return true;
}

static bool parse_pair(rt_str piece, rt_arena *arena, pair_check check, telemetry_pair *out,
                       rt_error *err)
{
    const char *equals = memchr(piece.ptr, '=', piece.len);
    if (!equals)
        return rt_fail(err, RT_INVALID, "a part has no '='");
    size_t at = (size_t)(equals - piece.ptr);
    out->key = rt_arena_str(arena, rt_str_trim(rt_str_slice(piece, 0, at)));
    if (out->key.len == 0)
        return rt_fail(err, RT_INVALID, "a part has nothing before its '='");
    rt_str value = rt_str_trim(rt_str_slice(piece, at + 1, piece.len));
    return resolve_percent(value, arena, &out->value, err) && check(out, err);
}

static bool parse(rt_str text, rt_arena *arena, pair_check check, telemetry_pairs *out,
                  rt_error *err)
{
    if (text.len > TELEMETRY_PAIRS_SIZE_MAX)
        return rt_fail(err, RT_LIMIT, "the list is longer than %u bytes", TELEMETRY_PAIRS_SIZE_MAX);
    telemetry_pairs pairs = { rt_arena_alloc(arena, TELEMETRY_PAIRS_MAX * sizeof(telemetry_pair)),
                              0 };
    rt_str rest = text, piece;
    for (unsigned part = 1; rt_str_cut(&rest, ',', &piece); part++) {
        piece = rt_str_trim(piece);
        if (piece.len == 0)
            continue;
        if (pairs.count == TELEMETRY_PAIRS_MAX)
            return rt_fail(err, RT_LIMIT, "the list has more than %d parts", TELEMETRY_PAIRS_MAX);
        if (!parse_pair(piece, arena, check, &pairs.items[pairs.count++], err))
            return rt_wrap(err, "part %u", part);
    }
    *out = pairs;
    return true;
}

bool telemetry_parse_headers(rt_str text, rt_arena *arena, telemetry_pairs *out, rt_error *err)
{
    return parse(text, arena, check_header, out, err);
}

bool telemetry_parse_attributes(rt_str text, rt_arena *arena, telemetry_pairs *out, rt_error *err)
{
    return parse(text, arena, check_attribute, out, err);
}
