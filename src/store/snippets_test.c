/* SPDX-License-Identifier: Apache-2.0 */
#include "store/fixture_test.h"

#include <math.h>

#include "store/snippets.h"

static rt_snippet a_snippet(const char *id, const char *name)
{
    return (rt_snippet){ .id = rt_str_of(id),
                         .organisation_id = RT_STR("local"),
                         .user_id = RT_STR("ann"),
                         .name = rt_str_of(name),
                         .code = RT_STR("return 1"),
                         .language = RT_STR("python"),
                         .success_rate = 100,
                         .created_ms = 1000,
                         .updated_ms = 1000 };
}

STORE_TEST(snippets, have_their_name_alone)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_snippet first = a_snippet("snippet_1", "sum"), second = a_snippet("snippet_2", "sum"), out;
    cr_assert(rt_snippet_add(store, &first, false, &err), "%s", err.text);
    cr_assert(!rt_snippet_add(store, &second, false, &err));
    cr_assert(err.code == RT_CONFLICT && strstr(err.text, "'sum'"), "%s", err.text);
    cr_assert(rt_snippet_find(store, RT_STR("local"), RT_STR("sum"), &arena, &out, &err));
    cr_assert(rt_str_eq_c(out.id, "snippet_1") && rt_str_eq_c(out.category, "general") &&
              rt_str_eq_c(out.tags, "[]") && rt_str_eq_c(out.steps, "[]"));
    cr_assert(!rt_snippet_find(store, RT_STR("rival"), RT_STR("sum"), &arena, &out, &err));
    cr_assert(err.code == RT_NOT_FOUND && strcmp(err.text, "Snippet not found: sum") == 0);
}

STORE_TEST(snippets, that_are_replaced_are_counted_anew)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_snippet first = a_snippet("snippet_1", "sum"), second = a_snippet("snippet_2", "sum"), out;
    cr_assert(rt_snippet_add(store, &first, false, &err), "%s", err.text);
    cr_assert(rt_snippet_ran(store, RT_STR("local"), RT_STR("sum"), false, 5, 0, 1500, &err));
    second.code = RT_STR("return 2");
    cr_assert(rt_snippet_add(store, &second, true, &err), "%s", err.text);
    cr_assert(rt_snippet_find(store, RT_STR("local"), RT_STR("sum"), &arena, &out, &err));
    cr_assert(rt_str_eq_c(out.id, "snippet_1") && rt_str_eq_c(out.code, "return 2"));
    cr_assert(out.runs == 0 && out.success_rate == 100);
}

STORE_TEST(snippets, count_their_uses_and_runs)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_snippet s = a_snippet("snippet_1", "sum"), out;
    uint64_t runs, successes;
    cr_assert(rt_snippet_add(store, &s, false, &err), "%s", err.text);
    cr_assert(rt_snippet_take(store, RT_STR("local"), RT_STR("sum"), 2000, &arena, &out, &err));
    cr_assert(out.usage_count == 1 && out.last_used_ms == 2000);
    for (int i = 0; i < 4; i++)
        cr_assert(rt_snippet_ran(store, RT_STR("local"), RT_STR("sum"), i != 2, 10.0 * (i + 1),
                                 0.5 * (i + 1), 3000, &err),
                  "%s", err.text);
    cr_assert(rt_snippet_find(store, RT_STR("local"), RT_STR("sum"), &arena, &out, &err));
    cr_assert(out.runs == 4 && out.successes == 3 && fabs(out.success_rate - 75) < 1e-9);
    cr_assert(fabs(out.average_exec_ms - 25) < 1e-9 && fabs(out.average_cost_usd - 1.25) < 1e-9);
    cr_assert(rt_snippet_totals(store, RT_STR("local"), &runs, &successes, &err), "%s", err.text);
    cr_assert(runs == 4 && successes == 3);
}

STORE_TEST(snippets, are_listed_by_category_and_page)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    static const char *const names[] = { "b", "C", "a" };
    rt_snippet *rows;
    size_t count;
    for (size_t i = 0; i < RT_COUNT(names); i++) {
        rt_snippet s = a_snippet(names[i], names[i]);
        s.category = i == 0 ? RT_STR("data") : RT_STR("");
        cr_assert(rt_snippet_add(store, &s, false, &err), "%s", err.text);
    }
    cr_assert(rt_snippet_list(store, RT_STR("local"), RT_STR(""), RT_STR(""), 2, &arena, &rows,
                              &count, &err));
    cr_assert(count == 2 && rt_str_eq_c(rows[0].name, "C") && rt_str_eq_c(rows[1].name, "a"));
    cr_assert(rt_snippet_list(store, RT_STR("local"), RT_STR(""), rows[1].name, 2, &arena, &rows,
                              &count, &err));
    cr_assert(count == 1 && rt_str_eq_c(rows[0].name, "b"));
    cr_assert(rt_snippet_list(store, RT_STR("local"), RT_STR("data"), RT_STR(""), 2, &arena, &rows,
                              &count, &err));
    cr_assert_eq(count, 1);
}

STORE_TEST(snippets, go_and_samples_come_once)
{
    rt_error err = { 0 };
    rt_snippet s = a_snippet("snippet_1", "sum");
    bool is_new;
    cr_assert(rt_snippet_add(store, &s, false, &err), "%s", err.text);
    cr_assert(rt_snippet_remove(store, RT_STR("local"), RT_STR("sum"), &err), "%s", err.text);
    cr_assert(!rt_snippet_remove(store, RT_STR("local"), RT_STR("sum"), &err));
    cr_assert_eq(err.code, RT_NOT_FOUND);
    cr_assert(rt_snippet_welcome(store, RT_STR("local"), &is_new, &err) && is_new);
    cr_assert(rt_snippet_welcome(store, RT_STR("local"), &is_new, &err) && !is_new);
}
