/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Against a real redis-server of each test's own, on a Unix socket in a temporary directory.
 */
#include "store/cache_internal.h"

#include <criterion/criterion.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS (UINT64_C(20) * 1000 * 1000 * 1000)
#define MS          UINT64_C(1000000)

/* -- A server of our own ----------------------------------------------------------------------- */

typedef struct server {
    char directory[32], socket[64], url[96];
    const char *password;
    pid_t pid;
} server;

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

static redisContext *client(const server *s)
{
    redisContext *context = redisConnectUnix(s->socket);
    cr_assert(context);
    if (!context->err && s->password)
        freeReplyObject(redisCommand(context, "AUTH %s", s->password));
    return context;
}

static bool answers(const server *s)
{
    redisContext *context = client(s);
    redisReply *reply = context->err ? NULL : redisCommand(context, "PING");
    bool ok = reply && reply->type == REDIS_REPLY_STATUS;
    if (reply)
        freeReplyObject(reply);
    redisFree(context);
    return ok;
}

static void server_start(server *s)
{
    s->pid = fork();
    cr_assert_geq(s->pid, 0);
    if (s->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", s->socket, "--save",
               "", "--appendonly", "no", "--dir", s->directory, "--logfile", "/dev/null",
               "--requirepass", s->password ? s->password : "", (char *)NULL);
        _exit(127);
    }
    for (uint64_t end = rt_now_ns() + PATIENCE_NS; !answers(s); pause_briefly())
        cr_assert(rt_now_ns() < end && waitpid(s->pid, NULL, WNOHANG) == 0, "redis-server");
}

static void server_stop(server *s)
{
    if (s->pid > 0) {
        kill(s->pid, SIGKILL);
        waitpid(s->pid, NULL, 0);
    }
    s->pid = 0;
}

static void server_done(server *s)
{
    server_stop(s);
    unlink(s->socket);
    rmdir(s->directory);
}

static server server_new(const char *password)
{
    server s = { .directory = "/tmp/retort-cache-XXXXXX", .password = password };
    cr_assert(mkdtemp(s.directory));
    snprintf(s.socket, sizeof(s.socket), "%s/redis.sock", s.directory);
    snprintf(s.url, sizeof(s.url), "unix://%s", s.socket);
    server_start(&s);
    return s;
}

/* What the server says to a command, as a number or as the length of a text. */
static long long tell(const server *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    redisContext *context = client(s);
    redisReply *reply = redisvCommand(context, format, arguments);
    va_end(arguments);
    cr_assert(reply, "%s", context->errstr);
    cr_assert_neq(reply->type, REDIS_REPLY_ERROR, "%s", reply->str);
    long long answer = reply->type == REDIS_REPLY_INTEGER ? reply->integer : (long long)reply->len;
    freeReplyObject(reply);
    redisFree(context);
    return answer;
}

/* -- Nodes ------------------------------------------------------------------------------------- */

/* The time-out is generous where time is not the subject: the machine may be busy. */
static rt_cache *node_of(rt_str url, uint64_t ttl_ms, uint64_t timeout_ms)
{
    rt_cache *cache = NULL;
    rt_error err = { 0 };
    rt_cache_config config = { .redis_url = url, .ttl_ms = ttl_ms, .redis_timeout_ms = timeout_ms };
    cr_assert(rt_cache_open(&config, &cache, &err), "%s", err.text);
    return cache;
}

static rt_cache *node(const server *s)
{
    rt_cache *cache = node_of(rt_str_of(s->url), 0, 5000);
    rt_cache_stats stats = rt_cache_stats_get(cache);
    cr_assert(stats.is_redis_up, "%s", stats.redis_state.text);
    return cache;
}

static void put(rt_cache *cache, const char *key, const char *value, const char *tag)
{
    rt_str tags[] = { rt_str_of(tag) };
    rt_cache_put(cache, rt_str_of(key), rt_str_of(value), tags, tag != NULL, 1500);
}

