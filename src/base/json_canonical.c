/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_canonical.c - the text Python's json.dumps(json.loads(text), sort_keys=True) gives.
 *
 * Hashes published by others were made from that text, so its habits are kept to the letter:
 * ", " and ": " between things, nothing but printable ASCII, keys sorted by code point, integers
 * of any size as they are ("-0" is 0), anything with '.' or an exponent through a double and
 * back by repr(), too big a number as Infinity, which is not even JSON.
 */
#include "base/json_internal.h"

static void put_unit(rt_buf *out, uint32_t unit)
{
    rt_buf_addf(out, "\\u%04x", (unsigned)unit);
}

/* Characters above U+FFFF as two escapes, as in UTF-16. */
static void put_code_point(rt_buf *out, uint32_t code_point)
{
    if (code_point < 0x10000) {
        put_unit(out, code_point);
        return;
    }
    put_unit(out, 0xD800 + ((code_point - 0x10000) >> 10));
    put_unit(out, 0xDC00 + ((code_point - 0x10000) & 0x3FF));
}

/* `rest` starts with a sequence the parser has let through: UTF-8, or a surrogate in WTF-8. */
static size_t put_character(rt_buf *out, rt_str rest)
{
    const uint8_t *b = (const uint8_t *)rest.ptr;
    size_t size = b[0] < 0xE0 ? 2 : b[0] < 0xF0 ? 3 : 4;
    uint32_t code_point = b[0] & (0xFFu >> (size + 1));
    for (size_t i = 1; i < size; i++)
        code_point = code_point << 6 | (b[i] & 0x3Fu);
    put_code_point(out, code_point);
    return size;
}

static void put_ascii(rt_buf *out, char c)
{
    static const char shorts[128] = { ['"'] = '"',  ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f',
                                      ['\n'] = 'n', ['\r'] = 'r',  ['\t'] = 't' };
    if (shorts[(unsigned char)c])
        rt_buf_add(out, (rt_str){ (char[]){ '\\', shorts[(unsigned char)c] }, 2 });
    else if (c < 0x20 || c == 0x7F)
        put_unit(out, (unsigned char)c);
    else
        rt_buf_addc(out, c);
}

static void put_string(const json_node *string, rt_buf *out)
{
    rt_str text = json_text(string);
    rt_buf_addc(out, '"');
    for (size_t i = 0; i < text.len;) {
        if ((signed char)text.ptr[i] < 0)
            i += put_character(out, rt_str_slice(text, i, text.len));
        else
            put_ascii(out, text.ptr[i++]);
    }
    rt_buf_addc(out, '"');
}

static void put_number(const json_node *number, rt_buf *out)
{
    rt_str text = json_text(number);
    char repr[JSON_DOUBLE_SIZE];
    if (!json_number_is_integer(text))
        rt_buf_add(out, json_double_print(json_number_double(number), repr));
    else
        rt_buf_add(out, rt_str_eq(text, RT_STR("-0")) ? RT_STR("0") : text);
}

static void put_array(rt_json array, rt_buf *out)
{
    rt_json_iter it = rt_json_each(array);
    rt_json value;
    rt_buf_addc(out, '[');
    for (bool is_first = true; !out->failed && rt_json_next(&it, NULL, &value); is_first = false) {
        rt_buf_add(out, is_first ? RT_STR("") : RT_STR(", "));
        rt_json_canonical(value, out);
    }
    rt_buf_addc(out, ']');
}

static void put_object(rt_json object, rt_buf *out)
{
    json_members members RT_CLEANUP(json_members_done);
    json_members_init(&members, object.node);
    rt_buf_addc(out, '{');
    for (size_t i = 0; i < members.count && !out->failed; i++) {
        rt_buf_add(out, i == 0 ? RT_STR("") : RT_STR(", "));
        put_string(members.keys[i], out);
        rt_buf_add(out, RT_STR(": "));
        rt_json_canonical((rt_json){ members.keys[i] + 1 }, out);
    }
    rt_buf_addc(out, '}');
}

void rt_json_canonical(rt_json v, rt_buf *out)
{
    switch (rt_json_type(v)) {
    case RT_JSON_NUMBER:
        put_number(v.node, out);
        break;
    case RT_JSON_STRING:
        put_string(v.node, out);
        break;
    case RT_JSON_ARRAY:
        put_array(v, out);
        break;
    case RT_JSON_OBJECT:
        put_object(v, out);
        break;
    default:
        rt_json_print(v, out);
        break;
    }
}
