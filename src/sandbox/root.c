/*
 * root.c - builds the file system that zygotes and cells see.
 *
 * The warden stands in a frame (a tmpfs) where the host's tree is /old and what every root shows is
 * on /stage. From there each nursery puts its own root together: programs and libraries are bound
 * read-only, /etc is written anew with the few files programs need, and the devices are the
 * harmless ones. The host's tree is then let go of: nothing in the new root leads back to it.
 *
 * Runs in a mount namespace of our own, as root of the house's user namespace.
 */
#include "sandbox/sandbox_internal.h"

#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BASE      "/tmp" /* where the new tree is put together; hidden, not touched */
#define OLD       "/old"
#define NEW       "/new"
#define STAGE     "/stage" /* what the configuration adds, ready to be bound into any root */
#define LATE      "/.late" /* read paths that wait for a cell's scratch to be mounted */
#define SMALL_MAX (4u << 20)

static const char *const system_dirs[] = { "bin", "sbin", "lib", "lib32", "lib64", "libx32" };

/* Small files copied as they are, when the host has them. */
static const char *const copied_files[] = {
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/mime.types",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/matplotlibrc",
    "/etc/ssl/openssl.cnf",
};

/* Directories bound as they are, when the host has them. */
static const char *const bound_dirs[] = { "/etc/alternatives", "/etc/fonts", "/etc/python3",
                                          "/etc/python3.11" };

static const struct {
    const char *path, *text;
} written_files[] = {
    { "/etc/passwd", "root:x:0:0:root:/work:/usr/sbin/nologin\n"
                     "retort:x:1000:1000:code:/work:/bin/bash\n"
                     "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n" },
    { "/etc/group", "root:x:0:\nretort:x:1000:\nnogroup:x:65534:\n" },
    { "/etc/hosts", "127.0.0.1 localhost cell\n::1 localhost cell\n" },
    { "/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n" },
    { "/etc/resolv.conf", "" },
    { "/etc/hostname", "cell\n" },
};

static const char *const devices[] = { "null", "zero", "full", "random", "urandom" };

static const struct {
    const char *path, *target;
} links[] = {
    { "/tmp", "work/.tmp" },
    { "/var/tmp", "../work/.tmp" },
    { "/dev/shm", "../work/.shm" },
    { "/dev/fd", "/proc/self/fd" },
    { "/dev/stdin", "/proc/self/fd/0" },
    { "/dev/stdout", "/proc/self/fd/1" },
    { "/dev/stderr", "/proc/self/fd/2" },
};

static bool make_dirs(const char *path, rt_error *err)
{
    char part[PATH_MAX];
    snprintf(part, sizeof(part), "%s", path);
    for (char *slash = part + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        if (mkdir(part, 0755) != 0 && errno != EEXIST)
            return rt_fail_errno(err, "make %s", part);
    }
    if (mkdir(part, 0755) != 0 && errno != EEXIST)
        return rt_fail_errno(err, "make %s", part);
    return true;
}

static bool make_parent(const char *path, rt_error *err)
{
    char parent[PATH_MAX];
    snprintf(parent, sizeof(parent), "%s", path);
    *strrchr(parent, '/') = '\0';
    return make_dirs(parent, err);
}

static bool make_file(const char *path, const char *text, size_t len, rt_error *err)
{
    if (!make_parent(path, err))
        return false;
    int fd RT_CLEANUP(rt_closep) = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return rt_fail_errno(err, "make %s", path);
    return rt_write_all(fd, (rt_str){ text, len }, err);
}

static bool set_attributes(const char *path, uint64_t attributes, rt_error *err)
{
    struct mount_attr attr = { .attr_set = attributes };
    if (syscall(SYS_mount_setattr, AT_FDCWD, path, AT_RECURSIVE, &attr, sizeof(attr)) != 0)
        return rt_fail_errno(err, "make %s read-only", path);
    return true;
}

