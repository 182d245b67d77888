/*
 * init.c - the first process of a cell.
 *
 * It is ours, not the code's: it mounts the scratch directory and /proc, answers refused system
 * calls, hands out the files left in out/, and watches memory where no cgroup can. It keeps
 * capabilities over its own cell only (which is also why the code, having none, may not trace it)
 * and runs as another user than the code wherever the host has ids for that. It stays "dumpable":
 * the kernel lets a zygote join its namespaces only then. When it ends, the kernel ends everything
 * in the cell.
 */
#include "sandbox/sandbox_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define LISTENERS_MAX    16
#define DENIALS_REPORTED 64 /* per cell; more would tell nothing new */
#define DENIALS_ANSWERED                                                                           \
    20000 /* then the listener closes, and the kernel answers ENOSYS by itself */
#define ARTIFACT_NAME_MAX 512
#define ARTIFACT_DEPTH    8
#define WATCH_MS          20
#define OUT_DIR           RT_WORKDIR "/out"

/* A file in out/ that a run of a live cell has left and the holder knows of. */
typedef struct told_file {
    ino_t inode;
    struct timespec changed;
} told_file;

typedef struct cell_init {
    int link, porch;
    int listeners[LISTENERS_MAX];
    size_t listener_count;
    unsigned denials;
    watch_order watch;
    uint64_t next_ns; /* when to look again */
    uint64_t memory_base, cpu_base;
    uint64_t memory_peak; /* only where no cgroup counts */
    bool is_live, is_resting;
    struct timespec began; /* the present run of a live cell, on the clock that stamps files */
    told_file *told;       /* what was in out/ after the last run */
    size_t told_count;
} cell_init;

/* ---- setting up ---- */

static bool become_root(const birth_order *order, rt_error *err)
{
    if (!order->has_range)
        return true; /* the only id there is: the code's */
    if (setresgid(CELL_ROOT, CELL_ROOT, CELL_ROOT) != 0 ||
        setresuid(CELL_ROOT, CELL_ROOT, CELL_ROOT) != 0)
        return rt_fail_errno(err, "become the cell's root");
    prctl(PR_SET_DUMPABLE, 1); /* changing ids had switched it off */
    return true;
}

static bool mount_scratch(const birth_order *order, rt_error *err)
{
    static const struct {
        const char *path;
        mode_t mode;
    } dirs[] = { { RT_WORKDIR "/.tmp", 01777 }, { RT_WORKDIR "/.shm", 01777 }, { OUT_DIR, 0755 } };
    char options[128];
    unsigned long inodes = (unsigned long)(order->scratch_bytes / 4096) + 64;
    snprintf(options, sizeof(options), "mode=0755,uid=%u,gid=%u,size=%llu,nr_inodes=%lu", CELL_UID,
             CELL_UID, (unsigned long long)order->scratch_bytes, inodes);
    if (mount("scratch", RT_WORKDIR, "tmpfs", MS_NOSUID | MS_NODEV, options) != 0)
        return rt_fail_errno(err, "mount the scratch directory");
    for (size_t i = 0; i < RT_COUNT(dirs); i++)
        if (mkdir(dirs[i].path, 0755) != 0 || chmod(dirs[i].path, dirs[i].mode) != 0 ||
            chown(dirs[i].path, CELL_UID, CELL_UID) != 0)
            return rt_fail_errno(err, "make %s", dirs[i].path);
    return true;
}

static bool seal_scratch(const birth_order *order, rt_error *err)
{
    if (order->is_scratch_readonly &&
        mount(NULL, RT_WORKDIR, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV,
              NULL) != 0)
        return rt_fail_errno(err, "make the scratch directory read-only");
    return true;
}

static bool mount_proc(rt_error *err)
{
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
              "subset=pid,hidepid=invisible") != 0)
        return rt_fail_errno(err, "mount /proc");
    return true;
}

static bool set_up(const birth_order *order, const root_plan *plan, rt_error *err)
{
    if (sethostname("cell", 4) != 0)
        return rt_fail_errno(err, "set the host name");
    return become_root(order, err) && mount_scratch(order, err) &&
           sandbox_root_show_late(plan, err) && seal_scratch(order, err) && mount_proc(err);
}

/* ---- talking to the holder of the cell ---- */

