/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv.c - reads comma-separated values, as RFC 4180 says and as spreadsheets write them.
 *
 * A field in quotes may hold commas, line ends and, doubled, quotes. What is not as it should be is
 * taken as it stands: a quote in the middle of a field is a quote, and the end of the text ends a
 * field that nobody closed.
 */
#include "guests/sql/sql.h"

#include <string.h>

/* Whichever stands most often in the first line. */
static char find_separator(rt_str text)
{
    static const char candidates[] = { ',', ';', '\t' };
    size_t most = 0;
    char best = ',';
    rt_str line;
    rt_str_cut(&text, '\n', &line);
    for (size_t c = 0; c < sizeof(candidates); c++) {
        size_t count = 0;
        for (size_t i = 0; i < line.len; i++)
            count += line.ptr[i] == candidates[c];
        if (count > most) {
            most = count;
            best = candidates[c];
        }
    }
    return best;
}

void csv_start(csv_reader *r, rt_str text)
{
    if (rt_str_starts(text, RT_STR("\xef\xbb\xbf")))
        text = rt_str_slice(text, 3, text.len);
    *r = (csv_reader){ .rest = text, .between = find_separator(text), .is_row_over = true };
}

void csv_done(csv_reader *r)
{
    rt_buf_done(&r->unquoted);
}

/* What stands after a field, up to the next one. */
static void end_field(csv_reader *r, size_t at)
{
    size_t len = r->rest.len;
    r->is_row_over = at >= len || r->rest.ptr[at] != r->between;
    if (at < len && r->rest.ptr[at] == '\r' && at + 1 < len && r->rest.ptr[at + 1] == '\n')
        at++;
    r->rest = rt_str_slice(r->rest, at + 1, len);
}

static bool is_end(const csv_reader *r, size_t at)
{
    char c = r->rest.ptr[at];
    return c == r->between || c == '\n' ||
           (c == '\r' && at + 1 < r->rest.len && r->rest.ptr[at + 1] == '\n');
}

static rt_str read_quoted(csv_reader *r)
{
    size_t at = 1;
    rt_buf_reset(&r->unquoted);
    rt_buf_add(&r->unquoted, (rt_str){ "", 0 });
    while (at < r->rest.len) {
        const char *quote = memchr(r->rest.ptr + at, '"', r->rest.len - at);
        size_t stop = quote ? (size_t)(quote - r->rest.ptr) : r->rest.len;
        rt_buf_add(&r->unquoted, rt_str_slice(r->rest, at, stop));
        at = stop + 1;
        if (at >= r->rest.len || r->rest.ptr[at] != '"')
            break;
        rt_buf_addc(&r->unquoted, '"');
        at++;
    }
    at = RT_MIN(at, r->rest.len);
    size_t from = at;
    while (at < r->rest.len && !is_end(r, at))
        at++;
    rt_buf_add(&r->unquoted, rt_str_slice(r->rest, from, at));
    end_field(r, at);
    return rt_buf_str(&r->unquoted);
}

bool csv_next(csv_reader *r, rt_str *field, bool *is_quoted)
{
    if (r->rest.len == 0 && r->is_row_over)
        return false;
    *is_quoted = r->rest.len > 0 && r->rest.ptr[0] == '"';
    if (*is_quoted) {
        *field = read_quoted(r);
        return true;
    }
    size_t at = 0;
    while (at < r->rest.len && !is_end(r, at))
        at++;
    *field = rt_str_slice(r->rest, 0, at);
    end_field(r, at);
    return true;
}
