/*
 * cells.c - the warden's cells, from birth to the reuse of their slot.
 *
 * A cell is over when both its processes have been reaped: the kernel lets go of its first process
 * only after everything else in its pid namespace is gone. Only then is the slot free again, so two
 * cells never share ids or a cgroup.
 */
#include "sandbox/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void close_fds(int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        rt_closep(&fds[i]);
}

static void free_if_over(warden *w, cell *c)
{
    if (c->state != CELL_DYING || c->is_bearing || c->is_forking || c->is_delivering ||
        c->init_pid || c->main_pid || c->twin_pid)
        return;
    warden_forget(w, &c->link);
    warden_forget(w, &c->lease);
    rt_closep(&c->porch);
    close_fds(c->daemon_fds, GRANT_FDS);
    close_fds(c->guest_fds, JAIL_ORDER_FDS_MAX);
    c->shape = NULL;
    c->state = warden_keeps_ghost(c) ? CELL_GHOST : CELL_FREE;
}

void warden_lease_fail(int lease, const rt_error *err)
{
    lease_message message = { .kind = LEASE_FAIL };
    message.error = *err;
    jail_packet_send(lease, &message, sizeof(message), NULL, 0);
}

void warden_cell_end(warden *w, cell *c)
{
    if (c->state == CELL_FREE || c->state == CELL_GHOST)
        return;
    c->state = CELL_DYING;
    if (c->heir)
        warden_disinherit(w, c, &c->error);
    warden_twin_kill(c);
    if (c->init_pid)
        syscall(SYS_pidfd_send_signal, c->init_death.fd, SIGKILL, NULL, 0);
    /* Its pid namespace takes the guest along; one that has not entered yet finds no namespace. */
    free_if_over(w, c);
}

/* ---- deaths ---- */

static void bury_init(warden *w, source *s)
{
    cell *c = s->owner;
    siginfo_t info;
    if (waitid(P_PIDFD, (id_t)s->fd, &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0)
        return;
    warden_forget(w, s);
    c->init_pid = 0;
    warden_cell_end(w, c);
    warden_pump(w);
}

static void tell_usage(cell *c, const warden *w, lease_kind kind, int wait_status, uint64_t cpu_us,
                       uint64_t rss_bytes)
{
    lease_message message = { .kind = kind };
    cgroup_counts now = { 0 };
    bool has_cgroup = w->setup->cgroups->kind != CGROUP_NONE;
    if (has_cgroup)
        sandbox_cgroup_read(&w->setup->slots[c->slot], &now);
    message.usage = (rt_cell_usage){
        .wait_status = wait_status,
        .cpu_us = cpu_us,
        .memory_peak_bytes = has_cgroup ? now.peak_bytes : rss_bytes,
        .was_out_of_memory = now.oom_kills > c->before.oom_kills,
        .was_out_of_processes = now.pids_refused > c->before.pids_refused,
    };
    jail_packet_send(c->lease.fd, &message, sizeof(message), NULL, 0);
}

static uint64_t micros(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_usec;
}

/* What a guest that still exists has used: the kernel's word, not its own. */
static void tell_finished(cell *c, const warden *w)
{
    clockid_t clock;
    struct timespec cpu = { 0 };
    if (clock_getcpuclockid(c->main_pid, &clock) == 0)
        clock_gettime(clock, &cpu);
    c->is_finished = !c->shape->is_live;
    tell_usage(c, w, c->shape->is_live ? LEASE_USED : LEASE_EXIT, 0,
               (uint64_t)cpu.tv_sec * 1000000u + (uint64_t)cpu.tv_nsec / 1000u, 0);
    if (c->shape->is_live && w->setup->cgroups->kind != CGROUP_NONE)
        sandbox_cgroup_count_anew(&w->setup->slots[c->slot], &c->before);
}

static void bury_main(warden *w, source *s)
{
    cell *c = s->owner;
    siginfo_t info = { 0 };
    struct rusage used = { 0 };
    if (syscall(SYS_waitid, P_PIDFD, s->fd, &info, WEXITED | WNOHANG, &used) != 0 ||
        info.si_pid == 0)
        return;
    warden_forget(w, s);
    c->main_pid = 0;
    warden_twin_kill(c); /* it holds the memory */
    if (c->lease.fd >= 0 && !c->is_finished)
        tell_usage(c, w, LEASE_EXIT,
                   info.si_code == CLD_EXITED ? info.si_status << 8 : info.si_status,
                   micros(used.ru_utime) + micros(used.ru_stime), (uint64_t)used.ru_maxrss * 1024u);
    if (c->state == CELL_READY)
        c->shape->target = 0; /* it died waiting: no use in making more before somebody asks why */
    /* Nobody will look at what it left; but who gets a cell that is not mounted yet, will. */
    if (c->state != CELL_LEASED && c->state != CELL_MOUNTS)
        warden_cell_end(w, c);
    free_if_over(w, c);
    warden_pump(w);
}

/* ---- making one ---- */

static cell *find_free(warden *w)
{
    for (unsigned i = 0; i < w->cell_count; i++)
        if (w->cells[i].state == CELL_FREE)
            return &w->cells[i];
    return NULL;
}

/* Pipes and sockets: the guest's ends and the daemon's. */
static bool make_channels(cell *c)
{
    int in[2] = { -1, -1 }, out[2] = { -1, -1 }, errors[2] = { -1, -1 }, control[2] = { -1, -1 };
    bool ok = pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 &&
              pipe2(errors, O_CLOEXEC) == 0 &&
              socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) == 0;
    c->guest_fds[JAIL_FD_STDIN] = in[0];
    c->daemon_fds[GRANT_STDIN] = in[1];
    c->daemon_fds[GRANT_STDOUT] = out[0];
    c->guest_fds[JAIL_FD_STDOUT] = out[1];
    c->daemon_fds[GRANT_STDERR] = errors[0];
    c->guest_fds[JAIL_FD_STDERR] = errors[1];
    c->daemon_fds[GRANT_CONTROL] = control[0];
    c->guest_fds[JAIL_FD_CONTROL] = control[1];
    return ok;
}

