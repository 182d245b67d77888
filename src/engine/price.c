/* SPDX-License-Identifier: Apache-2.0 */
/*
 * price.c - what a run cost, and what it kept out of the model's context.
 *
 * Tokens are characters by chars_per_token, rounded up (S0-28): of the code, the input and the
 * answer. Saved is what the same data would have taken in the model's context (input, whole output,
 * files, what tools were told and said) less what the answer carries. The traditional cost is that
 * of all of it passing through the model, at the operator's rate.
 */
#include "engine/engine_internal.h"

#include <math.h>

uint64_t engine_tokens(const rt_engine_rates *rates, uint64_t characters)
{
    return (uint64_t)ceil((double)characters / rates->chars_per_token);
}

double engine_round6(double usd)
{
    return round(usd * 1e6) / 1e6;
}

bool engine_price(passage *p, rt_error *err)
{
    (void)err;
    const rt_engine_rates *rates = &p->engine->config.rates;
    const rt_outcome *o = &p->outcome;
    if (rates->is_off)
        return true;
    uint64_t asked = rt_utf8_length(p->request->code);
    asked += p->request->has_input ? rt_utf8_length(p->request->input) : 2;
    uint64_t answered = rt_utf8_length(o->has_value ? o->value : o->out);
    uint64_t files = 0;
    for (size_t i = 0; i < o->artifact_count; i++)
        files += o->artifacts[i].size;
    p->tokens = engine_tokens(rates, asked + answered);
    uint64_t all = engine_tokens(rates, asked + p->full_output_bytes + files + p->calls.bytes_in +
                                            p->calls.bytes_out);
    uint64_t carried = engine_tokens(rates, rt_utf8_length(p->request->code) + answered +
                                                (o->has_value ? o->out.len : 0) + o->err.len);
    p->tokens_saved = all > carried ? all - carried : 0;
    p->cost_usd = engine_round6((double)p->tokens * rates->execution / 1e6);
    p->traditional_cost_usd = engine_round6((double)all * rates->traditional / 1e6);
    return true;
}
