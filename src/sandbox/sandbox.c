/*
 * sandbox.c - the daemon's side: opening the house, asking for cells.
 *
 * Each request carries one end of a fresh socket pair, the lease. What the warden has to say about
 * that cell comes over the lease, and closing it ends the cell, so threads need no table of
 * replies. Where cells are kept warm we ask one step ahead, so that the usual start waits for
 * nobody; the few leases held for that are the only thing threads share, under a lock.
 */
#include "sandbox/sandbox_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox/cell.h"

#define AHEAD_MAX         4u
#define AHEAD_TIMEOUT_MS  2000
#define AHEAD_AGE_NS      (60ull * 1000000000u) /* older than this, a cell is not worth its memory */
#define BRANCH_TIMEOUT_MS 10000
#define START_TIMEOUT_MS  60000 /* a cold zygote on a busy machine */

/* A request made before anybody needed it: its cell is usually there when somebody does. */
typedef struct ahead {
    int lease; /* -1: a free place */
    warden_request request;
    uint64_t asked_ns;
} ahead;

struct rt_sandbox {
    int warden;
    pid_t keeper;
    unsigned ahead_max;   /* 0 where no cells are kept warm */
    pthread_mutex_t lock; /* over: */
    ahead ahead[AHEAD_MAX];
};

static _Noreturn void become_keeper(int far)
{
    static char *const argv[] = { sandbox_keeper_name, NULL };
    static char *const env[] = { NULL }; /* nothing of the daemon's environment goes in */
    if (far == 3)
        fcntl(3, F_SETFD, 0);
    else if (dup2(far, 3) < 0)
        _exit(127);
    syscall(SYS_close_range, 4U, ~0U, 0);
    execve("/proc/self/exe", argv, env);
    _exit(127);
}

static bool await_warden(rt_sandbox *sandbox, rt_error *err)
{
    lease_message first = { 0 };
    size_t none;
    struct pollfd polled = { .fd = sandbox->warden, .events = POLLIN };
    int ready;
    do
        ready = poll(&polled, 1, START_TIMEOUT_MS);
    while (ready < 0 && errno == EINTR);
    if (ready <= 0)
        return rt_fail(err, RT_TIMEOUT, "the sandbox did not start within %d s",
                       START_TIMEOUT_MS / 1000);
    ssize_t n = jail_packet_recv(sandbox->warden, &first, sizeof(first), NULL, 0, &none, 0);
    if (n != (ssize_t)sizeof(first))
        return rt_fail(
            err, RT_UNAVAILABLE,
            "the sandbox ended while starting; 'retort doctor' says what this host lacks");
    if (first.kind == LEASE_FAIL) {
        *err = first.error;
        return rt_wrap(err, "start the sandbox");
    }
    return true;
}

bool rt_sandbox_open(const rt_sandbox_config *config, rt_sandbox **out, rt_error *err)
{
    int pair[2];
    rt_buf packed RT_CLEANUP(rt_buf_done) = { 0 };
    if (!sandbox_config_pack(config, &packed, err))
        return false;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return rt_fail_errno(err, "socketpair");
    rt_sandbox *sandbox RT_CLEANUP(rt_sandbox_closep) = calloc(1, sizeof(*sandbox));
    if (!sandbox)
        rt_out_of_memory(sizeof(*sandbox));
    sandbox->warden = pair[0];
    unsigned cells = config->max_cells ? config->max_cells : RT_CELLS_MAX / 4;
    unsigned spare = RT_MIN(cells / 4, AHEAD_MAX); /* what we hold ahead nobody else can have */
    sandbox->ahead_max = RT_MIN(config->pool_max, spare);
    pthread_mutex_init(&sandbox->lock, NULL);
    for (size_t i = 0; i < AHEAD_MAX; i++)
        sandbox->ahead[i].lease = -1;
    sandbox->keeper = fork();
    if (sandbox->keeper == 0)
        become_keeper(pair[1]);
    close(pair[1]);
    if (sandbox->keeper < 0)
        return rt_fail_errno(err, "fork the keeper");
    if (jail_packet_send(sandbox->warden, packed.ptr, packed.len, NULL, 0) < 0)
        return rt_fail_errno(err, "configure the keeper");
    if (!await_warden(sandbox, err))
        return false;
    *out = RT_TAKE(sandbox);
    return true;
}

