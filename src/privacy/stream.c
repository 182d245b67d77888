/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c - text in pieces, scanned as if it had come whole.
 *
 * What has come is kept until RT_PRIVACY_SPAN_MAX more has followed, so that whatever begins in
 * the settled part is seen to its end; a little of the settled part stays as context. The border
 * is put where a line ends, or else a word.
 */
#include "privacy/privacy_internal.h"

enum { CONTEXT = 512, BORDER_SEARCH = 4096 };

void rt_privacy_stream_init(rt_privacy_stream *stream, const rt_privacy_options *options)
{
    *stream = (rt_privacy_stream){ .options = options };
}

void rt_privacy_stream_done(rt_privacy_stream *stream)
{
    if (stream->text.ptr)
        explicit_bzero(stream->text.ptr, stream->text.cap);
    rt_buf_done(&stream->text);
}

static size_t border_of(rt_str text, size_t from, size_t to)
{
    size_t least = to > from + BORDER_SEARCH ? to - BORDER_SEARCH : from;
    for (size_t i = to; i > least; i--)
        if (text.ptr[i - 1] == '\n')
            return i;
    for (size_t i = to; i > least; i--)
        if (is_class(text.ptr[i - 1], IS_SPACE))
            return i;
    while (to > least && ((unsigned char)text.ptr[to] & 0xC0) == 0x80)
        to--;
    return to;
}

static void forget(rt_privacy_stream *stream)
{
    rt_str text = rt_buf_str(&stream->text);
    size_t drop = stream->settled > CONTEXT ? stream->settled - CONTEXT : 0;
    while (drop && ((unsigned char)text.ptr[drop] & 0xC0) == 0x80)
        drop--;
    if (!drop)
        return;
    stream->points += privacy_points(rt_str_slice(text, 0, drop));
    stream->bytes += drop;
    memmove(stream->text.ptr, stream->text.ptr + drop, text.len - drop);
    stream->text.len -= drop;
    stream->settled -= drop;
}

/* Reports what begins in settled..border-1, and what reaches back from there. */
static bool settle(rt_privacy_stream *stream, size_t border, rt_privacy_found found, void *self,
                   rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str text = rt_buf_str(&stream->text);
    privacy_scan scan;
    size_t settled = stream->settled, points = 0, counted = 0;
    privacy_scan_init(&scan, text, stream->options, &arena);
    privacy_scan_range(&scan, stream->settled, border);
    if (stream->options && stream->options->patterns &&
        !privacy_patterns_scan(&scan, stream->options->patterns, err))
        return false;
    if (scan.is_overfull)
        return rt_fail(err, RT_LIMIT, "more than %zu pieces of personal data in one text",
                       RT_PRIVACY_SPANS_MAX);
    privacy_settle(&scan);
    stream->settled = border;
    for (size_t k = 0; k < scan.count; k++) {
        rt_pii_span span = scan.spans[k];
        if (span.end <= settled || span.start >= border)
            continue;
        points += privacy_points(rt_str_slice(text, counted, span.start));
        size_t length = privacy_points(rt_str_slice(text, span.start, span.end));
        counted = span.start;
        stream->settled = RT_MAX(stream->settled, span.end);
        span.start_point = stream->points + points;
        span.end_point = span.start_point + length;
        span.start += stream->bytes;
        span.end += stream->bytes;
        if (!found(self, &span, err))
            return false;
    }
    forget(stream);
    return true;
}

bool rt_privacy_stream_push(rt_privacy_stream *stream, rt_str piece, bool is_last,
                            rt_privacy_found found, void *self, rt_error *err)
{
    size_t step = 4 * RT_PRIVACY_SPAN_MAX;
    while (piece.len || is_last) {
        rt_str some = rt_str_slice(piece, 0, step);
        piece = rt_str_slice(piece, some.len, piece.len);
        rt_buf_add(&stream->text, some);
        if (!rt_buf_ok(&stream->text, err))
            return false;
        bool is_end = is_last && piece.len == 0;
        size_t len = stream->text.len;
        if (is_end)
            return settle(stream, len, found, self, err);
        if (len < stream->settled + 2 * RT_PRIVACY_SPAN_MAX)
            continue;
        size_t border =
            border_of(rt_buf_str(&stream->text), stream->settled, len - RT_PRIVACY_SPAN_MAX);
        if (border > stream->settled && !settle(stream, border, found, self, err))
            return false;
    }
    return true;
}
