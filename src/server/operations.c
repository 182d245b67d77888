/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operations.c - the rows of all operations joined, finding one by method and path, and checking
 * its parameters.
 */
#include "server/operations.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const http_operation *const groups[] = {
    api_meta_rows,          api_docs_rows,           api_execution_rows,
    api_record_rows,        api_session_rows,        api_file_rows,
    api_artifact_rows,      api_tool_rows,           api_approval_rows,
    api_pattern_rows,       api_agent_rows,          api_toolkit_rows,
    api_agent_pattern_rows, api_agent_data_rows,     api_report_rows,
    api_admin_rows,         api_people_rows,         api_privacy_rows,
    api_mcp_rows,           api_skill_rows,          api_memory_rows,
    api_code_agent_rows,    api_code_agent_use_rows, api_code_agent_report_rows,
    api_budget_rows
};

const http_operation *operations_at(size_t i)
{
    for (size_t g = 0; g < RT_COUNT(groups); g++)
        for (const http_operation *row = groups[g]; row->method; row++)
            if (i-- == 0)
                return row;
    return NULL;
}

bool rt_server_operation_at(size_t i, rt_server_operation *out)
{
    const http_operation *row = operations_at(i);
    if (row)
        *out = (rt_server_operation){ row->method, row->path, row->id, row->summary, row->role };
    return row != NULL;
}

/* ---- routing ---- */

/* How well a path fits from segment i on: 0 not at all, more for each literal segment, and the
 * earlier the more. */
static uint64_t match(const char *pattern, const http_target *target, size_t i, http_route *out)
{
    rt_str rest = rt_str_of(pattern + 1), piece;
    uint64_t score = 1;
    out->param_count = 0;
    for (; rt_str_cut(&rest, '/', &piece); i++) {
        if (i == target->segment_count)
            return 0;
        if (piece.len == 0 || piece.ptr[0] != '{') {
            if (!rt_str_eq(piece, target->segments[i]))
                return 0;
            score = score << 1 | 1;
            continue;
        }
        bool is_rest = piece.ptr[piece.len - 2] == '*';
        rt_str value = is_rest ? target->rests[i] : target->segments[i];
        if (value.len == 0)
            return 0;
        out->params[out->param_count++] =
            (http_pair){ rt_str_slice(piece, 1, piece.len - (is_rest ? 2 : 1)), value };
        score = score << 1;
        if (is_rest)
            return score;
    }
    return i == target->segment_count ? score : 0;
}

/* The same operation at its second address. */
static uint64_t match_row(const http_operation *row, const http_target *target, http_route *out)
{
    uint64_t score = match(row->path, target, 0, out);
    if (score > 0 || !(row->flags & HTTP_TWICE) || target->segment_count < 3 ||
        !rt_str_eq_c(target->segments[0], "api") || !rt_str_eq_c(target->segments[1], "v1"))
        return score;
    return match(row->path, target, 2, out);
}

static void allow(char list[64], const char *method)
{
    size_t used = strlen(list);
    if (strstr(list, method))
        return;
    snprintf(list + used, 64 - used, "%s%s%s", used ? ", " : "", method,
             strcmp(method, "GET") == 0 ? ", HEAD" : "");
}

void operations_route(rt_str method, const http_target *target, http_route *out)
{
    uint64_t best = 0;
    const http_operation *row;
    *out = (http_route){ 0 };
    if (rt_str_eq_c(method, "HEAD"))
        method = RT_STR("GET");
    for (size_t g = 0; g < RT_COUNT(groups); g++) {
        for (row = groups[g]; row->method; row++) {
            http_route found;
            uint64_t score = match_row(row, target, &found);
            if (score == 0)
                continue;
            allow(out->allow, row->method);
            if (!rt_str_eq_c(method, row->method) || score <= best)
                continue;
            best = score;
            out->operation = row;
            out->param_count = found.param_count;
            memcpy(out->params, found.params, sizeof(found.params));
        }
    }
}

/* ---- parameters ---- */

static bool is_choice(const char *choices, rt_str value)
{
    rt_str rest = rt_str_of(choices), piece;
    while (rt_str_cut(&rest, ' ', &piece))
        if (rt_str_eq(piece, value))
            return true;
    return false;
}

/* N digits of *text, which moves on. */
static bool take_digits(rt_str *text, size_t n, int *out)
{
    uint64_t number;
    if (text->len < n || !rt_str_to_u64(rt_str_slice(*text, 0, n), &number))
        return false;
    *out = (int)number;
    *text = rt_str_slice(*text, n, text->len);
    return true;
}

static bool take_char(rt_str *text, char c)
{
    if (text->len == 0 || text->ptr[0] != c)
        return false;
    *text = rt_str_slice(*text, 1, text->len);
    return true;
}

static bool take_clock(rt_str *text, struct tm *tm)
{
    if (!take_digits(text, 2, &tm->tm_hour) || !take_char(text, ':') ||
        !take_digits(text, 2, &tm->tm_min))
        return false;
    if (take_char(text, ':') && !take_digits(text, 2, &tm->tm_sec))
        return false;
    return tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec <= 60;
}

/* ".123" */
static bool take_fraction(rt_str *text, uint64_t *ms)
{
    uint64_t scale = 100;
    size_t digits = 0;
    if (!take_char(text, '.'))
        return true;
    for (int digit; digits < 9 && take_digits(text, 1, &digit); digits++, scale /= 10)
        *ms += (uint64_t)digit * scale;
    return digits > 0;
}

