/* SPDX-License-Identifier: Apache-2.0 */
/*
 * objects.c - files under one directory, sealed, written beside and then renamed.
 */
#include "store/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEAL_BYTES_MAX 256 /* what sealing adds, at most */

/* Letters, digits, '.', '_' and '-' between slashes; no part begins with a dot. */
static bool is_plain(rt_str path)
{
    bool is_start = true;
    for (size_t i = 0; i < path.len; i++) {
        char c = path.ptr[i];
        bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || c == '+';
        if (!(is_word || (!is_start && (c == '.' || c == '/'))))
            return false;
        is_start = c == '/';
    }
    return path.len > 0 && !is_start;
}

static bool place(const rt_objects *o, rt_str path, rt_arena *arena, rt_str *out, rt_error *err)
{
    if (!is_plain(path))
        return rt_fail(err, RT_INVALID, "'%.*s' is no path of an object",
                       (int)RT_MIN(path.len, (size_t)80), path.ptr);
    *out = rt_arena_printf(arena, "%s/%.*s", o->directory, RT_FMT(path));
    return true;
}

static bool make_folders(char *file, size_t from, rt_error *err)
{
    for (char *slash = file + from; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        bool ok = mkdir(file, 0700) == 0 || errno == EEXIST;
        if (!ok) {
            rt_fail_errno(err, "make %s", file);
            *slash = '/';
            return false;
        }
    }
    return true;
}

static bool write_file(const char *path, rt_str data, rt_error *err)
{
    int fd RT_CLEANUP(rt_closep) =
        open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return rt_fail_errno(err, "open %s", path);
    if (!rt_write_all(fd, data, err))
        return false;
    return fsync(fd) == 0 || rt_fail_errno(err, "write %s", path);
}

bool rt_objects_put(const rt_objects *o, rt_str path, rt_str data, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str file;
    if (!place(o, path, &arena, &file, err) ||
        !make_folders((char *)(uintptr_t)file.ptr, strlen(o->directory), err))
        return rt_wrap(err, "keep an object");
    char mark[17];
    uint64_t random;
    rt_random_name(&random, sizeof(random));
    rt_hex(mark, &random, sizeof(random));
    rt_str beside = rt_arena_printf(&arena, "%s.%s", file.ptr, mark);
    if (!write_file(beside.ptr, rt_vault_seal(o->vault, path, data, &arena), err) ||
        (rename(beside.ptr, file.ptr) != 0 && !rt_fail_errno(err, "rename to %s", file.ptr))) {
        unlink(beside.ptr);
        return rt_wrap(err, "keep an object");
    }
    return true;
}

bool rt_objects_get(const rt_objects *o, rt_str path, size_t max, rt_arena *arena, rt_str *out,
                    rt_error *err)
{
    rt_arena own RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str file, sealed;
    if (!place(o, path, &own, &file, err) ||
        !rt_read_file(file.ptr, max + SEAL_BYTES_MAX, &own, &sealed, err) ||
        !rt_vault_unseal(o->vault, path, sealed, arena, out, err))
        return rt_wrap(err, "read an object");
    return true;
}

void rt_objects_remove(const rt_objects *o, rt_str path)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_str file;
    if (!place(o, path, &arena, &file, NULL))
        return;
    char *text = (char *)(uintptr_t)file.ptr, *slash;
    unlink(text);
    while ((slash = strrchr(text, '/')) && slash > text + strlen(o->directory)) {
        *slash = '\0';
        if (rmdir(text) != 0)
            break;
    }
}
