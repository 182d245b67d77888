/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_verify.c - walk the chains and tell what does not fit.
 *
 * A chain is read from its first link to where its head was when we began, in pages, each with the
 * executions it speaks of; runs that end meanwhile come after that head and are left for the next
 * time. What must be true of each link is a row in `checks`; what is true only of the whole
 * (nothing missing, nothing after the head, no run without a link) is asked around the walk.
 */
#include "store/tables_internal.h"

#include <pthread.h>
#include <stdio.h>

#define PAGE_ROWS "500"

/* One walk along one chain. */
typedef struct walk {
    rt_store *store;
    rt_str organisation_id;
    rt_audit_fault_fn each;
    void *ctx;
    rt_audit_report *report;
    int64_t head_sequence;
    rt_str head_hash;
    int64_t sequence;                           /* of the link before */
    char hash[RT_SHA256_HEX];                   /* that it says it has */
    char computed[RT_SHA256_HEX];               /* that it should have */
    char execution_id[STORE_CURSOR_ID_MAX + 1]; /* of the link before */
} walk;

/* A link with what the database knows of its run. */
typedef struct found_link {
    rt_provenance p;
    char computed[RT_SHA256_HEX]; /* the hash its fields have; "" when they cannot be hashed */
    rt_str run_id;                /* {NULL, 0}: no such row */
    rt_str run_organisation_id, run_code_hash, run_input_hash, run_output_hash;
    rt_str run_transcript_hash, run_status;
} found_link;

static void fault(walk *at, int64_t sequence, rt_str execution_id, const char *what)
{
    at->report->faults++;
    if (at->each)
        at->each(at->ctx, at->organisation_id, sequence, execution_id, what);
}

/* -- One link ---------------------------------------------------------------------------------- */

static bool is_committed(rt_str salt, rt_str value, rt_str commitment)
{
    char computed[RT_SHA256_HEX];
    store_commitment(salt, value, computed);
    return rt_str_eq_c(commitment, computed);
}

/* After a gap or a repeated number there is nothing to compare with, and the gap was told. */
static bool follows(const walk *at, const found_link *link)
{
    return link->p.sequence != at->sequence + 1 || rt_str_eq_c(link->p.previous_hash, at->hash) ||
           rt_str_eq_c(link->p.previous_hash, at->computed);
}

static bool is_unchanged(const walk *at, const found_link *link)
{
    (void)at;
    return link->computed[0] && rt_str_eq_c(link->p.hash, link->computed);
}

static bool has_its_actor(const walk *at, const found_link *link)
{
    (void)at;
    return link->p.is_erased ||
           is_committed(link->p.actor_salt, link->p.actor_id, link->p.actor_commitment);
}

static bool has_its_error(const walk *at, const found_link *link)
{
    (void)at;
    return link->p.is_erased ||
           is_committed(link->p.error_salt, link->p.error_message, link->p.error_commitment);
}

static bool is_wholly_erased(const walk *at, const found_link *link)
{
    (void)at;
    const rt_provenance *p = &link->p;
    return !p->is_erased ||
           (!p->actor_id.len && !p->actor_salt.len && !p->error_message.len && !p->error_salt.len);
}

static bool has_its_run(const walk *at, const found_link *link)
{
    (void)at;
    return link->run_id.len || link->p.removed_ms;
}

static bool agrees_with_its_run(const walk *at, const found_link *link)
{
    const rt_provenance *p = &link->p;
    return !link->run_id.len || (rt_str_eq(link->run_organisation_id, at->organisation_id) &&
                                 rt_str_eq(link->run_code_hash, p->code_hash) &&
                                 rt_str_eq(link->run_input_hash, p->inputs_hash) &&
                                 rt_str_eq(link->run_output_hash, p->outputs_hash) &&
                                 rt_str_eq(link->run_transcript_hash, p->transcript_hash) &&
                                 rt_str_eq_c(link->run_status, "SUCCESS") == p->success);
}

