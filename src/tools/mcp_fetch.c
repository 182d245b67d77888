/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_fetch.c - one HTTP exchange, that can be called off at any moment.
 *
 * Each exchange runs in the thread that wants it, on a handle of its own out of a pool, so that
 * connections are used again and none waits for another. Only http and https are spoken, and
 * redirects are not followed here: whom we send credentials to is for the caller to decide.
 */
#include "tools/mcp_internal.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <strings.h>

enum {
    KEPT_MAX = 16, /* handles in the pool */
    CONNECT_TIMEOUT_MS = 15000,
    LINGER_MS = 100, /* for the end of a stream of which we have had enough */
};

typedef struct handle {
    CURL *easy;
    CURLM *multi;
    struct handle *next;
} handle;

struct mcp_fetcher {
    int shut_fd;
    pthread_mutex_t lock;
    handle *kept;
    size_t kept_count;
};

/* -- The pool ---------------------------------------------------------------------------------- */

static void init_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void handle_free(handle *h)
{
    curl_easy_cleanup(h->easy);
    curl_multi_cleanup(h->multi);
    free(h);
}

static handle *handle_new(void)
{
    handle *h = calloc(1, sizeof(*h));
    if (!h)
        rt_out_of_memory(sizeof(*h));
    h->easy = curl_easy_init();
    h->multi = curl_multi_init();
    if (!h->easy || !h->multi)
        rt_out_of_memory(sizeof(*h));
    return h;
}

static handle *take_handle(mcp_fetcher *f)
{
    pthread_mutex_lock(&f->lock);
    handle *h = f->kept;
    if (h) {
        f->kept = h->next;
        f->kept_count--;
    }
    pthread_mutex_unlock(&f->lock);
    return h ? h : handle_new();
}

static void give_handle(mcp_fetcher *f, handle *h)
{
    curl_easy_reset(h->easy); /* its connections stay, in the multi handle */
    pthread_mutex_lock(&f->lock);
    bool is_kept = f->kept_count < KEPT_MAX;
    if (is_kept) {
        h->next = f->kept;
        f->kept = h;
        f->kept_count++;
    }
    pthread_mutex_unlock(&f->lock);
    if (!is_kept)
        handle_free(h);
}

mcp_fetcher *mcp_fetcher_new(int shut_fd)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_curl);
    mcp_fetcher *f = calloc(1, sizeof(*f));
    if (!f)
        rt_out_of_memory(sizeof(*f));
    f->shut_fd = shut_fd;
    pthread_mutex_init(&f->lock, NULL);
    return f;
}

void mcp_fetcher_free(mcp_fetcher *f)
{
    while (f->kept) {
        handle *h = f->kept;
        f->kept = h->next;
        handle_free(h);
    }
    pthread_mutex_destroy(&f->lock);
    free(f);
}

/* -- What comes back --------------------------------------------------------------------------- */

typedef struct exchange {
    mcp_fetch *fetch;
    CURL *easy;
    rt_outbound parcel;
    bool is_enough;
    char error[CURL_ERROR_SIZE];
} exchange;

static void take_value(rt_str value, char *out, size_t size)
{
    value = rt_str_trim(value);
    if (value.len >= size || (value.len && memchr(value.ptr, '\0', value.len)))
        return;
    if (value.len)
        memcpy(out, value.ptr, value.len);
    out[value.len] = '\0';
}

static size_t on_header(char *bytes, size_t one, size_t count, void *ctx)
{
    mcp_fetch *f = ((exchange *)ctx)->fetch;
    const struct {
        const char *name;
        char *out;
        size_t size;
    } wanted[] = {
        { "content-type", f->content_type, sizeof(f->content_type) },
        { "mcp-session-id", f->session_id, sizeof(f->session_id) },
        { "www-authenticate", f->challenge, sizeof(f->challenge) },
        { "location", f->location, sizeof(f->location) },
    };
    rt_str name, line = { bytes, one * count };
    if (rt_str_starts(line, RT_STR("HTTP/"))) {
        for (size_t i = 0; i < RT_COUNT(wanted); i++)
            wanted[i].out[0] = '\0'; /* those before were of an interim answer */
        return one * count;
    }
    if (f->on_answer && rt_str_trim(line).len == 0)
        f->on_answer(f->ctx);
    if (!rt_str_cut(&line, ':', &name))
        return one * count;
    for (size_t i = 0; i < RT_COUNT(wanted); i++)
        if (name.len == strlen(wanted[i].name) &&
            strncasecmp(name.ptr, wanted[i].name, name.len) == 0)
            take_value(line, wanted[i].out, wanted[i].size);
    return one * count;
}