static void say(cell_init *me, link_kind kind, const void *body, size_t size, int fd)
{
    char packet[sizeof(link_head) + sizeof(uint64_t) + ARTIFACT_NAME_MAX + sizeof(denial_note)];
    link_head head = { .kind = kind, .size = (uint32_t)size };
    if (size > sizeof(packet) - sizeof(head))
        return;
    memcpy(packet, &head, sizeof(head));
    if (size > 0)
        memcpy(packet + sizeof(head), body, size);
    jail_packet_send(me->link, packet, sizeof(head) + size, &fd, fd >= 0 ? 1 : 0);
}

/* ---- refused system calls ---- */

static void read_pointer(const struct seccomp_notif *asked, denial_note *note)
{
    int arg, len_arg;
    if (!sandbox_filter_wants_address(note->call, &arg, &len_arg))
        return;
    size_t len = len_arg >= 0 ? (size_t)note->args[len_arg] : sizeof(note->address);
    len = RT_MIN(len, sizeof(note->address));
    /* A text may end just before an unmapped page: take what the page has. */
    size_t in_page = 4096 - note->args[arg] % 4096;
    if (len_arg < 0)
        len = RT_MIN(len, in_page);
    struct iovec here = { note->address, len };
    struct iovec there = { (void *)(uintptr_t)note->args[arg], len };
    ssize_t n = process_vm_readv((pid_t)asked->pid, &here, 1, &there, 1, 0);
    note->address_len = n > 0 ? (uint32_t)n : 0;
}

static bool answer_refusal(cell_init *me, int listener)
{
    struct seccomp_notif asked = { 0 };
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0)
        return errno == EINTR || errno == ENOENT; /* the asker died meanwhile */
    me->denials++;
    if (me->denials <= DENIALS_REPORTED) {
        denial_note note = { .call = asked.data.nr, .arch = asked.data.arch };
        memcpy(note.args, asked.data.args, sizeof(note.args));
        read_pointer(&asked, &note);
        say(me, LINK_DENIAL, &note, sizeof(note), -1);
    }
    struct seccomp_notif_resp answer = { .id = asked.id, .error = -EPERM };
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    return me->denials < DENIALS_ANSWERED;
}

static void take_listener(cell_init *me)
{
    char byte;
    int fd = -1;
    size_t count = 0;
    ssize_t n = jail_packet_recv(me->porch, &byte, 1, &fd, 1, &count, MSG_DONTWAIT);
    if (n == 0) {
        close(me->porch);
        me->porch = -1;
    }
    if (count == 0)
        return;
    if (me->listener_count < LISTENERS_MAX)
        me->listeners[me->listener_count++] = fd;
    else
        close(fd);
}

static void drop_listener(cell_init *me, size_t i)
{
    close(me->listeners[i]);
    me->listeners[i] = me->listeners[--me->listener_count];
}

/* ---- the files in out/ ---- */

typedef struct listing {
    char (*names)[ARTIFACT_NAME_MAX];
    size_t count, max;
} listing;

static bool is_before(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

/* In a live cell only what the present run has left; the time of change is not the code's to set.
 */
static bool is_new(const cell_init *me, int dir, const char *name)
{
    struct stat st;
    if (!me->is_live)
        return true;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || is_before(st.st_ctim, me->began))
        return false;
    for (size_t i = 0; i < me->told_count; i++)
        if (me->told[i].inode == st.st_ino && !is_before(me->told[i].changed, st.st_ctim))
            return false;
    return true;
}

static void list_dir(const cell_init *me, int root, const char *prefix, int depth, listing *out)
{
    int fd = sandbox_files_open(root, *prefix ? prefix : ".", O_RDONLY | O_DIRECTORY);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *e; out->count < out->max && (e = readdir(dir));) {
        char name[ARTIFACT_NAME_MAX];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            snprintf(name, sizeof(name), "%s%s%s", prefix, *prefix ? "/" : "", e->d_name) >=
                (int)sizeof(name))
            continue;
        if (e->d_type == DT_DIR && depth < ARTIFACT_DEPTH)
            list_dir(me, root, name, depth + 1, out);
        else if (e->d_type == DT_REG && is_new(me, fd, e->d_name))
            memcpy(out->names[out->count++], name, sizeof(name));
    }
    closedir(dir);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Remembered only while its time of change cannot tell it from a file of the present run. */
