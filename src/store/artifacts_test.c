/* SPDX-License-Identifier: Apache-2.0 */
#include "store/artifacts.h"
#include "store/fixture_test.h"

#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE  65536
#define MARKER "MARKER-THAT-MUST-NOT-BE-READABLE"
#define HOUR   (UINT64_C(3600) * 1000)

typedef struct shelf_fixture {
    char directory[96];
    rt_vault *vault;
    rt_shelf *shelf;
    rt_arena arena;
    rt_error err;
} shelf_fixture;

static void shelf_done(shelf_fixture *at)
{
    rt_shelf_closep(&at->shelf);
    rt_vault_closep(&at->vault);
    rt_arena_done(&at->arena);
}

static void shelf_open(shelf_fixture *at, rt_store *store, const store_fixture *where,
                       uint64_t max_bytes)
{
    char key[96];
    snprintf(key, sizeof(key), "%s/key", where->directory);
    snprintf(at->directory, sizeof(at->directory), "%s/artifacts", where->directory);
    cr_assert(rt_vault_open(key, &at->vault, &at->err), "%s", at->err.text);
    rt_shelf_config config = { .store = store,
                               .vault = at->vault,
                               .directory = at->directory,
                               .host = RT_STR("node-1"),
                               .max_bytes = max_bytes };
    cr_assert(rt_shelf_open(&config, &at->shelf, &at->err), "%s", at->err.text);
}

static rt_artifact_row put(shelf_fixture *at, const char *name, rt_str data)
{
    rt_artifact_row row = { .organisation_id = RT_STR("local"),
                            .user_id = RT_STR("alice"),
                            .execution_id = RT_STR("exec_1"),
                            .name = rt_str_of(name) };
    cr_assert(rt_artifact_put(at->shelf, &row, data, &at->arena, &at->err), "%s", at->err.text);
    return row;
}

