/* SPDX-License-Identifier: Apache-2.0 */
/*
 * desk.c - the calls of running code: each on a thread of its own, through the gate and back.
 *
 * What the house itself knows (tools:search, pii:count …) is answered at once, on the run's own
 * thread. Everything else waits for somebody: a server, a person. The desk's own canceller ends all
 * of them when the run has ended, however it did, and the desk is not closed before the last has.
 *
 * `lock` guards what the threads of the calls and that of the run share.
 */
#include "engine/desk.h"
#include "engine/protect.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define STACK_BYTES  ((size_t)256 << 10)
#define SEARCH_LIMIT 10
#define SEARCH_MOST  50
#define GATHER_MS    10000
#define TOOL_IDS_MAX 256

struct own;

typedef struct errand {
    engine_desk *desk;
    struct errand *next; /* of those that are answered */
    rt_arena arena;
    rt_desk_call call;
    rt_desk_answer answer;
    const struct own *own; /* what the house itself knows; NULL: a tool */
} errand;

struct engine_desk {
    rt_desk base; /* first */
    passage *p;
    pthread_mutex_t lock;
    pthread_cond_t idle;
    errand *first, **last; /* answered, not yet taken */
    errand *given;         /* the one whose answer the run looks at */
    size_t pending, waiting;
    bool has_rung; /* fd is readable */
    rt_canceller canceller;
    bool has_canceller;
    rt_sha256_stream transcript;
    engine_desk_report report;
    rt_arena arena; /* what the report has */
    rt_str ids[TOOL_IDS_MAX];
};

/* ---- answers ---- */

/* Under the lock. */
static void ring(engine_desk *d)
{
    if (!d->has_rung)
        eventfd_write(d->base.fd, 1);
    d->has_rung = true;
}

/* Takes the lock. The run's own thread looks for what it has handed in itself. */
static void hand_in(errand *a, bool is_own_thread)
{
    engine_desk *d = a->desk;
    pthread_mutex_lock(&d->lock);
    a->next = NULL;
    *d->last = a;
    d->last = &a->next;
    if (!is_own_thread)
        ring(d);
    pthread_mutex_unlock(&d->lock);
}

/* What went wrong may quote what a tool said, and is masked like that. */
static void fail_errand(errand *a, rt_str tool, rt_str why)
{
    rt_desk_answer *answer = &a->answer;
    if (!engine_protect_text(a->desk->p, why, &a->arena, &answer->original, NULL))
        answer->original = RT_STR("what the tool said cannot be shown");
    answer->is_error = true;
    answer->tool = tool.len > 0 ? tool : a->call.tool;
    answer->error_text = rt_arena_printf(&a->arena, "Tool error in '%.*s': %.*s",
                                         RT_FMT(answer->tool), RT_FMT(answer->original));
}

static void free_errand(errand *a)
{
    if (!a)
        return;
    rt_arena_done(&a->arena);
    free(a);
}

/* ---- the transcript: which tools, with what, and what came of it; in the order of answers ---- */

static void note_id(engine_desk *d, rt_str name)
{
    for (size_t i = 0; i < d->report.id_count; i++)
        if (rt_str_eq(d->ids[i], name))
            return;
    if (d->report.id_count < TOOL_IDS_MAX)
        d->ids[d->report.id_count++] = rt_arena_str(&d->arena, name);
}

static void note(engine_desk *d, const engine_passing *passing, rt_str result, bool is_good)
{
    const rt_tool *tool = &passing->tool;
    rt_str arguments = passing->arguments;
    rt_str parts[] = { tool->name, arguments, is_good ? RT_STR("ok") : RT_STR("error"), result };
    char hash[RT_SHA256_HEX];
    engine_hash(parts, RT_COUNT(parts), hash);
    pthread_mutex_lock(&d->lock);
    if (d->report.calls++ == 0)
        rt_sha256_init(&d->transcript);
    rt_sha256_add(&d->transcript, rt_str_of(hash));
    d->report.bytes_in += result.len;
    d->report.bytes_out += arguments.len;
    d->report.failures += !is_good;
    d->report.has_effects |= engine_tool_has_effects(tool) || passing->was_asked;
    note_id(d, tool->name);
    pthread_mutex_unlock(&d->lock);
}

/* ---- a call that waits for somebody ---- */

static void on_wait(void *ctx, bool is_waiting)
{
    errand *a = ctx;
    pthread_mutex_lock(&a->desk->lock);
    a->desk->waiting += is_waiting ? 1 : (size_t)-1;
    ring(a->desk); /* the run's clock stops, or goes on */
    pthread_mutex_unlock(&a->desk->lock);
}

