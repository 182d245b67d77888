#include "store/fixture_test.h"

#include "store/approvals.h"

static rt_approval_row a_question(const char *id)
{
    return (rt_approval_row){ .id = rt_str_of(id),
                              .organisation_id = RT_STR("local"),
                              .user_id = RT_STR("ann"),
                              .execution_id = RT_STR("exec_1"),
                              .host = RT_STR("here"),
                              .operation = RT_STR("github:delete_repository"),
                              .arguments = RT_STR("sealed\0bytes"),
                              .status = RT_STR("pending"),
                              .created_ms = 1000,
                              .expires_ms = 5000 };
}

STORE_TEST(approvals, are_decided_once)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_approval_row row = a_question("appr_1"), out;
    cr_assert(rt_approval_add(store, &row, &err), "%s", err.text);
    cr_assert(rt_approval_find(store, RT_STR("local"), row.id, &arena, &out, &err), "%s", err.text);
    cr_assert(rt_str_eq(out.arguments, row.arguments) && rt_str_eq_c(out.priority, "normal"));
    cr_assert(rt_approval_decide(store, RT_STR("local"), row.id, RT_STR("approved"), RT_STR("bob"),
                                 RT_STR("fine"), 2000, &arena, &out, &err),
              "%s", err.text);
    cr_assert(rt_str_eq_c(out.status, "approved") && rt_str_eq_c(out.decided_by, "bob"));
    cr_assert_eq(out.decided_ms, 2000);
    cr_assert(!rt_approval_decide(store, RT_STR("local"), row.id, RT_STR("rejected"), RT_STR("eve"),
                                  RT_STR(""), 2001, &arena, &out, &err));
    cr_assert(err.code == RT_CONFLICT && strstr(err.text, "approved"));
}

STORE_TEST(approvals, come_too_late_after_their_time)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_approval_row row = a_question("appr_2"), out;
    uint64_t count;
    cr_assert(rt_approval_add(store, &row, &err), "%s", err.text);
    cr_assert(!rt_approval_decide(store, RT_STR(""), row.id, RT_STR("approved"), RT_STR("bob"),
                                  RT_STR(""), 5000, &arena, &out, &err));
    cr_assert(err.code == RT_CONFLICT && strstr(err.text, "expired"));
    cr_assert(rt_approval_expire(store, 5000, &count, &err), "%s", err.text);
    cr_assert_eq(count, 1);
    cr_assert(rt_approval_find(store, RT_STR(""), row.id, &arena, &out, &err));
    cr_assert(rt_str_eq_c(out.status, "expired"));
}

STORE_TEST(approvals, are_seen_by_their_organisation_only)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_approval_row row = a_question("appr_3"), out, *rows;
    size_t count;
    cr_assert(rt_approval_add(store, &row, &err), "%s", err.text);
    cr_assert(!rt_approval_find(store, RT_STR("rival"), row.id, &arena, &out, &err));
    cr_assert_eq(err.code, RT_NOT_FOUND);
    cr_assert(!rt_approval_decide(store, RT_STR("rival"), row.id, RT_STR("approved"), RT_STR("eve"),
                                  RT_STR(""), 2000, &arena, &out, &err));
    cr_assert(rt_approval_list(store, RT_STR("rival"), RT_STR(""), 0, &arena, &rows, &count, &err));
    cr_assert_eq(count, 0);
    cr_assert(rt_approval_list(store, RT_STR("local"), RT_STR("pending"), 0, &arena, &rows, &count,
                               &err));
    cr_assert_eq(count, 1);
}

STORE_TEST(approvals, of_a_node_that_restarted_are_cancelled)
{
    rt_error err = { 0 };
    rt_approval_row mine = a_question("appr_4"), other = a_question("appr_5");
    uint64_t count;
    other.host = RT_STR("there");
    cr_assert(rt_approval_add(store, &mine, &err) && rt_approval_add(store, &other, &err));
    cr_assert(rt_approval_recover(store, RT_STR("here"), 3000, &count, &err), "%s", err.text);
    cr_assert_eq(count, 1);
}
