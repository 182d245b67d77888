/* SPDX-License-Identifier: Apache-2.0 */
/* api_patterns.c - code that worked, kept under a name and run again. */
#include "server/executions.h"
#include "server/patterns_view.h"
#include "server/server_internal.h"

#define PATTERN_MEMBERS                                                                            \
    { "description", HTTP_STRING | HTTP_NULL, false }, { "code", HTTP_STRING | HTTP_NULL, false }, \
        { "steps", HTTP_ARRAY | HTTP_NULL, false },                                                \
        { "language", HTTP_STRING | HTTP_NULL, false },                                            \
        { "category", HTTP_STRING | HTTP_NULL, false }, { "tags", HTTP_ARRAY | HTTP_NULL, false }, \
        { "parameters", HTTP_OBJECT | HTTP_NULL, false },                                          \
    {                                                                                              \
        "learned_from", HTTP_STRING | HTTP_NULL, false                                             \
    }

static const http_member members[] = { { "name", HTTP_STRING, false }, PATTERN_MEMBERS };

static bool save(http_request *r, http_reply *reply, rt_json body, bool is_replacing, rt_error *err)
{
    rt_snippet saved;
    rt_json_writer w;
    if (!rt_pattern_save(r->server->config.engine, &r->caller, body, is_replacing, &r->arena,
                         &saved, err) ||
        !server_audit(r, "pattern.save", saved.name, err))
        return false;
    http_reply_json(reply, is_replacing ? 200 : 201, &w);
    patterns_write(&saved, true, &w);
    return true;
}

static bool create(http_request *r, http_reply *reply, rt_error *err)
{
    rt_json body;
    return http_object(r, members, RT_COUNT(members), &body, err) &&
           save(r, reply, body, false, err);
}

/* The name is the path's: the body may say it too, and then the same. */
static bool replace(http_request *r, http_reply *reply, rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_str name = http_param(r, "name"), key;
    rt_json_writer w;
    rt_json body, value, named;
    if (!http_object(r, members, RT_COUNT(members), &body, err))
        return false;
    rt_json given = rt_json_get_c(body, "name");
    if (!rt_json_is_absent(given) && !rt_str_eq(rt_str_trim(rt_json_str(given)), name))
        return rt_fail(err, RT_INVALID, "'name' differs from the name in the path");
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "name", name);
    rt_json_iter it = rt_json_each(body);
    while (rt_json_next(&it, &key, &value))
        if (!rt_str_eq_c(key, "name")) {
            rt_jw_key(&w, key);
            rt_jw_json(&w, value);
        }
    rt_jw_end(&w);
    return rt_buf_ok(&text, err) && rt_json_parse(rt_buf_str(&text), &r->arena, &named, err) &&
           save(r, reply, named, true, err);
}

