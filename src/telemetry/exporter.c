/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exporter.c - a queue, and the thread that sends what is in it.
 *
 * Tellers put items into a ring and go on; when it is full, the item is dropped and counted. The
 * thread takes what has come together after a delay, or as soon as that is a whole batch, makes one
 * request of it and stays with it until it was taken, refused, or tried often enough. Meanwhile the
 * ring fills; nothing else does.
 *
 * The lock is held for moving pointers only. Tellers wake the thread once per batch, not once per
 * item, so telling is free of system calls but for that.
 */
#include "telemetry/telemetry_internal.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    ATTEMPTS_MAX = 6,       /* 0.5 + 1 + 2 + 4 + 8 s between them, more or less */
    BACKOFF_FIRST_MS = 500, /* doubles each time */
    RETRY_AFTER_MAX_MS = 60000,
};

struct telemetry_exporter {
    telemetry_signal signal;
    rt_telemetry *owner;
    telemetry_post *post; /* NULL: only a file */
    pthread_t thread;

    pthread_mutex_t lock; /* for what follows, up to the next line */
    pthread_cond_t wake;
    void **ring;
    size_t head, count;
    bool is_stopping;

    _Atomic uint64_t stop_at_ns; /* 0: go on */

    void **batch; /* the thread's own, from here */
    rt_buf body;
    rt_outbound parcel; /* the body, cleared */
    telemetry_answer answer;
    bool is_failing;
};

/* -- The queue --------------------------------------------------------------------------------- */

void telemetry_count_dropped(rt_telemetry *t, const char *signal, const char *reason, size_t count)
{
    if (count > 0)
        rt_metric_add(t, RT_METRIC_TELEMETRY_DROPPED, (const char *[]){ signal, reason },
                      (double)count);
}

void telemetry_exporter_tell(telemetry_exporter *e, void *item)
{
    pthread_mutex_lock(&e->lock);
    bool is_full = e->count == e->signal.queue_max;
    if (!is_full)
        e->ring[(e->head + e->count++) % e->signal.queue_max] = item;
    bool is_batch = e->count == e->signal.batch_max;
    pthread_mutex_unlock(&e->lock);
    if (is_batch && !is_full)
        pthread_cond_signal(&e->wake);
    if (is_full) {
        free(item);
        telemetry_count_dropped(e->owner, e->signal.name, "queue_full", 1);
    }
}

