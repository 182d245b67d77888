/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of running code, with a runtime that makes the calls a test tells it to and a provider that
 * answers with what it was asked.
 */
#include <criterion/criterion.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/engine_internal.h"

/* ---- a provider: read, write, and one that waits until it is cancelled ---- */

static atomic_int calls, cancelled;
static char last_arguments[256];

static bool list(rt_provider *self, rt_arena *arena, rt_tool **out, size_t *count, rt_error *err)
{
    (void)self, (void)err;
    static const rt_tool tools[] = {
        { .name = { "list_things", 11 },
          .description = { "Lists the things there are", 26 },
          .flags = RT_TOOL_READ_ONLY },
        { .name = { "drop_thing", 10 }, .description = { "Drops a thing", 13 } },
        { .name = { "wait", 4 }, .flags = RT_TOOL_READ_ONLY },
    };
    *out = rt_arena_alloc(arena, sizeof(tools));
    memcpy(*out, tools, sizeof(tools));
    *count = RT_COUNT(tools);
    return true;
}

static bool call(rt_provider *self, const rt_tool_call *c, rt_arena *arena, rt_tool_result *out,
                 rt_error *err)
{
    (void)self;
    calls++;
    snprintf(last_arguments, sizeof(last_arguments), "%.*s", RT_FMT(c->arguments));
    if (rt_str_ends(c->tool, RT_STR(":wait"))) {
        struct pollfd p = { .fd = c->cancel_fd, .events = POLLIN };
        cancelled += poll(&p, 1, 20000) == 1;
        return rt_fail(err, RT_CANCELLED, "nobody waits any more");
    }
    *out = (rt_tool_result){ .value = rt_arena_str(arena, c->arguments),
                             .is_error = rt_str_find(c->arguments, RT_STR("bad")) >= 0 };
    return true;
}

static void health(rt_provider *self, rt_json_writer *w)
{
    (void)self;
    rt_jw_object(w);
    rt_jw_end(w);
}

static void close_provider(rt_provider *self)
{
    (void)self;
}

/* ---- a runtime: makes one call and answers with what came of it ---- */

typedef struct caller_runtime {
    rt_runtime base;
    const char *tool, *arguments;
    bool leaves;            /* without waiting for the answer */
    atomic_bool was_paused; /* while it waited */
} caller_runtime;

static void answer_with(rt_outcome *out, rt_arena *arena, const rt_desk_answer *a)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &text);
    rt_jw_str(&w, a->error_text);
    out->value = rt_arena_str(arena, a->is_error ? rt_buf_str(&text) : a->value);
}

static bool execute(rt_runtime *self, const rt_run *run, rt_arena *arena, rt_outcome *out,
                    rt_error *err)
{
    caller_runtime *r = (caller_runtime *)self;
    rt_desk *desk = run->desk;
    rt_desk_answer a;
    (void)err;
    *out = (rt_outcome){ .status = RT_STATUS_SUCCESS,
                         .has_value = true,
                         .is_parsed = true,
                         .value = desk->servers,
                         .runtime = RT_STR("scripted") };
    if (!r->tool)
        return true;
    desk->take(desk, &(rt_desk_call){ 7, rt_str_of(r->tool), rt_str_of(r->arguments) });
    while (!r->leaves && !desk->next(desk, arena, &a)) {
        struct pollfd p = { .fd = desk->fd, .events = POLLIN };
        if (desk->paused(desk))
            r->was_paused = true;
        poll(&p, 1, 1000);
    }
    if (!r->leaves) {
        cr_expect_eq(a.number, 7);
        answer_with(out, arena, &a);
    }
    return true;
}

static size_t languages(rt_runtime *self, rt_arena *arena, rt_language *out, size_t max)
{
    (void)self, (void)arena, (void)out, (void)max;
    return 0;
}

/* ---- an engine between the two ---- */

typedef struct bench {
    caller_runtime runtime;
    rt_provider provider;
    rt_store *store;
    rt_vault *vault;
    rt_cache *cache;
    rt_tools *tools;
    rt_engine *engine;
    rt_arena arena;
    char key[64];
} bench;

static const rt_str all[] = { { "*", 1 } };

