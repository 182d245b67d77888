/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openapi.c - /openapi.json, made from the rows of operations.h and the schemas of schemas.json.
 *
 * Statuses that every operation can give are added here and stand once under components/responses;
 * a row says only what is particular to it.
 */
#include "server/operations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The file is part of the program; the Makefile knows that this object depends on it. */
__asm__(".section .rodata\n"
        ".balign 16\n"
        "server_schemas:\n"
        ".incbin \"src/server/schemas.json\"\n"
        "server_schemas_end:\n"
        ".byte 0\n"
        ".previous\n");
extern const char server_schemas[], server_schemas_end[];

/* Which operations can give a status. */
typedef enum scope { IF_NAMED, ALWAYS, WITH_KEYS, WITH_BODY, WITH_JSON } scope;

static const struct {
    unsigned status;
    const char *name, *about;
    scope when;
} errors[] = {
    { 400, "BadRequest", "The request makes no sense; the message says what would", ALWAYS },
    { 401, "Unauthorized", "A key is needed, or this one does not work", WITH_KEYS },
    { 403, "Forbidden", "The caller, or the page it comes from, may not do this", ALWAYS },
    { 404, "NotFound", "There is no such thing here", IF_NAMED },
    { 409, "Conflict", "Not possible in this state", IF_NAMED },
    { 413, "TooLarge", "More than is taken", WITH_BODY },
    { 414, "TargetTooLong", "The address is longer than is taken; send data in a body", ALWAYS },
    { 415, "UnsupportedMediaType", "The body must be JSON", WITH_JSON },
    { 416, "RangeNotSatisfiable", "The range begins past the end", IF_NAMED },
    { 422, "Unsupported", "It makes sense, and this server does not do it", IF_NAMED },
    { 429, "TooManyRequests", "Wait as long as Retry-After says", ALWAYS },
    { 499, "Cancelled", "Somebody ended the run before it began", IF_NAMED },
    { 500, "InternalError", "Our mistake; the server's log has it under the request's id", ALWAYS },
    { 503, "Unavailable", "Not now; Retry-After says when", ALWAYS },
    { 504, "TimedOut", "It took too long", IF_NAMED },
};

static void write_ref(rt_json_writer *w, const char *kind, const char *prefix, const char *name)
{
    char ref[128];
    snprintf(ref, sizeof(ref), "#/components/%s/%s%s", kind, prefix, name);
    rt_jw_object(w);
    rt_jw_kstr(w, "$ref", rt_str_of(ref));
    rt_jw_end(w);
}

static void write_kstr(rt_json_writer *w, const char *key, const char *text)
{
    if (text)
        rt_jw_kstr(w, key, rt_str_of(text));
}

/* ---- parameters ---- */

static void write_choices(rt_json_writer *w, const char *choices)
{
    rt_str rest = rt_str_of(choices), word;
    rt_jw_karray(w, "enum");
    while (rt_str_cut(&rest, ' ', &word))
        rt_jw_str(w, word);
    rt_jw_end(w);
}

static void write_default(rt_json_writer *w, const http_parameter *p)
{
    if (!p->fallback)
        return;
    if (p->type == HTTP_TYPE_TEXT || p->type == HTTP_TYPE_TIME)
        rt_jw_kstr(w, "default", rt_str_of(p->fallback));
    else
        rt_jw_kraw(w, "default", rt_str_of(p->fallback));
}

#define TIME_SCHEMA                                                                                \
    "{\"oneOf\":[{\"type\":\"string\",\"format\":\"date-time\"},{\"type\":\"string\","             \
    "\"format\":\"date\"},{\"type\":\"integer\",\"minimum\":0}]}"

static void write_parameter_schema(rt_json_writer *w, const http_parameter *p)
{
    if (p->type == HTTP_TYPE_TIME) {
        rt_jw_kraw(w, "schema", RT_STR(TIME_SCHEMA));
        return;
    }
    static const char *const types[] = { "string", "integer", "boolean", "string", "array" };
    rt_jw_kobject(w, "schema");
    rt_jw_kstr(w, "type", rt_str_of(types[p->type]));
    if (p->type == HTTP_TYPE_TEXTS)
        rt_jw_kraw(w, "items", RT_STR("{\"type\":\"string\"}"));
    if (p->choices)
        write_choices(w, p->choices);
    if (p->type == HTTP_TYPE_INTEGER)
        rt_jw_ki64(w, "minimum", p->min);
    if (p->type == HTTP_TYPE_INTEGER && p->max)
        rt_jw_ki64(w, "maximum", p->max);
    if (p->type == HTTP_TYPE_TEXT && p->max) {
        rt_jw_ki64(w, "minLength", p->min);
        rt_jw_ki64(w, "maxLength", p->max);
    }
    write_default(w, p);
    rt_jw_end(w);
}

static void write_parameter(rt_json_writer *w, const http_parameter *p)
{
    static const char *const places[] = { "query", "header", "path" };
    rt_jw_object(w);
    rt_jw_kstr(w, "name", rt_str_of(p->name));
    rt_jw_kstr(w, "in", rt_str_of(places[p->in]));
    rt_jw_kbool(w, "required", p->in == HTTP_IN_PATH);
    write_kstr(w, "description", p->about);
    write_parameter_schema(w, p);
    rt_jw_end(w);
}

