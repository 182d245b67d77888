/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_fixture.c - the tools, resources and prompts that the public conformance suite calls by name,
 * to see every feature of the protocol at work. Behind --mcp-fixture, never on by default.
 *
 * What asks the client for something is in mcp_fixture_input.c.
 */
#include <poll.h>
#include <string.h>

#include "server/mcp_fixture.h"

/* One red dot, and a moment of silence. */
#define PNG                                                                                        \
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJg" \
    "gg=="
#define WAV "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=="

#define IMAGE "{\"type\":\"image\",\"data\":\"" PNG "\",\"mimeType\":\"image/png\"}"
#define EMBEDDED                                                                                   \
    "{\"type\":\"resource\",\"resource\":{\"uri\":\"test://embedded-resource\","                   \
    "\"mimeType\":\"text/plain\",\"text\":\"This is an embedded resource content.\"}}"

#define NOTHING "{\"type\":\"object\",\"properties\":{}}"
#define STEP_MS 50

void mcp_fixture_wait(mcp_call *c, unsigned ms)
{
    struct pollfd wake = { .fd = c->canceller.wake, .events = POLLIN };
    poll(&wake, 1, (int)ms);
}

static bool content(rt_json_writer *w, rt_str blocks)
{
    rt_jw_kraw(w, "content", blocks);
    return true;
}

/* ---- tools ---- */

static bool simple_text(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    (void)c;
    (void)arguments;
    mcp_write_text(w, RT_STR("This is a simple text response for testing."), false);
    return true;
}

static bool image(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    (void)c;
    (void)arguments;
    return content(w, RT_STR("[" IMAGE "]"));
}

static bool audio(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    (void)c;
    (void)arguments;
    return content(
        w, RT_STR("[{\"type\":\"audio\",\"data\":\"" WAV "\",\"mimeType\":\"audio/wav\"}]"));
}

static bool embedded(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    (void)c;
    (void)arguments;
    return content(w, RT_STR("[" EMBEDDED "]"));
}

static bool mixed(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    (void)c;
    (void)arguments;
    return content(w, RT_STR("[{\"type\":\"text\",\"text\":\"Multiple content types test:\"}," IMAGE
                             "," EMBEDDED "]"));
}

static bool error(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    (void)c;
    (void)arguments;
    mcp_write_text(w, RT_STR("This tool intentionally returns an error for testing"), true);
    return true;
}

static bool progress(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    (void)arguments;
    for (int done = 0; done <= 100; done += 50) {
        mcp_progress(c, done, 100, RT_STR("working"));
        mcp_fixture_wait(c, STEP_MS);
    }
    mcp_write_text(w, RT_STR("Progress was told."), false);
    return true;
}

static bool logging(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    static const char *const texts[] = { "Tool execution started", "Tool processing data",
                                         "Tool execution completed" };
    (void)arguments;
    for (size_t i = 0; i < RT_COUNT(texts); i++) {
        mcp_log(c, MCP_INFO, "fixture", rt_str_of(texts[i]));
        mcp_fixture_wait(c, STEP_MS);
    }
    mcp_write_text(w, RT_STR("Three messages were logged."), false);
    return true;
}

/* The stream ends in the middle of the call; the client comes back for the answer. */
static bool reconnection(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    (void)arguments;
    if (c->send == mcp_stream_send && !mcp_is_modern(c)) {
        mcp_log(c, MCP_INFO, "fixture", RT_STR("the stream is about to end"));
        mcp_fixture_wait(c, STEP_MS);
        mcp_stream_pause(c->send_ctx);
        mcp_fixture_wait(c, 2 * STEP_MS);
    }
    mcp_write_text(w, RT_STR("Reconnection test completed successfully."), false);
    return true;
}

static bool change_tools(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    mcp_changed(c->mcp, MCP_TOOLS_CHANGED);
    return simple_text(c, arguments, w);
}

static bool change_prompts(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    mcp_changed(c->mcp, MCP_PROMPTS_CHANGED);
    return simple_text(c, arguments, w);
}

