/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route.c - which runtime a run goes to: what the request says, and what the record knows.
 *
 * How long code takes is learned as it runs; when the engine opens it starts from the newest runs
 * on record, so that a restart forgets nothing that matters.
 */
#include "engine/engine_internal.h"

#define PRIMED_RUNS 2000

/* Oldest first, because the newest shall count most. */
void engine_route_prime(rt_engine *e)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_sql_value values[] = { rt_sql_i64(PRIMED_RUNS) };
    rt_rows rows;
    e->router = rt_router_new(e->config.runtime);
    if (!rt_sql_once(e->config.store, RT_TX_READ,
                     "SELECT code_hash, duration_us FROM executions WHERE status = 'SUCCESS' "
                     "ORDER BY created_ms DESC, id DESC LIMIT $1",
                     values, 1, &arena, &rows, NULL))
        return; /* what is not known is learned again */
    for (size_t i = rows.count; i > 0; i--)
        rt_router_learn(e->router, rt_rows_at(&rows, i - 1, 0).text,
                        (uint64_t)rt_rows_at(&rows, i - 1, 1).i64);
}

/* "e2b", or {"name": "auto", "long_job": true, "requires_sandbox": true, "expected_ms": 20}. */
bool engine_route_read(rt_json value, rt_route_ask *out, rt_error *err)
{
    rt_json_iter it = rt_json_each(value);
    rt_str key;
    rt_json member;
    double ms = 0;
    if (rt_json_type(value) == RT_JSON_STRING)
        out->runtime = rt_json_str(value);
    else if (rt_json_type(value) != RT_JSON_OBJECT)
        return rt_fail(err, RT_INVALID, "'runtime' must be a name or an object with one, not %s",
                       rt_json_type_name(value));
    while (rt_json_type(value) == RT_JSON_OBJECT && rt_json_next(&it, &key, &member)) {
        bool is_flag = rt_json_type(member) == RT_JSON_BOOL;
        if (rt_str_eq_c(key, "name") && rt_json_type(member) == RT_JSON_STRING)
            out->runtime = rt_json_str(member);
        else if (rt_str_eq_c(key, "long_job") && is_flag)
            out->is_long = rt_json_bool(member, false);
        else if (rt_str_eq_c(key, "requires_sandbox") && is_flag)
            out->needs_sandbox = rt_json_bool(member, false);
        else if (rt_str_eq_c(key, "expected_ms") && rt_json_double(member, &ms) && ms >= 0 &&
                 ms <= 1e9)
            out->expected_us = (uint64_t)(ms * 1000);
        else
            return rt_fail(err, RT_INVALID,
                           "runtime.%.*s is not understood; there are name (text), long_job and "
                           "requires_sandbox (true or false) and expected_ms (a number)",
                           (int)RT_MIN(key.len, (size_t)40), key.ptr);
    }
    if (!rt_router_knows(out->runtime))
        return rt_router_unknown(out->runtime, err);
    return true;
}

bool engine_route(passage *p, rt_error *err)
{
    rt_route_ask ask = p->request->route;
    ask.language = rt_str_of(p->language->name);
    ask.code_hash = rt_str_of(p->code_hash);
    if (p->session.session) /* its cell is here */
        ask = (rt_route_ask){ .runtime = RT_STR("local"), .language = ask.language };
    if (!rt_router_decide(p->engine->router, &ask, &p->route, err))
        return false;
    if (p->session.session)
        p->route.reason = "session";
    return true;
}
