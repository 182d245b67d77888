/* SPDX-License-Identifier: Apache-2.0 */
/* An agent's definition from anywhere: read, checked, joined to one program, shown again. */
#include <assert.h>
#include <stdint.h>

#include "agents/agents_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_json body;
    if (!rt_json_parse((rt_str){ (const char *)data, size }, &arena, &body, &err))
        return 0;
    agents_draft draft = { 0 };
    if (!agents_draft_read(body, &arena, &draft, &err) || !agents_draft_check(&draft, &arena, &err))
        return 0;
    rt_agent_content *c = &draft.row.content;
    uint64_t shift;
    rt_str program;
    if (agents_bundle_join(c->language, c->code, draft.files, &arena, &program, &shift, &err))
        assert(program.len >= c->code.len);
    rt_json masked = agents_environment_mask(draft.environment, &arena), again;
    if (rt_json_count(draft.environment) > 0) /* a mask stands for the value that is there */
        assert(agents_environment_read(masked, draft.environment, &arena, &again, &err) &&
               rt_json_equal(again, draft.environment));
    agents_mask_secrets(body, draft.environment, &arena);
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_agent agent = { .row = draft.row, .version = RT_STR("1.0.0"), .environment = masked };
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_agent_write(&agent, &w);
    rt_jw_end(&w);
    rt_json shown;
    assert(rt_json_parse(rt_buf_str(&text), &arena, &shown, &err));
    return 0;
}