static const struct {
    bool (*holds)(const walk *, const found_link *);
    const char *otherwise;
} checks[] = {
    { follows, "it does not hold the hash of the record before it" },
    { is_unchanged, "its fields do not have its hash: it was changed" },
    { has_its_actor, "actor_id is not the one it was recorded with" },
    { has_its_error, "error_message is not the one it was recorded with" },
    { is_wholly_erased, "it is marked as erased, but personal fields are there" },
    { has_its_run, "its execution is missing" },
    { agrees_with_its_run, "its execution says something else" },
};

static void tell_missing(walk *at, int64_t from, int64_t to)
{
    char what[80];
    snprintf(what, sizeof(what), "missing: there is no record %lld to %lld", (long long)from,
             (long long)to);
    fault(at, from, (rt_str){ 0 }, what);
}

static void check_number(walk *at, const found_link *link)
{
    if (link->p.sequence > at->sequence + 1)
        tell_missing(at, at->sequence + 1, link->p.sequence - 1);
    else if (link->p.sequence <= at->sequence)
        fault(at, link->p.sequence, link->p.execution_id, "there are two records of this number");
}

/* Remember the link as the one before the next. */
static void step(walk *at, const found_link *link)
{
    at->sequence = link->p.sequence;
    snprintf(at->hash, sizeof(at->hash), "%.*s", RT_FMT(link->p.hash));
    memcpy(at->computed, link->computed, sizeof(at->computed));
    snprintf(at->execution_id, sizeof(at->execution_id), "%.*s", RT_FMT(link->p.execution_id));
}

static void check_link(walk *at, const found_link *link)
{
    at->report->records++;
    at->report->erased += link->p.is_erased;
    check_number(at, link);
    for (size_t i = 0; i < RT_COUNT(checks); i++)
        if (!checks[i].holds(at, link))
            fault(at, link->p.sequence, link->p.execution_id, checks[i].otherwise);
    step(at, link);
}

/* -- One chain --------------------------------------------------------------------------------- */

static const char *page_statement;

static void write_statement(void)
{
    rt_buf sql = { 0 };
    rt_buf_add(&sql, RT_STR("SELECT "));
    store_table_names(&store_provenance, "p.", &sql);
    rt_buf_add(&sql, RT_STR(", e.id, e.organisation_id, e.code_hash, e.input_hash, e.output_hash,"
                            " e.transcript_hash, e.status"
                            " FROM provenance p LEFT JOIN executions e ON e.id = p.execution_id"
                            " WHERE p.organisation_id = $1 AND p.sequence <= $4"
                            " AND (p.sequence, p.execution_id) > ($2, $3)"
                            " ORDER BY p.sequence, p.execution_id LIMIT " PAGE_ROWS));
    page_statement = store_statement(&sql);
}

static void read_link(const rt_rows *rows, size_t row, rt_arena *arena, found_link *out)
{
    *out = (found_link){ 0 };
    store_table_read(&store_provenance, rows, row, 0, &out->p);
    rt_str *const members[] = { &out->run_id,          &out->run_organisation_id,
                                &out->run_code_hash,   &out->run_input_hash,
                                &out->run_output_hash, &out->run_transcript_hash,
                                &out->run_status };
    for (size_t i = 0; i < RT_COUNT(members); i++)
        *members[i] = rt_rows_at(rows, row, store_provenance.count + i).text;
    if (!store_link_hash(&out->p, arena, out->computed, NULL))
        out->computed[0] = '\0';
}

static bool walk_links(walk *at, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_rows rows;
    do {
        rt_arena_reset(&arena);
        rt_sql_value values[] = { rt_sql_text(at->organisation_id), rt_sql_i64(at->sequence),
                                  rt_sql_text(rt_str_of(at->execution_id)),
                                  rt_sql_i64(at->head_sequence) };
        if (!rt_sql_once(at->store, RT_TX_READ, page_statement, values, 4, &arena, &rows, err))
            return false;
        for (size_t i = 0; i < rows.count; i++) {
            found_link link;
            read_link(&rows, i, &arena, &link);
            check_link(at, &link);
        }
    } while (rows.count);
    return true;
}

