/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/sandbox_internal.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/retort-files-XXXXXX";
static int root = -1;

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

static void begin(void)
{
    cr_assert(mkdtemp(folder));
    root = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cr_assert_geq(root, 0);
}

static void end(void)
{
    close(root);
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(files, .init = begin, .fini = end);

static bool put(const char *path, rt_str text, rt_error *err)
{
    int data RT_CLEANUP(rt_closep) = memfd_create("data", MFD_CLOEXEC);
    cr_assert(rt_write_all(data, text, err));
    return sandbox_files_write(root, path, data, getuid(), err);
}

static void expect_failure(bool ok, const rt_error *err, rt_code code)
{
    cr_expect(!ok);
    cr_expect_eq(err->code, code, "%s: %s", rt_code_name(err->code), err->text);
}

Test(files, a_path_stays_in_its_directory)
{
    static const char *const bad[] = { "",   "/",    "/a",   "a/", "a//b",
                                       "..", "../a", "a/..", ".",  "a/./b" };
    for (size_t i = 0; i < RT_COUNT(bad); i++)
        cr_expect(!sandbox_files_check(rt_str_of(bad[i]), false, &(rt_error){ 0 }), "%s", bad[i]);
    cr_expect(!sandbox_files_check(RT_STR("a\0b"), false, &(rt_error){ 0 }));
    cr_expect(sandbox_files_check(RT_STR("a/..b/.c"), false, &(rt_error){ 0 }));
    cr_expect(sandbox_files_check(RT_STR(""), true, &(rt_error){ 0 }));
}

Test(files, what_was_written_is_read_with_its_directories_made)
{
    rt_error err = { 0 };
    uint64_t size = 0;
    char text[16] = "";
    cr_assert(put("a/b/c", RT_STR("hello"), &err), "%s", err.text);
    cr_assert(put("a/b/c", RT_STR("bye"), &err), "%s", err.text);
    int fd RT_CLEANUP(rt_closep) = sandbox_files_read(root, "a/b/c", &size, &err);
    cr_assert_geq(fd, 0, "%s", err.text);
    cr_expect_eq(size, 3);
    cr_expect_eq(read(fd, text, sizeof(text)), 3);
    cr_expect_str_eq(text, "bye");
}

Test(files, no_link_is_followed)
{
    rt_error err = { 0 };
    uint64_t size;
    cr_assert_eq(symlinkat("/", root, "evil"), 0);
    cr_assert_eq(symlinkat("/etc/passwd", root, "file"), 0);
    expect_failure(sandbox_files_read(root, "evil/etc/passwd", &size, &err) >= 0, &err, RT_DENIED);
    expect_failure(sandbox_files_read(root, "file", &size, &err) >= 0, &err, RT_DENIED);
    expect_failure(put("evil/tmp/x", RT_STR("x"), &err), &err, RT_DENIED);
    cr_expect(sandbox_files_remove(root, "evil", &err), "%s", err.text);
    cr_expect_eq(access("/etc/passwd", F_OK), 0);
}

Test(files, a_fifo_does_not_make_us_wait)
{
    rt_error err = { 0 };
    uint64_t size;
    cr_assert_eq(mkfifoat(root, "pipe", 0600), 0);
    expect_failure(sandbox_files_read(root, "pipe", &size, &err) >= 0, &err, RT_INVALID);
    cr_expect(put("pipe", RT_STR("x"), &err), "%s", err.text);
}

Test(files, a_directory_goes_with_all_that_is_in_it)
{
    rt_error err = { 0 };
    cr_assert(put("d/e/f", RT_STR("1"), &err) && put("d/g", RT_STR("2"), &err), "%s", err.text);
    cr_assert_eq(symlinkat("/etc", root, "d/link"), 0);
    cr_expect(sandbox_files_remove(root, "d", &err), "%s", err.text);
    expect_failure(sandbox_files_remove(root, "d", &err), &err, RT_NOT_FOUND);
    cr_expect_eq(access("/etc/passwd", F_OK), 0);
}

Test(files, a_list_has_files_and_directories_and_nothing_else)
{
    rt_error err = { 0 };
    uint64_t size = 0;
    cr_assert(put("d/f", RT_STR("123"), &err), "%s", err.text);
    cr_assert_eq(symlinkat("/etc", root, "link"), 0);
    cr_assert_eq(mkfifoat(root, "pipe", 0600), 0);
    int fd RT_CLEANUP(rt_closep) = sandbox_files_list(root, "", &size, &err);
    cr_assert_geq(fd, 0, "%s", err.text);
    cr_expect_eq(size, 2 * sizeof(file_entry) + strlen("d") + strlen("d/f"));
}

Test(files, a_copy_has_files_links_fifos_and_modes_and_follows_nothing)
{
    rt_error err = { 0 };
    char target[16] = "";
    struct stat st;
    cr_assert(put("from/d/f", RT_STR("text"), &err), "%s", err.text);
    cr_assert_eq(fchmodat(root, "from/d/f", 0640, 0), 0);
    cr_assert_eq(fchmodat(root, "from/d", 0750, 0), 0);
    cr_assert_eq(symlinkat("/etc/passwd", root, "from/link"), 0);
    cr_assert_eq(mkfifoat(root, "from/pipe", 0600), 0);
    cr_assert_eq(mkdirat(root, "to", 0755), 0);
    cr_assert_eq(mkdirat(root, "to/d", 0755), 0, "each cell has some directories already");
    int from RT_CLEANUP(rt_closep) = openat(root, "from", O_RDONLY | O_DIRECTORY);
    int to RT_CLEANUP(rt_closep) = openat(root, "to", O_RDONLY | O_DIRECTORY);
    cr_assert(sandbox_files_copy(from, to, getuid(), getgid(), &err), "%s", err.text);
    cr_expect(fstatat(to, "d/f", &st, 0) == 0 && st.st_size == 4 && (st.st_mode & 07777) == 0640);
    cr_expect(fstatat(to, "d", &st, 0) == 0 && (st.st_mode & 07777) == 0750);
    cr_expect_eq(readlinkat(to, "link", target, sizeof(target)), (ssize_t)strlen("/etc/passwd"));
    cr_expect(fstatat(to, "pipe", &st, 0) == 0 && S_ISFIFO(st.st_mode));
}

Test(files, a_copy_that_goes_too_deep_is_refused)
{
    rt_error err = { 0 };
    cr_assert_eq(mkdirat(root, "from", 0755), 0);
    cr_assert_eq(mkdirat(root, "to", 0755), 0);
    int from RT_CLEANUP(rt_closep) = openat(root, "from", O_RDONLY | O_DIRECTORY);
    int to RT_CLEANUP(rt_closep) = openat(root, "to", O_RDONLY | O_DIRECTORY);
    int at = fcntl(from, F_DUPFD_CLOEXEC, 3);
    for (int i = 0; i < 260; i++) {
        cr_assert_eq(mkdirat(at, "d", 0755), 0);
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = next;
    }
    close(at);
    expect_failure(sandbox_files_copy(from, to, getuid(), getgid(), &err), &err, RT_INVALID);
}
