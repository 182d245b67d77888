/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_oauth_discover.c - who gives tokens for an MCP server (RFC 9728, RFC 8414).
 *
 * Everything read here is a claim of somebody we do not trust yet. A resource must be the server we
 * speak to, an issuer must be who its own document says it is, and without PKCE we do not go on:
 * each of these is how a token would come into the wrong hands.
 */
#include "tools/mcp_oauth.h"

#include <curl/curl.h>
#include <strings.h>

enum { DOCUMENT_MAX = 1 << 20 };

/* -- The challenge ----------------------------------------------------------------------------- */

static rt_str take_quoted(rt_str *rest, rt_arena *arena)
{
    char *out = rt_arena_alloc_raw(arena, rest->len + 1);
    size_t used = 0, i = 1;
    for (; i < rest->len && rest->ptr[i] != '"'; i++) {
        if (rest->ptr[i] == '\\' && i + 1 < rest->len)
            i++;
        out[used++] = rest->ptr[i];
    }
    out[used] = '\0';
    *rest = rt_str_slice(*rest, i + 1, rest->len);
    return (rt_str){ out, used };
}

static rt_str take_until(rt_str *rest, const char *stops)
{
    size_t i = 0;
    while (i < rest->len && !strchr(stops, rest->ptr[i]))
        i++;
    rt_str taken = rt_str_slice(*rest, 0, i);
    *rest = rt_str_slice(*rest, i, rest->len);
    return taken;
}

static bool is_word(rt_str s, const char *word)
{
    return s.len == strlen(word) && strncasecmp(s.ptr, word, s.len) == 0;
}

void mcp_challenge_read(rt_str header, rt_arena *arena, mcp_challenge *out)
{
    rt_str rest = rt_str_trim(header);
    *out =
        (mcp_challenge){ .scope = { "", 0 }, .resource_metadata = { "", 0 }, .error = { "", 0 } };
    while (rest.len) {
        rt_str name = take_until(&rest, " ,=\t"), value = { "", 0 };
        if (rest.len && rest.ptr[0] == '=') {
            rest = rt_str_slice(rest, 1, rest.len);
            value = rest.len && rest.ptr[0] == '"' ? take_quoted(&rest, arena)
                                                   : rt_arena_str(arena, take_until(&rest, " ,\t"));
        } else if (rest.len) {
            rest = rt_str_slice(rest, 1, rest.len);
        }
        if (is_word(name, "resource_metadata"))
            out->resource_metadata = value;
        else if (is_word(name, "scope"))
            out->scope = value;
        else if (is_word(name, "error"))
            out->error = value;
    }
}

/* -- Documents --------------------------------------------------------------------------------- */

bool mcp_get_json(const mcp_getter *g, const char *url, rt_json *out, rt_error *err)
{
    static const char *const headers[] = { "Accept: application/json" };
    rt_buf body RT_CLEANUP(rt_buf_done) = { 0 };
    mcp_fetch f = { .verb = "GET",
                    .url = url,
                    .headers = headers,
                    .header_count = 1,
                    .deadline_ns = &g->deadline_ns,
                    .cancel_fd = -1 };
    if (!mcp_fetch_body(g->fetcher, &f, DOCUMENT_MAX, &body, err))
        return false;
    return f.status == 200 && rt_json_parse(rt_buf_str(&body), g->arena, out, NULL) &&
           rt_json_type(*out) == RT_JSON_OBJECT;
}

static void urlp(CURLU **url)
{
    curl_url_cleanup(*url);
}

static void curl_freep(char **text)
{
    curl_free(*text);
}

/* The path of a URL without a slash at its end; "" at the root. */
static rt_str path_of(const char *url, rt_arena *arena)
{
    CURLU *parsed RT_CLEANUP(urlp) = curl_url();
    char *path RT_CLEANUP(curl_freep) = NULL;
    if (curl_url_set(parsed, CURLUPART_URL, url, 0) != CURLUE_OK ||
        curl_url_get(parsed, CURLUPART_PATH, &path, 0) != CURLUE_OK)
        return (rt_str){ "", 0 };
    rt_str s = rt_str_of(path);
    while (s.len && s.ptr[s.len - 1] == '/')
        s.len--;
    return rt_arena_str(arena, s);
}

