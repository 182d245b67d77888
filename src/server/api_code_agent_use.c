/* SPDX-License-Identifier: Apache-2.0 */
/* api_code_agent_use.c - /code-agents/{id}/…: running agents, and handing them to others. */
#include "server/code_agents.h"

/* ---- running ---- */

static double number_at(rt_json object, const char *outer, const char *inner)
{
    double number = 0;
    rt_json_double(rt_json_get_c(rt_json_get_c(object, outer), inner), &number);
    return number;
}

static void write_metadata(const rt_agent_result *result, rt_json_writer *w)
{
    rt_json a = result->answer;
    rt_jw_kobject(w, "metadata");
    rt_jw_kstr(w, "agentId", result->agent_id);
    rt_jw_kstr(w, "version", result->version);
    rt_jw_kdouble(w, "executionTime", result->time_ms);
    rt_jw_kstr(w, "executionId", result->execution_id);
    rt_jw_kdouble(w, "memoryMb", number_at(a, "metrics", "memoryPeakBytes") / (double)(1 << 20));
    rt_jw_kjson(w, "exitCode", rt_json_get_c(a, "exit_code"));
    rt_jw_kdouble(w, "tokensUsed", number_at(a, "cost", "tokens"));
    rt_jw_kjson(w, "runtime", rt_json_get_c(a, "runtime"));
    rt_jw_end(w);
}

/* What was not what the schema says is the caller's to mend; the rest is the agent's. */
static unsigned status_of(const rt_agent_result *result)
{
    bool is_invalid = rt_str_ends(result->code, RT_STR("_VALIDATION_ERROR"));
    return result->is_success ? 200 : is_invalid ? 400 : 500;
}

static void reply_result(http_reply *reply, const rt_agent_result *result)
{
    rt_json a = result->answer;
    rt_json_writer w;
    http_reply_json(reply, status_of(result), &w);
    rt_jw_object(&w);
    rt_jw_kbool(&w, "success", result->is_success);
    if (result->is_success) {
        rt_jw_kjson(&w, "output", rt_json_get_c(a, "result"));
    } else {
        rt_jw_kstr(&w, "error", result->message);
        rt_jw_kstr(&w, "code", result->code);
        rt_jw_kjson(&w, "details", rt_json_get_c(a, "error"));
    }
    rt_jw_kjson(&w, "stdout", rt_json_get_c(a, "stdout"));
    rt_jw_kjson(&w, "artifacts", rt_json_get_c(a, "artifacts"));
    if (!rt_json_is_absent(rt_json_get_c(a, "handles")))
        rt_jw_kjson(&w, "handles", rt_json_get_c(a, "handles"));
    if (result->warning.len > 0)
        rt_jw_kstr(&w, "warning", result->warning);
    write_metadata(result, &w);
    rt_jw_end(&w);
}

static const http_member execute_members[] = {
    { "input", HTTP_STRING | HTTP_NUMBER | HTTP_BOOL | HTTP_OBJECT | HTTP_ARRAY | HTTP_NULL,
      false },
    { "version", HTTP_STRING | HTTP_NULL, false },
};

static bool execute(http_request *r, http_reply *reply, rt_error *err)
{
    rt_buf input RT_CLEANUP(rt_buf_done) = { 0 };
    rt_agents *agents = code_agents_of(r, err);
    rt_agent_result result;
    rt_json body, value;
    if (!agents || !http_object(r, execute_members, RT_COUNT(execute_members), &body, err))
        return false;
    value = rt_json_get_c(body, "input");
    rt_str version = rt_json_str(rt_json_get_c(body, "version"));
    rt_buf_init(&input, RT_JSON_SIZE_CEILING);
    rt_json_print(value, &input);
    if (!rt_buf_ok(&input, err))
        return rt_wrap(err, "input");
    rt_agent_run run = { .id = http_param(r, "id"),
                         .version = version.len > 0 ? version : http_query(r, "version"),
                         .input = rt_buf_str(&input),
                         .has_input = !rt_json_is_absent(value) };
    if (!executions_agent(r, &run, &result, err))
        return false;
    reply_result(reply, &result);
    return true;
}