static void remember_file(cell_init *me, const struct stat *st)
{
    size_t kept = 0;
    for (size_t i = 0; i < me->told_count; i++)
        if (!is_before(me->told[i].changed, me->began))
            me->told[kept++] = me->told[i];
    told_file *more = realloc(me->told, (kept + 1) * sizeof(*more));
    me->told_count = kept;
    if (!more)
        return;
    me->told = more;
    me->told[me->told_count++] = (told_file){ .inode = st->st_ino, .changed = st->st_ctim };
}

static void send_file(cell_init *me, int root, const char *name)
{
    char body[sizeof(uint64_t) + ARTIFACT_NAME_MAX];
    struct stat st;
    int fd = sandbox_files_open(root, name, O_RDONLY);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        uint64_t size = (uint64_t)st.st_size;
        memcpy(body, &size, sizeof(size));
        memcpy(body + sizeof(size), name, strlen(name));
        if (me->is_live)
            remember_file(me, &st);
        say(me, LINK_FILE, body, sizeof(size) + strlen(name), fd);
    }
    if (fd >= 0)
        close(fd);
}

static bool is_scratch_full(void)
{
    struct statfs fs;
    return statfs(RT_WORKDIR, &fs) == 0 && (fs.f_bavail == 0 || fs.f_ffree == 0);
}

/* As most runs leave it; found out without memory of our own, which would first have to be had. */
static bool is_bare(int dir)
{
    _Alignas(struct dirent64) char entries[512];
    for (;;) {
        ssize_t n = getdents64(dir, entries, sizeof(entries));
        if (n <= 0)
            return n == 0;
        for (ssize_t at = 0; at < n;) {
            const struct dirent64 *e = (const struct dirent64 *)(entries + at);
            if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
                return false;
            at += e->d_reclen;
        }
    }
}

static void list_files(cell_init *me, uint32_t most)
{
    listing all = { .max = RT_MIN(most, 1000u) };
    list_end end = { .is_scratch_full = is_scratch_full(),
                     .memory_peak = me->watch.memory_bytes ? me->memory_peak : 0 };
    int root = open(OUT_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (root >= 0 && !is_bare(root))
        all.names = calloc(all.max ? all.max : 1, ARTIFACT_NAME_MAX);
    if (root >= 0 && all.names) {
        list_dir(me, root, "", 0, &all);
        qsort(all.names, all.count, ARTIFACT_NAME_MAX, by_name);
        for (size_t i = 0; i < all.count; i++)
            send_file(me, root, all.names[i]);
    }
    if (root >= 0)
        close(root);
    free(all.names);
    say(me, LINK_LIST_END, &end, sizeof(end), -1);
}

/* ---- watching memory and CPU time ---- */

typedef struct usage {
    uint64_t own_bytes, cpu_ticks;
    bool is_known; /* false: /proc could not be read */
} usage;

/* utime, stime and those of children that were waited for: the 12th to 15th word after the name. */
static uint64_t ticks_of(const char *stat)
{
    unsigned long long t[4] = { 0 };
    const char *after = strrchr(stat, ')');
    if (after)
        sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu", &t[0],
               &t[1], &t[2], &t[3]);
    return t[0] + t[1] + t[2] + t[3];
}

static bool read_proc(const char *pid, const char *file, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%.20s/%s", pid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static uint64_t kilobytes_of(const char *status, const char *key)
{
    const char *at = strstr(status, key);
    return at ? strtoull(at + strlen(key), NULL, 10) << 10 : 0;
}

static usage read_usage(void)
{
    DIR *dir = opendir("/proc");
    usage all = { .is_known = dir != NULL };
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char text[2048];
        if (e->d_name[0] < '1' || e->d_name[0] > '9' || strcmp(e->d_name, "1") == 0)
            continue;
        if (read_proc(e->d_name, "status", text, sizeof(text)))
            all.own_bytes += kilobytes_of(text, "RssAnon:") + kilobytes_of(text, "RssShmem:");
        if (read_proc(e->d_name, "stat", text, sizeof(text)))
            all.cpu_ticks += ticks_of(text);
    }
    if (dir)
        closedir(dir);
    return all;
}

