/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protect_tools.c - personal data between the code of a run and its tools.
 *
 * Calls of one run come on several threads. The vault has a lock of its own; what was found is
 * counted beside the work and added to the passage's counts at the end, under theirs.
 */
#include "engine/protect.h"

static void add_report(passage *p, rt_privacy_report *sum, const rt_privacy_report *found)
{
    pthread_mutex_lock(&p->pii_lock);
    for (size_t i = 0; i < RT_PII_MAX; i++)
        sum->counts[i] += found->counts[i];
    sum->total += found->total;
    pthread_mutex_unlock(&p->pii_lock);
}

/* Values that were put back pass through this memory, too. */
static void wipe_buf(rt_buf *buf)
{
    if (buf->ptr)
        explicit_bzero(buf->ptr, buf->cap);
    rt_buf_done(buf);
}

static bool mask_json(passage *p, rt_str text, rt_privacy_report *sum, rt_arena *arena, rt_str *out,
                      rt_error *err)
{
    rt_buf masked RT_CLEANUP(wipe_buf) = { 0 };
    rt_privacy_mask mask = engine_mask(p);
    rt_privacy_report found = { 0 };
    rt_json value;
    rt_buf_init(&masked, RT_JSON_SIZE_CEILING);
    if (!rt_json_parse(text, arena, &value, err) ||
        !rt_privacy_mask_json(value, &mask, &masked, &found, err))
        return false;
    *out = found.total ? rt_arena_str(arena, rt_buf_str(&masked)) : text;
    add_report(p, sum, &found);
    return true;
}

static bool unmask_json(passage *p, rt_str text, rt_arena *arena, rt_str *out, rt_error *err)
{
    rt_buf plain RT_CLEANUP(wipe_buf) = { 0 };
    rt_json value;
    rt_buf_init(&plain, RT_JSON_SIZE_CEILING);
    if (!rt_json_parse(text, arena, &value, err))
        return false;
    if (!rt_privacy_unmask_json(value, p->vault, &plain, err)) {
        err->code = err->code == RT_NOT_FOUND ? RT_INVALID : err->code;
        return rt_wrap(err, "only tokens of this run or session stand for values");
    }
    *out = rt_arena_str(arena, rt_buf_str(&plain));
    return true;
}

bool engine_protect_arguments(passage *p, rt_str arguments, bool sees_pii, rt_arena *arena,
                              rt_str *out, rt_error *err)
{
    bool is_masked = p->privacy.mode != RT_PRIVACY_OFF && !sees_pii;
    bool has_tokens = p->vault && sees_pii;
    if (is_masked)
        return mask_json(p, arguments, &p->pii_out, arena, out, err) ||
               rt_wrap(err, "mask the arguments");
    if (has_tokens)
        return unmask_json(p, arguments, arena, out, err) || rt_wrap(err, "the arguments");
    *out = arguments;
    return true;
}

bool engine_protect_result(passage *p, rt_str value, bool is_risky, rt_arena *arena, rt_str *out,
                           rt_error *err)
{
    rt_privacy_report found = { 0 };
    if (p->privacy.mode != RT_PRIVACY_OFF)
        return mask_json(p, value, &p->pii_in, arena, out, err) || rt_wrap(err, "mask the result");
    *out = value;
    if (!is_risky)
        return true;
    if (!engine_pii_count(p, value, &found, err))
        return rt_wrap(err, "look through the result");
    add_report(p, &p->pii_in, &found);
    return true;
}

bool engine_protect_text(passage *p, rt_str text, rt_arena *arena, rt_str *out, rt_error *err)
{
    rt_buf masked RT_CLEANUP(wipe_buf) = { 0 };
    rt_privacy_mask mask = engine_mask(p);
    rt_privacy_report found = { 0 };
    *out = text;
    if (p->privacy.mode == RT_PRIVACY_OFF)
        return true;
    rt_buf_init(&masked, RT_JSON_SIZE_CEILING);
    if (!rt_privacy_mask_text(text, &mask, &masked, &found, err))
        return rt_wrap(err, "mask a tool's words");
    *out = rt_arena_str(arena, rt_buf_str(&masked));
    add_report(p, &p->pii_in, &found);
    return true;
}

bool engine_pii_count(passage *p, rt_str value, rt_privacy_report *out, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_privacy_mask mask = engine_mask(p);
    rt_json doc;
    *out = (rt_privacy_report){ 0 };
    return rt_json_parse(value, &arena, &doc, err) && rt_privacy_count_json(doc, &mask, out, err);
}
