/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_fixture_input.c - the fixture's tools that need something of the client: an answer of its
 * user, of its model, its roots.
 *
 * What a client sends back as requestState was ours once, but it has been through its hands: it is
 * sealed, and what does not open is an error, never a reason to ask again.
 */
#include <string.h>

#include "server/mcp_fixture.h"

#define STATE_PURPOSE RT_STR("mcp-fixture-state")
#define STATE_MAX     1024

/* ---- legacy ---- */

static bool ask(mcp_call *c, const char *capability, const char *method, rt_str params,
                rt_json *result, rt_json_writer *w)
{
    rt_error err = { 0 };
    if (mcp_is_modern(c) || !mcp_can(c, capability))
        rt_fail(&err, RT_UNSUPPORTED, "the client has no capability '%s'", capability);
    else if (mcp_ask(c, method, params, result, &err))
        return true;
    mcp_write_text(w, rt_str_of(err.text), true);
    return false;
}

static rt_str json_of(mcp_call *c, rt_json value)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_print(value, &text);
    return rt_arena_str(&c->arena, rt_buf_str(&text));
}

static rt_str quoted(mcp_call *c, rt_str text)
{
    rt_buf json RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &json);
    rt_jw_str(&w, text);
    return rt_arena_str(&c->arena, rt_buf_str(&json));
}

bool mcp_fixture_sampling(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    rt_json result;
    rt_str prompt = quoted(c, rt_json_str(rt_json_get_c(arguments, "prompt")));
    rt_str params = rt_arena_printf(&c->arena,
                                    "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":"
                                    "\"text\",\"text\":%.*s}}],\"maxTokens\":100}",
                                    RT_FMT(prompt));
    if (!ask(c, "sampling", "sampling/createMessage", params, &result, w))
        return true;
    rt_str said = rt_json_str(rt_json_get_c(rt_json_get_c(result, "content"), "text"));
    mcp_write_text(w, rt_arena_printf(&c->arena, "LLM response: %.*s", RT_FMT(said)), false);
    return true;
}

static bool elicit(mcp_call *c, rt_str message, const char *properties, rt_json_writer *w)
{
    rt_json result;
    rt_str text = quoted(c, message);
    rt_str params = rt_arena_printf(&c->arena,
                                    "{\"message\":%.*s,\"requestedSchema\":{\"type\":\"object\","
                                    "\"properties\":{%s}}}",
                                    RT_FMT(text), properties);
    if (!ask(c, "elicitation", "elicitation/create", params, &result, w))
        return true;
    rt_str action = rt_json_str(rt_json_get_c(result, "action"));
    rt_str content = json_of(c, rt_json_get_c(result, "content"));
    mcp_write_text(w,
                   rt_arena_printf(&c->arena, "User response: action=%.*s, content=%.*s",
                                   RT_FMT(action), RT_FMT(content)),
                   false);
    return true;
}

bool mcp_fixture_elicitation(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    return elicit(c, rt_json_str(rt_json_get_c(arguments, "message")),
                  "\"response\":{\"type\":\"string\",\"description\":\"the answer\"}", w);
}

bool mcp_fixture_defaults(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    (void)arguments;
    return elicit(c, RT_STR("Please look over the defaults"),
                  "\"name\":{\"type\":\"string\",\"default\":\"John Doe\"},"
                  "\"age\":{\"type\":\"integer\",\"default\":30},"
                  "\"score\":{\"type\":\"number\",\"default\":95.5},"
                  "\"status\":{\"type\":\"string\",\"enum\":[\"active\",\"inactive\",\"pending\"],"
                  "\"default\":\"active\"},"
                  "\"verified\":{\"type\":\"boolean\",\"default\":true}",
                  w);
}

#define TITLED                                                                                     \
    "[{\"const\":\"value1\",\"title\":\"First\"},{\"const\":\"value2\",\"title\":\"Second\"},"     \
    "{\"const\":\"value3\",\"title\":\"Third\"}]"
#define UNTITLED "[\"option1\",\"option2\",\"option3\"]"

