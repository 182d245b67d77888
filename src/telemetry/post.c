/* SPDX-License-Identifier: Apache-2.0 */
/*
 * post.c - one POST of JSON to a receiver, and what its answer means.
 *
 * One libcurl handle per receiver, so that its connection is used again. Only http and https are
 * spoken and redirects are not followed: what is sent goes where the operator has said, or nowhere.
 * Trying again is for the caller (exporter.c) to decide; here is only the verdict.
 */
#include "telemetry/telemetry_internal.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define URL_SIZE_MAX 2048

struct telemetry_post {
    CURL *curl;
    struct curl_slist *headers;
    uint64_t timeout_ms;
    const _Atomic uint64_t *stop_at_ns;
    char error[CURL_ERROR_SIZE];
};

static void init_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* -- Opening ----------------------------------------------------------------------------------- */

static void curl_urlp(CURLU **url)
{
    curl_url_cleanup(*url);
}

bool telemetry_check_url(rt_str url, rt_error *err)
{
    char text[URL_SIZE_MAX + 1];
    if (url.len > URL_SIZE_MAX)
        return rt_fail(err, RT_LIMIT, "the URL is longer than %d bytes", URL_SIZE_MAX);
    if (!rt_str_starts(url, RT_STR("http://")) && !rt_str_starts(url, RT_STR("https://")))
        return rt_fail(err, RT_INVALID, "the URL does not begin with http:// or https://");
    for (size_t i = 0; i < url.len; i++)
        if ((uint8_t)url.ptr[i] <= ' ' || url.ptr[i] == 0x7f)
            return rt_fail(err, RT_INVALID, "the URL has a space or a control character");
    memcpy(text, url.ptr, url.len);
    text[url.len] = '\0';
    CURLU *parsed RT_CLEANUP(curl_urlp) = curl_url();
    CURLUcode code = curl_url_set(parsed, CURLUPART_URL, text, 0);
    if (code != CURLUE_OK)
        return rt_fail(err, RT_INVALID, "the URL: %s", curl_url_strerror(code));
    return true;
}

/* A wrong path is told at the start, not with the first batch. */
static bool check_files(const telemetry_target *target, rt_error *err)
{
    const char *const files[] = { target->certificate, target->client_key,
                                  target->client_certificate };
    for (size_t i = 0; i < RT_COUNT(files); i++)
        if (files[i] && access(files[i], R_OK) != 0)
            return rt_fail_errno(err, "read %s", files[i]);
    return true;
}

static size_t take_body(char *bytes, size_t one, size_t count, void *ctx)
{
    rt_buf *body = ctx;
    size_t room = TELEMETRY_ANSWER_MAX - body->len;
    rt_buf_add(body, (rt_str){ bytes, RT_MIN(one * count, room) });
    return one * count; /* more than there was room for: heard and forgotten */
}

/* libcurl asks about once a second whether to go on. */
static int is_over(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const telemetry_post *post = ctx;
    uint64_t stop_at = atomic_load(post->stop_at_ns);
    (void)a, (void)b, (void)c, (void)d;
    return stop_at && rt_now_ns() >= stop_at;
}

static bool add_header(telemetry_post *post, const char *line)
{
    struct curl_slist *longer = curl_slist_append(post->headers, line);
    if (longer)
        post->headers = longer;
    return longer != NULL;
}

static bool add_headers(telemetry_post *post, const telemetry_pairs *pairs)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    if (!add_header(post, "Content-Type: application/json") || !add_header(post, "Expect:"))
        return false;
    for (size_t i = 0; i < pairs->count; i++) {
        const telemetry_pair *pair = &pairs->items[i];
        /* "Name;" is libcurl's way to say that the value is empty; "Name:" would be no header. */
        rt_str line = pair->value.len ? rt_arena_printf(&arena, "%.*s: %.*s", RT_FMT(pair->key),
                                                        RT_FMT(pair->value))
                                      : rt_arena_printf(&arena, "%.*s;", RT_FMT(pair->key));
        if (!add_header(post, line.ptr))
            return false;
    }
    return true;
}

