/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conformance_client.c - our client as the public conformance suite wants one.
 *
 *     mcp-conformance-client URL
 *
 * The suite says in the environment which scenario and which revision it is about, and what else
 * there is to know. Most scenarios want a client that looks around and calls what it finds; what
 * they judge is how it does that, which is the library's doing, not ours here.
 */
#include "tools/mcp.h"

#include <curl/curl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static const char *scenario;
static rt_json context;

static bool is_scenario(const char *name)
{
    return strcmp(scenario, name) == 0;
}

/* -- A person, who always says yes ------------------------------------------------------------- */

static void put_defaults(rt_json schema, rt_json_writer *w)
{
    rt_json_iter it = rt_json_each(rt_json_get_c(schema, "properties"));
    rt_str key;
    rt_json property;
    rt_jw_object(w);
    while (rt_json_next(&it, &key, &property)) {
        rt_json value = rt_json_get_c(property, "default");
        if (rt_json_is_absent(value))
            continue;
        rt_jw_key(w, key);
        rt_jw_json(w, value);
    }
    rt_jw_end(w);
}

static bool answer(void *ctx, rt_str method, rt_json params, rt_arena *arena, rt_str *result,
                   rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    (void)ctx;
    if (!rt_str_eq_c(method, "elicitation/create"))
        return rt_fail(err, RT_UNSUPPORTED, "no %.*s here", RT_FMT(method));
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "action", RT_STR("accept"));
    rt_jw_key(&w, RT_STR("content"));
    put_defaults(rt_json_get_c(params, "requestedSchema"), &w);
    rt_jw_end(&w);
    *result = rt_arena_str(arena, rt_buf_str(&text));
    return true;
}

/* The suite's authorization server sends the browser back at once. */
static bool authorize(void *ctx, rt_str url, rt_arena *arena, rt_str *redirected, rt_error *err)
{
    CURL *curl = curl_easy_init();
    const char *location = NULL;
    (void)ctx;
    curl_easy_setopt(curl, CURLOPT_URL, rt_arena_copy(arena, url));
    curl_easy_setopt(curl, CURLOPT_NOBODY, 0L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 10000L);
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_REDIRECT_URL, &location);
    *redirected = location ? rt_arena_str(arena, rt_str_of(location)) : (rt_str){ "", 0 };
    curl_easy_cleanup(curl);
    return (code == CURLE_OK && redirected->len) ||
           rt_fail(err, RT_DENIED, "the authorization server does not send us back");
}

/* -- Looking around ---------------------------------------------------------------------------- */

static bool call(rt_provider *p, rt_str tool, rt_str arguments, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_tool_result result;
    rt_tool_call call = { .tool = tool, .arguments = arguments, .cancel_fd = -1 };
    if (!p->call(p, &call, &arena, &result, err))
        return false;
    printf("%.*s: %.*s\n", RT_FMT(tool), RT_FMT(result.value));
    return true;
}

/* The tool whose schema is to be sent back as it came. */
static rt_str observed_schema(const rt_tool *tools, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (rt_str_eq_c(tools[i].name, "suite:json_schema_2020_12_tool"))
            return tools[i].input_schema;
    return RT_STR("{}");
}

static rt_str arguments_for(const rt_tool *tool, const rt_tool *tools, size_t count,
                            rt_arena *arena)
{
    if (rt_str_eq_c(tool->name, "suite:add_numbers"))
        return RT_STR("{\"a\":5,\"b\":3}");
    if (rt_str_eq_c(tool->name, "suite:json_schema_echo"))
        return rt_arena_printf(arena, "{\"schema\":%.*s}", RT_FMT(observed_schema(tools, count)));
    return RT_STR("{}");
}

static bool call_all(rt_provider *p, const rt_tool *tools, size_t count, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    for (size_t i = 0; i < count; i++)
        if (!rt_str_eq_c(tools[i].name, "suite:json_schema_2020_12_tool") &&
            !call(p, tools[i].name, arguments_for(&tools[i], tools, count, &arena), err))
            return false;
    return true;
}

