/* SPDX-License-Identifier: Apache-2.0 */
/* On a real shelf, with artifacts of several pieces. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/artifact_view.h"

static char directory[] = "/tmp/retort-view-XXXXXX";
static rt_store *store;
static rt_vault *vault;
static rt_shelf *shelf;
static rt_arena arena;
static rt_artifact_row row;

static void put(rt_str text)
{
    rt_error err = { 0 };
    rt_store_config where = { .url = RT_STR("sqlite::memory:") };
    cr_assert_not_null(mkdtemp(directory));
    cr_assert(rt_store_open(&where, &store, &err), "%s", err.text);
    cr_assert(rt_store_migrate(store, NULL, NULL, &err), "%s", err.text);
    cr_assert(rt_vault_open(rt_arena_printf(&arena, "%s/key", directory).ptr, &vault, &err));
    rt_shelf_config config = { .store = store,
                               .vault = vault,
                               .directory = rt_arena_printf(&arena, "%s/shelf", directory).ptr,
                               .host = RT_STR("here") };
    cr_assert(rt_shelf_open(&config, &shelf, &err), "%s", err.text);
    row = (rt_artifact_row){ .organisation_id = RT_STR(RT_LOCAL_ORGANISATION),
                             .kind = RT_STR("file"),
                             .name = RT_STR("x.txt"),
                             .type = RT_STR("text/plain") };
    cr_assert(rt_artifact_put(shelf, &row, text, &arena, &err), "%s", err.text);
}

static void clear(void)
{
    rt_shelf_closep(&shelf);
    rt_vault_closep(&vault);
    rt_store_closep(&store);
    if (strstr(directory, "XXXXXX") == NULL) {
        char command[128];
        snprintf(command, sizeof(command), "rm -rf '%s'", directory);
        cr_assert_eq(system(command), 0);
    }
    rt_arena_done(&arena);
}

/* What was shown, parsed. */
static rt_json shown(bool ok, const rt_buf *text, const rt_error *err)
{
    rt_json doc;
    cr_assert(ok, "%s", err->text);
    cr_assert(rt_json_parse(rt_buf_str(text), &arena, &doc, NULL));
    return doc;
}

static rt_json lines(uint64_t line, uint64_t count)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_error err = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &text);
    return shown(view_lines(&(view){ shelf, &row, &arena }, line, count, &w, &err), &text, &err);
}

static rt_json search(const char *needle, bool is_case_ignored, uint64_t from, uint64_t max)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_error err = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &text);
    return shown(view_search(&(view){ shelf, &row, &arena }, rt_str_of(needle), is_case_ignored,
                             from, max, &w, &err),
                 &text, &err);
}

static int64_t number(rt_json object, const char *key)
{
    int64_t n = -1;
    rt_json_i64(rt_json_get_c(object, key), &n);
    return n;
}

static rt_str many_lines(size_t count)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    for (size_t i = 1; i <= count; i++)
        rt_buf_addf(&text, "This is line %zu\n", i);
    return rt_arena_str(&arena, rt_buf_str(&text));
}

Test(artifact_view, lines_come_page_by_page, .fini = clear)
{
    put(many_lines(100000));
    rt_json page = lines(99999, 5);
    cr_expect(rt_str_eq_c(rt_json_str(rt_json_get_c(page, "text")),
                          "This is line 99999\nThis is line 100000\n"));
    cr_expect_eq(rt_json_type(rt_json_get_c(page, "next_line")), RT_JSON_NULL);
    page = lines(50000, 2);
    cr_expect(
        rt_str_starts(rt_json_str(rt_json_get_c(page, "text")), RT_STR("This is line 50000\n")));
    cr_expect_eq(number(page, "next_line"), 50002);
    page = lines(200000, 1);
    cr_expect_eq(rt_json_str(rt_json_get_c(page, "text")).len, 0);
}

Test(artifact_view, a_page_has_whole_lines_and_a_limit, .fini = clear)
{
    put(many_lines(100000));
    rt_json page = lines(1, VIEW_LINES_MAX * 10);
    rt_str text = rt_json_str(rt_json_get_c(page, "text"));
    cr_expect_leq(text.len, VIEW_TEXT_MAX);
    cr_expect(rt_str_ends(text, RT_STR("\n")));
    int64_t next = number(page, "next_line");
    cr_assert_gt(next, 1);
    rt_str wanted = rt_arena_printf(&arena, "This is line %lld\n", (long long)next);
    cr_expect(rt_str_eq(rt_json_str(rt_json_get_c(lines((uint64_t)next, 1), "text")), wanted));
}

Test(artifact_view, a_line_too_long_is_cut_and_says_so, .fini = clear)
{
    char *text = rt_arena_alloc(&arena, VIEW_TEXT_MAX * 2);
    memset(text, 'x', VIEW_TEXT_MAX * 2);
    put((rt_str){ text, VIEW_TEXT_MAX * 2 });
    rt_json page = lines(1, 1);
    cr_expect_eq(rt_json_str(rt_json_get_c(page, "text")).len, VIEW_TEXT_MAX);
    cr_expect(rt_json_bool(rt_json_get_c(page, "truncated"), false));
}

Test(artifact_view, a_search_tells_line_and_offset, .fini = clear)
{
    put(many_lines(100000));
    rt_json found = search("line 99999", false, 0, 10);
    rt_json match = rt_json_at(rt_json_get_c(found, "matches"), 0);
    cr_assert_eq(rt_json_count(rt_json_get_c(found, "matches")), 1);
    cr_expect_eq(number(match, "line"), 99999);
    cr_expect(rt_str_eq_c(rt_json_str(rt_json_get_c(match, "text")), "This is line 99999"));
}

Test(artifact_view, a_search_finds_every_match_once_however_the_pieces_fall, .fini = clear)
{
    put(many_lines(50000));
    uint64_t from = 0, count = 0;
    int64_t line = 0;
    while (true) {
        rt_json found = search("THIS IS", true, from, VIEW_MATCHES_MAX);
        rt_json_iter it = rt_json_each(rt_json_get_c(found, "matches"));
        rt_json match;
        while (rt_json_next(&it, NULL, &match)) {
            cr_assert_eq(number(match, "line"), ++line);
            count++;
        }
        if (number(found, "next_offset") < 0)
            break;
        from = (uint64_t)number(found, "next_offset");
    }
    cr_assert_eq(count, 50000);
    cr_assert_eq(rt_json_count(rt_json_get_c(search("THIS IS", false, 0, 5), "matches")), 0);
}

Test(artifact_view, a_path_leads_into_a_document, .fini = clear)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_error err = { 0 };
    rt_json_writer w;
    put(RT_STR("{\"rows\":[{\"id\":1},{\"id\":2}]}"));
    view v = { shelf, &row, &arena };
    rt_json_begin(&w, &text);
    rt_json found = shown(view_json(&v, RT_STR("$.rows[*].id"), &w, &err), &text, &err);
    cr_expect_eq(number(found, "count"), 2);
    cr_expect(!view_json(&v, RT_STR("rows"), &w, &err));
    cr_expect_eq(err.code, RT_INVALID);
}
