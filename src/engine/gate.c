/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.c - one call of a tool: who may, which tool, a person's word, the call, the record.
 */
#include "engine/gate.h"

#include <fnmatch.h>
#include <stdio.h>

#include "engine/engine_internal.h"

#define LISTING_MS 20000 /* how long a server that is just starting may take */

/* ---- grants ---- */

static bool matches(rt_str pattern, rt_str name)
{
    char p[RT_TOOL_PATTERN_MAX + 1], n[RT_TOOL_PATTERN_MAX + 1];
    if (pattern.len > RT_TOOL_PATTERN_MAX || name.len > RT_TOOL_PATTERN_MAX)
        return false;
    snprintf(p, sizeof(p), "%.*s", RT_FMT(pattern));
    snprintf(n, sizeof(n), "%.*s", RT_FMT(name));
    return fnmatch(p, n, 0) == 0;
}

static bool any_fits(rt_patterns patterns, rt_str name)
{
    for (size_t i = 0; i < patterns.count; i++)
        if (matches(patterns.items[i], name))
            return true;
    return false;
}

static bool any_fits_server(rt_patterns patterns, rt_str server)
{
    for (size_t i = 0; i < patterns.count; i++) {
        rt_str rest = patterns.items[i], of = { 0 };
        if (rt_str_find(rest, RT_STR(":")) < 0 ? matches(rest, server)
                                               : rt_str_cut(&rest, ':', &of) && matches(of, server))
            return true;
    }
    return false;
}

bool engine_grant_fits(const rt_engine *e, const engine_grant *grant, rt_str tool)
{
    return any_fits(e->config.tool_rules.granted, tool) &&
           (!grant || !grant->is_narrowed || any_fits(grant->wished, tool));
}

bool engine_grant_server(const rt_engine *e, const engine_grant *grant, rt_str server)
{
    return any_fits_server(e->config.tool_rules.granted, server) &&
           (!grant || !grant->is_narrowed || any_fits_server(grant->wished, server));
}

bool engine_grant_sees_pii(const rt_engine *e, const rt_tool *tool)
{
    return (tool->flags & RT_TOOL_SEES_PII) || any_fits(e->config.tool_rules.sees_pii, tool->name);
}

bool engine_tool_has_effects(const rt_tool *tool)
{
    return (tool->flags & RT_TOOL_SIDE_EFFECT) || !(tool->flags & RT_TOOL_READ_ONLY);
}

/* ---- through the gate ---- */

static bool find_tool(rt_engine *e, engine_passing *p, rt_arena *arena, rt_error *err)
{
    const rt_tool_request *r = p->request;
    uint64_t deadline = rt_now_ns() + LISTING_MS * 1000000ull;
    rt_tool tool;
    if (r->caller->role < RT_ROLE_MEMBER)
        return rt_fail(err, RT_DENIED, "You do not have permission to call tools");
    if (!e->config.tools)
        return rt_fail(err, RT_NOT_FOUND, "there are no tools here");
    if (atomic_load(&e->is_stopping))
        return rt_fail(err, RT_UNAVAILABLE, "the server is stopping; try another node or later");
    if (!rt_tools_resolve_for(e->config.tools, r->caller->organisation_id, r->tool,
                              r->deadline_ns ? r->deadline_ns : deadline, arena, &tool, err))
        return false;
    p->tool = tool;
    if (engine_grant_fits(e, p->grant, tool.name))
        return true;
    bool is_own = !engine_grant_fits(e, NULL, tool.name);
    return rt_fail(err, RT_DENIED, "%.*s is not granted %s; %s", RT_FMT(tool.name),
                   is_own ? "here" : "to this run",
                   is_own ? "the operator grants tools by tools.granted"
                          : "name it in the request's \"tools\"");
}

