/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.c - the server's beginning and end.
 *
 * libmicrohttpd gives each connection a thread of its own with a small stack, so handlers may
 * block: a run is waited for where it was asked. The listening socket is made here, because then a
 * port in use is an error that says so.
 */
#include "server/server_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_FACTOR       2 /* times the time-out: for silence, and then for the headers */
#define THREAD_STACK_BYTES    ((size_t)512 << 10)
#define CONNECTION_POOL_BYTES ((size_t)32 << 10) /* headers of one request, at most */
#define BACKLOG               1024
#define PEM_MAX               (1u << 20)
#define LIST_MAX              64 /* allowed origins or hosts */

typedef union address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
} address;

/* ---- configuration ---- */

static const rt_str *copy_list(rt_server *s, const rt_str *list, size_t count)
{
    rt_str *copy = rt_arena_alloc(&s->arena, count * sizeof(*copy));
    for (size_t i = 0; i < count; i++)
        copy[i] = rt_arena_str(&s->arena, list[i]);
    return copy;
}

static void copy_config(rt_server *s, const rt_server_config *from)
{
    rt_server_config *c = &s->config;
    *c = *from;
    c->bind = rt_arena_str(&s->arena, from->bind.len > 0 ? from->bind : RT_STR("127.0.0.1"));
    c->public_url = rt_arena_str(&s->arena, from->public_url);
    c->version =
        rt_arena_str(&s->arena, from->version.len > 0 ? from->version : rt_str_of(RETORT_VERSION));
    s->banner = rt_arena_printf(&s->arena, "retort/%.*s", RT_FMT(c->version));
    c->allowed_origins = copy_list(s, from->allowed_origins, from->allowed_origin_count);
    c->allowed_hosts = copy_list(s, from->allowed_hosts, from->allowed_host_count);
    c->max_connections = from->max_connections ? from->max_connections : SERVER_CONNECTIONS_DEFAULT;
    c->max_body_bytes = from->max_body_bytes ? from->max_body_bytes : SERVER_BODY_DEFAULT;
    c->body_budget_bytes =
        RT_MAX(from->body_budget_bytes ? from->body_budget_bytes : SERVER_BUDGET_DEFAULT,
               c->max_body_bytes);
    c->request_timeout_ms =
        from->request_timeout_ms ? from->request_timeout_ms : SERVER_TIMEOUT_DEFAULT_MS;
    c->retention_days = from->retention_days ? from->retention_days : SERVER_RETENTION_DAYS;
    s->rules = (guard_rules){ .is_local = !c->is_auth_required,
                              .allowed_origins = c->allowed_origins,
                              .allowed_origin_count = c->allowed_origin_count,
                              .allowed_hosts = c->allowed_hosts,
                              .allowed_host_count = c->allowed_host_count,
                              .public_url = c->public_url };
}

static void find_docs(rt_server *s)
{
    char path[PATH_MAX];
    if (s->config.docs_dir) {
        s->config.docs_dir = rt_arena_copy(&s->arena, rt_str_of(s->config.docs_dir));
        return;
    }
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
    rt_str program = { path, len > 0 ? (size_t)len : 0 };
    const char *slash = len > 0 ? memrchr(path, '/', (size_t)len) : NULL;
    if (slash)
        s->config.docs_dir =
            rt_arena_printf(&s->arena, "%.*s/docs",
                            RT_FMT(rt_str_slice(program, 0, (size_t)(slash - path))))
                .ptr;
}

static bool check_config(const rt_server_config *c, rt_error *err)
{
    if (!c->is_auth_required && !guard_is_loopback(c->bind))
        return rt_fail(err, RT_INVALID,
                       "without keys the server listens on this machine only: bind to 127.0.0.1 "
                       "instead of '%.*s', or turn keys on",
                       (int)RT_MIN(c->bind.len, (size_t)60), c->bind.ptr);
    if (!c->tls_certificate_file != !c->tls_key_file)
        return rt_fail(err, RT_INVALID, "TLS needs both a certificate file and a key file");
    if (c->allowed_origin_count > LIST_MAX || c->allowed_host_count > LIST_MAX)
        return rt_fail(err, RT_LIMIT, "more than %d allowed origins or hosts", LIST_MAX);
    return true;
}

/* ---- listening ---- */

static bool parse_address(rt_str bind_to, uint16_t port, rt_arena *arena, address *out,
                          socklen_t *size, rt_error *err)
{
    const char *text =
        rt_arena_copy(arena, rt_str_eq_c(bind_to, "localhost") ? RT_STR("127.0.0.1") : bind_to);
    *out = (address){ 0 };
    if (inet_pton(AF_INET, text, &out->four.sin_addr) == 1) {
        out->four.sin_family = AF_INET;
        out->four.sin_port = htons(port);
        *size = sizeof(out->four);
        return true;
    }
    if (inet_pton(AF_INET6, text, &out->six.sin6_addr) == 1) {
        out->six.sin6_family = AF_INET6;
        out->six.sin6_port = htons(port);
        *size = sizeof(out->six);
        return true;
    }
    return rt_fail(err, RT_INVALID, "'%s' is no IP address to listen on", text);
}

