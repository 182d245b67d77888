/* SPDX-License-Identifier: Apache-2.0 */
/*
 * people.c - a person's rows, gone.
 *
 * Files go first, while their rows can still be found; then one transaction takes everything else,
 * writes the receipt and a line in the audit. What is done to which table is a row in `steps`. A
 * new table with something of a user in it gets a row there; the test that searches every column of
 * every table fails until it has one.
 */
#include "store/people.h"

#include "store/tables_internal.h"

#define SALT_BYTES     16
#define ARTIFACT_BATCH "500"

#define KEYS_OF_USER "(SELECT id FROM api_keys WHERE organisation_id = $1 AND user_id = $2)"

/* -- What happens to each table ---------------------------------------------------------------- */

/* Which values a statement takes as $1, $2, …, one letter each. */
enum { ORGANISATION = 'o', USER = 'u', USER_HASH = 'h', PATTERN = 'p', NOW = 'n' };

static const struct {
    const char *sql;
    const char values[5];
    size_t count; /* where in rt_erasure the rows are counted */
} steps[] = {
    { "DELETE FROM artifacts WHERE " STORE_ARTIFACTS_OF_USER,
      { ORGANISATION, USER },
      offsetof(rt_erasure, artifacts) },
    { "UPDATE provenance SET actor_id = NULL, actor_salt = NULL, error_message = NULL,"
      " error_salt = NULL, is_erased = TRUE, removed_ms = $3 WHERE organisation_id = $1"
      " AND (actor_id = $2 OR execution_id IN (SELECT id FROM executions WHERE " STORE_OF_USER "))",
      { ORGANISATION, USER, NOW },
      offsetof(rt_erasure, links) },
    { "UPDATE audit_events SET detail = '{}',"
      " subject = CASE WHEN subject = $2 THEN $3 ELSE subject END,"
      " address = CASE WHEN actor_id = $2 OR actor_id IN " KEYS_OF_USER
      " THEN NULL ELSE address END,"
      " actor_id = CASE WHEN actor_id = $2 OR actor_id IN " KEYS_OF_USER
      " THEN NULL ELSE actor_id END"
      " WHERE organisation_id IN ($1, '')"
      " AND (actor_id = $2 OR actor_id IN " KEYS_OF_USER " OR subject = $2"
      " OR detail LIKE $4 ESCAPE '!')",
      { ORGANISATION, USER, USER_HASH, PATTERN },
      offsetof(rt_erasure, audit_events) },
    { "DELETE FROM executions WHERE " STORE_OF_USER,
      { ORGANISATION, USER },
      offsetof(rt_erasure, executions) },
    { "DELETE FROM sessions WHERE " STORE_OF_USER,
      { ORGANISATION, USER },
      offsetof(rt_erasure, sessions) },
    { "DELETE FROM approvals WHERE organisation_id = $1 AND user_id = $2",
      { ORGANISATION, USER },
      0 },
    { "UPDATE approvals SET decided_by = $3 WHERE organisation_id = $1 AND decided_by = $2",
      { ORGANISATION, USER, USER_HASH },
      0 },
    { "DELETE FROM memories WHERE organisation_id = $1 AND (user_id = $2 OR actor_id = $2)",
      { ORGANISATION, USER },
      0 },
    { "UPDATE skills SET created_by = $3 WHERE organisation_id = $1 AND created_by = $2",
      { ORGANISATION, USER, USER_HASH },
      0 },
    /* What they made for others stays; that it was they does not. */
    { "UPDATE code_agent_versions SET user_id = NULL WHERE user_id = $2 AND code_agent_id IN"
      " (SELECT id FROM code_agents WHERE organisation_id = $1)",
      { ORGANISATION, USER },
      0 },
    { "UPDATE code_agents SET user_id = NULL WHERE organisation_id = $1 AND user_id = $2",
      { ORGANISATION, USER },
      0 },
    { "DELETE FROM snippets WHERE organisation_id = $1 AND user_id = $2",
      { ORGANISATION, USER },
      offsetof(rt_erasure, snippets) },
    { "DELETE FROM file_index WHERE organisation_id = $1 AND user_id = $2",
      { ORGANISATION, USER },
      offsetof(rt_erasure, files) },
    { "DELETE FROM api_keys WHERE organisation_id = $1 AND user_id = $2",
      { ORGANISATION, USER },
      0 },
    { "DELETE FROM users WHERE organisation_id = $1 AND id = $2", { ORGANISATION, USER }, 0 },
    /* What they erased of others stays erased; that it was they is nobody's business now. */
    { "UPDATE erasures SET actor_id = $3 WHERE organisation_id = $1 AND actor_id = $2",
      { ORGANISATION, USER, USER_HASH },
      0 },
};

typedef struct erasing {
    rt_str organisation_id, user_id;
    rt_str pattern; /* finds the id in an audit line's detail */
    rt_erasure *receipt;
} erasing;

