/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_write.c - printing documents, and the writer.
 *
 * The writer's state is one question: is a comma due before what comes next? After an opening
 * bracket or a key it is not, after a value it is. Which bracket to close is one bit per level.
 */
#include "base/json_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

/* -- Strings ----------------------------------------------------------------------------------- */

uint32_t json_surrogate_at(rt_str s)
{
    const uint8_t *b = (const uint8_t *)s.ptr;
    if (s.len < 3 || b[0] != 0xED || (b[1] & 0xE0) != 0xA0 || (b[2] & 0xC0) != 0x80)
        return 0;
    return 0xD000u | (b[1] & 0x3Fu) << 6 | (b[2] & 0x3Fu);
}

static void put_escape(rt_buf *out, unsigned char c)
{
    static const char shorts[256] = { ['"'] = '"',  ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f',
                                      ['\n'] = 'n', ['\r'] = 'r',  ['\t'] = 't' };
    if (shorts[c])
        rt_buf_add(out, (rt_str){ (char[]){ '\\', shorts[c] }, 2 });
    else
        rt_buf_addf(out, "\\u%04x", c);
}

/* One character that is not ASCII, or what stands for a broken one; returns the bytes it took. */
static size_t put_character(rt_buf *out, rt_str rest, json_surrogates surrogates)
{
    size_t bad, size = rt_utf8_step(rest, &bad);
    if (size) {
        rt_buf_add(out, rt_str_slice(rest, 0, size));
        return size;
    }
    uint32_t surrogate = surrogates == JSON_KEEP_SURROGATES ? json_surrogate_at(rest) : 0;
    if (surrogate) {
        rt_buf_addf(out, "\\u%04x", (unsigned)surrogate);
        return 3;
    }
    rt_buf_add(out, RT_STR("\xEF\xBF\xBD"));
    return bad;
}

void json_put_string(rt_buf *out, rt_str text, json_surrogates surrogates)
{
    rt_buf_addc(out, '"');
    for (size_t i = 0; i < text.len;) {
        rt_str rest = rt_str_slice(text, i, text.len);
        size_t run = json_plain_run(rest);
        if (run) {
            rt_buf_add(out, rt_str_slice(rest, 0, run));
            i += run;
        } else if ((signed char)rest.ptr[0] < 0) {
            i += put_character(out, rest, surrogates);
        } else {
            put_escape(out, (unsigned char)rest.ptr[0]);
            i++;
        }
    }
    rt_buf_addc(out, '"');
}

/* -- Documents --------------------------------------------------------------------------------- */

static void put_scalar(rt_json v, rt_buf *out)
{
    switch (rt_json_type(v)) {
    case RT_JSON_BOOL:
        rt_buf_add(out, v.node->is_true ? RT_STR("true") : RT_STR("false"));
        break;
    case RT_JSON_NUMBER:
        rt_buf_add(out, json_text(v.node));
        break;
    case RT_JSON_STRING:
        if (v.node->is_plain) {
            rt_buf_addc(out, '"');
            rt_buf_add(out, json_text(v.node));
            rt_buf_addc(out, '"');
        } else {
            json_put_string(out, json_text(v.node), JSON_KEEP_SURROGATES);
        }
        break;
    default:
        rt_buf_add(out, RT_STR("null"));
        break;
    }
}

static void put_line(rt_buf *out, int level)
{
    if (level < 0)
        return;
    rt_buf_addc(out, '\n');
    for (int i = 0; i < level; i++)
        rt_buf_add(out, RT_STR("  "));
}

/* `level` is how far to indent, or -1 for everything on one line. */
static void put_value(rt_json v, rt_buf *out, int level)
{
    if (rt_json_type(v) < RT_JSON_ARRAY) {
        put_scalar(v, out);
        return;
    }
    bool is_object = rt_json_type(v) == RT_JSON_OBJECT;
    int inner = level < 0 ? -1 : level + 1;
    rt_buf_addc(out, is_object ? '{' : '[');
    const json_node *first = v.node + 1, *end = json_after(v.node);
    for (const json_node *at = first; at < end && !out->failed; at = json_after(at)) {
        if (at != first)
            rt_buf_addc(out, ',');
        put_line(out, inner);
        if (is_object) {
            put_scalar((rt_json){ at++ }, out);
            rt_buf_add(out, level < 0 ? RT_STR(":") : RT_STR(": "));
        }
        put_value((rt_json){ at }, out, inner);
    }
    if (first != end)
        put_line(out, level);
    rt_buf_addc(out, is_object ? '}' : ']');
}

void rt_json_print(rt_json v, rt_buf *out)
{
    put_value(v, out, -1);
}

void rt_json_print_pretty(rt_json v, rt_buf *out)
{
    put_value(v, out, 0);
}

/* -- The writer -------------------------------------------------------------------------------- */

void rt_json_begin(rt_json_writer *w, rt_buf *buf)
{
    *w = (rt_json_writer){ .buf = buf };
}

