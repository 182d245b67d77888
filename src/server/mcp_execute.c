/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_execute.c - running code for a model: pml_execute_code and its plain sister.
 *
 * The engine runs it as it runs everything; here its request is made of the tool's arguments and
 * its answer is cut down to what a model needs. What the code prints is told line by line while it
 * runs, to clients that want to hear it. Output past the engine's budget comes as a link to a
 * resource.
 */
#include <stdio.h>
#include <string.h>

#include "server/mcp.h"

#define LINES_TOLD_MAX 1000 /* of one run; the whole output is in the answer anyway */
#define LINE_MAX_BYTES 4096
#define HEAD_BYTES     500 /* shown of an output that is a link */
#define PATHS_MAX      32

/* ---- what is told while it runs ---- */

typedef struct narrator {
    mcp_call *call;
    double steps; /* of progress: each is one more */
    size_t lines;
    struct {
        char text[LINE_MAX_BYTES];
        size_t len;
    } pending[2]; /* lines that have not ended, of stdout and stderr */
} narrator;

static void tell_line(narrator *n, bool is_err)
{
    rt_str line = { n->pending[is_err].text, n->pending[is_err].len };
    n->pending[is_err].len = 0;
    if (n->lines++ >= LINES_TOLD_MAX)
        return;
    mcp_log(n->call, is_err ? MCP_WARNING : MCP_INFO, is_err ? "stderr" : "stdout", line);
    mcp_progress(n->call, ++n->steps, 0, line);
}

static void tell_output(narrator *n, bool is_err, rt_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] != '\n')
            n->pending[is_err].text[n->pending[is_err].len++] = text.ptr[i];
        if (text.ptr[i] == '\n' || n->pending[is_err].len == LINE_MAX_BYTES)
            tell_line(n, is_err);
    }
}

static bool on_event(void *ctx, const char *event, rt_str json)
{
    narrator *n = ctx;
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json said;
    bool is_err = strcmp(event, "stderr") == 0;
    if (is_err || strcmp(event, "stdout") == 0) {
        if (rt_json_parse(json, &arena, &said, NULL))
            tell_output(n, is_err, rt_json_str(rt_json_get_c(said, "text")));
    } else {
        mcp_progress(n->call, ++n->steps, 0, rt_str_of(event));
    }
    return !atomic_load(&n->call->is_cancelled);
}

static bool run(mcp_call *c, rt_request *request, rt_answer *answer, rt_error *err)
{
    narrator n = { .call = c };
    bool is_told = c->level < MCP_QUIET || c->progress_token.len > 0;
    request->caller = c->caller;
    request->surface = RT_STR("mcp");
    request->trace = c->trace;
    request->canceller = &c->canceller;
    request->on_event = is_told ? on_event : NULL;
    request->event_ctx = &n;
    bool ok = rt_engine_execute(c->mcp->config->engine, request, &c->arena, answer, err);
    for (int stream = 0; is_told && stream < 2; stream++)
        if (n.pending[stream].len > 0)
            tell_line(&n, stream == 1);
    return ok;
}

/* ---- the request ---- */

static bool wrong(mcp_call *c, const char *name, const char *wanted, rt_json value)
{
    return mcp_fail(c, RT_MCP_INVALID_PARAMS, (rt_str){ 0 },
                    "Invalid params: %s must be %s, not %s", name, wanted,
                    rt_json_type_name(value));
}

static bool check_kind(mcp_call *c, rt_json arguments, const char *name, rt_json_kind kind,
                       const char *wanted)
{
    rt_json value = rt_json_get_c(arguments, name);
    return rt_json_is_absent(value) || rt_json_type(value) == kind || wrong(c, name, wanted, value);
}

