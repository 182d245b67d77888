/* SPDX-License-Identifier: Apache-2.0 */
/* api_budget.c - what a month may cost, and who was warned. */
#include "server/server_internal.h"

#define USD_MAX     1e9
#define PERCENT_MAX 1000

static bool reply_budget(http_request *r, http_reply *reply, rt_error *err)
{
    rt_budget b;
    rt_json_writer w;
    if (!rt_budget_get(r->server->config.store, r->caller.organisation_id,
                       r->server->config.budget_usd_month, rt_wall_ms(), &b, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_kdouble(&w, "usd_month", b.usd_month);
    rt_jw_kdouble(&w, "alert_percent", b.alert_percent);
    rt_jw_kdouble(&w, "spent_usd", b.spent_usd);
    rt_jw_kbool(&w, "own", b.is_own);
    rt_jw_end(&w);
    return true;
}

static const http_member members[] = {
    { "usd_month", HTTP_NUMBER, true },
    { "alert_percent", HTTP_NUMBER | HTTP_NULL, false },
};

static bool set_budget(http_request *r, http_reply *reply, rt_error *err)
{
    double usd = 0, percent = RT_BUDGET_PERCENT;
    rt_json body;
    if (!http_object(r, members, RT_COUNT(members), &body, err))
        return false;
    rt_json_double(rt_json_get_c(body, "alert_percent"), &percent);
    if (!rt_json_double(rt_json_get_c(body, "usd_month"), &usd) || !(usd >= 0 && usd <= USD_MAX))
        return rt_fail(err, RT_INVALID, "'usd_month' must be an amount of USD; 0: no budget");
    if (!(percent > 0 && percent <= PERCENT_MAX))
        return rt_fail(err, RT_INVALID, "'alert_percent' must be above 0 and at most %d",
                       PERCENT_MAX);
    return rt_budget_set(r->server->config.store, r->caller.organisation_id, usd, percent,
                         rt_wall_ms(), err) &&
           server_audit(r, "budget.set", r->caller.organisation_id, err) &&
           reply_budget(r, reply, err);
}

static bool list_alerts(http_request *r, http_reply *reply, rt_error *err)
{
    rt_budget_alert *rows;
    size_t count;
    rt_json_writer w;
    if (!rt_budget_alerts(r->server->config.store, http_scope(r),
                          (unsigned)http_query_u64(r, "limit", 50), &r->arena, &rows, &count, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_karray(&w, "items");
    for (size_t i = 0; i < count; i++)
        rt_budget_alert_write(&rows[i], &w);
    rt_jw_end(&w);
    rt_jw_end(&w);
    return true;
}

const http_operation api_budget_rows[] = {
    { .method = "GET",
      .path = "/v1/budget",
      .id = "getBudget",
      .tag = "Reports",
      .summary = "What a month may cost, and what it has cost so far",
      .role = RT_ROLE_VIEWER,
      .action = "read costs",
      .responses = HTTP_RESPONSES({ 200, "Budget", "The budget" }),
      .handler = reply_budget },
    { .method = "PUT",
      .path = "/v1/budget",
      .id = "setBudget",
      .tag = "Reports",
      .summary = "Set the organisation's budget, and when to warn",
      .about = "When what was spent in a month reaches alert_percent of it there is one alert: in "
               "the log, at /v1/budget/alerts, and to budget.webhook_url.",
      .role = RT_ROLE_ADMIN,
      .action = "set the budget",
      .request = "BudgetRequest",
      .responses = HTTP_RESPONSES({ 200, "Budget", "The budget" }),
      .handler = set_budget },
    { .method = "GET",
      .path = "/v1/budget/alerts",
      .id = "listBudgetAlerts",
      .tag = "Reports",
      .summary = "The alerts there were",
      .role = RT_ROLE_VIEWER,
      .action = "read costs",
      .parameters = HTTP_PARAMETERS(
          { "limit", HTTP_IN_QUERY, HTTP_TYPE_INTEGER, "rows at most", NULL, "50", 1, 500 }),
      .responses = HTTP_RESPONSES({ 200, "BudgetAlerts", "Newest first" }),
      .handler = list_alerts },
    { 0 },
};
