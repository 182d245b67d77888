/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_artifacts.c - what runs left behind: described, paged, searched, downloaded, removed.
 *
 * The bytes are a stranger's. A browser that is shown them must not run them under our name, so
 * what could hold a script is sent as a download and, if opened all the same, in a sandbox.
 */
#include <stdlib.h>

#include "server/artifact_view.h"
#include "server/executions.h"
#include "server/server_internal.h"

#define TYPE_MAX 128

void artifacts_write(const rt_artifact_row *row, rt_json_writer *w)
{
    rt_jw_object(w);
    rt_jw_kstr(w, "id", row->id);
    rt_jw_kstr(w, "kind", row->kind);
    rt_jw_kstr(w, "name", row->name);
    rt_jw_kstr(w, "type", row->type);
    rt_jw_ku64(w, "size", row->size);
    rt_jw_kstr(w, "sha256", row->sha256);
    http_jw_text(w, "execution_id", row->execution_id);
    http_jw_text(w, "session_id", row->session_id);
    http_jw_text(w, "user_id", row->user_id);
    http_jw_text(w, "host", row->host);
    http_jw_time(w, "created_at", row->created_ms);
    http_jw_time(w, "expires_at", row->expires_ms);
    rt_jw_end(w);
}

static bool find(http_request *r, rt_artifact_row *row, rt_error *err)
{
    return rt_artifact_find(r->server->config.shelf, http_scope(r), http_param(r, "id"), &r->arena,
                            row, err);
}

static bool get(http_request *r, http_reply *reply, rt_error *err)
{
    rt_artifact_row row;
    rt_json_writer w;
    if (!find(r, &row, err))
        return false;
    http_reply_json(reply, 200, &w);
    artifacts_write(&row, &w);
    return true;
}

static bool remove_artifact(http_request *r, http_reply *reply, rt_error *err)
{
    if (!rt_artifact_remove(r->server->config.shelf, http_scope(r), http_param(r, "id"), err))
        return false;
    reply->status = 204;
    return true;
}

/* ---- bytes ---- */

typedef struct download {
    rt_shelf *shelf;
    rt_artifact_row row;
    rt_arena arena, piece; /* of the row's texts; of what is being sent */
    uint64_t at, end;
} download;

static ssize_t read_download(void *ctx, char *out, size_t max)
{
    download *d = ctx;
    rt_str text;
    size_t wanted = (size_t)RT_MIN((uint64_t)max, d->end - d->at);
    if (wanted == 0)
        return 0;
    rt_arena_reset(&d->piece);
    if (!rt_artifact_read(d->shelf, &d->row, d->at, wanted, &d->piece, &text, NULL) ||
        text.len == 0)
        return -1;
    memcpy(out, text.ptr, text.len);
    d->at += text.len;
    return (ssize_t)text.len;
}

static void close_download(void *ctx)
{
    download *d = ctx;
    rt_arena_done(&d->arena);
    rt_arena_done(&d->piece);
    free(d);
}

static void reply_bytes(http_request *r, http_reply *reply, const rt_artifact_row *row,
                        uint64_t from, uint64_t length)
{
    download *d = calloc(1, sizeof(*d));
    if (!d)
        rt_out_of_memory(sizeof(*d));
    d->shelf = r->server->config.shelf;
    d->row = *row;
    rt_str *texts[] = { &d->row.id,           &d->row.organisation_id,
                        &d->row.user_id,      &d->row.kind,
                        &d->row.execution_id, &d->row.session_id,
                        &d->row.name,         &d->row.type,
                        &d->row.sha256,       &d->row.host };
    for (size_t i = 0; i < RT_COUNT(texts); i++)
        *texts[i] = rt_arena_str(&d->arena, *texts[i]);
    d->at = from;
    d->end = from + length;
    reply->stream = (http_stream){
        .read = read_download, .close = close_download, .ctx = d, .size = length, .has_size = true
    };
}

/* Types a browser shows without running anything. */
static bool is_harmless(rt_str type)
{
    static const char *const shown[] = { "text/plain", "text/csv",        "text/markdown",
                                         "image/png",  "image/jpeg",      "image/gif",
                                         "image/webp", "application/json" };
    rt_str name = { 0 };
    rt_str_cut(&type, ';', &name);
    for (size_t i = 0; i < RT_COUNT(shown); i++)
        if (rt_str_eq_c(name, shown[i]))
            return true;
    return false;
}

static bool is_header_text(rt_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < ' ' || text.ptr[i] > '~')
            return false;
    return text.len > 0 && text.len < TYPE_MAX;
}

/* Text is UTF-8 unless its type says otherwise. */
static const char *shown_type(http_request *r, rt_str type)
{
    bool is_open = rt_str_starts(type, RT_STR("text/")) && !memchr(type.ptr, ';', type.len);
    return rt_arena_printf(&r->arena, "%.*s%s", RT_FMT(type), is_open ? "; charset=utf-8" : "").ptr;
}

