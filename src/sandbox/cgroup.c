/*
 * cgroup.c - memory and process limits by cgroup, version 1 and version 2.
 *
 * The keeper makes one cgroup per slot before the warden exists and opens every file the warden
 * will write. The kernel asks the opener's rights, not the writer's, so afterwards nobody in the
 * house needs any right over the cgroup tree. Slots are used again and again: no cgroup is made or
 * removed while cells come and go.
 *
 * A tree that was not removed (its keeper was killed) is recognised by the process id in its name
 * and swept by whoever starts next.
 */
#include "sandbox/sandbox_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME_PREFIX "retort-"

static bool read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, size - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n >= 0;
}

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = write(fd, text, strlen(text));
    int saved = errno;
    close(fd);
    errno = saved;
    return n == (ssize_t)strlen(text);
}

static bool has_word(const char *text, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += len)
        if ((at == text || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\n' || !at[len]))
            return true;
    return false;
}

/* The path of our own cgroup: "4:memory:/a/b" for a version 1 controller, "0::/a/b" for version 2.
 */
static bool own_path(const char *own_cgroups, const char *controller, char *out, size_t size)
{
    char tag[64];
    snprintf(tag, sizeof(tag), *controller ? ":%s:/" : "0::/%s", controller);
    for (const char *line = own_cgroups; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *at = strstr(line, tag);
        const char *end = strchrnul(line, '\n');
        if (!at || at > end)
            continue;
        at += strlen(tag) - 1;
        snprintf(out, size, "%.*s", (int)(end - at), at);
        return true;
    }
    return false;
}

static bool is_usable_v2(const char *dir, bool is_root)
{
    char path[300], text[512];
    snprintf(path, sizeof(path), "%s/cgroup.controllers", dir);
    if (!read_text(path, text, sizeof(text)) || !has_word(text, "memory") ||
        !has_word(text, "pids"))
        return false;
    snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
    bool is_empty = read_text(path, text, sizeof(text)) && text[0] == '\0';
    return (is_root || is_empty) && access(dir, W_OK) == 0;
}

/* A name that had to be shortened is the name of something else. */
static bool name_tree(const char *dir, const char *name, char *out, size_t size)
{
    return snprintf(out, size, "%s/%s", dir, name) < (int)size;
}

/* Version 2 allows no processes beside sub-groups with limits, so our own group will not do. */
static bool find_v2(const char *root, const char *own_cgroups, const char *name, cgroup_tree *out)
{
    char own[200] = "/", dir[256];
    own_path(own_cgroups, "", own, sizeof(own));
    for (char *slash = strrchr(own, '/'); slash; slash = strrchr(own, '/')) {
        *slash = '\0';
        snprintf(dir, sizeof(dir), "%s%s", root, own);
        if (is_usable_v2(dir, own[0] == '\0') &&
            name_tree(dir, name, out->dirs[0], sizeof(out->dirs[0]))) {
            out->kind = CGROUP_V2;
            out->dir_count = 1;
            return true;
        }
    }
    return false;
}

static bool find_v1(const char *root, const char *own_cgroups, const char *name, cgroup_tree *out)
{
    static const char *const kinds[] = { "memory", "pids" };
    for (size_t i = 0; i < 2; i++) {
        char own[160] = "/", dir[256];
        own_path(own_cgroups, kinds[i], own, sizeof(own));
        snprintf(dir, sizeof(dir), "%s/%s%s", root, kinds[i], own[1] ? own : "");
        if (access(dir, W_OK) != 0)
            snprintf(dir, sizeof(dir), "%s/%s", root, kinds[i]);
        char procs[300];
        snprintf(procs, sizeof(procs), "%s/cgroup.procs", dir);
        if (access(procs, W_OK) != 0 || access(dir, W_OK) != 0 ||
            !name_tree(dir, name, out->dirs[i], sizeof(out->dirs[i])))
            return false;
    }
    out->kind = CGROUP_V1;
    out->dir_count = 2;
    return true;
}

bool sandbox_cgroup_find(const char *mount_root, const char *own_cgroups, const char *name,
                         cgroup_tree *out, rt_error *err)
{
    char unified[200];
    *out = (cgroup_tree){ 0 };
    snprintf(unified, sizeof(unified), "%s/unified", mount_root);
    if (find_v2(mount_root, own_cgroups, name, out) ||
        find_v1(mount_root, own_cgroups, name, out) || find_v2(unified, own_cgroups, name, out))
        return true;
    *out = (cgroup_tree){ 0 };
    return rt_fail(err, RT_UNAVAILABLE,
                   "no cgroup with memory and pids controllers below %s can be written",
                   mount_root);
}

static int open_in(const char *dir, const char *file, int flags)
{
    char path[400];
    snprintf(path, sizeof(path), "%s/%s", dir, file);
    return open(path, flags | O_CLOEXEC);
}

static bool make_slot(const cgroup_tree *tree, unsigned index, cgroup_slot *slot, rt_error *err)
{
    bool is_v1 = tree->kind == CGROUP_V1;
    char dirs[2][300];
    *slot = (cgroup_slot){ { -1, -1 }, -1, -1, -1, -1, -1 };
    for (size_t i = 0; i < tree->dir_count; i++) {
        snprintf(dirs[i], sizeof(dirs[i]), "%s/%u", tree->dirs[i], index);
        if (mkdir(dirs[i], 0755) != 0 && errno != EEXIST)
            return rt_fail_errno(err, "make cgroup %s", dirs[i]);
        /*
         * A process moves its one thread. To move a whole process the kernel stops every fork on
         * the machine first, and waits until none is under way: that takes a millisecond.
         */
        slot->procs[i] = open_in(dirs[i], is_v1 ? "tasks" : "cgroup.procs", O_WRONLY);
    }
    const char *memory = dirs[0], *pids = dirs[tree->dir_count - 1];
    char path[400];
    /* A cell that is out of memory is out of memory: swapping would only slow its neighbours. */
    snprintf(path, sizeof(path), "%s/%s", memory, is_v1 ? "memory.swappiness" : "memory.swap.max");
    write_text(path, "0");
    slot->memory_limit = open_in(memory, is_v1 ? "memory.limit_in_bytes" : "memory.max", O_WRONLY);
    slot->memory_peak =
        open_in(memory, is_v1 ? "memory.max_usage_in_bytes" : "memory.peak", O_RDWR);
    if (slot->memory_peak < 0) /* version 2 before Linux 6.12: the peak cannot be reset */
        slot->memory_peak = open_in(memory, "memory.peak", O_RDONLY);
    slot->memory_events = open_in(memory, is_v1 ? "memory.oom_control" : "memory.events", O_RDONLY);
    slot->pids_max = open_in(pids, "pids.max", O_WRONLY);
    slot->pids_events = open_in(pids, "pids.events", O_RDONLY);
    if (slot->procs[0] < 0 || slot->procs[tree->dir_count - 1] < 0 || slot->memory_limit < 0 ||
        slot->pids_max < 0)
        return rt_fail_errno(err, "open the files of cgroup %s", memory);
    return true;
}

bool sandbox_cgroup_make(cgroup_tree *tree, unsigned slots, cgroup_slot *out, rt_error *err)
{
    for (size_t i = 0; i < tree->dir_count; i++)
        if (mkdir(tree->dirs[i], 0755) != 0)
            return rt_fail_errno(err, "make cgroup %s", tree->dirs[i]);
    if (tree->kind == CGROUP_V2) {
        char path[400], parent[256];
        snprintf(parent, sizeof(parent), "%s", tree->dirs[0]);
        *strrchr(parent, '/') = '\0';
        snprintf(path, sizeof(path), "%s/cgroup.subtree_control", parent);
        write_text(path, "+memory +pids"); /* may be on already, and not ours to switch */
        snprintf(path, sizeof(path), "%s/cgroup.subtree_control", tree->dirs[0]);
        if (!write_text(path, "+memory +pids"))
            return rt_fail_errno(err, "switch on the memory and pids controllers in %s", path);
    }
    for (unsigned i = 0; i < slots; i++) {
        tree->slots = i + 1;
        if (!make_slot(tree, i, &out[i], err))
            return false;
    }
    return true;
}

static bool write_number(int fd, uint64_t number)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    return pwrite(fd, text, (size_t)n, 0) == n;
}