static void set_up(bench *b, rt_tool_rules rules)
{
    rt_error err = { 0 };
    rt_store_config memory = { .url = RT_STR("sqlite::memory:") };
    *b = (bench){
        .runtime = { .base = { .name = "scripted", .execute = execute, .languages = languages } },
        .provider = { .name = "my-box",
                      .list = list,
                      .call = call,
                      .health = health,
                      .close = close_provider }
    };
    snprintf(b->key, sizeof(b->key), "/tmp/retort-desk-%d.key", getpid());
    unlink(b->key);
    cr_assert(rt_store_open(&memory, &b->store, &err) &&
                  rt_store_migrate(b->store, NULL, NULL, &err) &&
                  rt_vault_open(b->key, &b->vault, &err) &&
                  rt_cache_open(&(rt_cache_config){ 0 }, &b->cache, &err) &&
                  rt_tools_open(&(rt_tools_config){ 0 }, &b->tools, &err) &&
                  rt_tools_add(b->tools, &b->provider, &err),
              "%s", err.text);
    if (rules.granted.count == 0)
        rules.granted = (rt_patterns){ all, 1 };
    rt_engine_config config = { .runtime = &b->runtime.base,
                                .store = b->store,
                                .vault = b->vault,
                                .cache = b->cache,
                                .tools = b->tools,
                                .tool_rules = rules,
                                .host = RT_STR("here") };
    cr_assert(rt_engine_open(&config, &b->engine, &err), "%s", err.text);
    calls = cancelled = 0;
}

static void tear_down(bench *b)
{
    rt_engine_stop(b->engine, 1000);
    rt_tools_close(b->tools);
    rt_engine_close(b->engine);
    rt_cache_close(b->cache);
    rt_vault_close(b->vault);
    rt_store_close(b->store);
    rt_arena_done(&b->arena);
    unlink(b->key);
}

#define BENCH(name, ...)                                                                           \
    bench name RT_CLEANUP(tear_down);                                                              \
    set_up(&name, (rt_tool_rules){ __VA_ARGS__ })

static const rt_caller ann = { .organisation_id = { "local", 5 },
                               .user_id = { "ann", 3 },
                               .role = RT_ROLE_MEMBER };
static const rt_caller bob = { .organisation_id = { "local", 5 },
                               .user_id = { "bob", 3 },
                               .role = RT_ROLE_ADMIN };

static rt_json run(bench *b, const char *tool, const char *arguments, const char *granted)
{
    rt_request request = { .caller = ann,
                           .surface = RT_STR("test"),
                           .language = RT_STR("python"),
                           .code = RT_STR("…"),
                           .cache = RT_CACHE_USE };
    rt_answer answer;
    rt_error err = { 0 };
    rt_json json;
    b->runtime.tool = tool;
    b->runtime.arguments = arguments;
    if (granted)
        cr_assert(rt_json_parse(rt_str_of(granted), &b->arena, &request.tools, &err));
    cr_assert(rt_engine_execute(b->engine, &request, &b->arena, &answer, &err), "%s", err.text);
    cr_assert(rt_json_parse(answer.json, &b->arena, &json, &err));
    return json;
}

static rt_str result_text(rt_json answer)
{
    return rt_json_str(rt_json_get_c(answer, "result"));
}

Test(desk, a_call_finds_its_tool_however_it_is_written_and_is_on_record)
{
    BENCH(b, 0);
    rt_json answer = run(&b, "myBox:listThings", "{\"n\":1}", NULL);
    rt_str id = rt_json_str(rt_json_get_c(answer, "id"));
    rt_execution_row row;
    int64_t n = 0;
    cr_expect(rt_json_i64(rt_json_get_c(rt_json_get_c(answer, "result"), "n"), &n) && n == 1);
    cr_expect(rt_str_eq_c(rt_json_str(rt_json_at(rt_json_get_c(answer, "tool_ids"), 0)),
                          "my-box:list_things"));
    cr_assert(rt_execution_get(b.store, RT_STR("local"), id, &b.arena, &row, NULL));
    cr_expect(rt_str_eq_c(row.tool_ids, "[\"my-box:list_things\"]"));
    cr_expect_eq(row.transcript_hash.len, 64);
}

Test(desk, what_the_tool_calls_an_error_is_one_and_names_it)
{
    BENCH(b, 0);
    rt_str text = result_text(run(&b, "my-box:list_things", "{\"x\":\"bad\"}", NULL));
    cr_expect(rt_str_starts(text, RT_STR("Tool error in 'my-box:list_things': ")), "%.*s",
              RT_FMT(text));
}

Test(desk, only_what_was_granted_is_called)
{
    static const rt_str lists[] = { { "my-box:list_*", 13 } };
    BENCH(b, .granted = { lists, 1 });
    cr_expect_geq(
        rt_str_find(result_text(run(&b, "my-box:drop_thing", "{}", NULL)), RT_STR("tools.granted")),
        0);
    cr_expect_geq(rt_str_find(result_text(run(&b, "my-box:list_things", "{}", "[\"other:*\"]")),
                              RT_STR("not granted to this run")),
                  0);
    cr_expect_geq(rt_str_find(result_text(run(&b, "my-box:list_things", "{}", "[]")),
                              RT_STR("not granted to this run")),
                  0);
    cr_expect_eq(calls, 0);
    run(&b, "my-box:list_things", "{}", "[\"my-box:*\"]");
    cr_expect_eq(calls, 1);
}

