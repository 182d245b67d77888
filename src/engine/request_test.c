#include <criterion/criterion.h>

#include "engine/engine.h"

static bool read(const char *text, rt_request *out, rt_arena *arena, rt_error *err)
{
    rt_json doc;
    cr_assert(rt_json_parse(rt_str_of(text), arena, &doc, err), "%s", err->text);
    return rt_request_read(doc, arena, out, err);
}

Test(request, members_arrive_where_they_belong)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_request r = { 0 };
    rt_error err = { 0 };
    cr_assert(read("{\"language\":\"python\",\"code\":\"return 1\",\"input\":{\"a\":1.50},"
                   "\"policy\":{\"timeout\":\"2s\"},\"cache\":\"use\",\"stdin\":\"x\","
                   "\"user_id\":\"ann\",\"wait\":false}",
                   &r, &arena, &err),
              "%s", err.text);
    cr_assert(rt_str_eq_c(r.language, "python") && rt_str_eq_c(r.code, "return 1"));
    cr_assert(r.has_input && rt_str_eq_c(r.input, "{\"a\":1.50}"), "numbers keep their text");
    cr_assert_eq(r.cache, RT_CACHE_USE);
    cr_assert(rt_str_eq_c(r.user_id, "ann") && rt_str_eq_c(r.stdin_data, "x"));
    cr_assert(!rt_json_is_absent(r.policy));
}

Test(request, an_input_of_null_is_an_input)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_request r = { 0 };
    rt_error err = { 0 };
    cr_assert(read("{\"code\":\"1\",\"input\":null}", &r, &arena, &err));
    cr_assert(r.has_input && rt_str_eq_c(r.input, "null"));
}

Test(request, what_makes_no_sense_is_refused_by_name)
{
    static const struct {
        const char *body, *says;
    } cases[] = {
        { "[]", "JSON object" },
        { "{}", "'code' is missing" },
        { "{\"code\":1}", "'code' must be a string, not number" },
        { "{\"code\":\"1\",\"langauge\":\"python\"}", "unknown member 'langauge'" },
        { "{\"code\":\"1\",\"cache\":\"maybe\"}", "bypass use refresh" },
        { "{\"code\":\"1\",\"user_id\":\"a\\u0000b\"}", "'user_id'" },
        { "{\"code\":\"1\",\"idempotency_key\":[]}", "'idempotency_key' must be a string" },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
        rt_request r = { 0 };
        rt_error err = { 0 };
        cr_assert(!read(cases[i].body, &r, &arena, &err), "%s", cases[i].body);
        cr_assert_eq(err.code, RT_INVALID);
        cr_assert(strstr(err.text, cases[i].says), "%s: %s", cases[i].body, err.text);
    }
}
