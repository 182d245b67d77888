/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_internal.h - what the files of the store share: backends, lanes of connections, statements.
 *
 * A backend (sqlite.c, postgres.c) knows one database. db.c holds its connections in lanes, lends
 * each to one thread at a time, and does alike for both what can be done alike: checking values,
 * beginning and ending transactions, trying a dead connection again.
 */
#ifndef RT_STORE_STORE_INTERNAL_H
#define RT_STORE_STORE_INTERNAL_H

#include <pthread.h>

#include "store/artifacts.h"
#include "store/db.h"
#include "store/vault.h"

#define STORE_CONNECTIONS_MAX 64
#define STORE_STATEMENTS_MAX  64     /* prepared ones a connection keeps */
#define STORE_LOCK_WAIT_MS    5000   /* for a lock another program holds in the database */
#define STORE_STATEMENT_MS    30000  /* a statement that takes longer is given up: RT_TIMEOUT */
#define STORE_MIGRATION_MS    600000 /* the same for a step of a migration */
#define STORE_PATIENCE_MS     20     /* after which a waiter is served before newcomers */

/* -- statements.c: which texts a connection has prepared ------------------------------------------
 */

typedef struct store_statements {
    struct {
        char *sql;
        size_t len;
        void *handle; /* the backend's */
        uint64_t last_use;
    } slots[STORE_STATEMENTS_MAX];
    size_t count;
    uint64_t uses;
} store_statements;

void *store_statements_find(store_statements *statements, const char *sql); /* or NULL */
/* Keeps it, and returns the handle that had to go for it, or NULL. */
void *store_statements_add(store_statements *statements, const char *sql, void *handle);
void store_statements_done(store_statements *statements, void (*free_handle)(void *handle));

/* -- backends ---------------------------------------------------------------------------------- */

/* One connection; each backend's own begins with this. */
typedef struct store_conn {
    store_statements statements;
    bool is_fresh;  /* has not been lent before */
    bool is_broken; /* to be closed instead of lent again */
} store_conn;

typedef struct store_backend {
    const char *kind;
    const char *begin[2];       /* the statement, by rt_tx_kind */
    const char *purge;          /* a statement for rt_store_purge(); may be NULL */
    const char *migration_lock; /* a script; holds until the transaction ends; may be NULL */
    /* Understands the URL, and sets store->location and the lanes. */
    bool (*settle)(rt_store *store, const rt_store_config *config, rt_error *err);
    bool (*connect)(const rt_store *store, rt_tx_kind kind, store_conn **out, rt_error *err);
    void (*close)(store_conn *conn);
    bool (*is_alive)(store_conn *conn); /* as far as one can tell without asking the server */
    bool (*exec)(store_conn *conn, const char *sql, const rt_sql_value *values, size_t count,
                 rt_arena *arena, rt_rows *out, rt_error *err);
    bool (*script)(store_conn *conn, const char *text, rt_error *err); /* a step of a migration */
} store_backend;

extern const store_backend store_sqlite, store_postgres;

/* -- db.c: connections lent to threads -----------------------------------------------------------
 */

typedef struct store_waiter {
    pthread_cond_t called;
    uint64_t since_ns;
    store_conn *conn; /* handed over by the one who gave it back */
    struct store_waiter *next;
} store_waiter;

typedef struct store_lane {
    pthread_mutex_t lock;
    store_conn *idle[STORE_CONNECTIONS_MAX];
    unsigned idle_count, open_count, max, wait_ms;
    store_waiter *waiters; /* who has waited longest first */
} store_lane;

struct rt_store {
    const store_backend *backend;
    char *location; /* the file, or the URL; holds a password: never in a message */
    bool is_sync_full;
    store_lane lanes[2];
    store_lane *lane_of[2]; /* by rt_tx_kind; both may be the same */
};

struct rt_tx {
    rt_store *store;
    store_lane *lane;
    store_conn *conn;
    bool has_failed;
};

bool store_script(rt_tx *tx, const char *text, rt_error *err);

/* -- vault.c: sealing into memory the caller has -------------------------------------------------
 */

#define STORE_SEAL_SIZE 29 /* what sealing adds: a version, the nonce, the tag */

/* `sealed` has room for plain.len + STORE_SEAL_SIZE bytes, `plain` for STORE_SEAL_SIZE fewer. */
void store_seal(const rt_vault *vault, rt_str purpose, rt_str plain, char *sealed);
bool store_unseal(const rt_vault *vault, rt_str purpose, rt_str sealed, char *plain, rt_error *err);

/* -- artifacts.c and sweep.c
 * ----------------------------------------------------------------------- */

#define STORE_ARTIFACT_ID_MAX 64

struct rt_shelf {
    rt_store *store;
    const rt_vault *vault;
    int directory; /* a descriptor */
    char *host;
    uint64_t max_bytes, ttl_ms;
    _Atomic uint64_t used_bytes; /* an estimate between sweeps: put adds, remove subtracts */
    pthread_mutex_t trimming;    /* one at a time makes room */
};

bool store_shelf_measure(rt_shelf *shelf, rt_error *err); /* sets used_bytes */
/* Rows of (id, size, host) that were deleted: now their files, where they are ours. */
void store_shelf_drop_all(rt_shelf *shelf, const rt_rows *gone);
bool store_shelf_make_room(rt_shelf *shelf, uint64_t bytes, uint64_t *removed, rt_error *err);

/* -- files ------------------------------------------------------------------------------------- */

/* Makes the directory and those above it that are missing, mode 0700. */
bool store_make_directory(const char *path, rt_error *err);
/* The same for the directory the file is to be in. */
bool store_make_directory_of(const char *file, rt_error *err);

#endif
