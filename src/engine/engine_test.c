/*
 * The stages around the run, with a runtime that answers what a test tells it to: what is counted
 * here is how often it was asked.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/engine_internal.h"

typedef struct scripted {
    rt_runtime base;
    atomic_int runs;
    rt_outcome outcome;
    rt_str output;     /* told while it "runs" */
    uint64_t pause_us; /* how long a run takes */
    bool has_failed;   /* the run cannot be had */
} scripted;

static bool wait_for(const rt_run *run, uint64_t pause_us)
{
    for (uint64_t waited = 0; waited < pause_us; waited += 1000) {
        if (run->canceller && rt_canceller_is_cancelled(run->canceller))
            return false;
        usleep(1000);
    }
    return true;
}

static bool execute(rt_runtime *self, const rt_run *run, rt_arena *arena, rt_outcome *out,
                    rt_error *err)
{
    scripted *s = (scripted *)self;
    (void)arena;
    s->runs++;
    if (s->has_failed)
        return rt_fail(err, RT_UNAVAILABLE, "no cell today");
    if (s->output.len && run->on_output)
        run->on_output(run->output_ctx, 1, s->output);
    *out = s->outcome;
    out->language = run->language;
    out->runtime = RT_STR("scripted");
    if (!wait_for(run, s->pause_us))
        out->status = RT_STATUS_CANCELLED;
    return true;
}

static size_t languages(rt_runtime *self, rt_arena *arena, rt_language *out, size_t max)
{
    (void)self, (void)arena, (void)max;
    out[0] = *rt_language_find(RT_STR("python"));
    return 1;
}

static void close_nothing(rt_runtime *self)
{
    (void)self;
}

/* An engine with everything under it, in a directory of its own. */
typedef struct bench {
    char folder[64];
    scripted runtime;
    rt_store *store;
    rt_vault *vault;
    rt_shelf *shelf;
    rt_cache *cache;
    rt_telemetry *telemetry;
    rt_engine *engine;
    rt_arena arena;
} bench;

static void set_up(bench *b, const rt_engine_config *changes)
{
    rt_error err = { 0 };
    char key[128], shelf[128];
    *b = (bench){ .runtime = { .base = { .name = "scripted",
                                         .execute = execute,
                                         .languages = languages,
                                         .close = close_nothing },
                               .outcome = { .status = RT_STATUS_SUCCESS,
                                            .has_value = true,
                                            .is_parsed = true,
                                            .value = RT_STR("42"),
                                            .wall_us = 1000 } } };
    snprintf(b->folder, sizeof(b->folder), "/tmp/retort-engine-XXXXXX");
    cr_assert(mkdtemp(b->folder));
    snprintf(key, sizeof(key), "%s/vault.key", b->folder);
    snprintf(shelf, sizeof(shelf), "%s/artifacts", b->folder);
    rt_store_config store = { .url = RT_STR("sqlite::memory:") };
    cr_assert(rt_store_open(&store, &b->store, &err), "%s", err.text);
    cr_assert(rt_store_migrate(b->store, NULL, NULL, &err), "%s", err.text);
    cr_assert(rt_vault_open(key, &b->vault, &err), "%s", err.text);
    rt_shelf_config shelf_config = {
        .store = b->store, .vault = b->vault, .directory = shelf, .host = RT_STR("here")
    };
    cr_assert(rt_shelf_open(&shelf_config, &b->shelf, &err), "%s", err.text);
    cr_assert(rt_cache_open(&(rt_cache_config){ 0 }, &b->cache, &err), "%s", err.text);
    cr_assert(rt_telemetry_open(&(rt_telemetry_config){ 0 }, &b->telemetry, &err), "%s", err.text);
    rt_engine_config config = changes ? *changes : (rt_engine_config){ 0 };
    config.runtime = &b->runtime.base;
    config.store = b->store;
    config.vault = b->vault;
    config.shelf = b->shelf;
    config.cache = b->cache;
    config.telemetry = b->telemetry;
    config.host = RT_STR("here");
    if (config.rates.execution == 0)
        config.rates = (rt_engine_rates){ .execution = 0.10, .traditional = 90 };
    cr_assert(rt_engine_open(&config, &b->engine, &err), "%s", err.text);
}