bool sandbox_cgroup_limit(const cgroup_slot *slot, uint64_t memory_bytes, uint64_t processes,
                          rt_error *err)
{
    if (!write_number(slot->memory_limit, memory_bytes))
        return rt_fail_errno(err, "limit memory to %llu bytes", (unsigned long long)memory_bytes);
    if (!write_number(slot->pids_max, processes))
        return rt_fail_errno(err, "limit processes to %llu", (unsigned long long)processes);
    (void)!pwrite(slot->memory_peak, "0", 1, 0); /* starts the peak anew where it can be */
    return true;
}

/* The number after `key` in a file of "key number" lines; with no key, the file is one number. */
static uint64_t read_count(int fd, const char *key)
{
    char text[512];
    ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    if (!key)
        return strtoull(text, NULL, 10);
    size_t len = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, len) == 0 && line[len] == ' ')
            return strtoull(line + len, NULL, 10);
    }
    return 0;
}

void sandbox_cgroup_read(const cgroup_slot *slot, cgroup_counts *out)
{
    out->peak_bytes = read_count(slot->memory_peak, NULL);
    out->oom_kills = read_count(slot->memory_events, "oom_kill");
    out->pids_refused = read_count(slot->pids_events, "max");
}

void sandbox_cgroup_count_anew(const cgroup_slot *slot, cgroup_counts *before)
{
    (void)!pwrite(slot->memory_peak, "0", 1, 0); /* where it can be */
    sandbox_cgroup_read(slot, before);
}

size_t sandbox_cgroup_procs(const cgroup_slot *slot, int fds[JAIL_CGROUPS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < 2; i++)
        if (slot->procs[i] >= 0)
            fds[count++] = slot->procs[i];
    return count;
}

/* rmdir answers EBUSY until the last process of the group is really gone. */
static void remove_group(const char *path)
{
    for (int i = 0; i < 200 && rmdir(path) != 0 && errno == EBUSY; i++)
        nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
}

static void remove_tree(const char *dir)
{
    DIR *d = opendir(dir);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_type == DT_DIR && e->d_name[0] != '.') {
            char path[600];
            snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
            remove_group(path);
        }
    closedir(d);
    remove_group(dir);
}

void sandbox_cgroup_remove(const cgroup_tree *tree)
{
    for (size_t i = 0; i < tree->dir_count; i++)
        remove_tree(tree->dirs[i]);
}

static void sweep_dir(const char *dir, int depth)
{
    DIR *d = depth > 0 ? opendir(dir) : NULL;
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));) {
        char path[600];
        if (e->d_type != DT_DIR || e->d_name[0] == '.' ||
            snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) >= (int)sizeof(path))
            continue;
        if (strncmp(e->d_name, NAME_PREFIX, strlen(NAME_PREFIX)) != 0) {
            sweep_dir(path, depth - 1);
            continue;
        }
        long pid = strtol(e->d_name + strlen(NAME_PREFIX), NULL, 10);
        if (pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH)
            remove_tree(path);
    }
    closedir(d);
}

void sandbox_cgroup_sweep(const char *mount_root)
{
    sweep_dir(mount_root, 4);
}
