/* SPDX-License-Identifier: Apache-2.0 */
/*
 * provenance.c - the chain: a link for each run, holding the hash of the link before it.
 *
 * The chain's row in `chains` is the lock: the first statement about it takes the next number, and
 * whoever comes second waits there until the first has committed. So numbers have no gaps and no
 * two links follow the same one, on any number of nodes.
 *
 * The recipe of the hash is in audit.h, and is a promise to those who verify without us.
 */
#include "store/tables_internal.h"

#include <pthread.h>

#define SALT_BYTES   16
#define HASHED_BYTES 2048 /* of nearly every link: one allocation instead of six */

#define COLUMN(member, kind, absent) STORE_COLUMN(rt_provenance, member, kind, absent, false)
#define TEXT(member)                 COLUMN(member, RT_SQL_TEXT, NULL)
#define TEXT_OR(member, absent)      COLUMN(member, RT_SQL_TEXT, absent)
#define I64(member)                  COLUMN(member, RT_SQL_I64, NULL)
#define BOOL(member)                 COLUMN(member, RT_SQL_BOOL, NULL)

static const store_column columns[] = {
    TEXT(organisation_id),
    I64(sequence),
    TEXT(execution_id),
    TEXT(skill_name),
    TEXT(skill_version),
    TEXT(actor_id),
    TEXT(actor_salt),
    TEXT_OR(actor_commitment, ""),
    TEXT(actor_type),
    TEXT(code_hash),
    TEXT(inputs_hash),
    TEXT(outputs_hash),
    TEXT(transcript_hash),
    TEXT_OR(tool_ids, "[]"),
    TEXT_OR(attestation, "{}"),
    TEXT(timestamp),
    COLUMN(execution_time_ms, RT_SQL_DOUBLE, NULL),
    BOOL(success),
    TEXT(error_message),
    TEXT(error_salt),
    TEXT_OR(error_commitment, ""),
    BOOL(is_erased),
    I64(removed_ms),
    TEXT(previous_hash),
    TEXT(hash),
};

const store_table store_provenance = { "provenance", columns, RT_COUNT(columns) };

static const char *insert_statement;

static void write_statement(void)
{
    rt_buf sql = { 0 };
    store_table_insert(&store_provenance, &sql);
    insert_statement = store_statement(&sql);
}

/* -- The hash ---------------------------------------------------------------------------------- */

void store_commitment(rt_str salt, rt_str value, char out[RT_SHA256_HEX])
{
    rt_sha256_stream stream RT_CLEANUP(rt_sha256_done) = { 0 };
    uint8_t digest[RT_SHA256_SIZE];
    rt_sha256_init(&stream);
    rt_sha256_add(&stream, salt);
    rt_sha256_add(&stream, value);
    rt_sha256_end(&stream, digest);
    rt_hex(out, digest, sizeof(digest));
}

/* What the hash covers, sorted by name as in the text that is hashed. JSON is marked as NULL. */
#define HASHED(member, kind) COLUMN(member, kind, NULL)
#define HASHED_JSON          RT_SQL_NULL

static const store_column hashed[] = {
    HASHED(actor_commitment, RT_SQL_TEXT),
    HASHED(actor_type, RT_SQL_TEXT),
    HASHED(attestation, HASHED_JSON),
    HASHED(code_hash, RT_SQL_TEXT),
    HASHED(error_commitment, RT_SQL_TEXT),
    HASHED(execution_id, RT_SQL_TEXT),
    HASHED(execution_time_ms, RT_SQL_DOUBLE),
    HASHED(inputs_hash, RT_SQL_TEXT),
    HASHED(organisation_id, RT_SQL_TEXT),
    HASHED(outputs_hash, RT_SQL_TEXT),
    HASHED(previous_hash, RT_SQL_TEXT),
    HASHED(sequence, RT_SQL_I64),
    HASHED(skill_name, RT_SQL_TEXT),
    HASHED(skill_version, RT_SQL_TEXT),
    HASHED(success, RT_SQL_BOOL),
    HASHED(timestamp, RT_SQL_TEXT),
    HASHED(tool_ids, HASHED_JSON),
    HASHED(transcript_hash, RT_SQL_TEXT),
};

static bool is_plain(rt_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < ' ' || text.ptr[i] > '~' || text.ptr[i] == '"' || text.ptr[i] == '\\')
            return false;
    return true;
}

/* Nearly all texts here are plain; the others take the long way through base. */
static bool put_text(rt_str text, rt_arena *arena, rt_buf *out, rt_error *err)
{
    if (is_plain(text)) {
        rt_buf_addc(out, '"');
        rt_buf_add(out, text);
        rt_buf_addc(out, '"');
        return true;
    }
    rt_buf quoted RT_CLEANUP(rt_buf_done) = { 0 };
    rt_json_writer w;
    rt_json value;
    rt_json_begin(&w, &quoted);
    rt_jw_str(&w, text);
    if (!rt_buf_ok(&quoted, err) || !rt_json_parse(rt_buf_str(&quoted), arena, &value, err))
        return false;
    rt_json_canonical(value, out);
    return true;
}

