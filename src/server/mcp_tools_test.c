/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "server/mcp.h"

static rt_arena arena;

/* ---- a server with one tool, which says what it was asked ---- */

static bool list(rt_provider *self, rt_arena *a, rt_tool **out, size_t *count, rt_error *err)
{
    (void)self;
    (void)err;
    *out = rt_arena_alloc(a, sizeof(**out));
    (*out)[0] = (rt_tool){ .name = RT_STR("github:list_commits"),
                           .server = RT_STR("github"),
                           .description = RT_STR("Lists the commits of a repository"),
                           .input_schema = RT_STR("{\"type\":\"object\"}") };
    *count = 1;
    return true;
}

static bool call(rt_provider *self, const rt_tool_call *asked, rt_arena *a, rt_tool_result *out,
                 rt_error *err)
{
    (void)self;
    if (rt_str_find(asked->arguments, RT_STR("\"slow\"")) >= 0)
        return rt_fail(err, RT_TIMEOUT, "github took too long");
    if (asked->on_progress)
        asked->on_progress(asked->progress_ctx, 1, 2, RT_STR("half"));
    *out = (rt_tool_result){
        .value = rt_arena_printf(a, "{\"asked\":%.*s}", RT_FMT(asked->arguments)),
        .content = RT_STR("[\n{\"type\":\"text\",\"text\":\"as it came\"}]"),
        .is_error = rt_str_find(asked->arguments, RT_STR("\"bad\"")) >= 0,
    };
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

static rt_provider github = {
    .name = "github", .list = list, .call = call, .health = health, .close = close_provider
};

/* ---- asking ---- */

typedef struct said {
    rt_json answer;
    size_t progress;
} said;

static void hear(void *ctx, rt_str message, unsigned status)
{
    said *s = ctx;
    if (status == 0)
        s->progress++;
    else
        cr_assert(rt_json_parse(message, &arena, &s->answer, NULL));
}

static rt_store *store;

static rt_engine *open_engine(rt_tools *tools)
{
    static const rt_str all[] = { { "*", 1 } };
    rt_engine *engine;
    rt_error err = { 0 };
    rt_store_config memory = { .url = RT_STR("sqlite::memory:") };
    cr_assert(rt_store_open(&memory, &store, &err) && rt_store_migrate(store, NULL, NULL, &err),
              "%s", err.text);
    rt_engine_config config = { .runtime = rt_placeholder_open(),
                                .store = store,
                                .tools = tools,
                                .tool_rules = { .granted = { all, 1 } },
                                .host = RT_STR("here") };
    cr_assert(rt_engine_open(&config, &engine, &err), "%s", err.text);
    return engine;
}

static said ask(const char *name, const char *arguments, rt_role role)
{
    said s = { 0 };
    rt_tools *tools = NULL;
    rt_error err = { 0 };
    rt_json message;
    cr_assert(rt_tools_open(&(rt_tools_config){ 0 }, &tools, &err), "%s", err.text);
    cr_assert(rt_tools_add(tools, &github, &err), "%s", err.text);
    rt_engine *engine = open_engine(tools);
    rt_server_config config = { .tools = tools, .engine = engine };
    mcp *m = mcp_new(&config);
    mcp_call *c = mcp_call_new(m, &(rt_caller){ .role = role });
    rt_str text = rt_arena_printf(&arena,
                                  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
                                  "\"params\":{\"name\":\"%s\",\"arguments\":%s,"
                                  "\"_meta\":{\"progressToken\":9}}}",
                                  name, arguments);
    c->send = hear;
    c->send_ctx = &s;
    cr_assert(rt_json_parse(text, &c->arena, &message, NULL));
    mcp_call_open(c, message, NULL);
    mcp_call_answer(c);
    mcp_call_release(c);
    mcp_free(m);
    rt_tools_close(tools);
    rt_engine_close(engine);
    rt_store_close(store);
    return s;
}

static rt_json result_of(said s)
{
    return rt_json_get_c(s.answer, "result");
}

static rt_str text_of(said s)
{
    return rt_json_str(
        rt_json_get_c(rt_json_at(rt_json_get_c(result_of(s), "content"), 0), "text"));
}

Test(mcp_gateway, a_tool_of_another_server_is_called_by_its_name)
{
    said s = ask("github:list_commits", "{\"limit\":3}", RT_ROLE_MEMBER);
    rt_json asked = rt_json_get_c(rt_json_get_c(result_of(s), "structuredContent"), "asked");
    int64_t limit = 0;
    cr_expect(rt_str_eq_c(text_of(s), "as it came"));
    cr_expect(rt_json_i64(rt_json_get_c(asked, "limit"), &limit) && limit == 3);
    cr_expect_eq(s.progress, 1, "what it tells of its progress is passed on");
}

Test(mcp_gateway, its_own_errors_stay_its_own)
{
    said bad = ask("github:list_commits", "{\"x\":\"bad\"}", RT_ROLE_MEMBER);
    cr_expect(rt_json_bool(rt_json_get_c(result_of(bad), "isError"), false));
    cr_expect(rt_json_is_absent(rt_json_get_c(result_of(bad), "structuredContent")));
    said slow = ask("github:list_commits", "{\"x\":\"slow\"}", RT_ROLE_MEMBER);
    cr_expect(rt_json_bool(rt_json_get_c(result_of(slow), "isError"), false));
    cr_expect_geq(rt_str_find(text_of(slow), RT_STR("took too long")), 0);
}

Test(mcp_gateway, an_unknown_server_is_told_with_those_there_are)
{
    static const char *const names[] = { "gitlab:list_commits", "github:nope", "nonsense" };
    for (size_t i = 0; i < RT_COUNT(names); i++) {
        rt_json error = rt_json_get_c(ask(names[i], "{}", RT_ROLE_MEMBER).answer, "error");
        rt_json servers = rt_json_get_c(rt_json_get_c(error, "data"), "available_servers");
        int64_t code = 0;
        cr_expect(rt_json_i64(rt_json_get_c(error, "code"), &code) && code == -32602);
        cr_expect(rt_str_eq_c(rt_json_str(rt_json_at(servers, 0)), "github"));
    }
}

Test(mcp_gateway, who_may_only_look_calls_nothing)
{
    said s = ask("github:list_commits", "{}", RT_ROLE_VIEWER);
    cr_expect(!rt_json_is_absent(rt_json_get_c(s.answer, "error")));
}

Test(mcp_gateway, search_and_describe_find_it)
{
    said found = ask("pml:search_tools", "{\"query\":\"commits of a repository\"}", RT_ROLE_VIEWER);
    rt_json tools = rt_json_get_c(rt_json_get_c(result_of(found), "structuredContent"), "tools");
    cr_assert_eq(rt_json_count(tools), 1);
    cr_expect(rt_str_eq_c(rt_json_str(rt_json_get_c(rt_json_at(tools, 0), "tool_id")),
                          "github:list_commits"));
    said about = ask("describe_tool", "{\"name\":\"github:list_commits\"}", RT_ROLE_VIEWER);
    rt_json schema =
        rt_json_get_c(rt_json_get_c(result_of(about), "structuredContent"), "inputSchema");
    cr_expect(rt_str_eq_c(rt_json_str(rt_json_get_c(schema, "type")), "object"));
}
