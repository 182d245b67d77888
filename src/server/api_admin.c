/* SPDX-License-Identifier: Apache-2.0 */
/* api_admin.c - keys, secrets, the cache, and how busy this node is. */
#include "server/server_internal.h"

#define SECRET_MAX     (64u << 10)
#define PER_MINUTE_MAX 1000000
#define BUDGET_MAX     1e9

bool server_audit(http_request *r, const char *action, rt_str subject, rt_error *err)
{
    const rt_caller *c = &r->caller;
    rt_audit_event event = { .time_ms = rt_wall_ms(),
                             .organisation_id = c->organisation_id,
                             .actor_id = c->key_id.len > 0 ? c->key_id : c->user_id,
                             .actor_type = c->actor_type,
                             .action = rt_str_of(action),
                             .subject = subject,
                             .outcome = RT_STR("ok"),
                             .detail = RT_STR("{}"),
                             .address = c->address };
    return rt_audit_add(r->server->config.store, &event, err) || rt_wrap(err, "the audit log");
}

/* ---- keys ---- */

static void write_key(const rt_key *k, rt_json_writer *w)
{
    rt_jw_kstr(w, "id", k->id);
    http_jw_text(w, "name", k->name);
    rt_jw_kstr(w, "prefix", k->prefix);
    rt_jw_kstr(w, "role", rt_str_of(rt_role_name(k->role)));
    rt_jw_kstr(w, "organisation_id", k->organisation_id);
    http_jw_text(w, "workspace_id", k->workspace_id);
    http_jw_text(w, "user_id", k->user_id);
    rt_jw_ku64(w, "rate_per_minute", k->rate_per_minute);
    rt_jw_ku64(w, "max_body_bytes", k->max_body_bytes);
    rt_jw_kdouble(w, "budget_usd_month", k->budget_usd_month);
    http_jw_time(w, "created_at", k->created_ms);
    http_jw_time(w, "expires_at", k->expires_ms);
    http_jw_time(w, "revoked_at", k->revoked_ms);
    http_jw_time(w, "last_used_at", k->last_used_ms);
}

static const http_member key_members[] = {
    { "name", HTTP_STRING, true },
    { "role", HTTP_STRING, false },
    { "organisation", HTTP_STRING | HTTP_NULL, false },
    { "workspace", HTTP_STRING | HTTP_NULL, false },
    { "user", HTTP_STRING | HTTP_NULL, false },
    { "ttl", HTTP_STRING | HTTP_NUMBER | HTTP_NULL, false },
    { "rate_per_minute", HTTP_NUMBER | HTTP_NULL, false },
    { "max_body_bytes", HTTP_NUMBER | HTTP_NULL, false },
    { "budget_usd_month", HTTP_NUMBER | HTTP_NULL, false },
};

/* Nobody makes a key that may do more than he may, or in another's house. */
static bool check_reach(const http_request *r, const rt_key_spec *spec, rt_error *err)
{
    const rt_caller *c = &r->caller;
    if (spec->role > c->role)
        return rt_fail(err, RT_DENIED, "You do not have permission to make a key of the role %s",
                       rt_role_name(spec->role));
    if (c->role < RT_ROLE_OWNER && !rt_str_eq(spec->organisation, c->organisation_id))
        return rt_fail(err, RT_DENIED,
                       "You do not have permission to make keys of another organisation");
    return true;
}

static bool read_key(http_request *r, rt_key_spec *spec, rt_error *err)
{
    rt_json body;
    uint64_t ttl_ms = 0;
    *spec = (rt_key_spec){ .organisation = r->caller.organisation_id,
                           .workspace = r->caller.workspace_id,
                           .user = r->caller.user_id,
                           .role = RT_ROLE_MEMBER };
    if (!http_object(r, key_members, RT_COUNT(key_members), &body, err) ||
        !http_member_label(body, "name", &spec->name, err) ||
        !http_member_label(body, "organisation", &spec->organisation, err) ||
        !http_member_label(body, "workspace", &spec->workspace, err) ||
        !http_member_label(body, "user", &spec->user, err) ||
        !http_member_ms(body, "ttl", &ttl_ms, err) ||
        !http_member_u64(body, "rate_per_minute", 0, PER_MINUTE_MAX, &spec->rate_per_minute, err) ||
        !http_member_u64(body, "max_body_bytes", 0, r->server->config.max_body_bytes,
                         &spec->max_body_bytes, err))
        return false;
    rt_str role = rt_json_str(rt_json_get_c(body, "role"));
    if (!rt_json_is_absent(rt_json_get_c(body, "role")) && !rt_role_parse(role, &spec->role, err))
        return false;
    if (spec->name.len == 0 || spec->role == RT_ROLE_NONE)
        return rt_fail(err, RT_INVALID, "a key needs a name, and a role that may do something");
    rt_json_double(rt_json_get_c(body, "budget_usd_month"), &spec->budget_usd_month);
    if (!(spec->budget_usd_month >= 0 && spec->budget_usd_month <= BUDGET_MAX))
        return rt_fail(err, RT_INVALID, "'budget_usd_month' must be from 0 to %.0f", BUDGET_MAX);
    spec->expires_ms = ttl_ms > 0 ? rt_wall_ms() + ttl_ms : 0;
    return check_reach(r, spec, err);
}