void rt_sandbox_close(rt_sandbox *sandbox)
{
    if (!sandbox)
        return;
    for (size_t i = 0; i < AHEAD_MAX; i++)
        rt_closep(&sandbox->ahead[i].lease);
    close(sandbox->warden); /* the warden and the keeper take the hint */
    if (sandbox->keeper > 0)
        while (waitpid(sandbox->keeper, NULL, 0) < 0 && errno == EINTR)
            ;
    free(sandbox);
}

void rt_sandbox_closep(rt_sandbox **sandbox)
{
    rt_sandbox_close(*sandbox);
}

bool rt_sandbox_drop_privileges(rt_error *err)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || syscall(SYS_capset, &head, none) != 0)
        return rt_fail_errno(err, "give up privileges");
    return true;
}

/* ---- asking ---- */

static bool send_request(rt_sandbox *sandbox, const warden_request *request, const char *paths,
                         int *lease, rt_error *err)
{
    char packet[PACKET_MAX];
    int pair[2];
    size_t size = sizeof(*request) + request->paths_bytes;
    if (size > sizeof(packet))
        return rt_fail(err, RT_LIMIT, "the read paths are too long together");
    memcpy(packet, request, sizeof(*request));
    if (request->paths_bytes)
        memcpy(packet + sizeof(*request), paths, request->paths_bytes);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return rt_fail_errno(err, "socketpair");
    ssize_t sent = jail_packet_send(sandbox->warden, packet, size, &pair[1], 1);
    close(pair[1]);
    if (sent < 0) {
        close(pair[0]);
        return rt_fail(err, RT_UNAVAILABLE, "the sandbox has ended; restart retort");
    }
    *lease = pair[0];
    return true;
}

/* The first word on a lease. */
static bool await_answer(int lease, int cancel_fd, int timeout_ms, lease_message *answer, int *fds,
                         size_t *fd_count, rt_error *err)
{
    struct pollfd polled[2] = { { .fd = lease, .events = POLLIN },
                                { .fd = cancel_fd, .events = POLLIN } };
    int n;
    do
        n = poll(polled, 2, timeout_ms);
    while (n < 0 && errno == EINTR);
    if (polled[1].revents)
        return rt_fail(err, RT_CANCELLED, "cancelled");
    if (n <= 0)
        return rt_fail(err, RT_TIMEOUT, "no cell became free within %d s", timeout_ms / 1000);
    ssize_t got = jail_packet_recv(lease, answer, sizeof(*answer), fds, GRANT_FDS, fd_count, 0);
    /* It was closed before something of ours was read; what was said first is still there. */
    if (got < 0 && errno == ECONNRESET)
        got = jail_packet_recv(lease, answer, sizeof(*answer), fds, GRANT_FDS, fd_count, 0);
    if (got != (ssize_t)sizeof(*answer))
        return rt_fail(err, RT_UNAVAILABLE, "the sandbox has ended; restart retort");
    if (answer->kind == LEASE_FAIL) {
        *err = answer->error;
        return false;
    }
    return true;
}

/* ---- asking ahead ---- */

/* A lease on a cell like this one, asked for earlier, or -1. Cells with read paths are too many
 * kinds. */
