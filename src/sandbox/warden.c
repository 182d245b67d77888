/*
 * warden.c - the loop of the warden: requests in, cells out.
 *
 * The warden is process 1 of the house's pid namespace: whatever kills it takes every zygote and
 * every cell along. It has capabilities over the house only, never over the host.
 */
#include "sandbox/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK_SECONDS    1
#define IDLE_TICKS      10 /* without need for it, the pool gives one cell back */
#define FORGET_NS       (120ull * 1000000000u) /* unused for so long, a shape keeps nothing warm */
#define REFILL_DELAY_NS 3000000 /* most runs are over by then, and had both cores to themselves */
#define WAITERS_MAX     4096

bool warden_watch(warden *w, source *s, int fd, void (*handle)(warden *, source *), void *owner)
{
    *s = (source){ .handle = handle, .owner = owner, .fd = fd };
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = s };
    return fd >= 0 && epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

int warden_unwatch(warden *w, source *s)
{
    if (s->fd >= 0)
        epoll_ctl(w->epoll, EPOLL_CTL_DEL, s->fd, NULL);
    return RT_TAKE_FD(s->fd);
}

void warden_forget(warden *w, source *s)
{
    int fd = warden_unwatch(w, s);
    rt_closep(&fd);
}

/* ---- deciding what to start next ---- */

static unsigned count_cells(const warden *w, const shape *s, cell_state from, cell_state to)
{
    unsigned count = 0;
    for (unsigned i = 0; i < w->cell_count; i++)
        count += w->cells[i].shape == s && w->cells[i].state >= from && w->cells[i].state <= to;
    return count;
}

static cell *find_ready(warden *w, const shape *s)
{
    for (unsigned i = 0; i < w->cell_count; i++)
        if (w->cells[i].shape == s && w->cells[i].state == CELL_READY)
            return &w->cells[i];
    return NULL;
}

bool warden_has_waiter(const warden *w, const shape *s)
{
    for (const waiter *who = w->first_waiter; who; who = who->next)
        if (who->shape == s && !who->is_early)
            return true;
    return false;
}

static void drop_waiter(warden *w, waiter **at)
{
    waiter *who = *at;
    w->waiter_count--;
    *at = who->next;
    if (!*at)
        w->last_waiter = at;
    warden_forget(w, &who->lease);
    free(who);
}

/* Nothing that could still happen would help this waiter. */
static const rt_error *find_reason(const warden *w, const waiter *who)
{
    const zygote *z = who->shape ? who->shape->zygote : who->zygote;
    if (who->shape && who->shape->root->state == ROOT_FAILED)
        return &who->shape->root->error;
    if (w->roots[0].state == ROOT_FAILED)
        return &w->roots[0].error;
    return z->state == ZYGOTE_FAILED ? &z->error : NULL;
}

static void tell_warm(const waiter *who)
{
    lease_message message = { .kind = LEASE_WARM };
    snprintf(message.text, sizeof(message.text), "%s", who->zygote->about);
    jail_packet_send(who->lease.fd, &message, sizeof(message), NULL, 0);
}

/* Serves whom it can, in the order they came. */
static void serve_waiters(warden *w, bool are_early)
{
    for (waiter **at = &w->first_waiter; *at;) {
        waiter *who = *at;
        if (who->is_early != are_early) {
            at = &who->next;
            continue;
        }
        const rt_error *hopeless = find_reason(w, who);
        cell *c = who->shape ? find_ready(w, who->shape) : NULL;
        if (hopeless)
            warden_lease_fail(who->lease.fd, hopeless);
        else if (c)
            warden_cell_grant(w, c, who);
        else if (!who->shape && who->zygote->state == ZYGOTE_WARM)
            tell_warm(who);
        else {
            at = &who->next;
            continue;
        }
        drop_waiter(w, at);
    }
}

void warden_shape_failed(warden *w, shape *s, const rt_error *why)
{
    s->target = 0;
    for (waiter **at = &w->first_waiter; *at; at = &(*at)->next)
        if ((*at)->shape == s) {
            warden_lease_fail((*at)->lease.fd, why);
            drop_waiter(w, at);
            return;
        }
}

/* Makes room for a shape that has waiters by giving up a warm cell of one that has none. */
void warden_give_up_one(warden *w, const shape *for_whom)
{
    for (unsigned i = 0; i < w->cell_count; i++)
        if (w->cells[i].state == CELL_DYING)
            return; /* a place is about to be free */
    for (unsigned i = 0; i < w->cell_count; i++)
        if (w->cells[i].state == CELL_READY && w->cells[i].shape != for_whom) {
            warden_cell_end(w, &w->cells[i]);
            return;
        }
}

