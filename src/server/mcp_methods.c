/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_methods.c - the methods of both eras, one row each, and those that are about the connection
 * itself: introductions, log levels, listening.
 */
#include <poll.h>
#include <stdio.h>

#include "server/mcp.h"

#define INSTRUCTIONS                                                                               \
    "Retort runs code in sealed cells. Instead of calling many tools and reading their results, "  \
    "find tools with pml_search_tools, then write code that calls them and returns only what you " \
    "need: pml_execute_code. Large outputs come back as handles; pml_read_artifact reads parts."

void mcp_write_server_info(const mcp *m, rt_json_writer *w)
{
    rt_str version = m->config->version;
    rt_jw_object(w);
    rt_jw_kstr(w, "name", RT_STR("retort"));
    rt_jw_kstr(w, "title", RT_STR("Retort"));
    rt_jw_kstr(w, "version", version.len > 0 ? version : RT_STR(RETORT_VERSION));
    rt_jw_end(w);
}

/* Only what is really served: our own tools and resources never change while the program runs. */
static void write_capabilities(const mcp_call *c, rt_json_writer *w)
{
    bool is_fixture = c->mcp->config->has_mcp_fixture;
    rt_jw_kobject(w, "capabilities");
    rt_jw_kraw(w, "logging", RT_STR("{}"));
    rt_jw_kraw(w, "tools", is_fixture ? RT_STR("{\"listChanged\":true}") : RT_STR("{}"));
    rt_jw_kraw(w, "resources", is_fixture ? RT_STR("{\"subscribe\":true}") : RT_STR("{}"));
    if (is_fixture) {
        rt_jw_kraw(w, "prompts", RT_STR("{\"listChanged\":true}"));
        rt_jw_kraw(w, "completions", RT_STR("{}"));
    }
    rt_jw_end(w);
    if (c->agents.len == 0) /* agents speak for themselves */
        rt_jw_kstr(w, "instructions", RT_STR(INSTRUCTIONS));
}

/* ---- introductions ---- */

static bool initialize(mcp_call *c, rt_json_writer *w)
{
    rt_json asked = rt_json_get_c(c->params, "protocolVersion");
    const rt_mcp_version *version = rt_mcp_version_find(rt_json_str(asked));
    if (rt_json_type(asked) != RT_JSON_STRING)
        return mcp_fail(c, RT_MCP_INVALID_PARAMS, (rt_str){ 0 },
                        "Invalid params: protocolVersion is missing");
    if (!version || version->era != RT_MCP_LEGACY)
        version = rt_mcp_version_newest(RT_MCP_LEGACY);
    c->version = version;
    if (c->peer)
        mcp_peer_introduce(c->peer, version, rt_json_get_c(c->params, "capabilities"));
    rt_jw_kstr(w, "protocolVersion", rt_str_of(version->name));
    write_capabilities(c, w);
    rt_jw_key(w, RT_STR("serverInfo"));
    mcp_write_server_info(c->mcp, w);
    return true;
}

static bool discover(mcp_call *c, rt_json_writer *w)
{
    rt_jw_karray(w, "supportedVersions");
    for (size_t i = 0; i < rt_mcp_version_count; i++)
        if (rt_mcp_versions[i].era == RT_MCP_MODERN)
            rt_jw_str(w, rt_str_of(rt_mcp_versions[i].name));
    rt_jw_end(w);
    write_capabilities(c, w);
    return true;
}

static bool ping(mcp_call *c, rt_json_writer *w)
{
    (void)c;
    (void)w;
    return true;
}

static bool set_level(mcp_call *c, rt_json_writer *w)
{
    rt_str name = rt_json_str(rt_json_get_c(c->params, "level"));
    int level = mcp_level_find(name);
    (void)w;
    if (level < 0)
        return mcp_fail(c, RT_MCP_INVALID_PARAMS, (rt_str){ 0 },
                        "Invalid params: there is no log level '%.*s'",
                        (int)RT_MIN(name.len, (size_t)40), name.ptr);
    if (c->peer)
        mcp_peer_level_set(c->peer, level);
    return true;
}

/* ---- hearing of changes ---- */

static bool subscribe(mcp_call *c, rt_json_writer *w)
{
    rt_str uri = rt_json_str(rt_json_get_c(c->params, "uri"));
    (void)w;
    if (uri.len == 0)
        return mcp_fail(c, RT_MCP_INVALID_PARAMS, (rt_str){ 0 }, "Invalid params: uri is missing");
    return !c->peer || mcp_peer_subscribe(c->peer, uri) ||
           mcp_fail(c, RT_MCP_INVALID_PARAMS, (rt_str){ 0 },
                    "at most %d resources can be subscribed to", MCP_URIS_MAX);
}

static bool unsubscribe(mcp_call *c, rt_json_writer *w)
{
    (void)w;
    if (c->peer)
        mcp_peer_unsubscribe(c->peer, rt_json_str(rt_json_get_c(c->params, "uri")));
    return true;
}

