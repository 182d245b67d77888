/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skill_yaml_fuzz.c - whatever stands in skill.yaml or SKILL.md: no crash, no leak, and what was
 * accepted has a name, a version and a handler that cannot lead anywhere else.
 */
#include "skills/skills_internal.h"

#include <assert.h>

static void check(const skill *s)
{
    assert(s->shown.name.len > 0 && s->shown.name.len <= 64);
    assert(!memchr(s->shown.name.ptr, '/', s->shown.name.len));
    assert(s->file.len > 0 && !memchr(s->file.ptr, '/', s->file.len));
    assert(s->read_path_count == 0 || (s->shown.flags & RT_SKILL_FILE_SYSTEM));
    assert(s->tool_count == 0 || (s->shown.flags & RT_SKILL_EXTERNAL_CALL));
    assert(s->timeout_ms <= 300000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str text = { (const char *)data, size };
    rt_error err = { 0 };
    rt_json doc;
    skill s = { 0 };
    guide g = { 0 };
    if (rt_yaml_parse(text, &arena, &doc, &err) && skills_read_metadata(doc, &arena, &s, &err))
        check(&s);
    else
        assert(err.code != RT_OK && err.text[0] != '\0');
    if (skills_read_guide(text, &arena, &g, NULL))
        assert(g.name.len > 0 && g.name.len <= RT_GUIDE_NAME_MAX && g.body_at <= size);
    return 0;
}
