/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accounts.c - keys, and the organisations, workspaces and users they speak for.
 *
 * A secret is 32 random bytes, so its plain SHA-256 can be looked up: there is nothing to guess
 * that a slow hash would protect. Finding a key reads one row by that hash and writes nothing.
 */
#include "store/accounts.h"

#include "store/tables_internal.h"

#define SECRET_PREFIX "rt_"
#define SECRET_BYTES  32
#define SECRET_LEN    (sizeof(SECRET_PREFIX) - 1 + STORE_BASE64URL_SIZE(SECRET_BYTES) - 1)
#define PREFIX_LEN    10 /* characters that tell a key */
#define NAME_MAX_LEN  100
#define ID_MAX_LEN    63

/* -- Roles ------------------------------------------------------------------------------------- */

static const char *const role_names[] = {
    [RT_ROLE_NONE] = "none",   [RT_ROLE_VIEWER] = "viewer", [RT_ROLE_MEMBER] = "member",
    [RT_ROLE_ADMIN] = "admin", [RT_ROLE_OWNER] = "owner",
};

const char *rt_role_name(rt_role role)
{
    return role_names[role];
}

bool rt_role_parse(rt_str text, rt_role *out, rt_error *err)
{
    for (rt_role role = RT_ROLE_VIEWER; role <= RT_ROLE_OWNER; role++)
        if (rt_str_eq_c(text, role_names[role])) {
            *out = role;
            return true;
        }
    return rt_fail(err, RT_INVALID, "a role is viewer, member, admin or owner");
}

/* -- Rows -------------------------------------------------------------------------------------- */

#define COLUMN(member, kind, absent) STORE_COLUMN(rt_key, member, kind, absent, false)
#define TEXT(member)                 COLUMN(member, RT_SQL_TEXT, NULL)
#define I64(member)                  COLUMN(member, RT_SQL_I64, NULL)

static const store_column columns[] = {
    TEXT(id),
    COLUMN(name, RT_SQL_TEXT, ""),
    TEXT(prefix),
    TEXT(organisation_id),
    TEXT(workspace_id),
    TEXT(user_id),
    I64(created_ms),
    I64(expires_ms),
    I64(revoked_ms),
    I64(last_used_ms),
    I64(rate_per_minute),
    I64(max_body_bytes),
    COLUMN(budget_usd_month, RT_SQL_DOUBLE, NULL),
};

static const store_table api_keys = { "api_keys", columns, RT_COUNT(columns) };

/* The role comes after the columns of the table: it is a name there and a number here. */
static void select_keys(store_query *query)
{
    store_query_add(query, "SELECT ");
    store_table_names(&api_keys, "", &query->sql);
    store_query_add(query, ", role FROM api_keys WHERE TRUE");
}

static bool read_key(const rt_rows *rows, size_t row, rt_key *out, rt_error *err)
{
    store_table_read(&api_keys, rows, row, 0, out);
    return rt_role_parse(rt_rows_at(rows, row, api_keys.count).text, &out->role, err);
}

/* -- Making one -------------------------------------------------------------------------------- */

static bool is_id_char(char c, bool is_first)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           (!is_first && (c == '-' || c == '_'));
}

static bool check_id(rt_str id, const char *of, rt_error *err)
{
    bool is_good = id.len >= 1 && id.len <= ID_MAX_LEN;
    for (size_t i = 0; is_good && i < id.len; i++)
        is_good = is_id_char(id.ptr[i], i == 0);
    if (!is_good)
        return rt_fail(err, RT_INVALID,
                       "the name of %s is 1 to %d characters of a-z, 0-9, '-' and '_', and begins"
                       " with a letter or digit",
                       of, ID_MAX_LEN);
    return true;
}

static bool check_name(rt_str name, rt_error *err)
{
    if (name.len > NAME_MAX_LEN || !rt_utf8_valid(name))
        return rt_fail(err, RT_INVALID, "the name of a key is at most %d bytes of UTF-8",
                       NAME_MAX_LEN);
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.ptr[i] < ' ' || name.ptr[i] == 0x7F)
            return rt_fail(err, RT_INVALID, "the name of a key has a control character");
    return true;
}

static bool check_spec(const rt_key_spec *spec, rt_error *err)
{
    if (spec->role <= RT_ROLE_NONE || spec->role > RT_ROLE_OWNER)
        return rt_fail(err, RT_INVALID, "a key has a role: viewer, member, admin or owner");
    if (!(spec->budget_usd_month >= 0))
        return rt_fail(err, RT_INVALID, "a budget is not negative");
    return check_name(spec->name, err) && check_id(spec->organisation, "an organisation", err) &&
           check_id(spec->workspace, "a workspace", err) && check_id(spec->user, "a user", err);
}