static const char *at_origin(const char *url, rt_str path, rt_arena *arena)
{
    return mcp_url_join(url, path.len ? rt_arena_copy(arena, path) : "/", arena);
}

/* -- The resource ------------------------------------------------------------------------------ */

static bool find_resource(const mcp_getter *g, const char *server_url,
                          const mcp_challenge *challenge, rt_json *out, rt_error *err)
{
    static const rt_str well_known = { "/.well-known/oauth-protected-resource", 37 };
    rt_str path = path_of(server_url, g->arena);
    if (challenge->resource_metadata.len) {
        const char *url = mcp_url_join(
            server_url, rt_arena_copy(g->arena, challenge->resource_metadata), g->arena);
        if (url && mcp_same_origin(url, server_url) && mcp_get_json(g, url, out, err))
            return true; /* elsewhere, it would have us ask others in its stead */
    }
    rt_str deep = rt_arena_printf(g->arena, "%.*s%.*s", RT_FMT(well_known), RT_FMT(path));
    return (err->code == RT_OK &&
            mcp_get_json(g, at_origin(server_url, deep, g->arena), out, err)) ||
           (err->code == RT_OK && path.len &&
            mcp_get_json(g, at_origin(server_url, well_known, g->arena), out, err));
}

/* A document may speak for a part of its origin; the server must be in it. */
static bool covers(const char *resource, const char *server_url, rt_arena *arena)
{
    rt_str whole = path_of(server_url, arena), part = path_of(resource, arena);
    return mcp_same_origin(resource, server_url) && rt_str_starts(whole, part) &&
           (whole.len == part.len || whole.ptr[part.len] == '/');
}

static rt_str join_words(rt_json words, rt_arena *arena)
{
    rt_buf all RT_CLEANUP(rt_buf_done) = { .max = 16 << 10 };
    rt_json_iter it = rt_json_each(words);
    rt_json word;
    while (rt_json_next(&it, NULL, &word)) {
        if (all.len)
            rt_buf_addc(&all, ' ');
        rt_buf_add(&all, rt_json_str(word));
    }
    return rt_arena_str(arena, rt_buf_str(&all));
}

static bool read_resource(const mcp_getter *g, const char *server_url, rt_json doc, mcp_issuer *out,
                          rt_error *err)
{
    char shown[MCP_SHOWN_SIZE];
    rt_str resource = rt_json_str(rt_json_get_c(doc, "resource"));
    rt_str issuer = rt_json_str(rt_json_at(rt_json_get_c(doc, "authorization_servers"), 0));
    if (!covers(rt_arena_copy(g->arena, resource), server_url, g->arena))
        return rt_fail(err, RT_DENIED, "it says it is %s, which it is not: no token is asked for",
                       mcp_show(resource, shown));
    if (issuer.len == 0)
        return rt_fail(err, RT_INVALID, "it names no authorization server");
    out->resource = rt_arena_str(g->arena, resource);
    out->resource_scopes = join_words(rt_json_get_c(doc, "scopes_supported"), g->arena);
    out->issuer = rt_arena_str(g->arena, issuer);
    return true;
}

/* -- The issuer -------------------------------------------------------------------------------- */

static bool find_issuer(const mcp_getter *g, const mcp_issuer *issuer, rt_json *out, rt_error *err)
{
    const char *base = issuer->issuer.ptr;
    rt_str path = path_of(base, g->arena);
    rt_str places[] = {
        rt_arena_printf(g->arena, "/.well-known/oauth-authorization-server%.*s", RT_FMT(path)),
        rt_arena_printf(g->arena, "/.well-known/openid-configuration%.*s", RT_FMT(path)),
        rt_arena_printf(g->arena, "%.*s/.well-known/openid-configuration", RT_FMT(path)),
    };
    for (size_t i = 0; i < (path.len ? 3 : 2); i++) {
        const char *url = at_origin(base, places[i], g->arena);
        if (url && mcp_get_json(g, url, out, err))
            return true;
        if (err->code != RT_OK)
            return false;
    }
    return rt_fail(err, RT_NOT_FOUND, "its authorization server publishes no metadata");
}