static bool is_declared(const http_operation *op, rt_str name)
{
    for (const http_parameter *p = op->parameters; p && p->name; p++)
        if (p->in == HTTP_IN_PATH && rt_str_eq_c(name, p->name))
            return true;
    return false;
}

/* The names in braces; those no row of parameters describes are ids. */
static void write_path_parameters(rt_json_writer *w, const http_operation *op)
{
    rt_str rest = rt_str_of(op->path), piece;
    while (rt_str_cut(&rest, '/', &piece)) {
        if (piece.len == 0 || piece.ptr[0] != '{')
            continue;
        bool is_rest = piece.ptr[piece.len - 2] == '*';
        rt_str name = rt_str_slice(piece, 1, piece.len - (is_rest ? 2 : 1));
        char text[HTTP_NAME_MAX];
        snprintf(text, sizeof(text), "%.*s", RT_FMT(name));
        if (!is_declared(op, name))
            write_parameter(w,
                            &(http_parameter){ .name = text,
                                               .in = HTTP_IN_PATH,
                                               .min = 1,
                                               .max = is_rest ? HTTP_REST_MAX : HTTP_SEGMENT_MAX });
    }
}

static void write_parameters(rt_json_writer *w, const http_operation *op)
{
    rt_jw_karray(w, "parameters");
    write_path_parameters(w, op);
    for (const http_parameter *p = op->parameters; p && p->name; p++)
        write_parameter(w, p);
    rt_jw_end(w);
}

/* ---- bodies ---- */

/* One member of "content": a type, and what it holds. */
static void write_media(rt_json_writer *w, const char *schema)
{
    bool is_other = schema[0] == '@';
    rt_jw_kobject(w, is_other ? schema + 1 : "application/json");
    rt_jw_key(w, RT_STR("schema"));
    if (!is_other) {
        write_ref(w, "schemas", "", schema);
    } else {
        rt_jw_object(w);
        if (strcmp(schema, HTTP_HTML) == 0 || strcmp(schema, HTTP_TEXT) == 0)
            rt_jw_kstr(w, "type", RT_STR("string"));
        rt_jw_end(w);
    }
    rt_jw_end(w);
}

static void write_request(rt_json_writer *w, const http_operation *op)
{
    if (!op->request)
        return;
    rt_jw_kobject(w, "requestBody");
    rt_jw_kbool(w, "required", !(op->flags & (HTTP_OPTIONAL_BODY | HTTP_RAW_BODY)));
    rt_jw_kobject(w, "content");
    write_media(w, op->flags & HTTP_RAW_BODY ? "@application/octet-stream" : op->request);
    rt_jw_end(w);
    rt_jw_end(w);
}

static void status_key(rt_json_writer *w, unsigned status)
{
    char key[8];
    snprintf(key, sizeof(key), "%u", status);
    rt_jw_key(w, rt_str_of(key));
}

/* Rows of one status become one response with several types. */
static void write_responses_own(rt_json_writer *w, const http_operation *op)
{
    for (const http_response *r = op->responses; r && r->status; r++) {
        if (r > op->responses && r[-1].status == r->status)
            continue;
        status_key(w, r->status);
        rt_jw_object(w);
        rt_jw_kstr(w, "description", rt_str_of(r->about));
        if (r->schema) {
            rt_jw_kobject(w, "content");
            for (const http_response *same = r; same->status == r->status; same++)
                write_media(w, same->schema);
            rt_jw_end(w);
        }
        rt_jw_end(w);
    }
}

static bool is_named(const http_operation *op, unsigned status)
{
    rt_str rest = rt_str_of(op->errors), word;
    uint64_t number;
    while (rt_str_cut(&rest, ' ', &word))
        if (rt_str_to_u64(word, &number) && number == status)
            return true;
    return false;
}

static bool has_own(const http_operation *op, unsigned status)
{
    for (const http_response *r = op->responses; r && r->status; r++)
        if (r->status == status)
            return true;
    return false;
}

static bool is_possible(const http_operation *op, size_t i, bool is_auth_required)
{
    switch (errors[i].when) {
    case ALWAYS:
        return true;
    case WITH_KEYS:
        return is_auth_required && op->role > RT_ROLE_NONE;
    case WITH_BODY:
        return op->request || is_named(op, errors[i].status);
    case WITH_JSON:
        return op->request && !(op->flags & HTTP_RAW_BODY);
    default:
        return is_named(op, errors[i].status);
    }
}

static void write_responses(rt_json_writer *w, const http_operation *op, bool is_auth_required)
{
    rt_jw_kobject(w, "responses");
    write_responses_own(w, op);
    for (size_t i = 0; i < RT_COUNT(errors); i++) {
        if (has_own(op, errors[i].status) || !is_possible(op, i, is_auth_required))
            continue;
        status_key(w, errors[i].status);
        const char *prefix = op->flags & HTTP_AGENT_ERRORS        ? "Agent"
                             : op->flags & HTTP_SKILL_ERRORS      ? "Skill"
                             : op->flags & HTTP_CODE_AGENT_ERRORS ? "CodeAgent"
                                                                  : "";
        write_ref(w, "responses", prefix, errors[i].name);
    }
    rt_jw_end(w);
}