static bool make_places(rt_tx *tx, const rt_key *key, rt_error *err)
{
    rt_sql_value now = store_u64(key->created_ms), organisation = rt_sql_text(key->organisation_id);
    rt_sql_value of_workspace[] = { organisation, rt_sql_text(key->workspace_id), now };
    rt_sql_value of_user[] = { organisation, rt_sql_text(key->user_id), now };
    return rt_sql(tx,
                  "INSERT INTO organisations (id, name, created_ms) VALUES ($1, $1, $2)"
                  " ON CONFLICT DO NOTHING",
                  (rt_sql_value[]){ organisation, now }, 2, NULL, NULL, err) &&
           rt_sql(tx,
                  "INSERT INTO workspaces (organisation_id, id, name, created_ms)"
                  " VALUES ($1, $2, $2, $3) ON CONFLICT DO NOTHING",
                  of_workspace, 3, NULL, NULL, err) &&
           rt_sql(tx,
                  "INSERT INTO users (organisation_id, id, name, created_ms)"
                  " VALUES ($1, $2, $2, $3) ON CONFLICT DO NOTHING",
                  of_user, 3, NULL, NULL, err);
}

static bool insert_key(rt_tx *tx, const rt_key *key, rt_str secret, rt_error *err)
{
    char hash[RT_SHA256_HEX];
    rt_sha256_hex(secret, hash);
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    store_query_add(&query, "INSERT INTO api_keys (");
    store_table_names(&api_keys, "", &query.sql);
    store_query_add(&query, ", role, secret_sha256) VALUES (");
    rt_sql_value values[STORE_MAX_COLUMNS];
    store_table_bind(&api_keys, key, values);
    for (size_t i = 0; i < api_keys.count; i++)
        store_query_value(&query, i ? ", " : "", values[i]);
    store_query_value(&query, ", ", rt_sql_text(rt_str_of(rt_role_name(key->role))));
    store_query_value(&query, ", ", rt_sql_text(rt_str_of(hash)));
    store_query_add(&query, ")");
    return store_query_run(&query, tx, NULL, NULL, err);
}

static rt_str new_secret(rt_arena *arena)
{
    uint8_t bytes[SECRET_BYTES];
    char text[STORE_BASE64URL_SIZE(SECRET_BYTES)];
    rt_random_bytes(bytes, sizeof(bytes));
    store_base64url(text, bytes, sizeof(bytes));
    return rt_arena_printf(arena, SECRET_PREFIX "%s", text);
}

static rt_str or_local(rt_str given, const char *local)
{
    return given.len ? given : rt_str_of(local);
}

/* Outlives the keys themselves: when the last one is gone the door does not open by itself. */
static bool remember_keys(rt_tx *tx, rt_arena *arena, rt_error *err)
{
    return rt_sql(tx,
                  "INSERT INTO settings (key, value) VALUES ('keys_were_made', 'true')"
                  " ON CONFLICT (key) DO NOTHING",
                  NULL, 0, arena, NULL, err);
}

bool rt_key_create(rt_store *store, const rt_key_spec *spec, rt_arena *arena, rt_key *out,
                   rt_str *secret, rt_error *err)
{
    rt_key_spec full = *spec;
    full.organisation = or_local(spec->organisation, RT_LOCAL_ORGANISATION);
    full.workspace = or_local(spec->workspace, RT_LOCAL_WORKSPACE);
    full.user = or_local(spec->user, RT_LOCAL_USER);
    if (!check_spec(&full, err))
        return false;
    rt_str made = new_secret(arena);
    rt_key key = {
        .id = rt_id_new("key", arena),
        .name = rt_arena_str(arena, full.name),
        .prefix = rt_str_slice(made, 0, PREFIX_LEN),
        .organisation_id = rt_arena_str(arena, full.organisation),
        .workspace_id = rt_arena_str(arena, full.workspace),
        .user_id = rt_arena_str(arena, full.user),
        .role = full.role,
        .created_ms = rt_wall_ms(),
        .expires_ms = full.expires_ms,
        .rate_per_minute = full.rate_per_minute,
        .max_body_bytes = full.max_body_bytes,
        .budget_usd_month = full.budget_usd_month,
    };
    rt_tx *tx RT_CLEANUP(rt_tx_rollbackp) = NULL;
    if (!rt_tx_begin(store, RT_TX_WRITE, &tx, err) || !make_places(tx, &key, err) ||
        !insert_key(tx, &key, made, err) || !remember_keys(tx, arena, err) ||
        !rt_tx_commit(&tx, err))
        return rt_wrap(err, "make a key");
    *out = key;
    *secret = made;
    return true;
}