static bool prepare(void *ctx, engine_passing *passing, rt_arena *arena, rt_error *err)
{
    const errand *a = ctx;
    passage *p = a->desk->p;
    bool sees = engine_grant_sees_pii(p->engine, &passing->tool);
    return engine_protect_arguments(p, passing->arguments, sees, arena, &passing->arguments, err);
}

static rt_str failure_text(const rt_tool_result *result, rt_arena *arena)
{
    rt_json value;
    if (rt_json_parse(result->value, arena, &value, &(rt_error){ 0 })) {
        rt_json message = rt_json_get_c(rt_json_get_c(value, "error"), "message");
        if (rt_json_type(value) == RT_JSON_STRING)
            return rt_json_str(value);
        if (rt_json_type(message) == RT_JSON_STRING)
            return rt_json_str(message);
    }
    return result->value;
}

static void conclude(errand *a, const engine_passing *passing, rt_tool_result *result)
{
    engine_desk *d = a->desk;
    rt_error err = { 0 };
    rt_str raw = result->value;
    a->answer.tool = passing->tool.name;
    if (!engine_protect_result(d->p, raw, false, &a->arena, &result->value, &err)) {
        fail_errand(a, passing->tool.name, rt_str_of(err.text));
    } else if (result->is_error) {
        fail_errand(a, passing->tool.name, failure_text(result, &a->arena));
    } else {
        a->answer.value = result->value;
    }
    note(d, passing, raw, !a->answer.is_error);
}

static void call_tool(errand *a)
{
    engine_desk *d = a->desk;
    const rt_request *r = d->p->request;
    rt_tool_request request = { .caller = &r->caller,
                                .execution_id = d->p->id,
                                .session_id = r->session_id,
                                .tool = a->call.tool,
                                .arguments = a->call.arguments,
                                .reason = RT_STR("called by running code"),
                                .canceller = &d->canceller,
                                .trace = d->p->span.context,
                                .on_wait = on_wait,
                                .ctx = a };
    engine_passing passing = {
        .request = &request, .grant = &d->p->grant, .prepare = prepare, .prepare_ctx = a
    };
    rt_tool_result result;
    rt_error err = { 0 };
    if (engine_gate_pass(d->p->engine, &passing, &a->arena, &result, &err)) {
        conclude(a, &passing, &result);
    } else {
        fail_errand(a, passing.tool.name, rt_str_of(err.text));
        if (passing.tool.name.len > 0)
            note(d, &passing, rt_str_of(err.text), false);
    }
}

static void answer_own(errand *a);