static bool get(rt_cache *cache, const char *key, const char *expected)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str value;
    if (!rt_cache_get(cache, rt_str_of(key), &arena, &value))
        return false;
    cr_expect(rt_str_eq_c(value, expected), "%s: %.*s", key, RT_FMT(value));
    return true;
}

static bool is_up(rt_cache *cache)
{
    return rt_cache_stats_get(cache).is_redis_up;
}

static void wait_until_up(rt_cache *cache, bool wanted)
{
    for (uint64_t end = rt_now_ns() + PATIENCE_NS; is_up(cache) != wanted; pause_briefly())
        cr_assert_lt(rt_now_ns(), end, "%s", rt_cache_stats_get(cache).redis_state.text);
}

static uint64_t ms_since(uint64_t start_ns)
{
    return (rt_now_ns() - start_ns) / MS;
}

/* -- Sharing ----------------------------------------------------------------------------------- */

Test(cache_redis, two_nodes_share_a_value)
{
    server s RT_CLEANUP(server_done) = server_new(NULL);
    rt_cache *a RT_CLEANUP(rt_cache_closep) = node(&s);
    rt_cache *b RT_CLEANUP(rt_cache_closep) = node(&s);
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str key = RT_STR("a\0key"), value = RT_STR("a\0\r\nvalue"), got;
    rt_cache_put(a, key, value, NULL, 0, 1500);
    cr_assert(rt_cache_get(b, key, &arena, &got));
    cr_expect(rt_str_eq(got, value));
    cr_assert(rt_cache_get(b, key, &arena, &got));
    rt_cache_stats stats = rt_cache_stats_get(b);
    cr_expect_eq(stats.hits, 2);
    cr_expect_eq(stats.redis_hits, 1, "the second came from memory");
    cr_expect_eq(stats.saved_us, 3000);
    cr_expect_eq(stats.redis_errors, 0);
    cr_expect(!rt_cache_get(b, RT_STR("a"), &arena, &got));
}

Test(cache_redis, the_names_and_times_in_redis_are_as_documented)
{
    server s RT_CLEANUP(server_done) = server_new(NULL);
    rt_cache *a RT_CLEANUP(rt_cache_closep) = node(&s);
    put(a, "k", "v", "github");
    cr_expect_eq(tell(&s, "EXISTS retort:result:v1:k"), 1);
    long long life = tell(&s, "PTTL retort:result:v1:k");
    cr_expect(life > 290000 && life <= 300000, "%lld", life);
    cr_expect_eq(tell(&s, "GET retort:tag:v1:github"), STORE_TOKEN_SIZE);
    life = tell(&s, "PTTL retort:tag:v1:github");
    cr_expect(life > 590000 && life <= 600000, "%lld", life);
}

Test(cache_redis, a_megabyte_is_shared_and_more_is_not)
{
    enum { MEGABYTE = 1 << 20 };
    server s RT_CLEANUP(server_done) = server_new(NULL);
    rt_cache *a RT_CLEANUP(rt_cache_closep) = node(&s);
    rt_cache *b RT_CLEANUP(rt_cache_closep) = node(&s);
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str large = { rt_arena_alloc(&arena, MEGABYTE + 1), MEGABYTE }, got;
    rt_cache_put(a, RT_STR("large"), large, NULL, 0, 0);
    cr_assert(rt_cache_get(b, RT_STR("large"), &arena, &got));
    cr_expect(rt_str_eq(got, large));
    large.len++;
    rt_cache_put(a, RT_STR("larger"), large, NULL, 0, 0);
    cr_expect_eq(tell(&s, "EXISTS retort:result:v1:larger"), 0);
}