/* What the processes of the cell have for themselves, and what lies in scratch. */
static uint64_t memory_used(const usage *now)
{
    struct statfs fs;
    uint64_t scratch = 0;
    if (statfs(RT_WORKDIR, &fs) == 0)
        scratch = (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
    return now->own_bytes + scratch;
}

static uint64_t cpu_used_ms(const usage *now)
{
    return now->cpu_ticks * 1000u / (uint64_t)sysconf(_SC_CLK_TCK);
}

/* Even with every core busy the CPU limit cannot be reached sooner than this. */
static uint64_t cpu_check_ms(uint64_t left_ms)
{
    uint64_t cores = (uint64_t)RT_MAX(sysconf(_SC_NPROCESSORS_ONLN), 1l);
    return RT_MAX(left_ms / cores, (uint64_t)WATCH_MS);
}

static void end_cell(cell_init *me, link_kind why)
{
    say(me, why, NULL, 0, -1);
    if (me->is_live && why == LINK_CPU) {
        me->watch.cpu_ms = 0; /* the holder interrupts the run first */
        return;
    }
    kill(-1, SIGKILL); /* everything in this pid namespace but us */
    me->watch = (watch_order){ 0 };
}

static void watch(cell_init *me)
{
    usage now = read_usage();
    uint64_t memory = memory_used(&now),
             cpu = cpu_used_ms(&now) - RT_MIN(cpu_used_ms(&now), me->cpu_base);
    me->memory_peak = RT_MAX(me->memory_peak, memory);
    me->next_ns = rt_now_ns() + WATCH_MS * 1000000ull;
    if (!now.is_known || /* blind, we must assume the worst */
        (me->watch.memory_bytes && memory > me->memory_base + me->watch.memory_bytes))
        end_cell(me, LINK_MEMORY);
    else if (me->watch.cpu_ms && cpu >= me->watch.cpu_ms)
        end_cell(me, LINK_CPU);
    else if (!me->watch.memory_bytes)
        me->next_ns = rt_now_ns() + cpu_check_ms(me->watch.cpu_ms - cpu) * 1000000ull;
}

static void start_watch(cell_init *me, const watch_order *order)
{
    me->watch = *order;
    me->next_ns = rt_now_ns() + cpu_check_ms(order->cpu_ms) * 1000000ull;
    if (!order->memory_bytes)
        return; /* what the guest used while it rehearsed is too little to subtract */
    usage now = read_usage();
    me->memory_base = memory_used(&now);
    me->cpu_base = cpu_used_ms(&now);
    me->next_ns = rt_now_ns() + WATCH_MS * 1000000ull;
}

static bool is_watching(const cell_init *me)
{
    return !me->is_resting && (me->watch.memory_bytes || me->watch.cpu_ms);
}

static int until_watch_ms(const cell_init *me)
{
    uint64_t now = rt_now_ns();
    if (!is_watching(me))
        return -1;
    return now >= me->next_ns ? 0 : (int)((me->next_ns - now + 999999) / 1000000);
}

/* ---- the loop ---- */

/* A run begins: all wakes up, and CPU time counts from here. */
static void begin_run(cell_init *me, uint64_t cpu_ms)
{
    usage now = read_usage();
    me->is_live = true;
    me->is_resting = false;
    clock_gettime(CLOCK_REALTIME_COARSE, &me->began); /* the clock of files */
    me->cpu_base = cpu_used_ms(&now);
    me->watch.cpu_ms = cpu_ms;
    me->denials = 0;
    me->next_ns =
        rt_now_ns() + (me->watch.memory_bytes ? WATCH_MS : cpu_check_ms(cpu_ms)) * 1000000ull;
    kill(-1, SIGCONT);
}

/* A live cell sleeps between its runs: what the code left running gets no CPU time meanwhile. */
static void rest(cell_init *me)
{
    kill(-1, SIGSTOP);
    me->is_resting = true;
}

/* Something with a file of the scratch directory; the answer goes to whoever asked. */
static void serve_file(cell_init *me, const file_order *order, const char *path, int data,
                       int answers)
{
    file_reply reply = { 0 };
    int fd RT_CLEANUP(rt_closep) = -1;
    int root RT_CLEANUP(rt_closep) = open(RT_WORKDIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool may_be_empty = order->op == FILE_LIST;
    (void)me;
    if (root < 0)
        rt_fail_errno(&reply.error, "open %s", RT_WORKDIR);
    else if (!sandbox_files_check(rt_str_of(path), may_be_empty, &reply.error))
        ;
    else if (order->op == FILE_WRITE && data >= 0)
        sandbox_files_write(root, path, data, CELL_UID, &reply.error);
    else if (order->op == FILE_READ)
        fd = sandbox_files_read(root, path, &reply.size, &reply.error);
    else if (order->op == FILE_LIST)
        fd = sandbox_files_list(root, path, &reply.size, &reply.error);
    else if (order->op == FILE_REMOVE)
        sandbox_files_remove(root, path, &reply.error);
    else
        rt_fail(&reply.error, RT_INTERNAL, "an order for a file makes no sense");
    jail_packet_send(answers, &reply, sizeof(reply), &fd, fd >= 0 ? 1 : 0);
}

static void obey_file(cell_init *me, const char *body, size_t size, int *fds)
{
    file_order order;
    char path[FILE_PATH_MAX + 1];
    if (size < sizeof(order))
        return;
    memcpy(&order, body, sizeof(order));
    if (order.path_len > FILE_PATH_MAX || order.path_len != size - sizeof(order))
        return;
    memcpy(path, body + sizeof(order), order.path_len);
    path[order.path_len] = '\0';
    serve_file(me, &order, path, fds[1], fds[0]);
}

static void obey(cell_init *me)
{
    char packet[sizeof(link_head) + sizeof(file_order) + FILE_PATH_MAX];
    int fds[2] = { -1, -1 };
    size_t count;
    ssize_t n = jail_packet_recv(me->link, packet, sizeof(packet), fds, 2, &count, 0);
    link_head head;
    if (n < (ssize_t)sizeof(head))
        _exit(0); /* nobody holds the cell any more */
    memcpy(&head, packet, sizeof(head));
    if (head.kind == LINK_LIST && head.size == sizeof(uint32_t)) {
        uint32_t most;
        memcpy(&most, packet + sizeof(head), sizeof(most));
        if (me->is_live)
            rest(me);
        list_files(me, most);
    } else if (head.kind == LINK_WATCH && head.size == sizeof(watch_order)) {
        watch_order order;
        memcpy(&order, packet + sizeof(head), sizeof(order));
        start_watch(me, &order);
    } else if (head.kind == LINK_BEGIN && head.size == sizeof(uint64_t)) {
        uint64_t cpu_ms;
        memcpy(&cpu_ms, packet + sizeof(head), sizeof(cpu_ms));
        begin_run(me, cpu_ms);
    } else if (head.kind == LINK_REST) {
        rest(me);
        say(me, LINK_RESTED, NULL, 0, -1);
    } else if (head.kind == LINK_DO && count > 0) {
        obey_file(me, packet + sizeof(head), (size_t)n - sizeof(head), fds);
    }
    rt_closep(&fds[0]);
    rt_closep(&fds[1]);
}

static _Noreturn void serve(cell_init *me)
{
    for (;;) {
        struct pollfd polled[2 + LISTENERS_MAX] = { { .fd = me->link, .events = POLLIN },
                                                    { .fd = me->porch, .events = POLLIN } };
        size_t listeners = me->listener_count;
        for (size_t i = 0; i < listeners; i++)
            polled[2 + i] = (struct pollfd){ .fd = me->listeners[i], .events = POLLIN };
        int n = poll(polled, 2 + listeners, until_watch_ms(me));
        if (n < 0 && errno != EINTR)
            _exit(1);
        if (is_watching(me) && until_watch_ms(me) == 0)
            watch(me);
        if (n <= 0)
            continue;
        for (size_t i = listeners; i-- > 0;) /* backwards: dropping moves the last one here */
            if (polled[2 + i].revents &&
                !(polled[2 + i].revents & POLLIN && answer_refusal(me, me->listeners[i])))
                drop_listener(me, i);
        if (polled[1].revents)
            take_listener(me);
        if (polled[0].revents)
            obey(me);
    }
}

_Noreturn void sandbox_init_main(const birth_order *order, const root_plan *plan, int link,
                                 int porch)
{
    rt_error err = { 0 };
    cell_init me = { .link = link, .porch = porch };
    prctl(PR_SET_NAME, "retort-cell");
    signal(SIGCHLD, SIG_IGN); /* the kernel reaps orphans for us */
    if (!set_up(order, plan, &err)) {
        say(&me, LINK_FAILED, &err, sizeof(err), -1);
        _exit(1);
    }
    jail_packet_send(porch, &(char){ JAIL_BUILT }, 1, NULL, 0); /* for a guest that waits already */
    say(&me, LINK_READY, NULL, 0, -1);
    serve(&me);
}
