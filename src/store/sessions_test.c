/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sample_test.h"

static rt_session_row sample_session(const char *id, const char *status, uint64_t created_ms)
{
    return (rt_session_row){
        .id = rt_str_of(id),
        .organisation_id = RT_STR("local"),
        .user_id = RT_STR("alice"),
        .host = RT_STR("node-a"),
        .host_url = RT_STR("http://node-a:8002"),
        .language = RT_STR("python"),
        .status = rt_str_of(status),
        .created_ms = created_ms,
        .expires_ms = created_ms + 60000,
    };
}

STORE_TEST(sessions, a_saved_session_is_found_and_can_be_changed)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_session_row row = sample_session("ses_1", "ACTIVE", 1000), back;
    cr_assert(rt_session_save(store, &row, &err), "%s", err.text);
    row.status = RT_STR("ENDED");
    row.ended_ms = 2000;
    row.executions = 7;
    row.created_ms = 1; /* stays as it was */
    cr_assert(rt_session_save(store, &row, &err), "%s", err.text);
    cr_assert(rt_session_find(store, RT_STR("local"), row.id, &arena, &back, &err), "%s", err.text);
    cr_expect(rt_str_eq_c(back.status, "ENDED"));
    cr_expect(rt_str_eq_c(back.host_url, "http://node-a:8002"));
    cr_expect_eq(back.executions, 7);
    cr_expect_eq(back.ended_ms, 2000);
    cr_expect_eq(back.created_ms, 1000);
    cr_expect_null(back.parent_id.ptr);
}

STORE_TEST(sessions, another_organisation_neither_finds_nor_changes_a_session)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    sample_organisation(store, "other");
    rt_session_row row = sample_session("ses_1", "ACTIVE", 1000), back;
    cr_assert(rt_session_save(store, &row, &err), "%s", err.text);
    cr_expect_not(rt_session_find(store, RT_STR("other"), row.id, &arena, &back, &err));
    cr_expect_eq(err.code, RT_NOT_FOUND);
    row.organisation_id = RT_STR("other");
    cr_expect_not(rt_session_save(store, &row, &err));
    cr_expect_eq(err.code, RT_CONFLICT);
}

STORE_TEST(sessions, a_status_that_is_none_is_refused)
{
    rt_error err = { 0 };
    rt_session_row row = sample_session("ses_1", "ASLEEP", 1000);
    cr_expect_not(rt_session_save(store, &row, &err));
    cr_expect_eq(err.code, RT_INVALID);
}

STORE_TEST(sessions, active_ones_come_first_and_a_restart_loses_those_of_the_host)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_session_row saved[] = {
        sample_session("old", "ACTIVE", 1000),
        sample_session("ended", "ENDED", 3000),
        sample_session("new", "ACTIVE", 2000),
        sample_session("elsewhere", "ACTIVE", 500),
    };
    saved[3].host = RT_STR("node-b");
    for (size_t i = 0; i < RT_COUNT(saved); i++)
        cr_assert(rt_session_save(store, &saved[i], &err), "%s", err.text);
    rt_session_row *rows;
    size_t count;
    cr_assert(rt_session_rows(store, RT_STR("local"), RT_STR(""), 0, &arena, &rows, &count, &err));
    static const char *const order[] = { "new", "old", "elsewhere", "ended" };
    cr_assert_eq(count, RT_COUNT(order));
    for (size_t i = 0; i < count; i++)
        cr_expect(rt_str_eq_c(rows[i].id, order[i]), "%.*s", RT_FMT(rows[i].id));
    uint64_t lost;
    cr_assert(rt_session_recover(store, RT_STR("node-a"), 9000, &lost, &err), "%s", err.text);
    cr_expect_eq(lost, 2);
    cr_assert(
        rt_session_rows(store, RT_STR("local"), RT_STR("LOST"), 0, &arena, &rows, &count, &err));
    cr_assert_eq(count, 2);
    cr_expect_eq(rows[0].ended_ms, 9000);
}