static bool ask_somebody(rt_engine *e, engine_passing *p, rt_error *err)
{
    const rt_tool_request *r = p->request;
    bool is_asked = (p->tool.flags & RT_TOOL_NEEDS_APPROVAL) ||
                    any_fits(e->config.tool_rules.needs_approval, p->tool.name);
    if (!is_asked)
        return true;
    rt_question question = { .caller = r->caller,
                             .execution_id = r->execution_id,
                             .session_id = r->session_id,
                             .operation = p->tool.name,
                             .reason = r->reason.len ? r->reason : RT_STR("a tool was called"),
                             .arguments = p->arguments };
    if (r->on_wait)
        r->on_wait(r->ctx, true);
    bool ok = rt_engine_ask(e, &question, r->canceller, err);
    if (r->on_wait)
        r->on_wait(r->ctx, false);
    p->was_asked = ok;
    return ok;
}

static bool call_tool(rt_engine *e, engine_passing *p, rt_arena *arena, rt_tool_result *out,
                      rt_error *err)
{
    const rt_tool_request *r = p->request;
    rt_telemetry *t = e->config.telemetry;
    rt_span span;
    char traceparent[RT_TRACEPARENT_SIZE] = "";
    rt_span_start(t, &span, "call tool", RT_SPAN_CLIENT, r->trace.is_set ? &r->trace : NULL);
    rt_span_str(&span, "tool.name", p->tool.name);
    rt_trace_format(&span.context, traceparent);
    rt_tool_call call = { .tool = p->tool.name,
                          .arguments = p->arguments,
                          .deadline_ns = r->deadline_ns,
                          .cancel_fd = r->canceller ? r->canceller->wake : -1,
                          .on_progress = r->on_progress,
                          .progress_ctx = r->ctx,
                          .traceparent = rt_str_of(traceparent),
                          .run = r->execution_id,
                          .is_approved = p->was_asked,
                          .caller = r->caller,
                          .organisation_id = r->caller->organisation_id,
                          .workspace_id = r->caller->workspace_id,
                          .user_id = r->caller->user_id,
                          .key_id = r->caller->key_id };
    bool ok = rt_tools_call(e->config.tools, &call, arena, out, err);
    bool is_failure = !ok || out->is_error;
    if (is_failure)
        rt_span_fail(&span, ok ? RT_STR("the tool says it failed") : rt_str_of(err->text));
    rt_span_end(t, &span);
    rt_metric_add(t, RT_METRIC_TOOL_CALLS, (const char *[]){ is_failure ? "error" : "ok" }, 1);
    return ok;
}

bool engine_gate_pass(rt_engine *e, engine_passing *p, rt_arena *arena, rt_tool_result *out,
                      rt_error *err)
{
    *out = (rt_tool_result){ 0 };
    p->arguments = p->request->arguments;
    return find_tool(e, p, arena, err) &&
           (!p->prepare || p->prepare(p->prepare_ctx, p, arena, err)) && ask_somebody(e, p, err) &&
           call_tool(e, p, arena, out, err);
}

/* ---- calls that no code makes ---- */

static void put_on_record(rt_engine *e, const engine_passing *p, const rt_tool_result *result,
                          bool ok, const rt_error *why)
{
    const rt_tool_request *r = p->request;
    bool is_denied = !ok && why->code == RT_DENIED;
    rt_audit_event event = { .time_ms = rt_wall_ms(),
                             .organisation_id = r->caller->organisation_id,
                             .actor_id =
                                 r->caller->user_id.len ? r->caller->user_id : r->caller->key_id,
                             .actor_type = r->caller->actor_type,
                             .action = RT_STR("tool.call"),
                             .subject = p->tool.name,
                             .outcome = is_denied                 ? RT_STR("denied")
                                        : ok && !result->is_error ? RT_STR("ok")
                                                                  : RT_STR("failed"),
                             .address = r->caller->address };
    rt_error lost = { 0 };
    if (p->tool.name.len > 0 && !rt_audit_add(e->config.store, &event, &lost))
        rt_log(RT_LOG_WARN, "a call of %.*s is not on record: %s", RT_FMT(p->tool.name), lost.text);
}

bool rt_engine_call(rt_engine *e, const rt_tool_request *request, rt_arena *arena,
                    rt_tool_result *out, rt_error *err)
{
    engine_passing passing = { .request = request };
    rt_error why = { 0 };
    bool ok = engine_gate_pass(e, &passing, arena, out, &why);
    put_on_record(e, &passing, out, ok, &why);
    if (!ok && err)
        *err = why;
    return ok;
}
