#include <criterion/criterion.h>

#include "runtimes/runtimes.h"

static bool read(const char *text, rt_policy *p, rt_arena *arena, rt_error *err)
{
    rt_json doc;
    cr_assert(rt_json_parse(rt_str_of(text), arena, &doc, err), "%s", err->text);
    return rt_policy_read(doc, arena, p, err);
}

Test(policy_json, a_name_is_a_preset)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_policy p = { 0 };
    rt_error err = { 0 };
    cr_assert(read("\"quick\"", &p, &arena, &err));
    cr_assert_eq(p.wall_ms, 5000);
    cr_assert(!read("\"quack\"", &p, &arena, &err));
    cr_assert(strstr(err.text, "quack") && strstr(err.text, "/v1/policies"));
}

Test(policy_json, an_object_refines_what_it_extends)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_policy p = { 0 };
    rt_error err = { 0 };
    cr_assert(read("{\"timeout_ms\":1500,\"memory_mb\":64,\"imports\":[\"math\"],"
                   "\"env\":{\"A\":\"b=c\"},\"extends\":\"quick\",\"cpu\":\"2s\"}",
                   &p, &arena, &err),
              "%s", err.text);
    cr_assert_eq(p.wall_ms, 1500);
    cr_assert_eq(p.cpu_ms, 2000);
    cr_assert_eq(p.memory_bytes, 64u << 20);
    cr_assert(p.has_import_list && p.import_count == 1);
    cr_assert(rt_str_eq_c(p.env[0].name, "A") && rt_str_eq_c(p.env[0].value, "b=c"));
}

Test(policy_json, what_was_shown_can_be_sent_back)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_buf first RT_CLEANUP(rt_buf_done) = { 0 }, second RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_policy p = *rt_policy_preset(RT_STR("default"));
    rt_error err = { 0 };
    rt_json_begin(&w, &first);
    rt_policy_write(rt_policy_preset(RT_STR("voice")), &w);
    cr_assert(read(rt_arena_copy(&arena, rt_buf_str(&first)), &p, &arena, &err), "%s", err.text);
    rt_json_begin(&w, &second);
    rt_policy_write(&p, &w);
    cr_assert(rt_str_eq(rt_buf_str(&first), rt_buf_str(&second)));
}

Test(policy_json, nonsense_is_refused_with_its_key)
{
    static const char *const bad[] = {
        "{\"tiemout\":\"5s\"}", "{\"timeout\":true}",    "{\"timeout_ms\":-5}",
        "{\"memory\":\"x\"}",   "{\"env\":{\"A\":1}}",   "{\"read\":{}}",
        "{\"read\":[\"etc\"]}", "{\"extends\":1}",       "{\"env\":[]}",
        "{\"imports\":[1]}",    "{\"network\":\"all\"}", "{\"timeout_ms\":1e99}",
        "{\"processes\":1.5}",  "{\"files\":\"all\"}",
    };
    for (size_t i = 0; i < RT_COUNT(bad); i++) {
        rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
        rt_policy p = *rt_policy_preset(RT_STR("default"));
        rt_error err = { 0 };
        cr_assert(!read(bad[i], &p, &arena, &err), "%s", bad[i]);
        cr_assert(strstr(err.text, "policy"), "%s: %s", bad[i], err.text);
    }
}
