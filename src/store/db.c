/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db.c - connections lent to threads, and transactions on them.
 *
 * A lane is a set of connections of one kind. SQLite has two: one writer, several readers.
 * PostgreSQL has one for both. Who finds no connection free waits in line; who gives one back lets
 * newcomers have it (that keeps the database busy) unless the first in line has waited for
 * STORE_PATIENCE_MS: then it is handed over, so nobody starves.
 *
 * What must stay true: a lane's lock is never held while talking to a database, and a connection
 * counts in open_count from before it is made until after it is closed.
 */
#include "store/store_internal.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

/* -- lanes ------------------------------------------------------------------------------------- */

static void wake_first(store_lane *lane)
{
    if (lane->waiters)
        pthread_cond_signal(&lane->waiters->called);
}

static void leave_line(store_lane *lane, const store_waiter *waiter)
{
    for (store_waiter **at = &lane->waiters; *at; at = &(*at)->next) {
        if (*at == waiter) {
            *at = waiter->next;
            return;
        }
    }
}

static bool must_wait(const store_lane *lane)
{
    return lane->idle_count == 0 && lane->open_count >= lane->max;
}

static struct timespec deadline_after(uint64_t ms)
{
    uint64_t ns = rt_now_ns() + ms * 1000000;
    return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000),
                              .tv_nsec = (long)(ns % 1000000000) };
}

/* With the lane locked. True: *handed is a connection, or NULL when one may be taken or made now.
 */
static bool wait_in_line(store_lane *lane, store_conn **handed)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    store_waiter self = { .since_ns = rt_now_ns() };
    pthread_cond_init(&self.called, &monotonic);
    pthread_condattr_destroy(&monotonic);

    store_waiter **end = &lane->waiters;
    while (*end)
        end = &(*end)->next;
    *end = &self;

    struct timespec until = deadline_after(lane->wait_ms);
    int rc = 0;
    while (!self.conn && must_wait(lane) && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&self.called, &lane->lock, &until);
    if (!self.conn)
        leave_line(lane, &self);
    pthread_cond_destroy(&self.called);
    *handed = self.conn;
    return self.conn || !must_wait(lane);
}

/* A connection from the lane, or leave to make one (*out is NULL and it is counted as open). */
static bool lane_take(store_lane *lane, store_conn **out, rt_error *err)
{
    store_conn *conn = NULL;
    bool is_there = true;
    pthread_mutex_lock(&lane->lock);
    if (must_wait(lane))
        is_there = wait_in_line(lane, &conn);
    if (is_there && !conn) {
        if (lane->idle_count > 0)
            conn = lane->idle[--lane->idle_count];
        else
            lane->open_count++;
        if (!must_wait(lane))
            wake_first(lane);
    }
    pthread_mutex_unlock(&lane->lock);
    if (!is_there)
        return rt_fail(err, RT_UNAVAILABLE, "no connection to the database was free within %u ms",
                       lane->wait_ms);
    *out = conn;
    return true;
}

static void lane_forget(store_lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    lane->open_count--;
    wake_first(lane);
    pthread_mutex_unlock(&lane->lock);
}

static void lane_give(store_lane *lane, store_conn *conn)
{
    conn->is_fresh = false;
    pthread_mutex_lock(&lane->lock);
    store_waiter *first = lane->waiters;
    if (first && rt_now_ns() - first->since_ns > STORE_PATIENCE_MS * UINT64_C(1000000)) {
        leave_line(lane, first);
        first->conn = conn;
        pthread_cond_signal(&first->called);
    } else {
        lane->idle[lane->idle_count++] = conn;
        wake_first(lane);
    }
    pthread_mutex_unlock(&lane->lock);
}

/* Closes what lies idle: after one connection was found dead, the others may be too. */
static void lane_empty(rt_store *store, store_lane *lane)
{
    store_conn *dead[STORE_CONNECTIONS_MAX];
    pthread_mutex_lock(&lane->lock);
    unsigned count = lane->idle_count;
    memcpy(dead, lane->idle, count * sizeof(*dead));
    lane->idle_count = 0;
    pthread_mutex_unlock(&lane->lock);
    for (unsigned i = 0; i < count; i++) {
        store->backend->close(dead[i]);
        lane_forget(lane);
    }
}

static bool borrow(rt_store *store, rt_tx_kind kind, store_conn **out, rt_error *err)
{
    store_lane *lane = store->lane_of[kind];
    for (;;) {
        store_conn *conn;
        if (!lane_take(lane, &conn, err))
            return false;
        if (!conn && !store->backend->connect(store, kind, &conn, err)) {
            lane_forget(lane);
            return rt_wrap(err, "connect to the database");
        }
        if (conn->is_fresh || store->backend->is_alive(conn)) {
            *out = conn;
            return true;
        }
        store->backend->close(conn);
        lane_forget(lane);
    }
}