bool mcp_fixture_enums(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    (void)arguments;
    return elicit(
        c, RT_STR("Please choose"),
        "\"untitledSingle\":{\"type\":\"string\",\"enum\":" UNTITLED "},"
        "\"titledSingle\":{\"type\":\"string\",\"oneOf\":" TITLED "},"
        "\"legacyEnum\":{\"type\":\"string\",\"enum\":[\"opt1\",\"opt2\",\"opt3\"],"
        "\"enumNames\":[\"One\",\"Two\",\"Three\"]},"
        "\"untitledMulti\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"enum\":" UNTITLED
        "}},"
        "\"titledMulti\":{\"type\":\"array\",\"items\":{\"anyOf\":" TITLED "}}",
        w);
}

/* ---- modern ---- */

#define ELICIT(message, property)                                                                  \
    "{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"form\",\"message\":\"" message      \
    "\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"" property                      \
    "\":{\"type\":\"string\"}},\"required\":[\"" property "\"]}}}"
#define SAMPLE(question)                                                                           \
    "{\"method\":\"sampling/createMessage\",\"params\":{\"messages\":[{\"role\":\"user\","         \
    "\"content\":{\"type\":\"text\",\"text\":\"" question "\"}}],\"maxTokens\":100}}"
#define ROOTS "{\"method\":\"roots/list\",\"params\":{}}"

static rt_json response(const mcp_call *c, const char *key)
{
    rt_json found = rt_json_get_c(rt_json_get_c(c->params, "inputResponses"), key);
    return rt_json_type(found) == RT_JSON_OBJECT ? found : (rt_json){ 0 };
}

static bool accepted(const mcp_call *c, const char *key)
{
    return rt_str_eq_c(rt_json_str(rt_json_get_c(response(c, key), "action")), "accept");
}

static rt_str field(const mcp_call *c, const char *key, const char *name)
{
    return rt_json_str(rt_json_get_c(rt_json_get_c(response(c, key), "content"), name));
}