Test(cache_redis, a_result_dies_on_every_node_at_its_time)
{
    server s RT_CLEANUP(server_done) = server_new(NULL);
    rt_cache *a RT_CLEANUP(rt_cache_closep) = node_of(rt_str_of(s.url), 300, 5000);
    rt_cache *b RT_CLEANUP(rt_cache_closep) = node(&s);
    uint64_t put_ns = rt_now_ns();
    put(a, "k", "v", NULL);
    put(a, "late", "v", NULL);
    if (ms_since(put_ns) < 200)
        cr_expect(get(b, "k", "v"));
    while (ms_since(put_ns) < 200)
        pause_briefly();
    get(b, "late", "v"); /* read with a third of its life left, it has no more here */
    for (uint64_t end = rt_now_ns() + PATIENCE_NS; get(b, "k", "v") || get(b, "late", "v");)
        cr_assert_lt(rt_now_ns(), end);
    cr_expect_lt(ms_since(put_ns), 2000, "b's own time to live is 300 s");
    cr_expect(!get(a, "k", "v"));
}

Test(cache_redis, invalidating_on_one_node_reaches_the_other)
{
    server s RT_CLEANUP(server_done) = server_new(NULL);
    rt_cache *a RT_CLEANUP(rt_cache_closep) = node(&s);
    rt_cache *b RT_CLEANUP(rt_cache_closep) = node(&s);
    put(a, "tagged", "v", "github");
    put(a, "other", "v", "mail");
    put(a, "plain", "v", NULL);
    cr_expect(get(b, "tagged", "v") && get(b, "other", "v") && get(b, "plain", "v"));

    uint64_t start_ns = rt_now_ns();
    cr_expect_eq(rt_cache_invalidate(a, RT_STR("github")), 1);
    cr_expect(!get(a, "tagged", "v"), "at once on this node");
    while (get(b, "tagged", "v"))
        cr_assert_lt(rt_now_ns(), start_ns + PATIENCE_NS);
    uint64_t took_ms = ms_since(start_ns);
    cr_expect_leq(took_ms, RT_CACHE_TRUST_MS + 500, "%lu ms", (unsigned long)took_ms);
    cr_expect(get(b, "other", "v") && get(b, "plain", "v"));
    cr_expect(get(a, "other", "v") && get(a, "plain", "v"));
    rt_cache *c RT_CLEANUP(rt_cache_closep) = node(&s);
    cr_expect(!get(c, "tagged", "v"), "it still lies in Redis, but is not good");

    put(b, "tagged", "new", "github");
    cr_expect(get(a, "tagged", "new") && get(c, "tagged", "new"));
}

static long long commands_so_far(const server *s)
{
    redisContext *context = client(s);
    redisReply *reply = redisCommand(context, "INFO stats");
    const char *line = strstr(reply->str, "total_commands_processed:");
    long long count = atoll(line + strlen("total_commands_processed:"));
    freeReplyObject(reply);
    redisFree(context);
    return count;
}

Test(cache_redis, untagged_hits_ask_nobody_and_tagged_ones_seldom)
{
    server s RT_CLEANUP(server_done) = server_new(NULL);
    rt_cache *a RT_CLEANUP(rt_cache_closep) = node(&s);
    put(a, "plain", "v", NULL);
    put(a, "tagged", "v", "github");
    long long before = commands_so_far(&s);
    uint64_t start_ns = rt_now_ns();
    while (ms_since(start_ns) < RT_CACHE_TRUST_MS + 200)
        cr_assert(get(a, "plain", "v") && get(a, "tagged", "v"));
    long long asked = commands_so_far(&s) - before - 1; /* INFO itself */
    cr_expect(asked >= 1 && asked <= 2, "%lld", asked);
}

Test(cache_redis, clear_reaches_redis_and_leaves_what_is_not_ours)
{
    server s RT_CLEANUP(server_done) = server_new(NULL);
    rt_cache *a RT_CLEANUP(rt_cache_closep) = node(&s);
    tell(&s, "SET somebody:elses 1");
    for (int i = 0; i < 3000; i++)
        tell(&s, "SET retort:result:v1:%d x", i);
    put(a, "k", "v", "github");
    rt_cache_clear(a);
    cr_expect(!get(a, "k", "v"));
    cr_expect_eq(tell(&s, "DBSIZE"), 1);
    cr_expect_eq(tell(&s, "EXISTS somebody:elses"), 1);
}

/* -- What does not belong there ---------------------------------------------------------------- */