static void give_back(rt_store *store, store_lane *lane, store_conn *conn)
{
    if (!conn->is_broken) {
        lane_give(lane, conn);
        return;
    }
    store->backend->close(conn);
    lane_forget(lane);
}

/* -- opening and closing ----------------------------------------------------------------------- */

static const struct {
    rt_str scheme;
    const store_backend *backend;
} backends[] = {
    { { "sqlite:", 7 }, &store_sqlite },
    { { "postgresql://", 13 }, &store_postgres },
    { { "postgres://", 11 }, &store_postgres },
};

static const store_backend *backend_of(rt_str url)
{
    for (size_t i = 0; i < RT_COUNT(backends); i++)
        if (rt_str_starts(url, backends[i].scheme))
            return backends[i].backend;
    return NULL;
}

static rt_store *store_new(const store_backend *backend)
{
    rt_store *store = calloc(1, sizeof(*store));
    if (!store)
        rt_out_of_memory(sizeof(*store));
    store->backend = backend;
    for (size_t i = 0; i < RT_COUNT(store->lanes); i++) {
        pthread_mutex_init(&store->lanes[i].lock, NULL);
        store->lane_of[i] = &store->lanes[i];
    }
    return store;
}

bool rt_store_open(const rt_store_config *config, rt_store **out, rt_error *err)
{
    const store_backend *backend = backend_of(config->url);
    if (!backend || memchr(config->url.ptr, '\0', config->url.len))
        return rt_fail(err, RT_INVALID,
                       "the database's URL begins with sqlite:/// or postgresql://");
    if (config->connections > STORE_CONNECTIONS_MAX)
        return rt_fail(err, RT_INVALID, "%u connections to the database: at most %d",
                       config->connections, STORE_CONNECTIONS_MAX);
    rt_store *store RT_CLEANUP(rt_store_closep) = store_new(backend);
    store->is_sync_full = config->is_sync_full;
    for (size_t i = 0; i < RT_COUNT(store->lanes); i++)
        store->lanes[i].wait_ms = config->wait_ms ? config->wait_ms : RT_STORE_WAIT_MS;
    if (!backend->settle(store, config, err) || !rt_store_check(store, err))
        return rt_wrap(err, "open the %s database", backend->kind);
    *out = RT_TAKE(store);
    return true;
}

void rt_store_close(rt_store *store)
{
    if (!store)
        return;
    for (size_t i = 0; i < RT_COUNT(store->lanes); i++) {
        lane_empty(store, &store->lanes[i]);
        assert(store->lanes[i].open_count == 0); /* a transaction outlives its store */
        pthread_mutex_destroy(&store->lanes[i].lock);
    }
    free(store->location);
    free(store);
}

void rt_store_closep(rt_store **store)
{
    rt_store_close(*store);
    *store = NULL;
}

const char *rt_store_kind(const rt_store *store)
{
    return store->backend->kind;
}

bool rt_store_check(rt_store *store, rt_error *err)
{
    return rt_sql_once(store, RT_TX_READ, "SELECT 1", NULL, 0, NULL, NULL, err);
}

bool rt_store_purge(rt_store *store, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_rows rows;
    if (!store->backend->purge)
        return true;
    if (!rt_sql_once(store, RT_TX_WRITE, store->backend->purge, NULL, 0, &arena, &rows, err))
        return rt_wrap(err, "purge the journal");
    return rt_rows_at(&rows, 0, 0).i64 == 0
               ? true
               : rt_fail(err, RT_UNAVAILABLE, "purge the journal: it is being read");
}

bool store_make_directory(const char *path, rt_error *err)
{
    if (path[0] == '\0')
        return rt_fail(err, RT_INVALID, "the path of a directory is empty");
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    char *part = rt_arena_copy(&arena, rt_str_of(path));
    for (char *at = part + 1;; at++) {
        if (*at != '/' && *at != '\0')
            continue;
        char end = *at;
        *at = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST)
            return rt_fail_errno(err, "make %s", part);
        if (end == '\0')
            return true;
        *at = end;
    }
}

bool store_make_directory_of(const char *file, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    char *directory = rt_arena_copy(&arena, rt_str_of(file));
    char *slash = strrchr(directory, '/');
    if (!slash || slash == directory)
        return true;
    *slash = '\0';
    return store_make_directory(directory, err);
}

/* -- statements and transactions -----------------------------------------------------------------
 */

static const char *value_fault(const rt_sql_value *value)
{
    if (value->kind == RT_SQL_DOUBLE && !isfinite(value->number))
        return "a number that is not finite";
    if (value->kind != RT_SQL_TEXT)
        return NULL;
    if (memchr(value->text.ptr, '\0', value->text.len))
        return "text with a NUL byte";
    return rt_utf8_valid(value->text) ? NULL : "text that is not UTF-8";
}

