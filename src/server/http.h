/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http.h - a request as a handler sees it, and the reply it makes.
 *
 *     bool api_languages(http_request *r, http_reply *reply, rt_error *err)
 *     {
 *         rt_json_writer w;
 *         http_reply_json(reply, 200, &w);
 *         rt_jw_object(&w);
 *         …
 *         return true;
 *     }
 *
 * When a handler is called, the way in is behind it: the caller is known and may do this, the
 * declared parameters are of their types, the body is whole. It may block. False makes an error
 * reply out of err: its code gives the status, unless the handler set reply->status.
 */
#ifndef RT_SERVER_HTTP_H
#define RT_SERVER_HTTP_H

#include <sys/types.h>

#include "server/server.h"

#define HTTP_TARGET_MAX      8192 /* bytes of path and query as sent */
#define HTTP_QUERY_MAX       64   /* parameters */
#define HTTP_SEGMENTS_MAX    64   /* of a path */
#define HTTP_PATH_PARAMS_MAX 4
#define HTTP_HEADERS_MAX     16 /* of a reply, beside the common ones */
#define HTTP_ID_SIZE         65 /* of a request id and its terminator */

struct MHD_Connection;
struct http_operation;

typedef struct http_pair {
    rt_str name, value;
} http_pair;

typedef struct http_request {
    rt_arena arena;
    rt_server *server;
    const struct http_operation *operation; /* NULL: there is none for this path */
    rt_str method;                          /* "GET"; HEAD is GET to a handler */
    rt_str path;                            /* decoded */
    http_pair path_params[HTTP_PATH_PARAMS_MAX];
    size_t path_param_count;
    const http_pair *query;
    size_t query_count;
    rt_str body;
    rt_caller caller;
    rt_trace trace; /* of this request's span */
    char id[HTTP_ID_SIZE];
    struct MHD_Connection *connection;
} http_request;

/* A body that is made while it is sent. */
typedef struct http_stream {
    /* Up to `max` bytes, at least one; 0: the end; negative: broken. May wait. */
    ssize_t (*read)(void *ctx, char *out, size_t max);
    void (*close)(void *ctx); /* once, whether it was read to its end or not */
    void *ctx;
    uint64_t size; /* only when has_size; else it is sent in chunks */
    bool has_size;
} http_stream;

typedef struct http_reply {
    unsigned status;          /* 0: 200, or what the error's code says */
    const char *content_type; /* NULL: JSON */
    rt_buf body;
    rt_str text;        /* instead of body; lives in the request's arena or for ever */
    http_stream stream; /* instead of both, when it has a read() */
    int fd; /* instead of all, when has_fd: fd_size bytes from its start; the reply closes it */
    uint64_t fd_size;
    bool has_fd;
    http_pair headers[HTTP_HEADERS_MAX];
    size_t header_count;
    unsigned retry_after_s; /* 0: none */
} http_reply;

typedef bool http_handler(http_request *r, http_reply *reply, rt_error *err);

/* -- What came --------------------------------------------------------------------------------- */

/* {NULL, 0} when there is none. */
rt_str http_header(const http_request *r, const char *name);
rt_str http_param(const http_request *r, const char *name); /* of the path */
rt_str http_query(const http_request *r, const char *name);

/* Of parameters the operation declares as integer and boolean; they have been checked. */
uint64_t http_query_u64(const http_request *r, const char *name, uint64_t fallback);
bool http_query_bool(const http_request *r, const char *name, bool fallback);

/* Does the client ask for this type by name ("text/event-stream")? */
bool http_accepts(const http_request *r, const char *type);

/* The body as JSON. */
bool http_json(http_request *r, rt_json *out, rt_error *err);

/* What an object may have; `kinds` is a set of (1 << RT_JSON_…). */
typedef struct http_member {
    const char *name;
    unsigned kinds;
    bool is_required;
} http_member;

#define HTTP_KIND(kind) (1u << (kind))
#define HTTP_STRING     HTTP_KIND(RT_JSON_STRING)
#define HTTP_NUMBER     HTTP_KIND(RT_JSON_NUMBER)
#define HTTP_BOOL       HTTP_KIND(RT_JSON_BOOL)
#define HTTP_OBJECT     HTTP_KIND(RT_JSON_OBJECT)
#define HTTP_ARRAY      HTTP_KIND(RT_JSON_ARRAY)
#define HTTP_NULL       HTTP_KIND(RT_JSON_NULL)

/* The body as an object of these members. RT_INVALID names the one that is unknown, missing or of a
 * wrong type, and what there could be. */
bool http_object(http_request *r, const http_member *members, size_t count, rt_json *out,
                 rt_error *err);
bool http_members_check(rt_json object, const http_member *members, size_t count, rt_error *err);

/* A member that is a whole number from min to max; *out stays when there is none. */
bool http_member_u64(rt_json object, const char *name, uint64_t min, uint64_t max, uint64_t *out,
                     rt_error *err);
/* A name people choose: at most HTTP_LABEL_MAX characters, none of them a control character. */
#define HTTP_LABEL_MAX 200
bool http_member_label(rt_json object, const char *name, rt_str *out, rt_error *err);
/* A duration: a number of seconds, or "15m". */
bool http_member_ms(rt_json object, const char *name, uint64_t *out, rt_error *err);

/* -- What goes --------------------------------------------------------------------------------- */

/* Begins a JSON body; the caller writes one value. */
void http_reply_json(http_reply *reply, unsigned status, rt_json_writer *w);
void http_reply_text(http_reply *reply, unsigned status, const char *content_type, rt_str text);
/* A value that holds a control character is not sent. */
void http_reply_header(http_reply *reply, const char *name, rt_str value);
/* "Content-Disposition: attachment" with this name, by RFC 6266. */
void http_reply_attachment(http_request *r, http_reply *reply, rt_str file_name);
void http_reply_done(http_reply *reply);

/* The status is one that no rt_code has. Returns false. */
bool http_fail(http_reply *reply, unsigned status, rt_error *err, const char *fmt, ...)
    RT_PRINTF(4, 5);

/* The organisation whose rows this caller sees; empty (all) for the operator. */
rt_str http_scope(const http_request *r);

/* Optional members. */
void http_jw_text(rt_json_writer *w, const char *key, rt_str text);      /* "" is null */
void http_jw_time(rt_json_writer *w, const char *key, uint64_t wall_ms); /* ISO 8601; 0 is null */
void http_jw_raw(rt_json_writer *w, const char *key, rt_str json, rt_str fallback);

#endif
