/* SPDX-License-Identifier: Apache-2.0 */
/*
 * learn.c - output schemas of tools whose servers declare none, learned from their results.
 *
 * The first results of a tool are all looked at, later ones now and then: a schema settles soon,
 * and looking costs a parse. What is learned is kept in memory for those who ask, and written to
 * the store with the counts of uses; another node's part is merged in when it is written.
 */
#include <pthread.h>
#include <stdlib.h>

#include "tools/search_internal.h"
#include "tools/shapes_internal.h"
#include "tools/tools_internal.h"

enum {
    TOOLS_MAX = 2000,
    SAMPLES_FIRST = 20,
    SAMPLES_LARGE = 3,  /* of results that take long to read */
    SAMPLE_EVERY = 256, /* after the first ones */
    LARGE_BYTES = 256 << 10,
    VALUE_BYTES_MAX = 8 << 20,
    VERSION_MAX = 64,
};
static const uint64_t EVERY_MS = 2000;

typedef struct lesson {
    rt_arena arena; /* of `schema` alone */
    rt_str schema;  /* empty: nothing yet */
    char version[VERSION_MAX];
    uint64_t seen, samples;
    bool is_dirty;
} lesson;

struct tools_lessons {
    rt_store *store; /* NULL: nothing is kept */
    pthread_mutex_t lock;
    rt_arena names_arena;
    search_numbering names;
    lesson lessons[TOOLS_MAX]; /* by number of the name */
    uint64_t written_ms;
};

tools_lessons *tools_lessons_new(rt_store *store)
{
    tools_lessons *all = calloc(1, sizeof(*all));
    if (!all)
        rt_out_of_memory(sizeof(*all));
    all->store = store;
    all->written_ms = rt_wall_ms();
    pthread_mutex_init(&all->lock, NULL);
    return all;
}

void tools_lessons_free(tools_lessons *all)
{
    if (!all)
        return;
    for (size_t i = 0; i < all->names.count; i++)
        rt_arena_done(&all->lessons[i].arena);
    search_numbering_done(&all->names);
    rt_arena_done(&all->names_arena);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

/* Under the lock. NULL: there are too many. */
static lesson *lesson_of(tools_lessons *all, rt_str name)
{
    bool is_known = search_number_find(&all->names, name) != UINT32_MAX;
    if (!is_known && all->names.count == TOOLS_MAX)
        return NULL;
    return &all->lessons[search_number_of(&all->names, name, &all->names_arena)];
}

static void set_schema(lesson *l, rt_str schema)
{
    rt_arena old = l->arena;
    l->arena = (rt_arena){ 0 };
    l->schema = rt_arena_str(&l->arena, schema);
    rt_arena_done(&old);
}

static void set_version(lesson *l, rt_str version)
{
    size_t len = RT_MIN(version.len, sizeof(l->version) - 1);
    if (len > 0)
        memcpy(l->version, version.ptr, len);
    l->version[len] = '\0';
}

/* Results of another version of the tool tell nothing about this one's. */
static void heed_version(lesson *l, rt_str version)
{
    if (rt_str_eq_c(rt_str_slice(version, 0, VERSION_MAX - 1), l->version))
        return;
    set_version(l, version);
    set_schema(l, (rt_str){ 0 });
    l->seen = l->samples = 0;
}

bool tools_lessons_load(tools_lessons *all, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_rows rows = { 0 };
    if (all->store && !rt_sql_once(all->store, RT_TX_READ,
                                   "SELECT name, version, samples, shape FROM tool_shapes "
                                   "ORDER BY updated_ms DESC LIMIT 2000",
                                   NULL, 0, &arena, &rows, err))
        return rt_wrap(err, "read what was learned of tools");
    for (size_t i = 0; i < rows.count; i++) {
        lesson *l = lesson_of(all, rt_rows_at(&rows, i, 0).text);
        set_version(l, rt_rows_at(&rows, i, 1).text);
        l->seen = l->samples = (uint64_t)rt_rows_at(&rows, i, 2).i64;
        set_schema(l, rt_rows_at(&rows, i, 3).text);
    }
    return true;
}

/* -- Looking at results ------------------------------------------------------------------------ */

static bool is_due(tools_lessons *all, rt_str name, rt_str version, size_t bytes)
{
    pthread_mutex_lock(&all->lock);
    lesson *l = lesson_of(all, name);
    bool due = false;
    if (l) {
        heed_version(l, version);
        due = l->seen++ < (bytes > LARGE_BYTES ? SAMPLES_LARGE : SAMPLES_FIRST) ||
              l->seen % SAMPLE_EVERY == 0;
    }
    pthread_mutex_unlock(&all->lock);
    return due;
}

/* Both schemas' shapes, or the one there is, and that of a value. */
static rt_str learn(rt_str known, tools_shape *seen, uint64_t samples, rt_arena *arena)
{
    rt_json schema;
    tools_shape *old = NULL;
    if (known.len > 0 && rt_json_parse(known, arena, &schema, NULL))
        old = tools_shape_of_schema(schema, arena);
    return tools_shape_write(tools_shape_merge(old, seen, arena), samples, arena);
}

void tools_lessons_observe(tools_lessons *all, rt_str name, rt_str version, rt_str value)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json doc;
    if (value.len > VALUE_BYTES_MAX || !is_due(all, name, version, value.len) ||
        !rt_json_parse(value, &arena, &doc, NULL))
        return;
    tools_shape *seen = tools_shape_of_value(doc, &arena);
    pthread_mutex_lock(&all->lock);
    lesson *l = lesson_of(all, name);
    set_schema(l, learn(l->schema, seen, ++l->samples, &arena));
    l->is_dirty = true;
    uint64_t now = rt_wall_ms();
    bool is_time = now - all->written_ms >= EVERY_MS;
    pthread_mutex_unlock(&all->lock);
    if (is_time)
        tools_lessons_flush(all, NULL);
}