static void *run_errand(void *ctx)
{
    errand *a = ctx;
    engine_desk *d = a->desk;
    if (a->own)
        answer_own(a);
    else
        call_tool(a);
    hand_in(a, false);
    pthread_mutex_lock(&d->lock);
    if (--d->pending == 0)
        pthread_cond_broadcast(&d->idle);
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

static bool start_errand(errand *a)
{
    engine_desk *d = a->desk;
    pthread_attr_t attr;
    pthread_t thread;
    if (!d->has_canceller)
        rt_canceller_init(&d->canceller);
    d->has_canceller = d->canceller.wake >= 0;
    if (!d->has_canceller)
        return false; /* what cannot be ended is not begun */
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_mutex_lock(&d->lock);
    bool ok = pthread_create(&thread, &attr, run_errand, a) == 0;
    d->pending += ok;
    pthread_mutex_unlock(&d->lock);
    pthread_attr_destroy(&attr);
    return ok;
}

/* ---- what the house itself knows ---- */

static void write_found(const rt_tool *tool, double score, rt_json_writer *w)
{
    rt_jw_object(w);
    rt_jw_kstr(w, "name", tool->name);
    rt_jw_kstr(w, "description", tool->description);
    if (score > 0)
        rt_jw_kdouble(w, "score", (double)(int64_t)(score * 1000 + 0.5) / 1000);
    rt_jw_end(w);
}

static bool search_tools(engine_desk *d, rt_json arguments, rt_arena *arena, rt_json_writer *w,
                         rt_error *err)
{
    rt_tools *tools = d->p->engine->config.tools;
    rt_str query = rt_json_str(rt_json_get_c(arguments, "query"));
    int64_t limit = SEARCH_LIMIT;
    rt_tool_hit hits[SEARCH_MOST];
    rt_json_i64(rt_json_get_c(arguments, "limit"), &limit);
    limit = RT_MAX((int64_t)1, RT_MIN(limit, (int64_t)SEARCH_MOST));
    if (query.len == 0)
        return rt_fail(err, RT_INVALID, "tools.search needs a text: what the tool should do");
    rt_tools_gather(tools, rt_now_ns() + GATHER_MS * 1000000ull);
    size_t count = rt_tools_search_for(tools, d->p->request->caller.organisation_id, query, arena,
                                       hits, SEARCH_MOST),
           shown = 0;
    rt_jw_array(w);
    for (size_t i = 0; i < count && shown < (size_t)limit; i++)
        if (engine_grant_fits(d->p->engine, &d->p->grant, hits[i].tool.name)) {
            write_found(&hits[i].tool, hits[i].score, w);
            shown++;
        }
    rt_jw_end(w);
    return true;
}

static bool list_tools(engine_desk *d, rt_json arguments, rt_arena *arena, rt_json_writer *w,
                       rt_error *err)
{
    (void)err;
    rt_tools *tools = d->p->engine->config.tools;
    rt_tool *list;
    rt_tools_gather(tools, rt_now_ns() + GATHER_MS * 1000000ull);
    size_t count =
        rt_tools_list_for(tools, d->p->request->caller.organisation_id,
                          rt_json_str(rt_json_get_c(arguments, "category")), arena, &list);
    rt_jw_array(w);
    for (size_t i = 0; i < count; i++)
        if (engine_grant_fits(d->p->engine, &d->p->grant, list[i].name))
            write_found(&list[i], 0, w);
    rt_jw_end(w);
    return true;
}

static bool describe_tool(engine_desk *d, rt_json arguments, rt_arena *arena, rt_json_writer *w,
                          rt_error *err)
{
    rt_engine *e = d->p->engine;
    rt_str name = rt_json_str(rt_json_get_c(arguments, "name"));
    rt_tool tool;
    if (!rt_tools_resolve_for(e->config.tools, d->p->request->caller.organisation_id, name,
                              rt_now_ns() + GATHER_MS * 1000000ull, arena, &tool, err))
        return false;
    if (!engine_grant_fits(e, &d->p->grant, tool.name))
        return rt_fail(err, RT_DENIED, "%.*s is not granted to this run", RT_FMT(tool.name));
    rt_jw_object(w);
    rt_jw_kstr(w, "name", tool.name);
    rt_jw_kstr(w, "description", tool.description);
    if (tool.input_schema.len > 0)
        rt_jw_kraw(w, "inputSchema", tool.input_schema);
    if (tool.output_schema.len > 0)
        rt_jw_kraw(w, "outputSchema", tool.output_schema);
    rt_jw_end(w);
    return true;
}

static bool look_for_pii(engine_desk *d, rt_json arguments, rt_privacy_report *found, rt_error *err)
{
    rt_buf value RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf_init(&value, RT_JSON_SIZE_CEILING);
    rt_json_print(rt_json_get_c(arguments, "value"), &value);
    return rt_buf_ok(&value, err) && engine_pii_count(d->p, rt_buf_str(&value), found, err);
}

static bool count_pii(engine_desk *d, rt_json arguments, rt_arena *arena, rt_json_writer *w,
                      rt_error *err)
{
    (void)arena;
    rt_privacy_report found = { 0 };
    if (!look_for_pii(d, arguments, &found, err))
        return false;
    rt_jw_u64(w, found.total);
    return true;
}

static bool list_pii(engine_desk *d, rt_json arguments, rt_arena *arena, rt_json_writer *w,
                     rt_error *err)
{
    (void)arena;
    rt_privacy_report found = { 0 };
    if (!look_for_pii(d, arguments, &found, err))
        return false;
    rt_jw_array(w);
    for (unsigned i = 0; i < RT_PII_BUILTIN; i++)
        if (found.counts[i] > 0)
            rt_jw_str(w, rt_str_of(rt_pii_name(i, RT_PII_NAME)));
    rt_jw_end(w);
    return true;
}

static const struct own {
    const char *name;
    bool (*answer)(engine_desk *d, rt_json arguments, rt_arena *arena, rt_json_writer *w,
                   rt_error *err);
    bool needs_tools;
    bool may_wait; /* for one server, whichever it is */
} owns[] = {
    { "tools:search", search_tools, true, false },   { "tools:list", list_tools, true, false },
    { "tools:describe", describe_tool, true, true }, { "pii:count", count_pii, false, false },
    { "pii:types", list_pii, false, false },
};

static const struct own *find_own(rt_str name)
{
    for (size_t i = 0; i < RT_COUNT(owns); i++)
        if (rt_str_eq_c(name, owns[i].name))
            return &owns[i];
    return NULL;
}

static void answer_own(errand *a)
{
    const struct own *own = a->own;
    engine_desk *d = a->desk;
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_error err = { 0 };
    rt_json_writer w;
    rt_json arguments;
    rt_json_begin(&w, &text);
    bool ok = !own->needs_tools || d->p->engine->config.tools ||
              rt_fail(&err, RT_NOT_FOUND, "there are no tools here");
    ok = ok && rt_json_parse(a->call.arguments, &a->arena, &arguments, &err) &&
         own->answer(d, arguments, &a->arena, &w, &err) && rt_buf_ok(&text, &err);
    if (ok)
        a->answer.value = rt_arena_str(&a->arena, rt_buf_str(&text));
    else
        fail_errand(a, (rt_str){ 0 }, rt_str_of(err.text));
}

/* ---- the desk itself ---- */

static void take(rt_desk *self, const rt_desk_call *call)
{
    engine_desk *d = (engine_desk *)self;
    rt_tools *tools = d->p->engine->config.tools;
    errand *a = calloc(1, sizeof(*a));
    if (!a)
        rt_out_of_memory(sizeof(*a));
    if (d->base.fd < 0)
        d->base.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    a->desk = d;
    a->call = (rt_desk_call){ .number = call->number,
                              .tool = rt_arena_str(&a->arena, call->tool),
                              .arguments = rt_arena_str(&a->arena, call->arguments) };
    a->answer.number = call->number;
    a->own = find_own(call->tool);
    bool is_quick = a->own && !a->own->may_wait &&
                    (!a->own->needs_tools || !tools || rt_tools_gather(tools, 0));
    if (is_quick) {
        answer_own(a);
        hand_in(a, true);
    } else if (!start_errand(a)) {
        fail_errand(a, (rt_str){ 0 }, RT_STR("too many calls are under way"));
        hand_in(a, true);
    }
}

static bool next(rt_desk *self, rt_arena *arena, rt_desk_answer *out)
{
    (void)arena;
    engine_desk *d = (engine_desk *)self;
    eventfd_t woken;
    free_errand(d->given);
    pthread_mutex_lock(&d->lock);
    d->given = d->first;
    if (d->given) {
        d->first = d->given->next;
        d->last = d->first ? d->last : &d->first;
    } else if (d->has_rung) {
        eventfd_read(d->base.fd, &woken);
        d->has_rung = false;
    }
    pthread_mutex_unlock(&d->lock);
    if (!d->given)
        return false;
    *out = d->given->answer;
    return true;
}

static bool paused(rt_desk *self)
{
    engine_desk *d = (engine_desk *)self;
    pthread_mutex_lock(&d->lock);
    bool is_paused = d->waiting > 0;
    pthread_mutex_unlock(&d->lock);
    return is_paused;
}

static rt_str list_servers(passage *p)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_str *names = NULL;
    rt_tools *tools = p->engine->config.tools;
    size_t count = tools ? rt_tools_servers(tools, p->arena, &names) : 0;
    rt_json_begin(&w, &text);
    rt_jw_array(&w);
    for (size_t i = 0; i < count; i++)
        if (engine_grant_server(p->engine, &p->grant, names[i]))
            rt_jw_str(&w, names[i]);
    rt_jw_end(&w);
    return rt_arena_str(p->arena, rt_buf_str(&text));
}