static void hear_link(warden *w, source *s)
{
    cell *c = s->owner;
    char packet[sizeof(link_head) + sizeof(rt_error)];
    link_head head = { 0 };
    size_t none;
    ssize_t n = jail_packet_recv(s->fd, packet, sizeof(packet), NULL, 0, &none, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    if (c->state == CELL_DYING) {
        warden_forget(w, s); /* it ends because we said so */
        return;
    }
    if (n >= (ssize_t)sizeof(head))
        memcpy(&head, packet, sizeof(head));
    if (n >= (ssize_t)sizeof(head) && head.kind == LINK_READY) {
        c->is_mounted = true; /* this may come before the nursery has told us of the birth */
        if (c->state == CELL_MOUNTS)
            c->state = c->has_forked ? CELL_READY : CELL_WAITS;
        if (c->state == CELL_READY && !c->main_pid && !warden_has_waiter(w, c->shape)) {
            c->shape->target = 0; /* as in bury_main() */
            warden_cell_end(w, c);
        }
    } else if (n < (ssize_t)sizeof(head) ||
               head.kind != LINK_DENIAL) { /* a rehearsal may be refused */
        if (n == (ssize_t)sizeof(packet) && head.kind == LINK_FAILED)
            memcpy(&c->error, packet + sizeof(head), sizeof(c->error));
        else
            rt_fail(&c->error, RT_SYSTEM, "the first process of a cell ended early");
        if (!c->heir)
            warden_shape_failed(w, c->shape, &c->error);
        warden_cell_end(w, c);
    }
    warden_pump(w);
}

cell *warden_cell_make(warden *w, shape *s)
{
    cell *c = find_free(w);
    int link[2], porch[2];
    if (!c || s->root->state != ROOT_BUILT)
        return NULL;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link) != 0)
        return NULL;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, porch) != 0) {
        close(link[0]);
        close(link[1]);
        return NULL;
    }
    memset(c->guest_fds, -1, sizeof(c->guest_fds));
    memset(c->daemon_fds, -1, sizeof(c->daemon_fds));
    c->state = CELL_BIRTH;
    c->shape = s;
    c->porch = porch[0];
    c->is_bearing = true;
    c->is_mounted = c->is_finished = c->has_forked = false;
    c->error = (rt_error){ 0 };
    c->ancestor = NULL;
    c->heirs = 0;
    warden_watch(w, &c->link, link[0], hear_link, c);
    birth_order order = { .serial = c->slot,
                          .house_id = SLOT_FIRST_ID + c->slot * SLOT_IDS,
                          .has_range = w->setup->ids->kind == IDS_RANGE,
                          .scratch_bytes = s->scratch_bytes,
                          .is_scratch_readonly = s->is_scratch_readonly };
    bool ok =
        make_channels(c) && warden_birth(w, s->root, &order, NULL, (int[]){ link[1], porch[1] });
    close(link[1]);
    close(porch[1]);
    if (!ok) {
        c->is_bearing = false;
        warden_cell_end(w, c);
    }
    return ok ? c : NULL;
}

/* A child that cannot be watched is killed; the tick reaps it as a stray. */
static bool adopt(warden *w, pid_t pid, source *death, void (*bury)(warden *, source *), cell *c)
{
    if (warden_watch(w, death, (int)syscall(SYS_pidfd_open, pid, 0), bury, c))
        return true;
    kill(pid, SIGKILL);
    return false;
}

