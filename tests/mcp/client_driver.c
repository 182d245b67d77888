/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client_driver.c - the MCP client by hand, for tests/mcp.
 *
 *     mcp-client-driver CONFIG.json       {"mcpServers":{...}}
 *
 * Reads one operation a line from standard input, runs each in a thread of its own, and writes what
 * came of it as one line of JSON; at the end of input it waits for them, closes the servers and
 * ends.
 *
 *     {"id":1,"op":"list","server":"x"}
 *     {"id":2,"op":"call","tool":"x:echo","arguments":{},"deadline_ms":500,"cancel_ms":100,
 *      "progress":true,"brief":true}
 *     {"id":3,"op":"request","server":"x","method":"resources/read","params":{}}
 *     {"id":4,"op":"health","server":"x"}        {"id":5,"op":"close","server":"x"}
 */
#include "tools/mcp.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { SERVERS_MAX = 64, THREADS_MAX = 4096 };

static pthread_mutex_t printing = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t listing = PTHREAD_MUTEX_INITIALIZER; /* for what follows */
static rt_provider *servers[SERVERS_MAX];
static size_t server_count;

typedef struct job {
    rt_arena arena;
    rt_json op;
} job;

/* -- Telling ----------------------------------------------------------------------------------- */

static void say(rt_buf *line)
{
    rt_buf_addc(line, '\n');
    pthread_mutex_lock(&printing);
    fwrite(line->ptr, 1, line->len, stdout);
    fflush(stdout);
    pthread_mutex_unlock(&printing);
}

static void begin(rt_json_writer *w, rt_buf *line, rt_json op)
{
    rt_json_begin(w, line);
    rt_jw_object(w);
    rt_jw_kjson(w, "id", rt_json_get_c(op, "id"));
}

static void put_error(rt_json_writer *w, const rt_error *err)
{
    rt_jw_kobject(w, "error");
    rt_jw_kstr(w, "code", rt_str_of(rt_code_name(err->code)));
    rt_jw_kstr(w, "text", rt_str_of(err->text));
    rt_jw_end(w);
}

static void on_change(void *ctx, rt_provider *provider)
{
    rt_buf line RT_CLEANUP(rt_buf_done) = { 0 };
    (void)ctx;
    rt_buf_addf(&line, "{\"event\":\"change\",\"server\":\"%s\"}", provider->name);
    say(&line);
}

static void on_progress(void *ctx, double done, double total, rt_str message)
{
    rt_buf line RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    begin(&w, &line, ((job *)ctx)->op);
    rt_jw_karray(&w, "progress");
    rt_jw_double(&w, done);
    rt_jw_double(&w, total);
    rt_jw_str(&w, message);
    rt_jw_end(&w);
    rt_jw_end(&w);
    say(&line);
}

/* -- Doing ------------------------------------------------------------------------------------- */

static rt_provider *find(rt_str name)
{
    rt_provider *found = NULL;
    pthread_mutex_lock(&listing);
    for (size_t i = 0; i < server_count; i++)
        if (rt_str_eq_c(name, servers[i]->name))
            found = servers[i];
    pthread_mutex_unlock(&listing);
    if (found)
        return found;
    fprintf(stderr, "no server %.*s\n", RT_FMT(name));
    exit(2);
}

static bool do_list(job *j, rt_json_writer *w, rt_error *err)
{
    rt_provider *provider = find(rt_json_str(rt_json_get_c(j->op, "server")));
    rt_tool *tools;
    size_t count;
    if (!provider->list(provider, &j->arena, &tools, &count, err))
        return false;
    rt_jw_karray(w, "tools");
    for (size_t i = 0; i < count; i++) {
        rt_jw_object(w);
        rt_jw_kstr(w, "name", tools[i].name);
        rt_jw_kstr(w, "title", tools[i].title);
        rt_jw_kstr(w, "description", tools[i].description);
        rt_jw_kstr(w, "version", tools[i].version);
        rt_jw_ku64(w, "flags", tools[i].flags);
        rt_jw_kraw(w, "input_schema", tools[i].input_schema);
        if (tools[i].output_schema.len)
            rt_jw_kraw(w, "output_schema", tools[i].output_schema);
        rt_jw_end(w);
    }
    rt_jw_end(w);
    return true;
}

static int timer(int64_t ms)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    struct itimerspec when = { .it_value = { ms / 1000, ms % 1000 * 1000000 + 1 } };
    timerfd_settime(fd, 0, &when, NULL);
    return fd;
}

static bool do_call(job *j, rt_json_writer *w, rt_error *err)
{
    rt_str tool = rt_json_str(rt_json_get_c(j->op, "tool")), rest = tool, server;
    rt_buf arguments RT_CLEANUP(rt_buf_done) = { 0 };
    rt_tool_result result;
    int64_t ms;
    int cancel RT_CLEANUP(rt_closep) = -1;
    rt_str_cut(&rest, ':', &server);
    rt_provider *provider = find(server);
    if (!rt_json_is_absent(rt_json_get_c(j->op, "arguments")))
        rt_json_print(rt_json_get_c(j->op, "arguments"), &arguments);
    if (rt_json_i64(rt_json_get_c(j->op, "cancel_ms"), &ms))
        cancel = timer(ms);
    rt_tool_call call = { .tool = tool,
                          .arguments = rt_buf_str(&arguments),
                          .cancel_fd = cancel,
                          .traceparent = rt_json_str(rt_json_get_c(j->op, "traceparent")) };
    if (rt_json_i64(rt_json_get_c(j->op, "deadline_ms"), &ms))
        call.deadline_ns = rt_now_ns() + (uint64_t)ms * 1000000;
    if (rt_json_bool(rt_json_get_c(j->op, "progress"), false)) {
        call.on_progress = on_progress;
        call.progress_ctx = j;
    }
    if (!provider->call(provider, &call, &j->arena, &result, err))
        return false;
    rt_jw_kbool(w, "is_error", result.is_error);
    rt_jw_ku64(w, "elapsed_us", result.elapsed_us);
    rt_jw_ku64(w, "value_size", result.value.len);
    if (!rt_json_bool(rt_json_get_c(j->op, "brief"), false)) {
        rt_jw_kraw(w, "value", result.value);
        rt_jw_kraw(w, "content", result.content);
    }
    return true;
}