/* ---- operations and paths ---- */

static void write_operation(rt_json_writer *w, const http_operation *op, bool is_auth_required)
{
    char method[8];
    size_t i = 0;
    for (; op->method[i] && i < sizeof(method) - 1; i++)
        method[i] = (char)(op->method[i] | 0x20);
    method[i] = '\0';
    rt_jw_kobject(w, method);
    rt_jw_kstr(w, "operationId", rt_str_of(op->id));
    rt_jw_karray(w, "tags");
    rt_jw_str(w, rt_str_of(op->tag));
    rt_jw_end(w);
    rt_jw_kstr(w, "summary", rt_str_of(op->summary));
    write_kstr(w, "description", op->about);
    write_parameters(w, op);
    write_request(w, op);
    write_responses(w, op, is_auth_required);
    if (is_auth_required && op->role > RT_ROLE_NONE) {
        rt_jw_kraw(w, "security", RT_STR("[{\"bearer\":[]},{\"apiKey\":[]}]"));
        rt_jw_kstr(w, "x-role", rt_str_of(rt_role_name(op->role)));
    }
    rt_jw_end(w);
}

/* "{path*}" is our own way to write it. */
static void path_key(rt_json_writer *w, const char *path)
{
    char text[160];
    size_t len = 0;
    for (; *path && len < sizeof(text) - 1; path++)
        if (*path != '*')
            text[len++] = *path;
    rt_jw_key(w, (rt_str){ text, len });
}

static bool is_first_of_path(size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(operations_at(i)->path, operations_at(at)->path) == 0)
            return false;
    return true;
}

static void write_paths(rt_json_writer *w, bool is_auth_required)
{
    const http_operation *op, *same;
    rt_jw_kobject(w, "paths");
    for (size_t i = 0; (op = operations_at(i)); i++) {
        if (!is_first_of_path(i))
            continue;
        path_key(w, op->path);
        rt_jw_object(w);
        for (size_t j = i; (same = operations_at(j)); j++)
            if (strcmp(same->path, op->path) == 0)
                write_operation(w, same, is_auth_required);
        rt_jw_end(w);
    }
    rt_jw_end(w);
}

/* ---- components ---- */

static void write_shared_responses(rt_json_writer *w, const char *prefix, const char *schema)
{
    char name[64];
    for (size_t i = 0; i < RT_COUNT(errors); i++) {
        snprintf(name, sizeof(name), "%s%s", prefix, errors[i].name);
        rt_jw_kobject(w, name);
        rt_jw_kstr(w, "description", rt_str_of(errors[i].about));
        rt_jw_kobject(w, "content");
        write_media(w, schema);
        rt_jw_end(w);
        rt_jw_end(w);
    }
}

static void write_components(rt_json_writer *w, bool is_auth_required)
{
    rt_jw_kobject(w, "components");
    rt_jw_kraw(
        w, "schemas",
        rt_str_trim((rt_str){ server_schemas, (size_t)(server_schemas_end - server_schemas) }));
    rt_jw_kobject(w, "responses");
    write_shared_responses(w, "", "Error");
    write_shared_responses(w, "Agent", "AgentError");
    write_shared_responses(w, "Skill", "SkillError");
    write_shared_responses(w, "CodeAgent", "CodeAgentError");
    rt_jw_end(w);
    if (is_auth_required)
        rt_jw_kraw(w, "securitySchemes",
                   RT_STR("{\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\"},\"apiKey\":{"
                          "\"type\":\"apiKey\",\"in\":\"header\",\"name\":\"X-API-Key\"}}"));
    rt_jw_end(w);
}

void openapi_write(rt_str server_url, rt_str version, bool is_auth_required, rt_buf *out)
{
    rt_json_writer w;
    rt_json_begin(&w, out);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "openapi", RT_STR("3.1.0"));
    rt_jw_kobject(&w, "info");
    rt_jw_kstr(&w, "title", RT_STR("Retort"));
    rt_jw_kstr(&w, "version", version);
    rt_jw_kstr(&w, "description", RT_STR("Runs AI agents' code in sealed cells beside the data."));
    rt_jw_kraw(&w, "license", RT_STR("{\"name\":\"Apache-2.0\",\"identifier\":\"Apache-2.0\"}"));
    rt_jw_end(&w);
    rt_jw_karray(&w, "servers");
    rt_jw_object(&w);
    rt_jw_kstr(&w, "url", server_url.len > 0 ? server_url : RT_STR("/"));
    rt_jw_end(&w);
    rt_jw_end(&w);
    write_paths(&w, is_auth_required);
    write_components(&w, is_auth_required);
    rt_jw_end(&w);
}

void rt_server_openapi(rt_str server_url, bool is_auth_required, rt_buf *out)
{
    openapi_write(server_url, rt_str_of(RETORT_VERSION), is_auth_required, out);
}