static bool check_values(const rt_sql_value *values, size_t count, rt_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const char *fault = value_fault(&values[i]);
        if (fault)
            return rt_fail(err, RT_INVALID, "value %zu of a statement is %s", i + 1, fault);
    }
    return true;
}

/* Whether another go on a new connection can do no harm and may help. */
static bool is_worth_a_retry(const store_conn *conn, bool was_fresh)
{
    return conn->is_broken && !was_fresh;
}

static bool begin_on(rt_store *store, rt_tx_kind kind, store_conn *conn, rt_error *err)
{
    return store->backend->exec(conn, store->backend->begin[kind], NULL, 0, NULL, NULL, err);
}

static bool borrow_and_begin(rt_store *store, rt_tx_kind kind, store_conn **out, rt_error *err)
{
    store_lane *lane = store->lane_of[kind];
    store_conn *conn;
    if (!borrow(store, kind, &conn, err))
        return false;
    bool was_fresh = conn->is_fresh;
    bool done = begin_on(store, kind, conn, err);
    if (!done && is_worth_a_retry(conn, was_fresh)) {
        give_back(store, lane, conn);
        lane_empty(store, lane);
        if (!borrow(store, kind, &conn, err))
            return false;
        done = begin_on(store, kind, conn, err);
    }
    if (!done)
        give_back(store, lane, conn);
    else
        *out = conn;
    return done;
}

bool rt_tx_begin(rt_store *store, rt_tx_kind kind, rt_tx **out, rt_error *err)
{
    store_conn *conn;
    if (!borrow_and_begin(store, kind, &conn, err))
        return rt_wrap(err, "begin a transaction");
    rt_tx *tx = malloc(sizeof(*tx));
    if (!tx)
        rt_out_of_memory(sizeof(*tx));
    *tx = (rt_tx){ .store = store, .lane = store->lane_of[kind], .conn = conn };
    *out = tx;
    return true;
}

bool rt_tx_commit(rt_tx **tx, rt_error *err)
{
    rt_tx *own = *tx;
    if (own->has_failed) {
        rt_tx_rollbackp(tx);
        return rt_fail(err, RT_INTERNAL, "commit: a statement of the transaction had failed");
    }
    if (!own->store->backend->exec(own->conn, "COMMIT", NULL, 0, NULL, NULL, err)) {
        rt_tx_rollbackp(tx);
        return rt_wrap(err, "commit");
    }
    give_back(own->store, own->lane, own->conn);
    free(own);
    *tx = NULL;
    return true;
}

void rt_tx_rollbackp(rt_tx **tx)
{
    rt_tx *own = RT_TAKE(*tx);
    if (!own)
        return;
    store_conn *conn = own->conn;
    if (!conn->is_broken &&
        !own->store->backend->exec(conn, "ROLLBACK", NULL, 0, NULL, NULL, &(rt_error){ 0 }))
        conn->is_broken = true;
    give_back(own->store, own->lane, conn);
    free(own);
}

bool rt_sql(rt_tx *tx, const char *sql, const rt_sql_value *values, size_t count, rt_arena *arena,
            rt_rows *out, rt_error *err)
{
    assert(!out || arena);
    if (tx->has_failed)
        return rt_fail(err, RT_INTERNAL, "a statement of this transaction has failed before");
    bool done = check_values(values, count, err) &&
                tx->store->backend->exec(tx->conn, sql, values, count, arena, out, err);
    tx->has_failed = !done;
    return done;
}

bool store_script(rt_tx *tx, const char *text, rt_error *err)
{
    bool done = !tx->has_failed && tx->store->backend->script(tx->conn, text, err);
    tx->has_failed = !done;
    return done;
}

/*
 * The database makes a transaction of a single statement by itself. A read that met a dead
 * connection is asked again; a write is not, for nobody knows whether it was done.
 */
bool rt_sql_once(rt_store *store, rt_tx_kind kind, const char *sql, const rt_sql_value *values,
                 size_t count, rt_arena *arena, rt_rows *out, rt_error *err)
{
    assert(!out || arena);
    store_lane *lane = store->lane_of[kind];
    store_conn *conn;
    if (!check_values(values, count, err) || !borrow(store, kind, &conn, err))
        return false;
    bool was_fresh = conn->is_fresh;
    bool done = store->backend->exec(conn, sql, values, count, arena, out, err);
    if (!done && kind == RT_TX_READ && is_worth_a_retry(conn, was_fresh)) {
        give_back(store, lane, conn);
        lane_empty(store, lane);
        if (!borrow(store, kind, &conn, err))
            return false;
        done = store->backend->exec(conn, sql, values, count, arena, out, err);
    }
    give_back(store, lane, conn);
    return done;
}
