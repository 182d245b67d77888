/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_sse.c - server-sent events out of a stream of bytes, as the HTML standard reads them.
 *
 * Bytes come in pieces of any size. Lines are gathered in `line`, but that those of data go
 * straight to where they belong as soon as they are known to be such: an event may be 60 MB on one
 * line.
 */
#include "tools/mcp_internal.h"

enum { LINE_MAX_BYTES = 64 << 10 };

static const rt_str data_field = { "data:", 5 };

void mcp_sse_reset(mcp_sse *sse)
{
    rt_buf_reset(&sse->line);
    rt_buf_reset(&sse->data);
    sse->line.max = LINE_MAX_BYTES;
    sse->data.max = MCP_MESSAGE_MAX;
    sse->event[0] = '\0';
    sse->is_in_data = sse->has_data = sse->was_cr = false;
}

void mcp_sse_done(mcp_sse *sse)
{
    rt_buf_done(&sse->line);
    rt_buf_done(&sse->data);
}

static void copy_short(char *out, size_t size, rt_str value)
{
    bool fits = value.len < size && (value.len == 0 || !memchr(value.ptr, '\0', value.len));
    if (fits && value.len)
        memcpy(out, value.ptr, value.len);
    if (fits)
        out[value.len] = '\0';
}

static void begin_data(mcp_sse *sse, rt_str value)
{
    if (sse->has_data)
        rt_buf_addc(&sse->data, '\n');
    sse->has_data = sse->is_in_data = true;
    rt_buf_add(&sse->data, value);
}

static bool end_event(mcp_sse *sse)
{
    bool goes_on = true;
    if (sse->has_data)
        goes_on = sse->on_event(sse->ctx, sse->event[0] ? sse->event : "message", &sse->data);
    rt_buf_reset(&sse->data);
    sse->has_data = false;
    sse->event[0] = '\0';
    return goes_on;
}

static bool take_line(mcp_sse *sse)
{
    rt_str name, value = rt_buf_str(&sse->line);
    uint64_t number;
    if (value.len == 0)
        return end_event(sse);
    if (!rt_str_cut(&value, ':', &name) || name.len == 0)
        return true; /* a comment */
    if (value.len && value.ptr[0] == ' ')
        value = rt_str_slice(value, 1, value.len);
    if (rt_str_eq_c(name, "data")) {
        begin_data(sse, value);
        sse->is_in_data = false;
    } else if (rt_str_eq_c(name, "event")) {
        copy_short(sse->event, sizeof(sse->event), value);
    } else if (rt_str_eq_c(name, "id")) {
        copy_short(sse->id, sizeof(sse->id), value);
    } else if (rt_str_eq_c(name, "retry") && rt_str_to_u64(value, &number)) {
        sse->retry_ms = RT_MAX(number, UINT64_C(1));
    }
    return true;
}

static bool end_line(mcp_sse *sse)
{
    bool was_data = sse->is_in_data;
    sse->is_in_data = false;
    bool goes_on = was_data || take_line(sse);
    rt_buf_reset(&sse->line);
    return goes_on;
}

/* A part of a line without its end. */
static void take_part(mcp_sse *sse, rt_str part)
{
    if (sse->is_in_data) {
        rt_buf_add(&sse->data, part);
        return;
    }
    const size_t decisive = data_field.len + 1; /* a space may follow the colon */
    size_t missing = sse->line.len < decisive ? decisive - sse->line.len : 0;
    size_t head = RT_MIN(part.len, missing);
    rt_buf_add(&sse->line, rt_str_slice(part, 0, head));
    part = rt_str_slice(part, head, part.len);
    rt_str line = rt_buf_str(&sse->line);
    if (line.len == decisive && rt_str_starts(line, data_field)) {
        size_t skip = data_field.len + (line.ptr[data_field.len] == ' ');
        begin_data(sse, rt_str_slice(line, skip, line.len));
        rt_buf_add(&sse->data, part);
        return;
    }
    rt_buf_add(&sse->line, part);
}

bool mcp_sse_feed(mcp_sse *sse, rt_str bytes)
{
    while (bytes.len) {
        size_t end = 0;
        if (sse->was_cr && bytes.ptr[0] == '\n') {
            sse->was_cr = false;
            bytes = rt_str_slice(bytes, 1, bytes.len);
            continue;
        }
        while (end < bytes.len && bytes.ptr[end] != '\n' && bytes.ptr[end] != '\r')
            end++;
        take_part(sse, rt_str_slice(bytes, 0, end));
        sse->is_over_limit = sse->line.failed || sse->data.failed;
        if (sse->is_over_limit)
            return false;
        sse->was_cr = end < bytes.len && bytes.ptr[end] == '\r';
        bool has_end = end < bytes.len;
        bytes = rt_str_slice(bytes, end + has_end, bytes.len);
        if (has_end && !end_line(sse))
            return false;
    }
    return true;
}
