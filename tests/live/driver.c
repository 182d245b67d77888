/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.c - sessions by hand: JSON lines in, JSON lines out, for the tests in this folder.
 *
 *     {"op":"open","live":"a","language":"python","policy":{"timeout":"5s"}}
 *     {"op":"run","live":"a","code":"x = 1","language":"python","timeout":"1s","tag":7}
 *                                           without "live": in a fresh cell; with "desk":["github"]
 *                                           the code has the tools of desk.h
 *     {"op":"branch","live":"a","as":"b"}   {"op":"close","live":"a"}   {"op":"alive","live":"a"}
 *     {"op":"write","live":"a","path":"x","data":"text"}   read, list, remove
 *     {"op":"cancel","tag":7}               ends a run under way: runs have a thread each
 *
 * Each line is answered by one line with the same "tag"; a failure is {"error":{code,message}}.
 */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "desk.h"
#include "runtimes/runtimes.h"

#define LINE_MAX_BYTES (64u << 20)
#define LIVES_MAX      64
#define FILE_MAX       (64u << 20)

typedef struct job {
    rt_arena arena;
    rt_json order;
    int64_t tag;
    rt_canceller canceller;
    struct job *next;
} job;

static struct {
    char name[32];
    rt_live *live;
} lives[LIVES_MAX];
static rt_runtime *local;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* over jobs, lives and stdout */
static job *jobs;

static rt_str text_of(const job *j, const char *key)
{
    return rt_json_str(rt_json_get_c(j->order, key));
}

static rt_live **find(rt_str name)
{
    for (size_t i = 0; i < LIVES_MAX; i++)
        if (lives[i].live && rt_str_eq_c(name, lives[i].name))
            return &lives[i].live;
    return NULL;
}

static void keep(rt_str name, rt_live *live)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < LIVES_MAX; i++)
        if (!lives[i].live) {
            snprintf(lives[i].name, sizeof(lives[i].name), "%.*s", RT_FMT(name));
            lives[i].live = live;
            break;
        }
    pthread_mutex_unlock(&lock);
}

static void answer(const job *j, rt_buf *text)
{
    pthread_mutex_lock(&lock);
    printf("{\"tag\":%" PRId64 ",%.*s}\n", j->tag, (int)text->len, text->ptr);
    fflush(stdout);
    pthread_mutex_unlock(&lock);
}

static bool read_policy(job *j, rt_policy *policy, rt_error *err)
{
    rt_str key;
    rt_json value;
    rt_json_iter it = rt_json_each(rt_json_get_c(j->order, "policy"));
    *policy = *rt_policy_preset(RT_STR("default"));
    while (rt_json_next(&it, &key, &value))
        if (!rt_policy_set(policy, key, rt_json_str(value), &j->arena, err))
            return false;
    return true;
}

static bool do_open(job *j, rt_live *live, rt_buf *out, rt_error *err)
{
    rt_policy policy;
    (void)live, (void)out;
    if (!read_policy(j, &policy, err))
        return false;
    rt_live_spec spec = { .language = text_of(j, "language"), .policy = &policy };
    if (!rt_live_open(local, &spec, &live, err))
        return false;
    keep(text_of(j, "live"), live);
    return true;
}

static bool do_run(job *j, rt_live *live, rt_buf *out, rt_error *err)
{
    rt_policy policy;
    rt_outcome outcome;
    rt_json_writer w;
    rt_buf input RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json given = rt_json_get_c(j->order, "input");
    if (!read_policy(j, &policy, err))
        return false;
    rt_run run = { .language = text_of(j, "language"),
                   .code = text_of(j, "code"),
                   .policy = &policy,
                   .stdin_data = text_of(j, "stdin"),
                   .live = live,
                   .canceller = &j->canceller,
                   .has_input = !rt_json_is_absent(given) };
    if (run.has_input)
        rt_json_print(given, &input);
    run.input = rt_buf_str(&input);
    rt_json servers = rt_json_get_c(j->order, "desk");
    rt_buf names RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_print(servers, &names);
    test_desk *desk = rt_json_is_absent(servers) ? NULL : test_desk_new(rt_buf_str(&names));
    run.desk = desk ? test_desk_face(desk) : NULL;
    bool ok = local->execute(local, &run, &j->arena, &outcome, err);
    test_desk_free(desk);
    if (!ok)
        return false;
    rt_buf_add(out, RT_STR(",\"outcome\":"));
    rt_json_begin(&w, out);
    rt_outcome_write(&outcome, &w);
    return true;
}

static bool do_branch(job *j, rt_live *live, rt_buf *out, rt_error *err)
{
    rt_live *made;
    uint64_t began = rt_now_ns();
    if (!rt_live_branch(live, &made, err))
        return false;
    rt_buf_addf(out, ",\"us\":%" PRIu64, (rt_now_ns() - began) / 1000);
    keep(text_of(j, "as"), made);
    return true;
}

static bool do_write(job *j, rt_live *live, rt_buf *out, rt_error *err)
{
    (void)out;
    return rt_live_write(live, text_of(j, "path"), text_of(j, "data"), err);
}

static bool do_read(job *j, rt_live *live, rt_buf *out, rt_error *err)
{
    int fd RT_CLEANUP(rt_closep) = -1;
    uint64_t size;
    rt_str text;
    rt_json_writer w;
    if (!rt_live_read(live, text_of(j, "path"), &fd, &size, err) ||
        !rt_read_fd(fd, FILE_MAX, &j->arena, &text, err))
        return false;
    rt_buf_addf(out, ",\"size\":%" PRIu64 ",\"data\":", size);
    rt_json_begin(&w, out);
    rt_jw_str(&w, text);
    return true;
}

