/* SPDX-License-Identifier: Apache-2.0 */
/*
 * empty_cells.c - how many cells a second this kernel makes and unmakes when nothing runs in them.
 *
 *     build/empty-cells 2 1000           two loops side by side, 1000 cells each; prints cells/s
 *
 * A cell here has the namespaces of one of ours, its ids, its scratch directory and its /proc, and
 * ends. As ours it is born from a small process in a prepared root: what a new mount namespace
 * costs depends on the mounts it copies.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HOUSE_FLAGS                                                                                \
    (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET)
#define CELL_FLAGS (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS)
#define LOOPS_MAX  64
#define NEW        "/tmp/new"

/* What a prepared root shows of the host, of which a cell's namespace copies the mounts. */
static const char *const shown[] = { "/usr",         "/etc/alternatives", "/dev/null",
                                     "/dev/zero",    "/dev/full",         "/dev/random",
                                     "/dev/urandom", "/etc/fonts",        "/etc/python3",
                                     "/bin/true",    "/bin/cat",          "/bin/ls" };

static void must(int result, const char *what)
{
    if (result >= 0)
        return;
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    _exit(1);
}

static void put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    must(fd, path);
    must((int)write(fd, text, strlen(text)), path);
    close(fd);
}

/* One user and one group, called `inside` in there. */
static void map_ids(pid_t pid, unsigned inside)
{
    const struct {
        const char *file;
        unsigned outside;
    } maps[] = { { "uid_map", geteuid() }, { "gid_map", getegid() } };
    char path[64], text[64];
    snprintf(path, sizeof(path), "/proc/%d/setgroups", pid);
    put(path, "deny");
    for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
        snprintf(path, sizeof(path), "/proc/%d/%s", pid, maps[i].file);
        snprintf(text, sizeof(text), "%u %u 1\n", inside, maps[i].outside);
        put(path, text);
    }
}

/* Starts `body` in namespaces of its own, with ids. */
static pid_t bear(unsigned long flags, unsigned id, void (*body)(void *), void *arg)
{
    int sync[2];
    char byte;
    must(pipe2(sync, O_CLOEXEC), "pipe");
    pid_t pid = (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);
    must(pid, "clone");
    if (pid == 0) {
        close(sync[1]);
        must(read(sync[0], &byte, 1) == 1 ? 0 : -1, "wait for ids");
        body(arg);
        _exit(0);
    }
    close(sync[0]);
    map_ids(pid, id);
    must((int)write(sync[1], "", 1), "wake");
    close(sync[1]);
    return pid;
}

static void make_parents(const char *path)
{
    char part[128];
    snprintf(part, sizeof(part), "%s", path);
    for (char *slash = part + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        mkdir(part, 0755);
    }
}

static void show(const char *path)
{
    char target[128];
    struct stat st;
    if (stat(path, &st) != 0)
        return;
    snprintf(target, sizeof(target), NEW "%s", path);
    make_parents(target);
    if (S_ISDIR(st.st_mode))
        mkdir(target, 0755);
    else
        close(open(target, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    must(mount(path, target, NULL, MS_BIND | MS_REC, NULL), path);
}

static void prepare_root(void)
{
    must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "make mounts private");
    must(mount("house", "/tmp", "tmpfs", 0, "size=1m"), "mount /tmp");
    must(mkdir(NEW, 0755), NEW);
    must(mount("root", NEW, "tmpfs", 0, "size=16m"), "mount a root");
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
        show(shown[i]);
    must(mkdir(NEW "/work", 0755) | mkdir(NEW "/proc", 0755), "make places");
    must(mount("work", NEW "/work", "tmpfs", 0, "size=32m"), "mount /work");
    must(mount("proc", NEW "/proc", "proc", 0, NULL), "mount /proc");
    must(chdir(NEW), NEW);
    must((int)syscall(SYS_pivot_root, ".", "."), "pivot_root");
    must(umount2(".", MNT_DETACH), "leave the old root");
    must(chdir("/"), "/");
}

static void be_empty(void *arg)
{
    (void)arg;
    must(sethostname("cell", 4), "sethostname");
    must(mount("scratch", "/work", "tmpfs", MS_NOSUID | MS_NODEV,
               "mode=0755,size=268435456,nr_inodes=65600"),
         "mount scratch");
    must(mkdir("/work/.tmp", 01777) | mkdir("/work/.shm", 01777) | mkdir("/work/out", 0755),
         "make places");
    must(mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
               "subset=pid,hidepid=invisible"),
         "mount /proc");
}

typedef struct loop {
    int count, ready, start;
} loop;

static void run_loop(void *arg)
{
    const loop *me = arg;
    char byte;
    int status;
    prepare_root();
    must((int)write(me->ready, "", 1), "say ready");
    must((int)read(me->start, &byte, 1), "wait for the start");
    for (int i = 0; i < me->count; i++) {
        pid_t pid = bear(CELL_FLAGS, 1000, be_empty, NULL);
        must(waitpid(pid, &status, 0), "wait for a cell");
        must(status == 0 ? 0 : -1, "a cell");
    }
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    int ready[2], start[2], loops = argc > 1 ? atoi(argv[1]) : 1, status, failed = 0;
    char byte;
    if (loops < 1 || loops > LOOPS_MAX)
        return 2;
    must(pipe2(ready, O_CLOEXEC) | pipe2(start, O_CLOEXEC), "pipe");
    loop one = { .count = argc > 2 ? atoi(argv[2]) : 100, .ready = ready[1], .start = start[0] };
    for (int i = 0; i < loops; i++)
        bear(HOUSE_FLAGS, 0, run_loop, &one);
    close(ready[1]);
    for (int i = 0; i < loops; i++)
        must(read(ready[0], &byte, 1) == 1 ? 0 : -1, "wait for a loop");
    double began = seconds();
    for (int i = 0; i < loops; i++)
        must((int)write(start[1], "", 1), "start");
    for (int i = 0; i < loops; i++)
        if (wait(&status) < 0 || status != 0)
            failed++;
    printf("%.1f\n", loops * one.count / (seconds() - began));
    return failed ? 1 : 0;
}
