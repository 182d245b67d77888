/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_code_agents.c - /code-agents: making, changing and finding code agents.
 *
 * The shapes are those of the clients this surface has always had: rows in camelCase, errors as
 * {"error": …}. Somebody else's private agent is answered as none would be, by the same statement.
 */
#include "server/code_agents.h"

rt_agents *code_agents_of(http_request *r, rt_error *err)
{
    if (!r->server->config.agents)
        rt_fail(err, RT_UNAVAILABLE, "there are no code agents on this server");
    return r->server->config.agents;
}

void code_agents_reply(http_reply *reply, unsigned status, const rt_agent *agent)
{
    rt_json_writer w;
    http_reply_json(reply, status, &w);
    rt_jw_object(&w);
    rt_agent_write(agent, &w);
    rt_jw_end(&w);
}

static void reply_rows(http_reply *reply, const rt_agent_row *rows, size_t count)
{
    rt_json_writer w;
    http_reply_json(reply, 200, &w);
    rt_jw_array(&w);
    for (size_t i = 0; i < count; i++) {
        rt_jw_object(&w);
        rt_agent_row_write(&rows[i], &w);
        rt_jw_end(&w);
    }
    rt_jw_end(&w);
}

/* ---- agents ---- */

static bool create(http_request *r, http_reply *reply, rt_error *err)
{
    rt_agents *agents = code_agents_of(r, err);
    rt_agent agent;
    rt_json body;
    if (!agents || !http_json(r, &body, err) ||
        !rt_agents_create(agents, &r->caller, body, &r->arena, &agent, err) ||
        !server_audit(r, "code_agent.create", agent.row.id, err))
        return false;
    code_agents_reply(reply, 201, &agent);
    return true;
}

static rt_agent_wish wish_of(const http_request *r, const char *name)
{
    rt_str value = http_query(r, name);
    return !value.ptr ? RT_AGENT_ANY : rt_str_eq_c(value, "true") ? RT_AGENT_YES : RT_AGENT_NO;
}

static bool list(http_request *r, http_reply *reply, rt_error *err)
{
    rt_agents *agents = code_agents_of(r, err);
    rt_agent_filter filter = { .language = http_query(r, "language"),
                               .is_public = wish_of(r, "isPublic"),
                               .is_deprecated = wish_of(r, "deprecated"),
                               .limit = (unsigned)http_query_u64(r, "limit", 0) };
    rt_agent_row *rows;
    size_t count;
    filter.is_own = filter.is_public == RT_AGENT_ANY; /* others' are in the registry */
    if (!agents || !rt_agents_list(agents, &r->caller, &filter, &r->arena, &rows, &count, err))
        return false;
    reply_rows(reply, rows, count);
    return true;
}

/* What is public and not deprecated; with ?q=, what a sentence may mean, best first. */
static bool list_registry(http_request *r, http_reply *reply, rt_error *err)
{
    rt_agents *agents = code_agents_of(r, err);
    rt_agent_filter filter = { .language = http_query(r, "language"),
                               .is_public = RT_AGENT_YES,
                               .is_deprecated = RT_AGENT_NO,
                               .limit = (unsigned)http_query_u64(r, "limit", 0) };
    rt_str query = http_query(r, "q");
    rt_agent_row *rows;
    size_t count;
    bool ok = agents != NULL;
    if (ok && query.len > 0)
        ok = rt_agents_search(agents, &r->caller, query, true, http_query_u64(r, "limit", 20),
                              &r->arena, &rows, &count, err);
    else if (ok)
        ok = rt_agents_list(agents, &r->caller, &filter, &r->arena, &rows, &count, err);
    if (ok)
        reply_rows(reply, rows, count);
    return ok;
}

static bool get(http_request *r, http_reply *reply, rt_error *err)
{
    rt_agents *agents = code_agents_of(r, err);
    rt_agent agent;
    if (!agents || !rt_agents_find(agents, &r->caller, http_param(r, "id"),
                                   http_query(r, "version"), &r->arena, &agent, err))
        return false;
    code_agents_reply(reply, 200, &agent);
    return true;
}