static struct timespec moment(uint64_t ns)
{
    return (struct timespec){ (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
}

/* Under the lock, which it gives up meanwhile. False: it is past that moment. */
static bool wait_until(telemetry_exporter *e, uint64_t when_ns)
{
    struct timespec when = moment(when_ns);
    pthread_cond_timedwait(&e->wake, &e->lock, &when);
    return rt_now_ns() < when_ns;
}

/* Waits for a batch or for the delay. False: there is nothing left, and nothing more will come. */
static bool take_batch(telemetry_exporter *e, size_t *count)
{
    uint64_t when = rt_now_ns() + e->signal.delay_ms * 1000000;
    pthread_mutex_lock(&e->lock);
    while (e->count < e->signal.batch_max && !e->is_stopping && wait_until(e, when))
        ;
    *count = RT_MIN(e->count, e->signal.batch_max);
    for (size_t i = 0; i < *count; i++)
        e->batch[i] = e->ring[(e->head + i) % e->signal.queue_max];
    e->head = (e->head + *count) % e->signal.queue_max;
    e->count -= *count;
    bool is_done = e->is_stopping && *count == 0;
    pthread_mutex_unlock(&e->lock);
    return !is_done;
}

/* Lets that time pass. False, at once: we are to stop before. */
static bool pause_for(telemetry_exporter *e, uint64_t ms)
{
    uint64_t when = rt_now_ns() + ms * 1000000;
    bool is_early = true;
    pthread_mutex_lock(&e->lock);
    while (is_early && !(e->is_stopping && when > atomic_load(&e->stop_at_ns)))
        is_early = wait_until(e, when);
    pthread_mutex_unlock(&e->lock);
    return !is_early;
}

/* -- Delivery ---------------------------------------------------------------------------------- */

/* Half as long to half as long again: those who were refused together do not come back together. */
static uint64_t backoff_ms(unsigned attempt, uint64_t retry_after_ms)
{
    uint64_t base = (uint64_t)BACKOFF_FIRST_MS << attempt;
    uint16_t jitter;
    if (retry_after_ms)
        return RT_MIN(retry_after_ms, (uint64_t)RETRY_AFTER_MAX_MS);
    rt_random_bytes(&jitter, sizeof(jitter));
    return base / 2 + base * jitter / UINT16_MAX;
}

static void post_parcel(telemetry_exporter *e)
{
    telemetry_post_send(e->post, &e->parcel, &e->answer);
    for (unsigned attempt = 0; e->answer.verdict == TELEMETRY_LATER && attempt + 1 < ATTEMPTS_MAX &&
                               pause_for(e, backoff_ms(attempt, e->answer.retry_after_ms));
         attempt++)
        telemetry_post_send(e->post, &e->parcel, &e->answer);
}

/* Says so when sending begins to fail and when it works again, not once per batch. */
static void note(telemetry_exporter *e, bool is_failing, const char *why)
{
    char text[300];
    if (is_failing == e->is_failing)
        return;
    e->is_failing = is_failing;
    if (is_failing)
        snprintf(text, sizeof(text), "telemetry: %s are dropped: %s", e->signal.name, why);
    else
        snprintf(text, sizeof(text), "telemetry: %s are sent again", e->signal.name);
    if (e->owner->warn)
        e->owner->warn(e->owner->warn_ctx, text);
}

static void drop(telemetry_exporter *e, const char *reason, size_t count, const char *why)
{
    telemetry_count_dropped(e->owner, e->signal.name, reason, count);
    note(e, true, why);
}

static void count_sent(telemetry_exporter *e, size_t count)
{
    rt_metric_add(e->owner, RT_METRIC_TELEMETRY_SENT, (const char *[]){ e->signal.name },
                  (double)count);
    note(e, false, NULL);
}

static void conclude_post(telemetry_exporter *e, size_t count)
{
    const telemetry_answer *answer = &e->answer;
    uint64_t rejected = 0;
    if (answer->verdict != TELEMETRY_TAKEN) {
        drop(e, answer->verdict == TELEMETRY_LATER ? "unavailable" : "refused", count,
             answer->text);
        return;
    }
    if (e->signal.rejected)
        rejected = RT_MIN(e->signal.rejected(rt_buf_str(&answer->body)), (uint64_t)count);
    telemetry_count_dropped(e->owner, e->signal.name, "rejected", rejected);
    count_sent(e, count - rejected);
}

/* Opened anew for each batch, so that the file can be moved away and begun anew. */
static bool open_file(const char *path, int *out, off_t *size, rt_error *err)
{
    struct stat st;
    /* O_NONBLOCK: opening a pipe that nobody reads would wait for ever. */
    int fd RT_CLEANUP(rt_closep) =
        open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd < 0 || fstat(fd, &st) != 0)
        return rt_fail_errno(err, "open %s", path);
    if (!S_ISREG(st.st_mode))
        return rt_fail(err, RT_INVALID, "%s is not a regular file", path);
    *size = st.st_size;
    *out = RT_TAKE_FD(fd);
    return true;
}

/* A whole line or nothing: half of one would spoil the next. */
static bool append_line(const char *path, rt_str line, rt_error *err)
{
    int fd RT_CLEANUP(rt_closep) = -1;
    off_t size;
    if (!open_file(path, &fd, &size, err))
        return false;
    if (rt_write_all(fd, line, err))
        return true;
    if (ftruncate(fd, size) != 0)
        return rt_wrap(err, "%s now ends in half a line", path);
    return rt_wrap(err, "write %s", path);
}

static void write_file(telemetry_exporter *e, size_t count)
{
    rt_error err = { 0 };
    rt_buf_reset(&e->body); /* its content is in the parcel */
    rt_buf_add(&e->body, rt_outbound_bytes(&e->parcel));
    rt_buf_addc(&e->body, '\n');
    if (!rt_buf_ok(&e->body, &err) || !append_line(e->signal.file, rt_buf_str(&e->body), &err))
        drop(e, "file", count, err.text);
    else if (!e->post)
        count_sent(e, count);
}

static void deliver(telemetry_exporter *e, size_t taken)
{
    rt_error err = { 0 };
    rt_buf_reset(&e->body);
    size_t count = e->signal.encode(e->signal.ctx, e->batch, taken, &e->body);
    for (size_t i = 0; i < taken; i++)
        free(e->batch[i]);
    if (!rt_buf_ok(&e->body, NULL))
        count = 0;
    telemetry_count_dropped(e->owner, e->signal.name, "invalid", taken - count);
    if (count == 0)
        return;
    if (!rt_outbound_clear(&e->parcel, RT_OUTBOUND_DATA, rt_buf_str(&e->body), e->signal.exempt,
                           e->signal.exempt_count, &err)) {
        drop(e, "invalid", count, err.text);
        return;
    }
    if (e->signal.file)
        write_file(e, count);
    if (e->post) {
        post_parcel(e);
        conclude_post(e, count);
    }
}

static void *run(void *ctx)
{
    telemetry_exporter *e = ctx;
    size_t count;
    while (take_batch(e, &count))
        if (count > 0)
            deliver(e, count);
    return NULL;
}

/* -- Beginning and end ------------------------------------------------------------------------- */

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        rt_out_of_memory(count * size);
    return memory;
}

