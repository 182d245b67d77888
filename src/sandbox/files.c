/*
 * files.c - files of a cell's scratch directory, asked for from outside.
 *
 * The first process of a cell serves them (init.c), because it alone may act on what the code's
 * user owns. The code is at work in the same directory, and hostile: every path is resolved by the
 * kernel beneath the directory's descriptor and through no link, whatever is renamed meanwhile;
 * opening never waits (a fifo is no file); what is opened is judged by its descriptor, not by its
 * name.
 *
 * A file is written beside its place and renamed into it: nobody sees half of it.
 */
#include "sandbox/sandbox_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEPTH_MAX       64
#define COPY_DEPTH_MAX  250 /* two descriptors each */
#define TRIES_MAX       1000
#define LIST_BYTES_MAX  (16u << 20)
#define PLACEHOLDER     ".retort-%u.part" /* a file while it is being written */
#define PLACEHOLDER_MAX 32

bool sandbox_files_check(rt_str path, bool may_be_empty, rt_error *err)
{
    if (path.len == 0 && may_be_empty)
        return true;
    if (path.len == 0 || path.len > FILE_PATH_MAX || memchr(path.ptr, '\0', path.len))
        return rt_fail(err, RT_INVALID, "a path has 1 to %d bytes and none of them is NUL",
                       FILE_PATH_MAX);
    rt_str rest = path, part;
    while (rt_str_cut(&rest, '/', &part))
        if (part.len == 0 || rt_str_eq_c(part, ".") || rt_str_eq_c(part, ".."))
            return rt_fail(err, RT_INVALID,
                           "'%.*s' must be relative to the scratch directory, without ., .. or //",
                           (int)RT_MIN(path.len, (size_t)80), path.ptr);
    return true;
}

int sandbox_files_open(int root, const char *path, int flags)
{
    struct open_how how = { .flags = (uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK),
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                       RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };
    int fd = -1;
    errno = EAGAIN; /* something was renamed while the kernel looked; code may do that for ever */
    for (int i = 0; i < TRIES_MAX && fd < 0 && errno == EAGAIN; i++)
        fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
    return fd;
}

/* What the kernel says of a path, in the caller's terms. */
static bool fail_path(rt_error *err, const char *path)
{
    switch (errno) {
    case ELOOP:
    case EXDEV:
        return rt_fail(err, RT_DENIED, "'%.100s' leads through a link", path);
    case ENOTDIR:
        return rt_fail(err, RT_INVALID, "'%.100s' goes through something that is no directory",
                       path);
    case EISDIR:
        return rt_fail(err, RT_INVALID, "'%.100s' is a directory", path);
    case ENAMETOOLONG:
        return rt_fail(err, RT_INVALID, "a name in '%.100s' is too long", path);
    case ENOSPC:
        return rt_fail(err, RT_LIMIT, "'%.100s' does not fit: the scratch directory is full", path);
    case EROFS:
        return rt_fail(err, RT_DENIED, "'%.100s': the scratch directory is read-only here", path);
    case ENOENT:
        return rt_fail(err, RT_NOT_FOUND, "there is no '%.100s'", path);
    default:
        return rt_fail_errno(err, "'%.100s'", path);
    }
}

/* ---- writing ---- */

