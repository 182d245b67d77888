/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_show.c - small things every part of the MCP client needs: showing what strangers say,
 * waiting.
 */
#include "tools/mcp_internal.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

/* -- Showing ----------------------------------------------------------------------------------- */

static uint32_t code_point(rt_str s, size_t size)
{
    static const uint8_t masks[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    uint32_t point = (uint8_t)s.ptr[0] & masks[size];
    for (size_t i = 1; i < size; i++)
        point = point << 6 | ((uint8_t)s.ptr[i] & 0x3f);
    return point;
}

/* Controls, line separators, and marks that turn the direction of text around. */
static bool is_treacherous(uint32_t point)
{
    return point < 0x20 || (point >= 0x7f && point < 0xa0) ||
           (point >= 0x200b && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
           (point >= 0x2060 && point <= 0x206f) || point == 0xfeff;
}

const char *mcp_show(rt_str raw, char out[MCP_SHOWN_SIZE])
{
    static const char more[] = "...";
    size_t used = 0;
    while (raw.len) {
        size_t bad = 1, size = rt_utf8_step(raw, &bad);
        size_t step = size ? size : bad;
        bool is_shown = size && !is_treacherous(code_point(raw, size));
        if (used + (is_shown ? size : 1) + sizeof(more) > MCP_SHOWN_SIZE) {
            memcpy(out + used, more, sizeof(more));
            return out;
        }
        if (is_shown)
            memcpy(out + used, raw.ptr, size);
        else
            out[used] = raw.ptr[0] == '\n' || raw.ptr[0] == '\t' ? ' ' : '?';
        used += is_shown ? size : 1;
        raw = rt_str_slice(raw, step, raw.len);
    }
    out[used] = '\0';
    return out;
}

/* -- Waiting ----------------------------------------------------------------------------------- */

int mcp_poll_ms(uint64_t until_ns)
{
    uint64_t now = rt_now_ns();
    return until_ns <= now ? 0
                           : (int)RT_MIN((until_ns - now + MCP_MS - 1) / MCP_MS, UINT64_C(10000));
}

mcp_woken mcp_wait(int first, int second, uint64_t until_ns)
{
    struct pollfd fds[] = { { .fd = first, .events = POLLIN }, { .fd = second, .events = POLLIN } };
    for (;;) {
        int ready = poll(fds, RT_COUNT(fds), mcp_poll_ms(until_ns));
        if (ready > 0)
            return fds[0].revents ? MCP_WOKEN_BY_FIRST : MCP_WOKEN_BY_SECOND;
        if (rt_now_ns() >= until_ns)
            return MCP_WOKEN_BY_TIME;
    }
}

void mcp_wake(int event_fd)
{
    (void)!write(event_fd, &(uint64_t){ 1 }, sizeof(uint64_t));
}

void mcp_calm(int event_fd)
{
    uint64_t count;
    (void)!read(event_fd, &count, sizeof(count));
}

void mcp_ask_extend(mcp_ask *ask)
{
    if (ask->idle_ns)
        ask->deadline_ns =
            RT_MIN(ask->latest_ns, RT_MAX(ask->deadline_ns, rt_now_ns() + ask->idle_ns));
}

void mcp_put_cancelled(rt_buf *out, uint64_t id)
{
    rt_buf_addf(out,
                "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                "\"params\":{\"requestId\":%llu,\"reason\":\"nobody waits for it any more\"}}",
                (unsigned long long)id);
}

/* -- What comes unasked ------------------------------------------------------------------------ */

bool mcp_progress_read(const rt_mcp_message *notification, mcp_progress *out)
{
    enum { PROGRESS_MAX = 64 << 10 };
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json params;
    int64_t token;
    if (!rt_str_eq_c(notification->method, "notifications/progress") ||
        notification->params.len > PROGRESS_MAX ||
        !rt_json_parse(notification->params, &arena, &params, NULL) ||
        !rt_json_i64(rt_json_get_c(params, "progressToken"), &token) || token < 0)
        return false;
    *out = (mcp_progress){ .token = (uint64_t)token };
    if (!rt_json_double(rt_json_get_c(params, "progress"), &out->done))
        return false;
    if (!rt_json_double(rt_json_get_c(params, "total"), &out->total))
        out->total = 0;
    rt_str message = rt_json_str(rt_json_get_c(params, "message"));
    size_t size = 0, step;
    while (size < message.len &&
           (step = rt_utf8_step(rt_str_slice(message, size, message.len), NULL)) &&
           size + step < sizeof(out->message))
        size += step;
    if (size)
        memcpy(out->message, message.ptr, size);
    return true;
}

bool mcp_flood_allows(mcp_flood *flood, uint64_t now_ns, size_t bytes)
{
    static const double messages_max = 20000, messages_per_s = 2000;
    static const double bytes_max = 256 << 20, bytes_per_s = 16 << 20;
    double seconds = flood->since_ns ? (double)(now_ns - flood->since_ns) / 1e9 : 1e9;
    flood->since_ns = now_ns;
    flood->messages = RT_MIN(messages_max, flood->messages + seconds * messages_per_s) - 1;
    flood->bytes = RT_MIN(bytes_max, flood->bytes + seconds * bytes_per_s) - (double)bytes;
    return flood->messages >= 0 && flood->bytes >= 0;
}