static size_t on_body(char *bytes, size_t one, size_t count, void *ctx)
{
    exchange *x = ctx;
    size_t size = one * count;
    if (x->is_enough)
        return size;
    curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &x->fetch->status);
    x->is_enough = !x->fetch->on_bytes(x->fetch->ctx, x->fetch, (rt_str){ bytes, size });
    return size;
}

/* -- An exchange ------------------------------------------------------------------------------- */

static struct curl_slist *make_headers(const mcp_fetch *f)
{
    struct curl_slist *list = curl_slist_append(NULL, "Expect:");
    for (size_t i = 0; i < f->header_count; i++)
        list = curl_slist_append(list, f->headers[i]);
    return list;
}

static void set_options(exchange *x, struct curl_slist *headers)
{
    CURL *easy = x->easy;
    const mcp_fetch *f = x->fetch;
    curl_easy_setopt(easy, CURLOPT_URL, f->url);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 256L << 10);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "retort/" RETORT_VERSION);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, x->error);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, x);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, x);
    if (strcmp(f->verb, "POST") == 0) {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        rt_outbound_clear(&x->parcel, f->is_login ? RT_OUTBOUND_LOGIN : RT_OUTBOUND_TOOL,
                          f->body.len ? f->body : RT_STR(""), NULL, 0, NULL);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                         (curl_off_t)rt_outbound_bytes(&x->parcel).len);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, rt_outbound_bytes(&x->parcel).ptr);
    } else if (strcmp(f->verb, "GET") != 0) {
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, f->verb);
    }
}

static mcp_fetch_end wait_for_more(const mcp_fetcher *fetcher, CURLM *multi, const exchange *x,
                                   uint64_t until_ns)
{
    struct curl_waitfd extra[2];
    unsigned count = 0;
    const int fds[] = { fetcher->shut_fd, x->fetch->cancel_fd };
    if (rt_now_ns() >= until_ns)
        return MCP_FETCH_TIMEOUT;
    for (size_t i = 0; i < RT_COUNT(fds); i++)
        if (fds[i] >= 0)
            extra[count++] = (struct curl_waitfd){ .fd = fds[i], .events = CURL_WAIT_POLLIN };
    curl_multi_poll(multi, extra, count, mcp_poll_ms(until_ns), NULL);
    for (unsigned i = 0; i < count; i++)
        if (extra[i].revents)
            return extra[i].fd == fetcher->shut_fd ? MCP_FETCH_SHUT : MCP_FETCH_CANCELLED;
    return MCP_FETCH_DONE;
}

static mcp_fetch_end conclude(exchange *x, CURLM *multi)
{
    int left;
    CURLMsg *message = curl_multi_info_read(multi, &left);
    CURLcode code = message ? message->data.result : CURLE_OK;
    curl_off_t connected_us = 0;
    curl_easy_getinfo(x->easy, CURLINFO_PRETRANSFER_TIME_T, &connected_us);
    x->fetch->was_connected = connected_us > 0;
    if (code == CURLE_OK || x->is_enough)
        return MCP_FETCH_DONE;
    snprintf(x->fetch->error, sizeof(x->fetch->error), "%s",
             x->error[0] ? x->error : curl_easy_strerror(code));
    return MCP_FETCH_FAILED;
}

static mcp_fetch_end perform(const mcp_fetcher *fetcher, CURLM *multi, exchange *x)
{
    int running = 1;
    uint64_t linger_until = 0;
    for (;;) {
        curl_multi_perform(multi, &running);
        if (!running)
            return conclude(x, multi);
        if (x->is_enough && !linger_until)
            linger_until = rt_now_ns() + LINGER_MS * MCP_MS;
        mcp_fetch_end end =
            wait_for_more(fetcher, multi, x, linger_until ? linger_until : *x->fetch->deadline_ns);
        if (end != MCP_FETCH_DONE) {
            x->fetch->was_connected = true; /* as far as we know */
            return x->is_enough ? MCP_FETCH_DONE : end;
        }
    }
}

mcp_fetch_end mcp_fetch_run(mcp_fetcher *fetcher, mcp_fetch *f)
{
    handle *h = take_handle(fetcher);
    exchange x = { .fetch = f, .easy = h->easy };
    struct curl_slist *headers = make_headers(f);
    f->status = 0;
    f->content_type[0] = f->session_id[0] = f->challenge[0] = f->location[0] = f->error[0] = '\0';
    set_options(&x, headers);
    curl_multi_add_handle(h->multi, h->easy);
    mcp_fetch_end end = perform(fetcher, h->multi, &x);
    curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &f->status);
    curl_multi_remove_handle(h->multi, h->easy);
    give_handle(fetcher, h);
    curl_slist_free_all(headers);
    return end;
}