static bool read_wanted(mcp_call *c)
{
    rt_json wanted = rt_json_get_c(c->params, "notifications"), uri;
    rt_json_iter uris = rt_json_each(rt_json_get_c(wanted, "resourceSubscriptions"));
    bool is_fixture = c->mcp->config->has_mcp_fixture; /* nothing of our own ever changes */
    if (rt_json_type(wanted) != RT_JSON_OBJECT)
        return mcp_fail(c, RT_MCP_INVALID_PARAMS, (rt_str){ 0 },
                        "Invalid params: notifications is missing");
    c->wanted.tools = is_fixture && rt_json_bool(rt_json_get_c(wanted, "toolsListChanged"), false);
    c->wanted.prompts =
        is_fixture && rt_json_bool(rt_json_get_c(wanted, "promptsListChanged"), false);
    while (is_fixture && rt_json_next(&uris, NULL, &uri)) {
        if (c->wanted.uri_count == MCP_URIS_MAX || rt_json_str(uri).len > MCP_URI_MAX)
            return mcp_fail(c, RT_MCP_INVALID_PARAMS, (rt_str){ 0 },
                            "at most %d resources can be subscribed to", MCP_URIS_MAX);
        c->wanted.uris[c->wanted.uri_count++] = rt_json_str(uri);
    }
    return true;
}

static void acknowledge(mcp_call *c)
{
    rt_buf message RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &message);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "jsonrpc", RT_STR("2.0"));
    rt_jw_kstr(&w, "method", RT_STR("notifications/subscriptions/acknowledged"));
    rt_jw_kobject(&w, "params");
    rt_jw_kobject(&w, "notifications");
    if (c->wanted.tools)
        rt_jw_kbool(&w, "toolsListChanged", true);
    if (c->wanted.prompts)
        rt_jw_kbool(&w, "promptsListChanged", true);
    if (c->wanted.uri_count > 0) {
        rt_jw_karray(&w, "resourceSubscriptions");
        for (size_t i = 0; i < c->wanted.uri_count; i++)
            rt_jw_str(&w, c->wanted.uris[i]);
        rt_jw_end(&w);
    }
    rt_jw_end(&w);
    rt_jw_kobject(&w, "_meta");
    rt_jw_kraw(&w, RT_MCP_META_SUBSCRIPTION, c->id);
    rt_jw_end(&w);
    rt_jw_end(&w);
    rt_jw_end(&w);
    c->send(c->send_ctx, rt_buf_str(&message), 0);
}

/* Stays until the client or the server goes away. */
static bool listen_for_changes(mcp_call *c, rt_json_writer *w)
{
    struct pollfd wake = { .fd = c->canceller.wake, .events = POLLIN };
    (void)w;
    if (!read_wanted(c))
        return false;
    acknowledge(c);
    pthread_mutex_lock(&c->mcp->lock);
    c->is_listening = true;
    bool is_stopping = c->mcp->is_stopping;
    pthread_mutex_unlock(&c->mcp->lock);
    while (!is_stopping && !rt_canceller_is_cancelled(&c->canceller))
        poll(&wake, 1, -1);
    return true;
}

bool mcp_check_cursor(mcp_call *c)
{
    rt_json cursor = rt_json_get_c(c->params, "cursor");
    return rt_json_is_absent(cursor) || mcp_fail(c, RT_MCP_INVALID_PARAMS, (rt_str){ 0 },
                                                 "Invalid params: there is no such cursor");
}

/* ---- the table ---- */

static const mcp_method methods[] = {
    { "initialize", initialize, MCP_LEGACY_ONLY, NULL },
    { "ping", ping, MCP_LEGACY_ONLY, NULL },
    { "logging/setLevel", set_level, MCP_LEGACY_ONLY, NULL },
    { "resources/subscribe", subscribe, MCP_LEGACY_ONLY | MCP_FIXTURE, NULL },
    { "resources/unsubscribe", unsubscribe, MCP_LEGACY_ONLY | MCP_FIXTURE, NULL },
    { "server/discover", discover, MCP_MODERN_ONLY | MCP_CACHED, NULL },
    { "subscriptions/listen", listen_for_changes, MCP_MODERN_ONLY | MCP_LONG, NULL },
    { "tools/list", mcp_list_tools, MCP_CACHED, NULL },
    { "tools/call", mcp_call_tool, MCP_LONG, "name" },
    { "resources/list", mcp_resources_list, MCP_CACHED, NULL },
    { "resources/templates/list", mcp_resources_templates, MCP_CACHED, NULL },
    { "resources/read", mcp_resources_read, MCP_CACHED, "uri" },
    { "prompts/list", mcp_prompts_list, MCP_CACHED | MCP_FIXTURE, NULL },
    { "prompts/get", mcp_prompts_get, MCP_FIXTURE, "name" },
    { "completion/complete", mcp_complete, MCP_FIXTURE, NULL },
};

const mcp_method *mcp_method_find(const mcp *m, rt_str name, rt_mcp_era era)
{
    unsigned not_there = era == RT_MCP_MODERN ? MCP_LEGACY_ONLY : MCP_MODERN_ONLY;
    if (!m->config->has_mcp_fixture)
        not_there |= MCP_FIXTURE;
    for (size_t i = 0; i < RT_COUNT(methods); i++)
        if (rt_str_eq_c(name, methods[i].name) && !(methods[i].flags & not_there))
            return &methods[i];
    return NULL;
}
