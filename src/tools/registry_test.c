/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/tools.h"

/* A provider in this program: its list is `names`, its calls answer with the arguments. */
typedef struct shelf {
    rt_provider provider;
    const char *names[8];
    const char *audiences[8]; /* NULL: everybody */
    atomic_int calls, closed;
    pthread_mutex_t gate; /* held: calls and lists wait */
    bool is_down;
} shelf;

static bool shelf_list(rt_provider *self, rt_arena *arena, rt_tool **out, size_t *count,
                       rt_error *err)
{
    shelf *s = (shelf *)self;
    pthread_mutex_lock(&s->gate);
    pthread_mutex_unlock(&s->gate);
    if (s->is_down)
        return rt_fail(err, RT_UNAVAILABLE, "down");
    *out = rt_arena_alloc(arena, RT_COUNT(s->names) * sizeof(**out));
    for (*count = 0; *count < RT_COUNT(s->names) && s->names[*count]; ++*count)
        (*out)[*count] = (rt_tool){ .name = rt_str_of(s->names[*count]),
                                    .description = RT_STR("Does what its name says. And more."),
                                    .input_schema = RT_STR("{\"type\":\"object\"}"),
                                    .audience = rt_str_of(s->audiences[*count]) };
    return true;
}

static bool shelf_call(rt_provider *self, const rt_tool_call *call, rt_arena *arena,
                       rt_tool_result *out, rt_error *err)
{
    shelf *s = (shelf *)self;
    (void)arena, (void)err;
    pthread_mutex_lock(&s->gate);
    pthread_mutex_unlock(&s->gate);
    s->calls++;
    *out = (rt_tool_result){ .value = call->arguments };
    return true;
}

static void shelf_close(rt_provider *self)
{
    ((shelf *)self)->closed++;
}

static void shelf_init(shelf *s, const char *name)
{
    *s = (shelf){ .provider = { .list = shelf_list, .call = shelf_call, .close = shelf_close } };
    snprintf(s->provider.name, sizeof(s->provider.name), "%s", name);
    pthread_mutex_init(&s->gate, NULL);
}

static rt_tools *open_with(shelf *s)
{
    rt_error err = { 0 };
    rt_tools *tools = NULL;
    cr_assert(rt_tools_open(&(rt_tools_config){ 0 }, &tools, &err), "%s", err.text);
    cr_assert(rt_tools_add(tools, &s->provider, &err), "%s", err.text);
    return tools;
}

static size_t count_of(rt_tools *tools)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_tool *list;
    return rt_tools_list(tools, RT_STR(""), &arena, &list);
}

Test(registry, a_tool_has_its_servers_name_before_its_own)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    shelf s;
    shelf_init(&s, "github");
    s.names[0] = "list_commits", s.names[1] = "github:create_issue";
    rt_tools *tools RT_CLEANUP(rt_tools_closep) = open_with(&s);
    rt_tool *list;
    cr_assert_eq(rt_tools_list(tools, RT_STR("github"), &arena, &list), 2);
    cr_assert(rt_str_eq_c(list[0].name, "github:create_issue"));
    cr_assert(rt_str_eq_c(list[1].name, "github:list_commits"));
    cr_assert_eq(list[1].input_schema.len, 0, "browsing gives no schemas");
    cr_assert_eq(list[1].version.len, 16);
    cr_assert_eq(rt_tools_list(tools, RT_STR("other"), &arena, &list), 0);
}

Test(registry, a_tool_is_found_with_its_schema_and_an_unknown_one_with_a_suggestion)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_tool tool;
    shelf s;
    shelf_init(&s, "github");
    s.names[0] = "list_commits";
    rt_tools *tools RT_CLEANUP(rt_tools_closep) = open_with(&s);
    cr_assert(rt_tools_find(tools, RT_STR("github:list_commits"), &arena, &tool, &err));
    cr_assert(rt_str_eq_c(tool.input_schema, "{\"type\":\"object\"}"));
    cr_assert(!rt_tools_find(tools, RT_STR("github:list_comits"), &arena, &tool, &err));
    cr_assert_eq(err.code, RT_NOT_FOUND);
    cr_assert(strstr(err.text, "github:list_commits"), "%s", err.text);
}

Test(registry, names_that_will_not_do_are_left_out)
{
    shelf s;
    shelf_init(&s, "odd");
    s.names[0] = "fine-1", s.names[1] = "a b", s.names[2] = "__proto__", s.names[3] = "",
    s.names[4] = "my_constructor", s.names[5] = "x/y";
    rt_tools *tools RT_CLEANUP(rt_tools_closep) = open_with(&s);
    cr_assert_eq(count_of(tools), 1);
}