bool mcp_fetch_failed(mcp_fetch_end end, const mcp_fetch *f, rt_error *err)
{
    char shown[MCP_SHOWN_SIZE];
    switch (end) {
    case MCP_FETCH_CANCELLED:
        return rt_fail(err, RT_CANCELLED, "the call was cancelled");
    case MCP_FETCH_TIMEOUT:
        return rt_fail(err, RT_TIMEOUT,
                       "it did not answer in time; raise timeout_ms if it needs longer");
    case MCP_FETCH_SHUT:
        return rt_fail(err, RT_UNAVAILABLE, "it was stopped");
    default:
        return rt_fail(err, RT_UNAVAILABLE, "it cannot be reached: %s",
                       mcp_show(rt_str_of(f->error), shown));
    }
}

static bool gather(void *ctx, const mcp_fetch *f, rt_str bytes)
{
    rt_buf *body = ctx;
    (void)f;
    rt_buf_add(body, bytes);
    return !body->failed;
}

bool mcp_fetch_body(mcp_fetcher *fetcher, mcp_fetch *f, size_t max, rt_buf *body, rt_error *err)
{
    rt_buf_reset(body);
    body->max = max;
    f->on_bytes = gather;
    f->ctx = body;
    mcp_fetch_end end = mcp_fetch_run(fetcher, f);
    if (end != MCP_FETCH_DONE)
        return mcp_fetch_failed(end, f, err);
    return rt_buf_ok(body, err);
}

/* -- Headers ----------------------------------------------------------------------------------- */

void mcp_lines_add(mcp_lines *lines, const char *line)
{
    if (lines->count < RT_COUNT(lines->items))
        lines->items[lines->count++] = line;
}

/* Some configurations repeat what we say ourselves. */
static bool is_own_header(rt_str name)
{
    static const char *const own[] = {
        "accept",         "content-type", "content-length", "host",         "mcp-protocol-version",
        "mcp-session-id", "mcp-method",   "mcp-name",       "last-event-id"
    };
    for (size_t i = 0; i < RT_COUNT(own); i++)
        if (name.len == strlen(own[i]) && strncasecmp(name.ptr, own[i], name.len) == 0)
            return true;
    return false;
}

void mcp_lines_add_configured(mcp_lines *lines, const rt_mcp_config *config, rt_arena *arena)
{
    for (size_t i = 0; i < config->headers.count; i++) {
        const rt_mcp_pair *pair = &config->headers.items[i];
        if (is_own_header(pair->name))
            continue;
        /* "Name;" is libcurl's way to say that the value is empty. */
        rt_str line = pair->value.len ? rt_arena_printf(arena, "%.*s: %.*s", RT_FMT(pair->name),
                                                        RT_FMT(pair->value))
                                      : rt_arena_printf(arena, "%.*s;", RT_FMT(pair->name));
        mcp_lines_add(lines, line.ptr);
    }
}

/* -- URLs -------------------------------------------------------------------------------------- */

static void urlp(CURLU **url)
{
    curl_url_cleanup(*url);
}

static void curl_freep(char **text)
{
    curl_free(*text);
}

static bool same_part(CURLU *a, CURLU *b, CURLUPart part)
{
    char *left RT_CLEANUP(curl_freep) = NULL, *right RT_CLEANUP(curl_freep) = NULL;
    return curl_url_get(a, part, &left, CURLU_DEFAULT_PORT) == CURLUE_OK &&
           curl_url_get(b, part, &right, CURLU_DEFAULT_PORT) == CURLUE_OK &&
           strcasecmp(left, right) == 0;
}

bool mcp_same_origin(const char *a, const char *b)
{
    CURLU *left RT_CLEANUP(urlp) = curl_url(), *right RT_CLEANUP(urlp) = curl_url();
    return curl_url_set(left, CURLUPART_URL, a, 0) == CURLUE_OK &&
           curl_url_set(right, CURLUPART_URL, b, 0) == CURLUE_OK &&
           same_part(left, right, CURLUPART_SCHEME) && same_part(left, right, CURLUPART_HOST) &&
           same_part(left, right, CURLUPART_PORT);
}

const char *mcp_url_join(const char *base, const char *url, rt_arena *arena)
{
    CURLU *joined RT_CLEANUP(urlp) = curl_url();
    char *text RT_CLEANUP(curl_freep) = NULL;
    if (curl_url_set(joined, CURLUPART_URL, base, 0) != CURLUE_OK ||
        curl_url_set(joined, CURLUPART_URL, url, 0) != CURLUE_OK ||
        curl_url_get(joined, CURLUPART_URL, &text, 0) != CURLUE_OK)
        return NULL;
    return rt_arena_copy(arena, rt_str_of(text));
}
