/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish.c - the run as others see it: metrics, the span's attributes, the product event.
 */
#include "engine/engine_internal.h"

static void publish_metrics(const passage *p)
{
    rt_telemetry *t = p->engine->config.telemetry;
    const rt_outcome *o = &p->outcome;
    const char *language = p->language->name,
               *runtime = p->route.runtime ? p->route.name : p->engine->config.runtime->name;
    const char *labels[] = { language, runtime, rt_status_name(o->status) };
    rt_metric_add(t, RT_METRIC_EXECUTIONS, labels, 1);
    rt_metric_observe(t, RT_METRIC_DURATION, labels, (double)o->wall_us / 1e6);
    rt_metric_observe(t, RT_METRIC_QUEUE_WAIT, NULL, (double)p->queue_wait_us / 1e6);
    if (o->denials_seen > 0)
        rt_metric_add(t, RT_METRIC_DENIALS, labels, (double)o->denials_seen);
    for (unsigned i = 0; i < RT_PII_MAX; i++) {
        const char *type = i < RT_PII_BUILTIN ? rt_pii_name(i, RT_PII_STORED) : "custom";
        if (p->pii_in.counts[i] + p->pii_out.counts[i] > 0)
            rt_metric_add(t, RT_METRIC_PII, (const char *[]){ type },
                          (double)(p->pii_in.counts[i] + p->pii_out.counts[i]));
    }
    rt_metric_add(t, RT_METRIC_COST, NULL, p->cost_usd);
    rt_metric_add(t, RT_METRIC_TOKENS_SAVED, NULL, (double)p->tokens_saved);
}

/* S3-101, and what its siblings add. */
static void describe_span(passage *p)
{
    const rt_outcome *o = &p->outcome;
    rt_span *s = &p->span;
    rt_span_str(s, "code.runtime", o->runtime);
    if (p->route.runtime) {
        rt_span_str(s, "code.runtime_selected", rt_str_of(p->route.name));
        rt_span_str(s, "code.routing_reason",
                    strcmp(p->route.reason, "explicit") == 0 ? RT_STR("explicit") : RT_STR("auto"));
    }
    rt_span_str(s, "code.language", rt_str_of(p->language->name));
    rt_span_bool(s, "code.sandbox", true);
    rt_span_double(s, "code.memory_mb", (double)o->memory_peak_bytes / (1 << 20));
    rt_span_i64(s, "code.tokens_used", (int64_t)p->tokens);
    rt_span_bool(s, "code.validation_passed", !p->has_invalid);
    rt_span_bool(s, "code.success", o->status == RT_STATUS_SUCCESS);
    rt_span_double(s, "code.duration_ms", (double)o->wall_us / 1000.0);
    rt_span_i64(s, "code.exit_code", o->exit_code);
    rt_span_i64(s, "code.timeout_ms", (int64_t)p->policy.wall_ms);
    rt_span_str(s, "retort.execution_id", p->id);
    rt_span_str(s, "retort.status", rt_str_of(rt_status_name(o->status)));
    rt_span_i64(s, "retort.denials", (int64_t)o->denials_seen);
    if (o->has_error)
        rt_span_fail(s, o->error.type);
}

static void send_event(passage *p)
{
    const rt_outcome *o = &p->outcome;
    rt_buf properties RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &properties);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "language", rt_str_of(p->language->name));
    rt_jw_kstr(&w, "runtime", o->runtime);
    rt_jw_kbool(&w, "success", o->status == RT_STATUS_SUCCESS);
    rt_jw_kdouble(&w, "durationMs", (double)o->wall_us / 1000.0);
    rt_jw_kdouble(&w, "memoryMb", (double)o->memory_peak_bytes / (1 << 20));
    rt_jw_ku64(&w, "tokensUsed", p->tokens);
    rt_jw_kstr(&w, "organizationId", p->request->caller.organisation_id);
    rt_jw_kstr(&w, "workspaceId", p->request->caller.workspace_id);
    if (p->has_validation)
        rt_jw_kbool(&w, "validationPassed", !p->has_invalid);
    if (p->request->code_agent_id.len > 0)
        rt_jw_kstr(&w, "codeAgentId", p->request->code_agent_id);
    rt_jw_end(&w);
    rt_event_send(p->engine->config.telemetry, RT_STR("code_executed"), engine_user(p->request),
                  rt_buf_str(&properties));
}

/* That an agent was used is an event of its own: it is what reuse is measured by. */
static void send_agent_event(passage *p)
{
    const rt_request *r = p->request;
    rt_buf properties RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    if (r->code_agent_id.len == 0)
        return;
    rt_json_begin(&w, &properties);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "agent_id", r->code_agent_id);
    rt_jw_kstr(&w, "version", r->code_agent_version);
    rt_jw_kstr(&w, "surface", r->surface);
    rt_jw_kbool(&w, "success", p->outcome.status == RT_STATUS_SUCCESS);
    rt_jw_kdouble(&w, "latencyMs", (double)p->outcome.wall_us / 1000.0);
    rt_jw_end(&w);
    rt_event_send(p->engine->config.telemetry, RT_STR("code_tool_used"), engine_user(r),
                  rt_buf_str(&properties));
}

void engine_publish(passage *p)
{
    publish_metrics(p);
    describe_span(p);
    send_event(p);
    send_agent_event(p);
}
