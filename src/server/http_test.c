/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Over real sockets, to a server with a real store and no engine: what is decided before a handler
 * is called, and what every answer has.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/server.h"

#define ANSWER_MAX (1 << 20)

static rt_server *server;
static rt_store *store;
static rt_telemetry *telemetry;
static rt_arena arena;

static void start(rt_server_config config)
{
    rt_error err = { 0 };
    signal(SIGPIPE, SIG_IGN);
    rt_store_config where = { .url = RT_STR("sqlite::memory:") };
    rt_telemetry_config spoken = { .service_name = RT_STR("test"), .sample_ratio = -1 };
    cr_assert(rt_store_open(&where, &store, &err), "%s", err.text);
    cr_assert(rt_store_migrate(store, NULL, NULL, &err), "%s", err.text);
    cr_assert(rt_telemetry_open(&spoken, &telemetry, &err), "%s", err.text);
    config.store = store;
    config.telemetry = telemetry;
    config.docs_dir = "/nonexistent";
    cr_assert(rt_server_start(&config, &server, &err), "%s", err.text);
}

static void stop(void)
{
    rt_server_closep(&server);
    rt_telemetry_closep(&telemetry);
    rt_store_closep(&store);
    rt_arena_done(&arena);
}

static int dial(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons(rt_server_port(server)),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval patience = { .tv_sec = 10 };
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Until the server hangs up. */
static const char *read_all(int fd)
{
    char *text = rt_arena_alloc(&arena, ANSWER_MAX);
    size_t len = 0;
    ssize_t n;
    while ((n = read(fd, text + len, ANSWER_MAX - 1 - len)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    return text;
}

/* One request on a connection of its own; `head` without Host and the end. */
static const char *ask(const char *head, const char *body)
{
    int fd RT_CLEANUP(rt_closep) = dial();
    rt_str text =
        rt_arena_printf(&arena, "%s\r\nHost: localhost\r\nConnection: close\r\n\r\n%s", head, body);
    cr_assert(rt_write_all(fd, text, NULL));
    return read_all(fd);
}

static void expect(const char *answer, const char *part)
{
    cr_expect(strstr(answer, part), "no '%s' in: %s", part, answer);
}

static void expect_status(const char *answer, int status)
{
    int got = 0;
    sscanf(answer, "HTTP/1.1 %d", &got);
    cr_expect_eq(got, status, "%s", answer);
}

Test(http, every_answer_says_what_it_is, .fini = stop)
{
    start((rt_server_config){ 0 });
    const char *answer = ask("GET /openapi.json HTTP/1.1\r\nX-Request-Id: mine-1\r\n"
                             "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                             "");
    expect_status(answer, 200);
    expect(answer, "\r\nX-Request-Id: mine-1\r\n");
    expect(answer, "\r\nX-Content-Type-Options: nosniff\r\n");
    expect(answer, "\r\nCache-Control: no-store\r\n");
    expect(answer, "\r\nContent-Type: application/json; charset=utf-8\r\n");
    expect(answer, "\r\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-");
    expect(answer, "\r\nServer: retort/");
    expect(answer, "\"openapi\":\"3.1.0\"");
}

Test(http, what_makes_no_sense_is_refused_with_a_reason, .fini = stop)
{
    start((rt_server_config){ .max_body_bytes = 1000 });
    static const struct {
        const char *head, *body;
        int status;
        const char *part;
    } cases[] = {
        { "GET /nowhere HTTP/1.1", "", 404, "\"code\":\"not_found\"" },
        { "DELETE /health HTTP/1.1", "", 405, "Allow: GET, HEAD, OPTIONS" },
        { "BREW /health HTTP/1.1", "", 405, "method_not_allowed" },
        { "GET /%zz HTTP/1.1", "", 400, "two hexadecimal digits" },
        { "GET /v1/keys?%00=1 HTTP/1.1", "", 400, "NUL" },
        { "GET /v1/executions?limit=0 HTTP/1.1", "", 400, "from 1 to 500" },
        { "GET /v1/executions?limit=1&limit=2 HTTP/1.1", "", 400, "more than once" },
        { "POST /v1/keys HTTP/1.1\r\nContent-Type: text/plain\r\nContent-Length: 2", "{}", 415,
          "application/json" },
        { "POST /v1/keys HTTP/1.1\r\nContent-Type: application/json; charset=latin1\r\n"
          "Content-Length: 2",
          "{}", 415, "UTF-8" },
        { "POST /v1/keys HTTP/1.1\r\nContent-Length: 2000000", "", 413, "at most 1000" },
        { "POST /v1/keys HTTP/1.1\r\nContent-Length: 1001\r\nExpect: 100-continue", "", 413,
          "at most 1000" },
        { "POST /v1/keys HTTP/1.1\r\nContent-Length: 1", "{", 400, "not JSON" },
        { "POST /v1/keys HTTP/1.1\r\nContent-Length: 2", "[]", 400, "must be a JSON object" },
        { "POST /v1/keys HTTP/1.1\r\nContent-Length: 9", "{\"nam\":1}", 400, "unknown member" },
        { "POST /v1/keys HTTP/1.1\r\nContent-Length: 10", "{\"name\":1}", 400,
          "must be a string, not number" },
        { "POST /v1/keys HTTP/1.1", "", 400, "no body" },
        { "POST /v1/keys HTTP/1.1\r\nOrigin: https://evil.example", "", 403, "evil.example" },
        { "GET /v1/keys HTTP/1.1\r\nSec-Fetch-Site: cross-site", "", 403, "foreign page" },
        { "GET /docs/swagger-ui.css HTTP/1.1", "", 404, "not installed" },
        { "GET /docs/..%2f..%2fetc%2fpasswd HTTP/1.1", "", 404, "no such file" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        const char *answer = ask(cases[i].head, cases[i].body);
        expect_status(answer, cases[i].status);
        expect(answer, cases[i].part);
        expect(answer, "\"request_id\":\"req_");
    }
}

Test(http, another_host_name_is_refused_without_keys, .fini = stop)
{
    start((rt_server_config){ 0 });
    int fd RT_CLEANUP(rt_closep) = dial();
    rt_write_all(fd, RT_STR("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"),
                 NULL);
    expect_status(read_all(fd), 403);
}

Test(http, a_body_may_come_in_chunks_up_to_the_limit, .fini = stop)
{
    start((rt_server_config){ .max_body_bytes = 100 });
    const char *head = "POST /v1/keys HTTP/1.1\r\nTransfer-Encoding: chunked";
    const char *answer = ask(head, "5\r\n{\"nam\r\n8\r\ne\":\"me\"}\r\n0\r\n\r\n");
    expect_status(answer, 201);
    expect(answer, "\"secret\":\"rt_");
    rt_str many = rt_arena_printf(&arena, "96\r\n%150s\r\n0\r\n\r\n", "");
    expect_status(ask(head, many.ptr), 413);
}

Test(http, a_connection_outlives_a_refusal, .fini = stop)
{
    start((rt_server_config){ 0 });
    int fd RT_CLEANUP(rt_closep) = dial();
    rt_write_all(
        fd,
        RT_STR("POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello"
               "GET /v1/policies HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
        NULL);
    const char *answers = read_all(fd);
    expect_status(answers, 404);
    expect(answers, "HTTP/1.1 200 OK");
    expect(answers, "\"name\":\"default\"");
}

Test(http, a_head_is_a_get_without_its_body, .fini = stop)
{
    start((rt_server_config){ 0 });
    const char *answer = ask("HEAD /v1/policies HTTP/1.1", "");
    expect_status(answer, 200);
    cr_expect(rt_str_ends(rt_str_of(answer), RT_STR("\r\n\r\n")));
}

Test(http, only_pages_of_allowed_origins_may_ask_across, .fini = stop)
{
    static const rt_str allowed[] = { { "https://app.example.com", 23 } };
    start((rt_server_config){ .allowed_origins = allowed, .allowed_origin_count = 1 });
    const char *answer =
        ask("OPTIONS /v1/executions HTTP/1.1\r\nOrigin: https://app.example.com\r\n"
            "Access-Control-Request-Method: POST",
            "");
    expect_status(answer, 204);
    expect(answer, "Access-Control-Allow-Origin: https://app.example.com\r\n");
    expect(answer, "Access-Control-Allow-Methods: POST, GET, HEAD, OPTIONS\r\n");
    answer = ask("OPTIONS /v1/executions HTTP/1.1\r\nOrigin: https://evil.example", "");
    expect_status(answer, 403);
    cr_expect(!strstr(answer, "Access-Control-Allow-Origin"));
}

static const char *ask_with_key(const char *request, rt_str secret)
{
    return ask(rt_arena_printf(&arena, "%s HTTP/1.1\r\nAuthorization: Bearer %.*s", request,
                               RT_FMT(secret))
                   .ptr,
               "");
}

static rt_key new_key(rt_role role, uint64_t rate, rt_str *secret)
{
    rt_error err = { 0 };
    rt_key key;
    rt_key_spec spec = { .name = RT_STR("k"),
                         .organisation = RT_STR("acme"),
                         .workspace = RT_STR("main"),
                         .user = RT_STR("ann"),
                         .role = role,
                         .rate_per_minute = rate };
    cr_assert(rt_key_create(store, &spec, &arena, &key, secret, &err), "%s", err.text);
    return key;
}

Test(http, a_key_opens_what_its_role_may_and_no_more, .fini = stop)
{
    rt_str viewer, admin;
    start((rt_server_config){ .is_auth_required = true });
    new_key(RT_ROLE_VIEWER, 0, &viewer);
    new_key(RT_ROLE_ADMIN, 0, &admin);
    const char *answer = ask("GET /v1/policies HTTP/1.1", "");
    expect_status(answer, 401);
    expect(answer, "WWW-Authenticate: Bearer");
    expect_status(ask_with_key("GET /v1/policies", RT_STR("rt_wrong")), 401);
    expect_status(ask_with_key("GET /v1/policies", viewer), 200);
    answer = ask_with_key("GET /v1/keys", viewer);
    expect_status(answer, 403);
    expect(answer, "You do not have permission to list keys");
    expect_status(ask_with_key("GET /v1/keys", admin), 200);
    expect_status(ask("GET /openapi.json HTTP/1.1", ""), 200);
}

Test(http, a_revoked_key_stops_working_at_once, .fini = stop)
{
    rt_str admin, other;
    start((rt_server_config){ .is_auth_required = true });
    new_key(RT_ROLE_ADMIN, 0, &admin);
    rt_key key = new_key(RT_ROLE_VIEWER, 0, &other);
    expect_status(ask_with_key("GET /v1/policies", other), 200);
    rt_str call = rt_arena_printf(&arena, "DELETE /v1/keys/%.*s", RT_FMT(key.id));
    expect_status(ask_with_key(call.ptr, admin), 204);
    expect_status(ask_with_key("GET /v1/policies", other), 401);
}

Test(http, a_key_asks_at_its_own_rate, .fini = stop)
{
    rt_str slow, fast;
    const char *answer = "";
    start((rt_server_config){ .is_auth_required = true });
    new_key(RT_ROLE_VIEWER, 3, &slow);
    new_key(RT_ROLE_VIEWER, 0, &fast);
    for (int i = 0; i < 4; i++)
        answer = ask_with_key("GET /v1/policies", slow);
    expect_status(answer, 429);
    expect(answer, "\r\nRetry-After: ");
    expect_status(ask_with_key("GET /v1/policies", fast), 200);
}

Test(http, bad_keys_are_soon_not_looked_up_any_more_and_good_ones_are, .fini = stop)
{
    rt_str good;
    const char *answer = "";
    start((rt_server_config){ .is_auth_required = true });
    new_key(RT_ROLE_VIEWER, 0, &good);
    expect_status(ask_with_key("GET /v1/policies", good), 200);
    for (int i = 0; i < 30; i++)
        answer = ask_with_key("GET /v1/policies", rt_arena_printf(&arena, "rt_bad%d", i));
    expect_status(answer, 429);
    expect_status(ask_with_key("GET /v1/policies", good), 200);
}

Test(http, a_client_that_says_nothing_is_hung_up_on, .fini = stop, .timeout = 10)
{
    start((rt_server_config){ .request_timeout_ms = 1000 });
    int fd RT_CLEANUP(rt_closep) = dial();
    rt_write_all(fd,
                 RT_STR("POST /v1/keys HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n"),
                 NULL);
    cr_assert_str_empty(read_all(fd));
}

Test(http, headers_that_drip_in_are_not_waited_for, .fini = stop, .timeout = 20)
{
    start((rt_server_config){ .request_timeout_ms = 1000 });
    int fd RT_CLEANUP(rt_closep) = dial();
    uint64_t begin = rt_now_ns();
    rt_error err = { 0 };
    rt_write_all(fd, RT_STR("GET / HTTP/1.1\r\nHost: localhost\r\n"), NULL);
    while (rt_write_all(fd, RT_STR("X-Drip: 1\r\n"), &err) && rt_now_ns() - begin < 10000000000)
        usleep(200000);
    cr_assert_neq(err.code, RT_OK, "it still listens");
}

Test(http, a_server_that_stops_takes_nobody_new, .fini = stop)
{
    start((rt_server_config){ 0 });
    expect_status(ask("GET /v1/policies HTTP/1.1", ""), 200);
    cr_assert(rt_server_stop(server, 5000));
    cr_assert_eq(dial(), -1);
}

Test(http, without_keys_it_listens_to_this_machine_only)
{
    rt_error err = { 0 };
    rt_server *none = NULL;
    rt_server_config config = { .bind = RT_STR("0.0.0.0") };
    cr_assert(!rt_server_start(&config, &none, &err));
    cr_assert_eq(err.code, RT_INVALID);
    cr_assert_null(none);
}

Test(http, a_port_in_use_is_an_error_that_says_so, .fini = stop)
{
    rt_error err = { 0 };
    rt_server *none = NULL;
    start((rt_server_config){ 0 });
    rt_server_config config = { .port = rt_server_port(server) };
    cr_assert(!rt_server_start(&config, &none, &err));
    cr_assert(strstr(err.text, "Address already in use"), "%s", err.text);
}