static bool listen_at(rt_server *s, rt_error *err)
{
    address at;
    socklen_t size;
    const rt_server_config *c = &s->config;
    if (!parse_address(c->bind, c->port, &s->arena, &at, &size, err))
        return false;
    s->listener = socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
    if (s->listener < 0 || bind(s->listener, &at.any, size) != 0 ||
        listen(s->listener, BACKLOG) != 0 || getsockname(s->listener, &at.any, &size) != 0)
        return rt_fail_errno(err, "listen on %.*s port %u", RT_FMT(c->bind), c->port);
    s->port = ntohs(at.any.sa_family == AF_INET6 ? at.six.sin6_port : at.four.sin_port);
    bool is_six = at.any.sa_family == AF_INET6;
    bool is_every = rt_str_eq_c(c->bind, "0.0.0.0") || rt_str_eq_c(c->bind, "::");
    rt_str shown = !is_every ? c->bind : is_six ? RT_STR("::1") : RT_STR("127.0.0.1");
    s->url = c->public_url.len > 0
                 ? c->public_url
                 : rt_arena_printf(&s->arena, "http%s://%s%.*s%s:%u", c->tls_key_file ? "s" : "",
                                   is_six ? "[" : "", RT_FMT(shown), is_six ? "]" : "", s->port);
    return true;
}

static bool start_daemon(rt_server *s, rt_error *err)
{
    rt_str certificate = { 0 }, key = { 0 };
    const rt_server_config *c = &s->config;
    rt_arena secrets RT_CLEANUP(rt_arena_done) = { 0 };
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
                     MHD_USE_POLL | MHD_USE_ITC;
    struct MHD_OptionItem tls[3] = { { MHD_OPTION_END, 0, NULL } };
    if (c->tls_key_file) {
        if (!rt_read_file(c->tls_certificate_file, PEM_MAX, &secrets, &certificate, err) ||
            !rt_read_file(c->tls_key_file, PEM_MAX, &secrets, &key, err))
            return rt_wrap(err, "TLS");
        flags |= MHD_USE_TLS;
        tls[0] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_CERT, 0,
                                          (void *)(uintptr_t)certificate.ptr };
        tls[1] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)key.ptr };
        tls[2] = (struct MHD_OptionItem){ MHD_OPTION_END, 0, NULL };
    }
    s->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, server_on_request, s, MHD_OPTION_LISTEN_SOCKET, s->listener,
        MHD_OPTION_URI_LOG_CALLBACK, server_on_target, s, MHD_OPTION_NOTIFY_CONNECTION,
        server_on_connection, s, MHD_OPTION_NOTIFY_COMPLETED, server_on_completed, s,
        MHD_OPTION_CONNECTION_LIMIT, c->max_connections, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)((c->request_timeout_ms + 999) / 1000), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        CONNECTION_POOL_BYTES, MHD_OPTION_THREAD_STACK_SIZE, THREAD_STACK_BYTES, MHD_OPTION_ARRAY,
        tls, MHD_OPTION_END);
    if (!s->daemon)
        return rt_fail(err, c->tls_key_file ? RT_INVALID : RT_SYSTEM, "start HTTP%s",
                       c->tls_key_file ? "S: is the certificate's key in the key file?" : "");
    s->listener = -1; /* the daemon's now */
    return true;
}

bool rt_server_start(const rt_server_config *config, rt_server **out, rt_error *err)
{
    rt_server *s RT_CLEANUP(rt_server_closep) = calloc(1, sizeof(*s));
    if (!s)
        rt_out_of_memory(sizeof(*s));
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->is_idle, &monotonic);
    pthread_condattr_destroy(&monotonic);
    s->listener = -1;
    s->started_ns = rt_now_ns();
    copy_config(s, config);
    find_docs(s);
    s->keyring = guard_keyring_new(config->store);
    s->rate = server_rate_new(SERVER_RATE_KEYS);
    s->jobs = jobs_new();
    s->mcp = mcp_new(&s->config);
    if (!check_config(&s->config, err) || !watch_open(&s->watch, err) ||
        !patience_open(PATIENCE_FACTOR * s->config.request_timeout_ms, &s->patience, err) ||
        !listen_at(s, err) || !start_daemon(s, err))
        return false;
    *out = RT_TAKE(s);
    return true;
}

uint16_t rt_server_port(const rt_server *server)
{
    return server->port;
}

rt_str rt_server_url(const rt_server *server)
{
    return server->url;
}

/* ---- the end ---- */

bool rt_server_stop(rt_server *s, uint64_t drain_ms)
{
    struct timespec until;
    if (!atomic_exchange(&s->is_stopping, true))
        s->listener = MHD_quiesce_daemon(s->daemon);
    if (s->listener >= 0) /* the daemon's thread may still wait for it, which keeps it open */
        shutdown(s->listener, SHUT_RD);
    rt_closep(&s->listener);
    s->listener = -1;
    mcp_stop(s->mcp);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(drain_ms / 1000);
    until.tv_nsec += (long)(drain_ms % 1000) * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&s->lock);
    while (s->active > 0 && pthread_cond_timedwait(&s->is_idle, &s->lock, &until) != ETIMEDOUT)
        ;
    bool is_idle = s->active == 0;
    pthread_mutex_unlock(&s->lock);
    return is_idle;
}

void rt_server_close(rt_server *s)
{
    if (!s)
        return;
    atomic_store(&s->is_stopping, true);
    if (s->watch)
        watch_all_gone(s->watch);
    if (s->daemon)
        MHD_stop_daemon(s->daemon);
    rt_closep(&s->listener);
    watch_close(s->watch);
    mcp_free(s->mcp);
    patience_close(s->patience);
    jobs_free(s->jobs);
    guard_keyring_free(s->keyring);
    server_rate_free(s->rate);
    pthread_cond_destroy(&s->is_idle);
    pthread_mutex_destroy(&s->lock);
    rt_arena_done(&s->arena);
    free(s);
}

void rt_server_closep(rt_server **server)
{
    rt_server_close(RT_TAKE(*server));
}
