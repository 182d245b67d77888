/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_resources.c - what runs left behind, as resources: retort://artifact/<handle>.
 *
 * Listed are the artifacts of the latest runs; every other one that is still kept can be read by
 * the link its run answered with.
 */
#include "server/mcp.h"

#define RUNS_LISTED 20
#define READ_MAX    (8u << 20) /* bytes of one resource; longer ones are read in parts */

static const rt_str prefix = { "retort://artifact/", 18 };

static void write_artifacts_of(mcp_call *c, rt_str execution_id, rt_json_writer *w)
{
    rt_artifact_row *rows = NULL;
    size_t count = 0;
    if (!rt_artifact_list(c->mcp->config->shelf, c->caller.organisation_id, execution_id, &c->arena,
                          &rows, &count, NULL))
        return;
    for (size_t i = 0; i < count; i++) {
        rt_jw_object(w);
        mcp_artifact_members(c, w, rows[i].id, rows[i].name, rows[i].type, rows[i].size);
        rt_jw_end(w);
    }
}

bool mcp_resources_list(mcp_call *c, rt_json_writer *w)
{
    rt_execution_filter filter = { .organisation_id = c->caller.organisation_id,
                                   .limit = RUNS_LISTED };
    rt_execution_row *runs;
    size_t count;
    rt_str next;
    rt_error err = { 0 };
    if (!mcp_check_cursor(c))
        return false;
    if (!rt_execution_list(c->mcp->config->store, &filter, &c->arena, &runs, &count, &next, &err))
        return mcp_fail_error(c, &err);
    rt_jw_karray(w, "resources");
    if (c->mcp->config->has_mcp_fixture)
        mcp_fixture_resources(w);
    for (size_t i = 0; i < count; i++)
        write_artifacts_of(c, runs[i].id, w);
    rt_jw_end(w);
    return true;
}

bool mcp_resources_templates(mcp_call *c, rt_json_writer *w)
{
    if (!mcp_check_cursor(c))
        return false;
    rt_jw_karray(w, "resourceTemplates");
    rt_jw_object(w);
    rt_jw_kstr(w, "uriTemplate", RT_STR("retort://artifact/{handle}"));
    rt_jw_kstr(w, "name", RT_STR("artifact"));
    rt_jw_kstr(w, "description", RT_STR("A file or a large output of a run, by its handle"));
    rt_jw_end(w);
    if (c->mcp->config->has_mcp_fixture)
        mcp_fixture_templates(w);
    rt_jw_end(w);
    return true;
}

static bool not_found(mcp_call *c, rt_str uri)
{
    rt_buf data RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &data);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "uri", uri);
    rt_jw_end(&w);
    return mcp_fail(c, mcp_is_modern(c) ? RT_MCP_INVALID_PARAMS : RT_MCP_RESOURCE_NOT_FOUND,
                    rt_arena_str(&c->arena, rt_buf_str(&data)), "Resource not found: %.*s",
                    (int)RT_MIN(uri.len, (size_t)200), uri.ptr);
}

static void write_content(rt_str uri, const rt_artifact_row *row, rt_str bytes, rt_json_writer *w)
{
    rt_buf encoded RT_CLEANUP(rt_buf_done) = { 0 };
    rt_jw_object(w);
    rt_jw_kstr(w, "uri", uri);
    rt_jw_kstr(w, "mimeType", row->type);
    if (rt_utf8_valid(bytes)) {
        rt_jw_kstr(w, "text", bytes);
    } else {
        mcp_base64(&encoded, bytes);
        rt_jw_kstr(w, "blob", rt_buf_str(&encoded));
    }
    rt_jw_end(w);
}

static bool read_artifact(mcp_call *c, rt_str uri, rt_json_writer *w)
{
    rt_shelf *shelf = c->mcp->config->shelf;
    rt_str handle = rt_str_slice(uri, prefix.len, uri.len), bytes;
    rt_artifact_row row;
    rt_error err = { 0 };
    if (!rt_artifact_find(shelf, c->caller.organisation_id, handle, &c->arena, &row, &err))
        return err.code == RT_NOT_FOUND ? not_found(c, uri) : mcp_fail_error(c, &err);
    if (row.size > READ_MAX)
        return mcp_fail(c, RT_MCP_INVALID_PARAMS, (rt_str){ 0 },
                        "the resource has %llu bytes; pml_read_artifact reads parts of it",
                        (unsigned long long)row.size);
    if (!rt_artifact_read(shelf, &row, 0, (size_t)row.size, &c->arena, &bytes, &err))
        return mcp_fail_error(c, &err);
    rt_jw_karray(w, "contents");
    write_content(uri, &row, bytes, w);
    rt_jw_end(w);
    return true;
}

bool mcp_resources_read(mcp_call *c, rt_json_writer *w)
{
    rt_str uri = rt_json_str(rt_json_get_c(c->params, "uri"));
    if (uri.len == 0)
        return mcp_fail(c, RT_MCP_INVALID_PARAMS, (rt_str){ 0 }, "Invalid params: uri is missing");
    if (rt_str_starts(uri, prefix))
        return read_artifact(c, uri, w);
    if (c->mcp->config->has_mcp_fixture && mcp_fixture_read(uri, &c->arena, w))
        return true;
    return not_found(c, uri);
}
