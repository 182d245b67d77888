/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c - what stays of a run: one row with hashes and sizes, a link in the chain, its cost.
 *
 * No raw code, input or output goes into the store unless the operator turned keeping on. An
 * error's message is made of what the code printed into it, so of it too only the kind and the line
 * are kept. The answer to an idempotency key has to be given again: it is kept sealed by the vault.
 */
#include "engine/engine_internal.h"

#define NAME_BYTES 100         /* of an error's name: the user chooses it, too */
#define KEPT_MAX   (1u << 20)  /* of each of code, input and output, when the operator keeps them */
#define ANSWER_MAX (16u << 20) /* of a sealed answer; a larger one is not given again */

rt_str engine_user(const rt_request *r)
{
    return r->user_id.len ? r->user_id : r->caller.user_id;
}

/* What code chose to say must not keep its run off the record: the store takes clean UTF-8 only. */
static rt_str clean(rt_str text, rt_arena *arena)
{
    char *out = rt_arena_copy(arena, text);
    for (size_t i = 0, step; i < text.len; i += step) {
        size_t bad = 1;
        step = rt_utf8_step(rt_str_slice(text, i, text.len), &bad);
        bool is_good = step > 1 || (step == 1 && (unsigned char)text.ptr[i] >= ' ');
        if (!is_good) {
            step = step ? step : bad;
            memset(out + i, '?', step);
        }
    }
    return (rt_str){ out, text.len };
}

static rt_str describe_error(const passage *p)
{
    const rt_code_error *e = &p->outcome.error;
    if (!p->outcome.has_error)
        return (rt_str){ 0 };
    rt_str name = clean(rt_str_slice(e->name.len ? e->name : e->type, 0, NAME_BYTES), p->arena);
    if (p->engine->config.keeps_data)
        return clean(rt_str_slice(e->message, 0, 2000), p->arena);
    if (e->line > 0)
        return rt_arena_printf(p->arena, "%.*s on line %lld", RT_FMT(name), (long long)e->line);
    return name;
}

static void keep_data(const passage *p, rt_execution_row *row)
{
    if (!p->engine->config.keeps_data)
        return;
    row->kept_code = rt_str_slice(p->request->code, 0, KEPT_MAX);
    row->kept_input = rt_str_slice(p->input, 0, KEPT_MAX);
    row->kept_output =
        rt_str_slice(p->outcome.has_value ? p->kept_value : p->outcome.out, 0, KEPT_MAX);
}

static void seal_answer(const passage *p, rt_execution_row *row)
{
    bool has_values = p->privacy.is_detokenized && p->vault; /* which are kept nowhere */
    if (p->request->idempotency_key.len == 0 || p->answer->json.len > ANSWER_MAX ||
        p->engine->config.forgets_answers || has_values)
        return;
    row->answer = rt_vault_seal(p->engine->config.vault, engine_answer_purpose(p->id, p->arena),
                                p->answer->json, p->arena);
}

/* How much of which type went in and came out, and no more than that. */
static rt_str count_pii(const passage *p)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    if (p->pii_in.total + p->pii_out.total == 0)
        return RT_STR("{}");
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_key(&w, RT_STR("input"));
    rt_privacy_counts_write(&p->pii_in, RT_PII_STORED, p->scan.patterns, &w);
    rt_jw_key(&w, RT_STR("output"));
    rt_privacy_counts_write(&p->pii_out, RT_PII_STORED, p->scan.patterns, &w);
    rt_jw_end(&w);
    return rt_arena_str(p->arena, rt_buf_str(&text));
}

bool engine_record(passage *p, rt_error *err)
{
    const rt_outcome *o = &p->outcome;
    rt_execution_row row;
    char trace_id[33];
    engine_fill_row(p, &row);
    rt_hex(trace_id, p->span.context.trace_id, sizeof(p->span.context.trace_id));
    row.trace_id = rt_str_of(trace_id);
    row.status = rt_str_of(rt_status_name(o->status));
    row.runtime = o->runtime;
    row.exit_code = o->exit_code;
    row.error_type = o->has_error ? o->error.type : (rt_str){ 0 };
    row.error_message = describe_error(p);
    row.output_hash = rt_str_of(p->output_hash);
    row.transcript_hash = rt_str_of(p->calls.transcript_hash);
    row.tool_ids = p->calls.ids;
    row.output_bytes = p->full_output_bytes;
    row.duration_us = o->wall_us;
    row.cpu_us = o->cpu_us;
    row.memory_peak_bytes = o->memory_peak_bytes;
    row.is_timed_out = o->status == RT_STATUS_TIMEOUT;
    row.attestation = o->attestation;
    row.denials = o->denials_seen;
    row.has_validation = p->has_validation;
    row.is_validation_passed = p->has_validation && !p->has_invalid;
    row.is_pii_in = p->pii_in.total > 0;
    row.is_pii_out = p->pii_out.total > 0;
    row.is_pii_masked = (row.is_pii_in || row.is_pii_out) && p->privacy.mode != RT_PRIVACY_OFF;
    row.pii_types = count_pii(p);
    row.tokens = p->tokens;
    row.tokens_saved = p->tokens_saved;
    row.cost_usd = p->cost_usd;
    row.traditional_cost_usd = p->traditional_cost_usd;
    row.is_cost_tracked = !p->engine->config.rates.is_off;
    row.finished_ms = rt_wall_ms();
    row.started_ms = row.finished_ms - RT_MIN(o->wall_us / 1000, row.finished_ms);
    keep_data(p, &row);
    seal_answer(p, &row);
    return rt_execution_record(p->engine->config.store, &row, err) ||
           rt_wrap(err, "record the run");
}

void engine_record_failure(passage *p, const rt_error *why)
{
    rt_execution_row row;
    if (!p->is_reserved)
        return;
    engine_fill_row(p, &row);
    row.status = why->code == RT_CANCELLED ? RT_STR("CANCELLED") : RT_STR("FAILED");
    row.error_type = rt_str_of(rt_code_name(why->code));
    row.error_message = rt_str_of(why->text);
    row.finished_ms = row.started_ms = rt_wall_ms();
    rt_execution_record(p->engine->config.store, &row, NULL);
    if (row.idempotency_key.len > 0 && !p->has_outcome)
        rt_execution_release(p->engine->config.store, p->id, NULL); /* it may be tried again */
}