static unsigned count_waiters(const warden *w, const shape *s, bool with_early)
{
    unsigned count = 0;
    for (const waiter *who = w->first_waiter; who; who = who->next)
        count += who->shape == s && (with_early || !who->is_early);
    return count;
}

/* As many cells of the shape under way as `wanted`; false if some had to be left out. */
static bool make_up_to(warden *w, shape *s, unsigned wanted)
{
    unsigned under_way = count_cells(w, s, CELL_BIRTH, CELL_READY);
    while (under_way < wanted && warden_cell_make(w, s))
        under_way++;
    return under_way >= wanted;
}

/* Whoever waits comes before every pool; else pools would take the places that waiters need. */
static void start_cells(warden *w)
{
    bool are_all_served = true;
    for (size_t i = 0; i < SHAPES_MAX; i++) {
        shape *s = &w->shapes[i];
        if (!s->is_used || make_up_to(w, s, count_waiters(w, s, false)))
            continue;
        are_all_served = false;
        warden_give_up_one(w, s);
    }
    if (!are_all_served || rt_now_ns() < w->refill_ns)
        return;
    for (size_t i = 0; i < SHAPES_MAX; i++) {
        shape *s = &w->shapes[i];
        if (s->is_used && s->zygote->state != ZYGOTE_FAILED)
            make_up_to(w, s,
                       count_waiters(w, s, true) + RT_MIN(s->target, w->setup->config->pool_max));
    }
}

void warden_pump(warden *w)
{
    for (unsigned i = 0; i < w->cell_count; i++) {
        cell *c = &w->cells[i];
        if (c->state != CELL_WAITS)
            continue;
        if (c->heir) { /* a branch: made from its source */
            if (c->heir->may_go)
                warden_cell_deliver(w, c);
            continue;
        }
        warden_zygote_want(w, c->shape->zygote);
        if (c->shape->zygote->state == ZYGOTE_WARM)
            warden_cell_fork(w, c);
        else if (c->shape->zygote->state == ZYGOTE_FAILED)
            warden_cell_end(w, c);
    }
    serve_waiters(w, false);
    warden_branches_start(w);
    serve_waiters(w, true);
    start_cells(w);
    for (waiter *who = w->first_waiter; who; who = who->next)
        warden_zygote_want(w, who->shape ? who->shape->zygote : who->zygote);
}

/* ---- requests ---- */

static shape *find_shape(warden *w, const shape *like)
{
    shape *place = NULL;
    for (size_t i = 0; i < SHAPES_MAX; i++) {
        shape *s = &w->shapes[i];
        if (s->is_used && s->zygote == like->zygote && s->root == like->root &&
            s->scratch_bytes == like->scratch_bytes && s->filter == like->filter &&
            s->is_scratch_readonly == like->is_scratch_readonly && s->is_live == like->is_live)
            return s;
        bool is_idle = !s->is_used || (count_cells(w, s, CELL_BIRTH, CELL_DYING) == 0);
        for (const waiter *who = w->first_waiter; who && is_idle; who = who->next)
            is_idle = who->shape != s;
        if (is_idle && (!place || (place->is_used && (!s->is_used || s->used_ns < place->used_ns))))
            place = s;
    }
    if (place) {
        *place = *like;
        place->is_used = true;
    }
    return place;
}

/* Sessions stay for long: they never take the last places, which are for runs that come and go. */
bool warden_has_room_to_live(const warden *w, rt_error *err)
{
    unsigned lives = 0, taken = 0, most = w->cell_count - RT_MAX(w->cell_count / 4, 1u);
    for (unsigned i = 0; i < w->cell_count; i++) {
        const cell *c = &w->cells[i];
        bool is_ending = c->state == CELL_DYING && c->heirs == 0;
        lives += c->state != CELL_FREE && !is_ending &&
                 (c->state == CELL_GHOST || c->heirs > 0 || c->shape->is_live);
        taken += c->state == CELL_LEASED;
    }
    for (const waiter *who = w->first_waiter; who; who = who->next)
        lives += who->shape && who->shape->is_live;
    if (lives >= most || taken >= w->cell_count)
        return rt_fail(err, RT_TOO_MANY,
                       "%u of %u cells are taken by sessions, and %u by runs; close a session or "
                       "try again",
                       lives, w->cell_count, taken > lives ? taken - lives : 0);
    return true;
}