static bool call_as_told(rt_provider *p, rt_json calls, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json_iter it = rt_json_each(calls);
    rt_json item;
    while (rt_json_next(&it, NULL, &item)) {
        rt_buf arguments RT_CLEANUP(rt_buf_done) = { 0 };
        rt_str name = rt_json_str(rt_json_get_c(item, "name"));
        rt_json_print(rt_json_get_c(item, "arguments"), &arguments);
        if (!call(p, rt_arena_printf(&arena, "suite:%.*s", RT_FMT(name)), rt_buf_str(&arguments),
                  err))
            return false;
    }
    return true;
}

/* Everything of a kind: lists it, then asks for each by the member that names it. */
static bool get_each(rt_provider *p, const char *list, const char *member, const char *get,
                     const char *key, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str text;
    rt_json doc, item;
    if (!rt_mcp_request(p, rt_str_of(list), RT_STR(""), NULL, &arena, &text, err) ||
        !rt_json_parse(text, &arena, &doc, err))
        return false;
    rt_json_iter it = rt_json_each(rt_json_get_c(doc, member));
    while (rt_json_next(&it, NULL, &item)) {
        rt_buf params RT_CLEANUP(rt_buf_done) = { 0 };
        rt_json_writer w;
        rt_json_begin(&w, &params);
        rt_jw_object(&w);
        rt_jw_kjson(&w, key, rt_json_get_c(item, key));
        rt_jw_end(&w);
        if (!rt_mcp_request(p, rt_str_of(get), rt_buf_str(&params), NULL, &arena, &text, err))
            return false;
    }
    return true;
}

static bool play(rt_provider *p, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json calls = rt_json_get_c(context, "toolCalls");
    rt_tool *tools;
    size_t count;
    if (!p->list(p, &arena, &tools, &count, err))
        return false;
    printf("%zu tools\n", count);
    if (is_scenario("json-schema-ref-no-deref"))
        return true;
    if (!rt_json_is_absent(calls))
        return call_as_told(p, calls, err);
    if (!call_all(p, tools, count, err))
        return false;
    return !is_scenario("http-standard-headers") ||
           (get_each(p, "resources/list", "resources", "resources/read", "uri", err) &&
            get_each(p, "prompts/list", "prompts", "prompts/get", "name", err));
}

int main(int argc, char **argv)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    const char *said = getenv("MCP_CONFORMANCE_CONTEXT");
    const char *version = getenv("MCP_CONFORMANCE_PROTOCOL_VERSION");
    rt_provider *provider;
    rt_error err = { 0 };
    signal(SIGPIPE, SIG_IGN);
    scenario = getenv("MCP_CONFORMANCE_SCENARIO");
    if (argc != 2 || !scenario)
        return 2;
    if (said && !rt_json_parse(rt_str_of(said), &arena, &context, &err))
        return 2;
    rt_mcp_config config = {
        .name = RT_STR("suite"),
        .url = argv[1],
        .protocol_version = rt_str_of(version),
        .timeout_ms = 20000,
        .answerer = { .capabilities = RT_STR("{\"elicitation\":{}}"), .answer = answer },
        .oauth = { .authorize = is_scenario("auth/client-credentials-basic") ? NULL : authorize,
                   .redirect_uri = RT_STR("http://localhost:3000/callback"),
                   .client_metadata_url =
                       RT_STR("https://conformance-test.local/client-metadata.json"),
                   .client_id = rt_json_str(rt_json_get_c(context, "client_id")),
                   .client_secret = rt_json_str(rt_json_get_c(context, "client_secret")) },
    };
    bool is_good = rt_mcp_open(&config, &provider, &err);
    if (is_good) {
        is_good = play(provider, &err);
        provider->close(provider);
    }
    if (!is_good)
        fprintf(stderr, "%s\n", err.text);
    return !is_good;
}
