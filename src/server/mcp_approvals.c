/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_approvals.c - what waits for a person's word, seen and answered through a model.
 *
 * The model passes the word on; the engine asks whose it is. Clients show a tool that says it may
 * destroy something to their user before they call it, and this one says so.
 */
#include "server/approvals.h"
#include "server/mcp.h"

#define LISTED_MAX 20

static void write_approval(mcp_call *c, const rt_approval_row *row, rt_json_writer *w)
{
    approvals_write(c->mcp->config, &c->caller, row, &c->arena, w);
}

static bool list(mcp_call *c, rt_json_writer *w, rt_error *err)
{
    rt_approval_row *rows;
    size_t count;
    if (!approvals_list(c->mcp->config, &c->caller, RT_STR("pending"), LISTED_MAX, &c->arena, &rows,
                        &count, err))
        return false;
    rt_jw_object(w);
    rt_jw_karray(w, "pending");
    for (size_t i = 0; i < count; i++)
        write_approval(c, &rows[i], w);
    rt_jw_end(w);
    rt_jw_end(w);
    return true;
}

static bool decide(mcp_call *c, rt_json arguments, rt_json_writer *w, rt_error *err)
{
    rt_str id = rt_json_str(rt_json_get_c(arguments, "id"));
    rt_json approved = rt_json_get_c(arguments, "approved");
    rt_str feedback = rt_json_str(rt_json_get_c(arguments, "feedback"));
    rt_approval_row row;
    if (rt_json_type(approved) != RT_JSON_BOOL)
        return rt_fail(err, RT_INVALID, "'approved' must be true or false");
    if (!approvals_decide(c->mcp->config, &c->caller, id, rt_json_bool(approved, false), feedback,
                          &c->arena, &row, err))
        return false;
    write_approval(c, &row, w);
    return true;
}

bool mcp_approvals(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    rt_buf json RT_CLEANUP(rt_buf_done) = { 0 };
    rt_error err = { 0 };
    rt_json_writer in;
    bool has_id = !rt_json_is_absent(rt_json_get_c(arguments, "id"));
    rt_json_begin(&in, &json);
    if (has_id ? decide(c, arguments, &in, &err) : list(c, &in, &err))
        mcp_write_structured(c, w, rt_buf_str(&json));
    else
        mcp_write_text(w, rt_str_of(err.text), true);
    return true;
}
