/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_fuzz.c - whatever the schema and the value: no crash, an end, and the same answer with a
 * report as without one.
 *
 * The input is {"schema":...,"instance":...,"remotes":{...},"assert_format":...}.
 */
#include "schema/schema.h"

#include <assert.h>

enum { REMOTES_MAX = 8, STEPS_MAX = 100000 };

static void check(const rt_schema *schema, rt_json value, rt_arena *arena)
{
    rt_schema_report report = { .arena = arena };
    rt_json filled;
    bool alone = rt_schema_check(schema, value, NULL);
    bool with_report = rt_schema_check(schema, value, &report);
    assert(alone == with_report);
    assert(alone == (report.error_count == 0 && !report.is_stopped));
    for (size_t i = 0; i < report.error_count; i++)
        assert(report.errors[i].message.len > 0 && report.errors[i].keyword.len > 0);
    rt_schema_add_defaults(schema, value, arena, &filled, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_schema *schema RT_CLEANUP(rt_schema_freep) = NULL;
    rt_json doc;
    rt_error err = { 0 };
    if (!rt_json_parse((rt_str){ (const char *)data, size }, &arena, &doc, NULL))
        return 0;
    rt_schema_document remotes[REMOTES_MAX];
    rt_schema_options options = {
        .documents = remotes,
        .asserts_format = rt_json_bool(rt_json_get_c(doc, "assert_format"), false),
        .max_steps = STEPS_MAX,
    };
    rt_json_iter it = rt_json_each(rt_json_get_c(doc, "remotes"));
    rt_schema_document *next = remotes;
    while (options.document_count < REMOTES_MAX && rt_json_next(&it, &next->uri, &next->root)) {
        options.document_count++;
        next++;
    }
    if (rt_schema_new(rt_json_get_c(doc, "schema"), &options, &schema, &err))
        check(schema, rt_json_get_c(doc, "instance"), &arena);
    else
        assert(err.code != RT_OK && err.text[0]);
    return 0;
}
