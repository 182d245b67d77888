/* SPDX-License-Identifier: Apache-2.0 */
/* api_meta.c - what this server is, whether it is well, and what code it can look at. */
#include "server/server_internal.h"

#include <string.h>

/* ---- / and /health ---- */

static const char page[] =
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Retort</title>"
    "<meta name=\"viewport\" content=\"width=device-width\">"
    "<style>body{font:16px/1.5 system-ui,sans-serif;margin:3rem auto;max-width:40rem;"
    "padding:0 1rem}code{background:#eee;padding:.1em .3em}</style>"
    "<h1>Retort</h1><p>Code goes in, only the answer comes out. This server runs.</p><ul>"
    "<li><a href=\"/docs\">API reference</a>"
    "<li><a href=\"/openapi.json\">OpenAPI document</a>"
    "<li><a href=\"/health\">Health</a>"
    "<li><a href=\"/metrics\">Metrics</a></ul>"
    "<p>Try it: <code>curl -s %.*s/v1/executions --json "
    "'{\"language\":\"python\",\"code\":\"return 6 * 7\"}'</code></html>\n";

static size_t count_skills(const http_request *r)
{
    rt_skills *skills = r->server->config.skills;
    return skills ? rt_skills_count(skills) : 0;
}

static bool root(http_request *r, http_reply *reply, rt_error *err)
{
    rt_json_writer w;
    (void)err;
    if (http_accepts(r, "text/html")) {
        http_reply_text(reply, 200, "text/html; charset=utf-8",
                        rt_arena_printf(&r->arena, page, RT_FMT(r->server->url)));
        http_reply_header(reply, "Content-Security-Policy",
                          RT_STR("default-src 'none'; style-src 'unsafe-inline'; "
                                 "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"));
        return true;
    }
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "service", RT_STR("retort"));
    rt_jw_kstr(&w, "status", RT_STR("healthy"));
    rt_jw_kstr(&w, "version", r->server->config.version);
    rt_jw_ku64(&w, "skills_loaded", count_skills(r));
    rt_jw_kstr(&w, "docs", RT_STR("/docs"));
    rt_jw_kstr(&w, "openapi", RT_STR("/openapi.json"));
    rt_jw_end(&w);
    return true;
}

static bool health(http_request *r, http_reply *reply, rt_error *err)
{
    rt_error why = { 0 };
    rt_json_writer w;
    const rt_server_config *c = &r->server->config;
    (void)err;
    bool is_stored = rt_store_check(c->store, &why);
    bool is_ready =
        !rt_engine_stats_get(c->engine).is_stopping && !atomic_load(&r->server->is_stopping);
    bool is_well = is_stored && is_ready;
    if (!is_stored)
        rt_log(RT_LOG_ERROR, "%s: the store does not answer: %s", r->id, why.text);
    http_reply_json(reply, is_well ? 200 : 503, &w);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "status", is_well ? RT_STR("healthy") : RT_STR("unhealthy"));
    rt_jw_kbool(&w, "registry_loaded", c->skills != NULL);
    rt_jw_kbool(&w, "executor_ready", is_ready);
    rt_jw_ku64(&w, "skills_count", count_skills(r));
    rt_jw_kstr(&w, "store", is_stored ? rt_str_of(rt_store_kind(c->store)) : RT_STR("unreachable"));
    rt_jw_kdouble(&w, "uptime_seconds",
                  (double)((rt_now_ns() - r->server->started_ns) / 1000000) / 1000.0);
    rt_jw_kstr(&w, "version", c->version);
    rt_jw_end(&w);
    return true;
}

/* ---- documents ---- */

static bool metrics(http_request *r, http_reply *reply, rt_error *err)
{
    (void)err;
    rt_metrics_write(r->server->config.telemetry, &reply->body);
    reply->content_type = "text/plain; version=0.0.4; charset=utf-8";
    return true;
}

static bool openapi(http_request *r, http_reply *reply, rt_error *err)
{
    (void)err;
    openapi_write(r->server->config.public_url, r->server->config.version,
                  r->server->config.is_auth_required, &reply->body);
    return true;
}

/* ---- what can be run ---- */

static void write_aliases(rt_json_writer *w, const char *aliases)
{
    rt_str rest = rt_str_of(aliases), alias;
    rt_jw_karray(w, "aliases");
    while (rt_str_cut(&rest, ' ', &alias))
        if (alias.len > 0)
            rt_jw_str(w, alias);
    rt_jw_end(w);
}

