/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_message.c - the envelope of a message, found without reading the letter.
 *
 * The scan knows strings and brackets and nothing else of JSON: enough to tell where a value ends
 * if the text is JSON, and to stay within the text if it is not. It is lenient on purpose: a
 * response whose inside is broken still has the id of the request that waits for it, which can
 * then be told instead of being left to its time-out.
 */
#include "tools/mcp_message.h"

#include <openssl/evp.h>

/* -- Revisions --------------------------------------------------------------------------------- */

const rt_mcp_version rt_mcp_versions[] = {
    { "2026-07-28", .era = RT_MCP_MODERN, .has_version_header = true, .has_structured = true },
    { "2025-11-25", .era = RT_MCP_LEGACY, .has_version_header = true, .has_structured = true },
    { "2025-06-18", .era = RT_MCP_LEGACY, .has_version_header = true, .has_structured = true },
    { "2025-03-26", .era = RT_MCP_LEGACY, .has_batches = true },
    { "2024-11-05", .era = RT_MCP_LEGACY },
    { "2024-10-07", .era = RT_MCP_LEGACY },
};
const size_t rt_mcp_version_count = RT_COUNT(rt_mcp_versions);

const rt_mcp_version *rt_mcp_version_find(rt_str name)
{
    for (size_t i = 0; i < RT_COUNT(rt_mcp_versions); i++)
        if (rt_str_eq_c(name, rt_mcp_versions[i].name))
            return &rt_mcp_versions[i];
    return NULL;
}

const rt_mcp_version *rt_mcp_version_newest(rt_mcp_era era)
{
    const rt_mcp_version *version = rt_mcp_versions;
    while (version->era != era)
        version++;
    return version;
}

/* -- Where values end -------------------------------------------------------------------------- */

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
}

/* From the opening quote to behind the closing one; NULL: there is none. */
static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end; at++) {
        const char *quote = memchr(at, '"', (size_t)(end - at));
        if (!quote)
            return NULL;
        const char *slash = quote;
        while (slash > at && slash[-1] == '\\')
            slash--;
        if ((quote - slash) % 2 == 0)
            return quote + 1;
        at = quote; /* it was escaped; no slash before it counts again */
    }
    return NULL;
}

static const char *skip_container(const char *at, const char *end)
{
    size_t depth = 0;
    while (at < end) {
        char c = *at;
        if (c == '"') {
            if (!(at = skip_string(at, end)))
                return NULL;
            continue;
        }
        at++;
        if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && --depth == 0)
            return at;
    }
    return NULL;
}