static bool read_code(mcp_call *c, rt_json arguments, rt_request *request)
{
    rt_json code = rt_json_get_c(arguments, "code");
    if (rt_json_type(code) != RT_JSON_STRING || rt_json_str(code).len == 0)
        return mcp_fail(c, RT_MCP_INVALID_PARAMS, (rt_str){ 0 },
                        "Missing required parameter: code");
    request->code = rt_json_str(code);
    return request->code.len <= MCP_CODE_MAX ||
           mcp_fail(c, RT_MCP_INVALID_PARAMS, (rt_str){ 0 },
                    "Code size exceeds maximum: %zu bytes (max: %d)", request->code.len,
                    MCP_CODE_MAX);
}

static void give_input(mcp_call *c, rt_json value, rt_request *request)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    if (rt_json_is_absent(value))
        return;
    rt_buf_init(&text, MCP_MESSAGE_MAX);
    rt_json_print(value, &text);
    request->has_input = true;
    request->input_json = value;
    request->input = rt_arena_str(&c->arena, rt_buf_str(&text));
}

static bool write_amount(mcp_call *c, rt_json config, const char *name, const char *key,
                         const char *unit, rt_json_writer *w)
{
    rt_json value = rt_json_get_c(config, name);
    int64_t amount;
    if (rt_json_is_absent(value))
        return true;
    if (!rt_json_i64(value, &amount) || amount <= 0)
        return mcp_fail(c, RT_MCP_INVALID_PARAMS, (rt_str){ 0 },
                        "Invalid params: sandbox_config.%s must be a whole number above 0", name);
    rt_jw_kstr(w, key, rt_arena_printf(&c->arena, "%lld%s", (long long)amount, unit));
    return true;
}

static bool write_paths(mcp_call *c, rt_json config, rt_json_writer *w)
{
    rt_json paths = rt_json_get_c(config, "allowedReadPaths");
    if (rt_json_count(paths) == 0)
        return true;
    if (rt_json_type(paths) != RT_JSON_ARRAY || rt_json_count(paths) > PATHS_MAX)
        return wrong(c, "sandbox_config.allowedReadPaths", "a list of at most 32 paths", paths);
    rt_jw_kjson(w, "read", paths);
    return true;
}

/* sandbox_config in the words of a policy. */
static bool read_sandbox(mcp_call *c, rt_json config, rt_request *request)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    if (rt_json_is_absent(config))
        return true;
    if (rt_json_type(config) != RT_JSON_OBJECT)
        return wrong(c, "sandbox_config", "an object", config);
    if (!rt_json_bool(rt_json_get_c(config, "piiProtection"), true))
        request->privacy = (rt_privacy_wish){ .mode = RT_PRIVACY_OFF, .is_said = true };
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    if (!write_amount(c, config, "timeout", "timeout", "ms", &w) ||
        !write_amount(c, config, "memoryLimit", "memory", "M", &w) || !write_paths(c, config, &w))
        return false;
    rt_jw_end(&w);
    return rt_json_parse(rt_buf_str(&text), &c->arena, &request->policy, NULL);
}

/* code-mode starts no other programs, and a shell, or what is a program itself, does just that. */
static rt_str preset_for(rt_str language)
{
    const rt_language *found = rt_language_find(language);
    return found && found->is_program ? RT_STR("default") : RT_STR("code-mode");
}

static bool read_request(mcp_call *c, rt_json arguments, rt_request *request)
{
    request->privacy.mode = RT_PRIVACY_TOKENS; /* unless the call or the operator says otherwise */
    if (!read_code(c, arguments, request) ||
        !check_kind(c, arguments, "language", RT_JSON_STRING, "a string") ||
        !check_kind(c, arguments, "intent", RT_JSON_STRING, "a string") ||
        !check_kind(c, arguments, "session_id", RT_JSON_STRING, "a string") ||
        !check_kind(c, arguments, "context", RT_JSON_OBJECT, "an object") ||
        !read_sandbox(c, rt_json_get_c(arguments, "sandbox_config"), request))
        return false;
    request->intent = rt_json_str(rt_json_get_c(arguments, "intent"));
    request->tools = rt_json_get_c(arguments, "tools");
    request->session_id = rt_json_str(rt_json_get_c(arguments, "session_id"));
    request->language = rt_json_str(rt_json_get_c(arguments, "language"));
    if (request->language.len == 0 && request->session_id.len == 0)
        request->language = RT_STR("typescript");
    if (request->session_id.len == 0)
        request->preset = preset_for(request->language);
    request->cache = RT_CACHE_USE;
    give_input(c, rt_json_get_c(arguments, "context"), request);
    return true;
}