static bool do_list(job *j, rt_live *live, rt_buf *out, rt_error *err)
{
    rt_live_file *files;
    size_t count;
    rt_json_writer w;
    if (!rt_live_list(live, text_of(j, "path"), &j->arena, &files, &count, err))
        return false;
    rt_buf_add(out, RT_STR(",\"files\":"));
    rt_json_begin(&w, out);
    rt_jw_array(&w);
    for (size_t i = 0; i < count; i++) {
        rt_jw_object(&w);
        rt_jw_kstr(&w, "path", files[i].path);
        rt_jw_ku64(&w, "size", files[i].size);
        rt_jw_ku64(&w, "modified_ms", files[i].modified_ms);
        rt_jw_kbool(&w, "is_directory", files[i].is_directory);
        rt_jw_end(&w);
    }
    rt_jw_end(&w);
    return true;
}

static bool do_remove(job *j, rt_live *live, rt_buf *out, rt_error *err)
{
    (void)out;
    return rt_live_remove(live, text_of(j, "path"), err);
}

static bool do_alive(job *j, rt_live *live, rt_buf *out, rt_error *err)
{
    (void)j, (void)err;
    rt_buf_addf(out, ",\"alive\":%s", rt_live_is_alive(live) ? "true" : "false");
    return true;
}

static bool do_close(job *j, rt_live *live, rt_buf *out, rt_error *err)
{
    (void)out, (void)err;
    pthread_mutex_lock(&lock);
    *find(text_of(j, "live")) = NULL;
    pthread_mutex_unlock(&lock);
    rt_live_close(live);
    return true;
}

static bool do_cancel(job *j, rt_live *live, rt_buf *out, rt_error *err)
{
    int64_t whom = 0;
    (void)live, (void)out, (void)err;
    rt_json_i64(rt_json_get_c(j->order, "whom"), &whom);
    pthread_mutex_lock(&lock);
    for (job *other = jobs; other; other = other->next)
        if (other->tag == whom)
            rt_canceller_cancel(&other->canceller);
    pthread_mutex_unlock(&lock);
    return true;
}

static const struct {
    const char *op;
    bool (*apply)(job *, rt_live *, rt_buf *, rt_error *);
    bool needs_live;
} ops[] = {
    { "open", do_open, false },     { "run", do_run, false },    { "branch", do_branch, true },
    { "write", do_write, true },    { "read", do_read, true },   { "list", do_list, true },
    { "remove", do_remove, true },  { "alive", do_alive, true }, { "close", do_close, true },
    { "cancel", do_cancel, false },
};

static bool obey(job *j, rt_buf *out, rt_error *err)
{
    rt_str op = text_of(j, "op"), name = text_of(j, "live");
    pthread_mutex_lock(&lock);
    rt_live **place = find(name), *live = place ? *place : NULL;
    pthread_mutex_unlock(&lock);
    for (size_t i = 0; i < RT_COUNT(ops); i++)
        if (rt_str_eq_c(op, ops[i].op))
            return ops[i].needs_live && !live
                       ? rt_fail(err, RT_NOT_FOUND, "no session '%.*s'", RT_FMT(name))
                       : ops[i].apply(j, live, out, err);
    return rt_fail(err, RT_INVALID, "no op '%.*s'", RT_FMT(op));
}

static void *work(void *arg)
{
    job *j = arg;
    rt_error err = { 0 };
    rt_buf out RT_CLEANUP(rt_buf_done) = { 0 }, failed RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_buf_add(&out, RT_STR("\"ok\":true"));
    bool ok = obey(j, &out, &err);
    rt_buf_addf(&failed, "\"ok\":false,\"code\":\"%s\",\"message\":", rt_code_name(err.code));
    rt_json_begin(&w, &failed);
    rt_jw_str(&w, rt_str_of(err.text));
    answer(j, ok ? &out : &failed);
    pthread_mutex_lock(&lock);
    for (job **at = &jobs; *at; at = &(*at)->next)
        if (*at == j) {
            *at = j->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    rt_canceller_done(&j->canceller);
    rt_arena_done(&j->arena);
    free(j);
    return NULL;
}

static bool start(rt_str line, rt_error *err)
{
    pthread_t thread;
    job *j = calloc(1, sizeof(*j));
    rt_canceller_init(&j->canceller);
    if (!rt_json_parse(rt_arena_str(&j->arena, line), &j->arena, &j->order, err))
        return false;
    rt_json_i64(rt_json_get_c(j->order, "tag"), &j->tag);
    pthread_mutex_lock(&lock);
    j->next = jobs;
    jobs = j;
    pthread_mutex_unlock(&lock);
    return pthread_create(&thread, NULL, work, j) == 0 && pthread_detach(thread) == 0;
}

int main(int argc, char **argv)
{
    rt_error err = { 0 };
    char *line = NULL;
    size_t size = 0;
    signal(SIGPIPE, SIG_IGN);
    rt_local_config config = { .max_cells = argc > 1 ? (unsigned)atoi(argv[1]) : 16,
                               .guests_dir = argc > 2 ? argv[2] : NULL };
    if (!rt_local_open(&config, &local, &err) || !rt_sandbox_drop_privileges(&err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    for (ssize_t n; (n = getline(&line, &size, stdin)) > 0;)
        if (!start((rt_str){ line, (size_t)n }, &err))
            fprintf(stderr, "%s\n", err.text);
    free(line);
    for (bool is_busy = true; is_busy; usleep(1000)) {
        pthread_mutex_lock(&lock);
        is_busy = jobs != NULL;
        pthread_mutex_unlock(&lock);
    }
    for (size_t i = 0; i < LIVES_MAX; i++)
        rt_live_close(lives[i].live);
    local->close(local);
    return 0;
}
