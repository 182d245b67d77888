/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_session.c - cells that stay, and parts of large outputs, for a model.
 *
 * One tool with an action costs a model's context less than seven tools do. What goes wrong here is
 * told as the tool's own error: the model can mend it.
 */
#include <string.h>

#include "server/artifact_view.h"
#include "server/mcp.h"

#define FILE_MAX     (1u << 20) /* bytes read or written at once */
#define SESSIONS_MAX 50

typedef struct visit {
    mcp_call *call;
    rt_json arguments;
    rt_str session_id;
} visit;

typedef bool action_fn(visit *v, rt_json_writer *w, rt_error *err);

static void write_session(const rt_session_row *row, rt_json_writer *w)
{
    char expires[RT_ISO8601_SIZE];
    rt_iso8601_write(expires, row->expires_ms);
    rt_jw_object(w);
    rt_jw_kstr(w, "session_id", row->id);
    rt_jw_kstr(w, "language", row->language);
    rt_jw_kstr(w, "status", row->status);
    if (row->name.len > 0)
        rt_jw_kstr(w, "name", row->name);
    if (row->parent_id.len > 0)
        rt_jw_kstr(w, "parent_id", row->parent_id);
    rt_jw_kstr(w, "expires_at", rt_str_of(expires));
    rt_jw_end(w);
}

static bool read_ttl(const visit *v, uint64_t *ms, rt_error *err)
{
    rt_str ttl = rt_json_str(rt_json_get_c(v->arguments, "ttl"));
    return ttl.len == 0 || rt_parse_duration_ms(ttl, ms, err) || rt_wrap(err, "ttl");
}

static bool create(visit *v, rt_json_writer *w, rt_error *err)
{
    rt_session_request request = { .caller = v->call->caller };
    rt_session_row row;
    if (!http_member_label(v->arguments, "name", &request.name, err) ||
        !read_ttl(v, &request.ttl_ms, err))
        return false;
    request.language = rt_json_str(rt_json_get_c(v->arguments, "language"));
    if (request.language.len == 0)
        request.language = RT_STR("typescript");
    if (!rt_session_create(v->call->mcp->config->engine, &request, &v->call->arena, &row, err))
        return false;
    write_session(&row, w);
    return true;
}

static bool list(visit *v, rt_json_writer *w, rt_error *err)
{
    rt_session_row *rows;
    size_t count;
    if (!rt_session_list(v->call->mcp->config->engine, &v->call->caller, RT_STR("ACTIVE"),
                         SESSIONS_MAX, &v->call->arena, &rows, &count, err))
        return false;
    rt_jw_object(w);
    rt_jw_karray(w, "sessions");
    for (size_t i = 0; i < count; i++)
        write_session(&rows[i], w);
    rt_jw_end(w);
    rt_jw_end(w);
    return true;
}

static bool branch(visit *v, rt_json_writer *w, rt_error *err)
{
    rt_session_row row;
    rt_str name = { 0 };
    uint64_t ttl_ms = 0;
    if (!http_member_label(v->arguments, "name", &name, err) || !read_ttl(v, &ttl_ms, err) ||
        !rt_session_branch(v->call->mcp->config->engine, &v->call->caller, v->session_id, name,
                           ttl_ms, &v->call->arena, &row, err))
        return false;
    write_session(&row, w);
    return true;
}

static bool end(visit *v, rt_json_writer *w, rt_error *err)
{
    if (!rt_session_end(v->call->mcp->config->engine, &v->call->caller, v->session_id, err))
        return false;
    rt_jw_object(w);
    rt_jw_kstr(w, "ended", v->session_id);
    rt_jw_end(w);
    return true;
}

/* ---- files ---- */

static bool take(visit *v, rt_session_hold *hold, rt_error *err)
{
    return rt_session_take(v->call->mcp->config->engine, &v->call->caller, v->session_id, hold,
                           err);
}

static bool files(visit *v, rt_json_writer *w, rt_error *err)
{
    rt_session_hold hold RT_CLEANUP(rt_session_let_go) = { 0 };
    rt_live_file *found;
    size_t count;
    if (!take(v, &hold, err) ||
        !rt_live_list(hold.live, rt_json_str(rt_json_get_c(v->arguments, "path")), &v->call->arena,
                      &found, &count, err))
        return false;
    rt_jw_object(w);
    rt_jw_karray(w, "files");
    for (size_t i = 0; i < count; i++) {
        rt_jw_object(w);
        rt_jw_kstr(w, "path", found[i].path);
        if (found[i].is_directory)
            rt_jw_kbool(w, "directory", true);
        else
            rt_jw_ku64(w, "size", found[i].size);
        rt_jw_end(w);
    }
    rt_jw_end(w);
    rt_jw_end(w);
    return true;
}