static bool read_request(warden *w, const warden_request *asked, const char *paths, waiter *who,
                         rt_error *err)
{
    zygote *z = warden_zygote_find(w, asked->zygote);
    if (!z)
        return rt_fail(err, RT_NOT_FOUND, "there is no runtime '%s'", asked->zygote);
    if (z->state == ZYGOTE_FAILED)
        z->state = ZYGOTE_COLD; /* asked anew, tried anew: the cause may be mended */
    who->zygote = z;
    if (asked->op == WARDEN_WARM)
        return true;
    root *r = warden_root_get(w, paths, asked->paths_bytes, err);
    if (!r)
        return false;
    r->used_ns = rt_now_ns();
    shape like = { .zygote = z,
                   .root = r,
                   .scratch_bytes = asked->scratch_bytes ? asked->scratch_bytes : SCRATCH_DEFAULT,
                   .is_scratch_readonly = asked->files == RT_FILES_READ_ONLY,
                   .filter = asked->is_exec_denied ? FILTER_NO_EXEC : FILTER_FULL,
                   .is_live = asked->is_live != 0 };
    if (like.is_live && !warden_has_room_to_live(w, err))
        return false;
    who->shape = find_shape(w, &like);
    if (!who->shape)
        return rt_fail(err, RT_LIMIT, "%d kinds of cell are in use at once; try again", SHAPES_MAX);
    who->allowed = (allowance){ asked->memory_bytes, asked->cpu_ms, asked->processes };
    who->is_early = asked->is_early != 0;
    return true;
}

static void forget_waiter(warden *w, source *s)
{
    for (waiter **at = &w->first_waiter; *at; at = &(*at)->next)
        if (*at == s->owner) {
            drop_waiter(w, at);
            break;
        }
    warden_pump(w);
}

static void note_demand(warden *w, shape *s)
{
    s->used_ns = rt_now_ns();
    s->taken_this_tick++;
    if (!s->is_live && !find_ready(w, s) && s->target < w->setup->config->pool_max)
        s->target++;
}

/* A run begins: what nobody waits for can wait until it had its first turn on both cores. */
static void hold_refill(warden *w)
{
    struct itimerspec once = { .it_value.tv_nsec = REFILL_DELAY_NS };
    w->refill_ns = rt_now_ns() + REFILL_DELAY_NS;
    timerfd_settime(w->refill.fd, 0, &once, NULL);
}

static void take_request(warden *w, const char *packet, size_t size, int lease)
{
    warden_request asked;
    rt_error err = { 0 };
    waiter *who = calloc(1, sizeof(*who));
    memcpy(&asked, packet, sizeof(asked));
    asked.zygote[sizeof(asked.zygote) - 1] = '\0';
    if (w->waiter_count >= WAITERS_MAX)
        rt_fail(&err, RT_LIMIT, "%d requests wait for a cell already; try again", WAITERS_MAX);
    bool is_whole = who && !err.code && size == sizeof(asked) + asked.paths_bytes &&
                    (asked.paths_bytes == 0 || packet[size - 1] == '\0');
    if (!is_whole || !read_request(w, &asked, packet + sizeof(asked), who, &err)) {
        if (!err.code)
            rt_fail(&err, RT_INTERNAL, "a request of %zu bytes makes no sense", size);
        warden_lease_fail(lease, &err);
        close(lease);
        free(who);
        return;
    }
    w->waiter_count++;
    *w->last_waiter = who;
    w->last_waiter = &who->next;
    warden_watch(w, &who->lease, lease, forget_waiter, who); /* readable: the daemon let go */
    if (who->shape && !who->is_early)
        note_demand(w, who->shape);
    hold_refill(w);
    warden_pump(w);
}

static void hear_daemon(warden *w, source *s)
{
    char packet[PACKET_MAX];
    int lease = -1;
    size_t count;
    ssize_t n = jail_packet_recv(s->fd, packet, sizeof(packet), &lease, 1, &count, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0)
        _exit(0); /* the daemon is gone, and with us goes the house */
    if (count == 1 && n >= (ssize_t)sizeof(warden_request))
        take_request(w, packet, (size_t)n, lease);
    else if (count == 1)
        close(lease);
}

static bool is_known(const warden *w, pid_t pid)
{
    for (unsigned i = 0; i < w->cell_count; i++)
        if (w->cells[i].init_pid == pid || w->cells[i].main_pid == pid ||
            w->cells[i].twin_pid == pid)
            return true;
    for (size_t i = 0; i < w->zygote_count; i++)
        if (w->zygotes[i].pid == pid)
            return true;
    for (size_t i = 0; i < ROOTS_MAX; i++)
        if (w->roots[i].pid == pid)
            return true;
    return w->midwife_pid == pid;
}

