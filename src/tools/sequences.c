/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sequences.c - which tool is called after which, in one run.
 *
 * A graph of tools: an edge for each pair that was called one after the other, with how often. The
 * last tool of the runs under way is remembered, of so many runs; edges live in memory, and what
 * was added is written to the store together, like the counts of uses.
 */
#include <pthread.h>
#include <stdlib.h>

#include "tools/search_internal.h"
#include "tools/tools_internal.h"

enum { EDGES_MAX = 10000, NAMES_MAX = 4096, RUNS_MAX = 256, NAME_BYTES_MAX = 256 };
static const uint64_t EVERY_MS = 2000;

typedef struct edge {
    uint32_t first, second; /* numbers of names */
    uint64_t times, fresh;  /* fresh: not in the store yet */
} edge;

/* A run under way, as far as we know. */
typedef struct run {
    uint64_t hash; /* of its id; 0: none */
    uint64_t tick; /* of its last call: the oldest makes room */
    uint32_t last; /* the tool it called then */
} run;

struct tools_sequences {
    rt_store *store; /* NULL: nothing is kept */
    pthread_mutex_t lock;
    rt_arena arena; /* of names */
    search_numbering names;
    edge edges[EDGES_MAX];
    size_t count;
    run runs[RUNS_MAX];
    uint64_t tick; /* of the latest call */
    rt_hash_key key;
    uint64_t written_ms;
};

tools_sequences *tools_sequences_new(rt_store *store)
{
    tools_sequences *s = calloc(1, sizeof(*s));
    if (!s)
        rt_out_of_memory(sizeof(*s));
    s->store = store;
    s->written_ms = rt_wall_ms();
    rt_random_bytes(&s->key, sizeof(s->key));
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

void tools_sequences_free(tools_sequences *s)
{
    if (!s)
        return;
    search_numbering_done(&s->names);
    rt_arena_done(&s->arena);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* Under the lock; UINT32_MAX: there are too many, or it is too long. */
static uint32_t number_of(tools_sequences *s, rt_str name)
{
    bool is_known = search_number_find(&s->names, name) != UINT32_MAX;
    if (!is_known && (s->names.count == NAMES_MAX || name.len > NAME_BYTES_MAX))
        return UINT32_MAX;
    return search_number_of(&s->names, name, &s->arena);
}

static edge *edge_of(tools_sequences *s, uint32_t first, uint32_t second)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->edges[i].first == first && s->edges[i].second == second)
            return &s->edges[i];
    if (s->count == EDGES_MAX)
        return NULL;
    s->edges[s->count] = (edge){ .first = first, .second = second };
    return &s->edges[s->count++];
}

bool tools_sequences_load(tools_sequences *s, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_rows rows = { 0 };
    if (s->store && !rt_sql_once(s->store, RT_TX_READ,
                                 "SELECT first, second, times FROM tool_sequences "
                                 "ORDER BY times DESC LIMIT 10000",
                                 NULL, 0, &arena, &rows, err))
        return rt_wrap(err, "read which tools are called together");
    for (size_t i = 0; i < rows.count; i++) {
        uint32_t first = number_of(s, rt_rows_at(&rows, i, 0).text);
        uint32_t second = number_of(s, rt_rows_at(&rows, i, 1).text);
        if (first == UINT32_MAX || second == UINT32_MAX)
            continue;
        s->edges[s->count++] = (edge){ .first = first,
                                       .second = second,
                                       .times = (uint64_t)rt_rows_at(&rows, i, 2).i64 };
    }
    return true;
}

/* The run's place; a new run gets that of the one that was quiet longest. */
static run *place_of(tools_sequences *s, uint64_t hash)
{
    run *oldest = &s->runs[0];
    for (size_t i = 0; i < RUNS_MAX; i++) {
        if (s->runs[i].hash == hash)
            return &s->runs[i];
        if (s->runs[i].tick < oldest->tick)
            oldest = &s->runs[i];
    }
    *oldest = (run){ .hash = hash, .last = UINT32_MAX };
    return oldest;
}

/* Under the lock. */
static void note(tools_sequences *s, uint64_t hash, rt_str tool)
{
    run *r = place_of(s, hash);
    uint32_t number = number_of(s, tool);
    edge *e = r->last != UINT32_MAX && number != UINT32_MAX && r->last != number
                  ? edge_of(s, r->last, number)
                  : NULL;
    if (e) {
        e->times++;
        e->fresh++;
    }
    r->last = number;
    r->tick = ++s->tick;
}

