/*
 * live.c - sessions: one cell, one interpreter, one run at a time.
 *
 * What the threads share stands under one lock: whose turn it is, and whether the session is being
 * closed. A run takes its turn, has the cell to itself, and gives it back. Files need no turn: the
 * cell's first process serves them beside the run.
 */
#include "runtimes/runtimes_internal.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TURN_LOOK_NS 20000000 /* how often who waits for a turn looks whether it was cancelled */

struct rt_live {
    rt_cell *cell;
    const guest_kind *kind;
    int64_t runs; /* of whoever has the turn */
    pthread_mutex_t lock;
    pthread_cond_t freed;
    bool is_taken, is_closing, is_over;
    unsigned visitors; /* threads at its files */
};

static rt_live *live_new(const guest_kind *kind, rt_cell *cell)
{
    rt_live *live = calloc(1, sizeof(*live));
    pthread_condattr_t monotonic;
    if (!live)
        rt_out_of_memory(sizeof(*live));
    live->kind = kind;
    live->cell = cell;
    pthread_mutex_init(&live->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&live->freed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return live;
}

bool rt_live_open(rt_runtime *local, const rt_live_spec *spec, rt_live **out, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    const rt_language *language = rt_language_find(spec->language);
    if (!language)
        return rt_language_unknown(spec->language, err);
    const guest_kind *kind = runtimes_guest(rt_str_of(language->name));
    rt_cell_spec cell_spec = runtimes_cell_spec(spec->policy, rt_str_of(kind->zygote));
    cell_spec.is_live = true;
    rt_cell *cell RT_CLEANUP(rt_cell_closep) = NULL;
    if (!rt_cell_start(runtimes_local_sandbox(local), &cell_spec, &cell, err))
        return rt_wrap(err, "open a session");
    if (!runtimes_is_strict_enough(spec->policy, rt_cell_attestation(cell), &arena, err))
        return false;
    rt_cell_feed(cell, (rt_str){ "", 0 }); /* each run brings its own stdin */
    *out = live_new(kind, RT_TAKE(cell));
    return true;
}

void rt_live_close(rt_live *live)
{
    if (!live)
        return;
    pthread_mutex_lock(&live->lock);
    live->is_closing = true;
    if (live->is_taken)
        rt_cell_cancel(live->cell);
    pthread_cond_broadcast(&live->freed);
    while (live->is_taken || live->visitors > 0)
        pthread_cond_wait(&live->freed, &live->lock);
    pthread_mutex_unlock(&live->lock);
    rt_cell_close(live->cell);
    pthread_cond_destroy(&live->freed);
    pthread_mutex_destroy(&live->lock);
    free(live);
}

void rt_live_closep(rt_live **live)
{
    rt_live_close(*live);
}

/* ---- turns ---- */

static bool is_cancelled(const rt_canceller *canceller)
{
    struct pollfd polled = { .fd = canceller ? canceller->wake : -1, .events = POLLIN };
    return poll(&polled, 1, 0) > 0;
}

static void wait_a_moment(rt_live *live)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += TURN_LOOK_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&live->freed, &live->lock, &until);
}

bool runtimes_live_take(rt_live *live, const guest_kind *kind, const rt_canceller *canceller,
                        rt_cell **cell, int64_t *id, rt_error *err)
{
    if (strcmp(kind->zygote, live->kind->zygote) != 0)
        return rt_fail(err, RT_INVALID, "this session runs %s, not %s", live->kind->language,
                       kind->language);
    pthread_mutex_lock(&live->lock);
    while (live->is_taken && !live->is_closing && !is_cancelled(canceller))
        wait_a_moment(live);
    bool ok = true;
    if (live->is_closing || is_cancelled(canceller))
        ok = rt_fail(err, RT_CANCELLED, live->is_closing ? "the session was closed" : "cancelled");
    else if (live->is_over)
        ok = rt_fail(err, RT_CONFLICT, "the session has ended");
    live->is_taken |= ok;
    pthread_mutex_unlock(&live->lock);
    if (ok) {
        *cell = live->cell;
        *id = ++live->runs;
    }
    return ok;
}

void runtimes_live_give(rt_live *live)
{
    bool is_over = rt_cell_is_over(live->cell);
    pthread_mutex_lock(&live->lock);
    live->is_over = is_over;
    live->is_taken = false;
    pthread_cond_broadcast(&live->freed);
    pthread_mutex_unlock(&live->lock);
}

bool runtimes_live_is_closing(rt_live *live)
{
    pthread_mutex_lock(&live->lock);
    bool is_closing = live->is_closing;
    pthread_mutex_unlock(&live->lock);
    return is_closing;
}

bool rt_live_is_alive(rt_live *live)
{
    pthread_mutex_lock(&live->lock);
    if (!live->is_taken && !live->is_over) /* it may have died in its sleep */
        live->is_over = rt_cell_is_over(live->cell);
    bool is_alive = !live->is_over;
    pthread_mutex_unlock(&live->lock);
    return is_alive;
}

static bool take_to_branch(rt_live *live, rt_error *err)
{
    pthread_mutex_lock(&live->lock);
    bool ok = true;
    if (live->is_closing || live->is_over)
        ok = rt_fail(err, RT_CONFLICT, "the session has ended");
    else if (live->is_taken)
        ok = rt_fail(err, RT_CONFLICT, "a run is under way; branch when it has ended");
    live->is_taken |= ok;
    pthread_mutex_unlock(&live->lock);
    return ok;
}

bool rt_live_branch(rt_live *live, rt_live **out, rt_error *err)
{
    rt_cell *cell = NULL;
    if (!live->kind->is_branched)
        return rt_fail(err, RT_UNSUPPORTED,
                       "a %s session keeps no interpreter that could be copied",
                       live->kind->language);
    if (!take_to_branch(live, err))
        return false;
    bool ok = rt_cell_branch(live->cell, &cell, err);
    runtimes_live_give(live);
    if (!ok)
        return rt_wrap(err, "branch the session");
    rt_cell_feed(cell, (rt_str){ "", 0 });
    *out = live_new(live->kind, cell);
    return true;
}

/* ---- files ---- */

static bool visit(rt_live *live, rt_error *err)
{
    pthread_mutex_lock(&live->lock);
    bool ok = !live->is_closing && !live->is_over;
    live->visitors += ok;
    pthread_mutex_unlock(&live->lock);
    return ok ? true : rt_fail(err, RT_CONFLICT, "the session has ended");
}

static bool leave(rt_live *live, bool ok)
{
    pthread_mutex_lock(&live->lock);
    live->visitors--;
    pthread_cond_broadcast(&live->freed);
    pthread_mutex_unlock(&live->lock);
    return ok;
}

bool rt_live_write(rt_live *live, rt_str path, rt_str data, rt_error *err)
{
    return visit(live, err) && leave(live, rt_cell_write_file(live->cell, path, data, err));
}

bool rt_live_read(rt_live *live, rt_str path, int *fd, uint64_t *size, rt_error *err)
{
    return visit(live, err) && leave(live, rt_cell_read_file(live->cell, path, fd, size, err));
}

bool rt_live_list(rt_live *live, rt_str path, rt_arena *arena, rt_live_file **files, size_t *count,
                  rt_error *err)
{
    return visit(live, err) &&
           leave(live, rt_cell_list_files(live->cell, path, arena, files, count, err));
}

bool rt_live_remove(rt_live *live, rt_str path, rt_error *err)
{
    return visit(live, err) && leave(live, rt_cell_remove_file(live->cell, path, err));
}
