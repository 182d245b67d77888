/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep.c - takes from the shelf what has expired, what is over its budget, and what nobody knows.
 *
 * A file without a row is what a crash, or the deletion of its row by another node, leaves. It goes
 * once it is older than ORPHAN_MS: a younger one may be waiting for its row.
 */
#include "store/store_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#define ORPHAN_MS ((uint64_t)10 * 60 * 1000)
#define BATCH     256 /* rows looked at in one statement */
#define LOOKUPS   32  /* files looked up in one statement: the number of $n in known_sql */

/* -- the sweep ------------------------------------------------------------------------------------
 */

/* Rows of every node: one that is gone for good leaves its rows to the others. */
static bool sweep_expired(rt_shelf *shelf, uint64_t now_ms, uint64_t *removed, rt_error *err)
{
    rt_sql_value values[] = { rt_sql_i64((int64_t)now_ms), rt_sql_i64(BATCH) };
    for (;;) {
        rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
        rt_rows gone;
        if (!rt_sql_once(shelf->store, RT_TX_WRITE,
                         "DELETE FROM artifacts WHERE id IN (SELECT id FROM artifacts WHERE "
                         "expires_ms <= $1 ORDER BY expires_ms LIMIT $2) RETURNING id, size, host",
                         values, RT_COUNT(values), &arena, &gone, err))
            return false;
        store_shelf_drop_all(shelf, &gone);
        *removed += gone.count;
        if (gone.count < BATCH)
            return true;
    }
}

/* Of the oldest ones, just so many that `excess` bytes become free. */
static bool remove_oldest(rt_shelf *shelf, uint64_t excess, uint64_t *freed, uint64_t *removed,
                          rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_sql_value values[] = { rt_sql_text(rt_str_of(shelf->host)), rt_sql_i64(BATCH) };
    rt_rows oldest;
    if (!rt_sql_once(shelf->store, RT_TX_READ,
                     "SELECT id, organisation_id, size FROM artifacts WHERE host = $1 "
                     "ORDER BY created_ms, id LIMIT $2",
                     values, RT_COUNT(values), &arena, &oldest, err))
        return false;
    *freed = 0;
    for (size_t i = 0; i < oldest.count && *freed < excess; i++) {
        rt_error gone = { 0 };
        if (!rt_artifact_remove(shelf, rt_rows_at(&oldest, i, 1).text,
                                rt_rows_at(&oldest, i, 0).text, &gone) &&
            gone.code != RT_NOT_FOUND) {
            if (err)
                *err = gone;
            return false;
        }
        *freed += (uint64_t)rt_rows_at(&oldest, i, 2).i64;
        *removed += gone.code == RT_OK;
    }
    return true;
}

static bool trim(rt_shelf *shelf, uint64_t bytes, uint64_t *removed, rt_error *err)
{
    if (!store_shelf_measure(shelf, err))
        return false;
    uint64_t used = atomic_load(&shelf->used_bytes), room = shelf->max_bytes - bytes;
    uint64_t excess = used > room ? used - room : 0;
    while (excess > 0) {
        uint64_t freed;
        if (!remove_oldest(shelf, excess, &freed, removed, err))
            return false;
        if (freed == 0)
            return true; /* nothing is left to remove */
        excess -= RT_MIN(freed, excess);
    }
    return true;
}

bool store_shelf_make_room(rt_shelf *shelf, uint64_t bytes, uint64_t *removed, rt_error *err)
{
    pthread_mutex_lock(&shelf->trimming);
    bool done = trim(shelf, bytes, removed, err);
    pthread_mutex_unlock(&shelf->trimming);
    return done;
}

typedef struct orphans {
    rt_shelf *shelf;
    uint64_t now_ms;
    uint64_t *removed;
    int directory;
    char names[LOOKUPS][STORE_ARTIFACT_ID_MAX]; /* of old files; not looked up yet */
    size_t count;
} orphans;

static bool is_known(const rt_rows *known, const char *name)
{
    for (size_t i = 0; i < known->count; i++)
        if (rt_str_eq_c(rt_rows_at(known, i, 0).text, name))
            return true;
    return false;
}

static bool flush_orphans(orphans *todo, rt_error *err)
{
    static const char known_sql[] =
        "SELECT id FROM artifacts WHERE id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, "
        "$13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, "
        "$31, $32)";
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_sql_value names[LOOKUPS] = { 0 };
    rt_rows known;
    for (size_t i = 0; i < todo->count; i++)
        names[i] = rt_sql_text(rt_str_of(todo->names[i]));
    if (todo->count > 0 && !rt_sql_once(todo->shelf->store, RT_TX_READ, known_sql, names, LOOKUPS,
                                        &arena, &known, err))
        return false;
    for (size_t i = 0; i < todo->count; i++)
        if (!is_known(&known, todo->names[i]) && unlinkat(todo->directory, todo->names[i], 0) == 0)
            ++*todo->removed;
    todo->count = 0;
    return true;
}

static bool is_old_file(const orphans *todo, const char *name)
{
    struct stat st;
    if (fstatat(todo->directory, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
        return false;
    uint64_t changed_ms =
        (uint64_t)st.st_mtim.tv_sec * 1000 + (uint64_t)st.st_mtim.tv_nsec / 1000000;
    return changed_ms + ORPHAN_MS < todo->now_ms;
}

static void close_directory(DIR **directory)
{
    if (*directory)
        closedir(*directory);
}

static bool sweep_directory(rt_shelf *shelf, const char *name, uint64_t now_ms, uint64_t *removed,
                            rt_error *err)
{
    int fd = openat(shelf->directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? true : rt_fail_errno(err, "open %s", name);
    DIR *directory RT_CLEANUP(close_directory) = fdopendir(fd);
    if (!directory)
        rt_out_of_memory(0);
    orphans todo = { .shelf = shelf, .now_ms = now_ms, .removed = removed, .directory = fd };
    for (struct dirent *entry; (entry = readdir(directory));) {
        size_t len = strlen(entry->d_name);
        if (len >= STORE_ARTIFACT_ID_MAX || !is_old_file(&todo, entry->d_name))
            continue;
        memcpy(todo.names[todo.count++], entry->d_name, len + 1);
        if (todo.count == LOOKUPS && !flush_orphans(&todo, err))
            return false;
    }
    return flush_orphans(&todo, err);
}

static bool sweep_unknown(rt_shelf *shelf, uint64_t now_ms, uint64_t *removed, rt_error *err)
{
    for (unsigned i = 0; i < 256; i++) {
        uint8_t byte = (uint8_t)i;
        char name[3];
        rt_hex(name, &byte, 1);
        if (!sweep_directory(shelf, name, now_ms, removed, err))
            return false;
    }
    return true;
}

bool rt_shelf_sweep(rt_shelf *shelf, uint64_t now_ms, uint64_t *removed, rt_error *err)
{
    uint64_t count = 0;
    bool done = sweep_expired(shelf, now_ms, &count, err) &&
                store_shelf_make_room(shelf, 0, &count, err) &&
                sweep_unknown(shelf, now_ms, &count, err);
    if (removed)
        *removed = count;
    return done ? true : rt_wrap(err, "sweep the artifacts");
}