Test(cache_redis, garbage_under_our_names_is_a_miss)
{
    server s RT_CLEANUP(server_done) = server_new(NULL);
    rt_cache *a RT_CLEANUP(rt_cache_closep) = node(&s);
    rt_cache *b RT_CLEANUP(rt_cache_closep) = node(&s);
    tell(&s, "SET retort:result:v1:garbage garbage");
    tell(&s, "SET retort:result:v1:empty %b", "", (size_t)0);
    tell(&s, "RPUSH retort:result:v1:list x");
    tell(&s, "SETRANGE retort:result:v1:huge 5000000 x");
    put(a, "cut", "v", NULL);
    put(a, "altered", "v", NULL);
    put(a, "moved", "v", NULL);
    tell(&s, "SETRANGE retort:result:v1:altered 35 x");
    tell(&s, "RENAME retort:result:v1:moved retort:result:v1:here");
    tell(&s, "APPEND retort:result:v1:cut x");
    static const char *const keys[] = {
        "garbage", "empty", "list", "huge", "cut", "altered", "here"
    };
    for (size_t i = 0; i < RT_COUNT(keys); i++)
        cr_expect(!get(b, keys[i], "v"), "%s", keys[i]);
    rt_cache_stats stats = rt_cache_stats_get(b);
    cr_expect(stats.is_redis_up, "%s", stats.redis_state.text);
    cr_expect_eq(stats.misses, RT_COUNT(keys));
    put(b, "garbage", "v", NULL);
    cr_expect(get(b, "garbage", "v") && get(a, "garbage", "v"));
}

Test(cache_redis, a_lost_token_only_costs_a_miss)
{
    server s RT_CLEANUP(server_done) = server_new(NULL);
    rt_cache *a RT_CLEANUP(rt_cache_closep) = node(&s);
    rt_cache *b RT_CLEANUP(rt_cache_closep) = node(&s);
    put(a, "k", "v", "github");
    tell(&s, "SET retort:tag:v1:github x");
    cr_expect(!get(b, "k", "v"));
    tell(&s, "DEL retort:tag:v1:github");
    tell(&s, "RPUSH retort:tag:v1:github x");
    put(b, "k", "v", "github"); /* no token to be had: kept here, not shared */
    cr_expect(get(b, "k", "v"));
    cr_expect(is_up(b));
}

/* -- Outages ----------------------------------------------------------------------------------- */

Test(cache_redis, a_redis_that_is_not_there_is_no_failure)
{
    uint64_t start_ns = rt_now_ns();
    rt_cache *cache RT_CLEANUP(rt_cache_closep) =
        node_of(RT_STR("unix:///nonexistent/redis.sock"), 0, 0);
    rt_cache_stats stats = rt_cache_stats_get(cache);
    cr_expect(stats.has_redis && !stats.is_redis_up);
    cr_expect_eq(stats.redis_state.code, RT_NOT_FOUND);
    cr_expect_str_eq(stats.redis_state.text, "Redis: connect: No such file or directory");
    put(cache, "k", "v", NULL);
    put(cache, "tagged", "v", "github");
    cr_expect(get(cache, "k", "v") && get(cache, "tagged", "v"));
    cr_expect(!get(cache, "other", ""));
    cr_expect_lt(ms_since(start_ns), 1000);
}

Test(cache_redis, killed_it_is_missed_and_restarted_it_is_found)
{
    server s RT_CLEANUP(server_done) = server_new(NULL);
    rt_cache *a RT_CLEANUP(rt_cache_closep) = node(&s);
    rt_cache *b RT_CLEANUP(rt_cache_closep) = node(&s);
    put(a, "k", "v", NULL);
    server_stop(&s);

    uint64_t start_ns = rt_now_ns();
    for (int i = 0; i < 1000; i++)
        cr_expect(!get(b, "k", "v"));
    cr_expect(get(a, "k", "v"), "memory is still there");
    put(a, "k2", "v", NULL);
    cr_expect_lt(ms_since(start_ns), 1000);
    cr_expect(!is_up(b));
    cr_expect_gt(rt_cache_stats_get(b).redis_errors, 0);

    server_start(&s);
    wait_until_up(a, true);
    wait_until_up(b, true);
    put(a, "k3", "v", NULL);
    cr_expect(get(b, "k3", "v"));
    cr_expect_eq(rt_cache_stats_get(b).redis_state.code, RT_OK);
}

