/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_oauth.c - getting an access token: registration, a person's consent, the exchange for it.
 *
 * What we know (who we are to which issuer, the token, how to renew it) lives as long as the client
 * and in memory only. One at a time gets a token; whoever was refused with an older one meanwhile
 * uses the newer. Secrets stay out of errors.
 */
#include "tools/mcp_oauth.h"

#include <curl/curl.h>
#include <openssl/evp.h>
#include <stdlib.h>

enum {
    ANSWER_MAX = 1 << 20,
    VERIFIER_BYTES = 32,
    STATE_BYTES = 16,
};

struct mcp_oauth {
    const rt_mcp_config *config;
    pthread_mutex_t lock; /* for what follows; held for as long as it takes to get a token */
    rt_arena arena;
    rt_str issuer, client_id, client_secret, auth_method; /* who we are, and to whom */
    rt_str scope;                                         /* asked for so far */
    pthread_mutex_t token_lock;                           /* for what follows */
    rt_arena token_arena;
    rt_str token, refresh;
};

mcp_oauth *mcp_oauth_new(const rt_mcp_config *config)
{
    mcp_oauth *o = calloc(1, sizeof(*o));
    if (!o)
        rt_out_of_memory(sizeof(*o));
    o->config = config;
    pthread_mutex_init(&o->lock, NULL);
    pthread_mutex_init(&o->token_lock, NULL);
    return o;
}

void mcp_oauth_free(mcp_oauth *o)
{
    if (!o)
        return;
    rt_arena_done(&o->arena);
    rt_arena_done(&o->token_arena);
    pthread_mutex_destroy(&o->lock);
    pthread_mutex_destroy(&o->token_lock);
    free(o);
}

rt_str mcp_oauth_token(mcp_oauth *o, rt_arena *arena)
{
    pthread_mutex_lock(&o->token_lock);
    rt_str token = rt_arena_str(arena, o->token);
    pthread_mutex_unlock(&o->token_lock);
    return token;
}

/* -- Forms ------------------------------------------------------------------------------------- */

