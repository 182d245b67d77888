/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_files.c - the files of a session's scratch directory.
 *
 * A download is sent from the descriptor as it is read. It is never shown as a page: code wrote it,
 * and our own origin would vouch for it.
 */
#include "server/server_internal.h"

static bool list(http_request *r, http_reply *reply, rt_error *err)
{
    rt_session_hold hold RT_CLEANUP(rt_session_let_go) = { 0 };
    rt_live_file *files;
    size_t count;
    rt_json_writer w;
    if (!rt_session_take(r->server->config.engine, &r->caller, http_param(r, "id"), &hold, err) ||
        !rt_live_list(hold.live, http_query(r, "path"), &r->arena, &files, &count, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_karray(&w, "items");
    for (size_t i = 0; i < count; i++) {
        rt_jw_object(&w);
        rt_jw_kstr(&w, "path", files[i].path);
        rt_jw_kstr(&w, "type", files[i].is_directory ? RT_STR("directory") : RT_STR("file"));
        rt_jw_ku64(&w, "size", files[i].size);
        http_jw_time(&w, "modified_at", files[i].modified_ms);
        rt_jw_end(&w);
    }
    rt_jw_end(&w);
    rt_jw_end(&w);
    return true;
}

static bool read_file(http_request *r, http_reply *reply, rt_error *err)
{
    rt_session_hold hold RT_CLEANUP(rt_session_let_go) = { 0 };
    rt_str path = http_param(r, "path");
    int fd;
    uint64_t size;
    if (!rt_session_take(r->server->config.engine, &r->caller, http_param(r, "id"), &hold, err) ||
        !rt_live_read(hold.live, path, &fd, &size, err))
        return false;
    reply->status = 200;
    reply->content_type = "application/octet-stream";
    reply->has_fd = true;
    reply->fd = fd;
    reply->fd_size = size;
    http_reply_attachment(r, reply, path);
    http_reply_header(reply, "Content-Security-Policy", RT_STR("sandbox"));
    return true;
}

static bool write_file(http_request *r, http_reply *reply, rt_error *err)
{
    rt_session_hold hold RT_CLEANUP(rt_session_let_go) = { 0 };
    if (!rt_session_take(r->server->config.engine, &r->caller, http_param(r, "id"), &hold, err) ||
        !rt_live_write(hold.live, http_param(r, "path"), r->body, err))
        return false;
    reply->status = 204;
    return true;
}

static bool remove_file(http_request *r, http_reply *reply, rt_error *err)
{
    rt_session_hold hold RT_CLEANUP(rt_session_let_go) = { 0 };
    if (!rt_session_take(r->server->config.engine, &r->caller, http_param(r, "id"), &hold, err) ||
        !rt_live_remove(hold.live, http_param(r, "path"), err))
        return false;
    reply->status = 204;
    return true;
}

const http_operation api_file_rows[] = {
    { .method = "GET",
      .path = "/v1/sessions/{id}/files",
      .id = "listFiles",
      .tag = "Files",
      .summary = "List a session's files",
      .role = RT_ROLE_VIEWER,
      .action = "read files of sessions",
      .parameters = HTTP_PARAMETERS(
          { "path", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "a directory to begin at", NULL, NULL, 0, 255 }),
      .responses = HTTP_RESPONSES({ 200, "FileList", "In the order of their names" }),
      .errors = "404 409 413",
      .handler = list },
    { .method = "GET",
      .path = "/v1/sessions/{id}/files/{path*}",
      .id = "readFile",
      .tag = "Files",
      .summary = "Download a file",
      .role = RT_ROLE_VIEWER,
      .action = "read files of sessions",
      .responses = HTTP_RESPONSES({ 200, HTTP_BYTES, "Its bytes" }),
      .errors = "404 409",
      .handler = read_file },
    { .method = "PUT",
      .path = "/v1/sessions/{id}/files/{path*}",
      .id = "writeFile",
      .tag = "Files",
      .summary = "Upload a file",
      .about = "Directories on the way are made; a file that is there is replaced.",
      .role = RT_ROLE_MEMBER,
      .action = "write files of sessions",
      .request = HTTP_BYTES,
      .responses = HTTP_RESPONSES({ 204, NULL, "It is there" }),
      .errors = "404 409",
      .flags = HTTP_RAW_BODY,
      .handler = write_file },
    { .method = "DELETE",
      .path = "/v1/sessions/{id}/files/{path*}",
      .id = "removeFile",
      .tag = "Files",
      .summary = "Remove a file or directory",
      .role = RT_ROLE_MEMBER,
      .action = "remove files of sessions",
      .responses = HTTP_RESPONSES({ 204, NULL, "It is gone" }),
      .errors = "404 409",
      .handler = remove_file },
    { 0 },
};