static rt_sql_value value_of(const erasing *what, char letter)
{
    switch (letter) {
    case ORGANISATION:
        return rt_sql_text(what->organisation_id);
    case USER:
        return rt_sql_text(what->user_id);
    case USER_HASH:
        return rt_sql_text(what->receipt->user_hash);
    case PATTERN:
        return rt_sql_text(what->pattern);
    default:
        return store_u64(what->receipt->time_ms);
    }
}

static bool run_steps(rt_tx *tx, const erasing *what, rt_arena *arena, rt_error *err)
{
    for (size_t i = 0; i < RT_COUNT(steps); i++) {
        rt_sql_value values[sizeof(steps[i].values)];
        size_t count = strlen(steps[i].values);
        for (size_t k = 0; k < count; k++)
            values[k] = value_of(what, steps[i].values[k]);
        rt_rows rows;
        if (!rt_sql(tx, steps[i].sql, values, count, arena, &rows, err))
            return false;
        if (steps[i].count)
            *(uint64_t *)((char *)what->receipt + steps[i].count) += rows.changed;
    }
    return true;
}

/* -- Names that are no names ------------------------------------------------------------------- */

/* "%"alice"%" for LIKE with ESCAPE '!', as the id stands in JSON. */
static bool pattern_of(rt_str user_id, rt_arena *arena, rt_str *out, rt_error *err)
{
    rt_buf quoted RT_CLEANUP(rt_buf_done) = { 0 }, pattern RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &quoted);
    rt_jw_str(&w, user_id);
    rt_buf_addc(&pattern, '%');
    for (size_t i = 0; i < quoted.len; i++) {
        if (strchr("%_!", quoted.ptr[i]))
            rt_buf_addc(&pattern, '!');
        rt_buf_addc(&pattern, quoted.ptr[i]);
    }
    rt_buf_addc(&pattern, '%');
    if (!rt_buf_ok(&quoted, err) || !rt_buf_ok(&pattern, err))
        return false;
    *out = rt_arena_str(arena, rt_buf_str(&pattern));
    return true;
}

/* The salt is the organisation's, made when it is first needed, so that a person erased twice has
 * one tombstone. */
static bool hash_user(rt_tx *tx, const erasing *what, rt_arena *arena, rt_error *err)
{
    uint8_t salt[SALT_BYTES];
    rt_random_bytes(salt, sizeof(salt));
    rt_sql_value values[] = { rt_sql_text(what->organisation_id),
                              rt_sql_bytes((rt_str){ (const char *)salt, sizeof(salt) }) };
    rt_rows rows;
    if (!rt_sql(tx,
                "UPDATE organisations SET salt = COALESCE(salt, $2) WHERE id = $1 RETURNING salt",
                values, 2, arena, &rows, err))
        return false;
    if (rows.count == 0)
        return rt_fail(err, RT_NOT_FOUND, "no organisation %.*s", RT_FMT(what->organisation_id));
    char hash[RT_SHA256_HEX];
    store_commitment(rt_rows_at(&rows, 0, 0).text, what->user_id, hash);
    what->receipt->user_hash = rt_arena_str(arena, rt_str_of(hash));
    return true;
}