static void tear_down(bench *b)
{
    char command[128];
    rt_engine_stop(b->engine, 1000);
    rt_engine_close(b->engine);
    rt_telemetry_close(b->telemetry);
    rt_cache_close(b->cache);
    rt_shelf_close(b->shelf);
    rt_vault_close(b->vault);
    rt_store_close(b->store);
    rt_arena_done(&b->arena);
    snprintf(command, sizeof(command), "rm -rf %s", b->folder);
    cr_assert_eq(system(command), 0);
}

static rt_request a_request(void)
{
    return (rt_request){ .caller = { .organisation_id = RT_STR(RT_LOCAL_ORGANISATION),
                                     .workspace_id = RT_STR(RT_LOCAL_WORKSPACE),
                                     .user_id = RT_STR(RT_LOCAL_USER),
                                     .actor_type = RT_STR("user"),
                                     .role = RT_ROLE_MEMBER },
                         .surface = RT_STR("rest"),
                         .language = RT_STR("python"),
                         .code = RT_STR("return 6 * 7") };
}

static rt_json ask(bench *b, const rt_request *r, rt_answer *answer)
{
    rt_error err = { 0 };
    rt_json json;
    cr_assert(rt_engine_execute(b->engine, r, &b->arena, answer, &err), "%s", err.text);
    cr_assert(rt_json_parse(answer->json, &b->arena, &json, &err), "%s", err.text);
    return json;
}

static rt_error refuse(bench *b, const rt_request *r)
{
    rt_error err = { 0 };
    rt_answer answer;
    cr_assert(!rt_engine_execute(b->engine, r, &b->arena, &answer, &err));
    return err;
}

static rt_execution_row record_of(bench *b, rt_str id)
{
    rt_execution_row row;
    rt_error err = { 0 };
    cr_assert(rt_execution_get(b->store, RT_STR(""), id, &b->arena, &row, &err), "%s", err.text);
    return row;
}

Test(engine, an_answer_is_on_record_when_it_is_given)
{
    bench b;
    rt_answer answer;
    rt_request r = a_request();
    set_up(&b, NULL);
    rt_json json = ask(&b, &r, &answer);
    cr_assert(rt_str_eq_c(rt_json_number(rt_json_get_c(json, "result")), "42"));
    rt_execution_row row = record_of(&b, answer.id);
    cr_assert(rt_str_eq_c(row.status, "SUCCESS") && rt_str_eq_c(row.language, "python"));
    cr_assert(rt_str_eq(row.code_hash,
                        rt_json_str(rt_json_get_c(rt_json_get_c(json, "hashes"), "code"))));
    rt_provenance link;
    rt_error err = { 0 };
    cr_assert(rt_provenance_get(b.store, RT_STR(""), answer.id, &b.arena, &link, &err), "%s",
              err.text);
    cr_assert_eq(link.sequence, 1);
    tear_down(&b);
}

Test(engine, a_failed_run_is_an_answer_whose_record_holds_no_data)
{
    bench b;
    rt_answer answer;
    rt_request r = a_request();
    set_up(&b, NULL);
    b.runtime.outcome = (rt_outcome){ .status = RT_STATUS_FAILED,
                                      .has_error = true,
                                      .error = { .type = RT_STR("RuntimeError"),
                                                 .name = RT_STR("ValueError"),
                                                 .message = RT_STR("secret-marker"),
                                                 .line = 3 } };
    ask(&b, &r, &answer);
    rt_execution_row row = record_of(&b, answer.id);
    cr_assert(rt_str_eq_c(row.status, "FAILED"));
    cr_assert(rt_str_eq_c(row.error_message, "ValueError on line 3"));
    tear_down(&b);
}

Test(engine, an_idempotency_key_is_answered_from_the_record)
{
    bench b;
    rt_answer first, second;
    rt_request r = a_request();
    set_up(&b, NULL);
    r.idempotency_key = RT_STR("k1");
    ask(&b, &r, &first);
    b.runtime.outcome.value = RT_STR("43");
    rt_json again = ask(&b, &r, &second);
    cr_assert(second.is_replayed && rt_str_eq(first.id, second.id));
    cr_assert(rt_str_eq_c(rt_json_number(rt_json_get_c(again, "result")), "42"));
    cr_assert_eq(b.runtime.runs, 1);
    r.code = RT_STR("return 1");
    cr_assert_eq(refuse(&b, &r).code, RT_CONFLICT);
    tear_down(&b);
}