bool warden_main_adopt(warden *w, cell *c, pid_t pid)
{
    close_fds(c->guest_fds, JAIL_ORDER_FDS_MAX);
    c->main_pid = adopt(w, pid, &c->main_death, bury_main, c) ? pid : 0;
    return c->main_pid != 0;
}

static void bury_twin(warden *w, source *s)
{
    cell *c = s->owner;
    siginfo_t info = { 0 };
    if (waitid(P_PIDFD, (id_t)s->fd, &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0)
        return; /* the midwife, who traces it, must reap it first */
    warden_forget(w, s);
    c->twin_pid = 0;
    free_if_over(w, c);
    warden_pump(w);
}

bool warden_twin_adopt(warden *w, cell *c, pid_t pid)
{
    c->twin_pid = adopt(w, pid, &c->twin_death, bury_twin, c) ? pid : 0;
    return c->twin_pid != 0;
}

void warden_twin_kill(cell *c)
{
    if (c->twin_pid)
        syscall(SYS_pidfd_send_signal, c->twin_death.fd, SIGKILL, NULL, 0);
}

void warden_cell_born(warden *w, const birth_reply *reply)
{
    if (reply->serial >= w->cell_count)
        return;
    cell *c = &w->cells[reply->serial];
    c->is_bearing = false;
    bool is_ours = reply->pid > 0 && adopt(w, reply->pid, &c->init_death, bury_init, c);
    c->init_pid = is_ours ? reply->pid : 0;
    if (c->state != CELL_BIRTH || !is_ours) {
        if (reply->pid < 0 && c->heir)
            c->error = reply->error;
        else if (reply->pid < 0)
            warden_shape_failed(w, c->shape, &reply->error);
        warden_cell_end(w, c);
        return;
    }
    /* An interpreter may be forked meanwhile; a twin is made when all else is there. */
    bool may_fork = !c->shape->is_live && !c->heir;
    c->state = c->is_mounted || may_fork ? CELL_WAITS : CELL_MOUNTS;
}

jail_order warden_jail_order(const warden *w, const cell *c, int fds[JAIL_ORDER_FDS_MAX])
{
    const cgroup_slot *slot = &w->setup->slots[c->slot];
    jail_order order = { .serial = c->slot,
                         .uid = CELL_UID,
                         .has_landlock = w->setup->has_landlock,
                         .is_ahead = !warden_has_waiter(w, c->shape),
                         .is_unbuilt = !c->is_mounted,
                         .is_scratch_readonly = c->shape->is_scratch_readonly,
                         .workdir = RT_WORKDIR };
    memcpy(fds, c->guest_fds, sizeof(c->guest_fds));
    fds[JAIL_FD_INIT] = c->init_death.fd;
    fds[JAIL_FD_PORCH] = c->porch;
    fds[JAIL_FD_FILTER] = w->filters[c->shape->filter];
    if (w->setup->cgroups->kind != CGROUP_NONE)
        order.cgroup_count = (uint32_t)sandbox_cgroup_procs(slot, &fds[JAIL_FD_CGROUP]);
    return order;
}

/* The cell has its namespaces and the zygote is warm: fork the interpreter into it. */
void warden_cell_fork(warden *w, cell *c)
{
    int fds[JAIL_ORDER_FDS_MAX];
    jail_order order = warden_jail_order(w, c, fds);
    size_t count = c->shape->is_live ? 0 : JAIL_FD_CGROUP + order.cgroup_count;
    if (c->shape->is_live)
        order = (jail_order){ .serial = c->slot, .is_twin = 1 };
    c->state = CELL_FORK;
    c->is_forking = true;
    if (jail_packet_send(c->shape->zygote->orders.fd, &order, sizeof(order), fds, count) < 0) {
        c->is_forking = false;
        warden_cell_end(w, c);
    }
}

void warden_cell_forked(warden *w, const jail_order_reply *reply)
{
    if (reply->serial >= w->cell_count)
        return;
    cell *c = &w->cells[reply->serial];
    bool is_live = c->shape->is_live;
    c->is_forking = false;
    bool is_ours = reply->pid > 0 && (is_live ? warden_twin_adopt(w, c, reply->pid)
                                              : warden_main_adopt(w, c, reply->pid));
    if (c->state != CELL_FORK || !is_ours) {
        rt_error why = { 0 };
        errno = reply->error;
        if (reply->pid <= 0 && c->state == CELL_FORK) {
            rt_fail_errno(&why, "fork %s into a cell", c->shape->zygote->spec->name);
            warden_shape_failed(w, c->shape, &why);
        }
        warden_cell_end(w, c);
        return;
    }
    c->has_forked = true;
    if (is_live)
        warden_cell_deliver(w, c);
    else
        c->state = c->is_mounted ? CELL_READY : CELL_MOUNTS;
}

/* ---- leases ---- */

static void hear_lease(warden *w, source *s)
{
    cell *c = s->owner;
    lease_message message;
    int heir = -1;
    size_t count = 0;
    ssize_t n = jail_packet_recv(s->fd, &message, sizeof(message), &heir, 1, &count, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    if (count == 1 && message.kind == LEASE_BRANCH) {
        warden_cell_branch(w, c, heir);
    } else if (n <= 0) {
        warden_forget(w, s); /* the daemon let go */
        warden_cell_end(w, c);
    } else if (message.kind == LEASE_DONE && c->main_pid && !c->is_finished) {
        tell_finished(c, w);
    } else if (message.kind == LEASE_INTERRUPT && c->main_pid) {
        syscall(SYS_pidfd_send_signal, c->main_death.fd, SIGINT, NULL, 0);
    } else if (message.kind == LEASE_KILL && c->init_pid) {
        syscall(SYS_pidfd_send_signal, c->init_death.fd, SIGKILL, NULL, 0);
    }
    warden_pump(w);
}

static void attest(const warden *w, const cell *c, char *text, size_t size)
{
    static const char *const kinds[] = { "watcher and rlimits", "cgroup v1", "cgroup v2" };
    const house_ids *ids = w->setup->ids;
    cgroup_kind kind = w->setup->cgroups->kind;
    bool is_range = ids->kind == IDS_RANGE;
    snprintf(text, size,
             "\"ids\":{\"host_uid\":%u,\"own_range\":%s},\"memory\":{\"bytes\":%llu,\"by\":\"%s\"},"
             "\"processes\":{\"max\":%llu,\"by\":\"%s\"},\"scratch_bytes\":%llu,"
             "\"root\":\"read-only\",\"network\":\"none\"",
             is_range ? ids->host_first + SLOT_FIRST_ID + c->slot * SLOT_IDS + 1 : ids->host_first,
             is_range ? "true" : "false", (unsigned long long)c->allowed.memory_bytes, kinds[kind],
             (unsigned long long)c->allowed.processes, kind ? kinds[kind] : "rlimit",
             (unsigned long long)c->shape->scratch_bytes);
}

static void order_watch(const cell *c, uint64_t memory_bytes, uint64_t cpu_ms)
{
    struct {
        link_head head;
        watch_order watch;
    } order = { { .kind = LINK_WATCH, .size = sizeof(order.watch) },
                { .memory_bytes = memory_bytes, .cpu_ms = cpu_ms } };
    jail_packet_send(c->link.fd, &order, sizeof(order), NULL, 0);
}

/* Without a pids cgroup the rlimit is the only fence; the guest itself counts. */
static void limit_processes(const cell *c, uint64_t processes)
{
    struct rlimit limit = { .rlim_cur = processes + 1, .rlim_max = processes + 1 };
    prlimit(c->main_pid, RLIMIT_NPROC, &limit, NULL);
}

void warden_cell_grant(warden *w, cell *c, waiter *who)
{
    lease_message message = { .kind = LEASE_GRANT };
    rt_error err = { 0 };
    const cgroup_slot *slot = &w->setup->slots[c->slot];
    int lease = warden_unwatch(w, &who->lease);
    bool has_cgroup = w->setup->cgroups->kind != CGROUP_NONE;
    c->allowed = who->allowed;
    /* The guest counts too, and a twin: the code gets the number it asked for. */
    uint64_t processes = c->allowed.processes + (c->shape->is_live ? 2 : 1);
    if (has_cgroup && !sandbox_cgroup_limit(slot, c->allowed.memory_bytes, processes, &err)) {
        warden_lease_fail(lease, &err);
        close(lease);
        warden_cell_end(w, c);
        return;
    }
    if (has_cgroup)
        sandbox_cgroup_read(slot, &c->before);
    else
        limit_processes(c, c->allowed.processes);
    /* A live cell is told with each run what that may use. */
    order_watch(c, has_cgroup ? 0 : c->allowed.memory_bytes,
                c->shape->is_live ? 0 : c->allowed.cpu_ms);
    attest(w, c, message.text, sizeof(message.text));
    c->state = CELL_LEASED;
    c->daemon_fds[GRANT_LINK] = fcntl(c->link.fd, F_DUPFD_CLOEXEC, 3);
    warden_forget(w, &c->link); /* from now on it speaks to the daemon */
    warden_watch(w, &c->lease, lease, hear_lease, c);
    jail_packet_send(lease, &message, sizeof(message), c->daemon_fds, GRANT_FDS);
    close_fds(c->daemon_fds, GRANT_FDS);
}