static bool list(http_request *r, http_reply *reply, rt_error *err)
{
    unsigned limit = (unsigned)http_query_u64(r, "limit", 50);
    rt_snippet *rows;
    size_t count;
    rt_json_writer w;
    if (!rt_pattern_list(r->server->config.engine, &r->caller, http_query(r, "category"),
                         http_query(r, "after"), limit, &r->arena, &rows, &count, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_karray(&w, "items");
    for (size_t i = 0; i < count; i++)
        patterns_write(&rows[i], false, &w);
    rt_jw_end(&w);
    http_jw_text(&w, "next_after", count == limit ? rows[count - 1].name : (rt_str){ 0 });
    rt_jw_end(&w);
    return true;
}

static bool get(http_request *r, http_reply *reply, rt_error *err)
{
    rt_snippet s;
    rt_json_writer w;
    if (!rt_pattern_get(r->server->config.engine, &r->caller, http_param(r, "name"), &r->arena, &s,
                        err))
        return false;
    http_reply_json(reply, 200, &w);
    patterns_write(&s, true, &w);
    return true;
}

static bool remove_one(http_request *r, http_reply *reply, rt_error *err)
{
    if (!rt_pattern_remove(r->server->config.engine, &r->caller, http_param(r, "name"), err) ||
        !server_audit(r, "pattern.delete", http_param(r, "name"), err))
        return false;
    reply->status = 204;
    return true;
}

/* ---- running ---- */

static const http_member run_members[] = {
    { "inputs", HTTP_OBJECT | HTTP_NULL, false },
    { "policy", HTTP_STRING | HTTP_OBJECT | HTTP_NULL, false },
    { "privacy", HTTP_STRING | HTTP_OBJECT | HTTP_NULL, false },
    { "cache", HTTP_STRING, false },
    { "tools", HTTP_ARRAY | HTTP_NULL, false },
    { "session_id", HTTP_STRING | HTTP_NULL, false },
    { "conversation_id", HTTP_STRING | HTTP_NULL, false },
    { "agent_type", HTTP_STRING | HTTP_NULL, false },
    { "user_id", HTTP_STRING | HTTP_NULL, false },
};

/* What the members of an execution mean here is what they mean there. */
static bool read_run(http_request *r, rt_json body, rt_request *out, rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_iter it = rt_json_each(body);
    rt_json_writer w;
    rt_json value, request;
    rt_str key;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "code", RT_STR("the pattern's"));
    while (rt_json_next(&it, &key, &value))
        if (!rt_str_eq_c(key, "inputs")) {
            rt_jw_key(&w, key);
            rt_jw_json(&w, value);
        }
    rt_jw_end(&w);
    if (!rt_buf_ok(&text, err) || !rt_json_parse(rt_buf_str(&text), &r->arena, &request, err) ||
        !rt_request_read(request, &r->arena, out, err))
        return false;
    out->caller = r->caller;
    out->surface = RT_STR("rest");
    out->trace = r->trace;
    return true;
}

static bool execute(void *ctx, rt_request *request, rt_answer *out, rt_error *err)
{
    return executions_answer(ctx, request, out, err);
}

static bool run(http_request *r, http_reply *reply, rt_error *err)
{
    rt_request request = { 0 };
    rt_pattern_answer answer;
    rt_json_writer w;
    rt_json body;
    if (!http_object(r, run_members, RT_COUNT(run_members), &body, err) ||
        !read_run(r, body, &request, err))
        return false;
    rt_pattern_run what = { .name = http_param(r, "name"),
                            .inputs = rt_json_get_c(body, "inputs"),
                            .execute = execute,
                            .ctx = r };
    if (!rt_pattern_execute(r->server->config.engine, &request, &what, &r->arena, &answer, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    patterns_write_run(what.name, &answer, &w);
    rt_jw_end(&w);
    return true;
}

const http_operation api_pattern_rows[] = {
    { .method = "GET",
      .path = "/v1/patterns",
      .id = "listPatterns",
      .tag = "Patterns",
      .summary = "List patterns",
      .about = "Without their code, in the order of names. next_after, given back as after, has "
               "the next page.",
      .role = RT_ROLE_VIEWER,
      .action = "list patterns",
      .parameters = HTTP_PARAMETERS(
          { "category", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "only of this category", NULL, NULL, 0,
            200 },
          { "after", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "only names after this one", NULL, NULL, 0,
            200 },
          { "limit", HTTP_IN_QUERY, HTTP_TYPE_INTEGER, "rows of a page", NULL, "50", 1, 500 }),
      .responses = HTTP_RESPONSES({ 200, "PatternPage", "A page of patterns" }),
      .handler = list },
    { .method = "POST",
      .path = "/v1/patterns",
      .id = "createPattern",
      .tag = "Patterns",
      .summary = "Keep code that worked",
      .about = "With parameters, a JSON Schema, its inputs are checked and defaults filled in. "
               "With steps it is a chain of other patterns.",
      .role = RT_ROLE_MEMBER,
      .action = "save patterns",
      .request = "PatternRequest",
      .responses = HTTP_RESPONSES({ 201, "Pattern", "It is kept" }),
      .errors = "404 409 422",
      .handler = create },
    { .method = "GET",
      .path = "/v1/patterns/{name}",
      .id = "getPattern",
      .tag = "Patterns",
      .summary = "A pattern, with its code",
      .about = "Counts as a use.",
      .role = RT_ROLE_VIEWER,
      .action = "read patterns",
      .responses = HTTP_RESPONSES({ 200, "Pattern", "The pattern" }),
      .errors = "404",
      .handler = get },
    { .method = "PUT",
      .path = "/v1/patterns/{name}",
      .id = "replacePattern",
      .tag = "Patterns",
      .summary = "Keep this under the name, whatever was there",
      .about = "Its statistics begin anew.",
      .role = RT_ROLE_MEMBER,
      .action = "save patterns",
      .request = "PatternRequest",
      .responses = HTTP_RESPONSES({ 200, "Pattern", "It is kept" }),
      .errors = "404 422",
      .handler = replace },
    { .method = "DELETE",
      .path = "/v1/patterns/{name}",
      .id = "deletePattern",
      .tag = "Patterns",
      .summary = "Forget a pattern",
      .role = RT_ROLE_MEMBER,
      .action = "delete patterns",
      .responses = HTTP_RESPONSES({ 204, NULL, "It is gone" }),
      .errors = "404",
      .handler = remove_one },
    { .method = "POST",
      .path = "/v1/patterns/{name}/run",
      .id = "runPattern",
      .tag = "Patterns",
      .summary = "Run a pattern",
      .about = "A run that failed is answered with 200, as everywhere. Inputs that do not fit the "
               "parameters make a run that failed and is not counted.",
      .role = RT_ROLE_MEMBER,
      .action = "run patterns",
      .request = "PatternRunRequest",
      .responses = HTTP_RESPONSES({ 200, "PatternRun", "The run, or the chain's last, has ended" }),
      .errors = "404 409 413 422 499",
      .flags = HTTP_OPTIONAL_BODY,
      .handler = run },
    { 0 },
};