static void put_escaped(rt_buf *out, rt_str value)
{
    static const char unreserved[] = "-._~";
    for (size_t i = 0; i < value.len; i++) {
        char c = value.ptr[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || memchr(unreserved, c, sizeof(unreserved) - 1);
        if (is_plain)
            rt_buf_addc(out, c);
        else
            rt_buf_addf(out, "%%%02X", (uint8_t)c);
    }
}

static void put_field(rt_buf *out, const char *name, rt_str value)
{
    if (value.len == 0)
        return;
    if (out->len && out->ptr[out->len - 1] != '?' && out->ptr[out->len - 1] != '&')
        rt_buf_addc(out, '&');
    rt_buf_addf(out, "%s=", name);
    put_escaped(out, value);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static rt_str unescaped(rt_str value, rt_arena *arena)
{
    char *out = rt_arena_alloc_raw(arena, value.len + 1);
    size_t used = 0;
    for (size_t i = 0; i < value.len; i++) {
        bool is_code = value.ptr[i] == '%' && i + 2 < value.len &&
                       hex_digit(value.ptr[i + 1]) >= 0 && hex_digit(value.ptr[i + 2]) >= 0;
        if (is_code) {
            out[used++] = (char)(hex_digit(value.ptr[i + 1]) * 16 + hex_digit(value.ptr[i + 2]));
            i += 2;
        } else {
            out[used++] = value.ptr[i] == '+' ? ' ' : value.ptr[i];
        }
    }
    out[used] = '\0';
    return (rt_str){ out, used };
}

/* A parameter of a URL's query; "" when there is none. */
static rt_str query_field(rt_str url, const char *name, rt_arena *arena)
{
    const char *mark = url.len ? memchr(url.ptr, '?', url.len) : NULL;
    rt_str rest = mark ? rt_str_slice(url, (size_t)(mark - url.ptr) + 1, url.len) : (rt_str){ 0 };
    rt_str pair, key;
    const char *hash = rest.len ? memchr(rest.ptr, '#', rest.len) : NULL;
    if (hash)
        rest.len = (size_t)(hash - rest.ptr);
    while (rt_str_cut(&rest, '&', &pair))
        if (rt_str_cut(&pair, '=', &key) && rt_str_eq_c(key, name))
            return unescaped(pair, arena);
    return (rt_str){ "", 0 };
}

static rt_str base64url(const uint8_t *bytes, size_t size, rt_arena *arena)
{
    char *out = rt_arena_alloc_raw(arena, (size + 2) / 3 * 4 + 1);
    size_t len = (size_t)EVP_EncodeBlock((unsigned char *)out, bytes, (int)size);
    while (len && out[len - 1] == '=')
        len--;
    for (size_t i = 0; i < len; i++)
        out[i] = out[i] == '+' ? '-' : out[i] == '/' ? '_' : out[i];
    out[len] = '\0';
    return (rt_str){ out, len };
}

static rt_str random_word(size_t bytes, rt_arena *arena)
{
    uint8_t raw[VERIFIER_BYTES];
    rt_random_bytes(raw, bytes);
    return base64url(raw, bytes, arena);
}

/* -- Who we are -------------------------------------------------------------------------------- */

static bool post(const mcp_getter *g, const char *url, const char *const *headers, size_t count,
                 rt_str body, long *status, rt_json *out, rt_error *err)
{
    rt_buf answer RT_CLEANUP(rt_buf_done) = { 0 };
    mcp_fetch f = { .verb = "POST",
                    .url = url,
                    .headers = headers,
                    .header_count = count,
                    .body = body,
                    .is_login = true,
                    .deadline_ns = &g->deadline_ns,
                    .cancel_fd = -1 };
    if (!mcp_fetch_body(g->fetcher, &f, ANSWER_MAX, &answer, err))
        return false;
    *status = f.status;
    if (!rt_json_parse(rt_buf_str(&answer), g->arena, out, err))
        return rt_wrap(err, "its authorization server answers HTTP %ld", f.status);
    return true;
}

static bool complain(const char *what, long status, rt_json answer, rt_error *err)
{
    char code[MCP_SHOWN_SIZE], text[MCP_SHOWN_SIZE];
    return rt_fail(err, RT_DENIED, "its authorization server refuses %s (HTTP %ld): %s %s", what,
                   status, mcp_show(rt_json_str(rt_json_get_c(answer, "error")), code),
                   mcp_show(rt_json_str(rt_json_get_c(answer, "error_description")), text));
}

static void be(mcp_oauth *o, rt_str issuer, rt_str id, rt_str secret, rt_str method)
{
    rt_arena_done(&o->arena);
    o->issuer = rt_arena_str(&o->arena, issuer);
    o->client_id = rt_arena_str(&o->arena, id);
    o->client_secret = rt_arena_str(&o->arena, secret);
    o->auth_method = rt_arena_str(&o->arena, method);
    o->scope = (rt_str){ "", 0 };
}

static void put_registration(const mcp_oauth *o, const mcp_issuer *issuer, rt_buf *out)
{
    rt_json_writer w;
    bool has_secret = issuer->says_methods && !issuer->takes_none;
    rt_json_begin(&w, out);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "client_name", RT_STR("Retort"));
    rt_jw_kstr(&w, "application_type", RT_STR("native"));
    rt_jw_karray(&w, "redirect_uris");
    rt_jw_str(&w, o->config->oauth.redirect_uri);
    rt_jw_end(&w);
    rt_jw_kraw(&w, "grant_types", RT_STR("[\"authorization_code\",\"refresh_token\"]"));
    rt_jw_kraw(&w, "response_types", RT_STR("[\"code\"]"));
    rt_jw_kstr(&w, "token_endpoint_auth_method",
               !has_secret           ? RT_STR("none")
               : issuer->takes_basic ? RT_STR("client_secret_basic")
                                     : RT_STR("client_secret_post"));
    rt_jw_end(&w);
}

static bool register_client(mcp_oauth *o, const mcp_getter *g, const mcp_issuer *issuer,
                            rt_error *err)
{
    static const char *const headers[] = { "Content-Type: application/json",
                                           "Accept: application/json" };
    rt_buf body RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json answer;
    long status;
    put_registration(o, issuer, &body);
    if (!post(g, issuer->registration_url, headers, 2, rt_buf_str(&body), &status, &answer, err))
        return rt_wrap(err, "register");
    rt_str id = rt_json_str(rt_json_get_c(answer, "client_id"));
    if (status / 100 != 2 || id.len == 0)
        return complain("to register us", status, answer, err);
    be(o, issuer->issuer, id, rt_json_str(rt_json_get_c(answer, "client_secret")),
       rt_json_str(rt_json_get_c(answer, "token_endpoint_auth_method")));
    return true;
}

/* What one issuer gave us is nobody else's: at a new one we are new. */
static bool introduce(mcp_oauth *o, const mcp_getter *g, const mcp_issuer *issuer, rt_error *err)
{
    const rt_mcp_oauth *config = &o->config->oauth;
    if (o->client_id.len && rt_str_eq(o->issuer, issuer->issuer))
        return true;
    if (config->client_id.len)
        be(o, issuer->issuer, config->client_id, config->client_secret, RT_STR(""));
    else if (issuer->takes_metadata_urls && config->client_metadata_url.len)
        be(o, issuer->issuer, config->client_metadata_url, RT_STR(""), RT_STR("none"));
    else if (issuer->registration_url)
        return register_client(o, g, issuer, err);
    else
        return rt_fail(err, RT_DENIED,
                       "its authorization server registers nobody; give it a client_id");
    return true;
}

/* -- Consent ----------------------------------------------------------------------------------- */

static void add_words(rt_buf *all, rt_str words)
{
    rt_str word;
    while (rt_str_cut(&words, ' ', &word)) {
        rt_str have = rt_buf_str(all), known;
        bool is_known = word.len == 0;
        while (!is_known && have.len && rt_str_cut(&have, ' ', &known))
            is_known = rt_str_eq(known, word);
        if (is_known)
            continue;
        if (all->len)
            rt_buf_addc(all, ' ');
        rt_buf_add(all, word);
    }
}

/* What was asked before, what is wanted now, and else what the server has. */
static rt_str choose_scope(const mcp_oauth *o, const mcp_issuer *issuer,
                           const mcp_challenge *challenge, rt_arena *arena)
{
    rt_buf all RT_CLEANUP(rt_buf_done) = { .max = 16 << 10 };
    add_words(&all, o->scope);
    add_words(&all, challenge->scope.len ? challenge->scope : issuer->resource_scopes);
    add_words(&all, o->config->oauth.scope);
    if (all.len && issuer->has_offline_access)
        add_words(&all, RT_STR("offline_access"));
    return rt_arena_str(arena, rt_buf_str(&all));
}

typedef struct consent {
    rt_str verifier, state, scope, code;
} consent;

static rt_str consent_url(const mcp_oauth *o, const mcp_issuer *issuer, const consent *c,
                          rt_arena *arena)
{
    rt_buf url RT_CLEANUP(rt_buf_done) = { .max = 64 << 10 };
    uint8_t digest[RT_SHA256_SIZE];
    rt_sha256(c->verifier, digest);
    rt_buf_add(&url, rt_str_of(issuer->authorization_url));
    rt_buf_addc(&url, strchr(issuer->authorization_url, '?') ? '&' : '?');
    put_field(&url, "response_type", RT_STR("code"));
    put_field(&url, "client_id", o->client_id);
    put_field(&url, "redirect_uri", o->config->oauth.redirect_uri);
    put_field(&url, "code_challenge", base64url(digest, sizeof(digest), arena));
    put_field(&url, "code_challenge_method", RT_STR("S256"));
    put_field(&url, "state", c->state);
    put_field(&url, "scope", c->scope);
    put_field(&url, "resource", issuer->resource);
    if (rt_str_find(c->scope, RT_STR("offline_access")) >= 0)
        put_field(&url, "prompt", RT_STR("consent"));
    return rt_arena_str(arena, rt_buf_str(&url));
}

/* The issuer is compared byte for byte (RFC 9207): it is how mixed-up answers are told. */
static bool check_redirect(rt_str redirected, const mcp_issuer *issuer, consent *c, rt_arena *arena,
                           rt_error *err)
{
    char shown[MCP_SHOWN_SIZE];
    rt_str iss = query_field(redirected, "iss", arena);
    if (!rt_str_eq(query_field(redirected, "state", arena), c->state))
        return rt_fail(err, RT_DENIED, "the authorization response is not the one to our request");
    if (iss.len ? !rt_str_eq(iss, issuer->issuer) : issuer->sends_issuer)
        return rt_fail(err, RT_DENIED, "the authorization response is not from its server");
    rt_str error = query_field(redirected, "error", arena);
    c->code = query_field(redirected, "code", arena);
    if (error.len || c->code.len == 0)
        return rt_fail(err, RT_DENIED, "access was not granted: %s", mcp_show(error, shown));
    return true;
}

static bool ask_consent(mcp_oauth *o, const mcp_issuer *issuer, const mcp_challenge *challenge,
                        consent *c, rt_arena *arena, rt_error *err)
{
    const rt_mcp_oauth *config = &o->config->oauth;
    rt_str redirected;
    *c = (consent){ .verifier = random_word(VERIFIER_BYTES, arena),
                    .state = random_word(STATE_BYTES, arena),
                    .scope = choose_scope(o, issuer, challenge, arena) };
    return config->authorize(config->ctx, consent_url(o, issuer, c, arena), arena, &redirected,
                             err) &&
           check_redirect(redirected, issuer, c, arena, err);
}

/* -- The exchange ------------------------------------------------------------------------------ */

static const char *choose_method(const mcp_oauth *o, const mcp_issuer *issuer)
{
    if (o->client_secret.len == 0)
        return "none";
    if (rt_str_eq_c(o->auth_method, "client_secret_post") &&
        (issuer->takes_post || !issuer->says_methods))
        return "client_secret_post";
    if (rt_str_eq_c(o->auth_method, "none") && issuer->takes_none)
        return "none";
    return !issuer->says_methods || issuer->takes_basic ? "client_secret_basic"
                                                        : "client_secret_post";
}

static const char *basic_header(const mcp_oauth *o, rt_arena *arena)
{
    rt_buf pair RT_CLEANUP(rt_buf_done) = { .max = 16 << 10 };
    put_escaped(&pair, o->client_id);
    rt_buf_addc(&pair, ':');
    put_escaped(&pair, o->client_secret);
    char *code = rt_arena_alloc_raw(arena, (pair.len + 2) / 3 * 4 + 1);
    EVP_EncodeBlock((unsigned char *)code, (const unsigned char *)pair.ptr, (int)pair.len);
    return rt_arena_printf(arena, "Authorization: Basic %s", code).ptr;
}

static void keep_token(mcp_oauth *o, rt_json answer)
{
    rt_str refresh = rt_json_str(rt_json_get_c(answer, "refresh_token"));
    rt_arena fresh = { 0 };
    pthread_mutex_lock(&o->token_lock);
    rt_str token = rt_arena_str(&fresh, rt_json_str(rt_json_get_c(answer, "access_token")));
    o->refresh = rt_arena_str(&fresh, refresh.len ? refresh : o->refresh);
    o->token = token;
    rt_arena_done(&o->token_arena);
    o->token_arena = fresh;
    pthread_mutex_unlock(&o->token_lock);
}

static bool is_visible(rt_str token)
{
    for (size_t i = 0; i < token.len; i++)
        if (token.ptr[i] <= ' ' || token.ptr[i] > '~')
            return false;
    return token.len > 0;
}

/* The form has all but who we are. */
static bool fetch_token(mcp_oauth *o, const mcp_getter *g, const mcp_issuer *issuer, rt_buf *form,
                        rt_error *err)
{
    const char *headers[3] = { "Content-Type: application/x-www-form-urlencoded",
                               "Accept: application/json" };
    const char *method = choose_method(o, issuer);
    size_t count = 2;
    rt_json answer;
    long status;
    put_field(form, "resource", issuer->resource);
    if (strcmp(method, "client_secret_basic") == 0) {
        headers[count++] = basic_header(o, g->arena);
    } else {
        put_field(form, "client_id", o->client_id);
        if (strcmp(method, "client_secret_post") == 0)
            put_field(form, "client_secret", o->client_secret);
    }
    if (!post(g, issuer->token_url, headers, count, rt_buf_str(form), &status, &answer, err))
        return false;
    if (status / 100 != 2 || !is_visible(rt_json_str(rt_json_get_c(answer, "access_token"))))
        return complain("a token", status, answer, err);
    keep_token(o, answer);
    return true;
}

static bool renew(mcp_oauth *o, const mcp_getter *g, const mcp_issuer *issuer)
{
    rt_buf form RT_CLEANUP(rt_buf_done) = { .max = 64 << 10 };
    if (o->refresh.len == 0 || !rt_str_eq(o->issuer, issuer->issuer))
        return false;
    put_field(&form, "grant_type", RT_STR("refresh_token"));
    put_field(&form, "refresh_token", o->refresh);
    bool is_good = fetch_token(o, g, issuer, &form, &(rt_error){ 0 });
    if (!is_good)
        o->refresh = (rt_str){ "", 0 };
    return is_good;
}

/* Without anybody to ask: what we were given must do (the client credentials grant). */
static bool use_credentials(mcp_oauth *o, const mcp_getter *g, const mcp_issuer *issuer,
                            const mcp_challenge *challenge, rt_error *err)
{
    rt_buf form RT_CLEANUP(rt_buf_done) = { .max = 64 << 10 };
    put_field(&form, "grant_type", RT_STR("client_credentials"));
    put_field(&form, "scope", choose_scope(o, issuer, challenge, g->arena));
    return fetch_token(o, g, issuer, &form, err);
}

static bool use_consent(mcp_oauth *o, const mcp_getter *g, const mcp_issuer *issuer,
                        const mcp_challenge *challenge, rt_error *err)
{
    rt_buf form RT_CLEANUP(rt_buf_done) = { .max = 64 << 10 };
    consent c;
    if (!ask_consent(o, issuer, challenge, &c, g->arena, err))
        return false;
    put_field(&form, "grant_type", RT_STR("authorization_code"));
    put_field(&form, "code", c.code);
    put_field(&form, "redirect_uri", o->config->oauth.redirect_uri);
    put_field(&form, "code_verifier", c.verifier);
    if (!fetch_token(o, g, issuer, &form, err))
        return false;
    o->scope = rt_arena_str(&o->arena, c.scope);
    return true;
}

static bool get_token(mcp_oauth *o, const mcp_getter *g, long status, const char *header,
                      rt_error *err)
{
    mcp_challenge challenge;
    mcp_issuer issuer;
    mcp_challenge_read(rt_str_of(header), g->arena, &challenge);
    if (status == 403 && !rt_str_eq_c(challenge.error, "insufficient_scope"))
        return rt_fail(err, RT_DENIED, "it does not let us in (HTTP 403)");
    if (!mcp_issuer_find(g, o->config->url, &challenge, &issuer, err))
        return false;
    if (status == 401 && renew(o, g, &issuer))
        return true;
    if (!introduce(o, g, &issuer, err))
        return false;
    return o->config->oauth.authorize ? use_consent(o, g, &issuer, &challenge, err)
                                      : use_credentials(o, g, &issuer, &challenge, err);
}

bool mcp_oauth_react(mcp_oauth *o, mcp_fetcher *fetcher, long status, const char *challenge,
                     rt_str used, uint64_t deadline_ns, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    mcp_getter g = { .fetcher = fetcher, .deadline_ns = deadline_ns, .arena = &arena };
    pthread_mutex_lock(&o->lock);
    bool is_old = !rt_str_eq(mcp_oauth_token(o, &arena), used);
    bool is_good = is_old || get_token(o, &g, status, challenge, err);
    pthread_mutex_unlock(&o->lock);
    return is_good;
}