/* Past RT_JW_MAX_DEPTH there are no bits left; the buffer has failed, and nothing is written. */
static bool in_object(const rt_json_writer *w)
{
    unsigned level = w->depth - 1;
    return w->depth > 0 && w->depth <= RT_JW_MAX_DEPTH &&
           (w->is_object[level / 64] >> level % 64 & 1);
}

static void begin_value(rt_json_writer *w)
{
    assert(w->has_key || !in_object(w));     /* a member needs its key */
    assert(w->depth > 0 || !w->needs_comma); /* one document, one value */
    if (w->needs_comma)
        rt_buf_addc(w->buf, ',');
    w->needs_comma = true;
    w->has_key = false;
}

static void open_level(rt_json_writer *w, bool is_object)
{
    begin_value(w);
    rt_buf_addc(w->buf, is_object ? '{' : '[');
    unsigned level = w->depth++;
    w->needs_comma = false;
    if (level >= RT_JW_MAX_DEPTH) {
        w->buf->failed = true;
        return;
    }
    uint64_t bit = (uint64_t)1 << level % 64;
    w->is_object[level / 64] = (w->is_object[level / 64] & ~bit) | (is_object ? bit : 0);
}

void rt_jw_object(rt_json_writer *w)
{
    open_level(w, true);
}

void rt_jw_array(rt_json_writer *w)
{
    open_level(w, false);
}

void rt_jw_end(rt_json_writer *w)
{
    assert(w->depth > 0 && !w->has_key);
    rt_buf_addc(w->buf, in_object(w) ? '}' : ']');
    w->depth--;
    w->needs_comma = true;
}

void rt_jw_key(rt_json_writer *w, rt_str key)
{
    assert((in_object(w) || w->depth > RT_JW_MAX_DEPTH) && !w->has_key);
    if (w->needs_comma)
        rt_buf_addc(w->buf, ',');
    json_put_string(w->buf, key, JSON_REPLACE_SURROGATES);
    rt_buf_addc(w->buf, ':');
    w->needs_comma = false;
    w->has_key = true;
}

void rt_jw_str(rt_json_writer *w, rt_str text)
{
    begin_value(w);
    json_put_string(w->buf, text, JSON_REPLACE_SURROGATES);
}

void rt_jw_i64(rt_json_writer *w, int64_t number)
{
    begin_value(w);
    rt_buf_addf(w->buf, "%" PRId64, number);
}

void rt_jw_u64(rt_json_writer *w, uint64_t number)
{
    begin_value(w);
    rt_buf_addf(w->buf, "%" PRIu64, number);
}

void rt_jw_double(rt_json_writer *w, double number)
{
    if (!isfinite(number)) {
        rt_jw_null(w);
        return;
    }
    char text[JSON_DOUBLE_SIZE];
    begin_value(w);
    rt_buf_add(w->buf, json_double_print(number, text));
}

void rt_jw_bool(rt_json_writer *w, bool truth)
{
    rt_jw_raw(w, truth ? RT_STR("true") : RT_STR("false"));
}

void rt_jw_null(rt_json_writer *w)
{
    rt_jw_raw(w, RT_STR("null"));
}

void rt_jw_raw(rt_json_writer *w, rt_str json_text)
{
    begin_value(w);
    rt_buf_add(w->buf, json_text);
}

void rt_jw_json(rt_json_writer *w, rt_json v)
{
    begin_value(w);
    rt_json_print(v, w->buf);
}

void rt_jw_kstr(rt_json_writer *w, const char *key, rt_str text)
{
    rt_jw_key(w, rt_str_of(key));
    rt_jw_str(w, text);
}

void rt_jw_ki64(rt_json_writer *w, const char *key, int64_t number)
{
    rt_jw_key(w, rt_str_of(key));
    rt_jw_i64(w, number);
}

void rt_jw_ku64(rt_json_writer *w, const char *key, uint64_t number)
{
    rt_jw_key(w, rt_str_of(key));
    rt_jw_u64(w, number);
}

void rt_jw_kdouble(rt_json_writer *w, const char *key, double number)
{
    rt_jw_key(w, rt_str_of(key));
    rt_jw_double(w, number);
}

void rt_jw_kbool(rt_json_writer *w, const char *key, bool truth)
{
    rt_jw_key(w, rt_str_of(key));
    rt_jw_bool(w, truth);
}

void rt_jw_knull(rt_json_writer *w, const char *key)
{
    rt_jw_key(w, rt_str_of(key));
    rt_jw_null(w);
}

void rt_jw_kraw(rt_json_writer *w, const char *key, rt_str json_text)
{
    rt_jw_key(w, rt_str_of(key));
    rt_jw_raw(w, json_text);
}

void rt_jw_kjson(rt_json_writer *w, const char *key, rt_json v)
{
    rt_jw_key(w, rt_str_of(key));
    rt_jw_json(w, v);
}

void rt_jw_kobject(rt_json_writer *w, const char *key)
{
    rt_jw_key(w, rt_str_of(key));
    rt_jw_object(w);
}

void rt_jw_karray(rt_json_writer *w, const char *key)
{
    rt_jw_key(w, rt_str_of(key));
    rt_jw_array(w);
}