static bool update(http_request *r, http_reply *reply, rt_error *err)
{
    rt_agents *agents = code_agents_of(r, err);
    rt_agent agent;
    rt_json body;
    if (!agents || !http_json(r, &body, err) ||
        !rt_agents_update(agents, &r->caller, http_param(r, "id"), body, &r->arena, &agent, err) ||
        !server_audit(r, "code_agent.update", agent.row.id, err))
        return false;
    code_agents_reply(reply, 200, &agent);
    return true;
}

static bool remove_agent(http_request *r, http_reply *reply, rt_error *err)
{
    rt_agents *agents = code_agents_of(r, err);
    rt_str id = http_param(r, "id");
    if (!agents || !rt_agents_remove(agents, &r->caller, id, err) ||
        !server_audit(r, "code_agent.delete", id, err))
        return false;
    reply->status = 204;
    return true;
}

/* ---- versions ---- */

static bool list_versions(http_request *r, http_reply *reply, rt_error *err)
{
    rt_agents *agents = code_agents_of(r, err);
    rt_agent_version *rows;
    rt_json_writer w;
    size_t count;
    if (!agents ||
        !rt_agents_versions(agents, &r->caller, http_param(r, "id"), &r->arena, &rows, &count, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_array(&w);
    for (size_t i = 0; i < count; i++) {
        rt_jw_object(&w);
        rt_agent_version_write(&rows[i], &w);
        rt_jw_end(&w);
    }
    rt_jw_end(&w);
    return true;
}

static bool add_version(http_request *r, http_reply *reply, rt_error *err)
{
    rt_agents *agents = code_agents_of(r, err);
    rt_agent agent;
    rt_json body;
    if (!agents || !http_json(r, &body, err) ||
        !rt_agents_add_version(agents, &r->caller, http_param(r, "id"), body, &r->arena, &agent,
                               err) ||
        !server_audit(r, "code_agent.version", agent.row.id, err))
        return false;
    code_agents_reply(reply, 201, &agent);
    return true;
}

static bool get_version(http_request *r, http_reply *reply, rt_error *err)
{
    rt_agents *agents = code_agents_of(r, err);
    rt_agent agent;
    if (!agents || !rt_agents_find(agents, &r->caller, http_param(r, "id"),
                                   http_param(r, "version"), &r->arena, &agent, err))
        return false;
    code_agents_reply(reply, 200, &agent);
    return true;
}

/* ---- marks ---- */

static const http_member mark_members[] = {
    { "message", HTTP_STRING | HTTP_NULL, false },
};

static bool mark(http_request *r, http_reply *reply, rt_agent_mark how, rt_error *err)
{
    static const char *const actions[] = { [RT_AGENT_PUBLISH] = "code_agent.publish",
                                           [RT_AGENT_UNPUBLISH] = "code_agent.unpublish",
                                           [RT_AGENT_DEPRECATE] = "code_agent.deprecate",
                                           [RT_AGENT_REVIVE] = "code_agent.undeprecate" };
    rt_agents *agents = code_agents_of(r, err);
    rt_agent agent;
    rt_json body = { 0 };
    if (!agents || !http_object(r, mark_members, RT_COUNT(mark_members), &body, err) ||
        !rt_agents_mark(agents, &r->caller, http_param(r, "id"), how,
                        rt_json_str(rt_json_get_c(body, "message")), &r->arena, &agent, err) ||
        !server_audit(r, actions[how], agent.row.id, err))
        return false;
    code_agents_reply(reply, 200, &agent);
    return true;
}

static bool publish(http_request *r, http_reply *reply, rt_error *err)
{
    return mark(r, reply, RT_AGENT_PUBLISH, err);
}

static bool unpublish(http_request *r, http_reply *reply, rt_error *err)
{
    return mark(r, reply, RT_AGENT_UNPUBLISH, err);
}

static bool deprecate(http_request *r, http_reply *reply, rt_error *err)
{
    return mark(r, reply, RT_AGENT_DEPRECATE, err);
}

static bool undeprecate(http_request *r, http_reply *reply, rt_error *err)
{
    return mark(r, reply, RT_AGENT_REVIVE, err);
}

/* ---- rows ---- */

#define COMMON .tag = "Code agents"
#define FLAGS  HTTP_TWICE | HTTP_CODE_AGENT_ERRORS
#define LIMIT                                                                                      \
    {                                                                                              \
        "limit", HTTP_IN_QUERY, HTTP_TYPE_INTEGER, "rows at most", NULL, NULL, 1, 1000             \
    }
#define LANGUAGE                                                                                   \
    {                                                                                              \
        "language", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "only agents in this language", NULL, NULL, 1,  \
            40                                                                                     \
    }
#define QUERY                                                                                      \
    {                                                                                              \
        "q", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "what the agent should do, in plain words", NULL,      \
            NULL, 1, 400                                                                           \
    }

const http_operation api_code_agent_rows[] = {
    { .method = "POST",
      .path = "/code-agents",
      .id = "createCodeAgent",
      COMMON,
      .summary = "Keep code as a named, versioned agent",
      .about = "Every path of code agents is also there under /api/v1. The agent begins at version "
               "1.0.0; schemas are checked now and at every run.",
      .role = RT_ROLE_MEMBER,
      .action = "create code_agent",
      .request = "CodeAgentRequest",
      .responses = HTTP_RESPONSES({ 201, "CodeAgent", "The agent" }),
      .errors = "409 422",
      .flags = FLAGS,
      .handler = create },
    { .method = "GET",
      .path = "/code-agents",
      .id = "listCodeAgents",
      COMMON,
      .summary = "List one's own agents",
      .about = "Newest first, without code. With isPublic=true also those others published.",
      .role = RT_ROLE_VIEWER,
      .action = "read code_agent",
      .parameters = HTTP_PARAMETERS(LANGUAGE,
                                    { "isPublic", HTTP_IN_QUERY, HTTP_TYPE_BOOLEAN,
                                      "only published ones, or only others", NULL, NULL, 0, 0 },
                                    { "deprecated", HTTP_IN_QUERY, HTTP_TYPE_BOOLEAN,
                                      "only deprecated ones, or only others", NULL, NULL, 0, 0 },
                                    LIMIT),
      .responses = HTTP_RESPONSES({ 200, "CodeAgentList", "The agents" }),
      .flags = FLAGS,
      .handler = list },
    { .method = "GET",
      .path = "/code-agents/registry",
      .id = "listCodeAgentRegistry",
      COMMON,
      .summary = "What everybody published",
      .about = "Public agents that are not deprecated; with q, those a sentence may mean.",
      .role = RT_ROLE_VIEWER,
      .action = "read code_agent",
      .parameters = HTTP_PARAMETERS(QUERY, LANGUAGE, LIMIT),
      .responses = HTTP_RESPONSES({ 200, "CodeAgentList", "The agents" }),
      .flags = FLAGS,
      .handler = list_registry },
    { .method = "GET",
      .path = "/code-agents/registry/public",
      .id = "listCodeAgentRegistryPublic",
      COMMON,
      .summary = "As /code-agents/registry, at the address older clients had",
      .role = RT_ROLE_VIEWER,
      .action = "read code_agent",
      .parameters = HTTP_PARAMETERS(QUERY, LANGUAGE, LIMIT),
      .responses = HTTP_RESPONSES({ 200, "CodeAgentList", "The agents" }),
      .flags = FLAGS,
      .handler = list_registry },
    { .method = "GET",
      .path = "/code-agents/{id}",
      .id = "getCodeAgent",
      COMMON,
      .summary = "One agent, with its code",
      .about = "By its id or its tool's name. Values of its environment are masked.",
      .role = RT_ROLE_VIEWER,
      .action = "read code_agent",
      .parameters = HTTP_PARAMETERS({ "version", HTTP_IN_QUERY, HTTP_TYPE_TEXT,
                                      "a version, or latest", NULL, "latest", 1, 40 }),
      .responses = HTTP_RESPONSES({ 200, "CodeAgent", "The agent at that version" }),
      .errors = "404",
      .flags = FLAGS,
      .handler = get },
    { .method = "PUT",
      .path = "/code-agents/{id}",
      .id = "updateCodeAgent",
      COMMON,
      .summary = "Change an agent",
      .about = "What the body has is changed, and the next minor version is made: 1.0.0, 1.1.0 … "
               "Who is pinned to an earlier version notices nothing.",
      .role = RT_ROLE_MEMBER,
      .action = "update code_agent",
      .request = "CodeAgentRequest",
      .responses = HTTP_RESPONSES({ 200, "CodeAgent", "The agent" }),
      .errors = "404 409 422",
      .flags = FLAGS,
      .handler = update },
    { .method = "DELETE",
      .path = "/code-agents/{id}",
      .id = "deleteCodeAgent",
      COMMON,
      .summary = "Delete an agent with all its versions",
      .role = RT_ROLE_MEMBER,
      .action = "delete code_agent",
      .responses = HTTP_RESPONSES({ 204, NULL, "Nothing of it is left" }),
      .errors = "404",
      .flags = FLAGS,
      .handler = remove_agent },
    { .method = "GET",
      .path = "/code-agents/{id}/versions",
      .id = "listCodeAgentVersions",
      COMMON,
      .summary = "Every version an agent had",
      .role = RT_ROLE_VIEWER,
      .action = "read code_agent",
      .responses = HTTP_RESPONSES({ 200, "CodeAgentVersionList", "Newest first, without code" }),
      .errors = "404",
      .flags = FLAGS,
      .handler = list_versions },
    { .method = "POST",
      .path = "/code-agents/{id}/versions",
      .id = "createCodeAgentVersion",
      COMMON,
      .summary = "A version with a number of one's own",
      .about = "It becomes the current one when it is higher.",
      .role = RT_ROLE_MEMBER,
      .action = "update code_agent",
      .request = "CodeAgentRequest",
      .responses = HTTP_RESPONSES({ 201, "CodeAgent", "The agent at that version" }),
      .errors = "404 409 422",
      .flags = FLAGS,
      .handler = add_version },
    { .method = "GET",
      .path = "/code-agents/{id}/versions/{version}",
      .id = "getCodeAgentVersion",
      COMMON,
      .summary = "One version, with its code",
      .role = RT_ROLE_VIEWER,
      .action = "read code_agent",
      .responses = HTTP_RESPONSES({ 200, "CodeAgent", "The agent at that version" }),
      .errors = "404",
      .flags = FLAGS,
      .handler = get_version },
    { .method = "POST",
      .path = "/code-agents/{id}/publish",
      .id = "publishCodeAgent",
      COMMON,
      .summary = "Let everybody on this server find, read and run it",
      .role = RT_ROLE_MEMBER,
      .action = "publish code_agent",
      .request = "CodeAgentMark",
      .responses = HTTP_RESPONSES({ 200, "CodeAgent", "The agent" }),
      .errors = "404 409",
      .flags = FLAGS | HTTP_OPTIONAL_BODY,
      .handler = publish },
    { .method = "POST",
      .path = "/code-agents/{id}/unpublish",
      .id = "unpublishCodeAgent",
      COMMON,
      .summary = "Take it back",
      .role = RT_ROLE_MEMBER,
      .action = "unpublish code_agent",
      .request = "CodeAgentMark",
      .responses = HTTP_RESPONSES({ 200, "CodeAgent", "The agent" }),
      .errors = "404 409",
      .flags = FLAGS | HTTP_OPTIONAL_BODY,
      .handler = unpublish },
    { .method = "POST",
      .path = "/code-agents/{id}/deprecate",
      .id = "deprecateCodeAgent",
      COMMON,
      .summary = "Warn who uses it; it leaves the registry and goes on working",
      .role = RT_ROLE_MEMBER,
      .action = "deprecate code_agent",
      .request = "CodeAgentMark",
      .responses = HTTP_RESPONSES({ 200, "CodeAgent", "The agent" }),
      .errors = "404 409",
      .flags = FLAGS | HTTP_OPTIONAL_BODY,
      .handler = deprecate },
    { .method = "POST",
      .path = "/code-agents/{id}/undeprecate",
      .id = "undeprecateCodeAgent",
      COMMON,
      .summary = "It is in use again",
      .role = RT_ROLE_MEMBER,
      .action = "update code_agent",
      .request = "CodeAgentMark",
      .responses = HTTP_RESPONSES({ 200, "CodeAgent", "The agent" }),
      .errors = "404 409",
      .flags = FLAGS | HTTP_OPTIONAL_BODY,
      .handler = undeprecate },
    { 0 },
};