static bool has_word(rt_json words, const char *word)
{
    rt_json_iter it = rt_json_each(words);
    rt_json item;
    while (rt_json_next(&it, NULL, &item))
        if (rt_str_eq_c(rt_json_str(item), word))
            return true;
    return false;
}

/* Secrets and codes go there: encrypted, or no further than this machine. */
static bool is_safe(rt_str url)
{
    static const char *const starts[] = {
        "https://",          "http://localhost:", "http://localhost/",
        "http://127.0.0.1:", "http://127.0.0.1/", "http://[::1]"
    };
    for (size_t i = 0; i < RT_COUNT(starts); i++)
        if (rt_str_starts(url, rt_str_of(starts[i])))
            return true;
    return false;
}

static const char *endpoint(rt_json doc, const char *key, rt_arena *arena)
{
    rt_str url = rt_json_str(rt_json_get_c(doc, key));
    return is_safe(url) ? rt_arena_copy(arena, url) : NULL;
}

static bool read_issuer(const mcp_getter *g, rt_json doc, mcp_issuer *out, rt_error *err)
{
    char shown[MCP_SHOWN_SIZE];
    rt_str issuer = rt_json_str(rt_json_get_c(doc, "issuer"));
    rt_json methods = rt_json_get_c(doc, "token_endpoint_auth_methods_supported");
    if (!rt_str_eq(issuer, out->issuer))
        return rt_fail(err, RT_DENIED, "its authorization server says it is %s, which it is not",
                       mcp_show(issuer, shown));
    if (!has_word(rt_json_get_c(doc, "code_challenge_methods_supported"), "S256"))
        return rt_fail(err, RT_UNSUPPORTED, "its authorization server does not do PKCE with S256");
    out->authorization_url = endpoint(doc, "authorization_endpoint", g->arena);
    out->token_url = endpoint(doc, "token_endpoint", g->arena);
    out->registration_url = endpoint(doc, "registration_endpoint", g->arena);
    if (!out->authorization_url || !out->token_url)
        return rt_fail(err, RT_INVALID,
                       "its authorization server names no endpoints that are safe (https)");
    out->takes_metadata_urls =
        rt_json_bool(rt_json_get_c(doc, "client_id_metadata_document_supported"), false);
    out->sends_issuer =
        rt_json_bool(rt_json_get_c(doc, "authorization_response_iss_parameter_supported"), false);
    out->has_offline_access = has_word(rt_json_get_c(doc, "scopes_supported"), "offline_access");
    out->says_methods = rt_json_type(methods) == RT_JSON_ARRAY;
    out->takes_basic = has_word(methods, "client_secret_basic");
    out->takes_post = has_word(methods, "client_secret_post");
    out->takes_none = has_word(methods, "none");
    return true;
}

bool mcp_issuer_find(const mcp_getter *g, const char *server_url, const mcp_challenge *challenge,
                     mcp_issuer *out, rt_error *err)
{
    rt_json doc;
    rt_error own = { 0 };
    mcp_issuer found = { .resource = { "", 0 } };
    if (!find_resource(g, server_url, challenge, &doc, &own)) {
        if (own.code == RT_OK)
            rt_fail(&own, RT_DENIED,
                    "it wants a token and does not say who gives it; give it an Authorization "
                    "header in its configuration");
        *err = own;
        return false;
    }
    if (!read_resource(g, server_url, doc, &found, err) || !find_issuer(g, &found, &doc, err) ||
        !read_issuer(g, doc, &found, err))
        return false;
    *out = found;
    return true;
}
