/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_patterns.c - code that worked, for a model: listed, read, kept and run again.
 *
 * One tool with actions is in every conversation's list; the four names agents were written against
 * (save_pattern, get_pattern, list_patterns, run_pattern) are understood as well.
 */
#include "server/mcp.h"
#include "server/patterns_view.h"

#define LISTED_MAX 50

typedef bool action_fn(mcp_call *c, rt_json arguments, rt_json_writer *w, rt_error *err);

static bool may_write(const mcp_call *c, rt_error *err)
{
    return c->caller.role >= RT_ROLE_MEMBER ||
           rt_fail(err, RT_DENIED, "You do not have permission to save or run patterns");
}

static rt_str name_of(rt_json arguments)
{
    return rt_str_trim(rt_json_str(rt_json_get_c(arguments, "name")));
}

static bool list(mcp_call *c, rt_json arguments, rt_json_writer *w, rt_error *err)
{
    rt_snippet *rows;
    size_t count;
    if (!rt_pattern_list(c->mcp->config->engine, &c->caller,
                         rt_json_str(rt_json_get_c(arguments, "category")), RT_STR(""), LISTED_MAX,
                         &c->arena, &rows, &count, err))
        return false;
    rt_jw_object(w);
    rt_jw_karray(w, "patterns");
    for (size_t i = 0; i < count; i++) {
        rt_jw_object(w);
        rt_jw_kstr(w, "name", rows[i].name);
        rt_jw_kstr(w, "description", rows[i].description);
        rt_jw_kstr(w, "category", rows[i].category);
        rt_jw_ku64(w, "runs", rows[i].runs);
        rt_jw_kdouble(w, "success_rate", rows[i].success_rate);
        rt_jw_end(w);
    }
    rt_jw_end(w);
    rt_jw_end(w);
    return true;
}

static bool get(mcp_call *c, rt_json arguments, rt_json_writer *w, rt_error *err)
{
    rt_snippet s;
    if (!rt_pattern_get(c->mcp->config->engine, &c->caller, name_of(arguments), &c->arena, &s, err))
        return false;
    patterns_write(&s, true, w);
    return true;
}

static bool save(mcp_call *c, rt_json arguments, rt_json_writer *w, rt_error *err)
{
    rt_snippet s;
    bool is_replacing = rt_json_bool(rt_json_get_c(arguments, "overwrite"), false);
    if (!may_write(c, err) || !rt_pattern_save(c->mcp->config->engine, &c->caller, arguments,
                                               is_replacing, &c->arena, &s, err))
        return false;
    rt_jw_object(w);
    rt_jw_kstr(w, "saved", s.name);
    rt_jw_kstr(w, "id", s.id);
    rt_jw_end(w);
    return true;
}

static bool forget(mcp_call *c, rt_json arguments, rt_json_writer *w, rt_error *err)
{
    if (!may_write(c, err) ||
        !rt_pattern_remove(c->mcp->config->engine, &c->caller, name_of(arguments), err))
        return false;
    rt_jw_object(w);
    rt_jw_kstr(w, "deleted", name_of(arguments));
    rt_jw_end(w);
    return true;
}

static bool run(mcp_call *c, rt_json arguments, rt_json_writer *w, rt_error *err)
{
    rt_request request = { .caller = c->caller,
                           .surface = RT_STR("mcp"),
                           .privacy = { .mode = RT_PRIVACY_TOKENS },
                           .canceller = &c->canceller,
                           .trace = c->trace };
    rt_pattern_run what = { .name = name_of(arguments),
                            .inputs = rt_json_get_c(arguments, "inputs") };
    rt_pattern_answer answer;
    rt_json doc;
    if (!may_write(c, err) ||
        !rt_pattern_execute(c->mcp->config->engine, &request, &what, &c->arena, &answer, err) ||
        !rt_json_parse(answer.answer.json, &c->arena, &doc, err))
        return false;
    rt_json error = rt_json_get_c(doc, "error");
    if (answer.answer.status != RT_STATUS_SUCCESS)
        return rt_fail(err, RT_INTERNAL, "%.*s failed: %.*s", RT_FMT(what.name),
                       (int)RT_MIN(rt_json_str(rt_json_get_c(error, "message")).len, (size_t)160),
                       rt_json_str(rt_json_get_c(error, "message")).ptr);
    rt_jw_object(w);
    rt_jw_kstr(w, "pattern", what.name);
    rt_jw_kstr(w, "execution_id", answer.answer.id);
    rt_jw_kjson(w, "result", rt_json_get_c(doc, "result"));
    if (rt_json_str(rt_json_get_c(doc, "stdout")).len > 0)
        rt_jw_kjson(w, "stdout", rt_json_get_c(doc, "stdout"));
    if (rt_json_count(rt_json_get_c(doc, "handles")) > 0)
        rt_jw_kjson(w, "handles", rt_json_get_c(doc, "handles"));
    rt_jw_end(w);
    return true;
}

/* What goes wrong is the tool's own error, which the model can read and mend. */
static bool act(mcp_call *c, action_fn *action, rt_json arguments, rt_json_writer *w)
{
    rt_buf json RT_CLEANUP(rt_buf_done) = { 0 };
    rt_error err = { 0 };
    rt_json_writer in;
    rt_buf_init(&json, MCP_MESSAGE_MAX);
    rt_json_begin(&in, &json);
    if (action(c, arguments, &in, &err) && rt_buf_ok(&json, &err))
        mcp_write_structured(c, w, rt_buf_str(&json));
    else
        mcp_write_text(w, rt_str_of(err.text), true);
    return true;
}

static const struct {
    const char *name;
    action_fn *action;
} actions[] = {
    { "list", list }, { "get", get }, { "save", save }, { "run", run }, { "delete", forget }
};

bool mcp_patterns(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    rt_str name = rt_json_str(rt_json_get_c(arguments, "action"));
    for (size_t i = 0; i < RT_COUNT(actions); i++)
        if (rt_str_eq_c(name, actions[i].name))
            return act(c, actions[i].action, arguments, w);
    return mcp_fail(c, RT_MCP_INVALID_PARAMS, (rt_str){ 0 },
                    "'action' must be list, get, save, run or delete");
}

bool mcp_pattern_list(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    return act(c, list, arguments, w);
}

bool mcp_pattern_get(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    return act(c, get, arguments, w);
}

bool mcp_pattern_save(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    return act(c, save, arguments, w);
}

bool mcp_pattern_run(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    return act(c, run, arguments, w);
}
