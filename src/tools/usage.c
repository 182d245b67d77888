/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage.c - how often each tool is used, how long it takes, when it last was.
 *
 * Calls are counted in memory and written together, every few seconds and at the end: a call must
 * not wait for a disk because it is counted. A kill -9 loses the last seconds of counting.
 */
#include <pthread.h>
#include <stdlib.h>

#include "tools/search_internal.h"
#include "tools/tools_internal.h"

enum { NAMES_MAX = 10000, NAME_BYTES_MAX = 512 };
static const uint64_t EVERY_MS = 2000;

typedef struct tally {
    uint64_t uses, failures, total_us, last_ms;
} tally;

struct tools_counts {
    rt_store *store; /* NULL: counts are dropped */
    pthread_mutex_t lock;
    rt_arena arena;
    search_numbering names;
    tally tallies[NAMES_MAX]; /* by number of the name */
    uint64_t written_ms;
};

tools_counts *tools_counts_new(rt_store *store)
{
    tools_counts *c = calloc(1, sizeof(*c));
    if (!c)
        rt_out_of_memory(sizeof(*c));
    c->store = store;
    c->written_ms = rt_wall_ms();
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

static void forget(tools_counts *c)
{
    memset(c->tallies, 0, c->names.count * sizeof(c->tallies[0]));
    search_numbering_done(&c->names);
    rt_arena_done(&c->arena);
}

void tools_counts_free(tools_counts *c)
{
    if (!c)
        return;
    forget(c);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

void tools_counts_add(tools_counts *c, rt_str name, uint64_t elapsed_us, bool is_failure)
{
    uint64_t now = rt_wall_ms();
    if (!c->store || name.len > NAME_BYTES_MAX)
        return;
    pthread_mutex_lock(&c->lock);
    if (c->names.count < NAMES_MAX) {
        tally *t = &c->tallies[search_number_of(&c->names, name, &c->arena)];
        t->uses++;
        t->failures += is_failure;
        t->total_us += elapsed_us;
        t->last_ms = now;
    }
    bool is_due = now - c->written_ms >= EVERY_MS;
    if (is_due)
        c->written_ms = now;
    pthread_mutex_unlock(&c->lock);
    if (is_due)
        tools_counts_flush(c, NULL);
}

static bool write_one(rt_tx *tx, rt_str name, const tally *t, rt_error *err)
{
    rt_sql_value row[] = { rt_sql_text(name), rt_sql_i64((int64_t)t->uses),
                           rt_sql_i64((int64_t)t->failures), rt_sql_i64((int64_t)t->total_us),
                           rt_sql_i64((int64_t)t->last_ms) };
    if (!rt_sql(tx,
                "INSERT INTO tool_usage (name, uses, failures, total_us, last_used_ms) "
                "VALUES ($1, $2, $3, $4, $5) ON CONFLICT (name) DO UPDATE SET "
                "uses = tool_usage.uses + $2, failures = tool_usage.failures + $3, "
                "total_us = tool_usage.total_us + $4, last_used_ms = $5",
                row, RT_COUNT(row), NULL, NULL, err))
        return false;
    if (!rt_str_starts(name, RT_STR(RT_TOOLBOX ":")))
        return true;
    rt_str id = rt_str_slice(name, sizeof(RT_TOOLBOX), name.len);
    rt_sql_value used[] = { rt_sql_text(id), row[1], rt_sql_double((double)t->total_us / 1000),
                            row[4] };
    return rt_sql(tx,
                  "UPDATE tools SET average_exec_ms = (COALESCE(average_exec_ms, 0) * usage_count "
                  "+ $3) / (usage_count + $2), usage_count = usage_count + $2, last_used_ms = $4 "
                  "WHERE id = $1",
                  used, RT_COUNT(used), NULL, NULL, err);
}

/* Counted while we write: it is in the next lot. */
bool tools_counts_flush(tools_counts *c, rt_error *err)
{
    rt_tx *tx RT_CLEANUP(rt_tx_rollbackp) = NULL;
    bool is_written = true;
    if (!c->store)
        return true;
    pthread_mutex_lock(&c->lock);
    if (c->names.count > 0) {
        is_written = rt_tx_begin(c->store, RT_TX_WRITE, &tx, err);
        for (size_t i = 0; i < c->names.count && is_written; i++)
            is_written = write_one(tx, c->names.texts[i], &c->tallies[i], err);
        is_written = is_written && rt_tx_commit(&tx, err);
        if (is_written)
            forget(c);
    }
    pthread_mutex_unlock(&c->lock);
    return is_written || rt_wrap(err, "keep the usage of tools");
}

bool tools_counts_get(tools_counts *c, rt_str name, rt_tool_usage *out, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_sql_value value = rt_sql_text(name);
    rt_rows rows = { 0 };
    if (!tools_counts_flush(c, err) ||
        (c->store && !rt_sql_once(c->store, RT_TX_READ,
                                  "SELECT uses, failures, total_us, last_used_ms FROM tool_usage "
                                  "WHERE name = $1",
                                  &value, 1, &arena, &rows, err)))
        return false;
    *out = (rt_tool_usage){ .uses = (uint64_t)rt_rows_at(&rows, 0, 0).i64,
                            .failures = (uint64_t)rt_rows_at(&rows, 0, 1).i64,
                            .last_used_ms = (uint64_t)rt_rows_at(&rows, 0, 3).i64 };
    if (out->uses > 0)
        out->average_ms = rt_rows_at(&rows, 0, 2).number / 1000 / (double)out->uses;
    return true;
}

void tools_counts_all(tools_counts *c, const rt_tool *tools, size_t count, double *uses)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    search_numbering known RT_CLEANUP(search_numbering_done) = { 0 };
    rt_rows rows = { 0 };
    if (!c->store ||
        !rt_sql_once(c->store, RT_TX_READ,
                     "SELECT name, uses FROM tool_usage ORDER BY uses DESC LIMIT 10000", NULL, 0,
                     &arena, &rows, &(rt_error){ 0 }))
        return; /* it is a hint */
    for (size_t i = 0; i < rows.count; i++)
        search_number_of(&known, rt_rows_at(&rows, i, 0).text, &arena);
    for (size_t i = 0; i < count; i++) {
        uint32_t row = search_number_find(&known, tools[i].name);
        uses[i] = row == UINT32_MAX ? 0 : rt_rows_at(&rows, row, 1).number;
    }
}