static bool languages(http_request *r, http_reply *reply, rt_error *err)
{
    rt_language list[RT_LANGUAGES_MAX];
    rt_json_writer w;
    (void)err;
    size_t count = rt_engine_languages(r->server->config.engine, &r->arena, list, RT_LANGUAGES_MAX);
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_karray(&w, "items");
    for (size_t i = 0; i < count; i++) {
        rt_jw_object(&w);
        rt_jw_kstr(&w, "name", rt_str_of(list[i].name));
        write_aliases(&w, list[i].aliases);
        http_jw_text(&w, "about", list[i].about);
        rt_jw_kbool(&w, "available", list[i].is_available);
        http_jw_text(&w, "version", list[i].version);
        http_jw_text(&w, "detail", list[i].detail);
        rt_jw_end(&w);
    }
    rt_jw_end(&w);
    rt_jw_end(&w);
    return true;
}

static bool runtimes(http_request *r, http_reply *reply, rt_error *err)
{
    rt_json_writer w;
    (void)err;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_key(&w, RT_STR("items"));
    rt_router_write(rt_engine_router(r->server->config.engine), &w);
    rt_jw_end(&w);
    return true;
}

static bool policies(http_request *r, http_reply *reply, rt_error *err)
{
    const rt_policy_key *key;
    const char *name;
    rt_json_writer w;
    (void)r;
    (void)err;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_karray(&w, "items");
    for (size_t i = 0; (name = rt_policy_preset_name(i)); i++) {
        rt_jw_object(&w);
        rt_jw_kstr(&w, "name", rt_str_of(name));
        rt_jw_kstr(&w, "about", rt_str_of(rt_policy_preset_about(i)));
        rt_jw_key(&w, RT_STR("policy"));
        rt_policy_write(rt_policy_preset(rt_str_of(name)), &w);
        rt_jw_end(&w);
    }
    rt_jw_end(&w);
    rt_jw_karray(&w, "keys");
    for (size_t i = 0; (key = rt_policy_key_at(i)); i++) {
        rt_jw_object(&w);
        rt_jw_kstr(&w, "key", rt_str_of(key->key));
        rt_jw_kstr(&w, "about", rt_str_of(key->about));
        rt_jw_end(&w);
    }
    rt_jw_end(&w);
    rt_jw_end(&w);
    return true;
}

/* ---- validate ---- */

static const http_member validate_members[] = {
    { "code", HTTP_STRING, true },
    { "language", HTTP_STRING, false },
    { "input_schema", HTTP_OBJECT | HTTP_BOOL | HTTP_NULL, false },
    { "output_schema", HTTP_OBJECT | HTTP_BOOL | HTTP_NULL, false },
    { "input", ~0u, false },
    { "output", ~0u, false },
};

/* A schema that is none, and a value that does not fit it, are errors; without one all is well. */
static size_t write_schema_errors(http_request *r, rt_json body, const char *member,
                                  const char *value_member, rt_json_writer *w)
{
    rt_schema *schema RT_CLEANUP(rt_schema_freep) = NULL;
    rt_schema_report report = { .arena = &r->arena };
    rt_json doc = rt_json_get_c(body, member), value = rt_json_get_c(body, value_member);
    rt_error err = { 0 };
    if (rt_json_type(doc) <= RT_JSON_NULL)
        return 0;
    if (!rt_schema_new(doc, NULL, &schema, &err)) {
        rt_jw_str(w, rt_arena_printf(&r->arena, "%s: %s", member, err.text));
        return 1;
    }
    if (rt_json_is_absent(value) || rt_schema_check(schema, value, &report))
        return 0;
    for (size_t i = 0; i < report.error_count; i++)
        rt_jw_str(w, rt_arena_printf(&r->arena, "%s: %.*s", value_member,
                                     RT_FMT(report.errors[i].message)));
    if (report.error_count == 0)
        rt_jw_str(w, rt_arena_printf(&r->arena, "%s: a limit was reached", value_member));
    return RT_MAX(report.error_count, (size_t)1);
}

/* Code that cannot be parsed is not valid, whatever its risks. */
static void write_validity(http_request *r, rt_json body, rt_json risks, rt_json_writer *w)
{
    rt_json_iter it = rt_json_each(risks);
    rt_json risk;
    size_t count = 0;
    rt_jw_karray(w, "errors");
    count += write_schema_errors(r, body, "input_schema", "input", w);
    count += write_schema_errors(r, body, "output_schema", "output", w);
    while (rt_json_next(&it, NULL, &risk)) {
        if (!rt_str_eq_c(rt_json_str(rt_json_get_c(risk, "kind")), "syntax"))
            continue;
        rt_jw_json(w, rt_json_get_c(risk, "message"));
        count++;
    }
    rt_jw_end(w);
    rt_jw_kbool(w, "valid", count == 0);
}