/* The questions, and what we want to be reminded of ("": nothing). */
static bool require(mcp_call *c, const char *questions, rt_str state, rt_json_writer *w)
{
    c->result_type = "input_required";
    rt_jw_kraw(w, "inputRequests", rt_str_of(questions));
    if (state.len == 0)
        return true;
    rt_str sealed = rt_vault_seal(c->mcp->config->vault, STATE_PURPOSE, state, &c->arena);
    char *hex = rt_arena_alloc(&c->arena, 2 * sealed.len + 1);
    rt_hex(hex, sealed.ptr, sealed.len);
    rt_jw_kstr(w, "requestState", rt_str_of(hex));
    return true;
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool unhex(rt_str hex, rt_arena *arena, rt_str *out)
{
    char *bytes = rt_arena_alloc(arena, hex.len / 2 + 1);
    if (hex.len % 2 != 0 || hex.len > STATE_MAX)
        return false;
    for (size_t i = 0; i < hex.len; i += 2) {
        int high = digit(hex.ptr[i]), low = digit(hex.ptr[i + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[i / 2] = (char)(high * 16 + low);
    }
    *out = (rt_str){ bytes, hex.len / 2 };
    return true;
}

/* What we wanted to be reminded of; "" when the client brought nothing. */
static bool remember(mcp_call *c, rt_str *state)
{
    rt_json given = rt_json_get_c(c->params, "requestState");
    rt_str sealed;
    *state = (rt_str){ 0 };
    if (rt_json_is_absent(given))
        return true;
    if (unhex(rt_json_str(given), &c->arena, &sealed) &&
        rt_vault_unseal(c->mcp->config->vault, STATE_PURPOSE, sealed, &c->arena, state, NULL))
        return true;
    return mcp_fail(c, RT_MCP_INVALID_PARAMS, (rt_str){ 0 },
                    "Invalid params: requestState is not what we sent");
}

bool mcp_fixture_needs_sampling(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    (void)arguments;
    if (!mcp_can(c, "sampling"))
        return mcp_fail(c, RT_MCP_MISSING_CAPABILITY,
                        RT_STR("{\"requiredCapabilities\":{\"sampling\":{}}}"),
                        "Missing required client capability: sampling");
    mcp_write_text(w, RT_STR("The client can sample."), false);
    return true;
}

bool mcp_fixture_ask_name(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    (void)arguments;
    rt_str name = field(c, "user_name", "name");
    if (!accepted(c, "user_name") || name.len == 0)
        return require(c, "{\"user_name\":" ELICIT("What is your name?", "name") "}", (rt_str){ 0 },
                       w);
    mcp_write_text(w, rt_arena_printf(&c->arena, "Hello, %.*s!", RT_FMT(name)), false);
    return true;
}

bool mcp_fixture_ask_model(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    (void)arguments;
    rt_str said = field(c, "capital_question", "text");
    if (said.len == 0)
        return require(c, "{\"capital_question\":" SAMPLE("What is the capital of France?") "}",
                       (rt_str){ 0 }, w);
    mcp_write_text(w, rt_arena_printf(&c->arena, "The model says: %.*s", RT_FMT(said)), false);
    return true;
}

bool mcp_fixture_ask_roots(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    (void)arguments;
    rt_json roots = rt_json_get_c(response(c, "client_roots"), "roots");
    if (rt_json_type(roots) != RT_JSON_ARRAY)
        return require(c, "{\"client_roots\":" ROOTS "}", (rt_str){ 0 }, w);
    mcp_write_text(w, json_of(c, roots), false);
    return true;
}

bool mcp_fixture_ask_state(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    rt_str state;
    (void)arguments;
    if (!remember(c, &state))
        return false;
    if (!rt_str_eq_c(state, "confirming") || !accepted(c, "confirm"))
        return require(c, "{\"confirm\":" ELICIT("Are you sure?", "ok") "}", RT_STR("confirming"),
                       w);
    mcp_write_text(w, RT_STR("state-ok"), false);
    return true;
}

bool mcp_fixture_ask_all(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    rt_str state;
    (void)arguments;
    if (!remember(c, &state))
        return false;
    if (state.len == 0 || !accepted(c, "user_name") || rt_json_is_absent(response(c, "greeting")) ||
        rt_json_is_absent(response(c, "client_roots")))
        return require(
            c,
            "{\"user_name\":" ELICIT("What is your name?", "name") ",\"greeting\":" SAMPLE(
                "Greet somebody.") ",\"client_roots\":" ROOTS "}",
            RT_STR("all"), w);
    mcp_write_text(w, RT_STR("All three are here."), false);
    return true;
}

bool mcp_fixture_ask_twice(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    rt_str state;
    (void)arguments;
    if (!remember(c, &state))
        return false;
    if (rt_str_eq_c(state, "two") && accepted(c, "step2")) {
        mcp_write_text(w, RT_STR("Both steps are done."), false);
        return true;
    }
    if (rt_str_eq_c(state, "two") || (rt_str_eq_c(state, "one") && accepted(c, "step1")))
        return require(c, "{\"step2\":" ELICIT("Step 2: which colour?", "colour") "}",
                       RT_STR("two"), w);
    return require(c, "{\"step1\":" ELICIT("Step 1: which name?", "name") "}", RT_STR("one"), w);
}

bool mcp_fixture_ask_what_can(mcp_call *c, rt_json arguments, rt_json_writer *w)
{
    (void)arguments;
    if (!rt_json_is_absent(response(c, "user_name")) ||
        !rt_json_is_absent(response(c, "greeting"))) {
        mcp_write_text(w, RT_STR("Thank you."), false);
        return true;
    }
    if (mcp_can(c, "elicitation"))
        return require(c, "{\"user_name\":" ELICIT("What is your name?", "name") "}", (rt_str){ 0 },
                       w);
    if (mcp_can(c, "sampling"))
        return require(c, "{\"greeting\":" SAMPLE("Greet somebody.") "}", (rt_str){ 0 }, w);
    mcp_write_text(w, RT_STR("There is nothing this client could be asked."), false);
    return true;
}

bool mcp_fixture_ask_context(mcp_call *c, rt_str *context, rt_json_writer *w)
{
    *context = field(c, "user_context", "context");
    if (accepted(c, "user_context") && context->len > 0)
        return true;
    require(c, "{\"user_context\":" ELICIT("What is this about?", "context") "}", (rt_str){ 0 }, w);
    return false;
}