Test(registry, hygiene_of_names)
{
    char longest[101];
    memset(longest, 'a', sizeof(longest));
    cr_assert(rt_tool_name_check((rt_str){ longest, 100 }, NULL));
    cr_assert(!rt_tool_name_check((rt_str){ longest, 101 }, NULL));
    cr_assert(rt_tool_name_check(RT_STR("List-Commits_2"), NULL));
    cr_assert(!rt_tool_name_check(RT_STR("x__lookupSetter__"), NULL));
    cr_assert(!rt_tool_name_check(RT_STR("gr\xc3\xb6\xc3\x9f"
                                         "e"),
                                  NULL));
}

Test(registry, a_call_goes_to_its_provider)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_tool_result result;
    shelf a, b;
    shelf_init(&a, "a"), shelf_init(&b, "b");
    a.names[0] = "x", b.names[0] = "x";
    rt_tools *tools RT_CLEANUP(rt_tools_closep) = open_with(&a);
    cr_assert(rt_tools_add(tools, &b.provider, &err));
    rt_tool_call call = { .tool = RT_STR("b:x"),
                          .arguments = RT_STR("{\"n\":1}"),
                          .cancel_fd = -1 };
    cr_assert(rt_tools_call(tools, &call, &arena, &result, &err), "%s", err.text);
    cr_assert(rt_str_eq_c(result.value, "{\"n\":1}"));
    cr_assert_eq(a.calls, 0);
    cr_assert_eq(b.calls, 1);
    call.tool = RT_STR("c:x");
    cr_assert(!rt_tools_call(tools, &call, &arena, &result, &err));
    cr_assert_eq(err.code, RT_NOT_FOUND);
}

Test(registry, a_second_provider_of_a_name_is_refused_and_closed)
{
    rt_error err = { 0 };
    shelf a, b;
    shelf_init(&a, "same"), shelf_init(&b, "same");
    rt_tools *tools RT_CLEANUP(rt_tools_closep) = open_with(&a);
    cr_assert(!rt_tools_add(tools, &b.provider, &err));
    cr_assert_eq(err.code, RT_CONFLICT);
    cr_assert_eq(b.closed, 1);
    cr_assert_eq(a.closed, 0);
}

Test(registry, a_list_that_changes_is_asked_for_again)
{
    shelf s;
    shelf_init(&s, "changing");
    s.names[0] = "one";
    rt_tools *tools RT_CLEANUP(rt_tools_closep) = open_with(&s);
    s.names[1] = "two";
    s.provider.on_change(s.provider.change_ctx, &s.provider);
    rt_tools_settle(tools);
    cr_assert_eq(count_of(tools), 2);
}

Test(registry, a_provider_that_is_down_comes_back)
{
    shelf s;
    shelf_init(&s, "shaky");
    s.names[0] = "one", s.is_down = true;
    rt_tools *tools RT_CLEANUP(rt_tools_closep) = open_with(&s);
    cr_assert_eq(count_of(tools), 0);
    s.is_down = false;
    s.provider.on_change(s.provider.change_ctx, &s.provider);
    rt_tools_settle(tools);
    cr_assert_eq(count_of(tools), 1);
}

Test(registry, a_slow_list_delays_nobody)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_tool_hit hits[3];
    shelf slow, quick;
    shelf_init(&slow, "slow"), shelf_init(&quick, "quick");
    slow.names[0] = "one", quick.names[0] = "send_email";
    rt_tools *tools RT_CLEANUP(rt_tools_closep) = open_with(&slow);
    cr_assert(rt_tools_add(tools, &quick.provider, NULL));
    pthread_mutex_lock(&slow.gate);
    slow.provider.on_change(slow.provider.change_ctx, &slow.provider);
    cr_assert_eq(count_of(tools), 2);
    cr_assert_gt(rt_tools_search(tools, RT_STR("mail somebody"), &arena, hits, 3), 0);
    cr_assert(rt_str_eq_c(hits[0].tool.name, "quick:send_email"));
    pthread_mutex_unlock(&slow.gate);
}

static void *call_one(void *ctx)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_tool_call call = { .tool = RT_STR("slow:one"), .arguments = RT_STR("{}"), .cancel_fd = -1 };
    rt_tool_result result;
    return rt_tools_call(ctx, &call, &arena, &result, NULL) ? ctx : NULL;
}

