/* SPDX-License-Identifier: Apache-2.0 */
/*
 * migrations.c - brings the schema up to date.
 *
 * A step is a file in migrations/, part of this program. Its text is what PostgreSQL reads, and may
 * be read again without harm; SQLite gets it with the few phrases of `dialect` replaced. What was
 * applied is written down with the hash of its text, so that a step changed afterwards, or one from
 * a newer program, is noticed instead of guessed about.
 *
 * Each step is a transaction that begins with a lock: several nodes may start at once, and each
 * finds done what another has done. To add a step: a new file, and a line in the table below.
 */
#include "store/store_internal.h"

/* The compiler runs in the root of the tree. */
#define EMBED(symbol, file)                                                                        \
    __asm__(".pushsection .rodata\n" #symbol ":\n.incbin \"src/store/migrations/" file             \
            "\"\n.byte 0\n.popsection\n");                                                         \
    extern const char symbol[] __attribute__((visibility("hidden")))

EMBED(store_step_0001, "0001_house.sql");
EMBED(store_step_0002, "0002_approvals.sql");
EMBED(store_step_0003, "0003_tools.sql");
EMBED(store_step_0004, "0004_learning.sql");
EMBED(store_step_0005, "0005_skills.sql");
EMBED(store_step_0006, "0006_agents.sql");

static const struct step {
    unsigned version;
    const char *name;
    const char *text;
} steps[] = {
    { 1, "house", store_step_0001 },
    { 2, "approvals", store_step_0002 },
    { 3, "tools", store_step_0003 },
    { 4, "learning", store_step_0004 },
    { 5, "skills", store_step_0005 },
    { 6, "agents", store_step_0006 },
};

static const struct {
    rt_str phrase, for_sqlite;
} dialect[] = {
    { { "BIGSERIAL PRIMARY KEY", 21 }, { "INTEGER PRIMARY KEY", 19 } },
    { { "ADD COLUMN IF NOT EXISTS", 24 }, { "ADD COLUMN", 10 } }, /* SQLite runs a step once */
    { { "CREATE OR REPLACE VIEW", 22 }, { "CREATE VIEW IF NOT EXISTS", 25 } },
};

static const char ledger[] = "CREATE TABLE IF NOT EXISTS schema_migrations (\n"
                             "    version    BIGINT PRIMARY KEY,\n"
                             "    name       TEXT NOT NULL,\n"
                             "    sha256     TEXT NOT NULL,\n"
                             "    applied_ms BIGINT NOT NULL\n"
                             ")";

static size_t phrase_at(rt_str text)
{
    for (size_t i = 0; i < RT_COUNT(dialect); i++)
        if (rt_str_starts(text, dialect[i].phrase))
            return i;
    return RT_COUNT(dialect);
}

static void translate(rt_str text, rt_buf *out)
{
    while (text.len > 0) {
        size_t i = phrase_at(text);
        bool is_phrase = i < RT_COUNT(dialect);
        rt_buf_add(out, is_phrase ? dialect[i].for_sqlite : rt_str_slice(text, 0, 1));
        text = rt_str_slice(text, is_phrase ? dialect[i].phrase.len : 1, text.len);
    }
    rt_buf_addc(out, '\0');
}

static bool run_step(rt_tx *tx, const struct step *step, rt_error *err)
{
    if (tx->store->backend != &store_sqlite)
        return store_script(tx, step->text, err);
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    translate(rt_str_of(step->text), &text);
    return rt_buf_ok(&text, err) && store_script(tx, text.ptr, err);
}

static bool apply(rt_tx *tx, const struct step *step, rt_error *err)
{
    char hash[RT_SHA256_HEX];
    rt_sha256_hex(rt_str_of(step->text), hash);
    rt_sql_value row[] = { rt_sql_i64(step->version), rt_sql_text(rt_str_of(step->name)),
                           rt_sql_text(rt_str_of(hash)), rt_sql_i64((int64_t)rt_wall_ms()) };
    return run_step(tx, step, err) &&
           rt_sql(tx, "INSERT INTO schema_migrations VALUES ($1, $2, $3, $4)", row, RT_COUNT(row),
                  NULL, NULL, err);
}

/* Compares what the database says was done with what we would have done. */
static bool check_done(const rt_rows *done, rt_error *err)
{
    for (size_t i = 0; i < done->count; i++) {
        int64_t version = rt_rows_at(done, i, 0).i64;
        rt_str name = rt_rows_at(done, i, 1).text, hash = rt_rows_at(done, i, 2).text;
        if (i >= RT_COUNT(steps))
            return rt_fail(err, RT_UNSUPPORTED,
                           "the database has step %lld (%.*s) of a newer Retort; this one knows "
                           "steps up to %u",
                           (long long)version, RT_FMT(name), steps[RT_COUNT(steps) - 1].version);
        char own[RT_SHA256_HEX];
        rt_sha256_hex(rt_str_of(steps[i].text), own);
        if (version != steps[i].version || !rt_str_eq_c(hash, own))
            return rt_fail(
                err, RT_CONFLICT,
                "step %lld (%.*s) in the database is not this program's step %u (%s): it "
                "was made by another build",
                (long long)version, RT_FMT(name), steps[i].version, steps[i].name);
    }
    return true;
}

/* One transaction: looks at what is done, does the next step if there is one. */
static bool advance(rt_store *store, size_t *done_before, bool *is_new, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_tx *tx RT_CLEANUP(rt_tx_rollbackp) = NULL;
    rt_rows rows;
    if (!rt_tx_begin(store, RT_TX_WRITE, &tx, err))
        return false;
    if (store->backend->migration_lock && !store_script(tx, store->backend->migration_lock, err))
        return rt_wrap(err, "wait for another program's migration");
    if (!store_script(tx, ledger, err) ||
        !rt_sql(tx, "SELECT version, name, sha256 FROM schema_migrations ORDER BY version", NULL, 0,
                &arena, &rows, err) ||
        !check_done(&rows, err))
        return false;
    *done_before = rows.count;
    *is_new = rows.count < RT_COUNT(steps);
    if (*is_new && !apply(tx, &steps[rows.count], err))
        return rt_wrap(err, "step %u (%s)", steps[rows.count].version, steps[rows.count].name);
    return rt_tx_commit(&tx, err);
}

bool rt_store_migrate(rt_store *store, rt_migration_fn each, void *ctx, rt_error *err)
{
    size_t told = 0, done = 0;
    for (bool is_new = true; is_new;) {
        if (!advance(store, &done, &is_new, err))
            return rt_wrap(err, "migrate the database");
        for (; told < done; told++)
            if (each)
                each(ctx, steps[told].version, steps[told].name, false);
        if (is_new && each)
            each(ctx, steps[told].version, steps[told].name, true);
        told += is_new;
    }
    return true;
}

void rt_store_migrations_print(rt_buf *out)
{
    rt_buf_addf(out, "-- The schema of Retort for PostgreSQL. It may be run again.\n\n%s;\n",
                ledger);
    for (size_t i = 0; i < RT_COUNT(steps); i++) {
        char hash[RT_SHA256_HEX];
        rt_sha256_hex(rt_str_of(steps[i].text), hash);
        rt_buf_addf(out, "\nBEGIN;\n");
        rt_buf_add(out, rt_str_of(steps[i].text));
        rt_buf_addf(
            out,
            "INSERT INTO schema_migrations VALUES (%u, '%s', '%s',\n"
            "    CAST(EXTRACT(EPOCH FROM now()) * 1000 AS BIGINT)) ON CONFLICT DO NOTHING;\n"
            "COMMIT;\n",
            steps[i].version, steps[i].name, hash);
    }
}
