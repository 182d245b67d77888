/* SPDX-License-Identifier: Apache-2.0 */
/* Three lines of headers (MCP-Protocol-Version, Mcp-Method, Mcp-Name), then a message. */
#include <assert.h>

#include "server/mcp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_answer(void *ctx, rt_str message, unsigned status)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json answer;
    (void)ctx;
    (void)status;
    assert(rt_json_parse(message, &arena, &answer, NULL));
    assert(rt_str_eq_c(rt_json_str(rt_json_get_c(answer, "jsonrpc")), "2.0"));
}

static rt_str no_param(void *ctx, const char *header)
{
    (void)ctx;
    (void)header;
    return (rt_str){ 0 };
}

/* What looks into the store needs one. */
static bool is_for_the_store(const mcp_call *c)
{
    return c->failure.code == 0 &&
           (rt_str_eq_c(c->method, "resources/list") || rt_str_eq_c(c->method, "resources/read"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_server_config config = { .has_mcp_fixture = true };
    mcp *m = mcp_new(&config);
    mcp_call *c = mcp_call_new(m, &(rt_caller){ .role = RT_ROLE_NONE });
    rt_str rest = { (const char *)data, size };
    mcp_headers headers = { .param = no_param };
    rt_json message;
    rt_str_cut(&rest, '\n', &headers.version);
    rt_str_cut(&rest, '\n', &headers.method);
    rt_str_cut(&rest, '\n', &headers.name);
    c->send = check_answer;
    rt_canceller_cancel(&c->canceller); /* nobody waits for a listener */
    if (rt_json_parse(rest, &c->arena, &message, NULL)) {
        mcp_notified(m, NULL, message);
        mcp_call_open(c, message, headers.version.len > 0 ? &headers : NULL);
        if (!is_for_the_store(c))
            mcp_call_answer(c);
    }
    mcp_call_release(c);
    mcp_free(m);
    return 0;
}
