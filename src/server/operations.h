/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operations.h - what this server can do: one row per operation.
 *
 * The rows lie beside their handlers in api_*.c, and operations.c joins them. Routing, checks of
 * parameters, roles, /openapi.json and lists for people all read the rows; nothing else knows a
 * path.
 */
#ifndef RT_SERVER_OPERATIONS_H
#define RT_SERVER_OPERATIONS_H

#include "server/http.h"
#include "server/target.h"

typedef enum http_parameter_in { HTTP_IN_QUERY, HTTP_IN_HEADER, HTTP_IN_PATH } http_parameter_in;

typedef enum http_parameter_type {
    HTTP_TYPE_TEXT,
    HTTP_TYPE_INTEGER,
    HTTP_TYPE_BOOLEAN,
    HTTP_TYPE_TIME,  /* ISO 8601, or milliseconds since 1970 */
    HTTP_TYPE_TEXTS, /* a text that may be given several times */
} http_parameter_type;

typedef struct http_parameter {
    const char *name; /* NULL ends a list */
    http_parameter_in in;
    http_parameter_type type;
    const char *about;
    const char *choices;  /* "daily monthly"; NULL: any text */
    const char *fallback; /* shown only; NULL: none */
    int64_t min, max;     /* of integers, or of a text's length in characters; max 0: no limit */
} http_parameter;

/* Instead of a schema's name, for bodies that are not JSON. */
#define HTTP_BYTES  "@*/*"
#define HTTP_EVENTS "@text/event-stream"
#define HTTP_HTML   "@text/html"
#define HTTP_TEXT   "@text/plain"
#define HTTP_ANY    "@application/json" /* JSON of any shape */

typedef struct http_response {
    unsigned status;    /* 0 ends a list */
    const char *schema; /* of components/schemas; NULL: no body */
    const char *about;
} http_response;

typedef enum http_flag {
    HTTP_RAW_BODY = 1,      /* the body is bytes, of any type; else JSON when there is `request` */
    HTTP_AGENT_ERRORS = 2,  /* {"success":false,"error":…,"message":…} */
    HTTP_PAGE = 4,          /* for people: a link on a foreign page may lead here */
    HTTP_OPTIONAL_BODY = 8, /* the body may be missing */
    HTTP_SKILL_ERRORS = 16, /* {"detail":…}, and 422 for what makes no sense */
    HTTP_TWICE = 32,        /* also under /api/v1, which older clients put before the path */
    HTTP_CODE_AGENT_ERRORS = 64, /* {"error":…}, {"error":"Forbidden","message":…} */
} http_flag;

typedef struct http_operation {
    const char *method, *path; /* "/v1/executions/{id}"; "{path*}" takes the rest, at the end */
    const char *id, *tag, *summary, *about;
    rt_role role;       /* RT_ROLE_NONE: for everybody */
    const char *action; /* "You do not have permission to <action>" */
    const http_parameter *parameters;
    const char *request; /* a schema's name, HTTP_BYTES, or NULL: no body */
    const http_response *responses;
    const char *errors; /* statuses beside those every operation may give: "404 409" */
    unsigned flags;
    http_handler *handler;
} http_operation;

#define HTTP_PARAMETERS(...) ((const http_parameter[]){ __VA_ARGS__, { .name = NULL } })
#define HTTP_RESPONSES(...)  ((const http_response[]){ __VA_ARGS__, { .status = 0 } })

extern const http_operation api_code_agent_rows[], api_code_agent_use_rows[],
    api_code_agent_report_rows[], api_budget_rows[];
extern const http_operation api_meta_rows[], api_docs_rows[], api_execution_rows[],
    api_record_rows[], api_session_rows[], api_file_rows[], api_artifact_rows[], api_agent_rows[],
    api_admin_rows[], api_people_rows[], api_report_rows[], api_mcp_rows[], api_tool_rows[],
    api_approval_rows[], api_pattern_rows[], api_toolkit_rows[], api_agent_pattern_rows[],
    api_agent_data_rows[], api_privacy_rows[], api_skill_rows[], api_memory_rows[];
/* Each list ends with a row without a method. */

#define HTTP_NAME_MAX    64   /* of a parameter, with its braces */
#define HTTP_SEGMENT_MAX 255  /* characters of a parameter in the path */
#define HTTP_REST_MAX    4096 /* of one that takes the rest of the path */

const http_operation *operations_at(size_t i); /* NULL past the last */

typedef struct http_route {
    const http_operation *operation; /* NULL: none */
    http_pair params[HTTP_PATH_PARAMS_MAX];
    size_t param_count;
    char allow[64]; /* the methods this path has, "GET, HEAD, POST"; "": no such path */
} http_route;

/* Literal segments win over parameters. */
void operations_route(rt_str method, const http_target *target, http_route *out);

/* Are the declared parameters of their types? */
bool operations_check(const http_request *r, rt_error *err);

/* Of one parameter, as it came. */
bool operations_parameter_check(const http_parameter *p, rt_str value, rt_error *err);

/* "2026-11-15T03:21:57Z", "2026-11-15", or milliseconds since 1970. */
bool operations_time(rt_str text, uint64_t *wall_ms);

/* /openapi.json: OpenAPI 3.1. */
void openapi_write(rt_str server_url, rt_str version, bool is_auth_required, rt_buf *out);

#endif