static bool validate(http_request *r, http_reply *reply, rt_error *err)
{
    rt_json body, risks;
    rt_verdict verdict;
    rt_json_writer w;
    if (!http_object(r, validate_members, RT_COUNT(validate_members), &body, err))
        return false;
    rt_str language = rt_json_str(rt_json_get_c(body, "language"));

    if (!rt_engine_validate(r->server->config.engine, &r->caller,
                            language.len > 0 ? language : RT_STR("python"),
                            rt_json_str(rt_json_get_c(body, "code")), &r->arena, &verdict, err))
        return false;
    if (!verdict.is_implemented)
        return rt_fail(err, RT_UNSUPPORTED, "code in %.*s cannot be looked at",
                       (int)RT_MIN(language.len, (size_t)40), language.ptr);
    if (!rt_json_parse(verdict.risks, &r->arena, &risks, err))
        return rt_wrap(err, "the checker's answer");
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_kbool(&w, "safe", verdict.is_safe);
    rt_jw_kjson(&w, "risks", risks);
    write_validity(r, body, risks, &w);
    rt_jw_end(&w);
    return true;
}

const http_operation api_meta_rows[] = {
    { .method = "GET",
      .path = "/",
      .id = "root",
      .tag = "Server",
      .summary = "What this is",
      .responses = HTTP_RESPONSES({ 200, "Root", "The service" }, { 200, HTTP_HTML, "A page" }),
      .flags = HTTP_PAGE,
      .handler = root },
    { .method = "GET",
      .path = "/health",
      .id = "health",
      .tag = "Server",
      .summary = "Whether it is well",
      .about = "For load balancers and containers; needs no key.",
      .responses = HTTP_RESPONSES({ 200, "Health", "It is" }, { 503, "Health", "It is not" }),
      .handler = health },
    { .method = "GET",
      .path = "/metrics",
      .id = "metrics",
      .tag = "Server",
      .summary = "Metrics for Prometheus",
      .role = RT_ROLE_VIEWER,
      .action = "read metrics",
      .responses = HTTP_RESPONSES({ 200, HTTP_TEXT, "Text format 0.0.4" }),
      .flags = HTTP_PAGE,
      .handler = metrics },
    { .method = "GET",
      .path = "/openapi.json",
      .id = "openapi",
      .tag = "Server",
      .summary = "This document",
      .responses = HTTP_RESPONSES({ 200, HTTP_ANY, "OpenAPI 3.1" }),
      .flags = HTTP_PAGE,
      .handler = openapi },
    { .method = "GET",
      .path = "/v1/languages",
      .id = "languages",
      .tag = "Server",
      .summary = "Languages that can be run here",
      .role = RT_ROLE_VIEWER,
      .action = "list languages",
      .responses = HTTP_RESPONSES({ 200, "LanguageList", "One row per language" }),
      .handler = languages },
    { .method = "GET",
      .path = "/v1/runtimes",
      .id = "runtimes",
      .tag = "Server",
      .summary = "Runtimes a run can name, and how they did since the server started",
      .role = RT_ROLE_VIEWER,
      .action = "list runtimes",
      .responses = HTTP_RESPONSES({ 200, "RuntimeList", "One row per runtime" }),
      .handler = runtimes },
    { .method = "GET",
      .path = "/v1/policies",
      .id = "policies",
      .tag = "Server",
      .summary = "Policies a run can name, and their keys",
      .role = RT_ROLE_VIEWER,
      .action = "list policies",
      .responses = HTTP_RESPONSES({ 200, "PolicyList", "One row per preset" }),
      .handler = policies },
    { .method = "POST",
      .path = "/v1/validate",
      .id = "validate",
      .tag = "Executions",
      .summary = "Look at code without running it",
      .about = "Parses the code in a sealed cell and lists risks. A risk is advice, no refusal.",
      .role = RT_ROLE_MEMBER,
      .action = "validate code",
      .request = "ValidateRequest",
      .responses = HTTP_RESPONSES({ 200, "Verdict", "What was found" }),
      .errors = "422",
      .handler = validate },
    { 0 },
};