void tools_sequences_add(tools_sequences *s, rt_str id, rt_str tool)
{
    uint64_t now = rt_wall_ms();
    if (id.len == 0)
        return;
    pthread_mutex_lock(&s->lock);
    note(s, rt_hash(&s->key, id) | 1, tool);
    bool is_due = now - s->written_ms >= EVERY_MS;
    pthread_mutex_unlock(&s->lock);
    if (is_due)
        tools_sequences_flush(s, NULL);
}

/* -- Asking ------------------------------------------------------------------------------------ */

size_t tools_sequences_count(tools_sequences *s)
{
    pthread_mutex_lock(&s->lock);
    size_t count = s->count;
    pthread_mutex_unlock(&s->lock);
    return count;
}

/* How much of what came after (or before) `of` was `who`, 0 to 1. */
static double share(const tools_sequences *s, uint32_t of, uint32_t who, bool is_after)
{
    uint64_t all = 0, some = 0;
    for (size_t i = 0; i < s->count; i++) {
        const edge *e = &s->edges[i];
        if ((is_after ? e->first : e->second) != of)
            continue;
        all += e->times;
        some += (is_after ? e->second : e->first) == who ? e->times : 0;
    }
    return all ? (double)some / (double)all : 0;
}

double tools_sequences_score(tools_sequences *s, rt_str tool, const rt_str *context, size_t count)
{
    double best = 0;
    pthread_mutex_lock(&s->lock);
    uint32_t number = search_number_find(&s->names, tool);
    for (size_t i = 0; number != UINT32_MAX && i < count; i++) {
        uint32_t other = search_number_find(&s->names, context[i]);
        if (other == UINT32_MAX)
            continue;
        best = RT_MAX(best, share(s, other, number, true));
        best = RT_MAX(best, share(s, other, number, false));
    }
    pthread_mutex_unlock(&s->lock);
    return best;
}

static int by_times(const void *a, const void *b)
{
    uint64_t x = (*(const edge *const *)a)->times, y = (*(const edge *const *)b)->times;
    return x < y ? 1 : x > y ? -1 : 0;
}

size_t tools_sequences_related(tools_sequences *s, rt_str tool, rt_arena *arena,
                               rt_tool_related *out, size_t max)
{
    size_t count = 0, found = 0;
    pthread_mutex_lock(&s->lock);
    uint32_t number = search_number_find(&s->names, tool);
    const edge **edges = rt_arena_alloc(arena, (s->count + 1) * sizeof(*edges));
    for (size_t i = 0; number != UINT32_MAX && i < s->count; i++)
        if (s->edges[i].first == number || s->edges[i].second == number)
            edges[found++] = &s->edges[i];
    qsort(edges, found, sizeof(*edges), by_times);
    for (; count < found && count < max; count++) {
        const edge *e = edges[count];
        bool is_before = e->second == number;
        out[count] = (rt_tool_related){
            .name = rt_arena_str(arena, s->names.texts[is_before ? e->first : e->second]),
            .is_before = is_before,
            .score = RT_TOOLS_RELATED_SCORE * (double)e->times / (double)edges[0]->times
        };
    }
    pthread_mutex_unlock(&s->lock);
    return count;
}

/* -- Keeping ----------------------------------------------------------------------------------- */

static bool write_fresh(tools_sequences *s, rt_error *err)
{
    rt_tx *tx RT_CLEANUP(rt_tx_rollbackp) = NULL;
    for (size_t i = 0; i < s->count; i++) {
        const edge *e = &s->edges[i];
        rt_sql_value row[] = { rt_sql_text(s->names.texts[e->first]),
                               rt_sql_text(s->names.texts[e->second]),
                               rt_sql_i64((int64_t)e->fresh), rt_sql_i64((int64_t)rt_wall_ms()) };
        if (e->fresh == 0)
            continue;
        if ((!tx && !rt_tx_begin(s->store, RT_TX_WRITE, &tx, err)) ||
            !rt_sql(tx,
                    "INSERT INTO tool_sequences (first, second, times, last_ms) "
                    "VALUES ($1, $2, $3, $4) ON CONFLICT (first, second) DO UPDATE SET "
                    "times = tool_sequences.times + $3, last_ms = $4",
                    row, RT_COUNT(row), NULL, NULL, err))
            return false;
    }
    if (tx && !rt_tx_commit(&tx, err))
        return false;
    for (size_t i = 0; i < s->count; i++)
        s->edges[i].fresh = 0;
    return true;
}

bool tools_sequences_flush(tools_sequences *s, rt_error *err)
{
    if (!s->store)
        return true;
    pthread_mutex_lock(&s->lock);
    s->written_ms = rt_wall_ms();
    bool is_written = write_fresh(s, err);
    pthread_mutex_unlock(&s->lock);
    return is_written || rt_wrap(err, "keep which tools are called together");
}