static bool send_bytes(http_request *r, http_reply *reply, const rt_artifact_row *row,
                       rt_error *err)
{
    uint64_t from = RT_MIN(http_query_u64(r, "offset", 0), row->size);
    uint64_t length = RT_MIN(http_query_u64(r, "limit", row->size), row->size - from);
    rt_str range = http_header(r, "Range");
    reply->status = 200;
    if (range.len > 0 && !http_query(r, "offset").ptr && !http_query(r, "limit").ptr) {
        switch (target_range(range, row->size, &from, &length)) {
        case HTTP_RANGE_UNSATISFIABLE:
            http_reply_header(
                reply, "Content-Range",
                rt_arena_printf(&r->arena, "bytes */%llu", (unsigned long long)row->size));
            return http_fail(reply, 416, err, "the artifact has only %llu bytes",
                             (unsigned long long)row->size);
        case HTTP_RANGE_ONE:
            reply->status = 206;
            http_reply_header(reply, "Content-Range",
                              rt_arena_printf(&r->arena, "bytes %llu-%llu/%llu",
                                              (unsigned long long)from,
                                              (unsigned long long)(from + length - 1),
                                              (unsigned long long)row->size));
            break;
        case HTTP_RANGE_NONE:
            break;
        }
    }
    bool is_shown = is_harmless(row->type) && is_header_text(row->type);
    reply->content_type = is_shown ? shown_type(r, row->type) : "application/octet-stream";
    if (!is_shown || http_query_bool(r, "download", false))
        http_reply_attachment(r, reply, row->name);
    http_reply_header(reply, "Content-Security-Policy", RT_STR("sandbox; default-src 'none'"));
    http_reply_header(reply, "Accept-Ranges", RT_STR("bytes"));
    http_reply_header(reply, "ETag", rt_arena_printf(&r->arena, "\"%.*s\"", RT_FMT(row->sha256)));
    reply_bytes(r, reply, row, from, length);
    return true;
}

/* ---- content ---- */

static bool check_modes(const http_request *r, rt_error *err)
{
    size_t modes = (http_query(r, "line").ptr != NULL || http_query(r, "lines").ptr != NULL) +
                   (http_query(r, "json_path").ptr != NULL) + (http_query(r, "search").ptr != NULL);
    return modes <= 1 ||
           rt_fail(err, RT_INVALID, "give one of line and lines, json_path, or search");
}

static bool content(http_request *r, http_reply *reply, rt_error *err)
{
    rt_artifact_row row;
    rt_json_writer w;
    if (!check_modes(r, err) || !find(r, &row, err))
        return false;
    view v = { r->server->config.shelf, &row, &r->arena };
    http_reply_json(reply, 0, &w);
    if (http_query(r, "line").ptr || http_query(r, "lines").ptr)
        return view_lines(&v, http_query_u64(r, "line", 1), http_query_u64(r, "lines", 100), &w,
                          err);
    if (http_query(r, "search").ptr)
        return view_search(&v, http_query(r, "search"), http_query_bool(r, "ignore_case", false),
                           http_query_u64(r, "offset", 0), http_query_u64(r, "matches", 100), &w,
                           err);
    if (http_query(r, "json_path").ptr)
        return view_json(&v, http_query(r, "json_path"), &w, err);
    return send_bytes(r, reply, &row, err);
}

const http_operation api_artifact_rows[] = {
    { .method = "GET",
      .path = "/v1/artifacts/{id}",
      .id = "getArtifact",
      .tag = "Artifacts",
      .summary = "What an artifact is",
      .role = RT_ROLE_VIEWER,
      .action = "read artifacts",
      .responses = HTTP_RESPONSES({ 200, "Artifact", "Its name, size, type and hash" }),
      .errors = "404",
      .handler = get },
    { .method = "GET",
      .path = "/v1/artifacts/{id}/content",
      .id = "readArtifact",
      .tag = "Artifacts",
      .summary = "An artifact, or a part of it",
      .about = "Without a choice, its bytes: all, from offset on, or by a Range header. With line "
               "and lines a page of text, with search the places where a text stands, with "
               "json_path a branch of a JSON document.",
      .role = RT_ROLE_VIEWER,
      .action = "read artifacts",
      .parameters = HTTP_PARAMETERS(
          { "offset", HTTP_IN_QUERY, HTTP_TYPE_INTEGER, "the first byte, or where to search from",
            NULL, "0", 0, INT64_MAX },
          { "limit", HTTP_IN_QUERY, HTTP_TYPE_INTEGER, "how many bytes", NULL, NULL, 0, INT64_MAX },
          { "line", HTTP_IN_QUERY, HTTP_TYPE_INTEGER, "the first line, from 1", NULL, NULL, 1,
            INT32_MAX },
          { "lines", HTTP_IN_QUERY, HTTP_TYPE_INTEGER,
            "how many lines; 100 when only line is given", NULL, NULL, 1, VIEW_LINES_MAX },
          { "json_path", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "$.rows[0].name, $.rows[2:5], $['a key']",
            NULL, NULL, 1, 1000 },
          { "search", HTTP_IN_QUERY, HTTP_TYPE_TEXT, "a text to find, as it is", NULL, NULL, 1,
            200 },
          { "ignore_case", HTTP_IN_QUERY, HTTP_TYPE_BOOLEAN,
            "small letters find large ones (ASCII)", NULL, "false", 0, 0 },
          { "matches", HTTP_IN_QUERY, HTTP_TYPE_INTEGER, "how many places at most", NULL, "100", 1,
            VIEW_MATCHES_MAX },
          { "download", HTTP_IN_QUERY, HTTP_TYPE_BOOLEAN, "true: to be saved under its name", NULL,
            "false", 0, 0 }),
      .responses = HTTP_RESPONSES({ 200, HTTP_BYTES, "The bytes, or the part asked for as JSON" },
                                  { 206, HTTP_BYTES, "A range of bytes" }),
      .errors = "404 413 416",
      .handler = content },
    { .method = "DELETE",
      .path = "/v1/artifacts/{id}",
      .id = "removeArtifact",
      .tag = "Artifacts",
      .summary = "Remove an artifact",
      .role = RT_ROLE_MEMBER,
      .action = "remove artifacts",
      .responses = HTTP_RESPONSES({ 204, NULL, "It is gone" }),
      .errors = "404",
      .handler = remove_artifact },
    { 0 },
};
