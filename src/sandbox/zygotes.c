/*
 * zygotes.c - the warden's nurseries and zygotes: starting them, hearing from them, losing them.
 *
 * Both are started when first wanted. A zygote that dies while it warms has failed, and what it
 * wrote to stderr is the reason; one that dies later is simply started again.
 */
#include "sandbox/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Serials of births: a cell's slot, or this for a zygote's index. */
#define ZYGOTE_SERIAL 0x80000000u

static void zygote_born(warden *w, zygote *z, const birth_reply *reply);
static void fail_zygote(warden *w, zygote *z, const char *why);

/* ---- roots ---- */

static _Noreturn void become_nursery(warden *w, const root *r, int orders)
{
    const char *paths[RT_READ_PATHS_MAX];
    root_plan plan = { .entries = w->setup->config->root,
                       .entry_count = w->setup->config->root_count,
                       .read_paths = paths };
    for (const char *at = r->paths; at < r->paths + r->paths_bytes; at += strlen(at) + 1)
        paths[plan.read_path_count++] = at;
    int kept = dup2(orders, 3);
    syscall(SYS_close_range, 4U, ~0U, 0);
    if (kept != 3 || unshare(CLONE_NEWNS) != 0)
        _exit(1);
    fcntl(3, F_SETFD, FD_CLOEXEC);
    sandbox_nursery_main(3, &plan, w->setup->config->nursery);
}

/* What it was about to give birth to will never come. */
static void lose_root(warden *w, root *r, const rt_error *why)
{
    warden_forget(w, &r->orders);
    warden_forget(w, &r->death);
    if (r->pid > 0)
        kill(r->pid, SIGKILL);
    r->pid = 0; /* from now on a stray, reaped at the next tick */
    r->error = *why;
    r->state = ROOT_FAILED;
    for (unsigned i = 0; i < w->cell_count; i++) {
        cell *c = &w->cells[i];
        if (c->is_bearing && c->shape->root == r) {
            c->is_bearing = false;
            warden_cell_end(w, c);
        }
    }
    for (size_t i = 0; r == &w->roots[0] && i < w->zygote_count; i++)
        if (w->zygotes[i].state == ZYGOTE_BORN && w->zygotes[i].pid == 0)
            fail_zygote(w, &w->zygotes[i], why->text);
}

static void hear_nursery(warden *w, source *s)
{
    root *r = s->owner;
    birth_reply reply;
    size_t none;
    ssize_t n = jail_packet_recv(s->fd, &reply, sizeof(reply), NULL, 0, &none, MSG_DONTWAIT);
    rt_error gone = { .code = RT_UNAVAILABLE, .text = "a nursery ended unexpectedly" };
    if (n < 0 && errno == EAGAIN)
        return;
    if (n != (ssize_t)sizeof(reply)) {
        lose_root(w, r, &gone);
    } else if (r->state == ROOT_BUILDING) {
        if (reply.pid < 0)
            lose_root(w, r, &reply.error);
        else
            r->state = ROOT_BUILT;
    } else if (reply.serial & ZYGOTE_SERIAL) {
        zygote *z = &w->zygotes[reply.serial & ~ZYGOTE_SERIAL];
        zygote_born(w, z, &reply);
    } else {
        warden_cell_born(w, &reply);
    }
    warden_pump(w);
}

static void bury_nursery(warden *w, source *s)
{
    root *r = s->owner;
    siginfo_t info;
    waitid(P_PIDFD, (id_t)s->fd, &info, WEXITED | WNOHANG);
    r->pid = 0;
    lose_root(w, r, &(rt_error){ .code = RT_UNAVAILABLE, .text = "a nursery ended unexpectedly" });
    warden_pump(w);
}

static bool is_root_needed(const warden *w, const root *r)
{
    for (unsigned i = 0; i < w->cell_count; i++)
        if (w->cells[i].shape && w->cells[i].shape->root == r)
            return true;
    for (const waiter *who = w->first_waiter; who; who = who->next)
        if (who->shape && who->shape->root == r)
            return true;
    return false;
}

static void free_root(warden *w, root *r)
{
    warden_forget(w, &r->orders);
    warden_forget(w, &r->death);
    if (r->pid > 0)
        kill(r->pid, SIGKILL); /* reaped at the next tick, like every stray */
    for (size_t i = 0; i < SHAPES_MAX; i++)
        if (w->shapes[i].root == r)
            w->shapes[i] = (shape){ 0 };
    free(r->paths);
    *r = (root){ .orders.fd = -1, .death.fd = -1 };
}