/* ---- as a tool ---- */

static bool export_tool(http_request *r, http_reply *reply, rt_error *err)
{
    rt_agents *agents = code_agents_of(r, err);
    rt_str format = http_query(r, "format");
    rt_manifest form = RT_MANIFEST_RETORT;
    rt_agent agent;
    rt_json_writer w;
    if (!agents || (format.len > 0 && !rt_manifest_parse(format, &form, err)) ||
        !rt_agents_find(agents, &r->caller, http_param(r, "id"), http_query(r, "version"),
                        &r->arena, &agent, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_agent_write_manifest(&agent, form, &w);
    return true;
}

static const http_member register_members[] = {
    { "version", HTTP_STRING | HTTP_NULL, false },
};

static bool set_registered(http_request *r, http_reply *reply, bool is_tool, rt_error *err)
{
    rt_agents *agents = code_agents_of(r, err);
    rt_agent agent;
    rt_json body = { 0 };
    rt_json_writer w;
    if (!agents ||
        (is_tool && !http_object(r, register_members, RT_COUNT(register_members), &body, err)) ||
        !rt_agents_mark(agents, &r->caller, http_param(r, "id"),
                        is_tool ? RT_AGENT_REGISTER : RT_AGENT_UNREGISTER,
                        rt_json_str(rt_json_get_c(body, "version")), &r->arena, &agent, err) ||
        !server_audit(r, is_tool ? "code_agent.register" : "code_agent.unregister", agent.row.id,
                      err))
        return false;
    if (r->server->config.tools)
        rt_tools_settle(r->server->config.tools); /* it is found when this is answered */
    rt_str name =
        rt_arena_printf(&r->arena, RT_AGENTS_PROVIDER ":%.*s", RT_FMT(agent.row.tool_name));
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "message",
               rt_arena_printf(&r->arena, "%.*s is %s", RT_FMT(name),
                               is_tool ? "a tool now" : "no tool any more"));
    rt_jw_kstr(&w, "toolName", name);
    http_jw_text(&w, "version", agent.row.tool_version);
    rt_jw_end(&w);
    return true;
}

static bool register_tool(http_request *r, http_reply *reply, rt_error *err)
{
    return set_registered(r, reply, true, err);
}

static bool unregister_tool(http_request *r, http_reply *reply, rt_error *err)
{
    return set_registered(r, reply, false, err);
}

/* ---- as an MCP server ---- */

#define DEPLOYED_MAX 100

static const http_member deploy_members[] = {
    { "config", HTTP_OBJECT | HTTP_NULL, false },
    { "serverName", HTTP_STRING | HTTP_NULL, false },
    { "serverPath", HTTP_STRING | HTTP_NULL, false },
    { "serverUrl", HTTP_STRING | HTTP_NULL, false },
    { "protocol", HTTP_STRING | HTTP_NULL, false },
    { "agents", HTTP_ARRAY | HTTP_NULL, false },
    { "version", HTTP_STRING | HTTP_NULL, false },
};

/* The agent of the path first, then those the body names. */
static bool gather_agents(http_request *r, rt_json config, rt_str *ids, size_t *count,
                          rt_error *err)
{
    rt_json more = rt_json_get_c(config, "agents"), item;
    rt_json_iter it = rt_json_each(more);
    rt_str version = rt_json_str(rt_json_get_c(config, "version"));
    ids[0] = http_param(r, "id");
    if (version.len > 0)
        ids[0] = rt_arena_printf(&r->arena, "%.*s@%.*s", RT_FMT(ids[0]), RT_FMT(version));
    *count = 1;
    while (rt_json_next(&it, NULL, &item)) {
        if (*count == DEPLOYED_MAX)
            return rt_fail(err, RT_LIMIT, "a server has at most %d agents", DEPLOYED_MAX);
        if (rt_json_type(item) != RT_JSON_STRING)
            return rt_fail(err, RT_INVALID, "'agents' must be an array of ids or names");
        ids[(*count)++] = rt_json_str(item);
    }
    return true;
}

static void write_command(rt_json_writer *w, rt_str server)
{
    rt_jw_kobject(w, "command");
    rt_jw_kstr(w, "command", RT_STR("retort"));
    rt_jw_karray(w, "args");
    rt_jw_str(w, RT_STR("mcp"));
    rt_jw_str(w, RT_STR("--agents"));
    rt_jw_str(w, server);
    rt_jw_end(w);
    rt_jw_end(w);
}

static bool deploy(http_request *r, http_reply *reply, rt_error *err)
{
    rt_agents *agents = code_agents_of(r, err);
    rt_str ids[DEPLOYED_MAX];
    rt_agent agent;
    rt_json body = { 0 };
    rt_json_writer w;
    size_t count;
    if (!agents || !http_object(r, deploy_members, RT_COUNT(deploy_members), &body, err) ||
        !rt_agents_find(agents, &r->caller, http_param(r, "id"), (rt_str){ 0 }, &r->arena, &agent,
                        err))
        return false;
    rt_json config = rt_json_get_c(body, "config");
    if (rt_json_type(config) != RT_JSON_OBJECT)
        config = body;
    else if (!http_members_check(config, deploy_members, RT_COUNT(deploy_members), err))
        return rt_wrap(err, "config");
    rt_str name = rt_json_str(rt_json_get_c(config, "serverName"));
    rt_str protocol = rt_json_str(rt_json_get_c(config, "protocol"));
    name = rt_agent_tool_name(name.len > 0 ? name : agent.row.name, &r->arena);
    if (!gather_agents(r, config, ids, &count, err) ||
        !rt_agents_deploy(agents, &r->caller, name, protocol.len > 0 ? protocol : RT_STR("http"),
                          ids, count, &r->arena, err) ||
        !server_audit(r, "code_agent.deploy", agent.row.id, err))
        return false;
    rt_str path = rt_arena_printf(&r->arena, "/mcp/agents/%.*s", RT_FMT(name));
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_kbool(&w, "success", true);
    rt_jw_kstr(&w, "message",
               rt_arena_printf(&r->arena, "%zu %s served at %.*s", count,
                               count == 1 ? "agent is" : "agents are", RT_FMT(path)));
    rt_jw_kstr(&w, "serverName", name);
    rt_jw_kstr(&w, "serverPath", path);
    rt_jw_kstr(&w, "serverUrl",
               rt_arena_printf(&r->arena, "%.*s%.*s", RT_FMT(r->server->url), RT_FMT(path)));
    rt_jw_kstr(&w, "toolName", agent.row.tool_name);
    write_command(&w, name);
    rt_jw_end(&w);
    return true;
}

/* ---- looking at code ---- */

static const http_member escape_members[] = {
    { "code", HTTP_STRING, true },
    { "language", HTTP_STRING, true },
    { "blockThreshold", HTTP_STRING | HTTP_NULL, false },
};

static bool check_escape(http_request *r, http_reply *reply, rt_error *err)
{
    rt_agents *agents = code_agents_of(r, err);
    rt_escape_report report;
    rt_json body;
    rt_json_writer w;
    if (!agents || !http_object(r, escape_members, RT_COUNT(escape_members), &body, err) ||
        !rt_agents_check_escape(agents, &r->caller, rt_json_str(rt_json_get_c(body, "language")),
                                rt_json_str(rt_json_get_c(body, "code")),
                                rt_json_str(rt_json_get_c(body, "blockThreshold")), &r->arena,
                                &report, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_kbool(&w, "detected", report.is_detected);
    rt_jw_kstr(&w, "severity", report.severity);
    rt_jw_kraw(&w, "patterns", report.patterns);
    rt_jw_kstr(&w, "description", report.description);
    rt_jw_kstr(&w, "recommendation", report.recommendation);
    rt_jw_kbool(&w, "shouldBlock", report.should_block);
    rt_jw_end(&w);
    return true;
}

#define COMMON .tag = "Code agents"
#define FLAGS  HTTP_TWICE | HTTP_CODE_AGENT_ERRORS
#define VERSION                                                                                    \
    {                                                                                              \
        "version", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "a version, or latest", NULL, "latest", 1, 40    \
    }

const http_operation api_code_agent_use_rows[] = {
    { .method = "POST",
      .path = "/code-agents/{id}/execute",
      .id = "executeCodeAgent",
      COMMON,
      .summary = "Run an agent",
      .about = "Input and output are held to its schemas: INPUT_VALIDATION_ERROR and "
               "OUTPUT_VALIDATION_ERROR are answered with 400, any other failure of the run with "
               "500.",
      .role = RT_ROLE_MEMBER,
      .action = "execute code_agent",
      .parameters = HTTP_PARAMETERS(VERSION),
      .request = "CodeAgentRunRequest",
      .responses = HTTP_RESPONSES({ 200, "CodeAgentRun", "It has an answer" },
                                  { 400, "CodeAgentFailure",
                                    "A value does not fit its schema, or the "
                                    "request makes no sense" },
                                  { 500, "CodeAgentFailure", "The run failed" }),
      .errors = "404 409 422 499",
      .flags = FLAGS | HTTP_OPTIONAL_BODY,
      .handler = execute },
    { .method = "POST",
      .path = "/code-agents/{id}/export-tool",
      .id = "exportCodeAgentTool",
      COMMON,
      .summary = "The agent as a tool, in the words of whoever calls it",
      .role = RT_ROLE_VIEWER,
      .action = "read code_agent",
      .parameters =
          HTTP_PARAMETERS(VERSION, { "format", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "whose words",
                                     "retort openai anthropic mcp", "retort", 0, 0 }),
      .request = "CodeAgentMark",
      .responses = HTTP_RESPONSES({ 200, "CodeAgentTool", "The manifest" }),
      .errors = "404",
      .flags = FLAGS | HTTP_OPTIONAL_BODY,
      .handler = export_tool },
    { .method = "POST",
      .path = "/code-agents/{id}/register-tool",
      .id = "registerCodeAgentTool",
      COMMON,
      .summary = "Let it be found by tool search, and called from code and over MCP",
      .about = "As agents:<toolName>, pinned to the current version unless the body names another "
               "or latest. A private agent's tool is its organisation's alone.",
      .role = RT_ROLE_MEMBER,
      .action = "register code_agent",
      .request = "CodeAgentRegistration",
      .responses = HTTP_RESPONSES({ 200, "CodeAgentRegistered", "It is a tool" }),
      .errors = "404 409",
      .flags = FLAGS | HTTP_OPTIONAL_BODY,
      .handler = register_tool },
    { .method = "DELETE",
      .path = "/code-agents/{id}/register-tool",
      .id = "unregisterCodeAgentTool",
      COMMON,
      .summary = "It is no tool any more",
      .role = RT_ROLE_MEMBER,
      .action = "register code_agent",
      .responses = HTTP_RESPONSES({ 200, "CodeAgentRegistered", "It is no tool" }),
      .errors = "404 409",
      .flags = FLAGS,
      .handler = unregister_tool },
    { .method = "POST",
      .path = "/code-agents/{id}/deploy-mcp",
      .id = "deployCodeAgentMcp",
      COMMON,
      .summary = "Serve it, and others with it, as an MCP server of its own",
      .about = "At /mcp/agents/<serverName>, and over stdio by 'retort mcp --agents <serverName>'. "
               "Each agent is pinned to its current version unless it is named with @latest.",
      .role = RT_ROLE_MEMBER,
      .action = "deploy code_agent",
      .request = "CodeAgentDeployment",
      .responses = HTTP_RESPONSES({ 200, "CodeAgentDeployed", "It is served" }),
      .errors = "404 409",
      .flags = FLAGS | HTTP_OPTIONAL_BODY,
      .handler = deploy },
    { .method = "POST",
      .path = "/code-agents/check-escape",
      .id = "checkCodeEscape",
      COMMON,
      .summary = "What in code looks like a way out of its cell",
      .about = "Advice, not a wall: the cell is the wall.",
      .role = RT_ROLE_MEMBER,
      .action = "check code_agent",
      .request = "CodeEscapeRequest",
      .responses = HTTP_RESPONSES({ 200, "CodeEscapeReport", "What was found" }),
      .errors = "422",
      .flags = FLAGS,
      .handler = check_escape },
    { 0 },
};