static void exporter_free(telemetry_exporter *e)
{
    telemetry_post_close(e->post);
    for (size_t i = 0; i < e->count; i++)
        free(e->ring[(e->head + i) % e->signal.queue_max]);
    pthread_cond_destroy(&e->wake);
    pthread_mutex_destroy(&e->lock);
    rt_buf_done(&e->answer.body);
    rt_buf_done(&e->body);
    rt_outbound_done(&e->parcel);
    free(e->batch);
    free(e->ring);
    free(e);
}

static void exporter_freep(telemetry_exporter **e)
{
    if (*e)
        exporter_free(*e);
}

static telemetry_exporter *exporter_new(const telemetry_signal *signal, rt_telemetry *owner)
{
    telemetry_exporter *e = allocate(1, sizeof(*e));
    pthread_condattr_t monotonic;
    e->signal = *signal;
    e->owner = owner;
    e->ring = allocate(signal->queue_max, sizeof(void *));
    e->batch = allocate(signal->batch_max, sizeof(void *));
    pthread_mutex_init(&e->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&e->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return e;
}

/* The program's signals are not for this thread; a broken connection raises none here either. */
static bool start_thread(telemetry_exporter *e, rt_error *err)
{
    sigset_t all, before;
    char name[16];
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&e->thread, NULL, run, e);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return rt_fail(err, RT_UNAVAILABLE, "start a thread: %s", strerror(failed));
    snprintf(name, sizeof(name), "rt-%s", e->signal.name);
    pthread_setname_np(e->thread, name);
    return true;
}

static bool check_file(const char *path, rt_error *err)
{
    int fd RT_CLEANUP(rt_closep) = -1;
    off_t size;
    return open_file(path, &fd, &size, err);
}

bool telemetry_exporter_open(const telemetry_signal *signal, rt_telemetry *owner,
                             telemetry_exporter **out, rt_error *err)
{
    assert(signal->batch_max <= signal->queue_max);
    telemetry_exporter *e RT_CLEANUP(exporter_freep) = exporter_new(signal, owner);
    if (signal->file && !check_file(signal->file, err))
        return rt_wrap(err, "file of %s", signal->name);
    if (signal->target.url && !telemetry_post_open(&signal->target, &e->stop_at_ns, &e->post, err))
        return rt_wrap(err, "receiver of %s", signal->name);
    if (!start_thread(e, err))
        return false;
    *out = RT_TAKE(e);
    return true;
}

void telemetry_exporter_stop(telemetry_exporter *e, uint64_t stop_at_ns)
{
    if (!e)
        return;
    pthread_mutex_lock(&e->lock);
    atomic_store(&e->stop_at_ns, stop_at_ns);
    e->is_stopping = true;
    pthread_mutex_unlock(&e->lock);
    pthread_cond_signal(&e->wake);
}

bool telemetry_exporter_close(telemetry_exporter *e, uint64_t until_ns)
{
    if (!e)
        return true;
    struct timespec until = moment(until_ns);
    if (pthread_clockjoin_np(e->thread, NULL, CLOCK_MONOTONIC, &until) != 0) {
        pthread_detach(e->thread);
        return false;
    }
    exporter_free(e);
    return true;
}
