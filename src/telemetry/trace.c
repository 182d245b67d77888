/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.c - the header traceparent, as in W3C Trace Context level 1.
 *
 *     00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *     version  trace id                    span id       flags
 *
 * Of a version we do not know, the four fields we know are read and what follows a further '-' is
 * ignored. Of the flags only "sampled" has a meaning; the others are not passed on.
 */
#include "telemetry/telemetry.h"

enum {
    VERSION_AT = 0,
    TRACE_ID_AT = 3,
    SPAN_ID_AT = 36,
    FLAGS_AT = 53,
    LENGTH = 55,
    FLAG_SAMPLED = 1,
};

/* Lower case only: the W3C text forbids the rest. */
static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex(const char *text, uint8_t *out, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
    uint8_t any = 0;
    for (size_t i = 0; i < size; i++)
        any |= bytes[i];
    return any == 0;
}

/* Version 0 ends with the flags; later ones may go on after a '-'. */
static bool is_length_right(rt_str s, uint8_t version)
{
    return s.len == LENGTH || (version > 0 && s.ptr[LENGTH] == '-');
}

rt_trace rt_trace_parse(rt_str s)
{
    static const rt_trace nothing = { 0 };
    rt_trace trace = { .is_set = true };
    uint8_t version;
    if (s.len < LENGTH || s.ptr[TRACE_ID_AT - 1] != '-' || s.ptr[SPAN_ID_AT - 1] != '-' ||
        s.ptr[FLAGS_AT - 1] != '-')
        return nothing;
    if (!read_hex(s.ptr + VERSION_AT, &version, 1) || version == 0xff ||
        !is_length_right(s, version))
        return nothing;
    if (!read_hex(s.ptr + TRACE_ID_AT, trace.trace_id, sizeof(trace.trace_id)) ||
        !read_hex(s.ptr + SPAN_ID_AT, trace.span_id, sizeof(trace.span_id)) ||
        !read_hex(s.ptr + FLAGS_AT, &trace.flags, 1))
        return nothing;
    if (is_zero(trace.trace_id, sizeof(trace.trace_id)) ||
        is_zero(trace.span_id, sizeof(trace.span_id)))
        return nothing;
    trace.flags &= FLAG_SAMPLED;
    return trace;
}

void rt_trace_format(const rt_trace *trace, char out[RT_TRACEPARENT_SIZE])
{
    memcpy(out, "00-", 3);
    rt_hex(out + TRACE_ID_AT, trace->trace_id, sizeof(trace->trace_id));
    out[SPAN_ID_AT - 1] = '-';
    rt_hex(out + SPAN_ID_AT, trace->span_id, sizeof(trace->span_id));
    out[FLAGS_AT - 1] = '-';
    rt_hex(out + FLAGS_AT, &trace->flags, 1);
}
