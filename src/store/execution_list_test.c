/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sample_test.h"
#include "store/tables_internal.h"

#include <stdio.h>

/* Runs exec_000 …, three to a millisecond, every fourth FAILED. */
static void record_runs(rt_store *store, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char id[32];
        snprintf(id, sizeof(id), "exec_%03u", i);
        rt_execution_row row = sample_run(id, "local");
        row.created_ms = SAMPLE_MS + i / 3;
        row.status = i % 4 ? RT_STR("SUCCESS") : RT_STR("FAILED");
        row.kept_output = RT_STR("large");
        sample_record(store, &row);
    }
}

STORE_TEST(execution_list, pages_show_every_run_once_newest_first)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    record_runs(store, 50);
    rt_execution_filter filter = { .organisation_id = RT_STR("local"), .limit = 7 };
    unsigned seen = 0;
    do {
        rt_execution_row *rows;
        size_t count;
        cr_assert(rt_execution_list(store, &filter, &arena, &rows, &count, &filter.cursor, &err),
                  "%s", err.text);
        for (size_t i = 0; i < count; i++, seen++) {
            char expected[32];
            snprintf(expected, sizeof(expected), "exec_%03u", 49 - seen);
            cr_expect(rt_str_eq_c(rows[i].id, expected), "%.*s", RT_FMT(rows[i].id));
            cr_expect_null(rows[i].kept_output.ptr);
        }
    } while (filter.cursor.len);
    cr_expect_eq(seen, 50);
}

STORE_TEST(execution_list, a_page_that_takes_the_last_row_has_no_next)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_execution_row *rows;
    size_t count;
    rt_str next;
    record_runs(store, 5);
    rt_execution_filter filter = { .limit = 5 };
    cr_assert(rt_execution_list(store, &filter, &arena, &rows, &count, &next, &err));
    cr_expect_eq(count, 5);
    cr_expect_eq(next.len, 0);
}

STORE_TEST(execution_list, filters_narrow_and_do_not_become_statements)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    record_runs(store, 12);
    const struct {
        rt_execution_filter filter;
        size_t count;
    } cases[] = {
        { { .organisation_id = RT_STR("local") }, 12 },
        { { .organisation_id = RT_STR("nobody") }, 0 },
        { { .status = RT_STR("FAILED") }, 3 },
        { { .status = RT_STR("FAILED' OR '1'='1") }, 0 },
        { { .language = RT_STR("python"), .user_id = RT_STR("alice") }, 12 },
        { { .session_id = RT_STR("ses_2") }, 0 },
        { { .agent_type = RT_STR("claude"), .session_id = RT_STR("ses_1") }, 12 },
        { { .tool_id = RT_STR("t") }, 0 },
        { { .code_agent_id = RT_STR("c") }, 0 },
        { { .since_ms = SAMPLE_MS + 1 }, 9 },
        { { .since_ms = SAMPLE_MS + 1, .until_ms = SAMPLE_MS + 2 }, 3 },
    };
    for (size_t i = 0; i < RT_COUNT(cases); i++) {
        rt_execution_row *rows;
        size_t count;
        rt_str next;
        cr_assert(rt_execution_list(store, &cases[i].filter, &arena, &rows, &count, &next, &err),
                  "%s", err.text);
        cr_expect_eq(count, cases[i].count, "case %zu: %zu", i, count);
    }
}

STORE_TEST(execution_list, a_cursor_that_is_not_ours_and_a_limit_too_high_are_refused)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_execution_row *rows;
    size_t count;
    rt_str next;
    const rt_execution_filter filters[] = {
        { .cursor = RT_STR("x") },
        { .cursor = RT_STR("00000000000000") },
        { .cursor = RT_STR("0000000000000001") },   /* no id */
        { .cursor = RT_STR("00000000000000010") },  /* half a byte */
        { .cursor = RT_STR("000000000000000100") }, /* a NUL byte */
        { .cursor = RT_STR("0000000000000001ff") }, /* no UTF-8 */
        { .cursor = RT_STR("ffffffffffffffff61") }, /* past all times */
        { .cursor = RT_STR("000000000000000G61") },
        { .limit = 501 },
    };
    for (size_t i = 0; i < RT_COUNT(filters); i++) {
        rt_error err = { 0 };
        cr_expect_not(rt_execution_list(store, &filters[i], &arena, &rows, &count, &next, &err));
        cr_expect_eq(err.code, RT_INVALID, "case %zu", i);
    }
}

Test(execution_list, a_cursor_reads_back)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    store_cursor at = { SAMPLE_MS, RT_STR("exec_1794713017123_9f86d081884c7d65") }, back;
    cr_assert(store_cursor_parse(store_cursor_write(at, &arena), &arena, &back, &err), "%s",
              err.text);
    cr_expect_eq(back.created_ms, at.created_ms);
    cr_expect(rt_str_eq(back.id, at.id));
}