/* ---- the answer ---- */

static void write_lines(rt_json_writer *w, rt_str text)
{
    rt_str line;
    while (text.len > 0 && rt_str_cut(&text, '\n', &line))
        if (line.len > 0 || text.len > 0)
            rt_jw_str(w, line);
}

static size_t json_size(rt_json value)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf_init(&text, RT_JSON_SIZE_CEILING);
    rt_json_print(value, &text);
    return text.len;
}

/* Of the value, also when it is on the shelf and not in the answer. */
static uint64_t output_size(rt_json all)
{
    rt_json_iter it = rt_json_each(rt_json_get_c(all, "handles"));
    rt_json item;
    int64_t size;
    while (rt_json_next(&it, NULL, &item))
        if (rt_str_eq_c(rt_json_str(rt_json_get_c(item, "of")), "result") &&
            rt_json_i64(rt_json_get_c(item, "size"), &size))
            return (uint64_t)size;
    return json_size(rt_json_get_c(all, "result"));
}

static double elapsed_ms(rt_json answer)
{
    double ms = 0;
    rt_json_double(rt_json_get_c(rt_json_get_c(answer, "metrics"), "executionTimeMs"), &ms);
    return ms;
}

static void write_metrics(const rt_request *request, const rt_answer *answer, rt_json all,
                          rt_json_writer *w)
{
    rt_jw_kobject(w, "metrics");
    rt_jw_kdouble(w, "executionTimeMs", elapsed_ms(all));
    rt_jw_ku64(w, "inputSizeBytes", request->code.len);
    rt_jw_ku64(w, "outputSizeBytes", output_size(all));
    if (answer->is_cached)
        rt_jw_kbool(w, "cached", true);
    rt_jw_end(w);
}

static rt_str head_of(rt_str text)
{
    size_t end = RT_MIN(text.len, (size_t)HEAD_BYTES);
    while (end > 0 && end < text.len && ((unsigned char)text.ptr[end] & 0xc0) == 0x80)
        end--;
    return rt_str_slice(text, 0, end);
}

/* Files the code left behind, and outputs that were too long, as {of|name, handle, uri …}. */
static void write_handle(mcp_call *c, rt_json item, rt_json_writer *w)
{
    rt_str handle = rt_json_str(rt_json_get_c(item, "handle"));
    rt_json of = rt_json_get_c(item, "of"), head = rt_json_get_c(item, "head");
    if (handle.len == 0)
        return;
    rt_jw_object(w);
    if (rt_json_is_absent(of))
        rt_jw_kjson(w, "name", rt_json_get_c(item, "name"));
    else
        rt_jw_kjson(w, "of", of);
    rt_jw_kstr(w, "handle", handle);
    rt_jw_kstr(w, "uri", rt_arena_printf(&c->arena, "retort://artifact/%.*s", RT_FMT(handle)));
    rt_jw_kjson(w, "size", rt_json_get_c(item, "size"));
    if (!rt_json_is_absent(head))
        rt_jw_kstr(w, "head", head_of(rt_json_str(head)));
    rt_jw_end(w);
}