static bool echo(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    (void)c;
    rt_json_print(arguments, &text);
    mcp_write_text(w, rt_buf_str(&text), false);
    return true;
}

#define SCHEMA_2020_12                                                                             \
    "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\","           \
    "\"$defs\":{\"address\":{\"$anchor\":\"addressDef\",\"type\":\"object\",\"properties\":"       \
    "{\"street\":{\"type\":\"string\"},\"city\":{\"type\":\"string\"}}}},"                         \
    "\"properties\":{\"name\":{\"type\":\"string\"},\"address\":{\"$ref\":\"#/$defs/address\"},"   \
    "\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\",\"email\"]},"                      \
    "\"phone\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}},"                            \
    "\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":[\"email\"]}]}],"             \
    "\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},"                            \
    "\"required\":[\"contactMethod\"]},\"then\":{\"required\":[\"phone\"]},"                       \
    "\"else\":{\"required\":[\"email\"]},\"additionalProperties\":false}"

#define ROW(name, about, input, call)                                                              \
    {                                                                                              \
        name, NULL, about, input, NULL, NULL, RT_ROLE_VIEWER, call                                 \
    }

const mcp_tool mcp_fixture_tools[] = {
    ROW("test_simple_text", "Answers with a text", NOTHING, simple_text),
    ROW("test_image_content", "Answers with an image", NOTHING, image),
    ROW("test_audio_content", "Answers with a sound", NOTHING, audio),
    ROW("test_embedded_resource", "Answers with a resource", NOTHING, embedded),
    ROW("test_multiple_content_types", "Answers with a text, an image and a resource", NOTHING,
        mixed),
    ROW("test_error_handling", "Fails", NOTHING, error),
    ROW("test_tool_with_progress", "Tells of its progress", NOTHING, progress),
    ROW("test_tool_with_logging", "Logs three messages", NOTHING, logging),
    ROW("test_logging_tool", "Logs three messages", NOTHING, logging),
    ROW("test_reconnection", "Ends its stream before its answer", NOTHING, reconnection),
    ROW("test_trigger_tool_change", "Says that the tools have changed", NOTHING, change_tools),
    ROW("test_trigger_prompt_change", "Says that the prompts have changed", NOTHING,
        change_prompts),
    ROW("test_x_mcp_header", "Wants an argument in a header too",
        "{\"type\":\"object\",\"properties\":{\"region\":{\"type\":\"string\","
        "\"x-mcp-header\":\"Region\"}}}",
        echo),
    ROW("json_schema_2020_12_tool", "Has every keyword of JSON Schema 2020-12", SCHEMA_2020_12,
        echo),
    ROW("test_sampling", "Asks the client's model",
        "{\"type\":\"object\",\"properties\":{\"prompt\":{\"type\":\"string\"}},"
        "\"required\":[\"prompt\"]}",
        mcp_fixture_sampling),
    ROW("test_elicitation", "Asks the client's user",
        "{\"type\":\"object\",\"properties\":{\"message\":{\"type\":\"string\"}},"
        "\"required\":[\"message\"]}",
        mcp_fixture_elicitation),
    ROW("test_elicitation_sep1034_defaults", "Asks with defaults", NOTHING, mcp_fixture_defaults),
    ROW("test_elicitation_sep1330_enums", "Asks with choices", NOTHING, mcp_fixture_enums),
    ROW("test_missing_capability", "Needs a client that samples", NOTHING,
        mcp_fixture_needs_sampling),
    ROW("test_streaming_elicitation", "Asks the client's user", NOTHING, mcp_fixture_ask_name),
    ROW("test_input_required_result_elicitation", "Asks for a name", NOTHING, mcp_fixture_ask_name),
    ROW("test_input_required_result_sampling", "Asks the client's model", NOTHING,
        mcp_fixture_ask_model),
    ROW("test_input_required_result_list_roots", "Asks for the client's roots", NOTHING,
        mcp_fixture_ask_roots),
    ROW("test_input_required_result_request_state", "Asks, and remembers that it did", NOTHING,
        mcp_fixture_ask_state),
    ROW("test_input_required_result_tampered_state", "Notices a changed state", NOTHING,
        mcp_fixture_ask_state),
    ROW("test_input_required_result_multiple_inputs", "Asks three things at once", NOTHING,
        mcp_fixture_ask_all),
    ROW("test_input_required_result_multi_round", "Asks twice", NOTHING, mcp_fixture_ask_twice),
    ROW("test_input_required_result_capabilities", "Asks only what the client can answer", NOTHING,
        mcp_fixture_ask_what_can),
    { 0 },
};

/* ---- resources ---- */

#define TEXT_TEXT "This is the content of the static text resource."

void mcp_fixture_resources(rt_json_writer *w)
{
    rt_jw_raw(w, RT_STR("{\"uri\":\"test://static-text\",\"name\":\"Static text\","
                        "\"mimeType\":\"text/plain\"}"));
    rt_jw_raw(w, RT_STR("{\"uri\":\"test://static-binary\",\"name\":\"Static binary\","
                        "\"mimeType\":\"image/png\"}"));
    rt_jw_raw(w, RT_STR("{\"uri\":\"test://watched-resource\",\"name\":\"Watched\","
                        "\"mimeType\":\"text/plain\"}"));
}

void mcp_fixture_templates(rt_json_writer *w)
{
    rt_jw_raw(w, RT_STR("{\"uriTemplate\":\"test://template/{id}/data\",\"name\":\"Template\","
                        "\"mimeType\":\"application/json\"}"));
}

static bool text_resource(rt_str uri, rt_str type, rt_str text, rt_json_writer *w)
{
    rt_jw_karray(w, "contents");
    rt_jw_object(w);
    rt_jw_kstr(w, "uri", uri);
    rt_jw_kstr(w, "mimeType", type);
    rt_jw_kstr(w, "text", text);
    rt_jw_end(w);
    rt_jw_end(w);
    return true;
}

bool mcp_fixture_read(rt_str uri, rt_arena *arena, rt_json_writer *w)
{
    rt_str before = RT_STR("test://template/"), after = RT_STR("/data");
    if (rt_str_eq_c(uri, "test://static-text"))
        return text_resource(uri, RT_STR("text/plain"), RT_STR(TEXT_TEXT), w);
    if (rt_str_eq_c(uri, "test://watched-resource"))
        return text_resource(uri, RT_STR("text/plain"), RT_STR("Watched."), w);
    if (rt_str_eq_c(uri, "test://static-binary")) {
        rt_jw_kraw(w, "contents",
                   RT_STR("[{\"uri\":\"test://static-binary\",\"mimeType\":\"image/png\","
                          "\"blob\":\"" PNG "\"}]"));
        return true;
    }
    if (!rt_str_starts(uri, before) || !rt_str_ends(uri, after) ||
        uri.len <= before.len + after.len)
        return false;
    rt_buf json RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer in;
    rt_json_begin(&in, &json);
    rt_jw_object(&in);
    rt_jw_kstr(&in, "id", rt_str_slice(uri, before.len, uri.len - after.len));
    rt_jw_end(&in);
    return text_resource(uri, RT_STR("application/json"), rt_arena_str(arena, rt_buf_str(&json)),
                         w);
}

/* ---- prompts ---- */

#define ARGUMENT(name) "{\"name\":\"" name "\",\"description\":\"a text\",\"required\":true}"

bool mcp_prompts_list(mcp_call *c, rt_json_writer *w)
{
    if (!mcp_check_cursor(c))
        return false;
    rt_jw_kraw(
        w, "prompts",
        RT_STR("[{\"name\":\"test_simple_prompt\",\"description\":\"A prompt\"},"
               "{\"name\":\"test_prompt_with_arguments\",\"description\":\"Takes two\","
               "\"arguments\":[" ARGUMENT("arg1") "," ARGUMENT(
                   "arg2") "]},"
                           "{\"name\":\"test_prompt_with_embedded_resource\",\"description\":"
                           "\"Has a resource\",\"arguments\":[" ARGUMENT(
                               "resourceUri") "]},"
                                              "{\"name\":\"test_prompt_with_image\","
                                              "\"description\":\"Has an image\"},"
                                              "{\"name\":\"test_input_required_result_prompt\","
                                              "\"description\":"
                                              "\"Asks for context\"}]"));
    return true;
}

static void text_message(rt_json_writer *w, rt_str text)
{
    rt_jw_object(w);
    rt_jw_kstr(w, "role", RT_STR("user"));
    rt_jw_key(w, RT_STR("content"));
    mcp_text_block(w, text);
    rt_jw_end(w);
}

static bool text_prompt(rt_json_writer *w, rt_str text)
{
    rt_jw_karray(w, "messages");
    text_message(w, text);
    rt_jw_end(w);
    return true;
}

static bool resource_prompt(rt_str uri, rt_json_writer *w)
{
    rt_jw_karray(w, "messages");
    rt_jw_object(w);
    rt_jw_kstr(w, "role", RT_STR("user"));
    rt_jw_kobject(w, "content");
    rt_jw_kstr(w, "type", RT_STR("resource"));
    rt_jw_kobject(w, "resource");
    rt_jw_kstr(w, "uri", uri);
    rt_jw_kstr(w, "mimeType", RT_STR("text/plain"));
    rt_jw_kstr(w, "text", RT_STR("Embedded resource content for testing."));
    rt_jw_end(w);
    rt_jw_end(w);
    rt_jw_end(w);
    text_message(w, RT_STR("Please process the embedded resource above."));
    rt_jw_end(w);
    return true;
}

bool mcp_prompts_get(mcp_call *c, rt_json_writer *w)
{
    rt_str name = rt_json_str(rt_json_get_c(c->params, "name"));
    rt_json arguments = rt_json_get_c(c->params, "arguments");
    rt_str one = rt_json_str(rt_json_get_c(arguments, "arg1"));
    rt_str two = rt_json_str(rt_json_get_c(arguments, "arg2"));
    if (rt_str_eq_c(name, "test_simple_prompt"))
        return text_prompt(w, RT_STR("This is a simple prompt for testing."));
    if (rt_str_eq_c(name, "test_prompt_with_arguments"))
        return text_prompt(w, rt_arena_printf(&c->arena,
                                              "Prompt with arguments: arg1='%.*s', arg2='%.*s'",
                                              RT_FMT(one), RT_FMT(two)));
    if (rt_str_eq_c(name, "test_prompt_with_embedded_resource"))
        return resource_prompt(rt_json_str(rt_json_get_c(arguments, "resourceUri")), w);
    if (rt_str_eq_c(name, "test_prompt_with_image")) {
        rt_jw_kraw(w, "messages",
                   RT_STR("[{\"role\":\"user\",\"content\":" IMAGE "},{\"role\":\"user\","
                          "\"content\":{\"type\":\"text\",\"text\":\"Please analyze the image "
                          "above.\"}}]"));
        return true;
    }
    if (rt_str_eq_c(name, "test_input_required_result_prompt")) {
        rt_str context;
        return !mcp_fixture_ask_context(c, &context, w) || text_prompt(w, context);
    }
    return mcp_fail(c, RT_MCP_INVALID_PARAMS, (rt_str){ 0 }, "Unknown prompt: %.*s",
                    (int)RT_MIN(name.len, (size_t)80), name.ptr);
}

bool mcp_complete(mcp_call *c, rt_json_writer *w)
{
    rt_json argument = rt_json_get_c(c->params, "argument");
    rt_str value = rt_json_str(rt_json_get_c(argument, "value"));
    if (rt_json_type(rt_json_get_c(c->params, "ref")) != RT_JSON_OBJECT ||
        rt_json_type(rt_json_get_c(argument, "name")) != RT_JSON_STRING)
        return mcp_fail(c, RT_MCP_INVALID_PARAMS, (rt_str){ 0 },
                        "Invalid params: ref and argument are needed");
    rt_jw_kobject(w, "completion");
    rt_jw_karray(w, "values");
    if (rt_str_starts(RT_STR("paris"), value))
        rt_jw_str(w, RT_STR("paris"));
    rt_jw_end(w);
    rt_jw_kbool(w, "hasMore", false);
    rt_jw_end(w);
    return true;
}