static int take_ahead(rt_sandbox *sandbox, const warden_request *request)
{
    int lease = -1;
    uint64_t now = rt_now_ns();
    pthread_mutex_lock(&sandbox->lock);
    for (size_t i = 0; i < sandbox->ahead_max; i++) {
        ahead *a = &sandbox->ahead[i];
        if (a->lease >= 0 && now - a->asked_ns > AHEAD_AGE_NS)
            rt_closep(&a->lease);
        if (a->lease >= 0 && lease < 0 && memcmp(&a->request, request, sizeof(*request)) == 0)
            lease = RT_TAKE_FD(a->lease);
    }
    pthread_mutex_unlock(&sandbox->lock);
    return lease;
}

typedef struct next_wish {
    rt_sandbox *sandbox;
    warden_request request;
} next_wish;

static void ask_ahead(void *ctx)
{
    const next_wish *wish = ctx;
    rt_sandbox *sandbox = wish->sandbox;
    const warden_request *request = &wish->request;
    warden_request early = *request;
    early.is_early = 1;
    pthread_mutex_lock(&sandbox->lock);
    for (size_t i = 0; i < sandbox->ahead_max; i++) {
        ahead *a = &sandbox->ahead[i];
        if (a->lease >= 0)
            continue;
        if (send_request(sandbox, &early, NULL, &a->lease, NULL)) {
            a->request = *request;
            a->asked_ns = rt_now_ns();
        }
        break;
    }
    pthread_mutex_unlock(&sandbox->lock);
}

/* Asks for the next cell of this kind once the present one does its work. */
static void ask_ahead_later(rt_sandbox *sandbox, const warden_request *request, rt_cell *cell)
{
    if (request->paths_bytes > 0 || sandbox->ahead_max == 0)
        return;
    next_wish *wish = malloc(sizeof(*wish));
    if (!wish)
        rt_out_of_memory(sizeof(*wish));
    wish->sandbox = sandbox;
    wish->request = *request;
    sandbox_cell_when_idle(cell, ask_ahead, wish);
}

static bool name_zygote(rt_str name, warden_request *request, rt_error *err)
{
    if (name.len == 0 || name.len >= sizeof(request->zygote))
        return rt_fail(err, RT_INVALID, "a runtime's name has 1 to %d bytes",
                       RT_ZYGOTE_NAME_MAX - 1);
    memcpy(request->zygote, name.ptr, name.len);
    return true;
}

bool rt_sandbox_warm(rt_sandbox *sandbox, rt_str zygote, rt_arena *arena, rt_str *about,
                     rt_error *err)
{
    warden_request request = { .op = WARDEN_WARM };
    lease_message answer;
    int lease RT_CLEANUP(rt_closep) = -1, fds[GRANT_FDS];
    size_t fd_count;
    if (!name_zygote(zygote, &request, err) ||
        !send_request(sandbox, &request, NULL, &lease, err) ||
        !await_answer(lease, -1, START_TIMEOUT_MS, &answer, fds, &fd_count, err))
        return false;
    *about = rt_arena_str(arena, rt_str_of(answer.text));
    return true;
}

static bool pack_paths(const rt_cell_spec *spec, char *out, size_t size, uint32_t *used,
                       rt_error *err)
{
    *used = 0;
    if (spec->read_path_count > RT_READ_PATHS_MAX)
        return rt_fail(err, RT_LIMIT, "at most %d read paths", RT_READ_PATHS_MAX);
    if (spec->read_path_count > 0 && spec->files == RT_FILES_NONE)
        return rt_fail(err, RT_DENIED,
                       "read paths need file access: set files to read_only or sandboxed");
    for (size_t i = 0; i < spec->read_path_count; i++) {
        rt_str path = spec->read_paths[i];
        if (!sandbox_root_check(path, err))
            return false;
        if (*used + path.len + 1 > size)
            return rt_fail(err, RT_LIMIT, "the read paths are too long together");
        memcpy(out + *used, path.ptr, path.len);
        out[*used + path.len] = '\0';
        *used += (uint32_t)path.len + 1;
    }
    return true;
}