/* -- The receipt ------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    size_t offset;
} counts[] = {
    { "executions", offsetof(rt_erasure, executions) },
    { "artifacts", offsetof(rt_erasure, artifacts) },
    { "sessions", offsetof(rt_erasure, sessions) },
    { "audit_events", offsetof(rt_erasure, audit_events) },
    { "snippets", offsetof(rt_erasure, snippets) },
    { "files", offsetof(rt_erasure, files) },
    { "links", offsetof(rt_erasure, links) },
    { "time_ms", offsetof(rt_erasure, time_ms) },
};

static uint64_t count_at(const rt_erasure *receipt, size_t i)
{
    return *(const uint64_t *)((const char *)receipt + counts[i].offset);
}

static bool hash_receipt(const erasing *what, rt_arena *arena, rt_error *err)
{
    rt_erasure *receipt = what->receipt;
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 }, canonical RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json_begin(&w, &text);
    rt_jw_object(&w);
    rt_jw_kstr(&w, "receipt_id", receipt->receipt_id);
    rt_jw_kstr(&w, "organisation_id", what->organisation_id);
    rt_jw_kstr(&w, "user_hash", receipt->user_hash);
    for (size_t i = 0; i < RT_COUNT(counts); i++)
        rt_jw_ku64(&w, counts[i].name, count_at(receipt, i));
    rt_jw_end(&w);
    rt_json value;
    if (!rt_buf_ok(&text, err) || !rt_json_parse(rt_buf_str(&text), arena, &value, err))
        return false;
    rt_json_canonical(value, &canonical);
    char hash[RT_SHA256_HEX];
    rt_sha256_hex(rt_buf_str(&canonical), hash);
    receipt->receipt_hash = rt_arena_str(arena, rt_str_of(hash));
    return true;
}

static bool keep_receipt(rt_tx *tx, const erasing *what, rt_str actor, rt_error *err)
{
    const rt_erasure *receipt = what->receipt;
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    store_query_add(&query, "INSERT INTO erasures (receipt_id, organisation_id, user_hash,"
                            " actor_id, receipt_hash");
    for (size_t i = 0; i < RT_COUNT(counts); i++)
        rt_buf_addf(&query.sql, ", %s", counts[i].name);
    store_query_value(&query, ") VALUES (", rt_sql_text(receipt->receipt_id));
    store_query_value(&query, ", ", rt_sql_text(what->organisation_id));
    store_query_value(&query, ", ", rt_sql_text(receipt->user_hash));
    store_query_value(&query, ", ", store_text(actor));
    store_query_value(&query, ", ", rt_sql_text(receipt->receipt_hash));
    for (size_t i = 0; i < RT_COUNT(counts); i++)
        store_query_value(&query, ", ", store_u64(count_at(receipt, i)));
    store_query_add(&query, ")");
    return store_query_run(&query, tx, NULL, NULL, err);
}

static bool audit_receipt(rt_tx *tx, const erasing *what, rt_str actor, rt_arena *arena,
                          rt_error *err)
{
    const rt_erasure *receipt = what->receipt;
    rt_audit_event event = {
        .time_ms = receipt->time_ms,
        .organisation_id = what->organisation_id,
        .actor_id = actor,
        .action = RT_STR("data.erase"),
        .subject = receipt->user_hash,
        .outcome = RT_STR("ok"),
        .detail = rt_arena_printf(arena, "{\"receipt_id\":\"%.*s\",\"receipt_hash\":\"%.*s\"}",
                                  RT_FMT(receipt->receipt_id), RT_FMT(receipt->receipt_hash)),
    };
    return store_audit_add(tx, &event, err);
}

/* -- Erasing ----------------------------------------------------------------------------------- */

static bool remove_artifact(rt_shelf *shelf, const erasing *what, rt_str id, rt_error *err)
{
    rt_error why = { 0 };
    bool is_removed = rt_artifact_remove(shelf, what->organisation_id, id, &why);
    what->receipt->artifacts += is_removed;
    if (is_removed || why.code == RT_NOT_FOUND) /* a sweep was faster */
        return true;
    return rt_fail(err, why.code, "%s", why.text);
}

static bool remove_artifacts(rt_store *store, rt_shelf *shelf, const erasing *what, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_sql_value values[] = { rt_sql_text(what->organisation_id), rt_sql_text(what->user_id) };
    rt_rows rows;
    do {
        rt_arena_reset(&arena);
        if (!rt_sql_once(store, RT_TX_READ,
                         "SELECT id FROM artifacts WHERE " STORE_ARTIFACTS_OF_USER
                         " LIMIT " ARTIFACT_BATCH,
                         values, 2, &arena, &rows, err))
            return false;
        for (size_t i = 0; i < rows.count; i++)
            if (!remove_artifact(shelf, what, rt_rows_at(&rows, i, 0).text, err))
                return false;
    } while (rows.count);
    return true;
}

static bool erase_rows(rt_store *store, const erasing *what, rt_str actor_id, rt_arena *arena,
                       rt_error *err)
{
    rt_tx *tx RT_CLEANUP(rt_tx_rollbackp) = NULL;
    if (!rt_tx_begin(store, RT_TX_WRITE, &tx, err) || !hash_user(tx, what, arena, err) ||
        !run_steps(tx, what, arena, err) || !hash_receipt(what, arena, err))
        return false;
    bool is_self = rt_str_eq(actor_id, what->user_id);
    rt_str actor = is_self ? what->receipt->user_hash : actor_id;
    return keep_receipt(tx, what, actor, err) && audit_receipt(tx, what, actor, arena, err) &&
           rt_tx_commit(&tx, err);
}

bool rt_user_erase(rt_store *store, rt_shelf *shelf, rt_str organisation_id, rt_str user_id,
                   rt_str actor_id, uint64_t now_ms, rt_arena *arena, rt_erasure *out,
                   rt_error *err)
{
    if (organisation_id.len == 0 || user_id.len == 0)
        return rt_fail(err, RT_INVALID, "an erasure needs an organisation and a user");
    rt_erasure receipt = { .receipt_id = rt_id_new("erase", arena), .time_ms = now_ms };
    erasing what = { .organisation_id = organisation_id, .user_id = user_id, .receipt = &receipt };
    if (!pattern_of(user_id, arena, &what.pattern, err) ||
        (shelf && !remove_artifacts(store, shelf, &what, err)) ||
        !erase_rows(store, &what, actor_id, arena, err))
        return rt_wrap(err, "erase a user");
    rt_store_purge(store, NULL); /* when a reader is in the way: with the next checkpoint */
    *out = receipt;
    return true;
}
