/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_agent.c - POST /api/agent/execute-code, in the shapes its clients know.
 *
 * What the code prints is its answer: JSON as JSON, other text as it is with parsed:false. When it
 * prints nothing, the value it returned is the answer, and without one {"result":"success"}.
 * Personal data is redacted on its way in and out. Members nobody knows are passed over here, as
 * they always were.
 */
#include "server/agent.h"
#include "server/executions.h"
#include "server/server_internal.h"

typedef struct task {
    rt_str code, language, session, tool, agent, user;
    rt_json inputs;
} task;

bool agent_refuse(http_reply *reply, unsigned status, const char *error, rt_str message)
{
    rt_json_writer w;
    http_reply_json(reply, status, &w);
    rt_jw_object(&w);
    rt_jw_kbool(&w, "success", false);
    rt_jw_kstr(&w, "error", rt_str_of(error));
    rt_jw_kstr(&w, "message", message);
    rt_jw_end(&w);
    return true;
}

bool agent_is_off(http_request *r, http_reply *reply)
{
    return r->server->config.is_agent_api_off &&
           agent_refuse(reply, 503, "Code execution is disabled",
                        RT_STR("USE_CODE_EXECUTION is off on this server"));
}

bool agent_body(http_request *r, http_reply *reply, rt_json *out)
{
    rt_error err = { 0 };
    if (http_json(r, out, &err) && rt_json_type(*out) == RT_JSON_OBJECT)
        return true;
    return !agent_refuse(reply, 400, "Invalid JSON",
                         err.code ? rt_str_of(err.text) : RT_STR("the body must be a JSON object"));
}

/* False also when it could not be put on record. */
bool agent_label(rt_json body, const char *name, rt_str *out)
{
    rt_json value = rt_json_get_c(body, name);
    *out = rt_json_str(value);
    for (size_t i = 0; i < out->len; i++)
        if ((unsigned char)out->ptr[i] < ' ' || out->ptr[i] == 0x7f)
            return false;
    rt_json_kind kind = rt_json_type(value);
    return (kind == RT_JSON_STRING || kind <= RT_JSON_NULL) && rt_utf8_valid(*out) &&
           rt_utf8_length(*out) <= HTTP_LABEL_MAX;
}

/* True: *t is filled. False: the reply says what is wrong. */
static bool read_task(rt_json body, task *t, http_reply *reply)
{
    static const char *const languages[] = { "python", "javascript", "nodejs" };
    const struct {
        const char *name;
        rt_str *field;
    } labels[] = { { "sessionId", &t->session },
                   { "toolId", &t->tool },
                   { "agentType", &t->agent },
                   { "userId", &t->user } };
    rt_json language = rt_json_get_c(body, "language");
    t->code = rt_json_str(rt_json_get_c(body, "code"));
    if (rt_str_trim(t->code).len == 0)
        return !agent_refuse(reply, 400, "Code is required",
                             RT_STR("'code' must be a text that is not blank"));
    t->language = rt_json_type(language) <= RT_JSON_NULL ? RT_STR("python") : rt_json_str(language);
    bool is_known = false;
    for (size_t i = 0; i < RT_COUNT(languages); i++)
        is_known |= rt_str_eq_c(t->language, languages[i]);
    if (!is_known)
        return !agent_refuse(reply, 400, "Invalid language",
                             RT_STR("'language' must be python, javascript or nodejs"));
    t->inputs = rt_json_get_c(body, "inputs");
    if (rt_json_type(t->inputs) > RT_JSON_NULL && rt_json_type(t->inputs) != RT_JSON_OBJECT)
        return !agent_refuse(reply, 400, "Invalid inputs", RT_STR("'inputs' must be an object"));
    for (size_t i = 0; i < RT_COUNT(labels); i++)
        if (!agent_label(body, labels[i].name, labels[i].field))
            return !agent_refuse(
                reply, 400, "Invalid request",
                RT_STR("sessionId, toolId, agentType and userId must be short texts"));
    return true;
}

static void write_output(rt_json answer, rt_arena *arena, rt_json_writer *w)
{
    rt_str text = rt_str_trim(rt_json_str(rt_json_get_c(answer, "stdout")));
    rt_json value = rt_json_get_c(answer, "result"), parsed;
    if (text.len > 0 && rt_json_parse(text, arena, &parsed, &(rt_error){ 0 })) {
        rt_jw_kjson(w, "output", parsed);
    } else if (text.len > 0) {
        rt_jw_kstr(w, "output", rt_json_str(rt_json_get_c(answer, "stdout")));
        rt_jw_kbool(w, "parsed", false);
    } else if (rt_json_type(value) > RT_JSON_NULL) {
        rt_jw_kjson(w, "output", value);
    } else {
        rt_jw_kraw(w, "output", RT_STR("{\"result\":\"success\"}"));
    }
}