/* A child nobody waits for (its birth failed half-way) would keep its pid namespace from ending. */
static void reap_strays(const warden *w)
{
    siginfo_t info = { 0 };
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0 &&
           !is_known(w, info.si_pid)) {
        waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WNOHANG);
        info.si_pid = 0;
    }
}

/* Once a second the pools look back: what was not needed for a while is given up, one by one. */
static void look_back(warden *w, source *s)
{
    uint64_t times;
    (void)!read(s->fd, &times, sizeof(times));
    reap_strays(w);
    uint64_t now = rt_now_ns();
    for (size_t i = 0; i < SHAPES_MAX; i++) {
        shape *p = &w->shapes[i];
        if (!p->is_used || p->target == 0)
            continue;
        bool is_idle = p->taken_this_tick < p->target;
        p->low_ticks = is_idle ? p->low_ticks + 1 : 0;
        p->taken_this_tick = 0;
        bool is_forgotten = now - p->used_ns > FORGET_NS;
        if (p->low_ticks < IDLE_TICKS || (p->target == 1 && !is_forgotten))
            continue;
        p->low_ticks = 0;
        p->target--;
        cell *extra = find_ready(w, p);
        if (extra)
            warden_cell_end(w, extra);
    }
    warden_pump(w);
}

static void refill(warden *w, source *s)
{
    uint64_t times;
    (void)!read(s->fd, &times, sizeof(times));
    w->refill_ns = 0;
    warden_pump(w);
}

static _Noreturn void follow_keeper(warden *w, source *s)
{
    (void)w, (void)s;
    _exit(1);
}

/* ---- starting ---- */

static bool set_up(warden *w, rt_error *err)
{
    const warden_setup *setup = w->setup;
    for (filter_kind kind = 0; kind < FILTER_KINDS; kind++)
        if (!sandbox_filter_make(kind, &w->filters[kind], err))
            return false;
    w->zygote_count = RT_MIN(setup->config->zygote_count, (size_t)ZYGOTES_MAX);
    for (size_t i = 0; i < w->zygote_count; i++) {
        zygote *z = &w->zygotes[i];
        *z = (zygote){ .spec = &setup->config->zygotes[i], .far_orders = -1, .far_errors = -1 };
        z->orders.fd = z->death.fd = z->errors.fd = -1;
    }
    w->cell_count = setup->config->max_cells;
    w->cells = calloc(w->cell_count, sizeof(*w->cells));
    for (unsigned i = 0; w->cells && i < w->cell_count; i++) {
        cell *c = &w->cells[i];
        c->slot = i;
        c->link.fd = c->init_death.fd = c->main_death.fd = c->twin_death.fd = c->lease.fd = -1;
        c->porch = -1;
        memset(c->guest_fds, -1, sizeof(c->guest_fds));
        memset(c->daemon_fds, -1, sizeof(c->daemon_fds));
    }
    for (size_t i = 0; i < ROOTS_MAX; i++)
        w->roots[i].orders.fd = w->roots[i].death.fd = -1;
    w->midwife.fd = w->midwife_death.fd = -1;
    w->last_waiter = &w->first_waiter;
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    struct itimerspec each = { { TICK_SECONDS, 0 }, { TICK_SECONDS, 0 } };
    if (!w->cells || w->epoll < 0 || timer < 0 || timerfd_settime(timer, 0, &each, NULL) != 0 ||
        !warden_watch(w, &w->daemon, setup->daemon, hear_daemon, w) ||
        !warden_watch(w, &w->keeper, setup->keeper, follow_keeper, w) ||
        !warden_watch(w, &w->tick, timer, look_back, w) ||
        !warden_watch(w, &w->refill, timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
                      refill, w))
        return rt_fail_errno(err, "start the warden's loop");
    return sandbox_root_frame(setup->config->root, setup->entry_fds, setup->config->root_count,
                              err) &&
           warden_root_get(w, "", 0, err);
}

_Noreturn void sandbox_warden_main(const warden_setup *setup)
{
    static warden w;
    lease_message first = { .kind = LEASE_WARM };
    w.setup = setup;
    prctl(PR_SET_NAME, "retort-warden");
    signal(SIGPIPE, SIG_IGN);
    if (!set_up(&w, &first.error))
        first.kind = LEASE_FAIL;
    jail_packet_send(setup->daemon, &first, sizeof(first), NULL, 0);
    while (first.kind != LEASE_FAIL) {
        /* One at a time: handling an event may end the owner of the next. */
        struct epoll_event event;
        int n = epoll_wait(w.epoll, &event, 1, -1);
        if (n < 0 && errno != EINTR)
            break;
        if (n == 1) {
            source *s = event.data.ptr;
            s->handle(&w, s);
        }
    }
    _exit(1);
}