/* Waits for the cell of a lease; takes the lease whatever happens. */
static bool open_cell(int lease, int timeout_ms, const rt_cell_spec *spec, rt_cell **out,
                      rt_error *err)
{
    lease_message answer;
    int fds[GRANT_FDS];
    size_t fd_count = 0;
    int cancel_fd = spec->has_cancel_fd ? spec->cancel_fd : -1;
    if (!await_answer(lease, cancel_fd, timeout_ms, &answer, fds, &fd_count, err)) {
        close(lease);
        return false;
    }
    if (fd_count != GRANT_FDS) {
        for (size_t i = 0; i < fd_count; i++)
            close(fds[i]);
        close(lease);
        return rt_fail(err, RT_INTERNAL, "a cell came with %zu descriptors", fd_count);
    }
    rt_cell *cell RT_CLEANUP(rt_cell_closep) = sandbox_cell_new(lease, fds, spec->frame_bytes);
    sandbox_cell_heed(cell, cancel_fd);
    if (spec->is_live && !sandbox_cell_open_door(cell, err))
        return false;
    if (!sandbox_cell_greet(cell, rt_str_of(answer.text), err))
        return rt_wrap(err, "seal the cell");
    *out = RT_TAKE(cell);
    return true;
}

bool rt_cell_start(rt_sandbox *sandbox, const rt_cell_spec *spec, rt_cell **out, rt_error *err)
{
    warden_request request;
    char paths[PACKET_MAX / 2];
    memset(&request, 0, sizeof(request)); /* compared byte by byte: the gaps count */
    request.op = WARDEN_CELL;
    request.memory_bytes = spec->memory_bytes;
    request.cpu_ms = spec->cpu_ms;
    request.processes = spec->processes;
    request.scratch_bytes = spec->scratch_bytes;
    request.files = spec->files;
    request.is_exec_denied = spec->is_exec_denied;
    request.is_live = spec->is_live;
    if (!name_zygote(spec->zygote, &request, err) ||
        !pack_paths(spec, paths, sizeof(paths), &request.paths_bytes, err))
        return false;
    int lease = spec->is_live ? -1 : take_ahead(sandbox, &request);
    bool ok = lease >= 0 && open_cell(lease, AHEAD_TIMEOUT_MS, spec, out, &(rt_error){ 0 });
    /* One that was asked for ahead may have failed or died meanwhile: that is not this run's fault.
     */
    ok = ok || (send_request(sandbox, &request, paths, &lease, err) &&
                open_cell(lease, START_TIMEOUT_MS, spec, out, err));
    if (ok && !spec->is_live)
        ask_ahead_later(sandbox, &request, *out);
    return ok;
}

/* The new cell is made while the guest gets ready; then the warden may bring the two together. */
static bool copy_guest(rt_cell *cell, int lease, rt_error *err)
{
    lease_message go = { .kind = LEASE_GO };
    if (!sandbox_cell_ready_branch(cell, err))
        return false;
    jail_packet_send(lease, &go, sizeof(go), NULL, 0); /* if it was refused: its answer is there */
    return true;
}

bool rt_cell_branch(rt_cell *cell, rt_cell **out, rt_error *err)
{
    int pair[2];
    rt_cell_spec spec = { .is_live = true, .frame_bytes = sandbox_cell_frame_bytes(cell) };
    if (!rt_cell_begin(cell, 0, -1, err))
        return false;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return rt_fail_errno(err, "socketpair");
    int near RT_CLEANUP(rt_closep) = pair[0], far RT_CLEANUP(rt_closep) = pair[1];
    bool ok = sandbox_cell_ask_branch(cell, far, err);
    rt_closep(&far);
    ok = ok && copy_guest(cell, near, err) &&
         open_cell(RT_TAKE_FD(near), BRANCH_TIMEOUT_MS, &spec, out, err);
    sandbox_cell_rest(cell);
    return ok;
}