/* A free place, or that of the root that was longest out of use. The first is the plain one's. */
static root *place_for_root(warden *w, bool is_plain)
{
    root *oldest = NULL;
    if (is_plain)
        return &w->roots[0];
    for (size_t i = 1; i < ROOTS_MAX; i++) {
        root *r = &w->roots[i];
        if (r->state == ROOT_FREE)
            return r;
        if (!is_root_needed(w, r) && (!oldest || r->used_ns < oldest->used_ns))
            oldest = r;
    }
    if (oldest)
        free_root(w, oldest);
    return oldest;
}

static bool start_nursery(warden *w, root *r, rt_error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return rt_fail_errno(err, "socketpair");
    r->pid = fork();
    if (r->pid == 0)
        become_nursery(w, r, pair[1]);
    close(pair[1]);
    if (r->pid < 0) {
        close(pair[0]);
        return rt_fail_errno(err, "fork a nursery");
    }
    int pidfd = (int)syscall(SYS_pidfd_open, r->pid, 0);
    r->state = ROOT_BUILDING;
    return (warden_watch(w, &r->orders, pair[0], hear_nursery, r) &&
            warden_watch(w, &r->death, pidfd, bury_nursery, r)) ||
           rt_fail_errno(err, "watch a nursery");
}

root *warden_root_get(warden *w, const char *paths, size_t paths_bytes, rt_error *err)
{
    for (size_t i = 0; i < ROOTS_MAX; i++) {
        root *r = &w->roots[i];
        bool is_same = r->state != ROOT_FREE && r->paths_bytes == paths_bytes &&
                       (paths_bytes == 0 || memcmp(r->paths, paths, paths_bytes) == 0);
        /* A root that failed may do better now: the path may exist meanwhile. */
        if (is_same && r->state == ROOT_FAILED)
            return start_nursery(w, r, err) ? r : NULL;
        if (is_same)
            return r;
    }
    root *r = place_for_root(w, paths_bytes == 0);
    if (!r) {
        rt_fail(err, RT_LIMIT, "%d sets of read paths are in use at once; try again", ROOTS_MAX);
        return NULL;
    }
    *r = (root){ .orders.fd = -1, .death.fd = -1, .paths_bytes = paths_bytes };
    r->paths = paths_bytes ? malloc(paths_bytes) : NULL;
    if (paths_bytes)
        memcpy(r->paths, paths, paths_bytes);
    return start_nursery(w, r, err) ? r : NULL;
}

bool warden_birth(warden *w, root *r, const birth_order *order, const char *argv, const int *fds)
{
    char packet[PACKET_MAX];
    (void)w;
    if (sizeof(*order) + order->argv_bytes > sizeof(packet))
        return false;
    memcpy(packet, order, sizeof(*order));
    if (order->argv_bytes)
        memcpy(packet + sizeof(*order), argv, order->argv_bytes);
    return jail_packet_send(r->orders.fd, packet, sizeof(*order) + order->argv_bytes, fds, 2) > 0;
}

/* ---- zygotes ---- */

zygote *warden_zygote_find(warden *w, const char *name)
{
    for (size_t i = 0; i < w->zygote_count; i++)
        if (strcmp(w->zygotes[i].spec->name, name) == 0)
            return &w->zygotes[i];
    return NULL;
}

static void close_far_ends(zygote *z)
{
    rt_closep(&z->far_orders);
    rt_closep(&z->far_errors);
}

/* Cells that were being forked by it will never hear from it again. */
static void lose_zygote(warden *w, zygote *z)
{
    warden_forget(w, &z->orders);
    warden_forget(w, &z->errors);
    warden_forget(w, &z->death);
    close_far_ends(z);
    z->pid = 0;
    for (unsigned i = 0; i < w->cell_count; i++) {
        cell *c = &w->cells[i];
        if (c->shape && c->shape->zygote == z && c->is_forking) {
            c->is_forking = false;
            warden_cell_end(w, c);
        }
    }
}