/* -- Using one --------------------------------------------------------------------------------- */

static bool is_working(const rt_key *key, uint64_t now_ms)
{
    return !key->revoked_ms && (!key->expires_ms || now_ms < key->expires_ms);
}

bool rt_key_find(rt_store *store, rt_str secret, rt_arena *arena, rt_key *out, rt_error *err)
{
    if (secret.len != SECRET_LEN || !rt_str_starts(secret, RT_STR(SECRET_PREFIX)))
        return rt_fail(err, RT_DENIED, "the key is not valid");
    char hash[RT_SHA256_HEX];
    rt_sha256_hex(secret, hash);
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows rows;
    select_keys(&query);
    store_query_value(&query, " AND secret_sha256 = ", rt_sql_text(rt_str_of(hash)));
    if (!store_query_once(&query, store, arena, &rows, err))
        return rt_wrap(err, "find a key");
    rt_key key = { 0 };
    if (rows.count == 0 || !read_key(&rows, 0, &key, err) || !is_working(&key, rt_wall_ms()))
        return rt_fail(err, RT_DENIED, "the key is not valid");
    *out = key;
    return true;
}

/* -- Keeping them ------------------------------------------------------------------------------ */

bool rt_key_list(rt_store *store, rt_str organisation_id, rt_arena *arena, rt_key **rows,
                 size_t *count, rt_error *err)
{
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows found;
    select_keys(&query);
    store_query_filter(&query, "organisation_id", organisation_id);
    store_query_add(&query, " ORDER BY created_ms DESC, id");
    if (!store_query_once(&query, store, arena, &found, err))
        return rt_wrap(err, "list the keys");
    rt_key *keys = rt_arena_alloc(arena, found.count * sizeof(*keys));
    for (size_t i = 0; i < found.count; i++)
        if (!read_key(&found, i, &keys[i], err))
            return rt_wrap(err, "list the keys");
    *rows = keys;
    *count = found.count;
    return true;
}

bool rt_key_revoke(rt_store *store, rt_str organisation_id, rt_str id, uint64_t now_ms,
                   rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    store_query query RT_CLEANUP(store_query_done) = { 0 };
    rt_rows rows;
    store_query_value(&query,
                      "UPDATE api_keys SET revoked_ms = CASE WHEN revoked_ms = 0 THEN CAST(",
                      store_u64(now_ms));
    store_query_value(&query, " AS BIGINT) ELSE revoked_ms END WHERE id = ", rt_sql_text(id));
    store_query_filter(&query, "organisation_id", organisation_id);
    if (!rt_sql_once(store, RT_TX_WRITE, store_statement(&query.sql), query.values, query.count,
                     &arena, &rows, err))
        return rt_wrap(err, "revoke a key");
    if (rows.changed == 0)
        return rt_fail(err, RT_NOT_FOUND, "no key %.*s", RT_FMT(id));
    return true;
}

bool rt_key_count(rt_store *store, uint64_t *out, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_rows rows;
    rt_sql_value values[] = { store_u64(rt_wall_ms()) };
    if (!rt_sql_once(store, RT_TX_READ,
                     "SELECT COUNT(*) FROM api_keys"
                     " WHERE revoked_ms = 0 AND (expires_ms = 0 OR expires_ms > $1)",
                     values, 1, &arena, &rows, err))
        return rt_wrap(err, "count the keys");
    *out = (uint64_t)rt_rows_at(&rows, 0, 0).i64;
    return true;
}

bool rt_key_was_made(rt_store *store, bool *out, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    rt_rows rows;
    if (!rt_sql_once(store, RT_TX_READ, "SELECT 1 FROM settings WHERE key = 'keys_were_made'", NULL,
                     0, &arena, &rows, err))
        return rt_wrap(err, "look for keys");
    *out = rows.count > 0;
    return true;
}

bool rt_key_touch(rt_store *store, rt_str id, uint64_t now_ms, rt_error *err)
{
    rt_sql_value values[] = { rt_sql_text(id), store_u64(now_ms) };
    if (!rt_sql_once(store, RT_TX_WRITE,
                     "UPDATE api_keys SET last_used_ms = $2 WHERE id = $1 AND last_used_ms < $2",
                     values, 2, NULL, NULL, err))
        return rt_wrap(err, "mark a key as used");
    return true;
}