Test(cache_redis, an_idle_connection_that_was_closed_is_no_outage)
{
    server s RT_CLEANUP(server_done) = server_new(NULL);
    rt_cache *a RT_CLEANUP(rt_cache_closep) = node(&s);
    put(a, "k", "v", NULL);
    cr_expect_geq(tell(&s, "CLIENT KILL TYPE normal SKIPME yes"), 1);
    rt_cache *b RT_CLEANUP(rt_cache_closep) = node(&s);
    cr_expect(!get(a, "none", ""));
    put(a, "k2", "v", NULL);
    cr_expect(get(b, "k2", "v"));
    cr_expect_eq(rt_cache_stats_get(a).redis_errors, 0);
}

Test(cache_redis, one_that_hangs_costs_its_time_out_once)
{
    server s RT_CLEANUP(server_done) = server_new(NULL);
    rt_cache *a RT_CLEANUP(rt_cache_closep) = node_of(rt_str_of(s.url), 0, 100);
    wait_until_up(a, true);
    put(a, "tagged", "v", "github");
    kill(s.pid, SIGSTOP);
    uint64_t start_ns = rt_now_ns();
    cr_expect(!get(a, "none", ""));
    uint64_t took_ms = ms_since(start_ns);
    cr_expect(took_ms >= 99 && took_ms < 1000, "%lu ms", (unsigned long)took_ms);
    cr_expect(!is_up(a));
    cr_expect_eq(rt_cache_stats_get(a).redis_state.code, RT_TIMEOUT);
    start_ns = rt_now_ns();
    for (int i = 0; i < 1000; i++)
        put(a, "k", "v", NULL);
    cr_expect_lt(ms_since(start_ns), 1000, "nobody waits again");
    kill(s.pid, SIGCONT);
    wait_until_up(a, true);
}

Test(cache_redis, what_was_invalidated_in_an_outage_does_not_come_back)
{
    server s RT_CLEANUP(server_done) = server_new(NULL);
    rt_cache *a RT_CLEANUP(rt_cache_closep) = node_of(rt_str_of(s.url), 0, 100);
    wait_until_up(a, true);
    rt_cache *b RT_CLEANUP(rt_cache_closep) = node(&s);
    put(b, "k", "v", "github");
    put(b, "other", "v", "mail");
    put(b, "kept", "v", "files");
    kill(s.pid, SIGSTOP);
    rt_cache_invalidate(a, RT_STR("mail")); /* sees that it is away */
    cr_expect(!is_up(a));
    rt_cache_invalidate(a, RT_STR("github")); /* is not even asked */
    kill(s.pid, SIGCONT);
    for (uint64_t end = rt_now_ns() + PATIENCE_NS;
         tell(&s, "EXISTS retort:tag:v1:github retort:tag:v1:mail") != 0; pause_briefly())
        cr_assert_lt(rt_now_ns(), end);
    rt_cache *c RT_CLEANUP(rt_cache_closep) = node(&s);
    cr_expect(!get(c, "k", "v") && !get(c, "other", "v"));
    cr_expect(get(c, "kept", "v"));
    wait_until_up(a, true);
    put(a, "again", "v", "mail");
    cr_expect(get(c, "again", "v"));
}

