/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io.c - read until the end, write until it is all gone.
 *
 * The size of a file is a hint at best (/proc says 0, logs grow), so reading goes on until read()
 * says 0 or the maximum is passed: one byte more than allowed is asked for, to tell "exactly
 * full" from "too long".
 */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_READ = 4096 };

static bool wait_for(int fd, short events, rt_error *err)
{
    struct pollfd waiting = { .fd = fd, .events = events };
    if (poll(&waiting, 1, -1) < 0 && errno != EINTR)
        return rt_fail_errno(err, "wait for descriptor %d", fd);
    return true;
}

/* One read() that got something, or the end (0). */
static bool read_some(int fd, char *at, size_t room, size_t *got, rt_error *err)
{
    for (;;) {
        ssize_t n = read(fd, at, room);
        if (n >= 0) {
            *got = (size_t)n;
            return true;
        }
        if (errno == EAGAIN) {
            if (!wait_for(fd, POLLIN, err))
                return false;
        } else if (errno != EINTR) {
            return rt_fail_errno(err, "read");
        }
    }
}

static size_t size_hint(int fd, size_t max)
{
    struct stat info;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0)
        return RT_MIN((size_t)info.st_size, max) + 2; /* the end of file, and the NUL byte */
    return FIRST_READ;
}

bool rt_read_fd(int fd, size_t max, rt_arena *arena, rt_str *out, rt_error *err)
{
    max = RT_MIN(max, SIZE_MAX / 4); /* so that the sums below cannot wrap */
    size_t cap = size_hint(fd, max), len = 0, got = 0;
    char *text = rt_arena_alloc_raw(arena, cap);
    do {
        if (cap - len < 2) {
            text = rt_arena_resize(arena, text, cap, cap * 2);
            cap *= 2;
        }
        size_t room = RT_MIN(cap - len - 1, max - len + 1);
        if (!read_some(fd, text + len, room, &got, err))
            return false;
        len += got;
        if (len > max)
            return rt_fail(err, RT_LIMIT, "longer than the maximum of %zu bytes", max);
    } while (got > 0);
    text[len] = '\0';
    *out = (rt_str){ rt_arena_resize(arena, text, cap, len + 1), len };
    return true;
}

bool rt_read_file(const char *path, size_t max, rt_arena *arena, rt_str *out, rt_error *err)
{
    int fd RT_CLEANUP(rt_closep) = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return rt_fail_errno(err, "open %s", path);
    if (!rt_read_fd(fd, max, arena, out, err))
        return rt_wrap(err, "%s", path);
    return true;
}

bool rt_write_all(int fd, rt_str data, rt_error *err)
{
    while (data.len > 0) {
        ssize_t n = write(fd, data.ptr, data.len);
        if (n >= 0) {
            data = rt_str_slice(data, (size_t)n, data.len);
        } else if (errno == EAGAIN) {
            if (!wait_for(fd, POLLOUT, err))
                return false;
        } else if (errno != EINTR) {
            return rt_fail_errno(err, "write");
        }
    }
    return true;
}