Test(engine, a_run_that_could_not_be_had_frees_its_idempotency_key)
{
    bench b;
    rt_answer answer;
    rt_request r = a_request();
    set_up(&b, NULL);
    r.idempotency_key = RT_STR("k2");
    b.runtime.has_failed = true;
    cr_assert_eq(refuse(&b, &r).code, RT_UNAVAILABLE);
    b.runtime.has_failed = false;
    ask(&b, &r, &answer);
    cr_assert(!answer.is_replayed);
    tear_down(&b);
}

Test(engine, the_cache_is_asked_only_when_it_may_answer)
{
    bench b;
    rt_answer answer;
    rt_request r = a_request();
    set_up(&b, NULL);
    ask(&b, &r, &answer);
    r.cache = RT_CACHE_USE;
    ask(&b, &r, &answer);
    cr_assert(!answer.is_cached);
    rt_str id = answer.id;
    rt_json json = ask(&b, &r, &answer);
    cr_assert(answer.is_cached && rt_str_eq(answer.id, id));
    cr_assert(rt_json_bool(rt_json_get_c(json, "cached"), false));
    cr_assert_eq(b.runtime.runs, 2);
    b.runtime.outcome.status = RT_STATUS_FAILED;
    r.code = RT_STR("return 7");
    ask(&b, &r, &answer);
    ask(&b, &r, &answer);
    cr_assert(!answer.is_cached, "failures are not kept");
    tear_down(&b);
}

Test(engine, output_past_its_budget_becomes_a_handle)
{
    bench b;
    rt_answer answer;
    rt_request r = a_request();
    set_up(&b, NULL);
    char *big = malloc(100001);
    memset(big, 'x', 100000);
    big[0] = big[99999] = '"';
    b.runtime.outcome.value = (rt_str){ big, 100000 };
    rt_json json = ask(&b, &r, &answer);
    rt_json handle = rt_json_at(rt_json_get_c(json, "handles"), 0);
    cr_assert_eq(rt_json_type(rt_json_get_c(json, "result")), RT_JSON_NULL);
    cr_assert(answer.json.len < 20000);
    rt_artifact_row row;
    rt_error err = { 0 };
    rt_str whole;
    cr_assert(rt_artifact_find(b.shelf, RT_STR(RT_LOCAL_ORGANISATION),
                               rt_json_str(rt_json_get_c(handle, "handle")), &b.arena, &row, &err),
              "%s", err.text);
    cr_assert(rt_artifact_read(b.shelf, &row, 0, 200000, &b.arena, &whole, &err), "%s", err.text);
    cr_assert(rt_str_eq(whole, (rt_str){ big, 100000 }));
    free(big);
    tear_down(&b);
}

Test(engine, cost_follows_the_published_rule)
{
    bench b;
    rt_answer answer;
    rt_request r = a_request();
    set_up(&b, NULL);
    r.code = RT_STR("import json\nprint(json.dumps({\"hello\":\"world\"}))");
    r.has_input = true;
    r.input = RT_STR("{}");
    b.runtime.outcome.value = RT_STR("{\"hello\":\"world\"}");
    rt_json json = ask(&b, &r, &answer);
    double usd;
    cr_assert(rt_json_double(rt_json_get_c(rt_json_get_c(json, "cost"), "usd"), &usd));
    cr_assert_float_eq(usd, 0.000002, 1e-12);
    tear_down(&b);
}

Test(engine, callers_are_refused_by_role_switch_and_roll_out)
{
    bench b;
    rt_request r = a_request();
    set_up(&b, NULL);
    r.caller.role = RT_ROLE_VIEWER;
    cr_assert_eq(refuse(&b, &r).code, RT_DENIED);
    tear_down(&b);
    set_up(&b, &(rt_engine_config){ .is_off = true });
    r = a_request();
    cr_assert_eq(refuse(&b, &r).code, RT_UNAVAILABLE);
    tear_down(&b);
    set_up(&b, &(rt_engine_config){ .has_rollout = true, .rollout_percent = 0 });
    cr_assert_eq(refuse(&b, &r).code, RT_UNAVAILABLE);
    cr_assert_eq(b.runtime.runs, 0);
    tear_down(&b);
}