static bool ends_scalar(char c)
{
    return c == ',' || c == '}' || c == ']' || c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static const char *skip_value(const char *at, const char *end)
{
    const char *from = at;
    if (at == end)
        return NULL;
    if (*at == '"')
        return skip_string(at, end);
    if (*at == '{' || *at == '[')
        return skip_container(at, end);
    while (at < end && !ends_scalar(*at))
        at++;
    return at > from ? at : NULL;
}

/* -- The members of an object ------------------------------------------------------------------ */

typedef struct member {
    rt_str key, value; /* the key without its quotes, escapes and all */
} member;

typedef struct members {
    const char *at, *end;
    bool is_first, is_broken, is_over;
} members;

static members members_of(rt_str object)
{
    members m = { .end = object.ptr + object.len, .is_first = true };
    m.at = skip_space(object.ptr, m.end);
    m.is_broken = m.at == m.end || *m.at != '{';
    m.at += !m.is_broken;
    return m;
}

static bool break_off(members *m)
{
    m->is_broken = true;
    return false;
}

/* The end, or a comma before the next member. */
static bool step(members *m)
{
    m->at = skip_space(m->at, m->end);
    if (m->at == m->end)
        return break_off(m);
    if (*m->at == '}') {
        m->at++;
        m->is_over = true;
        return false;
    }
    if (!m->is_first) {
        if (*m->at != ',')
            return break_off(m);
        m->at = skip_space(m->at + 1, m->end);
    }
    m->is_first = false;
    return true;
}

static bool next_member(members *m, member *out)
{
    if (m->is_broken || m->is_over || !step(m))
        return false;
    const char *key = m->at;
    if (key == m->end || *key != '"' || !(m->at = skip_string(key, m->end)))
        return break_off(m);
    out->key = (rt_str){ key + 1, (size_t)(m->at - key) - 2 };
    m->at = skip_space(m->at, m->end);
    if (m->at == m->end || *m->at != ':')
        return break_off(m);
    const char *value = skip_space(m->at + 1, m->end);
    if (!(m->at = skip_value(value, m->end)))
        return break_off(m);
    out->value = (rt_str){ value, (size_t)(m->at - value) };
    return true;
}

rt_str rt_mcp_member(rt_str object, rt_str key)
{
    members m = members_of(object);
    member found;
    rt_str value = { "", 0 };
    while (next_member(&m, &found))
        if (rt_str_eq(found.key, key))
            value = found.value;
    return value;
}

bool rt_mcp_batch_next(rt_str *rest, rt_str *item)
{
    const char *end = rest->ptr + rest->len, *at = skip_space(rest->ptr, end);
    if (at == end || (*at != '[' && *at != ','))
        return false;
    const char *from = skip_space(at + 1, end), *to = skip_value(from, end);
    if (!to)
        return false;
    *item = (rt_str){ from, (size_t)(to - from) };
    *rest = (rt_str){ to, (size_t)(end - to) };
    return true;
}

/* -- Reading ----------------------------------------------------------------------------------- */

static bool is_null(rt_str value)
{
    return rt_str_eq(value, RT_STR("null"));
}

static rt_str unquoted(rt_str value)
{
    bool is_string = value.len >= 2 && value.ptr[0] == '"';
    return is_string ? rt_str_slice(value, 1, value.len - 1) : (rt_str){ "", 0 };
}

static bool is_id(rt_str id)
{
    int64_t number;
    return id.len == 0 || id.ptr[0] == '"' || rt_str_to_i64(id, &number);
}

static void take_member(rt_mcp_message *out, const member *m, bool *has_method)
{
    if (rt_str_eq_c(m->key, "jsonrpc")) {
        out->is_version_2 = rt_str_eq(m->value, RT_STR("\"2.0\""));
    } else if (rt_str_eq_c(m->key, "id")) {
        out->id = is_null(m->value) ? (rt_str){ "", 0 } : m->value;
    } else if (rt_str_eq_c(m->key, "method")) {
        out->method = unquoted(m->value);
        *has_method = true;
    } else if (rt_str_eq_c(m->key, "params")) {
        out->params = m->value;
    } else if (rt_str_eq_c(m->key, "result")) {
        out->result = m->value;
    } else if (rt_str_eq_c(m->key, "error")) {
        out->error = is_null(m->value) ? (rt_str){ "", 0 } : m->value;
    }
}

bool rt_mcp_message_scan(rt_str text, rt_mcp_message *out, rt_error *err)
{
    const rt_str none = { "", 0 };
    rt_mcp_message found = {
        .id = none, .method = none, .params = none, .result = none, .error = none
    };
    members all = members_of(text);
    member m;
    bool has_method = false;
    while (next_member(&all, &m))
        take_member(&found, &m, &has_method);
    if (all.is_broken || skip_space(all.at, all.end) != all.end)
        return rt_fail(err, RT_INVALID, "it is no JSON object");
    if (!is_id(found.id))
        return rt_fail(err, RT_INVALID, "its id is neither a string nor an integer");
    if (has_method)
        found.kind = found.id.len ? RT_MCP_REQUEST : RT_MCP_NOTIFICATION;
    else if (found.error.len)
        found.kind = RT_MCP_ERROR;
    else if (found.result.len)
        found.kind = RT_MCP_RESULT;
    else
        return rt_fail(err, RT_INVALID, "it has neither a method nor a result nor an error");
    *out = found;
    return true;
}

bool rt_mcp_id_is(rt_str id, uint64_t number)
{
    uint64_t found;
    return rt_str_to_u64(id, &found) && found == number;
}

/* -- Writing ----------------------------------------------------------------------------------- */

void rt_mcp_write_result(rt_buf *out, rt_str id, rt_str result)
{
    rt_json_writer w;
    rt_json_begin(&w, out);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "jsonrpc", RT_STR("2.0"));
    rt_jw_kraw(&w, "id", id);
    rt_jw_kraw(&w, "result", result);
    rt_jw_end(&w);
}

