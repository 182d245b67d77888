/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - one line per call.
 *
 * The line is composed on the stack and leaves in one write(2): lines of threads do not mix, and
 * no lock or allocation stands between a failing program and its last words. The text form
 * escapes as JSON does, so both forms share the code that makes outside text harmless.
 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

/* Every byte may become \u00XX; then the time, the level and the JSON around it. */
enum { LINE_SIZE = RT_LOG_MESSAGE_MAX * 6 + 128 };

typedef struct line {
    size_t len;
    char text[LINE_SIZE];
} line;

static atomic_int shown = RT_LOG_INFO;
static atomic_bool is_json_form;

static const char *const names[] = {
    [RT_LOG_ERROR] = "error",
    [RT_LOG_WARN] = "warn",
    [RT_LOG_INFO] = "info",
    [RT_LOG_DEBUG] = "debug",
};

const char *rt_log_level_name(rt_log_level level)
{
    return (unsigned)level < RT_COUNT(names) ? names[level] : "debug";
}

void rt_log_level_set(rt_log_level level)
{
    atomic_store(&shown, (int)level);
}

bool rt_log_level_shown(rt_log_level level)
{
    return (int)level <= atomic_load(&shown);
}

void rt_log_json_set(bool is_json)
{
    atomic_store(&is_json_form, is_json);
}

bool rt_log_level_parse(rt_str text, rt_log_level *level, rt_error *err)
{
    for (size_t i = 0; i < RT_COUNT(names); i++)
        if (text.len == strlen(names[i]) && strncasecmp(text.ptr, names[i], text.len) == 0) {
            *level = (rt_log_level)i;
            return true;
        }
    return rt_fail(err, RT_INVALID,
                   "\"%.*s\" is not a log level: expected error, warn, info or debug",
                   RT_FMT(rt_str_slice(text, 0, 40)));
}

static void put(line *out, rt_str s)
{
    if (s.len > sizeof(out->text) - out->len)
        return;
    memcpy(out->text + out->len, s.ptr, s.len);
    out->len += s.len;
}

static void put_escape(line *out, unsigned value)
{
    char text[8];
    int len = snprintf(text, sizeof(text), "\\u%04x", value);
    put(out, (rt_str){ text, (size_t)len });
}

/* C0, DEL and C1: the bytes terminals act on. C1 is U+0080 to U+009F, in UTF-8 C2 80 to C2 9F. */
static bool is_control(rt_str piece)
{
    uint8_t first = (uint8_t)piece.ptr[0];
    return first < 0x20 || first == 0x7F || (first == 0xC2 && (uint8_t)piece.ptr[1] < 0xA0);
}

static void put_harmless(line *out, rt_str message, bool is_json)
{
    for (size_t i = 0; i < message.len;) {
        rt_str rest = rt_str_slice(message, i, message.len);
        size_t bad = 1, size = rt_utf8_step(rest, &bad);
        rt_str piece = rt_str_slice(rest, 0, size);
        if (size == 0)
            put(out, RT_STR("\\ufffd"));
        else if (piece.ptr[0] == '\n')
            put(out, RT_STR("\\n"));
        else if (is_control(piece))
            put_escape(out, size == 1 ? (uint8_t)piece.ptr[0] : (uint8_t)piece.ptr[1]);
        else if (piece.ptr[0] == '\\' || (is_json && piece.ptr[0] == '"'))
            put(out, piece.ptr[0] == '"' ? RT_STR("\\\"") : RT_STR("\\\\"));
        else
            put(out, piece);
        i += size ? size : bad;
    }
}

static void compose(line *out, rt_log_level level, rt_str message)
{
    bool is_json = atomic_load(&is_json_form);
    char time[RT_ISO8601_SIZE];
    rt_iso8601_write(time, rt_wall_ms());
    put(out, is_json ? RT_STR("{\"time\":\"") : RT_STR(""));
    put(out, rt_str_of(time));
    put(out, is_json ? RT_STR("\",\"level\":\"") : RT_STR(" "));
    put(out, rt_str_of(rt_log_level_name(level)));
    put(out, is_json ? RT_STR("\",\"message\":\"") : RT_STR(" "));
    put_harmless(out, message, is_json);
    put(out, is_json ? RT_STR("\"}\n") : RT_STR("\n"));
}

static rt_log_scrub scrub_with;

void rt_log_scrub_set(rt_log_scrub scrub)
{
    scrub_with = scrub;
}

void rt_log(rt_log_level level, const char *fmt, ...)
{
    if (!rt_log_level_shown(level))
        return;
    int saved = errno;
    static const char cut[] = " [cut]";
    char message[RT_LOG_MESSAGE_MAX], clean[RT_LOG_MESSAGE_MAX];
    va_list args;
    va_start(args, fmt);
    int wanted = vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    size_t len = wanted < 0 ? 0 : (size_t)wanted;
    if (len >= sizeof(message)) {
        len = sizeof(message) - 1;
        memcpy(message + len - strlen(cut), cut, strlen(cut));
    }
    line out;
    out.len = 0;
    rt_str text = { message, len };
    if (scrub_with)
        text = (rt_str){ clean, scrub_with(text, clean, sizeof(clean)) };
    compose(&out, level, text);
    while (write(STDERR_FILENO, out.text, out.len) < 0 && errno == EINTR)
        continue;
    errno = saved;
}
