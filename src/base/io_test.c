/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int file_of(rt_str text)
{
    int fd = memfd_create("io_test", MFD_CLOEXEC);
    cr_assert(rt_write_all(fd, text, NULL));
    lseek(fd, 0, SEEK_SET);
    return fd;
}

Test(io, a_file_is_read_whole)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    int fd RT_CLEANUP(rt_closep) = file_of(RT_STR("a\0b"));
    rt_str text;
    cr_assert(rt_read_fd(fd, 100, &arena, &text, NULL));
    cr_expect(rt_str_eq(text, RT_STR("a\0b")));
    cr_expect_eq(text.ptr[text.len], '\0');
}

Test(io, the_maximum_is_allowed_and_one_more_is_not)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    int fd RT_CLEANUP(rt_closep) = file_of(RT_STR("0123456789"));
    rt_error err = { 0 };
    rt_str text;
    cr_expect(rt_read_fd(fd, 10, &arena, &text, &err), "%s", err.text);
    lseek(fd, 0, SEEK_SET);
    cr_expect(!rt_read_fd(fd, 9, &arena, &text, &err));
    cr_expect_eq(err.code, RT_LIMIT);
    cr_expect_str_eq(err.text, "longer than the maximum of 9 bytes");
    lseek(fd, 0, SEEK_SET);
    cr_expect(!rt_read_fd(fd, 0, &arena, &text, &err));
    lseek(fd, 0, SEEK_SET);
    cr_expect(rt_read_fd(fd, SIZE_MAX, &arena, &text, &err) && text.len == 10);
}

Test(io, files_that_claim_no_size_are_read_too)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_str text;
    cr_assert(rt_read_file("/proc/self/maps", 1 << 22, &arena, &text, &err), "%s", err.text);
    cr_expect_gt(text.len, 4096);
    cr_expect(!rt_read_file("/proc/self/maps", 100, &arena, &text, &err));
    cr_expect_str_eq(err.text, "/proc/self/maps: longer than the maximum of 100 bytes");
}

Test(io, a_missing_file_is_not_found)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_error err = { 0 };
    rt_str text;
    cr_expect(!rt_read_file("/no/such/file", 100, &arena, &text, &err));
    cr_expect_eq(err.code, RT_NOT_FOUND);
    cr_expect_str_eq(err.text, "open /no/such/file: No such file or directory");
}

enum { MUCH = 3 << 20 };

static void *write_much(void *fd)
{
    rt_str text = { malloc(MUCH), MUCH };
    memset((char *)(uintptr_t)text.ptr, 'x', MUCH);
    bool ok = rt_write_all(*(int *)fd, text, NULL);
    close(*(int *)fd);
    free((char *)(uintptr_t)text.ptr);
    return ok ? fd : NULL;
}

Test(io, descriptors_that_do_not_block_are_waited_for)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    int ends[2];
    cr_assert_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    pthread_t writer;
    pthread_create(&writer, NULL, write_much, &ends[1]);
    rt_str text;
    cr_expect(rt_read_fd(ends[0], MUCH, &arena, &text, NULL));
    cr_expect_eq(text.len, MUCH);
    void *result;
    pthread_join(writer, &result);
    cr_expect_not_null(result);
    close(ends[0]);
}

Test(io, a_failed_write_is_reported)
{
    rt_error err = { 0 };
    int fd RT_CLEANUP(rt_closep) = open("/dev/full", O_WRONLY | O_CLOEXEC);
    cr_expect(!rt_write_all(fd, RT_STR("x"), &err));
    cr_expect_eq(err.sys_errno, ENOSPC);
    cr_expect_str_eq(err.text, "write: No space left on device");
}

Test(macros, handing_over_leaves_nothing_behind)
{
    char *block RT_CLEANUP(rt_freep) = malloc(3);
    char *taken RT_CLEANUP(rt_freep) = RT_TAKE(block);
    int fd RT_CLEANUP(rt_closep) = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int other RT_CLEANUP(rt_closep) = RT_TAKE_FD(fd);
    cr_expect(block == NULL && taken != NULL && fd == -1 && other >= 0);
    cr_expect(RT_MIN(3, 5) == 3 && RT_MAX(3, 5) == 5);
}