static const char *path_of(shelf_fixture *at, rt_str id)
{
    return rt_arena_printf(&at->arena, "%s/%.2s/%.*s", at->directory, id.ptr + id.len - 2,
                           RT_FMT(id))
        .ptr;
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static rt_str sample(shelf_fixture *at, size_t len)
{
    char *text = rt_arena_alloc(&at->arena, len + 1);
    for (size_t i = 0; i < len; i++)
        text[i] = (char)(i * 31 + i / 251);
    return (rt_str){ text, len };
}

/* The age a file seems to have, by the clock we give to the sweep. */
static uint64_t now_after(uint64_t ms)
{
    return rt_wall_ms() + ms;
}

STORE_TEST(artifacts, what_was_put_is_found_listed_and_read)
{
    shelf_fixture at RT_CLEANUP(shelf_done) = { 0 };
    shelf_open(&at, store, where, 0);
    rt_artifact_row row = put(&at, "report.csv", RT_STR("a,b\n1,2\n")), found, *list;
    rt_str data;
    size_t count;
    cr_assert(rt_str_eq_c(row.kind, "file") && rt_str_eq_c(row.type, "text/csv"));
    cr_assert(rt_str_eq_c(row.host, "node-1"));
    cr_assert_eq(row.expires_ms - row.created_ms, 24 * HOUR);
    cr_assert(rt_artifact_find(at.shelf, RT_STR("local"), row.id, &at.arena, &found, &at.err), "%s",
              at.err.text);
    char hash[RT_SHA256_HEX];
    rt_sha256_hex(RT_STR("a,b\n1,2\n"), hash);
    cr_assert(rt_str_eq_c(found.sha256, hash));
    cr_assert_eq(found.size, 8);
    cr_assert_null(found.session_id.ptr);
    cr_assert(rt_artifact_read(at.shelf, &found, 0, SIZE_MAX, &at.arena, &data, &at.err), "%s",
              at.err.text);
    cr_assert(rt_str_eq_c(data, "a,b\n1,2\n"));
    put(&at, "other.txt", RT_STR(""));
    cr_assert(rt_artifact_list(at.shelf, RT_STR("local"), RT_STR("exec_1"), &at.arena, &list,
                               &count, &at.err));
    cr_assert_eq(count, 2);
    cr_assert(rt_str_eq(list[0].id, row.id) || rt_str_eq(list[1].id, row.id)); /* in one ms: either */
}

STORE_TEST(artifacts, any_range_can_be_read_across_the_borders_of_pieces)
{
    shelf_fixture at RT_CLEANUP(shelf_done) = { 0 };
    shelf_open(&at, store, where, 0);
    static const size_t sizes[] = { 0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE + 17 };
    static const uint64_t starts[] = {
        0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE - 1, 2 * PIECE, 3 * PIECE + 16, 1u << 30
    };
    static const size_t lengths[] = { 0, 1, 2, PIECE - 1, PIECE, PIECE + 2, SIZE_MAX };
    for (size_t s = 0; s < RT_COUNT(sizes); s++) {
        rt_str all = sample(&at, sizes[s]), part;
        rt_artifact_row row = put(&at, "x", all);
        for (size_t f = 0; f < RT_COUNT(starts); f++) {
            for (size_t l = 0; l < RT_COUNT(lengths); l++) {
                cr_assert(rt_artifact_read(at.shelf, &row, starts[f], lengths[l], &at.arena, &part,
                                           &at.err),
                          "%s", at.err.text);
                rt_str rest = rt_str_slice(all, starts[f], all.len);
                cr_assert(rt_str_eq(part, rt_str_slice(rest, 0, lengths[l])), "%zu: %llu+%zu",
                          sizes[s], (unsigned long long)starts[f], lengths[l]);
            }
        }
    }
}

static void change_byte(const char *path, off_t at)
{
    char c;
    int fd = open(path, O_RDWR);
    cr_assert_eq(pread(fd, &c, 1, at), 1);
    c ^= 1;
    cr_assert_eq(pwrite(fd, &c, 1, at), 1);
    close(fd);
}

STORE_TEST(artifacts, a_changed_cut_or_swapped_file_is_noticed)
{
    shelf_fixture at RT_CLEANUP(shelf_done) = { 0 };
    shelf_open(&at, store, where, 0);
    rt_artifact_row row = put(&at, "x", sample(&at, 2 * PIECE)), other;
    rt_str data;
    change_byte(path_of(&at, row.id), PIECE + 100); /* in the second piece */
    cr_assert(rt_artifact_read(at.shelf, &row, 0, PIECE, &at.arena, &data, &at.err));
    cr_assert(!rt_artifact_read(at.shelf, &row, 0, PIECE + 1, &at.arena, &data, &at.err));
    cr_assert_eq(at.err.code, RT_DENIED);
    change_byte(path_of(&at, row.id), PIECE + 100);
    cr_assert(rt_artifact_read(at.shelf, &row, PIECE, 1, &at.arena, &data, &at.err));
    cr_assert_eq(truncate(path_of(&at, row.id), PIECE + 29), 0);
    cr_assert(!rt_artifact_read(at.shelf, &row, PIECE, 1, &at.arena, &data, &at.err));
    other = put(&at, "y", sample(&at, 2 * PIECE));
    cr_assert_eq(rename(path_of(&at, other.id), path_of(&at, row.id)), 0);
    cr_assert(!rt_artifact_read(at.shelf, &row, 0, 1, &at.arena, &data, &at.err));
    cr_assert(!rt_artifact_read(at.shelf, &other, 0, 1, &at.arena, &data, &at.err));
    cr_assert_eq(at.err.code, RT_NOT_FOUND);
}

static unsigned files_seen, marked_files;

static int look_for_marker(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)ftw;
    if (type != FTW_F)
        return 0;
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_str text;
    cr_assert(rt_read_file(path, 1 << 26, &arena, &text, &err), "%s", err.text);
    files_seen++;
    marked_files += rt_str_find(text, RT_STR(MARKER)) >= 0;
    cr_assert_eq(st->st_mode & 077, 0, "%s", path);
    return 0;
}

STORE_TEST(artifacts, the_bytes_are_nowhere_in_the_clear)
{
    shelf_fixture at RT_CLEANUP(shelf_done) = { 0 };
    umask(0);
    shelf_open(&at, store, where, 0);
    put(&at, "x", RT_STR("before " MARKER " after"));
    files_seen = marked_files = 0;
    cr_assert_eq(nftw(where->directory, look_for_marker, 8, FTW_PHYS), 0);
    cr_assert_gt(files_seen, 1);
    cr_assert_eq(marked_files, 0);
}

STORE_TEST(artifacts, belong_to_their_organisation)
{
    shelf_fixture at RT_CLEANUP(shelf_done) = { 0 };
    shelf_open(&at, store, where, 0);
    rt_artifact_row row = put(&at, "x", RT_STR("data")), found;
    cr_assert(!rt_artifact_find(at.shelf, RT_STR("other"), row.id, &at.arena, &found, &at.err));
    cr_assert_eq(at.err.code, RT_NOT_FOUND);
    cr_assert(!rt_artifact_remove(at.shelf, RT_STR("other"), row.id, &at.err));
    cr_assert_eq(at.err.code, RT_NOT_FOUND);
    cr_assert(exists(path_of(&at, row.id)));
    cr_assert(rt_artifact_remove(at.shelf, RT_STR("local"), row.id, &at.err), "%s", at.err.text);
    cr_assert(!exists(path_of(&at, row.id)));
    cr_assert(!rt_artifact_find(at.shelf, RT_STR("local"), row.id, &at.arena, &found, &at.err));
}