Test(desk, code_is_told_the_servers_it_may_name)
{
    BENCH(b, 0);
    rt_json every = run(&b, NULL, NULL, NULL), none = run(&b, NULL, NULL, "[\"a:*\"]");
    cr_expect_eq(rt_json_count(rt_json_get_c(every, "result")), 1);
    cr_expect_eq(rt_json_count(rt_json_get_c(none, "result")), 0);
}

Test(desk, a_run_that_ends_ends_its_calls)
{
    BENCH(b, 0);
    b.runtime.leaves = true;
    run(&b, "my-box:wait", "{}", NULL);
    cr_expect_eq(cancelled, calls);
}

Test(desk, answers_of_reading_tools_are_kept_and_others_are_not)
{
    BENCH(b, 0);
    run(&b, "my-box:list_things", "{}", NULL);
    cr_expect(
        rt_json_bool(rt_json_get_c(run(&b, "my-box:list_things", "{}", NULL), "cached"), false));
    run(&b, "my-box:drop_thing", "{}", "[\"*\"]");
    cr_expect(!rt_json_bool(rt_json_get_c(run(&b, "my-box:drop_thing", "{}", "[\"*\"]"), "cached"),
                            false));
    cr_expect_eq(calls, 3);
}

Test(desk, the_house_answers_for_itself)
{
    BENCH(b, 0);
    rt_json found = run(&b, "tools:search", "{\"query\":\"list things\"}", "[\"*\"]");
    cr_expect(rt_str_eq_c(
        rt_json_str(rt_json_get_c(rt_json_at(rt_json_get_c(found, "result"), 0), "name")),
        "my-box:list_things"));
    cr_expect_eq(rt_json_count(rt_json_get_c(run(&b, "tools:list", "{}", "[\"my-box:drop_thing\"]"),
                                             "result")),
                 1);
    cr_expect_geq(rt_str_find(result_text(run(&b, "tools:describe", "{\"name\":\"x:y\"}", NULL)),
                              RT_STR("no tool")),
                  0);
    cr_expect(rt_str_eq_c(
        rt_json_number(rt_json_get_c(
            run(&b, "pii:count", "{\"value\":\"a@example.org\"}", "[\"y\"]"), "result")),
        "1"));
}

/* ---- a person's word ---- */

static void *decide(void *arg)
{
    bench *b = arg;
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_approval_row *rows, row;
    size_t count = 0;

    while (count == 0 || !b->runtime.was_paused) {
        usleep(2000);
        cr_assert(rt_approval_list(b->store, RT_STR("local"), RT_STR("pending"), 1, &arena, &rows,
                                   &count, NULL));
    }
    cr_expect(rt_engine_decide(b->engine, &bob, rows[0].id, true, RT_STR(""), &arena, &row, NULL));
    return NULL;
}

Test(desk, a_tool_that_needs_a_word_waits_for_it_with_the_clock_stopped)
{
    static const rt_str drops[] = { { "*:drop_*", 8 } };
    BENCH(b, .needs_approval = { drops, 1 });
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, decide, &b), 0);
    rt_json answer = run(&b, "my-box:drop_thing", "{\"n\":2}", NULL);
    pthread_join(thread, NULL);
    cr_expect_eq(rt_json_count(rt_json_get_c(answer, "result")), 1);
    cr_expect_eq(calls, 1);
    cr_expect(b.runtime.was_paused);
}

Test(desk, a_run_that_ends_withdraws_its_question)
{
    static const rt_str every[] = { { "*", 1 } };
    BENCH(b, .needs_approval = { every, 1 });
    b.runtime.leaves = true;
    run(&b, "my-box:drop_thing", "{}", NULL);
    cr_expect_eq(calls, 0);
}

Test(desk, what_needed_a_word_is_not_answered_from_the_cache)
{
    static const rt_str lists[] = { { "*:list_*", 8 } };
    BENCH(b, .needs_approval = { lists, 1 });
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        b.runtime.was_paused = false;
        cr_assert_eq(pthread_create(&thread, NULL, decide, &b), 0);
        rt_json answer = run(&b, "my-box:list_things", "{\"n\":2}", NULL);
        pthread_join(thread, NULL);
        cr_expect(!rt_json_bool(rt_json_get_c(answer, "cached"), true));
    }
    cr_expect_eq(calls, 2);
}
