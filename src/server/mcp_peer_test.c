/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "server/mcp.h"

static rt_server_config config;
static rt_arena arena;

static rt_caller caller(const char *key)
{
    return (rt_caller){ .organisation_id = RT_STR("o"),
                        .user_id = RT_STR("u"),
                        .key_id = rt_str_of(key) };
}

Test(mcp_peer, is_found_by_its_own_caller_alone)
{
    mcp *m = mcp_new(&config);
    rt_caller mine = caller("k1"), other = caller("k2");
    mcp_peer *peer = mcp_peer_new(m, &mine, NULL, NULL);
    mcp_peer *found = mcp_peer_find(m, mcp_peer_id(peer), &mine);
    cr_assert_eq(found, peer);
    cr_assert_null(mcp_peer_find(m, mcp_peer_id(peer), &other));
    mcp_peer_release(found);
    mcp_peer_close(peer);
    cr_assert_null(mcp_peer_find(m, mcp_peer_id(peer), &mine));
    mcp_peer_release(peer);
    mcp_free(m);
}

Test(mcp_peer, the_one_unused_longest_makes_room)
{
    mcp *m = mcp_new(&config);
    rt_caller mine = caller("k");
    mcp_peer *first = mcp_peer_new(m, &mine, NULL, NULL);
    rt_str id = rt_arena_str(&arena, mcp_peer_id(first));
    mcp_peer_release(first);
    for (int i = 0; i < MCP_PEERS_MAX; i++)
        mcp_peer_release(mcp_peer_new(m, &mine, NULL, NULL));
    cr_assert_null(mcp_peer_find(m, id, &mine));
    cr_assert_eq(m->peer_count, MCP_PEERS_MAX);
    mcp_free(m);
}

Test(mcp_peer, keeps_its_latest_streams_by_number)
{
    mcp *m = mcp_new(&config);
    rt_caller mine = caller("k");
    mcp_peer *peer = mcp_peer_new(m, &mine, NULL, NULL);
    for (int i = 0; i < MCP_STREAMS_MAX + 1; i++) {
        mcp_stream *s = mcp_stream_new();
        cr_assert_eq(mcp_peer_stream_add(peer, s), (uint64_t)i + 1);
        mcp_stream_release(s);
    }
    cr_assert_null(mcp_peer_stream_find(peer, 1), "the oldest made room");
    mcp_stream *second = mcp_peer_stream_find(peer, 2);
    cr_assert_not_null(second);
    mcp_stream_release(second);
    mcp_peer_release(peer);
    mcp_free(m);
}

/* ---- questions ---- */

typedef struct client {
    mcp_peer *peer;
    const char *answer; /* "%s" is the question's id */
} client;

static void answer_question(void *ctx, rt_str message, unsigned status)
{
    client *them = ctx;
    rt_json question, answer;
    cr_assert_eq(status, 0);
    cr_assert(rt_json_parse(message, &arena, &question, NULL));
    rt_str id = rt_json_str(rt_json_get_c(question, "id"));
    rt_str text = rt_arena_printf(&arena, "{\"jsonrpc\":\"2.0\",\"id\":\"%.*s\",%s}", RT_FMT(id),
                                  them->answer);
    cr_assert(rt_json_parse(text, &arena, &answer, NULL));
    mcp_peer_deliver(them->peer, answer);
}

static bool ask(const char *answer, rt_str *said, rt_error *err)
{
    mcp *m = mcp_new(&config);
    rt_caller mine = caller("k");
    client them = { mcp_peer_new(m, &mine, NULL, NULL), answer };
    mcp_call *c = mcp_call_new(m, &mine);
    rt_json result;
    c->peer = mcp_peer_keep(them.peer);
    c->send = answer_question;
    c->send_ctx = &them;
    bool ok = mcp_ask(c, "roots/list", RT_STR("{}"), &result, err);
    if (ok)
        *said = rt_arena_str(&arena, rt_json_str(rt_json_get_c(result, "word")));
    mcp_call_release(c);
    mcp_peer_release(them.peer);
    mcp_free(m);
    return ok;
}

Test(mcp_peer, a_question_gets_the_answer_with_its_id)
{
    rt_error err = { 0 };
    rt_str said;
    cr_assert(ask("\"result\":{\"word\":\"yes\"}", &said, &err), "%s", err.text);
    cr_assert(rt_str_eq_c(said, "yes"));
}

Test(mcp_peer, a_refused_question_says_why)
{
    rt_error err = { 0 };
    rt_str said;
    cr_assert(!ask("\"error\":{\"code\":-1,\"message\":\"not now\"}", &said, &err));
    cr_assert_eq(err.code, RT_DENIED);
    cr_assert(strstr(err.text, "not now"));
}

static void cancel_instead(void *ctx, rt_str message, unsigned status)
{
    (void)message;
    (void)status;
    mcp_call_cancel(ctx);
}

Test(mcp_peer, a_cancelled_call_waits_for_no_answer)
{
    mcp *m = mcp_new(&config);
    rt_caller mine = caller("k");
    mcp_call *c = mcp_call_new(m, &mine);
    rt_error err = { 0 };
    rt_json result;
    c->peer = mcp_peer_new(m, &mine, NULL, NULL);
    c->send = cancel_instead;
    c->send_ctx = c;
    cr_assert(!mcp_ask(c, "roots/list", RT_STR("{}"), &result, &err));
    cr_assert_eq(err.code, RT_CANCELLED);
    mcp_call_release(c);
    mcp_free(m);
}
