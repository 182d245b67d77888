/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "server/operations.h"

static rt_arena arena;

static rt_json document(bool is_auth_required)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_error err = { 0 };
    rt_json doc;
    rt_server_openapi(RT_STR("http://127.0.0.1:8002"), is_auth_required, &text);
    cr_assert(rt_json_parse(rt_buf_str(&text), &arena, &doc, &err), "%s", err.text);
    return doc;
}

/* "#/components/schemas/Error" */
static rt_json follow(rt_json doc, rt_str ref)
{
    rt_str piece;
    rt_str_cut(&ref, '/', &piece);
    while (rt_str_cut(&ref, '/', &piece))
        doc = rt_json_get(doc, piece);
    return doc;
}

static void check_references(rt_json doc, rt_json here)
{
    rt_json_iter it = rt_json_each(here);
    rt_str key;
    rt_json value;
    while (rt_json_next(&it, &key, &value)) {
        if (rt_str_eq_c(key, "$ref"))
            cr_expect(!rt_json_is_absent(follow(doc, rt_json_str(value))), "%.*s leads nowhere",
                      RT_FMT(rt_json_str(value)));
        check_references(doc, value);
    }
}

Test(openapi, every_reference_leads_somewhere)
{
    check_references(document(false), document(false));
    check_references(document(true), document(true));
}

Test(openapi, has_every_operation_with_its_statuses)
{
    const http_operation *op;
    rt_json doc = document(true), paths = rt_json_get_c(doc, "paths");
    size_t count = 0, shown = 0;
    rt_json_iter it = rt_json_each(paths);
    rt_json path;
    while (rt_json_next(&it, NULL, &path)) {
        rt_json_iter methods = rt_json_each(path);
        rt_json method;
        while (rt_json_next(&methods, NULL, &method)) {
            rt_json responses = rt_json_get_c(method, "responses");
            rt_str id = rt_json_str(rt_json_get_c(method, "operationId"));
            cr_expect_gt(id.len, 0);
            cr_expect(!rt_json_is_absent(rt_json_get_c(responses, "400")), "%.*s", RT_FMT(id));
            cr_expect(!rt_json_is_absent(rt_json_get_c(responses, "500")), "%.*s", RT_FMT(id));
            shown++;
        }
    }
    while ((op = operations_at(count)))
        count++;
    cr_assert_eq(shown, count);
}

Test(openapi, speaks_of_keys_only_where_there_are_keys)
{
    rt_json open = rt_json_get_c(rt_json_get_c(document(false), "paths"), "/v1/stats");
    rt_json locked = rt_json_get_c(rt_json_get_c(document(true), "paths"), "/v1/stats");
    cr_assert(rt_json_is_absent(rt_json_get_c(rt_json_get_c(open, "get"), "security")));
    cr_assert(!rt_json_is_absent(rt_json_get_c(rt_json_get_c(locked, "get"), "security")));
}

Test(openapi, every_named_schema_exists)
{
    rt_json schemas = rt_json_get_c(rt_json_get_c(document(false), "components"), "schemas");
    const http_operation *op;
    for (size_t i = 0; (op = operations_at(i)); i++) {
        if (op->request && op->request[0] != '@')
            cr_expect(!rt_json_is_absent(rt_json_get_c(schemas, op->request)), "%s", op->request);
        for (const http_response *r = op->responses; r && r->status; r++)
            if (r->schema && r->schema[0] != '@')
                cr_expect(!rt_json_is_absent(rt_json_get_c(schemas, r->schema)), "%s", r->schema);
    }
}