static bool create_key(http_request *r, http_reply *reply, rt_error *err)
{
    rt_key_spec spec;
    rt_key key;
    rt_str secret;
    rt_json_writer w;
    if (!read_key(r, &spec, err) ||
        !rt_key_create(r->server->config.store, &spec, &r->arena, &key, &secret, err) ||
        !server_audit(r, "key.create", key.id, err))
        return false;
    http_reply_json(reply, 201, &w);
    rt_jw_object(&w);
    write_key(&key, &w);
    rt_jw_kstr(&w, "secret", secret);
    rt_jw_end(&w);
    return true;
}

static bool list_keys(http_request *r, http_reply *reply, rt_error *err)
{
    rt_key *rows;
    size_t count;
    rt_json_writer w;
    if (!rt_key_list(r->server->config.store, http_scope(r), &r->arena, &rows, &count, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_karray(&w, "items");
    for (size_t i = 0; i < count; i++) {
        rt_jw_object(&w);
        write_key(&rows[i], &w);
        rt_jw_end(&w);
    }
    rt_jw_end(&w);
    rt_jw_end(&w);
    return true;
}

/* A key of a stronger role is none of theirs. */
static bool check_weaker(http_request *r, rt_str id, rt_error *err)
{
    rt_key *rows;
    size_t count;
    if (!rt_key_list(r->server->config.store, http_scope(r), &r->arena, &rows, &count, err))
        return false;
    for (size_t i = 0; i < count; i++)
        if (rt_str_eq(rows[i].id, id) && rows[i].role > r->caller.role)
            return rt_fail(err, RT_DENIED,
                           "You do not have permission to revoke a key of the role %s",
                           rt_role_name(rows[i].role));
    return true;
}

static bool revoke_key(http_request *r, http_reply *reply, rt_error *err)
{
    rt_str id = http_param(r, "id");
    if (!check_weaker(r, id, err))
        return false;
    if (!rt_key_revoke(r->server->config.store, http_scope(r), id, rt_wall_ms(), err))
        return false;
    guard_keyring_forget(r->server->keyring);
    if (!server_audit(r, "key.revoke", id, err))
        return false;
    reply->status = 204;
    return true;
}

/* ---- secrets ---- */

static const http_member secret_members[] = { { "value", HTTP_STRING, true } };

static bool has_vault(const http_request *r, rt_error *err)
{
    return r->server->config.vault ||
           rt_fail(err, RT_UNSUPPORTED, "this server keeps no secrets: it has no vault");
}

static bool set_secret(http_request *r, http_reply *reply, rt_error *err)
{
    rt_json body;
    rt_str name = http_param(r, "name");
    if (!has_vault(r, err) || !http_object(r, secret_members, RT_COUNT(secret_members), &body, err))
        return false;
    rt_str value = rt_json_str(rt_json_get_c(body, "value"));
    if (value.len == 0 || value.len > SECRET_MAX)
        return rt_fail(err, RT_INVALID, "'value' must have 1 to %u bytes", SECRET_MAX);
    if (!rt_secret_set(r->server->config.store, r->server->config.vault, r->caller.organisation_id,
                       name, value, err) ||
        !server_audit(r, "secret.set", name, err))
        return false;
    reply->status = 204;
    return true;
}

static bool list_secrets(http_request *r, http_reply *reply, rt_error *err)
{
    rt_str *names;
    size_t count;
    rt_json_writer w;
    if (!rt_secret_names(r->server->config.store, r->caller.organisation_id, &r->arena, &names,
                         &count, err))
        return false;
    http_reply_json(reply, 200, &w);
    rt_jw_object(&w);
    rt_jw_karray(&w, "items");
    for (size_t i = 0; i < count; i++)
        rt_jw_str(&w, names[i]);
    rt_jw_end(&w);
    rt_jw_end(&w);
    return true;
}

static bool remove_secret(http_request *r, http_reply *reply, rt_error *err)
{
    rt_str name = http_param(r, "name");
    if (!rt_secret_remove(r->server->config.store, r->caller.organisation_id, name, err) ||
        !server_audit(r, "secret.remove", name, err))
        return false;
    reply->status = 204;
    return true;
}

/* ---- this node ---- */

static bool show_cache(http_request *r, http_reply *reply, rt_error *err)
{
    rt_json_writer w;
    (void)err;
    rt_cache_stats stats = rt_cache_stats_get(r->server->config.cache);
    http_reply_json(reply, 200, &w);
    rt_cache_stats_write(&stats, &w);
    return true;
}

static bool clear_cache(http_request *r, http_reply *reply, rt_error *err)
{
    rt_cache_clear(r->server->config.cache);
    if (!server_audit(r, "cache.clear", (rt_str){ 0 }, err))
        return false;
    reply->status = 204;
    return true;
}

static bool show_stats(http_request *r, http_reply *reply, rt_error *err)
{
    rt_json_writer w;
    (void)err;
    rt_engine_stats stats = rt_engine_stats_get(r->server->config.engine);
    http_reply_json(reply, 200, &w);
    rt_engine_stats_write(&stats, &w);
    return true;
}

#define SECRET_NAME                                                                                \
    HTTP_PARAMETERS({ "name", HTTP_IN_PATH, HTTP_TYPE_TEXT, "of the secret", NULL, NULL, 1, 100 })

const http_operation api_admin_rows[] = {
    { .method = "POST",
      .path = "/v1/keys",
      .id = "createKey",
      .tag = "Administration",
      .summary = "Make a key",
      .about = "The secret is in this answer and nowhere else.",
      .role = RT_ROLE_ADMIN,
      .action = "make keys",
      .request = "KeyRequest",
      .responses = HTTP_RESPONSES({ 201, "KeyWithSecret", "The key" }),
      .errors = "409",
      .handler = create_key },
    { .method = "GET",
      .path = "/v1/keys",
      .id = "listKeys",
      .tag = "Administration",
      .summary = "List keys",
      .role = RT_ROLE_ADMIN,
      .action = "list keys",
      .responses = HTTP_RESPONSES({ 200, "KeyList", "Without their secrets" }),
      .handler = list_keys },
    { .method = "DELETE",
      .path = "/v1/keys/{id}",
      .id = "revokeKey",
      .tag = "Administration",
      .summary = "Revoke a key",
      .role = RT_ROLE_ADMIN,
      .action = "revoke keys",
      .responses = HTTP_RESPONSES({ 204, NULL, "It no longer works" }),
      .errors = "404",
      .handler = revoke_key },
    { .method = "PUT",
      .path = "/v1/secrets/{name}",
      .id = "setSecret",
      .tag = "Administration",
      .summary = "Keep a secret",
      .about = "Sealed in the store; it can be used by tools and not be read back.",
      .role = RT_ROLE_ADMIN,
      .action = "keep secrets",
      .parameters = SECRET_NAME,
      .request = "SecretRequest",
      .responses = HTTP_RESPONSES({ 204, NULL, "It is kept" }),
      .errors = "422",
      .handler = set_secret },
    { .method = "GET",
      .path = "/v1/secrets",
      .id = "listSecrets",
      .tag = "Administration",
      .summary = "Names of secrets",
      .role = RT_ROLE_ADMIN,
      .action = "list secrets",
      .responses = HTTP_RESPONSES({ 200, "SecretList", "Their names" }),
      .handler = list_secrets },
    { .method = "DELETE",
      .path = "/v1/secrets/{name}",
      .id = "removeSecret",
      .tag = "Administration",
      .summary = "Forget a secret",
      .role = RT_ROLE_ADMIN,
      .action = "remove secrets",
      .parameters = SECRET_NAME,
      .responses = HTTP_RESPONSES({ 204, NULL, "It is forgotten" }),
      .errors = "404",
      .handler = remove_secret },
    { .method = "GET",
      .path = "/v1/cache",
      .id = "cacheStats",
      .tag = "Administration",
      .summary = "How well the cache does",
      .role = RT_ROLE_VIEWER,
      .action = "read the cache's figures",
      .responses = HTTP_RESPONSES({ 200, "CacheStats", "Its figures" }),
      .handler = show_cache },
    { .method = "DELETE",
      .path = "/v1/cache",
      .id = "clearCache",
      .tag = "Administration",
      .summary = "Empty the cache",
      .role = RT_ROLE_ADMIN,
      .action = "empty the cache",
      .responses = HTTP_RESPONSES({ 204, NULL, "It is empty" }),
      .handler = clear_cache },
    { .method = "GET",
      .path = "/v1/stats",
      .id = "stats",
      .tag = "Server",
      .summary = "How busy this node is",
      .role = RT_ROLE_VIEWER,
      .action = "read figures",
      .responses = HTTP_RESPONSES({ 200, "Stats", "Now" }),
      .handler = show_stats },
    { 0 },
};