Test(registry, a_removed_provider_is_closed_after_its_last_call)
{
    shelf s;
    pthread_t thread;
    void *done;
    shelf_init(&s, "slow");
    s.names[0] = "one";
    rt_tools *tools RT_CLEANUP(rt_tools_closep) = open_with(&s);
    cr_assert_eq(pthread_create(&thread, NULL, call_one, tools), 0);
    pthread_join(thread, &done);
    cr_assert_eq(done, tools);
    cr_assert(rt_tools_remove(tools, RT_STR("slow"), NULL));
    cr_assert_eq(s.calls, 1);
    cr_assert_eq(s.closed, 1);
    cr_assert_eq(count_of(tools), 0);
    cr_assert(!rt_tools_remove(tools, RT_STR("slow"), NULL));
}

Test(registry, a_listing_of_many_costs_two_hundred_tokens)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    char names[300][64];
    shelf s[40];
    rt_tools *tools RT_CLEANUP(rt_tools_closep) = NULL;
    cr_assert(rt_tools_open(&(rt_tools_config){ 0 }, &tools, NULL));
    for (size_t i = 0; i < RT_COUNT(s); i++) {
        char server[32];
        snprintf(server, sizeof(server), "server_number_%zu", i);
        shelf_init(&s[i], server);
        for (size_t k = 0; k < 7; k++) {
            snprintf(names[7 * i + k], 64, "a_tool_with_a_rather_long_name_%zu", k);
            s[i].names[k] = names[7 * i + k];
        }
        cr_assert(rt_tools_add(tools, &s[i].provider, NULL));
    }
    rt_str all = rt_tools_browse(tools, RT_STR(""), &arena);
    rt_str one = rt_tools_browse(tools, RT_STR("server_number_3"), &arena);
    cr_assert(all.len > 0 && all.len <= RT_TOOLS_BROWSE_MAX, "%zu", all.len);
    cr_assert(one.len > 0 && one.len <= RT_TOOLS_BROWSE_MAX, "%zu", one.len);
    cr_assert(rt_str_find(one, RT_STR("Does what its name says\n")) > 0, "%.*s", RT_FMT(one));
}

Test(registry, a_tool_with_an_audience_is_there_for_nobody_else)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_str acme = RT_STR("acme"), rival = RT_STR("rival"), name = RT_STR("agents:sum_invoices");
    shelf s;
    shelf_init(&s, "agents");
    s.names[0] = s.names[1] = "sum_invoices", s.names[2] = "greet";
    s.audiences[0] = "acme", s.audiences[1] = "zeta";
    rt_tools *tools RT_CLEANUP(rt_tools_closep) = open_with(&s);
    rt_tool *list, tool;
    rt_tool_hit hits[4];
    rt_tool_result result;
    cr_assert_eq(rt_tools_list(tools, RT_STR(""), &arena, &list), 1);
    cr_assert_eq(rt_tools_list_for(tools, acme, RT_STR(""), &arena, &list), 2);
    cr_assert(rt_tools_find_for(tools, acme, name, &arena, &tool, &err), "%s", err.text);
    cr_assert(rt_str_eq(tool.audience, acme));
    cr_assert(!rt_tools_find_for(tools, rival, name, &arena, &tool, &err));
    cr_assert(err.code == RT_NOT_FOUND && !strstr(err.text, "did you mean"));
    cr_assert(
        !rt_tools_resolve_for(tools, rival, RT_STR("agents:sumInvoices"), 0, &arena, &tool, &err));
    cr_assert(
        rt_tools_resolve_for(tools, acme, RT_STR("agents:sumInvoices"), 0, &arena, &tool, &err));
    cr_assert_eq(rt_tools_search(tools, RT_STR("sum invoices"), &arena, hits, 4), 0);
    cr_assert_eq(rt_tools_search_for(tools, acme, RT_STR("sum invoices"), &arena, hits, 4), 1);
    rt_tool_call call = { .tool = name, .arguments = RT_STR("{}"), .cancel_fd = -1 };
    cr_assert(!rt_tools_call(tools, &call, &arena, &result, &err));
    call.organisation_id = acme;
    cr_assert(rt_tools_call(tools, &call, &arena, &result, &err), "%s", err.text);
    cr_assert(!strstr(rt_tools_browse(tools, RT_STR("agents"), &arena).ptr, "invoices"));
}
