/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sample_test.h"

static rt_memory_row sample_memory(const char *id, const char *session)
{
    return (rt_memory_row){ .id = rt_str_of(id),
                            .organisation_id = RT_STR("local"),
                            .user_id = RT_STR("alice"),
                            .session_id = rt_str_of(session),
                            .type = RT_STR("generic"),
                            .safety_class = RT_STR("internal"),
                            .actor_id = RT_STR("agent"),
                            .actor_type = RT_STR("skill"),
                            .content = { "\x00\xff sealed", 9 },
                            .content_hash = RT_STR("c"),
                            .inputs_hash = RT_STR("i"),
                            .tokens = 7,
                            .parents = RT_STR("[\"p\"]"),
                            .created_ms = 1000 };
}

STORE_TEST(memories, a_memory_is_kept_once_and_leaves_its_origin_behind)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_memory_row row = sample_memory("m1", "s"), back, *rows;
    uint64_t first, second;
    size_t count;
    cr_assert(rt_memory_add(store, &row, &first, &err), "%s", err.text);
    cr_expect(!rt_memory_add(store, &row, &second, &err));
    cr_expect_eq(err.code, RT_CONFLICT);
    row = sample_memory("m2", "other");
    cr_assert(rt_memory_add(store, &row, &second, &err), "%s", err.text);
    cr_expect_gt(second, first);
    rt_memory_filter filter = { .organisation_id = RT_STR("local"),
                                .session_id = RT_STR("s"),
                                .limit = 10 };
    cr_assert(rt_memory_rows(store, &filter, &arena, &rows, &count, &err), "%s", err.text);
    cr_assert_eq(count, 1u);
    cr_expect_eq(rows[0].content.len, 9u);
    cr_expect_eq(rows[0].number, first);
    cr_assert(rt_memory_remove(store, RT_STR("local"), RT_STR("m1"), 2000, &err), "%s", err.text);
    cr_assert(rt_memory_rows(store, &filter, &arena, &rows, &count, &err));
    cr_expect_eq(count, 0u);
    cr_assert(rt_memory_find(store, RT_STR("local"), RT_STR("m1"), &arena, &back, &err));
    cr_expect_eq(back.content.len, 0u);
    cr_expect(rt_str_eq_c(back.parents, "[\"p\"]"));
    cr_expect(!rt_memory_find(store, RT_STR("others"), RT_STR("m1"), &arena, &back, &err));
    cr_expect_eq(err.code, RT_NOT_FOUND);
}

STORE_TEST(memories, an_approval_is_used_once_and_in_time)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_approval_row row = { .id = RT_STR("appr_1"),
                            .organisation_id = RT_STR("local"),
                            .operation = RT_STR("skills:x@1.0.0"),
                            .status = RT_STR("pending"),
                            .created_ms = 1000,
                            .expires_ms = 5000 };
    cr_assert(rt_approval_add(store, &row, &err), "%s", err.text);
    cr_expect(!rt_approval_use(store, row.id, RT_STR("run"), 2000, &err), "it is pending");
    cr_assert(rt_approval_decide(store, RT_STR("local"), row.id, RT_STR("approved"), RT_STR("bob"),
                                 RT_STR(""), 2000, &arena, &row, &err),
              "%s", err.text);
    cr_expect(!rt_approval_use(store, row.id, RT_STR("run"), 6000, &err), "it is too late");
    err = (rt_error){ 0 };
    cr_expect(rt_approval_use(store, row.id, RT_STR("run"), 3000, &err), "%s", err.text);
    cr_expect(!rt_approval_use(store, row.id, RT_STR("run2"), 3000, &err));
    cr_expect_eq(err.code, RT_CONFLICT);
}