/*
 * JSON is parsed even where it is only to be copied: pasted in unread, a text such as
 * `[], "skill_name": "x"` could stand in for a field that somebody has changed.
 */
static bool put_json(rt_str text, rt_arena *arena, rt_buf *out, rt_error *err)
{
    rt_json value;
    if (!rt_json_parse(text, arena, &value, err))
        return false;
    rt_json_canonical(value, out);
    return true;
}

static bool put_member(const store_column *column, const void *member, rt_arena *arena, rt_buf *out,
                       rt_error *err)
{
    rt_json_writer w;
    rt_json_begin(&w, out);
    switch (column->kind) {
    case HASHED_JSON:
        return put_json(*(const rt_str *)member, arena, out, err);
    case RT_SQL_I64:
        rt_jw_i64(&w, *(const int64_t *)member);
        return true;
    case RT_SQL_DOUBLE:
        rt_jw_double(&w, *(const double *)member);
        return true;
    case RT_SQL_BOOL:
        rt_jw_bool(&w, *(const bool *)member);
        return true;
    default:
        return put_text(*(const rt_str *)member, arena, out, err);
    }
}

bool store_link_hash(const rt_provenance *p, rt_arena *arena, char out[RT_SHA256_HEX],
                     rt_error *err)
{
    rt_buf text RT_CLEANUP(rt_buf_done) = { 0 };
    rt_buf_reserve(&text, HASHED_BYTES);
    for (size_t i = 0; i < RT_COUNT(hashed); i++) {
        rt_buf_add(&text, i ? RT_STR(", \"") : RT_STR("{\""));
        rt_buf_add(&text, rt_str_of(hashed[i].name));
        rt_buf_add(&text, RT_STR("\": "));
        if (!put_member(&hashed[i], (const char *)p + hashed[i].offset, arena, &text, err))
            return rt_wrap(err, "%s", hashed[i].name);
    }
    rt_buf_addc(&text, '}');
    if (!rt_buf_ok(&text, err))
        return rt_wrap(err, "a provenance record");
    rt_sha256_hex(rt_buf_str(&text), out);
    return true;
}

/* -- Adding ------------------------------------------------------------------------------------ */

/* What a link is made of besides the row, with the storage for it. */
typedef struct link_texts {
    char timestamp[RT_ISO8601_SIZE], hash[RT_SHA256_HEX];
    char actor_salt[2 * SALT_BYTES + 1], actor_commitment[RT_SHA256_HEX];
    char error_salt[2 * SALT_BYTES + 1], error_commitment[RT_SHA256_HEX];
} link_texts;

static void commit_to(rt_str value, const uint8_t random[SALT_BYTES], char salt[2 * SALT_BYTES + 1],
                      char commitment[RT_SHA256_HEX])
{
    rt_hex(salt, random, SALT_BYTES);
    store_commitment(rt_str_of(salt), value, commitment);
}

static rt_provenance link_of(const rt_execution_row *row, link_texts *texts)
{
    rt_str actor_id = row->user_id.len ? row->user_id : row->key_id;
    uint8_t random[2 * SALT_BYTES];
    rt_random_bytes(random, sizeof(random));
    rt_iso8601_write(texts->timestamp, row->finished_ms ? row->finished_ms : row->created_ms);
    commit_to(actor_id, random, texts->actor_salt, texts->actor_commitment);
    commit_to(row->error_message, random + SALT_BYTES, texts->error_salt, texts->error_commitment);
    return (rt_provenance){
        .execution_id = row->id,
        .organisation_id = row->organisation_id,
        .skill_name = row->skill_name,
        .skill_version = row->skill_version,
        .actor_id = actor_id,
        .actor_type = row->actor_type,
        .actor_salt = rt_str_of(texts->actor_salt),
        .actor_commitment = rt_str_of(texts->actor_commitment),
        .code_hash = row->code_hash,
        .inputs_hash = row->input_hash,
        .outputs_hash = row->output_hash,
        .transcript_hash = row->transcript_hash,
        .tool_ids = row->tool_ids.len ? row->tool_ids : RT_STR("[]"),
        .attestation = row->attestation.len ? row->attestation : RT_STR("{}"),
        .timestamp = rt_str_of(texts->timestamp),
        .execution_time_ms = (double)row->duration_us / 1000,
        .success = rt_str_eq(row->status, RT_STR("SUCCESS")),
        .error_message = row->error_message,
        .error_salt = rt_str_of(texts->error_salt),
        .error_commitment = rt_str_of(texts->error_commitment),
    };
}

/* Takes the next number of the chain, and with it the right to add to it until the commit. */
static bool take_number(rt_tx *tx, rt_provenance *link, rt_arena *arena, rt_error *err)
{
    rt_rows rows;
    rt_sql_value values[] = { rt_sql_text(link->organisation_id) };
    if (!rt_sql(tx,
                "INSERT INTO chains (organisation_id, sequence) VALUES ($1, 1)"
                " ON CONFLICT (organisation_id) DO UPDATE SET sequence = chains.sequence + 1"
                " RETURNING sequence, hash",
                values, 1, arena, &rows, err))
        return rt_wrap(err, "the head of the chain");
    link->sequence = rt_rows_at(&rows, 0, 0).i64;
    link->previous_hash =
        link->sequence == 1 ? RT_STR(STORE_FIRST_PREVIOUS_HASH) : rt_rows_at(&rows, 0, 1).text;
    return true;
}