/* The head, and in the same statement the last link: so neither can be newer than the other. */
static bool read_head(walk *at, rt_arena *arena, int64_t *last, rt_error *err)
{
    rt_rows rows;
    rt_sql_value values[] = { rt_sql_text(at->organisation_id) };
    if (!rt_sql_once(at->store, RT_TX_READ,
                     "SELECT o.id, c.sequence, c.hash,"
                     " (SELECT MAX(p.sequence) FROM provenance p WHERE p.organisation_id = o.id)"
                     " FROM (SELECT CAST($1 AS TEXT) AS id) o"
                     " LEFT JOIN chains c ON c.organisation_id = o.id",
                     values, 1, arena, &rows, err))
        return rt_wrap(err, "read the head of the chain");
    at->head_sequence = rt_rows_at(&rows, 0, 1).i64;
    at->head_hash = rt_rows_at(&rows, 0, 2).text;
    *last = rt_rows_at(&rows, 0, 3).i64;
    return true;
}

static void check_end(walk *at, int64_t last)
{
    if (at->sequence < at->head_sequence)
        tell_missing(at, at->sequence + 1, at->head_sequence);
    else if (at->sequence && !rt_str_eq_c(at->head_hash, at->hash) &&
             !rt_str_eq_c(at->head_hash, at->computed))
        fault(at, at->sequence, (rt_str){ 0 }, "the head of the chain has another hash");
    if (last > at->head_sequence)
        fault(at, last, (rt_str){ 0 }, "there are records after the head of the chain");
}

/* Runs that ended and are not in the chain: a record cannot be taken out with its number. */
static bool check_runs(walk *at, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_rows rows;
    at->execution_id[0] = '\0';
    do {
        rt_arena_reset(&arena);
        rt_sql_value values[] = { rt_sql_text(at->organisation_id),
                                  rt_sql_text(rt_str_of(at->execution_id)) };
        if (!rt_sql_once(at->store, RT_TX_READ,
                         "SELECT e.id FROM executions e WHERE e.organisation_id = $1 AND e.id > $2"
                         " AND e.status NOT IN ('QUEUED', 'RUNNING') AND NOT EXISTS"
                         " (SELECT 1 FROM provenance p WHERE p.execution_id = e.id)"
                         " ORDER BY e.id LIMIT " PAGE_ROWS,
                         values, 2, &arena, &rows, err))
            return rt_wrap(err, "look for runs without a record");
        for (size_t i = 0; i < rows.count; i++) {
            rt_str id = rt_rows_at(&rows, i, 0).text;
            fault(at, 0, id, "this run has no record in the chain");
            snprintf(at->execution_id, sizeof(at->execution_id), "%.*s", RT_FMT(id));
        }
    } while (rows.count);
    return true;
}

static bool verify_chain(walk *at, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    int64_t last = 0;
    if (!read_head(at, &arena, &last, err) || !walk_links(at, err))
        return false;
    at->report->organisations += at->head_sequence || last;
    check_end(at, last);
    return check_runs(at, err);
}

/* -- All of them ------------------------------------------------------------------------------- */

static bool next_organisation(rt_store *store, rt_str after, rt_arena *arena, rt_str *out,
                              rt_error *err)
{
    rt_rows rows;
    rt_sql_value values[] = { rt_sql_text(after) };
    if (!rt_sql_once(store, RT_TX_READ,
                     "SELECT id FROM organisations WHERE id > $1 ORDER BY id LIMIT 1", values, 1,
                     arena, &rows, err))
        return rt_wrap(err, "find the organisations");
    *out = rt_rows_at(&rows, 0, 0).text;
    return true;
}

bool rt_audit_verify(rt_store *store, rt_str organisation_id, rt_audit_fault_fn each, void *ctx,
                     rt_audit_report *report, rt_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, write_statement);
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 }; /* of organisations' names only */
    rt_str next = organisation_id;
    *report = (rt_audit_report){ 0 };
    if (!organisation_id.len && !next_organisation(store, RT_STR(""), &arena, &next, err))
        return false;
    while (next.len) {
        walk at = { .store = store,
                    .organisation_id = next,
                    .each = each,
                    .ctx = ctx,
                    .report = report,
                    .hash = STORE_FIRST_PREVIOUS_HASH };
        if (!verify_chain(&at, err))
            return rt_wrap(err, "verify the chain of %.*s", RT_FMT(next));
        if (organisation_id.len)
            break;
        if (!next_organisation(store, next, &arena, &next, err))
            return false;
    }
    return true;
}
