/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/sandbox_internal.h"

#include <criterion/criterion.h>

static rt_sandbox_config round_trip(const rt_sandbox_config *config, rt_arena *arena)
{
    rt_buf packed RT_CLEANUP(rt_buf_done) = { 0 };
    rt_error err = { 0 };
    rt_sandbox_config out;
    cr_assert(sandbox_config_pack(config, &packed, &err), "%s", err.text);
    cr_assert(sandbox_config_unpack(rt_buf_str(&packed), arena, &out, &err), "%s", err.text);
    return out;
}

Test(config, it_arrives_as_it_was_sent)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    const char *const one[] = { "/usr/bin/python3", "-c", "say \"hi\"\n\t\\", "", NULL };
    const char *const two[] = { "/bin/true", NULL };
    const rt_zygote_spec zygotes[] = { { "python", one }, { "other", two } };
    const rt_root_entry root[] = { { "/home/a b/\xC3\xA9", "/retort" }, { "/x", "/y" } };
    rt_sandbox_config config = { .zygotes = zygotes,
                                 .zygote_count = 2,
                                 .root = root,
                                 .root_count = 2,
                                 .max_cells = RT_CELLS_MAX,
                                 .pool_max = 7,
                                 .is_cgroup_required = true };
    rt_sandbox_config got = round_trip(&config, &arena);
    cr_expect(got.max_cells == RT_CELLS_MAX && got.pool_max == 7 && got.is_cgroup_required);
    cr_assert(got.zygote_count == 2 && got.root_count == 2);
    cr_expect_str_eq(got.zygotes[0].name, "python");
    for (size_t i = 0; i < RT_COUNT(one) - 1; i++)
        cr_expect_str_eq(got.zygotes[0].argv[i], one[i]);
    cr_expect_null(got.zygotes[0].argv[RT_COUNT(one) - 1]);
    cr_expect_str_eq(got.zygotes[1].argv[0], "/bin/true");
    cr_expect_null(got.zygotes[1].argv[1]);
    cr_expect_str_eq(got.root[0].source, "/home/a b/\xC3\xA9");
    cr_expect_str_eq(got.root[0].target, "/retort");
    cr_expect_str_eq(got.root[1].target, "/y");
}

Test(config, nothing_is_a_configuration_too)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_sandbox_config got = round_trip(&(rt_sandbox_config){ 0 }, &arena);
    cr_expect(got.zygote_count == 0 && got.root_count == 0 && got.pool_max == 0);
    cr_expect_eq(got.max_cells, 64, "as sandbox.h says of 0");
    cr_expect(!got.is_cgroup_required);
}

Test(config, too_many_cells_or_paths_are_refused)
{
    static const rt_root_entry root[65] = { { 0 } };
    rt_buf packed RT_CLEANUP(rt_buf_done) = { 0 };
    rt_error err = { 0 };
    cr_expect(
        !sandbox_config_pack(&(rt_sandbox_config){ .max_cells = RT_CELLS_MAX + 1 }, &packed, &err));
    cr_expect_eq(err.code, RT_INVALID);
    cr_expect_str_eq(err.text, "at most 256 cells at once");
    cr_expect(!sandbox_config_pack(&(rt_sandbox_config){ .root = root, .root_count = 65 }, &packed,
                                   &err));
    cr_expect_eq(err.code, RT_INVALID);
}

Test(config, what_is_no_json_is_refused)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_sandbox_config got;
    rt_error err = { 0 };
    cr_expect(!sandbox_config_unpack(RT_STR("{\"zygotes\":["), &arena, &got, &err));
    cr_expect(rt_str_starts(rt_str_of(err.text), RT_STR("the sandbox's configuration: ")), "%s",
              err.text);
    cr_expect(!sandbox_config_unpack(RT_STR(""), &arena, &got, &err));
}

Test(config, a_text_too_long_to_send_is_an_error)
{
    rt_buf packed RT_CLEANUP(rt_buf_done) = { .max = 40 };
    rt_error err = { 0 };
    cr_expect(!sandbox_config_pack(&(rt_sandbox_config){ 0 }, &packed, &err));
    cr_expect_eq(err.code, RT_LIMIT);
}