static bool is_link(int dir, const char *name)
{
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

/* The directory a path is in, made if need be; `name` is set to the rest. */
static int open_parent(int root, const char *path, uid_t owner, bool is_made, const char **name)
{
    char part[FILE_PATH_MAX + 1];
    int dir = fcntl(root, F_DUPFD_CLOEXEC, 3);
    *name = path;
    for (const char *slash; dir >= 0 && (slash = strchr(*name, '/')); *name = slash + 1) {
        snprintf(part, sizeof(part), "%.*s", (int)(slash - *name), *name);
        bool is_new = is_made && mkdirat(dir, part, 0755) == 0;
        int next = is_made && !is_new && errno != EEXIST
                       ? -1
                       : sandbox_files_open(dir, part, O_RDONLY | O_DIRECTORY);
        int saved = errno;
        if (next >= 0 && is_new)
            (void)!fchown(next, owner, owner);
        if (next < 0 && saved == ENOTDIR && is_link(dir, part))
            saved = ELOOP; /* the kernel tells a directory that is none before a link */
        close(dir);
        dir = next;
        errno = saved;
    }
    return dir;
}

static bool copy_all(int from, int to)
{
    off_t at = 0;
    ssize_t n;
    while ((n = sendfile(to, from, &at, 1u << 20)) > 0)
        ;
    return n == 0;
}

static bool is_directory(int dir, const char *name)
{
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

bool sandbox_files_write(int root, const char *path, int data, uid_t owner, rt_error *err)
{
    static unsigned serial;
    char part[PLACEHOLDER_MAX];
    const char *name;
    int dir RT_CLEANUP(rt_closep) = open_parent(root, path, owner, true, &name);
    if (dir < 0)
        return fail_path(err, path);
    snprintf(part, sizeof(part), PLACEHOLDER, serial++);
    int fd RT_CLEANUP(rt_closep) =
        openat(dir, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return fail_path(err, path);
    bool ok = copy_all(data, fd) && fchown(fd, owner, owner) == 0 && fchmod(fd, 0644) == 0;
    if (ok && is_directory(dir, name)) {
        errno = EISDIR;
        ok = false;
    }
    ok = ok && renameat(dir, part, dir, name) == 0;
    if (!ok) {
        fail_path(err, path);
        unlinkat(dir, part, 0);
    }
    return ok;
}

/* ---- reading ---- */

int sandbox_files_read(int root, const char *path, uint64_t *size, rt_error *err)
{
    struct stat st;
    int fd RT_CLEANUP(rt_closep) = sandbox_files_open(root, path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) != 0)
        return fail_path(err, path), -1;
    if (S_ISDIR(st.st_mode))
        return rt_fail(err, RT_INVALID, "'%.100s' is a directory", path), -1;
    if (!S_ISREG(st.st_mode))
        return rt_fail(err, RT_INVALID, "'%.100s' is no ordinary file", path), -1;
    *size = (uint64_t)st.st_size;
    return RT_TAKE_FD(fd);
}

/* ---- listing ---- */

typedef struct gathering {
    rt_buf bytes;
    size_t count;
    bool is_over; /* more than may be listed */
} gathering;

static void gather_one(gathering *all, const char *path, const struct stat *st)
{
    file_entry entry = { .size = S_ISDIR(st->st_mode) ? 0 : (uint64_t)st->st_size,
                         .modified_ms = (uint64_t)st->st_mtim.tv_sec * 1000u +
                                        (uint64_t)st->st_mtim.tv_nsec / 1000000u,
                         .is_directory = S_ISDIR(st->st_mode),
                         .path_len = (uint32_t)strlen(path) };
    all->is_over |= all->count >= FILE_LIST_MAX;
    if (all->is_over)
        return;
    all->count++;
    rt_buf_add(&all->bytes, (rt_str){ (const char *)&entry, sizeof(entry) });
    rt_buf_add(&all->bytes, (rt_str){ path, entry.path_len });
}

/* Of the scratch directory itself, what holds /tmp and /dev/shm is not the user's. */
static bool is_shown(const char *prefix, const char *name)
{
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return false;
    return *prefix || (strcmp(name, ".tmp") != 0 && strcmp(name, ".shm") != 0);
}

/* Takes the descriptor. */
static void gather(int fd, const char *prefix, int depth, gathering *all)
{
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        rt_closep(&fd);
    for (struct dirent *e; dir && !all->is_over && (e = readdir(dir));) {
        char path[FILE_PATH_MAX + 1];
        struct stat st;
        if (!is_shown(prefix, e->d_name) ||
            snprintf(path, sizeof(path), "%s%s%s", prefix, *prefix ? "/" : "", e->d_name) >=
                (int)sizeof(path) ||
            fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode))
            gather_one(all, path, &st);
        if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
            gather(sandbox_files_open(dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY), path,
                   depth + 1, all);
    }
    if (dir)
        closedir(dir);
}

int sandbox_files_list(int root, const char *path, uint64_t *size, rt_error *err)
{
    gathering all = { .bytes.max = LIST_BYTES_MAX };
    int fd = sandbox_files_open(root, *path ? path : ".", O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return fail_path(err, path), -1;
    gather(fd, path, 0, &all);
    int out = memfd_create("list", MFD_CLOEXEC);
    bool ok = out >= 0 || rt_fail_errno(err, "memfd_create");
    if (ok && (all.is_over || all.bytes.failed))
        ok = rt_fail(err, RT_LIMIT, "'%.100s' has more than %d files; list a part of it", path,
                     FILE_LIST_MAX);
    ok = ok && rt_write_all(out, rt_buf_str(&all.bytes), err);
    *size = all.bytes.len;
    rt_buf_done(&all.bytes);
    if (!ok)
        rt_closep(&out);
    return out;
}

/* ---- removing ---- */

static bool remove_below(int dir, const char *name, int depth)
{
    int fd = sandbox_files_open(dir, name, O_RDONLY | O_DIRECTORY);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d)
        rt_closep(&fd);
    bool ok = d != NULL;
    for (struct dirent *e; ok && (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        ok = unlinkat(dirfd(d), e->d_name, 0) == 0 || errno == ENOENT ||
             (errno == EISDIR && depth < DEPTH_MAX && remove_below(dirfd(d), e->d_name, depth + 1));
    }
    int saved = errno;
    if (d)
        closedir(d);
    errno = saved;
    return ok && unlinkat(dir, name, AT_REMOVEDIR) == 0;
}

bool sandbox_files_remove(int root, const char *path, rt_error *err)
{
    const char *name;
    int dir RT_CLEANUP(rt_closep) = open_parent(root, path, 0, false, &name);
    if (dir < 0)
        return fail_path(err, path);
    if (unlinkat(dir, name, 0) == 0 || (errno == EISDIR && remove_below(dir, name, 0)))
        return true;
    return fail_path(err, path);
}

/* ---- copying ---- */

static bool copy_below(int from, int to, dev_t device, int depth, const char **culprit);

static bool copy_file(int from, int to, const char *name, const struct stat *st)
{
    int in RT_CLEANUP(rt_closep) = sandbox_files_open(from, name, O_RDONLY);
    int out RT_CLEANUP(rt_closep) =
        openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return in >= 0 && out >= 0 && copy_all(in, out) && fchmod(out, st->st_mode & 07777) == 0 &&
           futimens(out, (struct timespec[2]){ st->st_atim, st->st_mtim }) == 0;
}

static bool copy_link(int from, int to, const char *name)
{
    char target[FILE_PATH_MAX];
    ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);
    if (n < 0)
        return false;
    target[n] = '\0';
    return symlinkat(target, to, name) == 0;
}

static bool copy_directory(int from, int to, const char *name, const struct stat *st, int depth,
                           const char **culprit)
{
    if (depth >= COPY_DEPTH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    if (mkdirat(to, name, 0700) != 0 && errno != EEXIST) /* each cell has some of its own */
        return false;
    int in RT_CLEANUP(rt_closep) = sandbox_files_open(from, name, O_RDONLY | O_DIRECTORY);
    int out RT_CLEANUP(rt_closep) = sandbox_files_open(to, name, O_RDONLY | O_DIRECTORY);
    return in >= 0 && out >= 0 && copy_below(in, out, st->st_dev, depth + 1, culprit) &&
           fchmod(out, st->st_mode & 07777) == 0 &&
           futimens(out, (struct timespec[2]){ st->st_atim, st->st_mtim }) == 0;
}

/* A read path that lies on the scratch is another file system, and in the copy already. */
static bool copy_one(int from, int to, const char *name, dev_t device, int depth,
                     const char **culprit)
{
    struct stat st;
    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_dev != device)
        return true;
    if (S_ISDIR(st.st_mode))
        return copy_directory(from, to, name, &st, depth, culprit);
    if (S_ISREG(st.st_mode))
        return copy_file(from, to, name, &st);
    if (S_ISLNK(st.st_mode))
        return copy_link(from, to, name);
    return !S_ISFIFO(st.st_mode) || mkfifoat(to, name, st.st_mode & 07777) == 0;
}

static bool copy_below(int from, int to, dev_t device, int depth, const char **culprit)
{
    static char name[NAME_MAX + 1];
    int again = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = again < 0 ? NULL : fdopendir(again);
    bool ok = dir != NULL;
    for (struct dirent *e; ok && (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            !copy_one(from, to, e->d_name, device, depth, culprit)) {
            ok = false;
            if (!*culprit) {
                snprintf(name, sizeof(name), "%s", e->d_name);
                *culprit = name;
            }
        }
    int saved = errno;
    if (dir)
        closedir(dir);
    errno = saved;
    return ok;
}

bool sandbox_files_copy(int from, int to, uid_t uid, gid_t gid, rt_error *err)
{
    struct stat st;
    const char *culprit = NULL;
    if (fstat(from, &st) != 0)
        return rt_fail_errno(err, "look at the scratch directory");
    setfsgid(gid); /* what we make belongs to the code */
    setfsuid(uid);
    mode_t mask = umask(0);
    bool ok = copy_below(from, to, st.st_dev, 0, &culprit);
    int saved = errno;
    umask(mask);
    setfsuid(geteuid());
    setfsgid(getegid());
    errno = saved;
    return ok ? true : fail_path(err, culprit ? culprit : ".");
}