/* A place to mount onto, of the same kind as the source. */
static bool make_target(const struct stat *source, const char *target, rt_error *err)
{
    if (S_ISDIR(source->st_mode))
        return make_dirs(target, err);
    struct stat there;
    return lstat(target, &there) == 0 || make_file(target, "", 0, err);
}

static bool bind_readonly(const char *source, const char *target, rt_error *err)
{
    struct stat st;
    if (stat(source, &st) != 0 && errno == EACCES)
        return rt_fail(err, RT_DENIED,
                       "%s cannot be reached by the user that cells are on this host: give others "
                       "access to it and the directories above it (chmod o+rX)",
                       source + strlen(OLD));
    if (stat(source, &st) != 0)
        return rt_fail_errno(err, "look at %s", source + strlen(OLD));
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return rt_fail(err, RT_DENIED, "%s is neither a file nor a directory",
                       source + strlen(OLD));
    if (!make_target(&st, target, err))
        return false;
    if (mount(source, target, NULL, MS_BIND | MS_REC, NULL) != 0)
        return rt_fail_errno(err, "bind %s", source + strlen(OLD));
    return set_attributes(target, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
}

static bool is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* ---- the steps ---- */

static bool mount_new_root(const root_plan *plan, rt_error *err)
{
    (void)plan;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return rt_fail_errno(err, "make mounts private");
    if (mount("retort", NEW, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=16m,nr_inodes=4k") != 0)
        return rt_fail_errno(err, "mount the new root");
    return true;
}

static bool show_system(const root_plan *plan, rt_error *err)
{
    (void)plan;
    if (!bind_readonly(OLD "/usr", NEW "/usr", err))
        return false;
    for (size_t i = 0; i < RT_COUNT(system_dirs); i++) {
        char from[64], to[64], link[64];
        snprintf(from, sizeof(from), OLD "/%s", system_dirs[i]);
        snprintf(to, sizeof(to), NEW "/%s", system_dirs[i]);
        ssize_t n = readlink(from, link, sizeof(link) - 1);
        if (n > 0) {
            link[n] = '\0';
            if (symlink(link, to) != 0)
                return rt_fail_errno(err, "link /%s", system_dirs[i]);
        } else if (is_there(from) && !bind_readonly(from, to, err)) {
            return false;
        }
    }
    return true;
}

static bool copy_small(const char *path, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    char from[PATH_MAX], to[PATH_MAX];
    rt_str text;
    snprintf(from, sizeof(from), OLD "%s", path);
    snprintf(to, sizeof(to), NEW "%s", path);
    if (!rt_read_file(from, SMALL_MAX, &arena, &text, &(rt_error){ 0 }))
        return true; /* not there, or not ours to read: nothing depends on it */
    return make_file(to, text.ptr, text.len, err);
}

static bool fill_etc(const root_plan *plan, rt_error *err)
{
    (void)plan;
    char from[PATH_MAX], to[PATH_MAX];
    for (size_t i = 0; i < RT_COUNT(written_files); i++) {
        snprintf(to, sizeof(to), NEW "%s", written_files[i].path);
        if (!make_file(to, written_files[i].text, strlen(written_files[i].text), err))
            return false;
    }
    for (size_t i = 0; i < RT_COUNT(copied_files); i++)
        if (!copy_small(copied_files[i], err))
            return false;
    for (size_t i = 0; i < RT_COUNT(bound_dirs); i++) {
        snprintf(from, sizeof(from), OLD "%s", bound_dirs[i]);
        snprintf(to, sizeof(to), NEW "%s", bound_dirs[i]);
        if (is_there(from) && !bind_readonly(from, to, err))
            return false;
    }
    return true;
}

static bool add_devices(const root_plan *plan, rt_error *err)
{
    (void)plan;
    for (size_t i = 0; i < RT_COUNT(devices); i++) {
        char from[64], to[64];
        snprintf(from, sizeof(from), OLD "/dev/%s", devices[i]);
        snprintf(to, sizeof(to), NEW "/dev/%s", devices[i]);
        if (!make_file(to, "", 0, err))
            return false;
        if (mount(from, to, NULL, MS_BIND, NULL) != 0)
            return rt_fail_errno(err, "show /dev/%s", devices[i]);
    }
    for (size_t i = 0; i < RT_COUNT(links); i++) {
        char at[64];
        snprintf(at, sizeof(at), NEW "%s", links[i].path);
        if (!make_parent(at, err))
            return false;
        if (symlink(links[i].target, at) != 0)
            return rt_fail_errno(err, "link %s", links[i].path);
    }
    return true;
}

static bool add_places(const root_plan *plan, rt_error *err)
{
    (void)plan;
    if (!make_dirs(NEW "/proc", err) || !make_dirs(NEW RT_WORKDIR, err))
        return false;
    if (mount("proc", NEW "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0)
        return rt_fail_errno(err, "mount /proc");
    /* For zygotes while they warm; every cell mounts its own over it. */
    if (mount("zygote", NEW RT_WORKDIR, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=32m") != 0)
        return rt_fail_errno(err, "mount %s", RT_WORKDIR);
    return make_dirs(NEW RT_WORKDIR "/.tmp", err) && make_dirs(NEW RT_WORKDIR "/.shm", err);
}

static bool show_entries(const root_plan *plan, rt_error *err)
{
    for (size_t i = 0; i < plan->entry_count; i++) {
        char from[64], to[PATH_MAX];
        snprintf(from, sizeof(from), STAGE "/%zu", i);
        snprintf(to, sizeof(to), NEW "%s", plan->entries[i].target);
        if (!bind_readonly(from, to, err))
            return rt_wrap(err, "show %s", plan->entries[i].source);
    }
    return true;
}

/* Below /tmp everything lies on the scratch of a cell, which is mounted later. */
static bool is_late(const char *path)
{
    return rt_str_starts(rt_str_of(path), RT_STR("/tmp/")) ||
           rt_str_starts(rt_str_of(path), RT_STR("/var/tmp/"));
}

static bool show_read_paths(const root_plan *plan, rt_error *err)
{
    for (size_t i = 0; i < plan->read_path_count; i++) {
        char from[PATH_MAX], to[PATH_MAX];
        snprintf(from, sizeof(from), OLD "%s", plan->read_paths[i]);
        if (is_late(plan->read_paths[i]))
            snprintf(to, sizeof(to), NEW LATE "/%zu", i);
        else
            snprintf(to, sizeof(to), NEW "%s", plan->read_paths[i]);
        if (!bind_readonly(from, to, err))
            return rt_wrap(err, "grant read path");
    }
    return true;
}

bool sandbox_root_show_late(const root_plan *plan, rt_error *err)
{
    for (size_t i = 0; i < plan->read_path_count; i++) {
        char from[64];
        struct stat st;
        if (!is_late(plan->read_paths[i]))
            continue;
        snprintf(from, sizeof(from), LATE "/%zu", i);
        if (stat(from, &st) != 0 || !make_parent(plan->read_paths[i], err) ||
            !make_target(&st, plan->read_paths[i], err))
            return rt_wrap(err, "grant read path");
        if (mount(from, plan->read_paths[i], NULL, MS_BIND | MS_REC, NULL) != 0)
            return rt_fail_errno(err, "grant read path %s", plan->read_paths[i]);
    }
    return true;
}

static bool move_in(const root_plan *plan, rt_error *err)
{
    (void)plan;
    if (chdir(NEW) != 0 || syscall(SYS_pivot_root, ".", ".") != 0 ||
        umount2(".", MNT_DETACH) != 0 || chdir("/") != 0)
        return rt_fail_errno(err, "pivot_root");
    struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
    if (syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &attr, sizeof(attr)) != 0)
        return rt_fail_errno(err, "make / read-only");
    return true;
}

static const struct {
    const char *name;
    bool (*apply)(const root_plan *, rt_error *);
} steps[] = {
    { "mount the new root", mount_new_root },
    { "show the system", show_system },
    { "fill /etc", fill_etc },
    { "add devices", add_devices },
    { "add /proc and scratch", add_places },
    { "show the runtimes", show_entries },
    { "show read paths", show_read_paths },
    { "move in", move_in },
};

bool sandbox_root_build(const root_plan *plan, rt_error *err)
{
    umask(022);
    for (size_t i = 0; i < RT_COUNT(steps); i++)
        if (!steps[i].apply(plan, err))
            return rt_wrap(err, "%s", steps[i].name);
    return true;
}

/* One entry onto the stage: moved there if the keeper could detach it, else bound by its path. */
static bool stage_entry(const rt_root_entry *entry, int fd, size_t i, rt_error *err)
{
    char from[PATH_MAX], to[64];
    struct stat st;
    snprintf(from, sizeof(from), OLD "%s", entry->source);
    snprintf(to, sizeof(to), STAGE "/%zu", i);
    if (fd < 0)
        return bind_readonly(from, to, err);
    if (fstat(fd, &st) != 0)
        return rt_fail_errno(err, "look at %s", entry->source);
    if (!make_target(&st, to, err))
        return false;
    if (syscall(SYS_move_mount, fd, "", AT_FDCWD, to, MOVE_MOUNT_F_EMPTY_PATH) != 0)
        return rt_fail_errno(err, "show %s", entry->source);
    return true;
}

bool sandbox_root_frame(const rt_root_entry *entries, const int *fds, size_t count, rt_error *err)
{
    umask(022);
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return rt_fail_errno(err, "make mounts private");
    if (mount("retort", BASE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m") != 0)
        return rt_fail_errno(err, "mount a tmpfs on %s", BASE);
    if (mkdir(BASE OLD, 0755) != 0 || mkdir(BASE NEW, 0755) != 0 || mkdir(BASE STAGE, 0755) != 0)
        return rt_fail_errno(err, "make the frame");
    if (syscall(SYS_pivot_root, BASE, BASE OLD) != 0 || chdir("/") != 0)
        return rt_fail_errno(err, "pivot_root to the frame");
    for (size_t i = 0; i < count; i++)
        if (!stage_entry(&entries[i], fds[i], i, err))
            return rt_wrap(err, "prepare %s", entries[i].source);
    return true;
}

/* Places the cell has of its own; showing the host's there would undo a layer. */
static const char *const own_places[] = {
    "/proc", "/sys", "/dev", RT_WORKDIR, "/retort", "/etc/passwd", "/etc/group",
};

static bool is_beneath(rt_str path, rt_str place)
{
    return rt_str_starts(path, place) && (path.len == place.len || path.ptr[place.len] == '/');
}

bool sandbox_root_check(rt_str path, rt_error *err)
{
    if (path.len < 2 || path.ptr[0] != '/' || path.len >= PATH_MAX - 8 ||
        memchr(path.ptr, '\0', path.len))
        return rt_fail(err, RT_INVALID, "read path '%.*s' is not an absolute path below /",
                       (int)RT_MIN(path.len, (size_t)100), path.ptr);
    rt_str rest = path, part;
    while (rt_str_cut(&rest, '/', &part))
        if (rt_str_eq_c(part, "..") || rt_str_eq_c(part, ".") || rt_str_starts(rest, RT_STR("/")))
            return rt_fail(err, RT_DENIED, "read path '%.*s' must not contain ., .. or //",
                           (int)RT_MIN(path.len, (size_t)100), path.ptr);
    if (rt_str_eq_c(path, "/tmp") || rt_str_eq_c(path, "/var/tmp"))
        return rt_fail(err, RT_DENIED,
                       "read path '%.*s' cannot be granted whole: the cell has its own; "
                       "name a directory in it",
                       RT_FMT(path));
    for (size_t i = 0; i < RT_COUNT(own_places); i++)
        if (is_beneath(path, rt_str_of(own_places[i])))
            return rt_fail(err, RT_DENIED,
                           "read path '%.*s' cannot be granted: %s belongs to the cell",
                           (int)RT_MIN(path.len, (size_t)100), path.ptr, own_places[i]);
    return true;
}