STORE_TEST(artifacts, an_id_that_is_not_ours_names_no_file)
{
    shelf_fixture at RT_CLEANUP(shelf_done) = { 0 };
    shelf_open(&at, store, where, 0);
    static const char *const ids[] = { "",           "../../key",     "art_1_../../../key",
                                       "art__aa",    "art_1_",        "art_1_a",
                                       "art_1_zz",   "art_1_aabb_cc", "exec_1_aabb",
                                       "art_1_AABB", "art_1x_aabb" };
    for (size_t i = 0; i < RT_COUNT(ids); i++) {
        rt_artifact_row row = { .id = rt_str_of(ids[i]), .host = RT_STR("node-1"), .size = 1 };
        rt_str data;
        cr_assert(!rt_artifact_read(at.shelf, &row, 0, 1, &at.arena, &data, &at.err));
        cr_assert_eq(at.err.code, RT_NOT_FOUND, "%s", ids[i]);
        rt_artifact_drop(at.shelf, row.id);
    }
    cr_assert(exists(rt_arena_printf(&at.arena, "%s/key", where->directory).ptr));
}

STORE_TEST(artifacts, the_bytes_of_another_node_are_not_looked_for_here)
{
    shelf_fixture at RT_CLEANUP(shelf_done) = { 0 };
    shelf_open(&at, store, where, 0);
    rt_artifact_row row = put(&at, "x", RT_STR("data"));
    rt_str data;
    row.host = RT_STR("node-2");
    cr_assert(!rt_artifact_read(at.shelf, &row, 0, 1, &at.arena, &data, &at.err));
    cr_assert_eq(at.err.code, RT_UNAVAILABLE);
}

STORE_TEST(artifacts, a_row_that_cannot_be_written_leaves_no_file)
{
    shelf_fixture at RT_CLEANUP(shelf_done) = { 0 };
    shelf_open(&at, store, where, 0);
    rt_artifact_row row = { .organisation_id = RT_STR("nobody"), .name = RT_STR("x") };
    cr_assert(!rt_artifact_put(at.shelf, &row, RT_STR(MARKER), &at.arena, &at.err));
    cr_assert_eq(at.err.code, RT_CONFLICT);
    cr_assert_null(row.id.ptr);
    files_seen = 0;
    cr_assert_eq(nftw(at.directory, look_for_marker, 8, FTW_PHYS), 0);
    cr_assert_eq(files_seen, 0);
}

STORE_TEST(artifacts, the_sweep_removes_what_has_expired)
{
    shelf_fixture at RT_CLEANUP(shelf_done) = { 0 };
    shelf_open(&at, store, where, 0);
    rt_artifact_row row = put(&at, "x", RT_STR("data")), found;
    uint64_t removed;
    cr_assert(rt_shelf_sweep(at.shelf, now_after(23 * HOUR), &removed, &at.err), "%s", at.err.text);
    cr_assert_eq(removed, 0);
    cr_assert(exists(path_of(&at, row.id)));
    cr_assert(rt_shelf_sweep(at.shelf, now_after(25 * HOUR), &removed, &at.err), "%s", at.err.text);
    cr_assert_eq(removed, 1);
    cr_assert(!exists(path_of(&at, row.id)));
    cr_assert(!rt_artifact_find(at.shelf, RT_STR("local"), row.id, &at.arena, &found, &at.err));
}

STORE_TEST(artifacts, one_that_has_expired_is_not_found_before_the_sweep)
{
    shelf_fixture at RT_CLEANUP(shelf_done) = { 0 };
    shelf_open(&at, store, where, 0);
    rt_artifact_row row = put(&at, "x", RT_STR("data")), found, *list;
    size_t count;
    cr_assert(rt_sql_once(store, RT_TX_WRITE, "UPDATE artifacts SET expires_ms = 1", NULL, 0, NULL,
                          NULL, &at.err));
    cr_assert(!rt_artifact_find(at.shelf, RT_STR("local"), row.id, &at.arena, &found, &at.err));
    cr_assert(rt_artifact_list(at.shelf, RT_STR("local"), RT_STR("exec_1"), &at.arena, &list,
                               &count, &at.err));
    cr_assert_eq(count, 0);
}