/* "Z", "+02:00" */
static bool take_zone(rt_str *text, int64_t *minutes)
{
    int hour, minute;
    if (take_char(text, 'Z') || take_char(text, 'z'))
        return true;
    bool is_east = take_char(text, '+');
    if (!is_east && !take_char(text, '-'))
        return false;
    if (!take_digits(text, 2, &hour) || !take_char(text, ':') || !take_digits(text, 2, &minute))
        return false;
    *minutes = (is_east ? 1 : -1) * (hour * 60 + minute);
    return hour < 24 && minute < 60;
}

bool operations_time(rt_str text, uint64_t *wall_ms)
{
    struct tm tm = { 0 };
    uint64_t ms = 0;
    int64_t minutes = 0;
    if (rt_str_to_u64(text, wall_ms) && text.len != 4)
        return *wall_ms <= INT64_MAX;
    if (!take_digits(&text, 4, &tm.tm_year) || !take_char(&text, '-') ||
        !take_digits(&text, 2, &tm.tm_mon) || !take_char(&text, '-') ||
        !take_digits(&text, 2, &tm.tm_mday) || tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1)
        return false;
    int month = tm.tm_mon, day = tm.tm_mday;
    if ((take_char(&text, 'T') || take_char(&text, 't')) &&
        (!take_clock(&text, &tm) || !take_fraction(&text, &ms) || !take_zone(&text, &minutes)))
        return false;
    tm.tm_year -= 1900;
    tm.tm_mon = month - 1;
    bool is_leap = tm.tm_sec == 60; /* a second that timegm() would put into the next day */
    tm.tm_sec -= is_leap;
    time_t seconds = timegm(&tm) + is_leap; /* 30 February is put into March, which tells it */
    int64_t total = (int64_t)seconds - minutes * 60;
    if (text.len > 0 || tm.tm_mday != day)
        return false;
    *wall_ms = total < 0 ? 0 : (uint64_t)total * 1000 + ms; /* nothing here is older */
    return true;
}

static bool check_text(const http_parameter *p, rt_str value, rt_error *err)
{
    size_t length = rt_utf8_length(value);
    if (p->choices && !is_choice(p->choices, value))
        return rt_fail(err, RT_INVALID, "'%s' must be one of: %s", p->name, p->choices);
    if (p->max > 0 && (length < (uint64_t)p->min || length > (uint64_t)p->max))
        return rt_fail(err, RT_INVALID, "'%s' must have %lld to %lld characters", p->name,
                       (long long)p->min, (long long)p->max);
    return true;
}

bool operations_parameter_check(const http_parameter *p, rt_str value, rt_error *err)
{
    int64_t number;
    uint64_t ms;
    switch (p->type) {
    case HTTP_TYPE_TEXT:
    case HTTP_TYPE_TEXTS:
        return check_text(p, value, err);
    case HTTP_TYPE_INTEGER:
        if (rt_str_to_i64(value, &number) && number >= p->min && (!p->max || number <= p->max))
            return true;
        return p->max ? rt_fail(err, RT_INVALID, "'%s' must be a whole number from %lld to %lld",
                                p->name, (long long)p->min, (long long)p->max)
                      : rt_fail(err, RT_INVALID, "'%s' must be a whole number from %lld on",
                                p->name, (long long)p->min);
    case HTTP_TYPE_BOOLEAN:
        return rt_str_eq_c(value, "true") || rt_str_eq_c(value, "false") ||
               rt_fail(err, RT_INVALID, "'%s' must be true or false", p->name);
    case HTTP_TYPE_TIME:
        return operations_time(value, &ms) ||
               rt_fail(err, RT_INVALID,
                       "'%s' must be a time such as 2026-11-15T03:21:57Z, or milliseconds since "
                       "1970",
                       p->name);
    }
    return true;
}

static bool is_repeated(const http_request *r, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < r->query_count; i++)
        count += rt_str_eq_c(r->query[i].name, name);
    return count > 1;
}

/* A parameter of the path that no row declares: one segment, or the rest of the path. */
static bool check_segment(const http_operation *op, const http_pair *given, rt_error *err)
{
    char braced[HTTP_NAME_MAX];
    snprintf(braced, sizeof(braced), "{%.*s}", RT_FMT(given->name));
    size_t most = strstr(op->path, braced) ? HTTP_SEGMENT_MAX : HTTP_REST_MAX;
    if (rt_utf8_length(given->value) > most)
        return rt_fail(err, RT_INVALID, "'%.*s' in the path has more than %zu characters",
                       RT_FMT(given->name), most);
    return true;
}

bool operations_check(const http_request *r, rt_error *err)
{
    for (const http_parameter *p = r->operation->parameters; p && p->name; p++) {
        rt_str value = p->in == HTTP_IN_HEADER ? http_header(r, p->name)
                       : p->in == HTTP_IN_PATH ? http_param(r, p->name)
                                               : http_query(r, p->name);
        if (p->in == HTTP_IN_QUERY && p->type != HTTP_TYPE_TEXTS && is_repeated(r, p->name))
            return rt_fail(err, RT_INVALID, "'%s' is given more than once", p->name);
        if (value.ptr && !operations_parameter_check(p, value, err))
            return false;
    }
    for (size_t i = 0; i < r->path_param_count; i++)
        if (!check_segment(r->operation, &r->path_params[i], err))
            return false;
    return true;
}
