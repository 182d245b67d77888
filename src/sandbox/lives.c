/*
 * lives.c - the warden's live cells: their twins, their branches, and the midwife who makes both.
 *
 * A branch is asked for on the lease of its source. Its cell is made at once, by the nursery like
 * any other, while the source's guest gets ready; when both are, the midwife copies the one into
 * the other.
 *
 * Memory is counted in the cgroup of whoever first used it. What a branch shares with its source
 * stays counted there, even when the source has ended; the slot of an ended source is therefore
 * free only when no branch of its family lives.
 */
#include "sandbox/warden.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- families ---- */

/* One branch less. */
static void release(cell *origin)
{
    if (--origin->heirs == 0 && origin->state == CELL_GHOST)
        origin->state = warden_keeps_ghost(origin) ? CELL_GHOST : CELL_FREE;
}

bool warden_keeps_ghost(cell *c)
{
    cell *ancestor = c->ancestor;
    if (c->heirs > 0)
        return true;
    c->ancestor = NULL;
    if (ancestor)
        release(ancestor);
    return false;
}

/* ---- the midwife ---- */

static _Noreturn void become_midwife(const warden *w, int orders)
{
    /* In the plain root, where zygotes live: nothing of the host can be reached from there. */
    if (setns(w->roots[0].death.fd, CLONE_NEWNS) != 0)
        _exit(1);
    int kept = dup2(orders, 3);
    syscall(SYS_close_range, 4U, ~0U, 0);
    if (kept != 3)
        _exit(1);
    signal(SIGPIPE, SIG_IGN);
    sandbox_midwife_main(3);
}

/* Her tracees die with her: sessions go on without their twins, and cannot be branched any more. */
static void lose_midwife(warden *w)
{
    rt_error gone = { .code = RT_UNAVAILABLE, .text = "the midwife ended unexpectedly" };
    warden_forget(w, &w->midwife);
    for (unsigned i = 0; i < w->cell_count; i++) {
        cell *c = &w->cells[i];
        if (!c->is_delivering)
            continue;
        c->is_delivering = false;
        c->error = gone;
        if (!c->heir)
            warden_shape_failed(w, c->shape, &gone);
        warden_cell_end(w, c);
    }
}

static void bury_midwife(warden *w, source *s)
{
    siginfo_t info;
    waitid(P_PIDFD, (id_t)s->fd, &info, WEXITED | WNOHANG);
    warden_forget(w, s);
    w->midwife_pid = 0;
    lose_midwife(w);
    warden_pump(w);
}

static void grant_branch(warden *w, cell *c)
{
    waiter *heir = c->heir;
    c->heir = NULL;
    warden_cell_grant(w, c, heir);
    free(heir);
}

static void hear_midwife(warden *w, source *s)
{
    midwife_reply reply;
    size_t none;
    ssize_t n = jail_packet_recv(s->fd, &reply, sizeof(reply), NULL, 0, &none, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n != (ssize_t)sizeof(reply) || reply.serial >= w->cell_count) {
        lose_midwife(w);
        warden_pump(w);
        return;
    }
    cell *c = &w->cells[reply.serial];
    c->is_delivering = false;
    bool is_made = reply.guest > 0 && warden_main_adopt(w, c, reply.guest) &&
                   (c->twin_pid == reply.twin || warden_twin_adopt(w, c, reply.twin));
    if (!is_made || c->state != CELL_DELIVERY) {
        c->error = reply.error;
        if (!is_made && !c->heir && c->state == CELL_DELIVERY)
            warden_shape_failed(w, c->shape, &reply.error);
        warden_cell_end(w, c);
    } else if (c->heir) {
        grant_branch(w, c);
    } else {
        c->state = CELL_READY;
    }
    warden_pump(w);
}

static bool start_midwife(warden *w, rt_error *err)
{
    int pair[2];
    if (w->midwife.fd >= 0)
        return true;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return rt_fail_errno(err, "socketpair");
    w->midwife_pid = fork();
    if (w->midwife_pid == 0)
        become_midwife(w, pair[1]);
    close(pair[1]);
    int pidfd = w->midwife_pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, w->midwife_pid, 0);
    if (pidfd < 0 || !warden_watch(w, &w->midwife, pair[0], hear_midwife, w) ||
        !warden_watch(w, &w->midwife_death, pidfd, bury_midwife, w))
        return rt_fail_errno(err, "start the midwife");
    return true;
}