Test(cache_redis, too_many_invalidations_in_an_outage_invalidate_everything)
{
    server s RT_CLEANUP(server_done) = server_new(NULL);
    rt_cache *a RT_CLEANUP(rt_cache_closep) = node_of(rt_str_of(s.url), 0, 100);
    wait_until_up(a, true);
    rt_cache *b RT_CLEANUP(rt_cache_closep) = node(&s);
    put(b, "k", "v", "github");
    put(b, "plain", "v", NULL);
    kill(s.pid, SIGSTOP);
    for (int i = 0; i < 300; i++) {
        char tag[16];
        snprintf(tag, sizeof(tag), "tool%d", i);
        rt_cache_invalidate(a, rt_str_of(tag));
    }
    kill(s.pid, SIGCONT);
    for (uint64_t end = rt_now_ns() + PATIENCE_NS; tell(&s, "EXISTS retort:tag:v1:github") != 0;
         pause_briefly())
        cr_assert_lt(rt_now_ns(), end);
    rt_cache *c RT_CLEANUP(rt_cache_closep) = node(&s);
    cr_expect(!get(c, "k", "v"));
    cr_expect(get(c, "plain", "v"));
}

/* A server that takes a connection, says one thing, and says no more. */
static void *say_one_thing(void *argument)
{
    int listener = *(int *)argument;
    static const char *const things[] = { "HTTP/1.1 400 Bad Request\r\n\r\n", "*2000000000\r\n",
                                          "$2000000000\r\n", "+", "" };
    for (size_t i = 0;; i = (i + 1) % RT_COUNT(things)) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            return NULL;
        send(fd, things[i], strlen(things[i]), MSG_NOSIGNAL);
        char bytes[256];
        while (recv(fd, bytes, sizeof(bytes), 0) > 0)
            ; /* until the other side gives up */
        close(fd);
    }
}

Test(cache_redis, what_is_no_redis_is_away)
{
    char directory[] = "/tmp/retort-cache-XXXXXX";
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    cr_assert(mkdtemp(directory));
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", directory);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    cr_assert_eq(listen(listener, 8), 0);
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, say_one_thing, &listener), 0);
    char url[128];
    snprintf(url, sizeof(url), "unix://%s", address.sun_path);
    for (int i = 0; i < 5; i++) {
        uint64_t start_ns = rt_now_ns();
        rt_cache *cache RT_CLEANUP(rt_cache_closep) = node_of(rt_str_of(url), 0, 0);
        cr_expect(!is_up(cache) && !get(cache, "k", ""));
        cr_expect_lt(ms_since(start_ns), 1000);
    }
    shutdown(listener, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(listener);
    unlink(address.sun_path);
    rmdir(directory);
}

/* -- Logging in -------------------------------------------------------------------------------- */

static rt_cache_stats state_with(const server *s, const char *login, const char *tail)
{
    char url[160];
    snprintf(url, sizeof(url), "unix://%s%s%s", login, s->socket, tail);
    rt_cache *cache RT_CLEANUP(rt_cache_closep) = node_of(rt_str_of(url), 0, 5000);
    uint64_t start_ns = rt_now_ns();
    cr_expect(!get(cache, "k", ""));
    cr_expect_lt(ms_since(start_ns), 1000);
    return rt_cache_stats_get(cache);
}

Test(cache_redis, a_wrong_password_is_told_and_never_shown)
{
    server s RT_CLEANUP(server_done) = server_new("right");
    rt_cache_stats stats = state_with(&s, ":hunter2@", "");
    cr_expect(!stats.is_redis_up);
    cr_expect_eq(stats.redis_state.code, RT_DENIED);
    cr_expect_str_eq(stats.redis_state.text, "Redis: it refused the password");
    stats = state_with(&s, "", "");
    cr_expect_eq(stats.redis_state.code, RT_DENIED);
    cr_expect_str_eq(stats.redis_state.text, "Redis: it wants a password, and the URL has none");
    cr_expect(state_with(&s, ":right@", "").is_redis_up);
    cr_expect(state_with(&s, "default:right@", "").is_redis_up);
    stats = state_with(&s, "me:right@", "");
    cr_expect_str_eq(stats.redis_state.text, "Redis: it refused the user or the password");
}