static bool set_options(telemetry_post *post, const telemetry_target *target)
{
    CURLcode code = CURLE_OK;
#define SET(option, value)                                                                         \
    code = code == CURLE_OK ? curl_easy_setopt(post->curl, CURLOPT_##option, value) : code
    SET(URL, target->url);
    SET(PROTOCOLS_STR, "http,https");
    SET(FOLLOWLOCATION, 0L);
    SET(NOSIGNAL, 1L);
    SET(QUICK_EXIT, 1L); /* a name server that does not answer is not waited for */
    SET(SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(USERAGENT, "retort/" RETORT_VERSION);
    SET(HTTPHEADER, post->headers);
    SET(ERRORBUFFER, post->error);
    SET(WRITEFUNCTION, take_body);
    SET(NOPROGRESS, 0L);
    SET(XFERINFOFUNCTION, is_over);
    SET(XFERINFODATA, post);
    if (target->certificate)
        SET(CAINFO, target->certificate);
    if (target->client_key)
        SET(SSLKEY, target->client_key);
    if (target->client_certificate)
        SET(SSLCERT, target->client_certificate);
#undef SET
    return code == CURLE_OK;
}

static void closep(telemetry_post **post)
{
    telemetry_post_close(*post);
}

bool telemetry_post_open(const telemetry_target *target, const _Atomic uint64_t *stop_at_ns,
                         telemetry_post **out, rt_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_curl);
    if (!check_files(target, err))
        return false;
    telemetry_post *post RT_CLEANUP(closep) = calloc(1, sizeof(*post));
    if (!post)
        rt_out_of_memory(sizeof(*post));
    post->timeout_ms = target->timeout_ms;
    post->stop_at_ns = stop_at_ns;
    post->curl = curl_easy_init();
    if (!post->curl || !add_headers(post, &target->headers) || !set_options(post, target))
        return rt_fail(err, RT_INTERNAL, "libcurl could not be set up");
    *out = RT_TAKE(post);
    return true;
}

void telemetry_post_close(telemetry_post *post)
{
    if (!post)
        return;
    curl_easy_cleanup(post->curl);
    curl_slist_free_all(post->headers);
    free(post);
}

/* -- Sending ----------------------------------------------------------------------------------- */

/*
 * A receiver that has let its time pass may have kept what it was sent, so that is not sent again;
 * a connection that was never made is like one that was lost.
 */
static telemetry_verdict judge_failure(telemetry_post *post, CURLcode code)
{
    curl_off_t connected_us = 0;
    switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return TELEMETRY_LATER;
    case CURLE_OPERATION_TIMEDOUT:
        curl_easy_getinfo(post->curl, CURLINFO_PRETRANSFER_TIME_T, &connected_us);
        return connected_us ? TELEMETRY_REFUSED : TELEMETRY_LATER;
    default:
        return TELEMETRY_REFUSED;
    }
}

static telemetry_verdict judge_status(long status)
{
    if (status >= 200 && status < 300)
        return TELEMETRY_TAKEN;
    return status == 429 || status == 502 || status == 503 || status == 504 ? TELEMETRY_LATER
                                                                            : TELEMETRY_REFUSED;
}

static void judge(telemetry_post *post, CURLcode code, telemetry_answer *answer)
{
    long status = 0;
    curl_off_t seconds = 0;
    if (code != CURLE_OK) {
        answer->verdict = judge_failure(post, code);
        snprintf(answer->text, sizeof(answer->text), "%s",
                 post->error[0] ? post->error : curl_easy_strerror(code));
        return;
    }
    curl_easy_getinfo(post->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(post->curl, CURLINFO_RETRY_AFTER, &seconds); /* a number or a date */
    answer->verdict = judge_status(status);
    answer->retry_after_ms = seconds > 0 ? (uint64_t)seconds * 1000 : 0;
    snprintf(answer->text, sizeof(answer->text), "the receiver answers %ld", status);
}

/* What is left for a request: its own time-out, or less when the end is near. 0: nothing. */
static uint64_t time_left_ms(const telemetry_post *post)
{
    uint64_t stop_at = atomic_load(post->stop_at_ns), now = rt_now_ns();
    if (stop_at == 0)
        return post->timeout_ms;
    return now < stop_at ? RT_MIN(post->timeout_ms, (stop_at - now) / 1000000) : 0;
}

void telemetry_post_send(telemetry_post *post, const rt_outbound *parcel, telemetry_answer *answer)
{
    uint64_t left_ms = time_left_ms(post);
    rt_buf_reset(&answer->body);
    answer->retry_after_ms = 0;
    if (left_ms == 0) {
        answer->verdict = TELEMETRY_REFUSED;
        snprintf(answer->text, sizeof(answer->text), "there was no time left to send it");
        return;
    }
    post->error[0] = '\0';
    curl_easy_setopt(post->curl, CURLOPT_TIMEOUT_MS, (long)left_ms);
    curl_easy_setopt(post->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)left_ms);
    curl_easy_setopt(post->curl, CURLOPT_POSTFIELDSIZE_LARGE,
                     (curl_off_t)rt_outbound_bytes(parcel).len);
    curl_easy_setopt(post->curl, CURLOPT_POSTFIELDS, rt_outbound_bytes(parcel).ptr);
    curl_easy_setopt(post->curl, CURLOPT_WRITEDATA, &answer->body);
    judge(post, curl_easy_perform(post->curl), answer);
}