/* ---- orders ---- */

static bool send_order(warden *w, cell *c, rt_error *err)
{
    int fds[JAIL_ORDER_FDS_MAX];
    midwife_order order = { .jail = warden_jail_order(w, c, fds),
                            .init = c->init_pid,
                            .twin = c->twin_pid };
    const cell *origin = c->heir ? c->heir->origin : NULL;
    if (origin) {
        if (origin->state != CELL_LEASED || !origin->main_pid || !origin->twin_pid)
            return rt_fail(err, RT_CONFLICT, "the session has ended, or cannot be branched again");
        order.twin = origin->twin_pid;
        order.source = origin->main_pid;
        order.source_init = origin->init_pid;
    }
    if (!start_midwife(w, err))
        return false;
    if (jail_packet_send(w->midwife.fd, &order, sizeof(order), fds,
                         JAIL_FD_CGROUP + order.jail.cgroup_count) < 0)
        return rt_fail_errno(err, "ask the midwife");
    return true;
}

void warden_cell_deliver(warden *w, cell *c)
{
    rt_error err = { 0 };
    c->state = CELL_DELIVERY;
    c->is_delivering = send_order(w, c, &err);
    if (c->is_delivering)
        return;
    c->error = err;
    if (!c->heir)
        warden_shape_failed(w, c->shape, &err);
    warden_cell_end(w, c);
}

/* ---- branches ---- */

/* Whoever wanted a branch is told why there is none; without a reason, he does not want it. */
static void turn_away(warden *w, waiter *heir, const rt_error *why)
{
    if (why && heir->lease.fd >= 0)
        warden_lease_fail(heir->lease.fd, why);
    warden_forget(w, &heir->lease);
    for (waiter **at = &w->first_branch; *at; at = &(*at)->next)
        if (*at == heir) {
            *at = heir->next;
            break;
        }
    free(heir);
}

void warden_disinherit(warden *w, cell *c, const rt_error *why)
{
    waiter *heir = c->heir;
    rt_error unknown = { .code = RT_UNAVAILABLE, .text = "the branch could not be made" };
    c->heir = NULL;
    turn_away(w, heir, why->code ? why : &unknown);
}

/* The daemon says that the source is ready, or lets go. */
static void hear_heir(warden *w, source *s)
{
    waiter *heir = s->owner;
    lease_message message;
    size_t none;
    ssize_t n = jail_packet_recv(s->fd, &message, sizeof(message), NULL, 0, &none, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n == (ssize_t)sizeof(message) && message.kind == LEASE_GO) {
        heir->may_go = true;
    } else if (heir->made) {
        warden_cell_end(w, heir->made); /* and with it the heir */
    } else {
        release(heir->origin);
        turn_away(w, heir, NULL);
    }
    warden_pump(w);
}

void warden_cell_branch(warden *w, cell *origin, int lease)
{
    rt_error err = { 0 };
    waiter *heir = calloc(1, sizeof(*heir));
    if (!heir || !warden_has_room_to_live(w, &err)) {
        warden_lease_fail(lease, &err);
        close(lease);
        free(heir);
        return;
    }
    *heir = (waiter){ .next = w->first_branch,
                      .shape = origin->shape,
                      .allowed = origin->allowed,
                      .origin = origin };
    w->first_branch = heir;
    origin->heirs++; /* its slot stays its own for as long as somebody wants a copy of it */
    warden_watch(w, &heir->lease, lease, hear_heir, heir);
}

/* A cell for each branch as soon as there is room; what just ended may take a moment to be gone. */
void warden_branches_start(warden *w)
{
    static const rt_error gone = { .code = RT_CONFLICT, .text = "the session has ended" };
    for (waiter *heir = w->first_branch, *next; heir; heir = next) {
        next = heir->next;
        cell *origin = heir->origin;
        if (origin->state != CELL_LEASED || !origin->main_pid) {
            release(origin);
            turn_away(w, heir, &gone);
            continue;
        }
        cell *c = warden_cell_make(w, heir->shape);
        if (!c) {
            warden_give_up_one(w, heir->shape);
            continue;
        }
        c->heir = heir;
        c->ancestor = origin; /* which has counted it already */
        heir->made = c;
        for (waiter **at = &w->first_branch; *at; at = &(*at)->next)
            if (*at == heir) {
                *at = next;
                break;
            }
    }
}