Test(cache_redis, the_database_is_the_one_of_the_url)
{
    server s RT_CLEANUP(server_done) = server_new(NULL);
    char url[128];
    snprintf(url, sizeof(url), "%s?db=2", s.url);
    rt_cache *a RT_CLEANUP(rt_cache_closep) = node_of(rt_str_of(url), 0, 5000);
    rt_cache *b RT_CLEANUP(rt_cache_closep) = node(&s);
    put(a, "k", "v", NULL);
    cr_expect(!get(b, "k", "v"));
    cr_expect_eq(tell(&s, "EXISTS retort:result:v1:k"), 0);
    rt_cache_stats stats = state_with(&s, "", "?db=99");
    cr_expect_str_eq(stats.redis_state.text, "Redis: it refused the database");
}

/* A port nobody has; somebody may take it before we do, so ask the server, and try again. */
static unsigned open_port(const server *s)
{
    for (int tries = 0; tries < 20; tries++) {
        struct sockaddr_in address = { .sin_family = AF_INET,
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof(address);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bind(fd, (struct sockaddr *)&address, size);
        getsockname(fd, (struct sockaddr *)&address, &size);
        close(fd);
        redisContext *context = client(s);
        redisReply *reply = redisCommand(context, "CONFIG SET port %d", ntohs(address.sin_port));
        bool ok = reply && reply->type == REDIS_REPLY_STATUS;
        freeReplyObject(reply);
        redisFree(context);
        if (ok)
            return ntohs(address.sin_port);
    }
    cr_assert_fail("no port");
    return 0;
}

Test(cache_redis, it_is_reached_over_tcp_by_name_and_by_address)
{
    server s RT_CLEANUP(server_done) = server_new("right");
    char url[128];
    unsigned port = open_port(&s);
    snprintf(url, sizeof(url), "redis://:right@localhost:%u/1", port);
    rt_cache *a RT_CLEANUP(rt_cache_closep) = node_of(rt_str_of(url), 0, 5000);
    snprintf(url, sizeof(url), "redis://default:right@127.0.0.1:%u/1", port);
    rt_cache *b RT_CLEANUP(rt_cache_closep) = node_of(rt_str_of(url), 0, 5000);
    cr_expect(is_up(a), "%s", rt_cache_stats_get(a).redis_state.text);
    put(a, "k", "v", "github");
    cr_expect(get(b, "k", "v"));
    rt_cache *c RT_CLEANUP(rt_cache_closep) = node_of(RT_STR("redis://no.such.invalid"), 0, 5000);
    cr_expect(!is_up(c));
    cr_expect_eq(rt_cache_stats_get(c).redis_state.code, RT_UNAVAILABLE);
}

/* -- Many threads ------------------------------------------------------------------------------ */

static void *share(void *argument)
{
    rt_cache **nodes = argument;
    for (int i = 0; i < 300; i++) {
        char key[16], value[16], tag[16];
        snprintf(key, sizeof(key), "key %d", i % 50);
        snprintf(value, sizeof(value), "value %d", i % 50);
        snprintf(tag, sizeof(tag), "tag %d", i % 5);
        rt_cache *cache = nodes[i / 50 % 2]; /* what one puts the other will ask for */
        if (i % 40 == 39)
            rt_cache_invalidate(cache, rt_str_of(tag));
        else if (i % 3 == 0)
            put(cache, key, value, i % 2 ? tag : NULL);
        else
            get(cache, key, value);
    }
    return NULL;
}

Test(cache_redis, many_threads_share_few_connections)
{
    server s RT_CLEANUP(server_done) = server_new(NULL);
    rt_cache *nodes[] = { node(&s), node(&s) };
    pthread_t threads[8];
    for (size_t i = 0; i < RT_COUNT(threads); i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, share, nodes), 0);
    for (size_t i = 0; i < RT_COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < RT_COUNT(nodes); i++) {
        rt_cache_stats stats = rt_cache_stats_get(nodes[i]);
        cr_expect(stats.is_redis_up && stats.redis_errors == 0, "%s", stats.redis_state.text);
        cr_expect_gt(stats.redis_hits, 0);
        rt_cache_close(nodes[i]);
    }
}
