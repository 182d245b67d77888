/* SPDX-License-Identifier: Apache-2.0 */
/*
 * artifacts.c - the shelf: files on this node's disk, rows in the store.
 *
 * An artifact's file is directory/<the id's last two digits>/<id>. It is a sequence of pieces, each
 * of 64 KiB sealed for "this artifact, this size, this piece", so any part can be read without the
 * rest, and pieces cannot be swapped, dropped or carried over from another artifact.
 *
 * The order makes a crash harmless: a file is written under a temporary name, renamed, and then
 * gets its row; a row goes before its file. What a crash leaves is a file without a row, and the
 * sweep removes those that are older than ORPHAN_MS (a younger one may be waiting for its row).
 */
#include "store/store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_SIZE  65536
#define SEALED_SIZE (PIECE_SIZE + STORE_SEAL_SIZE)
#define MAX_BYTES   ((uint64_t)10 << 30)
#define TTL_MS      ((uint64_t)24 * 3600 * 1000)
#define PURPOSE_MAX (STORE_ARTIFACT_ID_MAX + 64)

/* -- names ---------------------------------------------------------------------------------------
 */

typedef struct file_path {
    char directory[3];
    char path[3 + STORE_ARTIFACT_ID_MAX]; /* "9f/art_1794713017123_…9f" */
} file_path;

static bool is_digit_of(char c, bool is_hex)
{
    return (c >= '0' && c <= '9') || (is_hex && c >= 'a' && c <= 'f');
}

/* Ids come from requests too; one that is not of our making names no file. */
static bool path_of(rt_str id, file_path *out)
{
    rt_str rest = id, prefix, time, random;
    if (id.len >= STORE_ARTIFACT_ID_MAX || !rt_str_cut(&rest, '_', &prefix) ||
        !rt_str_cut(&rest, '_', &time) || !rt_str_cut(&rest, '_', &random) || rest.ptr ||
        !rt_str_eq_c(prefix, "art") || time.len == 0 || random.len < 2)
        return false;
    for (size_t i = 0; i < time.len; i++)
        if (!is_digit_of(time.ptr[i], false))
            return false;
    for (size_t i = 0; i < random.len; i++)
        if (!is_digit_of(random.ptr[i], true))
            return false;
    memcpy(out->directory, id.ptr + id.len - 2, 2);
    out->directory[2] = '\0';
    memcpy(out->path, out->directory, 2);
    out->path[2] = '/';
    memcpy(out->path + 3, id.ptr, id.len);
    out->path[3 + id.len] = '\0';
    return true;
}

static rt_str piece_purpose(const rt_artifact_row *row, uint64_t piece, char out[PURPOSE_MAX])
{
    int len = snprintf(out, PURPOSE_MAX, "artifact %.*s %llu %llu", RT_FMT(row->id),
                       (unsigned long long)row->size, (unsigned long long)piece);
    return (rt_str){ out, (size_t)len };
}

/* -- the shelf ------------------------------------------------------------------------------------
 */

bool store_shelf_measure(rt_shelf *shelf, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_sql_value host = rt_sql_text(rt_str_of(shelf->host));
    rt_rows rows;
    if (!rt_sql_once(shelf->store, RT_TX_READ,
                     "SELECT COALESCE(SUM(size), 0) FROM artifacts WHERE host = $1", &host, 1,
                     &arena, &rows, err))
        return false;
    atomic_store(&shelf->used_bytes, (uint64_t)rt_rows_at(&rows, 0, 0).i64);
    return true;
}

