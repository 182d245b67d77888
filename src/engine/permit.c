/* SPDX-License-Identifier: Apache-2.0 */
/*
 * permit.c - may this caller run code here, now?
 */
#include "engine/engine_internal.h"
#include "engine/rollout.h"

static bool check_budget(passage *p, rt_str key_id, double budget, const char *whose, rt_error *err)
{
    const rt_caller *c = &p->request->caller;
    double spent = 0;
    if (budget <= 0)
        return true;
    if (!rt_cost_of_month(p->engine->config.store, c->organisation_id, key_id, rt_wall_ms(), &spent,
                          err))
        return rt_wrap(err, "look up the budget");
    if (spent >= budget)
        return rt_fail(err, RT_DENIED, "the budget of %s for this month is spent: %.2f of %.2f USD",
                       whose, spent, budget);
    return true;
}

bool engine_permit(passage *p, rt_error *err)
{
    const rt_engine_config *config = &p->engine->config;
    const rt_caller *c = &p->request->caller;
    if (atomic_load(&p->engine->is_stopping))
        return rt_fail(err, RT_UNAVAILABLE, "the server is stopping; try another node or later");
    if (c->role < RT_ROLE_MEMBER)
        return rt_fail(err, RT_DENIED,
                       "You do not have permission to run code; ask for a key with "
                       "the role member");
    if (config->is_off)
        return rt_fail(err, RT_UNAVAILABLE,
                       "code execution is switched off here (execution.enabled)");
    rt_str subject =
        p->request->conversation.len ? p->request->conversation : engine_user(p->request);
    if (config->has_rollout && !engine_rollout_includes(subject, config->rollout_percent))
        return rt_fail(err, RT_UNAVAILABLE,
                       "code execution is being rolled out and does not include you yet "
                       "(execution.rollout_percent is %u)",
                       config->rollout_percent);
    return check_budget(p, c->key_id, c->budget_usd_month, "this key", err) &&
           check_budget(p, (rt_str){ 0 }, config->rates.budget_usd_month, "the organisation", err);
}