/* As the language would print it: "ValueError: no such row". */
static rt_str error_text(rt_json error, rt_arena *arena)
{
    rt_str name = rt_json_str(rt_json_get_c(error, "name"));
    rt_str message = rt_json_str(rt_json_get_c(error, "message"));
    if (name.len == 0 || rt_str_starts(message, name))
        return message.len > 0 ? message : RT_STR("the code failed");
    return rt_arena_printf(arena, "%.*s: %.*s", RT_FMT(name), RT_FMT(message));
}

static void write_failure(rt_json answer, rt_arena *arena, rt_json_writer *w)
{
    rt_json error = rt_json_get_c(answer, "error");
    rt_jw_kobject(w, "output");
    rt_jw_kstr(w, "error", error_text(error, arena));
    rt_jw_kjson(w, "type", rt_json_get_c(error, "type"));
    rt_jw_kjson(w, "status", rt_json_get_c(answer, "status"));
    rt_jw_end(w);
}

static double number_at(rt_json object, const char *outer, const char *inner)
{
    double number = 0;
    rt_json_double(rt_json_get_c(rt_json_get_c(object, outer), inner), &number);
    return number;
}

double agent_seconds(rt_json answer)
{
    return (double)(uint64_t)(number_at(answer, "metrics", "executionTimeMs") * 1000.0 + 0.5) / 1e6;
}

static void write_metadata(rt_json answer, rt_str language, rt_json_writer *w)
{
    rt_json pii = rt_json_get_c(answer, "pii"), types = rt_json_get_c(pii, "types");
    rt_jw_kobject(w, "metadata");
    rt_jw_kdouble(w, "execTime", agent_seconds(answer));
    rt_jw_kdouble(w, "memoryUsed",
                  number_at(answer, "metrics", "memoryPeakBytes") / (double)(1 << 20));
    rt_jw_kbool(w, "piiDetected", rt_json_count(types) > 0);
    if (rt_json_type(types) == RT_JSON_ARRAY)
        rt_jw_kjson(w, "piiTypes", types);
    else
        rt_jw_kraw(w, "piiTypes", RT_STR("[]"));
    rt_jw_kdouble(w, "cost", number_at(answer, "cost", "usd"));
    rt_jw_kstr(w, "language", language);
    rt_jw_end(w);
}

static bool write_answer(http_request *r, http_reply *reply, const task *t, const rt_answer *answer,
                         rt_error *err)
{
    rt_json doc;
    rt_json_writer w;
    bool is_good = answer->status == RT_STATUS_SUCCESS;
    if (!rt_json_parse(answer->json, &r->arena, &doc, err))
        return rt_wrap(err, "the engine's answer");
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_kbool(&w, "success", is_good);
    rt_jw_kstr(&w, "executionId", answer->id);
    if (is_good)
        write_output(doc, &r->arena, &w);
    else
        write_failure(doc, &r->arena, &w);
    write_metadata(doc, t->language, &w);
    rt_jw_kstr(&w, "message",
               is_good ? RT_STR("Code executed successfully") : RT_STR("Code execution failed"));
    rt_jw_end(&w);
    return true;
}

static bool execute_code(http_request *r, http_reply *reply, rt_error *err)
{
    rt_buf inputs RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json body;
    rt_answer answer;
    task t = { 0 };
    if (agent_is_off(r, reply) || !agent_body(r, reply, &body) || !read_task(body, &t, reply))
        return true;
    if (rt_json_type(t.inputs) == RT_JSON_OBJECT)
        rt_json_print(t.inputs, &inputs);
    else
        rt_buf_add(&inputs, RT_STR("{}"));
    if (!rt_buf_ok(&inputs, err))
        return false;
    rt_request request = { .caller = r->caller,
                           .surface = RT_STR("agent-api"),
                           .language = t.language,
                           .code = t.code,
                           .input = rt_buf_str(&inputs),
                           .has_input = true,
                           .privacy = { .mode = RT_PRIVACY_REDACT },
                           .conversation = t.session,
                           .tool_id = t.tool,
                           .agent_type = t.agent,
                           .user_id = t.user,
                           .trace = r->trace };
    return executions_answer(r, &request, &answer, err) && write_answer(r, reply, &t, &answer, err);
}

const http_operation api_agent_rows[] = {
    { .method = "POST",
      .path = "/api/agent/execute-code",
      .id = "agentExecuteCode",
      .tag = "Agent toolkit",
      .summary = "Run code, as the agent toolkit does",
      .about = "What the code prints is its answer. A run that failed is answered with 200 and "
               "success false.",
      .role = RT_ROLE_MEMBER,
      .action = "run code",
      .request = "AgentExecuteRequest",
      .responses = HTTP_RESPONSES({ 200, "AgentExecution", "The run has ended" }),
      .errors = "404 409 499 422",
      .flags = HTTP_AGENT_ERRORS,
      .handler = execute_code },
    { 0 },
};