bool rt_shelf_open(const rt_shelf_config *config, rt_shelf **out, rt_error *err)
{
    if (!store_make_directory(config->directory, err))
        return rt_wrap(err, "the artifacts");
    rt_shelf *shelf RT_CLEANUP(rt_shelf_closep) = calloc(1, sizeof(*shelf));
    if (!shelf)
        rt_out_of_memory(sizeof(*shelf));
    pthread_mutex_init(&shelf->trimming, NULL);
    shelf->store = config->store;
    shelf->vault = config->vault;
    shelf->max_bytes = config->max_bytes ? config->max_bytes : MAX_BYTES;
    shelf->ttl_ms = config->ttl_ms ? config->ttl_ms : TTL_MS;
    shelf->host = strndup(config->host.len ? config->host.ptr : "local",
                          config->host.len ? config->host.len : 5);
    if (!shelf->host)
        rt_out_of_memory(config->host.len);
    shelf->directory = open(config->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (shelf->directory < 0)
        return rt_fail_errno(err, "open %s", config->directory);
    if (!store_shelf_measure(shelf, err))
        return rt_wrap(err, "the artifacts");
    *out = RT_TAKE(shelf);
    return true;
}

void rt_shelf_close(rt_shelf *shelf)
{
    if (!shelf)
        return;
    rt_closep(&shelf->directory);
    pthread_mutex_destroy(&shelf->trimming);
    free(shelf->host);
    free(shelf);
}

void rt_shelf_closep(rt_shelf **shelf)
{
    rt_shelf_close(*shelf);
    *shelf = NULL;
}

/* -- rows ---------------------------------------------------------------------------------------
 */

#define COLUMNS                                                                                    \
    "id, organisation_id, user_id, execution_id, session_id, kind, name, type, size, sha256, "     \
    "host, created_ms, expires_ms"

static rt_artifact_row row_at(const rt_rows *rows, size_t row)
{
    const rt_sql_value *cell = rows->cells + row * rows->columns;
    return (rt_artifact_row){ .id = cell[0].text,
                              .organisation_id = cell[1].text,
                              .user_id = cell[2].text,
                              .execution_id = cell[3].text,
                              .session_id = cell[4].text,
                              .kind = cell[5].text,
                              .name = cell[6].text,
                              .type = cell[7].text,
                              .size = (uint64_t)cell[8].i64,
                              .sha256 = cell[9].text,
                              .host = cell[10].text,
                              .created_ms = (uint64_t)cell[11].i64,
                              .expires_ms = (uint64_t)cell[12].i64 };
}

static bool insert_row(rt_shelf *shelf, const rt_artifact_row *row, rt_error *err)
{
    rt_sql_value values[] = { rt_sql_text(row->id),
                              rt_sql_text(row->organisation_id),
                              rt_sql_text(row->user_id),
                              rt_sql_text(row->execution_id),
                              rt_sql_text(row->session_id),
                              rt_sql_text(row->kind),
                              rt_sql_text(row->name),
                              rt_sql_text(row->type),
                              rt_sql_i64((int64_t)row->size),
                              rt_sql_text(row->sha256),
                              rt_sql_text(row->host),
                              rt_sql_i64((int64_t)row->created_ms),
                              rt_sql_i64((int64_t)row->expires_ms) };
    return rt_sql_once(shelf->store, RT_TX_WRITE,
                       "INSERT INTO artifacts (" COLUMNS ") VALUES ($1, $2, $3, $4, $5, $6, $7, "
                       "$8, $9, $10, $11, $12, $13)",
                       values, RT_COUNT(values), NULL, NULL, err);
}

bool rt_artifact_find(rt_shelf *shelf, rt_str organisation_id, rt_str id, rt_arena *arena,
                      rt_artifact_row *out, rt_error *err)
{
    rt_sql_value key[] = { rt_sql_text(organisation_id), rt_sql_text(id),
                           rt_sql_i64((int64_t)rt_wall_ms()) };
    rt_rows rows;
    if (!rt_sql_once(shelf->store, RT_TX_READ,
                     "SELECT " COLUMNS " FROM artifacts WHERE ($1 = '' OR organisation_id = $1) AND id = $2 "
                     "AND expires_ms > $3",
                     key, RT_COUNT(key), arena, &rows, err))
        return rt_wrap(err, "find an artifact");
    if (rows.count == 0)
        return rt_fail(err, RT_NOT_FOUND, "there is no such artifact, or it has expired");
    *out = row_at(&rows, 0);
    return true;
}

bool rt_artifact_list(rt_shelf *shelf, rt_str organisation_id, rt_str execution_id, rt_arena *arena,
                      rt_artifact_row **rows, size_t *count, rt_error *err)
{
    rt_sql_value key[] = { rt_sql_text(organisation_id), rt_sql_text(execution_id),
                           rt_sql_i64((int64_t)rt_wall_ms()) };
    rt_rows found;
    if (!rt_sql_once(shelf->store, RT_TX_READ,
                     "SELECT " COLUMNS " FROM artifacts WHERE organisation_id = $1 AND "
                     "execution_id = $2 AND expires_ms > $3 ORDER BY created_ms, id",
                     key, RT_COUNT(key), arena, &found, err))
        return rt_wrap(err, "list artifacts");
    *rows = rt_arena_alloc(arena, found.count * sizeof(**rows));
    *count = found.count;
    for (size_t i = 0; i < found.count; i++)
        (*rows)[i] = row_at(&found, i);
    return true;
}

/* -- writing --------------------------------------------------------------------------------------
 */

static bool write_pieces(rt_shelf *shelf, const rt_artifact_row *row, rt_str data, int fd,
                         rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    char *sealed = rt_arena_alloc_raw(&arena, SEALED_SIZE);
    char purpose[PURPOSE_MAX];
    for (uint64_t piece = 0; piece * PIECE_SIZE < data.len; piece++) {
        rt_str plain = rt_str_slice(data, piece * PIECE_SIZE, (piece + 1) * PIECE_SIZE);
        store_seal(shelf->vault, piece_purpose(row, piece, purpose), plain, sealed);
        if (!rt_write_all(fd, (rt_str){ sealed, plain.len + STORE_SEAL_SIZE }, err))
            return false;
    }
    return true;
}

/* Under a name no id has, until it is complete. */
static bool write_file(rt_shelf *shelf, const rt_artifact_row *row, rt_str data,
                       const file_path *file, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    const char *partial = rt_arena_printf(&arena, "%s.part", file->path).ptr;
    if (mkdirat(shelf->directory, file->directory, 0700) != 0 && errno != EEXIST)
        return rt_fail_errno(err, "make the directory %s", file->directory);
    int fd RT_CLEANUP(rt_closep) = openat(
        shelf->directory, partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return rt_fail_errno(err, "make a file");
    bool done = write_pieces(shelf, row, data, fd, err);
    if (done && renameat(shelf->directory, partial, shelf->directory, file->path) != 0)
        done = rt_fail_errno(err, "name a file");
    if (!done)
        unlinkat(shelf->directory, partial, 0);
    return done;
}

static void fill_in(rt_shelf *shelf, rt_artifact_row *row, rt_str data, rt_arena *arena)
{
    char hash[RT_SHA256_HEX];
    rt_sha256_hex(data, hash);
    row->id = rt_id_new("art", arena);
    row->size = data.len;
    row->sha256 = rt_arena_str(arena, rt_str_of(hash));
    row->host = rt_arena_str(arena, rt_str_of(shelf->host));
    row->created_ms = rt_wall_ms();
    row->expires_ms = row->created_ms + shelf->ttl_ms;
    if (row->kind.len == 0)
        row->kind = RT_STR("file");
    if (!row->name.ptr)
        row->name = row->kind;
    if (row->type.len == 0)
        row->type = rt_str_of(rt_content_type(row->name, rt_str_slice(data, 0, PIECE_SIZE)));
}

bool rt_artifact_put(rt_shelf *shelf, rt_artifact_row *row, rt_str data, rt_arena *arena,
                     rt_error *err)
{
    if (data.len > shelf->max_bytes)
        return rt_fail(err, RT_LIMIT, "an artifact of %zu bytes; all together have %llu", data.len,
                       (unsigned long long)shelf->max_bytes);
    rt_artifact_row own = *row;
    fill_in(shelf, &own, data, arena);
    file_path file;
    if (!path_of(own.id, &file))
        return rt_fail(err, RT_INTERNAL, "an artifact's id");
    uint64_t removed = 0;
    if (atomic_load(&shelf->used_bytes) + data.len > shelf->max_bytes &&
        !store_shelf_make_room(shelf, data.len, &removed, err))
        return rt_wrap(err, "make room for an artifact");
    if (!write_file(shelf, &own, data, &file, err))
        return rt_wrap(err, "keep an artifact");
    if (!insert_row(shelf, &own, err)) {
        unlinkat(shelf->directory, file.path, 0);
        return rt_wrap(err, "keep an artifact");
    }
    atomic_fetch_add(&shelf->used_bytes, data.len);
    *row = own;
    return true;
}

/* -- reading --------------------------------------------------------------------------------------
 */

static bool read_at(int fd, char *into, size_t len, uint64_t at, rt_error *err)
{
    for (size_t got = 0; got < len;) {
        ssize_t n = pread(fd, into + got, len - got, (off_t)(at + got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return rt_fail_errno(err, "read");
        if (n == 0)
            return rt_fail(err, RT_DENIED, "its file is too short: it was changed");
        got += (size_t)n;
    }
    return true;
}

static bool read_piece(const rt_shelf *shelf, const rt_artifact_row *row, int fd, uint64_t piece,
                       char *sealed, char *plain, rt_error *err)
{
    char purpose[PURPOSE_MAX];
    size_t len = (size_t)RT_MIN((uint64_t)PIECE_SIZE, row->size - piece * PIECE_SIZE);
    rt_str whole = { sealed, len + STORE_SEAL_SIZE };
    return read_at(fd, sealed, whole.len, piece * SEALED_SIZE, err) &&
           store_unseal(shelf->vault, piece_purpose(row, piece, purpose), whole, plain, err);
}

static bool read_range(const rt_shelf *shelf, const rt_artifact_row *row, int fd, uint64_t from,
                       uint64_t to, char *out, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    char *sealed = rt_arena_alloc_raw(&arena, SEALED_SIZE);
    char *plain = rt_arena_alloc_raw(&arena, PIECE_SIZE);
    for (uint64_t at = from; at < to;) {
        uint64_t piece = at / PIECE_SIZE, begin = piece * PIECE_SIZE;
        uint64_t end = RT_MIN(to, begin + PIECE_SIZE);
        if (!read_piece(shelf, row, fd, piece, sealed, plain, err))
            return false;
        memcpy(out + (at - from), plain + (at - begin), end - at);
        at = end;
    }
    return true;
}

bool rt_artifact_read(rt_shelf *shelf, const rt_artifact_row *row, uint64_t from, size_t len,
                      rt_arena *arena, rt_str *out, rt_error *err)
{
    file_path file;
    if (!path_of(row->id, &file))
        return rt_fail(err, RT_NOT_FOUND, "there is no such artifact");
    if (!rt_str_eq_c(row->host, shelf->host))
        return rt_fail(err, RT_UNAVAILABLE, "artifact %.*s is on node %.*s", RT_FMT(row->id),
                       RT_FMT(row->host));
    int fd RT_CLEANUP(rt_closep) =
        openat(shelf->directory, file.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return rt_fail_errno(err, "artifact %.*s", RT_FMT(row->id));
    from = RT_MIN(from, row->size);
    uint64_t to = from + RT_MIN((uint64_t)len, row->size - from);
    char *text = rt_arena_alloc_raw(arena, (size_t)(to - from) + 1);
    if (!read_range(shelf, row, fd, from, to, text, err))
        return rt_wrap(err, "artifact %.*s", RT_FMT(row->id));
    text[to - from] = '\0';
    *out = (rt_str){ text, (size_t)(to - from) };
    return true;
}

/* -- removing -------------------------------------------------------------------------------------
 */

void rt_artifact_drop(rt_shelf *shelf, rt_str id)
{
    file_path file;
    if (path_of(id, &file))
        unlinkat(shelf->directory, file.path, 0);
}

static void subtract_used(rt_shelf *shelf, uint64_t bytes)
{
    uint64_t used = atomic_load(&shelf->used_bytes);
    while (
        !atomic_compare_exchange_weak(&shelf->used_bytes, &used, used > bytes ? used - bytes : 0))
        ;
}

void store_shelf_drop_all(rt_shelf *shelf, const rt_rows *gone)
{
    for (size_t i = 0; i < gone->count; i++) {
        if (!rt_str_eq_c(rt_rows_at(gone, i, 2).text, shelf->host))
            continue;
        rt_artifact_drop(shelf, rt_rows_at(gone, i, 0).text);
        subtract_used(shelf, (uint64_t)rt_rows_at(gone, i, 1).i64);
    }
}

bool rt_artifact_remove(rt_shelf *shelf, rt_str organisation_id, rt_str id, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_sql_value key[] = { rt_sql_text(organisation_id), rt_sql_text(id) };
    rt_rows gone;
    if (!rt_sql_once(shelf->store, RT_TX_WRITE,
                     "DELETE FROM artifacts WHERE ($1 = '' OR organisation_id = $1) AND id = $2 "
                     "RETURNING id, size, host",
                     key, RT_COUNT(key), &arena, &gone, err))
        return rt_wrap(err, "remove an artifact");
    store_shelf_drop_all(shelf, &gone);
    return gone.count > 0 ? true : rt_fail(err, RT_NOT_FOUND, "there is no such artifact");
}