bool tools_lessons_get(tools_lessons *all, rt_str name, rt_str version, rt_arena *arena,
                       rt_str *schema)
{
    pthread_mutex_lock(&all->lock);
    uint32_t number = search_number_find(&all->names, name);
    const lesson *l = number == UINT32_MAX ? NULL : &all->lessons[number];
    bool is_known = l && l->schema.len > 0 &&
                    rt_str_eq_c(rt_str_slice(version, 0, VERSION_MAX - 1), l->version);
    if (is_known)
        *schema = rt_arena_str(arena, l->schema);
    pthread_mutex_unlock(&all->lock);
    return is_known;
}

/* -- Keeping ----------------------------------------------------------------------------------- */

static bool write_one(rt_tx *tx, rt_str name, lesson *l, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json theirs;
    rt_rows rows;
    rt_sql_value row[] = { rt_sql_text(name), rt_sql_text(rt_str_of(l->version)),
                           rt_sql_i64((int64_t)l->samples), rt_sql_text(l->schema),
                           rt_sql_i64((int64_t)rt_wall_ms()) };
    if (!rt_sql(tx, "SELECT shape FROM tool_shapes WHERE name = $1 AND version = $2", row, 2,
                &arena, &rows, err))
        return false;
    if (rows.count > 0 && rt_json_parse(rt_rows_at(&rows, 0, 0).text, &arena, &theirs, NULL)) {
        set_schema(l, learn(l->schema, tools_shape_of_schema(theirs, &arena), l->samples, &arena));
        row[3] = rt_sql_text(l->schema);
    }
    return rt_sql(tx,
                  "INSERT INTO tool_shapes (name, version, samples, shape, updated_ms) "
                  "VALUES ($1, $2, $3, $4, $5) ON CONFLICT (name) DO UPDATE SET "
                  "version = $2, samples = $3, shape = $4, updated_ms = $5",
                  row, RT_COUNT(row), NULL, NULL, err);
}

static bool write_dirty(tools_lessons *all, rt_error *err)
{
    rt_tx *tx RT_CLEANUP(rt_tx_rollbackp) = NULL;
    for (size_t i = 0; i < all->names.count; i++)
        if (all->lessons[i].is_dirty &&
            ((!tx && !rt_tx_begin(all->store, RT_TX_WRITE, &tx, err)) ||
             !write_one(tx, all->names.texts[i], &all->lessons[i], err)))
            return false;
    if (tx && !rt_tx_commit(&tx, err))
        return false;
    for (size_t i = 0; i < all->names.count; i++)
        all->lessons[i].is_dirty = false;
    return true;
}

bool tools_lessons_flush(tools_lessons *all, rt_error *err)
{
    if (!all->store)
        return true;
    pthread_mutex_lock(&all->lock);
    all->written_ms = rt_wall_ms();
    bool is_written = write_dirty(all, err);
    pthread_mutex_unlock(&all->lock);
    return is_written || rt_wrap(err, "keep what was learned of tools");
}