static void write_handles(mcp_call *c, rt_json all, rt_json_writer *w)
{
    static const char *const lists[] = { "handles", "artifacts" };
    rt_json item;
    if (rt_json_count(rt_json_get_c(all, "handles")) +
            rt_json_count(rt_json_get_c(all, "artifacts")) ==
        0)
        return;
    rt_jw_karray(w, "artifacts");
    for (size_t i = 0; i < RT_COUNT(lists); i++) {
        rt_json_iter it = rt_json_each(rt_json_get_c(all, lists[i]));
        while (rt_json_next(&it, NULL, &item))
            write_handle(c, item, w);
    }
    rt_jw_end(w);
}

void mcp_artifact_members(mcp_call *c, rt_json_writer *w, rt_str handle, rt_str name, rt_str type,
                          uint64_t size)
{
    rt_jw_kstr(w, "uri", rt_arena_printf(&c->arena, "retort://artifact/%.*s", RT_FMT(handle)));
    rt_jw_kstr(w, "name", name);
    if (type.len > 0)
        rt_jw_kstr(w, "mimeType", type);
    rt_jw_ku64(w, "size", size);
}

static void write_link(mcp_call *c, rt_json item, rt_json_writer *w)
{
    rt_str handle = rt_json_str(rt_json_get_c(item, "handle"));
    rt_str name = rt_json_str(rt_json_get_c(item, "name"));
    rt_str of = rt_json_str(rt_json_get_c(item, "of"));
    rt_str type = rt_json_str(rt_json_get_c(item, "type"));
    int64_t size = 0;
    if (handle.len == 0)
        return;
    rt_json_i64(rt_json_get_c(item, "size"), &size);
    rt_jw_object(w);
    rt_jw_kstr(w, "type", RT_STR("resource_link"));
    mcp_artifact_members(c, w, handle, of.len > 0 ? of : name, type, (uint64_t)size);
    rt_jw_end(w);
}

static void write_links(mcp_call *c, rt_json all, rt_json_writer *w)
{
    static const char *const lists[] = { "handles", "artifacts" };
    rt_json item;
    for (size_t i = 0; c->version->has_structured && i < RT_COUNT(lists); i++) {
        rt_json_iter it = rt_json_each(rt_json_get_c(all, lists[i]));
        while (rt_json_next(&it, NULL, &item))
            write_link(c, item, w);
    }
}

static bool fail_run(mcp_call *c, rt_json all)
{
    rt_buf data RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json error = rt_json_get_c(all, "error");
    rt_str type = rt_json_str(rt_json_get_c(error, "type"));
    rt_str message = rt_json_str(rt_json_get_c(error, "message"));
    rt_str hint = rt_json_str(rt_json_get_c(error, "hint"));
    rt_json_writer w;
    rt_json_begin(&w, &data);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "error_type", type);
    rt_jw_kstr(&w, "error_message", message);
    rt_jw_kstr(&w, "stack", rt_json_str(rt_json_get_c(error, "stack")));
    rt_jw_kdouble(&w, "execution_time_ms", elapsed_ms(all));
    if (hint.len > 0)
        rt_jw_kstr(&w, "hint", hint);
    rt_jw_karray(&w, "logs");
    write_lines(&w, rt_json_str(rt_json_get_c(all, "stdout")));
    write_lines(&w, rt_json_str(rt_json_get_c(all, "stderr")));
    rt_jw_end(&w);
    rt_jw_end(&w);
    return mcp_fail(c, RT_MCP_INTERNAL_ERROR, rt_arena_str(&c->arena, rt_buf_str(&data)),
                    "Code execution failed: %.*s - %.*s", RT_FMT(type),
                    (int)RT_MIN(message.len, (size_t)300), message.ptr);
}