static void fail_zygote(warden *w, zygote *z, const char *why)
{
    const char *words = z->last_words_len ? z->last_words : why;
    while (*words == '\n')
        words++;
    rt_fail(&z->error, RT_UNAVAILABLE, "the %s runtime could not start: %s", z->spec->name, words);
    lose_zygote(w, z);
    z->state = ZYGOTE_FAILED;
}

static void hear_zygote(warden *w, source *s)
{
    zygote *z = s->owner;
    char packet[sizeof(z->about)] = "";
    size_t none;
    ssize_t n = jail_packet_recv(s->fd, packet, sizeof(packet) - 1, NULL, 0, &none, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        warden_forget(w, s); /* its death will be told by its pidfd */
        return;
    }
    if (z->state == ZYGOTE_BORN) {
        memcpy(z->about, packet, sizeof(packet));
        z->state = ZYGOTE_WARM;
    } else if (n == (ssize_t)sizeof(jail_order_reply)) {
        jail_order_reply reply;
        memcpy(&reply, packet, sizeof(reply));
        warden_cell_forked(w, &reply);
    }
    warden_pump(w);
}

static void keep_last_words(warden *w, source *s)
{
    zygote *z = s->owner;
    char text[512];
    ssize_t n = read(s->fd, text, sizeof(text));
    if (n <= 0) {
        if (n == 0 || errno != EAGAIN)
            warden_forget(w, s);
        return;
    }
    size_t room = sizeof(z->last_words) - 1;
    size_t take = RT_MIN((size_t)n, room);
    if (z->last_words_len + take > room) {
        size_t drop = z->last_words_len + take - room;
        memmove(z->last_words, z->last_words + drop, z->last_words_len - drop);
        z->last_words_len -= drop;
    }
    memcpy(z->last_words + z->last_words_len, text + n - take, take);
    z->last_words_len += take;
    z->last_words[z->last_words_len] = '\0';
}

static void bury_zygote(warden *w, source *s)
{
    zygote *z = s->owner;
    siginfo_t info;
    waitid(P_PIDFD, (id_t)s->fd, &info, WEXITED | WNOHANG);
    while (z->errors.fd >= 0) {
        size_t before = z->last_words_len;
        keep_last_words(w, &z->errors);
        if (z->last_words_len == before)
            break;
    }
    if (z->state == ZYGOTE_BORN) {
        fail_zygote(w, z, "it ended while starting");
    } else {
        lose_zygote(w, z);
        z->state = ZYGOTE_COLD;
    }
    warden_pump(w);
}

static void zygote_born(warden *w, zygote *z, const birth_reply *reply)
{
    close_far_ends(z);
    if (reply->pid < 0) {
        fail_zygote(w, z, reply->error.text);
        return;
    }
    z->pid = reply->pid;
    int pidfd = (int)syscall(SYS_pidfd_open, z->pid, 0);
    if (!warden_watch(w, &z->death, pidfd, bury_zygote, z))
        fail_zygote(w, z, "it cannot be watched");
}

static size_t pack_argv(const char *const *argv, char *out, size_t size)
{
    size_t used = 0;
    for (; *argv; argv++) {
        size_t len = strlen(*argv) + 1;
        if (used + len > size)
            break;
        memcpy(out + used, *argv, len);
        used += len;
    }
    return used;
}

void warden_zygote_want(warden *w, zygote *z)
{
    root *home = &w->roots[0];
    if (z->state != ZYGOTE_COLD || home->state != ROOT_BUILT)
        return;
    int orders[2], errors[2];
    char argv[2048];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, orders) != 0 ||
        pipe2(errors, O_CLOEXEC) != 0) {
        fail_zygote(w, z, strerror(errno));
        return;
    }
    fcntl(errors[0], F_SETFL, O_NONBLOCK);
    z->state = ZYGOTE_BORN;
    z->last_words_len = 0;
    z->far_orders = orders[1];
    z->far_errors = errors[1];
    warden_watch(w, &z->orders, orders[0], hear_zygote, z);
    warden_watch(w, &z->errors, errors[0], keep_last_words, z);
    birth_order order = { .serial = ZYGOTE_SERIAL | (uint32_t)(z - w->zygotes), .is_zygote = 1 };
    order.argv_bytes = (uint32_t)pack_argv(z->spec->argv, argv, sizeof(argv));
    if (!warden_birth(w, home, &order, argv, (int[]){ orders[1], errors[1] }))
        fail_zygote(w, z, strerror(errno));
}
