/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_agent_data.c - a large file is looked at where it lies, and a few lines come back.
 *
 * The file is in a session's scratch directory, under a host path that the operator lets code read,
 * or the data is in the request. process_data.py reads it row by row, in a cell.
 */
#include "server/agent.h"
#include "server/executions.h"
#include "server/server_internal.h"

#define PATH_MAX_BYTES 4096

/* The compiler runs in the root of the tree. */
__asm__(".pushsection .rodata\n"
        "server_process_data:\n.incbin \"src/server/process_data.py\"\n.byte 0\n"
        ".popsection\n");
extern const char server_process_data[] __attribute__((visibility("hidden")));

typedef struct task {
    rt_str path, session, conversation, agent, user;
    rt_json data;
} task;

static rt_str text_or(rt_json body, const char *name, rt_str fallback)
{
    rt_json value = rt_json_get_c(body, name);
    return rt_json_type(value) <= RT_JSON_NULL ? fallback : rt_json_str(value);
}

/* False: the reply says what is wrong. */
static bool read_place(rt_json body, task *t, http_reply *reply)
{
    t->path = rt_str_trim(rt_json_str(rt_json_get_c(body, "filePath")));
    t->data = rt_json_get_c(body, "data");
    bool has_data = rt_json_type(t->data) == RT_JSON_STRING;
    if ((t->path.len == 0) == !has_data)
        return !agent_refuse(reply, 400, "File path is required",
                             RT_STR("give 'filePath', or the text itself as 'data'; not both"));
    if (has_data)
        return true;
    if (t->path.len > PATH_MAX_BYTES || memchr(t->path.ptr, 0, t->path.len) ||
        (t->path.ptr[0] != '/' && t->session.len == 0))
        return !agent_refuse(reply, 400, "Invalid file path",
                             RT_STR("'filePath' is a path in the session of 'sessionId' (PUT "
                                    "/v1/sessions/{id}/files/… puts a file there), or an absolute "
                                    "path the operator lets code read"));
    return true;
}

static bool read_task(rt_json body, task *t, http_reply *reply)
{
    if (!agent_label(body, "sessionId", &t->session) ||
        !agent_label(body, "agentType", &t->agent) || !agent_label(body, "userId", &t->user))
        return !agent_refuse(reply, 400, "Invalid request",
                             RT_STR("sessionId, agentType and userId must be short texts"));
    if (!rt_str_eq_c(text_or(body, "operation", RT_STR("analyze")), "analyze"))
        return !agent_refuse(reply, 400, "Operation not implemented",
                             RT_STR("'operation' can be analyze; for others use execute-code"));
    if (!rt_str_eq_c(text_or(body, "language", RT_STR("python")), "python"))
        return !agent_refuse(reply, 400, "Invalid language",
                             RT_STR("data is processed in python only"));
    return read_place(body, t, reply);
}

/* A relative path is one of a live session; else the id only groups runs. */
static bool fill_request(http_request *r, task *t, rt_request *out, rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 }, policy RT_CLEANUP(rt_buf_done) = { 0 };
    bool is_host = t->path.len > 0 && t->path.ptr[0] == '/';
    bool is_session = t->path.len > 0 && !is_host;
    rt_json_writer w;
    rt_buf_init(&text, RT_JSON_SIZE_CEILING);
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    if (t->path.len > 0)
        rt_jw_kstr(&w, "path", t->path);
    else
        rt_jw_kjson(&w, "data", t->data);
    rt_jw_end(&w);
    *out = (rt_request){ .caller = r->caller,
                         .surface = RT_STR("agent-api"),
                         .language = RT_STR("python"),
                         .code = rt_str_of(server_process_data),
                         .input = rt_arena_str(&r->arena, rt_buf_str(&text)),
                         .has_input = true,
                         .privacy = { .mode = RT_PRIVACY_REDACT },
                         .session_id = is_session ? t->session : (rt_str){ 0 },
                         .conversation = is_session ? (rt_str){ 0 } : t->session,
                         .agent_type = t->agent,
                         .user_id = t->user,
                         .trace = r->trace };
    if (!is_host)
        return rt_buf_ok(&text, err);
    rt_json_begin(&w, &policy);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "read", t->path);
    rt_jw_end(&w);
    return rt_buf_ok(&text, err) &&
           rt_json_parse(rt_buf_str(&policy), &r->arena, &out->policy, err);
}

static bool write_answer(http_request *r, http_reply *reply, const rt_answer *answer, rt_error *err)
{
    static const char *const members[] = { "summary", "rowCount", "columnCount", "findings" };
    bool is_good = answer->status == RT_STATUS_SUCCESS;
    rt_json doc;
    rt_json_writer w;
    if (!rt_json_parse(answer->json, &r->arena, &doc, err))
        return rt_wrap(err, "the engine's answer");
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_kbool(&w, "success", is_good);
    rt_jw_kstr(&w, "executionId", answer->id);
    for (size_t i = 0; is_good && i < RT_COUNT(members); i++)
        rt_jw_kjson(&w, members[i], rt_json_get_c(rt_json_get_c(doc, "result"), members[i]));
    if (!is_good)
        rt_jw_kstr(&w, "error", rt_json_str(rt_json_get_c(rt_json_get_c(doc, "error"), "message")));
    rt_jw_kdouble(&w, "execTime", agent_seconds(doc));
    rt_jw_kstr(&w, "message",
               is_good ? RT_STR("Data processed; only the summary leaves the sandbox")
                       : RT_STR("Data could not be processed"));
    rt_jw_end(&w);
    return true;
}

static bool process_data(http_request *r, http_reply *reply, rt_error *err)
{
    rt_request request;
    rt_answer answer;
    rt_json body;
    task t = { 0 };
    if (agent_is_off(r, reply) || !agent_body(r, reply, &body) || !read_task(body, &t, reply))
        return true;
    return fill_request(r, &t, &request, err) && executions_answer(r, &request, &answer, err) &&
           write_answer(r, reply, &answer, err);
}

const http_operation api_agent_data_rows[] = {
    { .method = "POST",
      .path = "/api/agent/process-data",
      .id = "agentProcessData",
      .tag = "Agent toolkit",
      .summary = "A summary of a large file, made where it lies",
      .about = "CSV, JSON lines or a JSON array. Only rows, columns and findings come back.",
      .role = RT_ROLE_MEMBER,
      .action = "process data",
      .request = "AgentDataRequest",
      .responses = HTTP_RESPONSES({ 200, "AgentData", "The summary" }),
      .errors = "404 409 422 499",
      .flags = HTTP_AGENT_ERRORS,
      .handler = process_data },
    { 0 },
};
