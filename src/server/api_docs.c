/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_docs.c - the API reference for people: Swagger UI from this machine, showing /openapi.json.
 *
 * The files are named one by one; a request can name no other. The page may load nothing but them,
 * and may call this server only.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "server/server_internal.h"

static const struct {
    const char *name, *type;
} files[] = {
    { "swagger-ui.css", "text/css; charset=utf-8" },
    { "swagger-ui-bundle.js", "text/javascript; charset=utf-8" },
    { "start.js", "text/javascript; charset=utf-8" },
};

static const char page[] =
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Retort API</title>"
    "<meta name=\"viewport\" content=\"width=device-width\">"
    "<link rel=\"icon\" href=\"data:,\">"
    "<link rel=\"stylesheet\" href=\"/docs/swagger-ui.css\">"
    "<div id=\"reference\"></div>"
    "<script src=\"/docs/swagger-ui-bundle.js\"></script>"
    "<script src=\"/docs/start.js\"></script></html>\n";

#define PAGE_POLICY                                                                                \
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "                    \
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "              \
    "frame-ancestors 'none'"

static bool show_page(http_request *r, http_reply *reply, rt_error *err)
{
    (void)r;
    (void)err;
    http_reply_text(reply, 200, "text/html; charset=utf-8", rt_str_of(page));
    http_reply_header(reply, "Content-Security-Policy", RT_STR(PAGE_POLICY));
    http_reply_header(reply, "Referrer-Policy", RT_STR("no-referrer"));
    return true;
}

static bool open_file(const rt_server *server, const char *name, http_reply *reply, rt_error *err)
{
    char path[4096];
    struct stat about;
    snprintf(path, sizeof(path), "%s/%s", server->config.docs_dir, name);
    int fd RT_CLEANUP(rt_closep) = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return rt_fail(err, RT_NOT_FOUND, "the API reference is not installed beside the program");
    if (fd < 0 || fstat(fd, &about) != 0)
        return rt_fail_errno(err, "the API reference");
    reply->has_fd = true;
    reply->fd = RT_TAKE_FD(fd);
    reply->fd_size = (uint64_t)about.st_size;
    return true;
}

static bool show_file(http_request *r, http_reply *reply, rt_error *err)
{
    rt_str name = http_param(r, "file");
    for (size_t i = 0; i < RT_COUNT(files); i++) {
        if (!rt_str_eq_c(name, files[i].name))
            continue;
        if (!open_file(r->server, files[i].name, reply, err))
            return false;
        reply->content_type = files[i].type;
        http_reply_header(reply, "Cache-Control", RT_STR("public, max-age=3600"));
        return true;
    }
    return rt_fail(err, RT_NOT_FOUND, "the API reference has no such file");
}

const http_operation api_docs_rows[] = {
    { .method = "GET",
      .path = "/docs",
      .id = "docs",
      .tag = "Server",
      .summary = "This document as a page",
      .responses = HTTP_RESPONSES({ 200, HTTP_HTML, "The page" }),
      .flags = HTTP_PAGE,
      .handler = show_page },
    { .method = "GET",
      .path = "/docs/{file}",
      .id = "docsFile",
      .tag = "Server",
      .summary = "What the page loads",
      .responses = HTTP_RESPONSES({ 200, HTTP_BYTES, "A script or style sheet" }),
      .errors = "404",
      .flags = HTTP_PAGE,
      .handler = show_file },
    { 0 },
};