rt_desk *engine_desk_open(passage *p)
{
    engine_desk *d = calloc(1, sizeof(*d));
    if (!d)
        rt_out_of_memory(sizeof(*d));
    d->base = (rt_desk){
        .fd = -1, .take = take, .next = next, .paused = paused, .servers = list_servers(p)
    };
    d->p = p;
    d->last = &d->first;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->idle, NULL);
    return &d->base;
}

static void write_ids(engine_desk *d, rt_arena *arena, engine_desk_report *out)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &text);
    rt_jw_array(&w);
    for (size_t i = 0; i < d->report.id_count; i++)
        rt_jw_str(&w, d->ids[i]);
    rt_jw_end(&w);
    out->ids = rt_arena_str(arena, rt_buf_str(&text));
}

static void report(engine_desk *d, rt_arena *arena, engine_desk_report *out)
{
    uint8_t digest[RT_SHA256_SIZE];
    *out = d->report;
    if (d->report.calls == 0)
        return;
    rt_sha256_end(&d->transcript, digest);
    rt_hex(out->transcript_hash, digest, sizeof(digest));
    write_ids(d, arena, out);
}

void engine_desk_close(rt_desk *desk, rt_arena *arena, engine_desk_report *out)
{
    engine_desk *d = (engine_desk *)desk;
    if (d->has_canceller) {
        rt_canceller_cancel(&d->canceller);
        engine_approvals_wake(d->p->engine->approvals);
    }
    pthread_mutex_lock(&d->lock);
    while (d->pending > 0)
        pthread_cond_wait(&d->idle, &d->lock);
    pthread_mutex_unlock(&d->lock);
    free_errand(d->given);
    for (errand *a = d->first, *after; a; a = after) {
        after = a->next;
        free_errand(a);
    }
    report(d, arena, out);
    if (d->has_canceller)
        rt_canceller_done(&d->canceller);
    rt_sha256_done(&d->transcript);
    rt_closep(&d->base.fd);
    rt_arena_done(&d->arena);
    pthread_cond_destroy(&d->idle);
    pthread_mutex_destroy(&d->lock);
    free(d);
}
