/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protect.c - personal data on its way in and on its way out.
 *
 * With a privacy mode, code gets its input masked, and everything that comes out of it is masked
 * again before anybody else sees it: the value, both streams, the error, files of text. Values
 * behind tokens are in a vault of this run or of its session, in memory, and gone with it; they
 * come back only into the answer, and only when the request asked for that. What was found goes on
 * record by type. Tool calls while it runs are in protect_tools.c.
 */
#include "engine/engine_internal.h"
#include "engine/protect.h"

rt_privacy_mask engine_mask(const passage *p)
{
    return (rt_privacy_mask){ .mode = p->privacy.mode,
                              .scan = p->scan,
                              .vault = p->vault,
                              .is_stable = p->privacy.is_stable,
                              .masks_keys = p->privacy.mode == RT_PRIVACY_TOKENS };
}

static bool mask_json(passage *p, rt_json value, rt_privacy_report *found, rt_str *out,
                      rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_privacy_mask mask = engine_mask(p);
    rt_buf_init(&text, RT_JSON_SIZE_CEILING);
    if (!rt_privacy_mask_json(value, &mask, &text, found, err) || !rt_buf_ok(&text, err))
        return false;
    *out = rt_arena_str(p->arena, rt_buf_str(&text));
    return true;
}

static bool mask_text(passage *p, rt_str *text, rt_privacy_report *found, rt_error *err)
{
    rt_buf masked RT_CLEANUP(rt_buf_done) = { 0 };
    rt_privacy_mask mask = engine_mask(p);
    if (text->len == 0)
        return true;
    rt_buf_init(&masked, RT_JSON_SIZE_CEILING);
    if (!rt_privacy_mask_text(*text, &mask, &masked, found, err) || !rt_buf_ok(&masked, err))
        return false;
    *text = rt_arena_str(p->arena, rt_buf_str(&masked));
    return true;
}

/* What is in a text that nobody masks: counted by type, for the record. */
static bool note(passage *p, rt_str text, rt_privacy_report *report, rt_error *err)
{
    rt_pii_spans found = { 0 };
    if (!rt_privacy_scan(text, &p->scan, p->arena, &found, err))
        return rt_wrap(err, "look for personal data");
    for (size_t i = 0; i < found.count; i++)
        report->counts[found.items[i].type]++;
    report->total += found.count;
    return true;
}

/* A call that says nothing gets what its policy says, or else what its surface does. */
static bool choose_mode(passage *p, rt_error *err)
{
    const rt_engine_config *config = &p->engine->config;
    p->privacy = p->request->privacy;
    if (config->is_privacy_off) {
        p->privacy = (rt_privacy_wish){ 0 };
        return true;
    }
    if (!p->privacy.is_said && p->policy.privacy != RT_PRIVACY_OFF)
        p->privacy.mode = p->policy.privacy;
    if (config->is_privacy_required && p->privacy.mode == RT_PRIVACY_OFF)
        return rt_fail(err, RT_DENIED,
                       "the operator requires personal data to be masked (privacy.required): ask "
                       "for redact, tokens or partial");
    return true;
}

/* What a call looks for comes on top of what an operator requires; else instead of it. */
bool engine_choose_privacy(passage *p, rt_error *err)
{
    rt_engine *e = p->engine;
    rt_json wished = p->request->privacy.options;
    if (!choose_mode(p, err))
        return false;
    p->scan = e->scan;
    if (p->privacy.mode == RT_PRIVACY_OFF || rt_json_is_absent(wished))
        return true;
    rt_privacy_options own = { 0 };
    if (!rt_privacy_options_read(e->config.privacy_options, &own, &p->patterns, err) ||
        !rt_privacy_options_read(wished, &own, &p->patterns, err))
        return rt_wrap(err, "privacy");
    if (e->config.is_privacy_required) {
        own.types |= e->scan.types ? e->scan.types : RT_PII_USUAL;
        memcpy(own.min_score, e->scan.min_score, sizeof(own.min_score));
    }
    p->scan = own;
    return true;
}

/* Code in a session meets the tokens of earlier runs, so it has one vault as long as it lives. */
static bool open_vault(passage *p, rt_error *err)
{
    if (p->session.session)
        return engine_session_vault(&p->session, &p->vault, err);
    return rt_privacy_vault_open(&p->vault, err);
}