Test(engine, a_spent_budget_refuses)
{
    bench b;
    rt_answer answer;
    rt_request r = a_request();
    set_up(&b, &(rt_engine_config){
                   .rates = { .execution = 1e6, .traditional = 1, .budget_usd_month = 3 } });
    ask(&b, &r, &answer);
    rt_error err = refuse(&b, &r);
    cr_assert(err.code == RT_DENIED && strstr(err.text, "budget"));
    tear_down(&b);
}

Test(engine, a_job_can_be_watched_and_ends_with_its_result)
{
    bench b;
    rt_request r = a_request();
    rt_error err = { 0 };
    rt_job *job = NULL;
    size_t position = 0;
    const char *event, *last = "";
    rt_str json;
    int outputs = 0;
    set_up(&b, NULL);
    b.runtime.output = RT_STR("hello");
    cr_assert(rt_engine_start(b.engine, &r, &job, &err), "%s", err.text);
    rt_str id = rt_arena_str(&b.arena, rt_job_id(job));
    while (rt_job_next(job, &position, rt_now_ns() + 5000000000ull, &b.arena, &event, &json) == 1) {
        outputs += strcmp(event, "stdout") == 0;
        last = event;
    }
    cr_assert_str_eq(last, "result");
    cr_assert_eq(outputs, 1);
    rt_job_release(job);
    cr_assert(rt_str_eq_c(record_of(&b, id).status, "SUCCESS"));
    tear_down(&b);
}

Test(engine, a_job_can_be_cancelled_by_its_id)
{
    bench b;
    rt_request r = a_request();
    rt_error err = { 0 };
    rt_job *job = NULL;
    size_t position = 0;
    const char *event;
    rt_str json;
    set_up(&b, NULL);
    b.runtime.pause_us = 30000000;
    cr_assert(rt_engine_start(b.engine, &r, &job, &err), "%s", err.text);
    rt_str id = rt_arena_str(&b.arena, rt_job_id(job)), status = record_of(&b, id).status;
    cr_assert(rt_str_eq_c(status, "QUEUED") || rt_str_eq_c(status, "RUNNING"));
    cr_assert(rt_engine_cancel(b.engine, RT_STR(""), id, &err), "%s", err.text);
    while (rt_job_next(job, &position, rt_now_ns() + 5000000000ull, &b.arena, &event, &json) == 1)
        ;
    cr_assert(rt_str_eq_c(record_of(&b, id).status, "CANCELLED"));
    rt_job_release(job);
    rt_engine_stop(b.engine, 1000);
    cr_assert(!rt_engine_cancel(b.engine, RT_STR(""), id, &err));
    tear_down(&b);
}

Test(engine, stopping_ends_what_runs_and_records_it)
{
    bench b;
    rt_request r = a_request();
    rt_error err = { 0 };
    rt_job *job = NULL;
    set_up(&b, NULL);
    b.runtime.pause_us = 30000000;
    cr_assert(rt_engine_start(b.engine, &r, &job, &err), "%s", err.text);
    while (b.runtime.runs == 0)
        usleep(500);
    rt_str id = rt_arena_str(&b.arena, rt_job_id(job));
    rt_engine_stop(b.engine, 10);
    cr_assert(rt_str_eq_c(record_of(&b, id).status, "CANCELLED"));
    cr_assert_eq(refuse(&b, &r).code, RT_UNAVAILABLE);
    rt_job_release(job);
    tear_down(&b);
}

Test(engine, whatever_an_error_is_called_its_run_is_on_record)
{
    bench b;
    rt_answer answer;
    rt_request r = a_request();
    set_up(&b, NULL);
    b.runtime.outcome = (rt_outcome){ .status = RT_STATUS_FAILED,
                                      .has_error = true,
                                      .error = { .type = RT_STR("RuntimeError"),
                                                 .name = RT_STR("Bad\0Name\xff\xed\xa0\x80\n") } };
    ask(&b, &r, &answer);
    cr_assert(rt_str_starts(record_of(&b, answer.id).error_message, RT_STR("Bad?Name?")));
    tear_down(&b);
}

Test(engine, an_unknown_tool_is_refused_before_anything_runs)
{
    bench b;
    rt_request r = a_request();
    set_up(&b, NULL);
    r.tool_id = RT_STR("no-such-tool");
    cr_assert_eq(refuse(&b, &r).code, RT_NOT_FOUND);
    cr_assert_eq(b.runtime.runs, 0);
    tear_down(&b);
}