bool store_link_add(rt_tx *tx, const rt_execution_row *row, rt_arena *arena, rt_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, write_statement);
    link_texts texts;
    rt_provenance link = link_of(row, &texts);
    if (!take_number(tx, &link, arena, err) || !store_link_hash(&link, arena, texts.hash, err))
        return rt_wrap(err, "provenance");
    link.hash = rt_str_of(texts.hash);
    rt_sql_value values[STORE_MAX_COLUMNS];
    store_table_bind(&store_provenance, &link, values);
    rt_sql_value head[] = { rt_sql_text(link.organisation_id), rt_sql_text(link.hash) };
    if (!rt_sql(tx, insert_statement, values, store_provenance.count, arena, NULL, err) ||
        !rt_sql(tx, "UPDATE chains SET hash = $2 WHERE organisation_id = $1", head, 2, arena, NULL,
                err))
        return rt_wrap(err, "provenance");
    return true;
}

/* -- Reading ----------------------------------------------------------------------------------- */

#define LIST_DEFAULT 50
#define LIST_MAX     500

static void select_links(store_query *query, rt_str organisation_id)
{
    store_query_add(query, "SELECT ");
    store_table_names(&store_provenance, "", &query->sql);
    store_query_add(query, " FROM provenance WHERE TRUE");
    store_query_filter(query, "organisation_id", organisation_id);
}

bool rt_provenance_get(rt_store *store, rt_str organisation_id, rt_str execution_id,
                       rt_arena *arena, rt_provenance *out, rt_error *err)
{
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows rows;
    select_links(&query, organisation_id);
    store_query_value(&query, " AND execution_id = ", rt_sql_text(execution_id));
    if (!store_query_once(&query, store, arena, &rows, err))
        return rt_wrap(err, "find a provenance record");
    if (rows.count == 0)
        return rt_fail(err, RT_NOT_FOUND, "no provenance record of execution %.*s",
                       RT_FMT(execution_id));
    store_table_read(&store_provenance, &rows, 0, 0, out);
    return true;
}

bool rt_provenance_list(rt_store *store, rt_str organisation_id, rt_str actor_id, rt_str skill_name,
                        unsigned limit, rt_arena *arena, rt_provenance **rows, size_t *count,
                        rt_error *err)
{
    if (limit > LIST_MAX)
        return rt_fail(err, RT_INVALID, "a list has at most %d rows", LIST_MAX);
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows found;
    select_links(&query, organisation_id);
    store_query_filter(&query, "actor_id", actor_id);
    store_query_filter(&query, "skill_name", skill_name);
    store_query_add(&query, organisation_id.len ? " ORDER BY sequence DESC"
                                                : " ORDER BY timestamp DESC, execution_id");
    store_query_value(&query, " LIMIT ", rt_sql_i64(limit ? limit : LIST_DEFAULT));
    if (!store_query_once(&query, store, arena, &found, err))
        return rt_wrap(err, "list provenance records");
    *rows = store_table_read_all(&store_provenance, &found, sizeof(**rows), arena);
    *count = found.count;
    return true;
}

static void write_or_null(rt_json_writer *w, const char *key, rt_str text)
{
    if (text.ptr)
        rt_jw_kstr(w, key, text);
    else
        rt_jw_knull(w, key);
}

static void write_json(rt_json_writer *w, rt_str text)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_json value = { 0 };
    rt_json_parse(text, &arena, &value, NULL);
    rt_jw_json(w, value);
}

static void write_member(const store_column *column, const void *member, rt_json_writer *w)
{
    rt_jw_key(w, rt_str_of(column->name));
    switch (column->kind) {
    case HASHED_JSON:
        write_json(w, *(const rt_str *)member);
        break;
    case RT_SQL_I64:
        rt_jw_i64(w, *(const int64_t *)member);
        break;
    case RT_SQL_DOUBLE:
        rt_jw_double(w, *(const double *)member);
        break;
    case RT_SQL_BOOL:
        rt_jw_bool(w, *(const bool *)member);
        break;
    default:
        rt_jw_str(w, *(const rt_str *)member);
        break;
    }
}

void rt_provenance_write(const rt_provenance *p, rt_json_writer *w)
{
    rt_jw_object(w);
    for (size_t i = 0; i < RT_COUNT(hashed); i++)
        write_member(&hashed[i], (const char *)p + hashed[i].offset, w);
    rt_jw_kstr(w, "hash", p->hash);
    write_or_null(w, "actor_id", p->actor_id);
    write_or_null(w, "actor_salt", p->actor_salt);
    write_or_null(w, "error_message", p->error_message);
    write_or_null(w, "error_salt", p->error_salt);
    rt_jw_kbool(w, "is_erased", p->is_erased);
    rt_jw_end(w);
}