static bool mask_input(passage *p, rt_error *err)
{
    const rt_request *r = p->request;
    rt_json value = p->input_json;
    if (!r->has_input)
        return true;
    if (r->is_input_text)
        return mask_text(p, &p->input, &p->pii_in, err);
    if (rt_json_is_absent(value) && !rt_json_parse(p->input, p->arena, &value, err))
        return false;
    return mask_json(p, value, &p->pii_in, &p->input, err);
}

bool engine_protect_input(passage *p, rt_error *err)
{
    p->stdin_data = p->request->stdin_data;
    if (p->privacy.mode == RT_PRIVACY_OFF)
        return !p->privacy.is_noted || note(p, p->input, &p->pii_in, err);
    if (p->privacy.mode == RT_PRIVACY_TOKENS && !open_vault(p, err))
        return rt_wrap(err, "the vault of the run");
    return (mask_input(p, err) && mask_text(p, &p->stdin_data, &p->pii_in, err)) ||
           rt_wrap(err, "mask the input");
}

static bool mask_files(passage *p, rt_error *err)
{
    for (size_t i = 0; i < p->outcome.artifact_count; i++) {
        rt_file *f = &p->outcome.artifacts[i];
        bool is_text =
            rt_utf8_valid(f->data) && !memchr(f->data.ptr ? f->data.ptr : "", 0, f->data.len);
        if (!mask_text(p, &f->name, &p->pii_out, err))
            return false;
        if (f->is_cut || !is_text)
            continue;
        if (!mask_text(p, &f->data, &p->pii_out, err))
            return false;
        f->size = f->data.len;
    }
    return true;
}

static bool mask_outcome(passage *p, rt_error *err)
{
    rt_outcome *o = &p->outcome;
    rt_str *texts[] = { &o->out,           &o->err,         &o->error.name,
                        &o->error.message, &o->error.stack, &o->error.hint };
    rt_json value;
    if (o->has_value && (!rt_json_parse(o->value, p->arena, &value, err) ||
                         !mask_json(p, value, &p->pii_out, &o->value, err)))
        return false;
    for (size_t i = 0; i < RT_COUNT(texts); i++)
        if (!mask_text(p, texts[i], &p->pii_out, err))
            return false;
    return mask_files(p, err);
}

/* The answer alone gets its values back; what is kept and recorded has the tokens. */
static bool put_values_back(passage *p, rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json value;
    if (!p->outcome.has_value || !rt_json_parse(p->outcome.value, p->arena, &value, err))
        return !p->outcome.has_value;
    rt_buf_init(&text, RT_JSON_SIZE_CEILING);
    if (!rt_privacy_unmask_json(value, p->vault, &text, err))
        return rt_wrap(err, "put the values back into the answer");
    p->outcome.value = rt_arena_str(p->arena, rt_buf_str(&text));
    return true;
}

/* Watchers saw nothing while it ran: what they may see is only known now. */
static bool tell_streams(passage *p)
{
    const rt_str streams[] = { p->outcome.out, p->outcome.err };
    bool is_heard = true;
    for (int i = 0; i < 2 && is_heard; i++)
        if (streams[i].len > 0 && p->request->on_event)
            is_heard = engine_tell_output(p, i + 1, streams[i]);
    return is_heard;
}

bool engine_protect_output(passage *p, rt_error *err)
{
    p->kept_value = p->outcome.value;
    if (p->privacy.mode == RT_PRIVACY_OFF)
        return !p->privacy.is_noted || note(p, p->outcome.value, &p->pii_out, err);
    if (!mask_outcome(p, err))
        return rt_wrap(err, "mask what came out");
    p->kept_value = p->outcome.value;
    if (!tell_streams(p))
        return rt_fail(err, RT_CANCELLED, "nobody listens any more");
    return !p->privacy.is_detokenized || !p->vault || put_values_back(p, err);
}

/* Raw personal data is never kept in the cache: not what was put back, nor what nobody masked. */
bool engine_is_private(const passage *p)
{
    rt_pii_spans found = { 0 };
    if (p->privacy.is_detokenized)
        return true;
    if (p->privacy.mode != RT_PRIVACY_OFF || p->engine->config.is_privacy_off)
        return false;
    return !rt_privacy_scan(p->answer->json, &p->engine->scan, p->arena, &found, NULL) ||
           found.count > 0;
}