static bool read_text(visit *v, rt_json_writer *w, rt_error *err)
{
    rt_session_hold hold RT_CLEANUP(rt_session_let_go) = { 0 };
    rt_buf encoded RT_CLEANUP(rt_buf_done) = { 0 };
    uint64_t size;
    rt_str bytes;
    int file;
    if (!take(v, &hold, err) ||
        !rt_live_read(hold.live, rt_json_str(rt_json_get_c(v->arguments, "path")), &file, &size,
                      err))
        return false;
    int fd RT_CLEANUP(rt_closep) = file;
    if (!rt_read_fd(fd, FILE_MAX, &v->call->arena, &bytes, err))
        return rt_wrap(err, "the file is long; let code read the part you need");
    rt_jw_object(w);
    if (rt_utf8_valid(bytes)) {
        rt_jw_kstr(w, "text", bytes);
    } else {
        mcp_base64(&encoded, bytes);
        rt_jw_kstr(w, "base64", rt_buf_str(&encoded));
    }
    rt_jw_end(w);
    return true;
}

static bool write_text(visit *v, rt_json_writer *w, rt_error *err)
{
    rt_session_hold hold RT_CLEANUP(rt_session_let_go) = { 0 };
    rt_json text = rt_json_get_c(v->arguments, "text");
    rt_str path = rt_json_str(rt_json_get_c(v->arguments, "path"));
    if (rt_json_type(text) != RT_JSON_STRING || rt_json_str(text).len > FILE_MAX)
        return rt_fail(err, RT_INVALID, "'text' must be a string of at most %u bytes", FILE_MAX);
    if (!take(v, &hold, err) || !rt_live_write(hold.live, path, rt_json_str(text), err))
        return false;
    rt_jw_object(w);
    rt_jw_kstr(w, "written", path);
    rt_jw_end(w);
    return true;
}

/* ---- the tool ---- */

static const struct {
    const char *name;
    action_fn *act;
    bool has_session;
} actions[] = {
    { "create", create, false },   { "list", list, false },  { "branch", branch, true },
    { "end", end, true },          { "files", files, true }, { "read", read_text, true },
    { "write", write_text, true },
};

static bool act(visit *v, rt_json_writer *w, rt_error *err)
{
    rt_str action = rt_json_str(rt_json_get_c(v->arguments, "action"));
    for (size_t i = 0; i < RT_COUNT(actions); i++) {
        if (!rt_str_eq_c(action, actions[i].name))
            continue;
        if (actions[i].has_session && v->session_id.len == 0)
            return rt_fail(err, RT_INVALID, "'session_id' is missing");
        return actions[i].act(v, w, err);
    }
    return rt_fail(err, RT_INVALID,
                   "'action' must be one of: create, list, branch, end, files, read, write");
}

bool mcp_session(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    visit v = { c, arguments, rt_json_str(rt_json_get_c(arguments, "session_id")) };
    rt_buf json RT_CLEANUP(rt_buf_done) = { 0 };
    rt_error err = { 0 };
    rt_json_writer in;
    rt_json_begin(&in, &json);
    if (act(&v, &in, &err))
        mcp_write_structured(c, w, rt_buf_str(&json));
    else
        mcp_write_text(w, rt_str_of(err.text), true);
    return true;
}

/* ---- parts of large outputs ---- */

static bool view_part(mcp_call *c, rt_json arguments, rt_json_writer *w, rt_error *err)
{
    rt_str handle = rt_json_str(rt_json_get_c(arguments, "handle"));
    rt_str prefix = RT_STR("retort://artifact/");
    rt_str text = rt_json_str(rt_json_get_c(arguments, "search"));
    rt_str path = rt_json_str(rt_json_get_c(arguments, "json_path"));
    uint64_t line = 1, lines = 100;
    rt_artifact_row row;
    if (rt_str_starts(handle, prefix))
        handle = rt_str_slice(handle, prefix.len, handle.len);
    if (!http_member_u64(arguments, "line", 1, INT32_MAX, &line, err) ||
        !http_member_u64(arguments, "lines", 1, VIEW_LINES_MAX, &lines, err) ||
        !rt_artifact_find(c->mcp->config->shelf, c->caller.organisation_id, handle, &c->arena, &row,
                          err))
        return false;
    view v = { c->mcp->config->shelf, &row, &c->arena };
    if (text.len > 0)
        return view_search(&v, text, false, 0, 100, w, err);
    if (path.len > 0)
        return view_json(&v, path, w, err);
    return view_lines(&v, line, lines, w, err);
}

bool mcp_read_artifact(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    rt_buf json RT_CLEANUP(rt_buf_done) = { 0 };
    rt_error err = { 0 };
    rt_json_writer in;
    rt_json_begin(&in, &json);
    if (view_part(c, arguments, &in, &err))
        mcp_write_structured(c, w, rt_buf_str(&json));
    else
        mcp_write_text(w, rt_str_of(err.text), true);
    return true;
}