static bool do_request(job *j, rt_json_writer *w, rt_error *err)
{
    rt_buf params RT_CLEANUP(rt_buf_done) = { 0 };
    rt_str result;
    rt_json_print(rt_json_get_c(j->op, "params"), &params);
    if (!rt_mcp_request(find(rt_json_str(rt_json_get_c(j->op, "server"))),
                        rt_json_str(rt_json_get_c(j->op, "method")), rt_buf_str(&params), NULL,
                        &j->arena, &result, err))
        return false;
    rt_jw_kraw(w, "result", result);
    return true;
}

static bool do_health(job *j, rt_json_writer *w, rt_error *err)
{
    rt_provider *provider = find(rt_json_str(rt_json_get_c(j->op, "server")));
    (void)err;
    rt_jw_key(w, RT_STR("health"));
    provider->health(provider, w);
    return true;
}

static bool do_close(job *j, rt_json_writer *w, rt_error *err)
{
    rt_provider *provider = find(rt_json_str(rt_json_get_c(j->op, "server")));
    (void)w, (void)err;
    pthread_mutex_lock(&listing);
    for (size_t i = 0; i < server_count; i++)
        if (servers[i] == provider)
            servers[i] = servers[--server_count];
    pthread_mutex_unlock(&listing);
    provider->close(provider);
    return true;
}

static const struct {
    const char *name;
    bool (*run)(job *j, rt_json_writer *w, rt_error *err);
} ops[] = {
    { "list", do_list },     { "call", do_call },   { "request", do_request },
    { "health", do_health }, { "close", do_close },
};

static void *run(void *arg)
{
    job *j = arg;
    rt_str name = rt_json_str(rt_json_get_c(j->op, "op"));
    for (size_t i = 0; i < RT_COUNT(ops); i++) {
        if (!rt_str_eq_c(name, ops[i].name))
            continue;
        rt_buf line RT_CLEANUP(rt_buf_done) = { .max = (size_t)512 << 20 };
        rt_json_writer w;
        rt_error err = { 0 };
        begin(&w, &line, j->op);
        uint64_t start = rt_now_ns();
        if (!ops[i].run(j, &w, &err))
            put_error(&w, &err);
        rt_jw_kdouble(&w, "ms", (double)(rt_now_ns() - start) / 1e6);
        rt_jw_end(&w);
        say(&line);
    }
    rt_arena_done(&j->arena);
    free(j);
    return NULL;
}

/* -- The whole --------------------------------------------------------------------------------- */

static bool open_servers(const char *path, rt_arena *arena, rt_error *err)
{
    rt_str text;
    rt_mcp_configs configs;
    if (!rt_read_file(path, 4 << 20, arena, &text, err) ||
        !rt_mcp_config_read(text, (const char *const *)environ, arena, &configs, err))
        return false;
    for (size_t i = 0; i < configs.problem_count; i++) {
        rt_buf line RT_CLEANUP(rt_buf_done) = { 0 };
        rt_json_writer w;
        rt_json_begin(&w, &line);
        rt_jw_object(&w);
        rt_jw_kstr(&w, "event", RT_STR("problem"));
        rt_jw_kstr(&w, "server", configs.problems[i].name);
        put_error(&w, &configs.problems[i].error);
        rt_jw_end(&w);
        say(&line);
    }
    const char *interval = getenv("CHECK_INTERVAL_MS");
    for (size_t i = 0; i < configs.count && i < SERVERS_MAX; i++) {
        configs.items[i].check_interval_ms = interval ? strtoull(interval, NULL, 10) : 0;
        if (configs.items[i].is_disabled)
            continue;
        if (!rt_mcp_open(&configs.items[i], &servers[server_count], err))
            return false;
        servers[server_count++]->on_change = on_change;
    }
    return true;
}

int main(int argc, char **argv)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    static pthread_t threads[THREADS_MAX];
    size_t count = 0, size = 0;
    char *line = NULL;
    ssize_t len;
    rt_error err = { 0 };
    signal(SIGPIPE, SIG_IGN);
    if (argc != 2 || !open_servers(argv[1], &arena, &err)) {
        fprintf(stderr, "%s\n", argc == 2 ? err.text : "usage: mcp-client-driver CONFIG.json");
        return 2;
    }
    while (count < THREADS_MAX && (len = getline(&line, &size, stdin)) > 0) {
        job *j = calloc(1, sizeof(*j));
        if (!rt_json_parse((rt_str){ line, (size_t)len }, &j->arena, &j->op, &err)) {
            fprintf(stderr, "%s\n", err.text);
            return 2;
        }
        pthread_create(&threads[count++], NULL, run, j);
    }
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < server_count; i++)
        servers[i]->close(servers[i]);
    free(line);
    return 0;
}