static void write_answer(mcp_call *c, rt_json arguments, const rt_request *request,
                         const rt_answer *answer, rt_json all, rt_buf *out)
{
    rt_json_writer w;
    rt_json_begin(&w, out);
    rt_jw_object(&w);
    rt_jw_kjson(&w, "result", rt_json_get_c(all, "result"));
    rt_jw_karray(&w, "logs");
    write_lines(&w, rt_json_str(rt_json_get_c(all, "stdout")));
    write_lines(&w, rt_json_str(rt_json_get_c(all, "stderr")));
    rt_jw_end(&w);
    write_metrics(request, answer, all, &w);
    write_handles(c, all, &w);
    if (rt_json_bool(rt_json_get_c(arguments, "return_state"), false)) {
        rt_json context = rt_json_get_c(arguments, "context");
        rt_jw_kobject(&w, "state");
        if (!rt_json_is_absent(context))
            rt_jw_kjson(&w, "context", context);
        rt_jw_kstr(&w, "execution_id", answer->id);
        rt_jw_end(&w);
    }
    rt_jw_end(&w);
}

bool mcp_execute_code(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    rt_buf json RT_CLEANUP(rt_buf_done) = { 0 };
    rt_request request = { 0 };
    rt_answer answer;
    rt_error err = { 0 };
    rt_json all;
    if (!read_request(c, arguments, &request))
        return false;
    if (!run(c, &request, &answer, &err) || !rt_json_parse(answer.json, &c->arena, &all, &err))
        return mcp_fail_error(c, &err);
    if (answer.status != RT_STATUS_SUCCESS)
        return fail_run(c, all);
    rt_buf_init(&json, MCP_MESSAGE_MAX);
    write_answer(c, arguments, &request, &answer, all, &json);
    rt_jw_karray(w, "content");
    mcp_text_block(w, rt_buf_str(&json));
    write_links(c, all, w);
    rt_jw_end(w);
    if (c->version->has_structured)
        rt_jw_kraw(w, "structuredContent", rt_buf_str(&json));
    return true;
}

/* ---- the plain one: a text in, a text out ---- */

static rt_str plain_text(mcp_call *c, rt_json all)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json handle = rt_json_at(rt_json_get_c(all, "handles"), 0);
    if (rt_json_is_absent(handle)) {
        rt_buf_init(&text, MCP_MESSAGE_MAX);
        rt_json_print(rt_json_get_c(all, "result"), &text);
        return rt_arena_str(&c->arena, rt_buf_str(&text));
    }
    rt_str head = head_of(rt_json_str(rt_json_get_c(handle, "head")));
    return rt_arena_printf(&c->arena, "%.*s… (%.*s bytes; pml_read_artifact has the rest: %.*s)",
                           RT_FMT(head), RT_FMT(rt_json_number(rt_json_get_c(handle, "size"))),
                           RT_FMT(rt_json_str(rt_json_get_c(handle, "handle"))));
}

bool mcp_execute_plain(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    rt_request request = { .language = rt_json_str(rt_json_get_c(arguments, "language")),
                           .preset = RT_STR("quick") };
    rt_answer answer;
    rt_error err = { 0 };
    rt_json all;
    if (!read_code(c, arguments, &request) ||
        !check_kind(c, arguments, "packages", RT_JSON_ARRAY, "a list of names"))
        return false;
    if (request.language.len == 0)
        return mcp_fail(c, RT_MCP_INVALID_PARAMS, (rt_str){ 0 },
                        "Missing required parameter: language");
    give_input(c, rt_json_get_c(arguments, "input"), &request);
    if (!run(c, &request, &answer, &err) || !rt_json_parse(answer.json, &c->arena, &all, &err)) {
        mcp_write_text(w, rt_arena_printf(&c->arena, "Error: %s", err.text), true);
        return true;
    }
    if (answer.status != RT_STATUS_SUCCESS) {
        rt_str why = rt_json_str(rt_json_get_c(rt_json_get_c(all, "error"), "message"));
        mcp_write_text(w, rt_arena_printf(&c->arena, "Error: %.*s", RT_FMT(why)), true);
        return true;
    }
    rt_jw_karray(w, "content");
    mcp_text_block(w, plain_text(c, all));
    write_links(c, all, w);
    rt_jw_end(w);
    return true;
}