STORE_TEST(artifacts, a_full_shelf_lets_the_oldest_go)
{
    shelf_fixture at RT_CLEANUP(shelf_done) = { 0 };
    shelf_open(&at, store, where, 1000);
    rt_artifact_row rows[5];
    for (size_t i = 0; i < 5; i++) {
        rows[i] = put(&at, "x", sample(&at, 300));
        rt_sql_value age[] = { rt_sql_text(rows[i].id), rt_sql_i64((int64_t)i) };
        cr_assert(rt_sql_once(store, RT_TX_WRITE,
                              "UPDATE artifacts SET created_ms = $2 WHERE id = $1", age, 2, NULL,
                              NULL, &at.err));
    }
    for (size_t i = 0; i < 5; i++)
        cr_assert_eq(exists(path_of(&at, rows[i].id)), i >= 2, "%zu", i);
    rt_artifact_row big = { .organisation_id = RT_STR("local"), .name = RT_STR("big") };
    cr_assert(!rt_artifact_put(at.shelf, &big, sample(&at, 1001), &at.arena, &at.err));
    cr_assert_eq(at.err.code, RT_LIMIT);
    rt_shelf_closep(&at.shelf);
    shelf_fixture smaller RT_CLEANUP(shelf_done) = { 0 };
    shelf_open(&smaller, store, where, 500);
    uint64_t removed;
    cr_assert(rt_shelf_sweep(smaller.shelf, now_after(0), &removed, &at.err), "%s", at.err.text);
    cr_assert_eq(removed, 2);
    cr_assert(exists(path_of(&at, rows[4].id)));
}

static void write_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    cr_assert_geq(fd, 0, "%s", path);
    close(fd);
}

STORE_TEST(artifacts, the_sweep_removes_files_nobody_knows_once_they_are_old)
{
    shelf_fixture at RT_CLEANUP(shelf_done) = { 0 };
    shelf_open(&at, store, where, 0);
    rt_artifact_row known = put(&at, "x", RT_STR("data"));
    const char *directory = rt_arena_printf(&at.arena, "%s/ab", at.directory).ptr;
    mkdir(directory, 0700);
    for (int i = 0; i < 70; i++)
        write_file(rt_arena_printf(&at.arena, "%s/art_1_%04xab", directory, i).ptr);
    write_file(rt_arena_printf(&at.arena, "%s/art_1_aaab.part", directory).ptr);
    uint64_t removed;
    cr_assert(rt_shelf_sweep(at.shelf, now_after(HOUR / 60 * 9), &removed, &at.err));
    cr_assert_eq(removed, 0);
    cr_assert(rt_shelf_sweep(at.shelf, now_after(HOUR / 60 * 11), &removed, &at.err));
    cr_assert_eq(removed, 71);
    cr_assert(exists(path_of(&at, known.id)));
}

typedef struct putter {
    rt_shelf *shelf;
    unsigned failures;
} putter;

static void *put_many(void *ctx)
{
    putter *self = ctx;
    for (int i = 0; i < 20; i++) {
        rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
        rt_error err = { 0 };
        rt_artifact_row row = { .organisation_id = RT_STR("local"), .name = RT_STR("x") };
        rt_str data;
        self->failures += !rt_artifact_put(self->shelf, &row, RT_STR("some data"), &arena, &err) ||
                          !rt_artifact_read(self->shelf, &row, 0, 9, &arena, &data, &err) ||
                          !rt_artifact_remove(self->shelf, RT_STR("local"), row.id, &err);
    }
    return NULL;
}

STORE_TEST(artifacts, several_threads_may_use_a_shelf)
{
    enum { PUTTERS = 4 };
    shelf_fixture at RT_CLEANUP(shelf_done) = { 0 };
    shelf_open(&at, store, where, 0);
    pthread_t threads[PUTTERS];
    putter putters[PUTTERS];
    for (size_t i = 0; i < PUTTERS; i++) {
        putters[i] = (putter){ .shelf = at.shelf };
        pthread_create(&threads[i], NULL, put_many, &putters[i]);
    }
    for (size_t i = 0; i < PUTTERS; i++) {
        pthread_join(threads[i], NULL);
        cr_assert_eq(putters[i].failures, 0);
    }
    files_seen = 0;
    cr_assert_eq(nftw(at.directory, look_for_marker, 8, FTW_PHYS), 0);
    cr_assert_eq(files_seen, 0);
}