void rt_mcp_write_error(rt_buf *out, rt_str id, int code, rt_str message, rt_str data)
{
    rt_json_writer w;
    rt_json_begin(&w, out);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "jsonrpc", RT_STR("2.0"));
    if (id.len)
        rt_jw_kraw(&w, "id", id);
    rt_jw_kobject(&w, "error");
    rt_jw_ki64(&w, "code", code);
    rt_jw_kstr(&w, "message", message);
    if (data.len)
        rt_jw_kraw(&w, "data", data);
    rt_jw_end(&w);
    rt_jw_end(&w);
}

/* -- Header values ----------------------------------------------------------------------------- */

#define BASE64_OPEN  RT_STR("=?base64?")
#define BASE64_CLOSE RT_STR("?=")

static bool is_encoded(rt_str s)
{
    return s.len >= BASE64_OPEN.len + BASE64_CLOSE.len && rt_str_starts(s, BASE64_OPEN) &&
           rt_str_ends(s, BASE64_CLOSE);
}

static bool is_visible(char c)
{
    return c > ' ' && c < 0x7f;
}

static bool is_plain(rt_str s)
{
    if (s.len == 0)
        return true;
    for (size_t i = 0; i < s.len; i++)
        if (!is_visible(s.ptr[i]) && s.ptr[i] != ' ')
            return false;
    return is_visible(s.ptr[0]) && is_visible(s.ptr[s.len - 1]) && !is_encoded(s);
}

void rt_mcp_header_encode(rt_str value, rt_buf *out)
{
    if (is_plain(value)) {
        rt_buf_add(out, value);
        return;
    }
    rt_buf_add(out, BASE64_OPEN);
    char *room = rt_buf_reserve(out, (value.len + 2) / 3 * 4 + 1);
    if (room)
        out->len += (size_t)EVP_EncodeBlock((unsigned char *)room, (const unsigned char *)value.ptr,
                                            (int)value.len);
    rt_buf_add(out, BASE64_CLOSE);
}

/* Strict: EVP_DecodeBlock alone lets spaces pass, and '=' in odd places. */
static bool is_base64(rt_str s, size_t *padding)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    *padding = 0;
    if (s.len % 4)
        return false;
    while (*padding < 2 && s.len && s.ptr[s.len - 1] == '=')
        s.len--, ++*padding;
    for (size_t i = 0; i < s.len; i++)
        if (!memchr(alphabet, s.ptr[i], sizeof(alphabet) - 1))
            return false;
    return true;
}

bool rt_mcp_header_decode(rt_str header, rt_arena *arena, rt_str *out, rt_error *err)
{
    size_t padding;
    header = rt_str_trim(header);
    if (!is_encoded(header)) {
        *out = header;
        return true;
    }
    rt_str body = rt_str_slice(header, BASE64_OPEN.len, header.len - BASE64_CLOSE.len);
    if (!is_base64(body, &padding))
        return rt_fail(err, RT_INVALID, "a header's base64 is not base64");
    unsigned char *bytes = rt_arena_alloc_raw(arena, body.len / 4 * 3 + 1);
    int size = EVP_DecodeBlock(bytes, (const unsigned char *)body.ptr, (int)body.len);
    if (size < 0 || (size_t)size < padding)
        return rt_fail(err, RT_INVALID, "a header's base64 is not base64");
    *out = (rt_str){ (const char *)bytes, (size_t)size - padding };
    return true;
}
